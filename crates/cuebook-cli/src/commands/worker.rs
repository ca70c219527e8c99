//! `cuebook worker` and `cuebook thread start`

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use cuebook::error::printable;
use cuebook::items::Spaces;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::store::{ClaimLimits, QueueState, Record, WorkerRow};
use cuebook_run::{
    Engine, Fence, Ignore, QueueOptions, Settings, Status, ThreadId, Watch, Worker, WorkerNote,
    WorkerOptions, WorkerWatch,
};
use serde_json::{Value as Json, json};

use super::run::request;
use crate::args::{
    Options, QueueArgs, ThreadResumeArgs, ThreadStartArgs, WorkerArgs, WorkerCommand, WorkerStatusArgs,
};
use crate::interrupt::Interrupted;
use crate::output::{Outcome, print_json, print_line, print_text, say};
use crate::terminal::{confirm, is_interactive};
use crate::thread_progress;

pub fn start(args: &ThreadStartArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let project = args.threads.project(options)?;
    let settings = Settings {
        provider: args.provider.clone(),
        fence: if args.unfenced { Fence::Off } else { Fence::Threads },
        ..args.threads.settings()
    };
    let engine = Engine::new(Spaces::of_project(&project)).with_settings(settings);
    let request = request(&book, args.prompt.as_deref(), &args.request, false, options)?;
    let record = engine.queue(&book, &request, &how(&args.queue), &Ignore)?;
    queued(&record, &args.queue, options)
}

/// Queues a thread that rests.
pub fn queue_again(engine: &Engine, record: &Record, args: &ThreadResumeArgs, options: &Options) -> Outcome {
    let queue = |allow| engine.queue_again(None, &record.id, allow, &how(&args.queue));
    let mut again = queue(args.allow_again);
    if let Err(error) = &again
        && error.code() == Code::AskAgain
        && is_interactive()
    {
        if !confirm(&format!("{}. Allow this again?", error.diagnostic().message), "--allow-again")? {
            return Ok(ExitCode::FAILURE);
        }
        again = queue(true);
    }
    queued(&again?, &args.queue, options)
}

/// Refuses options of the queue for a thread that is not queued.
pub fn refuse_unqueued(args: &ThreadResumeArgs) -> Result<()> {
    let QueueArgs { at, after, priority, queue } = &args.queue;
    let given = [
        ("--at", at.is_some()),
        ("--in", after.is_some()),
        ("--priority", *priority != 0),
        ("--queue", queue.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let diagnostic =
                Diagnostic::new(Code::BadInput, format!("{option} is for a thread that is queued"))
                    .hint(format!("add --queued, or leave {option} out"));
            Err(Error::new(ErrorKind::Usage, diagnostic))
        }
        None => Ok(()),
    }
}

fn how(args: &QueueArgs) -> QueueOptions {
    QueueOptions { queue: args.queue.clone(), priority: args.priority, due_at: args.at.or(args.after) }
}

/// Says which thread was queued: its name on stdout, what comes next on stderr.
fn queued(record: &Record, args: &QueueArgs, options: &Options) -> Outcome {
    let due = args.at.or(args.after).map(|due| due.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    if options.json {
        print_line(&json!({
            "status": record.status.as_str(),
            "thread_id": record.id.as_str(),
            "priority": args.priority,
            "due_at": due,
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    print_text(&format!("{}\n", record.id))?;
    match due {
        Some(due) => say(format_args!("queued; a worker starts it at {due}")),
        None => say("queued; a worker starts it: cuebook worker"),
    }
    Ok(ExitCode::SUCCESS)
}

pub fn run(args: &WorkerArgs, options: &Options) -> Outcome {
    if let Some(WorkerCommand::Status(args)) = &args.command {
        return status(args, options);
    }
    let project = args.threads.project(options)?;
    let book: Book = Options { root: Some(project.clone()), ..options.clone() }.book()?;
    let engine = |fence| {
        let settings = Settings { fence, ..args.threads.settings() };
        Engine::new(Spaces::of_project(&project)).with_settings(settings)
    };
    let sandboxed = engine(Fence::Threads);
    let unsandboxed = args.unfenced.then(|| engine(Fence::Off));
    let mut worker = Worker::new(&sandboxed, worker_options(args)).book(&book);
    if let Some(unsandboxed) = &unsandboxed {
        worker = worker.unsandboxed(unsandboxed);
    }
    if let Some(address) = &args.metrics {
        let listener = cuebook_serve::listen(address)?;
        let address = listener.local_addr()?;
        say(format_args!("metrics: http://{address}/metrics"));
        worker = worker.metrics_at(listener);
    }
    let reporter = Reporter { signals: Interrupted::new(), json: options.json, trouble: Mutex::default() };
    worker.run(&reporter)?;
    Ok(ExitCode::SUCCESS)
}

fn worker_options(args: &WorkerArgs) -> WorkerOptions {
    let name = || {
        let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
        let host = match host.trim() {
            "" => "worker",
            host => host,
        };
        format!("{host}-{}", std::process::id())
    };
    WorkerOptions {
        name: args.name.clone().unwrap_or_else(name),
        queue: args.queue.clone(),
        concurrency: args.concurrency,
        limits: ClaimLimits { per_prompt: args.per_directive, per_key: args.per_key },
        lease: args.lease(),
        grace: args.grace(),
        until_empty: args.until_empty,
    }
}

/// Says what a worker does: lines for people on stderr, or JSON on stdout.
struct Reporter {
    signals: Interrupted,
    json: bool,
    /// The last trouble with the store, and when it was reported.
    trouble: Mutex<Option<(String, Instant)>>,
}

/// How often the same trouble is reported.
const TROUBLE: Duration = Duration::from_secs(30);

impl Reporter {
    fn line(&self, text: &str, json: impl FnOnce() -> Json) {
        match self.json {
            // Who does not read it does not need it.
            true => drop(print_line(&json())),
            false => say(text),
        }
    }

    fn trouble(&self, error: &Error) {
        let message = error.diagnostic().message.clone();
        let mut trouble = self.trouble.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if trouble.as_ref().is_some_and(|(before, at)| *before == message && at.elapsed() < TROUBLE) {
            return;
        }
        *trouble = Some((message.clone(), Instant::now()));
        drop(trouble);
        say(format_args!("warning: {}; the worker tries again", printable(&message)));
    }
}

impl WorkerWatch for Reporter {
    fn end_requests(&self) -> usize {
        match (self.signals.cancelled(), self.signals.impatient()) {
            (_, true) => 2,
            (true, false) => 1,
            (false, false) => 0,
        }
    }

    fn note(&self, note: &WorkerNote<'_>) {
        let named = |event: &str, id: &ThreadId| json!({"event": event, "thread_id": id.as_str()});
        match note {
            WorkerNote::Took(id) => {
                self.line(&format!("took {}", printable(id.as_str())), || named("took", id))
            }
            WorkerNote::Ended(finished) => {
                let reported = finished.to_json();
                let mut text = thread_progress::summary(
                    finished.id.as_str(),
                    finished.status.as_str(),
                    reported.get("cost"),
                );
                if let Some(error) =
                    finished.error.as_ref().filter(|_| finished.status != Status::Interrupted)
                {
                    let _ = write!(text, "; {}: {}", error.code(), printable(&error.diagnostic().message));
                }
                self.line(&text, || {
                    let mut json = named("ended", &finished.id);
                    json["status"] = finished.status.as_str().into();
                    json["cost"] = reported["cost"].clone();
                    json
                });
            }
            WorkerNote::Lost(id, error) => {
                let message = printable(&error.diagnostic().message).into_owned();
                self.line(&format!("cannot run {}: {message}", printable(id.as_str())), || {
                    let mut json = named("not_run", id);
                    json["error"] = error.to_json()["error"].clone();
                    json
                });
            }
            WorkerNote::TookOver(ids) => {
                let names: Vec<&str> = ids.iter().map(ThreadId::as_str).collect();
                let text = format!("took over from a dead worker: {}", printable(&names.join(", ")));
                self.line(&text, || json!({"event": "took_over", "thread_ids": names}));
            }
            WorkerNote::Draining(running) => {
                let text = format!("ending; {running} running threads stop before their next request");
                self.line(&text, || json!({"event": "draining", "running": running}));
            }
            WorkerNote::Trouble(error) => self.trouble(error),
            _ => {}
        }
    }
}

fn status(args: &WorkerStatusArgs, options: &Options) -> Outcome {
    let project = args.threads.project(options)?;
    let engine = Engine::new(Spaces::of_project(&project)).with_settings(args.threads.settings());
    let state = queue_state(&engine, args)?;
    if options.json {
        print_json(&state.to_json())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut text =
        format!("waiting {}, scheduled {}, running {}", state.waiting, state.scheduled, state.running);
    if let Some(wait) = state.oldest_wait {
        let _ = write!(text, "; the oldest waits {}", length(wait));
    }
    if let Some(due) = state.next_due {
        let _ = write!(text, "; the next is due at {}", due.strftime("%Y-%m-%dT%H:%M:%SZ"));
    }
    text.push('\n');
    if state.damaged > 0 {
        let _ =
            writeln!(text, "{} rows were changed by another program, and no worker runs them", state.damaged);
    }
    for worker in &state.workers {
        text.push_str(&line(worker));
    }
    print_text(&text)?;
    if state.workers.is_empty() {
        say("no worker runs; start one with cuebook worker");
    }
    Ok(ExitCode::SUCCESS)
}

fn queue_state(engine: &Engine, args: &WorkerStatusArgs) -> Result<QueueState> {
    let store = engine.threads_so_far(None)?;
    if engine.missing_store(None)?.is_some() {
        return Ok(QueueState::default());
    }
    let queue = match &args.queue {
        Some(queue) => queue.clone(),
        None => engine.queue_name(None)?,
    };
    store.queue_state((!args.all).then_some(queue.as_str()))
}

fn line(worker: &WorkerRow) -> String {
    let state = &worker.state;
    let how = match (worker.alive, state.draining) {
        (false, _) => "dead",
        (true, true) => "ending",
        (true, false) => "alive",
    };
    format!("{how:<7} {:>3} of {:<4} {}\n", worker.running, state.concurrency, printable(&state.name))
}

/// A time in words.
fn length(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..120 => format!("{seconds} s"),
        seconds @ ..7200 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
