//! Models whose price is not known: a thread that asked one, and its parents, say so wherever money is reported.

use cuebook_mock::Script;
use cuebook_run::{Conversation, Finished, Ignore, Kind, Resume, Settings, Status, ThreadRun, rebuild};
use serde_json::{Value as Json, json};

use crate::setup::*;

/// Two models: one has a price, the other has none. Conversations with both are short.
fn two(script: Script) -> Setup {
    Setup::with(script, Settings::default(), |yaml| {
        let yaml = yaml.replace("context_window: 100000", "context_window: 6000");
        yaml.replace("models:\n", "models:\n  free-model:\n    context_window: 6000\n    max_output: 4096\n")
    })
}

fn resume_with(stage: &Setup, answer: &Json, model: &str) -> Finished {
    let how = Resume {
        model: Some(model.to_owned()),
        limit_overrides: map(json!({"turns": 9})),
        ..Resume::default()
    };
    match stage.world.engine.resume_with(None, None, &id_of(answer), &how, &Ignore).unwrap() {
        ThreadRun::Finished(finished) => *finished,
        ThreadRun::Detached { .. } => panic!("it runs elsewhere"),
    }
}

/// What a thread's row, the end in its log and its last answer say.
fn known(stage: &Setup, answer: &Json) -> [bool; 3] {
    let id = id_of(answer);
    let record = stage.record(&id);
    let log = stage.log(&id);
    assert_eq!(rebuild(&id, &log).unwrap().cost.unpriced, record.cost.unpriced);
    let end = log.iter().rev().find(|event| event.payload.get("cost").is_some()).unwrap();
    [&record.to_json()["cost"], &end.payload["cost"], &answer["cost"]]
        .map(|cost| cost["spend_known"] != false)
}

#[test]
fn an_unpriced_child_makes_the_parents_sum_unknown() {
    let stage = two(script([
        spawn("p", "demo/child", json!({})),
        spawn("c", "demo/work", json!({"model": "free-model"})),
        returns("g", "x"),
        says("child is done"),
        says("parent is done"),
    ]));
    let may = "<permissions><execute><directive>demo.*</directive></execute></permissions>";
    stage.directive("parent", may, "Have it done.").directive("child", may, "Have it done.").worker("");
    let answer = stage.run("demo/parent");
    assert_eq!(answer["result"], "parent is done", "{answer:#}");
    assert_eq!(known(&stage, &answer), [false; 3], "{answer:#}");
    let records = stage.records();
    assert!(records.iter().all(|record| record.cost.unpriced), "{records:#?}");
    // Its own model has a price, and what that cost is reported.
    assert!(answer["cost"]["spend"].as_f64().unwrap() > 0.0, "{answer:#}");
    // One that has nothing to do with it knows.
    stage.mock.play(script([returns("a", "x")]));
    assert_eq!(known(&stage, &stage.run("demo/work")), [true; 3]);
}

#[test]
fn another_model_does_not_make_known_what_was_not() {
    let stage = two(script([call("a", "demo/none", json!({})), returns("b", "x")]));
    stage.worker("");
    let mut request = stage.request("demo/work", json!({"turns": 1}));
    request.model = Some("free-model".to_owned());
    let answer = stage.world.engine.answer(&request, &Ignore).json;
    assert_eq!(known(&stage, &answer), [false; 3], "{answer:#}");
    let done = resume_with(&stage, &answer, "mock-model");
    assert!(done.cost.unpriced && done.outputs.is_some(), "{done:?}");
    assert_eq!(done.to_json()["cost"]["spend_known"], false);
    assert!(done.to_json()["cost"]["spend"].as_f64().unwrap() > 0.0, "{done:?}");
    let launch = rebuild(&done.id, &stage.log(&done.id)).unwrap().launch;
    assert!(!launch.unpriced, "the limit holds from now on");
}

#[test]
fn a_full_conversation_without_successor_has_unknown_costs() {
    let long = "word ".repeat(5800);
    let full = || call("a", "demo/none", json!({"text": long})).usage(5900, 10);
    let stage = two(script([full(), says("no")]));
    stage.worker("<continuation_directive>demo/nowhere</continuation_directive>");
    let mut request = stage.request("demo/work", json!({}));
    request.model = Some("free-model".to_owned());
    let answer = stage.world.engine.answer(&request, &Ignore).json;
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    assert_eq!(known(&stage, &answer), [false; 3], "{answer:#}");
    assert_eq!(stage.payloads(&id_of(&answer), Kind::Suspended)[0]["cost"]["spend_known"], false);
    // A caller that goes on with another model has what that one costs, and the conversation has a sum that is not known.
    stage.directive("nowhere", "", "Here I am.");
    stage.mock.play(script([returns("b", "x")]));
    let done = resume_with(&stage, &answer, "mock-model");
    assert_eq!(done.status, Status::Completed, "{done:?}");
    let last = stage.record(&done.id);
    assert!(!last.cost.unpriced, "its own model has a price");
    assert_eq!(stage.payloads(&done.id, Kind::Started)[0]["unpriced"], false);
    let whole = Conversation::of(&*stage.store(), &last).unwrap().unwrap();
    assert_eq!((whole.threads.len(), &whole.to_json()["spend_known"]), (2, &json!(false)));
    assert_eq!(done.to_json()["cost"]["spend_known"], false, "{:#}", done.to_json());
}
