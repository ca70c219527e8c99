//! What is different between two texts, line by line, and where the new lines came from.

use serde_json::{Value as Json, json};

use crate::render::{Origin, Rendered, differences};

/// Lines that are shown around a difference.
const AROUND: usize = 2;

/// A line of a comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// What became of it.
    pub change: Change,
    /// The line, without its end.
    pub text: String,
    /// Where it came from, for lines that are not in both texts, if that is known.
    pub origin: Option<String>,
}

/// What became of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// It is in both texts.
    Same,
    /// It is in the first text only.
    Gone,
    /// It is in the second text only.
    New,
    /// Lines that are in both texts and not shown.
    Skipped,
}

impl Change {
    /// The sign in front of the line.
    pub fn sign(self) -> &'static str {
        match self {
            Change::Same => " ",
            Change::Gone => "-",
            Change::New => "+",
            Change::Skipped => "…",
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Change::Same => "same",
            Change::Gone => "gone",
            Change::New => "new",
            Change::Skipped => "skipped",
        }
    }
}

impl Line {
    /// The line as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut object = json!({"change": self.change.as_str(), "text": self.text});
        if let Some(origin) = &self.origin {
            object["origin"] = json!(origin);
        }
        object
    }
}

/// The difference between two texts; nothing, if it is missing. If the second one was rendered, lines that are new know their
/// origins.
pub fn compare(before: &str, after: &str, rendered: Option<&Rendered>) -> Vec<Line> {
    let new = |offset| rendered.and_then(|rendered| origin_at(rendered, offset));
    compare_with(before, after, &|_| None, &new)
}

/// The difference between two texts; nothing, if it is missing. Lines that only one of them has are asked for their origins: by
/// the offset of the first byte that differs from the line in whose place it stands.
pub fn compare_with(
    before: &str,
    after: &str,
    gone_from: &dyn Fn(usize) -> Option<String>,
    new_from: &dyn Fn(usize) -> Option<String>,
) -> Vec<Line> {
    let old: Vec<&str> = before.split('\n').collect();
    let new: Vec<&str> = after.split('\n').collect();
    let hunks = differences(&old, &new);
    let mut lines = Vec::new();
    let (old_starts, starts) = (starts(&old), starts(&new));
    let same = |text: &str| Line { change: Change::Same, text: text.to_owned(), origin: None };
    let mut done = 0;
    for (index, (gone, added)) in hunks.iter().enumerate() {
        // Of a long stretch between two differences only its ends are shown.
        let between = &new[done..added.start];
        let head = if index == 0 { 0 } else { AROUND.min(between.len()) };
        let tail = AROUND.min(between.len() - head);
        // One line is shown as easily as left out.
        let head = if head + tail + 1 == between.len() { head + 1 } else { head };
        lines.extend(between[..head].iter().map(|line| same(line)));
        if head + tail < between.len() {
            lines.push(Line { change: Change::Skipped, text: String::new(), origin: None });
        }
        lines.extend(between[between.len() - tail..].iter().map(|line| same(line)));
        // What differs within the line says more than its beginning.
        for (index, number) in gone.clone().enumerate() {
            let twin = Some(added.start + index).filter(|twin| added.contains(twin));
            let within = twin.map_or(0, |twin| common(old[number], new[twin]));
            let origin = gone_from(old_starts[number] + within);
            lines.push(Line { change: Change::Gone, text: old[number].to_owned(), origin });
        }
        for (index, number) in added.clone().enumerate() {
            let twin = Some(gone.start + index).filter(|twin| gone.contains(twin));
            let within = twin.map_or(0, |twin| common(old[twin], new[number]));
            let origin = new_from(starts[number] + within);
            lines.push(Line { change: Change::New, text: new[number].to_owned(), origin });
        }
        done = added.end;
    }
    if !hunks.is_empty() {
        let rest = &new[done..];
        let shown = if rest.len() == AROUND + 1 { rest.len() } else { AROUND };
        lines.extend(rest.iter().take(shown).map(|line| same(line)));
        if rest.len() > shown {
            lines.push(Line { change: Change::Skipped, text: String::new(), origin: None });
        }
    }
    lines
}

/// Where each line begins.
fn starts(lines: &[&str]) -> Vec<usize> {
    let mut next = 0;
    let start = |line: &&str| {
        let start = next;
        next += line.len() + 1;
        start
    };
    lines.iter().map(start).collect()
}

/// How many bytes two lines have in common at their beginning.
fn common(one: &str, other: &str) -> usize {
    let letters = one.char_indices().zip(other.chars());
    letters
        .take_while(|((_, one), other)| one == other)
        .last()
        .map_or(0, |((at, letter), _)| at + letter.len_utf8())
}

/// Where a byte of a rendered text came from, in a few words.
pub fn origin_at(rendered: &Rendered, offset: usize) -> Option<String> {
    origin_named(rendered, offset, &str::to_owned)
}

/// The same, with other names for files.
pub(crate) fn origin_named(
    rendered: &Rendered,
    offset: usize,
    name: &dyn Fn(&str) -> String,
) -> Option<String> {
    let span = rendered.span_at(offset)?;
    Some(match &span.origin {
        Origin::Literal { source, range, changed } => {
            let inside = if *changed { 0 } else { offset - span.range.start };
            let (line, _) = source.line_column(range.start + inside);
            format!("{}:{line}", name(source.name()))
        }
        Origin::Value { shown, emitted } => {
            let mut parts = Vec::new();
            for shown in shown {
                match shown.layer {
                    Some(layer) => parts.push(format!("{} ({})", shown.path, layer.describe())),
                    None => parts.push(format!("{} (no value)", shown.path)),
                }
            }
            let what = if parts.is_empty() { "computed".to_owned() } else { parts.join(", ") };
            format!("{what}, {}:{}", name(emitted.file()), emitted.line())
        }
        Origin::Rich { input, kind } => format!("{input} ({kind})"),
        Origin::Hook { prompt, function } => format!("{function} of {prompt}"),
        Origin::Frame { name } => format!("the engine ({name})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> String {
        let line = |line: &Line| format!("{}{}\n", line.change.sign(), line.text);
        compare(before, after, None).iter().map(line).collect()
    }

    #[test]
    fn texts_that_are_alike_have_no_lines() {
        assert_eq!(shown("a\nb", "a\nb"), "");
    }

    #[test]
    fn a_difference_has_a_few_lines_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12";
        let after = before.replace("3", "drei").replace("10", "zehn");
        assert_eq!(shown(before, &after), " 1\n 2\n-3\n+drei\n 4\n 5\n…\n 8\n 9\n-10\n+zehn\n 11\n 12\n");
        assert_eq!(shown("a", "a\nb"), " a\n+b\n");
        assert_eq!(shown("", "x"), "-\n+x\n");
    }

    #[test]
    fn the_common_part_of_two_lines_ends_between_characters() {
        assert_eq!(common("größer", "größe"), "größe".len());
        assert_eq!(common("é", "è"), 0);
    }
}
