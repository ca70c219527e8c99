//! The notations that prompts are written in: what is known of each before a prompt of it is read.

use std::fmt;

/// What is known of a dialect before a prompt of it is read. The stages ask for these properties and not for the dialect.
///
/// Write only what differs from [`Traits::PLAIN`]:
///
/// ```
/// use cuebook::prompt::{Claim, Traits};
///
/// static SHOUT: Traits = Traits { name: "shout", claim: Claim::End(".shout"), ..Traits::PLAIN };
/// assert_eq!(SHOUT.claim.id("alarm.shout"), Some("alarm"));
/// ```
#[derive(Clone, Copy)]
pub struct Traits {
    /// Its name, as in `prompty`. No two dialects of a book have one name.
    pub name: &'static str,
    /// Which files are its prompts.
    pub claim: Claim,
    /// What a list of candidates says of its files, unless it names them one by one.
    pub files: Option<&'static str>,
    /// Whether its files begin with front matter between two lines `---`. A file that is included by its path leaves it out.
    pub has_front_matter: bool,
    /// Whether its prompts are folders with a template and definitions in Python.
    pub is_folder: bool,
    /// Whether lines that name a role begin messages, and files name their template engine.
    pub has_roles: bool,
    /// Whether its prompts are trees, of which overrides and a session say how much shows.
    pub is_tree: bool,
    /// Whether its prompts are items of spaces: ids have slashes, and only declared inputs are taken.
    pub is_item: bool,
    /// Whether the user says the text of a prompt without roles, and not the system.
    pub is_request: bool,
    /// Whether its files can refer to the environment.
    pub reads_environment: bool,
    /// Whether a segment names the one input that its tag accesses, and not all variables that can show in it.
    pub names_accessed: bool,
    /// What the names of files begin with that are parts of prompts, and no prompts themselves.
    pub part: Option<&'static str>,
    /// Folders of a project, of a user and of a pack that hold its prompts, besides those of all prompts.
    pub folders: &'static [&'static str],
    /// How an author declares an input; `NAME` stands for its name.
    pub declaration: &'static str,
}

/// Which files are prompts of a dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// None by their names: folders with a template, and items of spaces, are found in other ways.
    Nothing,
    /// Files whose names end so: `ID.prompty`, and `ID/ID.prompty`.
    End(&'static str),
    /// The file of this name in a folder: `ID/NAME`.
    File(&'static str),
}

impl Claim {
    /// The id that a file offers by its name alone.
    pub fn id(self, file: &str) -> Option<&str> {
        match self {
            Claim::End(end) => file.strip_suffix(end).filter(|id| !id.is_empty()),
            Claim::Nothing | Claim::File(_) => None,
        }
    }
}

impl Traits {
    /// Whether files of this id are parts of prompts.
    pub fn is_part(&self, id: &str) -> bool {
        self.part.is_some_and(|part| id.starts_with(part))
    }

    /// What is true of a dialect unless it says otherwise.
    pub const PLAIN: Traits = Traits {
        name: "",
        claim: Claim::Nothing,
        files: None,
        has_front_matter: false,
        is_folder: false,
        has_roles: false,
        is_tree: false,
        is_item: false,
        is_request: false,
        reads_environment: false,
        names_accessed: false,
        part: None,
        folders: &[],
        declaration: "declare it under `inputs`: {name: NAME, kind: string}",
    };
}

/// What the name of a file ends in that is a prompt by itself.
pub const PROMPTY_END: &str = ".prompty";
/// What the name of a file ends in that is a tree of sections.
pub const SECTIONS_END: &str = ".sections.md";

/// A folder with `template.md`, `prompt.py` or both.
pub static TEMPLATE: Traits = Traits {
    name: "template",
    is_folder: true,
    declaration: "declare it in VARIABLES: {\"name\": \"NAME\", \"type\": \"string\", \"default\": \"\"}",
    ..Traits::PLAIN
};

/// A `.prompty` file.
pub static PROMPTY: Traits = Traits {
    name: "prompty",
    claim: Claim::End(PROMPTY_END),
    files: Some(PROMPTY_END),
    has_front_matter: true,
    has_roles: true,
    reads_environment: true,
    names_accessed: true,
    ..Traits::PLAIN
};

/// A tree of sections.
pub static SECTIONS: Traits = Traits {
    name: "sections",
    claim: Claim::End(SECTIONS_END),
    files: Some(SECTIONS_END),
    has_front_matter: true,
    is_tree: true,
    ..Traits::PLAIN
};

/// A directive.
pub static DIRECTIVE: Traits = Traits {
    name: "directive",
    files: Some("directive"),
    is_item: true,
    is_request: true,
    declaration: "declare it: <input name=\"NAME\" type=\"string\">…</input>",
    ..Traits::PLAIN
};

/// A file of dotprompt.
pub static DOTPROMPT: Traits = Traits {
    name: "dotprompt",
    claim: Claim::End(".prompt"),
    files: Some(".prompt"),
    has_front_matter: true,
    part: Some("_"),
    declaration: "declare it under `input.schema`: `NAME: string`",
    ..Traits::PLAIN
};

/// A folder with `SKILL.md`.
pub static SKILL: Traits = Traits {
    name: "skill",
    claim: Claim::File("SKILL.md"),
    files: Some("SKILL.md"),
    has_front_matter: true,
    folders: &["skills", ".claude/skills", ".agents/skills"],
    declaration: "remove it: the text of a skill is no template",
    ..Traits::PLAIN
};

/// The dialects that every book knows.
pub static BUILT_IN: [&Traits; 6] = [&TEMPLATE, &PROMPTY, &SECTIONS, &DIRECTIVE, &DOTPROMPT, &SKILL];

/// Dialects are the same if their names are.
impl PartialEq for Traits {
    fn eq(&self, other: &Traits) -> bool {
        self.name == other.name
    }
}

impl Eq for Traits {}

impl fmt::Debug for Traits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
