//! A `.prompty` file of an older version as one of Prompty 2: other front matter above the same template.

use super::notation::yaml;
use super::report::Report;
use super::reported_differences::ReportedDifference;
use super::verify::Bench;
use super::{Conversion, OutFile, source};
use crate::convert::BuiltIn;
use crate::dialect::prompty::{Effect, Migrated, migrate};
use crate::error::Result;
use crate::library::PROMPTY_END;

/// The file for Prompty 2; nothing if it is one already.
pub(super) fn write(
    bench: &Bench<'_>,
    drafting: source::Drafting<'_>,
    name: Option<&str>,
) -> Result<Option<Conversion>> {
    let prompt = bench.source.prompt();
    let candidate = &bench.source.found().candidate;
    let folder = candidate.root.path(&candidate.entry);
    let Some(migrated) = migrate(&prompt.template, folder.as_deref())? else { return Ok(None) };
    let mut report = Report::default();
    report_changes(&migrated, &mut report);
    // The draft tells what no other notation can say, and this notation can.
    let mut draft = drafting.draft()?;
    if let Some(name) = name {
        name.clone_into(&mut draft.id);
    }
    let text = format!("---\n{}---\n{}", yaml(&migrated.front), migrated.body);
    let files = vec![OutFile { path: format!("{}{PROMPTY_END}", draft.id), text }];
    // Rendering the old file follows no other references, so that comparing needs none of what they lead to.
    let (front, references) = migrated.without_references();
    for (key, reference) in references {
        report.changed(
            "front matter",
            format!("`{key}` needs what `{reference}` refers to: an old file is rendered without it"),
        );
    }
    let text = format!("---\n{}---\n{}", yaml(&front), migrated.body);
    let probe = [OutFile { path: files[0].path.clone(), text }];
    let compared = bench.check_messages(&draft, &probe, &mut report)?;
    report.entries.sort_by_key(|entry| entry.fate);
    Ok(Some(Conversion {
        prompt: prompt.id.clone(),
        name: draft.id,
        from: BuiltIn::Prompty,
        to: BuiltIn::Prompty,
        files,
        cases: None,
        report,
        compared: compared.renders,
        compared_without: compared.without,
        uncompared: compared.why_not,
        differs: compared.differs,
    }))
}

fn report_changes(migrated: &Migrated, report: &mut Report) {
    for change in &migrated.changes {
        let place = Some(change.place.clone());
        match change.effect {
            Effect::Renamed => drop(report.note("front matter", &change.message).at(place)),
            Effect::Differs => drop(report.changed("front matter", &change.message).at(place)),
            Effect::Lost => drop(report.lost("front matter", &change.message).at(place)),
        }
    }
    for input in &migrated.used_defaults {
        let message = format!("the default of `{input}` is used: Prompty 1 does not use it");
        report.changed("inputs", message).spares(ReportedDifference::Absence(input.clone()));
    }
    if migrated.has_comments {
        report.lost("front matter", "comments in the front matter").hint("copy those that you need");
    }
    if migrated.roles_of_values {
        let message = "a value chooses the role of a message, with `template.parser.options.roles: values`";
        report.note("roles", message).hint("Prompty itself has an input of the kind `thread` for this");
    }
}
