//! How what can show in a value spreads over the templates of one render.
//!
//! Templates share names: an include sees what is set around it and leaves behind what it sets, a block sees what its parent
//! has set, an import takes over what a template ends with. And they share namespaces, which are written under one name and
//! read under another. So every place is followed backwards here, over all templates at once, until nothing new is found. What
//! is put into any namespace under a name can show wherever any namespace is asked for that name: which one it is, is not known.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::names::{Names, Reference, Shared, is_counter};
use super::paths::{
    ANY, FROM, MODULE, NAMESPACE, OTHER, OWN, PARAMETER, Paths, THIS, bare, bounded, followed, is_own,
    parted, root,
};

/// Steps backwards from one path before ways into values are no longer told apart, only names.
const MOST_STEPS: usize = 2_000;

/// Steps backwards in all. Behind what is searched then, everything is said to be that shows anywhere.
const MOST_STEPS_IN_ALL: usize = 200_000;

/// Where other engines are, which have no names of their own here.
const NOWHERE: usize = usize::MAX;

/// What other engines bring into a render.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    /// What they show.
    pub(super) shown: Paths,
    /// What they put into namespaces.
    pub(super) held: HashMap<String, Paths>,
}

/// For each template, the names of the others that it may see in place of its own; `None` if there are none.
pub(super) fn shared(all: &[Names]) -> Vec<Option<Shared>> {
    let mut exporting: HashMap<&str, usize> = HashMap::new();
    let mut binding: HashMap<&str, usize> = HashMap::new();
    for names in all {
        names.exports.keys().for_each(|name| *exporting.entry(name).or_default() += 1);
        names.bound.keys().for_each(|name| *binding.entry(name).or_default() += 1);
    }
    let among = |unit: usize| {
        let names = &all[unit];
        let mut shared = Shared::default();
        for name in names.bound.keys() {
            let others = |counts: &HashMap<&str, usize>, is_mine: bool| {
                counts.get(name.as_str()).is_some_and(|count| *count > usize::from(is_mine))
            };
            if others(&exporting, names.exports.contains_key(name)) {
                shared.exported.insert(name.clone());
            }
            if !names.blocks.is_empty() && others(&binding, true) {
                shared.bound.insert(name.clone());
            }
        }
        (!shared.exported.is_empty() || !shared.bound.is_empty()).then_some(shared)
    };
    (0..all.len()).map(among).collect()
}

/// Joins what the templates of one render know of each other. `target` is the template that a reference in another one means.
pub(super) fn join(
    all: &mut [Names],
    foreign: &Foreign,
    target: impl Fn(usize, &Reference) -> Option<usize>,
) {
    let flow = Flow::new(all, foreign, &target);
    let joined: Vec<Joined> = (0..all.len()).map(|unit| flow.joined(unit)).collect();
    for (names, joined) in all.iter_mut().zip(joined) {
        let Joined { emissions, as_is, bound, held, passed, maybe_local } = joined;
        (names.emissions, names.set) = emissions.into_iter().map(parted).unzip();
        (names.as_is, names.bound, names.held, names.passed) = (as_is, bound, held, passed);
        for (read, maybe_local) in names.reads.iter_mut().zip(maybe_local) {
            read.maybe_local = maybe_local;
        }
    }
}

/// What is known of a template when all are.
struct Joined {
    emissions: Vec<Paths>,
    as_is: Vec<bool>,
    bound: HashMap<String, Paths>,
    held: HashMap<String, Paths>,
    passed: Paths,
    maybe_local: Vec<bool>,
}

/// A place on the way backwards: a template, whether the way led through a namespace, and a path as that template means it.
type Place = (usize, bool, String);

struct Flow<'n> {
    all: &'n [Names],
    foreign: &'n Foreign,
    target: &'n dyn Fn(usize, &Reference) -> Option<usize>,
    /// The templates that bind a name.
    binding: HashMap<&'n str, Vec<usize>>,
    /// What is behind places that were searched: a search that comes upon one goes no further there.
    known: RefCell<HashMap<Place, Rc<Paths>>>,
    /// Steps that were taken.
    steps: Cell<usize>,
    everything: OnceCell<Rc<Paths>>,
}

impl<'n> Flow<'n> {
    fn new(
        all: &'n [Names],
        foreign: &'n Foreign,
        target: &'n dyn Fn(usize, &Reference) -> Option<usize>,
    ) -> Flow<'n> {
        let mut binding: HashMap<&str, Vec<usize>> = HashMap::new();
        for (unit, names) in all.iter().enumerate() {
            names.bound.keys().for_each(|name| binding.entry(name).or_default().push(unit));
        }
        let (known, steps, everything) = (RefCell::default(), Cell::new(0), OnceCell::new());
        let flow = Flow { all, foreign, target, binding, known, steps, everything };
        // These lead far, and many places lead to them.
        for (kept, path) in [(false, OTHER), (true, OTHER), (true, PARAMETER)] {
            flow.behind((NOWHERE, kept, path.to_owned()));
        }
        flow
    }

    fn joined(&self, unit: usize) -> Joined {
        let names = &self.all[unit];
        let mut emissions = Vec::with_capacity(names.emissions.len());
        let mut as_is = names.as_is.clone();
        for (index, emission) in names.emissions.iter().enumerate() {
            let own = names.set.get(index).into_iter().flatten().map(|path| format!("{OWN}{path}"));
            let before: Paths = emission.iter().cloned().chain(own).collect();
            let after = self.all_of(unit, &before);
            if let Some(as_is) = as_is.get_mut(index) {
                *as_is &= after.iter().all(|path| is_own(path) || before.contains(path));
            }
            emissions.push(after);
        }
        let all = |of: &HashMap<String, Paths>| {
            of.iter().map(|(name, paths)| (name.clone(), self.all_of(unit, paths))).collect()
        };
        let is_bound = |name: &String| self.elsewhere(unit, name).next().is_some();
        Joined {
            emissions,
            as_is,
            bound: all(&names.bound),
            held: all(&names.held),
            passed: self.all_of(unit, &names.passed),
            maybe_local: names.reads.iter().map(|read| is_bound(&read.root)).collect(),
        }
    }

    /// The other templates that bind a name.
    fn elsewhere(&self, unit: usize, name: &str) -> impl Iterator<Item = usize> {
        self.binding.get(name).into_iter().flatten().copied().filter(move |other| *other != unit)
    }

    /// The variables that can show where these paths do.
    fn all_of<'p>(&self, unit: usize, paths: impl IntoIterator<Item = &'p String>) -> Paths {
        let mut found = Paths::new();
        for path in paths {
            found.extend(self.behind((unit, false, path.clone())).iter().cloned());
        }
        bounded(found)
    }

    fn behind(&self, place: Place) -> Rc<Paths> {
        if let Some(known) = self.known.borrow().get(&place) {
            return known.clone();
        }
        if self.steps.get() > MOST_STEPS_IN_ALL {
            return self.everything();
        }
        let found = self.search(&place, false).or_else(|| self.search(&place, true)).unwrap_or_default();
        let found = Rc::new(bounded(found));
        self.known.borrow_mut().insert(place, found.clone());
        found
    }

    /// Everything behind a place; `None` if it takes too many steps. Among names alone there are only so many.
    fn search(&self, place: &Place, names_alone: bool) -> Option<Paths> {
        let mut search = Search { flow: self, found: Paths::new(), open: vec![place.clone()] };
        let mut seen: HashSet<Place> = HashSet::new();
        while let Some((unit, kept, path)) = search.open.pop() {
            self.steps.set(self.steps.get() + 1);
            if self.steps.get() > MOST_STEPS_IN_ALL {
                return Some(self.everything().as_ref().clone());
            }
            if !names_alone && seen.len() > MOST_STEPS {
                return None;
            }
            // These are the same everywhere.
            let unit = if path == OTHER || path == PARAMETER { NOWHERE } else { unit };
            let path = if names_alone { root(&path).to_owned() } else { path };
            let place = (unit, kept, path);
            if seen.contains(&place) {
                continue;
            }
            match self.known.borrow().get(&place) {
                Some(known) => search.found.extend(known.iter().cloned()),
                None => search.look_behind(&place),
            }
            seen.insert(place);
        }
        Some(search.found)
    }
}

impl Flow<'_> {
    fn everything(&self) -> Rc<Paths> {
        self.everything.get_or_init(|| Rc::new(bounded(self.all_names()))).clone()
    }

    /// The names of everything that a search can find.
    fn all_names(&self) -> Paths {
        let mut paths: Vec<&String> = self.foreign.shown.iter().collect();
        paths.extend(self.foreign.held.values().flatten());
        for names in self.all {
            paths.extend(names.emissions.iter().flatten().chain(&names.passed));
            paths.extend(names.bound.values().chain(names.held.values()).flatten());
        }
        let mut found = Paths::new();
        for path in paths {
            // What is imported may be a name from around the import.
            let imported = path.split_once(',').filter(|_| path.starts_with(FROM)).map(|(_, name)| name);
            let name = root(imported.unwrap_or(path));
            // Marks are controls; what they stand for is among the others.
            if !name.starts_with(char::is_control) {
                found.insert(name.to_owned());
            }
        }
        found
    }
}

struct Search<'f, 'n> {
    flow: &'f Flow<'n>,
    found: Paths,
    open: Vec<Place>,
}

impl Search<'_, '_> {
    fn look_behind(&mut self, (unit, kept, path): &Place) {
        let (unit, kept) = (*unit, *kept);
        let rest = path.get(1..).unwrap_or_default();
        let name = root(rest);
        let way = &rest[name.len()..];
        match path.chars().next() {
            None => {}
            _ if is_own(path) => drop(self.found.insert(bare(path).to_owned())),
            _ if path == OTHER => self.open_shown(kept),
            _ if path == PARAMETER => self.open_passed(kept),
            Some(NAMESPACE) => self.open_namespaces(rest),
            Some(THIS) => self.open_bound(unit, unit, kept, name, way),
            Some(ANY) => self.open_any(unit, kept, name, way),
            Some(MODULE) => self.open_module(unit, kept, rest),
            Some(FROM) => self.open_import(unit, kept, rest),
            Some(_) => {
                let name = root(path);
                let way = &path[name.len()..];
                let mut others = self.flow.elsewhere(unit, name).peekable();
                // In a loop around an include, `loop` is that one.
                if name != "loop" || others.peek().is_none() {
                    self.found.insert(bare(path).to_owned());
                } else if way.strip_prefix('.').is_some_and(is_counter) {
                    return;
                }
                for other in others {
                    self.open_bound(unit, other, kept, name, way);
                }
            }
        }
    }

    /// What a template binds a name to, seen from another.
    fn open_bound(&mut self, from: usize, unit: usize, kept: bool, name: &str, way: &str) {
        let Some(names) = self.flow.all.get(unit) else { return };
        for path in names.bound.get(name).into_iter().flatten() {
            // What a macro is called with is seen elsewhere only if it includes something.
            if path != PARAMETER || from == unit || names.lends_parameters {
                self.open.push((unit, kept, followed(path.clone(), way)));
            }
        }
    }

    fn open_any(&mut self, from: usize, kept: bool, name: &str, way: &str) {
        for unit in self.flow.binding.get(name).into_iter().flatten() {
            self.open_bound(from, *unit, kept, name, way);
        }
    }

    fn open_shown(&mut self, kept: bool) {
        let flow = self.flow;
        for (unit, names) in flow.all.iter().enumerate() {
            let shown = names.emissions.iter().flatten();
            self.open.extend(shown.map(|path| (unit, kept, path.clone())));
        }
        self.open.extend(flow.foreign.shown.iter().map(|path| (NOWHERE, kept, path.clone())));
    }

    /// What is passed shows where it is passed; but a namespace keeps it.
    fn open_passed(&mut self, kept: bool) {
        for (unit, names) in self.flow.all.iter().enumerate().filter(|_| kept) {
            self.open.extend(names.passed.iter().map(|path| (unit, true, path.clone())));
        }
    }

    fn open_namespaces(&mut self, way: &str) {
        let attribute = way.strip_prefix('.').map(root);
        let rest = attribute.map_or("", |name| &way[1 + name.len()..]);
        let own = self.flow.all.iter().map(|names| &names.held).enumerate();
        for (unit, held) in own.chain([(NOWHERE, &self.flow.foreign.held)]) {
            for (name, paths) in held {
                let way = match attribute {
                    // Under any name there may be this one.
                    Some(_) if name.is_empty() => way,
                    Some(attribute) if attribute == name => rest,
                    Some(_) => continue,
                    None => "",
                };
                self.open.extend(paths.iter().map(|path| (unit, true, followed(path.clone(), way))));
            }
        }
    }

    fn open_module(&mut self, unit: usize, kept: bool, way: &str) {
        if let Some(name) = way.strip_prefix('.').map(root)
            && self.flow.binding.contains_key(name)
        {
            return self.open_any(unit, kept, name, &way[1 + name.len()..]);
        }
        self.open_shown(kept);
        let flow = self.flow;
        for (other, names) in flow.all.iter().enumerate() {
            for name in names.exports.keys() {
                self.open_bound(unit, other, kept, name, "");
            }
        }
    }

    fn open_import(&mut self, unit: usize, kept: bool, rest: &str) {
        let Some((number, path)) = rest.split_once(',') else { return };
        let name = root(path);
        self.open_module(unit, kept, &format!(".{path}"));
        let references = self.flow.all.get(unit).map(|names| names.references.as_slice()).unwrap_or_default();
        let reference = number.parse().ok().and_then(|number: usize| references.get(number));
        let target = reference.and_then(|reference| (self.flow.target)(unit, reference));
        let exports = target.and_then(|target| self.flow.all.get(target)).map(|names| &names.exports);
        // What the template there does not set is looked for around it.
        if exports.and_then(|exports| exports.get(name)) != Some(&true) {
            self.open.push((unit, kept, path.to_owned()));
        }
    }
}
