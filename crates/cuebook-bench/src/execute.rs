//! What executing costs: a tool against starting its program by hand, a directive against reading its file and checking one
//! signature, and the same directive against Rye OS in Python, in one process and over the Model Context Protocol (targets: 50
//! and 10 times as fast). Both sides read the same directive, each signed in its own way, and answer with the same text. Theirs
//! checks the signature on every call; ours reads the file on every call and knows bytes again that it has checked, so another
//! row has ours with nothing to remember.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook_run::{Engine, ExecuteRequest, Ignore};
use serde_json::{Value as Json, json};
use tempfile::TempDir;

use crate::measure::{Turns, compare, compare_with, turns};
use crate::peers::RYE;
use crate::race::Race;
use crate::rye::{self, Peer};
use crate::serve::End;
use crate::table::{self, Row, Target};

const TOOL: &str = "version: 1.0.0\ntool_type: shell\ncategory: bench\ndescription: Nothing\n\
                    executor_id: rye/core/primitives/subprocess\nconfig: {command: /bin/true}\n";

const DIRECTIVE: &str = "# Greet\n\nGreets a person.\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n\
    <description>Greets a person</description>\n    <category>bench</category>\n    <author>bench</author>\n  </metadata>\n\
  <inputs>\n    <input name=\"who\" type=\"string\" required=\"true\">Whom</input>\n    <input name=\"tone\" default=\"warm\">How</input>\n\
  </inputs>\n  <outputs>\n    <output name=\"greeting\">The greeting</output>\n  </outputs>\n</directive>\n```\n\n\
<process>\n  <step name=\"greet\">Greet {input:who} in a {input:tone} tone.</step>\n</process>\n";

/// A project and its user, with a signed tool and a signed directive.
struct TestProject {
    project: TempDir,
    user: TempDir,
    spaces: Spaces,
    key: SigningKey,
    /// The directive's.
    file: PathBuf,
}

impl TestProject {
    fn new() -> Result<TestProject, Box<dyn Error>> {
        let (project, user) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let key = SigningKey::generate()?;
        let now = "2026-02-26T00:00:00Z".parse()?;
        Trust::new(&spaces).add(SpaceKind::User, key.public(), "me", Some(&key), now)?;
        let write = |path: &str, extension: &str, text: &str| -> Result<PathBuf, Box<dyn Error>> {
            let file = project.path().join(".ai").join(path);
            std::fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
            let purpose = Purpose::at(path).ok_or("no purpose")?;
            std::fs::write(&file, sign_for(&purpose, extension, text.as_bytes(), &key, now)?)?;
            Ok(file)
        };
        write("tools/bench/nothing.yaml", "yaml", TOOL)?;
        let file = write("directives/bench/greet.md", "md", DIRECTIVE)?;
        // Files that have just been written are looked at more closely than others.
        std::thread::sleep(std::time::Duration::from_millis(50));
        Ok(TestProject { project, user, spaces, key, file })
    }

    /// Reads the directive's file and checks as many signatures: the least there is to do.
    fn by_hand(&self, signatures: usize) -> impl Fn() -> (Vec<u8>, bool) {
        let message = [b'a'; 64];
        let signature = self.key.sign(&message);
        move || {
            let checked = (0..signatures).all(|_| self.key.public().verify(&message, &signature));
            (std::fs::read(&self.file).unwrap_or_default(), checked)
        }
    }
}

fn arguments(project: &Path) -> Json {
    let parameters = json!({"who": "Ann"});
    json!({"item_type": "directive", "item_id": "bench/greet", "project_path": project, "parameters": parameters})
}

/// The row of the one table: a signed directive, executed in one process.
pub fn row() -> Result<Row, Box<dyn Error>> {
    let place = TestProject::new()?;
    let engine = Engine::new(place.spaces.clone());
    let directive = ExecuteRequest::directive("bench/greet").parameter("who", "Ann");
    let answer = engine.answer(&directive, &Ignore).json;
    let peer = Peer::new();
    let theirs = peer.as_ref().map_err(|why| why.clone()).and_then(|peer| -> Result<Turns<'_>, String> {
        let (mut script, theirs) = peer.script(DIRECTIVE, &arguments(peer.project()))?;
        same(&answer, &theirs).map_err(|error| error.to_string())?;
        Ok(Box::new(move || script.time("execute")))
    });
    let what = "a signed directive is found, verified and filled in one process, warm";
    let race = Race::new("execute", what, Ok(turns(|| engine.answer(&directive, &Ignore).json)))
        .floor("reading its file and one bare verification of a signature", Ok(turns(place.by_hand(1))))
        .peer(
            table::Peer::new(RYE, rye::VERSION).note(
                "it verifies a signature at every call; Cuebook recognises bytes that it verified before",
            ),
            theirs,
        );
    Ok(race.run().target(Target::Ahead))
}

/// Prints the rows.
pub fn run() -> Result<(), Box<dyn Error>> {
    println!("\nexecute, in one process");
    let place = TestProject::new()?;
    let spaces = &place.spaces;
    let engine = Engine::new(spaces.clone());
    let expect = |request: &ExecuteRequest| {
        let answer = engine.answer(request, &Ignore).json;
        if answer["status"] == "success" { Ok(()) } else { Err(answer.to_string()) }
    };
    let tool = ExecuteRequest::tool("bench/nothing");
    // The first call writes the lockfile.
    expect(&tool)?;
    let bare = || {
        let mut command = Command::new("/bin/true");
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        piped.spawn().and_then(std::process::Child::wait_with_output)
    };
    let pair = compare(bare, || engine.answer(&tool, &Ignore).json);
    line("a tool that does nothing, against fork and exec", pair.peer, pair.ours);
    println!("  {:52} {:8.1} µs more (target: at most 1000)", "", (pair.ours - pair.peer) / 1e3);
    let directive = ExecuteRequest::directive("bench/greet").parameter("who", "Ann");
    expect(&directive)?;
    let warm = compare(place.by_hand(1), || engine.answer(&directive, &Ignore).json);
    line("a directive, warm, against one signature and reading", warm.peer, warm.ours);
    // A trusted key is a signed file too, so a cold engine checks two signatures.
    let cold = compare(place.by_hand(2), || Engine::new(spaces.clone()).answer(&directive, &Ignore).json);
    line("the same, cold, against two (target: at most 3 times)", cold.peer, cold.ours);
    println!(
        "\nexecute: a signed directive, warm, against {} in Python (targets: 50 and 10 times as fast)",
        rye::NAME
    );
    let peer = match Peer::new() {
        Ok(peer) => peer,
        Err(why) => {
            println!("the peer is left out: {why}");
            return Ok(());
        }
    };
    println!("{:40} {:>12} {:>12} {:>7}", "", rye::NAME, "cuebook", "faster");
    against(&peer, place.project.path(), place.user.path(), &engine, &directive)
}

/// The rows that have the peer in them.
fn against(
    peer: &Peer,
    project: &Path,
    user: &Path,
    engine: &Engine,
    directive: &ExecuteRequest,
) -> Result<(), Box<dyn Error>> {
    let (mut script, theirs) = peer.script(DIRECTIVE, &arguments(peer.project()))?;
    same(&engine.answer(directive, &Ignore).json, &theirs)?;
    let pair = compare_with(|| script.time("execute"), || engine.answer(directive, &Ignore).json)?;
    let faster = |name: &str, pair: &crate::measure::Pair| {
        let (peer, ours) = (pair.peer / 1e3, pair.ours / 1e3);
        println!("{name:40} {peer:>9.1} µs {ours:>9.1} µs {:>7.1}", 1.0 / pair.ratio());
    };
    faster("in one process", &pair);
    let spaces = Spaces::new(project, Some(user));
    let forgetful = || Engine::new(spaces.clone()).answer(directive, &Ignore).json;
    faster("the same, ours cold on every call", &compare_with(|| script.time("execute"), forgetful)?);
    drop(script);

    let call = |name: &str, project: &Path| {
        let params = json!({"name": name, "arguments": arguments(project)});
        format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))
    };
    let (our_call, their_call) = (call("rye_execute", project), call("execute", peer.project()));
    let (mut ours, mut theirs) = (End::server(project, user)?, End::of(&mut peer.server())?);
    ours.hello()?;
    theirs.hello()?;
    same(&answer_json(ours.ask(&our_call))?, &answer_json(theirs.ask(&their_call))?)?;
    let pair = compare(|| theirs.ask(&their_call).len(), || ours.ask(&our_call).len());
    faster("over the protocol, there and back", &pair);
    Ok(())
}

/// What a server says in the text of its answer.
fn answer_json(answer: &str) -> Result<Json, Box<dyn Error>> {
    let message: Json = serde_json::from_str(answer)?;
    let text = message["result"]["content"][0]["text"].as_str().ok_or_else(|| answer.to_owned())?;
    Ok(serde_json::from_str(text)?)
}

/// Two that give other answers do other work.
fn same(ours: &Json, theirs: &Json) -> Result<(), Box<dyn Error>> {
    let gist = |answer: &Json| (answer["status"].clone(), answer["body"].as_str().map(str::to_owned));
    if ours["status"] == "success" && gist(ours) == gist(theirs) {
        return Ok(());
    }
    Err(format!("the answers differ:\n{ours}\n{theirs}").into())
}

fn line(name: &str, peer: f64, ours: f64) {
    println!("  {name:52} {:8.1} µs  {:8.1} µs  {:5.2} times", peer / 1e3, ours / 1e3, ours / peer);
}
