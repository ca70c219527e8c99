//! Batches on a PostgreSQL store: their processes share a budget, and one that is killed continues.

#[path = "../../../cuebook-run/tests/store/server.rs"]
#[allow(dead_code, reason = "only the address of the server is needed here")]
mod server;

use std::time::Instant;

use cuebook_run::provider::{Budget, Rate};
use cuebook_run::store::LogKey;
use jiff::Timestamp;

use crate::kill;
use crate::setup::{KEY, Setup, err};

/// Requests in a minute.
const RATE: u32 = 60;
const ROWS: u32 = 20;

/// The address of an empty schema of the server.
fn schema(name: &str) -> Option<String> {
    let url = &server::server()?.url;
    let separator = if url.contains('?') { '&' } else { '?' };
    let schema = format!("cuebook_batch_{}_{name}", std::process::id());
    let plain = format!("{url}{separator}sslmode=disable");
    let mut client = postgres::Client::connect(&plain, postgres::NoTls).unwrap();
    client.batch_execute(&format!("CREATE SCHEMA {schema}")).unwrap();
    Some(format!("{url}{separator}options=-csearch_path%3D{schema}"))
}

#[test]
fn batches_on_one_postgresql_store_share_a_budget() {
    let Some(place) = schema("shared") else { return };
    let setup = Setup::echo();
    setup.add_rate(RATE);
    setup.questions(ROWS as usize);
    let began = Instant::now();
    let batches = ["one.jsonl", "two.jsonl"].map(|file| {
        let args = ["ask", "data.jsonl", "--run", "--model", "mock-model", "--out", file, "--store", &place];
        setup.command(&args).spawn().unwrap()
    });
    for batch in batches {
        let output = batch.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
    }
    assert_eq!(setup.mock.requests().len(), 2 * ROWS as usize);
    let store = cuebook_run::store::open(&place, LogKey::none()).unwrap();
    let rate = Rate { requests: Some(f64::from(RATE)), tokens: None };
    let budget = Budget::on_store(store, &setup.mock.url(), KEY, rate);
    let left = (0..RATE).take_while(|_| budget.take(1, Timestamp::now()).is_none()).count() as f64;
    // What came back since the first request, and one more for the difference of two clocks.
    let back = began.elapsed().as_secs_f64() * f64::from(RATE) / 60.0 + 1.0;
    assert!(left <= f64::from(RATE - 2 * ROWS) + back, "{left} requests are left");
    assert!(!setup.project.path().join("home/.ai/state/rates").exists());
}

#[test]
fn a_killed_batch_on_postgresql_asks_no_answered_row_again() {
    let Some(place) = schema("killed") else { return };
    let setup = kill::slow();
    setup.add_rate(600_000);
    kill::no_answered_row_is_asked_again(&setup, 20, 100, &["--store", &place]);
}
