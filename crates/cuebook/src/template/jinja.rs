//! Jinja2 templates, run by `minijinja`.
//!
//! [`Template::compile`] reads a template and everything that it names, [`Template::render`] runs it. What the engine
//! itself lacks for attribution is added around it: [`instrument`] marks the places that emit values, [`writer`] tells
//! literals from values, [`names`] knows what a template mentions, [`compat`] makes it behave like Jinja2. A template can
//! reach nothing but its scope and what its [`Loader`] gives it.

pub(crate) mod compat;
mod errors;
mod instrument;
pub mod names;
mod writer;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, UndefinedBehavior, Value};

use self::names::{CallableKind, Names, ReferenceKind};
use self::writer::{Attributing, Extent};
use super::sink::{Piece, Sink};
use super::unit::{Emission, Unit};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::source::Source;

/// Where a template's includes and parents come from.
pub trait Loader: Send + Sync {
    /// Finds the template that `parent` means by `name`; `None` if nobody has it. The source's name identifies it.
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>>;

    /// Names that could have been meant, for a hint.
    fn suggestions(&self, name: &str) -> Vec<String> {
        let _ = name;
        Vec::new()
    }
}

/// How templates are read and how far they may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Instructions that a render may take.
    pub fuel: u64,
    /// Nesting of macro calls, includes and blocks.
    pub recursion: usize,
    /// Templates that may include each other in a row.
    pub include_depth: usize,
    /// The longest string, in bytes, that a template may build.
    pub string_bytes: usize,
    /// The longest list that a template may build.
    pub items: usize,
    /// Whether printing something that is not there is an error.
    pub strict: bool,
    /// Whether the newline behind a block tag goes.
    pub trim_blocks: bool,
    /// Whether white space before a block tag goes.
    pub lstrip_blocks: bool,
    /// Whether a template's last newline stays.
    pub keep_trailing_newline: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            fuel: 5_000_000,
            recursion: 500,
            include_depth: 32,
            string_bytes: 8 << 20,
            items: 1_000_000,
            strict: false,
            trim_blocks: false,
            lstrip_blocks: false,
            keep_trailing_newline: false,
        }
    }
}

impl Settings {
    fn syntax(&self) -> Result<SyntaxConfig> {
        SyntaxConfig::builder()
            .trim_blocks(self.trim_blocks)
            .lstrip_blocks(self.lstrip_blocks)
            .keep_trailing_newline(self.keep_trailing_newline)
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Config, Diagnostic::new(Code::BadConfig, error.to_string()))
            })
    }
}

/// A compiled template with everything that it includes and extends.
pub struct Template {
    main: Arc<Source>,
    loader: Arc<dyn Loader>,
    settings: Settings,
    syntax: SyntaxConfig,
    /// Grows when a render includes a template whose name it computed.
    program: RwLock<Arc<Program>>,
    expected: (AtomicUsize, AtomicUsize),
}

/// What one render runs.
pub struct Program {
    environment: Environment<'static>,
    units: Arc<Vec<Unit>>,
    names: Vec<Names>,
    extents: Vec<Extent>,
    /// Index of the unit by its source's name.
    index: HashMap<String, usize>,
    links: Links,
    /// Computed names that a render asked for and that are not compiled yet.
    wanted: Arc<Mutex<Vec<Arc<Source>>>>,
}

/// Which template a parent means by a name: parent, then name, then the source's name.
type Links = BTreeMap<String, BTreeMap<String, String>>;

/// Text, its pieces, and the units that the pieces speak of.
pub struct Output {
    /// The text.
    pub text: String,
    /// Who wrote which part.
    pub pieces: Vec<Piece>,
    /// What the pieces' units are.
    pub units: Arc<Vec<Unit>>,
}

/// A template may name further templates while it runs; each is compiled once, and this many at most.
const MAX_COMPUTED: usize = 256;

impl Template {
    /// Reads a template and all that it names. Syntax errors and missing templates are found here.
    pub fn compile(main: Arc<Source>, loader: Arc<dyn Loader>, settings: &Settings) -> Result<Template> {
        let syntax = settings.syntax()?;
        let program = Program::build(&[main.clone()], &*loader, settings, &syntax)?;
        let template = Template {
            main,
            loader,
            settings: settings.clone(),
            syntax,
            program: RwLock::new(Arc::new(program)),
            expected: Default::default(),
        };
        template.link_at_run_time();
        Ok(template)
    }

    /// The prompt's own template and everything that it is known to use.
    pub fn program(&self) -> Arc<Program> {
        self.program.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Renders with the given scope, at most `limit` characters.
    pub fn render(&self, scope: Value, limit: usize) -> Result<Output> {
        let mut computed = 0;
        loop {
            let program = self.program();
            let (bytes, pieces) = &self.expected;
            let mut sink = Sink::new(limit, bytes.load(Ordering::Relaxed), pieces.load(Ordering::Relaxed));
            let outcome = program.run(self.main.name(), scope.clone(), &mut sink);
            let wanted = match &outcome {
                Ok(()) => Vec::new(),
                Err(_) => std::mem::take(&mut *program.wanted.lock().unwrap_or_else(PoisonError::into_inner)),
            };
            match outcome {
                Ok(()) => {
                    let (text, pieces) = sink.finish();
                    // A little room more: the next scope is rarely exactly as long.
                    self.expected.0.store(text.len() + text.len() / 8, Ordering::Relaxed);
                    self.expected.1.store(pieces.len() + pieces.len() / 8, Ordering::Relaxed);
                    return Ok(Output { text, pieces, units: program.units.clone() });
                }
                Err(_) if !wanted.is_empty() && computed < MAX_COMPUTED => {
                    computed += wanted.len();
                    self.add(&program, wanted)?;
                }
                Err(error) => {
                    return Err(errors::explain(&program, &self.main, &scope, error, limit, &self.settings));
                }
            }
        }
    }

    /// Compiles templates whose names a render computed, beside those that are known.
    fn add(&self, program: &Program, wanted: Vec<Arc<Source>>) -> Result<()> {
        let mut sources: Vec<Arc<Source>> = program.units.iter().map(|unit| unit.source().clone()).collect();
        // The main template comes first in the list of units and stays there.
        sources.extend(wanted);
        let larger = Program::build(&sources, &*self.loader, &self.settings, &self.syntax)?;
        *self.program.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(larger);
        self.link_at_run_time();
        Ok(())
    }

    /// Lets a running template find others by computed names.
    fn link_at_run_time(&self) {
        let mut guard = self.program.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = Arc::get_mut(&mut guard) {
            program.link(self.loader.clone());
        }
    }
}

impl Program {
    fn build(
        roots: &[Arc<Source>],
        loader: &dyn Loader,
        settings: &Settings,
        syntax: &SyntaxConfig,
    ) -> Result<Program> {
        let mut environment = environment(settings, syntax);
        let mut units = Vec::new();
        let mut names = Vec::new();
        let mut index = HashMap::new();
        let mut links = Links::new();
        let mut queue: VecDeque<Arc<Source>> = roots.iter().cloned().collect();
        let mut missing: Option<Error> = None;
        while let Some(source) = queue.pop_front() {
            if index.contains_key(source.name()) {
                continue;
            }
            let found = Names::of(source.text(), source.name(), syntax)
                .map_err(|error| errors::syntax(&source, &error, None))?;
            for reference in &found.references {
                let Some(candidates) = &reference.names else { continue };
                let mut hit = false;
                for name in candidates {
                    if let Some(target) = loader.load(name, source.name())? {
                        let known = links.entry(source.name().to_owned()).or_default();
                        known.insert(name.clone(), target.name().to_owned());
                        queue.push_back(target);
                        hit = true;
                        break;
                    }
                }
                if !hit && !reference.optional {
                    let diagnostic = missing_template(&source, reference, loader);
                    missing = Some(match missing {
                        None => Error::new(ErrorKind::PromptRead, diagnostic),
                        Some(error) => error.and(diagnostic),
                    });
                }
            }
            let (unit, text) = unit(&source, &found, syntax)?;
            environment
                .add_template_owned(source.name().to_owned(), text)
                .map_err(|error| errors::syntax(&source, &error, Some(&unit)))?;
            index.insert(source.name().to_owned(), units.len());
            units.push(unit);
            names.push(found);
        }
        if let Some(error) = missing {
            return Err(error);
        }
        let program = Program {
            extents: Vec::new(),
            environment,
            units: Arc::new(units),
            names,
            index,
            links,
            wanted: Arc::default(),
        };
        program.check_parents()?;
        program.check_depth(settings.include_depth)?;
        Ok(program)
    }

    fn link(&mut self, loader: Arc<dyn Loader>) {
        let wanted = self.wanted.clone();
        let refused = wanted.clone();
        let links = self.links.clone();
        let compiled: HashSet<String> = self.index.keys().cloned().collect();
        self.environment.set_path_join_callback(move |name, parent| {
            if let Some(target) = links.get(parent).and_then(|known| known.get(name)) {
                return Cow::Owned(target.clone());
            }
            match loader.load(name, parent) {
                Ok(Some(source)) => {
                    let target = source.name().to_owned();
                    if compiled.contains(&target) {
                        return Cow::Owned(target);
                    }
                    wanted.lock().unwrap_or_else(PoisonError::into_inner).push(source);
                    Cow::Owned(target)
                }
                // The engine asks for it under this name, finds nothing, and says so with the place.
                Ok(None) | Err(_) => Cow::Owned(name.to_owned()),
            }
        });
        self.environment.set_loader(move |name| {
            let waiting = refused.lock().unwrap_or_else(PoisonError::into_inner);
            if waiting.iter().any(|source| source.name() == name) {
                // Not "not found", which `ignore missing` would swallow: the render starts again once it is compiled.
                return Err(minijinja::Error::new(
                    minijinja::ErrorKind::InvalidOperation,
                    "not compiled yet",
                ));
            }
            Ok(None::<String>)
        });
        // Taken last: from here on the environment's texts stay where they are.
        self.extents = self
            .units
            .iter()
            .map(|unit| match self.environment.get_template(unit.source().name()) {
                Ok(template) => Extent::of(template.source()),
                Err(_) => Extent::of(""),
            })
            .collect();
    }

    fn run(&self, main: &str, scope: Value, sink: &mut Sink) -> Result<(), minijinja::Error> {
        let template = self.environment.get_template(main)?;
        let mut writer = Attributing { sink, extents: &self.extents, last: 0 };
        template.render_captured_to(scope, &mut writer)?;
        Ok(())
    }

    /// The units, the prompt's own template first.
    pub fn units(&self) -> &Arc<Vec<Unit>> {
        &self.units
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

    /// Every circle of includes, for `check`. One may be meant (a tree that is printed by a template that includes
    /// itself), so it is no error before the recursion limit is reached.
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
            found.push(self.circle(&path[at..], ReferenceKind::Include));
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

    /// Filters, tests and functions that do not exist, for `check`.
    pub fn unknown_callables(&self, known_variables: &HashSet<&str>) -> Vec<Diagnostic> {
        let mut state = self.environment.empty_state();
        let globals: Vec<&str> = self.environment.globals().map(|(name, _)| name).collect();
        let mut found = Vec::new();
        for (unit, names) in self.units.iter().zip(&self.names) {
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
                    CallableKind::Filter => nearest(name, compat::FILTERS.iter().copied()),
                    CallableKind::Test => nearest(name, compat::TESTS.iter().copied()),
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
    Names::of(source.text(), source.name(), &settings.syntax()?)
        .map(|_| ())
        .map_err(|error| errors::syntax(source, &error, None))
}

fn is_kind<T>(answer: &Result<T, minijinja::Error>, kind: minijinja::ErrorKind) -> bool {
    matches!(answer, Err(error) if error.kind() == kind)
}

fn environment(settings: &Settings, syntax: &SyntaxConfig) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_syntax(syntax.clone());
    environment.set_undefined_behavior(if settings.strict {
        // Asking whether something is there stays allowed: `{% if x %}` is how templates handle what is optional.
        UndefinedBehavior::SemiStrict
    } else {
        UndefinedBehavior::Lenient
    });
    environment.set_fuel(Some(settings.fuel));
    environment.set_recursion_limit(settings.recursion);
    let limits = compat::ValueLimits { string_bytes: settings.string_bytes, items: settings.items };
    compat::configure(&mut environment, limits);
    environment
}

fn unit(source: &Arc<Source>, names: &Names, syntax: &SyntaxConfig) -> Result<(Unit, String)> {
    let instrumented = instrument::instrument(source.text(), syntax)
        .map_err(|error| errors::syntax(source, &error, None))?;
    let emissions = instrumented
        .tags
        .into_iter()
        .zip(names.emissions.iter().cloned().chain(std::iter::repeat_with(Vec::new)))
        .map(|(range, paths)| Emission { range, paths })
        .collect();
    Ok((Unit::new(source.clone(), instrumented.map, instrumented.beacons, emissions), instrumented.text))
}

fn missing_template(source: &Arc<Source>, reference: &names::Reference, loader: &dyn Loader) -> Diagnostic {
    let names = reference.names.as_deref().unwrap_or_default();
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    let similar: Vec<String> = names.iter().flat_map(|name| loader.suggestions(name)).take(3).collect();
    let hint = did_you_mean(&similar).unwrap_or_else(|| {
        "paths are relative to the folder that holds the prompts, as in `partials/safety_rules.md`".to_owned()
    });
    Diagnostic::new(Code::MissingInclude, format!("no template {} exists", quoted.join(" or ")))
        .at(source.place(reference.range.clone()))
        .hint(hint)
}
