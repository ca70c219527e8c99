//! YAML with places: front matter inside a file, or a file as a whole.
//!
//! The parser `granit-parser` says what stands where; what it means is decided here, because every reader of YAML has
//! its own idea of that. Ours is the core schema of YAML 1.2, with one exception:
//!
//! - `true` and `false` (also `True`, `TRUE`) are booleans; `yes`, `no`, `on`, `off` are text.
//! - `null`, `~` and nothing at all are null. Dates and times are text.
//! - Numbers are `12`, `-0.5`, `1e3`, `0x1F`, `0o17`. Digits with a zero in front (`017`) are *text*: readers of YAML give
//!   17, 15 or "017", and only the text loses nothing. So is a number that 64 bits cannot hold (`12e345`). `.inf` and `.nan`
//!   are refused, because JSON has no place for them.
//! - A key is the text that is written there, so `1: x` has the key `1`. Nothing before a colon, lists and maps as keys, and a
//!   key twice in one map are refused.
//! - Aliases are copies, also as keys. `<<` takes over the keys of other maps, which stand in its place. Tags are refused, bar
//!   those of the core schema.
//!
//! What a stranger's file can cost is bounded by [`MAX_BYTES`], [`MAX_NODES`] and [`MAX_DEPTH`]. This module knows no
//! file's fields.

mod compose;
mod fault;
mod scalar;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::json::{Located, Step};
use crate::node::Node;
use crate::source::{Place, Source};

pub use scalar::{Scalar, resolve};

/// Bytes that one YAML text may have.
pub const MAX_BYTES: usize = 1 << 20;
/// Values and keys that one YAML text may have, with those that aliases copy.
pub const MAX_NODES: usize = 50_000;
/// Levels that lists and maps may be nested.
pub const MAX_DEPTH: usize = 64;

/// A YAML text that has been understood.
#[derive(Debug, Clone)]
pub struct Document {
    root: Node,
    code: Code,
    kind: ErrorKind,
}

impl Document {
    /// Reads a part of a source as YAML. What is wrong with it gets the given code and kind, because each file has its
    /// own. Nothing at all is null.
    pub fn parse(source: &Arc<Source>, range: Range<usize>, code: Code, kind: ErrorKind) -> Result<Document> {
        let text = source.text().get(range.clone()).unwrap_or_default();
        if text.len() > MAX_BYTES {
            let message = format!("the YAML has {} bytes, but the limit is {MAX_BYTES}", text.len());
            let diagnostic = Diagnostic::new(code, message)
                .at(source.place(range.start..range.start + 1))
                .hint("move long texts into separate files");
            return Err(Error::new(kind, diagnostic));
        }
        let (root, wrong) =
            compose::compose(source, range, code).map_err(|fatal| Error::new(kind, *fatal))?;
        if wrong.is_empty() { Ok(Document { root, code, kind }) } else { Err(Error::all(kind, wrong)) }
    }

    /// What it holds, with places.
    pub fn into_root(self) -> Node {
        self.root
    }
}

impl Located for Document {
    fn place(&self, path: &[Step<'_>]) -> Place {
        self.root.find(path).1.place.clone()
    }

    fn key_place(&self, path: &[Step<'_>]) -> Place {
        let (key, node) = self.root.find(path);
        key.map_or_else(|| node.place.clone(), |key| key.place.clone())
    }

    fn opening(&self, path: &[Step<'_>]) -> Place {
        self.root.find(path).1.opening()
    }

    fn refusal(&self) -> (Code, ErrorKind) {
        (self.code, self.kind)
    }
}
