//! Prompts of Langfuse: read from its public interface, written as `.prompty` files, and made from prompts.
//!
//! A prompt of Langfuse is a text or a list of messages. `{{name}}` shows a variable, and a placeholder takes a conversation. It has no
//! conditions, loops, filters or tools. Its configuration is any JSON; the keys that name a model and its options become the `model`
//! of the file.

mod pull;
mod push;

use serde_json::{Map, Value as Json, json};

use crate::chat::Role;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};

/// The file beside a pulled prompt that keeps the rest of its configuration.
pub const LANGFUSE_FILE: &str = "langfuse.json";
/// An input whose default is a colon. A line such as `user:` begins a message if its author wrote all of it; with a value in the place of
/// its colon it is text.
const COLON: &str = "role_colon";
/// The key of the configuration that names the model.
const MODEL: &str = "model";
/// The key of the configuration that names the provider.
const PROVIDER: &str = "provider";
/// Options of a model that are numbers: the key of the configuration, and that of a `.prompty` file.
const NUMBERS: [(&str, &str); 7] = [
    ("temperature", "temperature"),
    ("max_tokens", "maxOutputTokens"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("seed", "seed"),
];
/// The key of the configuration that lists texts at which a model stops, and that of a `.prompty` file.
const STOP: (&str, &str) = ("stop", "stopSequences");

/// A version of a prompt as Langfuse stores it.
#[derive(Debug, Clone, PartialEq)]
pub struct LangfusePrompt {
    /// Its name, which may have slashes and spaces.
    pub name: String,
    /// Its version; `None` before it is pushed.
    pub version: Option<u64>,
    /// What it says.
    pub content: LangfuseContent,
    /// Its configuration.
    pub config: Map<String, Json>,
}

/// What a prompt of Langfuse says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LangfuseContent {
    /// A text.
    Text(String),
    /// Messages and placeholders.
    Chat(Vec<LangfuseMessage>),
}

/// A message of a chat prompt, or a place for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LangfuseMessage {
    /// A message.
    Message {
        /// Its role.
        role: Role,
        /// Its text.
        content: String,
    },
    /// The name of a conversation that the caller passes.
    Placeholder(String),
}

impl LangfusePrompt {
    /// Reads the answer of the interface. Keys without a meaning here are ignored.
    ///
    /// ```
    /// use cuebook_lab::convert::LangfusePrompt;
    ///
    /// let answer = r#"{"name": "greeting", "version": 3, "type": "text", "prompt": "Hello {{name}}", "config": {}}"#;
    /// let prompt = LangfusePrompt::read(&serde_json::from_str(answer)?)?;
    /// assert_eq!(prompt.version, Some(3));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// `CB246` if a part is missing or has another type.
    pub fn read(answer: &Json) -> Result<LangfusePrompt> {
        let name = answer["name"].as_str().ok_or_else(|| bad("`name` must be a string"))?;
        let version = answer["version"].as_u64().filter(|version| *version > 0);
        let version = version.ok_or_else(|| bad("`version` must be a whole number from 1"))?;
        let config = match &answer["config"] {
            Json::Null => Map::new(),
            Json::Object(config) => config.clone(),
            _ => return Err(bad("`config` must be an object")),
        };
        let content = match (answer["type"].as_str().unwrap_or("text"), &answer["prompt"]) {
            ("text", Json::String(text)) => LangfuseContent::Text(text.clone()),
            ("text", _) => return Err(bad("`prompt` of a text prompt must be a string")),
            ("chat", Json::Array(list)) if list.is_empty() => {
                return Err(bad("`prompt` has no message"));
            }
            ("chat", Json::Array(list)) => LangfuseContent::Chat(
                list.iter().enumerate().map(|(index, entry)| message(index, entry)).collect::<Result<_>>()?,
            ),
            ("chat", _) => return Err(bad("`prompt` of a chat prompt must be a list")),
            _ => return Err(bad("`type` must be text or chat")),
        };
        Ok(LangfusePrompt { name: name.to_owned(), version: Some(version), content, config })
    }

    /// The body of the request that stores it as a new version with these labels.
    pub fn to_json(&self, labels: &[String]) -> Json {
        let (kind, prompt) = match &self.content {
            LangfuseContent::Text(text) => ("text", json!(text)),
            LangfuseContent::Chat(messages) => {
                let entry = |message: &LangfuseMessage| match message {
                    LangfuseMessage::Message { role, content } => {
                        json!({"role": role.as_str(), "content": content})
                    }
                    LangfuseMessage::Placeholder(name) => json!({"type": "placeholder", "name": name}),
                };
                ("chat", messages.iter().map(entry).collect())
            }
        };
        json!({"name": self.name, "type": kind, "prompt": prompt, "config": self.config, "labels": labels})
    }
}

fn message(index: usize, entry: &Json) -> Result<LangfuseMessage> {
    let at = |key: &str, problem: &str| bad(format!("`prompt[{index}]{key}` {problem}"));
    if entry["type"] == "placeholder" {
        let name = entry["name"].as_str().filter(|name| is_variable(name));
        return name
            .map(|name| LangfuseMessage::Placeholder(name.to_owned()))
            .ok_or_else(|| at(".name", "must be a name with ASCII letters, digits and `_`"));
    }
    let role = entry["role"].as_str().ok_or_else(|| at(".role", "must be a string"))?;
    let known = Role::MARKERS.into_iter().find(|known| known.as_str() == role);
    let role = known.ok_or_else(|| {
        at(".role", &format!("is {role:?}, but a file has the roles system, user, assistant and developer"))
    })?;
    let content = entry["content"].as_str().ok_or_else(|| at(".content", "must be a string"))?;
    Ok(LangfuseMessage::Message { role, content: content.to_owned() })
}

/// Whether a text can be the name of a variable.
fn is_variable(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

/// The error for an answer that cannot become a file.
fn bad(message: impl Into<String>) -> Error {
    let diagnostic = Diagnostic::new(Code::BadRegistryPrompt, message);
    Error::new(ErrorKind::Pack, diagnostic.hint("change the prompt in Langfuse, or pull another version"))
}
