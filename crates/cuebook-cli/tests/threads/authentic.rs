//! Stores that an attacker wrote to, with the real binary.

use std::process::Command;

use cuebook_mock::{Reply, Script};
use serde_json::json;

use crate::greeting::{THREADED, stage};
use crate::setup::{Setup, err, out};

/// A prompt with one tool.
const TELLER: &str = "---\nname: teller\nmodel: mock-model\ntools:\n  - name: tell\n    kind: function\n    description: Tells something.\n    parameters:\n      - {name: command, kind: string, required: true}\n---\nuser:\nTell me.\n";
/// A harmless tool of the project.
const HARMLESS: &str = "tool_type: shell\nversion: \"1.0.0\"\nexecutor_id: rye/core/primitives/subprocess\ncategory: demo\ntool_id: demo/harmless\ndescription: Says hello\nconfig: {command: echo, args: [hello]}\n";

/// Replaces words in a log, computes every hash again without a key, and changes the row.
const REHASH: &str = "
import sqlite3, hashlib, sys
db = sqlite3.connect(sys.argv[1])
last = '0' * 64
for thread, seq, at, kind, payload in db.execute('select thread, seq, at, kind, payload from cuebook_events order by seq').fetchall():
    payload = payload.replace(sys.argv[2], sys.argv[3]).replace(sys.argv[2].replace('/', '.'), sys.argv[3].replace('/', '.'))
    last = hashlib.sha256(f'{last}\\n{thread}\\n{seq}\\n{at}\\n{kind}\\n{payload}'.encode()).hexdigest()
    db.execute('update cuebook_events set payload = ?, hash = ? where seq = ?', (payload, last, seq))
db.execute('update cuebook_threads set last_hash = ?' + sys.argv[4], (last,))
db.commit()
";

fn python(stage: &Setup, program: &str, args: &[&str]) {
    let file = stage.project.path().join(".ai/state/threads.db");
    let done = Command::new("python3").args(["-c", program]).arg(file).args(args).output().unwrap();
    assert!(done.status.success(), "{}", err(&done));
}

fn change(stage: &Setup, statement: &str) {
    let program =
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.executescript(sys.argv[2]); db.commit()";
    python(stage, program, &[statement]);
}

/// A prompt's thread that may run the harmless tool, and stopped before it did anything.
fn stopped() -> (Setup, String) {
    let bash = Reply::call("c1", "tell", json!({"command": "touch pwned"})).usage(10, 2);
    let files = [
        (".ai/directives/demo/greet.md", crate::greeting::GREET),
        (".ai/tools/demo/harmless.yaml", HARMLESS),
    ];
    let stage = Setup::new(Script::new().reply(bash).text("Done.").forever(), &files);
    stage.project.write("teller.prompty", TELLER);
    let output = stage.run(&["run", "teller.prompty", "--tool", "tell=demo/harmless", "--limit", "turns=0"]);
    assert!(err(&output).contains("[CB716]"), "{}", err(&output));
    let id = stage.id();
    (stage, id)
}

#[test]
fn a_rehashed_log_gives_a_thread_no_power() {
    let resume = |stage: &Setup, id: &str, more: &[&str]| {
        let args = ["thread", "resume", id, "--limit", "turns=5", "--allow-again"];
        stage.run(&[&args[..], more].concat())
    };
    let (stage, id) = stopped();
    python(&stage, REHASH, &["demo/harmless", "rye/bash/bash", ""]);
    for output in
        [stage.run(&["thread", "show", &id]), resume(&stage, &id, &[]), resume(&stage, &id, &["--trust-log"])]
    {
        assert!(err(&output).contains("[CB714]"), "{}{}", out(&output), err(&output));
    }
    assert!(out(&stage.run(&["thread", "list"])).contains("damaged"));
    // As if an earlier version had written it: shown with a warning, and not resumed without a word.
    python(&stage, REHASH, &["-", "-", ", log_key = null, seal = null"]);
    let shown = out(&stage.run(&["thread", "show", &id]));
    assert!(shown.contains("events, unauthenticated (old)"), "{shown}");
    let refused = resume(&stage, &id, &[]);
    assert!(err(&refused).contains("[CB735]") && err(&refused).contains("--trust-log"), "{}", err(&refused));
    assert!(!stage.project.path().join("pwned").exists());
}

#[test]
fn permissions_of_a_prompt_need_the_user_again() {
    let (stage, id) = stopped();
    let resume = ["thread", "resume", &id, "--limit", "turns=5"];
    let before = stage.mock.requests().len();
    for more in [&[][..], &["--async"], &["--json"]] {
        let refused = stage.run(&[&resume[..], more].concat());
        let said = err(&refused) + &out(&refused);
        assert!(!refused.status.success() && said.contains("CB737"), "{said}");
        assert!(
            said.contains("rye.execute.tool.demo.harmless") && said.contains("tell=demo/harmless"),
            "{said}"
        );
    }
    assert_eq!(stage.mock.requests().len(), before);
    let output = stage.run(&[&resume[..], &["--allow-again"]].concat());
    assert_eq!(out(&output), "Done.\n", "{}", err(&output));
}

#[test]
fn a_log_of_another_key_is_marked_and_not_resumed() {
    let (stage, id) = stopped();
    let other = stage.project.path().join("other.key");
    std::fs::write(&other, "ab".repeat(32)).unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let run = |args: &[&str]| stage.command(args).env("CUEBOOK_LOG_KEY", &other).output().unwrap();
    for args in [&["thread", "list"][..], &["thread", "show", &id]] {
        let output = run(args);
        assert!(out(&output).contains("not written with your log key"), "{}{}", out(&output), err(&output));
    }
    let refused = run(&["thread", "resume", &id, "--allow-again"]);
    assert!(err(&refused).contains("[CB735]"), "{}", err(&refused));
    let output = run(&["thread", "resume", &id, "--allow-again", "--trust-log", "--limit", "turns=5"]);
    assert_eq!(out(&output), "Done.\n", "{}", err(&output));
    // It belongs to that key now.
    assert!(out(&stage.run(&["thread", "list"])).contains("not written with your log key"));
}

#[test]
fn a_store_that_leads_in_a_circle_hangs_nothing() {
    let (stage, id) = stopped();
    change(
        &stage,
        "update cuebook_threads set parent = id, continuation_of = id, continued_by = id, spawned = 1, log_key = null, seal = null",
    );
    for args in [
        &["thread", "list"][..],
        &["thread", "show", &id],
        &["thread", "cancel", &id],
        &["thread", "resume", &id, "--trust-log", "--allow-again"],
    ] {
        let output = stage.run(args);
        assert!(output.status.code().is_some(), "{args:?}: {}", err(&output));
        // A query without end would be interrupted after a minute, with another error.
        let is_cancel = args[1] == "cancel";
        assert_eq!(is_cancel, err(&output).contains("its parent threads form a cycle"), "{}", err(&output));
    }
    change(
        &stage,
        "create view x as with recursive t(n) as (select 1 union all select n + 1 from t) select n from t",
    );
    let refused = stage.run(&["thread", "list"]);
    assert!(err(&refused).contains("its tables are not Cuebook's"), "{}", err(&refused));
}

#[cfg(target_os = "linux")]
#[test]
fn a_changed_row_ends_no_other_process() {
    for sealed in ["", ", log_key = null, seal = null"] {
        let (stage, _) = stopped();
        // Only processes of this name are ever ended.
        let program = stage.project.home().join("cuebook");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut other = Command::new(program).arg("600").spawn().unwrap();
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", other.id())).unwrap();
        let began = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().to_owned();
        let pid = other.id();
        change(
            &stage,
            &format!("update cuebook_threads set status = 'running', pid = {pid}, began = {began}{sealed}"),
        );
        let id = stage.id();
        let refused = stage.run(&["thread", "cancel", &id]);
        assert!(err(&refused).contains("[CB713]"), "{}", err(&refused));
        assert!(other.try_wait().unwrap().is_none(), "the other process was ended");
        other.kill().unwrap();
        other.wait().unwrap();
    }
}

#[test]
fn an_unreachable_thread_is_cancelled_by_force() {
    let (stage, _) = stopped();
    let soon = jiff::Timestamp::now().as_microsecond() + 1_000_000_000_000;
    // A thread of another machine, as the same user's key would have sealed it, cannot be made here: an old one can.
    change(
        &stage,
        &format!(
            "update cuebook_threads set status = 'running', host = 'elsewhere', pid = 1, began = 1, token = 'x', taken_at = {soon}, log_key = null, seal = null"
        ),
    );
    let id = stage.id();
    let refused = stage.run(&["thread", "resume", &id, "--trust-log", "--allow-again"]);
    assert!(err(&refused).contains("[CB713]") && err(&refused).contains("--take-over"), "{}", err(&refused));
    let output = stage.run(&["thread", "cancel", &id, "--take-over"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(stage.newest()["status"], "cancelled");
}

#[test]
fn one_bad_row_is_listed_as_damaged() {
    let (stage, id) = stopped();
    let output = stage.run(&["run", "teller.prompty", "--tool", "tell=demo/harmless", "--limit", "turns=0"]);
    assert!(err(&output).contains("[CB716]"));
    let other = stage.id();
    change(&stage, &format!("update cuebook_threads set status = 'dancing', spent = 1.5 where id = '{id}'"));
    let listed = stage.run(&["thread", "list"]);
    let said = out(&listed);
    assert!(listed.status.success() && said.contains("damaged") && said.contains(&other), "{said}");
    let refused = stage.run(&["thread", "show", &id]);
    assert!(err(&refused).contains("[CB714]"), "{}", err(&refused));
}

#[test]
fn a_misspelt_store_address_shows_no_password_and_makes_no_file() {
    let stage = stage(Script::new());
    for place in [
        "postgresql:/cue:hunter22@x/y",
        " postgresql://cue:hunter22@127.0.0.1:1/y",
        "postgres:cue:hunter22@x/y",
        "POSTGRESQL://cue:hunter22@x/y",
        "postgresql//cue:hunter22@x/y",
        "//cue:hunter22@x/y",
        "cue:hunter22@x/y",
        "hunter22@x",
        "postgresql://cue:hun@hunter22@127.0.0.1:1/y",
        "postgresql://cue:hun/hunter22@127.0.0.1:1/y",
        "postgresql://cue:7?hunter22@127.0.0.1:1/y",
        "hunter22",
    ] {
        for args in [&["thread", "list"][..], &THREADED] {
            let output = stage.run(&[args, &["--store", place]].concat());
            let said = err(&output) + &out(&output);
            assert!(!output.status.success() && said.contains("CB724"), "{place}: {said}");
            assert!(!said.contains("hunter22"), "{place}: {said}");
        }
    }
    crate::setup::search(stage.project.path(), &mut |path, _| {
        assert!(!path.to_string_lossy().contains("hunter"), "{}", path.display());
    });
    assert_eq!(stage.mock.requests().len(), 0);
}

#[test]
fn a_thread_is_taken_over_from_a_process_that_seems_to_live() {
    let slow = || Reply::text("Late").first_byte_after(std::time::Duration::from_secs(60));
    let stage = stage(Script::new().reply(slow()).text("Hi").reply(slow()));
    stage.project.write("prompts/ask/template.md", "Say hello.\n");
    assert!(stage.run(&["run", "ask", "--model", "fast", "--async"]).status.success());
    let id = stage.id();
    assert!(stage.mock.wait_for_requests(1, crate::setup::PATIENCE));
    let refused = stage.run(&["thread", "resume", &id]);
    assert!(err(&refused).contains("[CB713]") && err(&refused).contains("--take-over"), "{}", err(&refused));
    let output = stage.run(&["thread", "resume", &id, "--take-over"]);
    assert_eq!(out(&output), "Hi\n", "{}", err(&output));
    assert_eq!(stage.newest()["status"], "completed");
}
