//! What is counted when something goes wrong.

use std::time::Duration;

use cuebook_mock::{Reply, Script};
use cuebook_run::store::{Change, Holder, lives};
use cuebook_run::{Entry, Kind, Money, Status};
use serde_json::{Value as Json, json};

use crate::resume::{elsewhere, wait_for};
use crate::setup::*;

/// A stage where what fails is asked again at once.
fn persistent(script: Script, more: &str) -> Setup {
    let retry = format!("retry: {{attempts: 4, base: 0.001, max: 0.001{more}}}");
    let stage = Setup::with(script, Default::default(), |yaml| yaml.replace("retry: {attempts: 1}", &retry));
    stage.worker("");
    stage
}

fn sum(payloads: &[Json], name: &str) -> u64 {
    payloads.iter().filter_map(|payload| payload["estimated"][name].as_u64()).sum()
}

#[test]
fn repeated_crashes_do_not_extend_the_time_limit() {
    let stage = Setup::new(script([call("a", "demo/none", json!({})), returns("b", "x")]));
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 1}));
    let id = id_of(&answer);
    let before = stage.record(&id).cost.elapsed;
    for _ in 0..2 {
        // A process takes it up, works for a while, and is killed before it has an answer.
        let gone = Holder { began: u64::MAX, ..Holder::of_this_process() };
        let store = stage.store();
        store.take(&id, &gone, &[], &Change::default()).unwrap();
        std::thread::sleep(Duration::from_millis(40));
        store.append(&id, &gone, &[Entry::new(Kind::TokenDelta, json!({}))], &Change::default()).unwrap();
        assert_eq!(store.sweep(&lives).unwrap().len(), 1);
    }
    let elapsed = stage.record(&id).cost.elapsed;
    assert!(elapsed >= before + Duration::from_millis(80), "{before:?} {elapsed:?}");
    // All but nothing is left, and it is the time that was lost with the processes that stops it.
    let limit = (before + Duration::from_millis(79)).as_secs_f64();
    let finished = stage.resume(&id, json!({"turns": 9, "duration_seconds": limit}));
    assert_eq!(finished.status, Status::Suspended, "{finished:?}");
    let error = finished.error.unwrap();
    assert_eq!(error.field("limit_code"), Some(&json!("duration_seconds_exceeded")), "{error}");
    assert_eq!(stage.mock.requests().len(), 1);
    let finished = stage.resume(&id, json!({"duration_seconds": 60}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert!(finished.cost.elapsed >= elapsed);
}

#[test]
fn only_attempts_that_were_sent_count() {
    let busy = || Reply::error(503, "busy");
    let stage = persistent(script([Reply::hang_up(), busy(), Reply::hang_up(), returns("a", "x")]), "");
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let id = id_of(&answer);
    let retries = stage.payloads(&id, Kind::Retry);
    let guessed: Vec<bool> = retries.iter().map(|retry| retry["estimated"].is_object()).collect();
    assert_eq!(guessed, [true, false, true], "{retries:#?}");
    let read = sum(&retries, "input");
    assert!(read > 100, "the prompt was read twice: {read}");
    // The sum says how much of it is a guess. Turns are answers.
    let cost = stage.record(&id).cost;
    assert_eq!((cost.turns, cost.input_tokens, cost.output_tokens), (1, 100 + read, 10));
    assert_eq!(cost.estimated, read);
    assert_eq!(answer["cost"]["estimated_tokens"], json!(read), "{answer:#}");
    let spent: Money = retries.iter().map(|retry| retry["estimated"]["spend"].as_f64()).map(units).sum();
    assert!(spent > Money::ZERO);
    let account = stage.store().account(&id).unwrap().unwrap();
    let turn = units(Some(100.0 * 1e-6 + 10.0 * 10.0e-6));
    assert_eq!((account.spent, account.held), (spent + turn, Money::ZERO));
    // What was only refused costs nothing at all.
    stage.mock.play(script([busy(), Reply::error(429, "slow down"), returns("a", "x")]));
    let answer = stage.run("demo/work");
    assert_eq!(answer["cost"]["input_tokens"], 100, "{answer:#}");
    assert!(answer["cost"].get("estimated_tokens").is_none(), "{answer:#}");
}

fn units(units: Option<f64>) -> Money {
    Money::from_units(units.unwrap_or(0.0))
}

#[test]
fn an_answer_that_broke_off_counts_as_far_as_it_came() {
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let broken = Reply::text(words).pieces(10).usage(77, 20).close_after(900);
    let stage = persistent(script([broken, returns("a", "x")]), ", after_text: true");
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let retry = &stage.payloads(&id_of(&answer), Kind::Retry)[0];
    // The provider said how much was read, and only how much was written is a guess.
    assert_eq!(retry["estimated"]["input"], 77, "{retry:#}");
    let written = retry["estimated"]["output"].as_u64().unwrap();
    assert!(written > 0 && written < 80, "{retry:#}");
    assert_eq!(answer["cost"]["input_tokens"], 177, "{answer:#}");
    assert_eq!(answer["cost"]["output_tokens"], json!(10 + written), "{answer:#}");
    // It had said that it wrote one token, when it began.
    assert_eq!(answer["cost"]["estimated_tokens"], json!(written - 1), "{answer:#}");
}

#[test]
fn limits_are_looked_at_before_each_attempt() {
    let stage = persistent(script([Reply::hang_up()]).forever(), "");
    let answer = stage.run("demo/work");
    let read = stage.payloads(&id_of(&answer), Kind::Retry)[0]["estimated"]["input"].as_u64().unwrap();
    for (limits, code) in
        [(json!({"tokens": read + 20}), "tokens_exceeded"), (json!({"spend": 0.0015}), "spend_exceeded")]
    {
        let before = stage.mock.requests().len();
        let answer = stage.run_within("demo/work", limits);
        assert_eq!(answer["metadata"]["error"]["limit_code"], code, "{answer:#}");
        assert_eq!(answer["thread_status"], "suspended");
        let account = stage.store().account(&id_of(&answer)).unwrap().unwrap();
        assert!(account.spent > Money::ZERO && account.spent <= account.limit, "{account:?}");
        let attempts = stage.mock.requests().len() - before;
        assert!(attempts < 4, "{code}: it was asked {attempts} times");
    }
}

#[test]
fn an_attempt_that_follows_is_as_short_as_what_is_left() {
    let stage = persistent(script([Reply::hang_up(), returns("a", "x")]), "");
    let answer = stage.run_within("demo/work", json!({"spend": 0.01}));
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let most: Vec<u64> =
        stage.mock.requests().iter().map(|request| request.body["max_tokens"].as_u64().unwrap()).collect();
    assert!(most[1] < most[0], "{most:?}");
}

#[test]
fn a_long_pause_suspends_the_thread() {
    let busy = Reply::error(429, "slow down").header("retry-after", "3600");
    let stage = persistent(script([busy, returns("a", "x")]), "");
    let answer = stage.run("demo/work");
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    assert_eq!(stage.mock.requests().len(), 1);
    let id = id_of(&answer);
    let error = &stage.payloads(&id, Kind::Suspended)[0]["error"];
    assert!(error["message"].as_str().unwrap().contains("after 3600 seconds"), "{error:#}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("retry.max") && hint.contains(&format!("cuebook thread resume {id}")), "{hint}");
    assert_eq!(stage.record(&id).cost.tokens(), 0);
    let finished = stage.resume(&id, json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
}

#[test]
fn a_call_that_was_cut_off_is_not_made_and_not_asked_for_again() {
    let cut = |arguments: &str| {
        let first = json!({"item_type": "tool", "item_id": "demo/note", "parameters": {}});
        Reply::call("a", "rye_execute", first)
            .and_raw_call("b", "rye_execute", arguments)
            .usage(100, 4096)
            .finish("max_tokens")
    };
    for arguments in [r#"{"item_type": "tool", "item_id": "demo/no"#, "", "{}"] {
        let stage = Setup::new(script([cut(arguments), says("It goes on."), returns("c", "x")]));
        stage.tool("note", "open(project_path + '/noted', 'a').write('x')\nreturn {}").worker("");
        let answer = stage.run("demo/work");
        assert_eq!((&answer["thread_status"], code_of(&answer)), (&json!("error"), "CB725"), "{answer:#}");
        assert_eq!(stage.mock.requests().len(), 1, "{arguments}");
        let id = id_of(&answer);
        assert!(stage.payloads(&id, Kind::ToolStart).is_empty());
        assert_eq!(stage.payloads(&id, Kind::CognitionOut)[0]["cut_off"]["max_output_tokens"], 4096);
        let error = &stage.payloads(&id, Kind::Failed)[0]["error"];
        let (message, hint) = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
        assert!(message.contains("4096 tokens") && message.contains("a call of `rye_execute`"), "{message}");
        assert!(hint.contains("`max_output`") && hint.contains(&format!("resume {id}")), "{hint}");
        // A caller that wants it to go on has the whole call made, and the model hears of the other one.
        let finished = stage.resume(&id, json!({}));
        assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
        assert_eq!(std::fs::read_to_string(stage.world.project().join("noted")).unwrap(), "x");
        assert!(stage.reported(1).contains("Invalid JSON in tool arguments"), "{}", stage.reported(1));
    }
}

#[test]
fn a_limit_on_money_reports_how_to_continue() {
    let stage = Setup::new(script([returns("a", "x")]));
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"spend": 0.0001}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "spend_exceeded", "{answer:#}");
    let id = id_of(&answer);
    let error = &stage.payloads(&id, Kind::Suspended)[0]["error"];
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.starts_with("the next answer may cost about 0.0"), "{hint}");
    let (_, limit) = hint.trim_end_matches('`').split_once("--limit spend=").unwrap();
    let finished = stage.resume(&id, json!({"spend": limit.parse::<f64>().unwrap()}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
}

#[test]
fn limits_and_prices_are_in_one_currency() {
    let script = || script([returns("a", "x")]).forever();
    let stage = Setup::new(script());
    stage.worker("<limits spend=\"0.5\" spend_currency=\"EUR\" />");
    let answer = stage.run("demo/work");
    assert_eq!(code_of(&answer), "CB715", "{answer:#}");
    let text = answer.to_string();
    assert!(text.contains("prices of `mock-model` are in USD"), "{answer:#}");
    assert!(text.contains("work.md"), "it says where: {answer:#}");
    assert!(stage.mock.requests().is_empty());
    // Prices can be in any currency, and then limits that name none are in that one.
    let stage = Setup::with(script(), Default::default(), |yaml| format!("{yaml}currency: EUR\n"));
    stage.worker("<limits spend=\"0.5\" spend_currency=\"EUR\" />");
    assert_eq!(stage.run("demo/work")["status"], "success");
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"spend": 0.0001}));
    let error = &stage.payloads(&id_of(&answer), Kind::Suspended)[0]["error"];
    assert!(error["message"].as_str().unwrap().ends_with("of 0.0001 EUR"), "{error:#}");
    assert_eq!(code_of(&stage.run_within("demo/work", json!({"spend_currency": "USD"}))), "CB715");
}

#[test]
fn a_partial_answer_of_a_killed_process_counts() {
    let text = "word ".repeat(400);
    // The first words come late enough to be written down at once, and the last ones never.
    let slow = says(&text).pieces(200).first_byte_after(Duration::from_millis(700));
    let stage = Setup::new(script([slow.stall_after(4000, Duration::from_secs(60)), returns("b", "x")]));
    stage.worker("");
    let mut process = elsewhere(&stage, "demo/work");
    assert!(stage.mock.wait_for_requests(1, Duration::from_secs(60)));
    let id = stage.records()[0].id.clone();
    let come = || -> u64 {
        stage.payloads(&id, Kind::TokenDelta).iter().filter_map(|delta| delta["tokens"].as_u64()).sum()
    };
    wait_for(|| come() > 0);
    process.kill().unwrap();
    process.wait().unwrap();
    let record = stage.record(&id);
    assert_eq!((record.status, record.cost.turns), (Status::Interrupted, 0));
    let (read, come) = (record.cost.input_tokens, come());
    assert!(read > 0 && record.cost.output_tokens == come, "{record:#?}");
    assert_eq!(record.cost.estimated, read + come);
    // A dollar for a million tokens that are read, ten for those that are written.
    assert_eq!(record.cost.spend.nanos(), i64::try_from(read * 1_000 + come * 10_000).unwrap());
    let reported = &stage.payloads(&id, Kind::Interrupted)[0];
    assert_eq!(
        (&reported["estimated"]["input"], &reported["estimated"]["output"]),
        (&json!(read), &json!(come))
    );
    let finished = stage.resume(&id, json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!((finished.cost.output_tokens, finished.cost.estimated), (come + 10, read + come));
}
