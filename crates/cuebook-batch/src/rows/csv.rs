//! CSV: the first line has the names of the columns.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use serde_json::{Map, Value as Json};

use super::{MAX_ROW, Row, Rows, bad_row};

/// The most columns.
const MAX_COLUMNS: usize = 10_000;

/// Reads a file, and fails when a row becomes too long: a quotation mark that is not closed must not fill the memory.
struct LimitedReader {
    inner: BufReader<File>,
    /// Bytes that were read since the last row ended.
    since: Arc<AtomicUsize>,
}

impl Read for LimitedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.since.load(Ordering::Relaxed) > MAX_ROW {
            let why = format!("a row has more than {} MiB: is a quotation mark missing?", MAX_ROW >> 20);
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let read = self.inner.read(buffer)?;
        self.since.fetch_add(read, Ordering::Relaxed);
        Ok(read)
    }
}

struct Csv {
    reader: csv::Reader<LimitedReader>,
    since: Arc<AtomicUsize>,
    name: String,
    columns: Vec<String>,
    record: csv::ByteRecord,
    number: u64,
}

/// Opens a file, and reads the names of its columns.
pub(super) fn open(file: File, name: String) -> Result<Box<dyn Rows>> {
    let since = Arc::new(AtomicUsize::new(0));
    let limited = LimitedReader { inner: BufReader::with_capacity(1 << 16, file), since: since.clone() };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(limited);
    let wrong = |why: String, hint: &str| {
        let diagnostic = Diagnostic::new(Code::BadData, why).file(name.as_str()).hint(hint);
        Error::new(ErrorKind::Usage, diagnostic)
    };
    let header = reader.byte_headers().map_err(|error| unreadable(&name, error))?.clone();
    if header.len() > MAX_COLUMNS {
        return Err(wrong(format!("the file has more than {MAX_COLUMNS} columns"), "leave out columns"));
    }
    let mut columns: Vec<String> = Vec::with_capacity(header.len());
    for (index, field) in header.iter().enumerate() {
        let Ok(text) = std::str::from_utf8(field) else {
            return Err(wrong(format!("the name of column {} is not UTF-8", index + 1), "save it as UTF-8"));
        };
        let text = text.trim();
        if text.is_empty() {
            let why = format!("column {} has no name in the first line", index + 1);
            return Err(wrong(why, "write the names of the columns in the first line"));
        }
        if columns.iter().any(|known| known == text) {
            return Err(wrong(format!("two columns have the name `{text}`"), "rename one of them"));
        }
        columns.push(text.to_owned());
    }
    if columns.is_empty() {
        return Err(wrong(
            "the file is empty".to_owned(),
            "write the names of the columns in the first line",
        ));
    }
    since.store(0, Ordering::Relaxed);
    Ok(Box::new(Csv { reader, since, columns, record: csv::ByteRecord::new(), number: 0, name }))
}

fn unreadable(name: &str, error: csv::Error) -> Error {
    match error.into_kind() {
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            let diagnostic = Diagnostic::new(Code::BadData, error.to_string()).file(name);
            Error::new(ErrorKind::Usage, diagnostic)
        }
        csv::ErrorKind::Io(error) => files::io_error(name, &error),
        other => {
            let diagnostic =
                Diagnostic::new(Code::BadData, format!("the file is not CSV: {other:?}")).file(name);
            Error::new(ErrorKind::Usage, diagnostic)
        }
    }
}

impl Rows for Csv {
    fn next_row(&mut self) -> Option<Result<Row>> {
        match self.reader.read_byte_record(&mut self.record) {
            Ok(false) => return None,
            Ok(true) => {}
            Err(error) => return Some(Err(unreadable(&self.name, error))),
        }
        self.since.store(0, Ordering::Relaxed);
        self.number += 1;
        let line = self.record.position().map(csv::Position::line);
        let bad = |why: &str, hint: &str| {
            Some(bad_row(
                &self.name,
                self.number,
                line,
                why,
                Some(hint.to_owned()).filter(|hint| !hint.is_empty()),
            ))
        };
        let mut fault = None;
        let (fields, columns) = (self.record.len(), self.columns.len());
        if fields != columns {
            let why = format!("it has {fields} fields, and the first line has {columns} names");
            fault = bad(&why, "put a field with a comma or a quotation mark in quotation marks");
        }
        let mut values = Map::with_capacity(columns);
        for (column, field) in self.columns.iter().zip(self.record.iter()) {
            match std::str::from_utf8(field) {
                Ok(text) => drop(values.insert(column.clone(), Json::from(text))),
                Err(_) => {
                    fault = bad(&format!("the column `{column}` is not UTF-8"), "save the file as UTF-8")
                }
            }
        }
        Some(Ok(Row { number: self.number, values, fault }))
    }

    fn columns(&self) -> Option<&[String]> {
        Some(&self.columns)
    }

    fn are_texts(&self) -> bool {
        true
    }
}
