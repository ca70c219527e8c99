//! What the words of a file are, for colours.

use std::ops::Range;
use std::path::Path;

use super::Service;
use super::cursor::is_word;
use super::handlebars;
use super::layout::{Notation, Piece, Tag, TagKind, pieces, tags, xml};

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A tag of a template, a role, or another word of the notation.
    Keyword,
    /// A variable.
    Variable,
    /// A part of a variable, or a key.
    Property,
    /// A filter, a test or a function.
    Function,
    /// A string.
    Text,
    /// A number.
    Number,
    /// A comment.
    Comment,
    /// An XML element, or the key of a section.
    Type,
}

/// A word of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What it is.
    pub kind: TokenKind,
    /// Its bytes, all in one line.
    pub range: Range<usize>,
}

/// Words that mean something inside of tags.
const WORDS: [&str; 22] = [
    "in",
    "is",
    "not",
    "and",
    "or",
    "if",
    "else",
    "as",
    "import",
    "with",
    "without",
    "context",
    "ignore",
    "missing",
    "recursive",
    "scoped",
    "required",
    "true",
    "false",
    "none",
    "True",
    "False",
];

/// The roles that begin messages.
pub(super) const ROLES: [&str; 5] = ["system", "user", "assistant", "developer", "tool"];

impl Service {
    /// The words of a file that belongs to the library, in the order of the text.
    pub fn tokens(&self, path: &Path) -> Vec<Token> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let notation = Notation::of(path);
        let mut found = Vec::new();
        let front = notation.front_matter(&text);
        let body = front.as_ref().map_or(0, |front| front.end);
        if let Some(front) = front {
            keys(&text, front, &mut found);
        }
        match notation {
            Notation::Prompty => roles(&text, body, &mut found),
            Notation::Sections => dollars(&text, body, &mut found),
            Notation::Directive => directive(&text, &mut found),
            Notation::Dotprompt => handlebars::colours(&text, body, &mut found),
            _ => {}
        }
        if notation.has_tags() && notation != Notation::Python {
            tags(&text, body).iter().for_each(|tag| of_tag(&text, tag, &mut found));
        }
        in_order(&text, found)
    }
}

/// Tokens in order; none spans lines or overlaps another.
fn in_order(text: &str, mut found: Vec<Token>) -> Vec<Token> {
    found.sort_by_key(|token| token.range.start);
    let mut tokens: Vec<Token> = Vec::with_capacity(found.len());
    for token in found {
        let mut at = token.range.start.max(tokens.last().map_or(0, |last| last.range.end));
        while let Some(rest) = text.get(at..token.range.end).filter(|rest| !rest.is_empty()) {
            let line = rest.find('\n').unwrap_or(rest.len());
            if line > 0 {
                tokens.push(Token { kind: token.kind, range: at..at + line });
            }
            at += line + 1;
        }
    }
    tokens
}

fn of_tag(text: &str, tag: &Tag, found: &mut Vec<Token>) {
    if tag.kind == TagKind::Comment {
        found.push(Token { kind: TokenKind::Comment, range: tag.range.clone() });
        return;
    }
    let keyword = tag.keyword(text);
    let mut before: Option<&str> = None;
    let mut pieces = pieces(text, tag.inside.clone()).into_iter().peekable();
    let mut is_first = true;
    while let Some((piece, range)) = pieces.next() {
        let word = &text[range.clone()];
        let kind = match piece {
            Piece::Text => Some(TokenKind::Text),
            Piece::Number => Some(TokenKind::Number),
            Piece::Sign => None,
            Piece::Name if is_first && !keyword.is_empty() => Some(TokenKind::Keyword),
            Piece::Name => Some(match before {
                Some("|" | "filter") => TokenKind::Function,
                Some("is") if word != "not" => TokenKind::Function,
                Some("not") if text[..range.start].trim_end().ends_with("is not") => TokenKind::Function,
                Some(".") => TokenKind::Property,
                _ if WORDS.contains(&word) => TokenKind::Keyword,
                Some("block" | "endblock") => TokenKind::Type,
                _ if pieces.peek().is_some_and(|(_, next)| &text[next.clone()] == "(") => TokenKind::Function,
                _ => TokenKind::Variable,
            }),
        };
        is_first = false;
        before = Some(word);
        found.extend(kind.map(|kind| Token { kind, range }));
    }
}

/// The keys and comments of front matter.
fn keys(text: &str, front: Range<usize>, found: &mut Vec<Token>) {
    for (line, range) in lines(text, front) {
        let lead = line.len() - line.trim_start_matches([' ', '-']).len();
        let rest = &line[lead..];
        let start = range.start + lead;
        if rest.starts_with('#') {
            found.push(Token { kind: TokenKind::Comment, range: start..range.start + line.trim_end().len() });
        } else if let Some(colon) = rest.find(':')
            && colon > 0
            && rest[..colon].chars().all(is_key)
        {
            found.push(Token { kind: TokenKind::Property, range: start..start + colon });
        }
    }
}

fn is_key(letter: char) -> bool {
    is_word(letter) || matches!(letter, '-' | '$')
}

/// Lines that begin messages: `user:`, also with attributes.
fn roles(text: &str, body: usize, found: &mut Vec<Token>) {
    for (line, range) in lines(text, body..text.len()) {
        let trimmed = line.trim_start().trim_start_matches('#').trim_start();
        let start = range.start + line.len() - trimmed.len();
        let word = trimmed.split(|letter: char| !is_word(letter)).next().unwrap_or_default();
        if ROLES.contains(&word) && trimmed.trim_end().ends_with(':') {
            found.push(Token { kind: TokenKind::Keyword, range: start..start + word.len() });
        }
    }
}

/// Placeholders and headings of sections.
pub(super) fn dollars(text: &str, body: usize, found: &mut Vec<Token>) {
    let bytes = text.as_bytes();
    let mut at = body;
    while let Some(dollar) = text[at..].find('$').map(|found| at + found) {
        let start = dollar + 1 + usize::from(bytes.get(dollar + 1) == Some(&b'{'));
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.find(|letter: char| !is_word(letter)).unwrap_or(rest.len());
        at = (start + length).max(dollar + 1);
        match bytes.get(dollar + 1) {
            Some(b'$') => at = dollar + 2,
            _ if length > 0 => found.push(Token { kind: TokenKind::Variable, range: start..start + length }),
            _ => {}
        }
    }
    for (line, range) in lines(text, body..text.len()) {
        let marks = line.bytes().take_while(|byte| *byte == b'#').count();
        if marks > 0 && line[marks..].starts_with(' ') {
            found.push(Token {
                kind: TokenKind::Type,
                range: range.start..range.start + line.trim_end().len(),
            });
        }
    }
}

/// The XML of a directive, and the inputs that its text names.
pub(super) fn directive(text: &str, found: &mut Vec<Token>) {
    let xml = xml(text);
    let mut at = xml.start;
    while let Some(open) = text[at..xml.end].find('<').map(|found| at + found) {
        if text[open..].starts_with("<!--") {
            at = text[open..xml.end].find("-->").map_or(xml.end, |found| open + found + 3);
            found.push(Token { kind: TokenKind::Comment, range: open..at });
            continue;
        }
        let close = text[open..xml.end].find('>').map_or(xml.end, |found| open + found);
        let mut is_first = true;
        for (piece, range) in pieces(text, open + 1..close) {
            match piece {
                Piece::Name if is_first => {
                    is_first = false;
                    found.push(Token { kind: TokenKind::Type, range });
                }
                Piece::Name => found.push(Token { kind: TokenKind::Property, range }),
                Piece::Text => found.push(Token { kind: TokenKind::Text, range }),
                Piece::Number | Piece::Sign => {}
            }
        }
        at = (close + 1).min(xml.end);
    }
    let mut at = 0;
    while let Some(open) = text[at..].find("{input:").map(|found| at + found) {
        let start = open + "{input:".len();
        let length = text[start..].find(|letter: char| !is_word(letter)).unwrap_or(text.len() - start);
        found.push(Token { kind: TokenKind::Keyword, range: open + 1..start - 1 });
        if length > 0 {
            found.push(Token { kind: TokenKind::Variable, range: start..start + length });
        }
        at = start + length;
    }
}

/// The lines of a part of a text, each with its range.
pub(super) fn lines(text: &str, part: Range<usize>) -> impl Iterator<Item = (&str, Range<usize>)> {
    let mut at = part.start;
    text.get(part).unwrap_or_default().split_inclusive('\n').map(move |line| {
        let range = at..at + line.len();
        at = range.end;
        (line, range)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, found: Vec<Token>) -> Vec<(TokenKind, String)> {
        in_order(text, found).into_iter().map(|token| (token.kind, text[token.range].to_owned())).collect()
    }

    #[test]
    fn the_words_of_a_tag_are_distinguished() {
        use TokenKind::{Function, Keyword, Number, Property, Text, Type, Variable};
        let text = "{% for a in b.c|sort(1) %}{{ f('x') }}{% block d %}{% if a is not none %}";
        let mut found = Vec::new();
        tags(text, 0).iter().for_each(|tag| of_tag(text, tag, &mut found));
        let wanted = [
            (Keyword, "for"),
            (Variable, "a"),
            (Keyword, "in"),
            (Variable, "b"),
            (Property, "c"),
            (Function, "sort"),
            (Number, "1"),
            (Function, "f"),
            (Text, "'x'"),
            (Keyword, "block"),
            (Type, "d"),
            (Keyword, "if"),
            (Variable, "a"),
            (Keyword, "is"),
            (Keyword, "not"),
            (Function, "none"),
        ];
        let wanted: Vec<(TokenKind, String)> =
            wanted.into_iter().map(|(kind, word)| (kind, word.to_owned())).collect();
        assert_eq!(shown(text, found), wanted);
    }

    #[test]
    fn keys_roles_placeholders_and_xml_have_colours() {
        let words = |text: &str, find: fn(&str, &mut Vec<Token>)| {
            let mut found = Vec::new();
            find(text, &mut found);
            shown(text, found).into_iter().map(|(_, word)| word).collect::<Vec<_>>()
        };
        assert_eq!(
            words("a: 1\n- b: 2\n# c\nd e: 3\n", |text, found| keys(text, 0..text.len(), found)),
            ["a", "b", "# c"]
        );
        assert_eq!(
            words("system:\nuser says:\nuser[name=\"a\"]:\n", |text, found| roles(text, 0, found)),
            ["system", "user", "user"]
        );
        assert_eq!(words("# A\n$a ${b} $$c $", |text, found| dollars(text, 0, found)), ["# A", "a", "b"]);
        let xml = "```xml\n<a b=\"c\"><!-- d --></a>\n```\n{input:e}";
        assert_eq!(words(xml, directive), ["a", "b", "\"c\"", "<!-- d -->", "a", "input", "e"]);
    }

    #[test]
    fn a_comment_of_several_lines_is_several_tokens() {
        let text = "{# a\nb #}";
        let mut found = Vec::new();
        tags(text, 0).iter().for_each(|tag| of_tag(text, tag, &mut found));
        assert_eq!(shown(text, found).len(), 2);
    }
}
