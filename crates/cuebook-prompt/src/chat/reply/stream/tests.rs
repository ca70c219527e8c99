//! What every provider's pieces come to.

use super::super::{Reply, Sse};
use super::*;

/// Feeds events and gives every chunk, as scripts see it, and the outcome.
fn run(api: Api, events: &[Json]) -> (Vec<Json>, Outcome) {
    let mut stream = Stream::new(api);
    let mut chunks: Vec<Chunk> = events.iter().flat_map(|event| stream.feed(event)).collect();
    let outcome = stream.finish();
    chunks.extend(outcome.chunks.clone());
    (chunks.iter().map(Chunk::to_json).collect(), outcome)
}

fn text(text: &str) -> Json {
    json!({"kind": "text", "value": text})
}

fn tool(id: &str, name: &str, arguments: &str) -> Json {
    json!({"kind": "tool", "toolCall": {"id": id, "name": name, "arguments": arguments}})
}

fn failure(outcome: &str, message: &str) -> Json {
    json!({"kind": "failure", "failure": {"outcome": outcome, "message": message}})
}

fn delta(delta: Json) -> Json {
    json!({"choices": [{"index": 0, "delta": delta}]})
}

fn stop(reason: &str) -> Json {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

#[test]
fn openai_chat_comes_as_deltas() {
    let (chunks, outcome) = run(
        Api::OpenAiChat,
        &[
            json!({"id": "c", "model": "m", "choices": []}),
            delta(json!({"role": "assistant", "content": ""})),
            delta(json!({"content": "He"})),
            delta(json!({"reasoning_content": "hm"})),
            delta(json!({"content": "llo"})),
            json!({"choices": [{"index": 1, "delta": {"content": "another answer"}}]}),
            stop("stop"),
            json!({"choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}),
        ],
    );
    let usage = json!({"inputTokens": 1, "outputTokens": 2, "totalTokens": 3});
    assert_eq!(
        chunks,
        [
            text("He"),
            json!({"kind": "thinking", "value": "hm"}),
            text("llo"),
            json!({"kind": "usage", "usage": usage})
        ]
    );
    let answer = outcome.answer.unwrap();
    assert_eq!(answer.reply, Reply::Text("Hello".into()));
    assert_eq!(answer.finish.as_deref(), Some("stop"));
    assert_eq!((answer.id.as_deref(), answer.model.as_deref()), (Some("c"), Some("m")));
    assert_eq!(answer.thinking.as_deref(), Some("hm"));
    assert!(!outcome.requires_reconciliation);
}

#[test]
fn streamed_calls_are_joined_by_number_in_order() {
    let piece = |index: u64, id: Option<&str>, name: Option<&str>, arguments: &str| {
        delta(
            json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}),
        )
    };
    let (chunks, outcome) = run(
        Api::OpenAiChat,
        &[
            piece(1, Some("b"), Some("g"), ""),
            piece(0, Some("a"), Some("f"), "{\"x\""),
            piece(1, None, None, "{}"),
            delta(json!({"content": "Hm"})),
            piece(0, Some("a"), Some("f"), ":1}"),
            stop("tool_calls"),
        ],
    );
    assert_eq!(chunks, [text("Hm"), tool("a", "f", "{\"x\":1}"), tool("b", "g", "{}")]);
    assert!(
        matches!(outcome.answer.unwrap().reply, Reply::ToolCalls { calls, text: Some(_) } if calls.len() == 2)
    );
}

#[test]
fn calls_without_a_number_are_distinguished_by_their_ids() {
    let piece = |id: Option<&str>, arguments: &str| {
        delta(json!({"tool_calls": [{"id": id, "function": {"name": "f", "arguments": arguments}}]}))
    };
    let (chunks, _) = run(
        Api::OpenAiChat,
        &[piece(Some("a"), "{"), piece(None, "}"), piece(Some("b"), "{}"), stop("tool_calls")],
    );
    assert_eq!(chunks, [tool("a", "f", "{}"), tool("b", "f", "{}")]);
}

#[test]
fn a_refusal_is_certain_and_complete() {
    let refused = [
        delta(json!({"content": "Well"})),
        delta(json!({"refusal": "I "})),
        delta(json!({"refusal": "cannot"})),
    ];
    let (chunks, outcome) = run(Api::OpenAiChat, &refused);
    assert_eq!(chunks, [text("Well"), failure("determinate", "Model refused: I cannot")]);
    assert_eq!(
        outcome.to_json(),
        json!({"partialText": "Well", "requiresReconciliation": false, "completionCommitted": false})
    );
    let (chunks, _) = run(Api::OpenAiChat, &[stop("content_filter")]);
    assert_eq!(chunks, [failure("determinate", "Model refused: a content filter withheld the answer")]);
}

#[test]
fn a_broken_connection_keeps_the_text_and_commits_nothing() {
    let mut stream = Stream::new(Api::OpenAiChat);
    stream.feed(&delta(
        json!({"content": "Hel", "tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}}]}),
    ));
    let chunks = stream.transport_error("reset");
    assert_eq!(chunks[0].to_json(), failure("indeterminate", "reset"));
    assert!(stream.feed(&delta(json!({"content": "lo"}))).is_empty(), "nothing follows a failure");
    assert!(stream.transport_error("again").is_empty());
    let outcome = stream.finish();
    assert!(outcome.chunks.is_empty());
    assert_eq!(
        outcome.to_json(),
        json!({"partialText": "Hel", "requiresReconciliation": true, "completionCommitted": false})
    );
}

#[test]
fn a_connection_that_breaks_behind_the_end_changes_nothing() {
    let mut stream = Stream::new(Api::OpenAiChat);
    stream.feed(&delta(json!({"content": "Hi"})));
    stream.feed(&stop("stop"));
    assert!(stream.transport_error("reset").is_empty());
    assert!(stream.finish().is_committed());
}

#[test]
fn a_stream_without_its_end_is_not_certain() {
    let message = "the stream ended before the reply was complete";
    for (api, event) in [
        (Api::OpenAiChat, delta(json!({"content": "Hi"}))),
        (Api::OpenAiResponses, json!({"type": "response.output_text.delta", "delta": "Hi"})),
        (
            Api::Anthropic,
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}}),
        ),
        (Api::Gemini, json!({"candidates": [{"content": {"parts": [{"text": "Hi"}]}}]})),
    ] {
        let (chunks, outcome) = run(api, &[event]);
        assert_eq!(chunks, [text("Hi"), failure("indeterminate", message)], "{api:?}");
        assert!(outcome.requires_reconciliation && !outcome.is_committed());
    }
    assert!(run(Api::Anthropic, &[]).1.requires_reconciliation);
}

#[test]
fn openai_responses_come_as_events() {
    let call = |arguments: &str| json!({"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": arguments});
    let (chunks, outcome) = run(
        Api::OpenAiResponses,
        &[
            json!({"type": "response.created", "response": {"id": "r", "model": "m", "error": null}}),
            json!({"type": "response.reasoning_summary_text.delta", "delta": "Hm"}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message"}}),
            json!({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}),
            json!({"type": "response.output_text.done", "text": "Hi"}),
            json!({"type": "response.output_item.added", "output_index": 1, "item": call("")}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": "{\"x\""}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 1, "delta": ":1}"}),
            json!({"type": "response.output_item.done", "output_index": 1, "item": call("{\"x\":1}")}),
            json!({"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 1}}}),
        ],
    );
    assert_eq!(
        chunks,
        [
            json!({"kind": "thinking", "value": "Hm"}),
            text("Hi"),
            json!({"kind": "usage", "usage": {"inputTokens": 1, "totalTokens": 1}}),
            tool("c", "f", "{\"x\":1}"),
        ]
    );
    let answer = outcome.answer.unwrap();
    assert_eq!((answer.id.as_deref(), answer.finish.as_deref()), (Some("r"), Some("completed")));
}

#[test]
fn responses_that_fail_refuse_or_stop_short_say_so() {
    let (chunks, _) = run(
        Api::OpenAiResponses,
        &[
            json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "Oh"}}}),
        ],
    );
    assert_eq!(chunks, [failure("determinate", "the provider failed: Oh")]);
    let (chunks, _) = run(Api::OpenAiResponses, &[json!({"type": "error", "code": "x", "message": "Oh"})]);
    assert_eq!(chunks, [failure("determinate", "the provider failed: Oh")]);
    let (chunks, _) = run(
        Api::OpenAiResponses,
        &[
            json!({"type": "response.refusal.delta", "delta": "I cannot"}),
            json!({"type": "response.completed", "response": {}}),
        ],
    );
    assert_eq!(chunks, [failure("determinate", "Model refused: I cannot")]);
    let short = json!({"type": "response.incomplete",
        "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}});
    let (_, outcome) = run(Api::OpenAiResponses, &[short]);
    assert_eq!(outcome.answer.unwrap().finish.as_deref(), Some("max_output_tokens"));
}

#[test]
fn anthropic_comes_as_blocks() {
    let start = |index: u64, block: Json| json!({"type": "content_block_start", "index": index, "content_block": block});
    let delta =
        |index: u64, delta: Json| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let (chunks, outcome) = run(
        Api::Anthropic,
        &[
            json!({"type": "message_start", "message": {"id": "m1", "model": "claude", "usage": {"input_tokens": 5, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            start(0, json!({"type": "thinking", "thinking": ""})),
            delta(0, json!({"type": "thinking_delta", "thinking": "Hm"})),
            delta(0, json!({"type": "signature_delta", "signature": "x"})),
            start(1, json!({"type": "text", "text": ""})),
            delta(1, json!({"type": "text_delta", "text": "Hi"})),
            json!({"type": "content_block_stop", "index": 1}),
            start(2, json!({"type": "tool_use", "id": "t1", "name": "f", "input": {}})),
            delta(2, json!({"type": "input_json_delta", "partial_json": ""})),
            delta(2, json!({"type": "input_json_delta", "partial_json": "{\"x\""})),
            delta(2, json!({"type": "input_json_delta", "partial_json": ":1}"})),
            start(3, json!({"type": "tool_use", "id": "t2", "name": "g", "input": {}})),
            start(4, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
            delta(4, json!({"type": "input_json_delta", "partial_json": "{}"})),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ],
    );
    let usage = |output: u64| json!({"kind": "usage", "usage": {"inputTokens": 5, "outputTokens": output, "totalTokens": 5 + output}});
    assert_eq!(
        chunks,
        [
            usage(1),
            json!({"kind": "thinking", "value": "Hm"}),
            text("Hi"),
            usage(9),
            tool("t1", "f", "{\"x\":1}"),
            tool("t2", "g", "{}"),
        ]
    );
    let answer = outcome.answer.unwrap();
    assert_eq!((answer.id.as_deref(), answer.finish.as_deref()), (Some("m1"), Some("tool_use")));
}

#[test]
fn anthropic_fails_and_refuses_in_the_middle() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    assert_eq!(
        run(Api::Anthropic, &[overloaded]).0,
        [failure("determinate", "the provider failed: Overloaded")]
    );
    let refused = [
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Once"}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "refusal"}}),
        json!({"type": "message_stop"}),
    ];
    let (chunks, outcome) = run(Api::Anthropic, &refused);
    assert_eq!(chunks, [text("Once"), failure("determinate", "Model refused: the model declined to answer")]);
    assert_eq!(outcome.partial_text, "Once");
}

#[test]
fn gemini_comes_as_replies() {
    let call = json!({"functionCall": {"name": "f", "args": {"x": 1}}});
    let (chunks, outcome) = run(
        Api::Gemini,
        &[
            json!({"responseId": "r", "modelVersion": "g",
                "candidates": [{"content": {"parts": [{"text": "Hm", "thought": true}, {"text": "Hi"}]}}]}),
            json!({"candidates": [{"content": {"parts": [call]}}]}),
            json!({"candidates": [{"content": {"parts": [call]}, "finishReason": "STOP"}],
                "usageMetadata": {"promptTokenCount": 1, "totalTokenCount": 1}}),
        ],
    );
    assert_eq!(
        chunks,
        [
            json!({"kind": "thinking", "value": "Hm"}),
            text("Hi"),
            json!({"kind": "usage", "usage": {"inputTokens": 1, "totalTokens": 1}}),
            tool("call_0", "f", "{\"x\":1}"),
            tool("call_1", "f", "{\"x\":1}"),
        ]
    );
    assert_eq!(outcome.answer.unwrap().id.as_deref(), Some("r"));
    let (chunks, _) = run(Api::Gemini, &[json!({"promptFeedback": {"blockReason": "OTHER"}})]);
    assert_eq!(chunks, [failure("determinate", "Model refused: the provider blocked the prompt (OTHER)")]);
    let (chunks, _) = run(Api::Gemini, &[json!({"candidates": [{"finishReason": "SAFETY"}]})]);
    assert_eq!(chunks, [failure("determinate", "Model refused: the provider blocked the answer (SAFETY)")]);
}

#[test]
fn events_of_another_shape_end_the_stream_and_say_where() {
    for (api, event, message) in [
        (Api::OpenAiChat, json!("Hi"), "the reply must be an object, but is a string"),
        (Api::OpenAiChat, json!({"choices": 1}), "`choices` must be an array, but is a number"),
        (
            Api::OpenAiChat,
            delta(json!({"content": 1})),
            "`choices[0].delta.content` must be a string or an array of parts, but is a number",
        ),
        (Api::OpenAiResponses, json!({}), "`type` is missing"),
        (Api::Anthropic, json!({"type": "content_block_delta"}), "`delta` is missing"),
        (Api::Gemini, json!({"candidates": [5]}), "`candidates[0]` must be an object, but is a number"),
        (Api::OpenAiEmbeddings, json!({}), "OpenAI embeddings does not stream replies"),
    ] {
        assert_eq!(run(api, &[event]).0, [failure("indeterminate", message)]);
    }
    let half = delta(json!({"content": "Hi", "tool_calls": 1}));
    let (chunks, outcome) = run(Api::OpenAiChat, &[half]);
    let message = "`choices[0].delta.tool_calls` must be an array, but is a number";
    assert_eq!(chunks, [text("Hi"), failure("indeterminate", message)]);
    assert_eq!(outcome.partial_text, "Hi");
    let nameless = delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}));
    assert_eq!(
        run(Api::OpenAiChat, &[nameless, stop("tool_calls")]).0,
        [failure("indeterminate", "tool call 0 of the stream has no name")]
    );
}

#[test]
fn an_answer_can_be_pictures_without_text() {
    let drawn = json!({"candidates": [{"finishReason": "STOP",
        "content": {"parts": [{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]}}]});
    let reply = |api, events: &[Json]| run(api, events).1.answer.unwrap().reply;
    assert_eq!(reply(Api::Gemini, &[drawn]), Reply::Image("data:image/png;base64,AAAA".into()));
    let done = |result: &str| json!({"type": "response.output_item.done", "item": {"type": "image_generation_call", "result": result}});
    let completed = json!({"type": "response.completed", "response": {}});
    assert_eq!(
        reply(Api::OpenAiResponses, &[done("AAAA"), done("BBBB"), completed]),
        Reply::Images(vec!["AAAA".into(), "BBBB".into()])
    );
}

#[test]
fn a_gateway_may_stream_text_in_parts() {
    let parts = delta(json!({"content": [{"type": "thinking"}, {"type": "text", "text": "Hi"}]}));
    assert_eq!(run(Api::OpenAiChat, &[parts, stop("stop")]).0, [text("Hi")]);
}

#[test]
fn outputs_are_read_at_the_end() {
    let mut stream = Stream::new(Api::OpenAiChat).with_outputs(true);
    for event in [delta(json!({"content": "{\"a\":"})), delta(json!({"content": " 1}"})), stop("stop")] {
        stream.feed(&event);
    }
    let reply = stream.finish().answer.unwrap().reply;
    assert_eq!(reply, Reply::Structured { value: json!({"a": 1}), raw: "{\"a\": 1}".into() });
}

#[test]
fn a_stream_can_be_fed_what_came_over_the_wire() {
    let wire = "data: {\"choices\": [{\"delta\": {\"content\": \"Hi\"}}]}\n\ndata: \n\ndata: [DONE]\n\n";
    let mut stream = Stream::new(Api::OpenAiChat);
    let events = Sse::new().feed(wire.as_bytes());
    let chunks: Vec<Chunk> = events.into_iter().flat_map(|event| stream.feed_sse(&event.unwrap())).collect();
    assert_eq!(chunks, [Chunk::Text("Hi".into())]);
    assert!(stream.finish().is_committed());

    let mut stream = Stream::new(Api::OpenAiChat);
    let cut = SseEvent { event: None, data: "{\"choices\":".into() };
    let chunks = stream.feed_sse(&cut);
    assert!(
        matches!(&chunks[..], [Chunk::Failure { outcome: OutcomeKind::Indeterminate, .. }]),
        "{chunks:?}"
    );
    assert!(stream.feed_sse(&cut).is_empty());
    assert!(!stream.finish().is_committed());
}
