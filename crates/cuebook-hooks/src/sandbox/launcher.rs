//! The launcher: puts up the fence, starts the program, waits, and cleans up.
//!
//! It runs in a process of its own with a single thread. It must end when the process that started it does, however that
//! ends, and it must hold no end of the pipes for replies and prints, or nobody would see that the program is gone.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use rustix::event::{PollFd, PollFlags};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::calls;
use super::fence::Fence;
use super::wire::{self, Failed, Fenced, FromLauncher, Order, Ready};

/// The descriptor that the program reads its requests from.
const REQUESTS: RawFd = 3;

/// The descriptor that the program writes its replies to.
const REPLIES: RawFd = 4;

/// The launcher from its beginning to its end.
pub fn run() -> i32 {
    // First of all, so that the numbers that the program expects are free.
    calls::usual_signals();
    if calls::close_from(REQUESTS).is_err() {
        return 2;
    }
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), REQUESTS).map(UnixStream::from)
    else {
        return 2;
    };
    match launch(&control) {
        Ok(status) => pass_on(status),
        Err(error) => {
            let _ = wire::send(&control, &FromLauncher::Failed(Failed::new(&error)));
            2
        }
    }
}

/// Starts the program and waits for its end.
fn launch(control: &UnixStream) -> io::Result<WaitStatus> {
    let order: Order = wire::receive(control)?;
    // A group of its own, and no terminal that somebody could type into.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let fence = Fence::outside(&order, control)?;
    let (status, theirs) = UnixStream::pair()?;
    let Some(pid) = calls::fork()? else {
        drop(status);
        become_program(&order, fence, control, &theirs);
    };
    drop(theirs);
    let mut temp = None;
    let ended = match start(control, status, pid, &mut temp) {
        Ok(()) => wait(control, pid, &fence),
        Err(error) => {
            fence.end(pid);
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            Err(error)
        }
    };
    fence.clean_up(temp.as_deref());
    ended
}

/// Reports the fence, lets the child become the program and says whether that worked.
fn start(control: &UnixStream, status: UnixStream, pid: Pid, temp: &mut Option<PathBuf>) -> io::Result<()> {
    // Neither pipe is ours to keep.
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("the process ended while the fence was put up"),
        _ => error,
    };
    let fenced: Result<Fenced, Failed> = wire::receive(&status).map_err(gone)?;
    let fenced = fenced.map_err(Failed::into_error)?;
    *temp = fenced.temp.clone().map(wire::Text::into_path);
    let pid = pid.as_raw_nonzero().get();
    wire::send(control, &FromLauncher::Ready(Ready { pid, fenced }))?;
    wire::send(&status, &())?;
    // Its end of this socket closes when it becomes the program.
    match wire::receive::<Failed>(&status) {
        Ok(failed) => return Err(failed.into_error()),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
        Err(error) => return Err(error),
    }
    wire::send(control, &FromLauncher::Started)?;
    // From here on nothing can be said through the requests' socket but requests.
    control.shutdown(std::net::Shutdown::Write)
}

/// Waits until the program ends, and ends it when the requests end.
fn wait(control: &UnixStream, pid: Pid, fence: &Fence) -> io::Result<WaitStatus> {
    #[cfg(target_os = "linux")]
    let program = rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok();
    #[cfg(not(target_os = "linux"))]
    let program: Option<std::os::fd::OwnedFd> = None;
    let mut ended = false;
    loop {
        if let Some((_, status)) = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG)? {
            // Its number may be another's by now.
            fence.end_rest(pid);
            return Ok(status);
        }
        if ended {
            fence.end(pid);
        }
        // No events are asked for, so this wakes only when the other end is closed.
        let mut watched = vec![PollFd::new(control, PollFlags::empty())];
        if ended {
            watched.clear();
        }
        watched.extend(program.as_ref().map(|program| PollFd::new(program, PollFlags::IN)));
        // Without a handle on the program its end has to be asked for.
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: 5_000_000 };
        let timeout = if program.is_some() && !ended { None } else { Some(&pause) };
        match rustix::event::poll(&mut watched, timeout) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        ended = ended || watched.first().is_some_and(|first| first.revents().contains(PollFlags::HUP));
    }
}

/// Ends the launcher as the program has ended, so that whoever waits for the one learns of the other.
fn pass_on(status: WaitStatus) -> i32 {
    if let Some(signal) = status.terminating_signal() {
        let ourselves = rustix::process::getpid();
        if let Some(signal) = Signal::from_named_raw(signal) {
            // Twice, because Rust's own handler of some signals only restores the default the first time.
            let _ = rustix::process::kill_process(ourselves, signal);
            let _ = rustix::process::kill_process(ourselves, signal);
        }
        return 128 + signal;
    }
    status.exit_status().unwrap_or(255)
}

/// The child: completes the fence from within, and becomes the program.
fn become_program(order: &Order, fence: Fence, control: &UnixStream, status: &UnixStream) -> ! {
    let error = match arrange(control).and_then(|()| fence.inside(order)) {
        Ok((fenced, environment)) => match wire::send(status, &Ok::<_, Failed>(&fenced)) {
            Ok(()) => execute(order, environment, status),
            Err(error) => error,
        },
        Err(error) => {
            let _ = wire::send(status, &Err::<Fenced, _>(Failed::new(&error)));
            std::process::exit(127);
        }
    };
    let _ = wire::send(status, &Failed::new(&error));
    std::process::exit(127);
}

/// Puts each descriptor where the program expects it.
fn arrange(control: &UnixStream) -> io::Result<()> {
    let replies = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), REPLIES)?;
    if control.as_raw_fd() != REQUESTS || replies.as_raw_fd() != REPLIES {
        return Err(io::Error::other("the descriptors of the program are taken"));
    }
    rustix::io::fcntl_setfd(control, FdFlags::empty())?;
    rustix::io::fcntl_setfd(&replies, FdFlags::empty())?;
    // It stays open for the program.
    let _ = replies.into_raw_fd();
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    Ok(())
}

/// Becomes the program. Comes back only with an error.
fn execute(order: &Order, extra: Vec<(&'static str, PathBuf)>, status: &UnixStream) -> io::Error {
    // Once the program runs it could write to the same sockets, so whatever has to be believed must have been said.
    if let Err(error) = wire::receive::<()>(status) {
        return error;
    }
    let mut command = Command::new(order.program());
    command.args(order.arguments()).env_clear().envs(order.environment()).envs(extra);
    let error = command.exec();
    wire::explain(error, format_args!("cannot start {}", order.program().display()))
}
