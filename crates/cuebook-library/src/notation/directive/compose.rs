//! What a directive gets from those that it extends, and the knowledge that it is given.
//!
//! `extends` leads from the leaf to the root. Context comes from all of them, the root's first, each id once. Permissions come from
//! the nearest one that has any. Nothing else is inherited: a directive's limits, model, hooks, inputs, outputs and body are its own.

use indexmap::IndexMap;

use super::{ContextIds, Directive, Permissions, Written, read};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::items::{ItemId, ItemType, Spaces, Verifier};
use crate::limits::FILE_BYTES;
use crate::notation::knowledge::{self, Knowledge};

/// How many directives may extend each other in a row.
const MAX_PARENTS: usize = 32;

/// What a directive is together with those that it extends.
#[derive(Debug)]
#[non_exhaustive]
pub struct Composed {
    /// The ids, its own first, the root's last.
    pub chain: Vec<String>,
    /// The permissions, and the id of the directive that they are from; `None` without any.
    pub permissions: Option<(Permissions, String)>,
    /// The ids of context.
    pub context: ContextIds,
    /// The knowledge of `system`, `before` and `after`, by id.
    pub knowledge: IndexMap<String, Knowledge>,
    /// What the context names and is missing, or what cannot be used, with where it is named.
    pub missing: Vec<Diagnostic>,
}

impl Directive {
    /// Follows `extends` and loads the context. Everything that is loaded is verified.
    ///
    /// # Errors
    ///
    /// `CB309` if directives extend each other in a circle, `CB308` if one cannot be loaded. Missing knowledge is reported in
    /// [`Composed::missing`].
    pub fn compose(&self, id: &ItemId, spaces: &Spaces, trust: &dyn Verifier) -> Result<Composed> {
        let load = |id: &ItemId| {
            let located = spaces.find(ItemType::Directive, id)?;
            let item = located.ok_or_else(|| spaces.not_found(ItemType::Directive, id))?.read(FILE_BYTES)?;
            trust.verify_item(&item)?;
            read(&item.source()?)
        };
        let mut composed = self.compose_with(id, load)?;
        let ids: Vec<Written> = composed.context.knowledge().cloned().collect();
        for written in ids {
            let found = ItemId::new(&written).and_then(|id| {
                let located = spaces.find(ItemType::Knowledge, &id)?;
                let located = located.ok_or_else(|| spaces.not_found(ItemType::Knowledge, &id))?;
                let item = located.read(FILE_BYTES)?;
                // A file that cannot be read is reported before one without a signature: it must be fixed first.
                let read = knowledge::read(&item.source()?)?;
                trust.verify_item(&item)?;
                Ok(read)
            });
            match found {
                Ok(found) => {
                    composed.knowledge.insert(written.to_string(), found);
                }
                Err(error) => {
                    let reported = error.diagnostic().clone();
                    composed.missing.push(match reported.place.is_some() {
                        true => reported.related(written.place(), "named here"),
                        false => reported.at(written.place()),
                    });
                }
            }
        }
        Ok(composed)
    }

    /// The same with directives from anywhere, and without loading knowledge.
    pub fn compose_with(&self, id: &ItemId, load: impl Fn(&ItemId) -> Result<Directive>) -> Result<Composed> {
        let mut chain = vec![id.to_string()];
        let mut parents: Vec<Directive> = Vec::new();
        while let Some(extends) = parents.last().unwrap_or(self).extends.clone() {
            let shown = || chain.join(" → ");
            if chain.iter().any(|known| *known == *extends) {
                let message = format!("Circular extends chain: {extends} (chain: {})", shown());
                let diagnostic = Diagnostic::new(Code::ParentCycle, message).at(extends.place());
                return Err(Error::new(
                    ErrorKind::PromptRead,
                    diagnostic.hint("remove one of the `extends`"),
                ));
            }
            if chain.len() > MAX_PARENTS {
                let message = format!("the chain of `extends` has more than {MAX_PARENTS} directives");
                let diagnostic = Diagnostic::new(Code::ParentCycle, message).at(extends.place());
                return Err(Error::new(
                    ErrorKind::PromptRead,
                    diagnostic.hint("extend a directive that is closer to the root"),
                ));
            }
            let parent = ItemId::new(&extends).and_then(|id| load(&id)).map_err(|error| {
                let reported = error.diagnostic();
                let message = format!("Failed to load parent directive '{extends}': {}", reported.message);
                let diagnostic = Diagnostic::new(Code::MissingParent, message).at(extends.place());
                Error::new(ErrorKind::PromptRead, diagnostic.hint_opt(reported.hint.clone()))
                    .with("chain", &chain)
            })?;
            chain.push(extends.to_string());
            parents.push(parent);
        }
        let owners = || std::iter::once(self).chain(&parents);
        let permissions = owners()
            .zip(&chain)
            .find_map(|(directive, id)| Some((directive.permissions.clone()?, id.clone())));
        let mut context = ContextIds::default();
        for directive in parents.iter().rev().chain([self]) {
            let Some(own) = &directive.context else { continue };
            for position in ContextIds::POSITIONS {
                for id in own.at(position) {
                    if context.at(position).iter().all(|known| **known != **id) {
                        context.at_mut(position).push(id.clone());
                    }
                }
            }
        }
        Ok(Composed { chain, permissions, context, knowledge: IndexMap::new(), missing: Vec::new() })
    }
}
