//! The items that are part of the program are signed, with a key whose public half is part of it as well.
//!
//! A caller that changes one of them seals them anew: `CUEBOOK_SEAL=1 cargo test -p cuebook --test seal`. That makes a key, signs
//! every file with it, puts its public half in place of the one before, and forgets the private one.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

use std::fs;
use std::path::{Path, PathBuf};

use cuebook::items::{ItemType, SpaceKind, Spaces};
use cuebook::trust::{Purpose, SigningKey, Trust, sign_for};

const KEYS: &str = "config/keys/trusted";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuebook-library/system")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

fn seal() {
    let key = SigningKey::generate().unwrap();
    let now = jiff::Timestamp::now();
    let mut all = Vec::new();
    files(&root(), &mut all);
    for path in all.iter().filter(|path| !path.starts_with(root().join(KEYS))) {
        let extension = path.extension().unwrap().to_str().unwrap();
        let purpose = Purpose::at(path.strip_prefix(root()).unwrap().to_str().unwrap()).unwrap();
        fs::write(path, sign_for(&purpose, extension, &fs::read(path).unwrap(), &key, now).unwrap()).unwrap();
    }
    let user = tempfile::tempdir().unwrap();
    let spaces = Spaces::new(Path::new("/nowhere"), Some(user.path()));
    Trust::new(&spaces).add(SpaceKind::User, key.public(), "cuebook", None, now).unwrap();
    let file = format!("{KEYS}/{}.toml", key.fingerprint());
    let _ = fs::remove_dir_all(root().join(KEYS));
    fs::create_dir_all(root().join(KEYS)).unwrap();
    fs::copy(user.path().join(".ai").join(&file), root().join(&file)).unwrap();
    let list = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cuebook-library/src/items/system.rs");
    let text = fs::read_to_string(&list).unwrap();
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.contains(KEYS)).map(str::to_owned).collect();
    let first = lines.iter().position(|line| line.trim_start().starts_with("file!(\"")).unwrap();
    lines.insert(first, format!("    file!(\"{file}\"),"));
    fs::write(list, lines.join("\n") + "\n").unwrap();
}

#[test]
fn the_items_of_the_program_are_signed_and_so_is_a_copy_of_one() {
    if std::env::var_os("CUEBOOK_SEAL").is_some() {
        seal();
        panic!("sealed; now build and test again");
    }
    let project = tempfile::tempdir().unwrap();
    let spaces = Spaces::new(project.path(), None);
    let trust = Trust::new(&spaces);
    let system = spaces.space(SpaceKind::System).unwrap();
    let mut count = 0;
    for kind in ItemType::ALL {
        for located in spaces.walk(kind, system).unwrap() {
            let item = located.clone().read(u64::MAX).unwrap();
            let why = "sealed anew after a change? CUEBOOK_SEAL=1 cargo test -p cuebook --test seal";
            let verified = trust.verify(&item).unwrap_or_else(|error| panic!("{error}\n{why}"));
            assert_eq!(verified.fingerprint.len(), 16, "{}", located.name);
            assert_eq!(verified.owner.as_deref(), Some("cuebook"));
            let copy =
                project.path().join(format!(".ai/{}/{}.{}", kind.folder(), located.id, located.extension));
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::write(copy, &item.bytes).unwrap();
            let copied = spaces.find(kind, &located.id).unwrap().unwrap().read(u64::MAX).unwrap();
            assert_eq!(copied.located.space, SpaceKind::Project);
            assert_eq!(trust.verify(&copied).unwrap().hash, verified.hash);
            count += 1;
        }
    }
    assert!(count >= 15, "{count}");
}
