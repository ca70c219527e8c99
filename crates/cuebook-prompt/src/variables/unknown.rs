//! What a render does with variables that its prompt does not have.

/// What a render does with a variable of the caller that its prompt does not have.
///
/// The variables of an [`Agent`](super::Agent) are shared by many prompts, and are never refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum UnknownVariables {
    /// The render fails, and the error has the nearest name: it is probably a typo.
    #[default]
    Refuse,
    /// The render works and has a note.
    Note,
    /// The render works.
    Ignore,
}
