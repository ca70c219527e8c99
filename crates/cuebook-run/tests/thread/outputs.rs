//! What a directive is to return, and how a model hands it in.

use cuebook_mock::Reply;
use cuebook_run::Kind;
use serde_json::json;

use crate::setup::*;

#[test]
fn the_first_valid_return_of_an_answer_counts() {
    let answer = Reply::call("wrong", "directive_return", json!({"word": 7}))
        .and_call("first", "directive_return", json!({"word": "x"}))
        .and_call("second", "directive_return", json!({"word": "y"}))
        .and_call("third", "directive_return", json!({"status": "error", "error_detail": "no"}))
        .usage(100, 10);
    let stage = Setup::new(script([answer]));
    stage.worker("");
    let answer = stage.run("demo/work");
    assert_eq!(answer["outputs"], json!({"word": "x"}), "{answer:#}");
    let id = id_of(&answer);
    assert_eq!(stage.payloads(&id, Kind::Return).len(), 1);
    let results = stage.payloads(&id, Kind::ToolResult);
    let of = |call: &str| {
        results.iter().find(|result| result["call_id"] == call).unwrap_or_else(|| panic!("{results:#?}"))
    };
    assert_eq!((&of("first")["result"], &of("first")["is_error"]), (&json!("Returned."), &json!(false)));
    for call in ["second", "third"] {
        assert!(of(call)["result"].as_str().unwrap().contains("has returned already"), "{results:#?}");
        assert_eq!(of(call)["is_error"], true);
    }
    assert!(of("wrong")["result"].as_str().unwrap().contains("must be of type string"));
}

#[test]
fn an_output_with_two_types_keeps_a_directive_from_beginning() {
    let stage = Setup::new(script([returns("a", "x")]));
    let outputs = "  <outputs><output name=\"word\" type=\"string\"/>\n<output name=\"word\" type=\"integer\"/></outputs>\n";
    stage.directive("work", "", &format!("{outputs}---\nWork."));
    let answer = stage.run("demo/work");
    assert_eq!(code_of(&answer), "CB326", "{answer:#}");
    let error = &answer["metadata"]["error"];
    assert_eq!(error["message"], "duplicate output `word` with two types", "{answer:#}");
    assert!(stage.records().is_empty() && stage.mock.requests().is_empty(), "nothing has begun");
}

#[test]
fn the_log_describes_an_output_as_the_model_sees_it() {
    let stage = Setup::new(script([returns("a", "x")]));
    let outputs = "  <outputs><output name=\"word\"/><output name=\"more\" required=\"false\"/></outputs>\n";
    stage.directive("work", "", &format!("{outputs}---\nWork."));
    let id = id_of(&stage.run("demo/work"));
    let declared = &stage.payloads(&id, Kind::Started)[0]["outputs"];
    let required = [&declared[0]["required"], &declared[1]["required"]];
    assert_eq!(required, [&json!(true), &json!(false)], "{declared:#}");
}
