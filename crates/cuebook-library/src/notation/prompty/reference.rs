//! `${protocol:value}`: values that stand in the environment or in other files.
//!
//! A value is a reference only as a whole, anywhere in the front matter and in the JSON and YAML files that it leads to.
//! Paths are relative to the folder of the prompt, also in those files. What the environment says is text and is never
//! looked at again, so no variable can name a file. Unknown protocols are left alone.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::LoadOptions;
use crate::error::{Code, Diagnostic, ErrorKind, Result, Severity};
use crate::files;
use crate::json::{self, MAX_FINDINGS, quoted};
use crate::node::{Data, Key, Node};
use crate::source::Source;
use crate::yaml::{self, MAX_DEPTH};

/// Files that may refer to each other in a row.
pub(super) const MAX_FILES_DEEP: usize = 8;
/// Files that one prompt may refer to, counted each time.
pub(super) const MAX_FILES: usize = 100;

/// What the references of a file led to: a cache of what was read has to look there again.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Dependencies {
    /// Files, whether they were there or not.
    pub files: Vec<PathBuf>,
    /// Variables of the environment, and what they were.
    pub variables: Vec<(String, Option<String>)>,
}

/// Where `${env:NAME}` looks.
pub trait Environment: Send + Sync {
    /// The value of a variable, if it is set.
    fn get(&self, name: &str) -> Option<String>;

    /// The same where a connection names it: what it says reaches a provider, and never a text.
    fn of_connection(&self, name: &str) -> Option<String> {
        self.get(name)
    }

    /// The error if a prompt may not read a variable, whether it is set or not.
    fn refused(&self, name: &str) -> Option<Diagnostic> {
        let _ = name;
        None
    }
}

/// Nothing is set.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoEnvironment;

impl Environment for NoEnvironment {
    fn get(&self, _name: &str) -> Option<String> {
        None
    }

    fn refused(&self, name: &str) -> Option<Diagnostic> {
        let hint = "a prompt from a pack cannot read the environment: declare an input, or add a default";
        Some(Diagnostic::new(Code::EnvNotSet, unset(name)).hint(hint))
    }
}

/// The variables of this process. A value that is not Unicode counts as not set.
#[derive(Debug, Clone, Copy, Default)]
pub struct ProcessEnvironment;

impl Environment for ProcessEnvironment {
    fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok()
    }
}

impl<F: Fn(&str) -> Option<String> + Send + Sync> Environment for F {
    fn get(&self, name: &str) -> Option<String> {
        self(name)
    }
}

/// A reference, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reference<'t> {
    /// `${env:NAME}` or `${env:NAME:default}`. The default is all the rest and may be empty, which is a value too.
    Env { name: &'t str, default: Option<&'t str> },
    /// `${file:PATH}`
    File(&'t str),
}

impl<'t> Reference<'t> {
    /// The reference that a text is, if it can be followed here.
    pub(super) fn of(text: &'t str) -> Option<Reference<'t>> {
        let inner = text.strip_prefix("${")?.strip_suffix('}')?;
        let (protocol, value) = inner.split_once(':')?;
        match protocol.to_ascii_lowercase().as_str() {
            "env" => Some(match value.split_once(':') {
                Some((name, default)) => Reference::Env { name, default: Some(default) },
                None => Reference::Env { name: value, default: None },
            }),
            "file" => Some(Reference::File(value)),
            _ => None,
        }
    }
}

/// What went wrong, and Prompty's name for that kind of error.
pub(super) type Fault = (Diagnostic, &'static str);

/// A file that a value refers to.
pub(super) struct ReferencedFile {
    pub(super) node: Node,
    /// Which file it was, with no link on the way.
    path: PathBuf,
    /// Whether it is text of an unknown notation, so that nothing in it is a reference.
    is_text: bool,
}

/// Where in the front matter a value stands, as far as that matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueContext {
    Top,
    Inputs,
    Input,
    Model,
    Tools,
    Tool,
    Connection,
    Elsewhere,
}

impl ValueContext {
    fn below(self, key: &str) -> ValueContext {
        match (self, key) {
            (ValueContext::Top, "inputs") => ValueContext::Inputs,
            (ValueContext::Inputs, _) => ValueContext::Input,
            (ValueContext::Top, "model") => ValueContext::Model,
            (ValueContext::Top, "tools") => ValueContext::Tools,
            (ValueContext::Tools, _) => ValueContext::Tool,
            (ValueContext::Model | ValueContext::Tool, "connection") => ValueContext::Connection,
            (ValueContext::Connection, _) => ValueContext::Connection,
            _ => ValueContext::Elsewhere,
        }
    }

    /// Whether a render may need the value of this key.
    fn is_rendered(self, key: &str) -> bool {
        match self {
            ValueContext::Top => matches!(key, "inputs" | "template"),
            ValueContext::Input => key != "example",
            _ => true,
        }
    }
}

/// Follows the references of one prompt.
pub(super) struct Resolver<'o> {
    source: &'o Arc<Source>,
    folder: Option<&'o Path>,
    options: &'o LoadOptions,
    /// Whether connections are resolved as well.
    connections: bool,
    /// The files that led here.
    trail: Vec<PathBuf>,
    /// The variables of the environment that were asked for, and what they were.
    variables: Vec<(String, Option<String>)>,
    /// The files that were asked for, whether they were there or not.
    files: Vec<PathBuf>,
    bytes: u64,
    faults: Vec<Fault>,
    /// Whether references that a render does not need may lead nowhere.
    pub(super) excuses: bool,
    /// Whether what is followed now is such a reference.
    excused_here: bool,
    excused: Vec<Diagnostic>,
    pending: Vec<Node>,
}

/// What came of the references of a file.
pub(super) struct ResolvedReferences {
    pub(super) faults: Vec<Fault>,
    /// What led nowhere and is not needed for a render, as warnings.
    pub(super) excused: Vec<Diagnostic>,
    /// Connections that were left alone.
    pub(super) pending: Vec<Node>,
    pub(super) looked_at: Dependencies,
}

impl<'o> Resolver<'o> {
    pub(super) fn new(
        source: &'o Arc<Source>,
        folder: Option<&'o Path>,
        options: &'o LoadOptions,
        connections: bool,
    ) -> Resolver<'o> {
        Resolver {
            source,
            folder,
            options,
            connections,
            trail: Vec::new(),
            variables: Vec::new(),
            files: Vec::new(),
            bytes: 0,
            faults: Vec::new(),
            excuses: false,
            excused_here: false,
            excused: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// The front matter with its references followed.
    pub(super) fn resolve(&mut self, root: Node) -> Node {
        self.node(root, ValueContext::Top, 0)
    }

    /// What went wrong, the connections that were left alone, and what was looked at on the way.
    pub(super) fn finish(self) -> ResolvedReferences {
        let Resolver { faults, excused, pending, files, variables, .. } = self;
        ResolvedReferences { faults, excused, pending, looked_at: Dependencies { files, variables } }
    }

    fn fault(&mut self, diagnostic: Diagnostic, kind: &'static str) {
        if self.excused_here {
            if self.excused.len() < MAX_FINDINGS {
                self.excused.push(diagnostic.severity(Severity::Warning));
            }
            return;
        }
        // A file that several values refer to would say the same each time.
        let is_known = |(known, _): &Fault| {
            known.message == diagnostic.message
                && match (&known.place, &diagnostic.place) {
                    (Some(one), Some(other)) => one.range() == other.range() && one.file() == other.file(),
                    _ => false,
                }
        };
        if self.faults.len() < MAX_FINDINGS && !self.faults.iter().any(is_known) {
            self.faults.push((diagnostic, kind));
        }
    }

    fn node(&mut self, node: Node, spot: ValueContext, depth: usize) -> Node {
        if spot == ValueContext::Connection && !self.connections {
            self.pending.push(node.clone());
            return node;
        }
        let Node { data, place, from_environment } = node;
        let data = match data {
            Data::List(_) | Data::Map(_) if depth >= MAX_DEPTH => {
                let message =
                    format!("values are nested too deeply: the limit is {MAX_DEPTH} levels, including files");
                let diagnostic = Diagnostic::new(Code::FileReference, message).at(place.clone());
                self.fault(diagnostic.hint("nest the values less"), "file_reference");
                Data::Null
            }
            Data::List(items) => {
                let below = spot.below("");
                Data::List(items.into_iter().map(|item| self.node(item, below, depth + 1)).collect())
            }
            Data::Map(entries) => {
                let resolve = |(key, entry): (Key, Node)| {
                    let below = spot.below(&key.name);
                    let before = self.excused_here;
                    self.excused_here |= self.excuses && !spot.is_rendered(&key.name);
                    let entry = self.node(entry, below, depth + 1);
                    self.excused_here = before;
                    (key, entry)
                };
                Data::Map(entries.into_iter().map(resolve).collect())
            }
            Data::Text(text) => {
                let node = Node { data: Data::Text(text), place, from_environment };
                return self.text(node, spot, depth);
            }
            other => other,
        };
        Node { data, place, from_environment }
    }

    fn text(&mut self, node: Node, spot: ValueContext, depth: usize) -> Node {
        let Some(reference) = node.text().and_then(Reference::of) else { return node };
        match reference {
            Reference::Env { name, default } => {
                let environment = &self.options.environment;
                let value = match spot {
                    ValueContext::Connection => environment.of_connection(name),
                    _ => environment.get(name),
                };
                self.variables.push((name.to_owned(), value.clone()));
                match value.or_else(|| default.map(str::to_owned)) {
                    Some(value) => {
                        Node { data: Data::Text(value), place: node.place.clone(), from_environment: true }
                    }
                    None => {
                        let refused = environment.refused(name).filter(|_| spot != ValueContext::Connection);
                        self.fault(not_set(&node, name, refused), "env_var_not_set");
                        Node { from_environment: true, ..Node::new(Data::Null, node.place) }
                    }
                }
            }
            Reference::File(path) => match self.open(path) {
                Ok(ReferencedFile { node: text, is_text: true, .. }) => text,
                Ok(ReferencedFile { node: opened, path, .. }) => {
                    self.trail.push(path);
                    let resolved = self.node(opened, spot, depth);
                    self.trail.pop();
                    resolved
                }
                Err(fault) => {
                    let (mut diagnostic, kind) = *fault;
                    if diagnostic.place.is_none() {
                        diagnostic = diagnostic.at(node.place.clone());
                    } else {
                        diagnostic = diagnostic.related(node.place.clone(), "named here");
                    }
                    self.fault(diagnostic, kind);
                    Node { from_environment: true, ..Node::new(Data::Null, node.place) }
                }
            },
        }
    }

    /// Reads a file that a value refers to. A fault without a place is one of the reference itself.
    pub(super) fn open(&mut self, path: &str) -> Result<ReferencedFile, Box<Fault>> {
        let refuse = |message: String, hint: &str, kind| {
            Err(Box::new((Diagnostic::new(Code::FileReference, message).hint(hint), kind)))
        };
        let Some(folder) = self.folder else {
            let message = format!("{} cannot be found, because this prompt has no folder", quoted(path));
            return refuse(message, "load the prompt from a file", "file_reference");
        };
        if path.trim().is_empty() {
            return refuse("the reference names no file".into(), "write ${file:PATH}", "file_reference");
        }
        // Counted before anything is looked for: looking costs as well.
        let wanted = folder.join(path);
        self.files.push(wanted.clone());
        let left =
            self.options.file_size.saturating_mul(4).saturating_sub(self.bytes).min(self.options.file_size);
        if self.files.len() > MAX_FILES || left == 0 {
            let message = format!("the prompt refers to too many files: the limit is {MAX_FILES}");
            return refuse(message, "put the values into fewer or smaller files", "file_reference");
        }
        let roots = std::iter::once(folder).chain(self.options.allowed_roots.iter().map(PathBuf::as_path));
        let roots: Vec<PathBuf> = roots.filter_map(|root| root.canonicalize().ok()).collect();
        let outside = |path: &str| {
            let message = format!("the file {} is outside allowed roots", quoted(path));
            let hint = "a prompt reads files only in its own folder and below; copy the file there, or allow its \
                 folder in your program";
            refuse(message, hint, "file_reference")
        };
        let target = match wanted.canonicalize() {
            Ok(target) => target,
            Err(error) => {
                // Whether a file exists outside must not be revealed either.
                let base = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
                let apparent = lexically(&base.join(path));
                if !roots.iter().any(|root| apparent.starts_with(root)) {
                    return outside(path);
                }
                if error.kind() == std::io::ErrorKind::NotFound {
                    let hint = "paths are relative to the prompt's folder";
                    return refuse(
                        format!("the file {} does not exist", quoted(path)),
                        hint,
                        "file_not_found",
                    );
                }
                let message = format!("the file {} cannot be read: {error}", quoted(path));
                return refuse(message, "check that the path names a readable file", "file_reference");
            }
        };
        if !roots.iter().any(|root| target.starts_with(root)) {
            return outside(path);
        }
        if self.trail.contains(&target) {
            let message =
                format!("the file {} refers to itself, directly or through other files", quoted(path));
            return refuse(message, "remove one of the references", "file_reference");
        }
        if self.trail.len() >= MAX_FILES_DEEP {
            let message = format!("files refer to each other too deeply: the limit is {MAX_FILES_DEEP}");
            return refuse(message, "put the values into fewer files", "file_reference");
        }
        self.read(path, target, left)
    }

    fn read(&mut self, path: &str, target: PathBuf, limit: u64) -> Result<ReferencedFile, Box<Fault>> {
        let name = beside(self.source.name(), path);
        let source = files::read_text(&target, &name, limit).map_err(|error| {
            let found = error.diagnostic();
            let message = format!("the file {} cannot be read: {}", quoted(path), found.message);
            let diagnostic = Diagnostic::new(Code::FileReference, message).hint_opt(found.hint.clone());
            Box::new((diagnostic, "file_reference"))
        })?;
        self.bytes += source.text().len() as u64;
        let whole = 0..source.text().len();
        let extension = target.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        let (code, kind) = (Code::FileReference, ErrorKind::PromptRead);
        let mut is_text = false;
        let node = match extension.to_ascii_lowercase().as_str() {
            "json" => json::Document::parse(&source, code, kind).map(|document| document.to_node()),
            "yaml" | "yml" => {
                yaml::Document::parse(&source, whole, code, kind).map(yaml::Document::into_root)
            }
            _ => {
                is_text = true;
                Ok(Node::new(Data::Text(source.text().to_owned()), source.place(whole)))
            }
        };
        let node = node.map_err(|error| Box::new((error.diagnostic().clone(), "file_reference")))?;
        Ok(ReferencedFile { node, path: target, is_text })
    }
}

fn not_set(node: &Node, name: &str, refused: Option<Diagnostic>) -> Diagnostic {
    if let Some(refused) = refused.filter(|_| !name.is_empty()) {
        return refused.at(node.place.clone());
    }
    let hint = if name.is_empty() {
        "name the variable: ${env:NAME}".to_owned()
    } else {
        format!("set the variable, or give a default: ${{env:{name}:default}}")
    };
    Diagnostic::new(Code::EnvNotSet, unset(name)).at(node.place.clone()).hint(hint)
}

/// People and programs look for this very sentence, so it names the variable in its own way.
fn unset(name: &str) -> String {
    format!("Environment variable '{}' not set", quoted(name).trim_matches('`'))
}

/// The name of a file beside another, for people.
fn beside(name: &str, path: &str) -> String {
    match name.rsplit_once('/') {
        Some((folder, _)) if !Path::new(path).is_absolute() => format!("{folder}/{path}"),
        _ => path.to_owned(),
    }
}

/// The path without `.` and `..`, as far as that can be said without looking at links.
fn lexically(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                out.pop();
            }
            Component::CurDir => {}
            other => out.push(other),
        }
    }
    out
}

/// What connections refer to and cannot be found, as notes.
pub(super) fn unresolved(
    pending: &[Node],
    body: Option<&Arc<Source>>,
    folder: Option<&Path>,
    options: &LoadOptions,
) -> Vec<Diagnostic> {
    let Some(body) = body else { return Vec::new() };
    let mut resolver = Resolver::new(body, folder, options, true);
    for node in pending {
        resolver.node(node.clone(), ValueContext::Connection, 0);
    }
    let note = |(diagnostic, _): Fault| diagnostic.severity(Severity::Note);
    resolver.faults.into_iter().map(note).collect()
}
