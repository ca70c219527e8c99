//! The model of a prompt, for a program that asks it many questions and keeps the answers itself, as rows of a data set.
//!
//! It is chosen, asked and understood as for a thread: the same provider files, bodies, repetitions, forms and reminders. What a thread
//! adds is missing: no tools run, and nothing is written down.

use std::sync::Arc;

use cuebook::chat::Message;
use cuebook::chat::output::{Container, OutputSpec};
use cuebook::chat::reply::{Answer, Reply, Usage};
use cuebook::prompt::{Model, Shape, Tools};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Prepared, Rendered, Result};
use serde_json::Value as Json;

use super::{Secrets, form};
use crate::engine::Engine;
use crate::money::Money;
use crate::policy::nudge;
use crate::provider::{
    Chosen, Ending, HttpProvider, Listener, Provider as _, ProviderFailure, ProviderRequest, ending,
};

/// The model of a prompt.
pub struct PromptModel {
    prepared: Arc<Prepared>,
    provider: HttpProvider,
    model: Model,
    form: Option<OutputSpec>,
    secrets: Secrets,
    /// No row has tools.
    tools: Tools,
}

/// What to make of an answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    /// It is what the prompt asks for: the outputs, if the prompt declares some.
    Done(Option<Json>),
    /// The model gets this text, and is asked again.
    Again(String),
}

impl Engine {
    /// The model of a prompt: the one that is wanted, or the one that the prompt names.
    ///
    /// # Errors
    ///
    /// What keeps it from being asked: no provider, no key, or a directive, which needs a thread.
    #[doc(hidden)]
    pub fn prompt_model(
        &self,
        book: &Book,
        prepared: &Arc<Prepared>,
        wanted: Option<&str>,
    ) -> Result<PromptModel> {
        if prepared.directive().is_some() {
            let id = &prepared.prompt().id;
            let diagnostic =
                Diagnostic::new(Code::BadInput, format!("`{id}` is a directive, which needs a thread")).hint(
                    Hint::run("run it for one row", format!("cuebook execute directive {id} --thread")),
                );
            return Err(Error::new(ErrorKind::Usage, diagnostic));
        }
        let project = self.project(Some(book.library().root()))?;
        let chosen = self.choose_for(&project, prepared, wanted)?;
        let own = prepared.prompt().model.clone().unwrap_or_default();
        Ok(PromptModel {
            model: Model { id: chosen.model.clone(), options: own.options, ..Model::default() },
            provider: self.provider_of(&chosen)?,
            form: form::of(prepared),
            secrets: self.secrets(&project)?,
            prepared: prepared.clone(),
            tools: Tools::default(),
        })
    }
}

impl PromptModel {
    /// Who answers.
    pub fn chosen(&self) -> &Chosen {
        self.provider.chosen()
    }

    /// Who carries the questions, for requests that ask no model.
    pub fn provider(&self) -> &HttpProvider {
        &self.provider
    }

    /// What the model is sent first.
    ///
    /// # Errors
    ///
    /// `CB730` if the prompt has tools, because a batch runs none, and every error of messages for this provider.
    pub fn messages(&self, rendered: &Rendered) -> Result<Vec<Message>> {
        if let Some(tool) = rendered.tools().iter().next() {
            let message = format!("the prompt has the tool `{}`, and a batch runs no tools", tool.name);
            let diagnostic = Diagnostic::new(Code::NoHandler, message).hint(
                Hint::command_line(
                    "remove the tools (open the sections that offer them), or use `cuebook run` for each row",
                )
                .for_programs("remove the tools, or start a thread for each row"),
            );
            return Err(Error::new(ErrorKind::Usage, diagnostic));
        }
        rendered.messages_for(self.chosen().profile.api).map(|(messages, _)| messages)
    }

    fn request<'a>(&'a self, conversation: &'a [Message]) -> ProviderRequest<'a> {
        ProviderRequest {
            model: &self.model,
            messages: conversation,
            tools: &self.tools,
            outputs: &self.prepared.prompt().outputs,
            most_tokens: None,
            deadline: None,
        }
    }

    /// The question as bytes, without secrets: two questions with the same bytes ask the same.
    ///
    /// # Errors
    ///
    /// What keeps the request from being written.
    pub fn question(&self, conversation: &[Message]) -> Result<Vec<u8>> {
        self.provider.question(&self.request(conversation))
    }

    /// The body of a request as a batch interface of the provider takes it.
    ///
    /// # Errors
    ///
    /// What keeps the request from being written.
    pub fn whole_body(&self, conversation: &[Message]) -> Result<Vec<u8>> {
        self.provider.whole_body(&self.request(conversation))
    }

    /// Asks, and repeats what failed by accident.
    ///
    /// # Errors
    ///
    /// That no answer came.
    pub fn ask(
        &self,
        conversation: &[Message],
        listener: &dyn Listener,
    ) -> Result<Answer, Box<ProviderFailure>> {
        self.provider.ask(&self.request(conversation), listener)
    }

    /// Whether the prompt declares what an answer has to hold.
    pub fn has_outputs(&self) -> bool {
        self.form.is_some()
    }

    /// The outputs with what their values look like; none if the prompt declares none, or a list of them.
    pub fn output_shapes(&self) -> impl Iterator<Item = (&str, &Shape)> {
        let form = self.form.iter().filter(|form| form.container == Container::Object);
        form.flat_map(|form| &form.record.fields).map(|field| (field.name.as_str(), &field.shape))
    }

    /// The tokens that an answer may have.
    pub fn most_output(&self) -> u64 {
        let given = self.model.options.max_output_tokens.as_ref().and_then(serde_json::Number::as_u64);
        given.unwrap_or(u64::MAX).min(self.chosen().max_output).max(1)
    }

    /// What tokens cost; nothing if the price is not known.
    pub fn cost(&self, usage: &Usage) -> Money {
        self.chosen().price.map_or(Money::ZERO, |price| price.cost(usage))
    }

    /// What to make of an answer that ended for this reason, after so many reminders.
    ///
    /// # Errors
    ///
    /// `CB725` for an answer that does not have the form that the prompt asks for, `CB729` where the model declined, and `CB722` for an
    /// answer that was cut off.
    pub fn settle(&self, reply: &Reply, finish: Option<&str>, reminders: u32) -> Result<Settled> {
        let failed = |code, message: String, hint: Hint| {
            Error::new(ErrorKind::Execute, Diagnostic::new(code, message).hint(hint))
        };
        if let Reply::Refusal(said) = reply {
            let message = format!("the model declined to answer: {said}");
            return Err(failed(
                Code::Refused,
                message,
                "change the prompt or the inputs, or use another model".into(),
            ));
        }
        if let Reply::ToolCalls { calls, .. } = reply {
            let names: Vec<&str> = calls.iter().map(|call| call.name.as_str()).collect();
            let message = format!("the model calls {}, and a batch runs no tools", names.join(", "));
            let hint = Hint::command_line("use `cuebook run` for this row")
                .for_programs("start a thread for this row");
            return Err(failed(Code::NoHandler, message, hint));
        }
        let is_cut = matches!(ending(finish), Ending::Cut | Ending::Full);
        let settled = match &self.form {
            None => Ok(Settled::Done(None)),
            Some(form) => match form::read(form, reply) {
                Ok(value) => Ok(Settled::Done(Some(value))),
                Err(why) => Err(why),
            },
        };
        match settled {
            Ok(settled) if !is_cut || matches!(reply, Reply::Structured { .. }) => Ok(settled),
            _ if is_cut => {
                let most = self.most_output();
                let message = format!("the answer was cut off after at most {most} tokens");
                Err(failed(
                    Code::NoAnswer,
                    message,
                    "raise `maxOutputTokens` of the prompt, or ask for less".into(),
                ))
            }
            Ok(settled) => Ok(settled),
            Err(why) if reminders < nudge::MAX => Ok(Settled::Again(form::reminder(&why))),
            Err(why) => {
                let message =
                    format!("the model's answer does not have the form that the prompt asks for: {why}");
                let hint = "describe the form in the prompt; the column `answer` has what the model wrote";
                Err(failed(Code::OutputsMissing, message, hint.into()))
            }
        }
    }

    /// Takes the keys of providers out of every text of a value.
    pub fn scrub(&self, value: &mut Json) {
        self.secrets.scrub(value);
    }
}
