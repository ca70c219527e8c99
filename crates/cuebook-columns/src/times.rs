//! Dates and times as the texts that Python's `isoformat` writes.

use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// How many of a unit a second has.
#[derive(Debug, Clone, Copy)]
pub struct Unit(i64);

impl Unit {
    /// The unit of a format: `s`, `m`, `u` or `n`.
    pub fn of(letter: &str) -> Option<Unit> {
        Some(Unit(match letter {
            "s" => 1,
            "m" => 1_000,
            "u" => 1_000_000,
            "n" => 1_000_000_000,
            _ => return None,
        }))
    }

    fn duration(self, count: i64) -> SignedDuration {
        let nanoseconds = count.rem_euclid(self.0) * (1_000_000_000 / self.0);
        // Below a thousand million: it fits.
        SignedDuration::new(count.div_euclid(self.0), i32::try_from(nanoseconds).unwrap_or_default())
    }
}

/// The zone of a column: a name, or an offset such as `+02:00`. An empty name is no zone.
pub fn zone(name: &str) -> Result<Option<TimeZone>, String> {
    if name.is_empty() {
        return Ok(None);
    }
    let found = fixed(name).or_else(|| TimeZone::get(name).ok());
    found.map(Some).ok_or_else(|| format!("the time zone `{name}` is unknown"))
}

fn fixed(name: &str) -> Option<TimeZone> {
    let (sign, rest) =
        name.strip_prefix('+').map(|rest| (1, rest)).or_else(|| Some((-1, name.strip_prefix('-')?)))?;
    let (hours, minutes) = rest.split_once(':')?;
    let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
    jiff::tz::Offset::from_seconds(sign * seconds).ok().map(TimeZone::fixed)
}

/// A day, counted from 1970-01-01.
pub fn day(days: i64) -> Option<String> {
    let date =
        Date::new(1970, 1, 1).ok()?.checked_add(SignedDuration::from_hours(days.checked_mul(24)?)).ok()?;
    Some(date.to_string())
}

/// A time of day, counted from midnight.
pub fn time(count: i64, unit: Unit) -> Option<String> {
    let (time, over) = (Time::midnight(), unit.duration(count));
    let time = time.checked_add(over).ok()?;
    Some(format!(
        "{:02}:{:02}:{:02}{}",
        time.hour(),
        time.minute(),
        time.second(),
        fraction(time.subsec_nanosecond())
    ))
}

/// A moment, counted from 1970 in UTC, or in no zone.
pub fn moment(count: i64, unit: Unit, zone: Option<&TimeZone>) -> Option<String> {
    let since = unit.duration(count);
    let timestamp = Timestamp::from_duration(since).ok()?;
    match zone {
        None => Some(local(TimeZone::UTC.to_datetime(timestamp))),
        Some(zone) => {
            let zoned = timestamp.to_zoned(zone.clone());
            let seconds = zoned.offset().seconds();
            let (sign, minutes) = (if seconds < 0 { '-' } else { '+' }, seconds.abs() / 60);
            Some(format!("{}{sign}{:02}:{:02}", local(zoned.datetime()), minutes / 60, minutes % 60))
        }
    }
}

fn local(moment: DateTime) -> String {
    let (date, time) = (moment.date(), moment.time());
    let (hour, minute, second) = (time.hour(), time.minute(), time.second());
    format!("{date}T{hour:02}:{minute:02}:{second:02}{}", fraction(time.subsec_nanosecond()))
}

/// Six digits, or nine where the last three matter.
fn fraction(nanoseconds: i32) -> String {
    match (nanoseconds, nanoseconds % 1000) {
        (0, _) => String::new(),
        (_, 0) => format!(".{:06}", nanoseconds / 1000),
        _ => format!(".{nanoseconds:09}"),
    }
}
