//! Counts, remembered by content.
//!
//! Counting costs hundreds of times as much as finding a count again. What is remembered is kept with the text itself, so
//! a text can never be given the count of another one; a very long text is kept as its SHA-256. Memory is bounded: the
//! texts that are unused for a while are forgotten.

use std::collections::HashMap;
use std::mem;
use std::sync::{PoisonError, RwLock};

use foldhash::fast::RandomState;

use super::{Tokenizer, Vocabulary, boundary};
use crate::sha256::Sha256;

/// Texts of more bytes than this are kept as a digest: the hash is then cheap beside the memory.
const LONGEST: usize = 16 * 1024;
/// About what an entry takes besides its key.
const OVERHEAD: usize = 48;
const ENTRIES: usize = 64 * 1024;
const BYTES: usize = 16 * 1024 * 1024;

/// Counts tokens and remembers what it counted. One counter serves any number of threads and models.
///
/// ```
/// use cuebook::tokens::{Counter, Tokenizer};
///
/// let (counter, tokenizer) = (Counter::new(), Tokenizer::for_model("gpt-4o"));
/// let sections = ["# Style\n\nBe brief.", "# Tools\n\nUse the search."];
/// assert_eq!(
///     counter.count_joined(&tokenizer, &sections, "\n\n"),
///     tokenizer.count("# Style\n\nBe brief.\n\n# Tools\n\nUse the search."),
/// );
/// ```
#[derive(Debug)]
pub struct Counter {
    caches: [RwLock<CountCache>; Vocabulary::ALL.len()],
    entries: usize,
    bytes: usize,
}

impl Default for Counter {
    fn default() -> Counter {
        Counter::new()
    }
}

impl Counter {
    /// An empty counter with room for a few large libraries.
    pub fn new() -> Counter {
        Counter::with_limits(ENTRIES, BYTES)
    }

    /// An empty counter that remembers at most so many texts, in at most so much memory, for each vocabulary.
    pub fn with_limits(entries: usize, bytes: usize) -> Counter {
        Counter { caches: Default::default(), entries, bytes }
    }

    /// How many tokens a text has.
    pub fn count(&self, tokenizer: &Tokenizer, text: &str) -> usize {
        let digest: [u8; DIGEST];
        let key = if text.len() > LONGEST {
            digest = digest_of(text);
            &digest[..]
        } else {
            text.as_bytes()
        };
        let count_cache = &self.caches[tokenizer.vocabulary() as usize];
        let (found, young) = count_cache.read().unwrap_or_else(PoisonError::into_inner).find(key);
        if let (Some(count), true) = (found, young) {
            return count;
        }
        // Two threads may count the same text at the same time; they agree.
        let count = found.unwrap_or_else(|| tokenizer.count(text));
        count_cache.write().unwrap_or_else(PoisonError::into_inner).keep(
            key,
            count,
            self.entries,
            self.bytes,
        );
        count
    }

    /// How many tokens each of several texts has. What is remembered is looked up in one go.
    pub fn count_each<'t>(
        &self,
        tokenizer: &Tokenizer,
        texts: impl IntoIterator<Item = &'t str>,
    ) -> Vec<usize> {
        let texts = texts.into_iter();
        let mut counts = Vec::with_capacity(texts.size_hint().0);
        let mut missed = Vec::new();
        let count_cache = self.caches[tokenizer.vocabulary() as usize].read();
        let count_cache = count_cache.unwrap_or_else(PoisonError::into_inner);
        for text in texts {
            // Long texts have another key, and old ones become young.
            let found = count_cache.young.counts.get(text.as_bytes());
            if found.is_none() {
                missed.push((counts.len(), text));
            }
            counts.push(found.copied().unwrap_or_default());
        }
        drop(count_cache);
        for (at, text) in missed {
            counts[at] = self.count(tokenizer, text);
        }
        counts
    }

    /// How many tokens parts have when they are joined, exactly. Where counts certainly add up (see
    /// [`splits_between`](super::splits_between)) each part is counted on its own together with the separator after it, so
    /// a change of one part leaves the counts of the others in place.
    pub fn count_joined(&self, tokenizer: &Tokenizer, parts: &[&str], separator: &str) -> usize {
        let mut total = 0;
        boundary::chunks(parts, separator, |chunk| total += self.count(tokenizer, chunk));
        total
    }
}

/// A byte that no text has, and a SHA-256.
const DIGEST: usize = 33;

fn digest_of(text: &str) -> [u8; DIGEST] {
    let mut key = [0xFF; DIGEST];
    key[1..].copy_from_slice(&Sha256::digest(text));
    key
}

/// What is remembered for one vocabulary, in two generations. When the young one is full it becomes the old one, and what
/// was old is forgotten, except what was used meanwhile: that is young again.
#[derive(Debug, Default)]
struct CountCache {
    young: Generation,
    old: Generation,
}

#[derive(Debug, Default)]
struct Generation {
    counts: HashMap<Box<[u8]>, usize, RandomState>,
    bytes: usize,
}

impl CountCache {
    /// The count of a text, and whether it is young.
    fn find(&self, key: &[u8]) -> (Option<usize>, bool) {
        match self.young.counts.get(key) {
            Some(count) => (Some(*count), true),
            None => (self.old.counts.get(key).copied(), false),
        }
    }

    fn keep(&mut self, key: &[u8], count: usize, entries: usize, bytes: usize) {
        let cost = key.len() + OVERHEAD;
        let (entries, bytes) = (entries / 2, bytes / 2);
        if entries == 0 || cost > bytes || self.young.counts.contains_key(key) {
            return;
        }
        let kept = self.old.take(key);
        if self.young.counts.len() >= entries || self.young.bytes + cost > bytes {
            self.old = mem::take(&mut self.young);
        }
        self.young.bytes += cost;
        self.young.counts.insert(kept.unwrap_or_else(|| key.into()), count);
    }
}

impl Generation {
    fn take(&mut self, key: &[u8]) -> Option<Box<[u8]>> {
        let (key, _) = self.counts.remove_entry(key)?;
        self.bytes -= key.len() + OVERHEAD;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn remembered(counter: &Counter) -> (usize, usize) {
        let mut sums = (0, 0);
        for count_cache in &counter.caches {
            let count_cache = count_cache.read().unwrap();
            for generation in [&count_cache.young, &count_cache.old] {
                let bytes: usize = generation.counts.keys().map(|key| key.len() + OVERHEAD).sum();
                assert_eq!(bytes, generation.bytes, "the account of bytes is right");
                sums = (sums.0 + generation.counts.len(), sums.1 + bytes);
            }
        }
        sums
    }

    #[test]
    fn a_text_is_counted_once() {
        let (counter, tokenizer) = (Counter::new(), Tokenizer::for_model("gpt-4o"));
        let long = "every word of it ".repeat(2_000);
        for text in ["", "a", "Hello, world!", &long] {
            assert_eq!(counter.count(&tokenizer, text), tokenizer.count(text));
            let before = remembered(&counter);
            assert_eq!(counter.count(&tokenizer, text), tokenizer.count(text));
            assert_eq!(remembered(&counter), before);
        }
        assert_eq!(remembered(&counter).0, 4);
    }

    #[test]
    fn a_count_that_is_remembered_is_not_counted_again() {
        let (counter, tokenizer) = (Counter::new(), Tokenizer::for_model("gpt-4o"));
        let long = "x".repeat(LONGEST + 1);
        // Wrong numbers on purpose: only a memory can give them back.
        for (key, count) in [(&b"text"[..], 77), (&digest_of(&long)[..], 88)] {
            counter.caches[0].write().unwrap().keep(key, count, 100, 100_000);
        }
        assert_eq!(counter.count(&tokenizer, "text"), 77);
        assert_eq!(counter.count(&tokenizer, &long), 88);
    }

    #[test]
    fn several_texts_are_counted_as_each_of_them() {
        let tokenizer = Tokenizer::for_model("gpt-4o");
        let long = "every word of it ".repeat(2_000);
        let texts = ["one", "two words", "", &long, "one"];
        let expected = texts.map(|text| tokenizer.count(text));
        for counter in [Counter::new(), Counter::with_limits(2, 1_000), Counter::with_limits(0, 0)] {
            for _ in 0..2 {
                assert_eq!(counter.count_each(&tokenizer, texts), expected);
            }
        }
    }

    #[test]
    fn vocabularies_do_not_share_counts() {
        let counter = Counter::new();
        let text = "数えられる言葉は、語彙によって違います。";
        let counts = Vocabulary::ALL.map(|vocabulary| {
            let tokenizer = Tokenizer::of(vocabulary);
            (counter.count(&tokenizer, text), tokenizer.count(text))
        });
        assert_ne!(counts[0].0, counts[1].0);
        assert!(counts.iter().all(|(remembered, counted)| remembered == counted));
    }

    #[test]
    fn memory_is_bounded_by_entries_and_by_bytes() {
        let tokenizer = Tokenizer::for_model("gpt-4o");
        for (entries, bytes) in [(10, 1_000_000), (1_000, 2_000), (0, 1_000), (1, 1_000), (1_000, 0)] {
            let counter = Counter::with_limits(entries, bytes);
            for number in 0..200 {
                let text = format!("section {number}");
                assert_eq!(counter.count(&tokenizer, &text), tokenizer.count(&text));
                let held = remembered(&counter);
                assert!(held.0 <= entries && held.1 <= bytes, "{held:?} of {entries}, {bytes}");
            }
        }
    }

    #[test]
    fn recently_used_counts_stay_cached() {
        let (counter, tokenizer) = (Counter::with_limits(20, 1_000_000), Tokenizer::for_model("gpt-4o"));
        counter.caches[0].write().unwrap().keep(b"kept", 77, 20, 1_000_000);
        counter.caches[0].write().unwrap().keep(b"lost", 78, 20, 1_000_000);
        for number in 0..100 {
            counter.count(&tokenizer, &format!("section {number}"));
            assert_eq!(counter.count(&tokenizer, "kept"), 77);
        }
        assert_eq!(counter.count(&tokenizer, "lost"), tokenizer.count("lost"));
    }

    #[test]
    fn parts_are_counted_as_one_text_and_remembered_apart() {
        let (counter, tokenizer) = (Counter::new(), Tokenizer::for_model("gpt-4o"));
        let sections: Vec<String> = (0..50).map(|n| format!("## {n}. Title\n\nBody of {n}.")).collect();
        let mut parts: Vec<&str> = sections.iter().map(String::as_str).collect();
        let whole = parts.join("\n\n");
        assert_eq!(counter.count_joined(&tokenizer, &parts, "\n\n"), tokenizer.count(&whole));
        assert_eq!(remembered(&counter).0, 50);
        parts.remove(10);
        assert_eq!(counter.count_joined(&tokenizer, &parts, "\n\n"), tokenizer.count(&parts.join("\n\n")));
        assert_eq!(remembered(&counter).0, 50);
    }

    #[test]
    fn threads_share_a_counter() {
        let (counter, tokenizer) = (Counter::with_limits(40, 10_000), Tokenizer::for_model("gpt-4o"));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for number in 0..300 {
                        let text = format!("part {}", number % 60);
                        assert_eq!(counter.count(&tokenizer, &text), tokenizer.count(&text));
                    }
                });
            }
        });
    }
}
