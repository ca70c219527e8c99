//! The error of a thread that was stopped.

use cuebook_text::error::report;
use cuebook_text::{Code, Diagnostic, Error, ErrorKind, Hint};
use serde_json::{Map, Value as Json, json};

use super::{Cost, ThreadId};

/// An error as events and results keep it.
pub fn error_json(error: &Error) -> Json {
    let mut object = short_error_json(error);
    object["details"] = json!(report(error.diagnostics(), false));
    object
}

/// The same without the report.
pub fn short_error_json(error: &Error) -> Json {
    let reported = error.diagnostic();
    let mut object = Map::new();
    object.insert("code".to_owned(), json!(error.code().as_str()));
    object.insert("message".to_owned(), json!(reported.message));
    match &reported.hint {
        Some(hint) => hint.add_to(&mut object),
        None => drop(object.insert("hint".to_owned(), Json::Null)),
    }
    Json::Object(object)
}

/// What is left of a thread that another process stopped: why it is not completed, instead of what kept it before.
pub(crate) fn stopped_json(id: &ThreadId, why: &str, cost: &Cost) -> Json {
    json!({"cost": cost.to_json(), "error": error_json(&stopped(id, why))})
}

/// The error of a thread that was stopped.
pub fn stopped(id: &ThreadId, why: &str) -> Error {
    let message = format!("the thread was {why}");
    let hint = Hint::run("continue it", format!("cuebook thread resume {id}"));
    let diagnostic = Diagnostic::new(Code::ThreadCancelled, message).hint(hint);
    Error::new(ErrorKind::Execute, diagnostic)
}
