//! Sets of variable paths that can show in a value. [`super::flow`] says how they spread over the templates of one render.
//!
//! A set may be wider than what one render does, and is never narrower. Sets and paths are bounded: a template that
//! builds longer and longer ones (`{% set x = x.a ~ x.b %}`, again and again) ends up with the bare names.
//!
//! Some paths begin with a mark and stand for what is known only when all templates are. No name begins with one.

use std::collections::BTreeSet;

/// Paths such as `user.name` or `tools[].description`.
pub(in crate::template) type Paths = BTreeSet<String>;

/// Stands for "whatever other templates show here": an included template, a parent's block.
pub(super) const OTHER: &str = "\0";

/// Begins what stands for "something of the template's own, under this name": text that comes from no variable.
pub(super) const OWN: &str = "\u{1}";

/// Begins the way into a namespace, whichever it is.
pub(super) const NAMESPACE: char = '\u{2}';

/// Before a name: whatever this template sets it to, anywhere.
pub(super) const THIS: char = '\u{3}';

/// Before a name: whatever any template sets it to.
pub(super) const ANY: char = '\u{4}';

/// Begins the way into what was imported.
pub(super) const MODULE: char = '\u{5}';

/// Before the number of a reference and a name: what the template there has under that name.
pub(super) const FROM: char = '\u{6}';

/// What a macro or a recursive loop is called with. It shows where they are called, unless a namespace has kept it.
pub(super) const PARAMETER: &str = "\u{7}";

/// Ends the path of what is held by a list or dict: one step into that leads to it.
const HELD: char = '\u{8}';

/// A mark before a name.
pub(super) fn named(mark: char, name: &str) -> String {
    format!("{mark}{name}")
}

/// What a template has under a name that is imported from it.
pub(super) fn from_module(reference: usize, name: &str) -> String {
    format!("{FROM}{reference},{name}")
}

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
    let own = own.into_iter().map(|path| path[OWN.len()..].to_owned());
    (paths, own.filter(|path| !path.is_empty()).collect())
}

/// Stands for every variable.
pub(super) const EVERYTHING: &str = ".";

/// Paths in one set before they are cut to their names.
pub(in crate::template) const MOST_PATHS: usize = 64;
/// Names in one set before it becomes [`EVERYTHING`].
const MOST_NAMES: usize = 256;
/// Bytes of one path before it is no longer lengthened.
pub(in crate::template) const LONGEST_PATH: usize = 160;

/// The name that a path begins with.
pub(in crate::template) fn root(path: &str) -> &str {
    if path == EVERYTHING {
        return path;
    }
    path.split(['.', '[', HELD]).next().unwrap_or(path)
}

/// The same paths one step further: `.name`, `[0]`, `[]`.
pub(super) fn step(paths: Paths, key: &str) -> Paths {
    bounded(paths.into_iter().map(|path| stepped(path, key)).collect())
}

/// Whether a path stands for so much that no step leads further.
fn is_whole(path: &str) -> bool {
    [OTHER, PARAMETER, EVERYTHING].contains(&path)
}

fn stepped(mut path: String, key: &str) -> String {
    if path.ends_with(HELD) {
        path.pop();
    } else if path.len() + key.len() <= LONGEST_PATH && !is_whole(&path) {
        path.push_str(key);
    }
    path
}

/// The same path further by all steps of a way into it.
pub(super) fn followed(mut path: String, mut way: &str) -> String {
    while !way.is_empty() {
        let ends = |(at, letter): (usize, char)| (at > 0 && ['.', '[', HELD].contains(&letter)).then_some(at);
        let (key, rest) = way.split_at(way.char_indices().find_map(ends).unwrap_or(way.len()));
        path = match key.starts_with(HELD) {
            true => into_held(path),
            false => stepped(path, key),
        };
        way = rest;
    }
    path
}

/// The same paths as those of what holds the values.
pub(super) fn held(paths: Paths) -> Paths {
    paths.into_iter().map(into_held).collect()
}

fn into_held(mut path: String) -> String {
    if path.len() < LONGEST_PATH && !is_whole(&path) {
        path.push(HELD);
    }
    path
}

/// The paths of what these hold, if they are made to hold something.
pub(super) fn released(paths: &Paths) -> Paths {
    paths.iter().map(|path| path.strip_suffix(HELD).unwrap_or(path).to_owned()).collect()
}

/// The path without what is known of the values that hold it.
pub(super) fn bare(path: &str) -> &str {
    path.trim_end_matches(HELD)
}

/// The same for a set that is still being put together: looked at only when it has grown well beyond its largest size.
pub(super) fn capped(paths: Paths) -> Paths {
    if paths.len() <= 2 * MOST_NAMES { paths } else { bounded(paths) }
}

/// The set itself, or its names if it has grown too large, or everything if these are too many. So a set has a largest size, and a
/// value that is put together from ever more variables does not take ever longer to follow.
pub(super) fn bounded(paths: Paths) -> Paths {
    if paths.len() <= MOST_PATHS {
        return paths;
    }
    let names = paths.iter().map(|path| root(path).to_owned());
    let (mut own, mut names): (Paths, Paths) = names.partition(|name| is_own(name));
    if own.len() > MOST_NAMES {
        own = Paths::from([OWN.to_owned()]);
    }
    if names.len() > MOST_NAMES || names.contains(EVERYTHING) {
        names = Paths::from([EVERYTHING.to_owned()]);
    }
    names.extend(own);
    names
}
