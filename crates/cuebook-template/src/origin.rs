//! Where values come from.
//!
//! During a render an origin is a number: a node of a table that grows where a value is taken apart. Nothing is formatted
//! before somebody asks; afterwards [`Origins`] answers for the pieces of the text.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

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

#[derive(Debug, Clone)]
enum Node<'r> {
    Author,
    Variable(&'r str),
    Key(Origin, &'r str),
    OwnedKey(Origin, Rc<str>),
    Index(Origin, u32),
    /// Several steps, as they are written.
    Way(Origin, Rc<str>),
    Mix(Origin, Origin),
}

/// The table of one render.
#[derive(Debug)]
pub(crate) struct Table<'r> {
    nodes: RefCell<Vec<Node<'r>>>,
    /// The nodes of variables, so that each has one.
    variables: RefCell<HashMap<&'r str, Origin>>,
}

impl<'r> Table<'r> {
    pub fn new() -> Table<'r> {
        Table { nodes: RefCell::new(vec![Node::Author]), variables: RefCell::default() }
    }

    fn push(&self, node: Node<'r>) -> Origin {
        let mut nodes = self.nodes.borrow_mut();
        nodes.push(node);
        // Fuel bounds the number of nodes far below 2^32.
        Origin(nodes.len() as u32 - 1)
    }

    pub fn variable(&self, name: &'r str) -> Origin {
        if let Some(known) = self.variables.borrow().get(name) {
            return *known;
        }
        let origin = self.push(Node::Variable(name));
        self.variables.borrow_mut().insert(name, origin);
        origin
    }

    pub fn key(&self, parent: Origin, key: &'r str) -> Origin {
        if parent.is_author() { parent } else { self.push(Node::Key(parent, key)) }
    }

    pub fn owned_key(&self, parent: Origin, key: &str) -> Origin {
        if parent.is_author() { parent } else { self.push(Node::OwnedKey(parent, key.into())) }
    }

    pub fn index(&self, parent: Origin, index: usize) -> Origin {
        if parent.is_author() { parent } else { self.push(Node::Index(parent, index as u32)) }
    }

    /// A part of a value, by a way that was written down, as in `[1].title`.
    pub fn inside(&self, origin: Origin, way: &str) -> Origin {
        if way.is_empty() { origin } else { self.push(Node::Way(origin, way.into())) }
    }

    /// The variables of an origin, as [`Origins::paths`] gives them.
    pub fn paths(&self, origin: Origin) -> Vec<Path> {
        if origin.is_author() {
            return Vec::new();
        }
        Table { nodes: RefCell::new(self.nodes.borrow().clone()), variables: RefCell::default() }
            .finish()
            .paths(origin)
    }

    pub fn mix(&self, left: Origin, right: Origin) -> Origin {
        match (left, right) {
            (Origin::AUTHOR, other) | (other, Origin::AUTHOR) => other,
            _ if left == right => left,
            _ => self.push(Node::Mix(left, right)),
        }
    }

    pub fn mix_all(&self, origins: impl IntoIterator<Item = Origin>) -> Origin {
        origins.into_iter().fold(Origin::AUTHOR, |all, origin| self.mix(all, origin))
    }

    pub fn finish(&self) -> Origins {
        let keep = |node: Node<'r>| match node {
            Node::Author => Kept::Author,
            Node::Variable(name) => Kept::Variable(name.to_owned()),
            Node::Key(parent, key) => Kept::Key(parent, key.to_owned()),
            Node::OwnedKey(parent, key) => Kept::Key(parent, key.as_ref().to_owned()),
            Node::Index(parent, index) => Kept::Index(parent, index),
            Node::Way(parent, way) => Kept::Way(parent, way.as_ref().to_owned()),
            Node::Mix(left, right) => Kept::Mix(left, right),
        };
        Origins(self.nodes.take().into_iter().map(keep).collect())
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Kept {
    Author,
    Variable(String),
    Key(Origin, String),
    Index(Origin, u32),
    Way(Origin, String),
    Mix(Origin, Origin),
}

/// The origins of one render.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins(Vec<Kept>);

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
            match self.0.get(origin.0 as usize) {
                None | Some(Kept::Author) => {}
                Some(Kept::Mix(left, right)) => open.extend([*right, *left]),
                Some(_) => self.leaf(origin, &mut open, &mut found),
            }
        }
        found
    }

    /// The path of a node that is no mix. Parts of a mixed value come from everything that was mixed.
    fn leaf(&self, origin: Origin, open: &mut Vec<Origin>, found: &mut Vec<Path>) {
        let mut steps = Vec::new();
        let mut at = origin;
        loop {
            match self.0.get(at.0 as usize) {
                Some(Kept::Key(parent, key)) => {
                    steps.push(if is_plain(key) { format!(".{key}") } else { format!("[{key:?}]") });
                    at = *parent;
                }
                Some(Kept::Index(parent, index)) => {
                    steps.push(format!("[{index}]"));
                    at = *parent;
                }
                Some(Kept::Way(parent, way)) => {
                    steps.push(way.clone());
                    at = *parent;
                }
                Some(Kept::Variable(variable)) => {
                    steps.reverse();
                    let path = Path { variable: variable.clone(), inside: steps.concat() };
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
