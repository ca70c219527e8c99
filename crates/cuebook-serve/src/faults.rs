//! Errors of the engine as the protocol tells them.

use cuebook::error::ErrorKind;
use cuebook::{Code, Error};
use rmcp::model::{ErrorCode, ErrorData};
use serde_json::{Value as Json, json};

use crate::hints;

/// An error as a client gets it: the message in short, and everything that is known about it (code, place, hint) as data.
/// What the client can mend by asking for something else is `-32602`; what it cannot is `-32603`.
pub(crate) fn fault(error: &Error) -> ErrorData {
    let code = match error.kind() {
        ErrorKind::PromptNotFound
        | ErrorKind::PromptValidation
        | ErrorKind::StrictViolation
        | ErrorKind::ItemNotFound
        | ErrorKind::Usage => ErrorCode::INVALID_PARAMS,
        _ => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, error.diagnostic().message.clone(), Some(data(error)))
}

/// The error of a resource that is not there.
pub(crate) fn no_resource(error: &Error, uri: &str) -> ErrorData {
    let mut data = data(error);
    data["uri"] = json!(uri);
    ErrorData::resource_not_found(error.diagnostic().message.clone(), Some(data))
}

/// What is wrong with a request, without an error of the engine.
pub(crate) fn invalid(message: impl Into<String>, hint: &str) -> ErrorData {
    ErrorData::invalid_params(message.into(), Some(json!({"hint": hint})))
}

fn data(error: &Error) -> Json {
    let mut data = error.to_json()["error"].take();
    hints::of_error(&mut data);
    if error.code() == Code::InvalidVariables
        && let Some(missing) =
            error.field("missing").and_then(Json::as_array).filter(|names| !names.is_empty())
    {
        let names: Vec<&str> = missing.iter().filter_map(Json::as_str).collect();
        data["hint"] = json!(format!("give the prompt its arguments: {}", names.join(", ")));
    }
    if error.code() == Code::InvalidId {
        data["hint"] = json!("name a prompt by its id, not by a path; prompts/list lists all of them");
    }
    data
}
