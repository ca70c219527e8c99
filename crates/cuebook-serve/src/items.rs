//! What the four tools do, as far as a server has to know: a host brings it.
//!
//! A server speaks the protocol and knows nothing of chains, signatures or searches. The code that builds one gives it an
//! [`Items`]; without it, the server offers prompts and knowledge and no tools.

use cuebook_run::policy::allowance::Allowance;
use serde_json::{Map, Value as Json};

/// The arguments of a call.
pub type Arguments = Map<String, Json>;

/// A question for the user of a client, who fills in a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What happened, and what is asked.
    pub message: String,
    /// The JSON Schema of the form: an object whose properties are numbers, texts or yes and no.
    pub form: Json,
}

/// A call that failed, and could go on.
#[derive(Debug, Clone, Copy)]
pub struct Failed<'c> {
    /// The arguments of the call.
    pub arguments: &'c Arguments,
    /// What it was answered.
    pub answer: &'c Json,
}

/// Executes, searches, loads and signs items.
///
/// The [`allowance`](Items::allowance) is for lists and early refusals only: the items themselves must keep to it.
///
/// Every function may take its time: it is called on a thread of its own, never on the one that speaks with clients. It
/// answers with an object, also when something went wrong: `{"status": "error", "error": …}`. A panic is reported to the client as
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

    /// The question whose answer lets a failed call go on, if its user can say so.
    fn question(&self, answer: &Json) -> Option<Question> {
        let _ = answer;
        None
    }

    /// Goes on with a call that failed with this answer, after the user filled in the form of its
    /// [`question`](Items::question). Only called with answers that have one.
    fn go_on(&self, call: Failed<'_>, form: &Arguments, watch: &dyn Watch) -> Json {
        let _ = (form, watch);
        call.answer.clone()
    }

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

    /// Whether there is no waiter for the answer any more. Work that takes long asks now and then, and ends early.
    fn is_cancelled(&self) -> bool;
}
