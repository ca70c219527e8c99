//! An earlier render of the same tree, of which a shorter one takes what it shows in the same way.

use super::rendered::{RenderedPrompt, SectionState};
use super::setting::Fold;
use crate::prompt::Visibility;
use crate::template::sink::Piece;

pub(super) struct EarlierRender<'e> {
    whole: &'e RenderedPrompt,
    folds: &'e [Option<Fold>],
    /// Where a section is among the beginnings, by its index.
    places: Vec<Option<usize>>,
}

impl<'e> EarlierRender<'e> {
    pub(super) fn new(whole: &'e RenderedPrompt, folds: &'e [Option<Fold>]) -> EarlierRender<'e> {
        let mut places = vec![None; whole.states.len()];
        for (place, beginning) in whole.starts.iter().enumerate() {
            // What overrides add to a section comes later than itself.
            places[beginning.index].get_or_insert(place);
        }
        EarlierRender { whole, folds, places }
    }

    /// What becomes of a section now.
    pub(super) fn state(&self, index: usize) -> SectionState {
        match self.folds[index] {
            None => self.whole.states[index],
            Some(Fold::Summary) => SectionState::Shown(Visibility::Summary),
            Some(Fold::Gone) => SectionState::Dropped,
        }
    }

    /// What a section was with its heading, if it was shown like this, and the pieces of that.
    pub(super) fn section(&self, index: usize, visibility: Visibility) -> Option<(&'e str, &'e [Piece])> {
        if self.whole.states[index] != SectionState::Shown(visibility) {
            return None;
        }
        let place = self.places[index]?;
        let (text, all) = (self.whole.text(), self.whole.rendered.pieces());
        let (first, next) = (self.whole.starts.get(place)?, self.whole.starts.get(place + 1));
        let pieces = &all[first.piece..next.map_or(all.len(), |next| next.piece)];
        let end = next.map_or(text.len(), |next| all[next.piece].start as usize);
        Some((&text[pieces.first()?.start as usize..end], pieces))
    }
}
