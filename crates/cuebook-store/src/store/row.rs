//! A thread's row: what the registry says of it, and its account.

use std::sync::{LazyLock, OnceLock};
use std::time::Duration;

use cuebook_text::Result;
use jiff::Timestamp;

use super::LogKey;
use super::sql::{Cell, Sql};
use super::{Account, Authenticity, Cost, Holder, Record, error};
use crate::money::Money;
use crate::record::{Event, Kind, Status, ThreadId};

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
    "log_key",
    "seal",
];

/// Columns that the seal does not cover: anybody may ask a thread to stop, and these moments grant nothing.
const UNSEALED: &[&str] = &["updated_at", "completed_at", "taken_at", "cancel", "seal"];

/// The cells that the seal covers, of cells in the order of the columns.
fn sealed(cells: &[Cell]) -> impl Iterator<Item = &Cell> {
    let columns = FIXED.iter().chain(MUTABLE);
    cells.iter().zip(columns).filter(|(_, column)| !UNSEALED.contains(column)).map(|(cell, _)| cell)
}

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
    /// The id of the key that authenticates it; none in a row of an earlier version.
    pub(crate) log_key: Option<String>,
}

impl Row {
    /// The row that these cells are. One that cannot be understood is a damaged row, so that it does not hide the others.
    pub(crate) fn read(cells: Vec<Cell>, key: Option<&LogKey>) -> Row {
        let known = (cells.first().cloned(), cells.get(1).cloned(), cells.get(3).cloned());
        let seal = key.map(|key| key.seal(sealed(&cells)));
        match Row::understood(cells) {
            Ok((mut row, stored)) => {
                row.record.authenticity = match (&row.log_key, key) {
                    (None, _) => Authenticity::Old,
                    (Some(id), Some(key)) if id == key.id() && seal == stored => Authenticity::Own,
                    (Some(id), Some(key)) if id == key.id() => {
                        Authenticity::Damaged("another program changed its row in the registry".to_owned())
                    }
                    (Some(_), _) => Authenticity::Foreign,
                };
                row
            }
            Err(why) => Row::damaged(known, why),
        }
    }

    /// What is left of a row that cannot be understood: its name, if it has one.
    fn damaged((id, prompt, created): (Option<Cell>, Option<Cell>, Option<Cell>), why: String) -> Row {
        let text = |cell: Option<Cell>| match cell {
            Some(Cell::Text(text)) => text,
            _ => String::new(),
        };
        let id = ThreadId::known(text(id));
        let created_at = match created {
            Some(Cell::Int(micros)) => Timestamp::from_microsecond(micros).unwrap_or_default(),
            _ => Timestamp::default(),
        };
        let account = Account {
            id: id.clone(),
            parent: None,
            limit: Money::ZERO,
            spent: Money::ZERO,
            children: Money::ZERO,
            held: Money::ZERO,
            reserved: Money::ZERO,
            settled: false,
        };
        let record = Record {
            id,
            prompt: text(prompt),
            parent: None,
            status: Status::Error,
            created_at,
            updated_at: created_at,
            completed_at: None,
            holder: None,
            beat_at: None,
            cancel: false,
            model: None,
            cost: Cost::default(),
            spawned: 0,
            result: None,
            continuation_of: None,
            continued_by: None,
            last: (0, String::new()),
            authenticity: Authenticity::Damaged(format!("its row in the registry has {why}")),
        };
        Row { record, account, claim: Money::ZERO, open: 0, taken_at: None, log_key: None }
    }

    /// The row that these cells are, and its seal as it is stored.
    fn understood(cells: Vec<Cell>) -> Result<(Row, Option<String>), String> {
        let mut cells = Cells(cells.into_iter());
        let id = ThreadId::known(cells.text()?);
        let prompt = cells.text()?;
        let parent = cells.text_opt()?.map(ThreadId::known);
        let created_at = cells.moment()?;
        let continuation_of = cells.text_opt()?.map(ThreadId::known);
        let word = cells.text()?;
        let status = Status::named(&word).ok_or_else(|| format!("the unknown status `{word}`"))?;
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
            Some(Err(_)) => return Err("a result that is not JSON".to_owned()),
        };
        let continued_by = cells.text_opt()?.map(ThreadId::known);
        let last = (count(cells.int()?), cells.text()?);
        let limit = cells.money()?;
        let (spent, children, held, reserved) =
            (cells.money()?, cells.money()?, cells.money()?, cells.money()?);
        cost.spend = spent;
        let (claim, open, settled) = (cells.money()?, count(cells.int()?), cells.int()? != 0);
        let (log_key, seal) = (cells.text_opt()?, cells.text_opt()?);
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
            authenticity: Authenticity::Old,
        };
        Ok((Row { record, account, claim, open, taken_at, log_key }, seal))
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
            self.log_key.as_deref().into(),
        ]
    }

    /// All cells, the last of them the seal. A row of an earlier version has none.
    fn cells(&self, key: Option<&LogKey>) -> Vec<Cell> {
        let mut cells = [self.fixed(), self.mutable()].concat();
        let key = key.filter(|key| self.log_key.as_deref() == Some(key.id()));
        cells.push(key.map(|key| Cell::Text(key.seal(sealed(&cells)))).into());
        cells
    }

    /// Writes a new row. Says `false` if the name is taken.
    pub(crate) fn insert(&self, sql: &mut dyn Sql, key: Option<&LogKey>) -> Result<bool> {
        Ok(sql.run(&INSERT, &self.cells(key))? == 1)
    }

    pub(crate) fn indexed(&self) -> Indexed {
        let host = self.record.holder.as_ref().map(|holder| holder.host.clone());
        Indexed { status: self.record.status, host }
    }

    /// Writes what has changed of a row that was read before, and was found by this then.
    pub(crate) fn update(
        &self,
        sql: &mut dyn Sql,
        found: Option<&Indexed>,
        key: Option<&LogKey>,
    ) -> Result<()> {
        let mut cells = self.cells(key).split_off(FIXED.len());
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

/// `SELECT … FROM cuebook_events` for [`read_event`]. The payload of an event that is too large is not read.
pub(crate) static SELECT_EVENTS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT seq, at, kind, octet_length(payload), \
         CASE WHEN octet_length(payload) <= {LARGEST_EVENT} THEN payload END, hash FROM cuebook_events"
    )
});

/// The event that these cells are: number, moment, kind, bytes of the payload, payload, hash.
pub(crate) fn read_event(thread: &ThreadId, cells: Vec<Cell>) -> Result<Event> {
    let mut cells = Cells(cells.into_iter());
    let seq = cells.int().map(count).map_err(|why| error::broken(thread, 0, &format!("it has {why}")))?;
    let broken = |why: String| error::broken(thread, seq, &format!("it has {why}"));
    let (at, word) = cells.moment().and_then(|at| Ok((at, cells.text()?))).map_err(broken)?;
    let bytes = cells.int().map_err(broken)?;
    if bytes > LARGEST_EVENT as i64 {
        return Err(broken(format!("{bytes} bytes; the limit is {LARGEST_EVENT}")));
    }
    let (text, hash) = cells.text().and_then(|text| Ok((text, cells.text()?))).map_err(broken)?;
    let kind = Kind::named(&word).ok_or_else(|| broken(format!("the unknown kind `{word}`")))?;
    let payload = serde_json::from_str(&text).map_err(|_| broken("a payload that is not JSON".to_owned()))?;
    Ok(Event { seq, at, kind, payload, text, hash })
}

/// The most bytes of an event's payload. Results of tools and answers of models are smaller.
pub(crate) const LARGEST_EVENT: usize = 128 << 20;

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

/// Cells one after the other. An error says what there is instead of what a column holds.
struct Cells(std::vec::IntoIter<Cell>);

impl Cells {
    fn next(&mut self) -> Cell {
        self.0.next().unwrap_or(Cell::Null)
    }

    fn text_opt(&mut self) -> Result<Option<String>, String> {
        match self.next() {
            Cell::Null => Ok(None),
            Cell::Text(text) => Ok(Some(text)),
            Cell::Int(_) => Err("a number instead of a text".to_owned()),
            Cell::Other(kind) => Err(format!("a value of the type {kind} instead of a text")),
        }
    }

    fn text(&mut self) -> Result<String, String> {
        self.text_opt()?.ok_or_else(|| "nothing instead of a text".to_owned())
    }

    fn int_opt(&mut self) -> Result<Option<i64>, String> {
        match self.next() {
            Cell::Null => Ok(None),
            Cell::Int(number) => Ok(Some(number)),
            Cell::Text(_) => Err("a text instead of a number".to_owned()),
            Cell::Other(kind) => Err(format!("a value of the type {kind} instead of a number")),
        }
    }

    fn int(&mut self) -> Result<i64, String> {
        self.int_opt()?.ok_or_else(|| "nothing instead of a number".to_owned())
    }

    fn money(&mut self) -> Result<Money, String> {
        self.int().map(Money::from_nanos)
    }

    fn moment_opt(&mut self) -> Result<Option<Timestamp>, String> {
        let Some(micros) = self.int_opt()? else { return Ok(None) };
        Timestamp::from_microsecond(micros).map(Some).map_err(|_| "a time out of range".to_owned())
    }

    fn moment(&mut self) -> Result<Timestamp, String> {
        self.moment_opt()?.ok_or_else(|| "nothing instead of a time".to_owned())
    }
}
