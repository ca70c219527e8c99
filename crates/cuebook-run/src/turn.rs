//! The loop: a model is asked, the tools that it calls run, it gets their results, and so on until it is done.
//!
//! [`run`] knows the order of things and nothing else. Who the model is, what a tool does, who may call it, where steps are kept
//! [`Ports`] decide when to stop; a managed thread and the agent of the crate `cuebook-agent` have their own.
//! Every step is [noted](Ports::note) as it happens, and before anything that cannot be undone (asking, running a tool, coming to
//! an end) the notes so far are made [durable](Ports::barrier).
//!
//! One run, in order:
//!
//! 1. [`Ports::before`] may stop the run, and changes the conversation: what came from outside meanwhile, what has to go.
//! 2. [`Ports::ask`] asks the model. Its answer is noted, then [reviewed](Ports::review), then a part of the conversation.
//! 3. Without calls, [`Ports::settle`] says whether that was the end. A turn that the model has paused is no answer yet: it is
//!    sent again as it is.
//! 4. With calls, each is [accepted](Ports::accept), its arguments are understood and [completed](Ports::complete), it is
//!    [permitted](Ports::permit), and [performed](Ports::perform), several at once where the ports allow it. A tool that panics
//!    has failed, and nothing else has. The model gets the results in the order of its calls.
//!
//! | file | what it does |
//! | --- | --- |
//! | `turn/step.rs` | the steps, and who hears them |
//! | `turn/round.rs` | makes the calls of one answer |
//! | `turn/spans.rs` | what tracers get |

mod round;
mod spans;
mod step;

use std::borrow::Cow;
use std::collections::HashMap;

use cuebook::chat::reply::{Answer, Reply, ToolCall, is_paused};
use cuebook::chat::{Message, Part, Role};
use cuebook::{Error, Result};
use serde_json::{Map, Value as Json, json};

pub use step::{Observer, Step};

/// Why a run stops before the model is done.
#[derive(Debug)]
pub enum Halt {
    /// A request to stop, and its reason.
    Cancelled(String),
    /// It cannot go on.
    Failed(Error),
    /// It is enough: a limit, or a hook that says so. It can go on later.
    Suspended(Error),
    /// It is unknown whether the model answered or a tool did its work. Before it continues a person has to find out:
    /// nothing is asked or done a second time by itself.
    Indeterminate(Error),
}

impl Halt {
    /// What it says, in a sentence.
    pub fn message(&self) -> &str {
        match self {
            Halt::Cancelled(why) => why,
            Halt::Failed(error) | Halt::Suspended(error) | Halt::Indeterminate(error) => {
                &error.diagnostic().message
            }
        }
    }

    /// The error behind it; a request to stop is not an error.
    pub fn error(&self) -> Option<&Error> {
        match self {
            Halt::Cancelled(_) => None,
            Halt::Failed(error) | Halt::Suspended(error) | Halt::Indeterminate(error) => Some(error),
        }
    }
}

/// Whether a call may be made.
#[derive(Debug, Clone, PartialEq)]
pub enum Permit {
    /// It may.
    Allowed,
    /// It may not; the model gets this instead of a result.
    Denied(String),
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Performed {
    /// What the model gets.
    pub text: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Ends the run with this result, as `directive_return` does.
    pub ends: Option<Json>,
    /// The prompt as it is from now on, because a section was opened: how many messages it takes the place of, and its own.
    pub prompt: Option<(usize, Vec<Message>)>,
    /// A word for what kind of failure it is, for journals.
    pub error_kind: Option<String>,
    /// It is unknown whether the tool did its work: the run ends with [`Halt::Indeterminate`].
    pub unknown: bool,
    /// The file that the text came from, with the origin of each piece, for journals.
    pub source: Option<Json>,
}

impl Performed {
    /// A tool's result.
    pub fn answer(text: impl Into<String>) -> Performed {
        Performed { text: text.into(), ..Performed::default() }
    }

    /// A tool that failed, in the words that the model gets.
    pub fn failed(tool: &str, why: &str) -> Performed {
        let text = format!("Error: Tool '{tool}' failed: {why}");
        Performed { error_kind: Some("exception".into()), ..Performed::failure(text) }
    }

    /// What went wrong.
    pub fn failure(text: impl Into<String>) -> Performed {
        Performed { is_error: true, ..Performed::answer(text) }
    }
}

/// What to make of an answer without calls.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterAnswer {
    /// The run is done, and this is its result.
    Done(Json),
    /// The model gets a message, and is asked again.
    Again(String),
}

/// What the loop does not do itself. Calls of tools may come from several threads at once; all others come one after another.
pub trait Ports: Sync {
    /// Takes note of a step.
    fn note(&self, step: &Step<'_>) -> Result<(), Halt>;

    /// Makes the notes so far durable.
    fn barrier(&self) -> Result<(), Halt> {
        Ok(())
    }

    /// Looks at the conversation before the model is asked for the `turn`th time (from zero): stops the run, or adds, trims and
    /// replaces messages.
    fn before(&self, turn: u32, conversation: &mut Vec<Message>) -> Result<(), Halt>;

    /// Asks the model.
    fn ask(&self, turn: u32, conversation: &[Message]) -> Result<Answer, Halt>;

    /// Looks at an answer before it becomes a part of the conversation. It was given, and paid for, and is noted already.
    fn review(&self, _turn: u32, _message: &Message) -> Result<(), Halt> {
        Ok(())
    }

    /// Looks at the calls of an answer before any of them is made: a call without a tool may be reason enough to stop.
    fn accept(&self, _calls: &[ToolCall]) -> Result<(), Halt> {
        Ok(())
    }

    /// Adds to the arguments of a call what the model does not know.
    fn complete(&self, _call: &ToolCall, _arguments: &mut Map<String, Json>) {}

    /// Whether a call may be made.
    fn permit(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Permit;

    /// Makes a call.
    fn perform(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Performed;

    /// A call has ended while others of the same answer have not: what came of it should outlive a process that dies meanwhile.
    /// It is noted like the others when all have ended, so most have nothing to do here.
    fn ended(&self, _call: &ToolCall, _performed: &Performed) {}

    /// Whether to stop before the next call.
    fn between(&self) -> Result<(), Halt> {
        Ok(())
    }

    /// What to make of an answer without calls.
    fn settle(&self, turn: u32, said: &Reply) -> Result<AfterAnswer, Halt>;

    /// Whether the calls of a turn run at the same time.
    fn concurrent(&self) -> bool {
        true
    }

    /// Whether a call is made alone, before those of the same answer that are made at the same time. Calls that replace the prompt
    /// must be: each of them replaces what the one before it left.
    fn alone(&self, _call: &ToolCall) -> bool {
        false
    }

    /// The name of the model that is asked, for tracers.
    fn model(&self) -> Option<String> {
        None
    }

    /// The id of the prompt that is run, for tracers.
    fn prompt(&self) -> Option<String> {
        None
    }
}

/// Where a run begins.
#[derive(Debug, Clone, Default)]
pub struct Start {
    /// What was said so far.
    pub conversation: Vec<Message>,
    /// How many messages of it the journal knows already.
    pub known: usize,
    /// How often the model was asked already.
    pub turns: u32,
    /// The calls of the last message, if the run stopped among them.
    pub pending: Vec<ToolCall>,
    /// What the model gets about those of them that need not be made any more, by their ids.
    pub settled: HashMap<String, Message>,
}

/// How a run ended.
#[derive(Debug)]
pub struct Ended {
    /// The result, or why it is missing.
    pub outcome: Result<Json, Halt>,
    /// All that was said.
    pub conversation: Vec<Message>,
    /// How often the model was asked, in all.
    pub turns: u32,
}

/// Runs until the model is done or the ports say stop.
pub fn run(ports: &dyn Ports, start: Start) -> Ended {
    let span = spans::turn(ports, &start.conversation);
    let _entered = span.enter();
    let Start { mut conversation, mut known, mut turns, pending, settled } = start;
    let outcome = go(ports, &mut conversation, &mut known, &mut turns, (pending, settled));
    if let Err(halt) = &outcome {
        // It stops already; what cannot be noted any more is no further reason.
        let _ = ports.note(&Step::Stopped { halt, turns });
    }
    spans::ended(&span, &outcome);
    Ended { outcome, conversation, turns }
}

fn go(
    ports: &dyn Ports,
    conversation: &mut Vec<Message>,
    known: &mut usize,
    turns: &mut u32,
    (pending, settled): (Vec<ToolCall>, HashMap<String, Message>),
) -> Result<Json, Halt> {
    ports.note(&Step::Started)?;
    if !pending.is_empty() {
        if let Some(result) = round::round(ports, &pending, settled, conversation)? {
            return done(ports, result);
        }
        *known = conversation.len();
    }
    loop {
        ports.before(*turns, conversation)?;
        ports.note(&Step::Prepared { conversation, new_from: (*known).min(conversation.len()) })?;
        ports.note(&Step::Asking)?;
        ports.barrier()?;
        let answer = spans::asking(ports, conversation, || ports.ask(*turns, conversation))?;
        *turns += 1;
        let mut message = assistant_message(&answer.reply);
        answer.carry_into(&mut message);
        ports.note(&Step::Answered { answer: &answer, message: &message })?;
        ports.review(*turns, &message)?;
        conversation.push(message);
        let calls = match &answer.reply {
            Reply::ToolCalls { calls, .. } => calls.clone(),
            _ => Vec::new(),
        };
        *known = conversation.len();
        if calls.is_empty() {
            let Some((message, before)) = conversation.split_last() else { continue };
            if is_paused(message) {
                // It goes on with its answer when it sees it again. How often is for the ports to say.
                continue;
            }
            match ports.settle(*turns, &whole(before, &answer.reply))? {
                AfterAnswer::Done(result) => return done(ports, result),
                AfterAnswer::Again(text) => {
                    let message = Message::text(Role::User, text);
                    ports.note(&Step::Nudged { message: &message })?;
                    conversation.push(message);
                }
            }
            continue;
        }
        if let Some(result) = round::round(ports, &calls, HashMap::new(), conversation)? {
            return done(ports, result);
        }
        *known = conversation.len();
    }
}

fn done(ports: &dyn Ports, result: Json) -> Result<Json, Halt> {
    ports.note(&Step::Done { result: &result })?;
    ports.barrier()?;
    Ok(result)
}

/// An answer with what the model had said of it before it paused.
fn whole<'a>(before: &[Message], reply: &'a Reply) -> Cow<'a, Reply> {
    let paused = before.iter().rev().take_while(|message| is_paused(message)).count();
    let begun: String = before[before.len() - paused..].iter().flat_map(Message::texts).collect();
    match reply {
        _ if begun.is_empty() => Cow::Borrowed(reply),
        Reply::Text(text) => Cow::Owned(Reply::Text(begun + text)),
        // What was said before it need not belong to it.
        Reply::Structured { raw, .. } => {
            let raw = begun + raw;
            match serde_json::from_str(&raw) {
                Ok(value) => Cow::Owned(Reply::Structured { value, raw }),
                Err(_) => Cow::Borrowed(reply),
            }
        }
        _ => Cow::Borrowed(reply),
    }
}

/// The message that an answer becomes.
pub fn assistant_message(reply: &Reply) -> Message {
    let (text, calls): (Option<String>, &[ToolCall]) = match reply {
        Reply::Text(text) | Reply::Refusal(text) => (Some(text.clone()), &[]),
        Reply::Structured { raw, .. } => (Some(raw.clone()), &[]),
        Reply::ToolCalls { calls, text } => (text.clone(), calls),
        other => (Some(other.to_json().to_string()), &[]),
    };
    let mut metadata = Map::new();
    if !calls.is_empty() {
        let calls: Vec<Json> = calls
            .iter()
            .map(|call| {
                json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}})
            })
            .collect();
        metadata.insert("tool_calls".into(), Json::Array(calls));
    }
    let parts = text.into_iter().map(Part::text).collect();
    Message { role: Role::Assistant, parts, metadata }
}

/// The message that tells a model what came of a call.
pub fn tool_message(call: &ToolCall, text: &str, is_error: bool) -> Message {
    let mut message = Message::text(Role::Tool, text);
    message.metadata.insert("tool_call_id".into(), json!(call.id));
    message.metadata.insert("name".into(), json!(call.name));
    if is_error {
        message.metadata.insert("is_error".into(), json!(true));
    }
    message
}
