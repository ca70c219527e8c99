//! The messages of a `.prompty` file, which no other notation has.

use super::Drafting;
use crate::chat::{Marker, Role, Roles};
use crate::convert::draft::{Draft, Piece, RoleLines};
use crate::convert::target_text::{is_marker, lines, noun};
use crate::prompt::Prompt;

impl Drafting<'_> {
    /// Takes the one role marker away that a text may begin with; several make messages that no other notation has.
    pub(super) fn roles(&mut self, prompt: &Prompt, draft: &mut Draft) {
        let [chunk] = draft.words.as_mut_slice() else { return };
        let source = &prompt.template;
        let roles = Roles::of(&prompt.format.parser_options);
        let text = source.text();
        let mut at = 0;
        let mut markers: Vec<(Role, std::ops::Range<usize>)> = Vec::new();
        for line in text.split_inclusive('\n') {
            let range = at..at + line.len();
            at = range.end;
            if let Some(role) = Marker::in_template(line.trim_end_matches('\n'), &roles) {
                markers.push((role, range));
            }
        }
        if let Ok(pieces) = &chunk.pieces {
            // What is quoted in a template is text, and no marker.
            let real = lines(pieces).iter().filter(|line| is_marker(line, &roles)).count();
            if real == 0 {
                markers.clear();
            }
        }
        let is_first = |range: &std::ops::Range<usize>| text[..range.start].trim().is_empty();
        match markers.as_slice() {
            [] => {}
            [(role, range)] if is_first(range) => {
                let line = &text[range.clone()];
                if line.contains('[') {
                    let message = "the attributes of the message are left out";
                    self.report.lost("roles", message).at(Some(source.place(range.start..range.end)));
                }
                draft.role = role.clone();
                draft.opening = RoleLines::Taken;
                let end = range.end;
                if let Some((_, written)) = &mut chunk.written {
                    *written = written.get(end..).unwrap_or_default().trim_matches('\n').to_owned();
                }
                if let Some(jinja) = &mut chunk.jinja {
                    // The marker is text of the author, which reads the same there.
                    let bare = jinja.trim_start();
                    let rest = bare.split_once('\n').map_or("", |(_, rest)| rest);
                    *jinja = rest.trim_matches('\n').to_owned();
                }
                if let Ok(pieces) = &mut chunk.pieces {
                    without_first_line(pieces);
                }
            }
            [(_, first), ..] => {
                draft.opening = RoleLines::Several;
                // What stands before the first of the lines is a message as well.
                let messages = markers.len() + usize::from(!is_first(first));
                let message = format!(
                    "the text has {} messages, but a {} is one message: the role lines become text",
                    messages,
                    noun(self.target)
                );
                let hint = "only .prompty files can have several messages; split the prompt, or add the others in your \
                         program";
                self.report.lost("roles", message).at(Some(source.place(first.clone()))).hint(hint);
            }
        }
    }
}

/// Takes the marker away that the first line with words is, and the newlines around what is left.
fn without_first_line(pieces: &mut Vec<Piece>) {
    // Everything up to the newline behind the marker goes, also a value in one of its attributes.
    let mut marked = false;
    let mut kept: Vec<Piece> = Vec::new();
    for piece in pieces.drain(..) {
        match piece {
            piece if marked => kept.push(piece),
            Piece::Text(text) => {
                let start = if kept.is_empty() { text.len() - text.trim_start().len() } else { 0 };
                if let Some(newline) = text[start..].find('\n') {
                    marked = true;
                    kept.push(Piece::Text(text[start + newline + 1..].to_owned()));
                }
            }
            Piece::Value { .. } => {}
        }
    }
    if let Some(Piece::Text(text)) = kept.first_mut() {
        *text = text.trim_start_matches('\n').to_owned();
    }
    if let Some(Piece::Text(text)) = kept.last_mut() {
        *text = text.trim_end_matches('\n').to_owned();
    }
    *pieces = kept;
}
