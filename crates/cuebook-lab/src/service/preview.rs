//! The rendered text of a prompt as it is typed, with the origin of every part.

use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::{Location, Service};
use crate::error::Result;
use crate::explain::label;
use crate::prepared::{Mode, Prepared};
use crate::prompt::{Type, Variable};
use crate::variables::{Context, Scope, Variables};

/// A rendered prompt.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Preview {
    /// The prompt's id.
    pub prompt: String,
    /// The text, in parts that each have one origin.
    pub parts: Vec<Part>,
    /// Variables that have no value; the text shows their names.
    pub placeholders: Vec<String>,
}

/// A part of a rendered text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The text.
    pub text: String,
    /// What kind of origin it has: `literal`, `value`, `rich`, `hook` or `frame`.
    pub kind: &'static str,
    /// The origin in a few words.
    pub label: String,
    /// Where it is written, or where the value is shown.
    pub location: Option<Location>,
}

impl Service {
    /// Renders the prompt of a file with the unsaved texts and these values. No hook runs; a required variable without a value shows
    /// its name.
    ///
    /// # Errors
    ///
    /// `None` if the file belongs to no prompt; else what keeps the prompt from being rendered.
    pub fn preview(&self, path: &Path, values: &Variables) -> Option<Result<Preview>> {
        let source = self.users(path, 1).into_iter().next()?;
        let found = self.index.get(&source)?.found.clone();
        Some(self.buffers.during(|| {
            let context = Arc::new(Context { without_hooks: true, ..Context::default() });
            let context = self.book.complete(&context)?;
            let config = self.book.library().config()?;
            let language = Scope::language(&context);
            let prepared = self.book.prepare_found(found, language, Mode::Lenient, &config, None)?;
            let (values, placeholders) = with_placeholders(&prepared, values, &context);
            let rendered = prepared.render(&values, &context)?;
            let parts = rendered.spans().map(|span| Part {
                text: rendered.text()[span.range.clone()].to_owned(),
                kind: span.origin.kind(),
                label: label(&span.origin),
                location: span.origin.place().map(|place| self.location(&place)),
            });
            Ok(Preview { prompt: prepared.prompt().id.clone(), parts: parts.collect(), placeholders })
        }))
    }
}

/// The values with a placeholder for each variable that has none, and the names of those variables.
pub fn with_placeholders(
    prepared: &Prepared,
    values: &Variables,
    context: &Arc<Context>,
) -> (Variables, Vec<String>) {
    let scope = prepared.scope(values, context);
    let (mut values, mut names) = (values.clone(), Vec::new());
    for variable in &prepared.prompt().variables {
        if scope.get(&variable.name).is_none()
            && let Some(value) = placeholder(variable)
        {
            values = values.set(variable.name.as_str(), value);
            names.push(variable.name.clone());
        }
    }
    (values, names)
}

/// A value that shows a variable's name, as far as its type can.
fn placeholder(variable: &Variable) -> Option<Json> {
    if variable.rich.is_some() {
        return None;
    }
    if let Some(choice) = variable.choices.first() {
        return Some(choice.clone());
    }
    let name = format!("‹{}›", variable.name);
    Some(match variable.kind {
        Type::String | Type::Any => json!(name),
        Type::Integer => json!(1),
        Type::Number => json!(1.5),
        Type::Boolean => json!(true),
        Type::List => json!([name]),
        Type::Object => json!({}),
    })
}
