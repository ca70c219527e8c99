//! A process: started in a group of its own, fed, read while it runs, stopped when it must be.
//!
//! One `poll` waits for everything: that the process takes more of its input, says something on either stream, or ends. So
//! it does not matter how much it says, whether it reads what it is told, or in which order. A process that ends while
//! somebody else keeps its streams open is not waited for any longer than it takes to read what is there.
//!
//! To stop means the whole group: first it is asked to end, and after a grace it is ended.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::watch::Watch;

/// What is to be started.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    /// What differs from the environment of this process.
    pub(crate) env: Vec<(String, String)>,
    /// Variables of this process that it does not get.
    pub(crate) without: Vec<String>,
    pub(crate) cwd: PathBuf,
    /// What it gets on its standard input.
    pub(crate) input: Vec<u8>,
    pub(crate) timeout: Duration,
    /// The time between asking it to end and ending it.
    pub(crate) grace: Duration,
    /// The bytes of each stream that are kept.
    pub(crate) most: usize,
}

/// What a stream said.
#[derive(Debug, Default)]
pub(crate) struct Captured {
    pub(crate) bytes: Vec<u8>,
    /// How many bytes were read and not kept.
    pub(crate) dropped: u64,
}

/// How it ended.
#[derive(Debug)]
pub(crate) enum End {
    /// With this code.
    Exited(i32),
    /// By this signal, from outside.
    Signalled(i32),
    TimedOut,
    Cancelled,
    /// It never began.
    NotStarted(io::Error),
    /// The system failed us.
    Lost(io::Error),
}

/// A process that has ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) end: End,
    pub(crate) stdout: Captured,
    pub(crate) stderr: Captured,
}

impl Finished {
    fn without_output(end: End) -> Finished {
        Finished { end, stdout: Captured::default(), stderr: Captured::default() }
    }
}

/// Runs a process to its end.
pub(crate) fn run(job: &Job, watch: &dyn Watch) -> Finished {
    #[cfg(unix)]
    {
        unix::run(job, watch)
    }
    #[cfg(not(unix))]
    {
        let _ = (job, watch);
        let error = io::Error::new(io::ErrorKind::Unsupported, "tools run on Unix systems only");
        Finished::without_output(End::NotStarted(error))
    }
}

#[cfg(unix)]
mod unix {
    use std::io::{self, Read, Write};
    use std::os::fd::{AsFd, OwnedFd};
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

    use super::{Captured, End, Finished, Job};
    use crate::watch::Watch;

    /// How often somebody is asked whether the call is to stop.
    const TICK: Duration = Duration::from_millis(25);
    /// How often it is looked whether a process has ended, where the system cannot tell.
    const SHORT_TICK: Duration = Duration::from_millis(2);
    /// How long streams are read that somebody else keeps open after the process has ended.
    const DRAIN: Duration = Duration::from_millis(100);
    /// How often whoever waits is told that it still runs.
    const PROGRESS: Duration = Duration::from_secs(1);

    pub(super) fn run(job: &Job, watch: &dyn Watch) -> Finished {
        let mut command = Command::new(&job.program);
        command
            .args(&job.args)
            .envs(job.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&job.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        for name in &job.without {
            command.env_remove(name);
        }
        let mut child = match spawn(&mut command) {
            Ok(child) => child,
            Err(error) => return Finished::without_output(End::NotStarted(error)),
        };
        match Running::new(&mut child, job).and_then(|running| running.finish(job, watch)) {
            Ok(finished) => finished,
            Err(error) => {
                // Nothing that was started may be left behind.
                let _ = kill_group(&child, Signal::KILL);
                let _ = child.wait();
                Finished::without_output(End::Lost(error))
            }
        }
    }

    /// A file that was just written cannot be run while another thread, which is about to start something else, still has it
    /// open from the moment of its own fork. That passes.
    fn spawn(command: &mut Command) -> io::Result<Child> {
        for _ in 0..50 {
            match command.spawn() {
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                result => return result,
            }
        }
        command.spawn()
    }

    fn pid_of(child: &Child) -> Option<Pid> {
        Pid::from_raw(i32::try_from(child.id()).ok()?)
    }

    fn kill_group(child: &Child, signal: Signal) -> rustix::io::Result<()> {
        // The process has not been waited for, so its number is still its own.
        pid_of(child).map_or(Ok(()), |pid| kill_process_group(pid, signal))
    }

    struct Running<'c> {
        child: &'c mut Child,
        pid: Option<Pid>,
        /// Readable when the process has ended, where the system has such a thing.
        pidfd: Option<OwnedFd>,
        stdin: Option<std::process::ChildStdin>,
        stdout: Option<std::process::ChildStdout>,
        stderr: Option<std::process::ChildStderr>,
        written: usize,
        said: [Captured; 2],
    }

    impl<'c> Running<'c> {
        fn new(child: &'c mut Child, job: &Job) -> io::Result<Running<'c>> {
            let pid = pid_of(child);
            #[cfg(target_os = "linux")]
            let pidfd = pid
                .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
            #[cfg(not(target_os = "linux"))]
            let pidfd = None;
            let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
            for stream in [
                stdin.as_ref().map(AsFd::as_fd),
                stdout.as_ref().map(AsFd::as_fd),
                stderr.as_ref().map(AsFd::as_fd),
            ]
            .into_iter()
            .flatten()
            {
                let flags = rustix::fs::fcntl_getfl(stream)?;
                rustix::fs::fcntl_setfl(stream, flags | rustix::fs::OFlags::NONBLOCK)?;
            }
            let stdin = stdin.filter(|_| !job.input.is_empty());
            Ok(Running { child, pid, pidfd, stdin, stdout, stderr, written: 0, said: Default::default() })
        }

        fn finish(mut self, job: &Job, watch: &dyn Watch) -> io::Result<Finished> {
            let started = Instant::now();
            let deadline = started + job.timeout;
            let mut told = started;
            let mut stopped: Option<(End, Instant)> = None;
            let mut ended: Option<Instant> = None;
            let mut buffer = vec![0; 64 << 10];
            loop {
                let now = Instant::now();
                if ended.is_none() && self.has_ended()? {
                    ended = Some(now + DRAIN);
                }
                match (&stopped, ended) {
                    (_, Some(until)) if now >= until || self.is_silent() => break,
                    (None, None) if now >= deadline => {
                        stopped = Some((End::TimedOut, now + job.grace));
                        let _ = kill_group(self.child, Signal::TERM);
                    }
                    (None, None) if watch.cancelled() => {
                        stopped = Some((End::Cancelled, now + job.grace));
                        let _ = kill_group(self.child, Signal::TERM);
                    }
                    (Some((_, kill)), None) if now >= *kill || watch.impatient() => {
                        let _ = kill_group(self.child, Signal::KILL);
                    }
                    _ => {}
                }
                if ended.is_none() && now.duration_since(told) >= PROGRESS {
                    told = now;
                    let heard: u64 =
                        self.said.iter().map(|said| said.bytes.len() as u64 + said.dropped).sum();
                    let seconds = now.duration_since(started).as_secs();
                    watch.progress(&format!("running for {seconds} s, {heard} bytes of output"));
                }
                let next = match (ended, &stopped) {
                    (Some(until), _) => until,
                    (None, Some((_, kill))) => (*kill).max(now + SHORT_TICK),
                    (None, None) => deadline,
                };
                let tick = if self.pidfd.is_some() { TICK } else { SHORT_TICK };
                poll_all(&self, next.saturating_duration_since(now).min(tick))?;
                self.feed(&job.input)?;
                self.listen(&mut buffer, job.most)?;
            }
            if stopped.is_some() {
                // Whoever of the group is still there has had its time.
                let _ = kill_group(self.child, Signal::KILL);
            }
            let status = self.child.wait()?;
            let end = match (stopped, status.code(), status.signal()) {
                (Some((end, _)), ..) => end,
                (None, Some(code), _) => End::Exited(code),
                (None, None, signal) => End::Signalled(signal.unwrap_or_default()),
            };
            let [stdout, stderr] = self.said;
            Ok(Finished { end, stdout, stderr })
        }

        /// Whether the process has ended. It is not waited for, so that its number, which is that of its group, stays its own.
        fn has_ended(&self) -> io::Result<bool> {
            let Some(pid) = self.pid else { return Ok(true) };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::Pid(pid), options) {
                Ok(status) => Ok(status.is_some()),
                Err(rustix::io::Errno::INTR) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }

        fn is_silent(&self) -> bool {
            self.stdout.is_none() && self.stderr.is_none()
        }

        fn feed(&mut self, input: &[u8]) -> io::Result<()> {
            let Some(stdin) = &mut self.stdin else { return Ok(()) };
            match stdin.write(&input[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    if self.written >= input.len() {
                        self.stdin = None;
                    }
                }
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                // It does not want to hear more, which is its own business.
                Err(_) => self.stdin = None,
            }
            Ok(())
        }

        fn listen(&mut self, buffer: &mut [u8], most: usize) -> io::Result<()> {
            let [out, err] = &mut self.said;
            if self.stdout.as_mut().is_some_and(|stream| read(stream, buffer, out, most)) {
                self.stdout = None;
            }
            if self.stderr.as_mut().is_some_and(|stream| read(stream, buffer, err, most)) {
                self.stderr = None;
            }
            Ok(())
        }
    }

    fn poll_all(running: &Running<'_>, time: Duration) -> io::Result<()> {
        let mut fds: Vec<PollFd<'_>> = Vec::with_capacity(4);
        if let Some(stdin) = &running.stdin {
            fds.push(PollFd::new(stdin, PollFlags::OUT));
        }
        if let Some(stdout) = &running.stdout {
            fds.push(PollFd::new(stdout, PollFlags::IN));
        }
        if let Some(stderr) = &running.stderr {
            fds.push(PollFd::new(stderr, PollFlags::IN));
        }
        if let Some(pidfd) = &running.pidfd {
            fds.push(PollFd::new(pidfd, PollFlags::IN));
        }
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) as _ };
        match poll(&mut fds, Some(&time)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is there. Says whether the stream has ended.
    fn read(stream: &mut impl Read, buffer: &mut [u8], said: &mut Captured, most: usize) -> bool {
        // A bounded number of turns, so that a stream that never stops does not keep us from looking at the clock.
        for _ in 0..64 {
            match stream.read(buffer) {
                Ok(0) => return true,
                Ok(count) => {
                    let kept = count.min(most.saturating_sub(said.bytes.len()));
                    said.bytes.extend_from_slice(&buffer[..kept]);
                    said.dropped += (count - kept) as u64;
                    if count < buffer.len() {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
        false
    }
}
