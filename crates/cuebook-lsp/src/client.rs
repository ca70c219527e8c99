//! A language server in this process, for programs that have their own way to an editor.

use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use cuebook::Book;
use cuebook_lab::service::MoreFindings;
use lsp_server::{Connection, Message};
use serde_json::Value as Json;

use crate::server::serve_on;

/// The most messages that one call of [`Client::receive`] returns.
const AT_ONCE: usize = 256;

/// The editor's end of a language server on another thread. The server ends when the client is dropped.
pub struct Client(Connection);

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Client")
    }
}

impl Client {
    /// Starts a server. The arguments are those of [`serve`](crate::serve).
    pub fn start(open: impl Fn(Option<PathBuf>) -> Book + Send + 'static, more: Vec<MoreFindings>) -> Client {
        let (server, client) = Connection::memory();
        // As much as the main thread of a program has: files may be nested.
        let thread = thread::Builder::new().name("cuebook lsp".to_owned()).stack_size(8 << 20);
        // Without a thread the server has ended already.
        let _ = thread.spawn(move || serve_on(server, open, more));
        Client(client)
    }

    /// Passes a message on; `false` if it is not one of the protocol, or if the server has ended.
    pub fn send(&self, message: &Json) -> bool {
        serde_json::from_value::<Message>(message.clone())
            .is_ok_and(|message| self.0.sender.send(message).is_ok())
    }

    /// Waits for messages of the server; an empty list if none comes in time, `None` if the server has ended.
    pub fn receive(&self, wait: Duration) -> Option<Vec<Json>> {
        let first = match self.0.receiver.recv_timeout(wait) {
            Ok(message) => message,
            Err(error) if error.is_timeout() => return Some(Vec::new()),
            Err(_) => return None,
        };
        let more = self.0.receiver.try_iter().take(AT_ONCE);
        std::iter::once(first).chain(more).map(|message| serde_json::to_value(message).ok()).collect()
    }
}
