//! Threads in a PostgreSQL database, which several machines share.
//!
//! Rows that a transaction changes are locked before they are read, so two processes never count on the same money; where they
//! get into each other's way, one of them begins its transaction anew. A connection that broke is replaced. What was sent to be
//! committed when it broke is not sent again, because it may have arrived.

use std::collections::HashMap;
use std::error::Error as _;
use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuebook_text::{Error, Result};
use jiff::{SignedDuration, Timestamp};
use postgres::config::SslMode;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator as _;
use postgres::types::private::BytesMut;
use postgres::types::{FromSql, IsNull, ToSql, Type, WrongType};
use postgres::{Client, Config, NoTls, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::LogKey;
use super::address::{Address, tls};
use super::book::Book;
use super::pool::{ConnectionState, Pool};
use super::sql::{Cell, Sql, Tables};
use super::{error, schema};

/// A store in a PostgreSQL database.
pub type PostgresStore = Book<Postgres>;

/// How many connections a process has at most.
const CONNECTIONS: usize = 16;
/// For how long a server that was there is looked for again, e.g. while it is started anew.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often a transaction that got into another one's way begins anew.
const TRIES: u32 = 50;
/// The lock under which workers with limits choose threads: `cueque` in numbers.
const CLAIM_LOCK: i64 = 0x0063_7565_7175_6575;
/// What wakes workers.
const CHANNEL: &str = "cuebook_queue";
/// How long a worker waits that cannot listen.
const DEAF: Duration = Duration::from_millis(500);
/// The lock under which tables are made: `cuebook` in numbers.
const MIGRATION_LOCK: i64 = 0x0063_7565_626f_6f6b;

/// What every connection says first. A process that stops or a machine that vanishes in the middle of a transaction must not keep its
/// locks: others take its threads over within ten seconds. Our transactions wait for nothing but the server. What was committed must
/// be on the disk, and no statement of ours may run for ever. An address with `options` may set its own times.
const GREETING: &str = "SET idle_in_transaction_session_timeout = '5s'; \
    SELECT set_config('statement_timeout', '60s', false) WHERE current_setting('statement_timeout') = '0'; \
    SELECT set_config('lock_timeout', '10s', false) WHERE current_setting('lock_timeout') = '0'; \
    SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'";
/// For how long transactions that wait for each other's locks are tried again.
const LOCKED: Duration = Duration::from_secs(60);

impl Book<Postgres> {
    /// Connects to a database, and makes its tables if there are none.
    ///
    /// # Errors
    ///
    /// `CB724` if it cannot be reached or used, or its tables are of a newer version. The password is never part of an error.
    pub fn connect(url: &str, key: Result<LogKey>) -> Result<PostgresStore> {
        Ok(Book::over(Postgres::connect(url)?, key))
    }
}

/// Tables in a PostgreSQL database.
pub struct Postgres {
    config: Config,
    tls: MakeRustlsConnect,
    /// The address without its password.
    name: String,
    pool: Pool<Line>,
    /// The connection that hears when there is work.
    listener: Mutex<Option<Client>>,
    /// By how many microseconds the server's clock is ahead of ours.
    ahead: AtomicI64,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Postgres {
    fn connect(url: &str) -> Result<Postgres> {
        let Address { config, roots, name } = Address::read(url)?;
        let tls = tls(&name, roots.as_deref())?;
        let postgres = Postgres {
            config,
            tls,
            name,
            pool: Pool::new(CONNECTIONS),
            listener: Mutex::default(),
            ahead: AtomicI64::new(0),
        };
        postgres.pool.with(
            || postgres.line(),
            |line| {
                let migrated = line.migrate();
                let keep = line.keep();
                (migrated, keep)
            },
        )??;
        Ok(postgres)
    }

    /// A new connection.
    fn line(&self) -> Result<Line> {
        let open = || -> std::result::Result<(Client, i64), postgres::Error> {
            let mut client = match self.config.connect(self.tls.clone()) {
                // A client that prefers privacy without insisting takes what is offered.
                Err(error) if self.config.get_ssl_mode() == SslMode::Prefer && is_about_tls(&error) => {
                    self.config.clone().ssl_mode(SslMode::Disable).connect(NoTls)?
                }
                answer => answer?,
            };
            client.batch_execute(GREETING)?;
            let before = Timestamp::now().as_microsecond();
            let row =
                client.query_one("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint", &[])?;
            let after = Timestamp::now().as_microsecond();
            Ok((client, row.get::<_, i64>(0) - (before + after) / 2))
        };
        let (client, ahead) = open().map_err(|error| failed(&self.name, &error))?;
        self.ahead.store(ahead, Ordering::Relaxed);
        Ok(Line { client, name: self.name.clone(), statements: HashMap::new(), trouble: None })
    }

    /// Does something with a connection, and again if that can help.
    fn with<T>(&self, job: impl Fn(&mut Line) -> Result<T>) -> Result<T> {
        let began = Instant::now();
        let mut tries = 0;
        loop {
            let answer = self.pool.with(
                || self.line(),
                |line| {
                    line.trouble = None;
                    let answer = job(line);
                    let keep = line.keep();
                    ((answer, line.trouble), keep)
                },
            );
            tries += 1;
            match answer {
                Ok((Err(_), Some(StatementFailure::InTheWay)))
                    if tries < TRIES && began.elapsed() < LOCKED =>
                {
                    std::thread::sleep(pause(tries));
                }
                // The others are most likely broken too.
                Ok((Err(_), Some(StatementFailure::Broken))) if began.elapsed() < PATIENCE => {
                    self.pool.forget_idle();
                    std::thread::sleep(pause(tries));
                }
                Err(_) if began.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(250)),
                Ok((answer, _)) => return answer,
                Err(error) => return Err(error),
            }
        }
    }
}

/// Longer each time, and not the same for two that met.
fn pause(tries: u32) -> Duration {
    let mut byte = [0_u8; 1];
    let _ = getrandom::fill(&mut byte);
    Duration::from_micros(u64::from(tries.min(20)) * (200 + 10 * u64::from(byte[0])))
}

impl Tables for Postgres {
    fn write<T: Send + 'static>(
        &self,
        job: impl Fn(&mut dyn Sql) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.with(|line| {
            line.batch("BEGIN ISOLATION LEVEL READ COMMITTED")?;
            match job(line) {
                Ok(answer) => line.commit().map(|()| answer),
                Err(error) => {
                    if line.trouble != Some(StatementFailure::Broken) {
                        // Why it failed is what matters; if this fails too, the connection is not kept.
                        let why = line.trouble;
                        if line.batch("ROLLBACK").is_ok() {
                            line.trouble = why;
                        }
                    }
                    Err(error)
                }
            }
        })
    }

    fn read<T>(&self, job: impl Fn(&mut dyn Sql) -> Result<T>) -> Result<T> {
        self.with(|line| job(line))
    }

    fn run_alone(&self, statement: &'static str, values: Vec<Cell>) -> Result<u64> {
        self.with(|line| line.run(statement, &values))
    }

    fn now(&self) -> Timestamp {
        shifted(Timestamp::now(), self.ahead.load(Ordering::Relaxed))
    }

    fn here(&self, at: Timestamp) -> Timestamp {
        shifted(at, self.ahead.load(Ordering::Relaxed).saturating_neg())
    }

    fn wait_for_work(&self, most: Duration) {
        let mut listener = self.listener.lock().unwrap_or_else(PoisonError::into_inner);
        if listener.is_none() {
            let listening = self.line().and_then(|mut line| {
                line.batch(&format!("LISTEN {CHANNEL}"))?;
                Ok(line.client)
            });
            match listening {
                // What was queued before it listened is looked for first.
                Ok(client) => *listener = Some(client),
                // The next statement reports why the server cannot be used.
                Err(_) => std::thread::sleep(DEAF.min(most)),
            }
            return;
        }
        let Some(client) = listener.as_mut() else { return };
        let mut hear = || -> std::result::Result<(), postgres::Error> {
            let mut notifications = client.notifications();
            notifications.timeout_iter(most).next()?;
            // Many threads that were queued at once are one reason to look.
            notifications.iter().count().map(drop)
        };
        if hear().is_err() || client.is_closed() {
            *listener = None;
        }
    }
}

fn shifted(at: Timestamp, micros: i64) -> Timestamp {
    at.checked_add(SignedDuration::from_micros(micros)).unwrap_or(at)
}

/// What went wrong, if something else than the answer matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StatementFailure {
    /// Two transactions got into each other's way, and nothing was done.
    InTheWay,
    /// The connection broke, and nothing was done.
    Broken,
    /// The connection broke when all was done, and it is unknown whether it was.
    Unknown,
}

/// A connection.
struct Line {
    client: Client,
    name: String,
    statements: HashMap<String, Statement>,
    trouble: Option<StatementFailure>,
}

impl Line {
    fn keep(&self) -> ConnectionState {
        match self.trouble {
            None | Some(StatementFailure::InTheWay) if !self.client.is_closed() => ConnectionState::Yes,
            _ => ConnectionState::No,
        }
    }

    fn failed(&mut self, error: &postgres::Error) -> Error {
        if is_in_the_way(error) {
            self.trouble = Some(StatementFailure::InTheWay);
        } else if is_broken(error) || self.client.is_closed() {
            self.trouble = Some(StatementFailure::Broken);
        }
        failed(&self.name, error)
    }

    fn batch(&mut self, statement: &str) -> Result<()> {
        self.client.batch_execute(statement).map_err(|error| self.failed(&error))
    }

    fn commit(&mut self) -> Result<()> {
        let answer = self.batch("COMMIT");
        if self.trouble == Some(StatementFailure::Broken) {
            self.trouble = Some(StatementFailure::Unknown);
            let why = "the connection broke during a commit, so it is unknown whether the change was saved";
            return Err(error::failed(&self.name, why, "check the thread before you resume it"));
        }
        answer
    }

    fn prepared(&mut self, statement: &str) -> std::result::Result<Statement, postgres::Error> {
        if let Some(prepared) = self.statements.get(statement) {
            return Ok(prepared.clone());
        }
        let prepared = self.client.prepare(statement)?;
        self.statements.insert(statement.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Brings the tables to the present version, one process at a time.
    fn migrate(&mut self) -> Result<()> {
        if self.version()? == Some(schema::version() as i64) {
            return Ok(());
        }
        // A step may go through large tables, and others wait until it is done.
        self.batch(&format!(
            "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; \
             SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
        ))?;
        let version = self.version()?;
        let before = version.unwrap_or_default();
        if !(0..=schema::version() as i64).contains(&before) {
            self.batch("ROLLBACK")?;
            return Err(error::newer(&self.name, before, schema::version()));
        }
        if version.is_none() {
            self.batch(
                "CREATE TABLE cuebook_schema (version BIGINT NOT NULL); INSERT INTO cuebook_schema VALUES (0)",
            )?;
        }
        for step in schema::STEPS.iter().skip(usize::try_from(before).unwrap_or(usize::MAX)) {
            step.iter().try_for_each(|statement| self.batch(statement))?;
        }
        self.batch(&format!("UPDATE cuebook_schema SET version = {}; COMMIT", schema::version()))
    }

    fn version(&mut self) -> Result<Option<i64>> {
        // The catalogue itself is asked: what the server remembers of names can be older than the lock that we waited for.
        let known = "SELECT relname::text FROM pg_catalog.pg_class \
                     WHERE relname = 'cuebook_schema' AND pg_catalog.pg_table_is_visible(oid)";
        if self.rows(known, &[])?.is_empty() {
            return Ok(None);
        }
        match self.rows("SELECT version FROM cuebook_schema", &[])?.first().and_then(|row| row.first()) {
            Some(Cell::Int(version)) => Ok(Some(*version)),
            _ => Ok(None),
        }
    }
}

impl Sql for Line {
    fn rows(&mut self, statement: &str, values: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let mut ask = || -> std::result::Result<Vec<Vec<Cell>>, postgres::Error> {
            let statement = self.prepared(statement)?;
            let rows = self.client.query(&statement, &values)?;
            rows.iter().map(|row| (0..row.len()).map(|column| row.try_get(column)).collect()).collect()
        };
        ask().map_err(|error| self.failed(&error))
    }

    fn run(&mut self, statement: &str, values: &[Cell]) -> Result<u64> {
        let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|value| value as _).collect();
        let mut run = || -> std::result::Result<u64, postgres::Error> {
            let statement = self.prepared(statement)?;
            self.client.execute(&statement, &values)
        };
        run().map_err(|error| self.failed(&error))
    }

    fn for_update(&self) -> &'static str {
        " FOR UPDATE"
    }

    fn skip_locked(&self) -> &'static str {
        " FOR UPDATE SKIP LOCKED"
    }

    fn one_at_a_time(&mut self) -> Result<()> {
        self.rows("SELECT pg_advisory_xact_lock($1)", &[CLAIM_LOCK.into()]).map(drop)
    }

    fn wake_workers(&mut self) -> Result<()> {
        self.rows("SELECT pg_notify($1, '')", &[CHANNEL.into()]).map(drop)
    }

    fn place(&self) -> &str {
        &self.name
    }
}

type Boxed = Box<dyn std::error::Error + Sync + Send>;

impl ToSql for Cell {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> std::result::Result<IsNull, Boxed> {
        match self {
            Cell::Null => Ok(IsNull::Yes),
            Cell::Int(number) => number.to_sql(ty, out),
            Cell::Text(text) => text.to_sql(ty, out),
            // Nothing writes what it could not read.
            Cell::Other(_) => Ok(IsNull::Yes),
        }
    }

    fn accepts(ty: &Type) -> bool {
        <i64 as ToSql>::accepts(ty) || <String as ToSql>::accepts(ty)
    }

    postgres::types::to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> std::result::Result<Cell, Boxed> {
        if <i64 as FromSql<'_>>::accepts(ty) {
            return i64::from_sql(ty, raw).map(Cell::Int);
        }
        // `octet_length` has this type.
        if <i32 as FromSql<'_>>::accepts(ty) {
            return i32::from_sql(ty, raw).map(i64::from).map(Cell::Int);
        }
        if <String as FromSql<'_>>::accepts(ty) {
            return String::from_sql(ty, raw).map(Cell::Text);
        }
        Ok(Cell::Other(ty.name().to_owned()))
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Cell, Boxed> {
        Ok(Cell::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

fn is_in_the_way(error: &postgres::Error) -> bool {
    let states =
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    error.code().is_some_and(|state| states.contains(state))
}

fn is_broken(error: &postgres::Error) -> bool {
    let states = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT,
    ];
    error.is_closed()
        || error.code().is_some_and(|state| states.contains(state))
        || error.source().is_some_and(|source| source.is::<std::io::Error>())
}

/// Whether it was the privacy of a connection that failed, and not the server.
fn is_about_tls(error: &postgres::Error) -> bool {
    error.to_string().contains("TLS")
}

/// What PostgreSQL says, with a way out.
fn failed(name: &str, error: &postgres::Error) -> Error {
    let why = match (error.as_db_error(), error.source()) {
        (Some(error), _) => error.message().to_owned(),
        (None, Some(source)) if source.is::<WrongType>() => "a column has the wrong type".to_owned(),
        (None, Some(source)) => format!("{error}: {source}"),
        (None, None) => error.to_string(),
    };
    let hint = match error.code() {
        Some(&SqlState::INVALID_PASSWORD | &SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
            "check user and password in the address; in a password, write `@`, `/` and `%` as %40, %2F and %25"
        }
        Some(&SqlState::INVALID_CATALOG_NAME) => "create the database first: `createdb NAME`",
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => "grant the user the right to create and change tables",
        Some(&SqlState::READ_ONLY_SQL_TRANSACTION) => "name the primary server, not a replica",
        Some(&SqlState::QUERY_CANCELED) => {
            "the statement took too long: check the load of the server, and try again"
        }
        Some(&SqlState::UNDEFINED_COLUMN | &SqlState::UNDEFINED_FUNCTION | &SqlState::DATATYPE_MISMATCH) => {
            "another program changed the tables: restore them from a backup, or name another database"
        }
        _ if error.source().is_some_and(|source| source.is::<WrongType>()) => {
            "another program changed the tables: restore them from a backup, or name another database"
        }
        Some(&SqlState::DISK_FULL) => "free space on the server's disk, then resume the thread",
        Some(&SqlState::TOO_MANY_CONNECTIONS) => {
            "the server accepts no more connections: raise its `max_connections`"
        }
        _ if is_about_tls(error) => {
            "the server's certificate must come from a known authority: name yours with `sslrootcert=FILE`"
        }
        None => "check that the server runs and that this machine can reach it",
        Some(_) => "read the server's log",
    };
    error::failed(name, &why, hint)
}
