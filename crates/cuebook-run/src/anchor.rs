//! Anchors: the folder that a tool's relative things hang on, and the files in it that must be signed as well.
//!
//! A runtime says when a tool has an anchor (`markers_any`: one of these files lies beside the tool), which folder it is, and
//! which path variables get entries of it, so that a tool of several files finds its own. Where there is an anchor, every
//! file of it that could be loaded is verified before anything runs.

use std::path::{Path, PathBuf};

use cuebook::items::{ItemType, Spaces};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use serde_json::{Map, Value as Json};

use crate::chain::{Element, LARGEST_TOOL};
use crate::config::{Manner, Values};
use crate::stage::Stage;
use crate::verify::Verify;

/// What is known of where a tool runs: the names that templates may use, and the anchor if there is one.
pub(crate) struct Ground {
    /// `tool_path`, `tool_dir`, `project_path`, …
    pub(crate) context: Map<String, Json>,
    /// The anchor's folder, if it is active.
    pub(crate) anchor: Option<PathBuf>,
    /// The element that declares the anchor.
    declared: Option<Map<String, Json>>,
}

/// Extensions of files that interpreters load as code and that cannot be signed.
const COMPILED: [&str; 7] = ["pyc", "pyo", "pyd", "so", "dylib", "dll", "node"];

/// Files and folders that one anchor may have.
const MOST_FILES: usize = 10_000;

impl Ground {
    /// Finds out where a chain's tool runs.
    pub(crate) fn new(spaces: &Spaces, chain: &[Element], stage: &Stage) -> Result<Ground> {
        let mut context = Map::new();
        let mut set = |name: &str, path: &Path| {
            context.insert(name.to_owned(), path.to_string_lossy().into_owned().into());
        };
        let project = spaces.project();
        set("project_path", project);
        if let Some(user) = spaces.all().iter().find(|space| space.kind() == cuebook::items::SpaceKind::User)
            && let Some(folder) = user.folder().and_then(Path::parent)
        {
            set("user_space", folder);
        }
        let staged = stage.folder()?;
        set("system_space", &staged);
        set("cache_path", &staged.join("cache"));
        let (mut tool_dir, mut tool_parent) = (project.to_owned(), project.to_owned());
        if let Some(tool) = chain.first() {
            let path = stage.file(&tool.located, &tool.bytes)?;
            set("tool_path", &path);
            tool_dir = path.parent().unwrap_or(project).to_owned();
            tool_parent = tool_dir.parent().unwrap_or(&tool_dir).to_owned();
            set("tool_dir", &tool_dir);
            set("tool_parent", &tool_parent);
        }
        let declares = chain.iter().find(|element| !element.tool.anchor.is_empty());
        let runtime = declares.or(chain.get(1));
        if let Some(runtime) = runtime {
            let library = match runtime.located.path() {
                Some(path) => path.with_file_name("lib"),
                None => stage.library(&runtime.located)?,
            };
            set("runtime_lib", &library);
        }
        let declared = declares.map(|element| element.tool.anchor.clone());
        let (root, active) = match &declared {
            None => (tool_dir, false),
            Some(anchor) => {
                let root = match anchor.get("root").and_then(Json::as_str) {
                    None | Some("tool_dir") => tool_dir.clone(),
                    Some("tool_parent") => tool_parent,
                    Some("project_path") => project.to_owned(),
                    Some(other) => {
                        let message = format!("`anchor.root` is {other:?}");
                        return Err(bad_runtime(
                            declares,
                            message,
                            "write tool_dir, tool_parent or project_path",
                        ));
                    }
                };
                (root, is_active(declares, anchor, &tool_dir)?)
            }
        };
        set("anchor_path", &root);
        if let Some(tool) = chain.first() {
            context.insert("tool_id".to_owned(), tool.id().into());
        }
        Ok(Ground { context, anchor: active.then_some(root), declared: declared.filter(|_| active) })
    }

    /// A text of a runtime with what is known put into it.
    pub(crate) fn text(&self, template: &str) -> String {
        let nothing = Map::new();
        let env = |name: &str| std::env::var(name).ok();
        let values = Values { context: &self.context, parameters: &nothing, config: &nothing, env: &env };
        values.text(template, Manner::Plain)
    }

    /// The folder that an active anchor wants the tool to run in.
    pub(crate) fn cwd(&self) -> Option<String> {
        let cwd = self.declared.as_ref()?.get("cwd")?.as_str()?;
        Some(self.text(cwd))
    }

    /// The path variables that an active anchor changes, with their entries in front and behind.
    pub(crate) fn env_paths(&self) -> Vec<(String, Vec<String>, Vec<String>)> {
        self.paths(self.declared.as_ref().and_then(|anchor| anchor.get("env_paths")))
    }

    /// Path variables with entries in front and behind, as a runtime writes them.
    pub(crate) fn paths(&self, written: Option<&Json>) -> Vec<(String, Vec<String>, Vec<String>)> {
        let Some(Json::Object(paths)) = written else { return Vec::new() };
        let entries = |change: &Json, name: &str| {
            let list = change.get(name).and_then(Json::as_array);
            list.into_iter().flatten().filter_map(Json::as_str).map(|entry| self.text(entry)).collect()
        };
        let change = |(name, change): (&String, &Json)| {
            (name.clone(), entries(change, "prepend"), entries(change, "append"))
        };
        paths.iter().map(change).collect()
    }

    /// Verifies the files that belong to an active anchor, if an element of the chain wants that.
    pub(crate) fn verify_files(&self, spaces: &Spaces, chain: &[Element], verify: &dyn Verify) -> Result<()> {
        self.verify_library(spaces, chain, verify)?;
        let Some(anchor) = &self.anchor else { return Ok(()) };
        let wants = chain.iter().find(|element| !element.tool.verify_deps.is_empty());
        let Some(element) = wants else { return Ok(()) };
        let rules = &element.tool.verify_deps;
        if rules.get("enabled").is_some_and(|enabled| enabled == &Json::Bool(false)) {
            return Ok(());
        }
        // What is part of the program was not written by anybody else.
        let Some(tool) = chain.first().and_then(|tool| tool.located.path()) else { return Ok(()) };
        let texts = |name: &str| -> Vec<String> {
            let list = rules.get(name).and_then(Json::as_array);
            list.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let walk = Walk {
            extensions: texts("extensions")
                .iter()
                .map(|text| text.trim_start_matches('.').to_owned())
                .collect(),
            exclude: texts("exclude_dirs"),
            spaces,
            verify,
        };
        let tool_dir = tool.parent().unwrap_or(anchor);
        let (root, recursive) = match rules.get("scope").and_then(Json::as_str) {
            None | Some("anchor") => (anchor.as_path(), true),
            Some("tool_dir") => (tool_dir, true),
            Some("tool_siblings") => (tool_dir, false),
            Some("tool_file") => return Ok(()),
            Some(other) => {
                let message = format!("`verify_deps.scope` is {other:?}");
                let hint = "write anchor, tool_dir, tool_siblings or tool_file";
                return Err(bad_runtime(Some(element), message, hint));
            }
        };
        let real = std::fs::canonicalize(root).map_err(|error| files::io_error(&walk.name(root), &error))?;
        walk.folder(root, &real, recursive, &mut 0)
    }
}

impl Ground {
    /// Verifies the library of a runtime that is not the program's own: it is code like the runtime itself.
    fn verify_library(&self, spaces: &Spaces, chain: &[Element], verify: &dyn Verify) -> Result<()> {
        let own = chain.iter().skip(1).filter_map(|runtime| runtime.located.path());
        for library in own.map(|path| path.with_file_name("lib")).filter(|library| library.is_dir()) {
            let extensions = ItemType::Tool.extensions().iter().map(|known| (*known).to_owned()).collect();
            let walk = Walk { extensions, exclude: vec!["__pycache__".to_owned()], spaces, verify };
            let real = std::fs::canonicalize(&library);
            let real = real.map_err(|error| files::io_error(&walk.name(&library), &error))?;
            walk.folder(&library, &real, true, &mut 0)?;
        }
        Ok(())
    }
}

fn is_active(declares: Option<&Element>, anchor: &Map<String, Json>, tool_dir: &Path) -> Result<bool> {
    if anchor.get("enabled").is_some_and(|enabled| enabled == &Json::Bool(false)) {
        return Ok(false);
    }
    match anchor.get("mode").and_then(Json::as_str) {
        Some("always") => Ok(true),
        None | Some("auto") => {
            let markers = anchor.get("markers_any").and_then(Json::as_array);
            let mut names = markers.into_iter().flatten().filter_map(Json::as_str);
            Ok(names.any(|name| tool_dir.join(name).exists()))
        }
        Some("never") => Ok(false),
        Some(other) => {
            Err(bad_runtime(declares, format!("`anchor.mode` is {other:?}"), "write auto, always or never"))
        }
    }
}

/// The error for something in a runtime that means nothing.
pub(crate) fn bad_runtime(element: Option<&Element>, message: String, hint: &str) -> Error {
    let mut diagnostic = Diagnostic::new(Code::BadRuntime, message).hint(hint);
    diagnostic.file = element.map(|element| element.located.name.clone());
    Error::new(ErrorKind::Execute, diagnostic)
}

/// Goes through a folder and verifies what it holds.
struct Walk<'w> {
    extensions: Vec<String>,
    exclude: Vec<String>,
    spaces: &'w Spaces,
    verify: &'w dyn Verify,
}

impl Walk<'_> {
    fn name(&self, path: &Path) -> String {
        files::display_name(self.spaces.project(), path)
    }

    fn folder(&self, folder: &Path, root: &Path, recursive: bool, count: &mut usize) -> Result<()> {
        let entries =
            std::fs::read_dir(folder).map_err(|error| files::io_error(&self.name(folder), &error))?;
        let mut entries: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort();
        for path in entries {
            *count += 1;
            if *count > MOST_FILES {
                let message = format!("a tool with more than {MOST_FILES} files beside it");
                let diagnostic = Diagnostic::new(Code::BadRuntime, message).file(self.name(folder));
                let hint = "keep what is not the tool's own elsewhere, or list its folder in `exclude_dirs`";
                return Err(Error::new(ErrorKind::Limit, diagnostic.hint(hint)));
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let excluded = self.exclude.contains(&name);
            let real =
                std::fs::canonicalize(&path).map_err(|error| files::io_error(&self.name(&path), &error))?;
            if real.is_dir() {
                if recursive && !excluded {
                    if !real.starts_with(root) {
                        return Err(self.escape(&path));
                    }
                    // A link to a folder further up would be walked for ever, and is walked anyway where it leads.
                    if !path.is_symlink() {
                        self.folder(&path, root, recursive, count)?;
                    }
                }
                continue;
            }
            let extension = path.extension().unwrap_or_default().to_string_lossy();
            if COMPILED.contains(&extension.as_ref()) {
                return Err(self.compiled(&path));
            }
            if !self.extensions.iter().any(|known| *known == extension) {
                continue;
            }
            if !real.starts_with(root) {
                return Err(self.escape(&path));
            }
            self.file(&path)?;
        }
        Ok(())
    }

    fn file(&self, path: &Path) -> Result<()> {
        let found = self.spaces.all().iter().find_map(|space| space.item_of(ItemType::Tool, path));
        let Some(located) = found else {
            let diagnostic = Diagnostic::new(Code::OutsideProject, "a file that no space of tools holds")
                .file(self.name(path))
                .hint("the files of a tool lie below .ai/tools, where they can be signed");
            return Err(Error::new(ErrorKind::Integrity, diagnostic));
        };
        self.verify.verify(&located.read(LARGEST_TOOL)?).map(|_| ())
    }

    /// An import takes such a file before any other of its name.
    fn compiled(&self, path: &Path) -> Error {
        let diagnostic = Diagnostic::new(Code::Unsigned, format!("Unsigned item: {}", self.name(path)))
            .hint("a compiled file has no place for a signature: delete it, or keep it in an environment of the project");
        Error::new(ErrorKind::Integrity, diagnostic)
    }

    fn escape(&self, path: &Path) -> Error {
        let diagnostic = Diagnostic::new(Code::OutsideProject, format!("Symlink escape: {}", path.display()))
            .file(self.name(path))
            .hint("put a copy there instead of a link, and sign it");
        Error::new(ErrorKind::Integrity, diagnostic)
    }
}
