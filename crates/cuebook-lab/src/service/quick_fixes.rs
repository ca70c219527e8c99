//! Edits that do what a hint says. An edit is offered only if the finding is gone with it and nothing new is wrong.

use std::ops::Range;
use std::path::Path;

use super::rename::Edit;
use super::{Location, Service};
use crate::convert::{self, BuiltIn};
use crate::error::{Diagnostic, Severity};
use crate::files::Buffers;

impl Service {
    /// The file in the newer format, as `cuebook convert` writes it.
    pub(super) fn migrated(&self, path: &Path, text: &str) -> Option<Edit> {
        let target = convert::Target::new(BuiltIn::Prompty);
        let made = self.buffers.during(|| convert::convert(&self.book, path.to_str()?, &target).ok())?;
        let [file] = made.files.as_slice() else { return None };
        let location = Location::new(path, 0..text.len());
        (!made.differs).then(|| Edit { location, text: file.text.clone() })
    }

    /// Edits that do what the hint of a finding says, each with a title.
    pub(super) fn quick_fixes(
        &self,
        path: &Path,
        text: &str,
        finding: &Diagnostic,
        at: &Range<usize>,
    ) -> Vec<(String, Edit)> {
        let hint = finding.hint.as_deref().unwrap_or_default();
        let mut tried: Vec<(String, Range<usize>, String)> = Vec::new();
        if let Some(written) = written(hint) {
            let title = format!("Write `{written}`");
            let value = written.split_once(": ").map_or(written, |(_, value)| value);
            tried.push((title.clone(), at.clone(), written.to_owned()));
            tried.push((title.clone(), at.clone(), value.to_owned()));
            tried.push((title, line_of(text, at), format!("{}{written}", indent(text, at))));
        }
        tried.extend(added(hint, text, at));
        if hint.contains("remove") {
            let title = || "Remove it".to_owned();
            let removed = [braces(text, at), Some(entry(text, at)), element(text, at)];
            tried.extend(removed.into_iter().flatten().map(|range| (title(), range, String::new())));
        }
        let edits = tried.into_iter().filter(|(_, range, new)| text.get(range.clone()) != Some(new.as_str()));
        let mut edits =
            edits.map(|(title, range, text)| (title, Edit { location: Location::new(path, range), text }));
        // The first one that helps is enough.
        edits.find(|(_, edit)| self.helps(path, finding, edit)).into_iter().collect()
    }

    /// Whether a finding is gone once an edit is made, and no other error came.
    fn helps(&self, path: &Path, finding: &Diagnostic, edit: &Edit) -> bool {
        let changed = self.edited(std::slice::from_ref(edit));
        let Ok(basis) = self.known_basis() else { return false };
        let prompts = self.users(path, super::FEW);
        let found = prompts.iter().filter_map(|source| self.index.get(source)).map(|one| &one.found);
        let mut was_told = false;
        for found in found {
            let look = |buffers: &Buffers| buffers.during(|| basis.examine(&self.book, found)).findings;
            let (before, after) = (look(&self.buffers), look(&changed));
            let same = |other: &Diagnostic| other.code == finding.code && other.message == finding.message;
            let count = |all: &[Diagnostic]| all.iter().filter(|one| same(one)).count();
            let errors =
                |all: &[Diagnostic]| all.iter().filter(|one| one.severity == Severity::Error).count();
            was_told |= count(&before) > 0;
            if count(&before) > 0 && count(&after) >= count(&before) || errors(&after) > errors(&before) {
                return false;
            }
        }
        was_told
    }
}

/// What a hint says to write: "write `x`", "write \"x\", or …", "write {{ x }}, …" or "write def f(x):".
fn written(hint: &str) -> Option<&str> {
    let rest = match hint.strip_prefix("write ") {
        Some(rest) => rest,
        None => hint.split_once(", write `").map(|(before, _)| &hint[before.len() + ", write ".len()..])?,
    };
    match rest.chars().next()? {
        '`' => rest[1..].split_once('`').map(|(written, _)| written),
        '"' => rest[1..].split_once('"').map(|(written, _)| written),
        _ if rest.starts_with("{{") => rest.find("}}").map(|end| &rest[..end + 2]),
        _ => ["def ", "async def "].iter().any(|start| rest.starts_with(start)).then_some(rest),
    }
}

/// What a hint says to add, or to put on a separate line: each way with a title, the place and the text.
fn added(hint: &str, text: &str, at: &Range<usize>) -> Vec<(String, Range<usize>, String)> {
    let line_end = line_of(text, at).end;
    let quoted = |before: &str| Some(hint.split_once(before)?.1.split_once('`')?.0.to_owned());
    let mut ways = Vec::new();
    let mut add = |what: &str, places: &[usize]| {
        for place in places {
            // At the end of a text, a tag is on a separate line.
            let is_end = *place == text.len() && what.starts_with("{%");
            let gap = if is_end && !text.is_empty() && !text.ends_with('\n') { "\n" } else { "" };
            let end = if is_end { "\n" } else { "" };
            ways.push((format!("Add `{what}`"), *place..*place, format!("{gap}{what}{end}")));
        }
    };
    if let Some(what) = hint.strip_prefix("add `").and_then(|rest| rest.split_once('`')) {
        add(what.0, &[text.len(), line_end]);
    }
    if hint.contains("add the closing bracket") {
        let open = text[at.start..].chars().next();
        let close =
            [('{', "}"), ('[', "]"), ('(', ")")].into_iter().find(|(bracket, _)| Some(*bracket) == open);
        if let Some((_, close)) = close {
            add(close, &[line_end]);
        }
    }
    if let Some(close) = quoted("close with `") {
        add(&close, &[line_end]);
    }
    if hint.starts_with("put a comma") {
        add(",", &[text[..at.start].trim_end().len()]);
    }
    if hint.contains(" on a separate line")
        && let Some(marker) = quoted("put `")
        && let Some(start) = text[at.clone()].find(&marker).map(|found| at.start + found)
    {
        let behind = &text[start + marker.len()..line_end];
        let end = line_end - behind.trim_start().len();
        ways.push((format!("Put `{marker}` on a separate line"), start..end, format!("{marker}\n")));
    }
    ways
}

/// The line of a place, without its end.
fn line_of(text: &str, at: &Range<usize>) -> Range<usize> {
    let start = text[..at.start].rfind('\n').map_or(0, |end| end + 1);
    let end = text[at.start..].find('\n').map_or(text.len(), |end| at.start + end);
    start..end
}

fn indent<'t>(text: &'t str, at: &Range<usize>) -> &'t str {
    let line = &text[line_of(text, at)];
    &line[..line.len() - line.trim_start().len()]
}

/// An entry of YAML: its line and those below it that are indented more.
fn entry(text: &str, at: &Range<usize>) -> Range<usize> {
    let first = line_of(text, at);
    let depth = indent(text, at).len();
    let mut end = (first.end + 1).min(text.len());
    for line in text[end..].split_inclusive('\n') {
        let is_below = line.len() - line.trim_start().len() > depth && !line.trim().is_empty();
        if !is_below {
            break;
        }
        end += line.len();
    }
    first.start..end
}

/// The innermost braces around a place, with the comma behind or before them.
fn braces(text: &str, at: &Range<usize>) -> Option<Range<usize>> {
    let mut depth = 0usize;
    let open = text[..at.start].char_indices().rev().find_map(|(index, letter)| match letter {
        '}' => {
            depth += 1;
            None
        }
        '{' if depth == 0 => Some(index),
        '{' => {
            depth -= 1;
            None
        }
        _ => None,
    })?;
    let mut depth = 0usize;
    let close = text[open..].char_indices().find_map(|(index, letter)| match letter {
        '{' => {
            depth += 1;
            None
        }
        '}' if depth == 1 => Some(open + index + 1),
        '}' => {
            depth -= 1;
            None
        }
        _ => None,
    })?;
    let behind = &text[close..];
    let comma = behind.len() - behind.trim_start().strip_prefix(',').map_or(behind, str::trim_start).len();
    if comma > 0 {
        return Some(open..close + comma);
    }
    let before = text[..open].trim_end();
    Some(before.strip_suffix(',').map_or(open, str::len)..close)
}

/// The XML element that a place is in the first tag of, with its line if it is alone there.
fn element(text: &str, at: &Range<usize>) -> Option<Range<usize>> {
    let open = text[..at.start].rfind('<')?;
    let name: String =
        text[open + 1..].chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
    let tag = open + text[open..].find('>')? + 1;
    let close = format!("</{name}>");
    let end = match text[..tag].ends_with("/>") {
        true => tag,
        false => tag + text[tag..].find(&close)? + close.len(),
    };
    let line = line_of(text, &(open..open));
    let is_alone = text[line.start..open].trim().is_empty() && text[end..].starts_with('\n');
    Some(if is_alone { line.start..end + 1 } else { open..end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without(text: &str, range: Option<Range<usize>>) -> String {
        let mut text = text.to_owned();
        text.replace_range(range.unwrap(), "");
        text
    }

    #[test]
    fn a_hint_says_what_to_write() {
        assert_eq!(written("write `summary`"), Some("summary"));
        assert_eq!(written("write \"deploy\", or move the file"), Some("deploy"));
        assert_eq!(written("write def f(a):"), Some("def f(a):"));
        assert_eq!(written("write async def f(a):"), Some("async def f(a):"));
        assert_eq!(written("write {{ a }}, without filters"), Some("{{ a }}"));
        assert_eq!(written("to declare it, write `a: {kind: string}`"), Some("a: {kind: string}"));
        assert_eq!(written("write a title after it"), None);
    }

    #[test]
    fn a_hint_says_what_to_add_and_where() {
        let with = |hint: &str, text: &str, piece: &str| -> Vec<String> {
            let at = text.find(piece).unwrap();
            let ways = added(hint, text, &(at..at + piece.len()));
            let changed = |(_, range, new): (String, Range<usize>, String)| {
                let mut text = text.to_owned();
                text.replace_range(range, &new);
                text
            };
            ways.into_iter().map(changed).collect()
        };
        let added = with("add `{% endif %}`", "{% if a %}\nb", "{% if a %}");
        assert_eq!(added, ["{% if a %}\nb\n{% endif %}\n", "{% if a %}{% endif %}\nb"]);
        assert_eq!(with("add the closing bracket", "A = [1\nB", "["), ["A = [1]\nB"]);
        assert_eq!(
            with("put a comma between entries and close with `}`", "- {a: b\n", "{"),
            ["- {a: b}\n", "-, {a: b\n"]
        );
        assert_eq!(
            with("put `user:` on a separate line to begin a message", "user: Hi\n", "user: Hi"),
            ["user:\nHi\n"]
        );
    }

    #[test]
    fn an_entry_an_object_or_an_element_is_removed_whole() {
        let text = "inputs:\n  - name: a\n    kind: string\n  - name: b\n";
        let at = text.find("name: a").unwrap();
        assert_eq!(without(text, Some(entry(text, &(at..at + 6)))), "inputs:\n  - name: b\n");
        let text = "[{'name': 'a'}, {'name': 'b'}]";
        assert_eq!(without(text, braces(text, &(11..12))), "[{'name': 'b'}]");
        assert_eq!(without(text, braces(text, &(27..28))), "[{'name': 'a'}]");
        let text = "<inputs>\n  <input name=\"a\">x</input>\n</inputs>\n";
        let at = text.find("\"a").unwrap();
        assert_eq!(without(text, element(text, &(at..at + 1))), "<inputs>\n</inputs>\n");
    }
}
