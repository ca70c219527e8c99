//! The fence on Linux.

use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use rustix::process::Pid;

use super::identity::Identity;
use super::namespaces::{self, Namespaces};
use super::{RunningFence, end, landlock, limits, system_calls, view, wanted};
use crate::sandbox::wire::{self, Fenced, FromLauncher, Order, Text};
use crate::sandbox::{Protection, calls};

/// A fence while it is put up, and while it stands.
pub struct Fence {
    namespaces: Namespaces,
    identity: Identity,
    /// The private temporary folder, in case there will be no view of its own.
    temp: Option<PathBuf>,
}

impl Fence {
    /// Puts up what has to be there before the program's process exists.
    pub fn outside(order: &Order, control: &UnixStream) -> io::Result<Fence> {
        let mut identity = Identity::ours();
        let namespaces = namespaces::enter(order, control, &mut identity);
        // Whatever loses its parent becomes our child, where we find it.
        if namespaces.processes.is_err() {
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        }
        let temp = match namespaces.view {
            Ok(()) => None,
            Err(_) => Some(private_folder(&identity)?),
        };
        Ok(Fence { namespaces, identity, temp })
    }

    /// Completes the fence, in the process that becomes the program.
    pub fn inside(mut self, order: &Order) -> io::Result<RunningFence> {
        let mut missing = Vec::new();
        // When memory is short, this is what should go first.
        let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
        // A session of its own, or a signal to "my group" would reach the launcher.
        rustix::process::setsid()?;
        if self.namespaces.view.is_ok()
            && let Err(error) = view::enter(order, &self.identity)
        {
            match error {
                view::Error::Refused(why) => {
                    self.namespaces.view = Err(why);
                    self.temp = Some(private_folder(&self.identity)?);
                }
                view::Error::Wrong(error) => return Err(error),
            }
        }
        if self.temp.is_some() {
            for path in order.readable() {
                path.metadata()
                    .map_err(|error| wire::explain(error, format_args!("cannot show {}", path.display())))?;
            }
        }
        let limited = wanted(order, Protection::Resources).and_then(|()| limits::resources(order));
        let counted = self.namespaces.user.clone().and_then(|()| limits::processes(order, &self.identity));
        std::env::set_current_dir(order.folder()).map_err(|error| {
            wire::explain(error, format_args!("cannot start in {}", order.folder().display()))
        })?;
        let privileges = wanted(order, Protection::Privileges).and_then(|()| self.identity.take_on());
        // Not before this: the kernel forgets it when the rights of a process change.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
        let walled =
            wanted(order, Protection::Files).and_then(|()| landlock::restrict(order, self.temp.as_deref()));
        let filtered = wanted(order, Protection::SystemCalls).and_then(|()| {
            system_calls::filter(self.temp.is_some(), order.tool.is_some() && self.namespaces.network.is_ok())
        });

        let files = match (&self.namespaces.view, wanted(order, Protection::Files)) {
            (Ok(()), Ok(())) => Ok(()),
            // Landlock does not keep a file's mode and times from being changed; the filter of system calls does.
            (Err(_), Ok(())) => walled.and(filtered.clone()),
            (_, Err(left_out)) => Err(left_out),
        };
        let network = match (&self.namespaces.network, wanted(order, Protection::Network)) {
            // No sockets, no network.
            (Err(_), Ok(())) => filtered.clone(),
            (namespace, _) => namespace.clone(),
        };
        let results = [
            (Protection::View, self.namespaces.view),
            (Protection::Files, files),
            (Protection::Network, network),
            (Protection::Processes, self.namespaces.processes),
            (Protection::ProcessLimit, counted),
            (Protection::SystemCalls, filtered),
            (Protection::Privileges, privileges),
            (Protection::Resources, limited),
        ];
        missing.extend(results.into_iter().filter_map(|(what, result)| Some((what, result.err()?))));
        let environment = match &self.temp {
            Some(temp) => vec![("HOME", temp.clone()), ("TMPDIR", temp.clone())],
            None => Vec::new(),
        };
        Ok((Fenced { missing, temp: self.temp.map(Text::new) }, environment))
    }

    /// Ends the program and everything that it has started. What is left of it is still to be waited for.
    pub fn end(&self, pid: Pid) {
        match self.namespaces.processes {
            // The namespace ends with its first process.
            Ok(()) => end::process(pid),
            Err(_) => end::descendants(pid),
        }
    }

    /// Ends what the program has left behind, now that it has ended itself and been waited for.
    pub fn end_rest(&self, pid: Pid) {
        // The first process of a namespace ends last of all, so there nothing is left.
        if self.namespaces.processes.is_err() {
            end::descendants(pid);
        }
    }

    /// Removes what would be left behind.
    pub fn clean_up(&self, temp: Option<&Path>) {
        for temp in [self.temp.as_deref(), temp].into_iter().flatten() {
            let _ = std::fs::remove_dir_all(temp);
        }
    }
}

/// Makes a private temporary folder.
fn private_folder(identity: &Identity) -> io::Result<PathBuf> {
    let number = rustix::process::getpid().as_raw_nonzero();
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(0, |now| now.as_nanos());
    let folder = PathBuf::from(format!("/tmp/cuebook-{number}-{now:x}"));
    let explained = |error| wire::explain(error, format_args!("cannot make {}", folder.display()));
    // Fails if it exists already, so no other process can have prepared it.
    std::fs::DirBuilder::new().mode(0o700).create(&folder).map_err(explained)?;
    identity.own(&folder).map_err(explained)?;
    Ok(folder)
}

/// Makes the empty network of a tool useful: it can talk to itself, and to its proxy if it has one. Returns the port of that.
pub fn own_network(proxy: bool, control: &UnixStream) -> io::Result<Option<u16>> {
    let up = calls::loopback_up();
    if !proxy {
        // A tool that cannot talk to itself still runs.
        return Ok(None);
    }
    up.map_err(|error| wire::explain(error, "loopback interface"))?;
    let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    wire::send(control, &FromLauncher::Proxy)?;
    wire::send_descriptor(control, &listener)?;
    Ok(Some(port))
}
