//! The types of an output's columns, for formats that need to know them before the first row.

use std::collections::BTreeMap;

use cuebook::Result;
use cuebook::prompt::Shape;
use serde_json::{Map, Value as Json};

use crate::rows::Rows;

/// The most columns whose types are kept.
const MAX_COLUMNS: usize = 10_000;

/// The type of a column. Every value may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers of 64 bits.
    Integer,
    /// Numbers.
    Number,
    /// True and false.
    Boolean,
    /// Anything else, as the text of its JSON.
    Json,
}

impl Kind {
    /// The type of a value; `None` for null, which every type has.
    fn of(value: &Json) -> Option<Kind> {
        match value {
            Json::Null => None,
            Json::String(_) => Some(Kind::Text),
            Json::Bool(_) => Some(Kind::Boolean),
            Json::Number(number) if number.is_i64() => Some(Kind::Integer),
            Json::Number(number) if number.is_u64() => Some(Kind::Json),
            Json::Number(_) => Some(Kind::Number),
            Json::Array(_) | Json::Object(_) => Some(Kind::Json),
        }
    }

    /// Its name in a schema.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Integer => "integer",
            Kind::Number => "number",
            Kind::Boolean => "boolean",
            Kind::Json => "json",
        }
    }

    /// A value as a column of this type has it; `None` if it cannot.
    pub fn cell(self, value: Json) -> Option<Json> {
        let fits = match self {
            _ if value.is_null() => true,
            Kind::Json => return Some(Json::String(value.to_string())),
            Kind::Text => value.is_string(),
            Kind::Integer => value.is_i64(),
            Kind::Number => value.is_number(),
            Kind::Boolean => value.is_boolean(),
        };
        fits.then_some(value)
    }

    fn and(self, other: Kind) -> Kind {
        match (self, other) {
            (one, other) if one == other => one,
            (Kind::Integer, Kind::Number) | (Kind::Number, Kind::Integer) => Kind::Number,
            _ => Kind::Json,
        }
    }

    /// The type of an output that a prompt declares.
    pub(crate) fn of_shape(shape: &Shape) -> Kind {
        match shape {
            Shape::Text | Shape::DateTime | Shape::Date | Shape::Time | Shape::Uuid | Shape::Path => {
                Kind::Text
            }
            Shape::Integer => Kind::Integer,
            Shape::Number => Kind::Number,
            Shape::Boolean => Kind::Boolean,
            Shape::Enum(values) if values.iter().all(Json::is_string) => Kind::Text,
            Shape::Union(shapes) => {
                let mut kinds = shapes.iter().filter(|shape| **shape != Shape::Null).map(Kind::of_shape);
                let first = kinds.next().unwrap_or(Kind::Json);
                kinds.fold(first, Kind::and)
            }
            _ => Kind::Json,
        }
    }
}

/// The columns of a file and their types, from all its rows.
pub(crate) fn of_rows(mut rows: Box<dyn Rows>) -> Result<Vec<(String, Kind)>> {
    if let Some(columns) = rows.columns().filter(|_| rows.are_texts()) {
        return Ok(columns.iter().map(|column| (column.clone(), Kind::Text)).collect());
    }
    let mut names: Vec<String> = rows.columns().map(<[String]>::to_vec).unwrap_or_default();
    let mut kinds: BTreeMap<String, Option<Kind>> = names.iter().map(|name| (name.clone(), None)).collect();
    while let Some(row) = rows.next_row() {
        let values: Map<String, Json> = row?.values;
        for (name, value) in values {
            let kind = Kind::of(&value);
            match kinds.get_mut(&name) {
                Some(known) => {
                    *known = match (*known, kind) {
                        (Some(known), Some(kind)) => Some(known.and(kind)),
                        (known, kind) => known.or(kind),
                    }
                }
                None if names.len() < MAX_COLUMNS => {
                    names.push(name.clone());
                    kinds.insert(name, kind);
                }
                None => {}
            }
        }
    }
    Ok(names
        .into_iter()
        .map(|name| {
            let kind = kinds[&name].unwrap_or(Kind::Text);
            (name, kind)
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_column_has_the_type_that_holds_all_its_values() {
        let kind = |values: &[Json]| values.iter().filter_map(Kind::of).reduce(Kind::and);
        assert_eq!(kind(&[json!(1), json!(null), json!(2)]), Some(Kind::Integer));
        assert_eq!(kind(&[json!(1), json!(2.5)]), Some(Kind::Number));
        assert_eq!(kind(&[json!(1), json!("a")]), Some(Kind::Json));
        assert_eq!(kind(&[json!(u64::MAX), json!(1)]), Some(Kind::Json));
        assert_eq!(kind(&[json!(null)]), None);
        let optional = Shape::Union(vec![Shape::Integer, Shape::Null]);
        assert_eq!(Kind::of_shape(&optional), Kind::Integer);
    }
}
