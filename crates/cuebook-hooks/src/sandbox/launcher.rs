//! The launcher: puts up the fence, starts the program, waits, and cleans up.
//!
//! It runs in a process of its own with a single thread. It must end when the process that started it does, however that
//! ends, and it must hold no end of the pipes for replies and prints, or the end of the program would stay hidden.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags};
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::calls;
use super::fence::{self, Fence};
use super::measure::Measure;
use super::process::Ending;
use super::wire::{self, Failed, Fenced, FromLauncher, Order, Ready, ToolOrder};

/// The descriptor that the program reads its requests from.
const REQUESTS: RawFd = 3;

/// The descriptor that the program writes its replies to.
const REPLIES: RawFd = 4;

/// How often it is looked whether a program has ended, where the system cannot tell.
const SHORT_PAUSE: Duration = Duration::from_millis(5);

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
        Ok(ending) => pass_on(ending),
        Err(error) => {
            let _ = wire::send(&control, &FromLauncher::Failed(Failed::new(&error)));
            2
        }
    }
}

/// Starts the program and waits for its end.
fn launch(control: &UnixStream) -> io::Result<Ending> {
    let order: Order = wire::receive(control)?;
    // Its own group, and no terminal that a user could type into.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let input = order.tool.as_ref().map(|tool| standard_input(control, tool)).transpose()?;
    // Opened while the system's own can still be seen.
    let measure = Measure::new(&order);
    let fence = Fence::outside(&order, control)?;
    let proxy = match &order.tool {
        Some(tool) => fence::own_network(tool.proxy, control)?,
        None => None,
    };
    let (status, theirs) = UnixStream::pair()?;
    let (ending, tell_ending) = UnixStream::pair()?;
    let Some(pid) = calls::fork()? else {
        drop((status, ending));
        become_program(&order, ToolHandles { input, proxy, tell_ending }, fence, control, &theirs);
    };
    drop((theirs, tell_ending, input));
    let mut temp = None;
    let ended = match start(control, &order, status, pid, &mut temp) {
        Ok(()) => {
            wait(control, &order, pid, &fence, measure).map(|status| real_ending(&order, ending, status))
        }
        Err(error) => {
            fence.end(pid);
            let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
            Err(error)
        }
    };
    fence.clean_up(temp.as_deref());
    ended
}

/// What a tool gets from its launcher.
struct ToolHandles {
    /// Its standard input.
    input: Option<File>,
    /// The port of its proxy.
    proxy: Option<u16>,
    /// Where its first process says how the tool ended.
    tell_ending: UnixStream,
}

/// The standard input of a tool: a pipe that it is fed through, or what was sent.
fn standard_input(control: &UnixStream, tool: &ToolOrder) -> io::Result<File> {
    if !tool.is_fed {
        return receive_input(control, tool.input);
    }
    let (input, feed) = io::pipe()?;
    wire::send(control, &FromLauncher::Input)?;
    wire::send_descriptor(control, &feed)?;
    Ok(File::from(OwnedFd::from(input)))
}

/// Takes the standard input of a tool, into a file in memory: the tool may read it when it likes, or not at all.
fn receive_input(control: &UnixStream, length: u64) -> io::Result<File> {
    let mut file = memory_file()?;
    let copied = io::copy(&mut control.take(length), &mut file)?;
    if copied < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.rewind()?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn memory_file() -> io::Result<File> {
    Ok(rustix::fs::memfd_create("input", rustix::fs::MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn memory_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

/// How a tool ended: its first process, which is waited for here, tells.
fn real_ending(order: &Order, mut ending: UnixStream, status: WaitStatus) -> Ending {
    let mut reported = Vec::new();
    // Nothing arrives if the first process was killed: the other end of this is closed by now.
    if order.tool.is_some()
        && ending.read_to_end(&mut reported).is_ok()
        && let Ok(ending) = serde_json::from_slice(&reported)
    {
        return ending;
    }
    ending_of(status)
}

fn ending_of(status: WaitStatus) -> Ending {
    match status.terminating_signal() {
        Some(signal) => Ending::Signal(signal),
        None => Ending::Exited(status.exit_status().unwrap_or(255)),
    }
}

/// An error that names the first protection that is required and missing.
fn check_required(order: &Order, fenced: &Fenced) -> io::Result<()> {
    let required = |protection| order.tool.as_ref().is_some_and(|tool| tool.required.contains(protection));
    match fenced.missing.iter().find(|(protection, _)| required(protection)) {
        Some((protection, why)) => {
            let message = format!("{}: {why}", protection.as_str());
            Err(io::Error::new(io::ErrorKind::Unsupported, message))
        }
        None => Ok(()),
    }
}

/// Reports the fence, lets the child become the program and says whether that worked.
fn start(
    control: &UnixStream,
    order: &Order,
    status: UnixStream,
    pid: Pid,
    temp: &mut Option<PathBuf>,
) -> io::Result<()> {
    // Neither pipe is ours to keep.
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    let gone = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::other("the process ended during the sandbox setup"),
        _ => error,
    };
    let fenced: Result<Fenced, Failed> = wire::receive(&status).map_err(gone)?;
    let fenced = fenced.map_err(Failed::into_error)?;
    *temp = fenced.temp.clone().map(wire::Text::into_path);
    check_required(order, &fenced)?;
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
    // A tool does not have this socket.
    if order.tool.is_some() {
        return Ok(());
    }
    // From here on nothing can be said through the requests' socket but requests.
    control.shutdown(std::net::Shutdown::Write)
}

/// Waits until the program ends, and ends it when the requests end.
fn wait(
    control: &UnixStream,
    order: &Order,
    pid: Pid,
    fence: &Fence,
    mut measure: Measure,
) -> io::Result<WaitStatus> {
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
        if !ended && let Some(exceeded) = measure.exceeded(pid) {
            if order.tool.is_some() {
                let _ = wire::send(control, &FromLauncher::Exceeded(exceeded));
            }
            ended = true;
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
        let pause = if program.is_some() && !ended { measure.pause() } else { SHORT_PAUSE };
        let pause = rustix::event::Timespec { tv_sec: 0, tv_nsec: pause.subsec_nanos().into() };
        match rustix::event::poll(&mut watched, Some(&pause)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        ended = ended || watched.first().is_some_and(|first| first.revents().contains(PollFlags::HUP));
    }
}

/// Ends the launcher as the program has ended, so that a process that waits for the one learns of the other.
fn pass_on(ending: Ending) -> i32 {
    let signal = match ending {
        Ending::Exited(code) => return code,
        Ending::Signal(signal) => signal,
    };
    let ourselves = rustix::process::getpid();
    if let Some(signal) = Signal::from_named_raw(signal) {
        // Twice, because Rust's own handler of some signals only restores the default the first time.
        let _ = rustix::process::kill_process(ourselves, signal);
        let _ = rustix::process::kill_process(ourselves, signal);
    }
    128 + signal
}

/// The child: completes the fence from within, and becomes the program.
fn become_program(
    order: &Order,
    given: ToolHandles,
    fence: Fence,
    control: &UnixStream,
    status: &UnixStream,
) -> ! {
    let arranged = match &given.input {
        Some(input) => rustix::stdio::dup2_stdin(input).map_err(io::Error::from),
        None => arrange(control),
    };
    let error = match arranged.and_then(|()| fence.inside(order)) {
        Ok((fenced, environment)) => match wire::send(status, &Ok::<_, Failed>(&fenced)) {
            Ok(()) => execute(order, &given, environment, status),
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
fn execute(
    order: &Order,
    given: &ToolHandles,
    extra: Vec<(&'static str, PathBuf)>,
    status: &UnixStream,
) -> io::Error {
    // Once the program runs it could write to the same sockets, so whatever has to be believed must have been said.
    if let Err(error) = wire::receive::<()>(status) {
        return error;
    }
    let mut command = Command::new(order.program());
    command.args(order.arguments()).env_clear().envs(order.environment()).envs(extra);
    if let Some(port) = given.proxy {
        let address = format!("http://127.0.0.1:{port}");
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
            command.env(name, &address);
        }
        command.env("NO_PROXY", "localhost,127.0.0.1,::1").env("no_proxy", "localhost,127.0.0.1,::1");
        // Without it Node ignores the variables above.
        command.env("NODE_USE_ENV_PROXY", "1");
    }
    let error = if order.tool.is_some() {
        // A group of its own, which can be asked to end. Unlike a fork this copies no memory.
        match command.process_group(0).spawn() {
            Ok(tool) => stand_by(tool.id(), &given.tell_ending),
            Err(error) => error,
        }
    } else {
        command.exec()
    };
    wire::explain(error, format_args!("cannot start {}", order.program().display()))
}

/// The first process of a tool's namespace: takes in orphans, tells how the tool ended, and ends. All that the tool has left
/// running ends with it.
fn stand_by(tool: u32, tell_ending: &UnixStream) -> ! {
    let keep_one = || -> io::Result<()> {
        let null = File::options().write(true).open("/dev/null")?;
        rustix::stdio::dup2_stdout(&null)?;
        rustix::stdio::dup2_stderr(&null)?;
        Ok(rustix::stdio::dup2_stdin(tell_ending)?)
    };
    // What the tool has must not stay open here, or its end would not show.
    if keep_one().and_then(|()| calls::close_from(REQUESTS)).is_err() {
        std::process::exit(127);
    }
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid.as_raw_nonzero().get().cast_unsigned() == tool => {
                let ending = ending_of(status);
                let reported = serde_json::to_vec(&ending).unwrap_or_default();
                let _ = rustix::io::write(rustix::stdio::stdin(), &reported);
                std::process::exit(0);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => std::process::exit(127),
        }
    }
}
