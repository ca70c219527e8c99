//! Messages as Anthropic keeps them: calls of tools, their results and thoughts are blocks of the content.
//!
//! They become what all wire formats here understand: calls in the metadata of the assistant's message, each result a message
//! of the tool. Thoughts are kept in the metadata, where code that needs them finds them.

use serde_json::{Map, Value as Json, json};

use super::{Message, Part, Role};

/// The messages that one message with such blocks stands for; most have none and stand for themselves.
pub(super) fn messages(value: &Json) -> Result<Vec<Message>, String> {
    let is_block = |part: &Json| {
        matches!(part["type"].as_str(), Some("tool_use" | "tool_result" | "thinking" | "redacted_thinking"))
    };
    let content = value.get("content").and_then(Json::as_array);
    let Some(content) = content.filter(|content| content.iter().any(is_block)) else {
        return Message::from_json(value).map(|message| vec![message]);
    };
    let mut rest = value.clone();
    let mut results = Vec::new();
    let mut calls = Vec::new();
    let mut thoughts = Vec::new();
    let mut parts = Vec::new();
    for (index, part) in content.iter().enumerate() {
        match part["type"].as_str() {
            Some("tool_use") => {
                calls.push(call(part).ok_or(format!("part {} is a tool call without a name", index + 1))?)
            }
            Some("tool_result") => {
                results.push(result(part).map_err(|why| format!("part {} {why}", index + 1))?);
            }
            Some("thinking" | "redacted_thinking") => thoughts.push(part.clone()),
            _ => parts.push(part.clone()),
        }
    }
    let says_more = !parts.is_empty() || !calls.is_empty() || !thoughts.is_empty();
    rest["content"] = Json::Array(parts);
    let mut message = Message::from_json(&rest)?;
    for (key, found) in [("tool_calls", calls), ("thinking", thoughts)] {
        if !found.is_empty() {
            message.metadata.insert(key.into(), Json::Array(found));
        }
    }
    if says_more {
        results.push(message);
    }
    Ok(results)
}

fn call(part: &Json) -> Option<Json> {
    let arguments = part.get("input").unwrap_or(&Json::Null);
    let arguments = if arguments.is_null() { "{}".to_owned() } else { arguments.to_string() };
    let function = json!({"name": part["name"].as_str()?, "arguments": arguments});
    Some(json!({"id": part["id"], "type": "function", "function": function}))
}

fn result(part: &Json) -> Result<Message, String> {
    let Some(id) = part["tool_use_id"].as_str() else {
        return Err("is a tool result without `tool_use_id`".into());
    };
    let mut metadata = Map::new();
    metadata.insert("tool_call_id".into(), json!(id));
    if let Some(failed) = part["is_error"].as_bool() {
        metadata.insert("is_error".into(), json!(failed));
    }
    let parts = match part.get("content") {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::String(text)) => vec![Part::text(text)],
        Some(Json::Array(parts)) => parts.iter().map(Part::from_json).collect::<Result<_, _>>()?,
        Some(_) => return Err("is a tool result whose content is neither text nor parts".into()),
    };
    Ok(Message { role: Role::Tool, parts, metadata })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_results_and_thoughts_fit_every_wire_format() {
        let assistant = json!({"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm.", "signature": "x"},
            {"type": "text", "text": "Let me look."},
            {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "it"}},
        ]});
        let found = messages(&assistant).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].texts().collect::<Vec<_>>(), ["Let me look."]);
        let call = json!([{"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{\"at\":\"it\"}"}}]);
        assert_eq!(found[0].metadata["tool_calls"], call);
        assert_eq!(found[0].metadata["thinking"][0]["signature"], "x");
        let user = json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "seen"}]},
            {"type": "text", "text": "And now?"},
        ]});
        let found = messages(&user).unwrap();
        let roles: Vec<&str> = found.iter().map(|message| message.role.as_str()).collect();
        assert_eq!(roles, ["tool", "user"]);
        assert_eq!(found[0].metadata["tool_call_id"], "t1");
        assert!(messages(&json!({"role": "user", "content": [{"type": "tool_result"}]})).is_err());
        assert!(messages(&json!({"role": "assistant", "content": [{"type": "tool_use"}]})).is_err());
    }
}
