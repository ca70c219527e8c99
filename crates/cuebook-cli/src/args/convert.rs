//! `cuebook convert`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cuebook_lab::convert::BuiltIn;

/// `convert`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook convert greeting --to prompty                               on stdout
  cuebook convert greeting --to prompty --out prompts/greeting.prompty
  cuebook convert support.prompty --to template --out prompts/support
  cuebook convert handbook --to directive --out .ai/directives/team/handbook.md
  cuebook convert greeting --to sections --strict                     fails if anything is lost

The report goes to stderr, or into the JSON output with --json. Exit code 1 if the new text differs for an unknown reason. Details: cuebook help convert")]
pub struct ConvertArgs {
    /// An id, or a path to a file or folder
    pub prompt: String,
    /// The target dialect
    #[arg(long, value_name = "DIALECT")]
    pub to: To,
    /// Where to write it: a folder for a template, a file for other dialects; or an existing folder, for a file named after
    /// the prompt [default: stdout]
    #[arg(long, value_name = "PATH")]
    pub out: Option<PathBuf>,
    /// Fail and write nothing if the conversion loses or changes anything
    #[arg(long)]
    pub strict: bool,
    /// Overwrite existing files
    #[arg(long, requires = "out")]
    pub force: bool,
}

/// What a prompt can become.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum To {
    /// A folder with template.md and prompt.py.
    Template,
    /// A .prompty file.
    Prompty,
    /// A section tree, in a .sections.md file.
    Sections,
    /// A directive.
    Directive,
}

impl To {
    /// The target dialect.
    pub fn dialect(self) -> BuiltIn {
        match self {
            To::Template => BuiltIn::Template,
            To::Prompty => BuiltIn::Prompty,
            To::Sections => BuiltIn::Sections,
            To::Directive => BuiltIn::Directive,
        }
    }

    /// What the name of its file ends in; nothing, if it is a folder.
    pub fn ending(self) -> &'static str {
        match self {
            To::Template => "",
            To::Prompty => ".prompty",
            To::Sections => ".sections.md",
            To::Directive => ".md",
        }
    }
}
