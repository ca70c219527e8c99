//! Examples as a model reads them: those of tools behind a section's text, those of tasks as sections of their own.

use serde_json::{Map, Value as Json, json};

use super::tool::SectionTool;
use crate::overrides::{TaskExample, ToolExample};
use crate::prompt::{Record, Shape};
use crate::template::python::float_repr;

/// A value as its shape shows it: the fields of a record in their order, under the keys that a model knows, and with their
/// defaults where they are not given.
pub(super) fn completed(shape: &Shape, value: &Json) -> Json {
    match (shape, value) {
        (Shape::Record(record), Json::Object(given)) => completed_record(record, given),
        (Shape::List(of) | Shape::Set(of), Json::Array(items)) => {
            items.iter().map(|item| completed(of, item)).collect()
        }
        (Shape::Tuple(of), Json::Array(items)) if of.len() == items.len() => {
            of.iter().zip(items).map(|(of, item)| completed(of, item)).collect()
        }
        (Shape::Map(of), Json::Object(members)) => {
            let members = members.iter().map(|(key, member)| (key.clone(), completed(of, member)));
            Json::Object(members.collect())
        }
        (Shape::Union(of), _) => {
            let fits = |of: &&Shape| match of {
                Shape::Record(_) | Shape::Map(_) => value.is_object(),
                Shape::List(_) | Shape::Set(_) | Shape::Tuple(_) => value.is_array(),
                _ => false,
            };
            of.iter().find(fits).map_or_else(|| value.clone(), |of| completed(of, value))
        }
        _ => value.clone(),
    }
}

fn completed_record(record: &Record, given: &Map<String, Json>) -> Json {
    let mut whole = Map::new();
    for field in &record.fields {
        let value = given.get(field.key()).or_else(|| given.get(&field.name)).or(field.default.as_ref());
        if let Some(value) = value {
            whole.insert(field.key().to_owned(), completed(&field.shape, value));
        }
    }
    Json::Object(whole)
}

/// The kind of a value, in the words of the errors.
pub(super) fn kind_of(value: &Json) -> &'static str {
    match value {
        Json::Null => "NoneType",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_f64() => "float",
        Json::Number(_) => "int",
        Json::String(_) => "str",
        Json::Array(_) => "list",
        Json::Object(_) => "dict",
    }
}

/// JSON on one line, with a space behind every comma and colon, and without what is null in objects.
fn spaced(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(spaced).collect::<Vec<_>>().join(", ")),
        Json::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            let members = members.map(|(key, value)| format!("{}: {}", json!(key), spaced(value)));
            format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
        }
        Json::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(float) => float_repr(float),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// A value between fences, indented.
fn fenced(lines: &mut Vec<String>, indent: usize, language: &str, value: &str, blank: usize) {
    let pad = " ".repeat(indent);
    lines.push(format!("{pad}```{language}"));
    lines.extend(value.split('\n').map(|line| match line.trim().is_empty() {
        true => " ".repeat(blank),
        false => format!("{pad}{line}"),
    }));
    lines.push(format!("{pad}```"));
}

/// The examples of tools that have any, behind a blank line; nothing, if none has.
pub(super) fn of_tools<'t>(
    tools: impl Iterator<Item = (&'t SectionTool, &'t [ToolExample])>,
) -> Option<String> {
    let mut lines = Vec::new();
    for (tool, examples) in tools.filter(|(_, examples)| !examples.is_empty()) {
        lines.push(format!("- {}: {}", tool.name, tool.description));
        lines.push(format!("  - {} examples:", tool.name));
        for example in examples {
            lines.push(format!("    - description: {}", example.description));
            lines.push("      input:".to_owned());
            fenced(&mut lines, 8, "json", &spaced(&example.input), 6);
            lines.push("      output:".to_owned());
            // An override may have moved the examples, so it is asked which one of the author's this is.
            let own = tool.examples.iter().position(|own| own == example);
            let shown = own.and_then(|own| tool.shown_outputs.get(own)?.clone());
            let output = shown.unwrap_or_else(|| match &example.output {
                Json::Null => String::new(),
                other => spaced(other),
            });
            fenced(&mut lines, 8, "", &output, 6);
        }
    }
    (!lines.is_empty()).then(|| format!("\n\nTools:\n{}", lines.join("\n")))
}

/// An example of a task.
pub(super) fn of_task(example: &TaskExample) -> String {
    let mut lines = vec![format!("**Objective:** {}", example.objective), String::new(), "**Steps:**".into()];
    lines.push(String::new());
    for (index, step) in example.steps.iter().enumerate() {
        lines.push(format!("{}. **{}** - {}", index + 1, step.tool, step.description));
        lines.push("   - input:".to_owned());
        fenced(&mut lines, 5, "json", &spaced(&step.input), 5);
        lines.push("   - output:".to_owned());
        fenced(&mut lines, 5, "", &spaced(&step.output), 5);
        lines.push(String::new());
    }
    let outcome = match &example.outcome {
        Json::String(text) => text.clone(),
        other => spaced(other),
    };
    lines.push(format!("**Outcome:** {outcome}"));
    lines.join("\n")
}
