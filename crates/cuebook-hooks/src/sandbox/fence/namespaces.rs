//! Namespaces: what the launcher leaves behind before it makes the program's process.

use std::io;
use std::os::unix::net::UnixStream;

use rustix::thread::UnshareFlags;

use super::identity::Identity;
use super::{LEFT_OUT, wanted};
use crate::sandbox::Protection;
use crate::sandbox::calls;
use crate::sandbox::wire::{self, FromLauncher, Mapped, Order};

/// What we got, or why not.
pub struct Namespaces {
    pub user: Result<(), String>,
    /// A table of mounts of its own, so that a view can be made.
    pub view: Result<(), String>,
    pub network: Result<(), String>,
    pub processes: Result<(), String>,
}

/// What follows the others into a new namespace, and is not worth a word if it does not: the host's name, and where in the
/// tree of control groups we are.
const BYCATCH: UnshareFlags = UnshareFlags::NEWUTS.union(UnshareFlags::NEWCGROUP);

/// Enters as many as this system allows.
pub fn enter(order: &Order, control: &UnixStream, identity: &mut Identity) -> Namespaces {
    let view = wanted(order, Protection::View);
    let network = wanted(order, Protection::Network);
    let processes = wanted(order, Protection::Processes);
    // Without a namespace of users there is no other, so leaving out the limit that needs it leaves out all.
    if wanted(order, Protection::ProcessLimit).is_err() {
        let refused = || Err(LEFT_OUT.to_owned());
        return Namespaces { user: refused(), view: refused(), network: refused(), processes: refused() };
    }
    let mut wishes = [
        (UnshareFlags::NEWNS, view),
        (UnshareFlags::NEWNET, network),
        (UnshareFlags::NEWPID | UnshareFlags::NEWIPC, processes),
    ];
    let all = wishes.iter().filter(|(_, wish)| wish.is_ok()).fold(BYCATCH, |all, (flags, _)| all | *flags);
    // All at once is the fast way. Where that is refused, one by one tells which.
    let together = calls::unshare(UnshareFlags::NEWUSER | all).is_ok();
    let mut user = Ok(());
    if !together {
        user = calls::unshare(UnshareFlags::NEWUSER).map_err(|error| refusal(&error));
    }
    if user.is_ok() {
        user = map_ids(order, control, identity)
            .map_err(|error| format!("user namespace: {}", wire::plain(&error)));
    }
    if !together {
        for (flags, wish) in &mut wishes {
            if wish.is_ok() {
                *wish = user.clone().and_then(|()| calls::unshare(*flags).map_err(|error| refusal(&error)));
            }
        }
        let _ = calls::unshare(BYCATCH);
    }
    let _ = rustix::system::sethostname(b"sandbox");
    let [(_, view), (_, network), (_, processes)] = wishes;
    Namespaces { user, view, network, processes }
}

/// Why a namespace was refused, as far as the system tells.
fn refusal(error: &io::Error) -> String {
    let text = wire::plain(error);
    let setting =
        |path: &str| std::fs::read_to_string(path).map(|value| value.trim().to_owned()).unwrap_or_default();
    let switched_off = setting("/proc/sys/kernel/unprivileged_userns_clone") == "0"
        || setting("/proc/sys/user/max_user_namespaces") == "0";
    if switched_off {
        return format!("unshare: {text} (user namespaces are turned off)");
    }
    if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        return format!("unshare: {text} (AppArmor restricts user namespaces)");
    }
    format!("unshare: {text}")
}

/// Gives the new namespace its numbers of users and groups.
fn map_ids(order: &Order, control: &UnixStream, identity: &mut Identity) -> io::Result<()> {
    // More than one's own number only the parent can give, who has stayed outside.
    if identity.wants_nobody() {
        wire::send(control, &FromLauncher::MapIds)?;
        let Mapped(mapped) = wire::receive(control)?;
        if mapped.is_ok() {
            match order.tool {
                Some(_) => identity.stay_root(),
                None => identity.become_nobody(),
            }
            return Ok(());
        }
    }
    let (uid, gid) = (identity.uid.as_raw(), identity.gid.as_raw());
    // The kernel wants to hear this first. Everybody keeps the number that they have, so that files are theirs as before.
    let maps = [
        ("setgroups", "deny".into()),
        ("uid_map", format!("{uid} {uid} 1")),
        ("gid_map", format!("{gid} {gid} 1")),
    ];
    for (file, text) in maps {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(|error| wire::explain(error, file))?;
    }
    Ok(())
}
