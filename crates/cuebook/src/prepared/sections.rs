//! What only trees of sections have.

use std::sync::Arc;

use serde_json::Value as Json;

use super::Prepared;
use crate::error::Result;
use crate::overrides::Resolved;
use crate::render::Rendered;
use crate::sections::disclosure::Answer;
use crate::sections::{Missing, Tree, VisibilityOverrides};
use crate::variables::{Context, Variables, validation_error};

impl Prepared {
    /// The tree, if it is a tree of sections.
    pub fn tree(&self) -> Option<&Tree> {
        self.body.sections().map(|body| body.tree())
    }

    /// What happens to a `$name` that nothing fills.
    #[doc(hidden)]
    pub fn missing(&self) -> Missing {
        self.body.sections().map_or(Missing::Error, |body| body.missing())
    }

    /// The project's overrides of it under a tag.
    #[doc(hidden)]
    pub fn resolve_overrides(&self, tag: &str) -> Result<Resolved> {
        let Some(tree) = self.tree() else { return Ok(Resolved::default()) };
        self.book.overrides.store(self.files.loader.library().root())?.resolve(tree.descriptor(), tag)
    }

    /// The tags under which the project has overrides of it.
    #[doc(hidden)]
    pub fn override_tags(&self) -> Result<Vec<String>> {
        let Some(tree) = self.tree() else { return Ok(Vec::new()) };
        self.book.overrides.store(self.files.loader.library().root())?.tags(&tree.ns, &tree.key)
    }

    /// Renders a tree as its file has it, without the project's overrides, and as far as that is asked for whatever its folds
    /// and conditions say. `None` if it is no tree.
    #[doc(hidden)]
    pub fn render_own(
        &self,
        variables: &Variables,
        context: &Arc<Context>,
        unfolded: bool,
        unconditional: bool,
    ) -> Option<Result<Rendered>> {
        let body = self.body.sections()?;
        let scope = self.scope(variables, context);
        let rendered = validation_error(&self.prompt, &scope)
            .and_then(|()| body.render_own(&self.rendering(&scope), unfolded, unconditional));
        Some(rendered)
    }

    /// Answers a model that was given a render of this prompt and called one of the tools which open or read sections. What it
    /// opened is set in the session: put that into the context, and render again if the answer says so. `None` for any
    /// other tool, and for a prompt that has no such tools.
    pub fn answer(
        &self,
        rendered: &Rendered,
        name: &str,
        arguments: &Json,
        session: &mut VisibilityOverrides,
    ) -> Result<Option<Answer>> {
        // The values of that render, with what hooks made of them.
        let rendering = self.rendering(rendered.shared_scope());
        self.body.answer((name, arguments), rendered, &rendering, session)
    }
}
