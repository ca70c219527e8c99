//! The comparisons that a template can write, in both styles.

use std::cmp::Ordering;

use minijinja::{Error, Value};

use super::ordering::{compare, equal_in};
use super::{Style, globals, portable};

/// A comparison of two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `in`
    In,
    /// `not in`
    NotIn,
}

/// Each with its operator and with the filter that an operator is written as.
const ALL: [(Comparison, &str, &str); 8] = [
    (Comparison::Equal, "==", "__cue_eq"),
    (Comparison::NotEqual, "!=", "__cue_ne"),
    (Comparison::Less, "<", "__cue_lt"),
    (Comparison::LessOrEqual, "<=", "__cue_le"),
    (Comparison::Greater, ">", "__cue_gt"),
    (Comparison::GreaterOrEqual, ">=", "__cue_ge"),
    (Comparison::In, "in", "__cue_in"),
    (Comparison::NotIn, "not in", ""),
];

impl Comparison {
    /// Those that are written as filters, with the names of the filters.
    pub(super) fn filters() -> impl Iterator<Item = (Comparison, &'static str)> {
        ALL.iter()
            .filter(|(_, _, filter)| !filter.is_empty())
            .map(|(comparison, _, filter)| (*comparison, *filter))
    }

    /// The comparison that a filter stands for.
    pub(crate) fn of_filter(name: &str) -> Option<Comparison> {
        Comparison::filters().find(|(_, filter)| *filter == name).map(|(comparison, _)| comparison)
    }

    /// The comparison that an operator means.
    pub(super) fn of_operator(operator: &str) -> Option<Comparison> {
        ALL.iter().find(|(_, written, _)| *written == operator).map(|(comparison, _, _)| *comparison)
    }

    /// Whether it holds between two values.
    pub(crate) fn holds(self, style: Style, left: &Value, right: &Value) -> Result<bool, Error> {
        let wanted = match self {
            Comparison::Equal => return equal_in(style, left, right),
            Comparison::NotEqual => return equal_in(style, left, right).map(|equal| !equal),
            Comparison::In => return contains(style, left, right),
            Comparison::NotIn => return contains(style, left, right).map(|inside| !inside),
            Comparison::Less => Ordering::is_lt,
            Comparison::LessOrEqual => Ordering::is_le,
            Comparison::Greater => Ordering::is_gt,
            Comparison::GreaterOrEqual => Ordering::is_ge,
        };
        match style {
            Style::Python => compare(left, right).map(wanted),
            Style::Portable => portable::order(left, right, 0).map(|order| order.is_some_and(wanted)),
        }
    }
}

fn contains(style: Style, value: &Value, container: &Value) -> Result<bool, Error> {
    match style {
        Style::Python => globals::contains(value, container),
        Style::Portable => portable::contains(value, container),
    }
}
