//! Threads that start threads.

use cuebook_run::{ExecuteRequest, Ignore, Kind, Money, Status};
use serde_json::{Value as Json, json};

use crate::setup::*;

fn may(text: &str) -> String {
    format!("<permissions><execute>{text}</execute></permissions>")
}

/// A parent that may do what a text says.
fn parent(stage: &Setup, permissions: &str, more: &str) {
    stage.directive("parent", &format!("{}{more}", may(permissions)), "Have it done.");
}

#[test]
fn a_grandchild_may_do_no_more_than_everybody_above_it() {
    let stage = Setup::new(script([
        spawn("p", "demo/child", json!({})),
        spawn("c", "demo/grandchild", json!({})),
        call("g1", "demo/secret", json!({})),
        call("g2", "demo/open", json!({})),
        says("grandchild is done"),
        says("child is done"),
        says("parent is done"),
    ]));
    stage
        .tool("secret", "open(project_path + '/oops', 'w')\nreturn {}")
        .tool("open", "return {'open': True}");
    parent(&stage, "<directive>demo.*</directive><tool>demo.open</tool>", "");
    stage.directive("child", &may("<directive>demo.*</directive><tool>demo.*</tool>"), "Have it done.");
    stage.directive("grandchild", &may("<tool>*</tool>"), "Do it.");
    let answer = stage.run("demo/parent");
    assert_eq!(answer["result"], "parent is done", "{answer:#}");
    let records = stage.records();
    let depths: Vec<Json> = records
        .iter()
        .map(|record| stage.payloads(&record.id, Kind::Started)[0]["limits"]["depth"].clone())
        .collect();
    assert_eq!(depths, [10, 9, 8]);
    let grandchild = &records[2];
    assert_eq!(grandchild.parent.as_ref(), Some(&records[1].id));
    assert_eq!(
        stage.payloads(&grandchild.id, Kind::Started)[0]["capabilities"],
        json!(["rye.execute.tool.demo.open"])
    );
    assert_eq!(stage.payloads(&grandchild.id, Kind::Denied).len(), 1);
    assert_eq!(stage.payloads(&grandchild.id, Kind::ToolResult).len(), 1);
    assert!(!stage.world.project().join("oops").exists());
}

#[test]
fn depth_and_spawns_are_answers_to_the_model() {
    let stage = Setup::new(script([spawn("p", "demo/work", json!({})), says("done")]));
    parent(&stage, "<directive>demo.*</directive><tool>demo.*</tool>", "");
    stage.worker("");
    let answer = stage.run_within("demo/parent", json!({"depth": 0}));
    assert_eq!(answer["result"], "done", "{answer:#}");
    assert!(stage.results()[0].1.contains("Depth limit exhausted"), "{:?}", stage.results());
    stage.mock.play(script([
        spawn("p", "demo/work", json!({})),
        returns("c", "x"),
        spawn("q", "demo/work", json!({})),
        says("done"),
    ]));
    let answer = stage.run_within("demo/parent", json!({"spawns": 1}));
    assert_eq!(answer["result"], "done", "{answer:#}");
    let results = stage.results();
    assert!(
        results[0].1.contains("\"word\":\"x\"") && results[1].1.contains("has started 1 threads"),
        "{results:?}"
    );
    let id = id_of(&answer);
    assert_eq!(stage.record(&id).spawned, 1);
}

#[test]
fn children_use_the_parents_last_limits() {
    let stage = Setup::new(script([spawn("p", "demo/work", json!({})), says("no")]));
    parent(&stage, "<directive>demo.*</directive><tool>demo.*</tool>", "");
    stage.worker("");
    let answer = stage.run_within("demo/parent", json!({"spawns": 0, "turns": 1, "depth": 0}));
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    stage.mock.play(script([spawn("q", "demo/work", json!({})), returns("c", "x"), says("done")]));
    let finished = stage.resume(&id_of(&answer), json!({"spawns": 1, "turns": 9, "depth": 1}));
    assert_eq!(finished.result, Some(json!("done")), "{finished:?}");
    assert!(stage.results()[1].1.contains("\"word\":\"x\""), "{:?}", stage.results());
}

#[test]
fn a_child_gets_half_of_the_rest_by_default() {
    let stage = Setup::new(script([
        spawn("p", "demo/work", json!({})),
        returns("c", "x"),
        spawn("q", "demo/work", json!({"limit_overrides": {"spend": 0.9}})),
        returns("d", "x"),
        spawn("r", "demo/work", json!({"limit_overrides": {"spend": 50}})),
        returns("e", "x"),
        says("done"),
    ]));
    parent(&stage, "<directive>demo.*</directive><tool>demo.*</tool>", "");
    stage.worker("");
    let answer = stage.run_within("demo/parent", json!({"spend": 1}));
    assert_eq!(answer["result"], "done", "{answer:#}");
    let limits: Vec<f64> = stage.records()[1..]
        .iter()
        .map(|record| stage.payloads(&record.id, Kind::Started)[0]["limits"]["spend"].as_f64().unwrap())
        .collect();
    assert!(limits[0] < 0.5 && limits[0] > 0.49, "{limits:?}");
    assert_eq!(limits[1], 0.9);
    assert!(limits[2] < 1.0 && limits[2] > 0.9, "all that is left: {limits:?}");
    let account = stage.store().account(&id_of(&answer)).unwrap().unwrap();
    let spent: Money = stage.records()[1..].iter().map(|record| record.cost.spend).sum();
    assert_eq!(account.children, spent);
    assert_eq!(answer["cost"]["children_spend"], spent.to_json(), "{answer:#}");
    assert!(account.remaining() > Money::ZERO && account.reserved == Money::ZERO);
}

#[test]
fn money_kept_by_a_waiting_child_is_not_spent() {
    let stage = Setup::new(script([
        spawn("p", "demo/work", json!({"limit_overrides": {"turns": 1, "spend": 50}})),
        call("c", "demo/none", json!({})),
        says("done"),
    ]));
    parent(&stage, "<directive>demo.*</directive><tool>demo.*</tool>", "");
    stage.worker("");
    let answer = stage.run_within("demo/parent", json!({"spend": 0.05}));
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    let account = stage.store().account(&id_of(&answer)).unwrap().unwrap();
    assert!(account.reserved > Money::ZERO, "{account:?}");
    let expected = format!(
        "the thread spent {} of 0.05 USD; {} is reserved for its children",
        account.spent.to_json(),
        account.reserved.to_json()
    );
    assert_eq!(answer["error"], expected.as_str(), "{answer:#}");
    let limit = &stage.payloads(&id_of(&answer), Kind::Limit)[0];
    assert_eq!(limit["reserved"], account.reserved.to_json(), "{limit}");
}

#[test]
fn a_thread_that_a_tool_starts_is_a_child_of_the_tools_thread() {
    let stage = Setup::new(script([call("p", "demo/env", json!({})), says("done")]));
    stage.tool("env", "import os\nreturn {'parent': os.environ.get('RYE_PARENT_THREAD_ID')}");
    parent(&stage, "<tool>demo.*</tool>", "");
    let answer = stage.run("demo/parent");
    let reported = stage.results()[0].1.clone();
    assert!(reported.contains(id_of(&answer).as_str()), "{reported}");
    // No one else has such a variable, so a tool that is run outside of a thread is reported nothing.
    let alone = stage.world.tool("demo/env", json!({}));
    assert_eq!(alone["data"]["parent"], Json::Null, "{alone:#}");
}

#[test]
fn a_child_is_taken_up_again_after_its_parent_ended() {
    let stage = Setup::new(script([
        spawn("p", "demo/work", json!({"limit_overrides": {"turns": 1}})),
        call("c", "demo/none", json!({})),
        says("done"),
    ]));
    parent(&stage, "<directive>demo.*</directive><tool>demo.*</tool>", "");
    stage.worker("");
    let answer = stage.run("demo/parent");
    assert_eq!(answer["result"], "done", "{answer:#}");
    let (parent, child) = (stage.records()[0].id.clone(), stage.records()[1].id.clone());
    assert_eq!(stage.record(&child).status, Status::Suspended);
    assert!(!stage.store().account(&parent).unwrap().unwrap().settled, "its child may go on");
    stage.mock.play(script([returns("d", "x")]));
    let finished = stage.resume(&child, json!({"turns": 5}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    let account = stage.store().account(&parent).unwrap().unwrap();
    assert!(account.settled && account.children == stage.record(&child).cost.spend, "{account:?}");
    assert_eq!(stage.record(&parent).status, Status::Completed);
}

#[test]
fn a_directive_without_a_thread_gives_its_instructions() {
    let ask = json!({"item_type": "directive", "item_id": "demo/work", "parameters": {}});
    let stage = Setup::new(script([cuebook_mock::Reply::call("p", "rye_execute", ask), says("done")]));
    parent(&stage, "<directive>demo.*</directive>", "");
    stage.worker("");
    assert_eq!(stage.run("demo/parent")["result"], "done");
    assert!(stage.results()[0].1.contains("Work."), "{:?}", stage.results());
    assert_eq!(stage.records().len(), 1);
}

#[test]
fn a_background_thread_reports_a_failed_start() {
    let settings = cuebook_run::Settings { program: Some("/no/such/program".into()), ..Default::default() };
    let stage = Setup::with(script([says("x")]), settings, |yaml| yaml);
    stage.worker("");
    let request = ExecuteRequest { is_async: true, ..stage.request("demo/work", json!({})) };
    let answer = stage.world.engine.answer(&request, &Ignore).json;
    assert_eq!(answer["status"], "error", "{answer:#}");
    assert_eq!(stage.records()[0].status, Status::Cancelled);
}

/// A script in the place of the program that carries threads out.
#[cfg(unix)]
fn program(folder: &std::path::Path, script: &str) -> std::path::PathBuf {
    let program = folder.join("cuebook");
    std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    program
}

#[cfg(unix)]
#[test]
fn output_of_a_process_that_failed_early_is_shown() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "echo hm; echo 'error[CB999]: no room' >&2; echo help; exit 3");
    let settings = cuebook_run::Settings { program: Some(program), ..Default::default() };
    let stage = Setup::with(script([says("x")]), settings, |yaml| yaml);
    stage.worker("");
    let request = ExecuteRequest { is_async: true, ..stage.request("demo/work", json!({})) };
    let answer = stage.world.engine.answer(&request, &Ignore).json;
    assert_eq!(answer["status"], "error", "{answer:#}");
    let reported = answer.to_string();
    assert!(reported.contains("(exit status: 3): error[CB999]: no room"), "{reported}");
    assert!(reported.contains(".ai/state/logs/"), "{reported}");
    // No process will run it, so nothing waits for it.
    assert_eq!(stage.records()[0].status, Status::Cancelled);
}

/// A caller that does not want to wait.
#[cfg(unix)]
struct Leaves;

#[cfg(unix)]
impl cuebook_run::Watch for Leaves {
    fn cancelled(&self) -> bool {
        true
    }
}

#[cfg(unix)]
#[test]
fn a_thread_that_its_own_process_cannot_begin_has_failed() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "exec sleep 5");
    let settings = cuebook_run::Settings { program: Some(program), ..Default::default() };
    let stage = Setup::with(script([says("x")]), settings, |yaml| yaml);
    stage.worker("");
    let request = ExecuteRequest { is_async: true, ..stage.request("demo/work", json!({})) };
    let id = id_of(&stage.world.engine.answer(&request, &Leaves).json);
    // What the other process finds.
    std::fs::remove_dir_all(stage.world.user().join(".ai/config/providers")).unwrap();
    let other = cuebook_run::Engine::new(cuebook::items::Spaces::new(
        &stage.world.project(),
        Some(&stage.world.user()),
    ));
    other.carry_out(None, None, &id, &Default::default(), &Ignore).unwrap_err();
    let record = stage.record(&id);
    assert_eq!(record.status, Status::Error);
    assert!(record.result.unwrap()["error"]["message"].is_string());
}

#[test]
fn a_hook_of_a_child_does_nothing_that_its_parent_may_not() {
    let stage =
        Setup::new(script([spawn("a", "demo/child", json!({})), returns("b", "x"), returns("c", "y")]));
    stage.tool("much", "open(project_path + '/much', 'a').write('x')\nreturn {}");
    let hook = |id: &str, event: &str, rest: &str| {
        format!("<hook id=\"{id}\" event=\"{event}\"><action {rest}</action></hook>")
    };
    let much = "primary=\"execute\" item_type=\"tool\" item_id=\"demo/much\">";
    let hooks = [
        hook("begin", "thread_started", much),
        // A hook that only keeps books is one of the directive too.
        hook("end", "after_complete", much).replace("event=", "layer=\"4\" event="),
        hook(
            "search",
            "after_complete",
            "primary=\"search\" item_type=\"tool\"><param name=\"scope\">tool</param>",
        ),
        hook(
            "copy",
            "after_complete",
            "primary=\"load\" item_type=\"tool\" item_id=\"demo/much\"><param name=\"destination\">user</param>",
        ),
    ];
    let parent = "<permissions><execute><directive>demo.*</directive></execute><load>*</load></permissions>";
    stage.directive("work", parent, &format!("{WORD}---\nWork."));
    let wants = "<permissions><execute><tool>demo.*</tool></execute><load>*</load></permissions>";
    stage.directive(
        "child",
        &format!("{wants}<hooks>{}</hooks>", hooks.concat()),
        &format!("{WORD}---\nWork."),
    );
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "y"}), "{answer:#}");
    let child = stage.records().into_iter().find(|record| record.parent.is_some()).unwrap();
    assert!(!stage.world.project().join("much").exists());
    let reported = &stage.payloads(&child.id, Kind::ContextInjected)[0]["hooks"][0];
    assert!(reported["failed"].as_str().unwrap().contains("Permission denied"), "{reported}");
    let ran = stage.payloads(&child.id, Kind::Hook);
    assert_eq!(ran.len(), 3, "{ran:#?}");
    for hook in &ran {
        assert!(hook["failed"].as_str().unwrap().contains("Permission denied"), "{ran:#?}");
    }
    // What stands in the user's own file needs no permission of a directive.
    let folder = stage.world.user().join(".ai/config/agent");
    std::fs::create_dir_all(&folder).unwrap();
    let file = "hooks:\n  - event: after_complete\n    action: {primary: execute, item_type: tool, item_id: demo/much}\n";
    std::fs::write(folder.join("hooks.yaml"), file).unwrap();
    stage.directive("plain", "", &format!("{WORD}---\nWork."));
    stage.run("demo/plain");
    assert!(stage.world.project().join("much").exists());
}
