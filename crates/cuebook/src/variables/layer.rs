//! The layers that values come from.

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
}

impl Layer {
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
        }
    }
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
