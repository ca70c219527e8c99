//! What a model, a tool or a project must not get to.

use cuebook_mock::Reply;
use cuebook_run::Kind;
use serde_json::{Value as Json, json};

use crate::setup::*;

#[test]
fn tools_see_no_provider_keys() {
    let (stage, key) = with_key(script([call("a", "demo/look", json!({})), returns("b", "x")]));
    // The tool knows the key from elsewhere, and prints it wherever it can.
    let code = format!(
        "import os, sys\nsys.stderr.write({key:?})\nreturn {{'seen': os.environ.get('CARGO_MANIFEST_DIR'), 'known': 'a' + {key:?} + 'b', {key:?}: 1}}"
    );
    stage.tool("look", &code).worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let reported = &stage.results()[0].1;
    let reported: Json = serde_json::from_str(reported).unwrap();
    assert_eq!(
        (&reported["data"]["seen"], &reported["data"]["known"]),
        (&Json::Null, &json!("a[secret]b")),
        "{reported:#}"
    );
    for event in stage.log(&id_of(&answer)) {
        assert!(!event.text.contains(&key), "{} {}", event.kind, event.text);
    }
    // A tool that the user runs does not see what it does not declare either.
    assert_eq!(stage.world.tool("demo/look", json!({}))["data"]["seen"], Json::Null);
}

#[test]
fn a_model_that_says_a_key_does_not_have_it_written_down() {
    let (stage, key) = with_key(script([]));
    stage.mock.play(script([returns("a", &format!("the key is {key}"))]));
    stage.worker("");
    let answer = stage.run("demo/work");
    let log = stage.log(&id_of(&answer));
    assert!(log.iter().all(|event| !event.text.contains(&key)), "{answer:#}");
    assert!(!stage.record(&id_of(&answer)).to_json().to_string().contains(&key));
}

#[test]
fn a_model_stays_in_its_project() {
    let elsewhere = Setup::new(script([]));
    elsewhere.tool("here", "open(project_path + '/oops', 'w')\nreturn {}");
    let stage = Setup::new(script([]));
    stage.tool("here", "return {'where': project_path}").worker("");
    let other = elsewhere.world.project();
    let arguments =
        json!({"item_type": "tool", "item_id": "demo/here", "project_path": other, "parameters": {}});
    stage.mock.play(script([Reply::call("a", "rye_execute", arguments).usage(100, 10), returns("b", "x")]));
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    assert!(stage.results()[0].1.contains(stage.world.project().to_str().unwrap()), "{:?}", stage.results());
    assert!(!other.join("oops").exists());
}

#[test]
fn a_model_copies_items_into_its_project_only() {
    let copy = |id: &str, to: &str| {
        let arguments =
            json!({"item_type": "tool", "item_id": "rye/bash/bash", "source": "system", "destination": to});
        Reply::call(id, "rye_load", arguments).usage(100, 10)
    };
    let stage = Setup::new(script([copy("a", "user"), copy("b", "project"), returns("c", "x")]));
    let permissions = "<permissions><load><tool>*</tool></load></permissions>";
    stage.directive("work", permissions, &format!("{WORD}---\nWork."));
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    assert_eq!(stage.payloads(&id_of(&answer), Kind::Denied).len(), 1);
    assert!(!stage.world.user().join(".ai/tools/rye").exists());
    assert!(stage.world.project().join(".ai/tools/rye/bash").exists(), "{:?}", stage.results());
}

#[test]
fn ids_with_tricks_in_them_run_nothing() {
    let ids = [
        "demo/../rye/bash/bash",
        "demo//x",
        "/demo/x",
        "demo/./x",
        "demo\\x",
        "demo/x\u{0}",
        "demo/\n",
        "",
        "demo/",
        "../demo/x",
        "demo/*",
        "demo/%2e%2e/x",
        "DEMO/x",
        " demo/x",
        "demo/x.py",
    ];
    let calls = ids.iter().enumerate().map(|(at, id)| call(&format!("c{at}"), id, json!({})));
    let stage = Setup::new(script(calls.chain([returns("z", "x")])));
    stage.tool("x", "open(project_path + '/oops', 'w')\nreturn {}").worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 50}));
    assert_eq!(answer["status"], "success", "{answer:#}");
    assert!(!stage.world.project().join("oops").exists());
    let results = stage.results();
    assert_eq!(results.len(), ids.len());
    for (result, id) in results.iter().zip(ids) {
        assert!(result.1.contains("error"), "{id:?}: {result:?}");
    }
}

#[test]
fn arguments_of_any_kind_are_answered_and_break_nothing() {
    let odd = [
        json!({}),
        json!({"item_type": 3, "item_id": []}),
        json!({"item_type": "tool"}),
        json!({"item_id": "demo/x"}),
        json!({"item_type": "tool", "item_id": "demo/x", "parameters": "text"}),
        json!({"item_type": "tool", "item_id": "demo/x", "nonsense": 1}),
        json!({"item_type": "directive", "item_id": "demo/work", "thread": "yes"}),
    ];
    let mut replies: Vec<Reply> = odd
        .iter()
        .enumerate()
        .map(|(at, arguments)| Reply::call(format!("c{at}"), "rye_execute", arguments.clone()).usage(9, 9))
        .collect();
    replies.push(Reply::default().and_raw_call("r1", "rye_execute", "{\"item_type\": ").usage(9, 9));
    replies.push(Reply::call("u", "rm_rf", json!({})).usage(9, 9));
    replies.push(Reply::call("s", "rye_search", json!({"scope": "tool", "query": ""})).usage(9, 9));
    replies.push(Reply::call("d", "directive_return", json!({"word": {"deep": [1]}})).usage(9, 9));
    replies.push(returns("z", "x"));
    let stage = Setup::new(script(replies));
    stage.worker("");
    let answer = stage.run_within("demo/work", json!({"turns": 50}));
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    assert_eq!(stage.results().len(), odd.len() + 4);
    let denied = stage.payloads(&id_of(&answer), Kind::Denied);
    assert!(
        denied.iter().any(|event| event["tool"] == "rm_rf")
            && denied.iter().any(|event| event["tool"] == "rye_search"),
        "{denied:#?}"
    );
}

#[test]
fn calls_next_to_a_return_run_and_the_first_return_counts() {
    let both = Reply::call("a", "directive_return", json!({"word": "x"}))
        .and_call("b", "rye_execute", json!({"item_type": "tool", "item_id": "demo/note", "parameters": {}}))
        .and_call("c", "directive_return", json!({"word": "y"}))
        .usage(100, 10);
    let stage = Setup::new(script([both]));
    stage.tool("note", "open(project_path + '/noted', 'w')\nreturn {}").worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    assert!(stage.world.project().join("noted").exists());
    assert_eq!(stage.payloads(&id_of(&answer), Kind::ToolResult).len(), 3, "nothing is left open");
    assert_eq!(stage.mock.requests().len(), 1);
}

#[test]
fn a_directive_without_permissions_can_do_nothing_but_return() {
    let stage = Setup::new(script([call("a", "demo/x", json!({})), returns("b", "x")]));
    stage.tool("x", "open(project_path + '/oops', 'w')\nreturn {}");
    stage.directive("work", "", &format!("{WORD}---\nWork."));
    let answer = stage.run("demo/work");
    assert_eq!(answer["status"], "success", "{answer:#}");
    let tools: Vec<Json> = stage.mock.requests()[0].body["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    // The prompt says how to return with the first, too.
    assert_eq!(tools, ["rye_execute", "directive_return"]);
    assert_eq!(stage.payloads(&id_of(&answer), Kind::Denied).len(), 1);
    assert!(!stage.world.project().join("oops").exists());
}
