//! `[tools]` of the user's settings.

use std::path::PathBuf;

use serde::Deserialize;

/// How tools run.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ToolsConfig {
    /// Whether tools that a model calls run in the sandbox.
    #[serde(rename = "sandbox", alias = "fence")]
    pub fence: FenceSetting,
    /// Environment variables that every tool gets, as in `HTTPS_PROXY`.
    pub env: Vec<String>,
    /// Further files and folders that tools in the sandbox can read, as in `~/.cargo/bin`.
    pub readable: Vec<PathBuf>,
}

impl ToolsConfig {
    /// The further files and folders, with `~/` as the user's home folder. Others must be absolute.
    pub fn readable(&self) -> Vec<PathBuf> {
        absolute_paths(&self.readable)
    }
}

/// Paths of settings, with `~/` as the user's home folder. Others must be absolute.
pub(super) fn absolute_paths(paths: &[PathBuf]) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let path = |path: &PathBuf| match (path.strip_prefix("~"), &home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.clone(),
    };
    paths.iter().map(path).filter(|path| path.is_absolute()).collect()
}

/// Whether tools that a model calls run in the sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FenceSetting {
    /// They do, and do not run where that is not possible.
    #[default]
    Required,
    /// They do not.
    Off,
}
