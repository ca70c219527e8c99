//! Threads in a SQLite file: one file next to a project, shared by every process that works there.
//!
//! The file is in WAL mode and every commit waits for the disk, so what was written is there after a crash of the machine.
//! One connection writes, for all threads of this process together; a few others read.
//!
//! A file can come with a project of another author. Only files with exactly our tables are used, no trigger or view of
//! theirs ever runs, and a statement that takes too long is interrupted.

use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use cuebook_text::{Error, Result};
use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params_from_iter};

use super::LogKey;
use super::book::Book;
use super::checkpoint::{Checkpoints, FAR_TOO_LONG};
use super::group::{Group, Task};
use super::pool::{ConnectionState, Pool};
use super::sql::{Cell, Sql, Tables};
use super::{error, schema};

/// A store in a SQLite file.
pub type SqliteStore = Book<Sqlite>;

/// How many threads read at once.
const READERS: usize = 4;
/// Tells our files from those of others: `CUEB`.
const APPLICATION: i64 = 0x4355_4542;
/// How many prepared statements a connection keeps.
const STATEMENTS: usize = 64;
/// How long a transaction may compute. Ours take milliseconds.
const LONGEST: Duration = Duration::from_secs(60);
/// How often a worker looks whether there is work.
const LOOK: Duration = Duration::from_millis(100);
/// How many steps of SQLite's machine pass between two looks at the clock.
const STEPS_BETWEEN_LOOKS: i32 = 100_000;

impl Book<Sqlite> {
    /// Opens a file, or makes it. A folder that is missing is made, with a `.gitignore` that keeps it out of repositories.
    ///
    /// # Errors
    ///
    /// `CB724` if the file cannot be used, or is of a newer version.
    pub fn open(path: &Path, key: Result<LogKey>) -> Result<SqliteStore> {
        Ok(Book::over(Sqlite::open(path)?, key))
    }

    /// A store without threads in the place of a file that is not there, for those who only look.
    #[doc(hidden)]
    pub fn nothing(path: &Path, key: Result<LogKey>) -> Result<SqliteStore> {
        Ok(Book::over(Sqlite::nothing(path)?, key))
    }
}

/// Tables in a SQLite file.
pub struct Sqlite {
    path: PathBuf,
    /// The path, for errors.
    name: String,
    writer: Group<TimedConnection>,
    readers: Pool<TimedConnection>,
    checkpoints: Checkpoints,
    /// Whether there is such a file. Where it is missing, nothing is in it, and every connection has its own nothing.
    is_there: bool,
}

/// A connection whose statements are interrupted when they take too long.
struct TimedConnection {
    connection: Connection,
    /// When the present transaction has taken too long, in milliseconds since [`START`].
    until: Arc<AtomicU64>,
}

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

fn millis() -> u64 {
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

impl TimedConnection {
    fn over(mut connection: Connection) -> rusqlite::Result<TimedConnection> {
        let until = Arc::new(AtomicU64::new(u64::MAX));
        let limit = Arc::clone(&until);
        let is_over = move || millis() > limit.load(Ordering::Relaxed);
        connection.progress_handler(STEPS_BETWEEN_LOOKS, Some(is_over))?;
        Ok(TimedConnection { connection, until })
    }

    /// A transaction begins now.
    fn begin(&self) {
        let longest = u64::try_from(LONGEST.as_millis()).unwrap_or(u64::MAX);
        self.until.store(millis().saturating_add(longest), Ordering::Relaxed);
    }
}

impl Deref for TimedConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Sqlite {
    fn open(path: &Path) -> Result<Sqlite> {
        let name = path.display().to_string();
        // A path is a path: SQLite has names of its own that mean something else.
        let path = std::path::absolute(path)
            .map_err(|error| error::failed(&name, &error.to_string(), "name a file"))?;
        make_folder(&path, &name)?;
        create_private(&path);
        let mut connection = connect(&path, &name)?;
        connection.begin();
        prepare(&mut connection.connection, &name)?;
        tighten(&path, &name);
        let checkpoints = Checkpoints::of(path.clone());
        let (writer, readers) = (Group::new(connection), Pool::new(READERS));
        Ok(Sqlite { path, name, writer, readers, checkpoints, is_there: true })
    }

    fn nothing(path: &Path) -> Result<Sqlite> {
        let name = path.display().to_string();
        let writer = Group::new(timed(empty(&name)?, &name)?);
        let checkpoints = Checkpoints::of(path.to_owned());
        let (path, readers) = (path.to_owned(), Pool::new(READERS));
        Ok(Sqlite { path, name, writer, readers, checkpoints, is_there: false })
    }

    fn reader(&self) -> Result<TimedConnection> {
        let connection = match self.is_there {
            true => connect(&self.path, &self.name)?,
            false => timed(empty(&self.name)?, &self.name)?,
        };
        connection.pragma_update(None, "query_only", true).map_err(|error| failed(&self.name, &error))?;
        Ok(connection)
    }
}

impl Tables for Sqlite {
    fn write<T: Send + 'static>(
        &self,
        job: impl Fn(&mut dyn Sql) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.writer.write(&self.name, job, |connection, tasks| {
            connection.begin();
            match together(connection, &self.name, tasks) {
                Ok(()) if self.is_there => self.checkpoints.count(),
                Ok(()) => {}
                Err(error) => {
                    let error = failed(&self.name, &error);
                    tasks.iter_mut().for_each(|task| task.fail(&error));
                }
            }
        })
    }

    fn read<T>(&self, job: impl Fn(&mut dyn Sql) -> Result<T>) -> Result<T> {
        self.readers.with(
            || self.reader(),
            |connection| {
                connection.begin();
                (job(&mut Line { connection, name: &self.name }), ConnectionState::Yes)
            },
        )?
    }

    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    fn here(&self, at: Timestamp) -> Timestamp {
        at
    }

    fn wait_for_work(&self, most: Duration) {
        std::thread::sleep(most.min(LOOK));
    }
}

/// Does many jobs in one transaction. One that fails leaves nothing behind and does not disturb the others. An error means
/// that none of them happened.
fn together(connection: &Connection, name: &str, tasks: &mut [&mut dyn Task]) -> rusqlite::Result<()> {
    let run = |statement: &str| connection.prepare_cached(statement)?.execute([]).map(drop);
    if !connection.is_autocommit() {
        // The run was stopped in the middle.
        run("ROLLBACK")?;
    }
    run("BEGIN IMMEDIATE")?;
    let alone = tasks.len() == 1;
    let mut done = || {
        for task in tasks.iter_mut() {
            if !alone {
                run("SAVEPOINT job")?;
            }
            let well = task.run(&mut Line { connection, name });
            if connection.is_autocommit() {
                // A full disk and the like roll everything back by themselves; the next statement says why.
                return if alone { Ok(false) } else { Err(rolled_back()) };
            }
            match (well, alone) {
                (true, true) => {}
                (false, true) => {
                    run("ROLLBACK")?;
                    return Ok(false);
                }
                (true, false) => run("RELEASE job")?,
                (false, false) => {
                    run("ROLLBACK TO job")?;
                    run("RELEASE job")?;
                }
            }
        }
        Ok(true)
    };
    match done() {
        Ok(true) => run("COMMIT").inspect_err(|_| drop(run("ROLLBACK"))),
        Ok(false) => Ok(()),
        Err(error) => {
            if !connection.is_autocommit() {
                run("ROLLBACK")?;
            }
            Err(error)
        }
    }
}

fn rolled_back() -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_ABORT_ROLLBACK);
    rusqlite::Error::SqliteFailure(
        code,
        Some("a transaction that several threads share was rolled back".to_owned()),
    )
}

/// Statements of a connection.
struct Line<'c> {
    connection: &'c Connection,
    name: &'c str,
}

impl Line<'_> {
    fn try_rows(&self, statement: &str, values: &[Cell]) -> rusqlite::Result<Vec<Vec<Cell>>> {
        let mut statement = self.connection.prepare_cached(statement)?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(values))?;
        let mut found = Vec::new();
        while let Some(row) = rows.next()? {
            found.push(
                (0..columns).map(|column| Ok(cell(row.get_ref(column)?))).collect::<rusqlite::Result<_>>()?,
            );
        }
        Ok(found)
    }
}

impl Sql for Line<'_> {
    fn rows(&mut self, statement: &str, values: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        self.try_rows(statement, values).map_err(|error| failed(self.name, &error))
    }

    fn run(&mut self, statement: &str, values: &[Cell]) -> Result<u64> {
        let run = || self.connection.prepare_cached(statement)?.execute(params_from_iter(values));
        run().map(|changed| changed as u64).map_err(|error| failed(self.name, &error))
    }

    fn for_update(&self) -> &'static str {
        ""
    }

    fn place(&self) -> &str {
        self.name
    }
}

fn cell(value: ValueRef<'_>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(number) => Cell::Int(number),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cell::Text(text.to_owned()),
            Err(_) => Cell::Other("text that is not UTF-8".to_owned()),
        },
        ValueRef::Real(_) => Cell::Other("real".to_owned()),
        ValueRef::Blob(_) => Cell::Other("blob".to_owned()),
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Cell::Null => ValueRef::Null,
            Cell::Int(number) => ValueRef::Integer(*number),
            Cell::Text(text) => ValueRef::Text(text.as_bytes()),
            // Nothing writes what it could not read.
            Cell::Other(_) => ValueRef::Null,
        }))
    }
}

fn make_folder(path: &Path, name: &str) -> Result<()> {
    let Some(folder) = path.parent().filter(|folder| !folder.is_dir()) else { return Ok(()) };
    let make = || -> std::io::Result<()> {
        if let Some(above) = folder.parent() {
            std::fs::create_dir_all(above)?;
        }
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        match builder.create(folder) {
            Ok(()) => std::fs::write(folder.join(".gitignore"), "*\n"),
            // Another process was faster, and writes the file.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            Err(error) => Err(error),
        }
    };
    make().map_err(|error| {
        error::failed(
            name,
            &format!("cannot create its directory: {error}"),
            "name a file in a directory that you can write to",
        )
    })
}

/// Makes the file, if it is missing, so that only its owner can read it. SQLite gives the files beside it the same mode. What keeps
/// it from being made is reported by SQLite.
fn create_private(path: &Path) {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    drop(options.open(path));
}

/// Takes a store that an earlier version made from other users: its logs hold what was said.
#[cfg(unix)]
fn tighten(path: &Path, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    for end in ["", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(end);
        let is_open = |metadata: &std::fs::Metadata| metadata.permissions().mode() & 0o077 != 0;
        if !std::fs::metadata(&file).is_ok_and(|metadata| is_open(&metadata)) {
            continue;
        }
        if let Err(error) = std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)) {
            // Only its owner can change that, and a store of another owner can still be used.
            tracing::warn!(%error, store = name, "other users can read the store of threads");
        }
    }
}

#[cfg(not(unix))]
fn tighten(_: &Path, _: &str) {}

fn timed(connection: Connection, name: &str) -> Result<TimedConnection> {
    TimedConnection::over(connection).map_err(|error| failed(name, &error))
}

fn connect(path: &Path, name: &str) -> Result<TimedConnection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_handler(Some(wait))?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
        connection.set_prepared_statement_cache_capacity(STATEMENTS);
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "wal_autocheckpoint", FAR_TOO_LONG)?;
        // Where the system's own way to wait for the disk does not.
        connection.pragma_update(None, "fullfsync", true)?;
        TimedConnection::over(connection)
    };
    open().map_err(|error| failed(name, &error))
}

/// Waits for another process: often and shortly at first, because most transactions take less than a millisecond. In all it
/// is about half a minute.
fn wait(tries: i32) -> bool {
    std::thread::sleep(if tries < 50 { Duration::from_micros(200) } else { Duration::from_millis(2) });
    tries < 15_000
}

/// Brings a file to the present version.
fn prepare(connection: &mut Connection, name: &str) -> Result<()> {
    let version = known_version(connection, name)?;
    let wal = || -> rusqlite::Result<String> {
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
    };
    // SQLite does not wait by itself if two processes want to change the mode at once.
    let mut tries = 0;
    let mode = loop {
        match wal() {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && wait(tries) => {
                tries += 1
            }
            answer => break answer.map_err(|error| failed(name, &error))?,
        }
    };
    if !mode.eq_ignore_ascii_case("wal") {
        let why = format!("its journal is in `{mode}` mode, but Cuebook needs WAL mode");
        return Err(error::failed(name, &why, "put it on a local disk, or use PostgreSQL"));
    }
    if version != schema::version() as i64 {
        migrate(connection).map_err(|error| failed(name, &error))?;
        known_version(connection, name)?;
    }
    check_tables(connection, name)
}

/// Checks that the tables of a file are exactly those that the steps make.
fn check_tables(connection: &Connection, name: &str) -> Result<()> {
    let tables = |connection: &Connection| -> rusqlite::Result<Vec<[String; 3]>> {
        let mut statement = connection.prepare(
            "SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*' ORDER BY name",
        )?;
        let plain = |sql: String| sql.split_whitespace().collect::<String>();
        statement.query_map([], |row| Ok([row.get(0)?, row.get(1)?, plain(row.get(2)?)]))?.collect()
    };
    let ours = tables(&empty(name)?).map_err(|error| failed(name, &error))?;
    let theirs = tables(connection).map_err(|error| failed(name, &error))?;
    match ours == theirs {
        true => Ok(()),
        false => {
            let why = "its tables are not Cuebook's";
            Err(error::failed(
                name,
                why,
                "another program changed it: move the file away, or name another one",
            ))
        }
    }
}

/// Tables in which nothing is, and that no other code sees.
fn empty(name: &str) -> Result<Connection> {
    let mut connection = Connection::open_in_memory().map_err(|error| failed(name, &error))?;
    migrate(&mut connection).map_err(|error| failed(name, &error))?;
    Ok(connection)
}

/// Takes the steps that a file is behind.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let version: i64 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let before = usize::try_from(version).unwrap_or(usize::MAX);
    for step in schema::STEPS.iter().skip(before) {
        step.iter().try_for_each(|statement| transaction.execute_batch(statement))?;
    }
    if before < schema::version() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", schema::version() as i64)?;
    }
    transaction.commit()
}

/// The version of a file, if it is one of ours that we know.
fn known_version(connection: &Connection, name: &str) -> Result<i64> {
    let ask = |statement: &str| -> Result<i64> {
        connection.query_row(statement, [], |row| row.get(0)).map_err(|error| failed(name, &error))
    };
    // One statement, so that a migration in another process is seen as a whole or not at all.
    let version = ask("SELECT user_version FROM pragma_user_version")?;
    let foreign = ask(&format!(
        "SELECT (SELECT application_id FROM pragma_application_id) <> {APPLICATION} \
         AND EXISTS (SELECT 1 FROM sqlite_schema)"
    ))?;
    if foreign != 0 {
        return Err(error::failed(name, "the file is a database of another program", "name another file"));
    }
    if !(0..=schema::version() as i64).contains(&version) {
        return Err(error::newer(name, version, schema::version()));
    }
    Ok(version)
}

/// What SQLite says, with a way out.
fn failed(name: &str, error: &rusqlite::Error) -> Error {
    let hint = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another process has been writing to it for 30 seconds; find out which process has the file open"
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
            "make the file and its directory writable, or name another file"
        }
        Some(ErrorCode::CannotOpen) => "name a file in a directory that exists and is writable",
        Some(ErrorCode::NotADatabase) => "it is not a SQLite file; name another file",
        Some(ErrorCode::DatabaseCorrupt) => {
            "the file is damaged: move it away, or save what can be saved with `sqlite3 FILE .recover`"
        }
        Some(ErrorCode::DiskFull) => "free disk space, then resume the thread",
        Some(ErrorCode::SystemIoFailure) => "check the disk, then resume the thread",
        Some(ErrorCode::OperationInterrupted) => {
            "a statement took more than a minute: check the size of the file, or name another file"
        }
        Some(ErrorCode::OperationAborted) => "try again; if that does not help, check the disk",
        _ => "move the file away to start with a new one",
    };
    error::failed(name, &error.to_string(), hint)
}
