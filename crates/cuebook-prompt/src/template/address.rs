//! Addresses: names of what a template can include beside files.
//!
//! | written | what it is |
//! | --- | --- |
//! | `prompt:ID` | the text of another prompt, in whatever notation that is |
//! | `prompt:ID#section` | one section of it and what is below, if it is a tree of sections |
//! | `directive:ID` | the body of a directive |
//! | `knowledge:ID` | the text of a piece of knowledge |
//!
//! The name of a file has no colon, so nothing can be both.

use super::engine::Loader;
use crate::error::{Code, Diagnostic, Hint, did_you_mean, nearest};

/// What an address names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Kind {
    Prompt,
    Directive,
    Knowledge,
}

impl Kind {
    const ALL: [Kind; 3] = [Kind::Prompt, Kind::Directive, Kind::Knowledge];

    /// What stands before the colon.
    #[doc(hidden)]
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Prompt => "prompt",
            Kind::Directive => "directive",
            Kind::Knowledge => "knowledge",
        }
    }
}

/// An address, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub struct Address<'a> {
    #[doc(hidden)]
    pub kind: Kind,
    #[doc(hidden)]
    pub id: &'a str,
    /// The path of a section.
    #[doc(hidden)]
    pub section: Option<&'a str>,
}

impl<'a> Address<'a> {
    /// Takes a name apart; `None` if it is no address.
    #[doc(hidden)]
    pub fn of(name: &'a str) -> Option<Address<'a>> {
        let (scheme, rest) = name.split_once(':')?;
        let kind = Kind::ALL.into_iter().find(|kind| kind.as_str() == scheme)?;
        let (id, section) = match rest.split_once('#') {
            Some((id, section)) if kind == Kind::Prompt => (id, Some(section)),
            _ => (rest, None),
        };
        Some(Address { kind, id, section })
    }
}

/// What is wrong with a reference whose names lead nowhere, if one of them is, or is nearly, an address.
pub(super) fn missing(names: &[String], includes: bool, loader: &dyn Loader) -> Option<Diagnostic> {
    let name = names.iter().find(|name| name.contains(':'))?;
    let scheme = name.split(':').next().unwrap_or_default();
    let Some(address) = Address::of(name) else {
        let near = nearest(scheme, Kind::ALL.map(Kind::as_str));
        let hint = did_you_mean(
            &near.iter().map(|near| format!("{near}:{}", &name[scheme.len() + 1..])).collect::<Vec<_>>(),
        );
        let hint = hint.unwrap_or_else(|| {
            "include a file, `prompt:ID`, `prompt:ID#section`, `directive:ID` or `knowledge:ID`".to_owned()
        });
        let message = format!("`{name}` is neither a file nor an address");
        return Some(Diagnostic::new(Code::MissingInclude, message).hint(hint));
    };
    let what = address.kind.as_str();
    if !includes {
        let message = format!("a {what} can only be included, not extended or imported");
        let hint = format!("write {{% include \"{name}\" %}}, or name a template file");
        return Some(Diagnostic::new(Code::MissingInclude, message).hint(hint));
    }
    let message = match address.section {
        Some(section) => format!("no prompt `{}` with a section `{section}` found", address.id),
        None => format!("no {what} `{}` found", address.id),
    };
    let hint =
        did_you_mean(&loader.suggestions(name)).map(Hint::from).unwrap_or_else(|| match address.kind {
            Kind::Prompt => Hint::run("list the prompts", "cuebook list"),
            Kind::Directive => format!("its path would be .ai/directives/{}.md", address.id).into(),
            Kind::Knowledge => format!("its path would be .ai/knowledge/{}.md", address.id).into(),
        });
    Some(Diagnostic::new(Code::MissingInclude, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_known_word_a_colon_and_an_id() {
        let of = |name| Address::of(name).map(|found| (found.kind, found.id, found.section));
        assert_eq!(of("prompt:greet"), Some((Kind::Prompt, "greet", None)));
        assert_eq!(of("prompt:guide#a/b"), Some((Kind::Prompt, "guide", Some("a/b"))));
        assert_eq!(of("directive:ops/deploy"), Some((Kind::Directive, "ops/deploy", None)));
        assert_eq!(of("knowledge:tea#x"), Some((Kind::Knowledge, "tea#x", None)));
        for name in ["partials/tone.md", "greet", "promt:greet", "Prompt:greet", ":x", ""] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
