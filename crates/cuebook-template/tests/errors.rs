//! Errors point at the expression, name the variable, and know what was meant.

use cuebook_template::{Environment, Error, ErrorKind};
use serde_json::json;

fn error(text: &str) -> Error {
    let mut env = Environment::new()
        .typed_filter("shorten", |text: String| text)
        .typed_function("greeting", || "hi")
        .loader(|name| match name {
            "forms" => Some("{% macro input(name) %}{{ nmae|uper }}{% endmacro %}".to_owned()),
            "good" => Some("{% macro input(name) %}{% endmacro %}".to_owned()),
            _ => None,
        });
    env.strict = true;
    let values = json!({"user": {"name": "Ada", "age": 3}, "items": [{"title": "x"}], "n": 1, "text": "t"});
    let result = env
        .compile("main", text)
        .and_then(|template| env.render(&template, values.as_object().expect("an object")));
    result.expect_err(text)
}

/// The text that an error is about, its message, and its help.
fn parts(text: &str) -> (String, String, String) {
    let error = error(text);
    let place = error.range().map(|range| range.of(text).to_owned()).unwrap_or_default();
    (place, error.message().to_owned(), error.hint().unwrap_or_default().to_owned())
}

fn expect(text: &str, place: &str, message: &str, help: &str) {
    let found = parts(text);
    assert_eq!((found.0.as_str(), found.1.as_str(), found.2.as_str()), (place, message, help), "{text}");
}

#[test]
fn an_error_points_at_the_expression_and_names_the_variable() {
    expect("a {{ nothing }} b", "nothing", "`nothing` is undefined", "");
    expect("{{ 1 + nothing }}", "1 + nothing", "`nothing` is undefined", "");
    expect("{{ user.name ~ nothing.a }}", "nothing.a", "`nothing` is undefined", "");
    let message = "`user.nmae` is undefined: a dict has no attribute `nmae`";
    expect("{{ [user.nmae|upper] }}", "upper", message, "did you mean `name`?");
    expect("{% if user.nmae %}{% endif %}", "user.nmae", message, "did you mean `name`?");
    let message = "`items[7]` is undefined: a list has no such item";
    expect("{{ items[7].title }}", "items[7].title", message, "");
    let message = "`item.tilte` is undefined: a dict has no attribute `tilte`";
    expect(
        "{% for item in items %}{{ item.tilte }}{% endfor %}",
        "item.tilte",
        message,
        "did you mean `title`?",
    );
    expect(
        "{{ n|round('x') }}",
        "round",
        "the argument `precision` of `round` must be an integer, not a string",
        "",
    );
}

#[test]
fn unknown_names_get_the_nearest_ones() {
    expect("{{ text|uper }}", "uper", "unknown filter `uper`", "did you mean `upper`?");
    expect("{{ text|shortn }}", "shortn", "unknown filter `shortn`", "did you mean `shorten` or `sort`?");
    expect("{{ n is evn }}", "evn", "unknown test `evn`", "did you mean `even`?");
    expect("{{ rang(3) }}", "rang(3)", "`rang` is undefined", "did you mean `range`?");
    expect("{{ greting() }}", "greting()", "`greting` is undefined", "did you mean `greeting`?");
    let message = "`text.uper` is undefined: a string has no attribute `uper`";
    expect("{{ text.uper() }}", "text.uper()", message, "did you mean `upper`?");
    let message = "`user.itms` is undefined: a dict has no attribute `itms`";
    expect("{{ user.itms() }}", "user.itms()", message, "did you mean `items`?");
    let message = "`loop.indx` is undefined: a loop has no attribute `indx`";
    expect(
        "{% for i in items %}{{ loop.indx }}{% endfor %}",
        "loop.indx",
        message,
        "did you mean `index` or `index0`?",
    );
    expect("{% fro x in y %}{% endfor %}", "fro", "unknown tag `fro`", "did you mean `for`?");
    let message = "`ns.cuont` is undefined: a namespace has no attribute `cuont`";
    expect("{% set ns = namespace(count=1) %}{{ ns.cuont }}", "ns.cuont", message, "did you mean `count`?");
}

#[test]
fn names_inside_of_macros_are_no_different() {
    let inside = |body: &str| format!("{{% macro helper(x) %}}{body}{{% endmacro %}}{{{{ helper(1) }}}}");
    expect(&inside("{{ x|uper }}"), "uper", "unknown filter `uper`", "did you mean `upper`?");
    expect(&inside("{{ x is evn }}"), "evn", "unknown test `evn`", "did you mean `even`?");
    expect(&inside("{{ helpr(x) }}"), "helpr(x)", "`helpr` is undefined", "did you mean `helper`?");
    let message = "`user.nmae` is undefined: a dict has no attribute `nmae`";
    expect(&inside("{{ user.nmae }}"), "user.nmae", message, "did you mean `name`?");
    let message = "`forms.imput` is undefined: a module has no attribute `imput`";
    let text = inside("{% import 'good' as forms %}{{ forms.imput() }}");
    expect(&text, "forms.imput()", message, "did you mean `input`?");
}

#[test]
fn an_error_in_another_template_names_it() {
    let error = error("{% from 'forms' import input %}{{ input('a') }}");
    assert_eq!((error.kind(), error.template()), (ErrorKind::Unknown, Some("forms")));
}
