//! Cuts a template into text and tags, and a tag into words.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Number;

use super::errors;
use super::tree::Strip;
use crate::error::Result;
use crate::source::Source;

/// What a tag does, by its first characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Output,
    Comment,
    Block,
    /// `{{^name}}`
    Inverted,
    /// `{{else}}` and `{{^}}`
    Else,
    /// `{{else if …}}`
    ElseBlock,
    Close,
    Partial,
}

/// A tag, with its words except in a comment.
#[derive(Debug)]
pub(super) struct Tag {
    pub(super) kind: Kind,
    pub(super) range: Range<usize>,
    pub(super) strip: Strip,
    pub(super) words: Vec<Word>,
}

#[derive(Debug)]
pub(super) struct Word {
    pub(super) token: Token,
    pub(super) range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// A part of a path; the flag says whether it stood between square brackets.
    Id(Box<str>, bool),
    /// Between quotes: its text without escapes, if it has any.
    Text(Option<Box<str>>),
    Number(Number),
    /// `.` between two parts, or `/`.
    Separator,
    Dot,
    DotDot,
    At,
    Equals,
    Open,
    Close,
    Bar,
}

/// A piece of a template.
#[derive(Debug)]
pub(super) enum Piece {
    Text(Range<usize>),
    Tag(Tag),
}

pub(super) struct Scanner<'s> {
    source: &'s Arc<Source>,
    text: &'s str,
    at: usize,
    /// Whether the next text begins with `{{` that a backslash made text.
    escaped: bool,
}

impl<'s> Scanner<'s> {
    pub(super) fn new(source: &'s Arc<Source>) -> Scanner<'s> {
        Scanner { source, text: source.text(), at: 0, escaped: false }
    }

    /// The next piece. A text may be empty.
    pub(super) fn next(&mut self) -> Result<Option<Piece>> {
        let text = self.text;
        if self.at >= text.len() {
            return Ok(None);
        }
        if self.escaped {
            self.escaped = false;
            // The tag that a backslash made text goes up to the next one.
            let start = self.at;
            let rest = &text[start + 2..];
            let end = rest.find("{{").map_or(text.len(), |found| {
                let end = start + 2 + found;
                let before = &text[start + 2..end];
                end - (before.len() - before.trim_end_matches('\\').len()).min(2)
            });
            self.at = end;
            return Ok(Some(Piece::Text(start..end)));
        }
        let open = text[self.at..].find("{{").map(|found| self.at + found);
        let Some(open) = open else {
            let range = self.at..text.len();
            self.at = text.len();
            return Ok(Some(Piece::Text(range)));
        };
        if open > self.at {
            let before = &text[self.at..open];
            let range = match before {
                // The first of two backslashes stands for the second.
                before if before.ends_with("\\\\") => {
                    let range = self.at..open - 1;
                    self.at = open;
                    return Ok(Some(Piece::Text(range)));
                }
                before if before.ends_with('\\') => {
                    self.escaped = true;
                    self.at..open - 1
                }
                _ => self.at..open,
            };
            self.at = open;
            return Ok(Some(Piece::Text(range)));
        }
        self.tag(open).map(|tag| Some(Piece::Tag(tag)))
    }

    fn tag(&mut self, start: usize) -> Result<Tag> {
        let text = self.text;
        let mut at = start + 2;
        let source = self.source;
        let starts = |at: usize, with: &str| text[at..].starts_with(with);
        if starts(start, "{{{{") {
            let hint = "write `\\{{` to show two braces";
            return Err(errors::unsupported(source, start..start + 4, "a raw block", hint));
        }
        let mut strip = Strip { open: starts(at, "~"), close: false };
        at += usize::from(strip.open);
        if starts(at, "!") {
            return self.comment(start, at, strip);
        }
        let mut end = "}}";
        let kind = match text.as_bytes().get(at) {
            Some(b'#') if starts(at, "#>") => {
                let hint = "write `{{> name}}`, and put what differs into arguments";
                return Err(errors::unsupported(source, start..at + 2, "a partial with a block", hint));
            }
            Some(b'#') => Kind::Block,
            Some(b'>') => Kind::Partial,
            Some(b'/') => Kind::Close,
            Some(b'^') => Kind::Inverted,
            Some(b'{') => {
                end = "}}}";
                Kind::Output
            }
            _ => Kind::Output,
        };
        let is_and = starts(at, "&");
        at += usize::from(kind != Kind::Output || end == "}}}" || is_and);
        if starts(at, "*") {
            let hint = "put the text into a separate file and include it: `{{> name}}`";
            return Err(errors::unsupported(source, start..at + 1, "a decorator", hint));
        }
        let mut words = Vec::new();
        loop {
            let rest = &text[at..];
            at = text.len() - rest.trim_start_matches(is_space).len();
            if starts(at, "~") && starts(at + 1, end) {
                strip.close = true;
                at += 1 + end.len();
                break;
            }
            if starts(at, end) {
                at += end.len();
                // `}}}~}}` does not exist, but `{{{x}~}}` does.
                break;
            }
            if end == "}}}" && starts(at, "}~}}") {
                strip.close = true;
                at += 4;
                break;
            }
            if at >= text.len() || starts(at, "{{") || starts(at, "}}") {
                return Err(errors::unclosed_tag(source, start, end));
            }
            let word = self.word(start, at, &words)?;
            at = word.range.end;
            words.push(word);
        }
        self.at = at;
        let kind = match (kind, words.first().map(|word| &word.token)) {
            (Kind::Inverted, None) => Kind::Else,
            (Kind::Output, Some(Token::Id(name, false))) if &**name == "else" && end == "}}" && !is_and => {
                words.remove(0);
                if words.is_empty() { Kind::Else } else { Kind::ElseBlock }
            }
            (kind, _) => kind,
        };
        Ok(Tag { kind, range: start..at, strip, words })
    }

    fn comment(&mut self, start: usize, at: usize, mut strip: Strip) -> Result<Tag> {
        let rest = &self.text[at..];
        let long = rest.starts_with("!--");
        let found = match long {
            true => ["--}}", "--~}}"].iter().filter_map(|end| Some((rest[3..].find(end)? + 3, *end))).min(),
            false => rest.find("}}").map(|found| (found, "}}")),
        };
        let Some((length, end)) = found else {
            let end = if long { "--}}" } else { "}}" };
            return Err(errors::unclosed_tag(self.source, start, end));
        };
        self.at = at + length + end.len();
        strip.close = self.text[..self.at - 2].ends_with('~');
        Ok(Tag { kind: Kind::Comment, range: start..self.at, strip, words: Vec::new() })
    }

    fn word(&self, start: usize, at: usize, words: &[Word]) -> Result<Word> {
        let text = self.text;
        let rest = &text[at..];
        let one = |token: Token| Ok(Word { token, range: at..at + 1 });
        let wrong = |length: usize, message: &str, hint: &str| {
            Err(errors::syntax(self.source, at..at + length, message, hint))
        };
        match rest.as_bytes()[0] {
            b'(' => one(Token::Open),
            b')' => one(Token::Close),
            b'|' => one(Token::Bar),
            b'=' => one(Token::Equals),
            b'@' => one(Token::At),
            b'/' => one(Token::Separator),
            b'.' if rest.starts_with("..") => Ok(Word { token: Token::DotDot, range: at..at + 2 }),
            b'.' => {
                let joins = words.last().is_some_and(|word| {
                    word.range.end == at && matches!(word.token, Token::Id(..) | Token::Number(_))
                });
                one(if joins { Token::Separator } else { Token::Dot })
            }
            quote @ (b'"' | b'\'') => self.quoted(start, at, quote),
            b'[' => {
                let Some(length) = closing_bracket(&rest[1..]) else {
                    return wrong(1, "`[` is not closed", "write a part of a name as `[first name]`");
                };
                let name = rest[1..1 + length].replace("\\]", "]");
                Ok(Word { token: Token::Id(name.into(), true), range: at..at + length + 2 })
            }
            _ => {
                let length = rest.find(|letter| !is_id(letter)).unwrap_or(rest.len());
                if length == 0 {
                    let letter = rest.chars().next().unwrap_or_default();
                    let message = format!("unexpected `{letter}`");
                    return wrong(
                        letter.len_utf8(),
                        &message,
                        "a name has no such character; write it as `[name]`",
                    );
                }
                let joined = words.last().is_some_and(|word| {
                    word.range.end == at && matches!(word.token, Token::Separator | Token::At)
                });
                let name = &rest[..length];
                let fraction = rest[length..]
                    .strip_prefix('.')
                    .map_or(0, |digits| digits.bytes().take_while(u8::is_ascii_digit).count());
                let whole = if fraction > 0 { length + 1 + fraction } else { length };
                match number(&rest[..whole]).filter(|_| !joined && ends_word(&rest[whole..])) {
                    Some(number) => Ok(Word { token: Token::Number(number), range: at..at + whole }),
                    None => Ok(Word { token: Token::Id(name.into(), false), range: at..at + length }),
                }
            }
        }
    }

    fn quoted(&self, start: usize, at: usize, quote: u8) -> Result<Word> {
        let text = self.text;
        let bytes = text.as_bytes();
        let mut end = at + 1;
        let mut has_escapes = false;
        while end < bytes.len() && bytes[end] != quote {
            if bytes[end] == b'\\' && bytes.get(end + 1) == Some(&quote) {
                has_escapes = true;
                end += 1;
            }
            end += 1;
        }
        if end >= bytes.len() {
            let quote = char::from(quote);
            let line = text[at..].lines().next().unwrap_or_default().len();
            let message = "the text is not closed";
            let _ = start;
            return Err(errors::syntax(
                self.source,
                at..at + line,
                message,
                format!("end it with `{quote}`"),
            ));
        }
        let quote = char::from(quote);
        let plain =
            has_escapes.then(|| text[at + 1..end].replace(&format!("\\{quote}"), &quote.to_string()).into());
        Ok(Word { token: Token::Text(plain), range: at..end + 1 })
    }
}

/// White space as JavaScript knows it.
pub(super) fn is_space(letter: char) -> bool {
    letter.is_whitespace() && letter != '\u{85}' || letter == '\u{feff}'
}

/// What a name can consist of.
fn is_id(letter: char) -> bool {
    !is_space(letter)
        && !matches!(letter, '!'..='#' | '%'..=',' | '.' | '/' | ';'..='>' | '@' | '['..='^' | '`' | '{'..='~')
}

fn ends_word(rest: &str) -> bool {
    rest.chars().next().is_none_or(|letter| is_space(letter) || matches!(letter, '=' | '~' | '}' | ')' | '|'))
}

fn number(word: &str) -> Option<Number> {
    let digits = word.strip_prefix('-').unwrap_or(word);
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.starts_with(|first: char| first.is_ascii_digit());
    if !is_number {
        return None;
    }
    serde_json::from_str(word).ok().or_else(|| Number::from_f64(word.parse().ok()?))
}

fn closing_bracket(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b']' => return Some(at),
            b'\n' => return None,
            _ => at += 1,
        }
    }
    None
}
