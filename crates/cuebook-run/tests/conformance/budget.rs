//! Scenarios of a ledger. The reference has a call for each step of what our store does in one; so names of the cases become
//! threads, `report_actual` a cost, and `release` the end of a thread.
//!
//! Three answers of the reference are other ones here, and are held against what we decided:
//! - What a thread spent is recorded as it was, also when it exceeds what was reserved, and shows in the accounts above. The
//!   reference refuses to record it, and so does not know of it.
//! - A root's own spend is recorded. The reference has reserved nothing for a root, so there every report is refused.
//! - A sum is counted in whole billionths, not in binary fractions, so it is `0.6` and not `0.6000000000000001`.

use std::collections::BTreeMap;

use cuebook_run::store::{Account, Change, Cost, Filter, Holder, LogKey, New, Record, SqliteStore, Store};
use cuebook_run::{Money, Status, ThreadId};
use serde_json::{Value as Json, json};

/// Threads by the names that the cases have for them.
struct Scenario {
    store: SqliteStore,
    threads: BTreeMap<String, Record>,
    _folder: tempfile::TempDir,
}

pub fn run(case: &Json) -> Result<(), String> {
    let folder = tempfile::tempdir().unwrap();
    let store =
        SqliteStore::open(&folder.path().join("threads.db"), Ok(LogKey::from_bytes([7; 32]))).unwrap();
    let mut scenario = Scenario { store, threads: BTreeMap::new(), _folder: folder };
    for step in case["expect"].as_array().ok_or("no steps")? {
        let (written, wanted) = (step["step"].as_str().ok_or("no step")?, &step["result"]);
        let (name, rest) = written.split_once('(').ok_or("no call")?;
        let arguments: Vec<&str> =
            rest.split_once(')').ok_or("no end")?.0.split(',').map(str::trim).collect();
        let differs = |found: &Json| Err(format!("{written}: {found}, wanted {wanted}"));
        match (name, &arguments[..]) {
            ("report_actual", [thread, amount]) => {
                let (before, amount) = (scenario.account(thread), units(amount)?);
                scenario.report(thread, amount)?;
                let after = scenario.account(thread);
                if after.spent != Money::from_units(amount) {
                    return differs(&after.to_json());
                }
                if !wanted.is_null() {
                    // It was recorded, and the reference refused.
                    let reserved = if before.parent.is_some() { before.limit.units() } else { 0.0 };
                    let said = format!("Overspend: thread={thread} reserved={reserved:?} actual={amount:?}");
                    if !wanted["raises"].as_str().is_some_and(|raises| raises.ends_with(&said)) {
                        return differs(&json!(said));
                    }
                    // From here on the reference's figures are those without it.
                    scenario.report(thread, before.spent.units())?;
                }
            }
            _ => {
                let found = scenario.step(name, &arguments)?;
                if !agrees(wanted, &found) {
                    return differs(&found);
                }
            }
        }
    }
    Ok(())
}

impl Scenario {
    fn account(&self, thread: &str) -> Account {
        self.store.account(&self.threads[thread].id).unwrap().unwrap()
    }

    /// A thread with a name of the cases, or with one that no one has.
    fn id(&self, thread: &str) -> ThreadId {
        self.threads.get(thread).map_or_else(|| ThreadId::known(thread), |record| record.id.clone())
    }

    fn begin(&mut self, thread: &str, spend: &str, parent: Option<&str>) -> Result<Json, String> {
        let new = New {
            prompt: thread.to_owned(),
            parent: parent.map(|parent| self.id(parent)),
            parent_holder: None,
            parent_spawns: None,
            spend: Money::from_units(units(spend)?),
            model: None,
            unpriced: false,
            continuation_of: None,
            holder: Some(Holder::of_this_process()),
            entries: Vec::new(),
        };
        match self.store.begin(&new) {
            Ok(record) => {
                self.threads.insert(thread.to_owned(), record);
                Ok(Json::Null)
            }
            Err(error) => {
                // Names of the cases instead of ours.
                let mut said = error.diagnostic().message.clone();
                for (name, record) in &self.threads {
                    said = said.replace(record.id.as_str(), name);
                }
                Ok(json!({"raises": said, "code": error.code().as_str()}))
            }
        }
    }

    fn report(&self, thread: &str, amount: f64) -> Result<(), String> {
        let cost = Cost { spend: Money::from_units(amount), ..Cost::default() };
        self.append(thread, &Change { cost: Some(cost), ..Change::default() })
    }

    fn append(&self, thread: &str, change: &Change) -> Result<(), String> {
        let record = &self.threads[thread];
        let holder = record.holder.as_ref().unwrap();
        self.store.append(&record.id, holder, &[], change).map(drop).map_err(|error| error.to_string())
    }

    fn step(&mut self, name: &str, arguments: &[&str]) -> Result<Json, String> {
        match (name, arguments) {
            ("register", [thread, spend]) => self.begin(thread, spend, None),
            ("reserve", [thread, spend, parent]) => self.begin(thread, spend, Some(parent)),
            ("remaining", [thread]) => Ok(self.account(thread).remaining().to_json()),
            // What a child spent is its parent's when it has settled; there is nothing to do for it.
            ("cascade", [_, _]) => Ok(Json::Null),
            ("release", [thread]) => {
                let change = Change { status: Some(Status::Completed), ..Change::default() };
                self.append(thread, &change).map(|()| Json::Null)
            }
            ("can_spawn", [thread, amount]) => {
                let (left, wanted) = (self.account(thread).remaining(), Money::from_units(units(amount)?));
                let affordable = wanted <= left;
                Ok(
                    json!({"affordable": affordable, "remaining": left.to_json(), "requested": wanted.to_json()}),
                )
            }
            ("tree", [_]) => {
                let records = self.store.list(&Filter::default()).unwrap();
                let accounts: Vec<Account> =
                    records.iter().map(|record| self.store.account(&record.id).unwrap().unwrap()).collect();
                // The reference counts what a child spent in its parent's figure too.
                let actual: Money = accounts.iter().map(|account| account.spent + account.children).sum();
                let below = accounts.iter().filter(|account| account.parent.is_some());
                let held = |account: &Account| if account.settled { account.spent } else { account.limit };
                let reserved: Money = below.map(held).sum();
                Ok(json!({
                    "total_actual": actual.to_json(),
                    "total_reserved": reserved.to_json(),
                    "thread_count": accounts.len(),
                    "active_count": accounts.iter().filter(|account| !account.settled).count(),
                }))
            }
            _ => Err(format!("nobody knows the step {name}")),
        }
    }
}

fn units(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| format!("`{text}` is no amount"))
}

/// Whether an answer is that of the reference: figures to the billionth, refusals by what they say, or by what they mean where
/// the words are ours.
fn agrees(wanted: &Json, found: &Json) -> bool {
    match (wanted, found) {
        (Json::Number(wanted), Json::Number(found)) => {
            let nanos = |number: &serde_json::Number| number.as_f64().map(Money::from_units);
            nanos(wanted) == nanos(found)
        }
        (Json::Object(wanted), Json::Object(found)) if wanted.contains_key("raises") => {
            let (wanted, code) = (wanted["raises"].as_str().unwrap_or_default(), &found["code"]);
            let said = found["raises"].as_str().unwrap_or_default();
            // `2.00` and `2.0` are the same amount.
            let figures = |text: &str| -> Vec<Money> {
                let amounts = text.split(['=', ' ']).filter_map(|word| word.parse::<f64>().ok());
                amounts.map(Money::from_units).collect()
            };
            match wanted.split_once(": ").map_or(wanted, |(kind, _)| kind) {
                "InsufficientBudget" => {
                    let start = |text: &str| text.split(" remaining").next().map(str::to_owned);
                    let words = wanted.trim_start_matches("InsufficientBudget: ");
                    code == "CB718" && figures(words) == figures(said) && start(words) == start(said)
                }
                "BudgetNotRegistered" => code == "CB712",
                _ => false,
            }
        }
        (Json::Object(wanted), Json::Object(found)) => {
            wanted.len() == found.len()
                && wanted
                    .iter()
                    .all(|(name, value)| found.get(name).is_some_and(|found| agrees(value, found)))
        }
        (wanted, found) => wanted == found,
    }
}
