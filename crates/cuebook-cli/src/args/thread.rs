//! `cuebook thread` and `cuebook run`

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, Subcommand};
use cuebook::Result;
use cuebook_hooks::sandbox::Launcher;
use cuebook_run::{Fence, Settings, Status};

use super::{Inputs, Options, QueueArgs, ThreadStartArgs};

/// Where threads are kept.
#[derive(Debug, Clone, Args)]
pub struct StoreOptions {
    /// The store of threads: postgres://… or the path of a SQLite file [default: .ai/state/threads.db in the project]
    #[arg(long, value_name = "URL|FILE", env = "CUEBOOK_STORE", hide_env_values = true)]
    pub store: Option<String>,
}

/// Where threads are kept, and who answers for the models.
#[derive(Debug, Clone, Args)]
pub struct ThreadOptions {
    /// Where threads are kept.
    #[command(flatten)]
    pub kept: StoreOptions,
    /// Use this provider, even if the prompt names another; CUEBOOK_PROVIDER sets it for every command
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Replay recorded replies instead of calling a provider
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub replay: Option<PathBuf>,
    /// Record the provider's replies, for --replay
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Run the tools that a model calls without the sandbox: they can do everything you can
    #[arg(long = "no-sandbox", alias = "unfenced")]
    pub unfenced: bool,
}

impl StoreOptions {
    /// The project's folder.
    pub fn project(&self, options: &Options) -> Result<PathBuf> {
        let project = options.spaces()?.project().to_owned();
        Ok(std::path::absolute(&project).unwrap_or(project))
    }

    /// The settings of an engine that asks no questions.
    pub fn settings(&self) -> Settings {
        Settings {
            store: self.store.clone(),
            program: std::env::current_exe().ok(),
            launcher: Some(Launcher::this_program()),
            ..Settings::default()
        }
    }
}

impl ThreadOptions {
    /// The project's folder.
    pub fn project(&self, options: &Options) -> Result<PathBuf> {
        self.kept.project(options)
    }

    /// The settings of an engine.
    pub fn settings(&self) -> Settings {
        let whole = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        Settings {
            provider: self.provider.clone(),
            replay: self.replay.as_ref().map(whole),
            record: self.record.as_ref().map(whole),
            fence: if self.unfenced { Fence::Off } else { Fence::Threads },
            ..self.kept.settings()
        }
    }
}

/// The values, model, limits and tools of a thread that runs a prompt.
#[derive(Debug, Args)]
pub struct RequestArgs {
    /// What it is rendered with.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model: its id, or a tier such as fast [default: the prompt's model]
    #[arg(long, value_name = "ID|TIER")]
    pub model: Option<String>,
    /// A limit: turns, tokens, spend, duration_seconds
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    pub limits: Vec<String>,
    /// The item that runs when the model calls a tool of the prompt
    #[arg(long = "tool", value_name = "NAME=ITEM")]
    pub tools: Vec<String>,
    /// Let the prompt's tools run these items, as in rye.execute.tool.my.*
    #[arg(long = "allow", value_name = "PATTERN")]
    pub allow: Vec<String>,
    /// A skill that the model can open
    #[arg(long = "skill", value_name = "ID")]
    pub skills: Vec<String>,
}

/// `run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook run support.prompty --var question='Where is my parcel?'
  cuebook run review --model gpt-4o --limit turns=5
  cuebook run review --provider local
  cuebook run assistant --tool search=my/search --allow 'rye.execute.tool.my.*'
  cuebook run assistant --record replies.jsonl
  cuebook run assistant --replay replies.jsonl

You can run any prompt. More: cuebook help threads")]
pub struct RunArgs {
    /// The prompt: an id, or the path of its file or folder
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,
    /// What runs.
    #[command(flatten)]
    pub request: RequestArgs,
    /// Do not wait for the thread
    #[arg(long = "async")]
    pub is_async: bool,
    /// Where threads are kept and who answers.
    #[command(flatten)]
    pub threads: ThreadOptions,
}

/// `thread`
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  cuebook thread start my-project/run_pipeline --var location=Dunedin
  cuebook thread list --status running
  cuebook thread tail my-project/run_pipeline/run_pipeline-1739820456123
  cuebook thread resume my-project/run_pipeline/run_pipeline-1739820456123 --limit turns=50

You can name a thread by the end of its name or by its prompt, if only one thread matches.
More: cuebook help threads")]
pub enum ThreadCommand {
    /// Queue a prompt or a directive for a worker
    Start(Box<ThreadStartArgs>),
    /// List threads, the newest first
    List(ThreadListArgs),
    /// Show a thread: its start, its messages and what it used
    Show(ThreadShowArgs),
    /// Follow a thread's events until it stops
    Tail(ThreadTailArgs),
    /// Stop a thread and its children
    Cancel(ThreadArgs),
    /// Continue a thread that was stopped, failed, or lost its process
    Resume(ThreadResumeArgs),
    /// Start a new thread from a turn of another one, with another model or prompt
    Fork(ThreadForkArgs),
    /// Run a thread that another process registered
    #[command(hide = true)]
    CarryOut(ThreadResumeArgs),
}

/// `thread list`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook thread list --status running --status suspended
  cuebook thread list --prompt my-project/run_pipeline --most 5
  cuebook thread list --json")]
pub struct ThreadListArgs {
    /// Only threads with this status; repeatable
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(Status::ALL.map(Status::as_str)))]
    pub status: Vec<String>,
    /// Only threads of this directive or prompt
    #[arg(long, value_name = "ID")]
    pub prompt: Option<String>,
    /// Only the children of this thread
    #[arg(long, value_name = "THREAD")]
    pub parent: Option<String>,
    /// Show at most this many
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    pub most: usize,
    /// Where threads are kept.
    #[command(flatten)]
    pub threads: StoreOptions,
}

/// `thread show`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook thread show run_pipeline-1739820456123
  cuebook thread show run_pipeline-1739820456123 --events
  cuebook thread show run_pipeline-1739820456123 --explain
  cuebook thread show run_pipeline-1739820456123 --turn 2 --explain

Cuebook checks the log before it shows anything.")]
pub struct ThreadShowArgs {
    /// The thread's name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// Show every event
    #[arg(long)]
    pub events: bool,
    /// Show where each line of the messages came from: file and line, variable, tool or model
    #[arg(long, conflicts_with = "events")]
    pub explain: bool,
    /// Show the messages that the model got in this turn, from 1
    #[arg(long, value_name = "NUMBER", conflicts_with = "events", value_parser = clap::value_parser!(u32).range(1..))]
    pub turn: Option<u32>,
    /// Where threads are kept.
    #[command(flatten)]
    pub threads: StoreOptions,
}

/// `thread tail`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook thread tail run_pipeline-1739820456123
  cuebook thread tail run_pipeline-1739820456123 --json --after 12")]
pub struct ThreadTailArgs {
    /// The thread's name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// Only events after this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub after: u64,
    /// Show the events so far, and do not wait for more
    #[arg(long)]
    pub no_follow: bool,
    /// Where threads are kept.
    #[command(flatten)]
    pub threads: StoreOptions,
}

/// `thread cancel`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook thread cancel run_pipeline-1739820456123

You can resume a cancelled thread.")]
pub struct ThreadArgs {
    /// The thread's name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// Take the thread over from its process; use this if you know that the process is gone
    #[arg(long)]
    pub take_over: bool,
    /// Where threads are kept.
    #[command(flatten)]
    pub threads: StoreOptions,
}

/// `thread resume`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook thread resume run_pipeline-1739820456123
  cuebook thread resume run_pipeline-1739820456123 --limit turns=50 --limit spend=2
  cuebook thread resume run_pipeline-1739820456123 --model high --async
  cuebook thread resume assistant-1739820456123 --allow-again
  cuebook thread resume run_pipeline-1739820456123 --queued --in 1h

Before a prompt's thread gets its permissions again, Cuebook asks you. Without a terminal, pass --allow-again. \
  A directive's thread does not ask.")]
pub struct ThreadResumeArgs {
    /// The thread's name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// A new limit: turns, tokens, spend, spawns, duration_seconds
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    pub limits: Vec<String>,
    /// Another model
    #[arg(long, value_name = "ID|TIER")]
    pub model: Option<String>,
    /// Do not wait for the thread
    #[arg(long = "async")]
    pub is_async: bool,
    /// Let a worker continue the thread
    #[arg(long = "queued", conflicts_with_all = ["is_async", "limits", "model", "trust_log", "take_over"])]
    pub queued: bool,
    /// How it is queued.
    #[command(flatten)]
    pub queue: QueueArgs,
    /// Give a prompt's thread its earlier permissions again without asking
    #[arg(long)]
    pub allow_again: bool,
    /// Trust a log that your log key did not write: from an earlier version, another user or another machine
    #[arg(long)]
    pub trust_log: bool,
    /// Take the thread over from its process; use this if you know that the process is gone
    #[arg(long)]
    pub take_over: bool,
    /// Resume only if the log ends with this event
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub behind: Option<u64>,
    /// The most it may do: a JSON list of patterns
    #[arg(long, value_name = "PATTERNS", hide = true)]
    pub allowance: Option<String>,
    /// Where threads are kept and who answers.
    #[command(flatten)]
    pub threads: ThreadOptions,
}

/// `thread fork`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook thread fork assistant-1739820456123 --turn 2
  cuebook thread fork assistant-1739820456123 --turn 2 --model gpt-4o
  cuebook thread fork assistant-1739820456123 --turn 1 --prompt assistant_short --var tone=calm

The new thread begins with the messages that the model got in that turn. It has the inputs, limits and permissions of the other \
  thread, which stays as it is. Before it gets the permissions, Cuebook asks you. Without a terminal, pass --allow-again.")]
pub struct ThreadForkArgs {
    /// The thread's name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// The turn to begin with, from 1
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub turn: u32,
    /// Another prompt: its messages replace those of the thread's prompt
    #[arg(long, value_name = "ID")]
    pub prompt: Option<String>,
    /// A variable of the other prompt: NAME=TEXT for text, NAME:=JSON for anything else
    #[arg(long = "var", value_name = "NAME=TEXT|NAME:=JSON", requires = "prompt")]
    pub vars: Vec<String>,
    /// Variables of the other prompt from a JSON or YAML file, or from stdin with -
    #[arg(long = "vars", value_name = "FILE|-", requires = "prompt")]
    pub vars_file: Option<PathBuf>,
    /// Another model
    #[arg(long, value_name = "ID|TIER")]
    pub model: Option<String>,
    /// A new limit: turns, tokens, spend, spawns, duration_seconds
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    pub limits: Vec<String>,
    /// Do not wait for the thread
    #[arg(long = "async")]
    pub is_async: bool,
    /// Give the new thread the permissions of the other one without asking
    #[arg(long)]
    pub allow_again: bool,
    /// Where threads are kept and who answers.
    #[command(flatten)]
    pub threads: ThreadOptions,
}
