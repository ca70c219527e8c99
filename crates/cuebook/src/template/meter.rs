//! Counts the work of a render: items touched and bytes read or written against the fuel, seconds against the deadline.
//!
//! The engine counts its own instructions, and one instruction may call a filter that walks a list of a million items. Everything
//! that walks a list or a text therefore reports it here. The counts belong to a thread, because comparisons and writers are
//! reached from places that know no render. Outside of a render nothing is counted.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

use minijinja::{Error, ErrorKind};

/// One step of fuel pays for one item, or for this many bytes.
const BYTES_PER_STEP: u64 = 256;

/// The clock is read after this much work. It is about a millisecond.
const LOOK_EVERY: u64 = 4_096 * BYTES_PER_STEP;

/// The source of an error that says that a render has no time left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfTime {
    /// The seconds that it had.
    pub(crate) seconds: u64,
}

impl fmt::Display for OutOfTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the render took longer than {} seconds", self.seconds)
    }
}

impl std::error::Error for OutOfTime {}

#[derive(Debug, Clone, Copy)]
struct Count {
    /// What the fuel still pays for, in bytes; `None` outside of a template.
    left: Option<u64>,
    /// Work until the clock is read.
    until_look: u64,
    /// When the clock was first read.
    started: Option<Duration>,
    /// Seconds of the whole render; `None` outside of one.
    seconds: Option<u64>,
    /// Whether a template of this render has begun.
    begun: bool,
}

const IDLE: Count = Count { left: None, until_look: LOOK_EVERY, started: None, seconds: None, begun: false };

thread_local! {
    static COUNT: Cell<Count> = const { Cell::new(IDLE) };
}

/// Puts back what was counted around a render or a template.
struct Restore<F: Fn(Count) -> Count>(F);

impl<F: Fn(Count) -> Count> Drop for Restore<F> {
    fn drop(&mut self) {
        COUNT.set((self.0)(COUNT.get()));
    }
}

/// Runs a whole render, which may consist of many templates and has one deadline. Inside of another one it is a part of that.
pub(crate) fn render<T>(seconds: u64, run: impl FnOnce() -> T) -> T {
    if COUNT.get().seconds.is_some() {
        return run();
    }
    let before = COUNT.replace(Count { seconds: Some(seconds), ..IDLE });
    let _restore = Restore(move |_| before);
    run()
}

/// Runs one template with so much fuel. One that another template calls shares the fuel of that.
pub(crate) fn template<T>(fuel: u64, run: impl FnOnce() -> T) -> T {
    let before = COUNT.get();
    if before.left.is_some() {
        return run();
    }
    COUNT.set(Count { left: Some(fuel.saturating_mul(BYTES_PER_STEP)), ..before });
    let _restore = Restore(|now| Count { left: None, ..now });
    run()
}

/// Asks for time before a template begins. The first one of a render has it.
pub(crate) fn has_time() -> Result<(), OutOfTime> {
    let count = COUNT.get();
    if !count.begun {
        COUNT.set(Count { begun: true, ..count });
        return Ok(());
    }
    look(count)
}

/// Pays for items that are touched.
#[inline]
pub(crate) fn items(count: usize) -> Result<(), Error> {
    bytes((count as u64).saturating_mul(BYTES_PER_STEP))
}

/// Pays for bytes that are copied or compared.
#[inline]
pub(crate) fn text(bytes_of_text: usize) -> Result<(), Error> {
    bytes(bytes_of_text as u64)
}

/// Pays for a text that is read character by character, which takes several times as long.
#[inline]
pub(crate) fn characters(bytes_of_text: usize) -> Result<(), Error> {
    bytes((bytes_of_text as u64).saturating_mul(4))
}

fn bytes(work: u64) -> Result<(), Error> {
    let mut count = COUNT.get();
    let Some(left) = count.left else { return Ok(()) };
    let Some(left) = left.checked_sub(work) else { return Err(Error::from(ErrorKind::OutOfFuel)) };
    count.left = Some(left);
    match count.until_look.checked_sub(work) {
        Some(until_look) => {
            COUNT.set(Count { until_look, ..count });
            Ok(())
        }
        None => look(Count { until_look: LOOK_EVERY, ..count })
            .map_err(|late| Error::new(ErrorKind::InvalidOperation, late.to_string()).with_source(late)),
    }
}

/// Reads the clock, and refuses to go on behind the deadline.
fn look(count: Count) -> Result<(), OutOfTime> {
    let Some(seconds) = count.seconds else { return Ok(()) };
    let now = clock();
    let started = count.started.unwrap_or(now);
    COUNT.set(Count { started: Some(started), ..count });
    if now.saturating_sub(started) > Duration::from_secs(seconds) {
        return Err(OutOfTime { seconds });
    }
    Ok(())
}

#[cfg(not(test))]
fn clock() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;

    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
use tests::clock;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    thread_local! {
        static SECONDS_PER_LOOK: Cell<u64> = const { Cell::new(0) };
        static NOW: Cell<u64> = const { Cell::new(0) };
    }

    /// A clock that goes on by some seconds whenever it is read.
    pub(super) fn clock() -> Duration {
        NOW.set(NOW.get() + SECONDS_PER_LOOK.get());
        Duration::from_secs(NOW.get())
    }

    /// Runs with a clock that goes on by so many seconds whenever it is read.
    pub(crate) fn with_clock<T>(seconds_per_look: u64, run: impl FnOnce() -> T) -> T {
        SECONDS_PER_LOOK.set(seconds_per_look);
        let made = run();
        SECONDS_PER_LOOK.set(0);
        made
    }

    #[test]
    fn fuel_pays_for_items_and_bytes() {
        template(10, || {
            items(9).unwrap();
            text(256).unwrap();
            assert_eq!(items(1).unwrap_err().kind(), ErrorKind::OutOfFuel);
        });
        items(1_000_000).unwrap();
    }

    #[test]
    fn a_nested_template_shares_the_fuel() {
        template(10, || {
            template(10, || items(8)).unwrap();
            assert!(items(8).is_err());
        });
    }

    #[test]
    fn the_next_template_of_a_render_has_its_own_fuel() {
        render(5, || {
            template(10, || items(8)).unwrap();
            template(10, || items(8)).unwrap();
        });
    }

    #[test]
    fn work_behind_the_deadline_is_refused() {
        let late = with_clock(4, || {
            render(5, || template(1 << 40, || (0..10).map(|_| items(5_000)).collect::<Result<Vec<()>, _>>()))
        });
        assert_eq!(late.unwrap_err().detail(), Some("the render took longer than 5 seconds"));
    }

    #[test]
    fn a_render_of_many_templates_has_one_deadline() {
        let count =
            with_clock(1, || render(5, || (0..100).take_while(|_| template(1, has_time).is_ok()).count()));
        assert_eq!(count, 7);
    }
}
