//! What of a prompt can be overridden, and the hashes of the originals.

use serde_json::{Value as Json, json};

/// What of a prompt can be overridden. The renderer makes it from a tree of sections, in the order of the tree.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Descriptor {
    /// The namespace of the prompt.
    pub ns: String,
    /// The key of the prompt.
    pub key: String,
    /// The sections that accept overrides and have a template.
    pub sections: Vec<SectionEntry>,
    /// The tools that accept overrides, also those of sections that do not.
    pub tools: Vec<ToolEntry>,
    /// The examples of whole tasks.
    pub task_examples: Vec<TaskExampleEntry>,
}

/// A section that can be overridden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionEntry {
    /// The keys from the root to the section.
    pub path: Vec<String>,
    /// Its number in the tree, such as `1.2`.
    pub number: String,
    /// The hash of its template as it was written.
    pub content_hash: String,
}

/// A tool that can be overridden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolEntry {
    /// The section that has it.
    pub path: Vec<String>,
    /// Its name.
    pub name: String,
    /// The hash of its description and schemas.
    pub contract_hash: String,
    /// The hashes of its examples, in order.
    pub example_hashes: Vec<String>,
}

/// An example of a whole task that can be overridden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskExampleEntry {
    /// The keys from the root to the example. What is before the last one is the section that lists examples.
    pub path: Vec<String>,
    /// Its position among the examples of that section, from 0.
    pub index: usize,
    /// Its hash: `content_hash` in the JSON form.
    pub hash: String,
}

impl Descriptor {
    /// The descriptor as scripts see it.
    pub fn to_json(&self) -> Json {
        let sections = self.sections.iter().map(|section| {
            json!({"path": section.path, "number": section.number, "content_hash": section.content_hash})
        });
        let tools = self.tools.iter().map(|tool| {
            json!({
                "path": tool.path,
                "name": tool.name,
                "contract_hash": tool.contract_hash,
                "example_hashes": tool.example_hashes,
            })
        });
        let task_examples = self.task_examples.iter().map(
            |example| json!({"path": example.path, "index": example.index, "content_hash": example.hash}),
        );
        json!({
            "ns": self.ns,
            "key": self.key,
            "sections": sections.collect::<Vec<Json>>(),
            "tools": tools.collect::<Vec<Json>>(),
            "task_examples": task_examples.collect::<Vec<Json>>(),
        })
    }
}
