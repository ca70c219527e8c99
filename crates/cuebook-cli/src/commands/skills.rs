//! Skills that `sign` and `verify` take.

use cuebook::dialect::skill::SkillFolder;
use cuebook::error::{did_you_mean, nearest};
use cuebook::items::SpaceKind;
use cuebook::library::{Found, RootKind};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result};

/// The skill of a name.
pub fn named(book: &Book, id: &str) -> Result<SkillFolder> {
    match book.find(id) {
        Ok(found) => of(book, &found)?.ok_or_else(|| missing(book, id)),
        Err(error) if error.kind() == ErrorKind::PromptNotFound => Err(missing(book, id)),
        Err(error) => Err(error),
    }
}

/// The skills of the project and the user. Those of packs are their publishers'.
pub fn own(book: &Book) -> Result<Vec<SkillFolder>> {
    let mut found = Vec::new();
    for listing in book.list_prompts(None, None)? {
        if listing.problem.is_none() {
            let one = book.find(&listing.id)?;
            if !matches!(one.candidate.root.kind, RootKind::Pack(_) | RootKind::Space(SpaceKind::System)) {
                found.extend(of(book, &one)?);
            }
        }
    }
    Ok(found)
}

fn of(book: &Book, found: &Found) -> Result<Option<SkillFolder>> {
    SkillFolder::of(&found.candidate, book.library().file_limit()?)
}

fn missing(book: &Book, id: &str) -> Error {
    let skills = own(book).unwrap_or_default();
    let near = did_you_mean(&nearest(id, skills.iter().map(SkillFolder::name)));
    let hint = near.map_or_else(|| Hint::run("list the prompts", "cuebook list"), Hint::from);
    let diagnostic = Diagnostic::new(Code::ItemNotFound, format!("no skill has the name `{id}`"));
    Error::new(ErrorKind::ItemNotFound, diagnostic.hint(hint))
}
