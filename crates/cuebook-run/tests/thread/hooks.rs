//! Hooks of directives, users and projects.

use cuebook_mock::Reply;
use cuebook_run::store::{Change, Holder};
use cuebook_run::{Entry, Kind, Status};
use serde_json::json;

use crate::setup::*;

/// A hook that decides something.
fn hook(event: &str, condition: &str, decision: &str) -> String {
    format!(
        "<hooks><hook id=\"h\" event=\"{event}\">{condition}\
         <action primary=\"execute\" item_type=\"tool\" item_id=\"rye/agent/threads/internal/control\">{decision}</action>\
         </hook></hooks>"
    )
}

fn param(name: &str, value: &str) -> String {
    format!("<param name=\"{name}\">{value}</param>")
}

#[test]
fn a_hook_suspends_a_thread_when_its_condition_is_true() {
    let stage = Setup::new(script([
        call("a", "demo/none", json!({})),
        call("b", "demo/none", json!({})),
        returns("c", "x"),
    ]));
    let condition = "<condition path=\"cost.turns\" op=\"gte\" value=\"2\"/>";
    stage.worker(&hook(
        "after_step",
        condition,
        &(param("action", "suspend") + &param("suspend_reason", "look at it")),
    ));
    let answer = stage.run("demo/work");
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    assert_eq!(answer["error"], "look at it");
    let id = id_of(&answer);
    assert_eq!(stage.record(&id).cost.turns, 2);
    let ran = stage.payloads(&id, Kind::Hook);
    assert_eq!(ran.len(), 1, "the first step did not meet the condition: {ran:?}");
    assert_eq!((&ran[0]["hook"], &ran[0]["decided"]), (&json!("h"), &json!(true)));
    // What was returned is returned: no step follows it that a hook could stop.
    let finished = stage.resume(&id, json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
}

#[test]
fn an_invalid_hook_keeps_a_thread_from_starting() {
    let stage = Setup::new(script([returns("a", "x")]));
    let suspend = param("action", "suspend");
    let operator = "<condition path=\"cost.turns\" op=\"gtee\" value=\"2\"/>";
    for (hook, message, hint) in [
        (hook("after_step", "", &param("action", "suspnd")), "suspnd", "did you mean `suspend`?"),
        (hook("after_steps", "", &suspend), "after_steps", "did you mean `after_step`"),
        (hook("after_step", operator, &suspend), "gtee", "did you mean `gte`"),
        (hook("after_step", "", ""), "has no decision", "use one of"),
        (
            hook("after_step", "", &param("action", "retry")),
            "the decision \"retry\" has no effect at `after_step`",
            "use one of these at `after_step`: fail, suspend, escalate, abort",
        ),
        (
            hook("limit", "", &param("action", "retry")),
            "has no effect at `limit`",
            "use one of these at `limit`: fail",
        ),
        (hook("after_complete", "", &suspend), "has no effect at `after_complete`", "nothing can be decided"),
        (hook("thread_started", "", &suspend), "has no effect at `thread_started`", "nothing can be decided"),
    ] {
        stage.worker(&hook);
        let answer = stage.run("demo/work");
        let error = &answer["metadata"]["error"];
        assert_eq!(code_of(&answer), "CB726", "{answer:#}");
        assert!(error["message"].as_str().unwrap().contains(message), "{answer:#}");
        assert!(error["hint"].as_str().unwrap().contains(hint), "{answer:#}");
        assert_eq!(error["line"], 10, "{answer:#}");
    }
    assert!(stage.mock.requests().is_empty() && stage.records().is_empty());
}

#[test]
fn a_hook_with_a_missing_item_is_reported() {
    let stage = Setup::new(script([call("a", "demo/none", json!({})), returns("b", "x")]));
    let hooks = "<hooks><hook id=\"h\" event=\"after_step\"><action><execute item_type=\"tool\" item_id=\"demo/nothing\"/></action></hook>\
                 <hook id=\"c\" event=\"thread_started\"><action><execute item_type=\"tool\" item_id=\"demo/nothing\"/></action></hook></hooks>";
    stage.worker(hooks);
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let id = id_of(&answer);
    let reported = &stage.payloads(&id, Kind::Hook)[0];
    assert!(reported["failed"].as_str().is_some_and(|why| why.contains("demo/nothing")), "{reported}");
    let reported = &stage.payloads(&id, Kind::ContextInjected)[0];
    assert!(
        reported["hooks"][0]["failed"].as_str().is_some_and(|why| why.contains("demo/nothing")),
        "{reported}"
    );
}

#[test]
fn a_hook_at_a_limit_lets_the_thread_fail() {
    let stage = Setup::new(script([call("a", "demo/none", json!({}))]).forever());
    let condition = "<condition path=\"limit_code\" value=\"turns_exceeded\"/>";
    stage.worker(&hook("limit", condition, &(param("action", "fail") + &param("error", "too long"))));
    let answer = stage.run_within("demo/work", json!({"turns": 2}));
    assert_eq!(
        (&answer["thread_status"], &answer["error"]),
        (&json!("error"), &json!("too long")),
        "{answer:#}"
    );
    // Another limit does not matter.
    let answer = stage.run_within("demo/work", json!({"tokens": 100}));
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
}

#[test]
fn a_hook_decision_is_reported_with_its_name_and_next_step() {
    for (decision, status, why) in [
        (param("action", "suspend"), "suspended", "a hook suspended the thread"),
        (param("action", "fail"), "error", "a hook made the thread fail"),
        (param("action", "escalate"), "suspended", "a hook waits for a decision"),
    ] {
        let stage = Setup::new(script([call("a", "demo/none", json!({}))]));
        stage.worker(&hook("after_step", "", &decision));
        let answer = stage.run("demo/work");
        assert_eq!((&answer["thread_status"], &answer["error"]), (&json!(status), &json!(why)), "{answer:#}");
        assert_eq!(code_of(&answer), "CB726", "{answer:#}");
        let hint = answer["metadata"]["error"]["hint"].as_str().unwrap();
        let id = id_of(&answer);
        let said = format!(
            "the hook `h` of directive demo/work decided this; continue with `cuebook thread resume {id}`"
        );
        assert_eq!(hint, said);
    }
    let stage = Setup::new(script([call("a", "demo/none", json!({}))]));
    let folder = stage.world.user().join(".ai/config/agent");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("hooks.yaml"), FILE).unwrap();
    stage.worker("");
    let answer = stage.run("demo/work");
    let hint = answer["metadata"]["error"]["hint"].as_str().unwrap();
    assert!(hint.starts_with("the hook `mine` in ") && hint.contains("hooks.yaml decided this; "), "{hint}");
}

#[test]
fn a_hook_that_suspends_at_an_error_leaves_the_way_on() {
    let stage = Setup::new(script([Reply::error(400, "no")]));
    stage.worker(&hook("error", "", &param("action", "suspend")));
    let answer = stage.run("demo/work");
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    let hint = answer["metadata"]["error"]["hint"].as_str().unwrap();
    assert!(
        hint.ends_with(&format!("then continue with `cuebook thread resume {}`", id_of(&answer))),
        "{hint}"
    );
    assert_eq!(hint.matches("thread resume").count(), 1, "the way is told once: {hint}");
}

#[test]
fn a_hook_retries_a_request_at_most_three_times() {
    let stage = Setup::new(script([Reply::error(400, "no"), Reply::error(400, "no"), returns("a", "x")]));
    let condition = "<condition path=\"classification.category\" value=\"permanent\"/>";
    stage.worker(&hook("error", condition, &param("action", "retry")));
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    assert_eq!(stage.mock.requests().len(), 3);
    stage.mock.play(script([Reply::error(400, "no")]).forever());
    let before = stage.mock.requests().len();
    let answer = stage.run("demo/work");
    assert_eq!(answer["thread_status"], "error", "{answer:#}");
    assert_eq!(stage.mock.requests().len() - before, 4, "once, and three times again");
    let account = stage.store().account(&id_of(&answer)).unwrap().unwrap();
    assert_eq!((account.spent.nanos(), account.held.nanos()), (0, 0));
}

#[test]
fn a_hook_refuses_what_is_returned_and_the_model_hears_why() {
    let stage = Setup::new(script([returns("a", "bad"), returns("b", "good")]));
    let condition = "<condition path=\"outputs.word\" value=\"bad\"/>";
    stage.worker(&hook(
        "directive_return",
        condition,
        &(param("action", "fail") + &param("error", "That word will not do.")),
    ));
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "good"}), "{answer:#}");
    assert_eq!(stage.results()[0], ("a".into(), "That word will not do.".into()));
    assert_eq!(stage.payloads(&id_of(&answer), Kind::Return).len(), 1);
}

#[test]
fn a_hook_decides_what_happens_when_the_conversation_is_full() {
    let stage = Setup::with(script([says("words").usage(5900, 10)]).forever(), Default::default(), |yaml| {
        yaml.replace("context_window: 100000", "context_window: 6000")
    });
    stage.worker(&hook(
        "context_limit_reached",
        "",
        &(param("action", "fail") + &param("error", "too much was said")),
    ));
    let answer = stage.run("demo/work");
    assert_eq!(answer["error"], "too much was said", "{answer:#}");
    assert_eq!(stage.records().len(), 1, "no other thread goes on");
}

#[test]
fn end_hooks_are_logged_after_the_end() {
    let stage = Setup::new(script([returns("a", "x")]));
    stage.tool("note", "open(project_path + '/ended', 'w').write(params['status'])\nreturn {'noted': True}");
    let action = "<action primary=\"execute\" item_type=\"tool\" item_id=\"demo/note\"><param name=\"status\">${status}</param></action>";
    stage.worker(&format!("<hooks><hook id=\"bye\" event=\"after_complete\">{action}</hook></hooks>"));
    let answer = stage.run("demo/work");
    let id = id_of(&answer);
    assert_eq!(std::fs::read_to_string(stage.world.project().join("ended")).unwrap(), "completed");
    let log = stage.log(&id);
    let last: Vec<Kind> = log[log.len() - 3..].iter().map(|event| event.kind).collect();
    assert_eq!(last, [Kind::Completed, Kind::HookStart, Kind::Hook]);
    assert_eq!(
        log.last().unwrap().payload["result"]["data"]["noted"],
        true,
        "{:#}",
        log.last().unwrap().payload
    );
    assert_eq!(stage.record(&id).status, Status::Completed);
}

const FILE: &str = "hooks:\n  - id: mine\n    event: after_step\n    action:\n      primary: execute\n      item_type: tool\n      \
                    item_id: rye/agent/threads/internal/control\n      params: {action: fail, error: not here}\n";

#[test]
fn hooks_of_the_user_hold_for_every_project() {
    let stage = Setup::new(script([call("a", "demo/none", json!({}))]).forever());
    stage.worker("");
    let folder = stage.world.user().join(".ai/config/agent");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("hooks.yaml"), FILE).unwrap();
    assert_eq!(stage.run("demo/work")["error"], "not here");
}

#[test]
fn hooks_of_a_project_must_be_signed() {
    let stage = Setup::new(script([call("a", "demo/none", json!({}))]).forever());
    stage.worker("");
    stage.world.plain(".ai/config/agent/hooks.yaml", FILE);
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "error", "{answer:#}");
    assert!(answer["metadata"]["error"]["type"].as_str().unwrap().contains("Integrity"), "{answer:#}");
    assert!(stage.records().is_empty() && stage.mock.requests().is_empty(), "nothing has begun");
    stage.world.signed("config/agent/hooks.yaml", FILE);
    assert_eq!(stage.run("demo/work")["error"], "not here");
}

#[test]
fn an_item_chosen_by_values_needs_permission() {
    let stage = Setup::new(script([call("a", "demo/none", json!({})), returns("b", "x")]));
    stage.tool("allowed", "open(project_path + '/allowed', 'w')\nreturn {}");
    let hook = |id: &str, event: &str, item: &str| {
        format!(
            "<hook id=\"{id}\" event=\"{event}\"><action primary=\"execute\" item_type=\"tool\" item_id=\"{item}\"/></hook>"
        )
    };
    let hooks = [
        hook("one", "after_step", "rye/bash/${inputs.which}"),
        hook("two", "after_step", "demo/${inputs.tool}"),
        hook("three", "after_step", "demo/allowed"),
        hook("four", "thread_started", "rye/bash/${inputs.which}"),
    ];
    let permissions = "<permissions><execute><tool>demo.*</tool></execute></permissions>";
    let inputs = "  <inputs><input name=\"which\" type=\"string\">W</input><input name=\"tool\" type=\"string\">T</input></inputs>\n";
    stage.directive(
        "work",
        &format!("{permissions}<hooks>{}</hooks>", hooks.concat()),
        &format!("{inputs}{WORD}---\nWork."),
    );
    let mut request = stage.request("demo/work", json!({}));
    request.parameters = map(json!({"which": "bash", "tool": "allowed"}));
    let answer = stage.world.engine.answer(&request, &cuebook_run::Ignore).json;
    let id = id_of(&answer);
    let ran = stage.payloads(&id, Kind::Hook);
    let error = |at: usize| ran[at]["result"]["error"].as_str().unwrap_or_default().to_owned();
    assert!(error(0).contains("Permission denied"), "{ran:#?}");
    assert_eq!((error(1), error(2)), (String::new(), String::new()), "{ran:#?}");
    assert!(stage.world.project().join("allowed").exists());
    let reported = &stage.payloads(&id, Kind::ContextInjected)[0]["hooks"][0];
    assert!(reported["nothing"].as_str().unwrap().contains("Permission denied"), "{reported}");
}

#[test]
fn a_hook_that_stops_the_thread_at_its_return_is_obeyed() {
    let stage = Setup::new(script([returns("a", "x"), returns("b", "y")]));
    let condition = "<condition path=\"outputs.word\" value=\"x\"/>";
    stage.worker(&hook(
        "directive_return",
        condition,
        &(param("action", "suspend") + &param("suspend_reason", "somebody has to look")),
    ));
    let answer = stage.run("demo/work");
    assert_eq!(
        (&answer["thread_status"], &answer["error"]),
        (&json!("suspended"), &json!("somebody has to look")),
        "{answer:#}"
    );
    assert!(stage.payloads(&id_of(&answer), Kind::Return).is_empty());
    let finished = stage.resume(&id_of(&answer), json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "y"})), "{finished:?}");
}

#[test]
fn hooks_speak_again_when_another_thread_goes_on() {
    let stage = Setup::with(
        script([call("a", "demo/none", json!({})).usage(5900, 10), returns("b", "x")]),
        Default::default(),
        |yaml| yaml.replace("context_window: 100000", "context_window: 6000"),
    );
    stage.tool("state", "return {'body': 'Half of it is done by ' + params['who']}");
    let action = "<action primary=\"execute\" item_type=\"tool\" item_id=\"demo/state\"><param name=\"who\">${previous_thread_id}</param></action>";
    stage.worker(&format!("<hooks><hook id=\"again\" event=\"thread_continued\">{action}</hook></hooks>"));
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let first = &stage.records()[0].id;
    assert!(stage.reported(1).contains(&format!("Half of it is done by {first}")), "{}", stage.reported(1));
    let reported = &stage.payloads(&id_of(&answer), Kind::ContextInjected)[0];
    assert_eq!(reported["hooks"][0]["hook"], "again", "{reported}");
}

#[test]
fn a_limit_hook_that_may_have_run_is_not_repeated() {
    let stage = Setup::new(script([call("a", "demo/none", json!({}))]).forever());
    stage.tool("note", "open(project_path + '/notes', 'a').write('x')\nreturn {'noted': True}");
    let action = "<action primary=\"execute\" item_type=\"tool\" item_id=\"demo/note\"/>";
    stage.worker(&format!("<hooks><hook id=\"tell\" event=\"limit\">{action}</hook></hooks>"));
    let notes = || std::fs::read_to_string(stage.world.project().join("notes")).unwrap_or_default().len();
    let id = id_of(&stage.run_within("demo/work", json!({"turns": 2})));
    assert_eq!((notes(), stage.payloads(&id, Kind::HookStart).len()), (1, 1));
    // As a process leaves it that dies while the hook runs.
    let store = stage.store();
    let holder = Holder::of_this_process();
    store.take(&id, &holder, &[], &Change::default()).unwrap();
    let begun = stage.payloads(&id, Kind::HookStart).remove(0);
    store.append(&id, &holder, &[Entry::new(Kind::HookStart, begun)], &Change::default()).unwrap();
    store.sweep(&|_, _| false).unwrap();
    let finished = stage.resume(&id, json!({}));
    assert_eq!(finished.status, Status::Suspended, "{finished:?}");
    assert_eq!(notes(), 1, "it was run again");
    let unknown = stage.payloads(&id, Kind::HookUnknown);
    assert_eq!((&unknown[0]["hook"], &unknown[0]["item_id"]), (&json!("tell"), &json!("demo/note")));
    let last = stage.payloads(&id, Kind::Hook).pop().unwrap();
    assert!(last["result"]["error"].as_str().unwrap().contains("was not repeated"), "{last:#}");
    // The next limit is another moment.
    let finished = stage.resume(&id, json!({"turns": 3}));
    assert_eq!((finished.status, notes()), (Status::Suspended, 2));
}
