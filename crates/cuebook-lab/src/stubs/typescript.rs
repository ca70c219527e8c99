//! A TypeScript module with the types of the prompts of a project, and schemas of zod on request.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{definitions, id, list, name_of, other_names, quoted};
use crate::book::Book;
use crate::error::Result;

const HEAD: &str = "// Typed prompts. Written by `cuebook stubs`; do not edit.\n";
const USE: &str = r#"//
//   import { Book } from "cuebook";
//   import type { Prompts } from "./prompts.js";
//
//   const book = Book.open<Prompts>("my-prompts");
"#;

/// The module: an interface for the variables of each prompt, one for its outputs, and `Prompts`, which has them by id. With `zod`, it has a
/// schema for each as well. A prompt that cannot be read has no types: `check` reports it.
///
/// # Errors
///
/// Those of [`Book::list_prompts`].
pub fn typescript(book: &Book, zod: bool) -> Result<String> {
    let definitions = definitions(book)?;
    let mut text = format!("{HEAD}{USE}");
    if zod {
        text.push_str("\nimport { z } from \"zod\";\n");
    }
    let mut map = String::new();
    let mut names = Names::default();
    for definition in &definitions {
        let name = names.of(id(definition));
        let fields = inputs(definition);
        let outputs: Vec<Field> = list(&definition["outputs"]).iter().map(Field::output).collect();
        let what = quoted(id(definition)).replace("*/", "*\\/");
        let _ = write!(text, "\n/** The variables of {what}. */\nexport interface {name}Input {{\n");
        fields.iter().for_each(|field| field.declare(&mut text));
        text.push_str("}\n");
        let mut output = "any".to_owned();
        if !outputs.is_empty() {
            output = format!("{name}Output");
            let _ = write!(text, "\n/** The outputs of {what}. */\nexport interface {output} {{\n");
            outputs.iter().for_each(|field| field.declare(&mut text));
            text.push_str("}\n");
        }
        if zod {
            schema(&mut text, &format!("{name}Input"), &fields);
            if !outputs.is_empty() {
                schema(&mut text, &output, &outputs);
            }
        }
        let _ = writeln!(map, "  {}: {{ input: {name}Input; output: {output} }};", quoted(id(definition)));
    }
    let _ = write!(text, "\n/** The prompts by id. */\nexport interface Prompts {{\n{map}}}\n");
    Ok(text)
}

/// Names of types, each used once.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn of(&mut self, id: &str) -> String {
        let words = id.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let mut name: String = words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect();
        if !name.starts_with(|first: char| first.is_ascii_alphabetic()) {
            name.insert_str(0, "Prompt");
        }
        let count = self.0.entry(name.clone()).or_default();
        *count += 1;
        if *count == 1 { name } else { format!("{name}_{count}") }
    }
}

/// A variable or an output.
struct Field {
    name: String,
    description: Option<String>,
    is_optional: bool,
    /// The type, and the schema.
    kind: (String, String),
}

impl Field {
    fn input(variable: &Json, is_optional: bool) -> Field {
        Field::new(variable, is_optional, input_type(variable))
    }

    fn output(output: &Json) -> Field {
        Field::new(output, output["required"] == false, output_type(output, 0))
    }

    fn new(field: &Json, is_optional: bool, kind: (String, String)) -> Field {
        let description = field["description"].as_str().filter(|text| !text.trim().is_empty());
        let description = description
            .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ").replace("*/", "*\\/"));
        Field { name: name_of(field).to_owned(), description, is_optional, kind }
    }

    /// The member of an object type.
    fn member(&self) -> String {
        let (mark, more) = if self.is_optional { ("?", " | undefined") } else { ("", "") };
        format!("{}{mark}: {}{more}", key(&self.name), self.kind.0)
    }

    fn declare(&self, text: &mut String) {
        if let Some(description) = &self.description {
            let _ = writeln!(text, "  /** {description} */");
        }
        let _ = writeln!(text, "  {};", self.member());
    }

    /// The member of a schema.
    fn schema(&self) -> String {
        let optional = if self.is_optional { ".optional()" } else { "" };
        let described = self.description.as_ref();
        let described = described.map(|text| format!(".describe({})", quoted(text))).unwrap_or_default();
        format!("{}: {}{described}{optional}", key(&self.name), self.kind.1)
    }
}

/// The variables that a prompt declares, and those that its templates read besides.
fn inputs(definition: &Json) -> Vec<Field> {
    let declared = &definition["variables"];
    let required = list(&declared["required"]).iter().map(|one| Field::input(one, false));
    let optional = list(&declared["optional"]).iter().chain(list(&declared["custom"]));
    let mut fields: Vec<Field> = required.chain(optional.map(|one| Field::input(one, true))).collect();
    let known: BTreeSet<String> = fields.iter().map(|field| field.name.clone()).collect();
    for name in other_names(definition).into_iter().filter(|name| !known.contains(*name)) {
        let kind = ("unknown".to_owned(), "z.unknown()".to_owned());
        fields.push(Field { name: name.to_owned(), description: None, is_optional: true, kind });
    }
    fields
}

fn schema(text: &mut String, name: &str, fields: &[Field]) {
    let value = format!("{}{}", name[..1].to_ascii_lowercase(), &name[1..]);
    let _ = write!(text, "\n/** Checks a {name}. */\nexport const {value} = z.object({{\n");
    for field in fields {
        let _ = writeln!(text, "  {},", field.schema());
    }
    text.push_str("});\n");
}

/// A key of an object type.
fn key(name: &str) -> String {
    let mut letters = name.chars();
    let is_name = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_name { name.to_owned() } else { quoted(name) }
}

fn both(type_: &str, schema: &str) -> (String, String) {
    (type_.to_owned(), schema.to_owned())
}

/// The values that are allowed, if they are listed.
fn listed(field: &Json) -> Option<(String, String)> {
    let values = list(&field["enumValues"]);
    let literals: Vec<String> = values.iter().map(Json::to_string).collect();
    (!values.is_empty()).then(|| {
        let schemas: Vec<String> = literals.iter().map(|literal| format!("z.literal({literal})")).collect();
        let schema = if schemas.len() == 1 {
            schemas[0].clone()
        } else {
            format!("z.union([{}])", schemas.join(", "))
        };
        (literals.join(" | "), schema)
    })
}

fn kind_of(field: &Json) -> &str {
    field["type"].as_str().or_else(|| field["kind"].as_str()).unwrap_or_default()
}

/// What a caller may pass.
fn input_type(variable: &Json) -> (String, String) {
    listed(variable).unwrap_or_else(|| match kind_of(variable) {
        "string" | "str" => both("string", "z.string()"),
        "integer" | "int" => both("number | bigint", "z.union([z.number().int(), z.bigint()])"),
        "number" | "float" => both("number", "z.number()"),
        "boolean" | "bool" => both("boolean", "z.boolean()"),
        "list" | "array" => both("readonly unknown[]", "z.array(z.unknown()).readonly()"),
        "object" | "dict" => both("object", "z.looseObject({})"),
        _ => both("unknown", "z.unknown()"),
    })
}

/// How deep outputs may nest.
const DEEPEST: usize = 32;

/// What a model returns.
fn output_type(output: &Json, depth: usize) -> (String, String) {
    if let Some(listed) = listed(output) {
        return listed;
    }
    match kind_of(output) {
        "string" | "str" => both("string", "z.string()"),
        "integer" | "int" => both("number", "z.number().int()"),
        "number" | "float" => both("number", "z.number()"),
        "boolean" | "bool" => both("boolean", "z.boolean()"),
        "list" | "array" if output["items"].is_object() && depth < DEEPEST => {
            let (kind, schema) = output_type(&output["items"], depth + 1);
            (format!("Array<{kind}>"), format!("z.array({schema})"))
        }
        "list" | "array" => both("unknown[]", "z.array(z.unknown())"),
        "object" | "dict" if !list(&output["properties"]).is_empty() && depth < DEEPEST => {
            let fields = list(&output["properties"])
                .iter()
                .map(|field| Field::new(field, field["required"] == false, output_type(field, depth + 1)));
            let (members, schemas): (Vec<String>, Vec<String>) =
                fields.map(|field| (field.member(), field.schema())).unzip();
            (format!("{{ {} }}", members.join("; ")), format!("z.object({{ {} }})", schemas.join(", ")))
        }
        "object" | "dict" => both("Record<string, unknown>", "z.record(z.string(), z.unknown())"),
        _ => both("any", "z.any()"),
    }
}
