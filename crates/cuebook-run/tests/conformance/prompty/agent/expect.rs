//! What a vector expects of a run, held against it.

use cuebook::Code;
use cuebook::chat::{Message, Role};
use cuebook_agent::{Ended, Halt};
use serde_json::{Value as Json, json};

use super::super::text_of;
use super::{Watch, counted};
use crate::compare;

/// The words of statuses that the vectors know. Others are prose that nothing describes, and are not compared.
const STATUSES: [&str; 2] = ["Starting agent loop", "Injecting steering message"];
/// How the message with a summary begins: in our words, which are those of the description, and in those of the vectors.
const SUMMARIES: [&str; 2] = ["[Context summary:", "[Summary of earlier conversation]"];
/// Checks one thing that is expected; `None` if it is unknown what it means.
pub fn check(
    key: &str,
    expected: &Json,
    (ended, watch, parallel): (&Ended, &Watch, bool),
) -> Option<Result<(), String>> {
    let seen = watch.seen.lock().unwrap();
    let limit =
        matches!(&ended.outcome, Err(halt) if halt.error().is_some_and(|it| it.code() == Code::LimitReached));
    let same = |found: Json| compare::equals(expected, &found);
    Some(match key {
        "result" => match &ended.outcome {
            Ok(result) => same(result.clone()),
            Err(halt) => Err(format!("it stopped: {}", halt.message())),
        },
        "error" => match &ended.outcome {
            Ok(result) => Err(format!("expected {expected}, got the result {result}")),
            Err(halt) => error(expected.as_str().unwrap(), halt),
        },
        "error_reason" => match &ended.outcome {
            Err(halt) => {
                same(halt.error().and_then(|error| error.field("reason")).cloned().unwrap_or_default())
            }
            Ok(_) => Err("there is no error".into()),
        },
        // Where a run comes to its limit, the vectors count the turn that was not begun any more.
        "iterations" => same(json!(ended.turns + u32::from(limit))),
        "total_messages" => {
            let real = ended.conversation.len();
            let other = match open_answer(&ended.outcome) {
                // The description does not tell whether an answer is a message that a guard denied, or whose calls cannot be
                // made. For us the former is none and the latter is one; either way to count will do.
                Some(is_message) => real + 1 - 2 * usize::from(is_message),
                None => real,
            };
            same(json!(counted(real, seen.after_a_round)))
                .or_else(|_| same(json!(counted(other, seen.after_a_round))))
        }
        "tools_executed" => same(json!(seen.ran.len())),
        "denied_tools" => same(json!(seen.denied)),
        "events" => events(expected.as_array().unwrap(), &seen.events, parallel),
        "message_sequence" => sequence(expected.as_array().unwrap(), &ended.conversation),
        "tool_result_message" => one_of_the_results(expected, &ended.conversation),
        "tool_result_messages" | "tool_results" => {
            let results = expected.as_array().into_iter().flatten();
            results.into_iter().try_for_each(|expected| one_of_the_results(expected, &ended.conversation))
        }
        "assistant_tool_calls_message" => {
            let calls = |message: &&Message| message.metadata.contains_key("tool_calls");
            match ended.conversation.iter().find(calls) {
                Some(message) => compare::includes(&plain(expected), &reported(message)),
                None => Err("there is no such message".into()),
            }
        }
        "error_type" => match &ended.outcome {
            Err(halt) => error(expected.as_str().unwrap(), halt),
            Ok(_) => Err("there is no error".into()),
        },
        "summary_contains" => {
            let words = expected.as_str().unwrap();
            let summary = ended.conversation.iter().map(|message| message.texts().collect::<String>());
            let summary = summary.into_iter().find(|text| is_summary(text)).unwrap_or_default();
            summary.contains(words).then_some(()).ok_or_else(|| format!("{summary:?} lacks {words:?}"))
        }
        // What the conversation begins with; without a summary if nothing had to go.
        "trimmed_messages" => match expected.as_array() {
            Some(wanted) => {
                let most = wanted.len().min(ended.conversation.len());
                sequence(wanted, &ended.conversation[..most])
            }
            None => {
                let summary =
                    ended.conversation.iter().any(|message| is_summary(&message.texts().collect::<String>()));
                if summary { Err("messages were dropped".into()) } else { Ok(()) }
            }
        },
        // What Prompty's engine in Rust does instead of what all others do. We do what all others do.
        "rust_expected_error" => match &ended.outcome {
            Ok(_) => Ok(()),
            Err(halt) => Err(format!("it stopped: {}", halt.message())),
        },
        // Calls that were made, by the names of their tools, in the order of their results.
        "tool_execution_order" => {
            let results = ended.conversation.iter().filter(|message| message.role == Role::Tool);
            let names = results.filter_map(|message| message.metadata.get("name").and_then(Json::as_str));
            let ran = |name: &&str| seen.ran.iter().any(|(_, tool, _)| tool == name);
            same(names.filter(ran).collect())
        }
        // Calls by their ids or by the names of their tools.
        _ if key.ends_with("order") => {
            let results = ended.conversation.iter().filter(|message| message.role == Role::Tool);
            let reported =
                |name: &str| results.clone().map(|message| message.metadata[name].clone()).collect();
            same(reported("tool_call_id")).or_else(|_| same(reported("name")))
        }
        "notes" | "description" => Ok(()),
        _ => return None,
    })
}

/// Whether a run stopped over an answer of the model, and whether that is a message of its conversation.
fn open_answer(outcome: &Result<Json, Halt>) -> Option<bool> {
    let error = outcome.as_ref().err()?.error()?;
    match error.code() {
        Code::Refused => (error.field("guard")? == "output").then_some(false),
        Code::NoHandler => Some(true),
        _ => None,
    }
}

/// An error is expected by the name of its class, or by words that its message has.
fn error(expected: &str, halt: &Halt) -> Result<(), String> {
    let code = halt.error().map(cuebook::Error::code);
    let guard = halt.error().is_some_and(|error| error.field("guard").is_some());
    let (classes, words): (&[&str], &[&str]) = match code {
        None => (&["CancelledError"], &["cancel"]),
        Some(Code::Refused) if guard => (&["GuardrailError"], &["guardrail"]),
        Some(Code::Refused) => (&["ValueError"], &["refused"]),
        Some(Code::LimitReached) => (&["RuntimeError"], &[]),
        Some(Code::NoAnswer) => (&["ExecuteError"], &["llm call failed"]),
        Some(Code::NoHandler) => {
            (&["ValueError", "InvokerError"], &["not registered", "no handler", "not found", "unknown tool"])
        }
        Some(_) => (&[], &[]),
    };
    let wanted = expected.to_lowercase();
    let named = |tool: Option<&Json>| tool.and_then(Json::as_str).is_none_or(|tool| expected.contains(tool));
    let about =
        words.iter().any(|word| wanted.contains(word)) && named(halt.error().and_then(|it| it.field("tool")));
    let said = halt.message().to_lowercase().contains(&wanted);
    // A word alone is the name of a class.
    let same = if expected.contains(' ') { said || about } else { classes.contains(&expected) };
    same.then_some(()).ok_or_else(|| format!("expected {expected:?}, got {:?}", halt.message()))
}

fn events(expected: &[Json], found: &[Json], parallel: bool) -> Result<(), String> {
    // A vector about other events leaves out all statuses.
    let with_statuses = expected.iter().any(|event| event["type"] == "status");
    let comparable = |events: &[Json]| {
        let known = |event: &&Json| {
            event["type"] != "status"
                || with_statuses
                    && event["data"]["message"].as_str().is_some_and(|text| STATUSES.contains(&text))
        };
        let mut events: Vec<Json> = events.iter().filter(known).cloned().collect();
        if parallel {
            // How calls that run at once begin and end among each other is not determined; beginnings and ends are, each for
            // themselves.
            let of_a_call =
                |event: &Json| event["type"] == "tool_call_start" || event["type"] == "tool_result";
            for round in events.chunk_by_mut(|one, other| of_a_call(one) && of_a_call(other)) {
                round.sort_by_key(|event| event["type"] == "tool_result");
            }
        }
        json!(events)
    };
    compare::includes(&comparable(expected), &comparable(found))
}

fn sequence(expected: &[Json], found: &[Message]) -> Result<(), String> {
    if expected.len() != found.len() {
        let roles: Vec<&str> = found.iter().map(|message| message.role.as_str()).collect();
        return Err(format!("expected {} messages, got {roles:?}", expected.len()));
    }
    for (index, (wanted, message)) in expected.iter().zip(found).enumerate() {
        let text: String = message.texts().collect();
        // Description and vectors part over the role and the words of a summary; that it stands here is the same.
        if is_summary(&text_of(&wanted["content"])) && is_summary(&text) {
            continue;
        }
        compare::includes(&plain(wanted), &reported(message))
            .map_err(|why| format!("message {index}: {why}"))?;
    }
    Ok(())
}

fn is_summary(text: &str) -> bool {
    SUMMARIES.iter().any(|opening| text.starts_with(opening))
}

/// A message as a vector writes it, with its content as one text.
fn plain(message: &Json) -> Json {
    let mut message = message.clone();
    message["content"] = json!(text_of(&message["content"]));
    message
}

/// A message of ours in the same form.
fn reported(message: &Message) -> Json {
    let text: String = message.texts().collect();
    json!({"role": message.role.as_str(), "content": text, "metadata": message.metadata})
}

fn one_of_the_results(expected: &Json, conversation: &[Message]) -> Result<(), String> {
    let id = expected.pointer("/metadata/tool_call_id").or(expected.get("tool_call_id"));
    let message = conversation.iter().find(|message| {
        message.role == Role::Tool && id.is_none_or(|id| message.metadata.get("tool_call_id") == Some(id))
    });
    let message = message.ok_or("there is no such message")?;
    let content = expected.get("content").or(expected.get("result")).unwrap_or(&Json::Null);
    let text: String = message.texts().collect();
    let role = expected.get("role").cloned().unwrap_or_else(|| json!("tool"));
    let found = json!({"role": message.role.as_str(), "content": text});
    compare::equals(&json!({"role": role, "content": text_of(content)}), &found)?;
    // An empty text is a part all the same.
    let kind = |part: &Json| part.get("type").or(part.get("kind")).cloned();
    let wanted: Option<Vec<Option<Json>>> = content.as_array().map(|parts| parts.iter().map(kind).collect());
    let kinds: Vec<Option<Json>> = message.parts.iter().map(|part| Some(json!(part.kind()))).collect();
    match wanted {
        Some(wanted) if wanted != kinds => {
            Err(format!("expected {content}, got parts of the kinds {kinds:?}"))
        }
        _ => Ok(()),
    }
}
