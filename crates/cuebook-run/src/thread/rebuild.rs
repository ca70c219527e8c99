//! A thread from its log alone: what was said, what it used, and where it stopped.

use std::collections::HashMap;
use std::time::Duration;

use cuebook::chat::reply::ToolCall;
use cuebook::chat::{Message, Role};
use cuebook::sections::VisibilityOverrides;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::Value as Json;

use super::OpenHook;
use super::hooks::HooksSoFar;
use super::launch::Launch;
use super::origins::MessageSource;
use super::{Event, Kind, Money, ThreadId};
use crate::store::Cost;
use crate::turn::{Start, tool_message};

/// A thread as its log tells it.
#[derive(Debug)]
pub struct Rebuilt {
    /// What it was started with, with limits that were changed since.
    pub launch: Launch,
    /// Where it goes on.
    pub start: Start,
    /// What it used.
    pub cost: Cost,
    /// How often the model was reminded.
    pub nudges: u32,
    /// Calls that had begun and whose end was not noted, by their ids. They are not made again.
    pub unknown: Vec<ToolCall>,
    /// What hooks had begun to do without a noted end.
    pub open_hooks: Vec<OpenHook>,
    /// Sections that were opened.
    pub opened: VisibilityOverrides,
    /// The ids of the skills that were opened.
    pub opened_skills: Vec<String>,
    /// The files that results of tools came from, with the origin of each piece, by the ids of the calls.
    pub tool_sources: HashMap<String, Json>,
    /// How many messages of the conversation are the prompt.
    pub prompt_messages: usize,
    /// Where each message of the conversation came from.
    pub sources: Vec<MessageSource>,
    /// Where each piece of the prompt came from, as the log keeps it.
    pub origins: Json,
    /// The tokens of so many of its first messages: what was counted with the last answer. What came since is counted when it
    /// goes on.
    pub(crate) counted: Option<(u64, usize)>,
    /// The log says that the conversation is full, and the model was not asked since: another directive is to continue it, when
    /// these and all other hooks have heard of it.
    pub(crate) full: Option<HooksSoFar>,
}

/// Rebuilds a thread from its events.
///
/// # Errors
///
/// [`Code::CannotResume`] if the log does not begin with the start of a thread, or cannot be understood.
pub fn rebuild(id: &ThreadId, events: &[Event]) -> Result<Rebuilt> {
    let Some(first) = events.first().filter(|event| event.kind == Kind::Started) else {
        return Err(cannot(id, 1, "a log starts with the start of the thread"));
    };
    let mut launch = Launch::from_json(&first.payload)?;
    let mut rebuilt = Rebuilt {
        start: Start { conversation: launch.messages.clone(), ..Start::default() },
        cost: Cost::default(),
        nudges: 0,
        unknown: Vec::new(),
        open_hooks: Vec::new(),
        opened: VisibilityOverrides::new(),
        opened_skills: super::skills::open_at_start(&launch),
        tool_sources: HashMap::new(),
        prompt_messages: launch.prompt_messages,
        sources: first_sources(&launch),
        origins: launch.origins.clone(),
        counted: None,
        full: None,
        launch: launch.clone(),
    };
    // The calls of the last answer, what is known of each, and whether it had begun.
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut results: HashMap<String, Message> = HashMap::new();
    let mut begun: Vec<String> = Vec::new();
    let mut unpriced = launch.unpriced;
    for event in events {
        let payload = &event.payload;
        let wrong = |what: &str| cannot(id, event.seq, what);
        if let Some(heard) = &mut rebuilt.full {
            heard.note(event.kind, payload);
        }
        match event.kind {
            Kind::CognitionIn => {
                let new = payload["messages"].as_array().ok_or_else(|| wrong("it has no messages"))?;
                settle(&mut rebuilt.start.conversation, &mut calls, &mut results);
                rebuilt.sources.resize(rebuilt.start.conversation.len(), MessageSource::Tool);
                begun.clear();
                let mut before = Vec::new();
                if let Some(from) = payload["from"].as_u64() {
                    let from = usize::try_from(from).unwrap_or(usize::MAX);
                    let from = from.min(rebuilt.start.conversation.len());
                    let sources = rebuilt.sources.split_off(from);
                    before = rebuilt.start.conversation.split_off(from).into_iter().zip(sources).collect();
                    rebuilt.counted = rebuilt.counted.filter(|(_, messages)| *messages <= from);
                }
                rebuilt.full = None;
                // A message that was there before keeps its source.
                let mut before = before.into_iter();
                for message in new {
                    let message = Message::from_json(message).map_err(|why| wrong(&why))?;
                    let same = before.next().filter(|(old, _)| old.to_json() == message.to_json());
                    rebuilt.sources.push(same.map_or(MessageSource::Event(event.seq), |(_, source)| source));
                    rebuilt.start.conversation.push(message);
                }
            }
            Kind::CognitionOut => {
                let message = Message::from_json(&payload["message"]).map_err(|why| wrong(&why))?;
                calls = calls_of(&message);
                rebuilt.start.conversation.push(message);
                rebuilt.sources.push(MessageSource::Model(event.seq));
                rebuilt.start.turns += 1;
                rebuilt.counted = tokens_of(payload).map(|tokens| (tokens, rebuilt.start.conversation.len()));
            }
            Kind::ContextFull => rebuilt.full = Some(HooksSoFar::begun()),
            Kind::ToolStart => begun.extend(payload["call_id"].as_str().map(str::to_owned)),
            Kind::ToolResult | Kind::ToolUnknown | Kind::Denied => {
                let call_id = payload["call_id"].as_str().unwrap_or_default();
                let Some(call) = calls.iter().find(|call| call.id == call_id) else { continue };
                let text = payload["result"].as_str().unwrap_or_default();
                let is_error = payload["is_error"].as_bool().unwrap_or(false);
                results.insert(call_id.to_owned(), tool_message(call, text, is_error));
                if let Some(source) = payload.get("source") {
                    rebuilt.opened_skills.extend(source["skill"].as_str().map(str::to_owned));
                    rebuilt.tool_sources.insert(call_id.to_owned(), source["origins"].clone());
                }
            }
            Kind::HookStart => rebuilt.open_hooks.push(OpenHook::of(payload)),
            Kind::Hook | Kind::HookUnknown => {
                let this = OpenHook::of(payload);
                if let Some(open) = rebuilt.open_hooks.iter().position(|open| open.is_same(&this)) {
                    rebuilt.open_hooks.remove(open);
                }
            }
            Kind::Nudge => {
                rebuilt.nudges += 1;
                // It is repeated with the next message to the model, unless the thread stopped before that.
                if let Some(text) = payload["text"].as_str() {
                    rebuilt.start.conversation.push(Message::text(Role::User, text));
                    rebuilt.sources.push(MessageSource::Reminder(event.seq));
                }
            }
            Kind::Disclosed => {
                for path in payload["opened"].as_array().into_iter().flatten() {
                    let path: Vec<String> = path
                        .as_array()
                        .into_iter()
                        .flatten()
                        .filter_map(Json::as_str)
                        .map(str::to_owned)
                        .collect();
                    rebuilt.opened.set(&path, cuebook::prompt::Visibility::Full);
                }
                let prompt: Result<Vec<Message>, String> =
                    payload["messages"].as_array().into_iter().flatten().map(Message::from_json).collect();
                let replaced = usize::try_from(payload["replaces"].as_u64().unwrap_or(0)).unwrap_or(0);
                let prompt = prompt.map_err(|why| wrong(&why))?;
                rebuilt.prompt_messages = prompt.len();
                let conversation = &mut rebuilt.start.conversation;
                let end = replaced.min(conversation.len());
                let sources = (0..prompt.len()).map(MessageSource::Prompt);
                drop(rebuilt.sources.splice(..end.min(rebuilt.sources.len()), sources));
                rebuilt.origins = payload["origins"].clone();
                drop(conversation.splice(..end, prompt));
                rebuilt.counted = None;
            }
            Kind::Resumed => {
                if let Some(limits) = payload.get("limits") {
                    launch.limits = crate::policy::limits::ThreadLimits::from_json(limits)?;
                }
                if let Some(model) = payload["model"].as_str() {
                    launch.model.id = model.to_owned();
                }
                if let Some(provider) = payload["provider"].as_str() {
                    launch.provider = provider.to_owned();
                }
                launch.unpriced = payload["unpriced"].as_bool().unwrap_or(launch.unpriced);
                unpriced |= launch.unpriced;
                if let Some(window) = payload["context_window"].as_u64() {
                    launch.context_window = window;
                }
            }
            _ => {}
        }
        if let Some(cost) = payload.get("cost") {
            rebuilt.cost = cost_of(cost);
        }
    }
    for call in calls.iter().filter(|call| !results.contains_key(&call.id)) {
        match begun.contains(&call.id) {
            true => rebuilt.unknown.push(call.clone()),
            false => rebuilt.start.pending.push(call.clone()),
        }
    }
    // Results stand in the order of the calls, so those behind a call without one wait for it.
    if rebuilt.start.pending.is_empty() && rebuilt.unknown.is_empty() {
        settle(&mut rebuilt.start.conversation, &mut calls, &mut results);
    } else {
        rebuilt.start.settled = results;
        rebuilt.start.pending = calls;
    }
    rebuilt.sources.resize(rebuilt.start.conversation.len(), MessageSource::Tool);
    rebuilt.start.known = rebuilt.start.conversation.len();
    rebuilt.cost.unpriced |= unpriced;
    rebuilt.launch = launch;
    Ok(rebuilt)
}

/// Rebuilds a thread as it was when the model got the request of a turn, counted from 1.
///
/// # Errors
///
/// As [`rebuild`], and an error if there is no such turn.
pub fn rebuild_turn(id: &ThreadId, events: &[Event], turn: u32) -> Result<Rebuilt> {
    let is_request = |event: &Event| event.kind == Kind::CognitionIn;
    let last = events.iter().rposition(|event| is_request(event) && event.payload["turn"] == turn);
    if let Some(last) = last {
        return rebuild(id, &events[..=last]);
    }
    let turns =
        events.iter().filter(|event| is_request(event)).filter_map(|event| event.payload["turn"].as_u64());
    let message = format!("`{id}` has no turn {turn}");
    let hint = match turns.max() {
        Some(1) => "it has one turn".to_owned(),
        Some(most) => format!("it has the turns 1 to {most}"),
        None => "its model was not asked yet".to_owned(),
    };
    Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)))
}

/// The sources of the messages that a thread starts with.
pub(super) fn first_sources(launch: &Launch) -> Vec<MessageSource> {
    let source = |index: usize| match index < launch.prompt_messages {
        true => MessageSource::Prompt(index),
        false => MessageSource::Earlier,
    };
    (0..launch.messages.len()).map(source).collect()
}

/// What was read for an answer, and the answer: as the provider counted it, or as it was counted here where that does not.
fn tokens_of(payload: &Json) -> Option<u64> {
    let (usage, guess) = (&payload["usage"], &payload["estimated"]);
    let number = |guess: &Json, said: &Json| guess.as_u64().or_else(|| said.as_u64());
    let input = number(&guess["input"], &usage["inputTokens"]).filter(|input| *input > 0)?;
    Some(input.saturating_add(number(&guess["output"], &usage["outputTokens"]).unwrap_or(0)))
}

/// Puts the results of the last calls into the conversation, in the order of the calls.
fn settle(
    conversation: &mut Vec<Message>,
    calls: &mut Vec<ToolCall>,
    results: &mut HashMap<String, Message>,
) {
    conversation.extend(calls.drain(..).filter_map(|call| results.remove(&call.id)));
}

/// The calls that a message of the model makes.
pub(crate) fn calls_of(message: &Message) -> Vec<ToolCall> {
    let calls = message.metadata.get("tool_calls").and_then(Json::as_array);
    let call = |call: &Json| {
        Some(ToolCall {
            id: call["id"].as_str()?.to_owned(),
            name: call["function"]["name"].as_str()?.to_owned(),
            arguments: call["function"]["arguments"].as_str()?.to_owned(),
        })
    };
    calls.into_iter().flatten().filter_map(call).collect()
}

/// A cost as events keep it, to the billionth.
pub(crate) fn cost_of(json: &Json) -> Cost {
    let number = |name: &str| json[name].as_u64().unwrap_or(0);
    Cost {
        turns: u32::try_from(number("turns")).unwrap_or(u32::MAX),
        input_tokens: number("input_tokens"),
        output_tokens: number("output_tokens"),
        estimated: number("estimated_tokens"),
        // The exact figures are there unless another program wrote the event.
        spend: match json["spend_nanos"].as_i64() {
            Some(nanos) => Money::from_nanos(nanos),
            None => Money::from_units(json["spend"].as_f64().unwrap_or(0.0)),
        },
        elapsed: match json["elapsed_micros"].as_u64() {
            Some(micros) => Duration::from_micros(micros),
            None => Duration::try_from_secs_f64(json["elapsed_seconds"].as_f64().unwrap_or(0.0))
                .unwrap_or_default(),
        },
        unpriced: json["spend_known"] == false,
    }
}

fn cannot(id: &ThreadId, seq: u64, why: &str) -> Error {
    let message = format!("`{id}` cannot be rebuilt: event {seq}: {why}");
    let hint = "start the prompt again with the same inputs";
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::CannotResume, message).hint(hint))
}
