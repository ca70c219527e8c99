//! The helpers: those of Handlebars, and those of dotprompt.

use std::ops::Range;

use super::errors;
use super::tree::{Argument, Call, Expression};
use crate::error::Result;
use crate::source::Source;
use std::sync::Arc;

/// What a template can call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Helper {
    If,
    Unless,
    Each,
    With,
    IfEquals,
    UnlessEquals,
    Lookup,
    Log,
    Json,
    Role,
    History,
    Section,
    Media,
}

/// Name, helper, how many values it takes, the names of its arguments (`None`: any), and whether it is a block.
type Row = (&'static str, Helper, usize, Option<&'static [&'static str]>, bool);

const TABLE: [Row; 13] = [
    ("if", Helper::If, 1, Some(&["includeZero"]), true),
    ("unless", Helper::Unless, 1, Some(&["includeZero"]), true),
    ("each", Helper::Each, 1, Some(&[]), true),
    ("with", Helper::With, 1, Some(&[]), true),
    ("ifEquals", Helper::IfEquals, 2, Some(&[]), true),
    ("unlessEquals", Helper::UnlessEquals, 2, Some(&[]), true),
    ("lookup", Helper::Lookup, 2, Some(&[]), false),
    ("log", Helper::Log, usize::MAX, None, false),
    ("json", Helper::Json, 1, Some(&["indent"]), false),
    ("role", Helper::Role, 1, None, false),
    ("history", Helper::History, 0, Some(&[]), false),
    ("section", Helper::Section, 1, Some(&[]), false),
    ("media", Helper::Media, 0, Some(&["url", "contentType"]), false),
];

/// The names of roles, as dotprompt writes them and as messages have them.
pub(super) const ROLES: [(&str, &str); 6] = [
    ("system", "system"),
    ("user", "user"),
    ("model", "assistant"),
    ("assistant", "assistant"),
    ("tool", "tool"),
    ("developer", "developer"),
];

impl Helper {
    /// The helper of this name.
    pub(super) fn named(name: &str) -> Option<Helper> {
        TABLE.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The names of all helpers.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        TABLE.iter().map(|row| row.0)
    }

    fn row(self) -> &'static Row {
        // Every helper has a row.
        TABLE.iter().find(|row| row.1 == self).unwrap_or(&TABLE[0])
    }

    /// Its name.
    pub(super) fn name(self) -> &'static str {
        self.row().0
    }

    /// Whether it is written as a block.
    pub(super) fn is_block(self) -> bool {
        self.row().4
    }

    /// Whether it has a value, which another one can take.
    pub(super) fn has_value(self) -> bool {
        matches!(self, Helper::Lookup | Helper::Json)
    }
}

/// A call, if the helper takes these arguments.
pub(super) fn call(
    source: &Arc<Source>,
    helper: Helper,
    params: Vec<Expression>,
    hash: Vec<Argument>,
    range: Range<usize>,
) -> Result<Call> {
    let (name, _, wanted, known, _) = *helper.row();
    if wanted != usize::MAX && params.len() != wanted {
        return Err(errors::wrong_count(source, name, wanted, params.len(), range));
    }
    if let Some(known) = known
        && let Some(wrong) = hash.iter().find(|argument| !known.contains(&&*argument.name))
    {
        return Err(errors::unknown_argument(source, name, &wrong.name, known, wrong.range.clone()));
    }
    let call = Call { helper, params, hash, range: range.clone() };
    if helper == Helper::Media && call.argument("url").is_none() {
        return Err(errors::media_without_url(source, range));
    }
    if helper == Helper::Role
        && let Some(Expression::Text(at, _)) = call.params.first()
    {
        let written = &source.text()[at.clone()];
        if ROLES.iter().all(|(role, _)| *role != written) {
            return Err(errors::unknown_role(source, written, at.clone()));
        }
    }
    Ok(call)
}
