//! A prompt that has been compiled: what it is made of, and how its text is written.

use std::sync::Arc;

use serde_json::Value as Json;

use super::directive::{DirectiveBody, ToolOffer};
use super::sections::SectionsBody;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::items::Item;
use crate::library::{Config, Library, LibraryLoader};
use crate::overrides::ProjectStore;
use crate::prompt::Prompt;
use crate::render::Rendered;
use crate::sections::VisibilityOverrides;
use crate::sections::disclosure::Answer;
use crate::source::{OffsetMap, Source};
use crate::template::engine::{Outline, Output};
use crate::template::input::text_of;
use crate::template::jinja::names::Names;
use crate::template::unit::Unit;
use crate::trust::Trust;
use crate::variables::{Scope, Variables};

/// A prompt that has been compiled, whatever its dialect. See [`Dialect`](super::Dialect) for an example.
pub trait Body: Send + Sync {
    /// The texts that it is made of, with what they mention: for checks, definitions and hints.
    fn outline(&self) -> Arc<dyn Outline>;

    /// Writes its text, as all of a prompt or as a part of another one. [`Page`](crate::template::page::Page) keeps where every
    /// byte comes from.
    fn write(&self, writing: &Writing<'_>) -> Result<Output>;

    /// Writes its text alone, if it can do so without keeping where it comes from. It may take the memory of another text.
    #[doc(hidden)]
    fn text(&self, writing: &Writing<'_>, memory: String) -> Option<Result<String>> {
        let _ = (writing, memory);
        None
    }

    /// Renders the prompt: its text, and what a model gets beside it.
    fn render(&self, rendering: &Rendering<'_>) -> Result<Rendered> {
        rendering.refuse_budget()?;
        Ok(rendering.finish(self.write(&rendering.writing)?))
    }

    /// Refuses a render before its variables are validated, and gives notes on one that is not refused.
    fn admit(&self, given: &Variables, rendering: &Rendering<'_>) -> Result<Vec<Diagnostic>> {
        let _ = (given, rendering);
        Ok(Vec::new())
    }

    /// Answers a model that was given this render and called a tool of the prompt itself, such as one that opens a section. `None`
    /// for any other tool.
    fn answer(
        &self,
        call: (&str, &Json),
        rendered: &Rendered,
        rendering: &Rendering<'_>,
        session: &mut VisibilityOverrides,
    ) -> Result<Option<Answer>> {
        let _ = (call, rendered, rendering, session);
        Ok(None)
    }

    /// The signed files that it is made from.
    fn items(&self) -> Vec<&Item> {
        Vec::new()
    }

    /// Whether all its signed files are signed with a trusted key.
    fn verify(&self, trust: &Trust) -> Result<()> {
        let _ = trust;
        Ok(())
    }

    /// What only a tree of sections has.
    fn sections(&self) -> Option<&SectionsBody> {
        None
    }

    /// What only a directive has.
    fn directive(&self) -> Option<&DirectiveBody> {
        None
    }
}

/// A text that is being written.
pub struct Writing<'w> {
    pub(crate) scope: &'w Arc<Scope>,
    pub(crate) limit: usize,
    pub(crate) files: &'w Arc<LibraryLoader>,
    pub(crate) overrides: &'w ProjectStore,
    /// Whether what is opened in the session is opened in it.
    pub(crate) opens: bool,
}

impl Writing<'_> {
    /// The values.
    pub fn scope(&self) -> &Arc<Scope> {
        self.scope
    }

    /// The text of a value: a text as it is, anything else as JSON. An image or another rich input has a placeholder. `None` if the
    /// variable has no value.
    pub fn value(&self, name: &str) -> Option<String> {
        self.scope.shown(name).filter(|value| !value.is_null()).map(|value| text_of(&value))
    }

    /// The most characters that may be written.
    pub fn limit(&self) -> usize {
        self.limit
    }

    pub(crate) fn library(&self) -> &Library {
        self.files.library()
    }
}

/// A prompt that is being rendered.
pub struct Rendering<'r> {
    pub(crate) writing: Writing<'r>,
    pub(crate) prompt: &'r Arc<Prompt>,
    pub(crate) config: &'r Config,
    pub(crate) offer: Option<&'r dyn ToolOffer>,
}

impl<'r> Rendering<'r> {
    /// What its text is written with.
    pub fn writing(&self) -> &Writing<'r> {
        &self.writing
    }

    /// The prompt.
    pub fn prompt(&self) -> &Prompt {
        self.prompt
    }

    /// The result, of a text that was written.
    pub fn finish(&self, output: Output) -> Rendered {
        Rendered::new(output, self.writing.scope.clone(), self.prompt.clone())
    }

    /// Refuses a budget of tokens, which only sections could keep to.
    pub(crate) fn refuse_budget(&self) -> Result<()> {
        if self.writing.scope.context().fit.is_none() {
            return Ok(());
        }
        let message =
            format!("the prompt `{}` has no sections, so Cuebook cannot shorten it", self.prompt.id);
        let hint = Hint::run("render it without a budget, or write it as sections", "cuebook help sections");
        Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
    }
}

/// Texts with what they mention.
pub(crate) struct Texts {
    pub(crate) units: Arc<Vec<Unit>>,
    pub(crate) names: Vec<Names>,
}

impl Outline for Texts {
    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn names(&self) -> &[Names] {
        &self.names
    }
}

impl Texts {
    /// One text that mentions nothing.
    pub(crate) fn of(source: &Arc<Source>) -> Arc<Texts> {
        let unit = Unit::new(source.clone(), OffsetMap::default(), Vec::new(), Vec::new());
        Arc::new(Texts { units: Arc::new(vec![unit]), names: vec![Names::default()] })
    }
}
