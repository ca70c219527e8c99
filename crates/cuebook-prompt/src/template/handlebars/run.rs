//! Runs a compiled template.
//!
//! Everything goes straight into the sink: nothing is captured, so the sink's limit bounds what a render makes, fuel bounds how long it
//! takes, and the depth bounds the stack. What begins a message, a section or a picture is a frame of the engine, so no value can.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::Value as Json;

use super::helper::{Helper, ROLES};
use super::tree::{Argument, Block, BlockKind, Call, Expression, Node, Partial, Path, Program as Tree};
use super::value::{Item, TooLarge, Value, print, to_json};
use super::{HISTORY, Program, Settings, errors};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, did_you_mean, nearest};
use crate::source::Place;
use crate::template::jinja::errors::{MAX_CALLERS, out_of_fuel};
use crate::template::merged_units::MergedUnits;
use crate::template::sink::{Full, Sink};
use crate::template::unit::{ATTRIBUTE, Emission, MARK_END, MEDIA, MEDIA_TYPE, SECTION, message_frame};
use crate::variables::Scope;

/// Why a render ended before its end.
pub(super) enum Stop {
    /// The sink takes no more.
    Full,
    /// Something failed.
    Failed(Box<Error>),
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

/// What a loop says of the item that it is at.
struct LoopFrame<'p> {
    key: Value<'p>,
    index: usize,
    is_last: bool,
}

/// One render.
pub(super) struct Run<'p> {
    pub(super) program: &'p Program,
    settings: &'p Settings,
    pub(super) sink: &'p mut Sink,
    /// The scope that included prompts see, and how many characters they may write.
    pub(super) lender: Option<(&'p Arc<Scope>, usize)>,
    pub(super) merged_units: MergedUnits,
    /// What names are looked up in, innermost last.
    pub(super) contexts: Vec<Value<'p>>,
    loops: Vec<LoopFrame<'p>>,
    /// The names behind `as`.
    names: Vec<(&'p str, Value<'p>)>,
    /// What goes before every line of the partials that are running.
    pub(super) indent: Vec<(u32, Range<usize>)>,
    /// Whether a line begins here.
    pub(super) at_line_start: bool,
    /// The tags that led into other templates.
    calls: Vec<(u32, Range<usize>)>,
    depth: usize,
    fuel: u64,
    /// The values that were written, by unit.
    pub(super) emissions: Vec<Vec<Emission>>,
}

impl<'p> Run<'p> {
    pub(super) fn new(
        program: &'p Program,
        settings: &'p Settings,
        root: Value<'p>,
        lender: Option<(&'p Arc<Scope>, usize)>,
        sink: &'p mut Sink,
    ) -> Run<'p> {
        Run {
            lender,
            merged_units: MergedUnits::new(program.units.len(), program.frames.len()),
            emissions: (0..program.own).map(|_| Vec::new()).collect(),
            program,
            settings,
            sink,
            contexts: vec![root],
            loops: Vec::new(),
            names: Vec::new(),
            indent: Vec::new(),
            at_line_start: true,
            calls: Vec::new(),
            depth: 0,
            fuel: settings.fuel,
        }
    }

    /// Runs the nodes of a unit.
    pub(super) fn tree(&mut self, unit: u32, tree: &'p Tree) -> Result<(), Stop> {
        if self.depth >= self.settings.recursion {
            return Err(self.too_deep(unit));
        }
        self.depth += 1;
        for node in &tree.body {
            match node {
                Node::Text(text) => {
                    self.spend(1, unit, &text.kept)?;
                    self.literal(unit, text.kept.clone())?;
                }
                Node::Comment(_) => {}
                Node::Output { tag, value, .. } => {
                    self.spend(1, unit, tag)?;
                    self.output(unit, tag, value)?;
                }
                Node::Block(block) => {
                    self.spend(1, unit, &block.tag)?;
                    self.block(unit, block)?;
                }
                Node::Partial(partial) => {
                    self.spend(1, unit, &partial.tag)?;
                    self.partial(unit, partial)?;
                }
            }
        }
        self.depth -= 1;
        Ok(())
    }

    fn spend(&mut self, steps: u64, unit: u32, range: &Range<usize>) -> Result<(), Stop> {
        match self.fuel.checked_sub(steps) {
            Some(left) => {
                self.fuel = left;
                Ok(())
            }
            None => {
                let diagnostic = out_of_fuel(self.settings.fuel).at(self.place(unit, range.clone()));
                Err(self.failed(ErrorKind::Limit, diagnostic))
            }
        }
    }

    /// Writes a part of the author's text.
    fn literal(&mut self, unit: u32, range: Range<usize>) -> Result<(), Stop> {
        let text = &self.program.source(unit).text()[range.clone()];
        if self.indent.is_empty() {
            return Ok(self.sink.literal(unit, range.start as u32, text.as_bytes())?);
        }
        let mut at = range.start;
        for line in text.split_inclusive('\n') {
            self.line_start()?;
            self.sink.literal(unit, at as u32, line.as_bytes())?;
            self.at_line_start = line.ends_with('\n');
            at += line.len();
        }
        Ok(())
    }

    /// Writes what goes before a line, if one begins here.
    pub(super) fn line_start(&mut self) -> Result<(), Stop> {
        if std::mem::take(&mut self.at_line_start) {
            for (unit, range) in &self.indent {
                let text = &self.program.source(*unit).text()[range.clone()];
                self.sink.literal(*unit, range.start as u32, text.as_bytes())?;
            }
        }
        Ok(())
    }

    /// Writes a value of these variables at a tag.
    fn value(
        &mut self,
        unit: u32,
        tag: &Range<usize>,
        paths: &[String],
        accessor: Option<&str>,
        text: &str,
    ) -> Result<(), Stop> {
        if !self.indent.is_empty() && !text.is_empty() {
            self.line_start()?;
        }
        let emissions = &mut self.emissions[unit as usize];
        let mark = emissions.len() as u32;
        emissions.push(Emission {
            range: tag.clone(),
            paths: paths.to_vec(),
            accessor: accessor.map(str::to_owned),
            ..Emission::default()
        });
        self.sink.begin_value(unit, mark);
        if self.indent.is_empty() {
            return Ok(self.sink.value(text.as_bytes())?);
        }
        for line in text.split_inclusive('\n') {
            self.line_start()?;
            self.sink.value(line.as_bytes())?;
            self.at_line_start = line.ends_with('\n');
        }
        Ok(())
    }

    fn frame(&mut self, frame: u32, text: &str) -> Result<(), Stop> {
        if !self.indent.is_empty() {
            self.line_start()?;
        }
        Ok(self.sink.frame(frame, text.as_bytes())?)
    }

    fn output(&mut self, unit: u32, tag: &Range<usize>, value: &'p Expression) -> Result<(), Stop> {
        match value {
            Expression::Call(call) if !call.helper.has_value() => self.mark(unit, tag, call),
            value => self.show(unit, tag, value),
        }
    }

    /// Writes the value of an expression.
    fn show(&mut self, unit: u32, tag: &Range<usize>, expression: &'p Expression) -> Result<(), Stop> {
        // A text of the author in a tag is his.
        if let Expression::Text(range, None) = expression {
            return self.literal(unit, range.clone());
        }
        let value = self.evaluate(unit, expression)?;
        if value.is_undefined() && self.settings.strict {
            return Err(self.undefined(unit, tag, expression));
        }
        let json = value.json().unwrap_or(Json::Null);
        let text = print(&json, self.settings.string_bytes);
        let text = text.map_err(|too_large| self.too_large(unit, tag, too_large))?;
        let accessor = match expression {
            Expression::Path(path) => path.keys.first().map(|key| &**key).filter(|_| !path.data),
            _ => None,
        };
        self.value(unit, tag, &value.paths, accessor, &text)
    }

    /// Writes what begins a message, a section or something else that is no text.
    fn mark(&mut self, unit: u32, tag: &Range<usize>, call: &'p Call) -> Result<(), Stop> {
        match call.helper {
            Helper::Role => {
                let (name, role) = self.role(unit, tag, call)?;
                self.frame(message_frame(role), &format!("<<<dotprompt:role:{name}"))?;
                for Argument { name, value, .. } in &call.hash {
                    self.frame(ATTRIBUTE, &format!(" {name}="))?;
                    self.show(unit, tag, value)?;
                }
                self.frame(MARK_END, ">>>")
            }
            Helper::History => {
                let history = match self.lender {
                    Some((scope, _)) => Value::variable(scope, HISTORY),
                    None => Value::undefined(),
                };
                if let Some(Json::String(nonce)) = history.json() {
                    self.value(unit, tag, &history.paths, Some(HISTORY), &nonce)?;
                }
                // What follows the conversation is the model's until a role begins.
                self.frame(message_frame("assistant"), "<<<dotprompt:role:model")?;
                self.frame(MARK_END, ">>>")
            }
            Helper::Section => {
                self.frame(SECTION, "<<<dotprompt:section ")?;
                for value in &call.params {
                    self.show(unit, tag, value)?;
                }
                self.frame(MARK_END, ">>>")
            }
            Helper::Media => {
                let is_given = |run: &mut Self, name: &str| -> Result<Option<&'p Expression>, Stop> {
                    let Some(expression) = call.argument(name) else { return Ok(None) };
                    Ok((!run.evaluate(unit, expression)?.is_empty(false)).then_some(expression))
                };
                let Some(url) = is_given(self, "url")? else {
                    let diagnostic =
                        Diagnostic::new(Code::UndefinedValue, "the `url` of the media has no value")
                            .at(self.place(unit, tag.clone()))
                            .hint("pass a URL, or show it only if there is one: `{{#if url}}…{{/if}}`");
                    return Err(self.failed(ErrorKind::PromptRender, diagnostic));
                };
                self.frame(MEDIA, "<<<dotprompt:media:url ")?;
                self.show(unit, tag, url)?;
                if let Some(kind) = is_given(self, "contentType")? {
                    self.frame(MEDIA_TYPE, " ")?;
                    self.show(unit, tag, kind)?;
                }
                self.frame(MARK_END, ">>>")
            }
            _ => Ok(()),
        }
    }

    /// The role that a tag begins, by its name in dotprompt and in messages. A value chooses between user and model only.
    fn role(
        &mut self,
        unit: u32,
        tag: &Range<usize>,
        call: &'p Call,
    ) -> Result<(&'static str, &'static str), Stop> {
        let Some(expression) = call.params.first() else { return Ok(ROLES[1]) };
        let value = self.evaluate(unit, expression)?.json();
        let name = value.as_ref().and_then(Json::as_str).unwrap_or_default();
        let is_written = matches!(expression, Expression::Text(..));
        let role = ROLES.into_iter().find(|(known, _)| *known == name);
        match role.filter(|(_, role)| is_written || matches!(*role, "user" | "assistant")) {
            Some(role) => Ok(role),
            None => {
                let found = match &value {
                    None => "with no value".to_owned(),
                    Some(value) => {
                        let shown: String = value.to_string().chars().take(60).collect();
                        crate::json::quoted(&shown)
                    }
                };
                let diagnostic = errors::chosen_role(&found, self.place(unit, tag.clone()));
                Err(self.failed(ErrorKind::PromptRender, diagnostic))
            }
        }
    }

    fn block(&mut self, unit: u32, block: &'p Block) -> Result<(), Stop> {
        let call = match &block.what {
            BlockKind::Helper(call) => call,
            BlockKind::Value(path) => {
                let value = self.find(path);
                return self.value_block(unit, block, value);
            }
        };
        let mut values = Vec::with_capacity(2);
        for expression in &call.params {
            values.push(self.evaluate(unit, expression)?);
        }
        let mut values = values.into_iter();
        let first = values.next().unwrap_or_else(Value::undefined);
        match call.helper {
            Helper::If | Helper::Unless => {
                let zero = match call.argument("includeZero") {
                    Some(expression) => self.evaluate(unit, expression)?.is_empty(true),
                    None => true,
                };
                self.branch(unit, block, first.is_empty(zero) == (call.helper == Helper::Unless))
            }
            Helper::IfEquals | Helper::UnlessEquals => {
                let second = values.next().unwrap_or_else(Value::undefined);
                self.branch(unit, block, first.is_same(&second) == (call.helper == Helper::IfEquals))
            }
            Helper::With if first.is_empty(false) => self.branch(unit, block, false),
            Helper::With => {
                let is_current = matches!(call.params.first(), Some(Expression::Path(path))
                    if path.scoped && path.up == 0 && path.keys.is_empty() && !path.data);
                self.inside(unit, block, first, None, is_current)
            }
            _ => self.each(unit, block, &first),
        }
    }

    /// Runs one of the two parts of a block.
    fn branch(&mut self, unit: u32, block: &'p Block, holds: bool) -> Result<(), Stop> {
        match if holds { &block.program } else { &block.inverse } {
            Some(tree) => self.tree(unit, tree),
            None => Ok(()),
        }
    }

    /// `{{#name}}`
    fn value_block(&mut self, unit: u32, block: &'p Block, value: Value<'p>) -> Result<(), Stop> {
        match &value.item {
            Item::Undefined | Item::Placeholder(_) => self.branch(unit, block, false),
            Item::Json(json) => match json.as_ref() {
                Json::Null | Json::Bool(false) => self.branch(unit, block, false),
                Json::Bool(true) => self.branch(unit, block, true),
                Json::Array(_) => self.each(unit, block, &value),
                _ => self.inside(unit, block, value, None, false),
            },
            Item::Scope(_) | Item::Merged(_) => self.inside(unit, block, value, None, false),
        }
    }

    fn each(&mut self, unit: u32, block: &'p Block, value: &Value<'p>) -> Result<(), Stop> {
        let entries = value.entries();
        let count = entries.len();
        if count == 0 {
            return self.branch(unit, block, false);
        }
        for (index, (key, item)) in entries.into_iter().enumerate() {
            self.spend(1, unit, &block.tag)?;
            let key = value.made(key);
            self.loops.push(LoopFrame { key: key.clone(), index, is_last: index + 1 == count });
            self.inside(unit, block, item, Some(key), false)?;
            self.loops.pop();
        }
        Ok(())
    }

    /// Runs the first part of a block with a value as the context.
    fn inside(
        &mut self,
        unit: u32,
        block: &'p Block,
        value: Value<'p>,
        key: Option<Value<'p>>,
        is_current: bool,
    ) -> Result<(), Stop> {
        let known = self.names.len();
        let named = [Some(value.clone()), key].into_iter().flatten();
        self.names.extend(block.names.iter().map(|name| &**name).zip(named));
        if !is_current {
            self.contexts.push(value);
        }
        self.branch(unit, block, true)?;
        if !is_current {
            self.contexts.pop();
        }
        self.names.truncate(known);
        Ok(())
    }

    fn partial(&mut self, unit: u32, partial: &'p Partial) -> Result<(), Stop> {
        let contexts = self.contexts.len();
        if let Some(expression) = &partial.context {
            let value = self.evaluate(unit, expression)?;
            self.contexts.push(value);
        }
        if !partial.hash.is_empty() {
            let mut arguments = Vec::with_capacity(partial.hash.len());
            for Argument { name, value, .. } in &partial.hash {
                arguments.push((name.clone(), self.evaluate(unit, value)?));
            }
            let base = self.contexts.last().cloned().unwrap_or_else(Value::undefined);
            let paths = base.paths.clone();
            self.contexts.push(Value { item: Item::Merged(Rc::new((base, arguments))), paths });
        }
        let indents = self.indent.len();
        if let Some(range) = partial.indent.clone().filter(|range| !range.is_empty()) {
            self.indent.push((unit, range));
            self.at_line_start = true;
        }
        self.calls.push((unit, partial.tag.clone()));
        if let Some(included) = self.program.included(unit, partial.reference) {
            self.included(unit, partial, included)?;
        } else if let Some(target) = self.program.link(unit, partial.reference) {
            let names = std::mem::take(&mut self.names);
            let program = self.program;
            self.tree(target, program.tree(target))?;
            self.names = names;
        }
        self.calls.pop();
        self.indent.truncate(indents);
        self.contexts.truncate(contexts);
        Ok(())
    }

    pub(super) fn evaluate(&mut self, unit: u32, expression: &'p Expression) -> Result<Value<'p>, Stop> {
        Ok(match expression {
            Expression::Path(path) => self.find(path),
            Expression::Text(range, plain) => {
                let text = plain.as_deref().unwrap_or(&self.program.source(unit).text()[range.clone()]);
                Value::own(text.into())
            }
            Expression::Number(number, _) => Value::own(number.clone().into()),
            Expression::Bool(truth) => Value::own((*truth).into()),
            Expression::Null => Value::own(Json::Null),
            Expression::Undefined => Value::undefined(),
            Expression::Call(call) => self.call(unit, call)?,
        })
    }

    fn call(&mut self, unit: u32, call: &'p Call) -> Result<Value<'p>, Stop> {
        let Some(first) = call.params.first() else { return Ok(Value::undefined()) };
        let value = self.evaluate(unit, first)?;
        match (call.helper, call.params.get(1)) {
            (Helper::Lookup, Some(key)) => {
                let key = self.evaluate(unit, key)?;
                let Some(json) = key.json() else { return Ok(Value::undefined()) };
                let name = print(&json, self.settings.string_bytes);
                let name = name.map_err(|too_large| self.too_large(unit, &call.range, too_large))?;
                Ok(value.part(&name))
            }
            _ => {
                let Some(json) = value.json() else { return Ok(value) };
                let indent = match call.argument("indent") {
                    Some(expression) => indentation(self.evaluate(unit, expression)?.json()),
                    None => String::new(),
                };
                let text = to_json(&json, &indent, self.settings.string_bytes);
                let text = text.map_err(|too_large| self.too_large(unit, &call.range, too_large))?;
                Ok(value.made(text.into()))
            }
        }
    }

    /// The value of a name.
    pub(super) fn find(&self, path: &Path) -> Value<'p> {
        let mut keys = path.keys.iter();
        let mut value = match path.data {
            true => match keys.next() {
                Some(key) => self.data(path.up, key),
                None => return Value::undefined(),
            },
            false => {
                let first = path.keys.first();
                let named = first.filter(|_| !path.scoped).and_then(|key| {
                    self.names.iter().rev().find(|(name, _)| **name == **key).map(|(_, value)| value.clone())
                });
                match named {
                    Some(value) => {
                        keys.next();
                        value
                    }
                    None => {
                        let index = self.contexts.len().checked_sub(1 + path.up);
                        index.map_or_else(Value::undefined, |index| self.contexts[index].clone())
                    }
                }
            }
        };
        for key in keys {
            if value.is_undefined() {
                break;
            }
            value = value.part(key);
        }
        value
    }

    /// What is written with `@`.
    fn data(&self, up: usize, key: &str) -> Value<'p> {
        let frames = &self.loops[..self.loops.len().saturating_sub(up)];
        if let Some(LoopFrame { key: of, index, is_last }) = frames.last() {
            match key {
                "key" => return of.clone(),
                "index" => return of.made((*index).into()),
                "first" => return of.made((*index == 0).into()),
                "last" => return of.made((*is_last).into()),
                _ => {}
            }
        }
        match key {
            "root" => self.contexts.first().cloned().unwrap_or_else(Value::undefined),
            "metadata" => Value::own(self.program.metadata.clone()),
            _ => match self.lender {
                Some((scope, _)) => Value::variable(scope, &format!("@{key}")),
                None => Value::undefined(),
            },
        }
    }

    pub(super) fn place(&self, unit: u32, range: Range<usize>) -> Place {
        self.program.source(unit).place(range)
    }

    /// An error, with the tags that led to where it happened.
    #[cold]
    pub(super) fn failed(&self, kind: ErrorKind, mut diagnostic: Diagnostic) -> Stop {
        // A recursion passes the same places again and again.
        let mut shown: Vec<Place> = diagnostic.place.iter().cloned().collect();
        for (unit, tag) in self.calls.iter().rev() {
            let place = self.place(*unit, tag.clone());
            if shown.len() <= MAX_CALLERS && !shown.iter().any(|known| known.is_same(&place)) {
                diagnostic = diagnostic.related(place.clone(), "used from here");
                shown.push(place);
            }
        }
        Stop::from(Error::new(kind, diagnostic))
    }

    #[cold]
    fn too_deep(&self, unit: u32) -> Stop {
        let (unit, range) = self.calls.last().cloned().unwrap_or((unit, 0..0));
        self.failed(ErrorKind::Limit, errors::too_deep(self.settings.recursion, self.place(unit, range)))
    }

    #[cold]
    fn too_large(&self, unit: u32, tag: &Range<usize>, TooLarge(what, limit): TooLarge) -> Stop {
        let message = format!("the value is too large to print: the limit is {limit} {what}");
        let hint = Hint::run(
            "print a part of it, or raise `limits.string_bytes` in cuebook.toml, and grant it",
            "cuebook allow",
        );
        let diagnostic =
            Diagnostic::new(Code::ValueTooLarge, message).at(self.place(unit, tag.clone())).hint(hint);
        self.failed(ErrorKind::Limit, diagnostic)
    }

    #[cold]
    fn undefined(&self, unit: u32, tag: &Range<usize>, expression: &Expression) -> Stop {
        let range = expression.range().unwrap_or_else(|| tag.clone());
        let written = self.program.source(unit).text()[range.clone()].to_owned();
        let known = self.contexts.last().map(Value::keys).unwrap_or_default();
        let hint = did_you_mean(&nearest(&written, known.iter().map(String::as_str))).unwrap_or_else(|| {
            format!("give it a value, or print it only if it has one: `{{{{#if {written}}}}}…{{{{/if}}}}`")
        });
        let diagnostic = Diagnostic::new(Code::UndefinedValue, format!("`{written}` has no value"))
            .at(self.place(unit, range))
            .label("unknown name")
            .hint(hint);
        self.failed(ErrorKind::PromptRender, diagnostic)
    }
}

/// What JSON is indented with: a number of spaces, or a text, of at most ten characters.
fn indentation(value: Option<Json>) -> String {
    match value {
        Some(Json::Number(number)) => {
            let spaces = number.as_f64().unwrap_or_default().clamp(0.0, 10.0);
            " ".repeat(spaces as usize)
        }
        Some(Json::String(text)) => text.chars().take(10).collect(),
        _ => String::new(),
    }
}
