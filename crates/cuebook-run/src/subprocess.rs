//! A process: started in a group of its own, fed, read while it runs, stopped when it must be.
//!
//! One `poll` waits for everything: that the process takes more of its input, says something on either stream, or ends. So
//! it does not matter how much it says, whether it reads its input, or in which order. A process that ends while
//! another process keeps its streams open is not waited for any longer than it takes to read the existing output.
//!
//! To stop means the whole group: first it is asked to end, and after a grace it is ended.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::fence::{Fencing, Start};
use crate::watch::Watch;

/// What is to be started.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    /// The program's name, for messages.
    pub(crate) program: String,
    /// The file that is started; none if there is no such program.
    pub(crate) file: Option<PathBuf>,
    pub(crate) args: Vec<String>,
    /// Its whole environment.
    pub(crate) env: Vec<(String, String)>,
    /// The fence around it.
    pub(crate) fence: Option<Fencing>,
    pub(crate) cwd: PathBuf,
    /// What it gets on its standard input.
    pub(crate) input: Vec<u8>,
    /// Whether its standard input stays open until a [`Conversation`] ends.
    pub(crate) is_conversation: bool,
    pub(crate) timeout: Duration,
    /// The time between asking it to end and ending it.
    pub(crate) grace: Duration,
    /// The bytes of each stream that are kept.
    pub(crate) most: usize,
}

impl Job {
    /// What the fence has to know of it.
    fn start(&self) -> Start<'_> {
        Start {
            file: self.file.as_deref(),
            arguments: &self.args,
            environment: &self.env,
            folder: &self.cwd,
            input: &self.input,
            is_conversation: self.is_conversation,
        }
    }
}

/// What is said to a process depends on what it answers.
pub(crate) trait Conversation {
    /// Takes what the process wrote to its standard output.
    fn hear(&mut self, output: &[u8]);
    /// What to write to its standard input next.
    fn reply(&mut self) -> Vec<u8>;
    /// Whether everything has been said.
    fn is_over(&self) -> bool;
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
    /// The fence ended it: it exceeded this limit.
    Exceeded(String),
    /// The conversation was over.
    Over,
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
    run_with(job, None, watch)
}

/// Talks with a process until the conversation is over, and ends it.
pub(crate) fn converse(job: &Job, conversation: &mut dyn Conversation, watch: &dyn Watch) -> Finished {
    run_with(job, Some(conversation), watch)
}

fn run_with(job: &Job, conversation: Option<&mut dyn Conversation>, watch: &dyn Watch) -> Finished {
    #[cfg(unix)]
    {
        unix::run(job, conversation, watch)
    }
    #[cfg(not(unix))]
    {
        let _ = (job, conversation, watch);
        let error = io::Error::new(io::ErrorKind::Unsupported, "tools run only on Unix systems");
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

    use cuebook_hooks::sandbox::{Ending, Process, spawn_tool};

    use super::{Captured, Conversation, End, Finished, Job};
    use crate::fence::{Fencing, Proxy};
    use crate::watch::Watch;

    /// How often the call checks whether to stop.
    const TICK: Duration = Duration::from_millis(25);
    /// How often it is looked whether a process has ended, where the system cannot tell.
    const SHORT_TICK: Duration = Duration::from_millis(2);
    /// How long streams are read that another process keeps open after the process has ended.
    const DRAIN: Duration = Duration::from_millis(100);
    /// How often the waiting caller hears that it still runs.
    const PROGRESS: Duration = Duration::from_secs(1);

    type Partner<'t> = Option<&'t mut dyn Conversation>;

    pub(super) fn run(job: &Job, partner: Partner<'_>, watch: &dyn Watch) -> Finished {
        match &job.fence {
            Some(fence) => run_fenced(job, fence, partner, watch),
            None => run_freely(job, partner, watch),
        }
    }

    /// Runs a process in the sandbox. What it leaves running ends with it.
    fn run_fenced(job: &Job, fence: &Fencing, partner: Partner<'_>, watch: &dyn Watch) -> Finished {
        let not_started = |error| Finished::without_output(End::NotStarted(error));
        let guards = match fence.guards() {
            Ok(guards) => guards,
            Err(error) => return not_started(error),
        };
        let started =
            fence.profile(&job.start(), &guards).and_then(|profile| spawn_tool(fence.launcher(), &profile));
        let mut tool = match started {
            Ok(tool) => tool,
            Err(error) => return not_started(error),
        };
        let proxy = tool.listener.take().map(|listener| Proxy::start(listener, fence.hosts())).transpose();
        let proxy = match proxy {
            Ok(proxy) => proxy,
            Err(error) => return Finished::without_output(End::Lost(error)),
        };
        let streams = (tool.stdin.take(), tool.stdout.take(), tool.stderr.take());
        let finished = Running::new(Handle::Fenced(&mut tool.process), streams)
            .and_then(|running| running.finish(job, partner, watch));
        drop(proxy);
        let mut finished = match finished {
            Ok(finished) => finished,
            Err(error) => {
                tool.process.kill();
                Finished::without_output(End::Lost(error))
            }
        };
        if matches!(finished.end, End::Signalled(_))
            && let Some(limit) = tool.exceeded()
        {
            finished.end = End::Exceeded(limit);
        }
        finished
    }

    fn run_freely(job: &Job, partner: Partner<'_>, watch: &dyn Watch) -> Finished {
        let Some(file) = &job.file else { return Finished::without_output(End::NotStarted(missing())) };
        let mut command = Command::new(file);
        command
            .args(&job.args)
            .env_clear()
            .envs(job.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&job.cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let mut child = match spawn(&mut command) {
            Ok(child) => child,
            Err(error) => return Finished::without_output(End::NotStarted(error)),
        };
        let stdin = child.stdin.take().filter(|_| job.is_conversation || !job.input.is_empty());
        let streams = (stdin, child.stdout.take(), child.stderr.take());
        let running = Running::new(Handle::Free(&mut child), streams);
        match running.and_then(|running| running.finish(job, partner, watch)) {
            Ok(finished) => finished,
            Err(error) => {
                // Nothing that was started may be left behind.
                let _ = kill_group(&child, Signal::KILL);
                let _ = child.wait();
                Finished::without_output(End::Lost(error))
            }
        }
    }

    /// The error of the system where a program does not exist.
    fn missing() -> io::Error {
        io::Error::new(io::ErrorKind::NotFound, "No such file or directory (os error 2)")
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

    /// What runs: a process of its own group, or one in the sandbox.
    enum Handle<'c> {
        Free(&'c mut Child),
        Fenced(&'c mut Process),
    }

    impl Handle<'_> {
        /// The number of the process that ends with it.
        fn id(&self) -> Option<Pid> {
            match self {
                Handle::Free(child) => pid_of(child),
                Handle::Fenced(process) => Pid::from_raw(i32::try_from(process.launcher_id()).ok()?),
            }
        }

        /// Asks everything in its group to end.
        fn ask_to_end(&self) {
            match self {
                Handle::Free(child) => drop(kill_group(child, Signal::TERM)),
                Handle::Fenced(process) => process.terminate(),
            }
        }

        /// Ends it.
        fn end(&mut self) {
            match self {
                Handle::Free(child) => drop(kill_group(child, Signal::KILL)),
                Handle::Fenced(process) => drop(process.kill()),
            }
        }

        /// Whether it has ended. A process of its own is not waited for, so that its number, which is that of its group, stays
        /// its own.
        fn has_ended(&mut self) -> io::Result<bool> {
            let child = match self {
                Handle::Free(child) => child,
                Handle::Fenced(process) => return Ok(process.wait(Duration::ZERO).is_some()),
            };
            let Some(pid) = pid_of(child) else { return Ok(true) };
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            match waitid(WaitId::Pid(pid), options) {
                Ok(status) => Ok(status.is_some()),
                Err(rustix::io::Errno::INTR) => Ok(false),
                Err(error) => Err(error.into()),
            }
        }

        /// How it has ended.
        fn wait(&mut self) -> io::Result<End> {
            match self {
                Handle::Free(child) => {
                    let status = child.wait()?;
                    Ok(match status.code() {
                        Some(code) => End::Exited(code),
                        None => End::Signalled(status.signal().unwrap_or_default()),
                    })
                }
                Handle::Fenced(process) => match process.kill() {
                    Ending::Exited(code) => Ok(End::Exited(code)),
                    Ending::Signal(signal) => Ok(End::Signalled(signal)),
                },
            }
        }
    }

    type Streams = (
        Option<std::process::ChildStdin>,
        Option<std::process::ChildStdout>,
        Option<std::process::ChildStderr>,
    );

    struct Running<'c> {
        handle: Handle<'c>,
        /// Readable when the process has ended, where the system has such a thing.
        pidfd: Option<OwnedFd>,
        stdin: Option<std::process::ChildStdin>,
        stdout: Option<std::process::ChildStdout>,
        stderr: Option<std::process::ChildStderr>,
        /// What is still to be written to its standard input, from here on.
        input: Vec<u8>,
        written: usize,
        said: [Captured; 2],
    }

    impl<'c> Running<'c> {
        fn new(handle: Handle<'c>, (stdin, stdout, stderr): Streams) -> io::Result<Running<'c>> {
            #[cfg(target_os = "linux")]
            let pidfd = handle
                .id()
                .and_then(|pid| rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok());
            #[cfg(not(target_os = "linux"))]
            let pidfd = None;
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
            Ok(Running {
                handle,
                pidfd,
                stdin,
                stdout,
                stderr,
                input: Vec::new(),
                written: 0,
                said: Default::default(),
            })
        }

        fn finish(mut self, job: &Job, mut partner: Partner<'_>, watch: &dyn Watch) -> io::Result<Finished> {
            self.input.clone_from(&job.input);
            if let Some(partner) = &mut partner {
                self.pass_on(&mut **partner);
            }
            let started = Instant::now();
            let deadline = started + job.timeout;
            let mut reported = started;
            let mut stopped: Option<(End, Instant)> = None;
            let mut ended: Option<Instant> = None;
            let mut buffer = vec![0; 64 << 10];
            loop {
                let now = Instant::now();
                if ended.is_none() && self.handle.has_ended()? {
                    ended = Some(now + DRAIN);
                }
                match (&stopped, ended) {
                    (_, Some(until)) if now >= until || self.is_silent() => break,
                    (None, None) if partner.as_ref().is_some_and(|partner| partner.is_over()) => {
                        // Most servers end when their input is closed.
                        stopped = Some((End::Over, now + job.grace));
                        self.stdin = None;
                    }
                    (None, None) if now >= deadline => {
                        stopped = Some((End::TimedOut, now + job.grace));
                        self.handle.ask_to_end();
                    }
                    (None, None) if watch.cancelled() => {
                        stopped = Some((End::Cancelled, now + job.grace));
                        self.handle.ask_to_end();
                    }
                    (Some((_, kill)), None) if now >= *kill || watch.impatient() => {
                        self.handle.end();
                    }
                    _ => {}
                }
                if ended.is_none() && now.duration_since(reported) >= PROGRESS {
                    reported = now;
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
                self.feed(partner.is_some())?;
                self.listen(&mut buffer, job.most)?;
                if let Some(partner) = &mut partner {
                    self.pass_on(&mut **partner);
                }
            }
            if stopped.is_some() {
                // The rest of the group has had its time.
                self.handle.end();
            }
            let ended = self.handle.wait()?;
            let end = stopped.map_or(ended, |(end, _)| end);
            let [stdout, stderr] = self.said;
            Ok(Finished { end, stdout, stderr })
        }

        fn is_silent(&self) -> bool {
            self.stdout.is_none() && self.stderr.is_none()
        }

        /// Hands what the process wrote to the conversation, and takes what it says next.
        fn pass_on(&mut self, partner: &mut dyn Conversation) {
            let heard = std::mem::take(&mut self.said[0].bytes);
            if !heard.is_empty() {
                partner.hear(&heard);
            }
            self.input.extend(partner.reply());
        }

        /// Writes to the standard input, and closes it at the end unless it stays open.
        fn feed(&mut self, stays_open: bool) -> io::Result<()> {
            let Some(stdin) = &mut self.stdin else { return Ok(()) };
            if self.written >= self.input.len() && stays_open {
                return Ok(());
            }
            match stdin.write(&self.input[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    if self.written >= self.input.len() {
                        self.input.clear();
                        self.written = 0;
                        if !stays_open {
                            self.stdin = None;
                        }
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
        if let Some(stdin) = running.stdin.as_ref().filter(|_| running.written < running.input.len()) {
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
