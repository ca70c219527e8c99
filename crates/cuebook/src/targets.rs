//! The prompts that somebody names: by ids, by paths to files and folders, or all of the library.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::book::Book;
use crate::cases::prompt_of_cases;
use crate::error::Result;
use crate::files;
use crate::library::{Candidate, Found, Reason, Root, RootKind};
use crate::prompt::Dialect;

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

impl Book {
    /// The prompts that are named (by id, or by a path to a file or folder), or all of the library if none is. What ships
    /// inside the binary is there only if it is named.
    pub fn targets(&self, named: &[String]) -> Result<Vec<Target>> {
        let mut targets: Vec<Target> = Vec::new();
        let by_path = |found: Found| {
            let name = place(&found.candidate).map(|path| path.to_string_lossy().into_owned());
            let name = name.unwrap_or_else(|| found.id.clone());
            Target { id: found.id, source: found.candidate.source, name }
        };
        if named.is_empty() {
            targets.extend(self.found_of(named)?.into_iter().map(by_path));
        }
        for name in named {
            match self.find(name) {
                Ok(found) => {
                    targets.push(Target { id: found.id, source: found.candidate.source, name: name.clone() });
                }
                Err(_) => targets.extend(self.found_of(std::slice::from_ref(name))?.into_iter().map(by_path)),
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
    pub(crate) fn found_of(&self, named: &[String]) -> Result<Vec<Found>> {
        let mut found = Vec::new();
        if named.is_empty() {
            self.all_prompts(&mut found, |_| true)?;
        }
        for name in named {
            self.prompts_of(name, &mut found)?;
        }
        Ok(found)
    }

    fn prompts_of(&self, target: &str, found: &mut Vec<Found>) -> Result<()> {
        let path = std::path::absolute(Path::new(target)).unwrap_or_else(|_| PathBuf::from(target));
        if let Some(prompt) = prompt_of_cases(&path) {
            found.push(self.find_path(&prompt)?);
            return Ok(());
        }
        let error = match self.find(target) {
            Ok(one) => {
                found.push(one);
                return Ok(());
            }
            Err(error) => error,
        };
        if !self.takes_paths() || !path.is_dir() {
            return Err(error);
        }
        let before = found.len();
        self.all_prompts(found, |file| file.starts_with(&path))?;
        // Prompts that lie in a folder which is no place of the library.
        for place in [path.clone(), path.join("prompts")] {
            let roots = self.library().roots()?;
            if roots.iter().all(|root| root.folder() != Some(place.as_path())) {
                let name = files::display_name(self.library().root(), &place);
                self.prompts_below(&Arc::new(Root::on_disk(RootKind::Given, name, place)), found, |_| true)?;
            }
        }
        if found.len() == before { Err(error) } else { Ok(()) }
    }

    fn all_prompts(&self, found: &mut Vec<Found>, wanted: impl Fn(&Path) -> bool) -> Result<()> {
        let survey = self.library().survey()?;
        for root in survey.roots().iter().filter(|root| root.kind != RootKind::Builtin) {
            self.prompts_below(root, found, &wanted)?;
        }
        for (id, candidates) in survey.ids() {
            let of_items = |candidate: &&Candidate| {
                candidate.dialect == Dialect::Directive && candidate.shadowed_by.is_none()
            };
            for candidate in candidates.iter().filter(of_items) {
                if place(candidate).is_some_and(|path| wanted(&path)) {
                    found.push(Found {
                        id: id.to_owned(),
                        candidate: candidate.clone(),
                        reason: Reason::Given,
                    });
                }
            }
        }
        Ok(())
    }

    fn prompts_below(
        &self,
        root: &Arc<Root>,
        found: &mut Vec<Found>,
        wanted: impl Fn(&Path) -> bool,
    ) -> Result<()> {
        for (id, candidates) in self.library().all_below(root)? {
            for candidate in candidates {
                if place(&candidate).is_some_and(|path| wanted(&path)) {
                    found.push(Found { id: id.clone(), candidate, reason: Reason::Given });
                }
            }
        }
        Ok(())
    }
}

/// The path that a candidate is at.
fn place(candidate: &Candidate) -> Option<PathBuf> {
    let file = candidate.template_file.as_deref().map(|file| candidate.file(file));
    candidate.root.path(file.as_deref().unwrap_or(&candidate.entry))
}
