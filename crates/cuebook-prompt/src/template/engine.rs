//! What every template engine is: it makes a template of a source, and the template writes attributed text.
//!
//! A prompt names its engine by a key, and [`Engines`] holds who answers to which. The built-in engines and those of a host
//! go through the same two traits; nothing outside of this folder knows which engine it runs, except for what only one of
//! them has ([`Outline::jinja`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::dollar::{self, Missing};
use super::jinja::names::Names;
use super::jinja::{self, Program, Settings, Style};
pub use super::mustache::Mustache;
use super::set_names::SetNames;
use super::sink::Piece;
use super::unit::{Unit, Units};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, catch_panic, did_you_mean, nearest};
use crate::source::{Place, Source};
use crate::variables::Scope;

/// Where a template's includes and parents come from.
pub trait Loader: Send + Sync {
    /// Finds the template that `parent` means by `name`; `None` if it does not exist. The source's name identifies it.
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>>;

    /// The same for a name that a render computed. Such names are without end, so what is not found need not be remembered.
    fn load_computed(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        self.load(name, parent)
    }

    /// What a name stands for that is written at this place and is the address of something that its own engine renders, as in
    /// `prompt:greet`; `None` if it is not an address, or names nothing.
    fn included(&self, name: &str, at: &Place) -> Result<Option<Arc<dyn Compiled>>> {
        let _ = (name, at);
        Ok(None)
    }

    /// Reports what a template has set at a place where it includes such a thing, once the whole template has been read.
    fn note_set_names(&self, at: &Place, set_names: &SetNames) {
        let _ = (at, set_names);
    }

    /// Names that could have been meant, for a hint.
    fn suggestions(&self, name: &str) -> Vec<String> {
        let _ = name;
        Vec::new()
    }
}

/// Text, its pieces, and the units that the pieces speak of.
#[derive(Debug)]
pub struct Output {
    /// The text.
    pub text: String,
    /// Who wrote which part.
    pub pieces: Vec<Piece>,
    /// What the pieces' units are.
    pub units: Units,
}

/// What an engine gets to make a template of.
pub struct Job<'j> {
    /// The author's text.
    pub source: Arc<Source>,
    /// Where further templates come from.
    pub loader: Arc<dyn Loader>,
    /// How far templates may go here, and whether what is absent is an error.
    pub settings: &'j Settings,
    /// What the prompt says to its engine.
    pub options: &'j Map<String, Json>,
    /// Where it names the engine.
    pub place: Option<&'j Place>,
}

impl Job<'_> {
    /// The error for an option that the engine cannot do anything with.
    pub fn bad_option(&self, name: &str, given: &Json, known: &str) -> Error {
        let message = format!("the option `{name}` is {given}, but must be {known}");
        let diagnostic = Diagnostic::new(Code::BadPrompty, message);
        let diagnostic = match self.place {
            Some(place) => diagnostic.at(place.clone()),
            None => diagnostic.file(self.source.name()),
        };
        Error::new(ErrorKind::PromptRead, diagnostic)
    }
}

/// A template engine.
///
/// ```
/// use std::sync::Arc;
///
/// use cuebook::source::Source;
/// use cuebook::template::engine::{Compiled, Engine, Job, Outline, Output};
/// use cuebook::template::page::{Page, StandaloneOutline};
/// use cuebook::variables::Scope;
///
/// /// Texts without tags.
/// #[derive(Debug)]
/// struct Plain;
///
/// struct Text(Arc<Source>);
///
/// impl Engine for Plain {
///     fn compile(&self, job: Job<'_>) -> cuebook::Result<Box<dyn Compiled>> {
///         Ok(Box::new(Text(job.source)))
///     }
/// }
///
/// impl Compiled for Text {
///     fn render(&self, _: &Arc<Scope>, limit: usize) -> cuebook::Result<Output> {
///         let mut page = Page::new(&self.0, limit);
///         page.literal(0..self.0.text().len())?;
///         Ok(page.finish())
///     }
///
///     fn outline(&self) -> Arc<dyn Outline> {
///         Arc::new(StandaloneOutline::new(&self.0, std::iter::empty()))
///     }
/// }
///
/// let book = cuebook::Book::open("my-prompts").with_engine("plain", Plain);
/// ```
pub trait Engine: Send + Sync + fmt::Debug {
    /// Reads a template and all that it names. Syntax errors are found here, with their places.
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>>;

    /// Whether it writes the summaries of sections too; `$names` do where it does not.
    fn writes_summaries(&self) -> bool {
        true
    }
}

/// A template that has been read.
pub trait Compiled: Send + Sync {
    /// Writes the text with these values, at most `limit` characters of it.
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output>;

    /// The text alone, without where it comes from: the same text, and the same errors. It may take the memory of another text.
    #[doc(hidden)]
    fn render_text(&self, scope: &Arc<Scope>, limit: usize, memory: String) -> Result<String> {
        drop(memory);
        Ok(self.render(scope, limit)?.text)
    }

    /// The texts that it writes from, with what they mention.
    fn outline(&self) -> Arc<dyn Outline>;
}

/// The texts that a template writes from, with what they mention.
pub trait Outline: Send + Sync {
    /// The texts, the prompt's own first.
    fn units(&self) -> &[Unit];

    /// What each of them mentions.
    fn names(&self) -> &[Names];

    /// More, if it is Jinja2.
    fn jinja(&self) -> Option<&Program> {
        None
    }
}

/// The engines, by the keys that prompts know them by.
#[derive(Debug, Clone)]
pub struct Engines {
    by_key: BTreeMap<String, Arc<dyn Engine>>,
    /// The keys of engines that the host brought.
    of_host: BTreeSet<String>,
}

impl Default for Engines {
    fn default() -> Self {
        let jinja: Arc<dyn Engine> = Arc::new(PortableJinja);
        let keys = ["jinja2", "jinja", "nunjucks"];
        let mut engines: BTreeMap<String, Arc<dyn Engine>> =
            keys.into_iter().map(|key| (key.to_owned(), jinja.clone())).collect();
        engines.insert("mustache".to_owned(), Arc::new(Mustache));
        engines.insert("dollar".to_owned(), Arc::new(Dollar));
        Engines { by_key: engines, of_host: BTreeSet::new() }
    }
}

impl Engines {
    /// The same engines and one more; an earlier one of that key is replaced.
    pub fn with(mut self, key: impl Into<String>, engine: Arc<dyn Engine>) -> Engines {
        let key = key.into();
        self.of_host.insert(key.clone());
        self.by_key.insert(key.clone(), Arc::new(HostEngine { key: key.into(), engine }));
        self
    }

    /// Whether the host brought the engine of this key. Its outline need not name every variable that it reads.
    pub fn is_of_host(&self, key: &str) -> bool {
        self.of_host.contains(key)
    }

    /// The engine of this key. An unregistered one is an `InvokerError`.
    pub fn get(&self, key: &str, named: Option<&Place>) -> Result<&Arc<dyn Engine>> {
        self.by_key.get(key).ok_or_else(|| {
            let known: Vec<&str> = self.by_key.keys().map(String::as_str).collect();
            let hint = did_you_mean(&nearest(key, known.iter().copied()))
                .unwrap_or_else(|| format!("known: {}", known.join(", ")));
            let message = format!("no renderer is registered for the key `{key}`");
            let diagnostic = Diagnostic::new(Code::UnknownEngine, message).hint(hint);
            let diagnostic = match named {
                Some(place) => diagnostic.at(place.clone()),
                None => diagnostic,
            };
            Error::new(ErrorKind::Invoker, diagnostic).with("key", key).with("known", &known)
        })
    }
}

/// An engine that the host brought: a panic in it is an error that names the engine.
#[derive(Debug)]
struct HostEngine {
    key: Arc<str>,
    engine: Arc<dyn Engine>,
}

impl Engine for HostEngine {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        let file = job.source.name().to_owned();
        let (compiled, outline) = caught(&self.key, &file, || {
            let compiled = self.engine.compile(job)?;
            let outline = compiled.outline();
            Ok((compiled, outline))
        })?;
        Ok(Box::new(CompiledOfHost { key: self.key.clone(), file, compiled, outline }))
    }

    fn writes_summaries(&self) -> bool {
        self.engine.writes_summaries()
    }
}

struct CompiledOfHost {
    key: Arc<str>,
    file: String,
    compiled: Box<dyn Compiled>,
    outline: Arc<dyn Outline>,
}

impl Compiled for CompiledOfHost {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        caught(&self.key, &self.file, || self.compiled.render(scope, limit))
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.outline.clone()
    }
}

fn caught<T>(key: &str, file: &str, work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_panic(work).unwrap_or_else(|panic| {
        let message = format!("the template engine `{key}` panicked: {panic}");
        let diagnostic = Diagnostic::new(Code::RenderFailed, message).file(file);
        Err(Error::new(ErrorKind::PromptRender, diagnostic).with("engine", key))
    })
}

/// Jinja2 as template prompts know it.
#[derive(Debug)]
pub struct Jinja;

impl Engine for Jinja {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        Ok(Box::new(jinja::Template::compile(job.source, job.loader, job.settings)?))
    }
}

/// Jinja2 as `.prompty` files know it: values print alike in every runtime. `scalars: python` among the options prints
/// them as Python does.
#[derive(Debug)]
pub struct PortableJinja;

impl Engine for PortableJinja {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        let portable = job.settings.clone().portable();
        let settings = match job.options.get("scalars").map(|name| (name, name.as_str())) {
            None | Some((_, Some("portable"))) => portable,
            Some((_, Some("python"))) => Settings { style: Style::Python, ..portable },
            Some((other, _)) => return Err(job.bad_option("scalars", other, "\"portable\" or \"python\"")),
        };
        Ok(Box::new(jinja::Template::compile(job.source, job.loader, &settings)?))
    }
}

/// `$name`, as in the bodies of sections. `missing: keep` among the options shows a placeholder without a value as it is written.
#[derive(Debug)]
pub struct Dollar;

impl Engine for Dollar {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        let missing = match job.options.get("missing").map(|name| (name, name.as_str())) {
            None | Some((_, Some("error"))) => Missing::Error,
            Some((_, Some("keep"))) => Missing::Keep,
            Some((other, _)) => {
                let message = format!("`missing` is {other}, but must be \"error\" or \"keep\"");
                let diagnostic = Diagnostic::new(Code::BadPrompty, message).file(job.source.name());
                return Err(Error::new(ErrorKind::PromptRead, diagnostic));
            }
        };
        let template = dollar::Template::compile(job.source).limited(job.settings.string_bytes);
        Ok(Box::new(Arc::new(dollar::StandaloneTemplate::new(template, missing))))
    }
}

impl Compiled for Arc<dollar::StandaloneTemplate> {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        let written = dollar::StandaloneTemplate::render(self, limit, |name| scope.shown(name));
        written.map_err(|fault| {
            let known = scope.names();
            self.template().error(fault, known.iter().map(String::as_str), limit)
        })
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.clone()
    }
}

impl Outline for dollar::StandaloneTemplate {
    fn units(&self) -> &[Unit] {
        dollar::StandaloneTemplate::units(self)
    }

    fn names(&self) -> &[Names] {
        dollar::StandaloneTemplate::names(self)
    }
}

impl Compiled for jinja::Template {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        self.render_in(scope, limit)
    }

    fn render_text(&self, scope: &Arc<Scope>, limit: usize, memory: String) -> Result<String> {
        self.render_text_in(scope, limit, memory)
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.program()
    }
}

impl Outline for Program {
    fn units(&self) -> &[Unit] {
        Program::units(self)
    }

    fn names(&self) -> &[Names] {
        Program::names(self)
    }

    fn jinja(&self) -> Option<&Program> {
        Some(self)
    }
}
