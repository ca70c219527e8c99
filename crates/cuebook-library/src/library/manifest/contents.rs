//! Whether a pack's folder holds what its manifest says.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::Path;

use super::Manifest;
use crate::error::{Code, Diagnostic, did_you_mean, nearest};
use crate::items::ItemType;
use crate::json::Step::{Index, Key};
use crate::json::{MAX_FINDINGS, quoted};
use crate::library::normalize_id;
use crate::library::{Claims, PROMPTY_END, portable};

impl Manifest {
    /// Compares the manifest with the pack's folder, which people know by `name`: what is listed must be there, inside
    /// the pack, and prompts that are there should be listed.
    pub fn verify_contents(&self, pack_dir: &Path, name: &str, claims: &Claims) -> Vec<Diagnostic> {
        let root = match fs::canonicalize(pack_dir) {
            Ok(root) => root,
            Err(error) => return crate::files::io_error(name, &error).into_diagnostics(),
        };
        let mut found = Vec::new();
        let offered = prompt_folders(&root, claims);
        for (index, id) in self.prompts.iter().enumerate() {
            if found.len() == MAX_FINDINGS {
                break;
            }
            if let Some(label) = prompt_problem(&root, id, claims) {
                let near = nearest(id, offered.iter().map(String::as_str).filter(|other| other != id));
                let hint = did_you_mean(&near).unwrap_or_else(|| {
                    format!("add prompts/{id}/template.md, or remove the id from the list")
                });
                let message = format!("the pack lists the prompt `{id}`, but does not contain it");
                found.push((vec![Key("prompts"), Index(index)], message, label, hint));
            }
        }
        for (index, partial) in self.partials.iter().enumerate() {
            let below_prompts = format!("prompts/{partial}");
            let result = match plain_file(&root, partial) {
                Err(Missing::Absent) => plain_file(&root, &below_prompts),
                result => result,
            };
            if let Err(missing) = result {
                let message =
                    format!("the pack lists the partial {}, but does not contain it", quoted(partial));
                let hint = "add the file, or remove it from the list".to_owned();
                found.push((vec![Key("partials"), Index(index)], message, missing.label(partial), hint));
            }
        }
        for (old, new) in &self.replaces.tools {
            let files =
                ItemType::Tool.extensions().iter().map(|extension| format!("tools/{new}.{extension}"));
            if files.into_iter().all(|file| plain_file(&root, &file).is_err()) {
                let message =
                    format!("the pack replaces the tool `{old}` with `{new}`, but does not contain `{new}`");
                let hint =
                    format!("add it as tools/{new}.py or in another notation of tools, or remove the line");
                let path = vec![Key("replaces"), Key("tools"), Key(old)];
                found.push((path, message, "not a tool of this pack".to_owned(), hint));
            }
        }
        for (index, provider) in self.variable_providers.iter().enumerate() {
            if let Err(missing) = plain_file(&root, &provider.file) {
                let file = &provider.file;
                let message =
                    format!("the pack lists the provider {}, but does not contain it", quoted(file));
                let hint =
                    format!("add the file, or remove the provider `{}` from the list", provider.namespace);
                let path = vec![Key("variable_providers"), Index(index), Key("file")];
                found.push((path, message, missing.label(file), hint));
            }
        }
        let mut diagnostics: Vec<Diagnostic> = found
            .into_iter()
            .take(MAX_FINDINGS)
            .map(|(path, message, label, hint)| {
                let place = self.document.place(&path);
                Diagnostic::new(Code::MissingPackPrompt, message).at(place).label(label).hint(hint)
            })
            .collect();
        let listed: HashSet<String> = self.prompts.iter().map(|id| normalize_id(id)).collect();
        let unlisted = offered.iter().filter(|id| !listed.contains(&normalize_id(id)));
        diagnostics.extend(unlisted.take(MAX_FINDINGS).map(|id| {
            let folder = quoted(&format!("{name}/prompts/{id}"));
            let message = format!("{folder} is a prompt that pack.json does not list");
            Diagnostic::new(Code::UnlistedPackPrompt, message)
                .at(self.document.opening(&[Key("prompts")]))
                .label(format!("{} is not listed here", quoted(id)))
                .hint(format!("add {} to `prompts`, or remove the folder", quoted(id)))
        }));
        diagnostics
    }
}

/// Why a file that a pack lists cannot be used.
enum Missing {
    Absent,
    NotAFile,
    Outside,
    Unreadable(io::Error),
}

impl Missing {
    fn label(&self, path: &str) -> String {
        match self {
            Missing::Absent => format!("the file {path} does not exist"),
            Missing::NotAFile => format!("{path} is not a file"),
            Missing::Outside => format!("{path} is a link that leads out of the pack"),
            Missing::Unreadable(error) => format!("{path} cannot be read: {error}"),
        }
    }
}

/// Whether a path leads to a regular file that lies inside the pack, whatever links are on the way.
fn plain_file(root: &Path, path: &str) -> Result<(), Missing> {
    let target = fs::canonicalize(root.join(path)).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Missing::Absent,
        _ => Missing::Unreadable(error),
    })?;
    if !target.starts_with(root) {
        return Err(Missing::Outside);
    }
    if target.is_file() { Ok(()) } else { Err(Missing::NotAFile) }
}

const PROMPT_FILES: [&str; 2] = ["template.md", "prompt.py"];

/// What is wrong with the folder of a listed prompt, if anything.
fn prompt_problem(root: &Path, id: &str, claims: &Claims) -> Option<String> {
    let mut holds_one = false;
    for file in PROMPT_FILES {
        let path = format!("prompts/{id}/{file}");
        match plain_file(root, &path) {
            Ok(()) => holds_one = true,
            Err(Missing::Absent) => {}
            Err(missing) => return Some(missing.label(&path)),
        }
    }
    for (in_folder, file, _) in claims.files_of(id) {
        let path = if in_folder { format!("prompts/{id}/{file}") } else { format!("prompts/{file}") };
        match plain_file(root, &path) {
            Ok(()) => holds_one = true,
            Err(Missing::Absent) => {}
            Err(missing) => return Some(missing.label(&path)),
        }
    }
    if holds_one {
        None
    } else if root.join("prompts").join(id).is_dir() {
        Some(format!("prompts/{id} has neither template.md, prompt.py nor {id}{PROMPTY_END}"))
    } else {
        Some(format!("neither a folder prompts/{id} nor a file prompts/{id}{PROMPTY_END} exists"))
    }
}

/// The ids of the prompts below `prompts/`, sorted.
fn prompt_folders(root: &Path, claims: &Claims) -> Vec<String> {
    // A folder that cannot be read offers nothing; whatever is listed in it is then reported as missing.
    let entries = fs::read_dir(root.join("prompts")).into_iter().flatten().flatten();
    let mut folders: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| name != "partials" && !portable::is_left_out(name))
        .filter_map(|name| {
            let path = root.join("prompts").join(&name);
            if let Some(id) = claims.of_file(&name).map(|(id, _)| id).filter(|_| path.is_file()) {
                return Some(id.to_owned());
            }
            let own = claims.files_of(&name).filter(|(in_folder, ..)| *in_folder).map(|(_, file, _)| file);
            let holds_one =
                PROMPT_FILES.into_iter().map(str::to_owned).chain(own).any(|file| path.join(file).is_file());
            holds_one.then_some(name)
        })
        .collect();
    folders.sort_unstable();
    folders.dedup();
    folders
}
