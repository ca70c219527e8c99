//! Reads the values of Arrow tables as JSON, from buffers of bytes. The packages for Python and npm render the rows of tables with it.
//!
//! Nothing here trusts a buffer: one that is too short, or that points elsewhere, is an error of the row that needs it.

mod columns;
mod times;

pub use columns::{Column, Source};

use serde_json::{Map, Value as Json};

/// The columns of a batch, by name.
pub struct Batch<'a> {
    rows: usize,
    /// The first row in each column.
    start: usize,
    columns: Vec<(&'a str, Column<'a>)>,
}

impl<'a> Batch<'a> {
    /// The columns of a batch, which is an array of structs, as far as they are wanted. The error says what cannot be read.
    pub fn new(source: impl Source<'a>, wanted: &[&str]) -> Result<Batch<'a>, String> {
        let (start, rows) = (source.offset(), source.length());
        let column = |child| {
            let name = Source::name(child);
            let column =
                Column::new(child).map_err(|why| format!("its column `{name}` cannot be read: {why}"))?;
            match column.len().checked_sub(start).is_some_and(|length| length >= rows) {
                true => Ok((name, column)),
                false => Err(format!("its column `{name}` is too short")),
            }
        };
        let children = source.children().into_iter().filter(|child| wanted.contains(&child.name()));
        Ok(Batch { rows, start, columns: children.map(column).collect::<Result<_, String>>()? })
    }

    /// The number of its rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of a row by their columns, and what is wrong with one of them.
    pub fn values(&self, row: usize) -> (Map<String, Json>, Option<String>) {
        let (mut values, mut wrong) = (Map::new(), None);
        for (name, column) in &self.columns {
            let mut value = Json::Null;
            match column.write(self.start + row, &mut value) {
                Ok(()) => drop(values.insert((*name).to_owned(), value)),
                Err(fault) => wrong = Some(format!("the value of `{name}` {fault}")),
            }
        }
        (values, wrong)
    }

    /// Writes the values of a row, each to the place of its column. The error names the column.
    pub fn write<'j>(&self, row: usize, into: impl IntoIterator<Item = &'j mut Json>) -> Result<(), String> {
        for ((name, column), place) in self.columns.iter().zip(into) {
            column
                .write(self.start + row, place)
                .map_err(|fault| format!("the value of `{name}` {fault}"))?;
        }
        Ok(())
    }
}
