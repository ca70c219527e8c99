//! Who the program is, and which rights it has.
//!
//! The kernel does not count the processes of root. So as root the program becomes *nobody*, and keeps a single right inside
//! its user namespace: to read what its files' modes would keep from it, so that it can read what root can of the places that
//! it is shown. A tool stays root and keeps the rights that root has on files, or it could not change the project. Everybody else stays who they are, without any rights beyond that.

use std::io;
use std::path::Path;

use rustix::process::{Gid, Uid, getegid, geteuid};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::sandbox::wire;

/// The number of *nobody*, as a user and as a group.
const NOBODY: u32 = 65534;

/// Who the program is.
pub struct Identity {
    pub uid: Uid,
    pub gid: Gid,
    /// Whether it is nobody instead of root.
    pub nobody: bool,
    /// Whether it is root and stays that, with the rights that root has on files and no others.
    rooted: bool,
    /// Whether the kernel takes us for the one root whose processes it does not count.
    uncounted: bool,
    /// Whether there is a *nobody* here.
    has_nobody: bool,
}

impl Identity {
    /// Our own.
    pub fn ours() -> Identity {
        let (uid, gid) = (geteuid(), getegid());
        let map = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
        let (users, groups) = (map("uid_map"), map("gid_map"));
        Identity {
            uid,
            gid,
            nobody: false,
            rooted: false,
            uncounted: uid.is_root() && outer(&users, 0).is_none_or(|outer| outer == 0),
            has_nobody: outer(&users, NOBODY).is_some() && outer(&groups, NOBODY).is_some(),
        }
    }

    /// Whether we are root and could be nobody in a user namespace that has all our numbers.
    pub fn wants_nobody(&self) -> bool {
        self.uid.is_root() && self.has_nobody
    }

    /// From now on it is nobody.
    pub fn become_nobody(&mut self) {
        (self.uid, self.gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
        self.nobody = true;
        self.uncounted = false;
    }

    /// It stays root, so that it can change the files that root can.
    pub fn stay_root(&mut self) {
        self.rooted = true;
    }

    /// Whether the kernel counts its processes.
    pub fn is_counted(&self) -> bool {
        !self.uncounted
    }

    /// Gives it a folder.
    pub fn own(&self, folder: &Path) -> io::Result<()> {
        if self.nobody { std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY)) } else { Ok(()) }
    }

    /// Becomes this identity and gives up all other rights, for good.
    pub fn take_on(&self) -> Result<(), String> {
        self.try_take_on().map_err(|error| wire::plain(&error))?;
        rustix::thread::set_no_new_privs(true)
            .map_err(|error| format!("no_new_privs: {}", wire::plain(&error.into())))
    }

    fn try_take_on(&self) -> io::Result<()> {
        let mut kept = CapabilitySet::empty();
        if self.rooted {
            // What a program gains by being started as root is cut down to these, because it gains no new privileges.
            kept = CapabilitySet::DAC_OVERRIDE
                | CapabilitySet::DAC_READ_SEARCH
                | CapabilitySet::FOWNER
                | CapabilitySet::CHOWN;
        }
        if self.nobody {
            kept = CapabilitySet::DAC_READ_SEARCH;
            rustix::thread::set_keep_capabilities(true)?;
            rustix::thread::set_thread_groups(&[])?;
            rustix::thread::set_thread_res_gid(self.gid, self.gid, self.gid)?;
            rustix::thread::set_thread_res_uid(self.uid, self.uid, self.uid)?;
        }
        rustix::thread::set_capabilities(
            None,
            CapabilitySets { effective: kept, permitted: kept, inheritable: kept },
        )
        .map_err(|error| wire::explain(error, "capset"))?;
        if self.nobody {
            // What is ambient outlives the start of a program.
            rustix::thread::configure_capability_in_ambient_set(kept, true)
                .map_err(|error| wire::explain(error, "ambient capabilities"))?;
        }
        Ok(())
    }
}

/// What a number stands for outside, by a map of the kernel; `None` if it is not in the map.
fn outer(map: &str, number: u32) -> Option<u64> {
    map.lines().find_map(|line| {
        let fields: Vec<u64> = line.split_whitespace().map_while(|field| field.parse().ok()).collect();
        let [inside, outside, count] = fields[..] else { return None };
        let offset = u64::from(number).checked_sub(inside)?;
        (offset < count).then_some(outside + offset)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_looked_up_in_a_map_of_the_kernel() {
        let map = "         0       1000          1\n         1     100000      65536\n";
        assert_eq!(outer(map, 0), Some(1000));
        assert_eq!(outer(map, NOBODY), Some(165_533));
        assert_eq!(outer(map, 65537), None);
        assert_eq!(outer("", 0), None);
    }
}
