//! Whether a section is enabled and how much of it is shown: a constant, or something that is asked at each render.

use std::sync::Arc;

use super::params::{BoundParams, Params};
use super::session::Session;

/// What a condition may know.
pub struct ConditionContext<'c> {
    /// The parameters of the section.
    pub params: Option<&'c BoundParams>,
    /// The session, if the render has one.
    pub session: Option<&'c dyn Session>,
}

type Condition<T> = dyn Fn(&ConditionContext<'_>) -> Result<T, String> + Send + Sync;

/// A constant, or something that is asked at each render. The error says why it is unknown.
#[derive(Clone)]
pub enum Selector<T> {
    /// Always this.
    Always(T),
    /// Asked at each render, at most once for a section.
    Asked(Arc<Condition<T>>),
}

impl<T: Copy> Selector<T> {
    pub(super) fn ask(&self, condition_context: &ConditionContext<'_>) -> Result<T, String> {
        match self {
            Selector::Always(value) => Ok(*value),
            Selector::Asked(condition) => condition(condition_context),
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
pub trait IntoSelector<P, T, Shape> {
    /// The same in the one shape that the renderer knows.
    fn selector(self) -> Selector<T>;
}

/// The shapes, for the compiler.
pub mod shape {
    /// `|| …`
    pub struct NoArguments;
    /// `|session: Option<&dyn Session>| …`
    pub struct SessionOnly;
    /// `|params: &P| …`
    pub struct ParamsOnly;
    /// `|params: &P, session: Option<&dyn Session>| …`
    pub struct ParamsAndSession;
}

fn params<'c, P: Params>(condition_context: &ConditionContext<'c>) -> Result<&'c P, String> {
    let bound = condition_context.params.ok_or("the section has no parameters")?;
    bound
        .rust::<P>()
        .ok_or_else(|| format!("the parameters are not of type `{}`", std::any::type_name::<P>()))
}

impl<P, T, F: Fn() -> T + Send + Sync + 'static> IntoSelector<P, T, shape::NoArguments> for F {
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |_| Ok(self())))
    }
}

impl<P, T, F: Fn(Option<&dyn Session>) -> T + Send + Sync + 'static> IntoSelector<P, T, shape::SessionOnly>
    for F
{
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |condition_context| Ok(self(condition_context.session))))
    }
}

impl<P: Params, T, F: Fn(&P) -> T + Send + Sync + 'static> IntoSelector<P, T, shape::ParamsOnly> for F {
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |condition_context| Ok(self(params(condition_context)?))))
    }
}

impl<P: Params, T, F: Fn(&P, Option<&dyn Session>) -> T + Send + Sync + 'static>
    IntoSelector<P, T, shape::ParamsAndSession> for F
{
    fn selector(self) -> Selector<T> {
        Selector::Asked(Arc::new(move |condition_context| {
            Ok(self(params(condition_context)?, condition_context.session))
        }))
    }
}
