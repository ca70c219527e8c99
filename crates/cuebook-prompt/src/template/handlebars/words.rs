//! Reads the words of a tag: names, values and arguments.

use std::ops::Range;
use std::sync::Arc;

use super::errors;
use super::helper::{self, Helper};
use super::parse::{DEEPEST_VALUE, begins_path, path_of};
use super::scan::{Tag, Token, Word};
use super::tree::{Argument, Expression, Path};
use crate::error::{Error, ErrorKind, Result};
use crate::source::Source;

/// What is written at a place.
pub(super) fn name_of(source: &Source, range: &Range<usize>) -> String {
    source.text().get(range.clone()).unwrap_or_default().to_owned()
}

pub(super) struct Words<'t> {
    source: &'t Arc<Source>,
    tag: &'t Tag,
    at: usize,
    depth: usize,
}

impl<'t> Words<'t> {
    pub(super) fn new(source: &'t Arc<Source>, tag: &'t Tag) -> Words<'t> {
        Words { source, tag, at: 0, depth: 0 }
    }

    fn peek(&self) -> Option<&'t Word> {
        self.tag.words.get(self.at)
    }

    fn peek_is(&self, token: &Token) -> bool {
        self.peek().is_some_and(|word| word.token == *token)
    }

    fn next(&mut self) -> Option<&'t Word> {
        let word = self.tag.words.get(self.at);
        self.at += 1;
        word
    }

    fn refuse<T>(&self, range: Range<usize>, message: impl Into<String>, hint: &str) -> Result<T> {
        Err(errors::syntax(self.source, range, message, hint))
    }

    /// What the tag begins with, and where that is written.
    pub(super) fn head(&mut self) -> Result<(Path, Range<usize>)> {
        let Some(word) = self.peek() else {
            return self.refuse(
                self.tag.range.clone(),
                "the tag has no name",
                "add a name, as in `{{name}}`",
            );
        };
        let range = word.range.clone();
        let path = match &word.token {
            // A text or a number is a name here.
            Token::Text(plain) => {
                self.at += 1;
                let inside = range.start + 1..range.end - 1;
                path_of(plain.as_deref().unwrap_or(&self.source.text()[inside]), range)
            }
            Token::Number(_) => {
                self.at += 1;
                path_of(&self.source.text()[range.clone()], range)
            }
            token if begins_path(token) => self.path()?,
            _ => {
                return self.refuse(
                    range,
                    "the tag must begin with a name",
                    "write a name, as in `{{name}}`",
                );
            }
        };
        let range = path.range.clone();
        Ok((path, range))
    }

    /// The name of a partial: everything up to the first space.
    pub(super) fn partial_name(&mut self) -> Result<String> {
        let Some(first) = self.next() else {
            let hint = "add a name, as in `{{> intro}}`";
            return self.refuse(self.tag.range.clone(), "the tag has no name", hint);
        };
        let text = self.source.text();
        match &first.token {
            Token::Text(plain) => {
                let inside = &text[first.range.start + 1..first.range.end - 1];
                return Ok(plain.as_deref().unwrap_or(inside).to_owned());
            }
            Token::Open => {
                let hint = "write the name, and choose between partials with `{{#if}}`";
                return Err(errors::unsupported(
                    self.source,
                    self.tag.range.clone(),
                    "a partial whose name is computed",
                    hint,
                ));
            }
            Token::At => {
                let hint = "write the name of a file, as in `{{> intro}}`";
                return self.refuse(first.range.clone(), "a partial cannot begin with `@`", hint);
            }
            _ => {}
        }
        let mut range = first.range.clone();
        while let Some(word) = self.peek().filter(|word| word.range.start == range.end) {
            if matches!(word.token, Token::Equals | Token::Open | Token::Close | Token::Bar) {
                break;
            }
            range.end = word.range.end;
            self.at += 1;
        }
        Ok(text[range].to_owned())
    }

    /// Values, and then arguments with names.
    pub(super) fn arguments(&mut self) -> Result<(Vec<Expression>, Vec<Argument>)> {
        let (mut params, mut hash) = (Vec::new(), Vec::<Argument>::new());
        while let Some(word) = self.peek() {
            if matches!(word.token, Token::Close) || self.begins_names() {
                break;
            }
            let is_argument = self.tag.words.get(self.at + 1).is_some_and(|next| next.token == Token::Equals);
            if let (Token::Id(name, _), true) = (&word.token, is_argument) {
                self.at += 2;
                let value = self.value()?;
                hash.push(Argument { name: name.clone(), range: word.range.clone(), value });
            } else if hash.is_empty() {
                params.push(self.value()?);
            } else {
                let hint = "write it before the first `name=value`";
                return self.refuse(word.range.clone(), "a value follows an argument with a name", hint);
            }
        }
        Ok((params, hash))
    }

    fn begins_names(&self) -> bool {
        let next = self.tag.words.get(self.at + 1);
        self.peek().is_some_and(|word| matches!(&word.token, Token::Id(name, false) if &**name == "as"))
            && next.is_some_and(|next| next.token == Token::Bar)
    }

    /// The names behind `as`, between two bars.
    pub(super) fn block_names(&mut self) -> Result<Vec<Box<str>>> {
        let mut names = Vec::new();
        if !self.begins_names() {
            return Ok(names);
        }
        self.at += 2;
        while let Some(word) = self.next() {
            match &word.token {
                Token::Id(name, _) => names.push(name.clone()),
                Token::Bar => return Ok(names),
                _ => break,
            }
        }
        self.refuse(self.tag.range.clone(), "the names after `as` are not closed", "write `as |item index|`")
    }

    /// Refuses what is left.
    pub(super) fn end(&self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(word) => {
                let shown = &self.source.text()[word.range.clone()];
                self.refuse(word.range.clone(), format!("unexpected `{shown}`"), "remove it")
            }
        }
    }

    fn value(&mut self) -> Result<Expression> {
        let Some(word) = self.peek() else {
            return self.refuse(
                self.tag.range.clone(),
                "a value is missing",
                "write a name, a text or a number",
            );
        };
        let range = word.range.clone();
        match &word.token {
            Token::Text(plain) => {
                self.at += 1;
                Ok(Expression::Text(range.start + 1..range.end - 1, plain.clone()))
            }
            Token::Number(number) => {
                self.at += 1;
                Ok(Expression::Number(number.clone(), range))
            }
            Token::Id(name, false) if self.ends_here(range.end) => match &**name {
                "true" | "false" => {
                    self.at += 1;
                    Ok(Expression::Bool(&**name == "true"))
                }
                "null" => {
                    self.at += 1;
                    Ok(Expression::Null)
                }
                "undefined" => {
                    self.at += 1;
                    Ok(Expression::Undefined)
                }
                _ => self.path().map(Expression::Path),
            },
            Token::Open => self.nested(),
            token if begins_path(token) => self.path().map(Expression::Path),
            _ => {
                let shown = &self.source.text()[range.clone()];
                self.refuse(range, format!("unexpected `{shown}`"), "write a name, a text or a number")
            }
        }
    }

    /// Whether no part of a path follows.
    fn ends_here(&self, end: usize) -> bool {
        let next = self.tag.words.get(self.at + 1);
        next.is_none_or(|next| next.token != Token::Separator || next.range.start != end)
    }

    /// `(helper values)`
    fn nested(&mut self) -> Result<Expression> {
        let start = self.next().map_or(0, |word| word.range.start);
        self.depth += 1;
        if self.depth > DEEPEST_VALUE {
            let place = self.source.place(self.tag.range.clone());
            return Err(Error::new(ErrorKind::Limit, errors::too_deep(DEEPEST_VALUE, place)));
        }
        let (head, at) = self.head()?;
        let (params, hash) = self.arguments()?;
        let end = match self.next() {
            Some(word) if word.token == Token::Close => word.range.end,
            _ => return self.refuse(self.tag.range.clone(), "`(` is not closed", "add `)`"),
        };
        self.depth -= 1;
        let Some(helper) = head.simple().and_then(Helper::named) else {
            return Err(errors::unknown_helper(self.source, &name_of(self.source, &at), at));
        };
        if !helper.has_value() {
            return Err(errors::has_no_value(self.source, helper, start..end));
        }
        let call = helper::call(self.source, helper, params, hash, start..end)?;
        Ok(Expression::Call(Box::new(call)))
    }

    fn path(&mut self) -> Result<Path> {
        let start = self.peek().map_or(self.tag.range.start, |word| word.range.start);
        let mut path = Path { data: false, up: 0, scoped: false, keys: Vec::new(), range: start..start };
        if self.peek_is(&Token::At) {
            self.at += 1;
            path.data = true;
        }
        loop {
            let Some(word) = self.next() else {
                let end = self.tag.range.clone();
                return self.refuse(end, "a part of the name is missing", "join names with single dots");
            };
            path.range.end = word.range.end;
            let is_key = match &word.token {
                Token::Dot | Token::DotDot => {
                    path.up += usize::from(word.token == Token::DotDot);
                    false
                }
                Token::Id(name, false) if &**name == "this" && !path.data => false,
                Token::Id(name, _) => {
                    path.keys.push(name.clone());
                    true
                }
                Token::Number(_) => {
                    path.keys.push(self.source.text()[word.range.clone()].into());
                    true
                }
                _ => {
                    let hint = "join names with single dots, as in `user.name`";
                    return self.refuse(word.range.clone(), "a part of the name is missing", hint);
                }
            };
            if !is_key && !path.keys.is_empty() {
                let hint = "`this` and `..` can only begin a name";
                return self.refuse(path.range, "invalid path", hint);
            }
            path.scoped |= !is_key;
            let follows = |word: &&Word| word.token == Token::Separator && word.range.start == path.range.end;
            if self.peek().filter(follows).is_none() {
                break;
            }
            self.at += 1;
        }
        if path.data && path.keys.is_empty() {
            return self.refuse(path.range, "`@` has no name", "write a name, as in `@index`");
        }
        Ok(path)
    }
}
