//! The prompts that a user names: by ids, by paths to files and folders, or all of the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::book::Book;
use crate::error::Result;
use crate::files;
use crate::items::{CASES_END, CASES_FILE};
use crate::library::{Candidate, Found, Reason, Root, RootKind};

/// One of the prompts that are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its id.
    pub id: String,
    /// The place that offers it.
    pub source: String,
    /// What the operations of a book find it by: what was named, or its path.
    pub name: String,
}

/// The prompts that are named (by id, or by a path to a file or folder), or all of the library if none is. What ships
/// inside the binary is there only if it is named.
pub fn targets(book: &Book, named: &[String]) -> Result<Vec<Target>> {
    let mut targets: Vec<Target> = Vec::new();
    let by_path = |found: Found| {
        let name = place(&found.candidate).map(|path| path.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| found.id.clone());
        Target { id: found.id, source: found.candidate.source, name }
    };
    if named.is_empty() {
        targets.extend(found_of(book, named)?.into_iter().map(by_path));
    }
    for name in named {
        match book.find(name) {
            Ok(found) => {
                targets.push(Target { id: found.id, source: found.candidate.source, name: name.clone() });
            }
            Err(_) => targets.extend(found_of(book, std::slice::from_ref(name))?.into_iter().map(by_path)),
        }
    }
    if named.is_empty() {
        targets.sort_by(|one, other| (&one.id, &one.source).cmp(&(&other.id, &other.source)));
    }
    let mut seen = std::collections::HashSet::new();
    targets.retain(|target| seen.insert(target.source.clone()));
    Ok(targets)
}

/// The same as the library finds them. The path of a file of cases names its prompt.
pub(crate) fn found_of(book: &Book, named: &[String]) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    if named.is_empty() {
        all_prompts(book, &mut found, |_| true)?;
    }
    for name in named {
        prompts_of(book, name, &mut found)?;
    }
    Ok(found)
}

fn prompts_of(book: &Book, target: &str, found: &mut Vec<Found>) -> Result<()> {
    let path = std::path::absolute(Path::new(target)).unwrap_or_else(|_| PathBuf::from(target));
    if let Some(prompt) = prompt_of_cases(book, &path) {
        found.push(book.find_path(&prompt)?);
        return Ok(());
    }
    let error = match book.find(target) {
        Ok(one) => {
            found.push(one);
            return Ok(());
        }
        Err(error) => error,
    };
    if !book.takes_paths() || !path.is_dir() {
        return Err(error);
    }
    let before = found.len();
    all_prompts(book, found, |file| file.starts_with(&path))?;
    // Prompts that lie in a folder which is no place of the library.
    for place in [path.clone(), path.join("prompts")] {
        let roots = book.library().roots()?;
        if roots.iter().all(|root| root.folder() != Some(place.as_path())) {
            let name = files::display_name(book.library().root(), &place);
            prompts_below(book, &Arc::new(Root::on_disk(RootKind::Given, name, place)), found, |_| true)?;
        }
    }
    if found.len() == before { Err(error) } else { Ok(()) }
}

fn all_prompts(book: &Book, found: &mut Vec<Found>, wanted: impl Fn(&Path) -> bool) -> Result<()> {
    let survey = book.library().survey()?;
    for root in survey.roots().iter().filter(|root| root.kind != RootKind::Builtin) {
        prompts_below(book, root, found, &wanted)?;
    }
    for (id, candidates) in survey.ids() {
        let of_items = |candidate: &&Candidate| candidate.dialect.is_item && candidate.shadowed_by.is_none();
        for candidate in candidates.iter().filter(of_items) {
            if place(candidate).is_some_and(|path| wanted(&path)) {
                found.push(Found { id: id.to_owned(), candidate: candidate.clone(), reason: Reason::Given });
            }
        }
    }
    Ok(())
}

fn prompts_below(
    book: &Book,
    root: &Arc<Root>,
    found: &mut Vec<Found>,
    wanted: impl Fn(&Path) -> bool,
) -> Result<()> {
    for (id, candidates) in book.library().all_below(root)? {
        for candidate in candidates {
            if place(&candidate).is_some_and(|path| wanted(&path)) {
                found.push(Found { id: id.clone(), candidate, reason: Reason::Given });
            }
        }
    }
    Ok(())
}

/// The path that a candidate is at.
pub(crate) fn place(candidate: &Candidate) -> Option<PathBuf> {
    let file = candidate.template_file.as_deref().map(|file| candidate.file(file));
    candidate.root.path(file.as_deref().unwrap_or(&candidate.entry))
}

/// The prompt that a file of cases lies beside.
fn prompt_of_cases(book: &Book, path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    if name == CASES_FILE {
        return path.parent().map(Path::to_owned);
    }
    let stem = name.strip_suffix(CASES_END)?;
    let claimed = book.library().claims().files_of(stem);
    let beside = claimed.filter(|(in_folder, ..)| !in_folder).map(|(_, file, _)| file);
    beside.chain([format!("{stem}.md")]).map(|file| path.with_file_name(file)).find(|path| path.is_file())
}
