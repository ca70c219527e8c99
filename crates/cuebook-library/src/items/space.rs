//! The spaces, in the order in which they are asked.

use std::path::{Path, PathBuf};

use super::item::{Located, Place};
use super::{ItemId, ItemType, system};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::files;

/// The file of cases in a prompt's folder.
pub const CASES_FILE: &str = "tests.md";
/// What the name of a file of cases ends in that lies beside its prompt. It is not an item.
pub const CASES_END: &str = ".tests.md";

/// The folder of a project or of a user that holds its items.
pub const FOLDER: &str = ".ai";

/// Whose space it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SpaceKind {
    /// The project's.
    Project,
    /// The user's.
    User,
    /// The program's.
    System,
}

impl SpaceKind {
    /// All of them, in the order in which they are asked.
    pub const ALL: [SpaceKind; 3] = [SpaceKind::Project, SpaceKind::User, SpaceKind::System];

    /// Its name, as in `project`.
    pub fn as_str(self) -> &'static str {
        match self {
            SpaceKind::Project => "project",
            SpaceKind::User => "user",
            SpaceKind::System => "system",
        }
    }

    /// The space of a name.
    pub fn named(name: &str) -> Option<SpaceKind> {
        SpaceKind::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// One space.
#[derive(Debug, Clone)]
pub struct Space {
    kind: SpaceKind,
    /// Its `.ai` folder; none if it is in the program.
    folder: Option<PathBuf>,
    /// What the names of its files begin with.
    name: String,
}

/// All spaces that a project sees.
#[derive(Debug, Clone)]
pub struct Spaces {
    project: PathBuf,
    user: Option<PathBuf>,
    spaces: Vec<Space>,
}

/// What the user's `.ai` folder is called where its own files are reported: its real place, if `USER_SPACE` says so.
pub(crate) fn user_name(folder: &Path) -> String {
    let moved = std::env::var_os("USER_SPACE").is_some_and(|user| !user.is_empty());
    let is_home = || std::env::home_dir().is_some_and(|home| home.join(FOLDER) == folder);
    match moved && !is_home() {
        true => folder.to_string_lossy().into_owned(),
        false => format!("~/{FOLDER}"),
    }
}

impl Space {
    /// The tools of a pack, which belong to the project.
    pub(crate) fn of_pack(folder: &Path, name: String) -> Space {
        Space { kind: SpaceKind::Project, folder: Some(folder.to_owned()), name }
    }

    /// Whose it is.
    pub fn kind(&self) -> SpaceKind {
        self.kind
    }

    /// Its `.ai` folder, if it is on disk.
    pub fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// What the names of its files begin with, as in `.ai`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file of a space by its path below `.ai`, with the name that people see.
    ///
    /// # Errors
    ///
    /// `CB102` if two files that differ only in their extension have the id.
    pub fn locate(&self, kind: ItemType, id: &ItemId) -> Result<Option<Located>> {
        let mut found: Option<Located> = None;
        for extension in kind.extensions() {
            let below = format!("{}/{id}.{extension}", kind.folder());
            if below.ends_with(CASES_END) {
                continue;
            }
            let name = format!("{}/{below}", self.name);
            let file = match &self.folder {
                Some(folder) => {
                    let path = folder.join(&below);
                    match files::look(&path) {
                        Ok(Some(metadata)) if metadata.is_file() => Place::Disk(path),
                        Ok(_) => continue,
                        Err(error) => return Err(files::io_error(&name, &error)),
                    }
                }
                None => match system::FILES.iter().find(|(path, _)| *path == below) {
                    Some((_, bytes)) => Place::Program(bytes),
                    None => continue,
                },
            };
            if let Some(other) = &found {
                return Err(two_files(kind, id, &other.name, &name));
            }
            found = Some(Located { kind, id: id.clone(), space: self.kind, name, extension, file });
        }
        Ok(found)
    }

    /// The item that a file of this space is: any file below the folder of its type with one of its extensions.
    pub fn item_of(&self, kind: ItemType, path: &Path) -> Option<Located> {
        let below = path.strip_prefix(self.folder.as_ref()?.join(kind.folder())).ok()?;
        let parts: Option<Vec<&str>> = below.iter().map(|part| part.to_str()).collect();
        located(kind, self, &parts?.join("/"), Place::Disk(path.to_owned()))
    }
}

impl Spaces {
    /// The spaces of a project, of a user (the folder that holds their `.ai`), and of the program.
    pub fn new(project: &Path, user: Option<&Path>) -> Spaces {
        let on_disk = |kind, folder: &Path, name: &str| Space {
            kind,
            folder: Some(folder.join(FOLDER)),
            name: name.to_owned(),
        };
        let whose = user.map(Path::to_owned);
        let mut spaces = vec![on_disk(SpaceKind::Project, project, FOLDER)];
        // A project that is the user's own folder has one space and not the same one twice.
        if let Some(user) = user.filter(|user| *user != project) {
            spaces.push(on_disk(SpaceKind::User, user, &format!("~/{FOLDER}")));
        }
        spaces.push(Space { kind: SpaceKind::System, folder: None, name: "system:cuebook".to_owned() });
        Spaces { project: project.to_owned(), user: whose, spaces }
    }

    /// The spaces of a project, and of this user: `USER_SPACE`, or their home.
    pub fn of_project(project: &Path) -> Spaces {
        let user = std::env::var_os("USER_SPACE").filter(|folder| !folder.is_empty()).map(PathBuf::from);
        let user = user.map(|folder| match (folder.strip_prefix("~"), std::env::home_dir()) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => folder.clone(),
        });
        Spaces::new(project, user.or_else(std::env::home_dir).as_deref())
    }

    /// The root of the project.
    pub fn project(&self) -> &Path {
        &self.project
    }

    /// The user's home folder.
    pub fn home(&self) -> Option<&Path> {
        self.user.as_deref()
    }

    /// The user's `.ai` folder, which holds their keys; also if the project is the user's own folder.
    pub fn user_folder(&self) -> Option<PathBuf> {
        self.user.as_deref().map(|user| user.join(FOLDER))
    }

    /// The spaces, in the order in which they are asked.
    pub fn all(&self) -> &[Space] {
        &self.spaces
    }

    /// A space by whose it is.
    pub fn space(&self, kind: SpaceKind) -> Option<&Space> {
        self.spaces.iter().find(|space| space.kind == kind)
    }

    /// Everything that has an id: the item, and behind it what it shadows.
    pub fn candidates(&self, kind: ItemType, id: &ItemId) -> Result<Vec<Located>> {
        let found = self.spaces.iter().map(|space| space.locate(kind, id));
        found.filter_map(Result::transpose).collect()
    }

    /// The item that a file is, if it lies in one of these spaces.
    pub fn at_path(&self, kind: ItemType, path: &Path) -> Option<Located> {
        self.spaces.iter().find_map(|space| {
            let below = path.strip_prefix(space.folder.as_ref()?.join(kind.folder())).ok()?;
            located(kind, space, below.to_str()?, Place::Disk(path.to_owned()))
        })
    }

    /// The item of an id.
    pub fn find(&self, kind: ItemType, id: &ItemId) -> Result<Option<Located>> {
        self.find_from(kind, id, SpaceKind::Project)
    }

    /// The item of an id, looked for in a space and those behind it.
    pub fn find_from(&self, kind: ItemType, id: &ItemId, first: SpaceKind) -> Result<Option<Located>> {
        for space in self.spaces.iter().filter(|space| space.kind >= first) {
            if let Some(found) = space.locate(kind, id)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// All items of a type in a space, in the order of their ids. Names that begin with `_` or `.` are skipped.
    pub fn walk(&self, kind: ItemType, space: &Space) -> Result<Vec<Located>> {
        let mut found = Vec::new();
        match &space.folder {
            Some(folder) => walk_folder(kind, space, &folder.join(kind.folder()), "", 0, &mut found)?,
            None => {
                let start = format!("{}/", kind.folder());
                for (path, bytes) in system::FILES {
                    if let Some(file) = path.strip_prefix(&start)
                        && !file.split('/').any(|part| part.starts_with(['.', '_']))
                    {
                        found.extend(located(kind, space, file, Place::Program(bytes)));
                    }
                }
            }
        }
        found.sort_by(|one, other| one.id.cmp(&other.id));
        // Of two files that differ only in their extension, the one that `locate` takes is the item.
        let rank = |item: &Located| kind.extensions().iter().position(|known| *known == item.extension);
        found.sort_by(|one, other| one.id.cmp(&other.id).then_with(|| rank(one).cmp(&rank(other))));
        found.dedup_by(|one, other| one.id == other.id);
        Ok(found)
    }

    /// The error for an id that nothing has.
    pub fn not_found(&self, kind: ItemType, id: &ItemId) -> Error {
        let what = match kind {
            ItemType::Directive => "Directive",
            ItemType::Tool => "Tool",
            ItemType::Knowledge => "Knowledge entry",
        };
        let known: Vec<String> = self
            .spaces
            .iter()
            .filter_map(|space| self.walk(kind, space).ok())
            .flatten()
            .map(|item| item.id.to_string())
            .collect();
        let hint = did_you_mean(&nearest(id.as_str(), known.iter().map(String::as_str)));
        let hint = hint.unwrap_or_else(|| {
            let extension = kind.extensions()[0];
            format!(
                "its path would be {FOLDER}/{}/{id}.{extension}, in the project or in the user space",
                kind.folder()
            )
        });
        let diagnostic = Diagnostic::new(Code::ItemNotFound, format!("{what} not found: {id}")).hint(hint);
        Error::new(ErrorKind::ItemNotFound, diagnostic)
            .with("item_type", kind.as_str())
            .with("item_id", id.as_str())
    }
}

/// How deep folders may lie in each other.
const DEEPEST: usize = 64;

fn walk_folder(
    kind: ItemType,
    space: &Space,
    folder: &Path,
    below: &str,
    depth: usize,
    found: &mut Vec<Located>,
) -> Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if files::is_absent(&error) && error.kind() != std::io::ErrorKind::NotADirectory => {
            return Ok(());
        }
        Err(error) => {
            let name = format!("{}/{}/{below}", space.name, kind.folder());
            return Err(files::closed_folder(folder, name.trim_end_matches('/'), &error));
        }
    };
    for entry in entries.flatten() {
        // A name that is no text cannot be part of an id.
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name.starts_with(['.', '_']) {
            continue;
        }
        let path = format!("{below}{name}");
        let Ok(file_type) = entry.file_type() else { continue };
        // Links to folders are not followed, so that nothing is walked twice or for ever.
        if file_type.is_dir() {
            if depth < DEEPEST {
                walk_folder(kind, space, &entry.path(), &format!("{path}/"), depth + 1, found)?;
            }
        } else if file_type.is_file() || is_file_or_trouble(&entry.path()) {
            found.extend(located(kind, space, &path, Place::Disk(entry.path())));
        }
    }
    Ok(())
}

/// Whether a link leads to a file, or cannot be followed: then a user of the item gets the reason.
fn is_file_or_trouble(path: &Path) -> bool {
    match files::look(path) {
        Ok(found) => found.is_some_and(|found| found.is_file()),
        Err(_) => true,
    }
}

/// Nothing says which of two files is meant.
fn two_files(kind: ItemType, id: &ItemId, one: &str, other: &str) -> Error {
    let message = format!("two files are the {kind} `{id}`: {one} and {other}");
    let diagnostic = Diagnostic::new(Code::PromptConflict, message).hint("rename or delete one of them");
    Error::new(ErrorKind::PromptConflict, diagnostic).with("item_id", id.as_str()).with("files", [one, other])
}

/// The item that a file of a space is, if its extension is one of its type.
fn located(kind: ItemType, space: &Space, path: &str, file: Place) -> Option<Located> {
    let (id, extension) = path.rsplit_once('.')?;
    // The cases of a directive lie beside it, and are none.
    if path.ends_with(CASES_END) {
        return None;
    }
    let extension = kind.extensions().iter().find(|known| **known == extension)?;
    let name = format!("{}/{}/{path}", space.name, kind.folder());
    Some(Located { kind, id: ItemId::new(id).ok()?, space: space.kind, name, extension, file })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str) {
        let path = root.join(FOLDER).join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }

    #[test]
    fn two_files_of_one_id_are_an_error_that_names_both() {
        let project = tempfile::tempdir().unwrap();
        write(project.path(), "tools/a/run.yaml");
        write(project.path(), "tools/a/run.py");
        let spaces = Spaces::new(project.path(), None);
        let error = spaces.find(ItemType::Tool, &ItemId::new("a/run").unwrap()).unwrap_err();
        assert_eq!(error.code(), Code::PromptConflict);
        assert_eq!(
            error.diagnostic().message,
            "two files are the tool `a/run`: .ai/tools/a/run.py and .ai/tools/a/run.yaml"
        );
    }

    #[test]
    fn the_project_shadows_the_user() {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        write(project.path(), "tools/a/run.py");
        write(user.path(), "tools/a/run.sh");
        write(user.path(), "tools/b.sh");
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let id = ItemId::new("a/run").unwrap();
        let names: Vec<String> =
            spaces.candidates(ItemType::Tool, &id).unwrap().into_iter().map(|item| item.name).collect();
        assert_eq!(names, [".ai/tools/a/run.py", "~/.ai/tools/a/run.sh"]);
        let from_user = spaces.find_from(ItemType::Tool, &id, SpaceKind::User).unwrap().unwrap();
        assert_eq!(from_user.space, SpaceKind::User);
        let all = spaces.walk(ItemType::Tool, &spaces.all()[0]).unwrap();
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].extension, "py");
    }

    #[test]
    fn a_missing_name_is_reported_with_the_nearest_one() {
        let project = tempfile::tempdir().unwrap();
        write(project.path(), "directives/my/deploy.md");
        let spaces = Spaces::new(project.path(), None);
        let error = spaces.not_found(ItemType::Directive, &ItemId::new("my/deplyo").unwrap());
        assert_eq!(error.diagnostic().message, "Directive not found: my/deplyo");
        assert!(error.diagnostic().hint.as_deref().unwrap_or_default().contains("my/deploy"));
    }
}
