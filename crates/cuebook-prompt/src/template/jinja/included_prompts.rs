//! Included prompts: what a template includes and another engine renders, as in `{% include "prompt:greet" %}`.
//!
//! An included prompt sees the scope of the render, and above it what the template has set where it is included. The engine takes over its text
//! with who wrote every byte of it.

use std::cell::Cell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use cuebook_template::Including;

use super::errors;
use super::names::{Names, Reference};
use super::paths;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Place;
use crate::template::address::Address;
use crate::template::engine::{Compiled, Loader, Outline, Output};
use crate::template::set_names::{self, IncludeEdge, SetNames, SetState};
use crate::template::unit::{Unit, Units};
use crate::variables::Scope;

/// How many included prompts one render may have, those of its included prompts counted in: each may take as many steps as the render itself.
const MAX_INCLUDED_PROMPTS: usize = 1_000;

/// An included prompt may nest this much less deeply than what includes it: included prompts run inside of each other, on one stack.
#[doc(hidden)]
pub const INCLUDE_DEPTH_SHARE: usize = 4;

/// How much all included prompts may weigh that run inside of each other. One that could nest as deeply as it may weighs [`HEAVY`].
const MAX_NESTED: usize = INCLUDE_DEPTH_SHARE * HEAVY;
const HEAVY: usize = 128;
const LIGHT: usize = 4;

/// An included prompt of a template.
pub(super) struct IncludedPrompt {
    compiled: Arc<dyn Compiled>,
    /// Where it is first included.
    place: Place,
    /// Names that it reads and the template sets somewhere.
    local: HashSet<String>,
    /// Where it is included.
    sites: Vec<IncludeSite>,
    /// What has been set at each of these.
    set_names: SetNames,
}

/// A place where an included prompt is included.
struct IncludeSite {
    /// The numbers of a unit and of a reference in it.
    at: (usize, usize),
    place: Place,
    /// What has been set there.
    set_names: SetNames,
}

/// All included prompts of a program.
#[derive(Default)]
pub(super) struct IncludedPrompts(Vec<IncludedPrompt>);

impl IncludedPrompts {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds one, and gives back its number. The same included prompt is there once, wherever it is included.
    pub(super) fn add(&mut self, compiled: Arc<dyn Compiled>, place: Place, at: (usize, usize)) -> usize {
        let known = self.0.iter().position(|included| Arc::ptr_eq(&included.compiled, &compiled));
        let number = known.unwrap_or_else(|| {
            let (place, set_names) = (place.clone(), SetNames::default());
            self.0.push(IncludedPrompt {
                compiled,
                place,
                local: HashSet::new(),
                sites: Vec::new(),
                set_names,
            });
            self.0.len() - 1
        });
        self.0[number].sites.push(IncludeSite { at, place, set_names: SetNames::default() });
        number
    }

    /// Finds out what has been set where they are included, and tells the loader. `target` is the unit that a unit means by a name.
    pub(super) fn settle(
        &mut self,
        names: &[Names],
        roots: usize,
        target: impl Fn(usize, &String) -> Option<usize>,
        loader: &dyn Loader,
    ) {
        let mut ways: Vec<IncludeEdge> = Vec::new();
        for (unit, names) in names.iter().enumerate() {
            for reference in &names.references {
                let target = reference.names.iter().flatten().find_map(|name| target(unit, name));
                ways.extend(target.map(|target| (unit, target, reference.set_names.clone())));
            }
        }
        let inherited = set_names::inherited(names.len(), roots, &ways);
        for included in &mut self.0 {
            let mut on_every_way: Option<SetNames> = None;
            for IncludeSite { at: (unit, reference), place, set_names } in &mut included.sites {
                let here = names[*unit].references[*reference].set_names.inside(&inherited[*unit]);
                loader.note_set_names(place, &here);
                on_every_way = Some(on_every_way.map_or_else(|| here.clone(), |before| before.or(&here)));
                *set_names = here;
            }
            included.set_names = on_every_way.unwrap_or_default();
        }
    }

    /// Notes which of the names that the templates set an included prompt may mean.
    pub(super) fn join(&mut self, names: &[Names]) {
        for included in &mut self.0 {
            let outline = included.compiled.outline();
            for read in outline.names().iter().flat_map(|names| &names.reads) {
                if names.iter().any(|names| names.bound.contains_key(&read.root)) {
                    included.local.insert(read.root.clone());
                }
            }
        }
    }

    /// Notes that an included prompt may mean any name that it reads: it is not known which templates lead to it.
    pub(super) fn ask_for_every_name(&mut self) {
        for included in &mut self.0 {
            let outline = included.compiled.outline();
            let reads = outline.names().iter().flat_map(|names| &names.reads);
            included.local.extend(reads.map(|read| read.root.clone()));
        }
    }

    /// What they mention, for those who look at the template that includes them.
    pub(super) fn names(&self) -> Vec<Names> {
        let mut all = Vec::new();
        for included in &self.0 {
            for names in included.compiled.outline().names() {
                let mut names = names.clone();
                // What the template has surely set means that and nothing else.
                names.reads.retain(|read| included.set_names.of(&read.root) != SetState::Surely);
                for read in &mut names.reads {
                    read.maybe_local |= included.local.contains(&read.root);
                }
                all.push(names);
            }
        }
        all
    }

    /// The texts that they write from.
    pub(super) fn units(&self) -> Vec<Unit> {
        self.0.iter().flat_map(|included| included.compiled.outline().units().to_vec()).collect()
    }

    /// Renders one of them where a template includes it.
    pub(super) fn render(
        &self,
        number: usize,
        scope: &Arc<Scope>,
        limit: usize,
        at: &Including<'_>,
        place: Option<Place>,
    ) -> Result<Output> {
        let Some(included) = self.0.get(number) else {
            return Err(missing());
        };
        let mut set: BTreeMap<&str, Set> = BTreeMap::new();
        let mut set_names: Vec<(String, Option<serde_json::Value>)> = Vec::new();
        for name in &included.local {
            let Some(found) = at.set_value(name) else { continue };
            set_names.push((name.clone(), found.value.clone()));
            let paths = found.paths.iter().map(ToString::to_string).collect();
            set.insert(name, Set { paths, whole: found.whole });
        }
        let scope = if set_names.is_empty() { scope.clone() } else { scope.with_set_values(set_names) };
        let rendered =
            inside(&*included.compiled, &included.place, || included.compiled.render(&scope, limit));
        let output = rendered.map_err(|error| {
            let places = match &place {
                Some(place) => vec![place],
                None => included.places_of(&error),
            };
            error.map(|reported| match reported.related.len() >= errors::MAX_CALLERS {
                true => reported,
                false => included_at(reported, &places),
            })
        })?;
        Ok(seen_from_outside(output, &set))
    }
}

/// The error for a number that no included prompt has.
pub(super) fn missing() -> Error {
    let diagnostic = Diagnostic::new(Code::RenderFailed, "internal error: the included prompt is missing");
    Error::new(ErrorKind::PromptRender, diagnostic)
}

/// What a template has set: the variables that it came from, and whether its parts are parts of them.
struct Set {
    paths: Vec<String>,
    whole: bool,
}

/// The same text, in whose emissions what the including template has set names what that came from.
fn seen_from_outside(output: Output, set: &BTreeMap<&str, Set>) -> Output {
    if set.is_empty() {
        return output;
    }
    widened(output, |paths| {
        let mut found: Vec<String> = Vec::new();
        for path in paths {
            let root = paths::root(path);
            let Some(Set { paths, whole }) = set.get(root) else {
                found.push(path.clone());
                continue;
            };
            let way = if *whole { &path[root.len()..] } else { "" };
            found.extend(paths.iter().map(|path| format!("{path}{way}")));
        }
        found.dedup();
        found
    })
}

/// The same finding with the places where the included prompt may have been included that it is about.
fn included_at(reported: Diagnostic, places: &[&Place]) -> Diagnostic {
    let Some((first, others)) = places.split_first() else { return reported };
    let related = reported.related.len();
    let mut reported = reported.included(first);
    if reported.related.len() > related {
        for place in others.iter().take(errors::MAX_CALLERS) {
            reported = reported.related((*place).clone(), "or here");
        }
    }
    reported
}

impl IncludedPrompt {
    /// The places where it may have been included when this went wrong. The engine does not say which one it was; but what is missing
    /// had not been set there, and what was set to something wrong may have been.
    fn places_of(&self, error: &Error) -> Vec<&Place> {
        let names = |field: &str| -> Vec<&str> {
            let entries = error.field(field).and_then(serde_json::Value::as_array).into_iter().flatten();
            // What came from a layer was not set by the text.
            let entries = entries.filter(|entry| entry["layer"].is_null());
            entries.filter_map(|entry| entry.as_str().or_else(|| entry["name"].as_str())).collect()
        };
        let (missing, invalid) = (names("missing"), names("invalid"));
        let fits = |site: &&IncludeSite| {
            missing.iter().all(|name| site.set_names.of(name) != SetState::Surely || !self.reads(name))
                && invalid.iter().all(|name| site.set_names.of(name) != SetState::Never || !self.reads(name))
        };
        let mut places: Vec<&Place> = self.sites.iter().filter(fits).map(|site| &site.place).collect();
        if places.is_empty() {
            places = self.sites.iter().map(|site| &site.place).collect();
        }
        places
    }

    /// Whether a name that the template sets is one of its own.
    fn reads(&self, name: &str) -> bool {
        self.local.contains(name)
    }
}

/// The same text, in whose emissions other paths can show.
pub(in crate::template) fn widened(mut output: Output, wider: impl Fn(&[String]) -> Vec<String>) -> Output {
    let all = |units: &[Unit]| Arc::new(units.iter().map(|unit| unit.clone().with_paths(&wider)).collect());
    let units = &output.units;
    let more = units.more().iter().map(|(first, units, of)| (*first, all(units), of.clone())).collect();
    output.units = Units::new(all(units.own()), more, units.frames().clone());
    output
}

/// Renders an included prompt of the render that is running, if there are not too many of them already.
pub(in crate::template) fn inside<T>(
    included: &dyn Compiled,
    place: &Place,
    render: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    counted(place)?;
    let outline = included.outline();
    let weight = weight(&*outline);
    let before = NESTED.get();
    if before + weight > MAX_NESTED {
        let message = "prompts that include each other are nested too deeply";
        let diagnostic = Diagnostic::new(Code::TooDeep, message).at(place.clone());
        let diagnostic = diagnostic.hint("shorten the chain of includes, or turn some prompts into partials");
        return Err(Error::new(ErrorKind::Limit, diagnostic));
    }
    NESTED.set(before + weight);
    let _ended = Nested(before);
    render()
}

/// How deeply a text can nest by itself: one without macros and without circles of includes no deeper than it has parts.
fn weight(outline: &dyn Outline) -> usize {
    let Some(program) = outline.jinja() else {
        let is_file = |name: &String| Address::of(name).is_none();
        let names_files = |reference: &Reference| match &reference.names {
            Some(names) => names.iter().any(is_file),
            None => true,
        };
        let nests = |names: &Names| names.captures || names.references.iter().any(names_files);
        return if outline.names().iter().any(nests) { HEAVY } else { LIGHT };
    };
    let own = &program.names()[..program.own_units().len()];
    let is_computed = |names: &Names| names.references.iter().any(|reference| reference.names.is_none());
    let nests = |names: &Names| names.captures || is_computed(names);
    if own.iter().any(nests) || !program.include_circles().is_empty() {
        return HEAVY;
    }
    let blocks: usize = own.iter().map(|names| names.blocks.len()).sum();
    (LIGHT + own.len() + blocks).min(HEAVY)
}

/// Takes back what an included prompt that has ended nested, also if it panicked.
struct Nested(usize);

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.set(self.0);
    }
}

/// Counts an included prompt of the render that is running.
fn counted(place: &Place) -> Result<(), Error> {
    let count = COUNT.get() + 1;
    COUNT.set(count);
    if count <= MAX_INCLUDED_PROMPTS {
        return Ok(());
    }
    let message = format!("the render includes other prompts more than {MAX_INCLUDED_PROMPTS} times");
    let diagnostic = Diagnostic::new(Code::TooDeep, message)
        .at(place.clone())
        .hint("include the prompt once, outside the loop, or move its text into a partial");
    Err(Error::new(ErrorKind::Limit, diagnostic))
}

thread_local! {
    /// How many renders with included prompts run inside of each other on this thread.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
    /// How many included prompts the outermost of them had so far.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// How deep the included prompts nest that are running.
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

/// Ends a render with included prompts, also if it panics.
struct Entry;

impl Drop for Entry {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get() - 1);
        if RUNNING.get() == 0 {
            COUNT.set(0);
        }
    }
}

/// Runs a render that may have included prompts, and counts them.
pub(in crate::template) fn during<T>(render: impl FnOnce() -> T) -> T {
    RUNNING.set(RUNNING.get() + 1);
    let _entry = Entry;
    render()
}
