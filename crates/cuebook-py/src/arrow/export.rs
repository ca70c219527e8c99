//! Our table as a stream that other libraries read. They read the memory of the chunks themselves; nothing is copied.

#![allow(unsafe_code, reason = "other libraries release what they were given through functions of C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::Arc;

use super::interface::{ArrowArray, ArrowArrayStream, ArrowSchema};
use super::table::{Chunk, Texts};

/// The columns, which are texts or nothing.
const COLUMNS: [&CStr; 3] = [c"text", c"code", c"error"];
/// The format of a text whose offsets have 64 bits.
const TEXT: &CStr = c"U";
const STRUCT: &CStr = c"+s";
/// The flag of a column whose values may be missing.
const NULLABLE: i64 = 2;

/// The chunks of a stream that have not been read.
struct ChunkIterator(std::vec::IntoIter<Arc<Chunk>>);

/// A stream of chunks.
pub fn stream(chunks: Vec<Arc<Chunk>>) -> ArrowArrayStream {
    ArrowArrayStream {
        get_schema: Some(get_schema),
        get_next: Some(get_next),
        get_last_error: Some(get_last_error),
        release: Some(release_stream),
        private_data: Box::into_raw(Box::new(ChunkIterator(chunks.into_iter()))).cast(),
    }
}

unsafe extern "C" fn get_schema(_: *mut ArrowArrayStream, into: *mut ArrowSchema) -> c_int {
    // SAFETY: The caller gives room for a schema.
    unsafe { into.write(batch_schema()) };
    0
}

unsafe extern "C" fn get_next(stream: *mut ArrowArrayStream, into: *mut ArrowArray) -> c_int {
    // SAFETY: The caller gives our stream, and room for an array.
    unsafe {
        let rest = &mut *(*stream).private_data.cast::<ChunkIterator>();
        into.write(rest.0.next().map_or_else(ArrowArray::empty, |chunk| batch(&chunk)));
    }
    0
}

unsafe extern "C" fn get_last_error(_: *mut ArrowArrayStream) -> *const c_char {
    // No call fails.
    ptr::null()
}

unsafe extern "C" fn release_stream(stream: *mut ArrowArrayStream) {
    // SAFETY: The caller gives our stream, which was not released before.
    unsafe {
        drop(Box::from_raw((*stream).private_data.cast::<ChunkIterator>()));
        (*stream).release = None;
    }
}

/// What a schema's pointers point to.
struct SchemaParts {
    /// Their pointers are in `pointers`.
    _children: Vec<ArrowSchema>,
    pointers: Vec<*mut ArrowSchema>,
}

fn schema(format: &'static CStr, name: &'static CStr, mut children: Vec<ArrowSchema>) -> ArrowSchema {
    let pointers = children.iter_mut().map(|child| &raw mut *child).collect();
    let mut parts = Box::new(SchemaParts { _children: children, pointers });
    ArrowSchema {
        format: format.as_ptr(),
        name: name.as_ptr(),
        flags: NULLABLE,
        n_children: parts.pointers.len() as i64,
        children: parts.pointers.as_mut_ptr(),
        release: Some(release_schema),
        private_data: Box::into_raw(parts).cast(),
        metadata: ptr::null(),
        dictionary: ptr::null_mut(),
    }
}

fn batch_schema() -> ArrowSchema {
    let columns = COLUMNS.iter().map(|name| schema(TEXT, name, Vec::new()));
    let mut batch = schema(STRUCT, c"", columns.collect());
    batch.flags = 0;
    batch
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    // SAFETY: The caller gives our schema, which was not released before. Children are released with it, unless the reader took them over.
    unsafe {
        drop(Box::from_raw((*schema).private_data.cast::<SchemaParts>()));
        (*schema).release = None;
    }
}

/// What an array's pointers point to.
struct ArrayParts {
    _children: Vec<ArrowArray>,
    pointers: Vec<*mut ArrowArray>,
    buffers: Vec<*const c_void>,
    /// The memory that the buffers point to.
    _chunk: Arc<Chunk>,
}

fn array(
    chunk: &Arc<Chunk>,
    missing: usize,
    buffers: Vec<*const c_void>,
    mut children: Vec<ArrowArray>,
) -> ArrowArray {
    let pointers = children.iter_mut().map(|child| &raw mut *child).collect();
    let mut parts = Box::new(ArrayParts { _children: children, pointers, buffers, _chunk: chunk.clone() });
    ArrowArray {
        length: chunk.len() as i64,
        null_count: missing as i64,
        offset: 0,
        n_buffers: parts.buffers.len() as i64,
        n_children: parts.pointers.len() as i64,
        buffers: parts.buffers.as_mut_ptr(),
        children: parts.pointers.as_mut_ptr(),
        dictionary: ptr::null_mut(),
        release: Some(release_array),
        private_data: Box::into_raw(parts).cast(),
    }
}

fn batch(chunk: &Arc<Chunk>) -> ArrowArray {
    let column = |texts: &Texts| {
        let buffers =
            vec![texts.validity.as_ptr().cast(), texts.offsets.as_ptr().cast(), texts.bytes.as_ptr().cast()];
        array(chunk, texts.missing, buffers, Vec::new())
    };
    array(chunk, 0, vec![ptr::null()], chunk.columns.iter().map(column).collect())
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    // SAFETY: The caller gives our array, which was not released before. Children are released with it, unless the reader took them over.
    unsafe {
        drop(Box::from_raw((*array).private_data.cast::<ArrayParts>()));
        (*array).release = None;
    }
}
