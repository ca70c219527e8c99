//! A `.prompty` file of the library as a [`Prompt`].

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::Read;
use crate::error::{Code, Diagnostic, Result, Severity};
use crate::files;
use crate::library::{Candidate, Defaults, Library, LibraryLoader};
pub use crate::notation::prompty::*;
use crate::prompt::{
    Dialect, Format as Written, Kind, Limits, Metadata, Need, Permissions, Prompt, Property, Type, Variable,
};
use crate::source::Source;

/// Reads the prompt that a candidate offers.
pub(crate) fn read(
    id: &str,
    candidate: &Candidate,
    loader: &LibraryLoader,
    defaults: &Defaults,
) -> Result<Read> {
    let file = file_of(candidate);
    let Some(source) = loader.read_variant(&candidate.root, &file)? else {
        let name = candidate.root.file_name(&file);
        return Err(files::io_error(&name, &std::io::ErrorKind::NotFound.into()));
    };
    let folder = candidate.root.path(&candidate.entry);
    let options = options(candidate, loader.library(), loader.limit());
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
    Ok(Read {
        prompt: prompt(id, candidate, definition, source, defaults),
        extends: None,
        notes,
        sections: None,
        directive: None,
    })
}

/// What a candidate says of itself, for lists.
pub(crate) fn summary(
    id: &str,
    candidate: &Candidate,
    library: &Library,
    defaults: &Defaults,
) -> Result<Metadata> {
    let options = options(candidate, library, library.file_limit()?);
    let definition = definition(candidate, &options)?;
    Ok(metadata(id, candidate, &definition, defaults))
}

fn definition(candidate: &Candidate, options: &LoadOptions) -> Result<Definition> {
    let source = candidate.root.read(&file_of(candidate), options.file_size)?;
    let folder = candidate.root.path(&candidate.entry);
    Definition::read(&source, folder.as_deref(), options)
}

/// A prompt of the project reads the variables that its user allowed; one that came with a pack reads none.
fn options(candidate: &Candidate, library: &Library, file_size: u64) -> LoadOptions {
    let environment: Arc<dyn Environment> = match candidate.pack_id {
        None => library.environment(),
        Some(_) => Arc::new(NoEnvironment),
    };
    LoadOptions { file_size, environment, ..LoadOptions::default() }
}

fn file_of(candidate: &Candidate) -> String {
    candidate.file(candidate.template_file.as_deref().unwrap_or_default())
}

fn prompt(
    id: &str,
    candidate: &Candidate,
    definition: Definition,
    source: Arc<Source>,
    defaults: &Defaults,
) -> Prompt {
    let metadata = metadata(id, candidate, &definition, defaults);
    let all_strict = definition.template.strict == Some(true);
    let variables = definition.inputs.into_iter().map(|input| variable(input, all_strict)).collect();
    let limits = Limits {
        max_output_size: defaults.max_output_size.unwrap_or(Limits::GENEROUS_SIZE),
        ..Limits::default()
    };
    Prompt {
        id: id.to_owned(),
        dialect: Dialect::Prompty,
        source: candidate.source.clone(),
        metadata,
        variables,
        permissions: Permissions::default(),
        limits,
        template: definition.body.unwrap_or(source),
        code: None,
        hooks: Vec::new(),
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
    }
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
    // A default of `null` is none.
    let default = input.default.clone().filter(|default| !default.is_null());
    let need = if input.required && default.is_none() { Need::Required } else { Need::Optional };
    Variable {
        rich: input.rich(),
        roles: input.roles,
        strict: input.strict.unwrap_or(all_strict),
        name: input.name,
        need,
        kind,
        description: input.description,
        default,
        is_secret: input.is_secret,
        choices: input.enum_values,
        lenient: true,
        of_directive: false,
        from_system: false,
        place: input.place,
        inherited_from: None,
    }
}

fn metadata(id: &str, candidate: &Candidate, definition: &Definition, defaults: &Defaults) -> Metadata {
    let name = definition.display_name.as_ref().or(definition.name.as_ref()).cloned();
    named(id, candidate, name, definition.description.clone(), &definition.metadata, defaults)
}

/// What a file of one prompt says of itself: its own name and description, and from its free metadata the rest.
pub(super) fn named(
    id: &str,
    candidate: &Candidate,
    name: Option<String>,
    description: Option<String>,
    metadata: &Map<String, Json>,
    defaults: &Defaults,
) -> Metadata {
    let mut extra: Map<String, Json> = defaults.metadata.clone();
    extra.extend(metadata.clone());
    let mut take = |key: &str| match extra.shift_remove(key) {
        Some(Json::String(text)) => Some(text),
        // A version such as 2 or 1.5 is a number in YAML.
        Some(Json::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let (version, kind) = (take("version"), take("type"));
    take("name");
    take("description");
    Metadata {
        name: name.unwrap_or_else(|| id.to_owned()),
        version: version.unwrap_or_else(|| "1.0.0".into()),
        kind: kind.unwrap_or_else(|| "custom".into()),
        extends: None,
        template: candidate.template_file.clone(),
        description,
        extra,
    }
}
