//! Closures with typed arguments as filters, tests and functions.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

/// What a closure may return.
pub trait Answer {
    /// The value for the template, or the message of an error.
    fn answer(self) -> Result<Json, String>;
}

macro_rules! answers {
    ($($kind:ty),*) => {$(
        impl Answer for $kind {
            fn answer(self) -> Result<Json, String> {
                Ok(Json::from(self))
            }
        }
    )*};
}

answers!(Json, String, &'static str, bool, i32, i64, u32, u64, usize, f64, Map<String, Json>);

impl<T: Answer> Answer for Vec<T> {
    fn answer(self) -> Result<Json, String> {
        self.into_iter().map(Answer::answer).collect::<Result<Vec<Json>, String>>().map(Json::Array)
    }
}

impl<T: Answer> Answer for Option<T> {
    fn answer(self) -> Result<Json, String> {
        self.map_or(Ok(Json::Null), Answer::answer)
    }
}

impl<T: Answer, E: std::fmt::Display> Answer for Result<T, E> {
    fn answer(self) -> Result<Json, String> {
        self.map_err(|error| error.to_string())?.answer()
    }
}

/// Anything that serde can write, as what a closure returns.
#[derive(Debug, Clone, PartialEq)]
pub struct Serialized<T>(pub T);

impl<T: Serialize> Answer for Serialized<T> {
    fn answer(self) -> Result<Json, String> {
        serde_json::to_value(self.0).map_err(|error| error.to_string())
    }
}

/// A closure of up to five arguments that serde can read. An argument that may be left out is an `Option`.
pub trait Typed<Arguments>: Send + Sync + 'static {
    /// Calls the closure.
    fn call(&self, positional: &[Json], named: &Map<String, Json>) -> Result<Json, String>;
}

fn argument<T: DeserializeOwned>(given: &[Json], at: usize) -> Result<T, String> {
    match given.get(at) {
        Some(value) => T::deserialize(value).map_err(|error| format!("argument {}: {error}", at + 1)),
        None => T::deserialize(Json::Null).map_err(|_| format!("argument {} is missing", at + 1)),
    }
}

fn check(most: usize, positional: &[Json], named: &Map<String, Json>) -> Result<(), String> {
    if let Some(name) = named.keys().next() {
        return Err(format!("there is no argument `{name}`"));
    }
    if positional.len() > most {
        return Err(format!("at most {most} arguments are possible, and {} are given", positional.len()));
    }
    Ok(())
}

macro_rules! typed {
    ($count:literal $($name:ident $at:literal)*) => {
        impl<F, R, $($name),*> Typed<($($name,)*)> for F
        where
            F: Fn($($name),*) -> R + Send + Sync + 'static,
            R: Answer,
            $($name: DeserializeOwned,)*
        {
            fn call(&self, positional: &[Json], named: &Map<String, Json>) -> Result<Json, String> {
                check($count, positional, named)?;
                self($(argument::<$name>(positional, $at)?),*).answer()
            }
        }
    };
}

typed!(0);
typed!(1 A 0);
typed!(2 A 0 B 1);
typed!(3 A 0 B 1 C 2);
typed!(4 A 0 B 1 C 2 D 3);
typed!(5 A 0 B 1 C 2 D 3 E 4);
