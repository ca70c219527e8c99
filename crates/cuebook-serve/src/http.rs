//! A server over streamable HTTP, for clients that have its token.
//!
//! Every request needs the token, on this machine too: other users of the machine can reach its loopback address. A request that
//! names a web origin is answered only if that origin was allowed, and on loopback the Host header must name this machine, so
//! that no foreign name can be made to lead here. [`guard`](guard::check) decides all of this before anything else looks at a
//! request. [`connections`], [`sessions`] and [`body`] cap what clients can hold open.

pub(crate) mod address;
pub(crate) mod body;
pub(crate) mod connections;
pub(crate) mod guard;
pub(crate) mod listen;
mod sessions;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use cuebook::error::ErrorKind;
use cuebook::{Code, Diagnostic, Error, Result};
use rmcp::ServerHandler;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{Server, lines, runtime};
use body::Budget;
use guard::Guard;
use sessions::Sessions;
pub use token::Token;

/// The path that clients speak to.
const PATH: &str = "/mcp";

/// Where to listen, and whom to answer.
#[derive(Debug)]
pub struct Http {
    /// The address: `127.0.0.1:8321`, `localhost:8321`, or just the port. Port 0 is any that is free.
    pub address: String,
    /// The token that every request must carry.
    pub token: Token,
    /// Origins of web pages that are answered, as in `https://app.example.com`.
    pub origins: Vec<String>,
}

/// Answers requests until the process is asked to end. Calls `ready` with the URL once it listens.
pub fn serve_http(server: Server, http: Http, ready: impl FnOnce(&str)) -> Result<()> {
    serve_http_with(server, http, |server| server, ready)
}

/// The same with a handler around the server of every client.
pub fn serve_http_with<H: ServerHandler>(
    server: Server,
    http: Http,
    around: impl Fn(Server) -> H + Send + Sync + 'static,
    ready: impl FnOnce(&str),
) -> Result<()> {
    let address = address::resolve(&http.address)?;
    let origins = http.origins.iter().map(|origin| guard::origin(origin)).collect::<Result<Vec<_>>>()?;
    let failed = |error: std::io::Error| {
        let message = format!("the server at {address} failed: {error}");
        Error::new(ErrorKind::Io, Diagnostic::new(Code::BadAddress, message))
    };
    let runtime = runtime::new().map_err(failed)?;
    let done = runtime.block_on(async {
        let listener =
            TcpListener::bind(address).await.map_err(|error| address::cannot_listen(address, &error))?;
        let address = listener.local_addr().map_err(failed)?;
        let stop = server.stop();
        runtime::cancel_on_signal(stop.clone()).map_err(failed)?;
        server.begin();
        let guard = Guard { token: http.token, origins, address };
        let streams = CancellationToken::new();
        let app = app(move || around(server.for_client()), guard, streams.clone());
        ready(&format!("http://{address}{PATH}"));
        listen::run(listener, app, stop, streams).await;
        Ok(())
    });
    runtime::end(runtime);
    done
}

fn app<H: ServerHandler>(
    handler: impl Fn() -> H + Send + Sync + 'static,
    guard: Guard,
    streams: CancellationToken,
) -> Router {
    // The guard is stricter than these; they are a second line.
    let mut config = StreamableHttpServerConfig::default()
        .with_cancellation_token(streams)
        .with_max_request_body_bytes(lines::LONGEST)
        .with_allowed_origins(guard.all_origins())
        .enforce_origin_validation();
    if !guard.address.ip().is_loopback() {
        config = config.disable_allowed_hosts();
    }
    let manager = Arc::new(LocalSessionManager::default());
    let sessions = Sessions::new(manager.clone());
    let service = StreamableHttpService::new(move || Ok(handler()), manager, config);
    let (guard, budget) = (Arc::new(guard), Budget::new());
    // The last layer is the first to see a request.
    Router::new()
        .route_service(PATH, service)
        .layer(from_fn(move |request, next| sessions::cap(sessions.clone(), request, next)))
        .layer(from_fn(move |request, next| body::read(budget.clone(), request, next)))
        .layer(from_fn(move |request, next| guard::check(guard.clone(), request, next)))
}

/// Whether two addresses are the same machine's own.
fn is_own(address: SocketAddr, host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip == address.ip())
}
