//! Many threads with children in several processes on one store: models that answer well and badly, limits of every kind, threads
//! that are cancelled and taken up again, processes that are killed in the middle. Afterwards logs, registry and ledger agree.
//!
//! `CUEBOOK_SOAK_SEED` begins with another number, `CUEBOOK_SOAK_THREADS` has more or fewer of them.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]
#![cfg(unix)]

#[path = "../store/server.rs"]
#[allow(dead_code, reason = "only the address of the server is needed here")]
mod server;
#[path = "../support/mod.rs"]
mod support;

mod books;
mod chance;
mod model;
mod worker;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use chance::Chance;
use cuebook::items::Spaces;
use cuebook_mock::{Api, Mock};
use cuebook_run::store::{Filter, Record, Store};
use cuebook_run::{Engine, Fence, Ignore, Resume, Settings, Status};
use serde_json::json;
use support::Fixture;
use worker::Worker;

/// Has others run, below it.
const NODE: &str = r#"# Node

```xml
<directive name="node" version="1.0.0">
  <metadata>
    <description>Have others run.</description>
    <category>demo</category>
    <model tier="fast" />
    <permissions><execute><directive>demo.*</directive></execute></permissions>
  </metadata>
  <inputs><input name="n" type="string" required="true">A number</input></inputs>
</directive>
```

You are node {input:n}.
"#;

/// Returns something.
const LEAF: &str = r#"# Leaf

```xml
<directive name="leaf" version="1.0.0">
  <metadata>
    <description>Return something.</description>
    <category>demo</category>
    <model tier="fast" />
    <limits turns="5" spend="0.02" />
    <permissions><execute><tool>demo.*</tool></execute></permissions>
  </metadata>
  <inputs><input name="n" type="string" required="true">A number</input></inputs>
  <outputs><output name="said" type="string">What was said</output></outputs>
</directive>
```

You are leaf {input:n}.
"#;

/// How many processes work at once.
const WORKERS: usize = 3;

fn variable(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(usual)
}

fn engine(project: &Path, user: &Path, place: &str) -> Engine {
    let settings = Settings { store: Some(place.to_owned()), fence: Fence::Off, ..Settings::default() };
    Engine::new(Spaces::new(project, Some(user))).with_settings(settings)
}

/// Not a test: what the processes of the others do.
#[test]
fn helper() {
    if let Ok(job) = std::env::var(worker::JOB) {
        worker::work(&job);
    }
}

/// What is done with threads meanwhile, and how often.
#[derive(Debug, Default)]
struct Tally {
    killed: usize,
    cancelled: usize,
    resumed: usize,
    answers: BTreeMap<String, usize>,
}

fn soak(place: Option<String>, target: u64) {
    // Two at once would only be slower.
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let seed = variable("CUEBOOK_SOAK_SEED", 7_000_007);
    println!("CUEBOOK_SOAK_SEED={seed}");
    let began = Instant::now();
    let mut chance = Chance::new(seed);
    let world = Fixture::new();
    let model = model::Model::new(seed);
    let mock = Mock::start(model.script()).unwrap();
    let folder = world.user().join(".ai/config/providers");
    std::fs::create_dir_all(&folder).unwrap();
    let yaml = mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
    std::fs::write(folder.join("mock.yaml"), yaml + "retry: {attempts: 2, base: 0.01, max: 0.05}\n").unwrap();
    world.signed("directives/demo/node.md", NODE).signed("directives/demo/leaf.md", LEAF);
    let place = place.unwrap_or_else(|| world.project().join("threads.db").display().to_string());
    let engine = engine(&world.project(), &world.user(), &place);
    let store = engine.threads(None).unwrap();
    let start = || Worker::start(&world.project(), &world.user(), &place);
    let mut workers: Vec<Worker> = (0..WORKERS).map(|_| start()).collect();
    let mut tally = Tally::default();
    let (mut enough, mut counted) = (false, Instant::now());
    // How many answers there are when the next process is killed.
    let mut kill_at = 10;
    while !enough || workers.iter().any(|worker| worker.open() > 0) {
        for worker in &mut workers {
            worker.hear(&mut tally.answers);
            while !enough && worker.open() < worker::AT_ONCE {
                worker.tell(&format!("run {}", chance.below(u64::MAX)));
            }
        }
        if counted.elapsed() > Duration::from_millis(250) {
            enough = store.list(&Filter::default()).unwrap().len() as u64 >= target;
            counted = Instant::now();
        }
        if !enough {
            disturb(&*store, &mut workers, &mut chance, &mut tally);
        }
        let answers: usize = tally.answers.values().sum();
        if answers >= kill_at && !enough {
            let unlucky = usize::try_from(chance.below(WORKERS as u64)).unwrap();
            std::mem::replace(&mut workers[unlucky], start()).kill();
            tally.killed += 1;
            kill_at = answers + 5 + usize::try_from(chance.below(25)).unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
        assert!(began.elapsed() < Duration::from_secs(600), "it comes to no end: {tally:?}");
    }
    workers.into_iter().for_each(Worker::ends_well);
    let worked = began.elapsed();
    model.calm();
    let rounds = settle(&engine, &mut chance);
    let all = store.list(&Filter::default()).unwrap();
    let spent = books::agree(&*store, &all);
    assert_eq!(model.complaints(), Vec::<String>::new());
    println!("{tally:#?}");
    println!(
        "{} threads, {} of them roots, spent {spent}; {worked:.1?} of work, {rounds} rounds to settle, {:.1?} in all",
        all.len(),
        all.iter().filter(|record| record.parent.is_none()).count(),
        began.elapsed()
    );
    assert!(all.len() as u64 >= target && tally.killed > 0 && tally.cancelled > 0 && tally.resumed > 0);
    // Whatever went wrong, it was never the store or the conversation.
    for code in ["CB714", "CB724", "panic"] {
        assert_eq!(tally.answers.get(code), None, "{:?}", tally.answers);
    }
}

/// Cancels some threads, and has others taken up again.
fn disturb(store: &dyn Store, workers: &mut [Worker], chance: &mut Chance, tally: &mut Tally) {
    let pick = |status: &[Status], chance: &mut Chance| -> Option<Record> {
        let most = Some(30);
        let mut found = store.list(&Filter { status: status.to_vec(), most, ..Filter::default() }).unwrap();
        (!found.is_empty())
            .then(|| found.swap_remove(usize::try_from(chance.below(found.len() as u64)).unwrap()))
    };
    if chance.percent(8)
        && let Some(record) = pick(&[Status::Running, Status::Suspended], chance)
    {
        store.cancel(&record.id).unwrap();
        tally.cancelled += 1;
    }
    if chance.percent(15)
        && let Some(record) =
            pick(&[Status::Interrupted, Status::Suspended, Status::Cancelled, Status::Error], chance)
    {
        let lucky = usize::try_from(chance.below(workers.len() as u64)).unwrap();
        workers[lucky].tell(&format!("resume {} {}", record.id, chance.below(u64::MAX)));
        tally.resumed += 1;
    }
}

/// Brings every thread to an end: some are taken up, others cancelled. Says how many rounds that took.
fn settle(engine: &Engine, chance: &mut Chance) -> usize {
    for round in 1..50 {
        let store = engine.threads(None).unwrap();
        let all = store.list(&Filter::default()).unwrap();
        let mut open: Vec<Record> = all.into_iter().filter(|record| !record.status.is_settled()).collect();
        if open.is_empty() {
            return round;
        }
        let cancel: Vec<bool> = open.iter().map(|_| chance.percent(20)).collect();
        // The oldest first, so that parents are there for what their children claim.
        open.reverse();
        let open = Arc::new(Mutex::new(open.into_iter().zip(cancel).collect::<Vec<_>>()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    loop {
                        let Some((record, cancel)) = open.lock().unwrap().pop() else { break };
                        if cancel || round > 4 {
                            store.cancel(&record.id).unwrap();
                            continue;
                        }
                        let more =
                            json!({"turns": 50, "tokens": 1_000_000, "spend": 2.0, "duration_seconds": 600});
                        let how = Resume {
                            limit_overrides: more.as_object().unwrap().clone(),
                            ..Resume::default()
                        };
                        // Too little may be left above it; the next round tries again, or cancels it.
                        drop(engine.resume_with(None, None, &record.id, &how, &Ignore));
                    }
                });
            }
        });
    }
    panic!("some threads come to no end")
}

#[test]
fn a_thousand_threads_agree_to_the_billionth() {
    soak(None, variable("CUEBOOK_SOAK_THREADS", 1_000));
}

#[test]
fn threads_on_postgresql_agree_to_the_billionth() {
    let Some(server) = server::server() else { return };
    let separator = if server.url.contains('?') { '&' } else { '?' };
    let mut client =
        postgres::Client::connect(&format!("{}{separator}sslmode=disable", server.url), postgres::NoTls)
            .unwrap();
    let name = format!("cuebook_soak_{}", std::process::id());
    client.batch_execute(&format!("CREATE SCHEMA {name}")).unwrap();
    soak(Some(format!("{}{separator}options=-csearch_path%3D{name}", server.url)), 150);
    client.batch_execute(&format!("DROP SCHEMA {name} CASCADE")).unwrap();
}
