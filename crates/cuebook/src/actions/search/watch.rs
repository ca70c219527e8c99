//! Knowing that nothing has changed without looking at every file.
//!
//! Linux tells which watched folders something happened in. Where it does not (another system, too many folders), every
//! search looks at every file, which is slower and just as right.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// What may have changed since the last look.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Anything.
    Anything,
    /// What lies directly in these folders.
    In(HashSet<PathBuf>),
}

/// The folders that are watched.
#[derive(Debug, Default)]
pub(super) struct Watch {
    #[cfg(target_os = "linux")]
    inner: Option<linux::Inner>,
}

impl Watch {
    pub(super) fn new() -> Watch {
        Watch {
            #[cfg(target_os = "linux")]
            inner: linux::Inner::new(),
        }
    }

    /// Watches a folder from now on. To miss nothing this comes before the folder is read.
    pub(super) fn add(&mut self, folder: &Path) {
        #[cfg(target_os = "linux")]
        if let Some(inner) = &mut self.inner
            && !inner.add(folder)
        {
            self.inner = None;
        }
        #[cfg(not(target_os = "linux"))]
        let _ = folder;
    }

    /// What may have changed since the last time.
    pub(super) fn changes(&mut self) -> Changes {
        #[cfg(target_os = "linux")]
        if let Some(inner) = &mut self.inner {
            return inner.changes();
        }
        Changes::Anything
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::{HashMap, HashSet};
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::{Path, PathBuf};

    use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

    use super::Changes;

    #[derive(Debug)]
    pub(super) struct Inner {
        fd: OwnedFd,
        folders: HashMap<i32, PathBuf>,
    }

    impl Inner {
        pub(super) fn new() -> Option<Inner> {
            let fd = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).ok()?;
            Some(Inner { fd, folders: HashMap::new() })
        }

        /// A folder that is gone is no failure: its reader sees that too.
        pub(super) fn add(&mut self, folder: &Path) -> bool {
            let flags = WatchFlags::CREATE
                | WatchFlags::DELETE
                | WatchFlags::MODIFY
                | WatchFlags::ATTRIB
                | WatchFlags::MOVE
                | WatchFlags::DELETE_SELF
                | WatchFlags::MOVE_SELF
                | WatchFlags::ONLYDIR;
            match inotify::add_watch(&self.fd, folder, flags) {
                Ok(number) => {
                    self.folders.insert(number, folder.to_owned());
                    true
                }
                Err(error) => error == rustix::io::Errno::NOENT || error == rustix::io::Errno::NOTDIR,
            }
        }

        pub(super) fn changes(&mut self) -> Changes {
            let mut found = HashSet::new();
            let mut buffer = [MaybeUninit::uninit(); 16 << 10];
            let mut reader = Reader::new(&self.fd, &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                        return Changes::Anything;
                    }
                    Ok(event) => found.extend(self.folders.get(&event.wd()).cloned()),
                    Err(rustix::io::Errno::WOULDBLOCK) => return Changes::In(found),
                    Err(_) => return Changes::Anything,
                }
            }
        }
    }
}
