//! What is remembered between renders: which sections were opened.

use std::any::Any;

use crate::prompt::Visibility;
use crate::variables::VisibilityOverrides;

/// What a render may ask of a session. A host implements it for its own; [`VisibilityOverrides`] is one by itself.
pub trait Session: Send + Sync {
    /// How much of the section at this path is to be shown, whatever the tree says.
    fn visibility(&self, path: &[String]) -> Option<Visibility>;

    /// The session itself, for conditions that know it.
    fn as_any(&self) -> &dyn Any;
}

impl Session for VisibilityOverrides {
    fn visibility(&self, path: &[String]) -> Option<Visibility> {
        self.get(path)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
