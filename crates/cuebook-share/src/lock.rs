//! `cuebook.lock`: the packages of a project, each with its source and a hash for each file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use cuebook::error::{did_you_mean, nearest};
use cuebook::library::FolderKind;
use cuebook::node::{Data, Key, Node};
use cuebook::prompt::PROMPTY_END;
use cuebook::reader::{Notation, ValueReader};
use cuebook::source::{Place, Source as Text};
use cuebook::trust::{ContentDigest, PackFile};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::source::Source;

/// The file's name.
pub const LOCK_FILE: &str = "cuebook.lock";
/// Bytes of the file: 10,000 packages with 60 files each.
pub(crate) const MAX_BYTES: u64 = 64 << 20;
/// The version of the format.
const VERSION: u64 = 1;
const HEADER: &str =
    "# Written by `cuebook add`, `pull`, `update` and `remove`. Keep this file in version control.\n";
const KEYS: [&str; 8] = ["name", "type", "version", "source", "commit", "key", "digest", "files"];
/// How messages name a package.
const PACKAGE: &str = "the package";
const RESTORE: &str = "restore the file from version control, or remove it and add the packages again";

/// What a package is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PackageKind {
    /// A folder with `pack.json`, below `user_data/packs`.
    Pack,
    /// A folder with `SKILL.md`, below `skills`.
    Skill,
    /// A folder with a `.prompty` file that was pulled from a registry, below `prompts`.
    Prompt,
}

impl PackageKind {
    /// All of them.
    const ALL: [PackageKind; 3] = [PackageKind::Pack, PackageKind::Skill, PackageKind::Prompt];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            PackageKind::Pack => "pack",
            PackageKind::Skill => "skill",
            PackageKind::Prompt => "prompt",
        }
    }

    /// The kind of a word.
    pub(crate) fn read(word: &str) -> Option<PackageKind> {
        PackageKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The kind of its folder; `None` for a pack.
    pub fn folder_kind(self) -> Option<FolderKind> {
        match self {
            PackageKind::Pack => None,
            PackageKind::Skill => Some(FolderKind::Skill),
            PackageKind::Prompt => Some(FolderKind::Prompt),
        }
    }

    /// The file with the text of a package of this kind; `None` for a pack.
    pub fn file(self, name: &str) -> Option<String> {
        match self {
            PackageKind::Pack => None,
            PackageKind::Skill => Some("SKILL.md".to_owned()),
            PackageKind::Prompt => Some(format!("{name}{PROMPTY_END}")),
        }
    }

    /// The folder of a package, from the project.
    pub fn folder(self, name: &str) -> String {
        match self {
            PackageKind::Pack => format!("user_data/packs/{name}"),
            PackageKind::Skill => format!("skills/{name}"),
            PackageKind::Prompt => format!("prompts/{name}"),
        }
    }
}

/// A package as the lockfile records it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedPackage {
    /// The id of a pack or a prompt, or the name of a skill.
    pub name: String,
    /// What it is.
    pub kind: PackageKind,
    /// The version that it gives itself, or that a prompt has in its registry.
    pub version: Option<String>,
    /// Where it comes from.
    pub source: Source,
    /// The commit of a git repository.
    pub commit: Option<String>,
    /// The fingerprint of its publisher's key.
    pub key: Option<String>,
    /// Its files.
    pub files: ContentDigest,
}

/// The lockfile.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PackageLock {
    packages: BTreeMap<(PackageKind, String), LockedPackage>,
}

impl PackageLock {
    /// Reads the file.
    pub fn read(text: &Arc<Text>) -> Result<PackageLock> {
        let values = ValueReader::new(Code::BadPackageLock, ErrorKind::Pack, Notation::Toml);
        LockReader(values.with_hint(RESTORE)).read(text)
    }

    /// The packages, packs first, in the order of their names.
    pub fn packages(&self) -> impl Iterator<Item = &LockedPackage> {
        self.packages.values()
    }

    /// The package of a name. Packages of different types can share one; `pack:NAME`, `skill:NAME` and `prompt:NAME` distinguish them.
    pub fn find(&self, name: &str) -> Result<&LockedPackage> {
        let typed = name.split_once(':').and_then(|(kind, name)| Some((PackageKind::read(kind)?, name)));
        let (kind, plain) = typed.map_or((None, name), |(kind, name)| (Some(kind), name));
        let found: Vec<&LockedPackage> = self
            .packages()
            .filter(|package| package.name == plain && kind.is_none_or(|kind| kind == package.kind))
            .collect();
        let (message, hint) = match found.as_slice() {
            [one] => return Ok(one),
            [] => {
                let names = self.packages().map(|package| package.name.as_str());
                let near = did_you_mean(&nearest(plain, names));
                let hint =
                    near.map_or_else(|| Hint::run("list the packages", "cuebook sync --dry-run"), Hint::from);
                (format!("{LOCK_FILE} has no package `{plain}`"), hint)
            }
            several => {
                let kinds = several.iter().map(|package| package.kind.as_str());
                let words: Vec<String> = kinds.clone().map(|kind| format!("{kind}:{plain}")).collect();
                let kinds: Vec<&str> = kinds.collect();
                (
                    format!("{LOCK_FILE} has a {} `{plain}`", kinds.join(" and a ")),
                    format!("write {}", words.join(" or ")).into(),
                )
            }
        };
        let diagnostic = Diagnostic::new(Code::PackageNotLocked, message).hint(hint);
        Err(Error::new(ErrorKind::Pack, diagnostic).with("package", plain))
    }

    /// The package of a kind and a name.
    pub fn get(&self, kind: PackageKind, name: &str) -> Option<&LockedPackage> {
        self.packages.get(&(kind, name.to_owned()))
    }

    /// The lockfile with one more package, or another version of it.
    pub fn with(&self, package: LockedPackage) -> PackageLock {
        let mut packages = self.packages.clone();
        packages.insert((package.kind, package.name.clone()), package);
        PackageLock { packages }
    }

    /// The lockfile without a package.
    pub fn without(&self, package: &LockedPackage) -> PackageLock {
        let mut packages = self.packages.clone();
        packages.remove(&(package.kind, package.name.clone()));
        PackageLock { packages }
    }

    /// The text of the file. The same packages give the same bytes.
    pub fn text(&self) -> String {
        let mut text = format!("{HEADER}version = {VERSION}\n");
        for package in self.packages() {
            let LockedPackage { name, kind, version, source, commit, key, files } = package;
            let _ = write!(text, "\n[[package]]\nname = {}\ntype = \"{}\"\n", quoted(name), kind.as_str());
            let fields = [
                ("version", version),
                ("source", &Some(source.to_string())),
                ("commit", commit),
                ("key", key),
            ];
            for (field, value) in fields {
                if let Some(value) = value {
                    let _ = writeln!(text, "{field} = {}", quoted(value));
                }
            }
            let _ = writeln!(text, "digest = \"{}\"\n\n[package.files]", files.digest());
            for file in files.files() {
                let _ = writeln!(text, "{} = \"{}\"", quoted(&file.path), file.sha256);
            }
        }
        text
    }
}

/// A text in quotes. A text of JSON is one of TOML, but for one character.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Reads the file. Whatever is wrong with it, its hint is to restore it.
struct LockReader(ValueReader);

impl LockReader {
    fn read(mut self, text: &Arc<Text>) -> Result<PackageLock> {
        let root = parse(text)?;
        self.0.known_keys(&root, "the lockfile", &["version", "package"]);
        match root.get("version") {
            Some(Node { data: Data::Number(number), .. }) if number.as_u64() == Some(VERSION) => {}
            Some(version) => {
                let message = format!("`version` must be {VERSION}");
                self.0.wrong(&version.place, message, "use the version of Cuebook that wrote the file");
            }
            None => self.0.wrong(&text.place(0..0), "`version` is missing", RESTORE),
        }
        let mut packages = BTreeMap::new();
        let list = root.get("package").and_then(|list| self.0.list(list, "`package`"));
        for entry in list.unwrap_or_default() {
            if let Some(package) = self.package(entry) {
                let key = (package.kind, package.name.clone());
                let message = format!("two packages are the {} `{}`", package.kind.as_str(), package.name);
                if packages.insert(key, package).is_some() {
                    self.0.wrong(&entry.place, message, "remove one of them");
                }
            }
        }
        self.0.finish().map(|_| PackageLock { packages })
    }

    fn package(&mut self, entry: &Node) -> Option<LockedPackage> {
        self.0.object(entry, "a package")?;
        self.0.known_keys(entry, "a package", &KEYS);
        let before = self.0.problems();
        let name = self.needed(entry, "name");
        let kind = self.0.needed(entry, PACKAGE, "type", RESTORE);
        let kind =
            kind.and_then(|kind| self.0.one_of(kind, "`type`", &PackageKind::ALL.map(PackageKind::as_str)));
        let source = self.needed(entry, "source");
        let digest = self.needed(entry, "digest");
        let version = self.optional(entry, "version", |_| true, "a string");
        let commit =
            self.optional(entry, "commit", |text| is_hex(text, 40) || is_hex(text, 64), "a commit hash");
        let key = self.optional(entry, "key", |text| is_hex(text, 16), "a fingerprint");
        let files = self.files(entry);
        if let Some((name, place)) = name.filter(|(name, _)| !is_name(name)) {
            self.0.wrong(place, format!("`{name}` cannot be the name of a package"), RESTORE);
        }
        let source = source.and_then(|(source, place)| match Source::read(source) {
            Ok(source) => Some(source),
            Err(error) => {
                self.0.wrong(place, error.diagnostic().message.clone(), RESTORE);
                None
            }
        });
        if let (Some((digest, place)), Some(files)) = (digest, &files)
            && self.0.problems() == before
            && *digest != files.digest()
        {
            let message = "the hashes of this package were edited by hand: `digest` does not fit `files`";
            let name = name.map_or("NAME", |(name, _)| name);
            let hint = Hint::run(
                "restore the file from version control, or add the package again",
                format!("cuebook remove {name}"),
            );
            self.0.wrong(place, message, hint);
        }
        if self.0.problems() > before {
            return None;
        }
        Some(LockedPackage {
            name: name?.0.to_owned(),
            kind: *PackageKind::ALL.get(kind?)?,
            version,
            source: source?,
            commit,
            key,
            files: files?,
        })
    }

    /// A text that a package must have, with its place.
    fn needed<'n>(&mut self, entry: &'n Node, key: &str) -> Option<(&'n str, &'n Place)> {
        let found = self.0.needed(entry, PACKAGE, key, RESTORE)?;
        self.0.text(found, &format!("`{key}`")).map(|text| (text, &found.place))
    }

    fn optional(
        &mut self,
        entry: &Node,
        key: &str,
        fits: impl Fn(&str) -> bool,
        what: &str,
    ) -> Option<String> {
        let found = entry.get(key)?;
        let text = found.text().filter(|text| fits(text));
        if text.is_none() {
            self.0.mismatch(found, &format!("`{key}`"), what, RESTORE);
        }
        text.map(str::to_owned)
    }

    fn files(&mut self, entry: &Node) -> Option<ContentDigest> {
        let list = self.0.needed(entry, PACKAGE, "files", RESTORE)?;
        let list = self.0.object(list, "`files`")?;
        let mut files = Vec::new();
        for (path, hash) in list {
            let is_inside = path.name.split('/').all(|part| !matches!(part, "" | "." | ".."));
            match hash.text() {
                Some(sha256) if is_inside && is_hex(sha256, 64) => {
                    files.push(PackFile { path: path.name.clone(), sha256: sha256.to_owned() });
                }
                _ => {
                    let message = format!(
                        "`{}` must be a path inside the package with 64 hexadecimal digits",
                        path.name
                    );
                    self.0.wrong(&path.place, message, RESTORE);
                }
            }
        }
        Some(files.into_iter().collect())
    }
}

/// The values of the file, with their places.
fn parse(text: &Arc<Text>) -> Result<Node> {
    let root = DeTable::parse(text.text()).map_err(|error| {
        let message = error.message().lines().next().unwrap_or_default().to_owned();
        let diagnostic = Diagnostic::new(Code::BadPackageLock, message).hint(RESTORE);
        let diagnostic = match error.span() {
            Some(span) => diagnostic.at(text.place(span)),
            None => diagnostic.file(text.name()),
        };
        Error::new(ErrorKind::Pack, diagnostic)
    })?;
    let place = text.place(root.span());
    Ok(Node::new(entries(root.get_ref(), text), place))
}

fn entries(table: &DeTable<'_>, text: &Arc<Text>) -> Data {
    let entry = |(key, value): (&Spanned<DeString<'_>>, &Spanned<DeValue<'_>>)| {
        let name = key.get_ref().to_string();
        (Key { name, place: text.place(key.span()) }, node(value, text))
    };
    Data::Map(table.iter().map(entry).collect())
}

fn node(value: &Spanned<DeValue<'_>>, text: &Arc<Text>) -> Node {
    let data = match value.get_ref() {
        DeValue::String(string) => Data::Text(string.to_string()),
        DeValue::Integer(number) => match number.as_str().parse::<i64>() {
            Ok(number) => Data::Number(number.into()),
            Err(_) => Data::Text(number.as_str().to_owned()),
        },
        DeValue::Float(number) => Data::Text(number.as_str().to_owned()),
        DeValue::Datetime(time) => Data::Text(time.to_string()),
        DeValue::Boolean(value) => Data::Bool(*value),
        DeValue::Array(list) => Data::List(list.iter().map(|item| node(item, text)).collect()),
        DeValue::Table(table) => entries(table, text),
    };
    Node::new(data, text.place(value.span()))
}

fn is_hex(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether a text can be the name of a package, and so of its folder.
pub(crate) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 128
        && !text.starts_with('.')
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// The text of the lockfile as it is now; `None` if there is none.
pub(crate) fn text_of(project: &std::path::Path) -> Result<Option<Arc<Text>>> {
    let path = project.join(LOCK_FILE);
    match files::look(&path).map_err(|error| files::io_error(LOCK_FILE, &error))? {
        Some(_) => files::read_text_inside(project, &path, LOCK_FILE, MAX_BYTES).map(Some),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> PackageLock {
        let file = |path: &str, digit: &str| PackFile { path: path.into(), sha256: digit.repeat(64) };
        let pack = LockedPackage {
            name: "courtesy".into(),
            kind: PackageKind::Pack,
            version: Some("1.0 \"beta\"".into()),
            source: Source::read("git+https://example.com/prompts@v1#packs/courtesy").unwrap(),
            commit: Some("a".repeat(40)),
            key: Some("0123456789abcdef".into()),
            files: [file("pack.json", "0"), file("prompts/a b/ü.md", "f")].into_iter().collect(),
        };
        let skill = LockedPackage {
            name: "review".into(),
            kind: PackageKind::Skill,
            version: None,
            source: Source::read("../review").unwrap(),
            commit: None,
            key: None,
            files: [file("SKILL.md", "1")].into_iter().collect(),
        };
        PackageLock::default().with(skill).with(pack)
    }

    fn read(text: &str) -> Result<PackageLock> {
        PackageLock::read(&Text::new(LOCK_FILE, text))
    }

    #[test]
    fn a_lock_is_read_as_it_was_written() {
        let lock = sample();
        assert_eq!(read(&lock.text()).unwrap(), lock);
        assert_eq!(read(&PackageLock::default().text()).unwrap(), PackageLock::default());
        assert_eq!(lock.find("courtesy").unwrap().kind, PackageKind::Pack);
        assert_eq!(lock.without(lock.find("courtesy").unwrap()).packages().count(), 1);
    }

    #[test]
    fn wrong_locks_are_refused_with_the_place() {
        let text = sample().text();
        let cases: [(&str, &str, &str); 13] = [
            ("version = 1\n", "version = 2\n", "`version` must be 1"),
            ("commit = ", "comit = ", "unknown key `comit` in a package"),
            ("name = \"review\"\n", "", "the package has no `name`"),
            ("\"review\"", "\"../review\"", "`../review` cannot be the name of a package"),
            (
                "type = \"skill\"",
                "type = \"plugin\"",
                "`type` must be \"pack\", \"skill\" or \"prompt\", not `plugin`",
            ),
            ("\"../review\"", "\"ftp://x/y\"", "the source `ftp://x/y` has the unknown scheme `ftp`"),
            ("\"pack.json\"", "\"../pack.json\"", "must be a path inside the package"),
            ("= \"0000", "= \"000", "must be a path inside the package with 64"),
            ("= \"0000", "= \"1000", "edited by hand"),
            ("key = \"0123", "key = \"X123", "`key` must be a fingerprint"),
            ("commit = \"aaaa", "commit = \"", "`commit` must be a commit hash"),
            ("[[package]]", "[package]]", ""),
            ("version = 1\n", "version = 1\npackages = []\n", "unknown key `packages`"),
        ];
        for (from, to, message) in cases {
            let error = read(&text.replacen(from, to, 1)).unwrap_err();
            assert_eq!(error.code(), Code::BadPackageLock, "{to}");
            assert!(error.to_string().contains(message), "{to}: {error}");
            assert!(error.diagnostic().hint.is_some(), "{to}");
        }
        let twice = text.replace("\"courtesy\"\ntype = \"pack\"", "\"review\"\ntype = \"skill\"");
        assert!(read(&twice).unwrap_err().to_string().contains("two packages are the skill `review`"));
        let error = read(&text.replace("comm", "com")).unwrap_err();
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `commit`?"));
    }

    #[test]
    fn an_unknown_name_gets_the_nearest() {
        let error = sample().find("curtesy").unwrap_err();
        assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `courtesy`?"));
    }
}
