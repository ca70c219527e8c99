//! Whatever is written as Python is read back equal.

use proptest::prelude::*;

use super::{Literal, LiteralValue, value};

/// A value without its place.
#[derive(Debug, Clone, PartialEq)]
enum Plain {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(String),
    List(Vec<Plain>),
    Tuple(Vec<Plain>),
    Dict(Vec<(String, Plain)>),
}

fn plain(literal: &Literal) -> Plain {
    match &literal.value {
        LiteralValue::None => Plain::None,
        LiteralValue::Bool(value) => Plain::Bool(*value),
        LiteralValue::Int(value) => Plain::Int(*value),
        LiteralValue::Float(value) => Plain::Float(*value),
        LiteralValue::Str(value) => Plain::Str(value.clone()),
        LiteralValue::List(items) => Plain::List(items.iter().map(plain).collect()),
        LiteralValue::Tuple(items) => Plain::Tuple(items.iter().map(plain).collect()),
        LiteralValue::Dict(entries) => {
            Plain::Dict(entries.iter().map(|entry| (entry.key.clone(), plain(&entry.value))).collect())
        }
    }
}

/// Writes a string in one of the ways that Python has; the length chooses which, so that all of them are met.
fn write_string(text: &str) -> String {
    let escaped = |text: &str, quote: char| -> String {
        let escape = |c: char| match c {
            '\\' => "\\\\".to_owned(),
            '\n' => "\\n".to_owned(),
            '\r' => "\\r".to_owned(),
            c if c == quote => format!("\\{c}"),
            c if (c as u32) < 0x20 => format!("\\x{:02x}", c as u32),
            c => c.to_string(),
        };
        text.chars().map(escape).collect()
    };
    let raw = !text.contains(['\'', '\\', '\r', '\0']);
    match text.chars().count() % 5 {
        0 => format!("'{}'", escaped(text, '\'')),
        1 => format!("\"{}\"", text.chars().map(|c| format!("\\U{:08x}", c as u32)).collect::<String>()),
        2 if raw => format!("r'''{text}'''"),
        3 => {
            let middle = text.char_indices().nth(1).map_or(text.len(), |(at, _)| at);
            format!("('{}'  # half\n \"{}\")", escaped(&text[..middle], '\''), escaped(&text[middle..], '"'))
        }
        _ => format!("u\"\"\"{}\"\"\"", escaped(text, '"')),
    }
}

fn write(value: &Plain) -> String {
    let all = |items: &[Plain]| items.iter().map(write).collect::<Vec<_>>().join(",\n ");
    match value {
        Plain::None => "None".into(),
        Plain::Bool(true) => "True".into(),
        Plain::Bool(false) => "(False)".into(),
        Plain::Int(value) if value % 3 == 0 && *value >= 0 => format!("{value:#x}"),
        Plain::Int(value) if value % 3 == 1 => format!("+{value:#o}"),
        Plain::Int(value) => value.to_string(),
        Plain::Float(value) => format!("{value:e}"),
        Plain::Str(text) => write_string(text),
        Plain::List(items) => format!("[{}]", all(items)),
        Plain::Tuple(items) if items.is_empty() => "()".into(),
        Plain::Tuple(items) => format!("({},)", all(items)),
        Plain::Dict(entries) => {
            let entry = |(key, value): &(String, Plain)| format!("{}: {},", write_string(key), write(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<String>())
        }
    }
}

fn values() -> impl Strategy<Value = Plain> {
    let finite = any::<f64>().prop_filter("finite", |value| value.is_finite());
    let leaf = prop_oneof![
        Just(Plain::None),
        any::<bool>().prop_map(Plain::Bool),
        (i128::from(i64::MIN)..=i128::from(u64::MAX)).prop_map(Plain::Int),
        (-10i128..10).prop_map(Plain::Int),
        finite.prop_map(Plain::Float),
        any::<String>().prop_map(Plain::Str),
        "[a\\\\'\"\n{}\u{fffd}é#]{0,8}".prop_map(Plain::Str),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Plain::List),
            prop::collection::vec(inner.clone(), 0..6).prop_map(Plain::Tuple),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Plain::Dict(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn written_values_are_read_back_equal(wanted in values()) {
        let text = format!("X = {}\n", write(&wanted));
        let read = value(&text);
        prop_assert_eq!(plain(&read), wanted.clone());
        // A place holds what it says: the text there is the value. (Parentheses, because of strings over several lines.)
        let again = value(&format!("X = ({})\n", &text[read.range.clone()]));
        prop_assert_eq!(plain(&again), wanted);
    }
}
