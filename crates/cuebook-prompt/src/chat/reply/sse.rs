//! Server-sent events: from bytes, in whatever pieces they come, to events.
//!
//! This module knows the format and no provider's events. It reads no connection: the owner of one feeds it.

use super::reply_value::bad;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};

/// The most bytes that one event may have before it is refused: pictures travel in events too.
const LONGEST_EVENT: usize = 32 << 20;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent {
    /// What kind of event it is, if it says so.
    pub event: Option<String>,
    /// Its lines of data.
    pub data: String,
}

impl SseEvent {
    /// Whether it is the mark by which OpenAI, and everybody who speaks like it, ends a stream.
    pub fn is_done(&self) -> bool {
        self.data.trim() == "[DONE]"
    }

    /// Its data as JSON.
    pub fn json(&self) -> Result<serde_json::Value> {
        serde_json::from_str(&self.data)
            .map_err(|error| bad(format!("an event of the stream is not valid JSON: {error}")))
    }
}

/// Understands a stream of events. An event is complete at the empty line behind it; one that the end of the stream cuts
/// off is dropped, as the standard says.
///
/// ```
/// use cuebook::chat::reply::Sse;
///
/// let mut sse = Sse::new();
/// assert!(sse.feed(b"data: {\"delta\": \"Hel").is_empty());
/// for event in sse.feed(b"lo\"}\n\n") {
///     assert_eq!(event?.json()?["delta"], "Hello");
/// }
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug)]
pub struct Sse {
    longest: usize,
    /// The line that is not complete yet.
    line: Vec<u8>,
    /// The last byte was a carriage return: a newline that follows belongs to it.
    returned: bool,
    begun: bool,
    event: Option<String>,
    data: String,
    has_data: bool,
    failed: bool,
}

impl Default for Sse {
    fn default() -> Sse {
        Sse::new()
    }
}

impl Sse {
    /// A reader at the beginning of a stream.
    pub fn new() -> Sse {
        Sse::with_limit(LONGEST_EVENT)
    }

    /// The same, with another limit on the bytes of one event.
    pub fn with_limit(longest: usize) -> Sse {
        Sse {
            longest,
            line: Vec::new(),
            returned: false,
            begun: false,
            event: None,
            data: String::new(),
            has_data: false,
            failed: false,
        }
    }

    /// Takes further bytes and gives the events that they complete. An error is the last that comes: nothing more is read.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Result<SseEvent>> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !self.failed && !rest.is_empty() {
            if std::mem::take(&mut self.returned) && rest[0] == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &rest[..end.unwrap_or(rest.len())];
            if self.line.len() + self.data.len() + part.len() > self.longest {
                self.failed = true;
                events.push(Err(self.too_long()));
                break;
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { break };
            self.returned = rest[end] == b'\r';
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            events.extend(self.take_line(&String::from_utf8_lossy(&line)).map(Ok));
            // The memory of the line serves the next one.
            self.line = line;
            self.line.clear();
        }
        events
    }

    /// Whether the stream, if it ends here, cuts an event off.
    pub fn is_inside_event(&self) -> bool {
        self.has_data || !self.line.is_empty()
    }

    fn take_line(&mut self, line: &str) -> Option<SseEvent> {
        let line = if std::mem::replace(&mut self.begun, true) {
            line
        } else {
            line.strip_prefix('\u{feff}').unwrap_or(line)
        };
        if line.is_empty() {
            let event = self.event.take();
            let data = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.has_data).then_some(SseEvent { event, data });
        }
        let (field, value) = match line.split_once(':') {
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (line, ""),
        };
        match field {
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.push('\n');
                }
                self.data.push_str(value);
            }
            "event" => self.event = Some(value.to_owned()).filter(|name| !name.is_empty()),
            // Comments have no name; `id` and `retry` are for those who connect again.
            _ => {}
        }
        None
    }

    fn too_long(&self) -> Error {
        let message = format!("an event of the stream is larger than {} bytes", self.longest);
        let diagnostic = Diagnostic::new(Code::BadReply, message)
            .hint("check that the endpoint sends server-sent events, not a plain reply");
        Error::new(ErrorKind::Reply, diagnostic)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(bytes: &[u8]) -> Vec<(Option<String>, String)> {
        let events = Sse::new().feed(bytes).into_iter().map(Result::unwrap);
        events.map(|event| (event.event, event.data)).collect()
    }

    fn data(bytes: &[u8]) -> Vec<String> {
        events(bytes).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn an_event_is_its_lines_of_data_up_to_an_empty_line() {
        assert_eq!(data(b"data: a\ndata: b\n\ndata:c\n\n"), ["a\nb", "c"]);
        assert_eq!(
            events(b"event: message_stop\ndata: {}\n\ndata: x\n\n"),
            [(Some("message_stop".to_owned()), "{}".to_owned()), (None, "x".to_owned())]
        );
        assert_eq!(data(b"data\n\ndata:  two spaces\n\n"), ["", " two spaces"]);
    }

    #[test]
    fn lines_end_with_any_of_the_three_line_ends() {
        assert_eq!(data(b"data: a\r\n\r\ndata: b\r\rdata: c\n\n"), ["a", "b", "c"]);
    }

    #[test]
    fn comments_other_fields_and_a_byte_order_mark_are_passed_over() {
        assert_eq!(
            data(b"\xef\xbb\xbfdata: a\n\n: keep-alive\n\nid: 1\nretry: 5\ndata: b\n\n\n\n"),
            ["a", "b"]
        );
    }

    #[test]
    fn a_cut_off_event_is_dropped() {
        let mut sse = Sse::new();
        assert!(sse.feed(b"data: a\n").is_empty());
        assert!(sse.is_inside_event());
        assert_eq!(sse.feed(b"\n").len(), 1);
        assert!(!sse.is_inside_event());
    }

    #[test]
    fn the_mark_of_the_end_is_recognised_and_is_not_json() {
        let done = Sse::new().feed(b"data: [DONE]\n\n").remove(0).unwrap();
        assert!(done.is_done());
        assert_eq!(
            done.json().unwrap_err().to_string(),
            "ReplyError: an event of the stream is not valid JSON: expected value at line 1 column 2 [CB605]"
        );
        assert!(!SseEvent { event: None, data: "{}".into() }.is_done());
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(data(b"data: a\xffb\n\n"), ["a\u{fffd}b"]);
    }

    #[test]
    fn an_event_without_end_is_refused_and_nothing_is_read_after_it() {
        for endless in ["x".repeat(101), "data: 123456789\n".repeat(20)] {
            let mut sse = Sse::with_limit(100);
            let mut fed = endless.as_bytes().chunks(7).flat_map(|bytes| sse.feed(bytes));
            let error = fed.next().unwrap().unwrap_err();
            assert_eq!(fed.count(), 0);
            assert_eq!(error.diagnostic().message, "an event of the stream is larger than 100 bytes");
            assert!(sse.feed(b"\n\ndata: a\n\n").is_empty());
        }
        let mut sse = Sse::with_limit(100);
        let many = "data: 123456789\n\n".repeat(20);
        assert_eq!(sse.feed(many.as_bytes()).len(), 20);
    }

    fn stream() -> impl Strategy<Value = Vec<u8>> {
        let line = prop_oneof![
            Just(&b"data: {\"a\": \"\xc3\xa9\"}"[..]),
            Just(&b"data:"[..]),
            Just(&b"event: ping"[..]),
            Just(&b": comment"[..]),
            Just(&b"\xff:"[..]),
            Just(&b""[..]),
        ];
        let end = prop_oneof![Just(&b"\n"[..]), Just(&b"\r"[..]), Just(&b"\r\n"[..])];
        prop::collection::vec((line, end), 0..20)
            .prop_map(|lines| lines.into_iter().flat_map(|(line, end)| [line, end].concat()).collect())
    }

    proptest! {
        #[test]
        fn how_the_bytes_are_cut_never_matters(
            bytes in prop_oneof![stream(), prop::collection::vec(any::<u8>(), 0..60)],
            cuts in prop::collection::vec(1_usize..9, 1..40),
            limit in prop_oneof![Just(LONGEST_EVENT), 1_usize..40],
        ) {
            let comparable = |event: Result<SseEvent>| event.map_err(|error| error.to_string());
            let whole: Vec<_> = Sse::with_limit(limit).feed(&bytes).into_iter().map(comparable).collect();
            let mut sse = Sse::with_limit(limit);
            let mut pieces = Vec::new();
            let mut rest = bytes.as_slice();
            for cut in cuts.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.extend(sse.feed(piece).into_iter().map(comparable));
                rest = after;
            }
            prop_assert_eq!(pieces, whole);
        }
    }
}
