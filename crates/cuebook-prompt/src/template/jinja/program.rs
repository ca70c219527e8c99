//! What a render of Jinja2 runs: every template that is known to take part, with its unit, its names, and which one another means by
//! a name. It is never changed.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use cuebook_template::{Environment, Error as EngineError, ErrorKind as EngineKind, Template};

use super::included_prompts::IncludedPrompts;
use super::names::{self, CallableKind, Names, ReferenceKind};
use super::settings::Settings;
use super::{errors, portable};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::source::{OffsetMap, Source};
use crate::template::address;
use crate::template::engine::Loader;
use crate::template::unit::{Emission, Unit};

/// What one render runs.
pub struct Program {
    pub(super) environment: Environment,
    templates: Vec<Arc<Template>>,
    /// The filters and tests of each template that do not exist.
    unknown: Vec<Vec<EngineError>>,
    pub(super) units: Arc<Vec<Unit>>,
    pub(super) names: Vec<Names>,
    /// Index of the unit by its source's name.
    pub(super) index: HashMap<String, usize>,
    links: BTreeMap<String, BTreeMap<String, Target>>,
    /// What it includes that other engines render. Their units come last in the list of units.
    pub(super) included_prompts: IncludedPrompts,
    /// How many units are its own.
    pub(super) own: usize,
}

/// What a template means by a name.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// The name of a source.
    Source(String),
    /// The number of an included prompt.
    IncludedPrompt(usize),
}

/// What a template means by a name, for a render.
pub(super) enum Linked {
    Template(Arc<Template>),
    IncludedPrompt(usize),
}

impl Program {
    pub(super) fn build(main: &Arc<Source>, loader: &dyn Loader, settings: &Settings) -> Result<Program> {
        let environment = settings.environment();
        let mut program = Program {
            environment,
            templates: Vec::new(),
            unknown: Vec::new(),
            units: Arc::default(),
            names: Vec::new(),
            index: HashMap::new(),
            links: BTreeMap::new(),
            included_prompts: IncludedPrompts::default(),
            own: 0,
        };
        let mut units = Vec::new();
        let mut queue = VecDeque::from([main.clone()]);
        let mut wrong: Option<Error> = None;
        while let Some(source) = queue.pop_front() {
            if program.index.contains_key(source.name()) {
                continue;
            }
            let (template, mut unknown, error) = read(&program.environment, &source);
            match settings.salvage {
                true => unknown.clear(),
                false => wrong = error.into_iter().fold(wrong, |all, next| Some(errors::join(all, next))),
            }
            let found = Names::of(&template);
            for (number, reference) in found.references.iter().enumerate() {
                let Some(candidates) = &reference.names else { continue };
                let place = || source.place(reference.range.clone());
                let mut target = None;
                for name in candidates {
                    if let Some(next) = loader.load(name, source.name())? {
                        target = Some((name, Target::Source(next.name().to_owned())));
                        queue.push_back(next);
                    } else if reference.kind == ReferenceKind::Include
                        && let Some(included) = loader.included(name, &place())?
                    {
                        let number = program.included_prompts.add(included, place(), (units.len(), number));
                        target = Some((name, Target::IncludedPrompt(number)));
                    }
                    if target.is_some() {
                        break;
                    }
                }
                match target {
                    Some((name, target)) => {
                        let links = program.links.entry(source.name().to_owned()).or_default();
                        links.insert(name.clone(), target);
                    }
                    None if reference.optional => {}
                    None => {
                        let diagnostic = missing_template(&source, reference, loader);
                        wrong = Some(errors::join(wrong, Error::new(ErrorKind::PromptRead, diagnostic)));
                    }
                }
            }
            program.index.insert(source.name().to_owned(), units.len());
            units.push(unit(&source, &found));
            program.names.push(found);
            program.templates.push(Arc::new(template));
            program.unknown.push(unknown);
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        program.own = units.len();
        program.join_names();
        if program.included_prompts.len() > 0 {
            let mut included_prompts = std::mem::take(&mut program.included_prompts);
            included_prompts.join(&program.names);
            let target = |unit: usize, name: &String| program.target(units[unit].source().name(), name);
            included_prompts.settle(&program.names, 1, target, loader);
            units.extend(included_prompts.units());
            program.names.extend(included_prompts.names());
            program.included_prompts = included_prompts;
        }
        program.units = Arc::new(units);
        program.check_parents()?;
        program.check_depth(settings.include_depth)?;
        Ok(program)
    }

    /// Notes which of the names that a template reads another one sets.
    fn join_names(&mut self) {
        let mut binding: HashMap<&str, usize> = HashMap::new();
        for name in self.names.iter().flat_map(|names| names.bound.keys()) {
            *binding.entry(name).or_default() += 1;
        }
        let elsewhere: Vec<Vec<bool>> = self
            .names
            .iter()
            .map(|names| {
                let is_bound = |read: &names::Read| {
                    let own = usize::from(names.bound.contains_key(&read.root));
                    binding.get(read.root.as_str()).is_some_and(|count| *count > own)
                };
                names.reads.iter().map(is_bound).collect()
            })
            .collect();
        for (names, elsewhere) in self.names.iter_mut().zip(elsewhere) {
            for (read, maybe_local) in names.reads.iter_mut().zip(elsewhere) {
                read.maybe_local = maybe_local;
            }
        }
    }

    /// The prompt's own template.
    pub(super) fn main(&self) -> Result<&Template> {
        match self.usable(0)? {
            Some(template) => Ok(template),
            // There is one: `build` begins with it.
            None => Err(Error::new(
                ErrorKind::PromptRender,
                Diagnostic::new(Code::RenderFailed, "internal error: a program without a template"),
            )),
        }
    }

    fn usable(&self, unit: usize) -> Result<Option<&Arc<Template>>> {
        if let (Some(unknown), Some(at)) = (self.unknown.get(unit), self.units.get(unit))
            && let Some(error) = errors::unknown(at.source(), unknown)
        {
            return Err(error);
        }
        Ok(self.templates.get(unit))
    }

    /// What a template means by a name, if that is known.
    pub(super) fn linked(&self, name: &str, parent: &str) -> Result<Option<Linked>> {
        let Some(target) = self.links.get(parent).and_then(|links| links.get(name)) else { return Ok(None) };
        match target {
            Target::IncludedPrompt(number) => Ok(Some(Linked::IncludedPrompt(*number))),
            Target::Source(name) => self.named(name),
        }
    }

    /// The template of a source.
    pub(super) fn named(&self, source: &str) -> Result<Option<Linked>> {
        let Some(unit) = self.index.get(source) else { return Ok(None) };
        Ok(self.usable(*unit)?.cloned().map(Linked::Template))
    }

    /// The units, the prompt's own template first, those of included prompts last.
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
        match self.links.get(parent)?.get(name)? {
            Target::Source(source) => self.index.get(source).copied(),
            Target::IncludedPrompt(_) => None,
        }
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
        let mut found = Vec::new();
        for (unit, template) in self.own_units().iter().zip(&self.templates) {
            for (range, what) in portable::beyond_the_subset(template) {
                let message = format!("not every Prompty runtime supports {what}");
                let hint = "ignore this if only Cuebook renders the file";
                let place = unit.source().place(range);
                found.push(Diagnostic::new(Code::NotPortable, message).at(place).hint(hint));
            }
        }
        found
    }

    /// Filters, tests and functions that do not exist, for `check`.
    pub fn unknown_callables(&self, known_variables: &HashSet<&str>) -> Vec<Diagnostic> {
        let [filters, tests, functions] = self.environment.callables();
        let mut found = Vec::new();
        for (unit, names) in self.own_units().iter().zip(&self.names) {
            for callable in &names.callables {
                let name = callable.name.as_str();
                let (what, known) = match callable.kind {
                    CallableKind::Filter => ("filter", &filters),
                    CallableKind::Test => ("test", &tests),
                    CallableKind::Function => ("function", &functions),
                };
                let is_variable = callable.kind == CallableKind::Function && known_variables.contains(name);
                if is_variable || known.contains(&name) {
                    continue;
                }
                let similar = nearest(name, known.iter().copied());
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

/// The most filters and tests that do not exist which are reported of one template.
const MAX_UNKNOWN: usize = 20;

/// Reads a template, as far as it can be read: the filters and tests that do not exist are errors of the render, all others of reading.
pub(super) fn read(
    environment: &Environment,
    source: &Arc<Source>,
) -> (Template, Vec<EngineError>, Option<Error>) {
    let (template, errors) = environment.read(source.name(), source.text());
    let (mut unknown, wrong): (Vec<_>, Vec<_>) =
        errors.into_iter().partition(|error| error.kind() == EngineKind::Unknown);
    unknown.truncate(MAX_UNKNOWN);
    let error = wrong.iter().fold(None, |all, next| Some(errors::join(all, errors::syntax(source, next))));
    (template, unknown, error)
}

/// The unit of a template.
pub(super) fn unit(source: &Arc<Source>, names: &Names) -> Unit {
    let emissions = names.tags.iter().enumerate().map(|(index, range)| Emission {
        range: range.clone(),
        paths: names.emissions.get(index).cloned().unwrap_or_default(),
        accessor: names.accessors.get(index).cloned().flatten(),
        ..Emission::default()
    });
    let marks = names.tags.iter().map(|range| range.start as u32).collect();
    Unit::new(source.clone(), OffsetMap::default(), marks, emissions.collect())
}

/// A template that is named and does not exist.
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
