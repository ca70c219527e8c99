//! Tells literals from values while the engine writes, by where the bytes lie in memory.
//!
//! The engine writes an author's literal as a slice of the template's own text, and a value from the value's own memory.
//! Two live allocations never overlap, so the address alone says which it is: nothing in the text has to be marked, and
//! no value can pretend. An empty literal is a beacon (see [`super::instrument`]): it names the emission that follows.

use std::io;

use super::{fence, guests};
use crate::template::annex::Annex;
use crate::template::sink::Sink;

/// Where the text of a unit lies in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    start: usize,
    length: usize,
}

impl Extent {
    pub(super) fn of(text: &str) -> Extent {
        Extent { start: text.as_ptr() as usize, length: text.len() }
    }

    /// The offset of an address in the unit's text.
    #[inline]
    fn offset(self, address: usize) -> Option<u32> {
        let offset = address.wrapping_sub(self.start);
        (offset < self.length).then_some(offset as u32)
    }
}

/// Writes what the engine produces into a sink.
pub(super) struct Attributing<'a> {
    pub(super) sink: &'a mut Sink,
    pub(super) extents: &'a [Extent],
    /// The unit that wrote last; the next write is most likely from the same.
    pub(super) last: usize,
    /// What guests wrote, if the template has any.
    pub(super) annex: Option<&'a mut Annex>,
    /// Whether the templates have fences.
    pub(super) fences: bool,
}

impl Attributing<'_> {
    #[inline]
    fn find(&mut self, address: usize) -> Option<(u32, u32)> {
        if let Some(offset) = self.extents.get(self.last).and_then(|extent| extent.offset(address)) {
            return Some((self.last as u32, offset));
        }
        let (index, offset) = self
            .extents
            .iter()
            .enumerate()
            .find_map(|(index, extent)| extent.offset(address).map(|offset| (index, offset)))?;
        self.last = index;
        Some((index as u32, offset))
    }
}

impl io::Write for Attributing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_all(bytes)?;
        Ok(bytes.len())
    }

    #[inline]
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let written = match self.find(bytes.as_ptr() as usize) {
            Some((unit, offset)) if bytes.is_empty() => {
                self.sink.begin_value(unit, offset);
                Ok(())
            }
            Some((unit, offset)) => self.sink.literal(unit, offset, bytes),
            None if bytes.is_empty() => Ok(()),
            None => {
                let annex = self.annex.as_deref_mut();
                let guest = annex.and_then(|annex| guests::write(bytes, self.sink, annex));
                let fenced = || if self.fences { fence::write(bytes, self.sink) } else { None };
                match guest.or_else(fenced) {
                    Some(written) => written,
                    None => self.sink.value(bytes),
                }
            }
        };
        written.map_err(io::Error::other)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
