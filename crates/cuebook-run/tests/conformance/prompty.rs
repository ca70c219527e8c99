//! Prompty's vectors about runs: agents, the turn engine, replay. All others are run by the tests of crate `cuebook`.

mod agent;
mod own;
mod replay;
mod turn;

use std::path::Path;

use cuebook::chat::{Message, Role};
use serde_json::Value as Json;

use crate::board::{Board, vectors};

/// Contracts whose vectors the tests of crate `cuebook` run. Its runner fails on a contract that it does not know, as this one does:
/// so each vector is run by exactly one of the two.
const ELSEWHERE: [&str; 6] =
    ["LoadConformance", "Renderer", "Parser", "WireConformance", "Processor", "DiscoveryConformance"];

/// What runs a vector. It returns what the vector expects and it is unknown the meaning of.
type Run = fn(&Json) -> Result<Vec<String>, String>;

/// Runs every vector of the contract `TurnConformance`.
pub fn run(folder: &Path) -> Board {
    let mut board = Board::new("prompty", &[]);
    let vectors = vectors(folder);
    let mut here = 0;
    for entry in &vectors {
        let text = |name: &str| entry[name].as_str().unwrap_or_default();
        let vector = &entry["vector"];
        let (table, run): (_, Run) = match (text("contract"), text("operation")) {
            ("TurnConformance", "run") => ("agent", agent::run),
            ("TurnConformance", "runTurn") => ("turn", turn::run),
            ("TurnConformance", "replay") => ("replay", replay::run),
            (contract, _) if ELSEWHERE.contains(&contract) => continue,
            _ => ("unknown", |_| Err("nobody knows this operation".into())),
        };
        here += 1;
        // A case of a form that the runner does not know must not take the others with it.
        let outcome = std::panic::catch_unwind(|| run(vector));
        let outcome = outcome.unwrap_or_else(|_| Err("the runner gave up on it".into()));
        if let Ok(unknown) = &outcome {
            for key in unknown {
                board.later(&format!("{table}, what is expected as {key}"), "nobody knows what that means");
            }
        }
        board.note(table, vector["name"].as_str().unwrap(), outcome.map(|_| ()));
    }
    println!(
        "prompty: of {} vectors {here} are run here, and {} by the tests of crate cuebook",
        vectors.len(),
        vectors.len() - here
    );
    board
}

#[test]
fn vectors_of_our_own_in_the_same_form() {
    let mut board = Board::new("own", &[]);
    for vector in own::agents() {
        let unknown = agent::run(&vector).and_then(|unknown| match unknown.is_empty() {
            true => Ok(()),
            false => Err(format!("nobody knows {unknown:?}")),
        });
        board.note("agent", vector["name"].as_str().unwrap(), unknown);
    }
    for vector in own::replays() {
        board.note("replay", vector["name"].as_str().unwrap(), replay::run(&vector).map(|_| ()));
    }
    board.finish();
}

/// Messages as vectors write them: the content is a text, or a list of parts.
fn messages(list: &Json) -> Vec<Message> {
    let message = |reported: &Json| {
        let role = Role::named(reported["role"].as_str().unwrap_or("user"));
        let mut message = Message::text(role, text_of(&reported["content"]));
        message.metadata = reported["metadata"].as_object().cloned().unwrap_or_default();
        message
    };
    list.as_array().into_iter().flatten().map(message).collect()
}

/// The text of a content: itself, or that of its parts.
fn text_of(content: &Json) -> String {
    match content {
        Json::String(text) => text.clone(),
        Json::Array(parts) => {
            let text =
                |part: &Json| part["value"].as_str().or(part["text"].as_str()).unwrap_or_default().to_owned();
            parts.iter().map(text).collect()
        }
        Json::Null => String::new(),
        other => other.to_string(),
    }
}
