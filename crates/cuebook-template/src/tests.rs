//! Jinja2's tests.

use crate::ast::Comparison;
use crate::error::Result;
use crate::python::is_cased;
use crate::render::Kind::Any;
use crate::render::Spans::Mixes;
use crate::render::{Call, Definition, need, row};
use crate::value::{Special, Val, Value};

/// The tests, in the order of their names.
pub(crate) static TESTS: [Definition; 39] = [
    row(
        "!=",
        &[need("other", Any)],
        Mixes,
        "The value is not equal to the other.",
        ("{{ [1, 2]|select('!=', 1)|list }}", "[2]"),
        |call| compared(call, Comparison::NotEqual),
    ),
    row(
        "<",
        &[need("other", Any)],
        Mixes,
        "The value is smaller than the other.",
        ("{{ [1, 2]|select('<', 2)|list }}", "[1]"),
        |call| compared(call, Comparison::Less),
    ),
    row(
        "<=",
        &[need("other", Any)],
        Mixes,
        "The value is smaller than the other, or equal.",
        ("{{ [1, 2]|select('<=', 1)|list }}", "[1]"),
        |call| compared(call, Comparison::LessOrEqual),
    ),
    row(
        "==",
        &[need("other", Any)],
        Mixes,
        "The value is equal to the other.",
        ("{{ [1, 2]|select('==', 2)|list }}", "[2]"),
        |call| compared(call, Comparison::Equal),
    ),
    row(
        ">",
        &[need("other", Any)],
        Mixes,
        "The value is larger than the other.",
        ("{{ [1, 2]|select('>', 1)|list }}", "[2]"),
        |call| compared(call, Comparison::Greater),
    ),
    row(
        ">=",
        &[need("other", Any)],
        Mixes,
        "The value is larger than the other, or equal.",
        ("{{ [1, 2]|select('>=', 2)|list }}", "[2]"),
        |call| compared(call, Comparison::GreaterOrEqual),
    ),
    row("boolean", &[], Mixes, "The value is true or false.", ("{{ false is boolean }}", "True"), |call| {
        is(matches!(call.value.value, Value::Bool(_)))
    }),
    row("callable", &[], Mixes, "The value can be called.", ("{{ range is callable }}", "True"), |call| {
        is(is_callable(&call.value.value))
    }),
    row("defined", &[], Mixes, "The value is defined.", ("{{ missing is defined }}", "False"), |call| {
        is(!call.value.value.is_undefined())
    }),
    row(
        "divisibleby",
        &[need("num", Any)],
        Mixes,
        "The number has the other as a divisor.",
        ("{{ 6 is divisibleby 3 }}", "True"),
        |call| {
            let by = call.arg(0).cloned().unwrap_or_else(Val::undefined);
            remainder(call, &by, 0)
        },
    ),
    row(
        "eq",
        &[need("other", Any)],
        Mixes,
        "The value is equal to the other.",
        ("{{ 1 is eq 1 }}", "True"),
        |call| compared(call, Comparison::Equal),
    ),
    row(
        "equalto",
        &[need("other", Any)],
        Mixes,
        "The same as `eq`.",
        ("{{ 1 is equalto 2 }}", "False"),
        |call| compared(call, Comparison::Equal),
    ),
    row(
        "escaped",
        &[],
        Mixes,
        "The text is marked as safe in HTML.",
        ("{{ 'a'|safe is escaped }}", "True"),
        |call| is(call.value.value.is_safe()),
    ),
    row("even", &[], Mixes, "The number is even.", ("{{ 4 is even }}", "True"), |call| {
        remainder(call, &Value::Int(2).into(), 0)
    }),
    row("false", &[], Mixes, "The value is `false`.", ("{{ 0 is false }}", "False"), |call| {
        is(matches!(call.value.value, Value::Bool(false)))
    }),
    row("filter", &[], Mixes, "A filter of this name exists.", ("{{ 'upper' is filter }}", "True"), |call| {
        let known = |name: &str| {
            call.render.library.filter(name).is_some() || call.render.env.filters.contains_key(name)
        };
        named(call, known)
    }),
    row(
        "float",
        &[],
        Mixes,
        "The value is a number with a fraction.",
        ("{{ 1.0 is float }}", "True"),
        |call| is(matches!(call.value.value, Value::Float(_))),
    ),
    row(
        "ge",
        &[need("other", Any)],
        Mixes,
        "The value is larger than the other, or equal.",
        ("{{ 2 is ge 2 }}", "True"),
        |call| compared(call, Comparison::GreaterOrEqual),
    ),
    row(
        "greaterthan",
        &[need("other", Any)],
        Mixes,
        "The same as `gt`.",
        ("{{ 2 is greaterthan 1 }}", "True"),
        |call| compared(call, Comparison::Greater),
    ),
    row(
        "gt",
        &[need("other", Any)],
        Mixes,
        "The value is larger than the other.",
        ("{{ 1 is gt 2 }}", "False"),
        |call| compared(call, Comparison::Greater),
    ),
    row(
        "in",
        &[need("seq", Any)],
        Mixes,
        "The value is in a sequence, a dict or a text.",
        ("{{ 'b' is in 'abc' }}", "True"),
        |call| compared(call, Comparison::In),
    ),
    row("integer", &[], Mixes, "The value is an integer.", ("{{ 1 is integer }}", "True"), |call| {
        is(matches!(call.value.value, Value::Int(_) | Value::Big(_)))
    }),
    row(
        "iterable",
        &[],
        Mixes,
        "The value can be looped over.",
        ("{{ 'abc' is iterable }}", "True"),
        |call| is(is_iterable(&call.value.value)),
    ),
    row(
        "le",
        &[need("other", Any)],
        Mixes,
        "The value is smaller than the other, or equal.",
        ("{{ 2 is le 1 }}", "False"),
        |call| compared(call, Comparison::LessOrEqual),
    ),
    row(
        "lessthan",
        &[need("other", Any)],
        Mixes,
        "The same as `lt`.",
        ("{{ 1 is lessthan 2 }}", "True"),
        |call| compared(call, Comparison::Less),
    ),
    row(
        "lower",
        &[],
        Mixes,
        "All letters of the text are in lower case.",
        ("{{ 'abc' is lower }}", "True"),
        |call| cased(call, char::is_uppercase),
    ),
    row(
        "lt",
        &[need("other", Any)],
        Mixes,
        "The value is smaller than the other.",
        ("{{ 1 is lt 2 }}", "True"),
        |call| compared(call, Comparison::Less),
    ),
    row("mapping", &[], Mixes, "The value is a dict.", ("{{ {} is mapping }}", "True"), |call| {
        is(call.value.value.is_mapping())
    }),
    row(
        "ne",
        &[need("other", Any)],
        Mixes,
        "The value is not equal to the other.",
        ("{{ 1 is ne 1 }}", "False"),
        |call| compared(call, Comparison::NotEqual),
    ),
    row("none", &[], Mixes, "The value is `none`.", ("{{ none is none }}", "True"), |call| {
        is(call.value.value.is_none())
    }),
    row("number", &[], Mixes, "The value is a number.", ("{{ 1.5 is number }}", "True"), |call| {
        is(call.value.value.as_number().is_some())
    }),
    row("odd", &[], Mixes, "The number is odd.", ("{{ 4 is odd }}", "False"), |call| {
        remainder(call, &Value::Int(2).into(), 1)
    }),
    row(
        "sameas",
        &[need("other", Any)],
        Mixes,
        "Both are the same object.",
        ("{{ none is sameas none }}", "True"),
        same_as,
    ),
    row(
        "sequence",
        &[],
        Mixes,
        "The value has a length and items.",
        ("{{ [1] is sequence }}", "True"),
        |call| is(is_sequence(&call.value.value)),
    ),
    row("string", &[], Mixes, "The value is a text.", ("{{ 'a' is string }}", "True"), |call| {
        is(matches!(call.value.value, Value::Text(_)))
    }),
    row("test", &[], Mixes, "A test of this name exists.", ("{{ 'odd' is test }}", "True"), |call| {
        let known =
            |name: &str| call.render.library.test(name).is_some() || call.render.env.tests.contains_key(name);
        named(call, known)
    }),
    row("true", &[], Mixes, "The value is `true`.", ("{{ 1 is true }}", "False"), |call| {
        is(matches!(call.value.value, Value::Bool(true)))
    }),
    row(
        "undefined",
        &[],
        Mixes,
        "The value is not defined.",
        ("{{ missing is undefined }}", "True"),
        |call| is(call.value.value.is_undefined()),
    ),
    row(
        "upper",
        &[],
        Mixes,
        "All letters of the text are in upper case.",
        ("{{ 'Abc' is upper }}", "False"),
        |call| cased(call, char::is_lowercase),
    ),
];

fn is<'r>(holds: bool) -> Result<Val<'r>> {
    Ok(Value::Bool(holds).into())
}

/// Whether the value is the name of something. What could not be a key is an error.
fn named<'r>(call: &Call<'_, 'r>, known: impl Fn(&str) -> bool) -> Result<Val<'r>> {
    call.render.key_of(&call.value.value)?;
    is(call.value.value.as_str().is_some_and(known))
}

fn compared<'r>(call: &mut Call<'_, 'r>, comparison: Comparison) -> Result<Val<'r>> {
    let other = call.arg(0).cloned().unwrap_or_else(Val::undefined);
    is(call.render.holds(comparison, &call.value, &other)?)
}

fn cased<'r>(call: &mut Call<'_, 'r>, other: fn(char) -> bool) -> Result<Val<'r>> {
    let text = call.text()?;
    is(text.as_str().chars().any(is_cased) && !text.as_str().chars().any(other))
}

fn remainder<'r>(call: &mut Call<'_, 'r>, by: &Val<'r>, wanted: i64) -> Result<Val<'r>> {
    let rest = call.render.binary(crate::ast::Binary::Remainder, &call.value, by)?;
    is(rest.value.as_number() == Some(wanted as f64))
}

fn is_callable(value: &Value<'_>) -> bool {
    match value {
        Value::Undefined(_) => true,
        Value::Special(special) => special.is_callable(),
        _ => false,
    }
}

fn is_iterable(value: &Value<'_>) -> bool {
    match value {
        Value::None | Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) => false,
        Value::Special(special) => matches!(special.as_ref(), Special::Group(_) | Special::Loop(_)),
        _ => true,
    }
}

fn is_sequence(value: &Value<'_>) -> bool {
    match value {
        Value::Once(_) | Value::View(_) => false,
        Value::Special(special) => matches!(special.as_ref(), Special::Group(_)),
        other => other.length().is_some(),
    }
}

/// Whether two values are the same one. Small values that are equal are the same.
fn same_as<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let other = call.arg(0).cloned().unwrap_or_else(Val::undefined);
    let same = match (&call.value.value, &other.value) {
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) => std::rc::Rc::ptr_eq(a, b),
        (Value::Dict(a), Value::Dict(b)) => std::rc::Rc::ptr_eq(a, b),
        (Value::Array(a), Value::Array(b)) => std::ptr::eq(*a, *b),
        (Value::Map(a), Value::Map(b)) => std::ptr::eq(*a, *b),
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Big(a), Value::Big(b)) => a == b,
        (Value::Text(a), Value::Text(b)) => a.as_str() == b.as_str() && a.is_safe() == b.is_safe(),
        (Value::None, Value::None) => true,
        (Value::Special(a), Value::Special(b)) => std::rc::Rc::ptr_eq(a, b),
        _ => false,
    };
    is(same)
}
