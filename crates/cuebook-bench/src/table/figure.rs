//! Figures as people read them.

/// What the figures of a row are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Nanoseconds.
    Time,
    /// Bytes.
    Memory,
}

impl Unit {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Time => "nanoseconds",
            Unit::Memory => "bytes",
        }
    }

    /// A figure with three digits that count, in whichever of its units fits.
    pub fn show(self, value: f64) -> String {
        let steps: &[(f64, &str)] = match self {
            Unit::Time => &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")],
            Unit::Memory => &[(1e6, "MB"), (1e3, "kB"), (1.0, "B")],
        };
        // What would be rounded to a thousand of one is one of the next.
        let fits = |&&(size, _): &&(f64, &str)| value >= size * 0.9995;
        let &(size, name) = steps.iter().find(fits).or(steps.last()).unwrap_or(&(1.0, ""));
        format!("{} {name}", digits(value / size))
    }
}

/// Three digits that count, fewer of small figures; more before the point are kept.
pub fn digits(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value if value >= 0.0995 => format!("{value:.2}"),
        // Two are enough for what is hardly there.
        value if value > 0.0 => {
            format!("{value:.*}", (1.0 - value.log10().floor()).clamp(2.0, 12.0) as usize)
        }
        value => format!("{value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_that_is_tiny_is_not_shown_as_nothing() {
        let shown =
            [(0.25, "0.25"), (0.093, "0.093"), (0.00195, "0.0019"), (0.000_031, "0.000031"), (0.0, "0")];
        for (value, text) in shown {
            assert_eq!(digits(value), text);
        }
    }

    #[test]
    fn a_figure_has_three_digits_and_the_unit_that_fits() {
        let shown = [
            (0.5, "0.50 ns"),
            (99.94, "99.9 ns"),
            (999.6, "1.00 µs"),
            (31_400.0, "31.4 µs"),
            (4.2e9, "4.20 s"),
            (1.2e12, "1200 s"),
        ];
        for (value, text) in shown {
            assert_eq!(Unit::Time.show(value), text);
        }
        assert_eq!(Unit::Memory.show(7_600_000.0), "7.60 MB");
        assert_eq!(Unit::Memory.show(12.0), "12.0 B");
    }
}
