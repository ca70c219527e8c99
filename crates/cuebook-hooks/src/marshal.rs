//! Values in the form that Python's `marshal` writes and reads, which costs a worker a fraction of what JSON costs it.
//!
//! Version 2 of the format, which every Python has written and read in the same way since 2.5, and of it only what JSON can
//! hold as well. What comes from a worker is read with suspicion: a length is believed only if the bytes are there, nothing
//! is read too deep, and what JSON cannot hold is reported with the way to it.

use serde_json::{Number, Value as Json};

use crate::not_json::{NotJson, NotJsonReason};
use cuebook::hooks::Values;

/// How deep values may be nested.
pub const DEEPEST: usize = 100;

/// Bits of a digit of a long integer.
const DIGIT: u32 = 15;

/// Writes values one after the other.
#[derive(Debug)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Begins with bytes that are not of the values.
    pub fn new(before: &[u8]) -> Writer {
        let mut bytes = Vec::with_capacity(1024);
        bytes.extend_from_slice(before);
        Writer(bytes)
    }

    /// What has been written.
    pub fn finish(self) -> Vec<u8> {
        self.0
    }

    /// A string.
    pub fn text(&mut self, text: &str) {
        self.0.push(b'u');
        self.length(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A list, whose items follow.
    pub fn list(&mut self, items: usize) {
        self.0.push(b'[');
        self.length(items);
    }

    /// A dict, whose keys and values follow, and then its end.
    pub fn dict(&mut self) {
        self.0.push(b'{');
    }

    /// The end of a dict.
    pub fn end(&mut self) {
        self.0.push(b'0');
    }

    /// A dict.
    pub fn values(&mut self, values: &Values) {
        self.dict();
        for (name, value) in values {
            self.text(name);
            self.value(value);
        }
        self.end();
    }

    /// Any value.
    pub fn value(&mut self, value: &Json) {
        match value {
            Json::Null => self.0.push(b'N'),
            Json::Bool(true) => self.0.push(b'T'),
            Json::Bool(false) => self.0.push(b'F'),
            Json::Number(number) => self.number(number),
            Json::String(text) => self.text(text),
            Json::Array(items) => {
                self.list(items.len());
                for item in items {
                    self.value(item);
                }
            }
            Json::Object(values) => self.values(values),
        }
    }

    /// A whole number.
    pub fn integer(&mut self, value: i128) {
        if let Ok(small) = i32::try_from(value) {
            self.0.push(b'i');
            self.0.extend_from_slice(&small.to_le_bytes());
            return;
        }
        let mut digits = Vec::new();
        let mut rest = value.unsigned_abs();
        while rest > 0 {
            digits.push((rest & ((1 << DIGIT) - 1)) as u16);
            rest >>= DIGIT;
        }
        let count = digits.len() as i32;
        self.0.push(b'l');
        self.0.extend_from_slice(&(if value < 0 { -count } else { count }).to_le_bytes());
        for digit in digits {
            self.0.extend_from_slice(&digit.to_le_bytes());
        }
    }

    fn number(&mut self, number: &Number) {
        match (number.as_i64(), number.as_u64(), number.as_f64()) {
            (Some(integer), _, _) => self.integer(integer.into()),
            (_, Some(integer), _) => self.integer(integer.into()),
            (_, _, float) => {
                self.0.push(b'g');
                self.0.extend_from_slice(&float.unwrap_or_default().to_le_bytes());
            }
        }
    }

    /// A length that does not fit makes the whole longer than a frame can be, and that is noticed there.
    fn length(&mut self, length: usize) {
        self.0.extend_from_slice(&(length as u32).to_le_bytes());
    }
}

/// A value, and what in it JSON cannot hold, if anything. After that nothing more of it is certain.
pub type Decoded = (Json, Option<NotJson>);

/// Reads one value. `None` if the bytes are something else.
pub fn read(bytes: &[u8]) -> Option<Decoded> {
    let mut reader = ByteReader { rest: bytes, way: Vec::new(), not_json: None };
    let value = reader.value()?;
    (reader.rest.is_empty() || reader.not_json.is_some()).then_some((value, reader.not_json))
}

struct ByteReader<'b> {
    rest: &'b [u8],
    /// The way to where we are.
    way: Vec<Step>,
    /// The first thing that JSON cannot hold.
    not_json: Option<NotJson>,
}

enum Step {
    Key(String),
    Index(usize),
}

impl ByteReader<'_> {
    fn take(&mut self, count: usize) -> Option<&[u8]> {
        let (taken, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn length(&mut self) -> Option<usize> {
        Some(u32::from_le_bytes(self.array()?) as usize)
    }

    fn value(&mut self) -> Option<Json> {
        let [code] = self.array()?;
        self.of(code)
    }

    fn of(&mut self, code: u8) -> Option<Json> {
        match code {
            b'N' => Some(Json::Null),
            b'T' => Some(Json::Bool(true)),
            b'F' => Some(Json::Bool(false)),
            b'i' => Some(Json::from(i32::from_le_bytes(self.array()?))),
            b'l' => self.long(),
            b'g' => {
                let float = f64::from_le_bytes(self.array()?);
                let number = Number::from_f64(float);
                if number.is_none() {
                    let shown = if float.is_nan() { "nan".to_owned() } else { float.to_string() };
                    self.refuse("float", NotJsonReason::Float, shown);
                }
                Some(number.map_or(Json::Null, Json::Number))
            }
            b'u' => Some(Json::String(self.text()?)),
            b'[' | b'(' => self.list(),
            b'{' => self.dict(),
            _ => {
                let kind = match code {
                    b's' => "bytes",
                    b'<' => "set",
                    b'>' => "frozenset",
                    b'x' | b'y' => "complex",
                    b'.' => "ellipsis",
                    b'S' => "StopIteration",
                    b'c' => "code",
                    _ => return None,
                };
                self.refuse(kind, NotJsonReason::Type, String::new());
                Some(Json::Null)
            }
        }
    }

    fn text(&mut self) -> Option<String> {
        let length = self.length()?;
        let text = std::str::from_utf8(self.take(length)?).map(str::to_owned);
        // Half a character is written as if it were one.
        Some(text.unwrap_or_else(|_| {
            self.refuse("str", NotJsonReason::Surrogate, String::new());
            String::new()
        }))
    }

    fn long(&mut self) -> Option<Json> {
        let count = i32::from_le_bytes(self.array()?);
        let digits = self.take(count.unsigned_abs() as usize * 2)?;
        // Five digits hold 64 bits and more; of a longer number it does not matter what it is.
        let fits = digits.len() <= 10;
        let value = digits.chunks_exact(2).take(5).rev().fold(0_i128, |value, digit| {
            (value << DIGIT) | i128::from(u16::from_le_bytes([digit[0], digit[1]]))
        });
        let value = if count < 0 { -value } else { value };
        let number = i64::try_from(value).map(Json::from).or_else(|_| u64::try_from(value).map(Json::from));
        match number {
            Ok(number) if fits => Some(number),
            _ => {
                self.refuse("int", NotJsonReason::Int, String::new());
                Some(Json::Null)
            }
        }
    }

    fn list(&mut self) -> Option<Json> {
        let length = self.length()?;
        if !self.enter() {
            return Some(Json::Null);
        }
        // Each item takes a byte at least.
        let mut items = Vec::with_capacity(length.min(self.rest.len()));
        for index in 0..length {
            self.way.push(Step::Index(index));
            let item = self.value()?;
            if self.not_json.is_some() {
                return Some(Json::Null);
            }
            self.way.pop();
            items.push(item);
        }
        Some(Json::Array(items))
    }

    fn dict(&mut self) -> Option<Json> {
        let mut values = Values::new();
        if !self.enter() {
            return Some(Json::Object(values));
        }
        loop {
            let [code] = self.array()?;
            let key = match code {
                b'0' => return Some(Json::Object(values)),
                b'u' => self.text()?,
                code => {
                    let key = self.of(code)?;
                    let (kind, shown) = match (&key, &self.not_json) {
                        (_, Some(not_json)) => (not_json.kind.clone(), format!("a {}", not_json.kind)),
                        (Json::Null, None) => ("NoneType".to_owned(), "None".to_owned()),
                        (Json::Bool(true), None) => ("bool".to_owned(), "True".to_owned()),
                        (Json::Bool(false), None) => ("bool".to_owned(), "False".to_owned()),
                        (Json::Number(number), None) if number.is_f64() => {
                            ("float".to_owned(), number.to_string())
                        }
                        (Json::Number(number), None) => ("int".to_owned(), number.to_string()),
                        (_, None) => ("tuple".to_owned(), "a tuple".to_owned()),
                    };
                    self.not_json = None;
                    self.refuse("dict", NotJsonReason::Key, shown);
                    if let Some(not_json) = &mut self.not_json {
                        not_json.key = kind;
                    }
                    String::new()
                }
            };
            if self.not_json.is_some() {
                return Some(Json::Object(values));
            }
            self.way.push(Step::Key(key));
            let value = self.value()?;
            let fit = self.not_json.is_none();
            if fit && let Some(Step::Key(key)) = self.way.pop() {
                values.insert(key, value);
            } else {
                return Some(Json::Object(values));
            }
        }
    }

    /// Goes one level deeper, if that is not too deep.
    fn enter(&mut self) -> bool {
        if self.way.len() > DEEPEST {
            self.refuse("dict", NotJsonReason::Depth, DEEPEST.to_string());
        }
        self.not_json.is_none()
    }

    /// Notes the first thing that JSON cannot hold.
    fn refuse(&mut self, kind: &str, why: NotJsonReason, value: String) {
        if self.not_json.is_none() {
            let path = self.way.iter().map(|step| match step {
                Step::Key(key) => format!("[\"{key}\"]"),
                Step::Index(index) => format!("[{index}]"),
            });
            let path = path.collect();
            self.not_json = Some(NotJson { path, kind: kind.to_owned(), why, value, ..NotJson::default() });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn written(value: &Json) -> Vec<u8> {
        let mut writer = Writer::new(b"");
        writer.value(value);
        writer.finish()
    }

    fn any_json() -> impl Strategy<Value = Json> {
        let leaf = prop_oneof![
            Just(Json::Null),
            any::<bool>().prop_map(Json::from),
            any::<i64>().prop_map(Json::from),
            any::<u64>().prop_map(Json::from),
            (-1e300..1e300).prop_map(Json::from),
            ".*".prop_map(Json::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Json::from),
                prop::collection::vec((".*", inner), 0..8)
                    .prop_map(|entries| Json::Object(entries.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(value in any_json()) {
            let (read, not_json) = read(&written(&value)).unwrap();
            prop_assert!(not_json.is_none());
            prop_assert_eq!(read, value);
        }

        #[test]
        fn no_bytes_do_any_harm(bytes in prop::collection::vec(any::<u8>(), 0..200), value in any_json()) {
            let _ = read(&bytes);
            // Nearly right ones as well.
            let mut written = written(&value);
            for (index, byte) in bytes.iter().enumerate() {
                let length = written.len();
                written[(index * 7 + *byte as usize) % length] ^= byte;
            }
            let _ = read(&written);
        }
    }

    #[test]
    fn a_length_is_believed_only_if_the_bytes_are_there() {
        for bytes in [
            &b"u\xff\xff\xff\xff"[..],
            b"[\xff\xff\xff\x7fN",
            b"l\xff\xff\xff\x7f",
            b"{u\x01\0\0\0aN",
            b"",
            b"?",
        ] {
            assert!(read(bytes).is_none(), "{bytes:?}");
        }
        assert!(read(b"NN").is_none(), "more than one value");
    }

    #[test]
    fn a_value_outside_json_is_found_with_its_path() {
        let not_json = |bytes: &[u8]| {
            let NotJson { path, kind, why, value, key, .. } = read(bytes).unwrap().1.unwrap();
            (path, kind, why, value, key)
        };
        let found = not_json(b"{u\x01\0\0\0a[\x02\0\0\0N<\0\0\0\x000");
        assert_eq!(
            found,
            ("[\"a\"][1]".into(), "set".into(), NotJsonReason::Type, String::new(), String::new())
        );
        let found = not_json(b"{i\x07\0\0\0N0");
        assert_eq!(found, (String::new(), "dict".into(), NotJsonReason::Key, "7".into(), "int".into()));
        let found = not_json(b"g\0\0\0\0\0\0\xf0\x7f");
        assert_eq!((found.2, found.3), (NotJsonReason::Float, "inf".into()));
        let deep: Vec<u8> = b"[\x01\0\0\0".repeat(100_000);
        assert_eq!(not_json(&deep).2, NotJsonReason::Depth);
        let mut long = Writer::new(b"");
        long.integer(1 << 64);
        assert_eq!(not_json(&long.finish()).2, NotJsonReason::Int);
        assert_eq!(not_json(b"u\x03\0\0\0\xed\xb2\x80").2, NotJsonReason::Surrogate);
    }

    #[test]
    fn entries_before_the_first_mistake_are_kept() {
        let (value, not_json) = read(b"{u\x02\0\0\0idu\x01\0\0\0xu\x01\0\0\0v<\0\0\0\0").unwrap();
        assert_eq!(value, json!({"id": "x"}));
        assert_eq!(not_json.unwrap().path, "[\"v\"]");
    }
}
