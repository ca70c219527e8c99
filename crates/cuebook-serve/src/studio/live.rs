//! The live line of a page: a web socket for what the page asks at every key, and for the calls that wait. Over it an answer arrives
//! some milliseconds sooner than over a request of its own. A browser opens only six connections to one server for all its tabs, so
//! calls that wait would keep the other calls out.
//!
//! A browser cannot send the token of a socket in a header of its own choice, so it comes as the second protocol that the page offers.
//! [`show_token`] moves it to where the guard looks, before anything else looks at the request.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{
    AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::{Value as Json, json};
use sha1::{Digest, Sha1};
use tokio::sync::{Semaphore, mpsc};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{Parts, call_by_name};
use crate::http::connections::Connection;
use crate::lines::LONGEST;

/// The most calls of one page at a time.
const MAX_AT_ONCE: usize = 12;
/// The address of the line.
const PATH: &str = "/api/live";
/// The protocol of the line.
const PROTOCOL: &str = "cuebook";
/// What a server adds to the key of a client, by RFC 6455.
const SALT: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

pub(super) fn is_live(request: &Request) -> bool {
    request.method() == Method::GET && request.uri().path() == PATH
}

/// Moves the token from the protocols that a page offers to the header of other calls.
pub(super) fn show_token(request: &mut Request) {
    let offered = request.headers().get(SEC_WEBSOCKET_PROTOCOL).and_then(|list| list.to_str().ok());
    let token = offered.and_then(|list| list.split_once(',')).filter(|(name, _)| name.trim() == PROTOCOL);
    let header = token.and_then(|(_, token)| HeaderValue::from_str(&format!("Bearer {}", token.trim())).ok());
    if let Some(header) = header
        && !request.headers().contains_key(AUTHORIZATION)
    {
        request.headers_mut().insert(AUTHORIZATION, header);
    }
}

/// Answers a request that asks for the line, and serves it from then on.
pub(super) fn answer(parts: Arc<Parts>, mut request: Request) -> Option<Response> {
    let accept = accepted(request.headers())?;
    let upgrade = request.extensions_mut().remove::<OnUpgrade>()?;
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    tokio::spawn(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let limits = WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST));
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(limits)).await;
        let closed = async {
            match &connection {
                Some(connection) => connection.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = serve(parts, socket) => {}
            () = closed => {}
        }
    });
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(PROTOCOL));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    Some(response)
}

/// What proves to a client that its request was understood; nothing if it is not one for a web socket.
fn accepted(headers: &HeaderMap) -> Option<HeaderValue> {
    let is = |name: HeaderName, wanted: &str| {
        let text = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        text.split(',').any(|one| one.trim().eq_ignore_ascii_case(wanted))
    };
    let is_socket = is(CONNECTION, "upgrade") && is(UPGRADE, "websocket") && is(SEC_WEBSOCKET_VERSION, "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_socket)?;
    let hash = Sha1::new().chain_update(key.as_bytes()).chain_update(SALT).finalize();
    HeaderValue::from_str(&STANDARD.encode(hash)).ok()
}

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

/// Answers calls, several at once, until the page closes the line or sends something else.
async fn serve(parts: Arc<Parts>, socket: Socket) {
    let (mut to_page, mut from_page) = socket.split();
    let (answers, mut answered) = mpsc::channel::<String>(MAX_AT_ONCE);
    let slots = Arc::new(Semaphore::new(MAX_AT_ONCE));
    let reading = async move {
        while let Some(Ok(message)) = from_page.next().await {
            let text = match message {
                Message::Text(text) => text,
                Message::Ping(_) | Message::Pong(_) => continue,
                _ => break,
            };
            let Ok(request) = serde_json::from_str::<Json>(text.as_str()) else { break };
            let Ok(slot) = slots.clone().acquire_owned().await else { break };
            let (parts, answers) = (parts.clone(), answers.clone());
            tokio::spawn(async move {
                let id = request["id"].clone();
                let done = tokio::task::spawn_blocking(move || reply(&parts, &request)).await;
                let answer = done.unwrap_or_else(|_| {
                    failed(&id, "the call failed; the terminal of `cuebook studio` says why")
                });
                let _ = answers.send(answer).await;
                drop(slot);
            });
        }
    };
    let writing = async {
        while let Some(answer) = answered.recv().await {
            if to_page.send(Message::text(answer)).await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = reading => {}
        () = writing => {}
    }
    let _ = to_page.close().await;
}

/// The answer to `{"id": …, "call": …, "arguments": …}`: the same `id`, and the document or the error.
fn reply(parts: &Parts, request: &Json) -> String {
    let id = &request["id"];
    match call_by_name(parts, request["call"].as_str().unwrap_or_default(), &request["arguments"]) {
        Some(Ok(document)) => json!({"id": id, "document": document}).to_string(),
        Some(Err(error)) => json!({"id": id, "error": error.to_json()["error"].take()}).to_string(),
        None => failed(id, "there is no such call"),
    }
}

fn failed(id: &Json, message: &str) -> String {
    json!({"id": id, "error": {"message": message}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(headers: &[(&str, &str)]) -> Request {
        let mut request = Request::builder().uri(PATH);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn the_accepted_key_is_that_of_the_standard() {
        let all = [
            ("connection", "keep-alive, Upgrade"),
            ("upgrade", "websocket"),
            ("sec-websocket-version", "13"),
            ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ];
        assert_eq!(accepted(asking(&all).headers()).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        for left_out in 0..all.len() {
            let some: Vec<_> =
                all.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, one)| *one).collect();
            assert_eq!(accepted(asking(&some).headers()), None, "{}", all[left_out].0);
        }
    }

    #[test]
    fn only_the_second_protocol_is_a_token_and_it_replaces_none() {
        let shown = |headers: &[(&str, &str)]| {
            let mut request = asking(headers);
            show_token(&mut request);
            request.headers().get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned())
        };
        assert_eq!(shown(&[("sec-websocket-protocol", "cuebook, abc")]).as_deref(), Some("Bearer abc"));
        assert_eq!(shown(&[("sec-websocket-protocol", "abc, cuebook")]), None);
        assert_eq!(shown(&[("sec-websocket-protocol", "cuebook")]), None);
        let both = [("sec-websocket-protocol", "cuebook, abc"), ("authorization", "Bearer x")];
        assert_eq!(shown(&both).as_deref(), Some("Bearer x"));
    }
}
