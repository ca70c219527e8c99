//! Which files are prompts: what the dialects of a library claim by their names.

use std::sync::Arc;

use crate::prompt::{BUILT_IN, Claim, Traits};

/// The dialects of a library, in the order in which they are asked.
#[derive(Debug, Clone)]
pub struct Claims(Arc<[&'static Traits]>);

impl Default for Claims {
    fn default() -> Claims {
        Claims(BUILT_IN.into())
    }
}

impl FromIterator<&'static Traits> for Claims {
    fn from_iter<I: IntoIterator<Item = &'static Traits>>(dialects: I) -> Claims {
        Claims(dialects.into_iter().collect())
    }
}

impl Claims {
    /// The id that a file offers by its name, and the dialect that claims it.
    pub fn of_file<'f>(&self, file: &'f str) -> Option<(&'f str, &'static Traits)> {
        let claimed = self.0.iter().find_map(|dialect| Some((dialect.claim.id(file)?, *dialect)));
        claimed.filter(|(id, dialect)| !dialect.is_part(id))
    }

    /// The dialect that claims every file of this name, whose folder is the id.
    pub(crate) fn in_folder(&self, file: &str) -> Option<&'static Traits> {
        self.0.iter().copied().find(|dialect| matches!(dialect.claim, Claim::File(name) if name == file))
    }

    /// The id that the file at a path offers, and the dialect that claims it.
    pub fn of_path<'p>(&self, path: &'p str) -> Option<(&'p str, &'static Traits)> {
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        let in_folder = || {
            let id = folder.rsplit('/').next().filter(|id| !id.is_empty())?;
            Some((id, self.in_folder(file)?))
        };
        self.of_file(file).or_else(in_folder)
    }

    /// The files that offer an id: whether each lies in the folder of that name, its name, and the dialect.
    pub fn files_of(&self, id: &str) -> impl Iterator<Item = (bool, String, &'static Traits)> {
        self.0.iter().filter(move |dialect| !dialect.is_part(id)).flat_map(move |dialect| {
            let files = match dialect.claim {
                Claim::Nothing => [None, None],
                Claim::End(end) => [false, true].map(|in_folder| Some((in_folder, format!("{id}{end}")))),
                Claim::File(file) => [Some((true, file.to_owned())), None],
            };
            files.into_iter().flatten().map(move |(in_folder, file)| (in_folder, file, *dialect))
        })
    }

    /// The folders of a project, a user and a pack that hold prompts of some dialect.
    pub(crate) fn folders(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().flat_map(|dialect| dialect.folders.iter().copied())
    }

    /// Whether a name ends as one of a file that a dialect claims.
    #[doc(hidden)]
    pub fn ends(&self, name: &str) -> bool {
        self.0.iter().any(|dialect| match dialect.claim {
            Claim::Nothing => false,
            Claim::End(end) | Claim::File(end) => name.ends_with(end),
        })
    }
}

/// Whether a user names a file and not an id.
#[doc(hidden)]
pub fn is_path(wanted: &str) -> bool {
    wanted.contains(['/', '\\']) || wanted.ends_with(".md") || Claims::default().ends(wanted)
}
