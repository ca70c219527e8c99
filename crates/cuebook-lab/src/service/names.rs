//! What a name at a cursor stands for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::Service;
use super::cursor::{Inside, inside, is_word, word_at};
use super::layout::{Notation, front_matter, imports, tags};
use crate::items::ItemType;

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
    /// Another template, by the string that names it.
    Template(String),
    /// A prompt, by its id.
    Prompt(String),
    /// A section of a prompt, by the prompt's id and the path with dots.
    Section(String, String),
    /// A tool that a prompt's file declares.
    Tool(PathBuf, String),
    /// An item of a space, by its id with dots.
    Item(ItemType, String),
}

impl Service {
    /// What the name at a byte of a file stands for.
    pub(super) fn thing_at(&self, path: &Path, offset: usize) -> Option<Thing> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        if let Some(spot) = self.spot_at(path, &text, offset) {
            return Some(spot.thing);
        }
        let word = word_at(&text, offset);
        let name = text.get(word.clone())?.to_owned();
        let notation = Notation::of(path);
        if notation.has_tags() || matches!(notation, Notation::Directive | Notation::Dotprompt) {
            match inside(&text, word.end) {
                Inside::Name { before, .. }
                    if !name.is_empty() && notation.has_tags() && is_module(&text, before) =>
                {
                    return Some(Thing::Macro(name));
                }
                Inside::Name { before: "self", .. } if !name.is_empty() => return Some(Thing::Block(name)),
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
        let is_named = match notation {
            Notation::Cases => input_keys(&text).contains(&word),
            Notation::Prompty => bound_inputs(&text, &name).contains(&word),
            Notation::Python => subscripts(&text, &name).contains(&word) && self.knows(path, &name),
            _ => false,
        };
        (is_named || self.declares(path, &name, word.start)).then_some(Thing::Variable(name))
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
        // Another name of a macro is a name of this template.
        let is_renamed =
            imports(text).iter().any(|(alias, _, of)| *alias == name && of.as_ref() != Some(alias));
        if text[word.end..].starts_with('(') && !is_renamed && self.macros(path).contains(&name) {
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

    /// The macro that a name of a template stands for, where `{% from %}` gives it another one.
    pub(super) fn macro_named(&self, path: &Path, name: &str) -> Option<String> {
        let text = self.text(path)?;
        imports(&text).into_iter().find(|(alias, ..)| alias == name)?.2
    }

    /// Whether a prompt of this file has a variable.
    fn knows(&self, path: &Path, name: &str) -> bool {
        self.prepared(path).iter().flat_map(|all| all.iter()).any(|one| one.known_names().contains(name))
    }

    /// Whether a prompt of this file declares a variable at this byte, or reads it there, as a condition does.
    fn declares(&self, path: &Path, name: &str, offset: usize) -> bool {
        let prepared = self.prepared(path);
        let mut all = prepared.iter().flat_map(|all| all.iter());
        all.any(|prepared| {
            let declared = prepared.prompt().variable(name).and_then(|variable| variable.place.clone());
            let reads = prepared.reads().into_iter().filter(|(read, _)| read.root == name);
            let mut places = declared.into_iter().chain(reads.map(|(_, place)| place));
            places.any(|place| self.location(&place).touches(path, offset))
        })
    }
}

/// Whether a template imports another one under this name.
pub(super) fn is_module(text: &str, name: &str) -> bool {
    !name.is_empty() && imports(text).iter().any(|(alias, _, of)| alias == name && of.is_none())
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
