//! A template that was read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::ast::Tree;
use crate::error::{Error, ErrorKind};
use crate::parser::{Grammar, Parsed, parse};
use crate::resolver::resolve;

/// A template that was read. It can be rendered from several threads at once.
#[derive(Debug, Clone)]
pub struct Template {
    name: Arc<str>,
    text: String,
    pub(crate) tree: Tree,
    pub(crate) sizes: Sizes,
}

/// How many bytes, pieces and origins the last render had, so that the next one asks for its memory once.
#[derive(Debug, Default)]
pub(crate) struct Sizes([AtomicU32; 3]);

/// What is asked for at most without knowing that it is needed.
const MAX_EXPECTED: u32 = 64 * 1024;

impl Sizes {
    pub fn expected(&self) -> [usize; 3] {
        self.0.each_ref().map(|size| size.load(Ordering::Relaxed) as usize)
    }

    /// Notes a render, with some room for the next one. What still fits is left alone: threads that render the same template would
    /// take the place in memory from each other.
    pub fn note(&self, sizes: [usize; 3]) {
        for (known, size) in self.0.iter().zip(sizes) {
            let room = u32::try_from(size + size / 8 + 1).unwrap_or(u32::MAX).min(MAX_EXPECTED);
            let before = known.load(Ordering::Relaxed);
            if (before as usize) < size && before < room || before / 2 > room {
                known.store(room, Ordering::Relaxed);
            }
        }
    }
}

impl Clone for Sizes {
    fn clone(&self) -> Sizes {
        Sizes(self.0.each_ref().map(|size| size.load(Ordering::Relaxed).into()))
    }
}

impl Template {
    pub(crate) fn read(grammar: Grammar<'_>, name: &str, text: &str) -> (Template, Vec<Error>) {
        if text.len() > u32::MAX as usize / 2 {
            let error = Error::new(ErrorKind::Limit, "a template has at most 2 GiB").inside(0, name);
            return (
                Template {
                    name: name.into(),
                    text: String::new(),
                    tree: Tree::default(),
                    sizes: Sizes::default(),
                },
                vec![error],
            );
        }
        let text = if memchr::memchr(b'\r', text.as_bytes()).is_some() {
            text.replace("\r\n", "\n").replace('\r', "\n")
        } else {
            text.to_owned()
        };
        let Parsed { mut tree, mut errors, special } = parse(&text, grammar);
        resolve(&text, &mut tree, special, &mut errors);
        let errors = errors.into_iter().map(|error| error.inside(0, name)).collect();
        (Template { name: name.into(), text, tree, sizes: Sizes::default() }, errors)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn shared_name(&self) -> Arc<str> {
        self.name.clone()
    }

    /// The tree, for programs that analyse templates.
    #[doc(hidden)]
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The text, with line ends as `\n`.
    pub fn text(&self) -> &str {
        &self.text
    }
}
