//! Answers requests for metrics: one at a time, each within two seconds.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Shared;

/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// The longest request.
const LONGEST: usize = 8 << 10;
/// How often it is looked whether there is a request.
const LOOK: Duration = Duration::from_millis(50);

/// Answers until the worker ends.
pub(super) fn answer(listener: &TcpListener, shared: &Shared<'_>) {
    if let Err(error) = listener.set_nonblocking(true) {
        tracing::warn!(%error, "cannot answer requests for metrics");
        return;
    }
    while !shared.over.load(Ordering::SeqCst) {
        match listener.accept() {
            // Who does not read the answer does not need it.
            Ok((stream, _)) => drop(serve(stream, shared)),
            Err(error) => {
                if error.kind() != ErrorKind::WouldBlock {
                    tracing::warn!(%error, "cannot take a request for metrics");
                }
                std::thread::sleep(LOOK);
            }
        }
    }
}

fn serve(mut stream: TcpStream, shared: &Shared<'_>) -> std::io::Result<()> {
    stream.set_nonblocking(false)?;
    let Some(request) = head(&mut stream)? else { return Ok(()) };
    let mut words = request.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (status, body) = match (method, path.split('?').next().unwrap_or_default()) {
        ("GET" | "HEAD", "/metrics") => ("200 OK", text(shared)),
        ("GET" | "HEAD", _) => ("404 Not Found", "the metrics are at /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "only GET\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(head.as_bytes())?;
    if method != "HEAD" {
        stream.write_all(body.as_bytes())?;
    }
    stream.flush()
}

/// The first line of a request, when all of its head has come.
fn head(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let until = Instant::now() + PATIENCE;
    let mut bytes = Vec::new();
    let mut part = [0; 1024];
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() || bytes.len() > LONGEST {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Ok(None),
            count => bytes.extend(part.iter().take(count)),
        }
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.lines().next().map(str::to_owned))
}

fn text(shared: &Shared<'_>) -> String {
    let running = shared.state().running.len();
    // Without its store a worker still knows its own figures.
    let queue = shared.store.queue_state(Some(&shared.queue)).ok();
    shared.metrics.text(running, shared.worker.options.concurrency, queue.as_ref())
}
