//! One case: renders the prompt with its inputs and compares what comes out with what was said.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value as Json;

use super::read::{Case, CaseContent, wrong};
use super::settings::{Forbidden, Form};
use super::{Failure, Outcome, Snapshot};
use crate::changes::{Change, compare, compare_with, origin_at};
use crate::chat::Message;
use crate::chat::wire::NAME_A_MODEL;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::prepared::Prepared;
use crate::prompt::Visibility;
use crate::render::{Origin, Rendered};
use crate::tokens::Tokenizer;
use crate::variables::{Context, Variables};

/// Runs a case of a prompt that has been prepared for its circumstances.
pub(super) fn run(
    prepared: Result<Arc<Prepared>>,
    case: &Case,
    source: &str,
    roots: &[PathBuf],
    context: Context,
) -> Outcome {
    let mut outcome = Outcome {
        case: case.name.clone(),
        place: case.place.clone(),
        failures: Vec::new(),
        snapshot: None,
        tokens: None,
    };
    let said = &case.said;
    let rendered = prepared.and_then(|prepared| {
        let context = prepare_context(&prepared, said, roots, context)?;
        let rendered = prepared.render(&Variables::from_json(&said.inputs), &Arc::new(context))?;
        let actual = form(&rendered, &said.settings.form)?;
        Ok((prepared, rendered, actual))
    });
    let (prepared, rendered, actual) = match (rendered, &said.settings.error) {
        (Ok(rendered), None) => rendered,
        (Err(error), Some((code, place))) => {
            if !error.diagnostics().iter().any(|diagnostic| diagnostic.code == *code) {
                let what = format!("expected the error {code}, but got {}", error.code());
                outcome.failures.push(Failure { error: Some(error), ..Failure::new(what, place) });
            }
            return outcome;
        }
        (Ok(_), Some((code, place))) => {
            let what = format!("expected the error {code}, but the prompt rendered");
            outcome.failures.push(Failure::new(what, place));
            return outcome;
        }
        (Err(error), None) => {
            let what = "the prompt did not render".to_owned();
            outcome.failures.push(Failure { error: Some(error), ..Failure::new(what, &case.place) });
            return outcome;
        }
    };
    let mut comparison = CaseComparison { prepared: &prepared, rendered: &rendered, outcome: &mut outcome };
    comparison.expected(case, source, actual);
    comparison.messages(said);
    comparison.snippets(said);
    comparison.tokens(said);
    comparison.origins(said);
    outcome
}

/// What the settings say of the render. Names that the prompt does not have are slips.
fn prepare_context(
    prepared: &Prepared,
    said: &CaseContent,
    roots: &[PathBuf],
    mut context: Context,
) -> Result<Context> {
    let id = &prepared.prompt().id;
    let names = prepared.known_names();
    let stranger = |name: &str| {
        (!names.contains(name) && !prepared.takes_any_name())
            .then(|| did_you_mean(&nearest(name, names.iter().map(String::as_str))))
    };
    for name in said.inputs.keys() {
        if let Some(hint) = stranger(name) {
            let message = format!("the prompt `{id}` has no variable `{name}`");
            let diagnostic = Diagnostic::new(Code::UnknownVariable, message).hint_opt(hint);
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic));
        }
    }
    for (forbidden, place) in &said.settings.forbid {
        let (message, hint) = match forbidden {
            Forbidden::Variable(name) => match stranger(name) {
                Some(hint) => (format!("the prompt `{id}` has no variable `{name}`"), hint),
                None => continue,
            },
            Forbidden::File(name) => {
                let outline = prepared.outline();
                let files: Vec<&str> = outline.units().iter().map(|unit| unit.source().name()).collect();
                if files.iter().any(|file| is_file(file, name))
                    || roots.iter().any(|root| root.join(name).is_file())
                {
                    continue;
                }
                (format!("no file `{name}` found"), did_you_mean(&nearest(name, files.iter().copied())))
            }
            Forbidden::Layer(_) => continue,
        };
        let hint = hint.unwrap_or_else(|| "name something that exists".to_owned());
        return Err(Error::new(ErrorKind::Config, wrong(message, place.clone(), hint)));
    }
    for (wanted, place) in &said.settings.expand {
        let nodes: Vec<_> = prepared.tree().into_iter().flat_map(|tree| tree.find_all(wanted)).collect();
        if nodes.is_empty() {
            let known: Vec<&str> = prepared
                .tree()
                .into_iter()
                .flat_map(|tree| tree.sections())
                .map(|node| node.dotted())
                .collect();
            let near = did_you_mean(&nearest(wanted, known.iter().copied()));
            let hint = near.unwrap_or_else(|| match known.is_empty() {
                true => "the prompt has no sections".to_owned(),
                false => format!("its sections: {}", known.join(", ")),
            });
            let message = format!("the prompt `{id}` has no section `{wanted}`");
            return Err(Error::new(ErrorKind::Config, wrong(message, place.clone(), hint)));
        }
        for node in nodes {
            // What is below something that is closed does not show, so the way there is opened as well.
            for above in 1..=node.path.len() {
                context.visibility.set(&node.path[..above], Visibility::Full);
            }
        }
    }
    Ok(context)
}

/// Whether a name means this file: the whole path, or the end of it.
fn is_file(file: &str, name: &str) -> bool {
    file == name || file.strip_suffix(name).is_some_and(|rest| rest.ends_with('/'))
}

/// What comes out, as text: the form as it is, or JSON.
fn form(rendered: &Rendered, form: &Form) -> Result<Actual> {
    Ok(match form {
        Form::Text => Actual::Text,
        Form::Messages => Actual::Json(rendered.messages()?.iter().map(Message::to_json).collect()),
        Form::Wire(name) => {
            let wire = match name {
                Some(name) => rendered.wire_as(name),
                None => rendered.wire(),
            };
            Actual::Json(wire.map_err(say_in_settings)?.body)
        }
    })
}

/// A case has settings where a command has options.
fn say_in_settings(error: Error) -> Error {
    error.map(|reported| match reported.hint.as_deref() {
        Some(NAME_A_MODEL) => {
            reported.hint("add `model: NAME` to the settings of the case, or to the prompt's file")
        }
        _ => reported,
    })
}

enum Actual {
    Text,
    Json(Json),
}

struct CaseComparison<'j> {
    prepared: &'j Prepared,
    rendered: &'j Rendered,
    outcome: &'j mut Outcome,
}

impl CaseComparison<'_> {
    fn expected(&mut self, case: &Case, source: &str, actual: Actual) {
        // What a file says is read without carriage returns, so a text is compared and written down without them.
        let (text, dropped, language) = match &actual {
            Actual::Text => {
                let (text, dropped) = without_carriage_returns(self.rendered.text());
                (text, Some(dropped), "text")
            }
            Actual::Json(json) => (serde_json::to_string_pretty(json).unwrap_or_default(), None, "json"),
        };
        let rendered = self.rendered;
        let origin = |offset: usize| {
            let dropped = dropped.as_ref()?;
            origin_at(rendered, offset + dropped.partition_point(|at| *at <= offset))
        };
        let compare = |before: &str, after: &str| compare_with(before, after, &|_| None, &origin);
        let Some(block) = &case.said.expected else {
            if !case.said.expects_something() {
                let what = "the case expects nothing".to_owned();
                self.outcome.failures.push(Failure::new(what, &case.place));
                let mut diff = compare("", &text);
                // Where nothing was, nothing is gone, not even an empty line.
                diff.retain(|line| line.change != Change::Gone);
                self.outcome.snapshot = Some(Snapshot::added(case.end, language, text, diff));
            }
            return;
        };
        let wanted = &source[block.inside.clone()];
        // A file ends its lines, and a text need not: one newline at the end more or less is no difference.
        let bare = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
        let same = match &actual {
            Actual::Text => bare(wanted) == bare(&text),
            Actual::Json(json) => serde_json::from_str::<Json>(wanted).is_ok_and(|wanted| wanted == *json),
        };
        if !same {
            let diff = compare(&bare(wanted), &bare(&text));
            let what = match &actual {
                Actual::Text => "the text differs from the expected text",
                Actual::Json(_) => "the JSON differs from the expected JSON",
            };
            let failure = Failure { diff: diff.clone(), ..Failure::new(what.to_owned(), &block.place) };
            self.outcome.failures.push(failure);
            self.outcome.snapshot = Some(Snapshot::changed(block, text, diff));
        }
    }

    fn messages(&mut self, said: &CaseContent) {
        let Some((wanted, place)) = &said.messages else { return };
        let messages: Vec<Json> = match self.rendered.messages() {
            Ok(messages) => messages.iter().map(Message::to_json).collect(),
            Err(error) => {
                let what = "the prompt has no messages".to_owned();
                self.outcome.failures.push(Failure { error: Some(error), ..Failure::new(what, place) });
                return;
            }
        };
        let wanted: Vec<&Json> = wanted.as_array().into_iter().flatten().collect();
        let roles = |messages: &[&Json]| -> String {
            let role = |message: &&Json| message["role"].as_str().unwrap_or("any").to_owned();
            messages.iter().map(role).collect::<Vec<_>>().join(", ")
        };
        if wanted.len() != messages.len() {
            let all: Vec<&Json> = messages.iter().collect();
            let what = format!("expected the messages {1}, but got {0}", roles(&all), roles(&wanted));
            self.outcome.failures.push(Failure::new(what, place));
            return;
        }
        for (number, (wanted, message)) in wanted.iter().zip(&messages).enumerate() {
            if let Some((path, wanted, found)) = missing(wanted, message, "") {
                let what = format!("message {}: {path} differs", number + 1);
                let diff = compare(&shown(&wanted), &shown(&found), None);
                self.outcome.failures.push(Failure { diff, ..Failure::new(what, place) });
            }
        }
    }

    fn snippets(&mut self, said: &CaseContent) {
        let text = self.rendered.text();
        for (snippet, place) in &said.contains {
            if !text.contains(snippet.as_str()) {
                let what = format!("the text does not contain `{snippet}`");
                self.outcome.failures.push(Failure::new(what, place));
            }
        }
        for (snippet, place) in &said.absent {
            if let Some(at) = text.find(snippet.as_str()) {
                let what = format!("the text contains `{snippet}`");
                self.outcome
                    .failures
                    .push(Failure { origin: self.origin_at(at), ..Failure::new(what, place) });
            }
        }
    }

    fn tokens(&mut self, said: &CaseContent) {
        let Some((most, place)) = &said.settings.max_tokens else { return };
        let own = self.prepared.prompt().model.as_ref().map(|model| model.id.as_str());
        let model = said.settings.model.as_deref().or(own).unwrap_or_default();
        let tokenizer = Tokenizer::for_model(model);
        let count = tokenizer.count(self.rendered.text());
        self.outcome.tokens = Some(count);
        if count > *most {
            let about = if tokenizer.is_exact() { "" } else { "about " };
            let what = format!("the text has {about}{count} tokens, but the limit is {most}");
            self.outcome.failures.push(Failure::new(what, place));
        }
    }

    fn origins(&mut self, said: &CaseContent) {
        for (forbidden, place) in &said.settings.forbid {
            let comes_from = |origin: &Origin| match (forbidden, origin) {
                (Forbidden::Variable(name), Origin::Value { shown, .. }) => {
                    shown.iter().any(|shown| shown.path.split(['.', '[']).next() == Some(name))
                }
                (Forbidden::Variable(name), Origin::Rich { input, .. }) => input == name,
                (Forbidden::Layer(layer), Origin::Value { shown, .. }) => {
                    shown.iter().any(|shown| shown.layer == Some(*layer))
                }
                (Forbidden::Layer(layer), Origin::Rich { input, .. }) => {
                    self.rendered.scope().layer(input) == Some(*layer)
                }
                (Forbidden::File(name), Origin::Literal { source, .. }) => is_file(source.name(), name),
                _ => false,
            };
            let found = self.rendered.spans().find(|span| !span.range.is_empty() && comes_from(&span.origin));
            if let Some(span) = found {
                let text: String = self.rendered.text()[span.range.clone()].chars().take(60).collect();
                let what = match forbidden {
                    Forbidden::Variable(name) => format!("{text:?} comes from the variable `{name}`"),
                    Forbidden::Layer(layer) => format!("{text:?} comes from {}", layer.describe()),
                    Forbidden::File(name) => format!("{text:?} comes from `{name}`"),
                };
                let origin = self.origin_at(span.range.start);
                self.outcome.failures.push(Failure { origin, ..Failure::new(what, place) });
            }
        }
    }

    fn origin_at(&self, offset: usize) -> Option<String> {
        origin_at(self.rendered, offset)
    }
}

/// The first thing that is wanted and is not there: its path, what was wanted, and what is there. Objects may have more keys
/// than are wanted; a text stands for content that is a text alone.
fn missing(wanted: &Json, found: &Json, path: &str) -> Option<(String, Json, Json)> {
    let differ = || {
        Some((
            if path.is_empty() { "it".to_owned() } else { format!("`{path}`") },
            wanted.clone(),
            found.clone(),
        ))
    };
    match (wanted, found) {
        (Json::Object(wanted), Json::Object(object)) => wanted.iter().find_map(|(name, wanted)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            missing(wanted, object.get(name).unwrap_or(&Json::Null), &path)
        }),
        (Json::Array(wanted), Json::Array(found)) if wanted.len() == found.len() => {
            let mut pairs = wanted.iter().zip(found).enumerate();
            pairs.find_map(|(index, (wanted, found))| missing(wanted, found, &format!("{path}[{index}]")))
        }
        (Json::String(text), Json::Array(parts)) => match parts.as_slice() {
            [part] if part["kind"] == "text" && part["value"] == *text => None,
            [part] if part["kind"] == "text" => missing(wanted, &part["value"], path),
            _ => differ(),
        },
        _ if wanted == found => None,
        _ => differ(),
    }
}

/// A text with line ends as they are read from a file, and where newlines lost the carriage return in front of them.
fn without_carriage_returns(text: &str) -> (String, Vec<usize>) {
    let pairs = text.match_indices("\r\n").enumerate();
    let dropped = pairs.map(|(before, (at, _))| at - before).collect();
    (text.replace("\r\n", "\n").replace('\r', "\n"), dropped)
}

fn shown(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}
