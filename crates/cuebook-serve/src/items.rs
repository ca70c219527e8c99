//! What the four tools do, as far as a server has to know: a host brings it.
//!
//! A server speaks the protocol and knows nothing of chains, signatures or searches. Whoever builds one gives it an
//! [`Items`]; without it, the server offers prompts and knowledge and no tools.

use cuebook_run::policy::allowance::Allowance;
use serde_json::{Map, Value as Json};

/// The arguments of a call.
pub type Arguments = Map<String, Json>;

/// Executes, searches, loads and signs items.
///
/// The [`allowance`](Items::allowance) is for lists and early refusals only: the items themselves must keep to it.
///
/// Every function may take its time: it is called on a thread of its own, never on the one that speaks with clients. It
/// answers with an object, also when something went wrong: `{"status": "error", "error": …}`. A panic is told to the client as
/// an internal error and harms no other call.
pub trait Items: Send + Sync + 'static {
    /// `rye_execute`
    fn execute(&self, arguments: &Arguments, watch: &dyn Watch) -> Json;

    /// `rye_search`
    fn search(&self, arguments: &Arguments, watch: &dyn Watch) -> Json;

    /// `rye_load`
    fn load(&self, arguments: &Arguments, watch: &dyn Watch) -> Json;

    /// `rye_sign`
    fn sign(&self, arguments: &Arguments, watch: &dyn Watch) -> Json;

    /// What clients may do; everything, if it is `None`. Tools that they may not use are not listed.
    fn allowance(&self) -> Option<&Allowance> {
        None
    }

    /// Whether an item may be shown to clients as a resource; an error says why not. Everything may, unless this says otherwise.
    fn verify(&self, item: &cuebook::items::Item) -> cuebook::Result<()> {
        let _ = item;
        Ok(())
    }
}

/// The caller's side of a call that takes long.
pub trait Watch: Send + Sync {
    /// Tells the caller how far the work has come, of how much if that is known. Cheap: what comes too fast for the client is left
    /// out, and so is what does not go forward.
    fn progress(&self, done: f64, total: Option<f64>, message: &str);

    /// Whether nobody waits for the answer any more. Work that takes long asks now and then, and ends early.
    fn is_cancelled(&self) -> bool;
}
