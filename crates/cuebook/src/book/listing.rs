//! A prompt in a list.

use serde_json::{Value as Json, json};

use crate::error::{Error, ErrorKind};
use crate::library::Candidate;
use crate::prompt::Traits;

/// One line of a list.
#[derive(Debug, Clone)]
pub struct Listing {
    /// The id.
    pub id: String,
    /// The name for people; `None` if the prompt cannot be found or read.
    pub name: Option<String>,
    /// The notation that it is written in, if it is clear which prompt is meant.
    pub dialect: Option<&'static Traits>,
    /// Its type.
    pub kind: Option<String>,
    /// Its version.
    pub version: Option<String>,
    /// Its tags.
    pub tags: Vec<String>,
    /// What it is for.
    pub description: Option<String>,
    /// The chosen place; `None` while there is a conflict.
    pub source: Option<String>,
    /// Every place that offers it.
    pub candidates: Vec<Candidate>,
    /// Why there is no name, type or source: a conflict, or a file that cannot be read.
    pub problem: Option<Error>,
}

impl Listing {
    /// Directives of other spaces that it shadows.
    pub fn shadowed(&self) -> impl Iterator<Item = &str> {
        let shadowed = self.candidates.iter().filter(|candidate| candidate.shadowed_by.is_some());
        shadowed.map(|candidate| candidate.source.as_str())
    }

    /// The line as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = json!({
            "id": self.id,
            "name": self.name,
            "type": self.kind,
            "dialect": self.dialect.map(|dialect| dialect.name),
            "version": self.version,
            "tags": self.tags,
            "description": self.description,
            "source": self.source,
            "pack_id": self.candidates.iter().find(|c| Some(&c.source) == self.source.as_ref()).and_then(|c| c.pack_id.clone()),
            "conflict": self.problem.as_ref().is_some_and(|problem| problem.kind() == ErrorKind::PromptConflict),
        });
        if self.source.is_none() {
            object["candidates"] = self.candidates.iter().map(|candidate| json!(candidate.source)).collect();
        }
        let shadowed: Vec<&str> = self.shadowed().collect();
        if !shadowed.is_empty() {
            object["shadows"] = json!(shadowed);
        }
        if let Some(problem) = &self.problem {
            object["problem"] = json!(problem.diagnostic().message);
        }
        object
    }
}
