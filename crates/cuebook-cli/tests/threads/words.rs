//! What is said of threads that did not come to a good end, and of limits that were not granted.

use cuebook_mock::{Reply, Script};
use serde_json::json;

use crate::greeting::{GREET, PARENT, THREADED, stage};
use crate::setup::{Setup, err, out, returned, shell};
use crate::support::skip;

#[test]
fn a_cancelled_thread_says_what_ran_then() {
    let stage = stage(Script::new().reply(shell("echo $$ > pid; sleep 60")));
    let child = stage.start(&THREADED);
    stage.wait_for_file("pid");
    let id = stage.id();
    assert!(stage.run(&["thread", "cancel", &id]).status.success());
    let said = err(&child.wait_with_output().unwrap());
    assert!(said.contains("[CB727]: the thread was cancelled while `rye_execute` ran\n"), "{said}");
}

#[test]
fn a_cancelled_thread_has_no_suspension_reason() {
    let stage = stage(Script::new());
    assert_eq!(stage.threaded(&["--limit", "turns=0"]).status.code(), Some(1));
    let id = stage.id();
    assert!(err(&stage.run(&["thread", "show", &id])).contains("[CB716]"));
    assert!(stage.run(&["thread", "cancel", &id]).status.success());
    let shown = stage.run(&["thread", "show", &id]);
    let said = err(&shown);
    assert!(said.contains("[CB727]: the thread was cancelled while it was suspended\n"), "{said}");
    assert!(!said.contains("CB716") && !out(&shown).contains("CB716"), "{said}");
    assert_eq!(stage.newest()["result"]["error"]["code"], "CB727");
}

#[test]
fn a_connection_that_breaks_in_an_answer_says_how_to_go_on() {
    let stage = stage(Script::new().reply(Reply::text("Hello, hello, hello.").close_after(700)));
    let output = stage.threaded(&[]);
    let said = err(&output);
    let id = stage.id();
    assert!(said.contains("error[CB722]: the connection to mock broke"), "{said}");
    assert!(said.contains("`retry: {after_text: true}` in "), "{said}");
    assert!(said.contains(&format!("then continue with `cuebook thread resume {id}`")), "{said}");
    stage.mock.play(Script::new().reply(returned("Hi")));
    assert!(stage.run(&["thread", "resume", &id]).status.success());
}

#[test]
fn a_request_that_was_refused_says_the_way_on_once() {
    let stage = stage(Script::new().reply(Reply::error(400, "no such tool")));
    let said = err(&stage.threaded(&[]));
    let id = stage.id();
    assert!(said.contains(&format!("then continue with `cuebook thread resume {id}`")), "{said}");
    assert_eq!(said.matches("thread resume").count(), 1, "{said}");
}

/// A stream that another process wrote.
fn stream(events: &[serde_json::Value]) -> Reply {
    let text: String = events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or("error")))
        .collect();
    Reply::raw(200, "text/event-stream", text)
}

#[test]
fn a_provider_that_fails_inside_its_stream_says_how_to_go_on() {
    let stage =
        stage(Script::new().reply(stream(&[json!({"type": "error", "error": {"message": "weird"}})])));
    let said = err(&stage.threaded(&[]));
    let id = stage.id();
    assert!(said.contains("error[CB606]: mock: weird"), "{said}");
    assert!(said.contains("help: the provider has a problem; try again later"), "{said}");
    assert!(said.contains(&format!("then continue with `cuebook thread resume {id}`")), "{said}");
}

#[test]
fn a_retry_by_a_hook_is_reported() {
    let stage = stage(Script::new().reply(Reply::error(400, "not yet")).reply(returned("Hi")));
    let hooks = "hooks:\n  - id: again\n    event: error\n    action: {primary: execute, item_id: rye/agent/threads/internal/control, params: {action: retry}}\n";
    stage.project.write("home/.ai/config/agent/hooks.yaml", hooks);
    let output = stage.threaded(&[]);
    let said = err(&output);
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("  failed: mock answered with status 400: not yet; the hook again requests a retry\n"),
        "{said}"
    );
}

#[test]
fn a_block_without_a_reason_is_reported_once() {
    let blocked = json!({"status": "error", "error_detail": ""});
    let stage = stage(Script::new().reply(Reply::call("c1", "directive_return", blocked).usage(9, 1)));
    let said = err(&stage.threaded(&[]));
    assert!(said.contains(": the model is blocked: no reason was given\n"), "{said}");
}

const RUN_PARENT: [&str; 4] = ["execute", "directive", "demo/parent", "--thread"];

fn family(script: Script) -> Setup {
    let parent = PARENT.replacen("<model", "<limits turns=\"3\" />\n    <model", 1);
    Setup::new(script, &[(".ai/directives/demo/greet.md", GREET), (".ai/directives/demo/parent.md", &parent)])
}

fn spawn() -> Reply {
    let child = json!({"item_type": "directive", "item_id": "demo/greet", "parameters": {"user": "Kid"}, "thread": true});
    Reply::call("p1", "rye_execute", child).usage(9, 1)
}

#[test]
fn limits_that_a_parent_does_not_grant_are_reported() {
    let unanswered = Reply::status(404, json!({"error": {"message": "gone"}}));
    let done = Reply::text("Done.").usage(9, 1);
    let stage = family(Script::new().reply(spawn()).reply(unanswered).reply(done));
    let said = err(&stage.run(&RUN_PARENT));
    // The directive says four.
    let child = stage.id();
    let mark = format!("[{}]", child.rsplit('/').next().unwrap());
    let note = format!("{mark}   note: turns is 3, not 4: the parent has no more left\n");
    assert!(said.contains(&format!("{mark} started: demo/greet with mock-model\n{note}")), "{said}");
    assert_eq!(said.matches("note:").count(), 1, "what nobody set is not told: {said}");
    let first = &stage.events(&child)[0]["payload"]["capped"];
    assert_eq!(*first, json!([{"limit": "turns", "wanted": 4, "granted": 3}]));
    stage.mock.play(Script::new().reply(returned("Hi")));
    let resumed = stage.run(&["thread", "resume", &child, "--limit", "turns=9"]);
    let note = "resumed\n  note: turns is 3, not 9: the parent has no more left\n";
    assert!(err(&resumed).contains(note), "{}", err(&resumed));
}

#[test]
fn a_parent_without_depth_starts_no_children() {
    let stage = family(Script::new().reply(spawn()).reply(Reply::text("Done.").usage(9, 1)));
    let output = stage.run(&[&RUN_PARENT[..], &["--limit", "depth=0"]].concat());
    assert!(output.status.success(), "{}", err(&output));
    let events = format!("{:?}", stage.events(&stage.id()));
    assert!(events.contains("cannot start threads (its depth is 0)"), "{events}");
}

#[test]
fn an_unwritable_result_is_reported_with_its_thread() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        return skip::on_this_machine("/dev/full is missing");
    };
    let stage = stage(Script::new().reply(returned("Hi")));
    let output = stage.command(&THREADED).stdout(full).output().unwrap();
    let said = err(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    let id = stage.id();
    assert!(said.contains(&format!("the result is stored: cuebook thread show {id} --json\n")), "{said}");
    assert!(said.contains("error[CB114]: cannot write the output: No space left"), "{said}");
    assert!(said.contains(&format!("completed: {id}; ")), "{said}");
}

#[cfg(unix)]
#[test]
fn a_key_that_is_not_text_is_not_reported_as_missing() {
    use std::os::unix::ffi::OsStrExt;
    let stage = stage(Script::new());
    let key = std::ffi::OsStr::from_bytes(b"sk-\xff\xfe");
    let run = |args: &[&str]| stage.command(args).env("MOCK_KEY", key).output().unwrap();
    let several = err(&run(&THREADED));
    assert!(several.contains("mock (mock-model, key is not text)"), "{several}");
    assert!(out(&run(&["providers"])).contains("MOCK_KEY is not UTF-8 text"));
    let output =
        stage.command(&THREADED).env("MOCK_KEY", key).env("CUEBOOK_PROVIDER", "mock").output().unwrap();
    let said = err(&output);
    assert!(said.contains("[CB721]") && said.contains("MOCK_KEY is not UTF-8 text"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_file_that_resembles_a_provider_file_is_reported() {
    let stage = stage(Script::new());
    let folder = stage.project.path().join("home/.ai/config/providers");
    std::os::unix::fs::symlink("nowhere.yaml", folder.join("lost.yaml")).unwrap();
    std::fs::create_dir(folder.join("folder.yaml")).unwrap();
    for (args, is_out) in [(&["check"][..], true), (&["providers"], false)] {
        let output = stage.run(args);
        let said = if is_out { out(&output) } else { err(&output) };
        assert!(output.status.success(), "{said}");
        assert!(said.contains("warning[CB719]") && said.contains("lost.yaml"), "{said}");
        assert!(said.contains("this link leads to no file") && said.contains("this is a folder"), "{said}");
    }
}

#[test]
fn a_store_that_fails_in_the_middle_of_a_run_leaves_the_way_on() {
    // What the command does to the file is what a broken disk does.
    let spoil = "for file in .ai/state/threads.db .ai/state/threads.db-wal; do test -s $file && \
                 dd if=/dev/zero of=$file bs=4096 count=64 conv=notrunc 2> /dev/null; done; true";
    for json in [false, true] {
        let stage = stage(Script::new().reply(shell(spoil)).reply(returned("Hi")));
        // In the sandbox the command would not find the file.
        let more: &[&str] = if json { &["--unfenced", "--json"] } else { &["--unfenced"] };
        let output = stage.threaded(more);
        let said = if json { out(&output) } else { err(&output) };
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("CB724")
                && said.contains("then continue with `cuebook thread resume demo/greet/greet-"),
            "{said}"
        );
        if json {
            let last: serde_json::Value = serde_json::from_str(said.lines().last().unwrap()).unwrap();
            assert!(
                last["thread_id"].as_str().is_some_and(|id| id.starts_with("demo/greet/greet-")),
                "{last:#}"
            );
        }
    }
}
