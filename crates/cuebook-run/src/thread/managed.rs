//! A thread while it runs: the loop's ports, with a store that keeps every step and a harness that says when it is enough.
//!
//! Steps are gathered and written together at the loop's barriers, one transaction each: what the model gets (with the money that
//! its answer may cost), what it answered together with the calls that are about to be made, what came of them together with
//! what the model gets next; and the result of a call that ended before others of its turn, at once. A process that dies between two of them leaves a log that says exactly how far it came.

use std::collections::{HashMap, HashSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Reply, ToolCall};
use cuebook::prompt::{Property, Tools};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Map, Value as Json, json};

use super::Caller;
use super::OpenHook;
use super::Secrets;
use super::calls::{cut_call, keep_cut, keep_readable, make_ids_unique, unreadable};
use super::hooks::{HooksSoFar, ThreadHooks};
use super::launch::{Launch, ThreadKind};
use super::listener::ModelListener;
use super::text_mode;
use super::{Entry, Kind, Money, Status, ThreadId};
use crate::policy::control::Control;
use crate::policy::limits::Reached;
use crate::provider::{Category, Ending, Price, Provider, ProviderRequest, ending};
use crate::store::{Change, Cost, Holder, Store};
use crate::turn::{AfterAnswer, Halt, Performed, Permit, Ports, Step};
use crate::watch::{Activity, Watch};

/// The tools of a thread, and what its answers mean: those of a directive or of another prompt.
pub(super) trait ThreadTools: Sync {
    /// What the model may call now.
    fn tools(&self) -> Arc<Tools>;

    /// What it has to answer with; free text if there are none.
    fn outputs(&self) -> Vec<Property> {
        Vec::new()
    }

    /// Whether a call may be made.
    fn permit(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Permit;

    /// What a call does with which item; `None` for a tool of the thread itself, or a function without an item.
    fn target(&self, _call: &ToolCall, _arguments: &Map<String, Json>) -> Option<Target> {
        None
    }

    /// Makes a call.
    fn perform(&self, thread: &Managed<'_>, call: &ToolCall, arguments: &Map<String, Json>) -> Performed;

    /// Whether a call must not run at the same time as others.
    fn alone(&self, _: &ToolCall) -> bool {
        false
    }

    /// What to make of an answer without calls, when the model was reminded so often.
    fn settle(&self, turn: u32, said: &Reply, nudges: u32) -> Result<AfterAnswer>;
}

/// What a call does with an item, in the words of capabilities.
pub(super) struct Target {
    pub(super) action: &'static str,
    pub(super) item_type: String,
    pub(super) item_id: String,
}

/// Who is asked, and what that costs.
pub(super) struct ChosenModel {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) price: Option<Price>,
    pub(super) most_output: u64,
    /// Whether calls are looked for in what the model says, because the provider knows none.
    pub(super) calls_in_text: bool,
}

/// What a thread that runs is made of.
pub(crate) struct Parts<'e> {
    pub(super) id: ThreadId,
    pub(super) store: Arc<dyn Store>,
    pub(super) holder: Holder,
    pub(super) launch: &'e Launch,
    pub(super) thread_tools: &'e dyn ThreadTools,
    pub(super) model: &'e ChosenModel,
    pub(super) thread_hooks: &'e ThreadHooks<'e>,
    pub(super) secrets: &'e Secrets,
    pub(super) watch: &'e dyn Watch,
    /// Set when another process wants it to stop.
    pub(super) cancelled: Arc<AtomicBool>,
}

/// What is known of a thread before it runs.
#[derive(Default)]
pub(super) struct ThreadSetup {
    /// What it used.
    pub(super) cost: Cost,
    /// How often its model was reminded.
    pub(super) nudges: u32,
    /// What hooks had begun to do when the process died.
    pub(super) open_hooks: Vec<OpenHook>,
    /// The tokens of so many of its messages.
    pub(super) counted: Option<(u64, usize)>,
    /// Its conversation was found to be full, and these hooks have heard of it.
    pub(super) full: Option<HooksSoFar>,
}

/// A thread while it runs.
pub(crate) struct Managed<'e> {
    parts: Parts<'e>,
    state: Mutex<State>,
    /// Held by the writer. Calls that end at the same time are written together by the first of them that gets here.
    writing: Mutex<()>,
}

impl<'e> Deref for Managed<'e> {
    type Target = Parts<'e>;

    fn deref(&self) -> &Parts<'e> {
        &self.parts
    }
}

/// What changes while it runs.
pub(super) struct State {
    pub(super) unwritten: PendingWrites,
    pub(super) account: Spending,
    pub(super) window: Window,
    pub(super) answer: LastAnswer,
    pub(super) calls: Calls,
    pub(super) nudges: u32,
    pub(super) open_hooks: Vec<OpenHook>,
    /// The result is known, and is written together with the end.
    pub(super) ending: bool,
    /// Why the run is to stop when the calls of this turn are done.
    pub(super) halt: Option<Halt>,
    /// It stopped before a request, because its process drains.
    pub(super) left: bool,
}

/// What is not in the store yet.
#[derive(Default)]
pub(super) struct PendingWrites {
    pub(super) entries: Vec<Entry>,
    pub(super) change: Change,
}

/// What the thread uses.
pub(super) struct Spending {
    pub(super) cost: Cost,
    /// Since when it runs this time, and how long it ran before.
    pub(super) began: Instant,
    pub(super) before: Duration,
    /// The money that is reserved for the next answer.
    pub(super) held: Money,
    /// Cuebook counted tokens that the provider did not count, and reported that.
    pub(super) guessed: bool,
}

/// The conversation and the model's window.
pub(super) struct Window {
    /// Tokens of the conversation, as far as it was counted: so many messages.
    pub(super) tokens: u64,
    pub(super) counted: usize,
    /// The most tokens that the next answer may have.
    pub(super) most_tokens: u64,
    /// The conversation is full, and another thread is to go on.
    pub(super) full: bool,
    /// The log already has that, and these hooks ran.
    pub(super) known_full: Option<HooksSoFar>,
}

/// The last answer of the model.
pub(super) struct LastAnswer {
    /// It was cut off.
    pub(super) cut: bool,
    /// Why it ended, in the provider's words.
    pub(super) finish: Option<String>,
    /// Its text that is not in the log yet, and when the log last got some.
    pub(super) spoken: String,
    pub(super) spoke: Instant,
    /// A limit that was reached between two attempts to get an answer.
    pub(super) reached: Option<Reached>,
}

/// The calls of this turn.
#[derive(Default)]
pub(super) struct Calls {
    /// Calls whose result is already in the log: they were denied, or ended before the others.
    pub(super) reported: HashSet<String>,
    /// Results that were too long to be sent whole: their hashes, and their calls.
    pub(super) aside: HashMap<String, String>,
    /// A call that ran when the thread was stopped.
    pub(super) stopped_in: Option<String>,
    /// A call has ended the run.
    pub(super) returned: bool,
}

/// How often a hook may have a failed request sent again.
const MAX_RETRIES: u32 = 3;

impl<'e> Managed<'e> {
    /// A thread that is about to run.
    pub(super) fn new(parts: Parts<'e>, before: ThreadSetup) -> Managed<'e> {
        let ThreadSetup { cost, nudges, open_hooks, counted, full } = before;
        let (tokens, counted) = counted.unwrap_or_default();
        let cost = Cost { unpriced: cost.unpriced || parts.model.price.is_none(), ..cost };
        let now = Instant::now();
        let state = State {
            unwritten: PendingWrites::default(),
            account: Spending { cost, began: now, before: cost.elapsed, held: Money::ZERO, guessed: false },
            window: Window {
                tokens,
                counted,
                most_tokens: parts.model.most_output,
                full: false,
                known_full: full,
            },
            answer: LastAnswer { cut: false, finish: None, spoken: String::new(), spoke: now, reached: None },
            calls: Calls::default(),
            nudges,
            open_hooks,
            ending: false,
            halt: None,
            left: false,
        };
        Managed { parts, state: Mutex::new(state), writing: Mutex::new(()) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps an event for the next barrier.
    pub(super) fn keep(&self, kind: Kind, mut payload: Json) {
        self.secrets.scrub(&mut payload);
        self.state().unwritten.entries.push(Entry::new(kind, payload));
    }

    /// Keeps what came of a call.
    fn keep_result(&self, call: &ToolCall, performed: &Performed, ran: bool) {
        let mut payload = json!({"call_id": call.id, "tool": call.name, "result": performed.text, "is_error": performed.is_error, "ran": ran});
        if let Some(source) = &performed.source {
            payload["source"] = source.clone();
        }
        self.keep(Kind::ToolResult, payload);
    }

    /// Writes what was kept.
    pub(super) fn write(&self) -> Result<()> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let (entries, change) = {
            let mut state = self.state();
            if state.unwritten.entries.is_empty() && state.unwritten.change == Change::default() {
                return Ok(());
            }
            (std::mem::take(&mut state.unwritten.entries), std::mem::take(&mut state.unwritten.change))
        };
        let events = match self.store.append(&self.id, &self.holder, &entries, &change) {
            Ok(events) => events,
            Err(error) => {
                // What happened has happened: it is written with the next step, or with the end.
                let mut state = self.state();
                let since = std::mem::replace(&mut state.unwritten.entries, entries);
                state.unwritten.entries.extend(since);
                let since = std::mem::take(&mut state.unwritten.change);
                state.unwritten.change =
                    Change { cost: since.cost.or(change.cost), hold: since.hold, ..change };
                return Err(error);
            }
        };
        for event in &events {
            self.watch.activity(&self.id, &Activity::Event(event));
        }
        Ok(())
    }

    /// Comes to rest, when everything is written that happens because it has ended.
    pub(super) fn rest(&self, status: Status) -> Result<()> {
        self.state().unwritten.change.status = Some(status);
        self.write()
    }

    /// What it used up to now.
    pub(super) fn cost(&self) -> Cost {
        self.state().cost_now()
    }

    /// Whether the conversation is full.
    pub(super) fn is_full(&self) -> bool {
        self.state().window.full
    }

    /// The last events, the status and the result, in one transaction.
    pub(super) fn end(&self, mut change: Change) -> Result<()> {
        if let Some(result) = &mut change.result {
            self.secrets.scrub(result);
        }
        {
            let mut state = self.state();
            let cost = state.cost_now();
            state.unwritten.change = Change { cost: Some(cost), hold: Some(Money::ZERO), ..change };
            state.account.held = Money::ZERO;
        }
        self.write()
    }

    /// Whether it is asked to stop: by the waiting caller, or by another process.
    pub(super) fn cancelled(&self) -> bool {
        self.watch.cancelled() || self.cancelled.load(Ordering::SeqCst)
    }

    /// Whether it stops because its process is to end, and not because of a request to stop the thread.
    pub(super) fn leaves(&self) -> bool {
        let told = self.watch.leaving() && self.watch.cancelled();
        (told || self.state().left) && !self.cancelled.load(Ordering::SeqCst)
    }

    /// Stops the run when the calls of this turn are done.
    pub(super) fn halt_later(&self, halt: Halt) {
        self.state().halt.get_or_insert(halt);
    }

    /// Whether its time is over.
    pub(super) fn is_late(&self) -> bool {
        self.cost().elapsed >= self.launch.limits.duration
    }

    /// A limit was reached: it is noted, hooks hear of it, and the thread waits.
    pub(super) fn limit(&self, reached: Reached) -> Halt {
        let reached = self.with_next(reached);
        self.keep(Kind::Limit, reached.to_json());
        if let Some(decided) = self.thread_hooks.limit(self, &reached) {
            match &decided.control {
                Control::Fail(why) => return Halt::Failed(decided.error(self, why)),
                Control::Abort => return decided.abort(),
                _ => {}
            }
        }
        Halt::Suspended(reached.into_error(&self.id))
    }

    pub(super) fn pulse(&self, doing: &str) {
        self.watch.activity(&self.id, &Activity::Pulse { cost: self.cost(), doing: doing.to_owned() });
    }
}

impl State {
    pub(super) fn cost_now(&self) -> Cost {
        Cost { elapsed: self.account.before + self.account.began.elapsed(), ..self.account.cost }
    }
}

impl Ports for Managed<'_> {
    fn note(&self, step: &Step<'_>) -> Result<(), Halt> {
        match step {
            Step::Prepared { conversation, new_from } => {
                let new: Vec<Json> = conversation[*new_from..].iter().map(Message::to_json).collect();
                let turn = self.cost().turns + 1;
                // If the result is never known, at least this much was read and paid for.
                let tokens = self.state().window.tokens;
                let spend = self.price_of(tokens, 0).nanos();
                self.keep(
                    Kind::CognitionIn,
                    json!({"turn": turn, "from": new_from, "messages": new, "tokens": tokens, "spend_nanos": spend}),
                );
            }
            Step::Answered { answer, message } => self.answered(answer, message),
            Step::Performing { call, arguments } => self.keep(
                Kind::ToolStart,
                json!({"call_id": call.id, "tool": call.name, "arguments": arguments}),
            ),
            Step::Permitted { call, permit: Permit::Denied(text) } => {
                self.keep(
                    Kind::Denied,
                    json!({"call_id": call.id, "tool": call.name, "arguments": call.arguments, "result": text, "is_error": true}),
                );
                self.state().calls.reported.insert(call.id.clone());
            }
            Step::PerformedCall { call, performed, ran } => {
                let is_reported = self.state().calls.reported.remove(&call.id);
                if !is_reported {
                    self.keep_result(call, performed, *ran);
                }
            }
            Step::Updated { .. } => {
                if let Some(halt) = self.state().halt.take() {
                    return Err(halt);
                }
                // What was returned is returned: no step follows.
                if !self.state().calls.returned {
                    self.thread_hooks.after_step(self)?;
                }
            }
            Step::Nudged { message } => {
                let mut state = self.state();
                state.nudges += 1;
                let number = state.nudges;
                drop(state);
                self.keep(
                    Kind::Nudge,
                    json!({"number": number, "text": message.texts().collect::<String>()}),
                );
            }
            Step::Done { .. } => self.state().ending = true,
            _ => {}
        }
        Ok(())
    }

    fn barrier(&self) -> Result<(), Halt> {
        if self.state().ending {
            return Ok(());
        }
        match self.write() {
            Ok(()) => Ok(()),
            // Between looking and holding, another thread, such as a child, got the money.
            Err(error) if error.code() == Code::BudgetExhausted => {
                let (_, account) = self.standing()?;
                Err(self.limit(self.too_little(account.remaining(), account.reserved)))
            }
            Err(error) => Err(Halt::Failed(error)),
        }
    }

    fn before(&self, _: u32, conversation: &mut Vec<Message>) -> Result<(), Halt> {
        let (stop, account) = self.standing()?;
        if stop {
            self.cancelled.store(true, Ordering::SeqCst);
        }
        let again = if self.cost().turns > 0 { " again" } else { "" };
        self.check_cancelled(&format!("before the model was called{again}"))?;
        if self.watch.draining(&self.id) {
            self.state().left = true;
            return Err(Halt::Cancelled(format!("interrupted before the model was called{again}")));
        }
        let tokens = self.count(conversation, &self.thread_tools.tools());
        if let Some(reached) = self.launch.limits.check(&self.cost()) {
            return Err(self.limit(reached));
        }
        self.check_full(tokens)?;
        self.hold(tokens, &account)
    }

    fn ask(&self, turn: u32, conversation: &[Message]) -> Result<Answer, Halt> {
        let (tools, outputs) = (self.thread_tools.tools(), self.thread_tools.outputs());
        let none = Tools::default();
        let worded = self.model.calls_in_text.then(|| text_mode::in_text(conversation, &tools));
        let (messages, offered) = match &worded {
            Some(worded) => (worded.as_slice(), &none),
            None => (conversation, &*tools),
        };
        let limits = &self.launch.limits;
        self.pulse(&format!("waiting for {}", self.launch.model.id));
        for attempt in 1.. {
            let left = limits.duration.saturating_sub(self.cost().elapsed);
            let most_tokens = self.state().window.most_tokens;
            let ask = ProviderRequest {
                model: &self.launch.model,
                messages,
                tools: offered,
                outputs: &outputs,
                most_tokens: Some(most_tokens),
                deadline: Instant::now().checked_add(left),
            };
            match self.model.provider.ask(&ask, &ModelListener(self)) {
                Ok(mut answer) => {
                    if self.model.calls_in_text {
                        text_mode::find_calls(&mut answer, &tools);
                    }
                    make_ids_unique(&mut answer, turn, conversation);
                    keep_readable(&mut answer);
                    if answer.finish.as_deref().is_some_and(is_cut) {
                        keep_cut(&mut answer);
                    }
                    return Ok(answer);
                }
                Err(unheard) => {
                    self.unheard(&unheard);
                    if unheard.category == Category::Cancelled {
                        self.check_cancelled("while the model answered")?;
                    }
                    if unheard.category == Category::Cancelled || self.is_late() {
                        // There was no request to stop, so it was too late.
                        return Err(self.limit(self.late()));
                    }
                    let reached = self.state().answer.reached.take();
                    if let Some(reached) = reached {
                        return Err(self.limit(reached));
                    }
                    let decided = self.thread_hooks.error(self, &unheard);
                    match decided.as_ref().map(|decided| (&decided.control, decided)) {
                        Some((Control::Retry, _)) if attempt <= MAX_RETRIES => {
                            self.check_cancelled("before the model was called again")?;
                            if let Some(reached) = limits.check(&self.cost()) {
                                return Err(self.limit(reached));
                            }
                            let tokens = self.state().window.tokens;
                            self.hold(tokens, &self.standing()?.1)?;
                            self.barrier()?;
                        }
                        Some((Control::Suspend(_) | Control::Escalate { .. }, _)) => {
                            return Err(Halt::Suspended(self.come_again(&unheard.error)));
                        }
                        Some((Control::Abort, decided)) => return Err(decided.abort()),
                        Some((Control::Fail(why), decided)) => {
                            return Err(Halt::Failed(decided.error(self, why)));
                        }
                        _ if unheard.error.field("retry_after_seconds").is_some() => {
                            return Err(Halt::Suspended(self.come_again(&unheard.error)));
                        }
                        _ if SPOKEN_OF.contains(&unheard.error.code()) => {
                            return Err(Halt::Failed(self.come_again(&unheard.error)));
                        }
                        _ => return Err(Halt::Failed(unheard.error)),
                    }
                }
            }
        }
        let diagnostic = Diagnostic::new(Code::NoAnswer, "the model was called too often");
        Err(Halt::Failed(self.come_again(&Error::new(ErrorKind::Reply, diagnostic))))
    }

    fn accept(&self, calls: &[ToolCall]) -> Result<(), Halt> {
        if let Some(reached) = self.launch.limits.check_calls(calls.len()) {
            return Err(self.limit(reached));
        }
        match cut_call(calls).filter(|_| self.state().answer.cut) {
            // Asked again, it would be cut off again, and paid for again.
            Some(call) => Err(Halt::Failed(self.cut_off_in(call))),
            None => Ok(()),
        }
    }

    fn permit(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Permit {
        if unreadable(arguments).is_some() {
            return Permit::Allowed;
        }
        self.thread_tools.permit(call, arguments)
    }

    fn perform(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Performed {
        if let Some(failure) = unreadable(arguments) {
            return failure;
        }
        self.pulse(&call.name);
        let mut performed = self.thread_tools.perform(self, call, arguments);
        self.secrets.scrub_text(&mut performed.text);
        if self.cancelled() {
            self.state().calls.stopped_in.get_or_insert_with(|| call.name.clone());
        }
        if performed.ends.is_some() {
            self.state().calls.returned = true;
        }
        performed
    }

    fn ended(&self, call: &ToolCall, performed: &Performed) {
        // One that ends the run is written with the end, or else has to be made again.
        if performed.ends.is_some() || performed.unknown {
            return;
        }
        self.state().calls.reported.insert(call.id.clone());
        self.keep_result(call, performed, true);
        // What cannot be written now is written with the others, and fails there if it fails again.
        let _ = self.write();
    }

    fn between(&self) -> Result<(), Halt> {
        self.check_cancelled("between two calls")?;
        // An answer may have cost more than was held for it: what it asks for is not done then.
        if let Some(reached) = self.launch.limits.check_spend(&self.cost()) {
            return Err(self.limit(reached));
        }
        match self.is_late() {
            true => Err(self.limit(self.late())),
            false => Ok(()),
        }
    }

    fn alone(&self, call: &ToolCall) -> bool {
        self.thread_tools.alone(call)
    }

    fn model(&self) -> Option<String> {
        Some(self.launch.model.id.clone())
    }

    fn prompt(&self) -> Option<String> {
        Some(self.launch.prompt.clone())
    }

    fn settle(&self, turn: u32, said: &Reply) -> Result<AfterAnswer, Halt> {
        if let Reply::Refusal(words) = said {
            let message = format!("the model declined: {words}");
            let hint = Hint::option("rephrase the prompt, or use another model", "--model ID");
            let diagnostic = Diagnostic::new(Code::Refused, message).hint(hint);
            return Err(Halt::Failed(Error::new(ErrorKind::Execute, diagnostic)));
        }
        let (nudges, ending) = {
            let state = self.state();
            (state.nudges, ending(state.answer.finish.as_deref()))
        };
        let settled = self.thread_tools.settle(turn, said, nudges).map_err(Halt::Failed)?;
        if ending == Ending::Whole {
            return Ok(settled);
        }
        if ending == Ending::Full
            && self.launch.kind == ThreadKind::Directive
            && matches!(settled, AfterAnswer::Again(_))
        {
            // Another thread goes on with what is too long for this one.
            return Ok(settled);
        }
        let promised = !self.launch.outputs.is_empty() || self.launch.kind == ThreadKind::Prompt;
        let is_whole = matches!(said, Reply::Structured { .. });
        match settled {
            // Asked again, it would be cut off again, and paid for again.
            AfterAnswer::Again(_) if promised => Err(Halt::Failed(self.cut_off())),
            // A part of what was asked for can look like all of it, unless it is JSON to its end.
            AfterAnswer::Done(result) if result.get("outputs").is_some() && !is_whole => {
                Err(Halt::Failed(self.cut_off()))
            }
            AfterAnswer::Done(mut result) if !is_whole => {
                let error = self.cut_off();
                let reported = error.diagnostic();
                let hint = reported.hint.as_deref().unwrap_or_default();
                result["note"] = json!(format!("{}; {hint}", reported.message));
                Ok(AfterAnswer::Done(result))
            }
            settled => Ok(settled),
        }
    }
}

/// Whether an answer ended because it may not be longer, in the words of the providers.
pub(super) fn is_cut(finish: &str) -> bool {
    matches!(ending(Some(finish)), Ending::Cut | Ending::Full)
}

/// What goes wrong between here and a provider, and may be well again later.
const SPOKEN_OF: [Code; 3] = [Code::NoAnswer, Code::ProviderFailed, Code::BadReply];

impl<'e> Managed<'e> {
    /// The thread, for a call that its model makes, or that a hook makes.
    pub(super) fn within<'t>(&'t self, call: Option<&'t str>) -> Caller<'t> {
        Caller { thread: Some(&self.id), holder: Some(&self.holder), call, secrets: self.secrets }
    }

    /// How full the conversation is, from nothing to one.
    pub(super) fn fullness(&self) -> f64 {
        self.state().window.tokens as f64 / self.launch.context_window.max(1) as f64
    }

    /// Keeps the whole of a result that the model does not get whole. If the same was kept before, returns the call that it came from.
    pub(super) fn put_aside(&self, call_id: &str, hash: &str, whole: String) -> Option<String> {
        let mut state = self.state();
        if let Some(before) = state.calls.aside.get(hash) {
            return Some(before.clone());
        }
        state.calls.aside.insert(hash.to_owned(), call_id.to_owned());
        drop(state);
        self.keep(Kind::Artifact, json!({"call_id": call_id, "hash": hash, "whole": whole}));
        None
    }

    /// The prompt has changed, so the conversation is counted anew.
    pub(super) fn recount(&self) {
        self.state().window.counted = 0;
    }
}
