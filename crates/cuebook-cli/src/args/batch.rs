//! `cuebook batch`

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum};

use super::{Format, Inputs};

/// `batch`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(after_help = "Examples:
  cuebook batch greeting people.csv                                      render each row, as JSON lines
  cuebook batch greeting people.csv --as messages --out greetings.jsonl
  cuebook batch classify tickets.jsonl --run --out answers.jsonl --dry-run
  cuebook batch classify tickets.jsonl --run --out answers.jsonl --limit-spend 5
  cuebook batch classify tickets.csv --map body=ticket --run --model gpt-5-mini --out answers.jsonl
  cuebook batch classify tickets.jsonl --run --judge quality=judges/quality --out answers.jsonl

  cuebook batch classify tickets.jsonl --run --via openai-batch --no-wait --out answers.jsonl

Run the same command again after a crash: Cuebook keeps each answer in a journal beside the output and does not ask for it \
  twice. Exit code 1 if a row has an error. More: cuebook help batch")]
pub struct BatchArgs {
    /// What is done with an output.
    #[command(subcommand)]
    pub command: Option<BatchCommand>,
    /// The prompt: an id, or the path of its file or folder
    #[arg(value_name = "PROMPT", required = true)]
    pub prompt: Option<String>,
    /// The rows: a .csv, .jsonl, .ndjson or .parquet file; each column fills the variable of its name
    #[arg(value_name = "DATA", required = true)]
    pub data: Option<PathBuf>,
    /// Use a column for a variable with another name; repeatable
    #[arg(long = "map", value_name = "COLUMN=VARIABLE")]
    pub columns: Vec<String>,
    /// Ask the model for each row
    #[arg(long)]
    pub run: bool,
    /// Write the rendered prompt: text, messages, wire or wire:NAME [default: text without --run, nothing with --run]
    #[arg(long = "as", value_name = "FORMAT", value_parser = Format::read)]
    pub format: Option<Format>,
    /// The output: a .jsonl or .parquet file [default: JSON lines on stdout; needed for --run]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Check all rows and estimate the cost, but send and write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Ask for the valid rows, even if others are invalid
    #[arg(long, requires = "run")]
    pub keep_going: bool,
    /// Stop before the run costs more than this, in the currency of the provider
    #[arg(long, value_name = "AMOUNT", requires = "run", value_parser = amount)]
    pub limit_spend: Option<f64>,
    /// The order in which rows are asked: that of the file, or rows that begin alike one after the other, for the provider's cache
    #[arg(long, value_name = "ORDER", requires = "run", value_enum, default_value_t = Order::Rows)]
    pub order: Order,
    /// How many requests may wait for an answer at the same time
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = RangedU64ValueParser::<usize>::new().range(1..=512))]
    pub concurrency: usize,
    /// How many threads render [default: one for each processor]
    #[arg(long, value_name = "NUMBER", value_parser = RangedU64ValueParser::<usize>::new().range(1..=256))]
    pub threads: Option<usize>,
    /// The model: its id, or a tier such as fast [default: the prompt's model]
    #[arg(long, value_name = "ID|TIER")]
    pub model: Option<String>,
    /// Use this provider, even if the prompt names another; CUEBOOK_PROVIDER sets it for every command
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Share the rate limit of a key with all processes on this PostgreSQL store: postgres://… [default: with your processes on
    /// this machine]
    #[arg(long, value_name = "URL", env = "CUEBOOK_STORE", hide_env_values = true)]
    pub store: Option<String>,
    /// Ask through the provider's batch interface: later, at half the price
    #[arg(long, value_name = "INTERFACE", requires = "run", value_enum)]
    pub via: Option<Via>,
    /// Submit the jobs, or collect those that are complete, and do not wait for the others
    #[arg(long, requires = "via")]
    pub no_wait: bool,
    /// The seconds between two looks at a job
    #[arg(long, value_name = "SECONDS", requires = "via", default_value = "30", value_parser = amount)]
    pub poll: f64,
    /// A prompt that judges each answer; its outputs become columns that begin with NAME; repeatable
    #[arg(long = "judge", value_name = "[NAME=]PROMPT", requires = "run")]
    pub judges: Vec<String>,
    /// The model of the judges [default: that of each judge's prompt]
    #[arg(long, value_name = "ID|TIER", requires = "judges")]
    pub judge_model: Option<String>,
    /// Put this before the names of the columns that Cuebook adds
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
    /// Record which sentences of which files each row uses, for `batch diff`; --run always does
    #[arg(long, requires = "out")]
    pub sources: bool,
    /// Leave the columns of the data out of the output
    #[arg(long)]
    pub no_inputs: bool,
    /// Values for all rows.
    #[command(flatten)]
    pub inputs: Inputs,
}

/// The batch interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Via {
    /// OpenAI's
    #[value(name = "openai-batch")]
    OpenAi,
    /// Anthropic's
    #[value(name = "anthropic-batch")]
    Anthropic,
}

/// The order in which rows are asked. The output always has the order of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Order {
    /// The order of the file
    Rows,
    /// Rows that begin alike come one after the other
    Prefix,
}

/// What is done with an output.
#[derive(Debug, Clone, Subcommand)]
pub enum BatchCommand {
    /// Report pass rates, agreement, costs and times of an output
    Report(ReportArgs),
    /// Show which rows of two outputs are different, and which sentence of which file caused it
    Diff(DiffOutputsArgs),
}

/// `batch diff`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  cuebook batch diff before.jsonl after.jsonl
  cuebook batch diff before.jsonl after.jsonl --key id
  cuebook batch diff before.jsonl after.jsonl --rows 20
  cuebook batch diff before.jsonl after.jsonl --json

Exit code 1 if the outputs are different, 2 after an error. More: cuebook help batch")]
pub struct DiffOutputsArgs {
    /// The first output: a .jsonl, .csv or .parquet file
    #[arg(value_name = "BEFORE")]
    pub before: PathBuf,
    /// The second output
    #[arg(value_name = "AFTER")]
    pub after: PathBuf,
    /// The column that is the same for the same row in both [default: the number of the row]
    #[arg(long, value_name = "COLUMN")]
    pub key: Option<String>,
    /// A column with verdicts; repeatable [default: the columns of judges]
    #[arg(long = "verdict", value_name = "COLUMN")]
    pub verdicts: Vec<String>,
    /// How many rows of each cause are shown
    #[arg(long, value_name = "NUMBER", default_value_t = 3)]
    pub rows: usize,
    /// The text before the names of the columns that Cuebook added
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
}

/// `batch report`
#[derive(Debug, Clone, Args)]
#[command(after_help = "Examples:
  cuebook batch report answers.jsonl
  cuebook batch report answers.jsonl --verdict label --verdict quality_passed
  cuebook batch report answers.jsonl --html report.html
  cuebook batch report answers.jsonl --json

Each two columns of verdicts are compared: the share of equal rows, and Cohen's kappa with its confidence interval (95 %).")]
pub struct ReportArgs {
    /// The output: a .jsonl, .csv or .parquet file
    #[arg(value_name = "OUTPUT")]
    pub output: PathBuf,
    /// A column with verdicts, of a judge or of people; repeatable [default: columns with few different values]
    #[arg(long = "verdict", value_name = "COLUMN")]
    pub verdicts: Vec<String>,
    /// Also write the report as an HTML page with plots
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// The text before the names of the columns that Cuebook added
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub prefix: String,
}

/// An amount: of money, or of time.
fn amount(text: &str) -> Result<f64, String> {
    let amount = text.trim().parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount >= 0.0);
    amount.ok_or_else(|| "write an amount, as in 2.50".to_owned())
}
