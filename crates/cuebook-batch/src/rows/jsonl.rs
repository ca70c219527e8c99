//! JSONL: an object in each line. Empty lines are skipped.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};

use cuebook::{Result, files};
use serde_json::{Map, Value as Json};

use super::{MAX_ROW, Row, Rows, bad_row};

/// A file of lines.
pub(super) struct JsonLines {
    reader: BufReader<File>,
    name: String,
    line: Vec<u8>,
    number: u64,
    at: u64,
}

impl JsonLines {
    pub(super) fn new(file: File, name: String) -> JsonLines {
        let reader = BufReader::with_capacity(1 << 16, file);
        JsonLines { reader, name, line: Vec::new(), number: 0, at: 0 }
    }

    /// Skips what is left of a line.
    fn skip_line(&mut self) -> std::io::Result<()> {
        loop {
            let buffer = self.reader.fill_buf()?;
            let (skip, is_end) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(end) => (end + 1, true),
                None => (buffer.len(), buffer.is_empty()),
            };
            self.reader.consume(skip);
            if is_end {
                return Ok(());
            }
        }
    }

    fn read(&mut self) -> std::io::Result<Option<Row>> {
        loop {
            self.line.clear();
            let read = (&mut self.reader).take(MAX_ROW as u64 + 1).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            self.at += 1;
            let is_whole = self.line.ends_with(b"\n") || read <= MAX_ROW;
            let begin = if self.at == 1 && self.line.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
            if is_whole && self.line[begin..].iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            self.number += 1;
            let (number, at) = (self.number, Some(self.at));
            let bad = |why: &str, hint: Option<String>| Some(bad_row(&self.name, number, at, why, hint));
            let mut values = Map::new();
            let fault = match is_whole.then(|| serde_json::from_slice(&self.line[begin..])) {
                None => bad(&format!("it has more than {} MiB", MAX_ROW >> 20), None),
                Some(Ok(Json::Object(object))) => {
                    values = object;
                    None
                }
                Some(Ok(_)) => bad(
                    "it is not a JSON object",
                    Some("write one object per line: {\"column\": value}".into()),
                ),
                Some(Err(error)) => {
                    let why = error.to_string();
                    let why = why.split(" at line ").next().unwrap_or(&why);
                    // At the end of a row there is no column to show.
                    let at = match error.column() {
                        0 => String::new(),
                        column => format!(" (column {column})"),
                    };
                    bad(&format!("it is not valid JSON: {why}{at}"), None)
                }
            };
            if !is_whole {
                self.skip_line()?;
            }
            return Ok(Some(Row { number, values, fault }));
        }
    }
}

impl Rows for JsonLines {
    fn next_row(&mut self) -> Option<Result<Row>> {
        self.read().map_err(|error| files::io_error(&self.name, &error)).transpose()
    }
}
