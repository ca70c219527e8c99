//! The way to a model and back: a render, the request, the provider's reply, a Rust type.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

mod support;

use cuebook::chat::output::OutputSpec;
use cuebook::chat::reply::Reply;
use cuebook::chat::wire::{Api, Wire};
use cuebook::sections::{Section, SectionTool, Setting, Tree};
use cuebook::{Code, variables};
use serde_json::{Value as Json, json};
use support::Project;

#[derive(Debug, PartialEq, serde::Deserialize, schemars::JsonSchema)]
struct Verdict {
    label: String,
    score: f64,
}

#[derive(serde::Serialize, schemars::JsonSchema)]
struct Search {
    /// What to look for.
    query: String,
}

const APIS: [Api; 4] = [Api::OpenAiChat, Api::OpenAiResponses, Api::Anthropic, Api::Gemini];

const PROMPTY: &str = "---
model: {id: m, provider: openai}
outputs:
  label: {kind: string}
  score: {kind: float}
tools:
  - {name: search, kind: function, description: Look, parameters: [{name: query, kind: string, required: true}]}
---
user:
Judge {{ text }}";

const SECTIONS: &str = "---
model: {id: m, provider: openai}
output:
  label: {kind: string}
  score: {kind: float}
---
# Task

Judge $text";

fn from_files(id: &str) -> cuebook::Rendered {
    let project = Project::new().file("prompts/p.prompty", PROMPTY).file("prompts/s.sections.md", SECTIONS);
    project.book().prompt(id).vars(&variables! { text: "it" }).render().unwrap()
}

fn from_rust() -> cuebook::Rendered {
    let search = SectionTool::new("search", "Look").unwrap().takes::<Search>().unwrap();
    let section = Section::new("task", "Task", "Judge it").tool(search);
    let tree = Tree::builder("tests", "judge").section(section).model("openai", "m");
    let tree = tree.output(OutputSpec::of::<Verdict>().unwrap()).build().unwrap();
    tree.render(&Setting::new(&[])).unwrap().into_rendered()
}

/// A whole reply of each provider that says this.
fn reply(api: Api, text: &str) -> Json {
    match api {
        Api::OpenAiChat => json!({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}),
        Api::OpenAiResponses => json!({"status": "completed", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]}),
        Api::Anthropic => json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
            "content": [{"type": "text", "text": text}]}),
        _ => json!({"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}),
    }
}

#[test]
fn replies_become_rust_types_for_every_dialect() {
    let said = "{\"label\": \"bug\", \"score\": 0.5}";
    for (name, rendered) in
        [("prompty", from_files("p")), ("sections", from_files("s")), ("rust", from_rust())]
    {
        for api in APIS {
            let wire = rendered.wire_for(api).unwrap_or_else(|error| panic!("{name} {api}: {error:?}"));
            assert_eq!(wire.api, api);
            let verdict: Verdict = wire.read_as(&reply(api, said)).unwrap();
            assert_eq!(verdict, Verdict { label: "bug".into(), score: 0.5 }, "{name} {api}");
            let error = wire.read_as::<Verdict>(&reply(api, "{\"label\": \"bug\"}")).unwrap_err();
            assert!(matches!(error.code(), Code::BadReply | Code::OutputMismatch), "{error:?}");
        }
    }
}

#[test]
fn a_tree_built_in_rust_is_sent_with_its_tools_schema_and_model() {
    let places = [
        (Api::OpenAiChat, "/tools/0/function/name", "/response_format/json_schema/schema/required"),
        (Api::Anthropic, "/tools/0/name", "/output_config/format/schema/required"),
    ];
    let rendered = from_rust();
    assert_eq!(rendered.tools().iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["search"]);
    for (api, tool, required) in places {
        let Wire { body, .. } = rendered.wire_for(api).unwrap();
        assert_eq!(body.pointer(tool).unwrap(), "search", "{body:#}");
        assert_eq!(body.pointer(required).unwrap(), &json!(["label", "score"]), "{body:#}");
        assert_eq!(body["model"], "m");
    }
}

#[test]
fn a_request_says_where_it_goes_and_whether_it_streams() {
    let rendered = from_files("p");
    let paths = APIS.map(|api| rendered.wire_for(api).unwrap().path);
    assert_eq!(paths, ["/chat/completions", "/responses", "/messages", "/models/m:generateContent"]);
    let streamed = APIS.map(|api| rendered.wire_for(api).unwrap().streaming());
    assert_eq!(streamed[3].path, "/models/m:streamGenerateContent?alt=sse");
    assert_eq!(streamed[3].body.get("stream"), None);
    assert!(streamed[..3].iter().all(|wire| wire.body["stream"] == true));
    assert_eq!(streamed[0].body["stream_options"], json!({"include_usage": true}));
}

/// The events of a stream of each provider that says these pieces.
fn events(api: Api, pieces: &[&str]) -> Vec<Json> {
    let said = pieces.iter().copied();
    match api {
        Api::OpenAiChat => said
            .map(|piece| json!({"choices": [{"delta": {"content": piece}}]}))
            .chain([json!({"choices": [{"delta": {}, "finish_reason": "stop"}]})])
            .collect(),
        Api::OpenAiResponses => said
            .map(|piece| json!({"type": "response.output_text.delta", "delta": piece}))
            .chain([json!({"type": "response.completed", "response": {"status": "completed", "output": []}})])
            .collect(),
        Api::Anthropic => [
            json!({"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        ]
        .into_iter()
        .chain(said.map(|piece| {
            let delta = json!({"type": "text_delta", "text": piece});
            json!({"type": "content_block_delta", "index": 0, "delta": delta})
        }))
        .chain([
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            json!({"type": "message_stop"}),
        ])
        .collect(),
        _ => said
            .map(|piece| json!({"candidates": [{"content": {"parts": [{"text": piece}]}}]}))
            .chain([json!({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]})])
            .collect(),
    }
}

#[test]
fn streamed_replies_become_rust_types_for_every_dialect() {
    for (name, rendered) in
        [("prompty", from_files("p")), ("sections", from_files("s")), ("rust", from_rust())]
    {
        for api in APIS {
            let wire = rendered.wire_for(api).unwrap().streaming();
            let read = |pieces: &[&str]| {
                let mut stream = wire.stream();
                for event in events(api, pieces) {
                    stream.feed(&event);
                }
                stream.finish().answer.unwrap_or_else(|| panic!("{name} {api}"))
            };
            let whole = read(&["{\"label\": ", "\"bug\", ", "\"score\": 1}"]);
            let verdict: Verdict = wire.typed(&whole).unwrap();
            assert_eq!(verdict, Verdict { label: "bug".into(), score: 1.0 }, "{name} {api}");
            let error = wire.typed::<Verdict>(&read(&["{\"label\": ", "\"bug\"}"])).unwrap_err();
            assert!(matches!(error.code(), Code::BadReply | Code::OutputMismatch), "{error:?}");
        }
    }
}

#[test]
fn a_tool_call_is_read_with_its_arguments() {
    let wire = from_rust().wire().unwrap();
    let call = json!({"id": "c1", "type": "function",
        "function": {"name": "search", "arguments": "{\"query\": \"tides\"}"}});
    let reply = json!({"choices": [{"message": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]});
    let Reply::ToolCalls { calls, .. } = wire.read(&reply).unwrap().reply else { panic!("calls a tool") };
    assert_eq!(calls[0].parsed_arguments().unwrap()["query"], "tides");
}
