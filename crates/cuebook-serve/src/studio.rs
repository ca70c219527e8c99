//! `cuebook studio`: one page in the browser, served from this machine to its user.
//!
//! The page and its script come from the program, so nothing is fetched from elsewhere. Calls are POST requests with JSON, and every
//! one needs the token. [`render`] and [`files`] answer while the user types; what is asked at every key, and what waits, comes over
//! one line ([`live`]). [`decide`] records choices with the same functions as the
//! command line, bound to the content that the page showed. What measures, proves or runs goes through the command line itself
//! ([`commands`]). The editor of the page speaks with the language server ([`editor`]).

mod assets;
mod commands;
mod decide;
mod editor;
mod files;
mod live;
mod render;
mod threads;

use std::path::PathBuf;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::from_fn;
use axum::response::Response;
use cuebook::error::ErrorKind;
use cuebook::items::Spaces;
use cuebook::{Book, Code, Diagnostic, Error, Result};
use cuebook_lab::cases::{case_files, case_inputs};
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::http::body::{self, Budget};
use crate::http::guard::Guard;
use crate::http::{Token, address, connections::Connection, listen};
use crate::lines::LONGEST;
use crate::runtime;
use editor::{Editors, OpenBook};

/// What the page works on.
pub struct Studio {
    /// The project.
    pub book: Arc<Book>,
    /// The `cuebook` program.
    pub program: PathBuf,
    /// Where threads are, if it is not the project's own store.
    pub store: Option<String>,
    /// Opens the book of a language server.
    pub open: OpenBook,
}

/// The parts that calls use.
struct Parts {
    book: Arc<Book>,
    commands: commands::Commands,
    editors: Editors,
    threads: threads::Threads,
}

/// Serves the page until the process is asked to end. Calls `ready` with the address of the page once it listens.
pub fn serve_studio(studio: Studio, at: &str, ready: impl FnOnce(&str)) -> Result<()> {
    let address = address::resolve(at)?;
    if !address.ip().is_loopback() {
        let message = format!("{address} is not an address of this machine alone");
        let hint = "the studio can write the project's files; give a port, or 127.0.0.1 with a port";
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadAddress, message).hint(hint)));
    }
    let failed = |error: std::io::Error| {
        let message = format!("the server at {address} failed: {error}");
        Error::new(ErrorKind::Io, Diagnostic::new(Code::BadAddress, message))
    };
    let (token, secret) = Token::generate()?;
    let runtime = runtime::new().map_err(failed)?;
    let done = runtime.block_on(async {
        let listener =
            TcpListener::bind(address).await.map_err(|error| address::cannot_listen(address, &error))?;
        let address = listener.local_addr().map_err(failed)?;
        let (stop, streams) = (CancellationToken::new(), CancellationToken::new());
        runtime::cancel_on_signal(stop.clone()).map_err(failed)?;
        let root = studio.book.library().root().to_owned();
        let parts = Parts {
            threads: threads::Threads::new(Spaces::of_project(&root), studio.store.clone()),
            commands: commands::Commands::new(studio.program, root, studio.store),
            editors: Editors::new(studio.open),
            book: studio.book,
        };
        let guard = Guard { token, origins: Vec::new(), address };
        let app = app(parts, guard);
        // The token is in the fragment: browsers do not send it to servers, and it reaches no log.
        ready(&format!("http://{address}/#token={secret}"));
        listen::run(listener, app, stop, streams).await;
        Ok(())
    });
    runtime::end(runtime);
    done
}

fn app(parts: Parts, guard: Guard) -> Router {
    let (parts, guard, budget) = (Arc::new(parts), Arc::new(guard), Budget::new());
    // The last layer is the first to see a request.
    Router::new()
        .fallback(move |request: Request| answer(parts.clone(), request))
        .layer(from_fn(move |request, next| body::read(budget.clone(), request, next)))
        .layer(from_fn(move |mut request: Request, next: axum::middleware::Next| {
            let guard = guard.clone();
            async move {
                let is_asset = is_asset(&request);
                if live::is_live(&request) {
                    live::show_token(&mut request);
                }
                match guard.refuse_page(request.headers(), is_asset) {
                    Some(refusal) => refusal,
                    None => {
                        if !is_asset && let Some(connection) = request.extensions().get::<Arc<Connection>>() {
                            connection.admit();
                        }
                        next.run(request).await
                    }
                }
            }
        }))
}

/// The page and its parts hold nothing of a project, so they need no token.
fn is_asset(request: &Request) -> bool {
    request.method() == Method::GET && assets::is_known(request.uri().path())
}

async fn answer(parts: Arc<Parts>, request: Request) -> Response {
    if is_asset(&request) {
        return assets::response(request.uri().path());
    }
    if live::is_live(&request) {
        let refusal = json!({"error": {"message": "this address is for a web socket"}});
        return live::answer(parts, request).unwrap_or_else(|| reply(StatusCode::UPGRADE_REQUIRED, &refusal));
    }
    let Some(call) = request.uri().path().strip_prefix("/api/").map(str::to_owned) else {
        return reply(StatusCode::NOT_FOUND, &json!({"error": {"message": "there is no such page"}}));
    };
    if request.method() != Method::POST {
        return reply(
            StatusCode::METHOD_NOT_ALLOWED,
            &json!({"error": {"message": "calls are POST requests"}}),
        );
    }
    let body = match to_bytes(request.into_body(), LONGEST).await {
        Ok(body) => body,
        Err(_) => {
            return reply(
                StatusCode::PAYLOAD_TOO_LARGE,
                &json!({"error": {"message": "the request is too large"}}),
            );
        }
    };
    let arguments = match serde_json::from_slice::<Json>(if body.is_empty() { b"{}" } else { &body }) {
        Ok(arguments) => arguments,
        Err(error) => {
            let message = format!("the request is not JSON: {error}");
            return reply(StatusCode::BAD_REQUEST, &json!({"error": {"message": message}}));
        }
    };
    let done = tokio::task::spawn_blocking(move || call_by_name(&parts, &call, &arguments)).await;
    match done {
        Ok(Some(Ok(answer))) => reply(StatusCode::OK, &answer),
        Ok(Some(Err(error))) => refuse(&error),
        Ok(None) => reply(StatusCode::NOT_FOUND, &json!({"error": {"message": "there is no such call"}})),
        Err(_) => reply(
            StatusCode::INTERNAL_SERVER_ERROR,
            &json!({"error": {"message": "the call failed; the terminal of `cuebook studio` says why"}}),
        ),
    }
}

fn call_by_name(parts: &Parts, call: &str, arguments: &Json) -> Option<Result<Json>> {
    Some(match call {
        "project" => project(&parts.book),
        "prompts" => prompts(&parts.book),
        "cases" => cases(&parts.book, arguments),
        "render" => render::render(&parts.book, arguments),
        "check" => render::check(&parts.book, arguments),
        "file" => files::read(&parts.book, arguments),
        "hashes" => files::hashes(&parts.book, arguments),
        "save" => files::save(&parts.book, arguments),
        "candidates" => decide::candidates(&parts.book, arguments),
        "resolve" => decide::resolve(&parts.book, arguments),
        "requests" => decide::requests(&parts.book),
        "grant" => decide::grant(&parts.book, arguments),
        "revoke" => decide::revoke(&parts.book, arguments),
        "packs" => decide::packs(&parts.book),
        "packs/code" => decide::code(&parts.book, arguments),
        "packs/approve" => decide::approve(&parts.book, arguments),
        "providers" => decide::providers(&parts.book),
        "packs/install" => decide::install(&parts.book, arguments),
        "threads" => parts.threads.list(),
        "threads/events" => parts.threads.events(arguments),
        "command" => parts.commands.run(arguments),
        "editor/open" => parts.editors.open(),
        "editor/send" => parts.editors.send(arguments),
        "editor/receive" => parts.editors.receive(arguments),
        "editor/close" => parts.editors.close(arguments),
        _ => return None,
    })
}

fn project(book: &Book) -> Result<Json> {
    let root = book.library().root();
    let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(json!({
        "root": root.to_string_lossy(),
        "name": name.unwrap_or_else(|| root.to_string_lossy().into_owned()),
        "version": env!("CARGO_PKG_VERSION"),
    }))
}

fn prompts(book: &Book) -> Result<Json> {
    Ok(book.list_prompts(None, None)?.iter().map(cuebook::Listing::to_json).collect())
}

/// The file of a prompt's test cases, and the inputs of each case.
fn cases(book: &Book, arguments: &Json) -> Result<Json> {
    let files = case_files(book, &[text(arguments, "id")?.to_owned()])?;
    let Some(file) = files.first() else { return Ok(json!({"file": null, "cases": []})) };
    let cases = if file.exists() { case_inputs(book, file)? } else { Vec::new() };
    let cases: Vec<Json> =
        cases.iter().map(|(name, inputs)| json!({"name": name, "inputs": inputs})).collect();
    Ok(json!({"file": file.name, "exists": file.exists(), "cases": cases}))
}

/// An error as `--json` prints it.
fn refuse(error: &Error) -> Response {
    reply(StatusCode::UNPROCESSABLE_ENTITY, &error.to_json())
}

fn reply(status: StatusCode, document: &Json) -> Response {
    let mut response = Response::new(Body::from(document.to_string()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// An argument of a call that must be a text.
fn text<'a>(arguments: &'a Json, name: &str) -> Result<&'a str> {
    arguments[name].as_str().ok_or_else(|| invalid(format!("the call needs the text `{name}`")))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message))
}
