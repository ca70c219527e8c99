//! Vectors in Prompty's form for what its description says and the vectors that we have do not show. They are ours.

use serde_json::{Value as Json, json};

fn reported(text: &str) -> Json {
    json!({"choices": [{"message": {"role": "assistant", "content": text, "tool_calls": null}, "finish_reason": "stop"}]})
}

/// An answer with calls: id, tool and arguments.
fn calls(calls: &[(&str, &str, &str)]) -> Json {
    let calls: Vec<Json> = calls
        .iter()
        .map(|(id, name, arguments)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}))
        .collect();
    json!({"choices": [{"message": {"role": "assistant", "content": null, "tool_calls": calls}, "finish_reason": "tool_calls"}]})
}

fn step(response: Json, results: &[(&str, &str)]) -> Json {
    let results: Vec<Json> =
        results.iter().map(|(id, result)| json!({"tool_call_id": id, "result": result})).collect();
    json!({"llm_response": response, "tool_results": results})
}

fn start() -> Json {
    json!([{"role": "system", "content": "You know the tides."}, {"role": "user", "content": "High water in Brest?"}])
}

fn event(kind: &str, data: Json) -> Json {
    json!({"type": kind, "data": data})
}

/// What agents do.
pub fn agents() -> Vec<Json> {
    let functions = json!({"tide": "returns a time", "moon": "returns a phase"});
    let long = "and then the sea came in again ".repeat(20);
    let history: Vec<Json> = (0..6)
        .map(|n| json!({"role": if n % 2 == 0 { "user" } else { "assistant" }, "content": format!("{n}: {long}")}))
        .collect();
    let mut conversation = vec![json!({"role": "system", "content": "You know the tides."})];
    conversation.extend(history.iter().cloned());
    let summed_up = |role: &str| {
        json!([
            conversation[0],
            {"role": role, "content": "[Summary of earlier conversation] whatever it says"},
            history[4],
            history[5],
            {"role": "assistant", "content": "at six"},
        ])
    };
    vec![
        json!({
            "name": "a model that never ends",
            "input": {"messages": start(), "tool_functions": functions},
            "sequence": [step(calls(&[("a", "tide", "{}")]), &[("a", "06:00")])],
            "expected": {"error": "Agent loop exceeded 10 iterations", "iterations": 11},
        }),
        json!({
            "name": "a smaller limit",
            "input": {"messages": start(), "tool_functions": functions, "max_iterations": 2},
            "sequence": {"repeat": step(calls(&[("a", "tide", "{}")]), &[("a", "06:00")])},
            "expected": {"error": "RuntimeError", "iterations": 3},
        }),
        json!({
            "name": "a tool that fails",
            "input": {"messages": start(), "tool_functions": functions, "on_event": true},
            "sequence": [
                step(calls(&[("a", "tide", "{}")]), &[("a", "Error: Tool 'tide' failed: no such port")]),
                step(reported("I cannot tell."), &[]),
            ],
            "expected": {
                "result": "I cannot tell.", "iterations": 2,
                "events": [
                    event("status", json!({"message": "Starting agent loop"})),
                    event("tool_call_start", json!({"name": "tide", "arguments": "{}"})),
                    event("tool_result", json!({"name": "tide", "result": "Error: Tool 'tide' failed: no such port"})),
                    event("messages_updated", json!({"message_count": 5})),
                    event("done", json!({"response": "I cannot tell."})),
                ],
            },
        }),
        json!({
            "name": "a tool that nobody knows",
            "input": {"messages": start(), "tool_functions": functions},
            "sequence": [step(calls(&[("a", "wind", "{}")]), &[])],
            "expected": {"error": "Tool not registered: wind", "iterations": 1},
        }),
        json!({
            "name": "arguments in a fence, with a comma too many",
            "input": {"messages": start(), "tool_functions": functions},
            "sequence": [
                {
                    "llm_response": calls(&[("a", "tide", "```json\n{\"port\": \"Brest\",}\n```")]),
                    "expected_tool_calls": [{"id": "a", "name": "tide", "arguments": {"port": "Brest"}}],
                    "expected_execution_args": {"tide": {"port": "Brest"}},
                    "tool_results": [{"tool_call_id": "a", "result": "06:00"}],
                },
                step(reported("at six"), &[]),
            ],
            "expected": {"result": "at six", "iterations": 2, "total_messages": 6},
        }),
        json!({
            "name": "arguments that are no JSON",
            "input": {"messages": start(), "tool_functions": functions},
            "sequence": [
                step(calls(&[("a", "tide", "Brest, please")]), &[("a", "Error: Invalid JSON in tool arguments: whatever")]),
                step(reported("hm"), &[]),
            ],
            "expected": {"result": "hm", "tools_executed": 0},
        }),
        json!({
            "name": "a binding wins over the model",
            "input": {
                "messages": start(), "tool_functions": functions, "parent_inputs": {"home": "Brest"},
                "tools": [{"name": "tide", "bindings": {"port": {"input": "home"}}}],
            },
            "sequence": [
                {
                    "llm_response": calls(&[("a", "tide", r#"{"port": "Dover", "day": 2}"#)]),
                    "expected_execution_args": {"tide": {"port": "Brest", "day": 2}},
                    "tool_results": [{"tool_call_id": "a", "result": "06:00"}],
                },
                step(reported("at six"), &[]),
            ],
            "expected": {"result": "at six"},
        }),
        json!({
            "name": "an answer that a guard denies",
            "input": {
                "messages": start(), "tool_functions": functions,
                "guardrails": {"output": {"action": "deny", "reason": "Says too much"}},
            },
            "sequence": [step(reported("at six"), &[])],
            "expected": {"error": "GuardrailError", "error_reason": "Says too much", "iterations": 1},
        }),
        json!({
            "name": "calls that run at once",
            "input": {"messages": start(), "tool_functions": functions, "parallel_tool_calls": true, "on_event": true},
            "sequence": [
                step(calls(&[("a", "tide", "{}"), ("b", "moon", "{}")]), &[("a", "06:00"), ("b", "full")]),
                step(reported("at six"), &[]),
            ],
            "expected": {
                "result": "at six", "total_messages": 7, "tools_executed": 2, "tool_result_order": ["a", "b"],
                "events": [
                    event("status", json!({"message": "Starting agent loop"})),
                    event("tool_call_start", json!({"name": "tide"})),
                    event("tool_call_start", json!({"name": "moon"})),
                    event("tool_result", json!({"name": "tide", "result": "06:00"})),
                    event("tool_result", json!({"name": "moon", "result": "full"})),
                    event("messages_updated", json!({"message_count": 6})),
                    event("done", json!({"response": "at six"})),
                ],
            },
        }),
        json!({
            "name": "an answer in JSON",
            "input": {"messages": start(), "tool_functions": functions, "outputs": [{"name": "time", "kind": "string"}]},
            "sequence": [step(reported(r#"{"time": "06:00"}"#), &[])],
            "expected": {"result": {"time": "06:00"}, "iterations": 1, "total_messages": 3},
        }),
        json!({
            "name": "a conversation that is too long",
            "input": {"messages": conversation, "tool_functions": functions, "context_budget": 1700, "on_event": true},
            "sequence": [step(reported("at six"), &[])],
            "expected": {
                "result": "at six", "message_sequence": summed_up("system"), "total_messages": 5,
                "events": [
                    event("messages_updated", json!({"message_count": 4})),
                    event("done", json!({"response": "at six"})),
                ],
            },
        }),
        json!({
            "name": "a conversation that somebody sums up",
            "input": {
                "messages": conversation, "tool_functions": functions, "on_event": true,
                "context_budget": {"max_chars": 1700, "compaction": {"summary": "the sea came and went"}},
            },
            "sequence": [step(reported("at six"), &[])],
            "expected": {
                "message_sequence": summed_up("user"),
                "events": [
                    event("compaction_start", json!({})),
                    event("compaction_complete", json!({"removed": 4, "remaining": 4})),
                    event("messages_updated", json!({"message_count": 4})),
                    event("done", json!({"response": "at six"})),
                ],
            },
        }),
        json!({
            "name": "words from outside before the first question",
            "input": {
                "messages": start(), "tool_functions": functions, "on_event": true,
                "steering": {"messages": [{"inject_before_iteration": 1, "role": "user", "text": "In French."}]},
            },
            "sequence": [step(reported("à six heures"), &[])],
            "expected": {
                "result": "à six heures", "total_messages": 4,
                "events": [
                    event("status", json!({"message": "Injecting steering message"})),
                    event("messages_updated", json!({"message_count": 3})),
                    event("done", json!({"response": "à six heures"})),
                ],
            },
        }),
    ]
}

/// What is left of runs when they are compared.
pub fn replays() -> Vec<Json> {
    let begin = ["session:session_start:s:t", "turn:turn_start:0"];
    let asked = |round: u32| {
        vec![
            format!("turn:llm_start:{round}"),
            format!("turn:llm_complete:{round}"),
            "session:checkpoint_created:s:t".into(),
        ]
    };
    let called = |round: u32, id: u32, success: bool, kind: &str| {
        vec![
            format!("turn:permission_requested:{round}:exec-{id}-permission"),
            format!("turn:permission_completed:{round}:true"),
            format!("turn:tool_execution_start:{round}:add"),
            format!("turn:tool_execution_complete:{round}:add:{success}{kind}"),
            format!("turn:tool_result:{round}:add:{success}{kind}"),
        ]
    };
    let end = |turns: u32, status: &str| {
        vec![
            format!("turn:turn_end:{turns}:{status}"),
            format!("session:session_end:s:t:{status}"),
            format!("summary:s:{status}:turns=1:checkpoints={turns}"),
        ]
    };
    let vector = |name: &str, most: u32, lines: Vec<Vec<String>>| {
        let begin = begin.iter().map(|line| (*line).to_owned());
        let lines: Vec<String> = begin.chain(lines.into_iter().flatten()).collect();
        json!({"name": name, "input": {"sessionId": "s", "turnId": "t", "maxIterations": most}, "expected": lines})
    };
    let updated = |round: u32| vec![format!("turn:messages_updated:{round}")];
    vec![
        vector(
            "a tool that fails",
            3,
            vec![asked(0), called(0, 1, false, ":exception"), updated(0), asked(1), end(2, "success")],
        ),
        vector(
            "two calls in one round",
            3,
            vec![
                asked(0),
                called(0, 1, true, ""),
                called(0, 2, true, ""),
                updated(0),
                asked(1),
                end(2, "success"),
            ],
        ),
        vector(
            "a model that never ends",
            2,
            vec![
                asked(0),
                called(0, 1, true, ""),
                updated(0),
                asked(1),
                called(1, 2, true, ""),
                updated(1),
                vec!["turn:error:2:max_iterations".into()],
                end(2, "error"),
            ],
        ),
    ]
}
