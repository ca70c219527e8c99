//! The four things that can be done with items, as a model or a client of a server calls them.
//!
//! What they are called, what they are for and what they take stands here once; a thread offers them to its model, a server to its
//! clients. Answers are objects, also when something went wrong.

use cuebook::Error;
use serde_json::{Map, Value as Json, json};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// Runs a tool, or gives a directive's instructions or a piece of knowledge.
    Execute,
    /// Finds items.
    Search,
    /// Reads an item's file.
    Load,
    /// Signs items.
    Sign,
}

impl Action {
    /// All four.
    pub const ALL: [Action; 4] = [Action::Execute, Action::Search, Action::Load, Action::Sign];

    /// Its name as a tool.
    pub fn name(self) -> &'static str {
        match self {
            Action::Execute => "rye_execute",
            Action::Search => "rye_search",
            Action::Load => "rye_load",
            Action::Sign => "rye_sign",
        }
    }

    /// The word for it in permissions.
    pub fn word(self) -> &'static str {
        self.name().trim_start_matches("rye_")
    }

    /// The one that is called so; the names without `rye_` are those of older servers and work as well.
    pub fn named(name: &str) -> Option<Action> {
        Action::ALL.into_iter().find(|action| action.name() == name || action.word() == name)
    }

    /// What people call it.
    pub fn title(self) -> &'static str {
        match self {
            Action::Execute => "Execute an item",
            Action::Search => "Search items",
            Action::Load => "Load an item",
            Action::Sign => "Sign items",
        }
    }

    /// What it is for.
    pub fn description(self) -> &'static str {
        match self {
            Action::Execute => {
                "Runs a tool, or returns the instructions of a directive or the text of a knowledge item. Cuebook verifies every item first. With dry_run, it checks the item and its inputs and runs nothing."
            }
            Action::Search => {
                "Searches directives, tools and knowledge in the project, user and system spaces."
            }
            Action::Load => {
                "Reads an item's file. With a destination, also copies it into the project space or the user space."
            }
            Action::Sign => {
                "Checks items and signs their files with the user's key. An id with * or ? selects all matching items."
            }
        }
    }

    /// The schema of its arguments, for a project.
    pub fn input(self, project: &str) -> Map<String, Json> {
        let item_type = json!({
            "type": "string",
            "enum": ["directive", "tool", "knowledge"],
            "description": "The type of the item",
        });
        let item_id = json!({
            "type": "string",
            "description": "The path of its file in the folder of its type, without the extension, such as rye/core/create_directive",
        });
        let project_path = json!({
            "type": "string",
            "description": format!("The absolute path of the project; this server's project is {project}"),
            "default": project,
        });
        let parameters = |what: &str| json!({"type": "object", "description": what});
        let switch = |what: &str| json!({"type": "boolean", "default": false, "description": what});
        let (required, properties) = match self {
            Action::Execute => (
                json!(["item_type", "item_id", "project_path"]),
                json!({
                    "item_type": item_type,
                    "item_id": item_id,
                    "project_path": project_path,
                    "parameters": parameters("The inputs of a directive, or the parameters of a tool"),
                    "dry_run": switch("Check everything, run nothing"),
                    "thread": switch("Run a directive in a new thread"),
                    "async": switch("With thread: return at once; the thread continues in the background"),
                    "model": {"type": "string", "description": "With thread: the model to use instead of the directive's"},
                    "limit_overrides": parameters("With thread: limits that replace the directive's, such as turns or spend"),
                }),
            ),
            Action::Search => (
                json!(["scope", "query", "project_path"]),
                json!({
                    "scope": {"type": "string", "description": "The type, optionally with a folder: directive, tool.rye.core.* or knowledge"},
                    "query": {"type": "string", "description": "Words, \"phrases\", AND, OR, NOT, parentheses, * in words; empty finds everything"},
                    "project_path": project_path,
                    "space": {"type": "string", "enum": ["project", "user", "system", "all"], "default": "all", "description": "The space to search"},
                    "limit": {"type": "integer", "default": 10, "description": "The number of results to return"},
                    "offset": {"type": "integer", "default": 0, "description": "The number of results to skip"},
                }),
            ),
            Action::Load => (
                json!(["item_type", "item_id", "project_path"]),
                json!({
                    "item_type": item_type,
                    "item_id": item_id,
                    "project_path": project_path,
                    "source": {"type": "string", "enum": ["project", "user", "system"], "description": "The space to read from; by default, the first space that has the item"},
                    "destination": {"type": "string", "enum": ["project", "user"], "description": "The space to copy the item to"},
                    "replace": switch("Overwrite an existing file"),
                }),
            ),
            Action::Sign => (
                json!(["item_type", "item_id", "project_path"]),
                json!({
                    "item_type": item_type,
                    "item_id": {"type": "string", "description": "An id, or a pattern with * and ?"},
                    "project_path": project_path,
                    "source": {"type": "string", "enum": ["project", "user"], "default": "project", "description": "The space of the items"},
                    "parameters": parameters("Not used"),
                }),
            ),
        };
        let schema = [("type", json!("object")), ("properties", properties), ("required", required)];
        schema.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The answer to a call that is refused: the message, the way out, and all that is known of the error.
    pub fn refusal(error: &Error) -> Json {
        let reported = error.diagnostic();
        let mut metadata = error.to_json();
        let mut answer = Map::new();
        answer.insert("status".to_owned(), json!("error"));
        answer.insert("error".to_owned(), json!(reported.message));
        match &reported.hint {
            Some(hint) => hint.add_to(&mut answer),
            None => drop(answer.insert("hint".to_owned(), Json::Null)),
        }
        answer.insert("metadata".to_owned(), json!({"error": metadata["error"].take()}));
        Json::Object(answer)
    }
}
