//! What hooks get and return: values by name, and what was done to them.

use serde_json::{Map, Value as Json};

/// Values by name, as they go to a hook and come back.
pub type Values = Map<String, Json>;

/// What `pre_render` did to the variables.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// Variables that are new, or have been returned with a value; that may be the one that they had.
    pub set: Values,
    /// Variables that were not returned.
    pub removed: Vec<String>,
}

impl Changes {
    /// What was done to the variables between two states.
    pub fn between(before: &Values, mut after: Values) -> Changes {
        let removed = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
        after.retain(|name, value| before.get(name) != Some(value));
        Changes { set: after, removed }
    }
}
