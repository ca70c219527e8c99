//! The server: a thread that accepts, and one for every connection.

use std::collections::HashMap;
use std::io::{self, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use crate::api::Api;
use crate::http::{self, Incoming};
use crate::jobs::{JobReply, Jobs};
use crate::request::Request;
use crate::wire;
use crate::{Reply, Script};

/// A connection needs little: it holds one request and one reply, both on the heap.
const STACK: usize = 128 << 10;

#[derive(Default)]
struct State {
    script: Script,
    jobs: Jobs,
    requests: Vec<Request>,
    open: HashMap<u64, TcpStream>,
    connections: u64,
    stopped: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits, unless the server stops before that; says whether it goes on.
    fn pause(&self, time: Duration) -> bool {
        let end = Instant::now().checked_add(time);
        let mut state = self.state();
        while !state.stopped {
            let left = end.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return true;
            }
            let (again, _) = self
                .changed
                .wait_timeout(state, left.min(Duration::from_secs(3600)))
                .unwrap_or_else(PoisonError::into_inner);
            state = again;
        }
        false
    }
}

/// A server that runs until it is dropped.
pub struct Mock {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

impl std::fmt::Debug for Mock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mock").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Mock {
    /// Starts a server at a port of this machine that the system picks.
    pub fn start(script: Script) -> io::Result<Mock> {
        Mock::start_at(script, "127.0.0.1:0")
    }

    /// Starts a server at this address.
    pub fn start_at(script: Script, address: &str) -> io::Result<Mock> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let state = State { script, ..State::default() };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let for_thread = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("mock".into())
            .stack_size(STACK)
            .spawn(move || accept(&listener, &for_thread))?;
        Ok(Mock { address, shared, accepting: Some(accepting) })
    }

    /// Its address, as in `http://127.0.0.1:4711`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was asked so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.state().requests.clone()
    }

    /// How many connections there were so far: with keep-alive fewer than requests.
    pub fn connections(&self) -> u64 {
        self.shared.state().connections
    }

    /// How many replies of the list are left.
    pub fn left(&self) -> usize {
        self.shared.state().script.left()
    }

    /// Goes on with another script.
    pub fn play(&self, script: Script) {
        self.shared.state().script = script;
    }

    /// Waits until this many requests came; says whether they did.
    pub fn wait_for_requests(&self, count: usize, most: Duration) -> bool {
        let end = Instant::now() + most;
        let mut state = self.shared.state();
        while state.requests.len() < count {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let (again, _) =
                self.shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
            state = again;
        }
        true
    }

    /// A provider file for this server: one model, `mock-model`, for the tiers `fast`, `general` and `high`, at a dollar for a
    /// million tokens that are read and ten for a million that are written. Its key is in `MOCK_KEY`.
    pub fn provider_yaml(&self, api: Api) -> String {
        format!(
            "name: mock\napi: {}\nbase_url: {}\nkey: MOCK_KEY\n\
             tiers:\n  fast: mock-model\n  general: mock-model\n  high: mock-model\n\
             models:\n  mock-model:\n    context_window: 100000\n    max_output: 4096\n    \
             price: {{input: 1, cached: 0.1, output: 10}}\n",
            api.as_str(),
            self.url()
        )
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        let open = {
            let mut state = self.shared.state();
            state.stopped = true;
            std::mem::take(&mut state.open)
        };
        self.shared.changed.notify_all();
        for stream in open.into_values() {
            // One that is closed already needs no closing.
            let _ = stream.shutdown(Shutdown::Both);
        }
        // Wakes the thread that accepts.
        drop(TcpStream::connect(self.address));
        if let Some(accepting) = self.accepting.take() {
            // It does not panic; if it did, the test that drops the server has other worries.
            let _ = accepting.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        let number = {
            let mut state = shared.state();
            if state.stopped {
                return;
            }
            let Ok(stream) = &stream else { continue };
            let Ok(copy) = stream.try_clone() else { continue };
            state.connections += 1;
            let number = state.connections;
            state.open.insert(number, copy);
            number
        };
        let Ok(stream) = stream else { continue };
        let for_thread = Arc::clone(shared);
        let serving = move || {
            // Clients that go away in the middle are part of the game.
            let _ = serve(stream, &for_thread);
            for_thread.state().open.remove(&number);
        };
        if thread::Builder::new().name("mock-connection".into()).stack_size(STACK).spawn(serving).is_err() {
            shared.state().open.remove(&number);
        }
    }
}

fn serve(stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut out = stream.try_clone()?;
    let mut reader = BufReader::with_capacity(4 << 10, stream);
    while let Some(incoming) = http::read(&mut reader)? {
        let leaves = incoming.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"));
        let job = {
            let mut state = shared.state();
            let State { jobs, script, .. } = &mut *state;
            jobs.answer(&incoming, script)
        };
        if let Some(mut job) = job {
            let mut asked = std::mem::take(&mut job.asked);
            asked.push(request(incoming));
            shared.state().requests.extend(asked);
            shared.changed.notify_all();
            send_job(&mut out, &job)?;
            if leaves {
                break;
            }
            continue;
        }
        let (request, reply) = {
            let mut state = shared.state();
            let request = request(incoming);
            let reply = state.script.next(&request);
            if !state.script.forgetful {
                state.requests.push(request.clone());
                shared.changed.notify_all();
            }
            (request, reply)
        };
        if !send(&mut out, shared, &request, &reply)? || leaves {
            break;
        }
    }
    out.shutdown(Shutdown::Both)
}

fn request(incoming: Incoming) -> Request {
    let body = serde_json::from_slice(&incoming.body).unwrap_or(Json::Null);
    let api = Api::of_path(&incoming.path);
    let stream = body["stream"] == true || incoming.path.contains(":streamGenerateContent");
    Request {
        method: incoming.method,
        path: incoming.path,
        headers: incoming.headers,
        body,
        api,
        stream,
        at: incoming.at,
    }
}

/// Sends what is said of a job.
fn send_job(out: &mut TcpStream, job: &JobReply) -> io::Result<()> {
    let head = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {}\r\ncontent-length: {}\r\n\r\n",
        job.status,
        http::reason(job.status),
        job.kind,
        job.body.len()
    );
    out.write_all(head.as_bytes())?;
    out.write_all(job.body.as_bytes())?;
    out.flush()
}

/// Sends a reply; says whether the connection is good for another one.
fn send(out: &mut TcpStream, shared: &Shared, request: &Request, reply: &Reply) -> io::Result<bool> {
    if !shared.pause(reply.first_byte) || reply.hang_up {
        return Ok(false);
    }
    let (status, kind, mut body, chunked) = match (&reply.instead, request.api) {
        (Some((status, body, kind)), _) => (*status, kind.as_str(), body.clone(), false),
        (None, Some(api)) if request.stream => {
            (200, "text/event-stream", wire::stream(api, request, reply), true)
        }
        (None, Some(api)) => {
            (200, "application/json", wire::whole(api, request, reply).to_string().into(), false)
        }
        (None, None) => {
            let why = serde_json::json!({"error": {"message": format!("there is no {} here", request.path)}});
            (404, "application/json", why.to_string().into_bytes(), false)
        }
    };
    body.truncate(reply.truncate.unwrap_or(usize::MAX));
    let mut head = format!("HTTP/1.1 {status} {}\r\ncontent-type: {kind}\r\n", http::reason(status));
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str(&if chunked {
        "transfer-encoding: chunked\r\n\r\n".to_owned()
    } else {
        format!("content-length: {}\r\n\r\n", body.len())
    });
    let close = reply.close.filter(|at| *at < body.len());
    let end = close.unwrap_or(body.len());
    let mut buffer = head.into_bytes();
    let mut at = 0;
    while at < end {
        let mut size = if reply.piece == 0 { event_length(&body[at..end], chunked) } else { reply.piece };
        size = size.min(end - at);
        if let Some((stall, pause)) = reply.stall.filter(|(stall, _)| at <= *stall && *stall < at + size) {
            if stall == at {
                out.write_all(&std::mem::take(&mut buffer))?;
                if !shared.pause(pause) {
                    return Ok(false);
                }
            } else {
                size = stall - at;
            }
        }
        let piece = &body[at..at + size];
        if chunked {
            buffer.extend_from_slice(format!("{size:x}\r\n").as_bytes());
        }
        buffer.extend_from_slice(piece);
        if chunked {
            buffer.extend_from_slice(b"\r\n");
        }
        at += size;
        // Everything in one write where nothing is to be seen of the pieces.
        if reply.piece != 0 || !reply.between.is_zero() {
            out.write_all(&std::mem::take(&mut buffer))?;
            if !reply.between.is_zero() && at < end && !shared.pause(reply.between) {
                return Ok(false);
            }
        }
    }
    if chunked && close.is_none() {
        buffer.extend_from_slice(b"0\r\n\r\n");
    }
    if let Some(note) = &reply.sent {
        // From here on the client can have the reply, so whatever comes next comes later.
        let _ = note.set(Instant::now());
    }
    out.write_all(&buffer)?;
    out.flush()?;
    Ok(close.is_none())
}

/// Bytes of the first event; of everything, where there are no events.
fn event_length(body: &[u8], events: bool) -> usize {
    let end = body.windows(2).position(|two| two == b"\n\n").filter(|_| events);
    end.map_or(body.len(), |end| end + 2)
}
