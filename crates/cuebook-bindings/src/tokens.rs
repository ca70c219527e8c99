//! The tokens of a request.

use cuebook::chat::Message;
use cuebook::tokens::Tokenizer;
use serde_json::{Value as Json, json};

/// The tokens of messages and tools, counted for a model. The first count of a vocabulary takes a while.
pub fn count_tokens(model: &str, messages: &[Message], tools: &[Json]) -> Json {
    let tokenizer = Tokenizer::for_model(model);
    let counted: Vec<Json> = messages
        .iter()
        .enumerate()
        .map(|(at, message)| {
            let text: String = message.texts().collect();
            json!({"number": at + 1, "role": message.role.as_str(), "tokens": tokenizer.count(&text)})
        })
        .collect();
    let text: u64 = counted.iter().filter_map(|message| message["tokens"].as_u64()).sum();
    let tools: Vec<Json> = tools
        .iter()
        .map(|tool| json!({"name": tool["name"], "tokens": tokenizer.count(&tool.to_string())}))
        .collect();
    let of_tools: u64 = tools.iter().filter_map(|tool| tool["tokens"].as_u64()).sum();
    let why: Vec<&str> = tokenizer.why().into_iter().collect();
    json!({
        "total": text + of_tools, "text": text, "exact": why.is_empty() && tools.is_empty(), "estimates": why,
        "model": model, "messages": counted, "tools": tools,
    })
}
