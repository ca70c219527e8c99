//! Replies that no provider sends: whatever comes, nothing panics.

use proptest::prelude::*;

use super::*;

/// JSON that is made of the words of replies, so that it often nearly is one.
pub(crate) fn any_json() -> impl Strategy<Value = Json> {
    let words = [
        "choices",
        "message",
        "delta",
        "content",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "index",
        "id",
        "refusal",
        "finish_reason",
        "output",
        "output_text",
        "type",
        "text",
        "response",
        "item",
        "output_index",
        "status",
        "error",
        "data",
        "embedding",
        "url",
        "candidates",
        "parts",
        "functionCall",
        "args",
        "finishReason",
        "promptFeedback",
        "blockReason",
        "usage",
        "usageMetadata",
        "content_block",
        "input",
        "properties",
        "model",
        "modelName",
        "capabilities",
    ];
    let texts = [
        "message",
        "text",
        "function_call",
        "tool_use",
        "output_text",
        "refusal",
        "content_block_start",
        "content_block_delta",
        "input_json_delta",
        "message_delta",
        "message_stop",
        "message_start",
        "SAFETY",
        "response.completed",
        "response.output_item.added",
        "response.failed",
        "response.output_text.delta",
        "error",
        "{\"a\": 1}",
        "",
    ];
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        prop::sample::select(texts.to_vec()).prop_map(Json::from),
        ".{0,8}".prop_map(Json::from),
    ];
    let key = prop::sample::select(words.to_vec());
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| members
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_reply_makes_the_reader_panic(response in any_json(), outputs: bool) {
        for api in Api::ALL {
            match read(api, &response, outputs) {
                Ok(answer) => drop(answer.reply.to_json()),
                Err(error) => prop_assert_eq!(error.kind(), crate::ErrorKind::Reply),
            }
        }
    }

    #[test]
    fn nearly_right_replies_do_not_make_it_panic(inner in any_json()) {
        for (api, response) in [
            (Api::OpenAiChat, json!({"choices": [{"message": inner}]})),
            (Api::OpenAiChat, json!({"choices": [{"message": {"tool_calls": inner}}]})),
            (Api::OpenAiResponses, json!({"output": [inner]})),
            (Api::Anthropic, json!({"content": [inner]})),
            (Api::Gemini, json!({"candidates": [{"content": {"parts": [inner]}}]})),
            (Api::OpenAiEmbeddings, json!({"data": [{"embedding": inner}]})),
            (Api::OpenAiImages, json!({"data": [inner]})),
        ] {
            let _ = read(api, &response, true);
        }
    }

    #[test]
    fn no_events_make_a_stream_panic_and_nothing_follows_a_failure(events in prop::collection::vec(any_json(), 0..6)) {
        for api in Api::ALL {
            let mut stream = Stream::new(api);
            let mut chunks: Vec<Chunk> = Vec::new();
            for event in &events {
                chunks.extend(stream.feed(event));
                chunks.extend(stream.feed(&json!({"choices": [{"delta": event}]})));
                chunks.extend(stream.feed(&json!({"candidates": [event], "type": "content_block_start", "content_block": event})));
            }
            let outcome = stream.finish();
            chunks.extend(outcome.chunks.clone());
            let failure = chunks.iter().position(|chunk| matches!(chunk, Chunk::Failure { .. }));
            prop_assert_eq!(failure.is_none(), outcome.is_committed());
            if let Some(failure) = failure {
                prop_assert_eq!(failure, chunks.len() - 1);
            }
            let text: String = chunks.iter().filter_map(|chunk| match chunk {
                Chunk::Text(text) => Some(text.as_str()),
                _ => None,
            }).collect();
            prop_assert_eq!(text, outcome.partial_text);
        }
    }
}
