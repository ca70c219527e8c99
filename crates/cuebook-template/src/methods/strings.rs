//! Methods of strings. A part of a text keeps its origins.

use std::collections::HashSet;

use crate::error::{Error, ErrorKind, Result};
use crate::filters::{bounds, padded, replaced};
use crate::format::{Names, braces};
use crate::origin::Origin;
use crate::python::{self, decimal, is_cased, is_printable, is_space, length, line_ranges, offset_of};
use crate::render::{Args, Render};
use crate::text::{Builder, Text};
use crate::value::{Val, Value, type_error, type_name};

/// The methods with the names of their parameters, in order.
const METHODS: [(&str, &[&str]); 46] = [
    ("capitalize", &[]),
    ("casefold", &[]),
    ("center", &["width", "fillchar"]),
    ("count", &["sub", "start", "end"]),
    ("encode", &["encoding", "errors"]),
    ("endswith", &["suffix", "start", "end"]),
    ("expandtabs", &["tabsize"]),
    ("find", &["sub", "start", "end"]),
    ("format", &[]),
    ("format_map", &["mapping"]),
    ("index", &["sub", "start", "end"]),
    ("isalnum", &[]),
    ("isalpha", &[]),
    ("isascii", &[]),
    ("isdecimal", &[]),
    ("isdigit", &[]),
    ("isidentifier", &[]),
    ("islower", &[]),
    ("isnumeric", &[]),
    ("isprintable", &[]),
    ("isspace", &[]),
    ("istitle", &[]),
    ("isupper", &[]),
    ("join", &["iterable"]),
    ("ljust", &["width", "fillchar"]),
    ("lower", &[]),
    ("lstrip", &["chars"]),
    ("partition", &["sep"]),
    ("removeprefix", &["prefix"]),
    ("removesuffix", &["suffix"]),
    ("replace", &["old", "new", "count"]),
    ("rfind", &["sub", "start", "end"]),
    ("rindex", &["sub", "start", "end"]),
    ("rjust", &["width", "fillchar"]),
    ("rpartition", &["sep"]),
    ("rsplit", &["sep", "maxsplit"]),
    ("rstrip", &["chars"]),
    ("split", &["sep", "maxsplit"]),
    ("splitlines", &["keepends"]),
    ("startswith", &["prefix", "start", "end"]),
    ("strip", &["chars"]),
    ("swapcase", &[]),
    ("title", &[]),
    ("translate", &["table"]),
    ("upper", &[]),
    ("zfill", &["width"]),
];

pub(super) fn find(name: &str) -> Option<&'static str> {
    let at = METHODS.binary_search_by(|(known, _)| (*known).cmp(name)).ok()?;
    Some(METHODS[at].0)
}

pub(super) fn names() -> Vec<&'static str> {
    METHODS.iter().map(|(name, _)| *name).collect()
}

/// The parameters that Python lets be given by name.
fn may_be_named(method: &str) -> bool {
    matches!(method, "split" | "rsplit" | "splitlines" | "expandtabs" | "encode")
}

struct Method<'a, 'r> {
    render: &'a Render<'r>,
    value: &'a Val<'r>,
    text: &'a Text<'r>,
    name: &'static str,
    given: Vec<Option<Val<'r>>>,
}

pub(super) fn call<'r>(
    render: &Render<'r>,
    value: &Val<'r>,
    text: &Text<'r>,
    name: &'static str,
    args: Args<'r>,
) -> Result<Val<'r>> {
    if name == "format" {
        return braces(render, value, &args.positional, &Names::Arguments(&args));
    }
    let parameters =
        METHODS.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, parameters)| parameters);
    let mut given: Vec<Option<Val<'r>>> = vec![None; parameters.len()];
    if args.positional.len() > parameters.len() {
        return Err(type_error(format!("`{name}` takes at most {} arguments", parameters.len())));
    }
    for (place, value) in given.iter_mut().zip(args.positional) {
        *place = Some(value);
    }
    for (argument, value) in args.named {
        let at = parameters
            .iter()
            .position(|parameter| *parameter == argument.as_ref())
            .filter(|_| may_be_named(name));
        match at {
            Some(at) if given[at].is_none() => given[at] = Some(value),
            _ => return Err(type_error(format!("`{name}` has no argument `{argument}`"))),
        }
    }
    Method { render, value, text, name, given }.run()
}

impl<'r> Method<'_, 'r> {
    fn str(&self) -> &str {
        self.text.as_str()
    }

    fn arg(&self, at: usize) -> Option<&Val<'r>> {
        self.given.get(at).and_then(Option::as_ref)
    }

    fn some(&self, at: usize) -> Option<&Val<'r>> {
        self.arg(at).filter(|value| !value.value.is_none())
    }

    fn need(&self, at: usize) -> Result<&Val<'r>> {
        self.arg(at).ok_or_else(|| type_error(format!("`{}` needs more arguments", self.name)))
    }

    /// An argument that must be a string.
    fn string(&self, at: usize) -> Result<&str> {
        let value = self.need(at)?;
        match &value.value {
            Value::Text(text) => Ok(text.as_str()),
            Value::Undefined(missing) => Err(missing.error()),
            other => Err(type_error(format!("`{}` needs a string, not {}", self.name, type_name(other)))),
        }
    }

    fn integer(&self, at: usize, default: i64) -> Result<i64> {
        self.arg(at)
            .map_or(Ok(default), |value| value.value.need_integer(&format!("an argument of `{}`", self.name)))
    }

    fn flag(&self, holds: bool) -> Result<Val<'r>> {
        Ok(Val::new(Value::Bool(holds), self.origin()))
    }

    fn number(&self, number: i64) -> Result<Val<'r>> {
        Ok(Val::new(Value::Int(number), self.origin()))
    }

    fn origin(&self) -> Origin {
        self.render.origin_of(self.value)
    }

    /// Where the text and the arguments came from.
    fn all_origins(&self) -> Origin {
        let given = self.given.iter().flatten().map(|value| self.render.origin_of(value));
        self.render.origins.mix(self.origin(), self.render.origins.mix_all(given))
    }

    fn made(&self, text: Text<'r>) -> Result<Val<'r>> {
        Ok(Val::text(text.safe(self.text.is_safe()), self.all_origins()))
    }

    fn built(&self, builder: Builder) -> Result<Val<'r>> {
        Ok(builder.finish(self.all_origins(), self.text.is_safe()))
    }

    fn part(&self, start: usize, end: usize) -> Val<'r> {
        Val::text(self.text.slice(start, end), self.value.origin)
    }

    fn run(&self) -> Result<Val<'r>> {
        let text = self.str();
        let all = |has: fn(char) -> bool| self.flag(!text.is_empty() && text.chars().all(has));
        match self.name {
            "capitalize" => self.made(self.text.map_whole(self.origin(), python::capitalize)),
            "casefold" => {
                let fold = |text: &str| text.to_lowercase().replace('ß', "ss").replace('ς', "σ");
                self.made(self.text.map_from(self.origin(), fold))
            }
            "lower" => self.made(self.text.map_from(self.origin(), str::to_lowercase)),
            "upper" => self.made(self.text.map_from(self.origin(), str::to_uppercase)),
            "swapcase" => self.made(self.text.map_from(self.origin(), python::swap_case)),
            "title" => self.made(self.text.map_whole(self.origin(), python::title)),
            "isalnum" => all(char::is_alphanumeric),
            "isalpha" => all(char::is_alphabetic),
            "isascii" => self.flag(text.is_ascii()),
            "isdecimal" => all(|character| decimal(character).is_some()),
            "isdigit" => all(is_digit),
            "isnumeric" => all(|character| {
                character.is_numeric() || "〇一二三四五六七八九十百千万億兆零壱弐参拾".contains(character)
            }),
            "isidentifier" => {
                let mut characters = text.chars();
                let first =
                    characters.next().is_some_and(|first| first == '_' || unicode_ident::is_xid_start(first));
                self.flag(first && characters.all(unicode_ident::is_xid_continue))
            }
            "islower" => self.flag(text.chars().any(is_cased) && !text.chars().any(char::is_uppercase)),
            "isupper" => self.flag(text.chars().any(is_cased) && !text.chars().any(char::is_lowercase)),
            "isprintable" => self.flag(text.chars().all(is_printable)),
            "isspace" => all(is_space),
            "istitle" => self.flag(is_title(text)),
            "center" | "ljust" | "rjust" | "zfill" => self.justified(),
            "expandtabs" => self.expand_tabs(),
            "encode" => {
                Err(Error::new(ErrorKind::Runtime, "`encode` is not available: a template has no bytes"))
            }
            "count" | "find" | "rfind" | "index" | "rindex" => self.search(),
            "startswith" | "endswith" => self.affix(),
            "lstrip" | "rstrip" | "strip" => self.strip(),
            "removeprefix" => {
                let cut = if text.starts_with(self.string(0)?) { self.string(0)?.len() } else { 0 };
                Ok(self.part(cut, text.len()))
            }
            "removesuffix" => {
                let cut = if text.ends_with(self.string(0)?) { self.string(0)?.len() } else { 0 };
                Ok(self.part(0, text.len() - cut))
            }
            "partition" | "rpartition" => self.partition(),
            "replace" => {
                let (old, new) = (self.string(0)?, self.need(1)?);
                self.string(1)?;
                let count = self.integer(2, -1)?;
                let mut new_text = self.render.text_of(new)?;
                if self.text.is_safe() && !new_text.is_safe() {
                    new_text = new_text.map(python::escape_html);
                }
                let new = (&new_text, self.render.origin_of(new));
                self.built(replaced(self.render, self.text, self.value.origin, old, new, count)?)
            }
            "join" => self.join(),
            "split" | "rsplit" => self.split(),
            "splitlines" => {
                let keep = self.arg(0).is_some_and(|keep| keep.value.is_true());
                let lines = line_ranges(text, keep);
                self.render.spend_items(lines.len())?;
                Ok(Val::list(lines.into_iter().map(|(start, end)| self.part(start, end)).collect()))
            }
            "format_map" => braces(self.render, self.value, &[], &Names::Mapping(self.need(0)?)),
            _ => Err(Error::new(ErrorKind::Runtime, format!("`{}` is not available", self.name))),
        }
    }

    fn justified(&self) -> Result<Val<'r>> {
        self.need(0)?;
        let width = usize::try_from(self.integer(0, 0)?).unwrap_or(0);
        self.render.spend_text(width)?;
        let missing = width.saturating_sub(length(self.str()));
        let fill = match self.arg(1) {
            Some(_) => self.string(1)?,
            None if self.name == "zfill" => "0",
            None => " ",
        };
        if length(fill) != 1 {
            return Err(type_error("the fill of a text is one character"));
        }
        let room = match self.name {
            "ljust" => (0, missing),
            "center" => {
                let left = missing / 2 + (missing & width & 1);
                (left, missing - left)
            }
            _ => (missing, 0),
        };
        let sign = usize::from(self.name == "zfill" && self.str().starts_with(['+', '-']));
        let fill_origin = self.all_origins();
        if sign == 0 {
            return Ok(padded(self.text, self.value.origin, room, (fill, fill_origin)));
        }
        let mut builder = Builder::new();
        builder.push_text(&self.text.slice(0, 1), self.value.origin);
        builder.push(&fill.repeat(room.0), fill_origin);
        builder.push_text(&self.text.slice(1, self.str().len()), self.value.origin);
        self.built(builder)
    }

    fn expand_tabs(&self) -> Result<Val<'r>> {
        let size = usize::try_from(self.integer(0, 8)?).unwrap_or(0);
        let mut out = String::new();
        let (mut column, mut paid) = (0, 0);
        for character in self.str().chars() {
            match character {
                '\t' if size == 0 => {}
                '\t' => {
                    let room = size - column % size;
                    self.render.spend_growth(&mut paid, out.len().saturating_add(room))?;
                    out.extend(std::iter::repeat_n(' ', room));
                    column += room;
                }
                _ => {
                    out.push(character);
                    column = if matches!(character, '\n' | '\r') { 0 } else { column + 1 };
                }
            }
        }
        self.made(Text::from(out))
    }

    /// The part of the text between two places, and how many characters are before it; nothing if the start is behind the end.
    fn between(&self) -> Result<Option<(usize, &str)>> {
        let text = self.str();
        if self.some(1).is_none() && self.some(2).is_none() {
            return Ok(Some((0, text)));
        }
        let count = length(text) as i64;
        let place = |at: usize, default: i64| -> Result<i64> {
            let number = match self.some(at) {
                Some(_) => self.integer(at, default)?,
                None => default,
            };
            Ok(if number < 0 { (number + count).max(0) } else { number })
        };
        let (start, stop) = (place(1, 0)?, place(2, count)?.min(count));
        if start > stop {
            return Ok(None);
        }
        let (start, stop) = (start as usize, stop as usize);
        Ok(Some((start, &text[offset_of(text, start)..offset_of(text, stop)])))
    }

    fn search(&self) -> Result<Val<'r>> {
        let wanted = self.string(0)?;
        let part = self.between()?;
        if self.name == "count" {
            let count = part.map_or(0, |(_, part)| {
                if wanted.is_empty() { length(part) + 1 } else { part.matches(wanted).count() }
            });
            return self.number(count as i64);
        }
        let found = part.and_then(|(before, part)| {
            let at = if self.name.starts_with('r') { part.rfind(wanted) } else { part.find(wanted) };
            at.map(|at| before + length(&part[..at]))
        });
        match found {
            Some(at) => self.number(at as i64),
            None if self.name.ends_with("find") => self.number(-1),
            None => Err(Error::new(ErrorKind::Runtime, format!("`{}` does not find the text", self.name))),
        }
    }

    fn affix(&self) -> Result<Val<'r>> {
        let part = self.between()?;
        let has = |affix: &Value<'r>| match affix {
            Value::Text(affix) => Ok(part.is_some_and(|(_, part)| {
                if self.name == "startswith" {
                    part.starts_with(affix.as_str())
                } else {
                    part.ends_with(affix.as_str())
                }
            })),
            Value::Undefined(missing) => Err(missing.error()),
            other => Err(type_error(format!(
                "`{}` needs a string or a tuple of strings, not {}",
                self.name,
                type_name(other)
            ))),
        };
        let affix = self.need(0)?;
        let Value::Tuple(several) = &affix.value else { return self.flag(has(&affix.value)?) };
        for affix in several.iter() {
            self.render.spend(1)?;
            self.render.spend_read(affix)?;
            if has(&affix.value)? {
                return self.flag(true);
            }
        }
        self.flag(false)
    }

    fn strip(&self) -> Result<Val<'r>> {
        let text = self.str();
        let (start, end) = match self.some(0) {
            Some(_) => {
                let characters: HashSet<char> = self.string(0)?.chars().collect();
                bounds(text, |character| characters.contains(&character))
            }
            None => bounds(text, is_space),
        };
        let all = start == end;
        Ok(match self.name {
            "lstrip" => self.part(if all { text.len() } else { start }, text.len()),
            "rstrip" => self.part(0, if all { 0 } else { end }),
            _ => self.part(start, end),
        })
    }

    fn partition(&self) -> Result<Val<'r>> {
        let (text, separator) = (self.str(), self.string(0)?);
        if separator.is_empty() {
            return Err(Error::new(
                ErrorKind::Runtime,
                format!("`{}` needs a separator that is not empty", self.name),
            ));
        }
        let (found, last) = match self.name {
            "partition" => (text.find(separator), text.len()),
            _ => (text.rfind(separator), 0),
        };
        let (from, to) = found.map_or((last, last), |at| (at, at + separator.len()));
        Ok(Val::tuple(vec![self.part(0, from), self.part(from, to), self.part(to, text.len())]))
    }

    fn join(&self) -> Result<Val<'r>> {
        let items = self.render.item_list(self.need(0)?)?;
        let mut builder = Builder::new();
        let (mut origin, mut paid) = (self.origin(), 0);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                builder.push_text(self.text, self.value.origin);
            }
            let Value::Text(part) = &item.value else {
                let kind = type_name(&item.value);
                return Err(type_error(format!("`join` needs strings, and item {index} is {kind}")));
            };
            let item_origin = self.render.origin_of(item);
            origin = self.render.origins.mix(origin, item_origin);
            let escape = self.text.is_safe() && !part.is_safe();
            builder
                .push_text(&if escape { part.map(python::escape_html) } else { part.clone() }, item_origin);
            self.render.spend_growth(&mut paid, builder.len())?;
        }
        Ok(builder.finish(origin, self.text.is_safe()))
    }

    fn split(&self) -> Result<Val<'r>> {
        let text = self.str();
        let from_right = self.name == "rsplit";
        let most = usize::try_from(self.integer(1, -1)?).unwrap_or(usize::MAX);
        let mut parts: Vec<(usize, usize)> = match self.some(0) {
            Some(_) => {
                let separator = self.string(0)?;
                if separator.is_empty() {
                    return Err(Error::new(
                        ErrorKind::Runtime,
                        format!("`{}` needs a separator that is not empty", self.name),
                    ));
                }
                by_separator(text, separator, most, from_right)
            }
            None => by_space(text, most, from_right),
        };
        if from_right {
            parts.reverse();
        }
        self.render.spend_items(parts.len())?;
        Ok(Val::list(parts.into_iter().map(|(start, end)| self.part(start, end)).collect()))
    }
}

fn by_separator(text: &str, separator: &str, most: usize, from_right: bool) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let (mut start, mut end) = (0, text.len());
    while parts.len() < most {
        let rest = &text[start..end];
        let found = if from_right { rest.rfind(separator) } else { rest.find(separator) };
        let Some(at) = found.map(|at| start + at) else { break };
        if from_right {
            parts.push((at + separator.len(), end));
            end = at;
        } else {
            parts.push((start, at));
            start = at + separator.len();
        }
    }
    parts.push((start, end));
    parts
}

fn by_space(text: &str, most: usize, from_right: bool) -> Vec<(usize, usize)> {
    let mut parts = Vec::new();
    let trimmed = bounds(text, is_space);
    // Spaces at the ends belong to no part, but to the last one of a text that is cut only so many times.
    let (mut start, mut end) = trimmed;
    while start < end {
        let rest = &text[start..end];
        if parts.len() == most {
            parts.push(if from_right { (0, end) } else { (start, text.len()) });
            break;
        }
        if from_right {
            let word = rest.char_indices().rev().find(|(_, character)| is_space(*character));
            let from = word.map_or(0, |(at, character)| at + character.len_utf8());
            parts.push((start + from, end));
            end = start + rest[..from].trim_end_matches(is_space).len();
        } else {
            let to = rest.find(is_space).unwrap_or(rest.len());
            parts.push((start, start + to));
            start = end - rest[to..].trim_start_matches(is_space).len();
        }
    }
    parts
}

fn is_digit(character: char) -> bool {
    decimal(character).is_some()
        || matches!(u32::from(character), 0xb2 | 0xb3 | 0xb9 | 0x2070 | 0x2074..=0x2079 | 0x2080..=0x2089
            | 0x2460..=0x2468 | 0x2474..=0x247c | 0x2488..=0x2490)
}

fn is_title(text: &str) -> bool {
    let mut inside = false;
    let mut any = false;
    for character in text.chars() {
        if (character.is_uppercase() && inside) || (character.is_lowercase() && !inside) {
            return false;
        }
        inside = is_cased(character);
        any |= inside;
    }
    any
}
