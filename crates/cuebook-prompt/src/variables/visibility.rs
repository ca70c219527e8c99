//! Which sections were opened or closed, for one render or remembered in a file between renders.

use crate::error::Hint;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use crate::error::{Code, Error, ErrorKind, Result};
use crate::files;
use crate::json::Step::Key;
use crate::json::{Document, Problems, quoted};
use crate::prompt::Visibility;
use crate::source::Source;

/// The one key of a file.
const VISIBILITY: &str = "visibility";

/// The largest file that is read, in bytes.
const LIMIT: u64 = 1 << 20;

/// Sections whose visibility was set, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VisibilityOverrides(IndexMap<Vec<String>, Visibility>);

impl VisibilityOverrides {
    /// None.
    pub fn new() -> VisibilityOverrides {
        VisibilityOverrides::default()
    }

    /// What is set for a path, with slashes or with dots.
    pub fn get(&self, path: &[String]) -> Option<Visibility> {
        let dotted = || self.0.get(&[path.join(".")][..]);
        self.0.get(path).or_else(|| (path.len() > 1).then(dotted)?).copied()
    }

    /// Sets one.
    pub fn set(&mut self, path: &[String], visibility: Visibility) {
        self.0.insert(path.to_vec(), visibility);
    }

    /// Takes one back; `false` if it was not set.
    pub fn clear(&mut self, path: &[String]) -> bool {
        self.0.shift_remove(path).is_some()
    }

    /// Takes all back.
    pub fn clear_all(&mut self) {
        self.0.clear();
    }

    /// Replaces all of them.
    pub fn seed(&mut self, overrides: VisibilityOverrides) {
        *self = overrides;
    }

    /// All of them, in the order in which they were set.
    pub fn iter(&self) -> impl Iterator<Item = (&[String], Visibility)> {
        self.0.iter().map(|(path, visibility)| (path.as_slice(), *visibility))
    }

    /// Reads what a command wrote; a file that does not exist has none.
    pub fn read(path: &Path) -> Result<VisibilityOverrides> {
        let name = path.to_string_lossy();
        if files::look(path).map_err(|error| files::io_error(&name, &error))?.is_none() {
            return Ok(VisibilityOverrides::new());
        }
        VisibilityOverrides::parse(&files::read_text(path, &name, LIMIT).map_err(too_large)?)
    }

    fn parse(source: &Arc<Source>) -> Result<VisibilityOverrides> {
        let document = Document::parse(source, Code::BadInput, ErrorKind::Config)?;
        let mut problems = Problems::new(&document);
        let mut overrides = VisibilityOverrides::new();
        let object = document.object()?;
        // A key that is misspelt would open nothing, and be lost with the next write.
        for key in object.keys().filter(|key| *key != VISIBILITY) {
            let message = format!("unknown key {} in a session", quoted(key));
            problems.wrong_key(&[Key(key)], message, format!("the only key is `{VISIBILITY}`"));
        }
        let visibility = object.get(VISIBILITY);
        if let Some(other) = visibility.filter(|visibility| !visibility.is_object()) {
            let hint = "write { \"path/of/section\": \"full\" }";
            problems.wrong_type(&[Key("visibility")], other, "`visibility`", "an object", hint);
        }
        for (path, value) in visibility.and_then(Json::as_object).into_iter().flatten() {
            match value.as_str().and_then(Visibility::named) {
                Some(visibility) => {
                    let path: Vec<String> = path.split('/').map(str::to_owned).collect();
                    overrides.set(&path, visibility);
                }
                None => problems.wrong_type(
                    &[Key("visibility"), Key(path)],
                    value,
                    &quoted(path),
                    "\"full\" or \"summary\"",
                    "use one of them",
                ),
            }
        }
        problems.or(overrides)
    }

    /// Writes it for the next command, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        files::write_atomic(&target(path), &path.to_string_lossy(), self.to_text().as_bytes())
    }

    /// Changes what a file remembers, and returns all of it. Of several commands that do so at once, none undoes what another one
    /// did.
    pub fn update(path: &Path, change: impl FnOnce(&mut VisibilityOverrides)) -> Result<VisibilityOverrides> {
        files::update(&target(path), &path.to_string_lossy(), LIMIT, |text| {
            let mut session = text
                .map_or_else(|| Ok(VisibilityOverrides::new()), |text| VisibilityOverrides::parse(&text))?;
            change(&mut session);
            Ok((Some(session.to_text().into_bytes()), session))
        })
    }

    fn to_text(&self) -> String {
        let visibility: Map<String, Json> =
            self.iter().map(|(path, visibility)| (path.join("/"), json!(visibility.as_str()))).collect();
        format!("{:#}\n", json!({VISIBILITY: visibility}))
    }
}

/// The limit of a session is fixed, and a handwritten one never comes near it.
fn too_large(error: Error) -> Error {
    match error.code() {
        Code::FileTooLarge => {
            let hint =
                Hint::command_line("this is not a session: name a new file, or a file that --session wrote")
                    .for_programs("this is not a session: name a new file");
            let diagnostic = error.diagnostic().clone().hint(hint);
            error.replaced(diagnostic)
        }
        _ => error,
    }
}

/// The file that a path leads to, so that a link stays one when it is written.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}
