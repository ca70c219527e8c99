//! Drafts as `.prompty` files.

use serde_json::{Map, Value as Json, json};

use super::draft::{Draft, Language, Piece, Print};
use super::notation::yaml;
use super::report::Report;
use super::reported_differences::ReportedDifference;
use super::target_text::{Jinja, SyntaxLines, cannot, is_marker, mustache};
use super::{OutFile, target_limits};
use crate::chat::{Role, Roles};
use crate::convert::BuiltIn;
use crate::error::Result;
use crate::library::PROMPTY_END;

pub(super) fn write(draft: &mut Draft, report: &mut Report) -> Result<Vec<OutFile>> {
    target_limits::rename(draft, crate::template::jinja::parts::is_name, report);
    let mut front = target_limits::front(draft);
    if let Some((model, _)) = &draft.model {
        front.insert("model".into(), Json::Object(model.clone()));
    }
    inputs(draft, &mut front);
    if !draft.outputs.is_empty() {
        let outputs = draft.outputs.iter().map(|(output, _)| Json::Object(output.clone()));
        front.insert("outputs".into(), outputs.collect());
        target_limits::returned_otherwise(draft, report);
    }
    if !draft.tools.is_empty() {
        let tools = draft.tools.iter().map(|(tool, _)| Json::Object(tool.clone()));
        front.insert("tools".into(), tools.collect());
    }
    let is_plain = draft.pieces().is_ok();
    // A line that would begin a message can be written as text in Jinja2 alone.
    let template = mustache(draft).filter(|(text, _)| {
        !text.lines().any(|line| is_marker(&[Piece::Text(line.to_owned())], &Roles::default()))
    });
    let text = match template {
        Some((text, escape)) if escape || !is_plain => {
            let mut format = json!({"kind": "mustache"});
            if !escape {
                format["options"] = json!({"escape": false});
            }
            front.insert("template".into(), json!({"format": format}));
            text
        }
        _ => {
            if draft
                .words
                .iter()
                .any(|chunk| matches!(chunk.written, Some((Language::Mustache { escape: true }, _))))
            {
                let message = "values are no longer escaped for HTML";
                let hint = "to avoid escaping in Mustache, write {{{…}}}";
                report.changed("text", message).hint(hint).spares(ReportedDifference::Markup);
            }
            let jinja = Jinja { guard: SyntaxLines::Roles, blocks_are_safe: true, kept: &[], forced: &[] };
            let text =
                jinja.write(draft, Some(report)).map_err(|stop| cannot(draft, &stop, BuiltIn::Prompty))?;
            if is_python(draft) {
                let format = json!({"kind": "jinja2", "options": {"scalars": "python"}});
                front.insert("template".into(), json!({"format": format}));
            } else {
                target_limits::prints(draft, Print::Portable, BuiltIn::Prompty, report);
            }
            text
        }
    };
    let role = match draft.role {
        Role::System => String::new(),
        ref role => format!("{}:\n", role.as_str()),
    };
    let text = format!("---\n{}---\n{role}{text}", yaml(&front));
    Ok(vec![OutFile { path: format!("{}{PROMPTY_END}", draft.id), text }])
}

/// Whether values have to be printed as Python does.
fn is_python(draft: &Draft) -> bool {
    let alike = |name: &String| draft.input(name).is_some_and(super::draft::Input::prints_alike);
    draft.words.iter().any(|chunk| {
        chunk.print == Print::Python && (chunk.pieces.is_err() || !chunk.names.iter().all(alike))
    }) && draft.words.iter().all(|chunk| chunk.names.is_empty() || chunk.print == Print::Python)
}

/// The inputs, in the words of front matter.
pub(super) fn inputs(draft: &Draft, front: &mut Map<String, Json>) {
    let input = |input: &super::draft::Input| (input.name.clone(), Json::Object(input.to_front()));
    if !draft.inputs.is_empty() {
        front.insert("inputs".into(), Json::Object(draft.inputs.iter().map(input).collect()));
    }
}
