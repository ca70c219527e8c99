//! Cuts a text into pieces. Tokens never reach from one piece into the next.

use regex::Regex;

/// The pattern that OpenAI publishes for `cl100k_base`, without its two last ways to match, `\s+(?!\S)|\s+`: see [`Pieces`].
pub(super) const CL100K: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+";

/// The same for `o200k_base`.
pub(super) const O200K: &str = concat!(
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|",
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+",
);

/// The pieces of a text, from left to right.
///
/// The engine has no `(?!\S)`, so `\s+` matches all white space and gives its last character back if a visible one follows:
/// that is what `\s+(?!\S)|\s+` does. No other way to match ends with white space that is no line end.
pub(super) struct Pieces<'a> {
    pattern: &'a Regex,
    rest: &'a str,
}

/// Compiles a pattern.
pub(super) fn compile(pattern: &str) -> Regex {
    Regex::new(&format!(r"\A(?:{pattern}|\s+)"))
        .expect("the patterns are part of the program, and tests use both")
}

impl<'a> Pieces<'a> {
    pub(super) fn of(pattern: &'a Regex, text: &'a str) -> Pieces<'a> {
        Pieces { pattern, rest: text }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let mut end = self.pattern.find(self.rest)?.end();
        let last = self.rest[..end].chars().next_back()?;
        let visible_follows = end < self.rest.len();
        if visible_follows && last.is_whitespace() && !matches!(last, '\r' | '\n') && end > last.len_utf8() {
            end -= last.len_utf8();
        }
        let (piece, rest) = self.rest.split_at(end);
        self.rest = rest;
        Some(piece)
    }
}
