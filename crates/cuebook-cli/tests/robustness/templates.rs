//! Templates without end.

use crate::robust_support::Project;
use crate::{TEMPLATE, fails};

/// Renders a template that must fail, within the limits on time and memory, and gives the code.
#[track_caller]
fn hostile(template: impl AsRef<[u8]>) -> String {
    hostile_within("file_size = 20000000", template)
}

/// The same with other limits of the project's.
#[track_caller]
fn hostile_within(limits: &str, template: impl AsRef<[u8]>) -> String {
    let project =
        Project::new().write("cuebook.toml", format!("[limits]\n{limits}\n")).write(TEMPLATE, template);
    assert_eq!(project.run(&["allow", "--yes"]).code, Some(0));
    let text = project.run(&["render", "p"]);
    assert_eq!(text.code, Some(1), "{:.300} {:.2000}", String::from_utf8_lossy(&text.stdout), text.stderr);
    assert!(text.stdout.is_empty());
    assert!(text.stderr.len() < 10_000, "{} bytes of explanation", text.stderr.len());
    project.run(&["render", "p", "--json"]).error()["code"].as_str().unwrap().to_owned()
}

#[test]
fn nesting_without_end_is_refused_before_it_uses_up_the_stack() {
    for (open, close) in [("(", ")"), ("[", "]"), ("{1:", "}")] {
        let nested = format!("{{{{ {}1{} }}}}", open.repeat(100_000), close.repeat(100_000));
        assert_eq!(hostile(nested), "CB505");
    }
    // Each `{{` begins a tag.
    assert_eq!(hostile("{{".repeat(5_000_000)), "CB304");
    let nested = format!("{}{}", "{% if a %}".repeat(100_000), "{% endif %}".repeat(100_000));
    assert_eq!(hostile(nested), "CB505");
}

#[test]
fn long_chains_do_not_use_up_the_stack() {
    let many = |part: &str| part.repeat(100_000);
    for (chain, code) in [
        (format!("{{{{ 1{} }}}}", many("+1")), "CB505"),
        (format!("{{{{ x{} }}}}", many("|upper")), "CB505"),
        (format!("{{{{ x{} }}}}", many(".a")), "CB505"),
        (format!("{{{{ x{} }}}}", many("[0]")), "CB505"),
        (format!("{{{{ x{} }}}}", many("()")), "CB505"),
        (format!("{{{{ {}x }}}}", many("not ")), "CB505"),
        (format!("{{{{ {}1 }}}}", many("-")), "CB505"),
        (format!("{{{{ x{} }}}}", many(" if y else x")), "CB505"),
        (format!("{{{{ x{} }}}}", many(" < x")), "CB502"),
        (format!("{{{{ x{} }}}}", many(" is defined")), "CB304"),
    ] {
        assert_eq!(hostile(&chain), code, "{chain:.40}");
    }
    // The engine evaluates these one after the other.
    for chain in [
        format!("{{{{ x{} }}}}", many("~x")),
        format!("{{{{ x{} }}}}", many(" and x")),
        format!("{{% if a %}}{}{{% endif %}}", many("{% elif b %}")),
    ] {
        let project =
            Project::new().write("cuebook.toml", "[limits]\nfile_size = 20000000\n").write(TEMPLATE, &chain);
        assert_eq!(project.run(&["allow", "--yes"]).code, Some(0));
        let rendered = project.run(&["render", "p"]);
        assert_eq!((rendered.code, rendered.stdout.as_slice()), (Some(0), &b""[..]), "{chain:.40}");
    }
}

#[test]
fn endless_recursion_is_stopped_and_reported_once() {
    let project = Project::new().write(TEMPLATE, "{% include 'p/template.md' %}");
    fails(
        &project,
        &["render", "p"],
        "\
error[CB505]: templates or macros are nested more than 500 deep
 --> prompts/p/template.md:1:1
  |
1 | {% include 'p/template.md' %}
  | ^^^^^^^^^^^---------------
  |            |
  |            used from here
  |
  = help: templates include each other in a cycle: prompts/p/template.md → prompts/p/template.md; if the recursion ends, raise `limits.recursion` in cuebook.toml, and grant it: cuebook allow",
    );
    assert_eq!(hostile("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "CB505");
    assert_eq!(hostile("{% extends 'p/template.md' %}"), "CB307");
    assert_eq!(hostile("{% set n = 'p/template.md' %}{% include n %}"), "CB505");
    assert_eq!(hostile("{% for x in [[1]] recursive %}{{ loop([x]) }}{% endfor %}"), "CB505");
}

#[test]
fn loops_without_end_run_out_of_fuel() {
    let fuel = "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}";
    let project = Project::new().write(TEMPLATE, fuel);
    fails(
        &project,
        &["render", "p"],
        "\
error[CB504]: the template exceeded 5000000 steps
 --> prompts/p/template.md:1:41
  |
1 | {% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}
  |                                         ^^^^^^^^^^^^^
  |
  = help: look for a loop that runs too often, or raise `limits.fuel` in cuebook.toml, and grant it: cuebook allow",
    );
    let code = hostile("{% for i in range(1000000000) %}{% endfor %}");
    assert!(["CB501", "CB504", "CB506"].contains(&&*code), "{code}");
}

#[test]
fn output_without_end_is_stopped() {
    let endless = format!("{{% for i in range(100000) %}}{}{{% endfor %}}", "x".repeat(1000));
    assert_eq!(hostile(endless), "CB503");
}

#[test]
fn nothing_can_double_a_value_for_ever() {
    for grow in [
        "{% set ns.s = ns.s ~ ns.s %}",
        "{% set ns.s = ns.s + ns.s %}",
        "{% set ns.s = ns.s * 2 %}",
        "{% set ns.s = [ns.s, ns.s]|join %}",
        "{% set ns.s = ns.s|replace('x', 'xx') %}",
        "{% set ns.s = '%s%s'|format(ns.s, ns.s) %}",
        "{% set ns.s = '{0}{0}'.format(ns.s) %}",
        "{% set ns.s = ns.s.join(['', '', '']) %}",
        "{% set s %}{{ ns.s }}{{ ns.s }}{% endset %}{% set ns.s = s %}",
        "{% set ns.s = twice(ns.s) %}",
        "{% set ns.s = [ns.s, ns.s]|string %}",
        "{% set ns.s = [ns.s, ns.s]|tojson %}",
    ] {
        let template = format!(
            "{{% macro twice(s) %}}{{{{ s }}}}{{{{ s }}}}{{% endmacro %}}{{% set ns = namespace(s='x') %}}\
             {{% for i in range(100) %}}{grow}{{% endfor %}}"
        );
        // A build without optimisation takes its time for a string of the usual limit, and no other way.
        assert_eq!(hostile_within("string_bytes = 500000", template), "CB506", "{grow}");
    }
}

#[test]
fn one_step_cannot_make_a_value_without_bounds() {
    for (expression, code) in [
        ("'%2000000000d'|format(1)", "CB506"),
        ("'%.2000000000f'|format(1)", "CB506"),
        ("'{:2000000000}'.format(1)", "CB506"),
        ("'x' * 2000000000", "CB506"),
        ("[0] * 2000000000", "CB506"),
        ("'x'.ljust(2000000000)", "CB506"),
        ("'x'|center(2000000000)", "CB506"),
        ("'x'|indent(2000000000, true)", "CB506"),
        ("range(2000000000)|list", "CB506"),
        ("[1]|batch(2000000000, 0)|list", "CB506"),
        ("[1]|slice(2000000000)|list", "CB506"),
    ] {
        assert_eq!(hostile(format!("{{% set x = {expression} %}}")), code, "{expression}");
    }
}

#[test]
fn many_large_values_cannot_be_kept_at_once() {
    let keep = "{% set big = 'x' * 8000000 %}{% set ns = namespace(l=[]) %}\
                {% for i in range(1000) %}{% set ns.l = ns.l + [big ~ i] %}{% endfor %}";
    // Making each of them takes fuel, a step for every 64 bytes.
    assert_eq!(hostile(keep), "CB504");
}

#[test]
fn text_of_the_author_cannot_be_captured_without_end() {
    let text = "x".repeat(4_000);
    for (template, code) in [
        (format!(
            "{{% set s %}}{{% for i in range(100000) %}}{{% for j in range(10) %}}{text}{{% endfor %}}{{% endfor %}}{{% endset %}}"
        ), "CB506"),
        (format!(
            "{{% macro m() %}}{text}{{% endmacro %}}{{% set ns = namespace(l=[]) %}}{{% for i in range(100000) %}}{{% set ns.l = [ns.l, m(), m(), m(), m(), m()] %}}{{% endfor %}}"
        ), "CB504"),
        (format!(
            "{{% filter upper %}}{{% for i in range(100000) %}}{{% for j in range(10) %}}{text}{{% endfor %}}{{% endfor %}}{{% endfilter %}}"
        ), "CB506"),
        ("{% set s %}{% for i in range(100000) %}{% for j in range(10) %}{% include 'p/part.md' %}{% endfor %}{% endfor %}{% endset %}".to_owned(), "CB506"),
    ] {
        let project = Project::new().write(TEMPLATE, &template).write("prompts/p/part.md", &text);
        assert_eq!(project.run(&["render", "p", "--json"]).error()["code"], code, "{:.200}", template);
    }
}
