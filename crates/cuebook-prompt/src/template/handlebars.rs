//! Handlebars templates, with the helpers of dotprompt.
//!
//! [`Template::compile`] reads a template and everything that it names into trees, [`Template::render_in`] walks them and writes into the
//! sink. It is an engine of our own, because no other says who wrote each byte and keeps limits.
//!
//! A template can reach nothing but its scope and what its [`Loader`] gives it, and a value is inert: what it contains is never parsed,
//! and what begins a message, a section or a picture is a frame that only a helper writes.
//!
//! - **Helpers** are known: `if`, `unless`, `each`, `with`, `lookup`, `log`, `ifEquals`, `unlessEquals`, `json`, `role`, `history`,
//!   `section`, `media`. Any other name with values is an error.
//! - **Printing**: nothing is escaped; `true` and `false`; null and what is missing print nothing; numbers without `.0`; a list or an
//!   object as compact JSON, where the original writes `a,b` and `[object Object]`.
//! - **Lines** of blocks, comments and partials, `~`, and the indentation of partials follow Handlebars to the letter.
//! - **Not supported**, with an error: raw blocks, decorators, partials with a block or with a computed name.

mod errors;
mod flow;
mod helper;
mod included;
mod parse;
mod run;
mod scan;
mod space;
#[cfg(test)]
mod tests;
mod tree;
mod value;
mod words;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use indexmap::IndexMap;
use serde_json::Value as Json;

use self::flow::Text;
use self::run::{Run, Stop};
use self::tree::Program as Tree;
use self::value::Value;
use super::engine::{Compiled, Engine, Job, Loader, Outline, Output};
use super::include_depth::check_depth;
use super::jinja::errors::{output_too_large, too_late};
use super::jinja::included_prompts;
use super::jinja::missing_template;
use super::jinja::names::{Names, Reference};
use super::meter;
use super::set_names::{self, IncludeEdge};
use super::sink::Sink;
use super::unit::{Emission, Frame, Unit, mark_frames};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::{OffsetMap, Source};
use crate::variables::Scope;

/// The variable with the conversation that `{{history}}` shows.
pub const HISTORY: &str = "@history";

/// How far templates may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Steps that a render may take.
    pub fuel: u64,
    /// Nesting of blocks and partials, in a text and in a render.
    pub recursion: usize,
    /// Templates that may include each other in a row.
    pub include_depth: usize,
    /// The longest text, in bytes, that a list or an object may print as.
    pub string_bytes: usize,
    /// Whether printing something that is not there is an error.
    pub strict: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { fuel: 5_000_000, recursion: 500, include_depth: 32, string_bytes: 8 << 20, strict: false }
    }
}

/// Handlebars. `metadata` among the options is what `@metadata` shows.
#[derive(Debug)]
pub struct Handlebars;

impl Engine for Handlebars {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        let settings = Settings {
            fuel: job.settings.fuel,
            recursion: job.settings.recursion,
            include_depth: job.settings.include_depth,
            string_bytes: job.settings.string_bytes,
            strict: job.settings.strict,
        };
        let metadata = job.options.get("metadata").cloned().unwrap_or_default();
        Ok(Box::new(Template::compile(job.source, &*job.loader, &settings, metadata)?))
    }
}

/// A compiled template with everything that it includes.
pub struct Template {
    main: Arc<Source>,
    settings: Settings,
    program: Arc<Program>,
    expected: (AtomicUsize, AtomicUsize),
}

/// What renders run.
pub struct Program {
    units: Arc<Vec<Unit>>,
    names: Vec<Names>,
    trees: Vec<Tree>,
    /// The unit that each reference of a unit leads to.
    links: Vec<Vec<Option<u32>>>,
    /// What other engines render, and which of them each reference of a unit leads to.
    included_prompts: Vec<Arc<dyn Compiled>>,
    hosts: Vec<Vec<Option<usize>>>,
    /// How many units are its own; those of included prompts come behind them.
    own: usize,
    frames: Arc<[Frame]>,
    metadata: Json,
}

impl Template {
    /// Reads a template and all that it names. Syntax errors and missing templates are found here.
    pub fn compile(
        main: Arc<Source>,
        loader: &dyn Loader,
        settings: &Settings,
        metadata: Json,
    ) -> Result<Template> {
        let program = Arc::new(Program::build(&main, loader, settings, metadata)?);
        Ok(Template { main, settings: settings.clone(), program, expected: Default::default() })
    }

    /// Renders with the given values, at most `limit` characters. What only a whole scope has is not there: no names with `@`, and no
    /// included prompts.
    pub fn render_values(&self, values: &Json, limit: usize) -> Result<Output> {
        self.render_with(Value::object(values), None, limit)
    }

    /// Renders with a scope, which included prompts see as well.
    pub fn render_in(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        let values = Value::scope(scope);
        if self.program.included_prompts.is_empty() {
            return self.render_with(values, Some(scope), limit);
        }
        included_prompts::during(|| self.render_with(values, Some(scope), limit))
    }

    fn render_with(&self, root: Value<'_>, lender: Option<&Arc<Scope>>, limit: usize) -> Result<Output> {
        meter::has_time().map_err(|late| too_late(&self.main, late))?;
        let program = &*self.program;
        let (bytes, pieces) = &self.expected;
        let mut sink = Sink::new(limit, bytes.load(Ordering::Relaxed), pieces.load(Ordering::Relaxed));
        let mut run = Run::new(program, &self.settings, root, lender.map(|scope| (scope, limit)), &mut sink);
        match run.tree(0, &program.trees[0]) {
            Ok(()) => {}
            Err(Stop::Full) => return Err(output_too_large(&self.main, limit)),
            Err(Stop::Failed(error)) => return Err(*error),
        }
        let Run { merged_units, emissions, .. } = run;
        let (text, pieces) = sink.finish();
        // A little room more: the next scope is rarely exactly as long.
        self.expected.0.store(text.len() + text.len() / 8, Ordering::Relaxed);
        self.expected.1.store(pieces.len() + pieces.len() / 8, Ordering::Relaxed);
        let mut units = Vec::with_capacity(program.units.len());
        for (unit, emissions) in program.units.iter().zip(emissions) {
            let marks = (0..emissions.len() as u32).collect();
            units.push(Unit::new(unit.source().clone(), OffsetMap::default(), marks, emissions));
        }
        units.extend(program.units[program.own..].iter().cloned());
        let units = merged_units.finish(Arc::new(units), program.frames.clone());
        Ok(Output { text, pieces, units })
    }
}

impl Program {
    fn build(
        main: &Arc<Source>,
        loader: &dyn Loader,
        settings: &Settings,
        metadata: Json,
    ) -> Result<Program> {
        let mut sources: Vec<Arc<Source>> = Vec::new();
        let mut index: HashMap<String, u32> = HashMap::new();
        let (mut trees, mut names, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        let mut included_prompts: Vec<Arc<dyn Compiled>> = Vec::new();
        let mut hosts: Vec<Vec<Option<usize>>> = Vec::new();
        let mut missing: Vec<Diagnostic> = Vec::new();
        let mut queue = VecDeque::from([main.clone()]);
        while let Some(source) = queue.pop_front() {
            if index.contains_key(source.name()) {
                continue;
            }
            let mut tree = read(&source, settings)?;
            let found = flow::mentions(&mut tree);
            let mut leads: Vec<Option<String>> = Vec::with_capacity(found.references.len());
            let mut leads_to_included: Vec<Option<usize>> = Vec::with_capacity(found.references.len());
            for reference in &found.references {
                let (target, included) = lead(loader, &source, reference)?;
                if target.is_none() && included.is_none() {
                    missing.push(missing_template(&source, reference, loader));
                }
                leads.push(target.as_ref().map(|target| target.name().to_owned()));
                queue.extend(target);
                leads_to_included.push(included.map(|included| {
                    let known = included_prompts.iter().position(|known| Arc::ptr_eq(known, &included));
                    known.unwrap_or_else(|| {
                        included_prompts.push(included);
                        included_prompts.len() - 1
                    })
                }));
            }
            hosts.push(leads_to_included);
            index.insert(source.name().to_owned(), sources.len() as u32);
            sources.push(source);
            trees.push(tree);
            names.push(found);
            targets.push(leads);
        }
        if !missing.is_empty() {
            return Err(Error::all(ErrorKind::PromptRead, missing));
        }
        let link = |target: Option<String>| index.get(&target?).copied();
        let links: Vec<Vec<Option<u32>>> =
            targets.into_iter().map(|leads| leads.into_iter().map(link).collect()).collect();
        if !included_prompts.is_empty() {
            note_set_names(&sources, &names, &links, &hosts, loader);
        }
        let texts: Vec<Text<'_>> =
            trees.iter().zip(&links).map(|(tree, links)| Text { tree, links }).collect();
        let emissions = flow::trace(&texts, &mut names);
        let mut units: Vec<Unit> =
            sources.iter().zip(emissions).map(|(source, found)| unit(source, found)).collect();
        let own = units.len();
        for outline in included_prompts.iter().map(|included| included.outline()) {
            units.extend(outline.units().iter().cloned());
            names.extend(outline.names().iter().cloned());
        }
        let (units, frames) = (Arc::new(units), mark_frames());
        let program = Program { units, names, trees, links, included_prompts, hosts, own, frames, metadata };
        check_depth(&program.units, &program.names, &program.links, settings.include_depth)?;
        Ok(program)
    }

    fn link(&self, unit: u32, reference: usize) -> Option<u32> {
        *self.links.get(unit as usize)?.get(reference)?
    }

    /// The included prompt that a reference of a unit leads to.
    fn included(&self, unit: u32, reference: usize) -> Option<&Arc<dyn Compiled>> {
        self.included_prompts.get((*self.hosts.get(unit as usize)?.get(reference)?)?)
    }

    fn tree(&self, unit: u32) -> &Tree {
        &self.trees[unit as usize]
    }

    fn source(&self, unit: u32) -> &Arc<Source> {
        self.units[unit as usize].source()
    }
}

/// What a reference leads to: a text, or something that another engine renders.
type Target = (Option<Arc<Source>>, Option<Arc<dyn Compiled>>);

fn lead(loader: &dyn Loader, source: &Arc<Source>, reference: &Reference) -> Result<Target> {
    let Some(name) = reference.names.as_ref().and_then(|names| names.first()) else {
        return Ok((None, None));
    };
    match loader.load(name, source.name())? {
        Some(target) => Ok((Some(target), None)),
        None => Ok((None, loader.included(name, &source.place(reference.range.clone()))?)),
    }
}

/// Tells the loader what has been set where included prompts are included.
fn note_set_names(
    sources: &[Arc<Source>],
    names: &[Names],
    links: &[Vec<Option<u32>>],
    hosts: &[Vec<Option<usize>>],
    loader: &dyn Loader,
) {
    let mut ways: Vec<IncludeEdge> = Vec::new();
    for (unit, (names, links)) in names.iter().zip(links).enumerate() {
        for (reference, target) in names.references.iter().zip(links) {
            ways.extend(target.map(|target| (unit, target as usize, reference.set_names.clone())));
        }
    }
    let inherited = set_names::inherited(sources.len(), 1, &ways);
    for (((source, names), hosts), outer) in sources.iter().zip(names).zip(hosts).zip(&inherited) {
        for (reference, _) in names.references.iter().zip(hosts).filter(|(_, host)| host.is_some()) {
            let place = source.place(reference.range.clone());
            loader.note_set_names(&place, &reference.set_names.inside(outer));
        }
    }
}

/// Reads a template that stands alone, without what it names.
pub fn check_syntax(source: &Arc<Source>, settings: &Settings) -> Result<()> {
    read(source, settings).map(|_| ())
}

/// The variables that a template reads by itself, each with where it is first read, in the order of the text.
pub fn variables(source: &Arc<Source>, settings: &Settings) -> Result<Vec<(String, std::ops::Range<usize>)>> {
    let mut trees = [read(source, settings)?];
    let mut names = [flow::mentions(&mut trees[0])];
    flow::trace(&[Text { tree: &trees[0], links: &[] }], &mut names);
    let mut found: IndexMap<String, std::ops::Range<usize>> = IndexMap::new();
    for read in names.into_iter().flat_map(|names| names.reads).filter(|read| !read.maybe_local) {
        found.entry(read.root).or_insert(read.range);
    }
    Ok(found.into_iter().collect())
}

fn read(source: &Arc<Source>, settings: &Settings) -> Result<Tree> {
    // Positions have 32 bits.
    if u32::try_from(source.text().len()).is_err() {
        let diagnostic = Diagnostic::new(Code::FileTooLarge, "the template is longer than 4 GiB")
            .file(source.name())
            .hint("split it into several files");
        return Err(Error::new(ErrorKind::Limit, diagnostic));
    }
    parse::parse(source, settings.recursion)
}

fn unit(source: &Arc<Source>, emissions: Vec<Emission>) -> Unit {
    let marks = emissions.iter().map(|emission| emission.range.start as u32).collect();
    Unit::new(source.clone(), OffsetMap::default(), marks, emissions)
}

impl Compiled for Template {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        self.render_in(scope, limit)
    }

    fn outline(&self) -> Arc<dyn Outline> {
        self.program.clone()
    }
}

impl Outline for Program {
    fn units(&self) -> &[Unit] {
        &self.units
    }

    fn names(&self) -> &[Names] {
        &self.names
    }
}
