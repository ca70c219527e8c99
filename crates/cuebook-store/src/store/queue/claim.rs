//! Which threads a worker gets.

use std::collections::BTreeMap;
use std::time::Duration;

use cuebook_text::Result;

use super::super::book::Book;
use super::super::sql::{Cell, Sql, Tables};
use super::super::{Holder, LogKey};
use super::{SEALED, Sealed};
use crate::record::ThreadId;

/// How many rows are read at once where limits may leave some of them out.
const PAGE: i64 = 64;
/// How many pages are read for one claim.
const PAGES: usize = 20;

/// How many threads run at once on all workers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClaimLimits {
    /// Of one directive or prompt.
    pub per_prompt: Option<u64>,
    /// With one key of a provider.
    pub per_key: Option<u64>,
}

/// A thread that a worker has claimed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Claim {
    /// The thread.
    pub id: ThreadId,
    /// Its prompt.
    pub prompt: String,
    /// Who has claimed it, and takes it.
    pub holder: Holder,
    /// Whether its tools run in the sandbox.
    pub sandbox: bool,
    /// How long it was due.
    pub waited: Duration,
}

/// What runs now, of one directive or with one key.
#[derive(Default)]
struct Running {
    prompts: BTreeMap<String, u64>,
    keys: BTreeMap<String, u64>,
}

impl ClaimLimits {
    fn is_none(&self) -> bool {
        self.per_prompt.is_none() && self.per_key.is_none()
    }
}

impl Running {
    fn look(sql: &mut dyn Sql, key: &LogKey) -> Result<Running> {
        let statement = "SELECT prompt, provider_key, count(*) FROM cuebook_queue \
                         WHERE log_key = $1 AND token IS NOT NULL GROUP BY prompt, provider_key";
        let mut running = Running::default();
        for row in sql.rows(statement, &[key.id().into()])? {
            if let Ok([Cell::Text(prompt), Cell::Text(key), Cell::Int(count)]) = <[Cell; 3]>::try_from(row) {
                let count = u64::try_from(count).unwrap_or_default();
                *running.prompts.entry(prompt).or_default() += count;
                *running.keys.entry(key).or_default() += count;
            }
        }
        Ok(running)
    }

    fn count(&mut self, row: &Sealed) {
        *self.prompts.entry(row.prompt.clone()).or_default() += 1;
        *self.keys.entry(row.provider_key.clone()).or_default() += 1;
    }

    fn allows(&self, row: &Sealed, limits: &ClaimLimits) -> bool {
        let is_below = |running: &BTreeMap<String, u64>, name: &str, most: Option<u64>| {
            most.is_none_or(|most| running.get(name).copied().unwrap_or_default() < most)
        };
        is_below(&self.prompts, &row.prompt, limits.per_prompt)
            && is_below(&self.keys, &row.provider_key, limits.per_key)
    }

    /// The prompts and keys of which no more may run.
    fn full(&self, limits: &ClaimLimits) -> [Vec<String>; 2] {
        let full = |running: &BTreeMap<String, u64>, most: Option<u64>| {
            let is_full = |count: u64| most.is_some_and(|most| count >= most);
            let names = running.iter().filter(|(_, count)| is_full(**count));
            names.map(|(name, _)| name.clone()).collect()
        };
        [full(&self.prompts, limits.per_prompt), full(&self.keys, limits.per_key)]
    }
}

pub(super) fn claim<T: Tables>(
    book: &Book<T>,
    queue: &str,
    most: usize,
    limits: &ClaimLimits,
) -> Result<Vec<Claim>> {
    let (queue, limits) = (queue.to_owned(), limits.clone());
    let now = book.tables.now().as_microsecond();
    let log_key = book.write_key()?.clone();
    let (mine, due) = (Cell::from(log_key.id()), Cell::from(now));
    // Most workers look in vain most of the time: that writes nothing, and waits for nobody.
    let is_any = book.tables.read(|sql| {
        let ready = "SELECT 1 FROM cuebook_queue WHERE queue = $1 AND log_key = $2 \
                     AND ready = 1 AND damaged = 0 AND token IS NULL LIMIT 1";
        if !sql.rows(ready, &[queue.as_str().into(), mine.clone()])?.is_empty() {
            return Ok(true);
        }
        let later = "SELECT 1 FROM cuebook_queue WHERE ready = 0 AND due_at <= $1 LIMIT 1";
        Ok(!sql.rows(later, std::slice::from_ref(&due))?.is_empty())
    })?;
    if !is_any || most == 0 {
        return Ok(Vec::new());
    }
    book.tables.write(move |sql| {
        let found = format!(
            "SELECT thread FROM cuebook_queue WHERE ready = 0 AND due_at <= $1 LIMIT 1000{}",
            sql.skip_locked()
        );
        let promote = format!("UPDATE cuebook_queue SET ready = 1 WHERE thread IN ({found})");
        sql.run(&promote, &[now.into()])?;
        let mut running = Running::default();
        if !limits.is_none() {
            sql.one_at_a_time()?;
            running = Running::look(sql, &log_key)?;
        }
        let mut claims = Vec::new();
        for _ in 0..PAGES {
            let rows = page(sql, &queue, &log_key, most - claims.len(), &running.full(&limits), &limits)?;
            let is_last = rows.is_empty();
            for cells in rows {
                let id = match cells.first() {
                    Some(Cell::Text(id)) => id.clone(),
                    _ => continue,
                };
                let row = match Sealed::read(cells, &log_key) {
                    Some((row, true)) if row.due_at <= now => row,
                    Some((_, true)) => {
                        // The clock of the process that queued it is ahead of this one. It becomes ready when it is due.
                        let statement = "UPDATE cuebook_queue SET ready = 0 WHERE thread = $1";
                        sql.run(statement, &[id.as_str().into()])?;
                        continue;
                    }
                    _ => {
                        // Another program wrote it. It must not hide the others.
                        let statement = "UPDATE cuebook_queue SET damaged = 1 WHERE thread = $1";
                        sql.run(statement, &[id.as_str().into()])?;
                        continue;
                    }
                };
                if claims.len() < most && running.allows(&row, &limits) {
                    running.count(&row);
                    let holder = Holder::of_this_process();
                    set(sql, &row.thread, &holder)?;
                    let waited = u64::try_from(now.saturating_sub(row.due_at)).unwrap_or_default();
                    claims.push(Claim {
                        id: row.thread,
                        prompt: row.prompt,
                        holder,
                        sandbox: row.sandbox != 0,
                        waited: Duration::from_micros(waited),
                    });
                }
            }
            if is_last || claims.len() >= most {
                break;
            }
        }
        Ok(claims)
    })
}

/// The next rows that wait and that no other worker is about to claim.
fn page(
    sql: &mut dyn Sql,
    queue: &str,
    key: &LogKey,
    most: usize,
    full: &[Vec<String>; 2],
    limits: &ClaimLimits,
) -> Result<Vec<Vec<Cell>>> {
    let mut cells: Vec<Cell> = vec![queue.into(), key.id().into()];
    let mut without = String::new();
    for (column, names) in ["prompt", "provider_key"].into_iter().zip(full) {
        if !names.is_empty() {
            let first = cells.len() + 1;
            cells.extend(names.iter().map(|name| Cell::from(name.as_str())));
            let places: Vec<String> = (first..=cells.len()).map(|number| format!("${number}")).collect();
            without.push_str(&format!(" AND {column} NOT IN ({})", places.join(", ")));
        }
    }
    let most = i64::try_from(most).unwrap_or(PAGE);
    cells.push(if limits.is_none() { most } else { most.max(PAGE) }.into());
    let statement = format!(
        "SELECT {SEALED}, seal FROM cuebook_queue WHERE queue = $1 AND log_key = $2 \
         AND ready = 1 AND damaged = 0 AND token IS NULL{without} \
         ORDER BY priority DESC, due_at, thread LIMIT ${}{}",
        cells.len(),
        sql.skip_locked()
    );
    sql.rows(&statement, &cells)
}

/// Writes who has claimed a thread.
pub(super) fn set(sql: &mut dyn Sql, id: &ThreadId, holder: &Holder) -> Result<()> {
    let cells = [
        holder.host.as_str().into(),
        i64::from(holder.pid).into(),
        holder.began.cast_signed().into(),
        holder.token.as_str().into(),
        id.as_str().into(),
    ];
    let statement =
        "UPDATE cuebook_queue SET host = $1, pid = $2, began = $3, token = $4, ready = 1 WHERE thread = $5";
    sql.run(statement, &cells).map(drop)
}
