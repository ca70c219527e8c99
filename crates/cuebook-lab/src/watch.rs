//! Watch: notices that something has changed which a render depends on.
//!
//! What a prompt was made from (its own files, includes, parents, `cuebook.toml`, defaults, resolutions, packs) is known to the
//! book, which keeps a compiled prompt only as long as all of that is as it was. The rest is looked at here: overrides, the
//! directives that a directive may extend, the folders of code that takes part (hooks, variable providers of packs) with
//! whether it is approved, and the files that the caller names. Looking works on every file system, and costs little: a
//! handful of files now and then.

mod stamp;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, UNIX_EPOCH};

use crate::book::Book;
use crate::items::ItemType;
use crate::overrides::Store;
use crate::prepared::Prepared;
use crate::variables::Context;
pub use stamp::stamp_of;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(150);
/// How long everything must have been quiet before a change is reported: several files that are saved together are one change.
const QUIET: Duration = Duration::from_millis(80);
/// What changes all the time is reported now and then.
const LONGEST: Duration = Duration::from_secs(2);
/// Files up to this size are compared by what is in them, larger ones by their times.
const MAX_READ: u64 = 1 << 20;

/// Looks at everything that renders of a prompt depend on.
#[derive(Debug)]
pub struct Watch<'b> {
    book: &'b Book,
    /// The prompt, and for which circumstances; `None` if not even that is known.
    prompt: Option<(String, Context)>,
    files: Vec<PathBuf>,
    seen: WatchedState,
}

/// What things looked like.
#[derive(Debug)]
struct WatchedState {
    prompt: PromptState,
    files: BTreeMap<PathBuf, u64>,
}

#[derive(Debug)]
enum PromptState {
    Nothing,
    Prompt(Arc<Prepared>),
    /// Why it could not be prepared.
    Error(String),
}

impl PartialEq for WatchedState {
    fn eq(&self, other: &WatchedState) -> bool {
        let same = match (&self.prompt, &other.prompt) {
            (PromptState::Nothing, PromptState::Nothing) => true,
            (PromptState::Prompt(one), PromptState::Prompt(other)) => Arc::ptr_eq(one, other),
            (PromptState::Error(one), PromptState::Error(other)) => one == other,
            _ => false,
        };
        same && self.files == other.files
    }
}

impl<'b> Watch<'b> {
    /// Takes the first look. Whatever changes from here on is noticed, so look first and render then.
    pub fn new(book: &'b Book, prompt: Option<(&str, &Context)>, files: Vec<PathBuf>) -> Watch<'b> {
        let prompt = prompt.map(|(prompt, context)| (prompt.to_owned(), context.clone()));
        let mut watch = Watch {
            book,
            prompt,
            files,
            seen: WatchedState { prompt: PromptState::Nothing, files: BTreeMap::new() },
        };
        watch.seen = watch.look();
        watch
    }

    /// Whether anything has changed since the last reported look.
    pub fn has_changed(&mut self) -> bool {
        let now = self.look();
        let changed = now != self.seen;
        self.seen = now;
        changed
    }

    /// Waits until something has changed and everything is quiet again.
    pub fn wait(&mut self) {
        loop {
            std::thread::sleep(PAUSE);
            if self.has_changed() {
                break;
            }
        }
        let since = Instant::now();
        loop {
            std::thread::sleep(QUIET);
            if !self.has_changed() || since.elapsed() > LONGEST {
                return;
            }
        }
    }

    fn look(&self) -> WatchedState {
        let prepared = self.prompt.as_ref().map(|(prompt, context)| {
            let context = self.book.complete(context)?;
            self.book.prepare(prompt, &context)
        });
        let mut files: BTreeMap<PathBuf, u64> =
            self.files.iter().map(|path| (path.clone(), state(path))).collect();
        if let Some(Ok(prepared)) = &prepared {
            for path in self.beside(prepared) {
                let state = if path.is_dir() { stamp_of(&path) } else { state(&path) };
                files.insert(path, state);
            }
        }
        let prompt = match prepared {
            None => PromptState::Nothing,
            Some(Ok(prepared)) => PromptState::Prompt(prepared),
            Some(Err(error)) => PromptState::Error(error.to_json().to_string()),
        };
        WatchedState { prompt, files }
    }

    /// Files and folders that a render reads and a compiled prompt does not hold.
    fn beside(&self, prepared: &Prepared) -> Vec<PathBuf> {
        let library = self.book.library();
        let mut files = Vec::new();
        let traits = prepared.prompt().dialect;
        if (traits.is_tree || prepared.included_prompts().iter().any(|included| included.is_tree()))
            && let Ok(store) = Store::of_project(library.root())
        {
            files.push(store.root().to_owned());
        }
        if traits.is_item {
            let spaces = library.spaces();
            for space in spaces.all() {
                let items = spaces.walk(ItemType::Directive, space).unwrap_or_default();
                files.extend(items.iter().filter_map(|item| item.path().map(Path::to_owned)));
            }
        }
        // Code may import what lies beside it.
        let code = prepared.code_folders();
        if !code.is_empty() {
            files.extend(library.approvals_file().map(|approvals| approvals.path));
            files.extend(code);
        }
        files
    }
}

/// The state of a file as a number; 0 if it is missing.
fn state(path: &Path) -> u64 {
    let Ok(metadata) = std::fs::metadata(path) else { return 0 };
    let mut hasher = DefaultHasher::new();
    metadata.is_file().hash(&mut hasher);
    let bytes = match metadata.is_file() && metadata.len() <= MAX_READ {
        true => std::fs::read(path).ok(),
        false => None,
    };
    match bytes {
        Some(bytes) => bytes.hash(&mut hasher),
        None => {
            let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            (metadata.len(), modified).hash(&mut hasher);
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_sees_every_dependency_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("prompts/hi/template.md", "Hi {% include 'partials/more.md' %}");
        write("prompts/partials/more.md", "more");
        let book = Book::open(folder.path());
        let context = Context::default();
        let values = folder.path().join("values.json");
        let mut watch = Watch::new(&book, Some(("hi", &context)), vec![values]);
        let mut expect = |what: &str, changed: bool| {
            assert_eq!(watch.has_changed(), changed, "{what}");
            assert!(!watch.has_changed(), "{what}: only once");
        };
        expect("nothing", false);
        write("prompts/hi/template.md", "Hello {% include 'partials/more.md' %}");
        expect("its template", true);
        write("prompts/partials/more.md", "less");
        expect("what it includes", true);
        write("values.json", "{}");
        expect("values", true);
        write("values.json", "{} ");
        expect("other values", true);
        write("prompts/other/template.md", "Other");
        expect("another prompt", false);
        write("cuebook.toml", "[limits]\nfile_size = 1000000\n");
        expect("the configuration", true);
        std::fs::remove_file(folder.path().join("prompts/partials/more.md")).unwrap();
        expect("a missing include", true);
        write("prompts/partials/more.md", "again");
        expect("and there it is again", true);
    }

    #[test]
    fn code_that_takes_part_is_noticed_with_what_lies_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let manifest = r#"{"pack_id": "repo", "variable_providers": [{"file": "variables/git.py", "namespace": "git"}]}"#;
        write("user_data/packs/repo/pack.json", manifest);
        write("user_data/packs/repo/variables/git.py", "def provide(context):\n    return {}\n");
        write("user_data/packs/other/pack.json", r#"{"pack_id": "other"}"#);
        write("prompts/hi/template.md", "On {{ git.branch }}.");
        write("prompts/plain/template.md", "Hi.");
        let user = tempfile::tempdir().unwrap();
        let spaces = crate::items::Spaces::new(folder.path(), Some(user.path()));
        let book = Book::open(folder.path()).with_spaces(spaces);
        let approvals = book.library().approvals_file().unwrap().path;
        let context = Context::default();
        let mut watch = Watch::new(&book, Some(("hi", &context)), Vec::new());
        let mut plain = Watch::new(&book, Some(("plain", &context)), Vec::new());
        let mut expect = |what: &str, changed: bool| {
            assert_eq!(watch.has_changed(), changed, "{what}");
            assert!(!plain.has_changed(), "{what}: a prompt without code");
        };
        expect("nothing", false);
        write(
            "user_data/packs/repo/variables/git.py",
            "def provide(context):\n    return {\"branch\": \"main\"}\n",
        );
        expect("the provider", true);
        write("user_data/packs/repo/variables/helper.py", "x = 1\n");
        expect("what it may import", true);
        std::fs::create_dir_all(approvals.parent().unwrap()).unwrap();
        std::fs::write(approvals, "{}").unwrap();
        expect("whether it may run", true);
        write("user_data/packs/other/more.py", "x = 1\n");
        expect("code of another pack", false);
    }
}
