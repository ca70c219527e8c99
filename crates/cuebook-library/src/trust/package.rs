//! The signature of a pack or a skill: a file in its folder with a public key and a signature of all other files.

use std::path::Path;

use super::{ContentDigest, PublicKey, SigningKey};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::sha256::hex;

/// The file with the signature.
pub const PUBLISHER_FILE: &str = "publisher.toml";
const MAX_BYTES: u64 = 64 << 10;
const REFUSE: &str = "the package was changed after it was signed: ask its publisher";

/// What is signed: the name binds the files to one package.
fn message(kind: &str, name: &str, files: &ContentDigest) -> String {
    let others: ContentDigest = files.files().filter(|file| file.path != PUBLISHER_FILE).collect();
    format!("cuebook package\n{kind}\n{name}\n{}\n", others.digest())
}

/// The key that signed the files in a folder; `None` if they are not signed. `kind` is `pack` or `skill`.
///
/// # Errors
///
/// `CB243` for a signature that cannot be read, or does not fit the files.
pub fn package_signer(
    folder: &Path,
    shown: &str,
    kind: &str,
    name: &str,
    content: &ContentDigest,
) -> Result<Option<PublicKey>> {
    if !content.files().any(|file| file.path == PUBLISHER_FILE) {
        return Ok(None);
    }
    let shown = format!("{shown}/{PUBLISHER_FILE}");
    let wrong = |message: &str| {
        let diagnostic = Diagnostic::new(Code::PublisherKey, message).file(&shown).hint(REFUSE);
        Error::new(ErrorKind::Integrity, diagnostic)
    };
    let text = files::read_text_inside(folder, &folder.join(PUBLISHER_FILE), &shown, MAX_BYTES)?;
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

/// Signs the files in a folder.
///
/// # Errors
///
/// If the signature cannot be written.
pub fn sign_package(
    folder: &Path,
    shown: &str,
    kind: &str,
    name: &str,
    content: &ContentDigest,
    key: &SigningKey,
) -> Result<()> {
    let signature = hex(&key.sign(message(kind, name, content).as_bytes()));
    let text = format!(
        "# The publisher's signature of this package, written by `cuebook pack sign`.\nkey = \"\"\"\n{}\"\"\"\nsignature = \"{signature}\"\n",
        key.public().pem()
    );
    files::write_atomic(&folder.join(PUBLISHER_FILE), &format!("{shown}/{PUBLISHER_FILE}"), text.as_bytes())
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
