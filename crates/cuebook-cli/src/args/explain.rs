//! `cuebook explain` and `cuebook tokens`

use std::path::PathBuf;

use clap::Args;

use super::Inputs;

/// `explain`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook explain general_system --var agent_name=Rumi
  cuebook explain ./prompts/greeting --vars inputs.json --json
  cuebook explain greeting --vars inputs.json --find 'never reply'    the origin of this text
  cuebook explain greeting --vars inputs.json --at 3:14               the origin of one character
  cuebook explain greeting --vars inputs.json --html greeting.html    a page for the browser
  cuebook explain greeting --vars inputs.json --svg greeting.svg      a picture for a README

To read the output, see: cuebook help explain")]
pub struct ExplainArgs {
    /// An id, or a path to a file or folder; optional with --agent
    pub prompt: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt; its tokenizer counts the tokens
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Show the origin of one position: a byte (from 0), or a line and a column (from 1)
    #[arg(long, value_name = "OFFSET|LINE:COLUMN", conflicts_with_all = ["find", "html", "svg"])]
    pub at: Option<String>,
    /// Show the origin of every occurrence of this text
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["html", "svg"], allow_hyphen_values = true)]
    pub find: Option<String>,
    /// Write one self-contained HTML page to this file [default: stdout]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub html: Option<PathBuf>,
    /// Write an SVG picture of the text and its origins to this file [default: stdout]
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-", conflicts_with = "html")]
    pub svg: Option<PathBuf>,
    /// Overwrite a file that `explain` did not write
    #[arg(long)]
    pub force: bool,
}

/// `tokens`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook tokens general_system --var agent_name=Rumi --model gpt-4o
  cuebook tokens --model gpt-4o                    every prompt of the library, one row each
  cuebook tokens support.prompty --vars inputs.json --against other.json
  cuebook tokens support.prompty --vars inputs.json --model claude-sonnet-4-5 --json

To read the output, see: cuebook help tokens")]
pub struct TokensArgs {
    /// Prompts or folders [default: the prompt of --agent, or the whole library]
    #[arg(value_name = "PROMPT|PATH")]
    pub prompts: Vec<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Render again with the variables of this JSON or YAML file, and show what stays the same
    #[arg(long, value_name = "FILE|-")]
    pub against: Option<PathBuf>,
}
