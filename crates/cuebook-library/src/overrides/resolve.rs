//! Which overrides still fit the prompt that they are for.

use std::collections::{HashMap, HashSet};
use std::fmt;

use indexmap::IndexMap;

use super::descriptor::{Descriptor, TaskExampleEntry, ToolEntry};
use super::entry::{
    Overrides, SectionOverride, TaskExampleChange, TaskExampleOverride, ToolExampleChange, ToolOverride,
};
use crate::error::{Code, Diagnostic, Hint, did_you_mean, nearest};
use crate::json::quoted;
use crate::source::Place;

/// So many overrides that were left out are reported one by one.
const MAX_REPORTED: usize = 50;

/// The overrides that fit, and word of those that do not.
#[derive(Debug, Clone, Default)]
pub struct Resolved {
    /// Those of sections, by path.
    pub sections: IndexMap<Vec<String>, SectionOverride>,
    /// Those of tools, by name.
    pub tools: IndexMap<String, ToolOverride>,
    /// Those of examples of tasks, with the index that each example has now.
    pub task_examples: Vec<TaskExampleOverride>,
    /// Those that were left out.
    pub stale: Vec<Stale>,
}

impl Resolved {
    /// Whether nothing is overridden.
    pub fn is_empty(&self) -> bool {
        self.sections.is_empty() && self.tools.is_empty() && self.task_examples.is_empty()
    }

    /// The report about those that were left out: the first ones one by one, and how many more there are. A file can hold
    /// tens of thousands of them, and every excerpt costs the length of its line.
    pub fn stale_findings(&self) -> Vec<Diagnostic> {
        let mut findings: Vec<Diagnostic> =
            self.stale.iter().take(MAX_REPORTED).map(Stale::diagnostic).collect();
        if let Some(next) = self.stale.get(MAX_REPORTED) {
            let more = self.stale.len() - MAX_REPORTED;
            let message = match more {
                1 => "one more override is stale".to_owned(),
                more => format!("{more} more overrides are stale"),
            };
            let diagnostic = Diagnostic::new(Code::StaleOverride, message).hint(
                Hint::command_line(
                    "if the whole prompt has changed, delete the file and create it again with cuebook overrides \
                     seed",
                )
                .for_programs("if the whole prompt has changed, delete the file and create it again"),
            );
            findings.push(match &next.place {
                Some(place) => diagnostic.file(place.file()),
                None => diagnostic,
            });
        }
        findings
    }

    /// The override of the example of a task at this path.
    pub fn task_example(&self, path: &[String]) -> Option<&TaskExampleOverride> {
        let is_append = |by: &TaskExampleOverride| matches!(by.change, TaskExampleChange::Append { .. });
        self.task_examples.iter().find(|by| by.path == path && !is_append(by))
    }

    /// The overrides of the examples that the section at this path lists, those that add an example included.
    pub fn task_examples_of<'r>(
        &'r self,
        section: &'r [String],
    ) -> impl Iterator<Item = &'r TaskExampleOverride> {
        self.task_examples.iter().filter(move |by| match by.change {
            TaskExampleChange::Append { .. } => by.path == section,
            _ => by.path.split_last().is_some_and(|(_, parent)| parent == section),
        })
    }
}

/// An override that was left out, because its original is another one now or is gone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Stale {
    /// What it is about.
    pub what: Target,
    /// The hash of the original that it was made for; `None` for something that is added.
    pub expected: Option<String>,
    /// The hash of the original that there is now; `None` if it is missing.
    pub found: Option<String>,
    /// Where it stands in its file.
    pub place: Option<Place>,
    /// Names that are spelt alike, if there is no original.
    pub nearest: Vec<String>,
}

/// What an override is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A section, by its path.
    Section(Vec<String>),
    /// A tool, by its name.
    Tool(String),
    /// An example of a tool.
    ToolExample {
        /// The name of the tool.
        tool: String,
        /// The number of the example, from 0.
        index: usize,
    },
    /// An example of a task, by its path.
    TaskExample(Vec<String>),
    /// The examples of tasks that a section lists, by the path of the section.
    TaskExamples(Vec<String>),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Section(path) => write!(f, "the section {}", quoted(&path.join("/"))),
            Target::Tool(name) => write!(f, "the tool {}", quoted(name)),
            Target::ToolExample { tool, index } => write!(f, "example {index} of the tool {}", quoted(tool)),
            Target::TaskExample(path) => write!(f, "the task example {}", quoted(&path.join("/"))),
            Target::TaskExamples(path) => write!(f, "the task examples of {}", quoted(&path.join("/"))),
        }
    }
}

impl Stale {
    /// The finding that says so.
    pub fn diagnostic(&self) -> Diagnostic {
        let what = &self.what;
        let (message, label, hint) = match &self.found {
            Some(found) => (
                format!("the override of {what} is stale: the original has changed since"),
                "ignored",
                format!("compare both texts; if the override is still right, set its hash to {found}"),
            ),
            None => (
                format!("the override of {what} has no original, or the original cannot be overridden"),
                "ignored",
                did_you_mean(&self.nearest)
                    .unwrap_or_else(|| "remove the entry, or move it to the new name".into()),
            ),
        };
        let mut diagnostic = Diagnostic::new(Code::StaleOverride, message).hint(hint);
        if let Some(place) = &self.place {
            diagnostic = diagnostic.at(place.clone()).label(label);
        }
        diagnostic
    }
}

/// Parts overrides into those that fit and those that do not.
pub(super) fn fit(overrides: &Overrides, descriptor: &Descriptor) -> Resolved {
    let mut resolved = Resolved::default();
    fit_sections(overrides, descriptor, &mut resolved);
    fit_tools(overrides, descriptor, &mut resolved);
    fit_task_examples(overrides, descriptor, &mut resolved);
    resolved
}

/// Names are compared for so many lost overrides only: each of them looks at every name.
const MAX_NEAREST: usize = 20;

fn fit_sections(overrides: &Overrides, descriptor: &Descriptor, resolved: &mut Resolved) {
    if overrides.sections.is_empty() {
        return;
    }
    let known: HashMap<&[String], &str> = descriptor
        .sections
        .iter()
        .map(|section| (section.path.as_slice(), section.content_hash.as_str()))
        .collect();
    for section in &overrides.sections {
        let found = known.get(section.path.as_slice()).copied();
        if found == Some(section.expected_hash.as_str()) {
            resolved.sections.insert(section.path.clone(), section.clone());
            continue;
        }
        let near = || near_paths(&section.path, descriptor.sections.iter().map(|entry| &entry.path));
        resolved.stale.push(Stale {
            what: Target::Section(section.path.clone()),
            expected: Some(section.expected_hash.clone()),
            found: found.map(str::to_owned),
            place: section.place.clone(),
            nearest: if found.is_none() && resolved.stale.len() < MAX_NEAREST { near() } else { Vec::new() },
        });
    }
}

fn fit_tools(overrides: &Overrides, descriptor: &Descriptor, resolved: &mut Resolved) {
    if overrides.tools.is_empty() {
        return;
    }
    let known: HashMap<&str, &ToolEntry> =
        descriptor.tools.iter().map(|tool| (tool.name.as_str(), tool)).collect();
    for tool in &overrides.tools {
        let entry = known.get(tool.name.as_str()).copied();
        if let Some(entry) = entry.filter(|entry| entry.contract_hash == tool.expected_contract_hash) {
            let mut tool = tool.clone();
            tool.examples.retain(|example| {
                let (ToolExampleChange::Modify { index, expected_hash, .. }
                | ToolExampleChange::Remove { index, expected_hash }) = &example.change
                else {
                    return true;
                };
                let found = entry.example_hashes.get(*index);
                if found == Some(expected_hash) {
                    return true;
                }
                resolved.stale.push(Stale {
                    what: Target::ToolExample { tool: tool.name.clone(), index: *index },
                    expected: Some(expected_hash.clone()),
                    found: found.cloned(),
                    place: example.place.clone(),
                    nearest: Vec::new(),
                });
                false
            });
            resolved.tools.insert(tool.name.clone(), tool);
            continue;
        }
        let near = || nearest(&tool.name, known.keys().copied());
        resolved.stale.push(Stale {
            what: Target::Tool(tool.name.clone()),
            expected: Some(tool.expected_contract_hash.clone()),
            found: entry.map(|entry| entry.contract_hash.clone()),
            place: tool.place.clone(),
            nearest: if entry.is_none() && resolved.stale.len() < MAX_NEAREST { near() } else { Vec::new() },
        });
    }
}

fn fit_task_examples(overrides: &Overrides, descriptor: &Descriptor, resolved: &mut Resolved) {
    if overrides.task_examples.is_empty() {
        return;
    }
    let known: HashMap<&[String], &TaskExampleEntry> =
        descriptor.task_examples.iter().map(|entry| (entry.path.as_slice(), entry)).collect();
    let lists: HashSet<&[String]> =
        known.keys().filter_map(|path| path.split_last().map(|(_, parent)| parent)).collect();
    for example in &overrides.task_examples {
        let mut example = example.clone();
        let entry = known.get(example.path.as_slice()).copied();
        let (what, expected, found) = match &mut example.change {
            TaskExampleChange::Append { .. } => {
                if lists.contains(example.path.as_slice()) {
                    resolved.task_examples.push(example);
                    continue;
                }
                (Target::TaskExamples(example.path), None, None)
            }
            TaskExampleChange::Modify { index, expected_hash, .. }
            | TaskExampleChange::Remove { index, expected_hash } => {
                let found = entry.map(|entry| entry.hash.clone());
                if let Some(entry) = entry.filter(|entry| entry.hash == *expected_hash) {
                    // The path and the hash prove that it is the same example, wherever it stands by now.
                    *index = entry.index;
                    resolved.task_examples.push(example);
                    continue;
                }
                (Target::TaskExample(example.path), Some(expected_hash.clone()), found)
            }
        };
        let near = match &what {
            Target::TaskExample(path) if found.is_none() && resolved.stale.len() < MAX_NEAREST => {
                near_paths(path, descriptor.task_examples.iter().map(|entry| &entry.path))
            }
            _ => Vec::new(),
        };
        resolved.stale.push(Stale { what, expected, found, place: example.place, nearest: near });
    }
}

fn near_paths<'p>(path: &[String], known: impl Iterator<Item = &'p Vec<String>>) -> Vec<String> {
    let known: Vec<String> = known.map(|path| path.join("/")).collect();
    nearest(&path.join("/"), known.iter().map(String::as_str))
}
