//! Turns names into slots, once for each template.
//!
//! The rules are Jinja2's: loops, macros, `with`, `set` blocks and filter blocks open a scope, `if` does not. A name that a
//! scope assigns in only some branches begins with the value that it has outside. A block sees the context and nothing of
//! the template around it.

mod undeclared;

use smallvec::SmallVec;

use self::undeclared::{has_scoped_block, undeclared};
use crate::ast::{
    Block, Body, Expr, ExprKind, Held, Import, Imported, Load, Macro, Name, Scope, Slot, Statement,
    StatementKind, Tree, Word, each_child, each_child_mut,
};
use crate::error::{Error, ErrorKind};
use crate::names::{FEW, Names};
use crate::parser::SPECIAL;

pub(crate) fn resolve(text: &str, tree: &mut Tree, special: u8, errors: &mut Vec<Error>) {
    let mut resolver = Resolver {
        text,
        special,
        frames: Vec::new(),
        spare: Vec::new(),
        macros: std::mem::take(&mut tree.macros),
        done: Vec::new(),
        errors,
    };
    resolver.done = vec![false; resolver.macros.len()];
    tree.self_slot = resolver.template(&mut tree.body);
    for block in &mut tree.blocks {
        resolver.block(block);
    }
    tree.macros = resolver.macros;
}

/// A name of a scope, and how many of the open levels load and store it.
struct NameUses<'t> {
    name: &'t str,
    loads: u32,
    stores: u32,
}

/// The names of one scope.
struct Frame<'t> {
    names: Vec<NameUses<'t>>,
    /// The slots of the names, if these are more than a few.
    index: Names<&'t str, u32>,
    /// What is known at each level of `if` that is open, the scope itself first.
    levels: Vec<Level>,
}

/// What statements define on one way through an `if`.
#[derive(Default)]
struct Level {
    /// The names that the scope has, with what they begin with. The last one counts.
    loads: Vec<(u32, Load)>,
    stores: Vec<u32>,
}

impl<'t> Frame<'t> {
    fn new() -> Frame<'t> {
        Frame { names: Vec::new(), index: Names::default(), levels: vec![Level::default()] }
    }

    fn position(&self, name: &str) -> Option<u32> {
        if self.names.len() <= FEW {
            self.names.iter().position(|known| known.name == name).map(|at| at as u32)
        } else {
            self.index.get(name).copied()
        }
    }

    fn number(&mut self, name: &'t str) -> u32 {
        if let Some(index) = self.position(name) {
            return index;
        }
        let index = self.names.len() as u32;
        self.names.push(NameUses { name, loads: 0, stores: 0 });
        if self.names.len() == FEW + 1 {
            self.index.extend(self.names.iter().zip(0..).map(|(known, at)| (known.name, at)));
        } else if self.names.len() > FEW {
            self.index.insert(name, index);
        }
        index
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.position(name).filter(|index| self.names[*index as usize].loads > 0)
    }

    fn top(&mut self) -> &mut Level {
        // A frame begins with one level, and only what was pushed is popped.
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn add_load(&mut self, index: u32, load: Load) {
        self.names[index as usize].loads += 1;
        self.top().loads.push((index, load));
    }

    fn add_store(&mut self, index: u32) {
        self.names[index as usize].stores += 1;
        self.top().stores.push(index);
    }

    fn define(&mut self, name: &'t str, load: Load) -> u32 {
        let index = self.number(name);
        self.add_load(index, load);
        index
    }

    /// Ends the innermost level.
    fn pop(&mut self) -> Level {
        let level = self.levels.pop().unwrap_or_default();
        level.loads.iter().for_each(|(index, _)| self.names[*index as usize].loads -= 1);
        level.stores.iter().for_each(|index| self.names[*index as usize].stores -= 1);
        level
    }

    /// The scope, after which the frame is as good as new.
    fn scope(&mut self) -> Scope {
        let held = |known: &NameUses<'t>| Held {
            name: known.name.into(),
            load: Load::Missing,
            stored: known.stores > 0,
        };
        let mut scope = Scope { slots: self.names.iter().map(held).collect() };
        for (index, load) in self.top().loads.drain(..) {
            scope.slots[index as usize].load = load;
        }
        self.top().stores.clear();
        self.names.clear();
        self.index.clear();
        scope
    }
}

struct Resolver<'t, 'e> {
    text: &'t str,
    /// Which of the [`SPECIAL`] names the template mentions.
    special: u8,
    frames: Vec<Frame<'t>>,
    /// Frames that are not in use.
    spare: Vec<Frame<'t>>,
    macros: Vec<Macro>,
    /// Which macros were resolved: one that an error left without its tag is not.
    done: Vec<bool>,
    errors: &'e mut Vec<Error>,
}

impl<'t> Resolver<'t, '_> {
    fn frame(&mut self) -> &mut Frame<'t> {
        // `scoped` pushes a frame before anything is collected.
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The special names among these that statements use and nothing before assigns.
    fn special<'n>(&self, statements: &[Statement], names: &[&'n str]) -> SmallVec<[&'n str; 3]> {
        let mentioned = |name: &&'n str| {
            SPECIAL.iter().position(|special| special == name).is_some_and(|at| self.special & 1 << at != 0)
        };
        if !names.iter().any(&mentioned) {
            return SmallVec::new();
        }
        undeclared(statements, &self.macros, names.iter().copied().filter(|name| mentioned(name)))
    }

    /// The slot of a name, as seen from the innermost scope, without the first `skip` scopes.
    fn find(&self, name: &str, skip: usize) -> Option<Slot> {
        let outwards = self.frames.iter().rev().enumerate().skip(skip);
        outwards.filter_map(|(up, frame)| frame.find(name).map(|index| Slot { up: up as u32, index })).next()
    }

    fn template(&mut self, body: &mut Body) -> Option<u32> {
        let uses_self = !self.special(&body.statements, &["self"]).is_empty();
        let mut self_slot = None;
        let statements = &mut body.statements;
        body.scope = self.scoped(|resolver| {
            self_slot = uses_self.then(|| resolver.parameter("self"));
            resolver.collect_all(statements);
            resolver.assign_all(statements);
        });
        self_slot
    }

    fn block(&mut self, block: &mut Block) {
        let special = self.special(&block.body.statements, &["self", "super"]);
        let (mut self_slot, mut super_slot) = (None, None);
        let statements = &mut block.body.statements;
        block.body.scope = self.scoped(|resolver| {
            self_slot = special.contains(&"self").then(|| resolver.parameter("self"));
            super_slot = special.contains(&"super").then(|| resolver.parameter("super"));
            resolver.collect_all(statements);
            resolver.assign_all(statements);
        });
        (block.self_slot, block.super_slot) = (self_slot, super_slot);
    }

    /// Runs `inside` with a new scope, and gives the scope.
    fn scoped(&mut self, inside: impl FnOnce(&mut Self)) -> Scope {
        let frame = self.spare.pop().unwrap_or_else(Frame::new);
        self.frames.push(frame);
        inside(self);
        let Some(mut frame) = self.frames.pop() else { return Scope::default() };
        let scope = frame.scope();
        self.spare.push(frame);
        scope
    }

    fn scoped_body(&mut self, body: &mut Body) {
        if body.statements.is_empty() {
            return;
        }
        let statements = &mut body.statements;
        body.scope = self.scoped(|resolver| {
            resolver.collect_all(statements);
            resolver.assign_all(statements);
        });
    }

    // What a scope defines.

    fn parameter(&mut self, name: &'t str) -> u32 {
        let frame = self.frame();
        let index = frame.define(name, Load::Parameter);
        frame.add_store(index);
        index
    }

    fn load(&mut self, name: &Name) {
        let name = name.range.of(self.text);
        if self.find(name, 0).is_none() {
            self.frame().define(name, Load::Resolve);
        }
    }

    fn store(&mut self, name: &Name) {
        let name = name.range.of(self.text);
        let known = self.frame().find(name);
        let index = match known {
            Some(index) => index,
            None => {
                let load = self.find(name, 1).map_or(Load::Missing, Load::Alias);
                self.frame().define(name, load)
            }
        };
        self.frame().add_store(index);
    }

    fn collect_all(&mut self, statements: &[Statement]) {
        for statement in statements {
            self.collect(statement);
        }
    }

    fn collect(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Data
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Generation(_)
            | StatementKind::Block(_) => {}
            StatementKind::Emit(value)
            | StatementKind::Do(value)
            | StatementKind::Broken(value)
            | StatementKind::Extends(value) => {
                self.collect_expression(value);
            }
            StatementKind::If(branches, otherwise) => self.collect_if(branches, otherwise),
            StatementKind::For(node) => self.collect_expression(&node.iterable),
            StatementKind::With(node) => {
                node.pairs.iter().for_each(|(_, value)| self.collect_expression(value))
            }
            StatementKind::Autoescape(_) => {}
            StatementKind::Set(node) => {
                self.collect_expression(&node.1);
                self.collect_target(&node.0);
            }
            StatementKind::SetBlock(node) => self.collect_target(&node.target),
            StatementKind::FilterBlock(node) => self.collect_expression(&node.0),
            StatementKind::Macro(_, name) => self.store(name),
            StatementKind::CallBlock(call, _) => self.collect_expression(call),
            StatementKind::Include(node) => self.collect_expression(&node.template),
            StatementKind::Import(node) => self.collect_import(node),
        }
    }

    fn collect_import(&mut self, node: &Import) {
        self.collect_expression(&node.template);
        match &node.names {
            Imported::Module(name) => self.store(name),
            Imported::Names(names) => names.iter().for_each(|(_, name)| self.store(name)),
        }
    }

    fn branch(&mut self, inside: impl FnOnce(&mut Self)) -> Level {
        self.frame().levels.push(Level::default());
        inside(self);
        self.frame().pop()
    }

    fn collect_if(&mut self, branches: &[(Expr, Vec<Statement>)], otherwise: &[Statement]) {
        let Some(((test, body), others)) = branches.split_first() else { return };
        self.collect_expression(test);
        let first = self.branch(|resolver| resolver.collect_all(body));
        let second = self.branch(|resolver| {
            for (test, body) in others {
                resolver.collect_expression(test);
                let inner = resolver.branch(|resolver| resolver.collect_all(body));
                resolver.join([inner]);
            }
        });
        let third = self.branch(|resolver| resolver.collect_all(otherwise));
        self.join([first, second, third]);
    }

    /// Brings together what the branches of an `if` define. A name that a branch assigns begins with what it was before.
    fn join<const N: usize>(&mut self, branches: [Level; N]) {
        let mut assigned: Vec<u32> =
            branches.iter().flat_map(|branch| branch.stores.iter().copied()).collect();
        assigned.sort_unstable();
        assigned.dedup();
        let frame = self.frame();
        assigned.retain(|index| frame.names[*index as usize].stores == 0);
        for branch in branches {
            branch.loads.into_iter().for_each(|(index, load)| frame.add_load(index, load));
            branch.stores.into_iter().for_each(|index| frame.add_store(index));
        }
        for index in assigned {
            let name = self.frame().names[index as usize].name;
            let load = self.find(name, 1).map_or(Load::Resolve, Load::Alias);
            self.frame().add_load(index, load);
        }
    }

    fn collect_target(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => self.store(name),
            ExprKind::NamespaceTarget(target) => self.load(&target.0),
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.collect_target(item)),
            _ => {}
        }
    }

    fn collect_parameters(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => {
                self.parameter(name.range.of(self.text));
            }
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.collect_parameters(item)),
            _ => {}
        }
    }

    fn collect_expression(&mut self, value: &Expr) {
        if let ExprKind::Name(name) = &value.kind {
            self.load(name);
        }
        each_child(value, &mut |child| self.collect_expression(child));
    }

    // Slots for every name.

    fn assign_all(&mut self, statements: &mut [Statement]) {
        for statement in statements {
            self.assign(statement);
        }
    }

    fn assign_name(&mut self, name: &mut Name) {
        let text = name.range.of(self.text);
        name.slot = self.find(text, 0).unwrap_or_else(|| {
            let index = self.frame().define(text, Load::Resolve);
            Slot { up: 0, index }
        });
    }

    fn assign_expression(&mut self, value: &mut Expr) {
        match &mut value.kind {
            ExprKind::Name(name) => return self.assign_name(name),
            ExprKind::NamespaceTarget(target) => return self.assign_name(&mut target.0),
            _ => {}
        }
        each_child_mut(value, &mut |child| self.assign_expression(child));
    }

    fn assign(&mut self, statement: &mut Statement) {
        match &mut statement.kind {
            StatementKind::Data
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Block(_) => {}
            StatementKind::Emit(value)
            | StatementKind::Do(value)
            | StatementKind::Broken(value)
            | StatementKind::Extends(value) => {
                self.assign_expression(value);
            }
            StatementKind::If(branches, otherwise) => {
                for (test, body) in branches {
                    self.assign_expression(test);
                    self.assign_all(body);
                }
                self.assign_all(otherwise);
            }
            StatementKind::For(node) => {
                self.assign_expression(&mut node.iterable);
                self.assign_for(node);
            }
            StatementKind::With(node) => {
                node.pairs.iter_mut().for_each(|(_, value)| self.assign_expression(value));
                let (pairs, statements) = (&mut node.pairs, &mut node.body.statements);
                node.body.scope = self.scoped(|resolver| {
                    pairs.iter().for_each(|(target, _)| resolver.collect_parameters(target));
                    resolver.collect_all(statements);
                    pairs.iter_mut().for_each(|(target, _)| resolver.assign_expression(target));
                    resolver.assign_all(statements);
                });
            }
            StatementKind::Autoescape(node) => {
                let (option, body) = (&mut node.0, &mut node.1);
                let statements = &mut body.statements;
                body.scope = self.scoped(|resolver| {
                    resolver.collect_expression(option);
                    resolver.collect_all(statements);
                    resolver.assign_expression(option);
                    resolver.assign_all(statements);
                });
            }
            StatementKind::Set(node) => {
                self.assign_expression(&mut node.1);
                self.assign_expression(&mut node.0);
            }
            StatementKind::SetBlock(node) => {
                self.assign_expression(&mut node.target);
                self.assign_filtered(node.filter.as_mut(), &mut node.body);
            }
            StatementKind::FilterBlock(node) => {
                let (filter, body) = (&mut node.0, &mut node.1);
                self.assign_filtered(Some(filter), body);
            }
            StatementKind::Macro(index, name) => {
                self.assign_name(name);
                self.assign_macro(*index as usize);
            }
            StatementKind::Generation(index) => self.assign_macro(*index as usize),
            StatementKind::CallBlock(call, index) => {
                self.assign_expression(call);
                self.assign_macro(*index as usize);
            }
            StatementKind::Include(node) => self.assign_expression(&mut node.template),
            StatementKind::Import(node) => {
                self.assign_expression(&mut node.template);
                match &mut node.names {
                    Imported::Module(name) => self.assign_name(name),
                    Imported::Names(names) => names.iter_mut().for_each(|(_, name)| self.assign_name(name)),
                }
            }
        }
    }

    /// A body and the filter behind it share a scope.
    fn assign_filtered(&mut self, mut filter: Option<&mut Expr>, body: &mut Body) {
        let statements = &mut body.statements;
        body.scope = self.scoped(|resolver| {
            if let Some(filter) = &filter {
                resolver.collect_expression(filter);
            }
            resolver.collect_all(statements);
            if let Some(filter) = &mut filter {
                resolver.assign_expression(filter);
            }
            resolver.assign_all(statements);
        });
    }

    fn assign_for(&mut self, node: &mut crate::ast::For) {
        let extended = node.recursive
            || !self.special(&node.body.statements, &["loop"]).is_empty()
            || has_scoped_block(&node.body.statements);
        let (target, statements) = (&mut node.target, &mut node.body.statements);
        let mut loop_slot = None;
        node.body.scope = self.scoped(|resolver| {
            loop_slot = extended.then(|| resolver.parameter("loop"));
            resolver.collect_parameters(target);
            resolver.collect_all(statements);
            resolver.assign_expression(target);
            resolver.assign_all(statements);
        });
        node.loop_slot = loop_slot;
        if let Some((test, scope, target)) = &mut node.test {
            *scope = self.scoped(|resolver| {
                resolver.collect_parameters(target);
                resolver.collect_expression(test);
                resolver.assign_expression(target);
                resolver.assign_expression(test);
            });
        }
        self.scoped_body(&mut node.otherwise);
    }

    fn assign_macro(&mut self, index: usize) {
        if std::mem::replace(&mut self.done[index], true) {
            return;
        }
        // Taken out, so that macros inside of it can be looked at; nothing asks for it meanwhile.
        let empty = Macro {
            name: Word::default(),
            parameters: Vec::new(),
            defaults: Vec::new(),
            body: Body::default(),
            caller: None,
            kwargs: None,
            varargs: None,
            explicit_caller: false,
            range: self.macros[index].range,
        };
        let mut node = std::mem::replace(&mut self.macros[index], empty);
        let special = self.special(&node.body.statements, &["caller", "kwargs", "varargs"]);
        let has =
            |node: &Macro, name: &str| node.parameters.iter().position(|parameter| parameter.name == name);
        let explicit = has(&node, "caller");
        if let Some(at) = explicit.filter(|_| special.contains(&"caller")) {
            node.explicit_caller = true;
            if at < node.parameters.len() - node.defaults.len() {
                let message = "the parameter `caller` of a macro must have a default, or be left out";
                self.errors.push(Error::new(ErrorKind::Syntax, message).at(node.parameters[at].range));
            }
        }
        let wants = |node: &Macro, name: &str| special.contains(&name) && has(node, name).is_none();
        node.body.scope = self.scoped(|resolver| {
            for parameter in &node.parameters {
                resolver.parameter(parameter.range.of(resolver.text));
            }
            node.defaults.iter().for_each(|default| resolver.collect_expression(default));
            resolver.collect_all(&node.body.statements);
            if wants(&node, "caller") {
                node.caller = Some(resolver.parameter("caller"));
            }
            if wants(&node, "kwargs") {
                node.kwargs = Some(resolver.parameter("kwargs"));
            }
            if wants(&node, "varargs") {
                node.varargs = Some(resolver.parameter("varargs"));
            }
            node.parameters.iter_mut().for_each(|parameter| resolver.assign_name(parameter));
            node.defaults.iter_mut().for_each(|default| resolver.assign_expression(default));
            resolver.assign_all(&mut node.body.statements);
        });
        self.macros[index] = node;
    }
}
