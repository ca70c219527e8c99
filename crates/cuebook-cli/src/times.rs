//! Times on the command line.

use jiff::civil::{DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp, Zoned};

/// A time: with an offset, or in the time zone of this machine; without a date, the next one.
pub fn at(text: &str) -> Result<Timestamp, String> {
    at_from(text, &Zoned::now())
}

fn at_from(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    if let Ok(moment) = text.parse::<Timestamp>() {
        return Ok(moment);
    }
    let wrong = || "write a time such as 2026-03-01T09:00 or 09:00".to_owned();
    let (time, zone) = match text.strip_suffix('Z') {
        Some(time) => (time, TimeZone::UTC),
        None => (text, now.time_zone().clone()),
    };
    let zoned = |moment: DateTime| moment.to_zoned(zone.clone()).map_err(|_| wrong());
    // A date alone is read as a time too, and most likely something is missing.
    if time.contains('T') || time.contains(' ') {
        return zoned(time.parse::<DateTime>().map_err(|_| wrong())?).map(|moment| moment.timestamp());
    }
    if !time.contains(':') {
        return Err(wrong());
    }
    let time: Time = time.parse().map_err(|_| wrong())?;
    let today = now.with_time_zone(zone.clone()).date();
    let moment = zoned(today.to_datetime(time))?;
    if moment.timestamp() > now.timestamp() {
        return Ok(moment.timestamp());
    }
    let tomorrow = today.tomorrow().map_err(|_| wrong())?;
    zoned(tomorrow.to_datetime(time)).map(|moment| moment.timestamp())
}

/// The time after a duration, such as `10m`.
pub fn after(text: &str) -> Result<Timestamp, String> {
    after_from(text, &Zoned::now())
}

fn after_from(text: &str, now: &Zoned) -> Result<Timestamp, String> {
    let wrong = || "write a duration such as 90s, 10m, 2h30m or 3d".to_owned();
    let span: Span = text.parse().map_err(|_| wrong())?;
    if span.is_negative() {
        return Err(wrong());
    }
    Ok(now.checked_add(span).map_err(|_| wrong())?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_without_a_date_is_the_next_one() {
        let now: Zoned = "2026-03-01T10:00+01:00[Europe/Berlin]".parse().unwrap();
        let at = |text: &str| at_from(text, &now).map(|moment| moment.to_string());
        assert_eq!(at("11:30").as_deref(), Ok("2026-03-01T10:30:00Z"));
        assert_eq!(at("09:30").as_deref(), Ok("2026-03-02T08:30:00Z"));
        assert_eq!(at("11:30Z").as_deref(), Ok("2026-03-01T11:30:00Z"));
        assert_eq!(at("2026-05-02T07:15").as_deref(), Ok("2026-05-02T05:15:00Z"));
        assert_eq!(at("2026-05-02 07:15").as_deref(), Ok("2026-05-02T05:15:00Z"));
        assert_eq!(at("2026-05-02T07:15:00+05:00").as_deref(), Ok("2026-05-02T02:15:00Z"));
        for wrong in ["", "soon", "25:00", "2026-05-02", "9", "2026-13-01T09:00"] {
            assert!(at(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_duration_counts_from_now() {
        let now: Zoned = "2026-03-01T10:00+01:00[Europe/Berlin]".parse().unwrap();
        let after = |text: &str| after_from(text, &now).map(|moment| moment.to_string());
        assert_eq!(after("90s").as_deref(), Ok("2026-03-01T09:01:30Z"));
        assert_eq!(after("2h30m").as_deref(), Ok("2026-03-01T11:30:00Z"));
        assert_eq!(after("3d").as_deref(), Ok("2026-03-04T09:00:00Z"));
        for wrong in ["", "10", "soon", "-5m", "99999999d"] {
            assert!(after(wrong).is_err(), "{wrong}");
        }
    }
}
