//! Signing: a file gets its line.

use jiff::Timestamp;

use super::key::SigningKey;
use super::line::{SignatureLine, Split, Style, unsigned};
use super::purpose::Purpose;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::sha256::{Sha256, hex};

/// The file with a signature line for everything else in it and for one purpose; one that is there is replaced. The
/// extension says how the file writes comments, and JSON has none.
pub fn sign_for(
    purpose: &Purpose,
    extension: &str,
    bytes: &[u8],
    key: &SigningKey,
    at: Timestamp,
) -> Result<Vec<u8>> {
    signed(Some(purpose), extension, bytes, key, at)
}

/// The file with a signature line as Rye writes it, which covers the content and nothing else. An item with such a line
/// must declare its place: [`sign_for`] makes signatures that bind it.
pub fn sign_as_rye(extension: &str, bytes: &[u8], key: &SigningKey, at: Timestamp) -> Result<Vec<u8>> {
    signed(None, extension, bytes, key, at)
}

fn signed(
    purpose: Option<&Purpose>,
    extension: &str,
    bytes: &[u8],
    key: &SigningKey,
    at: Timestamp,
) -> Result<Vec<u8>> {
    let (content, position) = unsigned(bytes, style(extension)?);
    // A `#!` line without a line end is the whole file so far.
    let before = &content[..position];
    let needs_end = !before.is_empty() && before != b"\xef\xbb\xbf" && !before.ends_with(b"\n");
    if needs_end {
        let whole = [before, b"\n".as_slice()].concat();
        return signed(purpose, extension, &whole, key, at);
    }
    let end: &[u8] = match content.iter().position(|byte| *byte == b'\n') {
        Some(newline) if newline > 0 && content[newline - 1] == b'\r' => b"\r\n",
        _ => b"\n",
    };
    let comment = style(extension)?.comment(&signature(purpose, &content, key, at).text());
    Ok([before, comment.as_bytes(), end, &content[position..]].concat())
}

/// What the signature line of a file says, for answers; null if it is missing.
#[doc(hidden)]
pub fn signature_of(extension: &str, bytes: &[u8]) -> serde_json::Value {
    let split = Style::of(extension).and_then(|style| Split::of(bytes, style).ok());
    match split.and_then(|split| split.signature) {
        Some(line) => serde_json::json!({
            "timestamp": line.signed_at,
            "hash": line.hash,
            "ed25519_sig": line.encoded(),
            "pubkey_fp": line.fingerprint,
        }),
        None => serde_json::Value::Null,
    }
}

/// The style of an extension, or the error that says what to do instead.
pub(crate) fn style(extension: &str) -> Result<Style> {
    Style::of(extension).ok_or_else(|| {
        let message = format!("a .{extension} file has no comments, so it cannot hold a signature");
        let hint = match extension {
            "json" => "rename the file to .yaml: JSON is also YAML",
            _ => "use .md, .yaml, .py, .js, .ts, .sh or .toml",
        };
        Error::new(ErrorKind::Integrity, Diagnostic::new(Code::BadSignature, message).hint(hint))
    })
}

fn signature(purpose: Option<&Purpose>, content: &[u8], key: &SigningKey, at: Timestamp) -> SignatureLine {
    let mut line = SignatureLine {
        signed_at: at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        hash: hex(&Sha256::digest(content)),
        signature: [0; 64],
        fingerprint: key.fingerprint().to_owned(),
        purpose: purpose.cloned(),
    };
    line.signature = key.sign(&line.message());
    line
}

/// The bytes of an item without its signature line.
pub fn without_signature(extension: &str, bytes: &[u8]) -> Vec<u8> {
    Style::of(extension).map_or_else(|| bytes.to_vec(), |style| unsigned(bytes, style).0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signing_twice_gives_the_same_bytes() {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        for (extension, text, begins) in [
            ("md", "# Title\n", "<!-- rye:signed:1970-01-01T00:00:00Z:"),
            ("md", "\u{feff}# Title\r\n", "\u{feff}<!-- rye:signed:"),
            ("py", "#!/usr/bin/env python3\nx = 1\n", "#!/usr/bin/env python3\n# rye:signed:"),
            ("sh", "#!/bin/sh", "#!/bin/sh\n# rye:signed:"),
            ("js", "#!/usr/bin/env node\nx\n", "#!/usr/bin/env node\n// rye:signed:"),
            ("ts", "", "// rye:signed:"),
            ("toml", "a = 1", "# rye:signed:"),
        ] {
            let signed = sign_as_rye(extension, text.as_bytes(), &key, Timestamp::UNIX_EPOCH).unwrap();
            assert!(
                String::from_utf8_lossy(&signed).starts_with(begins),
                "{}",
                String::from_utf8_lossy(&signed)
            );
            let again = sign_as_rye(extension, &signed, &key, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(signed, again);
            let purpose = Purpose::config("x");
            let bound = sign_for(&purpose, extension, &signed, &key, Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!(sign_as_rye(extension, &bound, &key, Timestamp::UNIX_EPOCH).unwrap(), signed);
            let split = Split::of(&signed, Style::of(extension).unwrap()).unwrap();
            let line = split.signature.as_ref().unwrap();
            assert_eq!(line.hash, split.hash());
            assert!(line.is_made_by(key.public()));
            assert_eq!(signed.ends_with(b"\r\n"), text.ends_with("\r\n"));
        }
    }

    #[test]
    fn json_cannot_be_signed_and_the_error_names_a_fix() {
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        let error = sign_as_rye("json", b"{}", &key, Timestamp::UNIX_EPOCH).unwrap_err();
        assert_eq!(error.code(), Code::BadSignature);
        assert!(error.diagnostic().hint.as_deref().unwrap().contains(".yaml"));
    }
}
