//! Runs a compiled template.
//!
//! Everything goes straight into the sink: nothing is captured, so the sink's limit bounds what a render makes, fuel bounds
//! how long it takes, and the depth bounds the stack.

use std::borrow::Cow;
use std::sync::Arc;

use super::item::Item;
use super::print::{Unprintable, print, scalar};
use super::tree::{Argument, Block, Name, Node, Partial, Slice, Target};
use super::{MissingPartials, Program, Settings, errors};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, did_you_mean, nearest};
use crate::source::{Place, Source};
use crate::template::jinja::Loader;
use crate::template::jinja::errors::{MAX_CALLERS, out_of_fuel};
use crate::template::merged_units::MergedUnits;
use crate::template::sink::{Full, Sink};
use crate::variables::Scope;

/// Why a render ended before its end.
pub(super) enum Stop {
    /// The sink takes no more.
    Full,
    /// Something failed.
    Failed(Box<Error>),
    /// A template with a computed name has to be compiled first.
    Wanted(Arc<Source>),
}

impl From<Full> for Stop {
    fn from(_: Full) -> Self {
        Stop::Full
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Stop::Failed(Box::new(error))
    }
}

/// One render.
pub(super) struct Run<'p> {
    pub(super) program: &'p Program,
    settings: &'p Settings,
    loader: &'p dyn Loader,
    pub(super) sink: &'p mut Sink,
    /// The scope that included prompts see, and how many characters they may write.
    pub(super) lender: Option<(&'p Arc<Scope>, usize)>,
    pub(super) merged_units: MergedUnits,
    /// The values that names are looked up in, innermost last.
    pub(super) frames: Vec<Item<'p>>,
    /// What goes before every line: slices of the units that the partials are used in.
    pub(super) indent: Vec<(u32, Slice)>,
    /// How many of these the line that has begun has already.
    indented: usize,
    /// What replaces blocks, outermost first, with the unit that it stands in.
    arguments: Vec<(u32, &'p [Argument])>,
    /// The tags that led into other templates.
    calls: Vec<(u32, Slice)>,
    depth: usize,
    fuel: u64,
}

impl<'p> Run<'p> {
    pub(super) fn new(
        program: &'p Program,
        settings: &'p Settings,
        loader: &'p dyn Loader,
        scope: Item<'p>,
        lender: Option<(&'p Arc<Scope>, usize)>,
        sink: &'p mut Sink,
    ) -> Run<'p> {
        Run {
            lender,
            merged_units: MergedUnits::new(program.units.len(), 0),
            program,
            settings,
            loader,
            sink,
            frames: vec![scope],
            indent: Vec::new(),
            indented: 0,
            arguments: Vec::new(),
            calls: Vec::new(),
            depth: 0,
            fuel: settings.fuel,
        }
    }

    /// What it took over from other engines.
    pub(super) fn into_merged_units(self) -> MergedUnits {
        self.merged_units
    }

    /// Runs the nodes of a unit.
    pub(super) fn nodes(&mut self, unit: u32, nodes: &'p [Node]) -> Result<(), Stop> {
        for node in nodes {
            self.spend(1, unit, node)?;
            match node {
                Node::Text { slice, line_start } => self.text(unit, *slice, *line_start)?,
                Node::LineStart => self.line_start()?,
                Node::Variable { tag, name, raw } => {
                    // Looking a name up costs a step for each value that is looked into.
                    self.spend(self.frames.len() as u64, unit, node)?;
                    self.variable(unit, *tag, name, *raw)?;
                }
                Node::Section { name, inverted, body, .. } => {
                    self.section(unit, node, name, *inverted, body)?
                }
                Node::Partial(partial) => self.partial(unit, node, partial)?,
                Node::Block(block) => self.block(unit, node, block)?,
            }
        }
        Ok(())
    }

    /// The same one level deeper.
    fn deeper(&mut self, from: (u32, &Node), unit: u32, nodes: &'p [Node]) -> Result<(), Stop> {
        if self.depth >= self.settings.recursion {
            return Err(self.too_deep(from));
        }
        self.depth += 1;
        self.nodes(unit, nodes)?;
        self.depth -= 1;
        Ok(())
    }

    #[inline]
    fn spend(&mut self, steps: u64, unit: u32, node: &Node) -> Result<(), Stop> {
        match self.fuel.checked_sub(steps) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => Err(self.no_fuel(unit, node)),
        }
    }

    fn text(&mut self, unit: u32, slice: Slice, line_start: bool) -> Result<(), Stop> {
        let program = self.program;
        let text = program.text(unit, slice);
        if self.indent.is_empty() {
            return Ok(self.sink.literal(unit, slice.start, text.as_bytes())?);
        }
        let mut at = slice.start;
        for (index, line) in text.split_inclusive('\n').enumerate() {
            // A line without anything in it stays so.
            if (line_start || index > 0) && !matches!(line, "\n" | "\r\n") {
                self.line_start()?;
            }
            self.sink.literal(unit, at, line.as_bytes())?;
            at += line.len() as u32;
        }
        Ok(())
    }

    pub(super) fn line_start(&mut self) -> Result<(), Stop> {
        let indented = std::mem::take(&mut self.indented);
        let program = self.program;
        for (unit, slice) in self.indent.iter().skip(indented) {
            self.sink.literal(*unit, slice.start, program.text(*unit, *slice).as_bytes())?;
        }
        Ok(())
    }

    fn variable(&mut self, unit: u32, tag: Slice, name: &Name, raw: bool) -> Result<(), Stop> {
        let value = self.find(name);
        if value.is_undefined() && self.settings.strict {
            return Err(self.undefined(unit, name));
        }
        self.sink.begin_value(unit, tag.start);
        let escape = self.settings.escape && !raw;
        let printed =
            value.json().map_or(Ok(()), |value| print(self.sink, &value, escape, self.settings.string_bytes));
        match printed {
            Ok(()) => Ok(()),
            Err(Unprintable::Full) => Err(Stop::Full),
            Err(reason) => Err(self.unprintable(unit, name, reason)),
        }
    }

    fn section(
        &mut self,
        unit: u32,
        node: &'p Node,
        name: &Name,
        inverted: bool,
        body: &'p [Node],
    ) -> Result<(), Stop> {
        self.spend(self.frames.len() as u64, unit, node)?;
        let value = self.find(name);
        let here = (unit, node);
        if inverted {
            return if value.is_true() { Ok(()) } else { self.deeper(here, unit, body) };
        }
        let Some(items) = value.items() else {
            return if value.is_true() { self.inside(here, value, body) } else { Ok(()) };
        };
        for item in items {
            self.spend(1, unit, node)?;
            self.inside(here, item, body)?;
        }
        Ok(())
    }

    /// Runs the body of a section with a further value to look into.
    fn inside(&mut self, here: (u32, &'p Node), value: Item<'p>, body: &'p [Node]) -> Result<(), Stop> {
        self.frames.push(value);
        self.deeper(here, here.0, body)?;
        self.frames.pop();
        Ok(())
    }

    fn partial(&mut self, unit: u32, node: &'p Node, partial: &'p Partial) -> Result<(), Stop> {
        if let Some(included) = self.program.included(unit, partial.reference) {
            return self.included(unit, partial, included);
        }
        let target = match &partial.target {
            Target::Named(_) => self.program.link(unit, partial.reference),
            Target::Computed(name) => self.computed(unit, partial.tag, name)?,
        };
        let Some(target) = target else { return Ok(()) };
        let program = self.program;
        let (indent, indented) = (self.indent.len(), self.indented);
        // In the middle of a line a partial is written as it is, whatever goes before the lines around it.
        let outer = match partial.indent {
            Some(slice) => {
                if !slice.is_empty() {
                    self.indent.push((unit, slice));
                }
                None
            }
            None => {
                self.indented = 0;
                Some(std::mem::take(&mut self.indent))
            }
        };
        if !partial.arguments.is_empty() {
            self.arguments.push((unit, &partial.arguments));
        }
        self.calls.push((unit, partial.tag));
        self.deeper((unit, node), target, program.tree(target))?;
        self.calls.pop();
        if !partial.arguments.is_empty() {
            self.arguments.pop();
        }
        match outer {
            Some(outer) => (self.indent, self.indented) = (outer, indented),
            None => self.indent.truncate(indent),
        }
        Ok(())
    }

    fn block(&mut self, unit: u32, node: &'p Node, block: &'p Block) -> Result<(), Stop> {
        self.spend(self.arguments.len() as u64, unit, node)?;
        // The outermost replacement wins, and in one tag the last.
        let replacement = self.arguments.iter().find_map(|(unit, arguments)| {
            Some((*unit, arguments.iter().rev().find(|argument| argument.name == block.name)?))
        });
        let Some((from, argument)) = replacement else { return self.deeper((unit, node), unit, &block.body) };
        let indent = self.indent.len();
        if !block.indent.is_empty() {
            self.indent.push((unit, block.indent));
        }
        if !block.own_line {
            // The line has begun, and what goes before it is written.
            self.indented = self.indent.len();
        }
        self.deeper((unit, node), from, &argument.body)?;
        self.indent.truncate(indent);
        if !block.own_line {
            self.indented = 0;
        }
        Ok(())
    }

    /// The value of a name: its first part is looked up from the innermost value outwards, the others inside what was found.
    fn find(&self, name: &Name) -> Item<'p> {
        let Some((first, rest)) = name.keys.split_first() else {
            return self.frames.last().cloned().unwrap_or(Item::Undefined);
        };
        let mut value = Item::Undefined;
        for frame in self.frames.iter().rev() {
            value = frame.part(first);
            if !value.is_undefined() {
                break;
            }
        }
        for key in rest {
            if value.is_undefined() {
                break;
            }
            value = value.part(key);
        }
        value
    }

    /// The unit that a computed name leads to.
    fn computed(&mut self, unit: u32, tag: Slice, name: &Name) -> Result<Option<u32>, Stop> {
        let value = self.find(name);
        if value.is_undefined() && self.settings.strict {
            return Err(self.undefined(unit, name));
        }
        let text = value.json().and_then(|value| scalar(&value).map(Cow::into_owned)).unwrap_or_default();
        if text.is_empty() {
            return Ok(None);
        }
        let parent = self.program.source(unit);
        match self.loader.load_computed(&text, parent.name())? {
            Some(source) => match self.program.unit_named(source.name()) {
                Some(target) => Ok(Some(target)),
                None => Err(Stop::Wanted(source)),
            },
            None if self.settings.missing_partials == MissingPartials::Empty => Ok(None),
            None => {
                let hint = did_you_mean(&self.loader.suggestions(&text))
                    .unwrap_or_else(|| format!("the name is the value of `{}`", name.dotted()));
                let diagnostic = Diagnostic::new(Code::MissingInclude, format!("no template `{text}` found"))
                    .at(self.place(unit, tag))
                    .hint(hint);
                Err(self.failed(ErrorKind::PromptRender, diagnostic))
            }
        }
    }

    pub(super) fn place(&self, unit: u32, slice: Slice) -> Place {
        self.program.source(unit).place(slice.range())
    }

    /// An error, with the tags that led to where it happened.
    #[cold]
    pub(super) fn failed(&self, kind: ErrorKind, mut diagnostic: Diagnostic) -> Stop {
        // A recursion passes the same places again and again.
        let mut shown: Vec<Place> = diagnostic.place.iter().cloned().collect();
        for (unit, tag) in self.calls.iter().rev() {
            let place = self.place(*unit, *tag);
            if shown.len() <= MAX_CALLERS && !shown.iter().any(|known| known.is_same(&place)) {
                diagnostic = diagnostic.related(place.clone(), "used from here");
                shown.push(place);
            }
        }
        Stop::from(Error::new(kind, diagnostic))
    }

    #[cold]
    fn no_fuel(&self, unit: u32, node: &Node) -> Stop {
        let diagnostic = out_of_fuel(self.settings.fuel);
        let diagnostic = match slice_of(node) {
            Some(slice) => diagnostic.at(self.place(unit, slice)),
            None => diagnostic.file(self.program.source(unit).name()),
        };
        self.failed(ErrorKind::Limit, diagnostic)
    }

    #[cold]
    fn too_deep(&self, (unit, node): (u32, &Node)) -> Stop {
        let place = self.place(unit, slice_of(node).unwrap_or(Slice { start: 0, end: 0 }));
        self.failed(ErrorKind::Limit, errors::too_deep(self.settings.recursion, place))
    }

    #[cold]
    fn unprintable(&self, unit: u32, name: &Name, reason: Unprintable) -> Stop {
        let (kind, diagnostic) = match reason {
            Unprintable::Full => return Stop::Full,
            Unprintable::TooLarge(what, limit) => {
                let message =
                    format!("`{}` is too large to print: the limit is {limit} {what}", name.dotted());
                let hint = Hint::run(
                    "print a part of it, or raise `limits.string_bytes` in cuebook.toml, and grant it",
                    "cuebook allow",
                );
                (ErrorKind::Limit, Diagnostic::new(Code::ValueTooLarge, message).hint(hint))
            }
        };
        self.failed(kind, diagnostic.at(self.place(unit, name.slice)))
    }

    #[cold]
    fn undefined(&self, unit: u32, name: &Name) -> Stop {
        let written = name.dotted();
        let hint = did_you_mean(&self.similar(name)).unwrap_or_else(|| {
            format!(
                "give it a value, or print it only if it has one: `{{{{#{written}}}}}…{{{{/{written}}}}}`"
            )
        });
        let diagnostic = Diagnostic::new(Code::UndefinedValue, format!("`{written}` has no value"))
            .at(self.place(unit, name.slice))
            .label("unknown name")
            .hint(hint);
        self.failed(ErrorKind::PromptRender, diagnostic)
    }

    /// Names that could have been meant: those beside the first part that is not there.
    fn similar(&self, name: &Name) -> Vec<String> {
        let mut known = String::new();
        let mut beside: Vec<Item<'p>> = self.frames.clone();
        for key in &name.keys {
            let Some(value) =
                beside.iter().rev().map(|item| item.part(key)).find(|part| !part.is_undefined())
            else {
                let names: Vec<String> = beside.iter().flat_map(|item| item.keys(MAX_KEYS)).collect();
                let similar = nearest(key, names.iter().map(String::as_str));
                return similar.into_iter().map(|name| format!("{known}{name}")).collect();
            };
            known.push_str(key);
            known.push('.');
            beside = vec![value];
        }
        Vec::new()
    }
}

/// Names are looked for among this many keys of a value.
const MAX_KEYS: usize = 1_000;

fn slice_of(node: &Node) -> Option<Slice> {
    match node {
        Node::Text { slice, .. } => Some(*slice),
        Node::LineStart => None,
        Node::Variable { tag, .. } | Node::Section { tag, .. } => Some(*tag),
        Node::Partial(partial) => Some(partial.tag),
        Node::Block(block) => Some(block.tag),
    }
}
