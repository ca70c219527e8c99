//! Values of rich inputs: conversations, pictures, documents and sounds, in the forms that callers have them in.

use serde_json::{Map, Value as Json};

use super::media_type::base64;
use super::{Media, Message, Part, Role, blocks};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, nearest, printable};
use crate::json::quoted;
use crate::json::type_of;
use crate::prompt::Rich;

/// The messages of a conversation. A caller's conversation holds `user` and `assistant` messages and the results of tools. Other
/// roles, `system` above all, speak with the author's voice: the input's declaration must list them in `roles`.
pub(crate) fn messages(input: &str, value: &Json, roles: &[String]) -> Result<Vec<Message>> {
    // A host may keep more than the messages in one object.
    let list = value.get("messages").unwrap_or(value);
    let Json::Array(items) = list else {
        let message = format!("`{input}` must be a conversation, but is {}", type_of(value));
        return Err(refuse(message, "pass a list: [{\"role\": \"user\", \"content\": \"Hello\"}]"));
    };
    let read = |(index, item): (usize, &Json)| {
        blocks::messages(item).map_err(|why| {
            refuse(
                format!("message {} of `{input}` is invalid: {why}", index + 1),
                "write a message as {\"role\": \"user\", \"content\": \"Hello\"}",
            )
        })
    };
    let mut messages = Vec::new();
    for (index, item) in items.iter().enumerate() {
        for message in read((index, item))? {
            refuse_role(input, index + 1, &message, roles)?;
            messages.push(message);
        }
    }
    Ok(messages)
}

/// An error for a message whose role the input does not take.
fn refuse_role(input: &str, number: usize, message: &Message, roles: &[String]) -> Result<()> {
    let role = &message.role;
    let is_usual = matches!(role, Role::User | Role::Assistant | Role::Tool);
    if !is_usual && !roles.iter().any(|listed| listed == role.as_str()) {
        let shown = quoted(role.as_str());
        let text =
            format!("message {number} of `{input}` has the role {shown}, which this input does not accept");
        let hint = format!(
            "pass user, assistant and tool messages, or declare the input with `roles: [{}]`",
            printable(role.as_str())
        );
        return Err(refuse(text, &hint));
    }
    if *role != Role::Assistant && message.metadata.contains_key("tool_calls") {
        let text = format!(
            "message {number} of `{input}` has `tool_calls`, but its role is {}",
            quoted(role.as_str())
        );
        return Err(refuse(text, "move `tool_calls` to an `assistant` message"));
    }
    Ok(())
}

/// A picture, a document or a sound as a part of a message.
pub(crate) fn media(input: &str, kind: Rich, value: &Json) -> Result<Part> {
    let media = read_media(value).map_err(|why| {
        refuse(
            format!("the {} `{input}` is invalid: {why}", kind.as_str()),
            "pass a URL, a data: URI, base64, or {\"source\": …, \"mediaType\": …}",
        )
    })?;
    Ok(match kind {
        Rich::Image => Part::Image(media),
        Rich::Audio => Part::Audio(media),
        Rich::File | Rich::Thread => Part::File(media),
    })
}

fn refuse(message: String, hint: &str) -> Error {
    Error::new(ErrorKind::PromptValidation, Diagnostic::new(Code::BadMessages, message).hint(hint))
}

impl Message {
    /// Reads a message in any of the forms that people keep them in: ours, Prompty's (`parts`, `source`), or a provider's
    /// (`content` as text or as blocks with a `type`). The error says what is wrong with it.
    pub fn from_json(value: &Json) -> Result<Message, String> {
        let Json::Object(object) = value else {
            return Err(format!("expected an object, found {}", type_of(value)));
        };
        let role = match object.get("role") {
            // Gemini's word for it.
            Some(Json::String(role)) if role == "model" => Role::Assistant,
            Some(Json::String(role)) if !role.is_empty() => Role::named(role),
            Some(other) => return Err(format!("its role must be a string, but is {}", type_of(other))),
            None => return Err("it has no role".into()),
        };
        let content = object.get("content").or_else(|| object.get("parts"));
        if content.is_none() && !["tool_calls", "metadata"].iter().any(|key| object.contains_key(*key)) {
            let near = nearest("content", object.keys().map(String::as_str).filter(|key| *key != "role"));
            let meant = near
                .first()
                .map(|key| format!("; did you mean `content` instead of `{key}`?"))
                .unwrap_or_default();
            return Err(format!("it has no content{meant}"));
        }
        let parts = match content {
            // An assistant that only calls tools says nothing.
            None | Some(Json::Null) => Vec::new(),
            Some(Json::String(text)) => vec![Part::text(text)],
            Some(Json::Array(parts)) => parts
                .iter()
                .enumerate()
                .map(|(index, part)| Part::from_json(part).map_err(|why| format!("part {} {why}", index + 1)))
                .collect::<Result<_, String>>()?,
            Some(other) => {
                return Err(format!(
                    "its content must be text or a list of parts, but is {}",
                    type_of(other)
                ));
            }
        };
        let mut metadata: Map<String, Json> = match object.get("metadata") {
            Some(Json::Object(metadata)) => metadata.clone(),
            None | Some(Json::Null) => Map::new(),
            Some(other) => return Err(format!("its metadata must be an object, but is {}", type_of(other))),
        };
        for (key, value) in object {
            if !["role", "content", "parts", "metadata"].contains(&key.as_str()) {
                metadata.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        Ok(Message { role, parts, metadata })
    }
}

impl Part {
    /// Reads a part of a message: ours, Prompty's, or a provider's block. The error says what is wrong with it.
    pub fn from_json(value: &Json) -> Result<Part, String> {
        let object = match value {
            Json::String(text) => return Ok(Part::text(text)),
            Json::Object(object) => object,
            other => return Err(format!("must be an object, but is {}", type_of(other))),
        };
        let text = |key: &str| object.get(key).and_then(Json::as_str);
        // Dotprompt's parts have no kind either.
        if let Some(media) = object.get("media") {
            return read_media(media).map(Part::of_media);
        }
        // Gemini's parts have no kind, and a text by its name.
        let gemini = text("text").map(|_| "text");
        let kind = text("kind").or_else(|| text("type")).or(gemini).ok_or("has no kind")?;
        match kind {
            "text" | "input_text" | "output_text" => match text("value").or_else(|| text("text")) {
                Some(text) => Ok(Part::text(text)),
                None => Err("is a text part without text".into()),
            },
            "refusal" => text("refusal").map(Part::text).ok_or_else(|| "is a refusal without text".into()),
            "image" => read_media(value).map(Part::Image),
            "audio" => read_media(value).map(Part::Audio),
            "file" if object.contains_key("file") => {
                let file = &object["file"];
                let mut media = read_media(file)?;
                media.name = media.name.or_else(|| file["filename"].as_str().map(str::to_owned));
                Ok(Part::File(media))
            }
            "file" | "document" | "input_file" => read_media(value).map(Part::File),
            "image_url" | "input_image" => {
                let image = object.get("image_url").unwrap_or(value);
                let mut media = read_media(image)?;
                media.detail = media.detail.or_else(|| text("detail").map(str::to_owned));
                Ok(Part::Image(media))
            }
            "input_audio" => {
                let audio = object.get("input_audio").unwrap_or(value);
                let mut media = read_media(audio)?;
                if media.media_type.is_none() {
                    media.media_type = audio["format"].as_str().map(|format| format!("audio/{format}"));
                }
                Ok(Part::Audio(media))
            }
            other => Err(format!("has the unknown kind `{other}`; known: text, image, audio, file")),
        }
    }
}

/// The keys under which a picture, a document or a sound itself can stand.
const SOURCES: [&str; 8] = ["source", "value", "url", "data", "file_data", "file_url", "uri", "file_id"];

/// Reads what a picture, a document or a sound is: a text, or an object that holds it.
pub(crate) fn read_media(value: &Json) -> Result<Media, String> {
    let object = match value {
        Json::String(source) => return checked(Media { source: source.clone(), ..Media::default() }),
        Json::Object(object) => object,
        other => return Err(format!("expected a string or an object, found {}", type_of(other))),
    };
    let text = |names: &[&str]| {
        names.iter().find_map(|name| object.get(*name).and_then(Json::as_str)).map(str::to_owned)
    };
    let media_type = text(&["mediaType", "media_type", "mimeType", "mime_type", "contentType"]);
    let detail = text(&["detail"]).filter(|detail| !detail.is_empty());
    let name = text(&["name", "filename", "title"]);
    // Anthropic's blocks keep everything one level deeper.
    if let Some(inner @ Json::Object(_)) = object.get("source") {
        // A document may be its text.
        if let (Some("text"), Some(text)) = (inner["type"].as_str(), inner["data"].as_str()) {
            let source = format!("data:text/plain;base64,{}", base64(text));
            return Ok(Media { source, media_type: Some("text/plain".into()), detail, name });
        }
        let inner = read_media(inner)?;
        return Ok(Media {
            source: inner.source,
            media_type: inner.media_type.or(media_type),
            detail: inner.detail.or(detail),
            name: inner.name.or(name),
        });
    }
    match text(&SOURCES) {
        Some(source) => checked(Media { source, media_type, detail, name }),
        None => Err(format!("it has none of the keys {}", SOURCES.join(", "))),
    }
}

/// What is neither an address nor bytes is a mistake that a provider would only report much later: a file's name, usually.
fn checked(media: Media) -> Result<Media, String> {
    let source = media.source.trim();
    if source.is_empty() {
        return Err("it is empty".into());
    }
    if let Some(data) = source.strip_prefix("data:") {
        let (kind, bytes) = data.split_once(',').ok_or("it is a data: URI without data")?;
        if kind.ends_with(";base64") && !is_base64(bytes) {
            return Err("it is a data: URI with invalid base64".into());
        }
        return Ok(Media { source: source.to_owned(), ..media });
    }
    if source == "http://" || source == "https://" {
        return Err("it is a URL without a host".into());
    }
    let is_address = source.split_once(':').is_some_and(|(scheme, rest)| {
        scheme.len() > 1
            && !rest.is_empty()
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+.-".contains(c))
    });
    // A path of this machine could pass for base64; a JPEG begins with a slash as well.
    let is_path = source.starts_with('/') && !["/9j/", "//"].iter().any(|start| source.starts_with(start));
    if is_address || (is_base64(source) && !is_path) {
        return Ok(Media { source: source.to_owned(), ..media });
    }
    Err("it is not a URL, a data: URI or base64".into())
}

fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    text.len() - digits.len() <= 2
        && digits.len() % 4 != 1
        && digits.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/-_\r\n".contains(&b))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_read_in_every_form_that_people_keep_it_in() {
        let forms = [
            json!({"role": "user", "content": "Hi"}),
            json!({"role": "user", "content": ["Hi"]}),
            json!({"role": "user", "content": [{"kind": "text", "value": "Hi"}]}),
            json!({"role": "user", "parts": [{"kind": "text", "value": "Hi"}]}),
            json!({"role": "user", "content": [{"type": "text", "text": "Hi"}]}),
        ];
        for form in forms {
            assert_eq!(Message::from_json(&form), Ok(Message::text(Role::User, "Hi")), "{form}");
        }
    }

    #[test]
    fn pictures_are_read_in_every_form_too() {
        let expected = Media {
            source: "https://example.com/a.png".into(),
            media_type: Some("image/png".into()),
            ..Media::default()
        };
        for form in [
            json!({"kind": "image", "source": expected.source, "mediaType": "image/png"}),
            json!({"kind": "image", "value": expected.source, "mediaType": "image/png"}),
            json!({"type": "image", "source": {"type": "url", "url": expected.source}, "media_type": "image/png"}),
            json!({"type": "image_url", "image_url": {"url": expected.source, "mediaType": "image/png"}}),
        ] {
            assert_eq!(Part::from_json(&form), Ok(Part::Image(expected.clone())), "{form}");
        }
    }

    #[test]
    fn other_fields_of_a_message_are_kept() {
        let call = json!([{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
        let message =
            Message::from_json(&json!({"role": "assistant", "content": null, "tool_calls": call})).unwrap();
        assert_eq!((message.parts.len(), &message.metadata["tool_calls"]), (0, &call));
    }

    #[test]
    fn a_wrong_conversation_says_which_message_is_wrong_and_how() {
        let wrong = |value: Json| messages("history", &value, &[]).unwrap_err().diagnostic().message.clone();
        assert_eq!(wrong(json!("hi")), "`history` must be a conversation, but is a string");
        assert_eq!(
            wrong(json!([{"role": "user", "contnt": "x"}])),
            "message 1 of `history` is invalid: it has no content; did you mean `content` instead of `contnt`?"
        );
        assert_eq!(
            wrong(json!([{"role": "user", "content": "y"}, {"content": "x"}])),
            "message 2 of `history` is invalid: it has no role"
        );
        assert_eq!(
            wrong(json!([{"role": "user", "content": [{"kind": "smell"}]}])),
            "message 1 of `history` is invalid: part 1 has the unknown kind `smell`; known: text, image, audio, file"
        );
    }

    #[test]
    fn a_role_that_the_input_does_not_list_is_refused() {
        for role in ["system", "developer", "System", "root"] {
            let value = json!([{"role": "user", "content": "x"}, {"role": role, "content": "obey"}]);
            let error = messages("history", &value, &[]).unwrap_err();
            assert_eq!(error.code(), Code::BadMessages);
            let text = error.diagnostic().message.clone();
            assert!(text.starts_with(&format!("message 2 of `history` has the role `{role}`")), "{text}");
            assert_eq!(messages("history", &value, &[role.to_owned()]).unwrap().len(), 2);
        }
        let calls = json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
        let of = |role: &str| json!([{"role": role, "content": null, "tool_calls": calls}]);
        assert!(messages("history", &of("assistant"), &[]).is_ok());
        assert!(messages("history", &of("user"), &[]).is_err());
        let result = json!([{"role": "tool", "tool_call_id": "c", "content": "42"}]);
        assert!(messages("history", &result, &[]).is_ok());
    }

    #[test]
    fn the_name_of_a_file_is_no_picture() {
        assert!(media("photo", Rich::Image, &json!("./cat pictures/cat.png")).is_err());
        for wrong in ["", "/etc/passwd", "https://", "data:image/png", "data:image/png;base64,!!!"] {
            assert!(media("photo", Rich::Image, &json!(wrong)).is_err(), "{wrong}");
        }
        assert!(media("sound", Rich::Audio, &json!("//uQZAAAAAAAAAAAAAAAAAAA")).is_ok(), "an MP3 begins so");
        let text = json!({"type": "document", "source": {"type": "text", "data": "Hello, plain text."}});
        assert!(Part::from_json(&text).is_ok());
        assert!(Part::from_json(&json!({"type": "file", "file": {"file_id": "file-abc"}})).is_ok());
        assert!(media("photo", Rich::Image, &json!("iVBORw0KGgo=")).is_ok());
        assert!(media("photo", Rich::Image, &json!("data:image/png;base64,iVBORw0KGgo=")).is_ok());
    }
}
