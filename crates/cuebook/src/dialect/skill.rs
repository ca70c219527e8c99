//! Skills of agents (agentskills.io): a folder with `SKILL.md`, whose text is shown as it is written.
//!
//! The front matter says when the skill helps. The body is no template: braces in it are text.

mod copied;
mod files;
mod offered;

pub use files::{SKILL_FILE, SkillFile, SkillFolder, SkillSignature};
pub use offered::{OfferedSkill, Part};

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::{Body, Compiling, Dialect, Offer, Parsed, Read, Reading, Texts, Writing};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, did_you_mean, nearest};
use crate::node::{Data, Key, Node};
use crate::notation::prompty::split;
use crate::prompt::{Format, Metadata, Prompt, SKILL, Traits};
use crate::source::{Place, Source};
use crate::template::engine::{Outline, Output};
use crate::template::page::Page;
use crate::trust::Trust;
use crate::yaml;

/// Characters that the format allows.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 1_024;
const LONGEST_COMPATIBILITY: usize = 500;

/// The keys of the format.
const KEYS: [&str; 6] = ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
/// Keys that a widely used agent reads in addition.
const KEYS_OF_AGENTS: [&str; 12] = [
    "when_to_use",
    "argument-hint",
    "arguments",
    "disable-model-invocation",
    "user-invocable",
    "model",
    "effort",
    "context",
    "agent",
    "hooks",
    "paths",
    "shell",
];

/// Folders with `SKILL.md`.
#[derive(Debug)]
pub(super) struct Skills;

impl Dialect for Skills {
    fn traits(&self) -> &'static Traits {
        &SKILL
    }

    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
        Ok(Skill::read(&offer.text()?)?.metadata(offer))
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read> {
        let source = reading.text()?;
        let skill = Skill::read(&source)?;
        let metadata = skill.metadata(reading.offer());
        let notes = skill.notes(&reading.offer().candidate.entry);
        let template = Source::inside(&source, skill.body.clone());
        let prompt = Prompt {
            format: Format { engine: "literal".into(), ..Format::plain() },
            ..reading.prompt(metadata, template)
        };
        let folder = SkillFolder::around(&skill, &source, reading.offer().candidate);
        Ok(Read { notes, parsed: Some(Box::new(folder)), ..Read::new(prompt) })
    }

    fn compile(&self, parsed: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>> {
        let folder = parsed.and_then(|parsed| parsed.downcast::<Option<SkillFolder>>().ok());
        let folder = *folder.ok_or_else(|| compiling.not_parsed())?;
        Ok(Box::new(Literal { text: compiling.prompt().template.clone(), folder }))
    }
}

/// A text that is shown as it is written.
struct Literal {
    text: Arc<Source>,
    /// Where its files lie; `None` for a text that is not on disk.
    folder: Option<SkillFolder>,
}

impl Body for Literal {
    fn outline(&self) -> Arc<dyn Outline> {
        Texts::of(&self.text)
    }

    fn write(&self, writing: &Writing<'_>) -> Result<Output> {
        self.verify(writing.library().trust())?;
        let mut page = Page::new(&self.text, writing.limit());
        page.literal(0..self.text.text().len())?;
        Ok(page.finish())
    }

    fn verify(&self, trust: &Trust) -> Result<()> {
        self.folder.as_ref().map_or(Ok(()), |folder| folder.signature(trust).map(|_| ()))
    }
}

/// A file, taken apart.
struct Skill {
    root: Node,
    name: (String, Place),
    description: (String, Place),
    body: Range<usize>,
}

impl Skill {
    /// Takes a file apart. What no agent would find the skill by is an error.
    fn read(source: &Arc<Source>) -> Result<Skill> {
        let parts = split(source)?;
        let hint = "begin the file with `---`, `name: …`, `description: …` and `---`";
        let Some(front) = parts.front_matter else {
            return Err(wrong(source.place(0..0), "the skill has no front matter", hint));
        };
        let text = &source.text()[parts.body.clone()];
        let body = parts.body.start + text.len() - text.trim_start_matches('\n').len()..parts.body.end;
        let document = yaml::Document::parse(source, front, Code::BadFrontMatter, ErrorKind::PromptRead);
        let document = document.map_err(|error| {
            error.map(|found| match found.hint {
                None => found.hint("put a text with `: ` or ` #` in it between quotes"),
                Some(_) => found,
            })
        })?;
        let root = document.into_root();
        let Data::Map(_) = &root.data else {
            return Err(wrong(root.opening(), "the front matter must be a map", hint));
        };
        let text = |key: &str| match root.get(key) {
            Some(node @ Node { data: Data::Text(text), .. }) if !text.trim().is_empty() => {
                Ok((text.trim().to_owned(), node.place.clone()))
            }
            Some(node) => {
                let message = format!("`{key}` must be a text, but is {}", node.describe());
                Err(wrong(node.opening(), message, format!("write `{key}: …`")))
            }
            None => Err(wrong(
                root.opening(),
                format!("the skill has no `{key}`"),
                format!("write `{key}: …` into the front matter"),
            )),
        };
        let (name, description) = (text("name")?, text("description")?);
        Ok(Skill { name, description, body, root })
    }

    fn metadata(&self, offer: &Offer<'_>) -> Metadata {
        let mut other = match self.root.to_json() {
            Json::Object(entries) => entries,
            _ => Map::new(),
        };
        if let Some(Json::Object(more)) = other.shift_remove("metadata") {
            for (key, value) in more {
                other.entry(key).or_insert(value);
            }
        }
        if other.contains_key("allowed-tools") {
            other.insert("allowed-tools".into(), json!(self.allowed_tools()));
        }
        for known in ["name", "description"] {
            other.shift_remove(known);
        }
        offer.metadata(Some(self.name.0.clone()), Some(self.description.0.clone()), &other)
    }

    /// What the skill may call: names with spaces or commas between them, or a list. Brackets hold a name together.
    fn allowed_tools(&self) -> Vec<String> {
        match self.root.get("allowed-tools").map(|node| &node.data) {
            Some(Data::Text(text)) => tools_in(text),
            Some(Data::List(items)) => {
                items.iter().filter_map(Node::text).map(|name| name.trim().to_owned()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What the format does not allow of a name and a description.
    fn problems(&self, entry: &str) -> Vec<Diagnostic> {
        let mut problems = Vec::new();
        let mut problem = |place: &Place, message: String, hint: String| {
            problems.push(Diagnostic::new(Code::BadFrontMatter, message).at(place.clone()).hint(hint));
        };
        let (name, place) = &self.name;
        if let Some(why) = why_no_name(name) {
            problem(place, format!("the name of a skill {why}"), "write it like `read-invoices`".into());
        }
        let folder = entry.rsplit('/').next().unwrap_or_default();
        if !folder.is_empty() && folder != name {
            let message = format!("the skill is called `{name}`, but its folder `{folder}`");
            problem(place, message, format!("rename the folder, or write `name: {folder}`"));
        }
        let (description, place) = &self.description;
        let length = description.chars().count();
        if length > LONGEST_DESCRIPTION {
            let message =
                format!("the description has {length} characters, but may have {LONGEST_DESCRIPTION}");
            problem(place, message, "move the details into the text below".into());
        }
        problems
    }

    /// What the format does not allow, as warnings.
    fn notes(&self, entry: &str) -> Vec<Diagnostic> {
        let warning = |found: Diagnostic| found.severity(Severity::Warning);
        let mut notes: Vec<Diagnostic> = self.problems(entry).into_iter().map(warning).collect();
        let mut note = |place: &Place, message: String, hint: String| {
            let found = Diagnostic::new(Code::BadFrontMatter, message);
            notes.push(warning(found).at(place.clone()).hint(hint));
        };
        if let Some(node) = self.root.get("compatibility") {
            let length = node.text().map_or(0, |text| text.chars().count());
            if !(1..=LONGEST_COMPATIBILITY).contains(&length) {
                let message =
                    format!("`compatibility` must be a text of 1 to {LONGEST_COMPATIBILITY} characters");
                note(&node.place, message, "shorten it, or remove it".into());
            }
        }
        if let Some(node) = self.root.get("license")
            && node.text().is_none()
        {
            let message = format!("`license` must be a text, but is {}", node.describe());
            note(&node.opening(), message, "write the name of the licence, or of its file".into());
        }
        match self.root.get("metadata").map(|node| (node, &node.data)) {
            Some((_, Data::Map(entries))) => {
                for (key, node) in entries.iter().filter(|(_, node)| node.text().is_none()) {
                    let message =
                        format!("`metadata.{}` must be a text, but is {}", key.name, node.describe());
                    note(&node.opening(), message, format!("write `{}: \"…\"`", key.name));
                }
            }
            Some((_, Data::Null)) | None => {}
            Some((node, _)) => {
                let message = format!("`metadata` must be a map, but is {}", node.describe());
                note(&node.opening(), message, "write names and values below it, indented".into());
            }
        }
        if let Some(node) = self.root.get("allowed-tools")
            && !matches!(&node.data, Data::Text(_) | Data::List(_) | Data::Null)
        {
            let message = format!("`allowed-tools` must be names of tools, but is {}", node.describe());
            note(&node.opening(), message, "write `allowed-tools: Read Grep`".into());
        }
        notes.extend(self.unknown_keys());
        notes
    }

    /// Keys that no agent reads.
    fn unknown_keys(&self) -> Vec<Diagnostic> {
        let Data::Map(entries) = &self.root.data else { return Vec::new() };
        let known = || KEYS.into_iter().chain(KEYS_OF_AGENTS);
        let unknown = entries.iter().filter(|(key, _)| known().all(|name| name != key.name));
        let finding = |(key, _): &(Key, Node)| {
            let near = nearest(&key.name, known());
            let hint =
                did_you_mean(&near).unwrap_or_else(|| "write it below `metadata`, or remove it".into());
            let message = format!("unknown key `{}` in the front matter of a skill", key.name);
            Diagnostic::new(Code::UnknownKey, message).at(key.place.clone()).hint(hint)
        };
        unknown.map(finding).collect()
    }
}

fn tools_in(text: &str) -> Vec<String> {
    let (mut tools, mut depth) = (vec![String::new()], 0usize);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match (letter == ',' || letter.is_whitespace()) && depth == 0 {
            true => tools.push(String::new()),
            false => {
                if let Some(last) = tools.last_mut() {
                    last.push(letter);
                }
            }
        }
    }
    tools.retain(|name| !name.is_empty());
    tools
}

/// Why a text is no name of a skill.
fn why_no_name(name: &str) -> Option<String> {
    let is_letter = |letter: char| letter.is_lowercase() || letter.is_numeric() || letter == '-';
    match name {
        _ if name.chars().count() > LONGEST_NAME => {
            Some(format!("has {} characters, but may have {LONGEST_NAME}", name.chars().count()))
        }
        _ if !name.chars().all(is_letter) => {
            Some(format!("has lower-case letters, digits and hyphens only, but is `{name}`"))
        }
        _ if name.starts_with('-') || name.ends_with('-') || name.contains("--") => {
            Some(format!("cannot begin or end with a hyphen or have two in a row, but is `{name}`"))
        }
        _ => None,
    }
}

fn wrong(place: Place, message: impl Into<String>, hint: impl Into<Hint>) -> Error {
    let diagnostic = Diagnostic::new(Code::BadFrontMatter, message.into()).at(place).hint(hint.into());
    Error::new(ErrorKind::PromptRead, diagnostic)
}
