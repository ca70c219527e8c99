//! Whatever a model writes, nothing panics; and what is printed is read again.

use proptest::prelude::*;

use super::*;
use crate::prompt::{Field, Shape};

/// Texts made of the pieces of replies, so that they often nearly are one.
fn replies() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "```json\n",
        "```",
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        "\\u",
        "d800",
        ":",
        ",",
        "\"a\"",
        "\"v\":",
        "1",
        "-",
        "1e999",
        "NaN",
        "null",
        "true",
        " ",
        "\n",
        "é",
        "\u{1c}",
        "{\"v\": 1}",
        "items",
    ]);
    prop_oneof![prop::collection::vec(pieces, 0..20).prop_map(|pieces| pieces.concat()), any::<String>()]
}

fn shapes() -> impl Strategy<Value = Shape> {
    let simple = prop::sample::select(vec![
        Shape::Text,
        Shape::Integer,
        Shape::Number,
        Shape::Boolean,
        Shape::Null,
        Shape::Any,
        Shape::DateTime,
        Shape::Date,
        Shape::Time,
        Shape::Uuid,
        Shape::Path,
        Shape::Enum(vec![json!("a"), json!(1), json!(true)]),
    ]);
    simple.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            inner.clone().prop_map(Shape::list),
            inner.clone().prop_map(|shape| Shape::Set(Box::new(shape))),
            inner.clone().prop_map(|shape| Shape::Map(Box::new(shape))),
            inner.clone().prop_map(Shape::optional),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Shape::Tuple),
            prop::collection::vec(inner.clone(), 0..3).prop_map(Shape::Union),
            inner.prop_map(|shape| {
                Shape::Record(Arc::new(Record::new("R").field(Field::new("a", shape).or(Json::Null))))
            }),
        ]
    })
}

/// A shape, and a value of it that reading does not change.
fn shaped() -> impl Strategy<Value = (Shape, Json)> {
    let leaf = prop_oneof![
        any::<String>().prop_map(|text| (Shape::Text, json!(text))),
        any::<i64>().prop_map(|number| (Shape::Integer, json!(number))),
        any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(|it| (Shape::Number, json!(it))),
        any::<bool>().prop_map(|value| (Shape::Boolean, json!(value))),
        any::<i32>().prop_map(|value| (Shape::Integer.optional(), json!(value))),
        Just((Shape::Integer.optional(), Json::Null)),
        crate::chat::reply::any_json().prop_map(|value| (Shape::Any, value)),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            (inner.clone(), 0..3_usize)
                .prop_map(|((shape, value), count)| (shape.list(), json!(vec![value; count]))),
            (inner.clone(), any::<String>())
                .prop_map(|((shape, value), key)| (Shape::Map(Box::new(shape)), json!({ key: value }))),
            prop::collection::vec(inner.clone(), 0..4).prop_map(|parts| {
                let (shapes, values): (Vec<Shape>, Vec<Json>) = parts.into_iter().unzip();
                (Shape::Tuple(shapes), json!(values))
            }),
            inner.prop_map(|(shape, value)| {
                let record = Record::new("R").field(Field::new("a", shape));
                (Shape::Record(Arc::new(record)), json!({"a": value}))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_reply_panics(reply in replies(), shape in shapes(), extra in any::<bool>(), list in any::<bool>()) {
        let record = Arc::new(Record::new("T").field(Field::new("v", shape).or(Json::Null)));
        let container = if list { Container::Array } else { Container::Object };
        let spec = OutputSpec { record, container, allow_extra_keys: extra };
        let _ = spec.schema();
        for reply in [reply.clone(), format!("{{\"v\": {reply}}}")] {
            if let Err(error) = spec.parse(&reply) {
                prop_assert_eq!(error.kind(), ErrorKind::OutputParse);
            }
            let _ = spec.parse_as::<Json>(&reply);
        }
    }

    #[test]
    fn printed_values_are_read_back((shape, value) in shaped(), before in "[a-z .]{0,9}") {
        let spec = OutputSpec::object(Arc::new(Record::new("T").field(Field::new("v", shape))));
        let whole = json!({"v": value});
        prop_assume!(!whole.to_string().contains("```"));
        for reply in [
            whole.to_string(),
            format!("{before}{whole}{before}"),
            format!("{before}\n\n```json\n{}\n```", serde_json::to_string_pretty(&whole).unwrap()),
        ] {
            prop_assert_eq!(spec.parse(&reply).unwrap(), whole.clone());
        }
    }

    #[test]
    fn valid_json_is_read_as_serde_json_reads_it(value in crate::chat::reply::any_json()) {
        let text = value.to_string();
        prop_assert!(scan::Scan::new(&text).whole().is_ok());
        prop_assert_eq!(scan::read(&text).unwrap().to_json(), value);
    }

    #[test]
    fn a_text_is_json_here_exactly_if_serde_json_says_so(text in replies()) {
        // What Python's JSON has beyond that is taken out first.
        prop_assume!(!text.contains("NaN") && !text.contains("e999") && !text.contains("d800"));
        let ours = scan::Scan::new(&text).whole().is_ok();
        prop_assert_eq!(ours, serde_json::from_str::<Json>(&text).is_ok());
    }
}
