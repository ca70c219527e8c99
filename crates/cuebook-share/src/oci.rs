//! Packages in OCI registries: a manifest with one layer, which is a `.tar.gz`.
//!
//! The manifest and the layer are checked against their SHA-256. The lockfile records the digest of the manifest, so that a tag that
//! moves changes nothing until an update.
//!
//! A registry may ask for a token or a password. The user's password goes only to the host that the user named with it: to the registry,
//! or to the host that gives out its tokens. Any other host is asked for a token without one. Cuebook asks for the right to pull this one
//! repository, whatever the registry proposes.

use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use cuebook::sha256::{Sha256, hex};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use serde_json::Value as Json;
use ureq::config::RedirectAuthHeaders;
use ureq::http::{Response, StatusCode, Uri, header};
use ureq::{Agent, Body};

use crate::challenge::Challenge;
use crate::credentials::{self, Credentials};
use crate::git::PrivateFolder;
use crate::source::{OciSource, is_local};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const ACCEPTED: &str =
    "application/vnd.oci.image.manifest.v1+json, application/vnd.docker.distribution.manifest.v2+json";
const MAX_MANIFEST: u64 = 1 << 20;
/// What an archive of a package may have.
const MAX_LAYER: u64 = 64 << 20;
const LONGEST: Duration = Duration::from_secs(300);
const RETRY: &str = "check the name and the network";

/// The archive of a package, in a private folder.
pub(crate) struct Layer {
    /// The SHA-256 of the manifest, in hexadecimal digits.
    pub digest: String,
    /// The archive.
    pub path: PathBuf,
    _folder: PrivateFolder,
}

impl Layer {
    /// Fetches what a source names now, or the manifest of the lockfile.
    pub fn fetch(source: &OciSource, pinned: Option<&str>) -> Result<Layer> {
        let mut registry = Registry::new(source)?;
        let pinned = pinned.map(|digest| format!("sha256:{digest}")).or_else(|| source.digest.clone());
        let reference = pinned.as_deref().or(source.tag.as_deref()).unwrap_or("latest");
        let manifest = registry.get(&format!("manifests/{reference}"), Some(ACCEPTED), MAX_MANIFEST)?;
        let digest = hex(&Sha256::digest(&manifest));
        if pinned.as_ref().is_some_and(|pinned| *pinned != format!("sha256:{digest}")) {
            return Err(registry.failed("the registry sent another manifest than the one with this digest"));
        }
        let (wanted, size) = registry.layer(&manifest)?;
        let bytes = registry.get(&format!("blobs/{wanted}"), None, MAX_LAYER)?;
        if bytes.len() as u64 != size || format!("sha256:{}", hex(&Sha256::digest(&bytes))) != wanted {
            return Err(registry.failed("the layer does not have the digest and size of the manifest"));
        }
        let folder = PrivateFolder::new("the archive of a registry")?;
        let path = folder.path().join("package.tar.gz");
        std::fs::write(&path, bytes).map_err(|error| files::write_error("package.tar.gz", &error))?;
        Ok(Layer { digest, path, _folder: folder })
    }
}

/// A repository of a registry.
struct Registry<'s> {
    source: &'s OciSource,
    agent: Agent,
    credentials: Credentials,
    /// The header `Authorization` that the registry asked for.
    authorization: Option<String>,
    /// The host that wants a login, if the registry asks for one: its own, or that of its tokens.
    login_host: String,
}

impl Registry<'_> {
    fn new(source: &OciSource) -> Result<Registry<'_>> {
        // No redirect gets the header `Authorization`: blobs are often on other hosts.
        let config = Agent::config_builder()
            .timeout_global(Some(LONGEST))
            .http_status_as_error(false)
            .https_only(!source.is_local())
            .max_redirects(5)
            .redirect_auth_headers(RedirectAuthHeaders::Never)
            .user_agent(concat!("cuebook/", env!("CARGO_PKG_VERSION")));
        let credentials = Credentials::from_environment()?;
        Ok(Registry {
            source,
            agent: config.build().into(),
            credentials,
            authorization: None,
            login_host: source.host.clone(),
        })
    }

    /// The bytes behind a path of the repository. A token is fetched if the registry asks for one.
    fn get(&mut self, path: &str, accept: Option<&str>, limit: u64) -> Result<Vec<u8>> {
        let scheme = if self.source.is_local() { "http" } else { "https" };
        let url = format!("{scheme}://{}/v2/{}/{path}", self.source.host, self.source.repository);
        let mut response = self.ask(&url, accept)?;
        if response.status() == StatusCode::UNAUTHORIZED && self.authorization.is_none() {
            let headers = response.headers().get_all(header::WWW_AUTHENTICATE);
            let challenge = Challenge::read(headers.iter().filter_map(|value| value.to_str().ok()));
            self.authorization = Some(self.authorize(challenge)?);
            response = self.ask(&url, accept)?;
        }
        match response.status() {
            StatusCode::OK => self.body(response, limit),
            status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                Err(self.refused(format!("the registry answers {status}")))
            }
            status => Err(self.failed(format!("the registry answers {status}"))),
        }
    }

    fn ask(&self, url: &str, accept: Option<&str>) -> Result<Response<Body>> {
        let mut request = self.agent.get(url);
        if let Some(accept) = accept {
            request = request.header(header::ACCEPT, accept);
        }
        if let Some(authorization) = &self.authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        request.call().map_err(|error| self.failed(format!("the request fails: {error}")))
    }

    fn body(&self, response: Response<Body>, limit: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = response.into_body().into_reader().take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.failed(format!("the answer ends early: {error}")))?;
        match bytes.len() as u64 > limit {
            true => Err(self.failed(format!("the answer is larger than {limit} bytes"))),
            false => Ok(bytes),
        }
    }

    /// The header that answers what the registry asks for.
    fn authorize(&mut self, challenge: Option<Challenge>) -> Result<String> {
        match challenge {
            Some(Challenge::Bearer { realm, service }) => self.fetch_token(&realm, service.as_deref()),
            Some(Challenge::Basic) => {
                let known = self.credentials.of(&self.source.host).map(str::to_owned);
                known.ok_or_else(|| self.refused("the registry asks for a password"))
            }
            None => Err(self.failed("the registry asks for a proof that Cuebook does not know")),
        }
    }

    /// A token from where the registry says.
    fn fetch_token(&mut self, realm: &str, service: Option<&str>) -> Result<String> {
        let uri: Option<Uri> = realm.parse().ok();
        let host = uri.as_ref().and_then(Uri::authority).map(|host| host.as_str()).unwrap_or_default();
        let scheme = uri.as_ref().and_then(Uri::scheme_str);
        let is_safe =
            scheme == Some("https") || scheme == Some("http") && self.source.is_local() && is_local(host);
        if !is_safe || host.is_empty() || host.contains('@') {
            return Err(self.failed("the registry names no https address for tokens"));
        }
        // A query of the registry's could ask for rights that Cuebook does not ask for.
        if uri.as_ref().is_some_and(|uri| uri.query().is_some()) {
            return Err(self.failed("the registry names an address for tokens that has a query"));
        }
        self.login_host = host.to_owned();
        let mut request = self.agent.get(realm);
        if let Some(service) = service {
            request = request.query("service", service);
        }
        request = request.query("scope", format!("repository:{}:pull", self.source.repository));
        // The registry gets the token, so a login makes one only for a registry that has the same login.
        let of_registry = self.credentials.of(&self.source.host);
        if let Some(login) = self.credentials.of(host).filter(|login| of_registry == Some(*login)) {
            request = request.header(header::AUTHORIZATION, login);
        }
        let response = request.call().map_err(|error| self.failed(format!("no token: {error}")))?;
        if response.status() != StatusCode::OK {
            return Err(self.refused(format!("{host} gives no token: {}", response.status())));
        }
        let answer: Json = serde_json::from_slice(&self.body(response, MAX_MANIFEST)?).unwrap_or_default();
        let token = answer["token"].as_str().or(answer["access_token"].as_str());
        let token =
            token.filter(|token| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic()));
        token.map(|token| format!("Bearer {token}")).ok_or_else(|| self.failed("the registry gives no token"))
    }

    /// Digest and size of the one layer of a manifest.
    fn layer(&self, manifest: &[u8]) -> Result<(String, u64)> {
        let manifest: Json = serde_json::from_slice(manifest).unwrap_or_default();
        let layers = manifest["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let [layer] = layers else {
            let message = match manifest["manifests"].is_array() {
                true => "the reference is an index of several manifests".to_owned(),
                false => format!("the manifest has {} layers, but a package has one", layers.len()),
            };
            let hint = format!("push one .tar.gz as a manifest of the type {MANIFEST}");
            return Err(self.with_hint(message, hint));
        };
        let kind = layer["mediaType"].as_str().unwrap_or_default();
        if !kind.ends_with("tar+gzip") && !kind.ends_with("tar.gzip") {
            let message = format!("the layer has the type `{kind}`, but a package is a tar+gzip");
            return Err(self.with_hint(message, "push a .tar.gz".to_owned()));
        }
        let digest = layer["digest"].as_str().unwrap_or_default();
        let is_digest = digest.strip_prefix("sha256:").is_some_and(crate::source::is_sha256);
        match (is_digest, layer["size"].as_u64().filter(|size| *size <= MAX_LAYER)) {
            (true, Some(size)) => Ok((digest.to_owned(), size)),
            _ => Err(self.failed("the manifest gives no SHA-256 of the layer, or a size over 64 MiB")),
        }
    }

    /// The error for a host that wants a name and a password, or others.
    fn refused(&self, message: impl Into<String>) -> Error {
        let (variable, host, own) = (credentials::VARIABLE, &self.login_host, &self.source.host);
        let known = [host, own].map(|host| self.credentials.of(host));
        let hint = if known[0].is_some() && known[0] == known[1] {
            format!("check the name and the password of {host} in {variable}")
        } else if host == own {
            format!("for a private repository, set {variable}={host}=USER:PASSWORD in your environment")
        } else {
            format!(
                "for a private repository, set {variable}=\"{own}=USER:PASSWORD {host}=USER:PASSWORD\" in your environment, \
                 with one login for both: {host} makes the tokens of {own}"
            )
        };
        let message = format!("{}: {}", self.source, message.into());
        Error::new(ErrorKind::Pack, Diagnostic::new(Code::RegistryAccess, message).hint(hint))
    }

    fn failed(&self, message: impl Into<String>) -> Error {
        self.with_hint(message, RETRY.to_owned())
    }

    fn with_hint(&self, message: impl Into<String>, hint: String) -> Error {
        let message = format!("{}: {}", self.source, message.into());
        Error::new(ErrorKind::Pack, Diagnostic::new(Code::FetchFailed, message).hint(hint))
    }
}
