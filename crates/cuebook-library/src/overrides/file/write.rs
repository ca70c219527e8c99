//! Overrides as the bytes of a file.

use serde_json::{Map, Value as Json, json};

use super::VERSION;
use crate::overrides::entry::{
    JsonText, NewTaskStep, Overrides, SectionOverride, TaskExampleChange, TaskExampleOverride,
    TaskStepOverride, ToolExampleChange, ToolExampleOverride, ToolOverride,
};
use crate::overrides::hash::pretty_json;

/// The file that holds these overrides.
pub(in crate::overrides) fn write(overrides: &Overrides) -> String {
    let sections: Map<String, Json> =
        overrides.sections.iter().map(|section| (section.path.join("/"), section_json(section))).collect();
    let tools: Map<String, Json> =
        overrides.tools.iter().map(|tool| (tool.name.clone(), tool_json(tool))).collect();
    pretty_json(&json!({
        "version": VERSION,
        "ns": overrides.ns,
        "prompt_key": overrides.key,
        "tag": overrides.tag,
        "sections": sections,
        "tools": tools,
        "task_example_overrides": overrides.task_examples.iter().map(task_json).collect::<Vec<Json>>(),
    }))
}

/// An object of fields that are there.
#[derive(Default)]
struct Fields(Map<String, Json>);

impl Fields {
    fn with(mut self, name: &str, value: impl Into<Json>) -> Fields {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    fn maybe(self, name: &str, value: &Option<String>) -> Fields {
        match value {
            Some(value) => self.with(name, value.as_str()),
            None => self,
        }
    }

    fn json(self, name: &str, value: &Option<JsonText>) -> Fields {
        match value {
            Some(value) => self.with(name, value.text()),
            None => self,
        }
    }

    fn list(self, name: &str, items: Vec<Json>) -> Fields {
        if items.is_empty() { self } else { self.with(name, items) }
    }

    fn done(self) -> Json {
        Json::Object(self.0)
    }
}

fn section_json(section: &SectionOverride) -> Json {
    let visibility = section.visibility.map(|visibility| visibility.as_str().to_owned());
    Fields::default()
        .with("path", section.path.clone())
        .with("expected_hash", section.expected_hash.as_str())
        .maybe("body", &section.body)
        .maybe("summary", &section.summary)
        .maybe("visibility", &visibility)
        .done()
}

fn tool_json(tool: &ToolOverride) -> Json {
    Fields::default()
        .with("expected_contract_hash", tool.expected_contract_hash.as_str())
        .with("description", tool.description.clone())
        .with("param_descriptions", json!(tool.param_descriptions))
        .list("example_overrides", tool.examples.iter().map(tool_example_json).collect())
        .done()
}

fn tool_example_json(example: &ToolExampleOverride) -> Json {
    match &example.change {
        ToolExampleChange::Modify { index, expected_hash, description, input, output } => {
            about("modify", *index, expected_hash)
                .maybe("description", description)
                .json("input_json", input)
                .json("output_json", output)
                .done()
        }
        ToolExampleChange::Remove { index, expected_hash } => about("remove", *index, expected_hash).done(),
        ToolExampleChange::Append { description, input, output } => about_nothing()
            .with("description", description.as_str())
            .json("input_json", input)
            .json("output_json", output)
            .done(),
    }
}

fn task_json(task: &TaskExampleOverride) -> Json {
    let fields = match &task.change {
        TaskExampleChange::Modify {
            index,
            expected_hash,
            objective,
            outcome,
            step_overrides,
            steps_to_remove,
            steps_to_append,
        } => about("modify", *index, expected_hash)
            .maybe("objective", objective)
            .maybe("outcome", outcome)
            .list("step_overrides", step_overrides.iter().map(changed_step_json).collect())
            .list("steps_to_remove", steps_to_remove.iter().map(|index| json!(index)).collect())
            .list("steps_to_append", new_steps_json(steps_to_append)),
        TaskExampleChange::Remove { index, expected_hash } => about("remove", *index, expected_hash),
        TaskExampleChange::Append { objective, outcome, steps } => about_nothing()
            .with("objective", objective.as_str())
            .with("outcome", outcome.as_str())
            .list("steps_to_append", new_steps_json(steps)),
    };
    fields.with("path", task.path.clone()).done()
}

fn about(action: &str, index: usize, expected_hash: &str) -> Fields {
    Fields::default().with("action", action).with("index", index).with("expected_hash", expected_hash)
}

fn about_nothing() -> Fields {
    Fields::default().with("action", "append").with("index", -1).with("expected_hash", Json::Null)
}

fn changed_step_json(step: &TaskStepOverride) -> Json {
    Fields::default()
        .with("index", step.index)
        .maybe("tool_name", &step.tool_name)
        .maybe("description", &step.description)
        .json("input_json", &step.input)
        .json("output_json", &step.output)
        .done()
}

fn new_steps_json(steps: &[NewTaskStep]) -> Vec<Json> {
    let step = |(index, step): (usize, &NewTaskStep)| {
        Fields::default()
            .with("index", index)
            .with("tool_name", step.tool_name.as_str())
            .with("description", step.description.as_str())
            .json("input_json", &step.input)
            .json("output_json", &step.output)
            .done()
    };
    steps.iter().enumerate().map(step).collect()
}
