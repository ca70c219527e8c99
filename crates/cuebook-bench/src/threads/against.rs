//! A whole thread with one instant answer against Rye OS in Python (target: 50 times as fast). Both run the same directive, are
//! answered by the same server, and keep their threads on the same disk.

use std::error::Error;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cuebook_mock::{Mock, Reply, Script};
use cuebook_run::{Engine, ExecuteRequest, Ignore};
use serde_json::json;

use super::peer::{self, Peer};
use super::{DIRECTIVE, TestProject, percentile};

/// How often ours runs, and how often the peer does, which takes seconds each time.
const OURS: usize = 200;
const PEERS: usize = 7;

pub fn run() -> Result<(), Box<dyn Error>> {
    println!(
        "\nthreads: a directive with one instant answer against {} in Python (target: 50 times as fast)",
        peer::NAME
    );
    let script = Script::answer(|_| {
        Reply::call("c1", "directive_return", json!({"greeting": "Hello"})).usage(100, 20)
    });
    let mock = Mock::start(script.forget_requests())?;
    let place = TestProject::new(&mock)?;
    let theirs = match Peer::new().and_then(|peer| peer.times(&mock.url(), DIRECTIVE, PEERS)) {
        Ok(times) => Some(times),
        Err(why) => {
            println!("the peer was not measured: {why}");
            None
        }
    };
    println!("{:40} {:>12} {:>12} {:>15}", "", "best", "usual", "times as fast");
    if let Some(times) = &theirs {
        line(peer::NAME, times, None);
    }
    let engine = Engine::new(place.spaces());
    let greet = || ExecuteRequest {
        thread: true,
        ..ExecuteRequest::directive("bench/greet").parameter("who", "Ann")
    };
    let one = |engine: &Engine| -> Result<Duration, Box<dyn Error>> {
        let began = Instant::now();
        let answer = engine.answer(&greet(), &Ignore).json;
        let took = began.elapsed();
        if answer["outputs"]["greeting"] != "Hello" {
            return Err(answer.to_string().into());
        }
        Ok(took)
    };
    one(&engine)?;
    let warm = (0..OURS).map(|_| one(&engine)).collect::<Result<Vec<_>, _>>()?;
    line("cuebook, in one process", &warm, theirs.as_deref());
    let cold = (0..OURS / 4).map(|_| one(&Engine::new(place.spaces()))).collect::<Result<Vec<_>, _>>()?;
    line("the same, an engine for each", &cold, theirs.as_deref());
    let Some(program) = program() else {
        println!(
            "cuebook as a process was not measured: build it first (cargo build --profile dist -p cuebook-cli)"
        );
        return Ok(());
    };
    let process = || -> Result<Duration, Box<dyn Error>> {
        let mut command = Command::new(&program);
        command.args(["execute", "directive", "bench/greet", "--param", "who=Ann", "--thread", "--json"]);
        command.arg("--project").arg(place.project.path()).current_dir(place.project.path());
        command.env("USER_SPACE", place.user.path()).stdin(Stdio::null());
        let began = Instant::now();
        let output = command.output()?;
        let took = began.elapsed();
        if !output.status.success() || !String::from_utf8_lossy(&output.stdout).contains("Hello") {
            let said = [output.stdout, output.stderr].concat();
            return Err(format!("{}: {}", output.status, String::from_utf8_lossy(&said)).into());
        }
        Ok(took)
    };
    match (0..OURS / 4).map(|_| process()).collect::<Result<Vec<_>, _>>() {
        Ok(times) => line("cuebook, a process for each", &times, theirs.as_deref()),
        // It may be older than this program.
        Err(why) => println!("cuebook as a process was not measured: {why}"),
    }
    Ok(())
}

/// Our program, if it lies beside this one.
fn program() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name("cuebook");
    path.is_file().then_some(path)
}

fn line(name: &str, times: &[Duration], theirs: Option<&[Duration]>) {
    let figures = |times: &[Duration]| {
        let mut sorted = times.to_vec();
        sorted.sort();
        [0, 50].map(|percent| percentile(&sorted, percent).as_secs_f64() * 1e3)
    };
    let [best, usual] = figures(times);
    let faster = theirs.map_or(String::new(), |theirs| {
        let [their_best, their_usual] = figures(theirs);
        format!(
            "{:.0} to {:.0}",
            (their_best / best).min(their_usual / usual),
            (their_best / best).max(their_usual / usual)
        )
    });
    println!("{name:40} {best:>9.2} ms {usual:>9.2} ms {faster:>15}");
}
