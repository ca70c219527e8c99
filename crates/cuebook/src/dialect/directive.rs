//! A directive as a prompt like any other.

mod body;

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

pub use self::body::DirectiveBody;
pub(crate) use self::body::wording;
use super::{Body, Compiling, Dialect, Offer, Parsed, Read, Reading};
use crate::error::Result;
use crate::items::Item;
use crate::library::{Defaults, LibraryLoader};
pub use crate::notation::directive::*;
use crate::prompt::{
    DIRECTIVE, Format, Limits, Metadata, Model, Need, Permissions as Granted, Prompt, Tools, Traits, Variable,
};
use crate::render::Rendered;
use crate::source::Source;
use crate::variables::{Scope, Variables};

/// The key of the engine that fills bodies.
const ENGINE: &str = "input";

/// Directives.
#[derive(Debug)]
pub(super) struct Directives;

impl Dialect for Directives {
    fn traits(&self) -> &'static Traits {
        &DIRECTIVE
    }

    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
        Ok(describe(&read(&offer.text()?)?, offer.id, offer.defaults))
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read> {
        let Reading { offer, loader } = reading;
        let Offer { id, candidate, defaults, .. } = *offer;
        if let Some(path) = candidate.root.path(&offer.file()) {
            loader.depend_on(path);
        }
        let (source, item) = bytes_of(offer, loader)?;
        let directive = read(&source)?.include(id, loader.include_depth()?, &mut |kind, id| {
            loader.item(kind, id)?.ok_or_else(|| loader.library().spaces().not_found(kind, id))
        })?;
        let notes = directive.notes.clone();
        let prompt = prompt(&directive, id, &candidate.source, defaults);
        Ok(Read { notes, parsed: Some(Box::new(File { directive, item })), ..Read::new(prompt) })
    }

    fn compile(&self, parsed: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>> {
        match parsed.map(|parsed| parsed.downcast::<File>()) {
            Some(Ok(file)) => Ok(Box::new(DirectiveBody::new(*file, compiling.is_included))),
            _ => Err(compiling.not_parsed()),
        }
    }
}

/// A directive, and the item that it was read from if it lies in a space.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) directive: Directive,
    pub(crate) item: Option<Item>,
}

/// The text of a candidate. What lies in a space is read as an item, so that what is verified is what is read.
fn bytes_of(offer: &Offer<'_>, loader: &LibraryLoader) -> Result<(Arc<Source>, Option<Item>)> {
    match loader.library().item_of(offer.id, offer.candidate)? {
        Some(located) => {
            let item = located.read(loader.limit())?;
            Ok((item.source()?, Some(item)))
        }
        None => Ok((offer.candidate.root.read(&offer.file(), loader.limit())?, None)),
    }
}

/// The definition of a directive as a prompt.
pub(crate) fn prompt(directive: &Directive, id: &str, source: &str, defaults: &Defaults) -> Prompt {
    let max_output_size = defaults.max_output_size.unwrap_or(Limits::GENEROUS_SIZE);
    Prompt {
        id: id.to_owned(),
        dialect: &DIRECTIVE,
        source: source.to_owned(),
        metadata: describe(directive, id, defaults),
        variables: directive.inputs.iter().filter(|input| !input.name.is_empty()).map(variable).collect(),
        permissions: Granted::default(),
        limits: Limits { max_output_size, ..Limits::default() },
        template: directive.source.clone(),
        code: None,
        hooks: Vec::new(),
        format: Format { engine: ENGINE.to_owned(), ..Format::plain() },
        model: directive.model.as_ref().map(model),
        tools: Tools::default(),
        // What it is to give is returned by a call, and not as the answer itself.
        outputs: Vec::new(),
    }
}

fn describe(directive: &Directive, id: &str, defaults: &Defaults) -> Metadata {
    let text = |written: &Option<Written>| written.as_ref().map(|text| text.to_string());
    let mut extra = defaults.metadata.clone();
    extra.extend(directive.more.iter().map(|(key, text)| (key.clone(), json!(text.as_str()))));
    if let Some(category) = &directive.category {
        extra.insert("category".into(), json!(category.as_str()));
    }
    if let Some(limits) = &directive.limits {
        extra.insert("limits".into(), json!(limits));
    }
    if let Some(permissions) = &directive.permissions {
        permissions_json(permissions, &mut extra);
    }
    if let Some(context) = &directive.context {
        extra.insert("context".into(), context.to_json());
    }
    if !directive.outputs.is_empty() {
        extra.insert("outputs".into(), directive.declared_outputs());
    }
    Metadata {
        name: text(&directive.name).unwrap_or_else(|| id.rsplit('/').next().unwrap_or(id).to_owned()),
        version: text(&directive.version).unwrap_or_else(|| "0.0.0".into()),
        kind: "directive".into(),
        extends: text(&directive.extends),
        template: None,
        description: text(&directive.description),
        extra,
    }
}

fn variable(input: &Input) -> Variable {
    let need = if input.required && input.default.is_none() { Need::Required } else { Need::Optional };
    Variable {
        kind: input.kind,
        description: input.description.as_ref().map(|text| text.to_string()),
        default: input.default.as_deref().map(Json::from),
        of_directive: true,
        place: input.place.clone(),
        ..Variable::new(input.name.clone(), need)
    }
}

/// The model that is asked for. What only threads understand stays as it was written.
fn model(attributes: &Map<String, Json>) -> Model {
    let mut extra = attributes.clone();
    let mut take = |key: &str| match extra.shift_remove(key) {
        Some(Json::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let (id, provider) = (take("id"), take("provider"));
    Model { id: id.unwrap_or_default(), provider, extra, ..Model::default() }
}

/// The prompt of a directive that was filled: what a model reads, with where every byte of it comes from.
///
/// ```
/// use cuebook::dialect::directive::{self, Wording};
/// use cuebook::source::Source;
///
/// let text = "```xml\n<directive name=\"greet\"/>\n```\nGreet {input:who}.";
/// let directive = directive::read(&Source::new("greet.md", text))?;
/// let inputs = serde_json::json!({"who": "Ann"});
/// let filled = directive.fill(inputs.as_object().unwrap())?;
/// let prompt = directive::render(&filled, &Wording::default())?;
/// assert_eq!(
///     prompt.text(),
///     "Execute the directive as specified now.\n\n<directive name=\"greet\">\n\nGreet Ann.\n\n</directive>"
/// );
/// # Ok::<(), cuebook::Error>(())
/// ```
pub fn render(filled: &Filled<'_>, wording: &Wording) -> Result<Rendered> {
    let directive = filled.directive();
    directive.refuse_unfollowed()?;
    let output = directive
        .write_prompt(wording, filled, &SurroundingTexts::default(), MAX_TEXT)
        .map_err(|_| directive.template.too_large(MAX_TEXT))?;
    let id = directive.name.as_deref().unwrap_or_default();
    let prompt = prompt(directive, id, directive.source.name(), &Defaults::default());
    let scope = Scope::of_values(Variables::from_json(&filled.inputs));
    Ok(Rendered::new(output, scope, Arc::new(prompt)))
}
