//! What a provider's reply and an agent's end say, as the packages return it.

use cuebook::Result;
use cuebook::chat::reply::{self, Reply};
use cuebook::chat::wire::Api;
#[cfg(feature = "full")]
use cuebook::{Code, Diagnostic, Error, ErrorKind};
#[cfg(feature = "full")]
use cuebook_agent::{Halt, ModelFailure};
use serde_json::{Value as Json, json};

/// What a provider's reply says, without a render.
///
/// # Errors
///
/// Those of [`reply::read`].
pub fn reply_json(api: Api, response: &Json, has_outputs: bool) -> Result<Json> {
    let answer = reply::read(api, response, has_outputs)?;
    let kind = match &answer.reply {
        Reply::ToolCalls { .. } => "tool_calls",
        Reply::Structured { .. } => "structured",
        Reply::Refusal(_) => "refusal",
        Reply::Text(_) => "text",
        _ => "media",
    };
    Ok(json!({
        "kind": kind, "value": answer.reply.to_json(), "thinking": answer.thinking, "finish": answer.finish, "model": answer.model,
    }))
}

/// The failure of a model that a function of the caller asks: such a function retries in its own way.
#[cfg(feature = "full")]
pub fn permanent(error: Error) -> ModelFailure {
    ModelFailure { error, again: false, indeterminate: false }
}

/// Why an agent stopped, as an error.
#[cfg(feature = "full")]
pub fn halted(halt: Halt) -> Error {
    match halt {
        Halt::Failed(error) | Halt::Suspended(error) | Halt::Indeterminate(error) => error,
        Halt::Cancelled(why) => Error::new(ErrorKind::Execute, Diagnostic::new(Code::ThreadCancelled, why)),
    }
}
