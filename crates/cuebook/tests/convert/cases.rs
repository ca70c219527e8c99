//! The cases beside a prompt come along with it.

use cuebook_lab::BookExt;
use cuebook_lab::convert::BuiltIn::{self, Directive, Prompty, Sections, Template};
use cuebook_lab::convert::{Conversion, EntryKind, Target};

use crate::support::Project;

const CASES: &str = "## Ann\n```yaml inputs\nwho: Ann\n```\n```text expected\n# Task\n\nGreet Ann now.\n```\n\n\
                     ## Some of it\n```yaml inputs\nwho: Bo\n```\n```text contains\nGreet Bo\n```\n";

fn project(cases: &str) -> Project {
    Project::new()
        .file("prompts/p/template.md", "# Task\n\nGreet {{ who }} now.\n")
        .file("prompts/p/tests.md", cases)
}

fn reported(conversion: &Conversion) -> Vec<(EntryKind, &str)> {
    let about = conversion.report.entries.iter().filter(|entry| entry.about == "cases");
    about.map(|entry| (entry.fate, entry.finding.message.as_str())).collect()
}

fn convert(project: &Project, to: BuiltIn) -> Conversion {
    project.book().convert("p", &Target::new(to)).unwrap_or_else(|error| panic!("{to:?}: {error}"))
}

#[test]
fn passing_cases_are_copied_under_the_new_name() {
    let project = project(CASES);
    for to in [Prompty, Sections] {
        let conversion = convert(&project, to);
        let cases = conversion.cases.as_ref().unwrap();
        assert_eq!((cases.path.as_str(), cases.text.as_str()), ("p.tests.md", CASES));
        assert_eq!(
            reported(&conversion),
            [(EntryKind::Note, "the cases in prompts/p/tests.md are copied, and all pass")]
        );
        // And there they are found, and back again.
        let result = Project::new();
        for file in conversion.files.iter().chain(&conversion.cases) {
            result.write(&format!("prompts/{}", file.path), &file.text);
        }
        let back = convert(&result, Template);
        assert_eq!(back.cases.as_ref().unwrap().path, "tests.md");
        assert_eq!(
            reported(&back),
            [(EntryKind::Note, "the cases in prompts/p.tests.md are copied, and all pass")]
        );
    }
}

#[test]
fn cases_that_no_longer_pass_are_reported() {
    let conversion = convert(&project(CASES), Directive);
    assert_eq!(
        reported(&conversion),
        [
            (EntryKind::Changed, "the case `Ann` no longer passes: the text differs from the expected text"),
            (EntryKind::Note, "the cases in prompts/p/tests.md are copied, and 1 of 2 pass"),
        ]
    );
    assert_eq!(conversion.cases.unwrap().path, "p.tests.md");
}

#[test]
fn invalid_cases_are_left_out_and_reported() {
    let conversion = convert(&project("## a\n```yaml settings\nnonsense: 1\n```\n"), Prompty);
    assert!(conversion.cases.is_none());
    let reported = reported(&conversion);
    assert!(
        reported[0].0 == EntryKind::Lost
            && reported[0].1.starts_with("the cases in prompts/p/tests.md are left out: "),
        "{reported:?}"
    );
}

#[test]
fn a_prompt_without_cases_has_none_afterwards() {
    let project = Project::with_template("Hi.\n");
    let conversion = convert(&project, Prompty);
    assert!(conversion.cases.is_none() && reported(&conversion).is_empty());
}
