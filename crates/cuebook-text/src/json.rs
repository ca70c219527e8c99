//! JSON files with places.
//!
//! `serde_json` says what a file holds but not where, so a [`Document`] keeps the text beside the values and walks it
//! again when something must be pointed at. That happens on the way to an error only, so the walk is simple rather than
//! fast. Nothing here recurses: a text that `serde_json` has accepted is at most 128 levels deep, and the walk keeps
//! its own stack all the same.
//!
//! This module knows JSON and no file's fields.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, is_hidden};
use crate::node::{Data, Key, Node};
pub use crate::node::{Located, Step};
use crate::source::{Place, Source};

/// Findings of one kind that one file can have before the rest is left out: each of them walks the whole text.
pub const MAX_FINDINGS: usize = 100;

/// Writes a text as a JSON string, piece by piece, as far as the writer takes it.
pub fn write_string<E>(text: &str, mut push: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
    push("\"")?;
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let code;
        let escaped = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0..0x20 => {
                code = format!("\\u{byte:04x}");
                &code
            }
            _ => continue,
        };
        // What is escaped is ASCII, so both sides of it are whole characters.
        push(&text[from..at])?;
        push(escaped)?;
        from = at + 1;
    }
    push(&text[from..])?;
    push("\"")
}

/// A JSON file that has been understood.
#[derive(Debug, Clone)]
pub struct Document {
    source: Arc<Source>,
    value: Value,
    code: Code,
    kind: ErrorKind,
}

impl Document {
    /// Reads a JSON text. What is wrong with it gets the given code and kind, because each file has its own.
    pub fn parse(source: &Arc<Source>, code: Code, kind: ErrorKind) -> Result<Document> {
        let failed = |error: serde_json::Error| syntax_error(source, code, kind, &error);
        let value = match quote_long_integers(source.text()) {
            None => serde_json::from_str(source.text()).map_err(failed)?,
            Some(quoted) => {
                serde_json::from_str::<serde::de::IgnoredAny>(source.text()).map_err(failed)?;
                serde_json::from_str(&quoted).map_err(failed)?
            }
        };
        let mut findings = duplicate_keys(source.text()).into_iter().map(|(key, first, second)| {
            Diagnostic::new(code, format!("duplicate key {} in an object", quoted(&key)))
                .at(source.place(second))
                .label("second one here")
                .related(source.place(first), "first one here")
                .hint("remove one of them: JSON readers disagree about which one counts")
        });
        match findings.next() {
            Some(first) => Err(findings.fold(Error::new(kind, first), Error::and)),
            None => Ok(Document { source: source.clone(), value, code, kind }),
        }
    }

    /// What the file holds.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// What the file holds, for code that needs nothing else of it.
    pub fn into_value(self) -> Value {
        self.value
    }

    /// What the file holds, if that is an object; every file of ours is one.
    pub fn object(&self) -> Result<&Map<String, Value>> {
        match &self.value {
            Value::Object(object) => Ok(object),
            other => {
                let diagnostic = Diagnostic::new(self.code, "expected a JSON object")
                    .at(self.opening(&[]))
                    .label(format!("this is {}", kind_of(other)))
                    .hint("start with { and end with }");
                Err(Error::new(self.kind, diagnostic))
            }
        }
    }

    /// The text that it was read from.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Where a value stands. If the path leads nowhere: the deepest value on the way to it.
    pub fn place(&self, path: &[Step<'_>]) -> Place {
        self.source.place(self.find(path).1)
    }

    /// Where the key stands that the last step names; the value itself if it has none.
    pub fn key_place(&self, path: &[Step<'_>]) -> Place {
        let (key, value) = self.find(path);
        self.source.place(key.unwrap_or(value))
    }

    /// Where a value begins: its first character, for remarks about an object or array as a whole.
    pub fn opening(&self, path: &[Step<'_>]) -> Place {
        let start = self.find(path).1.start;
        let length = self.source.text()[start..].chars().next().map_or(0, char::len_utf8);
        self.source.place(start..start + length)
    }

    /// What the file holds, with the place of every value and key: one walk, for code that points at many of them.
    pub fn to_node(&self) -> Node {
        let mut scanner = Scanner::new(self.source.text());
        node_of(&self.source, &mut scanner, &self.value)
    }

    /// The range of the value at a path, and of its key if it is a member of an object.
    fn find(&self, path: &[Step<'_>]) -> (Option<Range<usize>>, Range<usize>) {
        let mut scanner = Scanner::new(self.source.text());
        scanner.skip_space();
        let mut start = scanner.at;
        let mut key = None;
        for step in path {
            let Some((found_key, found)) = scanner.step(start, *step) else {
                return (None, start..scanner.end_of_value(start));
            };
            (key, start) = (found_key, found);
        }
        (key, start..scanner.end_of_value(start))
    }
}

impl Located for Document {
    fn place(&self, path: &[Step<'_>]) -> Place {
        Document::place(self, path)
    }

    fn key_place(&self, path: &[Step<'_>]) -> Place {
        Document::key_place(self, path)
    }

    fn opening(&self, path: &[Step<'_>]) -> Place {
        Document::opening(self, path)
    }

    fn refusal(&self) -> (Code, ErrorKind) {
        (self.code, self.kind)
    }
}

/// The node of the value that begins at the scanner. The text has been accepted, so it is not deeper than that allows.
fn node_of(source: &Arc<Source>, scanner: &mut Scanner<'_>, value: &Value) -> Node {
    scanner.skip_space();
    let start = scanner.at;
    let data = match value {
        Value::Array(items) => {
            scanner.at += 1;
            let items = items.iter().map(|item| {
                let node = node_of(source, scanner, item);
                scanner.skip_space();
                scanner.at += 1; // the comma or the bracket
                node
            });
            let items: Vec<Node> = items.collect();
            if items.is_empty() {
                scanner.end_of_value(start);
            }
            Data::List(items)
        }
        Value::Object(members) => {
            scanner.at += 1;
            let entries = members.iter().map(|(name, member)| {
                scanner.skip_space();
                let place = source.place(scanner.string());
                scanner.skip_space();
                scanner.at += 1; // the colon
                let node = node_of(source, scanner, member);
                scanner.skip_space();
                scanner.at += 1; // the comma or the brace
                (Key { name: name.clone(), place }, node)
            });
            let entries: Vec<(Key, Node)> = entries.collect();
            if entries.is_empty() {
                scanner.end_of_value(start);
            }
            Data::Map(entries)
        }
        scalar => {
            scanner.end_of_value(start);
            match scalar {
                Value::Bool(value) => Data::Bool(*value),
                Value::Number(number) => Data::Number(number.clone()),
                Value::String(text) => Data::Text(text.clone()),
                _ => Data::Null,
            }
        }
    };
    Node::new(data, source.place(start..scanner.at))
}

/// Problems of the values of a document, collected so that all of them are reported at once.
pub struct Problems<'d> {
    document: &'d dyn Located,
    found: Vec<Diagnostic>,
}

impl<'d> Problems<'d> {
    /// No problems so far.
    pub fn new(document: &'d dyn Located) -> Problems<'d> {
        Problems { document, found: Vec::new() }
    }

    /// Notes that a value is wrong, and says what it should be.
    pub fn wrong(&mut self, path: &[Step<'_>], message: impl Into<String>, hint: impl Into<Hint>) {
        self.note(|document| document.place(path), message.into(), hint.into());
    }

    /// Notes that a key is wrong.
    pub fn wrong_key(&mut self, path: &[Step<'_>], message: impl Into<String>, hint: impl Into<Hint>) {
        self.note(|document| document.key_place(path), message.into(), hint.into());
    }

    /// Notes that a value has another type than is wanted here. A list or object is underlined at its beginning only.
    pub fn wrong_type(
        &mut self,
        path: &[Step<'_>],
        value: &Value,
        what: &str,
        wanted: &str,
        hint: impl Into<Hint>,
    ) {
        let message = format!("{what} must be {wanted}");
        let found = kind_of(value);
        self.note(
            |document| {
                if value.is_array() || value.is_object() {
                    document.opening(path)
                } else {
                    document.place(path)
                }
            },
            message,
            hint.into(),
        );
        if let Some(diagnostic) = self.found.last_mut() {
            diagnostic.label = Some(format!("this is {found}"));
        }
    }

    fn note(&mut self, place: impl FnOnce(&dyn Located) -> Place, message: String, hint: Hint) {
        if self.found.len() < MAX_FINDINGS {
            let (code, _) = self.document.refusal();
            let diagnostic = Diagnostic::new(code, message).at(place(self.document)).hint(hint);
            self.found.push(diagnostic);
        }
    }

    /// The result, if nothing was wrong.
    pub fn or<T>(self, result: T) -> Result<T> {
        if self.found.is_empty() {
            Ok(result)
        } else {
            Err(Error::all(self.document.refusal().1, self.found))
        }
    }
}

/// What a value is, for a message.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(true) => "true",
        Value::Bool(false) => "false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The type of a value in the words of declared types, for a message.
pub fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The place that an error of `serde_json` speaks of.
fn error_place(source: &Arc<Source>, error: &serde_json::Error) -> Place {
    source.place(range_of(source.text(), error.line(), error.column()))
}

/// What an error of `serde_json` says, without the line and column: those are the place's.
fn error_message(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&position).unwrap_or(&message) {
        "expected ident" => "expected true, false or null".to_owned(),
        message => message.to_owned(),
    }
}

/// A name in quotes for a message, with what a terminal could trip over escaped and cut to a length that can be read.
pub fn quoted(text: &str) -> String {
    const LONGEST: usize = 100;
    let mut out = String::from("`");
    for (count, character) in text.chars().enumerate() {
        if count == LONGEST {
            out.push('…');
            break;
        }
        if is_hidden(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out.push('`');
    out
}

fn syntax_error(source: &Arc<Source>, code: Code, kind: ErrorKind, error: &serde_json::Error) -> Error {
    let text = source.text();
    if text.trim().is_empty() {
        let diagnostic = Diagnostic::new(code, "not valid JSON: the file is empty").file(source.name());
        return Error::new(kind, diagnostic.hint("write at least `{}`"));
    }
    let message = error_message(error);
    if error.is_eof() {
        let end = text.trim_end().len();
        let last = text[..end].chars().next_back().map_or(0, char::len_utf8);
        let (message, hint) = match message.strip_prefix("EOF while parsing ") {
            Some("an object") => ("the text ends inside an object", "close it with `}`"),
            Some("a list") => ("the text ends inside an array", "close it with `]`"),
            Some("a string") => ("the text ends inside a string", "close it with `\"`"),
            _ => ("the text ends where a value belongs", "add the value, or remove the text that needs it"),
        };
        let diagnostic = Diagnostic::new(code, format!("not valid JSON: {message}"))
            .at(source.place(end - last..end))
            .label("the text ends here")
            .hint(hint);
        return Error::new(kind, diagnostic);
    }
    let place = error_place(source, error);
    let hint = syntax_hint(&message, &text[place.range().start..]);
    let diagnostic = Diagnostic::new(code, format!("not valid JSON: {message}"))
        .at(place)
        .label("here")
        .hint_opt(hint.map(str::to_owned));
    Error::new(kind, diagnostic)
}

/// The character at a line and a column as `serde_json` counts them: lines from 1, columns in bytes from 1.
fn range_of(text: &str, line: usize, column: usize) -> Range<usize> {
    let line_start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    let mut start = (line_start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    start..start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// The mistakes that people make most, recognised by what is at the place.
fn syntax_hint(message: &str, rest: &str) -> Option<&'static str> {
    if message == "trailing comma" {
        return Some("remove the comma before it: JSON allows no trailing comma");
    }
    if message == "recursion limit exceeded" {
        return Some("nest the values less: the limit is 127 levels");
    }
    if message == "number out of range" {
        return Some("write the number in quotes to keep its digits");
    }
    if message.starts_with("control character") {
        return Some("write a line break inside a string as \\n");
    }
    if message.starts_with("expected `,`") && rest.starts_with(['"', '{', '[']) {
        return Some("put a comma between the two");
    }
    if message == "key must be a string" && rest.starts_with(|first: char| first.is_alphanumeric()) {
        return Some("put the key in double quotes");
    }
    if message == "expected `:`" {
        return Some("put a colon between the key and its value");
    }
    if message == "invalid number" && rest.starts_with(|digit: char| digit.is_ascii_digit()) {
        return Some("a number cannot start with zeros");
    }
    if message == "trailing characters" {
        return Some("a file holds one value: remove the rest");
    }
    match rest.chars().next()? {
        '\'' => Some("use double quotes for strings"),
        '/' | '#' => Some("JSON has no comments: remove it"),
        'T' | 'F' | 'N' => Some("write true, false and null in lowercase"),
        letter if message == "expected value" && letter.is_alphabetic() => Some("put text in double quotes"),
        _ => None,
    }
}

/// Whether a text is an integer that 64 bits do not hold. `serde_json` would round such a number, so that readers of files keep
/// the text of its digits.
pub fn is_long_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    digits.len() >= 19
        && !digits.starts_with('0')
        && digits.bytes().all(|digit| digit.is_ascii_digit())
        && text.parse::<i64>().is_err()
        && text.parse::<u64>().is_err()
}

/// The text with quotes around its long integers; `None` if it has none.
fn quote_long_integers(text: &str) -> Option<String> {
    let mut scanner = Scanner::new(text);
    let mut quoted = String::new();
    let mut from = 0;
    while let Some(byte) = scanner.peek() {
        match byte {
            b'"' => drop(scanner.string()),
            b'-' | b'0'..=b'9' => {
                let start = scanner.at;
                while matches!(scanner.peek(), Some(b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9')) {
                    scanner.at += 1;
                }
                let number = &text[start..scanner.at];
                if is_long_integer(number) {
                    quoted.extend([&text[from..start], "\"", number, "\""]);
                    from = scanner.at;
                }
            }
            _ => scanner.at += 1,
        }
    }
    (from > 0).then(|| quoted + &text[from..])
}

/// The keys that stand twice in one object, each with both its places.
fn duplicate_keys(text: &str) -> Vec<(String, Range<usize>, Range<usize>)> {
    // `None` stands for an array, which has no keys.
    let mut open: Vec<Option<HashMap<String, Range<usize>>>> = Vec::new();
    let mut found = Vec::new();
    let mut scanner = Scanner::new(text);
    let mut key_comes = false;
    while let Some(byte) = scanner.peek() {
        match byte {
            b'{' => {
                open.push(Some(HashMap::new()));
                key_comes = true;
            }
            b'[' => {
                open.push(None);
                key_comes = false;
            }
            b'}' | b']' => {
                open.pop();
                key_comes = false;
            }
            b',' => key_comes = matches!(open.last(), Some(Some(_))),
            b'"' => {
                let range = scanner.string();
                if let (true, Some(Some(keys))) = (key_comes, open.last_mut()) {
                    let key = decoded(&text[range.clone()]);
                    if let Some(first) = keys.get(&key) {
                        found.push((key, first.clone(), range));
                        if found.len() == MAX_FINDINGS {
                            break;
                        }
                    } else {
                        keys.insert(key, range);
                    }
                }
                key_comes = false;
                continue;
            }
            _ => {}
        }
        scanner.at += 1;
    }
    found
}

/// The string that a JSON string stands for.
fn decoded(text: &str) -> String {
    // The text has been accepted as a whole, so its parts are valid; as it stands is near enough if ever they are not.
    serde_json::from_str(text).unwrap_or_else(|_| text.to_owned())
}

/// Finds its way through a text that is known to be valid JSON.
struct Scanner<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Scanner<'t> {
    fn new(text: &'t str) -> Scanner<'t> {
        Scanner { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// The range of the string that begins here, with its quotes.
    fn string(&mut self) -> Range<usize> {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        self.at = self.at.min(self.text.len());
        start..self.at
    }

    /// Where the value ends that begins at `start`.
    fn end_of_value(&mut self, start: usize) -> usize {
        self.at = start;
        let mut depth = 0usize;
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => {
                    self.string();
                }
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                _ => {
                    while matches!(self.peek(), Some(byte) if !b" \t\n\r,]}".contains(&byte)) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                break;
            }
        }
        self.at
    }

    /// The member or element that a step leads to from the value at `start`: the range of its key, and its start.
    fn step(&mut self, start: usize, step: Step<'_>) -> Option<(Option<Range<usize>>, usize)> {
        self.at = start;
        let opening = match step {
            Step::Key(_) => b'{',
            Step::Index(_) => b'[',
        };
        if self.peek()? != opening {
            return None;
        }
        self.at += 1;
        let mut index = 0;
        loop {
            self.skip_space();
            if matches!(self.peek()?, b'}' | b']') {
                return None;
            }
            let mut key = None;
            if let Step::Key(_) = step {
                key = Some(self.string());
                self.skip_space();
                self.at += 1; // the colon
                self.skip_space();
            }
            let value = self.at;
            let reached = match (step, &key) {
                (Step::Key(wanted), Some(range)) => decoded(&self.text[range.clone()]) == wanted,
                (Step::Index(wanted), _) => index == wanted,
                (Step::Key(_), None) => false,
            };
            if reached {
                return Some((key, value));
            }
            self.end_of_value(value);
            self.skip_space();
            if self.peek()? == b',' {
                self.at += 1;
            }
            index += 1;
        }
    }
}

/// Findings in a form that tests can assert whole: the message, what is underlined, the other places, the way out.
pub fn shown<'d>(diagnostics: impl IntoIterator<Item = &'d Diagnostic>) -> String {
    let mut out = String::new();
    for diagnostic in diagnostics {
        out.push_str(&format!("{} {diagnostic}\n", diagnostic.severity));
        let label = diagnostic.label.as_deref().unwrap_or("(no label)");
        if let Some(place) = &diagnostic.place {
            out.push_str(&format!("  at {} -- {label}\n", place.text()));
        }
        for (place, label) in &diagnostic.related {
            out.push_str(&format!("  and {place} {} -- {label}\n", place.text()));
        }
        if let Some(hint) = &diagnostic.hint {
            out.push_str(&format!("  help: {hint}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests;
