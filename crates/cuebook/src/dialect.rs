//! Read: from a prompt's files to a [`Prompt`](crate::prompt::Prompt). One module per notation.
//!
//! Reading executes nothing. What a file computes instead of writing out is an error with its place.

pub mod directive;
pub mod prompty;
pub mod sections;
pub mod template;

pub use crate::notation::{knowledge, python, tool};

use crate::error::{Diagnostic, Result};
use crate::library::{Candidate, Defaults, Library, LibraryLoader};
use crate::prompt::{Dialect, Metadata, Prompt};
use crate::source::Place;

/// A prompt as it was read, and what is odd about its files without keeping it from working.
pub(crate) struct Read {
    pub(crate) prompt: Prompt,
    /// The parent that METADATA names, and where.
    pub(crate) extends: Option<(String, Place)>,
    pub(crate) notes: Vec<Diagnostic>,
    /// The tree, if it is one of sections.
    pub(crate) sections: Option<Box<sections::File>>,
    /// The directive, if it is one.
    pub(crate) directive: Option<Box<directive::File>>,
}

/// Reads the prompt that a candidate offers.
pub(crate) fn read(
    id: &str,
    candidate: &Candidate,
    loader: &LibraryLoader,
    defaults: &Defaults,
) -> Result<Read> {
    match candidate.dialect {
        Dialect::Template => template::read(id, candidate, loader, defaults),
        Dialect::Prompty => prompty::read(id, candidate, loader, defaults),
        Dialect::Sections => sections::read(id, candidate, loader, defaults),
        Dialect::Directive => directive::read_candidate(id, candidate, loader, defaults),
    }
}

/// The version that a candidate declares, for lists; nothing else of it is read.
pub(crate) fn version(candidate: &Candidate, library: &Library, limit: u64) -> Result<String> {
    match candidate.dialect {
        Dialect::Template => template::version(candidate, limit),
        Dialect::Prompty => Ok(prompty::summary("", candidate, library, &Defaults::default())?.version),
        Dialect::Sections => Ok(sections::summary("", candidate, limit, &Defaults::default())?.version),
        Dialect::Directive => Ok(directive::summary("", candidate, limit, &Defaults::default())?.version),
    }
}

/// Name, type, version and tags of a candidate without its template.
pub(crate) fn summary(
    id: &str,
    candidate: &Candidate,
    library: &Library,
    defaults: &Defaults,
) -> Result<Metadata> {
    let limit = library.file_limit()?;
    match candidate.dialect {
        Dialect::Template => template::summary(id, candidate, limit, defaults),
        Dialect::Prompty => prompty::summary(id, candidate, library, defaults),
        Dialect::Sections => sections::summary(id, candidate, limit, defaults),
        Dialect::Directive => directive::summary(id, candidate, limit, defaults),
    }
}

/// Where the front matter of a file stands, if it has any.
pub fn front_range(source: &std::sync::Arc<crate::source::Source>) -> Option<std::ops::Range<usize>> {
    prompty::split(source).ok()?.front_matter
}
