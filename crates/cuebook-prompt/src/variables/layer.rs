//! The layers that values come from.

use serde::Serialize;

/// A source of values. Later ones win.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// `variables` in `defaults.json`, for all prompts.
    Defaults,
    /// Defaults of custom variables.
    Custom,
    /// Defaults of optional variables.
    Optional,
    /// What the system knows: date, model, session.
    System,
    /// Variable providers of packs.
    Provider,
    /// `prompt_variables` of `agent.json`.
    Agent,
    /// What the caller passed.
    Caller,
    /// What a `pre_render` hook put in or changed.
    Hook,
}

impl Layer {
    /// All of them; later ones win.
    pub const ALL: [Layer; 8] = [
        Layer::Defaults,
        Layer::Custom,
        Layer::Optional,
        Layer::System,
        Layer::Provider,
        Layer::Agent,
        Layer::Caller,
        Layer::Hook,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Layer::Defaults => "defaults",
            Layer::Custom => "custom",
            Layer::Optional => "optional",
            Layer::System => "system",
            Layer::Provider => "provider",
            Layer::Agent => "agent",
            Layer::Caller => "caller",
            Layer::Hook => "hook",
        }
    }

    /// What it is, for people.
    pub fn describe(self) -> &'static str {
        match self {
            Layer::Defaults => "defaults.json",
            Layer::Custom => "the default of a custom variable",
            Layer::Optional => "the default of an optional variable",
            Layer::System => "the system",
            Layer::Provider => "a variable provider",
            Layer::Agent => "agent.json",
            Layer::Caller => "the caller",
            Layer::Hook => "a hook",
        }
    }
}

/// Who exactly supplied a value, where the layer alone does not say.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Supplier {
    /// A hook of a prompt.
    Hook {
        /// The prompt.
        prompt: String,
        /// The function.
        function: &'static str,
    },
    /// A template, which has set the name to something of its own.
    Template {
        /// The name.
        set: String,
    },
    /// A variable provider.
    Provider {
        /// The pack that it came with; `None` for one that the program registered.
        pack: Option<String>,
        /// Its file.
        file: Option<String>,
    },
}

impl std::fmt::Display for Supplier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Supplier::Hook { prompt, function } => write!(f, "{function} of {prompt}"),
            Supplier::Template { .. } => f.write_str("set by the template"),
            Supplier::Provider { pack: Some(pack), file: Some(file) } => write!(f, "{pack}: {file}"),
            Supplier::Provider { .. } => f.write_str("the program"),
        }
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
