//! Requests of every kind, and who cannot take them.

use cuebook::chat::wire::Api;
use serde_json::{Value as Json, json};

pub struct Case {
    pub name: &'static str,
    pub input: Json,
    /// The interfaces that have to refuse it.
    pub refused: &'static [&'static str],
    /// The interfaces whose body is more than the provider's types allow, on purpose and with a note.
    pub beyond: &'static [&'static str],
}

const CHAT: &str = "openai-chat";
const RESPONSES: &str = "openai-responses";
const EMBEDDINGS: &str = "openai-embeddings";
const IMAGES: &str = "openai-images";
const ANTHROPIC: &str = "anthropic";
const GEMINI: &str = "gemini";

const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PDF: &str = "JVBERi0xLjQKJSVFT0YKCg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEA";

pub fn requests() -> Vec<Case> {
    let mut cases = texts();
    cases.extend(media());
    cases.extend(conversations());
    cases.extend(schemas());
    cases.extend(options());
    for case in &mut cases {
        case.input["model_id"] = json!("some-model");
    }
    cases
}

fn case(
    name: &'static str,
    input: Json,
    refused: &'static [&'static str],
    beyond: &'static [&'static str],
) -> Case {
    Case { name, input, refused, beyond }
}

/// A request of one user message with these parts.
fn user(parts: Json) -> Json {
    json!({"messages": [{"role": "user", "content": parts}]})
}

/// A question with a further field.
fn asked(key: &str, value: Json) -> Json {
    json!({"messages": [{"role": "user", "content": "Which?"}], key: value})
}

fn texts() -> Vec<Case> {
    let talk = |messages: Json| json!({"messages": messages});
    vec![
        case("a question", user(json!("Why?")), &[], &[]),
        case("unicode", user(json!("Grüße, 世界 👩‍👩‍👧 \u{200f}\u{0}\u{1f} \"\\")), &[], &[]),
        case("several texts in one message", user(json!([text("one"), text("two")])), &[], &[]),
        case(
            "system and user",
            talk(json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why?"}])),
            &[],
            &[],
        ),
        case(
            "every role that speaks",
            talk(json!([
                {"role": "system", "content": "Be brief."},
                {"role": "developer", "content": "Be kind."},
                {"role": "user", "content": "Why?"},
                {"role": "assistant", "content": "Because."},
                {"role": "user", "content": "Really?"},
            ])),
            &[],
            &[],
        ),
        case(
            "the same role again and again",
            talk(json!([
                {"role": "user", "content": "One"},
                {"role": "user", "content": "Two"},
                {"role": "assistant", "content": "Three"},
                {"role": "assistant", "content": "Four"},
                {"role": "user", "content": "Five"},
            ])),
            &[],
            &[],
        ),
        case(
            "a late system message",
            talk(json!([
                {"role": "user", "content": "Hello"},
                {"role": "system", "content": "Now in French."},
                {"role": "user", "content": "Again"},
            ])),
            &[],
            &[],
        ),
        case(
            "empty messages between others",
            talk(json!([
                {"role": "system", "content": ""},
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": ""},
                {"role": "assistant", "content": []},
                {"role": "user", "content": "Again"},
            ])),
            &[],
            &[],
        ),
        case(
            "only a system message",
            talk(json!([{"role": "system", "content": "A red fox"}])),
            &[RESPONSES, ANTHROPIC, GEMINI],
            &[],
        ),
        case("an empty question", user(json!("")), &[EMBEDDINGS, IMAGES, ANTHROPIC, GEMINI], &[]),
        case("no messages", talk(json!([])), &[CHAT, RESPONSES, EMBEDDINGS, IMAGES, ANTHROPIC, GEMINI], &[]),
        case(
            "a role that nobody knows",
            talk(json!([{"role": "narrator", "content": "Night falls."}])),
            &[CHAT, RESPONSES, ANTHROPIC, GEMINI],
            &[],
        ),
        case(
            "a name",
            talk(json!([{"role": "user", "content": "Hi", "metadata": {"name": "Bob"}}])),
            &[],
            &[],
        ),
        case(
            "an attribute that nobody knows",
            talk(json!([{"role": "user", "content": "Hi", "metadata": {"id": 7}}])),
            &[],
            &[CHAT],
        ),
    ]
}

fn text(value: &str) -> Json {
    json!({"kind": "text", "value": value})
}

fn media() -> Vec<Case> {
    let of = |kind: &str, value: &str| json!({"kind": kind, "value": value});
    let typed = |kind: &str, value: &str, media_type: &str| json!({"kind": kind, "value": value, "mediaType": media_type});
    let with = |part: Json| user(json!([text("Look:"), part, text("What is it?")]));
    let inside = |role: &str| {
        json!({"messages": [
            {"role": role, "content": [text("Look:"), of("image", "https://example.com/a.png")]},
            {"role": "user", "content": "What is it?"},
        ]})
    };
    const NO_MEDIA: &[&str] = &[EMBEDDINGS, IMAGES];
    const NO_IDS: &[&str] = &[CHAT, EMBEDDINGS, IMAGES, GEMINI];
    const NO_SOUND: &[&str] = &[RESPONSES, EMBEDDINGS, IMAGES, ANTHROPIC];
    const NO_PROVIDER: &[&str] = &[CHAT, RESPONSES, EMBEDDINGS, IMAGES, ANTHROPIC, GEMINI];
    vec![
        case("a picture by URL", with(of("image", "https://example.com/a.png?x=1")), NO_MEDIA, &[]),
        case("a picture in base64", with(of("image", PNG)), NO_MEDIA, &[]),
        case("a picture with its type", with(typed("image", PNG, "image/png")), NO_MEDIA, &[]),
        case(
            "a picture as a data URI",
            with(of("image", &format!("data:image/png;base64,{PNG}"))),
            NO_MEDIA,
            &[],
        ),
        case("a picture with an id", with(of("image", "file-abc123")), NO_IDS, &[]),
        case(
            "a picture in a store",
            with(of("image", "gs://bucket/a.png")),
            &[CHAT, RESPONSES, EMBEDDINGS, IMAGES, ANTHROPIC],
            &[],
        ),
        case(
            "a picture with a detail",
            with(json!({"kind": "image", "value": PNG, "detail": "low"})),
            NO_MEDIA,
            &[],
        ),
        case("nothing but a picture", user(json!([of("image", PNG)])), NO_MEDIA, &[]),
        case("a picture that is not here", with(of("image", "photos/cat.png")), NO_PROVIDER, &[]),
        case("a picture of no known type", with(of("image", "AAAAAAAAAAAAAAAAAAAAAAAA")), NO_PROVIDER, &[]),
        case(
            "a picture of an odd type",
            with(typed("image", PNG, "image/tiff")),
            &[EMBEDDINGS, IMAGES, ANTHROPIC],
            &[],
        ),
        case("a picture in a system message", inside("system"), &[EMBEDDINGS], &[]),
        case(
            "a picture from the assistant",
            inside("assistant"),
            &[CHAT, RESPONSES, EMBEDDINGS, ANTHROPIC],
            &[],
        ),
        case("a sound", with(of("audio", WAV)), NO_SOUND, &[]),
        case("a sound in MP3", with(typed("audio", "SUQzBAAAAAAAAAAA", "audio/mpeg")), NO_SOUND, &[]),
        case(
            "a sound as a data URI",
            with(of("audio", &format!("data:audio/wav;base64,{WAV}"))),
            NO_SOUND,
            &[],
        ),
        case(
            "a sound by URL",
            with(of("audio", "https://example.com/a.mp3")),
            &[CHAT, RESPONSES, EMBEDDINGS, IMAGES, ANTHROPIC],
            &[],
        ),
        case("a sound in Ogg", with(typed("audio", "T2dnUwACAAAAAAAA", "audio/ogg")), NO_SOUND, &[CHAT]),
        case("a PDF", with(json!({"kind": "file", "value": PDF, "name": "plan.pdf"})), NO_MEDIA, &[]),
        case("a PDF without a name", with(of("file", PDF)), NO_MEDIA, &[]),
        case("a PDF by URL", with(of("file", "https://example.com/plan.pdf")), NO_MEDIA, &[CHAT]),
        case("a file with an id", with(of("file", "file-abc123")), &[EMBEDDINGS, IMAGES, GEMINI], &[]),
        case("a text file", with(of("file", "data:text/plain,100%25%20gr%C3%BCn")), NO_MEDIA, &[]),
        case(
            "a spreadsheet",
            with(json!({"kind": "file", "value": PDF, "name": "plan.xlsx"})),
            &[EMBEDDINGS, IMAGES, ANTHROPIC],
            &[],
        ),
        case("a file that is a picture", with(typed("file", PNG, "image/png")), NO_MEDIA, &[]),
    ]
}

fn calls() -> Json {
    json!([
        {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": "{\"city\": \"Paris\"}"}},
        {"id": "call_2", "type": "function", "function": {"name": "clock", "arguments": ""}},
    ])
}

fn conversations() -> Vec<Case> {
    let after = |calls: Json, rest: Json| {
        let mut messages = vec![
            json!({"role": "user", "content": "Weather and time?"}),
            json!({"role": "assistant", "content": "", "metadata": {"tool_calls": calls}}),
        ];
        messages.extend(rest.as_array().unwrap().clone());
        json!({"messages": messages})
    };
    let answer = |id: &str, content: Json| json!({"role": "tool", "content": content, "metadata": {"tool_call_id": id}});
    let item = json!({"type": "function_call", "call_id": "c1", "name": "clock", "arguments": "{}"});
    vec![
        case("calls without answers", after(calls(), json!([])), &[], &[]),
        case(
            "calls and answers",
            after(
                calls(),
                json!([
                    answer("call_1", json!("{\"celsius\": 21}")),
                    answer("call_2", json!("noon")),
                    {"role": "user", "content": "Thanks"},
                    {"role": "assistant", "content": "You are welcome."},
                    {"role": "user", "content": "And tomorrow?"},
                ]),
            ),
            &[],
            &[],
        ),
        case(
            "answers behind other words",
            after(
                calls(),
                json!([
                    {"role": "user", "content": "Hurry!"},
                    answer("call_1", json!("{}")),
                    answer("call_2", json!("")),
                ]),
            ),
            &[],
            &[],
        ),
        case(
            "an answer with the name of its function",
            json!({"messages": [
                {"role": "user", "content": "Time?"},
                {"role": "tool", "content": "noon", "metadata": {"tool_call_id": "c9", "name": "clock"}},
            ]}),
            &[],
            &[],
        ),
        case(
            "an answer to a call that nobody made",
            json!({"messages": [{"role": "user", "content": "Time?"}, answer("c9", json!("noon"))]}),
            &[GEMINI],
            &[],
        ),
        case(
            "an answer to nothing",
            json!({"messages": [{"role": "user", "content": "Time?"}, {"role": "tool", "content": "noon"}]}),
            &[CHAT, RESPONSES, ANTHROPIC, GEMINI],
            &[],
        ),
        case(
            "a picture as an answer",
            after(
                json!([{"id": "call_1", "function": {"name": "camera", "arguments": "{}"}}]),
                json!([answer("call_1", json!([text("Here:"), {"kind": "image", "value": PNG}]))]),
            ),
            &[CHAT, EMBEDDINGS],
            &[],
        ),
        case(
            "calls in the form of a reply's result",
            after(json!([{"id": "call_1", "name": "clock", "arguments": {"zone": "CET"}}]), json!([])),
            &[],
            &[],
        ),
        case(
            "calls as responses gave them",
            json!({"messages": [
                {"role": "user", "content": "Time?"},
                {"role": "assistant", "content": "", "metadata": {"responses_function_call": item}},
                answer("c1", json!("noon")),
            ]}),
            &[],
            &[],
        ),
        case(
            "calls with arguments that are no JSON",
            after(json!([{"id": "call_1", "function": {"name": "clock", "arguments": "{"}}]), json!([])),
            &[ANTHROPIC, GEMINI],
            &[],
        ),
        case(
            "a call without a name",
            after(json!([{"id": "call_1"}]), json!([])),
            &[CHAT, RESPONSES, ANTHROPIC, GEMINI],
            &[],
        ),
    ]
}

fn every_kind() -> Json {
    json!([
        {"name": "word", "kind": "string", "required": true, "description": "A word"},
        {"name": "count", "kind": "integer"},
        {"name": "share", "kind": "float", "nullable": true, "required": true},
        {"name": "old", "kind": "number"},
        {"name": "sure", "kind": "boolean"},
        {"name": "unit", "kind": "string", "enumValues": ["c", "f"]},
        {"name": "tags", "kind": "array", "items": {"kind": "string"}},
        {"name": "points", "kind": "array", "required": true, "items": {"kind": "object", "properties": [
            {"name": "x", "kind": "float", "required": true},
            {"name": "label", "kind": "string"},
        ]}},
        {"name": "style", "kind": "object", "required": true, "properties": {
            "color": {"kind": "string", "required": true},
            "border": {"kind": "object", "properties": {"width": {"kind": "integer"}}},
        }},
        {"name": "either", "kind": "union", "anyOf": [{"kind": "string"}, {"kind": "integer", "nullable": true}]},
    ])
}

fn schemas() -> Vec<Case> {
    let tool = |parameters: Json, strict: Json| {
        let function = json!({
            "kind": "function", "name": "act", "description": "Acts", "parameters": parameters, "strict": strict,
        });
        asked("tools", json!([function]))
    };
    let one_of = json!([{"name": "either", "kind": "union", "required": true, "oneOf": [{"kind": "string"}, {"kind": "integer"}]}]);
    let free = json!([{"name": "free", "kind": "object"}, {"name": "rank", "kind": "integer", "enumValues": [1, 2]}]);
    let custom = json!([{"name": "what", "kind": "colour"}, {"name": "photo", "kind": "image"}]);
    vec![
        case("outputs of every kind", asked("outputs", every_kind()), &[], &[]),
        case("a function with every kind", tool(every_kind(), json!(null)), &[], &[]),
        case("a strict function with every kind", tool(every_kind(), json!(true)), &[], &[]),
        case("a function without parameters", tool(json!([]), json!(null)), &[], &[]),
        case("a strict function without parameters", tool(json!([]), json!(true)), &[], &[]),
        case("outputs with oneOf", asked("outputs", one_of.clone()), &[CHAT, RESPONSES], &[]),
        case("a function with oneOf", tool(one_of.clone(), json!(false)), &[], &[]),
        case("a strict function with oneOf", tool(one_of, json!(true)), &[CHAT, RESPONSES], &[]),
        case("outputs that say little", asked("outputs", free.clone()), &[], &[]),
        case("a function that says little", tool(free, json!(null)), &[], &[]),
        case(
            "outputs of unknown kinds",
            asked("outputs", custom.clone()),
            &[CHAT, RESPONSES, ANTHROPIC],
            &[],
        ),
        case("a function of unknown kinds", tool(custom, json!(null)), &[], &[]),
        case(
            "a function with a bound parameter",
            asked(
                "tools",
                json!([{
                    "kind": "function", "name": "act", "bindings": {"unit": {"input": "unit"}},
                    "parameters": [{"name": "unit", "kind": "string", "required": true}],
                }]),
            ),
            &[],
            &[],
        ),
        case(
            "tools that are no functions",
            asked(
                "tools",
                json!([
                    {"kind": "mcp", "name": "files", "serverName": "files", "connection": {"kind": "reference"}},
                    {"kind": "openapi", "name": "shop", "specification": "shop.json"},
                    {"kind": "web_search", "name": "search"},
                ]),
            ),
            &[],
            &[],
        ),
    ]
}

fn options() -> Vec<Case> {
    let all = json!({
        "temperature": 0.7, "maxOutputTokens": 500, "topP": 0.9, "topK": 40, "frequencyPenalty": 0.5,
        "presencePenalty": -0.5, "seed": 42, "stopSequences": [".", "!"], "allowMultipleToolCalls": false,
    });
    let stream = json!({"additionalProperties": {"stream": true}});
    vec![
        case("every option", asked("options", all.clone()), &[], &[]),
        case(
            "every option, with a tool",
            json!({
                "messages": [{"role": "user", "content": "Which?"}],
                "options": all,
                "tools": [{"kind": "function", "name": "act", "parameters": []}],
            }),
            &[],
            &[],
        ),
        case("a stream", asked("options", stream), &[], &[]),
    ]
}

/// A request with everything that an interface takes.
pub fn everything(api: Api) -> Json {
    let mut request = json!({
        "model_id": "some-model",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [text("Look:"), {"kind": "image", "value": PNG}]},
            {"role": "assistant", "content": "", "metadata": {"tool_calls": calls()}},
            {"role": "tool", "content": "sun", "metadata": {"tool_call_id": "call_1"}},
            {"role": "tool", "content": "noon", "metadata": {"tool_call_id": "call_2"}},
        ],
        "tools": [{"kind": "function", "name": "act", "strict": true, "parameters": every_kind()}],
        "outputs": every_kind(),
        "options": {"maxOutputTokens": 50},
    });
    if matches!(api, Api::OpenAiEmbeddings | Api::OpenAiImages) {
        request = asked("model_id", json!("some-model"));
    }
    request
}

/// Bodies that have to be refused: the interface, where [`everything`] is changed, and to what; `null` takes it away.
pub fn faults() -> Vec<(Api, &'static str, Json)> {
    let mut faults = vec![
        (Api::OpenAiChat, "/messages/1/content/1/type", json!("input_image")),
        (Api::OpenAiChat, "/messages/1/content/1/image_url/size", json!(3)),
        (Api::OpenAiChat, "/messages/2/tool_calls/0/function/arguments", json!({})),
        (Api::OpenAiChat, "/messages/3/tool_call_id", json!(null)),
        (Api::OpenAiChat, "/max_completion_tokens", json!("50")),
        (Api::OpenAiChat, "/tools/0/function/parameters/required", json!(["word"])),
        (
            Api::OpenAiChat,
            "/response_format/json_schema/schema/properties/style/additionalProperties",
            json!(null),
        ),
        (Api::OpenAiChat, "/response_format/json_schema/name", json!(null)),
        (Api::OpenAiResponses, "/input/0/content/1/image_url", json!({"url": "https://example.com/a.png"})),
        (Api::OpenAiResponses, "/input/0/content/0/type", json!("text")),
        (Api::OpenAiResponses, "/input/1/call_id", json!(null)),
        (Api::OpenAiResponses, "/tools/0/function", json!({"name": "act"})),
        (Api::OpenAiResponses, "/text/format/schema/properties/either/oneOf", json!([])),
        (Api::OpenAiEmbeddings, "/input", json!(null)),
        (Api::OpenAiImages, "/prompt", json!(["Which?"])),
        (Api::Anthropic, "/max_tokens", json!(null)),
        (Api::Anthropic, "/seed", json!(42)),
        (Api::Anthropic, "/messages/0/content/1/source/media_type", json!("image/tiff")),
        (Api::Anthropic, "/messages/0/content/0/text", json!("")),
        (Api::Anthropic, "/messages/0/role", json!("tool")),
        (Api::Anthropic, "/messages/1/content/0/input", json!("{}")),
        (Api::Anthropic, "/messages/2/content/0", json!({"type": "text", "text": "Hurry!"})),
        (Api::Anthropic, "/tools/0/parameters", json!({})),
        (Api::Anthropic, "/output_config/format/schema/additionalProperties", json!(true)),
        (Api::Gemini, "/contents/0/parts/1/inlineData/mime_type", json!("image/png")),
        (Api::Gemini, "/contents/0/parts/1/inlineData/data", json!(7)),
        (Api::Gemini, "/contents/1/role", json!("user")),
        (Api::Gemini, "/contents/1/parts/0/functionCall/arguments", json!({})),
        (Api::Gemini, "/generationConfig/maxTokens", json!(50)),
        (Api::Gemini, "/generationConfig/responseSchema/additionalItems", json!(false)),
        (Api::Gemini, "/tools/0/functionDeclarations/0/parameters/properties/word/type", json!("WORD")),
    ];
    for api in Api::ALL {
        faults.push((api, "/surprise", json!(1)));
    }
    for api in [Api::OpenAiChat, Api::OpenAiEmbeddings, Api::Anthropic] {
        faults.push((api, "/model", json!(null)));
    }
    faults
}
