//! The loop: messages in, answers and findings out.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use cuebook::{Book, Diagnostic, Severity};
use cuebook_lab::service::{CompletionKind, Location, Service, Survey, SymbolKind};
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde_json::{Value as Json, json};

use crate::position::{Positions, offset, path_of, uri_of};

/// How long the server waits for a message before it looks whether the survey has ended.
const PAUSE: Duration = Duration::from_millis(50);

/// Serves an editor on stdin and stdout until it says goodbye. `open` opens the book of the folder that the editor names; without
/// one it gets `None`.
pub fn serve(open: impl FnOnce(Option<PathBuf>) -> Book) -> io::Result<()> {
    let (connection, threads) = Connection::stdio();
    let (id, params) = connection.initialize_start().map_err(io::Error::other)?;
    let book = open(folder_of(&params));
    connection.initialize_finish(id, capabilities()).map_err(io::Error::other)?;
    let server = Server { connection: &connection, service: Service::new(book), published: BTreeSet::new() };
    server.run();
    drop(connection);
    threads.join()
}

/// The folder that an editor has open.
fn folder_of(params: &Json) -> Option<PathBuf> {
    let folders = params["workspaceFolders"].as_array();
    let first = folders.and_then(|folders| folders.first()?["uri"].as_str());
    first.or(params["rootUri"].as_str()).and_then(path_of)
}

fn capabilities() -> Json {
    json!({
        "capabilities": {
            "positionEncoding": "utf-16",
            // Whole texts: prompts are small.
            "textDocumentSync": {"openClose": true, "change": 1, "save": true},
            "hoverProvider": true,
            "definitionProvider": true,
            "referencesProvider": true,
            "renameProvider": true,
            "documentSymbolProvider": true,
            "completionProvider": {"triggerCharacters": ["{", "|", ".", "\"", "'", "/", "$", ":"]},
            "codeActionProvider": {"codeActionKinds": ["quickfix"]},
            "documentLinkProvider": {},
        },
        "serverInfo": {"name": "cuebook", "version": env!("CARGO_PKG_VERSION")},
    })
}

struct Server<'c> {
    connection: &'c Connection,
    service: Service,
    /// Files whose findings the editor shows.
    published: BTreeSet<PathBuf>,
}

impl Server<'_> {
    fn run(mut self) {
        let mut survey = Some(self.survey());
        loop {
            let message = match &survey {
                Some(_) => match self.connection.receiver.recv_timeout(PAUSE) {
                    Ok(message) => Some(message),
                    Err(error) if error.is_timeout() => None,
                    Err(_) => return,
                },
                None => match self.connection.receiver.recv() {
                    Ok(message) => Some(message),
                    Err(_) => return,
                },
            };
            if let Some(running) = &survey
                && let Some(found) = ended(running)
            {
                survey = None;
                let changed = self.service.install(found);
                self.publish(changed);
            }
            match message {
                Some(Message::Request(request)) => {
                    // The reply to `shutdown` has been sent where this is true.
                    if self.connection.handle_shutdown(&request).unwrap_or(true) {
                        return;
                    }
                    let response = self.answer(request);
                    if self.connection.sender.send(Message::Response(response)).is_err() {
                        return;
                    }
                }
                Some(Message::Notification(notification)) => self.notice(&notification),
                Some(Message::Response(_)) | None => {}
            }
        }
    }

    /// Looks at the whole library on another thread.
    fn survey(&self) -> Receiver<Survey> {
        let (send, receive) = channel();
        let book = self.service.book().clone();
        // Without another thread, only the files that are open are looked at.
        let _ = std::thread::Builder::new().stack_size(8 << 20).spawn(move || {
            // The editor may have left.
            let _ = send.send(Survey::of(&book).unwrap_or_default());
        });
        receive
    }

    fn notice(&mut self, notification: &Notification) {
        let document = &notification.params["textDocument"];
        let Some(path) = document["uri"].as_str().and_then(path_of) else { return };
        let changed = match notification.method.as_str() {
            "textDocument/didOpen" => match document["text"].as_str() {
                Some(text) => self.service.change(&path, text),
                None => return,
            },
            "textDocument/didChange" => {
                let changes = notification.params["contentChanges"].as_array();
                match changes.and_then(|changes| changes.last()?["text"].as_str()) {
                    Some(text) => self.service.change(&path, text),
                    None => return,
                }
            }
            "textDocument/didClose" => self.service.close(&path),
            _ => return,
        };
        self.publish(changed);
    }

    /// Sends the findings of files. A file without any is sent once, so that the editor forgets those it shows.
    fn publish(&mut self, files: BTreeSet<PathBuf>) {
        for path in files {
            let findings = self.service.findings(&path);
            if findings.is_empty() && !self.published.remove(&path) {
                continue;
            }
            let text = self.service.text(&path).unwrap_or_default();
            let positions = Positions::of(&text);
            let shown: Vec<Json> = findings.iter().map(|finding| self.shown(finding, &positions)).collect();
            if !shown.is_empty() {
                self.published.insert(path.clone());
            }
            let params = json!({"uri": uri_of(&path), "diagnostics": shown});
            let notification = Notification::new("textDocument/publishDiagnostics".to_owned(), params);
            // The loop ends where the editor has left.
            let _ = self.connection.sender.send(Message::Notification(notification));
        }
    }

    fn shown(&self, finding: &Diagnostic, positions: &Positions<'_>) -> Json {
        let range = finding.place.as_ref().map_or(0..0, |place| self.service.location(place).range);
        let severity = match finding.severity {
            Severity::Error => 1,
            Severity::Warning => 2,
            Severity::Note => 3,
        };
        let message = match (&finding.label, &finding.hint) {
            (_, Some(hint)) => format!("{}\nhelp: {hint}", finding.message),
            (_, None) => finding.message.clone(),
        };
        let related = finding.related.iter().map(|(place, label)| {
            json!({"location": self.location(&self.service.location(place)), "message": label})
        });
        json!({
            "range": positions.range(&range),
            "severity": severity,
            "code": finding.code.to_string(),
            "source": "cuebook",
            "message": message,
            "relatedInformation": related.collect::<Vec<Json>>(),
        })
    }

    fn location(&self, location: &Location) -> Json {
        let text = self.service.text(&location.path).unwrap_or_default();
        json!({"uri": uri_of(&location.path), "range": Positions::of(&text).range(&location.range)})
    }

    fn answer(&self, request: Request) -> Response {
        let Request { id, method, params } = request;
        let document = &params["textDocument"]["uri"];
        let Some(path) = document.as_str().and_then(path_of) else {
            return unknown(id, &method, document.is_string());
        };
        let text = self.service.text(&path).unwrap_or_default();
        let at = offset(&text, &params["position"]).unwrap_or(text.len());
        let result = match method.as_str() {
            "textDocument/hover" => self
                .service
                .hover(&path, at)
                .map_or(Json::Null, |text| json!({"contents": {"kind": "markdown", "value": text}})),
            "textDocument/definition" => {
                self.service.definition(&path, at).map_or(Json::Null, |found| self.location(&found))
            }
            "textDocument/references" => {
                self.service.references(&path, at).iter().map(|found| self.location(found)).collect()
            }
            "textDocument/rename" => {
                let to = params["newName"].as_str().unwrap_or_default();
                match self.service.rename(&path, at, to) {
                    Ok(edits) => self.edit(edits.iter().map(|edit| (&edit.location, edit.text.as_str()))),
                    Err(error) => {
                        let message = error.diagnostic().message.clone();
                        return Response::new_err(id, ErrorCode::RequestFailed as i32, message);
                    }
                }
            }
            "textDocument/completion" => self.completions(&path, at),
            "textDocument/documentSymbol" => self.symbols(&path, &text),
            "textDocument/documentLink" => self.links(&path, &text),
            "textDocument/codeAction" => self.actions(&path, &text, &params["range"]),
            _ => return unknown(id, &method, false),
        };
        Response::new_ok(id, result)
    }

    fn completions(&self, path: &Path, at: usize) -> Json {
        let item = |one: cuebook_lab::service::Completion| {
            let kind = match one.kind {
                CompletionKind::Variable => 6,
                CompletionKind::Function => 3,
                CompletionKind::Keyword => 14,
                CompletionKind::File => 17,
            };
            json!({
                "label": one.label,
                "kind": kind,
                "detail": one.detail,
                "documentation": {"kind": "markdown", "value": one.documentation},
            })
        };
        self.service.complete(path, at).into_iter().map(item).collect()
    }

    fn symbols(&self, path: &Path, text: &str) -> Json {
        let positions = Positions::of(text);
        let symbol = |one: cuebook_lab::service::Symbol| {
            let kind = match one.kind {
                SymbolKind::Variable => 13,
                SymbolKind::Block => 5,
                SymbolKind::File => 1,
            };
            let range = positions.range(&one.location.range);
            json!({"name": one.name, "kind": kind, "range": range, "selectionRange": range})
        };
        self.service.symbols(path).into_iter().map(symbol).collect()
    }

    /// Includes and parents lead to their files.
    fn links(&self, path: &Path, text: &str) -> Json {
        let positions = Positions::of(text);
        let symbols = self.service.symbols(path).into_iter();
        let files = symbols.filter(|symbol| symbol.kind == SymbolKind::File);
        let link = |symbol: cuebook_lab::service::Symbol| {
            let range = symbol.location.range;
            let target = self.service.definition(path, range.start)?;
            Some(json!({"range": positions.range(&range), "target": uri_of(&target.path)}))
        };
        files.filter_map(link).collect()
    }

    /// For a finding that knows the nearest names: an action for each of them.
    fn actions(&self, path: &Path, text: &str, range: &Json) -> Json {
        let start = offset(text, &range["start"]).unwrap_or(0);
        let end = offset(text, &range["end"]).unwrap_or(text.len());
        let positions = Positions::of(text);
        let mut actions = Vec::new();
        for finding in self.service.findings(path) {
            let Some(place) = &finding.place else { continue };
            let location = self.service.location(place);
            if location.range.end < start || location.range.start > end {
                continue;
            }
            for (wrong, name) in suggestions(finding) {
                let Some(at) = text.get(location.range.clone()).and_then(|part| part.find(wrong)) else {
                    continue;
                };
                let at = location.range.start + at;
                let location = Location { path: path.to_owned(), range: at..at + wrong.len() };
                actions.push(json!({
                    "title": format!("Replace `{wrong}` with `{name}`"),
                    "kind": "quickfix",
                    "diagnostics": [self.shown(finding, &positions)],
                    "edit": self.edit([(&location, name)].into_iter()),
                }));
            }
        }
        Json::Array(actions)
    }

    fn edit<'e>(&self, edits: impl Iterator<Item = (&'e Location, &'e str)>) -> Json {
        let mut changes = serde_json::Map::new();
        for (location, new) in edits {
            let text = self.service.text(&location.path).unwrap_or_default();
            let edit = json!({"range": Positions::of(&text).range(&location.range), "newText": new});
            match changes.entry(uri_of(&location.path)).or_insert_with(|| json!([])) {
                Json::Array(edits) => edits.push(edit),
                other => *other = json!([edit]),
            }
        }
        json!({"changes": changes})
    }
}

/// What a finding calls unknown, with each name that may have been meant.
fn suggestions(finding: &Diagnostic) -> Vec<(&str, &str)> {
    let Some(hint) = finding.hint.as_deref().filter(|hint| hint.contains("did you mean")) else {
        return Vec::new();
    };
    let Some(wrong) = finding.message.split('`').nth(1) else { return Vec::new() };
    let hint = &hint[hint.find("did you mean").unwrap_or(0)..];
    hint.split('`').skip(1).step_by(2).map(|name| (wrong, name)).collect()
}

fn unknown(id: RequestId, method: &str, is_elsewhere: bool) -> Response {
    match is_elsewhere && method.starts_with("textDocument/") {
        // A text that has no file, such as a new one.
        true => Response::new_ok(id, Json::Null),
        false => {
            Response::new_err(id, ErrorCode::MethodNotFound as i32, format!("`{method}` is not supported"))
        }
    }
}

/// The survey, if it has ended.
fn ended(running: &Receiver<Survey>) -> Option<Survey> {
    match running.recv_timeout(Duration::ZERO) {
        Ok(survey) => Some(survey),
        Err(RecvTimeoutError::Timeout) => None,
        Err(RecvTimeoutError::Disconnected) => Some(Survey::default()),
    }
}
