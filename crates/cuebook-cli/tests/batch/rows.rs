//! Rows are read, checked and rendered.

use serde_json::json;

use crate::setup::{Setup, err, lines, out};
use crate::support::{Project, Test};

const PROMPT: &str = "VARIABLES = {\"required\": [{\"name\": \"name\", \"type\": \"string\"}], \"optional\": \
                      [{\"name\": \"age\", \"type\": \"integer\"}, {\"name\": \"tags\", \"type\": \"list\"}]}";

fn project(data: &str, text: &str) -> Setup {
    let setup = Setup::echo();
    setup.project.write("prompts/hi/template.md", "{{ name }}/{{ age }}/{{ tags|length if tags else 0 }}");
    setup.project.write("prompts/hi/prompt.py", PROMPT);
    setup.project.write(data, text);
    setup
}

#[test]
fn a_column_fills_the_variable_of_its_name_with_its_type() {
    let setup = project(
        "data.csv",
        "name,age,tags,other\nAnn,7,\"[\"\"a\"\",\"\"b\"\"]\",x\n\"Bob, \"\"B\"\"\",,,y\n",
    );
    let output = setup.run(&["hi", "data.csv"]);
    assert!(output.status.success(), "{}", err(&output));
    let rows = lines(&out(&output));
    assert_eq!(rows[0]["text"], "Ann/7/2");
    assert_eq!(rows[0]["other"], "x");
    assert_eq!(rows[0]["row"], 1);
    assert!(rows[1]["text"].as_str().unwrap().starts_with("Bob, \"B\"/"), "{}", rows[1]);
    assert_eq!(rows[1]["error"], json!(null));
}

#[test]
fn the_order_of_the_rows_is_kept() {
    let setup = Setup::echo();
    setup.questions(3000);
    let output = setup.run(&["ask", "data.jsonl", "--threads", "4", "--out", "out.jsonl"]);
    assert!(output.status.success(), "{}", err(&output));
    let rows = setup.lines("out.jsonl");
    assert_eq!(rows.len(), 3000);
    for (row, number) in rows.iter().zip(1..) {
        assert_eq!(row["row"], number);
        assert_eq!(row["text"], format!("Answer this: row-{number}."));
    }
    assert!(err(&output).contains("3,000 rows to out.jsonl, no errors"), "{}", err(&output));
}

#[test]
fn a_row_that_fails_is_an_error_row() {
    let text = "{\"name\": \"Ann\", \"age\": 7}\nnonsense\n\n[1]\n{\"name\": \"Bob\", \"age\": \"old\"}\n{\"age\": 3}\n{\"name\": \"Cleo\"}\n";
    let setup = project("data.jsonl", text);
    let output = setup.run(&["hi", "data.jsonl"]);
    assert_eq!(output.status.code(), Some(1));
    let rows = lines(&out(&output));
    let codes: Vec<_> = rows.iter().map(|row| row["error"].as_str().unwrap_or("fine")).collect();
    assert_eq!(codes[..3], ["fine", "CB901", "CB901"]);
    assert_eq!(codes[5], "fine");
    assert!(codes[3..5].iter().all(|code| *code != "fine"), "{codes:?}");
    assert_eq!(rows[1]["row"], 2);
    assert!(
        rows[1]["error_message"].as_str().unwrap().starts_with("row 2 (line 2): it is not valid JSON"),
        "{}",
        rows[1]
    );
    assert!(rows[2]["error_message"].as_str().unwrap().contains("row 3 (line 4)"), "{}", rows[2]);
    assert!(err(&output).contains("4 errors"), "{}", err(&output));
}

#[test]
fn a_csv_row_with_too_many_fields_is_an_error_row() {
    let setup = project("data.csv", "name,age\nAnn,7\nBob,8,9\nCleo\nDan,1\n");
    let rows = lines(&out(&setup.run(&["hi", "data.csv"])));
    let codes: Vec<_> = rows.iter().map(|row| row["error"].as_str()).collect();
    assert_eq!(codes, [None, Some("CB901"), Some("CB901"), None]);
    assert!(rows[1]["error_message"].as_str().unwrap().contains("it has 3 fields"), "{}", rows[1]);
}

#[test]
fn a_missing_column_is_named_before_any_row() {
    let setup = project("data.csv", "nmae,age\nAnn,7\n");
    let output = setup.run(&["hi", "data.csv"]);
    assert_eq!(output.status.code(), Some(2));
    let error = err(&output);
    assert!(error.contains("error[CB902]"), "{error}");
    assert!(error.contains("no column for the required variable `name`"), "{error}");
    assert!(error.contains("--map nmae=name"), "{error}");
    let mapped = setup.run(&["hi", "data.csv", "--map", "nmae=name"]);
    assert_eq!(lines(&out(&mapped))[0]["text"], "Ann/7/0");
    let fixed = setup.run(&["hi", "data.csv", "--var", "name=Zoe"]);
    assert_eq!(lines(&out(&fixed))[0]["text"], "Zoe/7/0");
}

#[test]
fn a_jsonl_file_without_a_column_is_refused_before_any_request() {
    let setup = Setup::echo();
    setup.project.write(
        "prompts/ask/prompt.py",
        "VARIABLES = {\"required\": [{\"name\": \"question\", \"type\": \"string\"}]}",
    );
    setup.project.write("data.jsonl", "{\"q\": \"row-1\"}\n{\"q\": \"row-2\"}\n");
    let output = setup.ask(&[]);
    assert!(err(&output).contains("error[CB902]"), "{}", err(&output));
    assert!(setup.mock.requests().is_empty());
}

#[test]
fn columns_with_the_names_of_results_are_refused() {
    let setup = project("data.csv", "name,error\nAnn,x\n");
    let error = err(&setup.run(&["hi", "data.csv"]));
    assert!(error.contains("the data has a column `error`"), "{error}");
    let rows = lines(&out(&setup.run(&["hi", "data.csv", "--prefix", "out_"])));
    assert_eq!((&rows[0]["error"], &rows[0]["out_error"]), (&json!("x"), &json!(null)));
    let rows = lines(&out(&setup.run(&["hi", "data.csv", "--no-inputs"])));
    assert_eq!(rows[0].get("name"), None);
}

#[test]
fn messages_and_bodies_are_columns() {
    let setup = project("data.csv", "name\nAnn\n");
    let rows = lines(&out(&setup.run(&["hi", "data.csv", "--as", "messages"])));
    assert_eq!(rows[0]["messages"][0]["role"], "system");
    let rows = lines(&out(&setup.run(&[
        "hi",
        "data.csv",
        "--as",
        "wire:anthropic",
        "--model",
        "claude-sonnet-4-5",
    ])));
    assert_eq!(rows[0]["wire"]["model"], "claude-sonnet-4-5");
}

#[test]
fn an_unknown_format_is_named() {
    for (name, says) in
        [("data.csb", "did you mean `csv`?"), ("data", "use .csv, .jsonl, .ndjson or .parquet")]
    {
        let setup = project(name, "name\nAnn\n");
        let error = err(&setup.run(&["hi", name]));
        assert!(error.contains("error[CB901]") && error.contains(says), "{error}");
    }
    Test::new().file("prompts/hi/template.md", "Hi").args(["batch", "hi", "gone.csv"]).code(1).run();
}

#[test]
fn a_quotation_mark_that_is_not_closed_does_not_fill_the_memory() {
    let mut text = "name\nAnn\n\"Bob\n".to_owned();
    text.push_str(&"x".repeat(17 << 20));
    let setup = project("data.csv", &text);
    let output = setup.run(&["hi", "data.csv"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("is a quotation mark missing?"), "{}", err(&output));
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi {{ n }}");
    let rows: String = (0..20_000).map(|n| format!("{{\"n\":{n}}}\n")).collect();
    project.write("data.jsonl", rows);
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.args(["batch", "hi", "data.jsonl"]);
    assert_eq!(crate::support::code_when_closed(command), Some(0));
}
