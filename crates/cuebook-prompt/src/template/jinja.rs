//! Jinja2 templates, run by `cuebook-template`.
//!
//! [`Template::compile`] reads a template and everything that it names, [`Template::render`] runs it. The engine knows where every
//! byte came from; [`render`] turns that into pieces and units. [`names`] knows what a template mentions before it is rendered. A
//! template can reach nothing but its scope and what its [`Loader`] gives it.

mod circles;
#[cfg(test)]
mod differential;
pub(super) mod errors;
mod extensions;
#[doc(hidden)]
pub mod fence;
pub(in crate::template) mod included_prompts;
pub mod names;
pub mod parts;
pub(super) mod paths;
mod portable;
#[cfg(test)]
mod portable_cases;
mod program;
mod render;
mod settings;
mod style;

pub use extensions::Extensions;
#[doc(hidden)]
pub use included_prompts::INCLUDE_DEPTH_SHARE;
pub use program::Program;
pub(super) use program::missing_template;
pub use settings::Settings;
pub use style::Style;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value as Json};

use self::included_prompts::IncludedPrompts;
use self::names::{Names, ReferenceKind};
use self::render::Values;
pub use super::engine::{Loader, Output};
use super::meter;
use super::unit::Unit;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;
use crate::variables::Scope;

/// A compiled template with everything that it includes and extends.
pub struct Template {
    main: Arc<Source>,
    loader: Arc<dyn Loader>,
    settings: Settings,
    program: Arc<Program>,
    /// Templates whose names renders computed, by the names of their sources.
    computed: Mutex<HashMap<String, Arc<Computed>>>,
}

/// A template whose name a render computed.
struct Computed {
    template: Arc<cuebook_template::Template>,
    unit: Unit,
    included_prompts: IncludedPrompts,
    /// Which of its included prompts a name means.
    links: BTreeMap<String, usize>,
}

/// A template may name further templates while it runs. Each is compiled once; this many at most.
pub(super) const MAX_COMPUTED: usize = 64;

impl Template {
    /// Reads a template and all that it names. Syntax errors and missing templates are found here.
    pub fn compile(main: Arc<Source>, loader: Arc<dyn Loader>, settings: &Settings) -> Result<Template> {
        let program = Arc::new(Program::build(&main, &*loader, settings)?);
        Ok(Template { main, loader, settings: settings.clone(), program, computed: Mutex::default() })
    }

    /// The prompt's own template and everything that it is known to use.
    pub fn program(&self) -> Arc<Program> {
        self.program.clone()
    }

    /// Renders with these values, at most `limit` characters. What only a whole scope has is not there: included prompts cannot be included.
    pub fn render(&self, values: &Map<String, Json>, limit: usize) -> Result<Output> {
        self.render_with(Values::Object(values), limit)
    }

    /// Renders with a scope, which included prompts see as well.
    pub fn render_in(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        self.render_with(Values::Scope(scope), limit)
    }

    /// The text of such a render alone, in the memory of another text.
    #[doc(hidden)]
    pub fn render_text_in(&self, scope: &Arc<Scope>, limit: usize, memory: String) -> Result<String> {
        self.metered(|| render::render_text(self, Values::Scope(scope), limit, memory))
    }

    fn render_with(&self, values: Values<'_>, limit: usize) -> Result<Output> {
        self.metered(|| render::render(self, values, limit))
    }

    /// Renders within the limits of time and fuel.
    fn metered<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        meter::render(self.settings.seconds, || {
            meter::has_time().map_err(|late| errors::too_late(&self.main, late))?;
            meter::template(self.settings.fuel, work)
        })
    }

    /// The template of a name that a render computed.
    fn compute(&self, name: &str, parent: &str) -> Result<Option<Arc<cuebook_template::Template>>> {
        let Some(source) = self.loader.load_computed(name, parent)? else { return Ok(None) };
        if let Some(program::Linked::Template(known)) = self.program.named(source.name())? {
            return Ok(Some(known));
        }
        if let Some(known) = self.computed(source.name()) {
            return Ok(Some(known.template.clone()));
        }
        let (template, unknown, error) = program::read(&self.program.environment, &source);
        if let Some(error) = error.or_else(|| errors::unknown(&source, &unknown)) {
            return Err(error);
        }
        let names = Names::of(&template);
        let (mut included_prompts, mut links) = (IncludedPrompts::default(), BTreeMap::new());
        for (number, reference) in names.references.iter().enumerate() {
            for name in reference.names.iter().flatten().filter(|_| reference.kind == ReferenceKind::Include)
            {
                let place = source.place(reference.range.clone());
                if let Some(included) = self.loader.included(name, &place)? {
                    links.insert(name.clone(), included_prompts.add(included, place, (0, number)));
                }
            }
        }
        included_prompts.ask_for_every_name();
        let unit = program::unit(&source, &names);
        let template = Arc::new(template);
        let mut computed = self.computed.lock().unwrap_or_else(PoisonError::into_inner);
        if computed.len() >= MAX_COMPUTED {
            let message = format!("the template computes the names of more than {MAX_COMPUTED} includes");
            let diagnostic = Diagnostic::new(Code::TooDeep, message)
                .file(self.main.name())
                .hint("pass the texts as a list and loop over it, or write the names");
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        let known = Computed { template: template.clone(), unit, included_prompts, links };
        computed.insert(source.name().to_owned(), Arc::new(known));
        Ok(Some(template))
    }

    /// The unit of a template that took part in a render.
    fn unit(&self, name: &str) -> Option<Unit> {
        if let Some(unit) = self.program.index.get(name).and_then(|unit| self.program.units.get(*unit)) {
            return Some(unit.clone());
        }
        self.computed(name).map(|known| known.unit.clone())
    }

    /// A template whose name a render computed, by the name of its source.
    fn computed(&self, name: &str) -> Option<Arc<Computed>> {
        self.computed.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// Reads a template that stands alone, without what it names.
pub fn check_syntax(source: &Arc<Source>, settings: &Settings) -> Result<()> {
    program::read(&settings.environment(), source).2.map_or(Ok(()), Err)
}
