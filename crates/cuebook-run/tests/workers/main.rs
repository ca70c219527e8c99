//! Workers in processes of their own, with a scripted model: they share the work, and when one is killed the others continue.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]
#![cfg(unix)]

#[path = "../kill/books.rs"]
#[allow(dead_code, reason = "only the audits are needed here")]
mod books;
#[path = "../store/server.rs"]
#[allow(dead_code, reason = "only the address of the server is needed here")]
mod server;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cuebook::items::Spaces;
use cuebook_mock::{Api, Mock, Reply, Request, Script};
use cuebook_run::provider::{Budget, Rate};
use cuebook_run::store::{ClaimLimits, Filter, Record, Store};
use cuebook_run::{
    Engine, Fence, Ignore, Kind, QueueOptions, RunRequest, Settings, Status, Worker, WorkerNote,
    WorkerOptions, WorkerWatch, whole_log,
};
use jiff::Timestamp;
use serde_json::json;
use support::Fixture;

/// What a process of this program is to do.
const JOB: &str = "CUEBOOK_WORKERS_TEST_JOB";
/// Long enough for a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(120);
/// Longer than a server keeps the locks of a process that stopped, which is five seconds.
const LOCKED: Duration = Duration::from_secs(30);

/// How the names of workers with the default lease begin.
const USUAL: &str = "usual";

const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Mark and greet.</description>
    <category>demo</category>
    <model tier="fast" />
    <limits turns="9" tokens="200000" spend="0.5" />
    <permissions><execute><tool>demo.*</tool></execute></permissions>
  </metadata>
  <inputs><input name="who" type="string" required="true">Who</input></inputs>
  <outputs><output name="said" type="string">What was said</output></outputs>
</directive>
```

You greet number {input:who}.
"#;

/// A tool that leaves a line in a file.
const MARK: &str = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/primitives/subprocess\n\
    config:\n  command: /bin/sh\n  args: ['-c', 'echo {mark} >> marks; echo marked {mark}']\n  timeout: 20\n";

/// Marks, and then returns. `open` holds every first answer back.
fn model(open: Arc<AtomicBool>) -> Script {
    Script::answer(move |request: &Request| {
        let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
        if messages.iter().any(|message| message["role"] == "assistant") {
            return Reply::call("r", "directive_return", json!({"said": "done"})).usage(300, 30);
        }
        let text = messages[0].to_string() + &messages.last().unwrap().to_string();
        let who: String =
            text.split("number ").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
        let call = json!({"item_type": "tool", "item_id": "demo/mark", "parameters": {"mark": who}});
        let reply = Reply::call("c", "rye_execute", call).usage(200, 20);
        match open.load(Ordering::SeqCst) {
            true => reply,
            false => reply.first_byte_after(Duration::from_secs(2)),
        }
    })
}

struct Setup {
    world: Fixture,
    mock: Mock,
    place: String,
    engine: Engine,
    open: Arc<AtomicBool>,
}

impl Setup {
    fn new(place: Option<String>) -> Setup {
        let world = Fixture::new();
        let open = Arc::new(AtomicBool::new(false));
        let mock = Mock::start(model(open.clone())).unwrap();
        let folder = world.user().join(".ai/config/providers");
        std::fs::create_dir_all(&folder).unwrap();
        let yaml = mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
        std::fs::write(folder.join("mock.yaml"), yaml).unwrap();
        world.signed("directives/demo/greet.md", GREET).signed("tools/demo/mark.yaml", MARK);
        let place = place.unwrap_or_else(|| world.project().join("threads.db").display().to_string());
        let engine = engine(&world.project(), &world.user(), &place);
        Setup { world, mock, place, engine, open }
    }

    /// The file of the provider gives a budget that is never used up.
    fn add_rate(&self) {
        let file = self.world.user().join(".ai/config/providers/mock.yaml");
        let yaml = std::fs::read_to_string(&file).unwrap();
        std::fs::write(file, format!("{yaml}rate: {{requests: 600000}}\n")).unwrap();
    }

    fn queue(&self, count: usize) {
        let book = self.engine.book().unwrap();
        for who in 0..count {
            let request = RunRequest::new("demo/greet").var("who", who.to_string()).model("mock-model");
            self.engine.queue(&book, &request, &QueueOptions::default(), &Ignore).unwrap();
        }
    }

    /// Starts a worker in a process of its own.
    fn worker(&self, name: &str) -> Process {
        self.worker_at(&self.place, name)
    }

    fn worker_at(&self, place: &str, name: &str) -> Process {
        let [project, user] =
            [self.world.project(), self.world.user()].map(|path| path.display().to_string());
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "helper", "--nocapture"])
            .env(JOB, [project.as_str(), user.as_str(), place, name].join("\n"))
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        Process(child)
    }

    fn store(&self) -> Arc<dyn Store> {
        self.engine.threads(None).unwrap()
    }

    fn all(&self) -> Vec<Record> {
        self.store().list(&Filter::default()).unwrap()
    }

    /// How often each mark was made.
    fn marks(&self) -> BTreeMap<String, usize> {
        let text = std::fs::read_to_string(self.world.project().join("marks")).unwrap_or_default();
        let mut marks = BTreeMap::new();
        for line in text.lines() {
            *marks.entry(line.to_owned()).or_default() += 1;
        }
        marks
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&dyn Store) -> bool) {
        let (began, store) = (Instant::now(), self.store());
        while !is_there(&*store) {
            assert!(began.elapsed() < PATIENCE, "{what}: {:#?}", store.queue_state(None).unwrap());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Checks that every thread is complete, that nothing is lost, and that no recorded answer was asked for again. Returns how
    /// many calls and requests were cut off.
    fn audit(&self, count: usize) -> (usize, usize) {
        let (store, all) = (self.store(), self.all());
        assert_eq!(all.len(), count);
        books::audit(&*store, &all);
        let (mut unknown, mut answers, mut unanswered) = (0, 0, 0);
        for record in &all {
            assert_eq!(record.status, Status::Completed, "{record:#?}");
            books::log_agrees(&*store, record);
            let log = whole_log(&*store, record).unwrap();
            let who = log[0].payload["inputs"]["who"].as_str().unwrap().to_owned();
            let calls = books::results(&log);
            let made = self.marks().get(&who).copied().unwrap_or(0);
            match calls.iter().any(|call| call.unknown) {
                // It may have run, and was not made again.
                true => assert!(made <= 1, "{who} was made {made} times"),
                false => assert_eq!(made, 1, "{who}"),
            }
            unknown += calls.iter().filter(|call| call.unknown).count();
            answers += log.iter().filter(|event| event.kind == Kind::CognitionOut).count();
            let is_cut = |event: &&cuebook_run::Event| {
                event.kind == Kind::Interrupted && event.payload.get("estimated").is_some()
            };
            unanswered += log.iter().filter(is_cut).count();
        }
        let state = store.queue_state(None).unwrap();
        assert_eq!((state.waiting, state.running, state.damaged), (0, 0, 0));
        let asked = self.mock.requests().len();
        // A request that was about to be sent may not have reached the server.
        assert!(
            (answers..=answers + unanswered).contains(&asked),
            "{asked} requests, {answers} answers in the logs, {unanswered} without one"
        );
        (unknown, unanswered)
    }
}

struct Process(Child);

impl Process {
    fn signal(&self, name: &str) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args([format!("-{name}"), pid]).status().unwrap().success());
    }

    fn kill(&mut self) {
        // SIGKILL.
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn engine(project: &Path, user: &Path, place: &str) -> Engine {
    let settings = Settings { store: Some(place.to_owned()), fence: Fence::Off, ..Settings::default() };
    Engine::new(Spaces::new(project, Some(user))).with_settings(settings)
}

fn options(name: &str) -> WorkerOptions {
    WorkerOptions {
        name: name.to_owned(),
        queue: None,
        concurrency: 3,
        limits: ClaimLimits::default(),
        lease: cuebook_run::MIN_LEASE,
        grace: PATIENCE,
        until_empty: false,
    }
}

/// Asks a worker to end when a flag is set.
#[derive(Default)]
struct EndFlag {
    times: AtomicUsize,
    ended: AtomicUsize,
}

impl WorkerWatch for EndFlag {
    fn end_requests(&self) -> usize {
        self.times.load(Ordering::SeqCst)
    }

    fn note(&self, note: &WorkerNote<'_>) {
        match note {
            WorkerNote::Ended(_) => drop(self.ended.fetch_add(1, Ordering::SeqCst)),
            WorkerNote::Lost(id, error) => println!("{id}: {error}"),
            _ => {}
        }
    }
}

/// Not a test: what the workers of the others do.
#[test]
fn helper() {
    let Ok(job) = std::env::var(JOB) else { return };
    let words: Vec<&str> = job.split('\n').collect();
    let [project, user, place, name] = words[..] else { panic!("{words:?}") };
    let engine = engine(&PathBuf::from(project), &PathBuf::from(user), place);
    let lease = if name.starts_with(USUAL) { cuebook_run::DEFAULT_LEASE } else { cuebook_run::MIN_LEASE };
    Worker::new(&engine, WorkerOptions { lease, ..options(name) }).run(&EndFlag::default()).unwrap();
}

/// Two workers share 12 threads. One is killed while it runs some of them, and the other completes all.
fn one_of_two_is_killed(place: Option<String>) {
    let setup = Setup::new(place);
    let mut first = setup.worker("first");
    let _second = setup.worker("second");
    setup.wait_for("both workers", |store| store.queue_state(None).unwrap().workers.len() == 2);
    setup.queue(12);
    let first_pid = first.0.id();
    setup.wait_for("the first worker runs a thread", |_| {
        setup.all().iter().any(|record| {
            record.status == Status::Running
                && record.holder.as_ref().is_some_and(|holder| holder.pid == first_pid)
        })
    });
    first.kill();
    let store = setup.store();
    setup.wait_for("all are complete", |store| {
        let done = store.list(&Filter { status: vec![Status::Completed], ..Filter::default() }).unwrap();
        done.len() == 12
    });
    setup.audit(12);
    let interrupted = setup
        .all()
        .iter()
        .filter(|record| {
            let log = whole_log(&*store, record).unwrap();
            log.iter().any(|event| event.kind == Kind::Interrupted)
        })
        .count();
    assert!(interrupted > 0, "the first worker ran nothing when it was killed");
    setup.wait_for("the dead worker is forgotten", |store| {
        store
            .queue_state(None)
            .unwrap()
            .workers
            .iter()
            .map(|worker| worker.state.name.clone())
            .eq(["second".to_owned()])
    });
}

/// A worker that is stopped gives no sign of life. The other one takes its threads, with the lease that workers have by default.
#[test]
fn a_stopped_worker_is_replaced_on_postgresql() {
    let Some(place) = schema("stopped") else { return };
    // Others look five times in a lease, so they take the threads of a dead worker within ten seconds.
    assert!(cuebook_run::DEFAULT_LEASE * 6 / 5 < Duration::from_secs(10));
    let setup = Setup::new(Some(place));
    setup.add_rate();
    let first = setup.worker("usual first");
    let _second = setup.worker("usual second");
    setup.wait_for("both workers", |store| store.queue_state(None).unwrap().workers.len() == 2);
    setup.queue(6);
    let pid = first.0.id();
    setup.wait_for("the first worker runs a thread", |_| {
        setup.all().iter().any(|record| {
            record.status == Status::Running && record.holder.as_ref().is_some_and(|holder| holder.pid == pid)
        })
    });
    first.signal("STOP");
    setup.wait_for("all are complete", |store| {
        let done = store.list(&Filter { status: vec![Status::Completed], ..Filter::default() }).unwrap();
        done.len() == 6
    });
    setup.audit(6);
    let was_taken = |record: &Record| {
        let log = whole_log(&*setup.store(), record).unwrap();
        log.iter().any(|event| event.kind == Kind::Interrupted && event.payload["worker"] == "usual first")
    };
    assert!(setup.all().iter().any(was_taken), "no thread of the stopped worker was taken");
}

/// The server ends the transaction of a worker that is stopped in the middle of it, and others get the rows that it had locked.
#[test]
fn a_worker_stopped_in_a_transaction_loses_its_locks() {
    let Some(place) = schema("locks") else { return };
    let setup = Setup::new(Some(place));
    setup.open.store(true, Ordering::SeqCst);
    setup.queue(60);
    let mut client = client(&setup.place);
    let mut states = move || -> Vec<String> {
        let statement = "SELECT coalesce(state, '') FROM pg_stat_activity WHERE application_name = 'stopped'";
        client.query(statement, &[]).unwrap().iter().map(|row| row.get(0)).collect()
    };
    let mut is_in_transaction = || {
        let mut states = || {
            let all = states();
            (
                all.iter().any(|state| state == "active"),
                all.iter().any(|state| state == "idle in transaction"),
            )
        };
        let mut now = states();
        while now.0 {
            now = states();
        }
        now.1
    };
    let first = setup.worker_at(&format!("{}&application_name=stopped", setup.place), "first");
    let began = Instant::now();
    loop {
        first.signal("STOP");
        if is_in_transaction() {
            break;
        }
        first.signal("CONT");
        assert!(began.elapsed() < PATIENCE && setup.store().queue_state(None).unwrap().waiting > 0);
        std::thread::sleep(Duration::from_millis(2));
    }
    let began = Instant::now();
    while is_in_transaction() {
        assert!(began.elapsed() < LOCKED, "the stopped worker still has its locks");
        std::thread::sleep(Duration::from_millis(50));
    }
    let _second = setup.worker("second");
    setup.wait_for("all are complete", |store| {
        let done = store.list(&Filter { status: vec![Status::Completed], ..Filter::default() }).unwrap();
        done.len() == 60
    });
    setup.audit(60);
}

/// Where the provider's file gives no budget, its headers do, and all users of the key share it.
fn a_thread_learns_the_rate_from_headers(place: Option<String>) {
    let setup = Setup::new(place);
    let last = || Reply::call("r", "directive_return", json!({"said": "done"})).usage(300, 30);
    let headers = [("x-ratelimit-limit-requests", "1"), ("x-ratelimit-remaining-requests", "0")];
    let limited = headers.into_iter().fold(last(), |reply, (name, value)| reply.header(name, value));
    setup.mock.play(Script::new().reply(last()).reply(limited));
    let folder = setup.world.user().join(".ai/state/rates");
    let budget = || {
        let url = setup.mock.url();
        match setup.place.starts_with("postgres") {
            true => Budget::on_store(setup.store(), &url, "", Rate::default()),
            false => Budget::shared(&setup.world.user().join(".ai"), &url, "", Rate::default()),
        }
    };
    let run = || {
        setup.queue(1);
        let until_empty = WorkerOptions { until_empty: true, ..options("one") };
        Worker::new(&setup.engine, until_empty).run(&EndFlag::default()).unwrap();
    };
    run();
    assert!(!folder.exists(), "nothing is known of the key");
    assert_eq!(budget().take(1, Timestamp::now()), None);
    run();
    assert!(budget().take(1, Timestamp::now()).is_some());
    assert_eq!(folder.exists(), !setup.place.starts_with("postgres"));
    assert!(setup.all().iter().all(|record| record.status == Status::Completed));
}

/// A worker is asked to end while its model answers: the answer is kept, nothing is asked again, and another worker continues.
fn a_worker_ends_without_loss(place: Option<String>) {
    let setup = Setup::new(place);
    setup.add_rate();
    setup.queue(2);
    let ends = EndFlag::default();
    std::thread::scope(|scope| {
        let worker = Worker::new(&setup.engine, WorkerOptions { concurrency: 1, ..options("first") });
        let worker = {
            let ends = &ends;
            scope.spawn(move || worker.run(ends).unwrap())
        };
        assert!(setup.mock.wait_for_requests(1, PATIENCE));
        ends.times.store(1, Ordering::SeqCst);
        worker.join().unwrap();
    });
    // The first answer had come, and its tool had run.
    let statuses = |setup: &Setup| {
        let mut words: Vec<&str> = setup.all().iter().map(|record| record.status.as_str()).collect();
        words.sort_unstable();
        words
    };
    assert_eq!(statuses(&setup), ["interrupted", "queued"]);
    assert_eq!((setup.mock.requests().len(), setup.marks().len()), (1, 1));
    let state = setup.store().queue_state(None).unwrap();
    assert_eq!((state.waiting, state.running, state.workers.len()), (2, 0, 0));
    setup.open.store(true, Ordering::SeqCst);
    let next = EndFlag::default();
    let until_empty = WorkerOptions { until_empty: true, ..options("second") };
    Worker::new(&setup.engine, until_empty).run(&next).unwrap();
    assert_eq!(next.ended.load(Ordering::SeqCst), 2);
    assert_eq!(setup.audit(2), (0, 0));
    assert_eq!(setup.mock.requests().len(), 4, "two turns of two threads");
    // What a provider takes from a key is shared by all on the database, and otherwise by all of the user.
    let file = setup.world.user().join(".ai/state/rates");
    if setup.place.starts_with("postgres") {
        let state: String =
            client(&setup.place).query_one("SELECT state FROM cuebook_rates", &[]).unwrap().get(0);
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        assert_eq!((&state["requests"]["size"], file.exists()), (&json!(600_000.0), false), "{state}");
    } else {
        assert_eq!(std::fs::read_dir(file).unwrap().count(), 1);
    }
}

/// A thread that cannot start has failed, and does not come back.
#[test]
fn a_thread_that_cannot_start_fails() {
    let setup = Setup::new(None);
    setup.queue(1);
    setup.world.plain(".ai/directives/demo/greet.md", GREET);
    let until_empty = || WorkerOptions { until_empty: true, ..options("one") };
    Worker::new(&engine(&setup.world.project(), &setup.world.user(), &setup.place), until_empty())
        .run(&EndFlag::default())
        .unwrap();
    let record = setup.all().remove(0);
    assert_eq!(record.status, Status::Error);
    let error = record.result.unwrap();
    assert!(error["error"]["code"].as_str().is_some_and(|code| code.starts_with("CB2")), "{error:#}");
    assert_eq!(setup.mock.requests().len(), 0);
    assert_eq!(setup.store().queue_state(None).unwrap().waiting, 0);
}

/// What is queued again goes on where it stopped, also with permissions that its user allowed.
#[test]
fn a_thread_that_waits_for_a_limit_can_be_queued_again() {
    let setup = Setup::new(None);
    let book = setup.engine.book().unwrap();
    let request = RunRequest::new("demo/greet").var("who", "7").model("mock-model").limit("turns", 1);
    let id = setup.engine.queue(&book, &request, &QueueOptions::default(), &Ignore).unwrap().id;
    let until_empty = || WorkerOptions { until_empty: true, ..options("one") };
    Worker::new(&setup.engine, until_empty()).run(&EndFlag::default()).unwrap();
    let record = setup.store().record(&id).unwrap().unwrap();
    assert_eq!(record.status, Status::Suspended);
    let again = setup.engine.queue_again(None, &id, false, &QueueOptions::default()).unwrap();
    assert_eq!(again.status, Status::Queued);
    Worker::new(&setup.engine, until_empty()).run(&EndFlag::default()).unwrap();
    // Its limit is the same, so it stops at once, and asks nothing.
    assert_eq!(setup.store().record(&id).unwrap().unwrap().status, Status::Suspended);
    assert_eq!(setup.mock.requests().len(), 1);
}

#[test]
fn one_of_two_is_killed_on_sqlite() {
    one_of_two_is_killed(None);
}

#[test]
fn one_of_two_is_killed_on_postgresql() {
    if let Some(place) = schema("killed") {
        one_of_two_is_killed(Some(place));
    }
}

#[test]
fn a_worker_ends_without_loss_on_sqlite() {
    a_worker_ends_without_loss(None);
}

#[test]
fn a_worker_ends_without_loss_on_postgresql() {
    if let Some(place) = schema("drained") {
        a_worker_ends_without_loss(Some(place));
    }
}

#[test]
fn a_thread_learns_the_rate_from_headers_on_sqlite() {
    a_thread_learns_the_rate_from_headers(None);
}

#[test]
fn a_thread_learns_the_rate_from_headers_on_postgresql() {
    if let Some(place) = schema("learned") {
        a_thread_learns_the_rate_from_headers(Some(place));
    }
}

fn client(place: &str) -> postgres::Client {
    postgres::Client::connect(&format!("{place}&sslmode=disable"), postgres::NoTls).unwrap()
}

/// The address of an empty schema of the server.
fn schema(name: &str) -> Option<String> {
    let url = &server::server()?.url;
    let separator = if url.contains('?') { '&' } else { '?' };
    let schema = format!("cuebook_workers_{}_{name}", std::process::id());
    let plain = format!("{url}{separator}sslmode=disable");
    postgres::Client::connect(&plain, postgres::NoTls)
        .unwrap()
        .batch_execute(&format!("CREATE SCHEMA {schema}"))
        .unwrap();
    Some(format!("{url}{separator}options=-csearch_path%3D{schema}"))
}
