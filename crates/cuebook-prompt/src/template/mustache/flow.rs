//! What templates mention, and which variables can show where, known before anything is rendered.
//!
//! A name is looked up in the values around it, innermost first, and which of them has it is known only at a render. So a
//! name can mean a part of every value that can be around it: `title` in `{{#items}}…{{/items}}` is `items[].title`,
//! `items.title` or `title`. Values go with a partial into its text, and with a block into whatever replaces it, so the
//! texts of a program are walked until nothing new comes into any of them. The answer can be wider than what one render
//! does, and is never narrower: a bare name covers everything below it, and `.` is the whole scope.

use std::collections::HashMap;
use std::sync::Arc;

use super::tree::{Argument, Name, Node, Partial, Slice, Target};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;
use crate::template::jinja::names::{Block, Names, Read, Reference, ReferenceKind};
use crate::template::jinja::paths::{LONGEST_PATH, MAX_PATHS, Paths, root};
use crate::template::set_names::SetNames;

/// Ends a path that stands for everything below it.
const COARSE: char = '\0';
/// Rounds before every value is taken to be around every text.
const MAX_ROUNDS: usize = 24;
/// Paths that may be made in all. No template that people write comes near it.
const MAX_WORK: usize = 1_000_000;

/// The tags of a template that emit values, in order, and the paths that can show there.
pub(super) type Emissions = Vec<(Slice, Vec<String>)>;

/// One template as the walk sees it.
pub(super) struct Text<'t> {
    pub(super) source: &'t Arc<Source>,
    pub(super) tree: &'t [Node],
    /// The unit that each reference leads to.
    pub(super) links: &'t [Option<u32>],
}

/// Numbers the references of a tree, and notes what can be known of the text alone.
pub(super) fn mentions(tree: &mut [Node], optional: bool) -> Names {
    let mut names = Names::default();
    number(tree, optional, (false, &Arc::default()), &mut names);
    names
}

/// The variables that sections go into, by the first part of their names.
pub(super) fn entered(trees: &[Vec<Node>]) -> Vec<String> {
    fn walk(nodes: &[Node], found: &mut Vec<String>) {
        for node in nodes {
            match node {
                Node::Section { name, inverted, body, .. } => {
                    if let Some(key) = name.keys.first().filter(|_| !inverted)
                        && found.iter().all(|known| **known != **key)
                    {
                        found.push(key.to_string());
                    }
                    walk(body, found);
                }
                Node::Block(block) => walk(&block.body, found),
                Node::Partial(partial) => partial.arguments.iter().for_each(|with| walk(&with.body, found)),
                Node::Text { .. } | Node::LineStart | Node::Variable { .. } => {}
            }
        }
    }
    let mut found = Vec::new();
    trees.iter().for_each(|tree| walk(tree, &mut found));
    found
}

/// `around` is whether the nodes stand in something that a render may pass by, and what has been set there.
fn number(nodes: &mut [Node], optional: bool, around: (bool, &Arc<SetNames>), names: &mut Names) {
    let (conditional, set_names) = around;
    for node in nodes {
        match node {
            Node::Text { .. } | Node::LineStart | Node::Variable { .. } => {}
            Node::Section { body, inverted, .. } => {
                names.loops = true;
                // What a section goes into may have a part of any name.
                let set_names = if *inverted { set_names.clone() } else { Arc::new(SetNames::anything()) };
                number(body, optional, (true, &set_names), names);
            }
            Node::Block(block) => {
                let range = block.tag.range();
                names.blocks.push(Block { name: block.name.to_string(), range, nested: conditional });
                number(&mut block.body, optional, around, names);
            }
            Node::Partial(partial) => {
                partial.reference = names.references.len();
                names.references.push(Reference {
                    kind: if partial.parent { ReferenceKind::Extends } else { ReferenceKind::Include },
                    names: match &partial.target {
                        Target::Named(name) => Some(vec![name.clone()]),
                        Target::Computed(_) => None,
                    },
                    range: partial.tag.range(),
                    optional,
                    conditional,
                    in_macro: false,
                    set_names: set_names.clone(),
                });
                for argument in &mut partial.arguments {
                    let range = argument.tag.range();
                    names.blocks.push(Block { name: argument.name.to_string(), range, nested: conditional });
                    // Whether it shows is the business of the other template.
                    number(&mut argument.body, optional, (true, set_names), names);
                }
            }
        }
    }
}

/// The values that can be around a text, and the innermost of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct EnclosingValues {
    all: Paths,
    innermost: Paths,
}

impl EnclosingValues {
    fn size(&self) -> usize {
        self.all.len() + self.innermost.len()
    }

    fn extend(&mut self, other: &EnclosingValues) {
        self.all.extend(other.all.iter().cloned());
        self.innermost.extend(other.innermost.iter().cloned());
        bound(&mut self.all);
        bound(&mut self.innermost);
    }
}

/// A text that values come into: a template, or what replaces a block.
struct Body<'t> {
    unit: usize,
    nodes: &'t [Node],
    around: EnclosingValues,
}

/// Finds the reads of all templates, and gives their emissions.
pub(super) fn trace(texts: &[Text<'_>], names: &mut [Names]) -> Result<Vec<Emissions>> {
    let mut walk = FlowWalk { texts, bodies: Vec::new(), replacing: HashMap::new(), work: 0 };
    walk.collect();
    let scope = Paths::from([String::new()]);
    let scope = EnclosingValues { all: scope.clone(), innermost: scope };
    if let Some(main) = walk.bodies.first_mut() {
        main.around = scope.clone();
    }
    let mut settled = false;
    for _ in 0..MAX_ROUNDS {
        let before: Vec<EnclosingValues> = walk.bodies.iter().map(|body| body.around.clone()).collect();
        for index in 0..walk.bodies.len() {
            walk.body(index, &mut None)?;
        }
        settled = walk.bodies.iter().map(|body| &body.around).eq(&before);
        if settled {
            break;
        }
    }
    if !settled {
        walk.everything_everywhere();
    }
    let mut emissions: Vec<Emissions> = texts.iter().map(|_| Vec::new()).collect();
    for index in 0..walk.bodies.len() {
        let Body { unit, around, .. } = &mut walk.bodies[index];
        let unit = *unit;
        // Nothing leads here, but what is mentioned here is mentioned.
        if around.all.is_empty() {
            *around = scope.clone();
        }
        walk.body(index, &mut Some(FlowResult { names: &mut names[unit], emissions: &mut emissions[unit] }))?;
    }
    for (names, emissions) in names.iter_mut().zip(&mut emissions) {
        emissions.sort_by_key(|(tag, _)| tag.start);
        names.reads.sort_by_key(|read| read.range.start);
        names.emissions = emissions.iter().map(|(_, paths)| paths.clone()).collect();
    }
    Ok(emissions)
}

struct FlowWalk<'t> {
    texts: &'t [Text<'t>],
    /// The templates in their order, then the arguments of each.
    bodies: Vec<Body<'t>>,
    /// The bodies that replace a block, by its name.
    replacing: HashMap<&'t str, Vec<usize>>,
    work: usize,
}

impl<'t> FlowWalk<'t> {
    fn collect(&mut self) {
        for (unit, text) in self.texts.iter().enumerate() {
            self.bodies.push(Body { unit, nodes: text.tree, around: EnclosingValues::default() });
        }
        for (unit, text) in self.texts.iter().enumerate() {
            let mut found = Vec::new();
            arguments(text.tree, &mut found);
            for argument in found {
                self.replacing.entry(&argument.name).or_default().push(self.bodies.len());
                self.bodies.push(Body { unit, nodes: &argument.body, around: EnclosingValues::default() });
            }
        }
    }

    fn body(&mut self, index: usize, found: &mut Option<FlowResult<'_>>) -> Result<()> {
        let Body { unit, nodes, around } = &self.bodies[index];
        let (unit, nodes, around) = (*unit, *nodes, around.clone());
        match around.all.is_empty() {
            // Nothing leads here yet.
            true => Ok(()),
            false => self.nodes(unit, nodes, &around, found),
        }
    }

    fn nodes(
        &mut self,
        unit: usize,
        nodes: &'t [Node],
        around: &EnclosingValues,
        found: &mut Option<FlowResult<'_>>,
    ) -> Result<()> {
        for node in nodes {
            match node {
                Node::Text { .. } | Node::LineStart => {}
                Node::Variable { name, tag, .. } => {
                    if let Some(found) = found {
                        let paths = self.meant(unit, name, around)?;
                        found.read(name, &paths);
                        found.emissions.push((*tag, paths.iter().map(|path| plain(path)).collect()));
                    }
                }
                Node::Section { name, inverted, body, .. } => {
                    let mut inside = around.clone();
                    let paths = self.meant(unit, name, around)?;
                    if let Some(found) = found {
                        found.read(name, &paths);
                    }
                    if !inverted {
                        inside.innermost =
                            paths.iter().map(|path| longer(path, "[]")).chain(paths.clone()).collect();
                        bound(&mut inside.innermost);
                        inside.all.extend(inside.innermost.iter().cloned());
                        bound(&mut inside.all);
                    }
                    self.nodes(unit, body, &inside, found)?;
                }
                Node::Block(block) => {
                    self.nodes(unit, &block.body, around, found)?;
                    for index in self.replacing.get(&*block.name).cloned().unwrap_or_default() {
                        self.flow(unit, index, around)?;
                    }
                }
                Node::Partial(partial) => self.partial(unit, partial, around, found)?,
            }
        }
        Ok(())
    }

    fn partial(
        &mut self,
        unit: usize,
        partial: &'t Partial,
        around: &EnclosingValues,
        found: &mut Option<FlowResult<'_>>,
    ) -> Result<()> {
        match &partial.target {
            Target::Named(_) => {
                if let Some(target) = self.texts[unit].links.get(partial.reference).copied().flatten() {
                    self.flow(unit, target as usize, around)?;
                }
            }
            Target::Computed(name) => {
                if let Some(found) = found {
                    let paths = self.meant(unit, name, around)?;
                    found.read(name, &paths);
                }
                // It can be any of them.
                for target in 0..self.texts.len() {
                    self.flow(unit, target, around)?;
                }
            }
        }
        Ok(())
    }

    /// Values come into another body.
    fn flow(&mut self, unit: usize, body: usize, around: &EnclosingValues) -> Result<()> {
        self.spend(unit, around.size())?;
        let known = &self.bodies[body].around;
        if !around.all.is_subset(&known.all) || !around.innermost.is_subset(&known.innermost) {
            self.spend(unit, known.size())?;
            self.bodies[body].around.extend(around);
        }
        Ok(())
    }

    /// What a name can mean.
    fn meant(&mut self, unit: usize, name: &Name, around: &EnclosingValues) -> Result<Paths> {
        self.spend(unit, around.all.len() + 1)?;
        if name.keys.is_empty() {
            return Ok(around.innermost.clone());
        }
        let dotted = name.dotted();
        let lengthened = around.all.iter().map(|path| match path.is_empty() {
            true => dotted.clone(),
            false => longer(path, &format!(".{dotted}")),
        });
        let mut paths: Paths = lengthened.collect();
        bound(&mut paths);
        Ok(paths)
    }

    fn spend(&mut self, unit: usize, work: usize) -> Result<()> {
        self.work += work;
        if self.work <= MAX_WORK {
            return Ok(());
        }
        let diagnostic =
            Diagnostic::new(Code::TooDeep, "too many sections and partials depend on each other")
                .file(self.texts[unit].source.name())
                .hint("split the template, or use fewer partials inside sections");
        Err(Error::new(ErrorKind::Limit, diagnostic))
    }

    /// Every value that any section looks into can be around every text.
    fn everything_everywhere(&mut self) {
        let mut all = Paths::from([String::new()]);
        for body in &self.bodies {
            sections(body.nodes, &mut all);
        }
        let around = EnclosingValues { innermost: all.clone(), all };
        for body in &mut self.bodies {
            body.around = around.clone();
        }
    }
}

/// What goes into the answer.
struct FlowResult<'n> {
    names: &'n mut Names,
    emissions: &'n mut Emissions,
}

impl FlowResult<'_> {
    fn read(&mut self, name: &Name, paths: &Paths) {
        let maybe_local = paths.len() > 1;
        for path in paths.iter().map(|path| plain(path)) {
            self.names.reads.push(Read {
                // Below the scope itself, as in `.` and in a scope that is a list.
                root: if root(&path).is_empty() { ".".to_owned() } else { root(&path).to_owned() },
                path,
                range: name.slice.range(),
                // `.` is no variable of its own.
                maybe_local: maybe_local || name.keys.is_empty(),
            });
        }
    }
}

/// A path without the mark; the whole scope is `.`.
fn plain(path: &str) -> String {
    match path.trim_end_matches(COARSE) {
        "" => ".".to_owned(),
        path => path.to_owned(),
    }
}

/// A path and one step more.
fn longer(path: &str, key: &str) -> String {
    if path.ends_with(COARSE) {
        return path.to_owned();
    }
    match path.len() + key.len() <= LONGEST_PATH {
        true => format!("{path}{key}"),
        false => coarse(path),
    }
}

fn coarse(path: &str) -> String {
    format!("{}{COARSE}", root(path.trim_end_matches(COARSE)))
}

/// Cuts the paths of a set that has grown too large to their names, and leaves out what these cover.
fn bound(paths: &mut Paths) {
    if paths.len() > MAX_PATHS {
        // The scope itself stays what it is: names are looked up in it, and it is not shown.
        *paths =
            paths.iter().map(|path| if path.is_empty() { String::new() } else { coarse(path) }).collect();
    }
    let covering: Vec<String> = paths.iter().filter(|path| path.ends_with(COARSE)).cloned().collect();
    if !covering.is_empty() {
        paths.retain(|path| {
            path.is_empty() || path.ends_with(COARSE) || covering.binary_search(&coarse(path)).is_err()
        });
    }
}

/// The arguments of all parents.
fn arguments<'t>(nodes: &'t [Node], found: &mut Vec<&'t Argument>) {
    for node in nodes {
        match node {
            Node::Text { .. } | Node::LineStart | Node::Variable { .. } => {}
            Node::Section { body, .. } => arguments(body, found),
            Node::Block(block) => arguments(&block.body, found),
            Node::Partial(partial) => {
                for argument in &partial.arguments {
                    found.push(argument);
                    arguments(&argument.body, found);
                }
            }
        }
    }
}

/// The names that sections begin with.
fn sections(nodes: &[Node], found: &mut Paths) {
    for node in nodes {
        match node {
            Node::Text { .. } | Node::LineStart | Node::Variable { .. } | Node::Partial(_) => {}
            Node::Block(block) => sections(&block.body, found),
            Node::Section { name, body, .. } => {
                if let Some(first) = name.keys.first() {
                    found.insert(format!("{first}{COARSE}"));
                }
                sections(body, found);
            }
        }
    }
}
