//! What a render takes over from others: texts that another engine wrote, with who wrote every byte of them.
//!
//! A piece speaks of units and frames by numbers that only its own render gives a meaning. Here they get numbers behind those of
//! the render that takes it over, so that nothing of what is known of a text is lost on the way.

use std::ops::Range;
use std::sync::Arc;

use super::engine::Output;
use super::sink::{Full, Piece, Sink, Writer};
use super::unit::{ExtraUnits, FENCE, Frame, Unit, Units};

/// Units and frames that one render took over.
#[derive(Debug)]
#[doc(hidden)]
pub struct MergedUnits {
    more: Vec<ExtraUnits>,
    next_unit: u32,
    frames: Vec<Frame>,
    /// How many frames the render itself has.
    own_frames: u32,
    /// What was taken over already.
    known: Vec<MergedSource>,
}

/// Units and frames that were taken over.
#[derive(Debug)]
struct MergedSource {
    units: Units,
    section: Option<Arc<str>>,
    /// The numbers that they got.
    numbers: (u32, u32),
}

impl MergedUnits {
    /// Nothing yet, for a render that itself has so many units and frames.
    #[doc(hidden)]
    pub fn new(units: usize, frames: usize) -> MergedUnits {
        MergedUnits {
            more: Vec::new(),
            next_unit: units as u32,
            frames: Vec::new(),
            own_frames: frames as u32,
            known: Vec::new(),
        }
    }

    /// What another render took over: its pieces keep their numbers.
    #[doc(hidden)]
    pub fn of(units: &Units, own_frames: usize) -> MergedUnits {
        let frames = units.frames().get(own_frames..).unwrap_or_default().to_vec();
        MergedUnits { more: units.more().to_vec(), frames, ..MergedUnits::new(units.len(), own_frames) }
    }

    /// Forgets everything.
    #[doc(hidden)]
    pub fn clear(&mut self, units: usize) {
        *self = MergedUnits::new(units, self.own_frames as usize);
    }

    /// Adds one unit, as the text of a section, and gives back its number.
    #[doc(hidden)]
    pub fn unit(&mut self, unit: Unit, section: &Arc<str>) -> u32 {
        let number = self.next_unit;
        self.more.push((number, Arc::new(vec![unit]), Some(section.clone())));
        self.next_unit += 1;
        number
    }

    /// Writes a part of what another render wrote. With a section, all of it belongs to that.
    #[doc(hidden)]
    pub fn write(
        &mut self,
        sink: &mut Sink,
        output: &Output,
        part: Range<usize>,
        section: Option<&Arc<str>>,
    ) -> Result<(), Full> {
        let (units, frames) = self.number(&output.units, section);
        // The piece that the part begins in, or the first of those that begin with it.
        let first = output.pieces.partition_point(|piece| (piece.start as usize) < part.start);
        let pieces = &output.pieces[first.saturating_sub(1)..];
        let ends = pieces.iter().skip(1).map(|piece| piece.start as usize).chain([output.text.len()]);
        for (Piece { start, writer }, end) in pieces.iter().copied().zip(ends) {
            if start as usize > part.end {
                break;
            }
            let is_empty = start as usize == end;
            let (begin, end) = ((start as usize).max(part.start), end.min(part.end));
            // Nothing is written twice where one part ends and the next begins.
            let is_of_next = is_empty && begin == part.end && part.end < output.text.len();
            if begin > end || (begin == end && !is_empty) || is_of_next {
                continue;
            }
            let bytes = &output.text.as_bytes()[begin..end];
            match writer {
                Writer::Literal { unit, offset } => {
                    sink.literal(units + unit, offset + (begin - start as usize) as u32, bytes)?;
                }
                Writer::Changed { unit, change } => sink.changed(units + unit, change, bytes)?,
                Writer::Value { unit, offset } => {
                    sink.begin_value(units + unit, offset);
                    sink.value(bytes)?;
                }
                Writer::Frame { frame: FENCE } => sink.frame(FENCE, bytes)?,
                Writer::Frame { frame } => sink.frame(frames + frame, bytes)?,
                // Hooks change whole prompts, and never what one takes over.
                Writer::Hook { .. } => sink.value(bytes)?,
            }
        }
        Ok(())
    }

    /// The numbers that come before those of some units and frames.
    fn number(&mut self, units: &Units, section: Option<&Arc<str>>) -> (u32, u32) {
        let is_same = |known: &&MergedSource| {
            Arc::ptr_eq(known.units.own(), units.own())
                && Arc::ptr_eq(known.units.frames(), units.frames())
                && is_same_brought(known.units.more(), units.more())
                && known.section.as_ref() == section
        };
        // What is written line by line was the last that came.
        if let Some(known) = self.known.iter().rev().find(is_same) {
            return known.numbers;
        }
        let numbers = (self.next_unit, self.own_frames + self.frames.len() as u32);
        let label = |own: Option<&Arc<str>>| section.or(own).cloned();
        self.more.push((numbers.0, units.own().clone(), label(None)));
        for (first, brought, of) in units.more() {
            self.more.push((numbers.0 + first, brought.clone(), label(of.as_ref())));
        }
        self.next_unit += units.len() as u32;
        self.frames.extend(
            units
                .frames()
                .iter()
                .map(|frame| Frame { name: frame.name, section: label(frame.section.as_ref()) }),
        );
        self.known.push(MergedSource { units: units.clone(), section: section.cloned(), numbers });
        numbers
    }

    /// All units of the render: its own, and those that it took over.
    #[doc(hidden)]
    pub fn finish(self, own: Arc<Vec<Unit>>, frames: Arc<[Frame]>) -> Units {
        if self.frames.is_empty() {
            return Units::new(own, self.more, frames);
        }
        let frames = frames.iter().cloned().chain(self.frames).collect();
        Units::new(own, self.more, frames)
    }
}

/// Whether two renders took over the same things.
fn is_same_brought(one: &[ExtraUnits], other: &[ExtraUnits]) -> bool {
    let is_same = |(one, other): (&ExtraUnits, &ExtraUnits)| {
        one.0 == other.0 && Arc::ptr_eq(&one.1, &other.1) && one.2 == other.2
    };
    one.len() == other.len() && one.iter().zip(other).all(is_same)
}
