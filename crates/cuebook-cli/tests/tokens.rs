//! `cuebook tokens`: what a prompt costs, what stays the same between two renders, and what a cache keeps.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod support;

use serde_json::{Value as Json, json};
use support::Project;

fn cuebook(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(project: &Project, args: &[&str]) -> Json {
    let (_, out, err) = cuebook(project, args);
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{err}"))
}

/// A long system message that a value ends, and a question.
fn support_prompt() -> Project {
    let project = Project::new();
    let rules = "Answer in one sentence and be kind to whoever asks.\n".repeat(200);
    project.write(
        "support.prompty",
        format!(
            "---\nname: support\ninputs:\n  customer: {{kind: string, required: true}}\n  question: {{kind: string, required: true}}\n\
             tools:\n  - {{name: find, kind: function, description: Finds an order., parameters: [{{name: number, kind: string}}]}}\n---\n\
             system:\n{rules}You talk with {{{{customer}}}}.\n\nuser:\n{{{{question}}}}\n"
        ),
    );
    project.write("a.json", r#"{"customer": "Ada", "question": "Why?"}"#);
    project.write("b.json", r#"{"customer": "Grace"}"#);
    project.write("c.json", r#"{"question": "How?"}"#);
    project
}

fn tokens(project: &Project, more: &[&str]) -> Json {
    json(project, &[&["tokens", "support.prompty", "--vars", "a.json", "--json"], more].concat())
}

#[test]
fn messages_tools_and_writers_are_counted_and_add_up() {
    let project = support_prompt();
    let found = tokens(&project, &["--model", "gpt-4o"]);
    let sum = |key: &str| -> u64 {
        found[key].as_array().unwrap().iter().map(|entry| entry["tokens"].as_u64().unwrap()).sum()
    };
    assert_eq!(found["total"], sum("messages") + sum("tools"));
    assert_eq!(found["text"], sum("contributors"));
    assert_eq!(found["tools"][0]["name"], "find");
    let roles: Vec<&Json> =
        found["messages"].as_array().unwrap().iter().map(|message| &message["role"]).collect();
    assert_eq!(roles, ["system", "user"]);
    assert_eq!(found["exact"], false);
    let reasons = found["estimates"].as_array().unwrap();
    assert!(
        reasons.len() == 1 && reasons[0].as_str().unwrap().starts_with("Tools are counted"),
        "{reasons:?}"
    );
}

#[test]
fn the_first_difference_has_its_message_place_and_variable() {
    let project = support_prompt();
    let found = tokens(&project, &["--model", "gpt-4o", "--against", "b.json"]);
    let first = &found["stability"]["first_unstable"];
    assert_eq!((&first["message"], &first["line"]), (&json!(1), &json!(201)));
    assert_eq!(first["contributor"]["variables"], json!([{"path": "customer", "layer": "caller"}]));
    assert_eq!(first["origin"]["expression"], "{{customer}}");
    assert_eq!(found["stability"]["changed"], json!([{"path": "customer", "layer": "caller"}]));
    assert!(found["stability"]["share"].as_f64().unwrap() > 0.9, "{found}");
    let cache = &found["caches"][0];
    assert_eq!((&cache["provider"], &cache["automatic"]), (&json!("openai"), &json!(true)));
    let kept = cache["cacheable"].as_u64().unwrap();
    assert!(
        kept >= 1024 && kept.is_multiple_of(128) && kept <= found["stability"]["stable"].as_u64().unwrap()
    );
}

#[test]
fn anthropics_marks_stand_behind_what_stays_the_same() {
    let project = support_prompt();
    let model = ["--model", "claude-sonnet-4-5"];
    let question = tokens(&project, &[&model[..], &["--against", "c.json"]].concat());
    assert_eq!(question["caches"][0]["provider"], "anthropic");
    let marks = question["caches"][0]["breakpoints"].as_array().unwrap();
    assert_eq!(marks.iter().map(|mark| &mark["after"]).collect::<Vec<_>>(), ["message 1 (system)"]);
    let customer = tokens(&project, &[&model[..], &["--against", "b.json"]].concat());
    assert_eq!(customer["caches"][0]["cacheable"], 0);
    let advice = customer["caches"][0]["advice"].to_string();
    assert!(advice.contains("send it as two blocks"), "{advice}");
}

#[test]
fn a_prompt_that_reads_the_clock_is_reported() {
    let project = Project::new();
    project.write("prompts/p/template.md", "Today is {{ system.date }}.\nHello {{ name }}.");
    project.write("b.json", r#"{"name": "Bob"}"#);
    let found = json(&project, &["tokens", "p", "--var", "name=Ada", "--against", "b.json", "--json"]);
    assert_eq!(found["stability"]["passing"]["contributor"]["label"], "system (system)", "{found}");
    assert_eq!(found["stability"]["first_unstable"]["contributor"]["label"], "name (caller)");
    let providers: Vec<&Json> =
        found["caches"].as_array().unwrap().iter().map(|cache| &cache["provider"]).collect();
    assert_eq!(providers, ["openai", "anthropic", "gemini"], "nobody said whose model it is");
}

#[test]
fn unusable_files_are_errors_and_typos_are_warnings() {
    let project = support_prompt();
    project.write("list.json", "[]");
    project.write("slip.json", r#"{"custmer": "Eve"}"#);
    for file in ["nowhere.json", "list.json"] {
        let (code, out, err) =
            cuebook(&project, &["tokens", "support.prompty", "--vars", "a.json", "--against", file]);
        assert!(code != 0 && out.is_empty() && err.contains("error[CB"), "{file}: {err}");
    }
    let (code, _, err) =
        cuebook(&project, &["tokens", "support.prompty", "--vars", "a.json", "--against", "slip.json"]);
    assert!(code == 0 && err.contains("did you mean `customer`?"), "{err}");
}

#[test]
fn stdin_is_either_the_one_or_the_other() {
    let project = support_prompt();
    let (code, out, err) = cuebook(&project, &["tokens", "support.prompty", "--vars", "-", "--against", "-"]);
    assert!(code == 2 && out.is_empty(), "{out}{err}");
    assert!(err.contains("--vars and --against cannot both read stdin"), "{err}");
}

/// Three prompts: one with a required value, one without, and one that cannot be read.
fn library() -> Project {
    let project = Project::new();
    project.write("prompts/ask/prompt.py", "VARIABLES = {'required': [{'name': 'question'}]}\n");
    project.write("prompts/ask/template.md", "Answer: {{ question }}");
    project.write("prompts/plain/template.md", "Be brief and kind.");
    project
}

#[test]
fn a_library_is_counted_in_rows_with_placeholders_and_a_sum() {
    let project = library();
    let (code, out, _) = cuebook(&project, &["tokens", "--model", "gpt-4o"]);
    assert_eq!(code, 0, "{out}");
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["tokens", "cost", "prompt"]);
    assert_eq!(&rows[1][3..], ["ask", "placeholders:", "question"]);
    assert_eq!(&rows[2][3..], ["plain"]);
    let number = |row: usize| rows[row][0].parse::<usize>().unwrap();
    assert_eq!((number(1) + number(2), &rows[3][3..]), (number(3), &["2", "prompts"][..]));
    let all = json(&project, &["tokens", "--model", "gpt-4o", "--json"]);
    let one = json(&project, &["tokens", "plain", "--model", "gpt-4o", "--json"]);
    assert_eq!((&all[1]["total"], &all[1]["cost"]), (&one["total"], &one["cost"]));
    assert_eq!(all[0]["placeholders"], json!(["question"]));
    let given = json(&project, &["tokens", "plain", "ask", "--var", "question=Why?", "--json"]);
    assert_eq!((&given[0]["prompt"], &given[1]["placeholders"]), (&json!("plain"), &json!([])));
}

#[test]
fn one_broken_prompt_fails_and_the_others_are_counted() {
    let project = library();
    project.write("prompts/broken/template.md", "{{ x");
    let all = json(&project, &["tokens", "prompts", "--json"]);
    assert_eq!((&all[1]["prompt"], &all[1]["error"]["code"]), (&json!("broken"), &json!("CB304")), "{all}");
    let (code, out, _) = cuebook(&project, &["tokens"]);
    assert_eq!(code, 1);
    assert!(out.contains("3 prompts") && out.contains("error[CB304]"), "{out}");
    let (code, _, err) = cuebook(&project, &["tokens", "ask", "plain", "--var", "qestion=1"]);
    assert_eq!(code, 1);
    assert!(err.contains("none of the prompts has a variable `qestion`"), "{err}");
    let (code, _, err) = cuebook(&project, &["tokens", "--against", "a.json"]);
    assert_eq!(code, 2, "{err}");
    let empty = Project::new();
    let (code, _, err) = cuebook(&empty, &["tokens"]);
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("this project has no prompts"), "{err}");
}

#[test]
fn money_is_shown_where_the_price_is_known() {
    let project = Project::new();
    project.write("prompts/p/template.md", "x ".repeat(500));
    let cost = json(&project, &["tokens", "p", "--model", "gpt-4o", "--json"]);
    let (amount, total) = (cost["cost"]["amount"].as_f64().unwrap(), cost["total"].as_f64().unwrap());
    let price = cost["cost"]["per_million"].as_f64().unwrap();
    assert!((amount - total * price / 1e6).abs() < 1e-9, "{cost}");
    assert_eq!((&cost["cost"]["currency"], &cost["cost"]["provider"]), (&json!("USD"), &json!("openai")));
    let (_, out, _) = cuebook(&project, &["tokens", "p", "--model", "gpt-4o"]);
    assert!(out.contains(" USD to read once, at "), "{out}");
    assert_eq!(json(&project, &["tokens", "p", "--model", "my-own", "--json"])["cost"], Json::Null);
    let (_, out, _) = cuebook(&project, &["tokens", "p", "--model", "my-own"]);
    assert!(out.contains("the price of my-own is not known"), "{out}");
    assert_eq!(json(&project, &["tokens", "p", "--json"])["cost"], Json::Null);
}
