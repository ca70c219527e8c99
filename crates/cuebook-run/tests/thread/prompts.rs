//! Prompts of other dialects that are run.

use std::collections::BTreeMap;

use cuebook::Book;
use cuebook_mock::Reply;
use cuebook_run::{Finished, Ignore, Kind, Resume, RunRequest, Status, ThreadRun};
use serde_json::json;

use crate::setup::*;

pub const FORM: &str = "---\nname: form\nmodel: mock-model\noutputs:\n  - {name: city, kind: string, required: true}\n  - {name: people, kind: integer, required: true}\n---\nuser:\nName a city.\n";

const GUIDE: &str = "# Task\nGreet.\n\n# Handbook\n```yaml section\nsummary: All rules.\nvisibility: summary\n\
                     tools: [{name: find_rule, description: Looks a rule up.}]\n```\nNever say goodbye.\n";

fn book(stage: &Setup) -> Book {
    Book::open(stage.world.project()).with_paths(true)
}

/// A prompt's file, from wherever the tests run.
pub fn path(stage: &Setup, name: &str) -> String {
    stage.world.project().join(name).to_string_lossy().into_owned()
}

fn finished(began: cuebook::Result<ThreadRun>) -> Finished {
    match began.unwrap() {
        ThreadRun::Finished(finished) => *finished,
        ThreadRun::Detached { .. } => panic!("it runs elsewhere"),
    }
}

pub fn run(stage: &Setup, request: RunRequest) -> Finished {
    finished(stage.world.engine.run(
        &book(stage),
        &RunRequest { model: Some("mock-model".into()), ..request },
        &Ignore,
    ))
}

#[test]
fn a_malformed_answer_is_asked_again_then_fails() {
    let stage = Setup::new(script([says("Dunedin"), says("{\"city\": \"Dunedin\", \"people\": 130000}")]));
    stage.world.plain("form.prompty", FORM);
    let request = RunRequest { prompt: path(&stage, "form.prompty"), ..RunRequest::default() };
    let done = run(&stage, request.clone());
    assert_eq!(done.result, Some(json!({"city": "Dunedin", "people": 130_000})), "{done:?}");
    assert!(stage.reported(1).contains("does not have the requested form"), "{}", stage.reported(1));
    assert!(
        !stage.reported(1).contains("ask the model"),
        "the hint is for developers: {}",
        stage.reported(1)
    );
    // One that was interrupted is found again by a caller that takes it up, wherever that is.
    stage.mock.play(script([says("Rome"), says("{\"city\": \"Rome\", \"people\": 2800000}")]));
    let limited = RunRequest { limit_overrides: map(json!({"turns": 1})), ..request.clone() };
    let stopped = run(&stage, limited);
    assert_eq!(stopped.status, Status::Suspended, "{stopped:?}");
    assert_eq!(
        stage.resume(&stopped.id, json!({"turns": 5})).result,
        Some(json!({"city": "Rome", "people": 2_800_000}))
    );
    stage.mock.play(script([says("no")]).forever());
    let before = stage.mock.requests().len();
    let done = run(&stage, request);
    assert_eq!(done.error.as_ref().unwrap().code(), cuebook::Code::OutputsMissing, "{done:?}");
    assert_eq!(stage.mock.requests().len() - before, 4);
}

const REVIEW: &str = "---\nname: Review\noutput:\n  verdict: {kind: string, required: true, enumValues: [accept, reject]}\n  \
                      remarks: {kind: array, items: {kind: string}}\n---\n# Task\nReview it.\n";

#[test]
fn every_declared_output_is_looked_at_by_name_and_type() {
    let stage = Setup::new(script([]));
    stage.world.plain("prompts/review.sections.md", REVIEW);
    stage.world.plain("form.prompty", FORM);
    let review = RunRequest { prompt: "review".into(), ..RunRequest::default() };
    let form = RunRequest { prompt: path(&stage, "form.prompty"), ..RunRequest::default() };
    let wrong = [
        (&review, "{}", "verdict"),
        (&review, "[1]", "JSON object"),
        (&review, "{\"verdict\": 5}", "verdict"),
        (&review, "\"maybe\"", "JSON object"),
        (&review, "{\"verdict\": \"accept\", \"remark\": []}", "remarks"),
        (&form, "{\"city\": \"Rome\"}", "people"),
        (&form, "{\"city\": \"Rome\", \"people\": \"many\"}", "people"),
        (&form, "[]", "JSON object"),
    ];
    for (request, reply, why) in wrong {
        stage.mock.play(script([says(reply)]).forever());
        let before = stage.mock.requests().len();
        let done = run(&stage, request.clone());
        assert_eq!(done.status, Status::Error, "{reply}: {done:?}");
        let error = done.error.as_ref().unwrap();
        assert_eq!(error.code(), cuebook::Code::OutputsMissing, "{reply}");
        assert!(error.diagnostic().message.contains(why), "{reply}: {}", error.diagnostic().message);
        assert_eq!(stage.mock.requests().len() - before, 4, "{reply}");
        assert!(stage.reported(before + 1).contains(why), "{reply}: {}", stage.reported(before + 1));
    }
    // What need not be given may be missing, or `null`, or among words.
    for reply in [
        "{\"verdict\": \"accept\"}",
        "{\"verdict\": \"accept\", \"remarks\": null}",
        "Well: {\"verdict\": \"accept\"}",
    ] {
        stage.mock.play(script([says("{\"verdict\": \"maybe\"}"), says(reply)]));
        let done = run(&stage, review.clone());
        assert_eq!(done.outputs, Some(json!({"verdict": "accept", "remarks": null})), "{reply}: {done:?}");
    }
}

#[test]
fn a_section_that_was_opened_stays_open_when_the_thread_goes_on() {
    let opens = || {
        Reply::call("o", "open_sections", json!({"section_keys": ["handbook"], "reason": "rules"}))
            .usage(50, 5)
    };
    let stage = Setup::new(script([opens(), says("Hello.")]));
    stage.tool("rule", "return {'rule': 'be kind'}");
    stage.world.plain("prompts/guide.sections.md", GUIDE);
    let request = RunRequest {
        prompt: "guide".into(),
        tools: BTreeMap::from([("find_rule".into(), "demo/rule".into())]),
        limit_overrides: map(json!({"turns": 1})),
        ..RunRequest::default()
    };
    let stopped = run(&stage, request);
    assert_eq!(stopped.status, Status::Suspended, "{stopped:?}");
    assert!(!stage.reported(0).contains("Never say goodbye."));
    stage.mock.play(script([Reply::call("f", "find_rule", json!({})).usage(50, 5), says("Hello.")]));
    let how = Resume { limit_overrides: map(json!({"turns": 9})), ..Resume::default() };
    let refused =
        stage.world.engine.resume_with(None, Some(&book(&stage)), &stopped.id, &how, &Ignore).unwrap_err();
    assert_eq!(refused.code(), cuebook::Code::AskAgain, "{refused}");
    assert_eq!(refused.field("capabilities"), Some(&json!(["rye.execute.tool.demo.rule"])), "{refused}");
    assert_eq!(stage.record(&stopped.id).status, Status::Suspended);
    let how = Resume { allow_again: true, ..how };
    let done =
        finished(stage.world.engine.resume_with(None, Some(&book(&stage)), &stopped.id, &how, &Ignore));
    assert_eq!(done.result, Some(json!("Hello.")), "{done:?}");
    assert!(stage.reported(1).contains("Never say goodbye."), "{}", stage.reported(1));
    assert!(stage.results().iter().any(|(_, text)| text.contains("be kind")), "{:?}", stage.results());
    let resumed = &stage.payloads(&done.id, Kind::Resumed)[0];
    assert!(resumed.get("prompt_changed").is_none(), "{resumed}");
}

#[test]
fn a_prompt_with_open_sections_goes_on_in_another_thread() {
    let opens = Reply::call("o", "open_sections", json!({"section_keys": ["handbook"], "reason": "rules"}))
        .usage(50, 5);
    let full = Reply::call("f", "find_rule", json!({})).usage(5900, 5);
    let stage = Setup::with(script([opens, full, says("Hello.")]), Default::default(), |yaml| {
        yaml.replace("context_window: 100000", "context_window: 6000")
    });
    stage.tool("rule", "return {'rule': 'be kind'}");
    stage.world.plain("prompts/guide.sections.md", GUIDE);
    let request = RunRequest {
        prompt: "guide".into(),
        tools: BTreeMap::from([("find_rule".into(), "demo/rule".into())]),
        ..RunRequest::default()
    };
    let done = run(&stage, request);
    assert_eq!(done.result, Some(json!("Hello.")), "{done:?}");
    assert_eq!(stage.records().len(), 2);
    let body = stage.mock.requests()[2].body.to_string();
    assert!(body.contains("Never say goodbye.") && body.contains("find_rule"), "{body}");
    assert_eq!(body.matches("Never say goodbye.").count(), 1, "{body}");
}

#[test]
fn tools_of_a_prompt_have_no_keys_and_run_in_its_thread() {
    let text = "---\nname: teller\nmodel: mock-model\ntools:\n  - name: look\n    kind: function\n    description: Looks.\n---\nuser:\nLook.\n";
    let (stage, key) = with_key(script([Reply::call("a", "look", json!({})).usage(9, 9), says("Done.")]));
    stage.tool("look", "import os\nreturn {'seen': os.environ.get('CARGO_MANIFEST_DIR'), 'thread': os.environ.get('RYE_PARENT_THREAD_ID')}");
    stage.world.plain("teller.prompty", text);
    let request = RunRequest {
        prompt: path(&stage, "teller.prompty"),
        tools: BTreeMap::from([("look".into(), "demo/look".into())]),
        ..RunRequest::default()
    };
    let done = run(&stage, request);
    assert_eq!(done.result, Some(json!("Done.")), "{done:?}");
    let reported = &stage.results()[0].1;
    assert!(!reported.contains(&key) && reported.contains(done.id.as_str()), "{reported}");
}

#[test]
fn an_answer_that_is_cut_off_is_no_plain_success() {
    let cut = |text: &str| says(text).finish("max_tokens");
    let stage = Setup::new(script([cut("Once upon a")]));
    stage.world.plain("tale.prompty", "---\nname: tale\nmodel: mock-model\n---\nuser:\nTell me a tale.\n");
    stage.world.plain("form.prompty", FORM);
    let request = |name: &str| RunRequest { prompt: path(&stage, name), ..RunRequest::default() };
    let done = run(&stage, request("tale.prompty"));
    // Words are worth something also if their end is missing, but a caller that reads them has to know.
    assert_eq!(
        (done.status, done.result.clone()),
        (Status::Completed, Some(json!("Once upon a"))),
        "{done:?}"
    );
    let note = done.note.as_deref().unwrap();
    assert!(note.contains("was cut off") && note.contains("4096") && note.contains("`max_output`"), "{note}");
    assert_eq!(stage.payloads(&done.id, Kind::Completed)[0]["note"], note);
    // Half a form is invalid, and a reminder would be cut off and paid for as well.
    stage.mock.play(script([cut("{\"city\": \"Dun")]).forever());
    let before = stage.mock.requests().len();
    let done = run(&stage, request("form.prompty"));
    assert_eq!(stage.mock.requests().len() - before, 1);
    let error = done.error.as_ref().unwrap();
    assert_eq!((done.status, error.code()), (Status::Error, cuebook::Code::OutputsMissing), "{done:?}");
    assert!(error.to_string().contains("was cut off"), "{error}");
    // A limit of the prompt, or of the thread, is named where it is the reason.
    let short = FORM.replace("model: mock-model", "model: {id: mock-model, options: {maxOutputTokens: 7}}");
    stage.world.plain("short.prompty", &short);
    let done = run(&stage, request("short.prompty"));
    let error = done.error.as_ref().unwrap();
    assert!(error.diagnostic().message.contains("7 tokens"), "{error}");
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("`maxOutputTokens` in the prompt"));
    let limited = RunRequest { limit_overrides: map(json!({"tokens": 500})), ..request("form.prompty") };
    let done = run(&stage, limited);
    assert!(done.error.unwrap().diagnostic().hint.as_deref().unwrap().contains("--limit tokens="));
    // What is whole is whole.
    stage.mock.play(script([cut("{\"city\": \"Rome\", \"people\": 3}")]));
    let done = run(&stage, request("form.prompty"));
    assert!(done.error.is_none() && done.note.is_none(), "{done:?}");
    // A directive that is to return something is not reminded either.
    stage.worker("");
    stage.mock.play(script([cut("First I would")]).forever());
    let before = stage.mock.requests().len();
    let answer = stage.run("demo/work");
    assert_eq!((code_of(&answer), stage.mock.requests().len() - before), ("CB725", 1), "{answer:#}");
}
