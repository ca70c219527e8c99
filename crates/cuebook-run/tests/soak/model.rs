//! A model that does anything: talks, calls, has others run, fails, takes its time, costs more than it should. What it does
//! depends on who asks and how far they are.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cuebook_mock::{Reply, Request, Script};
use serde_json::{Value as Json, json};

use crate::chance::Chance;

#[derive(Clone)]
pub struct Model {
    seed: u64,
    calm: Arc<AtomicBool>,
    complaints: Arc<Mutex<Vec<String>>>,
}

impl Model {
    pub fn new(seed: u64) -> Model {
        Model { seed, calm: Arc::default(), complaints: Arc::default() }
    }

    pub fn script(&self) -> Script {
        let model = self.clone();
        Script::answer(move |request| model.reply(request)).forget_requests()
    }

    /// From now on it does what it is reported.
    pub fn calm(&self) {
        self.calm.store(true, Ordering::SeqCst);
    }

    /// Conversations that no provider would take.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().unwrap().clone()
    }

    fn reply(&self, request: &Request) -> Reply {
        let messages = request.body["messages"].as_array().cloned().unwrap_or_default();
        if let Err(why) = valid(&messages) {
            self.complaints.lock().unwrap().push(format!("{why}: {}", request.body));
        }
        let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
        let who = messages.first().map(Json::to_string).unwrap_or_default();
        let mut chance = Chance::of(self.seed.wrapping_add(turn as u64), &who);
        let calm = self.calm.load(Ordering::SeqCst);
        let reply = match who.contains("You are leaf") {
            true => leaf(turn, &mut chance, calm),
            false => node(turn, &mut chance, calm),
        };
        let input = 10 + chance.below(1500);
        // What was asked for is kept to most of the time.
        let most =
            ["max_completion_tokens", "max_tokens"].iter().find_map(|name| request.body[name].as_u64());
        let most = most.unwrap_or(200).min(400);
        let output = 1 + if chance.percent(10) { chance.below(3 * most) } else { chance.below(most) };
        reply.usage(input, output)
    }
}

fn leaf(turn: usize, chance: &mut Chance, calm: bool) -> Reply {
    let returns = |outputs: Json| Reply::call(format!("r{turn}"), "directive_return", outputs);
    match chance.below(100) {
        _ if calm || turn > 4 => returns(json!({"said": "done"})),
        0..5 => Reply::error(400, "no"),
        5..8 => Reply::hang_up(),
        8..25 => Reply::text("I talk instead of doing anything."),
        25..35 => returns(json!({"said": 3})),
        35..45 => Reply::call(
            format!("x{turn}"),
            "rye_execute",
            json!({"item_type": "tool", "item_id": "rye/bash/bash"}),
        ),
        45..55 => {
            returns(json!({"said": "late"})).first_byte_after(Duration::from_millis(20 + chance.below(200)))
        }
        55..58 => returns(json!({"said": "never heard"})).close_after(40),
        _ => returns(json!({"said": "done"})),
    }
}

fn node(turn: usize, chance: &mut Chance, calm: bool) -> Reply {
    match chance.below(100) {
        _ if calm || turn > 4 => Reply::text("Done."),
        0..4 => Reply::error(400, "no"),
        4..7 => Reply::hang_up(),
        7..50 => {
            let count = 1 + chance.below(3);
            (0..count).fold(Reply::default(), |reply, index| {
                let item = if chance.percent(25) { "demo/node" } else { "demo/leaf" };
                let mut call = json!({
                    "item_type": "directive", "item_id": item, "thread": true,
                    "parameters": {"n": chance.below(u64::MAX).to_string()},
                });
                if chance.percent(30) {
                    call["limit_overrides"] = limits(chance);
                }
                reply.and_call(format!("c{turn}-{index}"), "rye_execute", call)
            })
        }
        50..60 => Reply::call(
            format!("x{turn}"),
            "rye_execute",
            json!({"item_type": "tool", "item_id": "demo/none"}),
        ),
        60..70 => {
            Reply::text("Done at last.").first_byte_after(Duration::from_millis(20 + chance.below(300)))
        }
        70..75 => Reply::text("Broken off in the middle of it.").close_after(60 + chance.below(200) as usize),
        _ => Reply::text("Done."),
    }
}

/// Limits of some kind.
pub fn limits(chance: &mut Chance) -> Json {
    let mut limits = json!({});
    for (name, value) in [
        ("turns", json!(1 + chance.below(5))),
        ("tokens", json!(500 + chance.below(6_000))),
        ("spend", json!(chance.below(60_000) as f64 / 1_000_000.0)),
        ("spawns", json!(chance.below(4))),
        ("depth", json!(chance.below(4))),
        ("duration_seconds", json!(1 + chance.below(3))),
    ] {
        if chance.percent(25) {
            limits[name] = value;
        }
    }
    limits
}

/// A conversation that every provider takes.
fn valid(messages: &[Json]) -> Result<(), String> {
    let mut expected: Vec<String> = Vec::new();
    for message in messages {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if expected.first().map(String::as_str) != Some(id) {
                return Err(format!("the result of {id}, and not of {expected:?}"));
            }
            expected.remove(0);
            continue;
        }
        if !expected.is_empty() {
            return Err(format!("{expected:?} have no result"));
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        expected = calls.map(|call| call["id"].as_str().unwrap_or_default().to_owned()).collect();
    }
    match messages.last() {
        _ if !expected.is_empty() => Err(format!("{expected:?} have no result")),
        Some(last) if last["role"] == "assistant" => Err("the model has the last word".to_owned()),
        Some(_) => Ok(()),
        None => Err("nothing was said".to_owned()),
    }
}
