//! `cuebook diff`

use clap::Args;

use super::Inputs;

/// `diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook diff                                         changes in the library since the last commit
  cuebook diff --since main                            changes since another revision
  cuebook diff --since HEAD~2 greeting support         the same for two prompts
  cuebook diff greeting                                one prompt, since the last commit
  cuebook diff HEAD~2:greeting                         one prompt, since two commits ago
  cuebook diff main:greeting feature:greeting --vars inputs.json
  cuebook diff v1.prompty v2.prompty --var topic=tea
  cuebook diff polite/greeting brisk/greeting          two packs
  cuebook diff greeting polite-2.0.tar.gz:greeting     changes of an upgrade

Exit codes: 0 no difference, 1 they differ, 2 the comparison failed.
To read the output, see: cuebook help diff")]
pub struct DiffArgs {
    /// Two versions, each an id, a path, PACK/ID, REVISION:ID, REVISION:PATH or ARCHIVE:ID. One version alone is compared with
    /// the last commit, and REVISION:A with the working copy [default: the whole library]; with --since, prompts
    #[arg(value_name = "A B|PROMPT")]
    pub versions: Vec<String>,
    /// Compare these prompts, or the whole library, with a git revision
    #[arg(long, value_name = "REVISION")]
    pub since: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt; its tokenizer counts the tokens
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
}
