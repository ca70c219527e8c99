//! Decisions of threads: capabilities, limits, risks, conditions and hooks.

use std::time::Duration;

use cuebook::Code;
use cuebook_run::Money;
use cuebook_run::policy::capability::{Capabilities, expand, token_matches};
use cuebook_run::policy::condition::evaluate;
use cuebook_run::policy::interpolate::interpolate;
use cuebook_run::policy::limits::ThreadLimits;
use cuebook_run::policy::risk::Risks;
use cuebook_run::policy::text_calls::text_calls;
use cuebook_run::policy::tool_result::clean;
use cuebook_run::store::Cost;
use serde_json::{Map, Value as Json, json};

use crate::compare;

/// Runs a case of these groups.
pub fn run(group: &str, case: &Json) -> Result<(), String> {
    let (input, expect) = (&case["input"], &case["expect"]);
    match group {
        "capabilities" => compare::equals(expect, &capabilities(input)),
        "capability_tokens" => compare::equals(expect, &tokens(input)),
        "limits" => limits(input, expect),
        "risk" => compare::equals(expect, &risk(input)),
        "conditions" => compare::equals(expect, &json!(evaluate(&input["condition"], &input["doc"]))),
        "hook_interpolation" => compare::equals(expect, &interpolate(&input["template"], &input["context"])),
        "tool_result" => compare::equals(expect, &clean(input)),
        _ => compare::equals(expect, &calls(input)),
    }
}

/// Whether these groups have it.
pub fn is_ours(group: &str) -> bool {
    let groups = "capabilities capability_tokens limits risk conditions hook_interpolation tool_result text_tool_calls";
    groups.split(' ').any(|ours| ours == group)
}

fn texts(list: &Json) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Json::as_str).map(str::to_owned).collect()
}

fn capabilities(input: &Json) -> Json {
    if let Some(action) = input["action"].as_array() {
        let [action, item_type, id] =
            [0, 1, 2].map(|at| action.get(at).and_then(Json::as_str).unwrap_or_default());
        let denied = Capabilities::new(texts(&input["capabilities"])).check(action, item_type, id);
        return denied.err().map_or(Json::Null, |denied| denied.to_json());
    }
    let parent = input["parent"].as_array().map(|_| Capabilities::new(texts(&input["parent"])));
    Capabilities::new(texts(&input["permissions"])).attenuate(parent.as_ref()).to_json()
}

fn tokens(input: &Json) -> Json {
    match (input["granted"].as_str(), input["required"].as_str()) {
        (Some(granted), Some(required)) => json!(token_matches(granted, required)),
        _ => json!(expand(texts(&input["caps"]).iter().map(String::as_str))),
    }
}

fn limits(input: &Json, expect: &Json) -> Result<(), String> {
    // A thread of ours has all limits; what a case leaves out is no limit.
    let some = |json: &Json| match json {
        Json::Object(map) => {
            ThreadLimits::unlimited().with(map, "the case").map(Some).map_err(|error| error.to_string())
        }
        _ => Ok(None),
    };
    if input["limits"].is_object() {
        let limits = some(&input["limits"])?.unwrap();
        let number = |name: &str| input["cost"][name].as_f64().unwrap_or_default();
        let cost = Cost {
            turns: number("turns") as u32,
            input_tokens: number("input_tokens") as u64,
            output_tokens: number("output_tokens") as u64,
            spend: Money::from_units(number("spend")),
            elapsed: Duration::from_secs_f64(number("elapsed_seconds")),
            ..Cost::default()
        };
        let reached = limits.check(&cost).map_or(Json::Null, |reached| reached.to_json());
        return compare::equals(expect, &reached);
    }
    let map = |name: &str| input[name].as_object().cloned().unwrap_or_else(Map::new);
    let directive = input["directive"].as_object();
    let parent = some(&input["parent"])?;
    match ThreadLimits::resolve(&ThreadLimits::defaults(), directive, &map("overrides"), parent.as_ref()) {
        Ok(limits) => {
            // The limit on calls is ours: the reference has none.
            let mut limits = limits.to_json();
            limits.as_object_mut().unwrap().remove("calls");
            compare::equals(expect, &limits)
        }
        Err(error) if error.code() == Code::LimitReached => {
            // The reference goes one step further and refuses then.
            let depth = expect["depth"].as_i64().filter(|depth| *depth < 0);
            let wanted = depth.map(|depth| format!("Depth limit exhausted (resolved depth={depth})"));
            let same = wanted.as_deref() == Some(error.diagnostic().message.as_str());
            same.then_some(()).ok_or_else(|| format!("{error}, wanted {expect}"))
        }
        Err(error) => {
            let message = error.diagnostic().message.replace("limits: calls, ", "limits: ");
            let found = format!("ValueError: {message}");
            compare::equals(expect, &json!({"raises": found}))
        }
    }
}

fn risk(input: &Json) -> Json {
    // A risk is acknowledged by its name, alone or with a reason.
    let named = |risk: &Json| risk["risk"].as_str().or(risk.as_str()).unwrap_or_default().to_owned();
    let acknowledged: Vec<String> =
        input["acknowledged"].as_array().into_iter().flatten().map(named).collect();
    let capabilities = Capabilities::new(texts(&input["capabilities"]));
    let refused = Risks::builtin().check(&capabilities, &acknowledged).err();
    refused.map_or(Json::Null, |risk| risk.to_json())
}

fn calls(input: &Json) -> Json {
    let text = input["text"].as_str().unwrap_or_default();
    let call = |call: cuebook_run::policy::text_calls::TextCall| json!({"id": call.id, "name": call.name, "input": call.input});
    text_calls(text).into_iter().map(call).collect()
}
