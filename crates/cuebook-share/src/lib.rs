//! Packs and skills that a project shares with others: where they come from, and what pins them.
//!
//! A [`Source`] is a folder, an archive, a git repository, a repository of a registry or a prompt of Langfuse. [`Packages`] adds, restores, updates and
//! removes what comes from one, and writes `cuebook.lock` ([`PackageLock`]), which has the version, the source, the commit and a
//! hash for each file. Nothing that is added gains power by it: code needs an approval, replacements are only proposed, and a
//! publisher's key counts for one package.
//!
//! [`git`] runs the system's `git`, for a limited time and without hooks, questions or submodules.

mod challenge;
mod credentials;
mod fetch;
pub mod git;
mod langfuse;
mod lock;
mod oci;
mod packages;
mod publisher;
mod source;

pub use langfuse::Langfuse;
pub use lock::{LOCK_FILE, LockedPackage, PackageKind, PackageLock};
pub use packages::{Change, KeyState, PackageState, Packages};
pub use publisher::sign;
pub use source::{GitSource, LangfuseSource, LangfuseVersion, OciSource, Source, is_label};
