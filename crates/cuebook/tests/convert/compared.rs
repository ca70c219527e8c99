//! What was reported to be lost keeps nothing else from being compared.

use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn::{self, Directive, Prompty, Sections, Template};
use cuebook_lab::convert::{Conversion, Target};

use crate::support::Project;

fn converted(files: &[(&str, &str)], to: BuiltIn) -> Conversion {
    let project = files.iter().fold(Project::new(), |project, (path, text)| project.file(path, text));
    project.book().convert("p", &Target::new(to)).unwrap_or_else(|error| panic!("{to:?}: {error}"))
}

/// Asserts that renders were compared, and what did not count there.
#[track_caller]
fn compared(conversion: &Conversion, without: &[&str]) {
    assert!(conversion.compared >= 3 && conversion.uncompared.is_none(), "{conversion:#?}");
    assert_eq!(conversion.compared_without, without, "{:#?}", conversion.report);
    let reported = |entry: &cuebook_lab::convert::Entry| entry.finding.message.contains("differs");
    assert!(!conversion.report.entries.iter().any(reported), "{:#?}", conversion.report);
}

fn directive(inputs: &str, body: &str) -> String {
    format!(
        "```xml\n<directive name=\"p\"><metadata><category/></metadata>{inputs}</directive>\n```\n{body}\n"
    )
}

#[test]
fn a_prompt_with_hooks_is_compared_without_them() {
    let files = [
        ("prompts/p/template.md", "# Task\n\nGreet {{ who }} now.\n"),
        ("prompts/p/prompt.py", "def post_render(text, variables, context):\n    return text.upper()\n"),
    ];
    for to in [Prompty, Sections, Directive] {
        let conversion = converted(&files, to);
        let reported = conversion.report.losses().any(|entry| entry.about == "hooks");
        assert!(reported, "{:#?}", conversion.report);
        assert!(conversion.compared_without.contains(&"hooks and providers did not run".to_owned()));
        assert!(conversion.compared >= 3, "{conversion:#?}");
    }
}

#[test]
fn sections_with_summaries_are_compared_in_full() {
    let text = "---\ninputs: {who: {kind: string, required: true}}\n---\n# Task\n\nGreet $who now.\n\n## More\n```yaml section\nsummary: In short.\nvisibility: summary\n```\nAll of it, $who.\n";
    for to in [Template, Prompty, Directive] {
        let conversion = converted(&[("prompts/p.sections.md", text)], to);
        compared(&conversion, &["every section was shown in full"]);
    }
}

#[test]
fn the_environment_does_not_affect_a_comparison() {
    let text = directive("", "Go {env:PATH:home} now.");
    for to in [Template, Prompty] {
        compared(&converted(&[(".ai/directives/p.md", &text)], to), &["the environment was empty"]);
    }
}

#[test]
fn a_differing_value_is_masked_in_the_comparison() {
    let files = [
        ("prompts/p/template.md", "On: {{ flag }}, {{ who }}.\n"),
        (
            "prompts/p/prompt.py",
            "VARIABLES = {\"required\": [{\"name\": \"flag\", \"type\": \"boolean\"}, {\"name\": \"who\", \"type\": \"string\"}]}\n",
        ),
    ];
    compared(&converted(&files, Directive), &["`flag` was compared, but not how its value prints"]);
    let text = "---\ninputs:\n  photo: {kind: image}\n  who: {kind: string, required: true}\n---\nuser:\nSee {{ photo }}, {{ who }}.\n";
    compared(&converted(&[("prompts/p.prompty", text)], Template), &["`photo` was ignored"]);
}

#[test]
fn an_unwritten_default_is_compared_with_a_value() {
    let text = "---\ninputs:\n  key: {kind: string, default: \"${env:PATH}\"}\n---\nUse {{ key }} now.\n";
    let project = Project::new().file("prompts/p.prompty", text);
    project.allow();
    compared(&project.book().convert("p", &Target::new(Template)).unwrap(), &["`key` had a value"]);
    let text = directive("<inputs><input name=\"a\"/></inputs>", "Say {input:a}, {{ or }} not.");
    let files = [("prompts/p/template.md", "Say {% raw %}{{{% endraw %} {{ a }}.\n")];
    assert_eq!(converted(&files, Directive).uncompared, None);
    compared(&converted(&[(".ai/directives/p.md", &text)], Prompty), &[]);
}

#[test]
fn html_escapes_are_compared_with_plain_words() {
    let text = "---\ntemplate: {format: {kind: mustache}}\ninputs: {who: {kind: string, required: true}}\n---\nHi {{who}}, {{{who}}}.\n";
    compared(&converted(&[("prompts/p.prompty", text)], Template), &["values without HTML"]);
}

#[test]
fn section_edge_white_space_is_reported() {
    let files = [("prompts/p/template.md", "# A\n\n{% if x %}One.{% endif %} Two.\n\n## B\n\nThree.\n")];
    let conversion = converted(&files, Sections);
    let reported =
        |entry: &cuebook_lab::convert::Entry| entry.finding.message.contains("at the edge of a section");
    assert!(conversion.report.losses().any(reported), "{:#?}", conversion.report);
    assert!(conversion.compared_without.contains(&"whitespace was ignored".to_owned()));
    assert!(conversion.compared >= 3, "{conversion:#?}");
}

#[test]
fn values_that_an_input_may_have_are_used_for_comparisons() {
    let text = "---\ninputs:\n  size: {kind: string, required: true, enumValues: [s, m]}\n---\n# Task\n\nTake {{ size }} now.\n";
    compared(&converted(&[("prompts/p.prompty", text)], Sections), &[]);
}

#[test]
fn failed_renders_are_not_reported_as_equal() {
    // A number has no items, whatever the values are.
    let text = "# Task\n\nTake {{ who }}{% for x in 5 %}{{ x }}{% endfor %} now.\n";
    let conversion = converted(&[("prompts/p/template.md", text)], Prompty);
    assert_eq!(conversion.compared, 0, "{conversion:#?}");
    let why = conversion.uncompared.unwrap();
    assert!(why.starts_with("not compared: the test values do not fit: "), "{why}");
    let noted = conversion.report.entries.iter().any(|entry| entry.about == "check");
    assert!(noted, "{:#?}", conversion.report);
}

#[test]
fn project_overrides_are_reported_and_not_compared() {
    let project = Project::new().file("prompts/p.sections.md", "# Task\n\nGreet them.\n");
    let convert = || project.book().convert("p", &Target::new(Template)).unwrap();
    compared(&convert(), &[]);
    assert!(convert().report.is_lossless());
    let book = project.book();
    let prepared = book.prepare("p", &cuebook::Context::default()).unwrap();
    let tree = prepared.tree().unwrap();
    let store = cuebook::overrides::Store::of_project(&project.path("")).unwrap();
    store.seed(tree.descriptor(), "latest", &tree.originals()).unwrap();
    let file = project.path(".cuebook/overrides/prompts/p/latest.json");
    let words = std::fs::read_to_string(&file).unwrap().replace("Greet them", "Ignore them");
    std::fs::write(&file, words).unwrap();
    assert!(project.text("p", serde_json::json!({})).contains("Ignore them"));
    let conversion = convert();
    compared(&conversion, &[]);
    assert!(conversion.files[0].text.contains("Greet them"), "{}", conversion.files[0].text);
    let reported: Vec<&str> =
        conversion.report.losses().map(|entry| entry.finding.message.as_str()).collect();
    assert_eq!(reported, ["the project's overrides are left out: latest"]);
}
