//! What a model gets about summaries, and what its calls come to.

use serde_json::{Value as Json, json};

use super::super::disclosure::{MAX_EXPANSIONS, Turn, disclose, expand};
use super::*;
use crate::error::ErrorKind;

fn ping() -> SectionTool {
    SectionTool::new("ping", "Ping.").unwrap()
}

/// `a` brings a tool below it, `b` does not, `c` is open and `off` is not there.
fn prompt() -> Tree {
    tree([
        summarized("a", [summarized("k", []).tool(ping())]),
        summarized("b", [plain("x", []), summarized("y", [])]),
        plain("c", []),
        summarized("off", [summarized("below", [])]).enabled_if(|| false),
    ])
}

fn open(tree: &Tree, arguments: Json) -> Error {
    match tree.open_sections(&arguments, &Setting::new(&[])) {
        Err(error) => error,
    }
}

fn read(tree: &Tree, arguments: Json) -> Result<String, String> {
    tree.read_section(&arguments, &Setting::new(&[])).map_err(|error| message(&error).to_owned())
}

#[test]
fn a_summary_names_the_tools_that_open_it() {
    let rendered = prompt().render(&Setting::new(&[])).unwrap();
    assert_eq!(names(&rendered), ["open_sections", "read_section"]);
    let wanted = "# a\n\nshort a\n\n---\n[This section is summarized. Call `open_sections` with key \"a\" to view full content including subsections: k.]\n\n# b";
    assert!(rendered.text().starts_with(wanted), "{}", rendered.text());
}

#[test]
fn a_section_without_summary_shows_heading_and_hint() {
    let rendered = tree([plain("a", []).visible(Visibility::Summary)]).render(&Setting::new(&[])).unwrap();
    let wanted =
        "# a\n\n---\n[This section is summarized. To view full content, call `read_section` with key \"a\".]";
    assert_eq!(rendered.text(), wanted);
}

#[test]
fn opening_asks_for_a_new_render_with_what_is_still_closed() {
    let error = open(&prompt(), json!({"section_keys": ["c", "b", "a.k", "b"], "reason": "more"}));
    assert_eq!(error.kind(), ErrorKind::VisibilityExpansionRequired);
    assert_eq!(message(&error), "Visibility expansion required for sections: b, a.k. Reason: more");
    assert_eq!(error.field("requested_overrides").unwrap(), &json!({"b": "full", "a/k": "full"}));
    assert_eq!(error.field("section_keys").unwrap(), &json!(["c", "b", "a.k", "b"]));
    let mut session = VisibilityOverrides::new();
    expand(&error, &mut session);
    assert_eq!(session.get(&path("a.k")), Some(Visibility::Full));
    let tree = prompt();
    let rendered = tree.render(&Setting::new(&[]).session(&session)).unwrap();
    assert!(rendered.text().contains("# b\n\nb\n\n## x\n\nx\n\n## y\n\nshort y\n"), "{}", rendered.text());
    assert!(rendered.text().contains("short a"), "what stands above decides");
}

#[test]
fn the_names_of_the_arguments_in_the_seed_work_as_well() {
    let tree = prompt();
    let error = open(&tree, json!({"sections": ["a"]}));
    assert_eq!(error.kind(), ErrorKind::VisibilityExpansionRequired);
    assert_eq!(message(&error), "Visibility expansion required for sections: a.");
    assert_eq!(read(&tree, json!({"section": "b.y"})).unwrap(), "## y\n\ny");
}

#[test]
fn sections_that_cannot_be_opened_or_read_get_clear_answers() {
    let tree = prompt();
    let opening = |keys: Json| message(&open(&tree, json!({"section_keys": keys, "reason": "r"}))).to_owned();
    assert_eq!(opening(json!([])), "At least one section key must be provided.");
    assert_eq!(opening(json!(["a", "nope"])), "Section 'nope' does not exist in this prompt.");
    assert_eq!(opening(json!(["c"])), "Section 'c' is already expanded.");
    assert_eq!(opening(json!(["c", "b.x"])), "All requested sections are already expanded: 'c', 'b.x'");
    assert_eq!(opening(json!(["off"])), "Section 'off' is not enabled.");
    assert_eq!(opening(json!(["off.below"])), "Section 'off.below' is not enabled.");
    assert_eq!(opening(json!("a")), "section_keys: expected sequence");
    let reading = |arguments: Json| read(&tree, arguments).unwrap_err();
    assert_eq!(reading(json!({"section_key": "c"})), "Section 'c' is not summarized.");
    assert_eq!(reading(json!({"section_key": "of"})), "Section 'of' does not exist in this prompt.");
    assert_eq!(reading(json!({"section_key": "off"})), "Section 'off' is not enabled.");
    assert_eq!(reading(json!({})), "Missing required field: 'section_key'");
    let near = open(&tree, json!({"section_keys": ["of"], "reason": ""}));
    assert_eq!(near.diagnostic().hint.as_deref(), Some("did you mean `off`?"));
}

#[test]
fn reading_shows_the_whole_section_and_what_is_below_as_it_is() {
    let text = read(&prompt(), json!({"section_key": "b"})).unwrap();
    let wanted = "# b\n\nb\n\n## x\n\nx\n\n## y\n\nshort y\n\n---\n[This section is summarized. To view full content, call `read_section` with key \"b.y\".]";
    assert_eq!(text, wanted);
}

#[test]
fn a_child_that_is_read_names_the_tool_for_its_own_tools() {
    let tree = tree([summarized("p", [summarized("k", [plain("kk", []).tool(ping())])])]);
    let text = read(&tree, json!({"section_key": "p"})).unwrap();
    assert!(text.contains("Call `read_section` with key \"p.k\""), "{text}");
}

#[test]
fn keys_with_dots_are_found_and_one_name_may_mean_two_sections() {
    let tree = tree([summarized("a.b", [summarized("c.d", [])]), plain("a", [summarized("b", [])])]);
    assert_eq!(read(&tree, json!({"section_key": "a.b.c.d"})).unwrap(), "## c.d\n\nc.d");
    let both = read(&tree, json!({"section_key": "a.b"})).unwrap();
    assert!(both.starts_with("# a.b\n\na.b\n\n## c.d\n") && both.ends_with("\n\n## b\n\nb"), "{both}");
    let error = open(&tree, json!({"section_keys": ["a.b"], "reason": ""}));
    assert_eq!(error.field("requested_overrides").unwrap(), &json!({"a.b": "full", "a/b": "full"}));
    assert_eq!(tree.find("a.b").unwrap().path, ["a.b"]);
}

/// A model that makes these calls and then says what it sees.
fn conversation(tree: &Tree, calls: Vec<(&str, Json)>) -> (crate::error::Result<String>, Vec<String>) {
    let mut calls = calls.into_iter();
    let mut reported = Vec::new();
    let mut session = VisibilityOverrides::new();
    let result = disclose(tree, &Setting::new(&[]), &mut session, |prompt, answer| {
        reported.extend(answer.map(|answer| answer.text.clone()));
        Ok(match calls.next() {
            Some((name, arguments)) => Turn::Call { name: name.to_owned(), arguments },
            None => Turn::Done(prompt.text().to_owned()),
        })
    });
    (result, reported)
}

#[test]
fn the_loop_renders_again_after_sections_open() {
    let tree = prompt();
    let (text, reported) = conversation(
        &tree,
        vec![
            ("read_section", json!({"section_key": "b.y"})),
            ("open_sections", json!({"section_keys": ["a"], "reason": "r"})),
            ("open_sections", json!({"section_keys": ["nope"], "reason": "r"})),
            ("open_sections", json!({"section_keys": ["b"]})),
            ("open_sections", json!({"section_keys": ["a.k", "b"], "reason": "r"})),
        ],
    );
    assert!(text.unwrap().starts_with("# a\n\na\n\n## k\n\nk\n\n# b\n\nb\n\n## x"));
    let wanted = [
        "## y\n\ny",
        "Sections expanded: a. The prompt will be re-rendered with the full content of the requested sections.",
        "Error: Section 'nope' does not exist in this prompt.",
        "Sections expanded: b. The prompt will be re-rendered with the full content of the requested sections.",
        "Sections expanded: a.k, b. The prompt will be re-rendered with the full content of the requested sections.",
    ];
    assert_eq!(reported, wanted);
    let (failed, _) = conversation(&tree, vec![("ping", json!({}))]);
    assert_eq!(message(&failed.unwrap_err()), "unknown tool `ping` for sections");
}

#[test]
fn the_loop_gives_up_after_too_many_expansions() {
    let keys: Vec<String> = (0..=MAX_EXPANSIONS).map(|number| format!("s{number}")).collect();
    let tree = tree(keys.iter().map(|key| summarized(key, [])));
    let call = |key: &String| ("open_sections", json!({"section_keys": [key], "reason": "r"}));
    let (ten, _) = conversation(&tree, keys[1..].iter().map(call).collect());
    assert!(ten.is_ok());
    let (eleven, _) = conversation(&tree, keys.iter().map(call).collect());
    let error = eleven.unwrap_err();
    assert_eq!(
        (error.kind(), message(&error)),
        (ErrorKind::Limit, "Visibility expansion retries exceeded (10)")
    );
}

#[test]
fn the_loop_keeps_the_session_of_the_host() {
    struct Host;
    impl Session for Host {
        fn visibility(&self, of: &[String]) -> Option<Visibility> {
            (*of == path("b")).then_some(Visibility::Full)
        }
        fn as_any(&self) -> &dyn std::any::Any {
            self
        }
    }
    let knows = |session: Option<&dyn Session>| session.is_some_and(|session| session.as_any().is::<Host>());
    let tree = tree([summarized("a", []).enabled_if(knows), summarized("b", [])]);
    let mut session = VisibilityOverrides::new();
    session.set(&path("a"), Visibility::Full);
    let setting = Setting::new(&[]).session(&Host);
    let text = disclose(&tree, &setting, &mut session, |prompt, _| Ok(Turn::Done(prompt.text().to_owned())));
    assert_eq!(text.unwrap(), "# a\n\na\n\n# b\n\nb");
}

#[test]
fn opening_a_section_opens_its_parents() {
    let open = |keys: Json| ("open_sections", json!({"section_keys": keys, "reason": "r"}));
    let (text, reported) = conversation(&prompt(), vec![open(json!(["a.k"]))]);
    let text = text.unwrap();
    assert!(text.starts_with("# a\n\na\n\n## k\n\nk\n"), "{text}");
    assert!(reported[0].starts_with("Sections expanded: a.k."), "{reported:?}");
    // It is open itself, and hidden all the same.
    let (text, reported) = conversation(&prompt(), vec![open(json!(["b.x"])), open(json!(["b.x"]))]);
    assert!(text.unwrap().contains("# b\n\nb\n\n## x\n\nx\n"));
    assert_eq!(reported[1], "Error: Section 'b.x' is already expanded.");
    let (_, reported) = conversation(&prompt(), vec![open(json!(["a", "nope"])), open(json!([]))]);
    assert_eq!(
        reported,
        [
            "Error: Section 'nope' does not exist in this prompt.",
            "Error: At least one section key must be provided."
        ]
    );
}
