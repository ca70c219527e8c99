//! Gets a package from its source: a path that the library can read.

use std::path::{Path, PathBuf};

use cuebook::{Result, files};

use crate::git::Checkout;
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
}

impl Fetched {
    /// Gets the package. With a commit it is that one, whatever the source names now.
    pub fn get(source: &Source, commit: Option<&str>, project: &Path) -> Result<Fetched> {
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
            Source::Git(git) => Checkout::fetch(git, commit, project).map(Fetched::Commit),
            Source::Oci(oci) => Layer::fetch(oci, commit).map(Fetched::Layer),
        }
    }

    /// The folder or archive.
    pub fn path(&self) -> &Path {
        match self {
            Fetched::Here(path) => path,
            Fetched::Commit(checkout) => &checkout.path,
            Fetched::Layer(layer) => &layer.path,
        }
    }

    /// The hash of the commit, or the digest of the manifest.
    pub fn commit(&self) -> Option<&str> {
        match self {
            Fetched::Here(_) => None,
            Fetched::Commit(checkout) => Some(&checkout.commit),
            Fetched::Layer(layer) => Some(&layer.digest),
        }
    }
}
