//! What can be folded away in a file.

use std::ops::Range;
use std::path::Path;

use super::Service;
use super::handlebars;
use super::layout::{Notation, TagKind, tags};
use super::tokens::lines;

/// Lines that can be folded away.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fold {
    /// The bytes from the first line to the last.
    pub range: Range<usize>,
    /// Whether it is a comment.
    pub is_comment: bool,
}

impl Service {
    /// What can be folded away in a file that belongs to the library.
    pub fn folds(&self, path: &Path) -> Vec<Fold> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let notation = Notation::of(path);
        let mut folds = Vec::new();
        let mut add = |range: Range<usize>, is_comment: bool| {
            if text[range.clone()].contains('\n') {
                folds.push(Fold { range, is_comment });
            }
        };
        let front = notation.front_matter(&text);
        let body = front.as_ref().map_or(0, |front| front.end);
        if let Some(front) = front {
            add(front.start.saturating_sub(4)..front.end, false);
        }
        if matches!(notation, Notation::Sections | Notation::Cases) {
            headings(&text, body).into_iter().for_each(|range| add(range, false));
        }
        if notation == Notation::Directive {
            elements(&text).into_iter().for_each(|range| add(range, false));
        } else if notation == Notation::Dotprompt {
            let blocks = handlebars::blocks(&text, body);
            blocks.into_iter().for_each(|(range, is_comment)| add(range, is_comment));
        } else if notation.has_tags() && notation != Notation::Python {
            blocks(&text, body).into_iter().for_each(|(range, is_comment)| add(range, is_comment));
        }
        folds.sort_by_key(|fold| (fold.range.start, std::cmp::Reverse(fold.range.end)));
        folds
    }
}

/// Block tags with what stands between them and their ends, and comments. An end without a beginning is passed by.
fn blocks(text: &str, body: usize) -> Vec<(Range<usize>, bool)> {
    let mut found = Vec::new();
    let mut open: Vec<(&str, usize)> = Vec::new();
    for tag in tags(text, body) {
        if tag.kind == TagKind::Comment {
            found.push((tag.range, true));
            continue;
        }
        let keyword = tag.keyword(text);
        match keyword.strip_prefix("end") {
            Some(name) => {
                if let Some(at) = open.iter().rposition(|(known, _)| *known == name) {
                    found.push((open[at].1..tag.range.start, false));
                    open.truncate(at);
                }
            }
            None if keyword.is_empty() => {}
            None => open.push((keyword, tag.range.start)),
        }
    }
    found
}

/// Headings with everything up to the next one of the same level or above.
fn headings(text: &str, body: usize) -> Vec<Range<usize>> {
    let (mut found, mut open): (Vec<Range<usize>>, Vec<(usize, usize)>) = (Vec::new(), Vec::new());
    let mut in_fence = false;
    for (line, range) in lines(text, body..text.len()) {
        in_fence ^= line.trim_start().starts_with("```");
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        if in_fence || level == 0 || !line[level..].starts_with(' ') {
            continue;
        }
        while let Some((_, start)) = open.pop_if(|(other, _)| *other >= level) {
            found.push(start..range.start.saturating_sub(1));
        }
        open.push((level, range.start));
    }
    found.extend(open.into_iter().map(|(_, start)| start..text.trim_end().len().max(start)));
    found
}

/// XML elements of a directive.
fn elements(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut open): (Vec<Range<usize>>, Vec<(&str, usize)>) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(start) = text[at..].find('<').map(|found| at + found) {
        let end = text[start..].find('>').map_or(text.len(), |found| start + found);
        let inside = &text[start + 1..end];
        at = (end + 1).min(text.len());
        let name = |tag: &'_ str| tag.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(tag.len());
        if let Some(closing) = inside.strip_prefix('/') {
            if let Some(at) = open.iter().rposition(|(known, _)| *known == closing.trim()) {
                found.push(open[at].1..start);
                open.truncate(at);
            }
        } else if !inside.ends_with('/') && inside.starts_with(|first: char| first.is_alphabetic()) {
            open.push((&inside[..name(inside)], start));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_headings_and_elements_fold() {
        let text = "{% if a %}\n{% for b in c %}\n{{ b }}\n{% endfor %}\n{% endif %}\n{% if open %}\n";
        let shown: Vec<&str> = blocks(text, 0).into_iter().map(|(range, _)| &text[range]).collect();
        assert_eq!(
            shown,
            ["{% for b in c %}\n{{ b }}\n", "{% if a %}\n{% for b in c %}\n{{ b }}\n{% endfor %}\n"]
        );
        let text = "# A\na\n## B\nb\n# C\nc\n";
        let shown: Vec<&str> = headings(text, 0).into_iter().map(|range| &text[range]).collect();
        assert_eq!(shown, ["## B\nb", "# A\na\n## B\nb", "# C\nc"]);
        let text = "<a>\n<b c=\"d\">\n</b>\n<e/>\n</a>\n";
        let shown: Vec<&str> = elements(text).into_iter().map(|range| &text[range]).collect();
        assert_eq!(shown, ["<b c=\"d\">\n", "<a>\n<b c=\"d\">\n</b>\n<e/>\n"]);
    }
}
