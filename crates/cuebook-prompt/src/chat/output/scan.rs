//! Where JSON begins and ends, and what it holds.
//!
//! The notation is that of Python's `json` module: strict JSON, and `NaN`, `Infinity` and `-Infinity` beside its numbers. Of
//! two values of one key the later counts. Half of a surrogate pair becomes U+FFFD, because Rust's texts cannot hold it.
//!
//! [`Scan::end`] says how far a value goes and builds nothing; it keeps its own stack, so depth costs no recursion. What it
//! has accepted, [`read`] builds.

use indexmap::IndexMap;

use super::value::{Int, Value};

/// How deeply the values of a reply may nest.
pub(super) const DEEPEST: usize = 128;

/// A reply holds something that nests too deeply to be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooDeep;

/// A text in which JSON is looked for.
pub(super) struct Scan<'t> {
    bytes: &'t [u8],
    /// Where the containers begin that are not closed yet. After a failure these are the ones that could not be.
    pub open: Vec<usize>,
}

impl<'t> Scan<'t> {
    pub fn new(text: &'t str) -> Scan<'t> {
        Scan { bytes: text.as_bytes(), open: Vec::new() }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    fn skip_space(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
        }
        at
    }

    /// Whether the whole text is one value; else where the first thing stands that does not belong to one.
    pub fn whole(&mut self) -> Result<(), usize> {
        let end = self.end(self.skip_space(0))?;
        let end = self.skip_space(end);
        if end == self.bytes.len() { Ok(()) } else { Err(end) }
    }

    /// Where the value ends that begins here; else where the first thing stands that does not belong to one.
    pub fn end(&mut self, start: usize) -> Result<usize, usize> {
        self.open.clear();
        let mut at = start;
        loop {
            // Here a value must begin.
            match self.byte(at) {
                Some(opening @ (b'{' | b'[')) => {
                    self.open.push(at);
                    at = self.skip_space(at + 1);
                    // `{` and `[` stand two before what closes them.
                    if self.byte(at) != Some(opening + 2) {
                        at = if opening == b'{' { self.key(at)? } else { at };
                        continue;
                    }
                }
                Some(b'"') => at = self.string(at)?,
                _ => at = self.word(at).ok_or(at)?,
            }
            // A value has ended, or an empty container is about to be closed.
            loop {
                let Some(container) = self.open.last().and_then(|open| self.byte(*open)) else {
                    return Ok(at);
                };
                at = self.skip_space(at);
                match self.byte(at) {
                    Some(closing) if closing == container + 2 => {
                        self.open.pop();
                        at += 1;
                    }
                    Some(b',') => {
                        at = self.skip_space(at + 1);
                        at = if container == b'{' { self.key(at)? } else { at };
                        break;
                    }
                    _ => return Err(at),
                }
            }
        }
    }

    /// A key and its colon; where its value begins.
    fn key(&self, at: usize) -> Result<usize, usize> {
        if self.byte(at) != Some(b'"') {
            return Err(at);
        }
        let colon = self.skip_space(self.string(at)?);
        if self.byte(colon) == Some(b':') { Ok(self.skip_space(colon + 1)) } else { Err(colon) }
    }

    /// Where a string ends: behind its closing quote.
    fn string(&self, start: usize) -> Result<usize, usize> {
        let mut at = start + 1;
        loop {
            match self.byte(at) {
                Some(b'"') => return Ok(at + 1),
                Some(b'\\') => match self.byte(at + 1) {
                    Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                    Some(b'u') => {
                        let digits = self.bytes.get(at + 2..at + 6);
                        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
                            return Err(at);
                        }
                        at += 6;
                    }
                    _ => return Err(at),
                },
                Some(0..=0x1f) | None => return Err(at),
                Some(_) => at += 1,
            }
        }
    }

    /// Where a number or a word ends; `None` if it is missing.
    fn word(&self, at: usize) -> Option<usize> {
        let rest = self.bytes.get(at..)?;
        for word in ["null", "true", "false", "NaN", "Infinity", "-Infinity"] {
            if rest.starts_with(word.as_bytes()) {
                return Some(at + word.len());
            }
        }
        let digits = |from: usize| {
            let rest = self.bytes.get(from..).unwrap_or_default();
            from + rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        let first = if rest.first() == Some(&b'-') { at + 1 } else { at };
        let mut end = match self.byte(first)? {
            b'0' => first + 1,
            b'1'..=b'9' => digits(first),
            _ => return None,
        };
        if self.byte(end) == Some(b'.') && digits(end + 1) > end + 1 {
            end = digits(end + 1);
        }
        if matches!(self.byte(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.byte(end + 1), Some(b'+' | b'-')));
            let from = end + 1 + sign;
            if digits(from) > from {
                end = digits(from);
            }
        }
        Some(end)
    }
}

/// Builds the value that a text begins with. The text must be one that [`Scan`] accepts; of any other text the result means
/// nothing.
pub(super) fn read(text: &str) -> Result<Value, TooDeep> {
    Builder { scan: Scan::new(text), text, at: 0 }.value(0)
}

struct Builder<'t> {
    scan: Scan<'t>,
    text: &'t str,
    at: usize,
}

impl Builder<'_> {
    fn peek(&mut self) -> Option<u8> {
        self.at = self.scan.skip_space(self.at);
        self.scan.byte(self.at)
    }

    fn value(&mut self, depth: usize) -> Result<Value, TooDeep> {
        if depth > DEEPEST {
            return Err(TooDeep);
        }
        match self.peek() {
            Some(b'[') => {
                let mut items = Vec::new();
                while self.more(b']') {
                    items.push(self.value(depth + 1)?);
                }
                Ok(Value::List(items))
            }
            Some(b'{') => {
                let mut map = IndexMap::new();
                while self.more(b'}') {
                    self.peek();
                    let key = self.string();
                    self.peek();
                    self.at += 1;
                    map.insert(key, self.value(depth + 1)?);
                }
                Ok(Value::Map(map))
            }
            Some(b'"') => Ok(Value::Text(self.string())),
            _ => Ok(self.word()),
        }
    }

    /// Goes over what stands before the next item: the opening bracket or a comma. At the end, over what closes.
    fn more(&mut self, closing: u8) -> bool {
        let first = matches!(self.peek(), Some(b'[' | b'{')) || self.scan.byte(self.at) == Some(b',');
        self.at += 1;
        if first && self.peek() == Some(closing) {
            self.at += 1;
            return false;
        }
        first && self.at < self.text.len()
    }

    fn word(&mut self) -> Value {
        let start = self.at;
        self.at = self.scan.word(start).unwrap_or(self.text.len());
        match self.text.get(start..self.at).unwrap_or_default() {
            "null" | "" => Value::Null,
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "NaN" => Value::Float(f64::NAN),
            "Infinity" => Value::Float(f64::INFINITY),
            "-Infinity" => Value::Float(f64::NEG_INFINITY),
            number => match Int::parse(number) {
                Some(number) => Value::Int(number),
                None => Value::Float(number.parse().unwrap_or(f64::NAN)),
            },
        }
    }

    fn string(&mut self) -> String {
        let start = self.at;
        self.at = self.scan.string(start).unwrap_or(self.text.len());
        let inner = self.text.get(start + 1..self.at.saturating_sub(1)).unwrap_or_default();
        if inner.contains('\\') { unescape(inner) } else { inner.to_owned() }
    }
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escaped = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        rest = rest.get(at + 2..).unwrap_or_default();
        match escaped {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let unit = |text: &str| text.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
                let first = unit(rest).unwrap_or(0xfffd);
                rest = rest.get(4..).unwrap_or_default();
                let second = rest.strip_prefix("\\u").and_then(unit);
                let pair = match (first, second) {
                    (0xd800..=0xdbff, Some(second @ 0xdc00..=0xdfff)) => {
                        rest = rest.get(6..).unwrap_or_default();
                        0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
                    }
                    _ => first,
                };
                out.push(char::from_u32(pair).unwrap_or('\u{fffd}'));
            }
            // A quote, a slash or a backslash stands for itself.
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    out
}
