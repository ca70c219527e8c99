//! Files that other programs read: a skill, `AGENTS.md`, `CLAUDE.md` and a `.prompt` file, written from any prompt.
//!
//! Such a file is self-contained, and says what it was made from: the id of its source, the SHA-256 of the source with everything
//! that it includes, and that of its own text. `check` compares both with what is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use cuebook_text::sha256::{Sha256, hex};
use serde_json::{Map, Value as Json, json};

use super::draft::{Draft, Piece};
use super::notation::yaml;
use super::report::Report;
use super::target_text::cannot;
use super::{BuiltIn, source};
use crate::book::Book;
use crate::chat::{Part, Role};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::prepared::Prepared;
use crate::prompt::{Need, SKILL, Type};
use crate::variables::{Context, UnknownVariables, Variables};

/// What a file can be written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Export {
    /// A folder with `SKILL.md`.
    Skill,
    /// `AGENTS.md`.
    AgentsMd,
    /// `CLAUDE.md`.
    ClaudeMd,
    /// A `.prompt` file.
    Prompt,
}

impl Export {
    /// All of them.
    pub const ALL: [Export; 4] = [Export::Skill, Export::AgentsMd, Export::ClaudeMd, Export::Prompt];

    /// Its name, as in `agents-md`.
    pub fn as_str(self) -> &'static str {
        match self {
            Export::Skill => "skill",
            Export::AgentsMd => "agents-md",
            Export::ClaudeMd => "claude-md",
            Export::Prompt => "prompt",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Export::Skill => "skill",
            Export::AgentsMd => "AGENTS.md",
            Export::ClaudeMd => "CLAUDE.md",
            Export::Prompt => ".prompt file",
        }
    }
}

/// A file that was written from a prompt.
#[derive(Debug)]
#[non_exhaustive]
pub struct Exported {
    /// The id of the prompt.
    pub prompt: String,
    /// What it was written as.
    pub to: Export,
    /// Where it belongs, below a folder of such files: `NAME/SKILL.md`, `AGENTS.md`, `NAME.prompt`.
    pub path: String,
    /// The text of the file.
    pub text: String,
    /// The SHA-256 of the source with everything that it includes.
    pub source_sha256: String,
    /// What was lost or is different.
    pub report: Report,
}

impl Exported {
    /// The result as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "prompt": self.prompt,
            "to": self.to.as_str(),
            "files": [{"path": self.path, "text": self.text}],
            "source_sha256": self.source_sha256,
            "lossless": self.report.is_lossless(),
            "report": self.report.to_json(),
        })
    }
}

/// What a file says about where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The id of the prompt.
    pub prompt: String,
    /// The SHA-256 of the source when the file was written.
    pub source_sha256: String,
    /// The SHA-256 of the text below the head when the file was written.
    pub text_sha256: String,
    /// The SHA-256 of the text below the head as it is now.
    pub text_now: String,
    /// Where the text begins.
    pub text_start: usize,
}

/// Writes a prompt as a file for another program. `name` is the name of the skill or file; that of the prompt if it is missing.
///
/// ```
/// # use cuebook::Book;
/// # use cuebook_lab::convert::{Export, export};
/// let folder = tempfile::tempdir()?;
/// std::fs::create_dir_all(folder.path().join("prompts/greeting"))?;
/// std::fs::write(folder.path().join("prompts/greeting/template.md"), "Hello {{ name }}!\n")?;
/// let exported = export(&Book::open(folder.path()), "greeting", Export::Prompt, None)?;
/// assert_eq!(exported.path, "greeting.prompt");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// `CB517` if the file cannot say what the prompt says: a text without inputs has no place for a required one. `CB529` if the
/// written text still has template tags.
pub fn export(book: &Book, prompt_id: &str, to: Export, name: Option<&str>) -> Result<Exported> {
    let context = Context { without_hooks: true, unknown: UnknownVariables::Ignore, ..Context::default() };
    let context = book.complete(&context)?;
    let prepared = book.prepare(prompt_id, &context)?;
    prepared.verify_signature()?;
    let mut report = Report::default();
    for hook in &prepared.prompt().hooks {
        let message = format!("the hook `{}` does not run", hook.name);
        report.lost("hooks", message).at(Some(hook.place.clone()));
    }
    let prompt = prepared.prompt();
    let own_name = prompt.id.rsplit('/').next().unwrap_or(&prompt.id);
    let name = name.unwrap_or(own_name);
    let source_sha256 = closure(&prepared);
    let (text, front, path) = match to {
        Export::Prompt => {
            let (text, front) = handlebars(book, &prepared, &mut report)?;
            (text, front, format!("{name}.prompt"))
        }
        _ => {
            let text = literal(&prepared, &context, to, &mut report)?;
            leftover(&prepared, &text, to)?;
            match to {
                Export::Skill => {
                    let name = skill_name(name);
                    let front = skill_front(&prepared, &name)?;
                    (text, front, format!("{name}/SKILL.md"))
                }
                _ => (text, Map::new(), to.noun().to_owned()),
            }
        }
    };
    let text = format!("{}\n", text.trim_matches('\n'));
    let origin = [
        ("source", prompt.id.clone()),
        ("source-sha256", source_sha256.clone()),
        ("text-sha256", sha256(&text)),
    ];
    report.entries.sort_by_key(|entry| entry.fate);
    let head = head(to, front, origin);
    let text = format!("{head}{text}");
    Ok(Exported { prompt: prompt.id.clone(), to, path, text, source_sha256, report })
}

/// What a file says about where it comes from; `None` if it was not written from a prompt.
pub fn origin_of(text: &str) -> Option<Origin> {
    let (start, end) = match text.strip_prefix("---\n") {
        Some(rest) => (4, 4 + rest.find("\n---\n")? + "\n---\n".len()),
        None => (0, text.starts_with("<!--").then(|| text.find("-->\n"))?? + "-->\n".len()),
    };
    let find = |wanted: &str| {
        let mut lines = text[start..end].lines().map(str::trim);
        lines.find_map(|line| {
            let (key, value) = line.strip_prefix("cuebook")?.strip_prefix(['-', '.'])?.split_once(": ")?;
            (key == wanted).then(|| value.trim().trim_matches(['"', '\'']).to_owned())
        })
    };
    let text_start = text.len() - text[end..].trim_start_matches('\n').len();
    Some(Origin {
        prompt: find("source")?,
        source_sha256: find("source-sha256")?,
        text_sha256: find("text-sha256")?,
        text_now: sha256(&text[text_start..]),
        text_start,
    })
}

fn sha256(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// One hash of every file that a prompt is made from: its own, what it includes, inherits and defines.
pub(crate) fn closure(prepared: &Prepared) -> String {
    let (prompt, outline, root) = (prepared.prompt(), prepared.outline(), prepared.project());
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut add = |source: &crate::source::Source| {
        let name = source.name().to_owned();
        // A file is hashed as a whole, also if only a part of it is used.
        let whole = files::read_text(&root.join(&name), &name, u64::MAX);
        let text = whole.map_or_else(|_| source.text().to_owned(), |whole| whole.text().to_owned());
        found.entry(name).or_insert_with(|| sha256(&text));
    };
    add(&prompt.template);
    outline.units().iter().for_each(|unit| add(unit.source()));
    prompt.variables.iter().filter_map(|it| it.place.as_ref()).for_each(|place| add(place.source()));
    prompt.code.iter().for_each(|code| add(code));
    let all: String = found.iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect();
    sha256(&all)
}

/// The text of a prompt that needs no values.
fn literal(prepared: &Prepared, context: &Arc<Context>, to: Export, report: &mut Report) -> Result<String> {
    let prompt = prepared.prompt();
    let noun = to.noun();
    for variable in prompt.variables.iter().filter(|variable| !variable.from_system) {
        let name = &variable.name;
        if variable.need == Need::Required || variable.rich.is_some() {
            let message = format!("the prompt needs `{name}`, but a {noun} has no inputs");
            let found = Diagnostic::new(Code::CannotConvert, message).hint("give it a default value");
            let found = match &variable.place {
                Some(place) => found.at(place.clone()),
                None => found.file(&prompt.source),
            };
            return Err(Error::new(ErrorKind::PromptRead, found));
        }
        let value = variable.default.as_ref().map_or(Json::Null, |default| variable.shown(default));
        let message = format!("a {noun} has no inputs: `{name}` is always {value}");
        report.changed("inputs", message).at(variable.place.clone());
    }
    let is_own = |name: &&String| !matches!(name.as_str(), "system" | "session");
    for name in prepared.known_names().iter().filter(is_own) {
        if prompt.variable(name).is_none() && !prepared.provides(name) {
            let message = format!("the undeclared `{name}` has no value, so it is empty");
            report.lost("inputs", message).hint("declare it with a default value");
        }
    }
    if prepared.known_names().contains("system") {
        report.changed("text", "values of `system`, such as the date, stay as they are now");
    }
    let rendered = prepared.render(&Variables::new(), context)?;
    let messages = rendered.messages()?;
    match messages.as_slice() {
        [message] => {
            if !message.parts.iter().all(|part| matches!(part, Part::Text { .. })) {
                let message = format!("the prompt has pictures or files, but a {noun} is text");
                let found = Diagnostic::new(Code::CannotConvert, message).file(&prompt.source);
                return Err(Error::new(ErrorKind::PromptRead, found));
            }
            Ok(message.texts().collect())
        }
        [] => Ok(String::new()),
        messages => {
            let message = format!("the prompt is {} messages, but a {noun} is one text", messages.len());
            let found = Diagnostic::new(Code::CannotConvert, message).file(&prompt.source);
            Err(Error::new(ErrorKind::PromptRead, found.hint("convert a prompt with one message")))
        }
    }
}

/// An error if a text still looks like a template. Tags in a skill are text.
fn leftover(prepared: &Prepared, text: &str, to: Export) -> Result<()> {
    let Some(tag) = tag_in(text).filter(|_| *prepared.prompt().dialect != SKILL) else { return Ok(()) };
    let message = format!("the written {} still has a template tag: `{tag}`", to.noun());
    let hint = "the reader of the file would see it as text: remove it from the prompt";
    let found = Diagnostic::new(Code::LeftoverTag, message).file(&prepared.prompt().source).hint(hint);
    Err(Error::new(ErrorKind::PromptRead, found))
}

/// The first template tag of a text.
pub(crate) fn tag_in(text: &str) -> Option<&str> {
    let start = [text.find("{{"), text.find("{%")].into_iter().flatten().min()?;
    text[start..]
        .lines()
        .next()
        .map(|line| &line[..line.char_indices().nth(30).map_or(line.len(), |(at, _)| at)])
}

/// A name that the format of skills allows.
fn skill_name(name: &str) -> String {
    let letters = name.to_lowercase();
    let words = letters.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("-")
}

fn skill_front(prepared: &Prepared, name: &str) -> Result<Map<String, Json>> {
    let metadata = &prepared.prompt().metadata;
    let Some(description) = metadata.description.as_deref().map(str::trim).filter(|text| !text.is_empty())
    else {
        let message = "the prompt has no description, but agents choose a skill by it";
        let found = Diagnostic::new(Code::CannotConvert, message).file(&prepared.prompt().source);
        return Err(Error::new(
            ErrorKind::PromptRead,
            found.hint("describe when the prompt helps: `description`"),
        ));
    };
    let mut front = Map::new();
    front.insert("name".into(), json!(name));
    front.insert("description".into(), json!(description));
    front.insert("metadata".into(), json!({"version": metadata.version}));
    Ok(front)
}

/// The head of a file, with what it was made from.
fn head(to: Export, mut front: Map<String, Json>, origin: [(&str, String); 3]) -> String {
    match to {
        Export::Skill => {
            if let Some(Json::Object(metadata)) = front.get_mut("metadata") {
                metadata.extend(origin.map(|(key, value)| (format!("cuebook-{key}"), json!(value))));
            }
            format!("---\n{}---\n\n", yaml(&front))
        }
        Export::Prompt => {
            front.extend(origin.map(|(key, value)| (format!("cuebook.{key}"), json!(value))));
            format!("---\n{}---\n", yaml(&front))
        }
        Export::AgentsMd | Export::ClaudeMd => {
            let lines = origin.map(|(key, value)| format!("cuebook-{key}: {value}\n")).concat();
            format!("<!-- Written by `cuebook convert`. Change the source, not this file.\n{lines}-->\n\n")
        }
    }
}

/// The text of a prompt in Handlebars, and the front matter of its `.prompt` file.
fn handlebars(book: &Book, prepared: &Prepared, report: &mut Report) -> Result<(String, Map<String, Json>)> {
    let (config, defaults) = (book.library().config()?, book.library().defaults()?);
    let from = BuiltIn::of(prepared.prompt())?;
    let target = BuiltIn::Dotprompt;
    if from == target {
        let message = format!("`{}` is a .prompt file already", prepared.prompt().id);
        let found = Diagnostic::new(Code::CannotConvert, message).file(&prepared.prompt().source);
        return Err(Error::new(ErrorKind::PromptRead, found.hint("convert it to another dialect")));
    }
    let drafting = source::Drafting { prepared, from, target, config: &config, defaults: &defaults, report };
    let draft = drafting.draft()?;
    let pieces = draft.pieces().map_err(|stop| cannot(&draft, &stop, target))?;
    for (what, is_there) in [("tools", !draft.tools.is_empty()), ("outputs", !draft.outputs.is_empty())] {
        if is_there {
            report.lost(what, format!("the {what} are left out")).hint("write them into the .prompt file");
        }
    }
    let mut text = match &draft.role {
        Role::User => String::new(),
        role => format!("{{{{role \"{}\"}}}}", role.as_str()),
    };
    for (index, piece) in pieces.iter().enumerate() {
        match piece {
            Piece::Value { name, .. } => text.push_str(&format!("{{{{{name}}}}}")),
            Piece::Text(words) if words.contains("{{{") || words.contains("<<<dotprompt:") => {
                let message = "the text has `{{{` or `<<<dotprompt:`, but a .prompt file has no equivalent";
                let found = Diagnostic::new(Code::CannotConvert, message).file(&prepared.prompt().source);
                return Err(Error::new(ErrorKind::PromptRead, found.hint("write it in another way")));
            }
            Piece::Text(words) => {
                text.push_str(&words.replace("{{", "\\{{"));
                let before_value = matches!(pieces.get(index + 1), Some(Piece::Value { .. }));
                if before_value && words.ends_with('\\') {
                    text.push('\\');
                }
            }
        }
    }
    Ok((text, front_of(&draft)))
}

/// The front matter of a `.prompt` file, with its inputs in picoschema.
fn front_of(draft: &Draft) -> Map<String, Json> {
    let mut front = Map::new();
    if let Some(id) = draft.model.as_ref().and_then(|(model, _)| model.get("id")) {
        front.insert("model".into(), id.clone());
    }
    if let Some(description) = &draft.description {
        front.insert("description".into(), json!(description));
    }
    let (mut schema, mut values) = (Map::new(), Map::new());
    for input in draft.inputs.iter() {
        let optional = if input.need == Need::Required { "" } else { "?" };
        let described = input.description.as_deref().map(|text| text.replace([')', '\n'], " "));
        let detail = |kind: &str| match &described {
            Some(text) => format!("({kind}, {text})"),
            None => format!("({kind})"),
        };
        let plain = |kind: &str| match &described {
            Some(text) => format!("{kind}, {text}"),
            None => kind.to_owned(),
        };
        let name = &input.name;
        let (key, kind) = match input.kind {
            _ if !input.choices.is_empty() => {
                (format!("{name}{optional}{}", detail("enum")), Json::Array(input.choices.clone()))
            }
            Type::List => (format!("{name}{optional}{}", detail("array")), json!("any")),
            Type::String | Type::Integer | Type::Number | Type::Boolean => {
                (format!("{name}{optional}"), json!(plain(input.kind.as_str())))
            }
            _ => (format!("{name}{optional}"), json!(plain("any"))),
        };
        schema.insert(key, kind);
        if let Some(default) = &input.default {
            values.insert(name.clone(), default.clone());
        }
    }
    if !schema.is_empty() {
        let mut input = json!({"schema": schema});
        if !values.is_empty() {
            input["default"] = Json::Object(values);
        }
        front.insert("input".into(), input);
    }
    front
}
