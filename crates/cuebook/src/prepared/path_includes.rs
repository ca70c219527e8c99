//! Files of other prompts that a text includes by their paths: text alone, whatever they declare. `check` tells of it.

use super::Prepared;
use crate::error::{Code, Diagnostic};
use crate::template::address::Address;
use crate::template::jinja::names::ReferenceKind;

impl Prepared {
    /// What is left behind where a file is included by its path which is a prompt by itself.
    #[doc(hidden)]
    pub fn bare_files(&self) -> Vec<Diagnostic> {
        let outline = self.outline();
        let mut findings = Vec::new();
        for (unit, names) in outline.units().iter().zip(outline.names()) {
            for reference in names.references.iter().filter(|one| one.kind == ReferenceKind::Include) {
                for name in reference.names.iter().flatten().filter(|name| Address::of(name).is_none()) {
                    let Some((id, what)) = self.left_of(name, |file| {
                        outline.units().iter().any(|unit| unit.source().name() == file)
                    }) else {
                        continue;
                    };
                    let message = format!("a path includes only text: {what} of `{name}` are not included");
                    findings.push(
                        Diagnostic::new(Code::LeftBehind, message)
                            .at(unit.source().place(reference.range.clone()))
                            .hint(format!("to include the whole prompt, write its address: \"prompt:{id}\"")),
                    );
                }
            }
        }
        findings
    }

    /// The id of the prompt that a path leads to, and what it has beside its text.
    fn left_of(&self, path: &str, is_included: impl Fn(&str) -> bool) -> Option<(String, &'static str)> {
        let (id, _) = self.files.loader.library().claims().of_file(path)?;
        let found = self.files.loader.choose_if_any(id).ok()??;
        if !is_included(&found.candidate.source) {
            return None;
        }
        let read = self
            .book
            .dialects
            .read(&found.id, &found.candidate, &self.files.loader, &self.files.defaults)
            .ok()?;
        match read.prompt.dialect.is_tree {
            true => Some((found.id, "the inputs and the conditions of sections")),
            _ if read.prompt.variables.is_empty() => None,
            _ => Some((found.id, "the inputs and their defaults")),
        }
    }
}
