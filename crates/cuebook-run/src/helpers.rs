//! The files that a tool can reach beside it: its helper files and its data.
//!
//! Code is copied only if it is signed. Which files must be signed, so that an unsigned one is an error, is what a runtime
//! says (`verify_deps`). Data is copied unchanged. Files that an interpreter could load as code and that cannot be signed (compiled
//! files, files without an extension, the rules of a `package.json`) is left out or refused.

use std::path::{Path, PathBuf};

use cuebook::items::{ItemType, Spaces, file_hash};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use serde_json::{Map, Value as Json};

use crate::call_folder::Tree;
use crate::chain::LARGEST_TOOL;
use crate::verify::Verify;

/// Extensions of files that interpreters load as code and that cannot be signed.
const COMPILED: [&str; 7] = ["pyc", "pyo", "pyd", "so", "dylib", "dll", "node"];
/// Extensions of files that are code, and that are copied only if they are signed.
const CODE: [&str; 25] = [
    "py", "pyw", "pyz", "js", "ts", "mjs", "cjs", "mts", "cts", "jsx", "tsx", "sh", "bash", "zsh", "ksh",
    "fish", "pl", "pm", "rb", "lua", "php", "ps1", "wasm", "jar", "exe",
];
/// Folders of other programs, which are never a tool's own.
const EXCLUDED: [&str; 6] = ["__pycache__", ".git", ".venv", "venv", "node_modules", "site-packages"];
/// Files and folders that one tool may have beside it.
const MAX_FILES: usize = 10_000;
/// Bytes that the copies of one call may have.
const MAX_BYTES: u64 = 256 << 20;

/// What is done about code that is not signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsigned {
    /// It is an error.
    Refuse,
    /// It is not copied.
    Skip,
}

/// How the files of a folder are copied.
pub(crate) struct Copying<'c> {
    pub(crate) spaces: &'c Spaces,
    pub(crate) verify: &'c dyn Verify,
    /// Extensions of files that must be signed.
    pub(crate) extensions: Vec<String>,
    /// Folders that are left out, besides those of other programs.
    pub(crate) exclude: Vec<String>,
    pub(crate) unsigned: Unsigned,
    pub(crate) recursive: bool,
    /// The folder of a signed tool, and the files that it lists.
    pub(crate) listed: (&'c Path, &'c Map<String, Json>),
}

impl Copying<'_> {
    /// Copies a folder to a place below the folder of a call.
    pub(crate) fn copy(&self, folder: &Path, to: &Path, tree: &mut Tree) -> Result<()> {
        if let Some(missing) = self.listed.1.keys().find(|name| !self.listed.0.join(name).is_file()) {
            let message = format!("the listed file `{missing}` does not exist");
            return Err(self.changed(&self.listed.0.join(missing), message));
        }
        let root =
            std::fs::canonicalize(folder).map_err(|error| files::io_error(&self.name(folder), &error))?;
        self.folder(folder, &root, to, tree, &mut 0)
    }

    fn name(&self, path: &Path) -> String {
        files::display_name(self.spaces.project(), path)
    }

    fn folder(
        &self,
        folder: &Path,
        root: &Path,
        to: &Path,
        tree: &mut Tree,
        count: &mut usize,
    ) -> Result<()> {
        let entries =
            std::fs::read_dir(folder).map_err(|error| files::io_error(&self.name(folder), &error))?;
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            *count += 1;
            if *count > MAX_FILES {
                return Err(self.too_much(folder, &format!("more than {MAX_FILES} files")));
            }
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            let to = to.join(name);
            let real = match std::fs::canonicalize(&path) {
                Ok(real) => real,
                Err(_) if self.unsigned == Unsigned::Skip => continue,
                Err(error) => return Err(files::io_error(&self.name(&path), &error)),
            };
            if !real.starts_with(root) {
                match self.unsigned {
                    Unsigned::Refuse if !self.is_excluded(name) => return Err(self.escape(&path)),
                    _ => continue,
                }
            }
            if !real.is_dir() {
                self.file(&path, to, tree)?;
                if tree.size() > MAX_BYTES {
                    return Err(self.too_much(folder, &format!("more than {} MiB of files", MAX_BYTES >> 20)));
                }
            // A link to a folder further up would be walked for ever, and is walked anyway where it leads.
            } else if self.recursive && !self.is_excluded(name) && !path.is_symlink() {
                self.folder(&path, root, &to, tree, count)?;
            }
        }
        Ok(())
    }

    fn is_excluded(&self, name: &str) -> bool {
        EXCLUDED.contains(&name) || self.exclude.iter().any(|excluded| excluded == name)
    }

    fn file(&self, path: &Path, to: PathBuf, tree: &mut Tree) -> Result<()> {
        let Some(extension) = path.extension().and_then(|extension| extension.to_str()) else {
            return Ok(());
        };
        if let Some((name, said)) = self.entry(path) {
            let bytes = files::read_bytes(path, &self.name(path), MAX_BYTES)?;
            let hash = file_hash(&bytes);
            if said.as_str() != Some(hash.as_str()) {
                let message = format!("the listed file `{name}` has the hash {hash:?}, not {said}");
                return Err(self.changed(path, message));
            }
            tree.add(to, bytes, is_executable(path));
            return Ok(());
        }
        let must = self.extensions.iter().any(|known| known == extension);
        if COMPILED.contains(&extension) {
            return match self.unsigned {
                Unsigned::Refuse => Err(self.compiled(path)),
                Unsigned::Skip => Ok(()),
            };
        }
        let bytes = match must || CODE.contains(&extension) {
            false => files::read_bytes(path, &self.name(path), MAX_BYTES)?,
            true if !must && self.unsigned == Unsigned::Skip => return Ok(()),
            true => match self.signed(path) {
                Ok(bytes) => bytes,
                // An empty file does nothing, and has no room for a signature.
                Err(_) if is_blank(path) => Vec::new(),
                Err(error) if must && self.unsigned == Unsigned::Refuse => {
                    return Err(self.with_list(path, error));
                }
                Err(_) => return Ok(()),
            },
        };
        let bytes = if to.ends_with("package.json") { harmless(&bytes) } else { bytes };
        tree.add(to, bytes, is_executable(path));
        Ok(())
    }

    /// What the tool's list says of a file.
    fn entry(&self, path: &Path) -> Option<(&str, &Json)> {
        let name = path.strip_prefix(self.listed.0).ok()?.to_str()?;
        self.listed.1.get_key_value(name).map(|(name, said)| (name.as_str(), said))
    }

    /// The error for a listed file that is not what the tool says.
    fn changed(&self, path: &Path, message: String) -> Error {
        let diagnostic = Diagnostic::new(Code::ContentChanged, message).file(self.name(path)).hint(
            "if the change is right, write its hash into the tool's list of files and sign the tool again",
        );
        Error::new(ErrorKind::Integrity, diagnostic)
    }

    /// The error for an unsigned helper, with both ways to have it verified.
    fn with_list(&self, path: &Path, error: Error) -> Error {
        let name = path.strip_prefix(self.listed.0).ok().and_then(Path::to_str);
        let (Some(name), Code::Unsigned) = (name, error.code()) else { return error };
        let hash =
            files::read_bytes(path, name, MAX_BYTES).map(|bytes| file_hash(&bytes)).unwrap_or_default();
        let hint = format!(
            "list it in the tool and sign that again: __files__ = {{\"{name}\": \"{hash}\"}}; a file that is a tool too can be signed itself"
        );
        let diagnostic = error.diagnostic().clone().hint(hint);
        error.replaced(diagnostic)
    }

    /// The bytes of a file that is signed. They are read once.
    fn signed(&self, path: &Path) -> Result<Vec<u8>> {
        let found = self.spaces.all().iter().find_map(|space| space.item_of(ItemType::Tool, path));
        let Some(located) = found else {
            let diagnostic =
                Diagnostic::new(Code::OutsideProject, "the tool uses a file outside the tool spaces")
                    .file(self.name(path))
                    .hint("keep the tool's files in .ai/tools, where you can sign them");
            return Err(Error::new(ErrorKind::Integrity, diagnostic));
        };
        let item = located.read(LARGEST_TOOL)?;
        self.verify.verify(&item)?;
        Ok(item.bytes)
    }

    /// An import takes such a file before any other of its name.
    fn compiled(&self, path: &Path) -> Error {
        let diagnostic = Diagnostic::new(Code::Unsigned, format!("Unsigned item: {}", self.name(path))).hint(
            "a compiled file cannot hold a signature: delete it, or keep it in an environment of the project",
        );
        Error::new(ErrorKind::Integrity, diagnostic)
    }

    fn escape(&self, path: &Path) -> Error {
        let diagnostic = Diagnostic::new(Code::OutsideProject, format!("Symlink escape: {}", path.display()))
            .file(self.name(path))
            .hint("replace the link with a copy, and sign it");
        Error::new(ErrorKind::Integrity, diagnostic)
    }

    fn too_much(&self, folder: &Path, what: &str) -> Error {
        let diagnostic = Diagnostic::new(Code::BadRuntime, format!("the tool has {what} next to it"))
            .file(self.name(folder))
            .hint("move other files elsewhere in the project, and open them there");
        Error::new(ErrorKind::Limit, diagnostic)
    }
}

/// A `package.json` with what tells Node how to read a file, and nothing that names another file to load.
fn harmless(bytes: &[u8]) -> Vec<u8> {
    let written: Map<String, Json> = serde_json::from_slice(bytes).unwrap_or_default();
    let kept: Map<String, Json> = written
        .into_iter()
        .filter(|(name, _)| ["name", "version", "type"].contains(&name.as_str()))
        .collect();
    Json::Object(kept).to_string().into_bytes()
}

/// Whether a file has nothing but white space in it.
fn is_blank(path: &Path) -> bool {
    let small = path.metadata().is_ok_and(|metadata| metadata.len() < 4096);
    small && std::fs::read(path).is_ok_and(|bytes| bytes.trim_ascii().is_empty())
}

fn is_executable(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}
