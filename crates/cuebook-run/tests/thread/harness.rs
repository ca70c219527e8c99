//! Limits, and what stops a thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cuebook_mock::Reply;
use cuebook_run::{Kind, Money, Status, Watch};
use serde_json::json;

use crate::setup::*;

const SLEEP: &str = "import time\nopen(project_path + '/begun', 'w').close()\ntime.sleep(30)\nopen(project_path + '/oops', 'w').close()\nreturn {}";

#[test]
fn a_tool_is_stopped_when_the_time_of_the_thread_is_over() {
    let stage = Setup::new(script([call("a", "demo/sleep", json!({})), returns("b", "x")]));
    stage.tool("sleep", SLEEP).worker("");
    let began = Instant::now();
    let answer = stage.run_within("demo/work", json!({"duration_seconds": 1.5}));
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    assert_eq!(answer["metadata"]["error"]["limit_code"], "duration_seconds_exceeded");
    let id = id_of(&answer);
    assert_eq!(stage.mock.requests().len(), 1);
    assert_eq!(stage.payloads(&id, Kind::ToolResult)[0]["is_error"], true);
    // With more time it goes on, and the model hears what became of the call.
    let finished = stage.resume(&id, json!({"duration_seconds": 60}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert!(!stage.world.project().join("oops").exists());
}

#[test]
fn remaining_calls_run_after_a_resume() {
    // Two calls that are made one after another would both count; these are made at once, so only the time before them counts.
    let slow = call("a", "demo/note", json!({})).first_byte_after(Duration::from_millis(900));
    let stage = Setup::new(script([slow, returns("b", "x")]));
    stage.tool("note", "open(project_path + '/noted', 'a').write('x')\nreturn {}").worker("");
    let answer = stage.run_within("demo/work", json!({"duration_seconds": 0.5}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "duration_seconds_exceeded", "{answer:#}");
    let finished = stage.resume(&id_of(&answer), json!({"duration_seconds": 60}));
    assert!(finished.error.is_none(), "{finished:?}");
}

#[test]
fn a_child_has_no_more_time_than_its_parent() {
    let slow = returns("c", "x").first_byte_after(Duration::from_secs(20));
    let stage = Setup::new(script([spawn("p", "demo/work", json!({})), slow]));
    stage.worker("");
    stage.directive(
        "parent",
        "<permissions><execute><directive>demo.*</directive></execute></permissions>",
        "Have it done.",
    );
    let began = Instant::now();
    let answer = stage.run_within("demo/parent", json!({"duration_seconds": 1}));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(answer["metadata"]["error"]["limit_code"], "duration_seconds_exceeded", "{answer:#}");
    assert!(stage.records()[1].status.is_at_rest());
    // What the child's answer may have cost is counted, and nothing is held for it any more.
    let account = stage.store().account(&id_of(&answer)).unwrap().unwrap();
    assert_eq!((account.held, account.reserved), (Money::ZERO, Money::ZERO), "{account:?}");
}

/// A user who loses patience.
struct Impatient<'a>(&'a AtomicBool);

impl Watch for Impatient<'_> {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

fn wait_for(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(20), "it does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn stopping_a_parent_stops_children_and_tools() {
    for by_store in [true, false] {
        let stage = Setup::new(
            script([spawn("p", "demo/work", json!({})), call("a", "demo/sleep", json!({}))]).forever(),
        );
        stage.tool("sleep", SLEEP).worker("");
        stage.directive(
            "parent",
            "<permissions><execute><directive>demo.*</directive><tool>demo.*</tool></execute></permissions>",
            "Have it done.",
        );
        let stop = AtomicBool::new(false);
        let request = stage.request("demo/parent", json!({}));
        std::thread::scope(|scope| {
            let running = scope.spawn(|| stage.world.engine.answer(&request, &Impatient(&stop)).json);
            wait_for(|| stage.world.project().join("begun").exists());
            let began = Instant::now();
            match by_store {
                true => drop(stage.store().cancel(&stage.records()[0].id).unwrap()),
                false => stop.store(true, Ordering::Relaxed),
            }
            let answer = running.join().unwrap();
            // A second, and what a busy machine takes.
            assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
            assert_eq!(answer["thread_status"], "cancelled", "{answer:#}");
        });
        for record in stage.records() {
            assert_eq!(record.status, Status::Cancelled, "{}", record.id);
            let account = stage.store().account(&record.id).unwrap().unwrap();
            assert!(
                account.settled && account.held == Money::ZERO && account.reserved == Money::ZERO,
                "{account:?}"
            );
        }
        assert_eq!(stage.records().len(), 2);
        assert!(!stage.world.project().join("oops").exists());
    }
}

#[test]
fn a_waiting_child_is_cancelled_with_its_parent() {
    let stage = Setup::new(
        script([spawn("p", "demo/work", json!({})), call("a", "demo/sleep", json!({}))]).forever(),
    );
    stage.tool("sleep", SLEEP).worker("");
    stage.directive(
        "parent",
        "<permissions><execute><directive>demo.*</directive></execute></permissions>",
        "Have it done.",
    );
    let stop = AtomicBool::new(false);
    let request = stage.request("demo/parent", json!({}));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| stage.world.engine.answer(&request, &Impatient(&stop)).json);
        stage.mock.wait_for_requests(1, Duration::from_secs(20));
        wait_for(|| stage.records().len() >= 2);
        // As an asynchronous child is, before its process takes it up.
        let parent = stage.records()[0].id.clone();
        let new = cuebook_run::store::New {
            prompt: "demo/work".into(),
            parent: Some(parent),
            parent_spawns: None,
            parent_holder: None,
            spend: Money::from_units(0.01),
            model: None,
            unpriced: false,
            continuation_of: None,
            holder: None,
            entries: Vec::new(),
        };
        let child = stage.store().begin(&new).unwrap();
        stop.store(true, Ordering::Relaxed);
        running.join().unwrap();
        assert_eq!(stage.record(&child.id).status, Status::Cancelled);
    });
}

#[test]
fn money_that_a_denied_call_did_not_use_can_be_used() {
    // The whole of it is held for each answer.
    let stage = Setup::new(script([call("a", "rye/bash/bash", json!({"command": "ls"})), returns("b", "x")]));
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"spend": 0.01}));
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    assert_eq!(stage.payloads(&id_of(&answer), Kind::Denied).len(), 1);
}

#[test]
fn an_answer_is_asked_to_be_as_short_as_the_money_is() {
    let stage = Setup::new(script([returns("a", "x")]));
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"spend": 0.01}));
    assert_eq!(answer["status"], "success", "{answer:#}");
    let most = stage.mock.requests()[0].body["max_tokens"].as_u64().unwrap();
    assert!(most < 1000, "{most}");
    // Too little for any answer: no request is sent.
    let before = stage.mock.requests().len();
    let answer = stage.run_within("demo/work", json!({"spend": 0.0001}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "spend_exceeded", "{answer:#}");
    assert_eq!(stage.mock.requests().len(), before);
}

#[test]
fn numbers_that_are_too_large_to_count_are_limits_like_others() {
    for limits in [
        json!({"turns": u64::MAX, "tokens": u64::MAX, "spawns": u64::MAX, "depth": u64::MAX, "duration_seconds": u64::MAX}),
        json!({"turns": 1e300, "spend": 1e300, "duration_seconds": 1e300}),
    ] {
        let stage = Setup::new(script([call("a", "demo/none", json!({})), returns("b", "x")]));
        stage.worker("");
        let answer = stage.run_within("demo/work", limits.clone());
        assert_eq!(answer["status"], "success", "{limits}: {answer:#}");
    }
    let stage = Setup::new(script([returns("b", "x")]));
    stage.worker("");
    for limits in [
        json!({"turns": -1}),
        json!({"turns": "many"}),
        json!({"spend": -0.1}),
        json!({"turns": 1.5}),
        json!({"max_turns": 3}),
    ] {
        let answer = stage.run_within("demo/work", limits.clone());
        assert_eq!(code_of(&answer), "CB715", "{limits}: {answer:#}");
    }
    let answer = stage.run_within("demo/work", json!({"turns": 0}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "turns_exceeded", "{answer:#}");
    assert!(stage.mock.requests().is_empty());
}

#[test]
fn a_limit_on_money_needs_prices() {
    let stage = Setup::with(script([returns("a", "x")]).forever(), Default::default(), |yaml| {
        yaml.lines().filter(|line| !line.contains("price")).map(|line| format!("{line}\n")).collect()
    });
    stage.worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    assert_eq!(answer["cost"]["spend"], 0.0);
    let notes = &stage.payloads(&id_of(&answer), Kind::Started)[0]["notes"];
    assert!(notes.to_string().contains("the limit `spend` has no effect"), "{notes}");
    assert_eq!(code_of(&stage.run_within("demo/work", json!({"spend": 1}))), "CB719");
    let answer = stage.run_within("demo/work", json!({"turns": 0}));
    let how =
        cuebook_run::Resume { limit_overrides: map(json!({"turns": 2, "spend": 1})), ..Default::default() };
    let refused =
        stage.world.engine.resume_with(None, None, &id_of(&answer), &how, &cuebook_run::Ignore).unwrap_err();
    assert_eq!(refused.code(), cuebook::Code::BadProviderFile);
}

#[test]
fn a_model_that_declines_has_the_thread_fail() {
    let stage = Setup::new(script([Reply::text("I will not.").finish("refusal")]).forever());
    stage.worker("");
    let answer = stage.run("demo/work");
    assert_eq!((code_of(&answer), &answer["thread_status"]), ("CB729", &json!("error")), "{answer:#}");
}

#[test]
fn usage_that_a_provider_does_not_report_is_estimated() {
    let silent = |id: &str| {
        let call =
            json!({"item_type": "tool", "item_id": "demo/note", "parameters": {"text": "a few words more"}});
        Reply::call(id, "rye_execute", call)
    };
    let calls = || script([silent("a"), silent("b"), silent("c"), returns("d", "x")]);
    let stage = Setup::new(calls());
    stage.tool("note", "return {}").worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 1}));
    let first = answer["cost"]["input_tokens"].as_u64().unwrap();
    stage.mock.play(calls());
    let answer = stage.run_within("demo/work", json!({"tokens": first + 100}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "tokens_exceeded", "{answer:#}");
    assert_eq!(answer["cost"]["turns"], 1, "{answer:#}");
    assert!(answer["cost"]["input_tokens"].as_u64().unwrap() > 100, "{answer:#}");
    assert!(answer["cost"]["output_tokens"].as_u64().unwrap() > 10, "{answer:#}");
    assert!(answer["cost"]["spend"].as_f64().unwrap() > 0.0, "{answer:#}");
    // It is said once that these are guesses, and of each whether it is one.
    stage.mock.play(calls());
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let said = stage.payloads(&id_of(&answer), Kind::CognitionOut);
    let notes: Vec<&str> = said.iter().filter_map(|payload| payload["note"].as_str()).collect();
    assert!(notes.len() == 1 && notes[0].contains("mock does not report its tokens"), "{notes:?}");
    assert_eq!(
        said.iter().map(|payload| payload["estimated"].is_object()).collect::<Vec<_>>(),
        [true, true, true, false]
    );
    // A limit on money holds too.
    stage.mock.play(calls().forever());
    let answer = stage.run_within("demo/work", json!({"spend": 0.003, "turns": 50}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "spend_exceeded", "{answer:#}");
}
