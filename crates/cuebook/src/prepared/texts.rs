//! The text of renders alone, for programs that render many and ask for no origins.

use std::sync::Arc;

use super::Prepared;
use crate::error::Result;
use crate::template::meter;
use crate::variables::{Context, Scope, Variables, validation_error};

/// Renders one prompt with many variables, in one thread.
///
/// Each thread has its own: what renders share would be counted by all threads, and they would wait for each other.
pub struct TextRenderer<'p> {
    prepared: &'p Prepared,
    context: Arc<Context>,
    /// Whether the text can be written without its origins.
    is_plain: bool,
    /// The scope of the render before.
    scope: Option<Arc<Scope>>,
    /// The text of the render before.
    text: String,
}

impl TextRenderer<'_> {
    /// The text of a render.
    pub fn render(&mut self, variables: &Variables) -> Result<&str> {
        let TextRenderer { prepared, context, is_plain, scope, text } = self;
        if *is_plain {
            variables.refuse_faults()?;
            prepared.unknown_in(variables, context.unknown)?;
            let given = prepared.given(variables);
            let before = scope.take().and_then(|mut scope| scope.give(given.clone()).then_some(scope));
            let mut current = before
                .unwrap_or_else(|| Scope::new(prepared.names.declared.clone(), given, context.clone(), None));
            let written = prepared.plain_text(variables, &current, std::mem::take(text))?;
            // The caller can write to its variables again.
            if current.give(Variables::new()) {
                *scope = Some(current);
            }
            if let Some(written) = written {
                *text = written;
                return Ok(text);
            }
        }
        *text = prepared.render(variables, context)?.into_text();
        Ok(text)
    }
}

impl Prepared {
    /// Renders texts in one thread.
    #[doc(hidden)]
    pub fn texts(&self, context: &Arc<Context>) -> Result<TextRenderer<'_>> {
        let is_plain = self.is_plain(context);
        // The thread's own copy.
        let context = Arc::new((**self.circumstances(context)?).clone());
        context.agent.variables.refuse_faults()?;
        Ok(TextRenderer { prepared: self, context, is_plain, scope: None, text: String::new() })
    }

    /// The text of a render alone: for programs that render many and ask for no origins.
    ///
    /// # Errors
    ///
    /// Those of [`render`](Prepared::render).
    pub fn render_text(&self, variables: &Variables, context: &Arc<Context>) -> Result<String> {
        if self.is_plain(context) {
            let context = &*self.circumstances(context)?;
            variables.refuse_faults()?;
            context.agent.variables.refuse_faults()?;
            self.unknown_in(variables, context.unknown)?;
            if let Some(text) = self.plain_text(variables, &self.scope(variables, context), String::new())? {
                return Ok(text);
            }
        }
        Ok(self.render(variables, context)?.into_text())
    }

    /// Whether nothing in a render asks for the origins of its text.
    fn is_plain(&self, context: &Context) -> bool {
        !self.runs_code(context)
            && !self.names.is_rich
            && !self.names.has_strict_inputs
            && context.fit.is_none()
    }

    /// The text without its origins, in the memory of another text; `None` if the body cannot write it so.
    fn plain_text(
        &self,
        variables: &Variables,
        scope: &Arc<Scope>,
        memory: String,
    ) -> Result<Option<String>> {
        let rendering = self.rendering(scope);
        let text = self.body.admit(variables, &rendering).and_then(|_| {
            validation_error(&self.prompt, scope)?;
            let seconds = self.files.config.limits.render_seconds;
            meter::render(seconds, || self.body.text(&rendering.writing, memory)).transpose()
        });
        text.map_err(|error| self.explained(error))
    }
}
