//! What executing an item gives, as types. The JSON of the seeds is made from them.

use cuebook::dialect::knowledge::Knowledge;
use cuebook::items::{ItemId, ItemType};
use serde_json::{Map, Value as Json, json};

use crate::chain::Element;
use crate::interpreter::Interpreter;
use crate::record::ThreadId;
use crate::thread::Finished;

/// What to do with a piece of knowledge.
const USE_KNOWLEDGE: &str = "Use this knowledge to inform your decisions.";

/// What came of executing an item.
#[derive(Debug)]
#[non_exhaustive]
pub enum Executed {
    /// A tool ran.
    Tool(ToolResult),
    /// The instructions of a directive.
    Directive(Instructions),
    /// A piece of knowledge.
    Knowledge(ItemId, Knowledge),
    /// A directive ran in a thread, and completed.
    Thread(ItemId, Box<Finished>),
    /// A directive runs in a thread in another process.
    Started {
        /// The directive.
        item_id: ItemId,
        /// The thread.
        thread: ThreadId,
        /// The process.
        pid: u32,
    },
    /// A dry run found nothing wrong.
    Checked(Checked),
}

/// What a tool returned.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolResult {
    /// The tool.
    pub item_id: ItemId,
    /// What it returned.
    pub data: Json,
    /// The tool, its runtimes and the primitive; empty for a tool that is part of the program.
    pub chain: Vec<ChainLink>,
    /// The pack whose tool ran in its place, with the user's consent.
    pub replaced_by: Option<String>,
    /// The environment variables that were set for it.
    pub environment: Vec<String>,
    /// Whether a lockfile pinned the chain.
    pub lockfile_used: bool,
    /// Whether a lockfile was written.
    pub lockfile_created: bool,
    /// What to know about it.
    pub warnings: Vec<String>,
}

/// The instructions of a directive, for the model that carries them out.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Instructions {
    /// The directive.
    pub item_id: ItemId,
    /// What to do with the text.
    pub directions: String,
    /// The text.
    pub body: String,
    /// The outputs that it declares.
    pub outputs: Option<Json>,
}

/// What a dry run checked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Checked {
    /// The type of the item.
    pub item_type: ItemType,
    /// The item.
    pub item_id: ItemId,
    /// The tool, its runtimes and the primitive.
    pub chain: Vec<ChainLink>,
    /// The inputs of a directive, with defaults.
    pub inputs: Map<String, Json>,
    /// The program that would run the tool.
    pub program: Option<Program>,
    /// What to know about it.
    pub warnings: Vec<String>,
    /// What the answer says besides.
    pub(crate) more: Map<String, Json>,
}

impl Checked {
    pub(crate) fn new(item_type: ItemType, item_id: ItemId) -> Checked {
        let (chain, warnings) = (Vec::new(), Vec::new());
        Checked { item_type, item_id, chain, inputs: Map::new(), program: None, warnings, more: Map::new() }
    }
}

/// A program that a tool runs with.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Program {
    /// Where it was found.
    pub path: String,
    /// The file that this leads to.
    pub target: String,
    /// Whether the project holds it.
    pub in_project: bool,
    /// SHA-256 of the file, in hexadecimal digits.
    pub sha256: Option<String>,
}

impl Program {
    pub(crate) fn new(found: &Interpreter) -> Program {
        let Interpreter { path, target, in_project, .. } = found.clone();
        Program { path, target, in_project, sha256: found.digest() }
    }
}

/// One element of a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChainLink {
    /// Its id.
    pub item_id: String,
    /// Its space: `project`, `user` or `system:cuebook`.
    pub space: &'static str,
    /// Its type, as in `python`.
    pub tool_type: Option<String>,
    /// What runs it; nothing runs a primitive.
    pub executor_id: Option<String>,
    /// SHA-256 of what was signed, in hexadecimal digits.
    pub integrity: String,
}

impl ChainLink {
    pub(crate) fn all(chain: &[Element]) -> Vec<ChainLink> {
        let link = |element: &Element| ChainLink {
            item_id: element.id().to_owned(),
            space: element.space(),
            tool_type: element.tool.tool_type.clone(),
            executor_id: element.tool.executor_id.clone(),
            integrity: element.hash.clone(),
        };
        chain.iter().map(link).collect()
    }

    /// What answers say of it.
    fn to_json(&self) -> Json {
        json!({
            "item_id": self.item_id,
            "space": self.space,
            "tool_type": self.tool_type,
            "executor_id": self.executor_id,
            "integrity": self.integrity,
        })
    }
}

/// An answer that is written field by field.
#[derive(Default)]
struct Fields(Map<String, Json>);

impl Fields {
    fn say(&mut self, name: &str, value: impl Into<Json>) {
        self.0.insert(name.to_owned(), value.into());
    }

    fn chain(&mut self, chain: &[ChainLink]) {
        self.say("chain", chain.iter().map(|link| Json::from(link.item_id.as_str())).collect::<Json>());
        self.say("chain_details", chain.iter().map(ChainLink::to_json).collect::<Json>());
    }
}

impl Executed {
    /// The item that was executed.
    pub fn item_id(&self) -> &ItemId {
        match self {
            Executed::Tool(ToolResult { item_id, .. })
            | Executed::Directive(Instructions { item_id, .. })
            | Executed::Knowledge(item_id, _)
            | Executed::Thread(item_id, _)
            | Executed::Started { item_id, .. }
            | Executed::Checked(Checked { item_id, .. }) => item_id,
        }
    }

    /// What a tool returned, or the body of a directive or of a piece of knowledge, or the outputs of a thread, or else its result.
    pub fn into_data(self) -> Json {
        match self {
            Executed::Tool(tool) => tool.data,
            Executed::Directive(directive) => directive.body.into(),
            Executed::Knowledge(_, knowledge) => knowledge.body().into(),
            Executed::Thread(_, finished) => finished.outputs.or(finished.result).unwrap_or_default(),
            Executed::Started { .. } => Json::Null,
            Executed::Checked(checked) => Json::Object(checked.inputs),
        }
    }

    /// The answer of `rye_execute`.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut fields = Fields::default();
        match self {
            Executed::Tool(tool) => tool.write(&mut fields),
            Executed::Directive(directive) => {
                fields.say("status", "success");
                fields.say("type", "directive");
                fields.say("item_id", directive.item_id.as_str());
                fields.say("your_directions", directive.directions.as_str());
                fields.say("body", directive.body.as_str());
                if let Some(outputs) = &directive.outputs {
                    fields.say("outputs", outputs.clone());
                }
            }
            Executed::Knowledge(id, knowledge) => {
                let mut data = knowledge.to_json();
                if let Json::Object(data) = &mut data {
                    data.entry("name").or_insert_with(|| id.as_str().into());
                }
                fields.say("status", "success");
                fields.say("type", "knowledge");
                fields.say("item_id", id.as_str());
                fields.say("data", data);
                fields.say("your_directions", USE_KNOWLEDGE);
            }
            Executed::Thread(id, finished) => {
                fields.say("status", "success");
                fields.say("type", "directive");
                fields.say("item_id", id.as_str());
                fields.say("thread_id", finished.id.as_str());
                fields.say("thread_status", finished.status.as_str());
                fields.say("directive", id.as_str());
                let json = finished.to_json();
                for name in ["result", "outputs", "note", "cost"] {
                    if let Some(value) = json.get(name) {
                        fields.say(name, value.clone());
                    }
                }
            }
            Executed::Started { item_id, thread, pid } => {
                fields.say("status", "running");
                fields.say("type", "directive");
                fields.say("item_id", item_id.as_str());
                fields.say("thread_id", thread.as_str());
                fields.say("directive", item_id.as_str());
                fields.say("pid", *pid);
            }
            Executed::Checked(checked) => checked.write(&mut fields),
        }
        fields.0
    }
}

impl ToolResult {
    fn write(&self, fields: &mut Fields) {
        if let Some(pack) = &self.replaced_by {
            fields.say("replaces", json!({"item_id": self.item_id.as_str(), "pack": pack}));
        }
        fields.say("status", "success");
        fields.say("type", "tool");
        fields.say("item_id", self.item_id.as_str());
        fields.say("data", self.data.clone());
        if self.chain.is_empty() {
            return;
        }
        fields.chain(&self.chain);
        let mut metadata = json!({
            "resolved_env_keys": self.environment,
            "lockfile_used": self.lockfile_used,
            "lockfile_created": self.lockfile_created,
        });
        if !self.warnings.is_empty() {
            metadata["warnings"] = json!(self.warnings);
        }
        fields.say("metadata", metadata);
    }
}

impl Checked {
    fn write(&self, fields: &mut Fields) {
        let id = self.item_id.as_str();
        if self.item_type == ItemType::Tool && !self.chain.is_empty() {
            if let Some(replaces) = self.more.get("replaces") {
                fields.say("replaces", replaces.clone());
            }
            fields.say("status", "validation_passed");
            fields.say("message", "Tool chain validation passed (dry run)");
            fields.say("item_id", id);
            fields.chain(&self.chain);
            fields.say("validated_pairs", self.more.get("validated_pairs").cloned().unwrap_or_default());
            if let Some(Program { path, target, in_project, sha256 }) = &self.program {
                let program =
                    json!({"path": path, "target": target, "in_project": in_project, "sha256": sha256});
                fields.say("interpreter", program);
            }
            if !self.warnings.is_empty() {
                fields.say("warnings", json!(self.warnings));
            }
            return;
        }
        fields.say("status", "validation_passed");
        fields.say("type", self.item_type.as_str());
        fields.say("item_id", id);
        fields.say("data", self.more.get("data").cloned().unwrap_or_default());
        if self.item_type == ItemType::Directive {
            fields.say("inputs", Json::Object(self.inputs.clone()));
            fields.say("message", "Directive validation passed (dry run)");
        }
    }
}
