//! What values look like.

use serde_json::json;

use super::text;

#[test]
fn values_print_as_python_prints_them() {
    for (value, wanted) in [
        (json!(true), "[True]"),
        (json!(null), "[None]"),
        (json!(-12), "[-12]"),
        (json!(u64::MAX), "[18446744073709551615]"),
        (json!(1.0), "[1.0]"),
        (json!(1e16), "[1e+16]"),
        (json!(1e-5), "[1e-05]"),
        (json!(-0.0), "[-0.0]"),
        (json!(["x", 1, null]), "[['x', 1, None]]"),
        (json!({"k": "it's"}), "[{'k': \"it's\"}]"),
        (json!(" s "), "[ s ]"),
    ] {
        assert_eq!(text("[$a]", json!({"a": value})), wanted);
    }
}

#[test]
fn a_value_is_not_looked_into() {
    let values = json!({"a": "$b ${b} $$ $", "b": "no"});
    assert_eq!(text("$a|$a", values), "$b ${b} $$ $|$b ${b} $$ $");
}

#[test]
fn the_lines_of_a_value_keep_their_own_margin() {
    assert_eq!(text("  $a\n    b", json!({"a": "1\n    2\n"})), "1\n    2\n\n  b");
}

#[test]
fn the_largest_integers_have_room() {
    let template = super::template("$a");
    for number in [i64::MIN, i64::MAX] {
        let mut sink = crate::template::sink::Sink::new(100, 0, 0);
        let mut value = |_: usize, _: &str| Some(serde_json::Value::from(number));
        template.write(0, &mut sink, super::Missing::Error, &mut value).unwrap();
        assert_eq!(sink.finish().0, number.to_string());
    }
}
