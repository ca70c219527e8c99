//! Errors with their places and their ways out.

use serde_json::json;

use super::Case;
use crate::error::ErrorKind;

fn syntax(text: &str) -> String {
    let error = Case::new(text).compile().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::PromptRead);
    crate::json::shown(error.diagnostics())
}

#[test]
fn a_tag_without_its_end_is_shown_where_it_begins() {
    assert_eq!(
        syntax("a\nb {{name and\nc"),
        "\
error main.md:2:3: the tag is not closed [CB304]
  at {{name and -- begins here
  help: this tag must end with `}}`
"
    );
    assert!(syntax("{{name} and {{other}}").starts_with("error main.md:1:1: the tag is not closed"));
    assert!(syntax("{{{name}} and {{{other}}}").contains("help: this tag must end with `}}}`"));
    assert!(syntax("{{=<% %>=}}<%name").contains("help: this tag must end with `%>`"));
    assert!(syntax("{{").contains("main.md:1:1"));
    assert!(syntax("{{! comment").contains("main.md:1:1"));
}

#[test]
fn a_section_that_is_never_closed_is_shown_where_it_was_opened() {
    assert_eq!(
        syntax("a\n{{#b}}\n{{^c}}{{/c}}"),
        "\
error main.md:2:1: `{{#b}}` is not closed [CB304]
  at {{#b}} -- opened here
  help: add `{{/b}}` at its end
"
    );
    assert!(syntax("{{=| |=}}|$b|").contains("help: add `|/b|`"));
    assert!(syntax("{{<b}}").contains("`{{<b}}` is not closed"));
}

#[test]
fn a_wrong_end_is_shown_with_what_is_open() {
    assert_eq!(
        syntax("{{#items}}x{{/item}}"),
        "\
error main.md:1:12: unexpected `{{/item}}` [CB304]
  at {{/item}} -- does not match the open tag
  and main.md:1:1 {{#items}} -- open tag
  help: did you mean `{{/items}}`?
"
    );
    assert_eq!(
        syntax("{{#a}}{{^b}}{{/a}}{{/b}}"),
        "\
error main.md:1:13: unexpected `{{/a}}` [CB304]
  at {{/a}} -- does not match the open tag
  and main.md:1:7 {{^b}} -- open tag
  help: close `{{^b}}` first: add `{{/b}}` before it
"
    );
    assert_eq!(
        syntax("x{{/a}}"),
        "\
error main.md:1:2: unexpected `{{/a}}` [CB304]
  at {{/a}} -- nothing is open
  help: remove it, or add its opening tag
"
    );
}

#[test]
fn names_that_cannot_be_get_a_hint() {
    for (text, hint) in [
        ("{{}}", "add a name, as in `{{name}}`"),
        ("{{# }}", "add a name, as in `{{#name}}`"),
        ("{{#a}}{{/}}", "add the name, as in `{{/name}}`"),
        ("{{>}}", "add a name, as in `{{>name}}`"),
        ("{{>*}}", "add a name, as in `{{>name}}`"),
        ("{{a..b}}", "join names with single dots"),
        ("{{.a}}", "join names with single dots"),
        ("{{a.}}", "join names with single dots"),
        ("{{ name | upper }}", "Mustache has no filters and no operators: write one name, as in `{{name}}`"),
        ("{{ if x }}", "Mustache has no `if`: `{{#name}}…{{/name}}` shows its content"),
        ("{{#a b}}{{/a b}}", "write one name, as in `{{#a}}`"),
        ("{{$a b}}{{/a b}}", "write one name, as in `{{$a}}`"),
    ] {
        let shown = syntax(text);
        assert!(shown.contains(hint) && shown.contains("[CB304]"), "{text}\n{shown}");
    }
}

#[test]
fn delimiters_that_cannot_be_are_refused() {
    for text in ["{{==}}", "{{=<%=}}", "{{=a b c=}}", "{{= =a b =}}", "{{= =}}"] {
        let shown = syntax(text);
        assert!(shown.contains("invalid delimiters"), "{text}\n{shown}");
        assert!(shown.contains("as in `{{=<% %>=}}`"), "{text}\n{shown}");
    }
}

#[test]
fn all_missing_partials_are_reported_before_the_render() {
    let case = Case::new("{{>rles}}\n{{#x}}{{<nothing}}{{/nothing}}{{/x}}").with(&[("rules", "")]);
    assert_eq!(
        case.shown_error(json!({})),
        "\
error main.md:1:1: no template `rles` found [CB306]
  at {{>rles}} -- (no label)
  help: did you mean `rules`?
error main.md:2:7: no template `nothing` found [CB306]
  at {{<nothing}} -- (no label)
  help: paths are relative to the prompts' folder, as in `partials/safety_rules.md`
"
    );
    assert_eq!(Case::new("[{{>x}}]").set(super::empty_partials).text(json!({})), "[]");
}

#[test]
fn a_missing_computed_partial_is_an_error_of_the_render() {
    let case = Case::new("{{>*which}}").with(&[("rules", "")]);
    assert_eq!(
        case.shown_error(json!({"which": "rulez"})),
        "\
error main.md:1:1: no template `rulez` found [CB306]
  at {{>*which}} -- (no label)
  help: did you mean `rules`?
"
    );
}

#[test]
fn strict_templates_name_what_is_missing_and_what_is_near() {
    let strict = |text: &str| Case::new(text).set(|settings| settings.strict = true);
    let case = strict("Hi\n {{>p}}").with(&[("p", "{{#user}}{{nme}}{{/user}}")]);
    assert_eq!(
        case.shown_error(json!({"user": {"name": "Al"}})),
        "\
error p:1:12: `nme` has no value [CB502]
  at nme -- unknown name
  and main.md:2:2 {{>p}} -- used from here
  help: did you mean `name`?
"
    );
    let shown = strict("{{user.nme}}").shown_error(json!({"user": {"name": "Al"}}));
    assert!(shown.contains("did you mean `user.name`?"), "{shown}");
    let shown = strict("{{x}}").shown_error(json!({"user": 1}));
    assert!(shown.contains("print it only if it has one: `{{#x}}…{{/x}}`"), "{shown}");
    // Asking whether something is there stays allowed, and null is there.
    assert_eq!(strict("{{#x}}{{x}}{{/x}}{{^x}}-{{/x}}{{n}}").text(json!({"n": null})), "-");
    assert!(strict("{{>*x}}").shown_error(json!({})).contains("`x` has no value"));
}
