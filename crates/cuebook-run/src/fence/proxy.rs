//! The way from a fenced tool to the hosts that it may reach.
//!
//! The tool's network is empty but for a socket that listens inside of it. This process accepts the connections of that socket,
//! takes requests of HTTP (`CONNECT host:port`, `GET http://host/…`), and forwards to the allowed hosts only. What is inside of an
//! encrypted connection is not looked at.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cuebook::limits::HEAD_BYTES;

use cuebook_hooks::http::Hosts;

/// How many connections there may be at once.
const MAX: usize = 64;
/// How long a tool may take to send the head of a request.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a connection to a host may take.
const CONNECTING: Duration = Duration::from_secs(30);
/// How often it is looked whether the tool has ended.
const TICK: Duration = Duration::from_millis(20);

/// The proxy of one tool. Dropping it closes all connections.
#[derive(Debug)]
pub(crate) struct Proxy(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    hosts: Hosts,
    ended: AtomicBool,
    count: AtomicUsize,
    open: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Begins to accept connections.
    pub(crate) fn start(listener: TcpListener, hosts: &[String]) -> io::Result<Proxy> {
        listener.set_nonblocking(true)?;
        let shared = Arc::new(Shared {
            hosts: Hosts::only(hosts),
            ended: AtomicBool::new(false),
            count: AtomicUsize::new(0),
            open: Mutex::default(),
        });
        let accepting = shared.clone();
        std::thread::Builder::new().name("proxy".into()).spawn(move || accept(&listener, &accepting))?;
        Ok(Proxy(shared))
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::SeqCst);
        for stream in self.0.open.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Shared {
    /// Keeps a connection so that it is closed with the proxy.
    fn keep(&self, stream: &TcpStream) -> io::Result<()> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ended.load(Ordering::SeqCst) {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        open.push(stream.try_clone()?);
        Ok(())
    }

    fn forget(&self, streams: [&TcpStream; 2]) {
        let of = |stream: &TcpStream| (stream.local_addr().ok(), stream.peer_addr().ok());
        let gone = streams.map(of);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|stream| !gone.contains(&of(stream)) && stream.peer_addr().is_ok());
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while !shared.ended.load(Ordering::SeqCst) {
        let Ok((stream, _)) = listener.accept() else {
            std::thread::sleep(TICK);
            continue;
        };
        if shared.count.fetch_add(1, Ordering::SeqCst) >= MAX {
            shared.count.fetch_sub(1, Ordering::SeqCst);
            let _ = refuse(&stream, 503, "too many connections at once");
            continue;
        }
        let serving = shared.clone();
        let serve = move || {
            let _ = serve(&stream, &serving);
            let _ = stream.shutdown(Shutdown::Both);
            serving.count.fetch_sub(1, Ordering::SeqCst);
        };
        if std::thread::Builder::new().name("proxied".into()).stack_size(256 << 10).spawn(serve).is_err() {
            shared.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Serves one connection to its end.
fn serve(tool: &TcpStream, shared: &Shared) -> io::Result<()> {
    tool.set_nonblocking(false)?;
    tool.set_read_timeout(Some(PATIENCE))?;
    shared.keep(tool)?;
    let (head, rest) = read_head(tool)?;
    let Some(request) = Request::parse(&head) else { return refuse(tool, 400, "not a proxy request") };
    let host = match shared.hosts.connect(&request.host, request.port, CONNECTING) {
        Ok(host) => host,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            return refuse(tool, 403, &error.to_string());
        }
        Err(error) => return refuse(tool, 502, &format!("{}: {error}", request.host)),
    };
    shared.keep(&host)?;
    tool.set_read_timeout(None)?;
    match request.forwarded {
        None => { tool }.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        Some(head) => { &host }.write_all(&head)?,
    }
    { &host }.write_all(&rest)?;
    let copied = copy_both(tool, &host);
    shared.forget([tool, &host]);
    copied
}

/// Copies in both directions until both have ended.
fn copy_both(tool: &TcpStream, host: &TcpStream) -> io::Result<()> {
    let (from_host, to_tool) = (host.try_clone()?, tool.try_clone()?);
    let back = move || {
        let _ = io::copy(&mut &from_host, &mut &to_tool);
        let _ = to_tool.shutdown(Shutdown::Write);
    };
    let back = std::thread::Builder::new().name("proxied".into()).stack_size(256 << 10).spawn(back)?;
    let _ = io::copy(&mut { tool }, &mut { host });
    let _ = host.shutdown(Shutdown::Write);
    let _ = back.join();
    Ok(())
}

/// Reads the head of a request, and what came with it.
fn read_head(mut from: &TcpStream) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = from.read(&mut buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let from = head.len().saturating_sub(3);
        head.extend_from_slice(&buffer[..count]);
        if let Some(end) = head[from..].windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = head.split_off(from + end + 4);
            return Ok((head, rest));
        }
        if head.len() > HEAD_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

fn refuse(mut tool: &TcpStream, status: u16, why: &str) -> io::Result<()> {
    let body = format!("cuebook: {why}\n");
    let length = body.len();
    write!(
        tool,
        "HTTP/1.1 {status} Refused\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

/// What a tool asks of its proxy.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    host: String,
    port: u16,
    /// The head as the host gets it; none for a tunnel.
    forwarded: Option<Vec<u8>>,
}

impl Request {
    fn parse(head: &[u8]) -> Option<Request> {
        let head = std::str::from_utf8(head).ok()?;
        let (line, headers) = head.split_once("\r\n")?;
        let mut words = line.split(' ');
        let (method, target, version) = (words.next()?, words.next()?, words.next()?);
        if words.next().is_some() || !version.starts_with("HTTP/1.") {
            return None;
        }
        if method == "CONNECT" {
            let (host, port) = host_and_port(target, None)?;
            return Some(Request { host, port, forwarded: None });
        }
        let rest = target.strip_prefix("http://")?;
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, port) = host_and_port(&rest[..end], Some(80))?;
        let path =
            if rest[end..].starts_with('/') { rest[end..].to_owned() } else { format!("/{}", &rest[end..]) };
        // One request for each connection: the next one may be for another host, which would have to be checked.
        let kept = headers.lines().filter(|header| {
            let name = header.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            !header.is_empty()
                && !matches!(name.as_str(), "connection" | "proxy-connection" | "proxy-authorization")
        });
        let kept: String = kept.map(|header| format!("{header}\r\n")).collect();
        let forwarded = format!("{method} {path} {version}\r\n{kept}Connection: close\r\n\r\n").into_bytes();
        Some(Request { host, port, forwarded: Some(forwarded) })
    }
}

fn host_and_port(text: &str, usual: Option<u16>) -> Option<(String, u16)> {
    let has_port = text.rsplit_once(':').filter(|(host, _)| !host.contains(':') || host.ends_with(']'));
    let (host, port) = match has_port {
        Some((host, port)) => (host, port.parse().ok()?),
        None => (text, usual?),
    };
    (!host.is_empty() && !host.contains(['@', '/', '\\'])).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_proxy_removes_its_headers() {
        let parsed = Request::parse(b"CONNECT a.example:443 HTTP/1.1\r\nHost: b\r\n\r\n").unwrap();
        assert_eq!((parsed.host.as_str(), parsed.port, parsed.forwarded), ("a.example", 443, None));
        let head = b"GET http://a.example:8080?x=1 HTTP/1.1\r\nHost: b\r\nProxy-Authorization: s\r\n\r\n";
        let parsed = Request::parse(head).unwrap();
        assert_eq!((parsed.host.as_str(), parsed.port), ("a.example", 8080));
        let text = String::from_utf8(parsed.forwarded.unwrap()).unwrap();
        assert_eq!(text, "GET /?x=1 HTTP/1.1\r\nHost: b\r\nConnection: close\r\n\r\n");
        for bad in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"GET https://a.example/ HTTP/1.1\r\n\r\n",
            b"CONNECT a.example HTTP/1.1\r\n\r\n",
            b"GET http://u@a.example/ HTTP/1.1\r\n\r\n",
            b"CONNECT a.example:99999 HTTP/1.1\r\n\r\n",
            b"\xff\r\n\r\n",
        ] {
            assert_eq!(Request::parse(bad), None, "{}", String::from_utf8_lossy(bad));
        }
    }
}
