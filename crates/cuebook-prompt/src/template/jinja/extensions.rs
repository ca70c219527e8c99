//! Filters, tests, functions and values that a program adds to templates.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use cuebook_template::Environment;
use serde_json::{Map, Value as Json};

use crate::error::catch_panic;

/// What a program adds: it gets the arguments and gives a value, or says what is wrong with them.
type Function = Arc<dyn Fn(&[Json]) -> Result<Json, String> + Send + Sync>;

/// What an extension is.
#[derive(Clone)]
enum Extension {
    Filter(Function),
    Test(Function),
    Function(Function),
    Value(Json),
}

/// Filters, tests, functions and values of a program, by kind and name. Copies share them.
#[derive(Clone, Default)]
pub struct Extensions(Arc<BTreeMap<(u8, String), Extension>>);

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys().map(|(_, name)| name)).finish()
    }
}

impl PartialEq for Extensions {
    /// Functions cannot be compared: these are the same only if one is a copy of the other.
    fn eq(&self, other: &Extensions) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.0.is_empty() && other.0.is_empty()
    }
}

impl Extensions {
    #[doc(hidden)]
    pub fn filter(
        self,
        name: String,
        filter: impl Fn(&[Json]) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Extensions {
        self.with(0, name, Extension::Filter(Arc::new(filter)))
    }

    #[doc(hidden)]
    pub fn test(
        self,
        name: String,
        test: impl Fn(&[Json]) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Extensions {
        self.with(1, name, Extension::Test(Arc::new(move |given| test(given).map(Json::Bool))))
    }

    #[doc(hidden)]
    pub fn function(
        self,
        name: String,
        function: impl Fn(&[Json]) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Extensions {
        self.with(2, name, Extension::Function(Arc::new(function)))
    }

    #[doc(hidden)]
    pub fn value(self, name: String, value: Json) -> Extensions {
        self.with(2, name, Extension::Value(value))
    }

    fn with(mut self, kind: u8, name: String, extension: Extension) -> Extensions {
        Arc::make_mut(&mut self.0).insert((kind, name), extension);
        self
    }

    /// Whether templates find a value or a function of this name.
    pub fn has_global(&self, name: &str) -> bool {
        self.0.keys().any(|(kind, known)| *kind == 2 && known == name)
    }

    /// Adds all of them to an environment.
    pub(super) fn register(&self, mut environment: Environment) -> Environment {
        for ((_, name), extension) in self.0.iter() {
            environment = match extension.clone() {
                Extension::Filter(function) => environment.filter(name, called(function)),
                Extension::Test(function) => environment.test(name, called(function)),
                Extension::Function(function) => environment.function(name, called(function)),
                Extension::Value(value) => environment.global(name, value),
            };
        }
        environment
    }
}

/// A function that gets named arguments as one more argument, an object. A panic is what went wrong.
fn called(
    function: Function,
) -> impl Fn(&[Json], &Map<String, Json>) -> Result<Json, String> + Send + Sync + 'static {
    move |given, named| {
        let call = || match named.is_empty() {
            true => function(given),
            false => {
                let named = [Json::Object(named.clone())];
                function(&given.iter().cloned().chain(named).collect::<Vec<Json>>())
            }
        };
        catch_panic(call).unwrap_or_else(|panic| Err(format!("panicked: {panic}")))
    }
}
