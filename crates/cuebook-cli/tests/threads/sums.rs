//! What threads cost, as people are reported it.

use cuebook_mock::{Api, Reply, Script};
use serde_json::json;

use crate::greeting::{GREET, PARENT, THREADED, stage};
use crate::setup::{Setup, err, out, returned, shell};

#[test]
fn a_conversation_of_two_threads_is_shown_as_one() {
    let replies = || Script::new().reply(shell("true").usage(5500, 100)).reply(returned("Hi"));
    let stage = stage(replies());
    let yaml =
        stage.mock.provider_yaml(Api::Anthropic).replace("context_window: 100000", "context_window: 6000");
    stage.project.write("home/.ai/config/providers/mock.yaml", yaml);
    let output = stage.threaded(&[]);
    assert!(output.status.success(), "{}", err(&output));
    let said = err(&output);
    let last = said.lines().last().unwrap();
    // 5,600 tokens, and 120.
    assert!(
        last.contains("; 2 turns, 5,720 tokens, 0.0068 spent") && last.ends_with(", in 2 threads"),
        "{said}"
    );
    let second = stage.id();
    let first = stage.newest()["continuation_of"].as_str().unwrap().to_owned();
    for (id, own) in
        [(&first, "; 1 turn, 5,600 tokens, 0.0065 spent"), (&second, "; 1 turn, 120 tokens, 0.0003 spent")]
    {
        let shown = out(&stage.run(&["thread", "show", id]));
        assert!(shown.lines().next().unwrap().contains(own), "{shown}");
        assert!(shown.contains("\nconversation: 2 turns, 5,720 tokens, 0.0068 spent, "), "{shown}");
    }
    let shown = out(&stage.run(&["thread", "show", &first]));
    let money = "money: 0.0065 of 0.50 spent, 0.00 by children, 0.4935 passed to the next thread";
    assert!(shown.contains(money), "{shown}");
    let json = stage.json(&["thread", "show", &second]);
    assert_eq!(json["conversation"]["threads"], json!([first, second]), "{json:#}");
    assert_eq!((&json["cost"]["turns"], &json["conversation"]["turns"]), (&json!(1), &json!(2)));
    stage.mock.play(replies());
    let output = stage.threaded(&["--json"]);
    let answer: serde_json::Value = serde_json::from_str(out(&output).lines().last().unwrap()).unwrap();
    assert_eq!((&answer["cost"]["turns"], &answer["cost"]["threads"]), (&json!(2), &json!(2)), "{answer:#}");
}

#[test]
fn the_spend_of_an_open_child_is_reported_with_its_parent() {
    let parent = GREET
        .replace("name=\"greet\"", "name=\"lead\"")
        .replace("<tool>rye.bash.bash</tool>", "<tool>rye.bash.bash</tool><directive>demo.*</directive>");
    let spawn = json!({
        "item_type": "directive", "item_id": "demo/greet", "parameters": {"user": "Bob"}, "thread": true,
        "limit_overrides": {"turns": 1, "spend": 0.2},
    });
    let script = Script::new()
        .reply(Reply::call("s", "rye_execute", spawn).usage(100, 20))
        .reply(shell("true").usage(3000, 100))
        .reply(returned("Hi"));
    let files = [(".ai/directives/demo/greet.md", GREET), (".ai/directives/demo/lead.md", parent.as_str())];
    let stage = Setup::new(script, &files);
    let mut args = THREADED;
    args[2] = "demo/lead";
    let output = stage.run(&args);
    assert!(output.status.success(), "{}", err(&output));
    // Two answers at 0.0003, and the child's at 0.004.
    assert!(err(&output).lines().last().unwrap().contains(", 0.0046 spent, "), "{}", err(&output));
    let shown = out(&stage.run(&["thread", "show", "lead"]));
    let money = "money: 0.0046 of 0.50 spent, 0.004 by children, 0.196 reserved for children, 0.2994 left";
    assert!(shown.contains(money), "{shown}");
    let listed = out(&stage.run(&["thread", "list", "--prompt", "demo/lead"]));
    assert!(listed.contains("0.0046"), "{listed}");
}

#[test]
fn unknown_spending_is_shown_as_unknown() {
    let leaf = PARENT
        .replace("name=\"parent\"", "name=\"leaf\"")
        .replace("</directive>\n```", "  <outputs><output name=\"greeting\" type=\"string\">What was said</output></outputs>\n</directive>\n```");
    let spawn = json!({
        "item_type": "directive", "item_id": "demo/leaf", "parameters": {}, "thread": true, "model": "free-model",
    });
    let script = Script::new()
        .reply(Reply::call("s", "rye_execute", spawn).usage(100, 20))
        .reply(returned("Hi").usage(3000, 100))
        .reply(Reply::text("Done.").usage(100, 20));
    let files = [(".ai/directives/demo/leaf.md", leaf.as_str()), (".ai/directives/demo/parent.md", PARENT)];
    let stage = Setup::new(script, &files);
    let free = "models:\n  free-model:\n    context_window: 100000\n    max_output: 4096\n";
    let yaml = stage.mock.provider_yaml(Api::Anthropic).replace("models:\n", free);
    stage.project.write("home/.ai/config/providers/mock.yaml", yaml);
    let output = stage.run(&["execute", "directive", "demo/parent", "--thread"]);
    assert!(output.status.success(), "{}", err(&output));
    // Two answers at 0.0003, and one that is unknown the price of.
    let said = err(&output);
    assert!(said.lines().last().unwrap().contains(", at least 0.0006 spent, "), "{said}");
    let list = out(&stage.run(&["thread", "list"]));
    let rows: Vec<&str> = list.lines().collect();
    assert!(rows[0].contains("3,100 tokens  not known ") && rows[0].contains("demo/leaf/"), "{list}");
    assert!(rows[1].contains("240 tokens   ≥ 0.0006 ") && rows[1].contains("demo/parent/"), "{list}");
    let listed = stage.json(&["thread", "list"]);
    let known: Vec<_> =
        listed.as_array().unwrap().iter().map(|thread| &thread["cost"]["spend_known"]).collect();
    assert_eq!(known, [false, false], "{listed:#}");
    for (name, spent, money) in [
        ("leaf", ", cost unknown, ", "money: cost unknown, so the limit of "),
        (
            "parent",
            ", at least 0.0006 spent, ",
            "money: at least 0.0006 of 1.00 spent, 0.00 by children, at most 0.9994 left",
        ),
    ] {
        let shown = out(&stage.run(&["thread", "show", name]));
        assert!(shown.lines().next().unwrap().contains(spent) && shown.contains(money), "{shown}");
        let json = stage.json(&["thread", "show", name]);
        assert_eq!(json["cost"]["spend_known"], false, "{json:#}");
        assert_eq!(json["result"]["cost"]["spend_known"], false, "{json:#}");
    }
}
