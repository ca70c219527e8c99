//! Guests: what a template includes and another engine renders, as in `{% include "prompt:greet" %}`.
//!
//! For the engine a guest is a template of one tag, which calls a function of ours. What that returns is printed from its own memory,
//! so the [`writer`](super::writer) knows it by its address, as it knows the author's literals, and takes over who wrote what. Where
//! text is captured it is copied, and is a value from then on, like everything that is captured.
//!
//! A guest sees the scope of the render, and above it what the template has set where it is included. What renders need for that is
//! kept per render: a render runs on one thread from its beginning to its end.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use minijinja::value::{Object, ObjectRepr};
use minijinja::{Environment, State, Value};

use super::flow::Foreign;
use super::names::{Names, Reference};
use super::paths::{self, Paths};
use super::{computed, errors};
use crate::error::{Code, Diagnostic, Error, ErrorKind};
use crate::source::Place;
use crate::template::address::Address;
use crate::template::annex::Annex;
use crate::template::engine::{Compiled, Loader, Outline, Output};
use crate::template::lent::{self, Bound, Lent, Way};
use crate::template::sink::{Full, Sink};
use crate::template::unit::{Unit, Units};
use crate::variables::Scope;

/// The function that a guest's template calls.
const FUNCTION: &str = "__cue_guest";

/// How many guests one render may have, those of its guests counted in: each may take as many steps as the render itself.
const MOST_GUESTS: usize = 1_000;

/// A guest may nest this much less deeply than what includes it: guests run inside of each other, on one stack.
pub(crate) const GUEST_SHARE: usize = 4;

/// How much all guests may weigh that run inside of each other. One that could nest as deeply as it may weighs [`HEAVY`].
const MOST_NESTED: usize = GUEST_SHARE * HEAVY;
const HEAVY: usize = 128;
const LIGHT: usize = 4;

/// A guest of a template.
pub(super) struct Guest {
    compiled: Arc<dyn Compiled>,
    /// Where it is first included.
    place: Place,
    /// Names that it reads and the template sets somewhere, with the paths of what can show in them.
    local: HashMap<String, Paths>,
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
    /// The template of a guest.
    pub(super) fn template(number: usize) -> String {
        // No file has such a name.
        format!("\0guest:{number}")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds one, and gives back its number. The same guest is there once, wherever it is included.
    pub(super) fn add(&mut self, compiled: Arc<dyn Compiled>, place: Place, at: (usize, usize)) -> usize {
        let known = self.0.iter().position(|guest| Arc::ptr_eq(&guest.compiled, &compiled));
        let number = known.unwrap_or_else(|| {
            let (place, lent) = (place.clone(), Lent::default());
            self.0.push(Guest { compiled, place, local: HashMap::new(), sites: Vec::new(), lent });
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

    /// Everything that can show in what they write.
    pub(super) fn shown(&self) -> Paths {
        let mut shown = Paths::new();
        for outline in self.0.iter().map(|guest| guest.compiled.outline()) {
            let emissions = outline.units().iter().flat_map(Unit::emissions);
            shown.extend(emissions.flat_map(|emission| emission.paths.iter().cloned()));
        }
        shown
    }

    /// What they bring into the render.
    pub(super) fn brought(&self) -> Foreign {
        let mut held: HashMap<String, Paths> = HashMap::new();
        let outlines = self.0.iter().map(|guest| guest.compiled.outline());
        for names in outlines.flat_map(|outline| outline.names().to_vec()) {
            for (attribute, paths) in names.held {
                held.entry(attribute).or_default().extend(paths);
            }
        }
        Foreign { shown: self.shown(), held }
    }

    /// Notes which of the names that the templates set a guest may mean.
    pub(super) fn join(&mut self, names: &[Names]) {
        for guest in &mut self.0 {
            let outline = guest.compiled.outline();
            for read in outline.names().iter().flat_map(|names| &names.reads) {
                for bound in names.iter().filter_map(|names| names.bound.get(&read.root)) {
                    let paths = guest.local.entry(read.root.clone()).or_default();
                    for path in bound {
                        // That a value is the template's own is seen when the guest is rendered.
                        if !paths::is_own(path) {
                            paths.insert(path.clone());
                        }
                    }
                }
            }
        }
    }

    /// What they mention, for whoever looks at the template that includes them.
    pub(super) fn names(&self) -> Vec<Names> {
        let mut all = Vec::new();
        for guest in &self.0 {
            for names in guest.compiled.outline().names() {
                let mut names = names.clone();
                // What the template has surely set means that and nothing else.
                names.reads.retain(|read| guest.lent.of(&read.root) != Bound::Surely);
                for read in &mut names.reads {
                    read.maybe_local |= guest.local.contains_key(&read.root);
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

    /// Puts the guests into an environment.
    pub(super) fn enter(
        self: &Arc<Self>,
        environment: &mut Environment<'static>,
    ) -> Result<(), minijinja::Error> {
        for number in 0..self.0.len() {
            let text = format!("{{{{ {FUNCTION}({number}) }}}}");
            environment.add_template_owned(Guests::template(number), text)?;
        }
        if !self.is_empty() {
            let guests = self.clone();
            let call = move |state: &mut State<'_, '_>, number: usize| guests.call(state, number);
            environment.add_function(FUNCTION, call);
        }
        Ok(())
    }

    fn call(&self, state: &mut State<'_, '_>, number: usize) -> Result<Value, minijinja::Error> {
        let unknown =
            || minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "there is no such guest");
        let guest = self.0.get(number).ok_or_else(unknown)?;
        let (scope, limit) = RUNNING
            .with_borrow(|running| running.last().map(|render| (render.scope.clone(), render.limit)))
            .ok_or_else(unknown)?;
        let mut set = Vec::new();
        let mut lent: Vec<(String, Value)> = Vec::new();
        for name in guest.local.keys() {
            let Some(value) = state.lookup(name) else { continue };
            // The same value may be the scope's own, which needs no lending; or the template has set just that.
            let may_be_own = scope.get_value_by_str(name).as_ref() == Some(&value);
            if may_be_own && guest.lent.of(name) != Bound::Surely {
                continue;
            }
            if !may_be_own && !value.is_undefined() {
                set.push(name.clone());
            }
            lent.push((name.clone(), value));
        }
        let scope = if lent.is_empty() { scope } else { scope.lending(lent) };
        let rendered = inside(&*guest.compiled, &guest.place, || guest.compiled.render(&scope, limit))
            .map_err(|error| {
                let places = guest.places_of(&error);
                error.map(|told| match told.related.len() >= errors::MOST_CALLERS {
                    true => told,
                    false => included_at(told, &places),
                })
            });
        let output = rendered.map_err(|error| {
            computed::fail(&Guests::template(number), error);
            minijinja::Error::new(minijinja::ErrorKind::InvalidOperation, "a guest failed")
        })?;
        let text = Arc::new(GuestText(guest.seen_from_outside(output, &set)));
        RUNNING.with_borrow_mut(|running| {
            if let Some(render) = running.last_mut() {
                render.texts.push(text.clone());
            }
        });
        Ok(Value::from_dyn_object(text))
    }
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
        self.local.contains_key(name)
    }

    /// The same text, in whose emissions what the including template has set can show. Some names it surely has: these mean that
    /// and nothing else.
    fn seen_from_outside(&self, output: Output, set: &[String]) -> Output {
        if self.local.is_empty() {
            return output;
        }
        let wider = |paths: &[String]| {
            let is_open = |path: &&String| set.iter().all(|name| name != paths::root(path));
            let mut wider: Paths = paths.iter().filter(is_open).cloned().collect();
            for path in paths {
                let root = paths::root(path);
                let set = self.local.get(root).into_iter().flatten();
                wider.extend(
                    set.flat_map(|source| paths::step(Paths::from([source.clone()]), &path[root.len()..])),
                );
            }
            paths::bounded(wider).into_iter().collect::<Vec<_>>()
        };
        widened(output, wider)
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

/// What a guest wrote, as a value that the engine can print.
#[derive(Debug)]
pub(in crate::template) struct GuestText(Output);

impl GuestText {
    /// The text. It lies in memory that lives as long as the render.
    pub(super) fn text(&self) -> &str {
        &self.0.text
    }
}

impl Object for GuestText {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.text)
    }
}

/// What a running render lends its guests, and what they wrote.
struct Render {
    scope: Arc<Scope>,
    limit: usize,
    texts: Vec<Arc<GuestText>>,
}

thread_local! {
    /// One entry per render with guests that is running on this thread; a guest may have guests.
    static RUNNING: RefCell<Vec<Render>> = const { RefCell::new(Vec::new()) };
    /// How many guests the outermost of them had so far.
    static COUNT: Cell<usize> = const { Cell::new(0) };
    /// How deep the guests nest that are running.
    static NESTED: Cell<usize> = const { Cell::new(0) };
}

/// Ends the entry of a render, also if it panics.
struct Entry;

impl Drop for Entry {
    fn drop(&mut self) {
        let is_last = RUNNING.with_borrow_mut(|running| {
            running.pop();
            running.is_empty()
        });
        if is_last {
            COUNT.set(0);
        }
    }
}

/// Runs a render that may have guests, which see this scope.
pub(in crate::template) fn during<T>(scope: &Arc<Scope>, limit: usize, render: impl FnOnce() -> T) -> T {
    let entry = Render { scope: scope.clone(), limit, texts: Vec::new() };
    RUNNING.with_borrow_mut(|running| running.push(entry));
    let _entry = Entry;
    render()
}

/// Writes what a guest wrote, if these bytes are a guest's; `None` if they are not.
pub(super) fn write(bytes: &[u8], sink: &mut Sink, annex: &mut Annex) -> Option<Result<(), Full>> {
    let (text, part) = RUNNING.with_borrow(|running| {
        running.last()?.texts.iter().find_map(|text| Some((text.clone(), part(text.text(), bytes)?)))
    })?;
    Some(annex.write(sink, &text.0, part, None))
}

/// Where in a text some bytes lie that may be its own.
fn part(text: &str, bytes: &[u8]) -> Option<Range<usize>> {
    let start = (bytes.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    let end = start.checked_add(bytes.len())?;
    (start < text.len() && end <= text.len()).then_some(start..end)
}

/// What a guest wrote, if a value is that.
pub(in crate::template::jinja) fn text_of(value: &Value) -> Option<&str> {
    value.downcast_object_ref::<GuestText>().map(GuestText::text)
}
