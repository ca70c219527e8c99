//! A server for the program that started it, over standard input and output.

use std::io;

use rmcp::service::{ServerInitializeError, ServiceExt};
use rmcp::transport::io::stdio_pipes;

use crate::Server;
use crate::lines::Lines;
use crate::runtime;

/// Speaks with the client at the other end of standard input and output until that closes, or until the process is asked to end.
/// Nothing else may write to standard output meanwhile.
pub fn serve_stdio(server: Server) -> io::Result<()> {
    let runtime = runtime::new()?;
    let done = runtime.block_on(async {
        let stop = server.stop();
        runtime::cancel_on_signal(stop.clone())?;
        server.begin();
        let (read, write) = stdio_pipes();
        match server.serve_with_ct(Lines::new(read, write), stop).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            // A client that leaves without a message is not an error.
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => Ok(()),
            Err(error) => Err(io::Error::other(error.to_string())),
        }
    });
    runtime::end(runtime);
    done
}
