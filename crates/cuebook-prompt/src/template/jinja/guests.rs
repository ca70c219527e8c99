//! Guests: what a template includes and another engine renders, as in `{% include "prompt:greet" %}`.
//!
//! A guest sees the scope of the render, and above it what the template has set where it is included. The engine takes over its text
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
use crate::template::lent::{self, Bound, Lent, Way};
use crate::template::unit::{Unit, Units};
use crate::variables::Scope;

/// How many guests one render may have, those of its guests counted in: each may take as many steps as the render itself.
const MOST_GUESTS: usize = 1_000;

/// A guest may nest this much less deeply than what includes it: guests run inside of each other, on one stack.
#[doc(hidden)]
pub const GUEST_SHARE: usize = 4;

/// How much all guests may weigh that run inside of each other. One that could nest as deeply as it may weighs [`HEAVY`].
const MOST_NESTED: usize = GUEST_SHARE * HEAVY;
const HEAVY: usize = 128;
const LIGHT: usize = 4;

/// A guest of a template.
pub(super) struct Guest {
    compiled: Arc<dyn Compiled>,
    /// Where it is first included.
    place: Place,
    /// Names that it reads and the template sets somewhere.
    local: HashSet<String>,
    /// Where it is included.
    sites: Vec<Site>,
    /// What has been set at each of these.
    lent: Lent,
}

/// A place where a guest is included.
struct Site {
    /// The numbers of a unit and of a reference in it.
    at: (usize, usize),
    place: Place,
    /// What has been set there.
    lent: Lent,
}

/// All guests of a program.
#[derive(Default)]
pub(super) struct Guests(Vec<Guest>);

impl Guests {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds one, and gives back its number. The same guest is there once, wherever it is included.
    pub(super) fn add(&mut self, compiled: Arc<dyn Compiled>, place: Place, at: (usize, usize)) -> usize {
        let known = self.0.iter().position(|guest| Arc::ptr_eq(&guest.compiled, &compiled));
        let number = known.unwrap_or_else(|| {
            let (place, lent) = (place.clone(), Lent::default());
            self.0.push(Guest { compiled, place, local: HashSet::new(), sites: Vec::new(), lent });
            self.0.len() - 1
        });
        self.0[number].sites.push(Site { at, place, lent: Lent::default() });
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
        let mut ways: Vec<Way> = Vec::new();
        for (unit, names) in names.iter().enumerate() {
            for reference in &names.references {
                let target = reference.names.iter().flatten().find_map(|name| target(unit, name));
                ways.extend(target.map(|target| (unit, target, reference.lent.clone())));
            }
        }
        let inherited = lent::inherited(names.len(), roots, &ways);
        for guest in &mut self.0 {
            let mut on_every_way: Option<Lent> = None;
            for Site { at: (unit, reference), place, lent } in &mut guest.sites {
                let here = names[*unit].references[*reference].lent.inside(&inherited[*unit]);
                loader.lends(place, &here);
                on_every_way = Some(on_every_way.map_or_else(|| here.clone(), |before| before.or(&here)));
                *lent = here;
            }
            guest.lent = on_every_way.unwrap_or_default();
        }
    }

    /// Notes which of the names that the templates set a guest may mean.
    pub(super) fn join(&mut self, names: &[Names]) {
        for guest in &mut self.0 {
            let outline = guest.compiled.outline();
            for read in outline.names().iter().flat_map(|names| &names.reads) {
                if names.iter().any(|names| names.bound.contains_key(&read.root)) {
                    guest.local.insert(read.root.clone());
                }
            }
        }
    }

    /// Notes that a guest may mean any name that it reads: it is not known which templates lead to it.
    pub(super) fn ask_for_every_name(&mut self) {
        for guest in &mut self.0 {
            let outline = guest.compiled.outline();
            let reads = outline.names().iter().flat_map(|names| &names.reads);
            guest.local.extend(reads.map(|read| read.root.clone()));
        }
    }

    /// What they mention, for those who look at the template that includes them.
    pub(super) fn names(&self) -> Vec<Names> {
        let mut all = Vec::new();
        for guest in &self.0 {
            for names in guest.compiled.outline().names() {
                let mut names = names.clone();
                // What the template has surely set means that and nothing else.
                names.reads.retain(|read| guest.lent.of(&read.root) != Bound::Surely);
                for read in &mut names.reads {
                    read.maybe_local |= guest.local.contains(&read.root);
                }
                all.push(names);
            }
        }
        all
    }

    /// The texts that they write from.
    pub(super) fn units(&self) -> Vec<Unit> {
        self.0.iter().flat_map(|guest| guest.compiled.outline().units().to_vec()).collect()
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
        let Some(guest) = self.0.get(number) else {
            return Err(missing());
        };
        let mut set: BTreeMap<&str, Set> = BTreeMap::new();
        let mut lent: Vec<(String, Option<serde_json::Value>)> = Vec::new();
        for name in &guest.local {
            let Some(found) = at.lent(name) else { continue };
            lent.push((name.clone(), found.value.clone()));
            let paths = found.paths.iter().map(ToString::to_string).collect();
            set.insert(name, Set { paths, whole: found.whole });
        }
        let scope = if lent.is_empty() { scope.clone() } else { scope.lending(lent) };
        let rendered = inside(&*guest.compiled, &guest.place, || guest.compiled.render(&scope, limit));
        let output = rendered.map_err(|error| {
            let places = match &place {
                Some(place) => vec![place],
                None => guest.places_of(&error),
            };
            error.map(|told| match told.related.len() >= errors::MOST_CALLERS {
                true => told,
                false => included_at(told, &places),
            })
        })?;
        Ok(seen_from_outside(output, &set))
    }
}

/// The error for a number that no guest has.
pub(super) fn missing() -> Error {
    let diagnostic = Diagnostic::new(Code::RenderFailed, "internal error: there is no such guest");
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

/// The same finding with the places where the guest may have been included that it is about.
fn included_at(told: Diagnostic, places: &[&Place]) -> Diagnostic {
    let Some((first, others)) = places.split_first() else { return told };
    let related = told.related.len();
    let mut told = told.included(first);
    if told.related.len() > related {
        for place in others.iter().take(errors::MOST_CALLERS) {
            told = told.related((*place).clone(), "or here");
        }
    }
    told
}

impl Guest {
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
        let fits = |site: &&Site| {
            missing.iter().all(|name| site.lent.of(name) != Bound::Surely || !self.reads(name))
                && invalid.iter().all(|name| site.lent.of(name) != Bound::Never || !self.reads(name))
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

/// Renders a guest of the render that is running, if there are not too many of them already.
pub(in crate::template) fn inside<T>(
    guest: &dyn Compiled,
    place: &Place,
    render: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    counted(place)?;
    let outline = guest.outline();
    let weight = weight(&*outline);
    let before = NESTED.get();
    if before + weight > MOST_NESTED {
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

/// Takes back what a guest that has ended nested, also if it panicked.
struct Nested(usize);

impl Drop for Nested {
    fn drop(&mut self) {
        NESTED.set(self.0);
    }
}

/// Counts a guest of the render that is running.
fn counted(place: &Place) -> Result<(), Error> {
    let count = COUNT.get() + 1;
    COUNT.set(count);
    if count <= MOST_GUESTS {
        return Ok(());
    }
    let message = format!("the render includes other prompts more than {MOST_GUESTS} times");
    let diagnostic = Diagnostic::new(Code::TooDeep, message)
        .at(place.clone())
        .hint("include the prompt once, outside the loop, or move its text into a partial");
    Err(Error::new(ErrorKind::Limit, diagnostic))
}

thread_local! {
    /// How many renders with guests run inside of each other on this thread.
    static RUNNING: Cell<usize> = const { Cell::new(0) };
    /// How many guests the outermost of them had so far.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// How deep the guests nest that are running.
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

/// Ends a render with guests, also if it panics.
struct Entry;

impl Drop for Entry {
    fn drop(&mut self) {
        RUNNING.set(RUNNING.get() - 1);
        if RUNNING.get() == 0 {
            COUNT.set(0);
        }
    }
}

/// Runs a render that may have guests, and counts them.
pub(in crate::template) fn during<T>(render: impl FnOnce() -> T) -> T {
    RUNNING.set(RUNNING.get() + 1);
    let _entry = Entry;
    render()
}
