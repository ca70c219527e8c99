//! OpenAI's images.

use super::reply_value::{ReplyValue, bad};
use super::{Answer, Api, ProviderState, Usage, pictures};
use crate::error::Result;

pub(super) fn read(reply: &ReplyValue<'_, '_>) -> Result<Answer> {
    let data = reply.need("data")?;
    let mut images = Vec::new();
    for item in data.items()? {
        item.object()?;
        let image = match item.text_of("url")? {
            Some(url) => Some(url),
            None => item.text_of("b64_json")?,
        };
        let Some(image) = image else {
            let path = item.path();
            return Err(bad(format!("`{path}` has neither `url` nor `b64_json`")).with("path", path));
        };
        images.push(image.to_owned());
    }
    let answer = pictures(images)
        .ok_or_else(|| bad("`data` is empty, but must hold at least one image").with("path", "data"))?;
    Ok(Answer {
        reply: answer,
        thinking: None,
        usage: Usage::read(Api::OpenAiImages, reply.value.get("usage")),
        finish: None,
        model: reply.note("model"),
        id: reply.note("id"),
        provider_state: ProviderState::default(),
    })
}
