//! The signature of a package's publisher: a file in the package with the public key and a signature of all other files.
//!
//! The key counts for one package only. The lockfile records it when the package is added, and from then on every version must have
//! a signature of the same key. It is not added to the trust store, so it gives no item of the package any power.

use std::path::Path;

use cuebook::trust::{ContentDigest, PublicKey, SigningKey, package_signer, sign_package};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};

use crate::lock::PackageKind;

/// The key that signed a package; `None` if it is not signed.
pub(crate) fn key_of(
    folder: &Path,
    shown: &str,
    kind: PackageKind,
    name: &str,
    content: &ContentDigest,
) -> Result<Option<PublicKey>> {
    package_signer(folder, shown, kind.as_str(), name, content)
}

/// Signs the package in a folder, and gives its name.
pub fn sign(book: &Book, folder: &Path, key: &SigningKey) -> Result<String> {
    let shown = folder.to_string_lossy();
    let (kind, name) = identity(book, folder, &shown)?;
    let content = ContentDigest::of(folder, &shown, crate::lock::MAX_BYTES)?;
    sign_package(folder, &shown, kind.as_str(), &name, &content, key)?;
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
