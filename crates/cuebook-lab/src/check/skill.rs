//! Folders of skills whose file has another case than agents look for ([CB111](crate::Code::NoTemplate)).

use std::fs;
use std::path::Path;

use crate::book::Book;
use crate::dialect::skill::SKILL_FILE;
use crate::error::{Code, Diagnostic, Result, Severity};
use crate::library::Survey;
use crate::prompt::SKILL;

/// Looks at the folders that hold skills only.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let of_skills = |path: &&Path| SKILL.folders.iter().any(|folder| path.ends_with(folder));
    let folders = survey.roots().iter().filter_map(|root| root.folder()).filter(of_skills);
    let mut findings = Vec::new();
    for skill in folders.flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten()) {
        let names = fs::read_dir(skill.path()).into_iter().flatten().flatten();
        let names: Vec<String> = names.filter_map(|file| file.file_name().into_string().ok()).collect();
        let other = names.iter().find(|name| name.eq_ignore_ascii_case(SKILL_FILE));
        if let Some(name) = other.filter(|_| names.iter().all(|name| name != SKILL_FILE)) {
            let message = format!("the file is called `{name}`, but agents look for `{SKILL_FILE}`");
            let found = Diagnostic::new(Code::NoTemplate, message).severity(Severity::Warning);
            let file = book.library().name(&skill.path().join(name));
            findings.push(found.file(file).hint(format!("rename it to `{SKILL_FILE}`")));
        }
    }
    Ok(findings)
}
