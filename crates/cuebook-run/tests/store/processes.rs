//! Real processes: this program, run again with something to do. Some of them are killed in the middle of it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use cuebook_run::store::{Change, New, Record, Store, lives};
use cuebook_run::{Entry, Kind, Status, ThreadId};
use serde_json::json;

use crate::support::*;

/// What a process has to do, where, and with what.
const JOB: &str = "CUEBOOK_STORE_TEST_JOB";
/// Lines that a process says to the one that started it.
const SAYS: &str = "@@";

/// Not a test: what the processes of other tests do.
#[test]
fn helper() {
    let Ok(job) = std::env::var(JOB) else { return };
    let words: Vec<&str> = job.split('\n').collect();
    match words[..] {
        ["work", place, root, rounds] => {
            let store = open(place).unwrap();
            work(&*store, &ThreadId::known(root), rounds.parse().unwrap());
        }
        ["begin", place] => {
            let store = open(place).unwrap();
            let record = store.begin(&new(1.0)).unwrap();
            append(&*store, &record, &with_hold(0.5)).unwrap();
            println!("{SAYS}{}", record.id);
            std::thread::sleep(Duration::from_secs(60));
        }
        ["grant", place] => {
            let budget = crate::rates::budget(place, "key", crate::rates::RATE);
            println!("{SAYS}{}", crate::rates::granted(&budget, crate::rates::at(0.0)));
        }
        ["open", place, at] => {
            let at: i64 = at.parse().unwrap();
            while jiff::Timestamp::now().as_millisecond() < at {
                std::hint::spin_loop();
            }
            open(place).unwrap().begin(&new(1.0)).unwrap();
        }
        ["half-sqlite", place] => {
            let connection = rusqlite::Connection::open(place).unwrap();
            connection
                .execute_batch("BEGIN IMMEDIATE; UPDATE cuebook_threads SET status = 'broken'")
                .unwrap();
            println!("{SAYS}begun");
            std::thread::sleep(Duration::from_secs(60));
        }
        ["half-postgres", place] => {
            let mut client =
                postgres::Client::connect(&format!("{place}&sslmode=disable"), postgres::NoTls).unwrap();
            client.batch_execute("BEGIN; UPDATE cuebook_threads SET status = 'broken'").unwrap();
            println!("{SAYS}begun");
            std::thread::sleep(Duration::from_secs(60));
        }
        ["fill", place] => {
            let store = open(place).unwrap();
            let entries = vec![Entry::new(Kind::ToolResult, json!("word ".repeat(2_000)))];
            let fill = New { entries, ..new(1.0) };
            // Several at once, so that some share a transaction.
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| {
                        let error = (0..10_000).find_map(|_| store.begin(&fill).err()).unwrap();
                        assert_eq!(error.code(), cuebook::Code::StoreFailed, "{error}");
                        println!("{SAYS}{error}");
                    });
                }
            });
        }
        _ => panic!("{words:?}"),
    }
}

/// Children of a root that begin, ask, answer, have children themselves, and end.
fn work(store: &dyn Store, root: &ThreadId, rounds: u32) {
    for round in 0..rounds {
        let new = New { parent: Some(root.clone()), ..new(0.5) };
        let Ok(record) = store.begin(&new) else { continue };
        println!("{SAYS}{}", record.id);
        append(store, &record, &with_hold(0.1)).unwrap();
        append(store, &record, &with_cost(0.1)).unwrap();
        let low = store.begin(&child(&record, 0.2)).unwrap();
        append(store, &low, &with_hold(0.2)).unwrap();
        append(store, &low, &with_cost(0.15)).unwrap();
        if round % 2 == 0 {
            append(store, &record, &with_status(Status::Completed)).unwrap();
            append(store, &low, &with_status(Status::Completed)).unwrap();
        } else {
            append(store, &low, &with_status(Status::Error)).unwrap();
            append(store, &record, &with_status(Status::Completed)).unwrap();
        }
    }
}

/// A process of this program with something to do.
struct Helper {
    child: Child,
    says: mpsc::Receiver<String>,
}

impl Helper {
    fn start(words: &[&str]) -> Helper {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "processes::helper", "--nocapture"])
            .env(JOB, words.join("\n"))
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let (tell, says) = mpsc::channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                // The harness may have begun the line.
                if let Some(at) = line.find(SAYS) {
                    let _ = tell.send(line[at + SAYS.len()..].to_owned());
                }
            }
        });
        Helper { child, says }
    }

    /// What it says next.
    fn says(&self) -> String {
        self.says.recv_timeout(Duration::from_secs(30)).unwrap()
    }

    fn ends_well(mut self) {
        assert!(self.child.wait().unwrap().success());
    }

    fn kill(mut self) {
        // On Unix this is SIGKILL. It has ended when `wait` returns.
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

pub fn processes_share_a_store(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(2.0)).unwrap();
    let helpers: Vec<Helper> =
        (0..4).map(|_| Helper::start(&["work", &world.place, root.id.as_str(), "12"])).collect();
    work(store, &root.id, 12);
    helpers.into_iter().for_each(Helper::ends_well);
    audit(store, false);
    let account = store.account(&root.id).unwrap().unwrap();
    let (began, spent) = (store.record(&root.id).unwrap().unwrap().spawned, account.children);
    assert_eq!(spent, money(0.25 * f64::from(began)));
    assert_eq!(began, 7, "until there is less left than a child wants");
}

pub fn two_processes_stay_within_one_budget(world: &Fixture) {
    let helpers = [(); 2].map(|()| Helper::start(&["grant", &world.place]));
    let granted: usize = helpers.iter().map(|helper| helper.says().parse::<usize>().unwrap()).sum();
    assert_eq!(granted, 60);
    helpers.into_iter().for_each(Helper::ends_well);
}

pub fn a_log_goes_on_in_another_process(world: &Fixture) {
    let store = &*world.store;
    let helper = Helper::start(&["begin", &world.place]);
    let id = ThreadId::known(helper.says());
    assert!(store.sweep(&lives).unwrap().is_empty(), "it lives");
    helper.kill();
    assert_eq!(store.sweep(&lives).unwrap(), std::slice::from_ref(&id));
    let resumed = Entry::new(Kind::Resumed, json!({"by": "another process"}));
    let record = store.take(&id, &holder(), &[resumed], &Change::default()).unwrap();
    append(store, &record, &with_cost(0.75)).unwrap();
    assert_eq!(
        kinds(store, &id),
        [Kind::Started, Kind::Nudge, Kind::Interrupted, Kind::Resumed, Kind::Nudge]
    );
    audit(store, false);
}

pub fn killed_processes_leave_whole_logs_and_a_true_ledger(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(1000.0)).unwrap();
    for round in 0..12_u64 {
        let helper = Helper::start(&["work", &world.place, root.id.as_str(), "100000"]);
        helper.says();
        // At another moment each time, mostly somewhere inside of a transaction.
        std::thread::sleep(Duration::from_micros(1_000 + round * 1_937));
        helper.kill();
        store.sweep(&lives).unwrap();
        audit(store, false);
    }
    // A process that dies within a transaction leaves nothing of it, and blocks no other process.
    let job = if world.place.starts_with("postgres") { "half-postgres" } else { "half-sqlite" };
    let helper = Helper::start(&[job, &world.place]);
    assert_eq!(helper.says(), "begun");
    let began = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(|| append(store, &root, &with_cost(1.0)).unwrap());
        std::thread::sleep(Duration::from_millis(100));
        helper.kill();
    });
    assert!(began.elapsed() < Duration::from_secs(20));
    audit(store, false);

    // When all that is left has been brought to its end, the sum is what every thread says that it spent.
    finish_all(store, &root);
    let account = store.account(&root.id).unwrap().unwrap();
    let all = store.list(&Default::default()).unwrap();
    let costs: cuebook_run::Money = all.iter().map(|record| record.cost.spend).sum();
    assert!(account.settled);
    assert_eq!(account.spent + account.children, costs);
    assert!(all.len() > 12);
}

/// Takes up everything that was interrupted, and ends it; then the root.
fn finish_all(store: &dyn Store, root: &Record) {
    for record in store.list(&Default::default()).unwrap() {
        if record.status == Status::Interrupted {
            let taken = store.take(&record.id, &holder(), &[], &Change::default()).unwrap();
            append(store, &taken, &with_status(Status::Completed)).unwrap();
        }
    }
    append(store, root, &with_status(Status::Completed)).unwrap();
    audit(store, false);
}

#[cfg(unix)]
#[test]
fn a_file_that_cannot_grow_is_an_error_and_keeps_what_it_has() {
    let world = Fixture::sqlite().unwrap();
    let first = world.store.begin(&new(1.0)).unwrap();
    // Files of this process can have so many blocks, and no signal says so.
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 4000; exec \"$0\" --exact processes::helper"])
        .arg(std::env::current_exe().unwrap())
        .env(JOB, ["fill", &world.place].join("\n"))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    let all = world.store.list(&Default::default()).unwrap();
    assert!(all.len() > 10);
    append(&*world.store, &first, &with_cost(0.5)).unwrap();
    audit(&*world.store, false);
}

fn open_at_once(place: &str) {
    let at = (jiff::Timestamp::now().as_millisecond() + 700).to_string();
    let helpers: Vec<Helper> = (0..8).map(|_| Helper::start(&["open", place, &at])).collect();
    helpers.into_iter().for_each(Helper::ends_well);
    let store = open(place).unwrap();
    assert_eq!(store.list(&Default::default()).unwrap().len(), 8);
    audit(&*store, false);
}

#[test]
fn processes_that_open_a_new_file_at_once_all_succeed() {
    for _ in 0..3 {
        let folder = tempfile::tempdir().unwrap();
        open_at_once(folder.path().join("new/threads.db").to_str().unwrap());
        assert_eq!(std::fs::read_to_string(folder.path().join("new/.gitignore")).unwrap(), "*\n");
    }
}

#[test]
fn processes_that_open_a_new_database_at_once_all_succeed() {
    for _ in 0..3 {
        let Some((place, schema)) = fresh_schema() else { return };
        open_at_once(&place);
        admin().batch_execute(&format!("DROP SCHEMA {schema} CASCADE")).unwrap();
    }
}
