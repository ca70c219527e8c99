//! A project with a studio that serves it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value as Json;
use tempfile::TempDir;

/// A running studio. It ends with the value.
pub struct Studio {
    pub project: TempDir,
    pub home: TempDir,
    child: Child,
    pub url: String,
    pub port: u16,
    pub token: String,
}

impl Drop for Studio {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// Whether a program runs.
pub fn runs(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Studio {
    /// A studio of a project with these files. `environment` is added to the environment of the program.
    pub fn of(files: &[(&str, &str)], environment: &[(&str, &str)]) -> Studio {
        let (project, home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(project.path(), "cuebook.toml", "");
        files.iter().for_each(|(name, text)| write(project.path(), name, text));
        let mut child = Command::new(env!("CARGO_BIN_EXE_cuebook"))
            .args(["studio", "--json", "--root"])
            .arg(project.path())
            .env("HOME", home.path())
            .env_remove("USER_SPACE")
            .env_remove("CUEBOOK_ROOT")
            .env_remove("CUEBOOK_STORE")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let mut text = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        while serde_json::from_str::<Json>(&text).is_err() {
            assert_ne!(lines.read_line(&mut text).unwrap(), 0, "the studio ended: {text}");
        }
        let url = serde_json::from_str::<Json>(&text).unwrap()["url"].as_str().unwrap().to_owned();
        let (address, token) = url.split_once("/#token=").unwrap();
        let port = address.rsplit(':').next().unwrap().parse().unwrap();
        let token = token.split('&').next().unwrap().to_owned();
        Studio { project, home, child, port, token, url }
    }

    /// Sends a request and returns its status, its head and its body.
    pub fn send(&self, head: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        write!(stream, "{head}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}").unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, head.to_owned(), body.to_owned())
    }

    /// The head of a call with the token.
    pub fn head(&self, call: &str) -> String {
        format!(
            "POST /api/{call} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n",
            self.port, self.token
        )
    }

    /// Makes a call; its status and its answer.
    pub fn call(&self, call: &str, arguments: &Json) -> (u16, Json) {
        let (status, _, body) = self.send(&self.head(call), &arguments.to_string());
        (status, serde_json::from_str(&body).unwrap_or_else(|_| panic!("{call}: {status} {body}")))
    }
}
