//! What renaming something changes: edits that an author can review, and files that move.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::complete::local_names;
use super::names::Thing;
use super::{Location, Service};
use crate::check::{Basis, CheckedPrompt, languages};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};
use crate::files::Buffers;
use crate::library::PROMPT_FILE;
use crate::prepared::Prepared;

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub location: Location,
    /// The new text.
    pub text: String,
}

/// What a new name changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Renaming {
    /// Changes of files, under the paths that they have before they move.
    pub edits: Vec<Edit>,
    /// Files and folders that get another path, after the edits and in this order.
    pub moves: Vec<(PathBuf, PathBuf)>,
}

impl Service {
    /// What changes if something gets another name, everywhere.
    ///
    /// # Errors
    ///
    /// `CB407` for a name that cannot be used, for what cannot be renamed, and where a use could be missed.
    pub fn rename(&self, path: &Path, offset: usize, to: &str) -> Result<Renaming> {
        let is_name = to.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && to.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let thing = self.thing_at(path, offset);
        let Some(thing) = thing else {
            let hint = "put the cursor on the name of a variable, a block, a macro, a file, a prompt, a section, a tool or an item";
            return refuse("nothing here can be renamed".to_owned(), hint);
        };
        let what = match &thing {
            Thing::Variable(_) | Thing::Local(_) => "variable",
            Thing::Block(_) => "block",
            Thing::Macro(_) => "macro",
            other => return self.rename_target(path, offset, other, to),
        };
        if !is_name {
            return refuse(format!("`{to}` is not the name of a {what}"), "use letters, digits and `_`");
        }
        let (mut places, mut files) = self.places(path, &thing);
        if matches!(thing, Thing::Local(_)) {
            places.retain(|place| place.path == path);
            files = BTreeSet::from([path.to_owned()]);
        }
        if let Some(file) = self.first_broken(&files) {
            return refuse(
                format!("{} has a syntax error", self.book().library().name(&file)),
                "correct it first, so that no use is missed",
            );
        }
        if let Some(id) = self.first_unreadable(path, &files, &thing) {
            let hint = Hint::run("correct it first, so that no use is missed", "cuebook check");
            return refuse(format!("the prompt `{id}` has an error and may use the same name"), hint);
        }
        if places.is_empty() {
            return refuse(
                format!("no place of this {what} was found"),
                "correct the errors of the file first",
            );
        }
        self.refuse_taken(path, &files, &thing, to)?;
        let edits: Vec<Edit> =
            places.into_iter().map(|location| Edit { location, text: to.to_owned() }).collect();
        self.verify(&edits, &files, &thing, to)?;
        Ok(Renaming { edits, moves: Vec::new() })
    }

    fn first_broken(&self, files: &BTreeSet<PathBuf>) -> Option<PathBuf> {
        let syntax = [Code::TemplateSyntax, Code::PythonSyntax, Code::BadFrontMatter];
        let is_broken =
            |finding: &Diagnostic| finding.severity == Severity::Error && syntax.contains(&finding.code);
        files.iter().find(|file| self.findings(file).iter().any(is_broken)).cloned()
    }

    /// A prompt that cannot be compiled in every language, and that may have the name: it is made from one of these files, or its
    /// text has the name and names one of them.
    fn first_unreadable(&self, path: &Path, files: &BTreeSet<PathBuf>, thing: &Thing) -> Option<String> {
        let (Thing::Variable(name) | Thing::Block(name) | Thing::Macro(name)) = thing else { return None };
        let basis = self.known_basis().ok()?;
        let users: BTreeSet<_> = files.iter().flat_map(|file| self.index.users(file)).collect();
        let named = files.iter().map(PathBuf::as_path).chain([path]);
        let stems: BTreeSet<&str> = named.filter_map(stem).collect();
        let may_use = |one: &CheckedPrompt| {
            let has_error = one.findings.iter().any(|finding| finding.severity == Severity::Error);
            let own = one.files.iter().filter(|_| has_error).flat_map(|file| files_at(file));
            own.filter_map(|file| self.text(&file))
                .any(|text| text.contains(name) && stems.iter().any(|stem| text.contains(stem)))
        };
        let mut prompts = self.index.prompts().filter(|(source, one)| users.contains(source) || may_use(one));
        let unreadable = prompts.find(|(_, one)| {
            let prepared = self.buffers.during(|| basis.prepare(&self.book, &one.found));
            prepared.len() < languages(&one.found).len()
        });
        unreadable.map(|(_, one)| one.found.id.clone())
    }

    /// Refuses a name that something else has where it would be seen.
    fn refuse_taken(&self, path: &Path, files: &BTreeSet<PathBuf>, thing: &Thing, to: &str) -> Result<()> {
        let other = |thing: Thing| !self.places(path, &thing).0.is_empty();
        let is_set = || {
            let texts = files.iter().filter_map(|file| self.text(file));
            texts.into_iter().any(|text| local_names(&text).contains(to))
        };
        let taken = match thing {
            Thing::Block(_) => other(Thing::Block(to.to_owned())).then_some("block"),
            Thing::Macro(_) if other(Thing::Macro(to.to_owned())) => Some("macro"),
            Thing::Macro(_) | Thing::Local(_) => is_set().then_some("name"),
            _ => None,
        };
        if let Some(what) = taken {
            return refuse(format!("there is a {what} `{to}` already"), "choose another name");
        }
        if matches!(thing, Thing::Block(_)) {
            return Ok(());
        }
        let prompts = files.iter().flat_map(|file| self.prepared(file));
        let taken = prompts.into_iter().flat_map(|all| {
            all.iter()
                .filter(|prepared| prepared.known_names().contains(to))
                .map(|prepared| prepared.prompt().id.clone())
                .collect::<Vec<_>>()
        });
        match taken.into_iter().next() {
            Some(id) => {
                refuse(format!("the prompt `{id}` already has a variable `{to}`"), "choose another name")
            }
            None => Ok(()),
        }
    }

    /// The texts with these edits made.
    pub(super) fn edited(&self, edits: &[Edit]) -> Buffers {
        let mut changed = self.buffers.clone();
        for path in edits.iter().map(|edit| &edit.location.path).collect::<BTreeSet<_>>() {
            let Some(text) = self.text(path) else { continue };
            let mut text = text.to_string();
            let mut here: Vec<&Edit> = edits.iter().filter(|edit| edit.location.path == *path).collect();
            here.sort_by_key(|edit| std::cmp::Reverse(edit.location.start));
            here.iter().for_each(|edit| text.replace_range(edit.location.range(), &edit.text));
            changed.set(path.clone(), text);
        }
        changed
    }

    /// What prompts are looked at with.
    pub(super) fn known_basis(&self) -> Result<Basis> {
        match &self.basis {
            Some(basis) => Ok(basis.clone()),
            None => Basis::of_prompts(&self.book),
        }
    }

    /// Makes sure that every prompt has the new name where it had the old one once the edits are made, and no other name.
    fn verify(&self, edits: &[Edit], files: &BTreeSet<PathBuf>, thing: &Thing, to: &str) -> Result<()> {
        let (name, is_local) = match thing {
            Thing::Variable(name) => (name, false),
            Thing::Local(name) => (name, true),
            _ => return self.refuse_new_errors(edits),
        };
        let changed = self.edited(edits);
        let basis = self.known_basis()?;
        let sources: BTreeSet<_> = files.iter().flat_map(|file| self.index.users(file)).collect();
        for source in sources {
            let Some(found) = self.index.get(source).map(|one| one.found.clone()) else { continue };
            let names = |all: &[Prepared]| -> BTreeSet<String> {
                all.iter().flat_map(|one| one.known_names().iter().cloned()).collect()
            };
            let mut before = names(&self.compiled(source));
            let after = changed.during(|| basis.prepare(&self.book, &found));
            if !is_local && before.remove(name.as_str()) {
                before.insert(to.to_owned());
            }
            if names(&after) != before {
                let message = format!("`{}` uses `{name}` in a way that cannot be renamed", found.id);
                let hint = Hint::command_line("rename it by hand, and run `cuebook check`")
                    .for_programs("rename it by hand, and check the prompts");
                return refuse(message, hint);
            }
        }
        Ok(())
    }
}

/// What other files name a file by, at least.
fn stem(file: &Path) -> Option<&str> {
    let name = file.file_name()?.to_str()?;
    let in_folder = name == PROMPT_FILE || name.starts_with("template.");
    let name = if in_folder { file.parent()?.file_name()?.to_str()? } else { name };
    name.split('.').next()
}

/// The files that a prompt's place stands for: itself, or what lies in it.
fn files_at(place: &Path) -> Vec<PathBuf> {
    let inside = std::fs::read_dir(place).into_iter().flatten().flatten().map(|entry| entry.path());
    std::iter::once(place.to_owned()).chain(inside).filter(|path| !path.is_dir()).collect()
}

pub(super) fn refuse<T>(message: String, hint: impl Into<Hint>) -> Result<T> {
    Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
}
