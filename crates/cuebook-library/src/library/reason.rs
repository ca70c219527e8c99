//! Why a candidate was taken.

use super::{Resolution, SHARED};

/// Why a candidate was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No other place offers the id.
    Only,
    /// It is the directive of the nearest space, and stands before those of others.
    Nearest(Vec<String>),
    /// It was chosen, and the choice was recorded.
    Recorded(Resolution),
    /// The path was given.
    Given,
    /// It lies in the same pack as the prompt that extends it.
    Beside,
}

impl Reason {
    /// The reason in words.
    pub fn describe(&self) -> String {
        match self {
            Reason::Only => "no other prompt has this id".into(),
            Reason::Nearest(shadowed) => {
                format!("the nearest space with this directive; it shadows {}", shadowed.join(", "))
            }
            Reason::Recorded(resolution) => {
                let when = resolution.resolved_at.as_deref().unwrap_or("an unknown time");
                match &resolution.replaced_by {
                    Some(pack) => format!("the pack `{pack}` replaces this prompt, accepted at {when}"),
                    None => format!("chosen at {when}, recorded in {SHARED}/resolution.json"),
                }
            }
            Reason::Given => "named by its path".into(),
            Reason::Beside => "in the same pack as the prompt that extends it".into(),
        }
    }
}
