//! The steps of a run, and who hears them.

use std::time::Duration;

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Chunk, ToolCall};
use cuebook::{Error, Result};
use serde_json::{Map, Value as Json};

use super::{Halt, Performed, Permit};

/// A step of the loop, as it happens. Those of an `Agent` of `cuebook-agent` that the loop itself does not know are among them, so that code that
/// listens has one stream.
#[derive(Debug)]
#[non_exhaustive]
pub enum Step<'a> {
    /// The run begins.
    Started,
    /// Messages from outside were put into the conversation.
    Steered {
        /// How many.
        count: usize,
        /// All that was said, with them.
        conversation: &'a [Message],
    },
    /// The old part of the conversation is about to be summed up.
    Compacting,
    /// That failed; it is summed up without them.
    CompactingFailed {
        /// Why.
        why: &'a str,
    },
    /// What was said long ago is gone from the conversation.
    Trimmed {
        /// How many messages went.
        removed: usize,
        /// Whether they were summed up, as [`Step::Compacting`] announced.
        compacted: bool,
        /// What is left, with the summary.
        conversation: &'a [Message],
    },
    /// What the model will get is ready.
    Prepared {
        /// All of it.
        conversation: &'a [Message],
        /// The messages from here on are new.
        new_from: usize,
    },
    /// The model is about to be asked.
    Asking,
    /// The model did not answer, and will be asked the same again.
    AskingAgain {
        /// How often it was asked.
        attempt: u32,
        /// The pause before it is asked again.
        pause: Duration,
        /// Why it did not answer.
        why: &'a Error,
    },
    /// A piece of the answer, as it comes.
    Received {
        /// The piece.
        chunk: &'a Chunk,
    },
    /// The model answered.
    Answered {
        /// The answer.
        answer: &'a Answer,
        /// The message that it becomes.
        message: &'a Message,
    },
    /// The model wants a call, whatever comes of it.
    Called {
        /// The call.
        call: &'a ToolCall,
    },
    /// A call is looked at.
    Permission {
        /// The call.
        call: &'a ToolCall,
    },
    /// Whether it may be made.
    Permitted {
        /// The call.
        call: &'a ToolCall,
        /// The answer.
        permit: &'a Permit,
    },
    /// A tool is about to run.
    Performing {
        /// The call.
        call: &'a ToolCall,
        /// Its arguments, as the tool gets them.
        arguments: &'a Map<String, Json>,
    },
    /// A tool ran, or the call was denied or could not be understood.
    PerformedCall {
        /// The call.
        call: &'a ToolCall,
        /// What came of it.
        performed: &'a Performed,
        /// Whether the tool ran.
        ran: bool,
    },
    /// The result of a call becomes a message. They come in the order of the calls.
    ToolReturned {
        /// The call.
        call: &'a ToolCall,
        /// The message.
        message: &'a Message,
    },
    /// All results of this turn are in the conversation.
    Updated {
        /// All that was said.
        conversation: &'a [Message],
    },
    /// The model gets a message because its answer was not enough.
    Nudged {
        /// What it gets.
        message: &'a Message,
    },
    /// The run is done.
    Done {
        /// Its result.
        result: &'a Json,
    },
    /// The run stops before it is done. There are no further questions: the result of noting this is not looked at.
    Stopped {
        /// Why.
        halt: &'a Halt,
        /// How often the model was asked.
        turns: u32,
    },
    /// Something that is done after a run was done, and that cannot change how it ended.
    After {
        /// What it is called.
        name: &'a str,
        /// What came of it; `None` before it is done.
        outcome: Option<&'a Result<(), String>>,
    },
}

/// Hears the steps of a run, and cannot stop it.
pub trait Observer: Sync {
    /// A step.
    fn step(&self, step: &Step<'_>);
}

impl<T: Observer + ?Sized> Observer for &T {
    fn step(&self, step: &Step<'_>) {
        (**self).step(step);
    }
}
