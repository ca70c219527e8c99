//! A judge is a prompt, and its outputs are columns.

use cuebook_mock::{Reply, Script};
use serde_json::json;

use crate::setup::{Setup, asked, echo, err};

pub const JUDGE: &str = "---\nmodel: mock-model\ninputs:\n  answer: {kind: string}\n  question: {kind: string}\n\
                     outputs:\n  stars: {kind: integer}\n---\nsystem:\nJudge this.\n\nuser:\n{{ question }}: {{ answer }}\n";

fn judged() -> Setup {
    let setup =
        Setup::new(Script::answer(|request| match request.body.to_string().contains("Judge this.") {
            true => Reply::text(format!("{{\"stars\": {}}}", &asked(request)[4..])).usage(30, 4),
            false => echo(request),
        }));
    setup.project.write("prompts/quality.prompty", JUDGE);
    setup.questions(5);
    setup
}

#[test]
fn the_outputs_of_a_judge_are_columns() {
    let setup = judged();
    let output = setup.ask(&["--judge", "good=quality"]);
    assert!(output.status.success(), "{}", err(&output));
    for (row, number) in setup.lines("out.jsonl").iter().zip(1..) {
        assert_eq!((&row["good_stars"], &row["good_error"]), (&json!(number), &json!(null)));
        assert_eq!((&row["good_cost"], &row["cost"]), (&json!(0.00007), &json!(0.00007)));
    }
    assert_eq!(setup.mock.requests().len(), 10);
}

#[test]
fn a_changed_judge_asks_no_answer_again() {
    let setup = judged();
    assert!(setup.ask(&["--judge", "good=quality"]).status.success());
    setup.project.write("prompts/quality.prompty", JUDGE.replace("Judge this.", "Judge this. Be strict."));
    assert!(setup.ask(&["--judge", "good=quality"]).status.success());
    let requests = setup.mock.requests();
    assert_eq!(requests.len(), 15);
    assert!(requests[10..].iter().all(|request| request.body.to_string().contains("Be strict.")));
}

#[test]
fn a_row_without_an_answer_is_not_judged() {
    let setup = judged();
    setup.mock.play(Script::answer(|request| match asked(request).as_str() {
        "row-2" => Reply::status(400, json!({"error": {"message": "no"}})),
        _ if request.body.to_string().contains("Judge this.") => Reply::text("{\"stars\": 1}"),
        _ => echo(request),
    }));
    assert_eq!(setup.ask(&["--judge", "good=quality"]).status.code(), Some(1));
    let rows = setup.lines("out.jsonl");
    assert_eq!((&rows[1]["error"], &rows[1]["good_stars"]), (&json!("CB722"), &json!(null)));
    assert_eq!(setup.mock.requests().len(), 9);
}

#[test]
fn the_names_of_judges_are_checked() {
    let setup = judged();
    for args in [
        ["--judge", "good=quality", "--judge", "good=quality"],
        ["--judge", "a b=quality", "--json", "--json"],
    ] {
        let output = setup.ask(&args);
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    }
    assert!(setup.mock.requests().is_empty());
}
