//! Google's `generateContent`.
//!
//! The address names the model (`models/ID:generateContent`) and says whether the answer is streamed
//! (`:streamGenerateContent`), so the body has neither `model` nor `stream`. Options that the author passes on go into
//! `generationConfig`, except those that have a place of their own beside it.

use serde_json::{Map, Value as Json, json};

use super::calls::{ANSWERS, CALLS, ITEM};
use super::draft::{Draft, MessagePosition, WrittenBody, joined};
use super::media::{Bytes, is_web};
use super::piece::{Members, Piece};
use super::schema::{self, Variant};
use crate::chat::{Media, Part, Role};
use crate::error::Result;

const OPTIONS: [(&str, &str); 8] = [
    ("temperature", "temperature"),
    ("topP", "topP"),
    ("topK", "topK"),
    ("maxOutputTokens", "maxOutputTokens"),
    ("stopSequences", "stopSequences"),
    ("seed", "seed"),
    ("frequencyPenalty", "frequencyPenalty"),
    ("presencePenalty", "presencePenalty"),
];

/// What stands beside `generationConfig`, not in it.
const BESIDE: [&str; 11] = [
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "cachedContent",
    "generationConfig",
    "labels",
    "modelArmorConfig",
    "serviceTier",
    "store",
];

pub(super) fn body(mut draft: Draft<'_>) -> Result<WrittenBody<'_>> {
    let system = draft.instructions()?;
    let contents = contents(&mut draft)?;
    draft.put("contents", contents);
    if let Some(system) = system {
        draft.put("systemInstruction", json!({"parts": [{"text": system}]}));
    }
    let declared = |draft: &mut Draft<'_>| {
        let declarations = functions(draft)?;
        Ok(if declarations.is_empty() {
            Vec::new()
        } else {
            vec![json!({"functionDeclarations": declarations})]
        })
    };
    if let Some(tools) = draft.tools(declared)? {
        draft.put("tools", tools);
    }
    let options = draft.options(&OPTIONS, &["allowMultipleToolCalls"]);
    let mut config: Map<String, Json> =
        options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if draft.request.model.options.allow_multiple_tool_calls == Some(false) {
        draft.warn("the option `allowMultipleToolCalls` is not sent", "Gemini has no such option");
    }
    let outputs: Vec<_> = draft.request.outputs.iter().collect();
    if !outputs.is_empty() {
        config.insert("responseMimeType".into(), json!("application/json"));
        match schema::gemini(&outputs) {
            Some(schema) => config.insert("responseSchema".into(), schema),
            None => {
                let schema = draft.schema(&outputs, Variant::Plain, "outputs")?;
                config.insert("responseJsonSchema".into(), schema)
            }
        };
    }
    if draft.streams() {
        draft.warn("`stream` is not sent", "Gemini streams from another URL, `:streamGenerateContent`");
    }
    let additional = &draft.request.model.options.additional_properties;
    let is_beside = |(key, _): &(&String, &Json)| BESIDE.contains(&key.as_str());
    let (beside, inside): (Vec<_>, Vec<_>) =
        additional.iter().filter(|(key, _)| *key != "stream").partition(is_beside);
    let inside = inside.into_iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    draft.fill(&mut config, inside, "additionalProperties");
    if !config.is_empty() {
        draft.put("generationConfig", Json::Object(config));
    }
    for (key, value) in beside {
        draft.add(key, value);
    }
    Ok(draft.end())
}

fn functions(draft: &mut Draft<'_>) -> Result<Vec<Json>> {
    let mut declarations = Vec::new();
    for function in draft.functions() {
        let mut object = Map::new();
        object.insert("name".into(), json!(function.name));
        if let Some(description) = function.description {
            object.insert("description".into(), json!(description));
        }
        // A function without parameters has none: Gemini refuses an object without properties.
        if !function.takes_nothing() {
            match function.gemini_schema() {
                Some(schema) => object.insert("parameters".into(), schema),
                None => {
                    let schema = draft.parameters(&function, Variant::Plain)?;
                    object.insert("parametersJsonSchema".into(), schema)
                }
            };
        }
        if function.strict {
            draft.warn(
                format!("the tool `{}` is sent without `strict`", function.name),
                "Gemini has no strict functions; the closest setting is `toolConfig` with the mode `VALIDATED`",
            );
        }
        declarations.push(Json::Object(object));
    }
    Ok(declarations)
}

fn contents<'r>(draft: &mut Draft<'r>) -> Result<Vec<Piece<'r>>> {
    let mut turns: Vec<(&'static str, Vec<Piece<'r>>)> = Vec::new();
    for spot in draft.spots() {
        let role = match spot.message.role {
            Role::System | Role::Developer => continue,
            Role::User | Role::Tool => "user",
            Role::Assistant => "model",
            Role::Other(_) => return Err(draft.unknown_role(spot)),
        };
        let parts = parts(draft, spot)?;
        if parts.is_empty() {
            draft.warn(format!("{spot} is empty and is not sent"), "Gemini accepts no empty messages");
            continue;
        }
        match turns.last_mut() {
            Some((last, before)) if *last == role => before.extend(parts),
            _ => turns.push((role, parts)),
        }
    }
    if turns.is_empty() {
        let why = "needs at least one message that is not a system message";
        return Err(draft.nothing_to_say(why, "write a message under a line `user:`"));
    }
    let turn = |(role, parts): (&'static str, Vec<Piece<'r>>)| {
        Piece::object([("role", role.into()), ("parts", Piece::List(parts))])
    };
    Ok(turns.into_iter().map(turn).collect())
}

fn parts<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>) -> Result<Vec<Piece<'r>>> {
    if let Some(id) = draft.answers(spot)? {
        return result(draft, spot, id).map(|part| vec![part]);
    }
    draft.leftover(spot, &[CALLS, ITEM]);
    let mut parts = Vec::new();
    for (index, part) in spot.message.parts.iter().enumerate() {
        match part {
            Part::Text { value, .. } if value.is_empty() => {}
            Part::Text { value, .. } => parts.push(Piece::object([("text", value.into())])),
            Part::Image(media) | Part::Audio(media) | Part::File(media) => {
                parts.push(blob(draft, spot.part(index), media)?.into());
            }
        }
    }
    for call in draft.calls(spot)? {
        let args = draft.arguments(spot, &call)?;
        let said = [("id", call.id.into()), ("name", call.name.into()), ("args", args.into())];
        let mut part: Members<'r> = vec![("functionCall", Piece::object(said))];
        part.extend(call.signature.map(|signature| ("thoughtSignature", signature.into())));
        parts.push(Piece::Object(part));
    }
    Ok(parts)
}

/// What a tool answered. Gemini knows it by the function's name.
fn result<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>, id: &'r str) -> Result<Piece<'r>> {
    draft.leftover(spot, &[ANSWERS, "name"]);
    let said = spot.message.metadata.get("name").and_then(Json::as_str);
    let name = said.or_else(|| draft.called(spot, id)).ok_or_else(|| {
        let why = format!("the tool result for `{id}` does not name its function");
        draft.refuse(
            spot,
            why,
            "add the function's name as `name`, or put the assistant message with the call before it",
        )
    })?;
    let text = joined(spot.message);
    let response = match serde_json::from_str(&text) {
        Ok(object @ Json::Object(_)) => object.into(),
        _ => Piece::object([("output", text.into())]),
    };
    let mut blobs = Vec::new();
    for (index, part) in spot.message.parts.iter().enumerate() {
        if let Part::Image(media) | Part::Audio(media) | Part::File(media) = part {
            blobs.push(blob(draft, spot.part(index), media)?.into());
        }
    }
    let mut object: Members<'r> = vec![("id", id.into()), ("name", name.into()), ("response", response)];
    if !blobs.is_empty() {
        object.push(("parts", Piece::List(blobs)));
    }
    Ok(Piece::object([("functionResponse", Piece::Object(object))]))
}

fn blob<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>, media: &'r Media) -> Result<Json> {
    let found = draft.media(spot, media)?;
    if found.detail.is_some() {
        draft.warn(
            "the `detail` of an image is not sent",
            "Gemini sets it for the whole request, as `mediaResolution`",
        );
    }
    match &found.bytes {
        Bytes::Here(data) => Ok(json!({"inlineData": {"mimeType": found.known_type(draft)?, "data": data}})),
        Bytes::Url(url) if is_web(url) || url.starts_with("gs://") => {
            let mut file = Map::new();
            if let Some(media_type) = &found.media_type {
                file.insert("mimeType".into(), json!(media_type));
            }
            file.insert("fileUri".into(), json!(url));
            Ok(json!({"fileData": file}))
        }
        Bytes::Url(_) | Bytes::Id(_) => {
            let why = "Gemini cannot fetch this URL";
            Err(found.refuse(
                draft,
                why,
                "pass an `https://` or `gs://` URL, a `data:` URI, or the bytes in base64",
            ))
        }
    }
}
