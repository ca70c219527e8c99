//! What a comparison leaves out because it was reported as lost or different, so that all the rest can be compared.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use super::draft::Draft;
use crate::prompt::Type;

/// Something that can make two renders differ, and has been reported.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReportedDifference {
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
pub(super) struct ComparisonRules {
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
    pub(super) reported: Vec<String>,
}

impl ComparisonRules {
    pub(super) fn new(reported_differences: BTreeSet<ReportedDifference>, draft: &Draft) -> ComparisonRules {
        let mut terms = ComparisonRules::default();
        // Reports about the source use the names that it has there.
        let named = |name: String| draft.renamed.get(&name).cloned().unwrap_or(name);
        let (mut hidden, mut texts) = (Vec::new(), Vec::new());
        for reported_differences in reported_differences {
            match reported_differences {
                ReportedDifference::Code => terms.note("hooks and providers did not run"),
                ReportedDifference::Conditions => {
                    terms.unconditional = true;
                    terms.note("every section was enabled");
                }
                ReportedDifference::Folds => {
                    terms.unfolded = true;
                    terms.note("every section was shown in full");
                }
                ReportedDifference::Environment => terms.note("the environment was empty"),
                ReportedDifference::Value(name) => {
                    hidden.push(named(name.clone()));
                    terms.masked.insert(named(name));
                }
                ReportedDifference::Odd(name) => {
                    let name = named(name);
                    let is_text = |default: &Json| default.is_string();
                    match draft.input(&name).is_none_or(|input| {
                        input.kind == Type::Any && input.default.as_ref().is_none_or(is_text)
                    }) {
                        true => texts.push(name),
                        false => drop(terms.odd.insert(name)),
                    }
                }
                ReportedDifference::Absence(name) => drop(terms.given.insert(named(name))),
                ReportedDifference::Edge(name) => drop(terms.filled.insert(named(name))),
                ReportedDifference::Markup => {
                    terms.no_markup = true;
                    terms.note("values without HTML");
                }
                ReportedDifference::Space => {
                    terms.no_space = true;
                    terms.note("whitespace was ignored");
                }
            }
        }
        terms.note_names(&hidden, "was ignored", "were ignored");
        let odd: Vec<String> = terms.odd.iter().cloned().collect();
        terms.note_names(
            &odd,
            "was compared, but not how its value prints",
            "were compared, but not how their values print",
        );
        terms.note_names(&texts, "was a string", "were strings");
        let given: Vec<String> = terms.given.iter().cloned().collect();
        terms.note_names(&given, "had a value", "had values");
        let filled: Vec<String> = terms.filled.iter().cloned().collect();
        terms.note_names(&filled, "had no surrounding whitespace", "had no surrounding whitespace");
        terms.given.extend(filled);
        terms
    }

    fn note(&mut self, what: &str) {
        self.reported.push(what.to_owned());
    }

    /// Says something of names, together.
    fn note_names(&mut self, names: &[String], one: &str, several: &str) {
        let mut quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        quoted.dedup();
        match quoted.as_slice() {
            [] => {}
            [name] => self.reported.push(format!("{name} {one}")),
            [before @ .., last] => self.reported.push(format!("{} and {last} {several}", before.join(", "))),
        }
    }

    /// The same, where white space does not count.
    pub(super) fn spaceless(&self) -> ComparisonRules {
        ComparisonRules { no_space: true, ..self.clone() }
    }

    /// Whether every byte of both texts is compared.
    pub(super) fn is_exact(&self) -> bool {
        self.masked.is_empty() && self.odd.is_empty() && !self.no_space
    }
}
