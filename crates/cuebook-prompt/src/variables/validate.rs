//! Validation: every required variable is there and every value has its declared type. All problems are found at once.

use serde::Serialize;
use serde_json::Value as Json;

use super::{Layer, Scope, Supplier};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, nearest};
use crate::json::type_of;
use crate::prompt::{Need, Prompt, Rich, Type, Variable};

/// One thing that is wrong with a variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The variable.
    pub name: String,
    /// Its declared type; `nothing` for a name that cannot be given.
    pub expected: &'static str,
    /// The type of what was given; `None` if nothing was.
    pub found: Option<&'static str>,
    /// The layer that supplied it.
    pub layer: Option<&'static str>,
}

/// Everything that is wrong with a scope by a prompt's declarations.
pub fn validate(prompt: &Prompt, scope: &Scope) -> Vec<(Problem, Diagnostic)> {
    let mut problems = Vec::new();
    for variable in &prompt.variables {
        let problem = |found, layer| Problem {
            name: variable.name.clone(),
            expected: variable.kind.as_str(),
            found,
            layer,
        };
        match scope.find(&variable.name) {
            None if variable.need == Need::Required => {
                let given = scope.names().into_iter().filter(|given| prompt.variable(given).is_none());
                let reported = missing(variable, &given.collect::<Vec<_>>());
                problems.push((problem(None, None), reported));
            }
            Some((layer, value)) if !variable.lenient && !takes(variable, layer, &value) => {
                let found = type_of(&value);
                let diagnostic = mistyped(variable, found, &value, layer, scope.supplier(&variable.name));
                problems.push((problem(Some(found), Some(layer.as_str())), diagnostic));
            }
            None | Some(_) => {}
        }
    }
    // It would take the place of everything that the system knows, and templates would find nothing there.
    if let Some((layer, value)) = scope.given_as_system() {
        let found = Some(type_of(value));
        let problem =
            Problem { name: "system".into(), expected: "nothing", found, layer: Some(layer.as_str()) };
        let message = format!("the name `system` is reserved, but {} set it", layer.describe());
        let diagnostic = Diagnostic::new(Code::InvalidVariables, message)
            .hint("choose another name, or declare a variable `system`");
        problems.push((problem, diagnostic));
    }
    problems
}

/// One error with everything that is wrong, if anything is.
#[doc(hidden)]
pub fn validation_error(prompt: &Prompt, scope: &Scope) -> Result<()> {
    refuse_invalid(&prompt.id, validate(prompt, scope))
}

/// What is wrong with a variable of a prompt that is included: by what the text which includes it has set there, or else by what the
/// whole prompt was given.
#[doc(hidden)]
pub fn validate_included(variable: &Variable, scope: &Scope) -> Option<(Problem, Diagnostic)> {
    let name = &variable.name;
    let problem =
        |found, layer| Problem { name: name.clone(), expected: variable.kind.as_str(), found, layer };
    let Some(Some(value)) = scope.set_names(name) else {
        // The default of another one is no value.
        let given = scope.find(name).filter(|_| !scope.is_contested_default(name));
        if let Some((layer, value)) = given {
            if variable.lenient || variable.rich.is_some() || takes(variable, layer, &value) {
                return None;
            }
            let found = type_of(&value);
            let reported = mistyped(variable, found, &value, layer, scope.supplier(name));
            return Some((problem(Some(found), Some(layer.as_str())), reported));
        }
        if variable.need != Need::Required {
            return None;
        }
        let reported = missing(variable, &[]);
        let reported = match scope.set_names(name) {
            Some(_) => reported
                .hint(format!("the text that includes this prompt sets `{name}` to an undefined value")),
            None => reported,
        };
        return Some((problem(None, None), reported));
    };
    let found = type_of(value);
    let wrong = |message: String, hint: String| {
        let reported = declared_at(Diagnostic::new(Code::InvalidVariables, message), variable).hint(hint);
        Some((problem(Some(found), None), reported))
    };
    // A conversation or a picture under another name is still one.
    if scope.is_nonce(value) {
        return None;
    }
    if let Some(rich) = variable.rich {
        let message = format!(
            "`{name}` is an input of the kind {}, but the text that includes this prompt sets it to {found}",
            rich.as_str()
        );
        let hint = format!(
            "only a caller passes such values: do not set `{name}`, or set it to an input of that kind"
        );
        return wrong(message, hint);
    }
    if variable.lenient || takes(variable, Layer::Caller, value) {
        return None;
    }
    let what = format!("{} {}", article(variable.kind), variable.kind.as_str());
    let message =
        format!("`{name}` must be {what}, but the text that includes this prompt sets it to {found}");
    let hint = match variable.kind {
        Type::String if is_plain(value) => {
            format!("convert it to a string, as in {{% set {name} = {name}|string %}}")
        }
        _ => format!("set `{name}` to {what} there"),
    };
    wrong(message, hint)
}

/// One error with these problems, if there are any.
#[doc(hidden)]
pub fn refuse_invalid(prompt_id: &str, problems: Vec<(Problem, Diagnostic)>) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let (problems, diagnostics): (Vec<Problem>, Vec<Diagnostic>) = problems.into_iter().unzip();
    let (missing, invalid): (Vec<&Problem>, Vec<&Problem>) = problems.iter().partition(|p| p.found.is_none());
    let missing: Vec<&str> = missing.iter().map(|problem| problem.name.as_str()).collect();
    Err(Error::all(ErrorKind::PromptValidation, diagnostics)
        .with("prompt_id", prompt_id)
        .with("missing", missing)
        .with("invalid", invalid))
}

/// `undeclared` are names that were given and not declared.
fn missing(variable: &Variable, undeclared: &[String]) -> Diagnostic {
    let name = &variable.name;
    let message = match &variable.description {
        Some(description) => format!("the required variable `{name}` is missing ({description})"),
        None => format!("the required variable `{name}` is missing"),
    };
    let pass = |text: String| Hint::command_line(text).for_programs(format!("give `{name}` a value"));
    let hint = match nearest(name, undeclared.iter().map(String::as_str)).first() {
        Some(similar) => format!("`{similar}` has a value: did you mean `{name}`?").into(),
        None if variable.rich == Some(Rich::Thread) => {
            pass(format!("pass --var {name}:='[{{\"role\": \"user\", \"content\": \"…\"}}]'"))
        }
        None if variable.rich.is_some() => pass(format!("pass --var {name}=URL, or --file {name}=PATH")),
        None if variable.kind == Type::String || variable.kind == Type::Any => {
            pass(format!("pass --var {name}=TEXT"))
        }
        None => {
            let kind = variable.kind;
            pass(format!("pass --var {name}:=JSON with {} {}", article(kind), kind.as_str()))
        }
    };
    declared_at(Diagnostic::new(Code::InvalidVariables, message), variable).hint(hint)
}

fn mistyped(
    variable: &Variable,
    found: &str,
    value: &Json,
    layer: Layer,
    supplier: Option<&Supplier>,
) -> Diagnostic {
    let name = &variable.name;
    let wanted = variable.kind;
    let what = format!("{} {}", article(wanted), wanted.as_str());
    let giver = match supplier {
        Some(supplier @ Supplier::Hook { .. }) => format!("`{supplier}`"),
        _ => layer.describe().to_owned(),
    };
    let message = format!("`{name}` must be {what}, but {giver} passed {found}");
    let pass = |text: String| Some(Hint::command_line(text).for_programs(format!("give `{name}` {what}")));
    let hint = match (wanted, value.as_str()) {
        _ if layer < Layer::System => Some("change the default or the type".into()),
        _ if layer != Layer::Caller => None,
        (Type::Integer | Type::Number | Type::Boolean | Type::List | Type::Object, Some(text)) => {
            let meant = serde_json::from_str(text).is_ok_and(|json| wanted.admits(&json));
            let shown = if meant { text.to_owned() } else { format!("JSON with {what}") };
            pass(format!("pass anything but text with `:=`, as in --var {name}:={shown}"))
        }
        _ if value.is_null() => Some(format!("omit `{name}` to pass no value").into()),
        (Type::String, None) => pass(format!("pass text with `=`, as in --var {name}=TEXT")),
        _ => None,
    };
    declared_at(Diagnostic::new(Code::InvalidVariables, message), variable).hint_opt(hint)
}

fn declared_at(diagnostic: Diagnostic, variable: &Variable) -> Diagnostic {
    match &variable.place {
        Some(place) => diagnostic.at(place.clone()).label("declared here"),
        None => diagnostic,
    }
}

fn article(kind: Type) -> &'static str {
    match kind {
        Type::Integer | Type::Object | Type::Any => "an",
        _ => "a",
    }
}

/// Whether a value fits.
fn takes(variable: &Variable, layer: Layer, value: &Json) -> bool {
    variable.kind.admits(value)
        || (variable.of_directive
            && (value.is_null()
                || (variable.kind == Type::String && is_plain(value))
                || (layer == Layer::Optional
                    && value.as_str().is_none_or(|text| variable.kind.admits_text(text)))))
}

fn is_plain(value: &Json) -> bool {
    !value.is_array() && !value.is_object()
}
