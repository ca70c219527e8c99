//! The rules of the formats, one by one.

use cuebook::chat::wire::{Api, Request, Wire, body};
use cuebook::chat::{Message, Role};
use cuebook::prompt::{Kind, Model, Property, Tools, UnionStyle};
use cuebook::source::Source;
use cuebook::{Code, Error, ErrorKind};
use serde_json::{Value as Json, json};

use crate::spoken::SentMessages;

pub fn wire(api: Api, mut input: Json) -> Wire {
    input["model_id"] = json!("m");
    SentMessages::read(&input).body(api).unwrap()
}

fn refusal(api: Api, mut input: Json) -> Error {
    input["model_id"] = json!("m");
    SentMessages::read(&input).body(api).unwrap_err()
}

pub fn notes(wire: &Wire) -> Vec<&str> {
    wire.notes.iter().map(|note| note.message.as_str()).collect()
}

/// A question with further fields.
fn asked(fields: Json) -> Json {
    let mut input = json!({"messages": [{"role": "user", "content": "Hi"}]});
    input.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    input
}

#[test]
fn an_interface_is_chosen_by_its_name_or_by_provider_and_type() {
    for api in Api::ALL {
        assert_eq!(Api::choose(api.as_str(), None).unwrap(), api);
    }
    for (provider, api_type, api) in [
        ("openai", None, Api::OpenAiChat),
        ("OpenAI", Some("Chat"), Api::OpenAiChat),
        ("azure", Some("responses"), Api::OpenAiResponses),
        ("foundry", Some("embedding"), Api::OpenAiEmbeddings),
        ("openai", Some("image"), Api::OpenAiImages),
        // The name of a format is more than the type of the model.
        ("openai-chat", Some("responses"), Api::OpenAiChat),
        ("anthropic", Some("chat"), Api::Anthropic),
        ("anthropic", Some("responses"), Api::Anthropic),
        ("google", None, Api::Gemini),
    ] {
        assert_eq!(Api::choose(provider, api_type).unwrap(), api, "{provider} {api_type:?}");
    }
}

#[test]
fn an_unknown_interface_is_refused_with_the_nearest() {
    let error = Api::choose("antropic", None).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Invoker, Code::UnknownWire));
    assert!(error.to_string().contains("unknown provider or wire format `antropic`"), "{error}");
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `anthropic`?"));
    assert_eq!(error.field("nearest"), Some(&json!(["anthropic"])));

    let error = Api::choose("openai", Some("respones")).unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `responses`?"));
    let error = Api::choose("anthropic", Some("embedding")).unwrap_err();
    assert_eq!(error.diagnostic().hint.as_deref(), Some("use one of: chat"));
}

#[test]
fn a_missing_model_error_names_the_option() {
    let messages = [Message::text(Role::User, "Hi")];
    for api in Api::ALL {
        let request =
            Request { model: &Model::default(), messages: &messages, tools: &Tools::default(), outputs: &[] };
        let error = body(api, &request).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Wire);
        assert!(error.diagnostic().hint.as_deref().unwrap().contains("--model"));
    }
}

#[test]
fn a_refusal_names_message_and_part_and_a_way_out() {
    let input = json!({"messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"kind": "text", "value": "a"}, {"kind": "image", "value": "https://e.com/a.png"}]},
    ]});
    let error = refusal(Api::Anthropic, input);
    assert_eq!((error.kind(), error.code()), (ErrorKind::Wire, Code::UnsupportedContent));
    assert!(error.diagnostic().message.starts_with("part 2 of message 2 (assistant): "), "{error}");
    assert!(error.diagnostic().hint.as_deref().unwrap().contains("user message"));
    assert_eq!(error.field("message_number"), Some(&json!(2)));
    assert_eq!(error.field("part_number"), Some(&json!(2)));
}

#[test]
fn system_media_moves_to_the_user_with_a_note() {
    let input = json!({"messages": [
        {"role": "system", "content": [{"kind": "text", "value": "a"}, {"kind": "image", "value": "https://e.com/a.png"}]},
        {"role": "user", "content": "Hi"},
    ]});
    let wire = wire(Api::OpenAiChat, input);
    let image = json!({"type": "image_url", "image_url": {"url": "https://e.com/a.png"}});
    let expected = json!([
        {"role": "system", "content": "a"},
        {"role": "user", "content": [image, {"type": "text", "text": "Hi"}]},
    ]);
    assert_eq!(wire.body["messages"], expected);
    assert_eq!(notes(&wire), ["an image of a system message is moved to the user message"]);
}

#[test]
fn a_chat_message_has_its_attributes_beside_role_and_content() {
    let wire = wire(
        Api::OpenAiChat,
        json!({"messages": [
            {"role": "user", "content": "Hi", "metadata": {"name": "Bob", "role": "system", "content": "x", "id": 7}},
        ]}),
    );
    assert_eq!(wire.body["messages"], json!([{"role": "user", "name": "Bob", "id": 7, "content": "Hi"}]));
    assert_eq!(notes(&wire), ["message 1 (user): OpenAI may refuse the attribute `id`"]);
}

#[test]
fn texts_of_one_message_are_joined_and_an_empty_message_stays() {
    let input = json!({"messages": [
        {"role": "system", "content": []},
        {"role": "user", "content": [{"kind": "text", "value": "a"}, {"kind": "text", "value": "b"}]},
    ]});
    let messages = json!([{"role": "system", "content": ""}, {"role": "user", "content": "a\nb"}]);
    assert_eq!(wire(Api::OpenAiChat, input).body["messages"], messages);
}

#[test]
fn every_option_has_its_name_on_the_wire_or_a_note() {
    let options = json!({"options": {
        "temperature": 0.7, "maxOutputTokens": 500, "topP": 0.9, "topK": 40, "frequencyPenalty": 0.5,
        "presencePenalty": 0.25, "seed": 42, "stopSequences": ["."],
    }});
    let chat = wire(Api::OpenAiChat, asked(options.clone()));
    assert_eq!(
        chat.body.to_string(),
        r#"{"model":"m","messages":[{"role":"user","content":"Hi"}],"temperature":0.7,"max_completion_tokens":500,"top_p":0.9,"frequency_penalty":0.5,"presence_penalty":0.25,"seed":42,"stop":["."]}"#
    );
    assert_eq!(notes(&chat), ["the option `topK` is not sent"]);

    let responses = wire(Api::OpenAiResponses, asked(options.clone()));
    assert_eq!(responses.body["max_output_tokens"], 500);
    assert_eq!(responses.notes.len(), 5, "{:?}", notes(&responses));

    let anthropic = wire(Api::Anthropic, asked(options.clone()));
    for (key, value) in [("max_tokens", json!(500)), ("top_k", json!(40)), ("stop_sequences", json!(["."]))] {
        assert_eq!(anthropic.body[key], value);
    }
    assert_eq!(
        notes(&anthropic),
        [
            "the option `frequencyPenalty` is not sent",
            "the option `presencePenalty` is not sent",
            "the option `seed` is not sent",
            "Anthropic may refuse `temperature`",
        ]
    );

    let gemini = wire(Api::Gemini, asked(options));
    let mut config = json!({"temperature": 0.7, "maxOutputTokens": 500, "topP": 0.9, "topK": 40});
    config["frequencyPenalty"] = json!(0.5);
    config["presencePenalty"] = json!(0.25);
    config["seed"] = json!(42);
    config["stopSequences"] = json!(["."]);
    assert_eq!(gemini.body["generationConfig"], config);
    assert!(gemini.notes.is_empty());
}

#[test]
fn additional_properties_fill_gaps_and_replace_nothing() {
    let wire = wire(
        Api::OpenAiResponses,
        asked(json!({
            "outputs": [{"name": "a", "kind": "string", "required": true}],
            "options": {"temperature": 0.5, "additionalProperties": {
                "temperature": 0.9, "store": false, "text": {"verbosity": "low", "format": {"type": "text"}},
            }},
        })),
    );
    assert_eq!(wire.body["temperature"], 0.5);
    assert_eq!(wire.body["store"], false);
    assert_eq!(wire.body["text"]["verbosity"], "low");
    assert_eq!(wire.body["text"]["format"]["type"], "json_schema");
    assert_eq!(
        notes(&wire),
        [
            "`additionalProperties.temperature` is not sent",
            "`additionalProperties.text.format.type` is not sent",
        ]
    );
}

#[test]
fn a_stream_is_asked_for_in_each_providers_way() {
    let options = json!({"options": {"additionalProperties": {"stream": true}}});
    let chat = wire(Api::OpenAiChat, asked(options.clone())).body;
    assert_eq!((&chat["stream"], &chat["stream_options"]), (&json!(true), &json!({"include_usage": true})));
    for api in [Api::OpenAiResponses, Api::Anthropic] {
        let body = wire(api, asked(options.clone())).body;
        assert_eq!((&body["stream"], body.get("stream_options")), (&json!(true), None));
    }
    let gemini = wire(Api::Gemini, asked(options));
    assert_eq!(gemini.body.get("stream").or(gemini.body.get("generationConfig")), None);
    assert_eq!(notes(&gemini), ["`stream` is not sent"]);
    let own = json!({"options": {"additionalProperties": {"stream": true, "stream_options": {}}}});
    assert_eq!(wire(Api::OpenAiChat, asked(own)).body["stream_options"], json!({}));
}

#[test]
fn options_of_gemini_outside_its_configuration_are_placed() {
    let options = json!({"options": {"topP": 0.5, "additionalProperties": {
        "thinkingConfig": {"thinkingBudget": 0}, "safetySettings": [], "generationConfig": {"topP": 1, "candidateCount": 2},
    }}});
    let wire = wire(Api::Gemini, asked(options));
    assert_eq!(
        wire.body["generationConfig"],
        json!({"topP": 0.5, "thinkingConfig": {"thinkingBudget": 0}, "candidateCount": 2})
    );
    assert_eq!(wire.body["safetySettings"], json!([]));
    assert_eq!(wire.body.get("model"), None);
    assert_eq!(notes(&wire), ["`additionalProperties.generationConfig.topP` is not sent"]);
}

#[test]
fn one_call_at_a_time_is_part_of_anthropics_choice_of_tools() {
    let with = |additional: Json| {
        let input = json!({
            "tools": [{"kind": "function", "name": "act", "parameters": []}],
            "options": {"allowMultipleToolCalls": false, "additionalProperties": additional},
        });
        let wire = wire(Api::Anthropic, asked(input));
        assert!(wire.notes.is_empty(), "{:?}", notes(&wire));
        wire.body["tool_choice"].clone()
    };
    assert_eq!(with(json!({})), json!({"type": "auto", "disable_parallel_tool_use": true}));
    let chosen = json!({"tool_choice": {"type": "tool", "name": "act"}});
    assert_eq!(with(chosen), json!({"type": "tool", "name": "act", "disable_parallel_tool_use": true}));
    assert_eq!(with(json!({"tool_choice": {"type": "none"}})), json!({"type": "none"}));
}

#[test]
fn bound_parameters_are_hidden_from_every_model() {
    let input = asked(json!({"tools": [{
        "kind": "function", "name": "act", "bindings": {"unit": {"input": "u"}},
        "parameters": [
            {"name": "city", "kind": "string", "required": true}, {"name": "unit", "kind": "string", "required": true},
        ],
    }]}));
    for (api, schema) in [
        (Api::OpenAiChat, "/tools/0/function/parameters"),
        (Api::OpenAiResponses, "/tools/0/parameters"),
        (Api::Anthropic, "/tools/0/input_schema"),
        (Api::Gemini, "/tools/0/functionDeclarations/0/parameters"),
    ] {
        let body = wire(api, input.clone()).body;
        let schema = body.pointer(schema).unwrap();
        assert!(schema["properties"].get("city").is_some(), "{api}");
        assert_eq!(schema["required"], json!(["city"]), "{api}");
        assert!(!body.to_string().contains("unit"), "{api}: {body}");
    }
}

#[test]
fn a_tool_that_is_no_function_is_noted_and_not_sent() {
    let input = asked(json!({"tools": [{"kind": "mcp", "name": "files", "serverName": "x"}]}));
    for api in [Api::OpenAiChat, Api::OpenAiResponses, Api::Anthropic, Api::Gemini] {
        let wire = wire(api, input.clone());
        assert_eq!(wire.body.get("tools"), None);
        assert_eq!(notes(&wire), ["the tool `files` of the kind `mcp` is not sent"]);
    }
}

#[test]
fn a_function_is_strict_only_if_it_says_so() {
    let tool = |strict: Json| {
        asked(json!({"tools": [{
            "kind": "function", "name": "act", "strict": strict, "parameters": [{"name": "n", "kind": "integer"}],
        }]}))
    };
    let loose = wire(Api::OpenAiChat, tool(json!(null))).body;
    let parameters = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    assert_eq!(loose["tools"][0]["function"], json!({"name": "act", "parameters": parameters}));
    let strict = wire(Api::OpenAiResponses, tool(json!(true))).body;
    assert_eq!(
        strict["tools"][0]["parameters"],
        json!({
            "type": "object", "properties": {"n": {"type": ["integer", "null"]}}, "required": ["n"],
            "additionalProperties": false,
        })
    );
    // Responses are strict by default.
    assert_eq!(wire(Api::OpenAiResponses, tool(json!(null))).body["tools"][0]["strict"], false);
    let anthropic = wire(Api::Anthropic, tool(json!(true))).body;
    assert_eq!(anthropic["tools"][0]["strict"], true);
    assert_eq!(anthropic["tools"][0]["input_schema"].get("required"), None);
    assert_eq!(notes(&wire(Api::Gemini, tool(json!(true)))), ["the tool `act` is sent without `strict`"]);
}

#[test]
fn outputs_are_asked_for_in_each_providers_words() {
    let input = asked(json!({"outputs": [
        {"name": "style", "kind": "object", "required": true, "properties": [
            {"name": "border", "kind": "string", "enumValues": ["thin"]},
        ]},
        {"name": "rank", "kind": "union", "nullable": true, "required": true, "anyOf": [{"kind": "integer"}]},
    ]}));
    let border = json!({"type": ["string", "null"], "enum": ["thin", null]});
    let rank = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
    let strict = json!({
        "type": "object",
        "properties": {
            "style": {
                "type": "object", "properties": {"border": border}, "required": ["border"],
                "additionalProperties": false,
            },
            "rank": rank,
        },
        "required": ["style", "rank"],
        "additionalProperties": false,
    });
    let chat = wire(Api::OpenAiChat, input.clone()).body;
    let format = json!({"name": "structured_output", "strict": true, "schema": strict});
    assert_eq!(chat["response_format"], json!({"type": "json_schema", "json_schema": format}));
    let responses = wire(Api::OpenAiResponses, input.clone()).body;
    assert_eq!(responses["text"]["format"]["schema"], strict);

    let anthropic = wire(Api::Anthropic, input.clone()).body;
    let schema = &anthropic["output_config"]["format"]["schema"];
    assert_eq!(
        schema["properties"]["style"]["properties"]["border"],
        json!({"type": "string", "enum": ["thin"]})
    );
    assert_eq!(schema["properties"]["style"].get("required"), None);
    assert_eq!(schema["properties"]["style"]["additionalProperties"], false);

    let gemini = wire(Api::Gemini, input).body;
    assert_eq!(
        gemini["generationConfig"],
        json!({
            "responseMimeType": "application/json",
            "responseSchema": {
                "type": "OBJECT",
                "properties": {
                    "style": {
                        "type": "OBJECT", "properties": {"border": {"type": "STRING", "enum": ["thin"]}},
                        "propertyOrdering": ["border"],
                    },
                    "rank": {"anyOf": [{"type": "INTEGER"}], "nullable": true},
                },
                "required": ["style", "rank"],
                "propertyOrdering": ["style", "rank"],
            },
        })
    );
}

#[test]
fn gemini_gets_json_schema_where_its_own_has_no_words() {
    for property in [
        json!({"name": "n", "kind": "integer", "enumValues": [1, 2]}),
        json!({"name": "n", "kind": "union", "oneOf": [{"kind": "string"}]}),
        json!({"name": "n", "kind": "object"}),
        json!({"name": "n", "kind": "colour"}),
    ] {
        let config = &wire(Api::Gemini, asked(json!({"outputs": [property]}))).body["generationConfig"];
        assert_eq!(config.get("responseSchema"), None);
        assert_eq!(config["responseJsonSchema"]["type"], "object");
    }
}

#[test]
fn one_of_is_refused_for_strict_openai_outputs() {
    let source = Source::new("weather.prompty", "outputs:\n  - either\n");
    let mut property = Property::new("either", Kind::Union { style: UnionStyle::OneOf, of: Vec::new() });
    property.place = Some(source.place(13..19));
    let model = Model { id: "m".into(), ..Model::default() };
    let (messages, outputs) = ([Message::text(Role::User, "Hi")], [property]);
    let request = Request { model: &model, messages: &messages, tools: &Tools::default(), outputs: &outputs };
    for api in [Api::OpenAiChat, Api::OpenAiResponses] {
        let error = body(api, &request).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::Wire, Code::UnsupportedSchema));
        assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 2);
        assert_eq!(error.field("property"), Some(&json!("outputs.either")));
        assert_eq!(error.diagnostic().hint.as_deref(), Some("write `anyOf` instead"));
    }
    let wire = body(Api::Anthropic, &request).unwrap();
    assert_eq!(notes(&wire), ["`outputs.either`: `oneOf` is sent as `anyOf`"]);
}
