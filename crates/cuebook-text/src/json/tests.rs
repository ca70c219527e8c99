//! JSON files with places: what is found, where, and what is said of mistakes.

use proptest::prelude::*;

use super::Step::{Index, Key};
use super::*;
use crate::error::report;

fn parse(text: &str) -> Result<Document> {
    Document::parse(&Source::new("t.json", text), Code::BadManifest, ErrorKind::Pack)
}

fn document(text: &str) -> Document {
    parse(text).unwrap()
}

fn findings(text: &str) -> String {
    shown(parse(text).unwrap_err().diagnostics())
}

#[test]
fn a_path_leads_to_the_value_and_to_its_key() {
    let document = document("{\n  \"a\": [1, {\"b\": \"x\\\"}]\", \"c\" : true}, null],\n  \"d\": {}\n}\n");
    let text = |path: &[Step]| document.place(path).text().to_owned();
    assert_eq!(text(&[Key("a"), Index(0)]), "1");
    assert_eq!(text(&[Key("a"), Index(1), Key("b")]), "\"x\\\"}]\"");
    assert_eq!(text(&[Key("a"), Index(1), Key("c")]), "true");
    assert_eq!(text(&[Key("a"), Index(2)]), "null");
    assert_eq!(text(&[Key("d")]), "{}");
    assert_eq!(document.key_place(&[Key("a"), Index(1), Key("c")]).text(), "\"c\"");
    assert_eq!(document.key_place(&[Key("a"), Index(0)]).text(), "1");
    assert_eq!(document.opening(&[Key("a")]).text(), "[");
    assert_eq!(document.place(&[Key("d")]).to_string(), "t.json:3:8");
}

#[test]
fn an_unknown_path_stops_at_the_deepest_value() {
    let document = document("{\"a\": [1]}");
    assert_eq!(document.place(&[Key("a"), Index(5)]).text(), "[1]");
    assert_eq!(document.place(&[Key("a"), Key("b")]).text(), "[1]");
    assert_eq!(document.place(&[Key("z"), Key("b")]).text(), "{\"a\": [1]}");
    assert_eq!(document.key_place(&[Key("z")]).text(), "{\"a\": [1]}");
}

#[test]
fn keys_are_compared_as_they_read_and_not_as_they_are_written() {
    let document = document(r#"{"\u0061": 1, "": 2, "é\n\"": 3, "\ud83d\ude00": 4}"#);
    assert_eq!(document.place(&[Key("a")]).text(), "1");
    assert_eq!(document.place(&[Key("")]).text(), "2");
    assert_eq!(document.place(&[Key("é\n\"")]).text(), "3");
    assert_eq!(document.place(&[Key("😀")]).text(), "4");
    assert_eq!(document.key_place(&[Key("a")]).text(), r#""\u0061""#);
}

#[test]
fn a_duplicate_key_is_refused_with_both_places() {
    assert_eq!(
        findings("{\n  \"a\": 1,\n  \"b\": {\"a\": 2},\n  \"\\u0061\": 3\n}\n"),
        "\
error t.json:4:3: duplicate key `a` in an object [CB201]
  at \"\\u0061\" -- second one here
  and t.json:2:3 \"a\" -- first one here
  help: remove one of them: JSON readers disagree about which one counts
"
    );
}

#[test]
fn keys_are_unique_per_object_and_may_be_empty() {
    assert!(parse(r#"[{"a": "a", "b": ["a", "a"]}, {"a": 1}]"#).is_ok());
    let error = parse(r#"{"": 1, "": 2, "x": {"y": 1, "y": 2}}"#).unwrap_err();
    let messages: Vec<String> = error.diagnostics().iter().map(ToString::to_string).collect();
    assert_eq!(
        messages,
        [
            "t.json:1:9: duplicate key `` in an object [CB201]",
            "t.json:1:30: duplicate key `y` in an object [CB201]",
        ]
    );
}

#[test]
fn a_syntax_error_is_underlined_at_its_place() {
    assert_eq!(
        findings("{\n  \"ü\": [1, 2,]\n}\n"),
        "\
error t.json:2:14: not valid JSON: trailing comma [CB201]
  at ] -- here
  help: remove the comma before it: JSON allows no trailing comma
"
    );
}

#[test]
fn a_text_that_stops_early_is_underlined_at_its_end() {
    assert_eq!(
        findings("{\n  \"a\": [1,\n\n"),
        "\
error t.json:2:10: not valid JSON: the text ends where a value belongs [CB201]
  at , -- the text ends here
  help: add the value, or remove the text that needs it
"
    );
}

#[test]
fn the_usual_mistakes_get_a_hint_of_their_own() {
    let hint = |text: &str| parse(text).unwrap_err().diagnostic().hint.clone().unwrap_or_default();
    assert_eq!(hint("{'a': 1}"), "use double quotes for strings");
    assert_eq!(hint("{\"a\": 1 // one\n}"), "JSON has no comments: remove it");
    assert_eq!(hint("{\"a\": True}"), "write true, false and null in lowercase");
    assert_eq!(hint("{\"a\": \"x\ny\"}"), "write a line break inside a string as \\n");
    assert_eq!(hint("{\"a\": 1e999}"), "write the number in quotes to keep its digits");
    assert_eq!(hint("{\"a\": 1 \"b\": 2}"), "put a comma between the two");
    assert_eq!(hint("{\"a\" 1}"), "put a colon between the key and its value");
    assert_eq!(hint("{\"a\": 01}"), "a number cannot start with zeros");
    assert_eq!(hint("{\"a\": word}"), "put text in double quotes");
    assert_eq!(hint("{a: 1}"), "put the key in double quotes");
    assert_eq!(hint("{} {}"), "a file holds one value: remove the rest");
    assert_eq!(hint("{\"a\": 1"), "close it with `}`");
    assert_eq!(hint("[1"), "close it with `]`");
    assert_eq!(hint("[\"a]"), "close it with `\"`");
    assert_eq!(hint("  \n"), "write at least `{}`");
    assert_eq!(
        parse("").unwrap_err().to_string(),
        "PackError: t.json: not valid JSON: the file is empty [CB201]"
    );
}

#[test]
fn nesting_is_followed_to_the_limit_and_refused_beyond_it() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let document = document(&deep(127));
    assert_eq!(document.place(&[Index(0); 126]).text(), "[]");
    let error = parse(&deep(100_000)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "PackError: t.json:1:128: not valid JSON: recursion limit exceeded [CB201]"
    );
}

#[test]
fn huge_numbers_have_places_like_any_other() {
    let digits = "9".repeat(300);
    let document = document(&format!("{{\"a\": {digits}, \"b\": -0.5e-3}}"));
    assert_eq!(document.place(&[Key("a")]).text(), digits);
    assert_eq!(document.place(&[Key("b")]).text(), "-0.5e-3");
}

#[test]
fn a_name_in_a_message_is_escaped_and_cut() {
    assert_eq!(quoted("a\u{1b}[31m\nb"), "`a\\u{1b}[31m\\nb`");
    assert_eq!(quoted(&"x".repeat(5000)), format!("`{}…`", "x".repeat(100)));
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn every_value_is_where_it_is_said_to_be<'v>(
    document: &Document,
    value: &'v Value,
    path: &mut Vec<Step<'v>>,
) {
    let place = document.place(path);
    assert_eq!(&serde_json::from_str::<Value>(place.text()).unwrap(), value);
    match value {
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Index(index));
                every_value_is_where_it_is_said_to_be(document, item, path);
                path.pop();
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                path.push(Key(key));
                assert_eq!(&decoded(document.key_place(path).text()), key);
                every_value_is_where_it_is_said_to_be(document, member, path);
                path.pop();
            }
        }
        _ => {}
    }
}

fn every_node_stands_where_its_document_says<'n>(
    document: &Document,
    node: &'n Node,
    path: &mut Vec<Step<'n>>,
) {
    assert_eq!(node.place.range(), document.place(path).range());
    match &node.data {
        Data::List(items) => {
            for (index, item) in items.iter().enumerate() {
                path.push(Index(index));
                every_node_stands_where_its_document_says(document, item, path);
                path.pop();
            }
        }
        Data::Map(entries) => {
            for (key, entry) in entries {
                path.push(Key(&key.name));
                assert_eq!(key.place.range(), document.key_place(path).range());
                every_node_stands_where_its_document_says(document, entry, path);
                path.pop();
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn the_text_at_a_place_reads_as_the_value(value in json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let document = document(&text.unwrap());
        every_value_is_where_it_is_said_to_be(&document, &value, &mut Vec::new());
    }

    #[test]
    fn nodes_are_the_values_with_their_places(value in json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let document = document(&text.unwrap());
        let node = document.to_node();
        assert_eq!(node.to_json(), value);
        every_node_stands_where_its_document_says(&document, &node, &mut Vec::new());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in prop_oneof![".{0,60}", "[\\[\\]{}\":,a01\\\\ u\n]{0,60}"]) {
        if let Err(error) = parse(&text) {
            report(error.diagnostics(), false);
        }
    }
}

#[test]
fn integers_beyond_64_bits_keep_their_digits() {
    let long = "9".repeat(400);
    let text = format!(
        "{{\"a\": 18446744073709551615, \"b\": 18446744073709551616, \"c\": [-9223372036854775809, {long}], \
         \"d\": 100000000000000000000.0, \"e\": \"100000000000000000000\", \"f\": 1}}"
    );
    let source = Source::new("t.json", text.as_str());
    let document = Document::parse(&source, Code::BadInput, ErrorKind::PromptValidation).unwrap();
    let value = document.value();
    assert_eq!(value["a"], u64::MAX);
    assert_eq!(value["b"], "18446744073709551616");
    assert_eq!(value["c"], serde_json::json!(["-9223372036854775809", long]));
    assert_eq!((&value["d"], &value["f"]), (&Value::from(1e20), &Value::from(1)));
    assert_eq!(document.place(&[Key("c"), Index(0)]).text(), "-9223372036854775809");
    assert_eq!(document.to_node().get("f").unwrap().place.text(), "1");
    let wrong = Source::new("t.json", "{100000000000000000000: 1}");
    assert!(Document::parse(&wrong, Code::BadInput, ErrorKind::PromptValidation).is_err());
}
