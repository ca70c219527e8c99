//! Threads that stop anywhere, and are taken up again.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cuebook::items::Spaces;
use cuebook_mock::Reply;
use cuebook_run::{Engine, ExecuteRequest, Fence, Ignore, Kind, Resume, Settings, Status, rebuild};
use serde_json::{Value as Json, json};

use crate::setup::*;

/// What a process has to do: the project, the user, the directive.
const JOB: &str = "CUEBOOK_THREAD_TEST_JOB";

/// Not a test: what the processes of other tests do.
#[test]
fn helper() {
    let Ok(job) = std::env::var(JOB) else { return };
    let [project, user, directive] = job.split('\n').collect::<Vec<_>>()[..] else { panic!("{job}") };
    let engine = Engine::new(Spaces::new(project.as_ref(), Some(user.as_ref())))
        .with_settings(Settings { fence: Fence::Off, ..Settings::default() });
    engine.answer(&ExecuteRequest { thread: true, ..ExecuteRequest::directive(directive) }, &Ignore);
}

pub fn elsewhere(stage: &Setup, directive: &str) -> Child {
    let job = format!("{}\n{}\n{directive}", stage.world.project().display(), stage.world.user().display());
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "resume::helper"]).env(JOB, job).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

pub fn wait_for(what: impl Fn() -> bool) {
    let began = Instant::now();
    while !what() {
        assert!(began.elapsed() < Duration::from_secs(30), "it does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub const COUNT: &str = "open(project_path + '/count', 'a').write(params['n'])\nif params.get('sleep'):\n    import time\n    time.sleep(60)\nreturn {'n': params['n']}";

pub fn counted(stage: &Setup) -> String {
    std::fs::read_to_string(stage.world.project().join("count")).unwrap_or_default()
}

#[test]
fn a_tool_that_may_have_run_is_not_repeated() {
    let both = Reply::call(
        "a",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "1", "sleep": true}}),
    )
    .and_call(
        "b",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "2", "sleep": true}}),
    );
    let stage = Setup::new(script([both.usage(100, 10), returns("c", "x")]));
    stage.tool("count", COUNT).worker("");
    let mut process = elsewhere(&stage, "demo/work");
    wait_for(|| counted(&stage).len() == 2);
    process.kill().unwrap();
    process.wait().unwrap();
    let id = stage.records()[0].id.clone();
    assert_eq!(stage.record(&id).status, Status::Interrupted);
    let finished = stage.resume(&id, json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!(counted(&stage).len(), 2);
    let results = stage.results();
    assert!(results.iter().all(|(_, text)| text.contains("may have run")), "{results:?}");
    assert_eq!(stage.payloads(&id, Kind::ToolUnknown).len(), 2);
    assert_eq!(finished.cost.turns, 2);
}

#[test]
fn results_are_kept_while_other_calls_run() {
    let both = Reply::call(
        "a",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "1", "sleep": true}}),
    )
    .and_call(
        "b",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "2"}}),
    );
    let stage = Setup::new(script([both.usage(100, 10), returns("c", "x")]));
    stage.tool("count", COUNT).worker("");
    let mut process = elsewhere(&stage, "demo/work");
    wait_for(|| counted(&stage).len() == 2);
    let id = stage.records()[0].id.clone();
    wait_for(|| !stage.payloads(&id, Kind::ToolResult).is_empty());
    process.kill().unwrap();
    process.wait().unwrap();
    let finished = stage.resume(&id, json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    // The conversation keeps the order of the calls.
    let results = stage.results();
    let [(first, unknown), (second, known)] = results.as_slice() else { panic!("{results:?}") };
    assert_eq!((first.as_str(), second.as_str()), ("a", "b"));
    assert!(
        unknown.contains("may have run") && known.contains('2') && !known.contains("may have run"),
        "{results:?}"
    );
    assert_eq!(stage.payloads(&id, Kind::ToolUnknown).len(), 1);
    assert_eq!(counted(&stage).len(), 2);
}

#[test]
fn a_missing_answer_is_asked_again_and_counted() {
    let stage = Setup::new(script([returns("a", "x").first_byte_after(Duration::from_secs(60))]));
    stage.worker("<limits spend=\"0.1\"/>");
    let mut process = elsewhere(&stage, "demo/work");
    assert!(stage.mock.wait_for_requests(1, Duration::from_secs(30)));
    process.kill().unwrap();
    process.wait().unwrap();
    let id = stage.records()[0].id.clone();
    assert_eq!(stage.record(&id).status, Status::Interrupted);
    // What was read counts, in tokens and in money alike; what was held for the answer is let go.
    let cost = stage.record(&id).cost;
    assert!(cost.input_tokens > 0 && cost.estimated == cost.input_tokens, "{cost:?}");
    let held = cost.spend;
    assert_eq!(held.nanos(), i64::try_from(cost.input_tokens * 1_000).unwrap());
    let reported = &stage.payloads(&id, Kind::Interrupted)[0]["estimated"];
    assert_eq!(*reported, json!({"input": cost.input_tokens, "output": 0, "spend": held.to_json()}));
    assert_eq!(stage.store().account(&id).unwrap().unwrap().held.nanos(), 0);
    stage.mock.play(script([returns("b", "x")]));
    let finished = stage.resume(&id, json!({"spend": 0.5}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert!(finished.cost.spend > held, "{:?}", finished.cost);
    assert_eq!(stage.record(&id).cost.spend, finished.cost.spend);
}

#[test]
fn a_log_can_be_rebuilt_wherever_it_ends() {
    let two = Reply::call(
        "a",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "1"}}),
    )
    .and_call("b", "rye_execute", json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {}}))
    .usage(100, 10);
    let stage =
        Setup::new(script([two, says("hm"), call("a", "demo/count", json!({"n": "3"})), returns("c", "x")]));
    stage.tool("count", COUNT).worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let id = id_of(&answer);
    let log = stage.log(&id);
    for end in 1..=log.len() {
        let rebuilt = rebuild(&id, &log[..end]).unwrap();
        let start = &rebuilt.start;
        let has = |kind: Kind, call: &str| {
            let since = log[..end].iter().rposition(|event| event.kind == Kind::CognitionOut).unwrap_or(0);
            log[since..end].iter().any(|event| event.kind == kind && event.payload["call_id"] == call)
        };
        for call in &rebuilt.unknown {
            assert!(has(Kind::ToolStart, &call.id) && !has(Kind::ToolResult, &call.id), "{end}: {call:?}");
        }
        for call in start.pending.iter().filter(|call| !start.settled.contains_key(&call.id)) {
            let is_unknown = rebuilt.unknown.iter().any(|unknown| unknown.id == call.id);
            assert!(is_unknown || !has(Kind::ToolStart, &call.id), "{end}: {call:?} would be made twice");
        }
        // Every result stands behind its call, and every call that is not pending has one.
        let ids = |role: &str, name: &str| -> Vec<Json> {
            let messages = start.conversation.iter().filter(|message| message.role.as_str() == role);
            messages
                .flat_map(|message| match message.metadata.get(name) {
                    Some(Json::Array(calls)) => calls.iter().map(|call| call["id"].clone()).collect(),
                    Some(id) => vec![id.clone()],
                    None => Vec::new(),
                })
                .collect()
        };
        let (calls, results) = (ids("assistant", "tool_calls"), ids("tool", "tool_call_id"));
        let pending = start.pending.len();
        assert_eq!(calls[..calls.len() - pending], results[..], "{end}");
        assert_eq!(start.turns, rebuilt.cost.turns, "{end}");
    }
    let whole = rebuild(&id, &log).unwrap();
    assert_eq!(whole.nudges, 1);
}

#[test]
fn a_call_with_the_name_of_an_earlier_one_gets_another_name() {
    let twice = Reply::call(
        "same",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "1"}}),
    )
    .and_call(
        "same",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "2"}}),
    )
    .and_call(
        "",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "3"}}),
    )
    .usage(100, 10);
    let again = Reply::call(
        "same",
        "rye_execute",
        json!({"item_type": "tool", "item_id": "demo/count", "parameters": {"n": "4"}}),
    );
    let stage = Setup::new(script([twice, again.usage(100, 10), returns("same", "x")]));
    stage.tool("count", COUNT).worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let results = stage.results();
    let mut names: Vec<&String> = results.iter().map(|(id, _)| id).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), 4, "{results:?}");
    for (at, (_, text)) in results.iter().enumerate() {
        assert!(text.contains(&format!("\"n\":\"{}\"", at + 1)), "{results:?}");
    }
}

#[test]
fn a_thread_is_taken_up_again_and_again() {
    let stage = Setup::new(script(
        (0..6)
            .map(|n| call(&format!("c{n}"), "demo/count", json!({"n": n.to_string()})))
            .chain([returns("z", "x")]),
    ));
    stage.tool("count", COUNT).worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 2}));
    let id = id_of(&answer);
    for turns in [4, 6] {
        let finished = stage.resume(&id, json!({"turns": turns}));
        assert_eq!((finished.status, finished.cost.turns), (Status::Suspended, turns));
    }
    let finished = stage.resume(&id, json!({"turns": 9}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!(counted(&stage), "012345", "each call was made once");
    assert_eq!(stage.results().len(), 6);
    let tokens: u64 = stage.record(&id).cost.tokens();
    assert_eq!(tokens, 7 * 110);
    // It has come to its end.
    let refused = stage.world.engine.resume_with(None, None, &id, &Resume::default(), &Ignore).unwrap_err();
    assert_eq!(refused.code(), cuebook::Code::CannotResume);
}

#[test]
fn a_reminder_that_a_limit_stopped_is_sent_later() {
    let stage = Setup::new(script([says("just words"), returns("a", "x")]));
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 1}));
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    let finished = stage.resume(&id_of(&answer), json!({"turns": 5}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    let reported = stage.reported(1);
    assert!(
        reported.contains("just words") && reported.contains("You have not called directive_return yet"),
        "{reported}"
    );
}

#[test]
fn a_thread_without_outputs_can_resume() {
    let stage = Setup::new(script([says("just words")]).forever());
    stage.worker("");
    let answer = stage.run("demo/work");
    assert_eq!(code_of(&answer), "CB725", "{answer:#}");
    stage.mock.play(script([says("more words"), returns("a", "x")]));
    let finished = stage.resume(&id_of(&answer), json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    let body = stage.mock.requests()[4].body["messages"].clone();
    assert_eq!(body.as_array().unwrap().last().unwrap()["role"], "user", "{body:#}");
}

#[test]
fn the_log_reports_a_prompt_that_changed() {
    let stage = Setup::new(script([call("a", "demo/none", json!({})), returns("b", "x")]));
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 1}));
    stage.directive(
        "work",
        "<permissions><execute><tool>demo.*</tool></execute></permissions>",
        &format!("{WORD}---\nRest."),
    );
    let id = id_of(&answer);
    let finished = stage.resume(&id, json!({"turns": 5}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!(
        stage.payloads(&id, Kind::Resumed)[0]["prompt_changed"],
        "the directive has changed since the thread began; this thread keeps the old text, and a new thread uses the new one"
    );
    assert!(stage.reported(1).contains("Work.") && !stage.reported(1).contains("Rest."));
}

#[test]
fn another_model_brings_its_own_measures() {
    let stage = Setup::with(
        script([call("a", "demo/none", json!({})), returns("b", "x")]),
        Default::default(),
        |yaml| {
            yaml.replace("retry:", "  other-model:\n    context_window: 50000\n    max_output: 777\n    price: {input: 2, output: 20}\nretry:")
        },
    );
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 1}));
    let id = id_of(&answer);
    let how = Resume {
        model: Some("other-model".into()),
        limit_overrides: map(json!({"turns": 5})),
        ..Resume::default()
    };
    stage.world.engine.resume_with(None, None, &id, &how, &Ignore).unwrap();
    let requests = stage.mock.requests();
    assert_eq!(
        (requests[1].body["model"].as_str(), &requests[1].body["max_tokens"]),
        (Some("other-model"), &json!(777))
    );
    let log = stage.log(&id);
    let rebuilt = rebuild(&id, &log).unwrap();
    assert_eq!((rebuilt.launch.context_window, rebuilt.launch.model.id.as_str()), (50_000, "other-model"));
    assert_eq!(stage.record(&id).model.as_deref(), Some("other-model"));
}

#[test]
fn only_one_process_gets_a_thread_that_two_resume() {
    let stage = Setup::new(
        script([
            call("a", "demo/none", json!({})),
            returns("b", "x").first_byte_after(Duration::from_millis(300)),
        ])
        .forever(),
    );
    stage.worker("");
    let id = id_of(&stage.run_within("demo/work", json!({"turns": 1})));
    let how = Resume { limit_overrides: map(json!({"turns": 5})), ..Resume::default() };
    let took: usize = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| stage.world.engine.resume_with(None, None, &id, &how, &Ignore).is_ok()))
            .collect();
        runs.into_iter().map(|run| usize::from(run.join().unwrap())).sum()
    });
    assert_eq!(took, 1);
    assert_eq!(stage.payloads(&id, Kind::Resumed).len(), 1);
    assert_eq!(stage.mock.requests().len(), 2);
}

#[test]
fn a_log_cannot_allow_more_than_the_directive_does() {
    let stage =
        Setup::new(script([call("a", "rye/bash/bash", json!({"command": "touch oops"})), returns("b", "x")]));
    stage.tool("count", COUNT);
    let may = |what: &str| format!("<permissions><execute><tool>{what}</tool></execute></permissions>");
    let hook = "<hooks><hook id=\"h\" event=\"after_step\"><action primary=\"execute\" item_type=\"tool\" item_id=\"demo/count\"><param name=\"n\">1</param></action></hook></hooks>";
    // As if a user had written such a log by hand.
    stage.directive("work", &(may("rye.bash.*") + hook), &format!("{WORD}---\nWork."));
    let answer = stage.run_within("demo/work", json!({"turns": 0}));
    stage.worker("");
    let finished = stage.resume(&id_of(&answer), json!({"turns": 5}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!(stage.payloads(&finished.id, Kind::Denied).len(), 1);
    assert!(!stage.world.project().join("oops").exists() && counted(&stage).is_empty());
    // Without a directive that a user vouches for, no one says what it may do.
    let answer = stage.run_within("demo/work", json!({"turns": 0}));
    let path = stage.world.project().join(".ai/directives/demo/work.md");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("demo.*", "*")).unwrap();
    let how = Resume { limit_overrides: map(json!({"turns": 5})), ..Resume::default() };
    let refused = stage.world.engine.resume_with(None, None, &id_of(&answer), &how, &Ignore).unwrap_err();
    assert_eq!(refused.kind(), cuebook::ErrorKind::Integrity, "{refused}");
    assert_eq!(stage.record(&id_of(&answer)).status, Status::Suspended);
}

#[test]
fn a_log_that_was_changed_is_not_gone_on_with() {
    let stage = Setup::new(script([call("a", "demo/none", json!({}))]).forever());
    stage.worker("");
    let id = id_of(&stage.run_within("demo/work", json!({"turns": 1})));
    let file = stage.world.project().join(".ai/state/threads.db");
    let status = Command::new("python3")
        .args(["-c", "import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.execute(\"update cuebook_events set payload=replace(payload,'Work.','Steal.') where seq=1\"); c.commit()"])
        .arg(&file)
        .status()
        .unwrap();
    assert!(status.success());
    let refused = stage.world.engine.resume_with(None, None, &id, &Resume::default(), &Ignore).unwrap_err();
    assert_eq!(refused.code(), cuebook::Code::BrokenLog);
}

#[test]
fn a_thread_of_another_process_is_stopped_within_a_second() {
    let stage = Setup::new(script([call("a", "demo/count", json!({"n": "1", "sleep": true}))]).forever());
    stage.tool("count", COUNT).worker("");
    let mut process = elsewhere(&stage, "demo/work");
    wait_for(|| counted(&stage).len() == 1);
    let id = stage.records()[0].id.clone();
    let began = Instant::now();
    stage.store().cancel(&id).unwrap();
    wait_for(|| stage.record(&id).status != Status::Running);
    // A second, and what a busy machine takes.
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(stage.record(&id).status, Status::Cancelled);
    assert!(process.wait().unwrap().success());
    assert_eq!(stage.payloads(&id, Kind::ToolResult).len(), 1, "what came of the tool is known");
}
