//! `cuebook explain` and `cuebook tokens`

use std::path::PathBuf;

use clap::Args;

use super::Inputs;

/// `explain`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook explain general_system --var agent_name=Rumi
  cuebook explain ./prompts/greeting --vars inputs.json --json
  cuebook explain greeting --vars inputs.json --find 'never reply'    where does this come from?
  cuebook explain greeting --vars inputs.json --at 3:14               and this character?
  cuebook explain greeting --vars inputs.json --html greeting.html    a page for the browser
  cuebook explain greeting --vars inputs.json --svg greeting.svg      a picture for a README

cuebook help explain shows how to read the answers.")]
pub struct ExplainArgs {
    /// An id, or a path to a file or folder; may be left out if --agent names one
    pub prompt: Option<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt, and counts its tokens
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Say where one place of the text came from: a byte from 0, or a line and a column from 1
    #[arg(long, value_name = "OFFSET|LINE:COLUMN", conflicts_with_all = ["find", "html", "svg"])]
    pub at: Option<String>,
    /// Say where every occurrence of this text came from
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["html", "svg"], allow_hyphen_values = true)]
    pub find: Option<String>,
    /// Write a page for the browser that needs nothing besides: to this file, or to stdout
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub html: Option<PathBuf>,
    /// Write an SVG picture of the text and its origins: to this file, or to stdout
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
  cuebook tokens --model gpt-4o                    every prompt of the library, in a row each
  cuebook tokens support.prompty --vars inputs.json --against other.json
  cuebook tokens support.prompty --vars inputs.json --model claude-sonnet-4-5 --json

cuebook help tokens shows how to read the answers.")]
pub struct TokensArgs {
    /// Prompts or folders; the whole library if none is given, or the prompt that --agent names
    #[arg(value_name = "PROMPT|PATH")]
    pub prompts: Vec<String>,
    /// The values.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model that will read the prompt
    #[arg(long, value_name = "ID")]
    pub model: Option<String>,
    /// Render once more with the variables of this JSON or YAML file instead of those of the same name, and say what stays the same
    #[arg(long, value_name = "FILE|-")]
    pub against: Option<PathBuf>,
}
