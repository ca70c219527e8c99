//! Where the front matter ends and the template begins.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

/// The parts of a file, as ranges of its text.
#[derive(Debug, PartialEq, Eq)]
#[doc(hidden)]
pub struct Split {
    /// The YAML between the two lines; `None` if the file has no front matter.
    #[doc(hidden)]
    pub front_matter: Option<Range<usize>>,
    /// The template: everything behind the line end of the closing line, or the whole file.
    #[doc(hidden)]
    pub body: Range<usize>,
}

/// Finds the front matter. The first line that is not blank opens it if it is `---` or `+++`, and the next such line
/// closes it, whichever of the two it is and however far it is indented; dashes anywhere else, and in the lines of a block
/// scalar, are text.
#[doc(hidden)]
pub fn split(source: &Arc<Source>) -> Result<Split> {
    let text = source.text();
    let mut at = 0;
    let mut opening: Option<Range<usize>> = None;
    // The indentation of what holds a block scalar, while its lines go on.
    let mut scalar: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let indent = line.len() - line.trim_start_matches(' ').len();
        let is_blank = line.trim().is_empty();
        scalar = scalar.filter(|holder| is_blank || indent > *holder);
        let is_fence = scalar.is_none() && matches!(line.trim(), "---" | "+++");
        match &opening {
            None if is_fence => opening = Some(range),
            None if is_blank => {}
            None => break,
            Some(opened) if is_fence => {
                return Ok(Split {
                    front_matter: Some(opened.end..range.start),
                    body: range.end..text.len(),
                });
            }
            Some(_) => scalar = scalar.or_else(|| holds_block_scalar(line)),
        }
    }
    let Some(opened) = opening else {
        return Ok(Split { front_matter: None, body: 0..text.len() });
    };
    let line = &text[opened.clone()];
    let start = opened.start + (line.len() - line.trim_start().len());
    let fence = line.trim();
    let diagnostic = Diagnostic::new(Code::BadFrontMatter, "the front matter is not closed")
        .at(source.place(start..start + fence.len()))
        .label("opened here")
        .hint(format!("write a line `{fence}` between the front matter and the template"));
    Err(super::invalid_front_matter(Error::new(ErrorKind::PromptRead, diagnostic)))
}

/// The indentation of the key or list item whose block scalar (`|` or `>`) begins behind a line.
fn holds_block_scalar(line: &str) -> Option<usize> {
    let line = line.find(" #").map_or(line, |comment| &line[..comment]).trim_end();
    let (before, header) = line.rsplit_once(' ')?;
    let is_header = header.starts_with(['|', '>'])
        && header.len() <= 3
        && header[1..].bytes().all(|byte| matches!(byte, b'+' | b'-' | b'1'..=b'9'));
    let mut key = before.trim_end();
    // A tag or an anchor may stand before it.
    while let Some((rest, property)) = key.rsplit_once(' ')
        && property.starts_with(['!', '&'])
    {
        key = rest.trim_end();
    }
    if !is_header || !key.ends_with([':', '-', '?']) {
        return None;
    }
    let mut indent = key.len() - key.trim_start_matches(' ').len();
    while let Some(item) = key[indent..].strip_prefix("- ") {
        indent = key.len() - item.trim_start_matches(' ').len();
    }
    Some(indent)
}
