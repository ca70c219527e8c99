//! The turn engine: what the journal of a run says.

use cuebook::chat::reply::{Answer, Reply, ToolCall};
use cuebook_agent::{
    Agent, Cancel, Guard, Journal, ModelFailure, Performed, Permit, Portability, ProviderResource,
};
use serde_json::{Value as Json, json};

use super::messages;
use crate::compare;

/// Runs a vector. Every key that it expects is known here.
pub fn run(vector: &Json) -> Result<Vec<String>, String> {
    let input = &vector["input"];
    let start = messages(&input["messages"]);
    let journal = Journal::new(&start);
    let script = input["model"].as_array().cloned().unwrap_or_default();
    let cancel = Cancel::new();
    if input["cancelBeforeRun"] == true {
        cancel.cancel();
    }
    let denied = input["denyTools"].as_array().cloned().unwrap_or_default();
    let guard = Guard::new().tool(|name, _| match denied.contains(&json!(name)) {
        true => Permit::Denied("not permitted".into()),
        false => Permit::Allowed,
    });
    let mut agent = Agent::new(|question| {
        let step =
            script.get(question.turn as usize).ok_or_else(|| ModelFailure::accident("the script is over"))?;
        Ok(answer(step, &journal))
    })
    .guard(guard)
    .cancel(&cancel)
    .concurrent(false)
    .observe(&journal)
    .after("remember", |_| Ok(()));
    let outputs = &input["toolOutputs"];
    for call in script.iter().flat_map(calls) {
        agent = agent.tool_with(call.name, |call, _| match outputs[&call.id].as_str() {
            Some(text) => Performed::answer(text),
            None => Performed::failed(&call.name, "it has no output"),
        });
    }
    let ended = agent.run(start);

    let snapshots = journal.snapshots();
    let commit = journal.commit();
    let prefixes: Vec<usize> = snapshots.iter().map(|snapshot| snapshot.stable).collect();
    let portability: Vec<&str> = snapshots.iter().map(|snapshot| snapshot.portability.as_str()).collect();
    let found = json!({
        "status": journal.status().as_str(),
        "output": ended.outcome.ok(),
        "iterations": ended.turns,
        "snapshots": snapshots.len(),
        "snapshotStablePrefixes": prefixes,
        "snapshotPortability": portability,
        "toolResults": journal.results().len(),
        "toolResultOrder": journal.results(),
        "eventKinds": journal.events(),
        "commitPortability": commit.as_ref().map(|commit| commit.portability.as_str()),
        "delegatedState": commit.as_ref().map(|commit| commit.held.len()),
    });
    compare::includes(&vector["expected"], &found)?;
    Ok(Vec::new())
}

fn calls(step: &Json) -> Vec<ToolCall> {
    let call = |call: &Json| ToolCall {
        id: call["id"].as_str().unwrap().to_owned(),
        name: call["name"].as_str().unwrap().to_owned(),
        arguments: call["arguments"].to_string(),
    };
    step["tools"].as_array().into_iter().flatten().map(call).collect()
}

fn answer(step: &Json, journal: &Journal) -> Answer {
    if let Some(portability) = step["nextPortability"].as_str().and_then(Portability::named) {
        let held = step["delegatedState"].as_array().into_iter().flatten();
        let held = held.filter_map(|held| ProviderResource::from_json(held.as_object()?)).collect();
        journal.held(portability, held);
    }
    let calls = calls(step);
    let reply = match (calls.is_empty(), &step["output"]) {
        (false, _) => Reply::ToolCalls { calls, text: step["assistant"].as_str().map(str::to_owned) },
        (true, Json::String(text)) => Reply::Text(text.clone()),
        (true, value) => Reply::Structured { value: value.clone(), raw: value.to_string() },
    };
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
