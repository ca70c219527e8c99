//! One render, said step by step.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;

use super::cache::NameKind;
use super::{Book, problems};
use crate::error::{Error, Result};
use crate::prepared::Prepared;
use crate::render::Rendered;
use crate::variables::{Agent, Context, Problem, UnknownVariables, Variables};

/// A render of one prompt: its variables and circumstances, and then [`render`](RenderBuilder::render).
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::create_dir_all(folder.path().join("prompts/greet")).unwrap();
/// # std::fs::write(folder.path().join("prompts/greet/template.md"), "Hello {{ name }}!").unwrap();
/// let book = cuebook::Book::open(folder.path());
/// let greeting = book.prompt("greet").var("name", "Ada").render()?;
/// assert_eq!(greeting.text(), "Hello Ada!");
///
/// let error = book.prompt("greet").var("nmae", "Ada").render().unwrap_err();
/// assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `name`?"));
///
/// let greeting = book
///     .prompt("greet")
///     .var("name", "Ada")
///     .var("mood", "good")
///     .unknown(cuebook::UnknownVariables::Ignore)
///     .agent(cuebook::Agent::default())
///     .language("en")
///     .strict()
///     .context(|context| context.without_hooks = true)
///     .render()?;
/// assert_eq!(greeting.text(), "Hello Ada!");
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is rendered before `render`"]
pub struct RenderBuilder<'b> {
    book: &'b Book,
    wanted: PromptSource,
    variables: Variables,
    context: Context,
    /// The first values that could not be taken.
    fault: Option<Error>,
}

/// What is rendered.
#[derive(Debug, Clone)]
enum PromptSource {
    Id(String),
    File(PathBuf),
}

impl PromptSource {
    fn prepare(&self, book: &Book, context: &Context) -> Result<Arc<Prepared>> {
        match self {
            PromptSource::Id(id) => book.prepare(id, context),
            PromptSource::File(path) => book.prepare_file(path, context),
        }
    }
}

impl Book {
    /// Begins a render of a prompt. Nothing is looked for before the end.
    pub fn prompt(&self, prompt_id: impl Into<String>) -> RenderBuilder<'_> {
        self.begin(PromptSource::Id(prompt_id.into()))
    }

    /// Begins a render of the prompt in a file or folder. Only a path that the program or its user chose may be given here: any file
    /// can be read. [`Book::prompt`] takes ids and refuses paths.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("letter.prompty");
    /// # std::fs::write(&path, "Dear {{ name }}").unwrap();
    /// # let book = cuebook::Book::open(folder.path());
    /// assert_eq!(book.file(&path).var("name", "Ada").render()?.text(), "Dear Ada");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn file(&self, path: impl Into<PathBuf>) -> RenderBuilder<'_> {
        self.begin(PromptSource::File(path.into()))
    }

    /// Renders the prompt in a file or folder, which the program or its user chose. It stays compiled, as a prompt with an id does.
    ///
    /// ```
    /// # use cuebook::{Book, Context, Variables};
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("letter.prompty");
    /// # std::fs::write(&path, "Dear {{ name }}").unwrap();
    /// let book = Book::open(folder.path());
    /// let variables = Variables::new().set("name", "Ada");
    /// let letter = book.render_file(&path, &variables, &Context::default())?;
    /// assert_eq!(letter.text(), "Dear Ada");
    /// assert!(book.render(path.to_str().unwrap(), &variables, &Context::default()).is_err());
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of [`Book::render`].
    pub fn render_file(
        &self,
        path: impl AsRef<Path>,
        variables: &Variables,
        context: &Context,
    ) -> Result<Rendered> {
        let path = path.as_ref();
        let prepare = || self.prepare_file(path, context);
        self.render_as(&path.to_string_lossy(), prepare, variables, context).map(|(_, rendered)| rendered)
    }

    fn prepare_file(&self, path: &Path, context: &Context) -> Result<Arc<Prepared>> {
        let name = path.to_string_lossy();
        self.prepare_as((NameKind::File, &name), context, || self.library.find_path(path))
            .map(|(prepared, _)| prepared)
    }

    fn begin(&self, wanted: PromptSource) -> RenderBuilder<'_> {
        RenderBuilder {
            book: self,
            wanted,
            variables: Variables::new(),
            context: Context::default(),
            fault: None,
        }
    }
}

impl RenderBuilder<'_> {
    /// Gives a variable its value. A later value replaces an earlier one.
    pub fn var(mut self, name: impl Into<String>, value: impl Serialize) -> Self {
        self.variables = self.variables.set(name, value);
        self
    }

    /// Gives the fields of a struct, the entries of a map, or [`Variables`] as variables.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # std::fs::write(folder.path().join("greet.prompty"), "Hello {{ name }}!").unwrap();
    /// # std::fs::create_dir_all(folder.path().join("prompts")).unwrap();
    /// # std::fs::write(folder.path().join("prompts/greet.prompty"), "Hello {{ name }}!").unwrap();
    /// # let book = cuebook::Book::open(folder.path());
    /// #[derive(serde::Serialize)]
    /// struct Person {
    ///     name: String,
    /// }
    ///
    /// let ada = Person { name: "Ada".into() };
    /// assert_eq!(book.prompt("greet").vars(&ada).render()?.text(), "Hello Ada!");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn vars<T: Serialize + ?Sized>(mut self, values: &T) -> Self {
        match Variables::from_serialize(values) {
            Ok(values) => self.variables = values.and(self.variables),
            Err(error) => {
                self.fault.get_or_insert(error);
            }
        }
        self
    }

    /// Renders in a language, as in `en` or `ja`.
    pub fn language(mut self, language: impl Into<String>) -> Self {
        self.context.language = Some(language.into());
        self
    }

    /// Names the model that will read the prompt.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.context.model = Some(model.into());
        self
    }

    /// Adds what the user says: a message that follows those of the prompt.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.context.message = Some(message.into());
        self
    }

    /// Renders for an agent.
    pub fn agent(mut self, agent: Agent) -> Self {
        self.context.agent = agent;
        self
    }

    /// Makes printing an absent variable an error.
    pub fn strict(mut self) -> Self {
        self.context.strict = true;
        self
    }

    /// Says what happens to variables that the prompt does not have. They are refused unless this says otherwise.
    pub fn unknown(mut self, unknown: UnknownVariables) -> Self {
        self.context.unknown = unknown;
        self
    }

    /// Drops less important sections of a section tree until it has at most so many tokens.
    pub fn fit(mut self, tokens: usize) -> Self {
        self.context.fit = Some(tokens);
        self
    }

    /// Changes anything else about the circumstances.
    pub fn context(mut self, change: impl FnOnce(&mut Context)) -> Self {
        change(&mut self.context);
        self
    }

    /// Renders it.
    ///
    /// # Errors
    ///
    /// The errors of [`Book::render`].
    pub fn render(self) -> Result<Rendered> {
        match self.fault {
            Some(error) => Err(error),
            None => match &self.wanted {
                PromptSource::Id(id) => self.book.render(id, &self.variables, &self.context),
                PromptSource::File(path) => self.book.render_file(path, &self.variables, &self.context),
            },
        }
    }

    /// What is wrong with the variables; nothing, if they are right.
    ///
    /// # Errors
    ///
    /// Whatever keeps the prompt from being found and read.
    pub fn validate(self) -> Result<Vec<Problem>> {
        match self.fault {
            Some(error) => Err(error),
            None => {
                let context = self.book.complete(&self.context)?;
                let prepared = self.wanted.prepare(self.book, &context)?;
                Ok(problems(&prepared, &self.variables, &context))
            }
        }
    }

    /// The compiled prompt, in this language and as strict as was said.
    ///
    /// # Errors
    ///
    /// Whatever keeps the prompt from being found and read.
    pub fn prepare(self) -> Result<Arc<Prepared>> {
        self.wanted.prepare(self.book, &self.context)
    }
}
