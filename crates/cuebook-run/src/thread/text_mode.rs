//! Tools for models that know none: they are described in the prompt, called in what the model says, and the result of a call is sent
//! in words of the user.
//!
//! The log keeps calls and results as those of other models, so that a thread can go on with another one. Only what is sent differs.

use cuebook::chat::reply::{Answer, Reply, ToolCall};
use cuebook::chat::{Message, Part, Role};
use cuebook::prompt::{Kind, Property, Tool, ToolKind};
use serde_json::{Map, Value as Json, json};

use super::rebuild::calls_of;
use crate::policy::text_calls::{TextCall, text_calls};

/// How a call is written. [`text_calls`] reads it.
const HOW: &str = "To call a tool, write this and nothing after it, with one <parameter> for each argument. Write an object or a list as \
                   JSON:\n\n<invoke name=\"NAME\">\n<parameter name=\"ARGUMENT\">VALUE</parameter>\n</invoke>\n\n\
                   You can write several calls. The next message has their results, in <result> elements.";

/// What is sent instead of a conversation and tools.
pub(super) fn in_text(conversation: &[Message], tools: &[Tool]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::with_capacity(conversation.len() + 1);
    let mut results = false;
    for message in conversation {
        let is_result = message.role == Role::Tool;
        match message.role {
            // The results of one turn are one message.
            Role::Tool => match messages.last_mut().filter(|_| results) {
                Some(before) => before.parts.push(Part::text(format!("\n\n{}", result(message)))),
                None => messages.push(Message::text(Role::User, result(message))),
            },
            Role::Assistant => messages.push(with_calls_as_text(message)),
            _ => messages.push(message.clone()),
        }
        results = is_result;
    }
    if tools.is_empty() {
        return messages;
    }
    let described: Vec<String> = tools.iter().map(|tool| described(tool).to_string()).collect();
    let text = format!("You can call these tools:\n\n{}\n\n{HOW}", described.join("\n"));
    match messages.first_mut().filter(|first| matches!(first.role, Role::System | Role::Developer)) {
        Some(first) => first.parts.push(Part::text(format!("\n\n{text}"))),
        None => messages.insert(0, Message::text(Role::System, text)),
    }
    messages
}

/// What came of a call.
fn result(message: &Message) -> String {
    let name = message.metadata.get("name").and_then(Json::as_str).unwrap_or("tool");
    let failed = if message.metadata.contains_key("is_error") { " failed=\"true\"" } else { "" };
    format!("<result name=\"{name}\"{failed}>\n{}\n</result>", message.texts().collect::<String>())
}

/// What the model said, with the calls in it. Another model may have made them in another way.
fn with_calls_as_text(message: &Message) -> Message {
    let calls = calls_of(message);
    if calls.is_empty() {
        return message.clone();
    }
    let mut message = message.clone();
    message.metadata.remove("tool_calls");
    if text_calls(&message.texts().collect::<String>()).is_empty() {
        let gap = if message.parts.is_empty() { "" } else { "\n\n" };
        let calls: Vec<String> = calls.iter().map(invoked).collect();
        message.parts.push(Part::text(format!("{gap}{}", calls.join("\n"))));
    }
    message
}

fn invoked(call: &ToolCall) -> String {
    let arguments: Map<String, Json> = serde_json::from_str(&call.arguments).unwrap_or_default();
    let parameter = |(name, value): (&String, &Json)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("<parameter name=\"{name}\">{value}</parameter>\n")
    };
    format!(
        "<invoke name=\"{}\">\n{}</invoke>",
        call.name,
        arguments.iter().map(parameter).collect::<String>()
    )
}

/// A tool, as a line of JSON. What an input of the prompt fills is not the model's to say.
fn described(tool: &Tool) -> Json {
    let mut parameters = match &tool.kind {
        ToolKind::Function { parameters, .. } => {
            let free = parameters.iter().filter(|parameter| !tool.bindings.contains_key(&parameter.name));
            free.map(Property::to_json).collect()
        }
        ToolKind::Schema { parameters } => parameters.clone(),
        _ => Json::Null,
    };
    if let Some(properties) = parameters.get_mut("properties").and_then(Json::as_object_mut) {
        properties.retain(|name, _| !tool.bindings.contains_key(name));
    }
    json!({"name": tool.name, "description": tool.description, "parameters": parameters})
}

/// Takes the calls out of what a model said. Text has no types, so the arguments get those that the tools declare.
pub(super) fn find_calls(answer: &mut Answer, tools: &[Tool]) {
    let Reply::Text(text) = &answer.reply else { return };
    let mut found = text_calls(text);
    for TextCall { name, input, .. } in &mut found {
        let Some(tool) = tools.iter().find(|tool| tool.name == *name) else { continue };
        for (argument, value) in input.iter_mut() {
            if let Some(typed) = value.as_str().and_then(|text| typed(kind(tool, argument)?, text)) {
                *value = typed;
            }
        }
    }
    if !found.is_empty() {
        let calls = found.into_iter().map(TextCall::into_call).collect();
        answer.reply = Reply::ToolCalls { calls, text: Some(text.clone()) };
    }
}

/// The type that a tool declares for an argument.
fn kind<'t>(tool: &'t Tool, argument: &str) -> Option<&'t str> {
    match &tool.kind {
        ToolKind::Function { parameters, .. } => {
            let parameter = parameters.iter().find(|parameter| parameter.name == argument)?;
            Some(match &parameter.kind {
                Kind::Float => "number",
                other => other.as_str(),
            })
        }
        ToolKind::Schema { parameters } => parameters["properties"][argument]["type"].as_str(),
        _ => None,
    }
}

/// A text as a value of a type, if it is one.
fn typed(kind: &str, text: &str) -> Option<Json> {
    let value: Json = serde_json::from_str(text).ok()?;
    let fits = match kind {
        "integer" | "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => false,
    };
    fits.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::{assistant_message, tool_message};

    fn tool() -> Tool {
        crate::policy::directive_tools::tool(
            "look",
            "Looks.",
            json!({"type": "object", "properties": {"n": {"type": "integer"}, "q": {"type": "string"}, "b": {"type": "boolean"}}}),
        )
    }

    fn answer(text: &str) -> Answer {
        let reply = Reply::Text(text.into());
        Answer {
            reply,
            thinking: None,
            usage: None,
            finish: None,
            model: None,
            id: None,
            provider_state: Default::default(),
        }
    }

    #[test]
    fn arguments_get_the_types_that_the_tool_declares() {
        let mut answer = answer(
            "<invoke name=\"look\"><parameter name=\"n\">3</parameter><parameter name=\"q\">4</parameter><parameter name=\"b\">true</parameter></invoke>",
        );
        find_calls(&mut answer, &[tool()]);
        let Reply::ToolCalls { calls, .. } = answer.reply else { panic!() };
        let arguments: Json = serde_json::from_str(&calls[0].arguments).unwrap();
        assert_eq!(arguments, json!({"n": 3, "q": "4", "b": true}));
    }

    #[test]
    fn calls_that_another_model_made_are_written_as_this_one_would() {
        let call = ToolCall { id: "a".into(), name: "look".into(), arguments: "{\"n\":3}".into() };
        let spoken =
            assistant_message(&Reply::ToolCalls { calls: vec![call.clone(), call.clone()], text: None });
        let conversation = [
            Message::text(Role::User, "Go."),
            spoken,
            tool_message(&call, "one", false),
            tool_message(&call, "two", true),
        ];
        let sent = in_text(&conversation, &[tool()]);
        let roles: Vec<Role> = sent.iter().map(|message| message.role.clone()).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::User]);
        let text = |index: usize| sent[index].texts().collect::<String>();
        assert!(text(0).contains("\"look\"") && text(0).contains("<invoke"), "{}", text(0));
        assert_eq!(text_calls(&text(2)).len(), 2);
        assert!(sent[2].metadata.is_empty());
        assert_eq!(
            text(3),
            "<result name=\"look\">\none\n</result>\n\n<result name=\"look\" failed=\"true\">\ntwo\n</result>"
        );
    }
}
