//! Cuts a template into tokens. The lexer owns white space: `-`, `+`, `trim_blocks`, `lstrip_blocks`, `raw` and comments.
//!
//! Every token has its byte range in the text. A character that begins no token becomes an error token, so the parser
//! can report it and go on behind the tag.

mod token;

pub(crate) use self::token::{Kind, Number, Op, Token, Tokens};
use crate::python::is_space;

/// Settings of the lexer, named as in Jinja2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Whitespace {
    /// Drops the first newline after a block tag.
    pub trim_blocks: bool,
    /// Drops white space before a block tag at the start of a line.
    pub lstrip_blocks: bool,
    /// Keeps the newline at the end of a template.
    pub keep_trailing_newline: bool,
}

/// A range of bytes in the text of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Range {
    /// The first byte.
    pub start: u32,
    /// The byte behind the last one.
    pub end: u32,
}

impl Range {
    pub(crate) fn new(start: usize, end: usize) -> Range {
        // Templates are far smaller than 4 GiB: `Template::compile` refuses larger ones.
        Range { start: start as u32, end: end as u32 }
    }

    pub(crate) fn to(self, other: Range) -> Range {
        Range { start: self.start, end: other.end.max(self.end) }
    }

    /// The text in this range.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

pub(crate) fn tokens(text: &str, settings: Whitespace) -> Tokens {
    let end = match text.strip_suffix('\n') {
        Some(rest) if !settings.keep_trailing_newline => rest.len(),
        _ => text.len(),
    };
    let mut lexer =
        Lexer { text: &text[..end], at: 0, settings, line_starts: true, tokens: Tokens::default() };
    lexer.tokens.all.reserve(64);
    lexer.run();
    lexer.tokens
}

struct Lexer<'t> {
    text: &'t str,
    at: usize,
    settings: Whitespace,
    /// Whether the text before `at` is the start of a line, as `lstrip_blocks` sees it.
    line_starts: bool,
    tokens: Tokens,
}

/// The kinds of tags.
#[derive(Clone, Copy, PartialEq)]
enum Opening {
    Variable,
    Block,
    Comment,
}

impl Lexer<'_> {
    fn push(&mut self, kind: Kind, start: usize, end: usize) {
        self.tokens.push(kind, start, end);
    }

    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn run(&mut self) {
        while let Some((begin, opening)) = self.next_opening() {
            let raw = (opening == Opening::Block).then(|| self.raw_begin(begin)).flatten();
            let sign =
                self.text.as_bytes().get(begin + 2).copied().filter(|sign| matches!(sign, b'-' | b'+'));
            self.data(begin, sign, opening);
            self.at = begin + 2 + usize::from(sign.is_some());
            match (raw, opening) {
                (Some(body), _) => self.raw(begin, body),
                (None, Opening::Comment) => self.comment(begin),
                (None, Opening::Variable) => {
                    self.push(Kind::VariableBegin, begin, self.at);
                    self.tag(Opening::Variable);
                }
                (None, Opening::Block) => {
                    self.push(Kind::BlockBegin, begin, self.at);
                    self.tag(Opening::Block);
                }
            }
        }
        let (start, end) = (self.at, self.text.len());
        if start < end {
            self.push(Kind::Data, start, end);
        }
        self.push(Kind::End, end, end);
    }

    fn next_opening(&self) -> Option<(usize, Opening)> {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        while let Some(found) = memchr::memchr(b'{', &bytes[at..]) {
            at += found;
            match bytes.get(at + 1) {
                Some(b'{') => return Some((at, Opening::Variable)),
                Some(b'%') => return Some((at, Opening::Block)),
                Some(b'#') => return Some((at, Opening::Comment)),
                _ => at += 1,
            }
        }
        None
    }

    /// Writes the text before a tag, without what the tag's sign or `lstrip_blocks` takes away.
    fn data(&mut self, end: usize, sign: Option<u8>, opening: Opening) {
        let (start, text) = (self.at, &self.text[self.at..end]);
        let kept = match sign {
            Some(b'-') => text.trim_end_matches(is_space).len(),
            None if self.settings.lstrip_blocks && opening != Opening::Variable => {
                let line = text.rfind('\n').map_or(0, |newline| newline + 1);
                let blank = line < text.len() && text[line..].chars().all(is_space);
                if blank && (line > 0 || self.line_starts) { line } else { text.len() }
            }
            _ => text.len(),
        };
        if kept > 0 {
            self.push(Kind::Data, start, start + kept);
        }
    }

    fn skip_spaces(&mut self) {
        while self.byte(self.at) == Some(b' ') {
            self.at += 1;
        }
        // What else is white space is rare.
        if self.byte(self.at).is_some_and(|byte| !(b' '..0x7f).contains(&byte)) {
            let rest = self.rest();
            self.at += rest.len() - rest.trim_start_matches(is_space).len();
        }
    }

    /// Steps over the end of a tag, `}}`, `%}` or `#}`, with the white space that belongs to it.
    fn closing(&mut self, close: &str) -> bool {
        if !matches!(self.byte(self.at), Some(b'-' | b'+' | b'}' | b'%' | b'#')) {
            return false;
        }
        let rest = self.rest();
        let block = close != "}}";
        let start = self.at;
        if rest.starts_with('-') && rest[1..].starts_with(close) {
            self.at += 3;
            self.skip_spaces();
        } else if block && rest.starts_with('+') && rest[1..].starts_with(close) {
            self.at += 3;
        } else if rest.starts_with(close) {
            self.at += 2;
            if block && self.settings.trim_blocks && self.rest().starts_with('\n') {
                self.at += 1;
            }
        } else {
            return false;
        }
        self.line_starts = self.text[start..self.at].ends_with('\n');
        true
    }

    fn comment(&mut self, begin: usize) {
        match self.rest().find("#}") {
            None => {
                self.tokens.push_error("this comment is not closed: `#}` is missing", begin, begin + 2);
                self.at = self.text.len();
            }
            Some(length) => {
                let close = self.at + length;
                let signed = length > 0 && matches!(self.text.as_bytes()[close - 1], b'-' | b'+');
                self.at = close - usize::from(signed);
                self.closing("#}");
            }
        }
    }

    /// Where the body of `{% raw %}` begins, if this tag is one, and whether its end takes white space away.
    fn raw_begin(&self, begin: usize) -> Option<(usize, bool)> {
        let rest = &self.text[begin + 2..];
        let rest = rest.strip_prefix(['-', '+']).unwrap_or(rest);
        let rest = rest.trim_start_matches(is_space).strip_prefix("raw")?.trim_start_matches(is_space);
        let (rest, strip) = match rest.strip_prefix("-%}") {
            Some(rest) => (rest, true),
            None => (rest.strip_prefix("%}")?, false),
        };
        Some((self.text.len() - rest.len(), strip))
    }

    fn raw(&mut self, begin: usize, (body, strip): (usize, bool)) {
        self.at = body;
        if strip {
            self.skip_spaces();
        }
        self.line_starts = self.text[body..self.at].ends_with('\n');
        let mut from = self.at;
        while let Some(found) = self.text[from..].find("{%") {
            let tag = from + found;
            let sign = self.text.as_bytes().get(tag + 2).copied().filter(|sign| matches!(sign, b'-' | b'+'));
            let inside = &self.text[tag + 2 + usize::from(sign.is_some())..];
            if let Some(after) = inside.trim_start_matches(is_space).strip_prefix("endraw") {
                let after = after.trim_start_matches(is_space);
                let close = self.text.len() - after.len();
                let saved = self.at;
                self.at = close;
                if self.closing("%}") {
                    let (end, line_starts) = (self.at, self.line_starts);
                    self.at = saved;
                    self.line_starts = self.text[body..saved].ends_with('\n');
                    self.data(tag, sign, Opening::Block);
                    (self.at, self.line_starts) = (end, line_starts);
                    return;
                }
                self.at = saved;
            }
            from = tag + 2;
        }
        let message = "this `raw` block is not closed: `{% endraw %}` is missing";
        self.tokens.push_error(message, begin, body);
        self.at = self.text.len();
    }

    fn tag(&mut self, opening: Opening) {
        let (close, end) = match opening {
            Opening::Variable => ("}}", Kind::VariableEnd),
            _ => ("%}", Kind::BlockEnd),
        };
        let mut open: Vec<Op> = Vec::new();
        loop {
            self.skip_spaces();
            let start = self.at;
            if open.is_empty() && self.closing(close) {
                self.push(end, start, self.at);
                return;
            }
            let Some(first) = self.byte(start) else { return };
            if self.begins_tag(&open) {
                return;
            }
            match first {
                b'0'..=b'9' => self.number(),
                b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.name(),
                b'"' | b'\'' => self.string(first),
                _ => match Op::read(&self.text.as_bytes()[start..]) {
                    Some(operator) => {
                        let inside = open.last().copied();
                        if inside.is_some_and(|bracket| bracket != Op::CloseBrace) && self.closing(close) {
                            let expected = inside.map_or("", Op::spelling);
                            let message = format!("unexpected `{close}`, expected `{expected}`");
                            self.tokens.push_error(message, start, start + 2);
                            self.push(end, start, self.at);
                            return;
                        }
                        self.at += operator.spelling().len();
                        match balance(&mut open, operator) {
                            None => self.push(Kind::Operator(operator), start, self.at),
                            Some(message) => {
                                self.tokens.push_error(message, start, self.at);
                                if operator == Op::CloseBrace && open.is_empty() {
                                    // Half of the tag's end.
                                    self.at += usize::from(self.byte(self.at) == Some(b'}'));
                                    self.push(end, start, self.at);
                                    return;
                                }
                            }
                        }
                    }
                    None => self.other(),
                },
            }
        }
    }

    /// Whether another tag begins here: this one is not closed. Inside brackets `{{` may be a literal.
    fn begins_tag(&self, open: &[Op]) -> bool {
        let rest = self.rest();
        rest.starts_with("{%") || (open.is_empty() && rest.starts_with("{{"))
    }

    /// Reads what does not begin with a character of ASCII that begins a token.
    fn other(&mut self) {
        let start = self.at;
        let Some(first) = self.rest().chars().next() else { return };
        if is_word(first) {
            return self.name();
        }
        self.at += first.len_utf8();
        self.tokens.push_error(format!("unexpected character {first:?}"), start, self.at);
    }

    fn name(&mut self) {
        let (start, bytes) = (self.at, self.text.as_bytes());
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let length = bytes[start..].iter().position(|byte| !plain(byte)).unwrap_or(bytes.len() - start);
        if self.byte(start + length).is_none_or(|next| next.is_ascii()) {
            self.at += length;
            return self.push(Kind::Name, start, self.at);
        }
        let rest = self.rest();
        let length = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        let name = &rest[..length];
        let mut characters = name.chars();
        let valid = characters.next().is_some_and(|first| first == '_' || unicode_ident::is_xid_start(first))
            && characters.all(unicode_ident::is_xid_continue);
        let invalid = (!valid).then(|| format!("`{name}` is not a name"));
        self.at += length;
        match invalid {
            None => self.push(Kind::Name, start, self.at),
            Some(message) => self.tokens.push_error(message, start, self.at),
        }
    }

    fn number(&mut self) {
        let start = self.at;
        let after_dot = self.text[..start].ends_with('.');
        let rest = self.rest();
        let (length, number) = match (!after_dot).then(|| float_length(rest)).flatten() {
            Some(length) => {
                let number = rest[..length].replace('_', "").parse();
                (length, number.map(Number::Float).map_err(|_| "invalid number"))
            }
            None => integer(rest),
        };
        self.at += length;
        match number {
            Ok(number) => self.tokens.push_number(number, start, self.at),
            Err(message) => self.tokens.push_error(message, start, self.at),
        }
    }

    fn string(&mut self, quote: u8) {
        let start = self.at;
        let body = start + 1;
        let bytes = self.text.as_bytes();
        let (mut at, mut escapes) = (body, false);
        let end = loop {
            match memchr::memchr2(quote, b'\\', &bytes[at..]) {
                None => break None,
                Some(found) if bytes[at + found] == quote => break Some(at + found),
                Some(found) => {
                    escapes = true;
                    // What is behind a backslash ends nothing.
                    at = (at + found + 2).min(bytes.len());
                }
            }
        };
        let Some(end) = end else {
            self.at = self.text.len();
            let message = format!("this string is not closed: {} is missing", char::from(quote));
            return self.tokens.push_error(message, start, body);
        };
        self.at = end + 1;
        match escapes.then(|| unescape(&self.text[body..end])) {
            Some(Err(message)) => self.tokens.push_error(message, start, end + 1),
            _ => self.push(Kind::Text(escapes), start, end + 1),
        }
    }
}

/// Keeps track of open brackets; the message if one does not fit.
fn balance(open: &mut Vec<Op>, operator: Op) -> Option<String> {
    if let Some(closing) = operator.closing() {
        open.push(closing);
        return None;
    }
    if !operator.closes() {
        return None;
    }
    let found = operator.spelling();
    match open.pop() {
        Some(expected) if expected == operator => None,
        Some(expected) => Some(format!("unexpected `{found}`, expected `{}`", expected.spelling())),
        None => Some(format!("unexpected `{found}`")),
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_' || unicode_ident::is_xid_continue(character)
}

/// How many bytes digits with single `_` between them take.
fn digits(text: &str, is_digit: impl Fn(u8) -> bool) -> usize {
    let bytes = text.as_bytes();
    let mut length = 0;
    while length < bytes.len() {
        if is_digit(bytes[length]) {
            length += 1;
        } else if length > 0
            && bytes[length] == b'_'
            && bytes.get(length + 1).is_some_and(|next| is_digit(*next))
        {
            length += 2;
        } else {
            break;
        }
    }
    length
}

fn decimal(text: &str) -> usize {
    digits(text, |byte| byte.is_ascii_digit())
}

fn float_length(text: &str) -> Option<usize> {
    let whole = decimal(text);
    let fraction = match text[whole..].strip_prefix('.').map(decimal) {
        Some(length) if length > 0 => length + 1,
        _ => 0,
    };
    let after = &text[whole + fraction..];
    let exponent = after.strip_prefix(['e', 'E']).and_then(|rest| {
        let unsigned = rest.strip_prefix(['+', '-']).unwrap_or(rest);
        let length = decimal(unsigned);
        (length > 0).then(|| after.len() - unsigned.len() + length)
    });
    match (fraction, exponent) {
        (0, None) => None,
        (fraction, exponent) => Some(whole + fraction + exponent.unwrap_or(0)),
    }
}

fn integer(text: &str) -> (usize, Result<Number, &'static str>) {
    let parse = |length: usize, skip: usize, radix: u32| {
        let number = text[skip..length].replace('_', "");
        let number = if number.is_empty() { "0" } else { &number };
        let number = i128::from_str_radix(number, radix);
        (length, number.map(Number::Integer).map_err(|_| "this number is too large"))
    };
    let prefixed = |is_digit: fn(u8) -> bool| {
        let rest = &text[2..];
        let under = usize::from(rest.starts_with('_'));
        let length = digits(&rest[under..], is_digit);
        (length > 0).then_some(2 + under + length)
    };
    let radix = text.get(..2).map(str::to_ascii_lowercase);
    let found = match radix.as_deref() {
        Some("0b") => prefixed(|byte| matches!(byte, b'0' | b'1')).map(|length| parse(length, 2, 2)),
        Some("0o") => prefixed(|byte| matches!(byte, b'0'..=b'7')).map(|length| parse(length, 2, 8)),
        Some("0x") => prefixed(|byte| byte.is_ascii_hexdigit()).map(|length| parse(length, 2, 16)),
        _ => None,
    };
    found.unwrap_or_else(|| {
        // A number that begins with 0 is only zeros: `012` is two numbers, and so an error of the parser.
        let length = if text.starts_with('0') { digits(text, |byte| byte == b'0') } else { decimal(text) };
        parse(length, 0, 10)
    })
}

/// What a string literal of Python means, with its escapes.
pub(crate) fn unescape(content: &str) -> Result<String, String> {
    let mut out = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(letter) = rest.chars().next() else {
            return Err("a string ends with a backslash".to_owned());
        };
        rest = &rest[letter.len_utf8()..];
        let simple = match letter {
            '\n' => continue,
            '\\' | '\'' | '"' => letter,
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            'x' => hexadecimal(&mut rest, 2)?,
            'u' => hexadecimal(&mut rest, 4)?,
            'U' => hexadecimal(&mut rest, 8)?,
            '0'..='7' => octal(letter, &mut rest),
            'N' => named(&mut rest)?,
            other => {
                out.push('\\');
                other
            }
        };
        out.push(simple);
    }
    out.push_str(rest);
    Ok(out)
}

fn hexadecimal(rest: &mut &str, length: usize) -> Result<char, String> {
    let digits = rest.get(..length).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let digits = digits.ok_or_else(|| format!("an escape needs {length} hexadecimal digits"))?;
    *rest = &rest[length..];
    let code = u32::from_str_radix(digits, 16).unwrap_or(u32::MAX);
    char::from_u32(code).ok_or_else(|| format!("U+{digits} is not a character"))
}

fn octal(first: char, rest: &mut &str) -> char {
    let more = rest.bytes().take(2).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    let text = format!("{first}{}", &rest[..more]);
    *rest = &rest[more..];
    u32::from_str_radix(&text, 8).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
}

fn named(rest: &mut &str) -> Result<char, String> {
    let name = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    let (name, after) =
        name.ok_or_else(|| "`\\N` needs the name of a character, as in `\\N{BULLET}`".to_owned())?;
    *rest = after;
    character(name)
}

#[cfg(feature = "unicode-names")]
fn character(name: &str) -> Result<char, String> {
    unicode_names2::character(name).ok_or_else(|| format!("no character is named `{name}`"))
}

#[cfg(not(feature = "unicode-names"))]
fn character(name: &str) -> Result<char, String> {
    Err(format!("`\\N{{{name}}}` needs the feature `unicode-names`, which this program was built without"))
}
