//! Mustache templates.
//!
//! [`Template::compile`] reads a template and everything that it names into trees, [`Template::render`] walks them and writes
//! into the sink. It is an engine of our own, because no other says who wrote each byte, keeps limits, and passes the whole
//! specification: interpolation, sections, inverted sections, comments, delimiters and partials, and of the optional
//! modules inheritance (`{{<parent}}{{$block}}…{{/block}}{{/parent}}`) and dynamic names (`{{>*name}}`).
//!
//! A template can reach nothing but its scope and what its [`Loader`] gives it, and a value is inert: what it contains is
//! never parsed. So there are no lambdas: a lambda's result is parsed as a template.
//!
//! Where the specification leaves a choice:
//!
//! - **Nothing to show**: missing, null, `false`, `0`, the empty string and the empty list are false, as in mustache.js. An empty
//!   object is true.
//! - **Printing**: `true` and `false`; null prints nothing; numbers without `.0`; a list or an object as compact JSON.
//! - **Escaping**: `& < > "` become HTML entities in `{{x}}`, and nothing does in `{{{x}}}` and `{{&x}}`. [`Settings::escape`] turns
//!   it off, which is what most prompts want.
//! - **Names** have no white space in them. A part of a name that is a number counts the items of a list: `items.0.title`.
//! - **Standalone tags**: one tag alone on its line takes the line with it. A parent from its beginning to its end is one tag.
//! - **Indentation** goes before every line of a standalone partial that has something in it; never into values, and never into
//!   what another engine renders (`{{> prompt:greet}}`), whose lines are its own.

mod dedent;
mod engine;
mod errors;
mod flow;
mod included;
mod item;
mod parse;
pub mod parts;
mod print;
mod run;
mod scan;
#[cfg(test)]
mod tests;
mod tree;

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use serde_json::Value as Json;

pub use self::engine::Mustache;
use self::flow::{Emissions, Text};
use self::item::Item;
use self::run::{Run, Stop};
use self::tree::{Node, Slice};
use super::engine::Compiled;
use super::include_depth::check_depth;
use super::jinja::errors::{output_too_large, too_late};
use super::jinja::included_prompts;
use super::jinja::names::{Names, ReferenceKind};
use super::jinja::{Loader, MAX_COMPUTED, Output, missing_template};
use super::merged_units::MergedUnits;
use super::meter;
use super::set_names::{self, IncludeEdge};
use super::sink::Sink;
use super::unit::{Emission, Unit};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::{OffsetMap, Source};
use crate::variables::Scope;

/// What happens where a template names another one that does not exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingPartials {
    /// It is an error, which says where; at [`Template::compile`] already if the name is written out.
    #[default]
    Error,
    /// Nothing shows there, as the specification has it.
    Empty,
}

/// How templates are read and how far they may go.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether `{{x}}` writes `& < > "` as HTML entities.
    pub escape: bool,
    /// Steps that a render may take.
    pub fuel: u64,
    /// Nesting of sections, blocks and partials, in a text and in a render.
    pub recursion: usize,
    /// Templates that may include each other in a row.
    pub include_depth: usize,
    /// The longest text, in bytes, that a list or an object may print as.
    pub string_bytes: usize,
    /// Whether printing something that is not there is an error.
    pub strict: bool,
    /// What happens where a template does not exist.
    pub missing_partials: MissingPartials,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            escape: true,
            fuel: 5_000_000,
            recursion: 500,
            include_depth: 32,
            string_bytes: 8 << 20,
            strict: false,
            missing_partials: MissingPartials::Error,
        }
    }
}

/// A compiled template with everything that it includes.
pub struct Template {
    main: Arc<Source>,
    loader: Arc<dyn Loader>,
    settings: Settings,
    /// What renders run. It grows when a render computes the name of a further template.
    program: RwLock<Arc<Program>>,
    /// How many templates are named in the texts.
    named: usize,
    expected: (AtomicUsize, AtomicUsize),
}

/// What one render runs.
pub struct Program {
    units: Arc<Vec<Unit>>,
    names: Vec<Names>,
    trees: Vec<Vec<Node>>,
    /// The unit that each reference of a unit leads to.
    links: Vec<Vec<Option<u32>>>,
    /// Index of the unit by its source's name.
    index: HashMap<String, u32>,
    /// What other engines render, and which of them each reference of a unit leads to.
    included_prompts: Vec<Arc<dyn Compiled>>,
    hosts: Vec<Vec<Option<usize>>>,
    /// How many units are its own; those of included prompts come behind them.
    own: usize,
    /// The variables that sections go into: what an included prompt finds may be a part of one of them.
    entered: Vec<String>,
}

impl Template {
    /// Reads a template and all that it names. Syntax errors and missing templates are found here.
    pub fn compile(main: Arc<Source>, loader: Arc<dyn Loader>, settings: &Settings) -> Result<Template> {
        let program = Program::build(std::slice::from_ref(&main), &*loader, settings)?;
        Ok(Template {
            main,
            loader,
            settings: settings.clone(),
            named: program.own,
            program: RwLock::new(Arc::new(program)),
            expected: Default::default(),
        })
    }

    /// The template and everything that it is known to use.
    pub fn program(&self) -> Arc<Program> {
        self.program.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Renders with the given values, at most `limit` characters. What only a whole scope has is not there: included prompts cannot be
    /// included.
    pub fn render(&self, values: &Json, limit: usize) -> Result<Output> {
        self.render_with(&Item::from(values), None, limit)
    }

    /// Renders with a scope, which included prompts see as well.
    pub fn render_in(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        let values = Item::Scope(scope);
        if self.program().included_prompts.is_empty() {
            return self.render_with(&values, None, limit);
        }
        included_prompts::during(|| self.render_with(&values, Some(scope), limit))
    }

    fn render_with(&self, scope: &Item<'_>, lender: Option<&Arc<Scope>>, limit: usize) -> Result<Output> {
        meter::has_time().map_err(|late| too_late(&self.main, late))?;
        loop {
            let program = self.program();
            let (bytes, pieces) = &self.expected;
            let sink = Sink::new(limit, bytes.load(Ordering::Relaxed), pieces.load(Ordering::Relaxed));
            let mut sink = sink.keeping_empty();
            let lender = lender.map(|scope| (scope, limit));
            let mut run = Run::new(&program, &self.settings, &*self.loader, scope.clone(), lender, &mut sink);
            let outcome = run.nodes(0, program.tree(0));
            let merged_units = run.into_merged_units();
            match outcome {
                Ok(()) => return Ok(self.finish(&program, sink, merged_units)),
                Err(Stop::Full) => return Err(output_too_large(&self.main, limit)),
                Err(Stop::Failed(error)) => return Err(*error),
                // The render begins again, with the same scope.
                Err(Stop::Wanted(source)) => self.add(source)?,
            }
        }
    }

    fn finish(&self, program: &Program, sink: Sink, merged_units: MergedUnits) -> Output {
        let (text, pieces) = sink.finish();
        // A little room more: the next scope is rarely exactly as long.
        self.expected.0.store(text.len() + text.len() / 8, Ordering::Relaxed);
        self.expected.1.store(pieces.len() + pieces.len() / 8, Ordering::Relaxed);
        Output { text, pieces, units: merged_units.finish(program.units.clone(), Arc::default()) }
    }

    /// Compiles a template whose name a render computed, beside those that are known.
    fn add(&self, wanted: Arc<Source>) -> Result<()> {
        // Held while compiling: two renders that want different templates must not undo each other's work.
        let mut program = self.program.write().unwrap_or_else(PoisonError::into_inner);
        if program.index.contains_key(wanted.name()) {
            return Ok(());
        }
        let mut sources: Vec<Arc<Source>> =
            program.units[..program.own].iter().map(|unit| unit.source().clone()).collect();
        // The main template comes first in the list of units and stays there.
        sources.push(wanted);
        if sources.len() > self.named + MAX_COMPUTED {
            let message = format!("the template computes the names of more than {MAX_COMPUTED} includes");
            let diagnostic = Diagnostic::new(Code::TooDeep, message)
                .file(self.main.name())
                .hint("pass the texts as a list and loop over it with a section, or write the names");
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        *program = Arc::new(Program::build(&sources, &*self.loader, &self.settings)?);
        Ok(())
    }
}

impl Program {
    fn build(roots: &[Arc<Source>], loader: &dyn Loader, settings: &Settings) -> Result<Program> {
        let optional = settings.missing_partials == MissingPartials::Empty;
        let mut sources: Vec<Arc<Source>> = Vec::new();
        let mut index: HashMap<String, u32> = HashMap::new();
        let (mut trees, mut names, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        let mut included_prompts: Vec<Arc<dyn Compiled>> = Vec::new();
        let mut hosts: Vec<Vec<Option<usize>>> = Vec::new();
        let mut missing: Vec<Diagnostic> = Vec::new();
        let mut queue: VecDeque<Arc<Source>> = roots.iter().cloned().collect();
        while let Some(source) = queue.pop_front() {
            if index.contains_key(source.name()) {
                continue;
            }
            let mut tree = read(&source, settings)?;
            let found = flow::mentions(&mut tree, optional);
            let mut leads: Vec<Option<String>> = Vec::with_capacity(found.references.len());
            let mut leads_to_included: Vec<Option<usize>> = Vec::with_capacity(found.references.len());
            for reference in &found.references {
                let name = reference.names.as_ref().and_then(|names| names.first());
                let target = match name {
                    Some(name) => loader.load(name, source.name())?,
                    None => None,
                };
                let included = match name {
                    Some(name) if target.is_none() && reference.kind == ReferenceKind::Include => {
                        loader.included(name, &source.place(reference.range.clone()))?
                    }
                    _ => None,
                };
                if name.is_some() && target.is_none() && included.is_none() && !optional {
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
        let texts: Vec<Text<'_>> = sources
            .iter()
            .zip(&trees)
            .zip(&links)
            .map(|((source, tree), links)| Text { source, tree, links })
            .collect();
        if !included_prompts.is_empty() {
            note_set_names(&texts, &names, &hosts, roots.len(), loader);
        }
        let emissions = flow::trace(&texts, &mut names)?;
        let mut units: Vec<Unit> =
            sources.iter().zip(emissions).map(|(source, found)| unit(source, found)).collect();
        let own = units.len();
        let entered = if included_prompts.is_empty() { Vec::new() } else { flow::entered(&trees) };
        for outline in included_prompts.iter().map(|included| included.outline()) {
            units.extend(outline.units().iter().cloned());
            names.extend(outline.names().iter().cloned().map(|mut names| {
                // What a section goes into may have a part of that name.
                names.reads.iter_mut().for_each(|read| read.maybe_local |= !entered.is_empty());
                names
            }));
        }
        let units = Arc::new(units);
        let program = Program { units, names, trees, links, index, included_prompts, hosts, own, entered };
        check_depth(&program.units, &program.names, &program.links, settings.include_depth)?;
        Ok(program)
    }

    /// The units, the prompt's own template first, those of included prompts last.
    pub fn units(&self) -> &Arc<Vec<Unit>> {
        &self.units
    }

    /// What each unit mentions, in the order of the units.
    pub fn names(&self) -> &[Names] {
        &self.names
    }

    /// The unit that a reference of another unit leads to.
    pub fn target(&self, unit: usize, reference: usize) -> Option<usize> {
        self.links.get(unit)?.get(reference)?.map(|target| target as usize)
    }

    fn link(&self, unit: u32, reference: usize) -> Option<u32> {
        *self.links.get(unit as usize)?.get(reference)?
    }

    /// The included prompt that a reference of a unit leads to.
    fn included(&self, unit: u32, reference: usize) -> Option<&Arc<dyn Compiled>> {
        self.included_prompts.get((*self.hosts.get(unit as usize)?.get(reference)?)?)
    }

    fn tree(&self, unit: u32) -> &[Node] {
        self.trees.get(unit as usize).map_or(&[], Vec::as_slice)
    }

    fn source(&self, unit: u32) -> &Arc<Source> {
        self.units[unit as usize].source()
    }

    fn text(&self, unit: u32, slice: Slice) -> &str {
        self.source(unit).text().get(slice.range()).unwrap_or_default()
    }

    fn unit_named(&self, name: &str) -> Option<u32> {
        self.index.get(name).copied()
    }
}

/// Tells the loader what has been set where included prompts are included.
fn note_set_names(
    texts: &[Text<'_>],
    names: &[Names],
    hosts: &[Vec<Option<usize>>],
    roots: usize,
    loader: &dyn Loader,
) {
    let mut ways: Vec<IncludeEdge> = Vec::new();
    for (unit, (text, names)) in texts.iter().zip(names).enumerate() {
        for (reference, target) in names.references.iter().zip(text.links) {
            ways.extend(target.map(|target| (unit, target as usize, reference.set_names.clone())));
        }
    }
    let inherited = set_names::inherited(texts.len(), roots, &ways);
    for (((text, names), hosts), outer) in texts.iter().zip(names).zip(hosts).zip(&inherited) {
        for (reference, _) in names.references.iter().zip(hosts).filter(|(_, host)| host.is_some()) {
            loader.note_set_names(
                &text.source.place(reference.range.clone()),
                &reference.set_names.inside(outer),
            );
        }
    }
}

/// Reads a template that stands alone, without what it names.
pub fn check_syntax(source: &Arc<Source>, settings: &Settings) -> Result<()> {
    read(source, settings).map(|_| ())
}

fn read(source: &Arc<Source>, settings: &Settings) -> Result<Vec<Node>> {
    // Positions have 32 bits.
    if u32::try_from(source.text().len()).is_err() {
        let diagnostic = Diagnostic::new(Code::FileTooLarge, "the template is longer than 4 GiB")
            .file(source.name())
            .hint("split it into several files files");
        return Err(Error::new(ErrorKind::Limit, diagnostic));
    }
    parse::parse(source, settings.recursion)
}

/// The engine runs the source itself, so that a mark is the offset of its tag.
fn unit(source: &Arc<Source>, found: Emissions) -> Unit {
    let marks = found.iter().map(|(tag, _)| tag.start).collect();
    let emission = |(tag, paths): (Slice, Vec<String>)| {
        // A tag is always a bare name, between delimiters that no name begins with.
        let is_name = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '-';
        let written = &source.text()[tag.range()];
        let name: String = written.chars().skip_while(|c| !is_name(*c)).take_while(|c| is_name(*c)).collect();
        let accessor = Some(name).filter(|name| !name.is_empty());
        Emission { range: tag.range(), paths, accessor, ..Emission::default() }
    };
    let emissions = found.into_iter().map(emission).collect();
    Unit::new(source.clone(), OffsetMap::default(), marks, emissions)
}
