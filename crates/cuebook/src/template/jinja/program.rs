//! What a render of Jinja2 runs: every template that is known to take part, compiled into one environment, with its units, its
//! names, and which one another means by a name. It is never changed: a render that computes a further name makes a larger one.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use super::guests::Guests;
use super::names::{self, CallableKind, Names, ReferenceKind, Shared};
use super::plain::{Plain, Values};
use super::settings::Settings;
use super::style::Style;
use super::writer::{Attributing, Extent};
use super::{compat, computed, errors, fence, flow, instrument, portable};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::source::Source;
use crate::template::address;
use crate::template::annex::Annex;
use crate::template::engine::Loader;
use crate::template::sink::Sink;
use crate::template::unit::{Emission, Unit};

/// What one render runs.
pub struct Program {
    compiled: Compiled,
    /// The short way, if the template is plain.
    pub(super) plain: Option<Plain>,
    pub(super) units: Arc<Vec<Unit>>,
    pub(super) names: Vec<Names>,
    extents: Vec<Extent>,
    /// Index of the unit by its source's name.
    pub(super) index: HashMap<String, usize>,
    links: Links,
    /// What it includes that other engines render. Their units come last in the list of units.
    pub(super) guests: Arc<Guests>,
    /// How many units are its own.
    pub(super) own: usize,
    /// Whether its templates have fences.
    fences: bool,
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

impl Program {
    pub(super) fn build(
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
            refuse_many_assignments(&source, syntax)?;
            let found = read(&source, &Shared::default(), settings, syntax)?;
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
        let is_fence = |one: &names::Callable| one.kind == CallableKind::Filter && one.name == fence::NAME;
        let fences = names.iter().any(|names| names.callables.iter().any(is_fence));
        let target = |unit: usize, name: &String| {
            let links = links.get(sources[unit].name())?;
            index.get(links.get(name)?).copied()
        };
        for (unit, shared) in flow::shared(&names).into_iter().enumerate() {
            let Some(shared) = shared else { continue };
            names[unit] = read(&sources[unit], &shared, settings, syntax)?;
        }
        flow::join(&mut names, &guests.brought(), |unit, reference| {
            reference.names.iter().flatten().find_map(|name| target(unit, name))
        });
        guests.join(&names);
        if !guests.is_empty() {
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
        let program = Program { compiled, plain, units, names, extents, index, links, guests, own, fences };
        program.check_parents()?;
        program.check_depth(settings.include_depth)?;
        Ok(program)
    }

    pub(super) fn environment(&self) -> &Environment<'static> {
        self.compiled.borrow_owner()
    }

    /// Goes the short way; `None` if there is none or it came to its end.
    pub(super) fn run_plain(&self, scope: Values<'_>, sink: &mut Sink) -> Option<()> {
        let text = self.compiled.borrow_dependent().source();
        self.plain.as_ref()?.run(self.environment(), text, scope, sink)
    }

    pub(super) fn run(
        &self,
        scope: Value,
        sink: &mut Sink,
        annex: Option<&mut Annex>,
    ) -> Result<(), minijinja::Error> {
        let fences = self.fences;
        let mut writer = Attributing { sink, extents: &self.extents, last: 0, annex, fences };
        let template = self.compiled.borrow_dependent();
        match fences {
            true => fence::during(|| template.render_captured_to(scope, &mut writer))?,
            false => template.render_captured_to(scope, &mut writer)?,
        };
        Ok(())
    }

    /// The units, the prompt's own template first, those of guests last.
    pub fn units(&self) -> &Arc<Vec<Unit>> {
        &self.units
    }

    /// The units that this engine renders.
    pub(super) fn own_units(&self) -> &[Unit] {
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
    pub(super) fn resolve(&self, unit: usize, reference: &names::Reference) -> Option<usize> {
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

    pub(super) fn parent(&self, unit: usize) -> Option<usize> {
        let extends = self.names[unit].references.iter().find(|r| r.kind == ReferenceKind::Extends)?;
        self.resolve(unit, extends)
    }

    /// What the templates write beyond what every runtime of `.prompty` files can read, for `check`.
    pub fn not_portable(&self) -> Vec<Diagnostic> {
        // White space around tags makes no difference to what they are.
        let syntax = SyntaxConfig::default();
        let mut found = Vec::new();
        for source in self.own_units().iter().map(Unit::source) {
            for (range, what) in portable::beyond_the_subset(source.text(), &syntax) {
                let message = format!("not every Prompty runtime supports {what}");
                let hint = "ignore this if only Cuebook renders the file";
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
                    Diagnostic::new(Code::UnknownFilter, format!("unknown {what} `{name}`"))
                        .at(unit.source().place(callable.range.clone()))
                        .hint_opt(did_you_mean(&similar)),
                );
            }
        }
        found
    }
}

/// What a template mentions among others.
fn read(source: &Arc<Source>, shared: &Shared, settings: &Settings, syntax: &SyntaxConfig) -> Result<Names> {
    let mut found = Names::among(source.text(), source.name(), syntax, shared)
        .map_err(|error| errors::syntax(source, &error, None))?;
    if settings.style.is_portable() {
        found.forget(compat::NULL);
    }
    Ok(found)
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
    if units != 1 || settings.strict || settings.extensions.replaces_a_filter() {
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
    settings.extensions.register(&mut environment, settings.value_limits());
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
pub(super) fn refuse_long_chains(source: &Arc<Source>, syntax: &SyntaxConfig) -> Result<()> {
    let Some(range) = compat::too_long_chain(source.text(), syntax.clone()) else { return Ok(()) };
    let diagnostic =
        Diagnostic::new(Code::TooDeep, "too many operators, filters or branches depend on each other")
            .at(source.place(range))
            .hint("split it with `{% set %}`, or use a loop");
    Err(Error::new(ErrorKind::Limit, diagnostic))
}

/// Values that are put into each other by assignment, one after the other, end the process when they are freed; see
/// [`compat`] for the same inside loops.
const MOST_ASSIGNMENTS: usize = 3_000;

fn refuse_many_assignments(source: &Arc<Source>, syntax: &SyntaxConfig) -> Result<()> {
    let assignments = compat::assignments(source.text(), syntax.clone());
    if assignments <= MOST_ASSIGNMENTS {
        return Ok(());
    }
    let message =
        format!("the template has {assignments} `set` statements, but the limit is {MOST_ASSIGNMENTS}");
    let diagnostic =
        Diagnostic::new(Code::TooDeep, message).file(source.name()).hint("use a loop, or pass the values");
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
pub(in crate::template) fn missing_template(
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
        "paths are relative to the prompts' folder, as in `partials/safety_rules.md`".to_owned()
    });
    Diagnostic::new(Code::MissingInclude, format!("no template {} found", quoted.join(" or ")))
        .at(source.place(reference.range.clone()))
        .hint(hint)
}
