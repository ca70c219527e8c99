//! `cuebook batch diff`

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::judge::JUDGE;
use crate::setup::{Setup, asked, err, out};

/// Answers briefly if it is asked to, and judges.
fn setup() -> Setup {
    let setup = Setup::new(Script::answer(|request| {
        let text = request.body.to_string();
        let stars = if text.contains("Be strict.") { 1 } else { 5 };
        match text.contains("Judge this.") {
            true => Reply::text(format!("{{\"stars\": {stars}}}")).usage(30, 4),
            false if text.contains("Be brief.") => Reply::text(asked(request)).usage(20, 2),
            false => Reply::text(format!("answer to {}", asked(request))).usage(20, 5),
        }
    }));
    setup.project.write("prompts/ask/template.md", "Be kind.\nAnswer this: {{ question }}\n");
    setup.project.write("prompts/quality.prompty", JUDGE);
    setup.questions(4);
    setup
}

fn ask(setup: &Setup, more: &[&str]) {
    let output = setup.ask(more);
    assert!(output.status.success(), "{}", err(&output));
}

fn diff(setup: &Setup, more: &[&str]) -> Json {
    let output = setup.run(&[&["diff", "before.jsonl", "out.jsonl", "--json"], more].concat());
    assert_eq!(output.status.code(), Some(1), "{}", err(&output));
    serde_json::from_str(&out(&output)).unwrap()
}

fn keep(setup: &Setup) {
    std::fs::copy(setup.project.path().join("out.jsonl"), setup.project.path().join("before.jsonl")).unwrap();
}

#[test]
fn a_changed_sentence_is_the_cause_of_the_rows_it_is_in() {
    let setup = setup();
    ask(&setup, &[]);
    keep(&setup);
    let template = "Be kind.\n\n{% if question in ['row-2.', 'row-3.'] %}Be brief.{% endif %}\nAnswer this: {{ question }}\n";
    setup.project.write("prompts/ask/template.md", template);
    ask(&setup, &[]);
    let found = diff(&setup, &[]);
    assert_eq!(found["rows"], 4);
    assert_eq!((&found["changed"]["answers"], &found["changed"]["verdicts"]), (&json!(2), &json!(0)));
    let cause =
        found["causes"].as_array().unwrap().iter().find(|cause| cause["counts"]["answers"] == 2).unwrap();
    let sentence = &cause["sentences"][0];
    assert_eq!(cause["sentences"].as_array().unwrap().len(), 1, "{cause}");
    assert_eq!((&sentence["text"], &sentence["line"]), (&json!("Be brief."), &json!(3)));
    assert_eq!((&sentence["change"], &sentence["judge"]), (&json!("new"), &json!(null)));
    assert!(sentence["file"].as_str().unwrap().ends_with("prompts/ask/template.md"), "{sentence}");
    assert_eq!(cause["rows"][0]["row"], 2);
    assert_eq!(cause["rows"][0]["changes"][0]["before"], "answer to row-2");
    assert_eq!(cause["rows"][0]["changes"][0]["after"], "row-2");
    let text = out(&setup.run(&["diff", "before.jsonl", "out.jsonl"]));
    assert!(
        text.contains(
            "prompts/ask/template.md:3  Be brief.\n  row 2: answer \"answer to row-2\" → \"row-2\""
        ),
        "{text}"
    );
}

#[test]
fn a_changed_judge_is_the_cause_of_its_verdicts() {
    let setup = setup();
    ask(&setup, &["--judge", "good=quality"]);
    keep(&setup);
    setup.project.write("prompts/quality.prompty", JUDGE.replace("Judge this.", "Judge this. Be strict."));
    ask(&setup, &["--judge", "good=quality"]);
    let found = diff(&setup, &["--rows", "1"]);
    let changed = json!({"rows": 4, "texts": 0, "answers": 0, "verdicts": 4});
    assert_eq!((&found["changed"], found["causes"].as_array().unwrap().len()), (&changed, 1));
    let cause = &found["causes"][0];
    assert_eq!(cause["sentences"][0]["text"], "Be strict.");
    assert_eq!(cause["sentences"][0]["judge"], "good");
    assert_eq!(cause["rows"].as_array().unwrap().len(), 1);
    assert_eq!(cause["rows"][0]["changes"][0], json!({"column": "good_stars", "before": 5, "after": 1}));
}

#[test]
fn renders_say_their_sentences_where_asked() {
    let setup = setup();
    let render = |name: &str, more: &[&str]| {
        let output = setup.run(&[&["ask", "data.jsonl", "--out", name], more].concat());
        assert!(output.status.success(), "{}", err(&output));
    };
    render("before.jsonl", &["--sources"]);
    setup.project.write("prompts/ask/template.md", "Be kind.\nAnswer that: {{ question }}\n");
    render("out.jsonl", &["--sources"]);
    let found = diff(&setup, &[]);
    let texts: Vec<&str> = found["causes"][0]["sentences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sentence| sentence["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts, ["Answer this:", "Answer that:"]);
    render("out.jsonl", &[]);
    assert!(setup.lines("out.jsonl")[0].get("sources").is_none());
    assert_eq!(diff(&setup, &[])["causes"][0]["unknown"], true);
}

#[test]
fn equal_outputs_have_no_difference() {
    let setup = setup();
    ask(&setup, &[]);
    keep(&setup);
    ask(&setup, &[]);
    let same = setup.run(&["diff", "before.jsonl", "out.jsonl"]);
    assert!(same.status.success(), "{}", err(&same));
    assert_eq!(out(&same), "before.jsonl → out.jsonl: 0 of 4 rows changed\n");
    let missing = setup.run(&["diff", "before.jsonl", "nothing.jsonl"]);
    assert_eq!(missing.status.code(), Some(2), "{}", err(&missing));
}
