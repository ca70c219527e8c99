//! Recordings: what a provider was asked and what it answered, to be played back offline, byte for byte.
//!
//! A recording is a file of lines, one for each exchange: the request (its interface, path and body, and the hash of them), and the reply as it came.
//! Headers of requests are not part of it, so no key is; secrets that turn up in bodies are taken out. Each line is
//! written at once when its exchange is over. Several threads may share a recording: a request finds the first reply to the
//! very same request that was not taken yet.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::prelude::{BASE64_STANDARD, Engine as _};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::transport::{
    Client, Outgoing, ReplyFailure, ReplyFailureKind, ReplyHead, ReplyListener, Transport,
};

/// The number of this form of a recording.
const VERSION: u64 = 1;
/// Bytes of a recording.
const LARGEST: u64 = 1 << 30;
/// Headers of replies that matter for how a reply is understood, and when to ask again. Others may hold cookies.
const KEPT: [&str; 3] = ["content-type", "retry-after", "retry-after-ms"];
/// Characters of a value in a message.
const LONGEST_SHOWN: usize = 200;
/// Characters of it that stand before the place where two texts differ.
const BEFORE: usize = 30;

/// One request and its reply.
#[derive(Debug, Clone)]
struct Exchange {
    request: Json,
    hash: String,
    /// `None` if no reply came.
    head: Option<ReplyHead>,
    body: Vec<u8>,
    /// How the reply broke, if it did.
    broken: Option<ReplyFailure>,
}

fn request(out: &Outgoing<'_>) -> Json {
    let body: Json = serde_json::from_slice(&out.body).unwrap_or_default();
    json!({"api": out.api.as_str(), "path": out.path, "body": body})
}

fn hash(request: &Json) -> String {
    cuebook::sha256::hex(&Sha256::digest(sorted(request).to_string()))
}

/// The value with its keys in order, so that their order does not matter.
fn sorted(value: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort();
            Json::Object(keys.into_iter().map(|key| (key.clone(), sorted(&members[key]))).collect())
        }
        Json::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

impl Exchange {
    fn to_line(&self) -> String {
        let mut line = json!({"version": VERSION, "hash": self.hash, "request": self.request});
        if let Some(head) = &self.head {
            line["status"] = json!(head.status);
            let headers: Map<_, _> =
                head.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), json!(value))).collect();
            line["headers"] = Json::Object(headers);
        }
        match std::str::from_utf8(&self.body) {
            Ok(text) => line["body"] = json!(text),
            Err(_) => line["body_base64"] = json!(BASE64_STANDARD.encode(&self.body)),
        }
        if let Some(broken) = &self.broken {
            line["broken"] = json!({"what": broken.what.as_str(), "message": broken.message});
            if broken.sent != broken.what.is_behind_request() {
                line["broken"]["sent"] = json!(broken.sent);
            }
        }
        format!("{line}\n")
    }

    fn from_line(line: &str) -> Result<Exchange, String> {
        let line: Json = serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"))?;
        if line["version"] != VERSION {
            return Err(format!(
                "unsupported version {}; this program reads version {VERSION}",
                line["version"]
            ));
        }
        let request =
            line.get("request").filter(|request| request.is_object()).ok_or("it has no `request`")?;
        if line["hash"] != hash(request) {
            return Err("its `hash` does not match its `request`: the file was changed".to_owned());
        }
        let body = match (line["body"].as_str(), line["body_base64"].as_str()) {
            (Some(text), _) => text.as_bytes().to_vec(),
            (None, Some(text)) => {
                BASE64_STANDARD.decode(text).map_err(|error| format!("`body_base64`: {error}"))?
            }
            (None, None) => return Err("it has no `body`".to_owned()),
        };
        let status = line.get("status").map(|status| {
            status.as_u64().and_then(|status| u16::try_from(status).ok()).ok_or("its `status` is invalid")
        });
        let head = status.transpose()?.map(|status| {
            let headers = line["headers"].as_object().into_iter().flatten();
            let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
            ReplyHead { status, headers: headers.map(|(name, value)| (name.clone(), text(value))).collect() }
        });
        let broken = match line.get("broken") {
            None => None,
            Some(broken) => {
                let what = ReplyFailureKind::ALL.iter().find(|(_, name)| broken["what"] == *name);
                let (what, _) = what.ok_or("its `broken.what` is invalid")?;
                let message = broken["message"].as_str().unwrap_or_default().to_owned();
                let sent = broken["sent"].as_bool().unwrap_or_else(|| what.is_behind_request());
                Some(ReplyFailure { what: *what, message, sent })
            }
        };
        if head.is_none() && broken.is_none() {
            return Err("it has no `status` and no `broken`".to_owned());
        }
        Ok(Exchange { hash: hash(request), request: request.clone(), head, body, broken })
    }
}

/// Writes exchanges down.
#[derive(Debug)]
pub struct Recorder {
    path: PathBuf,
    file: Mutex<File>,
}

impl Recorder {
    /// Begins a recording.
    ///
    /// # Errors
    ///
    /// `CB518` if the file has something in it already: replies that were paid for are not written over.
    pub fn create(path: &Path) -> Result<Arc<Recorder>> {
        let name = path.display().to_string();
        if path.metadata().is_ok_and(|known| known.is_file() && known.len() > 0) {
            let message = format!("{name} exists, and --record does not overwrite files");
            let hint = "name another file, or delete this one first";
            let diagnostic = Diagnostic::new(Code::WouldOverwrite, message).hint(hint);
            return Err(Error::new(ErrorKind::Usage, diagnostic).with("file", name));
        }
        Recorder::append(path)
    }

    /// Goes on with a recording of a thread that is taken up again, or begins one.
    ///
    /// # Errors
    ///
    /// `CB723` if the file is something else.
    pub fn resume(path: &Path) -> Result<Arc<Recorder>> {
        let is_begun = path.metadata().is_ok_and(|known| known.is_file() && known.len() > 0);
        if is_begun {
            Recording::read(path)?;
        }
        let recorder = Recorder::append(path)?;
        if is_begun && !ends_with_newline(path) {
            let ended = recorder.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(b"\n");
            ended.map_err(|error| files::write_error(&path.display().to_string(), &error))?;
        }
        Ok(recorder)
    }

    /// Continues an existing recording, or begins one.
    pub fn append(path: &Path) -> Result<Arc<Recorder>> {
        let name = path.display().to_string();
        // Opening a pipe waits for a reader, and a device keeps nothing that could be played back.
        files::plain_target(path).map_err(|error| files::write_error(&name, &error))?;
        let mut options = OpenOptions::new();
        // What prompts and replies say is for the user alone.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.append(true).create(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                let diagnostic =
                    Diagnostic::new(Code::WriteFailed, "the recording's directory does not exist");
                let hint = "create the directory first, or name a file in another one";
                Error::new(ErrorKind::Io, diagnostic.file(&name).hint(hint))
            }
            _ => files::write_error(&name, &error),
        })?;
        Ok(Arc::new(Recorder { path: path.to_owned(), file: Mutex::new(file) }))
    }

    pub(super) fn around(self: &Arc<Recorder>, client: &Client) -> Recorded {
        Recorded { inner: Arc::new(client.clone()), recorder: self.clone() }
    }

    /// Writes a line, or nothing of it.
    fn write(&self, exchange: &Exchange) -> std::io::Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let before = file.seek(std::io::SeekFrom::End(0))?;
        let written = file.write_all(exchange.to_line().as_bytes()).and_then(|()| file.sync_data());
        if written.is_err() {
            // Half of a line would spoil the recording; if it cannot be taken back, reading it says so.
            let _ = file.set_len(before);
        }
        written
    }
}

/// A client whose exchanges are written down.
#[derive(Debug)]
pub(super) struct Recorded {
    inner: Arc<dyn Transport>,
    recorder: Arc<Recorder>,
}

/// Passes on what is heard, and keeps it.
struct RecordingListener<'h> {
    to: &'h mut dyn ReplyListener,
    head: Option<ReplyHead>,
    body: Vec<u8>,
}

impl ReplyListener for RecordingListener<'_> {
    fn head(&mut self, head: &ReplyHead) {
        let kept = |(name, _): &&(String, String)| {
            let name = name.to_ascii_lowercase();
            KEPT.contains(&name.as_str()) || name.contains("ratelimit")
        };
        self.head = Some(ReplyHead {
            status: head.status,
            headers: head.headers.iter().filter(kept).cloned().collect(),
        });
        self.to.head(head);
    }

    fn bytes(&mut self, bytes: &[u8]) -> bool {
        self.body.extend_from_slice(bytes);
        self.to.bytes(bytes)
    }
}

impl Transport for Recorded {
    fn provider_state(&self, out: &Outgoing<'_>, hear: &mut dyn ReplyListener) -> Result<(), ReplyFailure> {
        let mut listener = RecordingListener { to: hear, head: None, body: Vec::new() };
        let carried = self.inner.provider_state(out, &mut listener);
        let RecordingListener { mut head, mut body, .. } = listener;
        // A request that the user stopped would stop the replay as well, at another moment.
        if matches!(&carried, Err(broken) if broken.what == ReplyFailureKind::Stopped) {
            return carried;
        }
        let mut request = request(out);
        out.secrets.scrub(&mut request);
        if let Ok(text) = std::str::from_utf8(&body)
            && let std::borrow::Cow::Owned(clean) = out.secrets.scrub_text(text)
        {
            body = clean.into_bytes();
        }
        for (_, value) in head.iter_mut().flat_map(|head| &mut head.headers) {
            *value = out.secrets.scrub_text(value).into_owned();
        }
        let broken = carried.as_ref().err().map(|broken| ReplyFailure {
            message: out.secrets.scrub_text(&broken.message).into_owned(),
            ..broken.clone()
        });
        let exchange = Exchange { hash: hash(&request), request, head, body, broken };
        match self.recorder.write(&exchange) {
            Ok(()) => carried,
            // An answer that is not on the recording would be missing later, without a trace of the reason.
            Err(error) => {
                let message = format!("{} cannot be written: {error}", self.recorder.path.display());
                Err(ReplyFailure::new(ReplyFailureKind::Mismatch, message))
            }
        }
    }
}

/// Whether the last line of a recording has an end. An editor may have taken it away; the next exchange needs a line of its own.
fn ends_with_newline(path: &Path) -> bool {
    let mut last = [0];
    let read = File::open(path).and_then(|mut file| {
        file.seek(std::io::SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    read.is_ok() && last == *b"\n"
}

/// The bytes of a recording.
fn read_replies(path: &Path, name: &str) -> Result<Vec<u8>> {
    if !path.try_exists().unwrap_or(true) {
        let diagnostic = Diagnostic::new(Code::Unreadable, "the file does not exist").file(name);
        let hint =
            Hint::option("record replies first", "the same command with --record FILE instead of --replay");
        return Err(Error::new(ErrorKind::Io, diagnostic.hint(hint)));
    }
    files::read_bytes(path, name, LARGEST)
}

/// Replies that were recorded.
#[derive(Debug)]
pub struct Recording {
    name: String,
    lenient: bool,
    exchanges: Mutex<Vec<(Exchange, bool)>>,
}

impl Recording {
    /// Reads a recording.
    ///
    /// # Errors
    ///
    /// `CB723` with the line that cannot be read.
    pub fn read(path: &Path) -> Result<Recording> {
        let name = path.display().to_string();
        let source = files::source_from_bytes(read_replies(path, &name)?, &name)?;
        let text = source.text();
        let mut exchanges = Vec::new();
        let mut start = 0;
        for line in text.split_inclusive('\n') {
            let range = start..start + line.len().min(LONGEST_SHOWN);
            start += line.len();
            if line.trim().is_empty() {
                continue;
            }
            let exchange = Exchange::from_line(line).map_err(|why| {
                let why = if line.ends_with('\n') { why } else { "it is cut off".to_owned() };
                let range = range.start
                    ..(range.start..=range.end)
                        .rev()
                        .find(|at| text.is_char_boundary(*at))
                        .unwrap_or(range.start);
                let message = format!("exchange {} cannot be read: {why}", exchanges.len() + 1);
                let hint = "record again, or remove the line";
                let diagnostic =
                    Diagnostic::new(Code::ReplayMismatch, message).at(source.place(range)).hint(hint);
                Error::new(ErrorKind::Reply, diagnostic)
            })?;
            exchanges.push((exchange, false));
        }
        if exchanges.is_empty() {
            let diagnostic = Diagnostic::new(Code::ReplayMismatch, format!("{name} has no replies"))
                .hint(Hint::option("record some first", "the same command with --record FILE"));
            return Err(Error::new(ErrorKind::Reply, diagnostic));
        }
        Ok(Recording { name, lenient: false, exchanges: Mutex::new(exchanges) })
    }

    /// Lets a request that differs from what was recorded have the next reply.
    pub fn lenient(mut self) -> Recording {
        self.lenient = true;
        self
    }

    /// The model that was asked first.
    pub fn model(&self) -> Option<String> {
        let exchanges = self.exchanges();
        let request = &exchanges.first()?.0.request;
        let in_path = || request["path"].as_str()?.split_once("models/")?.1.split(':').next();
        request["body"]["model"].as_str().or_else(in_path).map(str::to_owned)
    }

    /// How many replies were not taken yet.
    pub fn left(&self) -> usize {
        self.exchanges().iter().filter(|(_, taken)| !taken).count()
    }

    fn exchanges(&self) -> MutexGuard<'_, Vec<(Exchange, bool)>> {
        self.exchanges.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, asked: &Json) -> Result<Exchange, String> {
        let hash = hash(asked);
        let mut exchanges = self.exchanges();
        let count = exchanges.len();
        let same = exchanges.iter().position(|(exchange, taken)| !taken && exchange.hash == hash);
        let next = exchanges.iter().position(|(_, taken)| !taken);
        let Some(next) = next else {
            let name = &self.name;
            return Err(format!(
                "{name} has no reply left: all {count} were used, but the model is called again"
            ));
        };
        match same.or(self.lenient.then_some(next)) {
            Some(found) => {
                exchanges[found].1 = true;
                Ok(exchanges[found].0.clone())
            }
            None => {
                let recorded = &exchanges[next].0.request;
                let (at, expected, found) = difference(recorded, asked, String::new())
                    .unwrap_or_else(|| (String::new(), "the same".to_owned(), "the same".to_owned()));
                Err(format!(
                    "the request differs from exchange {} of {} at {at}: recorded {expected}, sent {found}",
                    next + 1,
                    self.name
                ))
            }
        }
    }
}

impl Transport for Recording {
    fn provider_state(&self, out: &Outgoing<'_>, hear: &mut dyn ReplyListener) -> Result<(), ReplyFailure> {
        let mut request = request(out);
        // As it was written down.
        out.secrets.scrub(&mut request);
        let exchange =
            self.take(&request).map_err(|message| ReplyFailure::new(ReplyFailureKind::Mismatch, message))?;
        if let Some(head) = &exchange.head {
            hear.head(head);
            hear.bytes(&exchange.body);
        }
        exchange.broken.map_or(Ok(()), Err)
    }

    fn is_real(&self) -> bool {
        false
    }
}

/// Where two values differ first: a JSON pointer, and what stands there in each.
fn difference(one: &Json, other: &Json, at: String) -> Option<(String, String, String)> {
    let step = |key: &str| format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
    match (one, other) {
        _ if one == other => None,
        (Json::Object(a), Json::Object(b)) => {
            let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
            keys.filter(|key| a.get(*key) != b.get(*key)).find_map(|key| match (a.get(key), b.get(key)) {
                (Some(a), Some(b)) => difference(a, b, step(key)),
                (a, b) => Some((step(key), shown(a), shown(b))),
            })
        }
        (Json::Array(a), Json::Array(b)) => {
            (0..a.len().max(b.len())).find_map(|index| match (a.get(index), b.get(index)) {
                (Some(a), Some(b)) => difference(a, b, step(&index.to_string())),
                (a, b) => Some((step(&index.to_string()), shown(a), shown(b))),
            })
        }
        (Json::String(a), Json::String(b)) => {
            let (a, b) = apart(a, b);
            Some((at, a, b))
        }
        _ => Some((if at.is_empty() { "/".to_owned() } else { at }, shown(Some(one)), shown(Some(other)))),
    }
}

/// Two texts from a little before the place where they differ, if that is too far behind for their beginnings to show it.
fn apart(one: &str, other: &str) -> (String, String) {
    let same = one.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let skipped = same.saturating_sub(BEFORE);
    if same < LONGEST_SHOWN - BEFORE || skipped == 0 {
        return (shown(Some(&json!(one))), shown(Some(&json!(other))));
    }
    let from = |text: &str| {
        let rest: String = text.chars().skip(skipped).collect();
        format!("…{}", shown(Some(&json!(rest))))
    };
    (from(one), from(other))
}

fn shown(value: Option<&Json>) -> String {
    let Some(value) = value else { return "nothing".to_owned() };
    let text = value.to_string();
    if text.chars().count() <= LONGEST_SHOWN {
        return text;
    }
    format!("{}…", text.chars().take(LONGEST_SHOWN).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_has_a_pointer() {
        let one = json!({"a": [1, {"b/c": "x"}], "d": 1});
        let at = |other: &Json| difference(&one, other, String::new());
        let text = str::to_owned;
        assert_eq!(at(&one), None);
        assert_eq!(
            at(&json!({"a": [1, {"b/c": "y"}], "d": 1})),
            Some((text("/a/1/b~1c"), text("\"x\""), text("\"y\"")))
        );
        assert_eq!(at(&json!({"a": [1, {"b/c": "x"}]})), Some((text("/d"), text("1"), text("nothing"))));
        assert_eq!(
            at(&json!({"a": [1], "d": 1})),
            Some((text("/a/1"), text("{\"b/c\":\"x\"}"), text("nothing")))
        );
    }

    #[test]
    fn texts_that_differ_far_behind_are_shown_from_there() {
        let long = "All is the same here. ".repeat(40);
        let text = |name: &str| json!({"content": format!("{long}Say hello to {name}.{long}")});
        let (at, one, other) = difference(&text("Ann"), &text("Bob"), String::new()).unwrap();
        assert_eq!(at, "/content");
        assert!(one.starts_with("…\"") && one.contains("hello to Ann.All"), "{one}");
        assert!(other.contains("hello to Bob.All"), "{other}");
        assert!(one.chars().count() < LONGEST_SHOWN + 10, "{one}");
        // One that merely goes on ends where the other does.
        let (_, one, other) = difference(&json!(long), &json!(format!("{long}x")), String::new()).unwrap();
        assert_ne!(one, other);
    }

    #[test]
    fn a_recording_takes_the_place_of_nothing_that_says_something() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("replies.jsonl");
        Recorder::create(&path).unwrap();
        Recorder::create(&path).unwrap();
        let line = json!({"version": VERSION, "request": {}}).to_string() + "\n";
        for other in ["Somebody's work.\n", "{\"a\": 1}\n", &line] {
            std::fs::write(&path, other).unwrap();
            assert_eq!(Recorder::create(&path).unwrap_err().code(), Code::WouldOverwrite);
            assert_eq!(std::fs::read_to_string(&path).unwrap(), other);
        }
    }

    #[test]
    fn a_line_reads_back_as_it_was() {
        let request = json!({"api": "gemini", "path": "/x", "body": {"b": 1, "a": 2}});
        let exchange = Exchange {
            hash: hash(&request),
            request,
            head: Some(ReplyHead { status: 200, headers: vec![("content-type".into(), "x".into())] }),
            body: vec![0xff, 0, b'\n'],
            broken: Some(ReplyFailure::new(ReplyFailureKind::Cut, "gone")),
        };
        let again = Exchange::from_line(&exchange.to_line()).unwrap();
        assert_eq!(
            (&again.body, &again.head, &again.broken),
            (&exchange.body, &exchange.head, &exchange.broken)
        );
        let changed = exchange.to_line().replace("\"b\":1", "\"b\":7");
        assert!(Exchange::from_line(&changed).unwrap_err().contains("was changed"));
    }

    #[test]
    fn the_order_of_keys_does_not_matter() {
        assert_eq!(
            hash(&json!({"a": 1, "b": {"c": 1, "d": 2}})),
            hash(&json!({"b": {"d": 2, "c": 1}, "a": 1}))
        );
    }
}
