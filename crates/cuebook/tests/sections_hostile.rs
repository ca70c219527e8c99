//! Trees of sections that a user wrote carelessly or with bad intent: nothing is silently another thing than was written.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod support;

use cuebook::overrides::Store;
use cuebook::sections::Setting;
use cuebook::{Code, Context, Diagnostic, ErrorKind};
use cuebook_lab::BookExt;
use serde_json::{Value as Json, json};
use support::{Project, values};

fn project(text: &str) -> Project {
    Project::new().file("prompts/p.sections.md", text)
}

fn section(settings: &str) -> String {
    format!("# A\n```yaml section\n{settings}\n```\nText.\n")
}

fn findings(project: &Project) -> Vec<Diagnostic> {
    project.book().check(&["p".to_owned()], |_| {}).unwrap().findings
}

/// The findings, as `LINE CODE`.
fn codes(project: &Project) -> Vec<String> {
    let line = |finding: &Diagnostic| finding.place.as_ref().map_or(0, |place| place.line());
    findings(project).iter().map(|finding| format!("{} {}", line(finding), finding.code)).collect()
}

#[test]
fn invalid_booleans_and_visibilities_are_refused() {
    for (settings, hint) in [
        ("enabled: yes", "write `enabled: true`"),
        ("enabled: Off", "write `enabled: false`"),
        ("visibility: sumary", "did you mean `summary`?"),
        ("visibility: FULL", "did you mean `full`?"),
    ] {
        let error = project(&section(settings)).error("p", json!({}));
        let found = error.diagnostic();
        assert_eq!((found.code, found.hint.as_deref()), (Code::BadSection, Some(hint)), "{settings}");
        assert_eq!(found.place.as_ref().unwrap().line(), 3);
    }
    // A declared input of such a name is a condition like any other.
    let text =
        format!("---\ninputs: {{yes: {{kind: boolean, default: false}}}}\n---\n{}", section("enabled: yes"));
    assert_eq!(project(&text).text("p", json!({})), "");
    assert_eq!(project(&text).text("p", json!({"yes": true})), "# A\n\nText.");
}

#[test]
fn a_condition_that_fails_is_reported_at_its_place() {
    let error = project(&section("summary: S\nvisibility: \"'half'\"")).error("p", json!({}));
    let found = error.diagnostic();
    assert_eq!(
        (error.kind(), found.message.as_str()),
        (ErrorKind::PromptRender, "Section visibility selector failed.")
    );
    assert_eq!(found.place.as_ref().unwrap().to_string(), "prompts/p.sections.md:4:13");
    assert_eq!(error.field("section_path"), Some(&json!(["a"])));
    let error = project(&section("enabled: nothing.at.all")).error("p", json!({}));
    assert_eq!(error.diagnostic().label.as_deref(), Some("`nothing` is undefined"));
}

#[test]
fn check_finds_every_name_that_a_render_fails_at() {
    assert_eq!(
        codes(&project("# A\n```yaml section\nenabled: audience\n```\nHi $who.\n")),
        ["3 CB402", "5 CB402"]
    );
    assert_eq!(codes(&project("---\nmissing: keep\n---\n# A\nHi $who.\n")), [""; 0]);
}

const TOOL: &str = "# A
```yaml section
tools:
  - name: find
    description: Finds.
    parameters:
      q: {kind: string, required: true, description: What.}
    examples:
      - {description: One, input: {q: a}}
```
Old words.
";

fn overrides(project: &Project, tag: &str, change: impl FnOnce(&mut Json)) {
    let prepared = project.book().prepare("p", &Context::default()).unwrap();
    let tree = prepared.tree().unwrap();
    let store = Store::of_project(&project.path("")).unwrap();
    store.seed(tree.descriptor(), tag, &tree.originals()).unwrap();
    let file = format!(".cuebook/overrides/prompts/p/{tag}.json");
    let mut json: Json = serde_json::from_str(&project.read(&file)).unwrap();
    change(&mut json);
    project.write(&file, &format!("{json:#}"));
}

#[test]
fn check_reports_overrides_that_no_longer_fit_under_every_tag() {
    let project = project(TOOL);
    overrides(&project, "latest", |_| {});
    overrides(&project, "friendly", |_| {});
    assert_eq!(codes(&project), [""; 0]);
    project.write("prompts/p.sections.md", &TOOL.replace("Old", "New").replace("Finds.", "Looks."));
    let found = findings(&project);
    let files: Vec<String> =
        found.iter().map(|finding| finding.place.as_ref().unwrap().file().to_owned()).collect();
    let file = |tag: &str| format!(".cuebook/overrides/prompts/p/{tag}.json");
    assert_eq!(files, [file("friendly"), file("friendly"), file("latest"), file("latest")]);
    assert!(found.iter().all(|finding| finding.code == Code::StaleOverride));
    // A file under another tag that cannot be read is reported as well.
    project.write(".cuebook/overrides/prompts/p/broken.json", "{");
    assert!(findings(&project).iter().any(|finding| finding.code == Code::BadOverride));
}

#[test]
fn check_looks_into_the_words_of_overrides() {
    let project = project(TOOL);
    overrides(&project, "latest", |json| {
        json["sections"]["a"]["body"] = json!("It costs $5, $nobody.");
        json["tools"]["find"]["param_descriptions"] = json!({"query": "What."});
    });
    let found = findings(&project);
    let mut reported: Vec<(Code, &str)> =
        found.iter().map(|found| (found.code, found.message.as_str())).collect();
    reported.sort_unstable_by_key(|(code, _)| code.to_string());
    assert_eq!(
        reported,
        [
            (
                Code::BadOverride,
                "the tool `find` has no parameter `query`, so this description has no effect"
            ),
            (Code::TemplateSyntax, "`$` does not begin a placeholder"),
            (Code::UndeclaredVariable, "the override of `a` uses the undeclared name `nobody`"),
        ]
    );
    let error = project.error("p", json!({}));
    let place = error.diagnostic().place.clone().unwrap();
    assert_eq!(place.to_string(), ".cuebook/overrides/prompts/p/latest.json (override of a):1:10");
}

#[test]
fn an_example_of_an_override_must_fit_its_tool() {
    let project = project(TOOL);
    overrides(&project, "latest", |json| {
        json["tools"]["find"]["example_overrides"] =
            json!([{"action": "append", "description": "Two", "input_json": "{\"query\": \"b\"}"}]);
    });
    let error = project.error("p", json!({}));
    assert_eq!((error.kind(), error.code()), (ErrorKind::Overrides, Code::BadOverride));
    assert_eq!(error.diagnostic().hint.as_deref(), Some("the input: Missing required field: 'q'"));
    assert!(error.diagnostic().place.as_ref().unwrap().file().ends_with("latest.json"));
    assert_eq!(findings(&project).len(), 1);
}

const TASKS: &str = "# Tools
```yaml section
tools:
  - {name: find, description: Finds., parameters: {q: {kind: string, required: true}}}
```
Use them.

# Examples
```yaml section
key: examples
task_examples:
  - objective: Find the price of tea
    steps:
      - {tool: find, description: Look it up, input: {q: tea}, output: {price: 3}}
    outcome: Tea costs 3.
  - key: second
    title: Coffee
    objective: Find the price of coffee
    steps: [{tool: find, description: Look it up, input: {q: coffee}}]
    outcome: Nobody knows.
```

## Find the price of milk
```yaml section
task_example:
  steps: [{tool: find, description: Look it up, input: {q: milk}, output: {price: 1}}]
  outcome: Milk costs 1.
```
";

#[test]
fn task_examples_are_a_list_or_headings() {
    let project = project(TASKS);
    let text = project.text("p", json!({}));
    let first = "# Examples\n\n## Find the price of tea\n\n**Objective:** Find the price of tea\n\n**Steps:**\n\n1. **find** - Look it up\n   - input:\n     ```json\n     {\"q\": \"tea\"}\n     ```\n   - output:\n     ```\n     {\"price\": 3}\n     ```\n\n**Outcome:** Tea costs 3.\n\n## Coffee\n\n**Objective:** Find the price of coffee\n";
    assert!(text.contains(first), "{text}");
    assert!(text.ends_with("**Outcome:** Milk costs 1."), "{text}");
    let definition = project.book().get_definition("p").unwrap();
    let sections = definition["sections"].as_array().unwrap();
    let found: Vec<(String, &str)> = sections
        .iter()
        .map(|section| (section["path"].to_string(), section["kind"].as_str().unwrap()))
        .collect();
    let path = |keys: &[&str]| json!(keys).to_string();
    assert_eq!(
        found,
        [
            (path(&["tools"]), "text"),
            (path(&["examples"]), "task_examples"),
            (path(&["examples", "find-the-price-of-tea"]), "task_example"),
            (path(&["examples", "second"]), "task_example"),
            (path(&["examples", "find-the-price-of-milk"]), "task_example"),
        ]
    );
    assert_eq!(codes(&project), [""; 0]);
}

#[test]
fn overrides_change_remove_and_add_task_examples() {
    let project = project(TASKS);
    let prepared = project.book().prepare("p", &Context::default()).unwrap();
    let examples = prepared.tree().unwrap().descriptor().task_examples.clone();
    let entry = |index: usize| (&examples[index].path, &examples[index].hash);
    overrides(&project, "latest", |json| {
        json["task_example_overrides"] = json!([
            {"path": entry(0).0, "index": 0, "expected_hash": entry(0).1, "action": "remove"},
            {"path": entry(1).0, "index": 1, "expected_hash": entry(1).1, "action": "modify", "outcome": "It is free."},
            {"path": ["examples"], "action": "append", "objective": "Buy tea", "outcome": "Bought.",
             "steps_to_append": [{"tool_name": "find", "description": "Look", "input_json": "{\"q\": \"t\"}"}]},
        ]);
    });
    let text = project.text("p", json!({}));
    assert!(
        !text.contains("price of tea")
            && text.contains("It is free.")
            && text.ends_with("**Outcome:** Bought."),
        "{text}"
    );
    assert_eq!(codes(&project), [""; 0]);
    // What an override took out is not there for a model either.
    let tree = prepared.tree().unwrap();
    let resolved =
        Store::of_project(&project.path("")).unwrap().resolve(tree.descriptor(), "latest").unwrap();
    let setting = Setting::new(&[]).overrides(&resolved);
    let error =
        tree.read_section(&json!({"section_key": "examples.find-the-price-of-tea"}), &setting).unwrap_err();
    assert_eq!(error.diagnostic().message, "Section 'examples.find-the-price-of-tea' is not enabled.");
    // A step with a tool that is not there is always refused.
    overrides(&project, "wrong", |json| {
        json["task_example_overrides"] = json!([
            {"path": ["examples"], "action": "append", "objective": "Buy tea", "outcome": "Bought.",
             "steps_to_append": [{"tool_name": "buy", "description": "Buy"}]},
        ]);
    });
    let context = Context { overrides_tag: Some("wrong".into()), ..Context::default() };
    let error = project.book().render("p", &values(json!({})), &context).unwrap_err();
    assert!(
        error.diagnostic().message.starts_with("Unknown tool \"buy\" in task example step 0."),
        "{error}"
    );
    assert!(error.diagnostic().place.as_ref().unwrap().file().ends_with("wrong.json"));
    assert_eq!(findings(&project).len(), 1);
    // A list that accepts no overrides keeps what it has, and says so.
    project.write(
        "prompts/p.sections.md",
        &TASKS.replace("key: examples", "key: examples\naccepts_overrides: false"),
    );
    assert!(project.text("p", json!({})).contains("price of tea"));
    assert!(findings(&project).iter().all(|finding| finding.code == Code::StaleOverride));
}

#[test]
fn mistakes_in_examples_of_tasks_are_reported_with_their_place() {
    for (from, to, line, message) in [
        ("    outcome: Tea costs 3.\n", "", 12, "`task_examples[0]` has no `outcome`"),
        ("    objective: Find the price of coffee\n", "", 16, "`task_examples[1]` has no `objective`"),
        (
            "{tool: find, description: Look it up, input: {q: tea}",
            "{description: Look it up, input: {q: tea}",
            14,
            "`task_examples[0].steps[0]` has no `tool`",
        ),
        ("key: second", "key: find-the-price-of-tea", 16, "duplicate name `find-the-price-of-tea`"),
        (
            "{tool: find, description: Look it up, input: {q: tea}",
            "{tool: fnd, description: Look it up, input: {q: tea}",
            12,
            "Unknown tool \"fnd\" in task example step 0. Available tools: find.",
        ),
        (
            "input: {q: milk}",
            "input: {query: milk}",
            23,
            "step 0 of the example does not fit the tool `find`",
        ),
        (
            "outcome: Milk costs 1.",
            "outcome: 1",
            23,
            "Task example outcome must be a string when prompt has no structured output. Got: int.",
        ),
        (
            "\n## Find the price of milk",
            "Some words.\n\n## Find the price of milk",
            22,
            "a section of task examples cannot have text",
        ),
        (
            "task_example:\n",
            "task_examples: []\ntask_example:\n",
            27,
            "a section cannot both list task examples and be one",
        ),
    ] {
        assert!(TASKS.contains(from), "{from}");
        let error = project(&TASKS.replacen(from, to, 1)).error("p", json!({}));
        let found = error.diagnostic();
        assert_eq!(
            (found.message.as_str(), found.place.as_ref().map(|place| place.line())),
            (message, Some(line))
        );
    }
    let alone = "# Task\nDo it.\n## Example\n```yaml section\ntask_example: {outcome: Done., steps: [{tool: a, description: b}]}\n```\n";
    let error = project(alone).error("p", json!({}));
    assert_eq!(error.diagnostic().message, "task examples need their own section, without text");
}

#[test]
fn the_outcome_of_an_example_is_what_the_prompt_asks_for() {
    let text = |outcome: &str| {
        let front = "---\noutput: {verdict: {kind: string, required: true}, votes: {kind: integer}}\n---\n";
        let example = format!(
            "# E\n## Decide\n```yaml section\ntask_example: {{outcome: {outcome}, steps: [{{tool: ask, description: Ask}}]}}\n```\n"
        );
        format!(
            "{front}# T\n```yaml section\ntools: [{{name: ask, description: Asks.}}]\n```\nAsk.\n\n{example}"
        )
    };
    let shown = project(&text("{verdict: yes, votes: 3}")).text("p", json!({}));
    assert!(shown.ends_with("**Outcome:** {\"verdict\": \"yes\", \"votes\": 3}"), "{shown}");
    for wrong in ["Done", "{votes: 3}", "{verdict: yes, votes: many}", "{verdict: yes, more: 1}"] {
        let error = project(&text(wrong)).error("p", json!({}));
        assert_eq!(error.field("placeholder"), Some(&json!("outcome")), "{wrong}");
    }
}

#[test]
fn keys_without_effect_are_reported() {
    let text = |front: &str, settings: &str| format!("---\n{front}\n---\n{}", section(settings));
    for (front, settings, code, message) in [
        ("output: {container: array}", "", Code::BadSection, "`output` has no `properties`"),
        (
            "inputs: {n: {kind: integr}}",
            "enabled: n",
            Code::BadSection,
            "unknown kind `integr`: `n` accepts any value",
        ),
        ("", "skills: [\"\"]", Code::BadSection, "`skills[0]` has an empty name"),
        ("", "skills: [3]", Code::BadSection, "`skills[0]` must be a name, or a map with a `name`"),
        (
            "",
            "tools: [{name: open_sections, description: Mine.}]",
            Code::BadSection,
            "Cuebook itself adds a tool with the name `open_sections`",
        ),
        ("", "task_examples: [x]", Code::BadSection, "`task_examples[0]` must be a task example"),
    ] {
        let found = findings(&project(&text(front, settings)));
        let reported: Vec<(Code, &str)> =
            found.iter().map(|found| (found.code, found.message.as_str())).collect();
        assert!(reported.contains(&(code, message)), "{reported:?}");
        let found = found.iter().find(|found| found.message == message).unwrap();
        assert!(found.place.is_some() && found.hint.is_some(), "{found:?}");
    }
}

#[test]
fn a_render_as_json_shows_all_that_a_model_is_to_be_given() {
    let project = project(
        "---\noutput: {n: {kind: integer, required: true}}\n---\n# A\n```yaml section\nskills: [sums, {name: tables, source: lib/tables}]\n```\nAdd.\n",
    );
    let shown = project.render("p", json!({})).unwrap().to_json();
    assert_eq!(
        shown["skills"],
        json!([{"name": "sums", "source": "sums"}, {"name": "tables", "source": "lib/tables"}])
    );
    assert_eq!(shown["structured_output"]["container"], json!("object"));
    assert_eq!(shown["structured_output"]["schema"]["required"], json!(["n"]));
    assert_eq!(shown["sections"][0]["state"], json!("full"));
}

#[test]
fn many_stale_overrides_are_counted_not_listed() {
    let project = project(TOOL);
    overrides(&project, "latest", |json| {
        let entry = json!({"expected_hash": "0".repeat(64), "body": "x"});
        let many = (0..3000).map(|number| (format!("s{number}"), entry.clone())).collect();
        json["sections"] = Json::Object(many);
    });
    // All of it on one line, so that every excerpt would be as long as the file.
    let file = ".cuebook/overrides/prompts/p/latest.json";
    let json: Json = serde_json::from_str(&project.read(file)).unwrap();
    project.write(file, &json.to_string());
    let rendered = project.render("p", json!({})).unwrap();
    assert_eq!(rendered.notes().len(), 51);
    assert_eq!(rendered.notes()[50].message, "2950 more overrides are stale");
    assert_eq!(findings(&project).len(), 51);
}

#[test]
fn a_prompt_without_a_key_gets_a_hint_where_to_write_one() {
    let project = Project::new().file("prompts/概要.sections.md", "# A\nText.\n");
    let error = project.error("概要", json!({}));
    assert_eq!(error.diagnostic().message, "the id `概要` cannot become a key, which overrides need");
    assert_eq!(error.diagnostic().place.as_ref().unwrap().to_string(), "prompts/概要.sections.md:1:1");
    project.write("prompts/概要.sections.md", "---\nkey: overview\n---\n# A\nText.\n");
    assert_eq!(project.text("概要", json!({})), "# A\n\nText.");
}
