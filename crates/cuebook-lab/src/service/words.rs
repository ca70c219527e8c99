//! Words of the notations that can be written at a cursor: keys, values, elements and attributes.

use std::path::Path;

use super::complete::{Completion, CompletionKind, plain};
use super::cursor::is_word;
use super::layout::{front_matter, xml};
use crate::dialect::directive::HOOK_EVENTS;
use crate::schema;

/// An element of a directive: its name, what it is, and its attributes.
type Element = (&'static str, &'static str, &'static [&'static str]);

const ELEMENTS: [Element; 24] = [
    ("directive", "The directive, with its name and version.", &["name", "version", "extends"]),
    ("metadata", "What the directive is, and what it may do.", &[]),
    ("description", "What the directive does.", &[]),
    ("category", "The folder of the file.", &[]),
    ("author", "Who wrote it.", &[]),
    ("model", "The model that follows the directive.", &["tier", "id", "provider", "fallback"]),
    (
        "limits",
        "How far a thread of the directive may go.",
        &["turns", "tokens", "spend", "spawns", "duration_seconds"],
    ),
    ("permissions", "What a thread may run, find, load and sign.", &[]),
    ("execute", "What a thread may run.", &[]),
    ("search", "What a thread may find.", &[]),
    ("load", "What a thread may read.", &[]),
    ("sign", "What a thread may sign.", &[]),
    ("tool", "The id of a tool, as in `team.report`; `team.*` is all of a folder.", &[]),
    ("knowledge", "The id of a piece of knowledge.", &[]),
    ("context", "Knowledge that the model is shown around the text.", &[]),
    ("hooks", "What happens at events of a thread.", &[]),
    ("hook", "What happens at one event.", &["event"]),
    ("inputs", "What the directive takes.", &[]),
    ("input", "One input; its text says what it is.", &["name", "type", "required", "default"]),
    ("outputs", "What the directive returns.", &[]),
    ("output", "One output; its text says what it is.", &["name", "type", "required"]),
    ("process", "The steps that the model is asked to take.", &[]),
    ("step", "One step.", &["name"]),
    ("success_criteria", "When the work is done.", &[]),
];

/// What attributes can be.
const VALUES: [(&str, &[&str]); 4] = [
    ("type", &["string", "integer", "number", "boolean", "array", "object", "any"]),
    ("required", &["true", "false"]),
    ("item_type", &["tool", "directive", "knowledge"]),
    ("event", &HOOK_EVENTS),
];

/// Where a key of a tree of sections can stand: in front matter, in the settings of a section, or below one of their keys.
const FRONT: &str = "front matter";
const SETTINGS: &str = "settings";

/// The keys of trees of sections: where they stand, their names, what they are, and the words that their values can be.
const SECTION_KEYS: [(&str, &str, &str, &[&str]); 33] = [
    (FRONT, "name", "The name of the prompt.", &[]),
    (FRONT, "description", "What the prompt is for.", &[]),
    (FRONT, "metadata", "Anything else that is worth knowing.", &[]),
    (FRONT, "inputs", "The variables, each with its kind.", &[]),
    (FRONT, "output", "What an answer has.", &[]),
    (FRONT, "model", "The model, and its options.", &[]),
    (FRONT, "ns", "The first part of the name of its overrides.", &[]),
    (FRONT, "key", "The second part of the name of its overrides.", &[]),
    (FRONT, "headings", "How headings are written.", &["plain", "numbered"]),
    (FRONT, "missing", "What a `$name` without a value does.", &["error", "keep"]),
    (FRONT, "engine", "The template language.", &["dollar", "jinja2", "mustache"]),
    (FRONT, "kind", "The kind of the file.", &["prompt"]),
    (SETTINGS, "key", "The section's part of the path.", &[]),
    (SETTINGS, "summary", "The text of the summarized section.", &[]),
    (SETTINGS, "visibility", "How much of it shows, or a condition.", &["full", "summary"]),
    (SETTINGS, "enabled", "Whether it is there, or a condition.", &["true", "false"]),
    (SETTINGS, "tools", "Tools that the section brings.", &[]),
    (SETTINGS, "skills", "Skills that the section brings.", &[]),
    (SETTINGS, "engine", "The template language of the section.", &["dollar", "jinja2", "mustache"]),
    (SETTINGS, "type", "A section type that the program registers.", &[]),
    (SETTINGS, "priority", "A number; the lowest is reduced first.", &[]),
    (SETTINGS, "accepts_overrides", "Whether overrides can change it.", &["true", "false"]),
    (SETTINGS, "task_examples", "A list of task examples instead of a text.", &[]),
    (SETTINGS, "task_example", "One task example, named by the heading.", &[]),
    ("tools", "name", "The name of the tool.", &[]),
    ("tools", "description", "What the tool does.", &[]),
    ("tools", "parameters", "What the tool takes.", &[]),
    ("tools", "examples", "Examples of calls.", &[]),
    ("tools", "accepts_overrides", "Whether overrides can change it.", &["true", "false"]),
    ("task_examples", "objective", "The task.", &[]),
    ("task_examples", "steps", "The calls that solve it.", &[]),
    ("task_examples", "outcome", "The result.", &[]),
    ("steps", "tool", "The tool that is called.", &[]),
];

/// The names that `prompt.py` can define, and the keys of their dictionaries.
const PYTHON: [(&str, &[&str]); 5] = [
    ("METADATA", &["id", "name", "version", "type", "extends", "template", "description", "author", "tags"]),
    ("VARIABLES", &["required", "optional", "custom", "name", "type", "description", "default", "source"]),
    ("PERMISSIONS", &["read_file", "http_request", "llm_call", "session_state"]),
    ("LIMITS", &["max_output_size", "max_execution_time"]),
    ("TEMPLATE", &[]),
];

/// The keys around a line of YAML, the outermost first.
pub(super) fn key_path(text: &str, offset: usize) -> Vec<String> {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let mut indent = text[start..offset].len().min(indent_of(&text[start..]));
    let mut path = Vec::new();
    for line in text[..start].lines().rev() {
        let here = indent_of(line);
        if line.trim() == "---" {
            break;
        }
        if line.trim().is_empty() || here >= indent {
            continue;
        }
        let Some((key, _)) = line.trim_start_matches([' ', '-']).split_once(':') else { continue };
        path.insert(0, key.trim().to_owned());
        indent = here;
    }
    path
}

/// Keys and values of a tree of sections; `None` if a byte is neither in front matter nor in settings. Tools have these names.
pub(super) fn section_words(text: &str, offset: usize, tools: &[String]) -> Option<Vec<Completion>> {
    let front = front_matter(text).filter(|front| (front.start..=front.end).contains(&offset));
    let (place, start) = match front {
        Some(front) => (FRONT, front.start),
        None => {
            let start = text[..offset].rfind("```yaml section\n")? + "```yaml section\n".len();
            (SETTINGS, text[start..offset].find("```").is_none().then_some(start)?)
        }
    };
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    let path = key_path(&text[start..], offset - start);
    if place == FRONT && path.first().is_some_and(|key| matches!(key.as_str(), "inputs" | "output" | "model"))
    {
        return Some(front_matter_words(text, offset));
    }
    let place = path.last().map_or(place, String::as_str);
    let here = || SECTION_KEYS.iter().filter(move |(known, ..)| *known == place);
    let written = line.trim_start_matches([' ', '-', '{']);
    let Some((key, value)) = written.split_once(':') else {
        let fitting = here().filter(|(_, key, ..)| key.starts_with(written));
        let key = |(_, key, about, _): &(&str, &str, &str, &[&str])| Completion {
            documentation: (*about).to_owned(),
            ..plain(key, CompletionKind::Key, "key")
        };
        return Some(fitting.map(key).collect());
    };
    let (key, value) = (key.trim(), value.trim());
    let words = here().filter(|(_, known, ..)| *known == key).flat_map(|(.., words)| words.iter().copied());
    let tools = tools.iter().map(String::as_str).filter(|_| key == "tool");
    let fitting = words.chain(tools).filter(|word| word.starts_with(value));
    Some(fitting.map(|word| plain(word, CompletionKind::Value, "")).collect())
}

/// What a key of a tree of sections is, in front matter or in settings.
pub(super) fn section_key(text: &str, word: &std::ops::Range<usize>) -> Option<String> {
    let key = text.get(word.clone()).filter(|_| text[word.end..].starts_with(':'))?;
    let line = text[..word.start].rsplit('\n').next().unwrap_or_default();
    if !line.chars().all(|letter| matches!(letter, ' ' | '-' | '{')) {
        return None;
    }
    let found = section_words(text, word.end, &[])?.into_iter().find(|one| one.label == key)?;
    Some(format!("**{key}**\n\n{}", found.documentation))
}

/// What an element of a directive is.
pub(super) fn element(text: &str, word: &std::ops::Range<usize>) -> Option<String> {
    let opens = text[..word.start].trim_end_matches('/').ends_with('<');
    let (name, about, attributes) = ELEMENTS
        .iter()
        .find(|(name, ..)| opens && xml(text).contains(&word.start) && *name == &text[word.clone()])?;
    let attributes: Vec<String> = attributes.iter().map(|name| format!("`{name}`")).collect();
    let list = if attributes.is_empty() {
        String::new()
    } else {
        format!("\n\nAttributes: {}.", attributes.join(", "))
    };
    Some(format!("**<{name}>**\n\n{about}{list}"))
}

/// Keys and values of front matter.
pub(super) fn front_matter_words(text: &str, offset: usize) -> Vec<Completion> {
    yaml_words(&schema::schema("prompty").unwrap_or_default(), text, offset)
}

/// Keys and values of YAML that a schema describes.
fn yaml_words(schema: &serde_json::Value, text: &str, offset: usize) -> Vec<Completion> {
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    let written = line.trim_start_matches([' ', '-']);
    let mut path = key_path(text, offset);
    match written.split_once(':') {
        Some((key, value)) => {
            path.push(key.trim().to_owned());
            let Some(level) = schema::at(schema, &path) else { return Vec::new() };
            let value = value.trim();
            let words = schema::words(schema, level).into_iter().filter(|word| word.starts_with(value));
            words.map(|word| plain(&word, CompletionKind::Value, "")).collect()
        }
        None => match schema::at(schema, &path) {
            Some(level) => from_schema(schema, level, written),
            None => Vec::new(),
        },
    }
}

pub(super) fn from_schema(
    root: &serde_json::Value,
    level: &serde_json::Value,
    typed: &str,
) -> Vec<Completion> {
    let keys = schema::keys(root, level).into_iter().filter(|(key, _)| key.starts_with(typed));
    keys.map(|(key, about)| Completion { documentation: about, ..plain(&key, CompletionKind::Key, "key") })
        .collect()
}

/// Keys of `pack.json`, `cuebook.toml` and files of providers.
pub(super) fn settings_keys(path: &Path, text: &str, offset: usize) -> Vec<Completion> {
    let offset = super::cursor::floor(text, offset);
    let Some(schema) = schema::of_file(path) else { return Vec::new() };
    if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
        return yaml_words(&schema, text, offset);
    }
    let line = text[..offset].rsplit('\n').next().unwrap_or_default().trim_start();
    let is_toml = path.extension().is_some_and(|end| end == "toml");
    if is_toml && line.starts_with('[') {
        return from_schema(&schema, &schema, line.trim_start_matches('['));
    }
    let typed = line.trim_start_matches(['"', '{', ',']);
    if !typed.chars().all(is_word) {
        return Vec::new();
    }
    let table =
        text[..offset].lines().rev().find_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    let path: Vec<String> = table.filter(|_| is_toml).into_iter().map(str::to_owned).collect();
    schema::at(&schema, &path).map(|level| from_schema(&schema, level, typed)).unwrap_or_default()
}

/// Names and keys of `prompt.py`.
pub(super) fn python(text: &str, offset: usize) -> Vec<Completion> {
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    if line.chars().all(is_word) {
        let names = PYTHON.iter().map(|(name, _)| *name).chain(["pre_render", "post_render"]);
        let names = names.filter(|name| name.starts_with(line));
        return names.map(|name| plain(name, CompletionKind::Variable, "of a prompt")).collect();
    }
    let typed = line.rsplit(['"', '\'']).next().unwrap_or_default();
    let is_open = line.matches(['"', '\'']).count() % 2 == 1 && typed.chars().all(is_word);
    let owner = text[..offset].lines().rev().find_map(|line| {
        PYTHON
            .iter()
            .find(|(name, _)| line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('=')))
    });
    let keys = owner.into_iter().filter(|_| is_open).flat_map(|(_, keys)| keys.iter());
    keys.filter(|key| key.starts_with(typed)).map(|key| plain(key, CompletionKind::Key, "key")).collect()
}

/// Elements and attributes of a directive's XML; `None` elsewhere.
pub(super) fn elements(text: &str, offset: usize) -> Option<Vec<Completion>> {
    let block = xml(text);
    if block.is_empty() || !(block.start..=block.end).contains(&offset) {
        return None;
    }
    let before = &text[block.start..offset];
    let start = before.rfind('<').filter(|start| !before[*start..].contains('>'))?;
    let inside = &before[start + 1..];
    let mut words = inside.trim_start_matches('/').splitn(2, char::is_whitespace);
    let element = words.next().unwrap_or_default();
    let Some(rest) = words.next() else {
        let fitting = ELEMENTS.iter().filter(|(name, ..)| name.starts_with(element));
        let element = |(name, about, _): &Element| Completion {
            documentation: (*about).to_owned(),
            ..plain(name, CompletionKind::Element, "element")
        };
        return Some(fitting.map(element).collect());
    };
    if rest.matches('"').count() % 2 == 1 {
        let (lead, typed) = rest.rsplit_once('"').unwrap_or_default();
        let attribute = lead.trim_end_matches('=').rsplit(char::is_whitespace).next().unwrap_or_default();
        let values =
            VALUES.iter().find(|(name, _)| *name == attribute).map_or(&[][..], |(_, values)| *values);
        let fitting = values.iter().filter(|value| value.starts_with(typed));
        return Some(fitting.map(|value| plain(value, CompletionKind::Value, "")).collect());
    }
    let typed = rest.rsplit(char::is_whitespace).next().unwrap_or_default();
    let attributes =
        ELEMENTS.iter().find(|(name, ..)| *name == element).map_or(&[][..], |(.., attributes)| *attributes);
    let fitting =
        attributes.iter().filter(|name| name.starts_with(typed) && !rest.contains(&format!("{name}=")));
    Some(fitting.map(|name| plain(name, CompletionKind::Key, "attribute")).collect())
}
