//! Project grants: the powers that a project asks for, and that its user gave it.
//!
//! A project's files can ask for power outside the project: another interpreter, a weaker sandbox, environment variables,
//! network hosts, trusted keys. A request has no effect until the user grants it. The grant lives in the user's own space,
//! `config/grants/<digest of the project's path>.json`, and binds the project's path and the content that the user saw:
//! changed content needs a new grant. No file inside a project can grant anything.

use std::path::{Path, PathBuf};

use crate::sha256::{Sha256, hex};
use indexmap::IndexMap;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, printable, shell_word};
use crate::files::{self, Lock};
use crate::items::{Spaces, user_name};

/// The folder of grants below the user's `.ai`.
pub(crate) const GRANTS: &str = "config/grants";
/// The largest file of grants.
const LARGEST: u64 = 16 << 20;

/// A kind of power that a project can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Power {
    /// A setting of `cuebook.toml` that reaches outside the project or relaxes a limit.
    Setting,
    /// A virtual environment or another interpreter of the project.
    Interpreter,
    /// The project's `.env`.
    EnvFile,
    /// An environment variable that prompts of the project read into their text.
    Env,
    /// A key of the project's own trust store.
    Key,
    /// Network hosts that a signed tool declares.
    Hosts,
    /// Tools that a model calls run without the sandbox.
    Unfenced,
    /// An MCP client of another project may work in this one.
    Serve,
    /// A pack's tool replaces another tool.
    Replacement,
}

impl Power {
    /// Its word, as in `env-file`.
    pub fn as_str(self) -> &'static str {
        match self {
            Power::Setting => "setting",
            Power::Interpreter => "interpreter",
            Power::EnvFile => "env-file",
            Power::Env => "env",
            Power::Key => "key",
            Power::Hosts => "hosts",
            Power::Unfenced => "unfenced",
            Power::Serve => "serve",
            Power::Replacement => "replacement",
        }
    }
}

/// Something that a project asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The kind of power.
    pub power: Power,
    /// What it is for, as in `hooks.python` or `.env`; together with the kind it identifies the request.
    pub subject: String,
    /// The content that the user sees before they decide.
    pub shown: String,
    digest: String,
}

impl Request {
    /// A request whose grant binds the content that is shown.
    pub fn new(power: Power, subject: impl Into<String>, shown: impl Into<String>) -> Request {
        let shown = shown.into();
        Request { power, subject: subject.into(), digest: hex(&Sha256::digest(&shown)), shown }
    }

    /// The request that MCP clients of a server for another project may work in this one.
    pub fn serve() -> Request {
        let shown = "MCP clients of another project's server may read, search and execute here";
        Request::new(Power::Serve, "mcp", shown)
    }

    /// The request that prompts of the project may read an environment variable into their text.
    pub fn env(name: &str) -> Request {
        let shown = format!("prompts show the environment variable {name}, also to models and MCP clients");
        Request::new(Power::Env, format!("env:{name}"), shown)
    }

    /// Binds the grant to more than what is shown: a digest over files that are too large to print.
    #[must_use]
    pub fn bound_to(mut self, content: &str) -> Request {
        let mut hasher = Sha256::new();
        hasher.update(self.digest.as_bytes());
        hasher.update(content.as_bytes());
        self.digest = hex(&hasher.finalize());
        self
    }

    fn key(&self) -> String {
        format!("{}:{}", self.power.as_str(), self.subject)
    }

    /// The error where nothing can be done without the grant.
    pub fn needed(&self, state: Granted) -> Error {
        Error::new(ErrorKind::Integrity, self.finding(state))
            .with("power", self.power.as_str())
            .with("subject", self.subject.as_str())
    }

    /// The warning where the request is ignored.
    pub fn ignored(&self, state: Granted) -> Diagnostic {
        let finding = self.finding(state).severity(Severity::Warning);
        Diagnostic { message: format!("{}; Cuebook ignores it", finding.message), ..finding }
    }

    fn finding(&self, state: Granted) -> Diagnostic {
        let (what, subject) = match self.subject.strip_prefix("env:") {
            Some(name) if self.power == Power::Env => ("environment variable", name),
            _ => (self.power.as_str(), self.subject.as_str()),
        };
        let mut message = format!("{what} `{}` needs a grant", printable(subject));
        if state == Granted::Changed {
            message.push_str(": it has changed since you granted it");
        }
        let hint = match self.power {
            Power::Interpreter | Power::Env => {
                Hint::run("review it", format!("cuebook allow {}", printable(&shell_word(&self.subject))))
            }
            _ => Hint::run("review what this project asks for", "cuebook allow"),
        };
        Diagnostic::new(Code::GrantNeeded, message).hint(hint)
    }
}

/// Whether a request is granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Granted {
    /// The user granted exactly this content.
    Yes,
    /// The user granted other content for the same subject.
    Changed,
    /// The user granted nothing for this subject.
    No,
}

/// A grant as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// The kind of power.
    pub power: Power,
    /// What it is for.
    pub subject: String,
    /// When it was granted.
    pub granted_at: String,
    /// The content that the user saw.
    pub shown: String,
    digest: String,
}

/// The grants of one project.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Record {
    project: PathBuf,
    grants: IndexMap<String, Grant>,
}

/// The grants of one project, as its user stored them.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    /// Where they are stored, and the name of that file for people; none for a user without a home folder.
    file: Option<(PathBuf, String)>,
    record: Record,
}

impl Grants {
    /// Reads the grants of a project. A user without a home folder has granted nothing.
    pub fn of(spaces: &Spaces) -> Result<Grants> {
        let project = resolved(spaces.project());
        let Some((path, name)) = file_of(spaces, GRANTS) else { return Ok(Grants::default()) };
        let record = read(&path, &name)?.unwrap_or_default();
        // Two paths could share a digest only by intent, and a copied file would speak for another project.
        let record = Some(record).filter(|record| record.project == project).unwrap_or_default();
        Ok(Grants { file: Some((path, name)), record: Record { project, ..record } })
    }

    /// The grants of all projects that a user has granted something. A damaged file is an error in its place.
    pub fn all(spaces: &Spaces) -> Vec<Result<Grants>> {
        let Some(user) = spaces.user_folder() else { return Vec::new() };
        let folder = user.join(GRANTS);
        let entries = std::fs::read_dir(&folder).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.retain(|name| !name.starts_with('.') && name.ends_with(".json"));
        names.sort_unstable();
        let of = |file: String| {
            let (path, name) = (folder.join(&file), format!("{}/{GRANTS}/{file}", user_name(&user)));
            let record = read(&path, &name)?.unwrap_or_default();
            Ok(Grants { file: Some((path, name)), record })
        };
        names.into_iter().map(of).collect()
    }

    /// The content that was granted for a request's subject.
    pub fn granted_before(&self, request: &Request) -> Option<&Grant> {
        self.record.grants.get(&request.key())
    }

    /// Whether a request is granted.
    pub fn state(&self, request: &Request) -> Granted {
        match self.record.grants.get(&request.key()) {
            Some(grant) if grant.digest == request.digest && grant.power == request.power => Granted::Yes,
            Some(_) => Granted::Changed,
            None => Granted::No,
        }
    }

    /// Whether the user granted exactly this.
    pub fn has(&self, request: &Request) -> bool {
        self.state(request) == Granted::Yes
    }

    /// An error unless the user granted exactly this.
    pub fn require(&self, request: &Request) -> Result<()> {
        match self.state(request) {
            Granted::Yes => Ok(()),
            state => Err(request.needed(state)),
        }
    }

    /// The grants, in the order in which they were made.
    pub fn list(&self) -> impl Iterator<Item = &Grant> {
        self.record.grants.values()
    }

    /// The project that they are for.
    pub fn project(&self) -> &Path {
        &self.record.project
    }

    /// Stores grants for requests that the user saw.
    pub fn allow(&mut self, requests: &[Request], now: Timestamp) -> Result<()> {
        let granted_at = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        self.change(|grants| {
            for request in requests {
                let grant = Grant {
                    power: request.power,
                    subject: request.subject.clone(),
                    granted_at: granted_at.clone(),
                    shown: request.shown.clone(),
                    digest: request.digest.clone(),
                };
                grants.insert(request.key(), grant);
            }
        })
    }

    /// Removes grants, all of them or those of a subject, and returns how many there were.
    pub fn revoke(&mut self, subject: Option<&str>) -> Result<usize> {
        self.change(|grants| {
            let before = grants.len();
            grants.retain(|_, grant| subject.is_some_and(|subject| grant.subject != subject));
            before - grants.len()
        })
    }

    /// Changes the stored grants under their lock, so that two processes lose nothing.
    fn change<T>(&mut self, change: impl FnOnce(&mut IndexMap<String, Grant>) -> T) -> Result<T> {
        let Some((path, name)) = &self.file else {
            let diagnostic = Diagnostic::new(Code::GrantNeeded, "there is no home folder to store grants in")
                .hint("set HOME, or USER_SPACE to the folder that holds your `.ai`");
            return Err(Error::new(ErrorKind::Integrity, diagnostic));
        };
        let lock = Lock::acquire(path, name)?;
        let stored = read(path, name)?.filter(|stored| stored.project == self.record.project);
        let mut grants = stored.unwrap_or_default().grants;
        let result = change(&mut grants);
        let record = Record { project: self.record.project.clone(), grants };
        let mut text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        text.push(b'\n');
        lock.write_private(name, &text)?;
        self.record = record;
        Ok(result)
    }
}

fn read(path: &Path, name: &str) -> Result<Option<Record>> {
    if files::look(path).map_err(|error| files::io_error(name, &error))?.is_none() {
        return Ok(None);
    }
    let source = files::read_text(path, name, LARGEST)?;
    let record = serde_json::from_str(source.text()).map_err(|error| {
        let diagnostic =
            Diagnostic::new(Code::BadGrants, format!("invalid grants: {error}")).file(name).hint(
                Hint::command_line("delete the file, then run `cuebook allow` again")
                    .for_programs("delete the file"),
            );
        Error::new(ErrorKind::Config, diagnostic)
    })?;
    Ok(Some(record))
}

/// The file in the user's space that holds something about a project, and its name for people; none for a user without a home
/// folder.
pub(crate) fn file_of(spaces: &Spaces, folder: &str) -> Option<(PathBuf, String)> {
    let user = spaces.user_folder()?;
    let project = resolved(spaces.project());
    let digest = hex(&Sha256::digest(project.as_os_str().as_encoded_bytes()));
    let below = format!("{folder}/{}.json", &digest[..32]);
    Some((user.join(&below), format!("{}/{below}", user_name(&user))))
}

/// The real path of a project. One that cannot be resolved keeps its spelling, and its grants do not match any other.
pub(crate) fn resolved(project: &Path) -> PathBuf {
    std::fs::canonicalize(project).unwrap_or_else(|_| project.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Project {
        _folder: tempfile::TempDir,
        spaces: Spaces,
    }

    fn project() -> Project {
        let folder = tempfile::tempdir().unwrap();
        let (project, user) = (folder.path().join("project"), folder.path().join("user"));
        std::fs::create_dir_all(&project).unwrap();
        Project { spaces: Spaces::new(&project, Some(&user)), _folder: folder }
    }

    #[test]
    fn a_grant_holds_for_exactly_the_content_shown() {
        let project = project();
        let request = Request::new(Power::EnvFile, ".env", "A=1\n");
        let mut grants = Grants::of(&project.spaces).unwrap();
        assert_eq!(grants.state(&request), Granted::No);
        assert_eq!(grants.require(&request).unwrap_err().code(), Code::GrantNeeded);
        grants.allow(std::slice::from_ref(&request), Timestamp::UNIX_EPOCH).unwrap();
        let grants = Grants::of(&project.spaces).unwrap();
        assert!(grants.has(&request));
        assert_eq!(grants.state(&Request::new(Power::EnvFile, ".env", "A=2\n")), Granted::Changed);
        assert_eq!(grants.state(&request.clone().bound_to("more")), Granted::Changed);
        assert_eq!(grants.state(&Request::new(Power::Setting, ".env", "A=1\n")), Granted::No);
    }

    #[test]
    fn a_grant_file_of_another_project_counts_for_nothing() {
        let project = project();
        let request = Request::new(Power::EnvFile, ".env", "A=1\n");
        let mut grants = Grants::of(&project.spaces).unwrap();
        grants.allow(std::slice::from_ref(&request), Timestamp::UNIX_EPOCH).unwrap();
        let user = project.spaces.user_folder().unwrap();
        let other = project.spaces.project().with_file_name("other");
        std::fs::create_dir(&other).unwrap();
        let other = Spaces::new(&other, user.parent());
        let of = |spaces: &Spaces| Grants::of(spaces).unwrap().file.unwrap().0;
        std::fs::copy(of(&project.spaces), of(&other)).unwrap();
        assert!(!Grants::of(&other).unwrap().has(&request));
    }

    #[test]
    fn revoke_removes_one_subject_or_all() {
        let project = project();
        let requests = ["a", "b", "c"].map(|subject| Request::new(Power::Setting, subject, "x"));
        let mut grants = Grants::of(&project.spaces).unwrap();
        grants.allow(&requests, Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(grants.revoke(Some("b")).unwrap(), 1);
        let mut grants = Grants::of(&project.spaces).unwrap();
        assert_eq!(requests.each_ref().map(|request| grants.has(request)), [true, false, true]);
        assert_eq!(grants.revoke(None).unwrap(), 2);
        assert_eq!(Grants::of(&project.spaces).unwrap().list().count(), 0);
    }

    #[test]
    fn a_damaged_grant_file_is_an_error_and_not_an_empty_one() {
        let project = project();
        let grants = Grants::of(&project.spaces).unwrap();
        let (path, _) = grants.file.unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{").unwrap();
        assert_eq!(Grants::of(&project.spaces).unwrap_err().code(), Code::BadGrants);
    }
}
