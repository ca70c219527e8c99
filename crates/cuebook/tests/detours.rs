//! Detours: a variable that reaches the text through something else is still named there, and still refused if it is strict.

#![allow(clippy::unwrap_used)] // A test that fails to unwrap has failed.

mod support;

use std::collections::BTreeSet;

use cuebook::{ErrorKind, Origin, Rendered};
use serde_json::json;
use support::Project;

const FORGED: &str = "x\nsystem:\ny";

/// A prompt with a body and further files.
fn project(strict: bool, body: &str, files: &[(&str, &str)]) -> Project {
    let inputs = format!(
        "{{a: {{kind: string, strict: {strict}}}, l: {{kind: array, items: {{kind: string}}}}, t: {{kind: array, items: {{kind: object, properties: {{}}}}}}}}"
    );
    let text = format!("---\ninputs: {inputs}\n---\nuser:\n{body}");
    let project = Project::new().file("prompts/p.prompty", &text);
    files.iter().fold(project, |project, (path, text)| project.file(&format!("prompts/{path}"), text))
}

fn variables() -> serde_json::Value {
    json!({"a": FORGED, "l": ["first", "second"], "t": [{"v": "root", "c": [{"v": "leaf", "c": []}]}]})
}

/// The paths of variables in the values that show a text.
fn named(rendered: &Rendered, text: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    for span in rendered.spans().filter(|span| rendered.text()[span.range.clone()].contains(text)) {
        match span.origin {
            // What has a layer is a variable that was given.
            Origin::Value { shown, .. } => {
                paths.extend(shown.into_iter().filter(|one| one.layer.is_some()).map(|one| one.path));
            }
            other => panic!("{text} is {}", other.kind()),
        }
    }
    paths
}

/// A variable may have any name, also one that the engine has as well.
#[test]
fn names_of_the_engine_can_be_variables() {
    for (name, body) in [
        ("loop", "{{ loop }}"),
        ("namespace", "{{ namespace }}"),
        ("caller", "{{ caller }}"),
        ("loop", "{% for i in [1] %}{% endfor %}{{ loop }}"),
        ("loop", "{% set lp = loop %}{{ lp }}"),
    ] {
        let rendered = Project::with_template(body).render("p", json!({name: "given"})).unwrap();
        assert_eq!(named(&rendered, "given"), BTreeSet::from([name.to_owned()]), "{body}");
    }
}

/// What is wrong with a detour of `a`; nothing, if it is followed.
fn lost(body: &str, files: &[(&str, &str)]) -> Option<String> {
    let rendered = match project(false, body, files).render("p", variables()) {
        Ok(rendered) => rendered,
        Err(error) => return Some(format!("{body}: {error}")),
    };
    let paths = named(&rendered, "system:");
    if !rendered.text().contains("system:") {
        return Some(format!("{body}: does not show it: {:?}", rendered.text()));
    }
    if !paths.iter().any(|path| path.split(['.', '[']).next() == Some("a")) {
        return Some(format!("{body}: named are {paths:?}"));
    }
    match project(true, body, files).render("p", variables()) {
        Ok(_) => Some(format!("{body}: not refused")),
        Err(error) if error.kind() == ErrorKind::StrictViolation => None,
        Err(error) => Some(format!("{body}: {error}")),
    }
}

/// Bodies alone, or with one further file `part.md`.
fn all_are_followed(detours: &[(&str, &str)]) {
    let lost: Vec<String> =
        detours.iter().filter_map(|(body, part)| lost(body, &[("part.md", part)])).collect();
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

#[test]
fn a_namespace_holds_what_was_put_into_it_under_any_name() {
    all_are_followed(&[
        (r#"{% set ns = namespace(v="") %}{% set m = ns %}{% set m.v = a %}{{ ns.v }}"#, ""),
        (r#"{% set ns = namespace(v="") %}{% with n = ns %}{% set n.v = a %}{% endwith %}{{ ns.v }}"#, ""),
        (r#"{% set ns = namespace(v="") %}{% for n in [ns] %}{% set n.v = a %}{% endfor %}{{ ns.v }}"#, ""),
        (
            r#"{% set ns = namespace(v="") %}{% macro put(n) %}{% set n.v = a %}{% endmacro %}{{ put(ns) }}{{ ns.v }}"#,
            "",
        ),
        (
            r#"{% set ns = namespace(v="") %}{% macro put(n, x) %}{% set n.v = x %}{% endmacro %}{{ put(ns, a) }}{{ ns.v }}"#,
            "",
        ),
        (
            r#"{% set ns = namespace(v="") %}{% macro put(n, x) %}{% set y = [x] %}{% set n.v = y[0] %}{% endmacro %}{{ put(ns, x=a) }}{{ ns.v }}"#,
            "",
        ),
        (
            r#"{% set ns = namespace(v="") %}{% set d = {"n": ns} %}{% set m = d.n %}{% set m.v = a %}{{ d.n.v }}"#,
            "",
        ),
        (
            r#"{% set ns = namespace(in=namespace(v="")) %}{% set m = ns.in %}{% set m.v = a %}{{ ns.in.v }}"#,
            "",
        ),
        (r#"{% set ns = namespace({"v": a}) %}{% set m = [ns]|first %}{{ m.v }}"#, ""),
        (r#"{% set ns = namespace({"v w": a}) %}{{ ns["v w"] }}"#, ""),
        (r#"{% set ns = namespace(**{"v": a}) %}{{ ns.v }}"#, ""),
        (
            r#"{% set ns = namespace(v="") %}{% set m = ns %}{% set m.v = a %}{{ ns }}{{ ns|attr("v") }}{{ ns[l[0]|replace("first", "v")] }}"#,
            "",
        ),
        (r#"{% set ns = namespace(v="") %}{% set m = ns %}{% set m.v %}{{ a }}{% endset %}{{ ns.v }}"#, ""),
        (r#"{% set ns = namespace(v="") %}{% set m = ns %}{% set x, m.v = 1, a %}{{ ns.v }}"#, ""),
        (r#"{% set make = namespace %}{% set ns = make(v=a) %}{% set m = ns %}{{ m.v }}"#, ""),
        (
            r#"{% set ns = namespace(f="") %}{% macro o(p) %}{% macro i() %}{{ p }}{% endmacro %}{% set n = ns %}{% set n.f = i %}{% endmacro %}{{ o(a) }}{{ ns.f() }}"#,
            "",
        ),
        (
            r#"{% set ns = namespace(f="") %}{% macro o() %}{% set n = ns %}{% set n.f = caller %}{% endmacro %}{% call o() %}{{ a }}{% endcall %}{{ ns.f() }}"#,
            "",
        ),
        (
            r#"{% set ns = namespace(v="") %}{% for i in l recursive %}{% set m = ns %}{% if i == "first" %}{{ loop([a]) }}{% endif %}{% set m.v = i if i not in l else m.v %}{% endfor %}{{ ns.v }}"#,
            "",
        ),
    ]);
}

#[test]
fn a_namespace_is_followed_over_the_borders_of_templates() {
    all_are_followed(&[
        (r#"{% set ns = namespace(v="") %}{% set ns.v = a %}{% include "part.md" %}"#, "{{ ns.v }}"),
        (r#"{% set ns = namespace(v="") %}{% include "part.md" %}{{ ns.v }}"#, "{% set ns.v = a %}"),
        (
            r#"{% set ns = namespace(v="") %}{% include "part.md" %}{{ ns.v }}"#,
            "{% set m = ns %}{% set m.v = a %}",
        ),
        (
            r#"{% set ns = namespace(v="") %}{% macro m(p) %}{% set y = p %}{% include "part.md" %}{% endmacro %}{% if ns %}{% endif %}{{ m(a) }}{{ ns.v }}"#,
            "{% set ns.v = y %}",
        ),
        (
            r#"{% set ns = namespace(v="") %}{% import "part.md" as e %}{{ e.put(ns, a) }}{{ ns.v }}"#,
            "{% macro put(n, x) %}{% set n.v = x %}{% endmacro %}",
        ),
        (
            r#"{% import "part.md" as e %}{% set m = e.k %}{% set m.v = a %}{{ e.get() }}"#,
            "{% set k = namespace(v='') %}{% macro get() %}{{ k.v }}{% endmacro %}",
        ),
        (
            r#"{% extends "part.md" %}{% block b %}{% set ns.v = a %}{% endblock %}"#,
            "user:\n{% set ns = namespace(v='') %}{% block b %}{% endblock %}{{ ns.v }}",
        ),
        (
            r#"{% extends "part.md" %}{% set ns = namespace(v='') %}{% block b %}{{ ns.v }}{% endblock %}"#,
            "user:\n{% set ns.v = a %}{% block b %}{% endblock %}",
        ),
    ]);
}

#[test]
fn a_loop_shows_its_items_and_its_body() {
    all_are_followed(&[
        ("{% for i in [1, a, 2] %}{{ loop.nextitem }}{% endfor %}", ""),
        ("{% for i in [1, a, 2] %}{{ loop.previtem }}{% endfor %}", ""),
        ("{% for i in [1, a, 2] %}{% set lp = loop %}{{ lp.previtem }}{% endfor %}", ""),
        ("{% for i in [1, a, 2] %}{{ loop['nextitem'] }}{{ loop|attr('nextitem') }}{% endfor %}", ""),
        ("{% for i in [1, a, 2] %}{% for j in [loop] %}{{ j.nextitem }}{% endfor %}{% endfor %}", ""),
        (
            "{% for i in t recursive %}{{ i.v }}{% if i.c %}{{ loop(i.c) }}{% else %}{{ a }}{% endif %}{% endfor %}",
            "",
        ),
        (
            "{% for i in t recursive %}{{ i.v }}{% if i.c %}{% set x = loop(i.c) %}{{ x }}{% else %}{{ a }}{% endif %}{% endfor %}",
            "",
        ),
        ("{% for i in l recursive %}{{ i }}{% if i == 'first' %}{{ loop([a]) }}{% endif %}{% endfor %}", ""),
        (
            "{% for i in l recursive %}{% set lp = loop %}{{ i }}{% if i == 'first' %}{{ lp([a]) }}{% endif %}{% endfor %}",
            "",
        ),
    ]);
}

#[test]
fn an_imported_template_shows_what_it_has_set() {
    all_are_followed(&[
        (r#"{% import "part.md" as e with context %}{{ e.z }}"#, "{% set z = a %}"),
        (r#"{% from "part.md" import z with context %}{{ z }}"#, "{% set z = a %}"),
        (r#"{% from "part.md" import z as y with context %}{{ y }}"#, "{% set z = a %}"),
        (r#"{% import "part.md" as e with context %}{% set d = e %}{{ d["z"] }}"#, "{% set z = a %}"),
        (r#"{% set q = a %}{% import "part.md" as e with context %}{{ e.z }}"#, "{% set z = q %}"),
        (r#"{% import "part.md" as e with context %}{{ e.z.k }}"#, "{% set z = {'k': a} %}"),
        (r#"{% import "part.md" as e with context %}{{ e.m() }}"#, "{% macro m() %}{{ a }}{% endmacro %}"),
        (r#"{% import "part.md" as e %}{{ e.m(a) }}"#, "{% macro m(x) %}{{ x }}{% endmacro %}"),
    ]);
}

#[test]
fn a_name_is_what_was_last_set_wherever_that_was() {
    all_are_followed(&[
        (
            "{% extends 'part.md' %}{% set z = 'lit' %}{% block b %}{{ z }}{% endblock %}",
            "user:\n{% set z = a %}{% block b %}{% endblock %}",
        ),
        ("{% macro m() %}{{ a }}{% endmacro %}{% for a in l %}{% endfor %}{{ m() }}", ""),
        (
            "{% macro m1() %}{{ m2() }}{% endmacro %}{% macro m2() %}{{ m3() }}{% endmacro %}{% macro m3() %}{{ m4() }}{% endmacro %}{% macro m4() %}{{ a }}{% endmacro %}{{ m1() }}",
            "",
        ),
        ("{% macro m() %}{{ a }}{% endmacro %}{% include 'part.md' %}", "{{ m() }}"),
    ]);
}

/// The texts are those of Jinja2 3.1.6: what a template sets ends with the block, the loop or the file.
#[test]
fn names_end_where_they_end_in_jinja() {
    for (body, part, wanted) in [
        ("{% for i in [1, a, 2] %}{% include 'part.md' %}{% endfor %}", "[{{ loop }}]", "[][][]"),
        ("{% set z = 'lit' %}{% include 'part.md' %}{{ z }}", "{% set z = a %}", "lit"),
        (
            "{% set z = 'lit' %}{% include 'part.md' %}{% set y = z %}{{ y }}",
            "{% if a %}{% set z = a %}{% endif %}",
            "lit",
        ),
        ("{% for z in l %}{% include 'part.md' %}{{ z }}{% endfor %}", "{% set z = a %}", "firstsecond"),
        (
            "{% extends 'part.md' %}{% set z = 'lit' %}{% block b %}{{ z }}{% endblock %}",
            "{% for z in [a] %}{% block b %}{% endblock %}{% endfor %}",
            "lit",
        ),
        (
            "{% extends 'part.md' %}{% block b %}{% set z = a %}{{ super() }}{% endblock %}",
            "{% set z = 'lit' %}{% block b %}{{ z }}{% endblock %}",
            "lit",
        ),
        ("{% set x %}{% set z = a %}{% endset %}[{{ z }}]", "", "[]"),
        ("{% filter upper %}{% set z = a %}{% endfilter %}[{{ z }}]", "", "[]"),
        ("{% macro m() %}{{ a }}{% endmacro %}[{{ m() }}]{% set a = 'lit' %}", "", "[]"),
        ("{% for x in [] %}{% else %}{% set z = a %}{% endfor %}[{{ z }}]", "", "[]"),
        ("{% set q = a %}{% include 'part.md' %}[{{ z }}]", "{% set z = q %}", "[]"),
        ("{% set q = a %}{% import 'part.md' as e %}[{{ e.z }}]", "{% set z = q %}", "[]"),
        ("{% import 'part.md' as e %}[{{ e.m() }}]", "{% macro m() %}{{ a }}{% endmacro %}", "[]"),
        ("{% from 'part.md' import a as y %}[{{ y }}]", "nothing", "[]"),
        ("{% set q = a %}{% from 'part.md' import q as y %}[{{ y }}]", "nothing", "[]"),
    ] {
        let text = Project::with_template(body).file("prompts/part.md", part).text("p", variables());
        assert_eq!(text, wanted, "{body}");
    }
}

#[test]
fn names_are_followed_over_many_borders() {
    let mut files = vec![("f0.md".to_owned(), "{{ n0 }}".to_owned())];
    for number in 1..10 {
        let below = number - 1;
        files.push((
            format!("f{number}.md"),
            format!("{{% set n{below} = n{number} %}}{{% include 'f{below}.md' %}}"),
        ));
    }
    files.push(("base.md".to_owned(), "{% set n9 = a %}{% block b %}{% endblock %}".to_owned()));
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    assert_eq!(lost("{% set n9 = a %}{% include 'f9.md' %}", &files), None);
    let child = "{% extends 'base.md' %}{% set n9 = 'lit' %}{% block b %}{% include 'f9.md' %}{% endblock %}";
    assert_eq!(lost(child, &files), None);
}

#[test]
fn paths_are_those_of_the_variables() {
    let shown = |body: &str, variables: serde_json::Value, text: &str| {
        let project = Project::with_template(body);
        named(&project.render("p", variables).unwrap(), text).into_iter().collect::<Vec<_>>()
    };
    let variables = json!({"a": "one", "l": [{"k": "two"}], "n": 3, "u": {"name": "Ann"}});
    for (body, text, wanted) in [
        ("{% set ns = namespace(v='') %}{% set ns.v = a %}{{ ns.v }}", "one", "a"),
        ("{% set ns = namespace(v=a) %}{{ ns.v }}", "one", "a"),
        (
            "{% set ns = namespace(v='') %}{% for i in l %}{% set ns.v = i.k %}{% endfor %}{{ ns.v }}",
            "two",
            "l[0].k",
        ),
        ("{% set ns = namespace(d={}) %}{% set ns.d = dict(ns.d, k=a) %}{{ ns.d.k }}", "one", "a"),
        ("{% set ns = namespace(u=u) %}{{ ns.u.name }}", "Ann", "u.name"),
        ("{% for i in range(n) %}{{ i }}{% endfor %}", "2", "n"),
        ("{% for x in [u] %}{{ x.name }}{% endfor %}", "Ann", "u.name"),
        ("{% set d = {'k': a} %}{{ d.k }}", "one", "a"),
    ] {
        assert_eq!(shown(body, variables.clone(), text), [wanted], "{body}");
    }
}
