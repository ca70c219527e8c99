//! The names that begin a message in a `.prompty` body: Prompty's roles, and those that a file declares.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::Role;

/// The option of the parser that declares further names, each with the role that it stands for.
pub(crate) const OPTION: &str = "roles";

/// Names of roles.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roles {
    declared: BTreeMap<String, Role>,
}

impl Roles {
    /// Those of a prompt whose parser has these options.
    pub(crate) fn of(options: &Map<String, Json>) -> Roles {
        let Some(Json::Object(declared)) = options.get(OPTION) else { return Roles::default() };
        let role = |(name, role): (&String, &Json)| Some((name.to_lowercase(), known(role.as_str()?)?));
        Roles { declared: declared.iter().filter_map(role).collect() }
    }

    /// The role that a name stands for. The name is in lower case.
    pub(crate) fn role(&self, name: &str) -> Option<Role> {
        known(name).or_else(|| self.declared.get(name).cloned())
    }
}

/// A role of Prompty, by its name.
pub(crate) fn known(name: &str) -> Option<Role> {
    Role::MARKERS.into_iter().find(|role| role.as_str() == name)
}
