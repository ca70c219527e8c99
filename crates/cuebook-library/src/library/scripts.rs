//! Code of the library that may run: read whole, approved, and watched for changes.
//!
//! A pack's code is given out only if the pack is approved with exactly the bytes that are on disk now. Nothing here runs it.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::sha256::{Sha256, hex};

use super::Library;
use super::manifest::{Manifest, VariableProvider};
use super::pack::MANIFEST;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::files::{self, Stamp};
use crate::source::{Place, Source};
use crate::trust::Approval;
use crate::variables::SYSTEM;

/// A Python file whose functions take part in renders. Its pack, if it has one, is approved with exactly this content.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its text, under the name that people know it by.
    pub source: Arc<Source>,
    /// Where it lies.
    pub path: PathBuf,
    /// The folder that it belongs to, the prompt's or the pack's: its own modules are found there.
    pub folder: PathBuf,
    /// The pack that it came with; `None` for code of the user's own.
    pub pack: Option<String>,
    /// The Python files of its pack by path, as they were approved; `None` for code of the user's own, whose modules are read
    /// from the folder.
    pub modules: Option<BTreeMap<PathBuf, String>>,
    /// Whether its code mentions what the system knows: then `system` is among the variables that it gets. It is made anew for
    /// every render, and most code has no use for it.
    pub mentions_system: bool,
    /// Whether its code runs git, or reads what git stores, as far as its text shows that.
    pub mentions_git: bool,
    /// Changes whenever any code in the folder does.
    pub fingerprint: String,
}

/// Files and folders that are watched for one script. A prompt with more code than this is started afresh for every call.
const MAX_WATCHED: usize = 4096;

/// A Python file that is to run.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub struct ScriptFile {
    /// Where it lies.
    #[doc(hidden)]
    pub path: PathBuf,
    /// The name that people know it by.
    #[doc(hidden)]
    pub name: String,
    /// The folder that it belongs to: its prompt's, or its pack's.
    #[doc(hidden)]
    pub folder: PathBuf,
    /// The pack that it came with.
    #[doc(hidden)]
    pub pack: Option<String>,
    /// What its permissions were read from: they hold for this and nothing else.
    #[doc(hidden)]
    pub read: Read,
    /// What asks for it, for messages.
    #[doc(hidden)]
    pub place: Place,
}

/// Where the permissions and limits of a script stand.
#[derive(Debug, Clone)]
#[doc(hidden)]
pub enum Read {
    /// In the script itself, which was this text.
    Script(Arc<Source>),
    /// In the manifest of its pack, which said this.
    Manifest(VariableProvider),
}

/// Scripts that were read, and what they depend on.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct Scripts(Mutex<HashMap<PathBuf, CachedScript>>);

#[derive(Debug)]
struct CachedScript {
    script: Arc<Script>,
    /// The providers of its pack.
    manifest: Vec<VariableProvider>,
    /// Everything whose change makes it another script. A folder's stamp tells of files that come and go.
    watched: Vec<(PathBuf, Option<Stamp>)>,
}

impl Scripts {
    /// The script in a file, as it is now.
    #[doc(hidden)]
    pub fn get(&self, library: &Library, file: &ScriptFile) -> Result<Arc<Script>> {
        let unchanged = |known: &CachedScript| {
            known.watched.iter().all(|(path, stamp)| Stamp::proves_unchanged(&Stamp::of(path), stamp))
        };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&file.path)
            && unchanged(known)
            && file.read.is(&known.script, &known.manifest)
        {
            return Ok(known.script.clone());
        }
        drop(known);
        // Stamped before anything is read, so that a change in between is noticed.
        let mut watched = Vec::new();
        let complete = watch(&file.folder, file.pack.is_some(), &mut watched);
        let (script, manifest) = match &file.pack {
            Some(pack) => {
                if let Some(approvals) = library.approvals_file() {
                    let stamp = Stamp::of(&approvals.path);
                    watched.push((approvals.path, stamp));
                }
                approved(library, file, pack)?
            }
            None => (own(library, file, &watched)?, Vec::new()),
        };
        let script = Arc::new(script);
        if complete {
            let known = CachedScript { script: script.clone(), manifest, watched };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(file.path.clone(), known);
        }
        Ok(script)
    }
}

/// Stamps a folder and what is in it: all of a pack, the code of a prompt. `false` if there is too much of it.
fn watch(folder: &Path, everything: bool, watched: &mut Vec<(PathBuf, Option<Stamp>)>) -> bool {
    watched.push((folder.to_owned(), Stamp::of(folder)));
    // What cannot be listed has no stamp that stays the same, so it is looked at again next time.
    let Ok(entries) = fs::read_dir(folder) else { return false };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "__pycache__" {
            continue;
        }
        if watched.len() >= MAX_WATCHED {
            return false;
        }
        let path = entry.path();
        // A link of the user's own may lead to a folder with modules; a pack has no links.
        if path.is_dir() {
            if !watch(&path, everything, watched) {
                return false;
            }
        } else if everything || name.ends_with(".py") {
            let stamp = Stamp::of(&path);
            watched.push((path, stamp));
        }
    }
    true
}

impl Read {
    /// Whether the permissions that were read are those of this script.
    fn is(&self, script: &Script, manifest: &[VariableProvider]) -> bool {
        match self {
            Read::Script(source) => source.text() == script.source.text(),
            Read::Manifest(provider) => manifest.contains(provider),
        }
    }
}

/// Code of the user's own, which needs no approval.
fn own(library: &Library, file: &ScriptFile, watched: &[(PathBuf, Option<Stamp>)]) -> Result<Script> {
    let limit = library.file_limit()?;
    let source = match &file.read {
        Read::Script(source) => source.clone(),
        Read::Manifest(_) => files::read_text(&file.path, &file.name, limit)?,
    };
    // Of the content, and not of the stamps: a file that has just been written is looked at again and again, and is the same.
    let mut hasher = Sha256::new();
    hasher.update(source.text());
    let (mut mentions_system, mut mentions_git) =
        (source.text().contains(SYSTEM), mentions_git(source.text()));
    for (path, _) in watched.iter().filter(|(path, _)| path.extension().is_some_and(|kind| kind == "py")) {
        hasher.update(path.as_os_str().as_encoded_bytes());
        // One that cannot be read cannot be imported either.
        let code = files::read_bytes(path, &file.name, limit).unwrap_or_default();
        let text = String::from_utf8_lossy(&code);
        mentions_system = mentions_system || text.contains(SYSTEM);
        mentions_git = mentions_git || self::mentions_git(&text);
        hasher.update(Sha256::digest(code));
    }
    let fingerprint = hex(&hasher.finalize());
    let (path, folder) = (resolved(&file.path, &file.name)?, resolved(&file.folder, &file.name)?);
    Ok(Script { source, path, folder, pack: None, modules: None, mentions_system, mentions_git, fingerprint })
}

/// Code of a pack, if the pack is approved as it is, with the providers of its manifest. Everything that runs or says what may
/// be done is compared with what was approved once it has been read.
fn approved(library: &Library, file: &ScriptFile, pack: &str) -> Result<(Script, Vec<VariableProvider>)> {
    let content = library.content(pack)?;
    match library.approval_of(pack, &content)? {
        Approval::Approved { .. } => {}
        approval => return Err(not_approved(file, pack, &approval)),
    }
    let limit = library.file_limit()?;
    let folder = resolved(&file.folder, &file.name)?;
    let path = resolved(&file.path, &file.name)?;
    let mut modules = BTreeMap::new();
    let mut manifest = Vec::new();
    for known in content.files() {
        let is_manifest = known.path == MANIFEST;
        if !is_manifest && !known.path.ends_with(".py") {
            continue;
        }
        let at = folder.join(&known.path);
        let name = format!("{}/{}", library.name(&file.folder), known.path);
        let bytes = files::read_bytes(&at, &name, limit)?;
        if hex(&Sha256::digest(&bytes)) != known.sha256 {
            return Err(changed(&name));
        }
        let source = files::source_from_bytes(bytes, &name)?;
        if is_manifest {
            manifest = Manifest::read(&source)?.0.variable_providers;
        } else {
            modules.insert(at, source.text().to_owned());
        }
    }
    let Some(text) = modules.get(&path) else {
        let message = format!("{} is not among the approved files", file.name);
        let diagnostic = Diagnostic::new(Code::ApprovalRequired, message).at(file.place.clone()).hint(
            "hidden files, links and files outside the pack are not approved: move it into the pack, \
                 under a visible name",
        );
        return Err(Error::new(ErrorKind::PromptApprovalRequired, diagnostic));
    };
    let source = Source::new(&*file.name, text.clone());
    let script = Script {
        source,
        path,
        folder,
        pack: Some(pack.to_owned()),
        mentions_system: modules.values().any(|text| text.contains(SYSTEM)),
        mentions_git: modules.values().any(|text| mentions_git(text)),
        modules: Some(modules),
        fingerprint: content.digest(),
    };
    if !file.read.is(&script, &manifest) {
        return Err(changed(&file.name));
    }
    Ok((script, manifest))
}

/// Whether Python code has an argument `"git"` before others, a command that starts with `git`, or a path into `.git`.
fn mentions_git(code: &str) -> bool {
    let quotes = ['"', '\''];
    code.match_indices("git").any(|(at, git)| {
        let (before, after) = (&code[..at], &code[at + git.len()..]);
        let is_word = before.ends_with(quotes) && after.starts_with(quotes);
        let is_looked_up = before.trim_end_matches(quotes).ends_with("get(");
        let is_path = before.ends_with('.')
            && before[..before.len() - 1].ends_with(|c| c == '/' || quotes.contains(&c));
        (is_word && !is_looked_up && after[1..].starts_with(','))
            || (before.ends_with(quotes) && after.starts_with(' '))
            || (is_path && after.starts_with(|c| c == '/' || quotes.contains(&c)))
    })
}

fn changed(name: &str) -> Error {
    let message = format!("{name} changed while Cuebook read it");
    let diagnostic = Diagnostic::new(Code::ApprovalRequired, message).hint("render again");
    Error::new(ErrorKind::PromptApprovalRequired, diagnostic)
}

/// The path without links: where code is put into a sandbox, links may lead nowhere. Python knows paths as text.
fn resolved(path: &Path, name: &str) -> Result<PathBuf> {
    let path = fs::canonicalize(path).map_err(|error| files::io_error(name, &error))?;
    if path.to_str().is_none() {
        let message = format!("hooks cannot run from a path that is not UTF-8: {}", path.display());
        let diagnostic = Diagnostic::new(Code::NotUtf8, message).hint("rename the folder");
        return Err(Error::new(ErrorKind::Hook, diagnostic));
    }
    Ok(path)
}

fn not_approved(file: &ScriptFile, pack: &str, approval: &Approval) -> Error {
    let message = match approval {
        Approval::Changed { .. } => format!("the pack `{pack}` has changed since you approved its code"),
        _ => format!("you have not approved the code of the pack `{pack}`"),
    };
    let mut differs = String::new();
    let mut error_fields = Vec::new();
    if let Approval::Changed { added, removed, changed } = approval {
        for (word, files) in [("new", added), ("gone", removed), ("changed", changed)] {
            if !files.is_empty() {
                differs.push_str(&format!("{word}: {}\n", files.join(", ")));
            }
        }
        error_fields =
            vec![("added", added.clone()), ("removed", removed.clone()), ("changed", changed.clone())];
    }
    let hint = Hint::run(format!("{differs}review and approve it"), format!("cuebook pack approve {pack}"));
    let mut diagnostic = Diagnostic::new(Code::ApprovalRequired, message).at(file.place.clone()).hint(hint);
    if file.place.file() != file.name {
        diagnostic = diagnostic.label(format!("needs {}", file.name));
    }
    let error = Error::new(ErrorKind::PromptApprovalRequired, diagnostic)
        .with("pack_id", pack)
        .with("approval", approval.as_str());
    error_fields.into_iter().fold(error, |error, (name, files)| error.with(name, files))
}

#[cfg(test)]
mod tests {
    use super::mentions_git;

    #[test]
    fn code_that_uses_git_is_found_by_its_text() {
        for code in
            ["run([\"git\", \"log\"])", "exec('git', 'log')", "os.popen(\"git log\")", "open('.git/HEAD')"]
        {
            assert!(mentions_git(code), "{code}");
        }
        for code in
            ["variables[\"git\"]", "variables.get(\"git\", {})", "'legit '", "# git", "digit", "\"git\""]
        {
            assert!(!mentions_git(code), "{code}");
        }
    }
}
