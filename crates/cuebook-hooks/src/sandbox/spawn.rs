//! Starts the launcher and hands out the pipes.

#[cfg(unix)]
pub(super) use unix::exceeded;
#[cfg(unix)]
pub use unix::{probe, spawn, spawn_tool};
#[cfg(not(unix))]
pub use windows::{probe, spawn, spawn_tool};

#[cfg(unix)]
mod unix {
    use std::io::{self, Write as _};
    use std::net::TcpListener;
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::net::UnixStream;
    use std::path::PathBuf;
    use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
    use std::time::{Duration, Instant};

    use crate::sandbox::process::Process;
    use crate::sandbox::wire::{self, FromLauncher, Mapped, Order, Ready};
    use crate::sandbox::{FencedTool, Launcher, MAGIC, Profile, Protection, Report, Sandboxed};

    /// How long a launcher may take to put up the fence.
    const PATIENCE: Duration = Duration::from_secs(10);

    /// Starts a program fenced in.
    ///
    /// An error says why it could not be started. That a protection is missing is no error: the report tells.
    pub fn spawn(launcher: &Launcher, profile: &Profile) -> io::Result<Sandboxed> {
        let Started { requests, replies, printed, report, process, .. } = start(launcher, profile)?;
        Ok(Sandboxed { requests, replies, printed, report, process })
    }

    /// Starts a tool fenced in: a program whose profile has a [`Tool`](crate::sandbox::Tool).
    ///
    /// An error of the kind `Unsupported` names a protection that the tool requires and this system refuses.
    pub fn spawn_tool(launcher: &Launcher, profile: &Profile) -> io::Result<FencedTool> {
        let Started { requests, replies, printed, process, listener, feed, .. } = start(launcher, profile)?;
        Ok(FencedTool {
            stdin: feed.map(ChildStdin::from),
            stdout: Some(replies),
            stderr: Some(printed),
            listener: listener.map(TcpListener::from),
            process,
            control: requests,
        })
    }

    /// The limit that a launcher says its tool exceeded.
    pub fn exceeded(control: &ChildStdin) -> Option<String> {
        // The launcher has ended, so this does not wait.
        let control = UnixStream::from(control.as_fd().try_clone_to_owned().ok()?);
        control.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
        match wire::receive(&control).ok()? {
            FromLauncher::Exceeded(what) => Some(what),
            _ => None,
        }
    }

    /// What a launcher has started.
    struct Started {
        requests: ChildStdin,
        replies: ChildStdout,
        printed: ChildStderr,
        report: Report,
        process: Process,
        listener: Option<OwnedFd>,
        feed: Option<OwnedFd>,
    }

    fn start(launcher: &Launcher, profile: &Profile) -> io::Result<Started> {
        let (control, theirs) = UnixStream::pair()?;
        let mut command = Command::new(launcher.program());
        command.args(launcher.arguments()).arg(MAGIC).env_clear().current_dir("/");
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            wire::explain(error, format_args!("cannot start {}", launcher.program().display()))
        })?;
        // The command keeps its copy of the launcher's end, which would keep us from seeing that the launcher is gone.
        drop(command);
        let mut child = StartingProgram { launcher: Some(child), listener: None, feed: None };
        let ready = child.converse(&control, profile)?;
        let (listener, feed) = (child.listener.take(), child.feed.take());
        let Some(mut child) = child.launcher.take() else { return Err(io::ErrorKind::Other.into()) };
        let (Some(replies), Some(printed)) = (child.stdout.take(), child.stderr.take()) else {
            return Err(io::ErrorKind::Other.into());
        };
        let report = Report { missing: ready.fenced.missing };
        let alone = report.why_missing(Protection::Processes).is_none();
        let temp = ready.fenced.temp.map(wire::Text::into_path);
        let process = Process::new(child, ready.pid, alone, temp);
        let requests = ChildStdin::from(OwnedFd::from(control));
        Ok(Started { requests, replies, printed, report, process, listener, feed })
    }

    /// A launcher that has not said yet that the program runs. It is ended if it never does.
    struct StartingProgram {
        launcher: Option<Child>,
        /// The socket that the tool's proxy listens on.
        listener: Option<OwnedFd>,
        /// The pipe to the tool's standard input.
        feed: Option<OwnedFd>,
    }

    impl StartingProgram {
        fn converse(&mut self, control: &UnixStream, profile: &Profile) -> io::Result<Ready> {
            let deadline = Instant::now() + PATIENCE;
            control.set_write_timeout(Some(PATIENCE))?;
            let mut ready = None;
            let mut sent = wire::send(control, &Order::new(profile));
            if let (Ok(()), Some(tool)) = (&sent, &profile.tool) {
                sent = { control }.write_all(&tool.input);
            }
            loop {
                let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                control.set_read_timeout(Some(left))?;
                match wire::receive(control).map_err(|error| self.silence(error))? {
                    FromLauncher::MapIds => wire::send(control, &Mapped(self.map_ids()))?,
                    FromLauncher::Proxy => self.listener = Some(wire::receive_descriptor(control)?),
                    FromLauncher::Input => self.feed = Some(wire::receive_descriptor(control)?),
                    FromLauncher::Exceeded(what) => return Err(io::Error::other(what)),
                    FromLauncher::Ready(said) => ready = Some(said),
                    FromLauncher::Failed(failed) => return Err(failed.into_error()),
                    FromLauncher::Started => break,
                }
            }
            sent?;
            control.set_read_timeout(None)?;
            control.set_write_timeout(None)?;
            ready.ok_or_else(|| {
                io::Error::new(io::ErrorKind::InvalidData, "the launcher did not report the sandbox")
            })
        }

        /// What it means that no message came.
        fn silence(&mut self, error: io::Error) -> io::Error {
            match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => io::Error::new(
                    io::ErrorKind::TimedOut,
                    format!("the launcher did not start the program within {} seconds", PATIENCE.as_secs()),
                ),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the launcher ended before the program started: its `main` must start with `cuebook_hooks::sandbox::launch_if_asked()`",
                ),
                _ => error,
            }
        }

        /// Gives a launcher that is root in a user namespace of its own the numbers that we have ourselves.
        fn map_ids(&self) -> Result<(), String> {
            let Some(child) = &self.launcher else { return Err("the launcher is gone".into()) };
            for map in ["uid_map", "gid_map"] {
                let ours = std::fs::read_to_string(format!("/proc/self/{map}"));
                let ours = ours.map_err(|error| format!("{map}: {}", wire::plain(&error)))?;
                std::fs::write(format!("/proc/{}/{map}", child.id()), identity(&ours))
                    .map_err(|error| format!("{map}: {}", wire::plain(&error)))?;
            }
            Ok(())
        }
    }

    impl Drop for StartingProgram {
        fn drop(&mut self) {
            if let Some(child) = &mut self.launcher {
                // The program, if there is one, dies with its parent.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }

    /// A map of numbers in which each stands for itself, of those that `ours` has.
    fn identity(ours: &str) -> String {
        let lines = ours.lines().filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (first, _, count) = (fields.next()?, fields.next()?, fields.next()?);
            Some(format!("{first} {first} {count}\n"))
        });
        lines.collect()
    }

    /// What fence this system offers. Runs nothing but the launcher and a program that does nothing.
    pub fn probe(launcher: &Launcher) -> io::Result<Report> {
        let program =
            ["/usr/bin/true", "/bin/true"].map(PathBuf::from).into_iter().find(|path| path.exists());
        let profile = Profile {
            program: program
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no program `true`"))?,
            arguments: Vec::new(),
            environment: Vec::new(),
            readable: Vec::new(),
            folder: "/".into(),
            memory: 256 << 20,
            total_memory: 256 << 20,
            processes: 8,
            open_files: 64,
            temp_size: 1 << 20,
            cpu: Duration::from_secs(10),
            without: Vec::new(),
            tool: None,
        };
        Ok(spawn(launcher, &profile)?.report)
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn numbers_stand_for_themselves_in_a_namespace_below_ours() {
            assert_eq!(identity("         0          0 4294967295\n"), "0 0 4294967295\n");
            assert_eq!(identity("0 1000 1\n1 100000 65536\n"), "0 0 1\n1 1 65536\n");
        }
    }
}

#[cfg(not(unix))]
mod windows {
    use std::io;

    use crate::sandbox::{FencedTool, Launcher, Profile, Report, Sandboxed};

    fn refuse<T>() -> io::Result<T> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the sandbox does not support this system yet"))
    }

    /// Refuses: there is no fence for this system yet.
    pub fn spawn(_: &Launcher, _: &Profile) -> io::Result<Sandboxed> {
        refuse()
    }

    /// Refuses: there is no fence for this system yet.
    pub fn spawn_tool(_: &Launcher, _: &Profile) -> io::Result<FencedTool> {
        refuse()
    }

    /// Refuses: there is no fence for this system yet.
    pub fn probe(_: &Launcher) -> io::Result<Report> {
        refuse()
    }
}
