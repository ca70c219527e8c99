//! The library's prompts as prompts of the protocol: the list, the arguments, and what a client gets when it asks for one.
//!
//! Arguments of the protocol are texts, and variables have types; [`value`] is the way from one to the other. A client names a
//! prompt by its id and never by a path, so it reaches the library and nothing else.

use std::collections::BTreeSet;
use std::sync::Arc;

use cuebook::error::{Diagnostic, Severity, did_you_mean, nearest};
use cuebook::prompt::{Need, Rich, Type, Variable};
use cuebook::{Book, Code, Context, Error, ErrorKind, Prepared, Result, Variables};
use rmcp::model::{GetPromptResult, MetaObject, Prompt, PromptArgument};
use serde_json::{Map, Value as Json, json};

use crate::messages;

/// Characters of a default value that a description shows.
const MAX_SHOWN: usize = 60;

/// The ids of all prompts, in order.
pub(crate) fn ids(book: &Book) -> Result<Vec<String>> {
    book.library().ids()
}

/// A prompt that clients may see: what it says of itself counts only if its signature is valid, where it needs one.
pub(crate) fn prepare(book: &Book, id: &str) -> Result<Arc<Prepared>> {
    let prepared = book.prepare(id, &Context::default())?;
    prepared.verify_signature()?;
    Ok(prepared)
}

/// A prompt as the list shows it. One that cannot be used is there too, with the reason and nothing of its content.
pub(crate) fn listed(book: &Book, id: &str) -> Prompt {
    let prepared = match prepare(book, id) {
        Ok(prepared) => prepared,
        Err(error) => {
            let why = format!("cannot be used: {}", error.diagnostic().message);
            let mut meta = MetaObject::new();
            meta.0.insert("cuebook/problem".into(), error.to_json()["error"].take());
            return Prompt::new(id, Some(why), None).with_meta(meta);
        }
    };
    let metadata = &prepared.prompt().metadata;
    // Clients show it in lists, so something has to stand there.
    let description = metadata.description.clone().unwrap_or_else(|| metadata.name.clone());
    let arguments = arguments(&prepared);
    let variables: Vec<Json> = prepared
        .prompt()
        .variables
        .iter()
        .filter(|variable| !variable.from_system)
        .map(|variable| {
            let mut object = variable.to_json();
            object["required"] = json!(variable.need == Need::Required);
            object
        })
        .collect();
    let mut prompt = Prompt::new(id, Some(description), Some(arguments)).with_title(&metadata.name);
    if !variables.is_empty() {
        let mut meta = MetaObject::new();
        meta.0.insert("cuebook/variables".into(), Json::Array(variables));
        prompt = prompt.with_meta(meta);
    }
    prompt
}

/// The arguments of a prompt: its variables, and after them the names that its templates read without declaring them.
fn arguments(prepared: &Prepared) -> Vec<PromptArgument> {
    let declared =
        prepared.prompt().variables.iter().filter(|variable| !variable.from_system).map(|variable| {
            let argument = PromptArgument::new(&variable.name).with_required(variable.need == Need::Required);
            match describe(variable) {
                text if text.is_empty() => argument,
                text => argument.with_description(text),
            }
        });
    let undeclared =
        undeclared(prepared).into_iter().map(|name| PromptArgument::new(name).with_required(false));
    declared.chain(undeclared).collect()
}

/// Names that a caller may give and that the prompt does not declare.
fn undeclared(prepared: &Prepared) -> BTreeSet<String> {
    let mut names = prepared.known_names().clone();
    names.retain(|name| {
        !matches!(name.as_str(), "system" | "session") && prepared.prompt().variable(name).is_none()
    });
    if !names.is_empty() {
        // Packs fill these.
        let definition = prepared.to_json();
        for namespace in definition["names"]["namespaces"].as_array().into_iter().flatten() {
            names.remove(namespace.as_str().unwrap_or_default());
        }
    }
    names
}

/// What a variable is for and what it takes, in a line.
fn describe(variable: &Variable) -> String {
    let mut facts = Vec::new();
    match (variable.rich, variable.kind) {
        (Some(Rich::Thread), _) => facts.push("messages as JSON".to_owned()),
        (Some(rich), _) => facts.push(format!("{}: a URL, a data: URI or base64", rich.as_str())),
        (None, Type::String | Type::Any) => {}
        (None, Type::List | Type::Object) => facts.push(format!("{} as JSON", variable.type_name())),
        (None, _) => facts.push(variable.type_name().to_owned()),
    }
    if !variable.choices.is_empty() {
        let choices: Vec<String> = variable.choices.iter().map(text).collect();
        facts.push(format!("one of {}", choices.join(", ")));
    }
    if let Some(default) = &variable.default {
        let shown = text(&variable.shown(default));
        let cut: String = shown.chars().take(MAX_SHOWN).collect();
        let dots = if cut.len() < shown.len() { "…" } else { "" };
        facts.push(format!("default: {}{dots}", if cut.is_empty() { "empty" } else { &cut }));
    }
    let description = variable.description.as_deref().unwrap_or_default();
    match (description.is_empty(), facts.is_empty()) {
        (_, true) => description.to_owned(),
        (true, false) => facts.join("; "),
        (false, false) => format!("{description} ({})", facts.join("; ")),
    }
}

/// A value as a user would write it into a form: text unchanged, and everything else as JSON.
pub(crate) fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The id that a client means. Paths are none: they would lead out of the library.
pub(crate) fn id_of(book: &Book, name: &str) -> Result<String> {
    match book.library().resolve_id(name) {
        Ok((id, _)) => Ok(id),
        // Ids with slashes are those of items, and only if there is such an item.
        Err(_) if name.contains('/') && ids(book)?.iter().any(|id| id == name) => Ok(name.to_owned()),
        Err(error) => Err(error),
    }
}

/// Renders a prompt with the arguments of a client.
pub(crate) fn get(book: &Book, name: &str, given: &Map<String, Json>) -> Result<GetPromptResult> {
    let id = id_of(book, name)?;
    let prepared = prepare(book, &id)?;
    let mut variables = Variables::new();
    for (name, given) in given {
        if !prepared.knows(name) {
            return Err(unknown_argument(&prepared, name));
        }
        if let Some(value) = value(&id, name, prepared.prompt().variable(name), given)? {
            variables = variables.set(name, value);
        }
    }
    let rendered = book.render(&id, &variables, &Context::default())?;
    // The file may have changed since it was prepared: what was rendered is what counts.
    if let Some(unsigned) = rendered.notes().iter().find(|note| note.code == Code::Unsigned) {
        return Err(Error::new(ErrorKind::Integrity, unsigned.clone().severity(Severity::Error)));
    }
    let messages = rendered.messages()?.iter().flat_map(messages::of).collect();
    let mut result = GetPromptResult::new(messages);
    result.description = prepared.prompt().metadata.description.clone();
    if !rendered.notes().is_empty() {
        let notes = rendered.notes().iter().map(|note| Json::Object(note.to_json())).collect();
        let mut meta = MetaObject::new();
        meta.0.insert("cuebook/notes".into(), notes);
        result.meta = Some(meta);
    }
    Ok(result)
}

/// The error for an argument that a prompt does not have.
pub(crate) fn unknown_argument(prepared: &Prepared, name: &str) -> Error {
    let known = prepared.known_names();
    let known: Vec<&str> = known.iter().map(String::as_str).filter(|known| *known != "system").collect();
    let near = nearest(name, known.iter().copied());
    let hint = did_you_mean(&near).unwrap_or_else(|| match known.is_empty() {
        true => "this prompt takes no arguments".to_owned(),
        false => format!("its arguments are {}", known.join(", ")),
    });
    let message = format!("the prompt `{}` has no argument `{name}`", prepared.prompt().id);
    let diagnostic = Diagnostic::new(Code::UnknownVariable, message).hint(hint);
    Error::new(ErrorKind::PromptValidation, diagnostic).with("variable", name).with("nearest", near)
}

/// The value of an argument; `None` for a blank field of a form whose variable is not text. Clients send text; other JSON is
/// used unchanged.
fn value(id: &str, name: &str, variable: Option<&Variable>, given: &Json) -> Result<Option<Json>> {
    let (Some(variable), Json::String(text)) = (variable, given) else { return Ok(Some(given.clone())) };
    let kind = match (variable.rich, variable.kind) {
        // What is no list of messages has an error of its own.
        (Some(Rich::Thread), _) => {
            return Ok(Some(serde_json::from_str(text).unwrap_or_else(|_| given.clone())));
        }
        (Some(_), _) | (None, Type::String | Type::Any) => return Ok(Some(given.clone())),
        (None, kind) => kind,
    };
    let trimmed = text.trim();
    if trimmed.is_empty() && variable.need != Need::Required {
        return Ok(None);
    }
    let lower = trimmed.to_ascii_lowercase();
    let written = if kind == Type::Boolean { lower.as_str() } else { trimmed };
    match serde_json::from_str::<Json>(written) {
        Ok(value) if kind.admits(&value) => Ok(Some(value)),
        _ if variable.lenient => Ok(Some(given.clone())),
        _ => {
            let example = match kind {
                Type::Integer => "3",
                Type::Number => "1.5",
                Type::Boolean => "true",
                Type::List => r#"["a", "b"]"#,
                _ => r#"{"name": "value"}"#,
            };
            let shown: String = trimmed.chars().take(MAX_SHOWN).collect();
            let message = format!("the argument `{name}` must be of type {}, not {shown:?}", kind.as_str());
            let diagnostic = Diagnostic::new(Code::InvalidVariables, message)
                .hint(format!("write it as JSON, such as {example}"));
            Err(Error::new(ErrorKind::PromptValidation, diagnostic)
                .with("prompt_id", id)
                .with("variable", name))
        }
    }
}
