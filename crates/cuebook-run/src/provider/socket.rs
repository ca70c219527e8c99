//! Sockets that can be asked to stop.
//!
//! A request to a model may wait for minutes, and its caller may change their mind. A read that blocks cannot be
//! interrupted, so nothing here blocks for longer than [`SLICE`]: it waits, asks whether to go on, and waits again. Who is to be asked is
//! noted for the thread that makes the request ([`watched`]), because a connection outlives a request: it goes back to a pool, and
//! serves another one later.
//!
//! This lies below TLS, so that its handshake can be stopped too. What cannot be sliced (looking up a name, connecting) is done by a
//! its own thread, without a wait for it once it is to stop.

use std::cell::RefCell;
use std::fmt;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{
    Buffers, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, Transport,
};

use super::Stop;

/// How long a thread waits before it asks whether to go on.
const SLICE: Duration = Duration::from_millis(100);
/// The stack of a thread that looks up a name or connects. The system's resolver needs some.
const STACK: usize = 256 << 10;
/// Addresses of one name that are tried.
const MAX_ADDRESSES: usize = 16;

/// How long a request may wait, and who may stop it.
#[derive(Debug, Clone)]
pub(super) struct WaitLimits {
    /// Says whether to stop.
    pub stop: Stop,
    /// When it is over.
    pub end: Option<Instant>,
    /// The longest that a name is looked up, and that a connection is waited for.
    pub connect: Duration,
    /// The longest that the other side may be silent.
    pub silence: Duration,
}

/// Why a wait was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitFailure {
    /// It was to stop.
    Stopped,
    /// Its time was over.
    Late,
    /// The other side said nothing for too long.
    Silent,
    /// There was no connection in time.
    NoConnection,
}

/// What is known of the request that a thread makes.
struct WatchedRequest {
    watch: WaitLimits,
    /// Why it was given up.
    why: Option<WaitFailure>,
    /// Whether it was sent whole: an answer is waited for.
    sent: bool,
}

thread_local! {
    static WATCH: RefCell<Option<WatchedRequest>> = const { RefCell::new(None) };
}

/// What became of something that ran under a watch.
pub(super) struct WaitOutcome<T> {
    pub done: T,
    /// Why it was given up, if it was.
    pub why: Option<WaitFailure>,
    /// Whether a request was sent whole.
    pub sent: bool,
}

/// Runs something under a watch, and says what was given up, if anything was.
pub(super) fn watched<T>(watch: WaitLimits, run: impl FnOnce() -> T) -> WaitOutcome<T> {
    /// Also if what runs panics, the next request of this thread is not watched by this one's watch.
    struct Unwatch;
    impl Drop for Unwatch {
        fn drop(&mut self) {
            WATCH.take();
        }
    }
    let unwatch = Unwatch;
    WATCH.replace(Some(WatchedRequest { watch, why: None, sent: false }));
    let done = run();
    let (why, sent) =
        WATCH.with_borrow(|watched| watched.as_ref().map_or((None, false), |it| (it.why, it.sent)));
    drop(unwatch);
    WaitOutcome { done, why, sent }
}

/// From now on the other side may be silent for so long.
pub(super) fn set_silence(silence: Duration) {
    WATCH.with_borrow_mut(|watched| {
        if let Some(watched) = watched {
            watched.watch.silence = silence;
        }
    });
}

/// All is over at this moment, if not before.
pub(super) fn set_end(end: Instant) {
    WATCH.with_borrow_mut(|watched| {
        if let Some(WatchedRequest { watch, .. }) = watched {
            watch.end = Some(watch.end.map_or(end, |known| known.min(end)));
        }
    });
}

fn limits() -> (Duration, Duration) {
    WATCH.with_borrow(|watched| match watched {
        Some(WatchedRequest { watch, .. }) => (watch.connect, watch.silence),
        None => (Duration::from_secs(10), Duration::from_secs(60)),
    })
}

/// How long to wait now, if at all.
fn slice(until: Instant, otherwise: WaitFailure) -> Result<Duration, Error> {
    WATCH.with_borrow_mut(|slot| {
        let now = Instant::now();
        let mut left = until.saturating_duration_since(now);
        let mut why = left.is_zero().then_some(otherwise);
        if let Some(WatchedRequest { watch, why: given_up, .. }) = slot {
            if let Some(end) = watch.end {
                let rest = end.saturating_duration_since(now);
                if rest.is_zero() {
                    why = Some(WaitFailure::Late);
                }
                left = left.min(rest);
            }
            if watch.stop.is_set() {
                why = Some(WaitFailure::Stopped);
            }
            *given_up = given_up.or(why);
        }
        match why {
            Some(_) => Err(Error::Io(io::Error::new(io::ErrorKind::TimedOut, "given up"))),
            // The system takes no timeout of nothing.
            None => Ok(left.min(SLICE).max(Duration::from_millis(1))),
        }
    })
}

/// Has a thread do what cannot be interrupted, for as long as a connection may take.
fn aside<T: Send + 'static>(work: impl FnOnce() -> io::Result<T> + Send + 'static) -> Result<T, Error> {
    let until = Instant::now() + limits().0;
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new().name("connect".into()).stack_size(STACK).spawn(move || {
        // If it took too long, there is no listener any more.
        let _ = sender.send(work());
    })?;
    loop {
        match receiver.recv_timeout(slice(until, WaitFailure::NoConnection)?) {
            Ok(done) => return done.map_err(Error::Io),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(Error::ConnectionFailed),
        }
    }
}

/// Looks up names.
#[derive(Debug)]
pub(super) struct Names;

/// That a name could not be looked up.
#[derive(Debug)]
pub(super) struct LookupFailure {
    host: String,
    /// Whether that may change: it could not be asked. Otherwise there is no such name.
    pub passes: bool,
    why: String,
}

impl LookupFailure {
    fn new(host: &str, error: &io::Error) -> LookupFailure {
        let said = error.to_string();
        let why = said.strip_prefix("failed to lookup address information: ").unwrap_or(&said);
        // The system tells the two apart, and the standard library passes on its words alone.
        let low = why.to_ascii_lowercase();
        let words = ["temporary", "try again", "memory", "system error"];
        // An error of the system (`EAI_SYSTEM`), such as too many open files, says nothing about the name.
        let passes =
            (cfg!(unix) && error.raw_os_error().is_some()) || words.iter().any(|it| low.contains(it));
        LookupFailure { host: host.to_owned(), passes, why: why.to_owned() }
    }
}

impl fmt::Display for LookupFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.passes {
            true => write!(f, "cannot look up the host {} now ({})", self.host, self.why),
            false => write!(f, "unknown host {} ({})", self.host, self.why),
        }
    }
}

impl std::error::Error for LookupFailure {}

impl Resolver for Names {
    fn resolve(&self, uri: &Uri, _: &Config, _: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let host = uri.host().ok_or(Error::HostNotFound)?.trim_start_matches('[').trim_end_matches(']');
        let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
        let found: Vec<SocketAddr> = match host.parse() {
            Ok(address) => vec![SocketAddr::new(address, port)],
            Err(_) => {
                let host = host.to_owned();
                aside(move || {
                    let found = (host.as_str(), port).to_socket_addrs();
                    let found = found.map_err(|error| io::Error::other(LookupFailure::new(&host, &error)))?;
                    Ok(found.take(MAX_ADDRESSES).collect())
                })?
            }
        };
        let mut addresses = self.empty();
        found.iter().for_each(|address| addresses.push(*address));
        if addresses.is_empty() { Err(Error::HostNotFound) } else { Ok(addresses) }
    }
}

/// Connects.
#[derive(Debug)]
pub(super) struct Sockets;

impl<In: Transport> Connector<In> for Sockets {
    type Out = Either<In, Socket>;

    fn connect(&self, details: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        // A proxy has connected already.
        if let Some(chained) = chained {
            return Ok(Some(Either::A(chained)));
        }
        let addresses: Vec<SocketAddr> = details.addrs.iter().copied().collect();
        let whole = limits().0;
        let stream = aside(move || {
            let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
            for (tried, address) in addresses.iter().enumerate() {
                // Half of the time for the first address if there are others, so that one that is dead leaves time for them.
                let share = if tried + 1 == addresses.len() { whole } else { whole / 2 };
                match TcpStream::connect_timeout(address, share) {
                    Ok(stream) => return Ok(stream),
                    Err(error) => last = error,
                }
            }
            Err(last)
        })?;
        stream.set_nodelay(true)?;
        let buffers =
            LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(Socket { stream, buffers, reads: None, writes: None })))
    }
}

/// A connection.
pub(super) struct Socket {
    stream: TcpStream,
    buffers: LazyBuffers,
    /// How long the system lets a read, and a write, wait.
    reads: Option<Duration>,
    writes: Option<Duration>,
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Socket").field("to", &self.stream.peer_addr().ok()).finish_non_exhaustive()
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

impl Transport for Socket {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, _: NextTimeout) -> Result<(), Error> {
        let mut sent = 0;
        let mut until = Instant::now() + limits().1;
        while sent < amount {
            let slice = slice(until, WaitFailure::Silent)?;
            if self.writes != Some(slice) {
                self.stream.set_write_timeout(Some(slice))?;
                self.writes = Some(slice);
            }
            match (&self.stream).write(&self.buffers.output()[sent..amount]) {
                Ok(0) => return Err(Error::Io(io::ErrorKind::WriteZero.into())),
                Ok(more) => {
                    sent += more;
                    until = Instant::now() + limits().1;
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn await_input(&mut self, _: NextTimeout) -> Result<bool, Error> {
        let until = Instant::now() + limits().1;
        loop {
            let slice = slice(until, WaitFailure::Silent)?;
            if self.reads != Some(slice) {
                self.stream.set_read_timeout(Some(slice))?;
                self.reads = Some(slice);
            }
            match (&self.stream).read(self.buffers.input_append_buf()) {
                Ok(amount) => {
                    self.buffers.input_appended(amount);
                    return Ok(amount > 0);
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn is_open(&mut self) -> bool {
        // Between two requests a server has nothing to say: bytes are as bad as an end.
        let silent = |stream: &TcpStream| -> io::Result<bool> {
            stream.set_nonblocking(true)?;
            let read = (&mut &*stream).read(&mut [0]);
            stream.set_nonblocking(false)?;
            Ok(matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock))
        };
        silent(&self.stream).unwrap_or(false)
    }
}

/// Notices when a request was sent whole. It lies above TLS: what a handshake sends is no part of a request.
#[derive(Debug)]
pub(super) struct SendObserver;

impl<In: Transport> Connector<In> for SendObserver {
    type Out = ObservedConnection<In>;

    fn connect(&self, _: &ConnectionDetails, chained: Option<In>) -> Result<Option<Self::Out>, Error> {
        Ok(chained.map(ObservedConnection))
    }
}

/// A connection over which requests go.
#[derive(Debug)]
pub(super) struct ObservedConnection<In>(In);

impl<In: Transport> Transport for ObservedConnection<In> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, Error> {
        // The answer is not awaited before the whole question is sent.
        WATCH.with_borrow_mut(|watched| {
            if let Some(watched) = watched {
                watched.sent = true;
            }
        });
        self.0.await_input(timeout)
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_differ_from_failed_lookups() {
        let passes = |error: io::Error| LookupFailure::new("a.example", &error).passes;
        // What the standard library makes of the words of the systems: glibc, musl, Apple's.
        let said = |words: &str| io::Error::other(format!("failed to lookup address information: {words}"));
        for words in [
            "Temporary failure in name resolution",
            "Try again",
            "temporary failure in name resolution",
            "Memory allocation failure",
            "System error",
        ] {
            assert!(passes(said(words)), "{words}");
        }
        for words in [
            "Name or service not known",
            "No address associated with hostname",
            "Name does not resolve",
            "nodename nor servname provided, or not known",
            "Non-recoverable failure in name resolution",
        ] {
            assert!(!passes(said(words)), "{words}");
        }
        // A name that the system itself refuses, without asking anybody.
        let refused = ("a".repeat(64) + ".example", 443).to_socket_addrs().unwrap_err();
        assert!(!passes(refused));
    }

    #[cfg(unix)]
    #[test]
    fn trouble_of_the_system_says_nothing_about_a_name() {
        let full = io::Error::from(rustix::io::Errno::MFILE);
        let unnamed = LookupFailure::new("a.example", &full);
        assert!(unnamed.passes && unnamed.to_string().contains("cannot look up the host"), "{unnamed}");
    }
}
