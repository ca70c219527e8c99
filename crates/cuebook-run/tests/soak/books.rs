//! What must be true when everything has come to its end.

use std::collections::BTreeMap;

use cuebook_run::store::{Account, Record, Store};
use cuebook_run::{Event, Kind, Money, Status, ThreadId, whole_log};
use serde_json::Value as Json;

/// A thread with all that is known of it.
struct KnownThread {
    record: Record,
    account: Account,
    log: Vec<Event>,
    children: Vec<ThreadId>,
}

/// Checks everything, and says what was spent in all.
pub fn agree(store: &dyn Store, records: &[Record]) -> Money {
    let mut all: BTreeMap<ThreadId, KnownThread> = BTreeMap::new();
    for record in records {
        let account = store.account(&record.id).unwrap().unwrap();
        let log = whole_log(store, record).unwrap();
        let known = KnownThread { record: record.clone(), account, log, children: Vec::new() };
        all.insert(record.id.clone(), known);
    }
    for record in records {
        if let Some(parent) = &record.parent {
            all.get_mut(parent).unwrap().children.push(record.id.clone());
        }
    }
    let mut total = Money::ZERO;
    for (id, known) in &all {
        let (record, account) = (&known.record, &known.account);
        assert!(record.status.is_settled(), "{id} is {}", record.status);
        assert!(account.settled, "{id}: {account:?}");
        assert_eq!((account.held, account.reserved), (Money::ZERO, Money::ZERO), "{id}");
        assert_eq!(account.spent, record.cost.spend, "{id}");
        log_agrees(known);
        let started = known.children.iter().filter(|child| all[*child].record.continuation_of.is_none());
        assert_eq!(record.spawned as usize, started.count(), "{id}");
        let below: Money =
            known.children.iter().map(|child| tree(&all, child, &|known| known.record.cost.spend)).sum();
        assert_eq!(account.children, below, "{id}");
        let over = tree(&all, id, &more_than_held);
        assert!(
            account.spent + account.children <= account.limit + over,
            "{id}: {account:?}, and {over} more than was held"
        );
        if record.parent.is_none() {
            total = total + account.spent + account.children;
        }
    }
    assert_eq!(total, records.iter().map(|record| record.cost.spend).sum::<Money>());
    total
}

fn tree(
    all: &BTreeMap<ThreadId, KnownThread>,
    id: &ThreadId,
    amount: &dyn Fn(&KnownThread) -> Money,
) -> Money {
    let known = &all[id];
    known.children.iter().map(|child| tree(all, child, amount)).fold(amount(known), |sum, more| sum + more)
}

/// What answers cost beyond what was held for them.
fn more_than_held(known: &KnownThread) -> Money {
    let nanos = known.log.iter().filter_map(|event| event.payload["more_than_held"].as_i64());
    nanos.map(Money::from_nanos).sum()
}

/// The registry says what the log says.
fn log_agrees(known: &KnownThread) {
    let KnownThread { record, log, .. } = known;
    let id = &record.id;
    let (mut turns, mut input, mut output, mut spend) = (0, 0, 0, Money::ZERO);
    let mut status = Status::Created;
    let amount = |value: &Json| Money::from_units(value.as_f64().unwrap_or(0.0));
    for event in log {
        let payload = &event.payload;
        match event.kind {
            Kind::CognitionOut => {
                // A server that takes too long to say it after the last word is not waited for: then it was counted here.
                let counted = |said: &str, here: &str| {
                    payload["usage"][said].as_u64().or_else(|| payload["estimated"][here].as_u64()).unwrap()
                };
                let (read, wrote) = (counted("inputTokens", "input"), counted("outputTokens", "output"));
                (turns, input, output) = (turns + 1, input + read, output + wrote);
                spend = spend + Money::from_nanos(i64::try_from(read * 1_000 + wrote * 10_000).unwrap());
            }
            Kind::CognitionPartial => spend = spend + amount(&payload["counted_spend"]),
            Kind::Retry => spend = spend + amount(&payload["estimated"]["spend"]),
            Kind::Interrupted => {
                spend = spend + amount(&payload["estimated"]["spend"]);
                status = Status::Interrupted;
            }
            Kind::Started | Kind::Resumed => status = Status::Running,
            Kind::Completed => status = Status::Completed,
            Kind::Failed => status = Status::Error,
            Kind::Cancelled => status = Status::Cancelled,
            Kind::Suspended => status = Status::Suspended,
            Kind::Continued => status = Status::Continued,
            _ => {}
        }
        if matches!(event.kind, Kind::Interrupted | Kind::CognitionPartial | Kind::Retry) {
            let guess = |name: &str| payload["estimated"][name].as_u64().unwrap_or(0);
            (input, output) = (input + guess("input"), output + guess("output"));
        }
    }
    assert_eq!(record.status, status, "{id}");
    let cost = &record.cost;
    assert_eq!((cost.turns, cost.input_tokens, cost.output_tokens), (turns, input, output), "{id}");
    assert_eq!(cost.spend, spend, "{id}: {log:#?}");
    let last =
        log.iter().rev().find_map(|event| event.payload.get("cost")).expect("an end says what it cost");
    assert_eq!(last["turns"], cost.turns, "{id}");
    assert_eq!(amount(&last["spend"]), cost.spend, "{id}");
    assert_eq!(last["estimated_tokens"].as_u64().unwrap_or(0), cost.estimated, "{id}");
    // Nothing runs before its start is written, and everything that runs has one result.
    for event in log.iter().filter(|event| event.kind == Kind::ToolResult && event.payload["ran"] == true) {
        let call = &event.payload["call_id"];
        let starts =
            log.iter().filter(|start| start.kind == Kind::ToolStart && start.payload["call_id"] == *call);
        assert_eq!(starts.count(), 1, "{id}: {call}");
    }
}
