//! The interfaces of providers.

/// An interface that the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Api {
    /// OpenAI's chat completions.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`.
    Gemini,
}

impl Api {
    /// Every interface.
    pub const ALL: [Api; 4] = [Api::OpenAiChat, Api::OpenAiResponses, Api::Anthropic, Api::Gemini];

    /// Its name in provider files.
    pub fn as_str(self) -> &'static str {
        match self {
            Api::OpenAiChat => "openai-chat",
            Api::OpenAiResponses => "openai-responses",
            Api::Anthropic => "anthropic",
            Api::Gemini => "gemini",
        }
    }

    pub(crate) fn of_path(path: &str) -> Option<Api> {
        let path = path.split('?').next().unwrap_or(path);
        match path {
            _ if path.ends_with("/chat/completions") => Some(Api::OpenAiChat),
            _ if path.ends_with("/responses") => Some(Api::OpenAiResponses),
            _ if path.ends_with("/messages") => Some(Api::Anthropic),
            _ if path.ends_with(":generateContent") || path.ends_with(":streamGenerateContent") => {
                Some(Api::Gemini)
            }
            _ => None,
        }
    }
}
