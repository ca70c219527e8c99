//! Prompt ids: one spelling for all the ways in which people write a name.

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};

/// The snake_case spelling of an id: `codingSystem`, `CodingSystem`, `coding-system` and `coding system` are all
/// `coding_system`.
///
/// ```
/// assert_eq!(cuebook::library::normalize_id("CodingSystem"), "coding_system");
/// assert_eq!(cuebook::library::normalize_id("HTTPRequest-log"), "http_request_log");
/// ```
pub fn normalize_id(raw: &str) -> String {
    let letters: Vec<char> = raw.trim().chars().collect();
    let mut id = String::with_capacity(raw.len() + 4);
    for (index, &letter) in letters.iter().enumerate() {
        if is_separator(letter) {
            if !id.is_empty() && !id.ends_with('_') {
                id.push('_');
            }
            continue;
        }
        if letter.is_uppercase() && index > 0 {
            let before = letters[index - 1];
            let next_is_lower = letters.get(index + 1).is_some_and(|next| next.is_lowercase());
            // A new word begins at `aB`, `1B`, and at the last capital of `ABc`.
            let begins =
                before.is_lowercase() || before.is_numeric() || (before.is_uppercase() && next_is_lower);
            if begins && !id.ends_with('_') {
                id.push('_');
            }
        }
        id.extend(letter.to_lowercase());
    }
    while id.ends_with('_') {
        id.pop();
    }
    id
}

/// What stands between the words of a name.
fn is_separator(letter: char) -> bool {
    letter == '-' || letter == '_' || letter.is_whitespace()
}

/// Refuses what can be neither an id nor a part of a path below a library: it must not lead anywhere else.
pub(crate) fn check_id(id: &str) -> Result<()> {
    let Some(wrong) = why_no_id(id) else { return Ok(()) };
    let shown: String = id.chars().take(60).collect();
    let diagnostic = Diagnostic::new(Code::InvalidId, format!("invalid prompt id {shown:?}: {wrong}"))
        .hint("use an id such as `general_system`, or a path such as `./prompts/greeting`");
    Err(Error::new(ErrorKind::PromptNotFound, diagnostic))
}

/// Why a text is not an id; `None` if it is one.
pub(crate) fn why_no_id(id: &str) -> Option<&'static str> {
    Some(if id.trim().is_empty() {
        "an id cannot be empty"
    } else if id.chars().all(is_separator) {
        "an id needs a letter or a digit"
    } else if id.contains(['/', '\\']) {
        "an id cannot contain a slash"
    } else if id.starts_with('.') || id.chars().any(char::is_control) {
        "an id cannot begin with a dot or contain control characters"
    } else if id.len() > 200 {
        "an id cannot be longer than 200 bytes"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_a_name_are_one_id() {
        for raw in [
            "coding_system",
            "codingSystem",
            "CodingSystem",
            "coding-system",
            "coding system",
            "Coding  System ",
        ] {
            assert_eq!(normalize_id(raw), "coding_system", "{raw}");
        }
        for (raw, id) in [
            ("systemprompt", "systemprompt"),
            ("HTTPServer", "http_server"),
            ("gpt4Turbo", "gpt4_turbo"),
            ("A", "a"),
            ("ABC", "abc"),
            ("__x__", "x"),
            ("要約", "要約"),
            ("", ""),
        ] {
            assert_eq!(normalize_id(raw), id, "{raw}");
        }
    }

    #[test]
    fn normalising_twice_changes_nothing() {
        for raw in ["CodingSystem", "a-b_c D", "XMLHttpRequest2"] {
            let once = normalize_id(raw);
            assert_eq!(normalize_id(&once), once);
        }
    }

    #[test]
    fn an_id_cannot_lead_out_of_the_library() {
        for id in ["", " ", "../x", "a/b", "a\\b", ".hidden", "a\0b"] {
            assert_eq!(check_id(id).unwrap_err().code(), Code::InvalidId, "{id:?}");
        }
        assert!(check_id("general_system").is_ok());
    }
}
