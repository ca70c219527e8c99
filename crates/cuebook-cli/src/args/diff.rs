//! `cuebook diff`

use clap::Args;

use super::Inputs;

/// `diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook diff greeting                                what has changed since the last commit
  cuebook diff HEAD~2:greeting                         and since two commits before
  cuebook diff main:greeting feature:greeting --vars inputs.json
  cuebook diff v1.prompty v2.prompty --var topic=tea
  cuebook diff polite/greeting brisk/greeting          of two packs
  cuebook diff greeting polite-2.0.tar.gz:greeting     what an upgrade would change

Exit codes: 0 both do the same, 1 they differ, 2 they could not be compared.
cuebook help diff shows how to read the answers.")]
pub struct DiffArgs {
    /// The first version: an id, a path, PACK/ID, REVISION:ID, REVISION:PATH or ARCHIVE:ID
    #[arg(value_name = "A")]
    pub before: String,
    /// The second version; without it, A is compared with what the last commit has, or REVISION:A with what is here
    #[arg(value_name = "B")]
    pub after: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt, and counts its tokens
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
}
