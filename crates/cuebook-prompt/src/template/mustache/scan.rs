//! Finds the tags of a template, one after the other, with the delimiters that hold at each.

use std::ops::Range;
use std::sync::Arc;

use super::errors;
use crate::error::Result;
use crate::source::Source;

/// What a tag is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Variable,
    Raw,
    Section,
    Inverted,
    Close,
    Partial,
    Parent,
    Block,
    Comment,
    Delimiters,
}

impl Kind {
    /// The sign behind the opening delimiter, and what the tag is called.
    pub(super) fn sign(self) -> &'static str {
        match self {
            Kind::Variable => "",
            Kind::Raw => "&",
            Kind::Section => "#",
            Kind::Inverted => "^",
            Kind::Close => "/",
            Kind::Partial => ">",
            Kind::Parent => "<",
            Kind::Block => "$",
            Kind::Comment => "!",
            Kind::Delimiters => "=",
        }
    }

    fn of(sign: u8) -> Kind {
        match sign {
            b'&' | b'{' => Kind::Raw,
            b'#' => Kind::Section,
            b'^' => Kind::Inverted,
            b'/' => Kind::Close,
            b'>' => Kind::Partial,
            b'<' => Kind::Parent,
            b'$' => Kind::Block,
            b'!' => Kind::Comment,
            b'=' => Kind::Delimiters,
            _ => Kind::Variable,
        }
    }
}

/// A tag.
#[derive(Debug, Clone)]
pub(super) struct Tag<'s> {
    pub(super) kind: Kind,
    /// With its delimiters.
    pub(super) range: Range<usize>,
    /// What stands in it, without white space around it.
    pub(super) content: &'s str,
    /// Where the content begins.
    pub(super) content_at: usize,
    /// The delimiters that it is written with.
    pub(super) delimiters: (&'s str, &'s str),
}

impl Tag<'_> {
    /// The range of its content; of the whole tag if it is missing.
    pub(super) fn content_range(&self) -> Range<usize> {
        match self.content.is_empty() {
            true => self.range.clone(),
            false => self.content_at..self.content_at + self.content.len(),
        }
    }

    /// Another tag with the same delimiters, for a hint.
    pub(super) fn like(&self, kind: Kind, content: &str) -> String {
        format!("{}{}{content}{}", self.delimiters.0, kind.sign(), self.delimiters.1)
    }
}

/// Goes through a text from tag to tag.
pub(super) struct Scanner<'s> {
    source: &'s Arc<Source>,
    at: usize,
    delimiters: (&'s str, &'s str),
}

impl<'s> Scanner<'s> {
    pub(super) fn new(source: &'s Arc<Source>) -> Scanner<'s> {
        Scanner { source, at: 0, delimiters: ("{{", "}}") }
    }

    /// The next tag, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Tag<'s>>> {
        let text = self.source.text();
        let (open, close) = self.delimiters;
        let Some(start) = text[self.at..].find(open).map(|found| self.at + found) else { return Ok(None) };
        let inner = text[start + open.len()..].trim_start();
        let sign = inner.as_bytes().first().copied().unwrap_or_default();
        let kind = Kind::of(sign);
        let at = text.len() - inner.len() + usize::from(kind != Kind::Variable);
        let end = match sign {
            b'{' => format!("}}{close}"),
            b'=' => format!("={close}"),
            _ => close.to_owned(),
        };
        let Some(length) = text[at..].find(&end) else {
            return Err(errors::unclosed_tag(self.source, start, &end));
        };
        let content = &text[at..at + length];
        // A tag that goes on into the next one has lost its end. A comment may hold anything.
        let runs_on = content.contains(open) || sign == b'{' && content.contains(close);
        if kind != Kind::Comment && kind != Kind::Delimiters && open != close && runs_on {
            return Err(errors::unclosed_tag(self.source, start, &end));
        }
        self.at = at + length + end.len();
        let trimmed = content.trim();
        let tag = Tag {
            kind,
            range: start..self.at,
            content: trimmed,
            content_at: at + content.len() - content.trim_start().len(),
            delimiters: self.delimiters,
        };
        if kind == Kind::Delimiters {
            let mut parts = trimmed.split_whitespace();
            self.delimiters = match (parts.next(), parts.next(), parts.next()) {
                (Some(open), Some(close), None) if !trimmed.contains('=') => (open, close),
                _ => return Err(errors::bad_delimiters(self.source, &tag)),
            };
        }
        Ok(Some(tag))
    }
}
