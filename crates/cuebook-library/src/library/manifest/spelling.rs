//! How names and versions in `pack.json` are spelt, and what is said of one that is not.

use crate::json::quoted;
use crate::library::normalize_id;

/// Small letters, digits and the others, beginning with a letter or digit.
pub(super) fn is_id(id: &str, other: impl Fn(char) -> bool) -> bool {
    let small = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    id.starts_with(small) && id.chars().all(|character| small(character) || other(character))
}

/// Tools, agents and flows have names of other systems, so more is allowed (`default.agent_run`, `fileRead`).
pub(super) fn is_item_id(id: &str) -> bool {
    id.starts_with(|first: char| first.is_ascii_alphanumeric())
        && id.chars().all(|character| character.is_ascii_alphanumeric() || "_.-".contains(character))
        && !id.contains("..")
}

pub(super) fn not_an_id(what: &str, id: &str) -> (String, String, String) {
    let label = "use lowercase letters, digits, `_` and `-`, starting with a letter or digit".to_owned();
    (format!("{} is not {what}", quoted(id)), label, suggestion(id, "my_prompt"))
}

pub(super) fn not_an_item_id(id: &str) -> (String, String, String) {
    let label = "use letters, digits, `_`, `.` and `-`, starting with a letter or digit".to_owned();
    (format!("invalid id {}", quoted(id)), label, suggestion(id, "my_tool"))
}

/// The kind and the name of a vocabulary entry: `prompt` and `coding_system`.
pub(super) fn vocab_parts(entry: &str) -> Option<(&str, &str)> {
    let plain = !entry.chars().any(|character| character.is_control() || character.is_whitespace());
    entry.split_once('.').filter(|(kind, name)| plain && !kind.is_empty() && !name.is_empty())
}

pub(super) fn not_a_vocab_name(entry: &str) -> (String, String, String) {
    let label = "expected a kind, a dot and a name".to_owned();
    (
        format!("invalid vocabulary entry {}", quoted(entry)),
        label,
        "write it as `prompt.coding_system`".into(),
    )
}

/// What an id could be spelt like instead.
pub(super) fn suggestion(id: &str, example: &str) -> String {
    let better: String = normalize_id(id)
        .chars()
        .filter(|character| character.is_ascii_alphanumeric() || *character == '_')
        .collect();
    let better = better.trim_matches('_');
    if better.is_empty() || better.len() > 64 || better == id {
        format!("use a name such as `{example}`")
    } else {
        format!("write `{better}`")
    }
}

/// Two or three numbers with dots between, and perhaps a remark behind `-` or `+`.
pub(super) fn is_semver_like(version: &str) -> bool {
    let end = version.find(['-', '+']).unwrap_or(version.len());
    let (numbers, remark) = version.split_at(end);
    let numbers: Vec<&str> = numbers.split('.').collect();
    let remark_is_fine = remark.is_empty()
        || remark.len() > 1
            && remark.chars().all(|character| character.is_ascii_alphanumeric() || ".-+".contains(character));
    (2..=3).contains(&numbers.len())
        && numbers
            .iter()
            .all(|number| !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit()))
        && remark_is_fine
}
