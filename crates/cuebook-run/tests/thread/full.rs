//! A full conversation is still full when its process has died.

use cuebook_mock::{Reply, Script};
use cuebook_run::{Kind, Settings, Status};
use serde_json::json;

use crate::resume::{COUNT, counted, elsewhere, wait_for};
use crate::setup::*;

/// A model that takes few tokens, and counts more of them than anybody here would.
fn small(script: Script) -> Setup {
    Setup::with(script, Settings::default(), |yaml| {
        yaml.replace("context_window: 100000", "context_window: 6000")
    })
}

fn count(id: &str, parameters: serde_json::Value) -> Reply {
    call(id, "demo/count", parameters).usage(5500, 100)
}

/// Runs the directive elsewhere, kills its process when it has counted, and takes the thread up.
fn killed(stage: &Setup, asleep: impl Fn() -> bool) -> cuebook_run::ThreadId {
    let mut process = elsewhere(stage, "demo/work");
    wait_for(asleep);
    process.kill().unwrap();
    process.wait().unwrap();
    let id = stage.records()[0].id.clone();
    assert_eq!(stage.record(&id).status, Status::Interrupted);
    id
}

/// The conversation went on in another thread, and the first one was not asked again.
fn handed_over(stage: &Setup, id: &cuebook_run::ThreadId) {
    let finished = stage.resume(id, json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    let [first, second] = &stage.records()[..] else { panic!("{:#?}", stage.records()) };
    assert_eq!((first.status, second.status), (Status::Continued, Status::Completed));
    assert_eq!(first.continued_by.as_ref(), Some(&second.id));
    assert_eq!((&first.id, first.cost.turns, second.cost.turns), (id, 1, 1));
    let full = stage.payloads(id, Kind::ContextFull);
    assert_eq!(full.len(), 1, "{full:?}");
    assert!(full[0]["tokens"].as_u64().unwrap() > 5600, "{full:?}");
}

#[test]
fn a_hand_over_that_was_cut_off_is_taken_up_again() {
    let hook = "<hooks><hook id=\"full\" event=\"context_limit_reached\"><action primary=\"execute\" item_type=\"tool\" \
                item_id=\"demo/count\"><param name=\"n\">h</param><param name=\"sleep\">yes</param></action></hook></hooks>";
    let stage = small(script([count("a", json!({"n": "1"})), returns("b", "x")]));
    stage.tool("count", COUNT).worker(hook);
    let id = killed(&stage, || counted(&stage) == "1h");
    assert_eq!(stage.payloads(&id, Kind::ContextFull).len(), 1, "it is known that it is full");
    handed_over(&stage, &id);
    // What the hook may have done is not done again.
    assert_eq!(counted(&stage), "1h");
    assert_eq!(stage.payloads(&id, Kind::HookUnknown).len(), 1);
}

/// A hook of a full conversation that runs the tool which counts.
fn counts(id: &str, more: &str) -> String {
    format!(
        "<hook id=\"{id}\" event=\"context_limit_reached\"><action primary=\"execute\" item_type=\"tool\" \
         item_id=\"demo/count\"><param name=\"n\">{id}</param>{more}</action></hook>"
    )
}

const SLEEPS: &str = "<param name=\"sleep\">yes</param>";

#[test]
fn remaining_hooks_run_after_a_resume() {
    for (asleep, before, after) in [(0, "1h", "1hij"), (1, "1hi", "1hij"), (2, "1hij", "1hij")] {
        let hooks = ["h", "i", "j"].iter().enumerate();
        let hooks = hooks.map(|(at, id)| counts(id, if at == asleep { SLEEPS } else { "" }));
        let stage = small(script([count("a", json!({"n": "1"})), returns("b", "x")]));
        stage.tool("count", COUNT).worker(&format!("<hooks>{}</hooks>", hooks.collect::<String>()));
        let id = killed(&stage, || counted(&stage) == before);
        handed_over(&stage, &id);
        // Each of them once, in their order.
        assert_eq!(counted(&stage), after);
        let unknown = stage.payloads(&id, Kind::HookUnknown);
        assert_eq!(unknown.len(), 1, "{unknown:#?}");
        assert_eq!(unknown[0]["hook"], ["h", "i", "j"][asleep]);
        let failed = |hook: &serde_json::Value| hook["failed"].is_string();
        let ran = stage.payloads(&id, Kind::Hook);
        assert_eq!((ran.len(), ran.iter().filter(|hook| failed(hook)).count()), (3, 1), "{ran:#?}");
    }
}

#[test]
fn a_decision_of_a_hook_before_a_crash_counts_once() {
    let decides = counts("h", "").replace("demo/count", "demo/stop");
    let hooks = format!("<hooks>{decides}{}{}</hooks>", counts("i", SLEEPS), counts("j", ""));
    let stage = small(script([count("a", json!({"n": "1"})), returns("b", "x")]));
    let stop = "open(project_path + '/count', 'a').write(params['n'])\nreturn {'action': 'suspend', 'suspend_reason': 'wait'}";
    stage.tool("count", COUNT).tool("stop", stop).worker(&hooks);
    let id = killed(&stage, || counted(&stage) == "1hi");
    let stopped = stage.resume(&id, json!({}));
    assert_eq!((stopped.status, counted(&stage).as_str()), (Status::Suspended, "1hij"), "{stopped:?}");
    assert!(stopped.error.unwrap().to_string().contains("wait"));
    // A caller that takes it up then has heard it.
    handed_over(&stage, &id);
    assert_eq!(counted(&stage), "1hij");
}

#[test]
fn a_limit_keeps_remaining_hooks_for_later() {
    let hooks = format!("<hooks>{}{}</hooks>", counts("h", SLEEPS), counts("i", ""));
    let stage = small(script([count("a", json!({"n": "1"})), returns("b", "x")]));
    stage.tool("count", COUNT).worker(&hooks);
    let id = killed(&stage, || counted(&stage) == "1h");
    let stopped = stage.resume(&id, json!({"turns": 1}));
    assert_eq!((stopped.status, counted(&stage).as_str()), (Status::Suspended, "1h"), "{stopped:?}");
    let finished = stage.resume(&id, json!({"turns": 9}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!(counted(&stage), "1hi");
}

#[test]
fn usage_is_known_after_a_crash() {
    let stage = small(script([count("a", json!({"n": "1", "sleep": true})), returns("b", "x")]));
    stage.tool("count", COUNT).worker("");
    let id = killed(&stage, || counted(&stage) == "1");
    handed_over(&stage, &id);
}

#[test]
fn a_model_that_takes_more_goes_on_where_another_one_was_full() {
    let stage = small(script([count("a", json!({"n": "1"})), returns("b", "x")]));
    stage.tool("count", COUNT).worker("<continuation_directive>demo/nowhere</continuation_directive>");
    let answer = stage.run("demo/work");
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    let file = stage.world.user().join(".ai/config/providers/mock.yaml");
    let yaml = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, yaml.replace("context_window: 6000", "context_window: 60000")).unwrap();
    let finished = stage.resume(&id_of(&answer), json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!((stage.records().len(), finished.cost.turns), (1, 2));
}
