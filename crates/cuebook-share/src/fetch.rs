//! Gets a package from its source: a path that the library can read.

use std::path::{Path, PathBuf};

use cuebook::{Result, files};

use crate::git::Checkout;
use crate::langfuse::PulledPrompt;
use crate::oci::Layer;
use crate::source::Source;

/// A package on this machine, kept for as long as it is looked at.
pub(crate) enum Fetched {
    /// A folder or an archive.
    Here(PathBuf),
    /// A commit of a git repository.
    Commit(Checkout),
    /// An archive of a registry.
    Layer(Layer),
    /// A prompt of Langfuse.
    Prompt(PulledPrompt),
}

impl Fetched {
    /// Gets the package. With a commit, a digest or a version it is that one, whatever the source names now. `id` is the name that a
    /// pulled prompt gets.
    pub fn get(source: &Source, pinned: Option<&str>, project: &Path, id: &str) -> Result<Fetched> {
        match source {
            Source::Path(path) => {
                let found = project.join(path);
                match found.symlink_metadata() {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        Err(files::not_there(&found, &source.to_string()))
                    }
                    _ => Ok(Fetched::Here(found)),
                }
            }
            Source::Git(git) => Checkout::fetch(git, pinned, project).map(Fetched::Commit),
            Source::Oci(oci) => Layer::fetch(oci, pinned).map(Fetched::Layer),
            Source::Langfuse(prompt) => PulledPrompt::fetch(prompt, pinned, id).map(Fetched::Prompt),
        }
    }

    /// The folder or archive; `None` for a pulled prompt, which is on no disk yet.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Fetched::Here(path) => Some(path),
            Fetched::Commit(checkout) => Some(&checkout.path),
            Fetched::Layer(layer) => Some(&layer.path),
            Fetched::Prompt(_) => None,
        }
    }

    /// The hash of the commit, or the digest of the manifest.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Fetched::Here(_) | Fetched::Prompt(_) => None,
            Fetched::Commit(checkout) => Some(&checkout.commit),
            Fetched::Layer(layer) => Some(&layer.digest),
        }
    }

    /// A pulled prompt.
    pub fn prompt(&self) -> Option<&PulledPrompt> {
        match self {
            Fetched::Prompt(prompt) => Some(prompt),
            _ => None,
        }
    }
}
