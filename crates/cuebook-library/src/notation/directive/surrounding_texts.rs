//! The texts around the prompt of a directive: knowledge of its `<context>`, and what the hooks of a thread add.

use std::cell::RefCell;
use std::sync::Arc;

use super::include::whole;
use super::{Composed, Directive};
use crate::notation::knowledge::Knowledge;
use crate::source::OffsetMap;
use crate::template::merged_units::MergedUnits;
use crate::template::python::is_space;
use crate::template::sink::{Full, Sink};
use crate::template::unit::Unit;
use crate::variables::HookTexts;

/// The texts around a prompt, in their order.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct SurroundingTexts<'s> {
    pub(crate) system: Vec<Text<'s>>,
    pub(crate) before: Vec<Text<'s>>,
    pub(crate) after: Vec<Text<'s>>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Text<'s> {
    Knowledge(&'s Knowledge),
    Hook(&'s str),
}

impl<'s> SurroundingTexts<'s> {
    /// Hooks speak first in the system message and before the prompt, and last after it.
    #[doc(hidden)]
    pub fn new(composed: &'s Composed, hooks: &'s HookTexts) -> SurroundingTexts<'s> {
        let said = |texts: &'s [String]| texts.iter().map(|text| Text::Hook(text));
        let known = |position: &str| {
            let ids = composed.context.at(position).iter();
            ids.filter_map(|id| composed.knowledge.get(id.as_str())).map(Text::Knowledge).collect::<Vec<_>>()
        };
        SurroundingTexts {
            system: said(&hooks.system).chain(known("system")).collect(),
            before: said(&hooks.before).chain(known("before")).collect(),
            after: known("after").into_iter().chain(said(&hooks.after)).collect(),
        }
    }
}

impl Text<'_> {
    /// Writes it without the white space around knowledge.
    pub(super) fn write(
        &self,
        sink: &mut Sink,
        merged_units: &RefCell<MergedUnits>,
        limit: usize,
    ) -> Result<(), Full> {
        match self {
            // The one editor of a rendered directive is the hooks of its thread.
            Text::Hook(text) => sink.hook(0, text.as_bytes()),
            Text::Knowledge(knowledge) => {
                let unit = Unit::new(knowledge.source.clone(), OffsetMap::default(), Vec::new(), Vec::new());
                let output = whole(knowledge, &Arc::new(vec![unit]), limit)?;
                let start = output.text.len() - output.text.trim_start_matches(is_space).len();
                let end = output.text.trim_end_matches(is_space).len().max(start);
                merged_units.borrow_mut().write(sink, &output, start..end, None)
            }
        }
    }
}

impl Directive {
    /// Whether its prompt depends on other files than those that it includes.
    #[doc(hidden)]
    pub fn is_composed(&self) -> bool {
        self.extends.is_some() || self.context.is_some()
    }
}
