//! Messages: who says what to the model.

use std::fmt;
use std::ops::Range;
use std::path::Path;

use serde_json::{Map, Value as Json, json};

use super::media_type::{base64, guess};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;

/// Who says something.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Role {
    /// The author of the prompt.
    System,
    /// The same, by another name.
    Developer,
    /// Any caller.
    User,
    /// The model.
    Assistant,
    /// What a tool answered.
    Tool,
    /// A role that only the caller knows, in a conversation that the caller passed.
    Other(String),
}

impl Role {
    /// The roles that a line of a template can begin.
    pub const MARKERS: [Role; 4] = [Role::System, Role::User, Role::Assistant, Role::Developer];

    /// Its name.
    pub fn as_str(&self) -> &str {
        match self {
            Role::System => "system",
            Role::Developer => "developer",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Other(name) => name,
        }
    }

    /// The role of this name.
    pub fn named(name: &str) -> Role {
        match name {
            "system" => Role::System,
            "developer" => Role::Developer,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => Role::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What one of them says.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::create_dir_all(folder.path().join("prompts")).unwrap();
/// # std::fs::write(folder.path().join("prompts/reply.prompty"), "---\nmodel: gpt-4o\ninputs:\n  - {name: letter, kind: string}\n---\nsystem:\nBe brief.\nuser:\n{{ letter }}\n").unwrap();
/// # let book = cuebook::Book::open(folder.path());
/// let messages = book.prompt("reply").var("letter", "Where is order 7?").render()?.messages()?;
/// assert_eq!(messages[1].role.as_str(), "user");
/// assert_eq!(messages[1].texts().collect::<String>().trim(), "Where is order 7?");
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said, in order.
    pub parts: Vec<Part>,
    /// Whatever else is known: the attributes of a role marker, the calls of an assistant, the call that a tool answers.
    pub metadata: Map<String, Json>,
}

/// A part of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        value: String,
        /// The pieces of the rendered text that it consists of, in order. There are several if an input without a value was removed
        /// between them, and none if the text came with a conversation or as the user's message.
        ranges: Vec<Range<usize>>,
    },
    /// A picture.
    Image(Media),
    /// A sound.
    Audio(Media),
    /// A document.
    File(Media),
}

/// A picture, a sound or a document.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Media {
    /// A URL, a `data:` URI, or its bytes in base64.
    pub source: String,
    /// What it is, as in `image/png`.
    pub media_type: Option<String>,
    /// How closely a picture is to be looked at.
    pub detail: Option<String>,
    /// The name of the file.
    pub name: Option<String>,
}

/// Bytes of a file that becomes a part of a message.
const MAX_MEDIA: u64 = 32 << 20;

impl Media {
    /// A file of this machine, whole. What it is, its name must tell.
    pub fn of_file(path: &Path) -> Result<Media> {
        let name = path.to_string_lossy();
        let bytes = files::read_bytes(path, &name, MAX_MEDIA)?;
        let file = path.file_name().map(|file| file.to_string_lossy().into_owned());
        let Some(media_type) = guess(&name) else {
            let message = "unknown file type";
            let diagnostic = Diagnostic::new(Code::BadMessages, message)
                .file(&*name)
                .hint("rename the file so that it ends in .png, .jpg, .pdf, .mp3 or a similar extension");
            return Err(Error::new(ErrorKind::PromptValidation, diagnostic));
        };
        let source = format!("data:{media_type};base64,{}", base64(bytes));
        Ok(Media { source, media_type: Some(media_type.to_owned()), name: file, detail: None })
    }

    /// The picture, sound or document as a caller passes it.
    pub fn to_json(&self) -> Json {
        let mut object = json!({"source": self.source});
        for (key, value) in [("mediaType", &self.media_type), ("detail", &self.detail), ("name", &self.name)]
        {
            if let Some(value) = value {
                object[key] = json!(value);
            }
        }
        object
    }
}

impl Part {
    /// A text that came from nowhere in particular.
    pub fn text(value: impl Into<String>) -> Part {
        Part::Text { value: value.into(), ranges: Vec::new() }
    }

    /// What it is, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Part::Text { .. } => "text",
            Part::Image(_) => "image",
            Part::Audio(_) => "audio",
            Part::File(_) => "file",
        }
    }

    /// The part as scripts see it.
    pub fn to_json(&self) -> Json {
        let media = match self {
            Part::Text { value, .. } => return json!({"kind": "text", "value": value}),
            Part::Image(media) | Part::Audio(media) | Part::File(media) => media,
        };
        let mut object = Map::new();
        object.insert("kind".into(), json!(self.kind()));
        object.insert("value".into(), json!(media.source));
        for (key, value) in
            [("mediaType", &media.media_type), ("detail", &media.detail), ("name", &media.name)]
        {
            if let Some(value) = value {
                object.insert(key.into(), json!(value));
            }
        }
        Json::Object(object)
    }
}

/// Keeps a part of a text that consists of these ranges, given in bytes of the text.
pub(super) fn keep(ranges: &mut Vec<Range<usize>>, part: Range<usize>) {
    let mut before = 0;
    ranges.retain_mut(|range| {
        let length = range.len();
        let (start, end) = (part.start.max(before), part.end.min(before + length));
        *range = range.start + start.saturating_sub(before)..range.start + end.saturating_sub(before);
        before += length;
        start < end
    });
}

impl Message {
    /// A message of one text.
    pub fn text(role: Role, text: impl Into<String>) -> Message {
        Message { role, parts: vec![Part::text(text)], metadata: Map::new() }
    }

    /// Whether nothing is said: it has no part but empty texts.
    pub fn is_empty(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text { value, .. } if value.is_empty()))
    }

    /// Removes the white space around what is said.
    #[doc(hidden)]
    pub fn trim(&mut self) {
        if let Some(Part::Text { value, ranges }) = self.parts.first_mut() {
            let start = value.len() - value.trim_start().len();
            value.drain(..start);
            keep(ranges, start..usize::MAX);
        }
        if let Some(Part::Text { value, ranges }) = self.parts.last_mut() {
            value.truncate(value.trim_end().len());
            keep(ranges, 0..value.len());
        }
    }

    /// Its texts, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text { value, .. } => Some(value.as_str()),
            _ => None,
        })
    }

    /// The message as scripts see it.
    pub fn to_json(&self) -> Json {
        let content: Json = self.parts.iter().map(Part::to_json).collect();
        let mut object = json!({"role": self.role.as_str(), "content": content});
        if !self.metadata.is_empty() {
            object["metadata"] = Json::Object(self.metadata.clone());
        }
        object
    }
}
