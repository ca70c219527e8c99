//! Shapes of what threads leave behind: many threads, and a long log.

use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};
use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::{Engine, ExecuteRequest, Ignore};
use serde_json::json;

use super::shape::{Project, Shape, words};
use crate::threads::DIRECTIVE;

pub fn shapes() -> Vec<Shape> {
    vec![
        Shape::new("many threads", "thread", 400, |project, size| {
            run(project, size, 0)?;
            words("thread list")
        }),
        Shape::new("a long log", "thread", 400, |project, size| {
            let id = run(project, 1, size)?;
            Ok(vec!["thread".to_owned(), "show".to_owned(), id])
        }),
    ]
}

/// Runs threads with so many turns each, and gives the id of the last one.
fn run(project: &Project, threads: usize, turns: usize) -> Result<String, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let script = Script::answer(move |asked| {
        let messages = asked.body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
        let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
        let call =
            json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "true"}});
        match turn >= turns {
            true => Reply::call("r", "directive_return", json!({"greeting": "Hello"})),
            false => Reply::call(format!("c{turn}"), "rye_execute", call),
        }
        .usage(1, 1)
    })
    .forget_requests();
    let mock = Mock::start(script).map_err(|error| text(&error))?;
    let spaces = Spaces::new(&project.root(), Some(&project.home()));
    let key = SigningKey::generate().map_err(|error| text(&error))?;
    let now = "2026-02-26T00:00:00Z".parse().map_err(|_| "no moment".to_owned())?;
    Trust::new(&spaces)
        .add(SpaceKind::User, key.public(), "me", Some(&key), now)
        .map_err(|error| text(&error))?;
    let directive =
        DIRECTIVE.replace("turns=\"50\" tokens=\"1000000\"", "turns=\"100000\" tokens=\"100000000\"");
    let purpose =
        Purpose::at("directives/bench/greet.md").ok_or("no purpose").map_err(|error| text(&error))?;
    let directive =
        sign_for(&purpose, "md", directive.as_bytes(), &key, now).map_err(|error| text(&error))?;
    project.write(".ai/directives/bench/greet.md", directive)?;
    let provider = mock.provider_yaml(Api::Anthropic).replace("name: mock\n", "name: anthropic\n");
    let provider = provider.replace("key: MOCK_KEY\n", "");
    project.write("../home/.ai/config/providers/anthropic.yaml", provider)?;
    let engine = Engine::new(spaces);
    let mut last = String::new();
    for number in 0..threads {
        let request = ExecuteRequest::directive("bench/greet").parameter("who", format!("Ann {number}"));
        let answer = engine.answer(&ExecuteRequest { thread: true, ..request }, &Ignore).json;
        match answer["thread_id"].as_str() {
            Some(id) => last = id.to_owned(),
            None => return Err(answer.to_string()),
        }
    }
    Ok(last)
}
