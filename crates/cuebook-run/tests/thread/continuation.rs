//! Conversations that grow too long.

use cuebook_mock::Script;
use cuebook_run::{Kind, Money, Settings, Status};
use serde_json::{Value as Json, json};

use crate::setup::*;

/// A model that takes few tokens.
fn small(script: Script) -> Setup {
    Setup::with(script, Settings::default(), |yaml| {
        yaml.replace("context_window: 100000", "context_window: 6000")
    })
}

#[test]
fn a_full_conversation_continues_with_the_rest_of_its_limits() {
    let long = "word ".repeat(1500);
    let stage = small(script([
        call("a", "demo/none", json!({})).and_text("early words"),
        call("b", "demo/none", json!({"text": long.as_str()})).usage(5500, 100),
        returns("c", "x"),
    ]));
    let permissions = "<permissions><execute><tool>demo.*</tool></execute></permissions>";
    let inputs = "  <inputs><input name=\"who\" type=\"string\" required=\"true\">W</input></inputs>\n";
    stage.directive("go_on", "", &format!("{inputs}---\nGo on for {{input:who}}, in my words."));
    stage.directive(
        "work",
        &format!("{permissions}<continuation_directive>demo/go_on</continuation_directive><limits turns=\"9\" spend=\"0.5\" spawns=\"3\"/>"),
        &format!("{inputs}{WORD}---\nWork for {{input:who}}."),
    );
    let mut request = stage.request("demo/work", json!({}));
    request.parameters = map(json!({"who": "Ann"}));
    let answer = stage.world.engine.answer(&request, &cuebook_run::Ignore).json;
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let [first, second] = &stage.records()[..] else { panic!("{:#?}", stage.records()) };
    assert_eq!((first.status, second.status), (Status::Continued, Status::Completed));
    assert_eq!(first.continued_by.as_ref(), Some(&second.id));
    assert_eq!(second.continuation_of.as_ref(), Some(&first.id));
    assert_eq!(id_of(&answer), second.id);
    // Inputs, permissions and what is left of the limits.
    let launch = &stage.payloads(&second.id, Kind::Started)[0];
    assert_eq!(launch["inputs"], json!({"who": "Ann"}));
    assert_eq!(launch["limits"]["turns"], 7);
    let spent = first.cost.spend + second.cost.spend;
    assert_eq!(launch["limits"]["spend"], (Money::from_units(0.5) - first.cost.spend).to_json());
    let accounts: Vec<_> =
        [first, second].map(|record| stage.store().account(&record.id).unwrap().unwrap()).into();
    assert!(accounts.iter().all(|account| account.settled && account.held == Money::ZERO), "{accounts:?}");
    assert_eq!(accounts[0].limit + accounts[1].limit, Money::from_units(0.5), "the money was handed over");
    assert_eq!(accounts[0].spent + accounts[1].spent, spent);
    // What the model is reported: the prompt, the newest turn that fits, and the words of the directive's own.
    let reported = stage.reported(2);
    assert!(
        reported.contains("Work for Ann.") && reported.contains("Go on for Ann, in my words."),
        "{reported}"
    );
    assert!(!reported.contains("early words"), "{reported}");
    let kinds: Vec<Kind> = stage.log(&first.id).iter().rev().take(3).map(|event| event.kind).collect();
    assert_eq!(kinds, [Kind::Continued, Kind::Handoff, Kind::ContextFull]);
    // The chain can be seen from any of its threads.
    for id in [&first.id, &second.id] {
        let chain = stage.world.tool(
            "rye/agent/threads/orchestrator",
            json!({"operation": "get_chain", "thread_id": id.as_str()}),
        );
        let ids: Vec<&Json> =
            chain["data"]["chain"].as_array().unwrap().iter().map(|one| &one["thread_id"]).collect();
        assert_eq!(ids, [first.id.as_str(), second.id.as_str()], "{chain:#}");
    }
}

#[test]
fn a_chain_of_conversations_does_not_grow() {
    // Every third answer fills the conversation.
    let turn = |number: usize| {
        let used = if number % 3 == 2 { 5900 } else { 1000 };
        call(&format!("c{number}"), "demo/none", json!({"n": number, "text": "word ".repeat(200)}))
            .usage(used, 10)
    };
    let stage = small(script((0..12).map(turn).chain([returns("z", "x")])));
    stage.worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    assert_eq!(stage.records().len(), 5);
    let lengths: Vec<usize> = stage
        .records()
        .iter()
        .map(|record| stage.payloads(&record.id, Kind::Started)[0]["messages"].as_array().unwrap().len())
        .collect();
    assert!(lengths[2..].iter().all(|length| *length == lengths[2]), "{lengths:?}");
    let turns: u32 = stage.records().iter().map(|record| record.cost.turns).sum();
    assert_eq!(turns, 13);
}

#[test]
fn the_next_thread_gets_the_rest_of_every_limit() {
    let stage = small(script([call("a", "demo/none", json!({})).usage(5900, 10)]).forever());
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 3, "tokens": 100_000, "spawns": 4}));
    assert_eq!(code_of(&answer), "CB716", "{answer:#}");
    let turns: u32 = stage.records().iter().map(|record| record.cost.turns).sum();
    assert_eq!(turns, 3, "the chain as a whole");
    let answer = stage.run_within("demo/work", json!({"turns": 50, "tokens": 12_000}));
    assert_eq!(answer["metadata"]["error"]["limit_code"], "tokens_exceeded", "{answer:#}");
}

#[test]
fn a_thread_without_a_successor_waits() {
    let long = "word ".repeat(5800);
    let stage =
        small(script([call("a", "demo/none", json!({"text": long})).usage(5900, 10), returns("b", "x")]));
    stage.worker("<continuation_directive>demo/nowhere</continuation_directive>");
    let answer = stage.run("demo/work");
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    let id = id_of(&answer);
    assert_eq!(stage.records().len(), 1);
    assert_eq!(stage.record(&id).status, Status::Suspended);
    // When it is there, the thread goes on where it was.
    stage.directive("nowhere", "", "Here I am.");
    let finished = stage.resume(&id, json!({}));
    assert_eq!(finished.outputs, Some(json!({"word": "x"})), "{finished:?}");
    assert_eq!(stage.records().len(), 2);
}

#[test]
fn a_long_result_is_read_in_pieces() {
    let item = "rye/agent/threads/internal/result";
    let stage = Setup::new(script([
        call("a", "demo/long", json!({})),
        call("b", item, json!({"call_id": "a"})),
        call("c", item, json!({"call_id": "a", "offset": 8000})),
        call("d", "demo/long", json!({})),
        call("e", item, json!({"call_id": "zz"})),
        call("f", item, json!({"call_id": "a", "offset": 18_446_744_073_709_551_615_u64})),
        returns("g", "x"),
    ]));
    stage.tool("long", "return {'text': ''.join(chr(97 + i % 26) for i in range(12000))}");
    stage.worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let results = stage.results();
    assert!(results[0].1.len() < 2600 && results[0].1.contains(item), "{}", results[0].1);
    let piece = |at: usize| serde_json::from_str::<Json>(&results[at].1).unwrap()["data"].clone();
    let whole = format!("{}{}", piece(1)["text"].as_str().unwrap(), piece(2)["text"].as_str().unwrap());
    let kept = stage.payloads(&id_of(&answer), Kind::Artifact);
    assert_eq!(kept.len(), 1, "the same is kept once");
    assert_eq!(kept[0]["whole"].as_str().unwrap(), whole);
    assert!(whole.contains("\"text\":\"abcdef") && whole.len() > 12_000);
    assert_eq!((&piece(1)["next_offset"], &piece(2)["next_offset"]), (&json!(8000), &Json::Null));
    assert!(results[3].1.contains('a') && results[3].1.len() < 500, "{}", results[3].1);
    assert!(results[4].1.contains("no stored result"), "{}", results[4].1);
    assert_eq!(piece(5)["text"], "");
}
