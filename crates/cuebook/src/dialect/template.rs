//! Template prompts: a folder with `template.md`, with `prompt.py`, or with both.
//!
//! The minimal form is the template alone. The full form is a `prompt.py` whose METADATA, VARIABLES, PERMISSIONS, LIMITS
//! and TEMPLATE are read as literals (see [`super::python`]); its functions are noted and never run here.

use std::path::Path;
use std::sync::Arc;

use super::{Body, Compiling, Dialect, Offer, Parsed, Read, Reading, Writing};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, did_you_mean, nearest};
use crate::files;
use crate::library::{Candidate, Defaults, LibraryLoader, PROMPT_FILE, TEMPLATE_FILE};
use crate::notation::definition::{Definition, DefinitionReader, Inline};
use crate::notation::python::Module;
use crate::notation::signature::{slips, wrong_signature};
use crate::prompt::{Hook, Limits, Metadata, Prompt, TEMPLATE, Traits};
use crate::source::Source;
use crate::template::engine::{Compiled, Jinja, Outline, Output};

/// The functions that take part in a render, and how they are called.
const HOOKS: [(&str, &str); 2] =
    [("pre_render", "variables, context"), ("post_render", "text, variables, context")];

/// The names in `prompt.py` that say something.
pub const DEFINITIONS: [&str; 5] = ["METADATA", "VARIABLES", "PERMISSIONS", "LIMITS", "TEMPLATE"];

/// Folders with a template, with definitions in Python, or with both.
#[derive(Debug)]
pub(super) struct Template;

impl Dialect for Template {
    fn traits(&self) -> &'static Traits {
        &TEMPLATE
    }

    fn summary(&self, offer: &Offer<'_>) -> Result<Metadata> {
        refuse_hidden(offer.candidate)?;
        let definition = match offer.candidate.has_prompt_py {
            false => Definition::default(),
            true => {
                let limit = offer.library.file_limit()?;
                let source = offer.candidate.root.read(&offer.candidate.file(PROMPT_FILE), limit)?;
                DefinitionReader::new(&Module::parse(&source)?).definition()?
            }
        };
        Ok(metadata(offer, definition))
    }

    fn read(&self, reading: &Reading<'_>) -> Result<Read> {
        read(reading)
    }

    fn compile(&self, _: Parsed, compiling: &Compiling<'_>) -> Result<Box<dyn Body>> {
        compiling.template_of(&Jinja)
    }
}

/// A body that is one template.
pub(super) struct TextBody(pub(super) Box<dyn Compiled>);

impl Body for TextBody {
    fn outline(&self) -> Arc<dyn Outline> {
        self.0.outline()
    }

    fn write(&self, writing: &Writing<'_>) -> Result<Output> {
        self.0.render(writing.scope, writing.limit)
    }

    fn text(&self, writing: &Writing<'_>, memory: String) -> Option<Result<String>> {
        Some(self.0.render_text(writing.scope, writing.limit, memory))
    }
}

fn read(reading: &Reading<'_>) -> Result<Read> {
    let Reading { offer, loader } = reading;
    let Offer { id, candidate, defaults, .. } = *offer;
    let mut notes = Vec::new();
    refuse_hidden(candidate)?;
    let python = read_python(candidate, loader)?;
    let (definition, module) = match &python {
        Some(source) => {
            let module = Module::parse(source)?;
            let mut reader = DefinitionReader::new(&module);
            let definition = reader.definition()?;
            notes.append(&mut reader.notes);
            (definition, Some(module))
        }
        None => (Definition::default(), None),
    };
    let template = read_template(candidate, loader, &definition, module.as_ref(), &mut notes)?;
    let hooks = module.as_ref().map(hooks).unwrap_or_default();
    if let Some(module) = &module {
        notes.extend(
            HOOKS.into_iter().filter_map(|(name, arguments)| wrong_signature(module, name, arguments)),
        );
        notes.extend(slips(module, &HOOKS.map(|(name, _)| name), &DEFINITIONS));
    }
    if let (Some(declared), Some(place)) = (&definition.prompt_id, &definition.prompt_id_place)
        && declared != id
        && candidate.entry == id
    {
        let message =
            format!("METADATA says `{declared}`, but the folder is `{id}`: Cuebook uses the folder's name");
        let hint = format!("write \"prompt_id\": \"{id}\", or rename the folder");
        notes.push(Diagnostic::new(Code::IdMismatch, message).at(place.clone()).hint(hint));
    }
    let extends = definition.extends.clone();
    let limits = limits(&definition, defaults, candidate.pack_id.is_some());
    let prompt = Prompt {
        variables: definition.variables.clone().into(),
        permissions: definition.permissions,
        limits,
        code: python.clone(),
        hooks,
        ..reading.prompt(metadata(offer, definition), template)
    };
    Ok(Read { extends, notes, ..Read::new(prompt) })
}

/// Refuses a link that leads nowhere instead of the folder, and a folder that may not be looked into: nothing below it would
/// say so.
fn refuse_hidden(candidate: &Candidate) -> Result<()> {
    if candidate.has_template || candidate.has_prompt_py {
        return Ok(());
    }
    if let Some(error) = candidate.root.trouble(&candidate.entry) {
        return Err(files::io_error(&candidate.source, &error));
    }
    match candidate.root.closed(&candidate.entry) {
        Some(error) => Err(files::folder_error(&candidate.source, &error)),
        None => Ok(()),
    }
}

/// What the prompt says, or `defaults.json`, or the default: the text of a pack's prompt is shorter, because its author is
/// a stranger.
fn limits(definition: &Definition, defaults: &Defaults, is_packed: bool) -> Limits {
    let standard = Limits::default();
    let size = if is_packed { standard.max_output_size } else { Limits::GENEROUS_SIZE };
    Limits {
        max_execution_time: definition
            .max_execution_time
            .or(defaults.max_execution_time)
            .unwrap_or(standard.max_execution_time),
        max_output_size: definition.max_output_size.or(defaults.max_output_size).unwrap_or(size),
    }
}

const DEFAULT_VERSION: &str = "1.0.0";
const DEFAULT_TYPE: &str = "custom";

fn metadata(offer: &Offer<'_>, definition: Definition) -> Metadata {
    let Offer { id, candidate, defaults, .. } = *offer;
    let default =
        |name: &str| defaults.metadata.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let mut extra = defaults.metadata.clone();
    for known in ["version", "type", "name", "description"] {
        extra.shift_remove(known);
    }
    extra.extend(definition.extra);
    Metadata {
        name: definition.name.unwrap_or_else(|| id.to_owned()),
        version: definition.version.or_else(|| default("version")).unwrap_or_else(|| DEFAULT_VERSION.into()),
        kind: definition.kind.or_else(|| default("type")).unwrap_or_else(|| DEFAULT_TYPE.into()),
        extends: definition.extends.map(|(parent, _)| parent),
        template: match definition.template {
            Some(template) => template.map(|(file, _)| file),
            None => Some(candidate.template_file.clone().unwrap_or_else(|| TEMPLATE_FILE.to_owned())),
        },
        description: definition.description,
        extra,
    }
}

fn read_python(candidate: &Candidate, loader: &LibraryLoader) -> Result<Option<Arc<Source>>> {
    if candidate.template_file.is_some() {
        return Ok(None);
    }
    loader.read_variant(&candidate.root, &candidate.file(PROMPT_FILE))
}

fn read_template(
    candidate: &Candidate,
    loader: &LibraryLoader,
    definition: &Definition,
    module: Option<&Module>,
    notes: &mut Vec<Diagnostic>,
) -> Result<Arc<Source>> {
    if let (Some(literal), Some(module)) = (&definition.inline, module) {
        if candidate.has_template {
            let message = format!("{TEMPLATE_FILE} is unused, because {PROMPT_FILE} has a TEMPLATE");
            let place = module.source().place(literal.range.clone());
            let hint = format!("delete {TEMPLATE_FILE}, or delete TEMPLATE");
            let note = Diagnostic::new(Code::BadDefinition, message).severity(Severity::Warning);
            notes.push(note.at(place).hint(hint));
        }
        return Ok(inline_template(module.source(), literal));
    }
    let default = candidate.template_file.clone().unwrap_or_else(|| TEMPLATE_FILE.to_owned());
    let (file, place) = match &definition.template {
        None => (default, None),
        Some(Some((file, place))) => (file.clone(), Some(place.clone())),
        Some(None) => {
            let diagnostic = Diagnostic::new(
                Code::MissingTemplate,
                "METADATA says that there is no template file, but TEMPLATE is missing",
            );
            let diagnostic = match &definition.template_place {
                Some(place) => diagnostic.at(place.clone()),
                None => diagnostic.file(&candidate.source),
            };
            let hint = "add TEMPLATE = \"\"\"…\"\"\", or name a file";
            return Err(Error::new(ErrorKind::PromptRead, diagnostic.hint(hint)));
        }
    };
    if let Some(source) = loader.read_variant(&candidate.root, &candidate.file(&file))? {
        return Ok(source);
    }
    let message = format!("the template {} does not exist", candidate.root.file_name(&candidate.file(&file)));
    let diagnostic = Diagnostic::new(Code::MissingTemplate, message);
    let diagnostic = match place {
        Some(place) => {
            let files = candidate.root.path(&candidate.entry).map(|folder| markdown_files(&folder));
            let near = nearest(&file, files.iter().flatten().map(String::as_str));
            let hint = did_you_mean(&near).unwrap_or_else(|| {
                "name a file next to prompt.py, or write the template into TEMPLATE".to_owned()
            });
            diagnostic.at(place).hint(hint)
        }
        None => diagnostic
            .file(&candidate.source)
            .hint(format!("put the prompt's text into {}/{TEMPLATE_FILE}", candidate.source)),
    };
    Err(Error::new(ErrorKind::PromptRead, diagnostic))
}

fn markdown_files(folder: &Path) -> Vec<String> {
    // This is for a hint: a folder that cannot be read offers none.
    files::names_in(folder).into_iter().filter(|name| name.ends_with(".md")).collect()
}

/// The template inside `prompt.py`. Where the string stands in the file as it is, its places are places of the file.
fn inline_template(python: &Arc<Source>, literal: &Inline) -> Arc<Source> {
    let raw = &python.text()[literal.range.clone()];
    let quotes = ["\"\"\"", "'''", "\"", "'"];
    let open = raw.trim_start_matches(['r', 'R', 'u', 'U']);
    let prefix = raw.len() - open.len();
    if let Some(quote) = quotes.into_iter().find(|quote| open.starts_with(quote)) {
        let start = literal.range.start + prefix + quote.len();
        let end = literal.range.end.saturating_sub(quote.len());
        if start <= end && python.text()[start..end] == literal.text {
            return Source::inside(python, start..end);
        }
    }
    Source::new(format!("{} (TEMPLATE)", python.name()), literal.text.clone())
}

fn hooks(module: &Module) -> Vec<Hook> {
    HOOKS
        .into_iter()
        .filter_map(|(name, _)| {
            // A star import may bring anything; that it brings a hook cannot be excluded without running it.
            let range = module.defines(name).or_else(|| module.star_import())?;
            Some(Hook { name: name.to_owned(), place: module.source().place(range) })
        })
        .collect()
}
