//! The commands around `cuebook.lock`: `add`, `pull`, `push`, `sync`, `update` and `remove`.

use clap::Args;

/// `add`
#[derive(Debug, Args)]
#[command(after_help = "\
A package is a folder with pack.json (a pack) or SKILL.md (a skill). Packs go to user_data/packs, skills to skills.

Examples:
  cuebook add ../courtesy
  cuebook add courtesy-1.0.0.tar.gz
  cuebook add git+https://example.com/team/prompts.git@v1.2.0
  cuebook add git+https://example.com/team/prompts.git@main#skills/review    a folder of a repository
  cuebook add git+file:///srv/prompts@2f1d9c0a4b5e6f708192a3b4c5d6e7f801234567
  cuebook add oci://registry.example.com/team/prompts:1.2.0

CUEBOOK_REGISTRY_AUTH=HOST=USER:PASSWORD in your environment is your login for a private OCI registry.

The code of a pack runs only after you approve it: cuebook pack approve PACK")]
pub struct AddArgs {
    /// A folder, a .tar.gz, a .zip, git+https://HOST/REPOSITORY@REVISION#FOLDER or oci://HOST/REPOSITORY:TAG
    pub source: String,
    /// Accept the publisher's key with this fingerprint for this package
    #[arg(long, value_name = "FINGERPRINT")]
    pub key: Option<String>,
}

/// `pull`
#[derive(Debug, Args)]
#[command(after_help = "\
The prompt becomes prompts/ID/ID.prompty, and cuebook.lock records its version and the hashes of its files.
From then on, a render needs no network. If you pulled it before, the command shows what changes, and asks.

LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in your environment name the server and your keys.

Examples:
  cuebook pull langfuse:movie-critic                   the version with the label production
  cuebook pull langfuse:movie-critic@staging           the version with another label
  cuebook pull langfuse:movie-critic@3                 version 3
  cuebook pull langfuse:team/greeting --as greeting    under another id")]
pub struct PullArgs {
    /// The prompt: langfuse:NAME, langfuse:NAME@LABEL or langfuse:NAME@VERSION
    pub source: String,
    /// The id of the prompt here [default: its name, with `-` for invalid characters]
    #[arg(long = "as", value_name = "ID")]
    pub id: Option<String>,
    /// Only show what the new version changes
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Replace an earlier version without asking
    #[arg(long, short)]
    pub yes: bool,
}

/// `push`
#[derive(Debug, Args)]
#[command(after_help = "\
A push stores a new version. A prompt can have text, variables, messages and conversations.
Anything else is an error, because Langfuse cannot express it.

LANGFUSE_HOST, LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY in your environment name the server and your keys.

Examples:
  cuebook push langfuse:movie-critic movie-critic
  cuebook push langfuse:movie-critic movie-critic --label staging
  cuebook push langfuse:team/greeting ./prompts/greeting --dry-run    print what would be sent")]
pub struct PushArgs {
    /// The name in Langfuse: langfuse:NAME
    pub target: String,
    /// An id, or a path to a file or folder
    pub prompt: String,
    /// A label of the new version, such as production; repeatable
    #[arg(long = "label", value_name = "LABEL")]
    pub labels: Vec<String>,
    /// Print what would be sent, and send nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// `sync`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook sync                install what is missing, and ask before changed files are replaced
  cuebook sync --yes          replace changed files without asking
  cuebook sync --dry-run      only list the packages and their state
  cuebook sync --frozen       change nothing, and fail if anything differs; for CI")]
pub struct SyncArgs {
    /// Change nothing, and fail if a package differs from `cuebook.lock`
    #[arg(long)]
    pub frozen: bool,
    /// Only list the packages and their state
    #[arg(long, conflicts_with = "frozen")]
    pub dry_run: bool,
    /// Replace changed files without asking
    #[arg(long, short, conflicts_with_all = ["frozen", "dry_run"])]
    pub yes: bool,
}

/// `update`
#[derive(Debug, Args)]
#[command(after_help = "\
For each package, it shows first what the new version does differently, and then asks.

Examples:
  cuebook update                 all packages
  cuebook update courtesy
  cuebook update courtesy --source git+https://example.com/team/prompts.git@v2.0.0
  cuebook update --dry-run       only show the differences
  cuebook update --yes           do not ask")]
pub struct UpdateArgs {
    /// Packages; all of them if none is given
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,
    /// Take the package from this source from now on
    #[arg(long, value_name = "SOURCE")]
    pub source: Option<String>,
    /// Only show the differences
    #[arg(long, conflicts_with = "yes")]
    pub dry_run: bool,
    /// Update without asking, also what replaces one of your prompts
    #[arg(long, short)]
    pub yes: bool,
    /// Accept the publisher's key with this fingerprint for this package
    #[arg(long, value_name = "FINGERPRINT")]
    pub key: Option<String>,
}

/// `remove`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook remove courtesy
  cuebook remove skill:review --yes      if packages of several types have one name")]
pub struct RemoveArgs {
    /// The package
    pub name: String,
    /// Remove without asking
    #[arg(long, short)]
    pub yes: bool,
}
