//! Finds the placeholders of a body, as Python's `string.Template` does: from left to right, each `$` once.

use std::collections::HashMap;
use std::ops::Range;

/// What a render does next. Ranges are bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Writes text of the author. Of `$$` it is the second `$`, with what follows it.
    Literal(Range<usize>),
    /// Writes a value.
    Value {
        /// The number of its name.
        placeholder: usize,
        /// The placeholder with its `$` and its braces.
        range: Range<usize>,
    },
    /// A `$` here that begins nothing.
    Invalid(usize),
}

/// A text in steps.
#[derive(Debug, Default)]
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    /// The names of the placeholders, each once, in the order of the text.
    pub(super) names: Vec<String>,
}

/// Takes a text apart.
pub(super) fn scan(text: &str) -> Steps {
    let mut found = Steps::default();
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    // Where the literal began that goes on, and where to look for the next `$`.
    let (mut literal, mut at) = (0, 0);
    while let Some(ahead) = text[at..].find('$') {
        let dollar = at + ahead;
        if literal < dollar {
            found.steps.push(Step::Literal(literal..dollar));
        }
        let after = &text[dollar + 1..];
        if after.starts_with('$') {
            (literal, at) = (dollar + 1, dollar + 2);
            continue;
        }
        at = match name_after(after) {
            Some((name, length)) => {
                let range = dollar..dollar + 1 + length;
                let end = range.end;
                let placeholder = *numbers.entry(name).or_insert_with(|| {
                    found.names.push(name.to_owned());
                    found.names.len() - 1
                });
                found.steps.push(Step::Value { placeholder, range });
                end
            }
            None => {
                found.steps.push(Step::Invalid(dollar));
                dollar + 1
            }
        };
        literal = at;
    }
    if literal < text.len() {
        found.steps.push(Step::Literal(literal..text.len()));
    }
    found
}

/// The name that stands behind a `$`, bare or in braces, and how many bytes it takes with them.
fn name_after(text: &str) -> Option<(&str, usize)> {
    match text.strip_prefix('{') {
        None => identifier(text).map(|name| (name, name.len())),
        Some(inside) => {
            let name = identifier(inside)?;
            inside[name.len()..].starts_with('}').then_some((name, name.len() + 2))
        }
    }
}

/// The longest name at the beginning. Only letters of ASCII make one.
fn identifier(text: &str) -> Option<&str> {
    if text.bytes().next().is_none_or(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let length = text.bytes().take_while(|byte| *byte == b'_' || byte.is_ascii_alphanumeric()).count();
    (length > 0).then(|| &text[..length])
}
