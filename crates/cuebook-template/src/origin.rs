//! Where values come from.
//!
//! During a render an origin is a number: a node of a table that grows where a value is taken apart. Nothing is formatted
//! on request; afterwards [`Origins`] answers for the pieces of the text.

use std::cell::{Cell, OnceCell, RefCell};

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
    /// The nodes of variables that are undefined, so that each has one.
    undefined: RefCell<Few<'r, Origin>>,
    /// Where names are that were noted lately, by their address: a loop asks for the same few again and again.
    noted: OnceCell<Box<[Cell<Noted>; NOTED]>>,
}

/// An address, and the name there.
type Noted = (usize, Text);

/// How many names are remembered by their address.
const NOTED: usize = 16;

impl<'r> Table<'r> {
    /// A table with room for about so many nodes.
    #[inline(always)]
    pub fn new(expected: usize) -> Table<'r> {
        let mut nodes = Nodes::with_capacity(expected);
        nodes.push(StoredOrigin::Author);
        let origins = Origins { nodes };
        Table { origins: RefCell::new(origins), undefined: RefCell::default(), noted: OnceCell::new() }
    }

    fn push(&self, node: StoredOrigin) -> Origin {
        let nodes = &mut self.origins.borrow_mut().nodes;
        nodes.push(node);
        // Fuel bounds the number of nodes far below 2^32.
        Origin(nodes.len() as u32 - 1)
    }

    fn named(&self, node: impl FnOnce(Text) -> StoredOrigin, name: &str) -> Origin {
        let mut origins = self.origins.borrow_mut();
        let text = origins.note(name);
        origins.nodes.push(node(text));
        Origin(origins.nodes.len() as u32 - 1)
    }

    /// The node of a variable that was not asked for before.
    pub fn variable(&self, name: &'r str) -> Origin {
        match Short::of(name) {
            Some(name) => self.push(StoredOrigin::Short(name)),
            None => self.named(StoredOrigin::Variable, name),
        }
    }

    /// The node of a variable of which nothing is kept but its name.
    pub fn undefined(&self, name: &'r str) -> Origin {
        if let Some(known) = self.undefined.borrow().get(name) {
            return *known;
        }
        let origin = self.variable(name);
        self.undefined.borrow_mut().add(name, origin);
        origin
    }

    /// A part of a value by a name that the template or the caller's data keeps.
    #[inline(always)]
    pub fn part(&self, parent: Origin, key: &'r str) -> Origin {
        if parent.is_author() {
            return parent;
        }
        let address = key.as_ptr() as usize;
        let noted = self.noted.get_or_init(|| Box::new([const { Cell::new((0, Text(0, 0))) }; NOTED]));
        let place = &noted[((address >> 4) ^ (address >> 8) ^ (address >> 12)) % NOTED];
        let (known, text) = place.get();
        if known == address && text.1 as usize == key.len() {
            return self.push(StoredOrigin::Key(parent, text));
        }
        self.new_part(parent, key, place)
    }

    #[inline(never)]
    fn new_part(&self, parent: Origin, key: &str, place: &Cell<(usize, Text)>) -> Origin {
        let text = self.origins.borrow_mut().note(key);
        place.set((key.as_ptr() as usize, text));
        self.push(StoredOrigin::Key(parent, text))
    }

    pub fn key(&self, parent: Origin, key: &str) -> Origin {
        if parent.is_author() { parent } else { self.named(|key| StoredOrigin::Key(parent, key), key) }
    }

    pub fn index(&self, parent: Origin, index: usize) -> Origin {
        if parent.is_author() { parent } else { self.push(StoredOrigin::Index(parent, index as u32)) }
    }

    /// A part of a value, by a way that was written down, as in `[1].title`.
    pub fn inside(&self, origin: Origin, way: &str) -> Origin {
        if way.is_empty() { origin } else { self.named(|way| StoredOrigin::Way(origin, way), way) }
    }

    /// The variables of an origin, as [`Origins::paths`] gives them.
    pub fn paths(&self, origin: Origin) -> Vec<Path> {
        self.origins.borrow().paths(origin)
    }

    pub fn mix(&self, left: Origin, right: Origin) -> Origin {
        match (left, right) {
            (Origin::AUTHOR, other) | (other, Origin::AUTHOR) => other,
            _ if left == right => left,
            _ => self.push(StoredOrigin::Mix(left, right)),
        }
    }

    pub fn mix_all(&self, origins: impl IntoIterator<Item = Origin>) -> Origin {
        origins.into_iter().fold(Origin::AUTHOR, |all, origin| self.mix(all, origin))
    }

    pub fn finish(&self) -> Origins {
        self.origins.take()
    }
}

/// A name: the first node that has a part of it, and its bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Text(u32, u32);

/// The bytes of a name that one node has: as many as fit without making nodes larger.
const PART: usize = 15;

/// A name that fits into a node: its bytes, and how many they are.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Short([u8; PART - 1], u8);

impl Short {
    /// Puts the bytes together in registers. After a copy byte by byte, the processor waits before it can read them as one value.
    #[inline]
    fn of(name: &str) -> Option<Short> {
        let bytes = name.as_bytes();
        let short = |part: &[u8]| part.iter().rev().fold(0, |word, byte| word << 8 | u128::from(*byte));
        let word = match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
            (Some(first), Some(last)) if bytes.len() < PART => {
                let behind = u64::from_le_bytes(*last) >> (8 * (16 - bytes.len()) % 64);
                let behind = if bytes.len() == 8 { 0 } else { behind };
                u128::from(u64::from_le_bytes(*first)) | u128::from(behind) << 64
            }
            (None, _) => short(bytes),
            _ => return None,
        };
        let mut kept = [0; PART - 1];
        kept.copy_from_slice(&word.to_le_bytes()[..PART - 1]);
        Some(Short(kept, bytes.len() as u8))
    }

    fn name(&self) -> &str {
        std::str::from_utf8(&self.0[..usize::from(self.1)]).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq)]
enum StoredOrigin {
    Author,
    /// A variable with a short name.
    Short(Short),
    Variable(Text),
    Key(Origin, Text),
    Index(Origin, u32),
    Way(Origin, Text),
    Mix(Origin, Origin),
    /// A part of a name, which is no origin.
    Name([u8; PART]),
}

type Nodes = Vec<StoredOrigin>;

/// The origins of one render.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Origins {
    /// Names of nodes are before the nodes that have them.
    nodes: Nodes,
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
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    fn note(&mut self, name: &str) -> Text {
        let start = self.nodes.len() as u32;
        for part in name.as_bytes().chunks(PART) {
            let mut bytes = [0; PART];
            bytes[..part.len()].copy_from_slice(part);
            self.nodes.push(StoredOrigin::Name(bytes));
        }
        Text(start, name.len() as u32)
    }

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
                None | Some(StoredOrigin::Author | StoredOrigin::Name(_)) => {}
                Some(StoredOrigin::Mix(left, right)) => open.extend([*right, *left]),
                Some(_) => self.leaf(origin, &mut open, &mut found),
            }
        }
        found
    }

    fn name(&self, Text(start, length): Text) -> String {
        let parts = self.nodes.iter().skip(start as usize).take((length as usize).div_ceil(PART));
        let bytes = parts.flat_map(|node| match node {
            StoredOrigin::Name(part) => part.as_slice(),
            _ => &[],
        });
        String::from_utf8(bytes.take(length as usize).copied().collect()).unwrap_or_default()
    }

    /// The path of a node that is no mix. Parts of a mixed value come from everything that was mixed.
    fn leaf(&self, origin: Origin, open: &mut Vec<Origin>, found: &mut Vec<Path>) {
        let mut steps = Vec::new();
        let mut at = origin;
        let variable = loop {
            match self.nodes.get(at.0 as usize) {
                Some(StoredOrigin::Key(parent, key)) => {
                    let key = self.name(*key);
                    steps.push(if is_plain(&key) { format!(".{key}") } else { format!("[{key:?}]") });
                    at = *parent;
                }
                Some(StoredOrigin::Index(parent, index)) => {
                    steps.push(format!("[{index}]"));
                    at = *parent;
                }
                Some(StoredOrigin::Way(parent, way)) => {
                    steps.push(self.name(*way));
                    at = *parent;
                }
                Some(StoredOrigin::Variable(name)) => break self.name(*name),
                Some(StoredOrigin::Short(name)) => break name.name().to_owned(),
                Some(StoredOrigin::Mix(..)) => return open.push(at),
                _ => return,
            }
        };
        steps.reverse();
        let path = Path { variable, inside: steps.concat() };
        if !found.contains(&path) {
            found.push(path);
        }
    }
}

fn is_plain(key: &str) -> bool {
    let mut characters = key.chars();
    characters.next().is_some_and(|first| first == '_' || unicode_ident::is_xid_start(first))
        && characters.all(unicode_ident::is_xid_continue)
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn names_of_any_length_come_back() {
        assert_eq!(std::mem::size_of::<super::StoredOrigin>(), 16);
        for length in [0, 1, 13, 14, 15, 16, 29, 30, 31, 200] {
            let name: String = "ä".repeat(length / 2) + &"x".repeat(length % 2);
            let table = Table::new(0);
            let origin = table.index(table.variable(&name), 1);
            assert_eq!(table.paths(origin)[0].to_string(), format!("{name}[1]"));
        }
    }
}
