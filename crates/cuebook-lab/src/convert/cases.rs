//! The cases beside a prompt, which come along with it: they are run before and after, and new failures are reported.

use super::OutFile;
use super::draft::Draft;
use super::report::Report;
use super::verify::Bench;
use crate::cases::{CASES_END, CASES_FILE, CaseFile, Outcome, run_cases};
use crate::convert::BuiltIn;
use crate::error::Hint;
use crate::error::Result;

/// The cases for the result, if the prompt has some.
pub(super) fn carry(
    bench: &Bench<'_>,
    draft: &Draft,
    files: &[OutFile],
    report: &mut Report,
) -> Result<Option<OutFile>> {
    let Some(own) = CaseFile::of(bench.source.found().clone(), bench.book).filter(CaseFile::exists) else {
        return Ok(None);
    };
    let before = own.read(bench.book).and_then(|source| {
        let outcomes = run_cases(bench.book, &own, |_| {})?;
        Ok((source, outcomes))
    });
    let (source, before) = match before {
        Ok(read) => read,
        Err(error) => {
            let message = format!("the cases in {} are left out: {}", own.name, error.diagnostic().message);
            report
                .lost("cases", message)
                .hint(Hint::run("fix them, and convert again", format!("cuebook test {}", own.prompt)));
            return Ok(None);
        }
    };
    let path = match bench.target {
        BuiltIn::Template => CASES_FILE.to_owned(),
        _ => format!("{}{CASES_END}", draft.id),
    };
    let cases = OutFile { path, text: source.text().to_owned() };
    let all: Vec<OutFile> = files.iter().cloned().chain([cases.clone()]).collect();
    let (_scratch, at) = bench.lay(draft, &all)?;
    let found = bench.book.library().find_path(&at)?;
    let behind = match CaseFile::of(found, bench.book) {
        Some(file) => run_cases(bench.book, &file, |_| {}),
        None => return Ok(None),
    };
    let behind = match behind {
        Ok(outcomes) => outcomes,
        Err(error) => {
            let message = format!("the cases in {} fail: {}", own.name, error.diagnostic().message);
            report
                .changed("cases", message)
                .hint(Hint::run("run them where you wrote the result", "cuebook test"));
            return Ok(Some(cases));
        }
    };
    let mut passing = 0;
    for (before, now) in before.iter().zip(&behind) {
        match (before.passed(), now.passed()) {
            (_, true) => passing += 1,
            (true, false) => report_case(bench, before, now, report),
            (false, false) => {}
        }
    }
    let message = match (passing, before.len()) {
        (passing, all) if passing == all => format!("the cases in {} are copied, and all pass", own.name),
        (passing, all) => format!("the cases in {} are copied, and {passing} of {all} pass", own.name),
    };
    report.note("cases", message);
    Ok(Some(cases))
}

/// Tells of a case that passed, and does not any more.
fn report_case(bench: &Bench<'_>, before: &Outcome, now: &Outcome, report: &mut Report) {
    let missing = |error: &crate::error::Error| bench.is_missing_include(error);
    let failure = now.failures.first();
    let (why, hint) = match failure {
        Some(failure) if failure.error.as_ref().is_some_and(missing) => (
            "the result finds its includes only in its final folder",
            Hint::run("run it where you wrote the result", "cuebook test"),
        ),
        Some(failure) => (
            failure.what.as_str(),
            Hint::run("compare the new text, and accept it if it is right", "cuebook test --update"),
        ),
        None => return,
    };
    let message = format!("the case `{}` no longer passes: {why}", before.case);
    report.changed("cases", message).at(Some(before.place.clone())).hint(hint);
}
