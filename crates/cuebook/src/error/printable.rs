//! Text of strangers on its way to a terminal.
//!
//! Code of a pack, what a hook prints, and the text of an exception come from somebody else. Shown as they are, they could
//! steer the terminal, or make a line look like another than it is (control characters, and marks that turn the direction
//! of writing). The excerpts of a report are made safe by what renders them; everything else goes through here.

use std::borrow::Cow;

/// The text in one line, with nothing in it that a terminal would act upon.
pub fn printable(text: &str) -> Cow<'_, str> {
    replace(text, |letter| letter == '\t')
}

/// The same for a text that may have several lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    replace(text, |letter| letter == '\t' || letter == '\n')
}

/// A text of several lines with every letter that steers a terminal or hides written as its number, as in `\\u{1b}`. For somebody
/// who decides by what they see: nothing is dropped, and no two texts look the same.
pub fn escaped_lines(text: &str) -> String {
    let mut escaped = String::new();
    for letter in text.chars() {
        match letter {
            '\n' => escaped.push('\n'),
            '\\' => escaped.push_str("\\\\"),
            letter if letter.is_control() || turns_direction(letter) || hides(letter) => {
                escaped.extend(letter.escape_unicode());
            }
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// Whether a letter has no width, or looks like a space without being one.
fn hides(letter: char) -> bool {
    matches!(
        letter,
        '\u{a0}' | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{2000}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{202f}' | '\u{205f}'..='\u{2065}' | '\u{206a}'..='\u{206f}'
            | '\u{3000}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn replace(text: &str, is_fine: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_bad = |letter: char| (letter.is_control() && !is_fine(letter)) || turns_direction(letter);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(
        text.chars()
            .map(|letter| match letter {
                '\n' if is_bad(letter) => ' ',
                letter if is_bad(letter) => '\u{fffd}',
                letter => letter,
            })
            .collect(),
    )
}

fn turns_direction(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_shows_every_letter_that_hides() {
        assert_eq!(
            escaped_lines("a\x1b[2J\n\tb\u{202e}\u{200b}\u{9b}\\u"),
            "a\\u{1b}[2J\n\\u{9}b\\u{202e}\\u{200b}\\u{9b}\\\\u"
        );
        assert_eq!(escaped_lines("日本語 é"), "日本語 é");
    }

    #[test]
    fn nothing_that_steers_a_terminal_or_turns_text_around_is_left() {
        assert_eq!(printable("a\x1b[2J\u{9b}b\u{202e}c\nd\te"), "a\u{fffd}[2J\u{fffd}b\u{fffd}c d\te");
        assert_eq!(printable_lines("a\nb\r"), "a\nb\u{fffd}");
        assert!(matches!(printable("日本語 \u{1f600}"), Cow::Borrowed(_)));
    }
}
