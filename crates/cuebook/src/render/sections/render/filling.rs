//! What sections are filled with, whether they are there, and how much of them is shown.

use serde_json::Value as Json;

use super::super::errors::{caused, failed, hinted};
use super::super::params::BoundParams;
use super::super::section::Body;
use super::super::selector::{ConditionContext, Selector};
use super::super::tree::{Node, Tree};
use super::setting::{Fold, Setting};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::overrides::{SectionOverride, TaskExampleChange, TaskExampleOverride};
use crate::prompt::Visibility;
use crate::source::Place;

/// The parameters of one render.
pub(super) struct RenderParams<'s> {
    /// By the index of their type.
    bound: Vec<Option<&'s BoundParams>>,
    /// The values that the texts of the tree ask for, as far as they are bound: each is looked up once, however many sections
    /// show it.
    values: Vec<Option<&'s Json>>,
}

/// Who decided how much of a section is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecidedBy {
    /// The section itself, once and for all.
    Section,
    /// A condition of the section, which was asked.
    Condition,
    /// An override of the section.
    Override,
    /// The session.
    Session,
    /// The budget: the section had to make room.
    Budget,
}

impl DecidedBy {
    /// The decider in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            DecidedBy::Section => "default",
            DecidedBy::Condition => "condition",
            DecidedBy::Override => "override",
            DecidedBy::Session => "session",
            DecidedBy::Budget => "budget",
        }
    }
}

impl<'s> RenderParams<'s> {
    /// Checks what is bound: one value for a type, and none without a use.
    pub(super) fn new(tree: &Tree, bound: &'s [BoundParams]) -> Result<RenderParams<'s>> {
        let mut given: Vec<Option<&BoundParams>> = vec![None; tree.types.len()];
        for value in bound {
            let index = tree.types.get_index_of(value.type_name());
            match index.map(|index| &mut given[index]) {
                Some(free @ None) => *free = Some(value),
                Some(Some(_)) => {
                    return Err(unbindable(tree, value, "Duplicate params type supplied to prompt."));
                }
                None => return Err(unbindable(tree, value, "Unexpected params type supplied to prompt.")),
            }
        }
        let values = tree.asked.iter().map(|(index, name)| given[*index]?.held(name)).collect();
        Ok(RenderParams { bound: given, values })
    }

    /// A value that texts ask for, by the number of its name. `None` if it is not bound, or must be looked for.
    #[inline]
    pub(super) fn value(&self, asked: usize) -> Option<&'s Json> {
        self.values[asked]
    }

    /// What a section is filled with: what is bound, its own default, the first default of the type, or all defaults.
    pub(super) fn params<'p>(&self, tree: &'p Tree, node: &'p Node) -> Result<Option<&'p BoundParams>>
    where
        's: 'p,
    {
        let Some(index) = node.filled_with else { return Ok(None) };
        let own = node.section.default_params.as_ref();
        let found = self.bound[index].or(own).or(tree.types[index].default.as_ref());
        match found {
            Some(params) => Ok(Some(params)),
            None => Err(no_params(tree, node, index)),
        }
    }
}

#[cold]
fn unbindable(tree: &Tree, value: &BoundParams, message: &str) -> Error {
    let known: Vec<&str> = tree.types.keys().map(String::as_str).collect();
    let hint = match known.as_slice() {
        [] => "its sections take no parameters".to_owned(),
        known => format!("its sections take {}", known.join(", ")),
    };
    let diagnostic = Diagnostic::new(Code::InvalidVariables, message).hint(hint);
    Error::new(ErrorKind::PromptValidation, diagnostic).with("dataclass_type", value.type_name())
}

#[cold]
fn no_params(tree: &Tree, node: &Node, index: usize) -> Error {
    let fields = &tree.types[index].of.record.fields;
    let required = fields.iter().filter(|field| field.default.is_none());
    let required: Vec<String> = required.map(|field| format!("`{}`", field.name)).collect();
    let hint =
        format!("bind a `{}`; there is no default for {}", tree.types[index].of.name, required.join(", "));
    hinted(failed(node, Code::InvalidVariables, "Missing parameters for section."), Some(hint))
}

/// A condition that could not be asked: where it stands in a file, it is shown.
#[cold]
fn unanswered(node: &Node, message: &str, place: Option<&Place>, why: &str) -> Error {
    let error = caused(failed(node, Code::RenderFailed, message), why);
    let Some(place) = place else { return error };
    let mut diagnostic = error.diagnostic().clone().at(place.clone()).label(why);
    diagnostic.hint = Some("a condition can use the prompt's inputs, `session` and `system`".into());
    error.replaced(diagnostic)
}

impl Tree {
    /// The override of a section, if it accepts any.
    pub(super) fn override_of<'s>(&self, node: &Node, setting: &Setting<'s>) -> Option<&'s SectionOverride> {
        let sections = &setting.overrides?.sections;
        if sections.is_empty() || !node.section.accepts_overrides {
            return None;
        }
        sections.get(&node.path)
    }

    /// The override of an example of a task, if it accepts any.
    pub(super) fn example_override<'s>(
        &self,
        node: &Node,
        setting: &Setting<'s>,
    ) -> Option<&'s TaskExampleOverride> {
        let overrides = setting.overrides?;
        if overrides.task_examples.is_empty() || !node.section.accepts_overrides {
            return None;
        }
        overrides.task_example(&node.path)
    }

    /// Whether it is an example of a task that an override takes out.
    pub(super) fn is_removed(&self, node: &Node, setting: &Setting<'_>) -> bool {
        matches!(node.section.body, Body::TaskExample(_))
            && self
                .example_override(node, setting)
                .is_some_and(|by| matches!(by.change, TaskExampleChange::Remove { .. }))
    }

    pub(super) fn is_enabled(
        &self,
        node: &Node,
        params: Option<&BoundParams>,
        setting: &Setting<'_>,
    ) -> Result<bool> {
        let condition_context = ConditionContext { params, session: setting.session };
        node.section.enabled.ask(&condition_context).map_err(|why| {
            unanswered(node, "Section enabled predicate failed.", node.section.enabled_place.as_ref(), &why)
        })
    }

    /// How much of a section is shown: what the session says, then an override, then the section itself.
    pub(super) fn visibility(
        &self,
        node: &Node,
        params: Option<&BoundParams>,
        by: Option<&SectionOverride>,
        setting: &Setting<'_>,
    ) -> Result<Visibility> {
        if let Some(set) = setting.session.and_then(|session| session.visibility(&node.path)) {
            return Ok(set);
        }
        if let Some(set) = by.and_then(|by| by.visibility) {
            return Ok(set);
        }
        let condition_context = ConditionContext { params, session: setting.session };
        node.section.visibility.ask(&condition_context).map_err(|why| {
            unanswered(
                node,
                "Section visibility selector failed.",
                node.section.visibility_place.as_ref(),
                &why,
            )
        })
    }

    /// Who decides how much of a section is shown. Nothing is asked for it.
    #[doc(hidden)]
    pub fn decided_by(&self, index: usize, setting: &Setting<'_>) -> Option<DecidedBy> {
        let node = self.nodes.get(index)?;
        let by = self.override_of(node, setting).and_then(|by| by.visibility);
        Some(if setting.fold_of(index).is_some() {
            DecidedBy::Budget
        } else if setting.session.and_then(|session| session.visibility(&node.path)).is_some() {
            DecidedBy::Session
        } else if by.is_some() {
            DecidedBy::Override
        } else if matches!(node.section.visibility, Selector::Always(_)) {
            DecidedBy::Section
        } else {
            DecidedBy::Condition
        })
    }

    /// How a section stands at the moment, asked for it alone: `None` if it, or one above it, is not there.
    pub(in super::super) fn stands(&self, index: usize, setting: &Setting<'_>) -> Result<Option<Visibility>> {
        let given = RenderParams::new(self, setting.bound)?;
        let mut way = vec![index];
        while let Some(parent) = self.nodes[way[way.len() - 1]].parent {
            way.push(parent);
        }
        for above in way.into_iter().rev() {
            let node = &self.nodes[above];
            let is_gone = setting.fold_of(above) == Some(Fold::Gone);
            let is_gone = is_gone || self.is_removed(node, setting);
            if is_gone || matches!(node.section.enabled, Selector::Always(false)) {
                return Ok(None);
            }
            if !self.is_enabled(node, given.params(self, node)?, setting)? {
                return Ok(None);
            }
        }
        let node = &self.nodes[index];
        if setting.fold_of(index) == Some(Fold::Summary) {
            return Ok(Some(Visibility::Summary));
        }
        let params = given.params(self, node)?;
        self.visibility(node, params, self.override_of(node, setting), setting).map(Some)
    }
}
