//! What a name at a cursor stands for, and what renaming it changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::cursor::{Inside, inside, is_word, word_at};
use super::layout::{Notation, front_matter, tags};
use super::{Location, Service};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    /// What is replaced.
    pub location: Location,
    /// The new text.
    pub text: String,
}

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Thing {
    /// A variable of the prompt.
    Variable(String),
    /// A name that the template itself sets.
    Local(String),
    /// A block.
    Block(String),
    /// A macro.
    Macro(String),
    /// Another template or prompt, by the string that names it.
    Template(String),
}

impl Service {
    /// What the name at a byte of a file stands for.
    pub(super) fn thing_at(&self, path: &Path, offset: usize) -> Option<Thing> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let word = word_at(&text, offset);
        let name = text.get(word.clone())?.to_owned();
        let notation = Notation::of(path);
        if notation.has_tags() || notation == Notation::Directive {
            match inside(&text, word.end) {
                Inside::Name { before, .. } if !name.is_empty() => {
                    let root = before.split('.').next().filter(|root| !root.is_empty());
                    let root = root.unwrap_or(&name).to_owned();
                    return Some(self.named_in_tag(path, &text, &word, root));
                }
                Inside::Path(_) => return path_string(&text, offset).map(Thing::Template),
                _ => {}
            }
        }
        if name.is_empty() {
            return None;
        }
        let is_case = notation == Notation::Cases && self.is_input_of_case(&text, &word);
        (is_case || self.declares(path, &name, word.start)).then_some(Thing::Variable(name))
    }

    /// What a name inside of a tag stands for.
    fn named_in_tag(&self, path: &Path, text: &str, word: &std::ops::Range<usize>, name: String) -> Thing {
        let tag = tags(text, 0).into_iter().find(|tag| tag.range.contains(&word.start));
        let keyword = tag.as_ref().map_or("", |tag| tag.keyword(text));
        let is_second = tag.as_ref().is_some_and(|tag| {
            let lead = text[tag.inside.start..word.start].trim();
            !keyword.is_empty() && lead == keyword
        });
        match keyword {
            "block" | "endblock" if is_second => return Thing::Block(name),
            "macro" if is_second => return Thing::Macro(name),
            _ => {}
        }
        if text[word.end..].starts_with('(') && self.macros(path).contains(&name) {
            return Thing::Macro(name);
        }
        let is_read = self.prepared(path).iter().flat_map(|all| all.iter()).any(|prepared| {
            let here = |place: &crate::source::Place| self.location(place).touches(path, word.start);
            prepared.reads().iter().any(|(read, place)| read.root == name && here(place))
        });
        match !is_read && super::complete::local_names(&text[..word.end]).contains(&name) {
            true => Thing::Local(name),
            false => Thing::Variable(name),
        }
    }

    /// The macros that a template can call: its own, and those that it imports.
    fn macros(&self, path: &Path) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        let Some(text) = self.text(path) else { return names };
        for tag in tags(&text, 0) {
            let inside = text[tag.inside.clone()].trim();
            let words = |part: &str| -> Vec<String> {
                let words = part.split(|letter: char| !is_word(letter)).filter(|word| !word.is_empty());
                words.map(str::to_owned).collect()
            };
            match tag.keyword(&text) {
                "macro" => names.extend(words(inside).into_iter().nth(1)),
                "from" => {
                    let imported = inside.split_once(" import ").map(|(_, imported)| words(imported));
                    names.extend(imported.into_iter().flatten().filter(|word| word != "as"));
                }
                _ => {}
            }
        }
        names
    }

    /// Whether a prompt of this file declares a variable at this byte.
    fn declares(&self, path: &Path, name: &str, offset: usize) -> bool {
        let prepared = self.prepared(path);
        let mut all = prepared.iter().flat_map(|all| all.iter());
        all.any(|prepared| {
            let place = prepared.prompt().variable(name).and_then(|variable| variable.place.clone());
            place.is_some_and(|place| self.location(&place).touches(path, offset))
        })
    }

    /// Whether a word of a file of cases names an input.
    fn is_input_of_case(&self, text: &str, word: &std::ops::Range<usize>) -> bool {
        input_keys(text).contains(word)
    }

    /// The edits that give a name to something, everywhere.
    ///
    /// # Errors
    ///
    /// `CB407` for a name that cannot be used, for what cannot be renamed, and where a use could be missed.
    pub fn rename(&self, path: &Path, offset: usize, to: &str) -> Result<Vec<Edit>> {
        let is_name = to.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && to.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let thing = self.thing_at(path, offset);
        let (name, what) = match &thing {
            Some(Thing::Variable(name)) => (name, "variable"),
            Some(Thing::Block(name)) => (name, "block"),
            Some(Thing::Macro(name)) => (name, "macro"),
            Some(Thing::Local(_) | Thing::Template(_)) | None => {
                let hint = "put the cursor on the name of a variable, a block or a macro";
                return refuse("nothing here can be renamed".to_owned(), hint);
            }
        };
        if !is_name {
            return refuse(format!("`{to}` is not the name of a {what}"), "use letters, digits and `_`");
        }
        let (places, files) = match &thing {
            Some(thing) => self.places(path, thing),
            None => Default::default(),
        };
        if let Some(file) = self.first_broken(&files) {
            return refuse(
                format!("{} has a syntax error", self.book().library().name(&file)),
                "correct it first, so that no use is missed",
            );
        }
        if what == "variable" {
            self.refuse_taken(&files, to)?;
        }
        let edits: Vec<Edit> =
            places.into_iter().map(|location| Edit { location, text: to.to_owned() }).collect();
        self.verify(&edits, &files, name, to, what)?;
        Ok(edits)
    }

    fn first_broken(&self, files: &BTreeSet<PathBuf>) -> Option<PathBuf> {
        let syntax = [Code::TemplateSyntax, Code::PythonSyntax, Code::BadFrontMatter];
        let is_broken =
            |finding: &Diagnostic| finding.severity == Severity::Error && syntax.contains(&finding.code);
        files.iter().find(|file| self.findings(file).iter().any(is_broken)).cloned()
    }

    fn refuse_taken(&self, files: &BTreeSet<PathBuf>, to: &str) -> Result<()> {
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

    /// Makes sure that no prompt knows the old name once the edits are made, and that each of them can still be read.
    fn verify(
        &self,
        edits: &[Edit],
        files: &BTreeSet<PathBuf>,
        name: &str,
        to: &str,
        what: &str,
    ) -> Result<()> {
        if what != "variable" {
            return Ok(());
        }
        let mut changed = self.buffers.clone();
        for path in edits.iter().map(|edit| &edit.location.path).collect::<BTreeSet<_>>() {
            let Some(text) = self.text(path) else { continue };
            let mut text = text.to_string();
            let mut here: Vec<&Edit> = edits.iter().filter(|edit| edit.location.path == *path).collect();
            here.sort_by_key(|edit| std::cmp::Reverse(edit.location.start));
            here.iter().for_each(|edit| text.replace_range(edit.location.range(), &edit.text));
            changed.set(path.clone(), text);
        }
        let sources: BTreeSet<_> = files.iter().flat_map(|file| self.index.users(file)).collect();
        let basis = match &self.basis {
            Some(basis) => basis.clone(),
            None => crate::check::Basis::of_prompts(&self.book)?,
        };
        for source in sources {
            let Some(found) = self.index.get(source).map(|one| one.found.clone()) else { continue };
            let knew = self.compiled(source).iter().any(|one| one.known_names().contains(name));
            let after = changed.during(|| basis.prepare(&self.book, &found));
            let forgets = after.iter().all(|one| !one.known_names().contains(name));
            let learns = after.iter().any(|one| one.known_names().contains(to));
            if knew && !(forgets && learns) {
                let message = format!("`{}` uses `{name}` in a way that cannot be renamed", found.id);
                return refuse(message, "rename it by hand, and run `cuebook check`");
            }
        }
        Ok(())
    }
}

pub(super) fn refuse<T>(message: String, hint: &str) -> Result<T> {
    Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
}

/// The string around a byte.
pub(super) fn path_string(text: &str, offset: usize) -> Option<String> {
    let offset = offset.min(text.len());
    let is_end = |letter: char| matches!(letter, '"' | '\'' | '\n' | '{' | '}');
    let start = text.get(..offset)?.rfind(is_end).map_or(0, |at| at + 1);
    let end = text[offset..].find(is_end).map_or(text.len(), |at| offset + at);
    let found = text[start..end].trim_start_matches('>').trim();
    (!found.is_empty()).then(|| found.to_owned())
}

/// Where the blocks of inputs of a file of cases name an input.
pub(super) fn input_keys(text: &str) -> Vec<std::ops::Range<usize>> {
    let (mut found, mut at, mut in_inputs) = (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        if line.trim_start().starts_with("```") {
            in_inputs = !in_inputs && line.split_whitespace().nth(1) == Some("inputs");
            continue;
        }
        let colon = line.find(':').filter(|colon| in_inputs && line[..*colon].chars().all(is_word));
        found.extend(colon.filter(|colon| *colon > 0).map(|colon| start..start + colon));
    }
    found
}

/// Where front matter refers to a variable besides declaring it: `input: NAME` of a tool's bindings.
pub(super) fn bound_inputs(text: &str, name: &str) -> Vec<std::ops::Range<usize>> {
    let Some(front) = front_matter(text) else { return Vec::new() };
    let part = &text[front.clone()];
    let is_bound = |at: &usize| {
        let lead = part[..*at].trim_end_matches([' ', '"', '\'']);
        lead.ends_with("input:") && !part[at + name.len()..].starts_with(is_word)
    };
    let places = part.match_indices(name).map(|(at, _)| at).filter(is_bound);
    places.map(|at| front.start + at..front.start + at + name.len()).collect()
}

/// Where Python code names a variable in a string, as in `variables["name"]`.
pub(super) fn subscripts(text: &str, name: &str) -> Vec<std::ops::Range<usize>> {
    let is_key = |at: &usize| {
        let quote = text[..*at].chars().next_back().filter(|letter| matches!(letter, '"' | '\''));
        let Some(quote) = quote else { return false };
        let lead = text[..at - 1].trim_end();
        let is_opened = ["[", ".get(", ".pop(", ".setdefault("].iter().any(|end| lead.ends_with(end));
        is_opened && text[at + name.len()..].starts_with(quote)
    };
    let places = text.match_indices(name).map(|(at, _)| at).filter(is_key);
    places.map(|at| at..at + name.len()).collect()
}
