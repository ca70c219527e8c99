//! A template that was read.

use crate::ast::Tree;
use crate::error::{Error, ErrorKind};
use crate::parser::{Grammar, Parsed, parse};
use crate::resolver::resolve;

/// A template that was read. It can be rendered from several threads at once.
#[derive(Debug, Clone)]
pub struct Template {
    name: String,
    text: String,
    pub(crate) tree: Tree,
}

impl Template {
    pub(crate) fn read(grammar: Grammar<'_>, name: &str, text: &str) -> (Template, Vec<Error>) {
        if text.len() > u32::MAX as usize / 2 {
            let error = Error::new(ErrorKind::Limit, "a template has at most 2 GiB").inside(0, name);
            return (
                Template { name: name.to_owned(), text: String::new(), tree: Tree::default() },
                vec![error],
            );
        }
        let text = if text.contains('\r') {
            text.replace("\r\n", "\n").replace('\r', "\n")
        } else {
            text.to_owned()
        };
        let Parsed { mut tree, mut errors } = parse(&text, grammar);
        resolve(&mut tree, &mut errors);
        let errors = errors.into_iter().map(|error| error.inside(0, name)).collect();
        (Template { name: name.to_owned(), text, tree }, errors)
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
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
