use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::prompt::{Field, Shape};

fn spec(fields: impl IntoIterator<Item = Field>) -> OutputSpec {
    let record = fields.into_iter().fold(Record::new("T"), Record::field);
    OutputSpec::object(Arc::new(record))
}

fn one(shape: Shape) -> OutputSpec {
    spec([Field::new("v", shape)])
}

/// What a value becomes under a shape, or the message.
fn value(shape: Shape, json: &str) -> std::result::Result<Json, String> {
    match one(shape).parse(&format!("{{\"v\": {json}}}")) {
        Ok(value) => Ok(value["v"].clone()),
        Err(error) => {
            assert_eq!((error.kind(), error.code()), (ErrorKind::OutputParse, Code::OutputMismatch));
            Err(error.diagnostic().message.clone())
        }
    }
}

#[test]
fn long_numbers_keep_their_digits() {
    #[derive(Deserialize)]
    struct Big {
        v: u128,
    }
    let reply = r#"{"v": 100000000000000000000}"#;
    assert_eq!(one(Shape::Integer).parse_as::<Big>(reply).unwrap().v, 100_000_000_000_000_000_000);
    assert_eq!(value(Shape::Integer, "100000000000000000000"), Ok(json!("100000000000000000000")));
    assert_eq!(value(Shape::Integer, "18446744073709551615"), Ok(json!(u64::MAX)));
    assert_eq!(value(Shape::Integer, "1e20"), Ok(json!("100000000000000000000")));
    assert_eq!(
        value(Shape::Text, "123456789012345678901234567890"),
        Ok(json!("123456789012345678901234567890"))
    );
}

#[test]
fn numbers_outside_json_are_refused() {
    assert_eq!(value(Shape::Number, "NaN"), Err("v: nan is not a valid JSON number".into()));
    assert_eq!(value(Shape::Number, "\"-inf\""), Err("v: -inf is not a valid JSON number".into()));
    assert_eq!(
        value(Shape::Any, "[{\"k\": Infinity}]"),
        Err("v[0][k]: inf is not a valid JSON number".into())
    );
    assert_eq!(value(Shape::Integer, "NaN"), Err("v: unable to coerce nan to int".into()));
    assert_eq!(value(Shape::Text, "NaN"), Ok(json!("nan")));
    assert_eq!(value(Shape::Boolean, "NaN"), Ok(json!(true)));
}

#[test]
fn a_truth_value_is_a_number_for_a_rust_type() {
    #[derive(Deserialize, PartialEq, Debug)]
    struct Count {
        v: i32,
    }
    assert_eq!(value(Shape::Integer, "true"), Ok(json!(true)));
    assert_eq!(one(Shape::Integer).parse_as::<Count>(r#"{"v": true}"#).unwrap(), Count { v: 1 });
    let error = one(Shape::Integer).parse_as::<Count>(r#"{"v": 3000000000}"#).unwrap_err();
    assert!(error.to_string().contains("does not fit the requested type"), "{error}");
    assert!(!error.to_string().contains("column"), "{error}");
}

#[test]
fn absent_fields_are_left_to_the_rust_type() {
    #[derive(Deserialize)]
    struct Both {
        a: Option<i32>,
        #[serde(default)]
        b: Vec<i32>,
        c: i32,
    }
    let spec = spec([
        Field::new("a", Shape::Integer.optional()).or(Json::Null),
        Field::new("b", Shape::Integer.list()).or(Json::Null),
        Field::new("c", Shape::Integer).or(7),
    ]);
    let both: Both = spec.parse_as("{}").unwrap();
    assert_eq!((both.a, both.b, both.c), (None, vec![], 7));
    assert_eq!(spec.parse("{}").unwrap(), json!({"a": null, "b": null, "c": 7}));
}

#[test]
fn sets_keep_the_first_of_equal_items() {
    let set = |items: Shape| Shape::Set(Box::new(items));
    assert_eq!(value(set(Shape::Integer), r#"["2", 1, 2, 1.5]"#), Ok(json!([2, 1])));
    assert_eq!(value(set(Shape::Any), r#"[1, 1.0, true, "1", [1], [1]]"#), Ok(json!([1, "1", [1]])));
    assert_eq!(value(set(Shape::Text), r#"{"a": 1, "b": 2}"#), Ok(json!(["a", "b"])));
    assert_eq!(value(set(Shape::Text), "5"), Err("v: expected set".into()));
}

#[test]
fn values_of_an_enumeration_are_found_whatever_their_type() {
    let numbers = Shape::Enum(vec![json!(1), json!(2)]);
    assert_eq!(value(numbers.clone(), "\"2\""), Ok(json!(2)));
    assert_eq!(value(numbers.clone(), "\"x\""), Err("v: expected one of [1, 2]".into()));
    assert_eq!(value(Shape::Enum(vec![json!("5")]), "5"), Ok(json!("5")));
    assert_eq!(value(Shape::Enum(vec![json!(true)]), "\"yes\""), Ok(json!(true)));
    assert_eq!(value(numbers.clone().optional(), "null"), Ok(Json::Null));
    assert_eq!(value(numbers, "null"), Err("v: value cannot be None".into()));
}

#[test]
fn days_times_and_uuids_are_checked() {
    assert_eq!(value(Shape::Date, "\"2024-02-29\""), Ok(json!("2024-02-29")));
    assert_eq!(value(Shape::Date, "\"2023-02-29\""), Err("v: unable to coerce '2023-02-29' to date".into()));
    assert_eq!(value(Shape::Time, "\"10:30:15.25+02:00\""), Ok(json!("10:30:15.25+02:00")));
    assert_eq!(value(Shape::Time, "\"25:00\""), Err("v: unable to coerce '25:00' to time".into()));
    assert_eq!(value(Shape::DateTime, "\"2024-02-29T10:30:15Z\""), Ok(json!("2024-02-29T10:30:15Z")));
    assert_eq!(
        value(Shape::DateTime, "\"yesterday\""),
        Err("v: unable to coerce 'yesterday' to datetime".into())
    );
    let uuid = "ABCDEF78-1234-5678-1234-567812345678";
    assert_eq!(value(Shape::Uuid, &format!("\"{{{uuid}}}\"")), Ok(json!(uuid.to_lowercase())));
    assert_eq!(value(Shape::Uuid, "\"x\""), Err("v: unable to coerce 'x' to UUID".into()));
}

#[test]
fn constraints_are_checked() {
    let check = |field: Field, json: &str| {
        let result = spec([field]).parse(&format!("{{\"v\": {json}}}"));
        result.map_err(|error| error.diagnostic().message.clone()).map(drop)
    };
    let number = || Field::new("v", Shape::Number);
    assert_eq!(check(number().constrain("minimum", 1), "0.5"), Err("v: must be >= 1".into()));
    assert_eq!(check(number().constrain("exclusiveMaximum", 2), "2"), Err("v: must be < 2".into()));
    assert_eq!(check(number().constrain("multipleOf", 0.1), "0.3"), Ok(()));
    assert_eq!(check(number().constrain("multipleOf", 5), "7"), Err("v: must be a multiple of 5".into()));
    let text = || Field::new("v", Shape::Text);
    assert_eq!(check(text().constrain("maxLength", 3), "\"äöüß\""), Err("v: length must be <= 3".into()));
    assert_eq!(
        check(text().constrain("pattern", "^a"), "\"ba\""),
        Err("v: does not match pattern ^a".into())
    );
    assert_eq!(check(text().constrain("pattern", "^(?!a)"), "\"a\""), Ok(()), "not checked, only told");
    assert_eq!(
        check(text().constrain("not", json!({"enum": ["z"]})), "\"z\""),
        Err("v: may not be one of ['z']".into())
    );
    let list = Field::new("v", Shape::Any.list()).constrain("minItems", 2);
    assert_eq!(check(list, "[1]"), Err("v: length must be >= 2".into()));
    let optional = Field::new("v", Shape::Integer.optional()).constrain("minimum", 3);
    assert_eq!(check(optional, "null"), Ok(()));
}

#[test]
fn hidden_fields_are_neither_shown_nor_read() {
    let spec = spec([Field::new("a", Shape::Integer), Field::new("secret", Shape::Integer).or(1).hide()]);
    assert!(!spec.schema().to_string().contains("secret"));
    assert_eq!(spec.parse(r#"{"a": 2}"#).unwrap(), json!({"a": 2, "secret": 1}));
    let error = spec.parse(r#"{"a": 2, "secret": 5}"#).unwrap_err();
    assert_eq!(error.diagnostic().message, "Extra keys not permitted: ['secret']");
}

#[test]
fn aliases_are_accepted_and_results_have_names() {
    let spec = spec([Field::new("name", Shape::Text).alias("fullName")]);
    assert_eq!(spec.parse(r#"{"fullName": "A"}"#).unwrap(), json!({"name": "A"}));
    assert_eq!(spec.parse(r#"{"name": "A"}"#).unwrap(), json!({"name": "A"}));
    let error = spec.parse(r#"{"name": "A", "fullName": "B"}"#).unwrap_err();
    assert_eq!(error.diagnostic().message, "Extra keys not permitted: ['name']");
}

#[test]
fn errors_say_where_and_what_to_do() {
    let spec = spec([Field::new("title", Shape::Text)]);
    let error = spec.parse(r#"{"Title": "A"}"#).unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `Title`?"));
    assert_eq!(error.field("record"), Some(&json!("T")));
    let error = spec.parse("Sure:\n{\"title\": \"A").unwrap_err();
    assert_eq!(
        error.diagnostic().hint.as_deref(),
        Some("the JSON that begins in line 2 is never closed: was the reply cut off?")
    );
    let error = spec.parse("```json\n{\"title\": oops}\n```").unwrap_err();
    let place = error.diagnostic().place.clone().unwrap();
    assert_eq!((place.line(), place.column(), place.text()), (2, 11, "o"));
    let error = one(Shape::Integer.list().list()).parse(r#"{"v": [[1], ["x"]]}"#).unwrap_err();
    assert_eq!(error.field("path"), Some(&json!("v[1][0]")));
}

#[test]
fn messages_stay_short_however_long_the_reply_is() {
    let error = value(Shape::Integer, &format!("\"{}\"", "x".repeat(100_000))).unwrap_err();
    assert!(error.chars().count() <= LONGEST_MESSAGE + 1);
}

#[test]
fn the_schema_of_a_list_is_an_object_with_items() {
    let spec =
        OutputSpec::array(Arc::new(Record::new("T").field(Field::new("v", Shape::Text).describe("D."))));
    assert_eq!(
        spec.schema(),
        json!({
            "type": "object",
            "properties": {"items": {"type": "array", "items": {
                "title": "T", "type": "object",
                "properties": {"v": {"type": "string", "description": "D."}},
                "additionalProperties": false, "required": ["v"],
            }}},
            "additionalProperties": false,
            "required": ["items"],
        })
    );
    assert_eq!(spec.parse_as::<Vec<Json>>(r#"{"items": [{"v": 1}]}"#).unwrap(), [json!({"v": "1"})]);
}

#[test]
fn arguments_of_tools_are_not_converted() {
    let record = Record::new("Search")
        .field(Field::new("query", Shape::Text))
        .field(Field::new("limit", Shape::Integer).or(5))
        .field(Field::new("score", Shape::Number).or(0.5));
    let read =
        |json: Json| read_arguments(&record, &json).map_err(|error| error.diagnostic().message.clone());
    assert_eq!(read(json!({"query": "a", "score": 1})), Ok(json!({"query": "a", "limit": 5, "score": 1.0})));
    assert_eq!(read(json!({"query": 1})), Err("query: expected str".into()));
    assert_eq!(read(json!({"query": "a", "limit": "5"})), Err("limit: expected int".into()));
    assert_eq!(read(json!({"query": "a", "x": 1})), Err("Extra keys not permitted: ['x']".into()));
    assert_eq!(read(json!([])), Err("expected mapping for dataclass Search".into()));
}

#[test]
fn a_value_that_was_taken_out_already_is_read_by_the_same_rules() {
    assert_eq!(one(Shape::Integer).accept(&json!({"v": "42"})).unwrap(), json!({"v": 42}));
}

#[test]
fn a_reply_that_nests_too_deeply_is_refused() {
    let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(value(Shape::Any, &deep(100)).is_ok());
    assert_eq!(
        value(Shape::Any, &deep(100_000)),
        Err("the JSON in the reply is nested more than 128 levels deep".into())
    );
}

#[test]
fn hostile_replies_take_time_in_proportion_to_their_length() {
    let size = 1 << 20;
    let repeated = |part: &str| part.repeat(size / part.len());
    let replies = [
        repeated("{"),
        repeated("["),
        repeated("[["),
        repeated("{\"a\":"),
        repeated("[\""),
        repeated("[\"[\","),
        repeated("[{\"[\":"),
        format!("[\"{}", repeated("[1,")),
        format!("{}\"", repeated("[\"\\\"")),
        repeated("```json "),
        repeated("``json\n["),
        format!("{}{}", "[".repeat(size / 2), " ".repeat(size / 2)),
        "9".repeat(size),
    ];
    let spec = one(Shape::Any);
    let start = std::time::Instant::now();
    for reply in &replies {
        assert!(spec.parse(reply).is_err());
    }
    // Quadratic time would be hours; a slow machine without optimisation needs a few seconds.
    assert!(start.elapsed().as_secs() < 60, "{:?}", start.elapsed());
}

#[test]
fn fences_inside_a_string_do_not_end_the_block() {
    let record = Arc::new(Record::new("Fix").field(Field::new("patch", Shape::Text)));
    let spec = OutputSpec::object(record);
    let reply = "Here:\n```json\n{\"patch\": \"```rust\\nfn a() {}\\n``` done\"}\n```\nBye.";
    assert_eq!(spec.parse(reply).unwrap(), json!({"patch": "```rust\nfn a() {}\n``` done"}));
    // What is not closed by a fence, or is no JSON, stays an error.
    for wrong in ["```json\n{\"patch\": \"```\"} and more\n```", "```json\n{\"patch\": ```\n```"] {
        let error = spec.parse(wrong).unwrap_err();
        assert_eq!(error.diagnostic().message, "Failed to decode JSON from fenced code block.");
    }
}
