//! The arguments of what tests prompts: `attack`, `test` and `watch`.

use clap::Args;

use super::Inputs;

/// `attack`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook attack                                          every prompt of the library
  cuebook attack support.prompty greeting
  cuebook attack greeting --var 'tools:=[{\"name\": \"grep\"}]'   an example value
  cuebook attack greeting --hooks --json

Cuebook tries role markers, nonces, template syntax, headings, tags, invisible characters and long texts in each input, \
  alone and mixed, then in all inputs at once. Exit code 1 if anything changed. More: cuebook help testing")]
pub struct AttackArgs {
    /// Prompts or folders [default: the prompt of --agent, or the whole library]
    #[arg(value_name = "PROMPT|PATH")]
    pub prompts: Vec<String>,
    /// The values of inputs that are not driven at the moment, and the shapes of those that are.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Also run the prompt's hooks and variable providers, once for each value
    #[arg(long, conflicts_with = "no_hooks")]
    pub hooks: bool,
}

/// `test`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook test                       every case of the library
  cuebook test greeting              the cases of one prompt
  cuebook test prompts/team          every prompt in a folder
  cuebook test greeting --update     review changes, and store them
  cuebook test --json | jq '.files[].cases[] | select(.passed | not)'

Cases are Markdown: tests.md in a prompt's folder, or NAME.tests.md beside a prompt that is one file. Exit code 1 \
  if a case fails. More: cuebook help testing")]
pub struct TestArgs {
    /// Prompts, folders or files of cases [default: the whole library]
    #[arg(value_name = "PROMPT|PATH")]
    pub targets: Vec<String>,
    /// Run only the cases of this name
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,
    /// Replace expected output that differs, after showing the difference and asking
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

Cuebook watches every file that the render uses: the prompt, its includes and parents, packs, overrides, \
  defaults, cuebook.toml, and the files named here. After an error it keeps watching. Ctrl-C stops it.")]
pub struct WatchArgs {
    /// An id, or a path to a file or folder; optional with --agent
    pub prompt: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// Show only what changed since the last render, with the origin of every new line
    #[arg(long)]
    pub diff: bool,
}
