//! Workers on one PostgreSQL: turns per second, what a parked thread needs in the store, and a fleet whose workers are killed.
//!
//! `CUEBOOK_TEST_POSTGRES` names the server. The model is a scripted server at a port of this machine, and everything runs on this
//! machine: the figures show the shape of the curve and what limits it, not what many machines can do.

use std::error::Error;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cuebook::items::Spaces;
use cuebook_mock::{Mock, Reply, Script};
use cuebook_run::store::{ClaimLimits, Filter};
use cuebook_run::{
    DEFAULT_GRACE, Engine, Ignore, Kind, MIN_LEASE, Money, QueueOptions, RunRequest, Settings, Status,
    Worker, WorkerOptions, WorkerWatch, whole_log,
};
use postgres::{Client, NoTls};
use serde_json::json;

use super::{load, processor};
use crate::threads::TestProject;

/// The word that makes a copy of this program a worker.
const WORD: &str = "--worker";
/// Where the server is.
pub const SERVER: &str = "CUEBOOK_TEST_POSTGRES";
/// Turns of one thread.
const TURNS: usize = 5;
/// How many threads each worker runs at once.
const CONCURRENCY: usize = 4;
/// How long a row may take.
const PATIENCE: Duration = Duration::from_secs(900);

struct Never;

impl WorkerWatch for Never {
    fn end_requests(&self) -> usize {
        0
    }
}

/// If this copy of the program is a worker, is that and returns `true`.
pub fn be_a_worker() -> bool {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, project, user, name] = &words[..] else { return false };
    if word != WORD {
        return false;
    }
    let store = std::env::var(cuebook_run::STORE).ok();
    let engine = Engine::new(Spaces::new(Path::new(project), Some(Path::new(user))))
        .with_settings(Settings { store, ..Settings::default() });
    let options = WorkerOptions {
        name: name.clone(),
        queue: None,
        concurrency: CONCURRENCY,
        limits: ClaimLimits::default(),
        lease: MIN_LEASE,
        grace: DEFAULT_GRACE,
        until_empty: false,
    };
    if let Err(error) = Worker::new(&engine, options).run(&Never) {
        eprintln!("{error}");
    }
    true
}

/// How much is measured.
pub struct Sizes {
    /// Threads of each rate.
    pub threads: usize,
    /// Threads that wait for a person.
    pub parked: usize,
    /// Threads of the fleet whose workers are killed.
    pub fleet: usize,
    /// The time between two kills.
    pub kill: Duration,
}

impl Default for Sizes {
    fn default() -> Sizes {
        Sizes { threads: 200, parked: 10_000, fleet: 10_000, kill: Duration::from_secs(10) }
    }
}

/// Prints the rows.
pub fn run(url: &str, sizes: &Sizes) -> Result<(), Box<dyn Error>> {
    println!(
        "workers: turns per second on one PostgreSQL; {TURNS} turns a thread, {CONCURRENCY} threads a worker"
    );
    for workers in [1, 2, 4, 8] {
        rate(url, workers, sizes.threads)?;
    }
    parked(url, sizes.parked)?;
    fleet(url, sizes.fleet, sizes.kill)
}

/// A schema, a project and a model.
struct Setup {
    url: String,
    schema: String,
    place: TestProject,
    mock: Mock,
    engine: Engine,
}

impl Setup {
    fn new(server: &str, name: &str, calls: usize) -> Result<Setup, Box<dyn Error>> {
        let schema = format!("cuebook_bench_{}_{name}", std::process::id());
        let separator = if server.contains('?') { '&' } else { '?' };
        let plain = format!("{server}{separator}sslmode=disable");
        Client::connect(&plain, NoTls)?.batch_execute(&format!("CREATE SCHEMA {schema}"))?;
        let url = format!("{plain}&options=-csearch_path%3D{schema}");
        let script = Script::answer(move |asked| {
            let messages = asked.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
            let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
            let call =
                json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "true"}});
            let reply = match turn {
                turn if turn >= calls => Reply::call("r", "directive_return", json!({"greeting": "Hello"})),
                _ => Reply::call(format!("c{turn}"), "rye_execute", call),
            };
            reply.usage(100, 10)
        });
        let mock = Mock::start(script)?;
        let place = TestProject::new(&mock)?;
        let settings = Settings { store: Some(url.clone()), ..Settings::default() };
        let engine = Engine::new(place.spaces()).with_settings(settings);
        Ok(Setup { url, schema, place, mock, engine })
    }

    fn queue(&self, count: usize, turns: Option<usize>) -> Result<Duration, Box<dyn Error>> {
        let book = self.engine.book()?;
        let began = Instant::now();
        for number in 0..count {
            let mut request = RunRequest::new("bench/greet").var("who", format!("Ann {number}"));
            if let Some(turns) = turns {
                request = request.limit("turns", turns);
            }
            self.engine.queue(&book, &request, &QueueOptions::default(), &Ignore)?;
        }
        Ok(began.elapsed())
    }

    fn worker(&self, name: usize) -> Result<WorkerProcess, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORD).arg(self.place.project.path()).arg(self.place.user.path()).arg(format!("w{name}"));
        command.env(cuebook_run::STORE, &self.url).stdin(Stdio::null());
        Ok(WorkerProcess(command.spawn()?))
    }

    /// Waits until nothing waits or runs, and does something in between.
    fn finish(&self, mut between: impl FnMut() -> Result<(), Box<dyn Error>>) -> Result<(), Box<dyn Error>> {
        let (store, began) = (self.engine.threads(None)?, Instant::now());
        loop {
            let state = store.queue_state(None)?;
            if state.waiting + state.running == 0 {
                return Ok(());
            }
            if began.elapsed() > PATIENCE {
                return Err(format!("not done: {}", state.to_json()).into());
            }
            between()?;
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn client(&self) -> Result<Client, Box<dyn Error>> {
        Ok(Client::connect(&self.url, NoTls)?)
    }
}

impl Drop for Setup {
    fn drop(&mut self) {
        if let Ok(mut client) = self.client() {
            let _ = client.batch_execute(&format!("DROP SCHEMA {} CASCADE", self.schema));
        }
    }
}

struct WorkerProcess(Child);

impl WorkerProcess {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn rate(url: &str, workers: usize, threads: usize) -> Result<(), Box<dyn Error>> {
    let setup = Setup::new(url, &format!("rate{workers}"), TURNS - 1)?;
    let queued = setup.queue(threads, None)?;
    let shared = || (processor::of_all("postgres"), processor::of(std::process::id()));
    let before = shared();
    let running: Vec<WorkerProcess> =
        (0..workers).map(|name| setup.worker(name)).collect::<Result<_, Box<dyn Error>>>()?;
    setup.finish(|| Ok(()))?;
    let requests = setup.mock.requests();
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
        return Err("no request came".into());
    };
    let took = last.at.saturating_duration_since(first.at).as_secs_f64();
    println!(
        "{workers:>3} workers {:>7.0} turns/s  ({} turns in {took:.1} s; queued {:.0} threads/s)  load {}",
        requests.len() as f64 / took,
        requests.len(),
        threads as f64 / queued.as_secs_f64(),
        load()
    );
    let after = shared();
    let between = |before: Option<f64>, after: Option<f64>| Some(after? - before?);
    let own: Option<f64> = running.iter().map(|worker| processor::with_children(worker.0.id())).sum();
    let shown = |seconds: Option<f64>| {
        seconds.map_or_else(
            || "unknown".to_owned(),
            |seconds| format!("{:.2} ms", seconds * 1e3 / requests.len() as f64),
        )
    };
    println!(
        "            processor time of a turn: PostgreSQL {}, workers with tools {}, the mock and this program {}",
        shown(between(before.0, after.0)),
        shown(own),
        shown(between(before.1, after.1)),
    );
    Ok(())
}

/// Threads that have made two turns and wait for a person.
fn parked(url: &str, threads: usize) -> Result<(), Box<dyn Error>> {
    let setup = Setup::new(url, "parked", TURNS)?;
    setup.queue(threads, Some(2))?;
    let bytes = |setup: &Setup| -> Result<Vec<(String, i64)>, Box<dyn Error>> {
        let mut client = setup.client()?;
        let mut sizes = Vec::new();
        for table in ["cuebook_threads", "cuebook_events", "cuebook_queue"] {
            client.batch_execute(&format!("VACUUM FULL {table}"))?;
            let row = client.query_one(&format!("SELECT pg_total_relation_size('{table}')"), &[])?;
            sizes.push((table.to_owned(), row.get(0)));
        }
        Ok(sizes)
    };
    let show = |what: &str, sizes: &[(String, i64)]| {
        let each = |bytes: i64| bytes as f64 / threads as f64 / 1000.0;
        let parts: Vec<String> =
            sizes.iter().map(|(table, bytes)| format!("{table} {:.1}", each(*bytes))).collect();
        let all: i64 = sizes.iter().map(|(_, bytes)| bytes).sum();
        println!("{threads} {what}: {:.1} kB each ({})  load {}", each(all), parts.join(", "), load());
    };
    show("queued threads", &bytes(&setup)?);
    let workers: Vec<WorkerProcess> = (0..4).map(|name| setup.worker(name)).collect::<Result<_, _>>()?;
    setup.finish(|| Ok(()))?;
    drop(workers);
    let store = setup.engine.threads(None)?;
    let parked = store.list(&Filter { status: vec![Status::Suspended], ..Filter::default() })?.len();
    if parked != threads {
        return Err(format!("{parked} of {threads} threads are parked").into());
    }
    show("parked threads after two turns", &bytes(&setup)?);
    let mut client = setup.client()?;
    for row in client.query(
        "SELECT kind, count(*), avg(octet_length(payload))::bigint FROM cuebook_events GROUP BY kind ORDER BY 3 DESC",
        &[],
    )? {
        let (kind, count, bytes): (String, i64, i64) = (row.get(0), row.get(1), row.get(2));
        println!("    {kind:<24} {:>4.1} a thread, {bytes:>6} bytes each", count as f64 / threads as f64);
    }
    Ok(())
}

/// Four workers, one of which is killed again and again. Nothing may be lost, and every sum must be exact.
fn fleet(url: &str, threads: usize, every: Duration) -> Result<(), Box<dyn Error>> {
    let setup = Setup::new(url, "fleet", TURNS - 1)?;
    setup.queue(threads, None)?;
    let began = Instant::now();
    let mut workers: Vec<WorkerProcess> = (0..4).map(|name| setup.worker(name)).collect::<Result<_, _>>()?;
    let (mut killed, mut last) = (0_usize, Instant::now());
    setup.finish(|| {
        if last.elapsed() >= every {
            let index = killed % workers.len();
            if let Some(worker) = workers.get_mut(index) {
                worker.kill();
                killed += 1;
                *worker = setup.worker(killed + 3)?;
            }
            last = Instant::now();
        }
        Ok(())
    })?;
    let took = began.elapsed().as_secs_f64();
    drop(workers);
    let store = setup.engine.threads(None)?;
    let all = store.list_accounts(&Filter::default())?;
    let (mut answers, mut unanswered, mut wrong) = (0, 0, 0);
    for (record, account) in &all {
        let log = whole_log(&*store, record)?;
        let spent: Money = log.iter().map(counted).sum();
        let is_right = record.status == Status::Completed
            && account.spent == spent
            && account.held == Money::ZERO
            && account.settled;
        wrong += usize::from(!is_right);
        answers += log.iter().filter(|event| event.kind == Kind::CognitionOut).count();
        let is_cut = |event: &&cuebook_run::Event| {
            event.kind == Kind::Interrupted && event.payload.get("estimated").is_some()
        };
        unanswered += log.iter().filter(is_cut).count();
    }
    let asked = setup.mock.requests().len();
    println!(
        "fleet: {} threads on 4 workers, {killed} killed, {took:.0} s: {} lost or wrong; {answers} answers recorded, \
         {unanswered} requests cut off by kills, {asked} requests reached the model  load {}",
        all.len(),
        wrong + threads.saturating_sub(all.len()),
        load()
    );
    match wrong == 0 && all.len() == threads && (answers..=answers + unanswered).contains(&asked) {
        true => Ok(()),
        false => Err("threads were lost, sums are wrong, or an answer was requested twice".into()),
    }
}

/// What an event says was spent.
fn counted(event: &cuebook_run::Event) -> Money {
    let payload = &event.payload;
    match event.kind {
        Kind::CognitionOut => {
            let usage = |name: &str| payload["usage"][name].as_i64().unwrap_or(0);
            // A dollar for a million tokens that are read, ten for those that are written.
            Money::from_nanos(usage("inputTokens") * 1_000 + usage("outputTokens") * 10_000)
        }
        Kind::Interrupted | Kind::Retry => {
            Money::from_units(payload["estimated"]["spend"].as_f64().unwrap_or(0.0))
        }
        Kind::CognitionPartial => Money::from_units(payload["counted_spend"].as_f64().unwrap_or(0.0)),
        _ => Money::ZERO,
    }
}
