//! The tools and the prompt of the suite that need something of the client first, and get it with a second call (2026-07-28).

use rmcp::model::*;
use serde_json::{Value as Json, json};

use crate::{Answer, Context, read, text};

/// The prompt that asks for its context.
pub const PROMPT: &str = "test_input_required_result_prompt";

/// The states that this server gives out. None of them says anything, so there is nothing to sign: an unknown one is refused.
const STATES: [&str; 2] = ["suite-state-1", "suite-state-2"];

pub fn form(message: &str, field: &str, kind: &str) -> Json {
    let schema = json!({"type": "object", "properties": {field: {"type": kind}}, "required": [field]});
    json!({"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}})
}

fn sampling(words: &str, most: u32) -> Json {
    let message = json!({"role": "user", "content": {"type": "text", "text": words}});
    json!({"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": most}})
}

fn roots() -> Json {
    json!({"method": "roots/list", "params": {}})
}

fn name() -> Json {
    form("What is your name?", "name", "string")
}

/// What a tool asks for in a round, and the state that it gives along.
fn asked(tool: &str, round: usize) -> Option<(Json, Option<&'static str>)> {
    let first = Some(STATES[0]);
    Some(match (tool.strip_prefix("test_")?, round) {
        ("input_required_result_elicitation" | "streaming_elicitation", 0) => {
            (json!({"user_name": name()}), None)
        }
        ("input_required_result_sampling", 0) => {
            (json!({"capital_question": sampling("What is the capital of France?", 100)}), None)
        }
        ("input_required_result_list_roots", 0) => (json!({"client_roots": roots()}), None),
        ("input_required_result_request_state" | "input_required_result_tampered_state", 0) => {
            (json!({"confirm": form("Please confirm", "ok", "boolean")}), first)
        }
        ("input_required_result_multiple_inputs", 0) => {
            let greeting = sampling("Generate a greeting", 50);
            (json!({"user_name": name(), "greeting": greeting, "client_roots": roots()}), first)
        }
        ("input_required_result_multi_round", 0) => {
            (json!({"step1": form("Step 1: What is your name?", "name", "string")}), first)
        }
        ("input_required_result_multi_round", 1) => (
            json!({"step2": form("Step 2: What is your favorite color?", "color", "string")}),
            Some(STATES[1]),
        ),
        ("input_required_result_capabilities", 0) => {
            (json!({"user_name": name(), "greeting": sampling("Generate a greeting", 50)}), None)
        }
        _ => return None,
    })
}

/// Whether an answer has the form of an answer to its request.
fn fits(request: &Json, answer: &Json) -> bool {
    match request["method"].as_str() {
        Some("elicitation/create") => {
            let required = request["params"]["requestedSchema"]["required"].as_array();
            let has = |field: &Json| !answer["content"][field.as_str().unwrap_or_default()].is_null();
            answer["action"] == "accept" && required.into_iter().flatten().all(has)
        }
        Some("sampling/createMessage") => answer["content"].is_object() || answer["content"].is_array(),
        _ => answer["roots"].is_array(),
    }
}

/// Leaves the requests that a client is able to answer.
fn able(requests: Json, context: &Context) -> Answer<Json> {
    let known = context.client_capabilities().unwrap_or_default();
    let Json::Object(requests) = requests else { return Ok(requests) };
    let kept = requests.into_iter().filter(|(_, request)| match request["method"].as_str() {
        Some("elicitation/create") => known.elicitation.is_some(),
        Some("sampling/createMessage") => known.sampling.is_some(),
        _ => known.roots.is_some(),
    });
    Ok(kept.collect())
}

pub fn required(requests: Json, state: Option<&str>) -> Answer<InputRequiredResult> {
    Ok(InputRequiredResult::new(Some(read(requests)?), state.map(str::to_owned)))
}

/// What a tool answers; none if it is not one of these.
pub fn call(
    tool: &str,
    request: &CallToolRequestParams,
    context: &Context,
) -> Answer<Option<CallToolResponse>> {
    let Some((first, state)) = asked(tool, 0) else { return Ok(None) };
    let round = match request.request_state.as_deref() {
        None => 0,
        Some(state) => match STATES.iter().position(|known| *known == state) {
            Some(at) => at,
            None => return Err(ErrorData::invalid_params("requestState was changed", None)),
        },
    };
    let given = request.input_responses.clone().unwrap_or_default();
    let open = if round == 0 { first } else { asked(tool, round).map_or(first, |(requests, _)| requests) };
    let answered = open.as_object().is_some_and(|open| {
        open.iter().all(|(key, request)| given.get(key).is_some_and(|answer| fits(request, answer)))
    });
    if !answered || (round == 0 && state.is_some() && request.request_state.is_none()) {
        let state = asked(tool, round).and_then(|(_, state)| state);
        return Ok(Some(required(able(open, context)?, state)?.into()));
    }
    if let Some((requests, state)) = asked(tool, round + 1) {
        return Ok(Some(required(able(requests, context)?, state)?.into()));
    }
    let said = given.values().map(Json::to_string).collect::<Vec<_>>().join(", ");
    let name = given.get("user_name").and_then(|answer| answer["content"]["name"].as_str());
    let state = if request.request_state.is_some() { " state-ok" } else { "" };
    Ok(Some(text(format!("Hello, {}!{state} {said}", name.unwrap_or("client"))).into()))
}

/// What the prompt answers; none for any other.
pub fn prompt(request: &GetPromptRequestParams) -> Answer<Option<GetPromptResponse>> {
    if request.name != PROMPT {
        return Ok(None);
    }
    let asked = form("What context should the prompt use?", "context", "string");
    let given = request.input_responses.as_ref().and_then(|given| given.get("user_context"));
    let Some(context) = given.filter(|given| fits(&asked, given)) else {
        return Ok(Some(required(json!({"user_context": asked}), None)?.into()));
    };
    let words = context["content"]["context"].as_str().unwrap_or_default();
    let message = json!({"role": "user", "content": {"type": "text", "text": format!("Use {words}.")}});
    Ok(Some(GetPromptResult::new(read(json!([message]))?).into()))
}
