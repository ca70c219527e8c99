//! The fuel and the time of a render that consists of many templates.
//!
//! Each engine counts its own steps. What is left of them, and the deadline, belong to a thread: a template may include another one,
//! which another engine renders. Outside of a render nothing is counted.

use std::cell::Cell;
use std::fmt;
use std::time::Duration;

/// The source of an error that says that a render has no time left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutOfTime {
    /// The seconds that it had.
    #[doc(hidden)]
    pub seconds: u64,
}

impl fmt::Display for OutOfTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the render took longer than {} seconds", self.seconds)
    }
}

impl std::error::Error for OutOfTime {}

#[derive(Debug, Clone, Copy)]
struct Count {
    /// The steps that the fuel still pays for; `None` outside of a template.
    left: Option<u64>,
    /// When the clock was first read.
    started: Option<Duration>,
    /// Seconds of the whole render; `None` outside of one.
    seconds: Option<u64>,
    /// Whether a template of this render has begun.
    begun: bool,
}

const IDLE: Count = Count { left: None, started: None, seconds: None, begun: false };

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
#[doc(hidden)]
pub fn render<T>(seconds: u64, run: impl FnOnce() -> T) -> T {
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
    COUNT.set(Count { left: Some(fuel), ..before });
    let _restore = Restore(|now| Count { left: None, ..now });
    run()
}

/// The steps that the fuel of the template that is running still pays for; `None` outside of one.
pub(crate) fn steps_left() -> Option<u64> {
    COUNT.get().left
}

/// Says how many steps are left, where an engine counts them itself.
pub(crate) fn set_steps_left(steps: u64) {
    let count = COUNT.get();
    if count.left.is_some() {
        COUNT.set(Count { left: Some(steps), ..count });
    }
}

/// Reads the clock, for an engine that counts its steps itself.
pub(crate) fn look_now() -> Result<(), OutOfTime> {
    look(COUNT.get())
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
    if cfg!(all(target_arch = "wasm32", target_os = "unknown")) {
        // There is no clock, so that only fuel limits a render.
        return Duration::ZERO;
    }
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
    fn a_nested_template_shares_the_fuel() {
        template(10, || {
            template(10, || set_steps_left(2));
            assert_eq!(steps_left(), Some(2));
        });
        assert_eq!(steps_left(), None);
    }

    #[test]
    fn the_next_template_of_a_render_has_its_own_fuel() {
        render(5, || {
            template(10, || set_steps_left(2));
            template(10, || assert_eq!(steps_left(), Some(10)));
        });
    }

    #[test]
    fn work_behind_the_deadline_is_refused() {
        let late =
            with_clock(4, || render(5, || (0..10).map(|_| look_now()).collect::<Result<Vec<()>, _>>()));
        assert_eq!(late.unwrap_err().to_string(), "the render took longer than 5 seconds");
    }

    #[test]
    fn a_render_of_many_templates_has_one_deadline() {
        let count =
            with_clock(1, || render(5, || (0..100).take_while(|_| template(1, has_time).is_ok()).count()));
        assert_eq!(count, 7);
    }
}
