//! Jinja2's globals and tests.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering as Memory};

use minijinja::value::{Enumerator, Object, ObjectRepr, Rest, ValueKind, ValueOrKwargs, from_args};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::call::{
    Call, hashed, integer, invalid, items_of, number, refuse_undefined, split, string_of, text_of, touch,
    type_name,
};
use super::comparison::Comparison;
use super::limits::{ValueLimits, charged};
use super::ordering::any_equal;
use crate::template::meter;

/// How many numbers Jinja2's sandbox lets a range have.
const RANGE_ITEMS: i128 = 100_000;

/// Registers globals and tests, and takes away what Jinja2 does not have.
pub(super) fn register(env: &mut Environment<'_>, limits: ValueLimits) {
    env.remove_global("debug");
    function(env, "range", range);
    function(env, "dict", move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
        let made = dict(state, limits, &given.into_values())?;
        charged(state, limits, made)
    });
    function(env, "namespace", move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
        let attributes = dict(state, limits, &given.into_values())?;
        let (attributes,): (Option<ValueOrKwargs>,) = from_args(&[attributes])?;
        minijinja::functions::namespace(attributes)
    });
    function(env, "cycler", |items: Rest<Value>| Cycler::value(items.to_vec()));
    function(env, "joiner", move |state: &mut State<'_, '_>, given: Rest<ValueOrKwargs>| {
        let given = given.into_values();
        let call = Call::bind(state, limits, "joiner", &["sep"], &given)?;
        let separator = call.given(0).cloned().unwrap_or_else(|| Value::from(", "));
        Ok::<_, Error>(Value::from_object(Joiner { separator, used: AtomicBool::new(false) }))
    });
    function(env, "lipsum", |_: Rest<ValueOrKwargs>| -> Result<Value, Error> {
        Err(invalid("`lipsum` is not available: a render must give the same text every time"))
    });
    // A block of the template is called as `self.name()`, which the engine sees to; everything else of it is empty.
    env.add_global("self", Value::from_object(Template));
    register_tests(env, limits);
}

/// Registers a function that is nothing unless it is called: a prompt may have an input of the same name, which is empty if it is
/// not given.
fn function<F, Rv, Args>(env: &mut Environment<'_>, name: &'static str, function: F)
where
    F: minijinja::functions::Function<Rv, Args>,
    Rv: minijinja::value::FunctionResult,
    Args: for<'a> minijinja::value::FunctionArgs<'a>,
{
    env.add_global(name, Value::from_object(Callee(Value::from_function(function))));
}

/// A function of Jinja2.
#[derive(Debug)]
pub(super) struct Callee(Value);

impl Object for Callee {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn is_true(self: &Arc<Self>) -> bool {
        false
    }

    fn call(self: &Arc<Self>, state: &mut State<'_, '_>, args: &[Value]) -> Result<Value, Error> {
        self.0.call(state, args)
    }

    fn render(self: &Arc<Self>, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ok(())
    }
}

#[derive(Debug)]
struct Template;

impl Object for Template {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<TemplateReference>")
    }
}

/// The numbers from one to another. It prints as it was asked for and holds no numbers.
#[derive(Debug)]
pub(super) struct Range {
    start: i64,
    stop: i64,
    step: i64,
    length: usize,
}

fn range(first: i64, second: Option<i64>, step: Option<i64>) -> Result<Value, Error> {
    let (start, stop) = second.map_or((0, first), |stop| (first, stop));
    let step = step.unwrap_or(1);
    let distance = i128::from(stop) - i128::from(start);
    let length = match i128::from(step) {
        0 => return Err(invalid("the step of a range cannot be 0")),
        step if step > 0 => (distance + step - 1).max(0) / step,
        step => (distance + step + 1).min(0) / step,
    };
    if length > RANGE_ITEMS {
        return Err(invalid(format!("a range can have at most {RANGE_ITEMS} numbers")));
    }
    // It is at most the limit above.
    let length = usize::try_from(length).unwrap_or(0);
    Ok(Value::from_object(Range { start, stop, step, length }))
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step {
            1 => write!(f, "range({}, {})", self.start, self.stop),
            step => write!(f, "range({}, {}, {step})", self.start, self.stop),
        }
    }
}

impl Object for Range {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Seq
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        let index = key.as_usize().filter(|index| *index < self.length)?;
        let number = i128::from(self.start) + index as i128 * i128::from(self.step);
        i64::try_from(number).ok().map(Value::from)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Seq(self.length)
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self.as_ref(), f)
    }
}

/// What `keys()`, `values()` and `items()` of a dict give.
#[derive(Debug)]
pub(super) struct DictView {
    name: &'static str,
    items: Vec<Value>,
}

impl DictView {
    pub(super) fn value(name: &'static str, items: Vec<Value>) -> Value {
        Value::from_object(DictView { name, items })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }
}

impl Object for DictView {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Iterable
    }

    fn get_value(self: &Arc<Self>, _: &Value) -> Option<Value> {
        // Without this answer the engine would count items to the place, and a view has no places.
        Some(Value::UNDEFINED)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.items.clone())
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.items.len())
    }
}

fn dict(state: &mut State<'_, '_>, limits: ValueLimits, given: &[Value]) -> Result<Value, Error> {
    let (positional, named) = split(given);
    let mut pairs: Vec<(Value, Value)> = Vec::new();
    match positional {
        [] => {}
        [from] if from.kind() == ValueKind::Map => {
            let known = from.as_object().and_then(|object| object.try_iter_pairs());
            meter::items(from.len().unwrap_or(0))?;
            pairs.extend(known.into_iter().flatten());
        }
        [from] => {
            for item in items_of(state, limits, from)? {
                let [key, value] = <[Value; 2]>::try_from(items_of(state, limits, &item)?)
                    .map_err(|_| invalid("`dict` needs a dict, pairs, or named values"))?;
                hashed(&key)?;
                pairs.push((key, value));
            }
        }
        _ => return Err(Error::from(ErrorKind::TooManyArguments)),
    }
    pairs.extend(named.into_iter().map(|(name, value)| (Value::from(name), value)));
    limits.check_items(pairs.len())?;
    Ok(Value::from_pairs(pairs))
}

#[derive(Debug)]
struct Cycler {
    items: Vec<Value>,
    place: AtomicUsize,
}

impl Cycler {
    fn value(items: Vec<Value>) -> Result<Value, Error> {
        if items.is_empty() {
            return Err(invalid("`cycler` needs at least one item"));
        }
        Ok(Value::from_object(Cycler { items, place: AtomicUsize::new(0) }))
    }

    fn current(&self) -> Value {
        self.items.get(self.place.load(Memory::Relaxed)).cloned().unwrap_or_default()
    }
}

impl Object for Cycler {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        (key.as_str() == Some("current")).then(|| self.current())
    }

    fn call_method(
        self: &Arc<Self>,
        _: &mut State<'_, '_>,
        method: &str,
        given: &[Value],
    ) -> Result<Value, Error> {
        if !given.is_empty() {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        match method {
            "next" => {
                let current = self.current();
                let place = self.place.load(Memory::Relaxed);
                self.place.store((place + 1) % self.items.len(), Memory::Relaxed);
                Ok(current)
            }
            "reset" => {
                self.place.store(0, Memory::Relaxed);
                Ok(Value::from(()))
            }
            _ => Err(Error::from(ErrorKind::UnknownMethod)),
        }
    }
}

#[derive(Debug)]
struct Joiner {
    separator: Value,
    used: AtomicBool,
}

impl Object for Joiner {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, given: &[Value]) -> Result<Value, Error> {
        if !given.is_empty() {
            return Err(Error::from(ErrorKind::TooManyArguments));
        }
        let used = self.used.swap(true, Memory::Relaxed);
        Ok(if used { self.separator.clone() } else { Value::from("") })
    }
}

/// Tests of the engine that Jinja2 does not have.
const FOREIGN_TESTS: &[&str] = &["safe", "startingwith", "endingwith", "int"];

fn register_tests(env: &mut Environment<'_>, limits: ValueLimits) {
    for name in FOREIGN_TESTS {
        env.remove_test(name);
    }
    env.add_test("callable", |value: Value| is_callable(&value));
    env.add_test("sequence", |value: Value| is_sequence(&value));
    env.add_test("iterable", |value: Value| {
        value.kind() == ValueKind::String || (!value.is_none() && value.try_iter().is_ok())
    });
    env.add_test("in", move |state: &mut State<'_, '_>, value: Value, container: Value| {
        refuse_undefined(state, &container)?;
        refuse_undefined(state, &value)?;
        Comparison::In.holds(limits.style, &value, &container)
    });
    env.add_test("divisibleby", |value: Value, by: Value| remainder(&value, &by).map(|rest| rest == 0.0));
    env.add_test("odd", |value: Value| remainder(&value, &Value::from(2)).map(|rest| rest == 1.0));
    env.add_test("even", |value: Value| remainder(&value, &Value::from(2)).map(|rest| rest == 0.0));
    env.add_test("lower", move |state: &mut State<'_, '_>, value: Value| {
        Ok::<_, Error>(super::methods::is_lower(&text_of(state, limits, &value)?))
    });
    env.add_test("upper", move |state: &mut State<'_, '_>, value: Value| {
        Ok::<_, Error>(super::methods::is_upper(&text_of(state, limits, &value)?))
    });
    let comparisons: [(&[&str], Comparison); 6] = [
        (&["eq", "equalto", "=="], Comparison::Equal),
        (&["ne", "!="], Comparison::NotEqual),
        (&["lt", "lessthan", "<"], Comparison::Less),
        (&["le", "<="], Comparison::LessOrEqual),
        (&["gt", "greaterthan", ">"], Comparison::Greater),
        (&["ge", ">="], Comparison::GreaterOrEqual),
    ];
    for (names, comparison) in comparisons {
        for name in names {
            env.add_test(*name, move |left: Value, right: Value| {
                comparison.holds(limits.style, &left, &right)
            });
        }
    }
}

/// Whether a value can be called: macros and functions can. The engine does not say, so the names of its types must.
fn is_callable(value: &Value) -> bool {
    value.is_undefined()
        || super::printing::is_macro(value)
        || value.as_object().is_some_and(|object| {
            let name = object.type_name();
            ["::BoxedFunction", "::Callee", "::Joiner"].iter().any(|end| name.ends_with(end))
        })
}

fn is_sequence(value: &Value) -> bool {
    match value.kind() {
        ValueKind::Undefined | ValueKind::String | ValueKind::Bytes | ValueKind::Seq => true,
        ValueKind::Map => !super::printing::is_namespace(value),
        ValueKind::Iterable => value.downcast_object_ref::<DictView>().is_none(),
        _ => false,
    }
}

/// `value in container`, as Python decides it.
pub(super) fn contains(value: &Value, container: &Value) -> Result<bool, Error> {
    touch(&[value.clone(), container.clone()])?;
    match container.kind() {
        ValueKind::Undefined => Ok(false),
        ValueKind::String => match (string_of(container), string_of(value)) {
            (Some(container), Some(value)) => Ok(container.contains(value)),
            _ => Err(invalid(format!("a string cannot contain {}", type_name(value)))),
        },
        ValueKind::Map => {
            hashed(value)?;
            Ok(container.as_object().is_some_and(|object| object.get_value(value).is_some()))
        }
        ValueKind::Seq | ValueKind::Iterable => any_equal(container.try_iter()?.checked(), value),
        _ => Err(invalid(format!("{} cannot contain anything", type_name(container)))),
    }
}

fn remainder(value: &Value, by: &Value) -> Result<f64, Error> {
    let zero = || invalid("division by zero");
    if let (Some(value), Some(by)) = (integer(value), integer(by)) {
        return value.checked_rem_euclid(by).map(|rest| rest as f64).ok_or_else(zero);
    }
    match (number(value), number(by)) {
        (_, Some(0.0)) => Err(zero()),
        (Some(value), Some(by)) => Ok(value.rem_euclid(by)),
        _ => Err(invalid(format!(
            "{} is not a number",
            type_name(if number(value).is_none() { value } else { by })
        ))),
    }
}
