//! Makes a conversation fit: what was said long ago goes, and a summary of it stays.
//!
//! Sizes are counted in characters, not in tokens: that needs no model's vocabulary, is the same for all providers, and errs on
//! the safe side for most texts. The messages of the system that stand at the beginning never go, nor does the last other one. A
//! message that calls tools goes together with the results of its calls, because providers refuse the one without the others.

use cuebook::chat::{Message, Part, Role};
use serde_json::Value as Json;

/// Characters that a message has besides its role and its text.
const DELIMITERS: usize = 4;
/// What a picture, a sound or a document counts.
const NOT_TEXT: usize = 200;
/// The least number of messages that stay, besides those of the system at the beginning.
const LEAST: usize = 1;
/// The most characters of a line of the summary.
const LONGEST_LINE: usize = 200;
/// The most characters of a summary.
const LONGEST_SUMMARY: usize = 4000;
/// How the message with the summary begins and ends.
const OPENING: &str = "[Context summary: ";
const CLOSING: &str = "]";

/// The size of messages, in characters.
pub fn size<'m>(messages: impl IntoIterator<Item = &'m Message>) -> usize {
    messages.into_iter().map(size_of).sum()
}

fn size_of(message: &Message) -> usize {
    let parts: usize = message
        .parts
        .iter()
        .map(|part| match part {
            Part::Text { value, .. } => value.chars().count(),
            _ => NOT_TEXT,
        })
        .sum();
    let calls = message.metadata.get("tool_calls").map_or(0, |calls| calls.to_string().chars().count());
    message.role.as_str().chars().count() + DELIMITERS + parts + calls
}

/// Takes the oldest messages out of a conversation that is larger than `budget` characters, and puts what `summary` makes of them
/// in their place. Returns how many went; none if it fits, or if nothing may go.
pub fn fit(
    conversation: &mut Vec<Message>,
    budget: usize,
    summary: impl FnOnce(&[Message]) -> String,
) -> usize {
    let mut total = size(&*conversation);
    if total <= budget {
        return 0;
    }
    // A twentieth of the budget is kept free for the summary.
    let reserve = budget.div_ceil(20).min(5000);
    let first = conversation.iter().take_while(|message| of_the_system(message)).count();
    let mut end = first;
    while total > budget - reserve {
        let rest = conversation.get(end..).unwrap_or_default();
        let group = group(rest);
        if rest.len() < group + LEAST {
            break;
        }
        total -= size(rest.iter().take(group));
        end += group;
    }
    if end == first {
        return 0;
    }
    let removed: Vec<Message> = conversation.drain(first..end).collect();
    let text = cut(&summary(&removed), LONGEST_SUMMARY.min(reserve.max(LONGEST_LINE)));
    conversation.insert(first, Message::text(Role::User, format!("{OPENING}{text}{CLOSING}")));
    removed.len()
}

fn of_the_system(message: &Message) -> bool {
    matches!(message.role, Role::System | Role::Developer)
}

/// How many messages belong to the first one: the results of the calls that it makes.
fn group(messages: &[Message]) -> usize {
    1 + messages.iter().skip(1).take_while(|message| message.role == Role::Tool).count()
}

/// Sums up messages without a model: what was asked, what was answered, which tools were called. A summary among them is taken
/// over as it is.
pub fn summarise(messages: &[Message]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        let text: String = message.texts().collect();
        match message.role {
            Role::User => match text.strip_prefix(OPENING) {
                Some(before) => lines.push(before.strip_suffix(CLOSING).unwrap_or(before).to_owned()),
                None => lines.push(format!("User asked: {}", cut(&text, LONGEST_LINE))),
            },
            Role::Assistant => {
                if !text.is_empty() {
                    lines.push(format!("Assistant: {}", cut(&text, LONGEST_LINE)));
                }
                let calls = message.metadata.get("tool_calls").and_then(Json::as_array);
                let names: Vec<&str> = calls.into_iter().flatten().filter_map(name_of).collect();
                if !names.is_empty() {
                    lines.push(format!("  Called tools: {}", names.join(", ")));
                }
            }
            // What a tool answered shows in what the model made of it.
            _ => {}
        }
    }
    cut(&lines.join("\n"), LONGEST_SUMMARY)
}

fn name_of(call: &Json) -> Option<&str> {
    call.pointer("/function/name").or_else(|| call.get("name"))?.as_str()
}

/// What to ask a model that is to sum up messages.
pub fn summary_request(messages: &[Message]) -> Vec<Message> {
    let reported: Vec<String> = messages
        .iter()
        .map(|message| {
            let text: String = message.texts().collect();
            let calls = message.metadata.get("tool_calls").map(Json::to_string).unwrap_or_default();
            format!("{}: {text}{calls}", message.role)
        })
        .collect();
    let task = "Sum up the conversation that follows, so that another agent can continue it: the task, the findings and decisions, and what is \
     left to do. Keep names, numbers and identifiers. Answer with the summary alone.";
    vec![Message::text(Role::System, task), Message::text(Role::User, reported.join("\n\n"))]
}

/// At most so many characters of a text, with a sign that there were more.
fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn talk() -> Vec<Message> {
        let mut calls = Message::text(Role::Assistant, "");
        calls.metadata.insert(
            "tool_calls".into(),
            json!([{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]),
        );
        vec![
            Message::text(Role::System, "s".repeat(20)),
            Message::text(Role::User, "first ".repeat(20)),
            calls,
            Message::text(Role::Tool, "found".repeat(20)),
            Message::text(Role::Assistant, "answer ".repeat(60)),
            Message::text(Role::User, "second"),
        ]
    }

    fn texts(messages: &[Message]) -> Vec<String> {
        messages.iter().map(|message| message.texts().collect()).collect()
    }

    #[test]
    fn a_size_counts_role_delimiters_text_pictures_and_calls() {
        let mut message = Message::text(Role::User, "grüße");
        assert_eq!(size([&message]), 4 + 4 + 5);
        message.parts.push(Part::Image(cuebook::chat::Media::default()));
        assert_eq!(size([&message]), 4 + 4 + 5 + 200);
        message.metadata.insert("tool_calls".into(), json!([{"a": 1}]));
        assert_eq!(size([&message]), 4 + 4 + 5 + 200 + r#"[{"a":1}]"#.len());
    }

    #[test]
    fn a_conversation_that_fits_is_unchanged() {
        let mut conversation = talk();
        let budget = size(&conversation);
        assert_eq!(fit(&mut conversation, budget, |_| unreachable!()), 0);
        assert_eq!(conversation, talk());
    }

    #[test]
    fn a_summary_after_the_system_replaces_the_oldest() {
        let mut conversation = talk();
        let removed = fit(&mut conversation, size(&talk()) - 10, summarise);
        assert_eq!(removed, 1);
        assert_eq!(conversation[0], talk()[0]);
        assert_eq!(conversation[1].role, Role::User);
        assert!(texts(&conversation)[1].starts_with("[Context summary: User asked: first first"));
        assert_eq!(conversation[2..], talk()[2..]);
    }

    #[test]
    fn results_go_with_the_message_that_called_for_them() {
        let mut conversation = talk();
        let budget = size(&talk()[4..]) + size(&talk()[..1]) + 130;
        assert_eq!(fit(&mut conversation, budget, summarise), 3);
        assert_eq!(conversation[2..], talk()[4..]);
        assert!(texts(&conversation)[1].contains("  Called tools: look"));
    }

    #[test]
    fn the_last_one_stays_whatever_the_budget_is() {
        for budget in 0..1000 {
            let mut conversation = talk();
            fit(&mut conversation, budget, summarise);
            assert_eq!(conversation[0], talk()[0], "{budget}");
            assert_eq!(conversation.last(), talk().last(), "{budget}");
        }
    }

    #[test]
    fn a_summary_of_a_summary_is_not_nested() {
        let before = Message::text(Role::User, "[Context summary: User asked: one]");
        let after = Message::text(Role::User, "two");
        assert_eq!(summarise(&[before, after]), "User asked: one\nUser asked: two");
    }

    #[test]
    fn lines_and_summaries_are_cut_between_characters() {
        let long = Message::text(Role::User, "ß".repeat(500));
        let line = summarise(std::slice::from_ref(&long));
        assert_eq!(line.chars().count(), "User asked: ".len() + 200);
        assert!(line.ends_with('…'));
        assert_eq!(summarise(&vec![long; 100]).chars().count(), 4000);
    }
}
