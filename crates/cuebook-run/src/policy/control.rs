//! What a hook decides about the flow of a thread.

use cuebook::dialect::directive;
use serde_json::{Map, Value as Json, json};

use super::tool_result::text_of;

/// The tool by which hooks decide. Code that runs hooks can take [`Control::from_params`] instead of running it.
pub const ITEM: &str = directive::HOOK_CONTROL;

/// What a hook decides.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Control {
    /// Nothing: the thread goes on, and other hooks may decide.
    Continue,
    /// What failed is to be done again.
    Retry,
    /// The thread fails with this error.
    Fail(String),
    /// The thread is stopped.
    Abort,
    /// The thread stops here and can be resumed; why.
    Suspend(String),
    /// The same, because a person has to decide about a limit.
    Escalate {
        /// Which limit.
        limit: Json,
        /// How much was used.
        current: Json,
    },
}

impl Control {
    /// Decisions by name.
    pub const NAMES: [&str; 7] = directive::HOOK_DECISIONS;

    /// What the control tool takes.
    pub const PARAMS: [&str; 5] = directive::HOOK_CONTROL_PARAMS;

    /// The decision that the parameters of the control tool name; an unknown name decides nothing.
    pub fn from_params(params: &Map<String, Json>) -> Control {
        let text = |name: &str, default: &str| {
            let given = params.get(name).filter(|value| !value.is_null()).map(text_of);
            given.filter(|text| !text.is_empty()).unwrap_or_else(|| default.to_owned())
        };
        let value = |name: &str| params.get(name).cloned().unwrap_or(Json::Null);
        match params.get("action").and_then(Json::as_str) {
            Some("retry") => Control::Retry,
            Some("fail") => Control::Fail(text("error", "a hook made the thread fail")),
            Some("abort") => Control::Abort,
            Some("suspend") => Control::Suspend(text("suspend_reason", "a hook suspended the thread")),
            Some("escalate") => {
                Control::Escalate { limit: value("limit_type"), current: value("current_value") }
            }
            _ => Control::Continue,
        }
    }

    /// Why the parameters of the control tool decide nothing, although they are meant to.
    pub fn fault(params: &Map<String, Json>) -> Option<String> {
        match params.get("action") {
            Some(Json::String(name)) if Control::NAMES.contains(&name.as_str()) => None,
            Some(other) => Some(format!("unknown decision {other}")),
            None => Some("a hook has no decision".to_owned()),
        }
    }

    /// The decision in the result of a hook's action. A tool that merely answers, or fails itself, decides nothing.
    ///
    /// ```
    /// use cuebook_run::policy::control::Control;
    /// use serde_json::json;
    ///
    /// assert_eq!(Control::from_result(&json!({"status": "success", "data": {"action": "retry"}})), Control::Retry);
    /// assert_eq!(Control::from_result(&json!({"success": true})), Control::Continue);
    /// ```
    pub fn from_result(result: &Json) -> Control {
        let Json::Object(result) = result else { return Control::Continue };
        // The tool itself failed; that is for the log, and no decision.
        if result.get("status").and_then(Json::as_str) == Some("error") {
            return Control::Continue;
        }
        if let Some(inner) = result.get("data") {
            return Control::from_result(inner);
        }
        if let Some(action) = result.get("action").and_then(Json::as_str) {
            return if Control::NAMES.contains(&action) {
                Control::from_params(result)
            } else {
                Control::Continue
            };
        }
        let is = |name: &str| result.get(name) == Some(&Json::Bool(true));
        if result.get("success") != Some(&Json::Bool(false)) {
            return Control::Continue;
        }
        let error = result.get("error").filter(|error| !error.is_null()).map(text_of);
        if is("aborted") {
            Control::Abort
        } else if is("escalated") {
            let of = |name: &str| {
                result.get("escalation").and_then(|all| all.get(name)).cloned().unwrap_or(Json::Null)
            };
            Control::Escalate { limit: of("limit_type"), current: of("current_value") }
        } else if is("suspended") {
            Control::Suspend(error.unwrap_or_else(|| "a hook suspended the thread".to_owned()))
        } else {
            error.map_or(Control::Continue, Control::Fail)
        }
    }

    /// The decision as the control tool answers, which [`Control::from_result`] understands.
    pub fn to_json(&self) -> Json {
        match self {
            Control::Continue => Json::Null,
            Control::Retry => json!({"action": "retry"}),
            Control::Fail(error) => json!({"success": false, "error": error}),
            Control::Abort => json!({"success": false, "aborted": true, "error": "Aborted by hook"}),
            Control::Suspend(why) => json!({"success": false, "suspended": true, "error": why}),
            Control::Escalate { limit, current } => json!({
                "success": false, "suspended": true, "escalated": true, "error": "Escalation requested",
                "escalation": {"limit_type": limit, "current_value": current},
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from_params(params: Json) -> Control {
        Control::from_params(params.as_object().unwrap())
    }

    #[test]
    fn every_decision_can_be_named_and_comes_back_from_its_answer() {
        let escalate = Control::Escalate { limit: json!("turns_exceeded"), current: json!(25) };
        for (params, control) in [
            (json!({"action": "retry"}), Control::Retry),
            (json!({"action": "fail", "error": "no"}), Control::Fail("no".into())),
            (json!({"action": "fail"}), Control::Fail("a hook made the thread fail".into())),
            (json!({"action": "abort"}), Control::Abort),
            (json!({"action": "suspend", "suspend_reason": "later"}), Control::Suspend("later".into())),
            (json!({"action": "escalate", "limit_type": "turns_exceeded", "current_value": 25}), escalate),
            (json!({"action": "continue"}), Control::Continue),
            (json!({"action": "skip"}), Control::Continue),
            (json!({"action": "explode"}), Control::Continue),
            (json!({}), Control::Continue),
        ] {
            assert_eq!(from_params(params), control);
            assert_eq!(Control::from_result(&control.to_json()), control);
            assert_eq!(
                Control::from_result(&json!({"status": "success", "data": control.to_json()})),
                control
            );
        }
    }

    #[test]
    fn a_tool_that_answers_or_fails_decides_nothing() {
        for result in [
            json!(null),
            json!("fail"),
            json!({"success": true}),
            json!({"success": true, "error": "old"}),
            json!({"status": "error", "error": "not found", "data": {"success": false, "error": "x"}}),
            json!({"success": false}),
            json!({"stdout": "continue"}),
            json!({"action": "click"}),
            json!({"data": null}),
        ] {
            assert_eq!(Control::from_result(&result), Control::Continue, "{result}");
        }
    }
}
