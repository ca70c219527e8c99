//! What a render gives.

use std::ops::Deref;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::lexer::Range;
use crate::origin::{Origin, Origins, Path};
use crate::sink::{Mark, Piece, Sink};
use crate::template::Template;

/// A template that took part in a render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name of the template.
    pub name: Arc<str>,
}

/// The templates that took part in a render, in the order in which marks number them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources(SmallVec<[Source; 2]>);

impl Deref for Sources {
    type Target = [Source];

    fn deref(&self) -> &[Source] {
        &self.0
    }
}

impl<'t> FromIterator<&'t Template> for Sources {
    fn from_iter<I: IntoIterator<Item = &'t Template>>(templates: I) -> Sources {
        Sources(templates.into_iter().map(Source::of).collect())
    }
}

impl Source {
    fn of(template: &Template) -> Source {
        Source { name: template.shared_name() }
    }
}

/// Text, with the origin of every byte.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    text: String,
    pieces: Vec<Piece>,
    units: Sources,
    origins: Origins,
    fuel: u64,
}

impl Output {
    pub(crate) fn new(sink: Sink, units: Sources, origins: Origins, fuel: u64) -> Output {
        Output { text: sink.text, pieces: sink.pieces, units, origins, fuel }
    }

    /// The text, its pieces, the templates that their marks number, and the origins.
    pub fn into_parts(self) -> (String, Vec<Piece>, Sources, Origins) {
        (self.text, self.pieces, self.units, self.origins)
    }

    /// The fuel that was left.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The pieces, which cover the text without gaps.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The templates that the marks of pieces number.
    pub fn units(&self) -> &[Source] {
        &self.units
    }

    /// The variables behind an origin.
    pub fn paths(&self, origin: Origin) -> Vec<Path> {
        self.origins.paths(origin)
    }

    /// The mark of the piece at an offset.
    pub fn mark_at(&self, offset: usize) -> Option<Mark> {
        if offset >= self.text.len() {
            return None;
        }
        let after = self.pieces.partition_point(|piece| piece.start as usize <= offset);
        self.pieces.get(after.checked_sub(1)?).map(|piece| piece.mark)
    }

    /// The variables behind the text at an offset.
    pub fn paths_at(&self, offset: usize) -> Vec<Path> {
        match self.mark_at(offset) {
            Some(mark) => self.origins.paths(mark.origin()),
            None => Vec::new(),
        }
    }

    /// The text of a piece.
    pub fn piece_text(&self, at: usize) -> &str {
        let end = self.pieces.get(at + 1).map_or(self.text.len(), |next| next.start as usize);
        let start = self.pieces.get(at).map_or(end, |piece| piece.start as usize);
        Range::new(start, end).of(&self.text)
    }
}
