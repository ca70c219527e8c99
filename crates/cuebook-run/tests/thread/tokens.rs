//! The limit on tokens holds, because what a request reads is known before it is sent.

use cuebook_run::{Kind, Status};
use serde_json::json;

use crate::setup::*;

fn stage() -> Setup {
    let stage = Setup::new(script([
        call("a", "demo/none", json!({})).usage(2700, 40),
        call("b", "demo/none", json!({})).usage(2800, 40),
        returns("c", "x").usage(2900, 40),
    ]));
    stage.worker("");
    stage
}

#[test]
fn a_request_above_the_remaining_tokens_is_not_sent() {
    let stage = stage();
    // Behind the first answer ten are left.
    let answer = stage.run_within("demo/work", json!({"tokens": 2750}));
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    assert_eq!(stage.mock.requests().len(), 1);
    let error = &answer["metadata"]["error"];
    assert_eq!(error["limit_code"], "tokens_exceeded", "{answer:#}");
    assert_eq!((&error["current_value"], &error["current_max"]), (&json!(2740), &json!(2750)));
    assert!(answer.to_string().contains("the next request needs more than remain"), "{answer:#}");
    let needed = error["needed"].as_u64().unwrap();
    assert!(needed > 2740, "{answer:#}");
    let id = id_of(&answer);
    let limit = &stage.payloads(&id, Kind::Limit)[0];
    assert_eq!(limit["needed"], needed, "{limit}");
    let hint = answer["metadata"]["error"]["hint"].as_str().or(answer["hint"].as_str()).unwrap_or_default();
    let hint = if hint.is_empty() { answer.to_string() } else { hint.to_owned() };
    assert!(hint.contains(&format!("cuebook thread resume {id} --limit tokens=")), "{hint}");
    // The limit that it names is enough for one more answer.
    let wanted = hint.split("--limit tokens=").nth(1).unwrap();
    let wanted: u64 = wanted.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap();
    assert!(wanted >= 2740 + needed, "{wanted}");
    let finished = stage.resume(&id, json!({"tokens": wanted}));
    assert!(finished.cost.turns >= 2 && finished.cost.tokens() <= wanted, "{finished:?}");
    let finished = stage.resume(&id, json!({"tokens": 20_000}));
    assert_eq!((finished.status, finished.cost.turns), (Status::Completed, 3), "{finished:?}");
}

#[test]
fn an_answer_is_as_short_as_what_is_left() {
    let stage = stage();
    let answer = stage.run_within("demo/work", json!({"tokens": 5800}));
    let most: Vec<u64> =
        stage.mock.requests().iter().map(|request| request.body["max_tokens"].as_u64().unwrap()).collect();
    assert_eq!(most.len(), 2, "{answer:#}");
    let read = stage.payloads(&id_of(&answer), Kind::CognitionIn)[1]["tokens"].as_u64().unwrap();
    assert!(read >= 2740, "{read}");
    assert_eq!(most[1], 5800 - 2740 - read);
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
}

#[test]
fn a_prompt_above_the_token_limit_is_not_sent() {
    let stage = stage();
    let answer = stage.run_within("demo/work", json!({"tokens": 20}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "tokens_exceeded", "{answer:#}");
    assert_eq!((stage.mock.requests().len(), &answer["cost"]["input_tokens"]), (0, &json!(0)));
}
