//! The commands around signed items: `keys`, `trust`, `sign`, `verify`, `search` and `load`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use cuebook::items::{ItemType, SpaceKind};

/// The type of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A task for a model
    Directive,
    /// A program
    Tool,
    /// A text to read
    Knowledge,
}

/// What can be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Signable {
    /// A task for a model
    Directive,
    /// A program
    Tool,
    /// A text to read
    Knowledge,
    /// A folder with SKILL.md and all its files
    Skill,
    /// A provider file or hooks file in .ai/config
    Config,
}

impl Signable {
    /// The type of item, if it is one.
    pub fn item(self) -> Option<ItemType> {
        match self {
            Signable::Directive => Some(ItemType::Directive),
            Signable::Tool => Some(ItemType::Tool),
            Signable::Knowledge => Some(ItemType::Knowledge),
            Signable::Skill | Signable::Config => None,
        }
    }
}

/// What can be loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Loadable {
    /// A task for a model
    Directive,
    /// A program
    Tool,
    /// A text to read
    Knowledge,
    /// A folder with SKILL.md
    Skill,
}

impl Loadable {
    /// The type of item, if it is one.
    pub fn item(self) -> Option<ItemType> {
        match self {
            Loadable::Directive => Some(ItemType::Directive),
            Loadable::Tool => Some(ItemType::Tool),
            Loadable::Knowledge => Some(ItemType::Knowledge),
            Loadable::Skill => None,
        }
    }
}

impl From<Kind> for ItemType {
    fn from(kind: Kind) -> ItemType {
        match kind {
            Kind::Directive => ItemType::Directive,
            Kind::Tool => ItemType::Tool,
            Kind::Knowledge => ItemType::Knowledge,
        }
    }
}

/// A space that can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OwnSpace {
    /// The project's
    Project,
    /// Your own
    User,
}

impl From<OwnSpace> for SpaceKind {
    fn from(space: OwnSpace) -> SpaceKind {
        match space {
            OwnSpace::Project => SpaceKind::Project,
            OwnSpace::User => SpaceKind::User,
        }
    }
}

/// A space.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AnySpace {
    /// The project's
    Project,
    /// Your own
    User,
    /// Built into the program
    System,
}

impl From<AnySpace> for SpaceKind {
    fn from(space: AnySpace) -> SpaceKind {
        match space {
            AnySpace::Project => SpaceKind::Project,
            AnySpace::User => SpaceKind::User,
            AnySpace::System => SpaceKind::System,
        }
    }
}

/// `keys`
#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create your signing key, and trust it
    #[command(after_help = "Examples:
  cuebook keys generate --owner Ada
  cuebook keys generate --replace      replace the existing key")]
    Generate {
        /// The owner's name, for people who trust the key
        #[arg(long, value_name = "NAME", env = "USER", default_value = "")]
        owner: String,
        /// Replace the existing key
        #[arg(long)]
        replace: bool,
    },
    /// Show your signing key; the private half is never shown
    #[command(after_help = "Examples:\n  cuebook keys list")]
    List,
    /// Print the public half of your key, so that others can trust it
    #[command(after_help = "Examples:
  cuebook keys export > ada.pem        a colleague runs: cuebook trust add ada.pem --owner Ada")]
    Export,
}

/// `trust`
#[derive(Debug, Subcommand)]
pub enum TrustCommand {
    /// Trust a key
    #[command(after_help = "Examples:
  cuebook trust add ada.pem --owner Ada
  cuebook trust add bob.pem --owner Bob --space project    for people who trust your key, in this project")]
    Add {
        /// A file with a public key in PEM, or - for stdin
        key: PathBuf,
        /// The owner's name
        #[arg(long, value_name = "NAME", default_value = "")]
        owner: String,
        /// The trust store to add it to
        #[arg(long, value_name = "SPACE", default_value = "user")]
        space: OwnSpace,
    },
    /// List the keys of all trust stores, and which of them are in effect
    #[command(after_help = "Examples:\n  cuebook trust list")]
    List,
    /// Stop trusting a key
    #[command(after_help = "Examples:
  cuebook trust remove 4b987fd4e40303ac
  cuebook trust remove 4b98             the start is enough if it matches one key")]
    Remove {
        /// The key's fingerprint, or its start
        fingerprint: String,
        /// The trust store to remove it from
        #[arg(long, value_name = "SPACE", default_value = "user")]
        space: OwnSpace,
    },
}

/// `allow`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook allow                         show all requests, and ask
  cuebook allow hooks.python --yes
  cuebook allow --serve                 let MCP clients of other projects use this one
  cuebook allow --no-sandbox            run the tools that a model calls without the sandbox
  cuebook allow --list --all            the grants of all projects
  cuebook allow --revoke                revoke every grant of this project
  cuebook allow --revoke .env")]
pub struct AllowArgs {
    /// What to grant, such as hooks.python or .env [default: everything that the project requests]
    #[arg(value_name = "SUBJECT")]
    pub subjects: Vec<String>,
    /// Let MCP clients of other projects work in this one
    #[arg(long)]
    pub serve: bool,
    /// Grant without asking
    #[arg(long, short)]
    pub yes: bool,
    /// In this project, run the tools that a model calls without the sandbox
    #[arg(long = "no-sandbox", alias = "unfenced", conflicts_with_all = ["subjects", "list", "revoke"])]
    pub unfenced: bool,
    /// List this project's grants
    #[arg(long, conflicts_with_all = ["subjects", "serve", "yes", "revoke"])]
    pub list: bool,
    /// With --list, list the grants of all projects
    #[arg(long, requires = "list")]
    pub all: bool,
    /// Revoke one grant of this project, or all of them
    #[arg(long, value_name = "SUBJECT", num_args = 0..=1, conflicts_with_all = ["subjects", "serve", "yes"])]
    pub revoke: Option<Option<String>>,
}

/// `sign`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook sign directive deploy/staging
  cuebook sign tool 'deploy/*'          everything in a folder
  cuebook sign knowledge '*'            everything
  cuebook sign directive notes --space user
  cuebook sign config .ai/config/providers/team.yaml")]
pub struct SignArgs {
    /// The type of the items
    #[arg(value_name = "TYPE")]
    pub kind: Signable,
    /// The id of an item, or a pattern; for config, the path of the file
    #[arg(value_name = "ID|GLOB|PATH")]
    pub id: String,
    /// The space of the items
    #[arg(long, value_name = "SPACE", default_value = "project")]
    pub space: OwnSpace,
}

/// `verify`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook verify                            everything in the project and in your space
  cuebook verify directive deploy/staging
  cuebook verify ./downloads/review.md      a file anywhere

Exit code 1 if a signature is missing, invalid or not trusted.")]
pub struct VerifyArgs {
    /// A type (directive, tool, knowledge or skill) and an id, or the path of a file [default: everything]
    #[arg(value_name = "TYPE ID|PATH", num_args = 0..=2)]
    pub what: Vec<String>,
    /// Accept this version of the item although a newer one was used before
    #[arg(long, requires = "what")]
    pub accept_older: bool,
}

/// `search`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook search deploy
  cuebook search 'deploy AND (staging OR test) NOT old' --scope directive
  cuebook search '\"roll back\"' --scope knowledge.ops --limit 3
  cuebook search 'file*' --scope tool.rye.*

A query has words, \"phrases\", wild*cards, AND (optional), OR, NOT and parentheses.")]
pub struct SearchArgs {
    /// The query; an empty query finds everything
    pub query: String,
    /// A type and the start of the ids, as in tool.rye.core [default: all types]
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
    /// Search only this space
    #[arg(long, value_name = "SPACE")]
    pub space: Option<AnySpace>,
    /// The number of results to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// The number of results to skip
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: usize,
    /// The order of the results
    #[arg(long, value_name = "ORDER", default_value = "score")]
    pub sort: Sort,
}

/// The order of the results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// Best match first
    Score,
    /// Last changed first
    Date,
    /// By name
    Name,
}

/// `load`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook load directive deploy/staging
  cuebook load tool rye/bash/bash --to project      a copy that you can edit
  cuebook load skill review                         its SKILL.md
  cuebook load skill review scripts/look.sh         another file of the skill
  cuebook load skill review --to user               a copy of all its files, in ~/.agents/skills")]
pub struct LoadArgs {
    /// The type of the item
    #[arg(value_name = "TYPE")]
    pub kind: Loadable,
    /// Its id
    pub id: String,
    /// A file of a skill [default: SKILL.md]
    #[arg(conflicts_with = "to")]
    pub file: Option<String>,
    /// Load only from this space
    #[arg(long, value_name = "SPACE")]
    pub from: Option<AnySpace>,
    /// Copy it to this space
    #[arg(long, value_name = "SPACE")]
    pub to: Option<OwnSpace>,
    /// Overwrite an existing file
    #[arg(long)]
    pub replace: bool,
}
