//! What has a name in a file or in the library.

use std::path::Path;

use super::cursor::is_word;
use super::layout::{Notation, pieces, tags};
use super::names::Thing;
use super::tokens::{ROLES, lines};
use super::{Location, Service};
use crate::targets::place;

/// What kind of thing a symbol is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SymbolKind {
    /// A declared variable.
    Variable,
    /// A block.
    Block,
    /// A macro.
    Macro,
    /// Another template that is used.
    File,
    /// A section, or a case.
    Section,
    /// The beginning of a message.
    Role,
    /// A prompt.
    Prompt,
    /// A tool.
    Tool,
}

/// Something that has a name.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What kind of thing it is.
    pub kind: SymbolKind,
    /// Where it is.
    pub location: Location,
    /// Further words, as the notation of a prompt.
    pub detail: String,
}

/// As many symbols of the library are given.
const MAX: usize = 200;

impl Service {
    /// What has a name in a file, in the order of the text: variables, blocks, macros, other templates, sections and messages.
    /// A file that is half typed has symbols, too.
    pub fn symbols(&self, path: &Path) -> Vec<Symbol> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let mut symbols: Vec<Symbol> = Vec::new();
        let mut add = |name: &str, kind: SymbolKind, location: Location, detail: &str| {
            let symbol = Symbol { name: name.to_owned(), kind, location, detail: detail.to_owned() };
            if symbol.location.path == path && symbol.location.end <= text.len() && !symbols.contains(&symbol)
            {
                symbols.push(symbol);
            }
        };
        for prepared in self.prepared(path).iter().flat_map(|all| all.iter()) {
            for variable in &prepared.prompt().variables {
                if let Some(place) = &variable.place {
                    let detail = super::hover::declaration(variable);
                    add(&variable.name, SymbolKind::Variable, self.location(place), &detail);
                }
            }
        }
        let notation = Notation::of(path);
        let body = notation.front_matter(&text).map_or(0, |front| front.end);
        let here = |range: std::ops::Range<usize>| Location::new(path, range);
        if (notation.has_tags() && notation != Notation::Python) || notation == Notation::Dotprompt {
            for tag in tags(&text, body) {
                let keyword = tag.keyword(&text);
                let inside = &text[tag.inside.clone()];
                if let Some(name) = inside.trim_start().strip_prefix('>').filter(|_| keyword.is_empty()) {
                    let start = tag.inside.end - name.trim_start().len();
                    let range = start..start + name.trim().len();
                    add(&format!("include {}", name.trim()), SymbolKind::File, here(range), "");
                    continue;
                }
                let second = pieces(&text, tag.inside.clone()).into_iter().nth(1);
                let Some((_, range)) = second else { continue };
                let word = text[range.clone()].trim_matches(['"', '\'']);
                match keyword {
                    "block" => add(word, SymbolKind::Block, here(range), "block"),
                    "macro" => add(word, SymbolKind::Macro, here(range), "macro"),
                    "include" | "extends" | "import" | "from" => {
                        add(&format!("{keyword} {word}"), SymbolKind::File, here(range), "");
                    }
                    _ => {}
                }
            }
        }
        for (line, range) in lines(&text, body..text.len()) {
            let trimmed = line.trim_end();
            let marks = line.bytes().take_while(|byte| *byte == b'#').count();
            let word = trimmed.split(|letter: char| !is_word(letter)).next().unwrap_or_default();
            let at = here(range.start..range.start + trimmed.len());
            match notation {
                Notation::Prompty if ROLES.contains(&word) && trimmed.ends_with(':') => {
                    add(word, SymbolKind::Role, at, "message");
                }
                Notation::Sections
                | Notation::Cases
                | Notation::Directive
                | Notation::Skill
                | Notation::Knowledge
                    if marks > 0 && trimmed[marks..].starts_with(' ') =>
                {
                    add(trimmed[marks..].trim(), SymbolKind::Section, at, "");
                }
                _ => {}
            }
        }
        let mut tools = Vec::new();
        for spot in self.spots(path, &text) {
            if let Thing::Tool(_, name) = &spot.thing
                && !tools.contains(name)
            {
                tools.push(name.clone());
                add(name, SymbolKind::Tool, here(spot.range), "tool");
            }
        }
        symbols.sort_by_key(|symbol| symbol.location.start);
        symbols
    }

    /// Prompts of the library whose id has these letters in this order.
    pub fn workspace_symbols(&self, query: &str) -> Vec<Symbol> {
        let fits = |id: &str| {
            let mut letters = id.chars().flat_map(char::to_lowercase);
            query.chars().flat_map(char::to_lowercase).all(|wanted| letters.any(|letter| letter == wanted))
        };
        let prompts = self.index.prompts().filter(|(_, one)| fits(&one.found.id));
        let symbol = |(_, one): (_, &crate::check::CheckedPrompt)| {
            let candidate = &one.found.candidate;
            let path = place(candidate)?;
            let path = match path.is_dir() {
                true => one.files.iter().find(|file| file.parent() == Some(&path))?.clone(),
                false => path,
            };
            Some(Symbol {
                name: one.found.id.clone(),
                kind: SymbolKind::Prompt,
                location: Location::new(path, 0..0),
                detail: candidate.source.clone(),
            })
        };
        prompts.filter_map(symbol).take(MAX).collect()
    }
}
