//! Turns names into slots, once for each template.
//!
//! The rules are Jinja2's: loops, macros, `with`, `set` blocks and filter blocks open a scope, `if` does not. A name that a
//! scope assigns in only some branches begins with the value that it has outside. A block sees the context and nothing of
//! the template around it.

mod undeclared;

use self::undeclared::{has_scoped_block, undeclared};
use crate::ast::{
    Block, Body, Expr, ExprKind, Import, Imported, Load, Macro, Name, Scope, Slot, Statement, StatementKind,
    Tree, each_child, each_child_mut,
};
use crate::error::{Error, ErrorKind};
use crate::names::{Names, Numbers};

pub(crate) fn resolve(tree: &mut Tree, errors: &mut Vec<Error>) {
    let mut resolver =
        Resolver { frames: Vec::new(), macros: std::mem::take(&mut tree.macros), done: Vec::new(), errors };
    resolver.done = vec![false; resolver.macros.len()];
    tree.self_slot = resolver.template(&mut tree.body);
    for block in &mut tree.blocks {
        resolver.block(block);
    }
    tree.macros = resolver.macros;
}

/// The names of one scope.
#[derive(Default)]
struct Frame {
    names: Vec<String>,
    index: Names<String, u32>,
    /// What is known at each level of `if` that is open, the scope itself first.
    levels: Vec<Level>,
}

/// What statements define on one way through an `if`.
#[derive(Default)]
struct Level {
    /// The names that the scope has, with what they begin with.
    loads: Names<u32, Load>,
    stores: Numbers<u32>,
}

impl Frame {
    fn new() -> Frame {
        Frame { levels: vec![Level::default()], ..Frame::default() }
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(index) = self.index.get(name) {
            return *index;
        }
        let index = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), index);
        index
    }

    fn find(&self, name: &str) -> Option<u32> {
        let index = *self.index.get(name)?;
        self.levels.iter().any(|level| level.loads.contains_key(&index)).then_some(index)
    }

    fn top(&mut self) -> &mut Level {
        // A frame begins with one level, and only what was pushed is popped.
        let last = self.levels.len() - 1;
        &mut self.levels[last]
    }

    fn define(&mut self, name: &str, load: Load) -> u32 {
        let index = self.number(name);
        self.top().loads.insert(index, load);
        index
    }

    fn scope(self) -> Scope {
        let level = self.levels.into_iter().next().unwrap_or_default();
        let load = |index| level.loads.get(&index).copied().unwrap_or(Load::Missing);
        let mut stored = vec![false; self.names.len()];
        for index in &level.stores {
            stored[*index as usize] = true;
        }
        Scope { loads: (0..self.names.len() as u32).map(load).collect(), names: self.names, stored }
    }
}

struct Resolver<'e> {
    frames: Vec<Frame>,
    macros: Vec<Macro>,
    /// Which macros were resolved: one that an error left without its tag is not.
    done: Vec<bool>,
    errors: &'e mut Vec<Error>,
}

impl Resolver<'_> {
    fn frame(&mut self) -> &mut Frame {
        // `template`, `block` and `scoped` push a frame before anything is collected.
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    /// The slot of a name, as seen from the innermost scope, without the first `skip` scopes.
    fn find(&self, name: &str, skip: usize) -> Option<Slot> {
        let outwards = self.frames.iter().rev().enumerate().skip(skip);
        outwards.filter_map(|(up, frame)| frame.find(name).map(|index| Slot { up: up as u32, index })).next()
    }

    fn template(&mut self, body: &mut Body) -> Option<u32> {
        self.frames = vec![Frame::new()];
        let uses_self = !undeclared(&body.statements, &self.macros, &["self"]).is_empty();
        let self_slot = uses_self.then(|| self.parameter("self"));
        self.collect_all(&body.statements);
        self.assign_all(&mut body.statements);
        body.scope = self.frames.pop().unwrap_or_default().scope();
        self_slot
    }

    fn block(&mut self, block: &mut Block) {
        self.frames = vec![Frame::new()];
        let special = undeclared(&block.body.statements, &self.macros, &["self", "super"]);
        block.self_slot = special.contains(&"self").then(|| self.parameter("self"));
        block.super_slot = special.contains(&"super").then(|| self.parameter("super"));
        self.collect_all(&block.body.statements);
        self.assign_all(&mut block.body.statements);
        block.body.scope = self.frames.pop().unwrap_or_default().scope();
    }

    /// Runs `inside` with a new scope, and gives the scope.
    fn scoped(&mut self, inside: impl FnOnce(&mut Self)) -> Scope {
        self.frames.push(Frame::new());
        inside(self);
        self.frames.pop().unwrap_or_default().scope()
    }

    fn scoped_body(&mut self, body: &mut Body) {
        let statements = &mut body.statements;
        body.scope = self.scoped(|resolver| {
            resolver.collect_all(statements);
            resolver.assign_all(statements);
        });
    }

    // What a scope defines.

    fn parameter(&mut self, name: &str) -> u32 {
        let index = self.frame().define(name, Load::Parameter);
        self.frame().top().stores.insert(index);
        index
    }

    fn load(&mut self, name: &str) {
        if self.find(name, 0).is_none() {
            self.frame().define(name, Load::Resolve);
        }
    }

    fn store(&mut self, name: &str) {
        let known = self.frame().find(name);
        let index = match known {
            Some(index) => index,
            None => {
                let load = self.find(name, 1).map_or(Load::Missing, Load::Alias);
                self.frame().define(name, load)
            }
        };
        self.frame().top().stores.insert(index);
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
            StatementKind::Emit(value) | StatementKind::Do(value) | StatementKind::Extends(value) => {
                self.collect_expression(value);
            }
            StatementKind::If(branches, otherwise) => self.collect_if(branches, otherwise),
            StatementKind::For(node) => self.collect_expression(&node.iterable),
            StatementKind::With(node) => {
                node.pairs.iter().for_each(|(_, value)| self.collect_expression(value))
            }
            StatementKind::Autoescape(_) => {}
            StatementKind::Set(target, value) => {
                self.collect_expression(value);
                self.collect_target(target);
            }
            StatementKind::SetBlock(node) => self.collect_target(&node.target),
            StatementKind::FilterBlock(node) => self.collect_expression(&node.0),
            StatementKind::Macro(_, name) => self.store(&name.name),
            StatementKind::CallBlock(call, _) => self.collect_expression(call),
            StatementKind::Include(node) => self.collect_expression(&node.template),
            StatementKind::Import(node) => self.collect_import(node),
        }
    }

    fn collect_import(&mut self, node: &Import) {
        self.collect_expression(&node.template);
        match &node.names {
            Imported::Module(name) => self.store(&name.name),
            Imported::Names(names) => names.iter().for_each(|(_, name)| self.store(&name.name)),
        }
    }

    fn branch(&mut self, inside: impl FnOnce(&mut Self)) -> Level {
        self.frame().levels.push(Level::default());
        inside(self);
        self.frame().levels.pop().unwrap_or_default()
    }

    fn collect_if(&mut self, branches: &[(Expr, Vec<Statement>)], otherwise: &[Statement]) {
        let Some(((test, body), others)) = branches.split_first() else { return };
        self.collect_expression(test);
        let first = self.branch(|resolver| resolver.collect_all(body));
        let second = self.branch(|resolver| {
            for (test, body) in others {
                resolver.collect_expression(test);
                let inner = resolver.branch(|resolver| resolver.collect_all(body));
                resolver.join(vec![inner, Level::default(), Level::default()]);
            }
        });
        let third = self.branch(|resolver| resolver.collect_all(otherwise));
        self.join(vec![first, second, third]);
    }

    /// Brings together what the branches of an `if` define. A name that a branch assigns begins with what it was before.
    fn join(&mut self, branches: Vec<Level>) {
        let mut assigned: Vec<u32> =
            branches.iter().flat_map(|branch| branch.stores.iter().copied()).collect();
        assigned.sort_unstable();
        assigned.dedup();
        assigned.retain(|index| !self.frame().levels.iter().any(|level| level.stores.contains(index)));
        for branch in branches {
            let top = self.frame().top();
            top.loads.extend(branch.loads);
            top.stores.extend(branch.stores);
        }
        for index in assigned {
            let name = self.frame().names[index as usize].clone();
            let load = self.find(&name, 1).map_or(Load::Resolve, Load::Alias);
            self.frame().top().loads.insert(index, load);
        }
    }

    fn collect_target(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => self.store(&name.name),
            ExprKind::NamespaceTarget(name, _) => self.load(&name.name),
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.collect_target(item)),
            _ => {}
        }
    }

    fn collect_parameters(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => {
                self.parameter(&name.name);
            }
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.collect_parameters(item)),
            _ => {}
        }
    }

    fn collect_expression(&mut self, value: &Expr) {
        if let ExprKind::Name(name) = &value.kind {
            self.load(&name.name);
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
        if self.find(&name.name, 0).is_none() {
            self.load(&name.name);
        }
        name.slot = self.find(&name.name, 0).unwrap_or_default();
    }

    fn assign_expression(&mut self, value: &mut Expr) {
        if let ExprKind::Name(name) | ExprKind::NamespaceTarget(name, _) = &mut value.kind {
            self.assign_name(name);
        }
        each_child_mut(value, &mut |child| self.assign_expression(child));
    }

    fn assign(&mut self, statement: &mut Statement) {
        match &mut statement.kind {
            StatementKind::Data
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Block(_) => {}
            StatementKind::Emit(value) | StatementKind::Do(value) | StatementKind::Extends(value) => {
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
            StatementKind::Set(target, value) => {
                self.assign_expression(value);
                self.assign_expression(target);
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
            || !undeclared(&node.body.statements, &self.macros, &["loop"]).is_empty()
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
            name: String::new(),
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
        let special = undeclared(&node.body.statements, &self.macros, &["caller", "kwargs", "varargs"]);
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
        let mut scope = Scope::default();
        std::mem::swap(&mut scope, &mut node.body.scope);
        node.body.scope = self.scoped(|resolver| {
            for parameter in &node.parameters {
                resolver.parameter(&parameter.name);
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
