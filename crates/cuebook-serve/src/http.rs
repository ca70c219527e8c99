//! A server for anybody who can reach an address, over streamable HTTP.
//!
//! It listens on this machine only unless it has a token. Web pages are kept out: a request that names an origin is answered only
//! if that origin was allowed, and on this machine the name that was asked for must be one of this machine's, so that no foreign
//! name can be made to lead here. All of this is decided in [`guard`](guard::check), before anything else looks at a request.

mod address;
mod guard;
mod token;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use cuebook::error::ErrorKind;
use cuebook::{Code, Diagnostic, Error, Result};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{Server, lines, runtime};
use guard::Guard;
pub use token::Token;

/// The path that clients speak to.
const PATH: &str = "/mcp";
/// How long answers that are being written may take when the server is asked to end.
const LAST_ANSWERS: Duration = Duration::from_secs(3);

/// How long calls that were told to stop have to answer that they were, before streams to clients are closed.
const LAST_WORDS: Duration = Duration::from_millis(250);

/// Where to listen, and whom to answer.
#[derive(Debug, Default)]
pub struct Http {
    /// The address: `127.0.0.1:8321`, `localhost:8321`, or just the port. Port 0 is any that is free.
    pub address: String,
    /// What a request must carry; without it, anybody on this machine is answered, and nobody else.
    pub token: Option<Token>,
    /// Origins of web pages that are answered, as in `https://app.example.com`.
    pub origins: Vec<String>,
}

/// Answers requests until the process is asked to end. `ready` is told the URL once it listens.
pub fn serve_http(server: Server, http: Http, ready: impl FnOnce(&str)) -> Result<()> {
    let address = address::resolve(&http.address)?;
    if !address.ip().is_loopback() && http.token.is_none() {
        let message = format!("{address} can be reached by others, and there is no token");
        let hint =
            "name an environment variable that holds one with --token-env NAME, or listen at 127.0.0.1";
        let diagnostic = Diagnostic::new(Code::TokenMissing, message).hint(hint);
        return Err(Error::new(ErrorKind::Usage, diagnostic).with("address", address.to_string()));
    }
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
        let app = app(server, guard, streams.clone());
        ready(&format!("http://{address}{PATH}"));
        run(listener, app, stop, streams).await.map_err(failed)
    });
    runtime::end(runtime);
    done
}

async fn run(
    listener: TcpListener,
    app: Router,
    stop: CancellationToken,
    streams: CancellationToken,
) -> std::io::Result<()> {
    let ending = stop.clone().cancelled_owned();
    let serving = axum::serve(listener, app).with_graceful_shutdown(ending);
    tokio::select! {
        done = serving => done,
        () = async {
            stop.cancelled().await;
            tokio::time::sleep(LAST_WORDS).await;
            streams.cancel();
            tokio::time::sleep(LAST_ANSWERS).await;
        } => Ok(()),
    }
}

fn app(server: Server, guard: Guard, streams: CancellationToken) -> Router {
    // The guard is stricter than these; they stand for the day on which somebody leaves it out.
    let mut config = StreamableHttpServerConfig::default()
        .with_cancellation_token(streams)
        .with_max_request_body_bytes(lines::LONGEST)
        .with_allowed_origins(guard.all_origins())
        .enforce_origin_validation();
    if !guard.address.ip().is_loopback() {
        config = config.disable_allowed_hosts();
    }
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(LocalSessionManager::default()),
        config,
    );
    let guard = Arc::new(guard);
    Router::new()
        .route_service(PATH, service)
        .layer(axum::middleware::from_fn(move |request, next| guard::check(guard.clone(), request, next)))
}

/// Whether two addresses are the same machine's own.
fn is_own(address: SocketAddr, host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback() || ip == address.ip())
}
