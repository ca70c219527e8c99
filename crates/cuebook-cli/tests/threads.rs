//! Threads on the command line, with the real binary, a real store, and a model that says what it was told to say.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cuebook_mock::{Api, Mock, Reply, Script};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value as Json, json};
use support::Project;

const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greet somebody.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <limits turns="4" tokens="20000" spend="0.5" />
    <permissions><execute><tool>rye.bash.bash</tool></execute><acknowledge risk="elevated">It only sleeps.</acknowledge></permissions>
  </metadata>
  <inputs><input name="user" type="string" required="true">Who</input></inputs>
  <outputs><output name="greeting" type="string">What was said</output></outputs>
</directive>
```

Greet {input:user}.
"#;

/// What no output, file or log may show.
const KEY: &str = "sk-mock-5f0e8d7c6b5a4938271605f4e3d2c1b0";

/// Long enough for a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

struct Stage {
    project: Project,
    mock: Mock,
}

fn stage(script: Script) -> Stage {
    let project = Project::new();
    let mock = Mock::start(script).unwrap();
    project.write("home/.ai/config/providers/mock.yaml", mock.provider_yaml(Api::Anthropic));
    project.write(".ai/directives/demo/greet.md", GREET);
    let stage = Stage { project, mock };
    for args in [&["keys", "generate"][..], &["sign", "directive", "demo/*"]] {
        let output = stage.run(args);
        assert!(output.status.success(), "{}", err(&output));
    }
    stage
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn lines(text: &str) -> Vec<Json> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

fn kinds(events: &[Json]) -> Vec<&str> {
    events.iter().filter_map(|event| event["event_type"].as_str()).collect()
}

fn returned(greeting: &str) -> Reply {
    Reply::call("c9", "directive_return", json!({"greeting": greeting})).usage(100, 20)
}

/// A call of a tool that takes a minute.
fn sleeping() -> Reply {
    let command = "echo $$ > pid; sleep 60";
    let call = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": command}});
    Reply::call("c1", "rye_execute", call).usage(100, 20)
}

/// An answer that takes a minute.
fn silent() -> Reply {
    Reply::text("too late").first_byte_after(PATIENCE)
}

const THREADED: [&str; 6] = ["execute", "directive", "demo/greet", "--param", "user=Ann", "--thread"];

impl Stage {
    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(env!("CARGO_BIN_EXE_cuebook"), self.project.path());
        command.args(args).env("MOCK_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    fn threaded(&self, more: &[&str]) -> Output {
        let args: Vec<&str> = THREADED.iter().chain(more).copied().collect();
        self.run(&args)
    }

    /// The answer of a command that succeeds.
    fn json(&self, args: &[&str]) -> Json {
        let output = self.run(&[args, &["--json"]].concat());
        serde_json::from_str(&out(&output))
            .unwrap_or_else(|_| panic!("{args:?}: {}{}", out(&output), err(&output)))
    }

    /// The newest thread.
    fn newest(&self) -> Json {
        self.json(&["thread", "list"])[0].clone()
    }

    fn id(&self) -> String {
        self.newest()["thread_id"].as_str().unwrap().to_owned()
    }

    fn events(&self, id: &str) -> Vec<Json> {
        lines(&out(&self.run(&["thread", "tail", id, "--no-follow", "--json"])))
    }

    /// Waits until the newest thread has a status.
    fn wait_for(&self, status: &str) -> Json {
        let began = Instant::now();
        loop {
            let newest = self.newest();
            if newest["status"] == status {
                return newest;
            }
            assert!(began.elapsed() < PATIENCE, "not {status}: {newest:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn wait_for_file(&self, name: &str) -> String {
        let began = Instant::now();
        loop {
            match std::fs::read_to_string(self.project.path().join(name)) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => assert!(began.elapsed() < PATIENCE, "there is no {name}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn asked(&self, count: usize) {
        assert!(self.mock.wait_for_requests(count, PATIENCE), "{count} requests were expected");
    }
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

/// Whether a process runs; one that has ended and that nobody asked about does not.
fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|text| !text.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

fn gone(pid: &str) {
    let began = Instant::now();
    while runs(pid) {
        assert!(began.elapsed() < PATIENCE, "{pid} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_directive_runs_and_its_outputs_are_all_that_is_on_stdout() {
    let stage = stage(Script::new().reply(returned("Hello, Ann!")));
    let output = stage.threaded(&[]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(serde_json::from_str::<Json>(&out(&output)).unwrap(), json!({"greeting": "Hello, Ann!"}));
    let said = err(&output);
    let plain: Vec<&str> = said.lines().collect();
    assert_eq!(plain[0], "started: demo/greet with mock-model", "{said}");
    assert_eq!(plain[1], "turn 1: asking");
    assert_eq!(plain[2], "turn 1: one call (120 tokens so far)");
    assert!(plain[3].starts_with("  directive_return {"), "{said}");
    assert_eq!(plain[4], "completed");
    assert!(plain[5].starts_with("completed: demo/greet/greet-"), "{said}");
    assert!(plain[5].contains("; 1 turn, 120 tokens, 0.0003 spent, "), "{said}");
    assert!(!said.contains('\x1b'), "there is no terminal: {said:?}");
}

#[test]
fn events_come_as_lines_and_the_last_line_is_the_answer() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let output = stage.threaded(&["--json"]);
    assert_eq!(err(&output), "");
    let all = lines(&out(&output));
    let (answer, events) = all.split_last().unwrap();
    assert_eq!(
        kinds(events),
        [
            "thread_started",
            "cognition_in",
            "cognition_out",
            "tool_call_start",
            "directive_return",
            "tool_call_result",
            "thread_completed"
        ]
    );
    assert_eq!((&answer["status"], &answer["thread_status"]), (&json!("success"), &json!("completed")));
    assert_eq!(answer["outputs"], json!({"greeting": "Hi"}));
    let id = answer["thread_id"].as_str().unwrap();
    assert!(events.iter().all(|event| event["thread_id"] == id));
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(stage.events(id), events, "what was told is what is kept");
}

#[test]
fn threads_are_listed_shown_and_followed() {
    let stage = stage(Script::new().reply(returned("Hi")).text("no").forever());
    stage.threaded(&[]);
    let failed = stage.threaded(&[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(err(&failed).contains("error[CB725]"), "{}", err(&failed));
    let list = out(&stage.run(&["thread", "list"]));
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert!(rows[0].starts_with("error ") && rows[1].starts_with("completed "), "{list}");
    let completed = out(&stage.run(&["thread", "list", "--status", "completed", "--status", "running"]));
    assert_eq!(completed.lines().count(), 1);
    assert_eq!(out(&stage.run(&["thread", "list", "--prompt", "demo/other"])), "");
    assert_eq!(stage.json(&["thread", "list", "--most", "1"]).as_array().unwrap().len(), 1);
    let id =
        stage.json(&["thread", "list", "--status", "completed"])[0]["thread_id"].as_str().unwrap().to_owned();
    let shown = out(&stage.run(&["thread", "show", &id]));
    for part in
        ["model: mock-model of mock", "inputs: {\"user\":\"Ann\"}", "Greet Ann.", "log: 7 events, whole"]
    {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    let json = stage.json(&["thread", "show", &id, "--events"]);
    assert_eq!(json["launch"]["inputs"], json!({"user": "Ann"}));
    assert_eq!((json["log"]["whole"] == true, json["transcript"].as_array().unwrap().len()), (true, 7));
    let tail = out(&stage.run(&["thread", "tail", &id]));
    assert!(tail.lines().last().unwrap().ends_with(" completed"), "{tail}");
    let after = lines(&out(&stage.run(&["thread", "tail", &id, "--after", "6", "--json"])));
    assert_eq!(kinds(&after), ["thread_completed"]);
}

#[test]
fn a_thread_is_named_by_a_part_of_its_name_if_that_is_enough() {
    let stage = stage(Script::new().reply(returned("Hi")).reply(returned("Hi")));
    stage.threaded(&[]);
    let id = stage.id();
    let end = id.rsplit('-').next().unwrap();
    for name in [id.as_str(), end, &end[5..], "demo/greet", "greet"] {
        assert_eq!(stage.json(&["thread", "show", name])["thread_id"], id.as_str(), "{name}");
    }
    let slip = format!("demo/gret/greet-{end}");
    let output = stage.run(&["thread", "show", &slip]);
    assert!(err(&output).contains("[CB712]") && err(&output).contains(&id), "{}", err(&output));
    stage.threaded(&[]);
    let output = stage.run(&["thread", "show", "greet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("2 threads") && err(&output).contains(&id), "{}", err(&output));
    assert!(err(&stage.run(&["thread", "show", ""])).contains("CB712"));
}

#[test]
fn wrong_words_are_told_with_the_right_ones() {
    let stage = stage(Script::new());
    let said = |args: &[&str]| {
        let output = stage.run(args);
        assert!(!output.status.success(), "{args:?}");
        assert_eq!(out(&output), "", "{args:?}");
        err(&output)
    };
    let threaded = |more: &[&str]| said(&[&THREADED, more].concat());
    assert!(said(&["thread", "list", "--status", "runing"]).contains("running"));
    assert!(threaded(&["--limit", "turn=3"]).contains("did you mean `turns`?"));
    assert!(threaded(&["--limit", "turns=-1"]).contains("[CB715]"));
    assert!(threaded(&["--limit", "turns"]).contains("--limit turns=30"));
    assert!(threaded(&["--model", "mock-modl"]).contains("mock-model"));
    assert!(said(&["thread", "show", "none"]).contains("[CB712]"));
    let tool = said(&["execute", "tool", "rye/bash/bash", "--param", "command=touch oops", "--thread"]);
    assert!(tool.contains("leave --thread out") && !stage.project.path().join("oops").exists(), "{tool}");
    assert!(stage.mock.requests().is_empty());
    assert_eq!(stage.json(&["thread", "list"]), json!([]));
}

#[test]
fn a_limit_is_told_and_resume_goes_on_with_another() {
    let call = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "echo once >> runs"}});
    let stage =
        stage(Script::new().reply(Reply::call("c1", "rye_execute", call).usage(10, 2)).reply(returned("Hi")));
    let output = stage.threaded(&["--limit", "turns=1"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("error[CB716]: the thread used 1 of 1 turns"), "{said}");
    let id = stage.id();
    let hint = said.lines().find_map(|line| line.split_once("cuebook thread resume ")).unwrap().1;
    assert!(hint.starts_with(&format!("{id} --limit turns=2")), "{said}");
    assert_eq!(stage.newest()["status"], "suspended");
    let again = stage.run(&["thread", "resume", &id]);
    assert!(err(&again).contains("[CB716]"), "the limit still holds: {}", err(&again));
    let output = stage.run(&["thread", "resume", &id, "--limit", "turns=2"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(serde_json::from_str::<Json>(&out(&output)).unwrap(), json!({"greeting": "Hi"}));
    assert_eq!(std::fs::read_to_string(stage.project.path().join("runs")).unwrap(), "once\n");
    let output = stage.run(&["thread", "resume", &id]);
    assert!(err(&output).contains("[CB728]"), "{}", err(&output));
    let output = stage.run(&["thread", "cancel", &id]);
    assert!(err(&output).contains("[CB728]") && err(&output).contains("completed"), "{}", err(&output));
}

#[test]
fn a_key_that_is_missing_is_named_and_one_that_is_there_is_never_shown() {
    keeps_its_key("key: MOCK_KEY\n");
}

#[test]
fn a_secret_of_a_header_is_kept_like_a_key() {
    keeps_its_key("headers: {x-other: a, x-api-key: \"${env:MOCK_KEY}\"}\n");
    let stage = stage(Script::new());
    let yaml = stage.mock.provider_yaml(Api::Anthropic).replace("key: MOCK_KEY\n", HEADER);
    stage.project.write("home/.ai/config/providers/mock.yaml", yaml);
    assert!(out(&stage.run(&["providers"])).contains("MOCK_KEY is set"));
    let output = stage.command(&["providers"]).env_remove("MOCK_KEY").output().unwrap();
    assert!(out(&output).contains("MOCK_KEY is not set"), "{}", out(&output));
    let output = stage.command(&["providers", "--json"]).env_remove("MOCK_KEY").output().unwrap();
    let listed: Json = serde_json::from_str(&out(&output)).unwrap();
    let mock = listed.as_array().unwrap().iter().find(|provider| provider["name"] == "mock").unwrap();
    assert_eq!((&mock["ready"], &mock["variables"]), (&json!(false), &json!(["MOCK_KEY"])));
}

/// A secret that stands in a header.
const HEADER: &str = "headers: {Authorization: \"Bearer ${env:MOCK_KEY}\"}\n";

fn keeps_its_key(said: &str) {
    let leak = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": format!("echo {KEY}; echo ${{MOCK_KEY:-unset}}")}});
    let stage = stage(
        Script::new()
            .reply(Reply::error(401, &format!("the key {KEY} is not good")))
            .reply(Reply::call("c1", "rye_execute", leak).usage(10, 2).and_text(format!("I know {KEY}")))
            .reply(returned(&format!("Hi {KEY}"))),
    );
    let yaml = stage.mock.provider_yaml(Api::Anthropic).replace("key: MOCK_KEY\n", said);
    stage.project.write("home/.ai/config/providers/mock.yaml", yaml);
    let args = [&THREADED[..], &["--model", "mock-model"]].concat();
    let output = stage.command(&args).env_remove("MOCK_KEY").output().unwrap();
    assert!(err(&output).contains("[CB721]") && err(&output).contains("MOCK_KEY"), "{}", err(&output));
    assert!(stage.mock.requests().is_empty());
    let mut seen = vec![stage.threaded(&["--json"]), stage.threaded(&["--record", "replies.jsonl"])];
    let id = stage.id();
    seen.push(stage.run(&["thread", "show", &id, "--events"]));
    seen.push(stage.run(&["thread", "show", &id, "--json", "--events"]));
    seen.push(stage.run(&["thread", "tail", &id, "--json"]));
    seen.push(stage.run(&["thread", "list", "--json"]));
    assert_eq!(stage.mock.requests()[1].header("x-api-key"), Some(KEY), "the provider has to know it");
    for output in &seen {
        assert!(!out(output).contains(KEY) && !err(output).contains(KEY), "{}{}", out(output), err(output));
    }
    assert!(seen[1].status.success(), "{}", err(&seen[1]));
    let told = stage.mock.requests()[2].body["messages"][2].to_string();
    assert!(
        told.contains("nunset") && told.contains("[secret]") && !told.contains(KEY),
        "the tool has it: {told}"
    );
    let mut files = 0;
    search(stage.project.path(), &mut |path, bytes| {
        files += 1;
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{} has the key", path.display());
    });
    assert!(files > 5);
}

fn search(folder: &Path, look: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, look);
        } else if path.is_file() {
            look(&path, &std::fs::read(&path).unwrap());
        }
    }
}

#[test]
fn what_was_recorded_is_played_back_offline_byte_for_byte() {
    let call = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "echo hi"}});
    let stage = stage(
        Script::new().reply(Reply::call("c1", "rye_execute", call).usage(9, 2)).reply(returned("Hi ✓")),
    );
    let recorded = stage.threaded(&["--record", "replies.jsonl"]);
    assert!(recorded.status.success(), "{}", err(&recorded));
    assert_eq!(stage.mock.requests().len(), 2);
    let first = stage.id();
    // No key, and nobody to ask.
    let args = [&THREADED[..], &["--replay", "replies.jsonl"]].concat();
    let played = stage.command(&args).env_remove("MOCK_KEY").output().unwrap();
    assert!(played.status.success(), "{}", err(&played));
    assert_eq!(stage.mock.requests().len(), 2, "nobody was asked");
    assert_eq!(out(&played), out(&recorded));
    let answers = |id: &str| -> Vec<Json> {
        let said = stage.events(id).into_iter().filter(|event| event["event_type"] == "cognition_out");
        said.map(|event| event["payload"]["message"].clone()).collect()
    };
    assert_eq!(answers(&first), answers(&stage.id()));
    let args = [
        "execute",
        "directive",
        "demo/greet",
        "--param",
        "user=Bob",
        "--thread",
        "--replay",
        "replies.jsonl",
    ];
    let other = stage.run(&args);
    assert_eq!(other.status.code(), Some(1));
    let said = err(&other);
    assert!(said.contains("[CB723]") && said.contains("Ann") && said.contains("Bob"), "{said}");
    stage.project.write("replies.jsonl", "{}\n");
    assert!(err(&stage.threaded(&["--replay", "replies.jsonl"])).contains("[CB723]"));
}

#[test]
fn a_thread_without_its_parent_shell_goes_on() {
    let stage = stage(Script::new().reply(returned("Hi").first_byte_after(Duration::from_millis(1500))));
    let shell = format!("cuebook {} --async; sleep 60", THREADED.join(" "));
    let mut command = stage.project.command("sh", stage.project.path());
    command.args(["-c", &shell]).env("MOCK_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = command.process_group(0).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let id = first.trim();
    assert!(id.starts_with("demo/greet/greet-"), "{id}");
    kill_process_group(pid(&shell), Signal::HUP).unwrap();
    kill_process_group(pid(&shell), Signal::KILL).unwrap();
    shell.wait().unwrap();
    stage.asked(1);
    // One that hears of it itself goes on as well.
    let runner = stage.json(&["thread", "show", id])["pid"].as_i64().unwrap();
    let runner = Pid::from_raw(i32::try_from(runner).unwrap()).unwrap();
    kill_process(runner, Signal::HUP).unwrap();
    let tail = stage.run(&["thread", "tail", id]);
    assert!(out(&tail).trim_end().ends_with("completed"), "{}", out(&tail));
    assert_eq!(stage.json(&["thread", "show", id])["result"]["outputs"], json!({"greeting": "Hi"}));
}

#[test]
fn async_answers_at_once_with_an_id() {
    let stage = stage(Script::new().reply(silent()));
    let answer = stage.json(&[&THREADED[..], &["--async"]].concat());
    assert_eq!(answer["status"], "running");
    let id = answer["thread_id"].as_str().unwrap();
    stage.asked(1);
    assert_eq!(stage.newest()["status"], "running");
    let busy = stage.run(&["thread", "resume", id]);
    assert!(err(&busy).contains("[CB713]"), "{}", err(&busy));
    let cancelled = stage.run(&["thread", "cancel", id]);
    assert!(err(&cancelled).trim_end().ends_with(": cancelled"), "{}", err(&cancelled));
    gone(&answer["pid"].to_string());
    let events = stage.events(id);
    let kinds = kinds(&events);
    assert_eq!(kinds.last(), Some(&"thread_cancelled"), "{kinds:?}");
    assert!(!kinds.contains(&"cognition_out"), "{kinds:?}");
}

#[test]
fn a_cancelled_thread_takes_its_tools_along() {
    let stage = stage(Script::new().reply(sleeping()).reply(returned("never")));
    let child = stage.start(&THREADED);
    let tool = stage.wait_for_file("pid");
    let id = stage.id();
    let cancelled = stage.json(&["thread", "cancel", &id]);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    let output = child.wait_with_output().unwrap();
    assert!(err(&output).contains("[CB727]"), "{}", err(&output));
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""));
    gone(&tool);
    let events = stage.events(&id);
    let kinds = kinds(&events);
    let at = |kind: &str| kinds.iter().position(|known| *known == kind);
    assert!(at("tool_call_start") < at("thread_cancelled"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"thread_cancelled"));
    assert_eq!(stage.mock.requests().len(), 1);
}

#[test]
fn ctrl_c_stops_a_thread_that_waits_and_resume_goes_on() {
    let stage = stage(Script::new().reply(silent()));
    let child = stage.start(&THREADED);
    stage.asked(1);
    kill_process(pid(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = err(&output);
    assert!(said.contains("[CB727]") && said.contains("cuebook thread resume"), "{said}");
    assert_eq!(out(&output), "");
    let cancelled = stage.wait_for("cancelled");
    stage.mock.play(Script::new().reply(returned("Hi")));
    let output = stage.run(&["thread", "resume", cancelled["thread_id"].as_str().unwrap(), "--json"]);
    let all = lines(&out(&output));
    let (answer, events) = all.split_last().unwrap();
    assert_eq!(answer["outputs"], json!({"greeting": "Hi"}), "{answer:#}");
    assert_eq!(kinds(events)[0], "thread_resumed");
}

#[test]
fn a_killed_thread_is_found_and_goes_on_without_repeating_what_may_have_run() {
    let stage = stage(Script::new().reply(sleeping()));
    let mut child = stage.start(&THREADED);
    let tool = stage.wait_for_file("pid");
    child.kill().unwrap();
    child.wait().unwrap();
    let found = stage.newest();
    assert_eq!(found["status"], "interrupted", "{found:#}");
    let id = found["thread_id"].as_str().unwrap();
    // Nobody is left to stop the tool; it is not part of the test what becomes of it.
    let _ = Command::new("kill").args(["-9", "--", &format!("-{tool}")]).stderr(Stdio::null()).status();
    std::fs::remove_file(stage.project.path().join("pid")).unwrap();
    stage.mock.play(Script::new().reply(returned("Hi")));
    let output = stage.run(&["thread", "resume", id]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).contains("not repeated: rye_execute may have run"), "{}", err(&output));
    assert!(!stage.project.path().join("pid").exists(), "it was run again");
    let told = stage.mock.requests().pop().unwrap().body.to_string();
    assert!(told.contains("It was not run again."), "{told}");
    let events = stage.events(id);
    let kinds = kinds(&events);
    let at = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(
        at("thread_interrupted") < at("thread_resumed") && at("thread_resumed") < at("tool_call_unknown")
    );
    assert_eq!(kinds.last(), Some(&"thread_completed"));
}

#[test]
fn tail_follows_a_thread_of_another_process_live() {
    let stage = stage(Script::new().reply(silent()));
    let answer = stage.json(&[&THREADED[..], &["--async"]].concat());
    let id = answer["thread_id"].as_str().unwrap();
    stage.asked(1);
    let mut tail = stage.start(&["thread", "tail", id, "--json"]);
    let mut lines = BufReader::new(tail.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("thread_started"), "{line}");
    // It has not ended, because the thread has not.
    assert!(tail.try_wait().unwrap().is_none());
    stage.run(&["thread", "cancel", id]);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(tail.wait().unwrap().success());
    assert!(rest.lines().last().unwrap().contains("thread_cancelled"), "{rest}");
}

#[test]
fn any_prompt_is_run() {
    let stage = stage(Script::new().text("One.").text("Two.").text("Three."));
    stage.project.write("prompts/ask/template.md", "Say {{ word }}.\n");
    stage.project.write(
        "say.prompty",
        "---\nname: say\nmodel: mock-model\n---\nsystem:\nBe brief.\n\nuser:\nSay {{word}}.\n",
    );
    let output = stage.run(&["run", "ask", "--var", "word=one", "--model", "fast"]);
    assert_eq!((out(&output).as_str(), output.status.code()), ("One.\n", Some(0)), "{}", err(&output));
    assert!(err(&output).starts_with("started: ask with mock-model\n"), "{}", err(&output));
    let output = stage.run(&["run", "say.prompty", "--var", "word=two"]);
    assert_eq!(out(&output), "Two.\n", "{}", err(&output));
    let output = stage.run(&["run", "ask", "--var", "word=three", "--model", "fast", "--json"]);
    let all = lines(&out(&output));
    assert_eq!((&all.last().unwrap()["result"], err(&output).as_str()), (&json!("Three."), ""));
    let bodies: Vec<Json> = stage.mock.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies[0]["messages"].to_string().contains("Say one."));
    assert_eq!(bodies[1]["system"], "Be brief.", "{}", bodies[1]);
    assert!(bodies[1]["messages"].to_string().contains("Say two."));
}

const SECTIONS: &str = "---
name: Handbook
---
# Task
Answer.

# Rules
```yaml section
summary: The house rules.
visibility: summary
tools:
  - name: find_rule
    description: Looks a rule up.
    parameters:
      command: {kind: string, required: true, description: What to look for.}
```
Never say goodbye.
";

#[test]
fn sections_that_the_model_opens_are_in_its_next_request_with_their_tools() {
    let open = json!({"section_keys": ["rules"], "reason": "to know them"});
    let script = Script::new()
        .reply(Reply::call("c1", "open_sections", open))
        .reply(Reply::call("c2", "find_rule", json!({"command": "echo be kind"})))
        .text("Hello.");
    let stage = stage(script);
    stage.project.write("prompts/handbook.sections.md", SECTIONS);
    let refused = stage.run(&["run", "handbook", "--model", "fast"]);
    assert!(err(&refused).contains("[CB730]") && err(&refused).contains("find_rule"), "{}", err(&refused));
    let output = stage.run(&["run", "handbook", "--model", "fast", "--tool", "find_rule=rye/bash/bash"]);
    assert_eq!(out(&output), "Hello.\n", "{}", err(&output));
    assert!(err(&output).contains("  sections opened\n"), "{}", err(&output));
    let bodies: Vec<String> = stage.mock.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(!bodies[0].contains("Never say goodbye.") && !bodies[0].contains("find_rule"), "{}", bodies[0]);
    assert!(bodies[0].contains("open_sections"), "{}", bodies[0]);
    assert!(bodies[1].contains("Never say goodbye.") && bodies[1].contains("find_rule"), "{}", bodies[1]);
    assert!(bodies[2].contains("be kind\\\\n"), "{}", bodies[2]);
}

const WITH_TOOL: &str = "---\nname: teller\nmodel: mock-model\ntools:\n  - name: tell\n    kind: function\n    description: Tells something.\n    parameters:\n      - {name: command, kind: string, required: true}\n---\nuser:\nTell me.\n";

#[test]
fn the_tools_of_a_prompt_run_only_where_the_user_says_so() {
    let call = || Reply::call("c1", "tell", json!({"command": "echo told"}));
    let stage = stage(Script::new().reply(call()).text("Done.").reply(call()).text("Done."));
    stage.project.write("teller.prompty", WITH_TOOL);
    let runs = WITH_TOOL
        .replace("description: Tells something.", "description: Tells something.\n    runs: rye/bash/bash");
    stage.project.write("runner.prompty", runs);
    let refused = stage.run(&["run", "teller.prompty"]);
    assert!(
        err(&refused).contains("[CB730]") && err(&refused).contains("--tool tell=my/tool"),
        "{}",
        err(&refused)
    );
    let refused = stage.run(&["run", "runner.prompty"]);
    let said = err(&refused);
    assert!(said.contains("[CB717]") && said.contains("--allow rye.execute.tool.rye.bash.bash"), "{said}");
    let refused = stage.run(&["run", "teller.prompty", "--tool", "tel=rye/bash/bash"]);
    assert!(err(&refused).contains("did you mean `tell`?"), "{}", err(&refused));
    assert!(
        err(&stage.run(&["run", "teller.prompty", "--tool", "tell"])).contains("--tool search=my/search")
    );
    assert!(stage.mock.requests().is_empty());
    for args in [
        ["run", "teller.prompty", "--tool", "tell=rye/bash/bash"],
        ["run", "runner.prompty", "--allow", "rye.execute.tool.rye.bash.bash"],
    ] {
        let output = stage.run(&args);
        assert_eq!(out(&output), "Done.\n", "{}", err(&output));
        assert!(stage.mock.requests().pop().unwrap().body.to_string().contains("told"));
    }
}

#[test]
fn the_store_can_be_elsewhere() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let elsewhere = stage.project.path().join("elsewhere.db");
    let store = elsewhere.to_str().unwrap();
    assert!(stage.threaded(&["--store", store]).status.success());
    assert!(elsewhere.is_file() && !stage.project.path().join(".ai/state/threads.db").exists());
    assert_eq!(stage.json(&["thread", "list", "--store", store]).as_array().unwrap().len(), 1);
    let output = stage.command(&["thread", "list"]).env("CUEBOOK_STORE", store).output().unwrap();
    assert!(out(&output).starts_with("completed"), "{}", out(&output));
    stage.project.write("notes.txt", "no database, and long enough to be taken for one by nobody at all");
    let output = stage.run(&["thread", "list", "--store", "notes.txt"]);
    assert!(err(&output).contains("[CB724]"), "{}", err(&output));
}

#[test]
fn a_provider_of_a_project_counts_when_it_is_signed_and_only_what_works_is_signed() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let path = ".ai/config/providers/team.yaml";
    let file = stage
        .mock
        .provider_yaml(Api::Gemini)
        .replace("name: mock", "name: team")
        .replace("mock-model", "team-model");
    stage.project.write(path, file.replace("api: gemini", "api: gemin"));
    let refused = stage.run(&["sign", "config", path]);
    assert!(err(&refused).contains("[CB719]") && err(&refused).contains("gemini"), "{}", err(&refused));
    stage.project.write(path, &file);
    let refused = stage.threaded(&["--model", "team-model"]);
    assert!(
        err(&refused).contains("[CB220]") && err(&refused).contains("cuebook sign config"),
        "{}",
        err(&refused)
    );
    assert!(stage.run(&["sign", "config", path]).status.success());
    let output = stage.threaded(&["--model", "team-model"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(stage.mock.requests()[0].api, Some(Api::Gemini));
    let signed = std::fs::read_to_string(stage.project.path().join(path)).unwrap();
    stage.project.write(path, signed.replace("127.0.0.1", "127.0.0.2"));
    let refused = stage.threaded(&["--model", "team-model"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains(path), "{}", err(&refused));
    assert_eq!(stage.mock.requests().len(), 1);
    let other = stage.run(&["sign", "config", "home/.ai/config/none.yaml"]);
    assert!(!other.status.success());
    stage.project.write("notes.yaml", "a: 1\n");
    assert!(err(&stage.run(&["sign", "config", "notes.yaml"])).contains("hooks.yaml"));
}

const PARENT: &str = r#"# Parent

```xml
<directive name="parent" version="1.0.0">
  <metadata>
    <description>Have others greet.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <permissions><execute><directive>demo.*</directive></execute></permissions>
  </metadata>
</directive>
```

Have somebody greeted.
"#;

#[test]
fn children_are_told_apart_listed_and_cancelled_with_their_parent() {
    let child = json!({"item_type": "directive", "item_id": "demo/greet", "parameters": {"user": "Kid"}, "thread": true});
    let script = Script::new().reply(Reply::call("p1", "rye_execute", child).usage(9, 1));
    let stage = stage(Script::new());
    stage.project.write(".ai/directives/demo/parent.md", PARENT);
    assert!(stage.run(&["sign", "directive", "demo/parent"]).status.success());
    stage.mock.play(script.reply(silent()));
    let running = stage.start(&["execute", "directive", "demo/parent", "--thread"]);
    stage.asked(2);
    let parents = stage.json(&["thread", "list", "--prompt", "demo/parent"]);
    let id = parents[0]["thread_id"].as_str().unwrap();
    let children = stage.json(&["thread", "list", "--parent", id]);
    assert_eq!(children[0]["directive"], "demo/greet", "{children:#}");
    assert!(out(&stage.run(&["thread", "show", id])).contains("child: demo/greet/greet-"));
    let cancelled = stage.run(&["thread", "cancel", id]);
    assert!(cancelled.status.success(), "{}", err(&cancelled));
    let output = running.wait_with_output().unwrap();
    let said = err(&output);
    assert!(said.contains("\n[greet-") && said.contains("] turn 1: asking\n"), "{said}");
    let statuses = |list: &Json| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(statuses(&stage.json(&["thread", "list"])), ["cancelled", "cancelled"]);
}

#[test]
fn a_model_is_told_what_the_directive_says_and_nothing_else() {
    let stage = stage(Script::new().reply(returned("Hi")));
    stage.threaded(&[]);
    let body = &stage.mock.requests()[0].body;
    assert!(body.get("system").is_none(), "{body}");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")), "{messages:?}");
    let rendered = out(&stage.run(&["render", "demo/greet", "--var", "user=Ann"]));
    let told = match &messages[0]["content"] {
        Json::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    };
    assert_eq!(told.trim(), rendered.trim(), "a thread is told what `render` shows");
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["rye_execute", "directive_return"], "what it may not do it need not know");
}

#[test]
fn a_prompt_does_not_decide_who_is_sent_the_key() {
    let stage = stage(Script::new());
    let connection = "  connection: {kind: key, endpoint: \"https://elsewhere.example/v1\"}\n";
    let text =
        format!("---\nname: ask\nmodel:\n  id: mock-model\n  provider: mock\n{connection}---\nuser:\nHi.\n");
    stage.project.write("ask.prompty", text);
    let refused = stage.run(&["run", "ask.prompty"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        err(&refused).contains("[CB720]") && err(&refused).contains("elsewhere.example"),
        "{}",
        err(&refused)
    );
    assert!(stage.mock.requests().is_empty());
}

#[test]
fn an_answer_that_has_not_the_declared_form_is_asked_for_again() {
    let outputs = "outputs:\n  - {name: mood, kind: string, required: true}\n";
    let stage = stage(Script::new().text("fine, thanks").text("{\"mood\": \"fine\"}").text("no").forever());
    stage
        .project
        .write("ask.prompty", format!("---\nname: ask\nmodel: mock-model\n{outputs}---\nuser:\nHi.\n"));
    let output = stage.run(&["run", "ask.prompty"]);
    assert_eq!(
        serde_json::from_str::<Json>(&out(&output)).unwrap(),
        json!({"mood": "fine"}),
        "{}",
        err(&output)
    );
    assert_eq!(stage.mock.requests().len(), 2);
    let failed = stage.run(&["run", "ask.prompty"]);
    assert_eq!((failed.status.code(), out(&failed).as_str()), (Some(1), ""));
    assert!(err(&failed).contains("[CB725]"), "{}", err(&failed));
    assert_eq!(stage.mock.requests().len(), 2 + 4);
}

#[test]
fn only_the_user_says_what_is_harmless() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let start = GREET.find("<permissions>").unwrap();
    let end = GREET.find("</permissions>").unwrap();
    let boundless = format!("{}<permissions>*{}", &GREET[..start], &GREET[end..]);
    stage.project.write(".ai/directives/demo/greet.md", boundless);
    assert!(stage.run(&["sign", "directive", "demo/greet"]).status.success());
    let table = "risk_levels:\n  unrestricted: {policy: allow}\n";
    stage.project.write(".ai/config/capability_risk.yaml", table);
    assert!(err(&stage.threaded(&[])).contains("[CB717]"));
    stage.project.write("home/.ai/config/capability_risk.yaml", table);
    let output = stage.threaded(&[]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn shells_complete_the_words_of_threads() {
    let stage = stage(Script::new());
    let words = out(&stage.run(&["completions", "bash"]));
    for word in ["interrupted", "suspended", "--replay", "resume", "--limit", "tail"] {
        assert!(words.contains(word), "{word} is missing");
    }
    let help = out(&stage.run(&["help", "threads"]));
    assert!(help.starts_with("# Threads"), "{help}");
}

#[test]
fn a_thread_is_resumed_in_a_process_of_its_own() {
    let stage = stage(Script::new().reply(returned("Hi")));
    assert_eq!(stage.threaded(&["--limit", "turns=0"]).status.code(), Some(1));
    let id = stage.id();
    let wrong = stage.run(&["thread", "resume", &id, "--limit", "turn=1", "--async"]);
    assert!(err(&wrong).contains("[CB715]"), "it is told here and not in a log: {}", err(&wrong));
    let output = stage.run(&["thread", "resume", &id, "--limit", "turns=1", "--async"]);
    assert_eq!(out(&output).trim(), id, "{}", err(&output));
    stage.wait_for("completed");
    assert_eq!(stage.newest()["result"]["outputs"], json!({"greeting": "Hi"}));
}

#[test]
fn a_directive_can_be_run_like_any_other_prompt() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let output = stage.run(&["run", "demo/greet", "--var", "user=Ann"]);
    assert_eq!(
        serde_json::from_str::<Json>(&out(&output)).unwrap(),
        json!({"greeting": "Hi"}),
        "{}",
        err(&output)
    );
    assert_eq!(stage.newest()["directive"], "demo/greet");
}

/// A terminal for the command; what it shows is on stdout.
const TERMINAL: &str = "
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execvp('cuebook', ['cuebook'] + sys.argv[1:])
while True:
    try:
        shown = os.read(terminal, 4096)
    except OSError:
        break
    if not shown:
        break
    os.write(1, shown)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

#[test]
fn on_a_terminal_progress_is_one_line_that_goes_away() {
    let Some(()) = support::python_or_skip() else { return };
    let stage = stage(Script::new().reply(returned("Hi").first_byte_after(Duration::from_millis(2500))));
    let mut command = stage.project.command("python3", stage.project.path());
    let output = command.args(["-c", TERMINAL]).args(THREADED).env("MOCK_KEY", KEY).output().unwrap();
    let shown = out(&output);
    assert!(output.status.success(), "{shown}{}", err(&output));
    assert!(shown.contains("0 turns · 0 tokens · 0.00 · 1 s · waiting for mock-model"), "{shown:?}");
    let last = shown.rsplit("\r\x1b[2K").next().unwrap();
    assert!(last.starts_with("{\r\n  \"greeting\": \"Hi\"\r\n}\r\ncompleted: "), "{shown:?}");
}

#[test]
fn a_store_of_an_unknown_kind_is_refused_without_its_password() {
    let stage = stage(Script::new());
    for place in
        ["mysql://ann:hunter22@db.example/x", "redis://:hunter22@db.example", "Postgres://a:hunter22@h/x"]
    {
        for args in [&["thread", "list"][..], &THREADED] {
            let output = stage.run(&[args, &["--store", place]].concat());
            let said = err(&output);
            assert!(!output.status.success() && said.contains("[CB724]"), "{said}");
            assert!(
                said.contains(place.split(':').next().unwrap()) && said.contains("postgres://"),
                "{said}"
            );
            assert!(!said.contains("hunter22") && !out(&output).contains("hunter22"), "{said}");
        }
    }
    let names: Vec<String> = std::fs::read_dir(stage.project.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(!names.iter().any(|name| name.contains(':')), "{names:?}");
    let output = stage.run(&["thread", "list", "--store", "sqlite://some.db", "--json"]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn a_recording_is_never_written_over() {
    let stage = stage(Script::new().reply(Reply::text("Hm.").usage(9, 2)).reply(returned("Hi")));
    // What cannot be written is told before anything begins.
    for place in ["no/such/folder/r.jsonl", "home"] {
        let output = stage.threaded(&["--record", place]);
        assert!(!output.status.success(), "{}", out(&output));
        assert!(err(&output).contains(place), "{}", err(&output));
    }
    assert_eq!(stage.json(&["thread", "list"]), json!([]));
    assert!(stage.mock.requests().is_empty());
    // An empty file has nothing to lose.
    stage.project.write("r.jsonl", "");
    let output = stage.threaded(&["--record", "r.jsonl", "--limit", "turns=1"]);
    assert!(err(&output).contains("[CB716]"), "{}", err(&output));
    let first = std::fs::read_to_string(stage.project.path().join("r.jsonl")).unwrap();
    assert_eq!(first.lines().count(), 1);
    let id = stage.id();
    let refused = stage.threaded(&["--record", "r.jsonl"]);
    let said = err(&refused);
    assert!(
        said.contains("[CB518]") && said.contains("there already") && said.contains("name another"),
        "{said}"
    );
    assert_eq!(stage.mock.requests().len(), 1);
    // Nor does a thread that goes on write behind what is no recording.
    stage.project.write("notes.txt", "mine\n");
    let refused = stage.run(&["thread", "resume", &id, "--limit", "turns=3", "--record", "notes.txt"]);
    assert!(err(&refused).contains("[CB723]"), "{}", err(&refused));
    let output = stage.run(&["thread", "resume", &id, "--limit", "turns=3", "--record", "r.jsonl"]);
    assert!(output.status.success(), "{}", err(&output));
    let both = std::fs::read_to_string(stage.project.path().join("r.jsonl")).unwrap();
    assert!(both.starts_with(&first) && both.lines().count() == 2, "{both}");
    let played = stage.threaded(&["--replay", "r.jsonl"]);
    assert!(played.status.success(), "{}", err(&played));
}

#[test]
fn looking_for_threads_makes_nothing() {
    let project = Project::new();
    let before = |folder: &Path| {
        let mut names = Vec::new();
        search(folder, &mut |path, _| names.push(path.to_owned()));
        (names, folder.join(".ai").exists())
    };
    let known = before(project.path());
    for (args, wanted) in [
        (&["thread", "list"][..], "there are no threads"),
        (&["thread", "show", "x"], "[CB712]"),
        (&["thread", "tail", "x"], "[CB712]"),
        (&["thread", "cancel", "x"], "[CB712]"),
        (&["thread", "resume", "x"], "[CB712]"),
        (&["thread", "list", "--store", "other.db"], "there are no threads"),
    ] {
        let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        let output = command.args(args).output().unwrap();
        assert!(err(&output).contains(wanted), "{args:?}: {}", err(&output));
        assert_eq!(before(project.path()), known, "{args:?}");
    }
}
