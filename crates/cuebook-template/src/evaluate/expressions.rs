//! Expressions.

use crate::ast::{Comparison, Expr, ExprKind, Name, Named, Unary, each_child};
use crate::error::{Error, ErrorKind, Result};
use crate::operators::too_large;
use crate::origin::Origin;
use crate::render::Render;
use crate::text::{Builder, Text};
use crate::value::{Cx, Dict, Missing, Val, Value};

impl<'r> Render<'r> {
    /// The value of an expression. An error gets the place of the innermost expression that caused it.
    pub(crate) fn eval(&self, cx: &Cx<'r>, expr: &'r Expr) -> Result<Val<'r>> {
        // Names and their attributes are most of what a template evaluates, and need little of the stack.
        let found = match &expr.kind {
            ExprKind::Name(name) => self.eval_name(cx, name),
            ExprKind::Attribute(owner, name) => match self.attribute_of_name(cx, owner, name) {
                Ok(Some(found)) => return Ok(found),
                Ok(None) => self.eval_kind(cx, expr),
                Err(error) => Err(error),
            },
            _ => self.eval_kind(cx, expr),
        };
        match found {
            Err(error) => self.eval_failed(cx, expr, error),
            found => found,
        }
    }

    #[inline]
    fn eval_name(&self, cx: &Cx<'r>, name: &'r Name) -> Result<Val<'r>> {
        self.spend(1)?;
        Ok(cx.scope.get(name.slot).unwrap_or_else(|| {
            let missing = Value::Undefined(Missing::Variable(&name.name));
            Val::new(missing, self.origins.undefined(&name.name))
        }))
    }

    #[cold]
    fn eval_failed(&self, cx: &Cx<'r>, expr: &'r Expr, error: Error) -> Result<Val<'r>> {
        self.eval_constant(cx, expr, error, false)
            .map_err(|error| error.at(expr.range).inside(cx.unit.number, cx.unit.template.name()))
    }

    /// The value of `name.attribute` where that is simple, without a copy of what the name holds.
    #[inline]
    pub(super) fn attribute_of_name(
        &self,
        cx: &Cx<'r>,
        owner: &'r Expr,
        attribute: &'r str,
    ) -> Result<Option<Val<'r>>> {
        let ExprKind::Name(name) = &owner.kind else { return Ok(None) };
        let found = cx.scope.look(name.slot, |val| self.simple_attribute(val, attribute)).flatten();
        if found.is_some() {
            self.spend(2).map_err(|error| error.at(owner.range))?;
        }
        Ok(found)
    }

    #[inline(never)]
    fn eval_kind(&self, cx: &Cx<'r>, expr: &'r Expr) -> Result<Val<'r>> {
        self.spend(1)?;
        self.check_stack()?;
        Ok(match &expr.kind {
            ExprKind::Name(name) => return self.eval_name(cx, name),
            ExprKind::None => Value::None.into(),
            ExprKind::Bool(value) => Value::Bool(*value).into(),
            ExprKind::Int(number) => Value::Int(*number).into(),
            ExprKind::Big(number) => Value::integer(**number).into(),
            ExprKind::Float(number) => Value::Float(*number).into(),
            ExprKind::Text(text, offset) => {
                Val::text(Text::written(text, cx.unit.number, *offset), Origin::AUTHOR)
            }
            ExprKind::List(items) => Val::list(self.eval_all(cx, items)?),
            ExprKind::Tuple(items) => Val::tuple(self.eval_all(cx, items)?),
            ExprKind::Dict(pairs) => {
                let mut dict = Dict::default();
                for (key, value) in pairs {
                    let key = self.eval(cx, key)?;
                    let value = self.eval(cx, value)?;
                    dict.insert(self.key_of(&key.value)?, key, value);
                }
                Value::Dict(dict.into()).into()
            }
            ExprKind::Unary(sign, value) => {
                let value = self.eval(cx, value)?;
                self.sign(*sign, &value)?
            }
            ExprKind::Binary(operator, left, right) => {
                let (left, right) = (self.eval(cx, left)?, self.eval(cx, right)?);
                self.binary(*operator, &left, &right)?
            }
            ExprKind::Concat(parts) => self.concat(cx, parts)?,
            ExprKind::Compare(first, others) => self.compare_chain(cx, first, others)?,
            ExprKind::And(parts) => self.first_that_is(cx, parts, false)?,
            ExprKind::Or(parts) => self.first_that_is(cx, parts, true)?,
            ExprKind::Not(value) => {
                let value = self.eval(cx, value)?;
                let origin = self.origin_of(&value);
                Val::new(Value::Bool(!self.truth(&value)?), origin)
            }
            ExprKind::If(test, value, otherwise) => {
                let test = self.eval(cx, test)?;
                match (self.truth(&test)?, otherwise) {
                    (true, _) => self.eval(cx, value)?,
                    (false, Some(other)) => self.eval(cx, other)?,
                    (false, None) => Value::Undefined(Missing::Else).into(),
                }
            }
            ExprKind::Attribute(value, name) => {
                let value = self.eval(cx, value)?;
                self.attribute(&value, name, expr.range.of(cx.unit.template.text()))?
            }
            ExprKind::Item(value, item) => {
                let value = self.eval(cx, value)?;
                let item = self.eval(cx, item)?;
                self.item_at(&value, &item, expr.range.of(cx.unit.template.text()))?
            }
            ExprKind::Slice(value, slice) => {
                let value = self.eval(cx, value)?;
                let part = |part: &'r Option<Expr>| part.as_ref().map(|part| self.eval(cx, part)).transpose();
                let (start, stop, step) = (part(&slice.start)?, part(&slice.stop)?, part(&slice.step)?);
                match self.slice(&value, start.as_ref(), stop.as_ref(), step.as_ref()) {
                    Err(error) if self.lenient_slices.get() && error.kind() == ErrorKind::Type => {
                        Val::missing(error.message().to_owned())
                    }
                    other => other?,
                }
            }
            ExprKind::Call(callee, arguments) => self.eval_call(cx, callee, arguments)?,
            ExprKind::Filter(Some(value), named) => {
                let value = self.eval(cx, value)?;
                self.filter(cx, named, value)?
            }
            ExprKind::Filter(None, named) => {
                return Err(Error::new(
                    ErrorKind::Syntax,
                    format!("the filter `{}` has no value", named.name),
                ));
            }
            ExprKind::Test(value, named) => self.eval_test(cx, value, named)?,
            ExprKind::NamespaceTarget(..) => {
                return Err(Error::new(ErrorKind::Syntax, "this is only a target of `set`"));
            }
        })
    }

    /// Jinja2 computes constants when it reads a template, and takes a slice of what cannot be sliced for undefined there. So
    /// what failed is tried once more in that way if it is a constant.
    pub(super) fn eval_constant(
        &self,
        cx: &Cx<'r>,
        expr: &'r Expr,
        error: Error,
        printed: bool,
    ) -> Result<Val<'r>> {
        let folded = matches!(
            expr.kind,
            ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Concat(_)
                | ExprKind::Compare(..)
                | ExprKind::And(..)
                | ExprKind::Or(..)
                | ExprKind::Not(_)
                | ExprKind::If(..)
                | ExprKind::Filter(..)
                | ExprKind::Test(..)
                | ExprKind::Item(..)
                | ExprKind::Attribute(..)
        );
        if error.kind() != ErrorKind::Type || self.lenient_slices.get() || !(folded || printed) {
            return Err(error);
        }
        self.lenient_slices.set(true);
        let value = match self.is_constant(cx, expr) {
            Ok(true) => self.eval_kind(cx, expr),
            _ => Err(error.clone()),
        };
        self.lenient_slices.set(false);
        match value {
            Ok(value) if !printed && value.value.is_undefined() => Err(error),
            other => other,
        }
    }

    /// Whether an expression has neither names nor calls in what is evaluated of it.
    fn is_constant(&self, cx: &Cx<'r>, expr: &'r Expr) -> Result<bool> {
        match &expr.kind {
            ExprKind::Name(_) | ExprKind::Call(..) => return Ok(false),
            ExprKind::If(test, value, otherwise) => {
                if !self.is_constant(cx, test)? {
                    return Ok(false);
                }
                let holds = self.eval_kind(cx, test)?.value.is_true();
                return match (holds, otherwise) {
                    (true, _) => self.is_constant(cx, value),
                    (false, Some(other)) => self.is_constant(cx, other),
                    (false, None) => Ok(false),
                };
            }
            ExprKind::And(parts) => return self.is_constant_until(cx, parts, false),
            ExprKind::Or(parts) => return self.is_constant_until(cx, parts, true),
            _ => {}
        }
        let mut children = Vec::new();
        each_child(expr, &mut |child| children.push(child));
        for child in children {
            if !self.is_constant(cx, child)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the parts of an `and` or `or` are constants up to the one that decides.
    fn is_constant_until(&self, cx: &Cx<'r>, parts: &'r [Expr], decides: bool) -> Result<bool> {
        for part in parts {
            if !self.is_constant(cx, part)? {
                return Ok(false);
            }
            if self.eval_kind(cx, part)?.value.is_true() == decides {
                break;
            }
        }
        Ok(true)
    }

    pub(super) fn eval_all(&self, cx: &Cx<'r>, items: &'r [Expr]) -> Result<Vec<Val<'r>>> {
        items.iter().map(|item| self.eval(cx, item)).collect()
    }

    /// The first part that is true or false, otherwise the last one.
    fn first_that_is(&self, cx: &Cx<'r>, parts: &'r [Expr], wanted: bool) -> Result<Val<'r>> {
        let mut value = Val::undefined();
        for (at, part) in parts.iter().enumerate() {
            value = self.eval(cx, part)?;
            if at + 1 < parts.len() && self.truth(&value)? == wanted {
                break;
            }
        }
        Ok(value)
    }

    fn concat(&self, cx: &Cx<'r>, parts: &'r [Expr]) -> Result<Val<'r>> {
        let mut builder = Builder::new();
        let mut safe = false;
        let mut values = Vec::with_capacity(parts.len());
        for part in parts {
            let value = self.eval(cx, part)?;
            safe |= cx.autoescape && value.value.is_safe();
            values.push(value);
        }
        // Jinja2 computes constants beforehand, and loses there which text is safe.
        safe = safe && !parts.iter().all(|part| self.is_constant(cx, part).unwrap_or(false));
        let mut paid = 0;
        for value in &values {
            let mut text = self.text_of(value)?;
            if safe && !text.is_safe() {
                text = text.map(crate::python::escape_html);
            }
            builder.push_text(&text, self.origin_of(value));
            self.spend_growth(&mut paid, builder.len())?;
        }
        let origin = self.origins.mix_all(values.iter().map(|value| self.origin_of(value)));
        Ok(builder.finish(origin, safe))
    }

    fn compare_chain(
        &self,
        cx: &Cx<'r>,
        first: &'r Expr,
        others: &'r [(Comparison, Expr)],
    ) -> Result<Val<'r>> {
        let mut left = self.eval(cx, first)?;
        let mut origin = self.origin_of(&left);
        let mut holds = true;
        for (comparison, right) in others {
            let right = self.eval(cx, right)?;
            origin = self.origins.mix(origin, self.origin_of(&right));
            holds = self.holds(*comparison, &left, &right)?;
            if !holds {
                break;
            }
            left = right;
        }
        Ok(Val::new(Value::Bool(holds), origin))
    }

    fn sign(&self, sign: Unary, value: &Val<'r>) -> Result<Val<'r>> {
        let number = match &value.value {
            Value::Float(number) => Value::Float(if sign == Unary::Minus { -number } else { *number }),
            other => match other.as_integer() {
                Some(number) => match sign {
                    Unary::Minus => Value::integer(number.checked_neg().ok_or_else(too_large)?),
                    Unary::Plus => Value::integer(number),
                },
                None => return Err(other.number_error("a sign")),
            },
        };
        Ok(Val::new(number, value.origin))
    }

    /// Applies a filter to a value.
    fn filter(&self, cx: &Cx<'r>, named: &'r Named, value: Val<'r>) -> Result<Val<'r>> {
        let args = self.arguments(cx, &named.arguments)?;
        self.call_filter(cx, &named.name, value, args).map_err(|error| error.at(named.range))
    }

    /// Applies the filters of a block to its text.
    pub(super) fn filter_block(&self, cx: &Cx<'r>, filter: &'r Expr, text: Val<'r>) -> Result<Val<'r>> {
        match &filter.kind {
            ExprKind::Filter(None, named) => self.filter(cx, named, text),
            ExprKind::Filter(Some(inner), named) => {
                let value = self.filter_block(cx, inner, text)?;
                self.filter(cx, named, value)
            }
            _ => self.eval(cx, filter),
        }
    }

    fn eval_test(&self, cx: &Cx<'r>, value: &'r Expr, named: &'r Named) -> Result<Val<'r>> {
        let value = self.eval(cx, value)?;
        let origin = self.origin_of(&value);
        let args = self.arguments(cx, &named.arguments)?;
        let holds = self.call_test(cx, &named.name, value, args).map_err(|error| error.at(named.range))?;
        Ok(Val::new(Value::Bool(holds), origin))
    }
}
