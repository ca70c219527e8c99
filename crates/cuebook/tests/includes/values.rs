//! What is included takes the values of what includes it, and what that has set.

use cuebook::{Code, Context, Origin};
use cuebook_lab::BookExt;
use serde_json::json;

use crate::project::{Project, assert_covered, includers};

#[test]
fn an_include_sees_set_values_with_their_origin() {
    let project = Project::new().with(
        "prompts/host/template.md",
        "{% for one in names %}{% set who = one %}{% include 'prompt:guide#task' %};{% endfor %}{% set tone = mood %}{% include 'prompt:note' %}",
    );
    let rendered =
        project.render("host", json!({"names": ["Ann", "Bo"], "who": "Cy", "mood": "grim"})).unwrap();
    assert_eq!(rendered.text(), "# Task\n\nHelp Ann.;# Task\n\nHelp Bo.;Dear Cy, be grim.");
    let paths_of = |text: &str| {
        let span = rendered.span_at(rendered.text().find(text).unwrap()).unwrap();
        let Origin::Value { shown, .. } = span.origin else { panic!("{text} is no value") };
        shown.into_iter().map(|shown| shown.path).collect::<Vec<_>>()
    };
    assert!(paths_of("Bo").contains(&"names[1]".to_owned()), "{:?}", paths_of("Bo"));
    assert!(paths_of("grim").contains(&"mood".to_owned()), "{:?}", paths_of("grim"));
    assert_covered(&rendered);
}

#[test]
fn a_mustache_section_lends_what_it_goes_into() {
    let project = Project::new().with(
        "prompts/host.prompty",
        "---\nname: host\ntemplate: {format: mustache}\n---\n{{#people}}\n  {{> prompt:note}}\n{{/people}}\nEnd.",
    );
    let rendered =
        project.render("host", json!({"people": [{"who": "Ann"}, {"who": "Bo"}], "who": "Cy"})).unwrap();
    assert_eq!(rendered.text(), "  Dear Ann, be calm.\n  Dear Bo, be calm.\nEnd.");
    let span = rendered.span_at(rendered.text().find("Bo").unwrap()).unwrap();
    let Origin::Value { shown, .. } = span.origin else { panic!("no value") };
    // And not what the caller gave under that name.
    assert_eq!(shown.iter().map(|shown| shown.path.as_str()).collect::<Vec<_>>(), ["people"]);
    assert_covered(&rendered);
    project.write(
        "prompts/host.prompty",
        "---\nname: host\ntemplate: {format: mustache}\n---\n{{#who}}{{> prompt:note}}{{/who}}",
    );
    let rendered = project.render("host", json!({"who": {"who": "Di"}})).unwrap();
    assert_eq!(rendered.text(), "Dear Di, be calm.");
    let span = rendered.span_at(rendered.text().find("Di").unwrap()).unwrap();
    let Origin::Value { shown, .. } = span.origin else { panic!("no value") };
    assert_eq!(shown.iter().map(|shown| shown.path.as_str()).collect::<Vec<_>>(), ["who"]);
}

#[test]
fn a_variable_of_an_include_is_required_with_both_places() {
    for (id, path, text) in includers("prompt:note") {
        let project = Project::new().with(path, &text);
        let error = project.error(id, json!({}));
        let reported = error.diagnostic();
        assert_eq!(
            (reported.code, reported.file_name()),
            (Code::InvalidVariables, Some("prompts/note.prompty")),
            "{text}"
        );
        let related: Vec<&str> = reported.related.iter().map(|(place, _)| place.file()).collect();
        assert_eq!(related, [path], "{text}");
        project.write(path, text.replace("prompt:note", "prompt:plain"));
        // Its type is checked too, as it would be there.
        assert_eq!(project.error(id, json!({"who": 7})).code(), Code::InvalidVariables);
        assert!(project.book().prepare(id, &Context::default()).unwrap().knows("tone"));
    }
}

/// Prompts that declare `z`, each in its own way.
fn contested(template: &str) -> Project {
    let declared = |project: Project, id: &str, need: &str, rest: &str| {
        let code = format!("VARIABLES = {{'{need}': [{{'name': 'z', {rest}}}]}}\n");
        let text = format!("{} {{{{ z }}}}. ", id.to_uppercase());
        project
            .with(&format!("prompts/{id}/prompt.py"), &code)
            .with(&format!("prompts/{id}/template.md"), &text)
    };
    let project = declared(Project::new(), "ta", "optional", "'type': 'integer', 'default': 3");
    let project = declared(project, "tb", "required", "'type': 'string'");
    let project = declared(project, "tc", "optional", "'type': 'string', 'default': 'seven'");
    let project = declared(project, "td", "optional", "'type': 'integer'");
    project.with("prompts/host/template.md", template)
}

#[test]
fn each_included_prompt_has_its_own_default_and_its_own_type() {
    let (a, b, c, d) = (
        "{% include 'prompt:ta' %}",
        "{% include 'prompt:tb' %}",
        "{% include 'prompt:tc' %}",
        "{% include 'prompt:td' %}",
    );
    for (template, wanted) in [
        (format!("{a}{c}{d}"), "TA 3. TC seven. TD . "),
        (format!("{c}{d}{a}"), "TC seven. TD . TA 3. "),
        (format!("{d}{a}"), "TD . TA 3. "),
    ] {
        let project = contested(&template);
        let rendered = project.render("host", json!({})).unwrap();
        assert_eq!(rendered.text(), wanted);
        let span = rendered.span_at(wanted.find('3').unwrap()).unwrap();
        assert_eq!(span.origin.to_json()["variables"], json!([{"path": "z", "layer": "optional"}]));
        // Further down as well.
        project.write("prompts/outer/template.md", "{% include 'prompt:host' %}");
        assert_eq!(project.text("outer", json!({})), wanted);
    }
    for template in [format!("{a}{b}"), format!("{b}{a}")] {
        let project = contested(&template);
        let error = project.error("host", json!({}));
        assert_eq!(error.diagnostic().message, "the required variable `z` is missing");
        assert_eq!(error.diagnostic().file_name(), Some("prompts/tb/prompt.py"));
        let error = project.error("host", json!({"z": "x"}));
        assert_eq!(error.diagnostic().message, "`z` must be an integer, but the caller passed a string");
        assert_eq!(error.diagnostic().file_name(), Some("prompts/ta/prompt.py"));
        let error = project.error("host", json!({"z": 5}));
        assert_eq!(error.diagnostic().message, "`z` must be a string, but the caller passed an integer");
        assert_eq!(error.diagnostic().file_name(), Some("prompts/tb/prompt.py"));
    }
    // What the prompt itself declares is for all of them, if it has their types.
    let project = contested(&format!("{a}{d}"));
    project.write(
        "prompts/host/prompt.py",
        "VARIABLES = {'optional': [{'name': 'z', 'type': 'integer', 'default': 8}]}",
    );
    assert_eq!(project.text("host", json!({})), "TA 8. TD 8. ");
    project.write(
        "prompts/host/prompt.py",
        "VARIABLES = {'optional': [{'name': 'z', 'type': 'string', 'default': 'x'}]}",
    );
    let error = project.error("host", json!({}));
    assert_eq!(error.diagnostic().file_name(), Some("prompts/ta/prompt.py"));
}

#[test]
fn check_reports_contradictions_of_included_prompts() {
    let reported = |template: &str| {
        let report = contested(template).book().check(&["host".to_owned()], |_| {}).unwrap();
        let reported =
            report.findings.into_iter().inspect(|reported| assert_eq!(reported.code, Code::InvalidVariables));
        (report.prompts, reported.map(|reported| reported.message).collect::<Vec<_>>())
    };
    let (_, found) = reported("{% include 'prompt:ta' %}{% include 'prompt:tb' %}");
    assert_eq!(
        found,
        ["two included prompts declare `z` with different types: `ta` as integer, `tb` as string"]
    );
    assert_eq!(reported("{% include 'prompt:ta' %}{% include 'prompt:td' %}").1, Vec::<String>::new());
    let apart = "{% include 'prompt:ta' %}{% with z = 'x' %}{% include 'prompt:tb' %}{% endwith %}";
    assert_eq!(reported(apart).1, Vec::<String>::new());
    assert_eq!(contested(apart).text("host", json!({})), "TA 3. TB x. ");
}

#[test]
fn a_path_includes_text_alone_and_check_says_so() {
    let project = Project::new()
        .with("prompts/host/template.md", "{% include 'note.prompty' %}")
        .with("prompts/sec/template.md", "{% include 'guide.sections.md' %}")
        .with("prompts/bare.prompty", "---\nname: bare\n---\nText.")
        .with("prompts/fine/template.md", "{% include 'bare.prompty' %}{% include 'prompt:bare' %}");
    assert_eq!(project.text("host", json!({"who": "Ann"})), "Dear Ann, be .");
    let check = |id: &str| project.book().check(&[id.to_owned()], |_| {}).unwrap().findings;
    let [reported] = check("host").try_into().unwrap();
    assert_eq!(
        (reported.code, reported.message.as_str(), reported.hint.as_deref()),
        (
            Code::LeftBehind,
            "a path includes only text: the inputs and their defaults of `note.prompty` are not included",
            Some("to include the whole prompt, write its address: \"prompt:note\"")
        )
    );
    assert!(check("sec").iter().any(|reported| reported.code == Code::LeftBehind));
    assert!(check("fine").is_empty());
}

#[test]
fn of_one_section_only_what_it_mentions_is_asked_for() {
    let project = Project::new().with("prompts/host/template.md", "{% include 'prompt:guide#close' %}");
    assert_eq!(project.text("host", json!({})), "# Close\n\nBye, calm.");
    project.write("prompts/host/template.md", "{% include 'prompt:guide#manner' %}");
    // The condition of a section below it counts, and so does what that section needs.
    assert_eq!(
        project.text("host", json!({"loud": true, "who": "Ann"})),
        "# Manner\n\nStay calm.\n\n## Volume\n\nSpeak up, Ann."
    );
    assert_eq!(project.error("host", json!({"loud": true})).code(), Code::InvalidVariables);
    let deep = Project::new().with("prompts/host/template.md", "{% include 'prompt:guide#manner/volume' %}!");
    assert_eq!(deep.text("host", json!({"who": "Ann"})), "!");
    assert_eq!(deep.text("host", json!({"who": "Ann", "loud": true})), "## Volume\n\nSpeak up, Ann.!");
}
