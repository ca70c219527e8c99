//! `cuebook thread` and `cuebook run`

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, Subcommand};
use cuebook::Result;
use cuebook_hooks::sandbox::Launcher;
use cuebook_run::{Fence, Settings, Status};

use super::{Inputs, Options};

/// Where threads are kept.
#[derive(Debug, Clone, Args)]
pub struct StoreOptions {
    /// Where threads are kept: postgres://…, or the path of a SQLite file; without it, .ai/state/threads.db of the project
    #[arg(long, value_name = "URL|FILE", env = "CUEBOOK_STORE", hide_env_values = true)]
    pub store: Option<String>,
}

/// Where threads are kept, and who answers for the models.
#[derive(Debug, Clone, Args)]
pub struct ThreadOptions {
    /// Where threads are kept.
    #[command(flatten)]
    pub kept: StoreOptions,
    /// The provider to ask, whatever the prompt names; CUEBOOK_PROVIDER is the same for every command
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Play back recorded replies instead of asking a provider
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub replay: Option<PathBuf>,
    /// Record the replies of providers, to be played back later
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Run the tools that a model calls without the sandbox: they can do everything that you can
    #[arg(long)]
    pub unfenced: bool,
}

impl StoreOptions {
    /// The project's folder.
    pub fn project(&self, options: &Options) -> Result<PathBuf> {
        let project = options.spaces()?.project().to_owned();
        Ok(std::path::absolute(&project).unwrap_or(project))
    }

    /// The settings of an engine that asks nobody.
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

/// `run`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook run support.prompty --var question='Where is my parcel?'
  cuebook run review --model gpt-4o --limit turns=5
  cuebook run review --provider local
  cuebook run assistant --tool search=my/search --allow 'rye.execute.tool.my.*'
  cuebook run assistant --record replies.jsonl
  cuebook run assistant --replay replies.jsonl

Any prompt can be run; sections that the model opens are rendered again. cuebook help threads says more.")]
pub struct RunArgs {
    /// The prompt: an id, or the path of its file or folder
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,
    /// What it is rendered with.
    #[command(flatten)]
    pub inputs: Inputs,
    /// The model, instead of the prompt's own: its id, or a tier such as fast
    #[arg(long, value_name = "ID|TIER")]
    pub model: Option<String>,
    /// A limit: turns, tokens, spend, duration_seconds
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    pub limits: Vec<String>,
    /// The item that is executed when the model calls a tool of the prompt
    #[arg(long = "tool", value_name = "NAME=ITEM")]
    pub tools: Vec<String>,
    /// Allow what the prompt's own tools run, as in rye.execute.tool.my.*
    #[arg(long = "allow", value_name = "PATTERN")]
    pub allow: Vec<String>,
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
  cuebook thread list --status running
  cuebook thread tail my-project/run_pipeline/run_pipeline-1739820456123
  cuebook thread resume my-project/run_pipeline/run_pipeline-1739820456123 --limit turns=50

A thread may be named by the end of its name or by its prompt, if that is enough to tell it from others.
cuebook help threads says more.")]
pub enum ThreadCommand {
    /// List threads, the newest first
    List(ThreadListArgs),
    /// Show a thread: what it was started with, what was said, what it used
    Show(ThreadShowArgs),
    /// Follow the events of a thread until it comes to rest
    Tail(ThreadTailArgs),
    /// Stop a thread and those that it started
    Cancel(ThreadArgs),
    /// Go on with a thread that was stopped, failed, or whose process died
    Resume(ThreadResumeArgs),
    /// Run a thread that was registered by another process
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
    /// Only those with this status; may be repeated
    #[arg(long, value_name = "STATUS", value_parser = PossibleValuesParser::new(Status::ALL.map(Status::as_str)))]
    pub status: Vec<String>,
    /// Only those of this directive or prompt
    #[arg(long, value_name = "ID")]
    pub prompt: Option<String>,
    /// Only the children of this thread
    #[arg(long, value_name = "THREAD")]
    pub parent: Option<String>,
    /// At most so many
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

The log is checked before anything of it is shown.")]
pub struct ThreadShowArgs {
    /// Its name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// Show every event
    #[arg(long)]
    pub events: bool,
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
    /// Its name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// Only events behind this number
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    pub after: u64,
    /// Show what there is, and do not wait for more
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

What was cancelled can be resumed.")]
pub struct ThreadArgs {
    /// Its name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// Take it from a process that does not stop it, because you know that the process is gone
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

A prompt's thread (one of a directive does not) asks before it gets its permissions again; without a terminal,
--allow-again is the answer.")]
pub struct ThreadResumeArgs {
    /// Its name
    #[arg(value_name = "THREAD")]
    pub id: String,
    /// Another limit: turns, tokens, spend, spawns, duration_seconds
    #[arg(long = "limit", value_name = "NAME=NUMBER")]
    pub limits: Vec<String>,
    /// Another model
    #[arg(long, value_name = "ID|TIER")]
    pub model: Option<String>,
    /// Do not wait for the thread
    #[arg(long = "async")]
    pub is_async: bool,
    /// Allow a prompt's thread again what it was allowed before, without a question
    #[arg(long)]
    pub allow_again: bool,
    /// Vouch for a log that your log key did not write: of an earlier version, or of another user or machine
    #[arg(long)]
    pub trust_log: bool,
    /// Take it from a process that seems to run it, because you know that the process is gone
    #[arg(long)]
    pub take_over: bool,
    /// Only if its log ends with this event
    #[arg(long, value_name = "NUMBER", hide = true)]
    pub behind: Option<u64>,
    /// What it may do at most: a JSON list of patterns
    #[arg(long, value_name = "PATTERNS", hide = true)]
    pub allowance: Option<String>,
    /// Where threads are kept and who answers.
    #[command(flatten)]
    pub threads: ThreadOptions,
}
