//! What is said, and how each provider hears it: conversations, pictures, sounds, files.

use cuebook::chat::wire::Api;
use serde_json::{Value as Json, json};

use crate::rules::{notes, wire};
use crate::spoken::SentMessages;

fn with_part(part: Json) -> Json {
    json!({"messages": [{"role": "user", "content": [{"kind": "text", "value": "Look"}, part]}]})
}

#[test]
fn a_conversation_with_calls_is_translated_for_every_provider() {
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let input = json!({"messages": [
        {"role": "user", "content": "Weather and time?"},
        {"role": "assistant", "content": "A moment.", "metadata": {"tool_calls": [
            call("c1", "weather", "{\"city\":\"Paris\"}"), call("c2", "clock", ""),
        ]}},
        {"role": "tool", "content": "{\"celsius\":21}", "metadata": {"tool_call_id": "c1"}},
        {"role": "tool", "content": "noon", "metadata": {"tool_call_id": "c2", "is_error": true}},
        {"role": "user", "content": "Thanks"},
    ]});
    let chat = wire(Api::OpenAiChat, input.clone()).body;
    assert_eq!(chat["messages"][1]["tool_calls"][1], call("c2", "clock", ""));
    assert_eq!(
        chat["messages"][2],
        json!({"role": "tool", "tool_call_id": "c1", "content": "{\"celsius\":21}"})
    );
    assert_eq!(
        wire(Api::OpenAiResponses, input.clone()).body["input"],
        json!([
            {"role": "user", "content": "Weather and time?"},
            {"role": "assistant", "content": "A moment."},
            {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{\"city\":\"Paris\"}"},
            {"type": "function_call", "call_id": "c2", "name": "clock", "arguments": ""},
            {"type": "function_call_output", "call_id": "c1", "output": "{\"celsius\":21}"},
            {"type": "function_call_output", "call_id": "c2", "output": "noon"},
            {"role": "user", "content": "Thanks"},
        ])
    );
    assert_eq!(
        wire(Api::Anthropic, input.clone()).body["messages"],
        json!([
            {"role": "user", "content": [{"type": "text", "text": "Weather and time?"}]},
            {"role": "assistant", "content": [
                {"type": "text", "text": "A moment."},
                {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Paris"}},
                {"type": "tool_use", "id": "c2", "name": "clock", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "{\"celsius\":21}"},
                {"type": "tool_result", "tool_use_id": "c2", "content": "noon", "is_error": true},
                {"type": "text", "text": "Thanks"},
            ]},
        ])
    );
    assert_eq!(
        wire(Api::Gemini, input).body["contents"],
        json!([
            {"role": "user", "parts": [{"text": "Weather and time?"}]},
            {"role": "model", "parts": [
                {"text": "A moment."},
                {"functionCall": {"id": "c1", "name": "weather", "args": {"city": "Paris"}}},
                {"functionCall": {"id": "c2", "name": "clock", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "c1", "name": "weather", "response": {"celsius": 21}}},
                {"functionResponse": {"id": "c2", "name": "clock", "response": {"output": "noon"}}},
                {"text": "Thanks"},
            ]},
        ])
    );
}

#[test]
fn provider_data_of_a_call_returns_to_its_provider() {
    let item =
        json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "clock", "arguments": "{}"});
    let message = |metadata: Json| json!({"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "", "metadata": metadata}]});
    let given = message(json!({"responses_function_call": item}));
    assert_eq!(wire(Api::OpenAiResponses, given.clone()).body["input"][1], item);
    let chat = wire(Api::OpenAiChat, given).body;
    assert_eq!(
        chat["messages"][1],
        json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "clock", "arguments": "{}"}},
        ]})
    );
    let signed = json!({"tool_calls": [{
        "id": "c1", "function": {"name": "clock", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "c2ln"}},
    }]});
    let gemini = wire(Api::Gemini, message(signed)).body;
    assert_eq!(gemini["contents"][1]["parts"][0]["thoughtSignature"], "c2ln");
}

#[test]
fn system_messages_become_one_and_a_late_one_is_noted() {
    let input = json!({"messages": [
        {"role": "system", "content": "One"},
        {"role": "developer", "content": "Two"},
        {"role": "user", "content": "Hi"},
        {"role": "system", "content": "Three"},
    ]});
    for (api, place) in [
        (Api::OpenAiResponses, "/instructions"),
        (Api::Anthropic, "/system"),
        (Api::Gemini, "/systemInstruction/parts/0/text"),
    ] {
        let wire = wire(api, input.clone());
        assert_eq!(wire.body.pointer(place), Some(&json!("One\n\nTwo\n\nThree")));
        assert_eq!(notes(&wire), ["message 4 (system) is moved to the beginning of the conversation"]);
    }
}

#[test]
fn an_empty_message_is_dropped_with_a_note() {
    let input = json!({"messages": [
        {"role": "user", "content": "a"}, {"role": "assistant", "content": " "}, {"role": "user", "content": "b"},
    ]});
    let wire = wire(Api::Anthropic, input);
    let turn = |text: &str| json!({"role": "user", "content": [{"type": "text", "text": text}]});
    assert_eq!(wire.body["messages"], json!([turn("a"), turn("b")]));
    assert_eq!(notes(&wire), ["message 2 (assistant) is empty and is not sent"]);
}

#[test]
fn a_picture_is_sent_as_it_came_wherever_that_is_possible() {
    let uri = "data:image/png;charset=x;base64,aGk=";
    let image = |value: &str, media_type: Json| {
        with_part(json!({"kind": "image", "value": value, "mediaType": media_type, "detail": "high"}))
    };
    let sent = |api, value: &str, media_type: Json| {
        let body = wire(api, image(value, media_type)).body;
        let parts = body.pointer("/messages/0/content").or(body.pointer("/input/0/content"));
        parts.or(body.pointer("/contents/0/parts")).unwrap()[1].clone()
    };
    assert_eq!(
        sent(Api::OpenAiChat, uri, json!(null)),
        json!({"type": "image_url", "image_url": {"url": uri, "detail": "high"}})
    );
    assert_eq!(
        sent(Api::OpenAiResponses, "aGk=", json!("image/JPG")),
        json!({"type": "input_image", "image_url": "data:image/jpeg;base64,aGk=", "detail": "high"})
    );
    let base64 = json!({"type": "base64", "media_type": "image/png", "data": "aGk="});
    assert_eq!(sent(Api::Anthropic, uri, json!(null)), json!({"type": "image", "source": base64}));
    assert_eq!(
        sent(Api::Anthropic, "https://e.com/a", json!(null)),
        json!({"type": "image", "source": {"type": "url", "url": "https://e.com/a"}})
    );
    assert_eq!(
        sent(Api::Gemini, "https://e.com/a.webp", json!(null)),
        json!({"fileData": {"mimeType": "image/webp", "fileUri": "https://e.com/a.webp"}})
    );
    assert_eq!(
        sent(Api::Gemini, uri, json!(null)),
        json!({"inlineData": {"mimeType": "image/png", "data": "aGk="}})
    );
}

#[test]
fn a_sound_has_the_name_of_its_format() {
    for (media_type, format) in [
        (json!(null), "wav"),
        (json!("audio/x-wav"), "wav"),
        (json!("audio/mp3"), "mp3"),
        (json!("audio/mpeg"), "mp3"),
        (json!("audio/flac"), "flac"),
        (json!("audio/aac"), "aac"),
    ] {
        let wire = wire(
            Api::OpenAiChat,
            with_part(json!({"kind": "audio", "value": "aGk=", "mediaType": media_type})),
        );
        let audio = json!({"type": "input_audio", "input_audio": {"data": "aGk=", "format": format}});
        assert_eq!(wire.body["messages"][0]["content"][1], audio);
        assert_eq!(wire.notes.is_empty(), ["wav", "mp3"].contains(&format), "{:?}", notes(&wire));
    }
}

#[test]
fn a_file_goes_by_value_by_id_or_by_url() {
    let file = |api, value: &str| {
        let wire = wire(api, with_part(json!({"kind": "file", "value": value, "name": "plan.pdf"})));
        let body = &wire.body;
        let parts = body.pointer("/messages/0/content").or(body.pointer("/input/0/content")).unwrap();
        (parts[1].clone(), wire.notes.len())
    };
    let data = "data:application/pdf;base64,aGk=";
    let inline = json!({"filename": "plan.pdf", "file_data": data});
    assert_eq!(file(Api::OpenAiChat, "aGk="), (json!({"type": "file", "file": inline}), 0));
    assert_eq!(file(Api::OpenAiChat, "file-1").0["file"], json!({"file_id": "file-1"}));
    let url = "https://e.com/plan.pdf";
    assert_eq!(file(Api::OpenAiChat, url), (json!({"type": "file", "file": {"url": url}}), 1));
    assert_eq!(
        file(Api::OpenAiResponses, "aGk=").0,
        json!({"type": "input_file", "filename": "plan.pdf", "file_data": data})
    );
    assert_eq!(file(Api::OpenAiResponses, url), (json!({"type": "input_file", "file_url": url}), 0));
    let (document, _) = file(Api::Anthropic, "aGk=");
    assert_eq!((&document["type"], &document["title"]), (&json!("document"), &json!("plan.pdf")));
    let text = wire(Api::Anthropic, with_part(json!({"kind": "file", "value": "data:text/csv,a%2Cb"})));
    let source = json!({"type": "text", "media_type": "text/plain", "data": "a,b"});
    assert_eq!(text.body["messages"][0]["content"][1]["source"], source);
}

#[test]
fn embeddings_use_all_texts_images_the_last_question() {
    let input = json!({
        "messages": [
            {"role": "system", "content": "One"}, {"role": "user", "content": "Two"},
            {"role": "assistant", "content": ""}, {"role": "user", "content": "Three"},
        ],
        "tools": [{"kind": "function", "name": "act", "parameters": []}],
        "options": {"additionalProperties": {"dimensions": 8}},
    });
    let embeddings = wire(Api::OpenAiEmbeddings, input.clone());
    assert_eq!(embeddings.body, json!({"model": "m", "input": ["One", "Two", "Three"], "dimensions": 8}));
    assert_eq!(notes(&embeddings), ["the prompt's tools are not sent"]);
    let images = wire(Api::OpenAiImages, input);
    assert_eq!(images.body, json!({"model": "m", "prompt": "Three", "dimensions": 8}));
    assert_eq!(notes(&images).len(), 4, "{:?}", notes(&images));
    let described = json!({"messages": [{"role": "system", "content": "A red fox"}]});
    assert_eq!(wire(Api::OpenAiImages, described).body["prompt"], "A red fox");
}

proptest::proptest! {
    #[test]
    fn no_source_and_no_call_brings_a_format_down(
        source in "(data:|file:|https://|~/)?[ -~é]{0,12}(;base64)?,?[A-Za-z0-9+/=%\n]{0,40}",
        kind in "image|audio|file",
        arguments in "[{}\":a,0-9 \\[\\]]{0,12}",
    ) {
        let calls = json!([{"id": "c1", "function": {"name": "act", "arguments": arguments}}]);
        let with_call = json!({"messages": [
            {"role": "user", "content": "?"}, {"role": "assistant", "metadata": {"tool_calls": calls}},
        ]});
        let inputs = [with_part(json!({"kind": kind, "value": source})), with_call];
        for (api, mut input) in Api::ALL.into_iter().flat_map(|api| inputs.clone().map(|input| (api, input))) {
            input["model_id"] = json!("m");
            if let Err(error) = SentMessages::read(&input).body(api) {
                proptest::prop_assert!(error.diagnostic().hint.is_some(), "{}", error);
            }
        }
    }
}
