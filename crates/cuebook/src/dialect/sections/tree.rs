//! From headings to sections.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::SectionsReader;
use super::scan::{Part, scan};
use super::{Front, INPUTS, condition, key_of, not_a_map};
use crate::error::{Code, Diagnostic, ErrorKind, did_you_mean, nearest};
use crate::json::quoted;
use crate::node::{Data, Node};
use crate::prompt::{Record, Visibility};
use crate::sections::{Body, ParamsType, Section, Selector};
use crate::source::{Place, Source};
use crate::template::jinja::names::Names;
use crate::yaml;

const KEYS: [&str; 12] = [
    "key",
    "summary",
    "visibility",
    "enabled",
    "tools",
    "skills",
    "engine",
    "type",
    "priority",
    "accepts_overrides",
    "task_examples",
    "task_example",
];

/// What `task_example` holds.
const EXAMPLE_KEYS: [&str; 3] = ["objective", "steps", "outcome"];

/// What is gathered on the way.
struct TreeReader<'r> {
    source: &'r Arc<Source>,
    front: &'r Front,
    reader: &'r mut SectionsReader,
    conditions: &'r mut Vec<(Place, Names)>,
    engines: &'r mut Vec<(String, Place)>,
    params: Arc<ParamsType>,
    /// Every tool, and where it is named.
    tools: HashMap<String, Place>,
}

/// Reads the tree that stands in a part of a file.
pub(super) fn read(
    source: &Arc<Source>,
    range: Range<usize>,
    front: &Front,
    reader: &mut SectionsReader,
    conditions: &mut Vec<(Place, Names)>,
    engines: &mut Vec<(String, Place)>,
) -> Vec<Section> {
    let found = scan(source.text(), range.clone());
    if !found.before.is_empty() {
        let line = source.text()[found.before.clone()].lines().next().unwrap_or_default();
        let place = source.place(found.before.start..found.before.start + line.len());
        let message = "the text before the first heading belongs to no section";
        reader.wrong(&place, message, "add a heading above it, as in `# Introduction`");
    } else if found.parts.is_empty() {
        let message = "the file has no sections, because it has no headings";
        reader.wrong(&source.place(range.end..range.end), message, "write `# Title`, with the text below it");
    }
    if let Some(opened) = &found.unclosed {
        let message = "this block is not closed, so the headings after it are text";
        reader.wrong(&source.place(opened.clone()), message, "close it on a separate line");
    }
    for opened in &found.misplaced {
        let message = "a section's settings must be directly below its heading, and only once";
        reader.wrong(&source.place(opened.clone()), message, "move the block up, or change its language");
    }
    let record = Arc::new(Record::from_properties(INPUTS, &front.inputs));
    // `check` reports undeclared names, as in every other notation.
    let params = Arc::new(ParamsType {
        name: INPUTS.to_owned(),
        record,
        open: true,
        fences: front.fences.iter().cloned().collect(),
    });
    let mut making = TreeReader { source, front, reader, conditions, engines, params, tools: HashMap::new() };
    let mut parts = found.parts.into_iter().peekable();
    making.below(&mut parts, 0)
}

type Parts = std::iter::Peekable<std::vec::IntoIter<Part>>;

impl TreeReader<'_> {
    /// The sections directly below one of this level.
    fn below(&mut self, parts: &mut Parts, level: usize) -> Vec<Section> {
        let mut sections: Vec<Section> = Vec::new();
        let mut keys: HashMap<String, Place> = HashMap::new();
        while let Some(part) = parts.next_if(|part| part.level > level) {
            if part.level > level + 1 {
                let marks = "#".repeat(level + 1);
                let message = match level {
                    0 => format!("the first heading must have one `#`, but has {}", part.level),
                    _ => format!(
                        "this heading skips a level: it has {} marks below one with {level}",
                        part.level
                    ),
                };
                self.reader.wrong(
                    &self.source.place(part.marks.clone()),
                    message,
                    format!("write `{marks} {}`", &self.source.text()[part.title.clone()]),
                );
            }
            let below = part.level;
            let section = self.section(part);
            let children = self.below(parts, below);
            let Some(mut section) = section else { continue };
            section.children.extend(children);
            self.lists_examples(&mut section);
            let place = section.place.clone().unwrap_or_else(|| self.source.place(0..0));
            match keys.get(&section.key) {
                Some(first) => {
                    let message = format!("duplicate section key {}", quoted(&section.key));
                    let diagnostic = Diagnostic::new(Code::BadSection, message)
                        .at(place)
                        .label("second one here")
                        .related(first.clone(), "first one here")
                        .hint("add another key to one of them: a block ```yaml section with `key: …`");
                    self.reader.fault(diagnostic, "invalid_definition");
                }
                None => drop(keys.insert(section.key.clone(), place)),
            }
            sections.push(section);
        }
        sections
    }

    fn section(&mut self, part: Part) -> Option<Section> {
        let title = self.source.text()[part.title.clone()].to_owned();
        let place = match part.title.is_empty() {
            true => self.source.place(part.marks.clone()),
            false => self.source.place(part.title.clone()),
        };
        if title.is_empty() {
            self.reader.wrong(&place, "the heading has no title", "write a title after it");
        }
        let written = part.body.clone();
        let text = Source::inside(self.source, part.body);
        let body = Body::Template { text, engine: self.front.engine.clone() };
        let mut section = Section::with_body(key_of(&title), title.clone(), body);
        section.params = Some(self.params.clone());
        (section.title_place, section.place) = (Some(place.clone()), Some(place.clone()));
        let faults_before = self.settings(part.settings, &mut section);
        if !matches!(section.body, Body::Template { .. }) && !written.is_empty() {
            let message = "a section of task examples cannot have text";
            let hint = "move the text into a section before it, and the task into `objective`";
            let place = self.first_line(written);
            self.reader.wrong(&place, message, hint);
        }
        if section.key.is_empty() && !title.is_empty() && !faults_before {
            let message = format!("the title {} cannot become a key", quoted(&title));
            let hint = "add a key: a block ```yaml section below the heading with `key: …`";
            self.reader.wrong(&place, message, hint);
        }
        (!section.key.is_empty()).then_some(section)
    }

    /// Reads the settings of a section; whether its key is among what is wrong.
    fn settings(&mut self, range: Option<Range<usize>>, section: &mut Section) -> bool {
        let Some(range) = range else { return false };
        let document = yaml::Document::parse(self.source, range, Code::BadSection, ErrorKind::PromptRead);
        let root = match document {
            Ok(document) => document.into_root(),
            Err(error) => {
                for diagnostic in error.into_diagnostics() {
                    self.reader.fault(diagnostic, "invalid_definition");
                }
                return true;
            }
        };
        let entries = match &root.data {
            Data::Map(entries) => entries,
            Data::Null => return false,
            _ => {
                self.reader.fault(
                    not_a_map(&root, Code::BadSection, "the settings of a section"),
                    "invalid_definition",
                );
                return true;
            }
        };
        let mut wrong_key = false;
        for (key, node) in entries {
            match key.name.as_str() {
                "key" => match self.reader.key_text(node, "`key`") {
                    Some(key) => section.key = key,
                    None => wrong_key = true,
                },
                "summary" => {
                    if let Some(text) = self.reader.text(node, "`summary`") {
                        section.summary = Some(inside(node, &text, &section.key));
                    }
                }
                "visibility" => {
                    section.visibility = self.visibility(node);
                    section.visibility_place = Some(node.place.clone());
                }
                "enabled" => {
                    section.enabled = self.enabled(node);
                    section.enabled_place = Some(node.place.clone());
                    section.enabled_if = node.text().map(str::to_owned);
                }
                "tools" => section.tools = self.reader.section_tools(node, &mut self.tools),
                "skills" => section.skills = self.reader.skills(node),
                name @ ("engine" | "type") => {
                    if let Some(named) = self.reader.text(node, &format!("`{name}`")) {
                        self.engines.push((named.clone(), node.place.clone()));
                        if let Body::Template { engine, .. } = &mut section.body {
                            *engine = named;
                        }
                    }
                }
                "task_examples" => {
                    section.children = self.reader.task_examples(node);
                    section.body = Body::TaskExamples;
                }
                "task_example" => {
                    let example =
                        self.reader.task_example(node, "task_example", Some(&section.title), &EXAMPLE_KEYS);
                    // One that could not be read has been reported, and keeps its place.
                    section.body = example.map_or(Body::TaskExamples, Body::TaskExample);
                }
                "priority" => {
                    if let Some(number) = self.reader.number(node, "`priority`") {
                        match number.as_i64() {
                            Some(priority) => section.priority = priority,
                            None => {
                                self.reader.mismatch(node, "`priority`", "a whole number", "write 10, or -1")
                            }
                        }
                    }
                }
                "accepts_overrides" => {
                    section.accepts_overrides = self.reader.flag(node, "`accepts_overrides`").unwrap_or(true);
                }
                _ => self.reader.extra("the section", key, &KEYS),
            }
        }
        self.contradictions(&root, section);
        wrong_key
    }

    /// Settings that mean nothing beside each other.
    fn contradictions(&mut self, root: &Node, section: &Section) {
        if let (Some(_), Some(second)) = (root.get("task_examples"), root.get("task_example")) {
            let message = "a section cannot both list task examples and be one";
            self.reader.wrong(&second.opening(), message, "remove either `task_examples` or `task_example`");
        }
        if let Some(engine) = root.get("engine").filter(|engine| !engine.is_null())
            && !matches!(section.body, Body::Template { .. })
        {
            let message = "a task example has no text, so its engine is unused";
            self.reader.strange(&engine.place, message, "remove it");
        }
    }

    /// The first line of a part of the file.
    fn first_line(&self, range: Range<usize>) -> Place {
        let line = self.source.text()[range.clone()].lines().next().unwrap_or_default();
        self.source.place(range.start..range.start + line.len())
    }

    /// Makes a section under which examples of tasks stand one that lists them.
    fn lists_examples(&mut self, section: &mut Section) {
        let is_example = |section: &Section| matches!(section.body, Body::TaskExample(_));
        let Some(first) = section.children.iter().find(|child| is_example(child)) else { return };
        let Body::Template { text, .. } = &section.body else { return };
        if text.text().trim().is_empty() {
            section.body = Body::TaskExamples;
            return;
        }
        let place = first.place.clone().unwrap_or_else(|| self.source.place(0..0));
        let message = "task examples need their own section, without text";
        let hint = "add a heading such as `# Examples` above them, or list them under `task_examples`";
        self.reader.wrong(&place, message, hint);
    }

    fn visibility(&mut self, node: &Node) -> Selector<Visibility> {
        let full = Selector::Always(Visibility::Full);
        let Some(text) = self.reader.text(node, "`visibility`") else { return full };
        if let Some(visibility) = Visibility::named(text.trim()) {
            return Selector::Always(visibility);
        }
        // A misspelt word is a name that nothing fills, and only a render would find it.
        let near = nearest(text.trim(), [Visibility::Full.as_str(), Visibility::Summary.as_str()]);
        if is_word(text.trim()) && !near.is_empty() && !self.is_input(&text) {
            let hint = did_you_mean(&near).unwrap_or_default();
            self.reader.mismatch(node, "`visibility`", "`full`, `summary` or a condition", hint);
            return full;
        }
        match condition::visibility(node, &text) {
            Ok((selector, condition)) => {
                self.keep(&condition);
                selector
            }
            Err(diagnostic) => {
                self.reader.fault(*diagnostic, "invalid_definition");
                full
            }
        }
    }

    fn enabled(&mut self, node: &Node) -> Selector<bool> {
        let text = match &node.data {
            Data::Bool(enabled) => return Selector::Always(*enabled),
            Data::Null => return Selector::Always(true),
            Data::Text(text) => text,
            _ => {
                let hint = "write true, false, or a condition such as `audience == \"expert\"`";
                self.reader.mismatch(node, "`enabled`", "true, false or a condition", hint);
                return Selector::Always(true);
            }
        };
        // In older YAML these words are booleans. Here they would be names that nothing fills, and the section would be gone.
        let meant = match text.trim().to_lowercase().as_str() {
            "yes" | "y" | "on" => Some("true"),
            "no" | "n" | "off" => Some("false"),
            _ => None,
        };
        if let Some(meant) = meant.filter(|_| !self.is_input(text)) {
            let hint = format!("write `enabled: {meant}`");
            self.reader.mismatch(node, "`enabled`", "true, false or a condition", hint);
            return Selector::Always(true);
        }
        match condition::enabled(node, text) {
            Ok((selector, condition)) => {
                self.keep(&condition);
                selector
            }
            Err(diagnostic) => {
                self.reader.fault(*diagnostic, "invalid_definition");
                Selector::Always(true)
            }
        }
    }

    fn is_input(&self, name: &str) -> bool {
        self.front.inputs.iter().any(|input| input.name == name.trim())
    }

    fn keep(&mut self, condition: &condition::Condition) {
        self.conditions.push((condition.place.clone(), condition.names.clone()));
    }
}

/// Whether a text is one word, which cannot be more than a name.
fn is_word(text: &str) -> bool {
    text.chars().all(|character| character.is_alphanumeric() || character == '_')
}

/// A text of the settings as a source. Where it stands in the file as it is, its places are places of the file.
fn inside(node: &Node, text: &str, key: &str) -> Arc<Source> {
    let file = node.place.source();
    let range = node.place.range();
    match file.text()[range.clone()].find(text).filter(|_| !text.is_empty()) {
        Some(at) => Source::inside(file, range.start + at..range.start + at + text.len()),
        None => Source::verbatim(format!("{} (the summary of {key})", file.name()), text),
    }
}
