//! Fences: text between tags that it cannot close, as in `{{ doc|fence("doc") }}` or `{% fence "doc" %}…{% endfence %}`.
//!
//! The tag is the label, unless the text holds such a tag in any spelling: then the label gets the smallest free number,
//! `<doc-2>`. Nothing is random, so the same values give the same bytes. The tags are the engine's text and the content stays the
//! value's. The filter remembers each text that it made, and the [`writer`](super::writer) knows it by its address. A text that is
//! captured or changed afterwards is an ordinary value.
//!
//! The block tag is the filter applied to a block. The engine's parser does not know it, so everything that parses reads
//! [`readable`] text of the same length, in which a fence is a condition that always holds; [`edits`] turns it into the filter.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use minijinja::Value;
use minijinja::machinery::{Token, Tokenizer};
use minijinja::syntax::SyntaxConfig;
use unicode_normalization::UnicodeNormalization;

use super::compat::Edit;
use crate::error::is_hidden;
use crate::template::sink::{Full, Sink};
use crate::template::unit::FENCE;

/// The name of the filter and of the block tag.
pub(super) const NAME: &str = "fence";
pub(super) const END: &str = "endfence";
/// The label of a fence that names none.
pub(super) const LABEL: &str = "text";

/// A text with its tags, in parts: where each ends, and whether the engine wrote it.
#[derive(Debug)]
struct Fenced {
    text: Arc<str>,
    parts: Vec<(usize, bool)>,
}

thread_local! {
    /// For each render that is running on this thread, the fenced texts that it made, by address. They live until it ends, so that
    /// no other text can have the address of one.
    static RUNNING: RefCell<Vec<HashMap<usize, Fenced>>> = const { RefCell::new(Vec::new()) };
}

/// Ends the entry of a render, also if it panics.
struct Entry;

impl Drop for Entry {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(Vec::pop);
    }
}

/// Runs a render that may make fenced texts.
pub(super) fn during<T>(render: impl FnOnce() -> T) -> T {
    RUNNING.with_borrow_mut(|running| running.push(HashMap::new()));
    let _entry = Entry;
    render()
}

/// Writes a fenced text, if these bytes are one; `None` if they are not.
pub(super) fn write(bytes: &[u8], sink: &mut Sink) -> Option<Result<(), Full>> {
    RUNNING.with_borrow(|running| {
        let fenced = running.last()?.get(&(bytes.as_ptr() as usize))?;
        if fenced.text.len() != bytes.len() {
            return None;
        }
        let mut at = 0;
        let mut write = || {
            for (end, is_frame) in &fenced.parts {
                let part = &bytes[at..*end];
                if *is_frame {
                    sink.frame(FENCE, part)?
                } else {
                    sink.value(part)?
                }
                at = *end;
            }
            Ok(())
        };
        Some(write())
    })
}

/// Whether something can be the name of a tag or of an attribute.
pub(crate) fn is_label(label: &str) -> bool {
    label.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && label.len() <= 64
        && label.chars().all(|letter| letter.is_ascii_alphanumeric() || "_.-".contains(letter))
}

/// The content between tags that it cannot close. Attributes are escaped.
pub(super) fn fenced(label: &str, attributes: &[(String, String)], content: &str) -> Value {
    let Tags { open, bracket, close } = Tags::around(label, content);
    let mut text = open;
    let mut parts = vec![(text.len(), true)];
    for (name, value) in attributes {
        // Writing to a String cannot fail.
        let _ = write!(text, " {name}=\"{}\"", attribute(value));
    }
    parts.push((text.len(), false));
    text.push_str(bracket);
    parts.push((text.len(), true));
    text.push_str(content);
    parts.push((text.len(), false));
    text.push_str(&close);
    parts.push((text.len(), true));
    let text: Arc<str> = text.into();
    RUNNING.with_borrow_mut(|running| {
        if let Some(made) = running.last_mut() {
            made.insert(text.as_ptr() as usize, Fenced { text: text.clone(), parts });
        }
    });
    Value::from(text)
}

/// The tags around a content, each with the newline that keeps it on a line of its own.
pub(crate) struct Tags {
    /// The tag that opens, without attributes and its last bracket.
    pub(crate) open: String,
    /// That bracket.
    pub(crate) bracket: &'static str,
    /// The tag that closes.
    pub(crate) close: String,
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
        // Too long a number is none that a fence gets.
        if let Ok(number) = digits[..length].parse() {
            used.insert(number);
        }
    }
    used
}

/// A tag of a fence: its name, and the end of what follows inside the tag.
struct Tag {
    name: Range<usize>,
    end: usize,
    opens: bool,
}

fn tags(source: &str, syntax: &SyntaxConfig) -> Vec<Tag> {
    if !source.contains(NAME) {
        return Vec::new();
    }
    let mut tokenizer = Tokenizer::new(source, "", false, syntax.clone());
    let mut tags: Vec<Tag> = Vec::new();
    let (mut is_start, mut is_inside) = (false, false);
    // A source that cannot be read has the tags up to there; reading it says what is wrong.
    while let Ok(Some((token, span))) = tokenizer.next_token() {
        let range = span.start_offset as usize..span.end_offset as usize;
        match token {
            Token::Ident(name @ (NAME | END)) if is_start => {
                tags.push(Tag { end: range.end, name: range, opens: name == NAME });
                is_inside = true;
            }
            Token::BlockEnd => is_inside = false,
            _ if is_inside => tags.last_mut().into_iter().for_each(|tag| tag.end = range.end),
            _ => {}
        }
        is_start = matches!(token, Token::BlockStart);
    }
    tags
}

/// The source with conditions in the place of fences, byte by byte as long.
pub(super) fn readable<'s>(source: &'s str, syntax: &SyntaxConfig) -> Cow<'s, str> {
    let tags = tags(source, syntax);
    if tags.is_empty() {
        return Cow::Borrowed(source);
    }
    let mut text = source.to_owned();
    for tag in tags {
        let condition = match tag {
            Tag { opens: true, .. } if tag.end == tag.name.end => "if 1 ",
            Tag { opens: true, .. } => "if   ",
            Tag { opens: false, .. } => "endif   ",
        };
        text.replace_range(tag.name, condition);
    }
    Cow::Owned(text)
}

/// The edits that make filters of the fences of a source.
pub(super) fn edits(source: &str, syntax: &SyntaxConfig) -> Vec<Edit> {
    let mut edits = Vec::new();
    for tag in tags(source, syntax) {
        let text = if tag.opens { "filter fence(" } else { "endfilter" };
        edits.push(Edit { range: tag.name.clone(), text: text.to_owned() });
        if tag.opens {
            edits.push(Edit { range: tag.end..tag.end, text: ")".to_owned() });
        }
    }
    edits
}

/// The name of the fence that a statement at an offset begins, if it is one.
pub(super) fn at(source: &str, offset: usize) -> Option<Range<usize>> {
    let before = source.get(..offset + 2).or_else(|| source.get(..offset))?;
    let inside = before.rfind("{%")? + 2;
    let rest = source.get(inside..)?;
    let start = inside + rest.len() - rest.trim_start_matches(['-', '+']).trim_start().len();
    let name = start..start + NAME.len();
    let behind = source.get(name.end..)?.chars().next()?;
    let is_whole = !behind.is_alphanumeric() && behind != '_';
    (source.get(name.clone()) == Some(NAME) && is_whole).then_some(name)
}

/// The tags that begin fences, for those who only name them.
pub(super) fn opening(source: &str, syntax: &SyntaxConfig) -> Vec<Range<usize>> {
    tags(source, syntax).into_iter().filter(|tag| tag.opens).map(|tag| tag.name.start..tag.end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(label: &str, content: &str) -> String {
        fenced(label, &[], content).to_string()
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
            fenced("m", &attributes, "x").to_string(),
            "<m role=\"a&quot;&gt;&#10;&lt;/m&gt;&amp;\">\nx\n</m>"
        );
    }

    #[test]
    fn a_label_is_a_plain_name() {
        assert!(["doc", "_x", "a-b.c_1"].iter().all(|label| is_label(label)));
        assert!(!["", "1a", "a b", "a>", "ä", "a\n"].iter().any(|label| is_label(label)));
    }

    #[test]
    fn readable_text_is_as_long_as_its_source() {
        let source =
            "{%- fence \"a\" -%}x{% endfence %}{% fence %}{% raw %}{% fence %}{% endraw %}{%endfence%}";
        let syntax = SyntaxConfig::default();
        let readable = readable(source, &syntax);
        assert_eq!(
            readable,
            "{%- if    \"a\" -%}x{% endif    %}{% if 1  %}{% raw %}{% fence %}{% endraw %}{%endif   %}"
        );
        assert_eq!(at(source, 4), Some(4..9));
        assert_eq!(at(source, 1), Some(4..9));
        assert_eq!(edits(source, &syntax).len(), 6);
    }
}
