//! The notations that prompts are written in.

/// The notation that a prompt was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// A folder with `template.md`, `prompt.py` or both.
    Template,
    /// A `.prompty` file.
    Prompty,
    /// A tree of sections.
    Sections,
    /// A directive.
    Directive,
}

/// What is known of a dialect before a prompt of it is read. The stages ask for these properties and not for the dialect.
#[derive(Debug)]
pub struct Traits {
    /// Its name, as in `prompty`.
    pub name: &'static str,
    /// What a list of candidates says of its files, unless it names them one by one.
    pub files: Option<&'static str>,
    /// Whether its prompts are folders with a template and definitions in Python.
    pub is_folder: bool,
    /// Whether lines that name a role begin messages, and files name their template engine.
    pub has_roles: bool,
    /// Whether its prompts are trees, of which overrides and a session say how much shows.
    pub is_tree: bool,
    /// Whether its prompts are items of spaces: ids have slashes, the user says the text, and only declared inputs are taken.
    pub is_item: bool,
    /// Whether its files can refer to the environment.
    pub reads_environment: bool,
    /// How an author declares an input; `NAME` stands for its name.
    pub declaration: &'static str,
}

/// What is true of no dialect unless it says so.
const PLAIN: Traits = Traits {
    name: "",
    files: None,
    is_folder: false,
    has_roles: false,
    is_tree: false,
    is_item: false,
    reads_environment: false,
    declaration: "declare it under `inputs`: {name: NAME, kind: string}",
};

static TEMPLATE: Traits = Traits {
    name: "template",
    is_folder: true,
    declaration: "declare it in VARIABLES: {\"name\": \"NAME\", \"type\": \"string\", \"default\": \"\"}",
    ..PLAIN
};

static PROMPTY: Traits =
    Traits { name: "prompty", files: Some(".prompty"), has_roles: true, reads_environment: true, ..PLAIN };

static SECTIONS: Traits = Traits { name: "sections", files: Some(".sections.md"), is_tree: true, ..PLAIN };

static DIRECTIVE: Traits = Traits {
    name: "directive",
    files: Some("directive"),
    is_item: true,
    declaration: "declare it: <input name=\"NAME\" type=\"string\">…</input>",
    ..PLAIN
};

impl Dialect {
    /// All of them.
    pub const ALL: [Dialect; 4] =
        [Dialect::Template, Dialect::Prompty, Dialect::Sections, Dialect::Directive];

    /// What is known of it.
    pub fn traits(self) -> &'static Traits {
        match self {
            Dialect::Template => &TEMPLATE,
            Dialect::Prompty => &PROMPTY,
            Dialect::Sections => &SECTIONS,
            Dialect::Directive => &DIRECTIVE,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.traits().name
    }
}
