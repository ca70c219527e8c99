//! Finds the JSON in a reply.
//!
//! A code block that is marked as JSON is taken at its word: what is wrong in it is an error. Else the whole reply may be
//! JSON; else it is the first object or list that stands anywhere in it. Everything takes time in proportion to the length of
//! the reply, whatever it holds.

use std::ops::Range;

use super::scan::Scan;

/// Why there is no JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// The code block is not JSON: this does not belong there.
    BadBlock(usize),
    /// There is no JSON. What begins here, if anything does, goes on to the end of the reply without being closed.
    Nothing(Option<usize>),
}

/// Where the JSON of a reply stands.
pub(super) fn extract(text: &str) -> Result<Range<usize>, Missing> {
    if let Some(block) = fenced(text) {
        return match Scan::new(&text[block.clone()]).whole() {
            Ok(()) => Ok(block),
            Err(at) => whole_block(text, block.start).ok_or(Missing::BadBlock(block.start + at)),
        };
    }
    let whole = stripped(text, 0..text.len());
    if !whole.is_empty() && Scan::new(&text[whole.clone()]).whole().is_ok() {
        return Ok(whole);
    }
    embedded(text)
}

/// The inside of the first code block that is marked as JSON: the mark ends its line, and a closing fence follows.
fn fenced(text: &str) -> Option<Range<usize>> {
    const MARK: &str = "```json";
    let mut from = 0;
    loop {
        let fence = from + text[from..].find("```")?;
        from = fence + 1;
        let after = fence + MARK.len();
        if !text.get(fence..after).is_some_and(|mark| mark.eq_ignore_ascii_case(MARK)) {
            continue;
        }
        let rest = &text[after..];
        let space = rest.len() - rest.trim_start_matches(is_space).len();
        let Some(line_end) = rest[..space].rfind('\n') else { continue };
        let start = after + line_end + 1;
        // If nothing closes this block, nothing closes a later one.
        let end = start + text[start..].find("```")?;
        return Some(stripped(text, start..end));
    }
}

/// The value that begins here, if it is the whole of a code block: a string in it may hold fences of its own, which do not end the
/// block.
fn whole_block(text: &str, start: usize) -> Option<Range<usize>> {
    let end = Scan::new(text).end(start).ok()?;
    text[end..].trim_start_matches(is_space).starts_with("```").then_some(start..end)
}

/// The first object or list that can be read, whatever stands around it.
fn embedded(text: &str) -> Result<Range<usize>, Missing> {
    let mut scan = Scan::new(text);
    // A container that was open when an earlier attempt failed fails at the same place. Without that knowledge a
    // megabyte of brackets would take hours.
    let mut hopeless = vec![false; text.len()];
    let (mut cut, last) = (None, text.trim_end().len());
    for (start, _) in text.bytes().enumerate().filter(|(_, byte)| matches!(byte, b'{' | b'[')) {
        if hopeless[start] {
            continue;
        }
        match scan.end(start) {
            Ok(end) => return Ok(start..end),
            Err(at) => {
                if at >= last {
                    cut = cut.or(Some(start));
                }
                for open in &scan.open {
                    hopeless[*open] = true;
                }
            }
        }
    }
    Err(Missing::Nothing(cut))
}

/// A range of a text without white space at its ends.
fn stripped(text: &str, range: Range<usize>) -> Range<usize> {
    let inner = &text[range.clone()];
    let trimmed = inner.trim_start_matches(is_space);
    let start = range.start + (inner.len() - trimmed.len());
    start..start + trimmed.trim_end_matches(is_space).len()
}

/// White space as Python sees it.
pub(super) fn is_space(character: char) -> bool {
    character.is_whitespace() || matches!(character, '\u{1c}'..='\u{1f}')
}
