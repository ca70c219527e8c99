//! One process that runs the functions of one script.
//!
//! All three pipes are watched at once and never block us: what the process prints is drained while we wait for its reply,
//! and whatever it does or does not do, a call ends at its deadline. The process is not trusted. Anything unexpected from it
//! is an error of the call, and the process is not used again.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::pool::PooledWorker;
use crate::protocol::{self, HEADER, Reply};
use crate::sandbox::{Ending, Sandboxed};

/// How long a process may take to start.
pub const STARTUP: Duration = Duration::from_secs(10);

/// Bytes of what a call prints that are kept.
const KEPT: usize = 64 << 10;

/// How long we wait to learn how a process has ended after it has closed its pipe.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a call, or a worker, came to no good end.
#[derive(Debug)]
pub enum CallFailure {
    /// The time was over, perhaps while it waited for this function of its context.
    Timeout(Option<String>),
    /// The process ended, in this way, or is about to if that is unknown.
    Ended(Option<Ending>),
    /// The process said something that no worker says.
    Rubbish(&'static str),
    /// The process announced a reply of this many bytes.
    TooLarge(usize),
}

/// A worker.
#[derive(Debug)]
pub struct Worker {
    sandboxed: Sandboxed,
    /// Whether it has its script.
    pub loaded: bool,
    /// How long calls have taken, all together.
    pub busy: Duration,
    /// Whether the last call asked anything.
    pub asked: bool,
    incoming: Vec<u8>,
    chunk: Box<[u8]>,
    printed: Printed,
}

impl Worker {
    /// Takes over a process that has just been started, and waits until it is ready.
    pub fn new(sandboxed: Sandboxed) -> Result<Worker, (CallFailure, Option<String>)> {
        for pipe in [sandboxed.requests.as_fd(), sandboxed.replies.as_fd(), sandboxed.printed.as_fd()] {
            if rustix::io::ioctl_fionbio(pipe, true).is_err() {
                return Err((CallFailure::Rubbish("pipes that cannot be watched"), None));
            }
        }
        let mut worker = Worker {
            sandboxed,
            loaded: false,
            busy: Duration::ZERO,
            asked: false,
            incoming: Vec::new(),
            chunk: vec![0; 64 << 10].into_boxed_slice(),
            printed: Printed::default(),
        };
        match worker.receive(KEPT, Instant::now() + STARTUP) {
            Ok(Reply { ready: true, .. }) => Ok(worker),
            Ok(_) => {
                let broken = worker.end(CallFailure::Rubbish("an invalid reply"));
                Err((broken, worker.printed()))
            }
            Err(broken) => {
                let broken = worker.end(broken);
                Err((broken, worker.printed()))
            }
        }
    }

    /// Whether it still waits for a call: it runs, and has said nothing since the last.
    pub fn is_waiting(&self) -> bool {
        let mut watched = [PollFd::new(&self.sandboxed.replies, PollFlags::IN)];
        self.incoming.is_empty()
            && matches!(poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })), Ok(0))
    }

    /// Makes a call: sends a frame, answers questions, and returns the reply.
    pub fn call(
        &mut self,
        request: &[u8],
        id: &str,
        (most, deadline): (usize, Instant),
        mut answer: impl FnMut(&str, &Reply) -> Vec<u8>,
    ) -> Result<Reply, CallFailure> {
        let began = Instant::now();
        self.printed = Printed::default();
        self.asked = false;
        let mut waited = None;
        let mut outcome = self.send(request, deadline);
        let outcome = loop {
            if let Err(broken) = outcome {
                break Err(self.end(broken));
            }
            match self.receive(most, deadline) {
                Ok(reply) if reply.id != id => {
                    break Err(self.end(CallFailure::Rubbish("a reply to another call")));
                }
                Ok(reply) => match &reply.ask {
                    Some(function) => {
                        self.asked = true;
                        let frame = answer(function, &reply);
                        if Instant::now() >= deadline {
                            waited = Some(function.clone());
                        }
                        outcome = self.send(&frame, deadline);
                    }
                    None if !self.incoming.is_empty() => {
                        break Err(self.end(CallFailure::Rubbish("more than one reply")));
                    }
                    // What it printed before was there before the reply, and has been taken with it.
                    None => break Ok(reply),
                },
                Err(broken) => break Err(self.end(broken)),
            }
        };
        self.busy += began.elapsed();
        outcome.map_err(|broken| match broken {
            CallFailure::Timeout(_) => CallFailure::Timeout(waited),
            broken => broken,
        })
    }

    /// What the last call printed, if it did.
    pub fn printed(&mut self) -> Option<String> {
        std::mem::take(&mut self.printed).into_text()
    }

    /// Ends the process after something went wrong, and finds out what if it had ended by itself.
    fn end(&mut self, broken: CallFailure) -> CallFailure {
        let broken = match broken {
            CallFailure::Ended(None) => CallFailure::Ended(self.sandboxed.wait(LAST_WORDS)),
            broken => {
                self.drain_printed();
                broken
            }
        };
        self.sandboxed.kill();
        self.drain_printed();
        broken
    }

    /// Sends a frame.
    fn send(&mut self, frame: &[u8], deadline: Instant) -> Result<(), CallFailure> {
        let mut rest = frame;
        while !rest.is_empty() {
            match self.sandboxed.requests.write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.wait(true, deadline)?,
                Err(_) => return Err(CallFailure::Ended(None)),
            }
        }
        Ok(())
    }

    /// Receives a frame of at most so many bytes.
    fn receive(&mut self, most: usize, deadline: Instant) -> Result<Reply, CallFailure> {
        loop {
            if let Some(header) = self.incoming.first_chunk::<HEADER>() {
                let size = protocol::length(*header);
                if size > most {
                    return Err(CallFailure::TooLarge(size));
                }
                if let Some(value) = self.incoming.get(HEADER..HEADER + size) {
                    let reply = Reply::read(value).ok_or(CallFailure::Rubbish("an invalid reply"))?;
                    self.incoming.drain(..HEADER + size);
                    return Ok(reply);
                }
                self.incoming.reserve(HEADER + size - self.incoming.len());
            }
            self.wait(false, deadline)?;
        }
    }

    /// Waits until something can be sent or has been received, and takes what was printed meanwhile.
    fn wait(&mut self, sending: bool, deadline: Instant) -> Result<(), CallFailure> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(CallFailure::Timeout(None));
        }
        // No call takes longer than this many seconds, or it is asked again.
        let left = left.min(Duration::from_secs(3600));
        let timeout = Timespec {
            tv_sec: left.as_secs().try_into().unwrap_or(3600),
            tv_nsec: left.subsec_nanos().into(),
        };
        // While we send, a reply may wait; only that the process has ended is reported all the same.
        let replies = if sending { PollFlags::empty() } else { PollFlags::IN };
        let requests = if sending { PollFlags::OUT } else { PollFlags::empty() };
        let Sandboxed { requests: sends, replies: receives, printed: prints, .. } = &self.sandboxed;
        let mut watched = [
            PollFd::new(receives, replies),
            PollFd::new(prints, PollFlags::IN),
            PollFd::new(sends, requests),
        ];
        // A pipe that is closed would be reported all the time.
        let watched = if self.printed.closed {
            watched.swap(1, 2);
            &mut watched[..2]
        } else {
            &mut watched[..]
        };
        match poll(watched, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Err(CallFailure::Rubbish("pipes that cannot be watched")),
        }
        let replied = !watched[0].revents().is_empty();
        let printed = !self.printed.closed && !watched[1].revents().is_empty();
        if printed {
            self.drain_printed();
        }
        if !replied {
            return Ok(());
        }
        if sending {
            // Only its end is reported while nothing was asked for.
            return Err(CallFailure::Ended(None));
        }
        match self.sandboxed.replies.read(&mut self.chunk) {
            Ok(0) => Err(CallFailure::Ended(None)),
            Ok(count) => {
                self.incoming.extend_from_slice(&self.chunk[..count]);
                Ok(())
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(())
            }
            Err(_) => Err(CallFailure::Ended(None)),
        }
    }

    /// Takes what has been printed so far. A call that never stops printing must not keep us here.
    fn drain_printed(&mut self) {
        for _ in 0..64 {
            match self.sandboxed.printed.read(&mut self.chunk) {
                Ok(0) => {
                    self.printed.closed = true;
                    return;
                }
                Ok(count) => self.printed.push(&self.chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }
}

impl PooledWorker for Worker {
    fn is_quiet(&self) -> bool {
        self.sandboxed.is_quiet()
    }
}

/// What a call has printed.
#[derive(Debug, Default)]
struct Printed {
    bytes: Vec<u8>,
    /// Bytes that were not kept.
    dropped: u64,
    closed: bool,
}

impl Printed {
    fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(KEPT - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..kept]);
        self.dropped += (bytes.len() - kept) as u64;
    }

    fn into_text(self) -> Option<String> {
        if self.bytes.is_empty() {
            return None;
        }
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if self.dropped > 0 {
            text.push_str(&format!("\n… and {} more bytes\n", self.dropped));
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_beginning_of_what_is_printed_is_kept() {
        let mut printed = Printed::default();
        assert_eq!(Printed::default().into_text(), None);
        printed.push(b"first ");
        printed.push(&vec![b'x'; KEPT]);
        printed.push(b"never seen");
        let text = printed.into_text().unwrap();
        assert!(text.starts_with("first xxx"));
        assert!(text.ends_with("x\n… and 16 more bytes\n"), "{}", &text[text.len() - 40..]);
    }
}
