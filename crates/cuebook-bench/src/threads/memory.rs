//! What a thousand threads need that wait for their models in one process: a copy of this program, so that the server does not
//! count.

use std::error::Error;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cuebook::items::Spaces;
use cuebook_mock::{Mock, Reply, Script};
use cuebook_run::{Engine, ExecuteRequest, Ignore};

use super::TestProject;

/// The word that makes a copy of this program a crowd.
const WORD: &str = "--crowd";
/// Threads that wait.
const CROWD: usize = 1000;
/// What they may need together, in megabytes.
const TARGET: f64 = 200.0;
/// What the stack of each may grow to; only what is used counts.
const STACK: usize = 2 << 20;

/// If this copy of the program is a crowd, is that and returns `true`.
pub fn be_a_crowd() -> bool {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [word, project, user, count] = &words[..] else { return false };
    if word != WORD {
        return false;
    }
    let engine = Engine::new(Spaces::new(Path::new(project), Some(Path::new(user))));
    std::thread::scope(|scope| {
        for number in 0..count.parse().unwrap_or(0) {
            let engine = &engine;
            let wait = move || {
                let request = ExecuteRequest::directive("bench/greet").parameter("who", format!("{number}"));
                drop(engine.answer(&ExecuteRequest { thread: true, ..request }, &Ignore).json);
            };
            if std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, wait).is_err() {
                eprintln!("no more threads than {number} can be started");
                break;
            }
        }
    });
    true
}

struct ThreadsProcess(Child);

impl Drop for ThreadsProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub fn run() -> Result<(), Box<dyn Error>> {
    println!(
        "\nthreads: memory of a process whose threads wait for their models (target: {CROWD} below {TARGET} MB)"
    );
    for count in [1, CROWD] {
        let patience = Duration::from_secs(600);
        let mock =
            Mock::start(Script::new().reply(Reply::text("late").first_byte_after(patience)).forever())?;
        let place = TestProject::new(&mock)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(WORD).arg(place.project.path()).arg(place.user.path()).arg(count.to_string());
        let crowd = ThreadsProcess(command.stdin(Stdio::null()).spawn()?);
        if !mock.wait_for_requests(count, Duration::from_secs(120)) {
            println!("{count:>6} threads: only {} have asked after two minutes", mock.requests().len());
            continue;
        }
        // Long enough that each has looked whether it is to stop.
        std::thread::sleep(Duration::from_secs(2));
        let Some(resident) = resident(crowd.0.id()) else {
            println!("{count:>6} threads: the system does not say what they need");
            continue;
        };
        let megabytes = resident as f64 / 1024.0;
        println!("{count:>6} threads {megabytes:>9.1} MB {:>9.1} kB each", resident as f64 / count as f64);
    }
    Ok(())
}

/// The memory that a process holds, in kilobytes.
fn resident(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}
