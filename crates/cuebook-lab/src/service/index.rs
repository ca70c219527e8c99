//! What is known of the prompts of a library, by prompt and by file.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::check::{CheckedPrompt, is_circle};
use crate::error::Diagnostic;

/// The name of a prompt in the index: the place that offers it.
pub(super) type Source = Arc<str>;

/// The prompts, and which of them a file concerns.
#[derive(Debug, Default)]
pub(super) struct Index {
    prompts: BTreeMap<Source, CheckedPrompt>,
    /// The prompts that are made from a file.
    users: HashMap<PathBuf, BTreeSet<Source>>,
    /// The prompts that have findings in a file.
    findings: HashMap<PathBuf, BTreeSet<Source>>,
    /// The prompts that lead into a circle of includes.
    circles: BTreeSet<Source>,
}

impl Index {
    /// Takes over what is known of a prompt. `file_of` gives the file of a finding. Returns the files whose findings may differ.
    pub(super) fn set(
        &mut self,
        one: CheckedPrompt,
        file_of: impl Fn(&Diagnostic) -> PathBuf,
    ) -> BTreeSet<PathBuf> {
        let source: Source = one.found.candidate.source.as_str().into();
        let mut changed = self.remove(&source, &file_of);
        for file in &one.files {
            self.users.entry(file.clone()).or_default().insert(source.clone());
        }
        for finding in &one.findings {
            let file = file_of(finding);
            if is_circle(finding) {
                self.circles.insert(source.clone());
            }
            self.findings.entry(file.clone()).or_default().insert(source.clone());
            changed.insert(file);
        }
        self.prompts.insert(source, one);
        changed
    }

    fn remove(&mut self, source: &Source, file_of: impl Fn(&Diagnostic) -> PathBuf) -> BTreeSet<PathBuf> {
        fn forget(map: &mut HashMap<PathBuf, BTreeSet<Source>>, file: &Path, source: &Source) {
            if let Some(sources) = map.get_mut(file) {
                sources.remove(source);
                if sources.is_empty() {
                    map.remove(file);
                }
            }
        }
        let Some(before) = self.prompts.remove(source) else { return BTreeSet::new() };
        before.files.iter().for_each(|file| forget(&mut self.users, file, source));
        let changed: BTreeSet<PathBuf> = before.findings.iter().map(file_of).collect();
        changed.iter().for_each(|file| forget(&mut self.findings, file, source));
        self.circles.remove(source);
        changed
    }

    /// Forgets what was wrong with the prompts.
    pub(super) fn forget_findings(&mut self) {
        self.prompts.values_mut().for_each(|one| one.findings.clear());
        self.findings.clear();
        self.circles.clear();
    }

    pub(super) fn get(&self, source: &str) -> Option<&CheckedPrompt> {
        self.prompts.get(source)
    }

    pub(super) fn prompts(&self) -> impl Iterator<Item = (&Source, &CheckedPrompt)> {
        self.prompts.iter()
    }

    /// The prompts that are made from a file, or that it lies in the folder of.
    pub(super) fn users(&self, path: &Path) -> impl Iterator<Item = &Source> {
        let own = self.users.get(path);
        let of_folder = path.parent().and_then(|folder| self.users.get(folder)).into_iter().flatten();
        let is_new = move |source: &&Source| own.is_none_or(|own| !own.contains(*source));
        own.into_iter().flatten().chain(of_folder.filter(is_new))
    }

    /// Whether some prompt is made from a file, or it lies in the folder of one.
    pub(super) fn uses(&self, path: &Path) -> bool {
        self.users(path).next().is_some()
    }

    /// Every file that a prompt is made from.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.users.keys()
    }

    /// The findings of all prompts that have some in a file.
    pub(super) fn findings(&self, path: &Path) -> impl Iterator<Item = &Diagnostic> {
        let sources = self.findings.get(path).into_iter().flatten();
        sources.filter_map(|source| self.prompts.get(source)).flat_map(|one| &one.findings)
    }

    /// Every finding about a circle.
    pub(super) fn circles(&self) -> impl Iterator<Item = &Diagnostic> {
        let prompts = self.circles.iter().filter_map(|source| self.prompts.get(source));
        prompts.flat_map(|one| &one.findings).filter(|finding| is_circle(finding))
    }

    /// Every file that has findings.
    pub(super) fn files_with_findings(&self) -> impl Iterator<Item = &PathBuf> {
        self.findings.keys()
    }
}
