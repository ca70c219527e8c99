//! How values print, what is true, and that a value is never read as a template.

use serde_json::{Value as Json, json};

use super::Case;

fn printed(value: Json) -> String {
    Case::new("{{{x}}}").text(json!({"x": value}))
}

#[test]
fn values_print_portably() {
    for (value, text) in [
        (json!(true), "true"),
        (json!(false), "false"),
        (json!(null), ""),
        (json!(85), "85"),
        (json!(-3), "-3"),
        (json!(u64::MAX), "18446744073709551615"),
        (json!(1.0), "1"),
        (json!(0.1), "0.1"),
        (json!(123456789.123), "123456789.123"),
        (json!(1e21), "1000000000000000000000"),
        (json!("a\n\"b\""), "a\n\"b\""),
        (json!([]), "[]"),
        (
            json!({"z": [1.0, null, true, "é\"\\\n\u{1}"], "a": {}}),
            "{\"z\":[1,null,true,\"é\\\"\\\\\\n\\u0001\"],\"a\":{}}",
        ),
    ] {
        assert_eq!(printed(value.clone()), text, "{value}");
    }
    assert_eq!(printed(json!(i64::MIN)), i64::MIN.to_string());
    assert_eq!(printed(json!(u64::MAX)), u64::MAX.to_string());
}

#[test]
fn escaping_can_be_turned_off_and_makes_one_piece() {
    let data = json!({"x": "<a href=\"b\">&amp;'</a>"});
    assert_eq!(Case::new("{{x}}").text(data.clone()), "&lt;a href=&quot;b&quot;&gt;&amp;amp;'&lt;/a&gt;");
    assert_eq!(Case::new("{{x}}").run(data.clone()).unwrap().pieces.len(), 1);
    assert_eq!(Case::new("{{x}}").set(|s| s.escape = false).text(data), "<a href=\"b\">&amp;'</a>");
}

#[test]
fn nothing_is_what_mustache_js_takes_for_nothing() {
    let case = Case::new("{{#x}}yes{{/x}}{{^x}}no{{/x}}");
    for value in [json!(null), json!(false), json!(0), json!(0.0), json!(""), json!([])] {
        assert_eq!(case.text(json!({"x": value})), "no", "{value}");
    }
    for value in [json!(true), json!(1), json!(-0.5), json!(" "), json!("false"), json!([0]), json!({})] {
        assert_eq!(case.text(json!({"x": value})), "yes", "{value}");
    }
    assert_eq!(case.text(json!({})), "no");
}

#[test]
fn every_true_value_becomes_the_innermost_one() {
    let case = Case::new("{{#a}}{{.}}{{/a}}{{#b}}{{.}}{{/b}}{{#c}}{{d}}{{/c}}");
    assert_eq!(case.text(json!({"a": true, "b": "s", "c": {"d": 1}})), "trues1");
}

#[test]
fn names_are_looked_up_outwards_and_null_is_found() {
    let case = Case::new("{{#a}}{{#b}}{{x}}|{{y}}|{{z}}{{/b}}{{/a}}");
    assert_eq!(case.text(json!({"x": 1, "y": 1, "z": 1, "a": {"x": 2, "y": 2, "b": {"x": null}}})), "|2|1");
    assert_eq!(
        Case::new("{{l.1.n}}{{l.9}}{{s.0}}{{l.x}}").text(json!({"l": [0, {"n": "N"}], "s": "abc"})),
        "N"
    );
}

#[test]
fn a_value_is_never_read_as_a_template() {
    let hostile = "{{secret}}{{#a}}x{{/a}}{{>p}}{{=<% %>=}}\n  {{>p}}\n{{! }}";
    let data = json!({"x": hostile, "secret": "S", "list": [hostile], "o": {hostile: hostile}});
    let case = Case::new("{{{x}}}\n{{#list}}{{&.}}{{/list}}\n  {{>q}}").with(&[("p", "P"), ("q", "{{{x}}}")]);
    assert_eq!(case.text(data.clone()), format!("{hostile}\n{hostile}\n  {hostile}"));
    let printed = Case::new("{{{o}}}{{secret}}").text(data);
    assert_eq!(printed, serde_json::to_string(&json!({hostile: hostile})).unwrap() + "S");
}

#[test]
fn a_computed_name_is_a_scalar() {
    let case = Case::new("[{{>*x}}]").with(&[("1", "one"), ("true", "yes"), ("[]", "no")]);
    for (value, text) in
        [(json!(1), "[one]"), (json!(true), "[yes]"), (json!([]), "[]"), (json!({}), "[]"), (json!(""), "[]")]
    {
        assert_eq!(case.text(json!({"x": value})), text);
    }
}
