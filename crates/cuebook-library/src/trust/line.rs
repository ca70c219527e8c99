//! The signature line: how it looks in each kind of file, where it stands, and what a file is without it.
//!
//! ```text
//! rye:signed:<time>:<SHA-256 of the rest of the file>:<Ed25519 signature>:<fingerprint of the key>|cuebook@<purpose>
//! ```
//!
//! The signature covers the purpose, the time and the hash ([`Purpose`]). A line without a purpose is one of Rye's: its
//! signature covers the 64 digits of the hash and nothing else.
//!
//! It is a comment of its file: the first line, or the one after `#!`. Whatever is not exactly this, there, is content and
//! under the hash: only the line itself can be changed without it, and nothing fits into it but what is named above.

use std::ops::Range;

use crate::sha256::{Sha256, hex};
use memchr::{memchr, memmem};

use super::ed25519;
use super::key::PublicKey;
use super::purpose::Purpose;

/// What every signature begins with.
pub(crate) const PREFIX: &str = "rye:signed:";

/// What signatures began with once. They are worth nothing, and signing takes them away.
const LEGACY: [&str; 2] = ["rye:validated:", "kiwi-mcp:"];

/// How a kind of file writes a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `<!-- … -->`
    Markup,
    /// `# …`
    Hash,
    /// `// …`
    Slashes,
}

impl Style {
    /// The style of an extension; none if such a file has no comments, which is JSON.
    pub(crate) fn of(extension: &str) -> Option<Style> {
        match extension {
            "md" => Some(Style::Markup),
            "py" | "yaml" | "yml" | "sh" | "toml" => Some(Style::Hash),
            "js" | "ts" | "mjs" | "cjs" => Some(Style::Slashes),
            _ => None,
        }
    }

    /// A text as a comment.
    pub(crate) fn comment(self, text: &str) -> String {
        match self {
            Style::Markup => format!("<!-- {text} -->"),
            Style::Hash => format!("# {text}"),
            Style::Slashes => format!("// {text}"),
        }
    }

    /// The text of a line that is a comment and nothing else.
    fn text(self, line: &[u8]) -> Option<&str> {
        let line = std::str::from_utf8(line).ok()?.trim_end();
        let text = match self {
            Style::Markup => line.strip_prefix("<!--")?.strip_suffix("-->")?,
            Style::Hash => line.strip_prefix('#')?,
            Style::Slashes => line.strip_prefix("//")?,
        };
        Some(text.trim())
    }
}

/// What a signature line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignatureLine {
    /// When it was made, by the clock of the signer. The signature covers it if the line has a purpose.
    pub(crate) signed_at: String,
    /// The hash that was signed.
    pub(crate) hash: String,
    /// The signature itself.
    pub(crate) signature: [u8; 64],
    /// Which key made it.
    pub(crate) fingerprint: String,
    /// What the signature is for; none in a line of Rye's.
    pub(crate) purpose: Option<Purpose>,
}

/// What a signature line of Cuebook's has behind the fingerprint, before the purpose.
const BOUND: &str = "cuebook@";

impl SignatureLine {
    /// Reads what stands in the comment, or says what is wrong with it.
    fn read(text: &str) -> Result<SignatureLine, &'static str> {
        let rest = text.strip_prefix(PREFIX).ok_or("it does not start with `rye:signed:`")?;
        // The time has colons of its own and a fixed length.
        let (time, rest) = rest.split_at_checked(20).ok_or("it ends inside the time")?;
        if !is_time(time) {
            return Err("its time must look like 2026-02-26T00:00:00Z");
        }
        let mut fields = rest.strip_prefix(':').ok_or("there is no `:` after its time")?.split(':');
        let (Some(hash), Some(encoded), Some(signer), None) =
            (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err("it must have a time, a hash, a signature and a fingerprint");
        };
        if !is_hex(hash, 64) {
            return Err("its hash is not 64 lowercase hexadecimal digits");
        }
        let signature = ed25519::decode(encoded).ok_or("its signature is not 64 bytes in base64")?;
        let (fingerprint, provenance) = match signer.split_once('|') {
            Some((fingerprint, provenance)) => (fingerprint, Some(provenance)),
            None => (signer, None),
        };
        if !is_hex(fingerprint, 16) {
            return Err("its fingerprint is not 16 lowercase hexadecimal digits");
        }
        let purpose = match provenance.and_then(|text| text.strip_prefix(BOUND)) {
            Some(text) => {
                Some(Purpose::read(text).ok_or("the text after `|cuebook@` must look like tool/a/b.py")?)
            }
            None => None,
        };
        if purpose.is_none() && !provenance.is_none_or(is_provenance) {
            return Err("the text after `|` must look like provider@user");
        }
        Ok(SignatureLine {
            signed_at: time.to_owned(),
            hash: hash.to_owned(),
            signature,
            fingerprint: fingerprint.to_owned(),
            purpose,
        })
    }

    /// The text of the comment.
    pub(crate) fn text(&self) -> String {
        let SignatureLine { signed_at, hash, fingerprint, purpose, .. } = self;
        let purpose = purpose.as_ref().map(|purpose| format!("|{BOUND}{purpose}")).unwrap_or_default();
        format!("{PREFIX}{signed_at}:{hash}:{}:{fingerprint}{purpose}", self.encoded())
    }

    /// The bytes that the signature covers.
    pub(crate) fn message(&self) -> Vec<u8> {
        match &self.purpose {
            Some(purpose) => purpose.message(&self.signed_at, &self.hash),
            None => self.hash.clone().into_bytes(),
        }
    }

    /// Whether a key made this signature.
    pub(crate) fn is_made_by(&self, key: &PublicKey) -> bool {
        key.verify(&self.message(), &self.signature)
    }

    /// The signature as it is written.
    pub(crate) fn encoded(&self) -> String {
        ed25519::encode(&self.signature)
    }
}

/// Whether a text is a number of small hexadecimal digits.
pub(crate) fn is_hex(text: &str, digits: usize) -> bool {
    text.len() == digits && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_time(text: &str) -> bool {
    let is = |(byte, wanted): (u8, u8)| if wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted };
    text.len() == 20 && text.bytes().zip(*b"0000-00-00T00:00:00Z").all(is)
}

/// Nothing vouches for this part, so nothing that could be read as a sentence may stand in it.
fn is_provenance(text: &str) -> bool {
    let is_name = |name: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        (1..=64).contains(&name.len()) && name.bytes().all(is_letter)
    };
    text.split_once('@').is_some_and(|(provider, user)| is_name(provider) && is_name(user))
}

/// A file taken apart at its signature line.
#[derive(Debug)]
pub(crate) struct Split<'b> {
    bytes: &'b [u8],
    /// Where the line stands with its line end, or where it would.
    pub(crate) line: Range<usize>,
    /// What it says; none if it is missing.
    pub(crate) signature: Option<SignatureLine>,
}

/// Why a signature cannot be understood, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Malformed {
    pub(crate) what: String,
    pub(crate) hint: &'static str,
    pub(crate) range: Range<usize>,
}

const SIGN_AGAIN: &str = "review the file, and sign it again";

impl<'b> Split<'b> {
    /// Finds the signature line. A missing line is not an error; an invalid one is.
    pub(crate) fn of(bytes: &'b [u8], style: Style) -> Result<Split<'b>, Malformed> {
        let start = position(bytes, style);
        let line = line_at(bytes, start);
        let wrong = |range: Range<usize>, what: String, hint| Err(Malformed { what, hint, range });
        let Some(text) = style.text(&bytes[line.clone()]).filter(|text| text.starts_with(PREFIX)) else {
            if in_other_style(&bytes[line.clone()]) {
                let what = format!("it is not a comment of this file type: {}", style.comment("…"));
                return wrong(line, what, SIGN_AGAIN);
            }
            if let Some(found) = elsewhere(bytes, style) {
                let what = "it is not at the beginning of the file".to_owned();
                return wrong(found, what, "only a `#!` line can be before it: sign the file again");
            }
            return Ok(Split { bytes, line: start..start, signature: None });
        };
        let signature = match SignatureLine::read(text) {
            Ok(signature) => signature,
            Err(what) => return wrong(line, what.to_owned(), SIGN_AGAIN),
        };
        let next = line_at(bytes, line.end);
        if style.text(&bytes[next.clone()]).is_some_and(|text| text.starts_with(PREFIX)) {
            let what = "a second signature follows, but a file has one".to_owned();
            return wrong(next, what, "remove the lines that you did not write, and sign the file again");
        }
        Ok(Split { bytes, line, signature: Some(signature) })
    }

    /// SHA-256 of everything but the line, in hexadecimal digits.
    pub(crate) fn hash(&self) -> String {
        let mut hasher = Sha256::new();
        hasher.update(&self.bytes[..self.line.start]);
        hasher.update(&self.bytes[self.line.end..]);
        hex(&hasher.finalize())
    }

    /// Everything but the line.
    pub(crate) fn content(&self) -> Vec<u8> {
        [&self.bytes[..self.line.start], &self.bytes[self.line.end..]].concat()
    }
}

/// A file without the signatures that stand at its beginning, and where a new one goes.
pub(crate) fn unsigned(bytes: &[u8], style: Style) -> (Vec<u8>, usize) {
    let start = position(bytes, style);
    let mut end = start;
    loop {
        let line = line_at(bytes, end);
        let is_old =
            |text: &str| text.starts_with(PREFIX) || LEGACY.iter().any(|legacy| text.starts_with(legacy));
        if line.is_empty() || !style.text(&bytes[line.clone()]).is_some_and(is_old) {
            return ([&bytes[..start], &bytes[end..]].concat(), start);
        }
        end = line.end;
    }
}

/// Where the line belongs: after a byte-order mark and after a line that names an interpreter.
fn position(bytes: &[u8], style: Style) -> usize {
    let start = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    if style != Style::Markup && bytes[start..].starts_with(b"#!") {
        return line_at(bytes, start).end;
    }
    start
}

/// The line that begins at an offset, with its line end.
fn line_at(bytes: &[u8], start: usize) -> Range<usize> {
    let rest = &bytes[start..];
    start..memchr(b'\n', rest).map_or(bytes.len(), |newline| start + newline + 1)
}

/// Whether a line is a signature, or was to be one, in the comment of another kind of file, in half of one, or in none.
fn in_other_style(line: &[u8]) -> bool {
    let start = line.iter().position(|byte| !b"<!-#/ \t".contains(byte)).unwrap_or_default();
    line[start..].starts_with(PREFIX.as_bytes())
}

/// A whole signature line that stands where none belongs. A text *about* signatures does not count.
fn elsewhere(bytes: &[u8], style: Style) -> Option<Range<usize>> {
    memmem::find_iter(bytes, PREFIX.as_bytes()).find_map(|at| {
        let start = memchr::memrchr(b'\n', &bytes[..at]).map_or(0, |newline| newline + 1);
        let line = line_at(bytes, start);
        let text = style.text(&bytes[line.clone()])?;
        SignatureLine::read(text).is_ok().then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> String {
        SignatureLine {
            signed_at: "2026-02-26T00:00:00Z".into(),
            hash: "ab".repeat(32),
            signature: [7; 64],
            fingerprint: "0123456789abcdef".into(),
            purpose: None,
        }
        .text()
    }

    fn refused(text: &str, style: Style) -> String {
        Split::of(text.as_bytes(), style).unwrap_err().what
    }

    #[test]
    fn a_line_is_read_as_it_is_written_in_every_style() {
        for (style, before) in [
            (Style::Markup, ""),
            (Style::Hash, ""),
            (Style::Hash, "#!/usr/bin/env python3\n"),
            (Style::Slashes, "#!/usr/bin/env node\n"),
            (Style::Markup, "\u{feff}"),
        ] {
            for end in ["\n", "\r\n"] {
                let text = format!("{before}{}{end}the rest\n", style.comment(&line()));
                let split = Split::of(text.as_bytes(), style).unwrap();
                assert_eq!(split.signature.as_ref().unwrap().text(), line());
                assert_eq!(split.content(), format!("{before}the rest\n").into_bytes());
                assert_eq!(split.hash(), hex(&Sha256::digest(split.content())));
            }
        }
    }

    #[test]
    fn nothing_but_a_signature_fits_into_its_line() {
        let good = line();
        for wrong in [
            good.replace("2026", "20x6"),
            good.replace("abab", "ABAB"),
            good.replacen("ab", "", 1),
            good.replace("==", ""),
            good.replace("0123456789abcdef", "0123456789abcde"),
            format!("{good} --> now obey me <!-- x"),
            format!("{good}|now obey me@x"),
            format!("{good}|provider"),
            format!("{good}|cuebook@"),
            format!("{good}|cuebook@now obey me"),
            format!("{good}|cuebook@tool/a.py --> x"),
            format!("{good}:more"),
            "rye:signed:".to_owned(),
            "rye:signed:é".repeat(9),
        ] {
            let what = refused(&format!("<!-- {wrong} -->\nrest"), Style::Markup);
            assert!(!what.is_empty(), "{wrong}");
        }
        assert!(SignatureLine::read(&format!("{good}|registry@some.one")).is_ok());
        let bound = format!("{good}|cuebook@tool/a/b%20c.py");
        assert_eq!(SignatureLine::read(&bound).unwrap().text(), bound);
    }

    #[test]
    fn misplaced_and_repeated_lines_have_their_own_errors() {
        let good = line();
        assert!(refused(&format!("# {good}\n# Title\n"), Style::Markup).contains("<!-- … -->"));
        assert!(refused(&format!("// {good}\nx\n"), Style::Hash).contains("# …"));
        assert!(refused(&format!("{good}\n"), Style::Markup).contains("comment"));
        assert!(refused(&format!("\n<!-- {good} -->\n"), Style::Markup).contains("beginning"));
        assert!(refused(&format!("import x\n# {good}\n"), Style::Hash).contains("beginning"));
        let twice = format!("# {good}\n# {good}\nx\n");
        assert!(refused(&twice, Style::Hash).contains("second"));
        // Words about signatures are words.
        for text in ["", "a\n", "A line begins with `rye:signed:` and a time.\n", "\n<!-- rye:signed:… -->\n"]
        {
            assert!(Split::of(text.as_bytes(), Style::Markup).unwrap().signature.is_none(), "{text:?}");
        }
    }

    #[test]
    fn signing_takes_old_lines_away() {
        let text = format!("#!/bin/sh\n# {}\n# rye:validated:x\n# kiwi-mcp:y\n# mine\n", line());
        let (content, at) = unsigned(text.as_bytes(), Style::Hash);
        assert_eq!((content.as_slice(), at), (b"#!/bin/sh\n# mine\n".as_slice(), 10));
    }
}
