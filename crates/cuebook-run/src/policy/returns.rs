//! `directive_return`: how a model hands in what its directive asks for, and how that is checked.
//!
//! All declared outputs must be given, unless one says `required="false"`. What counts is that a name is there with a value of its
//! type: `0`, `false` and an empty text are values. A model that cannot go on says so with `status: "error"` and `error_detail`, and
//! the thread ends as an error with that reason.

use cuebook::Result;
use cuebook::dialect::directive::{Directive, Output};
use cuebook::error::{did_you_mean, nearest};
use cuebook::json::type_of;
use cuebook::prompt::{Tool, ToolKind, Type};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::capability::Capabilities;

/// The name of the tool.
pub const NAME: &str = "directive_return";

/// Its id as an item, by which directives name it.
pub const ITEM: &str = "rye/agent/threads/directive_return";

/// The capability that it takes.
pub const CAPABILITY: &str = "rye.execute.tool.rye.agent.threads.directive_return";

/// Capabilities with the one that returning outputs takes, where there are any.
pub fn permitted(mut capabilities: Capabilities, outputs: &[Output]) -> Capabilities {
    if !outputs.is_empty() {
        capabilities.add(CAPABILITY);
    }
    capabilities
}

/// What a model that is blocked says instead of its outputs.
const BLOCKED: [&str; 2] = ["status", "error_detail"];

/// Declared outputs as the log of a thread keeps them.
pub fn to_json(outputs: &[Output]) -> Vec<Json> {
    let written = |output: &Output| {
        let mut json = output.to_json();
        // What is not said to be optional must be given.
        json["required"] = (!output.optional).into();
        json["optional"] = output.optional.into();
        json
    };
    outputs.iter().map(written).collect()
}

/// The outputs that [`to_json`] wrote.
///
/// # Errors
///
/// `CB326` if they are something else.
pub fn from_json(outputs: &[Json]) -> Result<Vec<Output>> {
    let said = Map::from_iter([("outputs".to_owned(), Json::Array(outputs.to_vec()))]);
    Ok(Directive::from_json("outputs", &said)?.outputs)
}

/// What a model handed in.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Returned {
    /// The outputs.
    Outputs(Map<String, Json>),
    /// It cannot go on, and why.
    Blocked(String),
    /// Something else; it gets this and can try again.
    Wrong(String),
}

/// The tool, with a schema made from the outputs.
pub fn return_tool(outputs: &[Output]) -> Tool {
    let mut properties = Map::new();
    for output in named(outputs) {
        let mut schema = schema_of(output.kind());
        if let Some(description) = &output.description {
            schema.insert("description".into(), json!(description.as_str()));
        }
        properties.insert(output.name.as_str().to_owned(), Json::Object(schema));
    }
    let blocked = [
        (
            "status",
            json!({"type": "string", "enum": ["error"], "description": "Only if you are blocked: error"}),
        ),
        (
            "error_detail",
            json!({"type": "string", "description": "Only if you are blocked: what is missing or broken"}),
        ),
    ];
    for (name, schema) in blocked {
        properties.entry(name).or_insert(schema);
    }
    let required: Vec<&str> =
        named(outputs).filter(|output| !output.optional).map(|output| output.name.as_str()).collect();
    let mut schema = Map::new();
    schema.insert("type".into(), json!("object"));
    schema.insert("properties".into(), Json::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    let what = if outputs.is_empty() {
        "when all steps are done"
    } else {
        "with your results when all steps are done"
    };
    let description = format!(
        "Ends the directive. Call it {what}. If you are blocked and cannot finish, call it with status \"error\" and \
         error_detail instead of results."
    );
    Tool {
        name: NAME.to_owned(),
        description: Some(description),
        kind: ToolKind::Schema { parameters: Json::Object(schema) },
        bindings: IndexMap::new(),
        extra: Map::new(),
        place: None,
    }
}

/// Looks at what a model handed in. Where no outputs are declared, anything will do.
pub fn check(outputs: &[Output], parameters: &Map<String, Json>) -> Returned {
    let declared = |name: &str| named(outputs).any(|output| output.name.as_str() == name);
    let blocked = blocked(parameters);
    // A directive may have outputs of these names. One of its own words is enough to tell who is meant, unless both are its own.
    let is_ours = !(declared(BLOCKED[0]) && (declared(BLOCKED[1]) || !parameters.contains_key(BLOCKED[1])));
    if let Some(reason) = &blocked
        && is_ours
    {
        return Returned::Blocked(reason.clone());
    }
    if named(outputs).next().is_none() {
        return Returned::Outputs(parameters.clone());
    }
    let wrong = wrong(outputs, parameters);
    match blocked {
        _ if wrong.is_empty() => Returned::Outputs(parameters.clone()),
        Some(reason) if parameters.contains_key(BLOCKED[1]) => Returned::Blocked(reason),
        _ => Returned::Wrong(format!(
            "{} Call {NAME} again with all required fields. Expected: {}.",
            wrong.join(" "),
            expected(outputs)
        )),
    }
}

/// Why a model is blocked, if it says so.
fn blocked(parameters: &Map<String, Json>) -> Option<String> {
    let status = parameters.get(BLOCKED[0]).and_then(Json::as_str)?;
    if !status.trim().eq_ignore_ascii_case("error") {
        return None;
    }
    let detail = parameters.get(BLOCKED[1]).filter(|detail| !detail.is_null());
    let text = detail.map(|detail| detail.as_str().map_or_else(|| detail.to_string(), str::to_owned));
    let text = text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    Some(text.unwrap_or_else(|| "no reason was given".to_owned()))
}

/// A model does not get outputs without a name.
fn named(outputs: &[Output]) -> impl Iterator<Item = &Output> {
    outputs.iter().filter(|output| !output.name.as_str().is_empty())
}

/// All that is wrong, in sentences.
fn wrong(outputs: &[Output], parameters: &Map<String, Json>) -> Vec<String> {
    let mut wrong = Vec::new();
    let given = |output: &Output| {
        let value = parameters.get(output.name.as_str())?;
        (!value.is_null() || output.kind() == Type::Any).then_some(value)
    };
    let missing: Vec<&str> = named(outputs)
        .filter(|output| !output.optional && given(output).is_none())
        .map(|output| output.name.as_str())
        .collect();
    if !missing.is_empty() {
        wrong.push(format!("Missing required output fields: {}.", missing.join(", ")));
    }
    for output in named(outputs) {
        if let Some(value) = given(output)
            && !admits(output.kind(), value)
        {
            let (name, kind) = (output.name.as_str(), output.kind().as_str());
            let is = match value {
                Json::Number(_) if is_inexact(value) => {
                    "one with more digits than can be kept exactly: give it within 64 bits"
                }
                Json::Number(_) if output.kind() == Type::Integer => "a number with a fraction",
                value => type_of(value),
            };
            wrong.push(format!("`{name}` must be of type {kind}, and is {is}."));
        }
    }
    let names: Vec<&str> = named(outputs).map(|output| output.name.as_str()).collect();
    for name in parameters.keys().filter(|name| !names.contains(&name.as_str())) {
        let near = did_you_mean(&nearest(name, names.iter().copied()));
        let near = near.map(|near| format!(": {near}")).unwrap_or_else(|| ".".to_owned());
        wrong.push(format!("There is no output `{}`{near}", shortened(name)));
    }
    wrong
}

/// Whether a value is of a type. A whole number may be written `3.0`.
fn admits(kind: Type, value: &Json) -> bool {
    match kind {
        Type::Integer => value.as_f64().is_some_and(|number| number.fract() == 0.0) && !is_inexact(value),
        kind => kind.admits(value),
    }
}

/// Whether a number has lost digits when it was read: a whole number that does not fit is kept as the nearest one that does.
fn is_inexact(value: &Json) -> bool {
    const EXACT: f64 = (1_u64 << f64::MANTISSA_DIGITS) as f64;
    value.is_f64() && value.as_f64().is_some_and(|number| number.abs() > EXACT)
}

fn schema_of(kind: Type) -> Map<String, Json> {
    let name = match kind {
        Type::Any => return Map::new(),
        Type::List => "array",
        kind => kind.as_str(),
    };
    let mut schema = Map::new();
    schema.insert("type".into(), json!(name));
    if kind == Type::List {
        schema.insert("items".into(), json!({}));
    }
    schema
}

fn expected(outputs: &[Output]) -> String {
    let one = |output: &Output| {
        let optional = if output.optional { ", optional" } else { "" };
        let what = output.description.as_ref().map(|what| format!(": {}", what.as_str())).unwrap_or_default();
        format!("{} ({}{optional}){what}", output.name.as_str(), output.kind().as_str())
    };
    named(outputs).map(one).collect::<Vec<_>>().join("; ")
}

/// A name that a model made up, short enough to be sent back to it.
fn shortened(name: &str) -> String {
    if name.chars().count() <= 60 { name.to_owned() } else { name.chars().take(60).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use cuebook::dialect::directive;
    use cuebook::source::Source;

    use super::*;

    fn outputs(xml: &str) -> Vec<Output> {
        let text =
            format!("```xml\n<directive name=\"d\"><outputs>{xml}</outputs></directive>\n```\nDo it.\n");
        directive::read(&Source::new("d.md", text)).unwrap().outputs
    }

    fn map(json: Json) -> Map<String, Json> {
        json.as_object().cloned().unwrap()
    }

    fn wrong(outputs: &[Output], parameters: Json) -> String {
        match check(outputs, &map(parameters)) {
            Returned::Wrong(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_tool_asks_for_the_outputs_and_offers_a_way_out() {
        let outputs = outputs(
            r#"<output name="greeting" required="true">The greeting</output><output name="tries" type="int"/>
            <output name="notes" type="list" required="false"/><output name="raw" type="any"/><output>nameless</output>"#,
        );
        let tool = return_tool(&outputs);
        let ToolKind::Schema { parameters } = &tool.kind else { panic!("{:?}", tool.kind) };
        assert_eq!(tool.name, "directive_return");
        assert_eq!(parameters["required"], json!(["greeting", "tries", "raw"]));
        let properties = &parameters["properties"];
        assert_eq!(properties["greeting"], json!({"type": "string", "description": "The greeting"}));
        assert_eq!(properties["tries"], json!({"type": "integer"}));
        assert_eq!(properties["notes"], json!({"type": "array", "items": {}}));
        assert_eq!(properties["raw"], json!({}));
        assert_eq!(properties["status"]["enum"], json!(["error"]));
        assert_eq!(properties.as_object().unwrap().len(), 6);
    }

    #[test]
    fn nothing_is_a_value_too() {
        let outputs = outputs(
            r#"<output name="n" type="integer"/><output name="b" type="boolean"/><output name="s"/><output name="l" type="array"/>"#,
        );
        let given = map(json!({"n": 0, "b": false, "s": "", "l": []}));
        assert_eq!(check(&outputs, &given), Returned::Outputs(given));
        assert!(
            wrong(&outputs, json!({"n": null, "b": false, "s": "", "l": []}))
                .contains("Missing required output fields: n.")
        );
        assert!(matches!(
            check(&outputs, &map(json!({"n": 3.0, "b": true, "s": "", "l": []}))),
            Returned::Outputs(_)
        ));
    }

    #[test]
    fn a_whole_number_that_would_lose_digits_is_not_taken() {
        let outputs = outputs(r#"<output name="n" type="integer"/>"#);
        let check = |number: &str| {
            let given: Json = serde_json::from_str(&format!("{{\"n\": {number}}}")).unwrap();
            check(&outputs, given.as_object().unwrap())
        };
        for kept in ["18446744073709551615", "-9223372036854775808", "3.0", "1e3"] {
            assert!(matches!(check(kept), Returned::Outputs(_)), "{kept}");
        }
        for lost in ["12345678901234567890123", "18446744073709551616", "-9223372036854775809", "1e300"] {
            assert!(matches!(check(lost), Returned::Wrong(why) if why.contains("within 64 bits")), "{lost}");
        }
        assert!(
            matches!(check("1.5"), Returned::Wrong(why) if why.contains("and is a number with a fraction"))
        );
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let outputs = outputs(
            r#"<output name="greeting">The greeting text</output><output name="count" type="integer"/>
            <output name="extra" required="false" type="dict"/>"#,
        );
        assert_eq!(
            wrong(&outputs, json!({"greetin": "Hi", "count": "3", "zebra": 1})),
            "Missing required output fields: greeting. `count` must be of type integer, and is a string. There is no output \
             `greetin`: did you mean `greeting`? There is no output `zebra`. Call directive_return again with all required \
             fields. Expected: greeting (string): The greeting text; count (integer); extra (object, optional)."
        );
    }

    #[test]
    fn an_output_is_optional_only_if_it_says_so() {
        let outputs = outputs(r#"<output name="a"/><output name="b" required="FALSE"/>"#);
        assert!(matches!(check(&outputs, &map(json!({"a": "x"}))), Returned::Outputs(_)));
        assert!(matches!(check(&outputs, &map(json!({"a": "x", "b": null}))), Returned::Outputs(_)));
        assert!(wrong(&outputs, json!({"b": "x"})).starts_with("Missing required output fields: a."));
    }

    #[test]
    fn a_blocked_model_may_say_so() {
        let greeting = outputs(r#"<output name="greeting"/>"#);
        let blocked = |outputs: &[Output], given: Json| match check(outputs, &map(given)) {
            Returned::Blocked(reason) => reason,
            other => panic!("{other:?}"),
        };
        assert_eq!(blocked(&greeting, json!({"status": "error", "error_detail": "no file"})), "no file");
        assert_eq!(
            blocked(&greeting, json!({"status": "error", "error_detail": "no file", "greeting": ""})),
            "no file"
        );
        assert_eq!(blocked(&greeting, json!({"status": "error"})), "no reason was given");
        assert_eq!(blocked(&[], json!({"status": "error", "error_detail": {"a": 1}})), r#"{"a":1}"#);
        assert!(wrong(&greeting, json!({"status": "done"})).contains("There is no output `status`"));
    }

    #[test]
    fn an_output_may_have_the_name_of_the_way_out() {
        let status = outputs(r#"<output name="status"/>"#);
        let given = map(json!({"status": "error"}));
        assert_eq!(check(&status, &given), Returned::Outputs(given));
        let given = map(json!({"status": "error", "error_detail": "no file"}));
        assert_eq!(check(&status, &given), Returned::Blocked("no file".into()));
        let both = outputs(r#"<output name="status"/><output name="error_detail"/><output name="log"/>"#);
        assert_eq!(check(&both, &given), Returned::Blocked("no file".into()));
        let given = map(json!({"status": "error", "error_detail": "none", "log": "l"}));
        assert_eq!(check(&both, &given), Returned::Outputs(given));
    }

    #[test]
    fn without_outputs_anything_will_do() {
        let given = map(json!({"x": 1}));
        assert_eq!(check(&[], &given), Returned::Outputs(given));
    }
}
