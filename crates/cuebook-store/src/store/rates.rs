//! Budgets of requests and tokens: a row for each key, which every process on the store reads and changes.
//!
//! A row is read, and then written by one statement if it is still the same. No lock outlives that statement, so a process that stops in
//! between blocks no other process.

use std::time::Duration;

use cuebook_text::Result;
use jiff::Timestamp;

use super::RateChange;
use super::sql::{Cell, Tables};

/// How often a row is read again after another process changed it. After that, the request is sent anyway, and the provider may refuse it.
const MAX_TRIES: u32 = 1_000;
/// Bytes of a row. A longer one, which another program wrote, is not read: the budget begins anew.
const MAX_STATE: usize = 4 << 10;

/// Changes a row, and says how long to wait. A process that has to wait, or that leaves the text as it is, writes nothing.
pub(super) fn change<T: Tables>(tables: &T, name: &str, change: &RateChange) -> Result<Option<Duration>> {
    let ahead = tables.now().as_millisecond() - Timestamp::now().as_millisecond();
    let name = Cell::from(name);
    let select = format!(
        "SELECT CASE WHEN octet_length(state) <= {MAX_STATE} THEN state END FROM cuebook_rates WHERE name = $1"
    );
    let mut tries = 0;
    loop {
        tries += 1;
        let rows = tables.read(|sql| sql.rows(&select, std::slice::from_ref(&name)))?;
        let before = rows.into_iter().flatten().next();
        let text = match &before {
            Some(Cell::Text(text)) => Some(text.as_str()),
            _ => None,
        };
        let (after, wait) = change(text, ahead);
        if wait.is_some() || after == text.unwrap_or_default() || tries == MAX_TRIES {
            return Ok(wait);
        }
        let mut values = vec![after.as_str().into(), name.clone()];
        let statement = match before {
            Some(text @ Cell::Text(_)) => {
                values.push(text);
                "UPDATE cuebook_rates SET state = $1 WHERE name = $2 AND state = $3"
            }
            Some(_) => "UPDATE cuebook_rates SET state = $1 WHERE name = $2",
            None => "INSERT INTO cuebook_rates (state, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING",
        };
        if tables.run_alone(statement, values)? == 1 {
            return Ok(wait);
        }
    }
}
