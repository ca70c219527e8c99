//! The address of a PostgreSQL database, and how private connections to it are.
//!
//! A certificate is always checked: `require`, `verify-ca` and `verify-full` all mean the most. A client that only prefers privacy
//! gets it where there is a certificate that can be trusted. Nothing here ever shows a password.

use std::sync::Arc;
use std::time::Duration;

use cuebook_text::Result;
use postgres::Config;
use postgres::config::Host;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error;

/// How long a server may take to answer a call.
const CONNECT: Duration = Duration::from_secs(10);

/// An address of a database, taken apart.
pub(crate) struct Address {
    pub(crate) config: Config,
    /// A file of certificates that are trusted besides those of the web.
    pub(crate) roots: Option<String>,
    /// The address for people: everything but the password.
    pub(crate) name: String,
}

impl Address {
    /// Takes an address apart.
    pub(crate) fn read(url: &str) -> Result<Address> {
        let hint = "write postgres://USER:PASSWORD@HOST:PORT/DATABASE; in a password, write `@`, `/`, `?` and `%` as %40, %2F, %3F and %25";
        if is_ambiguous(url) {
            return Err(error::failed("postgres://…", "its address has too many `@`", hint));
        }
        let (start, query) = url.split_once('?').unwrap_or((url, ""));
        let mut options: Vec<String> = Vec::new();
        let mut roots = None;
        for option in query.split('&').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                // A certificate is always looked at here, so what is demanded of it is always the most.
                Some(("sslmode", "verify-ca" | "verify-full")) => options.push("sslmode=require".to_owned()),
                Some(("sslrootcert", file)) => roots = Some(unescaped(file)),
                _ => options.push(option.to_owned()),
            }
        }
        // What the library says of an address that it does not understand can be a part of the password.
        let mut config: Config = format!("{start}?{}", options.join("&"))
            .parse()
            .map_err(|_| error::failed("postgres://…", "its address is invalid", hint))?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(error::failed("postgres://…", "its address names no host", hint));
        }
        if config.get_application_name().is_none() {
            config.application_name("cuebook");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        let name = name(&config);
        Ok(Address { config, roots, name })
    }
}

/// Whether it is not clear where a password ends: an `@` belongs between it and the host, and nowhere else.
fn is_ambiguous(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, behind) = rest.split_at(end);
    authority.matches('@').count() > 1 || behind.contains('@')
}

/// A value of an address, with `%20` and the like as what they stand for.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()).filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The address for people: everything but the password.
fn name(config: &Config) -> String {
    let hosts = config.get_hosts().iter().zip(config.get_ports().iter().chain(std::iter::repeat(&5432)));
    let host = |(host, port): (&Host, &u16)| match host {
        Host::Tcp(host) => format!("{host}:{port}"),
        #[cfg(unix)]
        Host::Unix(path) => format!("{}:{port}", path.display()),
    };
    let hosts: Vec<String> = hosts.map(host).collect();
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    format!("postgres://{user}{}/{}", hosts.join(","), config.get_dbname().unwrap_or_default())
}

/// How connections are made private: with the authorities of the web, and those of a file.
pub(crate) fn tls(name: &str, roots: Option<&str>) -> Result<MakeRustlsConnect> {
    use rustls::pki_types::CertificateDer;
    use rustls::pki_types::pem::PemObject as _;

    let mut store = rustls::RootCertStore::empty();
    store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(file) = roots {
        let unreadable = |why: String| {
            let hint = "`sslrootcert` names a file with certificates in PEM format";
            error::failed(name, &format!("cannot read the certificates in {file}: {why}"), hint)
        };
        let certificates =
            CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.to_string()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
            store.add(certificate).map_err(|error| unreadable(error.to_string()))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(
            |error| error::failed(name, &error.to_string(), "use `sslmode=disable` in your own network"),
        )?;
    Ok(MakeRustlsConnect::new(builder.with_root_certificates(store).with_no_client_auth()))
}
