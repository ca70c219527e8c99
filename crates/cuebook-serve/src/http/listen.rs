//! The accept loop: one task per connection, with time limits, until the process is asked to end.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::connections::{Connection, Connections};
use cuebook::limits::HEAD_BYTES;

/// How long a client may take to send the head of a request, and how long a connection may be idle.
const HEAD: Duration = Duration::from_secs(10);
/// How long to wait after the system refused a connection.
const PAUSE: Duration = Duration::from_millis(50);
/// How long calls that were asked to stop have to answer, before streams to clients are closed.
const LAST_WORDS: Duration = Duration::from_millis(250);
/// How long answers that are being written may take when the server is asked to end.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// Serves connections until `stop`; `streams` closes what is still open a moment later.
pub(crate) async fn run(
    listener: TcpListener,
    app: Router,
    stop: CancellationToken,
    streams: CancellationToken,
) {
    let connections = Connections::new();
    let mut tasks = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    tasks.spawn(serve(stream, app.clone(), connections.add(), stop.clone()));
                }
                Err(error) => after(&error, &connections).await,
            },
        }
    }
    drop(listener);
    tokio::select! {
        () = async { while tasks.join_next().await.is_some() {} } => {}
        () = async {
            tokio::time::sleep(LAST_WORDS).await;
            streams.cancel();
            tokio::time::sleep(LAST_ANSWERS).await;
        } => {}
    }
}

/// Goes on after a connection could not be accepted.
async fn after(error: &io::Error, connections: &Connections) {
    let is_its_own = matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionRefused
    );
    if !is_its_own {
        connections.make_room();
        tokio::time::sleep(PAUSE).await;
    }
}

async fn serve(stream: TcpStream, app: Router, connection: Connection, stop: CancellationToken) {
    // Answers are small and wanted at once. Where the system does not know the option, they come a moment later.
    let _ = stream.set_nodelay(true);
    let connection = Arc::new(connection);
    let service = TowerToHyperService::new(app.layer(Extension(connection.clone())));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let mut served = pin!(http.serve_connection(TokioIo::new(stream), service).with_upgrades());
    let mut is_ending = false;
    loop {
        tokio::select! {
            // How it ended is the client's business: it was answered, or it is gone.
            _ = served.as_mut() => return,
            () = connection.closed() => return,
            () = stop.cancelled(), if !is_ending => {
                is_ending = true;
                served.as_mut().graceful_shutdown();
            }
        }
    }
}
