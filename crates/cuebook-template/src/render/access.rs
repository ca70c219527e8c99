//! Attributes, items and slices.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::Render;
use crate::error::{Error, ErrorKind, Result};
use crate::names::entry;
use crate::origin::Origin;
use crate::python::{length, offset_of};
use crate::text::Text;
use crate::value::{Cx, Key, LoopState, Missing, Part, Special, Val, Value, type_error, type_name};

/// An attribute of a number or a range that is no method.
fn number_attribute<'r>(value: &Value<'r>, name: &str) -> Option<Value<'r>> {
    match (value, name) {
        (Value::Range(range), "start") => Some(Value::Int(range.start)),
        (Value::Range(range), "stop") => Some(Value::Int(range.stop)),
        (Value::Range(range), "step") => Some(Value::Int(range.step)),
        (Value::Float(number), "real") => Some(Value::Float(*number)),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        (_, "real" | "numerator") => value.as_integer().map(Value::integer),
        (_, "imag" | "denominator") => {
            value.as_integer().map(|_| Value::Int(i64::from(name == "denominator")))
        }
        _ => None,
    }
}

/// Attributes that every value has in Python, and that no template reaches.
const OF_ALL: [&str; 8] =
    ["__class__", "__dict__", "__doc__", "__init__", "__len__", "__module__", "__slots__", "__str__"];

/// What can be printed without a value in between.
pub(crate) enum Printable<'r> {
    Text(&'r str, Origin),
    Number(i64),
}

impl<'r> Render<'r> {
    /// `value.name`: an attribute, otherwise an item.
    pub(crate) fn attribute(&self, val: &Val<'r>, name: &'r str, written: &'r str) -> Result<Val<'r>> {
        if let Value::Undefined(missing) = &val.value {
            return if self.chains() || OF_ALL.contains(&name) {
                Ok(self.no_attribute(val, name, written))
            } else {
                Err(missing.error())
            };
        }
        let found = match self.env.silent_callables && !name.starts_with("__") {
            true => {
                self.key(val, name).map_or_else(|| self.own_attribute(val, name), |found| Ok(Some(found)))?
            }
            false => self.own_attribute(val, name)?.or_else(|| self.key(val, name)),
        };
        Ok(found.unwrap_or_else(|| self.no_attribute(val, name, written)))
    }

    /// The value of a key of a dict.
    fn key(&self, val: &Val<'r>, name: &'r str) -> Option<Val<'r>> {
        match &val.value {
            Value::Map(map) => entry(map, name).map(|json| {
                let origin = self.origins.part(val.origin, name);
                Val::new(Value::from_json(json), origin)
            }),
            Value::Dict(dict) => dict.get(&Key::Text(name.to_owned())).cloned(),
            _ => None,
        }
    }

    /// `value.name` where the value is a dict of the caller's with that key, or a loop: what most attributes are.
    #[inline]
    pub(crate) fn simple_attribute(&self, val: &Val<'r>, name: &'r str) -> Option<Val<'r>> {
        match &val.value {
            Value::Map(map) => {
                let value = Value::from_json(self.field(map, name)?);
                Some(Val::new(value, self.origins.part(val.origin, name)))
            }
            Value::Special(special) => match special.as_ref() {
                Special::Loop(state) => self.loop_attribute(state, name),
                _ => None,
            },
            _ => None,
        }
    }

    /// The entry that `value.name` means of this dict of the caller's, if it has no such method.
    #[inline(always)]
    pub(crate) fn field(&self, map: &'r Map<String, Json>, name: &str) -> Option<&'r Json> {
        // No method of a dict begins with another letter.
        let may_be_method = matches!(
            name.as_bytes(),
            [b'_' | b'c' | b'f' | b'g' | b'i' | b'k' | b'p' | b's' | b'u' | b'v', ..]
        );
        if may_be_method
            && (name.starts_with("__") || (self.library.method)(&Value::Map(map), name).is_some())
        {
            return None;
        }
        entry(map, name)
    }

    /// What `value.name` means where that is a text of the caller's, or a number of a loop.
    #[inline(always)]
    pub(crate) fn printable_field(&self, val: &Val<'r>, name: &'r str) -> Option<Printable<'r>> {
        match &val.value {
            Value::Map(map) => match self.field(map, name)? {
                Json::String(text) => Some(Printable::Text(text, self.origins.part(val.origin, name))),
                _ => None,
            },
            Value::Special(special) => match special.as_ref() {
                Special::Loop(state) => match self.loop_attribute(state, name)?.value {
                    Value::Int(number) => Some(Printable::Number(number)),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether a part of something undefined is undefined, and no error.
    fn chains(&self) -> bool {
        self.is_portable() && !self.env.strict
    }

    /// What is there instead of an attribute that a value does not have; `written` is the expression that asks for it.
    pub(crate) fn no_attribute(&self, val: &Val<'r>, name: &str, written: &'r str) -> Val<'r> {
        let part = Part { owner: val.clone(), name: name.into(), written, methods: self.library.methods };
        let origin = self.origins.key(val.origin, name);
        Val::new(Value::Undefined(Missing::Part(Rc::new(part))), origin)
    }

    /// An attribute in Python's sense: methods, and what special values offer.
    pub(crate) fn own_attribute(&self, val: &Val<'r>, name: &str) -> Result<Option<Val<'r>>> {
        if let Value::Special(special) = &val.value
            && let Some(found) = self.special_attribute(special, name)?
        {
            return Ok(Some(found));
        }
        if name.starts_with("__") {
            let hidden = !matches!(&val.value, Value::Map(map) if map.contains_key(name));
            return Ok(hidden.then(|| Val::missing(format!("the attribute `{name}` is not accessible"))));
        }
        if let Some(number) = number_attribute(&val.value, name) {
            return Ok(Some(Val::new(number, val.origin)));
        }
        Ok((self.library.method)(&val.value, name).map(|name| {
            let method = Special::Method(val.clone(), name);
            Val::new(Value::Special(Rc::new(method)), val.origin)
        }))
    }

    fn special_attribute(&self, special: &Rc<Special<'r>>, name: &str) -> Result<Option<Val<'r>>> {
        Ok(match special.as_ref() {
            Special::Namespace(entries) => {
                let entries = entries.borrow();
                self.spend(entries.len() / 16)?;
                entries.iter().find(|(known, _)| known.as_ref() == name).map(|(_, value)| value.clone())
            }
            Special::Loop(state) => self.loop_attribute(state, name),
            Special::Cycler { items, at } if name == "current" => items.get(at.get()).cloned(),
            Special::Group(items) => match name {
                "grouper" => items.first().cloned(),
                "list" => items.get(1).cloned(),
                _ => None,
            },
            Special::Module(context, _) => context.offered(name),
            Special::Blocks(cx) => {
                let found = cx.context.blocks.borrow().get(name).and_then(|all| all.first()).copied();
                found.map(|(_, block)| {
                    Value::Special(Rc::new(Special::Block(cx.clone(), &block.name, 0))).into()
                })
            }
            Special::Block(cx, block, replaced) if name == "super" => {
                Some(self.parent_block(cx, block, replaced + 1))
            }
            Special::Macro(value) => {
                let node = value.node;
                match name {
                    "name" => Some(Val::from(Value::Text(node.name.as_str().into()))),
                    "arguments" => {
                        let names = node
                            .parameters
                            .iter()
                            .map(|parameter| Val::from(Value::Text(parameter.name.as_str().into())));
                        Some(Val::tuple(names.collect()))
                    }
                    "catch_kwargs" => Some(Value::Bool(node.kwargs.is_some()).into()),
                    "catch_varargs" => Some(Value::Bool(node.varargs.is_some()).into()),
                    "caller" => Some(Value::Bool(node.caller.is_some() || node.explicit_caller).into()),
                    _ => None,
                }
            }
            _ => None,
        })
    }

    /// `super`: the block that this one replaces.
    pub(crate) fn parent_block(&self, cx: &Cx<'r>, name: &'r str, replaced: usize) -> Val<'r> {
        let exists = cx.context.blocks.borrow().get(name).is_some_and(|all| replaced < all.len());
        if exists {
            Value::Special(Rc::new(Special::Block(cx.clone(), name, replaced))).into()
        } else {
            Val::missing(format!("the block `{name}` has no parent"))
        }
    }

    fn loop_attribute(&self, state: &LoopState<'r>, name: &str) -> Option<Val<'r>> {
        let (index, length) = (state.index.get(), state.items.len());
        let number = |number: usize| Some(Value::Int(number as i64).into());
        let flag = |flag: bool| Some(Value::Bool(flag).into());
        match name {
            "index" => number(index + 1),
            "index0" => number(index),
            "revindex" => number(length - index),
            "revindex0" => number(length - index - 1),
            "first" => flag(index == 0),
            "last" => flag(index + 1 == length),
            "length" => number(length),
            "depth" => number(state.depth + 1),
            "depth0" => number(state.depth),
            "previtem" if index > 0 => Some(state.items.get(&self.origins, index - 1)),
            "previtem" => Some(Val::missing("the first round of a loop has no previous item".to_owned())),
            "nextitem" if index + 1 < length => Some(state.items.get(&self.origins, index + 1)),
            "nextitem" => Some(Val::missing("the last round of a loop has no next item".to_owned())),
            _ => None,
        }
    }

    /// `value[item]`: an item, otherwise an attribute.
    pub(crate) fn item(&self, val: &Val<'r>, item: &Val<'r>) -> Result<Val<'r>> {
        self.item_at(val, item, "")
    }

    /// The same for an expression of the template.
    pub(crate) fn item_at(&self, val: &Val<'r>, item: &Val<'r>, written: &'r str) -> Result<Val<'r>> {
        if let Value::Undefined(missing) = &val.value {
            return if self.chains() { Ok(val.clone()) } else { Err(missing.error()) };
        }
        if let Some(found) = self.own_item(val, item)? {
            return Ok(found);
        }
        let Some(name) = item.value.as_str() else {
            let mut missing = Val::missing(match written {
                "" => format!("{} has no such item", type_name(&val.value)),
                _ => format!("`{written}` is undefined: {} has no such item", type_name(&val.value)),
            });
            missing.origin = val.origin;
            return Ok(missing);
        };
        match self.own_attribute(val, name)? {
            Some(found) => Ok(found),
            None => Ok(self.no_attribute(val, name, written)),
        }
    }

    fn own_item(&self, val: &Val<'r>, item: &Val<'r>) -> Result<Option<Val<'r>>> {
        let place = |length: usize| {
            let number = match &item.value {
                Value::Bool(_) | Value::Int(_) | Value::Big(_) => item.value.as_integer()?,
                _ => return None,
            };
            let at = if number < 0 { number + length as i128 } else { number };
            usize::try_from(at).ok().filter(|at| *at < length)
        };
        Ok(match &val.value {
            Value::Array(items) => place(items.len())
                .map(|at| Val::new(Value::from_json(&items[at]), self.origins.index(val.origin, at))),
            Value::List(items) | Value::Tuple(items) => place(items.len()).map(|at| items[at].clone()),
            Value::Map(map) => match &item.value {
                Value::Text(text) => map
                    .get_key_value(text.as_str())
                    .map(|(key, json)| Val::new(Value::from_json(json), self.origins.key(val.origin, key))),
                _ => None,
            },
            Value::Dict(dict) => match self.key_of(&item.value) {
                Ok(key) => dict.get(&key).cloned(),
                Err(error) if error.kind() == ErrorKind::Limit => return Err(error),
                Err(_) => None,
            },
            Value::Text(text) => {
                let characters = length(text.as_str());
                self.spend(text.as_str().len() / 64)?;
                place(characters).map(|at| {
                    let (start, end) = (offset_of(text.as_str(), at), offset_of(text.as_str(), at + 1));
                    Val::text(text.slice(start, end), val.origin)
                })
            }
            Value::Range(range) => {
                place(range.length).map(|at| Val::new(Value::Int(range.at(at)), val.origin))
            }
            Value::Special(special) => match special.as_ref() {
                Special::Group(items) => place(items.len()).map(|at| items[at].clone()),
                Special::Blocks(_) | Special::Module(..) | Special::Loop(_) | Special::Namespace(_) => None,
                _ => None,
            },
            _ => None,
        })
    }

    /// `value[start:stop:step]`.
    pub(crate) fn slice(
        &self,
        val: &Val<'r>,
        start: Option<&Val<'r>>,
        stop: Option<&Val<'r>>,
        step: Option<&Val<'r>>,
    ) -> Result<Val<'r>> {
        if let Value::Undefined(missing) = &val.value {
            return Err(missing.error());
        }
        let bound = |part: Option<&Val<'r>>| match part.map(|part| &part.value) {
            None | Some(Value::None) => Ok(None),
            Some(value) => match value.as_integer() {
                Some(number) => Ok(Some(number)),
                None => match value {
                    Value::Undefined(missing) => Err(missing.error()),
                    _ => Err(type_error(format!("a slice needs integers, not {}", type_name(value)))),
                },
            },
        };
        let Some(length) = val.value.length().filter(|_| {
            matches!(
                val.value,
                Value::Text(_) | Value::List(_) | Value::Tuple(_) | Value::Array(_) | Value::Range(_)
            )
        }) else {
            return match &val.value {
                Value::Special(special) if matches!(special.as_ref(), Special::Group(_)) => {
                    let items = self.item_list(val)?;
                    self.slice(&Val::tuple(items), start, stop, step)
                }
                other => Err(type_error(format!("{} cannot be sliced", type_name(other)))),
            };
        };
        let (start, stop, step) = (bound(start)?, bound(stop)?, bound(step)?.unwrap_or(1));
        if step == 0 {
            return Err(Error::new(ErrorKind::Runtime, "the step of a slice cannot be 0"));
        }
        let places = Places::new(length as i128, start, stop, step);
        self.spend_read(val)?;
        self.spend_items(places.count)?;
        Ok(match &val.value {
            Value::Text(text) if step == 1 => {
                let from = offset_of(text.as_str(), places.first);
                let to = offset_of(text.as_str(), places.first + places.count);
                Val::text(text.slice(from, to.max(from)), val.origin)
            }
            Value::Text(text) => {
                let characters: Vec<char> = text.as_str().chars().collect();
                let picked: String = places.iter().map(|at| characters[at]).collect();
                Val::text(Text::from(picked).safe(text.is_safe()), self.origin_of(val))
            }
            Value::Tuple(items) => {
                let picked = places.iter().map(|at| items[at].clone()).collect();
                Val { origin: val.origin, ..Val::tuple(picked) }
            }
            Value::Range(range) => {
                let step_by = range.step.saturating_mul(i64::try_from(step).unwrap_or(i64::MAX));
                let first = range.at(places.first);
                let stop = first.saturating_add(step_by.saturating_mul(places.count as i64));
                let range = crate::value::Range { start: first, stop, step: step_by, length: places.count };
                Val::new(Value::Range(Rc::new(range)), val.origin)
            }
            _ => {
                let items = self.items(val)?;
                Val::list(places.iter().map(|at| items.get(&self.origins, at)).collect())
            }
        })
    }
}

/// The places that a slice picks.
struct Places {
    first: usize,
    step: i128,
    count: usize,
}

impl Places {
    fn new(length: i128, start: Option<i128>, stop: Option<i128>, step: i128) -> Places {
        let (low, high) = if step > 0 { (0, length) } else { (-1, length - 1) };
        let clamp = |bound: i128| (if bound < 0 { bound + length } else { bound }).clamp(low, high);
        let start = start.map_or(if step > 0 { low } else { high }, clamp);
        let stop = stop.map_or(if step > 0 { high } else { low }, clamp);
        let span = if step > 0 { stop - start } else { start - stop };
        let count = u128::try_from(span).map_or(0, |span| span.div_ceil(step.unsigned_abs()));
        Places { first: start.max(0) as usize, step, count: count as usize }
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        let (first, step) = (self.first as i128, self.step);
        (0..self.count as i128).map(move |at| (first + at * step) as usize)
    }
}
