//! What binds a grant to the files of an environment.
//!
//! An environment can lead to other places of the project: a link (`node_modules/tool -> ../packages/tool`), a `home` in
//! `pyvenv.cfg`, a line of a `.pth` file. Code there runs with the environment, so it is part of the grant. Of a folder in a `.pth`
//! file only what Python loads unasked is: a tool that imports the project's own modules does so on purpose.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sha256::{Sha256, hex};

use crate::error::Result;
use crate::files;

/// Files and folders of one environment. A larger one is not granted: checking it takes too long.
const MAX_FILES: usize = 200_000;
/// The largest `.pth` file or `pyvenv.cfg`.
const LARGEST: u64 = 64 << 10;
/// The modules that Python loads whenever it starts.
const UNASKED: [&str; 2] = ["sitecustomize", "usercustomize"];
/// What Cuebook itself changes in a project, and what no tool changes that a model calls.
const NOT_CODE: [&str; 3] = [".ai", ".git", "user_data"];

/// The paths, sizes and times of the files of an environment.
#[derive(Debug)]
pub(super) struct Stamps {
    hasher: Sha256,
    files: usize,
    /// The project, without links.
    project: PathBuf,
    /// The environment, and the places of the project that it leads to.
    places: Vec<PathBuf>,
    waiting: VecDeque<PathBuf>,
}

impl Stamps {
    /// Reads an environment of a project.
    pub(super) fn of_environment(project: &Path, folder: &Path) -> Result<Stamps> {
        let real = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut stamps = Stamps {
            hasher: Sha256::new(),
            files: 0,
            project: real(project),
            places: vec![real(folder)],
            waiting: VecDeque::new(),
        };
        stamps.walk(folder, Path::new(""))?;
        if let Some(home) = home_of(folder) {
            stamps.leads_to(&folder.join(home).join(".."));
        }
        while let Some(place) = stamps.waiting.pop_front() {
            if stamps.places.iter().any(|known| place.starts_with(known)) {
                continue;
            }
            stamps.places.push(place.clone());
            stamps.field(place.as_os_str().as_encoded_bytes());
            match place.is_dir() {
                true => stamps.walk(&place, Path::new(""))?,
                false => stamps.add(&place, Path::new(""))?,
            }
        }
        Ok(stamps)
    }

    /// How many files and folders there are.
    pub(super) fn files(&self) -> usize {
        self.files
    }

    /// The places outside the environment that it leads to.
    pub(super) fn places(&self) -> &[PathBuf] {
        &self.places[1..]
    }

    pub(super) fn digest(self) -> String {
        hex(&self.hasher.finalize())
    }

    fn walk(&mut self, folder: &Path, below: &Path) -> Result<()> {
        let name = || folder.join(below).to_string_lossy().into_owned();
        let entries =
            fs::read_dir(folder.join(below)).map_err(|error| files::folder_error(&name(), &error))?;
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(|error| files::io_error(&name(), &error))?.file_name());
        }
        names.sort_unstable();
        for entry in names {
            let path = below.join(&entry);
            let is_state = || NOT_CODE.iter().any(|name| folder.join(&path) == self.project.join(name));
            // Python reads none of it: its runtimes keep compiled files in the user's own folder.
            if entry != "__pycache__" && !is_state() {
                self.add(folder, &path)?;
            }
        }
        Ok(())
    }

    /// Adds a file or a folder with all that is in it.
    fn add(&mut self, folder: &Path, path: &Path) -> Result<()> {
        let full = if path.as_os_str().is_empty() { folder.to_owned() } else { folder.join(path) };
        let failed = |error: std::io::Error| files::io_error(&path.to_string_lossy(), &error);
        let metadata = fs::symlink_metadata(&full).map_err(failed)?;
        self.files += 1;
        if self.files > MAX_FILES {
            let error = std::io::Error::other(format!("the folder has more than {MAX_FILES} files"));
            return Err(files::io_error(&folder.to_string_lossy(), &error));
        }
        self.field(path.as_os_str().as_encoded_bytes());
        if metadata.is_dir() {
            // The times of a folder change with `__pycache__`; its entries say what is in it.
            self.field(b"folder");
            return self.walk(folder, path);
        }
        if metadata.is_symlink() {
            let target = fs::read_link(&full).unwrap_or_default();
            self.field(b"link");
            self.field(target.as_os_str().as_encoded_bytes());
            self.leads_to(&full);
        } else if full.extension().is_some_and(|end| end == "pth") {
            self.path_file(&full);
        }
        self.field(stamp(&metadata).as_bytes());
        Ok(())
    }

    /// Remembers a place that is to be part of the grant if it lies in the project.
    fn leads_to(&mut self, path: &Path) {
        let real = fs::canonicalize(path).ok().filter(|real| real.starts_with(&self.project));
        self.waiting.extend(real);
    }

    /// The modules that Python loads unasked from the folders that a `.pth` file lists.
    fn path_file(&mut self, file: &Path) {
        let Ok(bytes) = files::read_bytes(file, "", LARGEST) else { return };
        let beside = file.parent().unwrap_or(Path::new(""));
        for line in String::from_utf8_lossy(&bytes).lines().map(str::trim_end) {
            let folder = fs::canonicalize(beside.join(line)).unwrap_or_default();
            if line.is_empty() || line.starts_with('#') || !folder.starts_with(&self.project) {
                continue;
            }
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            let mut names: Vec<_> = entries.map(|entry| entry.file_name()).collect();
            names.retain(|name| UNASKED.iter().any(|module| stem(name) == *module));
            names.sort_unstable();
            names.iter().for_each(|name| self.leads_to(&folder.join(name)));
        }
    }

    /// A length in front keeps neighbours apart.
    fn field(&mut self, bytes: &[u8]) {
        self.hasher.update((bytes.len() as u64).to_le_bytes());
        self.hasher.update(bytes);
    }
}

/// The name of a module: that of its file up to the first dot.
fn stem(name: &std::ffi::OsStr) -> String {
    name.to_string_lossy().split('.').next().unwrap_or_default().to_owned()
}

/// Where the interpreter of a virtual environment looks for its library.
fn home_of(folder: &Path) -> Option<String> {
    let bytes = files::read_bytes(&folder.join("pyvenv.cfg"), "pyvenv.cfg", LARGEST).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        name.trim().eq_ignore_ascii_case("home").then(|| value.trim().to_owned())
    })
}

fn stamp(metadata: &fs::Metadata) -> String {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        format!(
            "{} {}.{} {}.{} {:o}",
            metadata.len(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.ctime(),
            metadata.ctime_nsec(),
            metadata.mode()
        )
    }
    #[cfg(not(unix))]
    format!("{} {:?}", metadata.len(), metadata.modified().ok())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn project_code_that_an_environment_links_to_is_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("project");
        let packages = ".venv/lib/site-packages";
        for path in ["linked", "listed", "python/bin", "python/lib", packages] {
            fs::create_dir_all(project.join(path)).unwrap();
        }
        fs::create_dir_all(folder.path().join("outside")).unwrap();
        let at = |path: &str| project.join(path);
        std::os::unix::fs::symlink("../../../linked", at(&format!("{packages}/linked"))).unwrap();
        std::os::unix::fs::symlink("../../../../outside", at(&format!("{packages}/outside"))).unwrap();
        std::os::unix::fs::symlink("../lib", at(".venv/lib/again")).unwrap();
        fs::write(at(&format!("{packages}/x.pth")), "# c\nimport os\n../../../listed\n").unwrap();
        fs::write(at(".venv/pyvenv.cfg"), format!("home = {}\n", at("python/bin").display())).unwrap();
        let digest = || Stamps::of_environment(&project, &project.join(".venv")).unwrap().digest();
        let mut last = digest();
        for (path, counts) in [
            ("linked/code.py", true),
            ("python/lib/os.py", true),
            ("listed/sitecustomize.py", true),
            ("listed/usercustomize/__init__.py", true),
            ("listed/module.py", false),
            ("other.py", false),
            ("../outside/code.py", false),
        ] {
            fs::create_dir_all(at(path).parent().unwrap()).unwrap();
            fs::write(at(path), "x").unwrap();
            let now = digest();
            assert_eq!(now != last, counts, "{path}");
            last = now;
        }
    }
}
