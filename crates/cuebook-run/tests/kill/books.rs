//! What logs, registry and ledger must say of each other.

use std::collections::BTreeMap;

use cuebook_run::store::{Account, Record, Store};
use cuebook_run::{Event, Kind, Money, Status, ThreadId, whole_log};
use serde_json::Value as Json;

/// A call of the model.
#[derive(Debug, Clone)]
pub struct Call {
    pub id: String,
    /// The mark that it makes; empty if it makes none.
    pub mark: String,
    /// Whether it is unknown what came of it.
    pub unknown: bool,
    /// What the model was reported, if the tool could not run.
    pub failed: Option<String>,
}

/// The calls that have no result yet.
#[derive(Debug, Default)]
pub struct OpenCalls {
    /// They may have run.
    pub started: Vec<Call>,
    /// They have not.
    pub waiting: Vec<Call>,
}

fn calls(event: &Event) -> Vec<Call> {
    let calls = event.payload["message"]["metadata"]["tool_calls"].as_array();
    let calls = calls.or_else(|| event.payload["message"]["tool_calls"].as_array());
    calls
        .into_iter()
        .flatten()
        .map(|call| {
            let arguments: Json =
                serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            let mark = arguments["parameters"]["mark"].as_str().unwrap_or_default().to_owned();
            Call { id: call["id"].as_str().unwrap().to_owned(), mark, unknown: false, failed: None }
        })
        .collect()
}

fn of(event: &Event, call: &Call) -> bool {
    event.payload["call_id"] == call.id.as_str()
}

/// The calls of a log without a result.
pub fn open_calls(log: &[Event]) -> OpenCalls {
    let mut open = OpenCalls::default();
    let Some(last) = log.iter().rposition(|event| event.kind == Kind::CognitionOut) else { return open };
    let after = &log[last..];
    for call in calls(&log[last]) {
        let is_over = |event: &Event| {
            matches!(event.kind, Kind::ToolResult | Kind::ToolUnknown | Kind::Denied) && of(event, &call)
        };
        if after.iter().any(is_over) {
            continue;
        }
        match after.iter().any(|event| event.kind == Kind::ToolStart && of(event, &call)) {
            true => open.started.push(call),
            false => open.waiting.push(call),
        }
    }
    open
}

/// All calls of a log that ended well: each has exactly one result, and not more than one start.
pub fn results(log: &[Event]) -> Vec<Call> {
    let mut all = Vec::new();
    for call in log.iter().filter(|event| event.kind == Kind::CognitionOut).flat_map(calls) {
        let count = |kind: Kind| log.iter().filter(|event| event.kind == kind && of(event, &call)).count();
        let (known, unknown, denied) =
            (count(Kind::ToolResult), count(Kind::ToolUnknown), count(Kind::Denied));
        assert_eq!(known + unknown + denied, 1, "{call:?}");
        assert_eq!(count(Kind::ToolStart), 1 - denied, "{call:?}");
        if denied == 0 {
            let failed = |event: &&Event| {
                event.kind == Kind::ToolResult && of(event, &call) && event.payload["is_error"] == true
            };
            let failed = log.iter().find(failed).map(|event| event.text.clone());
            all.push(Call { unknown: unknown > 0, failed, ..call });
        }
    }
    all
}

/// How many times what a hook does was cut off. What began has ended, or is said to be unknown.
pub fn hooks(log: &[Event]) -> usize {
    let count = |kind: Kind| log.iter().filter(|event| event.kind == kind).count();
    assert_eq!(count(Kind::HookStart), count(Kind::Hook) + count(Kind::HookUnknown));
    count(Kind::HookUnknown)
}

/// Every log is whole and as long as the registry says, every account agrees with those below it, and nothing is held for a
/// thread that no one runs.
pub fn audit(store: &dyn Store, records: &[Record]) {
    let accounts: BTreeMap<ThreadId, Account> = records
        .iter()
        .map(|record| (record.id.clone(), store.account(&record.id).unwrap().unwrap()))
        .collect();
    let used = |account: &Account| account.spent + account.children + account.held + account.reserved;
    for record in records {
        whole_log(store, record).unwrap();
        let (id, account) = (&record.id, &accounts[&record.id]);
        assert_eq!(account.spent, record.cost.spend, "{id}");
        let children = || accounts.values().filter(|child| child.parent.as_ref() == Some(id));
        let reserved: Money =
            children().filter(|child| !child.settled).map(|child| child.limit.max(used(child))).sum();
        let spent: Money =
            children().filter(|child| child.settled).map(|child| child.spent + child.children).sum();
        assert_eq!((account.reserved, account.children), (reserved, spent), "{id}");
        let due = record.status.is_settled() && children().all(|child| child.settled);
        assert_eq!(account.settled, due, "{id}: {}", record.status);
        assert!(account.held == Money::ZERO || record.status == Status::Running, "{id}");
        assert!(used(account) <= account.limit, "{id}: {account:?}");
        let started = records.iter().filter(|child| child.parent.as_ref() == Some(id)).count();
        assert_eq!(record.spawned as usize, started, "{id}");
    }
}

/// What a registry says of a thread is what its log says, to the billionth.
pub fn log_agrees(store: &dyn Store, record: &Record) {
    let log = whole_log(store, record).unwrap();
    let id = &record.id;
    let (mut turns, mut input, mut output, mut spend) = (0, 0, 0, Money::ZERO);
    for event in &log {
        let payload = &event.payload;
        match event.kind {
            Kind::CognitionOut => {
                let usage = |name: &str| payload["usage"][name].as_u64().unwrap();
                let (read, wrote) = (usage("inputTokens"), usage("outputTokens"));
                (turns, input, output) = (turns + 1, input + read, output + wrote);
                // A dollar for a million tokens that are read, ten for those that are written.
                spend = spend + Money::from_nanos(i64::try_from(read * 1_000 + wrote * 10_000).unwrap());
            }
            // What was read when a process died counts as spent, and nothing else that was held.
            Kind::Interrupted => {
                assert!(payload.get("held_counted_as_spent").is_none(), "{payload}");
                spend = spend + Money::from_units(payload["estimated"]["spend"].as_f64().unwrap_or(0.0))
            }
            Kind::CognitionPartial => {
                spend = spend + Money::from_units(payload["counted_spend"].as_f64().unwrap_or(0.0))
            }
            Kind::Retry => {
                spend = spend + Money::from_units(payload["estimated"]["spend"].as_f64().unwrap_or(0.0))
            }
            _ => {}
        }
        if matches!(event.kind, Kind::Interrupted | Kind::CognitionPartial | Kind::Retry) {
            // What was read, and what had come of an answer, is counted although the provider did not count it.
            let guess = |name: &str| payload["estimated"][name].as_u64().unwrap_or(0);
            (input, output) = (input + guess("input"), output + guess("output"));
        }
    }
    let cost = &record.cost;
    assert_eq!((cost.turns, cost.input_tokens, cost.output_tokens), (turns, input, output), "{id}");
    assert_eq!(cost.spend, spend, "{id}");
    assert_eq!(log.iter().filter(|event| event.kind == Kind::Completed).count(), 1, "{id}");
}
