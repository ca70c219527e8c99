//! What stands under a cursor.

use std::ops::Range;

/// What a cursor is in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Inside<'t> {
    /// Text of the author.
    Text,
    /// The name of a tag: `{% fo|`.
    Tag(&'t str),
    /// The name of a filter: `{{ x|up|`.
    Filter(&'t str),
    /// The name of a test: `{% if x is def|`.
    Test(&'t str),
    /// A string that names another template: `{% include "parts/|`.
    Path(&'t str),
    /// A name, with everything before its last dot: `{{ system.da|`.
    Name { before: &'t str, word: &'t str },
}

/// The tags whose string names another template.
pub(super) const LOADING: [&str; 4] = ["include", "extends", "import", "from"];

/// What a cursor at this byte is in.
pub(super) fn inside(text: &str, offset: usize) -> Inside<'_> {
    let before = &text[..floor(text, offset)];
    let word_start = before.rfind(|letter: char| !is_word(letter)).map_or(0, |at| at + width(before, at));
    let word = &before[word_start..];
    // `$name` and `${name}` of sections, `{input:name}` of directives.
    let lead = &before[..word_start];
    if lead.ends_with('$') || lead.ends_with("${") || lead.ends_with("{input:") {
        return Inside::Name { before: "", word };
    }
    let Some(open) = before.rfind("{{").max(before.rfind("{%")) else { return Inside::Text };
    let tag = &before[open + 2..];
    if tag.contains("}}") || tag.contains("%}") {
        return Inside::Text;
    }
    let is_statement = before[open..].starts_with("{%");
    let content = tag.trim_start_matches(['-', '+']).trim_start();
    if is_statement && content == word {
        return Inside::Tag(word);
    }
    let quotes = tag.bytes().filter(|byte| *byte == b'"').count() % 2 == 1;
    let apostrophes = tag.bytes().filter(|byte| *byte == b'\'').count() % 2 == 1;
    if quotes || apostrophes {
        let start = tag.rfind(if quotes { '"' } else { '\'' }).map_or(tag.len(), |at| at + 1);
        let keyword = content.split(|letter: char| !is_word(letter)).next().unwrap_or_default();
        return match is_statement && LOADING.contains(&keyword) {
            true => Inside::Path(&tag[start..]),
            false => Inside::Text,
        };
    }
    // `{{> partial` of Mustache.
    if !is_statement && content.starts_with('>') {
        return Inside::Path(content[1..].trim_start());
    }
    let lead = tag[..tag.len() - word.len()].trim_end();
    if lead.ends_with('|') {
        return Inside::Filter(word);
    }
    if ends_with_word(lead, "is")
        || (ends_with_word(lead, "not") && ends_with_word(lead[..lead.len() - 3].trim_end(), "is"))
    {
        return Inside::Test(word);
    }
    let path_start =
        tag.rfind(|letter: char| !is_word(letter) && letter != '.').map_or(0, |at| at + width(tag, at));
    let path = &tag[path_start..tag.len() - word.len()];
    Inside::Name { before: path.trim_end_matches('.'), word }
}

/// The whole word around a byte.
pub(super) fn word_at(text: &str, offset: usize) -> Range<usize> {
    let offset = floor(text, offset);
    let start = text[..offset].rfind(|letter: char| !is_word(letter)).map_or(0, |at| at + width(text, at));
    let end = text[offset..].find(|letter: char| !is_word(letter)).map_or(text.len(), |at| offset + at);
    start..end
}

pub(super) fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|before| !before.ends_with(is_word))
}

fn width(text: &str, at: usize) -> usize {
    text[at..].chars().next().map_or(1, char::len_utf8)
}

pub(super) fn floor(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_in_text_a_tag_a_filter_a_test_a_path_or_a_name() {
        let at = |text: &'static str| inside(text, text.len());
        assert_eq!(at("Hello na"), Inside::Text);
        assert_eq!(at("{{ a }} na"), Inside::Text);
        assert_eq!(at("{% fo"), Inside::Tag("fo"));
        assert_eq!(at("{%- "), Inside::Tag(""));
        assert_eq!(at("{{ x | up"), Inside::Filter("up"));
        assert_eq!(at("{{ x|"), Inside::Filter(""));
        assert_eq!(at("{% if x is def"), Inside::Test("def"));
        assert_eq!(at("{% if x is not "), Inside::Test(""));
        assert_eq!(at("{% include \"parts/he"), Inside::Path("parts/he"));
        assert_eq!(at("{% if x == \"a"), Inside::Text);
        assert_eq!(at("{{ na"), Inside::Name { before: "", word: "na" });
        assert_eq!(at("{{ system.da"), Inside::Name { before: "system", word: "da" });
        assert_eq!(at("{{ a.b."), Inside::Name { before: "a.b", word: "" });
        assert_eq!(at("Hi $na"), Inside::Name { before: "", word: "na" });
        assert_eq!(at("Hi {input:na"), Inside::Name { before: "", word: "na" });
        assert_eq!(at("{{> gre"), Inside::Path("gre"));
        // Half a letter does not count.
        assert_eq!(inside("{{ é", 4), Inside::Name { before: "", word: "" });
    }

    #[test]
    fn a_word_is_found_from_anywhere_in_it() {
        let text = "{{ user.name|upper }}";
        let word = |at: usize| &text[word_at(text, at)];
        assert_eq!((word(3), word(5), word(7), word(9)), ("user", "user", "user", "name"));
        assert_eq!(word(14), "upper");
        assert_eq!(word(0), "");
    }
}
