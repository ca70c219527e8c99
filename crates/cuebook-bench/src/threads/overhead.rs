//! What a turn costs besides the model and the tools: from the moment when the server hands a reply to its socket to the moment when
//! it has read the last byte of the next request. The way over the socket is in it, both ways; what the server does to make a reply
//! and to understand a request is not, because that is the model's part. Beside it is what the disk needs for one durable write,
//! because no log can be faster than that.

use std::collections::HashMap;
use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cuebook_mock::{Mock, Reply, Request as MockRequest, Script};
use cuebook_run::{Engine, ExecuteRequest, Ignore};
use serde_json::{Value as Json, json};

use super::{TestProject, micros, percentile};

/// Turns of one thread.
const TURNS: usize = 20;
/// Threads of one row.
const THREADS: usize = 120;

/// When the last reply of each thread was sent, and how long the next request took to come.
#[derive(Default)]
struct ReplyTimes {
    sent: HashMap<String, Arc<OnceLock<Instant>>>,
    took: Vec<Duration>,
}

pub fn run() -> Result<(), Box<dyn Error>> {
    println!("\nthreads: what a turn costs besides model and tools (target: 99 of 100 within 2000 µs)");
    println!("{:52} {:>9} {:>9} {:>9} {:>7}", "", "p50", "p99", "most", "turns");
    let denied = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "true"}});
    let nothing = json!({"item_type": "directive", "item_id": "bench/greet", "parameters": {"who": "Bob"}});
    row("a call that is denied: one durable write", denied.clone(), 1, None)?;
    let call = ExecuteRequest::directive("bench/greet").parameter("who", "Bob");
    row("a call that fills a directive: two durable writes", nothing, 1, Some(call))?;
    row("a call that is denied, eight threads at once", denied, 8, None)?;
    Ok(())
}

/// `alone` is what the call does, to be measured without a thread: it is the tool's part of a turn.
fn row(name: &str, call: Json, at_once: usize, alone: Option<ExecuteRequest>) -> Result<(), Box<dyn Error>> {
    let watch = Arc::new(Mutex::new(ReplyTimes::default()));
    let for_script = watch.clone();
    let script = Script::answer(move |asked| reply(asked, &call, &for_script)).forget_requests();
    let mock = Mock::start(script)?;
    let place = TestProject::new(&mock)?;
    let engine = Engine::new(place.spaces());
    let thread = |number: usize| {
        let who = format!("Ann {number}");
        let request =
            ExecuteRequest { thread: true, ..ExecuteRequest::directive("bench/greet").parameter("who", who) };
        let answer = engine.answer(&request, &Ignore).json;
        if answer["outputs"]["greeting"] == "Hello" { Ok(()) } else { Err(answer.to_string()) }
    };
    // The first one opens the store.
    thread(usize::MAX)?;
    watch.lock().unwrap_or_else(PoisonError::into_inner).took.clear();
    let (mut synced, mut called) = (Vec::new(), Vec::new());
    let mut disk = Disk::new(place.project.path())?;
    for round in 0..THREADS / at_once {
        let failed: Vec<String> = std::thread::scope(|scope| {
            let all: Vec<_> =
                (0..at_once).map(|index| scope.spawn(move || thread(round * at_once + index))).collect();
            all.into_iter().filter_map(|one| one.join().ok()?.err()).collect()
        });
        if let Some(why) = failed.into_iter().next() {
            return Err(why.into());
        }
        for _ in 0..TURNS * at_once {
            synced.push(disk.sync()?);
            if let Some(request) = &alone {
                let began = Instant::now();
                drop(engine.answer(request, &Ignore).json);
                called.push(began.elapsed());
            }
        }
    }
    let mut took = std::mem::take(&mut watch.lock().unwrap_or_else(PoisonError::into_inner).took);
    let print = |name: &str, times: &mut Vec<Duration>| {
        times.sort();
        let [middle, late, most] = [50, 99, 100].map(|percent| micros(percentile(times, percent)));
        println!("{name:52} {middle:>6.0} µs {late:>6.0} µs {most:>6.0} µs {:>7}", times.len());
    };
    print(name, &mut took);
    if alone.is_some() {
        print("  of which the call itself, without a thread", &mut called);
    }
    print("  beside it: one bare fdatasync of 4 kB", &mut synced);
    Ok(())
}

fn reply(asked: &MockRequest, call: &Json, watch: &Mutex<ReplyTimes>) -> Reply {
    let messages = asked.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
    let who = messages.first().map(|first| first["content"].to_string()).unwrap_or_default();
    let reply = match turn {
        TURNS.. => Reply::call("r", "directive_return", json!({"greeting": "Hello"})),
        _ => Reply::call(format!("c{turn}"), "rye_execute", call.clone()),
    };
    let mut watch = watch.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(sent) = watch.sent.get(&who).filter(|_| turn > 0).and_then(|sent| sent.get()).copied() {
        watch.took.push(asked.at.saturating_duration_since(sent));
    }
    let sent = Arc::new(OnceLock::new());
    watch.sent.insert(who, sent.clone());
    reply.usage(100, 10).note_sent(sent)
}

/// A file that is written to the disk piece by piece.
struct Disk {
    file: File,
}

impl Disk {
    fn new(folder: &Path) -> std::io::Result<Disk> {
        Ok(Disk { file: File::create(folder.join("sync"))? })
    }

    fn sync(&mut self) -> std::io::Result<Duration> {
        let began = Instant::now();
        self.file.write_all(&[7; 4096])?;
        self.file.sync_data()?;
        Ok(began.elapsed())
    }
}
