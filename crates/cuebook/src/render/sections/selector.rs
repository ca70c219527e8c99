//! Whether a section is enabled and how much of it is shown: a constant, or something that is asked at each render.

use std::sync::Arc;

use super::params::{Bound, Params};
use super::session::Session;

/// What a condition may know.
pub struct Circumstances<'c> {
    /// The parameters of the section.
    pub params: Option<&'c Bound>,
    /// The session, if the render has one.
    pub session: Option<&'c dyn Session>,
}

type Condition<T> = dyn Fn(&Circumstances<'_>) -> Result<T, String> + Send + Sync;

/// A constant, or something that is asked at each render. The error says why it is unknown.
#[derive(Clone)]
pub enum Selector<T> {
    /// Always this.
    Always(T),
    /// Asked at each render, at most once for a section.
    Asked(Arc<Condition<T>>),
}

impl<T: Copy> Selector<T> {
    pub(super) fn ask(&self, circumstances: &Circumstances<'_>) -> Result<T, String> {
        match self {
            Selector::Always(value) => Ok(*value),
            Selector::Asked(condition) => condition(circumstances),
        }
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Selector<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Selector::Always(value) => write!(f, "{value:?}"),
            Selector::Asked(_) => f.write_str("asked"),
        }
    }
}

/// A closure in one of the four shapes that conditions have: of nothing, of the session, of the parameters, of both.
pub trait Selects<P, T, Shape> {
    /// The same in the one shape that the renderer knows.
    fn selector(self) -> Selector<T>;
}

/// The shapes, for the compiler.
pub mod shape {
    /// `|| …`
    pub struct Nothing;
    /// `|session: Option<&dyn Session>| …`
    pub struct OfSession;
    /// `|params: &P| …`
    pub struct OfParams;
    /// `|params: &P, session: Option<&dyn Session>| …`
    pub struct OfBoth;
}

fn params<'c, P: Params>(circumstances: &Circumstances<'c>) -> Result<&'c P, String> {
    let bound = circumstances.params.ok_or("the section has no parameters")?;
    bound
        .rust::<P>()
        .ok_or_else(|| format!("the parameters are not of type `{}`", std::any::type_name::<P>()))
}

impl<P, T, F: Fn() -> T + Send + Sync + 'static> Selects<P, T, shape::Nothing> for F {
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |_| Ok(self())))
    }
}

impl<P, T, F: Fn(Option<&dyn Session>) -> T + Send + Sync + 'static> Selects<P, T, shape::OfSession> for F {
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |circumstances| Ok(self(circumstances.session))))
    }
}

impl<P: Params, T, F: Fn(&P) -> T + Send + Sync + 'static> Selects<P, T, shape::OfParams> for F {
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |circumstances| Ok(self(params(circumstances)?))))
    }
}

impl<P: Params, T, F: Fn(&P, Option<&dyn Session>) -> T + Send + Sync + 'static> Selects<P, T, shape::OfBoth>
    for F
{
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |circumstances| {
            Ok(self(params(circumstances)?, circumstances.session))
        }))
    }
}
