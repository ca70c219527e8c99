//! The seam between what is kept and where: a transaction that runs statements. SQLite and PostgreSQL understand the same
//! statements here, so what differs between them is below this trait, and everything else is above it, once.
//!
//! Parameters are written `$1`, `$2`, … and must first appear in that order, because SQLite counts them as they appear.

use std::time::Duration;

use cuebook_text::Result;
use jiff::Timestamp;

use crate::record::LogKey;

/// A value of a row. Tables have columns of these two types only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Int(i64),
    /// A text.
    Text(String),
    /// A value of a type that no column of ours has: the name of its type.
    Other(String),
}

impl From<i64> for Cell {
    fn from(number: i64) -> Cell {
        Cell::Int(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map_or(Cell::Null, Into::into)
    }
}

impl LogKey {
    /// Authenticates cells of a row, each with its type and length.
    pub(crate) fn seal<'c>(&self, cells: impl IntoIterator<Item = &'c Cell>) -> String {
        self.seal_for("cuebook thread 1", cells)
    }

    /// The same for a row of another table: a seal for one purpose does not fit another.
    pub(crate) fn seal_for<'c>(&self, purpose: &str, cells: impl IntoIterator<Item = &'c Cell>) -> String {
        let mut text = String::new();
        for cell in cells {
            match cell {
                Cell::Null => text.push('n'),
                Cell::Int(number) => text.push_str(&format!("i{number}")),
                Cell::Text(value) => text.push_str(&format!("t{}:{value}", value.len())),
                Cell::Other(kind) => text.push_str(&format!("o{kind}")),
            }
            text.push(';');
        }
        self.mac(purpose, [text.as_bytes()])
    }
}

/// A transaction.
pub trait Sql {
    /// Runs a statement that answers with rows.
    fn rows(&mut self, statement: &str, values: &[Cell]) -> Result<Vec<Vec<Cell>>>;

    /// Runs a statement and says how many rows it changed.
    fn run(&mut self, statement: &str, values: &[Cell]) -> Result<u64>;

    /// What follows a `SELECT` whose rows no other transaction may change until this one ends. Empty where one
    /// transaction writes at a time anyway.
    fn for_update(&self) -> &'static str;

    /// The same for rows that another transaction may hold: those are left out, and not waited for.
    fn skip_locked(&self) -> &'static str {
        ""
    }

    /// Lets one transaction at a time pass, until it ends. One transaction writes at a time anyway where this does nothing.
    fn one_at_a_time(&mut self) -> Result<()> {
        Ok(())
    }

    /// Wakes workers when this transaction is committed. Where this does nothing, workers look again and again.
    fn wake_workers(&mut self) -> Result<()> {
        Ok(())
    }

    /// Which store it is, for errors.
    fn place(&self) -> &str;
}

/// Where tables are.
pub trait Tables: Send + Sync + std::fmt::Debug {
    /// Does something in a transaction that writes; durable when it returns. What fails has changed nothing. The job may run
    /// more than once, so it must do nothing but talk to the tables.
    fn write<T: Send + 'static>(&self, job: impl Fn(&mut dyn Sql) -> Result<T> + Send + 'static)
    -> Result<T>;

    /// Runs one statement as a transaction: a process that stops holds no lock of it.
    fn run_alone(&self, statement: &'static str, values: Vec<Cell>) -> Result<u64> {
        self.write(move |sql| sql.run(statement, &values))
    }

    /// Does something that only reads.
    fn read<T>(&self, job: impl Fn(&mut dyn Sql) -> Result<T>) -> Result<T>;

    /// The moment, in the clock of the store.
    fn now(&self) -> Timestamp;

    /// A moment of the store's clock in the clock of this machine.
    fn here(&self, at: Timestamp) -> Timestamp;

    /// Waits until a transaction has woken workers, or for so long. It may return early.
    fn wait_for_work(&self, most: Duration);
}
