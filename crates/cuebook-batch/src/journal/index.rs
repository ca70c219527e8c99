//! Where the answer to a question stands in the journal, in eight bytes for each answer.
//!
//! A slot has 24 bits of the key and 40 bits of the place, so a journal may have a terabyte. The bits of the key leave out nearly all
//! wrong places; the line itself has the whole key and decides. The slots are in parts that grow one at a time, so that the index never
//! needs its memory twice.

use crate::key::Key;

/// Bits of a place.
const PLACE: u64 = (1 << 40) - 1;
/// A slot that holds nothing.
const EMPTY: u64 = u64::MAX;
/// The parts: one for each first byte of a key.
const PARTS: usize = 256;
/// The fewest slots of a part.
const FEWEST: usize = 8;

/// An index of keys.
#[derive(Debug)]
pub(super) struct Index {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    slots: Vec<u64>,
    used: usize,
}

impl Index {
    pub(super) fn new() -> Index {
        let part = || Part { slots: vec![EMPTY; FEWEST], used: 0 };
        Index { parts: std::iter::repeat_with(part).take(PARTS).collect() }
    }

    fn tag(key: Key) -> u64 {
        let bytes = key.bytes();
        u64::from(bytes[0]) << 56 | u64::from(bytes[1]) << 48 | u64::from(bytes[2]) << 40
    }

    /// The places whose keys may be this one, and the numbers of their slots.
    pub(super) fn places(&self, key: Key) -> impl Iterator<Item = (usize, u64)> + '_ {
        let tag = Index::tag(key);
        let number = usize::from(key.bytes()[0]);
        self.parts[number].places(tag).map(move |(slot, place)| (slot * PARTS + number, place))
    }

    /// Has a slot lead to a newer place of the same key.
    pub(super) fn replace(&mut self, slot: usize, place: u64) {
        let slot = &mut self.parts[slot % PARTS].slots[slot / PARTS];
        *slot = *slot & !PLACE | place & PLACE;
    }

    /// Adds a key that is not there.
    pub(super) fn add(&mut self, key: Key, place: u64) {
        let part = &mut self.parts[usize::from(key.bytes()[0])];
        if part.used * 8 >= part.slots.len() * 7 {
            part.grow();
        }
        part.put(Index::tag(key) | place & PLACE);
        part.used += 1;
    }
}

impl Part {
    fn start(&self, tag: u64) -> usize {
        // The tag alone decides where a search begins, so that slots can move without their keys.
        let spread = (tag >> 40).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((u128::from(spread) * self.slots.len() as u128) >> 64) as usize
    }

    fn places(&self, tag: u64) -> impl Iterator<Item = (usize, u64)> + '_ {
        let start = self.start(tag);
        (0..self.slots.len())
            .map(move |step| (start + step) % self.slots.len())
            .take_while(|slot| self.slots[*slot] != EMPTY)
            .filter(move |slot| self.slots[*slot] & !PLACE == tag)
            .map(|slot| (slot, self.slots[slot] & PLACE))
    }

    fn put(&mut self, entry: u64) {
        let mut slot = self.start(entry & !PLACE);
        while self.slots[slot] != EMPTY {
            slot = (slot + 1) % self.slots.len();
        }
        self.slots[slot] = entry;
    }

    fn grow(&mut self) {
        let size = self.slots.len() + (self.slots.len() / 4).max(FEWEST);
        let old = std::mem::replace(&mut self.slots, vec![EMPTY; size]);
        old.into_iter().filter(|entry| *entry != EMPTY).for_each(|entry| self.put(entry));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u64) -> Key {
        // Spreads the numbers as a hash does.
        let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Key::read(&format!("{spread:016x}{number:016x}")).unwrap()
    }

    #[test]
    fn an_index_needs_at_most_twelve_bytes_for_an_answer() {
        const ANSWERS: u64 = 300_000;
        let mut index = Index::new();
        for number in 0..ANSWERS {
            index.add(key(number), number);
            let slots: usize = match number.is_multiple_of(9973) {
                true => index.parts.iter().map(|part| part.slots.len()).sum(),
                false => continue,
            };
            // The part that grows has its slots twice for a moment.
            let largest = index.parts.iter().map(|part| part.slots.len()).max().unwrap();
            let least = PARTS * (FEWEST + FEWEST * 4) * 8;
            let bytes = (slots + largest) * 8;
            assert!(bytes <= least.max(number as usize * 12), "{bytes} bytes for {number} answers");
        }
        for number in (0..ANSWERS).step_by(101) {
            assert!(index.places(key(number)).any(|(_, place)| place == number), "{number}");
        }
        let (slot, _) = index.places(key(7)).find(|(_, place)| *place == 7).unwrap();
        index.replace(slot, 70);
        assert!(index.places(key(7)).any(|(_, place)| place == 70));
    }
}
