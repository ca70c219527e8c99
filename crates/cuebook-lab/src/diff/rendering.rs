//! The renders of both versions, with what had to be done to get them.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::version::Version;
use crate::error::{Code, Error, ErrorKind, Result};
use crate::prompt::{Prompt, Rich, Type};
use crate::render::Rendered;
use crate::variables::{Context, SYSTEM, Scope, Variables};

/// What was compared as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// What both versions were rendered to.
    Rendered,
    /// The same, with something in the place of required variables without a value.
    Placeholders,
    /// What their files say, because one of them could not be rendered.
    Files,
}

impl Basis {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Basis::Rendered => "rendered",
            Basis::Placeholders => "placeholders",
            Basis::Files => "files",
        }
    }
}

/// A required variable without a value.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AssumedVariable {
    /// Its name.
    pub name: String,
    /// What stood in for it.
    pub value: Json,
}

/// Code that takes part in the renders of a version, and was not run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotRun {
    /// The hook, or the namespace that a provider fills.
    pub name: String,
    /// Where the hook is defined, or the namespace is used.
    pub place: Option<String>,
    /// Why it was not run.
    pub why: String,
}

/// What came of a version.
pub(super) struct Outcome {
    pub(super) rendered: Result<Rendered>,
    pub(super) assumed: Vec<AssumedVariable>,
    pub(super) absent: Vec<String>,
    pub(super) not_run: Vec<NotRun>,
}

const NO_CODE_RUNS: &str = "comparing a revision or an archive runs no code";
const ASKED_FOR: &str = "skip it with --no-hooks";

/// Renders both, with their code or without it: a comparison of one with and one without would compare the code's work.
pub(super) fn render_both(before: &Version<'_>, after: &Version<'_>) -> (Outcome, Outcome) {
    if before.context().without_hooks || after.context().without_hooks {
        return render_alike(before, after, Some(ASKED_FOR));
    }
    if !before.runs_code() || !after.runs_code() {
        return render_alike(before, after, Some(NO_CODE_RUNS));
    }
    let (one, other) = render_alike(before, after, None);
    let refused = |outcome: &Outcome| match &outcome.rendered {
        Err(error) if is_about_code(error) => Some(error.diagnostic().message.clone()),
        _ => None,
    };
    match refused(&one).or_else(|| refused(&other)) {
        None => (one, other),
        Some(why) => render_alike(before, after, Some(&why)),
    }
}

/// Renders one, with its code unless the caller asked to leave it out.
pub(super) fn render_one(version: &Version<'_>) -> Outcome {
    render(version, version.context().without_hooks.then_some(ASKED_FOR), &[])
}

/// Renders both with the same values: what had to stand in for one of them is given to the other as well.
fn render_alike(before: &Version<'_>, after: &Version<'_>, without_code: Option<&str>) -> (Outcome, Outcome) {
    let one = render(before, without_code, &[]);
    let other = render(after, without_code, &one.assumed);
    let is_new = |assumed: &&AssumedVariable| !one.assumed.iter().any(|known| known.name == assumed.name);
    match other.assumed.iter().any(|assumed| is_new(&assumed)) {
        true => (render(before, without_code, &other.assumed), other),
        false => (one, other),
    }
}

fn is_about_code(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Hook | ErrorKind::PromptApprovalRequired)
}

/// Renders a version, without its code if there is a reason not to run it, and with what stood in for variables of the other.
fn render(version: &Version<'_>, without_code: Option<&str>, assumed: &[AssumedVariable]) -> Outcome {
    let prepared = version.prepared();
    let context = Context { without_hooks: without_code.is_some(), ..version.context().clone() };
    let context = Arc::new(context);
    let mut variables = version.variables().clone();
    let (names, takes_any_name) = (prepared.known_names(), prepared.takes_any_name());
    let mut assumed: Vec<AssumedVariable> = assumed
        .iter()
        .filter(|assumed| {
            (takes_any_name || names.contains(&assumed.name)) && variables.get(&assumed.name).is_none()
        })
        .cloned()
        .collect();
    for AssumedVariable { name, value } in &assumed {
        variables = variables.set(name.clone(), value.clone());
    }
    let mut rendered = prepared.render(&variables, &context);
    if let Err(error) = &rendered {
        let missing = match error.code() {
            // Where nothing may be absent, everything that is absent is missing.
            Code::UndefinedValue => absent(version, &prepared.scope(&variables, &context)),
            _ => missing(error),
        };
        if !missing.is_empty() {
            let more;
            (variables, more) = stand_in(prepared.prompt(), variables, &missing);
            assumed.extend(more);
            rendered = prepared.render(&variables, &context);
        }
    }
    let absent = match &rendered {
        Ok(rendered) => absent(version, rendered.scope()),
        Err(_) => Vec::new(),
    };
    let not_run = without_code.map_or_else(Vec::new, |why| not_run(version, why));
    Outcome { rendered, assumed, absent, not_run }
}

/// The required variables that an error says are missing.
fn missing(error: &Error) -> Vec<String> {
    let names = error.field("missing").and_then(Json::as_array);
    names.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Values that show their place, for variables without a value.
fn stand_in(
    prompt: &Prompt,
    mut variables: Variables,
    missing: &[String],
) -> (Variables, Vec<AssumedVariable>) {
    let mut assumed = Vec::new();
    for name in missing {
        let text = format!("‹{name}›");
        let variable = prompt.variable(name);
        let value = match variable.and_then(|variable| variable.rich) {
            Some(Rich::Thread) => json!([{"role": "user", "content": text}]),
            Some(_) => json!(format!("https://example.invalid/{name}")),
            None => match variable.map_or(Type::Any, |variable| variable.kind) {
                Type::String | Type::Any => json!(text),
                Type::Integer | Type::Number => json!(1),
                Type::Boolean => json!(true),
                Type::List => json!([text]),
                Type::Object => json!({}),
            },
        };
        variables = variables.set(name.clone(), value.clone());
        assumed.push(AssumedVariable { name: name.clone(), value });
    }
    (variables, assumed)
}

/// What templates read and that has no value.
fn absent(version: &Version<'_>, scope: &Scope) -> Vec<String> {
    let prepared = version.prepared();
    let read: BTreeSet<String> = prepared.reads().into_iter().map(|(read, _)| read.root).collect();
    let is_absent = |name: &String| {
        name != SYSTEM
            && !prepared.is_session(name)
            && !prepared.provides(name)
            && scope.layer(name).is_none()
            && !scope.rich_inputs().any(|input| input.name == *name)
    };
    read.into_iter().filter(is_absent).collect()
}

/// The code that would have taken part.
fn not_run(version: &Version<'_>, why: &str) -> Vec<NotRun> {
    let prepared = version.prepared();
    let place = |place: &crate::source::Place| format!("{}:{}", version.file(place.file()), place.line());
    let hooks = prepared.prompt().hooks.iter().map(|hook| NotRun {
        name: hook.name.clone(),
        place: Some(place(&hook.place)),
        why: why.to_owned(),
    });
    let used: Vec<(String, String)> = prepared
        .reads()
        .into_iter()
        .filter(|(read, _)| prepared.provides(&read.root))
        .map(|(read, at)| (read.root, place(&at)))
        .collect();
    let providers = prepared.namespaces().map(|name| NotRun {
        place: used.iter().find(|(used, _)| *used == name).map(|(_, place)| place.clone()),
        name: format!("the provider of {name}"),
        why: why.to_owned(),
    });
    hooks.chain(providers).collect()
}
