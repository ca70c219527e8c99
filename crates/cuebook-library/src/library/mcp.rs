//! What MCP clients may do, as the user's own settings say it.

use serde::Deserialize;

/// `[mcp]` of `~/.ai/config/cuebook.toml`. A project cannot have it: it would allow things to its own clients.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct McpConfig {
    /// What clients may do beside reading: ids and patterns of tools, `rye_sign`, `rye_load`.
    pub allow: Vec<String>,
    /// Clients get prompts and resources only.
    pub read_only: bool,
}
