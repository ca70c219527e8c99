//! Where names are defined and used, and what renaming one changes.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::cursor::{Inside, inside, is_word, word_at};
use super::{Location, Service};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use crate::template::jinja::names::ReferenceKind;

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub location: Location,
    /// The new text.
    pub text: String,
}

/// What kind of thing a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolKind {
    /// A declared variable.
    Variable,
    /// A block.
    Block,
    /// Another template that is used.
    File,
}

/// Something in a file that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What kind of thing it is.
    pub kind: SymbolKind,
    /// Where it is.
    pub location: Location,
}

impl Service {
    /// Where the thing is defined that stands at a byte of a file.
    pub fn definition(&self, path: &Path, offset: usize) -> Option<Location> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let word = word_at(&text, offset);
        let prepared = self.prepared(path);
        if let Inside::Name { before, .. } = inside(&text, word.end) {
            let root = before.split('.').next().filter(|root| !root.is_empty()).unwrap_or(&text[word]);
            let declared = prepared.iter().find_map(|one| one.prompt().variable(root)?.place.clone());
            return declared.map(|place| self.location(&place));
        }
        // A template that a string names.
        for prepared in &prepared {
            let outline = prepared.outline();
            let program = outline.jinja();
            for (unit, names) in outline.units().iter().zip(outline.names()) {
                for reference in &names.references {
                    let here = self.location(&unit.source().place(reference.range.clone()));
                    if here.path != path || !(here.range.start..=here.range.end).contains(&offset) {
                        continue;
                    }
                    let parent = unit.source().name();
                    let names = || reference.names.iter().flatten();
                    let target =
                        program.and_then(|program| names().find_map(|name| program.target(parent, name)));
                    let target = target.and_then(|target| outline.units().get(target));
                    if let Some(unit) = target {
                        return Some(self.location(&unit.source().place(0..0)));
                    }
                    let id = names().find_map(|name| name.strip_prefix("prompt:"));
                    let found = id.and_then(|id| self.book().find(id).ok());
                    let file = found.and_then(|found| crate::targets::place(&found.candidate))?;
                    let file = if file.is_dir() { file.join("template.md") } else { file };
                    return Some(Location { path: file, range: 0..0 });
                }
            }
        }
        None
    }

    /// Every place of a variable: its declarations, and what reads it, in all prompts that share a file with this one.
    pub fn references(&self, path: &Path, offset: usize) -> Vec<Location> {
        self.variable_at(path, offset).map(|name| self.places(path, &name).0).unwrap_or_default()
    }

    /// The name of the variable at a byte of a file.
    fn variable_at(&self, path: &Path, offset: usize) -> Option<String> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let word = word_at(&text, offset);
        let name = text.get(word.clone()).filter(|name| !name.is_empty())?.to_owned();
        if let Inside::Name { before, .. } = inside(&text, word.end) {
            return Some(
                before.split('.').next().filter(|root| !root.is_empty()).unwrap_or(&name).to_owned(),
            );
        }
        // A declaration.
        let is_here = |location: Location| {
            location.path == path && location.range.start <= word.start && word.end <= location.range.end
        };
        let declares = self.prepared(path).iter().any(|prepared| {
            let place = prepared.prompt().variable(&name).and_then(|variable| variable.place.clone());
            place.is_some_and(|place| is_here(self.location(&place)))
        });
        declares.then_some(name)
    }

    /// Where a variable is declared and read, and the files whose prompts were looked at.
    fn places(&self, path: &Path, name: &str) -> (Vec<Location>, BTreeSet<PathBuf>) {
        let (mut places, mut seen) = (HashSet::new(), BTreeSet::new());
        let mut waiting = vec![path.to_owned()];
        while let Some(file) = waiting.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            for prepared in self.prepared(&file) {
                let mut touched = BTreeSet::new();
                if let Some(place) = prepared.prompt().variable(name).and_then(|one| one.place.clone()) {
                    let location = self.location(&place);
                    touched.insert(location.path.clone());
                    places.extend(self.named(&location, name));
                }
                for (read, place) in prepared.reads() {
                    if read.root == name {
                        let location = self.location(&place);
                        touched.insert(location.path.clone());
                        places.extend(self.named(&location, name));
                    }
                }
                waiting.extend(touched);
            }
        }
        let mut places: Vec<Location> = places.into_iter().collect();
        places.sort_by(|one, other| (&one.path, one.range.start).cmp(&(&other.path, other.range.start)));
        (places, seen)
    }

    /// The name inside a place.
    fn named(&self, location: &Location, name: &str) -> Option<Location> {
        let text = self.text(&location.path)?;
        let part = text.get(location.range.clone())?;
        let is_whole = |at: &usize| {
            let (before, after) = (&part[..*at], &part[at + name.len()..]);
            !before.ends_with(is_word) && !after.starts_with(is_word)
        };
        let at = part.match_indices(name).map(|(at, _)| at).find(is_whole)? + location.range.start;
        Some(Location { path: location.path.clone(), range: at..at + name.len() })
    }

    /// The edits that give a variable another name everywhere.
    pub fn rename(&self, path: &Path, offset: usize, to: &str) -> Result<Vec<Edit>> {
        let refuse = |message: String, hint: &str| {
            Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
        };
        let is_name = to.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && to.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        if !is_name {
            return refuse(format!("`{to}` is not the name of a variable"), "use letters, digits and `_`");
        }
        let Some(name) = self.variable_at(path, offset) else {
            return refuse(
                "only variables can be renamed".to_owned(),
                "put the cursor on the name of a variable",
            );
        };
        let (places, files) = self.places(path, &name);
        let broken = files.iter().find(|file| {
            let findings = self.findings(file);
            findings
                .iter()
                .any(|finding| finding.severity == Severity::Error && finding.code == Code::TemplateSyntax)
        });
        if let Some(file) = broken {
            let file = self.book().library().name(file);
            return refuse(format!("{file} has a syntax error"), "mend it first, so that no use is missed");
        }
        let taken = self.prepared(path).iter().any(|prepared| prepared.known_names().contains(to));
        if taken {
            return refuse(format!("`{to}` is the name of another variable"), "choose another name");
        }
        Ok(places.into_iter().map(|location| Edit { location, text: to.to_owned() }).collect())
    }

    /// What has a name in a file: declared variables, blocks, and other templates.
    pub fn symbols(&self, path: &Path) -> Vec<Symbol> {
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut add = |symbol: Symbol| {
            if symbol.location.path == path && !symbols.contains(&symbol) {
                symbols.push(symbol);
            }
        };
        for prepared in self.prepared(path) {
            for variable in &prepared.prompt().variables {
                if let Some(place) = &variable.place {
                    let (name, location) = (variable.name.clone(), self.location(place));
                    add(Symbol { name, kind: SymbolKind::Variable, location });
                }
            }
            let outline = prepared.outline();
            for (unit, names) in outline.units().iter().zip(outline.names()) {
                for block in &names.blocks {
                    let location = self.location(&unit.source().place(block.range.clone()));
                    add(Symbol { name: block.name.clone(), kind: SymbolKind::Block, location });
                }
                for reference in &names.references {
                    let verb = match reference.kind {
                        ReferenceKind::Include => "include",
                        ReferenceKind::Extends => "extends",
                        ReferenceKind::Import => "import",
                    };
                    let location = self.location(&unit.source().place(reference.range.clone()));
                    let target = reference.names.iter().flatten().next().map_or("…", String::as_str);
                    add(Symbol { name: format!("{verb} {target}"), kind: SymbolKind::File, location });
                }
            }
        }
        symbols.sort_by_key(|symbol| symbol.location.range.start);
        symbols
    }
}
