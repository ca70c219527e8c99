//! Partials: shared pieces are read even if no prompt includes them yet, so that a syntax error
//! ([CB304](crate::Code::TemplateSyntax)) does not wait for its first user.

use crate::book::Book;
use crate::error::{Diagnostic, Result};
use crate::library::{RootKind, Survey};
use crate::template::jinja::check_syntax;

/// Reads every Markdown file in a folder `partials`.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let library = book.library();
    let config = library.config()?;
    let settings = config.template_settings(false);
    let mut findings = Vec::new();
    for root in survey.roots() {
        let Some(folder) = root.path("partials") else { continue };
        if root.kind == RootKind::Builtin || !folder.is_dir() {
            continue;
        }
        let Ok(entries) = std::fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if !name.ends_with(".md") || name.starts_with('.') {
                continue;
            }
            let checked = root
                .read(&format!("partials/{name}"), config.limits.file_size)
                .and_then(|source| check_syntax(&source, &settings));
            if let Err(error) = checked {
                findings.extend(error.into_diagnostics());
            }
        }
    }
    Ok(findings)
}
