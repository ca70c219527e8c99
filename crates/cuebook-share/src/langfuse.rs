//! Prompts in Langfuse, through its public interface.
//!
//! The address and the keys come from the user's environment and from nowhere else: a file of a project names a prompt, but never where
//! the keys go. A redirect is an error, so that no other host gets them.

use std::io::Read;
use std::time::Duration;

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_lab::convert::{LangfusePrompt, OutFile};
use serde_json::Value as Json;
use ureq::http::{Response, StatusCode, Uri, header};
use ureq::{Agent, Body};

use crate::credentials::basic;
use crate::source::{LangfuseSource, LangfuseVersion, is_local};

/// The variables with the address and the keys.
const HOST: &str = "LANGFUSE_HOST";
const PUBLIC_KEY: &str = "LANGFUSE_PUBLIC_KEY";
const SECRET_KEY: &str = "LANGFUSE_SECRET_KEY";
/// Bytes of an answer.
const MAX_ANSWER: u64 = 8 << 20;
/// Characters of the server's message that an error shows.
const MAX_MESSAGE: usize = 200;
const LONGEST: Duration = Duration::from_secs(60);

/// A prompt of Langfuse as files.
pub(crate) struct PulledPrompt {
    /// The files.
    pub files: Vec<OutFile>,
    /// The version.
    pub version: String,
    /// What is different in the files.
    pub notes: Vec<String>,
}

impl PulledPrompt {
    /// Fetches what a source names now, or the version of the lockfile. `id` is the name of the prompt here.
    pub fn fetch(source: &LangfuseSource, pinned: Option<&str>, id: &str) -> Result<PulledPrompt> {
        let version = match pinned.map(str::parse) {
            Some(Ok(version)) => LangfuseVersion::Number(version),
            Some(Err(_)) => {
                return Err(crate::source::wrong(
                    &source.to_string(),
                    "has no valid version",
                    "restore cuebook.lock",
                ));
            }
            None => source.version.clone(),
        };
        let wanted = LangfuseSource { name: source.name.clone(), version };
        let prompt = Langfuse::from_environment()?.get(&wanted)?;
        let placed = |error: Error| error.map(|found| found.file(wanted.to_string()));
        let (files, notes) = prompt.to_files(id).map_err(placed)?;
        let version = prompt.version.unwrap_or_default().to_string();
        Ok(PulledPrompt { files, version, notes })
    }
}

/// A project of Langfuse.
pub struct Langfuse {
    host: String,
    authorization: String,
    /// What no message may show.
    secrets: [String; 2],
    agent: Agent,
}

impl Langfuse {
    /// The project that the user's environment names.
    ///
    /// # Errors
    ///
    /// `CB245` if a variable is missing, or the address does not use https. Only a server on this machine may use http.
    pub fn from_environment() -> Result<Langfuse> {
        let get = |name: &str| {
            let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
            value.ok_or_else(|| {
                access(
                    format!("{name} is not set"),
                    format!("set {HOST}, {PUBLIC_KEY} and {SECRET_KEY} in your environment"),
                )
            })
        };
        Langfuse::new(&get(HOST)?, &get(PUBLIC_KEY)?, &get(SECRET_KEY)?)
    }

    fn new(host: &str, public: &str, secret: &str) -> Result<Langfuse> {
        let hint =
            format!("write the address of your Langfuse into {HOST}, as in https://langfuse.example.com");
        let host = host.trim().trim_end_matches('/');
        let uri: Uri = host.parse().map_err(|_| access(format!("{HOST} is not an address"), hint.clone()))?;
        let authority = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
        let is_safe =
            uri.scheme_str() == Some("https") || uri.scheme_str() == Some("http") && is_local(authority);
        if !is_safe || authority.is_empty() || authority.contains('@') || uri.query().is_some() {
            return Err(access(
                format!("{HOST} must be https://HOST, without names, passwords or a query"),
                hint,
            ));
        }
        if [public, secret]
            .iter()
            .any(|key| key.contains(':') || !key.bytes().all(|byte| byte.is_ascii_graphic()))
        {
            let hint = "copy the keys from the settings of your project in Langfuse";
            return Err(access(
                format!("{PUBLIC_KEY} or {SECRET_KEY} has characters that a key cannot have"),
                hint.into(),
            ));
        }
        let config = Agent::config_builder()
            .timeout_global(Some(LONGEST))
            .http_status_as_error(false)
            .https_only(uri.scheme_str() == Some("https"))
            .max_redirects(0)
            .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")));
        let authorization = basic(&format!("{public}:{secret}"));
        Ok(Langfuse {
            host: host.to_owned(),
            secrets: [secret.to_owned(), authorization.trim_start_matches("Basic ").to_owned()],
            authorization,
            agent: config.build().into(),
        })
    }

    fn get(&self, source: &LangfuseSource) -> Result<LangfusePrompt> {
        let url = format!("{}/api/public/v2/prompts/{}", self.host, encoded(&source.name));
        let request = self.agent.get(&url).header(header::AUTHORIZATION, &self.authorization);
        let request = match &source.version {
            LangfuseVersion::Label(label) => request.query("label", label),
            LangfuseVersion::Number(number) => request.query("version", number.to_string()),
        };
        let failed = |message: String| fetch_failed(source, message);
        let response = request.call().map_err(|error| failed(format!("the request fails: {error}")))?;
        let answer = self.answer(response, Code::FetchFailed, &source.to_string())?;
        let prompt = LangfusePrompt::read(&answer)
            .map_err(|error| error.map(|found| found.file(source.to_string())))?;
        let is_other = match &source.version {
            LangfuseVersion::Number(number) => prompt.version != Some(*number),
            LangfuseVersion::Label(_) => false,
        };
        if prompt.name != source.name || is_other {
            return Err(failed("the server sent another prompt or version".to_owned()));
        }
        Ok(prompt)
    }

    /// Stores a prompt as a new version with these labels, and gives its number.
    ///
    /// # Errors
    ///
    /// `CB245` if the keys are refused, `CB247` if the server does not store the prompt.
    pub fn push(&self, prompt: &LangfusePrompt, labels: &[String]) -> Result<u64> {
        let url = format!("{}/api/public/v2/prompts", self.host);
        let request = self.agent.post(&url).header(header::AUTHORIZATION, &self.authorization);
        let request = request.header(header::CONTENT_TYPE, "application/json");
        let shown = format!("langfuse:{}", prompt.name);
        let failed = |message: String| {
            let diagnostic = Diagnostic::new(Code::PushFailed, format!("{shown}: {message}"));
            Error::new(
                ErrorKind::Pack,
                diagnostic.hint("look at the prompt in Langfuse before you push again"),
            )
        };
        let response = request.send(prompt.to_json(labels).to_string());
        let response = response.map_err(|error| failed(format!("the request fails: {error}")))?;
        let answer = self.answer(response, Code::PushFailed, &shown)?;
        answer["version"].as_u64().ok_or_else(|| failed("the answer names no version".to_owned()))
    }

    /// The JSON of an answer.
    fn answer(&self, response: Response<Body>, code: Code, shown: &str) -> Result<Json> {
        let failed = |message: String| {
            let hint = match code {
                Code::PushFailed => "change the prompt, its name or its labels",
                _ => "check the name, the label or version, and the network",
            };
            Error::new(ErrorKind::Pack, Diagnostic::new(code, format!("{shown}: {message}")).hint(hint))
        };
        let status = response.status();
        if status.is_redirection() {
            let hint = format!("write the address that the server itself has into {HOST}");
            return Err(access(
                format!("{shown}: the server redirects to another address, which does not get the keys"),
                hint,
            ));
        }
        let mut bytes = Vec::new();
        let read = response.into_body().into_reader().take(MAX_ANSWER + 1).read_to_end(&mut bytes);
        read.map_err(|error| failed(format!("the answer ends early: {error}")))?;
        if bytes.len() as u64 > MAX_ANSWER {
            return Err(failed(format!("the answer is larger than {MAX_ANSWER} bytes")));
        }
        let answer: Option<Json> = serde_json::from_slice(&bytes).ok();
        if status == StatusCode::UNAUTHORIZED || status == StatusCode::FORBIDDEN {
            let hint = format!(
                "check {HOST}, {PUBLIC_KEY} and {SECRET_KEY}: keys belong to one project on one host"
            );
            return Err(access(format!("{shown}: the server refuses the keys: {status}"), hint));
        }
        if !status.is_success() {
            let said = answer.as_ref().and_then(|answer| answer["message"].as_str());
            let said = said.filter(|said| !self.secrets.iter().any(|secret| said.contains(secret)));
            let said = said.map(|said| {
                said.chars().filter(|letter| !letter.is_control()).take(MAX_MESSAGE).collect::<String>()
            });
            let said = said.map(|said| format!(": {said}")).unwrap_or_default();
            return Err(failed(format!("the server answers {status}{said}")));
        }
        answer.ok_or_else(|| failed("the answer is not JSON".to_owned()))
    }
}

fn fetch_failed(source: &LangfuseSource, message: String) -> Error {
    let diagnostic = Diagnostic::new(Code::FetchFailed, format!("{source}: {message}"));
    Error::new(ErrorKind::Pack, diagnostic.hint("check the name, the label or version, and the network"))
}

fn access(message: String, hint: String) -> Error {
    Error::new(ErrorKind::Pack, Diagnostic::new(Code::RegistryAccess, message).hint(hint))
}

/// A text as one part of the path of an address.
fn encoded(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(byte.into()),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}
