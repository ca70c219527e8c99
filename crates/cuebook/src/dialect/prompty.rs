//! A `.prompty` file of the library as a [`Prompt`].

use std::sync::Arc;

use super::{Body, Compiling, Dialect, Offer, Parsed, Read, Reading};
use crate::error::{Code, Diagnostic, Result, Severity};
pub use crate::notation::prompty::*;
use crate::prompt::{
    Format as Written, Kind, Metadata, Need, PROMPTY, Prompt, Property, Traits, Type, Variable,
};

/// `.prompty` files.
#[derive(Debug)]
pub(super) struct Prompty;

impl Dialect for Prompty {
    fn traits(&self) -> &'static Traits {
        &PROMPTY
    }

    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
        let folder = offer.candidate.root.path(&offer.candidate.entry);
        let options = options(offer, offer.library.file_limit()?);
        Ok(metadata(offer, &Definition::read(&offer.text()?, folder.as_deref(), &options)?))
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read> {
        read(reading)
    }

    fn compile(&self, _: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>> {
        compiling.template()
    }
}

fn read(reading: &Reading<'_>) -> Result<Read> {
    let (source, offer, loader) = (reading.text()?, reading.offer(), reading.loader);
    let candidate = offer.candidate;
    let folder = candidate.root.path(&candidate.entry);
    let options = options(offer, loader.limit());
    let mut definition = Definition::read(&source, folder.as_deref(), &options)?;
    for path in &definition.looked_at.files {
        loader.depend_on(path.clone());
    }
    // A pack sees no environment, so nothing of it can change.
    if candidate.pack_id.is_none() {
        let mut variables = std::mem::take(&mut definition.looked_at.variables);
        if !variables.is_empty() {
            loader.depend_on_grants();
        }
        variables.retain(|(name, _)| options.environment.refused(name).is_none());
        loader.depend_on_environment(variables);
    }
    let mut notes = std::mem::take(&mut definition.notes);
    notes.extend(definition.unresolved(folder.as_deref(), &options));
    if source.has_carriage_returns() {
        let message = "the file has Windows line endings, which Cuebook renders as plain newlines";
        let hint = "save it with Unix line endings; `git config core.autocrlf input` keeps Windows line endings out of the repository";
        let diagnostic = Diagnostic::new(Code::CarriageReturns, message).severity(Severity::Warning);
        notes.push(diagnostic.file(source.name()).hint(hint));
    }
    let all_strict = definition.template.strict == Some(true);
    let metadata = metadata(offer, &definition);
    let prompt = Prompt {
        variables: definition.inputs.into_iter().map(|input| variable(input, all_strict)).collect(),
        format: Written {
            engine: definition.template.engine,
            engine_place: definition.template.engine_place,
            options: definition.template.options,
            parser: Some(definition.template.parser),
            parser_place: definition.template.parser_place,
            parser_options: definition.template.parser_options,
        },
        model: definition.model,
        tools: definition.tools.into(),
        outputs: definition.outputs,
        ..reading.prompt(metadata, definition.body.unwrap_or(source))
    };
    Ok(Read { notes, ..Read::new(prompt) })
}

/// A prompt of the project reads the variables that its user allowed; one that came with a pack reads none.
fn options(offer: &Offer<'_>, file_size: u64) -> LoadOptions {
    let environment: Arc<dyn Environment> = match offer.candidate.pack_id {
        None => offer.library.environment(),
        Some(_) => Arc::new(NoEnvironment),
    };
    LoadOptions { file_size, environment, ..LoadOptions::default() }
}

/// An input as a variable. Prompty checks no types, so any value is taken.
pub(super) fn variable(input: Property, all_strict: bool) -> Variable {
    let kind = match &input.kind {
        Kind::String => Type::String,
        Kind::Integer => Type::Integer,
        Kind::Float | Kind::Number => Type::Number,
        Kind::Boolean => Type::Boolean,
        Kind::Array { .. } => Type::List,
        Kind::Object { .. } => Type::Object,
        Kind::Union { .. } | Kind::Rich(_) | Kind::Custom(_) => Type::Any,
    };
    // A default of `null` is no default.
    let default = input.default.clone().filter(|default| !default.is_null());
    let need = if input.required && default.is_none() { Need::Required } else { Need::Optional };
    Variable {
        rich: input.rich(),
        roles: input.roles,
        strict: input.strict.unwrap_or(all_strict),
        kind,
        description: input.description,
        default,
        is_secret: input.is_secret,
        choices: input.enum_values,
        lenient: true,
        place: input.place,
        ..Variable::new(input.name, need)
    }
}

fn metadata(offer: &Offer<'_>, definition: &Definition) -> Metadata {
    let name = definition.display_name.as_ref().or(definition.name.as_ref()).cloned();
    offer.metadata(name, definition.description.clone(), &definition.metadata)
}
