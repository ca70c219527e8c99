//! The journal of a run in memory: one stream of events with numbers, what the model saw each time, and from where to go on.
//!
//! The names are those of Prompty's turn engine. A checkpoint is made after each answer, each call that was made, and each round
//! of calls; going on from it asks nothing and does nothing a second time. A managed thread keeps more than this, in its store;
//! this is for hosts that keep things themselves, and for tests.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuebook::chat::Message;
use cuebook::chat::reply::{Reply, ToolCall};
use serde_json::{Map, Value as Json};

use super::{Halt, Observer, Start, Step, tool_message};

/// Whether what a model got can be sent to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Portability {
    /// All of it is here.
    #[default]
    Portable,
    /// A part of it is with the provider, which knows it by a name.
    Delegated,
    /// A part of it is with the provider, and cannot be had again.
    Opaque,
}

impl Portability {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Portability::Portable => "portable",
            Portability::Delegated => "delegated",
            Portability::Opaque => "opaque",
        }
    }

    /// What the word means.
    pub fn named(name: &str) -> Option<Portability> {
        [Portability::Portable, Portability::Delegated, Portability::Opaque]
            .into_iter()
            .find(|portability| portability.as_str() == name)
    }
}

/// Something that a provider keeps: a response, a conversation, a cache.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProviderResource {
    /// The provider.
    pub provider: String,
    /// What it is.
    pub kind: String,
    /// The provider's name for it.
    pub id: String,
}

/// What the model saw when it was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Snapshot {
    /// The messages.
    pub messages: Vec<Message>,
    /// So many of them, from the beginning, are the same each time: a cache can keep them.
    pub stable: usize,
    /// Whether that is all that the model knows.
    pub portability: Portability,
    /// What else it knows.
    pub held: Vec<ProviderResource>,
}

/// What a run that is done leaves behind.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Commit {
    /// The result.
    pub output: Json,
    /// Whether it can be gone on with elsewhere.
    pub portability: Portability,
    /// What the provider keeps.
    pub held: Vec<ProviderResource>,
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TurnStatus {
    /// It has not ended.
    #[default]
    Running,
    /// It is done.
    Success,
    /// It was asked to stop.
    Cancelled,
    /// It could not go on.
    Failed,
    /// A limit was reached.
    Suspended,
    /// A person has to find out what became of a question or a call.
    ReconciliationRequired,
}

impl TurnStatus {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            TurnStatus::Running => "running",
            TurnStatus::Success => "success",
            TurnStatus::Cancelled => "cancelled",
            TurnStatus::Failed => "failed",
            TurnStatus::Suspended => "suspended",
            TurnStatus::ReconciliationRequired => "reconciliation_required",
        }
    }
}

/// From where a run can go on.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Checkpoint {
    /// The number of the last event that it knows of.
    pub sequence: u64,
    /// What was said.
    pub conversation: Vec<Message>,
    /// How often the model was asked.
    pub turns: u32,
    /// How many messages at the beginning are the same each time.
    pub stable: usize,
    /// The calls of the last answer, if not all of them are answered.
    pub calls: Vec<ToolCall>,
    /// What came of those that were made, by their ids.
    pub settled: HashMap<String, Message>,
    /// The call with an unknown effect. [`Checkpoint::settle`] says what became of it.
    pub unknown: Option<ToolCall>,
    /// Whether it is unknown if the model answered.
    pub unanswered: bool,
    /// Whether the model can get all of this elsewhere.
    pub portability: Portability,
    /// What the provider keeps.
    pub held: Vec<ProviderResource>,
}

impl Checkpoint {
    /// Says what became of the call with an unknown effect.
    pub fn settle(&mut self, text: &str, is_error: bool) {
        if let Some(call) = self.unknown.take() {
            self.settled.insert(call.id.clone(), tool_message(&call, text, is_error));
        }
    }

    /// Where the run begins that continues from here; `None` as long as a person has to find something out.
    pub fn start(&self) -> Option<Start> {
        if self.unknown.is_some() || self.unanswered {
            return None;
        }
        Some(Start {
            conversation: self.conversation.clone(),
            known: self.conversation.len(),
            turns: self.turns,
            pending: self.calls.clone(),
            settled: self.settled.clone(),
        })
    }
}

/// Hears the steps of a run and keeps them.
#[derive(Debug, Default)]
pub struct Journal {
    kept: Mutex<JournalState>,
}

#[derive(Debug, Default)]
struct JournalState {
    events: Vec<&'static str>,
    snapshots: Vec<Snapshot>,
    results: Vec<String>,
    status: TurnStatus,
    commit: Option<Commit>,
    /// The state that the next checkpoint holds.
    state: Checkpoint,
    last: Option<Checkpoint>,
    /// What the provider will know when its next answer is there.
    next: Option<(Portability, Vec<ProviderResource>)>,
    asking: bool,
}

impl Journal {
    /// The journal of a run that begins with these messages.
    pub fn new(messages: &[Message]) -> Journal {
        Journal::after(Checkpoint {
            conversation: messages.to_vec(),
            stable: messages.len(),
            ..Checkpoint::default()
        })
    }

    /// The journal of a run that goes on. Its numbers go on as well.
    pub fn after(checkpoint: Checkpoint) -> Journal {
        Journal { kept: Mutex::new(JournalState { state: checkpoint, ..JournalState::default() }) }
    }

    /// Says what the provider keeps from its next answer on. Code that asks the model calls this before it hands on the answer.
    pub fn held(&self, portability: Portability, held: Vec<ProviderResource>) {
        self.kept().next = Some((portability, held));
    }

    /// The events, in order.
    pub fn events(&self) -> Vec<&'static str> {
        self.kept().events.clone()
    }

    /// What the model saw, each time that it was asked.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.kept().snapshots.clone()
    }

    /// The ids of the calls whose results the model got, in order.
    pub fn results(&self) -> Vec<String> {
        self.kept().results.clone()
    }

    /// How far the run is.
    pub fn status(&self) -> TurnStatus {
        self.kept().status
    }

    /// What the run leaves behind, if it is done.
    pub fn commit(&self) -> Option<Commit> {
        self.kept().commit.clone()
    }

    /// From where the run can go on, if it came so far that a checkpoint was made.
    pub fn checkpoint(&self) -> Option<Checkpoint> {
        self.kept().last.clone()
    }

    fn kept(&self) -> MutexGuard<'_, JournalState> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl JournalState {
    fn event(&mut self, kind: &'static str) {
        self.state.sequence += 1;
        self.events.push(kind);
    }

    fn checkpoint(&mut self) {
        self.last = Some(self.state.clone());
        self.event("checkpoint_created");
    }

    fn prepared(&mut self, conversation: &[Message]) {
        let before = self.state.conversation.iter().take(self.state.stable);
        self.state.stable = before.zip(conversation).take_while(|(old, new)| old == new).count();
        self.state.conversation = conversation.to_vec();
        self.snapshots.push(Snapshot {
            messages: conversation.to_vec(),
            stable: self.state.stable,
            portability: self.state.portability,
            held: self.state.held.clone(),
        });
        self.event("context_prepared");
    }

    fn answered(&mut self, reply: &Reply, message: &Message) {
        self.asking = false;
        self.state.turns += 1;
        self.state.conversation.push(message.clone());
        if let Reply::ToolCalls { calls, .. } = reply {
            self.state.calls.clone_from(calls);
            self.state.settled.clear();
        }
        if let Some((portability, held)) = self.next.take() {
            self.state.portability = portability;
            self.state.held = held;
        }
        self.event("model_invocation_completed");
        self.checkpoint();
    }

    fn stopped(&mut self, halt: &Halt) {
        match halt {
            Halt::Cancelled(_) => {
                self.status = TurnStatus::Cancelled;
                self.event("turn_cancelled");
            }
            Halt::Indeterminate(_) => {
                self.status = TurnStatus::ReconciliationRequired;
                self.state.unanswered = self.asking;
                self.event(match self.asking {
                    true => "model_reconciliation_required",
                    false => "tool_reconciliation_required",
                });
                self.checkpoint();
            }
            Halt::Suspended(_) => {
                self.status = TurnStatus::Suspended;
                self.event("turn_suspended");
            }
            Halt::Failed(_) => {
                self.status = TurnStatus::Failed;
                if self.asking {
                    self.event("model_invocation_failed");
                }
                self.event("turn_failed");
            }
        }
        self.asking = false;
    }
}

impl Observer for Journal {
    fn step(&self, step: &Step<'_>) {
        let kept = &mut *self.kept();
        match step {
            Step::Started => kept.event("turn_started"),
            Step::Prepared { conversation, .. } => kept.prepared(conversation),
            Step::Asking => {
                kept.asking = true;
                kept.event("model_invocation_started");
            }
            Step::Answered { answer, message } => kept.answered(&answer.reply, message),
            Step::Permission { .. } => kept.event("permission_requested"),
            Step::Permitted { .. } => kept.event("permission_resolved"),
            Step::Performing { .. } => kept.event("tool_execution_started"),
            Step::PerformedCall { call, performed, ran } => {
                if performed.unknown {
                    kept.state.unknown = Some((*call).clone());
                    return;
                }
                let message = tool_message(call, &performed.text, performed.is_error);
                kept.state.settled.insert(call.id.clone(), message);
                if *ran {
                    kept.event("tool_execution_completed");
                    kept.checkpoint();
                }
            }
            Step::ToolReturned { call, .. } => {
                kept.results.push(call.id.clone());
                kept.event("tool_result_committed");
            }
            Step::Updated { conversation } => {
                kept.state.conversation = conversation.to_vec();
                kept.state.calls.clear();
                kept.state.settled.clear();
                kept.event("conversation_updated");
                kept.checkpoint();
            }
            Step::Nudged { message } => kept.state.conversation.push((*message).clone()),
            Step::Done { result } => {
                kept.status = TurnStatus::Success;
                kept.commit = Some(Commit {
                    output: (*result).clone(),
                    portability: kept.state.portability,
                    held: kept.state.held.clone(),
                });
                kept.event("turn_committed");
            }
            Step::Stopped { halt, .. } => kept.stopped(halt),
            Step::After { outcome, .. } => kept.event(match outcome {
                None => "post_commit_started",
                Some(Ok(())) => "post_commit_completed",
                Some(Err(_)) => "post_commit_failed",
            }),
            _ => {}
        }
    }
}

impl ProviderResource {
    /// What a provider says about it: `provider`, `kind` and `id`.
    pub fn from_json(held: &Map<String, Json>) -> Option<ProviderResource> {
        let text = |name: &str| held.get(name).and_then(Json::as_str).map(str::to_owned);
        Some(ProviderResource { provider: text("provider")?, kind: text("kind")?, id: text("id")? })
    }
}
