//! Conditions: expressions of Jinja2 over the inputs and the session, which are asked at each render.

use std::sync::Arc;

use crate::error::{Diagnostic, Result};
use crate::node::Node;
use crate::prompt::Visibility;
use crate::sections::{ConditionContext, Selector};
use crate::source::{Place, Source};
use crate::template::engine::{Compiled, Loader};
use crate::template::jinja::names::Names;
use crate::template::jinja::{Settings, Template};

/// What a condition may print.
const LONGEST: usize = 1000;

/// Conditions include nothing.
struct NoIncludes;

impl Loader for NoIncludes {
    fn load(&self, _name: &str, _parent: &str) -> Result<Option<Arc<Source>>> {
        Ok(None)
    }
}

/// A condition that has been read.
pub(super) struct Condition {
    template: Template,
    /// What it mentions. All of it stands where the condition does.
    pub(super) names: Names,
    pub(super) place: Place,
}

impl Condition {
    /// Reads an expression that stands in a file.
    fn read(
        node: &Node,
        expression: &str,
        template: &str,
    ) -> std::result::Result<Condition, Box<Diagnostic>> {
        let place = node.place.clone();
        let source = Source::new(place.file(), template.replace("EXPRESSION", expression));
        let template =
            Template::compile(source, Arc::new(NoIncludes), &Settings::default()).map_err(|error| {
                let found = error.diagnostic();
                let message = format!("invalid condition `{expression}`: {}", found.message);
                let hint = "write a condition such as `audience == \"expert\" and not session.quiet`";
                Box::new(Diagnostic::new(found.code, message).at(place.clone()).hint(hint))
            })?;
        let mut names = template.program().names().first().cloned().unwrap_or_default();
        names.emissions.clear();
        names.accessors.clear();
        names.forget_tags();
        for read in &mut names.reads {
            read.range = place.range();
        }
        Ok(Condition { template, names, place })
    }

    fn ask(&self, condition_context: &ConditionContext<'_>) -> std::result::Result<String, String> {
        let params = condition_context.params.ok_or("the section has no parameters")?;
        let output = Compiled::render(&self.template, &params.scope(), LONGEST);
        output.map(|output| output.text).map_err(|error| error.diagnostic().message.clone())
    }
}

/// Whether a section is there.
pub(super) fn enabled(
    node: &Node,
    text: &str,
) -> std::result::Result<(Selector<bool>, Arc<Condition>), Box<Diagnostic>> {
    let condition = Arc::new(Condition::read(node, text, "{% if (EXPRESSION) %}yes{% endif %}")?);
    let asked = condition.clone();
    let selector = Selector::Asked(Arc::new(move |condition_context: &ConditionContext<'_>| {
        Ok(!asked.ask(condition_context)?.is_empty())
    }));
    Ok((selector, condition))
}

/// How much of a section is shown.
pub(super) fn visibility(
    node: &Node,
    text: &str,
) -> std::result::Result<(Selector<Visibility>, Arc<Condition>), Box<Diagnostic>> {
    let condition = Arc::new(Condition::read(node, text, "{{ (EXPRESSION) }}")?);
    let asked = condition.clone();
    let selector = Selector::Asked(Arc::new(move |condition_context: &ConditionContext<'_>| {
        let said = asked.ask(condition_context)?;
        Visibility::named(said.trim())
            .ok_or_else(|| format!("the result must be \"full\" or \"summary\", but is {:?}", said.trim()))
    }));
    Ok((selector, condition))
}
