//! `cuebook worker` and `cuebook thread start`

use std::time::Duration;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};
use jiff::Timestamp;

use super::{RequestArgs, StoreOptions};
use crate::times;

/// How a thread is queued.
#[derive(Debug, Clone, Args)]
pub struct QueueArgs {
    /// Start at this time: 2026-03-01T09:00, 09:00 (the next time it is nine), or with an offset as in 09:00Z
    #[arg(long, value_name = "TIME", conflicts_with = "after", value_parser = times::at)]
    pub at: Option<Timestamp>,
    /// Start after this time, such as 90s, 10m, 2h30m or 3d
    #[arg(long = "in", value_name = "DURATION", value_parser = times::after)]
    pub after: Option<Timestamp>,
    /// Start before threads with a lower number
    #[arg(long, value_name = "NUMBER", default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i64,
    /// The queue: the name that workers use too [default: the project's folder]
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
}

/// `thread start`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook thread start my-project/run_pipeline --var location=Dunedin
  cuebook thread start review --model gpt-4o --limit turns=5 --priority 10
  cuebook thread start report --at 2026-03-01T09:00
  cuebook thread start report --in 2h30m --store postgres://ada@db.example/cuebook

The prompt is rendered now, and a worker calls the model: cuebook worker")]
pub struct ThreadStartArgs {
    /// The prompt or directive: an id, or the path of its file or folder
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,
    /// What runs.
    #[command(flatten)]
    pub request: RequestArgs,
    /// How it is queued.
    #[command(flatten)]
    pub queue: QueueArgs,
    /// Use this provider, even if the prompt names another; CUEBOOK_PROVIDER sets it for every command
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Let a worker that has this option too run the tools without the sandbox
    #[arg(long = "no-sandbox")]
    pub unfenced: bool,
    /// Where threads are kept.
    #[command(flatten)]
    pub threads: StoreOptions,
}

/// `worker`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_help = "Examples:
  cuebook worker
  cuebook worker --store postgres://ada@db.example/cuebook --concurrency 50
  cuebook worker --per-directive 5 --per-key 20 --metrics 9464
  cuebook worker --until-empty
  cuebook worker status

A worker runs the threads that `cuebook thread start` queued. SIGTERM or Ctrl-C ends it without loss; a second one stops what runs. Another worker continues the threads.")]
pub struct WorkerArgs {
    /// What to show instead.
    #[command(subcommand)]
    pub command: Option<WorkerCommand>,
    /// Run at most this many threads at once
    #[arg(long, value_name = "NUMBER", default_value_t = 8, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1000))]
    pub concurrency: usize,
    /// Run at most this many threads of one directive or prompt at once, on all workers together
    #[arg(long, value_name = "NUMBER", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub per_directive: Option<u64>,
    /// Run at most this many threads with one provider key at once, on all workers together
    #[arg(long, value_name = "NUMBER", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub per_key: Option<u64>,
    /// The queue [default: the project's folder]
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// The worker's name in `worker status` [default: the machine's name and the process]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// End when no thread is due and none runs
    #[arg(long)]
    pub until_empty: bool,
    /// Others take the threads over after this many seconds without a sign of life
    #[arg(long, value_name = "SECONDS", default_value = "7", value_parser = seconds_from(2))]
    pub lease: u64,
    /// When asked to end, wait this many seconds for requests and tools that run
    #[arg(long, value_name = "SECONDS", default_value = "30", value_parser = seconds_from(0))]
    pub grace: u64,
    /// Serve metrics for Prometheus at this port of the machine, or at this address
    #[arg(long, value_name = "PORT|ADDRESS")]
    pub metrics: Option<String>,
    /// Run tools without the sandbox, of threads that were queued with --no-sandbox
    #[arg(long = "no-sandbox")]
    pub unfenced: bool,
    /// Where threads are kept.
    #[command(flatten)]
    pub threads: StoreOptions,
}

/// What `cuebook worker` shows.
#[derive(Debug, Subcommand)]
pub enum WorkerCommand {
    /// Show how many threads wait and run, and the workers
    Status(WorkerStatusArgs),
}

/// `worker status`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  cuebook worker status
  cuebook worker status --json
  cuebook worker status --all")]
pub struct WorkerStatusArgs {
    /// The queue [default: the project's folder]
    #[arg(long, value_name = "NAME")]
    pub queue: Option<String>,
    /// Show all your queues in this store
    #[arg(long, conflicts_with = "queue")]
    pub all: bool,
    /// Where threads are kept.
    #[command(flatten)]
    pub threads: StoreOptions,
}

fn seconds_from(least: u64) -> RangedU64ValueParser<u64> {
    RangedU64ValueParser::new().range(least..=86_400)
}

impl WorkerArgs {
    /// The lease.
    pub fn lease(&self) -> Duration {
        Duration::from_secs(self.lease)
    }

    /// How long the worker waits when it is asked to end.
    pub fn grace(&self) -> Duration {
        Duration::from_secs(self.grace)
    }
}
