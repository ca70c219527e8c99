//! The types of items, and the files that hold them.

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ItemType {
    /// Something that a model is to do: Markdown with XML.
    Directive,
    /// Something that can be run.
    Tool,
    /// Something to know: Markdown with YAML.
    Knowledge,
}

impl ItemType {
    /// All of them.
    pub const ALL: [ItemType; 3] = [ItemType::Directive, ItemType::Tool, ItemType::Knowledge];

    /// Its name, as in `directive`.
    pub fn as_str(self) -> &'static str {
        match self {
            ItemType::Directive => "directive",
            ItemType::Tool => "tool",
            ItemType::Knowledge => "knowledge",
        }
    }

    /// The type of a name.
    pub fn named(name: &str) -> Option<ItemType> {
        ItemType::ALL.into_iter().find(|kind| kind.as_str() == name)
    }

    /// The folder below `.ai` that holds its files.
    pub fn folder(self) -> &'static str {
        match self {
            ItemType::Directive => "directives",
            ItemType::Tool => "tools",
            ItemType::Knowledge => "knowledge",
        }
    }

    /// The extensions that its files may have, in the order in which they are tried.
    pub fn extensions(self) -> &'static [&'static str] {
        match self {
            ItemType::Directive => &["md"],
            ItemType::Tool => &["py", "yaml", "yml", "json", "js", "ts", "mjs", "cjs", "sh", "toml"],
            ItemType::Knowledge => &["md", "yaml", "yml"],
        }
    }
}

impl std::fmt::Display for ItemType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
