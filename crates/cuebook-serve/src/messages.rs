//! What a rendered prompt says, in the words of the protocol.
//!
//! The protocol knows two roles, `user` and `assistant`, and one piece of content per message. So a message of several parts
//! becomes several messages of its role, and text of any other role travels as `user` with `"_meta": {"cuebook/role": "system"}`
//! on its content, addressed to the assistant by its annotations: a client that knows may put it where it belongs, and one that
//! does not still shows it to the model, first and in order.

use cuebook::Message;
use cuebook::chat::{Media, Part, Role};
use rmcp::model::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, MetaObject, PromptMessage,
    Resource, ResourceContents, Role as McpRole, TextContent,
};
use serde_json::{Value as Json, json};

/// A message of ours as messages of the protocol.
pub(crate) fn of(message: &Message) -> Vec<PromptMessage> {
    let role = if message.role == Role::Assistant { McpRole::Assistant } else { McpRole::User };
    let mut meta = MetaObject::new();
    if !matches!(message.role, Role::User | Role::Assistant) {
        meta.0.insert("cuebook/role".into(), json!(message.role.as_str()));
    }
    if !message.metadata.is_empty() {
        meta.0.insert("cuebook/metadata".into(), Json::Object(message.metadata.clone()));
    }
    let for_assistant = matches!(message.role, Role::System | Role::Developer);
    let metadata = PartMetadata {
        meta: (!meta.0.is_empty()).then_some(meta),
        annotations: for_assistant.then(|| Annotations::default().with_audience(vec![McpRole::Assistant])),
    };
    message.parts.iter().map(|part| PromptMessage::new(role.clone(), content(part, &metadata))).collect()
}

/// What every part of a message carries.
struct PartMetadata {
    meta: Option<MetaObject>,
    annotations: Option<Annotations>,
}

fn content(part: &Part, metadata: &PartMetadata) -> ContentBlock {
    let media = match part {
        Part::Text { value, .. } => {
            let mut text = TextContent::new(value);
            text.meta = metadata.meta.clone();
            text.annotations = metadata.annotations.clone();
            return ContentBlock::Text(text);
        }
        Part::Image(media) | Part::Audio(media) | Part::File(media) => media,
    };
    let Some((kind, bytes)) = inside(media) else { return link(part, media, metadata) };
    match part {
        Part::Image(_) => {
            let mut image = ImageContent::new(bytes, kind.unwrap_or_else(|| picture(bytes)));
            image.meta = metadata.meta.clone();
            image.annotations = metadata.annotations.clone();
            ContentBlock::Image(image)
        }
        Part::Audio(_) => {
            let mut audio = AudioContent::new(bytes, kind.unwrap_or("audio/wav"));
            audio.meta = metadata.meta.clone();
            audio.annotations = metadata.annotations.clone();
            ContentBlock::Audio(audio)
        }
        _ => {
            let uri = format!(
                "cuebook://file/{}",
                media.name.as_deref().map_or("document".into(), crate::uri::encode)
            );
            let contents =
                ResourceContents::blob(bytes, uri).with_mime_type(kind.unwrap_or("application/octet-stream"));
            let mut resource = EmbeddedResource::new(contents);
            resource.meta = metadata.meta.clone();
            resource.annotations = metadata.annotations.clone();
            ContentBlock::Resource(resource)
        }
    }
}

/// Something that lies elsewhere. Nothing is fetched: that is the client's to decide.
fn link(part: &Part, media: &Media, metadata: &PartMetadata) -> ContentBlock {
    let mut resource = Resource::new(&media.source, media.name.as_deref().unwrap_or(part.kind()));
    resource.mime_type = media.media_type.clone();
    resource.meta = metadata.meta.clone();
    resource.annotations = metadata.annotations.clone();
    ContentBlock::ResourceLink(resource)
}

/// The type and the bytes (in base64) of something that was passed whole.
fn inside(media: &Media) -> Option<(Option<&str>, &str)> {
    let given = media.media_type.as_deref();
    if let Some(data) = media.source.strip_prefix("data:") {
        let (head, bytes) = data.split_once(',')?;
        let kind = head.split(';').next().filter(|kind| !kind.is_empty());
        return Some((given.or(kind), bytes));
    }
    (!media.source.contains("://")).then_some((given, media.source.as_str()))
}

/// What a picture is, by how it begins (in base64).
fn picture(bytes: &str) -> &'static str {
    let known = [("/9j/", "image/jpeg"), ("R0lGOD", "image/gif"), ("UklGR", "image/webp")];
    known.iter().find(|(start, _)| bytes.starts_with(start)).map_or("image/png", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(message: &Message) -> Json {
        serde_json::to_value(of(message)).unwrap()
    }

    #[test]
    fn text_of_the_system_travels_as_the_user_s_and_says_what_it_is() {
        let said = wire(&Message::text(Role::System, "Be kind."));
        assert_eq!(
            said,
            json!([{"role": "user", "content": {
                "type": "text", "text": "Be kind.",
                "_meta": {"cuebook/role": "system"},
                "annotations": {"audience": ["assistant"]},
            }}])
        );
        assert_eq!(
            wire(&Message::text(Role::Assistant, "Yes.")),
            json!([{"role": "assistant", "content": {"type": "text", "text": "Yes."}}])
        );
    }

    #[test]
    fn every_part_is_a_message_of_its_own_in_its_place() {
        let media = |source: &str| Media { source: source.into(), ..Media::default() };
        let message = Message {
            role: Role::User,
            parts: vec![
                Part::text("Look:"),
                Part::Image(media("data:image/jpeg;base64,AAAA")),
                Part::Image(Media {
                    media_type: Some("image/png".into()),
                    ..media("https://x.example/cat.png")
                }),
                Part::Audio(Media { media_type: Some("audio/mp3".into()), ..media("BBBB") }),
                Part::File(Media {
                    name: Some("a b.pdf".into()),
                    ..media("data:application/pdf;base64,CCCC")
                }),
            ],
            metadata: serde_json::Map::new(),
        };
        assert_eq!(
            wire(&message),
            json!([
                {"role": "user", "content": {"type": "text", "text": "Look:"}},
                {"role": "user", "content": {"type": "image", "data": "AAAA", "mimeType": "image/jpeg"}},
                {"role": "user", "content": {"type": "resource_link", "uri": "https://x.example/cat.png", "name": "image", "mimeType": "image/png"}},
                {"role": "user", "content": {"type": "audio", "data": "BBBB", "mimeType": "audio/mp3"}},
                {"role": "user", "content": {"type": "resource", "resource": {"uri": "cuebook://file/a%20b.pdf", "mimeType": "application/pdf", "blob": "CCCC"}}},
            ])
        );
    }
}
