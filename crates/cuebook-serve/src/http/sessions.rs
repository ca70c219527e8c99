//! Caps the sessions of clients: a new one takes the place of the one that was quiet for longest.
//!
//! A client whose session is gone gets 404, as the protocol has it, and starts a new session.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::Body;
use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;

/// The most sessions.
const MAX: usize = 256;
const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// The sessions of a server, and when each was last used.
pub(super) struct Sessions {
    manager: Arc<LocalSessionManager>,
    most: usize,
    used: Mutex<Used>,
}

#[derive(Default)]
struct Used {
    clock: u64,
    last: HashMap<String, u64>,
}

impl Sessions {
    pub(super) fn new(manager: Arc<LocalSessionManager>) -> Arc<Sessions> {
        Arc::new(Sessions { manager, most: MAX, used: Mutex::default() })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn touch(&self, headers: &HeaderMap) -> bool {
        let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) else { return false };
        let mut used = self.used();
        used.clock += 1;
        let now = used.clock;
        if let Some(last) = used.last.get_mut(id) {
            *last = now;
        }
        true
    }

    /// Notes a session that an answer began.
    fn note(&self, headers: &HeaderMap) {
        let Some(id) = headers.get(SESSION).and_then(|id| id.to_str().ok()) else { return };
        let mut used = self.used();
        used.clock += 1;
        let now = used.clock;
        used.last.insert(id.to_owned(), now);
    }

    /// Closes sessions until there is room for one more.
    async fn make_room(&self) {
        loop {
            let oldest = {
                let open = self.manager.sessions.read().await;
                let mut used = self.used();
                used.last.retain(|id, _| open.contains_key(id.as_str()));
                if open.len() < self.most {
                    return;
                }
                let age = |id: &str| used.last.get(id).copied().unwrap_or_default();
                open.keys().min_by_key(|id| age(id)).cloned()
            };
            let Some(oldest) = oldest else { return };
            // It is out of the table even if its worker was gone already.
            let _ = self.manager.close_session(&oldest).await;
        }
    }
}

/// Makes room before a request that may begin a session.
pub(super) async fn cap(sessions: Arc<Sessions>, request: Request, next: Next) -> Response {
    if !sessions.touch(request.headers()) {
        sessions.make_room().await;
    }
    let ends = request.method() == Method::DELETE;
    let mut response = next.run(request).await;
    if ends && response.status() == StatusCode::ACCEPTED {
        // The session is gone by now, and the protocol's own clients expect 200 or 204.
        *response.status_mut() = StatusCode::NO_CONTENT;
        *response.body_mut() = Body::empty();
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    sessions.note(response.headers());
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_new_session_takes_the_place_of_the_one_quiet_for_longest() {
        let manager = Arc::new(LocalSessionManager::default());
        let sessions = Sessions { manager: manager.clone(), most: 2, used: Mutex::default() };
        let mut ids = Vec::new();
        for _ in 0..2 {
            sessions.make_room().await;
            let (id, _transport) = manager.create_session().await.unwrap();
            let headers: HeaderMap = [(SESSION, id.parse().unwrap())].into_iter().collect();
            sessions.note(&headers);
            ids.push((id, headers));
        }
        sessions.touch(&ids[0].1);
        sessions.make_room().await;
        let left = manager.sessions.read().await;
        assert!(left.contains_key(&ids[0].0) && !left.contains_key(&ids[1].0));
    }
}
