//! The loop: messages in, answers and findings out.

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use cuebook::Book;
use cuebook_lab::service::{MoreFindings, Service, Survey};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value as Json, json};

use crate::answers::{Answers, capabilities};
use crate::frames;
use crate::position::{apply, path_of, uri_of};

/// How long the server waits for a message before it looks whether a survey has ended.
const PAUSE: Duration = Duration::from_millis(20);
/// As long nothing else must have changed before the whole library is looked at again.
const QUIET: Duration = Duration::from_millis(300);
/// As many prompts are looked at between two messages.
const AT_ONCE: usize = 4;
/// The largest text that is looked at, in bytes. Larger files have no findings.
const LARGEST: usize = 16 << 20;
/// As many files are sent with findings; the problems of a library that has more are those of `cuebook check`.
const MAX_FILES: usize = 2_000;

/// Serves an editor on stdin and stdout until it says goodbye. `open` opens the book of the folder that the editor names; without
/// one it gets `None`. `more` finds what is wrong with other files than prompts.
pub fn serve(open: impl FnOnce(Option<PathBuf>) -> Book, more: Vec<MoreFindings>) -> io::Result<()> {
    let (connection, writer) = frames::stdio()?;
    serve_on(connection, open, more);
    writer.join()
}

/// Serves an editor on a connection until it says goodbye or goes.
pub(crate) fn serve_on(
    connection: Connection,
    open: impl FnOnce(Option<PathBuf>) -> Book,
    more: Vec<MoreFindings>,
) {
    // An editor may leave before it has begun.
    let Ok((id, params)) = connection.initialize_start() else { return };
    let book = open(folder_of(&params));
    // Some editors ask before they send `initialized`, so the server does not wait for it.
    let ready = Message::Response(Response::new_ok(id, capabilities()));
    if connection.sender.send(ready).is_err() {
        return;
    }
    let watches = params["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] == true;
    let server = Server {
        connection: &connection,
        service: Service::new(book),
        files: can_change_files(&params),
        more,
        published: HashMap::new(),
        touched: BTreeSet::new(),
        survey: None,
        stale_since: None,
        asked: Vec::new(),
    };
    server.run(watches);
}

/// The folder that an editor has open.
fn folder_of(params: &Json) -> Option<PathBuf> {
    let folders = params["workspaceFolders"].as_array();
    let first = folders.and_then(|folders| folders.first()?["uri"].as_str());
    first.or(params["rootUri"].as_str()).and_then(path_of)
}

/// Whether an editor can create and move files as a part of an edit.
fn can_change_files(params: &Json) -> bool {
    let edit = &params["capabilities"]["workspace"]["workspaceEdit"];
    let operations = edit["resourceOperations"].as_array();
    let has = |name: &str| operations.is_some_and(|all| all.iter().any(|one| one == name));
    edit["documentChanges"] == true && has("create") && has("rename")
}

struct Server<'c> {
    connection: &'c Connection,
    service: Service,
    /// Whether the editor can create and move files.
    files: bool,
    more: Vec<MoreFindings>,
    /// Files whose findings the editor shows, and what it was sent.
    published: HashMap<PathBuf, u64>,
    /// Files that the editor changed since it was sent their findings.
    touched: BTreeSet<PathBuf>,
    /// A survey under way.
    survey: Option<Receiver<Survey>>,
    /// Since when the library is known to have changed.
    stale_since: Option<Instant>,
    /// Who wants to know when everything has been looked at.
    asked: Vec<RequestId>,
}

/// What is to be done with the loop.
#[derive(PartialEq)]
enum Next {
    Continue,
    Stop,
}

impl Server<'_> {
    fn run(mut self, watches: bool) {
        if watches {
            self.watch();
        }
        self.survey = Some(self.start_survey());
        loop {
            // Messages first: what is typed next makes it needless to look at what was typed before.
            let message = match self.connection.receiver.try_recv() {
                Ok(message) => Some(message),
                Err(error) if error.is_disconnected() => return,
                Err(_) => None,
            };
            if let Some(message) = message {
                if self.hear(message) == Next::Stop {
                    return;
                }
                continue;
            }
            self.look_after_survey();
            if let Some(changed) = self.service.work(AT_ONCE) {
                self.publish(changed);
                continue;
            }
            let is_waiting = self.survey.is_some() || self.stale_since.is_some();
            if !is_waiting {
                self.answer_waiting_requests();
            }
            let message = match is_waiting {
                true => match self.connection.receiver.recv_timeout(PAUSE) {
                    Ok(message) => Some(message),
                    Err(error) if error.is_timeout() => None,
                    Err(_) => return,
                },
                false => match self.connection.receiver.recv() {
                    Ok(message) => Some(message),
                    Err(_) => return,
                },
            };
            if let Some(message) = message
                && self.hear(message) == Next::Stop
            {
                return;
            }
        }
    }

    fn hear(&mut self, message: Message) -> Next {
        match message {
            Message::Request(request) => {
                // The reply to `shutdown` has been sent where this is true.
                if self.connection.handle_shutdown(&request).unwrap_or(true) {
                    return Next::Stop;
                }
                if request.method == "cuebook/settled" {
                    self.asked.push(request.id);
                    return Next::Continue;
                }
                let response = self.answer(request);
                if self.connection.sender.send(Message::Response(response)).is_err() {
                    return Next::Stop;
                }
            }
            Message::Notification(notification) if notification.method == "exit" => return Next::Stop,
            Message::Notification(notification) => self.notice(&notification),
            Message::Response(_) => {}
        }
        Next::Continue
    }

    /// Answers those who wait until everything has been looked at.
    fn answer_waiting_requests(&mut self) {
        for id in std::mem::take(&mut self.asked) {
            // The loop ends where the editor has left.
            let _ = self.connection.sender.send(Message::Response(Response::new_ok(id, Json::Null)));
        }
    }

    /// Asks the editor to tell of files that come, change and go.
    fn watch(&self) {
        let registration = json!({
            "id": "files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": [{"globPattern": "**/*.{md,prompty,py,json,toml,yaml,yml,txt,j2}"}]},
        });
        let params = json!({"registrations": [registration]});
        let request =
            Request::new(RequestId::from("watch".to_owned()), "client/registerCapability".to_owned(), params);
        // The loop ends where the editor has left.
        let _ = self.connection.sender.send(Message::Request(request));
    }

    /// Looks at the whole library on another thread.
    fn start_survey(&self) -> Receiver<Survey> {
        let (send, receive) = channel();
        let (book, buffers) = (self.service.book().clone(), self.service.buffers().clone());
        let more = self.more.clone();
        // Without another thread, only the files that are open are looked at.
        let _ = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
            // The editor may have left.
            let _ = send.send(Survey::of(&book, &buffers, &more));
        });
        receive
    }

    /// Takes over a survey that has ended, and starts another one if files came or went.
    fn look_after_survey(&mut self) {
        let ended = self.survey.as_ref().map(Receiver::try_recv);
        match ended {
            Some(Ok(found)) => {
                self.survey = None;
                let changed = self.service.install(found);
                self.publish(changed);
            }
            Some(Err(TryRecvError::Disconnected)) => self.survey = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        if self.service.take_stale() {
            self.stale_since = Some(Instant::now());
        }
        if self.survey.is_none() && self.stale_since.is_some_and(|since| since.elapsed() >= QUIET) {
            self.stale_since = None;
            self.survey = Some(self.start_survey());
        }
    }

    fn notice(&mut self, notification: &Notification) {
        let params = &notification.params;
        if notification.method == "workspace/didChangeWatchedFiles" {
            let changes = params["changes"].as_array().into_iter().flatten();
            for path in changes.filter_map(|change| change["uri"].as_str().and_then(path_of)) {
                self.service.saved(&path);
            }
            return;
        }
        let document = &params["textDocument"];
        let Some(path) = document["uri"].as_str().and_then(path_of) else { return };
        if matches!(notification.method.as_str(), "textDocument/didOpen" | "textDocument/didChange") {
            self.touched.insert(path.clone());
        }
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                if let Some(text) = document["text"].as_str().filter(|text| text.len() <= LARGEST) {
                    self.service.change(&path, text);
                }
            }
            "textDocument/didChange" => {
                let changes = params["contentChanges"].as_array().into_iter().flatten();
                let before = self.service.buffers().get(&path).map(|text| text.to_string());
                let text = changes.fold(before, apply);
                match text {
                    Some(text) if text.len() <= LARGEST => self.service.change(&path, text),
                    Some(_) => self.service.close(&path),
                    None => {}
                }
            }
            "textDocument/didClose" => self.service.close(&path),
            "textDocument/didSave" => self.service.saved(&path),
            _ => {}
        }
    }

    /// Sends the findings of files. What the editor shows already is not sent again, unless the file was changed.
    fn publish(&mut self, files: BTreeSet<PathBuf>) {
        for path in files {
            let findings = self.answers().findings(&path);
            let was_touched = self.touched.remove(&path);
            if findings.is_empty() {
                if self.published.remove(&path).is_some() {
                    self.send_findings(&path, findings);
                }
                continue;
            }
            let mut hasher = DefaultHasher::new();
            findings.iter().for_each(|finding| finding.to_string().hash(&mut hasher));
            let before = self.published.get(&path).copied();
            let is_same = before == Some(hasher.finish()) && !was_touched;
            // The author sees the findings of the files that are open, however many others have some.
            let is_open = self.service.buffers().get(&path).is_some();
            let is_full = before.is_none() && !is_open && self.published.len() >= MAX_FILES;
            if is_same || is_full {
                continue;
            }
            self.published.insert(path.clone(), hasher.finish());
            self.send_findings(&path, findings);
        }
    }

    fn send_findings(&self, path: &Path, findings: Vec<Json>) {
        let params = json!({"uri": uri_of(path), "diagnostics": findings});
        let notification = Notification::new("textDocument/publishDiagnostics".to_owned(), params);
        // The loop ends where the editor has left.
        let _ = self.connection.sender.send(Message::Notification(notification));
    }

    fn answers(&self) -> Answers<'_> {
        Answers::new(&self.service, self.files)
    }

    fn answer(&self, request: Request) -> Response {
        let Request { id, method, params } = request;
        match self.answers().answer(&method, &params) {
            Some(Ok(result)) => Response::new_ok(id, result),
            Some(Err(message)) => Response::new_err(id, ErrorCode::RequestFailed as i32, message),
            None => {
                let message = format!("`{method}` is not supported");
                Response::new_err(id, ErrorCode::MethodNotFound as i32, message)
            }
        }
    }
}
