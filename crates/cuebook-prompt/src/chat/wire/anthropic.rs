//! Anthropic's messages.
//!
//! What several tools answered becomes one message, together with what the user says right behind it, and stands first in it.

use serde_json::{Map, Value as Json, json};

use super::calls::{ANSWERS, CALLS, ITEM, THOUGHTS};
use super::draft::{Draft, MessagePosition, WrittenBody};
use super::media::{self, Bytes, MediaContent, is_web};
use super::piece::{Members, Piece};
use super::schema::Variant;
use crate::chat::reply::PAUSED;
use crate::chat::{Part, Role};
use crate::error::Result;

const OPTIONS: [(&str, &str); 5] = [
    ("maxOutputTokens", "max_tokens"),
    ("temperature", "temperature"),
    ("topP", "top_p"),
    ("topK", "top_k"),
    ("stopSequences", "stop_sequences"),
];

/// Anthropic requires a limit for the length of an answer.
const MAX_TOKENS: u32 = 4096;

const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(super) fn body(mut draft: Draft<'_>) -> Result<WrittenBody<'_>> {
    draft.put("model", draft.request.model.id.as_str());
    let system = draft.instructions()?;
    let messages = messages(&mut draft)?;
    draft.put("messages", messages);
    if let Some(system) = system {
        draft.put("system", system);
    }
    let options = draft.options(&OPTIONS, &["allowMultipleToolCalls"]);
    let is_given = |name: &&str| options.iter().any(|(given, _)| given == name);
    if let Some(name) = ["temperature", "top_p", "top_k"].into_iter().find(is_given) {
        draft.warn(
            format!("Anthropic may refuse `{name}`"),
            "newer models do not accept `temperature`, `topP` and `topK`; the API accepts them only with \
                 the header `anthropic-version: 2023-06-01`",
        );
    }
    for (name, value) in options {
        draft.put(name, value);
    }
    let additional = &draft.request.model.options.additional_properties;
    if !draft.has("max_tokens") && !additional.contains_key("max_tokens") {
        draft.put("max_tokens", json!(MAX_TOKENS));
    }
    if let Some(tools) = draft.tools(tools)? {
        draft.put("tools", tools);
    }
    one_call_at_a_time(&mut draft);
    let outputs: Vec<_> = draft.request.outputs.iter().collect();
    if !outputs.is_empty() {
        let schema = draft.schema(&outputs, Variant::Closed, "outputs")?;
        draft.put("output_config", json!({"format": {"type": "json_schema", "schema": schema}}));
    }
    Ok(draft.finish())
}

fn tools(draft: &mut Draft<'_>) -> Result<Vec<Json>> {
    let mut tools = Vec::new();
    for function in draft.functions() {
        let variant = if function.strict { Variant::Closed } else { Variant::Plain };
        let mut object = function.described(draft, "input_schema", variant)?;
        if function.strict {
            object.insert("strict".into(), json!(true));
        }
        tools.push(Json::Object(object));
    }
    Ok(tools)
}

/// Here it is a part of the choice of tools, which the author may have made.
fn one_call_at_a_time(draft: &mut Draft<'_>) {
    let options = &draft.request.model.options;
    if options.allow_multiple_tool_calls != Some(false) || !draft.has("tools") {
        return;
    }
    let chosen = options.additional_properties.get("tool_choice").and_then(Json::as_object);
    let mut choice = chosen.cloned().unwrap_or_else(|| Map::from_iter([("type".to_owned(), json!("auto"))]));
    // Where no tool may be called there is nothing to forbid.
    if choice.get("type") != Some(&json!("none")) {
        choice.entry("disable_parallel_tool_use").or_insert(json!(true));
    }
    draft.put("tool_choice", Json::Object(choice));
}

fn messages<'r>(draft: &mut Draft<'r>) -> Result<Vec<Piece<'r>>> {
    let mut turns: Vec<(&'static str, Vec<Piece<'r>>)> = Vec::new();
    for spot in draft.spots() {
        let role = match spot.message.role {
            Role::System | Role::Developer => continue,
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
            Role::Other(_) => return Err(draft.unknown_role(spot)),
        };
        let blocks = blocks(draft, spot)?;
        if blocks.is_empty() {
            draft.warn(format!("{spot} is empty and is not sent"), "Anthropic accepts no empty messages");
            continue;
        }
        match turns.last_mut() {
            // Answers of tools must come together, right behind the calls; else turns stay as they are.
            Some((last, before)) if *last == role && (answers(before) || answers(&blocks)) => {
                before.extend(blocks);
            }
            _ => turns.push((role, blocks)),
        }
    }
    if turns.is_empty() {
        let why = "needs at least one message that is not a system message";
        return Err(draft.nothing_to_say(why, "write a message under a line `user:`"));
    }
    let message = |(role, mut blocks): (&'static str, Vec<Piece<'r>>)| {
        blocks.sort_by_key(|block| !block.is_of_type("tool_result"));
        Piece::object([("role", role.into()), ("content", Piece::List(blocks))])
    };
    Ok(turns.into_iter().map(message).collect())
}

fn answers(blocks: &[Piece<'_>]) -> bool {
    blocks.iter().any(|block| block.is_of_type("tool_result"))
}

fn blocks<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>) -> Result<Vec<Piece<'r>>> {
    if let Some(id) = draft.answers(spot)? {
        draft.leftover(spot, &[ANSWERS, "name", "is_error"]);
        let mut result: Members<'r> = vec![("type", "tool_result".into()), ("tool_use_id", id.into())];
        let mut content = content(draft, spot)?;
        match content.as_mut_slice() {
            [] => {}
            // One text alone needs no block around it.
            [Piece::Object(block)] if matches!(block.as_slice(), [("type", _), ("text", Piece::Text(_))]) => {
                result.extend(block.pop().map(|(_, text)| ("content", text)));
            }
            _ => result.push(("content", Piece::List(content))),
        }
        if let Some(failed @ Json::Bool(_)) = spot.message.metadata.get("is_error") {
            result.push(("is_error", failed.into()));
        }
        return Ok(vec![Piece::Object(result)]);
    }
    draft.leftover(spot, &[CALLS, ITEM, THOUGHTS, PAUSED]);
    // A turn that was paused goes on when it is seen again as it was.
    if let Some(said) = spot.message.metadata.get(PAUSED).and_then(Json::as_array) {
        return Ok(said.iter().map(Piece::from).collect());
    }
    // Thoughts go back as they came, and first: without them a turn that calls tools is refused.
    let thoughts = spot.message.metadata.get(THOUGHTS).and_then(Json::as_array);
    let mut blocks: Vec<Piece<'r>> = thoughts.into_iter().flatten().map(Piece::from).collect();
    blocks.extend(content(draft, spot)?);
    for call in draft.calls(spot)? {
        let input = draft.arguments(spot, &call)?;
        blocks.push(Piece::object([
            ("type", "tool_use".into()),
            ("id", call.id.into()),
            ("name", call.name.into()),
            ("input", input.into()),
        ]));
    }
    Ok(blocks)
}

fn content<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>) -> Result<Vec<Piece<'r>>> {
    if spot.message.role == Role::Assistant {
        // Only to refuse what is not text; the texts stay apart.
        draft.only_text(spot)?;
    }
    let mut blocks = Vec::new();
    for (index, part) in spot.message.parts.iter().enumerate() {
        let spot = spot.part(index);
        blocks.push(match part {
            // Anthropic refuses texts in which there is nothing to read.
            Part::Text { value, .. } if value.trim().is_empty() => continue,
            Part::Text { value, .. } => Piece::object([("type", "text".into()), ("text", value.into())]),
            Part::Image(media) => image(draft, &draft.media(spot, media)?)?.into(),
            Part::File(media) => file(draft, &draft.media(spot, media)?)?.into(),
            Part::Audio(_) => {
                let why = "Anthropic does not accept audio";
                return Err(draft.refuse(spot, why, "pass a transcript as text, or use another provider"));
            }
        });
    }
    Ok(blocks)
}

fn image(draft: &mut Draft<'_>, found: &MediaContent<'_>) -> Result<Json> {
    if found.detail.is_some() {
        draft.warn("the `detail` of an image is not sent", "Anthropic has no such setting");
    }
    let source = match &found.bytes {
        Bytes::Here(data) => {
            let media_type = found.known_type(draft)?;
            if !PICTURES.contains(&media_type) {
                let why = format!("Anthropic does not accept images of the type `{media_type}`");
                return Err(found.refuse(draft, why, &format!("use one of: {}", PICTURES.join(", "))));
            }
            json!({"type": "base64", "media_type": media_type, "data": data})
        }
        other => elsewhere(draft, found, other)?,
    };
    Ok(json!({"type": "image", "source": source}))
}

fn file(draft: &mut Draft<'_>, found: &MediaContent<'_>) -> Result<Json> {
    let media_type = found.media_type.as_deref();
    if media_type.is_some_and(|media_type| media_type.starts_with("image/")) {
        return image(draft, found);
    }
    let wrong_type = |media_type: &str| {
        let why = format!("Anthropic does not accept files of the type `{media_type}`");
        found.refuse(draft, why, "use PDF, or text as a `data:` URI or in base64")
    };
    let source = match &found.bytes {
        Bytes::Here(data) => match found.known_type(draft)? {
            "application/pdf" => json!({"type": "base64", "media_type": "application/pdf", "data": data}),
            text if text.starts_with("text/") || text == "application/json" => {
                let text = media::text(data).ok_or_else(|| {
                    found.refuse(draft, "the file is not UTF-8", "pass it as PDF, or save it as UTF-8")
                })?;
                json!({"type": "text", "media_type": "text/plain", "data": text})
            }
            other => return Err(wrong_type(other)),
        },
        other => {
            // What lies behind a URL without an ending is anybody's guess, and Anthropic's is PDF.
            if let (Bytes::Url(_), Some(wrong)) = (other, media_type.filter(|t| *t != "application/pdf")) {
                return Err(wrong_type(wrong));
            }
            elsewhere(draft, found, other)?
        }
    };
    let mut block = Map::new();
    block.insert("type".into(), json!("document"));
    block.insert("source".into(), source);
    if let Some(name) = found.name {
        block.insert("title".into(), json!(name));
    }
    Ok(Json::Object(block))
}

fn elsewhere(draft: &Draft<'_>, found: &MediaContent<'_>, bytes: &Bytes<'_>) -> Result<Json> {
    match bytes {
        Bytes::Url(url) if is_web(url) => Ok(json!({"type": "url", "url": url})),
        Bytes::Id(id) => Ok(json!({"type": "file", "file_id": id})),
        Bytes::Url(_) | Bytes::Here(_) => {
            let why = "Anthropic cannot fetch this URL";
            Err(found.refuse(draft, why, "pass an `https://` URL, a `data:` URI, or the bytes in base64"))
        }
    }
}
