//! What a process remembers of the items of a space, so that it need not read them for every search.
//!
//! Of each item it keeps the text that searches look at, in small letters, and nothing else: what is shown of the few that
//! are found is read from their files. A folder in which something happened is read again, and of its files those whose
//! stamps changed.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::query::Fields;
use super::watch::{Changes, Watch};
use crate::actions::outline::Outline;
use crate::error::Diagnostic;
use crate::files::{self, Stamp};
use crate::items::CASES_END;
use crate::items::{ItemId, ItemType, Space, SpaceKind, system_files};
use crate::limits::FILE_BYTES;

/// How deep folders may lie in each other.
const DEEPEST: usize = 64;

/// Letters of a field that searches look at.
const LONGEST: usize = 2_000;

/// The fields of an item in the order in which they lie in its text.
pub(super) const FIELDS: [(&str, f64); 5] =
    [("title", 3.0), ("name", 3.0), ("description", 2.0), ("category", 1.5), ("content", 1.0)];

/// An item as searches see it.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) id: Box<str>,
    /// The place of its extension among those of its type.
    rank: usize,
    /// All fields in small letters, with a space between them.
    text: Box<str>,
    ends: [u32; 4],
    /// Seconds since 1970 at which the file was changed last.
    pub(super) modified: i64,
    stamp: Option<Stamp>,
}

impl Entry {
    fn new(kind: ItemType, id: &str, rank: usize, bytes: &[u8]) -> Entry {
        let stem = id.rsplit('/').next().unwrap_or(id);
        let text = String::from_utf8_lossy(bytes);
        let outline = Outline::of(kind, kind.extensions()[rank], stem, &text);
        let category = outline.category.unwrap_or_default();
        // What a stranger's file can cost is bounded.
        let cut = |text: &str| text.chars().take(LONGEST).collect::<String>().to_lowercase();
        let mut all = String::new();
        let mut ends = [0; 4];
        let fields = [&outline.title, &outline.name, &outline.description, &category, &outline.preview];
        for (index, field) in fields.into_iter().enumerate() {
            if index > 0 {
                ends[index - 1] = u32::try_from(all.len()).unwrap_or(u32::MAX);
                all.push(' ');
            }
            all.push_str(&cut(field));
        }
        Entry { id: id.into(), rank, text: all.into(), ends, modified: 0, stamp: None }
    }

    /// Its text, field by field.
    pub(super) fn fields(&self) -> Fields<'_> {
        Fields { text: &self.text, ends: &self.ends }
    }
}

/// The items of one type in one space.
#[derive(Debug)]
pub(super) struct SpaceIndex {
    kind: ItemType,
    pub(super) space: SpaceKind,
    /// None if it is in the program.
    root: Option<PathBuf>,
    identity: Option<Identity>,
    folders: HashMap<PathBuf, Folder>,
    watch: Watch,
    /// All items in the order of their ids.
    pub(super) entries: Arc<Vec<Arc<Entry>>>,
    /// What its files are called begins with this.
    name: String,
    /// What could not be read, and why.
    pub(super) problems: BTreeMap<PathBuf, Diagnostic>,
}

type Identity = (u64, u64);

#[derive(Debug, Default)]
struct Folder {
    identity: Option<Identity>,
    /// By the name of the file.
    files: HashMap<String, Arc<Entry>>,
    below: Vec<PathBuf>,
    /// Whether a file is a link, whose changes are not notified.
    links: bool,
}

impl SpaceIndex {
    pub(super) fn new(kind: ItemType, space: &Space) -> SpaceIndex {
        let root = space.folder().map(|folder| folder.join(kind.folder()));
        let mut space_index = SpaceIndex {
            kind,
            space: space.kind(),
            root,
            identity: None,
            folders: HashMap::new(),
            watch: Watch::default(),
            entries: Arc::default(),
            name: format!("{}/{}", space.name(), kind.folder()),
            problems: BTreeMap::new(),
        };
        if space_index.root.is_none() {
            let start = format!("{}/", kind.folder());
            let own =
                system_files().iter().filter_map(|(path, bytes)| Some((path.strip_prefix(&start)?, bytes)));
            let found = own.filter_map(|(file, bytes)| {
                let (id, rank) = id_of(kind, file)
                    .filter(|(id, _)| !id.split('/').any(|part| part.starts_with(['.', '_'])))?;
                Some(Arc::new(Entry::new(kind, id, rank, bytes)))
            });
            space_index.entries = Arc::new(in_order(found.collect()));
        }
        space_index
    }

    /// Brings it up to date with the disk.
    pub(super) fn refresh(&mut self) {
        let Some(root) = self.root.clone() else { return };
        let identity = identity(&root);
        let changed = match (identity, identity == self.identity) {
            (None, _) => {
                let had = !self.folders.is_empty();
                self.folders.clear();
                self.problems.clear();
                if let Err(error) = files::look(&root) {
                    let error = files::io_error(&self.name, &error);
                    self.problems.insert(root, error.diagnostic().clone());
                }
                self.watch = Watch::default();
                had
            }
            (Some(_), false) => {
                self.folders.clear();
                self.problems.clear();
                self.watch = Watch::new();
                self.read(&root, "", 0)
            }
            (Some(_), true) => match self.watch.changes() {
                Changes::Anything => self.read(&root, "", 0),
                Changes::In(mut folders) => {
                    folders.extend(
                        self.folders.iter().filter(|(_, folder)| folder.links).map(|(path, _)| path.clone()),
                    );
                    let mut changed = false;
                    for folder in folders {
                        // One that an earlier change took away, or that is new, is seen through the one above it.
                        if self.folders.contains_key(&folder) {
                            let below = files::display_name(&root, &folder);
                            let below = if below == "." { String::new() } else { format!("{below}/") };
                            let depth = below.matches('/').count();
                            changed |= self.read_one(&folder, &below, depth, false);
                        }
                    }
                    changed
                }
            },
        };
        self.identity = identity;
        if changed {
            let all = self.folders.values().flat_map(|folder| folder.files.values().cloned());
            self.entries = Arc::new(in_order(all.collect()));
        }
    }

    /// The folder that no link of a project's items may lead out of.
    fn bounds(&self) -> Option<&Path> {
        let parts = self.kind.folder().split('/').count() + 1;
        self.root.as_deref().filter(|_| self.space == SpaceKind::Project)?.ancestors().nth(parts)
    }

    /// Reads a folder and everything below it again.
    fn read(&mut self, folder: &Path, below: &str, depth: usize) -> bool {
        self.read_one(folder, below, depth, true)
    }

    /// Reads a folder again; what lies below only if it is new, or if everything is to be read.
    fn read_one(&mut self, path: &Path, below: &str, depth: usize, everything: bool) -> bool {
        let old = self.folders.remove(path);
        let is_new = old.is_none();
        let mut old = old.unwrap_or_default();
        // Also one that is watched already: it may be another folder of the same name by now.
        self.watch.add(path);
        self.problems.retain(|known, _| known != path && known.parent() != Some(path));
        let entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) => {
                if error.kind() != std::io::ErrorKind::NotFound {
                    let name = format!("{}/{below}", self.name);
                    let reported = files::closed_folder(path, name.trim_end_matches('/'), &error);
                    self.problems.insert(path.to_owned(), reported.diagnostic().clone());
                }
                self.forget(&old.below);
                return !is_new;
            }
        };
        let mut new = Folder { identity: identity(path), ..Folder::default() };
        let mut changed = false;
        if new.identity != old.identity {
            self.forget(&old.below);
            old.below.clear();
        }
        for entry in entries.flatten() {
            let Ok(name) = entry.file_name().into_string() else { continue };
            let Ok(file_type) = entry.file_type() else { continue };
            if name.starts_with(['.', '_']) {
                continue;
            }
            if file_type.is_dir() {
                if depth < DEEPEST {
                    new.below.push(entry.path());
                }
                continue;
            }
            let Some((id, rank)) = id_of(self.kind, &name) else { continue };
            new.links |= file_type.is_symlink();
            let metadata = match files::look(&entry.path()) {
                Ok(Some(metadata)) => metadata,
                Ok(None) => continue,
                Err(error) => {
                    let error = files::io_error(&format!("{}/{below}{name}", self.name), &error);
                    self.problems.insert(entry.path(), error.diagnostic().clone());
                    continue;
                }
            };
            if !metadata.is_file() {
                continue;
            }
            let stamp = Some(Stamp::from_metadata(&metadata));
            if let Some(known) = old.files.remove(&name)
                && Stamp::proves_unchanged(&stamp, &known.stamp)
            {
                new.files.insert(name, known);
                continue;
            }
            changed = true;
            // The id must be one that `find` could be asked for.
            let id = format!("{below}{id}");
            if ItemId::new(&id).is_err() {
                continue;
            }
            let read = match self.bounds() {
                Some(project) => files::read_bytes_inside(project, &entry.path(), &name, FILE_BYTES),
                None => files::read_bytes(&entry.path(), &name, FILE_BYTES),
            };
            let Ok(bytes) = read else { continue };
            let modified =
                metadata.modified().ok().and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            let modified = modified.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
            let entry = Entry { stamp, modified, ..Entry::new(self.kind, &id, rank, &bytes) };
            new.files.insert(name, Arc::new(entry));
        }
        changed |= !old.files.is_empty();
        let gone: Vec<PathBuf> = old.below.iter().filter(|path| !new.below.contains(path)).cloned().collect();
        changed |= !gone.is_empty();
        self.forget(&gone);
        let fresh: Vec<PathBuf> = new
            .below
            .iter()
            .filter(|path| everything || !self.folders.contains_key(*path))
            .cloned()
            .collect();
        self.folders.insert(path.to_owned(), new);
        for path in fresh {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            changed |= self.read_one(&path, &format!("{below}{name}/"), depth + 1, everything);
        }
        changed || is_new
    }

    fn forget(&mut self, folders: &[PathBuf]) {
        let mut todo = folders.to_vec();
        while let Some(path) = todo.pop() {
            self.problems.retain(|known, _| *known != path && known.parent() != Some(&path));
            if let Some(folder) = self.folders.remove(&path) {
                todo.extend(folder.below);
            }
        }
    }
}

/// The id that a file stands for below its folder, and the place of its extension.
fn id_of(kind: ItemType, file: &str) -> Option<(&str, usize)> {
    // The cases of a directive lie beside it, and are none.
    let (id, extension) = file.rsplit_once('.').filter(|_| !file.ends_with(CASES_END))?;
    let rank = kind.extensions().iter().position(|known| *known == extension)?;
    (!id.is_empty()).then_some((id, rank))
}

/// The items in the order of their ids; of two files with the same id the one that is found by it.
fn in_order(mut entries: Vec<Arc<Entry>>) -> Vec<Arc<Entry>> {
    entries.sort_unstable_by(|one, other| one.id.cmp(&other.id).then(one.rank.cmp(&other.rank)));
    entries.dedup_by(|one, other| one.id == other.id);
    entries
}

/// What tells a folder from another one of the same name.
fn identity(path: &Path) -> Option<Identity> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_dir)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        Some((metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        Some((0, 0))
    }
}
