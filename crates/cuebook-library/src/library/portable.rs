//! What a path inside a pack may look like.
//!
//! A pack is made on one system and installed on another, so a path must mean the same file on all of them, and must
//! mean a file inside the pack. Both the manifest and the archive are held to these rules. Nothing here touches the
//! file system.

use unicode_normalization::UnicodeNormalization;

use crate::error::is_hidden;

/// The longest path inside a pack, in bytes of UTF-8.
pub(crate) const MAX_PATH_BYTES: usize = 512;

/// The deepest path inside a pack, in parts.
pub(crate) const MAX_PARTS: usize = 32;

/// Takes a relative path apart, or says what is wrong with it, as the end of a sentence that begins with the path.
///
/// A leading `./` (as `tar` writes it) and a trailing `/` (a folder) are allowed; the path of the root itself has no
/// parts.
pub(crate) fn parts(path: &str) -> Result<Vec<&str>, String> {
    if let Some(control) = path.chars().find(|character| character.is_control()) {
        return Err(format!("has a control character (U+{:04X}) in its name", u32::from(control)));
    }
    if let Some(hidden) = path.chars().find(|character| is_hidden(*character)) {
        return Err(format!("has an invisible character (U+{:04X}) in its name", u32::from(hidden)));
    }
    if path.contains('\\') {
        return Err("has a backslash in its name".into());
    }
    if path.starts_with('/') {
        return Err("is an absolute path".into());
    }
    if matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return Err("begins with a drive letter".into());
    }
    let inner = path.strip_prefix("./").unwrap_or(path);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.is_empty() || inner == "." {
        return if path.is_empty() { Err("has no name".into()) } else { Ok(Vec::new()) };
    }
    let parts: Vec<&str> = inner.split('/').collect();
    for part in &parts {
        check_part(part)?;
    }
    Ok(parts)
}

/// The form in which two paths are equal if some system takes them for one file: by letter case, or by how accents are encoded.
#[doc(hidden)]
pub fn folded(path: &str) -> String {
    let composed: String = path.nfc().collect();
    // Upper case first: `ß` and `SS`, or `ſ` and `s`, are one letter only there.
    composed.to_uppercase().to_lowercase().nfc().collect()
}

/// Whether an id is the name of a file that Cuebook keeps, or looks like one.
pub(crate) fn is_reserved_id(id: &str) -> bool {
    const ENDINGS: [&str; 6] = [".json", ".toml", ".lock", ".tmp", ".py", ".md"];
    id.starts_with('.') || ENDINGS.iter().any(|ending| id.to_ascii_lowercase().ends_with(ending))
}

fn check_part(part: &str) -> Result<(), String> {
    match part {
        "" => return Err("has an empty part between two slashes".into()),
        "." => return Err("has a part `.`".into()),
        ".." => return Err("leads out of the pack with `..`".into()),
        _ => {}
    }
    if let Some(character) = part.chars().find(|character| "<>:\"|?*".contains(*character)) {
        return Err(format!("has `{character}` in its name, which Windows does not allow"));
    }
    if part.ends_with(['.', ' ']) {
        return Err("has a part that ends with a dot or a space, which Windows drops".into());
    }
    if is_reserved_on_windows(part) {
        return Err(format!("has the part `{part}`, which is the name of a device on Windows"));
    }
    Ok(())
}

/// Whether Windows takes a name for a device, whatever follows its first dot.
fn is_reserved_on_windows(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_uppercase();
    if matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$") {
        return true;
    }
    let number = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    number.is_some_and(|number| {
        let mut digits = number.chars();
        matches!(digits.next(), Some('0'..='9' | '¹' | '²' | '³')) && digits.next().is_none()
    })
}

/// Whether a part of a path keeps everything below it out of a pack.
///
/// Names with a leading dot belong to tools (`.git`, `.DS_Store`) or to Cuebook itself (locks, files being written), and
/// scans of the library do not look at them; the others are what Python and macOS leave behind.
pub(crate) fn is_left_out(part: &str) -> bool {
    part.starts_with('.') || part == "__pycache__" || part == "__MACOSX"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_some_system_takes_for_one_fold_to_one() {
        for (one, other) in
            [("caf\u{e9}", "cafe\u{301}"), ("A", "a"), ("STRASSE", "straße"), ("K", "\u{212a}")]
        {
            assert_eq!(folded(one), folded(other), "{one} {other}");
        }
        assert_ne!(folded("a"), folded("b"));
    }

    #[test]
    fn names_of_files_that_cuebook_keeps_are_reserved() {
        for id in
            ["approvals.json", "resolution.json", "Vocab.JSON", ".staging", "packs.lock", "cuebook.toml"]
        {
            assert!(is_reserved_id(id), "{id}");
        }
        assert!(!is_reserved_id("my.pack-1.2"));
    }

    #[test]
    fn plain_paths_come_apart() {
        assert_eq!(parts("pack.json").unwrap(), ["pack.json"]);
        assert_eq!(parts("./prompts/a b/ü.md").unwrap(), ["prompts", "a b", "ü.md"]);
        assert_eq!(parts("prompts/").unwrap(), ["prompts"]);
        assert_eq!(parts("console/com10/nullable.md").unwrap(), ["console", "com10", "nullable.md"]);
        for root in [".", "./"] {
            assert!(parts(root).unwrap().is_empty());
        }
    }

    #[test]
    fn unportable_paths_are_refused_with_the_reason() {
        let reserved =
            |part: &str| format!("has the part `{part}`, which is the name of a device on Windows");
        let windows =
            |character: char| format!("has `{character}` in its name, which Windows does not allow");
        let dropped = "has a part that ends with a dot or a space, which Windows drops".to_owned();
        for (path, reason) in [
            ("", "has no name".to_owned()),
            ("/etc/passwd", "is an absolute path".into()),
            ("//server/share", "is an absolute path".into()),
            ("C:/x", "begins with a drive letter".into()),
            ("c:x", "begins with a drive letter".into()),
            ("../x", "leads out of the pack with `..`".into()),
            ("a/../b", "leads out of the pack with `..`".into()),
            ("a/..", "leads out of the pack with `..`".into()),
            ("..", "leads out of the pack with `..`".into()),
            ("a\\..\\b", "has a backslash in its name".into()),
            ("a\0b", "has a control character (U+0000) in its name".into()),
            ("a\u{1b}[2J", "has a control character (U+001B) in its name".into()),
            ("a\u{9b}2J", "has a control character (U+009B) in its name".into()),
            ("a\u{202e}yp.b", "has an invisible character (U+202E) in its name".into()),
            ("a\u{200b}b", "has an invisible character (U+200B) in its name".into()),
            ("a//b", "has an empty part between two slashes".into()),
            ("a/./b", "has a part `.`".into()),
            (".//b", "has an empty part between two slashes".into()),
            ("a/b:stream", windows(':')),
            ("a?", windows('?')),
            ("a./b", dropped.clone()),
            ("a ", dropped),
            ("nul", reserved("nul")),
            ("a/Con.md", reserved("Con.md")),
            ("lpt1.tar.gz", reserved("lpt1.tar.gz")),
            ("COM²", reserved("COM²")),
        ] {
            assert_eq!(parts(path), Err(reason), "{path:?}");
        }
    }
}
