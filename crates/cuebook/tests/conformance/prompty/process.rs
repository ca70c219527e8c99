//! From a provider's reply to a result, whole and in pieces.

use cuebook::chat::Api;
use cuebook::chat::reply::{Chunk, Stream, read};
use serde_json::{Value as Json, json};

use super::Case;
use crate::compare::equals;

fn api(case: &Case<'_>) -> Result<Api, String> {
    let text = |key: &str| case.input()[key].as_str();
    match (text("provider").unwrap_or("openai"), text("apiType").unwrap_or("chat")) {
        ("openai" | "foundry" | "azure", "chat" | "agent") => Ok(Api::OpenAiChat),
        ("openai" | "foundry" | "azure", "responses") => Ok(Api::OpenAiResponses),
        ("openai" | "foundry" | "azure", "embedding") => Ok(Api::OpenAiEmbeddings),
        ("openai" | "foundry" | "azure", "image") => Ok(Api::OpenAiImages),
        ("anthropic", "chat") => Ok(Api::Anthropic),
        ("gemini" | "google", "chat") => Ok(Api::Gemini),
        (provider, kind) => Err(format!("no interface is known for {provider}/{kind}")),
    }
}

pub fn process(case: &Case<'_>) -> Result<(), String> {
    let outputs = case.input()["has_outputs"].as_bool().unwrap_or(false);
    let answer = read(api(case)?, &case.input()["response"], outputs);
    let failure = !case.expected()["error"].is_null() || !case.vector["expectedError"].is_null();
    match (answer, failure) {
        (Err(_), true) => Ok(()),
        (Err(error), false) => Err(error.to_string()),
        (Ok(answer), true) => Err(format!("an error was expected, got {}", answer.reply.to_json())),
        (Ok(answer), false) => equals(&case.expected()["result"], &answer.reply.to_json()),
    }
}

pub fn stream(case: &Case<'_>) -> Result<(), String> {
    let mut stream = Stream::new(api(case)?);
    let mut chunks = Vec::new();
    for event in case.input()["events"].as_array().ok_or("there are no events")? {
        chunks.extend(match event["kind"].as_str() {
            Some("provider") => stream.feed(&event["value"]),
            Some("transportError") => stream.transport_error(event["message"].as_str().unwrap_or_default()),
            other => return Err(format!("nobody knows events of the kind {other:?}")),
        });
    }
    let outcome = stream.finish();
    chunks.extend(outcome.chunks.clone());
    let mut actual = outcome.to_json();
    actual["chunks"] = chunks.iter().map(Chunk::to_json).collect::<Vec<Json>>().into();
    equals(case.expected(), &json!(actual))
}
