//! Where the overrides of a prompt lie: names that are the same on every system and lead nowhere else.

use std::path::{Path, PathBuf};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::json::quoted;

/// The longest name.
const LONGEST: usize = 64;

/// The names of one override file, in their normal form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) ns: String,
    pub(super) key: String,
    pub(super) tag: String,
}

impl Names {
    /// The names, without the spaces around them. A namespace may have several parts with `/` between them.
    pub(super) fn new(ns: &str, key: &str, tag: &str) -> Result<Names> {
        let parts: Vec<&str> =
            ns.trim().split('/').map(|part| checked("namespace", part)).collect::<Result<_>>()?;
        Ok(Names {
            ns: parts.join("/"),
            key: checked("key", key)?.to_owned(),
            tag: checked("tag", tag)?.to_owned(),
        })
    }

    /// The file that these names stand for.
    pub(super) fn file(&self, root: &Path) -> PathBuf {
        let mut path = root.to_owned();
        path.extend(self.ns.split('/'));
        path.push(&self.key);
        path.push(format!("{}.json", self.tag));
        path
    }
}

fn checked<'n>(what: &str, raw: &'n str) -> Result<&'n str> {
    let name = raw.trim();
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let is_well_formed = name.len() <= LONGEST
        && name.bytes().next().is_some_and(is_plain)
        && name.bytes().all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'));
    if is_well_formed {
        return Ok(name);
    }
    let rule = "lowercase letters, digits, `.`, `_` and `-`, at most 64 characters, starting with a letter \
         or digit";
    let (message, hint) = if name.is_empty() {
        (format!("the {what} of an override cannot be empty"), format!("use {rule}"))
    } else {
        let lower = name.to_lowercase();
        let hint = if lower != name && checked(what, &lower).is_ok() {
            format!("write {}", quoted(&lower))
        } else {
            format!("use {rule}")
        };
        (format!("{} cannot be the {what} of an override", quoted(name)), hint)
    };
    Err(Error::new(ErrorKind::Overrides, Diagnostic::new(Code::BadOverride, message).hint(hint)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_trimmed_and_make_a_path() {
        let names = Names::new(" agents/code-review ", "\treview\n", "v1.0_b ").unwrap();
        assert_eq!((&*names.ns, &*names.key, &*names.tag), ("agents/code-review", "review", "v1.0_b"));
        assert_eq!(names.file(Path::new("r")), Path::new("r/agents/code-review/review/v1.0_b.json"));
    }

    #[test]
    fn a_name_that_could_lead_elsewhere_or_be_misread_is_refused() {
        let long = "a".repeat(65);
        for name in ["", " ", ".", "..", ".hidden", "-x", "a/b", "a\\b", "a b", "é", "A", "a\0", "a:b", &long]
        {
            let error = Names::new("ns", name, "latest").unwrap_err();
            assert_eq!((error.kind(), error.code()), (ErrorKind::Overrides, Code::BadOverride), "{name:?}");
            assert!(Names::new("ns", "key", name).is_err(), "{name:?}");
        }
        for ns in ["", "/", "a//b", "../a", "a/..", "/a", "a/"] {
            assert!(Names::new(ns, "key", "latest").is_err(), "{ns:?}");
        }
        assert!(Names::new(&"a".repeat(64), "9", "0._-").is_ok());
    }

    #[test]
    fn a_name_in_capitals_comes_with_the_one_that_works() {
        let error = Names::new("ns", "key", "Latest").unwrap_err();
        assert_eq!(
            error.to_string(),
            "PromptOverridesError: `Latest` cannot be the tag of an override [CB210]"
        );
        assert_eq!(error.diagnostic().hint.as_deref(), Some("write `latest`"));
        let error = Names::new("ns", "key", " ").unwrap_err();
        assert_eq!(error.diagnostic().message, "the tag of an override cannot be empty");
    }
}
