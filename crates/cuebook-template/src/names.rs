//! Maps and sets by names and numbers of a template, with a hash that is quick for short keys.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use serde_json::{Map, Value as Json};
use smallvec::SmallVec;

/// A hash for keys that the author of a template chooses, who can only slow down the own template.
#[derive(Default)]
pub(crate) struct Quick(u64);

const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl Quick {
    #[inline]
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(FACTOR);
    }
}

impl Hasher for Quick {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let mut chunks = bytes.chunks_exact(8);
        for chunk in &mut chunks {
            self.add(chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)));
        }
        self.add(
            chunks.remainder().iter().fold(bytes.len() as u64, |word, byte| word << 8 | u64::from(*byte)),
        );
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}

/// How many names [`Few`] compares one by one.
pub(crate) const FEW: usize = 8;

/// A map by names that are added once. The first ones are compared one by one, without a hash, and `N` of them need no memory
/// apart from the map.
#[derive(Debug, Clone)]
pub(crate) struct Few<'n, V, const N: usize = 0> {
    first: SmallVec<[(&'n str, V); N]>,
    others: Option<Box<Names<&'n str, V>>>,
}

impl<V, const N: usize> Default for Few<'_, V, N> {
    fn default() -> Self {
        Few { first: SmallVec::new(), others: None }
    }
}

impl<'n, V, const N: usize> Few<'n, V, N> {
    #[inline]
    pub fn get(&self, name: &str) -> Option<&V> {
        match self.first.iter().find(|(known, _)| *known == name) {
            Some((_, value)) => Some(value),
            None => self.others.as_ref()?.get(name),
        }
    }

    /// Adds a name that the map does not have.
    #[inline]
    pub fn add(&mut self, name: &'n str, value: V) {
        if self.first.len() < FEW {
            if self.first.capacity() == 0 {
                self.first.reserve_exact(FEW / 2);
            }
            self.first.push((name, value));
        } else {
            self.others.get_or_insert_default().insert(name, value);
        }
    }

    pub fn get_mut(&mut self, name: &str) -> Option<&mut V> {
        match self.first.iter_mut().find(|(known, _)| *known == name) {
            Some((_, value)) => Some(value),
            None => self.others.as_mut()?.get_mut(name),
        }
    }

    /// Sets the value of a name.
    pub fn set(&mut self, name: &'n str, value: V) {
        match self.get_mut(name) {
            Some(known) => *known = value,
            None => self.add(name, value),
        }
    }

    /// The names, in no order that counts.
    pub fn names(&self) -> impl Iterator<Item = &'n str> {
        self.first
            .iter()
            .map(|(name, _)| *name)
            .chain(self.others.iter().flat_map(|others| others.keys().copied()))
    }
}

/// Whether two names are equal. Short ones are compared without a call.
#[inline(always)]
fn same(left: &str, right: &str) -> bool {
    let (left, right) = (left.as_bytes(), right.as_bytes());
    match left.len() == right.len() && left.len() <= 16 {
        true if left.len() >= 8 => {
            left.first_chunk::<8>() == right.first_chunk() && left.last_chunk::<8>() == right.last_chunk()
        }
        true if left.len() >= 4 => {
            left.first_chunk::<4>() == right.first_chunk() && left.last_chunk::<4>() == right.last_chunk()
        }
        _ => left == right,
    }
}

/// An entry of an object. The hash of a name takes longer than to compare it with a few keys.
#[inline]
pub(crate) fn entry<'j>(map: &'j Map<String, Json>, name: &str) -> Option<&'j Json> {
    if map.len() <= FEW {
        map.iter().find(|(key, _)| same(key, name)).map(|(_, value)| value)
    } else {
        map.get(name)
    }
}

pub(crate) type Names<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value as Json};

    use super::{FEW, Few, entry, same};

    #[test]
    fn names_are_found_on_both_sides_of_the_border() {
        let names: Vec<String> = (0..FEW * 2).map(|number| format!("name{number}")).collect();
        let (mut few, mut map) = (Few::<_, 0>::default(), Map::new());
        for (at, name) in names.iter().enumerate() {
            assert_eq!(few.get(name), None);
            assert_eq!(entry(&map, name), None);
            few.add(name, at);
            map.insert(name.clone(), Json::from(at));
            for (at, name) in names[..=at].iter().enumerate() {
                assert_eq!(few.get(name), Some(&at));
                assert_eq!(entry(&map, name), Some(&Json::from(at)));
            }
        }
    }

    #[test]
    fn names_are_the_same_if_all_their_bytes_are() {
        let all: Vec<String> =
            (0..20).flat_map(|length| ["a", "b"].map(|last| "x".repeat(length) + last)).collect();
        for left in &all {
            for right in &all {
                assert_eq!(same(left, right), left == right, "{left} {right}");
            }
        }
    }
}
