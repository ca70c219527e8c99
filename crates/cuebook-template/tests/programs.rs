//! What programs add: filters, tests, functions and loaders, and the variables they give.

use std::collections::BTreeMap;

use cuebook_template::{Environment, Error, ErrorKind, Output, Serialized, Template};
use serde::Serialize;
use serde_json::{Map, Value as Json, json};

fn render(env: &Environment, text: &str, variables: &Json) -> Result<String, Error> {
    let template = env.compile("main", text)?;
    env.render(&template, variables.as_object().expect("an object")).map(|output| output.text().to_owned())
}

#[derive(Serialize)]
struct Point {
    x: i64,
    y: i64,
}

fn environment() -> Environment {
    Environment::new()
        .typed_filter("repeat", |text: String, times: usize| -> String { text.repeat(times) })
        .typed_filter("or_dash", |text: Option<String>| text.unwrap_or_else(|| "-".to_owned()))
        .typed_filter("point", |x: i64, y: Option<i64>| Serialized(Point { x, y: y.unwrap_or(0) }))
        .typed_filter("words", |text: String| text.split(' ').map(str::to_owned).collect::<Vec<String>>())
        .typed_test("between", |number: f64, low: f64, high: f64| low <= number && number <= high)
        .typed_function("now", || "noon")
        .typed_function("parse", |text: String| text.parse::<i64>())
        .typed_function("count", |items: Vec<Json>, lookup: BTreeMap<String, i64>| items.len() + lookup.len())
        .global("limits", json!({"most": 3}))
}

#[test]
fn closures_take_and_return_types() {
    let env = environment();
    let values = json!({"s": "ab", "n": 5, "list": [1, 2], "map": {"a": 1}, "nil": null});
    for (text, expected) in [
        ("{{ s|repeat(3) }}", "ababab"),
        ("{{ missing|or_dash }}{{ nil|or_dash }}{{ s|or_dash }}", "--ab"),
        ("{{ (n|point(2)).x }},{{ (n|point).y }}", "5,0"),
        ("{{ 'a b'|words|last }}", "b"),
        ("{{ n is between(1, 5) }} {{ n is not between(6, 7.5) }}", "True True"),
        ("{{ now() }} {{ parse('12') + 1 }} {{ count(list, map) }}", "noon 13 3"),
        ("{{ limits.most }}", "3"),
        ("{{ list|map('repeat', 2)|list }}", "error"),
    ] {
        let got = render(&env, text, &values);
        match expected {
            "error" => assert_eq!(got.expect_err(text).kind(), ErrorKind::Raised),
            _ => assert_eq!(got.expect(text), expected),
        }
    }
}

#[test]
fn wrong_arguments_name_the_function_and_the_argument() {
    let env = environment();
    let message = |text: &str| render(&env, text, &json!({"s": "ab"})).expect_err(text).message().to_owned();
    assert_eq!(message("{{ s|repeat }}"), "`repeat`: argument 2 is missing");
    assert!(message("{{ s|repeat('x') }}").starts_with("`repeat`: argument 2: invalid type: string \"x\""));
    assert_eq!(
        message("{{ s|repeat(1, 2) }}"),
        "`repeat`: at most 2 arguments are possible, and 3 are given"
    );
    assert_eq!(message("{{ s|repeat(times=1) }}"), "`repeat`: there is no argument `times`");
    assert_eq!(message("{{ parse('x') }}"), "`parse`: invalid digit found in string");
}

#[test]
fn a_result_of_a_function_originates_in_its_arguments() {
    let env = environment();
    let template = env.compile("main", "{{ s|repeat(n) }}").expect("valid");
    let values = json!({"s": "ab", "n": 2});
    let output = env.render(&template, values.as_object().expect("an object")).expect("renders");
    let paths: Vec<String> = output.paths_at(0).iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["s", "n"]);
}

#[test]
fn a_loader_that_fails_is_no_missing_template() {
    let env = Environment::new().try_loader(|name| match name {
        "there" => Ok(Some("text".to_owned())),
        "locked" => Err("permission denied"),
        _ => Ok(None),
    });
    assert_eq!(render(&env, "{% include 'there' %}", &json!({})).expect("exists"), "text");
    assert_eq!(render(&env, "{% include 'no' ignore missing %}", &json!({})).expect("is skipped"), "");
    let error = render(&env, "{% include 'locked' ignore missing %}", &json!({})).expect_err("fails");
    assert_eq!(error.message(), "the template `locked` cannot be loaded: permission denied");
    let error = render(&env, "{% include 'no' %}", &json!({})).expect_err("is missing");
    assert_eq!(error.kind(), ErrorKind::TemplateNotFound);
}

#[test]
fn variables_come_from_anything_that_serde_writes() {
    let env = Environment::new();
    let template = env.compile("main", "{{ x }}/{{ y }}").expect("valid");
    assert_eq!(env.render_from(&template, &Point { x: 1, y: 2 }).expect("a struct").text(), "1/2");
    let map = BTreeMap::from([("x", "a"), ("y", "b")]);
    assert_eq!(env.render_from(&template, &map).expect("a map").text(), "a/b");
    assert_eq!(env.render_from(&template, &[1]).expect_err("a list").kind(), ErrorKind::Type);
}

#[test]
fn templates_and_environments_are_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Environment>();
    shared::<Template>();
    shared::<Output>();
    shared::<Error>();
    let env = Environment::new();
    let template = env.compile("main", "{% for i in range(3) %}{{ i }}{{ x }}{% endfor %}").expect("valid");
    std::thread::scope(|scope| {
        for x in 0..4 {
            let (env, template) = (&env, &template);
            scope.spawn(move || {
                let values: Map<String, Json> = Map::from_iter([("x".to_owned(), json!(x))]);
                assert_eq!(env.render(template, &values).expect("renders").text(), format!("0{x}1{x}2{x}"));
            });
        }
    });
}
