//! HTTP requests of hooks, against a real server.

#![allow(clippy::unwrap_used)] // A test that fails to unwrap has failed.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use cuebook::hooks::{Http, HttpRequest, HttpResponse, Refusal};
use cuebook_hooks::http::HttpClient;

const SECOND: Duration = Duration::from_secs(1);

/// "größe", packed.
const GZIP: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\x2f\x3a\xbc\xed\xf0\xfc\x54\x00\x89\xa9\xd3\x5b\x07\x00\x00\x00";
/// 64 KiB of `a`, packed; several in a row unpack to several times as much.
const GZIP_64K: &[u8] = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\xed\xc1\x81\x00\x00\x00\x00\x80\x20\xd6\xfd\x25\x16\xa9\x0a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x6a\xff\x91\x20\xc3\x00\x00\x01\x00";

/// A server on 127.0.0.1 that answers each connection once.
struct Server {
    port: u16,
}

impl Server {
    /// The closure sees the whole request and writes the whole answer.
    fn start(answer: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let answer = Arc::clone(&answer);
                thread::spawn(move || {
                    let request = read_request(&mut stream);
                    answer(&request, &mut stream);
                });
            }
        });
        Server { port }
    }

    /// Answers all requests with the same bytes.
    fn replying(answer: impl Into<Vec<u8>>) -> Server {
        let answer = answer.into();
        // A client that has read enough hangs up.
        Server::start(move |_, stream| drop(stream.write_all(&answer)))
    }

    /// Answers with the request.
    fn echo() -> Server {
        Server::start(|request, stream| stream.write_all(&ok("", request)).unwrap())
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// A client that may ask this server.
    fn client(&self) -> HttpClient {
        HttpClient::new(vec![format!("127.0.0.1:{}", self.port)])
    }

    fn get(&self) -> Result<HttpResponse, Refusal> {
        self.client().request(&get(&self.url("/")))
    }
}

fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 1024];
    loop {
        let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
            if body.len() >= length {
                return String::from_utf8(bytes).unwrap();
            }
        }
        if bytes.first() == Some(&0x16) {
            return "TLS".into();
        }
        match stream.read(&mut buffer).unwrap() {
            0 => return String::from_utf8(bytes).unwrap(),
            read => bytes.extend(&buffer[..read]),
        }
    }
}

fn ok(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head =
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{headers}Content-Length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn redirect(status: u16, location: &str) -> String {
    format!(
        "HTTP/1.1 {status} Moved\r\nConnection: close\r\nLocation: {location}\r\nContent-Length: 4\r\n\r\nbody"
    )
}

fn get(url: &str) -> HttpRequest {
    HttpRequest {
        method: "GET".into(),
        url: url.into(),
        headers: Vec::new(),
        body: None,
        timeout: Duration::from_secs(20),
    }
}

#[test]
fn a_listed_host_is_asked_and_its_answer_given() {
    let server = Server::replying(ok("X-One: 1\r\nx-two: a\r\nX-TWO: b\r\n", "größe"));
    for (entry, url) in [
        (format!("127.0.0.1:{}", server.port), server.url("/a?b#c")),
        ("127.0.0.1".into(), server.url("/a?b")),
        (format!("LOCALHOST:{}", server.port), format!("http://LocalHost:{}/a?b", server.port)),
    ] {
        let response = HttpClient::new(vec![entry]).request(&get(&url)).unwrap();
        assert_eq!((response.status, response.body.as_str()), (200, "größe"));
        assert!(response.url.ends_with(&format!(":{}/a?b", server.port)), "{}", response.url);
        let header = |name: &str| {
            response.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        assert_eq!((header("x-one"), header("x-two")), (Some("1"), Some("a, b")));
    }
}

#[test]
fn a_request_says_what_the_hook_says() {
    let server = Server::echo();
    let mut request = get(&server.url("/p q?r"));
    request.method = "POST".into();
    request.headers = vec![("X-Groesse".into(), "größe".into()), ("X-A".into(), "b".into())];
    request.body = Some("the body".into());
    let seen = server.client().request(&request).unwrap().body;
    assert!(seen.starts_with("POST /p%20q?r HTTP/1.1\r\n"), "{seen}");
    assert!(seen.ends_with("\r\n\r\nthe body"), "{seen}");
    for line in [
        format!("host: 127.0.0.1:{}\r\n", server.port),
        format!("user-agent: cuebook/{}\r\n", env!("CARGO_PKG_VERSION")),
        "content-length: 8\r\n".into(),
        "x-groesse: größe\r\n".into(),
        "x-a: b\r\n".into(),
    ] {
        assert!(seen.contains(&line), "{line}{seen}");
    }
    request.headers = vec![("User-Agent".into(), "mine".into())];
    request.body = None;
    let seen = server.client().request(&request).unwrap().body;
    assert!(seen.contains("user-agent: mine\r\n") && !seen.contains("cuebook/"), "{seen}");
    assert!(seen.contains("content-length: 0\r\n"), "{seen}");
}

#[test]
fn private_hosts_are_refused_in_every_notation() {
    let server = Server::start(|_, _| panic!("the server was asked"));
    let port = server.port;
    let client = HttpClient::new(vec!["localhost:1".into(), format!("127.0.0.2:{port}")]);
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "0x7f.0.0.1",
        "2130706433",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "100.100.100.200",
    ] {
        let refusal = client.request(&get(&format!("http://{host}:{port}/?secret"))).unwrap_err();
        assert_eq!(refusal.exception, "PermissionError", "{host}: {}", refusal.message);
        assert!(refusal.message.contains("in hooks.http_hosts of cuebook.toml"), "{}", refusal.message);
        assert!(!refusal.message.contains("secret"), "{}", refusal.message);
    }
    let refusal = client.request(&get(&server.url("/"))).unwrap_err();
    assert_eq!(
        refusal.message,
        format!(
            "http_request: 127.0.0.1 is this machine (127.0.0.1); list \"127.0.0.1:{port}\" in hooks.http_hosts of \
             cuebook.toml to allow it"
        )
    );
}

#[test]
fn a_redirect_is_checked_like_a_request() {
    let hidden = Server::start(|_, _| panic!("the hidden server was asked"));
    for status in [301, 302, 303, 307, 308] {
        let server = Server::replying(redirect(status, &hidden.url("/")));
        let refusal = server.get().unwrap_err();
        assert_eq!(refusal.exception, "PermissionError", "{status}");
        assert!(refusal.message.contains(&format!("\"127.0.0.1:{}\"", hidden.port)), "{}", refusal.message);
    }
    for location in
        ["file:///etc/passwd", "ftp://127.0.0.1/", "http://user:pass@127.0.0.1/", "http://127.0.0.1:x/"]
    {
        let refusal = Server::replying(redirect(302, location)).get().unwrap_err();
        assert_eq!(refusal.exception, "PermissionError", "{location}");
    }
}

#[test]
fn redirects_are_followed_five_times() {
    let server = Server::start(|request, stream| {
        let left: u32 = request[5..6].parse().unwrap();
        let answer = match left {
            0 => ok("", "arrived"),
            left => redirect(302, &format!("../{}", left - 1)).into_bytes(),
        };
        stream.write_all(&answer).unwrap();
    });
    let client = server.client();
    let response = client.request(&get(&server.url("/5"))).unwrap();
    assert_eq!((response.body.as_str(), response.url), ("arrived", server.url("/0")));
    assert_eq!(client.request(&get(&server.url("/6"))).unwrap_err().exception, "OSError");

    let refusal = Server::replying(redirect(302, "/")).get().unwrap_err();
    assert_eq!(refusal.message, "http_request: 127.0.0.1 redirected more than 5 times");
}

#[test]
fn secrets_are_not_sent_on_to_another_host() {
    let echo = Server::echo();
    let port = echo.port;
    for (location, kept) in [(format!("http://localhost:{port}/"), false), ("/echo".into(), true)] {
        let server = Server::start(move |request, stream| {
            let echoed = request.starts_with("GET /echo");
            let answer = if echoed { ok("", request) } else { redirect(302, &location).into_bytes() };
            stream.write_all(&answer).unwrap();
        });
        let client = HttpClient::new(vec!["127.0.0.1".into(), "localhost".into()]);
        let mut request = get(&server.url("/"));
        let given = [
            ("Authorization", "s3cret"),
            ("Cookie", "s3cret"),
            ("X-Api-Key", "s3cret"),
            ("Accept", "text/a"),
        ];
        request.headers = given.map(|(name, value)| (name.into(), value.into())).to_vec();
        let seen = client.request(&request).unwrap().body;
        assert_eq!(seen.matches("s3cret").count(), if kept { 3 } else { 0 }, "{seen}");
        assert!(seen.contains("accept: text/a\r\n"), "{seen}");
    }
}

#[test]
fn a_body_follows_a_redirect_that_keeps_the_method() {
    for (status, start, end) in [(307, "POST", "\r\n\r\nbody"), (302, "GET", "\r\n\r\n")] {
        let server = Server::start(move |request, stream| {
            let first = request.contains(" /first ");
            let answer = if first { redirect(status, "/second").into_bytes() } else { ok("", request) };
            stream.write_all(&answer).unwrap();
        });
        let mut request = get(&server.url("/first"));
        (request.method, request.body) = ("POST".into(), Some("body".into()));
        let seen = server.client().request(&request).unwrap().body;
        assert!(seen.starts_with(start) && seen.ends_with(end), "{seen}");
    }
}

#[test]
fn headers_cannot_smuggle_lines() {
    let server = Server::start(|_, _| panic!("the server was asked"));
    for (name, value) in [("X", "a\r\nEvil: 1"), ("X\r\nEvil", "1"), ("X", "a\n"), ("Host", "evil"), ("", "")]
    {
        let mut request = get(&server.url("/"));
        request.headers = vec![(name.into(), value.into())];
        assert_eq!(server.client().request(&request).unwrap_err().exception, "ValueError", "{name:?}");
    }
    for path in ["/ HTTP/1.1\r\nEvil: 1\r\n", "/\n"] {
        assert_eq!(
            server.client().request(&get(&server.url(path))).unwrap_err().exception,
            "ValueError",
            "{path:?}"
        );
    }
}

#[test]
fn any_status_is_an_answer() {
    for status in [204, 304, 300, 302, 404, 418, 500, 503, 999] {
        let answer = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n");
        let answer = if matches!(status, 204 | 304) { answer } else { answer.replace("gzip", "identity") };
        assert_eq!(Server::replying(answer).get().unwrap().status, status);
    }
}

#[test]
fn a_body_of_4_mib_is_read_and_a_larger_one_is_refused() {
    let most = "x".repeat(4 << 20);
    assert_eq!(Server::replying(ok("", &most)).get().unwrap().body.len(), 4 << 20);
    let endless = Server::start(|_, stream| {
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while sent.is_ok() {
            sent = stream.write_all(&[b'x'; 1024]);
        }
    });
    let packed = ok("Content-Encoding: gzip\r\n", GZIP_64K.repeat(65));
    for server in [Server::replying(ok("", most + "x")), endless, Server::replying(packed)] {
        let refusal = server.get().unwrap_err();
        assert_eq!(refusal.exception, "OSError");
        assert_eq!(refusal.message, "http_request: the answer of 127.0.0.1 has more than 4194304 bytes");
    }
}

#[test]
fn packed_answers_are_unpacked_and_other_bytes_refused() {
    let response = Server::replying(ok("Content-Encoding: gzip\r\n", GZIP)).get().unwrap();
    assert_eq!(response.body, "größe");
    assert!(response.headers.iter().all(|(name, _)| name != "content-encoding"));
    let broken = Server::replying(ok("Content-Encoding: gzip\r\n", &GZIP[..12])).get().unwrap_err();
    assert_eq!(broken.exception, "OSError", "{}", broken.message);

    let refusal = Server::replying(ok("Content-Type: text/plain; charset=latin1\r\n", b"gr\xf6\xdfe"))
        .get()
        .unwrap_err();
    assert_eq!(refusal.exception, "ValueError");
    assert_eq!(refusal.message, "http_request: the answer of 127.0.0.1 is not text in UTF-8");
}

#[test]
fn head_has_headers_and_no_body() {
    let head = "HTTP/1.1 200 OK\r\nConnection: close\r\nX-A: b\r\nContent-Encoding: gzip\r\nContent-Length: 99\r\n\r\n";
    let server = Server::replying(head);
    let response =
        server.client().request(&HttpRequest { method: "HEAD".into(), ..get(&server.url("/")) }).unwrap();
    assert_eq!((response.status, response.body.as_str()), (200, ""));
    assert!(response.headers.contains(&("x-a".into(), "b".into())));
}

#[test]
fn a_slow_server_is_left_at_the_timeout() {
    let silent = Server::start(|_, _| thread::sleep(20 * SECOND));
    let dripping = Server::start(|_, stream| {
        let mut sent = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while sent.is_ok() {
            thread::sleep(SECOND / 20);
            sent = stream.write_all(b"x");
        }
    });
    let circling = Server::start(|_, stream| {
        thread::sleep(SECOND / 8);
        let _ = stream.write_all(redirect(302, "/").as_bytes());
    });
    for server in [silent, dripping, circling] {
        let started = Instant::now();
        let request = HttpRequest { timeout: SECOND / 2, ..get(&server.url("/")) };
        let refusal = server.client().request(&request).unwrap_err();
        assert_eq!(refusal.exception, "TimeoutError");
        assert_eq!(refusal.message, "http_request: 127.0.0.1: no complete answer within 500ms");
        assert!(started.elapsed() < 5 * SECOND);
    }
    let request = HttpRequest { timeout: Duration::ZERO, ..get("http://127.0.0.1/") };
    assert_eq!(HttpClient::new(Vec::new()).request(&request).unwrap_err().exception, "TimeoutError");
}

#[test]
fn a_server_that_is_not_there_or_talks_nonsense_is_an_error() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let client = HttpClient::new(vec!["127.0.0.1".into()]);
    for (url, exception) in [
        (format!("http://127.0.0.1:{gone}/"), "ConnectionError"),
        ("http://no-such-host.invalid/".into(), "ConnectionError"),
        (Server::replying("nonsense\r\n\r\n").url("/"), "OSError"),
        (Server::replying("").url("/"), "ConnectionError"),
        (Server::replying("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort").url("/"), "ConnectionError"),
        (Server::replying("HTTP/1.1 200 OK\r\n\r\n").url("/").replace("http:", "https:"), "ConnectionError"),
    ] {
        let refusal = client.request(&get(&url)).unwrap_err();
        assert_eq!(refusal.exception, exception, "{url}: {}", refusal.message);
    }
}

#[test]
fn no_answer_makes_the_client_panic() {
    for (head, body) in [
        ("101 Switching Protocols\r\nUpgrade: x", ""),
        ("103 Early Hints\r\nLink: x", "HTTP/1.1 200 OK\r\n\r\n"),
        ("200 OK\r\nContent-Length: -1", "x"),
        ("200 OK\r\nContent-Length: 99999999999999999999999", "x"),
        ("200 OK\r\nContent-Length: 1\r\nContent-Length: 2", "xy"),
        ("200 OK\r\nTransfer-Encoding: chunked", "zz\r\nx"),
        ("200 OK\r\nTransfer-Encoding: chunked", "ffffffffffffffffffff\r\nx"),
        ("200 OK\r\nTransfer-Encoding: chunked, gzip\r\nContent-Encoding: gzip, gzip", "0\r\n\r\n"),
        ("200\r\nX: \u{e4}", ""),
        ("302 Found\r\nLocation: http://[", ""),
        ("302 Found\r\nLocation: \u{e4} \u{e4}", ""),
        ("302 Found\r\nLocation: ", ""),
        ("000 Zero", ""),
    ] {
        let server = Server::replying(format!("HTTP/1.1 {head}\r\nConnection: close\r\n\r\n{body}"));
        // Whether it is an answer or an error is the library's decision.
        let _ = server.client().request(&HttpRequest { timeout: SECOND, ..get(&server.url("/")) });
    }
    let many: String = (0..5000).map(|number| format!("X-{number}: y\r\n")).collect();
    assert_eq!(Server::replying(ok(&many, "")).get().unwrap_err().exception, "OSError");
}

#[test]
fn the_proxy_of_the_environment_is_not_used() {
    const PROXY: &str = "http://127.0.0.1:1";
    if std::env::var("ALL_PROXY").as_deref() == Ok(PROXY) {
        Server::replying(ok("", "direct")).get().unwrap();
        return;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "the_proxy_of_the_environment_is_not_used"]);
    let status = again.env("ALL_PROXY", PROXY).env("http_proxy", PROXY).env_remove("NO_PROXY").status();
    assert!(status.unwrap().success());
}
