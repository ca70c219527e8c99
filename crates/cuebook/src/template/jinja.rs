//! Jinja2 templates, run by `minijinja`.
//!
//! [`Template::compile`] reads a template and everything that it names, [`Template::render`] runs it. What the engine
//! itself lacks for attribution is added around it: [`instrument`] marks the places that emit values, [`writer`] tells
//! literals from values, [`names`] knows what a template mentions, [`compat`] makes it behave like Jinja2. A template can
//! reach nothing but its scope and what its [`Loader`] gives it.

pub(crate) mod bits;
pub(crate) mod compat;
mod computed;
#[cfg(test)]
mod differential;
pub(super) mod errors;
pub(in crate::template) mod guests;
mod instrument;
pub mod names;
pub(super) mod paths;
mod plain;
mod portable;
#[cfg(test)]
mod portable_cases;
mod settings;
mod style;
mod writer;

pub(crate) use guests::GUEST_SHARE;
pub use settings::Settings;
pub use style::Style;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use self::guests::Guests;
use self::names::{CallableKind, Names, ReferenceKind};
use self::plain::Plain;
use self::writer::{Attributing, Extent};
use super::address;
use super::annex::Annex;
pub use super::engine::{Loader, Output};
use super::sink::Sink;
use super::unit::{Emission, Unit};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, did_you_mean, nearest};
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

/// What one render runs.
pub struct Program {
    compiled: Compiled,
    /// The short way, if the template is plain.
    plain: Option<Plain>,
    units: Arc<Vec<Unit>>,
    names: Vec<Names>,
    extents: Vec<Extent>,
    /// Index of the unit by its source's name.
    index: HashMap<String, usize>,
    links: Links,
    /// What it includes that other engines render. Their units come last in the list of units.
    guests: Arc<Guests>,
    /// How many units are its own.
    own: usize,
}

type MainTemplate<'e> = minijinja::Template<'e, 'e>;

self_cell::self_cell!(
    /// The environment, with its main template already looked up in it.
    struct Compiled {
        owner: Environment<'static>,
        #[covariant]
        dependent: MainTemplate,
    }
);

/// Which template a parent means by a name: parent, then name, then the source's name.
type Links = BTreeMap<String, BTreeMap<String, String>>;

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
        loop {
            let larger = self.larger();
            let program = larger.as_ref().unwrap_or(&self.program);
            let mut sink = self.sink(limit);
            if program.run_plain(&scope(), &mut sink).is_some() {
                return Ok(self.finish(program, sink, None));
            }
            if program.plain.is_some() {
                sink = self.sink(limit);
            }
            let mut annex =
                lender.filter(|_| !program.guests.is_empty()).map(|_| Annex::new(program.units.len(), 0));
            let (outcome, asked) = computed::during(|| match (lender, &mut annex) {
                (Some(lender), Some(annex)) => {
                    guests::during(lender, limit, || program.run(scope(), &mut sink, Some(annex)))
                }
                _ => program.run(scope(), &mut sink, None),
            });
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
            let message = format!(
                "more than {MOST_COMPUTED} templates are included by names that the template computes"
            );
            let diagnostic = Diagnostic::new(Code::TooDeep, message)
                .file(self.main.name())
                .hint("pass the texts in as a list and loop over it, or name the templates");
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        *larger = Some(Arc::new(Program::build(&sources, &self.loader, &self.settings, &self.syntax)?));
        self.is_larger.store(true, Ordering::Release);
        Ok(())
    }
}

impl Program {
    fn build(
        roots: &[Arc<Source>],
        loader: &Arc<dyn Loader>,
        settings: &Settings,
        syntax: &SyntaxConfig,
    ) -> Result<Program> {
        let mut environment = environment(settings, syntax);
        let mut sources = Vec::new();
        let mut names = Vec::new();
        let mut index = HashMap::new();
        let mut links = Links::new();
        let mut queue: VecDeque<Arc<Source>> = roots.iter().cloned().collect();
        let mut guests = Guests::default();
        let mut missing: Option<Error> = None;
        while let Some(source) = queue.pop_front() {
            if index.contains_key(source.name()) {
                continue;
            }
            refuse_long_chains(&source, syntax)?;
            let mut found = Names::of(source.text(), source.name(), syntax)
                .map_err(|error| errors::syntax(&source, &error, None))?;
            if settings.style.is_portable() {
                found.forget(compat::NULL);
            }
            refuse_many_assignments(&source, &found)?;
            for (number, reference) in found.references.iter().enumerate() {
                let Some(candidates) = &reference.names else { continue };
                let mut hit = false;
                let place = || source.place(reference.range.clone());
                for name in candidates {
                    let target = match loader.load(name, source.name())? {
                        Some(target) => {
                            queue.push_back(target.clone());
                            Some(target.name().to_owned())
                        }
                        None if reference.kind == ReferenceKind::Include => {
                            let guest = loader.guest(name, &place())?;
                            guest.map(|guest| {
                                Guests::template(guests.add(guest, place(), (sources.len(), number)))
                            })
                        }
                        None => None,
                    };
                    if let Some(target) = target {
                        links.entry(source.name().to_owned()).or_default().insert(name.clone(), target);
                        hit = true;
                        break;
                    }
                }
                if !hit && !reference.optional {
                    let diagnostic = missing_template(&source, reference, &**loader);
                    missing = Some(match missing {
                        None => Error::new(ErrorKind::PromptRead, diagnostic),
                        Some(error) => error.and(diagnostic),
                    });
                }
            }
            index.insert(source.name().to_owned(), sources.len());
            sources.push(source);
            names.push(found);
        }
        if let Some(error) = missing {
            return Err(error);
        }
        let own = names.len();
        paths::join(&mut names, &guests.shown());
        guests.join(&names);
        if !guests.is_empty() {
            let target = |unit: usize, name: &String| {
                let links = links.get(sources[unit].name())?;
                index.get(links.get(name)?).copied()
            };
            guests.settle(&names, roots.len(), target, &**loader);
        }
        // A template that captures text captures that of the templates which it includes as well.
        let captured = names.iter().any(|names| names.captures);
        let mut units = Vec::with_capacity(sources.len());
        for (source, found) in sources.iter().zip(&names) {
            let (unit, text) = unit(source, found, syntax, captured, settings.style)?;
            environment
                .add_template_owned(source.name().to_owned(), text)
                .map_err(|error| errors::syntax(source, &error, Some(&unit)))?;
            units.push(unit);
        }
        environment.set_fuel(needed_fuel(settings.fuel, &roots[0], &names));
        link(&mut environment, &index, &links, loader);
        let guests = Arc::new(guests);
        guests.enter(&mut environment).map_err(|error| errors::syntax(&roots[0], &error, None))?;
        let main = roots[0].name();
        let compiled = Compiled::try_new(environment, |environment| environment.get_template(main))
            .map_err(|error| errors::syntax(&roots[0], &error, None))?;
        // Taken last: from here on the environment's texts stay where they are.
        let extents = units.iter().map(|unit: &Unit| extent(compiled.borrow_owner(), unit)).collect();
        let plain = plain_steps(&compiled, units.len(), settings, syntax);
        units.extend(guests.units());
        names.extend(guests.names());
        let units = Arc::new(units);
        let program = Program { compiled, plain, units, names, extents, index, links, guests, own };
        program.check_parents()?;
        program.check_depth(settings.include_depth)?;
        Ok(program)
    }

    fn environment(&self) -> &Environment<'static> {
        self.compiled.borrow_owner()
    }

    /// Goes the short way; `None` if there is none or it came to its end.
    fn run_plain(&self, scope: &Value, sink: &mut Sink) -> Option<()> {
        let text = self.compiled.borrow_dependent().source();
        self.plain.as_ref()?.run(self.environment(), text, scope, sink)
    }

    fn run(&self, scope: Value, sink: &mut Sink, annex: Option<&mut Annex>) -> Result<(), minijinja::Error> {
        let mut writer = Attributing { sink, extents: &self.extents, last: 0, annex };
        self.compiled.borrow_dependent().render_captured_to(scope, &mut writer)?;
        Ok(())
    }

    /// The units, the prompt's own template first, those of guests last.
    pub fn units(&self) -> &Arc<Vec<Unit>> {
        &self.units
    }

    /// The units that this engine renders.
    fn own_units(&self) -> &[Unit] {
        &self.units[..self.own]
    }

    /// What each unit mentions, in the order of the units.
    pub fn names(&self) -> &[Names] {
        &self.names
    }

    /// The unit that `parent` means by `name`.
    pub fn target(&self, parent: &str, name: &str) -> Option<usize> {
        self.index.get(self.links.get(parent)?.get(name)?).copied()
    }

    /// The first of a reference's names that leads somewhere.
    fn resolve(&self, unit: usize, reference: &names::Reference) -> Option<usize> {
        let parent = self.units[unit].source().name();
        reference.names.iter().flatten().find_map(|name| self.target(parent, name))
    }

    /// The chain of `extends` from the prompt's own template upwards.
    pub fn parents(&self) -> Vec<usize> {
        let mut chain = vec![0];
        let mut unit = 0;
        while let Some(parent) = self.parent(unit)
            && !chain.contains(&parent)
        {
            chain.push(parent);
            unit = parent;
        }
        chain
    }

    fn parent(&self, unit: usize) -> Option<usize> {
        let extends = self.names[unit].references.iter().find(|r| r.kind == ReferenceKind::Extends)?;
        self.resolve(unit, extends)
    }

    /// Templates that extend each other in a circle can never render.
    fn check_parents(&self) -> Result<()> {
        for start in 0..self.units.len() {
            let mut chain = vec![start];
            let mut unit = start;
            while let Some(parent) = self.parent(unit) {
                if parent == start {
                    return Err(Error::new(
                        ErrorKind::PromptRead,
                        self.circle(&chain, ReferenceKind::Extends),
                    ));
                }
                if chain.contains(&parent) {
                    break;
                }
                chain.push(parent);
                unit = parent;
            }
        }
        Ok(())
    }

    fn circle(&self, chain: &[usize], kind: ReferenceKind) -> Diagnostic {
        let mut shown: Vec<&str> = chain.iter().map(|unit| self.units[*unit].source().name()).collect();
        shown.push(shown[0]);
        let verb = if kind == ReferenceKind::Extends { "extend" } else { "include" };
        let last = chain[chain.len() - 1];
        let mut diagnostic = Diagnostic::new(
            Code::IncludeCycle,
            format!("templates {verb} each other in a circle: {}", shown.join(" → ")),
        );
        let closing = self.names[last]
            .references
            .iter()
            .find(|reference| self.resolve(last, reference) == Some(chain[0]));
        if let Some(reference) = closing {
            let place = self.units[last].source().place(reference.range.clone());
            diagnostic = diagnostic.at(place).label("leads back to the beginning");
        }
        diagnostic.hint("break the circle: move what both need into a third template")
    }

    /// Every circle of includes, for `check`. One with a condition in it may be meant (a tree that is printed by a template
    /// which includes itself), so it is a warning; one without can never end.
    pub fn include_circles(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        let mut done = HashSet::new();
        for start in 0..self.units.len() {
            let mut path = Vec::new();
            self.search_circle(start, &mut path, &mut done, &mut found);
        }
        found
    }

    fn search_circle(
        &self,
        unit: usize,
        path: &mut Vec<usize>,
        done: &mut HashSet<usize>,
        found: &mut Vec<Diagnostic>,
    ) {
        if let Some(at) = path.iter().position(|seen| *seen == unit) {
            let chain = &path[at..];
            let ends = |(index, unit): (usize, &usize)| {
                let next = chain.get(index + 1).unwrap_or(&chain[0]);
                let mut leading =
                    self.names[*unit].references.iter().filter(|r| self.resolve(*unit, r) == Some(*next));
                leading.all(|reference| reference.conditional)
            };
            let may_end = chain.iter().enumerate().any(ends);
            let severity = if may_end { Severity::Warning } else { Severity::Error };
            found.push(self.circle(chain, ReferenceKind::Include).severity(severity));
            return;
        }
        if !done.insert(unit) {
            return;
        }
        path.push(unit);
        for reference in &self.names[unit].references {
            if let Some(target) = self.resolve(unit, reference) {
                self.search_circle(target, path, done, found);
            }
        }
        path.pop();
    }

    fn check_depth(&self, limit: usize) -> Result<()> {
        // Breadth first from the main template, so that the first unit beyond the limit is found by its shortest way.
        let mut depth: HashMap<usize, usize> = HashMap::from([(0, 0)]);
        let mut queue = VecDeque::from([0]);
        while let Some(unit) = queue.pop_front() {
            let level = depth[&unit];
            for reference in &self.names[unit].references {
                let Some(target) = self.resolve(unit, reference) else { continue };
                if depth.contains_key(&target) {
                    continue;
                }
                if level + 1 > limit {
                    let place = self.units[unit].source().place(reference.range.clone());
                    let diagnostic = Diagnostic::new(
                        Code::TooDeep,
                        format!("templates include each other more than {limit} deep"),
                    )
                    .at(place)
                    .hint("flatten the includes, or raise `limits.include_depth` in cuebook.toml");
                    return Err(Error::new(ErrorKind::Limit, diagnostic));
                }
                depth.insert(target, level + 1);
                queue.push_back(target);
            }
        }
        Ok(())
    }

    /// What the templates write beyond what every runtime of `.prompty` files can read, for `check`.
    pub fn not_portable(&self) -> Vec<Diagnostic> {
        // White space around tags makes no difference to what they are.
        let syntax = SyntaxConfig::default();
        let mut found = Vec::new();
        for source in self.own_units().iter().map(Unit::source) {
            for (range, what) in portable::beyond_the_subset(source.text(), &syntax) {
                let message = format!("{what} is more than every Prompty runtime understands");
                let hint = "leave it, if only Cuebook renders this file";
                found.push(Diagnostic::new(Code::NotPortable, message).at(source.place(range)).hint(hint));
            }
        }
        found
    }

    /// Filters, tests and functions that do not exist, for `check`.
    pub fn unknown_callables(&self, known_variables: &HashSet<&str>) -> Vec<Diagnostic> {
        let mut state = self.environment().empty_state();
        let globals: Vec<&str> = self.environment().globals().map(|(name, _)| name).collect();
        let mut found = Vec::new();
        for (unit, names) in self.own_units().iter().zip(&self.names) {
            for callable in &names.callables {
                let name = callable.name.as_str();
                let (what, known) = match callable.kind {
                    CallableKind::Filter => {
                        let answer = state.apply_filter(name, &[]);
                        ("filter", !is_kind(&answer, minijinja::ErrorKind::UnknownFilter))
                    }
                    CallableKind::Test => {
                        let answer = state.perform_test(name, &[]);
                        ("test", !is_kind(&answer, minijinja::ErrorKind::UnknownTest))
                    }
                    CallableKind::Function => {
                        ("function", globals.contains(&name) || known_variables.contains(name))
                    }
                };
                if known {
                    continue;
                }
                let similar = match callable.kind {
                    CallableKind::Filter => nearest(name, compat::filter_names()),
                    CallableKind::Test => nearest(name, compat::TEST_NAMES.iter().copied()),
                    CallableKind::Function => nearest(name, globals.iter().copied()),
                };
                found.push(
                    Diagnostic::new(Code::UnknownFilter, format!("there is no {what} `{name}`"))
                        .at(unit.source().place(callable.range.clone()))
                        .hint_opt(did_you_mean(&similar)),
                );
            }
        }
        found
    }
}

/// Reads a template that stands alone, without what it names.
pub fn check_syntax(source: &Arc<Source>, settings: &Settings) -> Result<()> {
    let syntax = settings.syntax()?;
    refuse_long_chains(source, &syntax)?;
    Names::of(source.text(), source.name(), &syntax)
        .map(|_| ())
        .map_err(|error| errors::syntax(source, &error, None))
}

fn is_kind<T>(answer: &Result<T, minijinja::Error>, kind: minijinja::ErrorKind) -> bool {
    matches!(answer, Err(error) if error.kind() == kind)
}

/// Lets a running template find others: the known ones by their links, those with computed names through the loader.
fn link(
    environment: &mut Environment<'static>,
    index: &HashMap<String, usize>,
    links: &Links,
    loader: &Arc<dyn Loader>,
) {
    let (links, loader) = (links.clone(), loader.clone());
    let compiled: HashSet<String> = index.keys().cloned().collect();
    environment.set_path_join_callback(move |name, parent| {
        if let Some(target) = links.get(parent).and_then(|known| known.get(name)) {
            return Cow::Owned(target.clone());
        }
        match loader.load_computed(name, parent) {
            Ok(Some(source)) => {
                let target = source.name().to_owned();
                if !compiled.contains(&target) {
                    computed::want(source);
                }
                Cow::Owned(target)
            }
            // The engine asks for it under this name, finds nothing, and says so with the place.
            Ok(None) => Cow::Owned(name.to_owned()),
            Err(error) => {
                computed::fail(name, error);
                Cow::Owned(name.to_owned())
            }
        }
    });
    environment.set_loader(|name| {
        if computed::is_refused(name) {
            // Not "not found", which `ignore missing` would swallow: the render ends here.
            return Err(minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "not compiled yet"));
        }
        Ok(None::<String>)
    });
}

/// The short way through a template that stands alone. Strictness is the engine's business.
fn plain_steps(
    compiled: &Compiled,
    units: usize,
    settings: &Settings,
    syntax: &SyntaxConfig,
) -> Option<Plain> {
    if units != 1 || settings.strict {
        return None;
    }
    let text = compiled.borrow_dependent().source();
    Plain::of(text, syntax, compiled.borrow_owner(), settings.fuel, settings.value_limits())
}

/// Where the text that the engine runs for a unit lies in memory.
fn extent(environment: &Environment<'static>, unit: &Unit) -> Extent {
    match environment.get_template(unit.source().name()) {
        Ok(template) => Extent::of(template.source()),
        // Every unit was added to the environment; one that was not could write nothing.
        Err(_) => Extent::of(""),
    }
}

fn environment(settings: &Settings, syntax: &SyntaxConfig) -> Environment<'static> {
    let mut environment = compat::environment(settings.value_limits());
    environment.set_syntax(syntax.clone());
    environment.set_undefined_behavior(if settings.strict {
        // Asking whether something is there stays allowed: `{% if x %}` is how templates handle what is optional.
        UndefinedBehavior::SemiStrict
    } else if settings.style.is_portable() {
        UndefinedBehavior::Chainable
    } else {
        UndefinedBehavior::Lenient
    });
    environment.set_fuel(Some(settings.fuel));
    environment.set_recursion_limit(settings.recursion);
    environment
}

/// The engine compiles a chain of operators, filters or branches by calling itself for each part: a long one would end the
/// process.
fn refuse_long_chains(source: &Arc<Source>, syntax: &SyntaxConfig) -> Result<()> {
    let Some(range) = compat::too_long_chain(source.text(), syntax.clone()) else { return Ok(()) };
    let diagnostic =
        Diagnostic::new(Code::TooDeep, "too many operators, filters or branches depend on each other here")
            .at(source.place(range))
            .hint("break it up with `{% set %}`, or use a loop");
    Err(Error::new(ErrorKind::Limit, diagnostic))
}

/// Values that are put into each other by assignment, one after the other, end the process when they are freed; see
/// [`compat`] for the same inside loops.
const MOST_ASSIGNMENTS: usize = 3_000;

fn refuse_many_assignments(source: &Arc<Source>, names: &Names) -> Result<()> {
    if names.assignments <= MOST_ASSIGNMENTS {
        return Ok(());
    }
    let message = format!(
        "the template has {} `set` statements, and {MOST_ASSIGNMENTS} are allowed",
        names.assignments
    );
    let diagnostic =
        Diagnostic::new(Code::TooDeep, message).file(source.name()).hint("use a loop, or pass the values in");
    Err(Error::new(ErrorKind::Limit, diagnostic))
}

/// A template that neither loops nor captures nor calls anything of its own takes at most as many steps as it has bytes: it
/// needs no fuel, and counting it would cost a short prompt a tenth of its time.
fn needed_fuel(fuel: u64, main: &Source, names: &[Names]) -> Option<u64> {
    let straight = names.len() == 1 && names[0].is_straight() && main.text().len() as u64 <= fuel;
    (!straight).then_some(fuel)
}

fn unit(
    source: &Arc<Source>,
    names: &Names,
    syntax: &SyntaxConfig,
    captured: bool,
    style: Style,
) -> Result<(Unit, String)> {
    let instrumented = instrument::instrument(source.text(), syntax, captured, style, &names.references)
        .map_err(|error| errors::syntax(source, &error, None))?;
    let emissions = instrumented
        .tags
        .into_iter()
        .enumerate()
        .map(|(index, range)| {
            let paths = names.emissions.get(index).cloned().unwrap_or_default();
            let accessor = names.accessors.get(index).cloned().flatten();
            let set = names.set.get(index).cloned().unwrap_or_default();
            let as_is = names.as_is.get(index).copied().unwrap_or_default();
            Emission { range, paths, accessor, set, as_is }
        })
        .collect();
    Ok((Unit::new(source.clone(), instrumented.map, instrumented.beacons, emissions), instrumented.text))
}

/// A template that is named and that nobody has.
pub(super) fn missing_template(
    source: &Arc<Source>,
    reference: &names::Reference,
    loader: &dyn Loader,
) -> Diagnostic {
    let names = reference.names.as_deref().unwrap_or_default();
    if let Some(diagnostic) = address::missing(names, reference.kind == ReferenceKind::Include, loader) {
        return diagnostic.at(source.place(reference.range.clone()));
    }
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let similar: Vec<String> = names.iter().flat_map(|name| loader.suggestions(name)).take(3).collect();
    let hint = did_you_mean(&similar).unwrap_or_else(|| {
        "paths are relative to the folder that holds the prompts, as in `partials/safety_rules.md`".to_owned()
    });
    Diagnostic::new(Code::MissingInclude, format!("no template {} exists", quoted.join(" or ")))
        .at(source.place(reference.range.clone()))
        .hint(hint)
}
