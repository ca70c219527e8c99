use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder, StringDictionaryBuilder};
use arrow_array::types::Int16Type as Key;
use arrow_array::*;
use arrow_schema::{Field, Schema};
use parquet::arrow::ArrowWriter;
use serde_json::json;

use super::super::open as open_rows;

/// Writes columns, reads them, and says what each has in its rows.
fn read(columns: Vec<(&str, ArrayRef)>) -> Vec<Json> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.parquet");
    let fields: Vec<Field> =
        columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut rows = open_rows(&path).unwrap();
    std::iter::from_fn(|| rows.next_row()).map(|row| Json::Object(row.unwrap().values)).collect()
}

use super::*;

#[test]
fn every_type_that_is_read_has_its_value() {
    let mut words = StringDictionaryBuilder::<Key>::new();
    words.append_value("red");
    words.append_null();
    let mut lists = ListBuilder::new(StringBuilder::new());
    lists.append_value([Some("a"), None]);
    lists.append_null();
    let part: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
    let structs = StructArray::from(vec![(Arc::new(Field::new("n", DataType::Int32, true)), part)]);
    let price = Decimal128Array::from(vec![Some(1999), None]).with_precision_and_scale(9, 2).unwrap();
    let count = Decimal128Array::from(vec![Some(42), None]).with_precision_and_scale(9, 0).unwrap();
    let exact = Decimal128Array::from(vec![Some(12_345_678_901_234_567_890_123), None]);
    let exact = exact.with_precision_and_scale(38, 2).unwrap();
    let day = 20_410;
    let rows = read(vec![
        ("boolean", Arc::new(BooleanArray::from(vec![Some(true), None]))),
        ("i8", Arc::new(Int8Array::from(vec![Some(-8), None]))),
        ("i16", Arc::new(Int16Array::from(vec![Some(-16), None]))),
        ("i32", Arc::new(Int32Array::from(vec![Some(-32), None]))),
        ("i64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None]))),
        ("u8", Arc::new(UInt8Array::from(vec![Some(8), None]))),
        ("u16", Arc::new(UInt16Array::from(vec![Some(16), None]))),
        ("u32", Arc::new(UInt32Array::from(vec![Some(u32::MAX), None]))),
        ("u64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None]))),
        ("f32", Arc::new(Float32Array::from(vec![Some(0.5), None]))),
        ("f64", Arc::new(Float64Array::from(vec![Some(0.1), None]))),
        ("text", Arc::new(StringArray::from(vec![Some("ü"), None]))),
        ("large", Arc::new(LargeStringArray::from(vec![Some("l"), None]))),
        ("view", Arc::new(StringViewArray::from(vec![Some("v"), None]))),
        ("date", Arc::new(Date32Array::from(vec![Some(day), None]))),
        ("date64", Arc::new(Date64Array::from(vec![Some(i64::from(day) * DAY), None]))),
        ("second", Arc::new(TimestampSecondArray::from(vec![Some(86_400), None]))),
        ("zoned", Arc::new(TimestampMillisecondArray::from(vec![Some(500), None]).with_timezone("UTC"))),
        ("micro", Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None]))),
        ("nano", Arc::new(TimestampNanosecondArray::from(vec![Some(1_000_000_000), None]))),
        ("word", Arc::new(words.finish())),
        ("list", Arc::new(lists.finish())),
        ("struct", Arc::new(structs)),
        ("price", Arc::new(price)),
        ("count", Arc::new(count)),
        ("exact", Arc::new(exact)),
    ]);
    let expected = json!({
        "boolean": true, "i8": -8, "i16": -16, "i32": -32, "i64": i64::MIN, "u8": 8, "u16": 16, "u32": u32::MAX,
        "u64": u64::MAX, "f32": 0.5, "f64": 0.1, "text": "ü", "large": "l", "view": "v", "date": "2025-11-18",
        "date64": "2025-11-18", "second": "1970-01-02T00:00:00", "zoned": "1970-01-01T00:00:00.5Z",
        "micro": "1970-01-01T00:00:00.000001", "nano": "1970-01-01T00:00:01", "word": "red", "list": ["a", null],
        "struct": {"n": 7}, "price": 19.99, "count": 42, "exact": "123456789012345678901.23",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(rows[0][name], *value, "{name}");
        let none = if name == "struct" { json!({"n": null}) } else { Json::Null };
        assert_eq!(rows[1][name], none, "{name}");
    }
}

#[test]
fn a_type_that_is_not_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.parquet");
    let column: ArrayRef = Arc::new(BinaryArray::from(vec![&b"x"[..]]));
    let schema = Arc::new(Schema::new(vec![Field::new("picture", DataType::Binary, true)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
    let mut writer = ArrowWriter::try_new(File::create(&path).unwrap(), schema, None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let error = open_rows(&path).err().unwrap().report(false);
    assert!(error.contains("the column `picture` has the type Binary"), "{error}");
    std::fs::write(&path, "no Parquet").unwrap();
    let error = open_rows(&path).err().unwrap().report(false);
    assert!(error.contains("the file is not Parquet"), "{error}");
}
