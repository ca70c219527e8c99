//! What it takes from starting a program to the first byte that it writes.
//!
//! Each round starts every program once, one after another; the best of all rounds counts.

use std::error::Error;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::prompts;
use crate::measure::{Turns, is_rehearsal};
use crate::peers::{
    DOTPROMPT, DOTPROMPT_VERSION, JINJA2, JINJA2_VERSION, PROMPTY_PYTHON, PROMPTY_RUST, PROMPTY_VERSION,
    dotprompt_command, prompty_program, python,
};
use crate::place;
use crate::race::Race;
use crate::table::{Peer, Row, Target};

/// Starts of each program.
const STARTS: usize = 100;

/// The row.
pub fn row() -> Result<Row, Box<dyn Error>> {
    let case = prompts::small();
    let project = tempfile::tempdir()?;
    let (file, other) = (project.path().join("small.prompty"), project.path().join("small.prompt"));
    fs::write(&file, case.file())?;
    fs::write(&other, &case.handlebars)?;
    let inputs = project.path().join("inputs.json");
    let values = case.values.to_string();
    fs::write(&inputs, &values)?;

    let ours = place::program().map(|program| {
        let mut command = Command::new(program);
        command.arg("render").arg(&file).arg("--vars").arg(&inputs).current_dir(project.path());
        command
    });
    let imported = python().map(|python| {
        let mut command = Command::new(python);
        command.args(["-c", "import jinja2"]);
        command
    });
    let prompty = python().map(|python| {
        let mut command = Command::new(python);
        let script = "import json, sys, prompty; print(prompty.render(prompty.load(sys.argv[1]), json.loads(sys.argv[2])))";
        command.args(["-c", script]).arg(&file).arg(&values);
        command
    });
    let rust = prompty_program().map(|program| {
        let mut command = Command::new(program);
        command.arg("--once").arg(&file).arg(&values);
        command
    });
    let dotprompt = dotprompt_command().map(|mut command| {
        command.arg("--once").arg(&other).arg(&values);
        command
    });
    // All but the import show the same thing.
    let expected = "When is breakfast, and can I bring my dog?";
    let shows = |command: Result<Command, String>| -> Result<Turns<'_>, String> {
        let mut command = command?;
        let program = command.get_program().to_string_lossy().into_owned();
        let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
        if !output.status.success() || !String::from_utf8_lossy(&output.stdout).contains(expected) {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("it ended with {} and said {said:?}", output.status));
        }
        Ok(Box::new(move || first_byte(&mut command)))
    };
    let what = "from the start of `cuebook render small.prompty` to its first byte";
    let race = Race::new("cold start", what, shows(ours))
        .floor("the whole run of `true`", Ok(Box::new(|| to_the_end(&mut Command::new("true")))))
        .peer(
            Peer::new(JINJA2, JINJA2_VERSION).note("`python3 -c \"import jinja2\"`, until it ends"),
            imported.map(|mut command| -> Turns<'_> { Box::new(move || to_the_end(&mut command)) }),
        )
        .peer(
            Peer::new(PROMPTY_PYTHON, PROMPTY_VERSION)
                .note("it has no command line: a line of Python that loads, renders and prints"),
            shows(prompty),
        )
        .peer(
            Peer::new(PROMPTY_RUST, PROMPTY_VERSION)
                .yardstick()
                .note("it has no command line: this is a ten-line program that reads one file"),
            shows(rust),
        )
        .peer(
            Peer::new(DOTPROMPT, DOTPROMPT_VERSION).note("it has no command line: a script for Node"),
            shows(dotprompt),
        )
        .rounds(if is_rehearsal() { 2 } else { STARTS });
    Ok(race.run().target(Target::AtMost { times: 0.25, peer: JINJA2 }).target(Target::Ahead))
}

/// Nanoseconds until a program writes something.
fn first_byte(command: &mut Command) -> Result<f64, String> {
    let started = Instant::now();
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let mut child = spawned.map_err(|error| error.to_string())?;
    let mut out = child.stdout.take().ok_or("no pipe")?;
    let mut byte = [0];
    let read = out.read_exact(&mut byte);
    let took = started.elapsed();
    // The rest is read, so that it ends as usual before the next one begins.
    let _ = out.read_to_end(&mut Vec::new());
    let _ = child.wait();
    read.map_err(|error| format!("it wrote nothing: {error}"))?;
    Ok(took.as_nanos() as f64)
}

/// Nanoseconds until a program has ended well.
fn to_the_end(command: &mut Command) -> Result<f64, String> {
    let started = Instant::now();
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let status = quiet.status().map_err(|error| error.to_string())?;
    let took = started.elapsed();
    if status.success() { Ok(took.as_nanos() as f64) } else { Err(format!("it ended with {status}")) }
}
