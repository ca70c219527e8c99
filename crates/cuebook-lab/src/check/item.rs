//! Tools ([CB328](crate::Code::BadTool)) and knowledge ([CB327](crate::Code::BadKnowledge)) that cannot be read or signed.

use std::path::Path;

use crate::actions::sign;
use crate::book::Book;
use crate::error::{Diagnostic, Result};
use crate::items::{ItemType, SpaceKind, Spaces};
use crate::library::Survey;

const KINDS: [ItemType; 2] = [ItemType::Tool, ItemType::Knowledge];

/// Looks at the items of the project and of the user.
pub(super) fn check(book: &Book, _survey: &Survey) -> Result<Vec<Diagnostic>> {
    let spaces = book.library().spaces();
    let mut findings = Vec::new();
    for space in spaces.all().iter().filter(|space| space.kind() != SpaceKind::System) {
        for kind in KINDS {
            findings.extend(spaces.walk(kind, space)?.iter().flat_map(sign::findings));
        }
    }
    Ok(findings)
}

/// What is wrong with a file, if it is a tool or a knowledge item.
pub(super) fn check_file(spaces: &Spaces, path: &Path) -> Option<Vec<Diagnostic>> {
    let located = KINDS.into_iter().find_map(|kind| spaces.at_path(kind, path))?;
    Some(sign::findings(&located))
}
