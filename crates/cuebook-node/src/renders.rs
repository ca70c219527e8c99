//! The renders whose objects JavaScript may still use.

use std::collections::HashMap;
use std::sync::Arc;

use cuebook_lab::explain::Explanation;
use napi::Env;

use crate::weak::Weak;

/// How many renders are made before the table is searched for those that are gone.
const FEW: usize = 1024;
/// The bytes of texts after which it is searched, too.
const MUCH: usize = 8 << 20;

/// One render.
struct Entry {
    explanation: Arc<Explanation>,
    /// The object of JavaScript. `None` is one that is gone.
    object: Option<Weak>,
}

/// The renders, by the number that JavaScript gave each.
#[derive(Default)]
pub struct Renders {
    entries: HashMap<u64, Entry>,
    /// Renders and bytes that were added since the last search.
    added: usize,
    bytes: usize,
    /// Renders that the last search kept.
    kept: usize,
}

impl Renders {
    /// Adds a render. Those whose objects are gone make place now and then: the work is a constant for each render.
    pub fn add(&mut self, env: &Env, number: u64, explanation: Arc<Explanation>, object: Weak) {
        self.added += 1;
        self.bytes += explanation.rendered().text().len();
        if self.added >= FEW.max(self.kept) || self.bytes >= MUCH && self.added >= self.kept / 8 {
            self.sweep(env);
        }
        self.entries.insert(number, Entry { explanation, object: Some(object) });
    }

    /// A render whose object exists.
    pub fn get(&self, number: u64) -> Option<&Arc<Explanation>> {
        self.entries.get(&number).map(|entry| &entry.explanation)
    }

    /// How many renders there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Drops the renders whose objects are gone.
    pub fn sweep(&mut self, env: &Env) {
        self.entries.retain(|_, entry| match entry.object.take_if(|object| object.is_gone(env)) {
            Some(object) => {
                object.delete(env);
                false
            }
            None => true,
        });
        (self.added, self.bytes, self.kept) = (0, 0, self.entries.len());
    }
}
