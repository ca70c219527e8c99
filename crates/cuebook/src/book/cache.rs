//! Compiled prompts that a book keeps, and when it looks whether they are still right.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use indexmap::{Equivalent, IndexMap};

use crate::library::Proof;
use crate::prepared::Prepared;

/// Compiled prompts that a book keeps. The oldest go first.
const MAX_PREPARED: usize = 1024;

/// When a book looks whether the files of a prompt have changed.
///
/// ```
/// use std::time::Duration;
///
/// use cuebook::{Book, Freshness};
///
/// let book = Book::open(".").with_freshness(Freshness::AtMostEvery(Duration::from_secs(1)));
/// assert!(book.prompt("general_system").var("agent_name", "Rumi").render().is_ok());
/// // Now, and not in a second:
/// book.refresh();
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// Before every render. A saved file counts at the next render.
    #[default]
    EveryRender,
    /// Before a render, if the last look is at least so long ago.
    AtMostEvery(Duration),
    /// Only after [`Book::refresh`](crate::Book::refresh). For programs whose prompts do not change while they run.
    Manual,
}

/// What one compiled prompt is good for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    kind: NameKind,
    pub(super) wanted: String,
    /// The language that the caller asked for; `None` for the project's.
    pub(super) language: Option<String>,
    pub(super) strict: bool,
}

/// What a key names. An id is never a path, so the two have different keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NameKind {
    Id,
    Directive,
    File,
}

/// A key that owns nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyRef<'w> {
    pub(super) kind: NameKind,
    pub(super) wanted: &'w str,
    pub(super) language: Option<&'w str>,
    pub(super) strict: bool,
}

impl Hash for KeyRef<'_> {
    /// As [`Key`] hashes.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.wanted.hash(state);
        self.language.hash(state);
        self.strict.hash(state);
    }
}

impl Equivalent<Key> for KeyRef<'_> {
    fn equivalent(&self, key: &Key) -> bool {
        self.kind == key.kind
            && self.wanted == key.wanted
            && self.language == key.language.as_deref()
            && self.strict == key.strict
    }
}

impl KeyRef<'_> {
    pub(super) fn to_key(self) -> Key {
        Key {
            kind: self.kind,
            wanted: self.wanted.to_owned(),
            language: self.language.map(str::to_owned),
            strict: self.strict,
        }
    }
}

/// A compiled prompt, and when it was last compared with its files.
#[derive(Debug, Clone)]
pub(super) struct CachedPrompt {
    pub(super) prepared: Arc<Prepared>,
    /// Few looks that prove that it is right.
    pub(super) proof: Option<Arc<Proof>>,
    /// When it was looked at, if the book counts the time.
    pub(super) looked: Option<Instant>,
    /// How often the book had been refreshed then.
    pub(super) refreshed: u64,
}

impl CachedPrompt {
    /// Whether it counts without another look.
    pub(super) fn is_fresh(&self, freshness: Freshness, refreshed: u64) -> bool {
        self.refreshed == refreshed
            && match freshness {
                Freshness::EveryRender => false,
                Freshness::AtMostEvery(time) => self.looked.is_some_and(|looked| looked.elapsed() < time),
                Freshness::Manual => true,
            }
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Cache(IndexMap<Key, CachedPrompt>);

impl Cache {
    pub(super) fn get(&self, wanted: &KeyRef<'_>) -> Option<&CachedPrompt> {
        self.0.get(wanted)
    }

    pub(super) fn keep(&mut self, wanted: &KeyRef<'_>, kept: CachedPrompt) {
        if let Some(known) = self.0.get_mut(wanted) {
            *known = kept;
            return;
        }
        if self.0.len() >= MAX_PREPARED {
            self.0.shift_remove_index(0);
        }
        self.0.insert(wanted.to_key(), kept);
    }
}
