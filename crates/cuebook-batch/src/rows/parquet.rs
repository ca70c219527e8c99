//! Reads Apache Parquet, with the libraries of the Arrow project.

use std::fs::File;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal128Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type,
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use cuebook::jiff::{Timestamp, civil};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder};
use serde_json::{Map, Value as Json};

use super::{Row, Rows};

/// Rows that are read at once.
const ROWS: usize = 1024;
/// Milliseconds of a day.
const DAY: i64 = 86_400_000;
/// Every number with so many digits is a different `f64`.
const MAX_DIGITS: u8 = 15;

struct Parquet {
    reader: ParquetRecordBatchReader,
    name: String,
    columns: Vec<String>,
    batch: Option<RecordBatch>,
    next: usize,
    number: u64,
}

fn bad(name: &str, message: String) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadData, message).file(name))
}

/// Opens a file.
pub(super) fn open(file: File, name: String) -> Result<Box<dyn Rows>> {
    let unreadable =
        |error: parquet::errors::ParquetError| bad(&name, format!("the file is not Parquet: {error}"));
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(unreadable)?;
    let mut columns = Vec::new();
    for field in builder.schema().fields() {
        if !is_known(field.data_type()) {
            let message = format!(
                "the column `{}` has the type {}, which Cuebook cannot read",
                field.name(),
                field.data_type()
            );
            return Err(bad(&name, message));
        }
        columns.push(field.name().clone());
    }
    let reader = builder.with_batch_size(ROWS).build().map_err(unreadable)?;
    Ok(Box::new(Parquet { reader, columns, batch: None, next: 0, number: 0, name }))
}

fn is_known(kind: &DataType) -> bool {
    match kind {
        DataType::List(field) | DataType::LargeList(field) => is_known(field.data_type()),
        DataType::Struct(fields) => fields.iter().all(|field| is_known(field.data_type())),
        DataType::Dictionary(_, values) => is_known(values),
        DataType::Null
        | DataType::Boolean
        | DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::Int64
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::UInt64
        | DataType::Float32
        | DataType::Float64
        | DataType::Utf8
        | DataType::LargeUtf8
        | DataType::Utf8View
        | DataType::Date32
        | DataType::Date64
        | DataType::Decimal128(..)
        | DataType::Timestamp(..) => true,
        _ => false,
    }
}

/// A value of a column.
fn value(array: &dyn Array, row: usize) -> Json {
    if array.is_null(row) {
        return Json::Null;
    }
    macro_rules! number {
        ($kind:ty) => {
            Json::from(array.as_primitive::<$kind>().value(row))
        };
    }
    match array.data_type() {
        DataType::Boolean => Json::from(array.as_boolean().value(row)),
        DataType::Int8 => number!(Int8Type),
        DataType::Int16 => number!(Int16Type),
        DataType::Int32 => number!(Int32Type),
        DataType::Int64 => number!(Int64Type),
        DataType::UInt8 => number!(UInt8Type),
        DataType::UInt16 => number!(UInt16Type),
        DataType::UInt32 => number!(UInt32Type),
        DataType::UInt64 => number!(UInt64Type),
        DataType::Float32 => number!(Float32Type),
        DataType::Float64 => number!(Float64Type),
        DataType::Utf8 => Json::from(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Json::from(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Json::from(array.as_string_view().value(row)),
        DataType::Date32 => date(array.as_primitive::<Date32Type>().value(row).into()),
        DataType::Date64 => date(array.as_primitive::<Date64Type>().value(row).div_euclid(DAY)),
        DataType::Decimal128(digits, _) => {
            decimal(array.as_primitive::<Decimal128Type>().value_as_string(row), *digits)
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let index = value(dictionary.keys(), row).as_u64().and_then(|index| usize::try_from(index).ok());
            index.map_or(Json::Null, |index| value(dictionary.values(), index))
        }
        DataType::Timestamp(unit, zone) => {
            let nanos = match unit {
                TimeUnit::Second => {
                    i128::from(array.as_primitive::<TimestampSecondType>().value(row)) * 1_000_000_000
                }
                TimeUnit::Millisecond => {
                    i128::from(array.as_primitive::<TimestampMillisecondType>().value(row)) * 1_000_000
                }
                TimeUnit::Microsecond => {
                    i128::from(array.as_primitive::<TimestampMicrosecondType>().value(row)) * 1_000
                }
                TimeUnit::Nanosecond => {
                    i128::from(array.as_primitive::<TimestampNanosecondType>().value(row))
                }
            };
            moment(nanos, zone.is_some())
        }
        DataType::List(_) => list(&array.as_list::<i32>().value(row)),
        DataType::LargeList(_) => list(&array.as_list::<i64>().value(row)),
        DataType::Struct(fields) => {
            let columns = array.as_struct();
            let values = fields.iter().zip(columns.columns());
            Json::Object(values.map(|(field, column)| (field.name().clone(), value(column, row))).collect())
        }
        // The others were refused when the file was opened.
        _ => Json::Null,
    }
}

fn list(items: &ArrayRef) -> Json {
    (0..items.len()).map(|item| value(items, item)).collect()
}

/// `2026-11-18`
fn date(days: i64) -> Json {
    let days = cuebook::jiff::Span::new().try_days(days);
    let date = days.and_then(|days| civil::date(1970, 1, 1).checked_add(days));
    date.map_or(Json::Null, |date| Json::from(date.to_string()))
}

/// A number, or its text where the numbers of JSON have too few digits.
fn decimal(text: String, digits: u8) -> Json {
    match text.parse::<i64>() {
        Ok(whole) => Json::from(whole),
        Err(_) if digits <= MAX_DIGITS => text.parse::<f64>().map_or(Json::Null, Json::from),
        Err(_) => Json::from(text),
    }
}

/// `2026-11-18T20:00:00Z`, without the `Z` for times of no zone.
fn moment(nanos: i128, has_zone: bool) -> Json {
    let Ok(moment) = Timestamp::from_nanosecond(nanos) else { return Json::Null };
    let text = moment.to_string();
    Json::from(if has_zone { text } else { text.trim_end_matches('Z').to_owned() })
}

impl Rows for Parquet {
    fn next_row(&mut self) -> Option<Result<Row>> {
        while self.batch.as_ref().is_none_or(|batch| self.next >= batch.num_rows()) {
            match self.reader.next()? {
                Ok(batch) => (self.batch, self.next) = (Some(batch), 0),
                Err(error) => return Some(Err(bad(&self.name, format!("the file is damaged: {error}")))),
            }
        }
        let batch = self.batch.as_ref()?;
        self.number += 1;
        let columns = self.columns.iter().zip(batch.columns());
        let values: Map<String, Json> =
            columns.map(|(name, column)| (name.clone(), value(column, self.next))).collect();
        self.next += 1;
        Some(Ok(Row { number: self.number, values, fault: None }))
    }

    fn columns(&self) -> Option<&[String]> {
        Some(&self.columns)
    }
}

#[cfg(test)]
mod tests;
