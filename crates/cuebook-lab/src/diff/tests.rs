use serde_json::json;

use super::*;
use crate::book::Book;
use crate::error::Result;
use crate::variables::{Context, Variables};

struct Project(tempfile::TempDir);

impl Project {
    fn new(files: &[(&str, &str)]) -> Project {
        let project = Project(tempfile::tempdir().unwrap());
        for (path, text) in files {
            let path = project.0.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        project
    }

    fn diff(&self, before: &str, after: &str, values: &[(&str, &str)]) -> Diff {
        self.try_diff(before, after, values).unwrap()
    }

    fn try_diff(&self, before: &str, after: &str, values: &[(&str, &str)]) -> Result<Diff> {
        let book = Book::open(self.0.path()).with_paths(true);
        let (context, clock) = (Context::default(), stopped_clock());
        let variables =
            values.iter().fold(Variables::new(), |variables, (name, value)| variables.set(*name, *value));
        let find = |wanted: &str| -> Result<Version<'static>> {
            let path = self.0.path().join(wanted);
            let wanted = if path.exists() { path.to_string_lossy().into_owned() } else { wanted.to_owned() };
            let version = Version::find(&book, &wanted, &context, &clock)?;
            Ok(version.with(variables.clone(), context.clone()))
        };
        Ok(compare(&find(before)?, &find(after)?))
    }
}

fn changes(diff: &Diff) -> Vec<String> {
    let detail = |detail: &Detail| {
        let value = |value: &Option<serde_json::Value>| value.as_ref().map_or("-".into(), |v| v.to_string());
        format!(" {}: {} {}", detail.path, value(&detail.before), value(&detail.after))
    };
    let line = |entry: &Entry| {
        let details: String = match entry.kind {
            Kind::Changed => entry.details.iter().map(detail).collect(),
            _ => String::new(),
        };
        format!("{} {}{}{details}", entry.aspect.as_str(), entry.kind.sign(), entry.name)
    };
    diff.entries.iter().map(line).collect()
}

fn lines(diff: &Diff) -> Vec<String> {
    let line = |line: &Line| {
        let origin = line.origin.as_ref().map(|origin| format!(" <- {origin}")).unwrap_or_default();
        format!("{}{}{origin}", line.change.sign(), line.text)
    };
    diff.text.iter().map(line).collect()
}

const ONE: &str = "---\nname: a\nmodel: {id: gpt-4o, options: {temperature: 0.1}, connection: {kind: key, apiKey: sk-first}}\n\
    inputs:\n  who: {kind: string, required: true}\n  gone: {kind: string}\n\
    tools:\n  - {name: find, kind: function, parameters: [{name: a, kind: string}]}\n  - {name: old, kind: function}\n\
    outputs:\n  answer: {kind: string}\n---\nsystem:\nHi {{who}}.\n\nuser:\nGo.\n";

#[test]
fn declarations_of_two_files_are_compared_by_name() {
    let two = ONE
        .replace("0.1", "0.9")
        .replace("sk-first", "sk-second")
        .replace("who: {kind: string, required: true}", "who: {kind: integer, default: 3}")
        .replace("  gone: {kind: string}\n", "")
        .replace("parameters: [", "description: Finds., parameters: [{name: b, kind: integer}, ")
        .replace("{name: old,", "{name: new,")
        .replace("answer: {kind: string}", "answer: {kind: array, items: {kind: string}}")
        .replace("user:\nGo.", "assistant:\nYes.\n\nuser:\nGo.");
    let project = Project::new(&[("one.prompty", ONE), ("two.prompty", &two)]);
    let diff = project.diff("one.prompty", "two.prompty", &[("who", "Ada")]);
    let found = changes(&diff);
    for wanted in [
        "variables ~who need: \"required\" \"optional\" type: \"string\" \"integer\" default: - 3",
        "variables -gone",
        "model ~options temperature: 0.1 0.9",
        "tools ~find description: - \"Finds.\" parameters.b.kind: - \"integer\"",
        "tools -old",
        "tools +new",
        "roles ~messages : [\"system\",\"user\"] [\"system\",\"assistant\",\"user\"]",
    ] {
        assert!(found.iter().any(|line| line.starts_with(wanted)), "{wanted}: {found:#?}");
    }
    assert!(found.iter().any(|line| line.starts_with("outputs ~answer")), "{found:#?}");
    // The report says that a key was changed, and not the key.
    let all = diff.to_json().to_string();
    let connection = diff.entries.iter().find(|entry| entry.name == "connection").unwrap();
    assert!(connection.details.iter().any(|detail| detail.path == "apiKey" && detail.is_secret));
    assert!(!all.contains("sk-first") && !all.contains("sk-second"), "{all}");
}

#[test]
fn clock_and_nonces_make_no_difference() {
    let text = "---\ninputs: {photo: {kind: image}}\n---\nuser:\nLook at {{photo}} {{system.time}}\n";
    let project = Project::new(&[("one.prompty", text), ("two.prompty", text)]);
    let diff = project.diff("one.prompty", "two.prompty", &[("photo", "https://example.com/a.png")]);
    // Their names are those of their files.
    assert_eq!(changes(&diff), ["about ~name : \"one\" \"two\""]);
    assert!(diff.text.is_empty() && diff.basis == Basis::Rendered);
    assert!(project.diff("one.prompty", "one.prompty", &[]).is_same());
}

#[test]
fn lines_know_where_they_came_from_on_both_sides() {
    let project = Project::new(&[
        ("prompts/a/template.md", "Hi {{ who }}!\n{% include 'partials/one.md' %}\nBye.\n"),
        ("prompts/b/template.md", "Hi {{ who }}?\n{% include 'partials/two.md' %}\nBye.\n"),
        ("prompts/partials/one.md", "One."),
        ("prompts/partials/two.md", "Two."),
    ]);
    let diff = project.diff("a", "b", &[("who", "Ada")]);
    assert_eq!(
        lines(&diff),
        [
            "-Hi Ada! <- prompts/a/template.md:1",
            "-One. <- prompts/partials/one.md:1",
            "+Hi Ada? <- prompts/b/template.md:1",
            "+Two. <- prompts/partials/two.md:1",
            " Bye."
        ]
    );
    assert_eq!(diff.lines(), (2, 2));
}

#[test]
fn missing_values_get_the_same_substitute_on_both_sides() {
    let with = |variable: &str| {
        format!(
            "---\ninputs: {{who: {variable}, n: {{kind: integer, required: true}}}}\n---\nsystem:\nHi {{{{who}}}} {{{{n}}}} {{{{more}}}}\n"
        )
    };
    let (one, two) = (with("{kind: string, required: true}"), with("{kind: string, default: Bo}"));
    let project = Project::new(&[("one.prompty", &one), ("two.prompty", &two)]);
    for (before, after) in [("one.prompty", "two.prompty"), ("two.prompty", "one.prompty")] {
        let diff = project.diff(before, after, &[]);
        assert_eq!((diff.basis, diff.text.len()), (Basis::Placeholders, 0), "{:?}", lines(&diff));
        for side in [&diff.before, &diff.after] {
            let assumed: Vec<_> =
                side.assumed.iter().map(|known| (known.name.as_str(), &known.value)).collect();
            assert!(assumed.contains(&("who", &json!("‹who›"))) && assumed.contains(&("n", &json!(1))));
            assert_eq!(side.absent, ["more"]);
        }
    }
    let diff = project.diff("one.prompty", "two.prompty", &[("who", "Ada")]);
    assert_eq!(diff.before.assumed.len(), 1);
}

#[test]
fn changes_of_sections_are_reported_even_if_hidden() {
    let one =
        "# Task\nDo $thing.\n\n# More\n```yaml section\nsummary: Short.\nvisibility: summary\n```\nLong.\n";
    let two = one.replace("Long.", "Longer.").replace("# Task", "# The task {#task}");
    let three = one.replace("visibility: summary\n", "");
    let project =
        Project::new(&[("one.sections.md", one), ("two.sections.md", &two), ("three.sections.md", &three)]);
    let diff = project.diff("one.sections.md", "two.sections.md", &[]);
    assert_eq!(diff.basis, Basis::Placeholders, "{:?}", diff.before.failure);
    let found = changes(&diff);
    assert!(found.contains(&"sections ~more text: \"Long.\" \"Longer.\"".to_owned()), "{found:#?}");
    let diff = project.diff("one.sections.md", "three.sections.md", &[("thing", "it")]);
    let found = changes(&diff);
    assert!(found.iter().any(|line| line.starts_with("sections ~more state: ")), "{found:#?}");
    assert!(lines(&diff).iter().any(|line| line.starts_with("+Long.")), "{:?}", lines(&diff));
}

#[test]
fn a_version_that_cannot_be_rendered_is_compared_by_its_files() {
    let project = Project::new(&[
        ("prompts/a/template.md", "{{ 1 / zero }} one\n"),
        ("prompts/b/template.md", "{{ 1 / zero }} two\n"),
    ]);
    let diff = project.diff("a", "b", &[("zero", "x")]);
    assert_eq!(diff.basis, Basis::Files);
    assert!(diff.before.failure.is_some() && diff.after.failure.is_some());
    assert_eq!(
        lines(&diff)[..2],
        ["-{{ 1 / zero }} one <- prompts/a/template.md:1", "+{{ 1 / zero }} two <- prompts/b/template.md:1"]
    );
    assert!(diff.summary().contains("files (+1 -1)"), "{}", diff.summary());
}

#[test]
fn candidates_of_two_packs_are_found_by_pack_and_by_source() {
    let project = Project::new(&[
        ("user_data/packs/polite/pack.json", r#"{"pack_id": "polite"}"#),
        ("user_data/packs/polite/prompts/greet/template.md", "Good day!"),
        ("user_data/packs/brisk/pack.json", r#"{"pack_id": "brisk"}"#),
        ("user_data/packs/brisk/prompts/greet/template.md", "Hey!"),
    ]);
    let diff = project.diff("polite/greet", "user_data/packs/brisk/prompts/greet", &[]);
    assert_eq!((diff.before.pack.as_deref(), diff.after.pack.as_deref()), (Some("polite"), Some("brisk")));
    assert_eq!(diff.lines(), (1, 1));
    // The id alone is a conflict, here as everywhere.
    assert_eq!(project.try_diff("greet", "greet", &[]).unwrap_err().code(), cuebook::Code::PromptConflict);
    let built_in = project.diff("general_system", "ecosystem/default/prompts/general_system", &[]);
    assert!(built_in.is_same(), "{:?}", changes(&built_in));
}

#[test]
fn only_code_that_can_take_part_counts_as_a_change_of_hooks() {
    let code =
        "METADATA = {\"version\": \"1.0.0\"}\n\ndef pre_render(variables, context):\n    return variables\n";
    let project = Project::new(&[
        ("prompts/a/prompt.py", code),
        ("prompts/a/template.md", "Hi"),
        ("prompts/b/prompt.py", &code.replace("1.0.0", "2.0.0")),
        ("prompts/b/template.md", "Hi"),
        ("prompts/c/prompt.py", &code.replace("return variables", "return {}")),
        ("prompts/c/template.md", "Hi"),
    ]);
    let has_hook = |diff: &Diff| diff.entries.iter().any(|entry| entry.aspect == Aspect::Hook);
    let diff = project.diff("a", "b", &[]);
    assert!(!has_hook(&diff) && !diff.is_same(), "{:?}", changes(&diff));
    assert!(has_hook(&project.diff("a", "c", &[])));
    // Nothing here can run hooks, so the texts are compared without them, and the report says so.
    assert_eq!(diff.before.not_run.len(), 1, "{:?}", diff.before.failure);
    assert_eq!(diff.before.not_run[0].place.as_deref(), Some("prompts/a/prompt.py:3"));
}

#[test]
fn files_of_a_copy_have_the_names_that_people_know() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.md"), "").unwrap();
    let names = Names::new("HEAD:", folder.path());
    assert_eq!(names.file("a.md"), "HEAD:a.md");
    assert_eq!(names.file("ecosystem/default/prompts/x"), "ecosystem/default/prompts/x");
    assert_eq!(names.file(&folder.path().join("b.md").to_string_lossy()), "HEAD:b.md");
}

#[test]
fn the_notation_is_no_difference() {
    let project = Project::new(&[
        ("prompts/hi/template.md", "Hi {{ who }}!"),
        ("one/hi.prompty", "---\nname: hi\ntemplate: {format: jinja2}\n---\nsystem:\nHi {{ who }}!"),
        ("two/hi.sections.md", "# Hi\nHi $who!\n"),
    ]);
    let diff = project.diff("hi", "one/hi.prompty", &[("who", "Ada")]);
    assert!(changes(&diff).is_empty(), "{:?}", changes(&diff));
    let diff = project.diff("hi", "two/hi.sections.md", &[("who", "Ada")]);
    assert!(diff.entries.iter().any(|entry| entry.aspect == Aspect::Section), "{:?}", changes(&diff));
    assert!(!diff.entries.iter().any(|entry| entry.aspect == Aspect::Format), "{:?}", changes(&diff));
}
