//! The signature of a package's publisher: a file in the package with the public key and a signature of all other files.
//!
//! The key counts for one package only. The lockfile records it when the package is added, and from then on every version must have
//! a signature of the same key. It is not added to the trust store, so it gives no item of the package any power.

use std::path::Path;

use cuebook::trust::{ContentDigest, PublicKey, SigningKey};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result, files};

use crate::lock::PackageKind;

/// The file with the signature.
pub(crate) const FILE: &str = "publisher.toml";
const MAX_BYTES: u64 = 64 << 10;
const REFUSE: &str = "the package was changed after it was signed: ask its publisher";

/// What is signed: the name binds the files to one package.
fn message(kind: PackageKind, name: &str, files: &ContentDigest) -> String {
    let others: ContentDigest = files.files().filter(|file| file.path != FILE).collect();
    format!("cuebook package\n{}\n{name}\n{}\n", kind.as_str(), others.digest())
}

/// The key that signed a package; `None` if it is not signed.
pub(crate) fn key_of(
    folder: &Path,
    shown: &str,
    kind: PackageKind,
    name: &str,
    content: &ContentDigest,
) -> Result<Option<PublicKey>> {
    if !content.files().any(|file| file.path == FILE) {
        return Ok(None);
    }
    let shown = format!("{shown}/{FILE}");
    let wrong = |message: &str| {
        let diagnostic = Diagnostic::new(Code::PublisherKey, message).file(&shown).hint(REFUSE);
        Error::new(ErrorKind::Integrity, diagnostic)
    };
    let text = files::read_text_inside(folder, &folder.join(FILE), &shown, MAX_BYTES)?;
    let table: toml::Table =
        text.text().parse().map_err(|_| wrong("the publisher's signature is not valid TOML"))?;
    let field = |key: &str| table.get(key).and_then(toml::Value::as_str);
    let (Some(key), Some(signature)) = (field("key"), field("signature")) else {
        return Err(wrong("the publisher's signature needs `key` and `signature`"));
    };
    let key = PublicKey::from_pem(key)?;
    let signature =
        unhex(signature).ok_or_else(|| wrong("the publisher's signature is not 128 hexadecimal digits"))?;
    match key.verify(message(kind, name, content).as_bytes(), &signature) {
        true => Ok(Some(key)),
        false => Err(wrong("the publisher's signature does not fit the package")),
    }
}

/// Signs the package in a folder, and gives its name.
pub fn sign(book: &Book, folder: &Path, key: &SigningKey) -> Result<String> {
    let shown = folder.to_string_lossy();
    let (kind, name) = identity(book, folder, &shown)?;
    let content = ContentDigest::of(folder, &shown, crate::lock::MAX_BYTES)?;
    let signature = cuebook::sha256::hex(&key.sign(message(kind, &name, &content).as_bytes()));
    let text = format!(
        "# The publisher's signature of this package, written by `cuebook pack sign`.\nkey = \"\"\"\n{}\"\"\"\nsignature = \"{signature}\"\n",
        key.public().pem()
    );
    files::write_atomic(&folder.join(FILE), &format!("{shown}/{FILE}"), text.as_bytes())?;
    Ok(name)
}

/// What a folder holds, and its name.
fn identity(book: &Book, folder: &Path, shown: &str) -> Result<(PackageKind, String)> {
    if folder.join("pack.json").is_file() {
        let (manifest, _) = book.library().inspect_pack_at(folder)?;
        return Ok((PackageKind::Pack, manifest.pack_id));
    }
    let skill = folder.join("SKILL.md");
    if skill.is_file() {
        let prepared = book.prepare_path(&skill, &cuebook::Context::default())?;
        return Ok((PackageKind::Skill, prepared.prompt().metadata.name.clone()));
    }
    let diagnostic = Diagnostic::new(Code::BadPackageSource, "the folder has neither pack.json nor SKILL.md");
    Err(Error::new(ErrorKind::Pack, diagnostic.file(shown).hint("name the folder of a pack or a skill")))
}

fn unhex(text: &str) -> Option<[u8; 64]> {
    let mut bytes = [0; 64];
    if text.len() != 128 || !text.is_ascii() {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}
