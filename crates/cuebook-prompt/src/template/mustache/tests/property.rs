//! No template panics, and pieces cover the text exactly.

use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::{Case, empty_partials};
use crate::error::ErrorKind;
use crate::template::sink::Writer;

/// Parts of templates that are right.
fn right() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c .|\n]{0,6}",
        3 => "\\{\\{&? ?([a-c]|[a-c]\\.[a-c]|\\.) ?\\}\\}",
        2 => "\\n? {0,2}\\{\\{>(\\*)?[pqa]\\}\\} {0,1}(\\r?\\n)?",
        1 => "\\{\\{![^}]{0,4}\\}\\}\\n?",
        1 => Just("{{=<% %>=}}<%={{ }}=%>".to_owned()),
    ]
}

/// Parts that may be wrong.
fn wrong() -> impl Strategy<Value = String> {
    prop_oneof![right(), "\\{\\{\\{?[#^/$<>&=]? ?[a-c.]{0,2}\\}{0,3}", "[{}<>#^/$&!=*äあ\\r\\n]{0,4}",]
}

/// Well nested tags around such parts, on lines of their own and inside of lines.
fn text(part: BoxedStrategy<String>) -> impl Strategy<Value = String> {
    let flat = proptest::collection::vec(part, 0..6).prop_map(|parts| parts.concat());
    flat.prop_recursive(4, 24, 4, |inner| {
        let around = (inner.clone(), "[#^$<]", "([a-c]|\\.)", "(\n| \n|\r\n|)", " {0,3}", inner);
        around.prop_map(|(before, sign, name, line, space, body)| {
            let name = if sign == "<" { "p".to_owned() } else { name };
            format!("{before}{space}{{{{{sign}{name}}}}}{line}{body}{space}{{{{/{name}}}}}{line}")
        })
    })
}

fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<f64>().prop_map(Json::from),
        "[a-c{}#>&\"<\n]{0,6}".prop_map(Json::from),
        "[pq]".prop_map(Json::from),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Json::from),
            proptest::collection::btree_map("[a-c]", inner, 0..3).prop_map(|map| json!(map)),
        ]
    })
}

fn case(main: String, p: &str, q: &str) -> Case {
    Case::new(main).with(&[("p", p), ("q", q)]).set(empty_partials).set(|settings| {
        settings.recursion = 30;
        settings.fuel = 20_000;
        settings.escape = false;
    })
}

/// Whether a path leads to a value that prints so. A bare name and `.` stand for everything below them.
fn leads_to(data: &Json, path: &str, text: &str) -> bool {
    let steps: Vec<&str> =
        path.split_inclusive(['.', ']']).flat_map(|step| step.split_inclusive('[')).collect();
    let keys: Vec<&str> =
        steps.iter().map(|step| step.trim_end_matches(['.', '['])).filter(|s| !s.is_empty()).collect();
    let mut values = vec![data];
    for key in &keys {
        values = values
            .iter()
            .flat_map(|value| match (value, *key) {
                (Json::Array(items), "]") => items.iter().collect(),
                (Json::Object(object), key) => object.get(key).into_iter().collect(),
                _ => Vec::new(),
            })
            .collect();
    }
    let bare = path == "." || keys.len() == 1;
    values.iter().any(|value| prints(value, text, bare))
}

fn prints(value: &Json, text: &str, below: bool) -> bool {
    Case::new("{{&x}}").text(json!({"x": value})) == text
        || below
            && match value {
                Json::Array(items) => items.iter().any(|item| prints(item, text, true)),
                Json::Object(object) => object.values().any(|item| prints(item, text, true)),
                _ => false,
            }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_template_panics(
        main in text(wrong().boxed()), p in text(right().boxed()), q in text(wrong().boxed()), data in value()
    ) {
        // The helper checks that the pieces cover the text and that literals are the authors' bytes.
        let _ = case(main, &p, &q).run(data);
    }

    #[test]
    fn values_of_a_valid_template_are_at_their_paths(
        main in text(right().boxed()), p in text(right().boxed()), q in text(right().boxed()), data in value()
    ) {
        let mut case = case(main, &p, &q);
        match case.run(data.clone()) {
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::Limit, "{}", error),
            Ok(output) => {
                for (index, piece) in output.pieces.iter().enumerate() {
                    let Writer::Value { unit, offset } = piece.writer else { continue };
                    let end = output.pieces.get(index + 1).map_or(output.text.len(), |next| next.start as usize);
                    let text = &output.text[piece.start as usize..end];
                    if text.is_empty() {
                        continue; // Nothing is at no path.
                    }
                    let paths = &output.units[unit as usize].emission(offset).unwrap().paths;
                    let found = paths.iter().any(|path| leads_to(&data, path, text));
                    prop_assert!(found, "{text:?} is at none of {paths:?}");
                }
                case.limit = 5;
                prop_assert_eq!(case.run(data).is_ok(), output.text.chars().count() <= 5);
            }
        }
    }

    #[test]
    fn a_text_without_tags_is_itself(text in "[^{]{0,40}") {
        prop_assert_eq!(Case::new(text.clone()).text(json!({})), text);
    }

    #[test]
    fn a_value_shows_as_it_is(value in ".{0,40}") {
        prop_assert_eq!(Case::new("{{{x}}}").text(json!({"x": value.clone()})), value);
    }
}
