//! Stamps: what tells one state of a file from another without reading it.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
    /// Taken so shortly after a change that another change could carry the same time.
    racy: bool,
}

/// File systems count time in ticks; two writes in one tick cannot be distinguished by their times.
const TICK: Duration = Duration::from_millis(20);

impl Stamp {
    /// The stamp of what a path leads to now; `None` if there is nothing.
    pub fn of(path: &Path) -> Option<Stamp> {
        fs::metadata(path).ok().map(|metadata| Stamp::from_metadata(&metadata))
    }

    /// The stamp of what was looked at already.
    pub fn from_metadata(metadata: &fs::Metadata) -> Stamp {
        let modified = metadata.modified().ok();
        let now = SystemTime::now();
        let is_old = |time: SystemTime| now.duration_since(time).unwrap_or_default() >= TICK;
        let settled = modified.is_some_and(is_old);
        // A modification time can be set to anything; the time of the last change of any kind cannot.
        #[cfg(unix)]
        let settled = settled && {
            use std::os::unix::fs::MetadataExt;
            let seconds = Duration::from_secs(u64::try_from(metadata.ctime()).unwrap_or_default());
            let rest = Duration::from_nanos(u64::try_from(metadata.ctime_nsec()).unwrap_or_default());
            is_old(SystemTime::UNIX_EPOCH + seconds + rest)
        };
        Stamp { racy: !settled, ..Stamp::settled(metadata) }
    }

    /// The same, without a look at the clock.
    fn settled(metadata: &fs::Metadata) -> Stamp {
        Stamp {
            size: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            identity: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
            },
            racy: false,
        }
    }

    /// Whether what a path leads to is certainly as it was when `earlier` was taken.
    #[doc(hidden)]
    pub fn holds(path: &Path, earlier: &Option<Stamp>) -> bool {
        match (fs::metadata(path), earlier) {
            (Err(_), None) => true,
            // A racy stamp differs from every settled one.
            (Ok(now), Some(earlier)) => Stamp::settled(&now) == *earlier,
            _ => false,
        }
    }

    /// Whether a file with this stamp is certainly in the state that `earlier` was taken of.
    pub fn proves_unchanged(now: &Option<Stamp>, earlier: &Option<Stamp>) -> bool {
        match (now, earlier) {
            (None, None) => true,
            (Some(now), Some(earlier)) => {
                !earlier.racy
                    && Stamp { racy: false, ..now.clone() } == Stamp { racy: false, ..earlier.clone() }
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Stamp, TICK};

    #[test]
    fn a_stamp_changes_with_the_file_and_a_fresh_one_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        let is_proven = |earlier: &Option<Stamp>| {
            let proven = Stamp::proves_unchanged(&Stamp::of(&path), earlier);
            assert_eq!(Stamp::holds(&path, earlier), proven);
            proven
        };
        assert!(is_proven(&None));
        fs::write(&path, "one").unwrap();
        let fresh = Stamp::of(&path);
        assert!(!is_proven(&fresh), "just written: cannot be sure");
        std::thread::sleep(TICK * 2);
        let settled = Stamp::of(&path);
        assert!(is_proven(&settled));
        fs::write(&path, "two").unwrap();
        assert!(!is_proven(&settled));
        assert!(!is_proven(&None));
    }
}
