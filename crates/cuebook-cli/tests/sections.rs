//! Trees of sections on the command line: what is opened, remembered, explained and overridden.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use serde_json::{Value as Json, json};
use support::Project;

const GUIDE: &str = "---
inputs:
  who: {kind: string, default: Ada}
---
# Task
Hello $who.

# Handbook
```yaml section
summary: All rules.
visibility: summary
```
Rules follow.

## Style
```yaml section
summary: How to write.
visibility: summary
tools: [{name: find_rule, description: Looks a rule up.}]
```
Be brief.
";

fn guide() -> Project {
    let project = Project::new();
    project.write("prompts/guide.sections.md", GUIDE);
    project
}

/// Runs the command in a project: exit code, stdout, stderr.
fn cuebook(project: &Project, args: &[&str]) -> (i32, String, String) {
    let output = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path()).args(args).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn json(project: &Project, args: &[&str]) -> Json {
    let (_, stdout, stderr) = cuebook(project, args);
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}{stderr}"))
}

#[test]
fn a_session_keeps_opened_sections_of_good_renders() {
    let project = guide();
    let session = project.path().join("deep/session.json");
    let (code, text, _) =
        cuebook(&project, &["render", "guide", "--expand", "handbook", "--session", "deep/session.json"]);
    assert_eq!(code, 0);
    assert!(
        text.contains("Rules follow.") && text.contains("How to write.") && !text.contains("Be brief."),
        "{text}"
    );
    assert_eq!(
        serde_json::from_str::<Json>(&std::fs::read_to_string(&session).unwrap()).unwrap(),
        json!({"visibility": {"handbook": "full"}})
    );
    // Without --expand the file is read and left alone.
    let before = std::fs::read_to_string(&session).unwrap();
    let (_, again, _) = cuebook(&project, &["render", "guide", "--session", "deep/session.json"]);
    assert_eq!((again, std::fs::read_to_string(&session).unwrap()), (text, before.clone()));
    // A way that is closed is opened.
    let (_, deeper, _) = cuebook(&project, &["render", "guide", "--expand", "handbook.style"]);
    assert!(deeper.contains("Be brief."), "{deeper}");
    let failed =
        ["render", "guide", "--expand", "handbook.style", "--session", "deep/session.json", "--tag", "nope"];
    assert_eq!(cuebook(&project, &failed).0, 1);
    assert_eq!(std::fs::read_to_string(&session).unwrap(), before);
}

#[test]
fn a_section_that_is_not_there_comes_with_the_one_that_is() {
    let project = guide();
    let error = json(&project, &["render", "guide", "--expand", "handbook.stile", "--json"]);
    assert_eq!(
        (&error["error"]["code"], &error["error"]["nearest"][0]),
        (&json!("CB325"), &json!("handbook.style"))
    );
    project.write("prompts/p/template.md", "Hi");
    let (code, _, stderr) = cuebook(&project, &["render", "p", "--expand", "x"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("is not a section tree"), "{stderr}");
    project.write("bad.json", "{\"visibility\": {\"task\": \"half\"}}");
    let (code, _, stderr) = cuebook(&project, &["render", "guide", "--session", "bad.json"]);
    assert!(code == 1 && stderr.contains("bad.json:1:25"), "{stderr}");
}

#[test]
fn documents_show_the_tools_the_tree_and_why() {
    let project = guide();
    let rendered = json(&project, &["render", "guide", "--expand", "handbook.style", "--json"]);
    assert_eq!(
        rendered["tools"],
        json!([{"name": "find_rule", "description": "Looks a rule up.",
                "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}])
    );
    let explained = json(&project, &["explain", "guide", "--json"]);
    let states: Vec<(&str, &str)> = explained["sections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|section| (section["state"].as_str().unwrap(), section["why"].as_str().unwrap()))
        .collect();
    assert_eq!(states, [("full", "default"), ("summary", "default"), ("hidden", "below handbook")]);
    let (_, shown, _) = cuebook(&project, &["show", "guide"]);
    assert!(shown.contains("    2.1 Style  handbook.style  tools: find_rule"), "{shown}");
    let definition = json(&project, &["show", "guide", "--json"]);
    assert_eq!(definition["sections"][2]["path"], json!(["handbook", "style"]));
    assert_eq!(definition["tools"][0]["section"], json!(["handbook", "style"]));
    let listed = json(&project, &["list", "--json"]);
    let row = listed.as_array().unwrap().iter().find(|row| row["id"] == "guide").unwrap().clone();
    assert_eq!((&row["dialect"], &row["source"]), (&json!("sections"), &json!("prompts/guide.sections.md")));
    let (code, stdout, stderr) = cuebook(&project, &["check", "guide"]);
    assert_eq!((code, stdout.as_str()), (0, ""), "{stderr}");
}

#[test]
fn overrides_are_seeded_shown_used_and_deleted_by_tag() {
    let project = guide();
    assert_eq!(json(&project, &["overrides", "list", "--json"]), json!([]));
    let seeded = json(&project, &["overrides", "seed", "guide", "--tag", "kind", "--json"]);
    let file = ".cuebook/overrides/prompts/guide/kind.json";
    assert_eq!((&seeded["file"], &seeded["seeded"]), (&json!(file), &json!(true)));
    let again = json(&project, &["overrides", "seed", "guide", "--tag", "kind", "--json"]);
    assert_eq!(again["seeded"], false);
    let text = std::fs::read_to_string(project.path().join(file)).unwrap();
    project.write(file, text.replace("Hello $who.", "Dear $who!"));
    let (_, plain, _) = cuebook(&project, &["render", "guide"]);
    assert!(plain.contains("Hello Ada."), "another tag is not used: {plain}");
    let (_, kind, _) = cuebook(&project, &["render", "guide", "--tag", "kind"]);
    assert!(kind.contains("Dear Ada!"), "{kind}");
    let (_, shown, _) = cuebook(&project, &["overrides", "show", "guide", "--tag", "kind"]);
    assert!(
        shown.starts_with("section task\n  body: Dear $who!\nsection handbook, as the author wrote it\n"),
        "{shown}"
    );
    // What no longer fits is reported, and the rest is used.
    project.write("prompts/guide.sections.md", GUIDE.replace("Rules follow.", "Rules:"));
    let (code, kind, stderr) = cuebook(&project, &["render", "guide", "--tag", "kind"]);
    assert!(code == 0 && kind.contains("Dear Ada!") && stderr.contains("warning[CB211]"), "{kind}{stderr}");
    let shown = json(&project, &["overrides", "show", "guide", "--tag", "kind", "--json"]);
    assert_eq!(shown["stale"][0]["code"], "CB211");
    assert_eq!(cuebook(&project, &["overrides", "delete", "guide", "--tag", "kind"]).0, 0);
    assert_eq!(cuebook(&project, &["overrides", "delete", "guide", "--tag", "kind"]).0, 1);
    assert!(!project.path().join(file).exists());
    project.write("prompts/p/template.md", "Hi");
    assert_eq!(cuebook(&project, &["overrides", "seed", "p"]).0, 2);
}

#[test]
fn a_name_of_two_sections_opens_both() {
    let project = Project::new();
    let closed =
        |key: &str| format!("```yaml section\nkey: {key}\nsummary: Short.\nvisibility: summary\n```\n");
    let text = format!(
        "# One\n{}First.\n# Two\n```yaml section\nkey: a\n```\n## Three\n{}Second.\n# Off\n```yaml section\nenabled: false\n```\nGone.\n",
        closed("a.b"),
        closed("b")
    );
    project.write("prompts/two.sections.md", &text);
    let (code, shown, _) = cuebook(&project, &["render", "two", "--expand", "a.b", "--session", "s.json"]);
    assert_eq!(code, 0);
    assert!(shown.contains("First.") && shown.contains("Second."), "{shown}");
    assert_eq!(
        serde_json::from_str::<Json>(&std::fs::read_to_string(project.path().join("s.json")).unwrap())
            .unwrap(),
        json!({"visibility": {"a.b": "full", "a": "full", "a/b": "full"}})
    );
    let (code, shown, reported) = cuebook(&project, &["render", "two", "--expand", "off"]);
    assert_eq!(code, 0);
    assert!(!shown.contains("Gone."));
    assert_eq!(reported, "warning: --expand off has no effect: the section is disabled (default)\n");
}

#[test]
fn hints_about_unknown_sections_stay_short() {
    let project = Project::new();
    let text: String = (0..5000).map(|number| format!("# S{number}\n")).collect();
    project.write("prompts/large.sections.md", &text);
    let (code, _, reported) = cuebook(&project, &["render", "large", "--expand", "qqqqqq"]);
    assert_eq!(code, 1);
    assert!(reported.contains(" and 4980 more") && reported.len() < 1000, "{reported}");
}

#[test]
fn overrides_show_says_everything_that_a_file_changes() {
    let project = Project::new();
    let text = "# Tools\n```yaml section\ntools: [{name: find, description: Finds.}]\n```\nFind.\n# Examples\n## Look\n```yaml section\ntask_example: {outcome: Found., steps: [{tool: find, description: Look}]}\n```\n";
    project.write("prompts/shop.sections.md", text);
    let (code, _, reported) = cuebook(&project, &["overrides", "seed", "shop", "--tag", " short "]);
    assert_eq!(code, 0);
    assert!(reported.starts_with(".cuebook/overrides/prompts/shop/short.json has the text of"), "{reported}");
    let file = project.path().join(".cuebook/overrides/prompts/shop/short.json");
    let mut overrides: Json = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    overrides["tools"]["find"]["example_overrides"] = json!([{"action": "append", "description": "More"}]);
    overrides["task_example_overrides"] = json!([{
        "path": ["examples"], "action": "append", "objective": "Look again", "outcome": "Found.",
        "steps_to_append": [{"tool_name": "find", "description": "Look"}],
    }]);
    std::fs::write(&file, overrides.to_string()).unwrap();
    let (code, shown, _) = cuebook(&project, &["overrides", "show", "shop", "--tag", "short"]);
    assert_eq!(code, 0);
    assert!(
        shown.ends_with("tool find: Finds.\n  1 changed example\ntask example examples: one is added\n"),
        "{shown}"
    );
    let shown = json(&project, &["overrides", "show", "shop", "--tag", "short", "--json"]);
    assert_eq!(shown["task_examples"], json!([{"path": ["examples"], "action": "append"}]));
}

const DESK: &str = "---
model: {id: gpt-4o}
output: {properties: {answer: {kind: string, description: What to say to the customer}}}
---
# Task
Answer the letter.

# History
```yaml section
summary: Much was said.
priority: -1
tools: [{name: find_letter, description: Finds an earlier letter by its number and the day on which it came.}]
```
There were many letters before this one, and each of them was about kettles, cups and tea in all their kinds.

# Manners
```yaml section
summary: Be kind.
priority: 5
```
Be kind, be brief, and never promise what the shop cannot do, whatever the letter asks for.
";

#[test]
fn a_budget_covers_the_whole_request() {
    let project = Project::new();
    project.write("prompts/desk.sections.md", DESK);
    let whole = json(&project, &["tokens", "desk", "--json"]);
    let total = whole["total"].as_u64().unwrap();
    // The text alone would fit.
    let budget = total - 1;
    assert!(whole["text"].as_u64().unwrap() < budget);
    let fit = budget.to_string();
    let (code, stdout, stderr) = cuebook(&project, &["render", "desk", "--fit", &fit]);
    assert_eq!(code, 0, "{stderr}");
    // Its summary would need a tool that opens it, which is longer than the section.
    assert!(!stdout.contains("kettles") && stdout.contains("never promise"), "{stdout}");
    assert!(stderr.contains(&format!("of {budget} tokens (text ")), "{stderr}");
    assert!(stderr.contains(&format!(", {total} before")), "{stderr}");
    assert!(stderr.contains("history  dropped  priority -1, "), "{stderr}");
    let counted = json(&project, &["tokens", "desk", "--fit", &fit, "--json"]);
    let document = json(&project, &["render", "desk", "--fit", &fit, "--json"]);
    let account = &document["fit"];
    assert_eq!((&account["tokens"], &account["before"]), (&counted["total"], &json!(total)));
    assert_eq!((&account["text"], &account["output"]), (&counted["text"], &counted["output"]));
    assert!(account["tokens"].as_u64().unwrap() <= budget);
    // Nothing to drop, nothing to say.
    let (_, _, stderr) = cuebook(&project, &["render", "desk", "--fit", &total.to_string()]);
    assert_eq!(stderr, "");
}

#[test]
fn a_section_that_goes_takes_its_tools_with_it() {
    let project = Project::new();
    let tool =
        |number| format!("{{name: find_letter_{number}, description: Finds an earlier letter by its day.}}");
    let tools = (0..9).map(tool).collect::<Vec<_>>().join(", ");
    project.write(
        "prompts/desk.sections.md",
        format!(
            "---\nmodel: {{id: gpt-4o}}\n---\n# Task\nAnswer.\n\n# Letters\n```yaml section\npriority: -1\ntools: [{tools}]\n```\nLook for earlier letters.\n"
        ),
    );
    let whole = json(&project, &["tokens", "desk", "--json"]);
    assert!(whole["total"].as_u64().unwrap() > 200, "{whole}");
    let fitted = json(&project, &["render", "desk", "--fit", "100", "--json"]);
    assert_eq!((&fitted["text"], &fitted["tools"]), (&json!("# Task\n\nAnswer."), &json!([])));
    let error = json(&project, &["render", "desk", "--fit", "3", "--json"]);
    assert_eq!(error["error"]["code"], "CB510", "{error}");
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("after dropping every optional section; the budget is 3"), "{message}");
}

#[test]
fn the_page_of_a_tree_shows_sections_and_budget() {
    let project = Project::new();
    project.write("prompts/desk.sections.md", DESK);
    let total = json(&project, &["tokens", "desk", "--json"])["total"].as_u64().unwrap();
    let fit = (total - 1).to_string();
    let (code, page, stderr) = cuebook(&project, &["explain", "desk", "--fit", &fit, "--html"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(page.contains("<h2>Budget</h2>") && page.contains(&format!(" of {fit} tokens: ")), "{page}");
    assert!(page.contains("<td>history</td><td>dropped</td><td>-1</td>"), "{page}");
    assert!(page.contains("<td>history</td><td>2 History</td><td>dropped</td><td>budget</td>"), "{page}");
    assert!(page.contains("<td>manners</td><td>3 Manners</td><td>full</td>"), "{page}");
}
