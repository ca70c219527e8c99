//! Progressive disclosure: what a summarized section says of itself, and the tools that open or read it.

use std::any::Any;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::errors::hinted;
use super::render::{self, RenderedPrompt, Setting};
use super::session::Session;
use super::tool::{SectionTool, ToolResult};
use super::tree::Tree;
use crate::chat::output::read_arguments;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::prompt::{Field, Record, Shape, Visibility};
use crate::variables::VisibilityOverrides;

/// The names of the tools that are added.
pub const NAMES: [&str; 2] = [OPEN, READ];

const OPEN: &str = "open_sections";
const READ: &str = "read_section";

/// How often a model may open sections before the loop gives up.
pub const MAX_EXPANSIONS: usize = 10;

/// The names of the tools that the renderer adds.
pub const TOOLS: [&str; 2] = [OPEN, READ];

/// The sentence that says how to see more: with which tool, and what is below.
pub fn suffix_of(path: &str, children: &[String], brings_tools: bool) -> String {
    let tool = if brings_tools { OPEN } else { READ };
    let sentence = match children.is_empty() {
        true => {
            format!("This section is summarized. To view full content, call `{tool}` with key \"{path}\".")
        }
        false => format!(
            "This section is summarized. Call `{tool}` with key \"{path}\" to view full content including subsections: {}.",
            children.join(", ")
        ),
    };
    format!("\n\n---\n[{sentence}]")
}

fn tool(name: &str, description: &str, record: Record) -> Arc<SectionTool> {
    Arc::new(SectionTool {
        name: name.to_owned(),
        description: description.to_owned(),
        params: Some(Arc::new(record)),
        result: ToolResult::Nothing,
        examples: Vec::new(),
        shown_outputs: Vec::new(),
        accepts_overrides: false,
        handler: None,
        place: None,
    })
}

/// The tool that opens sections.
pub fn open_sections_tool() -> Arc<SectionTool> {
    static TOOL: OnceLock<Arc<SectionTool>> = OnceLock::new();
    let make = || {
        let keys = Field::new("section_keys", Shape::Text.list());
        let reason = Field::new("reason", Shape::Text);
        let record = Record::new("OpenSectionsParams").field(keys).field(reason);
        tool(OPEN, "Expand summarized sections to view their full content.", record)
    };
    TOOL.get_or_init(make).clone()
}

/// The tool that reads a section without opening it.
pub fn read_section_tool() -> Arc<SectionTool> {
    static TOOL: OnceLock<Arc<SectionTool>> = OnceLock::new();
    let make = || {
        let record = Record::new("ReadSectionParams").field(Field::new("section_key", Shape::Text));
        let description = "Read the full content of a summarized section without expanding it. Returns the section's \
                           markdown content. Child sections may still be summarized in the output.";
        tool(READ, description, record)
    };
    TOOL.get_or_init(make).clone()
}

fn refuse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::PromptValidation, Diagnostic::new(Code::BadSection, message))
}

/// The arguments of a call, checked against what the tool takes. `also` is another name that models use for `name`.
fn arguments(tool: &SectionTool, arguments: &Json, name: &str, also: &str) -> Result<Json> {
    let mut arguments = arguments.clone();
    // The seed calls it without a reason.
    if let Some(given) = arguments.as_object_mut().filter(|_| tool.name == OPEN) {
        given.entry("reason").or_insert_with(|| "".into());
    }
    if let Some(given) = arguments.as_object_mut()
        && !given.contains_key(name)
        && let Some(value) = given.shift_remove(also)
    {
        given.insert(name.to_owned(), value);
    }
    match &tool.params {
        Some(record) => read_arguments(record, &arguments),
        None => Ok(arguments),
    }
}

impl Tree {
    /// The sections that a model means by a key.
    fn meant(&self, key: &str) -> Result<&[usize]> {
        match self.by_name.get(key) {
            Some(found) => Ok(found),
            None => {
                let error = refuse(format!("Section '{key}' does not exist in this prompt."));
                let near = nearest(key, self.nodes.iter().map(|node| &*node.dotted));
                Err(hinted(error, did_you_mean(&near)).with("nearest", near))
            }
        }
    }

    /// How the sections that a model means by a key stand; those that are not there are left out, but one must be.
    fn standing(&self, key: &str, setting: &Setting<'_>) -> Result<Vec<(usize, Visibility)>> {
        let mut found = Vec::new();
        for &index in self.meant(key)? {
            if let Some(visibility) = self.stands(index, setting)? {
                found.push((index, visibility));
            }
        }
        match found.is_empty() {
            true => Err(refuse(format!("Section '{key}' is not enabled."))),
            false => Ok(found),
        }
    }

    /// Answers a model's call of `open_sections`. The answer is the error `VisibilityExpansionRequired`, which says what to
    /// open before the next render; any other error is one for the model.
    #[doc(hidden)]
    pub fn open_sections(&self, arguments: &Json, setting: &Setting<'_>) -> Result<Infallible> {
        let arguments = self::arguments(&open_sections_tool(), arguments, "section_keys", "sections")?;
        let keys = arguments["section_keys"].as_array().into_iter().flatten();
        let keys: Vec<&str> = keys.filter_map(Json::as_str).collect();
        let reason = arguments["reason"].as_str().unwrap_or_default();
        if keys.is_empty() {
            return Err(refuse("At least one section key must be provided."));
        }
        // Several sections can have one name, and a model can name one of them twice.
        let mut requested: IndexMap<String, &str> = IndexMap::new();
        let mut opened: Vec<&str> = Vec::new();
        for key in &keys {
            for (index, visibility) in self.standing(key, setting)? {
                let node = &self.nodes[index];
                if visibility == Visibility::Summary {
                    let before = requested.insert(node.path.join("/"), Visibility::Full.as_str());
                    if before.is_none() {
                        opened.push(&node.dotted);
                    }
                }
            }
        }
        if requested.is_empty() {
            return Err(refuse(match keys.as_slice() {
                [key] => format!("Section '{key}' is already expanded."),
                several => {
                    let quoted: Vec<String> = several.iter().map(|key| format!("'{key}'")).collect();
                    format!("All requested sections are already expanded: {}", quoted.join(", "))
                }
            }));
        }
        let mut message = format!("Visibility expansion required for sections: {}.", opened.join(", "));
        if !reason.is_empty() {
            message.push_str(&format!(" Reason: {reason}"));
        }
        let hint = "set these sections to full in the session, and render again";
        let diagnostic = Diagnostic::new(Code::ExpansionRequired, message).hint(hint);
        let raw = format!("Model requested expansion of sections: {}", keys.join(", "));
        Err(Error::new(ErrorKind::VisibilityExpansionRequired, diagnostic)
            .with("raw_message", raw)
            .with("requested_overrides", requested)
            .with("reason", reason)
            .with("section_keys", keys))
    }

    /// Answers a model's call of `read_section`: the whole section, with what is below it as visible as it is now.
    #[doc(hidden)]
    pub fn read_section(&self, arguments: &Json, setting: &Setting<'_>) -> Result<String> {
        let arguments = self::arguments(&read_section_tool(), arguments, "section_key", "section")?;
        let key = arguments["section_key"].as_str().unwrap_or_default();
        let mut standing = self.standing(key, setting)?;
        standing.retain(|(_, visibility)| *visibility == Visibility::Summary);
        if standing.is_empty() {
            return Err(refuse(format!("Section '{key}' is not summarized.")));
        }
        // Keys may have dots, so that one name can mean several sections: all of them are shown.
        let texts = standing.into_iter().map(|(index, _)| render::read(self, index, setting));
        Ok(texts.collect::<Result<Vec<String>>>()?.join("\n\n"))
    }

    /// The paths of the sections above the ones that these keys mean which are summarized, so that nothing below them shows.
    fn closed_above(&self, keys: &[String], setting: &Setting<'_>) -> Result<Vec<&[String]>> {
        let mut closed = Vec::new();
        for key in keys {
            for (index, _) in self.standing(key, setting)? {
                let mut above = self.nodes[index].parent;
                while let Some(parent) = above {
                    if self.stands(parent, setting)? == Some(Visibility::Summary) {
                        closed.push(self.nodes[parent].path.as_slice());
                    }
                    above = self.nodes[parent].parent;
                }
            }
        }
        Ok(closed)
    }

    /// Opens what a model asked for in a session, and everything above it: what is below something that is summarized does not show.
    /// The answer says which keys were asked for.
    fn opened(
        &self,
        arguments: &Json,
        setting: &Setting<'_>,
        session: &mut VisibilityOverrides,
    ) -> Result<Vec<String>> {
        let Err(error) = self.open_sections(arguments, setting);
        let is_expansion = error.kind() == ErrorKind::VisibilityExpansionRequired;
        if !is_expansion && error.kind() != ErrorKind::PromptValidation {
            return Err(error);
        }
        let keys = self::arguments(&open_sections_tool(), arguments, "section_keys", "sections")?;
        let keys: Vec<String> = serde_json::from_value(keys["section_keys"].clone()).unwrap_or_default();
        let above = match self.closed_above(&keys, setting) {
            Ok(above) if is_expansion || !above.is_empty() => above,
            // What the model named is not there, or all of it is to be seen already.
            _ => return Err(error),
        };
        for path in above {
            session.set(path, Visibility::Full);
        }
        expand(&error, session);
        Ok(keys)
    }

    /// Answers a call of one of the tools that the renderer added, as a model gets it: text, and whether it is an error.
    /// Sections that are to be opened are set in the session, and the caller renders again. `None` for any other tool.
    pub fn answer(
        &self,
        name: &str,
        arguments: &Json,
        setting: &Setting<'_>,
        session: &mut VisibilityOverrides,
    ) -> Option<Answer> {
        let answered = match name {
            OPEN => self.opened(arguments, setting, session).map(|asked| {
                let asked = asked.join(", ");
                let text = format!(
                    "Sections expanded: {asked}. The prompt will be re-rendered with the full content of the requested sections."
                );
                Answer { text, is_error: false, render_again: true }
            }),
            READ => self
                .read_section(arguments, setting)
                .map(|text| Answer { text, is_error: false, render_again: false }),
            _ => return None,
        };
        Some(match answered {
            Ok(answer) => answer,
            Err(error) => {
                let message = &error.diagnostic().message;
                let what = match error.kind() {
                    ErrorKind::OutputParse => "Validation error",
                    _ => "Error",
                };
                Answer { text: format!("{what}: {message}"), is_error: true, render_again: false }
            }
        })
    }
}

/// What a model gets about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
    /// Whether the prompt is to be rendered again before the model goes on.
    pub render_again: bool,
}

/// Opens in a session what `VisibilityExpansionRequired` asks for, and returns the keys as they were asked for.
pub fn expand(required: &Error, session: &mut VisibilityOverrides) -> Vec<String> {
    for path in required.field("requested_overrides").and_then(Json::as_object).into_iter().flatten() {
        let path: Vec<String> = path.0.split('/').map(str::to_owned).collect();
        session.set(&path, Visibility::Full);
    }
    let keys = required.field("section_keys").and_then(Json::as_array);
    keys.into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

/// A session whose visibilities a loop keeps, and which is else that of the host.
struct Layered<'s> {
    opened: &'s VisibilityOverrides,
    host: Option<&'s dyn Session>,
}

impl Session for Layered<'_> {
    fn visibility(&self, path: &[String]) -> Option<Visibility> {
        self.opened.get(path).or_else(|| self.host?.visibility(path))
    }

    fn as_any(&self) -> &dyn Any {
        match self.host {
            Some(host) => host.as_any(),
            None => self.opened,
        }
    }
}

/// Drives a conversation with a model through its disclosures: renders, asks, and renders again whenever a section was opened,
/// at most [`MAX_EXPANSIONS`] times. `ask` gets the prompt and the answer to the last call, and returns what the model did: a
/// call of a tool, or something else, which ends the loop. Calls of the host's own tools are its own business and do not come
/// here. A session of the setting is asked behind the one that the loop keeps.
pub fn disclose<T>(
    tree: &Tree,
    setting: &Setting<'_>,
    session: &mut VisibilityOverrides,
    mut ask: impl FnMut(&RenderedPrompt, Option<&Answer>) -> Result<Turn<T>>,
) -> Result<T> {
    let mut expansions = 0;
    let mut answer = None;
    loop {
        let opened = session.clone();
        let layered = Layered { opened: &opened, host: setting.session };
        let setting = Setting { session: Some(&layered), ..*setting };
        let rendered = tree.render(&setting)?;
        loop {
            let (name, arguments) = match ask(&rendered, answer.as_ref())? {
                Turn::Done(result) => return Ok(result),
                Turn::Call { name, arguments } => (name, arguments),
            };
            let reported = tree.answer(&name, &arguments, &setting, session);
            let reported = reported.ok_or_else(|| refuse(format!("unknown tool `{name}` for sections")))?;
            let again = reported.render_again;
            answer = Some(reported);
            if again {
                break;
            }
        }
        expansions += 1;
        if expansions > MAX_EXPANSIONS {
            let message = format!("Visibility expansion retries exceeded ({MAX_EXPANSIONS})");
            let hint = "check why the model keeps opening sections, or show them in full from the start";
            let diagnostic = Diagnostic::new(Code::ExpansionRequired, message).hint(hint);
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
    }
}

/// What a model did.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn<T> {
    /// It called a tool.
    Call {
        /// The tool.
        name: String,
        /// What it was given.
        arguments: Json,
    },
    /// It is done.
    Done(T),
}
