//! Drafts as directives. The result is not signed.

use crate::error::Hint;
use serde_json::{Map, Value as Json};

use super::draft::{Draft, Input, Piece, Print};
use super::notation::xml;
use super::report::Report;
use super::reported_differences::ReportedDifference;
use super::target_text::{cannot, input};
use super::{OutFile, target_limits};
use crate::convert::BuiltIn;
use crate::error::Result;
use crate::prompt::{Need, Type};
use crate::source::Place;
use crate::template::python::is_space;

/// Elements of metadata that mean something, so that a note cannot be called so.
const OWN: [&str; 15] = [
    "description",
    "category",
    "model",
    "model_class",
    "limits",
    "permissions",
    "hooks",
    "context",
    "inputs",
    "outputs",
    "name",
    "version",
    "extends",
    "template",
    "example",
];

/// What stands for an unnamed author.
const NO_AUTHOR: &str = "unknown";

pub(super) fn write(draft: &mut Draft, category: &str, report: &mut Report) -> Result<Vec<OutFile>> {
    let is_key = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    target_limits::rename(
        draft,
        |name| is_key(name) && name != crate::template::input::LITERAL_INPUT,
        report,
    );
    let pieces = draft.pieces().map_err(|stop| cannot(draft, &stop, BuiltIn::Directive))?;
    declare_all(draft, &pieces);
    let body = input(draft, &pieces, report);
    edges(draft, &pieces, report);
    target_limits::prints(draft, Print::Json, BuiltIn::Directive, report);
    draft.words.iter().for_each(|chunk| super::target_text::no_comments(chunk, report));
    target_limits::no_tools(draft, BuiltIn::Directive, report);
    signable(draft, report);
    let mut out = String::new();
    if let Some(name) = &draft.name {
        out.push_str(&format!("# {}\n\n", name.replace('\n', " ").trim()));
        let message = "the display name becomes the heading of the file, which models do not see";
        report.note("metadata", message);
    }
    let version = draft.version.as_deref().unwrap_or("1.0.0");
    out.push_str(&format!(
        "```xml\n<directive name=\"{}\" version=\"{}\">\n",
        sure(&draft.id),
        sure(version)
    ));
    metadata(draft, category, report, &mut out);
    inputs(draft, report, &mut out);
    outputs(draft, report, &mut out);
    out.push_str(&format!("</directive>\n```\n{}\n", body.trim_matches(is_space)));
    let message = "a directive is sent as a user message, and Cuebook adds an instruction, its name, its \
         description and how to return results";
    report.note("frame", message).hint("change the instruction with [directives] in cuebook.toml");
    let path = match category {
        "" => draft.id.clone(),
        category => format!("{category}/{}", draft.id),
    };
    let message = "the directive is not signed yet, and cannot run until it is";
    let hint = Hint::run(
        format!("put it at .ai/directives/{path}.md, review it, and sign it"),
        format!("cuebook sign directive {path}"),
    );
    report.note("signature", message).hint(hint);
    Ok(vec![OutFile { path: format!("{}.md", draft.id), text: out }])
}

/// Says what signing asks for where the prompt does not, and tells of it.
fn signable(draft: &mut Draft, report: &mut Report) {
    let is_said = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    if !is_said(&draft.description) {
        let title = draft.title();
        let message = format!("the prompt has no description, which a signature requires: `{title}` is used");
        report.note("signature", message).hint("describe the directive in <description>");
        draft.description = Some(title);
    }
    if !is_said(&author(draft)) {
        let message =
            format!("the prompt names no author, which a signature requires: `{NO_AUTHOR}` is used");
        report.note("signature", message).hint("write the author into <author> before you sign it");
        draft.extra.insert("author".into(), NO_AUTHOR.into());
    }
    let (id, version) = (&draft.id, draft.version.as_deref().unwrap_or("1.0.0"));
    if !crate::actions::sign::is_directive_name(id) {
        let message = format!(
            "the name `{id}` cannot be signed: use lowercase letters, digits and `_`, starting with a \
                 letter"
        );
        report
            .note("signature", message)
            .hint(Hint::option("choose another name", "--out .ai/directives/NAME.md"));
    }
    if !crate::actions::sign::is_version(version) {
        let message = format!("the version `{version}` cannot be signed: use three numbers, as in 1.0.0");
        report.note("signature", message).hint("change the version");
    }
}

/// Who wrote a prompt, if it says so; several become one text.
fn author(draft: &mut Draft) -> Option<String> {
    let texts = |value: &Json| match value {
        Json::String(text) => Some(text.trim().to_owned()),
        Json::Array(names) => Some(names.iter().map(Json::as_str).collect::<Option<Vec<_>>>()?.join(", ")),
        _ => None,
    };
    let key = ["author", "authors"].into_iter().find(|key| draft.extra.contains_key(*key))?;
    let author = texts(draft.extra.get(key)?).filter(|text| !text.is_empty())?;
    draft.extra.shift_remove(key);
    draft.extra.insert("author".into(), author.as_str().into());
    Some(author)
}

/// A text that XML can say, without what it cannot.
fn sure(text: &str) -> String {
    xml(text).unwrap_or_else(|| {
        text.chars()
            .filter(|letter| *letter >= ' ')
            .map(|c| xml(&c.to_string()).unwrap_or_default())
            .collect()
    })
}

/// A directive that declares inputs refuses all others, so that all that show are declared.
fn declare_all(draft: &mut Draft, pieces: &[Piece]) {
    for piece in pieces {
        if let Piece::Value { name, .. } = piece
            && draft.input(name).is_none()
            && !draft.inputs.is_empty()
        {
            draft.inputs.push(Input {
                name: name.clone(),
                need: Need::Optional,
                kind: Type::Any,
                kind_name: None,
                description: None,
                default: None,
                choices: Vec::new(),
                strict: false,
                more: Map::new(),
                place: None,
            });
        }
    }
}

/// White space around a body goes, also where a value brings it.
fn edges(draft: &Draft, pieces: &[Piece], report: &mut Report) {
    for (edge, piece) in [("beginning", pieces.first()), ("end", pieces.last())] {
        let at_start = edge == "beginning";
        match piece {
            Some(Piece::Value { name, .. }) => {
                let message = format!("whitespace of `{name}` at the {edge} of the text is removed");
                let place = draft.input(name).and_then(|input| input.place.clone());
                report
                    .changed("text", message)
                    .at(place)
                    .hint("write a word before or after it")
                    .spares(ReportedDifference::Edge(name.clone()));
            }
            Some(Piece::Text(text)) => {
                let bare = if at_start {
                    text.trim_start_matches(is_space)
                } else {
                    text.trim_end_matches(is_space)
                };
                let gone = if at_start { &text[..text.len() - bare.len()] } else { &text[bare.len()..] };
                target_limits::space_gone(draft, gone, edge, report);
            }
            None => {}
        }
    }
}

fn metadata(draft: &Draft, category: &str, report: &mut Report, out: &mut String) {
    out.push_str("  <metadata>\n");
    if let Some(description) = &draft.description {
        element("description", description, None, report, out);
    }
    out.push_str(&format!("    <category>{}</category>\n", sure(category)));
    if let Some((model, place)) = &draft.model {
        let mut attributes = String::new();
        for (key, value) in model {
            match (key.as_str(), value.as_str().and_then(xml)) {
                ("id" | "provider" | "tier" | "fallback" | "fallback_id" | "parallel", Some(value)) => {
                    attributes.push_str(&format!(" {key}=\"{value}\""));
                }
                _ => {
                    let message =
                        format!("`{key}` of the model is left out: a directive only names its model");
                    let hint = "set it in the program that runs the directive";
                    report.lost("model", message).at(place.clone()).hint(hint);
                }
            }
        }
        out.push_str(&format!("    <model{attributes} />\n"));
    }
    let kind = draft.kind.as_ref().map(|kind| ("type".to_owned(), Json::from(kind.as_str())));
    for (key, value) in draft.extra.clone().into_iter().chain(kind) {
        let is_word = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
            && !OWN.contains(&key.as_str())
            && key != "raw";
        match value.as_str().filter(|text| is_word && !text.trim().is_empty() && text.trim() == *text) {
            Some(text) => element(&key, text, None, report, out),
            None => {
                let message = format!(
                    "`{key}` of the metadata is left out: a directive holds only strings there, and the key must \
                         be a valid element name"
                );
                report.lost("metadata", message).hint("write it as a string to keep it");
            }
        }
    }
    out.push_str("  </metadata>\n");
}

fn element(name: &str, text: &str, place: Option<Place>, report: &mut Report, out: &mut String) {
    match xml(text) {
        Some(written) => out.push_str(&format!("    <{name}>{written}</{name}>\n")),
        None => {
            let message = format!("`{name}` is left out: it has characters that XML does not allow");
            report.lost("metadata", message).at(place).hint("remove the invisible characters");
        }
    }
}

fn inputs(draft: &Draft, report: &mut Report, out: &mut String) {
    if draft.inputs.is_empty() {
        return;
    }
    out.push_str("  <inputs>\n");
    for input in &draft.inputs {
        let kind = if input.kind == Type::List { "array" } else { input.kind.as_str() };
        out.push_str(&format!("    <input name=\"{}\" type=\"{kind}\"", sure(&input.name)));
        if input.need == Need::Required {
            out.push_str(" required=\"true\"");
        }
        let mut lose = |what: &str| {
            let message = format!(
                "the {what} of `{}` is left out: it has characters that XML does not allow",
                input.name
            );
            report.lost("inputs", message).at(input.place.clone()).hint("remove the invisible characters");
        };
        if let Some(default) = &input.default {
            let text = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
            match xml(&text) {
                Some(text) => out.push_str(&format!(" default=\"{text}\"")),
                None => lose("default"),
            }
        }
        match input.description.as_deref().map(xml) {
            Some(Some(text)) if !text.trim().is_empty() => out.push_str(&format!(">{text}</input>\n")),
            Some(None) => {
                lose("description");
                out.push_str(" />\n");
            }
            _ => out.push_str(" />\n"),
        }
    }
    out.push_str("  </inputs>\n");
}

fn outputs(draft: &Draft, report: &mut Report, out: &mut String) {
    let Some((_, first)) = draft.outputs.first() else { return };
    let message = "the model returns the outputs by a call: they were the answer before";
    report.changed("outputs", message).at(first.clone()).hint("read them from the results of the directive");
    out.push_str("  <outputs>\n");
    for (output, place) in &draft.outputs {
        let text = |key: &str| output.get(key).and_then(Json::as_str);
        let name = text("name").unwrap_or_default();
        let kind = match text("kind").unwrap_or_default() {
            "float" | "number" => "number",
            simple @ ("string" | "integer" | "boolean" | "array" | "object") => simple,
            _ => "any",
        };
        let known = ["name", "kind", "description", "required"];
        let says = |(key, value): &(&String, &Json)| {
            let says_nothing = *key == "items" && **value == super::draft::anything();
            !known.contains(&key.as_str()) && !says_nothing
        };
        let more: Vec<&String> = output.iter().filter(says).map(|(key, _)| key).collect();
        if !more.is_empty() || kind == "any" && text("kind") != Some("any") {
            let message = format!("the inner structure of the output `{name}` is left out");
            report.lost("outputs", message).at(place.clone()).hint("describe it in the description");
        }
        out.push_str(&format!("    <output name=\"{}\" type=\"{kind}\"", sure(name)));
        if output.get("required") != Some(&Json::Bool(true)) {
            out.push_str(" required=\"false\"");
        }
        match text("description").and_then(xml).filter(|text| !text.trim().is_empty()) {
            Some(text) => out.push_str(&format!(">{text}</output>\n")),
            None => out.push_str(" />\n"),
        }
    }
    out.push_str("  </outputs>\n");
}
