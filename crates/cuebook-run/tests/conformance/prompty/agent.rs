//! Agents: a scripted model, functions for tools, and what comes of them.

mod expect;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use cuebook::chat::reply::{Answer, Reply, ToolCall, parse_arguments, read};
use cuebook::chat::{Api, Message, Role};
use cuebook_agent::{Agent, Cancel, Ended, Guard, ModelFailure, Observer, Performed, Permit, Steering, Step};
use serde_json::{Map, Value as Json, json};

use super::{messages, text_of};
use crate::compare;

/// How the result begins of a call whose arguments are no JSON. What follows is the parser's word for it.
const NO_JSON: &str = "Error: Invalid JSON in tool arguments";

/// How many messages the vectors count where there are `real` ones. They count one too many from the first result of a tool on:
/// `message_sequence` beside `total_messages`, and the notes of the vectors, list the real ones. It is always one, however many
/// rounds and results there are, and none without a round: this is that rule, so that the numbers are still ours.
fn counted(real: usize, after_a_round: bool) -> usize {
    real + usize::from(after_a_round)
}

/// Runs a vector. Returns the keys of what it expects that is unknown.
pub fn run(vector: &Json) -> Result<Vec<String>, String> {
    let input = &vector["input"];
    let script = Script { steps: steps(&vector["sequence"]), outputs: outputs(vector) };
    let world = Fixture::new(input);
    let watch = Watch::default();
    let mut agent = Agent::new(|question| script.answer(question.turn))
        .inputs(input["parent_inputs"].as_object().cloned().unwrap_or_default())
        .guard(guard(&input["guardrails"]))
        .steering(&world.steering)
        .cancel(&world.cancel)
        .pause(|_| std::time::Duration::ZERO)
        .concurrent(input["parallel_tool_calls"] == true)
        .observe(&world)
        .observe(&watch)
        .on_event(|event| watch.event(event.to_json()));
    for (name, what) in input["tool_functions"].as_object().into_iter().flatten() {
        let (script, watch) = (&script, &watch);
        agent = agent.tool_with(name, move |call, arguments| {
            watch.ran(call, arguments);
            script.result(call, what)
        });
    }
    for tool in input["tools"].as_array().into_iter().flatten() {
        for (parameter, binding) in tool["bindings"].as_object().into_iter().flatten() {
            let from = binding.as_str().or(binding["input"].as_str()).unwrap();
            agent = agent.bind(tool["name"].as_str().unwrap(), parameter, from);
        }
    }
    if let Some(budget) = budget(&input["context_budget"]) {
        agent = agent.budget(budget);
    }
    let number = |names: [&str; 2]| names.iter().find_map(|name| input[*name].as_u64());
    if let Some(most) = number(["max_iterations", "maxIterations"]) {
        agent = agent.most_turns(u32::try_from(most).unwrap());
    }
    if let Some(attempts) = number(["max_llm_retries", "maxLlmRetries"]) {
        agent = agent.attempts(u32::try_from(attempts).unwrap());
    }
    if let Some(compaction) = compaction(input) {
        agent = agent.compaction(move |_| compaction.clone());
    }
    let ended = agent.run(messages(&input["messages"]));
    drop(agent);

    script.hold(&ended, &watch)?;
    let mut unknown = Vec::new();
    for (key, expected) in vector["expected"].as_object().into_iter().flatten() {
        match expect::check(key, expected, (&ended, &watch, input["parallel_tool_calls"] == true)) {
            Some(outcome) => outcome.map_err(|why| format!("{key}: {why}"))?,
            None => unknown.push(key.clone()),
        }
    }
    if let (Err(halt), true) = (&ended.outcome, vector["expected"]["error"].is_null()) {
        return Err(format!("it stopped: {}", halt.message()));
    }
    Ok(unknown)
}

/// The steps of a script: a list, or one that is repeated.
fn steps(sequence: &Json) -> Vec<Json> {
    match sequence {
        Json::Array(steps) => steps.clone(),
        Json::Object(step) if step.contains_key("llm_response") => vec![sequence.clone()],
        Json::Object(parts) => parts.values().flat_map(steps).collect(),
        _ => Vec::new(),
    }
}

/// Whether the prompt asks for JSON.
fn outputs(vector: &Json) -> bool {
    let input = &vector["input"];
    let some = |value: &Json| match value {
        Json::Array(list) => !list.is_empty(),
        Json::Object(map) => !map.is_empty(),
        other => *other == true,
    };
    // A result that is no text can be nothing else.
    let result = &vector["expected"]["result"];
    some(&input["outputs"]) || some(&input["has_outputs"]) || result.is_object() || result.is_array()
}

/// What the model says and tools answer, by turn.
struct Script {
    steps: Vec<Json>,
    outputs: bool,
}

impl Script {
    fn answer(&self, turn: u32) -> Result<Answer, ModelFailure> {
        let over = || ModelFailure { again: false, ..ModelFailure::accident("the script is over") };
        if let Some(step) = self.steps.get(turn as usize) {
            return self.of_step(step);
        }
        // A script that ends with calls goes on with them: that is how a run comes to its limit.
        let answer = self.of_step(self.steps.last().ok_or_else(over)?)?;
        match answer.reply {
            Reply::ToolCalls { .. } => Ok(answer),
            _ => Err(over()),
        }
    }

    fn of_step(&self, step: &Json) -> Result<Answer, ModelFailure> {
        let error = ["llm_error", "error"].iter().find_map(|name| step[*name].as_str());
        if let Some(error) = error {
            return Err(ModelFailure::accident(error));
        }
        let response = &step["llm_response"];
        let api = match response {
            _ if response.get("choices").is_some() => Api::OpenAiChat,
            _ if response.get("output").is_some() => Api::OpenAiResponses,
            _ if response.get("candidates").is_some() => Api::Gemini,
            _ => Api::Anthropic,
        };
        let answer = read(api, response, self.outputs)?;
        let calls: &[ToolCall] = match &answer.reply {
            Reply::ToolCalls { calls, .. } => calls,
            _ => &[],
        };
        let found: Vec<Json> = calls
            .iter()
            .map(|call| {
                let arguments = parse_arguments(&call.arguments).map_or(json!(call.arguments), Json::Object);
                json!({"id": call.id, "name": call.name, "arguments": arguments})
            })
            .collect();
        let expected = match step.get("expected_tool_calls") {
            None => json!(found),
            Some(Json::Null) => json!([]),
            Some(calls) => calls.clone(),
        };
        compare::includes(&expected, &json!(found))
            .map_err(|why| ModelFailure { again: false, ..ModelFailure::accident(why) })?;
        Ok(answer)
    }

    fn results(&self) -> impl Iterator<Item = &Json> {
        self.steps.iter().flat_map(|step| step["tool_results"].as_array().into_iter().flatten())
    }

    /// What a tool answers. A text that tells of a failure of this tool is what a run makes of one: the tool then fails.
    fn result(&self, call: &ToolCall, what: &Json) -> Performed {
        let reported = self.results().find(|result| result["tool_call_id"] == call.id);
        let Some(reported) = reported else {
            // Without a result there is only a sentence about the tool.
            let what = text_of(what);
            let fails = ["raises", "throws"].iter().find_map(|verb| what.strip_prefix(verb));
            return match fails {
                Some(why) => Performed::failed(&call.name, why.trim()),
                None => Performed::answer(what),
            };
        };
        let error = ["error", "exception", "raises"].iter().find_map(|name| reported[*name].as_str());
        let text = text_of(&reported["result"]);
        let failed = text.strip_prefix(&format!("Error: Tool '{}' failed: ", call.name));
        // What a run makes of a failure differs between runtimes; a vector may have the words of another.
        let raises = ["raises", "throws"].iter().any(|verb| text_of(what).starts_with(verb));
        match error.or(failed) {
            None if raises => Performed::failure(text),
            Some(why) => Performed::failed(&call.name, why),
            None => Performed::answer(text),
        }
    }

    /// Whether the model was reported what the script says, and tools got what it says.
    fn hold(&self, ended: &Ended, watch: &Watch) -> Result<(), String> {
        for result in self.results().filter(|result| result["result"].is_string()) {
            let (id, wanted) = (&result["tool_call_id"], text_of(&result["result"]));
            let message =
                ended.conversation.iter().find(|message| message.metadata.get("tool_call_id") == Some(id));
            let Some(message) = message else {
                // A run that stops tells less.
                if ended.outcome.is_err() {
                    continue;
                }
                return Err(format!("nothing was told about {id}"));
            };
            let text: String = message.texts().collect();
            if text != wanted && !(text.starts_with(NO_JSON) && wanted.starts_with(NO_JSON)) {
                return Err(format!("about {id} the model was told {text:?}, expected {wanted:?}"));
            }
        }
        for (turn, step) in self.steps.iter().enumerate() {
            for (name, wanted) in step["expected_execution_args"].as_object().into_iter().flatten() {
                let seen = watch.seen.lock().unwrap();
                let ran = seen.ran.iter().filter(|(at, tool, _)| *at == turn && tool == name);
                let given: Vec<&Json> = ran.map(|(_, _, arguments)| arguments).collect();
                if !given.iter().any(|given| compare::equals(wanted, given).is_ok()) {
                    return Err(format!("{name} was given {given:?}, expected {wanted}"));
                }
            }
        }
        Ok(())
    }
}

fn guard(rules: &Json) -> Guard<'_> {
    let verdict = |rule: &Json| match rule["action"] == "deny" || rule["allowed"] == false {
        true => Permit::Denied(rule["reason"].as_str().unwrap_or_default().to_owned()),
        false => Permit::Allowed,
    };
    let tool = &rules["tool"];
    Guard::new().input(move |_| verdict(&rules["input"])).output(move |_| verdict(&rules["output"])).tool(
        move |name, _| {
            let denied = tool["deny_tools"].as_array().is_some_and(|denied| denied.contains(&json!(name)));
            match denied {
                true => Permit::Denied(tool["reason"].as_str().unwrap_or_default().to_owned()),
                false => verdict(tool),
            }
        },
    )
}

/// A number, or an object that has one.
fn budget(budget: &Json) -> Option<usize> {
    let within = |name: &str| {
        let mut members = budget.as_object()?.iter();
        members.find_map(|(key, value)| value.as_u64().filter(|_| key.contains(name)))
    };
    let number =
        budget.as_u64().or_else(|| within("char")).or_else(|| within("max")).or_else(|| within(""))?;
    usize::try_from(number).ok()
}

/// What sums up what has to go, if the vector has a function for that.
fn compaction(input: &Json) -> Option<Result<String, String>> {
    let given = [&input["compaction"], &input["context_budget"]["compaction"]];
    let given = given.into_iter().find(|given| !given.is_null())?;
    let text = |names: [&str; 3]| names.iter().find_map(|name| given[*name].as_str());
    match (
        text(["error", "fails", "failure"]),
        given.as_str().or_else(|| text(["summary", "result", "response"])),
    ) {
        (Some(error), _) => Some(Err(error.to_owned())),
        (None, Some(summary)) => Some(Ok(summary.to_owned())),
        (None, None) => None,
    }
}

/// A caller that cancels and says things when it is time.
struct Fixture {
    cancel: Cancel,
    steering: Steering,
    cancel_at: Option<Moment>,
    says: Vec<(u32, Message)>,
    turns: AtomicU32,
    tools: AtomicUsize,
}

#[derive(PartialEq)]
enum Moment {
    BeforeTurn(u32),
    AfterTool(usize),
}

impl Fixture {
    fn new(input: &Json) -> Fixture {
        let at = input["cancel"]["cancelled_at"].as_str();
        let at = at.or((input["cancel"]["cancelled"] == true).then_some("before_iteration"));
        let says = input["steering"]["messages"].as_array().into_iter().flatten().map(|said| {
            let text = said["text"].as_str().map(str::to_owned).unwrap_or_else(|| text_of(&said["content"]));
            let role = Role::named(said["role"].as_str().unwrap_or("user"));
            let before = said["inject_before_iteration"].as_u64().unwrap_or(1);
            (u32::try_from(before).unwrap(), Message::text(role, text))
        });
        let world = Fixture {
            cancel: Cancel::new(),
            steering: Steering::new(),
            cancel_at: at.map(moment),
            says: says.collect(),
            turns: AtomicU32::new(0),
            tools: AtomicUsize::new(0),
        };
        world.turn_begins(1);
        world
    }

    fn turn_begins(&self, turn: u32) {
        if self.cancel_at == Some(Moment::BeforeTurn(turn)) {
            self.cancel.cancel();
        }
        for (_, message) in self.says.iter().filter(|(before, _)| (*before).max(1) == turn) {
            self.steering.send_message(message.clone());
        }
    }
}

/// `before_iteration`, `before_iteration_2`, `after_tool_0`.
fn moment(at: &str) -> Moment {
    let number = at.rsplit('_').next().and_then(|last| last.parse::<u32>().ok());
    match (at.contains("tool"), at.starts_with("after")) {
        (true, true) => Moment::AfterTool(number.unwrap_or(0) as usize),
        (true, false) => Moment::AfterTool((number.unwrap_or(1) as usize).saturating_sub(1)),
        (false, true) => Moment::BeforeTurn(number.unwrap_or(1) + 1),
        (false, false) => Moment::BeforeTurn(number.unwrap_or(1)),
    }
}

impl Observer for Fixture {
    fn step(&self, step: &Step<'_>) {
        match step {
            Step::Answered { .. } => drop(self.turns.fetch_add(1, Ordering::Relaxed)),
            Step::PerformedCall { .. } => {
                let number = self.tools.fetch_add(1, Ordering::Relaxed);
                if self.cancel_at == Some(Moment::AfterTool(number)) {
                    self.cancel.cancel();
                }
            }
            Step::Updated { .. } => self.turn_begins(self.turns.load(Ordering::Relaxed) + 1),
            _ => {}
        }
    }
}

/// What was seen of a run.
#[derive(Default)]
struct Watch {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    events: Vec<Json>,
    /// Turn, tool and arguments of each call that was made.
    ran: Vec<(usize, String, Json)>,
    denied: Vec<String>,
    turns: usize,
    /// Whether results of tools are in the conversation.
    after_a_round: bool,
}

impl Watch {
    fn ran(&self, call: &ToolCall, arguments: &Map<String, Json>) {
        let mut seen = self.seen.lock().unwrap();
        let turn = seen.turns.saturating_sub(1);
        seen.ran.push((turn, call.name.clone(), json!(arguments)));
    }

    fn event(&self, mut event: Json) {
        let mut seen = self.seen.lock().unwrap();
        if let Some(real) = event["data"]["message_count"].as_u64() {
            event["data"]["message_count"] = json!(counted(real as usize, seen.after_a_round));
        }
        seen.events.push(event);
    }
}

impl Observer for Watch {
    fn step(&self, step: &Step<'_>) {
        let mut seen = self.seen.lock().unwrap();
        match step {
            Step::Answered { .. } => seen.turns += 1,
            Step::Permitted { call, permit: Permit::Denied(_) } => seen.denied.push(call.name.clone()),
            Step::Updated { .. } => seen.after_a_round = true,
            _ => {}
        }
    }
}
