//! Where a package comes from, as users and the lockfile write it.

use std::fmt;
use std::path::{Component, Path, PathBuf};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};

/// Bytes of a source.
const MAX_BYTES: usize = 2_000;
/// The forms of a source, for hints.
pub(crate) const FORMS: &str = "write a folder, a .tar.gz, a .zip, git+https://HOST/REPOSITORY@TAG, git+file:///PATH@TAG, oci://HOST/REPOSITORY:TAG or langfuse:NAME@LABEL";

/// Where a package comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A folder or an archive, relative to the project unless it is absolute.
    Path(PathBuf),
    /// A git repository.
    Git(GitSource),
    /// A repository of an OCI registry.
    Oci(OciSource),
    /// A prompt of Langfuse.
    Langfuse(LangfuseSource),
}

/// A prompt of Langfuse, and which version of it. The user's environment says which server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LangfuseSource {
    /// Its name there, which may have slashes and spaces.
    pub name: String,
    /// The version.
    pub version: LangfuseVersion,
}

/// A version of a prompt of Langfuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LangfuseVersion {
    /// The version that has this label now.
    Label(String),
    /// The version with this number.
    Number(u64),
}

/// A repository of an OCI registry, and what of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OciSource {
    /// The host, with its port if it has one.
    pub host: String,
    /// The name of the repository, with slashes.
    pub repository: String,
    /// The tag; `latest` if both are missing.
    pub tag: Option<String>,
    /// The digest of the manifest, as `sha256:…`.
    pub digest: Option<String>,
}

/// A git repository, a revision, and a folder in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitSource {
    /// `https://…` or `file://…`.
    pub url: String,
    /// A tag, a branch or a whole commit hash; the default branch if missing.
    pub revision: Option<String>,
    /// The folder of the package; the top if missing.
    pub folder: Option<String>,
}

impl Source {
    /// Reads a source. A path is as the lockfile has it: relative to the project.
    pub fn read(text: &str) -> Result<Source> {
        if text.is_empty() || text.len() > MAX_BYTES || text.chars().any(char::is_control) {
            return Err(wrong(text, "is empty, too long or has control characters", FORMS));
        }
        if let Some(url) = text.strip_prefix("git+") {
            return GitSource::read(text, url).map(Source::Git);
        }
        if let Some(rest) = text.strip_prefix("langfuse:") {
            return LangfuseSource::read(text, rest).map(Source::Langfuse);
        }
        match text.split_once("://") {
            Some(("oci", rest)) => OciSource::read(text, rest).map(Source::Oci),
            Some(("http" | "https", _)) if text.contains(".git") => {
                Err(wrong(text, "is a web address", format!("for a git repository, write git+{text}")))
            }
            Some(("http" | "https", _)) => Err(wrong(
                text,
                "is a web address",
                "download the archive first; for a git repository, write git+https://…",
            )),
            Some((scheme, _)) => Err(wrong(text, format!("has the unknown scheme `{scheme}`"), FORMS)),
            None => Ok(Source::Path(PathBuf::from(text))),
        }
    }

    /// Reads a source that a user wrote in a folder. A relative path becomes one relative to the project.
    pub fn given(text: &str, here: &Path, project: &Path) -> Result<Source> {
        match Source::read(text)? {
            Source::Path(path) if path.is_relative() => {
                let from_here = normal(&here.join(path));
                Ok(Source::Path(relative(&from_here, &normal(project)).unwrap_or(from_here)))
            }
            source => Ok(source),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Path(path) => f.write_str(&path.to_string_lossy().replace('\\', "/")),
            Source::Git(git) => {
                write!(f, "git+{}", git.url)?;
                if let Some(revision) = &git.revision {
                    write!(f, "@{revision}")?;
                }
                git.folder.as_ref().map_or(Ok(()), |folder| write!(f, "#{folder}"))
            }
            Source::Oci(oci) => oci.fmt(f),
            Source::Langfuse(langfuse) => langfuse.fmt(f),
        }
    }
}

impl fmt::Display for OciSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oci://{}/{}", self.host, self.repository)?;
        self.tag.as_ref().map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest.as_ref().map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

impl fmt::Display for LangfuseSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.version {
            LangfuseVersion::Label(label) => write!(f, "langfuse:{}@{label}", self.name),
            LangfuseVersion::Number(number) => write!(f, "langfuse:{}@{number}", self.name),
        }
    }
}

impl LangfuseSource {
    const FORM: &'static str = "write langfuse:NAME, langfuse:NAME@LABEL or langfuse:NAME@VERSION";
    /// The label that Langfuse serves if none is named.
    const LABEL: &'static str = "production";

    fn read(text: &str, rest: &str) -> Result<LangfuseSource> {
        let (name, version) = rest.rsplit_once('@').unwrap_or((rest, LangfuseSource::LABEL));
        LangfuseSource::check_name(text, name)?;
        let version = match version.bytes().all(|byte| byte.is_ascii_digit()) {
            true => version.parse().ok().filter(|number| *number > 0).map(LangfuseVersion::Number),
            false => is_label(version).then(|| LangfuseVersion::Label(version.to_owned())),
        };
        let wrong = || {
            wrong(
                text,
                "has neither a label (a-z, 0-9, `_`, `-`, `.`) nor a version after `@`",
                LangfuseSource::FORM,
            )
        };
        Ok(LangfuseSource { name: name.to_owned(), version: version.ok_or_else(wrong)? })
    }

    /// Reads the name of a prompt that is to be pushed: a source without a version.
    pub fn name_of(text: &str) -> Result<String> {
        let name = text
            .strip_prefix("langfuse:")
            .ok_or_else(|| wrong(text, "names no prompt of Langfuse", "write langfuse:NAME"))?;
        if name.contains('@') {
            return Err(wrong(
                text,
                "names a version, but a push makes a new one",
                Hint::option("write langfuse:NAME, and name labels", "--label LABEL"),
            ));
        }
        LangfuseSource::check_name(text, name)?;
        Ok(name.to_owned())
    }

    fn check_name(text: &str, name: &str) -> Result<()> {
        let is_wrong = name.trim() != name
            || name.is_empty()
            || name.chars().count() > 255
            || name.chars().any(|letter| letter.is_control() || "|<>".contains(letter))
            || name.split('/').any(|part| matches!(part.trim(), "" | "." | ".."));
        if is_wrong {
            return Err(wrong(text, "has no valid name of a prompt", LangfuseSource::FORM));
        }
        Ok(())
    }

    /// The id that the prompt gets here unless the user names one: its name, with `-` in place of what an id cannot have. `None` if
    /// nothing is left of it.
    pub fn id(&self) -> Option<String> {
        let letter = |letter: char| match letter.is_ascii_alphanumeric() || letter == '_' {
            true => letter,
            false => '-',
        };
        let id: String = self.name.chars().map(letter).collect();
        let id = id.trim_matches('-');
        (id.len() <= 100 && id.contains(|letter: char| letter.is_ascii_alphanumeric())).then(|| id.to_owned())
    }
}

/// Whether a text can be a label of Langfuse.
pub fn is_label(text: &str) -> bool {
    let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.".contains(&byte);
    (1..=36).contains(&text.len()) && text.bytes().all(known)
}

impl OciSource {
    fn read(text: &str, rest: &str) -> Result<OciSource> {
        const FORM: &str = "write oci://HOST/REPOSITORY:TAG or oci://HOST/REPOSITORY@sha256:…";
        let Some((host, path)) = rest.split_once('/') else {
            return Err(wrong(text, "names no repository", FORM));
        };
        let is_host = |host: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
            !host.is_empty() && host.bytes().all(known)
        };
        if !is_host(host) {
            return Err(wrong(text, "has no host, or has a name or password in it", FORM));
        }
        let (path, digest) = match path.split_once('@') {
            Some((path, digest)) => (path, Some(digest)),
            None => (path, None),
        };
        if digest.is_some_and(|digest| !digest.strip_prefix("sha256:").is_some_and(is_sha256)) {
            return Err(wrong(text, "has a digest that is not sha256: with 64 hexadecimal digits", FORM));
        }
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path, None),
        };
        let is_part = |part: &str| {
            let known =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
            part.starts_with(|c: char| c.is_ascii_alphanumeric()) && part.bytes().all(known)
        };
        if !repository.split('/').all(is_part) {
            return Err(wrong(text, "has no valid name of a repository", FORM));
        }
        let is_tag = |tag: &str| {
            let known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            (1..=128).contains(&tag.len()) && !tag.starts_with(['.', '-']) && tag.bytes().all(known)
        };
        if tag.is_some_and(|tag| !is_tag(tag)) {
            return Err(wrong(text, "has an invalid tag", FORM));
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let (host, repository) = (host.to_owned(), repository.to_owned());
        Ok(OciSource { host, repository, tag: owned(tag), digest: owned(digest) })
    }

    /// Whether the registry runs on this machine: only then without encryption.
    pub(crate) fn is_local(&self) -> bool {
        is_local(&self.host)
    }
}

/// Whether a host, with its port if it has one, is this machine.
pub(crate) fn is_local(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a text is a SHA-256 in hexadecimal digits.
pub(crate) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

impl GitSource {
    fn read(text: &str, url: &str) -> Result<GitSource> {
        let (url, folder) = match url.split_once('#') {
            Some((url, folder)) => (url, Some(folder)),
            None => (url, None),
        };
        let Some((scheme, rest)) = url.split_once("://") else {
            return Err(wrong(text, "has no `://`", FORMS));
        };
        if !["https", "file"].contains(&scheme) {
            let message =
                format!("uses `{scheme}`, but Cuebook fetches git repositories with https and file only");
            return Err(wrong(text, message, "write git+https://… or git+file://…"));
        }
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if scheme == "https" && (host.is_empty() || host.contains('@')) {
            return Err(wrong(
                text,
                "has no host, or has a name or password in it",
                "leave out names and passwords: git asks its own credential helper",
            ));
        }
        if path.trim_matches('/').is_empty() || scheme == "file" && !host.is_empty() {
            return Err(wrong(text, "names no repository", FORMS));
        }
        let (path, revision) = match path.rsplit_once('@') {
            Some((path, revision)) => (path, Some(revision)),
            None => (path, None),
        };
        if let Some(revision) = revision.filter(|revision| !is_revision(revision)) {
            let message =
                format!("has `{revision}` as its revision, which is not a tag, a branch or a commit");
            return Err(wrong(text, message, "write the name after `@`, as in @v1.2.0"));
        }
        if let Some(folder) = folder.filter(|folder| !is_folder(folder)) {
            let message = format!("has the folder `{folder}`, which does not stay inside the repository");
            return Err(wrong(text, message, "write a path such as #skills/review"));
        }
        if url.contains([' ', '\\', '"', '\'']) {
            return Err(wrong(text, "has characters that an address cannot have", FORMS));
        }
        Ok(GitSource {
            url: format!("{scheme}://{host}{path}"),
            revision: revision.map(str::to_owned),
            folder: folder.map(|folder| folder.trim_end_matches('/').to_owned()),
        })
    }
}

/// Whether a text can be the name of a tag or branch, or a commit, and cannot be anything else to git.
fn is_revision(text: &str) -> bool {
    let is_odd = |letter: char| letter.is_whitespace() || "~^:?*[\\{}\"'".contains(letter);
    !text.is_empty()
        && !text.starts_with(['-', '/', '.'])
        && !text.ends_with(['/', '.'])
        && !text.contains("..")
        && !text.contains("//")
        && !text.contains(is_odd)
}

fn is_folder(text: &str) -> bool {
    let text = text.trim_end_matches('/');
    !text.is_empty()
        && !text.contains('\\')
        && text.split('/').all(|part| !part.is_empty() && part != "." && part != ".." && part != ".git")
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(normal.pop()),
            other => normal.push(other),
        }
    }
    normal
}

/// A path as it is seen from a folder; none on another drive.
fn relative(path: &Path, from: &Path) -> Option<PathBuf> {
    let (path, from): (Vec<_>, Vec<_>) = (path.components().collect(), from.components().collect());
    let common = path.iter().zip(&from).take_while(|(one, other)| one == other).count();
    if common == 0 {
        return None;
    }
    let up = from[common..].iter().map(|_| Component::ParentDir);
    let found: PathBuf = up.chain(path[common..].iter().copied()).collect();
    Some(if found.as_os_str().is_empty() { PathBuf::from(".") } else { found })
}

pub(crate) fn wrong(source: &str, what: impl fmt::Display, hint: impl Into<Hint>) -> Error {
    let diagnostic = Diagnostic::new(Code::BadPackageSource, format!("the source `{source}` {what}"));
    Error::new(ErrorKind::Pack, diagnostic.hint(hint.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_source_is_written_as_it_was_read() {
        for text in [
            "../courtesy",
            "packs/a-1.0.tar.gz",
            "git+https://example.com/team/prompts.git",
            "git+https://example.com/team/prompts.git@v1.2.0",
            "git+https://example.com:8443/prompts@feature/new#skills/review",
            "oci://registry.example/team/prompts",
            "oci://registry.example:5000/team/prompts:1.2.0",
            "oci://127.0.0.1:5000/a:1@sha256:0123456789012345678901234567890123456789012345678901234567890123",
            "git+file:///srv/prompts@0123456789012345678901234567890123456789",
            "langfuse:movie-critic@production",
            "langfuse:team/a b@2.1/greeting@12",
        ] {
            assert_eq!(Source::read(text).unwrap().to_string(), text);
        }
        let Source::Git(git) = Source::read("git+https://example.com/a@b#c/").unwrap() else { panic!() };
        assert_eq!((git.url.as_str(), git.revision.as_deref()), ("https://example.com/a", Some("b")));
        assert_eq!(git.folder.as_deref(), Some("c"));
    }

    #[test]
    fn wrong_sources_are_refused() {
        for text in [
            "",
            "a\nb",
            "https://example.com/a.zip",
            "oci://example.com",
            "oci://example.com/",
            "oci://ada:secret@example.com/a",
            "oci://example.com/A",
            "oci://example.com/../a",
            "oci://example.com/a:",
            "oci://example.com/a:-x",
            "oci://example.com/a@sha256:12",
            "ftp://example.com/a",
            "git+ssh://example.com/a",
            "git+ext::sh",
            "git+http://example.com/a",
            "git+https://ada:secret@example.com/a",
            "git+https:///a",
            "git+https://example.com/",
            "git+file://host/a",
            "git+https://example.com/a@",
            "git+https://example.com/a@--upload-pack=x",
            "git+https://example.com/a@a..b",
            "git+https://example.com/a@HEAD~1",
            "git+https://example.com/a#../b",
            "git+https://example.com/a#/b",
            "git+https://example.com/a#.git",
            "langfuse:",
            "langfuse:@production",
            "langfuse:a@",
            "langfuse:a@0",
            "langfuse:a@Production",
            "langfuse:a@99999999999999999999",
            "langfuse:a|b",
            "langfuse:../a",
            "langfuse:a//b",
            "langfuse: a",
        ] {
            let error = Source::read(text).unwrap_err();
            assert_eq!(error.code(), Code::BadPackageSource, "{text}");
            assert!(error.diagnostic().hint.is_some(), "{text}");
        }
    }

    #[test]
    fn the_id_of_a_pulled_prompt_is_one_safe_name() {
        let id = |text: &str| match Source::read(text).unwrap() {
            Source::Langfuse(source) => source.id(),
            other => panic!("{other}"),
        };
        assert_eq!(id("langfuse:movie-critic").as_deref(), Some("movie-critic"));
        assert_eq!(id("langfuse:team/a b.c@3").as_deref(), Some("team-a-b-c"));
        assert_eq!(id("langfuse:.env").as_deref(), Some("env"));
        assert_eq!(id("langfuse:\\..\\a").as_deref(), Some("a"));
        assert_eq!(id("langfuse:日本").as_deref(), None);
    }

    #[test]
    fn paths_are_relative_to_the_project() {
        let given =
            |text: &str| Source::given(text, Path::new("/p/sub"), Path::new("/p")).unwrap().to_string();
        assert_eq!(given("../../courtesy"), "../courtesy");
        assert_eq!(given("./a.zip"), "sub/a.zip");
        assert_eq!(given(".."), ".");
        assert_eq!(given("/srv/a"), "/srv/a");
    }
}
