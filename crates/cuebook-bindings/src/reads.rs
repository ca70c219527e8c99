//! What the packages for npm ask of a render. Offsets are those of its texts: units of UTF-16, not bytes.

use cuebook::chat::wire::{Api, Request, body};
use cuebook::explain::{Answer, Explanation, Position, label};
use cuebook::{Diagnostic, Rendered as Text, Result};
use serde_json::{Value as Json, json};

use crate::context::usage;
use crate::replies::reply_json;

/// Answers a question about a render. The argument is a text for most of them.
///
/// # Errors
///
/// Those of the question, and `CB407` for an unknown one.
pub fn read(explanation: &Explanation, what: &str, argument: Option<&str>) -> Result<Json> {
    let rendered = explanation.rendered();
    Ok(match what {
        "promptId" => json!(rendered.prompt().id),
        "model" => json!(model(rendered)),
        "spans" => spans(rendered),
        "messages" => rendered.messages()?.iter().map(cuebook::Message::to_json).collect(),
        "wire" => {
            let wire = argument.map_or_else(|| rendered.wire(), |format| rendered.wire_as(format))?;
            json!({"body": wire.body, "notes": notes(&wire.notes)})
        }
        "chat" => chat(rendered)?,
        "segments" => json!(rendered.segments()),
        "explain" => {
            let offset = argument.and_then(|offset| offset.parse().ok()).unwrap_or(usize::MAX);
            let byte = byte(rendered.text(), offset)?;
            answer(rendered.text(), &explanation.at(Position::Offset(byte))?)
        }
        "find" => {
            let found = explanation.find(argument.unwrap_or_default())?;
            found.iter().map(|found| answer(rendered.text(), found)).collect()
        }
        "tools" => tools(rendered).into(),
        "notes" => notes(rendered.notes()),
        "explanation" => {
            let mut object = explanation.to_json();
            if let Some(object) = object.as_object_mut() {
                object.shift_remove("spans");
                object.shift_remove("text");
            }
            object
        }
        other => return Err(usage(format!("a render has no `{other}`"), "update the package")),
    })
}

/// The id of the model that is asked.
fn model(rendered: &Text) -> Option<&str> {
    let declared = || rendered.prompt().model.as_ref().map(|model| model.id.as_str());
    rendered.scope().model().or_else(declared)
}

/// The interface of a name, or of the prompt's provider.
///
/// # Errors
///
/// That of an unknown name.
pub fn api(rendered: &Text, format: Option<&str>) -> Result<Api> {
    let model = rendered.prompt().model.as_ref();
    let provider = format.or(model.and_then(|model| model.provider.as_deref())).unwrap_or("openai");
    Api::choose(provider, model.and_then(|model| model.api_type.as_deref()))
}

/// The body for OpenAI's chat API, whichever model is asked. Adapters make the values of other libraries from it.
fn chat(rendered: &Text) -> Result<Json> {
    let api = Api::choose("openai", None)?;
    let prompt = rendered.prompt();
    let mut model = prompt.model.clone().unwrap_or_default();
    if model.id.is_empty() {
        // A program that names its model itself has no use for this name.
        "any".clone_into(&mut model.id);
    }
    let (messages, _) = rendered.messages_for(api)?;
    let request =
        Request { model: &model, messages: &messages, tools: &rendered.tools(), outputs: &prompt.outputs };
    Ok(body(api, &request)?.body)
}

/// What a provider's reply says: the text or outputs, or the calls of tools.
///
/// # Errors
///
/// Those of the reply.
pub fn read_reply(explanation: &Explanation, format: Option<&str>, response: &Json) -> Result<Json> {
    let rendered = explanation.rendered();
    reply_json(api(rendered, format)?, response, !rendered.prompt().outputs.is_empty())
}

/// The tools that the model may call.
pub fn tools(rendered: &Text) -> Vec<Json> {
    rendered.tools().iter().map(cuebook::prompt::Tool::to_json).collect()
}

fn notes(notes: &[Diagnostic]) -> Json {
    notes.iter().map(|note| Json::Object(note.to_json())).collect()
}

fn spans(rendered: &Text) -> Json {
    let text = rendered.text();
    let (mut byte, mut at) = (0, 0);
    let spans = rendered.spans().map(|span| {
        at += units(&text[byte..span.range.start]);
        let start = at;
        at += units(&text[span.range.clone()]);
        byte = span.range.end;
        json!({
            "start": start, "end": at, "origin": span.origin.to_json(), "label": label(&span.origin),
            "section": span.section.as_deref(),
        })
    });
    spans.collect()
}

/// The units of UTF-16 of a text.
fn units(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// The byte at which the character begins that has this unit.
fn byte(text: &str, offset: usize) -> Result<usize> {
    if text.is_ascii() && offset < text.len() {
        return Ok(offset);
    }
    let mut at = 0;
    for (byte, character) in text.char_indices() {
        at += character.len_utf16();
        if offset < at {
            return Ok(byte);
        }
    }
    Err(usage(
        format!("the text has {at} characters, and none at {offset}"),
        "use an offset from 0 to text.length - 1",
    ))
}

/// A found place, in units.
fn answer(text: &str, answer: &Answer) -> Json {
    let in_units = |object: &mut Json| {
        for side in ["start", "end"] {
            if let Some(byte) = object[side].as_u64() {
                object[side] = json!(units(&text[..byte as usize]));
            }
        }
    };
    let mut object = answer.to_json();
    in_units(&mut object);
    object["pieces"].as_array_mut().into_iter().flatten().for_each(in_units);
    object
}
