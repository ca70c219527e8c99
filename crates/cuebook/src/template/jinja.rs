//! Jinja2 templates, run by `minijinja`.
//!
//! [`Template::compile`] reads a template and everything that it names, [`Template::render`] runs it. What the engine
//! itself lacks for attribution is added around it: [`instrument`] marks the places that emit values, [`writer`] tells
//! literals from values, [`names`] knows what a template mentions, [`compat`] makes it behave like Jinja2. A template can
//! reach nothing but its scope and what its [`Loader`] gives it.

pub mod bits;
mod circles;
pub mod compat;
mod computed;
#[cfg(test)]
mod differential;
pub(super) mod errors;
mod extensions;
pub(crate) mod fence;
mod flow;
pub(in crate::template) mod guests;
mod instrument;
pub mod names;
pub(super) mod paths;
mod plain;
mod portable;
#[cfg(test)]
mod portable_cases;
mod program;
mod settings;
mod style;
#[cfg(test)]
mod work;
mod writer;

pub use extensions::Extensions;
pub(crate) use guests::GUEST_SHARE;
pub use program::Program;
pub(super) use program::missing_template;
pub use settings::Settings;
pub use style::Style;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use minijinja::Value;
use minijinja::syntax::SyntaxConfig;

use self::names::Names;
use self::plain::Values;
use super::annex::Annex;
pub use super::engine::{Loader, Output};
use super::meter;
use super::sink::Sink;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;
use crate::variables::Scope;

/// A compiled template with everything that it includes and extends.
pub struct Template {
    main: Arc<Source>,
    loader: Arc<dyn Loader>,
    settings: Settings,
    syntax: SyntaxConfig,
    program: Arc<Program>,
    /// The program with templates whose names a render computed. Nearly no prompt has one, so that looking for it must cost
    /// no more than a load.
    larger: RwLock<Option<Arc<Program>>>,
    is_larger: AtomicBool,
    expected: (AtomicUsize, AtomicUsize),
}

/// A template may name further templates while it runs. Each is compiled once, with what it names itself; this many at most.
pub(super) const MOST_COMPUTED: usize = 64;

impl Template {
    /// Reads a template and all that it names. Syntax errors and missing templates are found here.
    pub fn compile(main: Arc<Source>, loader: Arc<dyn Loader>, settings: &Settings) -> Result<Template> {
        let syntax = settings.syntax()?;
        let program = Program::build(std::slice::from_ref(&main), &loader, settings, &syntax)?;
        Ok(Template {
            main,
            loader,
            settings: settings.clone(),
            syntax,
            program: Arc::new(program),
            larger: RwLock::default(),
            is_larger: AtomicBool::new(false),
            expected: Default::default(),
        })
    }

    /// The prompt's own template and everything that it is known to use.
    pub fn program(&self) -> Arc<Program> {
        self.larger().unwrap_or_else(|| self.program.clone())
    }

    fn larger(&self) -> Option<Arc<Program>> {
        if !self.is_larger.load(Ordering::Acquire) {
            return None;
        }
        self.larger.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Renders with the given values, at most `limit` characters. A render may have to begin again, with the same values. What only
    /// a whole scope has is not there: guests cannot be included.
    pub fn render(&self, scope: impl Fn() -> Value, limit: usize) -> Result<Output> {
        self.render_with(scope, None, limit)
    }

    /// Renders with a scope, which guests see as well.
    pub fn render_in(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        self.render_with(|| Value::from_dyn_object(scope.clone()), Some(scope), limit)
    }

    fn render_with(
        &self,
        scope: impl Fn() -> Value,
        lender: Option<&Arc<Scope>>,
        limit: usize,
    ) -> Result<Output> {
        meter::render(self.settings.seconds, || {
            meter::has_time().map_err(|late| errors::too_late(&self.main, late))?;
            self.render_metered(&scope, lender, limit)
        })
    }

    fn render_metered(
        &self,
        scope: &impl Fn() -> Value,
        lender: Option<&Arc<Scope>>,
        limit: usize,
    ) -> Result<Output> {
        loop {
            let larger = self.larger();
            let program = larger.as_ref().unwrap_or(&self.program);
            let mut sink = self.sink(limit);
            let fuel = self.settings.fuel;
            let is_done = meter::template(fuel, || match lender {
                Some(lender) => program.run_plain(Values::Scope(lender), &mut sink),
                None => program.run_plain(Values::Value(&scope()), &mut sink),
            });
            if is_done.is_some() {
                return Ok(self.finish(program, sink, None));
            }
            if program.plain.is_some() {
                sink = self.sink(limit);
            }
            let mut annex =
                lender.filter(|_| !program.guests.is_empty()).map(|_| Annex::new(program.units.len(), 0));
            let run = || match (lender, &mut annex) {
                (Some(lender), Some(annex)) => {
                    guests::during(lender, limit, || program.run(scope(), &mut sink, Some(annex)))
                }
                _ => program.run(scope(), &mut sink, None),
            };
            let (outcome, asked) = computed::during(|| meter::template(fuel, run));
            match outcome {
                Ok(()) => return Ok(self.finish(program, sink, annex)),
                Err(error) => match asked.failed {
                    Some(reason) => return Err(reason),
                    None if !asked.wanted.is_empty() => self.add(asked.wanted)?,
                    None => {
                        return Err(errors::explain(
                            program,
                            &self.main,
                            &scope(),
                            error,
                            limit,
                            &self.settings,
                        ));
                    }
                },
            }
        }
    }

    /// A sink with room for about as much as the last render needed.
    fn sink(&self, limit: usize) -> Sink {
        let (bytes, pieces) = &self.expected;
        let sink = Sink::new(limit, bytes.load(Ordering::Relaxed), pieces.load(Ordering::Relaxed));
        if self.settings.keep_empty { sink.keeping_empty() } else { sink }
    }

    fn finish(&self, program: &Program, sink: Sink, annex: Option<Annex>) -> Output {
        let (text, pieces) = sink.finish();
        // A little room more: the next scope is rarely exactly as long.
        self.expected.0.store(text.len() + text.len() / 8, Ordering::Relaxed);
        self.expected.1.store(pieces.len() + pieces.len() / 8, Ordering::Relaxed);
        let units = match annex {
            Some(annex) => annex.finish(program.units.clone(), Arc::default()),
            None => program.units.clone().into(),
        };
        Output { text, pieces, units }
    }

    /// Compiles templates whose names a render computed, beside those that are known.
    fn add(&self, wanted: Vec<Arc<Source>>) -> Result<()> {
        // Held while compiling: two renders that want different templates must not undo each other's work.
        let mut larger = self.larger.write().unwrap_or_else(PoisonError::into_inner);
        let known = larger.as_ref().unwrap_or(&self.program);
        let mut sources: Vec<Arc<Source>> =
            known.own_units().iter().map(|unit| unit.source().clone()).collect();
        let before = sources.len();
        // The main template comes first in the list of units and stays there.
        sources.extend(wanted.into_iter().filter(|source| !known.index.contains_key(source.name())));
        if sources.len() == before {
            return Ok(());
        }
        if sources.len() > self.program.own + MOST_COMPUTED {
            let message = format!("the template computes the names of more than {MOST_COMPUTED} includes");
            let diagnostic = Diagnostic::new(Code::TooDeep, message)
                .file(self.main.name())
                .hint("pass the texts as a list and loop over it, or write the names");
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        *larger = Some(Arc::new(Program::build(&sources, &self.loader, &self.settings, &self.syntax)?));
        self.is_larger.store(true, Ordering::Release);
        Ok(())
    }
}

/// Reads a template that stands alone, without what it names.
pub fn check_syntax(source: &Arc<Source>, settings: &Settings) -> Result<()> {
    let syntax = settings.syntax()?;
    program::refuse_long_chains(source, &syntax)?;
    Names::of(source.text(), source.name(), &syntax)
        .map(|_| ())
        .map_err(|error| errors::syntax(source, &error, None))
}
