//! Names of what is included: wrong ones, missing ones, and those that a value may not choose.

use cuebook::{Code, Context, Variables};
use serde_json::json;

use crate::project::{Project, includers};

#[test]
fn a_wrong_name_is_reported_at_its_place_with_a_suggestion() {
    for (written, message, hint) in [
        ("prompt:nole", "no prompt `nole` found", "did you mean `prompt:note`"),
        (
            "prompt:guide#maner",
            "no prompt `guide` with a section `maner` found",
            "did you mean `prompt:guide#manner`",
        ),
        ("prompt:note#x", "no prompt `note` with a section `x` found", "did you mean `prompt:note`?"),
        ("directive:demo/gret", "no directive `demo/gret` found", "did you mean `directive:demo/greet`"),
        ("knowledge:demo/te", "no knowledge `demo/te` found", "did you mean `knowledge:demo/tea`"),
        ("promt:note", "`promt:note` is neither a file nor an address", "did you mean `prompt:note`"),
        ("directive:../x", "no directive `../x` found", "its path would be .ai/directives/../x.md"),
    ] {
        for (id, path, text) in includers(written) {
            let error = Project::new().with(path, &text).error(id, json!({"who": "Ann"}));
            let reported = error.diagnostic();
            assert_eq!((reported.code, reported.message.as_str()), (Code::MissingInclude, message), "{text}");
            assert!(reported.place.as_ref().unwrap().text().contains(written), "{:?}", reported.place);
            assert!(
                reported.hint.as_deref().unwrap_or_default().starts_with(hint),
                "{text}: {:?}",
                reported.hint
            );
        }
    }
    let error =
        Project::new().with("prompts/host/template.md", "{% include 'prompt:' %}").error("host", json!({}));
    assert_eq!(error.code(), Code::InvalidId);
    assert_eq!(error.diagnostic().place.as_ref().unwrap().to_string(), "prompts/host/template.md:1:12");
    let extends = Project::new().with("prompts/host/template.md", "{% extends 'prompt:note' %}");
    let error = extends.error("host", json!({"who": "Ann"}));
    assert_eq!(error.diagnostic().message, "a prompt can only be included, not extended or imported");
}

#[test]
fn ignore_missing_skips_until_the_prompt_exists() {
    let project = Project::new()
        .with("prompts/host/template.md", "A{% include ['prompt:later', 'prompt:other'] ignore missing %}B");
    let book = project.book();
    let text = || book.render("host", &Variables::new(), &Context::default()).unwrap().into_text();
    assert_eq!(text(), "AB");
    project.write("prompts/other/template.md", "other");
    assert_eq!(text(), "AotherB");
    project.write("prompts/later/template.md", "later");
    assert_eq!(text(), "AlaterB");
}

#[test]
fn a_value_never_names_what_is_included_by_its_address() {
    let project = Project::new().with("prompts/host/template.md", "{% include which %}");
    for which in ["prompt:note", "directive:demo/greet", "knowledge:demo/tea"] {
        let error = project.error("host", json!({"which": which, "who": "Ann"}));
        assert_eq!(error.code(), Code::MissingInclude, "{which}");
    }
}

#[test]
fn a_path_as_an_include_gets_the_hint_to_write_an_id() {
    let project = Project::new().with("prompts/host/template.md", "{% include \"prompt:./x\" %}");
    let error = project.error("host", json!({}));
    let hint = error.diagnostic().hint.clone().unwrap_or_default();
    assert_eq!(error.code(), Code::InvalidId, "{error:?}");
    assert!(hint.contains("write an id after `prompt:`") && !hint.contains("./prompts/greeting"), "{hint}");
}
