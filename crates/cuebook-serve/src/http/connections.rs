//! The open connections of a server, capped so that unauthenticated clients cannot use them up.
//!
//! A connection belongs to an unauthenticated client until a request on it carries the token. Unauthenticated and other clients have separate caps, and a
//! new connection closes an old one of its own kind only: the oldest unauthenticated one, or the client that was quiet for longest. So
//! half-sent requests never shut out a client that has the token.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// The most connections of unauthenticated clients.
const MAX_UNAUTHENTICATED: usize = 64;
/// The most connections of clients.
const MAX_CLIENTS: usize = 256;
/// The fewest of either kind, whatever the system allows.
const FEWEST: usize = 8;

/// All open connections.
pub(crate) struct Connections {
    most_unauthenticated: usize,
    most_clients: usize,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// Counts connections and requests, so that a higher number is younger.
    clock: u64,
    unauthenticated: BTreeMap<u64, CancellationToken>,
    /// By the number of the connection; the time of its last request beside it.
    clients: BTreeMap<u64, (u64, CancellationToken)>,
}

impl Open {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Connections {
    /// As many connections as the limit on open files allows: a quarter of it for either kind, the rest for tools and files.
    pub(crate) fn new() -> Arc<Connections> {
        let share = descriptors().map_or(usize::MAX, |limit| limit / 4).max(FEWEST);
        Connections::with(MAX_UNAUTHENTICATED.min(share), MAX_CLIENTS.min(share))
    }

    fn with(most_unauthenticated: usize, most_clients: usize) -> Arc<Connections> {
        Arc::new(Connections { most_unauthenticated, most_clients, open: Mutex::default() })
    }

    /// A new connection, which is unauthenticated.
    pub(crate) fn add(self: &Arc<Self>) -> Connection {
        let close = CancellationToken::new();
        let mut open = self.open();
        while open.unauthenticated.len() >= self.most_unauthenticated {
            close_oldest_unauthenticated(&mut open);
        }
        let number = open.tick();
        open.unauthenticated.insert(number, close.clone());
        drop(open);
        Connection { all: self.clone(), number, close }
    }

    /// Makes room where the system has no descriptor left.
    pub(crate) fn make_room(&self) {
        close_oldest_unauthenticated(&mut self.open());
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn close_oldest_unauthenticated(open: &mut Open) {
    if let Some((_, close)) = open.unauthenticated.pop_first() {
        close.cancel();
    }
}

/// The limit on open files of this process.
#[cfg(unix)]
fn descriptors() -> Option<usize> {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok())
}

#[cfg(not(unix))]
fn descriptors() -> Option<usize> {
    None
}

/// One connection. It leaves the table when it is dropped.
pub(crate) struct Connection {
    all: Arc<Connections>,
    number: u64,
    close: CancellationToken,
}

impl Connection {
    /// A request on it carried the token: the connection is a client's from now on.
    pub(crate) fn admit(&self) {
        let mut open = self.all.open();
        let now = open.tick();
        open.unauthenticated.remove(&self.number);
        if let Some((used, _)) = open.clients.get_mut(&self.number) {
            *used = now;
            return;
        }
        while open.clients.len() >= self.all.most_clients {
            let Some(quiet) =
                open.clients.iter().min_by_key(|(_, (used, _))| *used).map(|(number, _)| *number)
            else {
                break;
            };
            if let Some((_, close)) = open.clients.remove(&quiet) {
                close.cancel();
            }
        }
        open.clients.insert(self.number, (now, self.close.clone()));
    }

    /// Waits until it is to be closed.
    pub(crate) async fn closed(&self) {
        self.close.cancelled().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.all.open();
        open.unauthenticated.remove(&self.number);
        open.clients.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_open(connection: &Connection) -> bool {
        !connection.close.is_cancelled()
    }

    #[test]
    fn new_unauthenticated_connections_never_close_a_client() {
        let all = Connections::with(2, 2);
        let client = all.add();
        client.admit();
        let unauthenticated: Vec<Connection> = (0..5).map(|_| all.add()).collect();
        let open: Vec<bool> = unauthenticated.iter().map(is_open).collect();
        assert_eq!(open, [false, false, false, true, true]);
        assert!(is_open(&client));
    }

    #[test]
    fn a_new_client_closes_the_client_that_was_quiet_for_longest() {
        let all = Connections::with(4, 2);
        let clients: Vec<Connection> = (0..3).map(|_| all.add()).collect();
        clients[0].admit();
        clients[1].admit();
        clients[0].admit();
        clients[2].admit();
        let open: Vec<bool> = clients.iter().map(is_open).collect();
        assert_eq!(open, [true, false, true]);
    }

    #[test]
    fn a_closed_connection_leaves_the_table() {
        let all = Connections::with(2, 2);
        let (unauthenticated, client) = (all.add(), all.add());
        client.admit();
        drop((unauthenticated, client));
        let open = all.open();
        assert!(open.unauthenticated.is_empty() && open.clients.is_empty());
    }
}
