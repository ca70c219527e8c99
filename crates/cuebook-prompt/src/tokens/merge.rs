//! Byte-pair encoding of one piece: of all neighbours that make a token together, those with the lowest number merge first.
//!
//! Neighbours wait in a heap, so a piece of `n` bytes takes `n log n` steps, whatever is in it.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::table::Table;

/// Longer pieces are cut, because places are kept in 32 bits.
const PIECE_BYTES: usize = 1 << 30;

/// Merges pieces, one after the other, in the same memory.
#[derive(Default)]
pub(super) struct Merger {
    /// For each place where a part begins, where it ends.
    ends: Vec<u32>,
    /// For each place where a part begins, where the part before it begins.
    befores: Vec<u32>,
    /// Neighbours that make a token: its number in the upper half, and where the first of them begins in the lower half.
    pairs: BinaryHeap<Reverse<u64>>,
}

impl Merger {
    /// Visits the tokens of a piece in order.
    pub(super) fn tokens(&mut self, table: &Table, piece: &[u8], mut visit: impl FnMut(u32)) {
        for piece in piece.chunks(PIECE_BYTES) {
            if let Some(id) = table.id(piece) {
                visit(id);
                continue;
            }
            self.merge(table, piece);
            let mut place = 0;
            while place < piece.len() {
                let end = self.ends[place] as usize;
                // Every byte is a token, and every merge makes one.
                table.id(&piece[place..end]).into_iter().for_each(&mut visit);
                place = end;
            }
        }
    }

    fn merge(&mut self, table: &Table, piece: &[u8]) {
        let length = piece.len() as u32;
        self.ends.clear();
        self.ends.extend(1..=length);
        self.befores.clear();
        self.befores.extend((0..=length).map(|place| place.saturating_sub(1)));
        for place in 0..length.saturating_sub(1) {
            self.wait(table, piece, place..place + 2);
        }
        while let Some(Reverse(pair)) = self.pairs.pop() {
            let (id, start) = ((pair >> 32) as u32, pair as u32);
            let end = start + table.token(id).len() as u32;
            let middle = self.ends[start as usize];
            // A neighbour may have merged with another one since: the first part is then gone, or the second ends elsewhere.
            if middle == GONE || middle >= end || self.ends[middle as usize] != end {
                continue;
            }
            self.ends[start as usize] = end;
            self.ends[middle as usize] = GONE;
            self.befores[end as usize] = start;
            if start > 0 {
                self.wait(table, piece, self.befores[start as usize]..end);
            }
            if end < length {
                self.wait(table, piece, start..self.ends[end as usize]);
            }
        }
    }

    /// Lets two neighbours wait if they make a token.
    fn wait(&mut self, table: &Table, piece: &[u8], both: Range<u32>) {
        if let Some(id) = table.id(&piece[both.start as usize..both.end as usize]) {
            self.pairs.push(Reverse(u64::from(id) << 32 | u64::from(both.start)));
        }
    }
}

/// The end of a part that merged with the one before it. No part ends at the beginning.
const GONE: u32 = 0;
