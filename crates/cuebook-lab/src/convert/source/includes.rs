//! Includes of a template in a dialect that keeps the last newline of what is included.
//!
//! A template drops that newline. Where the line of an include ends right behind it, the newline there can be taken away instead:
//! a `-` at the end of the tag does that.

use crate::template::engine::Outline;
use crate::template::jinja::names::{Reference, ReferenceKind};

/// A comment that says nothing: a `-` before it takes away white space up to here and no further.
const STOP: &str = "{##}";

/// The text of a template's own file, written so that its includes come out as they do in the template.
pub(super) fn with_kept_newlines(text: &str, outline: &dyn Outline) -> String {
    let own = outline.names().first();
    let mut includes: Vec<&Reference> = own
        .iter()
        .flat_map(|names| &names.references)
        .filter(|reference| reference.kind == ReferenceKind::Include && ends_in_newline(reference, outline))
        .collect();
    includes.sort_by_key(|reference| std::cmp::Reverse(reference.range.start));
    let mut text = text.to_owned();
    for reference in includes {
        let Some(end) = text.get(reference.range.start..).and_then(|rest| rest.find("%}")) else { continue };
        let end = reference.range.start + end;
        let behind = &text[end + 2..];
        if text[..end].ends_with(['-', '+']) || !behind.starts_with('\n') {
            continue;
        }
        let space = behind.len() - behind.trim_start().len();
        let (replaced, by) =
            if space == 1 { (end..end, "-".to_owned()) } else { (end..end + 3, format!("-%}}{STOP}")) };
        text.replace_range(replaced, &by);
    }
    text
}

/// Whether every file that an include can mean ends in a newline.
fn ends_in_newline(reference: &Reference, outline: &dyn Outline) -> bool {
    let Some([name]) = reference.names.as_deref() else { return false };
    let is_meant =
        |file: &str| file == name || file.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('/'));
    let mut meant =
        outline.units().iter().map(|unit| unit.source()).filter(|source| is_meant(source.name())).peekable();
    meant.peek().is_some() && meant.all(|source| source.text().ends_with('\n'))
}
