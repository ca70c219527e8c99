//! Hints for clients: the engine's name options of the command line, and a client has none.

use cuebook::Code;
use cuebook::error::advice_of;
use serde_json::Value as Json;

/// Takes what is for the command line out of the hints of an answer. What a tool gave is not touched.
pub(crate) fn for_clients(answer: &mut Json) {
    shorten(answer);
    if let Some(error) = answer.get_mut("metadata").and_then(|metadata| metadata.get_mut("error")) {
        of_error(error);
    }
}

/// The same for what is known of an error, and for all its findings.
pub(crate) fn of_error(error: &mut Json) {
    shorten(error);
    for list in ["findings", "errors", "diagnostics"] {
        error.get_mut(list).and_then(Json::as_array_mut).into_iter().flatten().for_each(shorten);
    }
}

/// Leaves the parts of a hint that name no command and no option. A hint without any is `null`.
fn shorten(object: &mut Json) {
    let is_limit = object["code"] == Code::LimitReached.as_str();
    let Some(hint) = object.get_mut("hint") else { return };
    if is_limit {
        *hint =
            "to continue with other `limit_overrides`, call resume_thread of rye/agent/threads/orchestrator"
                .into();
        return;
    }
    let Json::String(text) = &*hint else { return };
    let advice = advice_of(text).map(|advice| advice.into_owned());
    *hint = advice.into();
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hints_that_name_an_option_are_left_out() {
        for (given, left) in [
            ("did you mean `x`?", json!("did you mean `x`?")),
            ("make room; --unfenced runs tools freely", json!("make room")),
            ("give a value with `--var name=…`", json!(null)),
            ("a dash -- or two--three", json!("a dash -- or two--three")),
        ] {
            let mut answer =
                json!({"hint": given, "metadata": {"error": {"hint": given}}, "data": {"hint": given}});
            for_clients(&mut answer);
            assert_eq!((&answer["hint"], &answer["metadata"]["error"]["hint"]), (&left, &left), "{given}");
            assert_eq!(answer["data"]["hint"], given, "a tool says what it likes");
        }
    }
}
