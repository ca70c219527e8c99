//! Which process runs a thread, and whether it still runs.
//!
//! A process is known by its machine, its number, and when it began: numbers are used again, and machines are started anew.
//! On the same machine the system is asked; of a process on another machine only its last heartbeat is known.

use std::sync::OnceLock;

use cuebook_text::sha256::hex;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

/// After how long without one a process on another machine counts as dead.
const SILENCE: SignedDuration = SignedDuration::from_secs(30);

/// Who runs a thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Holder {
    /// The machine, distinct from itself before its last start.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// When the process began, in the machine's own count, so that another process with the same number is not taken for it.
    pub began: u64,
    /// A random word, new each time a thread is taken up.
    pub token: String,
}

impl Holder {
    /// This process, with a fresh token.
    pub fn of_this_process() -> Holder {
        let (host, pid, began) = this_process();
        let mut bytes = [0_u8; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // No two of these are the same within a process, and the rest of a holder tells processes apart.
            static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            bytes[..8].copy_from_slice(&count.to_be_bytes());
        }
        Holder { host: host.clone(), pid: *pid, began: *began, token: hex(&bytes) }
    }

    /// Whether it is a process of this machine, of which the system can be asked.
    #[doc(hidden)]
    pub fn is_here(&self) -> bool {
        let (host, pid, _) = this_process();
        self.host == *host && stat(*pid).is_some()
    }
}

/// Whether a holder lives, as far as can be known here: `beat` is its last sign of life.
pub fn lives(holder: &Holder, beat: Option<Timestamp>) -> bool {
    let (host, pid, began) = this_process();
    if holder.host == *host {
        if (holder.pid, holder.began) == (*pid, *began) {
            return true;
        }
        if stat(*pid).is_some() {
            return stat(holder.pid).is_some_and(|stat| stat.began == holder.began && stat.runs());
        }
    }
    beat.is_some_and(|beat| is_recent(Timestamp::now().duration_since(beat)))
}

/// Whether a holder is a process of this machine that has ended, as far as the system can be asked.
pub(crate) fn has_ended(holder: &Holder) -> bool {
    holder.is_here() && !lives(holder, None)
}

/// Whether a sign of life of this age is one. Clocks differ a little; one from far in the future says nothing.
fn is_recent(age: SignedDuration) -> bool {
    age.abs() < SILENCE
}

/// The machine, the process, and when it began.
fn this_process() -> &'static (String, u32, u64) {
    static PROCESS: OnceLock<(String, u32, u64)> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let pid = std::process::id();
        let now = || Timestamp::now().as_microsecond().unsigned_abs();
        (host(), pid, stat(pid).map_or_else(now, |stat| stat.began))
    })
}

/// What the system says of a process.
#[derive(Debug, Clone, Copy)]
pub struct Stat {
    /// A letter for what it does.
    pub state: char,
    /// The group that it is in.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux is asked"))]
    pub group: u32,
    /// When it began.
    pub began: u64,
}

impl Stat {
    /// A process that ended and was not asked about yet is still listed, but runs nothing.
    pub fn runs(&self) -> bool {
        !"ZXx".contains(self.state)
    }
}

/// What the system says of a process, where it does.
pub fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of a program stands in parentheses and can hold anything, so what follows the last one is counted.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, group, began: fields.nth(16)?.parse().ok()? })
}

/// The machine since it was started, and the part of it whose processes are seen here.
fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let named = |name: &str| std::env::var(name).unwrap_or_default();
    let parts = [
        read("/etc/machine-id"),
        read("/proc/sys/kernel/random/boot_id"),
        processes.display().to_string(),
        read("/etc/hostname"),
        named("COMPUTERNAME"),
    ];
    hex(&Sha256::digest(parts.join("\n"))[..12])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_process_is_distinguished_from_one_with_the_same_number() {
        let this = Holder::of_this_process();
        assert_ne!(this.token, Holder::of_this_process().token);
        assert!(lives(&this, None));
        if stat(this.pid).is_some() {
            let long_ago = Some(Timestamp::now());
            assert!(!lives(&Holder { began: this.began + 1, ..this.clone() }, long_ago));
            assert!(!lives(&Holder { pid: 0x7fff_fff0, ..this.clone() }, long_ago));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_ended_and_is_still_listed_is_dead() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let began = stat(child.id()).unwrap().began;
        let holder = Holder { pid: child.id(), began, ..Holder::of_this_process() };
        assert!(lives(&holder, None));
        child.kill().unwrap();
        while stat(child.id()).is_some_and(|stat| stat.runs()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!lives(&holder, Some(Timestamp::now())));
        child.wait().unwrap();
    }

    #[test]
    fn a_heartbeat_from_the_future_does_not_count() {
        let elsewhere = Holder { host: "another".to_owned(), ..Holder::of_this_process() };
        let at = |seconds| Some(Timestamp::now() + SignedDuration::from_secs(seconds));
        assert!(lives(&elsewhere, at(5)) && lives(&elsewhere, at(-5)));
        assert!(!lives(&elsewhere, at(60)) && !lives(&elsewhere, at(-60)));
        assert!(!lives(&elsewhere, Some(Timestamp::MAX)) && !lives(&elsewhere, Some(Timestamp::MIN)));
    }
}
