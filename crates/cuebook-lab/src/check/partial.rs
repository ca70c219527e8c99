//! Partials: shared pieces are read even if no prompt includes them yet, so that a syntax error
//! ([CB304](crate::Code::TemplateSyntax)) does not wait for its first user.

use std::path::Path;

use crate::book::Book;
use crate::error::{Diagnostic, Result};
use crate::library::{Config, Root, RootKind, Survey};
use crate::template::jinja::{Settings, check_syntax};

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
            findings.extend(one(root, &name, &config, &settings));
        }
    }
    Ok(findings)
}

/// What is wrong with one partial.
fn one(root: &Root, name: &str, config: &Config, settings: &Settings) -> Vec<Diagnostic> {
    let source = root.read(&format!("partials/{name}"), config.limits.file_size);
    let checked = source.and_then(|source| check_syntax(&source, settings));
    checked.err().map(|error| error.into_diagnostics()).unwrap_or_default()
}

/// What is wrong with a file, if it is a partial.
pub(crate) fn check_file(config: &Config, survey: &Survey, path: &Path) -> Option<Vec<Diagnostic>> {
    let name = path.file_name()?.to_str().filter(|name| name.ends_with(".md") && !name.starts_with('.'))?;
    let is_here = |root: &&std::sync::Arc<Root>| {
        root.kind != RootKind::Builtin && root.path("partials").as_deref() == path.parent()
    };
    let root = survey.roots().iter().find(is_here)?;
    Some(one(root, name, config, &config.template_settings(false)))
}
