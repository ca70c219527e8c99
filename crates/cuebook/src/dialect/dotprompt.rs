//! `.prompt` files of Google's dotprompt: YAML front matter and a Handlebars template.
//!
//! A file `NAME.prompt` is the prompt `NAME`, `NAME.VARIANT.prompt` is another one, and `_NAME.prompt` is a partial: `{{> NAME}}`.
//! The conversation that `{{history}}` shows is the variable `@history`, and `@auth` in a template is the variable `@auth`.

mod front;
mod model;
mod picoschema;
mod schema;
mod tools;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

pub use self::front::Front;
use self::schema::Inputs;
use super::template::TextBody;
use super::{Body, Compiling, Dialect, Offer, Parsed, Read, Reading};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::prompt::{DOTPROMPT, Format, Metadata, Need, Prompt, Rich, Traits, Type, Variable};
use crate::render::MARKS;
use crate::source::{Place, Source};
use crate::template::engine::{Compiled, Engine, Job, Loader};
use crate::template::handlebars::{self, HISTORY, Handlebars};
use crate::template::set_names::SetNames;

/// `.prompt` files.
#[derive(Debug)]
pub(super) struct Dotprompt;

impl Dialect for Dotprompt {
    fn traits(&self) -> &'static Traits {
        &DOTPROMPT
    }

    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
        Ok(metadata(offer, &Front::read(&offer.text()?)?))
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read> {
        let source = reading.text()?;
        let front = Front::read(&source)?;
        let names = |name: &str| schema::named(reading, name);
        let mut notes = front.notes();
        let inputs = Inputs::read(&front, &names)?;
        let outputs = schema::outputs(&front, &names, &mut notes)?;
        let mut variables = inputs.variables;
        let declared: HashSet<String> = variables.iter().map(|known| known.name.clone()).collect();
        let mentioned = handlebars::variables(&front.template, &handlebars::Settings::default())?;
        for (name, range) in mentioned {
            // Without a schema the prompt takes what its template shows.
            let is_taken = !inputs.is_declared || name.starts_with('@');
            if is_taken && name != HISTORY && name != "system" && !declared.contains(&name) {
                let default = inputs.defaults.get(&name).cloned();
                let place = Some(front.template.place(range));
                variables.push(Variable {
                    default,
                    place,
                    lenient: true,
                    ..Variable::new(name, Need::Optional)
                });
            }
        }
        variables.push(Variable {
            rich: Some(Rich::Thread),
            kind: Type::Any,
            lenient: true,
            description: Some("the conversation so far".into()),
            ..Variable::new(HISTORY, Need::Optional)
        });
        let options = |object: Json| match object {
            Json::Object(object) => object,
            _ => Map::new(),
        };
        let prompt = Prompt {
            variables: variables.into(),
            outputs,
            model: model::read(&front)?,
            tools: tools::read(&front, &names, &mut notes)?.into(),
            format: Format {
                engine: "handlebars".into(),
                options: options(json!({"metadata": {"prompt": front.shown()}})),
                parser: Some(MARKS.into()),
                parser_options: options(json!({"text": "exact", "history": HISTORY})),
                ..Format::plain()
            },
            ..reading.prompt(metadata(reading.offer(), &front), front.template.clone())
        };
        Ok(Read { notes, ..Read::new(prompt) })
    }

    fn compile(&self, _: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>> {
        let format = &compiling.prompt().format;
        let compiled = Handlebars.compile(Job {
            source: compiling.prompt().template.clone(),
            loader: Arc::new(Partials(compiling.loader().clone())),
            settings: compiling.settings(),
            options: &format.options,
            place: None,
        })?;
        Ok(Box::new(TextBody(compiled)))
    }
}

fn metadata(offer: &Offer<'_>, front: &Front) -> Metadata {
    let text = |key: &str| front.root.get(key).and_then(|node| node.text()).map(str::to_owned);
    offer.metadata(text("name"), text("description"), &front.other())
}

/// Partials: `{{> name}}` is the file `_name.prompt` beside the prompt or in a folder of prompts; any other file has its whole name.
struct Partials(Arc<dyn Loader>);

impl Partials {
    fn names(name: &str) -> [String; 2] {
        let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
        let separator = if folder.is_empty() { "" } else { "/" };
        [format!("{folder}{separator}_{file}.prompt"), name.to_owned()]
    }
}

impl Loader for Partials {
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        for name in Partials::names(name) {
            if let Some(source) = self.0.load(&name, parent)? {
                return Ok(Some(source));
            }
        }
        Ok(None)
    }

    fn included(&self, name: &str, at: &Place) -> Result<Option<Arc<dyn Compiled>>> {
        self.0.included(name, at)
    }

    fn note_set_names(&self, at: &Place, set_names: &SetNames) {
        self.0.note_set_names(at, set_names);
    }

    fn suggestions(&self, name: &str) -> Vec<String> {
        let [partial, whole] = Partials::names(name);
        let mut found = self.0.suggestions(&whole);
        found.push(partial);
        found.truncate(3);
        found
    }
}

/// The error for something wrong in the front matter.
fn wrong(place: Place, message: impl Into<String>, hint: impl Into<Hint>) -> Error {
    let diagnostic = Diagnostic::new(Code::BadFrontMatter, message.into()).at(place).hint(hint.into());
    Error::new(ErrorKind::PromptRead, diagnostic)
}
