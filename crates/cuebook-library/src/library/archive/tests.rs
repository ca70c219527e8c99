use std::io::Cursor;

use ::tar::EntryType;
use ::zip::write::SimpleFileOptions;
use flate2::Compression;
use flate2::write::GzEncoder;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const MANIFEST: &[u8] = b"{\"pack_id\": \"p\"}";

/// A folder with an archive in it and an empty folder beside it.
struct Fixture {
    folder: TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("into")).unwrap();
        Fixture { folder }
    }

    fn target(&self) -> PathBuf {
        self.folder.path().join("into")
    }

    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn unpack_with(&self, limits: &ArchiveLimits) -> Result<Unpacked> {
        let unpacked = unpack(&self.source(), "source", &self.target(), limits);
        let mut beside: Vec<_> =
            fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        beside.sort();
        assert_eq!(beside, ["into", "source"], "something was left outside");
        unpacked
    }

    fn unpack(&self) -> Result<Unpacked> {
        self.unpack_with(&ArchiveLimits::default())
    }

    /// All files below the folder that was unpacked into, in order.
    fn written(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut waiting = vec![self.target()];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    waiting.push(path);
                } else {
                    found.push(files::display_name(&self.target(), &path));
                }
            }
        }
        found.sort();
        found
    }
}

fn trial(bytes: &[u8]) -> Fixture {
    let trial = Fixture::new();
    fs::write(trial.source(), bytes).unwrap();
    trial
}

fn reported(error: &Error) -> String {
    format!("{error}\n{}", error.diagnostic().hint.as_deref().unwrap_or("(no hint)"))
}

fn refusal(bytes: &[u8]) -> String {
    reported(&trial(bytes).unpack().unwrap_err())
}

/// What the refusal of one entry looks like.
fn entry_refused(entry: &str, reason: &str, hint: &str) -> String {
    format!("PackError: source: the entry `{entry}` {reason} [CB204]\n{hint}")
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type TarEntry<'e> = (EntryType, &'e [u8], &'e [u8]);

/// One entry of a tar archive with a name that no builder would write.
fn tar_block((kind, name, content): TarEntry<'_>) -> Vec<u8> {
    let mut header = ::tar::Header::new_gnu();
    header.as_old_mut().name[..name.len()].copy_from_slice(name);
    header.set_entry_type(kind);
    header.set_mode(0o777);
    header.set_size(content.len() as u64);
    if kind == EntryType::Symlink || kind == EntryType::Link {
        header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
    }
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

fn tar(entries: &[TarEntry<'_>]) -> Vec<u8> {
    let mut bytes: Vec<u8> = entries.iter().flat_map(|entry| tar_block(*entry)).collect();
    bytes.resize(bytes.len() + 1024, 0);
    bytes
}

fn tar_gz(entries: &[TarEntry<'_>]) -> Vec<u8> {
    gzip(&tar(entries))
}

fn file<'e>(name: &'e str, content: &'e [u8]) -> TarEntry<'e> {
    (EntryType::Regular, name.as_bytes(), content)
}

fn pax(key: &str, value: &str) -> Vec<u8> {
    let bare = key.len() + value.len() + 3;
    let length = (bare + 1..).find(|length| bare + length.to_string().len() == *length).unwrap();
    format!("{length} {key}={value}\n").into_bytes()
}

type ZipEntry<'e> = (&'e str, &'e [u8]);

fn zip(entries: &[ZipEntry<'_>]) -> Vec<u8> {
    let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in entries {
        if name.ends_with('/') {
            writer.add_directory(*name, SimpleFileOptions::default()).unwrap();
        } else {
            writer.start_file(*name, SimpleFileOptions::default().unix_permissions(0o777)).unwrap();
            writer.write_all(content).unwrap();
        }
    }
    writer.finish().unwrap().into_inner()
}

/// Exchanges bytes for as many others: everywhere, or at the first occurrence only.
fn patched(bytes: &[u8], old: &[u8], new: &[u8], everywhere: bool) -> Vec<u8> {
    assert_eq!(old.len(), new.len());
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    let mut found = false;
    while at + old.len() <= bytes.len() && (everywhere || !found) {
        if bytes[at..].starts_with(old) {
            bytes[at..at + old.len()].copy_from_slice(new);
            found = true;
        }
        at += 1;
    }
    assert!(found);
    bytes
}

/// Sets bytes behind every header with the given signature that is followed by the given name.
fn zip_header_patched(bytes: &[u8], signature: &[u8], offset: usize, new: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() {
        if bytes[at..].starts_with(signature) {
            bytes[at + offset..at + offset + new.len()].copy_from_slice(new);
        }
    }
    bytes
}

const LOCAL: &[u8] = b"PK\x03\x04";
const CENTRAL: &[u8] = b"PK\x01\x02";

#[test]
fn a_tar_archive_is_unpacked_with_its_manifest_at_the_root() {
    let trial = trial(&tar_gz(&[
        (EntryType::Directory, b"./", b""),
        file("./pack.json", MANIFEST),
        (EntryType::Directory, b"./prompts/", b""),
        file("./prompts/a/template.md", "Grüße".as_bytes()),
    ]));
    let unpacked = trial.unpack().unwrap();
    let wanted = Unpacked {
        root: trial.target(),
        files: 2,
        bytes: 23 + MANIFEST.len() as u64 - 16,
        skipped: vec![],
        executables: vec!["pack.json".into(), "prompts/a/template.md".into()],
    };
    assert_eq!(unpacked, wanted);
    assert_eq!(trial.written(), ["pack.json", "prompts/a/template.md"]);
    assert_eq!(fs::read(trial.target().join("prompts/a/template.md")).unwrap(), "Grüße".as_bytes());
}

#[test]
fn one_top_folder_of_a_zip_becomes_the_root() {
    let trial = trial(&zip(&[
        ("p-1.0/", b""),
        ("p-1.0/pack.json", MANIFEST),
        ("p-1.0/prompts/ä/template.md", b"x"),
        ("__MACOSX/p-1.0/._pack.json", b"junk"),
    ]));
    let unpacked = trial.unpack().unwrap();
    assert_eq!(unpacked.root, trial.target().join("p-1.0"));
    assert_eq!(unpacked.skipped, ["__MACOSX"]);
    assert_eq!(trial.written(), ["p-1.0/pack.json", "p-1.0/prompts/ä/template.md"]);
}

#[test]
fn a_folder_is_copied_without_what_tools_leave_in_it() {
    let trial = Fixture::new();
    let source = trial.source();
    for folder in [".git/objects", "prompts/a/__pycache__", "variables"] {
        fs::create_dir_all(source.join(folder)).unwrap();
    }
    for path in [
        "pack.json",
        ".git/objects/x",
        "prompts/.DS_Store",
        "prompts/a/template.md",
        "prompts/a/__pycache__/x.pyc",
    ] {
        fs::write(source.join(path), MANIFEST).unwrap();
    }
    let unpacked = trial.unpack().unwrap();
    assert_eq!((unpacked.root, unpacked.files), (trial.target(), 2));
    assert_eq!(unpacked.skipped, [".git", "prompts/.DS_Store", "prompts/a/__pycache__"]);
    assert_eq!(trial.written(), ["pack.json", "prompts/a/template.md"]);
    assert!(trial.target().join("variables").is_dir());
}

#[cfg(unix)]
#[test]
fn nothing_becomes_executable() {
    use std::os::unix::fs::PermissionsExt;
    for bytes in [tar_gz(&[file("pack.json", MANIFEST)]), zip(&[("pack.json", MANIFEST)])] {
        let trial = trial(&bytes);
        trial.unpack().unwrap();
        let mode = fs::metadata(trial.target().join("pack.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o133, 0, "{mode:o}");
    }
}

#[test]
fn names_that_lead_elsewhere_are_refused_in_tar_and_zip() {
    let windows = "has `:` in its name, which Windows does not allow";
    for (name, reason, hint) in [
        ("../evil", "leads out of the pack with `..`", UNTRUSTED),
        ("a/../../evil", "leads out of the pack with `..`", UNTRUSTED),
        ("/etc/evil", "is an absolute path", UNTRUSTED),
        ("C:evil", "begins with a drive letter", UNTRUSTED),
        ("a\\..\\evil", "has a backslash in its name", RENAME),
        ("a/evil:x", windows, RENAME),
        ("a/aux.md", "has the part `aux.md`, which is the name of a device on Windows", RENAME),
        ("a//evil", "has an empty part between two slashes", RENAME),
        ("a/evil.", "has a part that ends with a dot or a space, which Windows drops", RENAME),
        (".git/../../evil", "leads out of the pack with `..`", UNTRUSTED),
    ] {
        let wanted = entry_refused(name, reason, hint);
        assert_eq!(refusal(&tar_gz(&[file("pack.json", MANIFEST), file(name, b"x")])), wanted);
        let placeholder = "z".repeat(name.len());
        let zipped = zip(&[("pack.json", MANIFEST), (&placeholder, b"x")]);
        assert_eq!(refusal(&patched(&zipped, placeholder.as_bytes(), name.as_bytes(), true)), wanted);
    }
}

#[test]
fn names_with_nul_or_without_utf8_are_refused() {
    let nul = "has a control character (U+0000) in its name";
    let zipped = zip(&[("pack.json", MANIFEST), ("azb", b"x")]);
    assert_eq!(refusal(&patched(&zipped, b"azb", b"a\0b", true)), entry_refused("a\\u{0}b", nul, RENAME));
    let long = [(EntryType::GNULongName, &b"././@LongLink"[..], &b"a\0b\0"[..]), file("a", b"x")];
    assert_eq!(refusal(&tar_gz(&long)), entry_refused("a\\u{0}b", nul, RENAME));
    let wanted = entry_refused("a\u{fffd}b", "has a name that is not UTF-8", RENAME);
    assert_eq!(refusal(&tar_gz(&[(EntryType::Regular, b"a\xffb", b"x")])), wanted);
    assert_eq!(refusal(&patched(&zipped, b"azb", b"a\xffb", true)), wanted);
}

#[test]
fn links_devices_and_pipes_are_refused_in_tar() {
    for (kind, reason) in [
        (EntryType::Symlink, "is a symbolic link"),
        (EntryType::Link, "is a hard link"),
        (EntryType::Char, "is a device"),
        (EntryType::Block, "is a device"),
        (EntryType::Fifo, "is a pipe"),
        (EntryType::new(b'7'), "has the unknown kind `7`"),
        (EntryType::new(b'V'), "has the unknown kind `V`"),
    ] {
        let bytes = tar_gz(&[file("pack.json", MANIFEST), (kind, b"evil", b"")]);
        assert_eq!(refusal(&bytes), entry_refused("evil", reason, FILES_ONLY));
    }
}

#[test]
fn a_link_that_a_later_entry_uses_is_refused() {
    let bytes = tar_gz(&[(EntryType::Symlink, b"d", b""), file("d/evil", b"x")]);
    assert_eq!(refusal(&bytes), entry_refused("d", "is a symbolic link", FILES_ONLY));
}

#[test]
fn links_devices_and_pipes_are_refused_in_zip() {
    for (mode, reason) in [
        (0o120_777u32, "is a symbolic link"),
        (0o020_666, "is a device"),
        (0o060_666, "is a device"),
        (0o010_666, "is a pipe"),
        (0o140_666, "is a socket"),
        (0o040_755, "is a folder with the name of a file"),
        (0o170_000, "has an unknown kind"),
    ] {
        let attributes = (mode << 16).to_le_bytes();
        let bytes = zip_header_patched(&zip(&[("evil", b"/etc/passwd")]), CENTRAL, 38, &attributes);
        assert_eq!(refusal(&bytes), entry_refused("evil", reason, FILES_ONLY), "{mode:o}");
        // Whatever system the entry claims to come from.
        let bytes = zip_header_patched(&bytes, CENTRAL, 5, &[0]);
        assert_eq!(refusal(&bytes), entry_refused("evil", reason, FILES_ONLY), "{mode:o}");
    }
}

#[cfg(unix)]
#[test]
fn links_and_sockets_in_a_folder_are_refused() {
    let trial = Fixture::new();
    fs::create_dir(trial.source()).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", trial.source().join("evil")).unwrap();
    let error = trial.unpack().unwrap_err();
    assert_eq!(reported(&error), entry_refused("evil", "is a symbolic link", FILES_ONLY));

    let trial = Fixture::new();
    fs::create_dir(trial.source()).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(trial.source().join("evil")).unwrap();
    let error = trial.unpack().unwrap_err();
    assert_eq!(reported(&error), entry_refused("evil", "is a device, a pipe or a socket", FILES_ONLY));
}

#[test]
fn two_entries_of_one_path_are_refused_also_in_other_letters() {
    let twice = tar_gz(&[file("a/b.md", b"1"), file("./a/b.md", b"2")]);
    assert_eq!(refusal(&twice), entry_refused("a/b.md", "appears twice", "remove one of them"));
    let folders = tar_gz(&[(EntryType::Directory, b"a/", b""), (EntryType::Directory, b"a", b"")]);
    assert_eq!(refusal(&folders), entry_refused("a", "appears twice", "remove one of them"));
    let differs = "differs from `straße/É.md` only in case";
    let bytes = tar_gz(&[file("straße/É.md", b"1"), file("straße/é.md", b"2")]);
    assert_eq!(refusal(&bytes), entry_refused("straße/é.md", differs, "remove one of them"));
    let differs = "differs from `prompts` only in case";
    let bytes = zip(&[("prompts/a.md", b"1"), ("Prompts/b.md", b"2")]);
    assert_eq!(refusal(&bytes), entry_refused("Prompts", differs, "remove one of them"));
    let bytes = patched(&zip(&[("a.md", b"1"), ("b.md", b"2")]), b"b.md", b"a.md", true);
    let wanted = "PackError: source: the archive is ambiguous: it lists an entry \
                  twice [CB204]\n";
    assert_eq!(refusal(&bytes), format!("{wanted}{UNTRUSTED}"));
}

#[test]
fn a_file_where_a_folder_is_needed_is_refused() {
    let wanted = entry_refused("a", "is both a file and a folder", "remove one of them");
    assert_eq!(refusal(&tar_gz(&[file("a", b"1"), file("a/b", b"2")])), wanted);
    assert_eq!(refusal(&tar_gz(&[file("a/b", b"2"), file("a", b"1")])), wanted);
    assert_eq!(refusal(&zip(&[("a", b"1"), ("a/", b"")])), wanted);
}

#[test]
fn gnu_long_names_and_pax_paths_are_checked() {
    let long = format!("{}/x.md", ["d".repeat(60), "e".repeat(60), "f".repeat(60)].join("/"));
    let with_nul = format!("{long}\0");
    let trial = trial(&tar_gz(&[
        file("pack.json", MANIFEST),
        (EntryType::GNULongName, b"././@LongLink", with_nul.as_bytes()),
        file("cut", b"1"),
        (EntryType::XHeader, b"PaxHeaders/x", &pax("path", "prompts/ü/template.md")),
        file("cut", b"2"),
    ]));
    trial.unpack().unwrap();
    assert_eq!(trial.written(), [long.as_str(), "pack.json", "prompts/ü/template.md"]);

    let out = entry_refused("../evil", "leads out of the pack with `..`", UNTRUSTED);
    let bytes = tar_gz(&[(EntryType::GNULongName, b"././@LongLink", b"../evil\0"), file("fine", b"1")]);
    assert_eq!(refusal(&bytes), out);
    let bytes = tar_gz(&[(EntryType::XHeader, b"x", &pax("path", "../evil")), file("fine", b"1")]);
    assert_eq!(refusal(&bytes), out);
    let longest = "x".repeat(600);
    let bytes = tar_gz(&[(EntryType::XHeader, b"x", &pax("path", &longest)), file("fine", b"1")]);
    let wanted = format!(
        "LimitError: source: the entry `{}…` has a path of 600 bytes, but the limit is 512 [CB204]\nshorten the names",
        "x".repeat(100)
    );
    assert_eq!(refusal(&bytes), wanted);
}

#[test]
fn an_entry_with_two_names_or_sizes_is_refused() {
    let path = pax("path", "b");
    let bytes = tar_gz(&[
        (EntryType::XHeader, b"x", &path),
        (EntryType::GNULongName, b"././@LongLink", b"a\0"),
        file("c", b"1"),
    ]);
    assert_eq!(refusal(&bytes), entry_refused("a", "has two names", UNTRUSTED));
    let twice = [pax("path", "a"), pax("path", "b")].concat();
    let bytes = tar_gz(&[(EntryType::XHeader, b"x", &twice), file("c", b"1")]);
    let reason = "has a duplicate field in an extended header";
    assert_eq!(refusal(&bytes), entry_refused("a", reason, UNTRUSTED));
    let bytes = tar_gz(&[(EntryType::XHeader, b"x", &pax("size", "1x")), file("c", b"1")]);
    assert_eq!(refusal(&bytes), entry_refused("c", "has two sizes", UNTRUSTED));
    let bytes = tar_gz(&[(EntryType::XHeader, b"x", b"99 path=../evil\n"), file("c", b"1")]);
    let reason = "has an invalid extended header";
    assert_eq!(refusal(&bytes), entry_refused("c", reason, UNTRUSTED));
}

#[test]
fn a_global_header_may_comment_and_not_rename() {
    let trial = trial(&tar_gz(&[
        (EntryType::XGlobalHeader, b"pax_global_header", &pax("comment", "3828b88350c9e705")),
        file("pack.json", MANIFEST),
    ]));
    trial.unpack().unwrap();
    assert_eq!(trial.written(), ["pack.json"]);
    let bytes =
        tar_gz(&[(EntryType::XGlobalHeader, b"g", &pax("path", "evil")), file("pack.json", MANIFEST)]);
    let reason = "changes the names or sizes of all other entries";
    assert_eq!(refusal(&bytes), entry_refused("g", reason, UNTRUSTED));
}

#[test]
fn sparse_files_are_refused_in_both_their_forms() {
    let bytes = tar_gz(&[(EntryType::XHeader, b"x", &pax("GNU.sparse.size", "99999999")), file("c", b"1")]);
    assert_eq!(refusal(&bytes), entry_refused("c", "is a sparse file", UNTRUSTED));
    let mut header = ::tar::Header::new_gnu();
    header.as_old_mut().name[0] = b'c';
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(0);
    let gnu = header.as_gnu_mut().unwrap();
    gnu.realsize[..11].copy_from_slice(b"77777777777");
    gnu.sparse[0].offset[..11].copy_from_slice(b"77777777777");
    gnu.sparse[0].numbytes[..11].copy_from_slice(b"00000000000");
    header.set_cksum();
    let bytes = gzip(&[header.as_bytes().as_slice(), &[0; 1024]].concat());
    assert_eq!(refusal(&bytes), entry_refused("c", "is a sparse file", FILES_ONLY));
}

#[test]
fn folders_with_content_and_files_named_as_folders_are_refused() {
    let bytes = tar_gz(&[(EntryType::Directory, b"d/", b"content")]);
    assert_eq!(refusal(&bytes), entry_refused("d/", "is a folder with its own content", UNTRUSTED));
    let bytes = tar_gz(&[file("d/", b"content")]);
    assert_eq!(refusal(&bytes), entry_refused("d/", "is a file with the name of a folder", UNTRUSTED));
}

#[test]
fn encrypted_and_strangely_compressed_zip_entries_are_refused() {
    let plain = zip(&[("pack.json", MANIFEST)]);
    let flagged = zip_header_patched(&zip_header_patched(&plain, LOCAL, 6, &[1]), CENTRAL, 8, &[1]);
    let wanted = entry_refused("pack.json", "is encrypted", "create the archive without a password");
    assert_eq!(refusal(&flagged), wanted);
    let lzma = zip_header_patched(&zip_header_patched(&plain, LOCAL, 8, &[14]), CENTRAL, 10, &[14]);
    let reason = "uses a compression that Cuebook does not support";
    let hint = "create the archive with deflate";
    assert_eq!(refusal(&lzma), entry_refused("pack.json", reason, hint));
}

#[test]
fn a_zip_whose_two_directories_disagree_is_refused() {
    let plain = zip(&[("pack.json", MANIFEST), ("good.md", b"x")]);
    let wanted = "PackError: source: the archive is ambiguous: ";
    let bytes = patched(&plain, b"good.md", b"evil.md", false);
    assert!(refusal(&bytes).starts_with(wanted), "{}", refusal(&bytes));
    let prefixed = [&zip(&[("hidden.md", b"y")])[..], &plain].concat();
    let reported = refusal(&prefixed);
    assert!(reported.starts_with(wanted), "{reported}");
}

#[test]
fn wrong_checksums_and_sizes_are_noticed() {
    let stored = {
        let mut writer = ::zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = SimpleFileOptions::default().compression_method(::zip::CompressionMethod::Stored);
        writer.start_file("pack.json", options).unwrap();
        writer.write_all(MANIFEST).unwrap();
        writer.finish().unwrap().into_inner()
    };
    let reported = refusal(&patched(&stored, b"pack_id", b"pack-id", false));
    let wanted = "PackError: source: the archive is damaged: `pack.json`: Invalid checksum [CB204]\n";
    assert_eq!(reported, format!("{wanted}{DAMAGED}"));
    let mut bytes = tar_gz(&[file("pack.json", MANIFEST)]);
    let checksum = bytes.len() - 8;
    bytes[checksum] ^= 1;
    let reported = refusal(&bytes);
    assert!(reported.starts_with("PackError: source: the archive is damaged: "), "{reported}");
}

#[test]
fn an_archive_that_is_cut_short_anywhere_is_refused() {
    let tar = tar_gz(&[file("pack.json", MANIFEST), file("prompts/a/template.md", &[b'x'; 3000])]);
    let zip = zip(&[("pack.json", MANIFEST), ("prompts/a/template.md", &[b'x'; 3000])]);
    for whole in [tar, zip] {
        for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
            let error = trial(&whole[..length]).unpack().unwrap_err();
            assert_eq!(error.code(), Code::ArchiveRefused, "{length}: {error}");
        }
    }
    let plain = tar_block(file("pack.json", &[b'x'; 3000]));
    let reported = refusal(&gzip(&plain[..1200]));
    let wanted = "PackError: source: the archive is damaged: `pack.json` is truncated [CB204]\n";
    assert_eq!(reported, format!("{wanted}{DAMAGED}"));
}

#[test]
fn other_formats_of_archives_are_named() {
    let reported = |what: &str| format!("PackError: source: {what} [CB204]\n{PACK_FORMS}");
    assert_eq!(refusal(b""), reported("is an empty file"));
    assert_eq!(refusal(b"# Hello\n"), reported("is not an archive"));
    assert_eq!(refusal(b"BZh91AY&SY"), reported("is a bzip2 archive, which Cuebook cannot unpack"));
    let tar = tar(&[file("pack.json", MANIFEST)]);
    assert_eq!(refusal(&tar), reported("is a tar archive without gzip, which Cuebook cannot unpack"));
    let error = unpack(Path::new("/nowhere"), "p.zip", &Fixture::new().target(), &ArchiveLimits::default());
    assert_eq!(error.unwrap_err().to_string(), "IoError: p.zip: the file does not exist [CB110]");
}

#[test]
fn something_behind_the_end_is_refused() {
    let mut bytes = tar(&[file("pack.json", MANIFEST)]);
    bytes.extend_from_slice(&tar_block(file("evil", b"x")));
    let wanted = "PackError: source: the archive is ambiguous: there is data \
                  after its end [CB204]\n";
    assert_eq!(refusal(&gzip(&bytes)), format!("{wanted}{UNTRUSTED}"));
}

#[test]
fn a_missing_manifest_error_names_a_misplaced_one() {
    let none = |message: &str, hint: &str| format!("PackError: source: {message} [CB201]\n{hint}");
    assert_eq!(refusal(&tar_gz(&[])), none("is empty", PACK_FORMS));
    assert_eq!(refusal(&gzip(b"")), none("is empty", PACK_FORMS));
    assert_eq!(refusal(&zip(&[])), none("is empty", PACK_FORMS));
    assert_eq!(refusal(&tar_gz(&[file(".git/x", b"")])), none("is empty", PACK_FORMS));
    assert_eq!(refusal(&zip(&[("a.md", b"x")])), none("has no pack.json", PACK_FORMS));
    let hint = "found `a/pack.json`: pack.json must be at the top, or in the only folder at the top";
    let bytes = tar_gz(&[file("README.md", b""), file("a/pack.json", MANIFEST)]);
    assert_eq!(refusal(&bytes), none("has no pack.json", hint));
    let hint = "found `Pack.json`: pack.json must be at the top, or in the only folder at the top";
    assert_eq!(refusal(&zip(&[("Pack.json", MANIFEST)])), none("has no pack.json", hint));
}

#[test]
fn every_limit_stops_the_work_and_is_reported() {
    let small = ArchiveLimits {
        total_bytes: 100_000,
        file_bytes: 50_000,
        entries: 4,
        depth: 3,
        path_bytes: 40,
        ratio: 200,
    };
    let large = vec![b'x'; 60_000];
    let half = vec![b'x'; 40_000];
    let tests: [(Vec<ZipEntry<'_>>, &str); 5] = [
        (vec![("a", &large)], "LimitError: source: the entry `a` is larger than 50000 bytes [CB204]"),
        (
            vec![("a", &half), ("b", &half), ("c", &half)],
            "LimitError: source: is larger than 100000 bytes [CB204]",
        ),
        (
            vec![("a", b""), ("b", b""), ("c", b""), ("d", b""), ("e", b"")],
            "LimitError: source: has more than 4 files and folders [CB204]",
        ),
        (
            vec![("a/b/c/d", b"")],
            "LimitError: source: the entry `a/b/c/d` is 4 folders deep, but the limit is 3 [CB204]",
        ),
        (
            vec![("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"")],
            "LimitError: source: the entry `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` has a path of 45 bytes, \
             but the limit is 40 [CB204]",
        ),
    ];
    for (entries, wanted) in tests {
        let in_tar: Vec<TarEntry<'_>> = entries.iter().map(|(name, content)| file(name, content)).collect();
        let from_tar = trial(&tar_gz(&in_tar)).unpack_with(&small).unwrap_err();
        assert_eq!(from_tar.to_string(), wanted);
        let from_zip = trial(&zip(&entries)).unpack_with(&small).unwrap_err();
        assert_eq!(from_zip.to_string(), wanted);
        let in_folder = Fixture::new();
        for (name, content) in &entries {
            let path = in_folder.source().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let from_folder = in_folder.unpack_with(&small).unwrap_err();
        assert_eq!(from_folder.to_string(), wanted);
    }
    let error = trial(&[b'x'; 100_001]).unpack_with(&small).unwrap_err();
    assert_eq!(
        error.to_string(),
        "LimitError: source: the archive has 100001 bytes, but the limit is 100000 [CB204]"
    );
}

#[test]
fn a_bomb_is_stopped_by_its_ratio_long_before_it_is_whole() {
    let zeros = vec![0; 3 << 20];
    let wanted = "LimitError: source: unpacks to more than 50 times its size [CB204]";
    for bytes in [tar_gz(&[file("bomb", &zeros)]), zip(&[("bomb", &zeros)]), tar_gz(&[file(".bomb", &zeros)])]
    {
        let limits = ArchiveLimits { ratio: 50, ..ArchiveLimits::default() };
        let trial = trial(&bytes);
        let error = trial.unpack_with(&limits).unwrap_err();
        assert_eq!(error.to_string(), wanted, "{} bytes", bytes.len());
    }
}

#[test]
fn a_header_that_never_ends_is_stopped() {
    let name = vec![b'x'; 3 << 20];
    let bytes = tar_gz(&[(EntryType::GNULongName, b"././@LongLink", &name), file("a", b"")]);
    let wanted = "LimitError: source: the headers after entry 0 are too large [CB204]";
    assert_eq!(trial(&bytes).unpack().unwrap_err().to_string(), wanted);
    for kind in [EntryType::XHeader, EntryType::XGlobalHeader] {
        let comment = pax("comment", &"x".repeat(3 << 20));
        let bytes = tar_gz(&[(kind, b"x", &comment), file("a", b"")]);
        assert_eq!(trial(&bytes).unpack().unwrap_err().to_string(), wanted);
    }
    let comment = pax("comment", "x");
    let bytes = tar_gz(&vec![(EntryType::XGlobalHeader, &b"x"[..], &comment[..]); 10_001]);
    let wanted = "LimitError: source: has more than 10000 files and folders [CB204]";
    assert_eq!(trial(&bytes).unpack().unwrap_err().to_string(), wanted);
}

#[test]
fn a_target_that_is_not_empty_or_lies_in_the_source_is_refused() {
    let trial = trial(&zip(&[("pack.json", MANIFEST)]));
    fs::write(trial.target().join("old"), "").unwrap();
    assert_eq!(
        trial.unpack().unwrap_err().to_string(),
        "IoError: source: cannot write the file: the target folder is not empty [CB114]"
    );
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("packs/new");
    fs::create_dir_all(&into).unwrap();
    let error = unpack(folder.path(), ".", &into, &ArchiveLimits::default()).unwrap_err();
    assert_eq!(error.to_string(), "PackError: .: the folder contains the target of the copy [CB204]");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_are_refused_without_a_panic(
        head in prop_oneof![Just(&b""[..]), Just(&b"\x1f\x8b\x08\0\0\0\0\0\0\0"[..]), Just(LOCAL), Just(&b"PK\x05\x06"[..])],
        bytes in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        prop_assert!(trial(&[head, &bytes].concat()).unpack().is_err());
    }

    #[test]
    fn damage_to_a_sound_archive_never_panics_or_escapes(
        zipped: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let content = [b'x'; 700];
        let mut bytes = if zipped {
            zip(&[("p/pack.json", MANIFEST), ("p/prompts/a/template.md", &content)])
        } else {
            tar(&[file("p/pack.json", MANIFEST), file("p/prompts/a/template.md", &content)])
        };
        for (index, byte) in damage {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        // `unpack` itself asserts that nothing lies outside.
        let _ = trial(&if zipped { bytes } else { gzip(&bytes) }).unpack();
    }
}
