//! Files of another author, or that are not files.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::*;
use crate::error::{Code, ErrorKind, report};
use crate::overrides::Store;

fn with_file(bytes: &[u8]) -> (tempfile::TempDir, Store, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("support/triage/latest.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, bytes).unwrap();
    let store = Store::open(folder.path());
    (folder, store, file)
}

const HEADER: &str = r#""version": 2, "ns": "support", "prompt_key": "triage", "tag": "latest""#;

#[test]
fn a_huge_file_is_refused_before_it_is_read_and_never_written() {
    let (_folder, store, file) = with_file(b"");
    fs::File::options().write(true).open(&file).unwrap().set_len(1 << 40).unwrap();
    for error in [
        store.resolve(&descriptor(), "latest").unwrap_err(),
        store.store(&descriptor(), "latest", tool("x")).unwrap_err(),
        store.seed(&descriptor(), "latest", &originals()).unwrap_err(),
    ] {
        assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::FileTooLarge));
    }
    assert_eq!(store.list().unwrap()[0].counts.as_ref().unwrap_err().code(), Code::FileTooLarge);
    let folder = tempfile::tempdir().unwrap();
    let small = Store::open(folder.path()).with_limit(1000);
    let error = small.store(&descriptor(), "latest", section("intro", &"x".repeat(1000))).unwrap_err();
    assert_eq!((error.kind(), error.code()), (ErrorKind::Limit, Code::FileTooLarge));
    assert!(small.resolve(&descriptor(), "latest").unwrap().is_empty());
}

#[test]
fn deep_json_is_refused() {
    let deep = "[".repeat(100_000);
    let (_folder, store, _) = with_file(format!("{{{HEADER}, \"sections\": {deep}").as_bytes());
    assert_eq!(store.resolve(&descriptor(), "latest").unwrap_err().code(), Code::BadOverride);
    let examples = format!(
        r#"{{{HEADER}, "tools": {{"search": {{"expected_contract_hash": "{}", "example_overrides":
            [{{"action": "append", "description": "d", "input_json": "{deep}"}}]}}}}}}"#,
        text_hash("search")
    );
    let (_folder, store, _) = with_file(examples.as_bytes());
    assert_eq!(store.resolve(&descriptor(), "latest").unwrap_err().code(), Code::BadOverride);
}

#[test]
fn a_file_that_is_not_utf8_is_refused_with_its_place() {
    let (_folder, store, file) = with_file(b"{\n  \"version\": \xff}");
    let error = store.resolve(&descriptor(), "latest").unwrap_err();
    assert_eq!(error.code(), Code::NotUtf8);
    assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 2);
    assert!(store.store(&descriptor(), "latest", tool("x")).is_err());
    assert_eq!(fs::read(file).unwrap(), b"{\n  \"version\": \xff}");
}

#[test]
fn many_entries_that_are_wrong_or_stale_take_no_long_time() {
    let started = Instant::now();
    let wrong: Vec<String> = (0..100_000).map(|index| format!("\"s{index}\": {index}")).collect();
    let (_folder, store, _) =
        with_file(format!("{{{HEADER}, \"sections\": {{{}}}}}", wrong.join(",\n")).as_bytes());
    let error = store.resolve(&descriptor(), "latest").unwrap_err();
    assert_eq!(error.diagnostics().len(), crate::json::MAX_FINDINGS);
    let hash = text_hash("?");
    let stale: Vec<String> = (0..20_000)
        .map(|index| format!("\"s{index}\": {{\"body\": \"\", \"expected_hash\": \"{hash}\"}}"))
        .collect();
    let (_folder, store, _) =
        with_file(format!("{{{HEADER}, \"sections\": {{{}}}}}", stale.join(",\n")).as_bytes());
    let resolved = store.resolve(&descriptor(), "latest").unwrap();
    assert_eq!((resolved.stale.len(), resolved.is_empty()), (20_000, true));
    assert_eq!(resolved.stale[19_999].place.as_ref().unwrap().line(), 20_000);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[test]
fn reported_names_have_no_control_characters() {
    let (_folder, store, _) =
        with_file(format!("{{{HEADER}, \"sections\": {{\"a\\u001b[31m\": 1}}}}").as_bytes());
    let error = store.resolve(&descriptor(), "latest").unwrap_err();
    assert!(!report(error.diagnostics(), false).contains('\u{1b}'));
    let stale = format!(
        "{{{HEADER}, \"sections\": {{\"a\\u001b[31m\": {{\"body\": \"\", \"expected_hash\": \"{}\"}}}}}}",
        text_hash("")
    );
    let (_folder, store, _) = with_file(stale.as_bytes());
    let resolved = store.resolve(&descriptor(), "latest").unwrap();
    let finding = resolved.stale[0].diagnostic();
    assert!(!report([&finding], false).contains('\u{1b}') && !finding.to_string().contains('\u{1b}'));
}

#[cfg(unix)]
mod links {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::overrides::Overrides;

    #[test]
    fn a_link_out_of_the_store_is_neither_read_nor_written_through() {
        let (folder, store, file) = with_file(b"");
        store.upsert(&descriptor(), &one()).unwrap();
        let outside = tempfile::tempdir().unwrap();
        let secret = outside.path().join("secret.json");
        fs::rename(&file, &secret).unwrap();
        symlink(&secret, &file).unwrap();
        for error in [
            store.resolve(&descriptor(), "latest").unwrap_err(),
            store.store(&descriptor(), "latest", tool("x")).unwrap_err(),
            store.delete("support", "triage", "latest").unwrap_err(),
            store.list().unwrap().remove(0).counts.unwrap_err(),
        ] {
            assert_eq!(error.diagnostic().message, "a link leads out of the overrides folder");
            assert_eq!(error.kind(), ErrorKind::Overrides);
        }
        // The same by a folder, for a file that does not exist yet.
        symlink(outside.path(), folder.path().join("elsewhere")).unwrap();
        let other = Descriptor { ns: "elsewhere".into(), ..descriptor() };
        assert!(store.seed(&other, "latest", &originals()).is_err());
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    #[test]
    fn links_inside_and_to_the_store_are_followed() {
        let (folder, store, file) = with_file(b"");
        store.upsert(&descriptor(), &one()).unwrap();
        fs::rename(&file, file.with_file_name("stable.json")).unwrap();
        symlink("stable.json", &file).unwrap();
        assert_eq!(store.resolve(&descriptor(), "latest").unwrap().sections.len(), 1);
        let beside = tempfile::tempdir().unwrap();
        let link = beside.path().join("overrides");
        symlink(folder.path(), &link).unwrap();
        let linked = Store::open(&link);
        linked.store(&descriptor(), "other", section("intro", "x")).unwrap();
        assert!(folder.path().join("support/triage/other.json").exists());
    }

    #[test]
    fn links_that_lead_nowhere_or_in_a_circle_are_errors() {
        let (folder, store, file) = with_file(b"");
        fs::remove_file(&file).unwrap();
        symlink("nowhere.json", &file).unwrap();
        assert!(
            store.resolve(&descriptor(), "latest").unwrap_err().to_string().contains("broken symbolic link")
        );
        fs::remove_file(&file).unwrap();
        symlink("latest.json", &file).unwrap();
        let error = store.resolve(&descriptor(), "latest").unwrap_err();
        assert!(error.to_string().contains("form a cycle"), "{error}");
        symlink("..", folder.path().join("support/up")).unwrap();
        assert_eq!(store.list().unwrap().len(), 1, "a circle of folders is not walked");
    }

    #[test]
    fn pipes_and_devices_are_refused_without_waiting() {
        let (_folder, store, file) = with_file(b"");
        fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let error = store.resolve(&descriptor(), "latest").unwrap_err();
        assert!(error.to_string().contains("found a pipe"), "{error}");
        assert!(store.list().unwrap()[0].counts.is_err());
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        assert!(store.resolve(&descriptor(), "latest").is_err());
        assert!(store.store(&descriptor(), "latest", tool("x")).is_err());
        assert!(store.delete("support", "triage", "latest").is_err());
    }

    fn one() -> Overrides {
        let (ns, key, tag) = ("support".into(), "triage".into(), "latest".into());
        Overrides { ns, key, tag, sections: vec![section("intro", "Hi.")], ..Overrides::default() }
    }
}
