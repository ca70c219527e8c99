//! What a text has set where it includes another prompt, known before it is rendered.
//!
//! The other prompt takes these values instead of the caller's, so what it asks for need not be asked of the caller. Only what is
//! certain counts as certain: a name that one branch of an `if` sets may be set, and so may every name inside of a Mustache section.
//! Whether a value is really there is seen while the template runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Whether a name has been set at some place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum SetState {
    /// It has not.
    #[default]
    Never,
    /// That depends on the render.
    Perhaps,
    /// It has.
    Surely,
}

/// The names that have been set at some place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SetNames {
    names: BTreeMap<String, SetState>,
    others: SetState,
}

impl SetNames {
    /// These names.
    pub(crate) fn new(names: impl IntoIterator<Item = (String, SetState)>) -> SetNames {
        SetNames { names: names.into_iter().collect(), others: SetState::Never }
    }

    /// Any name may have been set.
    #[doc(hidden)]
    pub fn anything() -> SetNames {
        SetNames { names: BTreeMap::new(), others: SetState::Perhaps }
    }

    /// Whether a name has been set.
    pub fn of(&self, name: &str) -> SetState {
        self.names.get(name).copied().unwrap_or(self.others)
    }

    /// What has been set at a place inside of another one: what either of them says.
    pub(crate) fn inside(&self, outer: &SetNames) -> SetNames {
        self.merged(outer, SetState::max)
    }

    /// What has been set if it is not known which of two ways led here: what both of them say.
    pub(crate) fn or(&self, other: &SetNames) -> SetNames {
        self.merged(other, SetState::min)
    }

    fn merged(&self, other: &SetNames, choose: impl Fn(SetState, SetState) -> SetState) -> SetNames {
        let others = choose(self.others, other.others);
        let names: BTreeSet<&String> = self.names.keys().chain(other.names.keys()).collect();
        let chosen = names.into_iter().map(|name| (name.clone(), choose(self.of(name), other.of(name))));
        SetNames { names: chosen.filter(|(_, bound)| *bound != others).collect(), others }
    }
}

/// A way from one text of a render into another, by their numbers, and what has been set where it leads there.
pub(in crate::template) type IncludeEdge = (usize, usize, Arc<SetNames>);

/// Rounds of [`inherited`] at most; each carries names over one more border between texts.
const MAX_ROUNDS: usize = 64;

/// What has been set where each of some texts begins, on whatever way it is reached. Nothing leads to the first `roots` of them but
/// the render itself.
pub(in crate::template) fn inherited(texts: usize, roots: usize, ways: &[IncludeEdge]) -> Vec<SetNames> {
    let mut found: Vec<Option<SetNames>> =
        (0..texts).map(|text| (text < roots).then(SetNames::default)).collect();
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for (from, to, set_names) in ways {
            let Some(here) = found.get(*from).cloned().flatten().map(|outer| set_names.inside(&outer)) else {
                continue;
            };
            let Some(before) = found.get_mut(*to) else { continue };
            let now = before.as_ref().map_or_else(|| here.clone(), |before| before.or(&here));
            changed |= before.as_ref() != Some(&now);
            *before = Some(now);
        }
        if !changed {
            return found.into_iter().map(Option::unwrap_or_default).collect();
        }
    }
    // Includes are never this deep; at this depth the caller is asked for more names than necessary.
    vec![SetNames::default(); texts]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set_names(names: &[(&str, SetState)]) -> Arc<SetNames> {
        Arc::new(SetNames::new(names.iter().map(|(name, bound)| ((*name).to_owned(), *bound))))
    }

    #[test]
    fn a_name_is_set_only_if_every_path_sets_it() {
        let (a, b) = (
            set_names(&[("a", SetState::Surely)]),
            set_names(&[("b", SetState::Surely), ("a", SetState::Perhaps)]),
        );
        let found = inherited(3, 1, &[(0, 1, a.clone()), (1, 2, b.clone())]);
        assert_eq!((found[1].of("a"), found[1].of("b")), (SetState::Surely, SetState::Never));
        assert_eq!((found[2].of("a"), found[2].of("b")), (SetState::Surely, SetState::Surely));
        let found = inherited(2, 1, &[(0, 1, a), (0, 1, b)]);
        assert_eq!((found[1].of("a"), found[1].of("b")), (SetState::Perhaps, SetState::Never));
    }

    #[test]
    fn texts_that_include_each_other_end() {
        let a = set_names(&[("a", SetState::Surely)]);
        let found = inherited(2, 1, &[(0, 1, a.clone()), (1, 1, a.clone()), (1, 0, a)]);
        assert_eq!((found[0].of("a"), found[1].of("a")), (SetState::Never, SetState::Surely));
    }

    #[test]
    fn any_name_may_be_set_inside_of_a_section() {
        let inner = set_names(&[("a", SetState::Surely)]).inside(&SetNames::anything());
        assert_eq!((inner.of("a"), inner.of("b")), (SetState::Surely, SetState::Perhaps));
        assert_eq!(inner.or(&SetNames::default()).of("a"), SetState::Never);
    }
}
