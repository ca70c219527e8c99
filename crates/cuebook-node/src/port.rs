//! The way from any thread to the JavaScript of one host, and back.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use napi::Status;
use napi::bindgen_prelude::FnArgs;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use crate::workers;

/// What arrives in JavaScript: a kind, a number, and a text.
pub type Message = FnArgs<(u32, f64, String)>;
/// The function of JavaScript that takes messages. It does not keep the event loop alive: `package/native.ts` does while it waits.
pub type Send = ThreadsafeFunction<Message, (), Message, Status, false, true>;

/// The kinds of messages. `package/native.ts` has the same numbers.
#[derive(Clone, Copy)]
pub enum Kind {
    /// A call is done; the text is its result.
    Done = 0,
    /// A call failed; the text is its error.
    Failed = 1,
    /// A function of JavaScript is called; `Port::answer` takes what it returns.
    Call = 2,
    /// Something happened in a run.
    Event = 3,
}

/// How long a host that ends waits for its runs, so that their logs say that they were cancelled.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way to the JavaScript of one host.
#[derive(Default)]
pub struct Port {
    state: Mutex<State>,
    /// A run has ended.
    ended: Condvar,
}

#[derive(Default)]
struct State {
    /// `None` once the host has ended.
    send: Option<Arc<Send>>,
    /// Threads that wait for the answer of a function.
    waiting: HashMap<u64, Sender<String>>,
    /// The flags that stop runs, by the number of their call.
    runs: HashMap<u64, Arc<AtomicBool>>,
    last: u64,
}

impl Port {
    pub fn new(send: Send) -> Port {
        let state = State { send: Some(Arc::new(send)), ..State::default() };
        Port { state: Mutex::new(state), ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a message; nothing happens once the host has ended.
    pub fn send(&self, kind: Kind, number: f64, text: String) {
        let send = self.state().send.clone();
        if let Some(send) = send {
            send.call((kind as u32, number, text).into(), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }

    /// Calls a function of JavaScript and waits for its answer.
    pub fn ask(&self, text: String) -> Option<String> {
        let (sender, receiver) = channel();
        let number = {
            let mut state = self.state();
            state.send.as_ref()?;
            state.last += 1;
            let number = state.last;
            state.waiting.insert(number, sender);
            number
        };
        self.send(Kind::Call, number as f64, text);
        workers::waiting(|| receiver.recv().ok())
    }

    /// Takes the answer of a function.
    pub fn answer(&self, number: u64, text: String) {
        if let Some(sender) = self.state().waiting.remove(&number) {
            // The thread that waits exists until it has its answer.
            let _ = sender.send(text);
        }
    }

    /// Begins a run. `None` once the host has ended.
    pub fn begin_run(&self, number: u64) -> Option<Arc<AtomicBool>> {
        let mut state = self.state();
        state.send.as_ref()?;
        Some(state.runs.entry(number).or_default().clone())
    }

    /// Ends a run.
    pub fn end_run(&self, number: u64) {
        self.state().runs.remove(&number);
        self.ended.notify_all();
    }

    /// Stops a run.
    pub fn cancel(&self, number: u64) {
        if let Some(flag) = self.state().runs.get(&number) {
            flag.store(true, Ordering::SeqCst);
        }
    }

    /// Ends the host: no message reaches JavaScript any more, functions that are waited for have failed, and runs stop.
    pub fn close(&self) {
        let mut state = self.state();
        if state.send.take().is_none() {
            return;
        }
        state.waiting.clear();
        for flag in state.runs.values() {
            flag.store(true, Ordering::SeqCst);
        }
        let end = Instant::now() + PATIENCE;
        while !state.runs.is_empty()
            && let Some(left) = end.checked_duration_since(Instant::now())
        {
            state = match self.ended.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(_) => return,
            };
        }
    }
}
