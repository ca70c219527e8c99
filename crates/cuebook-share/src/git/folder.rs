//! Private folders for copies, which do not outlive their process for long.
//!
//! A process that is killed leaves its folder behind. Each folder has a file that its process keeps locked; the next run removes
//! those whose lock is free.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cuebook::{Result, files};
use tempfile::TempDir;

const PREFIX: &str = "cuebook-diff-";
const LOCK: &str = "lock";
/// A folder without a lock may just be about to get one.
const YOUNG: Duration = Duration::from_secs(3_600);

/// A folder that only the user can open. It is removed when it goes.
#[derive(Debug)]
pub struct PrivateFolder {
    path: PathBuf,
    /// Dropped before the lock.
    _folder: TempDir,
    _lock: File,
}

impl PrivateFolder {
    /// Makes one for a copy, and removes those that killed processes left behind.
    pub fn new(what: &str) -> Result<PrivateFolder> {
        PrivateFolder::make(&std::env::temp_dir()).map_err(|error| files::write_error(what, &error))
    }

    fn make(parent: &Path) -> std::io::Result<PrivateFolder> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let folder = builder.tempdir_in(parent)?;
        // Other processes remove a folder whose lock is free, so the lock gets its name only after this process has it.
        let unnamed = folder.path().join("unnamed");
        let lock = File::create_new(&unnamed)?;
        lock.lock()?;
        fs::rename(unnamed, folder.path().join(LOCK))?;
        let path = folder.path().canonicalize()?.join("tree");
        fs::create_dir(&path)?;
        sweep(parent, folder.path());
        Ok(PrivateFolder { path, _folder: folder, _lock: lock })
    }

    /// The folder for the copy, without links in its path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Removes what killed processes of this user left behind. What cannot be removed stays for the next time.
fn sweep(parent: &Path, own: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if entry.file_name().to_string_lossy().starts_with(PREFIX)
            && path != own
            && is_left_behind(&path, own)
        {
            let _ = fs::remove_dir_all(&path);
        }
    }
}

fn is_left_behind(path: &Path, own: &Path) -> bool {
    let (Ok(about), Ok(mine)) = (path.symlink_metadata(), own.symlink_metadata()) else { return false };
    if !about.is_dir() || !has_same_owner(&about, &mine) {
        return false;
    }
    match File::open(path.join(LOCK)) {
        Ok(lock) => !matches!(lock.try_lock(), Err(TryLockError::WouldBlock)),
        Err(_) => about.modified().ok().and_then(|time| time.elapsed().ok()).is_some_and(|age| age > YOUNG),
    }
}

#[cfg(unix)]
fn has_same_owner(one: &fs::Metadata, other: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    one.uid() == other.uid()
}

#[cfg(not(unix))]
fn has_same_owner(_: &fs::Metadata, _: &fs::Metadata) -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_ended_processes_are_removed_and_others_stay() {
        let parent = tempfile::tempdir().unwrap();
        let living = PrivateFolder::make(parent.path()).unwrap();
        let left = parent.path().join(format!("{PREFIX}left"));
        fs::create_dir(&left).unwrap();
        File::create(left.join(LOCK)).unwrap();
        let young = parent.path().join(format!("{PREFIX}young"));
        fs::create_dir(&young).unwrap();
        let another = PrivateFolder::make(parent.path()).unwrap();
        assert!(living.path().exists() && another.path().exists() && young.exists() && !left.exists());
        drop((living, another));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_being_made_is_not_removed() {
        let parent = tempfile::tempdir().unwrap();
        let make = || PrivateFolder::make(parent.path()).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..50).for_each(|_| assert!(make().path().exists())));
            }
        });
    }

    #[cfg(unix)]
    #[test]
    fn only_the_user_can_open_the_folder() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let folder = PrivateFolder::make(parent.path()).unwrap();
        let above = folder.path().parent().unwrap();
        assert_eq!(above.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    }
}
