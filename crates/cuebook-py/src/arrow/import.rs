//! Tables that Python hands over in a capsule.

#![allow(unsafe_code, reason = "a capsule holds a pointer, and only its name says to what")]

use cuebook_columns::{Batch, Source};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyTuple};

use super::interface::{ArrowArray, ArrowArrayStream, ArrowSchema};

/// A table: the type of its rows, and its batches.
pub struct Table {
    schema: ArrowSchema,
    batches: Vec<ArrowArray>,
}

/// An array with its type.
#[derive(Clone, Copy)]
struct TypedArray<'a>(&'a ArrowSchema, &'a ArrowArray);

impl<'a> Source<'a> for TypedArray<'a> {
    fn format(self) -> &'a str {
        self.0.format()
    }

    fn name(self) -> &'a str {
        self.0.name()
    }

    fn length(self) -> usize {
        self.1.length()
    }

    fn offset(self) -> usize {
        self.1.offset()
    }

    fn bit_offset(self) -> usize {
        self.1.offset()
    }

    fn has_nulls(self) -> bool {
        self.1.null_count != 0
    }

    fn buffer(self, at: usize, bytes: usize) -> &'a [u8] {
        self.1.buffer(at, bytes)
    }

    fn view_buffers(self) -> Vec<&'a [u8]> {
        // The last buffer has the lengths of those before it, of which the first two are the validity and the views.
        let count = self.1.buffers().saturating_sub(3);
        let lengths = self.1.buffer(count + 2, count * 8).chunks_exact(8).map(|bytes| {
            let length = bytes.try_into().map_or(0, i64::from_ne_bytes);
            usize::try_from(length).unwrap_or_default()
        });
        lengths.enumerate().map(|(at, length)| self.1.buffer(at + 2, length)).collect()
    }

    fn children(self) -> Vec<TypedArray<'a>> {
        let both =
            self.0.children().enumerate().map(|(at, schema)| Some(TypedArray(schema, self.1.child(at)?)));
        both.map_while(|both| both).collect()
    }

    fn dictionary(self) -> Option<TypedArray<'a>> {
        Some(TypedArray(self.0.dictionary()?, self.1.dictionary()?))
    }
}

/// What a capsule holds before it is read.
enum ImportedCapsule {
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
        ImportedCapsule::Stream(unsafe { ArrowArrayStream::take(pointer.as_ptr()) })
    } else if given.hasattr("__arrow_c_array__")? {
        let both = given.call_method0("__arrow_c_array__")?.cast_into::<PyTuple>()?;
        let (schema, array) =
            (both.get_item(0)?.cast_into::<PyCapsule>()?, both.get_item(1)?.cast_into::<PyCapsule>()?);
        let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast();
        let array = array.pointer_checked(Some(c"arrow_array"))?.cast();
        // SAFETY: As above.
        unsafe { ImportedCapsule::One(ArrowSchema::take(schema.as_ptr()), ArrowArray::take(array.as_ptr())) }
    } else {
        return Ok(None);
    };
    Ok(Some(py.detach(|| source.read())))
}

impl ImportedCapsule {
    fn read(self) -> Result<Table, String> {
        let (schema, batches) = match self {
            ImportedCapsule::One(schema, array) => (schema, vec![array]),
            ImportedCapsule::Stream(mut stream) => {
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
        self.batches.iter().map(|batch| Batch::new(TypedArray(&self.schema, batch), wanted)).collect()
    }
}
