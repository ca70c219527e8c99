//! Untrusted text on its way to a terminal.
//!
//! File names, code of a pack, output of a hook and texts of exceptions come from other people. Printed raw they could control
//! the terminal, reverse the writing direction, or hide letters. Each such character is shown as its escape, `\u{202e}`.
//! `report` does the same for its excerpts.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text in one line, with every hidden character escaped.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter == '\t')
}

/// The same for a text that may have several lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |letter| letter == '\t' || letter == '\n')
}

/// A text of several lines in which no two texts look the same: backslashes are doubled, and unusual spaces are escaped too. For a
/// user who decides by what they see.
pub fn escaped_lines(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\n' => escaped.push('\n'),
            '\\' => escaped.push_str("\\\\"),
            letter if is_hidden(letter) || is_unusual_space(letter) => {
                escaped.extend(letter.escape_unicode())
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The same in one line: a name that breaks lines could draw what looks like the rest of the screen.
pub fn escaped_line(text: &str) -> String {
    escaped_lines(text).replace('\n', "\\n")
}

/// A word of a command that a message suggests, as a shell reads it. A name of a project could otherwise be a command of its own.
pub fn shell_word(word: &str) -> Cow<'_, str> {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+=:@%,".contains(letter);
    match !word.is_empty() && word.chars().all(plain) {
        true => Cow::Borrowed(word),
        false => Cow::Owned(format!("'{}'", word.replace('\'', r"'\''"))),
    }
}

/// Whether a letter looks like a space or another letter without being one.
fn is_unusual_space(letter: char) -> bool {
    matches!(letter, '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' | '\u{fe00}'..='\u{fe0f}')
}

fn escaped(text: &str, is_fine: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(|letter| is_hidden(letter) && !is_fine(letter)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut before = '\0';
    for letter in text.chars() {
        if !is_hidden(letter) || is_fine(letter) || joins(letter, before) {
            out.push(letter);
        } else if letter == '\n' {
            out.push_str("\\n");
        } else {
            // Writing to a String cannot fail.
            let _ = write!(out, "\\u{{{:x}}}", u32::from(letter));
        }
        before = letter;
    }
    Cow::Owned(out)
}

/// Whether a reader does not see a character as itself: it controls the terminal, turns the direction of writing, or has no
/// width.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Joiners are part of emoji and of some scripts. Between ASCII letters they only hide.
fn joins(letter: char, before: char) -> bool {
    matches!(letter, '\u{200c}' | '\u{200d}') && !before.is_ascii() && !is_hidden(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown_as_escapes() {
        assert_eq!(
            printable("a\x1b[2J\u{9b}b\u{202e}c\nd\te\u{200b}\u{2028}"),
            "a\\u{1b}[2J\\u{9b}b\\u{202e}c\\nd\te\\u{200b}\\u{2028}"
        );
        assert_eq!(printable_lines("a\nb\r"), "a\nb\\u{d}");
        assert_eq!(printable("a\u{200d}b\u{e0061}\u{2066}"), "a\\u{200d}b\\u{e0061}\\u{2066}");
    }

    #[test]
    fn escaped_text_shows_every_letter_that_hides() {
        assert_eq!(
            escaped_lines("a\x1b[2J\n\tb\u{202e}\u{200b}\u{9b}\\u"),
            "a\\u{1b}[2J\n\\u{9}b\\u{202e}\\u{200b}\\u{9b}\\\\u"
        );
        assert_eq!(escaped_lines("日本語 é"), "日本語 é");
        assert_eq!(escaped_line("a\nb\\n"), "a\\nb\\\\n");
    }

    #[test]
    fn a_shell_word_runs_nothing() {
        for (word, shown) in [
            ("desk/refund_2", "desk/refund_2"),
            ("größe", "größe"),
            ("", "''"),
            ("two words", "'two words'"),
            ("a; rm -r b", "'a; rm -r b'"),
            ("$(id)`id`", "'$(id)`id`'"),
            ("it's", r"'it'\''s'"),
            ("~", "'~'"),
        ] {
            assert_eq!(shell_word(word), shown);
        }
    }

    #[test]
    fn ordinary_text_and_emoji_stay_as_they_are() {
        assert!(matches!(printable("日本語 \u{1f600}"), Cow::Borrowed(_)));
        assert_eq!(printable("👩\u{200d}💻 می\u{200c}خواهم"), "👩\u{200d}💻 می\u{200c}خواهم");
    }
}
