//! What a caller says about a render besides its variables.

use cuebook::error::{did_you_mean, nearest};
use cuebook::prompt::Visibility;
use cuebook::{Agent, Code, Context, Diagnostic, Error, ErrorKind, Hint, Result, Variables};
use serde_json::{Map, Value as Json};

/// The keys that a context may have.
const KEYS: [&str; 13] = [
    "agent",
    "model",
    "session_id",
    "workspace_path",
    "session",
    "session_state",
    "language",
    "strict",
    "visibility",
    "overrides_tag",
    "fit",
    "without_hooks",
    "message",
];

/// The words of a language for its types.
#[derive(Debug, Clone, Copy)]
pub struct TypeNames {
    /// A value that is true or false.
    pub truth: &'static str,
    /// Values by name.
    pub object: &'static str,
}

/// Reads a context.
///
/// # Errors
///
/// `CB407` if it has an unknown key, or a value of another type.
pub fn read(given: &Map<String, Json>, names: TypeNames) -> Result<Context> {
    let mut context = Context::default();
    let truth = |key: &str, value: &Json| value.as_bool().ok_or_else(|| wrong(key, names.truth));
    let object = |key: &str, value: &Json| object(key, value, names);
    for (key, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            "agent" => context.agent = agent(value, names)?,
            "model" => context.model = Some(text(key, value)?),
            "session_id" => context.session_id = Some(text(key, value)?),
            "workspace_path" => context.workspace_path = Some(text(key, value)?),
            "session" => context.session = object(key, value)?,
            "session_state" => context.session_state = object(key, value)?,
            "language" => context.language = Some(text(key, value)?),
            "strict" => context.strict = truth(key, value)?,
            "visibility" => {
                for (path, wanted) in object(key, value)? {
                    let path: Vec<String> = path.split('.').map(str::to_owned).collect();
                    context.visibility.set(&path, visibility(&wanted)?);
                }
            }
            "overrides_tag" => context.overrides_tag = Some(text(key, value)?),
            "fit" => {
                context.fit = Some(value.as_u64().ok_or_else(|| wrong(key, "a number of tokens"))? as usize)
            }
            "without_hooks" => context.without_hooks = truth(key, value)?,
            "message" => context.message = Some(text(key, value)?),
            other => return Err(unknown("the context", other, &KEYS)),
        }
    }
    Ok(context)
}

fn agent(value: &Json, names: TypeNames) -> Result<Agent> {
    let mut agent = Agent::default();
    for (key, value) in object("agent", value, names)?.iter().filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            "id" | "agent_id" => agent.id = Some(text(key, value)?),
            "name" => agent.name = Some(text(key, value)?),
            "prompt_id" => agent.prompt_id = Some(text(key, value)?),
            "model" => agent.model = Some(text(key, value)?),
            "language" => agent.language = Some(text(key, value)?),
            "variables" | "prompt_variables" => {
                agent.variables = Variables::from_json(&object(key, value, names)?);
            }
            // An agent has more keys than those about prompts.
            _ => {}
        }
    }
    Ok(agent)
}

/// `full` or `summary`.
///
/// # Errors
///
/// `CB407` if it is another text.
pub fn visibility(value: &Json) -> Result<Visibility> {
    match value.as_str() {
        Some("full") => Ok(Visibility::Full),
        Some("summary") => Ok(Visibility::Summary),
        _ => Err(wrong("visibility", "`full` or `summary`")),
    }
}

fn text(key: &str, value: &Json) -> Result<String> {
    value.as_str().map(str::to_owned).ok_or_else(|| wrong(key, "a text"))
}

fn object(key: &str, value: &Json, names: TypeNames) -> Result<Map<String, Json>> {
    value.as_object().cloned().ok_or_else(|| wrong(key, names.object))
}

fn wrong(key: &str, wanted: &str) -> Error {
    usage(format!("`{key}` must be {wanted}"), format!("pass {wanted}"))
}

/// The error about a name that is not among those that are known.
pub fn unknown(whose: &str, name: &str, known: &[&str]) -> Error {
    let near = did_you_mean(&nearest(name, known.iter().copied()));
    usage(format!("{whose} has no `{name}`"), near.unwrap_or_else(|| format!("it has {}", known.join(", "))))
}

/// An error of the caller.
pub fn usage(message: impl Into<String>, hint: impl Into<Hint>) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint))
}
