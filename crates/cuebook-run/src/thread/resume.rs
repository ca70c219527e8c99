//! A thread that is continued, from its log alone: by a user, or by the process that was started for it.

use std::path::Path;
use std::sync::Arc;

use cuebook::chat::reply::is_paused;
use cuebook::chat::{Message, Role};
use cuebook::error::printable;
use cuebook::items::ItemId;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Map, Value as Json, json};

use super::OpenHook;
use super::launch::{Launch, ThreadKind};
use super::left_tools::{self, STOPPED};
use super::log::{PAGE, not_found, whole_log};
use super::managed::ThreadTools;
use super::rebuild::{Rebuilt, rebuild};
use super::run::ThreadRun;
use super::start;
use super::{Entry, Event, Kind, Status, ThreadId, detach};
use crate::engine::{Engine, Project};
use crate::policy::caps::capped;
use crate::policy::limits::ThreadLimits;
use crate::provider::Chosen;
use crate::record::short_error_json;
use crate::store::{Authenticity, Change, Filter, Holder, Record, Store, moved, not_own};
use crate::turn::tool_message;
use crate::watch::{Activity, Watch};

/// What a model gets that had answered, and is to continue.
const GO_ON: &str = "Please continue with your task.";

/// How a thread is taken up again.
#[derive(Debug, Clone, Default)]
pub struct Resume {
    /// Other limits.
    pub limit_overrides: Map<String, Json>,
    /// Another model.
    pub model: Option<String>,
    /// Does not wait for the thread.
    pub is_async: bool,
    /// The number of the last event that the caller has seen. If others were written since, as when a user has cancelled
    /// it, it is not taken up.
    pub behind: Option<u64>,
    /// The user has seen what a prompt's thread may do, and allows it again.
    pub allow_again: bool,
    /// The user vouches for a log that their key did not write.
    pub trust_log: bool,
    /// Takes the thread from a process that seems to run it.
    pub take_over: bool,
}

impl Resume {
    fn is_plain(&self) -> bool {
        self.limit_overrides.is_empty() && self.model.is_none()
    }
}

impl Engine {
    /// Takes a thread up again, from its log alone, and waits for its end. [`Engine::resume`] does not wait.
    ///
    /// # Errors
    ///
    /// `CB712` if it is missing, `CB713` if it runs, `CB714` if its log was changed, `CB728` if it has ended, `CB735` if the user's
    /// key did not write its log, `CB737` if a prompt's thread had permissions that were not allowed again.
    #[doc(hidden)]
    pub fn resume_with(
        &self,
        project: Option<&Path>,
        book: Option<&Book>,
        id: &ThreadId,
        how: &Resume,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        let store = self.threads_so_far(project)?;
        let project = self.project(project)?;
        let mut record = store.record(id)?.ok_or_else(|| not_found(&*store, id))?;
        if record.status == Status::Running && how.take_over {
            store.release(id, record.holder.as_ref())?;
            record = store.record(id)?.ok_or_else(|| not_found(&*store, id))?;
        }
        if record.status == Status::Running {
            return Err(busy(&record));
        }
        if !record.status.can_resume() {
            return Err(ended(&record));
        }
        self.ready_to_record_on()?;
        if how.is_async {
            // The reason why it cannot continue is reported here, and not in a process without an observer.
            self.ready(&project, &*store, book, &record, how)?;
            let how = Resume { behind: Some(record.last.0), ..how.clone() };
            let pid = detach::start(self.settings(), &store, project.spaces.project(), &record, &how, watch)?;
            return Ok(ThreadRun::Detached { id: id.clone(), pid });
        }
        self.take_up(&project, &store, book, &record, how, Holder::of_this_process(), watch)
    }

    /// Runs a thread that was registered for another process to run: this process.
    ///
    /// # Errors
    ///
    /// As [`Engine::resume_with`].
    #[doc(hidden)]
    pub fn carry_out(
        &self,
        project: Option<&Path>,
        book: Option<&Book>,
        id: &ThreadId,
        how: &Resume,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        let project = self.project(project)?;
        let store = self.store_of(&project)?;
        let record = store.record(id)?.ok_or_else(|| not_found(&*store, id))?;
        if let Some(path) = &self.settings().record {
            self.recorder_behind(path)?;
        }
        let began = self.take_up(&project, &store, book, &record, how, Holder::of_this_process(), watch);
        if let Err(error) = &began {
            // The starter has left. The failure to begin has to be written somewhere.
            self.did_not_begin(&*store, id, error)?;
        }
        began
    }

    /// A thread that was registered for this process, and that cannot begin, has failed.
    fn did_not_begin(&self, store: &dyn Store, id: &ThreadId, error: &Error) -> Result<()> {
        if store.record(id)?.is_none_or(|record| record.status != Status::Created) {
            return Ok(());
        }
        let holder = Holder::of_this_process();
        store.take(id, &holder, &[], &Change::default())?;
        let reported = json!({"error": short_error_json(error)});
        let change =
            Change { status: Some(Status::Error), result: Some(reported.clone()), ..Change::default() };
        store.append(id, &holder, &[Entry::new(Kind::Failed, reported)], &change).map(drop)
    }

    #[expect(clippy::too_many_arguments, reason = "they are what a thread is made of")]
    pub(super) fn take_up(
        &self,
        project: &Arc<Project>,
        store: &Arc<dyn Store>,
        book: Option<&Book>,
        record: &Record,
        how: &Resume,
        holder: Holder,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        if how.behind.is_some_and(|seen| seen != record.last.0) {
            return Err(moved(&record.id, record.status));
        }
        let ResumedThread { events, mut rebuilt, chosen, mut payload, thread_tools, has_changed } =
            self.ready(project, &**store, book, record, how)?;
        // Nothing of its earlier life may run beside it.
        let stopped = left_tools::stop_left(&**store, record)?;
        let before = events.last().filter(|event| event.kind == Kind::Interrupted);
        let before = before.and_then(|event| event.payload.get(STOPPED).and_then(Json::as_u64)).unwrap_or(0);
        let stopped = before.saturating_add(stopped as u64);
        if stopped > 0 {
            payload[STOPPED] = stopped.into();
        }
        let mut entries = vec![Entry::new(Kind::Resumed, payload)];
        let below =
            if rebuilt.unknown.is_empty() { Vec::new() } else { self.left_behind(&**store, &record.id)? };
        for call in &rebuilt.unknown {
            let mut text = format!(
                "The thread was interrupted while `{}` ran. The call may have run in full or in part, and its result is unknown. It was not repeated.",
                call.name
            );
            if stopped > 0 {
                text.push_str(" Its remaining processes were stopped.");
            }
            if call.arguments.contains("thread") {
                text.extend(below.iter().map(String::as_str));
            }
            entries.push(Entry::new(
                Kind::ToolUnknown,
                json!({"call_id": call.id, "tool": call.name, "result": text, "is_error": true}),
            ));
            rebuilt.start.settled.insert(call.id.clone(), tool_message(call, &text, true));
        }
        let unknown_hook = |hook: &OpenHook| Entry::new(Kind::HookUnknown, hook.to_json());
        entries.extend(rebuilt.open_hooks.iter().map(unknown_hook));
        let first = matches!(record.status, Status::Created | Status::Queued)
            && events.iter().all(|event| event.kind != Kind::Interrupted);
        if first && rebuilt.start.turns == 0 && rebuilt.unknown.is_empty() && how.is_plain() && !has_changed {
            // It begins only now; nothing was interrupted.
            entries.clear();
        }
        let last = rebuilt.start.conversation.last();
        if rebuilt.start.pending.is_empty()
            && last.is_some_and(|message| message.role == Role::Assistant && !is_paused(message))
        {
            // It had stopped behind an answer, and the user wants it to continue: the model gets a message, and counting starts again.
            rebuilt.start.conversation.push(Message::text(Role::User, GO_ON));
            rebuilt.nudges = 0;
        }
        let change = Change {
            // If another process has continued it since, and stopped again, the log differs from what is known here.
            behind: Some(record.last.0),
            spend_limit: Some(rebuilt.launch.limits.spend),
            model: Some(rebuilt.launch.model.id.clone()),
            unpriced: rebuilt.launch.unpriced,
            adopt: how.trust_log,
            ..Change::default()
        };
        let seen = record.last.0;
        let record = store.take(&record.id, &holder, &entries, &change)?;
        for event in store.events(&record.id, seen, PAGE).unwrap_or_default() {
            watch.activity(&record.id, &Activity::Event(&event));
        }
        self.go(project, store, (record.id, holder), rebuilt, chosen, thread_tools, watch)
    }

    /// All that a thread needs to go on, read and verified anew. Nothing is written, and nothing runs yet.
    fn ready<'e>(
        &'e self,
        project: &Arc<Project>,
        store: &dyn Store,
        book: Option<&Book>,
        record: &Record,
        how: &Resume,
    ) -> Result<ResumedThread<'e>> {
        let events = whole_log(store, record)?;
        if record.authenticity != Authenticity::Own && !how.trust_log {
            return Err(not_own(&record.id, &record.authenticity));
        }
        let mut rebuilt = rebuild(&record.id, &events)?;
        if !how.allow_again {
            refuse_unconfirmed(record, &rebuilt.launch, &format!("resume {}", record.id))?;
        }
        let (chosen, mut payload) = self.changes(project, store, &rebuilt, record, how)?;
        rebuilt.launch.limits = ThreadLimits::from_json(&payload["limits"])?;
        rebuilt.launch.context_window = chosen.context_window;
        rebuilt.launch.unpriced = chosen.price.is_none();
        rebuilt.launch.model.id.clone_from(&chosen.model);
        rebuilt.launch.provider.clone_from(&chosen.provider.name);
        if rebuilt.launch.kind == ThreadKind::Directive {
            start::vouch(self, project, store, &mut rebuilt.launch, how.trust_log)?;
        }
        let launch = &rebuilt.launch;
        let (thread_tools, has_changed) = match launch.kind {
            ThreadKind::Directive => {
                let now = start::hash(project, &ItemId::new(&launch.prompt)?);
                (None, launch.prompt_hash.is_some() && now != launch.prompt_hash)
            }
            // A prompt that cannot be read any more keeps its thread from being taken up, and not in the middle of it.
            ThreadKind::Prompt => {
                let thread_tools =
                    self.prompt_tools(project, launch, (book, chosen.profile.api), rebuilt.opened.clone())?;
                let reported = rebuilt.start.conversation.get(..rebuilt.prompt_messages);
                // Where a part lies in the rendered text is not in the log.
                let json = |messages: &[Message]| messages.iter().map(Message::to_json).collect::<Vec<_>>();
                let has_changed = reported.map(json) != Some(json(&thread_tools.messages()?));
                (Some(Box::new(thread_tools) as Box<dyn ThreadTools + '_>), has_changed)
            }
        };
        if has_changed {
            let what = if launch.kind == ThreadKind::Directive { "directive" } else { "prompt" };
            payload["prompt_changed"] = json!(format!(
                "the {what} has changed since the thread began; this thread keeps the old text, and a new thread uses the new one"
            ));
        }
        Ok(ResumedThread { events, rebuilt, chosen, payload, thread_tools, has_changed })
    }

    /// Threads that a thread started and that have not ended, in words for its model.
    fn left_behind(&self, store: &dyn Store, id: &ThreadId) -> Result<Vec<String>> {
        let children = store.list(&Filter { parent: Some(id.clone()), ..Filter::default() })?;
        let open = children.iter().filter(|child| !child.status.is_settled());
        Ok(open
            .map(|child| format!(" It had started the thread `{}`, which is {} now.", child.id, child.status))
            .collect())
    }

    /// What is different when a thread is taken up: who is asked, and its limits.
    fn changes(
        &self,
        project: &Arc<Project>,
        store: &dyn Store,
        rebuilt: &Rebuilt,
        record: &Record,
        how: &Resume,
    ) -> Result<(Chosen, Json)> {
        let launch = &rebuilt.launch;
        let parent = launch.parent.as_ref().map(|id| start::parent(store, id, how.trust_log)).transpose()?;
        let mut limits = ThreadLimits::resolve(
            &launch.limits,
            None,
            &how.limit_overrides,
            parent.as_ref().map(|parent| &parent.limits),
        )?;
        let chosen = self.choose_again(project, launch, how.model.as_deref())?;
        start::one_currency(&mut limits, &chosen, true)?;
        if chosen.price.is_none() {
            start::no_price(&chosen, how.limit_overrides.contains_key("spend"))?;
        }
        let asked = launch.limits.with(&how.limit_overrides, "limit overrides")?;
        let payload = json!({
            "limits": limits.to_json(),
            "capped": capped(&[Some(&how.limit_overrides)], &asked, &limits),
            "context_window": chosen.context_window,
            "unpriced": chosen.price.is_none(),
            "provider": chosen.provider.name,
            "model": chosen.model,
            "was": record.status.as_str(),
            "not_repeated": rebuilt.unknown.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(),
        });
        Ok((chosen, payload))
    }
}

/// A thread that can be taken up again.
struct ResumedThread<'e> {
    /// Its log.
    events: Vec<Event>,
    rebuilt: Rebuilt,
    /// Who is asked.
    chosen: Chosen,
    /// What the event says with which it goes on.
    payload: Json,
    /// The tools of a prompt that is no directive.
    thread_tools: Option<Box<dyn ThreadTools + 'e>>,
    /// The prompt is not the one that it began with.
    has_changed: bool,
}

/// `CB737`: a prompt's thread takes its permissions from its log alone, so its user has to allow them again. A directive's come
/// from its signed file.
pub(super) fn refuse_unconfirmed(record: &Record, launch: &Launch, command: &str) -> Result<()> {
    let capabilities: Vec<&str> = launch.capabilities.iter().collect();
    if launch.kind == ThreadKind::Directive || (capabilities.is_empty() && launch.tools.is_empty()) {
        return Ok(());
    }
    let id = &record.id;
    let tools: Vec<String> = launch
        .tools
        .iter()
        .map(|(name, item)| format!("{name}={}", item.as_str().unwrap_or_default()))
        .collect();
    let mut message = format!("`{id}` would get these permissions again: {}", capabilities.join(", "));
    if !tools.is_empty() {
        message.push_str(&format!("; with the tools {}", tools.join(", ")));
    }
    let hint = Hint::run("to allow this", format!("cuebook thread {command} --allow-again"));
    let diagnostic = Diagnostic::new(Code::AskAgain, printable(&message))
        .hint(hint.map(|text| printable(text).into_owned()));
    Err(Error::new(ErrorKind::Execute, diagnostic)
        .with("thread_id", id.as_str())
        .with("capabilities", capabilities)
        .with("tools", tools)
        .with("events", record.last.0))
}

/// `CB713`: a process runs it.
pub(super) fn busy(record: &Record) -> Error {
    let who = record.holder.as_ref().map_or(String::new(), |holder| format!(" (process {})", holder.pid));
    let message = format!("`{}` is already running{who}", record.id);
    let id = &record.id;
    let hint = Hint::run("follow it", format!("cuebook thread tail {id}")).or(Hint::run(
        "if you know that its process is gone",
        format!("cuebook thread resume {id} --take-over"),
    )
    .for_programs("if you know that its process is gone, take it over"));
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::ThreadBusy, message).hint(hint))
}

fn ended(record: &Record) -> Error {
    let message = format!("`{}` is {}, so there is nothing to continue", record.id, record.status);
    let hint = match &record.continued_by {
        Some(next) => format!("{next} continues its conversation").into(),
        None => Hint::run("see its result", format!("cuebook thread show {}", record.id)),
    };
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::CannotResume, message).hint(hint))
}
