//! What templates run with: settings, limits, and what the program adds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::error::{Error, ErrorKind, Result, nearest};
use crate::lexer::Whitespace;
use crate::template::Template;
use crate::typed::Typed;

/// What templates are written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Style {
    /// As in Python's Jinja2.
    #[default]
    Python,
    /// Chat templates of models, as the library `transformers` renders them: `tojson` keeps the order of keys and escapes
    /// nothing for HTML, and `strftime_now`, `raise_exception` and `{% generation %}` exist.
    Chat,
    /// As in `.prompty` files, which render the same in every language: `true`, nothing for null, `1` for `1.0`; `null` is a
    /// literal and what is missing equals it; attributes of what is missing are missing; truth values are no numbers, and
    /// values of unlike kinds have no order.
    Portable,
}

/// How far a render may go.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Units of work: one for a step, an item that is looked at, or 64 bytes that are written.
    pub fuel: u64,
    /// The time of one render.
    pub time: Option<Duration>,
    /// Bytes of the text.
    pub output_bytes: usize,
    /// Bytes of one string.
    pub string_bytes: usize,
    /// Items of one sequence.
    pub items: usize,
    /// Items of one `range`.
    pub range: usize,
    /// How deeply macros, blocks, includes and recursive loops may nest.
    pub depth: usize,
    /// Bytes of the stack, which nested expressions, blocks and macros take.
    pub stack_bytes: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            fuel: 10_000_000,
            time: None,
            output_bytes: 16 * 1024 * 1024,
            string_bytes: 8 * 1024 * 1024,
            items: 1_000_000,
            range: 100_000,
            depth: 100,
            stack_bytes: crate::stack::MAX,
        }
    }
}

/// What one render may do, beyond what the environment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Units of work, instead of those of [`Limits`].
    pub fuel: Option<u64>,
    /// Characters of the text, instead of the bytes of [`Limits`].
    pub characters: Option<usize>,
    /// Whether a tag that prints nothing leaves an empty piece.
    pub keep_empty: bool,
}

type Callable = dyn Fn(&[Json], &Map<String, Json>) -> std::result::Result<Json, String> + Send + Sync;

/// A filter, test or function of the program.
#[derive(Clone)]
pub struct Function(Arc<Callable>);

impl Function {
    pub(crate) fn call(
        &self,
        positional: &[Json],
        named: &Map<String, Json>,
    ) -> std::result::Result<Json, String> {
        (self.0)(positional, named)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

/// A part of what a [framing filter](Environment::frame) writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Framed {
    /// Text of the program.
    Frame(String),
    /// Text of an argument.
    Argument(String),
    /// The value.
    Value,
}

type FrameResult = std::result::Result<Vec<Framed>, String>;
type Framing = dyn Fn(&str, &[String], &[(String, String)]) -> FrameResult + Send + Sync;

/// A filter of the program that puts something around a value.
#[derive(Clone)]
pub(crate) struct Frame(pub Arc<Framing>);

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Frame")
    }
}

type Finder = dyn Fn(&str) -> std::result::Result<Option<String>, String> + Send + Sync;

/// Settings, limits, and where templates, filters, tests and functions come from.
///
/// ```
/// use cuebook_template::Environment;
///
/// let env = Environment::new().filter("shout", |args, _| Ok(format!("{}!", args[0].as_str().unwrap_or("")).into()));
/// let template = env.compile("hello", "Hello {{ name|shout }}").unwrap();
/// let variables = serde_json::json!({"name": "Ada"});
/// let output = env.render(&template, variables.as_object().unwrap()).unwrap();
/// assert_eq!(output.text(), "Hello Ada!");
/// assert_eq!(output.paths_at(6)[0].to_string(), "name");
/// ```
///
/// Values, tests, functions, included templates, and filters that put something around a value:
///
/// ```
/// use cuebook_template::{Environment, Framed};
///
/// let env = Environment::new()
///     .global("app", "Desk")
///     .test("short", |args, _| Ok((args[0].as_str().is_some_and(|text| text.len() < 4)).into()))
///     .function("twice", |args, _| Ok((args[0].as_i64().unwrap_or(0) * 2).into()))
///     .frame("quoted", |_, _, _| Ok(vec![Framed::Frame("«".into()), Framed::Value, Framed::Frame("»".into())]))
///     .loader(|name| (name == "sign").then(|| "Yours, {{ app }}".to_owned()));
/// let text = "{{ name|quoted }} {{ name is short }} {{ twice(4) }} {% include 'sign' %}";
/// let output = env.render_from(&env.compile("t", text).unwrap(), &serde_json::json!({"name": "Ada"})).unwrap();
/// assert_eq!(output.text(), "«Ada» True 8 Yours, Desk");
///
/// // A loader that can fail says why.
/// let env = Environment::new().try_loader(|name| Err::<Option<String>, _>(format!("cannot read {name}")));
/// let template = env.compile("t", "{% include 'sign' %}").unwrap();
/// assert!(env.render_from(&template, &serde_json::json!({})).unwrap_err().message().contains("cannot read sign"));
/// ```
#[derive(Default)]
pub struct Environment {
    /// What happens to white space around tags.
    pub whitespace: Whitespace,
    /// What templates are written for.
    pub style: Style,
    /// What `strftime_now` takes for now; the time of the render if it is `None`.
    pub now: Option<jiff::Zoned>,
    /// Whether values are escaped for HTML.
    pub autoescape: bool,
    /// Whether using an undefined value is an error.
    pub strict: bool,
    /// Whether a condition may ask for an undefined value although using it is an error.
    pub testable: bool,
    /// Whether a function or method that is not called is undefined where it is printed or a condition asks for it. Then a variable
    /// that is absent is empty although a function has its name, and `order.items` is the key if there is one.
    pub silent_callables: bool,
    /// How far a render may go.
    pub limits: Limits,
    /// Where the filter `random` begins.
    pub seed: u64,
    pub(crate) globals: BTreeMap<String, Json>,
    pub(crate) filters: BTreeMap<String, Function>,
    pub(crate) tests: BTreeMap<String, Function>,
    pub(crate) functions: BTreeMap<String, Function>,
    pub(crate) frames: BTreeMap<String, Frame>,
    finder: Option<Box<Finder>>,
    compiled: Mutex<BTreeMap<String, Arc<Template>>>,
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("whitespace", &self.whitespace)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// An environment with Jinja2's defaults and no further templates.
    pub fn new() -> Environment {
        Environment::default()
    }

    /// An environment for chat templates of models: [`Style::Chat`], with `trim_blocks` and `lstrip_blocks`.
    ///
    /// ```
    /// use cuebook_template::Environment;
    ///
    /// let env = Environment::chat();
    /// let template = env.compile("model", "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}").unwrap();
    /// let variables = serde_json::json!({"messages": [{"role": "user", "content": "Hi"}]});
    /// assert_eq!(env.render(&template, variables.as_object().unwrap()).unwrap().text(), "<|user|>Hi\n");
    /// ```
    pub fn chat() -> Environment {
        let whitespace = Whitespace { trim_blocks: true, lstrip_blocks: true, ..Whitespace::default() };
        Environment { style: Style::Chat, whitespace, ..Environment::default() }
    }

    /// Finds the templates that others include, import or extend.
    pub fn loader(mut self, find: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Environment {
        self.finder = Some(Box::new(move |name| Ok(find(name))));
        self
    }

    /// The same for a loader that can fail: a file that exists and cannot be read is not a template that does not exist.
    pub fn try_loader<E: fmt::Display>(
        mut self,
        find: impl Fn(&str) -> std::result::Result<Option<String>, E> + Send + Sync + 'static,
    ) -> Environment {
        self.finder = Some(Box::new(move |name| find(name).map_err(|error| error.to_string())));
        self
    }

    /// Adds a filter whose arguments have types. The first one is the value before the `|`.
    ///
    /// ```
    /// use cuebook_template::Environment;
    ///
    /// let env = Environment::new()
    ///     .typed_filter("cut", |text: String, most: Option<usize>| -> String {
    ///         text.chars().take(most.unwrap_or(3)).collect()
    ///     })
    ///     .typed_test("long", |text: String| text.len() > 3)
    ///     .typed_function("half", |number: i64| match number % 2 {
    ///         0 => Ok(number / 2),
    ///         _ => Err(format!("{number} is odd")),
    ///     });
    /// let template = env.compile("t", "{{ name|cut }} {{ name|cut(1) }} {{ name is long }} {{ half(n) }}").unwrap();
    /// let render = |n: i64| env.render_from(&template, &serde_json::json!({"name": "Grace", "n": n}));
    /// assert_eq!(render(8).unwrap().text(), "Gra G True 4");
    /// assert_eq!(render(7).unwrap_err().message(), "`half`: 7 is odd");
    /// ```
    pub fn typed_filter<A>(self, name: &str, run: impl Typed<A>) -> Environment {
        self.filter(name, move |positional, named| run.call(positional, named))
    }

    /// Adds a test whose arguments have types. The first one is the value before the `is`.
    pub fn typed_test<A>(self, name: &str, run: impl Typed<A>) -> Environment {
        self.test(name, move |positional, named| run.call(positional, named))
    }

    /// Adds a function whose arguments have types.
    pub fn typed_function<A>(self, name: &str, run: impl Typed<A>) -> Environment {
        self.function(name, move |positional, named| run.call(positional, named))
    }

    /// Adds a filter. Its first argument is the value before the `|`.
    pub fn filter<F>(mut self, name: &str, run: F) -> Environment
    where
        F: Fn(&[Json], &Map<String, Json>) -> std::result::Result<Json, String> + Send + Sync + 'static,
    {
        self.filters.insert(name.to_owned(), Function(Arc::new(run)));
        self
    }

    /// Adds a test, which is true if what it returns is true.
    pub fn test<F>(mut self, name: &str, run: F) -> Environment
    where
        F: Fn(&[Json], &Map<String, Json>) -> std::result::Result<Json, String> + Send + Sync + 'static,
    {
        self.tests.insert(name.to_owned(), Function(Arc::new(run)));
        self
    }

    /// Adds a function.
    pub fn function<F>(mut self, name: &str, run: F) -> Environment
    where
        F: Fn(&[Json], &Map<String, Json>) -> std::result::Result<Json, String> + Send + Sync + 'static,
    {
        self.functions.insert(name.to_owned(), Function(Arc::new(run)));
        self
    }

    /// Adds a filter that puts something around a value, which keeps its origin. It is a block tag as well:
    /// `{% name … %}…{% endname %}`.
    pub fn frame<F>(mut self, name: &str, run: F) -> Environment
    where
        F: Fn(&str, &[String], &[(String, String)]) -> FrameResult + Send + Sync + 'static,
    {
        self.frames.insert(name.to_owned(), Frame(Arc::new(run)));
        self
    }

    /// Adds a value that every template sees unless the caller has a variable of that name.
    pub fn global(mut self, name: &str, value: impl Into<Json>) -> Environment {
        self.globals.insert(name.to_owned(), value.into());
        self
    }

    /// The template of a name, which `compile` reads the first time.
    pub(crate) fn found(
        &self,
        name: &str,
        compile: impl FnOnce(&Environment, &str, &str) -> Result<Template>,
    ) -> Result<Option<Arc<Template>>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(known) = compiled.get(name) {
            return Ok(Some(known.clone()));
        }
        let Some(find) = &self.finder else { return Ok(None) };
        let text = find(name).map_err(|message| {
            Error::new(ErrorKind::Runtime, format!("the template `{name}` cannot be loaded: {message}"))
        })?;
        let Some(text) = text else { return Ok(None) };
        let template = Arc::new(compile(self, name, &text)?);
        compiled.insert(name.to_owned(), template.clone());
        Ok(Some(template))
    }

    /// Whether a filter of this name exists.
    pub(crate) fn has_filter(&self, name: &str) -> bool {
        self.filters.contains_key(name) || self.frames.contains_key(name)
    }

    pub(crate) fn not_found(&self, name: &str) -> Error {
        let error = Error::new(ErrorKind::TemplateNotFound, format!("the template `{name}` does not exist"));
        let compiled = self.compiled.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        match nearest(name, compiled.keys().map(String::as_str)).first() {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }
    }
}
