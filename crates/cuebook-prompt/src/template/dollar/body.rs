//! Takes the margin and the white space around it away from a body, and keeps account of what went.

use crate::source::OffsetMap;
use crate::template::python::is_space;

/// A body without its margin and without white space around it, and where its bytes lie in what the author wrote.
///
/// The margin is what `textwrap.dedent` of CPython 3.13 takes away: the spaces and tabs that all lines begin with. Lines end
/// at `\n` only. A line of nothing but spaces and tabs has no say and becomes empty; a carriage return is something else.
pub(super) fn trimmed(text: &str) -> (String, OffsetMap) {
    let margin = margin(text);
    let mut out = String::with_capacity(text.len());
    // How many bytes were left out before an offset of `out`.
    let mut cuts: Vec<(usize, usize)> = Vec::new();
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let dropped = if is_blank(content) { content.len() } else { margin };
        if dropped > 0 {
            cuts.push((out.len(), dropped));
        }
        out.push_str(&line[dropped..]);
    }
    let end = out.trim_end_matches(is_space).len();
    let start = end - out[..end].trim_start_matches(is_space).len();
    let mut map = OffsetMap::default();
    let before = cuts.partition_point(|(at, _)| *at <= start);
    let skipped = start + cuts[..before].iter().map(|(_, count)| count).sum::<usize>();
    if skipped > 0 {
        map.skip(0, skipped);
    }
    for (at, count) in cuts[before..].iter().take_while(|(at, _)| *at < end) {
        map.skip(at - start, *count);
    }
    out.truncate(end);
    out.drain(..start);
    (out, map)
}

/// How many bytes all lines that have something in them begin with alike.
fn margin(text: &str) -> usize {
    let mut lines = text.split('\n').filter(|line| !is_blank(line)).map(indent);
    let Some(first) = lines.next() else { return 0 };
    let mut margin = first;
    for indent in lines {
        let shared = margin.bytes().zip(indent.bytes()).take_while(|(one, other)| one == other).count();
        margin = &margin[..shared];
        if margin.is_empty() {
            break;
        }
    }
    margin.len()
}

fn indent(line: &str) -> &str {
    &line[..line.len() - line.trim_start_matches([' ', '\t']).len()]
}

fn is_blank(line: &str) -> bool {
    line.bytes().all(|byte| matches!(byte, b' ' | b'\t'))
}
