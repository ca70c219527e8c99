//! The names that begin a message in a `.prompty` body: Prompty's roles, and those that a file declares.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value as Json};

use super::Role;

/// The option of the parser that declares further names, each with the role that it stands for.
pub const OPTION: &str = "roles";
/// What stands in the place of a role for a word that begins no message.
#[doc(hidden)]
pub const TEXT: &str = "text";

/// Names of roles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roles {
    declared: BTreeMap<String, Role>,
    /// Words that are text, though a colon follows them.
    texts: BTreeSet<String>,
}

impl Roles {
    /// Those of a prompt whose parser has these options.
    pub fn of(options: &Map<String, Json>) -> Roles {
        let Some(Json::Object(declared)) = options.get(OPTION) else { return Roles::default() };
        let role = |(name, role): (&String, &Json)| Some((name.to_lowercase(), known(role.as_str()?)?));
        let texts = declared.iter().filter(|(_, role)| role.as_str() == Some(TEXT));
        Roles {
            declared: declared.iter().filter_map(role).collect(),
            texts: texts.map(|(name, _)| name.to_lowercase()).collect(),
        }
    }

    /// Whether a name, in lower case, is a role or declared to be text.
    #[doc(hidden)]
    pub fn knows(&self, name: &str) -> bool {
        self.role(name).is_some() || self.texts.contains(name)
    }

    /// The role that a name stands for. The name is in lower case.
    pub fn role(&self, name: &str) -> Option<Role> {
        known(name).or_else(|| self.declared.get(name).cloned())
    }
}

/// A role of Prompty, by its name.
#[doc(hidden)]
pub fn known(name: &str) -> Option<Role> {
    Role::MARKERS.into_iter().find(|role| role.as_str() == name)
}
