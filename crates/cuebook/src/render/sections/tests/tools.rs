//! Tools, their schemas and examples, and examples of tasks.

use serde_json::json;

use super::*;
use crate::chat::output::OutputSpec;
use crate::overrides::{TaskExample, TaskStep};

#[derive(Serialize, JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
    #[serde(default = "five")]
    limit: u32,
}

fn five() -> u32 {
    5
}

fn search() -> SectionTool {
    SectionTool::new("search", "Search the index.").unwrap().takes::<Search>().unwrap()
}

fn ping(name: &str) -> SectionTool {
    SectionTool::new(name, "Ping.").unwrap()
}

#[test]
fn tools_come_from_enabled_full_sections_in_order() {
    let hidden = summarized("b", [plain("c", []).tool(ping("c"))]).tool(ping("b"));
    let off = plain("d", []).tool(ping("d")).enabled_if(|| false);
    let tree =
        tree([plain("a", [hidden]).tool(search()).tool(ping("a")), off, plain("e", []).tool(ping("e"))]);
    let rendered = tree.render(&Setting::new(&[])).unwrap();
    assert_eq!(names(&rendered), ["search", "a", "e", "open_sections"]);
}

#[test]
fn a_schema_comes_from_the_rust_type_with_its_descriptions() {
    let tree = tree([plain("a", []).tool(search())]);
    let rendered = tree.render(&Setting::new(&[])).unwrap();
    let schema = rendered.schema_of(&rendered.tools[0]);
    assert_eq!(schema["properties"]["query"], json!({"type": "string", "description": "What to look for."}));
    assert_eq!((&schema["required"], &schema["additionalProperties"]), (&json!(["query"]), &json!(false)));
    assert_eq!(rendered.tools_json()[0]["parameters"], schema);
}

#[test]
fn names_of_tools_are_unique_and_ours_are_reserved() {
    let error =
        refused([plain("a", []).tool(ping("x")), plain("b", []).tool(ping("x")).enabled_if(|| false)]);
    assert_eq!(message(&error), "Duplicate tool name registered for prompt.");
    assert_eq!(error.field("section_path").unwrap(), &json!(["b"]));
    for name in super::super::disclosure::NAMES {
        let error = refused([plain("a", []).tool(ping(name))]);
        assert_eq!(message(&error), format!("Cuebook itself adds a tool with the name `{name}`"));
    }
}

#[test]
fn examples_follow_the_text_and_are_not_in_summaries() {
    let tool = search().example("find cats", json!({"query": "cats"}), json!({"hits": [1.0, null]})).unwrap();
    let section = plain("a", []).summary("short").tool(tool);
    let tree = tree([section]);
    let text = |setting: &Setting<'_>| tree.render(setting).unwrap().text().to_owned();
    let full = text(&Setting::new(&[]));
    assert!(
        full.starts_with("# a\n\na\n\nTools:\n- search: Search the index.\n  - search examples:\n"),
        "{full}"
    );
    assert!(full.contains("        {\"query\": \"cats\", \"limit\": 5}\n"), "{full}");
    let mut session = VisibilityOverrides::new();
    session.set(&path("a"), Visibility::Summary);
    assert!(!text(&Setting::new(&[]).session(&session)).contains("cats"));
}

#[test]
fn an_example_that_does_not_fit_its_tool_is_refused() {
    let tool = search().example("wrong", json!({"query": 3}), json!(null)).unwrap();
    let error = refused([plain("a", []).tool(tool)]);
    assert_eq!(message(&error), "an example does not fit the tool `search`");
    assert_eq!(error.field("cause").unwrap(), "the input: query: expected str");
    assert!(search().example("  ", json!(null), json!(null)).is_err());
}

#[test]
fn a_handler_travels_with_its_tool() {
    let tool = ping("echo").handled(|arguments| Ok(json!({"got": arguments})));
    let tree = tree([plain("a", []).tool(tool)]);
    let rendered = tree.render(&Setting::new(&[])).unwrap();
    let handler = rendered.tool("echo").unwrap().handler.clone().unwrap();
    assert_eq!(handler(&json!(1)).unwrap(), json!({"got": 1}));
}

#[test]
fn skills_count_as_tools() {
    let skill = || Skill::new("skills/review.md", None);
    let tree =
        tree([plain("a", []).skill(skill()), summarized("b", []).skill(Skill::new("skills/audit", None))]);
    let rendered = tree.render(&Setting::new(&[])).unwrap();
    let skills: Vec<&str> = rendered.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!((skills, names(&rendered)), (vec!["review"], vec!["open_sections"]));
    let error = refused([plain("a", []).skill(skill()), plain("b", []).skill(skill())]);
    assert_eq!(message(&error), "Duplicate skill name 'review' registered for prompt.");
}

fn example(tool: &str, outcome: serde_json::Value) -> TaskExample {
    let (tool, description) = (tool.to_owned(), "look".to_owned());
    let step = TaskStep { tool, description, input: json!({"query": "x"}), output: json!(null) };
    TaskExample { objective: "Find x".into(), outcome, steps: vec![step] }
}

fn listing(example: TaskExample) -> [Section; 2] {
    let example = Section::task_example("one", None, example).unwrap();
    [plain("a", []).tool(search()), Section::task_examples("te", "Examples", [example])]
}

#[test]
fn examples_of_tasks_are_sections() {
    let rendered = tree(listing(example("search", json!("ok")))).render(&Setting::new(&[])).unwrap();
    let wanted = "# a\n\na\n\n# Examples\n\n## Find x\n\n**Objective:** Find x\n\n**Steps:**\n\n1. **search** - look\n   - input:\n     ```json\n     {\"query\": \"x\", \"limit\": 5}\n     ```\n   - output:\n     ```\n     null\n     ```\n\n**Outcome:** ok";
    assert_eq!(rendered.text(), wanted);
}

#[test]
fn examples_of_tasks_speak_of_tools_and_outcomes_that_there_are() {
    let error = refused(listing(example("serch", json!("ok"))));
    assert_eq!(message(&error), "Unknown tool \"serch\" in task example step 0. Available tools: search.");
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `search`?"));
    let error = refused(listing(example("search", json!(1))));
    assert!(message(&error).ends_with("when prompt has no structured output. Got: int."), "{error}");
    let structured =
        |outcome| builder(listing(example("search", outcome))).output(OutputSpec::of::<Task>().unwrap());
    assert!(structured(json!({"goal": "g", "brief": true})).build().is_ok());
    let error = structured(json!("ok")).build().unwrap_err();
    assert_eq!(message(&error), "Task example outcome type mismatch. Expected: Task, got: str.");
    let empty = TaskExample { steps: Vec::new(), ..example("search", json!("")) };
    assert_eq!(message(&Section::task_example("k", None, empty).unwrap_err()), "steps must not be empty");
    let none = Section::task_examples("te", "T", []);
    assert_eq!(message(&refused([none])), "TaskExamplesSection requires at least one example");
}

#[test]
fn the_title_of_an_example_is_the_beginning_of_its_task() {
    let long = TaskExample { objective: "x".repeat(61), ..example("search", json!("")) };
    assert_eq!(Section::task_example("k", None, long).unwrap().title, "x".repeat(57) + "...");
}
