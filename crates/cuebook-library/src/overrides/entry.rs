//! The overrides themselves: what a file holds, whether or not it still fits.
//!
//! An override names its original by path or name, and says by hash which original it was made for. Indexes always count
//! the *original* list, from 0: what one override removes does not move what another one changes.

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::prompt::Visibility;
use crate::source::Place;

/// All overrides of a prompt under one tag.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// The namespace of the prompt.
    pub ns: String,
    /// The key of the prompt.
    pub key: String,
    /// The tag.
    pub tag: String,
    /// Those of sections. No path stands twice.
    pub sections: Vec<SectionOverride>,
    /// Those of tools. No name stands twice.
    pub tools: Vec<ToolOverride>,
    /// Those of examples of tasks.
    pub task_examples: Vec<TaskExampleOverride>,
}

/// One override, of whatever kind.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Override {
    /// Of a section.
    Section(SectionOverride),
    /// Of a tool.
    Tool(ToolOverride),
    /// Of an example of a task.
    TaskExample(TaskExampleOverride),
}

impl From<SectionOverride> for Override {
    fn from(section: SectionOverride) -> Override {
        Override::Section(section)
    }
}

impl From<ToolOverride> for Override {
    fn from(tool: ToolOverride) -> Override {
        Override::Tool(tool)
    }
}

impl From<TaskExampleOverride> for Override {
    fn from(example: TaskExampleOverride) -> Override {
        Override::TaskExample(example)
    }
}

/// Other words for a section. What is `None` stays as the author wrote it; not everything can be.
#[derive(Debug, Clone, Default)]
pub struct SectionOverride {
    /// The keys from the root to the section.
    pub path: Vec<String>,
    /// The hash of the template that it was made for.
    pub expected_hash: String,
    /// The template to use instead.
    pub body: Option<String>,
    /// The summary to use instead.
    pub summary: Option<String>,
    /// How much of the section is shown.
    pub visibility: Option<Visibility>,
    /// Where its entry stands in its file.
    pub place: Option<Place>,
}

/// Other words for a tool.
#[derive(Debug, Clone, Default)]
pub struct ToolOverride {
    /// The name of the tool.
    pub name: String,
    /// The hash of the contract that it was made for.
    pub expected_contract_hash: String,
    /// The description to use instead.
    pub description: Option<String>,
    /// Descriptions of parameters to use instead, by parameter.
    pub param_descriptions: IndexMap<String, String>,
    /// What becomes of its examples.
    pub examples: Vec<ToolExampleOverride>,
    /// Where its entry stands in its file.
    pub place: Option<Place>,
}

/// What becomes of an example of a tool.
#[derive(Debug, Clone)]
pub struct ToolExampleOverride {
    /// The change.
    pub change: ToolExampleChange,
    /// Where its entry stands in its file.
    pub place: Option<Place>,
}

/// A change of a tool's examples.
#[derive(Debug, Clone)]
pub enum ToolExampleChange {
    /// Parts of an example are replaced; those that are `None` stay.
    Modify {
        /// Which example.
        index: usize,
        /// The hash of the example that it was made for.
        expected_hash: String,
        /// What it shows.
        description: Option<String>,
        /// What the tool is given.
        input: Option<JsonText>,
        /// What the tool answers.
        output: Option<JsonText>,
    },
    /// An example is taken out.
    Remove {
        /// Which example.
        index: usize,
        /// The hash of the example that it was made for.
        expected_hash: String,
    },
    /// An example is added at the end; what is `None` is null.
    Append {
        /// What it shows.
        description: String,
        /// What the tool is given.
        input: Option<JsonText>,
        /// What the tool answers.
        output: Option<JsonText>,
    },
}

/// What becomes of an example of a task.
#[derive(Debug, Clone)]
pub struct TaskExampleOverride {
    /// The keys from the root to the example; for one that is added, to the section that lists examples.
    pub path: Vec<String>,
    /// The change.
    pub change: TaskExampleChange,
    /// Where its entry stands in its file.
    pub place: Option<Place>,
}

/// A change of the examples of tasks.
#[derive(Debug, Clone)]
pub enum TaskExampleChange {
    /// Parts of an example are replaced; those that are `None` stay.
    Modify {
        /// Its position in the section that lists it. The path says the same, and counts if the two differ.
        index: usize,
        /// The hash of the example that it was made for.
        expected_hash: String,
        /// The task.
        objective: Option<String>,
        /// What comes out of it: a text, or JSON where the prompt declares its output.
        outcome: Option<String>,
        /// Steps that are changed.
        step_overrides: Vec<TaskStepOverride>,
        /// Steps that are taken out.
        steps_to_remove: Vec<usize>,
        /// Steps that are added at the end.
        steps_to_append: Vec<NewTaskStep>,
    },
    /// An example is taken out.
    Remove {
        /// Its position in the section that lists it.
        index: usize,
        /// The hash of the example that it was made for.
        expected_hash: String,
    },
    /// An example is added at the end.
    Append {
        /// The task.
        objective: String,
        /// What comes out of it: a text, or JSON where the prompt declares its output.
        outcome: String,
        /// The way to it.
        steps: Vec<NewTaskStep>,
    },
}

/// Other words for a step; those that are `None` stay.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TaskStepOverride {
    /// Which step.
    pub index: usize,
    /// The tool that is called.
    pub tool_name: Option<String>,
    /// What the step is for.
    pub description: Option<String>,
    /// What the tool is given.
    pub input: Option<JsonText>,
    /// What the tool answers.
    pub output: Option<JsonText>,
}

/// A step that the author did not write; what is `None` is null.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewTaskStep {
    /// The tool that is called.
    pub tool_name: String,
    /// What the step is for.
    pub description: String,
    /// What the tool is given.
    pub input: Option<JsonText>,
    /// What the tool answers.
    pub output: Option<JsonText>,
}

/// JSON inside a string, as override files write what tools take and give. It keeps its spelling, so that a file that is
/// rewritten has the same bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonText {
    text: String,
    value: Json,
}

impl JsonText {
    /// Reads a JSON text.
    pub fn parse(text: impl Into<String>) -> Result<JsonText> {
        let text = text.into();
        match serde_json::from_str(&text) {
            Ok(value) => Ok(JsonText { text, value }),
            Err(error) => {
                let message = format!("the text is not valid JSON: {error}");
                let hint = "write the tool's input or output as JSON inside the string";
                Err(Error::new(ErrorKind::Overrides, Diagnostic::new(Code::BadOverride, message).hint(hint)))
            }
        }
    }

    /// As it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// What it says.
    pub fn value(&self) -> &Json {
        &self.value
    }
}

impl From<Json> for JsonText {
    fn from(value: Json) -> JsonText {
        JsonText { text: value.to_string(), value }
    }
}
