//! Columns from buffers of bytes, whole ones and damaged ones.

#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

use cuebook_columns::{Batch, Column, Source};
use serde_json::{Value as Json, json};

/// An array in memory.
#[derive(Debug, Clone, Default)]
struct Array {
    format: &'static str,
    name: &'static str,
    length: usize,
    offset: usize,
    bit_offset: usize,
    has_nulls: bool,
    buffers: Vec<Vec<u8>>,
    views: Vec<Vec<u8>>,
    children: Vec<Array>,
    dictionary: Option<Box<Array>>,
}

impl Array {
    fn new(format: &'static str, length: usize, buffers: &[&[u8]]) -> Array {
        let buffers = buffers.iter().map(|buffer| buffer.to_vec()).collect();
        Array { format, length, buffers, ..Array::default() }
    }

    fn named(self, name: &'static str) -> Array {
        Array { name, ..self }
    }
}

impl<'a> Source<'a> for &'a Array {
    fn format(self) -> &'a str {
        self.format
    }

    fn name(self) -> &'a str {
        self.name
    }

    fn length(self) -> usize {
        self.length
    }

    fn offset(self) -> usize {
        self.offset
    }

    fn bit_offset(self) -> usize {
        self.bit_offset
    }

    fn has_nulls(self) -> bool {
        self.has_nulls
    }

    fn buffer(self, at: usize, bytes: usize) -> &'a [u8] {
        let buffer = self.buffers.get(at).map_or(&[][..], Vec::as_slice);
        &buffer[..bytes.min(buffer.len())]
    }

    fn view_buffers(self) -> Vec<&'a [u8]> {
        self.views.iter().map(Vec::as_slice).collect()
    }

    fn children(self) -> Vec<&'a Array> {
        self.children.iter().collect()
    }

    fn dictionary(self) -> Option<&'a Array> {
        self.dictionary.as_deref()
    }
}

fn read(array: &Array) -> Result<Vec<Json>, String> {
    let column = Column::new(array)?;
    (0..column.len())
        .map(|row| {
            let mut value = json!("before");
            column.write(row, &mut value).map(|()| value)
        })
        .collect()
}

fn bytes<const WIDTH: usize>(numbers: &[[u8; WIDTH]]) -> Vec<u8> {
    numbers.concat()
}

fn texts(offsets: &[i32], text: &str) -> Array {
    let offsets: Vec<[u8; 4]> = offsets.iter().map(|offset| offset.to_ne_bytes()).collect();
    Array::new("u", offsets.len() - 1, &[&[], &bytes(&offsets), text.as_bytes()])
}

#[test]
fn numbers_of_every_width_are_read() {
    let one = |format, bytes: &[u8]| read(&Array::new(format, 1, &[&[], bytes])).unwrap().remove(0);
    assert_eq!(one("c", &(-7_i8).to_ne_bytes()), json!(-7));
    assert_eq!(one("C", &[200]), json!(200));
    assert_eq!(one("s", &(-700_i16).to_ne_bytes()), json!(-700));
    assert_eq!(one("S", &60_000_u16.to_ne_bytes()), json!(60_000));
    assert_eq!(one("i", &i32::MIN.to_ne_bytes()), json!(i32::MIN));
    assert_eq!(one("I", &u32::MAX.to_ne_bytes()), json!(u32::MAX));
    assert_eq!(one("l", &i64::MIN.to_ne_bytes()), json!(i64::MIN));
    assert_eq!(one("L", &u64::MAX.to_ne_bytes()), json!(u64::MAX));
    assert_eq!(one("f", &0.1_f32.to_ne_bytes()), json!(0.1));
    assert_eq!(one("g", &0.1_f64.to_ne_bytes()), json!(0.1));
    assert_eq!(one("d:5,2", &(-12_345_i128).to_ne_bytes()), json!("-123.45"));
    assert_eq!(one("tdD", &20_504_i32.to_ne_bytes()), json!("2026-02-20"));
    assert_eq!(one("tts", &3_661_i32.to_ne_bytes()), json!("01:01:01"));
    assert_eq!(one("tsm:+09:00", &1_771_601_400_000_i64.to_ne_bytes()), json!("2026-02-21T00:30:00+09:00"));
}

#[test]
fn offsets_of_values_and_of_bits_differ() {
    let numbers = bytes(&[1_i32, 2, 3, 4].map(i32::to_ne_bytes));
    let mut array = Array::new("i", 2, &[&[0b0000_1000], &numbers]);
    array.has_nulls = true;
    array.offset = 2;
    array.bit_offset = 2;
    assert_eq!(read(&array).unwrap(), [json!(null), json!(4)]);
    // The values are cut, and the bits are not.
    array.offset = 0;
    assert_eq!(read(&array).unwrap(), [json!(null), json!(2)]);
    let mut truths = Array::new("b", 3, &[&[], &[0b0101_0000]]);
    truths.bit_offset = 4;
    assert_eq!(read(&truths).unwrap(), [json!(true), json!(false), json!(true)]);
}

#[test]
fn lists_structs_and_dictionaries_are_read() {
    let entries = texts(&[0, 1, 3], "abb");
    let keys =
        Array { dictionary: Some(Box::new(entries.clone())), ..Array::new("c", 3, &[&[], &[1, 0, 1]]) };
    assert_eq!(read(&keys).unwrap(), [json!("bb"), json!("a"), json!("bb")]);
    let offsets = bytes(&[0_i32, 2, 2].map(i32::to_ne_bytes));
    let list = Array { children: vec![entries.clone()], ..Array::new("+l", 2, &[&[], &offsets]) };
    assert_eq!(read(&list).unwrap(), [json!(["a", "bb"]), json!([])]);
    let fixed = Array { children: vec![entries.clone()], ..Array::new("+w:2", 1, &[]) };
    assert_eq!(read(&fixed).unwrap(), [json!(["a", "bb"])]);
    let members = vec![entries.named("word"), Array::new("C", 2, &[&[], &[1, 2]]).named("number")];
    let record = Array { children: members, ..Array::new("+s", 2, &[]) };
    assert_eq!(read(&record).unwrap()[1], json!({"word": "bb", "number": 2}));
    let batch = Batch::new(&record, &["number"]).unwrap();
    let mut values = [json!(null)];
    batch.write(1, &mut values).unwrap();
    assert_eq!((batch.rows(), &values[0]), (2, &json!(2)));
}

#[test]
fn views_have_short_texts_inside_and_long_ones_outside() {
    let view = |numbers: [i32; 4]| bytes(&numbers.map(i32::to_ne_bytes));
    let mut short = view([2, 0, 0, 0]);
    short[4..6].copy_from_slice(b"ab");
    let mut array = Array::new("vu", 2, &[&[], &[short, view([13, 0, 0, 1])].concat()]);
    array.views = vec![b"-a long text. -".to_vec()];
    assert_eq!(read(&array).unwrap(), [json!("ab"), json!("a long text. ")]);
}

#[test]
fn a_batch_names_the_column_that_cannot_be_read() {
    let wrong = Array { children: vec![Array::new("z", 1, &[]).named("blob")], ..Array::new("+s", 1, &[]) };
    let error = Batch::new(&wrong, &["blob"]).err().unwrap();
    assert!(
        error.starts_with("its column `blob` cannot be read: its type has the Arrow format `z`"),
        "{error}"
    );
    assert!(Batch::new(&wrong, &[]).is_ok());
    let short =
        Array { children: vec![Array::new("C", 1, &[&[], &[1]]).named("few")], ..Array::new("+s", 2, &[]) };
    assert_eq!(Batch::new(&short, &["few"]).err().unwrap(), "its column `few` is too short");
}

/// Numbers that look random, and are the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    fn bytes(&mut self) -> Vec<u8> {
        let length = self.below(40);
        let wild = self.below(2) == 0;
        (0..length).map(|_| self.below(if wild { 256 } else { 3 }) as u8).collect()
    }

    fn array(&mut self, depth: usize) -> Array {
        const FORMATS: [&str; 26] = [
            "n",
            "b",
            "c",
            "C",
            "s",
            "S",
            "i",
            "I",
            "l",
            "L",
            "f",
            "g",
            "u",
            "U",
            "vu",
            "tdD",
            "tdm",
            "tts",
            "ttn",
            "tsu:",
            "d:9,3",
            "+l",
            "+L",
            "+s",
            "+w:3",
            "+w:18446744073709551615",
        ];
        let nested = if depth < 3 { self.below(3) } else { 0 };
        let huge = self.below(20) == 0;
        Array {
            format: FORMATS[self.below(FORMATS.len())],
            name: "x",
            length: if huge { usize::MAX - self.below(9) } else { self.below(6) },
            offset: self.below(4),
            bit_offset: self.below(40),
            has_nulls: self.below(2) == 0,
            buffers: (0..self.below(4)).map(|_| self.bytes()).collect(),
            views: (0..self.below(3)).map(|_| self.bytes()).collect(),
            children: (0..nested).map(|_| self.array(depth + 1)).collect(),
            dictionary: (depth < 3 && self.below(4) == 0).then(|| Box::new(self.array(depth + 1))),
        }
    }
}

#[test]
fn damaged_buffers_are_errors_and_never_panics() {
    let mut numbers = Numbers(2026);
    let (mut read, mut failed) = (0, 0);
    for _ in 0..60_000 {
        let array = numbers.array(0);
        let Ok(column) = Column::new(&array) else {
            failed += 1;
            continue;
        };
        for row in 0..column.len().min(6) {
            match column.write(row, &mut Json::Null) {
                Ok(()) => read += 1,
                Err(_) => failed += 1,
            }
        }
    }
    assert!(read > 5_000 && failed > 5_000, "{read} values and {failed} errors");
}
