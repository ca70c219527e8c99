//! Answers that are not whole: paused, ended for a reason that is unknown, or empty.

use cuebook::Code;
use cuebook_mock::Reply;
use cuebook_run::{Finished, Kind, RunRequest, Settings, Status};
use serde_json::json;

use crate::prompts::{FORM, path, run};
use crate::setup::*;

const TALE: &str = "---\nname: tale\nmodel: mock-model\n---\nuser:\nTell me a tale.\n";

fn tale(stage: &Setup) -> Finished {
    stage.world.plain("tale.prompty", TALE);
    run(stage, RunRequest { prompt: path(stage, "tale.prompty"), ..RunRequest::default() })
}

fn form(stage: &Setup) -> Finished {
    stage.world.plain("form.prompty", FORM);
    run(stage, RunRequest { prompt: path(stage, "form.prompty"), ..RunRequest::default() })
}

#[test]
fn a_turn_that_is_paused_is_sent_again_as_it_is_and_goes_on() {
    let paused = |text: &str| says(text).finish("pause_turn");
    for stream in ["stream: true\n", "stream: false\n"] {
        let replies = script([paused("Once upon "), paused("a time "), says("it ended.")]);
        let stage = Setup::with(replies, Settings::default(), |yaml| format!("{yaml}{stream}"));
        let done = tale(&stage);
        assert_eq!(done.result, Some(json!("Once upon a time it ended.")), "{done:?}");
        assert_eq!((done.status, done.note.as_deref(), done.cost.turns), (Status::Completed, None, 3));
        let sent = stage.mock.requests()[2].body["messages"].clone();
        assert_eq!(sent.as_array().unwrap().len(), 3, "{sent:#}");
        assert_eq!(
            sent[1],
            json!({"role": "assistant", "content": [{"type": "text", "text": "Once upon "}]}),
            "{sent:#}"
        );
        assert_eq!(sent[2]["content"][0]["text"], "a time ");
    }
}

#[test]
fn results_of_provider_tools_return_with_a_paused_turn() {
    let blocks = json!([
        {"type": "text", "text": "I look."},
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "tales"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
    ]);
    let whole = json!({"id": "m", "type": "message", "role": "assistant", "model": "mock-model", "content": blocks,
        "stop_reason": "pause_turn", "usage": {"input_tokens": 9, "output_tokens": 9}});
    let mut events = vec![json!({"type": "message_start", "message": {"usage": {"input_tokens": 9}}})];
    for (index, block) in blocks.as_array().unwrap().iter().enumerate() {
        let (mut start, delta) = (
            block.clone(),
            match block["type"].as_str().unwrap() {
                "text" => json!({"type": "text_delta", "text": "I look."}),
                _ => json!({"type": "input_json_delta", "partial_json": "{\"query\": \"tales\"}"}),
            },
        );
        match block["type"].as_str().unwrap() {
            "text" => start["text"] = json!(""),
            "server_tool_use" => start["input"] = json!({}),
            _ => {}
        }
        events.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        if block["type"] != "web_search_tool_result" {
            events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        }
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": "pause_turn"}, "usage": {"output_tokens": 9}}));
    events.push(json!({"type": "message_stop"}));
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    for reply in [Reply::status(200, whole), Reply::raw(200, "text/event-stream", events)] {
        let stage = Setup::new(script([reply, says(" Found.")]));
        let done = tale(&stage);
        assert_eq!(done.result, Some(json!("I look. Found.")), "{done:?}");
        assert_eq!(stage.mock.requests()[1].body["messages"][1]["content"], blocks);
    }
}

#[test]
fn a_pausing_model_stops_at_the_limit_on_turns() {
    let stage = Setup::new(script([says("and ").finish("pause_turn")]).forever());
    stage.world.plain("tale.prompty", TALE);
    let request = RunRequest {
        prompt: path(&stage, "tale.prompty"),
        limit_overrides: map(json!({"turns": 3})),
        ..RunRequest::default()
    };
    let stopped = run(&stage, request);
    assert_eq!((stopped.status, stage.mock.requests().len()), (Status::Suspended, 3), "{stopped:?}");
    stage.mock.play(script([says("done.")]));
    let done = stage.resume(&stopped.id, json!({"turns": 9}));
    assert_eq!(done.result, Some(json!("and and and done.")), "{done:?}");
    // The model continues without a message.
    assert_eq!(stage.mock.requests()[3].body["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn an_unknown_reason_is_reported_with_the_answer() {
    let stage = Setup::new(script([says("Once upon a").finish("OTHER")]));
    let done = tale(&stage);
    assert_eq!(
        (done.status, done.result.clone()),
        (Status::Completed, Some(json!("Once upon a"))),
        "{done:?}"
    );
    let note = done.note.as_deref().unwrap();
    assert!(note.contains("may be incomplete") && note.contains("`OTHER`"), "{note}");
    assert_eq!(stage.payloads(&done.id, Kind::Completed)[0]["note"], note);
    // What was to have a form is not reminded, and what has it is taken.
    stage.mock.play(script([says("{\"city\": \"Dun").finish("OTHER")]).forever());
    let before = stage.mock.requests().len();
    let done = form(&stage);
    assert_eq!(stage.mock.requests().len() - before, 1);
    let error = done.error.as_ref().unwrap();
    assert_eq!(error.code(), Code::OutputsMissing, "{error}");
    assert!(error.to_string().contains("`OTHER`"), "{error}");
    stage.mock.play(script([says("{\"city\": \"Rome\", \"people\": 3}").finish("OTHER")]));
    assert!(form(&stage).error.is_none());
    // Calls are made, and the log says what is strange about them.
    stage.tool("look", "return {'seen': 1}");
    stage.worker("");
    stage.mock.play(script([call("a", "demo/look", json!({})).finish("odd"), returns("b", "x")]));
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"]["word"], "x", "{answer:#}");
    let said = stage.payloads(&id_of(&answer), Kind::CognitionOut);
    assert!(said[0]["note"].as_str().unwrap().contains("`odd`"), "{said:#?}");
    assert!(said[1].get("note").is_none());
}

#[test]
fn a_full_window_is_not_cured_by_longer_answers() {
    let full = |text: &str| says(text).finish("model_context_window_exceeded");
    let stage = Setup::new(script([full("Once upon a")]));
    let note = tale(&stage).note.unwrap();
    assert!(note.contains("window") && note.contains("100000") && !note.contains("max_output"), "{note}");
}

#[test]
fn an_answer_without_content_is_no_success() {
    for replies in
        [vec![says(""), says(" \n"), says("Hello.")], vec![says("").thinking("Hm."), says("Hello.")]]
    {
        let stage = Setup::with(script(replies), Settings::default(), |yaml| {
            yaml.replace("retry: {attempts: 1}", "retry: {attempts: 3, base: 0.001}")
        });
        let done = tale(&stage);
        assert_eq!(done.result, Some(json!("Hello.")), "{done:?}");
        let retries = stage.payloads(&done.id, Kind::Retry);
        assert!(retries[0]["error"].as_str().unwrap().contains("is empty"), "{retries:?}");
        // It was read, and is paid for.
        assert_eq!(done.cost.input_tokens, 100 * stage.mock.requests().len() as u64, "{done:?}");
    }
    let stage = Setup::new(script([says("")]).forever());
    let done = tale(&stage);
    let error = done.error.as_ref().unwrap();
    assert_eq!(
        (done.status, error.code(), done.cost.input_tokens),
        (Status::Error, Code::NoAnswer, 100),
        "{done:?}"
    );
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("--model"), "{error}");
    // One that used up its tokens on thoughts says so.
    stage.mock.play(script([says("").thinking("Hm.").finish("max_tokens")]));
    assert!(tale(&stage).note.unwrap().contains("was cut off"));
}

#[test]
fn the_model_of_a_directive_is_still_asked_to_continue() {
    let stage = Setup::new(script([says(""), returns("a", "x")]));
    stage.worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"]["word"], "x", "{answer:#}");
    stage.directive("talk", "", "Talk.");
    stage.mock.play(script([says("")]).forever());
    let answer = stage.run("demo/talk");
    assert!(answer["note"].as_str().unwrap().contains("last answer is empty"), "{answer:#}");
}

#[test]
fn a_model_without_a_price_has_an_unknown_cost() {
    let stage = Setup::with(script([says("Once.")]), Settings::default(), |yaml| {
        yaml.lines().filter(|line| !line.contains("price")).map(|line| format!("{line}\n")).collect()
    });
    let done = tale(&stage);
    assert!(done.cost.unpriced && done.error.is_none(), "{done:?}");
    assert_eq!(done.to_json()["cost"]["spend_known"], false);
    let first = &stage.payloads(&done.id, Kind::Started)[0];
    assert_eq!(first["unpriced"], true);
    let note = "the price of `mock-model` is unknown, so its cost is not counted and the limit `spend` has no effect";
    assert_eq!(first["notes"], json!([note]));
    let priced = tale(&Setup::new(script([says("Once.")])));
    assert!(!priced.cost.unpriced && priced.to_json()["cost"].get("spend_known").is_none());
}
