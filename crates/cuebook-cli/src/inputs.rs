//! Values from the command line: `--var`, `--vars`, `--agent` and `--context`.

use std::io::Read;
use std::path::Path;

use cuebook::error::{did_you_mean, nearest};
use cuebook::files;
use cuebook::source::Source;
use cuebook::{Agent, Book, Code, Context, Diagnostic, Error, ErrorKind, Result, Variables};
use serde_json::{Map, Value as Json};

use crate::args::Inputs;
use crate::output::say;

/// What `--vars` may be at most; variables are values, and a prompt is not a database.
const MOST_BYTES: u64 = 256 << 20;

/// Everything that a render gets from the command line.
pub struct Given {
    /// The prompt.
    pub prompt: String,
    /// The variables.
    pub variables: Variables,
    /// The circumstances.
    pub context: Context,
}

/// Reads the values and makes sure that the prompt has variables of these names.
pub fn read(prompt: Option<&str>, inputs: &Inputs, book: &Book) -> Result<Given> {
    let mut context = Context { strict: inputs.strict, without_hooks: inputs.no_hooks, ..Context::default() };
    if let Some(path) = &inputs.agent {
        context.agent = Agent::read(&files::read_input(path, &path.to_string_lossy(), MOST_BYTES)?)?;
    }
    for argument in &inputs.context {
        set_context(&mut context, argument)?;
    }
    let prompt = match (prompt, &context.agent.prompt_id) {
        (Some(prompt), _) => prompt.to_owned(),
        (None, Some(prompt)) => prompt.clone(),
        (None, None) => {
            return Err(bad_input("no prompt was given", "name one, as in: cuebook render general_system"));
        }
    };
    let mut values = match &inputs.vars_file {
        Some(path) => read_file(path)?,
        None => Map::new(),
    };
    let from_file: Vec<String> = values.keys().cloned().collect();
    let mut from_line = Vec::new();
    for argument in &inputs.vars {
        let (name, value) = parse(argument)?;
        from_line.push(name.clone());
        values.insert(name, value);
    }
    if !values.is_empty() {
        check_names(&prompt, &from_line, &from_file, &context, book)?;
    }
    Ok(Given { prompt, variables: Variables::from_json(&values), context })
}

fn bad_input(message: impl Into<String>, hint: impl Into<String>) -> Error {
    Error::new(ErrorKind::PromptValidation, Diagnostic::new(Code::BadInput, message).hint(hint))
}

/// `NAME=TEXT` or `NAME:=JSON`.
fn parse(argument: &str) -> Result<(String, Json)> {
    let form = "write NAME=TEXT for text, or NAME:=JSON for numbers, booleans, lists and objects";
    let Some((name, value)) = argument.split_once('=') else {
        return Err(bad_input(format!("--var {argument} has no `=`"), form));
    };
    let (name, json) = match name.strip_suffix(':') {
        Some(name) => (name, true),
        None => (name, false),
    };
    if name.trim().is_empty() {
        return Err(bad_input(format!("--var {argument} has no name"), form));
    }
    if !json {
        return Ok((name.to_owned(), Json::String(value.to_owned())));
    }
    let value = serde_json::from_str(value).map_err(|error| {
        let shown = if value.chars().count() > 60 { "…" } else { value };
        let hint = format!("text is passed with `=` alone: --var {name}={shown}");
        bad_input(format!("the value of --var {name} is not valid JSON: {error}"), hint)
    })?;
    Ok((name.to_owned(), value))
}

fn read_file(path: &Path) -> Result<Map<String, Json>> {
    let (name, text) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .take(MOST_BYTES)
            .read_to_end(&mut bytes)
            .map_err(|error| files::io_error("stdin", &error))?;
        ("stdin".to_owned(), files::source_from_bytes(bytes, "stdin")?)
    } else {
        let name = path.to_string_lossy().into_owned();
        let source = files::read_input(path, &name, MOST_BYTES)?;
        (name, source)
    };
    let form = "write {\"name\": value, …}";
    match serde_json::from_str(text.text()) {
        Ok(Json::Object(values)) => match serde_json::from_str(text.text()) {
            Ok(Once) => Ok(values),
            Err(error) => {
                let hint = "keep one of the two: nobody can tell which one is meant";
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                Err(at(&text, error.line(), error.column(), message, hint))
            }
        },
        Ok(_) => Err(at(&text, 1, 1, "variables are given as a JSON object".into(), form)),
        Err(error) => {
            let message = format!("{name} is not valid JSON: {error}");
            Err(at(&text, error.line(), error.column(), message, form))
        }
    }
}

/// A JSON object in which every name is given once. The parser itself would silently take the last.
struct Once;

impl<'de> serde::Deserialize<'de> for Once {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Once, D::Error> {
        struct Names;

        impl<'de> serde::de::Visitor<'de> for Names {
            type Value = Once;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Once, A::Error> {
                let mut names = std::collections::HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if names.contains(&name) {
                        return Err(serde::de::Error::custom(format!(
                            "the variable `{name}` is given twice"
                        )));
                    }
                    names.insert(name);
                    map.next_value::<serde::de::IgnoredAny>()?;
                }
                Ok(Once)
            }
        }

        deserializer.deserialize_map(Names)
    }
}

fn at(source: &std::sync::Arc<Source>, line: usize, column: usize, message: String, hint: &str) -> Error {
    let start = match line.checked_sub(2) {
        Some(newline) => source.text().match_indices('\n').nth(newline).map_or(0, |(at, _)| at + 1),
        None => 0,
    };
    let offset = start + column.saturating_sub(1);
    let diagnostic = Diagnostic::new(Code::BadInput, message).at(source.place(offset..offset + 1)).hint(hint);
    Error::new(ErrorKind::PromptValidation, diagnostic)
}

const CONTEXT_NAMES: [&str; 6] =
    ["agent_id", "agent_name", "model", "session_id", "workspace_path", "language"];

fn set_context(context: &mut Context, argument: &str) -> Result<()> {
    let Some((name, value)) = argument.split_once('=') else {
        return Err(bad_input(format!("--context {argument} has no `=`"), "write --context language=ja"));
    };
    let field = match name {
        "agent_id" => &mut context.agent.id,
        "agent_name" => &mut context.agent.name,
        "model" => &mut context.model,
        "session_id" => &mut context.session_id,
        "workspace_path" => &mut context.workspace_path,
        "language" => &mut context.language,
        _ => {
            let hint = did_you_mean(&nearest(name, CONTEXT_NAMES))
                .unwrap_or_else(|| format!("known: {}", CONTEXT_NAMES.join(", ")));
            return Err(bad_input(format!("there is no fact `{name}` about a render"), hint));
        }
    };
    *field = Some(value.to_owned());
    Ok(())
}

/// A misspelt name on the command line would silently change nothing. A file may serve many prompts, so there it is only
/// mentioned if it looks like a slip.
fn check_names(prompt: &str, line: &[String], file: &[String], context: &Context, book: &Book) -> Result<()> {
    let prepared = book.prepare(prompt, context)?;
    let names = prepared.known_names();
    let similar = |name: &str| nearest(name, names.iter().map(String::as_str));
    for name in line {
        if !prepared.knows(name) {
            let id = &prepared.prompt().id;
            let hint = did_you_mean(&similar(name)).unwrap_or_else(|| {
                let known: Vec<&str> =
                    names.iter().map(String::as_str).filter(|name| *name != "system").collect();
                match known.is_empty() {
                    true => "this prompt has no variables".to_owned(),
                    false => format!("its variables are {}", known.join(", ")),
                }
            });
            let diagnostic =
                Diagnostic::new(Code::UnknownVariable, format!("the prompt `{id}` has no variable `{name}`"))
                    .hint(hint);
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic).with("variable", name));
        }
    }
    for name in file {
        if !prepared.knows(name)
            && let Some(hint) = did_you_mean(&similar(name))
        {
            say(format_args!("warning: `{name}` in --vars is no variable of this prompt: {hint}"));
        }
    }
    Ok(())
}
