//! The arguments of a call from TypeScript: one object, whose names and types the compiler has checked there.

use cuebook::{Context, Result, Variables};
use serde_json::{Map, Value as Json};

use crate::context;

/// The arguments of a call by name.
pub struct Arguments(Map<String, Json>);

impl Arguments {
    /// Reads the text of an object.
    pub fn read(text: &str) -> Arguments {
        // The TypeScript half writes the text, so that only an error of ours makes it invalid; then required arguments are missing.
        Arguments(serde_json::from_str(text).unwrap_or_default())
    }

    /// An argument that is a text, or the empty one.
    pub fn text(&self, name: &str) -> &str {
        self.0.get(name).and_then(Json::as_str).unwrap_or_default()
    }

    /// An argument that need not be there.
    pub fn optional(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    pub fn is_set(&self, name: &str) -> bool {
        self.0.get(name).and_then(Json::as_bool).unwrap_or_default()
    }

    pub fn count(&self, name: &str) -> Option<usize> {
        usize::try_from(self.0.get(name)?.as_u64()?).ok()
    }

    pub fn object(&self, name: &str) -> Map<String, Json> {
        self.0.get(name).and_then(Json::as_object).cloned().unwrap_or_default()
    }

    pub fn list(&self, name: &str) -> &[Json] {
        self.0.get(name).and_then(Json::as_array).map_or(&[], Vec::as_slice)
    }

    pub fn texts(&self, name: &str) -> Vec<String> {
        self.list(name).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }

    /// Any argument.
    pub fn value(&self, name: &str) -> &Json {
        self.0.get(name).unwrap_or(&Json::Null)
    }

    /// The variables of a render.
    pub fn variables(&self) -> Variables {
        Variables::from(self.object("variables"))
    }

    /// What the caller says about a render besides its variables.
    pub fn context(&self) -> Result<Context> {
        context::read(&self.object("context"))
    }
}
