//! What is known of something under a cursor, as Markdown.

use std::path::Path;

use cuebook_template::{Entry, Group, reference};

use super::Service;
use super::cursor::{Inside, inside, word_at};
use crate::prompt::{Need, Variable};
use crate::variables::{Context, Variables};

impl Service {
    /// What is known of what stands at a byte of a file.
    pub fn hover(&self, path: &Path, offset: usize) -> Option<String> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let word = word_at(&text, offset);
        let name = text.get(word.clone()).filter(|name| !name.is_empty())?;
        match inside(&text, word.end) {
            Inside::Filter(_) => callable(Group::Filter, name),
            Inside::Test(_) => callable(Group::Test, name),
            Inside::Name { before, .. } => {
                let root = before.split('.').next().filter(|root| !root.is_empty()).unwrap_or(name);
                self.variable(path, root).or_else(|| callable(Group::Function, name))
            }
            Inside::Path(_) => self.included(path, offset),
            Inside::Tag(_) | Inside::Text => None,
        }
    }

    fn variable(&self, path: &Path, name: &str) -> Option<String> {
        let prepared = self.prepared(path);
        let declared =
            prepared.iter().find_map(|prepared| Some((prepared, prepared.prompt().variable(name)?)));
        let Some((prepared, variable)) = declared else {
            let reads = prepared.iter().any(|prepared| prepared.known_names().contains(name));
            return reads.then(|| format!("**{name}**\n\nNot declared: the caller passes it."));
        };
        let mut lines = vec![format!("**{name}**: {}", declaration(variable))];
        lines.extend(variable.description.clone());
        if !variable.is_secret {
            let scope = prepared.scope(&Variables::new(), &Context::default().into());
            let shown = scope.get(name).map(|(layer, value)| {
                format!(
                    "Without a value from the caller: `{}` ({})",
                    short(&value.to_string()),
                    layer.describe()
                )
            });
            lines.extend(shown);
        }
        if let Some(parent) = &variable.inherited_from {
            lines.push(format!("Inherited from `{parent}`."));
        }
        if let Some(place) = &variable.place {
            lines.push(format!("Declared in {}:{}.", place.file(), place.line()));
        }
        Some(lines.join("\n\n"))
    }

    /// The template that a string names.
    fn included(&self, path: &Path, offset: usize) -> Option<String> {
        let location = self.definition(path, offset)?;
        let text = self.text(&location.path)?;
        let name = self.book().library().name(&location.path);
        Some(format!("`{name}`: {} lines, {} bytes", text.lines().count(), text.len()))
    }
}

/// How a variable is declared, in a few words.
pub(super) fn declaration(variable: &Variable) -> String {
    let need = match variable.need {
        Need::Required => "required",
        Need::Optional => "optional",
        Need::Custom => "custom",
    };
    let kind = variable.rich.map_or(variable.kind.as_str(), |rich| rich.as_str());
    match variable.default.as_ref().filter(|_| !variable.is_secret) {
        Some(default) => format!("{need} {kind}, default `{}`", short(&default.to_string())),
        None => format!("{need} {kind}"),
    }
}

/// The documentation of a filter, a test or a function.
pub(super) fn documentation(entry: &Entry) -> String {
    match entry.example.is_empty() {
        true => entry.about.to_owned(),
        false => format!("{}\n\n```jinja\n{}\n```\n\ngives `{}`", entry.about, entry.example, entry.result),
    }
}

fn callable(group: Group, name: &str) -> Option<String> {
    let entry = reference().into_iter().find(|entry| entry.group == group && entry.name == name)?;
    Some(format!("**{}**\n\n{}", entry.signature, documentation(&entry)))
}

/// The beginning of a long text.
fn short(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
