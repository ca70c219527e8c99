//! `.prompty` files: YAML front matter, and a template below it.
//!
//! [`Definition::read`] is what the library uses: it resolves `${env:…}` and `${file:…}` everywhere except in
//! connections, so that rendering needs no key and showing a prompt shows none. [`load`] resolves everything, as Prompty
//! does, for code that is about to speak to a provider.
//!
//! The documented shorthands all work. A file of Prompty 1, or of a version between 1 and 2, is upgraded before it is read
//! (`old.rs`). Unknown keys and an address that the file chose are kept and noted, and never an error. Nothing here knows the
//! library; a file is a [`Source`] and the folder that it lies in.

mod endpoint;
mod inputs;
mod model;
mod old;
mod property;
mod reader;
mod reference;
mod split;
#[cfg(test)]
mod tests;
mod tool;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::node::{Data, Node};
use crate::prompt::{Model, Property, Tool};
use crate::source::{Place, Source};
use crate::yaml;

pub use inputs::validate_inputs;
pub use old::{Change, Effect};
#[doc(hidden)]
pub use reader::FrontMatterReader;
pub use reference::{Dependencies, Environment, NoEnvironment, ProcessEnvironment};
#[doc(hidden)]
pub use split::split;

/// The template engine of a file that names none.
pub const DEFAULT_ENGINE: &str = "jinja2";
/// The parser of a file that names none.
pub const DEFAULT_PARSER: &str = "prompty";
/// Bytes that a `.prompty` file, or a file that it refers to, may have unless the host says otherwise.
pub const DEFAULT_FILE_SIZE: u64 = 1 << 20;

/// Everything that a `.prompty` file says.
#[derive(Debug, Clone, Default)]
pub struct Definition {
    /// Its name.
    pub name: Option<String>,
    /// The name for people.
    pub display_name: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whatever the author noted.
    pub metadata: Map<String, Json>,
    /// The model that it was written for.
    pub model: Option<Model>,
    /// What it takes.
    pub inputs: Vec<Property>,
    /// What the model's answer looks like.
    pub outputs: Vec<Property>,
    /// What the model may call.
    pub tools: Vec<Tool>,
    /// How the template is rendered and parsed.
    pub template: Format,
    /// Keys that mean nothing to Cuebook, as they were written.
    pub extra: Map<String, Json>,
    /// The template. Its places are places of the file.
    pub body: Option<Arc<Source>>,
    /// What does not keep the prompt from working, for `check`.
    pub notes: Vec<Diagnostic>,
    /// What it refers to, besides in its connections.
    pub looked_at: Dependencies,
    /// Connections whose references were left as they are.
    pending: Vec<Node>,
}

/// How a template is rendered and parsed.
#[derive(Debug, Clone)]
pub struct Format {
    /// The template engine.
    pub engine: String,
    /// What makes messages of the text.
    pub parser: String,
    /// Whether values that look like role markers are refused; `None` if the file does not say.
    pub strict: Option<bool>,
    /// Settings of the engine.
    pub options: Map<String, Json>,
    /// Settings of the parser.
    pub parser_options: Map<String, Json>,
    /// Whether the file says anything about it at all.
    pub is_stated: bool,
    /// Where the engine is named.
    pub engine_place: Option<Place>,
    /// Where the parser is named.
    pub parser_place: Option<Place>,
}

impl Default for Format {
    fn default() -> Format {
        Format {
            engine: DEFAULT_ENGINE.to_owned(),
            parser: DEFAULT_PARSER.to_owned(),
            strict: None,
            options: Map::new(),
            parser_options: Map::new(),
            is_stated: false,
            engine_place: None,
            parser_place: None,
        }
    }
}

impl Format {
    /// The format in the words of a file.
    fn to_json(&self) -> Json {
        let mut format = Map::new();
        format.insert("kind".into(), json!(self.engine));
        if let Some(strict) = self.strict {
            format.insert("strict".into(), json!(strict));
        }
        let mut parser = Map::new();
        parser.insert("kind".into(), json!(self.parser));
        for (object, options) in [(&mut format, &self.options), (&mut parser, &self.parser_options)] {
            if !options.is_empty() {
                object.insert("options".into(), Json::Object(options.clone()));
            }
        }
        json!({"format": format, "parser": parser})
    }
}

/// What the host allows a file, and where its references lead.
#[derive(Clone)]
pub struct LoadOptions {
    /// Folders that `${file:…}` may read from, besides the prompt's own. A file can never grant itself one.
    pub allowed_roots: Vec<PathBuf>,
    /// What `${env:…}` looks into.
    pub environment: Arc<dyn Environment>,
    /// Origins that a file may choose as its endpoint, besides those of the well-known providers:
    /// `https://models.example.com`, `https://*.example.com`.
    pub trusted_endpoints: Vec<String>,
    /// The most bytes that one file may have.
    pub file_size: u64,
}

impl Default for LoadOptions {
    fn default() -> LoadOptions {
        LoadOptions {
            allowed_roots: Vec::new(),
            environment: Arc::new(ProcessEnvironment),
            trusted_endpoints: Vec::new(),
            file_size: DEFAULT_FILE_SIZE,
        }
    }
}

impl std::fmt::Debug for LoadOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The environment holds keys.
        f.debug_struct("LoadOptions")
            .field("allowed_roots", &self.allowed_roots)
            .field("trusted_endpoints", &self.trusted_endpoints)
            .field("file_size", &self.file_size)
            .finish_non_exhaustive()
    }
}

/// The template of a file, without its front matter.
pub(crate) fn body(source: &Arc<Source>) -> Result<Arc<Source>> {
    Ok(Source::inside(source, split::split(source)?.body))
}

/// A file of an older version in the words of Prompty 2.
#[non_exhaustive]
pub struct Migrated {
    /// Its front matter. References stay as they were written.
    pub front: Map<String, Json>,
    /// Its template, unchanged.
    pub body: String,
    /// Everything that changed.
    pub changes: Vec<Change>,
    /// Inputs whose defaults Prompty 1 does not use.
    pub used_defaults: Vec<String>,
    /// Whether comments of the file are lost.
    pub has_comments: bool,
    /// Whether values choose the roles of messages.
    pub roles_of_values: bool,
}

impl Migrated {
    /// The front matter without the references that a render of the old file does not need, and these: each with the path of its key.
    pub fn without_references(&self) -> (Map<String, Json>, Vec<(String, String)>) {
        let mut found = Vec::new();
        let needed = |key: &str| matches!(key, "inputs" | "template");
        let mut front = self.front.clone();
        front.retain(|key, value| needed(key) || !take_references(value, key, &mut found));
        (front, found)
    }
}

/// Removes the references in a value, except those of a connection, which are read when a model is called. Whether the value is
/// one itself.
fn take_references(value: &mut Json, path: &str, found: &mut Vec<(String, String)>) -> bool {
    match value {
        Json::String(text) => match reference::Reference::of(text) {
            None | Some(reference::Reference::Env { default: Some(_), .. }) => false,
            Some(_) => {
                found.push((path.to_owned(), std::mem::take(text)));
                true
            }
        },
        Json::Array(items) => {
            items.retain_mut(|item| !take_references(item, path, found));
            false
        }
        Json::Object(entries) => {
            entries.retain(|key, value| {
                key == "connection" || !take_references(value, &format!("{path}.{key}"), found)
            });
            false
        }
        _ => false,
    }
}

/// Rewrites the file of a template for Prompty 2; nothing if it is a file of Prompty 2 already.
pub fn migrate(body: &Arc<Source>, folder: Option<&Path>) -> Result<Option<Migrated>> {
    let source = body.place(0..0).source().clone();
    let Some(range) = split::split(&source)?.front_matter else { return Ok(None) };
    let front = &source.text()[range.clone()];
    let has_comments = front.lines().any(|line| line.trim_start().starts_with('#'));
    let document = yaml::Document::parse(&source, range.clone(), Code::BadFrontMatter, ErrorKind::PromptRead)
        .map_err(invalid_front_matter)?;
    let options = LoadOptions::default();
    let mut resolver = reference::Resolver::new(&source, folder, &options, false);
    let mut follow = |node: &Node| endpoint::follow(node, &mut resolver);
    let is_chosen = |line: &str| {
        let line = line.trim().trim_start_matches('#').trim_start();
        line.starts_with("{{") && line.strip_suffix(':').is_some_and(|line| line.trim_end().ends_with("}}"))
    };
    let roles_of_values = body.text().lines().any(is_chosen);
    let root = document.into_root();
    let shows_undeclared = shows_undeclared(body.text(), &root);
    let purpose = old::Purpose::Migrate { roles_of_values, shows_undeclared };
    let (root, old) = old::upgrade(root, purpose, &mut follow);
    let (Some(old), Json::Object(front)) = (old, root.to_json()) else { return Ok(None) };
    Ok(Some(Migrated {
        front,
        body: body.text().to_owned(),
        changes: old.changes,
        used_defaults: old.unused_defaults.into_iter().map(|(name, _)| name).collect(),
        has_comments,
        roles_of_values,
    }))
}

/// Whether a template shows names that no input declares, so that their values may be of any type.
fn shows_undeclared(template: &str, front: &Node) -> bool {
    let declared: Vec<&str> = match front.get("inputs").map(|inputs| &inputs.data) {
        Some(Data::Map(entries)) => entries.iter().map(|(key, _)| key.name.as_str()).collect(),
        Some(Data::List(items)) => {
            items.iter().filter_map(|item| item.get("name").and_then(Node::text)).collect()
        }
        _ => Vec::new(),
    };
    template.split("{{").skip(1).any(|tag| {
        let tag = tag.trim_start_matches(['-', '+', '{', '&', ' ']);
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
        !declared.contains(&&tag[..tag.find(|letter| !is_part(letter)).unwrap_or(tag.len())])
    })
}

/// Loads a file and resolves everything in it, also its keys.
pub fn load(path: &Path, options: &LoadOptions) -> Result<Definition> {
    let name = path.display().to_string().replace('\\', "/");
    if files::look(path).is_ok_and(|found| found.is_none()) {
        return Err(files::not_there(path, &name).with("kind", "file_not_found"));
    }
    let source = files::read_text(path, &name, options.file_size)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Definition::from(&source, Some(folder), options, true)
}

/// Loads a text by a name for people and resolves everything in it. Without a folder, `${file:…}` leads nowhere.
pub fn load_str(name: &str, text: &str, folder: Option<&Path>, options: &LoadOptions) -> Result<Definition> {
    Definition::from(&Source::new(name, text), folder, options, true)
}

impl Definition {
    /// Reads a file. References are resolved everywhere except in connections, which stay as they were written.
    pub fn read(source: &Arc<Source>, folder: Option<&Path>, options: &LoadOptions) -> Result<Definition> {
        Definition::from(source, folder, options, false)
    }

    fn from(
        source: &Arc<Source>,
        folder: Option<&Path>,
        options: &LoadOptions,
        connections: bool,
    ) -> Result<Definition> {
        let split = split::split(source)?;
        let body = Source::inside(source, split.body);
        let Some(range) = split.front_matter else {
            return Ok(Definition { body: Some(body), ..Definition::default() });
        };
        let document = yaml::Document::parse(source, range, Code::BadFrontMatter, ErrorKind::PromptRead)
            .map_err(invalid_front_matter)?;
        let root = document.into_root();
        match &root.data {
            Data::Map(_) => {}
            Data::Null => return Ok(Definition { body: Some(body), ..Definition::default() }),
            _ => {
                let diagnostic = Diagnostic::new(Code::BadFrontMatter, "the front matter must be a map")
                    .at(root.opening())
                    .label(format!("this is {}", root.describe()))
                    .hint("write `name: …`, `model: …` and other keys, one per line");
                return Err(invalid_front_matter(Error::new(ErrorKind::PromptRead, diagnostic)));
            }
        }
        let mut resolver = reference::Resolver::new(source, folder, options, connections);
        let (root, old) =
            old::upgrade(root, old::Purpose::Read, &mut |node| endpoint::follow(node, &mut resolver));
        // What an old file refers to is often not there any more. Rendering needs its inputs and its template only.
        resolver.excuses = old.is_some() && !connections;
        let trust = endpoint::check(&root, &mut resolver, options);
        let root = resolver.resolve(root);
        let reference::ResolvedReferences { faults, excused, pending, looked_at } = resolver.finish();
        let mut reader = reader::FrontMatterReader::new(faults);
        let mut definition = reader.definition(&root);
        definition.notes = old.iter().flat_map(old::OldFile::notes).chain(excused).collect();
        definition.notes.extend(reader.finish()?);
        definition.notes.extend(trust);
        definition.pending = pending;
        definition.looked_at = looked_at;
        definition.body = Some(body);
        Ok(definition)
    }

    /// What its connections refer to and the host does not have, as notes: a file is not wrong because a key is not set
    /// where it is checked.
    pub fn unresolved(&self, folder: Option<&Path>, options: &LoadOptions) -> Vec<Diagnostic> {
        reference::unresolved(&self.pending, self.body.as_ref(), folder, options)
    }

    /// The definition in the words of a `.prompty` file: collections are lists, and what is not said is not there.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("kind".into(), json!("prompt"));
        let texts =
            [("name", &self.name), ("displayName", &self.display_name), ("description", &self.description)];
        for (key, text) in texts {
            if let Some(text) = text {
                object.insert(key.into(), json!(text));
            }
        }
        if !self.metadata.is_empty() {
            object.insert("metadata".into(), Json::Object(self.metadata.clone()));
        }
        if let Some(model) = &self.model {
            object.insert("model".into(), model.to_json());
        }
        for (key, properties) in [("inputs", &self.inputs), ("outputs", &self.outputs)] {
            if !properties.is_empty() {
                object.insert(key.into(), properties.iter().map(Property::to_json).collect());
            }
        }
        if !self.tools.is_empty() {
            object.insert("tools".into(), self.tools.iter().map(Tool::to_json).collect());
        }
        if self.template.is_stated {
            object.insert("template".into(), self.template.to_json());
        }
        object.insert("instructions".into(), json!(self.body.as_ref().map_or("", |body| body.text())));
        for (key, value) in &self.extra {
            // A key that the file cannot set stays what it is.
            object.entry(key.as_str()).or_insert_with(|| value.clone());
        }
        Json::Object(object)
    }
}

fn invalid_front_matter(error: Error) -> Error {
    error.with("kind", "invalid_frontmatter")
}
