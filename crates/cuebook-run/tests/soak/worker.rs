//! A process that runs and resumes threads as it is reported, several at once, until it is killed or has nothing more to do.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};

use cuebook_run::{ExecuteRequest, Ignore, Resume, ThreadId, ThreadRun};
use serde_json::json;

use crate::chance::Chance;
use crate::{engine, model, support};

/// Where it works.
pub const JOB: &str = "CUEBOOK_SOAK_TEST_JOB";
const SAYS: &str = "@@";
/// How much it does at once.
pub const AT_ONCE: usize = 6;

pub struct Worker {
    child: Child,
    tell: ChildStdin,
    hear: Receiver<String>,
    open: usize,
}

impl Worker {
    pub fn start(project: &Path, user: &Path, place: &str) -> Worker {
        let [project, user] = [project, user].map(|path| path.display().to_string());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "helper", "--nocapture"])
            .env(JOB, [project.as_str(), user.as_str(), place].join("\n"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let tell = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (say, hear) = mpsc::channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if let Some(at) = line.find(SAYS) {
                    let _ = say.send(line[at + SAYS.len()..].to_owned());
                }
            }
        });
        Worker { child, tell, hear, open: 0 }
    }

    pub fn tell(&mut self, job: &str) {
        writeln!(self.tell, "{job}").unwrap();
        self.open += 1;
    }

    /// Counts what came of its jobs.
    pub fn hear(&mut self, answers: &mut BTreeMap<String, usize>) {
        while let Ok(answer) = self.hear.try_recv() {
            *answers.entry(answer).or_default() += 1;
            self.open -= 1;
        }
    }

    /// How much it has to do.
    pub fn open(&self) -> usize {
        self.open
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn ends_well(self) {
        let Worker { mut child, tell, .. } = self;
        drop(tell);
        assert!(child.wait().unwrap().success());
    }
}

/// What a worker does.
pub fn work(job: &str) {
    let words: Vec<&str> = job.split('\n').collect();
    let [project, user, place] = words[..] else { panic!("{words:?}") };
    let engine = engine(Path::new(project), Path::new(user), place);
    let (give, take) = mpsc::channel::<String>();
    let take = Arc::new(Mutex::new(take));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE + 2 {
            let (take, engine) = (take.clone(), &engine);
            scope.spawn(move || {
                loop {
                    let Ok(job) = take.lock().unwrap().recv() else { break };
                    let done = catch_unwind(AssertUnwindSafe(|| carry_out(engine, &job)));
                    println!("{SAYS}{}", done.unwrap_or_else(|_| "panic".to_owned()));
                }
            });
        }
        for line in std::io::stdin().lines().map_while(Result::ok) {
            give.send(line).unwrap();
        }
        drop(give);
    });
}

fn carry_out(engine: &cuebook_run::Engine, job: &str) -> String {
    let words: Vec<&str> = job.split(' ').collect();
    match words[..] {
        ["run", seed] => {
            let mut chance = Chance::new(seed.parse().unwrap());
            let item = if chance.percent(80) { "demo/node" } else { "demo/leaf" };
            let mut request = ExecuteRequest {
                thread: true,
                model: Some("mock-model".into()),
                ..support::request("directive", item, json!({"n": seed}))
            };
            request.limit_overrides = model::limits(&mut chance).as_object().unwrap().clone();
            let answer = engine.answer(&request, &Ignore).json;
            let code = answer["metadata"]["error"]["code"].as_str().unwrap_or("ok");
            if code == "CB724" {
                eprintln!("{answer:#}");
            }
            code.to_owned()
        }
        ["resume", id, seed] => {
            let mut chance = Chance::new(seed.parse().unwrap());
            let limit_overrides = model::limits(&mut chance).as_object().unwrap().clone();
            let how = Resume { limit_overrides, ..Resume::default() };
            match engine.resume_with(None, None, &ThreadId::known(id), &how, &Ignore) {
                Ok(ThreadRun::Finished(finished)) => {
                    finished.error.map_or("ok".to_owned(), |error| error.code().as_str().to_owned())
                }
                Ok(ThreadRun::Detached { .. }) => "detached".to_owned(),
                Err(error) => error.code().as_str().to_owned(),
            }
        }
        _ => panic!("{job}"),
    }
}
