//! A Jinja2 template as words and names, if it is no more.

use std::ops::Range;

use minijinja::machinery::ast::{CallArg, Expr, Stmt};
use minijinja::machinery::{Span, parse};

use super::{Settings, fence};
use crate::template::bits::{Absent, Beyond, Bit};

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
pub struct Bits {
    /// The pieces, in order.
    pub bits: Vec<Bit>,
    /// Where comments are.
    pub comments: Vec<Range<usize>>,
}

/// Takes a template apart. A template that cannot be read is beyond words, too; reading it says why.
pub fn bits(text: &str, settings: &Settings) -> Result<Bits, Beyond> {
    let unreadable = || Beyond { range: 0..0, what: "unreadable code".to_owned() };
    let syntax = settings.syntax().map_err(|_| unreadable())?;
    if let Some(range) = fence::opening(text, &syntax).into_iter().next() {
        return Err(Beyond { range, what: "a `{% fence %}` block".to_owned() });
    }
    let tree = parse(text, "", syntax).map_err(|_| unreadable())?;
    let Stmt::Template(template) = &tree else { return Err(unreadable()) };
    let reader = Reader { text };
    let bits = template.children.iter().map(|statement| reader.statement(statement));
    let bits: Vec<Bit> = bits.filter_map(Result::transpose).collect::<Result<_, _>>()?;
    let comments = comments(text, &bits);
    Ok(Bits { bits, comments })
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

struct Reader<'s> {
    text: &'s str,
}

impl Reader<'_> {
    fn statement(&self, statement: &Stmt<'_>) -> Result<Option<Bit>, Beyond> {
        match statement {
            Stmt::EmitRaw(raw) => Ok(self.literal(raw.raw)),
            Stmt::EmitExpr(emit) => self.value(&emit.expr, self.tag(emit.span(), "{{", "}}")).map(Some),
            Stmt::IfCond(condition) => {
                let range = self.tag(condition.span(), "{%", "%}");
                let given = match &condition.expr {
                    Expr::Test(test) if test.name == "defined" && test.args.is_empty() => name(&test.expr),
                    _ => None,
                };
                let shown = match condition.true_body.as_slice() {
                    [Stmt::EmitExpr(emit)] => name(&emit.expr),
                    _ => None,
                };
                let otherwise = match condition.false_body.as_slice() {
                    [Stmt::EmitRaw(raw)] => Some(raw.raw),
                    _ => None,
                };
                match (given, shown, otherwise) {
                    (Some(given), Some(shown), Some(otherwise)) if given == shown => Ok(Some(Bit::Value {
                        name: given.to_owned(),
                        absent: Absent::Shows(otherwise.to_owned()),
                        escaped: false,
                        range,
                    })),
                    _ => Err(Beyond { range, what: "a condition".to_owned() }),
                }
            }
            other => {
                let (span, what) = match other {
                    Stmt::ForLoop(it) => (it.span(), "a loop"),
                    Stmt::Set(it) => (it.span(), "`{% set %}`"),
                    Stmt::SetBlock(it) => (it.span(), "`{% set %}`"),
                    Stmt::Include(it) => (it.span(), "an `{% include %}`"),
                    Stmt::Extends(it) => (it.span(), "`{% extends %}`"),
                    Stmt::Import(it) => (it.span(), "an `{% import %}`"),
                    Stmt::FromImport(it) => (it.span(), "an `{% import %}`"),
                    Stmt::Macro(it) => (it.span(), "a macro"),
                    Stmt::Block(it) => (it.span(), "a block"),
                    Stmt::FilterBlock(it) => (it.span(), "a `{% filter %}` block"),
                    Stmt::WithBlock(it) => (it.span(), "`{% with %}`"),
                    Stmt::CallBlock(it) => (it.span(), "a `{% call %}` block"),
                    _ => return Err(Beyond { range: 0..0, what: "a statement".to_owned() }),
                };
                Err(Beyond { range: self.tag(span, "{%", "%}"), what: what.to_owned() })
            }
        }
    }

    fn literal(&self, raw: &str) -> Option<Bit> {
        if raw.is_empty() {
            return None;
        }
        let start = (raw.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let range = match start <= self.text.len() {
            true => start..start + raw.len(),
            false => 0..0,
        };
        Some(Bit::Text { text: raw.to_owned(), range })
    }

    fn value(&self, expression: &Expr<'_>, range: Range<usize>) -> Result<Bit, Beyond> {
        let beyond = |what: &str| Err(Beyond { range: range.clone(), what: what.to_owned() });
        match expression {
            Expr::Var(variable) if OWN.contains(&variable.id) => beyond("a name of the engine"),
            Expr::Var(variable) => {
                let name = variable.id.to_owned();
                Ok(Bit::Value { name, absent: Absent::Nothing, escaped: false, range: range.clone() })
            }
            Expr::Const(constant) => match constant.value.as_str() {
                Some(text) => Ok(Bit::Text { text: text.to_owned(), range: range.clone() }),
                None => beyond("a constant that is not text"),
            },
            Expr::Filter(filter) if matches!(filter.name, "default" | "d") => {
                match (filter.expr.as_ref().and_then(name), filter.args.as_slice()) {
                    (Some(name), [CallArg::Pos(Expr::Const(text))]) if text.value.as_str().is_some() => {
                        let absent = Absent::Shows(text.value.as_str().unwrap_or_default().to_owned());
                        Ok(Bit::Value { name: name.to_owned(), absent, escaped: false, range: range.clone() })
                    }
                    _ => beyond("a filter"),
                }
            }
            Expr::Filter(_) => beyond("a filter"),
            Expr::GetAttr(_) | Expr::GetItem(_) => beyond("a part of a value"),
            Expr::Call(_) => beyond("a call"),
            _ => beyond("an expression"),
        }
    }

    /// The tag that a span stands in.
    fn tag(&self, span: Span, open: &str, close: &str) -> Range<usize> {
        let at = span.start_offset as usize;
        let before = self.text.get(..at + 2).or_else(|| self.text.get(..at)).unwrap_or_default();
        let start = before.rfind(open).unwrap_or(at);
        let end = self.text.get(start..).and_then(|rest| rest.find(close));
        start..end.map_or(self.text.len(), |length| start + length + 2)
    }
}

/// The name that an expression is, if it is one.
fn name<'e>(expression: &Expr<'e>) -> Option<&'e str> {
    match expression {
        Expr::Var(variable) if !OWN.contains(&variable.id) => Some(variable.id),
        _ => None,
    }
}

/// Comments: what begins as one and is no text.
fn comments(text: &str, bits: &[Bit]) -> Vec<Range<usize>> {
    let is_text =
        |at: usize| bits.iter().any(|bit| matches!(bit, Bit::Text { range, .. } if range.contains(&at)));
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
        let bits = bits(text, &Settings::default()).map_err(|beyond| beyond.what)?;
        let show = |bit: &Bit| match bit {
            Bit::Text { text, .. } => text.clone(),
            Bit::Value { name, absent: Absent::Shows(text), .. } => format!("<{name}|{text}>"),
            Bit::Value { name, .. } => format!("<{name}>"),
            Bit::Environment { .. } => unreachable!(),
        };
        Ok(bits.bits.iter().map(show).collect())
    }

    #[test]
    fn words_and_names_are_told_apart_as_the_engine_does() {
        assert_eq!(
            shown("a {{- x -}} b{# c #}\n{% raw %}{{ y }}{% endraw %}\n").as_deref(),
            Ok("a<x>b\n{{ y }}")
        );
        assert_eq!(shown("{% if x is defined %}{{ x }}{% else %}z{% endif %}").as_deref(), Ok("<x|z>"));
        assert_eq!(shown("{{ x|default('z') }}{{ '{{' }}").as_deref(), Ok("<x|z>{{"));
    }

    #[test]
    fn what_is_more_is_named() {
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
            bits(text, &Settings::default()).unwrap().comments,
            std::iter::once(0..9).collect::<Vec<_>>()
        );
    }
}
