//! The store as a whole, on real folders.

mod examples;
mod files;
mod hostile;
mod stores;

use serde_json::{Value as Json, json};

use super::hash::{task_example_hash, text_hash, tool_example_hash};
use super::{
    Descriptor, Originals, SectionEntry, SectionOverride, TaskExample, TaskExampleEntry, TaskStep, ToolEntry,
    ToolExample, ToolOverride,
};

/// A path of keys.
fn path(text: &str) -> Vec<String> {
    text.split('/').map(str::to_owned).collect()
}

fn tool_example(description: &str) -> ToolExample {
    ToolExample {
        description: description.into(),
        input: json!({"query": description}),
        output: json!({"hits": [description]}),
    }
}

fn step(tool: &str) -> TaskStep {
    TaskStep {
        tool: tool.into(),
        description: format!("{tool} it"),
        input: json!({"id": tool}),
        output: Json::Null,
    }
}

fn task(objective: &str) -> TaskExample {
    let steps = vec![step("search"), step("open"), step("close")];
    TaskExample { objective: objective.into(), outcome: json!("done"), steps }
}

const BODIES: [(&str, &str); 3] = [("intro", "Hello $name."), ("intro/tone", "Be kind."), ("rules", "Obey.")];
const TOOL_EXAMPLES: [&str; 3] = ["cats", "dogs", "fish"];
const TASKS: [&str; 3] = ["one", "two", "three"];

/// A prompt with three sections, a tool with three examples and three examples of tasks.
fn descriptor() -> Descriptor {
    Descriptor {
        ns: "support".into(),
        key: "triage".into(),
        sections: BODIES
            .iter()
            .map(|(at, body)| SectionEntry {
                path: path(at),
                number: "1".into(),
                content_hash: text_hash(body),
            })
            .collect(),
        tools: vec![ToolEntry {
            path: path("rules"),
            name: "search".into(),
            contract_hash: text_hash("search"),
            example_hashes: TOOL_EXAMPLES.iter().map(|at| tool_example_hash(&tool_example(at))).collect(),
        }],
        task_examples: TASKS
            .iter()
            .enumerate()
            .map(|(index, objective)| TaskExampleEntry {
                path: path(&format!("examples/{objective}")),
                index,
                hash: task_example_hash(&task(objective)),
            })
            .collect(),
    }
}

fn originals() -> Originals {
    let params = [("query".to_owned(), "Keywords.".to_owned())].into_iter().collect();
    Originals {
        sections: BODIES.iter().map(|(at, body)| (path(at), (*body).to_owned())).collect(),
        tools: [("search".to_owned(), ("Search.".to_owned(), params))].into_iter().collect(),
    }
}

fn section(at: &str, body: &str) -> SectionOverride {
    let original = BODIES.iter().find(|(known, _)| *known == at).map_or("", |(_, original)| original);
    SectionOverride {
        path: path(at),
        expected_hash: text_hash(original),
        body: Some(body.into()),
        ..SectionOverride::default()
    }
}

fn tool(description: &str) -> ToolOverride {
    ToolOverride {
        name: "search".into(),
        expected_contract_hash: text_hash("search"),
        description: Some(description.into()),
        ..ToolOverride::default()
    }
}
