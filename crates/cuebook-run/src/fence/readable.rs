//! What of the system a tool can read beyond the programs and libraries that every fenced program has.

use std::path::{Path, PathBuf};

use super::parent;

/// Places that hold programs or settings of the system, and no secrets. None of them need exist.
const SYSTEM: [&str; 34] = [
    "/opt",
    "/snap",
    "/run/current-system",
    "/etc/static",
    "/etc/ssl/certs",
    "/etc/ssl/cert.pem",
    "/etc/ssl/openssl.cnf",
    "/etc/pki/tls/certs",
    "/etc/pki/tls/cert.pem",
    "/etc/pki/tls/openssl.cnf",
    "/etc/pki/ca-trust/extracted",
    "/etc/ca-certificates",
    "/etc/ca-certificates.conf",
    "/etc/crypto-policies",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/gai.conf",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/services",
    "/etc/mime.types",
    "/etc/magic",
    "/etc/os-release",
    "/etc/lsb-release",
    "/etc/debian_version",
    "/etc/timezone",
    "/etc/locale.alias",
    "/etc/bash.bashrc",
    "/etc/inputrc",
    "/etc/terminfo",
    "/etc/fonts",
    "/etc/perl",
    "/etc/python3",
    "/etc/java-17-openjdk",
];

/// Folders that every fenced program sees.
const SEEN: [&str; 8] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt", "/snap", "/nix/store"];

/// The places of the system that there are.
pub(super) fn system() -> Vec<PathBuf> {
    SYSTEM.iter().map(PathBuf::from).filter(|path| path.exists()).collect()
}

/// The user's home folder.
pub(super) fn home() -> Option<PathBuf> {
    // Without the variable, the system knows it.
    std::env::home_dir().filter(|home| !home.as_os_str().is_empty()).and_then(|home| home.canonicalize().ok())
}

/// What a program needs to see of itself: its file, and the libraries of an interpreter that lies in a folder of the user's,
/// as those of pyenv, uv and nvm do.
pub(super) fn of_program(program: &Path, project: &Path) -> Vec<PathBuf> {
    let mut needed = vec![program.to_owned()];
    let Ok(real) = program.canonicalize() else { return Vec::new() };
    let is_seen =
        |path: &Path| SEEN.iter().any(|folder| path.starts_with(folder)) || path.starts_with(project);
    if is_seen(program) && is_seen(&real) {
        return Vec::new();
    }
    let folder = real.parent().and_then(Path::file_name).unwrap_or_default();
    let prefix = real.parent().and_then(parent).filter(|prefix| !holds_home(prefix));
    match prefix {
        // A script that looks for the interpreter below the folder that holds it.
        Some(prefix) if folder == "shims" => needed.push(prefix.to_owned()),
        Some(prefix) if folder == "bin" => {
            let parts = ["bin", "lib", "lib64", "libexec", "include", "pyvenv.cfg"];
            needed.extend(parts.map(|part| prefix.join(part)).into_iter().filter(|path| path.exists()));
        }
        _ => {}
    }
    needed
}

fn holds_home(folder: &Path) -> bool {
    home().is_some_and(|home| home.starts_with(folder))
}
