//! The commands around signed items: `keys`, `trust`, `sign`, `verify`, `search` and `load`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use cuebook::items::{ItemType, SpaceKind};

/// The type of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// Something that a model is to do
    Directive,
    /// Something that can be run
    Tool,
    /// Something to know
    Knowledge,
}

/// What can be signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Signable {
    /// Something that a model is to do
    Directive,
    /// Something that can be run
    Tool,
    /// Something to know
    Knowledge,
    /// The file of a provider, or of hooks, below .ai/config
    Config,
}

impl Signable {
    /// The type of item, if it is one.
    pub fn item(self) -> Option<ItemType> {
        match self {
            Signable::Directive => Some(ItemType::Directive),
            Signable::Tool => Some(ItemType::Tool),
            Signable::Knowledge => Some(ItemType::Knowledge),
            Signable::Config => None,
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
    /// What comes with the program
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
    /// Make the key that you sign with, and trust it
    #[command(after_help = "Examples:
  cuebook keys generate --owner Ada
  cuebook keys generate --replace      a new key instead of the one that is there")]
    Generate {
        /// Whose key it is, for those who trust it
        #[arg(long, value_name = "NAME", env = "USER", default_value = "")]
        owner: String,
        /// Put it in the place of the key that is there
        #[arg(long)]
        replace: bool,
    },
    /// Show the key that you sign with; the private half is never shown
    List,
    /// Print the public half of your key, for others to trust
    #[command(after_help = "Examples:
  cuebook keys export > ada.pem        a colleague does: cuebook trust add ada.pem --owner Ada")]
    Export,
}

/// `trust`
#[derive(Debug, Subcommand)]
pub enum TrustCommand {
    /// Trust a key from now on
    #[command(after_help = "Examples:
  cuebook trust add ada.pem --owner Ada
  cuebook trust add bob.pem --owner Bob --space project    for all who trust your key, in this project")]
    Add {
        /// A file with a public key in PEM, or - for stdin
        key: PathBuf,
        /// Whose key it is
        #[arg(long, value_name = "NAME", default_value = "")]
        owner: String,
        /// The trust store that gets it
        #[arg(long, value_name = "SPACE", default_value = "user")]
        space: OwnSpace,
    },
    /// List the keys of all trust stores, and which of them count
    List,
    /// Trust a key no longer
    #[command(after_help = "Examples:
  cuebook trust remove 4b987fd4e40303ac
  cuebook trust remove 4b98             a beginning is enough, if it fits one key")]
    Remove {
        /// The key's fingerprint, or the beginning of it
        fingerprint: String,
        /// The trust store that loses it
        #[arg(long, value_name = "SPACE", default_value = "user")]
        space: OwnSpace,
    },
}

/// `allow`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook allow                         show everything, and ask
  cuebook allow hooks.python --yes
  cuebook allow --serve                 let MCP clients of other projects work here
  cuebook allow --unfenced              tools that a model calls run without the sandbox
  cuebook allow --list --all            the grants of all projects
  cuebook allow --revoke                take back every grant of this project
  cuebook allow --revoke .env")]
pub struct AllowArgs {
    /// What to grant, as in hooks.python or .env; everything that the project asks for if left out
    #[arg(value_name = "SUBJECT")]
    pub subjects: Vec<String>,
    /// Let MCP clients that another project is served to work in this one
    #[arg(long)]
    pub serve: bool,
    /// Grant it without a question
    #[arg(long, short)]
    pub yes: bool,
    /// Let tools that a model calls run without the sandbox in this project
    #[arg(long, conflicts_with_all = ["subjects", "list", "revoke"])]
    pub unfenced: bool,
    /// List what you granted this project
    #[arg(long, conflicts_with_all = ["subjects", "serve", "yes", "revoke"])]
    pub list: bool,
    /// With --list: the grants of all projects
    #[arg(long, requires = "list")]
    pub all: bool,
    /// Take back what you granted this project: a subject, or everything
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
    /// The space that they are in
    #[arg(long, value_name = "SPACE", default_value = "project")]
    pub space: OwnSpace,
}

/// `verify`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook verify                            everything in the project and in your own space
  cuebook verify directive deploy/staging
  cuebook verify ./downloads/review.md      a file that lies anywhere

Exit code 1 if something is not as a trusted key has signed it.")]
pub struct VerifyArgs {
    /// A type and an id, or the path of a file; everything if nothing is given
    #[arg(value_name = "TYPE ID|PATH", num_args = 0..=2)]
    pub what: Vec<String>,
    /// Use this version of the item although a newer one was used before
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

Words, \"phrases\" and wild*cards; AND (which may be left out), OR, NOT and parentheses.")]
pub struct SearchArgs {
    /// What to look for; an empty one finds everything
    pub query: String,
    /// A type and a part of its ids, as in tool.rye.core; all types if nothing is given
    #[arg(long, value_name = "SCOPE")]
    pub scope: Option<String>,
    /// Only this space
    #[arg(long, value_name = "SPACE")]
    pub space: Option<AnySpace>,
    /// How many results to show
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub limit: usize,
    /// How many of the best results to leave out
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub offset: usize,
    /// What comes first
    #[arg(long, value_name = "ORDER", default_value = "score")]
    pub sort: Sort,
}

/// What comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sort {
    /// The best
    Score,
    /// What was changed last
    Date,
    /// By name
    Name,
}

/// `load`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook load directive deploy/staging
  cuebook load tool rye/bash/bash --to project      a copy that can be changed")]
pub struct LoadArgs {
    /// The type of the item
    #[arg(value_name = "TYPE")]
    pub kind: Kind,
    /// Its id
    pub id: String,
    /// Only from this space
    #[arg(long, value_name = "SPACE")]
    pub from: Option<AnySpace>,
    /// Copy it to this space
    #[arg(long, value_name = "SPACE")]
    pub to: Option<OwnSpace>,
    /// Let the copy take the place of another file
    #[arg(long)]
    pub replace: bool,
}
