//! OpenAI's responses.

use serde_json::{Value as Json, json};

use super::calls::{ANSWERS, CALLS, ITEM};
use super::chat::{image_url, structured_output};
use super::draft::{Draft, MessagePosition, WrittenBody};
use super::media::{Bytes, MediaContent, is_web};
use super::piece::Piece;
use super::schema::Variant;
use crate::chat::reply::REASONING;
use crate::chat::{Part, Role};
use crate::error::Result;

const OPTIONS: [(&str, &str); 4] = [
    ("temperature", "temperature"),
    ("maxOutputTokens", "max_output_tokens"),
    ("topP", "top_p"),
    ("allowMultipleToolCalls", "parallel_tool_calls"),
];

/// Fields that say elsewhere what a conversation is about.
const INSTEAD_OF_INPUT: [&str; 4] = ["input", "previous_response_id", "conversation", "prompt"];

pub(super) fn body(mut draft: Draft<'_>) -> Result<WrittenBody<'_>> {
    draft.put("model", draft.request.model.id.as_str());
    if let Some(instructions) = draft.instructions()? {
        draft.put("instructions", instructions);
    }
    let mut items = Vec::new();
    for spot in draft.spots() {
        item(&mut draft, spot, &mut items)?;
    }
    let additional = &draft.request.model.options.additional_properties;
    if !items.is_empty() {
        draft.put("input", items);
    } else if !INSTEAD_OF_INPUT.iter().any(|key| additional.contains_key(*key)) {
        let why = "needs at least one message that is not a system message";
        return Err(draft.nothing_to_say(why, "write a message under a line `user:`"));
    }
    for (name, value) in draft.options(&OPTIONS, &[]) {
        draft.put(name, value);
    }
    if let Some(tools) = draft.tools(tools)? {
        draft.put("tools", tools);
    }
    if let Some(schema) = structured_output(&mut draft)? {
        let format =
            json!({"type": "json_schema", "name": "structured_output", "schema": schema, "strict": true});
        draft.put("text", json!({"format": format}));
    }
    Ok(draft.finish())
}

fn tools(draft: &mut Draft<'_>) -> Result<Vec<Json>> {
    let mut tools = Vec::new();
    for function in draft.functions() {
        let variant = if function.strict { Variant::Strict } else { Variant::Plain };
        let mut object = function.described(draft, "parameters", variant)?;
        object.insert("type".into(), json!("function"));
        // Always said: what is not said is strict here, unlike in chats.
        object.insert("strict".into(), json!(function.strict));
        tools.push(Json::Object(object));
    }
    Ok(tools)
}

fn item<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>, items: &mut Vec<Piece<'r>>) -> Result<()> {
    let message = spot.message;
    match message.role {
        Role::System | Role::Developer => return Ok(()),
        Role::Other(_) => return Err(draft.unknown_role(spot)),
        _ => {}
    }
    if let Some(id) = draft.answers(spot)? {
        draft.leftover(spot, &[ANSWERS, "name"]);
        let output = content(draft, spot)?;
        items.push(Piece::object([
            ("type", "function_call_output".into()),
            ("call_id", id.into()),
            ("output", output),
        ]));
        return Ok(());
    }
    let thoughts = message.metadata.get(REASONING).and_then(Json::as_array);
    let sent = [CALLS, ITEM, REASONING];
    draft.leftover(spot, if thoughts.is_some() { &sent } else { &sent[..2] });
    let calls = draft.calls(spot)?;
    // What it thought stands before what it said and called because of that.
    for thought in thoughts.into_iter().flatten() {
        if let Json::Object(thought) = thought {
            let known = thought.iter().filter(|(_, value)| !value.is_null());
            items.push(Piece::Object(known.map(|(key, value)| (key.as_str(), value.into())).collect()));
        }
    }
    let content = match message.role {
        Role::Assistant => draft.only_text(spot)?.into(),
        _ => content(draft, spot)?,
    };
    // A message that does nothing but call says nothing.
    if calls.is_empty() || !matches!(&content, Piece::Text(text) if text.is_empty()) {
        items.push(Piece::object([("role", message.role.as_str().into()), ("content", content)]));
    }
    for call in calls {
        items.push(if call.entry.get("type").is_some_and(|kind| kind == "function_call") {
            Piece::Object(call.entry.iter().map(|(key, value)| (key.as_str(), value.into())).collect())
        } else {
            Piece::object([
                ("type", "function_call".into()),
                ("call_id", call.id.into()),
                ("name", call.name.into()),
                ("arguments", Piece::Text(call.arguments)),
            ])
        });
    }
    Ok(())
}

fn content<'r>(draft: &mut Draft<'r>, spot: MessagePosition<'r>) -> Result<Piece<'r>> {
    let parts = &spot.message.parts;
    if parts.iter().all(|part| matches!(part, Part::Text { .. })) {
        return draft.only_text(spot).map(Piece::Text);
    }
    let mut blocks = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let spot = spot.part(index);
        blocks.push(match part {
            Part::Text { value, .. } if value.is_empty() => continue,
            Part::Text { value, .. } => {
                Piece::object([("type", "input_text".into()), ("text", value.into())])
            }
            Part::Image(media) => image(draft, &draft.media(spot, media)?)?.into(),
            Part::File(media) => file(draft, &draft.media(spot, media)?)?.into(),
            Part::Audio(_) => {
                let why = "OpenAI's responses API does not accept audio";
                return Err(draft.refuse(spot, why, "use `apiType: chat` with a model that accepts audio"));
            }
        });
    }
    Ok(Piece::List(blocks))
}

fn image(draft: &Draft<'_>, found: &MediaContent<'_>) -> Result<Json> {
    let detail = found.detail.unwrap_or("auto");
    if let Bytes::Id(id) = &found.bytes {
        return Ok(json!({"type": "input_image", "file_id": id, "detail": detail}));
    }
    Ok(json!({"type": "input_image", "image_url": image_url(draft, found)?, "detail": detail}))
}

fn file(draft: &Draft<'_>, found: &MediaContent<'_>) -> Result<Json> {
    Ok(match &found.bytes {
        Bytes::Here(data) => json!({
            "type": "input_file",
            "filename": found.file_name(),
            "file_data": found.data_uri(draft, data)?,
        }),
        Bytes::Id(id) => json!({"type": "input_file", "file_id": id}),
        Bytes::Url(url) if is_web(url) => json!({"type": "input_file", "file_url": url}),
        Bytes::Url(_) => {
            let why = "OpenAI cannot fetch this file";
            return Err(found.refuse(
                draft,
                why,
                "pass an `https://` URL, a `data:` URI, or the bytes in base64",
            ));
        }
    })
}
