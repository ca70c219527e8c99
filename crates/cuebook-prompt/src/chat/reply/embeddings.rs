//! OpenAI's embeddings.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::reply_value::{ReplyValue, bad};
use super::{Answer, Api, ProviderState, Reply, Usage};
use crate::error::Result;

pub(super) fn read(reply: &ReplyValue<'_, '_>) -> Result<Answer> {
    let data = reply.need("data")?;
    let mut vectors = Vec::new();
    for (position, item) in data.items()?.enumerate() {
        let embedding = item.need("embedding")?;
        let index = item.value.get("index").and_then(|index| index.as_u64()).unwrap_or(position as u64);
        vectors.push((index, vector(&embedding)?));
    }
    // The order of the texts is what the index says, not the order in which the vectors came.
    vectors.sort_by_key(|(index, _)| *index);
    let mut vectors: Vec<Vec<f64>> = vectors.into_iter().map(|(_, vector)| vector).collect();
    let answer = match vectors.len() {
        0 => return Err(bad("`data` is empty, but must hold at least one embedding").with("path", "data")),
        1 => Reply::Embedding(vectors.remove(0)),
        _ => Reply::Embeddings(vectors),
    };
    Ok(Answer {
        reply: answer,
        thinking: None,
        usage: Usage::read(Api::OpenAiEmbeddings, reply.value.get("usage")),
        finish: None,
        model: reply.note("model"),
        id: reply.note("id"),
        provider_state: ProviderState::default(),
    })
}

/// A vector: numbers, or the bytes of 32-bit floats in base64 (`encoding_format: base64`).
fn vector(embedding: &ReplyValue<'_, '_>) -> Result<Vec<f64>> {
    let Some(text) = embedding.value.as_str() else {
        return embedding
            .items()?
            .map(|item| item.value.as_f64().ok_or_else(|| item.wrong("a number")))
            .collect();
    };
    let bytes = STANDARD.decode(text).ok().filter(|bytes| bytes.len() % 4 == 0).ok_or_else(|| {
        let path = embedding.path();
        bad(format!("`{path}` must be a list of numbers, or 32-bit floats in base64")).with("path", path)
    })?;
    Ok(bytes
        .chunks_exact(4)
        .map(|bytes| f64::from(f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])))
        .collect())
}
