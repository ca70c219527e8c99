//! Errors of TOML files, in the words of their authors: the parser's own messages name types of Rust.

use std::sync::Arc;

use crate::error::{Code, Diagnostic, Error, ErrorKind, did_you_mean, nearest};
use crate::source::Source;

/// The error for a TOML file that could not be read.
pub(crate) fn toml_error(
    source: &Arc<Source>,
    code: Code,
    kind: ErrorKind,
    error: &toml::de::Error,
) -> Error {
    let message = error.message().lines().next().unwrap_or_default();
    let diagnostic = match unknown_field(message) {
        Some((message, hint)) => Diagnostic::new(code, message).hint(hint),
        None => {
            let before = error.span().and_then(|span| source.text().get(..span.start));
            let word = unknown_word(message, before.unwrap_or_default());
            Diagnostic::new(code, word.unwrap_or_else(|| plain_words(message)))
        }
    };
    let diagnostic = match error.span() {
        Some(span) => diagnostic.at(source.place(span)),
        None => diagnostic.file(source.name()),
    };
    Error::new(kind, diagnostic)
}

/// The names of Rust's types mean nothing to an author of a settings file.
fn plain_words(message: &str) -> String {
    let words = [
        ("expected u64", "expected a whole number"),
        ("expected usize", "expected a whole number"),
        ("expected a sequence", "expected a list"),
        ("expected path string", "expected a path in quotes"),
        ("expected struct LibraryConfig", "expected a table"),
        ("expected struct LimitsConfig", "expected a table"),
        ("expected struct TemplateConfig", "expected a table"),
        ("expected struct HooksConfig", "expected a table"),
        ("expected a boolean", "expected true or false"),
    ];
    words.iter().fold(message.to_owned(), |message, (rust, plain)| message.replace(rust, plain))
}

/// The parser lists the keys that it expected; the author needs the nearest.
fn unknown_field(message: &str) -> Option<(String, String)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (field, expected) = rest.split_once('`')?;
    let known = backticked(expected);
    let near = did_you_mean(&nearest(field, known.iter().copied()));
    let hint = near.unwrap_or_else(|| format!("known: {}", known.join(", ")));
    Some((format!("unknown key `{field}`"), hint))
}

/// A setting that is one of a few words and has another one. Its key is the last one of the text before the value.
fn unknown_word(message: &str, before: &str) -> Option<String> {
    let (word, expected) = message.strip_prefix("unknown variant `")?.split_once('`')?;
    let before = before.trim_end().strip_suffix('=').unwrap_or(before).trim_end();
    let key = before.rsplit(|letter: char| letter.is_whitespace() || "{,".contains(letter)).next();
    let key = key.filter(|key| !key.is_empty()).map_or("the value".to_owned(), |key| format!("`{key}`"));
    let known: Vec<String> = backticked(expected).iter().map(|word| format!("\"{word}\"")).collect();
    let known = match known.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => return None,
    };
    Some(format!("{key} must be {known}, not \"{word}\""))
}

fn backticked(text: &str) -> Vec<&str> {
    text.split('`').skip(1).step_by(2).collect()
}
