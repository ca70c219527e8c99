//! Finds the origin of one position in a rendered text, or of every occurrence of a phrase.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Value as Json, json};

use super::{Explanation, label};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::render::{Origin, Span};
use crate::source::Place;

/// A position in a rendered text, as a user writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// A byte, from 0.
    Offset(usize),
    /// A line and a column in characters, both from 1.
    LineColumn(usize, usize),
}

impl Position {
    /// Reads `OFFSET` or `LINE:COLUMN`.
    ///
    /// ```
    /// use cuebook::explain::Position;
    ///
    /// assert_eq!(Position::read("120")?, Position::Offset(120));
    /// assert_eq!(Position::read("3:14")?, Position::LineColumn(3, 14));
    /// assert!(Position::read("3:0").is_err());
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn read(text: &str) -> Result<Position> {
        let form = "write a byte offset from 0, as in 120, or line:column from 1, as in 3:14";
        let wrong = || refuse(format!("invalid position `{text}`"), form);
        let number = |text: &str| text.trim().parse::<usize>().map_err(|_| wrong());
        match text.split_once(':') {
            None => number(text).map(Position::Offset),
            Some((line, column)) => match (number(line)?, number(column)?) {
                (0, _) | (_, 0) => Err(wrong()),
                (line, column) => Ok(Position::LineColumn(line, column)),
            },
        }
    }

    /// The byte that is meant in a text. It is an error if it is missing, or if it is in the middle of a character.
    fn offset(self, text: &str) -> Result<usize> {
        if text.is_empty() {
            return Err(refuse("the prompt renders to an empty text", "pass values for its variables"));
        }
        let length = text.len();
        match self {
            Position::Offset(offset) if offset >= length => {
                let message = format!("the byte {offset} is after the end: the text has {length} bytes");
                Err(refuse(message, format!("use 0 to {}", length - 1)))
            }
            Position::Offset(offset) if !text.is_char_boundary(offset) => {
                let start = (0..offset).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
                let letter = text[start..].chars().next().unwrap_or_default();
                let message = format!(
                    "the byte {offset} is inside a character: {letter:?} spans the bytes {start} to {}",
                    start + letter.len_utf8() - 1
                );
                Err(refuse(message, format!("use {start}, where the character begins")))
            }
            Position::Offset(offset) => Ok(offset),
            Position::LineColumn(line, column) => {
                let lines = text.split_inclusive('\n').count();
                let mut start = 0;
                let Some(found) = text.split_inclusive('\n').enumerate().find_map(|(index, found)| {
                    let here = (index + 1 == line).then_some(found);
                    start += if here.is_none() { found.len() } else { 0 };
                    here
                }) else {
                    let message = format!("line {line} does not exist: the text has {lines} lines");
                    return Err(refuse(message, format!("use 1:1 to {lines}:…")));
                };
                match found.char_indices().nth(column - 1) {
                    Some((at, _)) => Ok(start + at),
                    None => {
                        let letters = found.chars().count();
                        let message = format!(
                            "line {line} has no column {column}: it has {letters} characters, including its newline"
                        );
                        Err(refuse(message, format!("use {line}:1 to {line}:{letters}")))
                    }
                }
            }
        }
    }
}

/// Where a piece of the text came from: everything that is known.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The bytes that were asked about.
    pub range: Range<usize>,
    /// Their line, from 1.
    pub line: usize,
    /// Their column in characters, from 1.
    pub column: usize,
    /// The text.
    pub text: String,
    /// Its pieces: one, unless it has several origins.
    pub pieces: Vec<Piece>,
}

/// A part of what was asked about that has one origin.
#[derive(Debug, Clone)]
pub struct Piece {
    /// The span that it is in, whole.
    pub span: Span,
    /// The bytes that were asked about in it.
    pub range: Range<usize>,
    /// Its text.
    pub text: String,
    /// The place in an author's file that it leads back to: its own bytes if an author wrote it, the tag if it is a value.
    pub place: Option<Place>,
    /// The pack whose file that is.
    pub pack: Option<String>,
    /// What is known of the signature on that file.
    pub signature: Option<String>,
}

impl Piece {
    /// Its own origin: that of its span, and of an author's text only the part that was asked about.
    pub fn origin(&self) -> Origin {
        match (&self.span.origin, &self.place) {
            (Origin::Literal { changed, .. }, Some(place)) => {
                let source = place.source().clone();
                Origin::Literal { source, range: place.range(), changed: *changed }
            }
            (origin, _) => origin.clone(),
        }
    }

    /// Its origin in a few words, as in the margin.
    pub fn label(&self) -> String {
        label(&self.origin())
    }

    /// The lines of the file that the place stands in, whole.
    pub fn excerpt(&self) -> Option<&str> {
        let place = self.place.as_ref()?;
        let (text, range) = (place.source().text(), place.range());
        let start = text[..range.start].rfind('\n').map_or(0, |newline| newline + 1);
        // A newline at the end belongs to its line.
        let last = range.end.saturating_sub(1).max(range.start);
        let last = (0..=last).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let end = text[last..].find('\n').map_or(text.len(), |newline| last + newline);
        Some(&text[start..end.max(start)])
    }

    fn to_json(&self) -> Json {
        let mut object = json!({
            "start": self.range.start,
            "end": self.range.end,
            "text": self.text,
            "origin": self.origin().to_json(),
            "label": self.label(),
            "section": self.span.section.as_deref(),
            "pack_id": self.pack,
            "signature": self.signature,
            "source": null,
        });
        if let (Some(place), Some(excerpt)) = (&self.place, self.excerpt()) {
            object["source"] = json!({
                "file": place.file(), "line": place.line(), "column": place.column(), "excerpt": excerpt,
            });
        }
        object
    }
}

impl Answer {
    /// The answer as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "start": self.range.start,
            "end": self.range.end,
            "line": self.line,
            "column": self.column,
            "text": self.text,
            "pieces": self.pieces.iter().map(Piece::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Explanation {
    /// Where the character at a place of the text came from.
    pub fn at(&self, position: Position) -> Result<Answer> {
        let text = self.rendered().text();
        let start = position.offset(text)?;
        let end = start + text[start..].chars().next().map_or(0, char::len_utf8);
        Ok(self.answers(std::iter::once(start..end)).remove(0))
    }

    /// Where every occurrence of a text came from, in order. It is an error if it is missing.
    pub fn find(&self, wanted: &str) -> Result<Vec<Answer>> {
        let text = self.rendered().text();
        if wanted.is_empty() {
            return Err(refuse("the text to find is empty", Hint::option("pass a text", "--find TEXT")));
        }
        let found: Vec<_> = text.match_indices(wanted).map(|(at, found)| at..at + found.len()).collect();
        if found.is_empty() {
            let diagnostic =
                Diagnostic::new(Code::BadInput, format!("the rendered text does not contain {wanted:?}"))
                    .hint(self.why_not_found(wanted));
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic).with("find", wanted));
        }
        Ok(self.answers(found))
    }

    fn why_not_found(&self, wanted: &str) -> Hint {
        let text = self.rendered().text();
        if let Some(there) = text.to_lowercase().find(&wanted.to_lowercase()) {
            // Lower case may have other lengths, so only what is really there is quoted.
            let there =
                text.get(there..there + wanted.len()).filter(|there| there.eq_ignore_ascii_case(wanted));
            return match there {
                Some(there) => format!("did you mean {there:?}? The search is case-sensitive").into(),
                None => "the search is case-sensitive: the text differs only in case".into(),
            };
        }
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        match words(text).contains(&words(wanted)) && !words(wanted).is_empty() {
            true => "the text differs only in whitespace: search for a shorter piece".into(),
            false => Hint::command_line("print the text with `cuebook render`")
                .for_programs("print the text")
                .or("values may print differently from what you passed"),
        }
    }

    fn answers(&self, ranges: impl IntoIterator<Item = Range<usize>>) -> Vec<Answer> {
        let text = self.rendered().text();
        let spans: Vec<Span> = self.rendered().spans().filter(|span| !span.range.is_empty()).collect();
        let mut signatures: HashMap<String, Option<String>> = HashMap::new();
        let mut signature_of = |file: &str| {
            let known = signatures.entry(file.to_owned());
            known.or_insert_with(|| self.prepared().signature_of(file)).clone()
        };
        let packs = self.prepared().packs();
        let (mut line, mut line_start, mut seen) = (1, 0, 0);
        let mut answers = Vec::new();
        for range in ranges {
            // Ranges come in order, so lines are counted once.
            for (at, _) in text[seen..range.start].match_indices('\n') {
                (line, line_start) = (line + 1, seen + at + 1);
            }
            seen = range.start;
            let first = spans.partition_point(|span| span.range.end <= range.start);
            let pieces = spans[first..].iter().take_while(|span| span.range.start < range.end).map(|span| {
                let within = span.range.start.max(range.start)..span.range.end.min(range.end);
                let place = place_of(span, &within);
                let file = place.as_ref().map(Place::file);
                Piece {
                    text: text[within.clone()].to_owned(),
                    pack: file.and_then(|file| pack_of(&packs, file)),
                    signature: file.and_then(&mut signature_of),
                    span: span.clone(),
                    range: within,
                    place,
                }
            });
            answers.push(Answer {
                line,
                column: text[line_start..range.start].chars().count() + 1,
                text: text[range.clone()].to_owned(),
                pieces: pieces.collect(),
                range,
            });
        }
        answers
    }
}

/// The place that a part of a span leads back to. A literal is byte for byte what stands in the file, if nothing was left out.
fn place_of(span: &Span, within: &Range<usize>) -> Option<Place> {
    match &span.origin {
        Origin::Literal { source, range, changed: false } if range.len() == span.range.len() => {
            let start = range.start + (within.start - span.range.start);
            Some(source.place(start..start + within.len()))
        }
        other => other.place(),
    }
}

/// The pack that a file belongs to, by its name.
fn pack_of(packs: &[(String, String)], file: &str) -> Option<String> {
    let (_, pack) = packs
        .iter()
        .find(|(folder, _)| file.strip_prefix(folder.as_str()).is_some_and(|rest| rest.starts_with('/')))?;
    Some(pack.clone())
}

fn refuse(message: impl Into<String>, hint: impl Into<Hint>) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint))
}
