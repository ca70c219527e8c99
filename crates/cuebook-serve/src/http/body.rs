//! Reads the body of a request whole before the protocol sees it: within a time, and within a budget of memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use tokio::sync::Semaphore;

use super::guard::plain;
use crate::lines::LONGEST;

/// How long a body may take.
const TIME: Duration = Duration::from_secs(30);
/// The memory for large bodies that are read at the same time, in KiB.
const BUDGET: usize = 4 * (LONGEST >> 10);
/// A body that says it has at most this many bytes needs no part of the budget.
const SMALL: usize = 64 << 10;

/// The memory for bodies.
#[derive(Clone)]
pub(crate) struct Budget(Arc<Semaphore>);

impl Budget {
    pub(crate) fn new() -> Budget {
        Budget(Arc::new(Semaphore::new(BUDGET)))
    }
}

/// Passes a request on with its body read, or refuses it.
pub(crate) async fn read(budget: Budget, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, body)).await;
    }
    let length = body.size_hint().upper().map_or(Some(LONGEST), |length| usize::try_from(length).ok());
    let Some(length) = length.filter(|length| *length <= LONGEST) else { return too_large() };
    let read = async {
        let share = if length <= SMALL { 0 } else { length.div_ceil(1 << 10) };
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        let held = budget.0.acquire_many(share).await.ok();
        (held, to_bytes(body, LONGEST).await)
    };
    match tokio::time::timeout(TIME, read).await {
        // The share is held until the request is answered.
        Ok((_held, Ok(bytes))) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Ok((_, Err(_))) => too_large(),
        Err(_) => plain(StatusCode::REQUEST_TIMEOUT, "the body of the request took too long"),
    }
}

fn too_large() -> Response {
    plain(StatusCode::PAYLOAD_TOO_LARGE, "the body of the request is too large or broke off")
}
