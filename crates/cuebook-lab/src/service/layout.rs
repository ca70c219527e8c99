//! How a file is laid out: its front matter, and the tags of its templates. Text that is half typed has a layout, too.

use std::ops::Range;
use std::path::Path;

use super::cursor::is_word;
use crate::items::{CASES_END, CASES_FILE, FOLDER, ItemType};
use crate::prompt::{Claim, DOTPROMPT, PROMPTY_END, SECTIONS_END, SKILL, Traits};

/// What a file is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Notation {
    /// A `.prompty` file.
    Prompty,
    /// A tree of sections.
    Sections,
    /// A directive.
    Directive,
    /// A file of cases.
    Cases,
    /// Definitions in Python.
    Python,
    /// A `.prompt` file of dotprompt.
    Dotprompt,
    /// A skill, whose text is literal.
    Skill,
    /// A piece of knowledge, whose text is literal.
    Knowledge,
    /// A tool.
    Tool,
    /// The manifest of a pack.
    Manifest,
    /// A template, or a part of one.
    Template,
}

impl Notation {
    /// What a file is written in, by its path.
    pub(super) fn of(path: &Path) -> Notation {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let in_space = |kind: ItemType| {
            let parts: Vec<_> = path.iter().collect();
            parts.windows(2).any(|pair| pair[0] == FOLDER && pair[1] == kind.folder())
        };
        if name == CASES_FILE || name.ends_with(CASES_END) {
            Notation::Cases
        } else if name.ends_with(PROMPTY_END) {
            Notation::Prompty
        } else if name.ends_with(SECTIONS_END) {
            Notation::Sections
        } else if name == "pack.json" {
            Notation::Manifest
        } else if in_space(ItemType::Tool) {
            Notation::Tool
        } else if in_space(ItemType::Knowledge) {
            Notation::Knowledge
        } else if claims(&DOTPROMPT, &name) {
            Notation::Dotprompt
        } else if claims(&SKILL, &name) {
            Notation::Skill
        } else if name.ends_with(".py") {
            Notation::Python
        } else if in_space(ItemType::Directive) {
            Notation::Directive
        } else {
            Notation::Template
        }
    }

    /// The front matter of a text in it.
    pub(super) fn front_matter(self, text: &str) -> Option<Range<usize>> {
        let has_front = matches!(
            self,
            Notation::Prompty
                | Notation::Sections
                | Notation::Dotprompt
                | Notation::Skill
                | Notation::Knowledge
        );
        front_matter(text).filter(|_| has_front)
    }

    /// Whether Jinja2's tags mean something in it.
    pub(super) fn has_tags(self) -> bool {
        matches!(self, Notation::Prompty | Notation::Sections | Notation::Template | Notation::Python)
    }
}

/// Whether a file of this name is written in a dialect. Its parts are, too.
fn claims(dialect: &Traits, name: &str) -> bool {
    match dialect.claim {
        Claim::End(end) => name.ends_with(end),
        Claim::File(file) => name == file,
        Claim::Nothing => false,
    }
}

/// What kind of tag it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TagKind {
    /// `{{ … }}`
    Expression,
    /// `{% … %}`
    Statement,
    /// `{# … #}`
    Comment,
}

/// A tag of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tag {
    pub(super) kind: TagKind,
    /// With its braces.
    pub(super) range: Range<usize>,
    /// Without them.
    pub(super) inside: Range<usize>,
}

impl Tag {
    /// The word that a statement begins with, as in `for`.
    pub(super) fn keyword<'t>(&self, text: &'t str) -> &'t str {
        let inside = text[self.inside.clone()].trim_start();
        let end = inside.find(|letter: char| !is_word(letter)).unwrap_or(inside.len());
        if self.kind == TagKind::Statement { &inside[..end] } else { "" }
    }
}

/// The YAML of the front matter, without the lines around it.
pub(super) fn front_matter(text: &str) -> Option<Range<usize>> {
    let mut at = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        let (begin, is_fence) = (at, matches!(line.trim(), "---" | "+++"));
        at += line.len();
        match start {
            None if is_fence => start = Some(at),
            None if line.trim_start_matches('\u{feff}').trim().is_empty() => {}
            None => return None,
            Some(start) if is_fence => return Some(start..begin),
            Some(_) => {}
        }
    }
    // Without an end, everything is front matter: it is still being typed.
    start.map(|start| start..text.len())
}

/// The XML of a directive, without the lines around it. Without an end it is still being typed.
pub(super) fn xml(text: &str) -> Range<usize> {
    let Some(start) = text.find("```xml").map(|open| open + "```xml".len()) else { return 0..0 };
    start..text[start..].find("\n```").map_or(text.len(), |length| start + length)
}

/// The tags of a text from an offset on. A tag that is not closed ends with its line.
pub(super) fn tags(text: &str, from: usize) -> Vec<Tag> {
    let mut tags: Vec<Tag> = Vec::new();
    let mut at = from;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('{')).map(|found| at + found) {
        let (kind, close) = match text.as_bytes().get(open + 1) {
            Some(b'{') => (TagKind::Expression, "}}"),
            Some(b'%') => (TagKind::Statement, "%}"),
            Some(b'#') => (TagKind::Comment, "#}"),
            _ => {
                at = open + 1;
                continue;
            }
        };
        let end = end_of(text, open + 2, kind, close);
        let inside_end = if text[..end].ends_with(close) && end >= open + 4 { end - 2 } else { end };
        let signs = |letter: char| matches!(letter, '-' | '+');
        let start = open + 2 + usize::from(text[open + 2..inside_end].starts_with(signs));
        let stop = inside_end - usize::from(inside_end > start && text[start..inside_end].ends_with(signs));
        let tag = Tag { kind, range: open..end, inside: start..stop };
        at = end;
        if tag.keyword(text) == "raw" {
            let rest = &text[end..];
            at = rest
                .find("endraw")
                .and_then(|found| rest[..found].rfind("{%"))
                .map_or(at, |found| end + found);
        }
        tags.push(tag);
    }
    tags
}

/// What `{% import %}` and `{% from %}` give names to: each name, the string of the template, and the macro that it stands for. A
/// name without a macro stands for all of them.
pub(super) fn imports(text: &str) -> Vec<(String, Range<usize>, Option<String>)> {
    let mut found = Vec::new();
    for tag in tags(text, 0).into_iter().filter(|tag| matches!(tag.keyword(text), "import" | "from")) {
        let pieces = pieces(text, tag.inside.clone());
        let Some(target) = pieces.iter().position(|(piece, _)| *piece == Piece::Text) else { continue };
        let path = pieces[target].1.clone();
        let words: Vec<&str> = pieces[target + 1..].iter().map(|(_, range)| &text[range.clone()]).collect();
        match words.as_slice() {
            ["as", alias, ..] => found.push(((*alias).to_owned(), path, None)),
            ["import", names @ ..] => {
                for name in names.split(|word| *word == ",") {
                    let alias = match name {
                        [_, "as", alias, ..] => alias,
                        [name, ..] => name,
                        [] => continue,
                    };
                    found.push(((*alias).to_owned(), path.clone(), Some(name[0].to_owned())));
                }
            }
            _ => {}
        }
    }
    found
}

/// Where a tag ends whose content begins here.
fn end_of(text: &str, start: usize, kind: TagKind, close: &str) -> usize {
    if kind == TagKind::Comment {
        return text[start..].find(close).map_or(text.len(), |found| start + found + 2);
    }
    let mut quote: Option<u8> = None;
    let bytes = text.as_bytes();
    let mut line_end = None;
    let mut at = start;
    while at < bytes.len() {
        match (bytes[at], quote) {
            (b'\\', Some(_)) => at += 1,
            (byte, Some(open)) if byte == open => quote = None,
            (_, Some(_)) => {}
            (byte @ (b'"' | b'\''), None) => quote = Some(byte),
            (b'{', None) if matches!(bytes.get(at + 1), Some(b'{' | b'%')) => break,
            (_, None) if bytes[at..].starts_with(close.as_bytes()) => {
                return at + 2;
            }
            _ => {}
        }
        if bytes[at] == b'\n' && line_end.is_none() {
            line_end = Some(at);
        }
        at += 1;
    }
    line_end.unwrap_or(at.min(text.len()))
}

/// What a piece of a tag is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    /// A name or a keyword.
    Name,
    /// A string, with its quotes.
    Text,
    /// A number.
    Number,
    /// Anything else that is no space.
    Sign,
}

/// The pieces of a tag.
pub(super) fn pieces(text: &str, inside: Range<usize>) -> Vec<(Piece, Range<usize>)> {
    let mut pieces = Vec::new();
    let mut at = inside.start;
    while let Some(letter) = text.get(at..inside.end).and_then(|rest| rest.chars().next()) {
        let rest = &text[at..inside.end];
        let length = |stop: &dyn Fn(char) -> bool| rest.find(stop).unwrap_or(rest.len());
        let (piece, length) = match letter {
            '"' | '\'' => (Piece::Text, string_length(rest, letter)),
            letter if letter.is_ascii_digit() => (
                Piece::Number,
                length(&|letter| !letter.is_ascii_alphanumeric() && !matches!(letter, '.' | '_')),
            ),
            letter if is_word(letter) => (Piece::Name, length(&|letter| !is_word(letter))),
            letter if letter.is_whitespace() => {
                at += letter.len_utf8();
                continue;
            }
            letter => (Piece::Sign, letter.len_utf8()),
        };
        pieces.push((piece, at..at + length));
        at += length.max(1);
    }
    pieces
}

fn string_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, letter) in text.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            letter if letter == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<&str> {
        tags(text, 0).into_iter().map(|tag| &text[tag.range]).collect()
    }

    #[test]
    fn tags_end_at_their_close_or_at_the_line_end() {
        assert_eq!(found("a {{ b }} {% c -%}{# d #}{e}"), ["{{ b }}", "{% c -%}", "{# d #}"]);
        assert_eq!(found("{{ '}}' }}"), ["{{ '}}' }}"]);
        assert_eq!(found("{{ a\n{{ b }}"), ["{{ a", "{{ b }}"]);
        assert_eq!(found("{{ 'a\nb"), ["{{ 'a"]);
        assert_eq!(found("{% raw %}{{ a }}{% endraw %}"), ["{% raw %}", "{% endraw %}"]);
        assert_eq!(found("{{"), ["{{"]);
        assert_eq!(found("{{-}}"), ["{{-}}"]);
        assert_eq!(found("{{ é }} {%ü"), ["{{ é }}", "{%ü"]);
    }

    #[test]
    fn imports_give_names() {
        let text =
            "{% import 'a.md' as m %}{% from \"b.md\" import x, y as z with context %}{% import 'c' %}";
        let found = imports(text);
        let shown: Vec<(&str, &str, Option<&str>)> = found
            .iter()
            .map(|(name, path, of)| (name.as_str(), &text[path.clone()], of.as_deref()))
            .collect();
        assert_eq!(
            shown,
            [("m", "'a.md'", None), ("x", "\"b.md\"", Some("x")), ("z", "\"b.md\"", Some("y"))]
        );
    }

    #[test]
    fn a_statement_has_a_keyword() {
        let text = "{%- for a in b %}{{ c }}";
        let words: Vec<&str> = tags(text, 0).iter().map(|tag| tag.keyword(text)).collect();
        assert_eq!(words, ["for", ""]);
    }

    #[test]
    fn a_tag_has_pieces() {
        let text = "a.b|c('x', 1.5)";
        let shown: Vec<&str> =
            pieces(text, 0..text.len()).into_iter().map(|(_, range)| &text[range]).collect();
        assert_eq!(shown, ["a", ".", "b", "|", "c", "(", "'x'", ",", "1.5", ")"]);
    }

    #[test]
    fn front_matter_ends_at_its_line_or_with_the_file() {
        let text = "---\nname: a\n---\nHi\n---\n";
        assert_eq!(front_matter(text), Some(4..12));
        assert_eq!(front_matter("---\nna"), Some(4..6));
        assert_eq!(front_matter("Hi\n---\na: 1\n---\n"), None);
    }

    #[test]
    fn the_notation_follows_from_the_path() {
        let of = |path: &str| Notation::of(Path::new(path));
        assert_eq!(of("/p/prompts/a/template.md"), Notation::Template);
        assert_eq!(of("/p/a.prompty"), Notation::Prompty);
        assert_eq!(of("/p/a.sections.md"), Notation::Sections);
        assert_eq!(of("/p/a/tests.md"), Notation::Cases);
        assert_eq!(of("/p/.ai/directives/team/a.md"), Notation::Directive);
        assert_eq!(of("/p/.ai/knowledge/a.md"), Notation::Knowledge);
        assert_eq!(of("/p/.ai/tools/team/a.py"), Notation::Tool);
        assert_eq!(of("/p/prompts/_a.prompt"), Notation::Dotprompt);
        assert_eq!(of("/p/skills/a/SKILL.md"), Notation::Skill);
        assert_eq!(of("/p/user_data/packs/one/pack.json"), Notation::Manifest);
        assert_eq!(of("/p/a/prompt.py"), Notation::Python);
    }
}
