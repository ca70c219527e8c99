//! Messages as bytes: a header, an empty line, and JSON of the length that the header gives.
//!
//! A message that cannot be read is answered with an error, and the next one is read.

use std::io::{self, BufRead, Read, Write};
use std::thread::{self, JoinHandle};

use crossbeam_channel::bounded;
use lsp_server::{Connection, ErrorCode, Message};
use serde_json::{Value as Json, json};

/// The longest message, in bytes. The largest text that is looked at fits, however its letters are escaped.
const LONGEST: u64 = 128 << 20;
/// The longest line of a header, in bytes.
const LONGEST_LINE: u64 = 4096;

/// What an editor sent.
#[derive(Debug)]
enum Frame {
    Message(Message),
    /// The error for what is no message.
    Refused(ErrorCode, String),
    /// What needs no answer: an answer of the editor that no request asked for.
    Ignored,
}

/// The name of the length in a header, in small letters.
const LENGTH: &[u8] = b"content-length:";

/// The thread that writes to stdout.
pub(crate) struct Writer(JoinHandle<io::Result<()>>);

impl Writer {
    /// Waits until everything has been written.
    pub(crate) fn join(self) -> io::Result<()> {
        self.0.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// A connection to an editor on stdin and stdout. A thread that reads ends with the editor's `exit` or the end of stdin.
pub(crate) fn stdio() -> io::Result<(Connection, Writer)> {
    let (to_server, receiver) = bounded(0);
    let (sender, from_server) = bounded::<Message>(0);
    thread::Builder::new().name("lsp reader".to_owned()).spawn(move || {
        let mut frames = Frames::new(io::stdin().lock());
        // The channel ends with this thread, and the server with the channel.
        while let Ok(Some(frame)) = frames.next() {
            let is_open = match frame {
                Frame::Message(message) => {
                    let is_exit = matches!(&message, Message::Notification(one) if one.method == "exit");
                    to_server.send(message).is_ok() && !is_exit
                }
                Frame::Refused(code, message) => refuse(code, &message).is_ok(),
                Frame::Ignored => true,
            };
            if !is_open {
                return;
            }
        }
    })?;
    let writer = thread::Builder::new().name("lsp writer".to_owned()).spawn(move || {
        from_server.into_iter().try_for_each(|message| message.write(&mut io::stdout().lock()))
    })?;
    Ok((Connection { sender, receiver }, Writer(writer)))
}

/// Answers what has no id that an answer could name.
fn refuse(code: ErrorCode, message: &str) -> io::Result<()> {
    let error = json!({"code": code as i32, "message": message});
    let text = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
    let mut output = io::stdout().lock();
    write!(output, "Content-Length: {}\r\n\r\n{text}", text.len())?;
    output.flush()
}

/// Messages of an editor.
struct Frames<R> {
    input: R,
    /// Whether the name of the length has been read already.
    has_begun: bool,
    /// Whether a bad header was read, so that the next one must be found. The editor gets its answer before that.
    is_lost: bool,
    /// Bytes of a message that is too long.
    surplus: u64,
}

impl<R: BufRead> Frames<R> {
    fn new(input: R) -> Frames<R> {
        Frames { input, has_begun: false, is_lost: false, surplus: 0 }
    }

    /// The next message, or what is in its place; `None` at the end of the input.
    fn next(&mut self) -> io::Result<Option<Frame>> {
        io::copy(&mut self.input.by_ref().take(std::mem::take(&mut self.surplus)), &mut io::sink())?;
        if std::mem::take(&mut self.is_lost) {
            self.skip_to_header()?;
        }
        let length = match self.header()? {
            None => return Ok(None),
            Some(Ok(length)) => length,
            Some(Err(why)) => {
                self.is_lost = true;
                return Ok(Some(Frame::Refused(ErrorCode::ParseError, why.to_owned())));
            }
        };
        if length > LONGEST {
            self.surplus = length;
            let why = format!("the message has {length} bytes, and at most {LONGEST} are read");
            return Ok(Some(Frame::Refused(ErrorCode::InvalidRequest, why)));
        }
        let mut bytes = Vec::new();
        self.input.by_ref().take(length).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 == length).then(|| parse(&bytes)))
    }

    /// Reads a header and the empty line behind it, and gives the length of the message.
    fn header(&mut self) -> io::Result<Option<Result<u64, &'static str>>> {
        let mut length = None;
        loop {
            let mut line = if std::mem::take(&mut self.has_begun) { LENGTH.to_vec() } else { Vec::new() };
            self.input.by_ref().take(LONGEST_LINE).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                return Ok(None);
            }
            if !line.ends_with(b"\n") {
                return Ok(Some(Err("a line of the header has no end")));
            }
            let line = line.trim_ascii().to_ascii_lowercase();
            if line.is_empty() {
                return Ok(Some(length.ok_or("the header has no Content-Length")));
            }
            // Behind a message that was longer than its header said, a header need not begin a line.
            let Some(at) = line.windows(LENGTH.len()).position(|name| name == LENGTH) else {
                match line.contains(&b':') {
                    true => continue,
                    false => return Ok(Some(Err("a line of the header has no `:`"))),
                }
            };
            let value = line[at + LENGTH.len()..].trim_ascii();
            match std::str::from_utf8(value).ok().and_then(|number| number.parse().ok()) {
                Some(number) => length = Some(number),
                None => return Ok(Some(Err("Content-Length is not a number"))),
            }
        }
    }

    /// After a bad header, leaves out everything to the next `Content-Length:`, which need not begin a line.
    fn skip_to_header(&mut self) -> io::Result<()> {
        let mut matched = 0;
        for byte in self.input.by_ref().bytes() {
            let byte = byte?.to_ascii_lowercase();
            // Only its first letter can begin the name again.
            matched = if byte == LENGTH[matched] { matched + 1 } else { usize::from(byte == LENGTH[0]) };
            if matched == LENGTH.len() {
                self.has_begun = true;
                break;
            }
        }
        Ok(())
    }
}

/// The message in these bytes.
fn parse(bytes: &[u8]) -> Frame {
    let json: Json = match serde_json::from_slice(bytes) {
        Ok(json) => json,
        Err(error) => {
            return Frame::Refused(ErrorCode::ParseError, format!("the message is not JSON: {error}"));
        }
    };
    let Json::Object(object) = &json else {
        return Frame::Refused(ErrorCode::InvalidRequest, "a message is an object".to_owned());
    };
    let has = |name: &str| object.contains_key(name);
    if !has("method") && (has("result") || has("error")) {
        return Frame::Ignored;
    }
    let wrong = match (object.get("method"), object.get("id")) {
        (None, _) => Some("the message has no method"),
        (Some(method), _) if !method.is_string() => Some("the method is not a string"),
        (_, Some(id)) if !id.is_string() && id.as_i64().is_none_or(|id| i32::try_from(id).is_err()) => {
            Some("the id is neither a string nor an integer of 32 bits")
        }
        _ => None,
    };
    if let Some(wrong) = wrong {
        return Frame::Refused(ErrorCode::InvalidRequest, wrong.to_owned());
    }
    match serde_json::from_value(json) {
        Ok(message) => Frame::Message(message),
        Err(_) => {
            Frame::Refused(ErrorCode::InvalidRequest, "the message is not one of the protocol".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read: the method of a message, or the code of an error.
    fn frames(bytes: impl BufRead) -> Vec<String> {
        let mut frames = Frames::new(bytes);
        let mut found = Vec::new();
        while let Some(frame) = frames.next().unwrap() {
            found.push(match frame {
                Frame::Message(Message::Request(request)) => request.method,
                Frame::Message(Message::Notification(notification)) => notification.method,
                Frame::Message(Message::Response(_)) => "response".to_owned(),
                Frame::Refused(code, why) => format!("{} {why}", code as i32),
                Frame::Ignored => "ignored".to_owned(),
            });
        }
        found
    }

    fn framed(text: &str) -> String {
        format!("Content-Length: {}\r\n\r\n{text}", text.len())
    }

    const GOOD: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "good"}"#;

    #[test]
    fn the_message_after_a_bad_one_is_read() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let parse = ["", "{nope", &deep];
        let invalid =
            ["[]", "7", "{}", r#"{"id": {}, "method": "x"}"#, r#"{"id": 3000000000, "method": "x"}"#];
        for (code, texts) in [("-32700", &parse[..]), ("-32600", &invalid[..])] {
            for text in texts {
                let found = frames(format!("{}{}", framed(text), framed(GOOD)).as_bytes());
                assert_eq!(found.len(), 2, "{text}: {found:?}");
                assert!(found[0].starts_with(code) && found[1] == "good", "{text}: {found:?}");
            }
        }
        let ignored = framed(r#"{"id": null, "error": {"code": -32700, "message": "x"}}"#);
        assert_eq!(frames(format!("{ignored}{}", framed(GOOD)).as_bytes()), ["ignored", "good"]);
        let mut bytes = b"Content-Length: 4\r\n\r\n\xff\xfe{}".to_vec();
        bytes.extend(framed(GOOD).bytes());
        assert_eq!(frames(&bytes[..]).len(), 2);
    }

    #[test]
    fn the_header_after_a_bad_one_is_found() {
        let long = "x".repeat(3 * LONGEST_LINE as usize);
        for bad in [
            "Content-Length: x\r\n\r\n{}",
            "X: 1\r\n\r\n",
            "\r\n",
            "{}\n{}Con",
            &long,
            "Content-Length: -1\n\n",
        ] {
            let found = frames(format!("{bad}{}", framed(GOOD)).as_bytes());
            assert!(found.len() == 2 && found[1] == "good", "{bad:?}: {found:?}");
        }
        let lengths = [
            "content-length:45\n\n",
            "{\"a\": 1}Content-Length: 45\n\n",
            "X: y\r\nContent-Length : 1\r\nCONTENT-LENGTH:  45\r\n\r\n",
        ];
        for header in lengths {
            assert_eq!(frames(format!("{header}{GOOD}").as_bytes()), ["good"], "{header:?}");
        }
    }

    #[test]
    fn a_message_that_is_too_long_is_left_out() {
        let start = format!("Content-Length: {}\r\n\r\n", LONGEST + 1);
        let end = framed(GOOD);
        let body = io::BufReader::new(io::repeat(b' ').take(LONGEST + 1));
        let found = frames(start.as_bytes().chain(body).chain(end.as_bytes()));
        assert!(found.len() == 2 && found[0].starts_with("-32600") && found[1] == "good", "{found:?}");
        // The end of the input ends a message that is not whole.
        assert_eq!(frames(&b"Content-Length: 99999999999999999\r\n\r\n{}"[..]).len(), 1);
        assert_eq!(frames(&b"Content-Length: 99\r\n\r\n{}"[..]).len(), 0);
    }
}
