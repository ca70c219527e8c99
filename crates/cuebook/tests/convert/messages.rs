//! Messages are seen where a render makes them, whatever wrote the lines that begin them.

use cuebook::Code;
use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn::{self, Prompty, Sections, Template};
use cuebook_lab::convert::{Conversion, EntryKind, Target};

use crate::support::Project;

const TWO: &str = "system:\nOne\nuser:\nTwo\n";

fn project(path: &str, text: &str) -> Project {
    Project::new().file("prompts/two.prompty", TWO).file(path, text)
}

fn convert(project: &Project, to: BuiltIn) -> Conversion {
    project.book().convert("p", &Target::new(to)).unwrap_or_else(|error| panic!("{to:?}: {error}"))
}

fn reported(conversion: &Conversion) -> Vec<(EntryKind, &str)> {
    let about = conversion.report.entries.iter().filter(|entry| entry.about == "roles");
    about.map(|entry| (entry.fate, entry.finding.message.as_str())).collect()
}

#[test]
fn messages_of_an_include_are_lost_and_reported() {
    let project = project("prompts/p.prompty", "Intro\n{% include \"prompt:two\" %}\n");
    for (to, noun) in [(Template, "template"), (Sections, "section tree")] {
        let conversion = convert(&project, to);
        let message = format!(
            "the rendered prompt is 3 messages (system, system, user), but a {noun} is one message: the role lines become text"
        );
        assert_eq!(reported(&conversion), [(EntryKind::Lost, message.as_str())]);
        // All else is compared, and is the same.
        assert_eq!((conversion.compared, &conversion.uncompared), (4, &None), "{:#?}", conversion.report);
        let entry = conversion.report.entries.iter().find(|entry| entry.about == "roles").unwrap();
        assert_eq!(entry.finding.place.as_ref().unwrap().line(), 2);
        let error = conversion.strictly().unwrap_err();
        assert!(error.diagnostics().iter().any(|found| found.message == message), "{error}");
    }
}

#[test]
fn a_line_before_an_include_does_not_stop_the_comparison() {
    let conversion =
        convert(&project("prompts/p.prompty", "user:\nIntro\n{% include \"prompt:two\" %}\n"), Template);
    let lost = "the rendered prompt is 3 messages (user, system, user), but a template is one message: the role lines become text";
    assert!(reported(&conversion).contains(&(EntryKind::Lost, lost)), "{:#?}", conversion.report);
    assert_eq!(conversion.compared, 4, "{:#?}", conversion.report);
    assert!(conversion.files[0].text.starts_with("Intro\n"), "{}", conversion.files[0].text);
}

#[test]
fn a_role_from_a_partial_or_behind_a_condition_is_seen_as_well() {
    for text in ["{% include \"partials/ask.md\" %}", "{% if true %}user:{% endif %}\nGo.\n"] {
        let project = project("prompts/p.prompty", text).file("prompts/partials/ask.md", "user:\nGo.\n");
        let conversion = convert(&project, Template);
        let message = "the rendered prompt is a message with the role user, but a template has no roles: the role line becomes text";
        assert_eq!(reported(&conversion), [(EntryKind::Lost, message)], "{text}");
        assert_eq!(conversion.compared, 4, "{:#?}", conversion.report);
    }
}

#[test]
fn several_messages_of_the_text_itself_are_reported_once() {
    let conversion =
        convert(&project("prompts/p.prompty", &format!("{TWO}{{% include \"prompt:two\" %}}")), Template);
    assert_eq!(reported(&conversion).len(), 1, "{:#?}", conversion.report);
    assert!(reported(&conversion)[0].1.starts_with("the text has 2 messages"));
}

#[test]
fn role_names_that_a_file_declares_are_roles() {
    let roles = "---\ntemplate: {parser: {kind: prompty, options: {roles: {human: user}}}}\n---\n";
    let conversion = convert(&project("prompts/p.prompty", &format!("{roles}human:\nGo.\n")), Template);
    assert_eq!(conversion.files[0].text.trim(), "Go.", "{:#?}", conversion.report);
    assert!(
        !reported(&conversion).iter().any(|(_, said)| said.contains("parser")),
        "{:#?}",
        conversion.report
    );
    let text = format!("{roles}system:\nOne\nhuman:\nTwo\n");
    let conversion = convert(&project("prompts/p.prompty", &text), Template);
    assert!(reported(&conversion)[0].1.starts_with("the text has 2 messages"), "{:#?}", conversion.report);
}

#[test]
fn text_before_the_first_role_counts_as_a_message() {
    let conversion = convert(&project("prompts/p.prompty", &format!("Before.\n{TWO}")), Template);
    assert!(reported(&conversion)[0].1.starts_with("the text has 3 messages"), "{:#?}", conversion.report);
}

#[test]
fn lines_that_were_text_and_begin_messages_are_a_change() {
    let project = project("prompts/p/template.md", "Intro\n{% include \"prompt:two\" %}\n");
    let conversion = convert(&project, Prompty);
    let message =
        "lines that were text begin messages in a .prompty file: the roles are system, system, user";
    assert_eq!(reported(&conversion), [(EntryKind::Changed, message)]);
    assert_eq!(conversion.uncompared.as_deref(), Some("the renders differ"));
}

#[test]
fn check_reports_role_lines_that_are_text() {
    let include = "Intro\n{% include \"prompt:two\" %}\n";
    let section = format!("---\nengine: jinja2\n---\n# A\n\n{include}");
    let found = |path: &str, text: &str| {
        let report = project(path, text).book().check(&["p".to_owned()], |_| {}).unwrap();
        let of_includes = report.findings.iter().filter(|found| found.code == Code::LeftBehind);
        of_includes
            .map(|found| (found.message.clone(), found.place.as_ref().unwrap().source().name().to_owned()))
            .collect::<Vec<_>>()
    };
    let message = "role lines of `two` are text here: only .prompty files have roles";
    for (path, text) in [("prompts/p/template.md", include), ("prompts/p.sections.md", section.as_str())] {
        let [(reported, place)] = found(path, text).try_into().unwrap();
        assert_eq!((reported.as_str(), place.as_str()), (message, path));
    }
    assert_eq!(found("prompts/p.prompty", include), []);
}
