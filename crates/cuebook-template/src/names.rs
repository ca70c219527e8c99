//! Maps and sets by names and numbers of a template, with a hash that is quick for short keys.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

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

pub(crate) type Names<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;
pub(crate) type Numbers<K> = HashSet<K, BuildHasherDefault<Quick>>;
