//! Replay: the lines of a run.
//!
//! These vectors do not say what the world does: whether the model calls a tool, whether it may, and whether the tool succeeds
//! stands only in the lines that they expect. So the world is read out of those: which calls the model makes in each round, what
//! a permission and a tool answer to each. What the run makes of that world (which steps there are, in which order, in which round,
//! how often, and how it ends) is ours, and all lines are compared.

use cuebook::chat::reply::{Answer, Reply, ToolCall};
use cuebook::chat::{Message, Role};
use cuebook_agent::{Agent, Guard, Performed, Permit, Replay};
use serde_json::{Value as Json, json};

/// One call, and what the world does about it.
struct Happens {
    round: usize,
    call: ToolCall,
    permitted: bool,
    succeeds: bool,
}

pub fn run(vector: &Json) -> Result<Vec<String>, String> {
    let input = &vector["input"];
    let expected: Vec<&str> =
        vector["expected"].as_array().unwrap().iter().filter_map(Json::as_str).collect();
    let world = world(&expected);
    let find = |id: &Json| world.iter().find(|happens| json!(happens.call.id) == *id);
    let replay = Replay::new(input["sessionId"].as_str().unwrap(), input["turnId"].as_str().unwrap());
    let mut agent = Agent::new(|question| {
        let turn = question.turn as usize;
        let calls: Vec<ToolCall> = world
            .iter()
            .filter(|happens| happens.round == turn)
            .map(|happens| happens.call.clone())
            .collect();
        let reply = match calls.is_empty() {
            true => Reply::Text("done".into()),
            false => Reply::ToolCalls { calls, text: None },
        };
        Ok(Answer {
            reply,
            thinking: None,
            usage: None,
            finish: None,
            model: None,
            id: None,
            provider_state: Default::default(),
        })
    })
    .concurrent(false)
    .guard(Guard::new().tool(|_, arguments| match find(&arguments["id"]).is_some_and(|it| it.permitted) {
        true => Permit::Allowed,
        false => Permit::Denied("no".into()),
    }))
    .observe(&replay);
    for happens in &world {
        agent = agent.tool_with(happens.call.name.clone(), |call, _| match find(&json!(call.id)) {
            Some(Happens { succeeds: true, .. }) => Performed::answer("ok"),
            Some(_) => Performed::failed(&call.name, "it does"),
            None => Performed::failed(&call.name, "nobody called it"),
        });
    }
    if let Some(most) = input["maxIterations"].as_u64() {
        agent = agent.most_turns(u32::try_from(most).unwrap());
    }
    agent.run(vec![Message::text(Role::User, input["inputs"].to_string())]);

    let found = replay.lines();
    for (index, wanted) in expected.iter().enumerate() {
        let line = found.get(index).map_or("nothing", String::as_str);
        if !same(wanted, line) {
            return Err(format!("line {index}: expected {wanted}, got {line}"));
        }
    }
    if found.len() != expected.len() {
        return Err(format!("more than expected: {:?}", &found[expected.len()..]));
    }
    Ok(Vec::new())
}

/// Lines are the same, but for how much an error says about itself: no description tells that.
fn same(wanted: &str, line: &str) -> bool {
    let error = wanted.starts_with("turn:error:") && (line.starts_with(wanted) || wanted.starts_with(line));
    error || wanted == line
}

fn world(lines: &[&str]) -> Vec<Happens> {
    let mut world: Vec<Happens> = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split(':').collect();
        match words[..] {
            ["turn", "permission_requested", round, id] => {
                let id = id.strip_suffix("-permission").unwrap_or(id).to_owned();
                let arguments = json!({"id": id}).to_string();
                let call = ToolCall { id, name: String::new(), arguments };
                let round = round.parse().unwrap();
                world.push(Happens { round, call, permitted: true, succeeds: true });
            }
            ["turn", "permission_completed", _, allowed] => {
                world.last_mut().unwrap().permitted = allowed == "true";
            }
            ["turn", "tool_result", _, name, success, ..] => {
                let last = world.last_mut().unwrap();
                last.call.name = name.to_owned();
                last.succeeds = success == "true";
            }
            _ => {}
        }
    }
    world
}
