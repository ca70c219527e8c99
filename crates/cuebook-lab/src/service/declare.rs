//! Declaring a variable where its prompt has its declarations.

use std::path::Path;

use super::layout::{Notation, front_matter};
use super::rename::Edit;
use super::{Location, Service};
use crate::prompt::Traits;

impl Service {
    /// The edit that declares a variable for one of the prompts that a file is a part of.
    pub(super) fn declare_in_any(&self, path: &Path, name: &str) -> Option<Edit> {
        let prompts = self.users(path, super::FEW).into_iter();
        let ids = prompts.filter_map(|source| self.index.get(&source)).map(|one| one.found.id.clone());
        ids.collect::<Vec<_>>().iter().find_map(|id| self.declare(path, id, name))
    }

    /// The edit that declares a variable for the prompt of a file.
    pub(super) fn declare(&self, path: &Path, id: &str, name: &str) -> Option<Edit> {
        let prompts = self.users(path, usize::MAX).into_iter();
        let one = prompts.filter_map(|source| self.index.get(&source)).find(|one| one.found.id == id)?;
        let candidate = &one.found.candidate;
        let own = crate::targets::place(candidate)?;
        let file = if own.is_dir() { own.join(crate::library::PROMPT_FILE) } else { own };
        let text = self.text(&file)?;
        let (at, added) = declaration(&text, candidate.dialect, Notation::of(&file), name)?;
        let edit = Edit { location: Location::new(file, at..at), text: added };
        // Only what is a declaration is offered.
        let mut changed = text.to_string();
        changed.insert_str(at, &edit.text);
        let mut buffers = self.buffers.clone();
        buffers.set(edit.location.path.clone(), changed);
        let basis = self.basis.as_ref()?;
        let after = buffers.during(|| basis.prepare(&self.book, &one.found));
        after.first()?.prompt().variable(name).map(|_| edit)
    }
}

/// Where a variable is declared in a file, and the text that does it.
fn declaration(text: &str, dialect: &Traits, notation: Notation, name: &str) -> Option<(usize, String)> {
    if dialect.is_item {
        let written = format!("<input name=\"{name}\" type=\"string\"></input>");
        if let Some(at) = text.find("<inputs>") {
            return Some((at + "<inputs>".len(), format!("\n{written}")));
        }
        return text
            .find("</metadata>")
            .map(|at| (at + "</metadata>".len(), format!("\n<inputs>\n{written}\n</inputs>")));
    }
    if notation == Notation::Python {
        let written = format!("{{\"name\": \"{name}\", \"type\": \"string\", \"default\": \"\"}}");
        for key in ["\"optional\"", "'optional'"] {
            let behind = text.find(key).map(|at| at + key.len());
            if let Some(at) = behind.and_then(|at| text[at..].find('[').map(|found| at + found + 1)) {
                let gap = if text[at..].trim_start().starts_with(']') { "" } else { ", " };
                return Some((at, format!("{written}{gap}")));
            }
        }
        let at = text.find("VARIABLES")?;
        let at = text[at..].find('{').map(|found| at + found + 1)?;
        let gap = if text[at..].trim_start().starts_with('}') { "" } else { ", " };
        return Some((at, format!("\"optional\": [{written}]{gap}")));
    }
    let Some(front) = front_matter(text) else {
        return Some((0, format!("---\ninputs:\n  - name: {name}\n    kind: string\n---\n")));
    };
    let (mut at, mut inputs) = (front.start, None);
    for line in text[front.clone()].split_inclusive('\n') {
        let is_top = !line.starts_with([' ', '-', '\n', '\r', '#']);
        if inputs.is_some() && is_top {
            break;
        }
        at += line.len();
        if line.trim_end() == "inputs:" && is_top {
            inputs = Some(at);
        }
    }
    match inputs {
        Some(start) => {
            let first = text[start..front.end].lines().next().unwrap_or_default();
            let indent = " ".repeat(first.len() - first.trim_start().len());
            let written = match first.trim_start().starts_with("- ") {
                true => format!("{indent}- name: {name}\n{indent}  kind: string\n"),
                false => format!("{indent}{name}:\n{indent}  kind: string\n"),
            };
            Some((at, written))
        }
        None => Some((front.end, format!("inputs:\n  - name: {name}\n    kind: string\n"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::{DIRECTIVE, PROMPTY, TEMPLATE};

    fn declared(text: &str, dialect: &Traits, notation: Notation) -> String {
        let (at, added) = declaration(text, dialect, notation, "new").unwrap();
        let mut text = text.to_owned();
        text.insert_str(at, &added);
        text
    }

    #[test]
    fn a_variable_is_declared_where_its_notation_has_them() {
        let prompty = |text| declared(text, &PROMPTY, Notation::Prompty);
        assert_eq!(
            prompty("---\nname: a\n---\nHi"),
            "---\nname: a\ninputs:\n  - name: new\n    kind: string\n---\nHi"
        );
        assert_eq!(
            prompty("---\ninputs:\n  - name: a\n    kind: string\nname: b\n---\n"),
            "---\ninputs:\n  - name: a\n    kind: string\n  - name: new\n    kind: string\nname: b\n---\n"
        );
        assert_eq!(
            prompty("---\ninputs:\n  a: {kind: string}\n---\n"),
            "---\ninputs:\n  a: {kind: string}\n  new:\n    kind: string\n---\n"
        );
        assert_eq!(prompty("Hi"), "---\ninputs:\n  - name: new\n    kind: string\n---\nHi");
        let python = |text| declared(text, &TEMPLATE, Notation::Python);
        let new = "{\"name\": \"new\", \"type\": \"string\", \"default\": \"\"}";
        assert_eq!(python("VARIABLES = {}"), format!("VARIABLES = {{\"optional\": [{new}]}}"));
        assert_eq!(
            python("VARIABLES = {'optional': [{'name': 'a'}]}"),
            format!("VARIABLES = {{'optional': [{new}, {{'name': 'a'}}]}}")
        );
        let xml = "<metadata></metadata><inputs><input name=\"a\"/></inputs>";
        assert!(declared(xml, &DIRECTIVE, Notation::Directive).contains("<inputs>\n<input name=\"new\""));
    }
}
