//! `cuebook convert`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cuebook_lab::convert::{BuiltIn, Export};

/// `convert`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook convert greeting --to prompty                               on stdout
  cuebook convert greeting --to prompty --out prompts/greeting.prompty
  cuebook convert support.prompty --to template --out prompts/support
  cuebook convert handbook --to directive --out .ai/directives/team/handbook.md
  cuebook convert greeting --to sections --strict                     fails if anything is lost
  cuebook convert house_rules --to agents-md --out AGENTS.md          for other programs; `check` keeps it up to date
  cuebook convert review --to skill --out .claude/skills/             writes .claude/skills/review/SKILL.md

The report goes to stderr, or into the JSON output with --json. Exit code 1 if the new text differs for an unknown reason. Details: cuebook help convert")]
pub struct ConvertArgs {
    /// An id, or a path to a file or folder
    pub prompt: String,
    /// The target dialect
    #[arg(long, value_name = "DIALECT")]
    pub to: To,
    /// Where to write it: a folder for a template or a skill, a file for other dialects; or an existing folder, for a file named after
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
    /// A folder with SKILL.md.
    Skill,
    /// AGENTS.md.
    AgentsMd,
    /// CLAUDE.md.
    ClaudeMd,
    /// A .prompt file.
    Prompt,
}

/// How a prompt is written.
#[derive(Debug, Clone, Copy)]
pub enum Written {
    /// As a prompt of the library, compared with its source.
    Dialect(BuiltIn),
    /// As a file for other programs, which says where it comes from.
    Export(Export),
}

impl To {
    /// How it is written.
    pub fn written(self) -> Written {
        match self {
            To::Template => Written::Dialect(BuiltIn::Template),
            To::Prompty => Written::Dialect(BuiltIn::Prompty),
            To::Sections => Written::Dialect(BuiltIn::Sections),
            To::Directive => Written::Dialect(BuiltIn::Directive),
            To::Skill => Written::Export(Export::Skill),
            To::AgentsMd => Written::Export(Export::AgentsMd),
            To::ClaudeMd => Written::Export(Export::ClaudeMd),
            To::Prompt => Written::Export(Export::Prompt),
        }
    }

    /// What the name of its file ends in; nothing, if it is a folder.
    pub fn ending(self) -> &'static str {
        match self {
            To::Template => "",
            To::Prompty => ".prompty",
            To::Sections => ".sections.md",
            To::Directive | To::Skill | To::AgentsMd | To::ClaudeMd => ".md",
            To::Prompt => ".prompt",
        }
    }
}
