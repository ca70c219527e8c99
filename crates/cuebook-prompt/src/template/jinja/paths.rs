//! Sets of variable paths that can show in a value, as far as that is known before a render.
//!
//! Sets and paths are bounded: a template that builds longer and longer ones (`{% set x = x.a ~ x.b %}`, again and again) ends up
//! with the bare names.

use std::collections::BTreeSet;

/// Paths such as `user.name` or `tools[].description`.
pub(in crate::template) type Paths = BTreeSet<String>;

/// Stands for every variable.
const EVERYTHING: &str = ".";

/// Paths in one set before they are cut to their names.
pub(in crate::template) const MAX_PATHS: usize = 64;
/// Names in one set before it becomes [`EVERYTHING`].
const MAX_NAMES: usize = 256;
/// Bytes of one path before it is no longer lengthened.
pub(in crate::template) const LONGEST_PATH: usize = 160;

/// The name that a path begins with.
pub(in crate::template) fn root(path: &str) -> &str {
    if path == EVERYTHING {
        return path;
    }
    path.split(['.', '[']).next().unwrap_or(path)
}

/// The same paths one step further: `.name`, `[0]`, `[]`.
pub(super) fn step(paths: Paths, key: &str) -> Paths {
    let further = |mut path: String| {
        if path.len() + key.len() <= LONGEST_PATH && path != EVERYTHING {
            path.push_str(key);
        }
        path
    };
    bounded(paths.into_iter().map(further).collect())
}

/// The same for a set that is still being put together: looked at only when it has grown well beyond its largest size.
pub(super) fn capped(paths: Paths) -> Paths {
    if paths.len() <= 2 * MAX_NAMES { paths } else { bounded(paths) }
}

/// The set itself, or its names if it has grown too large, or everything if these are too many. So a set has a largest size, and a
/// value that is put together from ever more variables does not take ever longer to follow.
pub(super) fn bounded(paths: Paths) -> Paths {
    if paths.len() <= MAX_PATHS {
        return paths;
    }
    let names: Paths = paths.iter().map(|path| root(path).to_owned()).collect();
    if names.len() > MAX_NAMES || names.contains(EVERYTHING) {
        return Paths::from([EVERYTHING.to_owned()]);
    }
    names
}
