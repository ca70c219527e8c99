//! As much HTTP/1.1 as a client of a provider needs to see.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;
use std::time::Instant;

/// The most bytes of a head, and of a body.
const MAX_HEAD: u64 = 64 << 10;
const MAX_BODY: u64 = 256 << 20;

/// A request as it came.
pub(crate) struct Incoming {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// When its last byte was read.
    pub at: Instant,
}

impl Incoming {
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Reads the next request; `None` if the client is done.
pub(crate) fn read(reader: &mut BufReader<TcpStream>) -> io::Result<Option<Incoming>> {
    let mut budget = MAX_HEAD;
    let first = line(reader, &mut budget)?;
    if first.is_empty() {
        return Ok(None);
    }
    let mut words = first.split_whitespace();
    let (Some(method), Some(path)) = (words.next(), words.next()) else {
        return Err(bad("no request line"));
    };
    // What begins a conversation in TLS can look like two words now and then.
    if !words.next().is_some_and(|version| version.starts_with("HTTP/1.")) {
        return Err(bad("no request line"));
    }
    let mut incoming = Incoming {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: Vec::new(),
        body: Vec::new(),
        at: Instant::now(),
    };
    loop {
        let line = line(reader, &mut budget)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').ok_or_else(|| bad("a header without a colon"))?;
        incoming.headers.push((name.trim().to_owned(), value.trim().to_owned()));
    }
    if incoming.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
        incoming.body = chunks(reader)?;
    } else if let Some(length) = incoming.header("content-length") {
        let length: u64 = length.parse().map_err(|_| bad("no length"))?;
        let taken = reader.by_ref().take(length.min(MAX_BODY)).read_to_end(&mut incoming.body)?;
        if taken as u64 != length {
            return Err(bad("the body is incomplete"));
        }
    }
    incoming.at = Instant::now();
    Ok(Some(incoming))
}

fn chunks(reader: &mut BufReader<TcpStream>) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut budget = 1 << 10;
        let size = u64::from_str_radix(line(reader, &mut budget)?.trim(), 16).map_err(|_| bad("no chunk"))?;
        if size == 0 {
            line(reader, &mut budget)?;
            return Ok(body);
        }
        if body.len() as u64 + size > MAX_BODY {
            return Err(bad("too much"));
        }
        reader.by_ref().take(size).read_to_end(&mut body)?;
        line(reader, &mut budget)?;
    }
}

fn line(reader: &mut BufReader<TcpStream>, budget: &mut u64) -> io::Result<String> {
    let mut line = Vec::new();
    let taken = reader.by_ref().take(*budget).read_until(b'\n', &mut line)?;
    *budget = budget.saturating_sub(taken as u64);
    if *budget == 0 {
        return Err(bad("the head is too long"));
    }
    Ok(String::from_utf8_lossy(&line).trim_end_matches(['\r', '\n']).to_owned())
}

fn bad(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// What a status is called.
pub(crate) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        301 => "Moved Permanently",
        302 => "Found",
        307 => "Temporary Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        408 => "Request Timeout",
        422 => "Unprocessable Entity",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        529 => "Overloaded",
        _ => "Status",
    }
}
