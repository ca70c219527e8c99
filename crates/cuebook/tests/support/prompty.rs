//! Requests from JSON, in the words of Prompty's vectors.

use cuebook::chat::wire::{Api, Request, Wire, body, payload};
use cuebook::chat::{Media, Message, Part, Role};
use cuebook::prompt::{Kind, Model, ModelOptions, Property, Rich, Tool, ToolKind, Tools, UnionStyle};
use serde_json::{Map, Value as Json};

/// Everything that a request is made of.
pub struct SentMessages {
    pub model: Model,
    pub messages: Vec<Message>,
    pub tools: Tools,
    pub outputs: Vec<Property>,
}

impl SentMessages {
    /// Reads `{model_id, messages, tools, options, outputs}`.
    pub fn read(input: &Json) -> SentMessages {
        let list = |key: &str| input[key].as_array().cloned().unwrap_or_default();
        SentMessages {
            model: Model {
                id: text(&input["model_id"]).unwrap_or_default(),
                options: options(&input["options"]),
                ..Model::default()
            },
            messages: list("messages").iter().map(message).collect(),
            tools: list("tools").iter().map(tool).collect(),
            outputs: properties(&input["outputs"]),
        }
    }

    /// The body; and what is sent are its bytes, with the same notes, the first time and when tools are remembered.
    pub fn body(&self, api: Api) -> cuebook::Result<Wire> {
        let SentMessages { model, messages, tools, outputs } = self;
        let request = Request { model, messages, tools, outputs };
        let sent = [payload(api, &request), payload(api, &request)];
        let wire = body(api, &request);
        for sent in sent {
            match (&wire, sent) {
                (Ok(wire), Ok(sent)) => {
                    assert_eq!(String::from_utf8(sent.bytes).unwrap(), wire.body.to_string());
                    let said = |notes: &[cuebook::Diagnostic]| format!("{notes:?}");
                    assert_eq!(said(&sent.notes), said(&wire.notes));
                }
                (Err(refused), Err(unsent)) => assert_eq!(refused.to_string(), unsent.to_string()),
                (wire, sent) => panic!("{wire:?}, and {sent:?} is sent"),
            }
        }
        wire
    }
}

fn text(value: &Json) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn object(value: &Json) -> Map<String, Json> {
    value.as_object().cloned().unwrap_or_default()
}

fn options(json: &Json) -> ModelOptions {
    let number = |key: &str| json[key].as_number().cloned();
    ModelOptions {
        temperature: number("temperature"),
        max_output_tokens: number("maxOutputTokens"),
        top_p: number("topP"),
        top_k: number("topK"),
        frequency_penalty: number("frequencyPenalty"),
        presence_penalty: number("presencePenalty"),
        seed: number("seed"),
        stop_sequences: json["stopSequences"].as_array().into_iter().flatten().filter_map(text).collect(),
        allow_multiple_tool_calls: json["allowMultipleToolCalls"].as_bool(),
        additional_properties: object(&json["additionalProperties"]),
        extra: Map::new(),
    }
}

/// What the library takes for a message, and parts of it that are no pictures of anything: the vectors have such.
fn message(json: &Json) -> Message {
    let parts = match json.get("content").or_else(|| json.get("parts")) {
        Some(Json::String(text)) => vec![Part::text(text.as_str())],
        Some(Json::Array(parts)) => parts.iter().map(part).collect(),
        _ => Vec::new(),
    };
    let mut metadata = object(&json["metadata"]);
    for (key, value) in object(json) {
        if !["role", "content", "parts", "metadata"].contains(&key.as_str()) {
            metadata.insert(key, value);
        }
    }
    Message { role: Role::named(json["role"].as_str().unwrap()), parts, metadata }
}

fn part(json: &Json) -> Part {
    let value = text(json.get("value").or_else(|| json.get("source")).unwrap()).unwrap();
    let media = || Media {
        source: value.clone(),
        media_type: text(&json["mediaType"]),
        detail: text(&json["detail"]),
        name: text(&json["name"]),
    };
    match json["kind"].as_str().unwrap() {
        "text" => Part::text(value),
        "image" => Part::Image(media()),
        "audio" => Part::Audio(media()),
        "file" => Part::File(media()),
        other => panic!("a part of the kind {other}"),
    }
}

fn tool(json: &Json) -> Tool {
    let fields = object(json);
    let kind = match json["kind"].as_str().unwrap() {
        "function" => ToolKind::Function {
            parameters: properties(&json["parameters"]),
            strict: json["strict"].as_bool(),
        },
        "mcp" => ToolKind::Mcp(fields),
        "openapi" => ToolKind::OpenApi(fields),
        other => ToolKind::Custom { kind: other.to_owned(), fields },
    };
    let input = |bound: &Json| text(&bound["input"]).or_else(|| text(bound)).unwrap();
    let bindings = object(&json["bindings"]);
    Tool {
        name: text(&json["name"]).unwrap(),
        description: text(&json["description"]),
        kind,
        bindings: bindings.into_iter().map(|(parameter, bound)| (parameter, input(&bound))).collect(),
        extra: Map::new(),
        place: None,
    }
}

fn properties(json: &Json) -> Vec<Property> {
    let named = |(name, json): (&String, &Json)| Property { name: name.clone(), ..property(json) };
    match json {
        Json::Array(list) => list.iter().map(property).collect(),
        Json::Object(map) => map.iter().map(named).collect(),
        _ => Vec::new(),
    }
}

fn property(json: &Json) -> Property {
    let kind = match json["kind"].as_str().unwrap() {
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "float" => Kind::Float,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        "array" => Kind::Array { items: Box::new(property(&json["items"])) },
        "object" => Kind::Object { properties: properties(&json["properties"]) },
        "union" if json["oneOf"].is_array() => {
            Kind::Union { style: UnionStyle::OneOf, of: properties(&json["oneOf"]) }
        }
        "union" => Kind::Union { style: UnionStyle::AnyOf, of: properties(&json["anyOf"]) },
        name => match Rich::ALL.into_iter().find(|rich| rich.as_str() == name) {
            Some(rich) => Kind::Rich(rich),
            None => Kind::Custom(name.to_owned()),
        },
    };
    Property {
        description: text(&json["description"]),
        required: json["required"] == true,
        nullable: json["nullable"] == true,
        default: json.get("default").cloned(),
        enum_values: json["enumValues"].as_array().cloned().unwrap_or_default(),
        ..Property::new(text(&json["name"]).unwrap_or_default(), kind)
    }
}
