//! What an item must say of itself before it is signed.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::error::{Code, Diagnostic, Error};
use crate::files;
use crate::items::wrong_files;
use crate::items::{ItemType, Located};
use crate::notation::{directive, knowledge, tool};
use crate::source::Source;

/// What is known of an item that may be signed.
pub(super) struct ItemVersion {
    pub(super) version: Option<String>,
}

/// Limits of a directive that are whole numbers.
const WHOLE: [&str; 6] = ["turns", "tokens", "spawns", "depth", "duration_seconds", "calls"];

/// Bytes of a file that a tool lists.
const MAX_LISTED: u64 = 256 << 20;

/// Checks a file, or gives the answer that says why it cannot be signed.
pub(super) fn validate(located: &Located, bytes: &[u8]) -> Result<ItemVersion, Json> {
    let source = files::source_from_bytes(bytes.to_vec(), &located.name)
        .map_err(|error| json!({"error": error.diagnostic().to_string()}))?;
    match located.kind {
        ItemType::Directive => directive(located, &source),
        ItemType::Tool => tool(located, &source),
        ItemType::Knowledge => knowledge(located, &source),
    }
}

/// Whether a file says anything of itself as a tool or knowledge item, or why it cannot be read.
pub(super) fn has_metadata(located: &Located, source: &Arc<Source>) -> crate::error::Result<bool> {
    Ok(match located.kind {
        ItemType::Directive => false,
        ItemType::Tool => match tool::Notation::of_extension(located.extension) {
            Some(notation) => {
                let read = tool::read(source, notation)?;
                [&read.category, &read.tool_type, &read.version].iter().any(|field| field.is_some())
            }
            None => false,
        },
        ItemType::Knowledge => !knowledge::read(source)?.data.is_empty(),
    })
}

fn directive(located: &Located, source: &Arc<Source>) -> Result<ItemVersion, Json> {
    let read = directive::read(source).map_err(|error| unreadable("Invalid directive structure", &error))?;
    let said = read.to_json();
    let said = said.as_object().cloned().unwrap_or_default();
    let mut issues = Issues { located, said: &said, found: Vec::new() };
    if let Some(name) = issues.required("name") {
        if !is_directive_name(&name) {
            issues.push(format!("Field 'name' must match pattern ^[a-z][a-z0-9_]*$, got '{name}'"));
        }
        issues.matches_file(&name);
    }
    let version = issues.required("version");
    if let Some(version) = version.as_deref().filter(|version| !is_version(version)) {
        issues.push(format!("Field 'version' must be semver format (X.Y.Z), got '{version}'"));
    }
    issues.required("description");
    // An item at the top of its folder has an empty category.
    match said.get("category") {
        Some(Json::String(_)) => issues.matches_category(),
        _ => issues.push("Missing required field: category".to_owned()),
    }
    issues.required("author");
    if let Some(limits) = said.get("limits").and_then(Json::as_object) {
        for (name, value) in limits {
            if WHOLE.contains(&name.as_str()) && !value.is_i64() && !value.is_u64() {
                issues.push(format!("Field 'limits.{name}' must be an integer, got {}", python_type(value)));
            } else if name == "spend" && !value.is_number() {
                issues.push(format!("Field 'limits.spend' must be a number, got {}", python_type(value)));
            }
        }
    }
    for (index, input) in said.get("inputs").and_then(Json::as_array).into_iter().flatten().enumerate() {
        for field in ["name", "type"] {
            if input[field].as_str().is_none_or(str::is_empty) {
                issues.push(format!("Missing required field: inputs[{index}].{field}"));
            }
        }
    }
    for hook in read.notes.iter().filter(|note| note.code == Code::BadHook) {
        let line = hook.place.as_ref().map(|place| format!(" in line {}", place.line())).unwrap_or_default();
        let hint = hook.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        issues.push(format!("Hook{line}: {}{hint}", hook.message));
    }
    issues.or(ItemVersion { version })
}

fn tool(located: &Located, source: &Arc<Source>) -> Result<ItemVersion, Json> {
    if source.text().trim().is_empty() {
        return Err(json!({"error": "Tool file is empty"}));
    }
    let unknown = || json!({"error": format!("No parser registered for extension: .{}", located.extension)});
    let notation = tool::Notation::of_extension(located.extension).ok_or_else(unknown)?;
    let read =
        tool::read(source, notation).map_err(|error| unreadable("Failed to parse tool file", &error))?;
    let mut said = Map::new();
    let fields = [
        ("category", &read.category),
        ("tool_type", &read.tool_type),
        ("version", &read.version),
        ("description", &read.description),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            said.insert(name.to_owned(), value.clone().into());
        }
    }
    // Rye reads nothing from these, so one without metadata is one that it could not have.
    if said.is_empty() && matches!(located.extension, "sh" | "toml" | "json") {
        let mut answer = unknown();
        answer["hint"] = "add its metadata: version, tool_type, category and description".into();
        return Err(answer);
    }
    let mut issues = Issues { located, said: &said, found: Vec::new() };
    match said.get("category") {
        Some(Json::String(_)) => issues.matches_category(),
        _ => issues.push("Missing required field: category".to_owned()),
    }
    for name in ["tool_type", "version", "description"] {
        issues.required(name);
    }
    for issue in nested_scripts(&read, source) {
        issues.push(issue);
    }
    if let Some(folder) = located.path().and_then(Path::parent) {
        for issue in wrong_files(folder, &read.files, MAX_LISTED) {
            issues.push(issue);
        }
    }
    issues.or(ItemVersion { version: read.version.clone() })
}

/// What would run a parameter as a part of a program, in the scripts of a tool that is data.
fn nested_scripts(read: &tool::Tool, source: &Source) -> Vec<String> {
    let declared = read.config_schema.as_ref().and_then(|schema| schema.get("properties")?.as_object());
    let is_parameter = |name: &str| declared.is_none_or(|declared| declared.contains_key(name));
    let mut scripts = Vec::new();
    for value in read.config.values() {
        texts(value, &mut scripts);
    }
    let found = scripts.into_iter().filter_map(|script| tool::nested::nested(script, &is_parameter));
    let issue = |found: tool::nested::Nested| {
        let written = format!("{{{}}}", found.name);
        let line = source.text().lines().position(|line| line.contains(&written));
        let place = line.map(|line| format!(" in line {}", line + 1)).unwrap_or_default();
        let (name, by) = (&found.name, &found.by);
        format!(
            "{written}{place} would become part of the program that `{by}` runs; pass it as an argument: \
                 sh -c '… \"$1\"' sh {{{name}}}"
        )
    };
    found.map(issue).collect()
}

/// All texts in a value.
fn texts<'v>(value: &'v Json, found: &mut Vec<&'v str>) {
    match value {
        Json::String(text) => found.push(text),
        Json::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Json::Object(map) => map.values().for_each(|value| texts(value, found)),
        _ => {}
    }
}

fn knowledge(located: &Located, source: &Arc<Source>) -> Result<ItemVersion, Json> {
    let read = knowledge::read(source).map_err(|error| unreadable("Invalid knowledge structure", &error))?;
    let said = &read.data;
    let mut issues = Issues { located, said, found: Vec::new() };
    if let Some(name) = issues.required("name") {
        issues.matches_file(&name);
    }
    for name in ["title", "version", "entry_type"] {
        issues.required(name);
    }
    if said.contains_key("category") {
        issues.matches_category();
    }
    if said.is_empty() {
        return Err(json!({
            "error": "No metadata found. Knowledge entries require a ```yaml fenced code block with name, title, version, and entry_type fields.",
            "issues": issues.found,
            // The sentence above is Rye's, which knows of one form.
            "hint": "add its metadata in a ```yaml block, or between two lines `---` at the top of the file",
        }));
    }
    let version = read.text("version").map(str::to_owned);
    issues.or(ItemVersion { version })
}

/// What is wrong with what an item says.
struct Issues<'i> {
    located: &'i Located,
    said: &'i Map<String, Json>,
    found: Vec<String>,
}

impl Issues<'_> {
    fn push(&mut self, issue: String) {
        self.found.push(issue);
    }

    /// The text of a field that must be there.
    fn required(&mut self, name: &str) -> Option<String> {
        match self.said.get(name) {
            Some(Json::String(text)) if !text.trim().is_empty() => Some(text.clone()),
            Some(Json::Number(number)) => Some(number.to_string()),
            _ => {
                self.push(format!("Missing required field: {name}"));
                None
            }
        }
    }

    fn matches_file(&mut self, name: &str) {
        let file = self.located.id.name();
        if name != file {
            self.push(format!("Field 'name' value '{name}' must match filename '{file}'"));
        }
    }

    fn matches_category(&mut self) {
        let wanted = self.located.id.category();
        let category = self.said.get("category").and_then(Json::as_str).unwrap_or_default();
        if category != wanted {
            self.push(format!("Field 'category' value '{category}' must match path category '{wanted}'"));
        }
    }

    fn or(self, said: ItemVersion) -> Result<ItemVersion, Json> {
        match self.found.is_empty() {
            true => Ok(said),
            false => {
                let mut answer = json!({"error": "Validation failed", "issues": self.found});
                if let Some(hint) = self.spelled() {
                    answer["hint"] = hint.into();
                }
                Err(answer)
            }
        }
    }
}

/// Fields that a directive has as attributes.
const ATTRIBUTES: [&str; 2] = ["name", "version"];

impl Issues<'_> {
    /// How the fields that are missing are written in this file.
    fn spelled(&self) -> Option<String> {
        let missing = self.found.iter().filter_map(|issue| issue.strip_prefix("Missing required field: "));
        let written: Vec<String> = missing.filter_map(|field| self.spelling(field)).collect();
        let file = &self.located.name;
        let is_element = |one: &String| !one.starts_with("`<directive ");
        let inside = match self.located.kind {
            ItemType::Directive if written.iter().all(is_element) => "`<metadata>` of ",
            _ => "",
        };
        (!written.is_empty()).then(|| format!("write {} into {inside}{file}", written.join(", ")))
    }

    fn spelling(&self, field: &str) -> Option<String> {
        let value = match field {
            "category" => self.located.id.category(),
            "name" => self.located.id.name(),
            "version" => "1.0.0",
            "tool_type" if self.located.extension == "py" => "python",
            _ => "…",
        };
        Some(match (self.located.kind, self.located.extension) {
            _ if field.contains('[') => return None,
            (ItemType::Directive, _) if ATTRIBUTES.contains(&field) => {
                format!("`<directive {field}=\"{value}\">`")
            }
            (ItemType::Directive, _) => format!("`<{field}>{value}</{field}>`"),
            (ItemType::Tool, "py" | "js" | "ts" | "mjs" | "cjs" | "sh") => {
                let field = if field == "description" { "tool_description" } else { field };
                let start = match self.located.extension {
                    "py" => "",
                    "sh" => "# ",
                    _ => "const ",
                };
                format!("`{start}__{field}__ = \"{value}\"`")
            }
            _ => format!("`{field}: {value}`"),
        })
    }
}

/// Whether a directive may be called so.
pub fn is_directive_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether it is a version of three numbers.
pub fn is_version(text: &str) -> bool {
    let mut parts = text.split('.');
    let is_number = |part: Option<&str>| {
        part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    is_number(parts.next()) && is_number(parts.next()) && is_number(parts.next()) && parts.next().is_none()
}

/// The name of a type as Python calls it, which is how these messages have always said it.
fn python_type(value: &Json) -> &'static str {
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

fn unreadable(what: &str, error: &Error) -> Json {
    // The answer names the file, and its code, already.
    let detail = |found: &Diagnostic| match &found.place {
        Some(place) => format!("line {}: {}", place.line(), found.message),
        None => found.message.clone(),
    };
    let details: Vec<String> = error.diagnostics().iter().map(detail).collect();
    let mut answer = json!({"error": what, "details": details});
    if let Some(hint) = error.diagnostics().iter().find_map(|found| found.hint.as_deref()) {
        answer["hint"] = hint.into();
    }
    answer
}
