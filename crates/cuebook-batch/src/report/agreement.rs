//! How far two columns of verdicts agree, beyond what chance gives: Cohen's kappa, with its confidence interval.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value as Json, json};

/// The quantile of the normal distribution for 95 %.
const Z: f64 = 1.959_963_984_540_054;

/// How far two columns agree.
#[derive(Debug, Clone, PartialEq)]
pub struct Agreement {
    /// The columns.
    pub columns: (String, String),
    /// How many rows have a value in both.
    pub rows: u64,
    /// The share of rows with the same value.
    pub share: f64,
    /// Cohen's kappa: 1 for full agreement, 0 for that of chance; `None` if both columns have one value only.
    pub kappa: Option<f64>,
    /// The ends of its confidence interval (95 %).
    pub interval: Option<(f64, f64)>,
}

impl Agreement {
    /// Compares two columns; `None` if no row has a value in both, or they have no value in common.
    pub(super) fn of<'v>(
        one: &str,
        other: &str,
        pairs: impl Iterator<Item = (&'v str, &'v str)>,
    ) -> Option<Agreement> {
        let mut table: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        pairs.for_each(|pair| *table.entry(pair).or_default() += 1.0);
        let n: f64 = table.values().sum();
        let (mut rows, mut columns): (BTreeMap<&str, f64>, BTreeMap<&str, f64>) = Default::default();
        for ((row, column), count) in &table {
            *rows.entry(row).or_default() += count / n;
            *columns.entry(column).or_default() += count / n;
        }
        if n == 0.0 || !rows.keys().any(|value| columns.contains_key(value)) {
            return None;
        }
        let of = |shares: &BTreeMap<&str, f64>, value: &str| shares.get(value).copied().unwrap_or(0.0);
        let share: f64 =
            table.iter().filter(|((row, column), _)| row == column).map(|(_, count)| count / n).sum();
        let chance: f64 = rows.iter().map(|(value, share)| share * of(&columns, value)).sum();
        let kappa = (chance < 1.0).then(|| (share - chance) / (1.0 - chance));
        // The variance for large samples of Fleiss, Cohen and Everitt (1969).
        let interval = kappa.map(|kappa| {
            let (mut same, mut different) = (0.0, 0.0);
            for ((row, column), count) in &table {
                let p = count / n;
                // What each of both is by the other's share.
                let sum = of(&columns, row) + of(&rows, column);
                match row == column {
                    true => same += p * (1.0 - (of(&rows, row) + of(&columns, row)) * (1.0 - kappa)).powi(2),
                    false => different += p * sum.powi(2),
                }
            }
            let last = (kappa - chance * (1.0 - kappa)).powi(2);
            let variance = (same + (1.0 - kappa).powi(2) * different - last) / (n * (1.0 - chance).powi(2));
            let width = Z * variance.max(0.0).sqrt();
            ((kappa - width).max(-1.0), (kappa + width).min(1.0))
        });
        Some(Agreement {
            columns: (one.to_owned(), other.to_owned()),
            rows: n as u64,
            share,
            kappa,
            interval,
        })
    }

    /// As scripts see it.
    pub(super) fn to_json(&self) -> Json {
        json!({
            "columns": [self.columns.0, self.columns.1],
            "rows": self.rows,
            "share": self.share,
            "kappa": self.kappa,
            "low": self.interval.map(|(low, _)| low),
            "high": self.interval.map(|(_, high)| high),
        })
    }
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, other) = &self.columns;
        write!(f, "{one} and {other}: {:.1} % of {} rows are the same", self.share * 100.0, self.rows)?;
        match (self.kappa, self.interval) {
            (Some(kappa), Some((low, high))) => write!(f, ", kappa {kappa:.3} ({low:.3} to {high:.3})"),
            _ => f.write_str(", kappa is not defined for one value"),
        }
    }
}

/// The confidence interval (95 %) of a share, by Wilson: it stays between nothing and all, also for few rows.
pub(super) fn share_interval(yes: u64, rows: u64) -> (f64, f64) {
    let (n, p) = (rows as f64, yes as f64 / rows as f64);
    let middle = (p + Z * Z / (2.0 * n)) / (1.0 + Z * Z / n);
    let width = Z / (1.0 + Z * Z / n) * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    ((middle - width).max(0.0), (middle + width).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agreement(table: &[(&'static str, &'static str, usize)]) -> Agreement {
        let pairs = table.iter().flat_map(|(one, other, count)| std::iter::repeat_n((*one, *other), *count));
        Agreement::of("a", "b", pairs).unwrap()
    }

    #[test]
    fn kappa_is_that_of_the_textbooks() {
        // Two readers of 50 applications; by hand: share 0.7, chance 0.5.
        let found = agreement(&[("yes", "yes", 20), ("yes", "no", 5), ("no", "yes", 10), ("no", "no", 15)]);
        assert!((found.share - 0.7).abs() < 1e-12);
        assert!((found.kappa.unwrap() - 0.4).abs() < 1e-12);
        let (low, high) = found.interval.unwrap();
        assert!(((high - low) / 2.0 / Z - 0.126_996).abs() < 1e-5, "{low} {high}");
        assert!((low + high - 0.8).abs() < 1e-12);
    }

    #[test]
    fn full_agreement_is_one_and_that_of_chance_is_nothing() {
        let full = agreement(&[("a", "a", 10), ("b", "b", 5)]);
        assert_eq!((full.kappa, full.interval), (Some(1.0), Some((1.0, 1.0))));
        let chance = agreement(&[("a", "a", 5), ("a", "b", 5), ("b", "a", 5), ("b", "b", 5)]);
        assert!(chance.kappa.unwrap().abs() < 1e-12);
        let one = agreement(&[("a", "a", 5)]);
        assert_eq!((one.kappa, one.share), (None, 1.0));
        assert_eq!(Agreement::of("a", "b", std::iter::empty()), None);
        assert_eq!(Agreement::of("a", "b", [("1", "yes")].into_iter()), None);
    }

    #[test]
    fn the_interval_of_a_share_is_wilsons() {
        let (low, high) = share_interval(8, 10);
        assert!((low - 0.4902).abs() < 1e-4 && (high - 0.9433).abs() < 1e-4, "{low} {high}");
        assert_eq!(share_interval(0, 5).0, 0.0);
        assert!(share_interval(5, 5).1 <= 1.0);
    }
}
