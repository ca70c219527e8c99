//! The calls of an answer, made fit for a log: distinct, and readable.

use std::collections::HashSet;

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Reply, ToolCall, parse_arguments};
use serde_json::{Map, Value as Json, json};

use super::rebuild::calls_of;
use crate::turn::Performed;

/// The argument under which arguments are kept that are none.
const UNREADABLE: &str = "_no_json";

/// Gives calls names that tell them apart where the model gave none, or one that a call of the conversation has already:
/// providers refuse that, and later it would be unknown which of them is meant.
pub(super) fn make_ids_unique(answer: &mut Answer, turn: u32, conversation: &[Message]) {
    let Reply::ToolCalls { calls, .. } = &mut answer.reply else { return };
    let mut known: HashSet<String> = conversation.iter().flat_map(calls_of).map(|call| call.id).collect();
    for index in 0..calls.len() {
        if !calls[index].id.is_empty() && known.insert(calls[index].id.clone()) {
            continue;
        }
        let mut id = format!("call_{turn}_{index}");
        // The name may be in use already, or be used twice in this answer.
        while known.contains(&id) || calls.iter().any(|call| call.id == id) {
            id.push('x');
        }
        known.insert(id.clone());
        calls[index].id = id;
    }
}

/// Arguments that are not a JSON object cannot be sent to every provider again, so they become the text in one. The call is not made.
pub(super) fn keep_readable(answer: &mut Answer) {
    let Reply::ToolCalls { calls, .. } = &mut answer.reply else { return };
    for call in calls.iter_mut().filter(|call| parse_arguments(&call.arguments).is_err()) {
        call.arguments = json!({UNREADABLE: call.arguments}).to_string();
    }
}

/// Where an answer was cut off, its last call may lack arguments that were still to come: none at all looks like a call without any,
/// and is not made either.
pub(super) fn keep_cut(answer: &mut Answer) {
    let Reply::ToolCalls { calls, .. } = &mut answer.reply else { return };
    if let Some(call) = calls.last_mut()
        && parse_arguments(&call.arguments).is_ok_and(|arguments| arguments.is_empty())
    {
        call.arguments = json!({UNREADABLE: ""}).to_string();
    }
}

/// The last of some calls, if its arguments could not be read.
pub(super) fn cut_call(calls: &[ToolCall]) -> Option<&ToolCall> {
    let call = calls.last()?;
    parse_arguments(&call.arguments).is_ok_and(|arguments| unreadable(&arguments).is_some()).then_some(call)
}

/// What a model gets whose arguments could not be read.
pub(super) fn unreadable(arguments: &Map<String, Json>) -> Option<Performed> {
    let text = arguments.get(UNREADABLE)?.as_str()?;
    let why = match parse_arguments(text) {
        Err(error) => {
            error.field("reason").and_then(Json::as_str).unwrap_or(&error.diagnostic().message).to_owned()
        }
        Ok(_) => return None,
    };
    Some(Performed::failure(format!("Error: Invalid JSON in tool arguments: {why}")))
}
