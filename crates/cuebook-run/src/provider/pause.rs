//! Pauses: what a server asks for, what we make of it, and who sleeps.

use std::fmt;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use super::Stop;

/// The time, for those who wait. Tests have one of their own, so that nothing has to wait there.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Now.
    fn now(&self) -> Instant;

    /// Now, by the calendar.
    fn today(&self) -> Timestamp;

    /// Sleeps, unless asked to stop; says whether it slept to the end.
    fn sleep(&self, time: Duration, stop: &Stop) -> bool;

    /// A number between 0 and 1 that cannot be foreseen.
    fn chance(&self) -> f64;
}

/// The clock of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealClock;

/// How long a wait sleeps before asking whether to stop.
const SLICE: Duration = Duration::from_millis(100);

impl Clock for RealClock {
    fn now(&self) -> Instant {
        Instant::now()
    }

    fn today(&self) -> Timestamp {
        Timestamp::now()
    }

    fn sleep(&self, time: Duration, stop: &Stop) -> bool {
        let end = Instant::now() + time;
        loop {
            if stop.is_set() {
                return false;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(SLICE));
        }
    }

    fn chance(&self) -> f64 {
        let mut bytes = [0; 4];
        // Without a source of chance all wait equally long, and that is still right.
        match getrandom::fill(&mut bytes) {
            Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
            Err(_) => 0.5,
        }
    }
}

/// How long a server asks us to wait, by its headers; `None` if it does not say.
pub(crate) fn wanted(headers: &[(String, String)], now: Timestamp) -> Option<Duration> {
    let header = |name: &str| {
        headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    };
    let said = header("retry-after-ms").and_then(|value| seconds(number(value)? / 1000.0));
    let said = said.or_else(|| {
        let value = header("retry-after")?;
        match number(value) {
            Some(pause) => seconds(pause),
            None => until(date(value)?, now),
        }
    });
    // A moment in the past is not a time to wait for: a second request would only be refused again.
    let said = said.filter(|pause| !pause.is_zero());
    said.or_else(|| resets(headers, now))
}

/// The longest wait until a limit that is used up is filled again. OpenAI writes `6m0s`, Anthropic a date.
fn resets(headers: &[(String, String)], now: Timestamp) -> Option<Duration> {
    let mut pauses = Vec::new();
    for (name, value) in headers {
        let name = name.to_ascii_lowercase();
        let (remaining, pause) = if let Some(what) = name.strip_prefix("x-ratelimit-reset-") {
            (format!("x-ratelimit-remaining-{what}"), span(value))
        } else if let Some(what) =
            name.strip_prefix("anthropic-ratelimit-").and_then(|it| it.strip_suffix("-reset"))
        {
            let date = value.parse::<Timestamp>().ok();
            (format!("anthropic-ratelimit-{what}-remaining"), date.and_then(|date| until(date, now)))
        } else {
            continue;
        };
        let left = headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(&remaining));
        let used_up = left.is_none_or(|(_, left)| left.trim() == "0");
        pauses.extend(pause.filter(|_| used_up));
    }
    pauses.into_iter().max()
}

/// More than anybody waits: what a server that asks for more is taken to mean.
const EVER: Duration = Duration::from_secs(u32::MAX as u64);

/// A number as headers have it: digits, perhaps with a part behind them. Anything else is no amount.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    text.parse().ok().filter(|_| text.starts_with(|letter: char| letter.is_ascii_digit()))
}

/// So many seconds, which may be more than can be counted.
fn seconds(pause: f64) -> Option<Duration> {
    let is_amount = pause >= 0.0;
    is_amount.then(|| Duration::try_from_secs_f64(pause).unwrap_or(EVER).min(EVER))
}

/// A date as HTTP writes it. The last days of the year 9999 are no timestamps everywhere, and mean the end of time all the same.
fn date(text: &str) -> Option<Timestamp> {
    if let Ok(date) = jiff::fmt::rfc2822::parse(text) {
        return Some(date.timestamp());
    }
    let parsed = jiff::fmt::strtime::parse("%a, %d %b %Y %H:%M:%S GMT", text).ok()?;
    let date = parsed.to_datetime().ok()?;
    Some(date.to_zoned(jiff::tz::TimeZone::UTC).map_or(Timestamp::MAX, |date| date.timestamp()))
}

fn until(then: Timestamp, now: Timestamp) -> Option<Duration> {
    Some(Duration::try_from(then.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// `1h2m3.5s`, `20ms`, or seconds without a unit.
fn span(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if let Some(pause) = number(rest) {
        return seconds(pause);
    }
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        let unit_end =
            rest[end..].find(|letter: char| letter.is_ascii_digit()).map_or(rest.len(), |at| end + at);
        let unit = match &rest[end..unit_end] {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            "d" => 86_400.0,
            _ => return None,
        };
        sum = sum.checked_add(seconds(number * unit)?)?;
        rest = &rest[unit_end..];
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(headers: &[(&str, &str)]) -> Option<f64> {
        let headers: Vec<_> =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        wanted(&headers, now).map(|pause| pause.as_secs_f64())
    }

    #[test]
    fn a_server_says_how_long_to_wait_in_many_ways() {
        assert_eq!(pause(&[("Retry-After", "7")]), Some(7.0));
        assert_eq!(pause(&[("retry-after-ms", "1500"), ("retry-after", "9")]), Some(1.5));
        assert_eq!(pause(&[("retry-after", "Thu, 01 Jan 2026 00:00:30 GMT")]), Some(30.0));
        assert!(pause(&[("retry-after", "Fri, 31 Dec 9999 23:59:59 GMT")]).unwrap() > 2e11);
        assert_eq!(pause(&[("x-ratelimit-reset-tokens", "6m0.5s")]), Some(360.5));
        assert_eq!(pause(&[("x-ratelimit-reset-requests", "20ms")]), Some(0.02));
        assert_eq!(pause(&[("anthropic-ratelimit-tokens-reset", "2026-01-01T00:00:12Z")]), Some(12.0));
    }

    #[test]
    fn only_limits_that_are_used_up_count() {
        let headers = [
            ("x-ratelimit-remaining-requests", "0"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-remaining-tokens", "900"),
            ("x-ratelimit-reset-tokens", "5m"),
        ];
        assert_eq!(pause(&headers), Some(1.0));
    }

    #[test]
    fn more_than_can_be_counted_is_very_long() {
        for value in ["1e999", "99999999999999999999999", "4294967296"] {
            assert_eq!(pause(&[("retry-after", value)]), Some(4_294_967_295.0), "{value}");
        }
        assert_eq!(pause(&[("x-ratelimit-reset-tokens", "99999999999999999999999s")]), Some(4_294_967_295.0));
    }

    #[test]
    fn invalid_retry_times_are_ignored() {
        for value in ["", "soon", "-", "-5", "-0.5", "inf", "NaN", "0", "Wed, 31 Dec 2025 00:00:00 GMT"] {
            let asked = pause(&[("retry-after", value)]);
            assert!(asked.is_none(), "{value}: {asked:?}");
        }
        // The next best thing that it says counts.
        assert_eq!(pause(&[("retry-after-ms", "-5"), ("retry-after", "3")]), Some(3.0));
        assert_eq!(pause(&[("retry-after", "-5"), ("x-ratelimit-reset-tokens", "2s")]), Some(2.0));
        assert_eq!(pause(&[("x-ratelimit-reset-tokens", "12parsecs")]), None);
        assert_eq!(pause(&[]), None);
    }
}
