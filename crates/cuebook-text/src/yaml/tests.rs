use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::error::report;
use crate::json::Step::{Index, Key};
use crate::json::{Problems, shown};
use crate::node::Data;

fn parse(text: &str) -> Result<Document> {
    let source = Source::new("t.yaml", text);
    let range = 0..source.text().len();
    Document::parse(&source, range, Code::BadFrontMatter, ErrorKind::PromptRead)
}

fn value(text: &str) -> Value {
    parse(text).unwrap_or_else(|error| panic!("{text:?}: {}", shown(error.diagnostics()))).root.to_json()
}

/// What is wrong, each with its place.
fn wrong(text: &str) -> Vec<String> {
    let error = parse(text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::PromptRead);
    error.diagnostics().iter().map(ToString::to_string).collect()
}

#[test]
fn scalars_mean_what_yaml_1_2_says() {
    for (text, wanted) in [
        ("true", json!(true)),
        ("False", json!(false)),
        ("TRUE", json!(true)),
        ("null", Value::Null),
        ("~", Value::Null),
        ("12", json!(12)),
        ("-12", json!(-12)),
        ("+12", json!(12)),
        ("0", json!(0)),
        ("0x1F", json!(31)),
        ("0o17", json!(15)),
        ("18446744073709551615", json!(u64::MAX)),
        ("0.7", json!(0.7)),
        (".5", json!(0.5)),
        ("1.", json!(1.0)),
        ("1e3", json!(1000.0)),
        ("-1.5E-3", json!(-0.0015)),
        ("'12'", json!("12")),
        ("\"true\"", json!("true")),
        ("!!str 12", json!("12")),
        ("! 12", json!("12")),
        ("!!int 12", json!(12)),
        ("!!float 3", json!(3.0)),
        ("!!float 1.5", json!(1.5)),
        ("|\n  12\n", json!("12\n")),
        (">-\n  a\n  b\n", json!("a b")),
    ] {
        assert_eq!(value(text), wanted, "{text}");
    }
    for text in [
        "yes",
        "no",
        "on",
        "off",
        "y",
        "n",
        "tRUE",
        "017",
        "-017",
        "00",
        "1_000",
        "0b11",
        "12:30:45",
        "2024-01-02",
        "1.2.3",
        "e3",
        "1e",
        ".",
        "-",
        "+",
        "0x",
        "0o8",
        "nan",
        "inf",
        "12e345",
        "-1e999",
        "0xfffffffffffffffff",
        "${env:X}",
        "a: b",
    ] {
        let text = if text == "-" { "'-'" } else { text };
        match value(&format!("k: {}", if text == "a: b" { "'a: b'" } else { text })) {
            Value::Object(map) => assert_eq!(map["k"], json!(text.trim_matches('\'')), "{text}"),
            other => panic!("{text}: {other}"),
        }
    }
}

#[test]
fn numbers_keep_their_digits_or_are_refused() {
    assert_eq!(value("[0.7, 0.1, 1.0, 1e400x]").to_string(), r#"[0.7,0.1,1.0,"1e400x"]"#);
    let long = "[18446744073709551615, 18446744073709551616, -9223372036854775809]";
    let expected = r#"[18446744073709551615,"18446744073709551616","-9223372036854775809"]"#;
    assert_eq!(value(long).to_string(), expected);
    for text in [".inf", "-.inf", ".nan"] {
        let found = wrong(&format!("k: {text}"));
        assert_eq!(found, [format!("t.yaml:1:4: JSON cannot represent the number `{text}` [CB318]")]);
    }
}

#[test]
fn keys_are_their_text_and_keep_their_order() {
    let text = "z: 1\n1: 2\ntrue: 3\nnull: 4\n'': 5\n";
    assert_eq!(value(text).to_string(), r#"{"z":1,"1":2,"true":3,"null":4,"":5}"#);
    assert_eq!(wrong("1: a\n'1': b"), ["t.yaml:2:1: duplicate key `1` in a map [CB318]"]);
    assert_eq!(wrong(": x"), ["t.yaml:1:1: a key is empty [CB318]"]);
    assert_eq!(wrong("? [a]\n: b"), ["t.yaml:1:3: a list or a map cannot be a key [CB318]"]);
    assert_eq!(
        value("a: &x b\n*x : c\nd: &y 0x1F\n*y : e"),
        json!({"a": "b", "b": "c", "d": 31, "0x1F": "e"})
    );
    assert_eq!(wrong("a: &x b\n*x : c\nb: d"), ["t.yaml:3:1: duplicate key `b` in a map [CB318]"]);
    assert_eq!(wrong("a: &x [b]\n*x : c"), ["t.yaml:2:1: a list or a map cannot be a key [CB318]"]);
    assert_eq!(wrong("!!int 1: c"), ["t.yaml:1:7: a key cannot have a tag [CB318]"]);
}

#[test]
fn every_value_and_key_has_its_place_in_the_whole_file() {
    let file = Source::new(
        "p.prompty",
        "---\r\nname: é\r\nlist:\r\n  - one\r\n  - k: [1, {a: b}]\r\ntext: |\r\n  x\r\n---\r\nbody",
    );
    let start = file.text().find("name").unwrap();
    let end = file.text().rfind("---").unwrap();
    let document = Document::parse(&file, start..end, Code::BadFrontMatter, ErrorKind::PromptRead).unwrap();
    let place = |path: &[Step<'_>]| {
        let place = document.place(path);
        (place.to_string(), place.text().to_owned())
    };
    let at = |place: &str, text: &str| (format!("p.prompty:{place}"), text.to_owned());
    assert_eq!(place(&[Key("name")]), at("2:7", "é"));
    assert_eq!(place(&[Key("list"), Index(0)]), at("4:5", "one"));
    assert_eq!(place(&[Key("list"), Index(1)]), at("5:5", "k: [1, {a: b}]"));
    assert_eq!(place(&[Key("list"), Index(1), Key("k")]), at("5:8", "[1, {a: b}]"));
    assert_eq!(place(&[Key("list"), Index(1), Key("k"), Index(1), Key("a")]), at("5:16", "b"));
    assert_eq!(place(&[Key("list")]), at("4:3", "- one\n  - k: [1, {a: b}]"));
    assert_eq!(place(&[Key("text")]), at("7:3", "x\n"));
    assert_eq!(document.key_place(&[Key("list"), Index(1), Key("k")]).to_string(), "p.prompty:5:5");
    assert_eq!(document.key_place(&[Key("text")]).text(), "text");
    assert_eq!(document.opening(&[Key("list"), Index(1)]).text(), "k");
    assert_eq!(document.opening(&[Key("list")]).text(), "-");
    assert_eq!(document.opening(&[Key("list"), Index(1), Key("k")]).text(), "[");
    assert_eq!(
        place(&[Key("list"), Index(7)]).0,
        "p.prompty:4:3",
        "a path that leads nowhere ends on the way"
    );
}

#[test]
fn a_missing_value_is_null_after_its_key() {
    let document = parse("name:\nkind: x\n").unwrap();
    assert_eq!(document.root.to_json(), json!({"name": null, "kind": "x"}));
    assert_eq!(document.place(&[Key("name")]).to_string(), "t.yaml:1:5");
    for text in ["", "\n\n", "# only a comment\n"] {
        assert_eq!(value(text), Value::Null, "{text:?}");
    }
}

#[test]
fn a_duplicate_key_is_refused_with_both_places() {
    let error = parse("a: 1\nb: {c: 1, c: 2}\na: 3\n'a': 4\n").unwrap_err();
    assert_eq!(
        shown(error.diagnostics()),
        "error t.yaml:2:11: duplicate key `c` in a map [CB318]\n  at c -- second one here\n  and t.yaml:2:5 c -- first one here\n  help: remove one of them: YAML readers disagree about which one counts\nerror t.yaml:3:1: duplicate key `a` in a map [CB318]\n  at a -- second one here\n  and t.yaml:1:1 a -- first one here\n  help: remove one of them: YAML readers disagree about which one counts\nerror t.yaml:4:1: duplicate key `a` in a map [CB318]\n  at 'a' -- second one here\n  and t.yaml:1:1 a -- first one here\n  help: remove one of them: YAML readers disagree about which one counts\n"
    );
}

#[test]
fn aliases_are_copies_and_merge_keys_take_over() {
    let text =
        "base: &b {x: 1, y: 2}\none: *b\ntwo: {<<: *b, y: 3}\nthree:\n  y: 4\n  <<: [{y: 5, z: 6}, *b]\n";
    let read = value(text);
    assert_eq!(read["one"], json!({"x": 1, "y": 2}));
    assert_eq!(read["two"], json!({"y": 3, "x": 1}));
    assert_eq!(read["three"], json!({"y": 4, "z": 6, "x": 1}));
    let order = value("b: &b {x: 1, y: 2}\nm: {a: 0, <<: *b, y: 3, z: 4}\nn: {<<: [*b, {x: 5, w: 6}], y: 7}");
    assert_eq!(order["m"].to_string(), r#"{"a":0,"x":1,"y":3,"z":4}"#, "they stand where `<<` stands");
    assert_eq!(order["n"].to_string(), r#"{"x":1,"w":6,"y":7}"#);
    assert_eq!(wrong("a: {<<: 1}"), ["t.yaml:1:5: `<<` needs a map, but this is not a map [CB318]"]);
    assert_eq!(wrong("a: {<<: [1]}"), ["t.yaml:1:5: `<<` needs a map, but this is not a map [CB318]"]);
    assert_eq!(value("'<<': 1"), json!({"<<": 1}), "in quotes it is a key like any other");
    assert_eq!(wrong("a: &a [*a]"), ["t.yaml:1:8: an alias refers to a value that contains it [CB318]"]);
    assert_eq!(wrong("a: *b"), ["t.yaml:1:4: invalid YAML: unknown anchor [CB318]"]);
}

#[test]
fn tags_and_further_documents_are_refused() {
    assert_eq!(
        wrong("a: !thing x\nb: !other {c: 1}\nd: !!set [1]\n"),
        [
            "t.yaml:1:4: unknown tag `!thing` [CB318]",
            "t.yaml:2:4: unknown tag `!other` [CB318]",
            "t.yaml:3:4: unknown tag `!!set` [CB318]",
        ]
    );
    assert_eq!(wrong("a: !!int x"), ["t.yaml:1:10: the tag `!!int` does not fit this value [CB318]"]);
    assert_eq!(value("%YAML 1.2\n---\n!!map {a: !!seq [1]}\n...\n"), json!({"a": [1]}));
    assert_eq!(wrong("a: 1\n---\nb: 2\n"), ["t.yaml:2:1: expected one YAML document, found several [CB318]"]);
}

#[test]
fn parser_errors_have_a_place_and_a_fix() {
    for (text, wanted) in [
        ("a: b: c", "1:5: invalid YAML: unexpected colon"),
        ("a:\n\t- b", "2:2: invalid YAML: a tab where YAML allows only spaces"),
        ("a: @x", "1:4: invalid YAML: a value cannot start with this character"),
        ("a: [1, 2", "1:4: invalid YAML: `[` is not closed"),
        ("a: {b: 1", "1:4: invalid YAML: `{` is not closed"),
        ("inputs: [\ntemplate: x\n", "1:9: invalid YAML: `[` is not closed"),
        ("inputs: [\n  q: {kind: string}\n", "1:9: invalid YAML: `[` is not closed"),
        (
            "a: 1\nq: {kind: string, description: Say: hello}\n",
            "2:4: invalid YAML: a comma or quotes are missing after this `{`",
        ),
        ("a: ]", "1:4: invalid YAML: closing bracket without an opening one"),
        ("é: \"x\n", "2:1: invalid YAML: the quoted text is not closed"),
        ("a: 'x' y", "1:8: invalid YAML: unexpected text after a quoted text"),
        ("a: \"\\q\"", "1:4: invalid YAML: unknown escape"),
        ("a: b\n- c", "2:3: invalid YAML: expected a key"),
        ("a:\n  b: 1\n c: 2", "3:2: invalid YAML: expected a key"),
        ("a: !e!x 1", "1:4: invalid YAML: unknown tag"),
        ("a: b\nc", "2:1: invalid YAML: expected a key"),
        ("a: & b", "1:4: invalid YAML: the anchor or alias has no name"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error.diagnostic().to_string(), format!("t.yaml:{wanted} [CB318]"), "{text:?}");
        assert!(error.diagnostic().hint.is_some(), "{text:?}");
    }
}

fn quick(text: &str) -> Vec<String> {
    let start = Instant::now();
    let found = wrong(text);
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    found
}

#[test]
fn a_billion_laughs_are_refused_before_they_are_laughed() {
    let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..30 {
        let copies = vec![format!("*a{}", level - 1); 9].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{copies}]\n"));
    }
    let found = quick(&text);
    assert!(found[0].contains("has too many values: the limit is 50000, including aliases"), "{found:?}");
    // The same through maps and `<<`.
    let mut text = String::from("a0: &a0 {x: 1, y: 2}\n");
    for level in 1..40 {
        let before = level - 1;
        text.push_str(&format!("a{level}: &a{level} {{l: *a{before}, r: *a{before}}}\n"));
    }
    assert!(quick(&text)[0].contains("too many values"), "{found:?}");
}

#[test]
fn limits_hold_for_size_depth_and_number() {
    let too_deep = "values are nested too deeply: the limit is 64 levels";
    for (open, close) in [("[", "]"), ("{a: ", "}")] {
        let deep = |levels: usize| format!("{}{}", open.repeat(levels), close.repeat(levels));
        assert!(parse(&deep(MAX_DEPTH)).is_ok());
        for levels in [MAX_DEPTH + 1, 5_000, 200_000] {
            let found = quick(&deep(levels));
            assert!(found[0].contains(too_deep), "{found:?}");
        }
    }
    let block: String = (0..200).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert!(quick(&block)[0].contains(too_deep));
    let mut aliases = String::from("a0: &a0 [1]\n");
    for level in 1..200 {
        aliases.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(quick(&aliases)[0].contains(too_deep), "aliases nest as well");
    let long = format!("a: \"{}\"\n", "x".repeat(MAX_BYTES));
    assert_eq!(
        quick(&long),
        [format!("t.yaml:1:1: the YAML has {} bytes, but the limit is 1048576 [CB318]", long.len())]
    );
    let many = "- 1\n".repeat(MAX_NODES);
    assert!(quick(&many)[0].contains("has too many values"));
    assert!(parse(&"- 1\n".repeat(MAX_NODES - 1)).is_ok());
}

#[test]
fn problems_are_collected_for_yaml_as_for_json() {
    let document = parse("a: [1]\nb: x\n").unwrap();
    let mut problems = Problems::new(&document);
    let list = document.root.get("a").unwrap().to_json();
    problems.wrong_type(&[Key("a")], &list, "`a`", "a string", "write it in quotes");
    problems.wrong_key(&[Key("b")], "`b` is not wanted", "remove it");
    problems.wrong(&[Key("b")], "`x` is not wanted", "remove it");
    let error = problems.or(()).unwrap_err();
    assert_eq!(
        shown(error.diagnostics()),
        "error t.yaml:1:4: `a` must be a string [CB318]\n  at [ -- this is an array\n  help: write it in quotes\nerror t.yaml:2:1: `b` is not wanted [CB318]\n  at b -- (no label)\n  help: remove it\nerror t.yaml:2:4: `x` is not wanted [CB318]\n  at x -- (no label)\n  help: remove it\n"
    );
}

fn written() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~é]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[ -~é]{1,4}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn places_hold_the_values(node: &Node) {
    let text = node.place.text();
    match &node.data {
        Data::List(items) => {
            assert!(text.starts_with('[') && text.ends_with(']'), "{text}");
            items.iter().for_each(places_hold_the_values);
        }
        Data::Map(entries) => {
            assert!(text.starts_with('{') && text.ends_with('}'), "{text}");
            for (key, entry) in entries {
                assert_eq!(serde_json::from_str::<String>(key.place.text()).unwrap(), key.name);
                places_hold_the_values(entry);
            }
        }
        _ => assert_eq!(serde_json::from_str::<Value>(text).unwrap(), node.to_json()),
    }
}

proptest! {
    #[test]
    fn json_is_yaml_and_every_place_holds_its_value(value in written(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let document = parse(&text.unwrap()).unwrap();
        prop_assert_eq!(document.root.to_json(), value);
        places_hold_the_values(&document.root);
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in prop_oneof![".{0,60}", "[\\[\\]{}\"':,a01\\\\ \\-|>&*!#?%@\t\n]{0,80}"]) {
        if let Err(error) = parse(&text) {
            report(error.diagnostics(), false);
        }
    }
}
