//! Where the answer to a question stands in the journal, in eight bytes for each answer.
//!
//! A slot has 24 bits of the key and 40 bits of the place, so a journal may have a terabyte. The bits of the key leave out nearly all
//! wrong places; the line itself has the whole key and decides.

use crate::key::Key;

/// Bits of a place.
const PLACE: u64 = (1 << 40) - 1;
/// A slot that holds nothing.
const EMPTY: u64 = u64::MAX;
/// The fewest slots.
const FEWEST: usize = 1 << 10;

/// An index of keys.
#[derive(Debug)]
pub(super) struct Index {
    slots: Vec<u64>,
    used: usize,
}

impl Index {
    pub(super) fn new() -> Index {
        Index { slots: vec![EMPTY; FEWEST], used: 0 }
    }

    fn tag(key: Key) -> u64 {
        let bytes = key.bytes();
        u64::from(bytes[0]) << 56 | u64::from(bytes[1]) << 48 | u64::from(bytes[2]) << 40
    }

    fn start(&self, tag: u64) -> usize {
        // The tag alone decides where a search begins, so that slots can move without their keys.
        let spread = (tag >> 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(spread) * self.slots.len() as u128) >> 64) as usize
    }

    /// The places whose keys may be this one.
    pub(super) fn places(&self, key: Key) -> impl Iterator<Item = (usize, u64)> + '_ {
        let tag = Index::tag(key);
        let start = self.start(tag);
        (0..self.slots.len())
            .map(move |step| (start + step) % self.slots.len())
            .take_while(|slot| self.slots[*slot] != EMPTY)
            .filter(move |slot| self.slots[*slot] & !PLACE == tag)
            .map(|slot| (slot, self.slots[slot] & PLACE))
    }

    /// Has a slot lead to a newer place of the same key.
    pub(super) fn replace(&mut self, slot: usize, place: u64) {
        self.slots[slot] = self.slots[slot] & !PLACE | place & PLACE;
    }

    /// Adds a key that is not there.
    pub(super) fn add(&mut self, key: Key, place: u64) {
        if self.used * 8 >= self.slots.len() * 7 {
            self.grow();
        }
        self.put(Index::tag(key) | place & PLACE);
        self.used += 1;
    }

    fn put(&mut self, entry: u64) {
        let mut slot = self.start(entry & !PLACE);
        while self.slots[slot] != EMPTY {
            slot = (slot + 1) % self.slots.len();
        }
        self.slots[slot] = entry;
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 3 / 2;
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; size]);
        old.into_iter().filter(|entry| *entry != EMPTY).for_each(|entry| self.put(entry));
    }
}
