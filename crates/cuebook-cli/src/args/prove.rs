//! The arguments of what tests prompts: `attack`, `test` and `watch`.

use clap::Args;

use super::Inputs;

/// `attack`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook attack                                          every prompt of the library
  cuebook attack support.prompty greeting
  cuebook attack greeting --var 'tools:=[{\"name\": \"grep\"}]'   the shape of a value
  cuebook attack greeting --hooks --json

Each input is driven with role markers, nonces, template syntax, headings, tags, letters that cannot be seen and long
texts, alone and mixed; then all inputs at once. Exit code 1 if anything changed. More: cuebook help testing")]
pub struct AttackArgs {
    /// Prompts or folders; the whole library if none is given, or the prompt that --agent names
    #[arg(value_name = "PROMPT|PATH")]
    pub prompts: Vec<String>,
    /// The values of inputs that are not driven at the moment, and the shapes of those that are.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Let the prompt's hooks and variable providers take part; they run once for each value
    #[arg(long, conflicts_with = "no_hooks")]
    pub hooks: bool,
}

/// `test`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook test                       every case of the library
  cuebook test greeting              the cases of one prompt
  cuebook test prompts/team          everything below a folder
  cuebook test greeting --update     look at what changed, and write it down
  cuebook test --json | jq '.files[].cases[] | select(.passed | not)'

Cases are Markdown: tests.md in a prompt's folder, or NAME.tests.md beside a prompt that is one file. Exit code 1 if a
case fails. The blocks and settings of a case: cuebook help testing")]
pub struct TestArgs {
    /// Prompts, folders or files of cases; the whole library if none is given
    #[arg(value_name = "PROMPT|PATH")]
    pub targets: Vec<String>,
    /// Write down what came out where it is not what was expected, after showing it and asking
    #[arg(long)]
    pub update: bool,
    /// Do not ask
    #[arg(long, requires = "update")]
    pub yes: bool,
    /// Also list prompts that have no cases
    #[arg(long)]
    pub all: bool,
}

/// `watch`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook watch greeting --vars inputs.json
  cuebook watch support.prompty --var question=Why --diff
  cuebook watch greeting --var name=Ada --json      one document per line

Everything counts that the render depends on: the prompt's files, what it includes and extends, packs, overrides, defaults,
cuebook.toml, and the files named here. An error is shown, and it goes on. Ctrl-C ends it.")]
pub struct WatchArgs {
    /// An id, or a path to a file or folder; may be left out if --agent names one
    pub prompt: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Show what is different from the last time, with the origin of every new line, instead of the whole text
    #[arg(long)]
    pub diff: bool,
}
