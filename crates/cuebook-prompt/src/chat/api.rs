//! The interfaces of providers, by their names.

use std::fmt;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};

/// An interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI's chat completions, which many others speak too.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// OpenAI's embeddings.
    OpenAiEmbeddings,
    /// OpenAI's pictures.
    OpenAiImages,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`. Its address names the model, so the body does not.
    Gemini,
}

impl Api {
    /// Every interface.
    pub const ALL: [Api; 6] = [
        Api::OpenAiChat,
        Api::OpenAiResponses,
        Api::OpenAiEmbeddings,
        Api::OpenAiImages,
        Api::Anthropic,
        Api::Gemini,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Api::OpenAiChat => "openai-chat",
            Api::OpenAiResponses => "openai-responses",
            Api::OpenAiEmbeddings => "openai-embeddings",
            Api::OpenAiImages => "openai-images",
            Api::Anthropic => "anthropic",
            Api::Gemini => "gemini",
        }
    }

    /// The interface that is meant by a name of [`Api::ALL`], or by a model's provider and its `apiType`.
    ///
    /// ```
    /// use cuebook::chat::wire::Api;
    ///
    /// assert_eq!(Api::choose("openai", Some("responses"))?, Api::OpenAiResponses);
    /// assert_eq!(Api::choose("anthropic", None)?, Api::Anthropic);
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn choose(name: &str, api_type: Option<&str>) -> Result<Api> {
        let wanted = name.trim().to_lowercase();
        let api_type = api_type.map(|api_type| api_type.trim().to_lowercase()).unwrap_or_default();
        if let Some(api) = Api::ALL.into_iter().find(|api| api.as_str() == wanted && !api.is_provider()) {
            return Ok(api);
        }
        let of_openai = match api_type.as_str() {
            "" | "chat" => Some(Api::OpenAiChat),
            "responses" => Some(Api::OpenAiResponses),
            "embedding" | "embeddings" => Some(Api::OpenAiEmbeddings),
            "image" | "images" => Some(Api::OpenAiImages),
            _ => None,
        };
        let (chosen, types): (_, &[&str]) = match wanted.as_str() {
            "openai" | "azure" | "foundry" => (of_openai, &["chat", "responses", "embedding", "image"]),
            "anthropic" | "google" | "gemini" => {
                let api = if wanted == "anthropic" { Api::Anthropic } else { Api::Gemini };
                let talks = matches!(of_openai, Some(Api::OpenAiChat | Api::OpenAiResponses));
                (talks.then_some(api), &["chat"])
            }
            _ => return Err(unknown_name(name)),
        };
        chosen.ok_or_else(|| {
            let message = format!("`{name}` has no API of the type `{api_type}`");
            let near = did_you_mean(&nearest(&api_type, types.iter().copied()));
            let hint = near.unwrap_or_else(|| format!("use one of: {}", types.join(", ")));
            Error::new(ErrorKind::Invoker, Diagnostic::new(Code::UnknownWire, message).hint(hint))
        })
    }

    /// The path of a request below the provider's base address, such as `https://api.openai.com/v1`.
    ///
    /// ```
    /// use cuebook::chat::wire::Api;
    ///
    /// assert_eq!(Api::OpenAiChat.path("gpt-5", true), "/chat/completions");
    /// assert_eq!(Api::Gemini.path("gemini-2.5-pro", false), "/models/gemini-2.5-pro:generateContent");
    /// ```
    pub fn path(self, model: &str, stream: bool) -> String {
        match self {
            Api::OpenAiChat => "/chat/completions".to_owned(),
            Api::OpenAiResponses => "/responses".to_owned(),
            Api::OpenAiEmbeddings => "/embeddings".to_owned(),
            Api::OpenAiImages => "/images/generations".to_owned(),
            Api::Anthropic => "/messages".to_owned(),
            Api::Gemini => {
                let call = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
                format!("/models/{}:{call}", escaped(model))
            }
        }
    }

    /// Whether its name is the provider's, so that the type of the interface still matters.
    fn is_provider(self) -> bool {
        matches!(self, Api::Anthropic | Api::Gemini)
    }

    /// Whether it refuses what has nothing but messages of the system.
    #[doc(hidden)]
    pub fn needs_a_question(self) -> bool {
        matches!(self, Api::OpenAiResponses | Api::Anthropic | Api::Gemini)
    }

    /// What people call it.
    #[doc(hidden)]
    pub fn title(self) -> &'static str {
        match self {
            Api::OpenAiChat => "OpenAI's chat API",
            Api::OpenAiResponses => "OpenAI's responses API",
            Api::OpenAiEmbeddings => "OpenAI's embeddings API",
            Api::OpenAiImages => "OpenAI's image API",
            Api::Anthropic => "Anthropic",
            Api::Gemini => "Gemini",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A model's name as one segment of a path.
fn escaped(model: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    model
        .bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn unknown_name(name: &str) -> Error {
    let formats = Api::ALL.map(Api::as_str);
    let providers = ["openai", "azure", "foundry", "google"];
    let message = format!("unknown provider or wire format `{name}`");
    let near = nearest(name, formats.into_iter().chain(providers));
    let hint = did_you_mean(&near).unwrap_or_else(|| {
        "use `openai`, `anthropic` or `gemini`; for a server with OpenAI's interface, use `openai`".into()
    });
    let diagnostic = Diagnostic::new(Code::UnknownWire, message).hint(hint);
    Error::new(ErrorKind::Invoker, diagnostic).with("name", name).with("known", formats).with("nearest", near)
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_model_is_one_segment_of_a_path() {
        assert_eq!(escaped("gemini-2.5-pro"), "gemini-2.5-pro");
        assert_eq!(escaped("a/../b?c"), "a%2F..%2Fb%3Fc");
    }
}
