//! The session of an editor: `session.jsonl`, one event per line.
//!
//! Positions are a line and a column in UTF-16 units, counted from the end of the file before the session. The author makes typing
//! mistakes and takes them back.

use std::error::Error;
use std::time::Duration;

use serde_json::Value as Json;

const SESSION: &str = include_str!("session.jsonl");

/// A line and a column.
pub type At = (usize, usize);

/// What the author or the editor does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Goes to a prompt, or to a partial that other prompts include.
    File { is_shared: bool },
    /// Writes a text.
    Insert(String, At),
    /// Removes what is between two places.
    Delete(At, At),
    /// Does nothing for a while.
    Pause(Duration),
    /// Asks for completions.
    Complete(At),
    /// Asks what is known of a word.
    Hover(At),
}

/// The events of the session.
pub fn events() -> Result<Vec<Event>, Box<dyn Error>> {
    SESSION
        .lines()
        .enumerate()
        .map(|(line, text)| event(text).ok_or(line + 1))
        .collect::<Result<_, _>>()
        .map_err(|line| format!("session.jsonl:{line}: this is no event").into())
}

fn event(line: &str) -> Option<Event> {
    let json: Json = serde_json::from_str(line).ok()?;
    let number = |value: &Json| usize::try_from(value.as_u64()?).ok();
    let at = |value: &Json, from: usize| Some((number(&value[from])?, number(&value[from + 1])?));
    let (name, value) = json.as_object()?.iter().next()?;
    Some(match name.as_str() {
        "file" => Event::File { is_shared: value == "shared" },
        "insert" => Event::Insert(value.as_str()?.to_owned(), at(&json["at"], 0)?),
        "delete" => Event::Delete(at(value, 0)?, at(value, 2)?),
        "pause" => Event::Pause(Duration::from_millis(value.as_u64()?)),
        "complete" => Event::Complete(at(value, 0)?),
        "hover" => Event::Hover(at(value, 0)?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_session_has_every_kind_of_event_at_places_that_exist() {
        let (mut text, mut kinds) = (String::new(), [0; 6]);
        let place = |text: &str, (line, column): At| {
            let start = text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
            assert!(
                line <= text.matches('\n').count() && start + column <= text.len(),
                "{line}:{column} in {text:?}"
            );
            start + column
        };
        for event in events().unwrap() {
            let kind = match event {
                Event::File { .. } => {
                    text.clear();
                    0
                }
                Event::Insert(new, at) => {
                    let at = place(&text, at);
                    text.insert_str(at, &new);
                    1
                }
                Event::Delete(start, end) => {
                    let range = place(&text, start)..place(&text, end);
                    text.replace_range(range, "");
                    2
                }
                Event::Pause(_) => 3,
                Event::Complete(at) => {
                    place(&text, at);
                    4
                }
                Event::Hover(at) => {
                    place(&text, at);
                    5
                }
            };
            kinds[kind] += 1;
        }
        assert!(kinds[0] == 2 && kinds[1] >= 300 && kinds[2..].iter().all(|count| *count >= 5), "{kinds:?}");
    }
}
