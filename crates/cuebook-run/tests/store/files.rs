//! SQLite files that are not what they should be.

use std::path::Path;

use cuebook::{Code, Error};
use cuebook_run::store::{Authenticity, SqliteStore, Store as _};

use crate::support::*;

fn refused(path: &Path, word: &str) -> Error {
    let error = SqliteStore::open(path, key()).unwrap_err();
    assert_eq!(error.code(), Code::StoreFailed);
    let said = error.to_string();
    assert!(said.contains(word), "{said}");
    let diagnostic = error.diagnostic();
    assert_eq!(diagnostic.file_name(), path.to_str());
    assert!(diagnostic.hint.is_some(), "{said}");
    error
}

#[test]
fn a_folder_is_made_and_kept_out_of_repositories() {
    let folder = tempfile::tempdir().unwrap();
    SqliteStore::open(&folder.path().join("a/b/threads.db"), key()).unwrap();
    assert_eq!(std::fs::read_to_string(folder.path().join("a/b/.gitignore")).unwrap(), "*\n");
    assert!(!folder.path().join("a/.gitignore").exists());
    SqliteStore::open(&folder.path().join("threads.db"), key()).unwrap();
    assert!(!folder.path().join(".gitignore").exists(), "the folder was there before");
    open(&format!("sqlite:{}", folder.path().join("c.db").display())).unwrap();
    assert!(folder.path().join("c.db").is_file());
}

#[test]
fn a_file_that_is_none_of_ours_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.db");
    std::fs::write(&text, "Not a database at all, but long enough to be looked at by somebody. ".repeat(20))
        .unwrap();
    let before = std::fs::read(&text).unwrap();
    refused(&text, "not a database");
    assert_eq!(std::fs::read(&text).unwrap(), before);
    let other = folder.path().join("other.db");
    rusqlite::Connection::open(&other).unwrap().execute_batch("CREATE TABLE birds (name TEXT)").unwrap();
    let before = std::fs::read(&other).unwrap();
    refused(&other, "another program");
    assert_eq!(std::fs::read(&other).unwrap(), before);
    refused(folder.path(), "unable to open");
    refused(&text.join("below.db"), "cannot create its directory");
}

#[test]
fn a_file_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    SqliteStore::open(&path, key()).unwrap().begin(&new(1.0)).unwrap();
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", 99).unwrap();
    refused(&path, "version 99");
    rusqlite::Connection::open(&path).unwrap().pragma_update(None, "user_version", -1).unwrap();
    refused(&path, "version -1");
}

#[test]
fn outside_changes_are_noticed() {
    let world = Fixture::sqlite().unwrap();
    let record = world.store.begin(&new(1.0)).unwrap();
    let change = |statement: &str| {
        rusqlite::Connection::open(world.file()).unwrap().execute_batch(statement).unwrap();
    };
    change("UPDATE cuebook_events SET kind = 'dance'");
    assert_eq!(world.store.events(&record.id, 0, 9).unwrap_err().code(), Code::BrokenLog);
    change("UPDATE cuebook_events SET kind = 'nudge', payload = '{'");
    assert_eq!(world.store.events(&record.id, 0, 9).unwrap_err().code(), Code::BrokenLog);
    for statement in [
        "UPDATE cuebook_threads SET status = 'dancing'",
        "UPDATE cuebook_threads SET status = 'running', created_at = 9223372036854775807",
        "UPDATE cuebook_threads SET created_at = 'yesterday'",
        "UPDATE cuebook_threads SET created_at = 1, result = '{'",
        "UPDATE cuebook_threads SET result = x'00ff'",
        "UPDATE cuebook_threads SET result = NULL, spent = 1.5",
    ] {
        change(statement);
        let now = world.store.record(&record.id).unwrap().unwrap();
        assert!(matches!(now.authenticity, Authenticity::Damaged(_)), "{statement}: {now:?}");
        let error = append(&*world.store, &record, &with_cost(0.1)).unwrap_err();
        assert_eq!(error.code(), Code::BrokenLog, "{statement}");
    }
}

#[test]
fn tables_that_are_not_ours_are_refused() {
    for statement in [
        "CREATE TRIGGER x AFTER UPDATE ON cuebook_threads BEGIN DELETE FROM cuebook_events; END",
        "CREATE VIEW x AS SELECT * FROM cuebook_threads",
        "CREATE INDEX x ON cuebook_events (length(payload))",
        "CREATE TABLE x (y)",
        "DROP TABLE cuebook_beats",
    ] {
        let world = Fixture::sqlite().unwrap();
        world.store.begin(&new(1.0)).unwrap();
        world.change(statement);
        refused(&world.file(), "its tables are not Cuebook's");
    }
}

#[cfg(unix)]
#[test]
fn only_its_owner_can_read_a_store() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = Fixture::sqlite().unwrap();
    world.store.begin(&new(1.0)).unwrap();
    let (file, folder) = (world.file(), world.file().parent().unwrap().to_owned());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let beside = |end: &str| Path::new(&format!("{}{end}", world.place)).to_owned();
    assert_eq!(mode(&folder), 0o700);
    for path in [file.clone(), beside("-wal"), beside("-shm")] {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
    // What an earlier version made for all to read.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(&world.place).unwrap());
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_damaged_file_is_an_error_and_no_crash() {
    let world = Fixture::sqlite().unwrap();
    for _ in 0..50 {
        world.store.begin(&new(1.0)).unwrap();
    }
    let file = world.file();
    let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
    rusqlite::Connection::open(&file).unwrap().query_row(checkpoint, [], |_| Ok(())).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let end = bytes.len();
    bytes[4096..end].fill(0xa5);
    let copy = file.with_file_name("copy.db");
    std::fs::write(&copy, bytes).unwrap();
    let opened = SqliteStore::open(&copy, key());
    let error = opened.and_then(|store| store.begin(&new(1.0))).unwrap_err();
    assert_eq!(error.code(), Code::StoreFailed);
}

#[test]
fn a_log_that_was_moved_into_the_file_begins_again_at_its_start() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("threads.db");
    let store = SqliteStore::open(&path, key()).unwrap();
    let writes = || {
        for _ in 0..400 {
            store.begin(&new(1.0)).unwrap();
        }
        // Threads wait for models, and so leave room for others.
        std::thread::sleep(std::time::Duration::from_millis(200));
        std::fs::metadata(folder.path().join("threads.db-wal")).unwrap().len()
    };
    // A log that never began again would grow with every write, and never be as long as before.
    let mut length = writes();
    // So few that it is not yet so long that the writer moves it itself.
    let began_again = (0..6).any(|_| {
        let before = std::mem::replace(&mut length, writes());
        length == before
    });
    assert!(began_again, "it grew with every write, to {length} bytes");
}
