//! Where values come from.
//!
//! During a render an origin is a number: a node of a table that grows where a value is taken apart. Nothing is formatted
//! before somebody asks; afterwards [`Origins`] answers for the pieces of the text.

use std::cell::RefCell;

use crate::names::Few;

/// A node of the table of a render. The first node is the author: a value that the template itself made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Origin(u32);

impl Origin {
    /// The author of the template.
    pub const AUTHOR: Origin = Origin(0);

    /// Whether no variable took part.
    pub fn is_author(self) -> bool {
        self == Origin::AUTHOR
    }
}

/// The table of one render.
#[derive(Debug)]
pub(crate) struct Table<'r> {
    origins: RefCell<Origins>,
    /// The nodes of variables, so that each has one.
    variables: RefCell<Few<'r, Origin>>,
}

impl<'r> Table<'r> {
    pub fn new() -> Table<'r> {
        let mut nodes = Vec::with_capacity(32);
        nodes.push(Kept::Author);
        let origins = Origins { nodes, names: String::with_capacity(256) };
        Table { origins: RefCell::new(origins), variables: RefCell::default() }
    }

    fn push(&self, node: Kept) -> Origin {
        let nodes = &mut self.origins.borrow_mut().nodes;
        nodes.push(node);
        // Fuel bounds the number of nodes far below 2^32.
        Origin(nodes.len() as u32 - 1)
    }

    fn named(&self, node: impl FnOnce(Text) -> Kept, name: &str) -> Origin {
        let mut origins = self.origins.borrow_mut();
        let start = origins.names.len() as u32;
        origins.names.push_str(name);
        let text = Text(start, origins.names.len() as u32);
        origins.nodes.push(node(text));
        Origin(origins.nodes.len() as u32 - 1)
    }

    pub fn variable(&self, name: &'r str) -> Origin {
        if let Some(known) = self.variables.borrow().get(name) {
            return *known;
        }
        let origin = self.named(Kept::Variable, name);
        self.variables.borrow_mut().add(name, origin);
        origin
    }

    pub fn key(&self, parent: Origin, key: &str) -> Origin {
        if parent.is_author() { parent } else { self.named(|key| Kept::Key(parent, key), key) }
    }

    pub fn index(&self, parent: Origin, index: usize) -> Origin {
        if parent.is_author() { parent } else { self.push(Kept::Index(parent, index as u32)) }
    }

    /// A part of a value, by a way that was written down, as in `[1].title`.
    pub fn inside(&self, origin: Origin, way: &str) -> Origin {
        if way.is_empty() { origin } else { self.named(|way| Kept::Way(origin, way), way) }
    }

    /// The variables of an origin, as [`Origins::paths`] gives them.
    pub fn paths(&self, origin: Origin) -> Vec<Path> {
        self.origins.borrow().paths(origin)
    }

    pub fn mix(&self, left: Origin, right: Origin) -> Origin {
        match (left, right) {
            (Origin::AUTHOR, other) | (other, Origin::AUTHOR) => other,
            _ if left == right => left,
            _ => self.push(Kept::Mix(left, right)),
        }
    }

    pub fn mix_all(&self, origins: impl IntoIterator<Item = Origin>) -> Origin {
        origins.into_iter().fold(Origin::AUTHOR, |all, origin| self.mix(all, origin))
    }

    pub fn finish(&self) -> Origins {
        self.origins.take()
    }
}

/// A part of the names of all nodes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Text(u32, u32);

#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Author,
    Variable(Text),
    Key(Origin, Text),
    Index(Origin, u32),
    Way(Origin, Text),
    Mix(Origin, Origin),
}

/// The origins of one render.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins {
    nodes: Vec<Kept>,
    /// The names of all nodes, one behind the other.
    names: String,
}

/// A variable, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Path {
    /// The variable.
    pub variable: String,
    /// The way into its value, as in `[1].title`; empty for the whole value.
    pub inside: String,
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}{}", self.variable, self.inside)
    }
}

impl Origins {
    /// The variables that took part in a value, each with its path, in the order in which they took part.
    pub fn paths(&self, origin: Origin) -> Vec<Path> {
        let mut found: Vec<Path> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        let mut open = vec![origin];
        while let Some(origin) = open.pop() {
            if !seen.insert(origin) {
                continue;
            }
            match self.nodes.get(origin.0 as usize) {
                None | Some(Kept::Author) => {}
                Some(Kept::Mix(left, right)) => open.extend([*right, *left]),
                Some(_) => self.leaf(origin, &mut open, &mut found),
            }
        }
        found
    }

    fn name(&self, Text(start, end): Text) -> &str {
        self.names.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The path of a node that is no mix. Parts of a mixed value come from everything that was mixed.
    fn leaf(&self, origin: Origin, open: &mut Vec<Origin>, found: &mut Vec<Path>) {
        let mut steps = Vec::new();
        let mut at = origin;
        loop {
            match self.nodes.get(at.0 as usize) {
                Some(Kept::Key(parent, key)) => {
                    let key = self.name(*key);
                    steps.push(if is_plain(key) { format!(".{key}") } else { format!("[{key:?}]") });
                    at = *parent;
                }
                Some(Kept::Index(parent, index)) => {
                    steps.push(format!("[{index}]"));
                    at = *parent;
                }
                Some(Kept::Way(parent, way)) => {
                    steps.push(self.name(*way).to_owned());
                    at = *parent;
                }
                Some(Kept::Variable(variable)) => {
                    steps.reverse();
                    let path = Path { variable: self.name(*variable).to_owned(), inside: steps.concat() };
                    if !found.contains(&path) {
                        found.push(path);
                    }
                    return;
                }
                Some(Kept::Mix(..)) => return open.push(at),
                _ => return,
            }
        }
    }
}

fn is_plain(key: &str) -> bool {
    let mut characters = key.chars();
    characters.next().is_some_and(|first| first == '_' || unicode_ident::is_xid_start(first))
        && characters.all(unicode_ident::is_xid_continue)
}
