//! What of a project a fenced tool cannot change: the files and folders that carry trust, the `.git` of repositories inside it, and
//! environments that the user granted.
//!
//! Inside of the fence they are mounted once more, read-only. Nothing can be mounted on a name that does not exist, so a missing
//! one gets an empty placeholder for as long as tools run, and the last tool removes it. A file in the user's space lists the
//! placeholders, and locks on it tell whether other tools still run; after a crash the next tool tidies up.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::nested;

/// The names that carry trust, and whether they are folders.
const TRUSTED: [(&str, bool); 7] = [
    (".ai", true),
    ("user_data", true),
    (".git", true),
    (".venv", true),
    ("cuebook.toml", false),
    ("cuebook.lock", false),
    (".env", false),
];

/// Whether a path of a project is, or lies in, what carries trust. Case does not matter: on some systems it names the same file.
pub(crate) fn carries_trust(project: &Path, path: &Path) -> bool {
    let first = path.strip_prefix(project).ok().and_then(|path| path.components().next());
    first.is_some_and(|first| TRUSTED.iter().any(|(name, _)| first.as_os_str().eq_ignore_ascii_case(name)))
}

/// What looks empty: the file of variables may hold secrets, and the state of threads their logs.
const HIDDEN: [&str; 2] = [".env", ".ai/state"];

/// What a tool cannot change, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Guards {
    guarded: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    project: PathBuf,
    locks: Option<Locks>,
}

/// The locks of a project: `record` is held for a moment and lists placeholders, `users` is held by every running tool.
#[derive(Debug)]
struct Locks {
    record: File,
    users: File,
}

impl Guards {
    pub(super) fn new(
        project: &Path,
        user: Option<&Path>,
        private: &[PathBuf],
        home: Option<PathBuf>,
        environments: &[PathBuf],
    ) -> io::Result<Guards> {
        // Also if nothing is missing: what is there may be the placeholder of another tool, which removes it soon.
        let locks = Some(Locks::hold(project, user)?);
        let mut guards =
            Guards { guarded: Vec::new(), hidden: Vec::new(), project: project.to_owned(), locks };
        for (name, _) in TRUSTED {
            let path = project.join(name);
            match path.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Err(link(&path)),
                Ok(_) => guards.guarded.push(path),
                // There was no placeholder to be made, so there is nothing that a tool could make.
                Err(_) => {}
            }
        }
        let deeper = nested::repositories(project)?.into_iter().chain(environments.iter().cloned());
        for path in deeper.filter(|path| path.starts_with(project) && !carries_trust(project, path)) {
            match path.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Err(link(&path)),
                Ok(_) if !guards.guarded.contains(&path) => guards.guarded.push(path),
                _ => {}
            }
        }
        guards.hide(user, private, home)?;
        Ok(guards)
    }

    /// Hides what holds secrets, wherever links lead; what lies outside of the project is not seen anyway.
    fn hide(&mut self, user: Option<&Path>, private: &[PathBuf], home: Option<PathBuf>) -> io::Result<()> {
        let project = fs::canonicalize(&self.project)?;
        let real = |path: PathBuf| fs::canonicalize(path).ok().filter(|real| real.starts_with(&project));
        self.hidden.extend(HIDDEN.map(|name| project.join(name)).into_iter().filter_map(real));
        self.hidden.extend(home.and_then(real));
        if let Some(user) = user.and_then(|user| real(user.to_owned())) {
            // Where the project is the user's own folder, its items are the project's as well.
            let keys = real(user.join("config"));
            match user == project.join(".ai") {
                true => self.hidden.extend(keys),
                false => self.hidden.push(user),
            }
        }
        self.hidden.extend(private.iter().cloned().filter_map(real));
        // What lies in something hidden is not there any more.
        let all = self.hidden.clone();
        self.hidden.retain(|path| !all.iter().any(|other| path != other && path.starts_with(other)));
        self.hidden.sort();
        self.hidden.dedup();
        Ok(())
    }

    /// What can be read and not changed.
    pub(crate) fn guarded(&self) -> &[PathBuf] {
        &self.guarded
    }

    /// Folders that cannot be renamed, because something in them is guarded.
    pub(crate) fn ways(&self) -> Vec<PathBuf> {
        nested::ways(&self.project, &self.guarded)
    }

    /// What looks empty.
    pub(crate) fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }
}

impl Drop for Guards {
    fn drop(&mut self) {
        if let Some(locks) = self.locks.take() {
            // What cannot be removed now is removed by the next tool.
            let _ = locks.release(&self.project);
        }
    }
}

fn link(path: &Path) -> io::Error {
    let message = format!("{} is a link, which the sandbox cannot protect", path.display());
    io::Error::new(io::ErrorKind::Unsupported, message)
}

impl Locks {
    /// Opens the locks of a project: in the user's space, or in the state of the project, which tools do not see.
    fn open(project: &Path, user: Option<&Path>) -> io::Result<(File, File)> {
        let real = fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
        let digest = Sha256::digest(real.as_os_str().as_encoded_bytes());
        let name = cuebook::sha256::hex(&digest[..12]);
        let open = |space: &Path| {
            let folder = space.join("state/fence");
            private_folder(&folder)?;
            Ok((private_file(&folder.join(&name))?, private_file(&folder.join(format!("{name}.users")))?))
        };
        let of_user = user.map_or_else(|| Err(io::ErrorKind::NotFound.into()), open);
        of_user.or_else(|_: io::Error| open(&project.join(".ai")))
    }

    /// Makes placeholders for what is missing, and holds them.
    fn hold(project: &Path, user: Option<&Path>) -> io::Result<Locks> {
        let (record, users) = Locks::open(project, user)?;
        record.lock()?;
        let held = users.lock_shared().and_then(|()| make_placeholders(project, &record));
        record.unlock()?;
        held.map(|()| Locks { record, users })
    }

    /// Removes the placeholders, unless another tool still runs.
    fn release(self, project: &Path) -> io::Result<()> {
        let Locks { mut record, users } = self;
        record.lock()?;
        users.unlock()?;
        if users.try_lock().is_ok() {
            let mut names = String::new();
            record.rewind()?;
            (&record).take(4096).read_to_string(&mut names)?;
            for (name, is_folder) in
                TRUSTED.into_iter().filter(|(name, _)| names.lines().any(|line| line == *name))
            {
                remove_placeholder(&project.join(name), is_folder);
            }
            record.set_len(0)?;
            users.unlock()?;
        }
        record.unlock()
    }
}

fn make_placeholders(project: &Path, mut record: &File) -> io::Result<()> {
    for (name, is_folder) in TRUSTED {
        let path = project.join(name);
        if path.symlink_metadata().is_ok() {
            continue;
        }
        // Recorded first, so that it is removed also after a crash.
        record.seek(io::SeekFrom::End(0))?;
        writeln!(record, "{name}")?;
        let made = match is_folder {
            true => fs::create_dir(&path),
            false => OpenOptions::new().write(true).create_new(true).open(&path).map(drop),
        };
        match made {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            // The tool cannot make it either.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
                ) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Removes a placeholder that is still one: after a change it is no longer ours.
fn remove_placeholder(path: &Path, is_folder: bool) {
    if is_folder {
        let _ = fs::remove_dir(path);
    } else if path.symlink_metadata().is_ok_and(|file| file.is_file() && file.len() == 0) {
        let _ = fs::remove_file(path);
    }
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}

fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(project: &Path) -> Vec<&'static str> {
        TRUSTED.map(|(name, _)| name).into_iter().filter(|name| project.join(name).exists()).collect()
    }

    #[test]
    fn placeholders_go_with_the_last_tool() {
        let folder = tempfile::tempdir().unwrap();
        let (project, user) = (folder.path().join("p"), folder.path().join("u/.ai"));
        fs::create_dir_all(project.join(".ai/state")).unwrap();
        let one = Guards::new(&project, Some(&user), &[], None, &[]).unwrap();
        let two = Guards::new(&project, Some(&user), &[], None, &[]).unwrap();
        assert_eq!(one.guarded().len(), TRUSTED.len());
        assert_eq!(two.guarded().len(), TRUSTED.len());
        drop(one);
        assert_eq!(there(&project).len(), TRUSTED.len());
        drop(two);
        assert_eq!(there(&project), [".ai"]);
    }

    #[test]
    fn a_used_placeholder_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (project, user) = (folder.path().join("p"), folder.path().join("u/.ai"));
        fs::create_dir_all(&project).unwrap();
        let guards = Guards::new(&project, Some(&user), &[], None, &[]).unwrap();
        fs::write(project.join(".env"), "A=1").unwrap();
        fs::write(project.join(".git/HEAD"), "x").unwrap();
        drop(guards);
        assert_eq!(there(&project), [".git", ".env"]);
    }

    #[test]
    fn a_crash_leaves_placeholders_to_the_next_tool() {
        let folder = tempfile::tempdir().unwrap();
        let (project, user) = (folder.path().join("p"), folder.path().join("u/.ai"));
        fs::create_dir_all(&project).unwrap();
        let mut crashed = Guards::new(&project, Some(&user), &[], None, &[]).unwrap();
        // The system closes the files of a process that dies, and nothing else.
        drop(crashed.locks.take());
        assert_eq!(there(&project).len(), TRUSTED.len());
        // A process that another test starts just now holds a copy of the closed file until its program runs.
        for _ in 0..200 {
            drop(Guards::new(&project, Some(&user), &[], None, &[]).unwrap());
            if there(&project).is_empty() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("left: {:?}", there(&project));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_the_place_of_a_guarded_name_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/tmp", folder.path().join(".venv")).unwrap();
        let error = Guards::new(folder.path(), None, &[], None, &[]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::Unsupported);
    }
}
