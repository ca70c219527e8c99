//! The parameters of what is being called at a cursor.

use std::path::Path;

use cuebook_template::{Group, reference};

use super::Service;
use super::cursor::is_word;
use super::layout::{Piece, pieces, tags};

/// A filter, test, function or macro whose arguments are being written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Signature {
    /// The name with its parameters.
    pub label: String,
    /// Its documentation, as Markdown.
    pub documentation: String,
    /// The parameters, as they stand in the label.
    pub parameters: Vec<String>,
    /// Which of them is being written.
    pub active: usize,
}

impl Service {
    /// What is being called at a byte of a file.
    pub fn signature(&self, path: &Path, offset: usize) -> Option<Signature> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let tag =
            tags(&text, 0).into_iter().find(|tag| tag.inside.start <= offset && offset <= tag.range.end)?;
        // The innermost call that is open at the cursor.
        let mut open: Vec<(Option<std::ops::Range<usize>>, usize)> = Vec::new();
        let mut before: Option<(Piece, std::ops::Range<usize>)> = None;
        let written = pieces(
            &text,
            tag.inside.start..offset.clamp(tag.inside.start, tag.inside.end.max(tag.inside.start)),
        );
        for (piece, range) in written {
            match &text[range.clone()] {
                "(" => {
                    let name = before.take().filter(|(piece, _)| *piece == Piece::Name);
                    open.push((name.map(|(_, range)| range), 0));
                }
                "[" | "{" => open.push((None, 0)),
                ")" | "]" | "}" => drop(open.pop()),
                "," => open.last_mut().into_iter().for_each(|(_, count)| *count += 1),
                _ => {}
            }
            before = Some((piece, range));
        }
        let (name, active) = open.into_iter().rev().find_map(|(name, active)| Some((name?, active)))?;
        let lead = text[..name.start].trim_end();
        let is_filter = lead.ends_with('|');
        let word = &text[name.clone()];
        let group = match is_filter {
            true => Group::Filter,
            false if lead.ends_with(" is") || lead.ends_with(" not") => Group::Test,
            false => Group::Function,
        };
        let named = self.macro_named(path, word);
        let label = self.macro_signature(path, named.as_deref().unwrap_or(word)).filter(|_| !is_filter);
        let (label, documentation) = match label {
            Some(label) => (label, String::new()),
            None => {
                let entry = reference()
                    .into_iter()
                    .find(|entry| entry.group == group && entry.name == word && !entry.chat)?;
                (entry.signature.clone(), super::hover::documentation(&entry))
            }
        };
        let parameters = parameters(&label);
        let active = active.min(parameters.len().saturating_sub(1));
        Some(Signature { label, documentation, parameters, active })
    }

    /// How a macro is declared, as in `greet(name, loud=false)`: in this file, or in one that it imports.
    pub(super) fn macro_signature(&self, path: &Path, name: &str) -> Option<String> {
        let mut files = vec![path.to_owned()];
        for source in self.users(path, 1) {
            files.extend(self.index.get(&source).into_iter().flat_map(|one| one.files.iter().cloned()));
        }
        files.iter().find_map(|file| {
            let text = self.text(file)?;
            let found = tags(&text, 0).into_iter().find(|tag| {
                let inside = text[tag.inside.clone()].trim().strip_prefix("macro");
                let rest = inside.map(str::trim_start).and_then(|rest| rest.strip_prefix(name));
                rest.is_some_and(|rest| !rest.starts_with(is_word))
            })?;
            let inside = text[found.inside].trim().strip_prefix("macro")?.trim().to_owned();
            Some(inside)
        })
    }
}

/// The parameters of a label, without those that are marks.
fn parameters(label: &str) -> Vec<String> {
    let inside = label.split_once('(').map_or("", |(_, rest)| rest);
    let inside = inside.rsplit_once(')').map_or(inside, |(inside, _)| inside);
    let (mut found, mut depth, mut start) = (Vec::new(), 0usize, 0);
    for (at, letter) in inside.char_indices() {
        match letter {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(inside[start..at].trim().to_owned());
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(inside[start..].trim().to_owned());
    found.retain(|parameter| !parameter.is_empty() && parameter != "/" && parameter != "*");
    found
}

#[cfg(test)]
mod tests {
    use super::parameters;

    #[test]
    fn a_label_has_parameters() {
        assert_eq!(parameters("replace(old, new, count=None)"), ["old", "new", "count=None"]);
        assert_eq!(parameters("f(a=[1, 2], b=(3, 4))"), ["a=[1, 2]", "b=(3, 4)"]);
        assert_eq!(parameters("upper()"), [""; 0]);
        assert_eq!(parameters("upper"), [""; 0]);
    }
}
