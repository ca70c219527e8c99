//! Calls of tools in a conversation, and what the tools answered.

use std::borrow::Cow;

use serde_json::{Map, Value as Json, json};

use super::draft::{Draft, MessagePosition};
use super::piece::{Members, Piece};
use crate::chat::Role;
use crate::error::Result;

/// The calls, in the words of OpenAI's chat interface.
pub(super) const CALLS: &str = "tool_calls";
/// The call that a message answers.
pub(super) const ANSWERS: &str = "tool_call_id";
/// Where a message keeps what the model thought, in Anthropic's blocks, which no other provider takes.
pub(super) const THOUGHTS: &str = "thinking";

/// Whether a result of a tool is the report of a failure.
pub(super) const FAILED: &str = "is_error";

/// A call as OpenAI's responses interface gave it.
pub(super) const ITEM: &str = "responses_function_call";

/// A call that the model made.
pub(super) struct Call<'m> {
    pub id: &'m str,
    pub name: &'m str,
    /// JSON text, as the model wrote it.
    pub arguments: Cow<'m, str>,
    /// What Gemini wants to see again beside its call; OpenAI's language has a place for it too.
    pub signature: Option<&'m str>,
    /// The call as it was written.
    pub entry: &'m Map<String, Json>,
}

impl<'m> Call<'m> {
    /// The call in the words of OpenAI's chat interface.
    pub fn into_chat(self) -> Piece<'m> {
        if self.entry.get("function").is_some_and(|function| function["arguments"].is_string()) {
            let mut members: Members<'m> =
                self.entry.iter().map(|(key, value)| (key.as_str(), value.into())).collect();
            if !self.entry.contains_key("type") {
                members.push(("type", "function".into()));
            }
            return Piece::Object(members);
        }
        let function =
            Piece::object([("name", self.name.into()), ("arguments", Piece::Text(self.arguments))]);
        Piece::object([("id", self.id.into()), ("type", "function".into()), ("function", function)])
    }
}

impl<'r> Draft<'r> {
    /// The calls that a message makes. The entries have OpenAI's form, or the flat one of a reply's result.
    pub fn calls(&self, spot: MessagePosition<'r>) -> Result<Vec<Call<'r>>> {
        let mut calls = Vec::new();
        for key in [CALLS, ITEM] {
            let entries = match spot.message.metadata.get(key) {
                None | Some(Json::Null) => continue,
                Some(Json::Array(entries)) => entries.as_slice(),
                Some(one) => std::slice::from_ref(one),
            };
            for (index, entry) in entries.iter().enumerate() {
                let call = entry.as_object().and_then(read).ok_or_else(|| {
                    let why = format!("tool call {} in `{key}` has no id or no function name", index + 1);
                    let form =
                        r#"{"id": "…", "type": "function", "function": {"name": "…", "arguments": "{}"}}"#;
                    self.refuse(spot, why, format!("write a tool call as {form}"))
                })?;
                calls.push(call);
            }
        }
        if !calls.is_empty() && spot.message.role != Role::Assistant {
            let hint = "change the message's role to `assistant`";
            return Err(self.refuse(spot, "only an assistant message can have tool calls", hint));
        }
        Ok(calls)
    }

    /// The arguments of a call as an object.
    pub fn arguments(&self, spot: MessagePosition<'_>, call: &Call<'_>) -> Result<Json> {
        if call.arguments.trim().is_empty() {
            return Ok(json!({}));
        }
        let value = serde_json::from_str(&call.arguments).unwrap_or(Json::Null);
        if !value.is_object() {
            let why = format!("the arguments of the tool call `{}` are not a JSON object", call.name);
            let hint = format!(
                "{} needs the arguments of earlier tool calls as an object; fix them in the conversation",
                self.api.title()
            );
            return Err(self.refuse(spot, why, hint));
        }
        Ok(value)
    }

    /// The call that a message answers: every message of a tool has to say that.
    pub fn answers(&self, spot: MessagePosition<'r>) -> Result<Option<&'r str>> {
        match spot.message.metadata.get(ANSWERS).and_then(Json::as_str).filter(|id| !id.is_empty()) {
            None if spot.message.role == Role::Tool => Err(self.refuse(
                spot,
                "the tool result does not say which tool call it answers",
                "add the id of the tool call as `tool_call_id`",
            )),
            id => Ok(id),
        }
    }

    /// The name of the function that was called with this id before a message.
    pub fn called(&self, spot: MessagePosition<'r>, id: &str) -> Option<&'r str> {
        let earlier = self.spots().take(spot.index);
        let calls = earlier.filter_map(|spot| self.calls(spot).ok()).flatten();
        calls.filter(|call| call.id == id).map(|call| call.name).last()
    }
}

fn read(entry: &Map<String, Json>) -> Option<Call<'_>> {
    let function = entry.get("function").and_then(Json::as_object).unwrap_or(entry);
    let arguments = match function.get("arguments") {
        None | Some(Json::Null) => Cow::Borrowed(""),
        Some(Json::String(text)) => Cow::Borrowed(text.as_str()),
        Some(value) => Cow::Owned(value.to_string()),
    };
    Some(Call {
        id: entry.get("call_id").or_else(|| entry.get("id"))?.as_str()?,
        name: function.get("name")?.as_str()?,
        arguments,
        signature: entry
            .get("extra_content")
            .and_then(|extra| extra.pointer("/google/thought_signature"))
            .and_then(Json::as_str),
        entry,
    })
}
