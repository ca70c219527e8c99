//! Vocabularies in memory, and how texts are cut into their tokens.

use std::sync::OnceLock;

use regex::Regex;

use super::Vocabulary;
use super::merge::Merger;
use super::pieces::{self, Pieces};
use super::table::Table;

impl Vocabulary {
    /// The vocabulary in memory. The first call of a process unpacks it, in less than a tenth of a second.
    pub(super) fn load(self) -> &'static Loaded {
        let (packed, pattern): (&[u8], &str) = match self {
            Vocabulary::O200k => (include_bytes!("data/o200k_base.zlib"), pieces::O200K),
            Vocabulary::Cl100k => (include_bytes!("data/cl100k_base.zlib"), pieces::CL100K),
        };
        let load = || Loaded { table: Table::unpack(packed), pattern: pieces::compile(pattern) };
        self.kept().get_or_init(load)
    }

    /// Whether this process has unpacked the vocabulary. Only a count does that, and a render never counts.
    pub fn is_loaded(self) -> bool {
        self.kept().get().is_some()
    }

    fn kept(self) -> &'static OnceLock<Loaded> {
        static O200K: OnceLock<Loaded> = OnceLock::new();
        static CL100K: OnceLock<Loaded> = OnceLock::new();
        match self {
            Vocabulary::O200k => &O200K,
            Vocabulary::Cl100k => &CL100K,
        }
    }
}

/// A vocabulary that is ready to count.
pub(super) struct Loaded {
    pub(super) table: Table,
    pattern: Regex,
}

impl Loaded {
    /// Visits the tokens of a text in order.
    pub(super) fn tokens(&self, text: &str, mut visit: impl FnMut(u32)) {
        let mut merger = Merger::default();
        for piece in Pieces::of(&self.pattern, text) {
            merger.tokens(&self.table, piece.as_bytes(), &mut visit);
        }
    }
}
