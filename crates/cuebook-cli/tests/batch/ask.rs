//! Rows are asked: the cost is known before, limits hold, and nothing is asked twice.

use std::collections::BTreeSet;
use std::time::Duration;

use cuebook_mock::{Api, Reply, Script};
use serde_json::{Value as Json, json};

use crate::setup::{KEY, Setup, asked, echo, err, out};

#[test]
fn each_row_gets_its_answer_in_order() {
    let setup = Setup::echo();
    setup.questions(40);
    let output = setup.ask(&["--as", "text"]);
    assert!(output.status.success(), "{}", err(&output));
    let rows = setup.lines("out.jsonl");
    for (row, number) in rows.iter().zip(1..) {
        assert_eq!(row["answer"], format!("answer to row-{number}"));
        assert_eq!(row["text"], format!("Answer this: row-{number}."));
        assert_eq!((&row["input_tokens"], &row["output_tokens"]), (&json!(20), &json!(5)));
        assert_eq!(row["cost"], 0.00007);
        assert_eq!((&row["finish"], &row["error"]), (&json!("stop"), &json!(null)));
    }
    assert_eq!((rows.len(), setup.mock.requests().len()), (40, 40));
    assert!(err(&output).contains("40 requests sent, 0.0028 USD spent"), "{}", err(&output));
}

#[test]
fn a_request_equals_that_of_a_run() {
    for api in Api::ALL {
        let setup = Setup::speaking(api, Script::answer(echo));
        setup.questions(1);
        assert!(setup.ask(&[]).status.success());
        let project = &setup.project;
        let mut run = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        run.args(["run", "ask", "--var", "question=row-1.", "--model", "mock-model"]).env("MOCK_KEY", KEY);
        assert!(run.output().unwrap().status.success());
        let requests = setup.mock.requests();
        let mut bodies: Vec<Json> = requests.iter().map(|request| request.body.clone()).collect();
        // A thread also says how long an answer may be, because of its limits.
        for body in &mut bodies {
            for name in ["max_tokens", "max_completion_tokens", "max_output_tokens"] {
                body.as_object_mut().unwrap().shift_remove(name);
            }
            if let Some(config) = body.get_mut("generationConfig").and_then(Json::as_object_mut) {
                config.shift_remove("maxOutputTokens");
            }
            if body.get("generationConfig") == Some(&json!({})) {
                body.as_object_mut().unwrap().shift_remove("generationConfig");
            }
        }
        assert_eq!(bodies[0], bodies[1], "{}", api.as_str());
        assert_eq!(requests[0].path, requests[1].path);
    }
}

#[test]
fn a_second_run_asks_nothing() {
    let setup = Setup::echo();
    setup.questions(10);
    assert!(setup.ask(&[]).status.success());
    let first = setup.read("out.jsonl");
    let again = setup.ask(&["--json"]);
    let summary: Json = serde_json::from_str(&out(&again)).unwrap();
    assert_eq!((&summary["requests"], &summary["answered_before"]), (&json!(0), &json!(10)));
    assert_eq!(summary["spent"], 0.0);
    assert_eq!((setup.read("out.jsonl"), setup.mock.requests().len()), (first, 10));
}

#[test]
fn a_changed_prompt_asks_only_the_rows_that_it_changes() {
    let setup = Setup::echo();
    setup.questions(10);
    assert!(setup.ask(&[]).status.success());
    let template = "Answer this: {{ question }}{% if question == 'row-3.' %} Be brief.{% endif %}";
    setup.project.write("prompts/ask/template.md", template);
    assert!(setup.ask(&[]).status.success());
    let requests = setup.mock.requests();
    assert_eq!(requests.len(), 11);
    assert_eq!(asked(&requests[10]), "row-3");
}

#[test]
fn rows_with_the_same_question_share_one_answer() {
    let setup =
        Setup::new(Script::answer(|request| echo(request).first_byte_after(Duration::from_millis(30))));
    setup.project.write("data.jsonl", "{\"question\": \"row-1.\"}\n".repeat(12));
    assert!(setup.ask(&[]).status.success());
    assert_eq!(setup.mock.requests().len(), 1);
    let rows = setup.lines("out.jsonl");
    assert!(rows.iter().all(|row| row["answer"] == "answer to row-1"));
    // The first row counts what it took, so that the sums are what was paid.
    assert_eq!((&rows[0]["cost"], &rows[0]["input_tokens"]), (&json!(0.00007), &json!(20)));
    for row in &rows[1..] {
        assert_eq!(
            (&row["cost"], &row["input_tokens"], &row["seconds"]),
            (&json!(0.0), &json!(0), &json!(0.0))
        );
    }
    let report = out(&setup.run(&["report", "out.jsonl"]));
    assert!(report.contains("cost: 0.000070 in all; mean 0.000070"), "{report}");
}

#[test]
fn rows_that_begin_alike_are_asked_together() {
    let setup = Setup::echo();
    let template = "{{ manual * 40 }}\n\nAnswer this: {{ question }}";
    setup.project.write("prompts/ask/template.md", template);
    let manual = |row: usize| format!("The manual of product {} says what it does. ", row % 3);
    let lines: String = (1..=30)
        .map(|row| {
            format!("{}\n", json!({"manual": manual(row).repeat(4), "question": format!("row-{row}.")}))
        })
        .collect();
    setup.project.write("data.jsonl", lines);
    let estimate = |more: &[&str]| -> Json {
        let output = setup.ask(&[&["--dry-run", "--json"], more].concat());
        serde_json::from_str(&out(&output)).unwrap()
    };
    assert_eq!(estimate(&[])["cacheable_tokens"], 0);
    let sorted = estimate(&["--order", "prefix"]);
    let share = sorted["cacheable_tokens"].as_f64().unwrap() / sorted["input_tokens"].as_f64().unwrap();
    assert!(share > 0.7 && share < 0.9, "27 of 30 rows begin as the one before: {share}");
    let output = setup.ask(&["--order", "prefix", "--concurrency", "1"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).contains("cache: the provider can keep about"), "{}", err(&output));
    let requests = setup.mock.requests();
    let products: Vec<usize> =
        requests.iter().map(|request| asked(request)[4..].parse::<usize>().unwrap() % 3).collect();
    let changes = products.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!((products.len(), changes), (30, 2));
    let answers: Vec<Json> = setup.lines("out.jsonl").iter().map(|row| row["answer"].clone()).collect();
    let expected: Vec<Json> = (1..=30).map(|row| json!(format!("answer to row-{row}"))).collect();
    assert_eq!(answers, expected);
}

#[test]
fn nothing_is_sent_while_a_row_is_invalid() {
    let setup = Setup::echo();
    setup.project.write("data.jsonl", "{\"question\": \"row-1.\"}\n7\n{\"question\": \"row-3.\"}\n");
    let output = setup.ask(&[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        err(&output).contains("error[CB903]: data.jsonl: one of 3 rows is invalid, so nothing was sent"),
        "{}",
        err(&output)
    );
    assert!(
        err(&output).contains("error[CB901]: row 2 (line 2): it is not a JSON object"),
        "{}",
        err(&output)
    );
    assert!(setup.mock.requests().is_empty());
    let output = setup.ask(&["--keep-going"]);
    assert_eq!(output.status.code(), Some(1));
    let codes: Vec<Json> = setup.lines("out.jsonl").iter().map(|row| row["error"].clone()).collect();
    assert_eq!(codes, [json!(null), json!("CB901"), json!(null)]);
}

#[test]
fn a_row_that_is_too_long_for_the_model_is_invalid() {
    let setup = Setup::echo();
    let long = "row-2 ".repeat(60_000);
    setup
        .project
        .write("data.jsonl", format!("{{\"question\": \"row-1.\"}}\n{{\"question\": \"{long}\"}}\n"));
    let output = setup.ask(&[]);
    assert!(err(&output).contains("row 2: the prompt has about"), "{}", err(&output));
    assert!(setup.mock.requests().is_empty());
}

#[test]
fn a_dry_run_prints_the_cost_and_writes_nothing() {
    let setup = Setup::echo();
    setup.questions(100);
    let output = setup.ask(&["--dry-run", "--json"]);
    assert!(output.status.success(), "{}", err(&output));
    let told: Json = serde_json::from_str(&out(&output)).unwrap();
    assert_eq!((&told["rows"], &told["questions"], &told["invalid"]), (&json!(100), &json!(100), &json!(0)));
    let cost = &told["cost"];
    assert!(cost["reading"].as_f64().unwrap() > 0.0, "{told}");
    // 100 answers of 4,096 tokens, ten dollars for a million.
    assert!(cost["most"].as_f64().unwrap() > 4.0 && cost["most"].as_f64().unwrap() < 4.3, "{told}");
    assert!(setup.mock.requests().is_empty());
    assert!(!setup.project.path().join("out.jsonl").exists());
    assert!(!setup.project.path().join(".out.jsonl.journal").exists());
}

#[test]
fn a_limit_of_money_is_never_exceeded() {
    let setup = Setup::echo();
    setup.questions(50);
    // The longest answer costs 0.04096, so three rows are on their way at most, and each costs 0.00007.
    let output = setup.ask(&["--limit-spend", "0.0415", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let summary: Json = serde_json::from_str(&out(&output)).unwrap();
    assert!(summary["spent"].as_f64().unwrap() <= 0.0415, "{summary}");
    assert_eq!(summary["ended"]["code"], "CB906");
    let asked = setup.mock.requests().len();
    assert!((1..50).contains(&asked), "{asked} rows");
    let rows = setup.lines("out.jsonl");
    assert_eq!(rows.iter().filter(|row| row["error"] == "CB906").count(), 50 - asked);
    // The same command with a higher limit asks the others, and counts what is spent already.
    let output = setup.ask(&["--limit-spend", "1"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(setup.mock.requests().len(), 50);
    assert!(err(&output).contains("0.0035 USD spent"), "{}", err(&output));
}

#[test]
fn a_key_that_is_refused_stops_the_batch() {
    let refused = json!({"error": {"message": format!("the key {KEY} is wrong")}});
    let setup = Setup::new(Script::answer(move |_| Reply::status(401, refused.clone())));
    setup.questions(200);
    let output = setup.ask(&["--concurrency", "4"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(setup.mock.requests().len() <= 4);
    let rows = setup.lines("out.jsonl");
    let codes: BTreeSet<&str> = rows.iter().map(|row| row["error"].as_str().unwrap()).collect();
    assert_eq!(codes, BTreeSet::from(["CB722", "CB906"]));
    for text in [err(&output), setup.read("out.jsonl"), setup.read(".out.jsonl.journal")] {
        assert!(!text.contains(KEY));
    }
}

#[test]
fn a_refused_row_is_an_error_row_and_is_sent_again_later() {
    let setup = Setup::new(Script::answer(|request| match asked(request).as_str() {
        "row-2" => Reply::status(400, json!({"error": {"message": "not this one"}})),
        _ => echo(request),
    }));
    setup.questions(4);
    let output = setup.ask(&[]);
    assert_eq!(output.status.code(), Some(1));
    let rows = setup.lines("out.jsonl");
    assert_eq!(rows[1]["error"], "CB722");
    assert!(rows[1]["error_message"].as_str().unwrap().contains("not this one"));
    assert_eq!(rows.iter().filter(|row| row["error"].is_null()).count(), 3);
    setup.mock.play(Script::answer(echo));
    assert!(setup.ask(&[]).status.success());
    assert_eq!(setup.mock.requests().len(), 5);
}

#[test]
fn an_answer_without_the_declared_outputs_gets_reminders() {
    let setup = Setup::new(
        Script::new()
            .text("no JSON")
            .usage(10, 2)
            .text("{\"mood\": \"good\", \"stars\": 4}")
            .usage(30, 9)
            .times(3, Reply::text("no").usage(10, 1))
            .reply(Reply::text("not at all").usage(10, 1)),
    );
    setup.project.write(
        "rate.prompty",
        "---\nmodel: mock-model\ninputs:\n  question: {kind: string}\noutputs:\n  mood: {kind: string}\n  stars: {kind: integer}\n---\nuser:\n{{ question }}\n",
    );
    setup.questions(2);
    let args = ["rate.prompty", "data.jsonl", "--run", "--out", "out.jsonl", "--concurrency", "1"];
    let output = setup.run(&args);
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    let rows = setup.lines("out.jsonl");
    assert_eq!((&rows[0]["answer_mood"], &rows[0]["answer_stars"]), (&json!("good"), &json!(4)));
    assert_eq!((&rows[0]["input_tokens"], &rows[0]["output_tokens"]), (&json!(40), &json!(11)));
    assert_eq!((&rows[1]["error"], &rows[1]["answer"]), (&json!("CB725"), &json!("not at all")));
    // Both are answers that were paid for, so neither is asked again.
    setup.run(&args);
    assert_eq!(setup.mock.requests().len(), 6);
}

#[test]
fn two_processes_do_not_work_on_the_same_output() {
    let slow = Script::answer(|request| echo(request).first_byte_after(Duration::from_secs(60)));
    let setup = Setup::new(slow);
    setup.questions(3);
    let mut first = setup
        .command(&["ask", "data.jsonl", "--run", "--model", "mock-model", "--out", "out.jsonl"])
        .spawn()
        .unwrap();
    assert!(setup.mock.wait_for_requests(1, Duration::from_secs(60)));
    let error = err(&setup.ask(&[]));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(error.contains("error[CB904]"), "{error}");
}

#[test]
fn all_processes_keep_to_the_rate_of_a_provider_file() {
    let setup = Setup::echo();
    let provider = setup.read("home/.ai/config/providers/mock.yaml");
    setup
        .project
        .write("home/.ai/config/providers/mock.yaml", format!("{provider}rate: {{requests: 600}}\n"));
    setup.questions(4);
    assert!(setup.ask(&[]).status.success());
    let folder = setup.project.home().join(".ai/state/rates");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    let state: Json = serde_json::from_str(&std::fs::read_to_string(&files[0]).unwrap()).unwrap();
    assert_eq!(state["requests"]["size"], 600.0);
    assert!(state["requests"]["left"].as_f64().unwrap() < 600.0, "{state}");
    assert!(!files[0].to_string_lossy().contains(KEY));
}

#[test]
fn a_prompt_with_a_tool_is_refused() {
    let setup = Setup::echo();
    setup.project.write(
        "tool.prompty",
        "---\nmodel: mock-model\ninputs:\n  question: {kind: string}\ntools:\n  - name: search\n    kind: function\n    description: finds\n    parameters: {q: {kind: string}}\n---\nuser:\n{{ question }}\n",
    );
    setup.questions(1);
    let output = setup.run(&["tool.prompty", "data.jsonl", "--run", "--out", "out.jsonl"]);
    assert!(err(&output).contains("a batch runs no tools"), "{}", err(&output));
    assert!(setup.mock.requests().is_empty());
}

#[test]
fn a_prompt_with_the_time_stays_the_same_during_a_batch() {
    let setup = Setup::new(Script::answer(|request| match asked(request).as_str() {
        "row-2" => Reply::status(400, json!({"error": {"message": "not now"}})),
        _ => echo(request),
    }));
    setup.project.write("prompts/ask/template.md", "{{ question }} {{ system.datetime }}");
    setup.questions(3);
    let mut child = setup
        .command(&["ask", "data.jsonl", "--run", "--model", "mock-model", "--out", "out.jsonl"])
        .spawn()
        .unwrap();
    assert!(setup.mock.wait_for_requests(3, Duration::from_secs(60)));
    child.wait().unwrap();
    // The output was written, so the next run has a time of its own.
    setup.mock.play(Script::answer(echo));
    assert!(setup.ask(&[]).status.success());
    let bodies: BTreeSet<String> = setup.mock.requests()[..3]
        .iter()
        .map(|request| request.body.to_string().split(". ").nth(1).unwrap().to_owned())
        .collect();
    assert_eq!(bodies.len(), 1);
}
