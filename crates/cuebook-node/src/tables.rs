//! A batch of a table of the package `apache-arrow`: its buffers, copied from JavaScript, and where its columns are in them.

use std::sync::Arc;

use cuebook_columns::Source;
use napi_derive::napi;
use serde_json::Value as Json;

/// A batch that JavaScript hands over.
#[napi]
#[derive(Default)]
pub struct NativeTable {
    buffers: Vec<Vec<u8>>,
    pub(crate) batch: Arc<TableBatch>,
}

#[napi]
impl NativeTable {
    /// An empty one.
    #[napi(constructor)]
    pub fn new() -> NativeTable {
        NativeTable::default()
    }

    /// Adds bytes to a buffer, of which the first has the number 0.
    #[napi]
    pub fn append(&mut self, buffer: u32, bytes: &[u8]) {
        let at = buffer as usize;
        if at == self.buffers.len() {
            self.buffers.push(Vec::new());
        }
        if let Some(buffer) = self.buffers.get_mut(at) {
            buffer.extend_from_slice(bytes);
        }
    }

    /// Says where the columns are in the buffers, which are complete.
    #[napi]
    pub fn describe(&mut self, description: String) {
        let description: Json = serde_json::from_str(&description).unwrap_or_default();
        let buffers = std::mem::take(&mut self.buffers);
        self.batch = Arc::new(TableBatch { buffers, root: Array::read(&description) });
    }
}

/// A batch as threads read it.
#[derive(Default)]
pub struct TableBatch {
    buffers: Vec<Vec<u8>>,
    root: Array,
}

/// What `package/tables.ts` says about an array. What it does not say is empty.
#[derive(Default)]
struct Array {
    format: String,
    name: String,
    length: usize,
    bit_offset: usize,
    has_nulls: bool,
    /// The numbers of its buffers; `None` for one that it does not have.
    buffers: Vec<Option<usize>>,
    views: Vec<Option<usize>>,
    children: Vec<Array>,
    dictionary: Option<Box<Array>>,
}

impl Array {
    fn read(given: &Json) -> Array {
        let text = |key: &str| given[key].as_str().unwrap_or_default().to_owned();
        let count = |given: &Json| given.as_u64().and_then(|count| usize::try_from(count).ok());
        let list = |key: &str| given[key].as_array().into_iter().flatten();
        Array {
            format: text("format"),
            name: text("name"),
            length: count(&given["length"]).unwrap_or_default(),
            bit_offset: count(&given["bitOffset"]).unwrap_or_default(),
            has_nulls: given["hasNulls"].as_bool().unwrap_or_default(),
            buffers: list("buffers").map(count).collect(),
            views: list("views").map(count).collect(),
            children: list("children").map(Array::read).collect(),
            dictionary: given.get("dictionary").map(|values| Box::new(Array::read(values))),
        }
    }
}

impl TableBatch {
    /// The batch as an array of structs.
    pub fn source(&self) -> BatchArray<'_> {
        BatchArray { batch: self, array: &self.root }
    }

    /// The bytes of a buffer by its number; one that is not there is empty.
    fn bytes(&self, number: Option<usize>) -> &[u8] {
        number.and_then(|number| self.buffers.get(number)).map_or(&[], Vec::as_slice)
    }
}

/// An array of a batch. JavaScript cuts its buffers where it begins, but for those with a bit for each value.
#[derive(Clone, Copy)]
pub struct BatchArray<'a> {
    batch: &'a TableBatch,
    array: &'a Array,
}

impl<'a> Source<'a> for BatchArray<'a> {
    fn format(self) -> &'a str {
        &self.array.format
    }

    fn name(self) -> &'a str {
        &self.array.name
    }

    fn length(self) -> usize {
        self.array.length
    }

    fn offset(self) -> usize {
        0
    }

    fn bit_offset(self) -> usize {
        self.array.bit_offset
    }

    fn has_nulls(self) -> bool {
        self.array.has_nulls
    }

    fn buffer(self, at: usize, bytes: usize) -> &'a [u8] {
        let buffer = self.batch.bytes(self.array.buffers.get(at).copied().flatten());
        &buffer[..bytes.min(buffer.len())]
    }

    fn view_buffers(self) -> Vec<&'a [u8]> {
        self.array.views.iter().map(|number| self.batch.bytes(*number)).collect()
    }

    fn children(self) -> Vec<BatchArray<'a>> {
        self.array.children.iter().map(|array| BatchArray { array, ..self }).collect()
    }

    fn dictionary(self) -> Option<BatchArray<'a>> {
        self.array.dictionary.as_deref().map(|array| BatchArray { array, ..self })
    }
}
