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

/// Serves an editor on stdin and stdout until it says goodbye. `open` opens the book of a folder that the editor names; without
/// one it gets `None`. `more` finds what is wrong with other files than prompts.
pub fn serve(open: impl Fn(Option<PathBuf>) -> Book, more: Vec<MoreFindings>) -> io::Result<()> {
    let (connection, writer) = frames::stdio()?;
    serve_on(connection, open, more);
    writer.join()
}

/// Serves an editor on a connection until it says goodbye or goes.
pub(crate) fn serve_on(
    connection: Connection,
    open: impl Fn(Option<PathBuf>) -> Book,
    more: Vec<MoreFindings>,
) {
    // An editor may leave before it has begun.
    let Ok((id, params)) = connection.initialize_start() else { return };
    // Some editors ask before they send `initialized`, so the server does not wait for it.
    let ready = Message::Response(Response::new_ok(id, capabilities()));
    if connection.sender.send(ready).is_err() {
        return;
    }
    let watches = params["capabilities"]["workspace"]["didChangeWatchedFiles"]["dynamicRegistration"] == true;
    let mut server = Server {
        connection: &connection,
        open: &open,
        folders: Vec::new(),
        files: can_change_files(&params),
        more,
        published: HashMap::new(),
        touched: BTreeSet::new(),
        asked: Vec::new(),
    };
    folders_of(&params).into_iter().for_each(|folder| server.add(folder));
    server.run(watches);
}

/// The folders that an editor has open; `None` for one that it does not name.
fn folders_of(params: &Json) -> Vec<Option<PathBuf>> {
    let named = paths_in(&params["workspaceFolders"]);
    match named.is_empty() {
        true => vec![params["rootUri"].as_str().and_then(path_of)],
        false => named.into_iter().map(Some).collect(),
    }
}

/// The paths of a list of folders or files.
fn paths_in(list: &Json) -> Vec<PathBuf> {
    let uris = list.as_array().into_iter().flatten().filter_map(|one| one["uri"].as_str());
    uris.filter_map(path_of).collect()
}

/// Whether an editor can create and move files as a part of an edit.
fn can_change_files(params: &Json) -> bool {
    let edit = &params["capabilities"]["workspace"]["workspaceEdit"];
    let operations = edit["resourceOperations"].as_array();
    let has = |name: &str| operations.is_some_and(|all| all.iter().any(|one| one == name));
    edit["documentChanges"] == true && has("create") && has("rename")
}

/// A folder that the editor has open, with the library that it belongs to.
struct Folder {
    path: Option<PathBuf>,
    service: Service,
    /// A survey under way.
    survey: Option<Receiver<Survey>>,
    /// Since when the library is known to have changed.
    stale_since: Option<Instant>,
}

impl Folder {
    fn root(&self) -> &Path {
        self.service.book().library().root()
    }

    fn is_waiting(&self) -> bool {
        self.survey.is_some() || self.stale_since.is_some()
    }

    /// Looks at the whole library on another thread.
    fn start_survey(&mut self, more: &[MoreFindings]) {
        let (send, receive) = channel();
        let (book, buffers) = (self.service.book().clone(), self.service.buffers().clone());
        let more = more.to_vec();
        // Without another thread, only the files that are open are looked at.
        let _ = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
            // The editor may have left.
            let _ = send.send(Survey::of(&book, &buffers, &more));
        });
        self.survey = Some(receive);
    }

    /// Takes over a survey that has ended, and starts another one if files came or went. Returns the files whose findings may differ.
    fn look_after_survey(&mut self, more: &[MoreFindings]) -> BTreeSet<PathBuf> {
        let mut changed = BTreeSet::new();
        match self.survey.as_ref().map(Receiver::try_recv) {
            Some(Ok(found)) => {
                self.survey = None;
                changed = self.service.install(found);
            }
            Some(Err(TryRecvError::Disconnected)) => self.survey = None,
            Some(Err(TryRecvError::Empty)) | None => {}
        }
        if self.service.take_stale() {
            self.stale_since = Some(Instant::now());
        }
        if self.survey.is_none() && self.stale_since.is_some_and(|since| since.elapsed() >= QUIET) {
            self.stale_since = None;
            self.start_survey(more);
        }
        changed
    }
}

struct Server<'c> {
    connection: &'c Connection,
    open: &'c dyn Fn(Option<PathBuf>) -> Book,
    /// At least one.
    folders: Vec<Folder>,
    /// Whether the editor can create and move files.
    files: bool,
    more: Vec<MoreFindings>,
    /// Files whose findings the editor shows, and what it was sent.
    published: HashMap<PathBuf, u64>,
    /// Files that the editor changed since it was sent their findings.
    touched: BTreeSet<PathBuf>,
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
            let mut is_working = false;
            for at in 0..self.folders.len() {
                let folder = &mut self.folders[at];
                let mut changed = folder.look_after_survey(&self.more);
                let worked = folder.service.work(AT_ONCE);
                is_working |= worked.is_some();
                changed.extend(worked.into_iter().flatten());
                self.publish(changed);
            }
            if is_working {
                continue;
            }
            let is_waiting = self.folders.iter().any(Folder::is_waiting);
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

    /// Opens a folder. Several folders of one library are one.
    fn add(&mut self, path: Option<PathBuf>) {
        let book = (self.open)(path.clone());
        if self.folders.iter().any(|folder| folder.root() == book.library().root()) {
            return;
        }
        let mut folder = Folder { path, service: Service::new(book), survey: None, stale_since: None };
        let root = folder.root().to_owned();
        // Texts that are open already belong to the nearest folder.
        for other in &mut self.folders {
            let texts = other.service.buffers().clone();
            let is_nearer = !other.root().starts_with(&root) || other.root() == root;
            for path in texts.paths().filter(|path| is_nearer && path.starts_with(&root)) {
                other.service.close(path);
                folder.service.change(path, texts.get(path).cloned().unwrap_or_default());
            }
        }
        folder.start_survey(&self.more);
        self.folders.push(folder);
    }

    /// Closes a folder, and takes its findings back. The last one stays.
    fn remove(&mut self, path: &Path) {
        let Some(at) = self.folders.iter().position(|folder| folder.path.as_deref() == Some(path)) else {
            return;
        };
        if self.folders.len() == 1 {
            return;
        }
        let gone = self.folders.remove(at);
        let files: Vec<PathBuf> =
            self.published.keys().filter(|file| file.starts_with(gone.root())).cloned().collect();
        for file in files {
            self.published.remove(&file);
            self.send_findings(&file, Vec::new());
        }
    }

    /// The folder that a file belongs to: the nearest one above it, or else the first.
    fn folder(&self, path: &Path) -> usize {
        let above = self.folders.iter().enumerate().filter(|(_, folder)| path.starts_with(folder.root()));
        above.max_by_key(|(_, folder)| folder.root().as_os_str().len()).map_or(0, |(at, _)| at)
    }

    fn service(&mut self, path: &Path) -> &mut Service {
        let at = self.folder(path);
        &mut self.folders[at].service
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
            "registerOptions": {"watchers": [{"globPattern": "**/*.{md,prompty,prompt,py,sh,js,ts,json,toml,lock,yaml,yml,txt,j2,jinja,jinja2}"}]},
        });
        let params = json!({"registrations": [registration]});
        let request =
            Request::new(RequestId::from("watch".to_owned()), "client/registerCapability".to_owned(), params);
        // The loop ends where the editor has left.
        let _ = self.connection.sender.send(Message::Request(request));
    }

    fn notice(&mut self, notification: &Notification) {
        let params = &notification.params;
        if notification.method == "workspace/didChangeWatchedFiles" {
            paths_in(&params["changes"]).iter().for_each(|path| self.service(path).saved(path));
            return;
        }
        if notification.method == "workspace/didChangeWorkspaceFolders" {
            paths_in(&params["event"]["added"]).into_iter().for_each(|path| self.add(Some(path)));
            paths_in(&params["event"]["removed"]).iter().for_each(|path| self.remove(path));
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
                    self.service(&path).change(&path, text);
                }
            }
            "textDocument/didChange" => {
                let changes = params["contentChanges"].as_array().into_iter().flatten();
                let before = self.service(&path).buffers().get(&path).map(|text| text.to_string());
                let text = changes.fold(before, apply);
                match text {
                    Some(text) if text.len() <= LARGEST => self.service(&path).change(&path, text),
                    Some(_) => self.service(&path).close(&path),
                    None => {}
                }
            }
            "textDocument/didClose" => self.service(&path).close(&path),
            "textDocument/didSave" => self.service(&path).saved(&path),
            _ => {}
        }
    }

    /// Sends the findings of files. What the editor shows already is not sent again, unless the file was changed.
    fn publish(&mut self, files: BTreeSet<PathBuf>) {
        for path in files {
            let findings = self.answers(&path).findings(&path);
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
            let is_open = self.service(&path).buffers().get(&path).is_some();
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

    fn answers(&self, path: &Path) -> Answers<'_> {
        Answers::new(&self.folders[self.folder(path)].service, self.files)
    }

    fn answer(&self, request: Request) -> Response {
        let Request { id, method, params } = request;
        if method == "workspace/symbol" {
            let found =
                self.folders.iter().map(|folder| Answers::new(&folder.service, self.files).found(&params));
            return Response::new_ok(id, found.flatten().collect::<Vec<Json>>());
        }
        let path = params["textDocument"]["uri"].as_str().and_then(path_of).unwrap_or_default();
        match self.answers(&path).answer(&method, &params) {
            Some(Ok(result)) => Response::new_ok(id, result),
            Some(Err(message)) => Response::new_err(id, ErrorCode::RequestFailed as i32, message),
            None => {
                let message = format!("`{method}` is not supported");
                Response::new_err(id, ErrorCode::MethodNotFound as i32, message)
            }
        }
    }
}
