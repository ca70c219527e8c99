//! Finds the fenced block of a Markdown file that holds its data: the XML of a directive, the YAML of a piece of knowledge.
//!
//! Blocks lie in each other as Markdown has it: what stands between other fences, or in an HTML comment of several lines, is
//! text there and no block of ours. The block itself is stricter than Markdown's: its fences are three backticks at the margin,
//! so that a fence inside an example that is indented neither begins nor ends it.

use std::ops::Range;

/// A block. Ranges are bytes of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// The line that opens it.
    pub(super) opened: Range<usize>,
    /// What stands between the fences.
    pub(super) inside: Range<usize>,
    /// What stands behind the line that closes it.
    pub(super) after: usize,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Block(Block),
    /// Nothing, but a line that opens such a block and no line that closes it.
    Unclosed(Range<usize>),
    Nothing,
}

/// What a line is inside of.
enum Inside {
    Code { mark: u8, length: usize },
    Comment,
}

/// The first block whose opening line says `info`.
pub(super) fn find(text: &str, info: &str) -> Found {
    let mut inside: Option<Inside> = None;
    let mut ours: Option<(Range<usize>, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let here = at..at + line.len();
        at = here.end;
        let bare = line.trim_end();
        if let Some((opened, start)) = &ours {
            if bare == "```" {
                return Found::Block(Block {
                    opened: opened.clone(),
                    inside: *start..here.start,
                    after: here.end,
                });
            }
            continue;
        }
        match &inside {
            Some(Inside::Code { mark, length }) => {
                if closes(bare, *mark, *length) {
                    inside = None;
                }
                continue;
            }
            Some(Inside::Comment) => {
                if bare.contains("-->") {
                    inside = None;
                }
                continue;
            }
            None => {}
        }
        if bare.strip_prefix("```") == Some(info) {
            ours = Some((here.start..here.start + bare.len(), here.end));
        } else if let Some((mark, length)) = opens(bare) {
            inside = Some(Inside::Code { mark, length });
        } else if bare.trim_start().starts_with("<!--") && !bare.contains("-->") {
            inside = Some(Inside::Comment);
        }
    }
    match ours {
        Some((opened, _)) => Found::Unclosed(opened),
        None => Found::Nothing,
    }
}

/// The mark and the length of the fence that a line opens.
fn opens(line: &str) -> Option<(u8, usize)> {
    let fence = line.trim_start_matches(' ');
    let mark = *fence.as_bytes().first().filter(|mark| matches!(mark, b'`' | b'~'))?;
    let length = fence.bytes().take_while(|byte| *byte == mark).count();
    let is_fence = line.len() - fence.len() < 4 && length >= 3;
    // Backticks behind backticks make a piece of code within a line.
    (is_fence && !(mark == b'`' && fence[length..].contains('`'))).then_some((mark, length))
}

fn closes(line: &str, mark: u8, length: usize) -> bool {
    let fence = line.trim_start_matches(' ');
    line.len() - fence.len() < 4 && fence.len() >= length && fence.bytes().all(|byte| byte == mark)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inside(text: &str) -> Option<&str> {
        match find(text, "xml") {
            Found::Block(block) => Some(&text[block.inside]),
            _ => None,
        }
    }

    #[test]
    fn a_block_inside_another_one_is_text() {
        let text = "````markdown\n```xml\n<inner/>\n```\n````\n\n```xml\n<outer/>\n```\nB";
        assert_eq!(inside(text), Some("<outer/>\n"));
        let text = "~~~\n```xml\n<inner/>\n```\n~~~\n```xml  \n<outer/>\n``` \n";
        assert_eq!(inside(text), Some("<outer/>\n"));
        let text = "<!-- like this:\n```xml\n<inner/>\n```\n-->\n```xml\n<outer/>\n```";
        assert_eq!(inside(text), Some("<outer/>\n"));
    }

    #[test]
    fn a_block_fence_has_three_backticks_at_the_margin() {
        for text in
            ["  ```xml\n<a/>\n  ```\n", "```xml code\n<a/>\n```\n", "````xml\n<a/>\n````\n", "```\n```xml\n"]
        {
            assert_eq!(inside(text), None, "{text:?}");
        }
        assert_eq!(inside("```xml\n<a>\n  ```\n</a>\n```\nB"), Some("<a>\n  ```\n</a>\n"));
        assert_eq!(inside("```xml\n<a/>\n```trailing\n```\nB"), Some("<a/>\n```trailing\n"));
    }

    #[test]
    fn an_unclosed_block_is_not_a_missing_block() {
        assert_eq!(find("a\n```xml\n<a/>\n", "xml"), Found::Unclosed(2..8));
        assert_eq!(find("a\n```yaml\n```\n", "xml"), Found::Nothing);
    }

    #[test]
    fn windows_line_ends_do_not_matter() {
        assert_eq!(inside("```xml\r\n<a/>\r\n```\r\nB"), Some("<a/>\r\n"));
    }
}
