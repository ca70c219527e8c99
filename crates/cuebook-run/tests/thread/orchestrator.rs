//! What a thread can learn about threads, and do with them.

use cuebook_run::{Kind, Status};
use serde_json::{Value as Json, json};

use crate::setup::*;

const ITEM: &str = "rye/agent/threads/orchestrator";

fn boss(stage: &Setup) {
    let permissions = "<permissions><execute><directive>demo.*</directive><tool>demo.*</tool>\
                       <tool>rye.agent.threads.orchestrator</tool></execute></permissions>";
    stage.directive("boss", permissions, "Look after them.");
    stage.worker("");
}

fn asks(id: &str, operation: &str, more: Json) -> cuebook_mock::Reply {
    let mut parameters = json!({"operation": operation});
    parameters.as_object_mut().unwrap().extend(map(more));
    call(id, ITEM, parameters)
}

fn data(result: &(String, String)) -> Json {
    serde_json::from_str::<Json>(&result.1).unwrap_or_else(|_| panic!("{}", result.1))
}

#[test]
fn a_thread_sees_only_itself_and_its_children() {
    let stage = Setup::new(script([call("x", "demo/none", json!({}))]).forever());
    boss(&stage);
    let other = id_of(&stage.run_within("demo/work", json!({"turns": 1})));
    assert_eq!(stage.record(&other).status, Status::Suspended);
    let events = stage.record(&other).last.0;
    let its = json!({"thread_id": other.as_str()});
    let operations = [
        "get_status",
        "cancel_thread",
        "resume_thread",
        "aggregate_results",
        "get_chain",
        "read_transcript",
        "wait_threads",
    ];
    let denied =
        operations.iter().enumerate().map(|(at, operation)| asks(&format!("o{at}"), operation, its.clone()));
    let search = asks("s", "chain_search", json!({"thread_id": other.as_str(), "query": "e"}));
    let nobody = asks("n", "get_status", json!({"thread_id": "no/such-1"}));
    let several = asks("m", "aggregate_results", json!({"thread_ids": [other.as_str()]}));
    stage.mock.play(script(denied.chain([search, nobody, several, says("done")])));
    let answer = stage.run("demo/boss");
    assert_eq!(answer["result"], "done", "{answer:#}");
    let results = stage.results();
    assert_eq!(results.len(), 10);
    for result in &results {
        assert!(result.1.contains("this thread did not start the thread"), "{result:?}");
    }
    assert_eq!(
        (stage.record(&other).status, stage.record(&other).last.0),
        (Status::Suspended, events),
        "untouched"
    );
    // A caller that is no thread sees all of them.
    let seen = stage.world.tool(ITEM, json!({"operation": "get_status", "thread_id": other.as_str()}));
    assert_eq!(seen["data"]["status"], "suspended");
}

#[test]
fn a_thread_looks_after_those_that_it_started() {
    let stage = Setup::new(script([
        spawn("p", "demo/work", json!({})),
        returns("c", "x"),
        asks("l", "list_active", json!({})),
        says("done"),
    ]));
    boss(&stage);
    let other = stage.run_within("demo/work", json!({"turns": 0}));
    assert_eq!(other["thread_status"], "suspended");
    let answer = stage.run("demo/boss");
    assert_eq!(answer["result"], "done", "{answer:#}");
    let listed = data(&stage.results()[1]);
    assert_eq!(
        listed["data"]["threads"],
        json!([]),
        "itself is not below itself, and its child has ended: {listed:#}"
    );
    let (boss, child) = (id_of(&answer), stage.records()[2].id.clone());
    assert_eq!(stage.record(&child).parent, Some(boss));
}

#[test]
fn a_parent_can_read_the_log_of_its_child() {
    let stage =
        Setup::new(script([spawn("p", "demo/work", json!({})), returns("c", "x")]).text("first").forever());
    boss(&stage);
    // The child's name is known only when it has begun, so the model says it in a second run of the same thread.
    let answer = stage.run_within("demo/boss", json!({"turns": 1}));
    assert_eq!(answer["thread_status"], "suspended", "{answer:#}");
    let child = stage.records()[1].id.clone();
    let its = json!({"thread_id": child.as_str()});
    stage.mock.play(script([
        asks("a", "get_status", its.clone()),
        asks("b", "read_transcript", its.clone()),
        asks("c", "aggregate_results", json!({"thread_ids": [child.as_str()]})),
        asks("d", "wait_threads", json!({"thread_ids": [child.as_str()], "timeout": 5})),
        asks("e", "cancel_thread", its),
        asks("f", "wait_threads", json!({"thread_id": answer["thread_id"]})),
        asks("g", "get_stats", json!({})),
        says("done"),
    ]));
    let finished = stage.resume(&id_of(&answer), json!({"turns": 20}));
    assert_eq!(finished.result, Some(json!("done")), "{finished:?}");
    let results = stage.results();
    let reported = |id: &str| data(results.iter().find(|(call, _)| call == id).unwrap())["data"].clone();
    assert_eq!(reported("a")["status"], "completed");
    assert!(results[2].1.contains("thread_started"), "{}", results[2].1);
    assert_eq!(reported("c")["results"][child.as_str()]["result"]["outputs"], json!({"word": "x"}));
    assert_eq!(reported("d")["results"][child.as_str()]["status"], "completed");
    assert!(results[5].1.contains("has ended") || results[5].1.contains("completed"), "{}", results[5].1);
    assert_eq!(data(&results[5])["status"], "error", "what has ended stays as it is: {}", results[5].1);
    assert!(results[6].1.contains("cannot wait for itself"), "{}", results[6].1);
    assert!(results[7].1.contains("get_status"), "{}", results[7].1);
    assert!(stage.payloads(&child, Kind::Cancelled).is_empty());
}

#[test]
fn an_argument_of_the_wrong_type_is_refused() {
    let stage = Setup::new(script([]));
    for (arguments, wanted) in [
        (
            json!({"operation": "run_prompt", "prompt": "p", "variables": [1]}),
            "`variables` must be an object, not a list",
        ),
        (
            json!({"operation": "run_prompt", "prompt": "p", "async": "yes"}),
            "`async` must be true or false, not a string",
        ),
        (
            json!({"operation": "wait_threads", "thread_ids": [], "timeout": "soon"}),
            "`timeout` must be a number of seconds, 0 or more, not a string",
        ),
        (
            json!({"operation": "wait_threads", "thread_ids": [], "timeout": -1}),
            "`timeout` must be a number of seconds, 0 or more, not -1",
        ),
        (
            json!({"operation": "wait_threads", "thread_ids": "x"}),
            "`thread_ids` must be a list of strings, not a string",
        ),
        (
            json!({"operation": "aggregate_results", "thread_ids": ["x", 3]}),
            "`thread_ids` must be a list of strings, not [\"x\",3]",
        ),
        (json!({"operation": 3}), "`operation` must be a string, not an integer"),
        (json!({}), "the parameter `operation` is missing"),
    ] {
        let answer = stage.world.tool(ITEM, arguments);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(wanted)), "{answer:#}");
    }
}

#[test]
fn unknown_parameters_of_operations_are_refused() {
    let stage = Setup::new(script([says("no")]).forever());
    std::fs::create_dir_all(stage.world.project().join("prompts")).unwrap();
    std::fs::write(
        stage.world.project().join("prompts/hello.prompty"),
        "---\nname: hello\ninputs:\n  who: {kind: string, required: true}\n---\nuser:\nHi {{who}}\n",
    )
    .unwrap();
    let run = |more: Json| {
        let mut given = json!({"operation": "run_prompt", "prompt": "hello", "model": "mock-model"});
        given.as_object_mut().unwrap().extend(map(more));
        stage.world.tool(ITEM, given)
    };
    for (answer, wanted, hint) in [
        (run(json!({"modell": "aa"})), "the operation `run_prompt` has no parameter `modell`", "`model`"),
        (
            run(json!({"limitz": 3})),
            "the operation `run_prompt` has no parameter `limitz`",
            "limit_overrides",
        ),
        (
            stage.world.tool(ITEM, json!({"operation": "list_active", "thread_id": "x"})),
            "the operation `list_active` has no parameter `thread_id`",
            "`list_active` takes no parameters",
        ),
        (run(json!({})), "the required variable `who` is missing", "give `who` a value"),
    ] {
        assert_eq!(answer["status"], "error", "{answer:#}");
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(wanted)), "{answer:#}");
        assert!(answer.to_string().contains(hint), "{answer:#}");
    }
    assert!(stage.records().is_empty(), "none of them began a thread");
}
