//! Rendering: templates of both formats to text and to segments, each as a real `.prompty` file in a library.

use cuebook::variables::FixedNonces;
use cuebook::{Book, Context, Rendered, Variables};
use serde_json::{Map, Value as Json, json};

use super::Case;
use crate::compare::equals;

/// Renders the template of a case. Inputs with a `_kind` are rich ones, those in `strict_props` are strict.
fn rendered(input: &Json) -> cuebook::Result<Rendered> {
    let mut declared = Vec::new();
    let mut values = Map::new();
    for (name, value) in input["inputs"].as_object().unwrap() {
        let strict = input["strict_props"].as_array().is_some_and(|names| names.contains(&json!(name)));
        let kind = value["_kind"].as_str().unwrap_or("string");
        declared.push(json!({"name": name, "kind": kind, "strict": strict}));
        let value = if value.get("_kind").is_some() { &value["messages"] } else { value };
        values.insert(name.clone(), value.clone());
    }
    let engine = input["engine"].as_str().unwrap_or("jinja2");
    let front = json!({"name": "case", "inputs": declared, "template": {"format": {"kind": engine}}});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.prompty");
    let template = input["template"].as_str().unwrap();
    std::fs::write(&path, format!("---\n{front}\n---\n{template}")).unwrap();
    // The vectors know nonces of eight digits (decision 9).
    let book = Book::open(folder.path()).with_paths(true).with_nonces(FixedNonces("0a1b2c3d".into()));
    book.render(path.to_str().unwrap(), &Variables::from_json(&values), &Context::default())
}

fn text(rendered: cuebook::Result<Rendered>) -> Result<String, String> {
    rendered.map(Rendered::into_text).map_err(|error| error.to_string())
}

/// A rendered text against the one that is expected.
fn same(expected: &Json, rendered: cuebook::Result<Rendered>) -> Result<(), String> {
    equals(expected, &json!(text(rendered)?))
}

pub fn render(case: &Case<'_>) -> Result<(), String> {
    let rendered = rendered(case.input());
    match case.expected()["nonce_pattern"].as_str() {
        None => same(&case.expected()["rendered"], rendered),
        Some(pattern) => {
            let text = text(rendered)?;
            let fits = regex::Regex::new(&format!("(?s){pattern}")).unwrap().is_match(&text);
            if fits { Ok(()) } else { Err(format!("{text:?} does not match {pattern:?}")) }
        }
    }
}

/// Segments against those that are expected, or the error.
fn same_segments(
    expected: &Json,
    error: Option<&str>,
    rendered: cuebook::Result<Rendered>,
) -> Result<(), String> {
    match (error, rendered) {
        (None, Ok(rendered)) => equals(expected, &json!(rendered.segments())),
        (Some(wanted), Err(error)) if error.kind().name() == wanted => Ok(()),
        (wanted, other) => {
            let got = other.map(|rendered| rendered.segments()).map_err(|error| error.to_string());
            Err(format!("expected {wanted:?}, got {got:?}"))
        }
    }
}

pub fn segments(case: &Case<'_>) -> Result<(), String> {
    let expected = case.expected();
    same_segments(&expected["segments"], expected["error"].as_str(), rendered(case.input()))
}

pub fn golden(golden: &Json) -> Result<(), String> {
    match golden["throws"].as_str() {
        None => same(&golden["rendered"], rendered(golden)),
        error => same_segments(&Json::Null, error, rendered(golden)),
    }
}

pub fn segments_golden(golden: &Json) -> Result<(), String> {
    same_segments(&golden["segments"], golden["throws"].as_str(), rendered(golden))
}
