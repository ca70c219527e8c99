//! Vocabularies: files that are wrong, and aliases that do nothing ([CB106](crate::Code::BadVocab)).

use std::sync::Arc;

use crate::book::Book;
use crate::error::{Diagnostic, Result};
use crate::library::{Survey, idle};
use crate::source::Source;

/// Looks at the user's vocabulary, and at those that packs have in a file of its own.
pub(super) fn check(book: &Book, survey: &Survey) -> Result<Vec<Diagnostic>> {
    let library = book.library();
    let ids: Vec<&str> = survey.ids().map(|(id, _)| id).collect();
    let packs = survey.roots().iter().filter_map(|root| root.pack_id());
    let files = std::iter::once(library.user_vocab()).chain(packs.map(|pack| library.pack_vocab_file(pack)));
    let look = |file: Result<Option<Arc<Source>>>| match file? {
        Some(source) => idle(&source, |id| survey.offers(id) > 0, &ids),
        None => Ok(Vec::new()),
    };
    Ok(files.flat_map(|file| look(file).unwrap_or_else(|error| error.into_diagnostics())).collect())
}
