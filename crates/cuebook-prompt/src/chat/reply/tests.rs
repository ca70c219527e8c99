//! What every provider's reply comes to, and what is said of those that come to nothing.

use serde::Deserialize;

use super::*;

fn answer(api: Api, response: Json) -> Answer {
    read(api, &response, false).unwrap_or_else(|error| panic!("{response}: {error}"))
}

fn result(api: Api, response: Json) -> Json {
    answer(api, response).reply.to_json()
}

fn structured(api: Api, response: Json) -> Reply {
    read(api, &response, true).unwrap().reply
}

fn refusal(api: Api, response: Json) -> String {
    match answer(api, response).reply {
        Reply::Refusal(why) => why,
        other => panic!("{other:?}"),
    }
}

fn wrong(api: Api, response: Json) -> String {
    let error = read(api, &response, false).unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::Reply);
    error.diagnostic().message.clone()
}

/// A chat completion with one message.
fn chat(message: Json) -> Json {
    json!({"choices": [{"message": message}]})
}

fn candidate(parts: Json) -> Json {
    json!({"candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}]})
}

#[test]
fn text_is_the_result() {
    assert_eq!(result(Api::OpenAiChat, chat(json!({"content": "Hi"}))), "Hi");
    assert_eq!(result(Api::OpenAiChat, chat(json!({"content": null}))), "");
    assert_eq!(result(Api::OpenAiChat, chat(json!({}))), "");
    assert_eq!(result(Api::OpenAiResponses, json!({"output": [], "output_text": "Hi"})), "Hi");
    assert_eq!(result(Api::OpenAiResponses, json!({"output_text": "Hi"})), "Hi");
    assert_eq!(
        result(
            Api::OpenAiResponses,
            json!({"output": [{"type": "reasoning", "summary": []}, {"type": "message", "content": [
                {"type": "output_text", "text": "H"}, {"type": "output_text", "text": "i"}]}]})
        ),
        "Hi"
    );
    assert_eq!(
        result(
            Api::Anthropic,
            json!({"content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]})
        ),
        "Hi"
    );
    assert_eq!(result(Api::Anthropic, json!({"content": []})), "");
    assert_eq!(result(Api::Gemini, candidate(json!([{"text": "H"}, {"text": "i"}]))), "Hi");
    assert_eq!(result(Api::Gemini, json!({"candidates": [{"finishReason": "MAX_TOKENS"}]})), "");
}

#[test]
fn a_gateway_may_send_text_in_parts() {
    let parts = json!({"content": [{"type": "text", "text": "H"}, {"type": "thinking"}, {"type": "text", "text": "i"}]});
    assert_eq!(result(Api::OpenAiChat, chat(parts)), "Hi");
    assert_eq!(
        refusal(Api::OpenAiChat, chat(json!({"content": [{"type": "refusal", "refusal": "No"}]}))),
        "No"
    );
}

#[test]
fn details_of_a_reply_are_kept() {
    let answer = answer(
        Api::OpenAiChat,
        json!({"id": "c1", "model": "m", "usage": {"prompt_tokens": 1, "completion_tokens": 2},
            "choices": [{"finish_reason": "length", "message": {"content": "Hi", "reasoning_content": "Hm"}}]}),
    );
    assert_eq!(answer.id.as_deref(), Some("c1"));
    assert_eq!(answer.model.as_deref(), Some("m"));
    assert_eq!(answer.finish.as_deref(), Some("length"));
    assert_eq!(answer.thinking.as_deref(), Some("Hm"));
    assert_eq!(answer.usage.unwrap().total, Some(3));
}

#[test]
fn thoughts_are_no_part_of_the_answer() {
    let thought = |api, response| answer(api, response).thinking.unwrap();
    let blocks = json!({"content": [{"type": "thinking", "thinking": "Hm", "signature": "x"},
        {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "Hi"}]});
    assert_eq!(thought(Api::Anthropic, blocks.clone()), "Hm");
    assert_eq!(result(Api::Anthropic, blocks), "Hi");
    let parts = candidate(json!([{"text": "Hm", "thought": true}, {"text": "Hi"}]));
    assert_eq!(thought(Api::Gemini, parts.clone()), "Hm");
    assert_eq!(result(Api::Gemini, parts), "Hi");
    let items =
        json!({"output": [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm"}]}]});
    assert_eq!(thought(Api::OpenAiResponses, items), "Hm");
}

#[test]
fn calls_come_before_text_and_keep_it() {
    let response = chat(json!({"content": "Let me see.", "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
        {"id": "b", "type": "custom", "custom": {"name": "g", "input": "free text"}}]}));
    assert_eq!(
        answer(Api::OpenAiChat, response).reply,
        Reply::ToolCalls {
            calls: vec![
                ToolCall { id: "a".into(), name: "f".into(), arguments: "{\"x\":1}".into() },
                ToolCall { id: "b".into(), name: "g".into(), arguments: "free text".into() },
            ],
            text: Some("Let me see.".into()),
        }
    );
    assert_eq!(result(Api::OpenAiChat, chat(json!({"content": "Hi", "tool_calls": []}))), "Hi");
}

#[test]
fn calls_look_the_same_from_every_provider() {
    let expected = json!([{"id": "c", "name": "f", "arguments": "{\"city\":\"Paris\",\"a\":[1,2.5]}"}]);
    let input = json!({"city": "Paris", "a": [1, 2.5]});
    let call = json!({"content": [{"type": "text", "text": "Hm"}, {"type": "tool_use", "id": "c", "name": "f", "input": input}]});
    assert_eq!(result(Api::Anthropic, call), expected);
    let call = json!({"output": [{"type": "function_call", "id": "fc", "call_id": "c", "name": "f",
        "arguments": "{\"city\":\"Paris\",\"a\":[1,2.5]}"}], "output_text": ""});
    assert_eq!(result(Api::OpenAiResponses, call), expected);
    assert_eq!(
        result(Api::Gemini, candidate(json!([{"functionCall": {"id": "c", "name": "f", "args": input}}]))),
        expected
    );
    let object = chat(json!({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": input}}]}));
    assert_eq!(result(Api::OpenAiChat, object), expected, "some gateways send an object");
}

#[test]
fn calls_without_an_id_are_numbered() {
    let two =
        candidate(json!([{"functionCall": {"name": "f"}}, {"functionCall": {"name": "f", "args": {}}}]));
    assert_eq!(
        result(Api::Gemini, two),
        json!([{"id": "call_0", "name": "f", "arguments": "{}"}, {"id": "call_1", "name": "f", "arguments": "{}"}])
    );
}

#[test]
fn outputs_make_json_of_text_and_keep_every_digit() {
    let raw = "{\"n\": 12345678901234567890123, \"x\": 0.10}";
    let reply = structured(Api::OpenAiChat, chat(json!({"content": raw})));
    assert!(matches!(&reply, Reply::Structured { raw: kept, .. } if kept == raw), "{reply:?}");
    #[derive(Deserialize)]
    struct Figures {
        n: u128,
        x: f64,
    }
    let figures: Figures = reply.cast().unwrap();
    assert_eq!((figures.n, figures.x), (12_345_678_901_234_567_890_123, 0.1));
}

#[test]
fn outputs_are_read_from_every_provider_that_speaks() {
    let expected = json!({"a": 1});
    let text = "{\"a\": 1}";
    for (api, response) in [
        (Api::OpenAiChat, chat(json!({"content": text}))),
        (Api::OpenAiResponses, json!({"output": [], "output_text": text})),
        (Api::Anthropic, json!({"content": [{"type": "text", "text": text}]})),
        (Api::Gemini, candidate(json!([{"text": text}]))),
        (Api::OpenAiChat, chat(json!({"content": "```json\n{\"a\": 1}\n```"}))),
    ] {
        assert_eq!(structured(api, response).to_json(), expected, "{api:?}");
    }
}

#[test]
fn non_json_stays_text_and_json_without_outputs_too() {
    for text in ["not json", "{\"a\": ", "", "{} {}"] {
        assert_eq!(structured(Api::OpenAiChat, chat(json!({"content": text}))), Reply::Text(text.into()));
    }
    assert_eq!(result(Api::OpenAiChat, chat(json!({"content": "{}"}))), "{}");
}

#[test]
fn a_result_can_be_cast() {
    let text = |text: &str| Reply::Text(text.into());
    assert_eq!(text("5").cast::<String>().unwrap(), "5");
    assert_eq!(text("5").cast::<u8>().unwrap(), 5);
    assert_eq!(text("```\n[1]\n```").cast::<Vec<u8>>().unwrap(), [1]);
    assert_eq!(Reply::Embedding(vec![0.5]).cast::<Vec<f64>>().unwrap(), [0.5]);
    let error = text("five").cast::<u8>().unwrap_err();
    assert_eq!(
        error.diagnostic().message,
        "the answer does not fit the requested type: expected ident at line 1 column 2"
    );
    assert!(error.diagnostic().hint.is_some());
    let refused = Reply::Refusal("no".into()).cast::<String>().unwrap_err();
    assert_eq!(refused.diagnostic().message, "the model refused: no");
}

#[test]
fn a_refusal_is_not_an_answer() {
    let null = chat(json!({"content": null, "refusal": "I cannot"}));
    assert_eq!(refusal(Api::OpenAiChat, null.clone()), "I cannot");
    assert_eq!(result(Api::OpenAiChat, null), "I cannot");
    assert_eq!(result(Api::OpenAiChat, chat(json!({"content": "Hi", "refusal": ""}))), "Hi");
    let parts =
        json!({"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot"}]}]});
    assert_eq!(refusal(Api::OpenAiResponses, parts), "I cannot");
    let words = json!({"content": [{"type": "text", "text": "I cannot"}], "stop_reason": "refusal"});
    assert_eq!(refusal(Api::Anthropic, words), "I cannot");
    let silent = json!({"content": [], "stop_reason": "refusal"});
    assert_eq!(refusal(Api::Anthropic, silent), "the model declined to answer");
    let category = json!({"content": [], "stop_reason": "refusal", "stop_details": {"category": "cyber"}});
    assert_eq!(refusal(Api::Anthropic, category), "the model declined to answer (cyber)");
}

#[test]
fn an_answer_that_a_filter_stopped_is_a_refusal() {
    let filtered = json!({"choices": [{"finish_reason": "content_filter", "message": {"content": "Once"}}]});
    assert_eq!(refusal(Api::OpenAiChat, filtered), "a content filter withheld the answer");
    let incomplete =
        json!({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}, "output": []});
    assert_eq!(refusal(Api::OpenAiResponses, incomplete), "a content filter withheld the answer");
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    assert_eq!(refusal(Api::Gemini, blocked), "the provider blocked the prompt (SAFETY)");
    let stopped =
        json!({"candidates": [{"finishReason": "SAFETY", "content": {"parts": [{"text": "Once"}]}}]});
    assert_eq!(refusal(Api::Gemini, stopped), "the provider blocked the answer (SAFETY)");
    let short = json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output_text": "Hi"});
    let short = answer(Api::OpenAiResponses, short);
    assert_eq!((short.reply, short.finish.as_deref()), (Reply::Text("Hi".into()), Some("max_output_tokens")));
}

#[test]
fn a_providers_failure_is_its_own_error() {
    for (api, response, message) in [
        (
            Api::OpenAiChat,
            json!({"error": {"message": "Rate limit", "type": "tokens", "code": "x"}}),
            "Rate limit",
        ),
        (Api::OpenAiChat, json!({"error": "Rate limit"}), "Rate limit"),
        (
            Api::OpenAiResponses,
            json!({"status": "failed", "error": {"code": "server_error", "message": "Oh"}}),
            "Oh",
        ),
        (Api::OpenAiResponses, json!({"status": "failed", "error": null}), "no reason was given"),
        (
            Api::Anthropic,
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "Oh"}}),
            "Oh",
        ),
        (Api::Gemini, json!({"error": {"code": 400, "status": "INVALID_ARGUMENT"}}), "INVALID_ARGUMENT"),
        (Api::Gemini, json!([{"error": {"code": 400, "message": "Oh"}}]), "Oh"),
        (
            Api::Gemini,
            json!({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}),
            "MALFORMED_FUNCTION_CALL",
        ),
        (Api::OpenAiEmbeddings, json!({"error": {}}), "no reason was given"),
    ] {
        let error = read(api, &response, false).unwrap_err();
        assert_eq!(error.code(), Code::ProviderFailed, "{response}");
        assert_eq!(error.diagnostic().message, format!("the provider failed: {message}"));
    }
    for nothing in [json!(null), json!(""), json!(false)] {
        let response = json!({"error": nothing, "choices": [{"message": {"content": "Hi"}}]});
        assert_eq!(result(Api::OpenAiChat, response), "Hi");
    }
    let error = read(Api::Anthropic, &json!({"error": {"type": "overloaded_error", "message": "Oh"}}), false)
        .unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("the provider's error type is `overloaded_error`"));
    assert_eq!(error.field("provider_type"), Some(&json!("overloaded_error")));
}

#[test]
fn several_embeddings_keep_the_order_of_texts() {
    assert_eq!(result(Api::OpenAiEmbeddings, json!({"data": [{"embedding": [1, 0.5]}]})), json!([1.0, 0.5]));
    let swapped = json!({"data": [{"index": 1, "embedding": [2]}, {"index": 0, "embedding": [1]}]});
    assert_eq!(result(Api::OpenAiEmbeddings, swapped), json!([[1.0], [2.0]]));
    assert_eq!(
        result(Api::OpenAiEmbeddings, json!({"data": [{"embedding": "AACAPwAAAD8="}]})),
        json!([1.0, 0.5])
    );
    assert_eq!(
        wrong(Api::OpenAiEmbeddings, json!({"data": []})),
        "`data` is empty, but must hold at least one embedding"
    );
    assert_eq!(
        wrong(Api::OpenAiEmbeddings, json!({"data": [{"embedding": [1, "x"]}]})),
        "`data[0].embedding[1]` must be a number, but is a string"
    );
    assert_eq!(
        wrong(Api::OpenAiEmbeddings, json!({"data": [{"embedding": "AAA="}]})),
        "`data[0].embedding` must be a list of numbers, or 32-bit floats in base64"
    );
}

#[test]
fn a_picture_is_its_url_or_else_its_bytes() {
    assert_eq!(result(Api::OpenAiImages, json!({"data": [{"url": "u", "b64_json": "b"}]})), "u");
    assert_eq!(result(Api::OpenAiImages, json!({"data": [{"url": null, "b64_json": "b"}]})), "b");
    assert_eq!(
        result(Api::OpenAiImages, json!({"data": [{"b64_json": "b"}, {"url": "u"}]})),
        json!(["b", "u"])
    );
    assert_eq!(wrong(Api::OpenAiImages, json!({"data": [{}]})), "`data[0]` has neither `url` nor `b64_json`");
    assert_eq!(
        wrong(Api::OpenAiImages, json!({"data": []})),
        "`data` is empty, but must hold at least one image"
    );
    let drawn = candidate(json!([{"inlineData": {"mimeType": "image/png", "data": "AAAA"}}]));
    assert_eq!(result(Api::Gemini, drawn), "data:image/png;base64,AAAA");
    let drawn = json!({"output": [{"type": "image_generation_call", "result": "AAAA"}]});
    assert_eq!(result(Api::OpenAiResponses, drawn), "AAAA");
}

#[test]
fn a_reply_of_another_shape_says_what_was_expected_where() {
    for (api, response, message) in [
        (Api::OpenAiChat, json!({}), "`choices` is missing"),
        (Api::OpenAiChat, json!("Hi"), "the reply must be an object, but is a string"),
        (Api::OpenAiChat, json!({"choices": {}}), "`choices` must be an array, but is an object"),
        (Api::OpenAiChat, json!({"choices": []}), "`choices` is empty, but must hold one answer"),
        (Api::OpenAiChat, json!({"choices": [{}]}), "`choices[0].message` is missing"),
        (Api::OpenAiChat, chat(json!(1)), "`choices[0].message` must be an object, but is a number"),
        (
            Api::OpenAiChat,
            chat(json!({"content": 5})),
            "`choices[0].message.content` must be a string or an array of parts, but is a number",
        ),
        (
            Api::OpenAiChat,
            chat(json!({"tool_calls": [{"id": "a"}]})),
            "`choices[0].message.tool_calls[0].function` is missing",
        ),
        (Api::OpenAiResponses, json!({}), "`output` is missing"),
        (Api::OpenAiResponses, json!({"output": 1}), "`output` must be an array, but is a number"),
        (
            Api::OpenAiResponses,
            json!({"status": "in_progress", "output": []}),
            "the response is incomplete: its status is `in_progress`",
        ),
        (
            Api::OpenAiResponses,
            json!({"output": [{"type": "function_call", "call_id": "c"}]}),
            "`output[0].name` is missing",
        ),
        (Api::Anthropic, json!({"content": "Hi"}), "`content` must be an array, but is a string"),
        (
            Api::Anthropic,
            json!({"content": [{"type": "tool_use", "name": "f"}]}),
            "`content[0].input` is missing",
        ),
        (Api::Gemini, json!({"candidates": []}), "`candidates` is empty, but must hold one answer"),
        (
            Api::Gemini,
            candidate(json!([{"functionCall": {}}])),
            "`candidates[0].content.parts[0].functionCall.name` is missing",
        ),
    ] {
        assert_eq!(wrong(api, response.clone()), message, "{response}");
    }
}

#[test]
fn a_reply_of_another_interface_is_recognised() {
    let hint =
        |api, response: Json| read(api, &response, false).unwrap_err().diagnostic().hint.clone().unwrap();
    assert_eq!(
        hint(Api::OpenAiResponses, chat(json!({"content": "Hi"}))),
        "this looks like a reply from OpenAI chat, but was read as a reply from OpenAI responses"
    );
    assert_eq!(
        hint(Api::OpenAiChat, json!({"content": [], "stop_reason": "end_turn"})),
        "this looks like a reply from Anthropic messages, but was read as a reply from OpenAI chat"
    );
    assert_eq!(
        hint(Api::OpenAiChat, json!({"choices": []})),
        "it was read as a reply from OpenAI chat: check what the endpoint, or a gateway in front of it, sends"
    );
}
