//! Values as functions of the program get them.

use serde_json::{Map, Number, Value as Json};

use super::Render;
use crate::error::{Error, Exceeded, Result};
use crate::value::{Special, Val, Value};

/// How deeply values may nest.
const DEPTH: usize = 128;

/// A value as the program gets it.
pub(crate) fn to_json<'r>(render: &Render<'r>, value: &Val<'r>) -> Result<Json> {
    json_at(render, value, 0, &mut 0)
}

fn json_at<'r>(render: &Render<'r>, value: &Val<'r>, depth: usize, count: &mut usize) -> Result<Json> {
    check_depth(depth)?;
    *count += 1;
    if *count > render.env.limits.items {
        let most = render.env.limits.items;
        return Err(Error::limit(Exceeded::Size, format!("a value holds more than {most} others")));
    }
    Ok(match &value.value {
        Value::Undefined(_) | Value::None => Json::Null,
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(number) => Json::from(*number),
        Value::Big(number) => Json::String(number.to_string()),
        Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
        Value::Text(text) => {
            render.spend_text(text.as_str().len())?;
            Json::String(text.as_str().to_owned())
        }
        Value::Array(items) => Json::Array(items.to_vec()),
        Value::Map(map) => Json::Object((*map).clone()),
        Value::Dict(_) => {
            let mut map = Map::new();
            for (key, value) in render.pairs(value)?.unwrap_or_default() {
                map.insert(
                    render.text_of(&key)?.as_str().to_owned(),
                    json_at(render, &value, depth + 1, count)?,
                );
            }
            Json::Object(map)
        }
        Value::Special(special) if matches!(special.as_ref(), Special::Placeholder(_)) => {
            Json::String(special.describe())
        }
        _ => {
            let items = render.item_list(value)?;
            Json::Array(
                items.iter().map(|item| json_at(render, item, depth + 1, count)).collect::<Result<_>>()?,
            )
        }
    })
}

/// Refuses values that nest too deeply.
pub(crate) fn check_depth(depth: usize) -> Result<()> {
    if depth > DEPTH {
        return Err(Error::limit(Exceeded::Depth, format!("a value nests more than {DEPTH} levels deep")));
    }
    Ok(())
}
