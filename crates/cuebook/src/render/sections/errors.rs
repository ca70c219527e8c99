//! What sections say when something is wrong with them. The sentences are those of WINK where it has one, and stand alone in the
//! message, so that programs which look for them find them; why, and the way out, stand beside it.

use super::section::Section;
use super::tree::Node;
use crate::error::{Code, Diagnostic, Error, ErrorKind};

fn about(section: &Section, code: Code, message: String) -> Diagnostic {
    let mut diagnostic = Diagnostic::new(code, message);
    diagnostic.place.clone_from(&section.place);
    diagnostic
}

/// A section is not as it must be: found when the tree is built.
#[cold]
pub(super) fn invalid(section: &Section, path: &[String], message: impl Into<String>) -> Error {
    let of = section.params.as_ref().map(|params| &params.name);
    Error::new(ErrorKind::PromptValidation, about(section, Code::BadSection, message.into()))
        .with("section_path", path)
        .with("dataclass_type", of)
        .with("placeholder", ())
}

/// A section failed while it was rendered.
#[cold]
pub(super) fn failed(node: &Node, code: Code, message: impl Into<String>) -> Error {
    let of = node.section.params.as_ref().map(|params| &params.name);
    Error::new(ErrorKind::PromptRender, about(&node.section, code, message.into()))
        .with("section_path", &node.path)
        .with("dataclass_type", of)
        .with("placeholder", ())
}

/// The same error with something to do about it.
pub(super) fn hinted(error: Error, hint: Option<String>) -> Error {
    let diagnostic = error.diagnostic().clone().hint_opt(hint);
    error.replaced(diagnostic)
}

/// The same error, which says what was behind it.
pub(super) fn caused(error: Error, why: &str) -> Error {
    hinted(error, Some(why.to_owned())).with("cause", why)
}

/// An error of an engine, with the section whose text it ran.
pub(super) fn within(error: Error, node: &Node) -> Error {
    error.with("section_path", &node.path)
}
