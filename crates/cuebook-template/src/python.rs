//! What Python's `str` does to text.

use std::borrow::Cow;

/// Whether Python calls a character a space: Unicode's white space and four separators of ASCII.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || ('\x1c'..='\x1f').contains(&character)
}

/// Where the digits of a script begin, for the scripts in common use.
const ZEROS: [u32; 18] = [
    0x30, 0x660, 0x6f0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xe50, 0xed0, 0xf20,
    0x1040, 0x17e0, 0xff10,
];

/// The digit that a character is in its script.
pub(crate) fn decimal(character: char) -> Option<u8> {
    let code = u32::from(character);
    let digit = ZEROS.iter().find_map(|zero| code.checked_sub(*zero).filter(|digit| *digit < 10));
    digit.and_then(|digit| u8::try_from(digit).ok())
}

/// A text with the digits of all scripts as those of ASCII, as Python reads numbers.
pub(crate) fn ascii_digits(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    let ascii = |character| decimal(character).map_or(character, |digit| char::from(b'0' + digit));
    Cow::Owned(text.chars().map(ascii).collect())
}

/// The ranges of lines as `str.splitlines` cuts them, with or without their ends.
pub fn line_ranges(text: &str, keep_ends: bool) -> Vec<(usize, usize)> {
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
        lines.push((start, if keep_ends { end } else { at }));
        start = end;
    }
    if start < text.len() {
        lines.push((start, text.len()));
    }
    lines
}

/// The byte offset of a character, or the end.
pub(crate) fn offset_of(text: &str, characters: usize) -> usize {
    if text.is_ascii() {
        return characters.min(text.len());
    }
    text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at)
}

pub(crate) fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

pub(crate) fn capitalize(text: &str) -> String {
    let mut characters = text.chars();
    let Some(first) = characters.next() else { return String::new() };
    let mut large = first.to_uppercase();
    let mut out: String = large.next().into_iter().collect();
    out.extend(large.flat_map(char::to_lowercase));
    out + &characters.as_str().to_lowercase()
}

/// `str.title`: the first letter of every run of letters is large.
pub(crate) fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut inside = false;
    for character in text.chars() {
        let cased = is_cased(character);
        if cased && inside {
            out.extend(character.to_lowercase());
        } else if cased {
            out.push_str(&capital(character));
        } else {
            out.push(character);
        }
        inside = cased;
    }
    out
}

/// The character as a capital: of several letters only the first is large.
fn capital(character: char) -> String {
    let mut large = character.to_uppercase();
    let mut out: String = large.next().into_iter().collect();
    out.extend(large.flat_map(char::to_lowercase));
    out
}

pub(crate) fn is_cased(character: char) -> bool {
    character.is_lowercase() || character.is_uppercase() || character.to_lowercase().next() != Some(character)
}

pub(crate) fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_uppercase() {
            out.extend(character.to_lowercase());
        } else {
            out.extend(character.to_uppercase());
        }
    }
    out
}

/// Whether Python calls a character printable.
pub(crate) fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    if character.is_alphanumeric() {
        return true;
    }
    // The standard library keeps that table to itself but escapes by it; a letter goes first because a mark that begins
    // a string is escaped for another reason.
    format!("a{character}").escape_debug().nth(1) != Some('\\')
}

/// A number as Python writes it: the shortest digits that give it back.
pub fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // Rust's debug form changes to an exponent at the same points, and differs only in how the exponent is written.
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{mantissa}e{}", signed_exponent(exponent)),
        None => text,
    }
}

pub(crate) fn signed_exponent(exponent: &str) -> String {
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{sign}{digits:0>2}")
}

/// A string as Python writes it in source code.
pub(crate) fn quote(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            _ if character == quote => {
                out.push('\\');
                out.push(character);
            }
            _ if is_printable(character) => out.push(character),
            _ => out.push_str(&escape(character)),
        }
    }
    out.push(quote);
}

/// A character by its number.
pub(crate) fn escape(character: char) -> String {
    match u32::from(character) {
        code @ ..=0xff => format!("\\x{code:02x}"),
        code @ 0x100..=0xffff => format!("\\u{code:04x}"),
        code => format!("\\U{code:08x}"),
    }
}

/// Text that is safe in HTML.
pub(crate) fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&#39;"),
            '"' => out.push_str("&#34;"),
            _ => out.push(character),
        }
    }
    out
}
