//! What an answer says that everything cost.

use cuebook_run::{Money, Settings, Status};
use serde_json::json;

use crate::setup::*;

#[test]
fn an_answer_has_the_cost_of_the_whole_conversation() {
    let script = script([
        call("a", "demo/none", json!({})).usage(1000, 10),
        call("b", "demo/none", json!({})).usage(5500, 100),
        returns("c", "x").usage(700, 30),
    ]);
    let stage = Setup::with(script, Settings::default(), |yaml| {
        yaml.replace("context_window: 100000", "context_window: 6000")
    });
    stage.worker("");
    let answer = stage.run("demo/work");
    let [first, second] = &stage.records()[..] else { panic!("{:#?}", stage.records()) };
    let cost = &answer["cost"];
    assert_eq!((&cost["turns"], &cost["threads"]), (&json!(3), &json!(2)), "{answer:#}");
    assert_eq!((&cost["input_tokens"], &cost["output_tokens"]), (&json!(7200), &json!(140)), "{answer:#}");
    assert_eq!(cost["spend"], (first.cost.spend + second.cost.spend).to_json());
    // Each thread has its own.
    assert_eq!((first.cost.turns, second.cost.turns), (2, 1));
    assert_eq!(second.result.as_ref().unwrap()["cost"]["turns"], 1);
}

#[test]
fn the_spend_of_a_waiting_child_is_reported() {
    let stage = Setup::new(script([
        spawn("s", "demo/kid", json!({"limit_overrides": {"turns": 1}})),
        call("k", "demo/none", json!({})).usage(2000, 20),
        returns("r", "x"),
    ]));
    let permissions =
        "<permissions><execute><tool>demo.*</tool><directive>demo.*</directive></execute></permissions>";
    stage.directive("kid", permissions, &format!("{WORD}---\nBe small."));
    stage.directive("work", permissions, &format!("{WORD}---\nWork."));
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let [root, kid] = &stage.records()[..] else { panic!("{:#?}", stage.records()) };
    assert_eq!((root.status, kid.status), (Status::Completed, Status::Suspended));
    assert!(kid.cost.spend > Money::ZERO);
    assert_eq!(answer["cost"]["children_spend"], kid.cost.spend.to_json(), "{answer:#}");
    // The ledger has not settled it: it may yet spend what is reserved for it.
    let account = stage.store().account(&root.id).unwrap().unwrap();
    assert_eq!(account.children, Money::ZERO);
    assert!(account.reserved > kid.cost.spend && !account.settled, "{account:?}");
}
