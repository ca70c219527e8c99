//! Money: whole billionths of a unit, so that sums are exact and nothing is counted twice or lost in rounding.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, Sub};

use serde_json::{Number, Value as Json};

/// An amount of money in billionths of a unit of its currency. Sums stop at the ends of what can be counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Money(i64);

/// Billionths in a unit.
const UNIT: f64 = 1e9;

impl Money {
    /// Nothing.
    pub const ZERO: Money = Money(0);
    /// More than anybody has.
    pub const MAX: Money = Money(i64::MAX);

    /// So many billionths.
    pub fn from_nanos(nanos: i64) -> Money {
        Money(nanos)
    }

    /// So many units, to the nearest billionth. What is no number is nothing.
    pub fn from_units(units: f64) -> Money {
        Money((units * UNIT).round() as i64)
    }

    /// The billionths.
    pub fn nanos(self) -> i64 {
        self.0
    }

    /// The units, for people and for JSON.
    pub fn units(self) -> f64 {
        self.0 as f64 / UNIT
    }

    /// What `tokens` cost at a price for a million of them, rounded up.
    ///
    /// ```
    /// use cuebook_store::money::Money;
    ///
    /// assert_eq!(Money::of_tokens(100, Money::from_units(3.0)), Money::from_units(0.0003));
    /// assert_eq!(Money::of_tokens(1, Money::from_nanos(1)), Money::from_nanos(1));
    /// ```
    pub fn of_tokens(tokens: u64, per_million: Money) -> Money {
        let exact = i128::from(tokens) * i128::from(per_million.0);
        let rounded = (exact + 999_999).div_euclid(1_000_000);
        Money(i64::try_from(rounded).unwrap_or(i64::MAX))
    }

    /// The amount as scripts see it: units.
    pub fn to_json(self) -> Json {
        Number::from_f64(self.units()).map_or(Json::Null, Json::Number)
    }
}

impl Add for Money {
    type Output = Money;

    fn add(self, other: Money) -> Money {
        Money(self.0.saturating_add(other.0))
    }
}

impl Sub for Money {
    type Output = Money;

    fn sub(self, other: Money) -> Money {
        Money(self.0.saturating_sub(other.0))
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Money>>(amounts: I) -> Money {
        amounts.fold(Money::ZERO, Add::add)
    }
}

/// `0.0041`: as many digits as it needs, at least two.
impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let nanos = self.0.unsigned_abs();
        let digits = format!("{:09}", nanos % 1_000_000_000);
        let cents = digits.trim_end_matches('0').len().max(2);
        write!(f, "{sign}{}.{}", nanos / 1_000_000_000, &digits[..cents])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_shows_as_many_digits_as_it_needs() {
        let shown = |units: f64| Money::from_units(units).to_string();
        assert_eq!(
            [shown(0.0), shown(1.0), shown(0.0041), shown(-2.5), shown(0.000_000_001)],
            ["0.00", "1.00", "0.0041", "-2.50", "0.000000001"]
        );
    }

    #[test]
    fn sums_are_exact_and_never_overflow() {
        let tenth = Money::from_units(0.1);
        assert_eq!((0..10).map(|_| tenth).sum::<Money>(), Money::from_units(1.0));
        assert_eq!(Money::MAX + tenth, Money::MAX);
        assert_eq!(Money::of_tokens(u64::MAX, Money::MAX), Money::MAX);
        assert_eq!(Money::from_units(f64::NAN), Money::ZERO);
    }
}
