//! A thread's row: what the registry says of it, and its account.

use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use cuebook::Result;
use jiff::Timestamp;

use super::sql::{Cell, Sql};
use super::{Account, Cost, Holder, Record, error};
use crate::thread::{Event, Kind, Money, Status, ThreadId};

/// Columns that never change.
const FIXED: &[&str] = &["id", "prompt", "parent", "created_at", "continuation_of"];
/// Columns that do. The first of them are in indexes: to write them is to write pages of those too, changed or not.
const MUTABLE: &[&str] = &[
    "status",
    "host",
    "updated_at",
    "completed_at",
    "pid",
    "began",
    "token",
    "taken_at",
    "cancel",
    "model",
    "turns",
    "input_tokens",
    "output_tokens",
    "elapsed",
    "estimated",
    "unpriced",
    "spawned",
    "result",
    "continued_by",
    "last_seq",
    "last_hash",
    "spend_limit",
    "spent",
    "children",
    "held",
    "reserved",
    "claim",
    "open_children",
    "settled",
];

/// How many of those are in indexes.
const INDEXED: usize = 2;

/// What a thread's row is found by besides its name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Indexed {
    status: Status,
    host: Option<String>,
}

/// `SELECT … FROM cuebook_threads t`, with the last sign of life of its holder behind the columns.
pub(crate) static SELECT: LazyLock<String> = LazyLock::new(|| {
    let columns = [FIXED, MUTABLE].concat().join(", ");
    format!(
        "SELECT {columns}, (SELECT at FROM cuebook_beats b \
         WHERE b.host = t.host AND b.pid = t.pid AND b.began = t.began) FROM cuebook_threads t"
    )
});

static INSERT: LazyLock<String> = LazyLock::new(|| {
    let columns = [FIXED, MUTABLE].concat();
    let places: Vec<String> = (1..=columns.len()).map(|number| format!("${number}")).collect();
    format!(
        "INSERT INTO cuebook_threads ({}) VALUES ({}) ON CONFLICT DO NOTHING",
        columns.join(", "),
        places.join(", ")
    )
});

static UPDATE: LazyLock<String> = LazyLock::new(|| update(MUTABLE));
static UPDATE_UNINDEXED: LazyLock<String> = LazyLock::new(|| update(&MUTABLE[INDEXED..]));

fn update(columns: &[&str]) -> String {
    let sets: Vec<String> =
        columns.iter().zip(1..).map(|(name, number): (_, usize)| format!("{name} = ${number}")).collect();
    format!("UPDATE cuebook_threads SET {} WHERE id = ${}", sets.join(", "), columns.len() + 1)
}

/// How many events one statement writes at most.
const EVENTS_AT_ONCE: usize = 50;

/// The statements that write one event, two, and so on.
static EVENTS: [OnceLock<String>; EVENTS_AT_ONCE] = [const { OnceLock::new() }; EVENTS_AT_ONCE];

/// A thread's row.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) record: Record,
    pub(crate) account: Account,
    /// What is reserved for it in its parent's account, as long as its own has not settled.
    pub(crate) claim: Money,
    /// How many of its children have not settled.
    pub(crate) open: u64,
    /// When its holder took it up, which is a sign of life too.
    pub(crate) taken_at: Option<Timestamp>,
}

impl Row {
    /// The row that these cells are.
    pub(crate) fn read(cells: Vec<Cell>, place: &str) -> Result<Row> {
        let mut cells = Cells { cells: cells.into_iter(), place };
        let id = ThreadId::known(cells.text()?);
        let prompt = cells.text()?;
        let parent = cells.text_opt()?.map(ThreadId::known);
        let created_at = cells.moment()?;
        let continuation_of = cells.text_opt()?.map(ThreadId::known);
        let word = cells.text()?;
        let status = Status::named(&word).ok_or_else(|| cells.strange(&format!("the status `{word}`")))?;
        let host = cells.text_opt()?;
        let (updated_at, completed_at) = (cells.moment()?, cells.moment_opt()?);
        let (pid, began, token) = (cells.int_opt()?, cells.int_opt()?, cells.text_opt()?);
        let holder = match (host, pid, began, token) {
            (Some(host), Some(pid), Some(began), Some(token)) => {
                // The bits of a count are kept, not its sign.
                Some(Holder { host, pid: small(pid), began: began.cast_unsigned(), token })
            }
            _ => None,
        };
        let taken_at = cells.moment_opt()?;
        let cancel = cells.int()? != 0;
        let model = cells.text_opt()?;
        let mut cost = Cost {
            turns: small(cells.int()?),
            input_tokens: count(cells.int()?),
            output_tokens: count(cells.int()?),
            spend: Money::ZERO,
            elapsed: Duration::from_micros(count(cells.int()?)),
            estimated: count(cells.int()?),
            unpriced: cells.int()? != 0,
        };
        let spawned = small(cells.int()?);
        let result = cells.text_opt()?;
        let result = match result.map(|text| serde_json::from_str(&text)) {
            None => None,
            Some(Ok(json)) => Some(json),
            Some(Err(_)) => return Err(cells.strange("a result that is no JSON")),
        };
        let continued_by = cells.text_opt()?.map(ThreadId::known);
        let last = (count(cells.int()?), cells.text()?);
        let limit = cells.money()?;
        let (spent, children, held, reserved) =
            (cells.money()?, cells.money()?, cells.money()?, cells.money()?);
        cost.spend = spent;
        let (claim, open, settled) = (cells.money()?, count(cells.int()?), cells.int()? != 0);
        let beat = cells.moment_opt()?;
        let account = Account {
            id: id.clone(),
            parent: parent.clone(),
            limit,
            spent,
            children,
            held,
            reserved,
            settled,
        };
        let beat_at = beat.max(taken_at);
        let record = Record {
            id,
            prompt,
            parent,
            status,
            created_at,
            updated_at,
            completed_at,
            holder,
            beat_at,
            cancel,
            model,
            cost,
            spawned,
            result,
            continuation_of,
            continued_by,
            last,
        };
        Ok(Row { record, account, claim, open, taken_at })
    }

    fn fixed(&self) -> Vec<Cell> {
        let record = &self.record;
        vec![
            record.id.as_str().into(),
            record.prompt.as_str().into(),
            record.parent.as_ref().map(ThreadId::as_str).into(),
            record.created_at.as_microsecond().into(),
            record.continuation_of.as_ref().map(ThreadId::as_str).into(),
        ]
    }

    fn mutable(&self) -> Vec<Cell> {
        let (record, account, holder) = (&self.record, &self.account, self.record.holder.as_ref());
        let moment = |at: Option<Timestamp>| Cell::from(at.map(Timestamp::as_microsecond));
        let micros = i64::try_from(record.cost.elapsed.as_micros()).unwrap_or(i64::MAX);
        vec![
            record.status.as_str().into(),
            holder.map(|holder| holder.host.as_str()).into(),
            record.updated_at.as_microsecond().into(),
            moment(record.completed_at),
            holder.map(|holder| i64::from(holder.pid)).into(),
            holder.map(|holder| holder.began.cast_signed()).into(),
            holder.map(|holder| holder.token.as_str()).into(),
            moment(self.taken_at),
            i64::from(record.cancel).into(),
            record.model.as_deref().into(),
            i64::from(record.cost.turns).into(),
            kept(record.cost.input_tokens).into(),
            kept(record.cost.output_tokens).into(),
            micros.into(),
            kept(record.cost.estimated).into(),
            i64::from(record.cost.unpriced).into(),
            i64::from(record.spawned).into(),
            record.result.as_ref().map(|json| Cell::Text(json.to_string())).into(),
            record.continued_by.as_ref().map(ThreadId::as_str).into(),
            kept(record.last.0).into(),
            record.last.1.as_str().into(),
            account.limit.nanos().into(),
            account.spent.nanos().into(),
            account.children.nanos().into(),
            account.held.nanos().into(),
            account.reserved.nanos().into(),
            self.claim.nanos().into(),
            kept(self.open).into(),
            i64::from(account.settled).into(),
        ]
    }

    /// Writes a new row. Says `false` if the name is taken.
    pub(crate) fn insert(&self, sql: &mut dyn Sql) -> Result<bool> {
        let cells = [self.fixed(), self.mutable()].concat();
        Ok(sql.run(&INSERT, &cells)? == 1)
    }

    pub(crate) fn indexed(&self) -> Indexed {
        let host = self.record.holder.as_ref().map(|holder| holder.host.clone());
        Indexed { status: self.record.status, host }
    }

    /// Writes what has changed of a row that was read before, and was found by this then.
    pub(crate) fn update(&self, sql: &mut dyn Sql, found: Option<&Indexed>) -> Result<()> {
        let mut cells = self.mutable();
        cells.push(self.record.id.as_str().into());
        match found == Some(&self.indexed()) {
            true => sql.run(&UPDATE_UNINDEXED, &cells[INDEXED..]).map(drop),
            false => sql.run(&UPDATE, &cells).map(drop),
        }
    }
}

/// Writes events of a thread.
pub(crate) fn insert_events(sql: &mut dyn Sql, thread: &ThreadId, events: &[Event]) -> Result<()> {
    for events in events.chunks(EVENTS_AT_ONCE) {
        let statement = EVENTS[events.len() - 1].get_or_init(|| insert_many(events.len()));
        let cell = |event: &Event| {
            [
                Cell::from(thread.as_str()),
                kept(event.seq).into(),
                event.at.as_microsecond().into(),
                event.kind.as_str().into(),
                event.text.as_str().into(),
                event.hash.as_str().into(),
            ]
        };
        let cells: Vec<Cell> = events.iter().flat_map(cell).collect();
        sql.run(statement, &cells)?;
    }
    Ok(())
}

/// The statement that writes so many events.
fn insert_many(events: usize) -> String {
    let places = |row: usize| {
        let places: Vec<String> = (row * 6 + 1..=row * 6 + 6).map(|number| format!("${number}")).collect();
        format!("({})", places.join(", "))
    };
    let rows: Vec<String> = (0..events).map(places).collect();
    format!("INSERT INTO cuebook_events (thread, seq, at, kind, payload, hash) VALUES {}", rows.join(", "))
}

/// The event that these cells are: number, moment, kind, payload, hash.
pub(crate) fn read_event(thread: &ThreadId, cells: Vec<Cell>, place: &str) -> Result<Event> {
    let mut cells = Cells { cells: cells.into_iter(), place };
    let (seq, at, word) = (count(cells.int()?), cells.moment()?, cells.text()?);
    let (text, hash) = (cells.text()?, cells.text()?);
    let unknown = || error::broken(thread, seq, &format!("nobody knows events of the kind `{word}`"));
    let kind = Kind::named(&word).ok_or_else(unknown)?;
    let payload =
        serde_json::from_str(&text).map_err(|_| error::broken(thread, seq, "what it says is no JSON"))?;
    Ok(Event { seq, at, kind, payload, text, hash })
}

/// A count as it is kept: what no column can hold is the most that one can.
pub(crate) fn kept(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn small(number: i64) -> u32 {
    u32::try_from(number.max(0)).unwrap_or(u32::MAX)
}

/// Cells one after the other. What does not fit was written by somebody else.
struct Cells<'p> {
    cells: std::vec::IntoIter<Cell>,
    place: &'p str,
}

impl Cells<'_> {
    fn strange(&self, what: &str) -> cuebook::Error {
        let hint = "it was changed from outside, or by a Cuebook that this one does not know";
        error::failed(self.place, &format!("there is {what} in its tables"), hint)
    }

    fn next(&mut self) -> Cell {
        self.cells.next().unwrap_or(Cell::Null)
    }

    fn text_opt(&mut self) -> Result<Option<String>> {
        match self.next() {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            Cell::Int(_) => Err(self.strange("a number instead of a text")),
        }
    }

    fn text(&mut self) -> Result<String> {
        self.text_opt()?.ok_or_else(|| self.strange("nothing instead of a text"))
    }

    fn int_opt(&mut self) -> Result<Option<i64>> {
        match self.next() {
            Cell::Null => Ok(None),
            Cell::Int(number) => Ok(Some(number)),
            Cell::Text(_) => Err(self.strange("a text instead of a number")),
        }
    }

    fn int(&mut self) -> Result<i64> {
        self.int_opt()?.ok_or_else(|| self.strange("nothing instead of a number"))
    }

    fn money(&mut self) -> Result<Money> {
        self.int().map(Money::from_nanos)
    }

    fn moment_opt(&mut self) -> Result<Option<Timestamp>> {
        let Some(micros) = self.int_opt()? else { return Ok(None) };
        Timestamp::from_microsecond(micros)
            .map(Some)
            .map_err(|_| self.strange("a moment outside of all time"))
    }

    fn moment(&mut self) -> Result<Timestamp> {
        self.moment_opt()?.ok_or_else(|| self.strange("nothing instead of a moment"))
    }
}
