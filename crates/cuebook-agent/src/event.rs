//! What a screen shows of a run: the events of Prompty's agents, made from the steps of the loop.

use std::sync::atomic::{AtomicBool, Ordering};

use cuebook::chat::Message;
use cuebook::chat::reply::{Chunk, Reply};
use serde_json::{Value as Json, json};

use super::{Halt, Observer, Step};

/// Something that happened in a run, for people who watch it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum AgentEvent<'a> {
    /// Further text of the answer.
    Token {
        /// The text.
        token: &'a str,
    },
    /// Further thoughts of the model.
    Thinking {
        /// The thoughts.
        token: &'a str,
    },
    /// The model calls a tool.
    ToolCallStart {
        /// The tool.
        name: &'a str,
        /// The arguments as the model wrote them.
        arguments: &'a str,
    },
    /// What the model gets about a call.
    ToolResult {
        /// The tool.
        name: &'a str,
        /// What it gets.
        result: &'a str,
    },
    /// A word about what happens now.
    Status {
        /// The words.
        message: String,
    },
    /// The conversation has changed.
    MessagesUpdated {
        /// All of it.
        messages: &'a [Message],
    },
    /// The run is done. Nothing follows.
    Done {
        /// Its result.
        response: &'a Json,
    },
    /// Something went wrong. The run may go on.
    Error {
        /// What.
        message: &'a str,
    },
    /// The run was asked to stop.
    Cancelled {
        /// When that was found.
        reason: &'a str,
    },
    /// What was said long ago is being summed up.
    CompactionStart,
    /// It was summed up.
    CompactionComplete {
        /// How many messages went.
        removed: usize,
        /// How many there are now.
        remaining: usize,
    },
    /// It could not be summed up as wanted.
    CompactionFailed {
        /// Why.
        message: &'a str,
    },
}

impl AgentEvent<'_> {
    /// Its name.
    pub fn kind(&self) -> &'static str {
        match self {
            AgentEvent::Token { .. } => "token",
            AgentEvent::Thinking { .. } => "thinking",
            AgentEvent::ToolCallStart { .. } => "tool_call_start",
            AgentEvent::ToolResult { .. } => "tool_result",
            AgentEvent::Status { .. } => "status",
            AgentEvent::MessagesUpdated { .. } => "messages_updated",
            AgentEvent::Done { .. } => "done",
            AgentEvent::Error { .. } => "error",
            AgentEvent::Cancelled { .. } => "cancelled",
            AgentEvent::CompactionStart => "compaction_start",
            AgentEvent::CompactionComplete { .. } => "compaction_complete",
            AgentEvent::CompactionFailed { .. } => "compaction_failed",
        }
    }

    /// The event as scripts see it: `{"type": …, "data": {…}}`.
    pub fn to_json(&self) -> Json {
        let data = match self {
            AgentEvent::Token { token } | AgentEvent::Thinking { token } => json!({"token": token}),
            AgentEvent::ToolCallStart { name, arguments } => json!({"name": name, "arguments": arguments}),
            AgentEvent::ToolResult { name, result } => json!({"name": name, "result": result}),
            AgentEvent::Status { message } => json!({"message": message}),
            AgentEvent::MessagesUpdated { messages } => {
                let reported: Vec<Json> = messages.iter().map(Message::to_json).collect();
                json!({"message_count": messages.len(), "messages": reported})
            }
            AgentEvent::Done { response } => json!({"response": response}),
            AgentEvent::Error { message } | AgentEvent::CompactionFailed { message } => {
                json!({"message": message})
            }
            AgentEvent::Cancelled { reason } => json!({"reason": reason}),
            AgentEvent::CompactionStart => json!({}),
            AgentEvent::CompactionComplete { removed, remaining } => {
                json!({"removed": removed, "remaining": remaining})
            }
        };
        json!({"type": self.kind(), "data": data})
    }
}

/// Makes events of the steps of a run, and hands them to a function.
pub struct Events<F> {
    notify: F,
    /// Whether the model has called a tool: only then is it a loop.
    looping: AtomicBool,
}

impl<F: Fn(&AgentEvent<'_>) + Sync> Events<F> {
    /// Hands events to this function. It is called from the thread that runs the loop.
    pub fn new(notify: F) -> Events<F> {
        Events { notify, looping: AtomicBool::new(false) }
    }

    fn status(&self, message: impl Into<String>) {
        (self.notify)(&AgentEvent::Status { message: message.into() });
    }
}

impl<F: Fn(&AgentEvent<'_>) + Sync> Observer for Events<F> {
    fn step(&self, step: &Step<'_>) {
        let notify = &self.notify;
        match step {
            Step::Started => self.looping.store(false, Ordering::Relaxed),
            Step::Received { chunk: Chunk::Text(token) } => notify(&AgentEvent::Token { token }),
            Step::Received { chunk: Chunk::Thinking(token) } => notify(&AgentEvent::Thinking { token }),
            Step::Answered { answer, .. } => {
                let calls = matches!(answer.reply, Reply::ToolCalls { .. });
                if calls && !self.looping.swap(true, Ordering::Relaxed) {
                    self.status("Starting agent loop");
                }
            }
            Step::Called { call } => {
                notify(&AgentEvent::ToolCallStart { name: &call.name, arguments: &call.arguments });
            }
            Step::PerformedCall { call, performed, .. } => {
                notify(&AgentEvent::ToolResult { name: &call.name, result: &performed.text });
            }
            Step::Updated { conversation } => notify(&AgentEvent::MessagesUpdated { messages: conversation }),
            Step::Steered { count, conversation } => {
                self.status(match count {
                    1 => "Injecting steering message".to_owned(),
                    many => format!("Injecting {many} steering messages"),
                });
                notify(&AgentEvent::MessagesUpdated { messages: conversation });
            }
            Step::AskingAgain { attempt, pause, why } => {
                let why = &why.diagnostic().message;
                self.status(format!("Attempt {attempt} failed, asking again in {pause:.1?}: {why}"));
            }
            Step::Compacting => notify(&AgentEvent::CompactionStart),
            Step::CompactingFailed { why } => notify(&AgentEvent::CompactionFailed { message: why }),
            Step::Trimmed { removed, compacted, conversation } => {
                if *compacted {
                    let remaining = conversation.len();
                    notify(&AgentEvent::CompactionComplete { removed: *removed, remaining });
                }
                notify(&AgentEvent::MessagesUpdated { messages: conversation });
            }
            Step::Done { result } => notify(&AgentEvent::Done { response: result }),
            Step::Stopped { halt: Halt::Cancelled(reason), .. } => notify(&AgentEvent::Cancelled { reason }),
            // The outcome reports why a run failed; the words of a guard are for people.
            Step::Stopped { halt, .. }
                if halt.error().is_some_and(|error| error.field("guard").is_some()) =>
            {
                notify(&AgentEvent::Error { message: halt.message() });
            }
            _ => {}
        }
    }
}
