//! A long run in a real process that is killed after each of its events, and right before each of its writes. A caller that takes it up
//! finds everything that was written, repeats nothing that may have happened, and comes to the same end.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]
#![cfg(unix)]

#[path = "../store/server.rs"]
#[allow(dead_code, reason = "only the address of the server is needed here")]
mod server;
#[path = "../support/mod.rs"]
mod support;

mod books;
mod model;

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cuebook::items::Spaces;
use cuebook_mock::{Api, Mock};
use cuebook_run::store::{Filter, Record, Store};
use cuebook_run::{
    Activity, Engine, ExecuteRequest, Fence, Ignore, Kind, Resume, Settings, Status, ThreadId, ThreadRun,
    Watch, whole_log,
};
use serde_json::json;
use support::Fixture;

/// What a process of this program is to do.
const JOB: &str = "CUEBOOK_KILL_TEST_JOB";
/// Begins the lines that it says.
const SAYS: &str = "@@";

const ROOT: &str = r#"# Root

```xml
<directive name="root" version="1.0.0">
  <metadata>
    <description>Mark, and have somebody else mark.</description>
    <category>demo</category>
    <model tier="fast" />
    <limits turns="20" tokens="200000" spend="0.5" />
    <permissions><execute><tool>demo.*</tool><directive>demo.*</directive></execute></permissions>
    <hooks>
      <hook id="step" event="after_step">
        <action primary="execute" item_type="tool" item_id="demo/mark"><param name="mark">h${cost.turns}</param></action>
      </hook>
    </hooks>
  </metadata>
  <outputs><output name="said" type="string">What was said</output></outputs>
</directive>
```

You are the root.
"#;

const KID: &str = r#"# Kid

```xml
<directive name="kid" version="1.0.0">
  <metadata>
    <description>Mark.</description>
    <category>demo</category>
    <model tier="fast" />
    <permissions><execute><tool>demo.*</tool></execute></permissions>
  </metadata>
  <outputs><output name="said" type="string">What was said</output></outputs>
</directive>
```

You are the kid.
"#;

/// A tool that leaves a line in a file.
const MARK: &str = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/primitives/subprocess\n\
    config:\n  command: /bin/sh\n  args: ['-c', 'echo {mark} >> marks; echo marked {mark}']\n  timeout: 20\n";

/// The marks that its hook makes, after each turn with calls that does not return.
const HOOKS: &[&str] = &["h2", "h3", "h4"];

/// When the process is to die.
#[derive(Debug, Clone, Copy, PartialEq)]
enum When {
    /// Right after this event was written, counted over all threads.
    After(usize),
    /// Right before the write that follows the one with this event, when everything that comes before it has happened.
    Before(usize),
    Never,
}

struct Setup {
    world: Fixture,
    mock: Mock,
    model: model::Model,
    place: String,
    engine: Engine,
}

impl Setup {
    fn new(place: Option<String>) -> Setup {
        let world = Fixture::new();
        let model = model::Model::default();
        let mock = Mock::start(model.script()).unwrap();
        let folder = world.user().join(".ai/config/providers");
        std::fs::create_dir_all(&folder).unwrap();
        let yaml = mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
        std::fs::write(folder.join("mock.yaml"), yaml).unwrap();
        world.signed("directives/demo/root.md", ROOT).signed("directives/demo/kid.md", KID);
        world.signed("tools/demo/mark.yaml", MARK);
        let place = place.unwrap_or_else(|| world.project().join("threads.db").display().to_string());
        let engine = engine(&world.project(), &world.user(), &place);
        Setup { world, mock, model, place, engine }
    }

    /// How often each mark was made.
    fn marks(&self, mark: &str) -> usize {
        let text = std::fs::read_to_string(self.world.project().join("marks")).unwrap_or_default();
        text.lines().filter(|line| *line == mark).count()
    }

    fn threads(&self) -> (std::sync::Arc<dyn Store>, Vec<Record>) {
        let store = self.engine.threads(None).unwrap();
        let mut all = store.list(&Filter::default()).unwrap();
        all.reverse();
        (store, all)
    }

    /// Runs the root in a process of its own until that dies; says `false` if it came to its end before.
    fn run(&self, when: When) -> bool {
        self.run_or_resume("", when)
    }

    /// The same, or takes a thread up there.
    fn run_or_resume(&self, id: &str, when: When) -> bool {
        let mode = match when {
            When::After(count) => format!("after {count}"),
            When::Before(count) => format!("before {count}"),
            When::Never => "never 0".to_owned(),
        };
        let [project, user] =
            [self.world.project(), self.world.user()].map(|path| path.display().to_string());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "helper", "--nocapture"])
            .env(JOB, [project.as_str(), user.as_str(), self.place.as_str(), mode.as_str(), id].join("\n"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (tell, says) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(at) = line.find(SAYS) {
                    let _ = tell.send(line[at + SAYS.len()..].to_owned());
                }
            }
        });
        let said = says.recv_timeout(Duration::from_secs(60)).expect("it says how far it came");
        if said == "there" {
            if matches!(when, When::Before(_)) {
                self.wait_until_quiet();
            }
            end(&mut child);
            return true;
        }
        assert_eq!(said, "done", "{when:?}");
        assert!(child.wait().unwrap().success());
        false
    }

    /// Waits until nothing happens any more: no request comes, no tool runs.
    fn wait_until_quiet(&self) {
        let seen = || {
            let marks = std::fs::metadata(self.world.project().join("marks")).map_or(0, |file| file.len());
            (self.mock.requests().len(), marks)
        };
        let (mut last, mut since) = (seen(), Instant::now());
        while since.elapsed() < Duration::from_millis(120) {
            std::thread::sleep(Duration::from_millis(5));
            let now = seen();
            if now != last {
                (last, since) = (now, Instant::now());
            }
        }
    }

    fn resume(&self, id: &ThreadId) -> cuebook_run::Finished {
        match self.engine.resume_with(None, None, id, &Resume::default(), &Ignore).unwrap() {
            ThreadRun::Finished(finished) => *finished,
            ThreadRun::Detached { .. } => panic!("it runs elsewhere"),
        }
    }
}

fn end(child: &mut Child) {
    // SIGKILL.
    child.kill().unwrap();
    child.wait().unwrap();
}

fn engine(project: &Path, user: &Path, place: &str) -> Engine {
    let settings = Settings { store: Some(place.to_owned()), fence: Fence::Off, ..Settings::default() };
    Engine::new(Spaces::new(project, Some(user))).with_settings(settings)
}

/// Stops a process where it is to die, and waits for that.
struct KillPoint {
    when: When,
    place: String,
    seen: AtomicUsize,
}

impl Watch for KillPoint {
    fn activity(&self, _: &ThreadId, activity: &Activity<'_>) {
        let Activity::Event(_) = activity else { return };
        let seen = self.seen.fetch_add(1, Ordering::SeqCst) + 1;
        match self.when {
            When::After(count) if seen == count => {
                println!("{SAYS}there");
                std::thread::sleep(Duration::from_secs(60));
            }
            When::Before(count) if seen == count => {
                // From now on no one can write, so the process comes as far as it can without that.
                lock(&self.place);
                println!("{SAYS}there");
            }
            _ => {}
        }
    }
}

/// Keeps everybody from writing until this process ends.
fn lock(place: &str) {
    if place.starts_with("postgres") {
        let separator = if place.contains('?') { '&' } else { '?' };
        let url = format!("{place}{separator}sslmode=disable");
        let mut client = postgres::Client::connect(&url, postgres::NoTls).unwrap();
        client.batch_execute("BEGIN; LOCK TABLE cuebook_threads IN EXCLUSIVE MODE").unwrap();
        std::mem::forget(client);
        return;
    }
    let connection = rusqlite::Connection::open(place).unwrap();
    connection.busy_timeout(Duration::from_secs(20)).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    std::mem::forget(connection);
}

/// Not a test: what the processes of the others do.
#[test]
fn helper() {
    let Ok(job) = std::env::var(JOB) else { return };
    let words: Vec<&str> = job.split('\n').collect();
    let [project, user, place, mode, id] = words[..] else { panic!("{words:?}") };
    let (mode, count) = mode.split_once(' ').unwrap();
    let count = count.parse().unwrap();
    let when = match mode {
        "after" => When::After(count),
        "before" => When::Before(count),
        _ => When::Never,
    };
    let engine = engine(&PathBuf::from(project), &PathBuf::from(user), place);
    let kill_point = KillPoint { when, place: place.to_owned(), seen: AtomicUsize::new(0) };
    if !id.is_empty() {
        let began =
            engine.resume_with(None, None, &ThreadId::known(id), &Resume::default(), &kill_point).unwrap();
        assert!(matches!(began, ThreadRun::Finished(finished) if finished.status == Status::Completed));
        println!("{SAYS}done");
        return;
    }
    let request = ExecuteRequest {
        thread: true,
        model: Some("mock-model".into()),
        ..support::request("directive", "demo/root", json!({}))
    };
    let answer = engine.answer(&request, &kill_point).json;
    assert_eq!(answer["outputs"], json!({"said": "all of it"}), "{answer:#}");
    println!("{SAYS}done");
}

/// What was seen of calls that were cut off, so that a test that sees none of them does not pass for nothing.
#[derive(Default)]
struct Seen {
    unknown: AtomicUsize,
    unknown_and_ran: AtomicUsize,
    hooks: AtomicUsize,
    well: AtomicUsize,
    failed: AtomicUsize,
}

/// Kills a run, looks at what is left, takes it up, and looks at everything.
fn kill_and_resume(place: Option<String>, when: When, seen: &Seen) -> bool {
    let stage = Setup::new(place);
    if !stage.run(when) {
        let (store, all) = stage.threads();
        books::audit(&*store, &all);
        return false;
    }
    let (store, all) = stage.threads();
    books::audit(&*store, &all);
    let mut expected = Vec::new();
    for record in &all {
        assert_ne!(record.status, Status::Running, "{when:?}: {}", record.id);
        if record.status == Status::Interrupted {
            let log = whole_log(&*store, record).unwrap();
            assert_eq!(log.last().unwrap().kind, Kind::Interrupted, "{when:?}");
            expected.push((record.id.clone(), books::open_calls(&log)));
        } else {
            assert_eq!(record.status, Status::Completed, "{when:?}: {}", record.id);
        }
    }
    stage.model.hurry();
    for (id, calls) in &expected {
        let before: Vec<usize> = calls.started.iter().map(|call| stage.marks(&call.mark)).collect();
        for call in &calls.waiting {
            assert_eq!(stage.marks(&call.mark), 0, "{when:?}: {call:?} ran before its start was written");
        }
        let asked = stage.mock.requests().len();
        let finished = stage.resume(id);
        assert_eq!(finished.status, Status::Completed, "{when:?}: {finished:?}");
        assert_eq!(finished.outputs, Some(json!({"said": "all of it"})), "{when:?}: {finished:?}");
        let record = store.record(id).unwrap().unwrap();
        let log = whole_log(&*store, &record).unwrap();
        let unknown: Vec<&str> = log
            .iter()
            .filter(|event| event.kind == Kind::ToolUnknown)
            .map(|event| event.payload["call_id"].as_str().unwrap())
            .collect();
        let started: Vec<&str> = calls.started.iter().map(|call| call.id.as_str()).collect();
        assert_eq!(unknown, started, "{when:?}: what may have run is told as such");
        for (call, before) in calls.started.iter().zip(before) {
            seen.unknown.fetch_add(1, Ordering::SeqCst);
            seen.unknown_and_ran.fetch_add(before, Ordering::SeqCst);
            // The tool itself may outlive the process that started it; it is not started again.
            assert!(before.max(stage.marks(&call.mark)) <= 1, "{when:?}: {call:?} was repeated");
            let requests = stage.mock.requests();
            let said = requests[asked..].iter().any(|request| model::tells_unknown(&request.body, &call.id));
            assert!(said, "{when:?}: the model was not told about {call:?}");
        }
        for call in calls.waiting.iter().filter(|call| !call.mark.is_empty()) {
            assert_eq!(stage.marks(&call.mark), 1, "{when:?}: {call:?} had not run, and runs once");
        }
    }
    // A run that died right away has no root to go on with.
    if expected.is_empty() {
        return true;
    }
    let (store, all) = stage.threads();
    books::audit(&*store, &all);
    for record in &all {
        assert_eq!(record.status, Status::Completed, "{when:?}: {}", record.id);
        books::log_agrees(&*store, record);
        let log = whole_log(&*store, record).unwrap();
        let cut_off = books::hooks(&log);
        seen.hooks.fetch_add(cut_off, Ordering::SeqCst);
        for call in books::results(&log) {
            let ran = stage.marks(&call.mark);
            match &call.failed {
                // A machine that has too much to do may be unable to start a process. The model hears of it, and there is no second attempt.
                Some(why) => {
                    eprintln!("{when:?}: {} did not run: {why}", call.id);
                    seen.failed.fetch_add(1, Ordering::SeqCst);
                    assert!(ran <= 1, "{when:?}: {call:?} ran {ran} times");
                }
                None => {
                    seen.well.fetch_add(1, Ordering::SeqCst);
                    assert!(
                        ran == 1 || call.mark.is_empty() || call.unknown,
                        "{when:?}: {call:?} ran {ran} times: {:#?}",
                        log.iter().map(|event| format!("{} {}", event.kind, event.text)).collect::<Vec<_>>()
                    );
                }
            }
        }
    }
    for mark in HOOKS {
        assert!(stage.marks(mark) <= 1, "{when:?}: a hook was repeated: {mark}");
    }
    for request in stage.mock.requests() {
        model::valid(&request.body);
    }
    true
}

/// All moments of a run, with this many in between left out; several at once.
fn every_moment(step: usize, place: impl Fn() -> Option<String> + Sync) -> usize {
    let thread_hooks = AtomicUsize::new(1);
    let died = AtomicUsize::new(0);
    let seen = Seen::default();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let count = thread_hooks.fetch_add(step, Ordering::SeqCst);
                    let after = kill_and_resume(place(), When::After(count), &seen);
                    let before = after && kill_and_resume(place(), When::Before(count), &seen);
                    died.fetch_add(usize::from(after) + usize::from(before), Ordering::SeqCst);
                    if !after {
                        break;
                    }
                }
            });
        }
    });
    let (unknown, ran) = (seen.unknown.into_inner(), seen.unknown_and_ran.into_inner());
    let hooks = seen.hooks.into_inner();
    println!("{unknown} calls were cut off, of which {ran} had run, and {hooks} hooks");
    assert!(ran > 0 && unknown > ran && hooks > 0);
    let (well, failed) = (seen.well.into_inner(), seen.failed.into_inner());
    println!("{well} calls went well, {failed} failed");
    assert!(failed * 20 <= well, "{failed} calls failed, and {well} did not");
    died.into_inner()
}

#[test]
fn a_run_without_kills_ends() {
    let stage = Setup::new(None);
    assert!(!stage.run(When::Never));
    let (store, all) = stage.threads();
    assert_eq!(all.len(), 2);
    books::audit(&*store, &all);
    let kinds: Vec<Kind> =
        all.iter().flat_map(|record| whole_log(&*store, record).unwrap()).map(|event| event.kind).collect();
    for kind in [Kind::Denied, Kind::Nudge, Kind::TokenDelta, Kind::ToolResult, Kind::Return] {
        assert!(kinds.contains(&kind), "{kind} is missing: {kinds:?}");
    }
    for mark in ["m1", "m2", "m3", "m4", "m5", "k1"].iter().chain(HOOKS) {
        assert_eq!(stage.marks(mark), 1, "{mark}");
    }
    for record in &all {
        books::log_agrees(&*store, record);
        assert_eq!(books::hooks(&whole_log(&*store, record).unwrap()), 0);
    }
    for request in stage.mock.requests() {
        model::valid(&request.body);
    }
}

#[test]
fn a_run_killed_at_any_point_resumes_there() {
    let died = every_moment(1, || None);
    println!("killed {died} times");
    assert!(died >= 60, "only {died} moments");
}

#[test]
fn a_run_on_postgresql_that_is_killed_goes_on_from_there() {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let Some(server) = server::server() else { return };
    let separator = if server.url.contains('?') { '&' } else { '?' };
    let admin = format!("{}{separator}sslmode=disable", server.url);
    let schema = || {
        let name = format!("cuebook_kill_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::SeqCst));
        let mut client = postgres::Client::connect(&admin, postgres::NoTls).unwrap();
        client.batch_execute(&format!("CREATE SCHEMA {name}")).unwrap();
        Some(format!("{}{separator}options=-csearch_path%3D{name}", server.url))
    };
    let died = every_moment(4, schema);
    println!("killed {died} times");
    assert!(died >= 12, "only {died} moments");
}

#[test]
fn a_run_that_is_killed_again_and_again_comes_to_its_end() {
    for count in [2, 5, 9] {
        let stage = Setup::new(None);
        assert!(stage.run(When::After(count)));
        stage.model.hurry();
        let mut times = 1;
        loop {
            let (store, all) = stage.threads();
            books::audit(&*store, &all);
            let Some(open) = all.iter().rev().find(|record| record.status == Status::Interrupted) else {
                break;
            };
            // Later each time: a caller that is asked again and again and never heard has spent all that it may at some point.
            let when = if times % 2 == 0 { When::Before(2 + times) } else { When::After(2 + times) };
            times += usize::from(stage.run_or_resume(open.id.as_str(), when));
            assert!(times < 40, "it comes no further");
        }
        let (store, all) = stage.threads();
        for record in &all {
            assert_eq!(record.status, Status::Completed, "{record:?}");
        }
        assert!(times > 2, "killed {times} times");
        for record in &all {
            books::log_agrees(&*store, record);
            let log = whole_log(&*store, record).unwrap();
            books::results(&log);
            books::hooks(&log);
        }
        for mark in ["m1", "m2", "m3", "m4", "m5", "k1"].iter().chain(HOOKS) {
            assert!(stage.marks(mark) <= 1, "{mark}");
        }
        for request in stage.mock.requests() {
            model::valid(&request.body);
        }
    }
}

/// Wants a thread to stop when the model has made its calls, and before they run.
#[derive(Default)]
struct Hasty {
    heard: AtomicUsize,
}

impl Watch for Hasty {
    fn cancelled(&self) -> bool {
        self.heard.load(Ordering::SeqCst) >= 2
    }

    fn activity(&self, _: &ThreadId, activity: &Activity<'_>) {
        if matches!(activity, Activity::Pulse { doing, .. } if doing.is_empty()) {
            self.heard.fetch_add(1, Ordering::SeqCst);
        }
    }
}

#[test]
fn pending_calls_run_once_after_a_resume() {
    let stage = Setup::new(None);
    stage.model.hurry();
    let request = ExecuteRequest {
        thread: true,
        model: Some("mock-model".into()),
        ..support::request("directive", "demo/root", json!({}))
    };
    let answer = stage.engine.answer(&request, &Hasty::default()).json;
    assert_eq!(answer["thread_status"], "cancelled", "{answer:#}");
    let (store, all) = stage.threads();
    let calls = books::open_calls(&whole_log(&*store, &all[0]).unwrap());
    assert_eq!((calls.started.len(), calls.waiting.len()), (0, 4));
    assert_eq!(stage.marks("m1") + stage.marks("m2") + stage.marks("m3"), 0);
    assert_eq!(stage.resume(&all[0].id).status, Status::Completed);
    for mark in ["m1", "m2", "m3", "m4", "m5", "k1"] {
        assert_eq!(stage.marks(mark), 1, "{mark}");
    }
    let (store, all) = stage.threads();
    books::audit(&*store, &all);
    for request in stage.mock.requests() {
        model::valid(&request.body);
    }
}
