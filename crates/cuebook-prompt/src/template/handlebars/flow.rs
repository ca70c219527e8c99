//! What templates mention, and which variables can show where, known before anything is rendered.
//!
//! A name is a part of the context that it stands in, so the contexts are followed through blocks and partials.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::HISTORY;
use super::helper::Helper;
use super::tree::{Block, BlockKind, Call, Expression, Node, Partial, Path, Program as Tree};
use crate::template::jinja::names::{Names, Read, Reference, ReferenceKind};
use crate::template::jinja::paths::{LONGEST_PATH, root};
use crate::template::set_names::{SetNames, SetState};
use crate::template::unit::Emission;

/// Contexts in which one partial is looked at.
const MAX_CONTEXTS: usize = 16;

/// One template as the walk sees it.
pub(super) struct Text<'t> {
    pub(super) tree: &'t Tree,
    /// The unit that each reference leads to.
    pub(super) links: &'t [Option<u32>],
}

/// Numbers the references of a tree, and notes what can be known of the text alone.
pub(super) fn mentions(tree: &mut Tree) -> Names {
    let mut names = Names::default();
    number(tree, (false, false), &mut names);
    names
}

/// `around` is whether the nodes stand in something that a render may pass by, and whether their context is another one.
fn number(tree: &mut Tree, around: (bool, bool), names: &mut Names) {
    let (conditional, is_changed) = around;
    for node in &mut tree.body {
        match node {
            Node::Text(_) | Node::Comment(_) | Node::Output { .. } => {}
            Node::Block(block) => {
                let changes = match &block.what {
                    BlockKind::Value(_) => true,
                    BlockKind::Helper(call) => matches!(call.helper, Helper::Each | Helper::With),
                };
                names.loops |= changes;
                if let Some(program) = &mut block.program {
                    number(program, (true, is_changed || changes), names);
                }
                if let Some(inverse) = &mut block.inverse {
                    number(inverse, (true, is_changed), names);
                }
            }
            Node::Partial(partial) => {
                partial.reference = names.references.len();
                let set_names = match is_changed || partial.context.is_some() {
                    true => SetNames::anything(),
                    false => SetNames::new(
                        partial.hash.iter().map(|argument| (argument.name.to_string(), SetState::Surely)),
                    ),
                };
                names.references.push(Reference {
                    kind: ReferenceKind::Include,
                    names: Some(vec![partial.name.to_string()]),
                    range: partial.tag.clone(),
                    optional: false,
                    conditional,
                    in_macro: false,
                    set_names: Arc::new(set_names),
                });
            }
        }
    }
}

/// A context: the path that leads to it, which is empty for all values of the render, and `None` if it is unknown; and names that
/// arguments of a partial stand before.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Around {
    base: Option<String>,
    hidden: BTreeSet<Box<str>>,
}

impl Around {
    fn at(base: Option<String>) -> Around {
        Around { base, hidden: BTreeSet::new() }
    }

    /// The path of a name in it.
    fn path(&self, keys: &[Box<str>]) -> Option<String> {
        let base = self.base.as_ref()?;
        if keys.first().is_some_and(|key| self.hidden.contains(key)) {
            return None;
        }
        let mut path = base.clone();
        for key in keys {
            if path.len() + key.len() > LONGEST_PATH {
                break;
            }
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
        }
        Some(if path.is_empty() { ".".to_owned() } else { path })
    }
}

/// The tags of a template that show values, by their offsets.
type Shown = BTreeMap<usize, Emission>;

/// Finds the reads of all templates, and gives what they can show.
pub(super) fn trace(texts: &[Text<'_>], names: &mut [Names]) -> Vec<Vec<Emission>> {
    let mut shown: Vec<Shown> = texts.iter().map(|_| Shown::new()).collect();
    let mut known: Vec<BTreeSet<Around>> = texts.iter().map(|_| BTreeSet::new()).collect();
    let mut waiting: Vec<(usize, Around)> = vec![(0, Around::at(Some(String::new())))];
    let mut next = 1;
    loop {
        while let Some((unit, around)) = waiting.pop() {
            if known[unit].len() >= MAX_CONTEXTS || !known[unit].insert(around.clone()) {
                continue;
            }
            let mut walk = Walk {
                text: &texts[unit],
                contexts: vec![around],
                names: Vec::new(),
                found: &mut names[unit],
                shown: &mut shown[unit],
                waiting: &mut waiting,
            };
            walk.tree(texts[unit].tree);
        }
        // Nothing leads to this one, but what is mentioned there is mentioned.
        match (next..texts.len()).find(|unit| known[*unit].is_empty()) {
            Some(unit) => {
                next = unit + 1;
                waiting.push((unit, Around::at(Some(String::new()))));
            }
            None => break,
        }
    }
    for names in names.iter_mut() {
        names.reads.sort_by(|one, two| (one.range.start, &one.path).cmp(&(two.range.start, &two.path)));
        names.reads.dedup_by(|one, two| one.range == two.range && one.path == two.path);
    }
    let emissions = shown.into_iter().zip(names).map(|(shown, names)| {
        let emissions: Vec<Emission> = shown.into_values().collect();
        names.emissions = emissions.iter().map(|emission| emission.paths.clone()).collect();
        names.accessors = emissions.iter().map(|emission| emission.accessor.clone()).collect();
        emissions
    });
    emissions.collect()
}

struct Walk<'w, 't> {
    text: &'w Text<'t>,
    contexts: Vec<Around>,
    names: Vec<(Box<str>, Around)>,
    found: &'w mut Names,
    shown: &'w mut Shown,
    waiting: &'w mut Vec<(usize, Around)>,
}

impl Walk<'_, '_> {
    fn tree(&mut self, tree: &Tree) {
        for node in &tree.body {
            match node {
                Node::Text(_) | Node::Comment(_) => {}
                Node::Output { tag, value, .. } => self.output(tag, value),
                Node::Block(block) => self.block(block),
                Node::Partial(partial) => self.partial(partial),
            }
        }
    }

    fn output(&mut self, tag: &Range<usize>, value: &Expression) {
        let mut paths = Vec::new();
        self.expression(value, &mut paths);
        let accessor = match value {
            Expression::Path(path) if !path.data => path.keys.first().map(ToString::to_string),
            _ => None,
        };
        let emission = self.shown.entry(tag.start).or_insert_with(|| Emission {
            range: tag.clone(),
            accessor,
            ..Emission::default()
        });
        for path in paths {
            if !emission.paths.contains(&path) {
                emission.paths.push(path);
            }
        }
    }

    /// Notes what an expression reads, and adds the paths that can show in its value.
    fn expression(&mut self, expression: &Expression, paths: &mut Vec<String>) {
        match expression {
            Expression::Path(path) => paths.extend(self.read(path)),
            Expression::Call(call) => self.call(call, paths),
            _ => {}
        }
    }

    fn call(&mut self, call: &Call, paths: &mut Vec<String>) {
        if call.helper == Helper::History {
            self.note(HISTORY.to_owned(), call.range.clone());
            paths.push(HISTORY.to_owned());
        }
        for (index, value) in call.params.iter().enumerate() {
            // Of a lookup only the first value shows.
            let mut ignored = Vec::new();
            self.expression(value, if index == 0 { paths } else { &mut ignored });
        }
        for argument in &call.hash {
            self.expression(&argument.value, paths);
        }
    }

    fn read(&mut self, path: &Path) -> Option<String> {
        let found = self.path(path)?;
        self.note(found.clone(), path.range.clone());
        Some(found)
    }

    fn note(&mut self, path: String, range: Range<usize>) {
        let name = root(&path).to_owned();
        // `.` is no variable of its own.
        let maybe_local = name == ".";
        self.found.reads.push(Read { root: name, path, range, maybe_local });
    }

    fn path(&self, path: &Path) -> Option<String> {
        if path.data {
            let (first, rest) = path.keys.split_first()?;
            return match &**first {
                "index" | "key" | "first" | "last" | "metadata" => None,
                "root" => self.contexts.first()?.path(rest),
                name => Around::at(Some(format!("@{name}"))).path(rest),
            };
        }
        if let Some((first, rest)) = path.keys.split_first()
            && !path.scoped
            && let Some((_, around)) = self.names.iter().rev().find(|(name, _)| name == first)
        {
            return around.path(rest);
        }
        self.contexts[..self.contexts.len().checked_sub(path.up)?].last()?.path(&path.keys)
    }

    fn block(&mut self, block: &Block) {
        let mut paths = Vec::new();
        let inside = match &block.what {
            BlockKind::Value(path) => {
                paths.extend(self.read(path));
                Some(Around::at(paths.first().cloned().filter(|path| path != ".")))
            }
            BlockKind::Helper(call) => {
                self.call(call, &mut paths);
                let first = paths.first().cloned();
                match call.helper {
                    Helper::Each => {
                        let items = first.filter(|path| path != ".").map(|path| format!("{path}[]"));
                        Some(Around::at(items))
                    }
                    Helper::With => {
                        Some(Around::at(first.map(|path| if path == "." { String::new() } else { path })))
                    }
                    _ => None,
                }
            }
        };
        let known = (self.contexts.len(), self.names.len());
        if let Some(inside) = inside {
            let key = Around::at(None);
            self.names.extend(block.names.iter().cloned().zip([inside.clone(), key]));
            self.contexts.push(inside);
        }
        if let Some(program) = &block.program {
            self.tree(program);
        }
        self.contexts.truncate(known.0);
        self.names.truncate(known.1);
        if let Some(inverse) = &block.inverse {
            self.tree(inverse);
        }
    }

    fn partial(&mut self, partial: &Partial) {
        let mut paths = Vec::new();
        if let Some(context) = &partial.context {
            self.expression(context, &mut paths);
        }
        let mut around = match (&partial.context, paths.first()) {
            (None, _) => self.contexts.last().cloned().unwrap_or_else(|| Around::at(None)),
            (Some(_), Some(path)) if path == "." => Around::at(Some(String::new())),
            (Some(_), path) => Around::at(path.cloned()),
        };
        for argument in &partial.hash {
            self.expression(&argument.value, &mut Vec::new());
            around.hidden.insert(argument.name.clone());
        }
        if let Some(target) = self.text.links.get(partial.reference).copied().flatten() {
            self.waiting.push((target as usize, around));
        }
    }
}
