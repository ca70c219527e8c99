//! Lockfiles: what a chain was made of when it first ran.
//!
//! The first success of a tool writes `.ai/lockfiles/<id>@<version>.lock.json` into the project, with the hash of every
//! element and with the program that ran the tool on this machine. From then on the tool runs as long as the chain is the same; another signed version of a file is refused until
//! the lockfile is deleted, which is how users agree.

use std::path::{Path, PathBuf};

use cuebook::error::shell_word;
use cuebook::items::Spaces;
use cuebook::limits::SETTINGS_BYTES;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use serde_json::{Value as Json, json};

use crate::chain::Element;
use crate::interpreter::{self, Interpreter};

/// What to do about one that cannot be read.
const WRITE_ANEW: &str = "delete it: the next successful run writes a new one";

/// A lockfile that was found.
#[derive(Debug)]
pub(crate) struct Lockfile {
    name: String,
    /// Ids and hashes.
    chain: Vec<(String, String)>,
    /// The program that the tool ran with, as [`Interpreter::locked`] writes it.
    interpreter: Option<Json>,
    generated_at: String,
}

/// The version of a tool that names none.
const NO_VERSION: &str = "0.0.0";

fn below(tool: &Element) -> String {
    let version = tool.tool.version.as_deref().unwrap_or(NO_VERSION);
    // The version becomes part of a path.
    let version: String = version.chars().map(|c| if "/\\\0".contains(c) { '_' } else { c }).collect();
    format!("lockfiles/{}@{version}.lock.json", tool.id())
}

/// The lockfile of a tool, if a space has one.
pub(crate) fn find(spaces: &Spaces, tool: &Element) -> Result<Option<Lockfile>> {
    let below = below(tool);
    for space in spaces.all() {
        let Some(folder) = space.folder() else { continue };
        let path = folder.join(&below);
        let name = files::display_name(spaces.project(), &path);
        if files::look(&path).map_err(|error| files::io_error(&name, &error))?.is_some() {
            return read(&path, name).map(Some);
        }
    }
    Ok(None)
}

fn read(path: &Path, name: String) -> Result<Lockfile> {
    let corrupt = |why: &str| {
        let diagnostic = Diagnostic::new(Code::BadLockfile, format!("invalid lockfile: {why}"))
            .file(&name)
            .hint(WRITE_ANEW);
        Error::new(ErrorKind::Config, diagnostic)
    };
    let source = files::read_text(path, &name, SETTINGS_BYTES)?;
    let json: Json = serde_json::from_str(source.text()).map_err(|error| {
        let before = source.text().split_inclusive('\n').take(error.line().saturating_sub(1));
        let at = before.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
        let at = source.text().floor_char_boundary(at);
        let diagnostic = Diagnostic::new(Code::BadLockfile, "invalid lockfile: not valid JSON");
        Error::new(ErrorKind::Config, diagnostic.at(source.place(at..at)).hint(WRITE_ANEW))
    })?;
    match json.get("lockfile_version") {
        Some(version) if version == &json!(1) => {}
        Some(version) => {
            return Err(corrupt(&format!("unknown version {version}; this program reads version 1")));
        }
        None => return Err(corrupt("it has no `lockfile_version`")),
    }
    let entries = json.get("resolved_chain").and_then(Json::as_array);
    let entries = entries.ok_or_else(|| corrupt("it has no list `resolved_chain`"))?;
    let entry = |entry: &Json| {
        let text = |name: &str| entry.get(name).and_then(Json::as_str).map(str::to_owned);
        Some((text("item_id")?, text("integrity")?))
    };
    let chain: Option<Vec<_>> = entries.iter().map(entry).collect();
    let chain = chain.ok_or_else(|| corrupt("an element has no `item_id` or no `integrity`"))?;
    if chain.is_empty() {
        return Err(corrupt("its chain is empty"));
    }
    let root = json.get("root").and_then(|root| root.get("integrity")?.as_str());
    if root.is_some_and(|root| root != chain[0].1) {
        return Err(corrupt("its `root` and its `resolved_chain` disagree"));
    }
    let generated_at =
        json.get("generated_at").and_then(Json::as_str).unwrap_or("an unknown time").to_owned();
    let interpreter = json.get("interpreter").filter(|written| written.is_object()).cloned();
    Ok(Lockfile { name, chain, interpreter, generated_at })
}

impl Lockfile {
    /// Checks that a chain is the one that was locked.
    pub(crate) fn check(&self, chain: &[Element]) -> Result<()> {
        for (index, (id, hash)) in self.chain.iter().enumerate() {
            let Some(element) = chain.get(index).filter(|element| element.id() == id) else {
                let found: Vec<&str> = chain.iter().map(Element::id).collect();
                let message = format!("Lockfile chain element not found: {id}");
                let file = chain.first().map(|tool| tool.located.name.as_str()).unwrap_or(&self.name);
                return Err(self.mismatch(message, file, &format!("the chain is now {}", found.join(" → "))));
            };
            if element.hash != *hash {
                return Err(self.changed(element, index == 0));
            }
        }
        if let Some(more) = chain.get(self.chain.len()) {
            let message = format!("Lockfile integrity mismatch for chain element {}", more.id());
            return Err(self.mismatch(message, &more.located.name, "the locked chain is shorter"));
        }
        Ok(())
    }

    /// Checks that no file of the project has become the tool's program since it was locked on this machine, and that one
    /// that was is the same. Programs outside of the project are the user's own choice, by the `PATH` for example.
    pub(crate) fn check_interpreter(&self, tool: &Element, found: Option<&Interpreter>) -> Result<()> {
        let (Some(locked), Some(found)) = (&self.interpreter, found) else { return Ok(()) };
        let here = locked.get("host").and_then(Json::as_str) == Some(&*interpreter::host());
        let own = found.in_project || locked.get("in_project") == Some(&Json::Bool(true));
        if !here || !own || *locked == found.locked() {
            return Ok(());
        }
        let was = locked.get("path").and_then(Json::as_str).unwrap_or("another program");
        let message = format!("Lockfile interpreter mismatch for {}: it ran with {was}", tool.id());
        let why = format!("it would now run with {} ({})", found.path, found.target);
        Err(self.mismatch(message, &tool.located.name, &why))
    }

    /// The error for an element that is not what it was.
    pub(crate) fn changed(&self, element: &Element, is_tool: bool) -> Error {
        let what = if is_tool { element.id().to_owned() } else { format!("chain element {}", element.id()) };
        let message = format!("Lockfile integrity mismatch for {what}");
        let why = format!("{} has changed since {}", element.located.name, self.generated_at);
        self.mismatch(message, &element.located.name, &why)
    }

    fn mismatch(&self, message: String, file: &str, why: &str) -> Error {
        let tool = shell_word(self.chain.first().map_or("ID", |(id, _)| id.as_str()));
        let diagnostic = Diagnostic::new(Code::LockMismatch, message).file(file).hint({
            let command = format!("cuebook sign tool {tool}");
            let sign = format!("{why}; if you expect this change, sign the tool again");
            Hint::command_line(format!("{sign} ({command}), or delete {}", self.name))
                .for_programs(format!("{sign}, or delete {}", self.name))
                .with_command(command)
        });
        Error::new(ErrorKind::Integrity, diagnostic).with("lockfile", &self.name)
    }
}

/// Writes the lockfile of a chain into the project. That it cannot be written is no reason to fail a tool that has run.
pub(crate) fn write(spaces: &Spaces, chain: &[Element], interpreter: Option<&Interpreter>) -> bool {
    let Some(tool) = chain.first() else { return false };
    let Some(folder) = spaces.all().first().and_then(|space| space.folder()) else { return false };
    let path: PathBuf = folder.join(below(tool));
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let json = json!({
        "lockfile_version": 1,
        "generated_at": now,
        "root": {
            "tool_id": tool.id(),
            "version": tool.tool.version.as_deref().unwrap_or(NO_VERSION),
            "integrity": tool.hash,
        },
        "resolved_chain": chain.iter().map(Element::to_json).collect::<Vec<_>>(),
        "interpreter": interpreter.map(Interpreter::locked),
        "registry": null,
        "verified_deps": null,
    });
    let Ok(mut text) = serde_json::to_vec_pretty(&json) else { return false };
    text.push(b'\n');
    let name = files::display_name(spaces.project(), &path);
    let inside = files::stays_inside(spaces.project(), &path, &name);
    inside.and_then(|()| files::write_atomic(&path, &name, &text)).is_ok()
}
