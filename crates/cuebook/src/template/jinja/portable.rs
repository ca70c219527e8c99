//! What of a template only some runtimes of `.prompty` files can read.
//!
//! All of them share a small grammar: variables with attributes and items, `if`, `for` over one name, comparisons, `and`,
//! `or`, `not`, `in`, and a handful of filters. [`beyond_the_subset`] lists everything else that a template writes. It judges
//! the writing only and knows no values; whether that matters is for `check` to say.

use std::ops::Range;

use minijinja::machinery::ast::{self, BinOpKind, CallArg, Expr, Stmt, UnaryOpKind};
use minijinja::machinery::{Span, Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::fence;
use super::names::name_range;

/// The filters that every runtime has, and how many arguments they take there.
const FILTERS: &[(&str, usize)] =
    &[("default", 1), ("join", 1), ("length", 0), ("lower", 0), ("replace", 2), ("trim", 0), ("upper", 0)];

/// Every construct of a template that is not in the common grammar, with its place and a short name, in order. A template
/// that cannot be read has none: reading it says what is wrong.
pub(crate) fn beyond_the_subset(source: &str, syntax: &SyntaxConfig) -> Vec<(Range<usize>, String)> {
    let readable = fence::readable(source, syntax);
    let Ok(tree) = parse(&readable, "", syntax.clone()) else { return Vec::new() };
    let mut lint = Lint { source, found: Vec::new() };
    lint.statement(&tree);
    lint.tokens(syntax);
    lint.markers();
    for range in fence::opening(source, syntax) {
        lint.note(range, "`{% fence %}`");
    }
    lint.found.sort_by_key(|(range, _)| (range.start, range.end));
    lint.found
}

struct Lint<'s> {
    source: &'s str,
    found: Vec<(Range<usize>, String)>,
}

impl Lint<'_> {
    fn note(&mut self, range: Range<usize>, what: impl Into<String>) {
        self.found.push((range, what.into()));
    }

    fn note_span(&mut self, span: Span, what: impl Into<String>) {
        self.note(span.start_offset as usize..span.end_offset as usize, what);
    }

    /// A statement is shown as the tag that begins it.
    fn note_tag(&mut self, span: Span, what: &str) {
        let at = span.start_offset as usize;
        let before = self.source.get(..at + 2).or_else(|| self.source.get(..at)).unwrap_or_default();
        let start = before.rfind("{%").unwrap_or(at);
        let end = self.source[start..].find("%}").map_or(self.source.len(), |length| start + length + 2);
        self.note(start..end, what);
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitRaw(_) => {}
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::ForLoop(each) => {
                if !matches!(each.target, Expr::Var(_)) {
                    self.note_span(each.target.span(), "several names in a `for`");
                }
                if let Some(filter) = &each.filter_expr {
                    self.note_span(filter.span(), "`for … if`");
                    self.expression(filter);
                }
                if each.recursive {
                    self.note_tag(each.span(), "`for … recursive`");
                }
                if !each.else_body.is_empty() {
                    self.note_tag(each.span(), "`for … else`");
                }
                self.expression(&each.iter);
                self.statements(&each.body);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                self.note_tag(with.span(), "`{% with %}`");
                with.assignments.iter().for_each(|(_, value)| self.expression(value));
                self.statements(&with.body);
            }
            Stmt::Set(set) => {
                self.note_tag(set.span(), "`{% set %}`");
                self.expression(&set.expr);
            }
            Stmt::SetBlock(set) => {
                self.note_tag(set.span(), "`{% set %}`");
                self.statements(&set.body);
            }
            Stmt::AutoEscape(escape) => {
                self.note_tag(escape.span(), "`{% autoescape %}`");
                self.statements(&escape.body);
            }
            Stmt::FilterBlock(filter) => {
                self.note_tag(filter.span(), "`{% filter %}`");
                self.statements(&filter.body);
            }
            Stmt::Block(block) => {
                self.note_tag(block.span(), "`{% block %}`");
                self.statements(&block.body);
            }
            Stmt::Import(import) => self.note_tag(import.span(), "`{% import %}`"),
            Stmt::FromImport(import) => self.note_tag(import.span(), "`{% from … import %}`"),
            Stmt::Extends(extends) => self.note_tag(extends.span(), "`{% extends %}`"),
            Stmt::Include(include) => self.note_tag(include.span(), "`{% include %}`"),
            Stmt::Macro(declared) => {
                self.note_tag(declared.span(), "`{% macro %}`");
                self.statements(&declared.body);
            }
            Stmt::CallBlock(call) => {
                self.note_tag(call.span(), "`{% call %}`");
                self.statements(&call.macro_decl.body);
            }
            Stmt::Continue(statement) => self.note_tag(statement.span(), "`{% continue %}`"),
            Stmt::Break(statement) => self.note_tag(statement.span(), "`{% break %}`"),
            Stmt::Do(statement) => self.note_tag(statement.span(), "`{% do %}`"),
        }
    }

    fn expression(&mut self, expression: &Expr<'_>) {
        match expression {
            Expr::Const(_) | Expr::Var(_) => {}
            Expr::GetAttr(get) => self.looked_up(&get.expr, get.span()),
            Expr::GetItem(get) => {
                self.looked_up(&get.expr, get.span());
                self.expression(&get.subscript_expr);
            }
            Expr::UnaryOp(unary) => {
                let number = matches!(&unary.expr, Expr::Const(constant) if constant.value.is_number());
                if matches!(unary.op, UnaryOpKind::Neg) && !number {
                    self.note_span(unary.span(), "`-`");
                }
                self.expression(&unary.expr);
            }
            Expr::BinOp(binary) => {
                if let Some(operator) = operator(binary.op) {
                    self.note_span(binary.span(), format!("`{operator}`"));
                }
                self.expression(&binary.left);
                self.expression(&binary.right);
            }
            Expr::Compare(compare) => {
                self.note_span(compare.span(), "comparisons in a row");
                self.expression(&compare.expr);
                compare.ops.iter().for_each(|operand| self.expression(&operand.expr));
            }
            Expr::IfExpr(choice) => {
                self.note_span(choice.span(), "`… if … else …`");
                self.expression(&choice.true_expr);
                self.expression(&choice.test_expr);
                choice.false_expr.iter().for_each(|other| self.expression(other));
            }
            Expr::Filter(filter) => {
                self.filter(filter, filter.span());
                filter.expr.iter().for_each(|value| self.expression(value));
                self.arguments(&filter.args);
            }
            Expr::Test(test) => {
                let range = name_range(self.source, test.span(), test.name);
                self.note(range, format!("`is {}`", test.name));
                self.expression(&test.expr);
                self.arguments(&test.args);
            }
            Expr::Slice(slice) => {
                self.note_span(slice.span(), "a slice");
                self.expression(&slice.expr);
            }
            Expr::Call(call) => {
                self.note_span(call.span(), "a call");
                // The attribute that is called is no lookup of its own.
                match &call.expr {
                    Expr::GetAttr(get) => self.expression(&get.expr),
                    callee => self.expression(callee),
                }
                self.arguments(&call.args);
            }
            Expr::List(list) => {
                self.note_span(list.span(), "a list literal");
                list.items.iter().for_each(|item| self.expression(item));
            }
            Expr::Tuple(tuple) => {
                self.note_span(tuple.span(), "a tuple");
                tuple.items.iter().for_each(|item| self.expression(item));
            }
            Expr::Map(map) => {
                self.note_span(map.span(), "a map literal");
                map.keys.iter().chain(&map.values).for_each(|item| self.expression(item));
            }
        }
    }

    /// Attributes and items are those of a variable, and not of whatever an expression gives.
    fn looked_up(&mut self, of: &Expr<'_>, span: Span) {
        if !matches!(of, Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_)) {
            self.note_span(span, "an attribute of an expression");
        }
        self.expression(of);
    }

    fn filter(&mut self, filter: &ast::Filter<'_>, span: Span) {
        let range = name_range(self.source, span, filter.name);
        match FILTERS.iter().find(|(name, _)| *name == filter.name) {
            None => self.note(range, format!("filter `{}`", filter.name)),
            Some((name, most)) if filter.args.len() > *most => {
                let given = filter.args.len();
                let arguments = if given == 1 { "an argument" } else { "so many arguments" };
                self.note(range, format!("`{name}` with {arguments}"));
            }
            Some(_) if filter.args.iter().any(|argument| !matches!(argument, CallArg::Pos(_))) => {
                self.note(range, "a named argument");
            }
            Some(_) => {}
        }
    }

    fn arguments(&mut self, arguments: &[CallArg<'_>]) {
        for argument in arguments {
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = argument;
            self.expression(value);
        }
    }

    /// What the syntax tree no longer shows: `not in`, Python's names for literals, and tags that end inside a string.
    fn tokens(&mut self, syntax: &SyntaxConfig) {
        let mut not: Option<Span> = None;
        let mut dotted = false;
        let mut tag = (0, "");
        let mut inside = Vec::new();
        for (token, span) in tokenize(self.source, false, syntax.clone()).flatten() {
            let range = span.start_offset as usize..span.end_offset as usize;
            match &token {
                Token::VariableStart => tag = (range.end, "}}"),
                Token::BlockStart => tag = (range.end, "%}"),
                Token::VariableEnd | Token::BlockEnd => {
                    let text = self.source.get(tag.0..range.start).unwrap_or_default();
                    if text.contains(tag.1) {
                        inside.push((tag.0 - 2..range.end, format!("`{}` inside a tag", tag.1)));
                    }
                }
                Token::Ident("in") => {
                    if let Some(not) = not {
                        inside.push((not.start_offset as usize..range.end, "`not in`".to_owned()));
                    }
                }
                Token::Ident(name @ ("True" | "False")) if !dotted => {
                    inside.push((range, format!("`{name}`")));
                }
                _ => {}
            }
            not = matches!(token, Token::Ident("not")).then_some(span);
            dotted = matches!(token, Token::Dot);
        }
        self.found.append(&mut inside);
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

/// How an operator is written that the common grammar does not have.
fn operator(operator: BinOpKind) -> Option<&'static str> {
    Some(match operator {
        BinOpKind::Add => "+",
        BinOpKind::Sub => "-",
        BinOpKind::Mul => "*",
        BinOpKind::Div => "/",
        BinOpKind::FloorDiv => "//",
        BinOpKind::Rem => "%",
        BinOpKind::Pow => "**",
        BinOpKind::Concat => "~",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> Vec<String> {
        beyond_the_subset(source, &SyntaxConfig::default()).into_iter().map(|(_, what)| what).collect()
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
            found.sort();
            wanted.sort();
            assert_eq!(found, wanted, "{source}");
        }
    }

    #[test]
    fn places_are_those_of_the_tag_or_the_name() {
        let source = "x\n{% set y = 1 %} {{ a|map('upper') }} {% if b is defined %}{% endif %} {{ a ~ b }}";
        let found = beyond_the_subset(source, &SyntaxConfig::default());
        let texts: Vec<&str> = found.iter().map(|(range, _)| &source[range.clone()]).collect();
        assert_eq!(texts, ["{% set y = 1 %}", "map", "defined", "a ~ b"]);
    }
}
