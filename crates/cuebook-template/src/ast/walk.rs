//! The expressions inside of an expression.

use super::{Arguments, Expr, ExprKind};

/// Calls `visit` with the expressions directly inside of this one.
pub fn each_child<'e>(value: &'e Expr, visit: &mut dyn FnMut(&'e Expr)) {
    let arguments = |given: &'e Arguments, visit: &mut dyn FnMut(&'e Expr)| {
        given.positional.iter().for_each(&mut *visit);
        given.named.iter().for_each(|(_, value)| visit(value));
        given.star.iter().for_each(&mut *visit);
        given.double_star.iter().for_each(&mut *visit);
    };
    match &value.kind {
        ExprKind::List(items)
        | ExprKind::Tuple(items)
        | ExprKind::Concat(items)
        | ExprKind::And(items)
        | ExprKind::Or(items) => items.iter().for_each(visit),
        ExprKind::Dict(pairs) => pairs.iter().for_each(|(key, value)| {
            visit(key);
            visit(value);
        }),
        ExprKind::Unary(_, value) | ExprKind::Not(value) | ExprKind::Attribute(value, _) => visit(value),
        ExprKind::Binary(_, left, right) | ExprKind::Item(left, right) => {
            visit(left);
            visit(right);
        }
        ExprKind::Compare(first, others) => {
            visit(first);
            others.iter().for_each(|(_, other)| visit(other));
        }
        ExprKind::If(test, value, otherwise) => {
            visit(test);
            visit(value);
            otherwise.iter().for_each(|other| visit(other));
        }
        ExprKind::Slice(value, slice) => {
            visit(value);
            [&slice.start, &slice.stop, &slice.step].into_iter().flatten().for_each(visit);
        }
        ExprKind::Call(callee, given) => {
            visit(callee);
            arguments(given, visit);
        }
        ExprKind::Filter(value, named) => {
            value.iter().for_each(|value| visit(value));
            arguments(&named.arguments, visit);
        }
        ExprKind::Test(value, named) => {
            visit(value);
            arguments(&named.arguments, visit);
        }
        ExprKind::Name(_)
        | ExprKind::NamespaceTarget(..)
        | ExprKind::None
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Big(_)
        | ExprKind::Float(_)
        | ExprKind::Text(..) => {}
    }
}

/// The same as [`each_child`], for changes.
pub(crate) fn each_child_mut(value: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
    fn arguments(given: &mut Arguments, visit: &mut dyn FnMut(&mut Expr)) {
        given.positional.iter_mut().for_each(&mut *visit);
        given.named.iter_mut().for_each(|(_, value)| visit(value));
        given.star.iter_mut().for_each(&mut *visit);
        given.double_star.iter_mut().for_each(&mut *visit);
    }
    match &mut value.kind {
        ExprKind::List(items)
        | ExprKind::Tuple(items)
        | ExprKind::Concat(items)
        | ExprKind::And(items)
        | ExprKind::Or(items) => items.iter_mut().for_each(visit),
        ExprKind::Dict(pairs) => pairs.iter_mut().for_each(|(key, value)| {
            visit(key);
            visit(value);
        }),
        ExprKind::Unary(_, value) | ExprKind::Not(value) | ExprKind::Attribute(value, _) => visit(value),
        ExprKind::Binary(_, left, right) | ExprKind::Item(left, right) => {
            visit(left);
            visit(right);
        }
        ExprKind::Compare(first, others) => {
            visit(first);
            others.iter_mut().for_each(|(_, other)| visit(other));
        }
        ExprKind::If(test, value, otherwise) => {
            visit(test);
            visit(value);
            otherwise.iter_mut().for_each(|other| visit(other));
        }
        ExprKind::Slice(value, slice) => {
            visit(value);
            [&mut slice.start, &mut slice.stop, &mut slice.step].into_iter().flatten().for_each(visit);
        }
        ExprKind::Call(callee, given) => {
            visit(callee);
            arguments(given, visit);
        }
        ExprKind::Filter(value, named) => {
            value.iter_mut().for_each(|value| visit(value));
            arguments(&mut named.arguments, visit);
        }
        ExprKind::Test(value, named) => {
            visit(value);
            arguments(&mut named.arguments, visit);
        }
        ExprKind::Name(_)
        | ExprKind::NamespaceTarget(..)
        | ExprKind::None
        | ExprKind::Bool(_)
        | ExprKind::Int(_)
        | ExprKind::Big(_)
        | ExprKind::Float(_)
        | ExprKind::Text(..) => {}
    }
}
