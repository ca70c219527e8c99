//! When a conversation is full: another thread goes on with what was said last.
//!
//! The new thread has the same task, inputs, permissions and tools, the rest of the limits, the prompt as it was first sent, the
//! newest messages that fit, and a word that tells the model where it stands. The old one keeps its whole log and says who goes on.

use std::sync::Arc;

use cuebook::chat::{Message, Role};
use cuebook::items::{ItemId, ItemType};
use cuebook::tokens::Tokenizer;
use cuebook::{Error, Result};
use serde_json::{Map, Value as Json, json};

use super::drive::Finished;
use super::hooks::ThreadHooks;
use super::launch::Launch;
use super::log::{not_found, whole_log};
use super::rebuild::calls_of;
use super::run::{NewThreadParts, ThreadRun};
use super::{Caller, Conversation, Entry, Kind, Money, Status, ThreadId, spent_below};
use crate::engine::{Engine, Project};
use crate::policy::limits::ThreadLimits;
use crate::provider::Chosen;
use crate::store::{Change, FinalEvents, Holder, Store};
use crate::watch::Watch;

/// How many tokens of the old conversation the new one begins with, at most.
const KEPT: u64 = 16_000;
/// The directive that tells a model how to go on, where its own names none.
const DIRECTIVE: &str = "rye/agent/continuation";

impl Engine {
    /// Goes on with a conversation that is full, in a new thread. Whatever keeps the new one from beginning is the inner error:
    /// the old one is still held then.
    pub(super) fn go_on(
        &self,
        project: &Arc<Project>,
        store: &Arc<dyn Store>,
        launch: &Launch,
        (finished, holder): (Finished, &Holder),
        chosen: Chosen,
        watch: &dyn Watch,
    ) -> Result<Result<ThreadRun>> {
        let id = finished.id.clone();
        let (beginning, final_events) = match self.successor(project, store, launch, finished, chosen, watch)
        {
            Ok(successor) => successor,
            Err(error) => return Ok(Err(error)),
        };
        let known = store.record(&id)?.map_or(0, |record| record.last.0);
        let began = self.begin_with(project, store, beginning, watch, |new| {
            let next = store.hand_over(&id, holder, final_events, &Change::default(), new)?;
            self.report_events(&**store, &id, known, watch);
            Ok(next)
        });
        match began {
            Ok(began) => Ok(Ok(began)),
            Err(error) => match store.record(&id)? {
                Some(record) if record.status == Status::Running => Ok(Err(error)),
                _ => Err(error),
            },
        }
    }

    /// The thread that is to go on, and what the old one says last.
    fn successor(
        &self,
        project: &Arc<Project>,
        store: &Arc<dyn Store>,
        launch: &Launch,
        finished: Finished,
        chosen: Chosen,
        watch: &dyn Watch,
    ) -> Result<(NewThreadParts<'_>, FinalEvents)> {
        let Some(record) = store.record(&finished.id)? else { return Err(not_found(&**store, &finished.id)) };
        let rebuilt = super::rebuild(&finished.id, &whole_log(&**store, &record)?)?;
        let words = self.words(project, launch)?;
        let conversation = &rebuilt.start.conversation;
        let (prompt, spoken) = conversation.split_at(rebuilt.prompt_messages.min(conversation.len()));
        let kept = newest(spoken, &launch.model.id, KEPT.min(launch.context_window / 4));
        let mut messages = prompt.to_vec();
        messages.extend(kept.iter().cloned());
        let (words, said) = self.introduced(project, launch, &finished.id, words, watch)?;
        messages.push(Message::text(Role::User, words));
        let limits = self.left(&**store, launch, &finished, u64::from(record.spawned))?;
        let handoff = json!({"kept_messages": kept.len(), "left_out": spoken.len() - kept.len()});
        let final_events: FinalEvents = Arc::new(move |next: &ThreadId| {
            let next = json!({"continuation_thread_id": next.as_str()});
            vec![Entry::new(Kind::Handoff, handoff.clone()), Entry::new(Kind::Continued, next)]
        });
        let next = Launch {
            prompt_messages: prompt.len(),
            messages,
            origins: rebuilt.origins.clone(),
            limits,
            continuation_of: Some(finished.id.clone()),
            forked_from: None,
            skills: super::skills::still_open(&launch.skills, &rebuilt.opened_skills),
            ..launch.clone()
        };
        let thread_tools = self.continued_tools(project, &next, chosen.profile.api, rebuilt.opened)?;
        let entries = match said.is_empty() {
            true => Vec::new(),
            false => vec![Entry::new(Kind::ContextInjected, json!({"hooks": said}))],
        };
        Ok((
            NewThreadParts { launch: next, chosen, parent_holder: None, entries, thread_tools },
            final_events,
        ))
    }

    /// The words for a model that goes on, with those of the hooks that have something to say about it.
    fn introduced(
        &self,
        project: &Arc<Project>,
        launch: &Launch,
        before: &ThreadId,
        words: String,
        watch: &dyn Watch,
    ) -> Result<(String, Vec<Json>)> {
        let thread_hooks = ThreadHooks::new(self, project.clone(), launch)?;
        let secrets = self.secrets(project)?;
        let within = Caller { thread: launch.parent.as_ref(), holder: None, call: None, secrets: &secrets };
        let reported = json!({
            "directive": launch.prompt,
            "project_path": project.spaces.project().to_string_lossy(),
            "model": launch.model.id,
            "inputs": launch.inputs,
            "limits": launch.limits.to_json(),
            "parent_thread_id": launch.parent.as_ref().map(ThreadId::as_str),
            "previous_thread_id": before.as_str(),
            "capabilities": launch.capabilities.to_json(),
        });
        let said =
            thread_hooks.gather(&["thread_continued"], &reported, &launch.capabilities, &within, watch);
        let words: Vec<String> = said.before.into_iter().chain([words]).chain(said.after).collect();
        Ok((words.join("\n\n"), said.said))
    }

    /// What is left of a thread's limits.
    fn left(
        &self,
        store: &dyn Store,
        launch: &Launch,
        finished: &Finished,
        spawned: u64,
    ) -> Result<ThreadLimits> {
        let (limits, cost) = (&launch.limits, &finished.cost);
        let spend = match store.account(&finished.id)? {
            // What its children spent is spent, and what they may yet spend stays with it.
            Some(account) if account.limit != Money::MAX => account.remaining() + account.held,
            _ => limits.spend,
        };
        Ok(ThreadLimits {
            turns: limits.turns.saturating_sub(u64::from(cost.turns)),
            tokens: limits.tokens.saturating_sub(cost.tokens()),
            spend: spend.max(Money::ZERO),
            spawns: limits.spawns.saturating_sub(spawned),
            duration: limits.duration.saturating_sub(cost.elapsed),
            ..limits.clone()
        })
    }

    /// A conversation is full, and no directive could be found to continue it: the thread waits until that is fixed.
    pub(super) fn stay(
        &self,
        store: &Arc<dyn Store>,
        (id, holder): (ThreadId, &Holder),
        error: Error,
    ) -> Result<ThreadRun> {
        let record = store.record(&id)?.ok_or_else(|| not_found(&**store, &id))?;
        let cost = record.cost;
        let children = spent_below(&**store, &record)?;
        let finished = Finished {
            id,
            status: Status::Suspended,
            result: None,
            outputs: None,
            note: None,
            error: Some(error),
            cost,
            children,
            conversation: None,
            full: false,
        };
        let reported = finished.to_json();
        let change =
            Change { status: Some(Status::Suspended), result: Some(reported.clone()), ..Change::default() };
        store.append(&finished.id, holder, &[Entry::new(Kind::Suspended, reported)], &change)?;
        Ok(self.with_conversation(&**store, finished))
    }

    /// The end of a thread, with what the whole conversation used. A report about it is no reason to fail.
    pub(super) fn with_conversation(&self, store: &dyn Store, mut finished: Finished) -> ThreadRun {
        if let Ok(Some(record)) = store.record(&finished.id) {
            finished.conversation = Conversation::of(store, &record).unwrap_or_default();
        }
        ThreadRun::Finished(Box::new(finished))
    }

    /// What a model gets that continues: the body of the directive that the thread's own names, or of the usual one.
    fn words(&self, project: &Arc<Project>, launch: &Launch) -> Result<String> {
        let id = launch.continuation.as_deref().unwrap_or(DIRECTIVE);
        let id = ItemId::new(id)?;
        let prepared = self.directive(project, &id)?;
        let directive =
            prepared.directive().ok_or_else(|| project.spaces.not_found(ItemType::Directive, &id))?;
        let wanted: Map<String, Json> = launch
            .inputs
            .iter()
            .filter(|(name, _)| directive.inputs.iter().any(|input| input.name.as_str() == name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Ok(directive.fill(&wanted)?.body()?.text)
    }
}

/// The newest messages that have so many tokens together, from the beginning of a turn: a result without its call says nothing.
fn newest<'m>(messages: &'m [Message], model: &str, most: u64) -> &'m [Message] {
    let tokenizer = Tokenizer::for_model(model);
    let mut tokens = 0;
    let mut start = messages.len();
    for (index, message) in messages.iter().enumerate().rev() {
        let calls = message.metadata.get("tool_calls").map(Json::to_string).unwrap_or_default();
        let texts = message.texts().map(|text| tokenizer.count(text)).sum::<usize>();
        tokens += (texts + tokenizer.count(&calls) + 4) as u64;
        if tokens > most {
            break;
        }
        let answers_here = |call: &cuebook::chat::reply::ToolCall| {
            let is_answer = |message: &Message| {
                message.metadata.get("tool_call_id").and_then(Json::as_str) == Some(call.id.as_str())
            };
            messages[index..].iter().any(is_answer)
        };
        if message.role == Role::User
            || (message.role == Role::Assistant && calls_of(message).iter().all(answers_here))
        {
            start = index;
        }
    }
    &messages[start..]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turn::{assistant_message, tool_message};
    use cuebook::chat::reply::{Reply, ToolCall};

    #[test]
    fn a_kept_conversation_begins_with_a_whole_turn() {
        let call = ToolCall { id: "c1".into(), name: "t".into(), arguments: "{}".into() };
        let calling = assistant_message(&Reply::ToolCalls { calls: vec![call.clone()], text: None });
        let long = "word ".repeat(100);
        let messages = [
            Message::text(Role::User, &long),
            calling.clone(),
            tool_message(&call, &long, false),
            Message::text(Role::Assistant, "so"),
        ];
        assert_eq!(newest(&messages, "gpt-4o", 10_000).len(), 4);
        assert_eq!(newest(&messages, "gpt-4o", 200), &messages[1..]);
        // The result would fit, but not without the call.
        assert_eq!(newest(&messages, "gpt-4o", 110), &messages[3..]);
        assert!(newest(&messages, "gpt-4o", 0).is_empty());
    }
}
