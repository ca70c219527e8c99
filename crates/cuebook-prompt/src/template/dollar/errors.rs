//! Why a body cannot be rendered, in words for its author.

use std::fmt;

use super::Template;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, did_you_mean, nearest};
use crate::source::Place;
use crate::template::jinja::errors::output_too_large;

/// Why a render ended before its end.
#[derive(Debug, Clone)]
pub enum Fault {
    /// A placeholder has no value.
    Missing {
        /// Its name.
        name: String,
        /// Where it stands in the author's source.
        place: Place,
    },
    /// A `$` is neither `$$` nor the beginning of a placeholder.
    Invalid {
        /// Its line in the text without margin and white space around it, from 1. Lines end where Python's `splitlines` ends them.
        line: usize,
        /// Its column there in characters, from 1.
        column: usize,
        /// Where it stands in the author's source.
        place: Place,
    },
    /// A value cannot be written as text.
    Unprintable {
        /// The name of its placeholder.
        name: String,
        /// Where it stands in the author's source.
        place: Place,
        /// Why.
        reason: String,
        /// Whether it is only too large.
        too_large: bool,
    },
    /// The sink takes no more.
    Full,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing { name, .. } => write!(f, "`{name}` has no value"),
            Fault::Invalid { line, column, .. } => {
                write!(f, "the `$` in line {line}, column {column} of the text does not begin a placeholder")
            }
            Fault::Unprintable { name, reason, .. } => write!(f, "cannot print `{name}`: {reason}"),
            Fault::Full => f.write_str("the rendered text is longer than the limit"),
        }
    }
}

impl std::error::Error for Fault {}

impl Template {
    /// A fault as an error. `known` are the names that have values, and `limit` is what the sink takes.
    #[cold]
    pub fn error<'n>(&self, fault: Fault, known: impl IntoIterator<Item = &'n str>, limit: usize) -> Error {
        let message = fault.to_string();
        match fault {
            Fault::Missing { name, place } => {
                let hint = did_you_mean(&nearest(&name, known)).unwrap_or_else(|| {
                    format!("give `{name}` a value, or write `$${name}` to print a dollar sign")
                });
                let diagnostic =
                    Diagnostic::new(Code::UndefinedValue, message).at(place).label("unknown name").hint(hint);
                Error::new(ErrorKind::PromptRender, diagnostic).with("placeholder", name)
            }
            Fault::Invalid { place, .. } => {
                let rest = place.source().text().get(place.range().end..).unwrap_or_default();
                let hint = if rest.starts_with('{') {
                    "write one name of ASCII letters, digits and `_` between `${` and `}`; write `$${` to print \
                         `${`"
                } else {
                    "write `$$` for a dollar sign, or `$name` or `${name}` for a value"
                };
                let diagnostic = Diagnostic::new(Code::TemplateSyntax, "`$` does not begin a placeholder")
                    .at(place)
                    .label("no name follows")
                    .hint(hint);
                Error::new(ErrorKind::PromptRender, diagnostic)
            }
            Fault::Unprintable { place, too_large, .. } => {
                let (kind, code, hint) = if too_large {
                    let hint = Hint::run(
                        "print a part of it, or raise `limits.string_bytes` in cuebook.toml, and grant it",
                        "cuebook allow",
                    );
                    (ErrorKind::Limit, Code::ValueTooLarge, hint)
                } else {
                    let hint = Hint::from("check where the value comes from: it is an error");
                    (ErrorKind::PromptRender, Code::RenderFailed, hint)
                };
                Error::new(kind, Diagnostic::new(code, message).at(place).hint(hint))
            }
            Fault::Full => output_too_large(&self.source, limit),
        }
    }
}
