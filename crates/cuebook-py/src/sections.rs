//! Trees of sections that are built in Python. Python decides what is enabled and visible; the engine renders.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuebook::Result;
use cuebook::prompt::Record;
use cuebook::sections::{Bound as Params, ParamsType, Section, SectionTool, Selector, Setting, Tree};
use cuebook_lab::explain;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value as Json, json};

use crate::context::{usage, visibility};
use crate::errors::Raise;
use crate::json::to_python;
use crate::values::members;

/// Renders a tree: its text, spans, and the names of the tools that a model may call.
#[pyfunction]
pub fn render_sections(py: Python<'_>, tree: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
    let given = members(tree)?;
    let answer = py.detach(|| render(&given)).or_raise(py)?;
    to_python(py, &answer)
}

fn render(given: &Map<String, Json>) -> Result<Json> {
    let mut tree = Tree::builder(text(given, "ns")?, text(given, "key")?);
    if let Some(name) = given.get("name").and_then(Json::as_str) {
        tree = tree.name(name);
    }
    for one in list(given, "sections") {
        tree = tree.section(section(one)?);
    }
    let tree = tree.build()?;
    let bound: Vec<Params> = list(given, "bound")
        .iter()
        .filter_map(|one| Some(Params::new(one["type"].as_str()?, one["values"].as_object()?)))
        .collect();
    let rendered = tree.render(&Setting::new(&bound))?;
    let text = rendered.text();
    let (mut byte, mut at) = (0, 0);
    let spans: Json = rendered
        .spans()
        .map(|span| {
            at += text[byte..span.range.start].chars().count();
            let start = at;
            at += text[span.range.clone()].chars().count();
            byte = span.range.end;
            json!({
                "start": start, "end": at, "origin": span.origin.to_json(),
                "label": explain::label(&span.origin), "section": span.section.as_deref(),
            })
        })
        .collect();
    let tools: Json = rendered.tools.iter().map(|tool| json!(tool.name)).collect();
    let states: Json = rendered.states.iter().map(|state| json!(state.as_str())).collect();
    Ok(json!({"text": text, "spans": spans, "tools": tools, "states": states}))
}

fn text<'j>(given: &'j Map<String, Json>, name: &str) -> Result<&'j str> {
    let found = given.get(name).and_then(Json::as_str);
    found.ok_or_else(|| usage(format!("`{name}` must be a text"), "pass a str"))
}

fn list<'j>(given: &'j Map<String, Json>, name: &str) -> &'j [Json] {
    given.get(name).and_then(Json::as_array).map_or(&[], Vec::as_slice)
}

fn section(given: &Json) -> Result<Section> {
    let Json::Object(given) = given else {
        return Err(usage("a section must be an object", "pass a dict"));
    };
    let mut section = Section::new(text(given, "key")?, text(given, "title")?, text(given, "template")?);
    if let Some(summary) = given.get("summary").and_then(Json::as_str) {
        section = section.summary(summary);
    }
    if let Some(shown) = given.get("visibility").filter(|shown| !shown.is_null()) {
        section = section.visible(visibility(shown)?);
    }
    section.enabled = Selector::Always(given.get("enabled").and_then(Json::as_bool).unwrap_or(true));
    if let Some(name) = given.get("params").and_then(Json::as_str) {
        let record = Arc::new(Record { name: name.to_owned(), description: None, fields: Vec::new() });
        let fences = BTreeMap::new();
        section.params = Some(Arc::new(ParamsType { name: name.to_owned(), record, open: true, fences }));
    }
    for tool in list(given, "tools") {
        let name = tool["name"].as_str().unwrap_or_default();
        section = section.tool(SectionTool::new(name, tool["description"].as_str().unwrap_or_default())?);
    }
    for child in list(given, "children") {
        section = section.child(self::section(child)?);
    }
    Ok(section)
}
