//! The fields of a Rust struct as values, without a JSON object in between: parameters are bound for every render.
//!
//! A field is what its JSON is. Whatever is no plain struct at its top, as one with flattened fields, is left to others.

use serde::ser::{Error, Impossible, Serialize, SerializeStruct, Serializer};
use serde_json::Error as Failure;
use serde_json::Value;

use crate::variables::Variables;

/// The fields of a struct; the error is that of a field, or of something that is no struct.
pub(super) fn fields(value: &impl Serialize) -> Result<Variables, Failure> {
    value.serialize(Top)
}

struct Top;

struct Fields(Vec<(String, Value)>);

impl SerializeStruct for Fields {
    type Ok = Variables;
    type Error = Failure;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Failure> {
        self.0.push((key.to_owned(), serde_json::to_value(value)?));
        Ok(())
    }

    fn end(self) -> Result<Variables, Failure> {
        Ok(self.0.into_iter().collect())
    }
}

/// What stands at the top of something that is no struct.
macro_rules! no_struct {
    ($($name:ident($($of:ty),*) -> $result:ty;)*) => {
        $(fn $name(self, $(_: $of),*) -> Result<$result, Failure> {
            Err(Failure::custom("no struct"))
        })*
    };
}

type No = Impossible<Variables, Failure>;

impl Serializer for Top {
    type Ok = Variables;
    type Error = Failure;
    type SerializeSeq = No;
    type SerializeTuple = No;
    type SerializeTupleStruct = No;
    type SerializeTupleVariant = No;
    type SerializeMap = No;
    type SerializeStruct = Fields;
    type SerializeStructVariant = No;

    fn serialize_struct(self, _: &'static str, length: usize) -> Result<Fields, Failure> {
        Ok(Fields(Vec::with_capacity(length)))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Variables, Failure> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Variables, Failure> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Variables, Failure> {
        Err(Failure::custom("no struct"))
    }

    no_struct! {
        serialize_bool(bool) -> Variables;
        serialize_i8(i8) -> Variables;
        serialize_i16(i16) -> Variables;
        serialize_i32(i32) -> Variables;
        serialize_i64(i64) -> Variables;
        serialize_u8(u8) -> Variables;
        serialize_u16(u16) -> Variables;
        serialize_u32(u32) -> Variables;
        serialize_u64(u64) -> Variables;
        serialize_f32(f32) -> Variables;
        serialize_f64(f64) -> Variables;
        serialize_char(char) -> Variables;
        serialize_str(&str) -> Variables;
        serialize_bytes(&[u8]) -> Variables;
        serialize_none() -> Variables;
        serialize_unit() -> Variables;
        serialize_unit_struct(&'static str) -> Variables;
        serialize_unit_variant(&'static str, u32, &'static str) -> Variables;
        serialize_seq(Option<usize>) -> No;
        serialize_tuple(usize) -> No;
        serialize_tuple_struct(&'static str, usize) -> No;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> No;
        serialize_map(Option<usize>) -> No;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> No;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    #[derive(serde::Serialize)]
    struct Inner {
        deep: Vec<f32>,
    }

    #[derive(serde::Serialize)]
    struct All {
        #[serde(rename = "called")]
        text: String,
        letter: char,
        number: u64,
        missing: Option<i8>,
        not_a_number: f64,
        inner: Inner,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<bool>,
    }

    #[derive(serde::Serialize)]
    struct Flat {
        one: i32,
        #[serde(flatten)]
        inner: Inner,
    }

    fn inner() -> Inner {
        Inner { deep: vec![0.5, 1.0] }
    }

    #[test]
    fn fields_are_what_their_json_is() {
        let all = All {
            text: "a longer text than fits into a small string".into(),
            letter: 'é',
            number: u64::MAX,
            missing: None,
            not_a_number: f64::NAN,
            inner: inner(),
            left_out: None,
        };
        let (direct, json) = (fields(&all).unwrap(), serde_json::to_value(&all).unwrap());
        let names: Vec<&str> = direct.names().collect();
        assert_eq!(names, ["called", "letter", "number", "missing", "not_a_number", "inner"]);
        for name in names {
            assert_eq!(direct.get(name), json.get(name).cloned(), "{name}");
        }
    }

    #[test]
    fn only_plain_structs_have_fields() {
        assert!(fields(&Flat { one: 1, inner: inner() }).is_err());
        for value in [json!({"a": 1}), json!([1]), json!("a"), json!(1), json!(true), Json::Null] {
            assert!(fields(&value).is_err(), "{value}");
        }
    }
}
