//! A language server for each open page, reached by two calls: `editor/send` passes messages to it, and `editor/receive` waits for
//! messages from it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cuebook::{Book, Result};
use cuebook_lsp::Client;
use serde_json::{Value as Json, json};

use super::invalid;

/// Opens the book that a language server looks at.
pub type OpenBook = Arc<dyn Fn(Option<PathBuf>) -> Book + Send + Sync>;

/// How long a page waits for messages before it asks again.
const WAIT: Duration = Duration::from_secs(20);
/// The most pages with an editor. For a new one the oldest server ends, and its page starts another when it needs one.
const MOST: usize = 24;

/// The language servers of the open pages.
pub(super) struct Editors {
    open: OpenBook,
    next: AtomicU64,
    clients: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Editors {
    pub(super) fn new(open: OpenBook) -> Editors {
        Editors { open, next: AtomicU64::new(1), clients: Mutex::default() }
    }

    /// Starts a language server.
    pub(super) fn open(&self) -> Result<Json> {
        let open = self.open.clone();
        let client = Client::start(move |folder| open(folder), Vec::new());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        while clients.len() >= MOST {
            clients.pop_first();
        }
        clients.insert(number, Arc::new(client));
        Ok(json!({"editor": number}))
    }

    /// Passes messages to a server.
    pub(super) fn send(&self, arguments: &Json) -> Result<Json> {
        let client = self.client(arguments)?;
        for message in arguments["messages"].as_array().into_iter().flatten() {
            if !client.send(message) {
                return Err(invalid(
                    "a message is not of the language server protocol, or the server has ended",
                ));
            }
        }
        Ok(json!({}))
    }

    /// Waits for messages of a server.
    pub(super) fn receive(&self, arguments: &Json) -> Result<Json> {
        match self.client(arguments)?.receive(WAIT) {
            Some(messages) => Ok(json!({"messages": messages})),
            None => Err(invalid("the language server of this page has ended; load the page again")),
        }
    }

    /// Ends a server.
    pub(super) fn close(&self, arguments: &Json) -> Result<Json> {
        if let Some(number) = arguments["editor"].as_u64() {
            self.clients.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        }
        Ok(json!({}))
    }

    fn client(&self, arguments: &Json) -> Result<Arc<Client>> {
        let number = arguments["editor"].as_u64().unwrap_or(0);
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients
            .get(&number)
            .cloned()
            .ok_or_else(|| invalid("this page has no language server; load the page again"))
    }
}
