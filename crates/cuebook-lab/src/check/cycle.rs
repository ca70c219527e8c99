#![doc = include_str!("../../../cuebook-text/src/error/pages/CB307.md")]

use std::collections::BTreeSet;

use crate::error::{Code, Diagnostic};
use crate::prepared::Prepared;
use crate::template::jinja::Program;

/// Templates that include each other in a circle.
pub(super) fn check(prepared: &Prepared, _namespaces: &[String]) -> Vec<Diagnostic> {
    prepared.outline().jinja().map(Program::include_circles).unwrap_or_default()
}

/// The places that a circle leads through, wherever it was found from; `None` if they are not all known.
pub(super) fn places(finding: &Diagnostic) -> Option<BTreeSet<(String, usize)>> {
    let here = finding.place.as_ref().filter(|_| finding.code == Code::IncludeCycle)?;
    // A prompt that leads into a circle from outside is reported as well, but is not one of its places.
    let on_the_way = finding.related.iter().filter(|(_, label)| label != "included here");
    let places = on_the_way.map(|(place, _)| place).chain([here]);
    let places: BTreeSet<_> = places.map(|place| (place.file().to_owned(), place.range().start)).collect();
    // Of a circle of files, only one place is reported, which others may share.
    (places.len() > 1).then_some(places)
}
