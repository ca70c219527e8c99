//! Drafts as template prompts: a folder with `template.md` and `prompt.py`.

use serde_json::{Map, Value as Json, json};

use super::draft::{Draft, Print};
use super::notation::python;
use super::report::Report;
use super::target_text::{Jinja, SyntaxLines, cannot};
use super::{OutFile, target_limits};
use crate::convert::BuiltIn;
use crate::error::Result;
use crate::library::{Config, PROMPT_FILE, TEMPLATE_FILE};
use crate::prompt::Need;

pub(super) fn write(draft: &mut Draft, config: &Config, report: &mut Report) -> Result<Vec<OutFile>> {
    target_limits::rename(
        draft,
        |name| name != "system" && crate::template::jinja::parts::is_name(name),
        report,
    );
    let settings = config.template_settings(false);
    let blocks_are_safe = !settings.trim_blocks && !settings.lstrip_blocks;
    let jinja = Jinja { guard: SyntaxLines::Nothing, blocks_are_safe, kept: &[], forced: &[] };
    let mut text =
        jinja.write(draft, Some(report)).map_err(|stop| cannot(draft, &stop, BuiltIn::Template))?;
    if !settings.keep_trailing_newline {
        text.push('\n');
    }
    target_limits::prints(draft, Print::Python, BuiltIn::Template, report);
    target_limits::role_becomes_system(draft, BuiltIn::Template, report);
    target_limits::no_model(draft, BuiltIn::Template, report);
    target_limits::no_tools(draft, BuiltIn::Template, report);
    target_limits::no_outputs(draft, BuiltIn::Template, report);
    Ok(vec![
        OutFile { path: TEMPLATE_FILE.to_owned(), text },
        OutFile { path: PROMPT_FILE.to_owned(), text: definition(draft) },
    ])
}

fn definition(draft: &Draft) -> String {
    let mut metadata = Map::new();
    metadata.insert("name".into(), json!(draft.title()));
    let texts = [("version", &draft.version), ("type", &draft.kind), ("description", &draft.description)];
    for (key, text) in texts {
        if let Some(text) = text {
            metadata.insert(key.into(), json!(text));
        }
    }
    if !draft.extra.is_empty() {
        metadata.insert("metadata".into(), Json::Object(draft.extra.clone()));
    }
    let mut out = format!("METADATA = {}\n", python(&Json::Object(metadata), 0));
    let mut variables = Map::new();
    for need in [Need::Required, Need::Optional] {
        let of_need =
            draft.inputs.iter().filter(|input| (input.need == Need::Required) == (need == Need::Required));
        let declared: Vec<Json> = of_need
            .map(|input| {
                let mut object = Map::new();
                object.insert("name".into(), json!(input.name));
                object.insert("type".into(), json!(input.kind.as_str()));
                if let Some(description) = &input.description {
                    object.insert("description".into(), json!(description));
                }
                if let Some(default) = &input.default {
                    object.insert("default".into(), default.clone());
                }
                Json::Object(object)
            })
            .collect();
        if !declared.is_empty() {
            variables.insert(need.as_str().to_owned(), Json::Array(declared));
        }
    }
    if !variables.is_empty() {
        out.push_str(&format!("\nVARIABLES = {}\n", python(&Json::Object(variables), 0)));
    }
    if let Some(size) = draft.max_output_size {
        let limits = json!({"max_output_size": size});
        out.push_str(&format!("\nLIMITS = {}\n", python(&limits, 0)));
    }
    out
}
