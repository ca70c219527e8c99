//! A Jinja2 template as words and names, if it is no more.

use std::ops::Range;

use cuebook_template::ast::{Expr, ExprKind, Statement, StatementKind};

use super::{Settings, fence};
use crate::template::parts::{MissingValue, NotPlain, TemplatePart};

/// Names that mean something to the engine itself.
const OWN: [&str; 13] = [
    "range",
    "dict",
    "lipsum",
    "cycler",
    "joiner",
    "namespace",
    "loop",
    "self",
    "super",
    "caller",
    "system",
    "session",
    "debug",
];

/// What a template writes, and where its comments stand.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct TemplateParts {
    /// The pieces, in order.
    pub parts: Vec<TemplatePart>,
    /// Where comments are.
    pub comments: Vec<Range<usize>>,
}

/// Takes a template apart. A template that cannot be read is beyond words, too; reading it says why.
pub fn parts(text: &str, settings: &Settings) -> Result<TemplateParts, NotPlain> {
    let unreadable = || NotPlain { range: 0..0, what: "unreadable code".to_owned() };
    let (template, errors) = settings.environment().read("", text);
    if !errors.iter().all(|error| error.kind() == cuebook_template::ErrorKind::Unknown) {
        return Err(unreadable());
    }
    let reader = PartsReader { text: template.text() };
    let parts = template.tree().body.statements.iter().map(|statement| reader.statement(statement));
    let parts: Vec<TemplatePart> = parts.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let comments = comments(text, &parts);
    Ok(TemplateParts { parts, comments })
}

/// Whether a name can be read by a template as a variable of the prompt.
pub fn is_name(name: &str) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "none", "True", "False", "None", "not", "and", "or", "in"];
    const MORE: [&str; 4] = ["is", "if", "else", "elif"];
    let mut letters = name.bytes();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
        && ![&OWN[..], &WORDS, &MORE].concat().contains(&name)
}

struct PartsReader<'s> {
    text: &'s str,
}

impl PartsReader<'_> {
    fn statement(&self, statement: &Statement) -> Result<Option<TemplatePart>, NotPlain> {
        let start = statement.range.start as usize;
        match &statement.kind {
            StatementKind::Data => {
                let range = start..statement.range.end as usize;
                let text = self.data(statement).to_owned();
                Ok((!text.is_empty()).then_some(TemplatePart::Text { text, range }))
            }
            StatementKind::Emit(value) if self.text[start..].starts_with("{{") => {
                self.value(value, start..statement.range.end as usize).map(Some)
            }
            StatementKind::If(branches, otherwise) => {
                let [(test, body)] = branches.as_slice() else {
                    return Err(NotPlain { range: self.tag(start), what: "a condition".to_owned() });
                };
                let range = self.tag(start);
                let given = match &test.kind {
                    ExprKind::Test(value, named) if named.name == "defined" => name(value),
                    _ => None,
                };
                let shown = match body.as_slice() {
                    [Statement { kind: StatementKind::Emit(value), .. }] => name(value),
                    _ => None,
                };
                let otherwise = match otherwise.as_slice() {
                    [only] if only.kind == StatementKind::Data => Some(self.data(only)),
                    _ => None,
                };
                match (given, shown, otherwise) {
                    (Some(given), Some(shown), Some(otherwise)) if given == shown => {
                        Ok(Some(TemplatePart::Value {
                            name: given.to_owned(),
                            absent: MissingValue::Shows(otherwise.to_owned()),
                            escaped: false,
                            range,
                        }))
                    }
                    _ => Err(NotPlain { range, what: "a condition".to_owned() }),
                }
            }
            other => {
                let what = match other {
                    StatementKind::For(_) => "a loop",
                    StatementKind::Set(..) | StatementKind::SetBlock(_) => "`{% set %}`",
                    StatementKind::Include(_) => "an `{% include %}`",
                    StatementKind::Extends(_) => "`{% extends %}`",
                    StatementKind::Import(_) => "an `{% import %}`",
                    StatementKind::Macro(..) => "a macro",
                    StatementKind::Block(_) => "a block",
                    StatementKind::FilterBlock(node) if is_fence(&node.0) => "a `{% fence %}` block",
                    StatementKind::FilterBlock(_) => "a `{% filter %}` block",
                    StatementKind::With(_) => "`{% with %}`",
                    StatementKind::CallBlock(..) => "a `{% call %}` block",
                    _ => "a statement",
                };
                Err(NotPlain { range: self.tag(start), what: what.to_owned() })
            }
        }
    }

    fn data(&self, statement: &Statement) -> &str {
        statement.range.of(self.text)
    }

    fn value(&self, expression: &Expr, range: Range<usize>) -> Result<TemplatePart, NotPlain> {
        let not_plain = |what: &str| Err(NotPlain { range: range.clone(), what: what.to_owned() });
        match &expression.kind {
            ExprKind::Name(variable) if OWN.contains(&variable.name.as_str()) => {
                not_plain("a name of the engine")
            }
            ExprKind::Name(variable) => {
                let name = variable.name.to_string();
                Ok(TemplatePart::Value {
                    name,
                    absent: MissingValue::Nothing,
                    escaped: false,
                    range: range.clone(),
                })
            }
            ExprKind::Text(text, _) => {
                Ok(TemplatePart::Text { text: text.to_string(), range: range.clone() })
            }
            ExprKind::None | ExprKind::Bool(_) | ExprKind::Int(_) | ExprKind::Big(_) | ExprKind::Float(_) => {
                not_plain("a constant that is not text")
            }
            ExprKind::Filter(value, named) if matches!(named.name.as_str(), "default" | "d") => {
                let given = &named.arguments;
                match (value.as_deref().and_then(name), given.positional.as_slice()) {
                    (Some(name), [Expr { kind: ExprKind::Text(text, _), .. }]) if given.named.is_empty() => {
                        let absent = MissingValue::Shows(text.to_string());
                        Ok(TemplatePart::Value {
                            name: name.to_owned(),
                            absent,
                            escaped: false,
                            range: range.clone(),
                        })
                    }
                    _ => not_plain("a filter"),
                }
            }
            ExprKind::Filter(..) => not_plain("a filter"),
            ExprKind::Attribute(..) | ExprKind::Item(..) => not_plain("a part of a value"),
            ExprKind::Call(..) => not_plain("a call"),
            _ => not_plain("an expression"),
        }
    }

    /// The tag that begins at an offset.
    fn tag(&self, start: usize) -> Range<usize> {
        let end = self.text.get(start..).and_then(|rest| rest.find("%}"));
        start..end.map_or(self.text.len(), |length| start + length + 2)
    }
}

fn is_fence(filter: &Expr) -> bool {
    matches!(&filter.kind, ExprKind::Filter(None, named) if named.name == fence::NAME)
}

/// The name that an expression is, if it is one.
fn name(expression: &Expr) -> Option<&str> {
    match &expression.kind {
        ExprKind::Name(variable) if !OWN.contains(&variable.name.as_str()) => Some(&variable.name),
        _ => None,
    }
}

/// Comments: what begins as one and is no text.
fn comments(text: &str, parts: &[TemplatePart]) -> Vec<Range<usize>> {
    let is_text = |at: usize| {
        parts.iter().any(|bit| matches!(bit, TemplatePart::Text { range, .. } if range.contains(&at)))
    };
    let mut found: Vec<Range<usize>> = Vec::new();
    for (at, _) in text.match_indices("{#") {
        if is_text(at) || found.last().is_some_and(|last| last.end > at) {
            continue;
        }
        if let Some(length) = text[at..].find("#}") {
            found.push(at..at + length + 2);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        let parts = parts(text, &Settings::default()).map_err(|not_plain| not_plain.what)?;
        let show = |bit: &TemplatePart| match bit {
            TemplatePart::Text { text, .. } => text.clone(),
            TemplatePart::Value { name, absent: MissingValue::Shows(text), .. } => format!("<{name}|{text}>"),
            TemplatePart::Value { name, .. } => format!("<{name}>"),
            TemplatePart::Environment { .. } => unreachable!(),
        };
        Ok(parts.parts.iter().map(show).collect())
    }

    #[test]
    fn words_and_names_are_distinguished_as_in_the_engine() {
        assert_eq!(
            shown("a {{- x -}} b{# c #}\n{% raw %}{{ y }}{% endraw %}\n").as_deref(),
            Ok("a<x>b\n{{ y }}")
        );
        assert_eq!(shown("{% if x is defined %}{{ x }}{% else %}z{% endif %}").as_deref(), Ok("<x|z>"));
        assert_eq!(shown("{{ x|default('z') }}{{ '{{' }}").as_deref(), Ok("<x|z>{{"));
    }

    #[test]
    fn other_features_of_templates_are_named() {
        for (text, what) in [
            ("{% if x %}a{% endif %}", "a condition"),
            ("{% for x in y %}{% endfor %}", "a loop"),
            ("{{ x|upper }}", "a filter"),
            ("{{ x.y }}", "a part of a value"),
            ("{% include 'a.md' %}", "an `{% include %}`"),
            ("{{ system }}", "a name of the engine"),
        ] {
            assert_eq!(shown(text), Err(what.to_owned()), "{text}");
        }
    }

    #[test]
    fn comments_are_found_and_text_that_looks_like_one_is_not() {
        let text = "{# one #}a{% raw %}{# two #}{% endraw %}";
        assert_eq!(
            parts(text, &Settings::default()).unwrap().comments,
            std::iter::once(0..9).collect::<Vec<_>>()
        );
    }
}
