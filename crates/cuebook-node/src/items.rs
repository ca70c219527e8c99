//! Items: execute, search, load, sign, verify.

use cuebook::Result;
use cuebook::items::{ItemType, SpaceKind};
use cuebook::trust::{SigningKey, Trust};
use cuebook_run::provider::Stop;
use cuebook_run::{Action, Fence, Settings, Watch};
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::calls::Arguments;
use crate::context::unknown;
use crate::project::Project;

/// Stops a call whose flag is set.
struct Flag(Arc<AtomicBool>);

impl Watch for Flag {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn stop(&self) -> Option<Stop> {
        Some(Stop::flag(self.0.clone()))
    }
}

impl Project {
    /// Executes, searches, loads or signs items: the answer is an object in any case.
    pub fn act(&self, given: &Arguments, cancelled: Arc<AtomicBool>) -> Result<Json> {
        let known = Action::ALL.map(Action::word);
        let action = given.text("action");
        let action = Action::named(action).ok_or_else(|| unknown("the list of actions", action, &known))?;
        let engine = self.engine(Settings { fence: Fence::Threads, ..Settings::default() });
        Ok(action.run(&engine, &given.object("arguments"), &Flag(cancelled)))
    }

    /// Makes the user's key, with which items are signed, and trusts it.
    pub fn generate_key(&self, given: &Arguments) -> Result<Json> {
        let (spaces, key) = (self.spaces(), SigningKey::generate()?);
        key.save(&spaces, given.is_set("replace"))?;
        let (owner, now) = (given.text("owner"), jiff::Timestamp::now());
        Trust::new(&spaces).add(SpaceKind::User, key.public(), owner, Some(&key), now)?;
        Ok(json!(key.fingerprint()))
    }

    /// Verifies the signature of an item.
    pub fn verify(&self, given: &Arguments) -> Result<Json> {
        let known = ItemType::ALL.map(ItemType::as_str);
        let kind = given.text("itemType");
        let kind = ItemType::named(kind).ok_or_else(|| unknown("the list of item types", kind, &known))?;
        Ok(self.engine(Settings::default()).verify(kind, given.text("itemId"))?.to_json())
    }
}
