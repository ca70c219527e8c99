//! Requests over TLS: to a server whose authority is trusted, and to one whose authority is not.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cuebook::Code;
use cuebook_mock::{Mock, Script};
use cuebook_run::provider::{Client, HttpProvider};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::{RecordingListener, ask, chosen_from, environment};

/// An authority of our own with a certificate for this machine: a gateway in front of the mock server.
struct Gateway {
    port: u16,
    authority: String,
}

fn gateway(mock: &Mock) -> Gateway {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let rcgen::CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (config, behind) = (Arc::new(config), mock.url().replace("http://", ""));
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let tls = StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream);
            let behind = behind.clone();
            thread::spawn(move || pass_on(tls, &behind));
        }
    });
    Gateway { port, authority: cert.pem() }
}

/// Passes one request on to the server behind the gateway, and its reply back.
fn pass_on(mut tls: StreamOwned<ServerConnection, TcpStream>, behind: &str) {
    let mut request = Vec::new();
    let mut buffer = [0; 4096];
    while !is_whole(&request) {
        match tls.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(amount) => request.extend_from_slice(&buffer[..amount]),
        }
    }
    let mut server = TcpStream::connect(behind).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    server.write_all(&request).unwrap();
    while let Ok(amount @ 1..) = server.read(&mut buffer) {
        if tls.write_all(&buffer[..amount]).is_err() {
            return;
        }
        let _ = tls.flush();
    }
    tls.conn.send_close_notify();
    let _ = tls.flush();
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.trim().parse().ok());
    length.is_some_and(|length: usize| body.len() >= length)
}

#[test]
fn a_private_authority_is_trusted_only_by_file() {
    let mock = Mock::start(Script::new().text("Safe and sound.")).unwrap();
    let gateway = gateway(&mock);
    let text = format!(
        "name: mock\napi: anthropic\nbase_url: https://localhost:{}\nkey: MOCK_KEY\nretry: {{attempts: 1}}\n",
        gateway.port
    );
    let with = |client: &Client| HttpProvider::new(client, chosen_from(&text)).with_environment(environment);
    let unheard = ask(&with(&Client::new()), &RecordingListener::default()).unwrap_err();
    assert_eq!(unheard.error.code(), Code::NoAnswer, "{unheard:?}");
    assert!(mock.requests().is_empty(), "nothing is sent to whoever cannot say who they are");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorities.pem");
    std::fs::write(&file, &gateway.authority).unwrap();
    let answer = ask(&with(&Client::trusting(&file).unwrap()), &RecordingListener::default()).unwrap();
    assert_eq!(answer.reply, cuebook::chat::reply::Reply::Text("Safe and sound.".into()));
    assert!(mock.requests()[0].header("x-api-key").is_some());
}

#[test]
fn a_file_without_certificates_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authorities.pem");
    for text in ["", "no certificate\n", "-----BEGIN CERTIFICATE-----\n???\n-----END CERTIFICATE-----\n"] {
        std::fs::write(&file, text).unwrap();
        let error = Client::trusting(&file).unwrap_err();
        assert_eq!(error.code(), Code::BadProviderFile, "{text:?}");
        assert!(error.diagnostic().hint.as_ref().unwrap().contains("SSL_CERT_FILE"));
    }
    assert_eq!(Client::trusting(&folder.path().join("none.pem")).unwrap_err().code(), Code::Unreadable);
}
