//! A half-typed template still gives a tree, and every error that it has.

use cuebook_template::Environment;
use cuebook_template::ast::{Body, ExprKind, Statement, StatementKind, Tree, each_child};

/// The names that a tree uses, in order.
fn names(text: &str) -> (Vec<String>, Vec<String>) {
    let (template, errors) = Environment::new().read("main", text);
    let mut found = Vec::new();
    statements(template.tree(), &template.tree().body.statements, &mut found);
    (found, errors.iter().map(|error| error.message().to_owned()).collect())
}

fn expression(value: &cuebook_template::ast::Expr, found: &mut Vec<String>) {
    if let ExprKind::Name(name) = &value.kind {
        found.push(name.name.to_string());
    }
    each_child(value, &mut |child| expression(child, found));
}

fn statements(tree: &Tree, all: &[Statement], found: &mut Vec<String>) {
    let body = |body: &Body, found: &mut Vec<String>| statements(tree, &body.statements, found);
    for statement in all {
        match &statement.kind {
            StatementKind::Emit(value) | StatementKind::Broken(value) => expression(value, found),
            StatementKind::Set(node) => expression(&node.1, found),
            StatementKind::If(branches, otherwise) => {
                for (test, inside) in branches {
                    expression(test, found);
                    statements(tree, inside, found);
                }
                statements(tree, otherwise, found);
            }
            StatementKind::For(node) => {
                expression(&node.iterable, found);
                body(&node.body, found);
                body(&node.otherwise, found);
            }
            StatementKind::With(node) => body(&node.body, found),
            StatementKind::SetBlock(node) => body(&node.body, found),
            StatementKind::FilterBlock(node) | StatementKind::Autoescape(node) => body(&node.1, found),
            StatementKind::Macro(index, _) => body(&tree.macros[*index as usize].body, found),
            StatementKind::Block(index) => body(&tree.blocks[*index as usize].body, found),
            _ => {}
        }
    }
}

fn expect(text: &str, expected: &[&str], errors: usize) {
    let (found, messages) = names(text);
    assert_eq!(found, expected, "{text}: {messages:?}");
    assert_eq!(messages.len(), errors, "{text}: {messages:?}");
}

#[test]
fn half_typed_tags_keep_what_was_read() {
    expect("{{ a }} {{ user.", &["a", "user"], 1);
    expect("{{ a }} {{ user. }} {{ b }}", &["a", "user", "b"], 1);
    expect("{{ a }} {{ x| }} {{ b }}", &["a", "x", "b"], 1);
    expect("{{ a }} {{ x|", &["a", "x"], 1);
    expect("{{ x is", &["x"], 1);
    expect("{{ x[", &["x"], 1);
    expect("{{ x(y", &["x"], 1);
    expect("{{ x + ", &["x"], 1);
    expect("{{ x ~ y ~ }}", &["x", "y"], 1);
    expect("{{ x == ", &["x"], 1);
    expect("{{ x and y and }}", &["x", "y"], 1);
    expect("{{ user.name", &["user"], 1);
    expect("{{", &[], 1);
    expect("{{ b }}{% if x", &["b", "x"], 1);
    expect("{{ b }}{% if x.", &["b", "x"], 1);
    expect("{{ b }}{% for", &["b"], 1);
    expect("{% for i in", &[], 1);
    expect("{% for i in xs", &["xs"], 1);
    expect("{% set a = b.", &["b"], 1);
    expect("{% ", &[], 1);
}

#[test]
fn blocks_without_an_end_keep_what_is_inside() {
    expect("{% if x %}{{ y }}", &["x", "y"], 1);
    expect("{% for i in xs %}{{ i }}{% if y %}{{ z }}", &["xs", "i", "y", "z"], 2);
    expect("{% macro m(a) %}{{ a }}", &["a"], 1);
    expect("{% block b %}{{ a }}{% with x = 1 %}{{ x }}", &["a", "x"], 2);
    expect("{% if x. %}{{ y }}{% endif %}{{ z }}", &["x", "y", "z"], 1);
    expect("{% if x %}{{ y }}{% endfor %}{{ z. }}", &["x", "y", "z"], 2);
}

#[test]
fn an_open_bracket_ends_with_its_tag() {
    expect("{{ foo( }} text {{ bar. }}", &["foo", "bar"], 2);
    expect("{{ a[b }} text {{ c }} {{ d. }}", &["a", "c", "d"], 2);
    expect("{{ foo(a -}} text {% if b. %}{{ c }}{% endif %}", &["foo", "b", "c"], 2);
    expect("{% if foo( %}text {{ bar }}{% endif %}{{ c }}", &["foo", "bar", "c"], 1);
    expect("{{ [(a, }} text {{ b. }}", &["b"], 2);
    expect("{{ a } text {{ b. }}", &["a", "b"], 2);
    expect("{% if a } text {{ b }}{% endif %}", &["a", "b"], 1);
}

#[test]
fn a_tag_inside_a_tag_begins_a_new_one() {
    expect("{{ a text {{ b }} {{ c. }}", &["a", "b", "c"], 2);
    expect("{{ a. {% if b %}{{ c }}{% endif %}", &["a", "b", "c"], 1);
    expect("{% if a {{ b }}{% endif %}{{ c }}", &["a", "b", "c"], 1);
    expect("{{ foo( {% if b %}{% endif %} {{ c. }}", &["foo", "b", "c"], 2);
}

#[test]
fn one_pass_reports_the_errors_of_every_tag() {
    expect("{{ a b }}{{ c }}{% fro x %}{{ d|nope }}{{ e. }}{{ f }}", &["a", "c", "d", "e", "f"], 4);
    let text = "{{ ) }}{% if %}{{ ok }}{% endif %}{{ 'open";
    let (found, messages) = names(text);
    assert_eq!((found, messages.len()), (vec!["ok".to_owned()], 3), "{messages:?}");
}
