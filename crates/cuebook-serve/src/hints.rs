//! Hints for clients: the engine's name options of the command line, and a client has none.

use cuebook::Code;
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

/// Puts the advice for programs in the place of a hint for the command line. A hint without advice is `null`.
fn shorten(object: &mut Json) {
    let is_limit = object["code"] == Code::LimitReached.as_str();
    let Some(object) = object.as_object_mut() else { return };
    object.shift_remove("commands");
    let advice = object.shift_remove("advice");
    let Some(hint) = object.get_mut("hint") else { return };
    if is_limit {
        *hint =
            "to continue with other `limit_overrides`, call resume_thread of rye/agent/threads/orchestrator"
                .into();
    } else if let Some(advice) = advice {
        *hint = advice;
    }
}

#[cfg(test)]
mod tests {
    use cuebook::Hint;
    use serde_json::{Map, json};

    use super::*;

    #[test]
    fn hints_that_name_an_option_are_left_out() {
        for (hint, left) in [
            (Hint::from("did you mean `x: cuebook allow`?"), json!("did you mean `x: cuebook allow`?")),
            (Hint::run("list the prompts", "cuebook list"), json!("list the prompts")),
            (Hint::command_line("give a value with `--var name=…`"), json!(null)),
        ] {
            let mut given = Map::new();
            hint.add_to(&mut given);
            let given = Json::Object(given);
            let mut answer = json!({"metadata": {"error": given.clone()}, "data": given.clone()});
            for_clients(&mut answer);
            assert_eq!(answer["metadata"]["error"], json!({"hint": left}), "{hint}");
            assert_eq!(answer["data"], given, "a tool says what it likes");
        }
    }
}
