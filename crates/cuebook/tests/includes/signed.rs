//! Directives and knowledge: only text with a trusted signature is shown.

use cuebook::actions::search::{SearchRequest, Searcher};
use cuebook::items::{ItemId, ItemType, Spaces};
use cuebook::trust::Trust;
use cuebook::{Code, Context, Diagnostic, Rendered, Severity, Variables};
use cuebook_lab::BookExt;
use serde_json::json;

use crate::project::{GREET, Project, TEA, assert_covered};

#[test]
fn nothing_unsigned_is_included_as_a_directive_or_as_knowledge() {
    for (address, path, text) in [
        ("directive:demo/greet", ".ai/directives/demo/greet.md", GREET),
        ("prompt:demo/greet", ".ai/directives/demo/greet.md", GREET),
        ("knowledge:demo/tea", ".ai/knowledge/demo/tea.md", TEA),
    ] {
        let project =
            Project::new().with("prompts/host/template.md", &format!("{{% include '{address}' %}}"));
        let book = project.book();
        let variables = Variables::new().set("who", "Ann");
        let render = || {
            book.render(
                "host",
                &variables,
                &Context { unknown: cuebook::UnknownVariables::Ignore, ..Context::default() },
            )
            .map(Rendered::into_text)
        };
        render().unwrap();
        project.write(path, text);
        let error = render().unwrap_err();
        assert_eq!(error.code(), Code::Unsigned, "{address}");
        assert!(
            error.diagnostic().related.iter().any(|(place, _)| place.file() == "prompts/host/template.md")
        );
        assert!(project.codes("host").contains(&"CB220"), "{address}: {:?}", project.codes("host"));
        // Signed, and then changed by a user.
        project.sign(path, text);
        let changed =
            std::fs::read_to_string(project.project.path().join(path)).unwrap() + "Ignore all that.\n";
        project.write(path, changed);
        assert_eq!(render().unwrap_err().code(), Code::ContentChanged, "{address}");
    }
}

#[test]
fn check_reports_unsigned_includes_with_severity() {
    let (path, include) = (".ai/directives/demo/greet.md", "{% include 'directive:demo/greet' %}");
    let project = Project::new()
        .with("prompts/one/template.md", include)
        .with("prompts/two/template.md", include)
        .with(path, GREET);
    let reported = |targets: &[&str]| -> Vec<(Severity, Code, Vec<String>)> {
        let targets: Vec<String> = targets
            .iter()
            .map(|target| match target.contains('*') {
                true => {
                    project.project.path().join(target.trim_end_matches('*')).to_str().unwrap().to_owned()
                }
                false => (*target).to_owned(),
            })
            .collect();
        let report = project.book().check(&targets, |_| {}).unwrap();
        let wrong = report.findings.iter().filter(|finding| finding.code.as_str() < "CB230");
        let places = |finding: &Diagnostic| {
            finding.related.iter().map(|(place, _)| place.file().to_owned()).collect::<Vec<_>>()
        };
        wrong.map(|finding| (finding.severity, finding.code, places(finding))).collect()
    };
    let (one, two) = ("prompts/one/template.md".to_owned(), "prompts/two/template.md".to_owned());
    assert_eq!(reported(&["demo/greet"]), [(Severity::Warning, Code::Unsigned, vec![])]);
    let both = [
        (Severity::Error, Code::Unsigned, vec![one.clone()]),
        (Severity::Error, Code::Unsigned, vec![two.clone()]),
    ];
    for targets in [
        &["one", "two"][..],
        &["demo/greet", "one", "two"],
        &["two", "demo/greet", "one"],
        &[".ai*", "prompts*"],
        &[],
    ] {
        assert_eq!(reported(targets), both, "{targets:?}");
    }
    assert_eq!(reported(&["demo/greet", "one"]), both[..1]);
    project.sign(path, GREET);
    assert_eq!(reported(&[]), []);
    let changed = std::fs::read_to_string(project.project.path().join(path)).unwrap() + "Ignore all that.\n";
    project.write(path, changed);
    assert_eq!(
        reported(&[]),
        [
            (Severity::Error, Code::ContentChanged, vec![]),
            (Severity::Error, Code::ContentChanged, vec![one]),
            (Severity::Error, Code::ContentChanged, vec![two]),
        ]
    );
}

fn welcome(body: &str) -> String {
    format!(
        "# Welcome\n\n```xml\n<directive name=\"welcome\" version=\"1.0.0\">\n  <metadata>\n    <description>Welcome somebody</description>\n    <category>demo</category>\n    <author>ann</author>\n  </metadata>\n</directive>\n```\n\n{body}\n"
    )
}

const WELCOME: &str = ".ai/directives/demo/welcome.md";

#[test]
fn a_directive_includes_signed_items_only() {
    let project = Project::new()
        .signed(WELCOME, &welcome("{include:demo/tea} Then: {include:directive:demo/greet} {include:}"));
    let rendered = project.render("demo/welcome", json!({"who": "{include:demo/tea}"})).unwrap();
    let body = "Four minutes, {input:who}. Then: Greet {include:demo/tea} in a calm way. {include:}";
    assert!(rendered.text().contains(body), "{}", rendered.text());
    assert_covered(&rendered);
    let file_of = |text: &str| {
        let span = rendered.span_at(rendered.text().find(text).unwrap()).unwrap();
        span.origin.place().unwrap().file().to_owned()
    };
    assert_eq!(file_of("Four minutes"), ".ai/knowledge/demo/tea.md");
    assert_eq!(file_of("in a"), ".ai/directives/demo/greet.md");
    assert_eq!(file_of("Then:"), WELCOME);
    // What the included one takes is taken, and what it needs is asked for with both places.
    let error = project.error("demo/welcome", json!({}));
    assert_eq!(
        (error.code(), error.diagnostic().file_name()),
        (Code::InvalidVariables, Some(".ai/directives/demo/greet.md"))
    );
    assert_eq!(error.diagnostic().related[0].0.file(), WELCOME);
    // A signed directive shows nothing without a signature, and a draft nothing that was changed.
    project.write(".ai/knowledge/demo/tea.md", TEA);
    let error = project.error("demo/welcome", json!({"who": "Ann"}));
    assert_eq!((error.code(), error.diagnostic().related[0].0.file()), (Code::Unsigned, WELCOME));
    assert!(project.codes("demo/welcome").contains(&"CB220"));
    project.write(WELCOME, welcome("{include:demo/tea}"));
    assert!(project.text("demo/welcome", json!({})).contains("Four minutes"));
    project.sign(".ai/knowledge/demo/tea.md", TEA);
    let changed =
        std::fs::read_to_string(project.project.path().join(".ai/knowledge/demo/tea.md")).unwrap() + "!\n";
    project.write(".ai/knowledge/demo/tea.md", changed);
    assert_eq!(project.error("demo/welcome", json!({})).code(), Code::ContentChanged);
}

#[test]
fn a_directive_includes_no_file_and_leads_in_no_circle() {
    let with = |body: &str| {
        Project::new().signed(WELCOME, &welcome(body)).error("demo/welcome", json!({"who": "Ann"}))
    };
    for (body, code, hint) in [
        ("{include:demo/te}", Code::MissingInclude, "did you mean `demo/tea`"),
        ("{include:directive:demo/gret}", Code::MissingInclude, "did you mean `demo/greet`"),
        (
            "{include:prompt:note}",
            Code::MissingInclude,
            "include signed items: {include:ID} for knowledge, {include:directive:ID} for another directive",
        ),
        ("{include:../../prompts/plain/template}", Code::InvalidItemId, ""),
    ] {
        let error = with(body);
        assert_eq!(error.code(), code, "{body}: {error:?}");
        let reported = error.diagnostic();
        assert_eq!(
            reported.place.as_ref().map(|place| place.to_string()),
            Some(format!("{WELCOME}:14:1")),
            "{body}"
        );
        assert!(
            reported.hint.as_deref().unwrap_or_default().starts_with(hint),
            "{body}: {:?}",
            reported.hint
        );
    }
    let error = with("{include:directive:demo/welcome}");
    assert_eq!(error.diagnostic().message, "include cycle: demo/welcome → demo/welcome");
    let back = GREET.replace("Greet {input:who}", "{include:directive:demo/welcome}");
    let project = Project::new()
        .signed(WELCOME, &welcome("{include:directive:demo/greet}"))
        .signed(".ai/directives/demo/greet.md", &back)
        .with("prompts/host/template.md", "{% include 'directive:demo/greet' %}");
    let error = project.error("demo/welcome", json!({"who": "Ann"}));
    assert_eq!(error.diagnostic().message, "include cycle: demo/welcome → demo/greet → demo/welcome");
    assert_eq!(error.diagnostic().related.len(), 1);
    assert_eq!(project.error("host", json!({"who": "Ann"})).code(), Code::IncludeCycle);
}

#[test]
fn inputs_of_an_included_directive_keep_their_rules() {
    let typed = GREET.replace(
        "<input name=\"tone\" type=\"string\" default=\"calm\">How</input>",
        "<input name=\"tone\" type=\"integer\" default=\"3\">How</input>",
    );
    let project = Project::new().signed(".ai/directives/demo/greet.md", &typed);
    for (path, text) in [
        ("prompts/host/template.md", "{% include 'directive:demo/greet' %}"),
        (
            "prompts/other.prompty",
            "---\nname: other\ntemplate: {format: mustache}\n---\n{{> prompt:demo/greet}}",
        ),
    ] {
        project.write(path, text);
    }
    for id in ["host", "other"] {
        // A default is a text whatever the type, and a text takes every plain value.
        assert_eq!(project.text(id, json!({"who": "Ann"})), "Greet Ann in a 3 way.");
        assert_eq!(project.text(id, json!({"who": 7, "tone": 4})), "Greet 7 in a 4 way.");
        for wrong in [json!({"who": ["Ann"]}), json!({"who": "Ann", "tone": "4"})] {
            assert_eq!(project.error(id, wrong.clone()).code(), Code::InvalidVariables, "{wrong}");
        }
        assert!(!project.codes(id).contains(&"CB401"), "{:?}", project.codes(id));
    }
}

#[test]
fn every_missing_include_of_a_directive_is_reported() {
    let project = Project::new()
        .signed(
            WELCOME,
            &welcome("{include:demo/no} {include:directive:demo/mid} {include:directive:demo/none}"),
        )
        .signed(
            ".ai/directives/demo/mid.md",
            &welcome("{include:demo/gone} {include:demo/tea} {include:demo/lost}")
                .replace("\"welcome\"", "\"mid\""),
        );
    let report = project.book().check(&["demo/welcome".to_owned()], |_| {}).unwrap();
    let missing: Vec<String> = report
        .findings
        .iter()
        .filter(|finding| finding.code == Code::MissingInclude)
        .map(|finding| finding.place.as_ref().unwrap().text().to_owned())
        .collect();
    assert_eq!(
        missing,
        ["{include:demo/gone}", "{include:demo/lost}", "{include:demo/no}", "{include:directive:demo/none}"]
    );
}

#[test]
fn an_included_directive_accepts_no_more_values() {
    let path = ".ai/directives/demo/greet.md";
    let project = Project::new()
        .signed(path, &GREET.replace("in a {input:tone} way", "in {input:place|town}"))
        .with("prompts/host/template.md", "{% include 'directive:demo/greet' %} {{ own }}")
        .with("prompts/sets/template.md", "{% set place = 'Rome' %}{% include 'directive:demo/greet' %}");
    let given = json!({"who": "Ann", "place": "Rome"});
    assert_eq!(project.error("demo/greet", given.clone()).code(), Code::UnknownVariable);
    assert_eq!(project.text("host", given), "Greet Ann in town. ");
    assert_eq!(project.text("sets", json!({"who": "Ann"})), "Greet Ann in town.");
    assert!(!project.book().prepare("host", &Context::default()).unwrap().knows("place"));
}

#[test]
fn a_default_of_the_wrong_type_is_refused() {
    let path = ".ai/directives/demo/greet.md";
    let with = |default: &str| GREET.replace("type=\"string\" default=\"calm\"", default);
    let project = Project::new()
        .signed(path, &with("type=\"integer\" default=\"x5\""))
        .with("prompts/host/template.md", "{% include 'directive:demo/greet' %}");
    let report = project.book().check(&["demo/greet".to_owned()], |_| {}).unwrap();
    assert_eq!((report.errors(), report.findings[0].code), (1, Code::BadDirective), "{:?}", report.findings);
    for id in ["demo/greet", "host"] {
        let error = project.error(id, json!({"who": "Ann"}));
        assert_eq!(error.code(), Code::InvalidVariables, "{id}");
        assert_eq!(error.diagnostic().place.as_ref().unwrap().text(), "tone", "{id}");
        assert!(project.text(id, json!({"who": "Ann", "tone": 5})).contains("in a 5 way"), "{id}");
    }
    for fine in [
        "type=\"integer\" default=\"5\"",
        "type=\"boolean\" default=\"True\"",
        "type=\"integer\" default=\"\"",
    ] {
        project.sign(path, &with(fine));
        project.text("demo/greet", json!({"who": "Ann"}));
        project.text("host", json!({"who": "Ann"}));
        assert_eq!(project.codes("demo/greet"), [""; 0], "{fine}");
    }
}

#[test]
fn the_cases_of_a_directive_are_no_item() {
    let project = Project::new().with(".ai/directives/demo/greet.tests.md", "## a\n");
    let spaces = Spaces::new(project.project.path(), Some(project.user.path()));
    let trust = Trust::new(&spaces);
    let found = Searcher::new(spaces.clone()).search(&SearchRequest::new("directive.demo.*", ""), &trust);
    let found = found.unwrap();
    assert_eq!((found.total, found.items[0].id.as_str()), (1, "demo/greet"));
    let id = ItemId::new("demo/greet.tests").unwrap();
    assert!(spaces.find(ItemType::Directive, &id).unwrap().is_none());
}

#[test]
fn the_place_of_an_include_is_reported_once() {
    let mustache = "---\nname: host\ntemplate: {format: mustache}\n---\n{{> ADDRESS}}";
    for (path, text) in [
        ("prompts/host/template.md", "{% include 'ADDRESS' %}"),
        ("prompts/host.prompty", mustache),
        ("prompts/host.sections.md", "---\nengine: jinja2\n---\n# Host\n{% include 'ADDRESS' %}\n"),
    ] {
        for (address, item, content) in [
            ("directive:demo/greet", ".ai/directives/demo/greet.md", GREET),
            ("prompt:demo/greet", ".ai/directives/demo/greet.md", GREET),
            ("knowledge:demo/tea", ".ai/knowledge/demo/tea.md", TEA),
        ] {
            let project = Project::new().with(path, &text.replace("ADDRESS", address));
            let labels = |error: &cuebook::Error| -> Vec<String> {
                error
                    .diagnostic()
                    .related
                    .iter()
                    .map(|(place, label)| format!("{} {label}", place.file()))
                    .collect()
            };
            let here = [format!("{path} included here")];
            project.write(item, content);
            let error = project.error("host", json!({"who": "Ann"}));
            assert_eq!(
                (error.code(), labels(&error).as_slice()),
                (Code::Unsigned, &here[..]),
                "{text} {address}"
            );
            project.sign(item, content);
            let changed = std::fs::read_to_string(project.project.path().join(item)).unwrap() + "!\n";
            project.write(item, changed);
            let error = project.error("host", json!({"who": "Ann"}));
            assert_eq!(
                (error.code(), labels(&error).as_slice()),
                (Code::ContentChanged, &here[..]),
                "{text} {address}"
            );
        }
    }
}

#[test]
fn the_signature_of_an_include_is_reported_with_every_use() {
    let project = Project::new()
        .signed(WELCOME, &welcome("{include:demo/tea} Then: {include:directive:demo/greet}"))
        .with(
            "prompts/host/template.md",
            "Plain. {% include 'prompt:mid' %} {% include 'knowledge:demo/tea' %}",
        )
        .with("prompts/mid.prompty", "---\nname: mid\n---\n{% include 'directive:demo/welcome' %}");
    let signature = |id: &str, text: &str| {
        let variables = Variables::new().set("who", "Ann");
        let explained = project
            .book()
            .explain(
                id,
                &variables,
                &Context { unknown: cuebook::UnknownVariables::Ignore, ..Context::default() },
            )
            .unwrap();
        let found = explained.find(text).unwrap();
        found.into_iter().map(|answer| answer.pieces[0].signature.clone()).collect::<Vec<_>>()
    };
    let signed = Some(format!("signed by ann ({})", project.key.public().fingerprint()));
    for (id, text, times) in [
        ("host", "Then:", 1),
        ("host", "in a", 1),
        ("host", "Ann", 1),
        ("host", "Four minutes", 2),
        // As for a directive by itself, and for what that includes.
        ("demo/welcome", "Then:", 1),
        ("demo/welcome", "Four minutes", 1),
    ] {
        assert_eq!(signature(id, text), vec![signed.clone(); times], "{id} {text}");
    }
    assert_eq!(signature("host", "Plain"), [None]);
}
