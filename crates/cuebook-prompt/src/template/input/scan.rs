//! Finds the placeholders of a text, from left to right, each brace once.

use std::ops::Range;

/// What a render does next. Ranges are bytes of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Writes text of the author.
    Literal(Range<usize>),
    /// Writes a value.
    Value {
        kind: Kind,
        key: Range<usize>,
        fallback: Fallback,
        /// The placeholder with its braces.
        range: Range<usize>,
    },
    /// Writes what another item says.
    Include {
        name: Range<usize>,
        /// The tag with its braces.
        range: Range<usize>,
    },
}

/// Where a value comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Input,
    Env,
}

/// What shows where there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fallback {
    /// The placeholder as it is written.
    Keep,
    /// Text of the author; empty for an input that is optional.
    Text(Range<usize>),
}

/// Takes a part of a text apart.
pub(super) fn scan(text: &str, range: Range<usize>) -> Vec<Step> {
    let mut steps = Vec::new();
    let end = range.end;
    // Where the literal began that goes on, and where to look for the next brace.
    let (mut literal, mut at) = (range.start, range.start);
    // Behind the last `}` nothing can be closed: there is nothing left to find.
    let last = text[range.clone()].rfind('}').map_or(range.start, |last| range.start + last + 1);
    while let Some(ahead) = text[at..last].find('{') {
        let brace = at + ahead;
        at = brace + 1;
        let dollar =
            brace.checked_sub(1).filter(|dollar| *dollar >= literal && text.as_bytes()[*dollar] == b'$');
        let Some((start, step, after)) = placeholder(&text[..end], brace, dollar) else { continue };
        if literal < start {
            steps.push(Step::Literal(literal..start));
        }
        steps.push(step);
        (literal, at) = (after, after);
    }
    if literal < end {
        steps.push(Step::Literal(literal..end));
    }
    steps
}

/// The placeholder whose brace stands here: where it begins, what it is, and where it ends.
fn placeholder(text: &str, brace: usize, dollar: Option<usize>) -> Option<(usize, Step, usize)> {
    let inside = &text[brace + 1..];
    if let Some(rest) = inside.strip_prefix("inputs.") {
        let start = dollar?;
        let key = word(rest, text.len() - rest.len())?;
        let after = text[key.end..].starts_with('}').then_some(key.end + 1)?;
        let step = Step::Value { kind: Kind::Input, key, fallback: Fallback::Keep, range: start..after };
        return Some((start, step, after));
    }
    if let Some(rest) = inside.strip_prefix("include:") {
        let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':');
        let length = rest.find(|c: char| !is_name(c))?;
        let start = text.len() - rest.len();
        let name = start..start + length;
        let is_tag = length > 0 && rest[length..].starts_with('}');
        let range = brace..name.end + 1;
        return is_tag.then(|| (brace, Step::Include { name, range: range.clone() }, range.end));
    }
    let (kind, rest) = match (inside.strip_prefix("input:"), inside.strip_prefix("env:")) {
        (Some(rest), _) => (Kind::Input, rest),
        (None, Some(rest)) => (Kind::Env, rest),
        (None, None) => return None,
    };
    let key = word(rest, text.len() - rest.len())?;
    let (fallback, after) = match (text.as_bytes().get(key.end)?, kind) {
        (b'}', _) => (Fallback::Keep, key.end + 1),
        (b'?', Kind::Input) if text.as_bytes().get(key.end + 1) == Some(&b'}') => {
            (Fallback::Text(key.end + 1..key.end + 1), key.end + 2)
        }
        (b':', _) | (b'|', Kind::Input) => {
            let start = key.end + 1;
            let end = start + text[start..].find('}')?;
            (Fallback::Text(start..end), end + 1)
        }
        _ => return None,
    };
    Some((brace, Step::Value { kind, key, fallback, range: brace..after }, after))
}

/// The word that a text begins with, by where it stands.
fn word(text: &str, start: usize) -> Option<Range<usize>> {
    let length = text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len());
    (length > 0).then_some(start..start + length)
}
