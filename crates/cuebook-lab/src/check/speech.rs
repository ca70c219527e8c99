//! Prompts that are spoken: bindings that lead nowhere and unknown kinds
//! ([CB319](crate::Code::BadPrompty)), what the provider would refuse ([CB603](crate::Code::UnsupportedContent)), what other runtimes may not understand ([CB321](crate::Code::NotPortable)), and defaults of another kind than their input ([CB314](crate::Code::BadDefault)).

use crate::chat::wire::{self, Request};
use crate::chat::{Api, Message, Role};
use crate::error::{Code, Diagnostic, Severity, did_you_mean, nearest};
use crate::prepared::Prepared;
use crate::prompt::{Model, Prompt, ToolKind};
use crate::render::{DEFAULT_PROVIDER, PARSER};
use crate::source::Place;
use crate::template::jinja::Program;

/// What is odd about a `.prompty` file that can be read.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    if !prepared.prompt().dialect.has_roles {
        return Vec::new();
    }
    let outline = prepared.outline();
    let mut findings = Vec::new();
    findings.extend(outline.jinja().map(Program::not_portable).unwrap_or_default());
    findings.extend(bindings(prepared));
    findings.extend(defaults(prepared));
    findings.extend(kinds(prepared));
    findings
}

/// Unknown kinds, providers and parsers that are spelt nearly like known ones; or that nothing can be said to.
fn kinds(prepared: &Prepared) -> Vec<Diagnostic> {
    let prompt = prepared.prompt();
    let mut findings = Vec::new();
    let mut near = |what: &str, given: &str, known: &[&str], place: Option<&Place>| {
        if known.contains(&given) {
            return;
        }
        if let Some(hint) = did_you_mean(&nearest(given, known.iter().copied())) {
            let message = format!("unknown value `{given}` of {what}");
            let finding = Diagnostic::new(Code::BadPrompty, message).severity(Severity::Warning).hint(hint);
            findings.push(match place {
                Some(place) => finding.at(place.clone()),
                None => finding.file(prompt.template.name()),
            });
        }
    };
    for tool in &prompt.tools {
        let what = format!("the kind of the tool `{}`", tool.name);
        near(&what, tool.kind.as_str(), &["function", "mcp", "openapi"], tool.place.as_ref());
    }
    if let Some(model) = &prompt.model {
        let connections = ["key", "reference", "remote", "anonymous", "foundry", "oauth"];
        if let Some(kind) = model.connection.as_ref().and_then(|connection| connection["kind"].as_str()) {
            near("`model.connection.kind`", kind, &connections, None);
        }
        findings.extend(unsayable(prompt, model));
    }
    if let Some(parser) = prompt.format.parser.as_deref().filter(|parser| *parser != PARSER) {
        let message = format!("no parser is registered for the key `{parser}`");
        let finding = Diagnostic::new(Code::UnknownEngine, message).hint(format!("write `{PARSER}`"));
        findings.push(match &prompt.format.parser_place {
            Some(place) => finding.at(place.clone()),
            None => finding,
        });
    }
    findings
}

/// What the provider that the file names would refuse, or would not be sent.
fn unsayable(prompt: &Prompt, model: &Model) -> Vec<Diagnostic> {
    let provider = model.provider.as_deref().unwrap_or(DEFAULT_PROVIDER);
    // Without a model nothing is sent at all, and the command line may name one.
    let mut model =
        Model { id: if model.id.is_empty() { "any".into() } else { model.id.clone() }, ..model.clone() };
    // The reader has reported unknown options.
    model.options.extra.clear();
    let model = &model;
    let messages = [Message::text(Role::User, "…")];
    let (tools, outputs) = (&prompt.tools, &prompt.outputs);
    let request = Request { model, messages: &messages, tools, outputs };
    let said = Api::choose(provider, model.api_type.as_deref()).and_then(|api| wire::body(api, &request));
    let placed = |finding: Diagnostic| match (&finding.place, &model.provider_place) {
        (Some(_), _) => finding,
        (None, Some(place)) if finding.code == Code::UnknownWire => finding.at(place.clone()),
        (None, _) => finding.file(prompt.template.name()),
    };
    match said {
        Ok(wire) => wire.notes.into_iter().map(|note| placed(note.severity(Severity::Note))).collect(),
        Err(error) => error
            .into_diagnostics()
            .into_iter()
            .map(|found| placed(found.severity(Severity::Warning)))
            .collect(),
    }
}

fn bindings(prepared: &Prepared) -> Vec<Diagnostic> {
    let prompt = prepared.prompt();
    let inputs: Vec<&str> = prompt.variables.iter().map(|variable| variable.name.as_str()).collect();
    let bound = || {
        prompt.tools.iter().flat_map(|tool| tool.bindings.iter().map(move |(to, input)| (tool, to, input)))
    };
    let unknown = bound().filter_map(|(tool, to, _)| match &tool.kind {
        ToolKind::Function { parameters, .. } if parameters.iter().all(|parameter| parameter.name != *to) => {
            let message = format!("the tool `{}` binds the unknown parameter `{to}`", tool.name);
            let names = parameters.iter().map(|parameter| parameter.name.as_str());
            let finding = Diagnostic::new(Code::BadPrompty, message).severity(Severity::Warning);
            let finding = finding.hint_opt(did_you_mean(&nearest(to, names)));
            Some(match &tool.place {
                Some(place) => finding.at(place.clone()),
                None => finding,
            })
        }
        _ => None,
    });
    let unknown: Vec<Diagnostic> = unknown.collect();
    bound()
        .map(|(tool, _, input)| (tool, input))
        .filter(|(_, input)| !inputs.contains(&input.as_str()))
        .map(|(tool, input)| {
            let message = format!("the tool `{}` is bound to the undeclared input `{input}`", tool.name);
            let hint = did_you_mean(&nearest(input, inputs.iter().copied()))
                .unwrap_or_else(|| format!("declare it under `inputs`: {{name: {input}, kind: string}}"));
            let finding = Diagnostic::new(Code::BadPrompty, message).severity(Severity::Warning).hint(hint);
            match &tool.place {
                Some(place) => finding.at(place.clone()),
                None => finding,
            }
        })
        .chain(unknown)
        .collect()
}

/// Prompty takes any value, so this is only said.
fn defaults(prepared: &Prepared) -> Vec<Diagnostic> {
    let plain = prepared.prompt().variables.iter().filter(|variable| variable.rich.is_none());
    plain
        .filter_map(|variable| {
            let default = variable.default.as_ref().filter(|default| !variable.kind.admits(default))?;
            let message = format!(
                "`{}` is of the kind {}, but its default is {default}",
                variable.name,
                variable.kind.as_str()
            );
            let finding = Diagnostic::new(Code::BadDefault, message).severity(Severity::Warning);
            let finding = finding.hint("change the default or the kind");
            Some(match &variable.place {
                Some(place) => finding.at(place.clone()),
                None => finding,
            })
        })
        .collect()
}
