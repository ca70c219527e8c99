//! Where a text can be cut so that the counts of its two halves add up.
//!
//! Both vocabularies first cut a text into pieces, from left to right, by a pattern that never looks back; each piece is
//! then encoded on its own. So `count(a + b) = count(a) + count(b)` wherever a piece ends between `a` and `b` and the
//! pieces of `a` are the same without `b`. That is certain if
//!
//! > `a` ends with a line end (`\n` or `\r`), and `b` begins with a character that is neither white space nor `/`.
//!
//! **A piece ends there.** Take the piece that has the last character of `a`. A line end can be in a piece in these ways only:
//!
//! - after punctuation, `[^\s\p{L}\p{N}]+[\r\n]*` (o200k: `[\r\n/]*`): goes on over line ends and slashes, and `b` begins with
//!   neither;
//! - in white space up to its last line end, `\s*[\r\n]+`: `b` begins with no white space, so the last line end of this run is
//!   the end of `a`;
//! - in other white space, `\s+(?!\S)` and `\s+`: these come later in the pattern than the one before, which matches every run
//!   of white space that has a line end, so they never see one.
//!
//! A word takes one character in front of its letters, but no line end.
//!
//! **The pieces of `a` do not depend on `b`.** Of the ways to match at a place, the pattern has a fixed preference. Cutting
//! `b` off removes ways that reach into `b`, none of which was taken, and adds only those that ask what follows the end of
//! `a`: `\s+(?!\S)` and `\s+$` up to the end. They can begin in the last run of white space of `a` only, whose last character is
//! a line end; there `\s*[\r\n]+` takes the whole run already.
//!
//! So Markdown sections, which begin with `#` and are joined by empty lines, have counts that add up. Tests try the rule on
//! random texts, held against another tokenizer.

/// Whether the counts of two texts certainly add up to the count of both together, in every vocabulary. If not, nothing is
/// said: they may still add up.
///
/// ```
/// use cuebook::tokens::splits_between;
///
/// assert!(splits_between("# Style\n\nBe brief.\n\n", "# Tools"));
/// assert!(!splits_between("Be", " brief."));
/// ```
pub fn splits_between(before: &str, after: &str) -> bool {
    before.ends_with(['\n', '\r']) && after.starts_with(|next: char| !next.is_whitespace() && next != '/')
}

/// Visits the text of joined parts in chunks, cut where counts add up. A chunk has as few parts as possible, and the
/// separator that follows them, so the same part is the same chunk wherever it stands (except at the end).
pub(super) fn chunks(parts: &[&str], separator: &str, mut visit: impl FnMut(&str)) {
    let mut chunk = String::new();
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            chunk.push_str(separator);
        }
        if splits_between(&chunk, part) {
            visit(&chunk);
            chunk.clear();
        }
        chunk.push_str(part);
    }
    if !chunk.is_empty() {
        visit(&chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunked(parts: &[&str], separator: &str) -> Vec<String> {
        let mut found = Vec::new();
        chunks(parts, separator, |chunk| found.push(chunk.to_owned()));
        assert_eq!(found.concat(), parts.join(separator));
        found
    }

    #[test]
    fn sections_are_chunks_of_their_own() {
        assert_eq!(chunked(&["# A", "# B\n", "# C"], "\n\n"), ["# A\n\n", "# B\n\n\n", "# C"]);
    }

    #[test]
    fn parts_stay_together_where_nothing_is_certain() {
        assert_eq!(chunked(&["a", " b", "/c", "", "d"], "\n"), ["a\n b\n/c\n\n", "d"]);
        assert_eq!(chunked(&["a", "b", "c"], " "), ["a b c"]);
        assert_eq!(chunked(&["", "", ""], "\n"), ["\n\n"]);
        assert_eq!(chunked(&[], "\n"), [""; 0]);
    }

    #[test]
    fn only_a_line_end_before_a_visible_character_splits() {
        for (before, after) in
            [("a\n", "b"), ("a\r", "b"), ("\u{20}\n", "#"), ("!\n\n", "'s"), ("1\n", "2"), ("a\n", "\u{301}")]
        {
            assert!(splits_between(before, after), "{before:?} {after:?}");
        }
        for (before, after) in [
            ("a\n", ""),
            ("", "a"),
            ("a\n", " b"),
            ("a\r", "\n"),
            ("a\n", "\u{2028}"),
            ("!\n", "/"),
            ("a", "b"),
            ("a ", "b"),
            ("a\u{2028}", "b"),
        ] {
            assert!(!splits_between(before, after), "{before:?} {after:?}");
        }
    }
}
