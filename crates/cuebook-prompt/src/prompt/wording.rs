//! The words that the engine writes around a directive.

use serde::Deserialize;

/// How a model is asked to give results back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Returns {
    /// A sentence with the call of a tool.
    #[default]
    Call,
    /// A block of XML that names the outputs.
    Block,
}

impl Returns {
    /// Its name in `cuebook.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Returns::Call => "call",
            Returns::Block => "block",
        }
    }

    /// The one of a name.
    pub fn named(name: &str) -> Option<Returns> {
        [Returns::Call, Returns::Block].into_iter().find(|known| known.as_str() == name)
    }
}

/// The words of the engine in a prompt: `[directives]` in `cuebook.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wording {
    /// The sentence that the prompt begins with; nothing, if it is empty.
    pub instruction: String,
    /// How results are given back.
    pub returns: Returns,
}

impl Default for Wording {
    fn default() -> Self {
        Wording { instruction: "Execute the directive as specified now.".to_owned(), returns: Returns::Call }
    }
}
