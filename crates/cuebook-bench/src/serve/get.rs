//! The rows of the one table: `prompts/get` over stdio, and the memory of a server that waits. Ours is the real command.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value as Json, json};

use super::End;
use crate::measure::{Turns, turns};
use crate::peers::{MCP_SDK, RYE};
use crate::place;
use crate::python::Packages;
use crate::race::Race;
use crate::rye;
use crate::table::{Peer, Row, Target, Unit};

const VERSION: &str = "2.3.0";
const PACKAGES: Packages = Packages { exact: &[("mcp", VERSION), ("jinja2", "3.1.6")], also: &[], minor: 13 };

const TEMPLATE: &str = "Welcome {{ guest }} to {{ house }}.\nSay when breakfast is, and be brief.";
const EXPECTED: &str = "Welcome Mara to the old mill.\nSay when breakfast is, and be brief.";

/// A server that waits holds less than this.
const MEMORY: f64 = 15e6;

/// The two rows.
pub fn rows() -> Result<Vec<Row>, Box<dyn Error>> {
    let project = tempfile::tempdir()?;
    let folder = project.path().join("prompts/welcome");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("template.md"), TEMPLATE)?;
    // Files that have just been written are looked at more closely than others.
    std::thread::sleep(Duration::from_millis(50));

    let mut ours =
        place::program().and_then(|program| Served::start(&mut our_command(&program, project.path())));
    let python = PACKAGES.environment();
    let mut sdk = python.and_then(|python| Served::start(&mut sdk_command(&python)));
    // It serves no prompts; what it does over the protocol is in the table `execute`.
    let theirs = rye::Peer::new().and_then(|peer| Served::start(&mut peer.server())?.memory);

    let memory = |served: &Result<Served, String>| served.as_ref().map_err(|why| why.clone())?.memory.clone();
    let idle = Row {
        unit: Unit::Memory,
        ..Row::new(
            "memory of an idle MCP server",
            "the memory half a second after `initialize`",
            memory(&ours),
        )
    };
    let idle = idle
        .peer(Peer::new(RYE, rye::VERSION).took(theirs))
        .peer(Peer::new(MCP_SDK, VERSION).took(memory(&sdk)).note("the protocol's own package for Python"))
        .target(Target::Below(MEMORY, Unit::Memory))
        .target(Target::Ahead);

    let back = ours.as_mut().ok().map(|served| served.end.ask(&get()).to_owned());
    let floor =
        back.ok_or("there is no answer to echo".to_owned()).and_then(|back| -> Result<Turns<'_>, String> {
            let mut echo = End::start(&["--echo"]).map_err(|error| error.to_string())?;
            Ok(turns(move || echo.ask(&back).len()))
        });
    let what = "a prompt of two variables over stdio, there and back";
    let race = Race::new("MCP prompts/get", what, got(&mut ours))
        .floor("a bare echo of as much JSON over a pipe", floor)
        .peer(
            Peer::new(MCP_SDK, VERSION).note("the protocol's own package for Python, with Jinja2"),
            got(&mut sdk),
        );
    Ok(vec![race.run().target(Target::Ahead), idle])
}

/// A server that has been greeted.
struct Served {
    end: End,
    memory: Result<f64, String>,
}

impl Served {
    fn start(command: &mut Command) -> Result<Served, String> {
        let mut greet = || -> Result<End, Box<dyn Error>> {
            let mut end = End::of(command)?;
            end.hello()?;
            Ok(end)
        };
        let end = greet().map_err(|error| error.to_string())?;
        std::thread::sleep(Duration::from_millis(500));
        let resident = end.resident().map(|kilobytes| kilobytes as f64 * 1024.0);
        Ok(Served { end, memory: resident.ok_or_else(|| "the system does not say what it holds".to_owned()) })
    }
}

/// Turns of `prompts/get`, if the prompt is the expected one.
fn got<'a>(served: &'a mut Result<Served, String>) -> Result<Turns<'a>, String> {
    let end = &mut served.as_mut().map_err(|why| why.clone())?.end;
    let line = get();
    let answer: Json = serde_json::from_str(end.ask(&line)).map_err(|error| error.to_string())?;
    if answer["result"]["messages"][0]["content"]["text"] != EXPECTED {
        return Err(format!("it gives another prompt: {answer}"));
    }
    Ok(turns(move || end.ask(&line).len()))
}

fn get() -> String {
    let params = json!({"name": "welcome", "arguments": {"guest": "Mara", "house": "the old mill"}});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params}))
}

fn our_command(program: &Path, project: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("mcp").arg("--root").arg(project).env("USER_SPACE", project.join("user"));
    command
}

fn sdk_command(python: &Path) -> Command {
    let mut command = Command::new(python);
    command.args(["-I", "-c", include_str!("peer.py")]).arg(TEMPLATE);
    command
}
