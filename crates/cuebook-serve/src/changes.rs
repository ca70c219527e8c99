//! Notices that the library has changed.
//!
//! The places of the library are looked at now and then, and what is there (names, sizes, times) becomes two numbers: one for
//! prompts, one for knowledge. Looking works on every file system and sees files in folders that were only just made, which
//! notifications of the kernel can miss. It takes place only while there is a listener, and never takes more than a twentieth of the
//! time. Several files that are saved together are one change: it is reported once they have stopped changing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::Book;
use cuebook::items::{ItemType, Spaces};
use cuebook_lab::watch::stamp_of;
use tokio::sync::{Notify, OnceCell, watch};

/// Between two looks at a small library.
const PAUSE: Duration = Duration::from_millis(300);
/// How long the library must have been quiet before a change is reported.
const QUIET: Duration = Duration::from_millis(120);
/// A library that changes all the time is reported now and then.
const LONGEST: Duration = Duration::from_secs(2);
/// How much longer the pause is than the look.
const SHARE: u32 = 20;

/// How often prompts and knowledge have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) prompts: u64,
    pub(crate) knowledge: u64,
}

/// What the library looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct LibraryState {
    prompts: u64,
    knowledge: u64,
}

/// Who looks, and who is notified.
pub(crate) struct Changes {
    library: Arc<WatchedLibrary>,
    counts: watch::Sender<Counts>,
    listener_came: Notify,
    begun: OnceCell<()>,
}

/// What is looked at.
struct WatchedLibrary {
    book: Arc<Book>,
    spaces: Spaces,
}

impl Changes {
    pub(crate) fn new(book: Arc<Book>, spaces: Spaces) -> Arc<Changes> {
        Arc::new(Changes {
            library: Arc::new(WatchedLibrary { book, spaces }),
            counts: watch::Sender::default(),
            listener_came: Notify::new(),
            begun: OnceCell::new(),
        })
    }

    /// Takes the first look, which later ones are compared with, and goes on looking. Done once, however often it is asked for.
    pub(crate) async fn begin(self: &Arc<Self>) {
        self.begun
            .get_or_init(|| async {
                let first = self.look().await;
                let changes = self.clone();
                tokio::spawn(async move { changes.go_on(first).await });
            })
            .await;
    }

    /// Hears of changes from now on.
    pub(crate) fn listen(&self) -> Listener {
        let mut receiver = self.counts.subscribe();
        let seen = *receiver.borrow_and_update();
        self.listener_came.notify_one();
        Listener { receiver, seen }
    }

    async fn look(&self) -> (Option<LibraryState>, Duration) {
        let library = self.library.clone();
        let began = Instant::now();
        let seen = tokio::task::spawn_blocking(move || library.look()).await.ok();
        (seen, began.elapsed())
    }

    async fn go_on(&self, (mut known, mut took): (Option<LibraryState>, Duration)) {
        loop {
            tokio::time::sleep(PAUSE.max(took * SHARE)).await;
            if self.counts.receiver_count() == 0 {
                self.listener_came.notified().await;
            }
            let mut now;
            (now, took) = self.look().await;
            if now == known {
                continue;
            }
            let since = Instant::now();
            while since.elapsed() < LONGEST {
                tokio::time::sleep(QUIET.max(took * 2)).await;
                let before = now;
                (now, took) = self.look().await;
                if now == before {
                    break;
                }
            }
            if let (Some(known), Some(now)) = (known, now) {
                self.counts.send_modify(|counts| {
                    counts.prompts += u64::from(now.prompts != known.prompts);
                    counts.knowledge += u64::from(now.knowledge != known.knowledge);
                });
            }
            known = now;
        }
    }
}

/// A listener for changes.
pub(crate) struct Listener {
    receiver: watch::Receiver<Counts>,
    seen: Counts,
}

/// What has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Changed {
    pub(crate) prompts: bool,
    pub(crate) knowledge: bool,
}

impl Listener {
    /// Waits for the next change; nothing, if there will be none.
    pub(crate) async fn next(&mut self) -> Option<Changed> {
        loop {
            self.receiver.changed().await.ok()?;
            let now = *self.receiver.borrow_and_update();
            let changed = Changed {
                prompts: now.prompts != self.seen.prompts,
                knowledge: now.knowledge != self.seen.knowledge,
            };
            self.seen = now;
            if changed.prompts || changed.knowledge {
                return Some(changed);
            }
        }
    }
}

impl WatchedLibrary {
    fn look(&self) -> LibraryState {
        let root = self.book.library().root();
        let mut places: Vec<PathBuf> =
            ["cuebook.toml", "user_data/shared", "user_data/packs"].map(|place| root.join(place)).into();
        // A configuration that cannot be read names no places, and will be looked at again when it is mended.
        for place in self.book.library().roots().unwrap_or_default() {
            places.extend(place.folder().map(Path::to_owned));
        }
        places.extend(self.folders(ItemType::Directive));
        places.sort();
        places.dedup();
        // What lies in a place that is looked at anyway is not looked at twice.
        let mut outer: Vec<PathBuf> = Vec::new();
        for place in places {
            if outer.last().is_none_or(|last| !place.starts_with(last)) {
                outer.push(place);
            }
        }
        let prompts = outer.iter().map(|place| stamp_of(place)).fold(0, u64::wrapping_add);
        let knowledge =
            self.folders(ItemType::Knowledge).map(|place| stamp_of(&place)).fold(0, u64::wrapping_add);
        LibraryState { prompts, knowledge }
    }

    fn folders(&self, kind: ItemType) -> impl Iterator<Item = PathBuf> {
        self.spaces
            .all()
            .iter()
            .filter_map(move |space| space.folder().map(|folder| folder.join(kind.folder())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_changed_moved_and_removed_files_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let library = WatchedLibrary { book: Arc::new(Book::open(root)), spaces: Spaces::new(root, None) };
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        };
        let mut last = library.look();
        let mut expect = |what: &str, prompts: bool, knowledge: bool| {
            let now = library.look();
            assert_eq!(
                (now.prompts != last.prompts, now.knowledge != last.knowledge),
                (prompts, knowledge),
                "{what}"
            );
            last = now;
        };
        expect("nothing", false, false);
        write("prompts/hi/template.md", "Hi");
        expect("a prompt in a new folder", true, false);
        write("prompts/hi/template.md", "Hello");
        expect("another text", true, false);
        write(".ai/knowledge/a/b.md", "Know this.");
        expect("knowledge", false, true);
        write(".ai/directives/go.md", "Go.");
        expect("a directive, which is a prompt", true, false);
        write("notes.txt", "not of the library");
        write(".ai/agent/threads/t/log.jsonl", "{}");
        expect("other files", false, false);
        std::fs::rename(root.join(".ai/knowledge/a"), root.join(".ai/knowledge/c")).unwrap();
        expect("a folder with another name", false, true);
        std::fs::remove_dir_all(root.join("prompts")).unwrap();
        expect("no prompts", true, false);
        write("cuebook.toml", "[library]\npaths = [\"more\"]\n");
        expect("the configuration, which names a folder that is not there", true, false);
    }
}
