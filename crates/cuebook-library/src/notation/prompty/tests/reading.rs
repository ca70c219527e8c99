//! Every field, every shorthand, and every wrong shape with its place.

use serde_json::json;

use super::{front, notes, wrong};

#[test]
fn a_model_is_its_id_or_a_map() {
    assert_eq!(front("model: gpt-4o").model.unwrap().to_json(), json!({"id": "gpt-4o"}));
    assert!(front("model:").model.is_none());
    let yaml = "model:\n  id: m\n  provider: openai\n  apiType: chat\n  connection: {kind: anonymous, endpoint: 'https://api.openai.com', more: 1}\n  options: {temperature: 0.7, maxOutputTokens: 10, topP: 0.1, topK: 4, seed: 1, frequencyPenalty: 1, presencePenalty: -0.5, stopSequences: [a, b], allowMultipleToolCalls: false, additionalProperties: {stream: true}}";
    let model = front(yaml).model.unwrap();
    assert_eq!(
        model.to_json().to_string(),
        r#"{"id":"m","provider":"openai","apiType":"chat","connection":{"kind":"anonymous","endpoint":"https://api.openai.com","more":1},"options":{"temperature":0.7,"maxOutputTokens":10,"topP":0.1,"topK":4,"frequencyPenalty":1,"presencePenalty":-0.5,"seed":1,"stopSequences":["a","b"],"allowMultipleToolCalls":false,"additionalProperties":{"stream":true}}}"#
    );
    assert_eq!(notes(yaml), [""; 0]);
}

#[test]
fn all_mistakes_are_reported_together_with_their_places() {
    let yaml = "name: 5\ndescription: [a]\nmetadata: x\nmodel:\n  id: {a: b}\n  connection: 7\n  options:\n    temperature: warm\n    stopSequences: stop\n    allowMultipleToolCalls: 'yes'\n    additionalProperties: []\ninputs: 3\ntools: x\ntemplate:\n  format: [jinja2]\n  parser: {kind: 1, options: x}";
    assert_eq!(
        wrong(yaml),
        [
            "p.prompty:2:7: `name` must be a string [CB319]",
            "p.prompty:3:14: `description` must be a string [CB319]",
            "p.prompty:4:11: `metadata` must be a map [CB319]",
            "p.prompty:6:7: `model.id` must be a string [CB319]",
            "p.prompty:7:15: `model.connection` must be a map [CB319]",
            "p.prompty:9:18: `model.options.temperature` must be a number [CB319]",
            "p.prompty:10:20: `model.options.stopSequences` must be a list [CB319]",
            "p.prompty:11:29: `model.options.allowMultipleToolCalls` must be true or false [CB319]",
            "p.prompty:12:27: `model.options.additionalProperties` must be a map [CB319]",
            "p.prompty:13:9: `inputs` must be a list, or a map from names [CB319]",
            "p.prompty:14:8: `tools` must be a list, or a map from names [CB319]",
            "p.prompty:16:11: `template.format` must be a string [CB319]",
            "p.prompty:17:18: `template.parser.kind` must be a string [CB319]",
            "p.prompty:17:30: `template.parser.options` must be a map [CB319]",
        ]
    );
    assert_eq!(wrong("model: [a]"), ["p.prompty:2:8: `model` must be the id of a model, or a map [CB319]"]);
    assert_eq!(
        wrong("model: {options: {stopSequences: [null, 1]}}"),
        [
            "p.prompty:2:35: `model.options.stopSequences[0]` must be a string [CB319]",
            "p.prompty:2:41: `model.options.stopSequences[1]` must be a string [CB319]",
        ]
    );
}

fn inputs(yaml: &str) -> serde_json::Value {
    front(yaml).to_json()["inputs"].clone()
}

#[test]
fn inputs_are_a_list_with_names_or_a_map() {
    let wanted = json!([
        {"name": "a", "kind": "string", "description": "d", "required": true, "nullable": true, "strict": false,
         "default": "x", "example": "y", "enumValues": ["x", 1]},
        {"name": "b", "kind": "thread"},
        {"name": "c", "kind": "mine"},
    ]);
    let rest = "kind: string, description: d, required: true, nullable: true, strict: false, default: x, example: y, enumValues: [x, 1]";
    assert_eq!(
        inputs(&format!(
            "inputs:\n  - {{name: a, {rest}}}\n  - {{name: b, kind: thread}}\n  - name: c\n    kind: mine"
        )),
        wanted
    );
    assert_eq!(
        inputs(&format!("inputs:\n  a: {{{rest}}}\n  b: {{name: b, kind: thread}}\n  c: {{kind: mine}}")),
        wanted
    );
    let place = front("inputs:\n  - kind: string\n    name: a").inputs[0].place.clone().unwrap();
    assert_eq!((place.to_string().as_str(), place.text()), ("p.prompty:4:11", "a"));
    assert_eq!(front("inputs:\n  a: 1").inputs[0].place.clone().unwrap().to_string(), "p.prompty:3:3");
}

#[test]
fn a_value_declares_an_input_with_that_default() {
    assert_eq!(
        inputs(
            "inputs:\n  firstName: Jane\n  count: 3\n  share: 0.5\n  flag: true\n  tags: [a, b]\n  mixed: [1, a]\n  none: []\n  empty: ''"
        ),
        json!([
            {"name": "firstName", "kind": "string", "default": "Jane"},
            {"name": "count", "kind": "integer", "default": 3},
            {"name": "share", "kind": "float", "default": 0.5},
            {"name": "flag", "kind": "boolean", "default": true},
            {"name": "tags", "kind": "array", "default": ["a", "b"], "items": {"kind": "string"}},
            {"name": "mixed", "kind": "array", "default": [1, "a"], "items": {"kind": "any"}},
            {"name": "none", "kind": "array", "default": [], "items": {"kind": "any"}},
            {"name": "empty", "kind": "string", "default": ""},
        ])
    );
}

#[test]
fn kinds_have_what_they_need_and_nothing_else() {
    assert_eq!(
        inputs(
            "inputs:\n  a: {kind: array, items: {kind: object, properties: {x: {kind: integer}}}}\n  o: {kind: object}\n  p: {kind: object, properties: [{name: q, kind: number}]}\n  u: {kind: union, oneOf: [{kind: string}, {kind: integer}]}\n  v: {kind: union, anyOf: [{kind: image}]}"
        ),
        json!([
            {"name": "a", "kind": "array",
             "items": {"kind": "object", "properties": [{"name": "x", "kind": "integer"}]}},
            {"name": "o", "kind": "object"},
            {"name": "p", "kind": "object", "properties": [{"name": "q", "kind": "number"}]},
            {"name": "u", "kind": "union", "oneOf": [{"kind": "string"}, {"kind": "integer"}]},
            {"name": "v", "kind": "union", "anyOf": [{"kind": "image"}]},
        ])
    );
    assert_eq!(
        wrong(
            "inputs:\n  a: {kind: array}\n  b: {kind: array, items: string}\n  c: {kind: array, items: {}}\n  u: {kind: union}\n  v: {kind: union, oneOf: []}\n  w: {kind: union, oneOf: [{kind: string}], anyOf: [{kind: string}]}\n  x: {kind: union, anyOf: {}}\n  y: {kind: object, properties: 1}"
        ),
        [
            "p.prompty:3:3: `inputs.a.items`: missing required field [CB319]",
            "p.prompty:4:27: `inputs.b.items` must be a map with a `kind` [CB319]",
            "p.prompty:5:27: `inputs.c.items` has no kind [CB319]",
            "p.prompty:6:3: `inputs.u` is a union without members [CB319]",
            "p.prompty:7:27: `inputs.v.oneOf` is empty [CB319]",
            "p.prompty:8:52: `inputs.w` has both `oneOf` and `anyOf` [CB319]",
            "p.prompty:9:27: `inputs.x.anyOf` must be a list [CB319]",
            "p.prompty:10:33: `inputs.y.properties` must be a list, or a map from names [CB319]",
        ]
    );
    assert_eq!(
        notes("inputs:\n  a: {kind: string, items: {kind: string}}\n  b: {kind: sting}\n  c: {kind: my_own}"),
        [
            "p.prompty:3:21: unknown key `items` in `inputs.a` [CB315]: known: name, kind, description, required, nullable, default, example, enumValues, strict",
            "p.prompty:4:13: unknown kind `sting` of `inputs.b` [CB319]: did you mean `string`?",
            "p.prompty:5:13: unknown kind `my_own` of `inputs.c` [CB319]: the input accepts any value; known kinds: string, integer, float, number, boolean, array, object, union, thread, image, file, audio",
        ]
    );
}

#[test]
fn inputs_without_a_kind_or_a_name_are_wrong() {
    assert_eq!(
        wrong(
            "inputs:\n  - {name: a}\n  - {kind: string}\n  - text\n  - {name: '', kind: string}\n  - {name: 5, kind: string}\n  - {name: b, kind: ' '}\n  - {name: b2, kind: 7}\n  - {name: c, kind: string}\n  - {name: c, kind: string}\n  - {name: d, kind: string, required: 'no', enumValues: x, strict: 1, description: {}}"
        ),
        [
            "p.prompty:3:12: `inputs[0]` has no kind [CB319]",
            "p.prompty:4:5: `inputs[1]` has no name [CB319]",
            "p.prompty:5:5: `inputs[2]` must be a map with a `name` [CB319]",
            "p.prompty:6:12: `inputs[3]` has an empty name [CB319]",
            "p.prompty:7:12: `inputs[4].name` must be a string [CB319]",
            "p.prompty:8:21: the kind of `inputs[5]` is blank [CB319]",
            "p.prompty:9:22: `inputs[6].kind` must be a string [CB319]",
            "p.prompty:11:12: duplicate name `c` [CB319]",
            "p.prompty:12:39: `inputs[9].required` must be true or false [CB319]",
            "p.prompty:12:57: `inputs[9].enumValues` must be a list [CB319]",
            "p.prompty:12:68: `inputs[9].strict` must be true or false [CB319]",
            "p.prompty:12:84: `inputs[9].description` must be a string [CB319]",
        ]
    );
    assert_eq!(
        wrong("inputs:\n  a:\n  b: {name: c, kind: string}\n  d: {description: x}"),
        [
            "p.prompty:3:3: `inputs.a` has no kind [CB319]",
            "p.prompty:4:13: the name of `inputs.b` differs from its key [CB319]",
            "p.prompty:5:3: `inputs.d` has no kind [CB319]",
        ]
    );
}

#[test]
fn a_json_schema_is_not_taken_for_properties() {
    assert_eq!(
        wrong(
            "tools: [{name: t, kind: function, parameters: {type: object, properties: {city: {type: string}}}}]"
        ),
        [
            "p.prompty:2:47: `tools[0].parameters` must be properties, but this looks like a JSON schema [CB319]"
        ]
    );
}

#[test]
fn the_template_may_leave_out_what_has_a_default() {
    for (yaml, engine, parser) in [
        ("name: x", "jinja2", "prompty"),
        ("template:", "jinja2", "prompty"),
        ("template: {format: mustache}", "mustache", "prompty"),
        ("template: {parser: mine}", "jinja2", "mine"),
        ("template: {format: '', parser: '*'}", "jinja2", "prompty"),
        ("template: {format: {kind: '*'}, parser: {}}", "jinja2", "prompty"),
        ("template: {format: {kind: mustache}, parser: {kind: mine}}", "mustache", "mine"),
    ] {
        let format = front(yaml).template;
        assert_eq!((format.engine.as_str(), format.parser.as_str()), (engine, parser), "{yaml}");
    }
    let definition =
        front("template: {format: {kind: jinja2, strict: true, options: {a: 1}}, parser: {options: {b: 2}}}");
    assert_eq!(
        definition.to_json()["template"],
        json!({"format": {"kind": "jinja2", "strict": true, "options": {"a": 1}},
               "parser": {"kind": "prompty", "options": {"b": 2}}})
    );
    assert_eq!(front("template:").to_json().get("template"), None);
}

#[test]
fn a_template_that_is_a_text_is_an_invalid_template() {
    let error = super::read("---\nname: x\ntemplate: jinja2\n---\n").unwrap_err();
    assert_eq!(
        error.to_string(),
        "PromptReadError: p.prompty:3:11: Invalid template format: `template` cannot be a string [CB319]"
    );
    assert_eq!(error.field("kind"), Some(&json!("invalid_template")));
    assert_eq!(
        error.diagnostic().hint.as_deref(),
        Some("write `template: {format: jinja2, parser: prompty}`")
    );
    assert_eq!(
        wrong("template: [jinja2]"),
        ["p.prompty:2:11: Invalid template format: `template` cannot be a list [CB319]"]
    );
}

fn tools(yaml: &str) -> serde_json::Value {
    front(yaml).to_json()["tools"].clone()
}

#[test]
fn tools_of_every_kind_are_kept() {
    assert_eq!(
        tools(
            "tools:\n  - name: f\n    kind: function\n    description: d\n    strict: true\n    parameters: {city: {kind: string}, unit: c}\n    bindings: {unit: preferred, city: {input: town}}\n  - {name: m, kind: mcp, connection: {kind: reference, name: s}, serverName: s, approvalMode: {kind: specify}, allowedTools: [a]}\n  - {name: o, kind: openapi, connection: {kind: anonymous}, specification: ./x.json}\n  - {name: c, kind: mine, connection: {kind: key}, whatever: [1]}"
        ),
        json!([
            {"name": "f", "kind": "function", "description": "d", "strict": true,
             "parameters": [{"name": "city", "kind": "string"}, {"name": "unit", "kind": "string", "default": "c"}],
             "bindings": {"unit": {"input": "preferred"}, "city": {"input": "town"}}},
            {"name": "m", "kind": "mcp", "connection": {"kind": "reference", "name": "s"}, "serverName": "s",
             "approvalMode": {"kind": "specify"}, "allowedTools": ["a"]},
            {"name": "o", "kind": "openapi", "connection": {"kind": "anonymous"}, "specification": "./x.json"},
            {"name": "c", "kind": "mine", "connection": {"kind": "key"}, "whatever": [1]},
        ])
    );
    assert_eq!(
        tools("tools:\n  f:\n    kind: function\n    bindings: [{name: a, input: b}]"),
        json!([{"name": "f", "kind": "function", "parameters": [], "bindings": {"a": {"input": "b"}}}])
    );
}

#[test]
fn tools_of_a_wrong_shape_are_reported_with_their_places() {
    assert_eq!(
        wrong(
            "tools:\n  - {name: a}\n  - {name: b, kind: ''}\n  - {name: c, kind: 1}\n  - {kind: function}\n  - x\n  - {name: d, kind: function, strict: 1, parameters: x, bindings: x}\n  - {name: e, kind: function, bindings: {p: 5, q: {}, r: {input: 1}}}\n  - {name: f, kind: function, bindings: [x, {name: g}, {name: h, input: i}, {name: h, input: j}]}\n  - {name: a, kind: mine}"
        ),
        [
            "p.prompty:3:12: `tools[0]` has no kind [CB319]",
            "p.prompty:4:12: `tools[1]` has no kind [CB319]",
            "p.prompty:5:21: `tools[2].kind` must be a string [CB319]",
            "p.prompty:6:5: `tools[3]` has no name [CB319]",
            "p.prompty:7:5: `tools[4]` must be a map with a `name` [CB319]",
            "p.prompty:8:39: `tools[5].strict` must be true or false [CB319]",
            "p.prompty:8:54: `tools[5].parameters` must be a list, or a map from names [CB319]",
            "p.prompty:8:67: `tools[5].bindings` must be a map from parameters to inputs [CB319]",
            "p.prompty:9:45: `tools[6].bindings.p` must be the name of an input [CB319]",
            "p.prompty:9:51: `tools[6].bindings.q` names no input [CB319]",
            "p.prompty:9:66: `tools[6].bindings.r.input` must be a string [CB319]",
            "p.prompty:10:42: `tools[7].bindings[0]` must be a map with a `name` [CB319]",
            "p.prompty:10:45: `tools[7].bindings[1]` names no input [CB319]",
            "p.prompty:10:84: duplicate name `h` [CB319]",
            "p.prompty:11:12: duplicate name `a` [CB319]",
        ]
    );
    assert_eq!(wrong("tools: {f: x}"), ["p.prompty:2:12: `tools.f` must be a map with a `kind` [CB319]"]);
}

#[test]
fn values_that_every_provider_refuses_are_noted() {
    let yaml = "model: {id: m, options: {maxOutputTokens: -5, temperature: 99, topP: 7, seed: -1}}\ntools:\n  - {name: bad name!, kind: function, parameters: {p: {kind: nope}}}\n  - {name: its own way, kind: mine}";
    assert_eq!(
        notes(yaml),
        [
            "p.prompty:2:43: `model.options.maxOutputTokens` is -5, which no provider accepts [CB319]: use a number that is at least 1",
            "p.prompty:2:60: `model.options.temperature` is 99, which no provider accepts [CB319]: use a number that is from 0 to 2",
            "p.prompty:2:70: `model.options.topP` is 7, which no provider accepts [CB319]: use a number that is from 0 to 1",
            "p.prompty:4:12: providers refuse the function name `bad name!` [CB319]: use ASCII letters, digits, `_` and `-`, at most 64 characters",
            "p.prompty:4:62: unknown kind `nope` of `tools[0].parameters.p` [CB319]: the input accepts any value; known kinds: string, integer, float, number, boolean, array, object, union, thread, image, file, audio",
        ]
    );
    assert_eq!(front(yaml).to_json()["model"]["options"]["temperature"], json!(99));
    let fine = "model: {id: m, options: {maxOutputTokens: 1, temperature: 2, topP: 0}}\ntools: [{name: a-B_9, kind: function}]";
    assert_eq!(notes(fine), [""; 0]);
}

#[test]
fn unknown_keys_are_kept_and_noted_with_the_nearest_name() {
    let yaml = "descripton: d\nmodel: {id: m, temprature: 1, options: {temprature: 1}}\ntemplate: {fromat: x, format: {knd: x}}\ninputs: [{name: a, kind: string, requird: true}]\ntools: [{name: t, kind: function, paramaters: []}, {name: m, kind: mcp, servername: x}]";
    assert_eq!(
        notes(yaml),
        [
            "p.prompty:2:1: unknown key `descripton` in the front matter [CB315]: did you mean `description`?",
            "p.prompty:3:16: unknown key `temprature` in `model` [CB315]: known: id, provider, apiType, connection, options",
            "p.prompty:3:41: unknown key `temprature` in `model.options` [CB315]: did you mean `temperature`?",
            "p.prompty:4:12: unknown key `fromat` in `template` [CB315]: did you mean `format`?",
            "p.prompty:4:32: unknown key `knd` in `template.format` [CB315]: did you mean `kind`?",
            "p.prompty:5:34: unknown key `requird` in `inputs[0]` [CB315]: did you mean `required`?",
            "p.prompty:6:35: unknown key `paramaters` in `tools[0]` [CB315]: did you mean `parameters`?",
            "p.prompty:6:73: unknown key `servername` in `tools[1]` [CB315]: did you mean `serverName`, `serverDescription` or `name`?",
        ]
    );
    let definition = front(yaml);
    assert_eq!(definition.extra["descripton"], json!("d"));
    assert_eq!(definition.to_json()["model"]["options"]["temprature"], json!(1));
    assert_eq!(definition.to_json()["inputs"][0]["requird"], json!(true));
    assert_eq!(definition.to_json()["tools"][1]["servername"], json!("x"));
}
