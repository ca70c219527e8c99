//! The tags of Handlebars in `.prompt` files.

use std::ops::Range;

use super::complete::{Completion, CompletionKind, plain};
use super::layout::{Piece, pieces};
use super::tokens::{Token, TokenKind};

/// The helpers, each with how it is written and what it does.
const HELPERS: [(&str, &str, &str); 13] = [
    ("if", "{{#if value}}…{{else}}…{{/if}}", "Shows its text if there is a value."),
    ("unless", "{{#unless value}}…{{/unless}}", "Shows its text if the value is missing."),
    ("each", "{{#each list}}{{this}}{{/each}}", "Shows its text for each item."),
    ("with", "{{#with value}}{{name}}{{/with}}", "Shows its text with names of the value."),
    ("ifEquals", "{{#ifEquals a b}}…{{/ifEquals}}", "Shows its text if both values are the same."),
    ("unlessEquals", "{{#unlessEquals a b}}…{{/unlessEquals}}", "Shows its text if the values differ."),
    ("lookup", "{{lookup value name}}", "A part of a value whose name is a value itself."),
    ("log", "{{log value}}", "Shows nothing."),
    ("json", "{{json value indent=2}}", "The value as JSON."),
    ("role", "{{role \"system\"}}", "Begins a message."),
    ("history", "{{history}}", "Shows the conversation so far."),
    ("section", "{{section \"name\"}}", "Begins a part that a program fills."),
    ("media", "{{media url=photo contentType=\"image/png\"}}", "Shows a picture or another file."),
];

/// The roles of messages, as `{{role}}` takes them.
const ROLES: [&str; 3] = ["system", "user", "model"];

/// The tags of a text, with their braces. A tag that is not closed ends with its line.
pub(super) fn tags(text: &str, from: usize) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), from);
    while let Some(open) = text.get(at..).and_then(|rest| rest.find("{{")).map(|found| at + found) {
        let rest = &text[open..];
        let close = match rest.trim_start_matches(['{', '~']) {
            comment if comment.starts_with("!--") => "--}}",
            _ if rest.starts_with("{{{") => "}}}",
            _ => "}}",
        };
        let line = rest.find('\n').unwrap_or(rest.len());
        let end = rest.find(close).map(|end| end + close.len());
        let end = end
            .filter(|end| close == "--}}" || *end <= line || !rest[2..*end].contains("{{"))
            .unwrap_or(line);
        at = open + end.max(2);
        found.push(open..at);
    }
    found
}

/// A tag without its braces.
fn inside(text: &str, tag: &Range<usize>) -> Range<usize> {
    let signs = |letter: char| matches!(letter, '{' | '}' | '~');
    let whole = &text[tag.clone()];
    let start = tag.start + whole.len() - whole.trim_start_matches(signs).len();
    start..(tag.start + whole.trim_end_matches(signs).len()).max(start)
}

/// Colours of tags.
pub(super) fn colours(text: &str, body: usize, found: &mut Vec<Token>) {
    for tag in tags(text, body) {
        let inside = inside(text, &tag);
        if text[inside.clone()].starts_with('!') {
            found.push(Token { kind: TokenKind::Comment, range: tag });
            continue;
        }
        let pieces = pieces(text, inside);
        let word = |at: usize| pieces.get(at).map_or("", |(_, range)| &text[range.clone()]);
        let is_partial = word(0) == ">";
        for (at, (piece, range)) in pieces.iter().enumerate() {
            let before = if at == 0 { "" } else { word(at - 1) };
            let is_first = at == 0 || (at == 1 && matches!(before, "#" | "/" | "^" | ">" | "&"));
            // A helper has values behind it, or is one that needs none.
            let has_values = pieces.get(at + 1).is_some_and(|(_, next)| {
                next.start > range.end || (before == "(" && &text[next.clone()] != ".")
            });
            let kind = match piece {
                Piece::Text => TokenKind::Text,
                Piece::Number => TokenKind::Number,
                Piece::Sign => continue,
                Piece::Name if is_partial && is_first => TokenKind::Type,
                Piece::Name if matches!(before, "#" | "/" | "^") && is_helper(word(at)) => TokenKind::Keyword,
                Piece::Name if word(at) == "else" => TokenKind::Keyword,
                Piece::Name if matches!(word(at), "as" | "true" | "false" | "null") => TokenKind::Keyword,
                Piece::Name if word(at + 1) == "=" => TokenKind::Property,
                Piece::Name if before == "." => TokenKind::Property,
                Piece::Name if (is_first || before == "(") && (has_values || word(at) == "history") => {
                    TokenKind::Function
                }
                Piece::Name => TokenKind::Variable,
            };
            found.push(Token { kind, range: range.clone() });
        }
    }
}

fn is_helper(name: &str) -> bool {
    HELPERS.iter().any(|(known, ..)| *known == name)
}

/// Blocks that can be folded away: from the tag that opens one to the tag that closes it.
pub(super) fn blocks(text: &str, body: usize) -> Vec<(Range<usize>, bool)> {
    let mut found = Vec::new();
    let mut open: Vec<(&str, usize)> = Vec::new();
    for tag in tags(text, body) {
        let inside = &text[inside(text, &tag)];
        let name = |rest: &'_ str| rest.trim_start().split(char::is_whitespace).next().map_or(0, str::len);
        if inside.starts_with('!') {
            found.push((tag, true));
        } else if let Some(rest) = inside.strip_prefix(['#', '^']) {
            open.push((&rest.trim_start()[..name(rest)], tag.start));
        } else if let Some(rest) = inside.strip_prefix('/')
            && let Some(at) = open.iter().rposition(|(known, _)| *known == rest.trim())
        {
            found.push((open[at].1..tag.start, false));
            open.truncate(at);
        }
    }
    found
}

/// Roles and helpers that can be written at the end of a text; `None` where neither can stand.
pub(super) fn words(before: &str, typed: &str) -> Option<Vec<Completion>> {
    let tag = &before[before.rfind("{{").filter(|open| !before[*open..].contains("}}"))?..];
    let lead = tag[..tag.len() - typed.len()].trim_start_matches(['{', '~']);
    if lead.trim_start().starts_with("role") && lead.ends_with(['"', '\'']) {
        let roles = ROLES.iter().filter(|role| role.starts_with(typed));
        return Some(roles.map(|role| plain(role, CompletionKind::Value, "role")).collect());
    }
    let is_block = lead.trim() == "#";
    if !lead.trim_matches(['#', '/', '^', '(']).trim().is_empty() && !lead.ends_with('(') {
        return None;
    }
    let fitting = HELPERS
        .iter()
        .filter(|(name, usage, _)| name.starts_with(typed) && (!is_block || usage.starts_with("{{#")));
    let helper = |(name, usage, about): &(&str, &str, &str)| Completion {
        documentation: (*about).to_owned(),
        ..plain(name, CompletionKind::Function, usage)
    };
    Some(fitting.map(helper).collect())
}

/// What a helper is.
pub(super) fn about(name: &str) -> Option<String> {
    let (_, usage, about) = HELPERS.iter().find(|(known, ..)| *known == name)?;
    Some(format!("```handlebars\n{usage}\n```\n\n{about}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{{role \"system\"}}{{#if tone}}Be {{tone.name}}.{{else}}{{{x}}}{{/if}}{{> end}}{{!-- {{a}} --}}{{#each l as |i|}}{{json i indent=2}}{{/each}}{{history}}{{ open";

    #[test]
    fn the_words_of_a_tag_are_distinguished() {
        use TokenKind::{Comment, Function, Keyword, Number, Property, Text, Type, Variable};
        let mut found = Vec::new();
        colours(TEXT, 0, &mut found);
        let shown: Vec<(TokenKind, &str)> =
            found.iter().map(|token| (token.kind, &TEXT[token.range.clone()])).collect();
        let wanted = [
            (Function, "role"),
            (Text, "\"system\""),
            (Keyword, "if"),
            (Variable, "tone"),
            (Variable, "tone"),
            (Property, "name"),
            (Keyword, "else"),
            (Variable, "x"),
            (Keyword, "if"),
            (Type, "end"),
            (Comment, "{{!-- {{a}} --}}"),
            (Keyword, "each"),
            (Variable, "l"),
            (Keyword, "as"),
            (Variable, "i"),
            (Function, "json"),
            (Variable, "i"),
            (Property, "indent"),
            (Number, "2"),
            (Keyword, "each"),
            (Function, "history"),
            (Variable, "open"),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn blocks_fold_to_their_ends() {
        let text = "{{#if a}}\n{{#each b}}\nc\n{{/each}}\n{{/if}}{{/lost}}{{#open}}";
        let shown: Vec<&str> = blocks(text, 0).into_iter().map(|(range, _)| &text[range]).collect();
        assert_eq!(shown, ["{{#each b}}\nc\n", "{{#if a}}\n{{#each b}}\nc\n{{/each}}\n"]);
    }

    #[test]
    fn half_typed_tags_have_words() {
        let labels = |before: &str, typed: &str| {
            words(before, typed).map(|all| all.into_iter().map(|one| one.label).collect::<Vec<_>>())
        };
        assert_eq!(labels("{{ro", "ro"), Some(vec!["role".to_owned()]));
        assert_eq!(labels("{{role \"s", "s"), Some(vec!["system".to_owned()]));
        assert_eq!(labels("{{#i", "i"), Some(vec!["if".to_owned(), "ifEquals".to_owned()]));
        assert_eq!(labels("{{#if a", "a"), None);
        assert_eq!(labels("{{a}} b", "b"), None);
    }
}
