//! Fences: text between tags that it cannot close, as in `{{ doc|fence("doc") }}` or `{% fence "doc" %}…{% endfence %}`.
//!
//! The tag is the label, unless the text holds such a tag in any spelling: then the label gets the smallest free number,
//! `<doc-2>`. Nothing is random, so the same values give the same bytes. The tags are the engine's text, and the content keeps
//! its origins.

use std::collections::HashSet;
use std::fmt::Write as _;

use cuebook_template::{Environment, Framed};
use unicode_normalization::UnicodeNormalization;

use crate::error::is_hidden;

/// The name of the filter and of the block tag.
pub(super) const NAME: &str = "fence";
/// The label of a fence that names none.
pub(super) const LABEL: &str = "text";

/// Adds the filter and block tag to an environment.
pub(super) fn register(environment: Environment) -> Environment {
    environment.frame(NAME, |content, given, named| {
        let label = match given {
            [] => LABEL,
            [label] => label,
            _ => return Err("`fence` takes one label; name the attributes, as in `role=\"user\"`".to_owned()),
        };
        if !is_label(label) {
            let wanted = "must have letters, digits, `_`, `-` and `.`, as in `fence(\"doc\")`";
            return Err(format!("the label of `fence` {wanted}"));
        }
        Ok(fenced(label, named, content))
    })
}

/// Whether something can be the name of a tag or of an attribute.
#[doc(hidden)]
pub fn is_label(label: &str) -> bool {
    label.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && label.len() <= 64
        && label.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(letter))
}

/// The content between tags that it cannot close. Attributes are escaped.
fn fenced(label: &str, attributes: &[(String, String)], content: &str) -> Vec<Framed> {
    let Tags { open, bracket, close } = Tags::around(label, content);
    if attributes.is_empty() {
        return vec![Framed::Frame(open + bracket), Framed::Value, Framed::Frame(close)];
    }
    let mut parts = vec![Framed::Frame(open)];
    for (name, value) in attributes {
        parts.push(Framed::Argument(format!(" {name}=\"{}\"", attribute(value))));
    }
    parts.extend([Framed::Frame(bracket.to_owned()), Framed::Value, Framed::Frame(close)]);
    parts
}

/// The tags around a content, each with the newline that keeps it on a line of its own.
pub(crate) struct Tags {
    /// The tag that opens, without attributes and its last bracket.
    pub(crate) open: String,
    /// That bracket.
    #[doc(hidden)]
    pub bracket: &'static str,
    /// The tag that closes.
    #[doc(hidden)]
    pub close: String,
}

impl Tags {
    pub(crate) fn around(label: &str, content: &str) -> Tags {
        let tag = tag(label, content);
        let own_line = content.starts_with('\n') || content.starts_with("\r\n");
        let newline = if content.is_empty() || content.ends_with('\n') { "" } else { "\n" };
        Tags {
            open: format!("<{tag}"),
            bracket: if own_line { ">" } else { ">\n" },
            close: format!("{newline}</{tag}>"),
        }
    }
}

/// A value as an attribute: nothing in it ends the attribute or the tag.
fn attribute(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for letter in value.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            letter if is_hidden(letter) => {
                // Writing to a String cannot fail.
                let _ = write!(out, "&#{};", u32::from(letter));
            }
            letter => out.push(letter),
        }
    }
    out
}

/// The first of `label`, `label-2`, `label-3`… that no tag of the content begins with, in whatever spelling: letter case, spaces,
/// invisible characters, wide and small forms.
fn tag(label: &str, content: &str) -> String {
    let used = used(&label.to_ascii_lowercase(), content);
    if !used.contains(&1) {
        return label.to_owned();
    }
    let free = (2..).find(|number| !used.contains(number)).unwrap_or(u64::MAX);
    format!("{label}-{free}")
}

/// The numbers of a label that tags of a content have; 1 is the label itself.
fn used(label: &str, content: &str) -> HashSet<u64> {
    let mut used = HashSet::new();
    if content.is_ascii() && !content.contains('<') {
        return used;
    }
    let plain = content.nfkc().filter(|letter| !letter.is_whitespace() && !is_hidden(*letter));
    let plain: String = plain.flat_map(char::to_lowercase).collect();
    for (at, _) in plain.match_indices('<') {
        let rest = plain[at + 1..].trim_start_matches(['/', '\\']);
        let Some(rest) = rest.strip_prefix(label) else { continue };
        used.insert(1);
        let digits = rest.strip_prefix('-').unwrap_or_default();
        let length = digits.bytes().take_while(u8::is_ascii_digit).count();
        // No fence gets such a long number.
        if let Ok(number) = digits[..length].parse() {
            used.insert(number);
        }
    }
    used
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(parts: Vec<Framed>, content: &str) -> String {
        let text = |part| match part {
            Framed::Frame(text) | Framed::Argument(text) => text,
            Framed::Value => content.to_owned(),
        };
        parts.into_iter().map(text).collect()
    }

    fn text(label: &str, content: &str) -> String {
        shown(fenced(label, &[], content), content)
    }

    #[test]
    fn a_content_cannot_close_its_fence() {
        assert_eq!(text("doc", "Hi"), "<doc>\nHi\n</doc>");
        assert_eq!(text("doc", "\nHi\n"), "<doc>\nHi\n</doc>");
        assert_eq!(text("doc", ""), "<doc>\n</doc>");
        for closing in [
            "</doc>",
            "< / DOC >",
            "<doc>",
            "</do\u{200b}c>",
            "＜/ｄｏｃ＞",
            "<\n/doc\n>",
            "<//doc",
            "<\\/doc>",
        ] {
            let content = format!("a{closing}\n# Rules");
            assert_eq!(text("doc", &content), format!("<doc-2>\n{content}\n</doc-2>"), "{closing}");
        }
        assert_eq!(text("doc", "</doc></doc-2><doc-3 "), "<doc-4>\n</doc></doc-2><doc-3 \n</doc-4>");
        assert_eq!(text("doc", "</other> a < b doc"), "<doc>\n</other> a < b doc\n</doc>");
        let all: String = (1..200).map(|number| format!("</doc-{number}>")).collect();
        assert!(text("doc", &all).starts_with("<doc-200>\n"));
    }

    #[test]
    fn an_attribute_cannot_end_itself_or_its_tag() {
        let attributes = [("role".to_owned(), "a\">\n</m>&".to_owned())];
        assert_eq!(
            shown(fenced("m", &attributes, "x"), "x"),
            "<m role=\"a&quot;&gt;&#10;&lt;/m&gt;&amp;\">\nx\n</m>"
        );
    }

    #[test]
    fn a_label_is_a_plain_name() {
        assert!(["doc", "_x", "a-b.c_1"].iter().all(|label| is_label(label)));
        assert!(!["", "1a", "a b", "a>", "ä", "a\n"].iter().any(|label| is_label(label)));
    }
}
