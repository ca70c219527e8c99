//! What Python's `str` and `textwrap` do to text, and what Jinja2 does to make links.

use std::borrow::Cow;

use minijinja::Error;

use super::call::invalid;
use super::limits::{Text, ValueLimits};

/// Whether Python calls a character a space: Unicode's white space and four separators of ASCII.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// Where the digits of a script begin, for the scripts in common use.
const ZEROS: [u32; 18] = [
    0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20,
    0x1040, 0x17e0, 0xff10,
];

/// The digit that a character stands for in its script.
pub(super) fn decimal(character: char) -> Option<u8> {
    let code = u32::from(character);
    ZEROS
        .iter()
        .find_map(|zero| code.checked_sub(*zero).filter(|digit| *digit < 10))
        .and_then(|digit| u8::try_from(digit).ok())
}

/// A text with the digits of all scripts as those of ASCII, as Python reads numbers.
pub(super) fn ascii_digits(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|character| decimal(character).map_or(character, |digit| char::from(b'0' + digit)))
            .collect(),
    )
}

/// Lines as `str.splitlines` cuts them, with or without their ends.
pub fn split_lines(text: &str, keep_ends: bool) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut start = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        let ends = matches!(
            character,
            '\n' | '\r' | '\x0b' | '\x0c' | '\x1c'..='\x1e' | '\u{85}' | '\u{2028}' | '\u{2029}'
        );
        if !ends {
            continue;
        }
        let mut end = at + character.len_utf8();
        if character == '\r' && characters.next_if(|(_, next)| *next == '\n').is_some() {
            end += 1;
        }
        lines.push(&text[start..if keep_ends { end } else { at }]);
        start = end;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// The first characters of a text.
pub(super) fn take(text: &str, characters: usize) -> &str {
    text.char_indices().nth(characters).map_or(text, |(at, _)| &text[..at])
}

/// A text between spaces, `str.center`; of an odd number of spaces, Python puts the odd one left when the width is odd.
pub(super) fn center(text: &str, width: i64, fill: char, limits: ValueLimits) -> Result<String, Error> {
    let length = text.chars().count();
    let width = usize::try_from(width).unwrap_or(0);
    let missing = width.saturating_sub(length);
    let left = missing / 2 + (missing & width & 1);
    pad(text, left, missing - left, fill, limits)
}

/// A text with room on both sides.
pub(super) fn pad(
    text: &str,
    left: usize,
    right: usize,
    fill: char,
    limits: ValueLimits,
) -> Result<String, Error> {
    let mut out = Text::new(limits);
    out.fill(fill, left)?;
    out.push_str(text)?;
    out.fill(fill, right)?;
    Ok(out.into_string())
}

/// `str.capitalize`: the first character large, the others small.
pub(super) fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return String::new() };
    let mut large = first.to_uppercase();
    let mut out: String = large.next().into_iter().collect();
    out.extend(large.flat_map(char::to_lowercase));
    out + &characters.as_str().to_lowercase()
}

/// Texts with a separator between them.
pub(super) fn join<'t>(
    parts: impl IntoIterator<Item = &'t str>,
    separator: &str,
    limits: ValueLimits,
) -> Result<String, Error> {
    let mut out = Text::new(limits);
    for (index, part) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push_str(separator)?;
        }
        out.push_str(part)?;
    }
    Ok(out.into_string())
}

/// `str.replace`, where a negative count means all.
pub(super) fn replace(
    text: &str,
    old: &str,
    new: &str,
    count: i64,
    limits: ValueLimits,
) -> Result<String, Error> {
    let wanted = usize::try_from(count).unwrap_or(usize::MAX);
    let found = if old.is_empty() { text.chars().count() + 1 } else { text.matches(old).count() }.min(wanted);
    let length = text.len().saturating_sub(found.saturating_mul(old.len()));
    limits.check_bytes(length.saturating_add(found.saturating_mul(new.len())))?;
    Ok(text.replacen(old, new, found))
}

/// `|indent`.
pub(super) fn indent(
    text: &str,
    with: &str,
    first: bool,
    blank: bool,
    limits: ValueLimits,
) -> Result<String, Error> {
    let mut out = Text::new(limits);
    // Jinja2 adds a line end so that the last line counts even when it is empty.
    let ended = format!("{text}\n");
    for (index, line) in split_lines(&ended, false).into_iter().enumerate() {
        if index > 0 {
            out.push('\n')?;
        }
        let indented = if index == 0 { first } else { blank || !line.is_empty() };
        if indented {
            out.push_str(with)?;
        }
        out.push_str(line)?;
    }
    Ok(out.into_string())
}

/// `str.expandtabs`.
pub(super) fn expand_tabs(text: &str, size: i64, limits: ValueLimits) -> Result<String, Error> {
    let size = usize::try_from(size).unwrap_or(0);
    let mut out = Text::new(limits);
    let mut column = 0;
    for character in text.chars() {
        match character {
            '\t' if size == 0 => {}
            '\t' => {
                let room = size - column % size;
                out.fill(' ', room)?;
                column += room;
            }
            _ => {
                out.push(character)?;
                column = if matches!(character, '\n' | '\r') { 0 } else { column + 1 };
            }
        }
    }
    Ok(out.into_string())
}

/// One line as `textwrap.wrap` breaks it, without touching tabs.
pub(super) fn wrap(line: &str, width: usize, break_words: bool, hyphens: bool) -> Vec<String> {
    let mut chunks: Vec<Vec<char>> = chunks(line, hyphens);
    chunks.reverse();
    let blank = |chunk: &[char]| chunk.iter().all(|character| is_space(*character));
    let mut lines: Vec<String> = Vec::new();
    while !chunks.is_empty() {
        if !lines.is_empty() && chunks.last().is_some_and(|chunk| blank(chunk)) {
            chunks.pop();
        }
        let mut current: Vec<Vec<char>> = Vec::new();
        let mut length = 0;
        while let Some(chunk) = chunks.pop_if(|chunk| length + chunk.len() <= width) {
            length += chunk.len();
            current.push(chunk);
        }
        if let Some(mut chunk) = chunks.pop_if(|chunk| chunk.len() > width) {
            if break_words {
                let room = width - length;
                let mut end = room;
                let hyphen = chunk[..room].iter().rposition(|character| *character == '-');
                if let Some(hyphen) =
                    hyphen.filter(|at| hyphens && chunk[..*at].iter().any(|character| *character != '-'))
                {
                    end = hyphen + 1;
                }
                let tail = chunk.split_off(end);
                current.push(chunk);
                chunks.push(tail);
            } else if current.is_empty() {
                current.push(chunk);
            } else {
                chunks.push(chunk);
            }
        }
        if current.last().is_some_and(|chunk| blank(chunk)) {
            current.pop();
        }
        if !current.is_empty() {
            lines.push(current.into_iter().flatten().collect());
        }
    }
    lines
}

/// The pieces between which a line may break: words, spaces, and words cut behind hyphens.
fn chunks(line: &str, hyphens: bool) -> Vec<Vec<char>> {
    let letters: Vec<char> = line.chars().collect();
    let letter = |index: usize| {
        letters.get(index).is_some_and(|character| character.is_alphabetic() || *character == '_')
    };
    let word = |index: usize| {
        letters.get(index).is_some_and(|character| character.is_alphanumeric() || *character == '_')
    };
    let before_dash = |index: usize| {
        word(index) || letters.get(index).is_some_and(|character| "!\"'&.,?".contains(*character))
    };
    let mut out: Vec<Vec<char>> = Vec::new();
    let mut start = 0;
    for at in 1..letters.len() {
        let change = is_space(letters[at - 1]) != is_space(letters[at]);
        let hyphen = hyphens
            && letters[at - 1] == '-'
            && letter(at)
            && (letter(at + 1) || (letters.get(at + 1) == Some(&'-') && letter(at + 2)))
            && at >= 3
            && letter(at - 2)
            && (letter(at - 3) || (letters[at - 3] == '-' && at >= 4 && letter(at - 4)));
        let run = |from: usize| letters[from..].iter().take_while(|character| **character == '-').count();
        let dash_begins =
            hyphens && letters[at] == '-' && before_dash(at - 1) && run(at) >= 2 && word(at + run(at));
        let dash_ends = hyphens && word(at) && {
            let dashes = letters[..at].iter().rev().take_while(|character| **character == '-').count();
            dashes >= 2 && at > dashes && before_dash(at - dashes - 1)
        };
        if change || hyphen || dash_begins || dash_ends {
            out.push(letters[start..at].to_vec());
            start = at;
        }
    }
    if start < letters.len() {
        out.push(letters[start..].to_vec());
    }
    out
}

/// Text without comments and tags, its white space made single; entities stay as they are.
pub(super) fn strip_tags(text: &str) -> String {
    let without_comments = cut_all(text, "<!--", "-->");
    let without_tags = cut_all(&without_comments, "<", ">");
    without_tags.split(is_space).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn cut_all(text: &str, open: &str, close: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(open) {
        let Some(length) = rest[start..].find(close) else { break };
        out.push_str(&rest[..start]);
        rest = &rest[start + length + close.len()..];
    }
    out + rest
}

/// Percent encoding of everything that a URL does not keep.
pub(super) fn quote_url(text: &str, query: bool, limits: ValueLimits) -> Result<String, Error> {
    let mut out = Text::new(limits);
    for byte in text.bytes() {
        match byte {
            b' ' if query => out.push('+')?,
            b'/' if !query => out.push('/')?,
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'-' | b'~' => {
                out.push(char::from(byte))?
            }
            _ => out.push_str(&format!("%{byte:02X}"))?,
        }
    }
    Ok(out.into_string())
}

/// How links are made of the addresses in a text.
pub(super) struct Links<'l> {
    pub(super) shown: Option<usize>,
    /// Attributes behind `href`, with a space before each.
    pub(super) attributes: String,
    pub(super) schemes: &'l [String],
}

impl Links<'_> {
    /// Makes links in a text that is escaped already.
    pub(super) fn make(&self, escaped: &str, limits: ValueLimits) -> Result<String, Error> {
        let mut out = Text::new(limits);
        let mut rest = escaped;
        while !rest.is_empty() {
            let space = rest.starts_with(is_space);
            let end = rest.find(|character| is_space(character) != space).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            rest = after;
            if space {
                out.push_str(piece)?;
            } else {
                self.word(piece, &mut out)?;
            }
        }
        Ok(out.into_string())
    }

    fn word(&self, word: &str, out: &mut Text) -> Result<(), Error> {
        let mut middle = word;
        while let Some(after) = ["(", "<", "&lt;"].iter().find_map(|open| middle.strip_prefix(open)) {
            middle = after;
        }
        let head = &word[..word.len() - middle.len()];
        let bare = middle;
        while let Some(before) =
            [")", ">", ".", ",", "&gt;"].iter().find_map(|close| middle.strip_suffix(close))
        {
            middle = before;
        }
        let mut tail = &bare[middle.len()..];
        for (open, close) in [("(", ")"), ("<", ">"), ("&lt;", "&gt;")] {
            let opened = middle.matches(open).count();
            for _ in middle.matches(close).count()..opened {
                let Some(at) = tail.find(close) else { break };
                let end = middle.len() + at + close.len();
                middle = &bare[..end];
                tail = &bare[end..];
            }
        }
        out.push_str(head)?;
        match self.address(middle) {
            Some((href, shown, attributes)) => {
                out.push_str(&format!("<a href=\"{href}\"{attributes}>"))?;
                out.push_str(&shown)?;
                out.push_str("</a>")?;
            }
            None => out.push_str(middle)?,
        }
        out.push_str(tail)
    }

    fn address(&self, word: &str) -> Option<(String, String, &str)> {
        let shown = |text: &str| match self.shown {
            Some(limit) if text.chars().count() > limit => format!("{}...", take(text, limit)),
            _ => text.to_owned(),
        };
        let secure = word.get(..7).is_some_and(|start| start.eq_ignore_ascii_case("http://"))
            || word.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("https://"));
        if is_web_address(word) {
            let href = if secure { word.to_owned() } else { format!("https://{word}") };
            return Some((href, shown(word), &self.attributes));
        }
        if let Some(mail) = word.strip_prefix("mailto:").filter(|mail| is_mail_address(mail)) {
            return Some((word.to_owned(), mail.to_owned(), ""));
        }
        if !word.starts_with("www.") && !word.starts_with('@') && !word.contains(':') && is_mail_address(word)
        {
            return Some((format!("mailto:{word}"), word.to_owned(), ""));
        }
        let known = self.schemes.iter().any(|scheme| word != scheme && word.starts_with(scheme.as_str()));
        known.then(|| (word.to_owned(), word.to_owned(), self.attributes.as_str()))
    }
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

fn is_mail_address(text: &str) -> bool {
    text.rmatch_indices('@').any(|(at, _)| {
        let (local, domain) = (&text[..at], &text[at + 1..]);
        let Some((name, top)) = domain.rsplit_once('.') else { return false };
        !local.is_empty()
            && !top.is_empty()
            && top.chars().all(is_word)
            && name.starts_with(is_word)
            && name.chars().all(|character| is_word(character) || matches!(character, '.' | '-'))
    })
}

fn is_web_address(text: &str) -> bool {
    let lower = text.to_lowercase();
    let scheme = ["https://", "http://"].into_iter().find_map(|scheme| lower.strip_prefix(scheme));
    let after = scheme.or_else(|| lower.strip_prefix("www.")).unwrap_or(&lower);
    let bare = after.len() == lower.len();
    let host_end = after.find(['/', '?', '#']).unwrap_or(after.len());
    let host = &after[..host_end];
    if scheme.is_some() && host.starts_with('[') {
        return host.find(']').is_some_and(|end| {
            host[1..end].contains(':')
                && host[1..end].chars().all(|character| character.is_ascii_hexdigit() || character == ':')
        });
    }
    let (host, port) = host.split_once(':').unwrap_or((host, "0"));
    if port.is_empty() || port.len() > 5 || !port.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let mut labels: Vec<&str> = host.split('.').collect();
    let numeric = |label: &&str| {
        !label.is_empty() && label.len() <= 3 && label.bytes().all(|byte| byte.is_ascii_digit())
    };
    if scheme.is_some() && labels.len() == 4 && labels.iter().all(numeric) {
        return true;
    }
    let Some(top) = labels.pop() else { return false };
    let label = |label: &&str| {
        !label.is_empty()
            && label.chars().all(|character| is_word(character) || matches!(character, '%' | '-'))
    };
    let known = ["com", "net", "int", "edu", "gov", "org", "info", "mil"];
    if bare {
        return !labels.is_empty()
            && labels.iter().all(|part| label(part) && part.len() >= 2)
            && known.contains(&top);
    }
    let plain_top = (2..=63).contains(&top.len()) && top.bytes().all(|byte| byte.is_ascii_lowercase());
    let other_top = top.strip_prefix("xn--").is_some_and(|rest| (2..=59).contains(&rest.len()));
    labels.iter().all(label) && (plain_top || other_top)
}

/// Refuses a width of nothing.
pub(super) fn positive(width: i64) -> Result<usize, Error> {
    usize::try_from(width)
        .ok()
        .filter(|width| *width > 0)
        .ok_or_else(|| invalid("a width must be larger than 0"))
}
