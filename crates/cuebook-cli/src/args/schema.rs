//! `cuebook schema`

use clap::{Args, ValueEnum};

/// `schema`
#[derive(Debug, Args)]
#[command(after_help = "\
Editors use a schema to complete keys and to show mistakes. `cuebook lsp` uses the same ones.

Examples:
  cuebook schema prompty                            front matter of .prompty files
  cuebook schema pack > pack.schema.json            for the key $schema of pack.json")]
pub struct SchemaArgs {
    /// The kind of file
    pub name: SchemaName,
}

/// The kinds of files that have a schema.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum SchemaName {
    /// Front matter of .prompty files
    Prompty,
    /// pack.json
    Pack,
    /// Provider files
    Provider,
    /// cuebook.toml
    Cuebook,
    /// Settings of test cases
    Cases,
}

impl SchemaName {
    /// The name of the schema.
    pub fn as_str(self) -> &'static str {
        match self {
            SchemaName::Prompty => "prompty",
            SchemaName::Pack => "pack",
            SchemaName::Provider => "provider",
            SchemaName::Cuebook => "cuebook",
            SchemaName::Cases => "cases",
        }
    }
}
