//! Names in a file that lead to other prompts, sections, tools and items.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::cursor::{LOADING, is_word};
use super::layout::{Notation, Piece, TagKind, pieces, tags, xml};
use super::names::Thing;
use super::tokens::lines;
use super::{Location, Service};
use crate::items::{ItemId, ItemType, SpaceKind};
use crate::library::{PROMPT_FILE, TEMPLATE_FILE};
use crate::targets::place;
use crate::template::address::{Address, Kind};

/// A name in a file, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spot {
    pub(super) range: Range<usize>,
    pub(super) thing: Thing,
}

impl Spot {
    fn new(range: Range<usize>, thing: Thing) -> Spot {
        Spot { range, thing }
    }
}

impl Service {
    /// The names in a file that lead to prompts, sections, tools and items.
    pub(super) fn spots(&self, path: &Path, text: &str) -> Vec<Spot> {
        let mut spots = match Notation::of(path) {
            Notation::Directive => directive(text),
            Notation::Python => python(text),
            Notation::Tool => executor(text),
            Notation::Manifest => manifest(text),
            Notation::Cases | Notation::Skill | Notation::Knowledge | Notation::Dotprompt => Vec::new(),
            Notation::Prompty | Notation::Sections | Notation::Template => included(text),
        };
        if matches!(Notation::of(path), Notation::Prompty | Notation::Sections) {
            self.declared(path, text, &mut spots);
        }
        spots
    }

    /// Sections and tools that a file declares, and steps of examples that use the tools.
    fn declared(&self, path: &Path, text: &str, spots: &mut Vec<Spot>) {
        let own = self.users(path, 1).into_iter().next();
        let Some(compiled) = own.map(|source| self.compiled(&source)) else { return };
        let Some(prepared) = compiled.first() else { return };
        let mut add = |range: Range<usize>, name: &str, thing: Thing| {
            // What was compiled may be older than what is typed.
            if text.get(range.clone()) == Some(name) {
                spots.push(Spot::new(range, thing));
            }
        };
        let tool = |name: &str| Thing::Tool(path.to_owned(), name.to_owned());
        let mut names: BTreeSet<String> = BTreeSet::new();
        let tools = prepared.prompt().tools.iter().map(|one| (&one.name, &one.place));
        let nodes = prepared.tree().map(|tree| tree.sections()).unwrap_or_default();
        let of_nodes = nodes.iter().flat_map(|node| &node.section.tools).map(|one| (&one.name, &one.place));
        for (name, declared) in tools.chain(of_nodes) {
            let at = declared.as_ref().map(|place| self.location(place)).filter(|at| at.path == path);
            if let Some(at) = at.and_then(|at| self.named(&at, name)) {
                names.insert(name.clone());
                add(at.range(), name, tool(name));
            }
        }
        for node in nodes {
            let at = node.section.title_place.as_ref().map(|place| self.location(place));
            let Some(at) = at.filter(|at| at.path == path) else { continue };
            let thing = Thing::Section(prepared.prompt().id.clone(), node.dotted().to_owned());
            if let Some(key) = key_below(text, at.end) {
                add(key, &node.section.key, thing.clone());
            }
            add(at.range(), &node.section.title, thing);
        }
        for range in after_key(text, "tool") {
            let name = &text[range.clone()];
            if names.contains(name) {
                spots.push(Spot::new(range.clone(), tool(name)));
            }
        }
    }

    /// The spot that a byte of a file is in.
    pub(super) fn spot_at(&self, path: &Path, text: &str, offset: usize) -> Option<Spot> {
        let is_here = |spot: &Spot| spot.range.start <= offset && offset <= spot.range.end;
        let mut here: Vec<Spot> = self.spots(path, text).into_iter().filter(is_here).collect();
        here.sort_by_key(|spot| spot.range.len());
        here.into_iter().next()
    }

    /// Where a prompt, a section, a tool or an item is defined.
    pub(super) fn place_of(&self, thing: &Thing) -> Option<Location> {
        match thing {
            Thing::Prompt(id) => {
                let at = place(&self.book().find(id).ok()?.candidate)?;
                let files = [TEMPLATE_FILE, PROMPT_FILE].map(|file| at.join(file));
                let file = if at.is_dir() { files.into_iter().find(|file| file.is_file())? } else { at };
                Some(Location::new(file, 0..0))
            }
            Thing::Section(id, path) => {
                let file = place(&self.book().find(id).ok()?.candidate)?;
                let text = self.text(&file)?;
                let spots = self.spots(&file, &text).into_iter();
                let mut found = spots.filter(|spot| spot.thing == Thing::Section(id.clone(), path.clone()));
                // The title comes last.
                found.next_back().map(|spot| Location::new(file, spot.range))
            }
            Thing::Tool(file, _) => {
                let text = self.text(file)?;
                let mut spots = self.spots(file, &text).into_iter();
                spots.find(|spot| spot.thing == *thing).map(|spot| Location::new(file.clone(), spot.range))
            }
            Thing::Item(kind, id) => self.item_file(*kind, id).map(|file| Location::new(file, 0..0)),
            _ => None,
        }
    }

    /// The file of an item, by its id with dots.
    pub(super) fn item_file(&self, kind: ItemType, dotted: &str) -> Option<PathBuf> {
        let spaces = self.book().library().spaces();
        let plain = ItemId::new(&dotted.replace('.', "/")).ok();
        let found = plain.and_then(|id| spaces.find(kind, &id).ok().flatten());
        let found = found.or_else(|| {
            let mut all = spaces.all().iter().filter_map(|space| spaces.walk(kind, space).ok()).flatten();
            all.find(|item| item.id.as_str().replace('/', ".") == dotted)
        });
        found?.path().map(Path::to_owned)
    }

    /// Every spot of a thing, in the files of the project.
    pub(super) fn spots_of(&self, thing: &Thing) -> Vec<Location> {
        let files: BTreeSet<PathBuf> = match thing {
            Thing::Tool(file, _) => BTreeSet::from([file.clone()]),
            _ => self.project_files(),
        };
        // Most files do not have the name at all.
        let word = match thing {
            Thing::Prompt(id) | Thing::Section(id, _) => id.as_str(),
            Thing::Item(_, id) => id.rsplit('.').next().unwrap_or(id),
            _ => "",
        };
        let own = match thing {
            Thing::Section(id, _) => self.book().find(id).ok().and_then(|found| place(&found.candidate)),
            _ => None,
        };
        let mut found = Vec::new();
        for file in files {
            let Some(text) = self.text(&file) else { continue };
            if !text.contains(word) && own.as_ref() != Some(&file) {
                continue;
            }
            let here = self.spots(&file, &text).into_iter().filter(|spot| spot.thing == *thing);
            found.extend(here.map(|spot| Location::new(file.clone(), spot.range)));
        }
        found
    }

    /// The files of prompts and items, and the manifests of packs, that belong to the project.
    pub(super) fn project_files(&self) -> BTreeSet<PathBuf> {
        let library = self.book().library();
        let mut files: BTreeSet<PathBuf> = self.index.files().cloned().collect();
        // A folder whose prompt cannot be compiled has files, too.
        for folder in files.clone().iter().filter(|path| path.extension().is_none()) {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
            files.extend(
                entries.filter(|file| file.extension().is_some_and(|end| end == "md" || end == "py")),
            );
        }
        let spaces = library.spaces();
        for space in spaces.all().iter().filter(|space| space.kind() == SpaceKind::Project) {
            for kind in [ItemType::Directive, ItemType::Tool, ItemType::Knowledge] {
                let items = spaces.walk(kind, space).unwrap_or_default();
                files.extend(items.iter().filter_map(|item| item.path().map(Path::to_owned)));
            }
        }
        let roots = library.roots().unwrap_or_default();
        let folders = roots.iter().filter(|root| root.pack_id().is_some()).filter_map(|root| root.folder());
        files.extend(folders.filter_map(|folder| Some(folder.parent()?.join("pack.json"))));
        files.retain(|file| file.starts_with(library.root()));
        files
    }
}

/// Addresses that templates include.
fn included(text: &str) -> Vec<Spot> {
    let mut spots = Vec::new();
    for tag in tags(text, 0) {
        let inside = &text[tag.inside.clone()];
        if LOADING.contains(&tag.keyword(text)) {
            for (_, range) in
                pieces(text, tag.inside.clone()).iter().filter(|(piece, _)| *piece == Piece::Text)
            {
                address(text, unquoted(text, range), &mut spots);
            }
        } else if tag.kind == TagKind::Expression && inside.trim_start().starts_with('>') {
            let start = tag.inside.start + inside.find('>').map_or(0, |at| at + 1);
            address(text, trimmed(text, start..tag.inside.end), &mut spots);
        }
    }
    spots
}

/// What an address names, and the section in it.
fn address(text: &str, range: Range<usize>, spots: &mut Vec<Spot>) {
    let Some(found) = Address::of(&text[range.clone()]) else { return };
    let start = range.start + found.kind.as_str().len() + 1;
    let id = found.id.to_owned();
    let thing = match found.kind {
        Kind::Prompt => Thing::Prompt(id.clone()),
        Kind::Directive => Thing::Item(ItemType::Directive, dotted(&id)),
        Kind::Knowledge => Thing::Item(ItemType::Knowledge, dotted(&id)),
    };
    spots.push(Spot::new(start..start + id.len(), thing));
    if let Some(section) = found.section {
        let range = range.end - section.len()..range.end;
        spots.push(Spot::new(range, Thing::Section(id, dotted(section))));
    }
}

/// An id or a path as permissions write it.
pub(super) fn dotted(id: &str) -> String {
    id.trim().replace('/', ".")
}

/// Permissions, parents, context and includes of a directive.
fn directive(text: &str) -> Vec<Spot> {
    let mut spots = Vec::new();
    let block = xml(text);
    let mut open: Vec<&str> = Vec::new();
    let mut at = block.start;
    while let Some(start) = text[at..block.end].find('<').map(|found| at + found) {
        let end = text[start..block.end].find('>').map_or(block.end, |found| start + found);
        let inside = &text[start + 1..end];
        at = (end + 1).min(block.end);
        if inside.starts_with(['!', '?']) {
            continue;
        }
        if let Some(name) = inside.strip_prefix('/') {
            open.truncate(open.iter().rposition(|known| *known == name.trim()).unwrap_or(open.len()));
            continue;
        }
        let name = inside.split(|letter: char| letter.is_whitespace() || letter == '/').next().unwrap_or("");
        attributes(text, start + 1..end, name, &mut spots);
        let kind = match open.last() {
            Some(&("execute" | "search" | "load" | "sign")) => ItemType::named(name),
            Some(&"context") if matches!(name, "system" | "before" | "after") => Some(ItemType::Knowledge),
            _ => None,
        };
        let close = text[at..block.end].find('<').map_or(block.end, |found| at + found);
        let inner = trimmed(text, at..close);
        if let Some(kind) = kind.filter(|_| !inner.is_empty()) {
            let id = dotted(&text[inner.clone()]);
            spots.push(Spot::new(inner, Thing::Item(kind, id)));
        }
        if !inside.ends_with('/') {
            open.push(name);
        }
    }
    for (at, _) in text.match_indices("{include:") {
        let start = at + "{include:".len();
        let Some(length) = text[start..].find(['}', '\n']) else { continue };
        let (kind, start) = match text[start..].strip_prefix("directive:") {
            Some(_) => (ItemType::Directive, start + "directive:".len()),
            None => (ItemType::Knowledge, start),
        };
        let range = trimmed(text, start..(at + "{include:".len() + length).max(start));
        spots.push(Spot::new(range.clone(), Thing::Item(kind, dotted(&text[range]))));
    }
    spots
}

/// `extends` of a directive, and `item_id` of an action.
fn attributes(text: &str, range: Range<usize>, element: &str, spots: &mut Vec<Spot>) {
    let value = |name: &str| {
        let inside = &text[range.clone()];
        let at = inside.match_indices(name).map(|(at, _)| at).find(|at| {
            inside[..*at].ends_with(char::is_whitespace) && inside[at + name.len()..].starts_with("=\"")
        })?;
        let start = range.start + at + name.len() + 2;
        let length = text[start..range.end].find('"')?;
        Some(start..start + length)
    };
    if element == "directive"
        && let Some(range) = value("extends")
    {
        spots.push(Spot::new(range.clone(), Thing::Item(ItemType::Directive, dotted(&text[range]))));
    }
    let kind = value("item_type").and_then(|range| ItemType::named(&text[range]));
    if let (Some(kind), Some(range)) = (kind, value("item_id")) {
        spots.push(Spot::new(range.clone(), Thing::Item(kind, dotted(&text[range]))));
    }
}

/// The parent and the id in METADATA.
fn python(text: &str) -> Vec<Spot> {
    let mut spots = Vec::new();
    for key in ["extends", "prompt_id"] {
        for (at, _) in text.match_indices(key) {
            let end = at + key.len();
            let quote = text[end..].chars().next().filter(|letter| matches!(letter, '"' | '\''));
            let is_key = quote.is_some_and(|quote| text[..at].ends_with(quote));
            let rest = text[end + usize::from(is_key)..].trim_start();
            let Some(value) = rest.strip_prefix(':').filter(|_| is_key).map(str::trim_start) else {
                continue;
            };
            let start = text.len() - value.len();
            let Some(quote) = value.chars().next().filter(|letter| matches!(letter, '"' | '\'')) else {
                continue;
            };
            let length = value[1..].find([quote, '\n']).unwrap_or(value.len() - 1);
            let range = start + 1..start + 1 + length;
            spots.push(Spot::new(range.clone(), Thing::Prompt(text[range].to_owned())));
        }
    }
    spots
}

/// The executor of a tool.
fn executor(text: &str) -> Vec<Spot> {
    let mut spots = Vec::new();
    for (line, range) in lines(text, 0..text.len()) {
        let lead = line.find("executor_id").filter(|at| {
            let before = line[..*at].trim_start_matches(['#', ' ']);
            before.is_empty() || before == "__" || before.ends_with(" __")
        });
        let Some(at) = lead.map(|at| at + "executor_id".len()) else { continue };
        let rest = line[at..].trim_start_matches('_').trim_start();
        let Some(value) = rest.strip_prefix([':', '=']) else { continue };
        let start = range.start + line.len() - value.len();
        let is_end = |letter: char| matches!(letter, '"' | '\'' | ';' | '#' | '\n' | '\r' | ' ');
        let start = start + value.len() - value.trim_start_matches([' ', '"', '\'']).len();
        let length = text[start..].find(is_end).unwrap_or(text.len() - start);
        if length > 0 {
            let range = start..start + length;
            spots.push(Spot::new(range.clone(), Thing::Item(ItemType::Tool, dotted(&text[range]))));
        }
    }
    spots
}

/// The prompts that a pack lists.
fn manifest(text: &str) -> Vec<Spot> {
    let Some(start) = text.find("\"prompts\"") else { return Vec::new() };
    let Some(open) = text[start..].find('[').map(|at| start + at + 1) else { return Vec::new() };
    let end = text[open..].find(']').map_or(text.len(), |at| open + at);
    let strings = pieces(text, open..end).into_iter().filter(|(piece, _)| *piece == Piece::Text);
    let spot = |(_, range): (Piece, Range<usize>)| {
        let range = unquoted(text, &range);
        Spot::new(range.clone(), Thing::Prompt(text[range].to_owned()))
    };
    strings.map(spot).collect()
}

/// The value of `key` in the settings below a heading.
fn key_below(text: &str, heading: usize) -> Option<Range<usize>> {
    let mut in_settings = false;
    for (line, range) in lines(text, heading..text.len()).skip(1) {
        match line.trim() {
            "" if !in_settings => {}
            "```yaml section" if !in_settings => in_settings = true,
            _ if !in_settings => return None,
            line if line.starts_with("```") => return None,
            _ => {
                if let Some(value) = line.strip_prefix("key:") {
                    let start = range.start + line.len() - value.len();
                    let range = trimmed(text, start..range.end);
                    let quotes = text[range.clone()].starts_with(['"', '\'']);
                    return Some(if quotes { unquoted(text, &range) } else { range });
                }
            }
        }
    }
    None
}

/// The words that stand behind a key of YAML, wherever it stands in a line.
pub(super) fn after_key(text: &str, key: &str) -> Vec<Range<usize>> {
    let is_key = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|letter| matches!(letter, ' ' | '{' | ',' | '\n' | '-'))
            && text[at + key.len()..].starts_with(':')
    };
    let value = |at: usize| {
        let start = at + key.len() + 1;
        let start = start + text[start..].len() - text[start..].trim_start_matches([' ', '"', '\'']).len();
        let is_end = |letter: char| !is_word(letter) && letter != '-';
        let length = text[start..].find(is_end).unwrap_or(text.len() - start);
        start..start + length
    };
    let keys = text.match_indices(key).map(|(at, _)| at).filter(is_key);
    keys.map(value).filter(|range| !range.is_empty()).collect()
}

/// A range without the white space around it.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let start = range.start + inside.len() - inside.trim_start().len();
    start..start + inside.trim().len()
}

/// A string without its quotes.
pub(super) fn unquoted(text: &str, range: &Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let quote = inside.chars().next().filter(|letter| matches!(letter, '"' | '\''));
    match quote {
        Some(quote) if inside.len() > 1 && inside.ends_with(quote) => range.start + 1..range.end - 1,
        Some(_) => range.start + 1..range.end,
        None => range.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, spots: Vec<Spot>) -> Vec<(String, Thing)> {
        spots.into_iter().map(|spot| (text[spot.range].to_owned(), spot.thing)).collect()
    }

    #[test]
    fn addresses_lead_to_prompts_sections_and_items() {
        let text = "{% include \"prompt:a#b/c\" %}{% include ['directive:d/e', \"f.md\"] %}{{> knowledge:g }}{% include \"prompt:h";
        let item = |kind, id: &str| Thing::Item(kind, id.to_owned());
        let wanted = [
            ("a", Thing::Prompt("a".into())),
            ("b/c", Thing::Section("a".into(), "b.c".into())),
            ("d/e", item(ItemType::Directive, "d.e")),
            ("g", item(ItemType::Knowledge, "g")),
            ("h", Thing::Prompt("h".into())),
        ];
        assert_eq!(shown(text, included(text)), wanted.map(|(name, thing)| (name.to_owned(), thing)));
    }

    #[test]
    fn a_directive_names_items_in_its_xml_and_its_text() {
        let text = "```xml\n<directive name=\"x\" extends=\"base/agent\"><metadata><permissions><execute>\n<tool>team.report</tool>\
                    </execute></permissions><context><system>tea</system></context>\
                    <hooks><hook><action><execute item_type=\"tool\" item_id=\"a/b\"/></action></hook></hooks></metadata>\
                    </directive>\n```\n{include:tea} {include:directive:ops/deploy} {include:";
        let item = |kind, id: &str| Thing::Item(kind, id.to_owned());
        let wanted = [
            ("base/agent", item(ItemType::Directive, "base.agent")),
            ("team.report", item(ItemType::Tool, "team.report")),
            ("tea", item(ItemType::Knowledge, "tea")),
            ("a/b", item(ItemType::Tool, "a.b")),
            ("tea", item(ItemType::Knowledge, "tea")),
            ("ops/deploy", item(ItemType::Directive, "ops.deploy")),
        ];
        assert_eq!(shown(text, directive(text)), wanted.map(|(name, thing)| (name.to_owned(), thing)));
    }

    #[test]
    fn python_tools_and_manifests_name_prompts_and_tools() {
        let text = "METADATA = {\"extends\": \"base\", 'prompt_id': 'x'}\nextends = 1\n";
        let names = |spots: Vec<Spot>, text: &str| -> Vec<String> {
            spots.into_iter().map(|spot| text[spot.range].to_owned()).collect()
        };
        assert_eq!(names(python(text), text), ["base", "x"]);
        for text in [
            "__executor_id__ = \"rye/core/x\"\n",
            "executor_id: rye/core/x\n",
            "# __executor_id__ = \"rye/core/x\"\n",
            "export const __executor_id__ = \"rye/core/x\";\n",
        ] {
            assert_eq!(names(executor(text), text), ["rye/core/x"], "{text}");
        }
        let text = "{\"pack_id\": \"p\", \"prompts\": [\"a\", \"b\"]}";
        assert_eq!(names(manifest(text), text), ["a", "b"]);
    }

    #[test]
    fn the_key_of_a_section_is_in_its_settings() {
        let text = "# A\n```yaml section\nkey: b\n```\n# C\nkey: d\n";
        assert_eq!(key_below(text, 3).map(|range| &text[range]), Some("b"));
        assert_eq!(key_below(text, text.find("# C").unwrap() + 3), None);
        let text = "- {tool: a, x: 1}\n  tool: \"b-c\"\ntools: d\n";
        let found: Vec<&str> = after_key(text, "tool").into_iter().map(|range| &text[range]).collect();
        assert_eq!(found, ["a", "b-c"]);
    }
}
