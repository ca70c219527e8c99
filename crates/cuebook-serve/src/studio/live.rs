//! The live line of a page: a web socket for what the page asks at every key. Over it an answer arrives some milliseconds sooner than
//! over a request of its own.
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
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::{Parts, call_by_name};
use crate::http::connections::Connection;
use crate::lines::LONGEST;

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

/// Answers calls one after the other, until the page closes the line or sends what is none.
async fn serve(parts: Arc<Parts>, mut socket: Socket) {
    while let Some(Ok(message)) = socket.next().await {
        let text = match message {
            Message::Text(text) => text,
            Message::Ping(_) | Message::Pong(_) => continue,
            _ => break,
        };
        let parts = parts.clone();
        let done = tokio::task::spawn_blocking(move || reply(&parts, text.as_str())).await;
        let Ok(Some(reply)) = done else { break };
        if socket.send(Message::text(reply)).await.is_err() {
            break;
        }
    }
    let _ = socket.close(None).await;
}

/// The answer to `{"id": …, "call": …, "arguments": …}`: the same `id`, and the document or the error.
fn reply(parts: &Parts, text: &str) -> Option<String> {
    let request: Json = serde_json::from_str(text).ok()?;
    let answer = match call_by_name(parts, request["call"].as_str()?, &request["arguments"])? {
        Ok(document) => json!({"id": request["id"], "document": document}),
        Err(error) => json!({"id": request["id"], "error": error.to_json()["error"].take()}),
    };
    Some(answer.to_string())
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
