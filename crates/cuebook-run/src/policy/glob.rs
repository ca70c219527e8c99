//! Patterns of capabilities: `*` any characters, `?` one, `[a-z]` and `[!a]` one of several. There is no way to escape: `[*]` is
//! a star.
//!
//! A dot in a pattern is the one *between* the parts of an id, as it is written with slashes. A dot *inside* of a part is another
//! thing, so that `a.b/c` and `a/b.c` and `a/b/c` are three ids and no pattern for one of them opens the others by accident. Such a
//! dot is reached by `*`, `?` and `[.]`.

/// A character of what is matched, and whether it is a dot inside of a part.
pub(super) type PatternChar = (char, bool);

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Token {
    Is(char),
    One,
    Many,
    Set { negated: bool, ranges: Vec<(char, char)> },
}

/// A pattern that has been read. Every text is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Glob(Vec<Token>);

impl Glob {
    pub(super) fn new(pattern: &str) -> Glob {
        let chars: Vec<char> = pattern.chars().collect();
        let mut tokens = Vec::new();
        let mut at = 0;
        while let Some(&c) = chars.get(at) {
            at += 1;
            match c {
                '*' if tokens.last() == Some(&Token::Many) => {}
                '*' => tokens.push(Token::Many),
                '?' => tokens.push(Token::One),
                '[' => match set(&chars[at..]) {
                    Some((token, length)) => {
                        tokens.push(token);
                        at += length;
                    }
                    None => tokens.push(Token::Is('[')),
                },
                other => tokens.push(Token::Is(other)),
            }
        }
        Glob(tokens)
    }

    /// Whether it matches the whole of a text.
    pub(super) fn matches(&self, text: &[PatternChar]) -> bool {
        fits(&self.0, text, |token, (c, inside)| match token {
            Token::Is(wanted) => wanted == c && !*inside,
            Token::One | Token::Many => true,
            Token::Set { negated, ranges } => holds(ranges, *c) != *negated,
        })
    }

    /// Whether it matches all that another one matches. It may say no where a proof would take more than a look; it never says yes
    /// wrongly.
    pub(super) fn covers(&self, other: &Glob) -> bool {
        fits(&self.0, &other.0, |ours, theirs| match (ours, theirs) {
            (Token::Many, _) => true,
            (_, Token::Many) => false,
            (Token::One, _) => true,
            (Token::Set { negated, ranges }, Token::Is(c)) => holds(ranges, *c) != *negated,
            (ours, theirs) => ours == theirs,
        })
    }

    /// The pattern before a final `.*`, if that is how it ends.
    pub(super) fn folder(&self) -> Option<Glob> {
        match self.0.as_slice() {
            [folder @ .., Token::Is('.'), Token::Many] => Some(Glob(folder.to_vec())),
            _ => None,
        }
    }

    /// Whether it begins with this text, letter for letter.
    pub(super) fn begins_with(&self, text: &str) -> bool {
        let mut tokens = self.0.iter();
        text.chars().all(|c| tokens.next() == Some(&Token::Is(c)))
    }
}

/// A plain text as letters, in which every dot stands between parts.
pub(super) fn letters(text: &str) -> Vec<PatternChar> {
    text.chars().map(|c| (c, false)).collect()
}

fn holds(ranges: &[(char, char)], c: char) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&c))
}

/// Reads a set behind its opening bracket: the set and its length, or nothing if the bracket is never closed.
fn set(chars: &[char]) -> Option<(Token, usize)> {
    let negated = chars.first() == Some(&'!');
    let start = usize::from(negated);
    // A closing bracket that comes first is a member.
    let close = chars.iter().skip(start + 1).position(|c| *c == ']')? + start + 1;
    let members = &chars[start..close];
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(&first) = members.get(at) {
        match members.get(at + 1..at + 3) {
            Some(['-', last]) => {
                ranges.push((first, *last));
                at += 3;
            }
            _ => {
                ranges.push((first, first));
                at += 1;
            }
        }
    }
    Some((Token::Set { negated, ranges }, close + 1))
}

/// Whether tokens take up a whole row, one each, a star any number. Goes back to the last star only, so the work is bounded by the
/// product of both lengths.
fn fits<T>(tokens: &[Token], row: &[T], takes: impl Fn(&Token, &T) -> bool) -> bool {
    let (mut token, mut at) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while at < row.len() {
        match tokens.get(token) {
            Some(Token::Many) => {
                star = Some((token, at));
                token += 1;
            }
            Some(one) if takes(one, &row[at]) => {
                token += 1;
                at += 1;
            }
            _ => match star {
                Some((before, from)) => {
                    star = Some((before, from + 1));
                    token = before + 1;
                    at = from + 1;
                }
                None => return false,
            },
        }
    }
    tokens[token..].iter().all(|left| *left == Token::Many)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Python's `fnmatch.fnmatchcase`, as plainly as it can be said.
    fn fnmatch(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['*', rest @ ..] => (0..=text.len()).any(|skip| fnmatch(rest, &text[skip..])),
            ['?', rest @ ..] => !text.is_empty() && fnmatch(rest, &text[1..]),
            ['[', rest @ ..] => {
                let negated = rest.first() == Some(&'!');
                let begin = usize::from(negated);
                let end = (begin + 1..rest.len()).find(|end| rest[*end] == ']');
                let Some(end) = end else {
                    return text.first() == Some(&'[') && fnmatch(rest, &text[1..]);
                };
                let Some(c) = text.first() else { return false };
                let members: Vec<char> = rest[begin..end].to_vec();
                let mut found = false;
                let mut at = 0;
                while at < members.len() {
                    if at + 2 < members.len() && members[at + 1] == '-' {
                        found |= members[at] <= *c && *c <= members[at + 2];
                        at += 3;
                    } else {
                        found |= members[at] == *c;
                        at += 1;
                    }
                }
                found != negated && fnmatch(&rest[end + 1..], &text[1..])
            }
            [c, rest @ ..] => text.first() == Some(c) && fnmatch(rest, &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn a_pattern_means_what_fnmatch_says(pattern in r"[ab.*?\[\]!-]{0,9}", text in r"[ab.\]\[*!-]{0,8}") {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            let expected = fnmatch(&chars(&pattern), &chars(&text));
            prop_assert_eq!(Glob::new(&pattern).matches(&letters(&text)), expected);
        }

        #[test]
        fn a_covered_pattern_matches_no_more_than_the_other(
            wide in r"[ab.*?\[\]!]{0,6}", narrow in r"[ab.*?\[\]!]{0,6}", text in r"[ab.*?\[\]]{0,7}",
            inside in proptest::collection::vec(any::<bool>(), 8),
        ) {
            let (wide, narrow) = (Glob::new(&wide), Glob::new(&narrow));
            let text: Vec<PatternChar> = text.chars().zip(inside).map(|(c, inside)| (c, inside && c == '.')).collect();
            if wide.covers(&narrow) && narrow.matches(&text) {
                prop_assert!(wide.matches(&text));
            }
        }

        #[test]
        fn a_pattern_covers_itself_and_a_star_covers_all(pattern in r"[ab.*?\[\]!-]{0,9}") {
            let pattern = Glob::new(&pattern);
            prop_assert!(pattern.covers(&pattern));
            prop_assert!(Glob::new("*").covers(&pattern));
        }
    }

    #[test]
    fn a_wildcard_is_not_taken_for_a_letter() {
        // As texts, the first of each pair matches the second; as sets of texts it does not hold it.
        for (wide, narrow) in [("a?", "a*"), ("[*]", "*"), ("[?]", "?"), ("a", "a*"), ("[ab]", "?")] {
            assert!(!Glob::new(wide).covers(&Glob::new(narrow)), "{wide} {narrow}");
        }
        for (wide, narrow) in
            [("a*", "a?"), ("*", "[*]"), ("?", "[ab]"), ("[ab]", "a"), ("a.*", "a.b.*"), ("*", "")]
        {
            assert!(Glob::new(wide).covers(&Glob::new(narrow)), "{wide} {narrow}");
        }
    }

    #[test]
    fn hostile_patterns_take_no_time() {
        let pattern = Glob::new(&"*a".repeat(2_000));
        assert!(!pattern.matches(&letters(&"a".repeat(1_999))));
    }
}
