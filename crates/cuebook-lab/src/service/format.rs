//! Formatting of front matter: the same YAML in an even form, and nothing else.

use std::path::Path;

use super::layout::Notation;
use super::rename::Edit;
use super::tokens::lines;
use super::{Location, Service};
use crate::error::{Code, ErrorKind};
use crate::source::Source;
use crate::yaml::Document;

impl Service {
    /// The edit that gives the front matter of a file an even form: no space at the ends of lines, one space behind a colon, no more
    /// than one empty line. Its meaning stays the same; if that cannot be shown, there is no edit.
    pub fn format(&self, path: &Path) -> Option<Edit> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let front = Notation::of(path).front_matter(&text);
        let front = front.filter(|front| text[front.end..].trim_start().len() >= 3)?;
        let before = &text[front.clone()];
        let after = formatted(before);
        let is_same = meaning(before).is_some_and(|before| meaning(&after) == Some(before));
        (is_same && after != before).then(|| Edit { location: Location::new(path, front), text: after })
    }
}

/// What YAML says.
fn meaning(text: &str) -> Option<serde_json::Value> {
    let source = Source::verbatim("front matter", text);
    let document =
        Document::parse(&source, 0..text.len(), Code::BadFrontMatter, ErrorKind::PromptRead).ok()?;
    Some(document.into_root().to_json())
}

fn formatted(text: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let mut out = String::with_capacity(text.len());
    // The indent of a block of text, which stays as it is.
    let mut block: Option<usize> = None;
    let mut was_blank = true;
    for (line, _) in lines(text, 0..text.len()) {
        let line = line.trim_end_matches(['\n', '\r']);
        let indent = line.len() - line.trim_start_matches(' ').len();
        let is_blank = line.trim().is_empty();
        if block.is_some_and(|outer| is_blank || indent > outer) {
            out.push_str(line);
            out.push_str(end);
            continue;
        }
        block = None;
        if is_blank && was_blank {
            continue;
        }
        was_blank = is_blank;
        let line = spaced(line.trim_end());
        let last = line.rsplit(' ').next().unwrap_or_default();
        if last.starts_with(['|', '>']) && last.len() <= 3 {
            block = Some(indent);
        }
        out.push_str(&line);
        out.push_str(end);
    }
    out
}

/// One space behind the colon of a key.
fn spaced(line: &str) -> String {
    let lead = line.len() - line.trim_start_matches([' ', '-']).len();
    let rest = &line[lead..];
    let key = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
    match rest[key..].strip_prefix(':') {
        Some(value) if key > 0 && value.starts_with("  ") => {
            format!("{}{}: {}", &line[..lead], &rest[..key], value.trim_start())
        }
        _ => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn front_matter_gets_an_even_form_and_blocks_of_text_stay() {
        let text = "\n\nname:   a  \n\n\ninputs:\n  - name:  b\ndescription: |\n  one  \n\n\n    two\nx: 1\n";
        let wanted = "name: a\n\ninputs:\n  - name: b\ndescription: |\n  one  \n\n\n    two\nx: 1\n";
        assert_eq!(formatted(text), wanted);
        assert_eq!(meaning(text), meaning(wanted));
        assert_eq!(formatted(wanted), wanted);
    }

    #[test]
    fn line_ends_stay() {
        assert_eq!(formatted("a:  1\r\nb: 2\r\n"), "a: 1\r\nb: 2\r\n");
    }
}
