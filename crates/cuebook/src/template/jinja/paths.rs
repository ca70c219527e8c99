//! Sets of variable paths that can show in a value, and how they spread over the templates of one render.
//!
//! A set may be wider than what one render does, and is never narrower. Sets and paths are bounded: a template that
//! builds longer and longer ones (`{% set x = x.a ~ x.b %}`, again and again) ends up with the bare names.

use std::collections::{BTreeSet, HashMap};

use super::names::Names;

/// Paths such as `user.name` or `tools[].description`.
pub(in crate::template) type Paths = BTreeSet<String>;

/// Stands for "whatever other templates show here": an included template, a parent's block, an imported macro.
pub(super) const OTHER: &str = "\0";

/// Begins what stands for "something of the template's own, under this name": text that comes from no variable.
const OWN: char = '\u{1}';

/// Whether a path stands for something that a template has set and that comes from no variable.
pub(super) fn is_own(path: &str) -> bool {
    path.starts_with(OWN)
}

/// What a name can show that is set to this: if there is no variable in it, something of the template's own.
pub(super) fn or_own(name: &str, paths: Paths) -> Paths {
    if paths.is_empty() { Paths::from([format!("{OWN}{name}")]) } else { paths }
}

/// What shows of a value where others are joined to it: it matters that it may be the template's own only if it may be something else.
pub(super) fn beside_others(paths: Paths) -> Paths {
    if paths.iter().all(|path| is_own(path)) { Paths::new() } else { paths }
}

/// The paths of variables, and those of what templates have set instead. What is surely a template's own is of no variable.
pub(super) fn parted(paths: Paths) -> (Vec<String>, Vec<String>) {
    let (own, paths): (Vec<String>, Vec<String>) =
        beside_others(paths).into_iter().partition(|path| is_own(path));
    (paths, own.into_iter().map(|path| path[OWN.len_utf8()..].to_owned()).collect())
}

/// Paths in one set before they are cut to their names.
pub(in crate::template) const MOST_PATHS: usize = 64;
/// Bytes of one path before it is no longer lengthened.
pub(in crate::template) const LONGEST_PATH: usize = 160;

/// The name that a path begins with.
pub(in crate::template) fn root(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or(path)
}

/// The same paths one step further: `.name`, `[0]`, `[]`.
pub(super) fn step(paths: Paths, key: &str) -> Paths {
    let lengthen = |path: String| match path.len() + key.len() <= LONGEST_PATH && path != OTHER {
        true => path + key,
        false => path,
    };
    bounded(paths.into_iter().map(lengthen).collect())
}

/// The set itself, or its names if it has grown too large.
pub(super) fn bounded(paths: Paths) -> Paths {
    if paths.len() <= MOST_PATHS {
        return paths;
    }
    paths.iter().map(|path| root(path).to_owned()).collect()
}

/// Rounds of [`join`] at most; each carries names over one more border between templates.
const MOST_ROUNDS: usize = 4;

/// Joins what the templates of one render know of each other: a name that one template sets, loops over or imports can be
/// what another one means, if it is included there or shares its blocks. `guests` is what other engines show in the same render.
pub(super) fn join(all: &mut [Names], guests: &Paths) {
    let bound: Vec<HashMap<String, Paths>> = all.iter().map(|names| names.bound.clone()).collect();
    let elsewhere = |unit: usize, name: &str| -> Option<Paths> {
        let mut paths: Option<Paths> = None;
        for (other, names) in bound.iter().enumerate() {
            if other != unit
                && let Some(known) = names.get(name)
            {
                paths.get_or_insert_default().extend(known.iter().cloned());
            }
        }
        paths
    };
    for _ in 0..MOST_ROUNDS {
        let shown: Paths = bounded(
            all.iter()
                .flat_map(|names| &names.emissions)
                .flatten()
                .filter(|p| *p != OTHER)
                .chain(guests)
                .cloned()
                .collect(),
        );
        let mut changed = false;
        for (unit, names) in all.iter_mut().enumerate() {
            for (index, emission) in names.emissions.iter_mut().enumerate() {
                let mut wider: Paths = Paths::new();
                for path in emission.iter() {
                    let name = root(path);
                    if path == OTHER {
                        wider.extend(shown.iter().cloned());
                    } else if let Some(sources) = elsewhere(unit, name) {
                        if let Some(as_is) = names.as_is.get_mut(index) {
                            *as_is &= sources.iter().all(|source| is_own(source));
                        }
                        for source in sources {
                            match source == OTHER {
                                true => wider.extend(shown.iter().cloned()),
                                false => wider.extend(step(Paths::from([source]), &path[name.len()..])),
                            }
                        }
                    }
                }
                let before = emission.len();
                let mut paths: Paths = emission.drain(..).collect();
                paths.extend(wider);
                let (paths, own) = parted(bounded(paths));
                *emission = paths;
                changed |= emission.len() != before;
                let Some(set) = names.set.get_mut(index) else { continue };
                set.extend(own);
                set.sort();
                set.dedup();
            }
        }
        if !changed {
            break;
        }
    }
    for (unit, names) in all.iter_mut().enumerate() {
        for emission in &mut names.emissions {
            emission.retain(|path| path != OTHER);
        }
        for read in &mut names.reads {
            read.maybe_local = elsewhere(unit, &read.root).is_some();
        }
    }
}
