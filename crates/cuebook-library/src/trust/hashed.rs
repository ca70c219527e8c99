//! What Rye hashes of a file, where that is less than the file.
//!
//! Ours covers every byte but the signature line. Rye's leaves out the prose and the steps of a directive, the `#!` line of
//! a tool, and the front matter of knowledge; an author who changes those keeps the signature. It is recognised here so that it
//! can be named, and accepted only by those who ask for it.

use crate::sha256::{Sha256, hex};

use crate::items::ItemType;

/// The hash that Rye would give to a file without its signature line; none if it is the one of the whole.
pub(crate) fn narrow(kind: ItemType, content: &[u8]) -> Option<String> {
    // Rye reads text, so line ends are `\n` to it.
    let text = String::from_utf8_lossy(content).replace("\r\n", "\n");
    let part = match kind {
        ItemType::Directive => {
            let start = text.find("<directive")?;
            let end = text.rfind("</directive>")? + "</directive>".len();
            text.get(start..end)?
        }
        ItemType::Tool => {
            text.starts_with("#!/").then(|| text.split_once('\n').map_or("", |(_, rest)| rest))?
        }
        ItemType::Knowledge => text.strip_prefix("---")?.split_once("---")?.1.trim(),
    };
    Some(hex(&Sha256::digest(part.as_bytes())))
}

/// The hash of a file whose line ends are `\n`, for those that a tool has changed to `\r\n`.
pub(crate) fn with_plain_line_ends(content: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(content).ok().filter(|text| text.contains("\r\n"))?;
    Some(hex(&Sha256::digest(text.replace("\r\n", "\n"))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sha(text: &str) -> Option<String> {
        Some(hex(&Sha256::digest(text)))
    }

    #[test]
    fn the_narrow_hash_leaves_out_what_rye_leaves_out() {
        let directive =
            b"# Title\r\n```xml\r\n<directive name=\"a\">\r\n</directive>\r\n```\nbody </directive> end";
        let hash = narrow(ItemType::Directive, directive);
        assert_eq!(hash, sha("<directive name=\"a\">\n</directive>\n```\nbody </directive>"));
        assert_eq!(narrow(ItemType::Directive, b"no tag"), None);
        assert_eq!(narrow(ItemType::Tool, b"#!/bin/sh\nx\n"), sha("x\n"));
        assert_eq!(narrow(ItemType::Tool, b"x\n"), None);
        assert_eq!(narrow(ItemType::Knowledge, b"---\na: b\n---\n\nbody\n"), sha("body"));
        assert_eq!(narrow(ItemType::Knowledge, b"# x\n"), None);
    }
}
