//! All places of a name.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::cursor::is_word;
use super::index::Source;
use super::layout::{Notation, TagKind, imports, pieces, tags};
use super::names::{Thing, bound_inputs, input_keys, subscripts};
use super::{Location, Service};
use crate::cases::CaseFile;

/// What stands before a macro that is called as a part of what was imported: `forms.field()`.
const MODULE: &str = "module.";

impl Service {
    /// Every place of what stands at a byte of a file: its declarations, and what uses it, in all prompts that share a file.
    pub fn references(&self, path: &Path, offset: usize) -> Vec<Location> {
        match self.thing_at(path, offset) {
            Some(thing) => self.places(path, &thing).0,
            None => Vec::new(),
        }
    }

    /// The places in the same file of what stands at a byte of it. Editors ask for them with every move of the cursor, so no other
    /// file is read.
    pub fn highlights(&self, path: &Path, offset: usize) -> Vec<Location> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let Some(spot) = self.spot_at(path, &text, offset) else {
            return self.references(path, offset).into_iter().filter(|found| found.path == path).collect();
        };
        let same = self.spots(path, &text).into_iter().filter(|other| other.thing == spot.thing);
        same.map(|other| Location::new(path, other.range)).collect()
    }

    /// The places of something, and the files that were looked at.
    pub(super) fn places(&self, path: &Path, thing: &Thing) -> (Vec<Location>, BTreeSet<PathBuf>) {
        let (places, files) = match thing {
            Thing::Variable(name) => self.places_of_variable(path, name),
            Thing::Block(name) => self.in_tags(path, |text, range, keyword, before| {
                let is_block = matches!(keyword, "block" | "endblock") && before == keyword;
                &text[range] == name && (is_block || before == "self")
            }),
            Thing::Macro(name) => self.in_tags(path, |text, range, keyword, before| {
                let is_called = text[range.end..].trim_start().starts_with('(');
                let is_named = before == "macro" || before == MODULE;
                // Behind `as` is another name.
                let is_imported = keyword == "from" && before != "as";
                &text[range] == name && (is_named || is_imported || (is_called && before != "."))
            }),
            Thing::Local(name) => self
                .in_tags(path, |text, range, _, before| &text[range] == name && !matches!(before, "." | "|")),
            Thing::Template(_) => (self.includes_of(path, thing), BTreeSet::new()),
            Thing::Prompt(_) | Thing::Section(..) | Thing::Tool(..) | Thing::Item(..) => {
                (self.spots_of(thing).into_iter().collect(), BTreeSet::new())
            }
        };
        (places.into_iter().collect(), files)
    }

    fn places_of_variable(&self, path: &Path, name: &str) -> (BTreeSet<Location>, BTreeSet<PathBuf>) {
        let (mut places, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut prompts: BTreeSet<Source> = BTreeSet::new();
        let start = self.prompt_of_cases(path).unwrap_or_else(|| path.to_owned());
        let mut waiting = vec![start];
        while let Some(file) = waiting.pop() {
            if !seen.insert(file.clone()) {
                continue;
            }
            for source in self.users(&file, usize::MAX) {
                if !prompts.insert(source.clone()) {
                    continue;
                }
                let mut touched = BTreeSet::new();
                for prepared in self.compiled(&source).iter() {
                    let declared = prepared.prompt().variable(name).and_then(|one| one.place.clone());
                    let reads = prepared.reads().into_iter().filter(|(read, _)| read.root == name);
                    for place in declared.into_iter().chain(reads.map(|(_, place)| place)) {
                        let location = self.location(&place);
                        touched.insert(location.path.clone());
                        places.extend(self.named(&location, name));
                    }
                    if prepared.outline().jinja().is_none() {
                        self.closing_tags(&touched, &mut places);
                    }
                }
                if touched.is_empty() {
                    continue;
                }
                waiting.extend(touched);
                self.beside(&source, name, &mut places);
            }
        }
        seen.extend(places.iter().map(|place| place.path.clone()));
        (places, seen)
    }

    /// The closing tags of Mustache's sections that begin at one of these places.
    fn closing_tags(&self, files: &BTreeSet<PathBuf>, places: &mut BTreeSet<Location>) {
        for file in files {
            let Some(text) = self.text(file).filter(|text| text.contains("{{/")) else { continue };
            let mut open: Vec<Range<usize>> = Vec::new();
            for tag in tags(&text, 0).into_iter().filter(|tag| tag.kind == TagKind::Expression) {
                let mut pieces = pieces(&text, tag.inside).into_iter().map(|(_, range)| range);
                let (Some(sign), Some(name)) = (pieces.next(), pieces.next()) else { continue };
                match &text[sign] {
                    "#" | "^" => open.push(name),
                    "/" => {
                        let opened = open.pop().map(|range| Location::new(file.clone(), range));
                        if opened.is_some_and(|opened| places.contains(&opened)) {
                            places.insert(Location::new(file.clone(), name));
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    /// What names a variable of a prompt beside its templates: cases, front matter and hooks.
    fn beside(&self, source: &Source, name: &str, places: &mut BTreeSet<Location>) {
        let Some(one) = self.index.get(source) else { return };
        let cases = CaseFile::of(one.found.clone(), &self.book).map(|cases| cases.path().to_owned());
        for file in one.files.iter().chain(cases.iter()) {
            let Some(text) = self.text(file) else { continue };
            let found: Vec<Range<usize>> = match Notation::of(file) {
                Notation::Cases => {
                    input_keys(&text).into_iter().filter(|range| &text[range.clone()] == name).collect()
                }
                Notation::Prompty => bound_inputs(&text, name),
                Notation::Python => subscripts(&text, name),
                _ => Vec::new(),
            };
            places.extend(found.into_iter().map(|range| Location::new(file.clone(), range)));
        }
    }

    /// The file of the prompt that a file of cases lies beside.
    pub(super) fn prompt_of_cases(&self, path: &Path) -> Option<PathBuf> {
        if Notation::of(path) != Notation::Cases || self.index.uses(path) {
            return None;
        }
        let name = path.file_name()?.to_str()?.strip_suffix(crate::items::CASES_END)?;
        let ends = [crate::prompt::PROMPTY_END, crate::prompt::SECTIONS_END, ".md"];
        ends.iter().map(|end| path.with_file_name(format!("{name}{end}"))).find(|file| self.index.uses(file))
    }

    /// Names in the tags of all files that the prompts of a file are made from. `wanted` gets the text, the range of a name, the
    /// word that its tag begins with, and the piece before it.
    fn in_tags(
        &self,
        path: &Path,
        wanted: impl Fn(&str, Range<usize>, &str, &str) -> bool,
    ) -> (BTreeSet<Location>, BTreeSet<PathBuf>) {
        let mut files = BTreeSet::from([path.to_owned()]);
        for source in self.users(path, usize::MAX) {
            files.extend(self.index.get(&source).into_iter().flat_map(|one| one.files.iter().cloned()));
        }
        let mut places = BTreeSet::new();
        for file in files.iter().filter(|file| Notation::of(file).has_tags()) {
            let Some(text) = self.text(file) else { continue };
            let modules: Vec<String> =
                imports(&text).into_iter().filter(|(_, _, of)| of.is_none()).map(|(name, ..)| name).collect();
            for tag in tags(&text, 0) {
                let keyword = tag.keyword(&text);
                let mut before = "";
                for (_, range) in pieces(&text, tag.inside.clone()) {
                    if wanted(&text, range.clone(), keyword, before) {
                        places.insert(Location::new(file.clone(), range.clone()));
                    }
                    before = match (before, &text[range]) {
                        // `self.name()` calls a block.
                        ("self", ".") => "self",
                        (name, ".") if modules.iter().any(|module| module == name) => MODULE,
                        (_, piece) => piece,
                    };
                }
            }
        }
        (places, files)
    }

    /// Every place that includes what a string names.
    fn includes_of(&self, path: &Path, thing: &Thing) -> BTreeSet<Location> {
        let Some(target) = self.target_of(path, thing) else { return BTreeSet::new() };
        self.includes(&target)
    }

    /// Every place that includes, extends or imports a file.
    pub(super) fn includes(&self, target: &Path) -> BTreeSet<Location> {
        let mut places = BTreeSet::new();
        for source in self.users(target, usize::MAX) {
            for prepared in self.compiled(&source).iter() {
                let outline = prepared.outline();
                for (unit, names) in outline.units().iter().zip(outline.names()) {
                    for reference in &names.references {
                        let at = self.location(&unit.source().place(reference.range.clone()));
                        let names = reference.names.iter().flatten();
                        let leads = names
                            .filter_map(|name| self.file_named(prepared, unit.source().name(), name))
                            .any(|file| file == target);
                        if leads {
                            let names = reference.names.iter().flatten();
                            let inner = names.filter_map(|name| self.named(&at, name)).next();
                            places.insert(inner.unwrap_or(at));
                        }
                    }
                }
            }
        }
        places
    }

    /// The name inside a place.
    pub(super) fn named(&self, location: &Location, name: &str) -> Option<Location> {
        let text = self.text(&location.path)?;
        let part = text.get(location.range())?;
        let is_whole = |at: &usize| {
            let (before, after) = (&part[..*at], &part[at + name.len()..]);
            !before.ends_with(is_word) && !after.starts_with(is_word)
        };
        let at = part.match_indices(name).map(|(at, _)| at).find(is_whole)? + location.start;
        Some(Location::new(location.path.clone(), at..at + name.len()))
    }
}
