//! The time and the nonces of a render. JavaScript gives the time, the zone, and a secret from its source of random bytes.

use std::cell::{Cell, RefCell};

use cuebook::jiff::tz::TimeZone;
use cuebook::jiff::{Timestamp, Zoned};
use cuebook::variables::{Clock, NonceSource};
use cuebook::{Result, sha256};

thread_local! {
    static NOW: Cell<i64> = const { Cell::new(0) };
    static ZONE: RefCell<TimeZone> = const { RefCell::new(TimeZone::UTC) };
    static SECRET: RefCell<String> = const { RefCell::new(String::new()) };
    static RENDER: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Takes the name of the zone. An unknown one is UTC.
pub fn start(zone: &str) {
    ZONE.set(TimeZone::get(zone).unwrap_or(TimeZone::UTC));
}

/// Begins a render at a time in milliseconds. The same secret and number give the same nonces.
pub fn begin(secret: &str, number: u64, now: i64) {
    SECRET.with_borrow_mut(|known| {
        if known != secret {
            secret.clone_into(known);
        }
    });
    NOW.set(now);
    RENDER.set((number, 0));
}

/// The clock of JavaScript.
#[derive(Debug)]
pub struct HostClock;

impl Clock for HostClock {
    fn now(&self) -> Zoned {
        let now = Timestamp::from_millisecond(NOW.get()).unwrap_or(Timestamp::UNIX_EPOCH);
        now.to_zoned(ZONE.with_borrow(TimeZone::clone))
    }
}

/// Nonces from the secret: they cannot be guessed, and a repeated render has the same ones.
#[derive(Debug)]
pub struct HostNonces;

impl NonceSource for HostNonces {
    fn digits(&self) -> Result<String> {
        let (render, count) = RENDER.get();
        RENDER.set((render, count + 1));
        let text = SECRET.with_borrow(|secret| format!("{secret}/{render}/{count}"));
        Ok(sha256::hex(&sha256::Sha256::digest(text.as_bytes())[..8]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_render_has_its_nonces_again() {
        start("Asia/Tokyo");
        let nonces = |number| {
            begin("secret", number, 0);
            [HostNonces.digits(), HostNonces.digits()].map(|digits| digits.ok())
        };
        let first = nonces(1);
        assert_ne!(first[0], first[1]);
        assert_ne!(nonces(2), first);
        assert_eq!(nonces(1), first);
        assert_eq!(first[0].as_ref().map(String::len), Some(16));
        assert_eq!(HostClock.now().to_string(), "1970-01-01T09:00:00+09:00[Asia/Tokyo]");
    }
}
