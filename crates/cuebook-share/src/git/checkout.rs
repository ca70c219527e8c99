//! The files of a package in a git repository, as plain files in a private folder.
//!
//! The repository is a stranger's. It is fetched into a new repository, so that no settings of the project or the source count. No
//! hook, filter, attribute or submodule of it has an effect: git only lists files and prints their contents, and Cuebook writes them.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};

use super::{LONGEST, PrivateFolder, Running, ask, failed, first_error_line, line, looking, path_of};
use crate::source::{GitSource, wrong};

/// How long a fetch may take.
const LONGEST_FETCH: Duration = Duration::from_secs(300);
/// What a package may have; the library has the same limits for archives.
const MAX_FILES: usize = 10_000;
const MAX_BYTES: u64 = 64 << 20;
/// The ref that holds what is wanted.
const WANTED: &str = "refs/cuebook/wanted";
/// Files that make a folder a package.
const MANIFESTS: [&str; 2] = ["pack.json", "SKILL.md"];
const FSCK: &str = "the repository may be damaged: ask its owner";

/// The files of a commit. They are removed when this goes.
pub(crate) struct Checkout {
    /// The hash of the commit.
    pub commit: String,
    /// The folder with the files.
    pub path: PathBuf,
    _folder: PrivateFolder,
}

struct Blob {
    path: PathBuf,
    hash: String,
    size: u64,
}

struct Fetching<'s> {
    source: &'s GitSource,
    project: &'s Path,
    folder: PrivateFolder,
}

impl Checkout {
    /// Fetches a source: its revision as it is now, or the commit that the lockfile has.
    pub fn fetch(source: &GitSource, pinned: Option<&str>, project: &Path) -> Result<Checkout> {
        let folder = PrivateFolder::new("the copy of a repository")?;
        let fetching = Fetching { source, project, folder };
        let made = fetching.run(["init", "--quiet", "--bare", "--template=", "repository"], false)?;
        if !made.status.success() {
            return Err(failed(format!("git cannot create a repository: {}", first_error_line(&made)), FSCK));
        }
        let wanted = match pinned {
            Some(commit) => commit.to_owned(),
            None => fetching.resolve()?,
        };
        let commit = fetching.commit(&wanted)?;
        let blobs = fetching.list(&commit)?;
        let path = fetching.folder.path().join("files");
        fetching.write(&path, &blobs)?;
        Ok(Checkout { commit, path, _folder: fetching.folder })
    }
}

impl Fetching<'_> {
    /// The program, with the new repository. Only a fetch may reach the source, by the one protocol that it names.
    fn git(&self, remote: bool) -> Result<Command> {
        let mut command = looking(self.project)?;
        let folder = self.folder.path();
        command.current_dir(folder).env("GIT_DIR", folder.join("repository"));
        for (name, value) in [
            ("core.askPass", ""),
            ("credential.interactive", "false"),
            ("fetch.fsckObjects", "true"),
            ("fetch.recurseSubmodules", "false"),
            ("gc.auto", "0"),
            ("http.lowSpeedLimit", "1000"),
            ("http.lowSpeedTime", "60"),
            ("maintenance.auto", "false"),
            ("submodule.recurse", "false"),
        ] {
            command.arg("-c").arg(format!("{name}={value}"));
        }
        for name in
            ["GIT_ASKPASS", "SSH_ASKPASS", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_TEMPLATE_DIR"]
        {
            command.env_remove(name);
        }
        if remote {
            let scheme = self.source.url.split(':').next().unwrap_or_default();
            command
                .env("GIT_ALLOW_PROTOCOL", scheme)
                .arg("-c")
                .arg(format!("protocol.{scheme}.allow=always"));
        }
        Ok(command)
    }

    fn run<'a>(&self, question: impl IntoIterator<Item = &'a str>, remote: bool) -> Result<Output> {
        ask(self.git(remote)?.args(question), if remote { LONGEST_FETCH } else { LONGEST })
    }

    fn unreachable(&self, output: &Output) -> Error {
        let message = format!("git cannot fetch {}: {}", self.source.url, first_error_line(output));
        let hint = "check the address, the network, and that `git ls-remote` works with it";
        Error::new(ErrorKind::Pack, Diagnostic::new(Code::FetchFailed, message).hint(hint))
    }

    /// The hash of the commit that a tag or a branch names now.
    fn resolve(&self) -> Result<String> {
        let revision = self.source.revision.as_deref();
        if let Some(hash) = revision.filter(|text| is_hash(text)) {
            return Ok(hash.to_owned());
        }
        let listed = self.run(["ls-remote", "--quiet", "--end-of-options", &self.source.url], true)?;
        if !listed.status.success() {
            return Err(self.unreachable(&listed));
        }
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let refs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('\t')).collect();
        let hash = |name: &str| {
            refs.iter().find(|(hash, found)| *found == name && is_hash(hash)).map(|(hash, _)| *hash)
        };
        let found = match revision {
            None => hash("HEAD"),
            // The object behind an annotated tag is listed with `^{}`.
            Some(name) => hash(&format!("refs/tags/{name}^{{}}"))
                .or_else(|| hash(&format!("refs/tags/{name}")))
                .or_else(|| hash(&format!("refs/heads/{name}"))),
        };
        if let Some(hash) = found {
            return Ok(hash.to_owned());
        }
        let Some(name) = revision else {
            return Err(wrong(
                &self.source.url,
                "is a repository without commits",
                "commit the package first",
            ));
        };
        let names: Vec<&str> = refs
            .iter()
            .filter_map(|(_, name)| name.strip_prefix("refs/tags/").or(name.strip_prefix("refs/heads/")))
            .filter(|name| !name.ends_with("^{}"))
            .collect();
        let near = nearest(name, names.iter().copied());
        let hint =
            did_you_mean(&near).unwrap_or_else(|| match name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                true => "write all 40 digits of a commit".to_owned(),
                false => "name a tag, a branch or a whole commit hash".to_owned(),
            });
        let message = format!("{} has no tag or branch `{name}`", self.source.url);
        let diagnostic = Diagnostic::new(Code::FetchFailed, message).hint(hint);
        Err(Error::new(ErrorKind::Pack, diagnostic).with("nearest", near))
    }

    /// Fetches an object, and gives the commit that it is or leads to.
    fn commit(&self, wanted: &str) -> Result<String> {
        let quiet = ["fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"];
        let one = format!("+{wanted}:{WANTED}");
        let alone = self
            .run(quiet.into_iter().chain(["--depth=1", "--end-of-options", &self.source.url, &one]), true)?;
        let name = if alone.status.success() {
            WANTED
        } else {
            // Some servers give only what a branch or a tag names.
            let all = ["+refs/heads/*:refs/cuebook/heads/*", "+refs/tags/*:refs/cuebook/tags/*"];
            let url = ["--end-of-options", self.source.url.as_str()];
            let fetched = self.run(quiet.into_iter().chain(url).chain(all), true)?;
            if !fetched.status.success() {
                return Err(self.unreachable(&fetched));
            }
            wanted
        };
        let peeled = format!("{name}^{{commit}}");
        let output = self.run(["rev-parse", "--verify", "--quiet", "--end-of-options", &peeled], false)?;
        let hash = String::from_utf8_lossy(line(&output.stdout)).into_owned();
        if output.status.success() && is_hash(&hash) {
            return Ok(hash);
        }
        let message = format!("{} has no commit {wanted}", self.source.url);
        let hint = "the commit may be gone from its branch: pin another one";
        Err(Error::new(ErrorKind::Pack, Diagnostic::new(Code::FetchFailed, message).hint(hint)))
    }

    /// The files of the package's folder.
    fn list(&self, commit: &str) -> Result<Vec<Blob>> {
        let output =
            self.run(["ls-tree", "-r", "-z", "-l", "--full-tree", "--end-of-options", commit], false)?;
        if !output.status.success() {
            return Err(failed(
                format!("git cannot list the files of {commit}: {}", first_error_line(&output)),
                FSCK,
            ));
        }
        let folder = Path::new(self.source.folder.as_deref().unwrap_or_default());
        let (mut blobs, mut bytes, mut packages) = (Vec::new(), 0_u64, Vec::new());
        for entry in output.stdout.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            let damaged = || failed(format!("cannot parse git's file list of {commit}"), FSCK);
            let tab = entry.iter().position(|byte| *byte == b'\t').ok_or_else(damaged)?;
            let about = String::from_utf8_lossy(&entry[..tab]).into_owned();
            let path = path_of(&entry[tab + 1..]);
            let words: Vec<&str> = about.split_whitespace().collect();
            let [mode, kind, hash, size] = words.as_slice() else { return Err(damaged()) };
            if path.file_name().is_some_and(|name| MANIFESTS.iter().any(|file| name == *file)) {
                packages.push(path.parent().unwrap_or(Path::new("")).to_string_lossy().into_owned());
            }
            let Ok(inside) = path.strip_prefix(folder) else { continue };
            if inside.iter().any(|part| part.to_string_lossy().starts_with('.')) {
                continue;
            }
            let refuse = |what: &str| {
                let message = format!("the entry `{}` is {what}", path.display());
                let diagnostic =
                    Diagnostic::new(Code::ArchiveRefused, message).file(self.source.url.as_str());
                Error::new(ErrorKind::Pack, diagnostic.hint("a package holds only files and folders"))
            };
            match (*mode, *kind) {
                ("120000", _) => return Err(refuse("a symbolic link")),
                (_, "blob") => {}
                _ => return Err(refuse("a submodule")),
            }
            let size = size.parse().map_err(|_| damaged())?;
            bytes += size;
            if blobs.len() == MAX_FILES || bytes > MAX_BYTES {
                let message = format!("has more than {MAX_FILES} files or {MAX_BYTES} bytes");
                let diagnostic =
                    Diagnostic::new(Code::ArchiveRefused, message).file(self.source.url.as_str());
                let hint = "name the folder of the package after `#`";
                return Err(Error::new(ErrorKind::Limit, diagnostic.hint(hint)));
            }
            let inside = plain(inside).ok_or_else(|| refuse("not inside the package"))?;
            blobs.push(Blob { path: inside, hash: (*hash).to_owned(), size });
        }
        if blobs.iter().any(|blob| MANIFESTS.iter().any(|file| blob.path == Path::new(file))) {
            return Ok(blobs);
        }
        Err(self.no_package(&packages))
    }

    fn no_package(&self, packages: &[String]) -> Error {
        let what = match &self.source.folder {
            Some(folder) => format!("has no package in `{folder}`"),
            None => "has no package at its top".to_owned(),
        };
        let shown: Vec<String> = packages.iter().take(3).map(|folder| format!("#{folder}")).collect();
        let hint = match shown.as_slice() {
            [] => "a package is a folder with pack.json or SKILL.md".to_owned(),
            shown => format!("name its folder after the address: {}", shown.join(", ")),
        };
        wrong(&self.source.url, what, hint)
    }

    /// Writes the contents of files below a folder.
    fn write(&self, folder: &Path, blobs: &[Blob]) -> Result<()> {
        let io = |error: std::io::Error| files::write_error("the copy of a repository", &error);
        fs::create_dir(folder).map_err(io)?;
        let mut command = self.git(false)?;
        command.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut running = Running::start(&mut command, LONGEST)?;
        let (stdin, stdout) = (running.stdin.take(), running.stdout.take());
        let hashes: String = blobs.iter().map(|blob| format!("{}\n", blob.hash)).collect();
        // A client that writes all questions before reading an answer may wait for a server that waits.
        let asking = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(hashes.as_bytes())));
        let done = stdout.map_or(Ok(()), |stdout| {
            let mut from = BufReader::new(stdout);
            blobs.iter().try_for_each(|blob| {
                let bytes = answer(&mut from, blob)?;
                let path = folder.join(&blob.path);
                fs::create_dir_all(path.parent().unwrap_or(folder)).map_err(io)?;
                fs::File::create_new(&path).and_then(|mut file| file.write_all(&bytes)).map_err(io)
            })
        });
        if done.is_err() {
            running.end();
        }
        let _ = asking.join();
        running.wait().map(drop)?;
        done
    }
}

/// One answer of `git cat-file --batch`.
fn answer(from: &mut impl BufRead, blob: &Blob) -> Result<Vec<u8>> {
    let unreadable = || failed(format!("git has no file {} in the commit", blob.hash), FSCK);
    let mut header = String::new();
    from.by_ref().take(256).read_line(&mut header).map_err(|_| unreadable())?;
    let words: Vec<&str> = header.split_whitespace().collect();
    let [hash, "blob", size] = words.as_slice() else { return Err(unreadable()) };
    if size.parse() != Ok(blob.size) || !hash.eq_ignore_ascii_case(&blob.hash) {
        return Err(unreadable());
    }
    let mut bytes = Vec::new();
    from.by_ref().take(blob.size + 1).read_to_end(&mut bytes).map_err(|_| unreadable())?;
    if bytes.pop() != Some(b'\n') || bytes.len() as u64 != blob.size {
        return Err(unreadable());
    }
    Ok(bytes)
}

/// A path of plain names only.
fn plain(path: &Path) -> Option<PathBuf> {
    let is_plain = path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    (is_plain && path.file_name().is_some()).then(|| path.to_owned())
}

fn is_hash(text: &str) -> bool {
    [40, 64].contains(&text.len()) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
