//! What is said of threads that did not come to a good end, and of limits that were not granted.

use cuebook_mock::{Reply, Script};
use serde_json::json;

use crate::greeting::{GREET, PARENT, THREADED, stage};
use crate::stage::{Stage, err, out, returned, shell};

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
fn a_thread_that_was_cancelled_while_it_waited_no_longer_says_what_it_waited_for() {
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
    assert!(said.contains(&format!("go on then with `cuebook thread resume {id}`")), "{said}");
    stage.mock.play(Script::new().reply(returned("Hi")));
    assert!(stage.run(&["thread", "resume", &id]).status.success());
}

#[test]
fn a_model_that_is_blocked_without_a_reason_is_said_once() {
    let blocked = json!({"status": "error", "error_detail": ""});
    let stage = stage(Script::new().reply(Reply::call("c1", "directive_return", blocked).usage(9, 1)));
    let said = err(&stage.threaded(&[]));
    assert!(said.contains(": the model is blocked: it gave no reason\n"), "{said}");
}

const RUN_PARENT: [&str; 4] = ["execute", "directive", "demo/parent", "--thread"];

fn family(script: Script) -> Stage {
    let parent = PARENT.replacen("<model", "<limits turns=\"3\" />\n    <model", 1);
    Stage::new(script, &[(".ai/directives/demo/greet.md", GREET), (".ai/directives/demo/parent.md", &parent)])
}

fn spawn() -> Reply {
    let child = json!({"item_type": "directive", "item_id": "demo/greet", "parameters": {"user": "Kid"}, "thread": true});
    Reply::call("p1", "rye_execute", child).usage(9, 1)
}

#[test]
fn limits_that_a_parent_does_not_grant_are_told() {
    let unanswered = Reply::status(404, json!({"error": {"message": "gone"}}));
    let done = Reply::text("Done.").usage(9, 1);
    let stage = family(Script::new().reply(spawn()).reply(unanswered).reply(done));
    let said = err(&stage.run(&RUN_PARENT));
    // The directive says four.
    let note = "  note: turns is 3 and not 4: its parent has no more\n";
    assert!(said.contains(&format!("started: demo/greet with mock-model\n{note}")), "{said}");
    assert_eq!(said.matches("note:").count(), 1, "what nobody set is not told: {said}");
    let child = stage.id();
    let first = &stage.events(&child)[0]["payload"]["capped"];
    assert_eq!(*first, json!([{"limit": "turns", "wanted": 4, "granted": 3}]));
    stage.mock.play(Script::new().reply(returned("Hi")));
    let resumed = stage.run(&["thread", "resume", &child, "--limit", "turns=9"]);
    let note = "resumed\n  note: turns is 3 and not 9: its parent has no more\n";
    assert!(err(&resumed).contains(note), "{}", err(&resumed));
}

#[test]
fn a_parent_that_may_have_no_children_is_told_with_its_own_depth() {
    let stage = family(Script::new().reply(spawn()).reply(Reply::text("Done.").usage(9, 1)));
    let output = stage.run(&[&RUN_PARENT[..], &["--limit", "depth=0"]].concat());
    assert!(output.status.success(), "{}", err(&output));
    let events = format!("{:?}", stage.events(&stage.id()));
    assert!(events.contains("may have no threads below it (its depth is 0)"), "{events}");
}
