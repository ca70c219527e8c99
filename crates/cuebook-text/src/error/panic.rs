//! Panics of code that a host program brings.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs code of a host program, such as a hook, a filter or a template engine. If it panics, the message of the panic is returned.
///
/// What the code leaves half-done when it panics is the host's; nothing of ours is shared with it.
pub fn catch_panic<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| message(&*payload))
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("no message").to_owned()
}
