//! A scope that is made when somebody asks for it.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::{Scope, Variables};

/// The values of a render, or what they are to be made of. Most renders of sections are never asked about their values, and
/// putting several records together costs as much as a render of a few sections.
#[derive(Debug)]
pub(crate) struct LateScope {
    made: OnceLock<Arc<Scope>>,
    parts: Vec<Variables>,
}

impl LateScope {
    /// A scope of these values and nothing else; of two with one name, the first is kept.
    pub(crate) fn of_values(parts: Vec<Variables>) -> LateScope {
        LateScope { made: OnceLock::new(), parts }
    }

    /// The scope itself, for whoever keeps it.
    pub(crate) fn shared(&self) -> &Arc<Scope> {
        self.made.get_or_init(|| {
            Scope::of_values(self.parts.iter().cloned().fold(Variables::new(), Variables::and))
        })
    }
}

impl From<Arc<Scope>> for LateScope {
    fn from(scope: Arc<Scope>) -> LateScope {
        LateScope { made: scope.into(), parts: Vec::new() }
    }
}

impl Deref for LateScope {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        self.shared()
    }
}
