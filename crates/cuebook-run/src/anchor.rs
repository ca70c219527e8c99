//! Anchors: the folder that a tool's relative things hang on.
//!
//! A runtime says when a tool has an anchor (`markers_any`: one of these files lies beside the tool), which folder it is, and
//! which path variables get entries of it, so that a tool of several files finds its own. A tool runs from a private copy
//! of its files ([`crate::call_folder`]), so all of these folders lie in the copy; only `project_path` is the project itself.

use std::path::{Path, PathBuf};

use cuebook::items::{ItemType, SpaceKind, Spaces, system_files};
use cuebook::library::UserConfig;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json};

use crate::call_folder::{CallFolder, Tree};
use crate::chain::Element;
use crate::config::{Encoding, Values};
use crate::helpers::{Copying, Unsigned};
use crate::verify::Verify;

/// What is known of where a tool runs: the names that templates may use, and the anchor if there is one.
pub(crate) struct ToolContext {
    /// `tool_path`, `tool_dir`, `project_path`, …
    pub(crate) context: Map<String, Json>,
    /// The private copy that the tool runs from.
    pub(crate) call_folder: CallFolder,
    /// Variables that the user's settings pass on to every tool.
    pub(crate) passed_on: Vec<String>,
    /// The anchor that is active.
    declared: Option<Map<String, Json>>,
    /// The `.ai` folder that the tool lies in; none for one of the program.
    source: Option<PathBuf>,
    project: PathBuf,
}

/// A path variable, with the entries that come in front of and behind its own.
pub(crate) type PathChange = (String, Vec<String>, Vec<String>);

/// Where the library of a runtime lies in a call's folder.
const LIBRARY: &str = "runtime_lib";

/// Which folder an anchor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Root {
    ToolDir,
    ToolParent,
    Project,
}

impl ToolContext {
    /// Verifies a chain's tool with the files beside it and copies them to where they run.
    pub(crate) fn new(spaces: &Spaces, chain: &[Element], verify: &dyn Verify) -> Result<ToolContext> {
        let declares = chain.iter().find(|element| !element.tool.anchor.is_empty());
        let lists = chain.first().is_some_and(|tool| !tool.tool.files.is_empty());
        let (root, active) = match declares {
            Some(element) => (root_of(element)?, is_active(element, source_dir(chain), lists)?),
            None => (Root::ToolDir, false),
        };
        let mut tree = Tree::default();
        // Node looks for a package.json in all folders above a file: it finds this one, and no other.
        tree.add("package.json".into(), b"{}\n".to_vec(), false);
        if let Some(tool) = chain.first() {
            tree.add(staged(tool), tool.bytes.to_vec(), true);
        }
        let helpers = HelperFiles { spaces, chain, verify };
        helpers.beside_tool(root, active, &mut tree)?;
        let runtime = declares.or(chain.get(1));
        if let Some(runtime) = runtime {
            helpers.library(runtime, &mut tree)?;
        }
        let call_folder = tree.write()?;
        let context = context(spaces, chain, root, runtime.is_some(), call_folder.path());
        let declared = declares.filter(|_| active).map(|element| element.tool.anchor.clone());
        let space = chain.first().and_then(|tool| spaces.space(tool.located.space));
        let source = space.and_then(|space| space.folder()).map(Path::to_owned);
        let passed_on = UserConfig::read(spaces)?.tools.env;
        Ok(ToolContext {
            context,
            call_folder,
            passed_on,
            declared,
            source,
            project: spaces.project().to_owned(),
        })
    }

    /// A text of a runtime with what is known put into it.
    pub(crate) fn text(&self, template: &str) -> String {
        let nothing = Map::new();
        let env = |name: &str| std::env::var(name).ok();
        let values = Values { context: &self.context, parameters: &nothing, config: &nothing, env: &env };
        values.text(template, Encoding::Plain)
    }

    /// Where a folder of the copy was copied from; a folder elsewhere is itself.
    pub(crate) fn original(&self, folder: &Path) -> PathBuf {
        match (folder.strip_prefix(self.call_folder.path().join(".ai")), &self.source) {
            (Ok(below), Some(source)) => source.join(below),
            _ => folder.to_owned(),
        }
    }

    /// The folder that an active anchor wants the tool to run in.
    pub(crate) fn cwd(&self) -> Option<String> {
        let cwd = self.declared.as_ref()?.get("cwd")?.as_str()?;
        Some(self.text(cwd))
    }

    /// The path variables that an active anchor changes, with their entries in front and behind. None of them is a folder
    /// of the project: its files are not signed, and what lies on such a path is loaded.
    pub(crate) fn env_paths(&self) -> Result<Vec<PathChange>> {
        let paths = self.paths(self.declared.as_ref().and_then(|anchor| anchor.get("env_paths")));
        for (name, front, behind) in &paths {
            if let Some(entry) =
                front.iter().chain(behind).find(|entry| Path::new(entry).starts_with(&self.project))
            {
                let message = format!("`{name}` would contain {entry}, whose files are not signed");
                return Err(bad_runtime(None, message, "set `anchor.root` to tool_dir or tool_parent"));
            }
        }
        Ok(paths)
    }

    /// Path variables with entries in front and behind, as a runtime writes them.
    pub(crate) fn paths(&self, written: Option<&Json>) -> Vec<PathChange> {
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
}

/// Where a tool lies in a call's folder.
fn staged(tool: &Element) -> PathBuf {
    let located = &tool.located;
    format!(".ai/{}/{}.{}", located.kind.folder(), located.id, located.extension).into()
}

/// The folder that a chain's tool lies in; none for a tool of the program.
fn source_dir(chain: &[Element]) -> Option<&Path> {
    chain.first().and_then(|tool| tool.located.path()).and_then(Path::parent)
}

fn context(
    spaces: &Spaces,
    chain: &[Element],
    root: Root,
    library: bool,
    call_folder: &Path,
) -> Map<String, Json> {
    let mut context = Map::new();
    let mut set = |name: &str, path: &Path| {
        context.insert(name.to_owned(), path.to_string_lossy().into_owned().into());
    };
    let project = spaces.project();
    set("project_path", project);
    if let Some(folder) = spaces.space(SpaceKind::User).and_then(|user| user.folder()?.parent()) {
        set("user_space", folder);
    }
    set("system_space", call_folder);
    set("cache_path", &call_folder.join("cache"));
    if library {
        set(LIBRARY, &call_folder.join(LIBRARY));
    }
    let (mut tool_dir, mut tool_parent) = (project.to_owned(), project.to_owned());
    if let Some(tool) = chain.first() {
        let path = call_folder.join(staged(tool));
        set("tool_path", &path);
        tool_dir = path.parent().unwrap_or(call_folder).to_owned();
        tool_parent = tool_dir.parent().unwrap_or(call_folder).to_owned();
        set("tool_dir", &tool_dir);
        set("tool_parent", &tool_parent);
    }
    set(
        "anchor_path",
        match root {
            Root::ToolDir => &tool_dir,
            Root::ToolParent => &tool_parent,
            Root::Project => project,
        },
    );
    if let Some(tool) = chain.first() {
        context.insert("tool_id".to_owned(), tool.id().into());
    }
    context
}

/// Finds the files that a tool reaches beside it.
struct HelperFiles<'h> {
    spaces: &'h Spaces,
    chain: &'h [Element],
    verify: &'h dyn Verify,
}

impl HelperFiles<'_> {
    /// Copies the files beside a tool: with an anchor all that the runtime asks for, otherwise data and signed helpers.
    fn beside_tool(&self, root: Root, active: bool, tree: &mut Tree) -> Result<()> {
        let (Some(tool), Some(source)) = (self.chain.first(), source_dir(self.chain)) else { return Ok(()) };
        let staged = staged(tool);
        let to = staged.parent().unwrap_or(Path::new(""));
        let rules = self.chain.iter().find(|element| !element.tool.verify_deps.is_empty());
        let enabled =
            |element: &&Element| element.tool.verify_deps.get("enabled") != Some(&Json::Bool(false));
        let Some(element) = rules.filter(enabled).filter(|_| active) else {
            let copying = Copying {
                spaces: self.spaces,
                verify: self.verify,
                extensions: siblings(tool.located.extension),
                exclude: Vec::new(),
                unsigned: Unsigned::Skip,
                listed: (source, &tool.tool.files),
                // At the top of its folder, everything else is another tool.
                recursive: !tool.located.id.category().is_empty(),
            };
            return copying.copy(source, to, tree);
        };
        let rules = &element.tool.verify_deps;
        let (above, to_above) = (source.parent().unwrap_or(source), to.parent().unwrap_or(to));
        let scope = rules.get("scope").and_then(Json::as_str);
        let (folder, to, recursive) = match (scope, root) {
            // Above a tool without a category lies what is no tool.
            (None | Some("anchor"), Root::ToolParent) if !tool.located.id.category().is_empty() => {
                (above, to_above, true)
            }
            (None | Some("anchor" | "tool_dir"), _) => (source, to, true),
            (Some("tool_siblings"), _) => (source, to, false),
            (Some("tool_file"), _) => return Ok(()),
            (Some(other), _) => {
                let message = format!("invalid `verify_deps.scope`: {other:?}");
                let hint = "write anchor, tool_dir, tool_siblings or tool_file";
                return Err(bad_runtime(Some(element), message, hint));
            }
        };
        let texts = |name: &str| -> Vec<String> {
            let list = rules.get(name).and_then(Json::as_array);
            list.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let extensions =
            texts("extensions").iter().map(|text| text.trim_start_matches('.').to_owned()).collect();
        let copying = Copying {
            spaces: self.spaces,
            verify: self.verify,
            extensions,
            exclude: texts("exclude_dirs"),
            unsigned: Unsigned::Refuse,
            recursive,
            listed: (source, &tool.tool.files),
        };
        copying.copy(folder, to, tree)
    }

    /// Copies the library of a runtime, which is what lies in the folder `lib` beside it. It is code like the runtime.
    /// A copy of a runtime of the program also has the program's library, behind its own.
    fn library(&self, runtime: &Element, tree: &mut Tree) -> Result<()> {
        if let Some(path) = runtime.located.path() {
            self.own_library(&path.with_file_name("lib"), tree)?;
        }
        let below = format!("{}/{}/lib/", runtime.located.kind.folder(), runtime.located.id.category());
        for (path, bytes) in system_files() {
            if let Some(file) = path.strip_prefix(&below) {
                tree.add(Path::new(LIBRARY).join(file), bytes.to_vec(), false);
            }
        }
        Ok(())
    }

    fn own_library(&self, library: &Path, tree: &mut Tree) -> Result<()> {
        if !library.is_dir() {
            return Ok(());
        }
        let copying = Copying {
            spaces: self.spaces,
            verify: self.verify,
            extensions: ItemType::Tool.extensions().iter().map(|known| (*known).to_owned()).collect(),
            exclude: Vec::new(),
            unsigned: Unsigned::Refuse,
            recursive: true,
            listed: (library, &Map::new()),
        };
        copying.copy(library, Path::new(LIBRARY), tree)
    }
}

/// Extensions of helper files that a tool without an anchor can load by their paths. Python finds modules through its path,
/// so a tool of Python's needs an anchor.
fn siblings(extension: &str) -> Vec<String> {
    let known: &[&str] = match extension {
        "js" | "ts" | "mjs" | "cjs" => &["js", "ts", "mjs", "cjs"],
        "sh" => &["sh"],
        _ => &[],
    };
    known.iter().map(|known| (*known).to_owned()).collect()
}

fn root_of(element: &Element) -> Result<Root> {
    match element.tool.anchor.get("root").and_then(Json::as_str) {
        None | Some("tool_dir") => Ok(Root::ToolDir),
        Some("tool_parent") => Ok(Root::ToolParent),
        Some("project_path") => Ok(Root::Project),
        Some(other) => {
            let hint = "write tool_dir, tool_parent or project_path";
            Err(bad_runtime(Some(element), format!("invalid `anchor.root`: {other:?}"), hint))
        }
    }
}

/// Whether a tool has an anchor. One that lists its files has one without a marker.
fn is_active(element: &Element, source: Option<&Path>, lists: bool) -> Result<bool> {
    let anchor = &element.tool.anchor;
    if anchor.get("enabled").is_some_and(|enabled| enabled == &Json::Bool(false)) {
        return Ok(false);
    }
    match anchor.get("mode").and_then(Json::as_str) {
        Some("always") => Ok(true),
        None | Some("auto") => {
            let markers = anchor.get("markers_any").and_then(Json::as_array);
            let mut names = markers.into_iter().flatten().filter_map(Json::as_str);
            Ok(lists || source.is_some_and(|source| names.any(|name| source.join(name).exists())))
        }
        Some("never") => Ok(false),
        Some(other) => Err(bad_runtime(
            Some(element),
            format!("invalid `anchor.mode`: {other:?}"),
            "write auto, always or never",
        )),
    }
}

/// The error for something in a runtime that is invalid.
pub(crate) fn bad_runtime(element: Option<&Element>, message: String, hint: &str) -> Error {
    let mut diagnostic = Diagnostic::new(Code::BadRuntime, message).hint(hint);
    diagnostic.file = element.map(|element| element.located.name.clone());
    Error::new(ErrorKind::Execute, diagnostic)
}
