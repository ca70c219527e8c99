//! Whether a text is a day, a time or a UUID. Days and times are in the forms of ISO 8601 that Python reads.

use std::ops::Range;

use jiff::civil::{Date, ISOWeekDate, Weekday};

/// `2024-02-29`, `20240229`, `2024-W09-4`, `2024W094`, `2024-W09` or `2024W09`.
pub(super) fn is_date(text: &str) -> bool {
    let is = |at: usize, byte: u8| text.as_bytes().get(at) == Some(&byte);
    let part = |range: Range<usize>| number(text.get(range)?);
    let found = match text.len() {
        10 if is(4, b'-') && is(5, b'W') && is(8, b'-') => week(part(0..4), part(6..8), part(9..10)),
        8 if is(4, b'-') && is(5, b'W') => week(part(0..4), part(6..8), Some(1)),
        8 if is(4, b'W') => week(part(0..4), part(5..7), part(7..8)),
        7 if is(4, b'W') => week(part(0..4), part(5..7), Some(1)),
        10 if is(4, b'-') && is(7, b'-') => day(part(0..4), part(5..7), part(8..10)),
        8 => day(part(0..4), part(4..6), part(6..8)),
        _ => None,
    };
    // Years begin with 1.
    found.is_some_and(|date| date.year() > 0)
}

fn day(year: Option<i16>, month: Option<i16>, day: Option<i16>) -> Option<Date> {
    Date::new(year?, i8::try_from(month?).ok()?, i8::try_from(day?).ok()?).ok()
}

fn week(year: Option<i16>, week: Option<i16>, day: Option<i16>) -> Option<Date> {
    let day = Weekday::from_monday_one_offset(i8::try_from(day?).ok()?).ok()?;
    ISOWeekDate::new(year?, i8::try_from(week?).ok()?, day).ok().map(ISOWeekDate::date)
}

/// `10`, `10:30`, `10:30:15.25`, `103015`, each perhaps behind a `T`, perhaps with `Z` or a distance from it.
pub(super) fn is_time(text: &str) -> bool {
    let text = text.strip_prefix('T').unwrap_or(text);
    let (clock, zone) = match text.find(['Z', '+', '-']) {
        Some(at) => (&text[..at], Some(&text[at..])),
        None => (text, None),
    };
    let zone_is_good = match zone {
        None | Some("Z") => true,
        Some(zone) => zone.get(1..).is_some_and(is_clock),
    };
    zone_is_good && is_clock(clock)
}

/// Hours, perhaps minutes, perhaps seconds, perhaps parts of one; with colons everywhere or nowhere.
fn is_clock(text: &str) -> bool {
    let (clock, fraction) = match text.split_once(['.', ',']) {
        Some((clock, fraction)) => (clock, Some(fraction)),
        None => (text, None),
    };
    let parts: Vec<&str> = match clock.contains(':') {
        true => clock.split(':').collect(),
        false if clock.len() % 2 == 0 && clock.is_ascii() => {
            (0..clock.len() / 2).map(|at| &clock[2 * at..2 * at + 2]).collect()
        }
        false => return false,
    };
    let fits =
        |(part, last): (&&str, i16)| part.len() == 2 && number(part).is_some_and(|number| number <= last);
    let fraction_is_good = match fraction {
        Some(digits) => {
            parts.len() == 3 && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        None => true,
    };
    (1..=3).contains(&parts.len()) && parts.iter().zip([23, 59, 59]).all(fits) && fraction_is_good
}

/// A day, or a day and a time with one character between them.
pub(super) fn is_date_time(text: &str) -> bool {
    if is_date(text) {
        return true;
    }
    // A day has between 7 and 10 characters, all of them ASCII.
    (7..=10).any(|length| {
        text.get(..length).is_some_and(is_date)
            && text.get(length..).is_some_and(|rest| {
                let mut rest = rest.chars();
                rest.next().is_some_and(|between| !between.is_ascii_digit()) && is_time_only(rest.as_str())
            })
    })
}

fn is_time_only(text: &str) -> bool {
    !text.starts_with('T') && is_time(text)
}

/// A UUID in the form that everybody writes, from any that Python reads: with braces, with `urn:uuid:`, without dashes.
pub(super) fn uuid(text: &str) -> Option<String> {
    let text = text.replace("urn:", "").replace("uuid:", "");
    let digits = text.trim_matches(['{', '}']).replace('-', "").to_ascii_lowercase();
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    Some(parts.map(|part| &digits[part]).join("-"))
}

/// The number that digits are.
fn number(text: &str) -> Option<i16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok()).flatten()
}
