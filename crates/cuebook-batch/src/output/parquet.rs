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
