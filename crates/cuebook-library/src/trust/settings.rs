//! What a user has decided about trust: `config/trust.toml` in their own space.
//!
//! It is read there and nowhere else, because anyone who can write into a project could loosen its rules.

use std::path::Path;
use std::sync::Arc;

use serde::Deserialize;

use crate::error::{Code, ErrorKind, Result};
use crate::files;
use crate::notation::toml_error::toml_error;
use crate::source::Source;

/// The file below the user's `.ai`.
pub(crate) const FILE: &str = "config/trust.toml";

/// What a user has decided about trust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TrustSettings {
    /// Whether signatures count that cover only a part of their file, as Rye makes them for directives.
    pub narrow_signatures: NarrowSignatures,
    /// Which keys of a project's own trust store count.
    pub project_keys: ProjectKeys,
}

/// Whether signatures count that cover only a part of their file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NarrowSignatures {
    /// They do not.
    #[default]
    Refuse,
    /// They do.
    Allow,
}

/// Which keys of a project's own trust store count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProjectKeys {
    /// Those that a key which the user trusts has signed.
    #[default]
    Signed,
    /// All of them: anyone who can write into the project is believed.
    Any,
}

impl TrustSettings {
    /// Reads the settings of a user's `.ai`; what is not there has its default.
    pub(crate) fn read(folder: Option<&Path>) -> Result<TrustSettings> {
        let Some(folder) = folder else { return Ok(TrustSettings::default()) };
        let (path, name) = (folder.join(FILE), format!("{}/{FILE}", crate::items::user_name(folder)));
        match files::look(&path).map_err(|error| files::io_error(&name, &error))? {
            None => Ok(TrustSettings::default()),
            Some(_) => parse(&files::read_text(&path, &name, crate::limits::KEY_BYTES)?),
        }
    }
}

fn parse(source: &Arc<Source>) -> Result<TrustSettings> {
    toml::from_str(source.text()).map_err(|error| {
        let hint =
            "write narrow_signatures = \"refuse\" or \"allow\", and project_keys = \"signed\" or \"any\"";
        toml_error(source, Code::BadTrust, ErrorKind::Integrity, &error).map(|found| found.hint(hint))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_strict_and_have_strict_defaults() {
        let read = |text: &str| parse(&Source::new("trust.toml", text));
        assert_eq!(read("").unwrap(), TrustSettings::default());
        let all = read("narrow_signatures = 'allow'\nproject_keys = 'any'\n").unwrap();
        assert_eq!((all.narrow_signatures, all.project_keys), (NarrowSignatures::Allow, ProjectKeys::Any));
        for wrong in ["narrow_signatures = true", "project_keys = 'all'", "project_key = 'any'", "x"] {
            assert_eq!(read(wrong).unwrap_err().code(), Code::BadTrust, "{wrong}");
        }
        for (wrong, message) in [
            ("narrow_signatures = 'yes'", "`narrow_signatures` must be \"refuse\" or \"allow\", not \"yes\""),
            ("project_keys='all'", "`project_keys` must be \"signed\" or \"any\", not \"all\""),
        ] {
            assert_eq!(read(wrong).unwrap_err().diagnostic().message, message);
        }
    }
}
