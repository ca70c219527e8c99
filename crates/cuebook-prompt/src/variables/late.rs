//! A scope that is made on first use.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::{Scope, Variables};

/// The values of a render, or what they are to be made of. Most renders of sections are never asked about their values, and
/// putting several records together costs as much as a render of a few sections.
#[derive(Debug)]
#[doc(hidden)]
pub enum LateScope {
    /// There it is.
    Made(Arc<Scope>),
    /// Boxed: everything but sections has its scope before.
    Late(Box<Parts>),
}

#[derive(Debug)]
#[doc(hidden)]
pub struct Parts {
    values: Vec<Variables>,
    made: OnceLock<Arc<Scope>>,
}

impl LateScope {
    /// A scope of these values and nothing else; of two with one name, the first is kept.
    #[doc(hidden)]
    pub fn of_values(values: Vec<Variables>) -> LateScope {
        LateScope::Late(Box::new(Parts { values, made: OnceLock::new() }))
    }

    /// The scope itself, for code that keeps it.
    #[doc(hidden)]
    pub fn shared(&self) -> &Arc<Scope> {
        match self {
            LateScope::Made(scope) => scope,
            LateScope::Late(parts) => parts.made.get_or_init(|| {
                Scope::of_values(parts.values.iter().cloned().fold(Variables::new(), Variables::and))
            }),
        }
    }
}

impl From<Arc<Scope>> for LateScope {
    fn from(scope: Arc<Scope>) -> LateScope {
        LateScope::Made(scope)
    }
}

impl Deref for LateScope {
    type Target = Scope;

    fn deref(&self) -> &Scope {
        self.shared()
    }
}
