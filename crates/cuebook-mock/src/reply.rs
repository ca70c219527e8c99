//! One reply: what is said, and what goes wrong on the way.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

/// A call of a tool that a reply makes.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// What the result must name.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as JSON text, valid or not.
    pub arguments: String,
}

/// One reply of the server.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub(crate) thinking: String,
    pub(crate) text: String,
    pub(crate) calls: Vec<Call>,
    pub(crate) usage: Option<(u64, u64, u64)>,
    pub(crate) finish: Option<String>,
    pub(crate) model: Option<String>,
    /// A status and a body in place of an answer.
    pub(crate) instead: Option<(u16, Vec<u8>, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) first_byte: Duration,
    pub(crate) between: Duration,
    pub(crate) piece: usize,
    pub(crate) stall: Option<(usize, Duration)>,
    pub(crate) close: Option<usize>,
    pub(crate) truncate: Option<usize>,
    pub(crate) hang_up: bool,
    /// Set right before the last of it is sent.
    pub(crate) sent: Option<Arc<OnceLock<Instant>>>,
}

impl Reply {
    /// A reply of this text.
    pub fn text(text: impl Into<String>) -> Reply {
        Reply { text: text.into(), ..Reply::default() }
    }

    /// A reply that calls a tool.
    pub fn call(id: impl Into<String>, name: impl Into<String>, arguments: Json) -> Reply {
        Reply::default().and_call(id, name, arguments)
    }

    /// A status and a JSON body.
    pub fn status(status: u16, body: Json) -> Reply {
        Reply::raw(status, "application/json", body.to_string())
    }

    /// A status and a body of any kind.
    pub fn raw(status: u16, content_type: impl Into<String>, body: impl Into<Vec<u8>>) -> Reply {
        Reply { instead: Some((status, body.into(), content_type.into())), ..Reply::default() }
    }

    /// A failure in the words of most providers: an object `error` with a message.
    pub fn error(status: u16, message: &str) -> Reply {
        Reply::status(status, json!({"error": {"message": message, "type": "mock_error"}}))
    }

    /// Bytes that are no HTTP answer's body that anybody understands, with status 200.
    pub fn garbage() -> Reply {
        let noise: Vec<u8> = (0..4096u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        Reply::raw(200, "application/json", noise)
    }

    /// A valid answer of this many bytes of text.
    pub fn huge(bytes: usize) -> Reply {
        Reply::text("x".repeat(bytes))
    }

    /// A connection that is closed before a byte is sent.
    pub fn hang_up() -> Reply {
        Reply { hang_up: true, ..Reply::default() }
    }

    /// Text beside what is there.
    pub fn and_text(mut self, text: impl AsRef<str>) -> Reply {
        self.text.push_str(text.as_ref());
        self
    }

    /// A further call.
    pub fn and_call(self, id: impl Into<String>, name: impl Into<String>, arguments: Json) -> Reply {
        self.and_raw_call(id, name, arguments.to_string())
    }

    /// A further call whose arguments are any text. Interfaces that carry arguments as JSON make a string of other text.
    pub fn and_raw_call(
        mut self,
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Reply {
        self.calls.push(Call { id: id.into(), name: name.into(), arguments: arguments.into() });
        self
    }

    /// What the model thought before it answered.
    pub fn thinking(mut self, thinking: impl Into<String>) -> Reply {
        self.thinking = thinking.into();
        self
    }

    /// How many tokens were read and written.
    pub fn usage(mut self, input: u64, output: u64) -> Reply {
        self.usage = Some((input, output, 0));
        self
    }

    /// The same, with those of the input that came from a cache.
    pub fn usage_cached(mut self, input: u64, output: u64, cached: u64) -> Reply {
        self.usage = Some((input, output, cached));
        self
    }

    /// Why the model stopped, in the words of the interface; else it is derived from the reply.
    pub fn finish(mut self, reason: impl Into<String>) -> Reply {
        self.finish = Some(reason.into());
        self
    }

    /// The model that answers; else the one that was asked.
    pub fn model(mut self, model: impl Into<String>) -> Reply {
        self.model = Some(model.into());
        self
    }

    /// A header of the reply.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Reply {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Waits before the first byte.
    pub fn first_byte_after(mut self, pause: Duration) -> Reply {
        self.first_byte = pause;
        self
    }

    /// Notes when the last of it is handed to the socket, for measurements of what a client does from then on.
    pub fn note_sent(mut self, note: Arc<OnceLock<Instant>>) -> Reply {
        self.sent = Some(note);
        self
    }

    /// Waits between the pieces of the body.
    pub fn pause(mut self, pause: Duration) -> Reply {
        self.between = pause;
        self
    }

    /// Sends the body in pieces of this many bytes, wherever that cuts characters.
    pub fn pieces(mut self, bytes: usize) -> Reply {
        self.piece = bytes;
        self
    }

    /// Waits once, behind this many bytes of the body.
    pub fn stall_after(mut self, bytes: usize, pause: Duration) -> Reply {
        self.stall = Some((bytes, pause));
        self
    }

    /// Closes the connection behind this many bytes of the body, in the middle of the reply.
    pub fn close_after(mut self, bytes: usize) -> Reply {
        self.close = Some(bytes);
        self
    }

    /// Ends the body behind this many bytes, as if that were all.
    pub fn truncate(mut self, bytes: usize) -> Reply {
        self.truncate = Some(bytes);
        self
    }
}
