//! Trees of sections in one Markdown file: YAML front matter, and headings below it that are the tree.
//!
//! ````text
//! ---
//! inputs: {topic: {kind: string, required: true}}
//! ---
//! # Task
//! Write about $topic.
//!
//! # Reference
//! ```yaml section
//! summary: All about the house style.
//! visibility: summary
//! ```
//! …
//! ````
//!
//! Headings are found by [`scan`]; what a heading's settings mean is read here and in [`tool`], [`example`] and [`condition`]. Properties, models
//! and the like are those of `.prompty` files, and so is their reader. References (`${env:…}`, `${file:…}`) are not followed.
//! Everything that is wrong with a file is reported at once. Nothing here numbers, compiles or renders: that is
//! [`crate::sections`].

mod body;
mod budget;
mod condition;
mod example;
mod front;
mod scan;
mod tool;
mod tree;

pub use body::SectionsBody;
pub use front::KEYS;
pub use scan::scan;

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::prompty::{FrontMatterReader, split, variable};
use super::{Compiling, Dialect, Offer, Parsed, Read, Reading};
use crate::chat::output::OutputSpec;
use crate::dialect;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::json::quoted;
use crate::node::{Data, Node};
use crate::prompt::{Format, Metadata, Model, Prompt, Property, SECTIONS, Traits, Visibility};
use crate::sections::{Body, Headings, Missing, Section, Selector};
use crate::source::{Place, Source};
use crate::template::jinja::names::Names;
use crate::yaml;

/// The name of the type that all sections of a file are filled with.
pub(crate) const INPUTS: &str = "inputs";

/// Everything about a file that is no part of a [`Prompt`].
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) ns: String,
    pub(crate) key: String,
    pub(crate) name: Option<String>,
    pub(crate) headings: Headings,
    pub(crate) missing: Missing,
    pub(crate) output: Option<OutputSpec>,
    pub(crate) sections: Vec<Section>,
    /// The engines that are named, and where.
    pub(crate) engines: Vec<(String, Place)>,
    /// What the conditions mention, and where they stand.
    pub(crate) conditions: Vec<(Place, Names)>,
}

impl File {
    /// The paths of all sections, with dots.
    pub(crate) fn paths(&self) -> Vec<String> {
        fn walk(sections: &[Section], above: &str, found: &mut Vec<String>) {
            for section in sections {
                let path =
                    if above.is_empty() { section.key.clone() } else { format!("{above}.{}", section.key) };
                walk(&section.children, &path, found);
                found.push(path);
            }
        }
        let mut found = Vec::new();
        walk(&self.sections, "", &mut found);
        found
    }

    /// Takes the texts out of everything but one section and what is below it, and gives back its keys; `None` if there is no such
    /// section. The tree stays as it is, so that numbers and headings do. A path has `.` or `/` between its keys.
    pub(crate) fn keep_only(&mut self, path: &str) -> Option<Vec<String>> {
        let keys = keys_of(&self.sections, path)?;
        empty_others(&mut self.sections, &keys);
        let mut kept = Vec::new();
        places_of(&self.sections, &mut kept);
        self.conditions.retain(|(place, _)| kept.iter().any(|known| known.is_same(place)));
        self.engines.clear();
        Some(keys)
    }
}

/// The keys that a path names.
fn keys_of(sections: &[Section], path: &str) -> Option<Vec<String>> {
    for section in sections {
        let Some(rest) = path.strip_prefix(section.key.as_str()) else { continue };
        if rest.is_empty() {
            return Some(vec![section.key.clone()]);
        }
        if let Some(below) = rest.strip_prefix(['.', '/']).and_then(|rest| keys_of(&section.children, rest)) {
            return Some(std::iter::once(section.key.clone()).chain(below).collect());
        }
    }
    None
}

fn empty_others(sections: &mut [Section], keep: &[String]) {
    let Some((first, below)) = keep.split_first() else { return };
    for section in sections {
        let is_on_the_way = section.key == *first;
        if is_on_the_way && below.is_empty() {
            continue;
        }
        if let Body::Template { text, .. } = &mut section.body {
            *text = Source::verbatim(text.name(), "");
        }
        section.summary = None;
        (section.enabled, section.visibility) = (Selector::Always(true), Selector::Always(Visibility::Full));
        (section.enabled_place, section.visibility_place) = (None, None);
        // The tools stay, because examples of tasks use them.
        section.skills.clear();
        // No section has an empty key, so nothing is kept below the others.
        let nothing = [String::new()];
        empty_others(&mut section.children, if is_on_the_way { below } else { &nothing });
    }
}

fn places_of(sections: &[Section], found: &mut Vec<Place>) {
    for section in sections {
        found.extend([&section.enabled_place, &section.visibility_place].into_iter().flatten().cloned());
        places_of(&section.children, found);
    }
}

/// The front matter.
struct Front {
    ns: String,
    key: Option<String>,
    name: Option<String>,
    description: Option<String>,
    metadata: Map<String, Json>,
    inputs: Vec<Property>,
    /// Inputs whose values are fenced, and the names of the tags.
    fences: Vec<(String, String)>,
    /// What one answer holds.
    output: Option<OutputSpec>,
    /// The same in the words of a request.
    outputs: Vec<Property>,
    headings: Headings,
    missing: Missing,
    model: Option<Model>,
    engine: String,
    engines: Vec<(String, Place)>,
}

/// Trees of sections.
#[derive(Debug)]
pub(super) struct Sections;

impl Dialect for Sections {
    fn traits(&self) -> &'static Traits {
        &SECTIONS
    }

    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
        let mut reader = SectionsReader(FrontMatterReader::for_sections());
        let (front, _) = front(&offer.text()?, &mut reader)?;
        reader.0.finish()?;
        Ok(metadata(offer, &front))
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read> {
        read(reading)
    }

    fn compile(&self, parsed: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn dialect::Body>> {
        compile(file(parsed, compiling)?, None, compiling)
    }

    fn compile_section(
        &self,
        parsed: Parsed,
        section: &str,
        compiling: &Compiling<'_>,
    ) -> Result<Option<Box<dyn dialect::Body>>> {
        let mut file = file(parsed, compiling)?;
        match file.keep_only(section) {
            Some(path) => compile(file, Some(&path), compiling).map(Some),
            None => Ok(None),
        }
    }

    fn sections(&self, parsed: &Parsed) -> Vec<String> {
        parsed.as_ref().and_then(|parsed| parsed.downcast_ref::<File>()).map_or(Vec::new(), File::paths)
    }
}

/// A reader of `.prompty` files that reads trees too.
struct SectionsReader(FrontMatterReader);

impl Deref for SectionsReader {
    type Target = FrontMatterReader;

    fn deref(&self) -> &FrontMatterReader {
        &self.0
    }
}

impl DerefMut for SectionsReader {
    fn deref_mut(&mut self) -> &mut FrontMatterReader {
        &mut self.0
    }
}

/// What was read of a tree.
fn file(parsed: Parsed, compiling: &Compiling<'_>) -> Result<File> {
    match parsed.map(|parsed| parsed.downcast::<File>()) {
        Some(Ok(file)) => Ok(*file),
        _ => Err(compiling.not_parsed()),
    }
}

fn compile(file: File, part: Option<&[String]>, compiling: &Compiling<'_>) -> Result<Box<dyn dialect::Body>> {
    let loader = compiling.loader.clone();
    Ok(Box::new(SectionsBody::new(file, part, loader, compiling.settings, compiling.engines)?))
}

fn read(reading: &Reading<'_>) -> Result<Read> {
    let (source, id) = (reading.text()?, reading.offer().id());
    let mut reader = SectionsReader(FrontMatterReader::for_sections());
    let (front, body) = front(&source, &mut reader)?;
    if front.key.is_none() && key_of(id).is_empty() {
        let message = format!("the id {} cannot become a key, which overrides need", quoted(id));
        let hint = "add `key: …` to the front matter, between two lines `---` at the top of the file";
        reader.wrong(&source.place(0..0), message, hint);
    }
    let mut conditions = Vec::new();
    let mut engines = Vec::new();
    let sections = tree::read(&source, body, &front, &mut reader, &mut conditions, &mut engines);
    let notes = reader.0.finish()?;
    let metadata = metadata(reading.offer(), &front);
    engines.extend(front.engines);
    let file = File {
        ns: front.ns,
        key: front.key.unwrap_or_else(|| key_of(id)),
        name: front.name,
        headings: front.headings,
        missing: front.missing,
        output: front.output,
        sections,
        engines,
        conditions,
    };
    let prompt = Prompt {
        variables: front.inputs.into_iter().map(|input| variable(input, false)).collect(),
        format: Format { engine: front.engine, ..Format::plain() },
        model: front.model,
        outputs: front.outputs,
        ..reading.prompt(metadata, source)
    };
    Ok(Read { notes, parsed: Some(Box::new(file)), ..Read::new(prompt) })
}

/// The front matter, and where the tree stands.
fn front(source: &Arc<Source>, reader: &mut SectionsReader) -> Result<(Front, std::ops::Range<usize>)> {
    let split = split(source)?;
    let Some(range) = split.front_matter else { return Ok((Front::default(), split.body)) };
    let root = yaml::Document::parse(source, range, Code::BadFrontMatter, ErrorKind::PromptRead)?.into_root();
    match &root.data {
        Data::Null => Ok((Front::default(), split.body)),
        Data::Map(_) => Ok((reader.front(&root), split.body)),
        _ => {
            Err(Error::new(ErrorKind::PromptRead, not_a_map(&root, Code::BadFrontMatter, "the front matter")))
        }
    }
}

fn not_a_map(node: &Node, code: Code, what: &str) -> Diagnostic {
    Diagnostic::new(code, format!("{what} must be a map"))
        .at(node.opening())
        .label(format!("this is {}", node.describe()))
        .hint("write `key: value`, one per line")
}

fn metadata(offer: &Offer<'_>, front: &Front) -> Metadata {
    offer.metadata(front.name.clone(), front.description.clone(), &front.metadata)
}

/// The key that stands for a text: its letters and digits in lower case, and `-` between its words. Empty if it has none.
pub fn key_of(text: &str) -> String {
    let mut key = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        match character {
            'a'..='z' | '0'..='9' => key.push(character),
            '_' | '.' if !key.is_empty() => key.push(character),
            // What has no place in a key ends a word, and an apostrophe does not even do that.
            '\'' | '\u{2019}' => {}
            _ if key.is_empty() || key.ends_with('-') => {}
            _ => key.push('-'),
        }
    }
    key.truncate(crate::sections::MAX_KEY);
    key.trim_end_matches(['-', '_', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_of_the_words_of_a_title() {
        for (title, key) in [
            ("Response Format", "response-format"),
            ("  What's new? (2.0)", "whats-new-2.0"),
            ("coding_system", "coding_system"),
            ("Ünder — Straße!", "nder-stra-e"),
            ("概要", ""),
            ("...", ""),
        ] {
            assert_eq!(key_of(title), key, "{title}");
        }
        assert_eq!(key_of(&"a".repeat(100)).len(), 64);
    }
}
