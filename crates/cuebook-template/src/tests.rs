//! Jinja2's tests.

use crate::ast::Comparison;
use crate::error::Result;
use crate::python::is_cased;
use crate::render::{Call, Definition};
use crate::value::{Special, Val, Value, type_error};

const fn test(
    name: &'static str,
    parameters: &'static [&'static str],
    run: for<'a, 'r> fn(&mut Call<'a, 'r>) -> Result<Val<'r>>,
) -> Definition {
    Definition { name, parameters: Some(parameters), required: parameters.len(), run }
}

const OTHER: &[&str] = &["other"];

/// The tests, in the order of their names.
pub(crate) static TESTS: [Definition; 39] = [
    test("!=", OTHER, |call| compared(call, Comparison::NotEqual)),
    test("<", OTHER, |call| compared(call, Comparison::Less)),
    test("<=", OTHER, |call| compared(call, Comparison::LessOrEqual)),
    test("==", OTHER, |call| compared(call, Comparison::Equal)),
    test(">", OTHER, |call| compared(call, Comparison::Greater)),
    test(">=", OTHER, |call| compared(call, Comparison::GreaterOrEqual)),
    test("boolean", &[], |call| is(matches!(call.value.value, Value::Bool(_)))),
    test("callable", &[], |call| is(is_callable(&call.value.value))),
    test("defined", &[], |call| is(!call.value.value.is_undefined())),
    test("divisibleby", &["num"], |call| {
        let by = call.arg(0).cloned().unwrap_or_else(Val::undefined);
        remainder(call, &by, 0)
    }),
    test("eq", OTHER, |call| compared(call, Comparison::Equal)),
    test("equalto", OTHER, |call| compared(call, Comparison::Equal)),
    test("escaped", &[], |call| is(call.value.value.is_safe())),
    test("even", &[], |call| remainder(call, &Value::Int(2).into(), 0)),
    test("false", &[], |call| is(matches!(call.value.value, Value::Bool(false)))),
    test("filter", &[], |call| {
        let known = |name: &str| {
            call.render.library.filter(name).is_some() || call.render.env.filters.contains_key(name)
        };
        is(call.value.value.as_str().is_some_and(known))
    }),
    test("float", &[], |call| is(matches!(call.value.value, Value::Float(_)))),
    test("ge", OTHER, |call| compared(call, Comparison::GreaterOrEqual)),
    test("greaterthan", OTHER, |call| compared(call, Comparison::Greater)),
    test("gt", OTHER, |call| compared(call, Comparison::Greater)),
    test("in", &["seq"], |call| compared(call, Comparison::In)),
    test("integer", &[], |call| is(matches!(call.value.value, Value::Int(_) | Value::Big(_)))),
    test("iterable", &[], |call| is(is_iterable(&call.value.value))),
    test("le", OTHER, |call| compared(call, Comparison::LessOrEqual)),
    test("lessthan", OTHER, |call| compared(call, Comparison::Less)),
    test("lower", &[], |call| cased(call, char::is_uppercase)),
    test("lt", OTHER, |call| compared(call, Comparison::Less)),
    test("mapping", &[], |call| is(call.value.value.is_mapping())),
    test("ne", OTHER, |call| compared(call, Comparison::NotEqual)),
    test("none", &[], |call| is(call.value.value.is_none())),
    test("number", &[], |call| is(call.value.value.as_number().is_some())),
    test("odd", &[], |call| remainder(call, &Value::Int(2).into(), 1)),
    test("sameas", OTHER, same_as),
    test("sequence", &[], |call| is(is_sequence(&call.value.value))),
    test("string", &[], |call| is(matches!(call.value.value, Value::Text(_)))),
    test("test", &[], |call| {
        let known =
            |name: &str| call.render.library.test(name).is_some() || call.render.env.tests.contains_key(name);
        is(call.value.value.as_str().is_some_and(known))
    }),
    test("true", &[], |call| is(matches!(call.value.value, Value::Bool(true)))),
    test("undefined", &[], |call| is(call.value.value.is_undefined())),
    test("upper", &[], |call| cased(call, char::is_lowercase)),
];

fn is<'r>(holds: bool) -> Result<Val<'r>> {
    Ok(Value::Bool(holds).into())
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
    if call.value.value.as_number().is_none() || by.value.as_number().is_none() {
        return Err(type_error(format!("`{}` needs numbers", call.name)));
    }
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
        (Value::Text(a), Value::Text(b)) => a.as_str() == b.as_str() && a.safe == b.safe,
        (Value::None, Value::None) => true,
        (Value::Special(a), Value::Special(b)) => std::rc::Rc::ptr_eq(a, b),
        _ => false,
    };
    is(same)
}
