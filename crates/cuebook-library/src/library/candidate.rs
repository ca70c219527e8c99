//! Candidates: the places that offer an id.

use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::root::Root;
use crate::prompt::Traits;

/// The file that holds a prompt's template unless its `prompt.py` says otherwise.
pub const TEMPLATE_FILE: &str = "template.md";
/// The file that holds a prompt's definition in Python.
pub const PROMPT_FILE: &str = "prompt.py";
/// One place that offers an id.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Candidate {
    /// The place, as in `user_data/packs/coding_pro/prompts/coding_system`.
    pub source: String,
    /// Its version, where it is to be shown; `None` also if its `prompt.py` cannot be read.
    pub version: Option<String>,
    /// The notation that it is written in.
    pub dialect: &'static Traits,
    /// The pack that it comes from.
    pub pack_id: Option<String>,
    /// Whether it has a `prompt.py`.
    pub has_prompt_py: bool,
    /// Whether it has a `template.md`.
    pub has_template: bool,
    /// The candidate that stands before it, if it is a directive that a nearer space has as well.
    pub shadowed_by: Option<String>,
    /// The place of the library that it was found in.
    pub root: Arc<Root>,
    /// The folder below the root that its files lie in; empty if that is the root itself.
    pub entry: String,
    /// The file that it is written in: a `.prompty` file, a tree of sections, or a template that was given as a path to a file of another name.
    pub template_file: Option<String>,
}

impl Candidate {
    /// The path below the root of a file of this prompt.
    pub fn file(&self, name: &str) -> String {
        if self.entry.is_empty() { name.to_owned() } else { format!("{}/{name}", self.entry) }
    }

    /// The candidate as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = json!({
            "source": self.source,
            "version": self.version,
            "pack_id": self.pack_id,
            "has_prompt_py": self.has_prompt_py,
            "has_template": self.has_template,
            "dialect": self.dialect.name,
        });
        if let Some(nearer) = &self.shadowed_by {
            object["shadowed_by"] = json!(nearer);
        }
        object
    }
}
