//! What a person sees: files that a user might have written.

use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn;
use cuebook_lab::convert::Target;

use crate::support::Project;

fn text(project: &Project, to: BuiltIn) -> String {
    let conversion = project.book().convert("p", &Target::new(to)).unwrap_or_else(|error| panic!("{error}"));
    conversion.files[0].text.clone()
}

fn body(text: &str) -> &str {
    text.rsplit("---\n").next().unwrap()
}

#[test]
fn a_template_keeps_its_own_words_where_jinja_stays_jinja() {
    let written = "Hi {{name|upper}}!{# note #}\n{%- if name %} Known.{% endif %}\n";
    let project = Project::with_template(written);
    assert_eq!(body(&text(&project, BuiltIn::Prompty)), written.trim_end());
}

#[test]
fn a_line_that_looks_like_a_role_stays_text_in_a_prompty_file() {
    let project = Project::with_template("Say\nuser:\nnothing.\n");
    assert_eq!(body(&text(&project, BuiltIn::Prompty)), "Say\n{{ \"u\" }}ser:\nnothing.");
}

#[test]
fn literal_braces_are_escaped_in_the_shortest_way() {
    let project = Project::new().file(".ai/directives/p.md", "```xml\n<directive name=\"p\"><metadata><category/></metadata></directive>\n```\nUse {{ x }} and {% y %}.\nOr {this}.\n");
    assert_eq!(
        text(&project, BuiltIn::Template),
        "Use {% raw %}{{ x }} and {% y %}{% endraw %}.\nOr {this}.\n"
    );
    let project = Project::with_template("{input:x} ${inputs.y} {env:Z} {include:a/b} {input:} {other:x}\n");
    let directive = text(&project, BuiltIn::Directive);
    let body = directive.rsplit("```\n").next().unwrap();
    assert_eq!(
        body,
        "{input:_:{}input:x} ${input:_:{}inputs.y} {input:_:{}env:Z} {input:_:{}include:a/b} {input:} {other:x}\n"
    );
}

#[test]
fn headings_become_sections_and_others_stay_text() {
    let project = Project::with_template("# A\n\nOne $5.\n\n## B\n\nTwo.\n");
    assert!(text(&project, BuiltIn::Sections).ends_with("---\n# A\n\nOne $$5.\n\n## B\n\nTwo.\n"));
    // Without an empty line behind it, it would be shown with one.
    let project = Project::with_template("# A\n\nOne.\n# B\nTwo.\n");
    let sections = text(&project, BuiltIn::Sections);
    assert!(sections.ends_with("# A\n\nOne.\n{% raw %}#{% endraw %} B\nTwo.\n"), "{sections}");
}

#[test]
fn definitions_reach_the_next_part_of_a_template() {
    let written = "# A\n\n{% set greeting = \"Hi\" %}One.\n\n## B\n\n{{ greeting }} {{ flag }}.\n";
    let project = Project::with_template(written);
    let sections = text(&project, BuiltIn::Sections);
    assert!(sections.contains("\n{% raw %}#{% endraw %}# B\n"), "{sections}");
    // Where nothing is shared, conditions are no reason not to split.
    let project = Project::with_template("# A\n\n{% if x %}One.{% endif %} Two.\n\n## B\n\nThree {{ x }}.\n");
    let sections = text(&project, BuiltIn::Sections);
    assert!(sections.ends_with("Two.\n\n## B\n\nThree {{ x }}.\n"), "{sections}");
}

#[test]
fn an_unset_optional_input_renders_the_same() {
    let xml = "<directive name=\"p\"><metadata><category/></metadata><inputs><input name=\"a\"/><input name=\"b\"/><input name=\"c\"/></inputs></directive>";
    let directive = format!("```xml\n{xml}\n```\nA {{input:a}} {{input:b?}} {{input:c:d}}.\n");
    let project = Project::new().file(".ai/directives/p.md", &directive);
    assert_eq!(
        text(&project, BuiltIn::Template),
        "A {% if a is defined %}{{ a }}{% else %}{input:a}{% endif %} {{ b }} {% if c is defined %}{{ c }}{% else %}d{% endif %}.\n"
    );
}

#[test]
fn an_unreadable_name_is_changed_and_reported() {
    let directive = "```xml\n<directive name=\"p\"><metadata><category/></metadata><inputs><input name=\"2nd\" required=\"true\"/><input name=\"range\" required=\"true\"/></inputs></directive>\n```\nA {input:2nd} {input:range}.\n";
    let project = Project::new().file(".ai/directives/p.md", directive);
    let conversion = project.book().convert("p", &Target::new(BuiltIn::Template)).unwrap();
    assert_eq!(conversion.files[0].text, "A {{ input_2nd }} {{ input_range }}.\n");
    let reported: Vec<&str> =
        conversion.report.losses().map(|entry| entry.finding.message.as_str()).collect();
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(reported[0].contains("`2nd` is renamed to `input_2nd`"), "{reported:?}");
    assert_eq!(conversion.compared, 4);
}

#[test]
fn projects_that_trim_blocks_get_text_that_survives_it() {
    let project = Project::new()
        .file("cuebook.toml", "[template]\ntrim_blocks = true\nlstrip_blocks = true\n")
        .file(".ai/directives/p.md", "```xml\n<directive name=\"p\"><metadata><category/></metadata></directive>\n```\nUse {{\n  {% y %}\nend.\n");
    let conversion = project.book().convert("p", &Target::new(BuiltIn::Template)).unwrap();
    assert!(conversion.report.is_lossless(), "{:#?}", conversion.report);
    assert_eq!(conversion.compared, 4);
}

#[test]
fn built_in_prompts_convert_to_every_format() {
    let project = Project::new();
    for prompt in ["general_system", "coding_system", "history_compression", "planning_task_decomposition"] {
        for to in [BuiltIn::Prompty, BuiltIn::Sections] {
            let conversion = project.book().convert(prompt, &Target::new(to));
            let conversion = conversion.unwrap_or_else(|error| panic!("{prompt} to {to:?}: {error}"));
            // What they include ends with a newline, which only templates drop. A parent stays a file, with its own includes.
            let text: Vec<_> = conversion.report.losses().filter(|entry| entry.about == "text").collect();
            assert_eq!(conversion.differs, prompt == "coding_system", "{prompt} to {to:?}: {text:#?}");
            assert!(conversion.compared > 0 || !text.is_empty(), "{prompt}: {text:#?}");
        }
    }
}

#[test]
fn other_languages_are_reported() {
    let project = Project::with_template("# A\n\nOne.\n").file("prompts/p/template.ja.md", "# B\n\nTwo.\n");
    let conversion = project.book().convert("p", &Target::new(BuiltIn::Prompty)).unwrap();
    let about = conversion.report.losses().filter(|entry| entry.about == "variants");
    let reported: Vec<&str> = about.map(|entry| entry.finding.message.as_str()).collect();
    assert_eq!(reported, ["the translation `template.ja.md` is left out"]);
}

#[test]
fn an_include_from_its_own_place_is_kept_and_reported() {
    let project = Project::new()
        .file("elsewhere/p/template.md", "# A\n\nOne. {% include \"partials/x.md\" %}\n")
        .file("elsewhere/partials/x.md", "Two.");
    let path = project.path("elsewhere/p");
    for to in [BuiltIn::Prompty, BuiltIn::Sections] {
        let conversion = project.book().convert(path.to_str().unwrap(), &Target::new(to)).unwrap();
        assert!(conversion.files[0].text.contains("{% include \"partials/x.md\" %}"));
        assert_eq!(conversion.compared, 0);
        assert!(
            conversion.report.entries.iter().any(|entry| entry.about == "check"),
            "{:#?}",
            conversion.report
        );
    }
}

#[test]
fn a_prompt_that_says_nothing_is_no_more_than_its_heading() {
    let project = Project::with_template("\n");
    assert!(text(&project, BuiltIn::Sections).ends_with("---\n# p\n\n\n"));
}

#[test]
fn a_heading_beside_a_value_stays_text() {
    let project = Project::with_template("# A\n\nOne {{ x }}\n\n# B\n\nTwo.\n");
    let sections = text(&project, BuiltIn::Sections);
    assert!(sections.ends_with("{{ x }}\n\n{% raw %}#{% endraw %} B\n\nTwo.\n"), "{sections}");
}

#[test]
fn a_preamble_is_part_of_the_text() {
    let directive = "# Deploy\n\nRead {input:x} first.\n\n```xml\n<directive name=\"p\"><metadata><category/></metadata></directive>\n```\nGo.\n";
    let project = Project::new().file(".ai/directives/p.md", directive);
    assert_eq!(text(&project, BuiltIn::Template), "Read {input:x} first.\n\nGo.\n");
}

#[test]
fn a_heading_with_a_tag_in_it_is_no_title_of_a_section() {
    use serde_json::json;
    let texts = [
        "# Hello {{ name }}\n\n{% if name %}Text{% endif %} {{ name }}.\n",
        "# Hello\n\n{%- if name %} you{% endif %}\n\n# Two\n\nEnd {{ name }}.\n",
        "# Hello\n\n{% if name %}You{% endif -%}\n\n# Two\n\nEnd {{ name }}.\n",
    ];
    for written in texts {
        let project = Project::with_template(written);
        let prompts = std::fs::read_dir(project.path("prompts")).unwrap();
        let id = prompts.flatten().next().unwrap().file_name().into_string().unwrap();
        let conversion = project.book().convert(&id, &Target::new(BuiltIn::Sections)).unwrap();
        let result = Project::new();
        result.write("prompts/p.sections.md", &conversion.files[0].text);
        let values = json!({"name": "Ann"});
        let (before, now) = (project.text(&id, values.clone()), result.text("p", values));
        assert!(now.trim_end().ends_with(before.trim_end()), "{before}\n====\n{now}");
    }
}

#[test]
fn unknown_keys_of_a_prompty_file_are_reported() {
    let project = Project::new();
    project
        .write("prompts/p.prompty", "---\nname: p\nauthors: [ann]\nversion: \"2.0\"\n---\n# Task\n\nHi.\n");
    for to in [BuiltIn::Template, BuiltIn::Sections, BuiltIn::Directive] {
        let conversion = project.book().convert("p", &Target::new(to)).unwrap();
        for key in ["`authors`", "`version`"] {
            let reported = conversion.report.losses().any(|entry| entry.finding.message.contains(key));
            assert!(reported, "{key}: {:#?}", conversion.report);
        }
    }
}
