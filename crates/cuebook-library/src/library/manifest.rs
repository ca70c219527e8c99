//! `pack.json`: what a pack says about itself.
//!
//! The file is read field by field and all its problems are reported at once, each with its place.
//! Keys that are not known are warnings, because a newer Cuebook may know them. [`Manifest::verify_contents`] then
//! compares what is said with what lies in the pack's folder.
//!
//! A manifest proposes (`replaces`, `permissions`) and never decides; nothing here runs or changes anything.

mod contents;
mod fields;
mod spelling;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Value, json};

use self::fields::ManifestReader;
use crate::error::{Code, Diagnostic, ErrorKind, Result};
use crate::json::Document;
use crate::prompt::{Limits, Permissions};
use crate::source::Source;

/// What kind of pack it is, for people who choose one; the engine treats all of them alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum PackKind {
    /// Prompts of any kind; also where nothing is said.
    #[default]
    PromptPack,
    /// Prompts that give an agent its character and its rules.
    SystemPromptPack,
    /// Templates for inner work: compression, memory, planning.
    UtilityPromptPack,
    /// Parts that other prompts include.
    PartialPack,
    /// Prompts, tools and agents together.
    FullAgentPack,
}

impl PackKind {
    /// Every kind.
    pub const ALL: [PackKind; 5] = [
        PackKind::PromptPack,
        PackKind::SystemPromptPack,
        PackKind::UtilityPromptPack,
        PackKind::PartialPack,
        PackKind::FullAgentPack,
    ];

    /// The word for it in `pack.json`.
    pub fn as_str(self) -> &'static str {
        match self {
            PackKind::PromptPack => "prompt_pack",
            PackKind::SystemPromptPack => "system_prompt_pack",
            PackKind::UtilityPromptPack => "utility_prompt_pack",
            PackKind::PartialPack => "partial_pack",
            PackKind::FullAgentPack => "full_agent_pack",
        }
    }
}

/// A Python file that gives variables under a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct VariableProvider {
    /// The file, relative to the pack's folder.
    pub file: String,
    /// The variable that templates reach it by.
    pub namespace: String,
    /// What it provides.
    pub description: Option<String>,
    /// Whether a render goes on without it.
    pub optional: bool,
    /// What it may do.
    pub permissions: Permissions,
    /// How long it may take, and how much it may say.
    pub limits: Limits,
}

/// What the pack proposes to stand in for: from what is there to what the pack brings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Replaces {
    /// Prompts, by id.
    pub prompts: IndexMap<String, String>,
    /// Tools, by id.
    pub tools: IndexMap<String, String>,
    /// Flows, by id.
    pub flows: IndexMap<String, String>,
}

/// A `pack.json` in which every field has been found right.
#[derive(Debug, Clone)]
pub struct Manifest {
    /// The id, which is also the name of its folder once installed.
    pub pack_id: String,
    /// The name for people; the id if it is missing.
    pub name: String,
    /// The version; `1.0.0` if it is missing, as for prompts.
    pub version: String,
    /// What kind of pack it is (`type`).
    pub kind: PackKind,
    /// What it is for.
    pub description: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// The licence it comes under.
    pub license: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// The ids of its prompts, which are the names of their folders below `prompts/`.
    pub prompts: Vec<String>,
    /// Its partials: paths relative to the pack's folder, or to `prompts/` as templates write them.
    pub partials: Vec<String>,
    /// The ids of tools that it brings.
    pub tools: Vec<String>,
    /// The ids of agents that it brings.
    pub agents: Vec<String>,
    /// What gives variables to templates.
    pub variable_providers: Vec<VariableProvider>,
    /// What it proposes to stand in for.
    pub replaces: Replaces,
    /// Other names of things, as in a vocabulary file.
    pub vocab: IndexMap<String, Vec<String>>,
    document: Document,
}

impl Manifest {
    /// Reads a manifest. Beside it come warnings; an error carries everything that is wrong, and the warnings behind it.
    pub fn read(source: &Arc<Source>) -> Result<(Manifest, Vec<Diagnostic>)> {
        let document = Document::parse(source, Code::BadManifest, ErrorKind::Pack)?;
        let mut reader = ManifestReader::new();
        let manifest = reader.manifest(&document);
        let warnings = reader.values.finish()?;
        Ok((manifest, warnings))
    }

    /// The text that it was read from.
    pub fn source(&self) -> &Arc<Source> {
        self.document.source()
    }

    /// The manifest as scripts see it: every field is there, defaults filled in.
    pub fn to_json(&self) -> Value {
        let providers: Vec<Value> = self.variable_providers.iter().map(VariableProvider::to_json).collect();
        json!({
            "pack_id": self.pack_id,
            "name": self.name,
            "version": self.version,
            "type": self.kind.as_str(),
            "description": self.description,
            "author": self.author,
            "license": self.license,
            "tags": self.tags,
            "prompts": self.prompts,
            "partials": self.partials,
            "tools": self.tools,
            "agents": self.agents,
            "variable_providers": providers,
            "replaces": {
                "prompts": self.replaces.prompts,
                "tools": self.replaces.tools,
                "flows": self.replaces.flows,
            },
            "vocab": self.vocab,
        })
    }
}

impl VariableProvider {
    fn to_json(&self) -> Value {
        json!({
            "file": self.file,
            "namespace": self.namespace,
            "description": self.description,
            "optional": self.optional,
            "permissions": self.permissions.to_json(),
            "limits": self.limits.to_json(),
        })
    }
}
