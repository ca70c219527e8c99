//! The commands around `cuebook.lock`: `add`, `sync`, `update` and `remove`.

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

The code of a pack runs only after you approve it: cuebook pack approve PACK")]
pub struct AddArgs {
    /// A folder, a .tar.gz, a .zip, or git+https://HOST/REPOSITORY@REVISION#FOLDER
    pub source: String,
    /// Accept the publisher's key with this fingerprint for this package
    #[arg(long, value_name = "FINGERPRINT")]
    pub key: Option<String>,
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
  cuebook remove skill:review --yes      if a pack and a skill have one name")]
pub struct RemoveArgs {
    /// The package
    pub name: String,
    /// Remove without asking
    #[arg(long, short)]
    pub yes: bool,
}
