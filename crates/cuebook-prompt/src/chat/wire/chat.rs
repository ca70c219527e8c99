//! OpenAI's chat completions, and other providers with the same interface.
//!
//! Three things are sent as Prompty describes them although OpenAI itself refuses them, because servers that speak the
//! same language take them: the URL of a file, sounds other than WAV and MP3, and attributes of messages that OpenAI does
//! not know. Each is noted.

use serde_json::{Map, Value as Json, json};

use super::calls::{ANSWERS, CALLS, Call, FAILED, ITEM, THOUGHTS};
use super::draft::{Draft, MessagePosition, WrittenBody};
use super::media::{Bytes, MediaContent, is_web};
use super::piece::{Members, Piece};
use super::schema::Variant;
use crate::chat::reply::{PAUSED, REASONING};
use crate::chat::{ANNOTATIONS, Part, Role};
use crate::error::Result;

const OPTIONS: [(&str, &str); 8] = [
    ("temperature", "temperature"),
    ("maxOutputTokens", "max_completion_tokens"),
    ("topP", "top_p"),
    ("frequencyPenalty", "frequency_penalty"),
    ("presencePenalty", "presence_penalty"),
    ("seed", "seed"),
    ("stopSequences", "stop"),
    ("allowMultipleToolCalls", "parallel_tool_calls"),
];

pub(super) fn body(mut draft: Draft<'_>) -> Result<WrittenBody<'_>> {
    draft.put("model", draft.request.model.id.as_str());
    let mut messages = Vec::with_capacity(draft.request.messages.len());
    for spot in draft.spots() {
        messages.push(message(&mut draft, spot)?);
    }
    if messages.is_empty() {
        return Err(
            draft.nothing_to_say("needs at least one message", "write a message under a line `user:`")
        );
    }
    draft.put("messages", messages);
    for (name, value) in draft.options(&OPTIONS, &[]) {
        draft.put(name, value);
    }
    if let Some(tools) = draft.tools(tools)? {
        draft.put("tools", tools);
    } else if draft.has("parallel_tool_calls")
        && !draft.request.model.options.additional_properties.contains_key("tools")
    {
        draft.warn(
            "`allowMultipleToolCalls` is set, but the prompt has no tools",
            "OpenAI accepts this option only with tools; remove it",
        );
    }
    if let Some(schema) = structured_output(&mut draft)? {
        let format = json!({"name": "structured_output", "strict": true, "schema": schema});
        draft.put("response_format", json!({"type": "json_schema", "json_schema": format}));
    }
    // Without this a stream does not say what it cost.
    let additional = &draft.request.model.options.additional_properties;
    if draft.streams() && !additional.contains_key("stream_options") {
        draft.put("stream_options", json!({"include_usage": true}));
    }
    Ok(draft.finish())
}

/// The schema of the outputs in OpenAI's strict mode, if there are any.
pub(super) fn structured_output(draft: &mut Draft<'_>) -> Result<Option<Json>> {
    let outputs: Vec<_> = draft.request.outputs.iter().collect();
    if outputs.is_empty() {
        return Ok(None);
    }
    draft.schema(&outputs, Variant::Strict, "outputs").map(Some)
}

fn tools(draft: &mut Draft<'_>) -> Result<Vec<Json>> {
    let mut tools = Vec::new();
    for function in draft.functions() {
        let variant = if function.strict { Variant::Strict } else { Variant::Plain };
        let mut described = function.described(draft, "parameters", variant)?;
        if function.strict {
            described.insert("strict".into(), json!(true));
        }
        tools.push(json!({"type": "function", "function": described}));
    }
    Ok(tools)
}

fn message<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>) -> Result<Piece<'r>> {
    let message = spot.message;
    if matches!(message.role, Role::Other(_)) {
        return Err(draft.unknown_role(spot));
    }
    let mut members: Members<'r> = Vec::with_capacity(2 + message.metadata.len());
    members.push(("role", message.role.as_str().into()));
    for (key, value) in &message.metadata {
        if ["role", "content", CALLS, ITEM, ANNOTATIONS].contains(&key.as_str()) {
            continue;
        }
        if [THOUGHTS, FAILED, REASONING, PAUSED].contains(&key.as_str()) {
            draft.warn(format!("{spot}: the attribute `{key}` is not sent"), "OpenAI has no such attribute");
            continue;
        }
        members.push((key, value.into()));
        if !known_attribute(&message.role, key) {
            draft.warn(
                format!("{spot}: OpenAI may refuse the attribute `{key}`"),
                "remove it, unless your provider accepts it",
            );
        }
    }
    let calls = draft.calls(spot)?;
    if !calls.is_empty() {
        members.push((CALLS, Piece::List(calls.into_iter().map(Call::into_chat).collect())));
    }
    draft.answers(spot)?;
    members.push(("content", content(draft, spot)?));
    Ok(Piece::Object(members))
}

fn known_attribute(role: &Role, key: &str) -> bool {
    match key {
        "name" => true,
        ANSWERS => *role == Role::Tool,
        "refusal" | "audio" | "function_call" => *role == Role::Assistant,
        _ => false,
    }
}

fn content<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>) -> Result<Piece<'r>> {
    let parts = &spot.message.parts;
    let all_text = parts.iter().all(|part| matches!(part, Part::Text { .. }));
    if all_text || spot.message.role != Role::User {
        return draft.only_text(spot).map(Piece::Text);
    }
    let mut blocks = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let spot = spot.part(index);
        blocks.push(match part {
            // An empty text beside a picture says nothing, and is refused.
            Part::Text { value, .. } if value.is_empty() => continue,
            Part::Text { value, .. } => Piece::object([("type", "text".into()), ("text", value.into())]),
            Part::Image(media) => image(draft, &draft.media(spot, media)?)?.into(),
            Part::Audio(media) => audio(draft, &draft.media(spot, media)?)?.into(),
            Part::File(media) => file(draft, &draft.media(spot, media)?)?.into(),
        });
    }
    Ok(Piece::List(blocks))
}

fn image(draft: &Draft<'_>, found: &MediaContent<'_>) -> Result<Json> {
    let mut image = Map::new();
    image.insert("url".into(), image_url(draft, found)?.into());
    if let Some(detail) = found.detail {
        image.insert("detail".into(), json!(detail));
    }
    Ok(json!({"type": "image_url", "image_url": image}))
}

/// A picture as OpenAI takes it: a URL or a `data:` URI.
pub(super) fn image_url(draft: &Draft<'_>, found: &MediaContent<'_>) -> Result<String> {
    match &found.bytes {
        Bytes::Url(url) if is_web(url) => Ok((*url).to_owned()),
        Bytes::Here(data) => found.data_uri(draft, data),
        Bytes::Url(_) | Bytes::Id(_) => {
            let why = format!("{} cannot fetch this image", draft.api.title());
            Err(found.refuse(draft, why, "pass an `https://` URL, a `data:` URI, or the bytes in base64"))
        }
    }
}

fn audio(draft: &mut Draft<'_>, found: &MediaContent<'_>) -> Result<Json> {
    let Bytes::Here(data) = &found.bytes else {
        let why = "OpenAI does not fetch audio from a URL";
        return Err(found.refuse(draft, why, "pass a `data:` URI or the bytes in base64"));
    };
    let media_type = found.media_type.as_deref().unwrap_or("audio/wav");
    let format = match media_type.strip_prefix("audio/").unwrap_or(media_type) {
        "wav" | "x-wav" | "wave" | "vnd.wave" => "wav",
        "mp3" | "mpeg" => "mp3",
        "x-flac" => "flac",
        other => other,
    };
    if !["wav", "mp3"].contains(&format) {
        draft.warn(format!("OpenAI may refuse audio in the format `{format}`"), "use WAV or MP3");
    }
    Ok(json!({"type": "input_audio", "input_audio": {"data": data, "format": format}}))
}

fn file(draft: &mut Draft<'_>, found: &MediaContent<'_>) -> Result<Json> {
    let file = match &found.bytes {
        Bytes::Here(data) => {
            json!({"filename": found.file_name(), "file_data": found.data_uri(draft, data)?})
        }
        Bytes::Id(id) => json!({"file_id": id}),
        Bytes::Url(url) => {
            draft.warn(
                format!("OpenAI may refuse the file `{url}`, because it is a URL"),
                "OpenAI's chat API does not fetch files: pass a `data:` URI, or use `apiType: responses`",
            );
            json!({"url": url})
        }
    };
    Ok(json!({"type": "file", "file": file}))
}
