//! Whitespace control: what `~` removes, and lines that hold nothing but a block, a comment or a partial.
//!
//! The rules are those of Handlebars, also where they surprise: a text counts as it was written when a line is judged, and as it is
//! left when it is cut.

use std::ops::Range;

use super::scan::is_space;
use super::tree::{Node, Program, Strip, Text};

/// What a node asks of the text around it.
#[derive(Default)]
struct Wish {
    strip: Strip,
    open_standalone: bool,
    close_standalone: bool,
    inline_standalone: bool,
}

pub(super) fn control(text: &str, program: &mut Program) {
    Control { text }.program(program, true);
}

struct Control<'t> {
    text: &'t str,
}

impl Control<'_> {
    fn program(&self, program: &mut Program, is_root: bool) {
        let body = &mut program.body;
        for index in 0..body.len() {
            let Some(wish) = self.wish(&mut body[index]) else { continue };
            let before = self.blank_before(body, index, is_root);
            let behind = self.blank_behind(body, Some(index), is_root);
            let inline = wish.inline_standalone && before && behind;
            if wish.strip.close {
                self.omit_right(body, Some(index), true);
            }
            if wish.strip.open {
                self.omit_left(body, index, true);
            }
            if inline {
                self.omit_right(body, Some(index), false);
                if self.omit_left(body, index, false)
                    && let Some(indent) = self.indent(body, index)
                    && let Node::Partial(partial) = &mut body[index]
                {
                    partial.indent = Some(indent);
                }
            }
            if wish.open_standalone && before {
                if let Node::Block(block) = &mut body[index]
                    && let Some(first) = block.program.as_mut().or(block.inverse.as_mut())
                {
                    self.omit_right(&mut first.body, None, false);
                }
                self.omit_left(body, index, false);
            }
            if wish.close_standalone && behind {
                self.omit_right(body, Some(index), false);
                if let Node::Block(block) = &mut body[index]
                    && let Some(last) = block.inverse.as_mut().or(block.program.as_mut())
                {
                    let end = last.body.len();
                    self.omit_left(&mut last.body, end, false);
                }
            }
        }
    }

    fn wish(&self, node: &mut Node) -> Option<Wish> {
        Some(match node {
            Node::Text(_) => return None,
            Node::Output { strip, .. } => Wish { strip: *strip, ..Wish::default() },
            Node::Comment(strip) => Wish { strip: *strip, inline_standalone: true, ..Wish::default() },
            Node::Partial(partial) => {
                Wish { strip: partial.strip, inline_standalone: true, ..Wish::default() }
            }
            Node::Block(block) => {
                for program in [&mut block.program, &mut block.inverse].into_iter().flatten() {
                    self.program(program, false);
                }
                let (open, middle, close) = (block.open, block.middle, block.close);
                let (first, inverse) = match (&mut block.program, &mut block.inverse) {
                    (Some(program), inverse) => (program, inverse.as_mut()),
                    (None, Some(inverse)) => (inverse, None),
                    (None, None) => return None,
                };
                // Of `{{else if …}}` the text behind it counts.
                let inverse = inverse.map(|inverse| match inverse.chained {
                    true => match inverse.body.first_mut() {
                        Some(Node::Block(block)) if block.program.is_some() => block.program.as_mut(),
                        _ => None,
                    },
                    false => Some(inverse),
                });
                let mut inverse = inverse.flatten();
                let open_standalone = self.blank_behind(&first.body, None, false);
                let last = inverse.as_deref().unwrap_or(&*first);
                let close_standalone = self.blank_before(&last.body, last.body.len(), false);
                if open.close {
                    self.omit_right(&mut first.body, None, true);
                }
                let end = first.body.len();
                match &mut inverse {
                    Some(inverse) => {
                        if middle.open {
                            self.omit_left(&mut first.body, end, true);
                        }
                        if middle.close {
                            self.omit_right(&mut inverse.body, None, true);
                        }
                        if close.open {
                            let end = inverse.body.len();
                            self.omit_left(&mut inverse.body, end, true);
                        }
                        let alone = self.blank_before(&first.body, end, false)
                            && self.blank_behind(&inverse.body, None, false);
                        if alone {
                            self.omit_left(&mut first.body, end, false);
                            self.omit_right(&mut inverse.body, None, false);
                        }
                    }
                    None if close.open => {
                        self.omit_left(&mut first.body, end, true);
                    }
                    None => {}
                }
                let strip = Strip { open: open.open, close: close.close };
                Wish { strip, open_standalone, close_standalone, inline_standalone: false }
            }
        })
    }

    /// Whether a line begins right before a node, but for white space.
    fn blank_before(&self, body: &[Node], index: usize, is_root: bool) -> bool {
        let Some(previous) = index.checked_sub(1) else { return is_root };
        let Some(Node::Text(text)) = body.get(previous) else { return false };
        let original = &self.text[text.original.clone()];
        let kept = original.trim_end_matches(is_space).len();
        original[kept..].contains('\n') || (kept == 0 && previous == 0 && is_root)
    }

    /// Whether a line ends right behind a node, but for white space; without a node, whether one ends at the beginning.
    fn blank_behind(&self, body: &[Node], index: Option<usize>, is_root: bool) -> bool {
        let next = index.map_or(0, |index| index + 1);
        let Some(node) = body.get(next) else { return is_root };
        let Node::Text(text) = node else { return false };
        let original = &self.text[text.original.clone()];
        let blank = original.len() - original.trim_start_matches(is_space).len();
        original[..blank].contains('\n') || (blank == original.len() && next + 1 == body.len() && is_root)
    }

    /// Removes white space at the beginning of the text behind a node: all of it, or that of one line with its end.
    fn omit_right(&self, body: &mut [Node], index: Option<usize>, all: bool) {
        let next = index.map_or(0, |index| index + 1);
        let Some(Node::Text(text)) = body.get_mut(next) else { return };
        if !all && text.right_stripped {
            return;
        }
        let kept = &self.text[text.kept.clone()];
        let rest = match all {
            true => kept.trim_start_matches(is_space),
            false => {
                let rest = kept.trim_start_matches([' ', '\t']);
                rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest)
            }
        };
        text.right_stripped = rest.len() < kept.len();
        text.kept.start = text.kept.end - rest.len();
    }

    /// Removes white space at the end of the text before a node: all of it, or that of its last line. Whether there was any.
    fn omit_left(&self, body: &mut [Node], index: usize, all: bool) -> bool {
        let Some(Node::Text(text)) = index.checked_sub(1).and_then(|previous| body.get_mut(previous)) else {
            return false;
        };
        if !all && text.left_stripped {
            return false;
        }
        let kept = &self.text[text.kept.clone()];
        let rest = match all {
            true => kept.trim_end_matches(is_space),
            false => kept.trim_end_matches([' ', '\t']),
        };
        text.left_stripped = rest.len() < kept.len();
        text.kept.end = text.kept.start + rest.len();
        text.left_stripped
    }

    fn indent(&self, body: &[Node], index: usize) -> Option<Range<usize>> {
        let Some(Node::Text(Text { original, .. })) = body.get(index.checked_sub(1)?) else { return None };
        let written = &self.text[original.clone()];
        let kept = written.trim_end_matches([' ', '\t']).len();
        Some(original.start + kept..original.end)
    }
}
