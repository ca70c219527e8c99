//! Literals of JavaScript: what JSON has, with quotes of either kind, bare keys, comments and commas at the end.

use serde_json::{Map, Number, Value as Json};

/// How deep lists and objects may lie in each other.
const DEEPEST: usize = 64;

/// Reads text from left to right.
pub(super) struct Scanner<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

/// Where and why something is no literal.
pub(super) struct NoLiteral {
    pub(super) at: usize,
    pub(super) why: &'static str,
}

impl<'t> Scanner<'t> {
    pub(super) fn new(text: &'t str, at: usize) -> Scanner<'t> {
        Scanner { text, at }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Goes on if the text does so.
    pub(super) fn take(&mut self, wanted: &str) -> bool {
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len();
        }
        found
    }

    /// Skips white space and comments.
    pub(super) fn skip_space(&mut self) {
        loop {
            let rest = self.rest();
            let after = rest.trim_start();
            self.at += rest.len() - after.len();
            if after.starts_with("//") {
                self.at += after.find('\n').unwrap_or(after.len());
            } else if after.starts_with("/*") {
                self.at += after.find("*/").map_or(after.len(), |end| end + 2);
            } else {
                return;
            }
        }
    }

    /// A name, if there is one.
    pub(super) fn word(&mut self) -> &'t str {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let length = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// A value that is written out.
    pub(super) fn value(&mut self, depth: usize) -> Result<Json, NoLiteral> {
        self.skip_space();
        let no = |why| Err(NoLiteral { at: self.at, why });
        if depth > DEEPEST {
            return no("nested too deeply");
        }
        match self.peek() {
            Some(quote @ ('"' | '\'' | '`')) => self.string(quote).map(Json::from),
            Some('[') => {
                self.at += 1;
                let mut items = Vec::new();
                loop {
                    self.skip_space();
                    if self.take("]") {
                        return Ok(Json::Array(items));
                    }
                    items.push(self.value(depth + 1)?);
                    self.skip_space();
                    if !self.take(",") && self.peek() != Some(']') {
                        return Err(NoLiteral { at: self.at, why: "expected a comma or `]`" });
                    }
                }
            }
            Some('{') => self.object(depth).map(Json::Object),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            Some(c) if c.is_alphabetic() || c == '_' || c == '$' => {
                let start = self.at;
                match self.word() {
                    "true" => Ok(Json::Bool(true)),
                    "false" => Ok(Json::Bool(false)),
                    "null" | "undefined" => Ok(Json::Null),
                    _ => Err(NoLiteral { at: start, why: "known only when the file runs" }),
                }
            }
            Some(_) => no("known only when the file runs"),
            None => no("the value is missing"),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Map<String, Json>, NoLiteral> {
        self.at += 1;
        let mut map = Map::new();
        loop {
            self.skip_space();
            if self.take("}") {
                return Ok(map);
            }
            let start = self.at;
            let key = match self.peek() {
                Some(quote @ ('"' | '\'')) => self.string(quote)?,
                _ => self.word().to_owned(),
            };
            self.skip_space();
            if key.is_empty() || !self.take(":") {
                return Err(NoLiteral { at: start, why: "expected a key and a value" });
            }
            let value = self.value(depth + 1)?;
            map.insert(key, value);
            self.skip_space();
            if !self.take(",") && self.peek() != Some('}') {
                return Err(NoLiteral { at: self.at, why: "expected a comma or `}`" });
            }
        }
    }

    fn number(&mut self) -> Result<Json, NoLiteral> {
        let start = self.at;
        let negative = self.take("-");
        if !negative {
            self.take("+");
        }
        self.skip_space();
        let rest = self.rest();
        let mut end = 0;
        for (at, c) in rest.char_indices() {
            let after_exponent = at > 0 && rest[..at].ends_with(['e', 'E']) && !rest.starts_with("0x");
            if c.is_ascii_alphanumeric()
                || matches!(c, '.' | '_')
                || (after_exponent && matches!(c, '+' | '-'))
            {
                end = at + 1;
            } else {
                break;
            }
        }
        self.at += end;
        let digits = rest[..end].replace('_', "");
        let radix = |prefix: &str, radix| {
            digits.strip_prefix(prefix).and_then(|digits| i64::from_str_radix(digits, radix).ok())
        };
        let whole = radix("0x", 16).or_else(|| radix("0o", 8)).or_else(|| radix("0b", 2));
        let whole = whole.or_else(|| digits.parse::<i64>().ok());
        let number = match whole {
            Some(number) => Some(Number::from(if negative { -number } else { number })),
            None => {
                let float = digits.parse::<f64>().ok();
                float.and_then(|float| Number::from_f64(if negative { -float } else { float }))
            }
        };
        number.map(Json::Number).ok_or(NoLiteral { at: start, why: "not a valid JSON number" })
    }

    /// A string with its escapes. One between backticks may not compute anything.
    pub(super) fn string(&mut self, quote: char) -> Result<String, NoLiteral> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek() {
            self.at += c.len_utf8();
            match c {
                c if c == quote => return Ok(text),
                '\n' if quote != '`' => break,
                '$' if quote == '`' && self.peek() == Some('{') => {
                    return Err(NoLiteral { at: self.at - 1, why: "known only when the file runs" });
                }
                '\\' => {
                    let Some(escaped) = self.peek() else { break };
                    self.at += escaped.len_utf8();
                    match escaped {
                        'n' => text.push('\n'),
                        't' => text.push('\t'),
                        'r' => text.push('\r'),
                        'b' => text.push('\u{8}'),
                        'f' => text.push('\u{c}'),
                        'v' => text.push('\u{b}'),
                        '0' => text.push('\0'),
                        '\n' => {}
                        'x' => text.push(self.code(2).unwrap_or('\u{fffd}')),
                        'u' => text.push(self.unicode().unwrap_or('\u{fffd}')),
                        other => text.push(other),
                    }
                }
                c => text.push(c),
            }
        }
        Err(NoLiteral { at: start, why: "the string is not closed" })
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self.rest().get(..count)?;
        let number = u32::from_str_radix(digits, 16).ok()?;
        self.at += count;
        Some(number)
    }

    fn code(&mut self, count: usize) -> Option<char> {
        self.digits(count).and_then(char::from_u32)
    }

    /// What follows `\u`: four digits, a pair of surrogates, or digits in braces.
    fn unicode(&mut self) -> Option<char> {
        if self.take("{") {
            let length = self.rest().find('}').filter(|length| (1..=6).contains(length))?;
            let code = self.code(length);
            self.take("}");
            return code;
        }
        let first = self.digits(4)?;
        if (0xD800..0xDC00).contains(&first) && self.take("\\u") {
            let second = self.digits(4)?;
            let low = second.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
            return char::from_u32(0x10000 + ((first - 0xD800) << 10) + low);
        }
        char::from_u32(first)
    }
}
