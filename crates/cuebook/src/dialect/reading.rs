//! What a dialect is given to list, read and compile a prompt, and what it gives back.

use std::any::Any;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::Body;
use super::template::TextBody;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::library::{Candidate, Defaults, Library, LibraryLoader};
use crate::prompt::{ByName, Format, Limits, Metadata, Permissions, Prompt, Tools};
use crate::source::{Place, Source};
use crate::template::engine::{Engine, Engines, Job, Loader};
use crate::template::jinja::Settings;

/// A file that a dialect claims, for lists.
pub struct Offer<'o> {
    pub(crate) id: &'o str,
    pub(crate) candidate: &'o Candidate,
    pub(crate) library: &'o Library,
    pub(crate) defaults: &'o Defaults,
}

impl Offer<'_> {
    /// The id under which it was found.
    pub fn id(&self) -> &str {
        self.id
    }

    /// The path of the file below its place of the library.
    pub(crate) fn file(&self) -> String {
        self.candidate.file(self.candidate.template_file.as_deref().unwrap_or_default())
    }

    /// The text of the file.
    pub fn text(&self) -> Result<Arc<Source>> {
        self.candidate.root.read(&self.file(), self.library.file_limit()?)
    }

    /// What a file says of itself: a name, a description, and anything else, of which `version` and `type` are known. What it does not
    /// say comes from the project's defaults.
    pub fn metadata(
        &self,
        name: Option<String>,
        description: Option<String>,
        other: &Map<String, Json>,
    ) -> Metadata {
        let mut extra: Map<String, Json> = self.defaults.metadata.clone();
        extra.extend(other.clone());
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
            name: name.unwrap_or_else(|| self.id.to_owned()),
            version: version.unwrap_or_else(|| "1.0.0".into()),
            kind: kind.unwrap_or_else(|| "custom".into()),
            extends: None,
            template: self.candidate.template_file.clone(),
            description,
            extra,
        }
    }
}

/// A file that is read.
pub struct Reading<'r> {
    pub(crate) offer: Offer<'r>,
    pub(crate) loader: &'r LibraryLoader,
}

impl<'r> Reading<'r> {
    /// The file and its id.
    pub fn offer(&self) -> &Offer<'r> {
        &self.offer
    }

    /// The text of the file, in the language of the render if it has a version in it.
    pub fn text(&self) -> Result<Arc<Source>> {
        let (file, root) = (self.offer.file(), &self.offer.candidate.root);
        self.loader
            .read_variant(root, &file)?
            .ok_or_else(|| files::io_error(&root.file_name(&file), &std::io::ErrorKind::NotFound.into()))
    }

    /// A prompt that is nothing but this text. Add variables, tools, a model and the rest to its fields.
    pub fn prompt(&self, metadata: Metadata, text: Arc<Source>) -> Prompt {
        let Offer { id, candidate, defaults, .. } = self.offer;
        Prompt {
            id: id.to_owned(),
            dialect: candidate.dialect,
            source: candidate.source.clone(),
            metadata,
            variables: ByName::default(),
            permissions: Permissions::default(),
            limits: Limits {
                max_output_size: defaults.max_output_size.unwrap_or(Limits::GENEROUS_SIZE),
                ..Limits::default()
            },
            template: text,
            code: None,
            hooks: Vec::new(),
            format: Format::plain(),
            model: None,
            tools: Tools::default(),
            outputs: Vec::new(),
        }
    }
}

/// What a dialect keeps between reading and compiling a prompt, of a type that only it knows.
pub type Parsed = Option<Box<dyn Any + Send + Sync>>;

/// A prompt as it was read.
pub struct Read {
    /// The prompt.
    pub prompt: Prompt,
    /// The prompt whose variables it inherits, and where it names that.
    pub extends: Option<(String, Place)>,
    /// What is odd about its files without keeping it from working.
    pub notes: Vec<Diagnostic>,
    /// What [`Dialect::compile`](super::Dialect::compile) gets.
    pub parsed: Parsed,
}

impl Read {
    /// A prompt with nothing to say beside it.
    pub fn new(prompt: Prompt) -> Read {
        Read { prompt, extends: None, notes: Vec::new(), parsed: None }
    }
}

/// A prompt that is compiled.
pub struct Compiling<'c> {
    pub(crate) prompt: &'c Prompt,
    pub(crate) loader: Arc<dyn Loader>,
    pub(crate) settings: &'c Settings,
    pub(crate) engines: &'c Engines,
    /// Whether another prompt includes it.
    pub(crate) is_included: bool,
}

impl Compiling<'_> {
    /// The prompt, with its inherited variables.
    pub fn prompt(&self) -> &Prompt {
        self.prompt
    }

    /// Where the texts that it includes come from.
    pub fn loader(&self) -> &Arc<dyn Loader> {
        &self.loader
    }

    /// How far templates may go here, and whether what is absent is an error.
    pub fn settings(&self) -> &Settings {
        self.settings
    }

    /// The error for something else than what the dialect has read.
    pub(crate) fn not_parsed(&self) -> Error {
        let message = format!("internal error: `{}` was not read by its dialect", self.prompt.id);
        let diagnostic = Diagnostic::new(Code::RenderFailed, message).file(&self.prompt.source);
        Error::new(ErrorKind::PromptRead, diagnostic)
    }

    /// A body that is the prompt's template, written by the engine that its format names.
    pub fn template(&self) -> Result<Box<dyn Body>> {
        let format = &self.prompt.format;
        self.template_of(&**self.engines.get(&format.engine, format.engine_place.as_ref())?)
    }

    /// The same with this engine.
    pub fn template_of(&self, engine: &dyn Engine) -> Result<Box<dyn Body>> {
        let format = &self.prompt.format;
        let compiled = engine.compile(Job {
            source: self.prompt.template.clone(),
            loader: self.loader.clone(),
            settings: self.settings,
            options: &format.options,
            place: format.engine_place.as_ref(),
        })?;
        Ok(Box::new(TextBody(compiled)))
    }
}
