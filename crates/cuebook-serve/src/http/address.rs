//! Addresses to listen at.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};

use cuebook::error::ErrorKind;
use cuebook::{Code, Diagnostic, Error, Result};

/// The address as it was written: `127.0.0.1:8321`, `[::1]:8321`, `localhost:8321`, `:8321` or `8321`.
pub(crate) fn resolve(text: &str) -> Result<SocketAddr> {
    if let Ok(port) = text.strip_prefix(':').unwrap_or(text).parse::<u16>() {
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let unknown = |why: &str| {
        let diagnostic =
            Diagnostic::new(Code::BadAddress, format!("`{text}` is not an address to listen on{why}"))
                .hint("write a port, or an address with a port: 8321, 127.0.0.1:8321");
        Error::new(ErrorKind::Usage, diagnostic).with("address", text)
    };
    if !text.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && !host.contains(['/', ':']) && port.parse::<u16>().is_ok()
    }) {
        return Err(unknown(""));
    }
    match text.to_socket_addrs() {
        Ok(mut found) => found.next().ok_or_else(|| unknown(": unknown host")),
        Err(error) => Err(unknown(&format!(": {error}"))),
    }
}

/// Listens at an address. A port alone is one of this machine only.
///
/// # Errors
///
/// `CB801` if another program has it, `CB802` if it is not an address of this machine.
pub fn listen(text: &str) -> Result<TcpListener> {
    let address = resolve(text)?;
    TcpListener::bind(address).map_err(|error| cannot_listen(address, &error))
}

/// Why an address cannot be listened at.
pub(crate) fn cannot_listen(address: SocketAddr, error: &io::Error) -> Error {
    let (code, message, hint) = match error.kind() {
        io::ErrorKind::AddrInUse => (
            Code::AddressInUse,
            format!("another program already listens on {address}"),
            "stop that program, or choose another port; with port 0 the system picks a free one",
        ),
        io::ErrorKind::PermissionDenied => {
            (Code::BadAddress, format!("this user cannot listen on {address}"), "choose a port above 1023")
        }
        io::ErrorKind::AddrNotAvailable => (
            Code::BadAddress,
            format!("{address} is not an address of this machine"),
            "listen on 127.0.0.1, or on 0.0.0.0 for all addresses of this machine",
        ),
        _ => (Code::BadAddress, format!("cannot listen on {address}: {error}"), "choose another address"),
    };
    Error::new(ErrorKind::Io, Diagnostic::new(code, message).hint(hint)).with("address", address.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_on_this_machine_only() {
        for text in ["8321", ":8321", "127.0.0.1:8321"] {
            assert_eq!(resolve(text).unwrap().to_string(), "127.0.0.1:8321");
        }
        assert!(resolve("localhost:0").unwrap().ip().is_loopback());
        assert_eq!(resolve("[::1]:80").unwrap().to_string(), "[::1]:80");
        for wrong in ["", "here", "127.0.0.1", "1.2.3.4:99999", "http://127.0.0.1:80", "::", ":"] {
            assert_eq!(resolve(wrong).unwrap_err().code(), Code::BadAddress, "{wrong}");
        }
    }
}
