//! Statements.

use std::rc::Rc;

use smallvec::smallvec;

use super::Loaded;
use crate::ast::{Body, Expr, ExprKind, Import, Imported, Include, SetBlock, Statement, StatementKind};
use crate::error::{Error, ErrorKind, Exceeded, Result};
use crate::host::{Including, SetValues};
use crate::names::FEW;
use crate::origin::Origin;
use crate::render::{Args, RED_ZONE, Render, STACK, to_json};
use crate::sink::{Mark, Sink};
use crate::text::Text;
use crate::value::{Context, Cx, MacroValue, Scope, Special, Unit, Val, Value, type_name};

/// How a statement ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Next,
    Break,
    Continue,
}

impl<'r> Render<'r> {
    /// Runs a template in a context, and its parent if it has one.
    pub(super) fn run_template(
        &self,
        context: &Rc<Context<'r>>,
        unit: Unit<'r>,
        out: &mut Sink,
    ) -> Result<()> {
        let mut unit = unit;
        loop {
            context.extended.set(false);
            let body = &unit.template.tree.body;
            let scope = self.template_scope(context, unit, &body.scope);
            let cx = Cx {
                unit,
                context: context.clone(),
                scope,
                autoescape: self.env.autoescape,
                top_level: true,
                checks_parent: true,
            };
            if let Some(slot) = unit.template.tree.self_slot {
                self.scopes.borrow_mut().push(Rc::downgrade(&cx.scope));
                cx.scope.set_own(slot, Value::Special(Rc::new(Special::Blocks(cx.clone()))).into());
            }
            if !unit.template.tree.extends {
                return self.run_all(&cx, &body.statements, out).map(drop);
            }
            let mut parent = None;
            self.run_root(&cx, &body.statements, out, &mut parent)?;
            match parent {
                None => return Ok(()),
                Some(next) => unit = next,
            }
        }
    }

    fn template_scope(
        &self,
        context: &Context<'r>,
        unit: Unit<'r>,
        names: &'r crate::ast::Scope,
    ) -> Rc<Scope<'r>> {
        let is_first = unit.number == 0 && context.outer.is_none() && context.open;
        if !is_first || self.first.get().is_some() || names.slots.len() > FEW {
            return Scope::open(self, context, names, None);
        }
        self.first.get_or_init(|| Scope::open_first(self, names)).clone()
    }

    /// Runs the statements of a template. `extends` names the parent that goes on.
    fn run_root(
        &self,
        cx: &Cx<'r>,
        statements: &'r [Statement],
        out: &mut Sink,
        parent: &mut Option<Unit<'r>>,
    ) -> Result<()> {
        for statement in statements {
            match &statement.kind {
                StatementKind::Extends(template) => {
                    let found =
                        self.extend(cx, template).map_err(|error| self.locate(cx, error, statement))?;
                    *parent = Some(found);
                }
                StatementKind::If(branches, otherwise) => {
                    let taken = self.taken_branch(cx, branches, otherwise)?;
                    self.run_root(cx, taken, out, parent)?;
                }
                _ => {
                    self.run(cx, statement, out)?;
                }
            }
        }
        Ok(())
    }

    fn extend(&self, cx: &Cx<'r>, template: &'r Expr) -> Result<Unit<'r>> {
        if cx.context.extended.replace(true) {
            return Err(Error::new(ErrorKind::Runtime, "a template has at most one parent"));
        }
        self.deeper(|| Ok(()))?;
        self.spend(100)?;
        let name = self.eval(cx, template)?;
        let unit = self.template_named(cx, &name)?;
        let mut longest = 0;
        for block in &unit.template.tree.blocks {
            let mut blocks = cx.context.blocks.borrow_mut();
            match blocks.get_mut(&block.name) {
                Some(all) => {
                    all.push((unit, block));
                    longest = longest.max(all.len());
                }
                None => blocks.add(&block.name, smallvec![(unit, block)]),
            }
        }
        if longest > self.env.limits.depth {
            return Err(Error::limit(Exceeded::Depth, "templates extend each other without end"));
        }
        Ok(unit)
    }

    fn template_named(&self, cx: &Cx<'r>, name: &Val<'r>) -> Result<Unit<'r>> {
        match &name.value {
            Value::Text(text) => match self.load(text.as_str(), cx.unit.template.name())? {
                Some(Loaded::Unit(unit)) => Ok(unit),
                Some(Loaded::Foreign(_)) => Err(Error::new(
                    ErrorKind::TemplateNotFound,
                    format!("`{}` can only be included", text.as_str()),
                )),
                None => Err(self.env.not_found(text.as_str())),
            },
            Value::Undefined(missing) => Err(missing.error()),
            other => Err(Error::new(
                ErrorKind::Type,
                format!("the name of a template is a string, not {}", type_name(other)),
            )),
        }
    }

    pub(super) fn run_all(&self, cx: &Cx<'r>, statements: &'r [Statement], out: &mut Sink) -> Result<Flow> {
        // `extends` cannot be inside of another statement, so this stays as it is.
        let silent = self.is_silent(cx);
        // All of them are paid for at once.
        if let (Err(error), Some(first)) = (self.spend(statements.len()), statements.first()) {
            return Err(self.locate(cx, error, first));
        }
        for statement in statements {
            let written = match &statement.kind {
                StatementKind::Data | StatementKind::Emit(_) if silent => continue,
                StatementKind::Data => self.data(cx, statement, out),
                StatementKind::Emit(value) => match self.emit_simple(cx, statement.range.start, value, out) {
                    Some(written) => written,
                    None => self.emit(cx, statement.range.start, value, out),
                },
                _ => match self.check_stack().and_then(|()| self.run_kind(cx, statement, out)) {
                    Ok(Flow::Next) => continue,
                    Ok(flow) => return Ok(flow),
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = written {
                return Err(self.locate(cx, error, statement));
            }
        }
        Ok(Flow::Next)
    }

    #[cold]
    pub(super) fn locate(&self, cx: &Cx<'r>, error: Error, statement: &Statement) -> Error {
        error.at(statement.range).inside(cx.unit.number, cx.unit.template.name())
    }

    fn run(&self, cx: &Cx<'r>, statement: &'r Statement, out: &mut Sink) -> Result<Flow> {
        self.spend(1)?;
        self.check_stack()?;
        let flow = match &statement.kind {
            StatementKind::Data | StatementKind::Emit(_) if self.is_silent(cx) => return Ok(Flow::Next),
            StatementKind::Data => self.data(cx, statement, out).map(|()| Flow::Next),
            StatementKind::Emit(value) => self
                .emit_simple(cx, statement.range.start, value, out)
                .unwrap_or_else(|| self.emit(cx, statement.range.start, value, out))
                .map(|()| Flow::Next),
            _ => self.run_kind(cx, statement, out),
        };
        match flow {
            Err(error) => Err(self.locate(cx, error, statement)),
            flow => flow,
        }
    }

    /// Writes text of the author.
    #[inline(always)]
    pub(super) fn data(&self, cx: &Cx<'r>, statement: &'r Statement, out: &mut Sink) -> Result<()> {
        let text = statement.range.of(cx.unit.template.text());
        let (unit, offset) = (cx.unit.number, statement.range.start);
        out.write_marked(text, || Mark::Data { unit, offset })
    }

    #[inline]
    pub(super) fn is_silent(&self, cx: &Cx<'r>) -> bool {
        cx.checks_parent && cx.context.extended.get()
    }

    #[inline(never)]
    fn run_kind(&self, cx: &Cx<'r>, statement: &'r Statement, out: &mut Sink) -> Result<Flow> {
        match &statement.kind {
            // [`Render::run`] writes these.
            StatementKind::Data | StatementKind::Emit(_) => {}
            StatementKind::If(branches, otherwise) => {
                let taken = self.taken_branch(cx, branches, otherwise)?;
                return self.run_all(cx, taken, out);
            }
            StatementKind::For(node) => {
                let iterable = self.eval(cx, &node.iterable)?;
                if node.recursive {
                    let text = self.recursive_loop(cx, node, &iterable, 0)?;
                    self.print(cx, statement.range.start, &text, out)?;
                } else {
                    self.run_loop(cx, node, &iterable, 0, out)?;
                }
            }
            StatementKind::With(node) => {
                let values =
                    node.pairs.iter().map(|(_, value)| self.eval(cx, value)).collect::<Result<Vec<_>>>()?;
                let scope = Scope::open(self, &cx.context, &node.body.scope, Some(cx.scope.clone()));
                let inner = cx.within(scope);
                for ((target, _), value) in node.pairs.iter().zip(values) {
                    self.assign(&inner, target, value)?;
                }
                return self.run_all(&inner, &node.body.statements, out);
            }
            StatementKind::Autoescape(node) => {
                let scope = Scope::open(self, &cx.context, &node.1.scope, Some(cx.scope.clone()));
                let mut inner = cx.within(scope);
                inner.autoescape = self.truth(&self.eval(&inner, &node.0)?)?;
                return self.run_all(&inner, &node.1.statements, out);
            }
            StatementKind::Set(node) => {
                let value = self.eval(cx, &node.1)?;
                self.assign(cx, &node.0, value)?;
            }
            StatementKind::SetBlock(node) => self.set_block(cx, node)?,
            StatementKind::FilterBlock(node) => {
                let (filter, body) = node.as_ref();
                let (inner, text) = self.capture(cx.clone(), body)?;
                let value = self.filter_block(&inner, filter, text)?;
                if !matches!(value.value, Value::Text(_)) {
                    let message = format!(
                        "the filter of a block must return a string, but this one returns {}",
                        type_name(&value.value)
                    );
                    return Err(Error::new(ErrorKind::Type, message).at(filter.range));
                }
                self.print(cx, statement.range.start, &value, out)?;
            }
            StatementKind::Macro(index, name) => {
                let node = &cx.unit.template.tree.macros[*index as usize];
                let value = self.macro_value(cx, node);
                self.set_name(cx, name, value, true);
            }
            StatementKind::Generation(index) => {
                let node = &cx.unit.template.tree.macros[*index as usize];
                let body = MacroValue { node, cx: cx.clone().captured() };
                let value = self.call_macro(&body, Args::default(), cx.autoescape)?;
                self.print(cx, statement.range.start, &value, out)?;
            }
            StatementKind::CallBlock(call, index) => {
                let node = &cx.unit.template.tree.macros[*index as usize];
                let caller = self.macro_value(cx, node);
                let value = self.call_with_caller(cx, call, caller)?;
                self.print(cx, statement.range.start, &value, out)?;
            }
            StatementKind::Block(index) => self.run_block_tag(cx, *index as usize, out)?,
            StatementKind::Extends(_) => {
                return Err(Error::new(ErrorKind::Syntax, "`extends` cannot be inside another block"));
            }
            StatementKind::Include(node) => self.include(cx, node, out)?,
            StatementKind::Import(node) => self.import(cx, node)?,
            StatementKind::Do(value) | StatementKind::Broken(value) => {
                self.eval(cx, value)?;
            }
            StatementKind::Break => return Ok(Flow::Break),
            StatementKind::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Next)
    }

    fn taken_branch(
        &self,
        cx: &Cx<'r>,
        branches: &'r [(Expr, Vec<Statement>)],
        otherwise: &'r [Statement],
    ) -> Result<&'r [Statement]> {
        for (test, body) in branches {
            let plain = match &test.kind {
                // Most conditions are names, whose values can stay where they are.
                ExprKind::Name(name) => {
                    self.spend(1).map_err(|error| error.at(test.range))?;
                    cx.scope.look(name.slot, |val| is_plainly_true(&val.value)).flatten()
                }
                _ => None,
            };
            match plain {
                Some(true) => return Ok(body),
                Some(false) => continue,
                None => {}
            }
            let holds = self.truth(&self.eval(cx, test)?);
            if holds.map_err(|error| error.at(test.range).inside(cx.unit.number, cx.unit.template.name()))? {
                return Ok(body);
            }
        }
        Ok(otherwise)
    }

    fn macro_value(&self, cx: &Cx<'r>, node: &'r crate::ast::Macro) -> Val<'r> {
        // The scope holds the macro, which holds the scope.
        self.scopes.borrow_mut().push(Rc::downgrade(&cx.scope));
        let value = MacroValue { node, cx: cx.clone().captured() };
        Value::Special(Rc::new(Special::Macro(value))).into()
    }

    fn set_name(&self, cx: &Cx<'r>, name: &'r crate::ast::Name, value: Val<'r>, exported: bool) {
        if cx.top_level {
            cx.context.set(&name.name, value.clone(), exported && !name.name.starts_with('_'));
        }
        cx.scope.set(name.slot, value);
    }

    /// Assigns a value to a name, a namespace's attribute, or several of these.
    pub(super) fn assign(&self, cx: &Cx<'r>, target: &'r Expr, value: Val<'r>) -> Result<()> {
        match &target.kind {
            ExprKind::Name(name) => self.set_name(cx, name, value, true),
            ExprKind::NamespaceTarget(target) => {
                let (name, attribute) = target.as_ref();
                let space = cx.scope.get(name.slot);
                let special = match space.as_ref().map(|space| &space.value) {
                    Some(Value::Special(special)) => special,
                    _ => return Err(not_a_namespace(&name.name)),
                };
                let Special::Namespace(entries) = special.as_ref() else {
                    return Err(not_a_namespace(&name.name));
                };
                let mut entries = entries.borrow_mut();
                self.spend(entries.len() / 16)?;
                match entries.iter_mut().find(|(known, _)| known.as_ref() == attribute) {
                    Some(entry) => entry.1 = value,
                    None => entries.push((attribute.as_str().into(), value)),
                }
            }
            ExprKind::Tuple(targets) => {
                let items = self.item_list(&value)?;
                if items.len() != targets.len() {
                    let message = format!("{} names are there for {} values", targets.len(), items.len());
                    return Err(Error::new(ErrorKind::Type, message).at(target.range));
                }
                for (target, item) in targets.iter().zip(items) {
                    self.assign(cx, target, item)?;
                }
            }
            _ => return Err(Error::new(ErrorKind::Syntax, "cannot assign to this").at(target.range)),
        }
        Ok(())
    }

    /// Runs a body in a scope of its own, and gives its text.
    fn capture(&self, cx: Cx<'r>, body: &'r Body) -> Result<(Cx<'r>, Val<'r>)> {
        let scope = Scope::open(self, &cx.context, &body.scope, Some(cx.scope.clone()));
        let inner = cx.within(scope);
        let mut sink = Sink::of(self.env.limits.string_bytes, &body.statements);
        self.run_all(&inner, &body.statements, &mut sink)?;
        let text = captured(sink, cx.autoescape);
        Ok((inner, text))
    }

    fn set_block(&self, cx: &Cx<'r>, node: &'r SetBlock) -> Result<()> {
        let (inner, text) = self.capture(cx.clone().captured(), &node.body)?;
        let value = match &node.filter {
            Some(filter) => {
                let value = self.filter_block(&inner, filter, text)?;
                // Where text is escaped, a `set` block gives text that is safe, whatever its filter returns.
                match cx.autoescape {
                    true => Val::text(self.text_of(&value)?.safe(true), self.origin_of(&value)),
                    false => value,
                }
            }
            None => text,
        };
        self.assign(cx, &node.target, value)
    }

    fn run_block_tag(&self, cx: &Cx<'r>, index: usize, out: &mut Sink) -> Result<()> {
        if cx.top_level && cx.context.extended.get() {
            return Ok(());
        }
        let block = &cx.unit.template.tree.blocks[index];
        let name = block.name.as_str();
        if block.required && cx.context.blocks.borrow().get(name).is_none_or(|all| all.len() <= 1) {
            return Err(Error::new(
                ErrorKind::Runtime,
                format!("the block `{name}` is required, and no template defines it"),
            ));
        }
        let context = if block.scoped { Context::derived(cx) } else { cx.context.clone() };
        self.run_block(&context, name, 0, out)
    }

    /// Runs a block: the most derived one, or one that so many others have replaced. As in Jinja2, an `autoescape` tag around it
    /// has no effect on it.
    pub(super) fn run_block(
        &self,
        context: &Rc<Context<'r>>,
        name: &'r str,
        replaced: usize,
        out: &mut Sink,
    ) -> Result<()> {
        let found = context.blocks.borrow().get(name).and_then(|all| all.get(replaced)).copied();
        let Some((unit, block)) = found else {
            return Err(Error::new(ErrorKind::Runtime, format!("no block is named `{name}`")));
        };
        self.deeper(|| {
            let scope = Scope::open(self, context, &block.body.scope, None);
            let cx = Cx {
                unit,
                context: context.clone(),
                scope,
                autoescape: self.env.autoescape,
                top_level: false,
                checks_parent: false,
            };
            if block.self_slot.or(block.super_slot).is_some() {
                self.scopes.borrow_mut().push(Rc::downgrade(&cx.scope));
            }
            if let Some(slot) = block.self_slot {
                cx.scope.set_own(slot, Value::Special(Rc::new(Special::Blocks(cx.clone()))).into());
            }
            if let Some(slot) = block.super_slot {
                cx.scope.set_own(slot, self.parent_block(&cx, name, replaced + 1));
            }
            self.run_all(&cx, &block.body.statements, out)?;
            Ok(())
        })
    }

    fn include(&self, cx: &Cx<'r>, node: &'r Include, out: &mut Sink) -> Result<()> {
        let name = self.eval(cx, &node.template)?;
        let names = match &name.value {
            Value::List(_) | Value::Tuple(_) | Value::Array(_) => self.item_list(&name)?,
            _ => vec![name],
        };
        let mut found = None;
        for name in &names {
            let loaded = match &name.value {
                Value::Text(text) => self.load(text.as_str(), cx.unit.template.name())?,
                _ => Some(Loaded::Unit(self.template_named(cx, name)?)),
            };
            found = loaded;
            if found.is_some() {
                break;
            }
        }
        let unit = match found {
            Some(Loaded::Unit(unit)) => Some(unit),
            Some(Loaded::Foreign(number)) => return self.include_foreign(cx, node, number, out),
            None => None,
        };
        let Some(unit) = unit else {
            if node.ignore_missing {
                return Ok(());
            }
            let name = names.first().and_then(|name| name.value.as_str()).unwrap_or_default().to_owned();
            return Err(self.env.not_found(&name).at(node.template.range));
        };
        self.deeper(|| {
            let context = if node.with_context { Context::inside(unit, cx) } else { Context::alone(unit) };
            // As in Jinja2, a template with a parent leaves text and values to it, but not what it includes or calls.
            self.run_template(&context, unit, out)
        })
        .map_err(|error| error.through(cx.unit.template.name(), node.template.range))
    }

    /// Includes a text that the program writes. It sees what the template has set.
    fn include_foreign(&self, cx: &Cx<'r>, node: &'r Include, number: usize, out: &mut Sink) -> Result<()> {
        let look_up = |name: &str| {
            let value = if node.with_context { cx.assigned(name)? } else { return None };
            let origin = self.origin_of(&value);
            let whole = value.origin == origin
                && !matches!(value.value, Value::Text(ref text) if text.pieces().is_some());
            let json = match &value.value {
                Value::Undefined(_) => None,
                Value::Special(special) if matches!(special.as_ref(), Special::Placeholder(_)) => {
                    Some(special.describe().into())
                }
                _ => to_json(self, &value).ok(),
            };
            Some(SetValues { value: json, paths: self.origins.paths(origin), whole })
        };
        let range = node.template.range;
        let template = cx.unit.template.name();
        let at = Including { fuel: self.fuel(), template, range, look_up: &look_up };
        let written = stacker::maybe_grow(RED_ZONE, STACK, || self.host.foreign(number, &at))?;
        self.set_fuel(written.fuel.min(self.fuel()));
        let ends = written.parts.iter().skip(1).map(|(start, _)| *start as usize);
        for ((start, paths), end) in written.parts.iter().zip(ends.chain([written.text.len()])) {
            let origins = paths.iter().map(|path| {
                let name: &'r str = self.memory.name(path.variable.clone());
                self.origins.inside(self.origins.undefined(name), &path.inside)
            });
            let origin = self.origins.mix_all(origins.collect::<Vec<_>>());
            let text = written.text.get(*start as usize..end).unwrap_or_default();
            let mark = Mark::Foreign { text: written.number, offset: *start, origin };
            if text.is_empty() { out.empty(mark) } else { out.write(text, mark)? }
        }
        Ok(())
    }

    fn import(&self, cx: &Cx<'r>, node: &'r Import) -> Result<()> {
        let name = self.eval(cx, &node.template)?;
        let unit = self.template_named(cx, &name).map_err(|error| error.at(node.template.range))?;
        let context = if node.with_context { Context::inside(unit, cx) } else { Context::alone(unit) };
        let mut sink = Sink::new(self.env.limits.string_bytes);
        self.deeper(|| self.run_template(&context, unit, &mut sink))
            .map_err(|error| error.through(cx.unit.template.name(), node.template.range))?;
        match &node.names {
            Imported::Module(target) => {
                let text = Text::from(sink).safe(true);
                let module = Value::Special(Rc::new(Special::Module(context, text)));
                self.set_name(cx, target, module.into(), false);
            }
            Imported::Names(names) => {
                for (wanted, target) in names {
                    let value = context.offered(wanted).unwrap_or_else(|| {
                        Val::missing(format!(
                            "the template `{}` has no `{wanted}` to import",
                            unit.template.name()
                        ))
                    });
                    self.set_name(cx, target, value, false);
                }
            }
        }
        Ok(())
    }
}

fn not_a_namespace(name: &str) -> Error {
    Error::new(ErrorKind::Type, format!("`{name}` is not a namespace, so its attributes cannot be set"))
        .help(format!("begin with `{{% set {name} = namespace() %}}`"))
}

/// Captured text as a value.
pub(super) fn captured<'r>(sink: Sink, safe: bool) -> Val<'r> {
    Val::text(Text::from(sink).safe(safe), Origin::AUTHOR)
}

/// Whether a value is true, if that depends on nothing else.
#[inline]
fn is_plainly_true(value: &Value<'_>) -> Option<bool> {
    match value {
        Value::Undefined(_) | Value::Special(_) => None,
        Value::Text(text) => Some(!text.as_str().is_empty()),
        other => Some(other.is_true()),
    }
}
