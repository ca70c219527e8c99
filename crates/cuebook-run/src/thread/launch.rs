//! All that a thread is started with, frozen in its first event, so that a process that continues it needs nothing else.

use std::path::PathBuf;

use cuebook::chat::Message;
use cuebook::dialect::skill::OfferedSkill;
use cuebook::prompt::{Model, ModelOptions};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Number, Value as Json, json};

use super::ThreadId;
use crate::policy::capability::Capabilities;
use crate::policy::limits::ThreadLimits;

/// What a thread carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThreadKind {
    /// A directive, with the four actions as tools.
    Directive,
    /// Any other prompt, with the tools that it declares.
    Prompt,
}

impl ThreadKind {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ThreadKind::Directive => "directive",
            ThreadKind::Prompt => "prompt",
        }
    }
}

/// A turn of a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ForkPoint {
    /// The thread.
    pub thread: ThreadId,
    /// The turn, from 1.
    pub turn: u32,
}

/// All that a thread is started with.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Launch {
    /// What it carries out.
    pub kind: ThreadKind,
    /// The id of the directive or prompt.
    pub prompt: String,
    /// The project.
    pub project: PathBuf,
    /// The thread that started it.
    pub parent: Option<ThreadId>,
    /// The values that it was given, with defaults.
    pub inputs: Map<String, Json>,
    /// The name of the provider.
    pub provider: String,
    /// The model, and how it is to be asked.
    pub model: Model,
    /// How many tokens fit into a conversation with the model.
    pub context_window: u64,
    /// Whether the price of the model is unknown, so that no money is counted.
    pub unpriced: bool,
    /// How far it may go.
    pub limits: ThreadLimits,
    /// What it may do.
    pub capabilities: Capabilities,
    /// What it is to return, as it was declared.
    pub outputs: Vec<Json>,
    /// What is to happen at certain moments.
    pub hooks: Vec<Json>,
    /// What the model gets first.
    pub messages: Vec<Message>,
    /// How many of them are the prompt; the others are what another thread heard and said last.
    pub prompt_messages: usize,
    /// Where each piece of the prompt's messages came from.
    pub origins: Json,
    /// The hash of the prompt's file, so that a process that continues the thread can see whether it has changed.
    pub prompt_hash: Option<String>,
    /// The items that stand behind the tools of a prompt, by the names of the tools.
    pub tools: Map<String, Json>,
    /// The skills that its model can open.
    pub skills: Vec<OfferedSkill>,
    /// The directive that tells another thread how to go on when the conversation is full.
    pub continuation: Option<String>,
    /// The thread whose conversation it goes on with.
    pub continuation_of: Option<ThreadId>,
    /// The turn of another thread that it begins with.
    pub forked_from: Option<ForkPoint>,
    /// What else the prompt was rendered with.
    pub context: Json,
    /// Limits that its parent did not grant as they were asked for.
    pub capped: Vec<Json>,
    /// A note for readers of the log.
    pub notes: Vec<Json>,
}

impl Launch {
    /// The launch as the first event keeps it.
    pub fn to_json(&self) -> Json {
        json!({
            "kind": self.kind.as_str(),
            "directive": self.prompt,
            "project": self.project.to_string_lossy(),
            "parent_id": self.parent.as_ref().map(ThreadId::as_str),
            "inputs": self.inputs,
            "provider": self.provider,
            "model": {"id": self.model.id, "options": self.model.options.to_json()},
            "context_window": self.context_window,
            "unpriced": self.unpriced,
            "limits": self.limits.to_json(),
            "capabilities": self.capabilities.to_json(),
            "outputs": self.outputs,
            "hooks": self.hooks,
            "messages": self.messages.iter().map(Message::to_json).collect::<Vec<_>>(),
            "prompt_messages": self.prompt_messages,
            "origins": self.origins,
            "prompt_hash": self.prompt_hash,
            "tools": self.tools,
            "skills": self.skills.iter().map(OfferedSkill::to_json).collect::<Vec<_>>(),
            "continuation": self.continuation,
            "continuation_of": self.continuation_of.as_ref().map(ThreadId::as_str),
            "forked_from": self
                .forked_from
                .as_ref()
                .map(|point| json!({"thread_id": point.thread.as_str(), "turn": point.turn})),
            "context": self.context,
            "capped": self.capped,
            "notes": self.notes,
        })
    }

    /// Reads what [`Launch::to_json`] wrote.
    ///
    /// # Errors
    ///
    /// [`Code::CannotResume`] if it is something else.
    pub fn from_json(json: &Json) -> Result<Launch> {
        let wrong = |what: &str| {
            let message = format!("the first event of the thread has no usable `{what}`");
            let hint = "another version wrote it; start the prompt again with the same inputs";
            Error::new(ErrorKind::Execute, Diagnostic::new(Code::CannotResume, message).hint(hint))
        };
        let text = |name: &str| json.get(name).and_then(Json::as_str).map(str::to_owned);
        let need = |name: &str| text(name).ok_or_else(|| wrong(name));
        let map = |name: &str| json.get(name).and_then(Json::as_object).cloned().unwrap_or_default();
        let list = |name: &str| json.get(name).and_then(Json::as_array).cloned().unwrap_or_default();
        let messages: Result<Vec<Message>, String> =
            list("messages").iter().map(Message::from_json).collect();
        let model = &json["model"];
        let messages = messages.map_err(|_| wrong("messages"))?;
        let skills = list("skills").iter().map(OfferedSkill::from_json).collect::<Option<_>>();
        let of_prompt = json["prompt_messages"].as_u64().and_then(|count| usize::try_from(count).ok());
        Ok(Launch {
            // Logs of earlier versions call it `errand`.
            kind: match text("kind").or_else(|| text("errand")).ok_or_else(|| wrong("kind"))?.as_str() {
                "directive" => ThreadKind::Directive,
                "prompt" => ThreadKind::Prompt,
                _ => return Err(wrong("kind")),
            },
            prompt: need("directive")?,
            project: need("project")?.into(),
            parent: text("parent_id").map(ThreadId::known),
            inputs: map("inputs"),
            provider: need("provider")?,
            model: Model {
                id: model["id"].as_str().ok_or_else(|| wrong("model"))?.to_owned(),
                options: options(&model["options"]),
                ..Model::default()
            },
            context_window: json["context_window"].as_u64().ok_or_else(|| wrong("context_window"))?,
            unpriced: json["unpriced"] == true,
            limits: ThreadLimits::from_json(&json["limits"])?,
            capabilities: Capabilities::from_json(&json["capabilities"])?,
            outputs: list("outputs"),
            hooks: list("hooks"),
            prompt_messages: of_prompt.unwrap_or(messages.len()).min(messages.len()),
            origins: json["origins"].clone(),
            prompt_hash: text("prompt_hash"),
            messages,
            tools: map("tools"),
            skills: skills.ok_or_else(|| wrong("skills"))?,
            continuation: text("continuation"),
            continuation_of: text("continuation_of").map(ThreadId::known),
            forked_from: fork_point(&json["forked_from"]),
            context: json["context"].clone(),
            capped: list("capped"),
            notes: list("notes"),
        })
    }
}

fn fork_point(json: &Json) -> Option<ForkPoint> {
    let turn = u32::try_from(json["turn"].as_u64()?).ok()?;
    Some(ForkPoint { thread: ThreadId::known(json["thread_id"].as_str()?), turn })
}

/// How a model is to be asked, as [`ModelOptions::to_json`] writes it.
fn options(json: &Json) -> ModelOptions {
    let number = |name: &str| -> Option<Number> { json.get(name)?.as_number().cloned() };
    ModelOptions {
        temperature: number("temperature"),
        max_output_tokens: number("maxOutputTokens"),
        top_p: number("topP"),
        top_k: number("topK"),
        frequency_penalty: number("frequencyPenalty"),
        presence_penalty: number("presencePenalty"),
        seed: number("seed"),
        stop_sequences: json["stopSequences"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Json::as_str)
            .map(str::to_owned)
            .collect(),
        allow_multiple_tool_calls: json["allowMultipleToolCalls"].as_bool(),
        additional_properties: json["additionalProperties"].as_object().cloned().unwrap_or_default(),
        extra: Map::new(),
    }
}
