//! Lines of files as excerpts show them: without what follows the name of a secret.

use std::borrow::Cow;

use crate::redact::{Name, kind_of_name};

/// The line with stars in the place of what follows the name of a secret, so that an excerpt shows no key. It has as many
/// letters and bytes as it had, so that marks fit. A reference to a secret is not secret, unless it has a default.
pub fn without_secrets(line: &str) -> Cow<'_, str> {
    // Tags of templates are what their author has to see.
    if line.contains("{{") || line.contains("{%") {
        return Cow::Borrowed(line);
    }
    let mut shown = Cow::Borrowed(line);
    for (at, _) in line.match_indices([':', '=']) {
        let before = line[..at].trim_end_matches(['"', '\'', ' ']);
        let name =
            before.rsplit(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').next().unwrap_or_default();
        if !matches!(kind_of_name(name), Name::Secret | Name::Token) {
            continue;
        }
        let rest = line[at + 1..].trim_start();
        let start = line.len() - rest.len();
        let (start, end) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => (start + 1, end_of_quoted(line, start + 1, quote)),
            // Keys and values of its own, whose names are looked at one by one.
            Some('{' | '[') => continue,
            _ => match line[..at].contains('{') {
                true => (start, line[start..].find([',', '}']).map_or(line.len(), |length| start + length)),
                false => (start, line.len()),
            },
        };
        let value = &line[start..end];
        // How many tokens there may be is no secret.
        let is_count = name.ends_with("tokens") && value.trim().bytes().all(|byte| byte.is_ascii_digit());
        if is_count {
            continue;
        }
        let start = match value.strip_prefix("${") {
            None => start,
            Some(reference) => match reference.match_indices(':').nth(1) {
                Some((default, _)) => start + 2 + default + 1,
                None => continue,
            },
        };
        let stars: String = line[start..end].chars().map(star).collect();
        shown.to_mut().replace_range(start..end, &stars);
    }
    shown
}

/// Where a quoted text ends. A quote that is written twice or behind a backslash is part of it.
fn end_of_quoted(line: &str, start: usize, quote: char) -> usize {
    let mut letters = line[start..].char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' && quote == '"' {
            letters.next();
        } else if letter == quote {
            if quote == '\'' && letters.peek().is_some_and(|(_, next)| *next == quote) {
                letters.next();
            } else {
                return start + at;
            }
        }
    }
    line.len()
}

/// A sign of as many bytes as the letter has.
fn star(letter: char) -> char {
    match letter.len_utf8() {
        1 => '*',
        2 => '×',
        3 => '•',
        _ => '🔒',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_value_after_the_name_of_a_secret_is_hidden() {
        for (line, shown) in [
            ("password: p@ss,word-two", "password: *************"),
            ("token: \"ab,cd\" # note", "token: \"*****\" # note"),
            ("password: 'it''s'", "password: '*****'"),
            ("<limits turns=\"6\" tokens=\"20000\" />", "<limits turns=\"6\" tokens=\"20000\" />"),
            ("token: 20000", "token: *****"),
            ("c: {kind: key, apiKey: sk-1, x: y}", "c: {kind: key, apiKey: ****, x: y}"),
            ("apiKey: ${env:KEY}", "apiKey: ${env:KEY}"),
            ("apiKey: \"${env:KEY:sk-2}\"", "apiKey: \"${env:KEY:*****\""),
            ("apiKey: \"пароль\"", "apiKey: \"××××××\""),
            ("The token: {{ user | uper }}", "The token: {{ user | uper }}"),
            ("name: token", "name: token"),
            ("maxOutputTokens: 7", "maxOutputTokens: 7"),
        ] {
            assert_eq!(without_secrets(line), shown);
            assert_eq!(without_secrets(line).len(), line.len());
        }
    }
}
