//! The error of a thread that was stopped.

use cuebook_text::error::report;
use cuebook_text::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Value as Json, json};

use super::{Cost, ThreadId};

/// An error as events and results keep it.
pub fn error_json(error: &Error) -> Json {
    let reported = error.diagnostic();
    json!({
        "code": error.code().as_str(),
        "message": reported.message,
        "hint": reported.hint,
        "details": report(error.diagnostics(), false).to_string(),
    })
}

/// What is left of a thread that another process stopped: why it is not completed, instead of what kept it before.
pub(crate) fn stopped_json(id: &ThreadId, why: &str, cost: &Cost) -> Json {
    json!({"cost": cost.to_json(), "error": error_json(&stopped(id, why))})
}

/// The error of a thread that was stopped.
pub fn stopped(id: &ThreadId, why: &str) -> Error {
    let message = format!("the thread was {why}");
    let hint = format!("continue it: cuebook thread resume {id}");
    let diagnostic = Diagnostic::new(Code::ThreadCancelled, message).hint(hint);
    Error::new(ErrorKind::Execute, diagnostic)
}
