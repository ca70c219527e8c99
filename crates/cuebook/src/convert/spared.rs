//! What a comparison leaves out because it was told to be lost or different, so that all the rest can be compared.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::draft::Draft;
use crate::prompt::Type;

/// Something that can make two renders differ, and has been told.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Spared {
    /// Hooks and providers.
    Code,
    /// Conditions of sections.
    Conditions,
    /// Folds of sections.
    Folds,
    /// What the environment says.
    Environment,
    /// What an input shows, whatever its value is.
    Value(String),
    /// What an input shows if its value is neither text nor a whole number.
    Odd(String),
    /// What shows where an input has no value.
    Absence(String),
    /// White space at an edge of what an input shows.
    Edge(String),
    /// Signs that mean something in HTML.
    Markup,
    /// White space anywhere.
    Space,
}

/// What two renders are compared by.
#[derive(Debug, Clone, Default)]
pub(super) struct Terms {
    /// Inputs whose values are taken out of both texts, by their names in the result.
    pub(super) masked: BTreeSet<String>,
    /// Inputs of which it does not count how a value is written that is neither text nor a whole number.
    pub(super) odd: BTreeSet<String>,
    /// Inputs that always have a value.
    pub(super) given: BTreeSet<String>,
    /// Inputs whose value is never an empty text.
    pub(super) filled: BTreeSet<String>,
    /// Whether values are free of HTML.
    pub(super) no_markup: bool,
    /// Whether white space does not count.
    pub(super) no_space: bool,
    /// Whether sections of the source are shown in full.
    pub(super) unfolded: bool,
    /// Whether all sections of the source are there.
    pub(super) unconditional: bool,
    /// All of it in words.
    pub(super) told: Vec<String>,
}

impl Terms {
    pub(super) fn new(spared: BTreeSet<Spared>, draft: &Draft) -> Terms {
        let mut terms = Terms::default();
        // What was told of the source goes by the names that it has there.
        let named = |name: String| draft.renamed.get(&name).cloned().unwrap_or(name);
        for spared in spared {
            let told = match spared {
                Spared::Code => "hooks and providers did not run".to_owned(),
                Spared::Conditions => {
                    terms.unconditional = true;
                    "all sections were there".to_owned()
                }
                Spared::Folds => {
                    terms.unfolded = true;
                    "all sections were shown in full".to_owned()
                }
                Spared::Environment => "the environment said nothing".to_owned(),
                Spared::Value(name) => {
                    let name = named(name);
                    terms.masked.insert(name.clone());
                    format!("what `{name}` shows did not count")
                }
                Spared::Odd(name) => {
                    let name = named(name);
                    let input = draft.input(&name);
                    let is_text = |default: &Json| default.is_string();
                    match input.is_none_or(|input| {
                        input.kind == Type::Any && input.default.as_ref().is_none_or(is_text)
                    }) {
                        true => format!("`{name}` was a text"),
                        false => {
                            terms.odd.insert(name.clone());
                            format!("how a value of `{name}` is written did not count")
                        }
                    }
                }
                Spared::Absence(name) => {
                    let name = named(name);
                    terms.given.insert(name.clone());
                    format!("`{name}` had a value")
                }
                Spared::Edge(name) => {
                    let name = named(name);
                    terms.given.insert(name.clone());
                    terms.filled.insert(name.clone());
                    format!("`{name}` had no white space around it")
                }
                Spared::Markup => {
                    terms.no_markup = true;
                    "values held no HTML".to_owned()
                }
                Spared::Space => {
                    terms.no_space = true;
                    "white space did not count".to_owned()
                }
            };
            if !terms.told.contains(&told) {
                terms.told.push(told);
            }
        }
        terms
    }

    /// The same, where white space does not count.
    pub(super) fn spaceless(&self) -> Terms {
        Terms { no_space: true, ..self.clone() }
    }

    /// Whether every byte of both texts is compared.
    pub(super) fn is_exact(&self) -> bool {
        self.masked.is_empty() && self.odd.is_empty() && !self.no_space
    }
}
