//! Any serializable value as JSON. What JSON cannot say is refused: a number that is not finite, values that nest too deep, a key that
//! is no text.

use std::fmt;

use serde::ser::{self, Serialize};
use serde_json::{Map, Value as Json};

/// How deep the values of a variable may nest.
pub(super) const DEEPEST: usize = 128;

/// Why a value cannot be the value of a variable.
#[derive(Debug)]
pub(super) struct Fault(pub(super) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Fault {}

impl ser::Error for Fault {
    fn custom<T: fmt::Display>(message: T) -> Fault {
        Fault(message.to_string())
    }
}

fn too_deep() -> Fault {
    Fault(format!("has more than {DEEPEST} values inside each other"))
}

/// The value as JSON.
pub(super) fn to_json<T: Serialize + ?Sized>(value: &T) -> Result<Json, Fault> {
    value.serialize(Levels(DEEPEST))
}

/// Refuses JSON that nests too deep.
pub(super) fn check_depth(value: &Json) -> Result<(), Fault> {
    match nests_below(value, DEEPEST) {
        true => Ok(()),
        false => Err(too_deep()),
    }
}

fn nests_below(value: &Json, levels: usize) -> bool {
    match value {
        Json::Array(items) => levels > 0 && items.iter().all(|item| nests_below(item, levels - 1)),
        Json::Object(members) => levels > 0 && members.values().all(|item| nests_below(item, levels - 1)),
        _ => true,
    }
}

/// Makes JSON that has at most so many more levels.
#[derive(Clone, Copy)]
struct Levels(usize);

impl Levels {
    fn down(self) -> Result<Levels, Fault> {
        self.0.checked_sub(1).map(Levels).ok_or_else(too_deep)
    }

    fn list(self, variant: Option<&'static str>) -> Result<List, Fault> {
        let levels = if variant.is_some() { self.down()? } else { self };
        Ok(List { items: Vec::new(), levels: levels.down()?, variant })
    }

    fn object(self, variant: Option<&'static str>) -> Result<Object, Fault> {
        let levels = if variant.is_some() { self.down()? } else { self };
        Ok(Object { members: Map::new(), key: String::new(), levels: levels.down()?, variant })
    }
}

/// What an enum's variant holds, under the variant's name.
fn in_variant(variant: Option<&'static str>, value: Json) -> Json {
    match variant {
        Some(name) => Json::Object(Map::from_iter([(name.to_owned(), value)])),
        None => value,
    }
}

struct List {
    items: Vec<Json>,
    levels: Levels,
    variant: Option<&'static str>,
}

struct Object {
    members: Map<String, Json>,
    key: String,
    levels: Levels,
    variant: Option<&'static str>,
}

macro_rules! plain {
    ($($method:ident: $kind:ty),* $(,)?) => {
        $(fn $method(self, value: $kind) -> Result<Json, Fault> {
            Ok(Json::from(value))
        })*
    };
}

impl ser::Serializer for Levels {
    type Ok = Json;
    type Error = Fault;
    type SerializeSeq = List;
    type SerializeTuple = List;
    type SerializeTupleStruct = List;
    type SerializeTupleVariant = List;
    type SerializeMap = Object;
    type SerializeStruct = Object;
    type SerializeStructVariant = Object;

    plain! {
        serialize_bool: bool,
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_str: &str,
        serialize_bytes: &[u8],
    }

    fn serialize_f32(self, value: f32) -> Result<Json, Fault> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<Json, Fault> {
        match value.is_finite() {
            true => Ok(Json::from(value)),
            false => Err(Fault(format!("has the number {value}, which JSON cannot hold"))),
        }
    }

    fn serialize_char(self, value: char) -> Result<Json, Fault> {
        Ok(Json::from(value.to_string()))
    }

    fn serialize_none(self) -> Result<Json, Fault> {
        Ok(Json::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Json, Fault> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Json, Fault> {
        Ok(Json::Null)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<Json, Fault> {
        Ok(Json::Null)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Json, Fault> {
        Ok(Json::from(variant))
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<Json, Fault> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<Json, Fault> {
        Ok(in_variant(Some(variant), value.serialize(self.down()?)?))
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<List, Fault> {
        self.list(None)
    }

    fn serialize_tuple(self, _: usize) -> Result<List, Fault> {
        self.list(None)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<List, Fault> {
        self.list(None)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<List, Fault> {
        self.list(Some(variant))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Object, Fault> {
        self.object(None)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Object, Fault> {
        self.object(None)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Object, Fault> {
        self.object(Some(variant))
    }
}

impl List {
    fn push<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.items.push(value.serialize(self.levels)?);
        Ok(())
    }

    fn finish(self) -> Result<Json, Fault> {
        Ok(in_variant(self.variant, Json::Array(self.items)))
    }
}

macro_rules! list {
    ($($part:ident: $method:ident),*) => {
        $(impl ser::$part for List {
            type Ok = Json;
            type Error = Fault;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
                self.push(value)
            }

            fn end(self) -> Result<Json, Fault> {
                self.finish()
            }
        })*
    };
}

list! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field
}

impl ser::SerializeMap for Object {
    type Ok = Json;
    type Error = Fault;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Fault> {
        self.key = match key.serialize(Levels(0))? {
            Json::String(text) => text,
            other @ (Json::Number(_) | Json::Bool(_)) => other.to_string(),
            _ => return Err(Fault("has a key that is not a text".to_owned())),
        };
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Fault> {
        self.members.insert(std::mem::take(&mut self.key), value.serialize(self.levels)?);
        Ok(())
    }

    fn end(self) -> Result<Json, Fault> {
        Ok(Json::Object(self.members))
    }
}

macro_rules! fields {
    ($($part:ident),*) => {
        $(impl ser::$part for Object {
            type Ok = Json;
            type Error = Fault;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Fault> {
                self.members.insert(name.to_owned(), value.serialize(self.levels)?);
                Ok(())
            }

            fn end(self) -> Result<Json, Fault> {
                Ok(in_variant(self.variant, Json::Object(self.members)))
            }
        })*
    };
}

fields! { SerializeStruct, SerializeStructVariant }

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Serialize)]
    enum Shape {
        Point,
        Circle(f32),
        Line((u8, u8), Option<char>),
        Box { width: u64, tags: Vec<&'static str> },
    }

    /// The same JSON as serde_json makes, for values that both can say.
    #[test]
    fn values_become_the_json_that_serde_json_makes() {
        let keys = std::collections::BTreeMap::from([(1, Shape::Point), (2, Shape::Circle(0.5))]);
        let values = (
            [Shape::Line((1, 2), Some('x')), Shape::Line((0, 255), None)],
            Shape::Box { width: u64::MAX, tags: vec!["a", ""] },
            keys,
            serde_json::json!({"n": [1, -2, 3.25, null, true], "o": {}}),
        );
        assert_eq!(to_json(&values).unwrap(), serde_json::to_value(&values).unwrap());
    }

    #[test]
    fn numbers_that_are_not_finite_are_refused() {
        for number in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let fault = to_json(&vec![Some(number)]).unwrap_err();
            assert!(fault.to_string().contains("which JSON cannot hold"), "{fault}");
        }
        assert!(to_json(&f32::NAN).is_err());
        assert!(to_json(&std::collections::BTreeMap::from([((1, 2), 3)])).is_err(), "a key that is a list");
    }

    #[test]
    fn values_nest_to_the_limit_and_no_deeper() {
        let nested = |levels: usize| (0..levels).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
        for (levels, fits) in [(0, true), (DEEPEST, true), (DEEPEST + 1, false), (8_000, false)] {
            assert_eq!(to_json(&nested(levels)).is_ok(), fits, "{levels}");
            assert_eq!(check_depth(&nested(levels)).is_ok(), fits, "{levels}");
        }
    }
}
