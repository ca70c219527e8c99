//! Hints without the spelling of the command line, for programs and their clients.

use std::borrow::Cow;

/// Between the advice of a hint and the command that does it.
pub(super) const COMMAND: &str = ": cuebook ";

/// What a hint says to those who have no command line: without commands of `cuebook`, options, and the parts that are about them. `None`
/// if nothing is left.
///
/// ```
/// # use cuebook_text::error::advice_of;
/// assert_eq!(advice_of("list the prompts: cuebook list").as_deref(), Some("list the prompts"));
/// assert_eq!(advice_of("keep it, or pass --replace; it stays valid").as_deref(), Some("keep it; it stays valid"));
/// assert_eq!(advice_of("pass --var name=TEXT"), None);
/// ```
pub fn advice_of(hint: &str) -> Option<Cow<'_, str>> {
    if !names_command_line(hint) {
        return Some(Cow::Borrowed(hint));
    }
    let before = hint.split_once(COMMAND).map_or(hint, |(advice, _)| advice);
    if !names_command_line(before) {
        return Some(Cow::Borrowed(before)).filter(|advice| !advice.is_empty());
    }
    let lines = before.lines().filter(|line| !line.trim_start().starts_with("cuebook "));
    let parts: Vec<String> = lines.flat_map(|line| line.split("; ")).filter_map(part).collect();
    (!parts.is_empty()).then(|| Cow::Owned(parts.join("; ")))
}

/// A part of a hint between semicolons, without what is about the command line.
fn part(text: &str) -> Option<String> {
    let text = without_brackets(text);
    let text = text.split_once(": --").map_or(&*text, |(advice, _)| advice);
    let ways = text.split(", ").filter(|way| !names_command_line(way));
    let ways = ways.map(|way| way.trim().trim_end_matches(':')).filter(|way| !way.is_empty());
    let left = ways.collect::<Vec<_>>().join(", ");
    let left = left.strip_prefix("or ").unwrap_or(&left);
    (!left.is_empty()).then(|| left.to_owned())
}

/// A text without the brackets that name a command: `add it (cuebook help CB328)`.
fn without_brackets(text: &str) -> Cow<'_, str> {
    let Some(start) = text.find(" (cuebook ").or_else(|| text.find(" (`cuebook ")) else {
        return Cow::Borrowed(text);
    };
    let end = text[start..].find(')').map_or(text.len(), |end| start + end + 1);
    Cow::Owned(format!("{}{}", &text[..start], &text[end..]))
}

/// Whether a text names a command of `cuebook`, or an option: two dashes with a letter behind and no letter before them.
fn names_command_line(text: &str) -> bool {
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let before = |at: usize| text[..at].chars().next_back();
    let names_option = text
        .match_indices("--")
        .any(|(at, _)| is_letter(text[at + 2..].chars().next()) && !is_letter(before(at)));
    let names_command = || {
        text.match_indices("cuebook ").any(|(at, word)| {
            let next = text[at + word.len()..].chars().next();
            next.is_some_and(|next| next.is_ascii_lowercase()) && !is_letter(before(at))
        })
    };
    names_option || names_command()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_has_no_commands_and_no_options() {
        for (hint, advice) in [
            ("did you mean `x`?", Some("did you mean `x`?")),
            ("a dash -- or two--three", Some("a dash -- or two--three")),
            ("set `x` in cuebook.toml", Some("set `x` in cuebook.toml")),
            (
                "enable the feature `chat` of the crate `cuebook`",
                Some("enable the feature `chat` of the crate `cuebook`"),
            ),
            ("create one: cuebook keys generate", Some("create one")),
            ("cuebook doctor shows what is missing; --unfenced runs tools freely", None),
            ("give a value with `--var name=…`", None),
            ("add `model: NAME` to its file, or pass --model NAME", Some("add `model: NAME` to its file")),
            (
                "add its metadata: version, category (cuebook help CB328)",
                Some("add its metadata: version, category"),
            ),
            (
                "rephrase the prompt, or use another model: --model ID",
                Some("rephrase the prompt, or use another model"),
            ),
            ("wait for it; then continue with `cuebook thread resume 7`", Some("wait for it")),
            (
                "choose one; it is kept:\n  cuebook resolve a b\n  cuebook resolve a c",
                Some("choose one; it is kept"),
            ),
            ("pass --yes, or answer yes", Some("answer yes")),
        ] {
            assert_eq!(advice_of(hint).as_deref(), advice, "{hint}");
        }
    }
}
