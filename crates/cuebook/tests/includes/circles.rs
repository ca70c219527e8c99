//! Prompts that lead back to themselves, and how deep they may go.

use cuebook::Code;
use cuebook_lab::BookExt;
use serde_json::json;

use crate::project::Project;

#[test]
fn circles_across_notations_are_found_and_shown_whole() {
    let circle = |files: &[(&str, &str)]| {
        let project = Project::new();
        files.iter().for_each(|(path, text)| project.write(path, text));
        let error = project.error("a", json!({"who": "Ann"}));
        assert_eq!(error.code(), Code::IncludeCycle, "{error:?}");
        let reported = error.diagnostic();
        let mut places: Vec<String> = reported.related.iter().map(|(place, _)| place.to_string()).collect();
        places.push(reported.place.as_ref().unwrap().to_string());
        (reported.message.clone(), places)
    };
    let sections = "---\nengine: jinja2\n---\n# One\n{% include 'prompt:c' %}\n\n# Two\nNothing.\n";
    let (message, places) = circle(&[
        ("prompts/a/template.md", "{% if 0 %}{% include 'prompt:b#one' %}{% endif %}"),
        ("prompts/b.sections.md", sections),
        ("prompts/c.prompty", "---\nname: c\ntemplate: {format: mustache}\n---\n{{> parts/d.md}}"),
        ("prompts/parts/d.md", "{{> prompt:a}}"),
    ]);
    assert_eq!(message, "prompts include each other in a cycle: a → prompt:b#one → prompt:c → a");
    assert_eq!(
        places,
        ["prompts/a/template.md:1:22", "prompts/b.sections.md:5:12", "prompts/parts/d.md:1:1"]
    );
    let (message, _) = circle(&[("prompts/a/template.md", "{% include 'prompt:a' %}")]);
    assert_eq!(message, "prompts include each other in a cycle: a → a");
    // A tree may include another section of itself, but none that shows the same place again.
    let tree = "---\nengine: jinja2\n---\n# One\n{% include 'prompt:a#two' %}\n\n# Two\nText.\n";
    let project = Project::new().with("prompts/a.sections.md", tree);
    assert_eq!(project.text("a", json!({})), "# One\n\n# Two\n\nText.\n\n# Two\n\nText.");
    let tree = "---\nengine: jinja2\n---\n# One\nA.\n\n## Deep\n{% include 'prompt:a#one' %}\n";
    let (message, _) = circle(&[("prompts/a.sections.md", tree)]);
    assert_eq!(message, "prompts include each other in a cycle: prompt:a#one → prompt:a#one");
}

#[test]
fn check_reports_a_circle_once() {
    let project = Project::new()
        .with("prompts/a/template.md", "{% include 'prompt:b' %}")
        .with("prompts/b.sections.md", "---\nengine: jinja2\n---\n# B\n{% include 'prompt:c' %}\n")
        .with("prompts/c.prompty", "---\nname: c\ntemplate: {format: mustache}\n---\n{{> prompt:a}}")
        .with("prompts/outside/template.md", "{% include 'prompt:b' %}");
    let report = project.book().check(&[], |_| {}).unwrap();
    let circles = report.findings.iter().filter(|finding| finding.code == Code::IncludeCycle);
    assert_eq!(circles.count(), 1, "{:?}", report.findings);
    for id in ["a", "b", "c", "outside"] {
        assert_eq!(project.codes(id), ["CB307"], "{id}");
        assert_eq!(project.error(id, json!({})).code(), Code::IncludeCycle, "{id}");
    }
    // Two circles are two.
    project.write("prompts/c.prompty", "---\nname: c\n---\n{% include 'prompt:a' %}{% include 'prompt:d' %}");
    project.write("prompts/d/template.md", "{% include 'prompt:e' %}");
    project.write("prompts/e/template.md", "{% include 'prompt:d' %}");
    let report = project.book().check(&[], |_| {}).unwrap();
    assert_eq!(report.findings.iter().filter(|finding| finding.code == Code::IncludeCycle).count(), 2);
}

#[test]
fn includes_obey_the_depth_limit_and_read_prompts_once() {
    let chain = |length: usize| {
        let project = Project::new().with("cuebook.toml", "[limits]\ninclude_depth = 4\n");
        for index in 0..length {
            // Twice each: what is known already must not be read again, or this would never end.
            let next = format!("{{% include 'prompt:p{0}' %}}{{% include 'prompt:p{0}' %}}", index + 1);
            project.write(&format!("prompts/p{index}/template.md"), next);
        }
        project.write(&format!("prompts/p{length}/template.md"), "x");
        project
    };
    assert_eq!(chain(4).text("p0", json!({})), "x".repeat(16));
    let error = chain(5).error("p0", json!({}));
    assert_eq!(
        (error.code(), error.diagnostic().file_name()),
        (Code::TooDeep, Some("prompts/p4/template.md"))
    );
    let wide = Project::new().with("prompts/leaf/template.md", "").with(
        "prompts/host/template.md",
        "{% for i in range(2000) %}{% include 'prompt:leaf' %}{% endfor %}",
    );
    assert_eq!(wide.error("host", json!({})).code(), Code::TooDeep);
}

#[test]
fn mixed_nesting_ends_in_an_error_and_no_crash() {
    let project = Project::new();
    let nested = |index: usize| {
        format!(
            "{{% macro m(n) %}}{{% if n %}}{{{{ m(n - 1) }}}}{{% else %}}{{% include 'prompt:n{}' %}}{{% endif %}}{{% endmacro %}}{{{{ m(deep) }}}}",
            index + 1
        )
    };
    for index in 0..30 {
        project.write(&format!("prompts/n{index}/template.md"), nested(index));
    }
    // A chain of plain ones goes as deep as the setting says.
    for index in 0..30 {
        let template = format!("{{{{ deep }}}}{{% include 'prompt:flat{}' %}}", index + 1);
        project.write(&format!("prompts/flat{index}/template.md"), template);
    }
    project.write("prompts/flat30/template.md", "end");
    assert_eq!(project.text("flat0", json!({"deep": "."})), ".".repeat(30) + "end");
    project.write("prompts/n30/template.md", "end");
    project.write("prompts/some/template.md", nested(26));
    assert_eq!(project.text("some", json!({"deep": 12})), "end");
    for deep in [7, 12, 30, 60, 120, 240, 490, 1000] {
        if let Err(error) = project.render("n0", json!({"deep": deep})) {
            assert_eq!(error.code(), Code::TooDeep, "{deep}: {error:?}");
        }
    }
}
