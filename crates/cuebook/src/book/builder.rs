//! One render, said step by step.

use std::sync::Arc;

use serde::Serialize;

use super::Book;
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
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "nothing is rendered before `render`"]
pub struct RenderBuilder<'b> {
    book: &'b Book,
    prompt_id: String,
    variables: Variables,
    context: Context,
    /// The first values that could not be taken.
    fault: Option<Error>,
}

impl Book {
    /// Begins a render of a prompt. Nothing is looked for before the end.
    pub fn prompt(&self, prompt_id: impl Into<String>) -> RenderBuilder<'_> {
        RenderBuilder {
            book: self,
            prompt_id: prompt_id.into(),
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
            None => self.book.render(&self.prompt_id, &self.variables, &self.context),
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
            None => self.book.validate(&self.prompt_id, &self.variables, &self.context),
        }
    }

    /// The compiled prompt, in this language and as strict as was said.
    ///
    /// # Errors
    ///
    /// Whatever keeps the prompt from being found and read.
    pub fn prepare(self) -> Result<Arc<Prepared>> {
        self.book.prepare(&self.prompt_id, &self.context)
    }
}
