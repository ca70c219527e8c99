//! Limits, and what a render says when it meets one.

use serde_json::json;

use super::Case;
use crate::error::{Code, ErrorKind};

#[test]
fn text_beyond_the_limit_is_refused() {
    let mut case = Case::new("{{#a}}12345{{/a}}");
    case.limit = 12;
    assert_eq!(case.text(json!({"a": [1, 2]})), "1234512345");
    let error = case.error(json!({"a": [1, 2, 3]}));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::OutputTooLarge));
    assert_eq!(error.field("limit"), Some(&json!(12)));
}

#[test]
fn a_render_that_takes_too_many_steps_is_stopped() {
    let case = Case::new("{{#a}}{{#b}}{{c}}{{/b}}{{/a}}").set(|settings| settings.fuel = 1000);
    let many: Vec<u8> = vec![1; 100];
    let error = case.error(json!({"a": many, "b": many}));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::OutOfFuel));
    assert!(error.diagnostic().place.is_some());
}

#[test]
fn sections_that_show_nothing_cost_steps_too() {
    let case = Case::new("{{#a}}{{#a}}{{#a}}{{/a}}{{/a}}{{/a}}").set(|settings| settings.fuel = 10_000);
    assert_eq!(case.error(json!({"a": vec![1; 100]})).code(), Code::OutOfFuel);
}

#[test]
fn endless_self_include_stops_with_its_place() {
    let case = Case::new("{{>a}}").with(&[("a", "x {{>b}}"), ("b", "{{>a}}")]);
    assert_eq!(
        case.shown_error(json!({})),
        "\
error b:1:1: sections, blocks and partials are nested more than 500 deep [CB505]
  at {{>a}} -- (no label)
  and a:1:3 {{>b}} -- used from here
  and main.md:1:1 {{>a}} -- used from here
  help: look for a partial that includes itself, or raise `limits.recursion` in cuebook.toml, and grant it: cuebook allow
"
    );
}

#[test]
fn a_block_that_replaces_itself_is_stopped() {
    let case = Case::new("{{<p}}{{$a}}{{$a}}{{/a}}{{/a}}{{/p}}").with(&[("p", "{{$a}}{{/a}}")]);
    assert_eq!(case.error(json!({})).code(), Code::TooDeep);
}

#[test]
fn a_text_that_nests_too_deeply_is_refused_when_it_is_read() {
    let nested = |levels: usize| "{{#a}}".repeat(levels) + &"{{/a}}".repeat(levels);
    assert_eq!(Case::new(nested(499)).text(json!({"a": {"a": 1}})), "");
    let error = Case::new(nested(100_000)).compile().err().unwrap();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::TooDeep));
}

#[test]
fn templates_in_a_row_are_counted() {
    let names: Vec<String> = (0..5).map(|index| format!("p{index}")).collect();
    let texts: Vec<(String, String)> = names
        .iter()
        .enumerate()
        .map(|(index, name)| (name.clone(), format!("{{{{>p{}}}}}", (index + 1) % 5)))
        .collect();
    let partials: Vec<(&str, &str)> =
        texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let compile =
        |depth| Case::new("{{>p0}}").with(&partials).set(|settings| settings.include_depth = depth).compile();
    assert!(compile(5).is_ok());
    let error = compile(4).err().unwrap();
    assert_eq!(error.code(), Code::TooDeep);
    assert_eq!(error.diagnostic().place.as_ref().unwrap().file(), "p3");
}

#[test]
fn templates_with_computed_names_are_counted_and_compiled_once() {
    let names: Vec<String> = (0..65).map(|index| format!("p{index}")).collect();
    let partials: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "{{.}} ")).collect();
    let case = Case::new("{{#names}}{{>*.}}{{/names}}").with(&partials);
    let template = case.compile().unwrap();
    let render = |count: usize| {
        let scope = json!({"names": names[..count]});
        template.render(&scope, 10_000)
    };
    assert_eq!(render(2).unwrap().text, "p0 p1 ");
    assert_eq!(render(64).unwrap().units.len(), 65);
    assert_eq!(render(65).err().unwrap().code(), Code::TooDeep);
    assert_eq!(render(3).unwrap().text, "p0 p1 p2 ");
}

#[test]
fn too_long_or_deep_values_are_refused_by_name() {
    let case = Case::new("{{list}}").set(|settings| settings.string_bytes = 10);
    assert_eq!(case.text(json!({"list": [1, 2, 3]})), "[1,2,3]");
    let error = case.error(json!({"list": [1, 2, 3, 4, 5, 6]}));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::ValueTooLarge));
    assert_eq!(error.diagnostic().place.as_ref().unwrap().text(), "list");
    let mut deep = json!(1);
    for _ in 0..200 {
        deep = json!([deep]);
    }
    assert_eq!(Case::new("{{x}}").error(json!({"x": deep})).code(), Code::ValueTooLarge);
}
