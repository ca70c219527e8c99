//! What several targets have in common: names that must fit, and what most of them cannot say.

use crate::error::Hint;
use std::collections::{BTreeMap, HashMap};

use indexmap::IndexSet;
use serde_json::{Map, Value as Json, json};

use super::draft::{Draft, Piece, Print};
use super::report::Report;
use super::reported_differences::ReportedDifference;
use super::target_text::noun;
use crate::chat::Role;
use crate::convert::BuiltIn;

/// Gives inputs other names where the target cannot say theirs.
pub(super) fn rename(draft: &mut Draft, fits: impl Fn(&str) -> bool, report: &mut Report) {
    let pieces = draft.words.iter().filter_map(|chunk| chunk.pieces.as_ref().ok()).flatten();
    let shown = pieces.filter_map(Piece::name);
    let names: IndexSet<String> =
        draft.inputs.iter().map(|input| &input.name).chain(shown).cloned().collect();
    let mut renamed: BTreeMap<String, String> = BTreeMap::new();
    let mut before: HashMap<String, String> = HashMap::new();
    for name in names.iter().filter(|name| !fits(name)) {
        let letters = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let mut new: String = letters.collect();
        while !fits(&new) || names.contains(&new) || before.contains_key(&new) {
            new = format!("input_{new}");
        }
        let place = draft.input(name).and_then(|input| input.place.clone());
        let message = format!("`{name}` is renamed to `{new}`, because templates cannot read the old name");
        report.changed("inputs", message).at(place).hint("pass it by its new name");
        before.insert(new.clone(), name.clone());
        renamed.insert(name.clone(), new);
    }
    if renamed.is_empty() {
        return;
    }
    let new = |name: &mut String| {
        if let Some(new) = renamed.get(name) {
            name.clone_from(new);
        }
    };
    let inputs = std::mem::take(&mut draft.inputs).into_iter();
    draft.inputs = inputs
        .map(|mut input| {
            new(&mut input.name);
            input
        })
        .collect();
    for chunk in &mut draft.words {
        chunk.names.iter_mut().for_each(new);
        for piece in chunk.pieces.iter_mut().flatten() {
            if let Piece::Value { name, .. } = piece {
                new(name);
            }
        }
    }
    (draft.renamed, draft.named_before) = (renamed, before);
}

/// Tells of values that will read otherwise.
pub(super) fn prints(draft: &Draft, target: Print, to: BuiltIn, report: &mut Report) {
    for chunk in draft.words.iter().filter(|chunk| chunk.print != target) {
        for name in &chunk.names {
            let input = draft.input(name);
            if input.is_some_and(super::draft::Input::prints_alike) {
                continue;
            }
            let message = format!(
                "a value of `{name}` that is neither text nor a whole number may print differently: {} in a \
                     {}, {} in a {}",
                chunk.print.example(),
                noun(draft.from),
                target.example(),
                noun(to),
            );
            report
                .changed("text", message)
                .at(input.and_then(|input| input.place.clone()))
                .hint("declare it as a string, and pass it as one")
                .spares(ReportedDifference::Odd(name.clone()));
        }
    }
}

/// A text that is not the system's becomes the system's.
pub(super) fn role_becomes_system(draft: &Draft, to: BuiltIn, report: &mut Report) {
    if draft.role != Role::System && draft.from != BuiltIn::Directive {
        let message = format!(
            "the message has the role system, and no longer {}: a {} has no roles",
            draft.role.as_str(),
            noun(to)
        );
        report.changed("roles", message).hint("set the role in the program that uses the prompt");
    }
}

pub(super) fn no_model(draft: &Draft, to: BuiltIn, report: &mut Report) {
    if let Some((model, place)) = &draft.model {
        let named = model.get("id").and_then(Json::as_str).map_or_else(String::new, |id| format!(" `{id}`"));
        let message = format!("the model{named} is left out: a {} cannot name a model", noun(to));
        report
            .lost("model", message)
            .at(place.clone())
            .hint(Hint::option("name it when you use the prompt", "--model"));
    }
}

pub(super) fn no_tools(draft: &Draft, to: BuiltIn, report: &mut Report) {
    for (tool, place) in &draft.tools {
        let name = tool.get("name").and_then(Json::as_str).unwrap_or_default();
        let message = format!("the tool `{name}` is left out: a {} has no tools", noun(to));
        report.lost("tools", message).at(place.clone()).hint("give the tool to the model in your program");
    }
}

pub(super) fn no_outputs(draft: &Draft, to: BuiltIn, report: &mut Report) {
    for (output, place) in &draft.outputs {
        let name = output.get("name").and_then(Json::as_str).unwrap_or_default();
        let message = format!("the output `{name}` is left out: a {} does not declare outputs", noun(to));
        report.lost("outputs", message).at(place.clone()).hint("describe it in the text");
    }
}

/// A directive's results are returned by a call, and others' are the answer.
pub(super) fn returned_otherwise(draft: &Draft, report: &mut Report) {
    if let (BuiltIn::Directive, Some((_, place))) = (draft.from, draft.outputs.first()) {
        let message = "the answer holds the outputs: a directive returns them by a call";
        report.changed("outputs", message).at(place.clone()).hint("read the outputs from the answer");
    }
}

/// What front matter begins with.
pub(super) fn front(draft: &Draft) -> Map<String, Json> {
    let mut front = Map::new();
    front.insert("name".into(), json!(draft.title()));
    if let Some(description) = &draft.description {
        front.insert("description".into(), json!(description));
    }
    let mut metadata = Map::new();
    for (key, text) in [("version", &draft.version), ("type", &draft.kind)] {
        if let Some(text) = text {
            metadata.insert(key.into(), json!(text));
        }
    }
    metadata.extend(draft.extra.clone());
    if !metadata.is_empty() {
        front.insert("metadata".into(), Json::Object(metadata));
    }
    front
}

/// Tells of white space at an edge of the text that the target takes away.
pub(super) fn space_gone(draft: &Draft, gone: &str, edge: &str, report: &mut Report) {
    if gone.is_empty() {
        return;
    }
    if draft.from == BuiltIn::Prompty && gone.bytes().all(|byte| byte == b'\n') {
        report
            .note("text", format!("newlines at the {edge} of the file are left out: they are in no message"));
        return;
    }
    let message = format!("whitespace at the {edge} of the text is removed");
    report.changed("text", message).hint("this rarely changes a model's answer");
}
