//! What of a template only some runtimes of `.prompty` files can read.
//!
//! All of them share a small grammar: variables with attributes and items, `if`, `for` over one name, comparisons, `and`,
//! `or`, `not`, `in`, and a handful of filters. [`beyond_the_subset`] lists everything else that a template writes. It judges
//! the writing only and knows no values; whether that matters is for `check` to say.

use std::ops::Range;

use cuebook_template::Template;
use cuebook_template::ast::{
    Arguments, Binary, Body, Comparison, Expr, ExprKind, Named, Statement, StatementKind, Unary, each_child,
};

use super::fence;

/// The filters that every runtime has, and how many arguments they take there.
const FILTERS: &[(&str, usize)] =
    &[("default", 1), ("join", 1), ("length", 0), ("lower", 0), ("replace", 2), ("trim", 0), ("upper", 0)];

/// Every construct of a template that is not in the common grammar, with its place and a short name, in order.
pub(crate) fn beyond_the_subset(template: &Template) -> Vec<(Range<usize>, String)> {
    let mut lint = Lint { template, source: template.text(), found: Vec::new() };
    lint.statements(&template.tree().body.statements);
    lint.markers();
    lint.found.sort_by_key(|(range, _)| (range.start, range.end));
    lint.found
}

struct Lint<'s> {
    template: &'s Template,
    source: &'s str,
    found: Vec<(Range<usize>, String)>,
}

fn bytes(range: cuebook_template::Range) -> Range<usize> {
    range.start as usize..range.end as usize
}

impl Lint<'_> {
    fn note(&mut self, range: Range<usize>, what: impl Into<String>) {
        self.found.push((range, what.into()));
    }

    fn note_expression(&mut self, expression: &Expr, what: impl Into<String>) {
        self.note(bytes(expression.range), what);
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn body(&mut self, body: &Body) {
        self.statements(&body.statements);
    }

    /// The statements of a macro.
    fn inner_macro(&mut self, index: u32) {
        let template = self.template;
        if let Some(node) = template.tree().macros.get(index as usize) {
            self.body(&node.body);
        }
    }

    fn statement(&mut self, statement: &Statement) {
        // A statement is shown as the tag that begins it.
        let start = statement.range.start as usize;
        let rest = &self.source[start..];
        // The end of a `{{ … }}` is not needed, and the next `%}` may be at the end of the file.
        let is_shown = match &statement.kind {
            StatementKind::Data => false,
            StatementKind::Emit(_) => !rest.starts_with("{{"),
            _ => true,
        };
        let end = if is_shown { rest.find("%}").map_or(rest.len(), |length| length + 2) } else { 0 };
        let tag = start..start + end;
        match &statement.kind {
            StatementKind::Data => {}
            StatementKind::Emit(value) => {
                if is_shown {
                    self.note(tag, "`{% print %}`");
                }
                self.expression(value);
            }
            StatementKind::For(each) => {
                if !matches!(each.target.kind, ExprKind::Name(_)) {
                    self.note_expression(&each.target, "several names in a `for`");
                }
                if let Some((test, ..)) = &each.test {
                    self.note_expression(test, "`for … if`");
                    self.expression(test);
                }
                if each.recursive {
                    self.note(tag.clone(), "`for … recursive`");
                }
                if !each.otherwise.statements.is_empty() {
                    self.note(tag, "`for … else`");
                }
                self.expression(&each.iterable);
                self.body(&each.body);
                self.body(&each.otherwise);
            }
            StatementKind::If(branches, otherwise) => {
                for (test, body) in branches {
                    self.expression(test);
                    self.statements(body);
                }
                self.statements(otherwise);
            }
            StatementKind::With(with) => {
                self.note(tag, "`{% with %}`");
                with.pairs.iter().for_each(|(_, value)| self.expression(value));
                self.body(&with.body);
            }
            StatementKind::Set(node) => {
                let value = &node.1;
                self.note(tag, "`{% set %}`");
                self.expression(value);
            }
            StatementKind::SetBlock(set) => {
                self.note(tag, "`{% set %}`");
                self.body(&set.body);
            }
            StatementKind::Autoescape(node) => {
                self.note(tag, "`{% autoescape %}`");
                self.body(&node.1);
            }
            StatementKind::FilterBlock(node) => {
                let is_fence =
                    matches!(&node.0.kind, ExprKind::Filter(None, named) if named.name == fence::NAME);
                self.note(tag, if is_fence { "`{% fence %}`" } else { "`{% filter %}`" });
                self.body(&node.1);
            }
            StatementKind::Block(index) => {
                self.note(tag, "`{% block %}`");
                let template = self.template;
                if let Some(block) = template.tree().blocks.get(*index as usize) {
                    self.body(&block.body);
                }
            }
            StatementKind::Macro(index, _) => {
                self.note(tag, "`{% macro %}`");
                self.inner_macro(*index);
            }
            StatementKind::CallBlock(_, index) => {
                self.note(tag, "`{% call %}`");
                self.inner_macro(*index);
            }
            StatementKind::Import(import) => {
                let from = matches!(import.names, cuebook_template::ast::Imported::Names(_));
                self.note(tag, if from { "`{% from … import %}`" } else { "`{% import %}`" });
            }
            StatementKind::Extends(_) => self.note(tag, "`{% extends %}`"),
            StatementKind::Include(_) => self.note(tag, "`{% include %}`"),
            StatementKind::Continue => self.note(tag, "`{% continue %}`"),
            StatementKind::Break => self.note(tag, "`{% break %}`"),
            StatementKind::Do(_) => self.note(tag, "`{% do %}`"),
            // The parser reports the tag.
            StatementKind::Broken(_) => {}
            StatementKind::Generation(_) => self.note(tag, "`{% generation %}`"),
        }
    }

    fn expression(&mut self, expression: &Expr) {
        let written = expression.range.of(self.source);
        match &expression.kind {
            ExprKind::Text(..) => {
                for end in ["}}", "%}"] {
                    if written.contains(end) {
                        self.note_expression(expression, format!("`{end}` inside a tag"));
                    }
                }
            }
            ExprKind::Bool(_) if written.starts_with(['T', 'F']) => {
                self.note_expression(expression, format!("`{written}`"));
            }
            // Only variables have attributes and items.
            ExprKind::Attribute(of, _) | ExprKind::Item(of, _)
                if !matches!(of.kind, ExprKind::Name(_) | ExprKind::Attribute(..) | ExprKind::Item(..)) =>
            {
                self.note_expression(expression, "an attribute of an expression");
            }
            ExprKind::Unary(Unary::Minus, value)
                if !matches!(value.kind, ExprKind::Int(_) | ExprKind::Big(_) | ExprKind::Float(_)) =>
            {
                self.note_expression(expression, "`-`");
            }
            ExprKind::Binary(operator, ..) => {
                self.note_expression(expression, format!("`{}`", symbol(*operator)));
            }
            ExprKind::Concat(_) => self.note_expression(expression, "`~`"),
            ExprKind::Compare(_, others) => {
                if others.len() > 1 {
                    self.note_expression(expression, "comparisons in a row");
                }
                if others.iter().any(|(comparison, _)| *comparison == Comparison::NotIn) {
                    self.note_expression(expression, "`not in`");
                }
            }
            ExprKind::If(..) => self.note_expression(expression, "`… if … else …`"),
            ExprKind::Filter(_, named) => self.filter(named),
            ExprKind::Test(_, named) => {
                self.note(bytes(named.range), format!("`is {}`", named.name));
            }
            ExprKind::Slice(..) => self.note_expression(expression, "a slice"),
            ExprKind::Call(callee, given) => {
                self.note_expression(expression, "a call");
                // The attribute that is called is no lookup of its own.
                match &callee.kind {
                    ExprKind::Attribute(value, _) => self.expression(value),
                    _ => self.expression(callee),
                }
                return self.arguments(given);
            }
            ExprKind::List(_) => self.note_expression(expression, "a list literal"),
            ExprKind::Tuple(_) => self.note_expression(expression, "a tuple"),
            ExprKind::Dict(_) => self.note_expression(expression, "a map literal"),
            _ => {}
        }
        let mut children = Vec::new();
        each_child(expression, &mut |child| children.push(child));
        children.into_iter().for_each(|child| self.expression(child));
    }

    fn filter(&mut self, named: &Named) {
        let (range, given) = (bytes(named.range), &named.arguments);
        let count = given.positional.len() + given.named.len();
        match FILTERS.iter().find(|(name, _)| *name == named.name) {
            None => self.note(range, format!("filter `{}`", named.name)),
            Some((name, most)) if count > *most => {
                let arguments = if count == 1 { "an argument" } else { "so many arguments" };
                self.note(range, format!("`{name}` with {arguments}"));
            }
            Some(_) if !given.named.is_empty() || given.star.is_some() || given.double_star.is_some() => {
                self.note(range, "a named argument");
            }
            Some(_) => {}
        }
    }

    fn arguments(&mut self, given: &Arguments) {
        let named = given.named.iter().map(|(_, value)| value);
        let stars = given.star.iter().chain(&given.double_star);
        given.positional.iter().chain(named).chain(stars).for_each(|value| self.expression(value));
    }

    /// What the engine's lexer reads itself: `raw`, and `+` at the edge of a tag.
    fn markers(&mut self) {
        let mut at = 0;
        while let Some(start) = self.source[at..].find('{').map(|found| at + found) {
            let rest = &self.source[start..];
            let close = match rest.as_bytes().get(1) {
                Some(b'{') => "}}",
                Some(b'%') => "%}",
                Some(b'#') => "#}",
                _ => {
                    at = start + 1;
                    continue;
                }
            };
            let Some(end) = rest[2..].find(close).map(|length| start + 2 + length) else { return };
            let inner = &self.source[start + 2..end];
            at = end + 2;
            if inner.starts_with('+') || (inner.ends_with('+') && close != "#}") {
                self.note(start..at, "`+` at the edge of a tag");
            }
            let word = inner.trim_matches(['-', '+']).trim();
            if close == "%}" && word == "raw" {
                self.note(start..at, "`{% raw %}`");
                // Up to its end everything is text.
                let Some(length) = self.source[at..].find("endraw") else { return };
                at += length;
            }
        }
    }
}

fn symbol(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::FloorDivide => "//",
        Binary::Remainder => "%",
        Binary::Power => "**",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_plain(source: &str) -> Vec<(Range<usize>, String)> {
        let settings = crate::template::jinja::Settings::default().portable();
        beyond_the_subset(&settings.environment().read("", source).0)
    }

    fn found(source: &str) -> Vec<String> {
        not_plain(source).into_iter().map(|(_, what)| what).collect()
    }

    #[test]
    fn the_common_grammar_has_nothing_beyond_it() {
        let none: Vec<String> = Vec::new();
        for source in [
            "a {{ x }} {{ a.b[0].c['d'] }} {{ a[k] }} {{ -1 }} {{ 'lit' }} {{ 1.5 }} {{ true }} {{ null }}",
            "{%- if a and not b or (c == 1) -%}x{% elif 'x' in xs %}y{% else %}z{% endif %}",
            "{% for i in items %}{{ loop.index }}{{ i.name }}{% endfor %}{# + raw #}",
            "{{ a|default('d') }}{{ a|trim|upper|lower }}{{ xs|join(', ') }}{{ xs|length }}{{ s|replace('a', b) }}",
            "{{ a.True }} {% if a <= b %}{% endif %} { % { {a}",
        ] {
            assert_eq!(found(source), none, "{source}");
        }
    }

    #[test]
    fn a_half_typed_tag_is_no_finding() {
        for source in [
            "{{ user. }}",
            "{{ a ~ b ~ }}",
            "{% if x. %}{% endif %}",
            "{{ f(x) | }} {{ y",
            "{% for i in xs. %}",
        ] {
            assert_eq!(found(source), Vec::<String>::new(), "{source}");
        }
        assert_eq!(found("{{ a. }}{% do a %}"), ["`{% do %}`"]);
    }

    #[test]
    fn everything_else_is_found_by_its_name() {
        for (source, wanted) in [
            ("{% set x = 1 %}{% set y %}t{% endset %}", vec!["`{% set %}`", "`{% set %}`"]),
            ("{{ x is defined }}{{ x is not none }}", vec!["`is defined`", "`is none`"]),
            ("{{ xs|map('upper')|join }}", vec!["filter `map`"]),
            ("{{ a ~ b }}{{ a + 1 }}{{ -a }}", vec!["`~`", "`+`", "`-`"]),
            ("{{ a if b else c }}", vec!["`… if … else …`"]),
            ("{{ a.b() }}{{ f(x) }}", vec!["a call", "a call"]),
            ("{{ [1] }}{{ (1, 2) }}{{ {'a': 1} }}", vec!["a list literal", "a tuple", "a map literal"]),
            ("{% for x in xs %}{% else %}n{% endfor %}", vec!["`for … else`"]),
            ("{% for k, v in m %}{% endfor %}", vec!["several names in a `for`"]),
            ("{% for x in xs if x %}{% endfor %}", vec!["`for … if`"]),
            ("{% for x in xs recursive %}{% endfor %}", vec!["`for … recursive`"]),
            ("{{ a not in b }}{{ 1 < a < 3 }}", vec!["`not in`", "comparisons in a row"]),
            (
                "{{ a|default('d', true) }}{{ a|trim('x') }}",
                vec!["`default` with so many arguments", "`trim` with an argument"],
            ),
            ("{{ a|join(d=',') }}", vec!["a named argument"]),
            (
                "{{ a[1:] }}{{ (a|first).b }}",
                vec!["a slice", "filter `first`", "an attribute of an expression"],
            ),
            ("{% raw %}{{ x ~ y }}{% endraw %}", vec!["`{% raw %}`"]),
            ("{{ '}}' }}{{ True }}", vec!["`}}` inside a tag", "`True`"]),
            ("{%+ if a %}{% endif %}", vec!["`+` at the edge of a tag"]),
            ("{% macro m() %}{% endmacro %}{% include 'x' %}", vec!["`{% macro %}`", "`{% include %}`"]),
            ("{% block b %}{% endblock %}{% extends 'y' %}", vec!["`{% block %}`", "`{% extends %}`"]),
            ("{% with a = 1 %}{% endwith %}", vec!["`{% with %}`"]),
            ("{% filter upper %}x{% endfilter %}", vec!["`{% filter %}`"]),
        ] {
            let mut wanted: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
            let mut found = found(source);
            found.sort_unstable();
            wanted.sort_unstable();
            assert_eq!(found, wanted, "{source}");
        }
    }

    #[test]
    fn places_are_those_of_the_tag_or_the_name() {
        let source = "x\n{% set y = 1 %} {{ a|map('upper') }} {% if b is defined %}{% endif %} {{ a ~ b }}";
        let found = not_plain(source);
        let texts: Vec<&str> = found.iter().map(|(range, _)| &source[range.clone()]).collect();
        assert_eq!(texts, ["{% set y = 1 %}", "map", "defined", "a ~ b"]);
    }
}
