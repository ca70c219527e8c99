//! What a search asks for: words, "phrases", wild*cards, AND, OR, NOT and parentheses.
//!
//! `OR` binds least, then `AND` (which may be left out), then `NOT`; the words may be written in any case. What makes no
//! sense, such as an operator with nothing behind it, is left out, and a query without anything in it finds everything. (A
//! search refuses one that has operators and no word, because it does not mean everything.)

use std::ops::Range;

use memchr::memmem::Finder;

/// How deep parentheses may lie in each other.
const DEEPEST: usize = 32;

/// A query that can be asked of texts.
#[derive(Debug)]
pub struct Query {
    root: Option<Node>,
    /// How many letters of a word may differ.
    fuzzy: Option<usize>,
    /// Within how many words the words of the query must stand.
    near: Option<usize>,
}

#[derive(Debug)]
enum Node {
    Any(Vec<Node>),
    All(Vec<Node>),
    Not(Box<Node>),
    /// A word or a phrase, in small letters.
    Text(Box<Finder<'static>>),
    Wildcard(Wildcard),
}

#[derive(Debug)]
struct Wildcard {
    pattern: Vec<char>,
    /// The longest piece without a star: what does not have it does not match.
    literal: Box<Finder<'static>>,
    /// Of a piece of a word with a star on one side or both: whether a word may go on before it, and behind it.
    open: Option<(bool, bool)>,
}

enum Token<'q> {
    Open,
    Close,
    And,
    Or,
    Not,
    Word(&'q str),
    Phrase(&'q str),
}

impl Query {
    /// Reads a query.
    pub fn new(text: &str) -> Query {
        let tokens = tokens(text);
        let mut reader = QueryParser { tokens: &tokens, at: 0 };
        let mut parts = Vec::new();
        // A `)` too many ends nothing.
        while reader.at < tokens.len() {
            parts.extend(reader.any(0));
            reader.at += 1;
        }
        Query { root: all(parts), fuzzy: None, near: None }
    }

    /// Lets words differ in this many letters.
    #[must_use]
    pub fn fuzzy(mut self, distance: Option<usize>) -> Query {
        self.fuzzy = distance;
        self
    }

    /// Asks that the words of the query stand within this many words of each other.
    #[must_use]
    pub fn near(mut self, distance: Option<usize>) -> Query {
        self.near = distance;
        self
    }

    /// Whether it finds everything.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// Whether a text is found, whatever the case of its letters.
    pub fn finds(&self, text: &str) -> bool {
        self.finds_lower(&text.to_lowercase())
    }

    /// Whether a text that has small letters is found.
    pub(super) fn finds_lower(&self, text: &str) -> bool {
        self.found_in(&Fields { text, ends: &[] }) & WHOLE != 0
    }

    /// Which fields of an item are found by themselves, and whether the whole is, with one look at its text.
    pub(super) fn found_in(&self, fields: &Fields<'_>) -> FieldMatches {
        let Some(root) = &self.root else { return EVERYTHING };
        let mut found = self.matches(root, fields);
        if let Some(distance) = self.near {
            if found & WHOLE != 0 && !is_near(root, fields.text, distance) {
                found &= !WHOLE;
            }
            for index in 0..=fields.ends.len() {
                let bit = 1 << index;
                if found & bit != 0 && !is_near(root, fields.get(index), distance) {
                    found &= !bit;
                }
            }
        }
        found
    }

    fn matches(&self, node: &Node, fields: &Fields<'_>) -> FieldMatches {
        match node {
            Node::Any(nodes) => {
                let mut found = 0;
                for node in nodes {
                    found |= self.matches(node, fields);
                    if found == EVERYTHING {
                        break;
                    }
                }
                found
            }
            Node::All(nodes) => {
                let mut found = EVERYTHING;
                for node in nodes {
                    found &= self.matches(node, fields);
                    if found == 0 {
                        break;
                    }
                }
                found
            }
            Node::Not(node) => !self.matches(node, fields) & EVERYTHING,
            Node::Wildcard(wild) => wild.matches(fields),
            Node::Text(finder) => {
                let mut found = fields.having(finder);
                if let Some(distance) = self.fuzzy {
                    let wanted = String::from_utf8_lossy(finder.needle());
                    let near = |word: &str| strsim::levenshtein(&wanted, word) <= distance;
                    for index in 0..=fields.ends.len() {
                        if found & (1 << index) == 0 && words(fields.get(index)).any(near) {
                            found |= WHOLE | 1 << index;
                        }
                    }
                }
                found
            }
        }
    }
}

/// What a query finds of an item: a bit for each of its fields, from the lowest, and [`WHOLE`].
pub(super) type FieldMatches = u8;

/// The bit that says that an item is found when its fields are read as one text.
pub(super) const WHOLE: FieldMatches = 1 << 7;

const EVERYTHING: FieldMatches = FieldMatches::MAX;

/// The text of an item in small letters: its fields, with a space between each two.
pub(super) struct Fields<'t> {
    pub(super) text: &'t str,
    /// Where all fields but the last end; at most six.
    pub(super) ends: &'t [u32],
}

impl<'t> Fields<'t> {
    fn end(&self, index: usize) -> usize {
        self.ends.get(index).map_or(self.text.len(), |end| *end as usize)
    }

    /// The text of a field, by its place among them.
    pub(super) fn get(&self, index: usize) -> &'t str {
        let start = if index == 0 { 0 } else { self.end(index - 1) + 1 };
        self.text.get(start..self.end(index)).unwrap_or_default()
    }

    /// The fields that have a piece of text, and whether the whole has it.
    fn having(&self, finder: &Finder<'_>) -> FieldMatches {
        let (bytes, length) = (self.text.as_bytes(), finder.needle().len());
        let (mut found, mut from, mut field) = (0, 0, 0);
        while let Some(at) = bytes.get(from..).and_then(|rest| finder.find(rest)) {
            let at = from + at;
            found |= WHOLE;
            while field < self.ends.len() && self.end(field) < at {
                field += 1;
            }
            if at + length <= self.end(field) {
                found |= 1 << field;
                if field == self.ends.len() {
                    break;
                }
                // More of it in this field would say nothing new.
                from = self.end(field) + 1;
            } else {
                // It begins in one field and ends in another.
                from = at + 1;
            }
        }
        found
    }
}

impl Wildcard {
    fn new(pattern: &str) -> Wildcard {
        let literal = pattern.split(['*', '?']).max_by_key(|part| part.len()).unwrap_or_default();
        let (before, behind) = (pattern.starts_with('*'), pattern.ends_with('*'));
        let plain = pattern.trim_matches('*') == literal && literal.chars().all(is_of_word);
        let open = plain.then_some((before, behind));
        let literal = Box::new(Finder::new(literal).into_owned());
        Wildcard { pattern: pattern.chars().collect(), literal, open }
    }

    /// The fields that have a word which fits. No word lies in two fields, so the whole has what they have.
    fn matches(&self, fields: &Fields<'_>) -> FieldMatches {
        if !self.literal.needle().is_empty() {
            return self.around_the_literal(fields);
        }
        let any_word = self.pattern.iter().all(|letter| *letter == '*');
        let has = |text: &str| match any_word {
            true => text.chars().any(is_of_word),
            false => words(text).any(|word| fits(&self.pattern, word)),
        };
        let found = (0..=fields.ends.len()).filter(|index| has(fields.get(*index)));
        found.fold(0, |found, index| found | WHOLE | 1 << index)
    }

    /// Only the words around the literal can fit.
    fn around_the_literal(&self, fields: &Fields<'_>) -> FieldMatches {
        let bytes = fields.text.as_bytes();
        let (mut found, mut from, mut field) = (0, 0, 0);
        while let Some(at) = bytes.get(from..).and_then(|rest| self.literal.find(rest)) {
            let at = from + at;
            while field < fields.ends.len() && fields.end(field) < at {
                field += 1;
            }
            let (fits, next) = self.fits_around(fields.text, at);
            from = next;
            if fits {
                found |= WHOLE | 1 << field;
                if field == fields.ends.len() {
                    break;
                }
                from = fields.end(field) + 1;
            }
        }
        found
    }

    /// Whether the word around a literal fits, and from where on another one may.
    fn fits_around(&self, text: &str, at: usize) -> (bool, usize) {
        let Some((before, behind)) = self.open else {
            let word = word_at(text, at);
            return (fits(&self.pattern, &text[word.clone()]), word.end.max(at + 1));
        };
        // The letters next to it tell, without a look at the rest of the word.
        let end = at + self.literal.needle().len();
        let begins = before || !text[..at].chars().next_back().is_some_and(is_of_word);
        let ends = behind || !text[end..].chars().next().is_some_and(is_of_word);
        (begins && ends, at + 1)
    }
}

/// The word that an offset lies in.
fn word_at(text: &str, at: usize) -> Range<usize> {
    let before = text[..at].char_indices().rev().take_while(|(_, letter)| is_of_word(*letter)).last();
    let start = before.map_or(at, |(start, _)| start);
    let end = text[at..].find(|letter| !is_of_word(letter)).map_or(text.len(), |end| at + end);
    start..end
}

fn is_of_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || (!letter.is_ascii() && letter.is_alphanumeric())
}

/// Whether a word fits a pattern with stars and question marks.
fn fits(pattern: &[char], word: &str) -> bool {
    let (mut at, mut rest) = (0, word);
    let mut retry: Option<(usize, &str)> = None;
    loop {
        let next = rest.chars().next();
        match (pattern.get(at), next) {
            (Some('*'), _) => {
                retry = Some((at + 1, rest));
                at += 1;
                continue;
            }
            (Some(wanted), Some(found)) if *wanted == found || *wanted == '?' => {
                at += 1;
                rest = &rest[found.len_utf8()..];
                continue;
            }
            (None, None) => return true,
            _ => {}
        }
        // The last star takes one more letter.
        let Some((after, from)) = retry else { return false };
        let Some(skipped) = from.chars().next() else { return false };
        rest = &from[skipped.len_utf8()..];
        retry = Some((after, rest));
        at = after;
    }
}

/// The words of a text: letters, digits and underscores.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !is_of_word(letter)).filter(|word| !word.is_empty())
}

/// Whether all plain words of a query that must be there stand near each other.
fn is_near(root: &Node, text: &str, distance: usize) -> bool {
    let Node::All(nodes) = root else { return true };
    let needles: Vec<&[u8]> = nodes
        .iter()
        .filter_map(|node| match node {
            Node::Text(finder) => Some(finder.needle()),
            _ => None,
        })
        .collect();
    let words: Vec<&str> = words(text).collect();
    let has = |word: &str, needle: &[u8]| memchr::memmem::find(word.as_bytes(), needle).is_some();
    let Some((first, others)) = needles.split_first() else { return true };
    words.iter().enumerate().filter(|(_, word)| has(word, first)).any(|(at, _)| {
        let around = &words[at.saturating_sub(distance)..(at + distance + 1).min(words.len())];
        others.iter().all(|needle| around.iter().any(|word| has(word, needle)))
    })
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let after = &rest[first.len_utf8()..];
        rest = match first {
            '(' | ')' => {
                tokens.push(if first == '(' { Token::Open } else { Token::Close });
                after
            }
            '"' => {
                // A phrase that is never closed goes to the end.
                let (phrase, after) = after.split_once('"').unwrap_or((after, ""));
                if !phrase.is_empty() {
                    tokens.push(Token::Phrase(phrase));
                }
                after
            }
            _ => {
                let end = rest.find(|c: char| c.is_whitespace() || "()\"".contains(c)).unwrap_or(rest.len());
                let (word, after) = rest.split_at(end);
                tokens.push(match word.to_ascii_uppercase().as_str() {
                    "AND" => Token::And,
                    "OR" => Token::Or,
                    "NOT" => Token::Not,
                    _ => Token::Word(word),
                });
                after
            }
        }
        .trim_start();
    }
    tokens
}

struct QueryParser<'q> {
    tokens: &'q [Token<'q>],
    at: usize,
}

impl QueryParser<'_> {
    fn any(&mut self, depth: usize) -> Option<Node> {
        let mut parts = Vec::new();
        loop {
            parts.extend(self.all(depth));
            match self.tokens.get(self.at) {
                Some(Token::Or) => self.at += 1,
                _ => break,
            }
        }
        if parts.len() > 1 { Some(Node::Any(parts)) } else { parts.pop() }
    }

    fn all(&mut self, depth: usize) -> Option<Node> {
        let mut parts = Vec::new();
        loop {
            match self.tokens.get(self.at) {
                None | Some(Token::Or | Token::Close) => break,
                Some(Token::And) => self.at += 1,
                Some(_) => parts.extend(self.not(depth)),
            }
        }
        all(parts)
    }

    fn not(&mut self, depth: usize) -> Option<Node> {
        let mut negated = false;
        loop {
            let token = self.tokens.get(self.at);
            let node = match token {
                Some(Token::Not) => {
                    negated = !negated;
                    self.at += 1;
                    continue;
                }
                Some(Token::Open) => {
                    self.at += 1;
                    // Deeper parentheses are read as if they were not there.
                    if depth >= DEEPEST {
                        continue;
                    }
                    let inner = self.any(depth + 1);
                    if let Some(Token::Close) = self.tokens.get(self.at) {
                        self.at += 1;
                    }
                    inner
                }
                Some(Token::Word(word)) => {
                    self.at += 1;
                    Some(term(word))
                }
                Some(Token::Phrase(phrase)) => {
                    self.at += 1;
                    Some(Node::Text(Box::new(Finder::new(&phrase.to_lowercase()).into_owned())))
                }
                _ => return None,
            };
            return match negated {
                true => node.map(|node| Node::Not(Box::new(node))),
                false => node,
            };
        }
    }
}

fn all(mut parts: Vec<Node>) -> Option<Node> {
    if parts.len() > 1 { Some(Node::All(parts)) } else { parts.pop() }
}

fn term(word: &str) -> Node {
    let word = word.to_lowercase();
    match word.contains('*') {
        true => Node::Wildcard(Wildcard::new(&word)),
        false => Node::Text(Box::new(Finder::new(&word).into_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_finds_what_it_says() {
        for (query, text, wanted) in [
            ("file system", "the FILE in a System", true),
            ("file system", "the file", false),
            ("file OR dir", "dir", true),
            ("a OR b c", "b", false),
            ("a OR b c", "a", true),
            ("(a OR b) c", "b c", true),
            ("(a OR b) c", "a", false),
            ("NOT x", "y", true),
            ("not not x", "x", true),
            ("a not b", "a b", false),
            ("\"file system\"", "file  system", false),
            ("\"File System", "my file system", true),
            ("file*", "my filesystem", true),
            ("file*", "profile", false),
            ("*sys*", "filesystem", true),
            ("f*l*m", "filesystem", true),
            ("f*l*x", "filesystem", false),
            ("*", "", false),
            ("*", "x", true),
            ("and", "zzz", true),
            ("", "zzz", true),
            ("a AND", "a", true),
            ("OR a", "b", false),
            (")a(", "a", true),
            ("a ) b", "a", false),
            ("()", "a", true),
            ("foo-bar", "foo-bar baz", true),
            ("ÉTÉ", "été", true),
            ("?*", "é", true),
            ("é*", "l'été", true),
            ("*été", "l'été", true),
            ("foo-*", "foo-bar", false),
            ("a*c", "xabc abc", true),
            ("a*c", "xabc abcd", false),
            ("*ab", "abc xab", true),
            ("*ab", "abc", false),
            ("*ab*", "xabc", true),
            ("ab*", "xab-abc", true),
            ("été*", "xété", false),
            ("**ab**", "xabc", true),
        ] {
            assert_eq!(Query::new(query).finds(text), wanted, "{query:?} in {text:?}");
        }
        let deep = format!("{}a{}", "(".repeat(10_000), ")".repeat(10_000));
        assert!(Query::new(&deep).finds("a"));
        assert!(!Query::new(&deep).finds("b"));
    }

    #[test]
    fn words_may_differ_a_little_or_must_be_near() {
        assert!(Query::new("filesystm").fuzzy(Some(1)).finds("a filesystem"));
        assert!(!Query::new("filesystm").fuzzy(Some(1)).finds("a filing system"));
        assert!(Query::new("a z").near(Some(2)).finds("a b z"));
        assert!(!Query::new("a z").near(Some(2)).finds("a b c d z"));
    }

    #[test]
    fn searching_fields_together_equals_searching_each() {
        let items = [
            ["fox", "red fox", "a fox of the wood", "animals", "the quick brown fox"],
            ["", "été", "l'été", "", "aaa aab"],
            ["brown", "fox", "", "no", "note_1 foxes"],
            ["xfox", "fo", "x", "f", "ox"],
        ];
        let queries = [
            "fox",
            "brown fox",
            "\"brown fox\"",
            "\"fo x\"",
            "\" \"",
            "NOT fox",
            "fox NOT red",
            "fo*",
            "*x",
            "*",
            "?*",
            "no* AND aab",
            "aa*b",
            "é*",
            "(red OR brown) fox",
            "NOT (red fox)",
            "zebra",
            "",
            "a",
            "ox OR aab",
        ];
        for fields in items {
            let text = fields.join(" ");
            let mut ends = Vec::new();
            for field in &fields[..4] {
                let start = ends.last().map_or(0, |end| end + 1);
                ends.push(start + u32::try_from(field.len()).unwrap());
            }
            for query in queries {
                for (fuzzy, near) in [(None, None), (Some(1), None), (None, Some(1)), (Some(1), Some(2))] {
                    let asked = Query::new(query).fuzzy(fuzzy).near(near);
                    let found = asked.found_in(&Fields { text: &text, ends: &ends });
                    assert_eq!(found & WHOLE != 0, asked.finds(&text), "{query:?} in {text:?}");
                    for (index, field) in fields.iter().enumerate() {
                        let alone = asked.finds(field);
                        assert_eq!(found & (1 << index) != 0, alone, "{query:?} in {field:?} of {text:?}");
                    }
                }
            }
        }
    }
}
