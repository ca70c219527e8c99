//! Writes Apache Parquet, with the libraries of the Arrow project.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use parquet::arrow::ArrowWriter;
use parquet::basic::Compression;
use parquet::file::properties::WriterProperties;
use serde_json::{Map, Value as Json};

use super::{Output, Pending};
use crate::kinds::Kind;

/// Rows that are written at once.
const ROWS: usize = 1024;
/// Bytes of texts that a group of rows holds at most before it is written.
const GROUP: usize = 32 << 20;

/// One column that is being filled.
enum Column {
    Text(StringBuilder),
    Integer(Int64Builder),
    Number(Float64Builder),
    Boolean(BooleanBuilder),
    Json(StringBuilder),
}

impl Column {
    fn new(kind: Kind) -> Column {
        match kind {
            Kind::Text => Column::Text(StringBuilder::new()),
            Kind::Integer => Column::Integer(Int64Builder::new()),
            Kind::Number => Column::Number(Float64Builder::new()),
            Kind::Boolean => Column::Boolean(BooleanBuilder::new()),
            Kind::Json => Column::Json(StringBuilder::new()),
        }
    }

    /// Adds a value; says how many bytes of text it has, or `None` if the column cannot hold it.
    fn add(&mut self, value: Option<Json>) -> Option<usize> {
        let value = value.unwrap_or(Json::Null);
        if value.is_null() {
            match self {
                Column::Text(column) | Column::Json(column) => column.append_null(),
                Column::Integer(column) => column.append_null(),
                Column::Number(column) => column.append_null(),
                Column::Boolean(column) => column.append_null(),
            }
            return Some(0);
        }
        match self {
            Column::Text(column) => {
                let text = value.as_str()?;
                column.append_value(text);
                return Some(text.len());
            }
            Column::Json(column) => {
                let text = value.to_string();
                column.append_value(&text);
                return Some(text.len());
            }
            Column::Integer(column) => column.append_value(value.as_i64()?),
            Column::Number(column) => column.append_value(value.as_f64()?),
            Column::Boolean(column) => column.append_value(value.as_bool()?),
        }
        Some(8)
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Column::Text(column) | Column::Json(column) => Arc::new(column.finish()),
            Column::Integer(column) => Arc::new(column.finish()),
            Column::Number(column) => Arc::new(column.finish()),
            Column::Boolean(column) => Arc::new(column.finish()),
        }
    }
}

struct Writer {
    name: String,
    writer: ArrowWriter<File>,
    pending: Pending,
    schema: Arc<Schema>,
    columns: Vec<(String, Column)>,
    rows: usize,
    /// Bytes of text since the last group of rows was written.
    bytes: usize,
}

/// Opens an output with these columns.
pub(super) fn create(path: &Path, kinds: &[(String, Kind)]) -> Result<Box<dyn Output>> {
    let name = path.to_string_lossy().into_owned();
    let (pending, file) = Pending::open(path)?;
    let field = |(name, kind): &(String, Kind)| {
        let kind = match kind {
            Kind::Text | Kind::Json => DataType::Utf8,
            Kind::Integer => DataType::Int64,
            Kind::Number => DataType::Float64,
            Kind::Boolean => DataType::Boolean,
        };
        Field::new(name, kind, true)
    };
    let schema = Arc::new(Schema::new(kinds.iter().map(field).collect::<Vec<_>>()));
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let writer = ArrowWriter::try_new(file, schema.clone(), Some(properties))
        .map_err(|error| files::write_error(&name, &std::io::Error::other(error)))?;
    let columns = kinds.iter().map(|(name, kind)| (name.clone(), Column::new(*kind))).collect();
    Ok(Box::new(Writer { name, writer, pending, schema, columns, rows: 0, bytes: 0 }))
}

impl Writer {
    fn failed(&self, error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        files::write_error(&self.name, &std::io::Error::other(error))
    }

    fn flush(&mut self) -> Result<()> {
        if self.rows == 0 {
            return Ok(());
        }
        let arrays: Vec<ArrayRef> = self.columns.iter_mut().map(|(_, column)| column.finish()).collect();
        let batch = RecordBatch::try_new(self.schema.clone(), arrays).map_err(|error| self.failed(error))?;
        self.writer.write(&batch).map_err(|error| self.failed(error))?;
        if self.bytes > GROUP {
            self.writer.flush().map_err(|error| self.failed(error))?;
            self.bytes = 0;
        }
        self.rows = 0;
        Ok(())
    }
}

impl Output for Writer {
    fn write(&mut self, mut line: Map<String, Json>) -> Result<()> {
        let mut bytes = 0;
        for (name, column) in &mut self.columns {
            match column.add(line.get_mut(name.as_str()).map(Json::take)) {
                Some(added) => bytes += added,
                None => {
                    let message =
                        format!("the column `{name}` has values of several types: write .jsonl instead");
                    let diagnostic = Diagnostic::new(Code::BadData, message).file(self.name.as_str());
                    return Err(Error::new(ErrorKind::Usage, diagnostic));
                }
            }
        }
        self.bytes += bytes;
        self.rows += 1;
        if self.rows >= ROWS || bytes > GROUP { self.flush() } else { Ok(()) }
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.flush()?;
        let Writer { name, writer, pending, .. } = *self;
        let file =
            writer.into_inner().map_err(|error| files::write_error(&name, &std::io::Error::other(error)))?;
        pending.finish(&file)
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    use serde_json::json;

    use super::*;

    const CHILD: &str = "CUEBOOK_TEST_PARQUET_OUTPUT";

    fn kinds() -> Vec<(String, Kind)> {
        let kinds = [
            ("row", Kind::Integer),
            ("text", Kind::Text),
            ("share", Kind::Number),
            ("ok", Kind::Boolean),
            ("tags", Kind::Json),
            ("error", Kind::Text),
        ];
        kinds.map(|(name, kind)| (name.to_owned(), kind)).to_vec()
    }

    fn line(row: u64) -> Map<String, Json> {
        let line = match row % 3 {
            0 => json!({"row": row, "text": null, "share": null, "ok": null, "tags": null, "error": "CB901"}),
            _ => {
                json!({"row": row, "text": format!("ü {row}"), "share": row as f64 / 7.0, "ok": row % 2 == 0,
                "tags": [row, {"a": null}], "error": null})
            }
        };
        line.as_object().cloned().unwrap_or_default()
    }

    fn write(path: &Path, rows: u64) {
        let mut output = create(path, &kinds()).unwrap();
        (1..=rows).for_each(|row| output.write(line(row)).unwrap());
        output.finish().unwrap();
    }

    #[test]
    fn rows_and_error_rows_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.parquet");
        write(&path, 3000);
        let mut rows = crate::rows::open(&path).unwrap();
        for number in 1..=3000 {
            let row = rows.next_row().unwrap().unwrap();
            let mut expected = line(number);
            // Lists and objects are the text of their JSON.
            if !expected["tags"].is_null() {
                expected["tags"] = json!(expected["tags"].to_string());
            }
            assert_eq!((row.number, row.values), (number, expected));
        }
        assert!(rows.next_row().is_none());
    }

    #[test]
    fn a_column_of_several_types_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.parquet");
        let mut output = create(&path, &kinds()).unwrap();
        let mixed = json!({"row": "one"}).as_object().cloned().unwrap();
        assert!(output.write(mixed).unwrap_err().report(false).contains("several types"));
        assert!(!path.exists());
    }

    #[test]
    fn a_kill_leaves_the_output_before() {
        if let Some(path) = std::env::var_os(CHILD) {
            // The process that is killed. Long texts fill groups of rows, which are written at once.
            let mut output = create(Path::new(&path), &kinds()).unwrap();
            let mut long = line(1);
            long.insert("text".to_owned(), json!("x".repeat(200_000)));
            (0..100_000).for_each(|_| output.write(long.clone()).unwrap());
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.parquet");
        write(&path, 100);
        let before = std::fs::read(&path).unwrap();
        for kill in 1..=5_u64 {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["a_kill_leaves_the_output_before", "--nocapture"])
                .env(CHILD, &path)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            // It has written part of the new output.
            let (part, began) = (folder.path().join(".out.parquet.part"), Instant::now());
            while std::fs::metadata(&part).map_or(0, |part| part.len()) < kill {
                assert!(began.elapsed() < Duration::from_secs(60), "nothing was written");
                assert!(child.try_wait().unwrap().is_none(), "it has ended");
                std::thread::sleep(Duration::from_millis(5));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), before, "kill {kill}");
        }
        write(&path, 200);
        let mut rows = crate::rows::open(&path).unwrap();
        assert_eq!(std::iter::from_fn(|| rows.next_row()).filter(|row| row.is_ok()).count(), 200);
    }
}
