//! Runs the steps of a plain template.

use std::borrow::Cow;

use minijinja::value::ValueKind;
use minijinja::{Environment, State, Value};

use super::{Condition, Counter, Expression, Key, Operand, Plain, Start, Step, Values};
use crate::template::jinja::compat::{ValueLimits, to_str};
use crate::template::sink::Sink;

struct Loop {
    item: Value,
    index: usize,
    length: usize,
}

/// One run. Everything in it gives `None` where the engine has to render instead.
pub(super) struct Run<'r, 'e, 's> {
    text: &'r str,
    values: Values<'r>,
    sink: &'s mut Sink,
    environment: &'e Environment<'e>,
    /// Made when a filter first needs it.
    state: Option<State<'e, 'e>>,
    loops: Vec<Loop>,
    fuel: u64,
    limits: ValueLimits,
    portable: bool,
}

impl<'r, 'e, 's> Run<'r, 'e, 's> {
    pub(super) fn new(
        plain: &Plain,
        environment: &'e Environment<'e>,
        text: &'r str,
        values: Values<'r>,
        sink: &'s mut Sink,
    ) -> Run<'r, 'e, 's> {
        Run {
            text,
            values,
            sink,
            environment,
            state: None,
            loops: Vec::new(),
            fuel: plain.fuel,
            limits: plain.limits,
            portable: plain.limits.style.is_portable(),
        }
    }

    pub(super) fn steps(&mut self, steps: &[Step]) -> Option<()> {
        self.fuel = self.fuel.checked_sub(steps.len() as u64)?;
        for step in steps {
            match step {
                Step::Literal { start, end } => {
                    let bytes = &self.text.as_bytes()[*start..*end];
                    self.sink.literal(0, *start as u32, bytes).ok()?;
                }
                Step::Emit { mark, value } => {
                    let value = self.value(value)?;
                    self.sink.begin_value(0, *mark);
                    self.print(&value)?;
                }
                Step::If { condition, then, otherwise } => {
                    let branch = if self.holds(condition)? { then } else { otherwise };
                    self.steps(branch)?;
                }
                Step::For { items, body, otherwise } => self.each(items, body, otherwise)?,
            }
        }
        Some(())
    }

    fn each(&mut self, items: &Expression, body: &[Step], otherwise: &[Step]) -> Option<()> {
        let items = self.value(items)?;
        let length = match items.kind() {
            ValueKind::Undefined => 0,
            ValueKind::None | ValueKind::Bool | ValueKind::Number if self.portable => 0,
            ValueKind::Seq | ValueKind::Map => items.len()?,
            _ => return None,
        };
        if length == 0 {
            return self.steps(otherwise);
        }
        for (index, item) in items.try_iter().ok()?.enumerate() {
            self.loops.push(Loop { item, index, length });
            let done = self.steps(body);
            self.loops.pop();
            // An empty body costs a step as well.
            self.fuel = self.fuel.checked_sub(1)?;
            done?;
        }
        Some(())
    }

    fn value(&mut self, expression: &Expression) -> Option<Cow<'r, Value>> {
        let mut keys = expression.keys.as_slice();
        let mut value = match &expression.start {
            // What is missing may still be known to the engine; only what is there is certain.
            Start::Scope(name) => match self.values {
                Values::Scope(scope) => scope.seen(name).unwrap_or_default(),
                Values::Value(value) => Cow::Owned(value.get_attr(name).ok()?),
            },
            Start::Item(depth) => match keys.split_first() {
                // The usual case: the item itself need not be counted as used once more.
                Some((Key::Attribute(name), rest)) => {
                    keys = rest;
                    Cow::Owned(attribute(&self.loops.get(*depth)?.item, name, self.portable)?)
                }
                _ => Cow::Owned(self.loops.get(*depth)?.item.clone()),
            },
            Start::Counter(counter) => {
                let current = self.loops.last()?;
                Cow::Owned(match counter {
                    Counter::Index => Value::from(current.index + 1),
                    Counter::Index0 => Value::from(current.index),
                    Counter::First => Value::from(current.index == 0),
                    Counter::Last => Value::from(current.index + 1 == current.length),
                    Counter::Length => Value::from(current.length),
                })
            }
        };
        for key in keys {
            value = Cow::Owned(match key {
                Key::Attribute(name) => attribute(&value, name, self.portable)?,
                Key::Item(key) => self.item(&value, key)?,
                Key::Computed(key) => {
                    let key = self.value(key)?;
                    self.item(&value, &key)?
                }
            });
        }
        if value.kind() == ValueKind::Invalid {
            return None;
        }
        for (name, arguments) in &expression.filters {
            let state = self.state.get_or_insert_with(|| self.environment.empty_state());
            value = Cow::Owned(if arguments.is_empty() {
                state.apply_filter(name, &[value.into_owned()]).ok()?
            } else {
                let mut all = Vec::with_capacity(arguments.len() + 1);
                all.push(value.into_owned());
                all.extend(arguments.iter().cloned());
                state.apply_filter(name, &all).ok()?
            });
        }
        Some(value)
    }

    /// Only what is looked up at once is certain: the engine counts what takes longer.
    fn item(&self, value: &Value, key: &Value) -> Option<Value> {
        let is_short = |value: &Value| match value.kind() {
            ValueKind::String => value.as_str().is_some_and(|text| text.len() <= 1_000),
            ValueKind::Seq | ValueKind::Iterable => false,
            _ => true,
        };
        let is_cheap = is_short(key) && (value.kind() != ValueKind::String || is_short(value));
        if is_cheap { item(value, key, self.portable) } else { None }
    }

    fn holds(&mut self, condition: &Condition) -> Option<bool> {
        Some(match condition {
            Condition::True(expression) => self.value(expression)?.is_true(),
            Condition::Defined(expression) => !self.value(expression)?.is_undefined(),
            Condition::Equal(expression, constant) => *self.value(expression)? == *constant,
            Condition::Compare(comparison, left, right) => {
                let (left, right) = (self.operand(left)?, self.operand(right)?);
                comparison.holds(self.limits.style, &left, &right).ok()?
            }
            Condition::Not(inner) => !self.holds(inner)?,
            Condition::And(left, right) => self.holds(left)? && self.holds(right)?,
            Condition::Or(left, right) => self.holds(left)? || self.holds(right)?,
        })
    }

    fn operand<'o>(&mut self, operand: &'o Operand) -> Option<Cow<'o, Value>>
    where
        'r: 'o,
    {
        Some(match operand {
            Operand::Value(expression) => self.value(expression)?,
            Operand::Constant(constant) => Cow::Borrowed(constant),
        })
    }

    fn print(&mut self, value: &Value) -> Option<()> {
        match value.kind() {
            ValueKind::Undefined => Some(()),
            ValueKind::String => self.sink.value(value.as_str()?.as_bytes()).ok(),
            ValueKind::None if self.portable => Some(()),
            ValueKind::Number if value.is_integer() => match value.as_i64() {
                Some(number) => self.print_integer(number),
                None => self.sink.value(value.to_string().as_bytes()).ok(),
            },
            _ => self.sink.value(to_str(value, self.limits).ok()?.as_bytes()).ok(),
        }
    }

    /// Counters are frequent, and need no text of their own.
    fn print_integer(&mut self, number: i64) -> Option<()> {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if number < 0 {
            at -= 1;
            digits[at] = b'-';
        }
        self.sink.value(&digits[at..]).ok()
    }
}

/// What is missing has attributes in the portable style, and all of them are missing.
#[inline]
fn attribute(value: &Value, name: &str, portable: bool) -> Option<Value> {
    if portable && value.is_undefined() { Some(Value::UNDEFINED) } else { value.get_attr(name).ok() }
}

#[inline]
fn item(value: &Value, key: &Value, portable: bool) -> Option<Value> {
    if portable && value.is_undefined() { Some(Value::UNDEFINED) } else { value.get_item(key).ok() }
}
