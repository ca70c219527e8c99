//! Tables that Python hands over in a capsule.

#![allow(unsafe_code, reason = "a capsule holds a pointer, and only its name says to what")]

use cuebook::Variables;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};
use serde_json::{Map, Value as Json};

use super::columns::Column;
use super::interface::{ArrowArray, ArrowArrayStream, ArrowSchema};

/// A table: the type of its rows, and its batches.
pub struct Table {
    schema: ArrowSchema,
    batches: Vec<ArrowArray>,
}

/// The columns of a batch, by name.
pub struct Batch<'a> {
    /// The number of its rows.
    pub rows: usize,
    /// The first row in each column.
    start: usize,
    columns: Vec<(&'a str, Column<'a>)>,
}

/// What a capsule holds before it is read.
enum Source {
    Stream(ArrowArrayStream),
    One(ArrowSchema, ArrowArray),
}

/// Reads a table, if the object offers one. The lock of Python is released while a stream makes its batches.
pub fn read(given: &Bound<'_, PyAny>) -> PyResult<Option<Result<Table, String>>> {
    let py = given.py();
    let source = if given.hasattr("__arrow_c_stream__")? {
        let capsule = given.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast();
        // SAFETY: A capsule of this name holds this struct, which is taken over.
        Source::Stream(unsafe { ArrowArrayStream::take(pointer.as_ptr()) })
    } else if given.hasattr("__arrow_c_array__")? {
        let both = given.call_method0("__arrow_c_array__")?.cast_into::<PyTuple>()?;
        let (schema, array) =
            (both.get_item(0)?.cast_into::<PyCapsule>()?, both.get_item(1)?.cast_into::<PyCapsule>()?);
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast();
        let array = array.pointer_checked(Some(c"arrow_array"))?.cast();
        // SAFETY: As above.
        unsafe { Source::One(ArrowSchema::take(schema.as_ptr()), ArrowArray::take(array.as_ptr())) }
    } else {
        return Ok(None);
    };
    Ok(Some(py.detach(|| source.read())))
}

impl Source {
    fn read(self) -> Result<Table, String> {
        let (schema, batches) = match self {
            Source::One(schema, array) => (schema, vec![array]),
            Source::Stream(mut stream) => {
                let (schema, mut batches) = (stream.schema()?, Vec::new());
                while let Some(batch) = stream.next()? {
                    batches.push(batch);
                }
                (schema, batches)
            }
        };
        match schema.format() {
            "+s" => Ok(Table { schema, batches }),
            other => Err(format!("it has one column of the Arrow format `{other}` and no names")),
        }
    }
}

impl Table {
    /// The names of its columns, in order.
    pub fn names(&self) -> Vec<&str> {
        self.schema.children().map(ArrowSchema::name).collect()
    }

    /// Its batches, with the columns that are wanted.
    pub fn batches(&self, wanted: &[&str]) -> Result<Vec<Batch<'_>>, String> {
        self.batches.iter().map(|batch| self.batch(batch, wanted)).collect()
    }

    fn batch<'a>(&'a self, array: &'a ArrowArray, wanted: &[&str]) -> Result<Batch<'a>, String> {
        let (start, rows) = (array.offset(), array.length());
        let column = |(at, schema): (usize, &'a ArrowSchema)| {
            let name = schema.name();
            let child = array.child(at).ok_or_else(|| format!("its column `{name}` is missing"))?;
            let column = Column::new(schema, child)
                .map_err(|why| format!("its column `{name}` cannot be read: {why}"))?;
            match column.len().checked_sub(start).is_some_and(|length| length >= rows) {
                true => Ok((name, column)),
                false => Err(format!("its column `{name}` is too short")),
            }
        };
        let columns =
            self.schema.children().enumerate().filter(|(_, schema)| wanted.contains(&schema.name()));
        let columns = columns.map(column).collect::<Result<_, String>>()?;
        Ok(Batch { rows, start, columns })
    }
}

impl Batch<'_> {
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
    pub fn write(&self, row: usize, into: &mut Variables) -> Result<(), String> {
        for ((name, column), place) in self.columns.iter().zip(into.values_mut()) {
            column
                .write(self.start + row, place)
                .map_err(|fault| format!("the value of `{name}` {fault}"))?;
        }
        Ok(())
    }
}
