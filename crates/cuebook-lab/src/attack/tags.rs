//! Tags around values: `<doc>` and `</doc>` that an author or a fence wrote, with a value in between.
//!
//! A model takes such a pair for a border. A value that holds the closing tag moves it, although no message or role changes.

use std::collections::{BTreeSet, HashMap};

use crate::error::printable;
use crate::render::{Origin, Rendered};
use crate::source::Place;

/// A tag that surrounds a value, and that the value closes.
pub(super) struct Closed {
    pub(super) tag: String,
    pub(super) value: String,
    pub(super) place: Option<Place>,
}

/// A tag in a text.
struct Tag {
    name: String,
    closes: bool,
}

/// The names of the tags that surround values of some variables.
pub(super) fn around_values(rendered: &Rendered, is_of: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk(rendered, |open, _, origin| {
        let is_shown = match origin {
            Origin::Value { shown, .. } => {
                shown.iter().any(|shown| shown.path.split(['.', '[']).next().is_some_and(&is_of))
            }
            _ => true,
        };
        let open = open.iter().filter(|_| is_shown);
        names.extend(open.filter(|(_, count)| **count > 0).map(|(name, _)| name.clone()));
        None::<()>
    });
    names
}

/// The first tag that a value closes.
pub(super) fn closed(rendered: &Rendered) -> Option<Closed> {
    walk(rendered, |open, value, origin| {
        let is_open = |tag: &Tag| tag.closes && open.get(&tag.name).is_some_and(|count| *count > 0);
        let tag = tags(value).into_iter().find(is_open)?;
        Some(Closed {
            tag: printable(&tag.name).into_owned(),
            value: value.to_owned(),
            place: origin.place(),
        })
    })
}

/// Shows every value with the tags that are open around it, until there is an answer.
fn walk<T>(
    rendered: &Rendered,
    mut look: impl FnMut(&HashMap<String, usize>, &str, &Origin) -> Option<T>,
) -> Option<T> {
    // Only a tag that is closed later is a border: `<br>` and `a < b` are none.
    let mut written: Vec<(usize, Tag)> = Vec::new();
    for (index, span) in rendered.spans().enumerate() {
        if matches!(span.origin, Origin::Literal { .. } | Origin::Frame { .. }) {
            written.extend(tags(&rendered.text()[span.range]).into_iter().map(|tag| (index, tag)));
        }
    }
    let paired = paired(&written);
    let mut open: HashMap<String, usize> = HashMap::new();
    let mut at = 0;
    for (index, span) in rendered.spans().enumerate() {
        while let Some((place, tag)) = written.get(at).filter(|(place, _)| *place <= index) {
            debug_assert!(*place <= index);
            if paired[at] {
                let count = open.entry(tag.name.clone()).or_default();
                *count = if tag.closes { count.saturating_sub(1) } else { *count + 1 };
            }
            at += 1;
        }
        if matches!(span.origin, Origin::Value { .. } | Origin::Hook { .. })
            && let Some(answer) = look(&open, &rendered.text()[span.range.clone()], &span.origin)
        {
            return Some(answer);
        }
    }
    None
}

/// Which tags are one of a pair.
fn paired(written: &[(usize, Tag)]) -> Vec<bool> {
    let mut paired = vec![false; written.len()];
    let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, (_, tag)) in written.iter().enumerate() {
        let waiting = open.entry(&tag.name).or_default();
        if !tag.closes {
            waiting.push(index);
        } else if let Some(opening) = waiting.pop() {
            paired[opening] = true;
            paired[index] = true;
        }
    }
    paired
}

/// The tags in a text, with their names in small letters. White space inside of them does not matter.
fn tags(text: &str) -> Vec<Tag> {
    let mut tags = Vec::new();
    for (at, _) in text.match_indices('<') {
        let rest = text[at + 1..].trim_start();
        let inside = rest.strip_prefix('/');
        let rest = inside.map_or(rest, str::trim_start);
        let is_part = |letter: char| letter.is_alphanumeric() || "_.-".contains(letter);
        let name = &rest[..rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())];
        if name.starts_with(|first: char| first.is_alphabetic() || first == '_') {
            tags.push(Tag { name: name.to_lowercase(), closes: inside.is_some() });
        }
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_found_with_their_names() {
        let shown = |text: &str| {
            let tags = tags(text);
            tags.iter()
                .map(|tag| format!("{}{}", if tag.closes { "/" } else { "" }, tag.name))
                .collect::<Vec<_>>()
        };
        assert_eq!(shown("<doc a=\"1\"> x </ DOC >< / b><br/> a < 3 <"), ["doc", "/doc", "/b", "br"]);
    }

    #[test]
    fn only_pairs_are_borders() {
        let written: Vec<(usize, Tag)> = tags("<a><b></a></c>").into_iter().map(|tag| (0, tag)).collect();
        assert_eq!(paired(&written), [true, false, true, false]);
    }
}
