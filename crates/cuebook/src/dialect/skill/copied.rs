//! A copy of a skill in another folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use cuebook_text::sha256::{Sha256, hex};

use super::SkillFolder;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::files;
use crate::library::exchange_folders;

impl SkillFolder {
    /// Copies the skill with all its files to a folder of skills, and gives the new folder. Nothing happens if the same files are there
    /// already. `replace` lets the copy take the place of other files, in one step where the system can.
    ///
    /// # Errors
    ///
    /// `CB318` if the format does not allow its name, `CB114` if the copy cannot be written or other files are there, and as for
    /// [`SkillFolder::files`].
    pub fn copy_to(&self, skills: &Path, shown: &str, replace: bool) -> Result<PathBuf> {
        self.check()?;
        let (target, shown) = (skills.join(self.name()), format!("{shown}/{}", self.name()));
        let failed = |error: io::Error| files::write_error(&shown, &error);
        let is_there = target.symlink_metadata().is_ok();
        if is_there {
            let mut there = self.clone();
            (there.folder, there.shown) = (target.clone(), shown.clone());
            if there.files().is_ok_and(|found| self.files().is_ok_and(|own| own == found)) {
                return Ok(target);
            }
            if !replace {
                let diagnostic =
                    Diagnostic::new(Code::WriteFailed, "another skill has this name").file(&shown);
                let hint = Hint::option("move it away, or replace it", "--replace");
                return Err(Error::new(ErrorKind::Io, diagnostic.hint(hint)));
            }
        }
        fs::create_dir_all(skills).map_err(failed)?;
        // The name begins with a dot, so that no list shows an unfinished copy.
        let staging = files::temporary_beside(&target);
        let copied = self.write_to(&staging.join(self.name()), &shown).and_then(|copy| {
            let moved = match is_there {
                true => exchange_folders(&copy, &target, &staging),
                false => fs::rename(&copy, &target),
            };
            moved.and_then(|()| files::sync_folder(skills)).map_err(failed)
        });
        let _ = fs::remove_dir_all(&staging);
        copied.map(|()| target)
    }

    /// Writes all its files into a new folder.
    fn write_to(&self, copy: &Path, shown: &str) -> Result<PathBuf> {
        let failed = |error: io::Error| files::write_error(shown, &error);
        fs::create_dir_all(copy).map_err(failed)?;
        for (path, file) in self.files()? {
            let bytes = self.read(&path)?.filter(|bytes| hex(&Sha256::digest(bytes)) == file.sha256);
            let Some(bytes) = bytes else {
                let diagnostic = Diagnostic::new(Code::WriteFailed, format!("`{path}` is being changed"));
                let hint = "load the skill again when no program writes to it";
                return Err(Error::new(ErrorKind::Io, diagnostic.file(self.shown()).hint(hint)));
            };
            let to = copy.join(&path);
            to.parent()
                .map_or(Ok(()), fs::create_dir_all)
                .and_then(|()| fs::write(&to, bytes))
                .map_err(failed)?;
        }
        Ok(copy.to_owned())
    }
}
