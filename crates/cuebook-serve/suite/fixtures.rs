//! What the suite expects under fixed names: contents of tools, resources, and schemas.

use serde_json::{Value as Json, json};

/// A picture of one red dot.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
/// A sound of no length.
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

/// The tools without arguments that give fixed content.
pub fn content(tool: &str) -> Option<Json> {
    let picture = json!({"type": "image", "data": PNG, "mimeType": "image/png"});
    let resource = |name: &str, kind: &str, text: &str| json!({"type": "resource", "resource": {"uri": format!("test://{name}"), "mimeType": kind, "text": text}});
    Some(match tool {
        "test_simple_text" => {
            json!([{"type": "text", "text": "This is a simple text response for testing."}])
        }
        "test_image_content" => json!([picture]),
        "test_audio_content" => json!([{"type": "audio", "data": WAV, "mimeType": "audio/wav"}]),
        "test_embedded_resource" => {
            json!([resource("embedded-resource", "text/plain", "This is an embedded resource content.")])
        }
        "test_multiple_content_types" => {
            let data = json!({"test": "data", "value": 123}).to_string();
            let words = json!({"type": "text", "text": "Multiple content types test:"});
            json!([words, picture, resource("mixed-content-resource", "application/json", &data)])
        }
        _ => return None,
    })
}

/// All tools of the suite.
pub fn tools() -> Json {
    const PLAIN: [&str; 22] = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
        "test_tool_with_logging",
        "test_logging_tool",
        "test_tool_with_progress",
        "test_reconnection",
        "test_elicitation_sep1034_defaults",
        "test_elicitation_sep1330_enums",
        "test_missing_capability",
        "test_streaming_elicitation",
        "test_input_required_result_elicitation",
        "test_input_required_result_sampling",
        "test_input_required_result_list_roots",
        "test_input_required_result_request_state",
        "test_input_required_result_multiple_inputs",
        "test_input_required_result_multi_round",
        "test_input_required_result_tampered_state",
        "test_input_required_result_capabilities",
    ];
    let tool = |name: &str, schema: Json| json!({"name": name, "description": format!("{name} of the conformance suite"), "inputSchema": schema});
    let with = |argument: &str| json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]});
    let mut all: Vec<Json> =
        PLAIN.iter().map(|name| tool(name, json!({"type": "object", "properties": {}}))).collect();
    let mut header = with("region");
    header["properties"]["region"]["x-mcp-header"] = json!("Region");
    header["required"] = json!([]);
    all.extend([
        tool("test_sampling", with("prompt")),
        tool("test_elicitation", with("message")),
        tool("test_header", header),
        tool("json_schema_2020_12_tool", schema_2020_12()),
    ]);
    let properties = json!({"name": {"type": "string"}, "seconds": {"type": "number"}});
    all.extend(crate::jobs::TOOLS.map(|(name, needs_tasks)| {
        let mut tool = tool(name, json!({"type": "object", "properties": properties}));
        if name != "greet" {
            tool["execution"] = json!({"taskSupport": if needs_tasks { "required" } else { "optional" }});
        }
        tool
    }));
    json!(all)
}

fn schema_2020_12() -> Json {
    let text = json!({"type": "string"});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": text, "city": text}}},
        "properties": {
            "name": text,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": text,
            "email": text,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}

/// The form of `test_elicitation`.
pub fn person() -> Json {
    let text = |what: &str| json!({"type": "string", "description": what});
    let properties = json!({"username": text("User's response"), "email": text("User's email address")});
    json!({"type": "object", "properties": properties, "required": ["username", "email"]})
}

/// A form with a default of every type.
pub fn defaults() -> Json {
    json!({"type": "object", "required": [], "properties": {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        "verified": {"type": "boolean", "default": true},
    }})
}

/// A form with every kind of choice.
pub fn choices() -> Json {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| {
        let choice = |value: &str, title: &str| json!({"const": value, "title": format!("{title} {word}")});
        json!([choice("value1", "First"), choice("value2", "Second"), choice("value3", "Third")])
    };
    let legacy = json!({"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]});
    json!({"type": "object", "required": [], "properties": {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled("Option")},
        "legacyEnum": legacy,
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled("Choice")}},
    }})
}

/// The resources of the suite, as the list shows them.
pub fn resources() -> Json {
    let resource = |name: &str, kind: &str| json!({"uri": format!("test://{name}"), "name": name, "description": name, "mimeType": kind});
    json!([
        resource("static-text", "text/plain"),
        resource("static-binary", "image/png"),
        resource("watched-resource", "text/plain"),
    ])
}

/// The one template.
pub fn template() -> Json {
    json!({"uriTemplate": "test://template/{id}/data", "name": "template", "description": "Data by id", "mimeType": "application/json"})
}

/// What a resource of the suite holds.
pub fn resource(uri: &str) -> Option<Json> {
    let words = "This is the content of the static text resource.";
    Some(match uri {
        "test://static-text" => json!({"uri": uri, "mimeType": "text/plain", "text": words}),
        "test://static-binary" => json!({"uri": uri, "mimeType": "image/png", "blob": PNG}),
        "test://watched-resource" => json!({"uri": uri, "mimeType": "text/plain", "text": "watched"}),
        _ => {
            let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
            let data =
                json!({"id": id, "templateTest": true, "data": format!("Data for ID: {id}")}).to_string();
            json!({"uri": uri, "mimeType": "application/json", "text": data})
        }
    })
}
