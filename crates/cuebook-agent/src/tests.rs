//! How the loop behaves, for any ports.

mod agent;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use cuebook::chat::reply::Chunk;
use cuebook::{Code, Error};

use cuebook::chat::reply::{Answer, Reply, ToolCall};
use cuebook::chat::{Message, Role};
use serde_json::{Map, Value as Json, json};

use super::*;

fn answer(reply: Reply) -> Answer {
    Answer {
        reply,
        thinking: None,
        usage: None,
        finish: None,
        model: None,
        id: None,
        provider_state: Default::default(),
    }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn calls(calls: &[ToolCall]) -> Answer {
    answer(Reply::ToolCalls { calls: calls.to_vec(), text: None })
}

fn question() -> Vec<Message> {
    vec![Message::text(Role::System, "be kind"), Message::text(Role::User, "well?")]
}

/// A model that makes these calls, and then says what it got last.
fn calling<'a>(wanted: Vec<ToolCall>) -> Agent<'a> {
    Agent::new(move |question| match question.turn {
        0 => Ok(calls(&wanted)),
        _ => Ok(answer(Reply::Text(last(question.messages)))),
    })
}

fn last(messages: &[Message]) -> String {
    messages.last().map(|message| message.texts().collect()).unwrap_or_default()
}

fn texts(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| message.texts().collect()).collect()
}

fn kinds<'a>(seen: &'a Mutex<Vec<Json>>, agent: Agent<'a>) -> Agent<'a> {
    agent.on_event(|event| seen.lock().unwrap().push(event.to_json()))
}

fn names(seen: &Mutex<Vec<Json>>) -> Vec<String> {
    seen.lock().unwrap().iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

/// Ports that halt where they are asked to, and count how far they came.
struct Halting {
    at: String,
    concurrent: bool,
    steps: Mutex<Vec<String>>,
}

impl Halting {
    fn at(&self, place: &str) -> Result<(), Halt> {
        self.steps.lock().unwrap().push(place.to_owned());
        match place == self.at {
            true => Err(Halt::Cancelled(place.to_owned())),
            false => Ok(()),
        }
    }
}

impl Ports for Halting {
    fn note(&self, step: &Step<'_>) -> Result<(), Halt> {
        let debug = format!("{step:?}");
        self.at(debug.split([' ', '{', '(']).next().unwrap())
    }

    fn barrier(&self) -> Result<(), Halt> {
        self.at("barrier")
    }

    fn before(&self, _turn: u32, _conversation: &mut Vec<Message>) -> Result<(), Halt> {
        self.at("before")
    }

    fn ask(&self, turn: u32, _conversation: &[Message]) -> Result<Answer, Halt> {
        self.at("ask")?;
        Ok(match turn {
            0 => calls(&[call("a", "look", "{}"), call("b", "look", "{}")]),
            _ => answer(Reply::Text("done".into())),
        })
    }

    fn review(&self, _turn: u32, _message: &Message) -> Result<(), Halt> {
        self.at("review")
    }

    fn accept(&self, _calls: &[ToolCall]) -> Result<(), Halt> {
        self.at("accept")
    }

    fn permit(&self, _call: &ToolCall, _arguments: &Map<String, Json>) -> Permit {
        Permit::Allowed
    }

    fn perform(&self, _call: &ToolCall, _arguments: &Map<String, Json>) -> Performed {
        Performed::answer("seen")
    }

    fn between(&self) -> Result<(), Halt> {
        self.at("between")
    }

    fn settle(&self, turn: u32, said: &Reply) -> Result<AfterAnswer, Halt> {
        self.at("settle")?;
        Ok(match turn {
            2 => AfterAnswer::Again("say more".into()),
            _ => AfterAnswer::Done(said.to_json()),
        })
    }

    fn concurrent(&self) -> bool {
        self.concurrent
    }
}

/// The steps of a run that halts at a place, and how it ended.
fn halting(at: &str, concurrent: bool) -> (Vec<String>, Ended) {
    let ports = Halting { at: at.to_owned(), concurrent, steps: Mutex::default() };
    let ended = run(&ports, Start { conversation: question(), ..Start::default() });
    (ports.steps.into_inner().unwrap(), ended)
}

#[test]
fn a_halt_at_any_port_stops_there_and_is_reported() {
    for concurrent in [false, true] {
        let (way, ended) = halting("nowhere", concurrent);
        assert_eq!(ended.outcome.unwrap(), json!("done"));
        let mut places: Vec<&String> = way.iter().collect();
        places.sort();
        places.dedup();
        assert!(places.len() >= 20, "{places:?}");
        for place in places {
            let (mut found, ended) = halting(place, concurrent);
            assert!(matches!(ended.outcome, Err(Halt::Cancelled(at)) if at == *place), "{place}");
            // It came to the first time of that place, then it said that it stops.
            let mut wanted: Vec<String> = way.iter().take_while(|at| *at != place).cloned().collect();
            wanted.push(place.clone());
            assert_eq!(found.pop().as_deref(), Some("Stopped"), "{place}");
            // Results of calls that were made are noted and reported even then.
            if found.len() > wanted.len() {
                let mut more = found.drain(wanted.len()..);
                assert!(more.all(|step| step == "ToolReturned" || step == "PerformedCall"), "{place}");
            }
            assert_eq!(found, wanted, "{place}");
        }
    }
}

#[test]
fn everything_is_durable_before_something_that_cannot_be_undone() {
    let (way, _) = halting("nowhere", false);
    for (index, step) in way.iter().enumerate() {
        match step.as_str() {
            "ask" => assert_eq!(way[index - 1], "barrier"),
            "PerformedCall" => assert_eq!(way[index - 1], "barrier"),
            "Done" => assert_eq!(way[index + 1], "barrier"),
            _ => {}
        }
    }
}

#[test]
fn calls_run_at_once_and_results_keep_their_order() {
    let everybody = Barrier::new(8);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let wanted: Vec<ToolCall> =
        names.iter().map(|id| call(id, "meet", &format!(r#"{{"id": "{id}"}}"#))).collect();
    let agent = calling(wanted).tool("meet", |arguments| {
        // None passes before all are here.
        everybody.wait();
        let id = arguments["id"].as_str().unwrap_or_default();
        std::thread::sleep(Duration::from_millis(10 * u64::from(b'h' - id.as_bytes()[0])));
        Ok::<_, String>(id.to_owned())
    });
    let ended = agent.run(question());
    assert_eq!(texts(&ended.conversation)[3..11], names);
    assert_eq!(ended.outcome.unwrap(), json!("h"));
}

#[test]
fn more_calls_than_threads_are_all_made_once() {
    let made = AtomicUsize::new(0);
    let wanted: Vec<ToolCall> = (0..500).map(|id| call(&id.to_string(), "count", "{}")).collect();
    let agent = calling(wanted).tool("count", |_| {
        made.fetch_add(1, Ordering::Relaxed);
        Ok::<_, String>("one")
    });
    let agent = {
        let refused = agent.run(question()).outcome.unwrap_err();
        assert!(refused.message().contains("500 calls in one answer") && made.load(Ordering::Relaxed) == 0);
        agent.most_calls(500)
    };
    let ended = agent.run(question());
    assert_eq!(made.load(Ordering::Relaxed), 500);
    assert_eq!(ended.conversation.len(), 2 + 1 + 500 + 1);
    let ids: Vec<String> = ended.conversation[3..503]
        .iter()
        .map(|message| message.metadata["tool_call_id"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ids, (0..500).map(|id| id.to_string()).collect::<Vec<_>>());
}

#[test]
fn a_tool_that_panics_has_failed_and_nothing_else_has() {
    for concurrent in [true, false] {
        let seen = Mutex::default();
        let agent = calling(vec![call("a", "break", "{}"), call("b", "work", "{}")])
            .concurrent(concurrent)
            .tool("break", |_| -> Result<String, String> { panic!("the disk is {}", "full") })
            .tool("work", |_| Ok::<_, String>("fine"));
        let agent = kinds(&seen, agent);
        let ended = agent.run(question());
        drop(agent);
        assert_eq!(
            texts(&ended.conversation)[3..5],
            ["Error: Tool 'break' failed: the disk is full", "fine"]
        );
        assert_eq!(ended.conversation[3].metadata["is_error"], true);
        assert_eq!(ended.outcome.unwrap(), json!("fine"));
        assert!(!names(&seen).iter().any(|name| name == "error"), "the run goes on, so its result says it");
    }
}

#[test]
fn a_failed_tool_is_reported_in_words() {
    let agent =
        calling(vec![call("a", "divide", r#"{"by": 0}"#)]).tool("divide", |arguments| match arguments["by"]
            .as_i64()
        {
            Some(0) | None => Err("nothing can be divided by zero"),
            Some(by) => Ok((10 / by).to_string()),
        });
    let ended = agent.run(question());
    assert_eq!(ended.outcome.unwrap(), json!("Error: Tool 'divide' failed: nothing can be divided by zero"));
}

#[test]
fn a_denied_call_is_reported_and_never_made() {
    let seen = Mutex::default();
    let made = AtomicUsize::new(0);
    let agent = calling(vec![call("a", "wipe", "{}"), call("b", "look", "{}")])
        .tool("wipe", |_| {
            made.fetch_add(1, Ordering::Relaxed);
            Ok::<_, String>("gone")
        })
        .tool("look", |_| Ok::<_, String>("all there"))
        .guard(Guard::new().tool(|name, _| match name {
            "wipe" => Permit::Denied("too dangerous".into()),
            _ => Permit::Allowed,
        }));
    let ended = kinds(&seen, agent).run(question());
    assert_eq!(made.load(Ordering::Relaxed), 0);
    assert_eq!(texts(&ended.conversation)[3..5], ["Tool denied by guardrail: too dangerous", "all there"]);
    assert_eq!(ended.outcome.unwrap(), json!("all there"));
    let wanted = [
        "status",
        "tool_call_start",
        "tool_call_start",
        "tool_result",
        "tool_result",
        "messages_updated",
        "done",
    ];
    assert_eq!(names(&seen), wanted);
}

#[test]
fn the_model_gets_an_error_for_arguments_that_are_not_json() {
    let made = AtomicUsize::new(0);
    let wanted = vec![
        call("a", "look", "go on"),
        call("b", "look", "```json\n{\"at\": \"it\",}\n```"),
        call("c", "look", "[1]"),
    ];
    let agent = calling(wanted).tool("look", |arguments| {
        made.fetch_add(1, Ordering::Relaxed);
        Ok::<_, String>(format!("looked at {}", arguments["at"]))
    });
    let ended = agent.run(question());
    let reported = texts(&ended.conversation);
    assert!(reported[3].starts_with("Error: Invalid JSON in tool arguments: "), "{}", reported[3]);
    assert_eq!(reported[4], r#"looked at "it""#);
    assert!(reported[5].starts_with("Error: Invalid JSON in tool arguments: "), "{}", reported[5]);
    assert_eq!(made.load(Ordering::Relaxed), 1);
    assert!(ended.outcome.is_ok());
}

#[test]
fn a_run_goes_on_with_the_calls_that_were_not_made() {
    let made = Mutex::new(Vec::new());
    let wanted = [call("a", "look", "{}"), call("b", "look", "{}"), call("c", "look", "{}")];
    let agent = calling(wanted.to_vec()).tool_with("look", |call, _| {
        made.lock().unwrap().push(call.id.clone());
        Performed::answer(format!("new {}", call.id))
    });
    let mut conversation = question();
    conversation.push(assistant_message(&calls(&wanted).reply));
    let settled = HashMap::from([("b".to_owned(), tool_message(&wanted[1], "old b", false))]);
    let start =
        Start { known: conversation.len(), conversation, turns: 1, pending: wanted.to_vec(), settled };
    let ended = agent.concurrent(false).resume(start);
    assert_eq!(texts(&ended.conversation)[3..], ["new a", "old b", "new c", "new c"]);
    assert_eq!(*made.lock().unwrap(), ["a", "c"]);
    assert_eq!(ended.turns, 2);
}

#[test]
fn a_replaced_prompt_precedes_all_messages() {
    let agent = calling(vec![call("a", "open", "{}"), call("b", "look", "{}")])
        .tool_with("open", |_, _| Performed {
            prompt: Some((
                2,
                vec![
                    Message::text(Role::System, "be kind, and precise"),
                    Message::text(Role::System, "the section"),
                    Message::text(Role::User, "well?"),
                ],
            )),
            ..Performed::answer("opened")
        })
        .tool("look", |_| Ok::<_, String>("seen"));
    let ended = agent.run(question());
    let reported = texts(&ended.conversation);
    assert_eq!(reported, ["be kind, and precise", "the section", "well?", "", "opened", "seen", "seen"]);
}

#[test]
fn calls_that_replace_the_prompt_come_one_after_another() {
    let opened = Mutex::new(vec!["be kind".to_owned(), "well?".to_owned()]);
    let wanted = vec![
        call("a", "look", "{}"),
        call("b", "open", r#"{"wait": 30, "section": "one"}"#),
        call("c", "open", r#"{"wait": 0, "section": "two"}"#),
    ];
    let agent = calling(wanted).tool("look", |_| Ok::<_, String>("seen")).alone("open").tool_with(
        "open",
        |_, arguments| {
            std::thread::sleep(Duration::from_millis(arguments["wait"].as_u64().unwrap_or_default()));
            let mut opened = opened.lock().unwrap();
            let replaces = opened.len();
            opened.insert(replaces - 1, arguments["section"].as_str().unwrap_or_default().to_owned());
            let prompt = opened.iter().map(|text| Message::text(Role::System, text)).collect();
            Performed { prompt: Some((replaces, prompt)), ..Performed::answer("opened") }
        },
    );
    let ended = agent.run(question());
    let reported = texts(&ended.conversation);
    assert_eq!(reported, ["be kind", "one", "two", "well?", "", "seen", "opened", "opened", "opened"]);
}

#[test]
fn a_call_can_end_the_run_with_its_result() {
    let agent =
        calling(vec![call("a", "return", r#"{"city": "Oslo"}"#)]).tool_with("return", |_, arguments| {
            Performed { ends: Some(json!(arguments)), ..Performed::answer("thanks") }
        });
    let ended = agent.run(question());
    assert_eq!(ended.outcome.unwrap(), json!({"city": "Oslo"}));
    assert_eq!(ended.turns, 1);
}
