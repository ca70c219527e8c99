//! A fork: a new thread that begins with the request of a turn of another one, for another model or another prompt.
//!
//! The other thread stays as it is. The new one has its inputs, limits and permissions, and nothing of what it used.

use std::path::Path;
use std::sync::Arc;

use cuebook::variables::{Context, Variables};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Map, Value as Json, json};

use super::launch::{ForkPoint, Launch, ThreadKind};
use super::log::{not_found, whole_log};
use super::prompt::thawed;
use super::rebuild::{Rebuilt, rebuild_turn};
use super::resume::refuse_unconfirmed;
use super::run::{NewThreadParts, RunRequest, ThreadRun};
use super::{Entry, Kind, ThreadId, start};
use crate::engine::{Engine, Project};
use crate::policy::limits::ThreadLimits;
use crate::store::{Authenticity, Store, not_own};
use crate::watch::Watch;

/// How a thread is forked.
#[derive(Debug, Clone, Default)]
pub struct Fork {
    /// The turn whose request the new thread begins with, from 1.
    pub turn: u32,
    /// Another prompt. Its messages take the place of the thread's own prompt.
    pub prompt: Option<String>,
    /// Values of variables of the other prompt; the others come from the thread.
    pub variables: Map<String, Json>,
    /// Another model.
    pub model: Option<String>,
    /// Other limits.
    pub limit_overrides: Map<String, Json>,
    /// Does not wait for the new thread.
    pub is_async: bool,
    /// The user has seen what a prompt's thread may do, and allows it again.
    pub allow_again: bool,
}

impl Engine {
    /// Starts a new thread from a turn of another one.
    ///
    /// # Errors
    ///
    /// `CB712` if the thread is missing, `CB714` if its log was changed, `CB735` if the user's key did not write its log, `CB737` if a
    /// prompt's thread had permissions that were not allowed again. An error if it has no such turn.
    pub fn fork(
        &self,
        project: Option<&Path>,
        book: &Book,
        id: &ThreadId,
        how: &Fork,
        watch: &dyn Watch,
    ) -> Result<ThreadRun> {
        let store = self.threads_so_far(project)?;
        let project = self.project(project)?;
        let record = store.record(id)?.ok_or_else(|| not_found(&*store, id))?;
        let events = whole_log(&*store, &record)?;
        if record.authenticity != Authenticity::Own {
            return Err(not_own(&record.id, &record.authenticity));
        }
        let rebuilt = rebuild_turn(&record.id, &events, how.turn)?;
        if !how.allow_again {
            refuse_unconfirmed(&record, &rebuilt.launch, &format!("fork {id} --turn {}", how.turn))?;
        }
        let point = ForkPoint { thread: record.id.clone(), turn: how.turn };
        let parts = match &how.prompt {
            None => self.fork_same(&project, &*store, book, rebuilt, how)?,
            Some(prompt) => self.fork_other(&project, book, &rebuilt, prompt, how)?,
        };
        let launch = Launch {
            forked_from: Some(point),
            parent: None,
            continuation_of: None,
            capped: Vec::new(),
            ..parts.launch
        };
        self.ready_to_record()?;
        let store = self.store_of(&project)?;
        self.begin(&project, &store, NewThreadParts { launch, ..parts }, how.is_async, watch)
    }

    /// The same prompt, with the model that was asked for.
    fn fork_same(
        &self,
        project: &Arc<Project>,
        store: &dyn Store,
        book: &Book,
        rebuilt: Rebuilt,
        how: &Fork,
    ) -> Result<NewThreadParts<'_>> {
        let launch = &rebuilt.launch;
        let chosen = self.choose_again(project, launch, how.model.as_deref())?;
        let mut limits = ThreadLimits::resolve(&launch.limits, None, &how.limit_overrides, None)?;
        start::one_currency(&mut limits, &chosen, true)?;
        let mut notes = Vec::new();
        if chosen.price.is_none() {
            start::no_price(&chosen, how.limit_overrides.contains_key("spend"))?;
            notes.push(json!(start::unpriced(&chosen.model)));
        }
        let mut launch = Launch {
            messages: rebuilt.start.conversation.clone(),
            prompt_messages: rebuilt.prompt_messages,
            origins: rebuilt.origins.clone(),
            provider: chosen.provider.name.clone(),
            context_window: chosen.context_window,
            unpriced: chosen.price.is_none(),
            limits,
            notes,
            skills: super::skills::still_open(&rebuilt.launch.skills, &rebuilt.opened_skills),
            ..rebuilt.launch
        };
        launch.model.id.clone_from(&chosen.model);
        let (mut thread_tools, mut entries) = (None, Vec::new());
        match launch.kind {
            ThreadKind::Directive => start::vouch(self, project, store, &mut launch, false)?,
            ThreadKind::Prompt => {
                let api = chosen.profile.api;
                thread_tools =
                    Some(self.prompt_tools(project, &launch, (Some(book), api), rebuilt.opened.clone())?);
                let opened: Vec<&[String]> = rebuilt.opened.iter().map(|(path, _)| path).collect();
                if !opened.is_empty() {
                    // The process that carries the fork out has to open them again.
                    let prompt = &launch.messages[..launch.prompt_messages.min(launch.messages.len())];
                    let messages: Vec<Json> = prompt.iter().map(cuebook::Message::to_json).collect();
                    entries.push(Entry::new(
                        Kind::Disclosed,
                        json!({"opened": opened, "replaces": prompt.len(), "messages": messages, "origins": launch.origins}),
                    ));
                }
            }
        }
        Ok(NewThreadParts { launch, chosen, parent_holder: None, entries, thread_tools })
    }

    /// Another prompt: its messages, and what the thread heard and said behind its own prompt.
    fn fork_other(
        &self,
        project: &Arc<Project>,
        book: &Book,
        rebuilt: &Rebuilt,
        prompt: &str,
        how: &Fork,
    ) -> Result<NewThreadParts<'_>> {
        let refuse = |message: String| {
            let hint =
                Hint::option("fork it with another model", "leave out the other prompt, and give --model");
            Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
        };
        let old = &rebuilt.launch;
        if old.kind == ThreadKind::Directive {
            return refuse(format!("`{}` is a directive: its thread keeps its directive", old.prompt));
        }
        let model = how.model.clone().unwrap_or_else(|| old.model.id.clone());
        let context =
            book.complete(&Context { visibility: rebuilt.opened.clone(), ..thawed(&old.context, &model) })?;
        let prepared = book.prepare(prompt, &context)?;
        if prepared.directive().is_some() {
            return refuse(format!("`{prompt}` is a directive, which starts its own thread"));
        }
        let mut values = old.inputs.clone();
        values.retain(|name, _| prepared.knows(name));
        values.extend(how.variables.clone());
        let variables = Variables::from_json(&values);
        let known = prepared.render(&variables, &context)?;
        let tools = old.tools.iter().filter(|(name, _)| known.tools().iter().any(|tool| tool.name == **name));
        let request = RunRequest {
            prompt: prompt.to_owned(),
            tools: tools.filter_map(|(name, item)| Some((name.clone(), item.as_str()?.to_owned()))).collect(),
            allow: old.capabilities.iter().map(str::to_owned).collect(),
            limit_overrides: how.limit_overrides.clone(),
            model: Some(model),
            variables,
            ..RunRequest::default()
        };
        let (mut launch, chosen, thread_tools) =
            self.launch_prompt(project, &prepared, &request, (*context).clone())?;
        launch.limits = ThreadLimits::resolve(&old.limits, None, &how.limit_overrides, None)?;
        start::one_currency(&mut launch.limits, &chosen, true)?;
        launch.skills = super::skills::still_open(&old.skills, &rebuilt.opened_skills);
        let said = rebuilt.start.conversation.iter().skip(rebuilt.prompt_messages);
        launch.messages.extend(said.cloned());
        let thread_tools = Some(thread_tools);
        Ok(NewThreadParts { launch, chosen, parent_holder: None, entries: Vec::new(), thread_tools })
    }
}
