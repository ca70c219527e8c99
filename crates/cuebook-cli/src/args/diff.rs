//! `cuebook diff`

use clap::Args;

use super::Inputs;

/// `diff`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook diff greeting                                changes since the last commit
  cuebook diff HEAD~2:greeting                         changes since two commits ago
  cuebook diff main:greeting feature:greeting --vars inputs.json
  cuebook diff v1.prompty v2.prompty --var topic=tea
  cuebook diff polite/greeting brisk/greeting          two packs
  cuebook diff greeting polite-2.0.tar.gz:greeting     changes of an upgrade

Exit codes: 0 no difference, 1 they differ, 2 the comparison failed.
To read the output, see: cuebook help diff")]
pub struct DiffArgs {
    /// The first version: an id, a path, PACK/ID, REVISION:ID, REVISION:PATH or ARCHIVE:ID
    #[arg(value_name = "A")]
    pub before: String,
    /// The second version [default: for a prompt, its last commit; for REVISION:A, the working copy of A]
    #[arg(value_name = "B")]
    pub after: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt; its tokenizer counts
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
}
