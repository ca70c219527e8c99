//! What files are called that lie somewhere else than where people know them: in a copy of a revision, or in an archive.

use std::path::PathBuf;

use crate::error::{Diagnostic, Error};

/// Names for the files below a folder that are not to be seen.
#[derive(Debug, Clone)]
pub struct Names {
    prefix: String,
    folder: PathBuf,
    /// What is left out of the paths there.
    left_out: String,
}

impl Names {
    /// Files below a folder, which is the root of a library, are called by their path there with something in front, as in
    /// `HEAD:prompts/greeting/template.md`.
    pub fn new(prefix: impl Into<String>, folder: impl Into<PathBuf>) -> Names {
        Names { prefix: prefix.into(), folder: folder.into(), left_out: String::new() }
    }

    /// Leaves this out at the beginning of paths in the folder.
    pub fn without(mut self, left_out: impl Into<String>) -> Names {
        self.left_out = left_out.into();
        self
    }

    /// What a file is called that the library calls so. Only what lies in the folder gets another name: built-in files, those
    /// of the user and the command line's own values are what they are.
    pub fn file(&self, name: &str) -> String {
        let folder = self.folder.to_string_lossy();
        let inside = name.strip_prefix(&*folder).map(|rest| rest.trim_start_matches('/'));
        let relative = inside.unwrap_or(name);
        match inside.is_some() || self.folder.join(relative).exists() {
            true => {
                format!("{}{}", self.prefix, relative.strip_prefix(&self.left_out).unwrap_or(relative))
            }
            false => name.to_owned(),
        }
    }

    /// A sentence in which the folder may stand.
    fn words(&self, text: &str) -> String {
        let folder = self.folder.to_string_lossy();
        text.replace(&format!("{folder}/"), &self.prefix).replace(&*folder, self.prefix.trim_end_matches(':'))
    }

    /// An error that speaks of the files by their names.
    pub fn rename_files(&self, error: Error) -> Error {
        error.map(|finding| Diagnostic {
            message: self.words(&finding.message),
            label: finding.label.map(|label| self.words(&label)),
            hint: finding.hint.map(|hint| hint.map(|text| self.words(text))),
            place: finding.place.map(|place| place.renamed(self.file(place.file()))),
            related: finding
                .related
                .into_iter()
                .map(|(place, label)| (place.renamed(self.file(place.file())), self.words(&label)))
                .collect(),
            file: finding.file.map(|file| self.file(&file)),
            ..finding
        })
    }
}
