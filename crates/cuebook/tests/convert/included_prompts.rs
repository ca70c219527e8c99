//! What a prompt includes, and what it says of itself beside its text, on the way into another notation.

use cuebook::Code;
use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn::{self, Directive, Prompty, Sections, Template};
use cuebook_lab::convert::{Conversion, EntryKind, Target};

use crate::support::Project;

fn convert(project: &Project, to: BuiltIn) -> Conversion {
    project.book().convert("p", &Target::new(to)).unwrap_or_else(|error| panic!("{to:?}: {error}"))
}

fn reported<'c>(conversion: &'c Conversion, about: &str) -> Vec<(EntryKind, &'c str)> {
    let entries = conversion.report.entries.iter().filter(|entry| entry.about == about);
    entries.map(|entry| (entry.fate, entry.finding.message.as_str())).collect()
}

#[test]
fn a_default_from_an_included_directive_is_of_its_type() {
    let directive = "```xml\n<directive name=\"d\" version=\"1.0.0\"><metadata><description>D</description><category/></metadata><inputs><input name=\"replicas\" type=\"integer\" default=\"2\"/><input name=\"odd\" type=\"integer\" default=\"x5\"/></inputs></directive>\n```\n{input:replicas} times {input:odd}.\n";
    let project = Project::new()
        .file(".ai/directives/d.md", directive)
        .file("prompts/p/template.md", "# A\n\nSay {% include \"directive:d\" %}\n");
    for to in [Prompty, Sections] {
        let conversion = convert(&project, to);
        let text = &conversion.files[0].text;
        assert!(text.contains("replicas:\n    kind: integer\n    default: 2\n"), "{text}");
        assert!(text.contains("odd:\n    kind: any\n    default: x5\n"), "{text}");
        assert_eq!(reported(&conversion, "inputs").len(), 1, "{:#?}", conversion.report);
    }
}

#[test]
fn a_mustache_partial_is_refused_in_words_that_are_true() {
    let front = "---\ntemplate: {format: mustache}\n---\n";
    let project = Project::new()
        .file("prompts/note.prompty", "Note.\n")
        .file("prompts/p.prompty", &format!("{front}# Task\n\n{{{{> prompt:note}}}}\n"));
    for (to, words) in [
        (Template, "the text has a Mustache partial, but an `{% include %}` differs: "),
        (Directive, "the text has a Mustache partial, but a directive has no equivalent"),
    ] {
        let error = project.book().convert("p", &Target::new(to)).unwrap_err();
        assert_eq!(error.code(), Code::CannotConvert);
        assert!(error.diagnostic().message.starts_with(words), "{error}");
        assert!(error.diagnostic().hint.as_ref().unwrap().ends_with("--to sections"), "{error}");
    }
}

#[test]
fn the_lower_default_limit_of_a_pack_is_reported() {
    let text = "# A\n\n{{ text }}.\n";
    let packed = Project::new()
        .file("user_data/packs/mine/pack.json", r#"{"pack_id": "mine"}"#)
        .file("user_data/packs/mine/prompts/p/template.md", text);
    let project = Project::new().file("prompts/p/template.md", text);
    let message = "the text may have 1000000 characters: its own limit of 50000 is left out";
    for to in [Prompty, Sections, Directive] {
        assert_eq!(reported(&convert(&packed, to), "limits"), [(EntryKind::Note, message)], "{to:?}");
        assert_eq!(reported(&convert(&project, to), "limits"), [], "{to:?}");
    }
    // A limit that is written down is lost.
    project.write("prompts/p/prompt.py", "LIMITS = {\"max_output_size\": 50000}\n");
    let lost = [(EntryKind::Lost, "the limit of 50000 characters is left out")];
    assert_eq!(reported(&convert(&project, Prompty), "limits"), lost);
    // Where one limit holds for all, none is lost.
    project.write("prompts/p/prompt.py", "");
    project.write("user_data/shared/prompts/defaults.json", "{\"limits\": {\"max_output_size\": 70000}}");
    assert_eq!(reported(&convert(&project, Prompty), "limits"), []);
    project.write("prompts/p/prompt.py", "LIMITS = {\"max_output_size\": 1000000}\n");
    assert_eq!(reported(&convert(&project, Prompty), "limits").len(), 1);
    project.write("user_data/shared/prompts/defaults.json", "{}");
    assert_eq!(reported(&convert(&project, Prompty), "limits"), []);
}

/// What stands in the elements that signing asks for.
fn signed_by(conversion: &Conversion) -> (&str, &str) {
    let text = &conversion.files[0].text;
    let between = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>")).unwrap_or_else(|| panic!("{text}"));
        rest.split_once("</").unwrap().0
    };
    (between("description"), between("author"))
}

#[test]
fn a_directive_has_what_signing_asks_for() {
    let project = Project::new().file("prompts/p.prompty", "Hi.\n");
    let conversion = convert(&project, Directive);
    assert_eq!(signed_by(&conversion), ("p", "unknown"));
    let notes: Vec<&str> =
        reported(&conversion, "signature").into_iter().map(|(_, message)| message).collect();
    assert_eq!(
        notes[..2],
        [
            "the prompt has no description, which a signature requires: `p` is used",
            "the prompt names no author, which a signature requires: `unknown` is used",
        ]
    );
    assert!(conversion.report.is_lossless(), "{:#?}", conversion.report);
    for (metadata, author) in [
        ("author: Ann", "Ann"),
        ("author: [Ann, Bo]", "Ann, Bo"),
        ("authors: [Ann, Bo]", "Ann, Bo"),
        ("authors: Ann", "Ann"),
    ] {
        let front = format!("---\ndescription: Greets.\nmetadata: {{{metadata}}}\n---\nHi.\n");
        project.write("prompts/p.prompty", &front);
        let conversion = convert(&project, Directive);
        assert_eq!(signed_by(&conversion), ("Greets.", author), "{metadata}");
        assert_eq!(reported(&conversion, "signature").len(), 1, "{:#?}", conversion.report);
        assert!(conversion.report.is_lossless(), "{:#?}", conversion.report);
    }
    // What holds for all prompts is said by each directive.
    project.write("user_data/shared/prompts/defaults.json", "{\"metadata\": {\"author\": \"Cy\"}}");
    project.write("prompts/p.prompty", "---\ndescription: Greets.\n---\nHi.\n");
    assert_eq!(signed_by(&convert(&project, Directive)).1, "Cy");
    // A name and a version that no one can sign are reported.
    let target = Target { name: Some("Say-hi".to_owned()), ..Target::new(Directive) };
    project.write("prompts/p.prompty", "---\ndescription: Greets.\nmetadata: {version: \"2\"}\n---\nHi.\n");
    let conversion = project.book().convert("p", &target).unwrap();
    let notes = reported(&conversion, "signature");
    assert!(
        notes.iter().any(|(_, message)| message.starts_with("the name `Say-hi` cannot be signed")),
        "{notes:?}"
    );
    assert!(
        notes.iter().any(|(_, message)| message.starts_with("the version `2` cannot be signed")),
        "{notes:?}"
    );
}
