//! One call of a filter, test, method or function, with its arguments bound as Python binds them: by place or by name.

use std::borrow::Cow;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, State, UndefinedBehavior, Value};

use super::limits::{ValueLimits, check_depth};
use super::printing;
use crate::template::meter;

/// The arguments of one call.
pub(super) struct Call<'c, 't, 'e> {
    pub(super) state: &'c mut State<'t, 'e>,
    pub(super) limits: ValueLimits,
    name: &'c str,
    parameters: &'c [&'c str],
    arguments: Vec<Option<Value>>,
}

impl<'c, 't, 'e> Call<'c, 't, 'e> {
    /// Binds arguments to parameters.
    pub(super) fn bind(
        state: &'c mut State<'t, 'e>,
        limits: ValueLimits,
        name: &'c str,
        parameters: &'c [&'c str],
        given: &[Value],
    ) -> Result<Call<'c, 't, 'e>, Error> {
        touch(given)?;
        let (positional, named) = split(given);
        if positional.len() > parameters.len() {
            return Err(Error::new(
                ErrorKind::TooManyArguments,
                format!("`{name}` takes {} arguments, but got {}", parameters.len(), positional.len()),
            ));
        }
        let mut arguments: Vec<Option<Value>> = positional.iter().cloned().map(Some).collect();
        arguments.resize(parameters.len(), None);
        for (argument, value) in named {
            let place = parameters.iter().position(|parameter| *parameter == argument);
            match place.and_then(|place| arguments.get_mut(place)) {
                Some(free @ None) => *free = Some(value),
                Some(Some(_)) => return Err(invalid(format!("`{name}` got `{argument}` twice"))),
                None => return Err(invalid(format!("`{name}` has no parameter `{argument}`"))),
            }
        }
        Ok(Call { state, limits, name, parameters, arguments })
    }

    /// An argument that must be there.
    pub(super) fn value(&self, index: usize) -> Result<&Value, Error> {
        self.given(index).ok_or_else(|| {
            let parameter = self.parameters.get(index).copied().unwrap_or("value");
            Error::new(
                ErrorKind::MissingArgument,
                format!("`{}` needs the argument `{parameter}`", self.name),
            )
        })
    }

    /// An argument that may be absent.
    pub(super) fn given(&self, index: usize) -> Option<&Value> {
        self.arguments.get(index).and_then(Option::as_ref)
    }

    /// An argument that may be absent or `none`.
    pub(super) fn some(&self, index: usize) -> Option<&Value> {
        self.given(index).filter(|value| !value.is_none())
    }

    /// An argument as it prints.
    pub(super) fn text(&self, index: usize) -> Result<Cow<'_, str>, Error> {
        text_of(self.state, self.limits, self.value(index)?)
    }

    /// An argument that must be a string.
    pub(super) fn string(&self, index: usize) -> Result<&str, Error> {
        let value = self.value(index)?;
        string_of(value).ok_or_else(|| {
            if value.is_undefined() {
                return Error::new(
                    ErrorKind::UndefinedError,
                    format!("the argument of `{}` is undefined", self.name),
                );
            }
            invalid(format!("`{}` needs a string, not {}", self.name, type_name(value)))
        })
    }

    /// A string argument with what stands for it when it is absent.
    pub(super) fn string_or<'v>(&'v self, index: usize, default: &'v str) -> Result<&'v str, Error> {
        if self.given(index).is_none() { Ok(default) } else { self.string(index) }
    }

    /// An integer argument with what stands for it when it is absent.
    pub(super) fn integer_or(&self, index: usize, default: i64) -> Result<i64, Error> {
        match self.given(index) {
            None => Ok(default),
            Some(value) => integer(value).and_then(|number| i64::try_from(number).ok()).ok_or_else(|| {
                invalid(format!("`{}` needs an integer, not {}", self.name, type_name(value)))
            }),
        }
    }

    /// An integer that must be there.
    pub(super) fn integer(&self, index: usize) -> Result<i64, Error> {
        self.value(index)?;
        self.integer_or(index, 0)
    }

    /// A truth value with what stands for it when it is absent.
    pub(super) fn flag(&self, index: usize, default: bool) -> bool {
        self.given(index).map_or(default, Value::is_true)
    }

    /// The items of an argument.
    pub(super) fn items(&self, index: usize) -> Result<Vec<Value>, Error> {
        items_of(self.state, self.limits, self.value(index)?)
    }
}

/// Pays for a call and for the texts that it is given. Whoever walks the items of a list pays for those.
pub(super) fn touch(given: &[Value]) -> Result<(), Error> {
    meter::items(1)?;
    given.iter().filter_map(string_of).try_for_each(|text| meter::characters(text.len()))
}

/// Pays for a value that is hashed, with everything in it.
pub(super) fn hashed(key: &Value) -> Result<(), Error> {
    hashed_at(key, 0)
}

fn hashed_at(key: &Value, depth: usize) -> Result<(), Error> {
    check_depth(depth)?;
    meter::items(1)?;
    match key.kind() {
        ValueKind::String => meter::text(key.as_str().map_or(0, str::len)),
        ValueKind::Seq | ValueKind::Iterable => {
            key.try_iter()?.checked().try_for_each(|item| hashed_at(&item?, depth + 1))
        }
        ValueKind::Map => {
            let pairs = key.as_object().and_then(|object| object.try_iter_pairs());
            pairs.into_iter().flatten().try_for_each(|(key, value)| {
                hashed_at(&key, depth + 1)?;
                hashed_at(&value, depth + 1)
            })
        }
        _ => Ok(()),
    }
}

/// Arguments by place, and arguments by name.
pub(super) fn split(given: &[Value]) -> (&[Value], Vec<(String, Value)>) {
    let Some((last, positional)) = given.split_last().filter(|(last, _)| last.is_kwargs()) else {
        return (given, Vec::new());
    };
    let Ok(named) = Kwargs::try_from(last.clone()) else { return (given, Vec::new()) };
    let names: Vec<String> = named.args().map(str::to_owned).collect();
    let pairs =
        names.into_iter().filter_map(|name| named.peek::<Value>(&name).ok().map(|value| (name, value)));
    (positional, pairs.collect())
}

/// A value as it prints; an undefined one is refused where the environment is strict.
pub(super) fn text_of<'v>(
    state: &State<'_, '_>,
    limits: ValueLimits,
    value: &'v Value,
) -> Result<Cow<'v, str>, Error> {
    if let Some(text) = string_of(value) {
        meter::text(text.len())?;
        return Ok(Cow::Borrowed(text));
    }
    refuse_undefined(state, value)?;
    printing::to_str(value, limits).map(Cow::Owned)
}

/// The items of a value that can be iterated over.
pub(super) fn items_of(
    state: &State<'_, '_>,
    limits: ValueLimits,
    value: &Value,
) -> Result<Vec<Value>, Error> {
    refuse_undefined(state, value)?;
    if value.is_none() {
        return if limits.style.is_portable() { Ok(Vec::new()) } else { Err(invalid("`None` has no items")) };
    }
    let mut items = Vec::new();
    for item in value.try_iter()?.checked() {
        meter::items(1)?;
        limits.check_items(items.len() + 1)?;
        items.push(item?);
    }
    Ok(items)
}

pub(super) fn refuse_undefined(state: &State<'_, '_>, value: &Value) -> Result<(), Error> {
    let strict =
        matches!(state.undefined_behavior(), UndefinedBehavior::Strict | UndefinedBehavior::SemiStrict);
    if strict && value.is_undefined() {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    Ok(())
}

/// The text of a value that is a string.
pub(super) fn string_of(value: &Value) -> Option<&str> {
    if value.kind() == ValueKind::String { value.as_str() } else { None }
}

/// The number of a value that Python would hold as an integer; a truth value is one too.
pub(super) fn integer(value: &Value) -> Option<i128> {
    match value.kind() {
        ValueKind::Bool => Some(i128::from(value.is_true())),
        ValueKind::Number if value.is_integer() => i128::try_from(value.clone()).ok(),
        _ => None,
    }
}

/// The number of a value that is an integer or a float.
pub(super) fn number(value: &Value) -> Option<f64> {
    match integer(value) {
        Some(number) => Some(number as f64),
        None => printing::float(value),
    }
}

/// An error about a value or an argument.
pub(super) fn invalid(message: impl Into<Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// What Python calls the type of a value.
pub(super) fn type_name(value: &Value) -> &'static str {
    match value.kind() {
        ValueKind::Undefined => "an undefined value",
        ValueKind::None => "None",
        ValueKind::Bool => "a bool",
        ValueKind::Number if value.is_integer() => "an int",
        ValueKind::Number => "a float",
        ValueKind::String => "a string",
        ValueKind::Bytes => "bytes",
        ValueKind::Seq if value.is_tuple() => "a tuple",
        ValueKind::Seq | ValueKind::Iterable => "a list",
        ValueKind::Map => "a dict",
        _ => "an object",
    }
}

/// A string that is safe where the one that it was made from is.
pub(super) fn as_safe_as(origin: &Value, text: String) -> Value {
    if origin.is_safe() { Value::from_safe_string(text) } else { Value::from(text) }
}
