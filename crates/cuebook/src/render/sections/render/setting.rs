//! What a tree is rendered with.

use std::time::Instant;

use super::super::params::BoundParams;
use super::super::session::Session;
use crate::overrides::Resolved;
use crate::template::dollar::Missing;

/// How many characters a text may have without a setting.
const LIMIT: usize = 1_000_000;

/// What a tree is rendered with.
#[derive(Clone, Copy)]
pub struct Setting<'s> {
    /// The parameters, at most one of each type.
    pub bound: &'s [BoundParams],
    /// What is remembered between renders.
    pub session: Option<&'s dyn Session>,
    /// Other words for parts of the prompt.
    pub overrides: Option<&'s Resolved>,
    /// What happens to a name that nothing fills.
    pub missing: Missing,
    /// Characters that the text may have.
    pub limit: usize,
    /// When the caller wants the answer.
    pub deadline: Option<Instant>,
    /// Sections that must make room, by index and in ascending order: shown as their summary, or not at all.
    pub(crate) folded: &'s [(usize, Fold)],
    /// Whether what is shown is shown in full, whatever folds, session and overrides say of it.
    pub(crate) unfolded: bool,
    /// Whether everything that is not turned off is there, whatever conditions say of it.
    pub(crate) unconditional: bool,
}

/// How a section makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fold {
    /// It shows its summary.
    Summary,
    /// It is not there.
    Gone,
}

impl Fold {
    /// What becomes of the section: `summary` or `gone`.
    pub fn as_str(self) -> &'static str {
        match self {
            Fold::Summary => "summary",
            Fold::Gone => "gone",
        }
    }
}

impl<'s> Setting<'s> {
    /// A render with these parameters and nothing else.
    pub fn new(bound: &'s [BoundParams]) -> Setting<'s> {
        Setting {
            bound,
            session: None,
            overrides: None,
            missing: Missing::Error,
            limit: LIMIT,
            deadline: None,
            folded: &[],
            unfolded: false,
            unconditional: false,
        }
    }

    /// The same with a session.
    #[must_use]
    pub fn session(mut self, session: &'s dyn Session) -> Setting<'s> {
        self.session = Some(session);
        self
    }

    /// The same with overrides.
    #[must_use]
    pub fn overrides(mut self, overrides: &'s Resolved) -> Setting<'s> {
        self.overrides = Some(overrides);
        self
    }

    /// The same with another word about names that nothing fills.
    #[must_use]
    pub fn missing(mut self, missing: Missing) -> Setting<'s> {
        self.missing = missing;
        self
    }

    /// The same with another limit for the text, in characters.
    #[must_use]
    pub fn limit(mut self, characters: usize) -> Setting<'s> {
        self.limit = characters;
        self
    }

    /// The same with a deadline, which travels along with the prompt.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant) -> Setting<'s> {
        self.deadline = Some(deadline);
        self
    }

    /// The same with sections that must make room, by their index in [`super::super::Tree::sections`] and in ascending order.
    #[must_use]
    pub fn fold(mut self, folded: &'s [(usize, Fold)]) -> Setting<'s> {
        self.folded = folded;
        self
    }

    /// Whether a section must make room.
    pub(in super::super) fn fold_of(&self, index: usize) -> Option<Fold> {
        let at = self.folded.binary_search_by_key(&index, |(folded, _)| *folded).ok()?;
        Some(self.folded[at].1)
    }
}

/// Parameters that are bound to a tree, one by one.
#[derive(Debug, Clone, Default)]
pub struct Binding(Vec<BoundParams>);

impl Binding {
    /// Nothing is bound.
    pub fn new() -> Binding {
        Binding::default()
    }

    /// Binds values. One of a type that was bound before takes its place; two of one type at once are an error at render.
    pub fn bind(&mut self, values: impl IntoIterator<Item = BoundParams>) -> &mut Binding {
        let before = self.0.len();
        for value in values {
            match self.0[..before].iter().position(|known| known.type_name() == value.type_name()) {
                Some(known) => self.0[known] = value,
                None => self.0.push(value),
            }
        }
        self
    }

    /// What is bound.
    pub fn values(&self) -> &[BoundParams] {
        &self.0
    }
}
