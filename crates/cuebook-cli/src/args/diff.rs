//! `cuebook diff`

use clap::Args;

use super::Inputs;

/// `diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook diff                                         what has changed in the library since the last commit
  cuebook diff --since main                            and since another revision
  cuebook diff --since HEAD~2 greeting support         the same for two prompts
  cuebook diff greeting                                one prompt since the last commit
  cuebook diff HEAD~2:greeting                         and since two commits before
  cuebook diff main:greeting feature:greeting --vars inputs.json
  cuebook diff v1.prompty v2.prompty --var topic=tea
  cuebook diff polite/greeting brisk/greeting          of two packs
  cuebook diff greeting polite-2.0.tar.gz:greeting     what an upgrade would change

Exit codes: 0 both do the same, 1 they differ, 2 they could not be compared.
cuebook help diff shows how to read the answers.")]
pub struct DiffArgs {
    /// Two versions, each an id, a path, PACK/ID, REVISION:ID, REVISION:PATH or ARCHIVE:ID. One alone is compared with what the
    /// last commit has, or REVISION:A with what is here. Without any it is the whole library; with --since these are prompts
    #[arg(value_name = "A B|PROMPT")]
    pub versions: Vec<String>,
    /// Compare these prompts, or the whole library, with what a revision of git has
    #[arg(long, value_name = "REVISION")]
    pub since: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt, and counts its tokens
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
}
