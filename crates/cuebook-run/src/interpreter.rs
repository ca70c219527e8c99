//! The program that a tool runs with: which file it is, so that answers and lockfiles can name it.

use std::path::{Path, PathBuf};

use cuebook::sha256::hex;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

/// A program as a tool starts it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// Where it was found.
    pub(crate) path: String,
    /// The file that this leads to.
    pub(crate) target: String,
    /// Whether the project holds it.
    pub(crate) in_project: bool,
    /// The file to start, with its folder resolved: what is checked is what runs, whatever `/proc/self` or a relative path
    /// means to another process. None if there is no such file.
    pub(crate) file: Option<PathBuf>,
}

/// The folders of programs where `PATH` is not set.
const NO_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

impl Interpreter {
    /// Finds a program as the system does: a name on the `PATH`, or a path from the folder that the tool starts in.
    pub(crate) fn find(program: &str, cwd: &Path, project: &Path, path: Option<&str>) -> Interpreter {
        let found = match program.contains('/') {
            true => Some(cwd.join(program)),
            false => std::env::split_paths(path.unwrap_or(NO_PATH))
                .map(|folder| cwd.join(folder).join(program))
                .find(|file| is_program(file)),
        };
        let path = found.unwrap_or_else(|| PathBuf::from(program));
        let target = std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let real = std::fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
        let in_project =
            [&path, &target].iter().any(|file| file.starts_with(project) || file.starts_with(&real));
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let folder = path.is_file().then(|| path.parent()?.canonicalize().ok()).flatten();
        let file = folder.and_then(|folder| Some(folder.join(path.file_name()?)));
        Interpreter { path: text(&path), target: text(&target), in_project, file }
    }

    /// SHA-256 of the file, in hexadecimal digits; none if it cannot be read.
    pub(crate) fn digest(&self) -> Option<String> {
        let mut file = std::fs::File::open(&self.target).ok()?;
        let (mut hasher, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
        loop {
            match std::io::Read::read(&mut file, &mut buffer).ok()? {
                0 => break,
                count => hasher.update(&buffer[..count]),
            }
        }
        Some(hex(&hasher.finalize()))
    }

    /// What a lockfile says of it: the file, and its content if the project holds it. The host is part of it, because
    /// another machine has its interpreters elsewhere.
    pub(crate) fn locked(&self) -> Json {
        let digest = self.in_project.then(|| self.digest()).flatten();
        let (path, target, in_project) = (&self.path, &self.target, self.in_project);
        json!({"path": path, "target": target, "in_project": in_project, "sha256": digest, "host": host()})
    }
}

/// A short digest that tells this machine from others.
pub(crate) fn host() -> String {
    let read = |file: &str| std::fs::read_to_string(file).ok().filter(|id| !id.trim().is_empty());
    let id = read("/etc/machine-id").or_else(|| read("/etc/hostname")).unwrap_or_default();
    let digest = Sha256::digest(format!("cuebook host {}", id.trim()));
    hex(&digest[..8])
}

fn is_program(file: &Path) -> bool {
    let Ok(metadata) = file.metadata() else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    metadata.is_file() && runs
}
