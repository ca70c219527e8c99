//! Override files, version 2: `<ns>/<key>/<tag>.json`.
//!
//! [`write`] gives the bytes that WINK writes. [`read`] takes what it reads and says everything that is wrong at once, each
//! with its place. It is also what checks overrides before they are written, so that the rules stand in one place.
//!
//! Whether an override still fits its prompt is asked elsewhere ([`super::resolve`]).

mod reader;
mod write;

use std::collections::HashMap;
use std::sync::Arc;

use self::reader::OverridesReader;
pub(super) use self::write::write;
use super::entry::{
    NewTaskStep, Overrides, SectionOverride, TaskExampleChange, TaskExampleOverride, TaskStepOverride,
    ToolExampleChange, ToolExampleOverride, ToolOverride,
};
use super::names::Names;
use crate::error::{Code, ErrorKind, Result};
use crate::json::{Document, quoted};
use crate::node::{Data, Key, Node};
use crate::prompt::Visibility;
use crate::source::{Place, Source};

/// The version of the format.
const VERSION: u64 = 2;

const TOP: [&str; 7] = ["version", "ns", "prompt_key", "tag", "sections", "tools", "task_example_overrides"];
const SECTION: [&str; 5] = ["path", "expected_hash", "body", "summary", "visibility"];
const TOOL: [&str; 5] = [
    "expected_contract_hash",
    "description",
    "param_descriptions",
    "field_descriptions",
    "example_overrides",
];
const TOOL_EXAMPLE: [&str; 6] =
    ["index", "expected_hash", "action", "description", "input_json", "output_json"];
const TASK: [&str; 9] = [
    "path",
    "index",
    "expected_hash",
    "action",
    "objective",
    "outcome",
    "step_overrides",
    "steps_to_remove",
    "steps_to_append",
];
const STEP: [&str; 5] = ["index", "tool_name", "description", "input_json", "output_json"];

/// Reads a file that should hold the overrides of these names.
pub(super) fn read(source: &Arc<Source>, names: &Names) -> Result<Overrides> {
    let document = Document::parse(source, Code::BadOverride, ErrorKind::Overrides)?;
    document.object()?;
    let root = document.to_node();
    let mut reader = OverridesReader::default();
    // Nothing else is known of another version.
    reader.version(&root, VERSION);
    reader.finish()?;
    reader.known_keys(&root, "the file", &TOP);
    reader.same_name(&root, "ns", "namespace", &names.ns);
    reader.same_name(&root, "prompt_key", "key", &names.key);
    reader.same_name(&root, "tag", "tag", &names.tag);
    let overrides = Overrides {
        ns: names.ns.clone(),
        key: names.key.clone(),
        tag: names.tag.clone(),
        sections: sections(&mut reader, &root),
        tools: tools(&mut reader, &root),
        task_examples: task_examples(&mut reader, &root),
    };
    reader.finish()?;
    Ok(overrides)
}

fn sections(reader: &mut OverridesReader, root: &Node) -> Vec<SectionOverride> {
    let entries = reader.entries(root, "sections", "`sections`");
    entries.iter().filter_map(|(key, node)| section(reader, key, node)).collect()
}

fn section(reader: &mut OverridesReader, key: &Key, node: &Node) -> Option<SectionOverride> {
    let owner = format!("the override of the section {}", quoted(&key.name));
    reader.object(node, &owner)?;
    reader.known_keys(node, &owner, &SECTION);
    let path: Vec<String> = key.name.split('/').map(str::to_owned).collect();
    if let Some(stated) = node.get("path")
        && reader.path(node, "`path`", &key.place).is_some_and(|stated| stated != path)
    {
        let hint = format!("write the keys of {}, one by one", quoted(&key.name));
        reader.wrong(&stated.opening(), "`path` differs from the key of its entry", &hint);
    }
    let expected_hash = reader.hash(node, "expected_hash", &owner, &key.place);
    // Null would be as good as nothing, but WINK refuses it, and it is more likely a mistake than a wish.
    let body = match node.get("body") {
        None => None,
        Some(body) => reader.string(body, "`body`"),
    };
    let summary = reader.optional_string(node, "summary");
    let visibility = visibility(reader, node);
    let is_unset = |field: &str| node.get(field).is_none_or(Node::is_null);
    if node.get("body").is_none() && is_unset("summary") && is_unset("visibility") {
        let hint = "add a `body`, a `summary` or a `visibility`, or remove the entry";
        reader.wrong(&key.place, format!("{owner} changes nothing"), hint);
    }
    let place = Some(key.place.clone());
    Some(SectionOverride { path, expected_hash: expected_hash?, body, summary, visibility, place })
}

fn visibility(reader: &mut OverridesReader, node: &Node) -> Option<Visibility> {
    let value = node.get("visibility").filter(|value| !value.is_null())?;
    let found = value.text().and_then(Visibility::named);
    if found.is_none() {
        let hint = "use one of them; without a `visibility`, the author's choice applies";
        reader.wrong(&value.opening(), "`visibility` must be \"full\" or \"summary\"", hint);
    }
    found
}

fn tools(reader: &mut OverridesReader, root: &Node) -> Vec<ToolOverride> {
    let entries = reader.entries(root, "tools", "`tools`");
    entries.iter().filter_map(|(key, node)| tool(reader, key, node)).collect()
}

fn tool(reader: &mut OverridesReader, key: &Key, node: &Node) -> Option<ToolOverride> {
    let owner = format!("the override of the tool {}", quoted(&key.name));
    reader.object(node, &owner)?;
    reader.known_keys(node, &owner, &TOOL);
    let expected_contract_hash = reader.hash(node, "expected_contract_hash", &owner, &key.place);
    let description = reader.optional_string(node, "description");
    // One thing with two names: WINK's, which is also the one that is written, and the seed's.
    let params = reader.entries(node, "param_descriptions", "`param_descriptions`");
    let fields = reader.entries(node, "field_descriptions", "`field_descriptions`");
    let param_descriptions = fields
        .iter()
        .chain(params)
        .filter_map(|(param, node)| {
            let what = format!("the description of {}", quoted(&param.name));
            Some((param.name.clone(), reader.string(node, &what)?))
        })
        .collect();
    let examples = reader.items(node, "example_overrides", "`example_overrides`");
    let mut seen = HashMap::new();
    let examples = examples.iter().filter_map(|node| tool_example(reader, node, &mut seen)).collect();
    Some(ToolOverride {
        name: key.name.clone(),
        expected_contract_hash: expected_contract_hash?,
        description,
        param_descriptions,
        examples,
        place: Some(key.place.clone()),
    })
}

fn tool_example(
    reader: &mut OverridesReader,
    node: &Node,
    seen: &mut HashMap<usize, Place>,
) -> Option<ToolExampleOverride> {
    let owner = "the override of an example";
    reader.object(node, owner)?;
    reader.known_keys(node, owner, &TOOL_EXAMPLE);
    let action = reader.action(node, owner);
    let description = reader.optional_string(node, "description");
    let input = reader.json_text(node, "input_json");
    let output = reader.json_text(node, "output_json");
    let change = match action? {
        Action::Append => {
            let description = reader.needed(node, owner, "description", description);
            ToolExampleChange::Append { description: description?, input, output }
        }
        Action::Remove(index, expected_hash) => {
            reader.once(seen, index, node, "example");
            reader.without(node, &TOOL_EXAMPLE[3..]);
            ToolExampleChange::Remove { index, expected_hash }
        }
        Action::Modify(index, expected_hash) => {
            reader.once(seen, index, node, "example");
            reader.changes_something(node, owner, &TOOL_EXAMPLE[3..]);
            ToolExampleChange::Modify { index, expected_hash, description, input, output }
        }
    };
    Some(ToolExampleOverride { change, place: Some(node.opening()) })
}

fn task_examples(reader: &mut OverridesReader, root: &Node) -> Vec<TaskExampleOverride> {
    let items = reader.items(root, "task_example_overrides", "`task_example_overrides`");
    let mut seen = HashMap::new();
    items.iter().filter_map(|node| task_example(reader, node, &mut seen)).collect()
}

fn task_example(
    reader: &mut OverridesReader,
    node: &Node,
    seen: &mut HashMap<Vec<String>, Place>,
) -> Option<TaskExampleOverride> {
    let owner = "the override of a task example";
    reader.object(node, owner)?;
    reader.known_keys(node, owner, &TASK);
    let path = reader.path(node, "`path`", &node.opening());
    let action = reader.action(node, owner);
    let objective = reader.optional_string(node, "objective");
    let outcome = reader.optional_string(node, "outcome");
    let mut changed = HashMap::new();
    let steps = reader.items(node, "step_overrides", "`step_overrides`");
    let step_overrides = steps.iter().filter_map(|step| changed_step(reader, step, &mut changed)).collect();
    let removed = reader.items(node, "steps_to_remove", "`steps_to_remove`");
    let steps_to_remove = removed
        .iter()
        .filter_map(|node| {
            let index = reader.index(node, "the number of a step")?;
            reader.once(&mut changed, index, node, "step");
            Some(index)
        })
        .collect();
    let appended = reader.items(node, "steps_to_append", "`steps_to_append`");
    let appended: Vec<NewTaskStep> = appended.iter().filter_map(|step| new_step(reader, step)).collect();
    let (action, path) = (action?, path?);
    let change = match action {
        Action::Append => {
            reader.without(node, &TASK[6..8]);
            let objective = reader.needed(node, owner, "objective", objective);
            let outcome = reader.needed(node, owner, "outcome", outcome);
            let has_none = match node.get("steps_to_append").map(|steps| &steps.data) {
                None | Some(Data::Null) => true,
                Some(Data::List(steps)) => steps.is_empty(),
                // What it is instead has been noted.
                Some(_) => false,
            };
            if has_none {
                let hint = "add at least one step in `steps_to_append`";
                reader.wrong(&node.opening(), "a task example must have steps", hint);
            }
            TaskExampleChange::Append { objective: objective?, outcome: outcome?, steps: appended }
        }
        Action::Remove(index, expected_hash) => {
            reader.once(seen, path.clone(), node, "example");
            reader.without(node, &TASK[4..]);
            TaskExampleChange::Remove { index, expected_hash }
        }
        Action::Modify(index, expected_hash) => {
            reader.once(seen, path.clone(), node, "example");
            reader.changes_something(node, owner, &TASK[4..]);
            TaskExampleChange::Modify {
                index,
                expected_hash,
                objective,
                outcome,
                step_overrides,
                steps_to_remove,
                steps_to_append: appended,
            }
        }
    };
    Some(TaskExampleOverride { path, change, place: Some(node.opening()) })
}

fn changed_step(
    reader: &mut OverridesReader,
    node: &Node,
    seen: &mut HashMap<usize, Place>,
) -> Option<TaskStepOverride> {
    let owner = "the override of a step";
    reader.object(node, owner)?;
    reader.known_keys(node, owner, &STEP);
    reader.changes_something(node, owner, &STEP[1..]);
    let tool_name = reader.optional_string(node, "tool_name");
    let description = reader.optional_string(node, "description");
    let input = reader.json_text(node, "input_json");
    let output = reader.json_text(node, "output_json");
    let index = match node.get("index") {
        Some(index) => reader.index(index, "`index`")?,
        None => {
            let hint = "add the number of the step; the first step is 0";
            reader.wrong(&node.opening(), format!("{owner} has no `index`"), hint);
            return None;
        }
    };
    reader.once(seen, index, node, "step");
    Some(TaskStepOverride { index, tool_name, description, input, output })
}

/// A step that is added. WINK wants an index here as well, which means nothing.
fn new_step(reader: &mut OverridesReader, node: &Node) -> Option<NewTaskStep> {
    let owner = "a new step";
    reader.object(node, owner)?;
    reader.known_keys(node, owner, &STEP);
    let tool_name = reader.optional_string(node, "tool_name");
    let tool_name = reader.needed(node, owner, "tool_name", tool_name);
    let description = reader.optional_string(node, "description");
    let description = reader.needed(node, owner, "description", description);
    let input = reader.json_text(node, "input_json");
    let output = reader.json_text(node, "output_json");
    Some(NewTaskStep { tool_name: tool_name?, description: description?, input, output })
}

/// What an override of an example does; the index and the hash of the one that it is about.
enum Action {
    Modify(usize, String),
    Remove(usize, String),
    Append,
}
