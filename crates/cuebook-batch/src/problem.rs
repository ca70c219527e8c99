//! Why a row has no result, as a row of the output says it.

use cuebook::Error;
use serde_json::{Value as Json, json};

/// Why a row has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The error code, as in `CB722`.
    pub code: String,
    /// The message.
    pub message: String,
    /// What helps.
    pub hint: Option<String>,
}

impl Problem {
    /// The problem that an error reports first.
    pub fn of(error: &Error) -> Problem {
        let first = error.diagnostic();
        Problem {
            code: error.code().as_str().to_owned(),
            message: first.message.clone(),
            hint: first.hint.as_ref().map(|hint| hint.text.clone()),
        }
    }

    /// As the journal has it.
    pub(crate) fn to_json(&self) -> Json {
        json!({"code": self.code, "message": self.message, "hint": self.hint})
    }

    pub(crate) fn from_json(json: &Json) -> Option<Problem> {
        let text = |name: &str| json[name].as_str().map(str::to_owned);
        Some(Problem { code: text("code")?, message: text("message")?, hint: text("hint") })
    }
}
