//! Which special names (`loop`, `caller`, `self` …) statements use before anything assigns them, in any scope inside.

use smallvec::SmallVec;

use crate::ast::{Body, Expr, ExprKind, Macro, Statement, StatementKind, each_child};

/// The special names among `names` that these statements use. Blocks are not looked into.
pub(super) fn undeclared<'n>(
    statements: &[Statement],
    macros: &[Macro],
    names: impl Iterator<Item = &'n str>,
) -> SmallVec<[&'n str; 3]> {
    let mut search = Search { wanted: names.collect(), found: SmallVec::new(), macros };
    search.statements(statements);
    search.found
}

struct Search<'n, 'm> {
    wanted: SmallVec<[&'n str; 3]>,
    found: SmallVec<[&'n str; 3]>,
    macros: &'m [Macro],
}

impl Search<'_, '_> {
    fn load(&mut self, name: &str) {
        if let Some(at) = self.wanted.iter().position(|wanted| *wanted == name) {
            self.found.push(self.wanted.swap_remove(at));
        }
    }

    fn store(&mut self, name: &str) {
        self.wanted.retain(|wanted| *wanted != name);
    }

    fn target(&mut self, target: &Expr) {
        match &target.kind {
            ExprKind::Name(name) => self.store(&name.name),
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.target(item)),
            _ => {}
        }
    }

    fn expression(&mut self, value: &Expr) {
        if let ExprKind::Name(name) = &value.kind {
            self.load(&name.name);
        }
        each_child(value, &mut |child| self.expression(child));
    }

    fn statements(&mut self, statements: &[Statement]) {
        for statement in statements {
            if self.wanted.is_empty() {
                return;
            }
            self.statement(statement);
        }
    }

    fn body(&mut self, body: &Body) {
        self.statements(&body.statements);
    }

    fn inner_macro(&mut self, index: u32) {
        let node = &self.macros[index as usize];
        node.parameters.iter().for_each(|parameter| self.store(&parameter.name));
        node.defaults.iter().for_each(|default| self.expression(default));
        self.body(&node.body);
    }

    fn statement(&mut self, statement: &Statement) {
        match &statement.kind {
            StatementKind::Data
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Block(_) => {}
            StatementKind::Emit(value)
            | StatementKind::Do(value)
            | StatementKind::Broken(value)
            | StatementKind::Extends(value) => self.expression(value),
            StatementKind::If(branches, otherwise) => {
                for (test, body) in branches {
                    self.expression(test);
                    self.statements(body);
                }
                self.statements(otherwise);
            }
            StatementKind::For(node) => {
                self.target(&node.target);
                self.expression(&node.iterable);
                self.body(&node.body);
                self.body(&node.otherwise);
                if let Some((test, ..)) = &node.test {
                    self.expression(test);
                }
            }
            StatementKind::With(node) => {
                node.pairs.iter().for_each(|(target, _)| self.target(target));
                node.pairs.iter().for_each(|(_, value)| self.expression(value));
                self.body(&node.body);
            }
            StatementKind::Autoescape(node) => {
                self.expression(&node.0);
                self.body(&node.1);
            }
            StatementKind::Set(node) => {
                self.target(&node.0);
                self.expression(&node.1);
            }
            StatementKind::SetBlock(node) => {
                self.target(&node.target);
                node.filter.iter().for_each(|filter| self.expression(filter));
                self.body(&node.body);
            }
            StatementKind::FilterBlock(node) => {
                self.body(&node.1);
                self.expression(&node.0);
            }
            StatementKind::Macro(index, _) | StatementKind::Generation(index) => self.inner_macro(*index),
            StatementKind::CallBlock(call, index) => {
                self.expression(call);
                self.inner_macro(*index);
            }
            StatementKind::Include(node) => self.expression(&node.template),
            StatementKind::Import(node) => self.expression(&node.template),
        }
    }
}

/// Whether a scoped block is among these statements. Blocks are kept apart, so any block counts: a loop that offers `loop`
/// although nothing uses it costs little.
pub(super) fn has_scoped_block(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match &statement.kind {
        StatementKind::Block(_) => true,
        StatementKind::If(branches, otherwise) => {
            branches.iter().any(|(_, body)| has_scoped_block(body)) || has_scoped_block(otherwise)
        }
        StatementKind::For(node) => has_scoped_block(&node.body.statements),
        StatementKind::With(node) => has_scoped_block(&node.body.statements),
        StatementKind::Autoescape(node) | StatementKind::FilterBlock(node) => {
            has_scoped_block(&node.1.statements)
        }
        StatementKind::SetBlock(node) => has_scoped_block(&node.body.statements),
        _ => false,
    })
}
