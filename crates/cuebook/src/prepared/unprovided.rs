//! Namespaces that a template asks about and nothing provides: `{% if git.available %}` is false without a pack for `git`, as if an
//! optional provider had failed. A render and `check` report it ([CB420](Code::NoProvider)).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Prepared;
use crate::error::{Code, Diagnostic, did_you_mean, nearest};
use crate::source::Place;
use crate::variables::{Context, FUNCTIONS, Layer, SYSTEM, Variables};

impl Prepared {
    /// The namespaces that conditions of the templates ask about and nothing can fill but a caller, each with its first place.
    pub(super) fn find_unprovided(&self) -> BTreeMap<String, Place> {
        let mut found = BTreeMap::new();
        if !self.prompt.dialect.is_folder {
            return found;
        }
        let program = self.outline();
        for (unit, names) in program.units().iter().zip(program.names()) {
            for read in &names.reads {
                let root = read.root.as_str();
                let is_known = self.prompt.variable(root).is_some()
                    || self.names.namespaces.contains_key(root)
                    || root == SYSTEM
                    || self.is_session(root)
                    || FUNCTIONS.contains(&root)
                    || self.settings.extensions.has_global(root);
                let is_namespace = read.path.starts_with(&format!("{root}.")) && !read.maybe_local;
                if is_namespace && !is_known && is_condition(unit.source().text(), read.range.start) {
                    let place = unit.source().place(read.range.clone());
                    found.entry(root.to_owned()).or_insert(place);
                }
            }
        }
        found
    }

    /// What is reported of the namespaces that nothing filled. A hook may still fill them.
    pub(super) fn unprovided_in(&self, variables: &Variables, context: &Arc<Context>) -> Vec<Diagnostic> {
        if self.names.unprovided.is_empty() || !self.prompt.hooks.is_empty() {
            return Vec::new();
        }
        let scope = self.scope(variables, context);
        let is_empty = |name: &str| {
            scope.layer(name) == Some(Layer::Defaults) && self.files.defaults.variables.value(name).is_none()
        };
        let empty = self.names.unprovided.iter().filter(|(name, _)| is_empty(name));
        empty.map(|(name, place)| self.no_provider(name, place)).collect()
    }

    /// What is reported of them without a render.
    pub(super) fn all_unprovided(&self) -> impl Iterator<Item = Diagnostic> + '_ {
        let empty = self.names.unprovided.iter();
        let empty = empty.filter(|(name, _)| self.files.defaults.variables.value(name).is_none());
        empty.map(|(name, place)| self.no_provider(name, place))
    }

    fn no_provider(&self, name: &str, place: &Place) -> Diagnostic {
        let known = self.provided_namespaces();
        let declared = self.prompt.variables.iter().map(|variable| variable.name.as_str());
        let near = nearest(name, known.iter().map(String::as_str).chain(declared));
        let hint = did_you_mean(&near).unwrap_or_else(|| {
            format!("install a pack that provides `{name}`, pass a value, or declare a variable `{name}`")
        });
        let message = format!("no pack provides `{name}`, so everything in it is undefined");
        Diagnostic::new(Code::NoProvider, message).at(place.clone()).hint(hint)
    }
}

/// Whether a place of a template lies in a condition: of `if` or `elif`, or behind the `if` of an expression.
fn is_condition(text: &str, at: usize) -> bool {
    let Some(before) = text.get(..at) else { return false };
    let Some(open) = before.rfind("{%").max(before.rfind("{{")) else { return false };
    let (tag, inside) = before[open..].split_at(2);
    let inside = inside.trim_start_matches(['-', '+']);
    let mut words = inside.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    match tag {
        "{%" => matches!(words.find(|word| !word.is_empty()), Some("if" | "elif")),
        _ => words.any(|word| word == "if"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_an_if_or_an_elif() {
        for (text, expected) in [
            ("{% if @git.x %}", true),
            ("{%- elif a and @git.x %}", true),
            ("{{ 'a' if @git.x }}", true),
            ("{{ @git.x }}", false),
            ("{% if a %}{{ @git.x }}", false),
            ("{% for x in @git.x %}", false),
            ("{% set iffy = @git.x %}", false),
        ] {
            let at = text.find('@').unwrap();
            assert_eq!(is_condition(&text.replace('@', ""), at), expected, "{text}");
        }
    }
}
