//! Content that a tool gives: text, pictures, sounds and resources.
//!
//! A tool gives it under `content`, in the form of the protocol. It follows the answer as content of the result. The answer itself
//! has the sizes of pictures and sounds in place of their bytes, so that they travel once.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::ContentBlock;
use serde_json::{Value as Json, json};

/// The content of an answer, whose bytes are taken out of the answer. What does not have the form of the protocol stays data.
pub(crate) fn take(answer: &mut Json) -> Vec<ContentBlock> {
    let Some(blocks) = answer.get_mut("data").and_then(|data| data.get_mut("content")) else {
        return Vec::new();
    };
    let Some(blocks) = blocks.as_array_mut().filter(|blocks| !blocks.is_empty()) else { return Vec::new() };
    let content: Option<Vec<ContentBlock>> = blocks.iter().map(block).collect();
    let Some(content) = content else { return Vec::new() };
    for block in blocks {
        measure(block, "data");
        if let Some(resource) = block.get_mut("resource") {
            measure(resource, "blob");
        }
    }
    content
}

/// One piece of content, if it is one and its bytes are valid.
fn block(given: &Json) -> Option<ContentBlock> {
    let block: ContentBlock = serde_json::from_value(given.clone()).ok()?;
    let encoded = given.get("data").or_else(|| given.get("resource")?.get("blob"));
    let is_valid = encoded.and_then(Json::as_str).is_none_or(|encoded| STANDARD.decode(encoded).is_ok());
    is_valid.then_some(block)
}

/// Puts the number of bytes in the place of the bytes.
fn measure(block: &mut Json, key: &str) {
    let Json::Object(block) = block else { return };
    if let Some(Json::String(encoded)) = block.get(key) {
        let bytes = encoded.len() / 4 * 3 - encoded.bytes().rev().take_while(|byte| *byte == b'=').count();
        block.shift_remove(key);
        block.insert("bytes".to_owned(), json!(bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_content_follows_the_answer_once() {
        let resource = json!({"uri": "file:///a", "mimeType": "text/plain", "text": "A"});
        let blob = json!({"uri": "file:///b", "blob": "AAEC"});
        let given = json!([
            {"type": "text", "text": "hello"},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"},
            {"type": "resource", "resource": resource},
            {"type": "resource", "resource": blob},
            {"type": "resource_link", "uri": "file:///c", "name": "c"},
        ]);
        let mut answer = json!({"status": "success", "data": {"content": given}});
        let content = serde_json::to_value(take(&mut answer)).unwrap();
        for (ours, wanted) in content.as_array().unwrap().iter().zip(given.as_array().unwrap()) {
            assert_eq!(ours, wanted);
        }
        assert_eq!(content.as_array().unwrap().len(), 6);
        let left = &answer["data"]["content"];
        assert_eq!(left[1], json!({"type": "image", "mimeType": "image/png", "bytes": 4}));
        assert_eq!(left[4]["resource"], json!({"uri": "file:///b", "bytes": 3}));
    }

    #[test]
    fn data_that_is_not_content_stays_data() {
        for data in [
            json!({"content": "text"}),
            json!({"content": []}),
            json!({"content": [{"type": "image", "data": "not base64!", "mimeType": "image/png"}]}),
            json!({"content": [{"type": "text", "text": "a"}, {"type": "video"}]}),
            json!([{"type": "text", "text": "a"}]),
        ] {
            let mut answer = json!({"status": "success", "data": data});
            assert!(take(&mut answer).is_empty(), "{answer}");
            assert_eq!(answer["data"], data);
        }
    }
}
