use std::collections::{BTreeMap, BTreeSet};

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::*;
use crate::error::{Code, ErrorKind};
use crate::prompt::{Kind, Property};

/// Who wrote it.
#[derive(Serialize, Deserialize, JsonSchema, Default)]
#[allow(dead_code)]
struct Author {
    /// The whole name.
    name: String,
    born: Option<i16>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Feeling {
    /// All is well.
    Glad,
    Sad,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
#[allow(dead_code)]
enum Source {
    Web { url: String },
    Book { author: Author, page: u32 },
}

/// An article.
#[derive(Serialize, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Article {
    #[schemars(length(min = 1, max = 80))]
    title: String,
    #[schemars(range(min = 0, max = 10))]
    stars: u8,
    author: Author,
    editor: Option<Author>,
    feeling: Feeling,
    second_mood: Option<Feeling>,
    sources: Vec<Source>,
    tags: BTreeSet<String>,
    scores: BTreeMap<String, f64>,
    pair: (i64, String),
    /// How many to show.
    #[serde(default = "ten")]
    limit: u32,
    rest: serde_json::Value,
    #[serde(rename = "isDraft")]
    draft: bool,
}

fn ten() -> u32 {
    10
}

#[test]
fn a_rust_type_gives_its_record() {
    let record = Record::of::<Article>().unwrap();
    assert_eq!(record.name, "Article");
    assert_eq!(record.description.as_deref(), Some("An article."));
    let field = |name: &str| record.fields.iter().find(|field| field.name == name).unwrap();
    assert_eq!(field("title").constraints, *json!({"minLength": 1, "maxLength": 80}).as_object().unwrap());
    assert_eq!(field("stars").constraints, *json!({"minimum": 0, "maximum": 10}).as_object().unwrap());
    let author = Shape::Record(Arc::new(
        Record::new("Author")
            .describe("Who wrote it.")
            .field(Field::new("name", Shape::Text).describe("The whole name."))
            .field(
                Field::new("born", Shape::Integer.optional())
                    .or(Json::Null)
                    .constrain("minimum", -32768)
                    .constrain("maximum", 32767),
            ),
    ));
    // Some versions of `schemars` report bounds of small integers, and others do not.
    let plain = |shape: &Shape| match shape {
        Shape::Record(record) => {
            let mut record = Record::clone(record);
            record.fields.iter_mut().for_each(|field| field.constraints.clear());
            Shape::Record(Arc::new(record))
        }
        other => other.clone(),
    };
    assert_eq!(plain(&field("author").shape), plain(&author));
    let Shape::Union(editor) = &field("editor").shape else { panic!("{:?}", field("editor").shape) };
    assert_eq!(plain(&editor[0]), plain(&author));
    assert_eq!(editor[1], Shape::Null);
    let moods = Shape::Enum(vec![json!("glad"), json!("sad")]);
    let sorted = |shape: &Shape| match shape {
        Shape::Enum(values) => {
            let mut values = values.clone();
            values.sort_by_key(ToString::to_string);
            Shape::Enum(values)
        }
        other => other.clone(),
    };
    assert_eq!(sorted(&field("feeling").shape), moods);
    let Shape::Union(second) = &field("second_mood").shape else { panic!("optional") };
    assert_eq!((sorted(&second[0]), &second[1]), (moods, &Shape::Null));
    assert_eq!(field("second_mood").default, Some(Json::Null));
    let Shape::List(sources) = &field("sources").shape else { panic!("a list") };
    let Shape::Union(sources) = &**sources else { panic!("a union") };
    let Shape::Record(web) = &sources[0] else { panic!("a record") };
    let kind = web.fields.iter().find(|field| field.name == "kind").unwrap();
    assert_eq!(kind.shape, Shape::Enum(vec![json!("Web")]));
    assert_eq!(field("tags").shape, Shape::Set(Box::new(Shape::Text)));
    assert_eq!(field("scores").shape, Shape::Map(Box::new(Shape::Number)));
    assert_eq!(field("pair").shape, Shape::Tuple(vec![Shape::Integer, Shape::Text]));
    assert_eq!(field("limit").default, Some(json!(10)));
    assert_eq!(field("limit").description.as_deref(), Some("How many to show."));
    assert_eq!(field("rest").shape, Shape::Any);
    assert_eq!(field("isDraft").shape, Shape::Boolean);
}

#[test]
fn a_schema_has_no_references_and_reads_back() {
    let record = Record::of::<Article>().unwrap();
    let schema = record.described_schema(Extras::Forbidden, &IndexMap::new());
    assert!(!schema.to_string().contains("$ref"));
    let again = Record::from_json_schema(&schema).unwrap();
    assert_eq!(again.schema(Extras::Forbidden), record.schema(Extras::Forbidden));
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Node {
    name: String,
    children: Vec<Node>,
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Tree {
    top: Node,
}

#[test]
fn a_type_that_holds_itself_is_refused_with_a_way_out() {
    for error in [Record::of::<Node>().unwrap_err(), Record::of::<Tree>().unwrap_err()] {
        assert_eq!((error.kind(), error.code()), (ErrorKind::Usage, Code::UnsupportedSchema));
        assert!(error.diagnostic().message.contains("children"), "{error}");
        assert!(error.diagnostic().hint.as_deref().unwrap().contains("schemars(with"));
    }
}

#[test]
fn other_values_than_records_are_refused() {
    assert!(Record::of::<Feeling>().is_err());
    assert!(Record::of::<Vec<String>>().is_err());
    assert!(Record::from_json_schema(&json!(3)).is_err());
    assert!(
        Record::from_json_schema(&json!({"type": "object", "properties": {"a": {"type": "text"}}})).is_err()
    );
    let nowhere = json!({"properties": {"a": {"$ref": "#/$defs/b"}}});
    assert!(Record::from_json_schema(&nowhere).unwrap_err().to_string().contains("#/$defs/b"));
}

#[derive(JsonSchema)]
struct Empty {}

#[test]
fn a_struct_without_fields_is_an_empty_record() {
    assert!(Record::of::<Empty>().unwrap().fields.is_empty());
}

#[test]
fn a_schema_that_explodes_when_it_is_written_out_is_refused() {
    let mut defs = Map::new();
    for level in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"properties": {"a": next, "b": next}}));
    }
    defs.insert("d40".into(), json!({"type": "string"}));
    let error =
        Record::from_json_schema(&json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs}));
    assert!(error.unwrap_err().to_string().contains("20000 parts"));
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    let error = Record::from_json_schema(&json!({"properties": {"a": deep}})).unwrap_err();
    assert!(error.to_string().contains("too deeply"), "{error}");
}

#[derive(JsonSchema)]
#[allow(dead_code)]
struct Outer {
    id: u32,
    #[serde(flatten)]
    author: Author,
}

#[test]
fn flattened_fields_stand_beside_the_others() {
    let record = Record::of::<Outer>().unwrap();
    let names: Vec<&str> = record.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["id", "name", "born"]);
}

#[test]
fn a_schema_has_aliases_constraints_and_what_is_required() {
    let record = Record::new("T")
        .field(Field::new("a", Shape::Text).alias("b").constrain("maxLength", 3))
        .field(Field::new("when", Shape::DateTime).or(Json::Null))
        .field(Field::new("id", Shape::Uuid.optional()).or(Json::Null))
        .field(Field::new("map", Shape::Map(Box::new(Shape::Integer)).optional()).or(Json::Null));
    let expected = json!({
        "title": "T",
        "type": "object",
        "properties": {
            "b": {"type": "string", "maxLength": 3},
            "when": {"type": "string", "format": "date-time"},
            "id": {"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}], "type": "string"},
            "map": {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "null"}],
            },
        },
        "additionalProperties": false,
        "required": ["b"],
    });
    assert_eq!(record.schema(Extras::Forbidden), expected);
    // The order counts too: models read it.
    assert_eq!(record.schema(Extras::Forbidden).to_string(), expected.to_string());
}

#[test]
fn values_of_one_type_have_that_type_in_the_schema() {
    let schema = |values: Json| {
        let shape = Shape::Enum(values.as_array().unwrap().clone());
        Record::new("T").field(Field::new("a", shape)).schema(Extras::Allowed)["properties"]["a"].clone()
    };
    assert_eq!(schema(json!([1, 2])), json!({"enum": [1, 2], "type": "integer"}));
    assert_eq!(schema(json!([1.5])), json!({"enum": [1.5], "type": "number"}));
    assert_eq!(schema(json!([true])), json!({"enum": [true], "type": "boolean"}));
    assert_eq!(schema(json!(["a", 1])), json!({"enum": ["a", 1]}));
}

#[test]
fn schema_descriptions_are_optional_and_replaceable() {
    let inner =
        Record::new("Inner").describe("Inside.").field(Field::new("x", Shape::Integer).describe("X."));
    let record = Record::new("T")
        .field(Field::new("q", Shape::Text).describe("Keywords."))
        .field(Field::new("n", Shape::Record(Arc::new(inner))).describe("Mine."))
        .field(Field::new("al", Shape::Text).alias("aliased"));
    assert!(!record.schema(Extras::Allowed).to_string().contains("description"));
    let schema = record.described_schema(Extras::Allowed, &IndexMap::new());
    assert_eq!(schema["properties"]["q"]["description"], "Keywords.");
    assert_eq!(schema["properties"]["n"]["description"], "Mine.");
    assert_eq!(schema["properties"]["n"]["properties"]["x"]["description"], "X.");
    let said = [("q", "Words."), ("n.x", "Other."), ("aliased", "Also."), ("nobody", "?")];
    let said = said.map(|(name, text)| (name.to_owned(), text.to_owned())).into_iter().collect();
    let schema = record.described_schema(Extras::Allowed, &said);
    assert_eq!(schema["properties"]["q"]["description"], "Words.");
    assert_eq!(schema["properties"]["n"]["properties"]["x"]["description"], "Other.");
    assert_eq!(schema["properties"]["aliased"]["description"], "Also.");
}

#[test]
fn properties_of_files_become_fields() {
    let mut count = Property::new("count", Kind::Integer);
    count.required = true;
    count.extra.insert("minimum".into(), json!(1));
    count.extra.insert("x-mine".into(), json!(1));
    let mut feeling = Property::new("mood", Kind::String);
    feeling.enum_values = vec![json!("glad"), json!("sad")];
    feeling.nullable = true;
    let mut day = Property::new("day", Kind::Custom("date".into()));
    day.default = Some(json!("2024-02-29"));
    let items = Property::new("", Kind::Object { properties: vec![Property::new("x", Kind::Float)] });
    let list = Property::new("list", Kind::Array { items: Box::new(items) });
    let record = Record::from_properties("T", &[count, feeling, day, list]);
    assert_eq!(record.fields[0], Field::new("count", Shape::Integer).constrain("minimum", 1));
    let moods = Shape::Enum(vec![json!("glad"), json!("sad")]).optional();
    assert_eq!(record.fields[1], Field::new("mood", moods).or(Json::Null));
    assert_eq!(record.fields[2], Field::new("day", Shape::Date).or("2024-02-29"));
    let inner = Record::new("").field(Field::new("x", Shape::Number).or(Json::Null));
    assert_eq!(record.fields[3].shape, Shape::Record(Arc::new(inner)).list());
}
