//! Reads templates, and finds what can be known to be wrong before a render.

use std::collections::BTreeMap;

use crate::ast::{Arguments, Body, Expr, ExprKind, Statement, StatementKind, Tree, each_child};
use crate::environment::{Environment, Style};
use crate::error::{Error, ErrorKind, Result, unknown};
use crate::library::library;
use crate::parser::Grammar;
use crate::template::Template;

impl Environment {
    /// Reads a template. The error is the first of all errors; [`Environment::check`] gives all.
    pub fn compile(&self, name: &str, text: &str) -> Result<Template> {
        compile(self, name, text)
    }

    /// Reads a template, with every error that it has. The template can be walked even if it has some.
    pub fn read(&self, name: &str, text: &str) -> (Template, Vec<Error>) {
        read(self, name, text)
    }

    /// The names of the filters, tests and functions that templates find, in that order.
    #[doc(hidden)]
    pub fn callables(&self) -> [Vec<&str>; 3] {
        fn own<T>(own: &BTreeMap<String, T>) -> Vec<&str> {
            own.keys().map(String::as_str).collect()
        }
        let library = library(self.style);
        let functions: Vec<&str> = library.functions.iter().map(|function| function.name).collect();
        [
            [library.filter_names().collect(), own(&self.filters), own(&self.frames)].concat(),
            [library.test_names().collect(), own(&self.tests)].concat(),
            [functions, own(&self.functions), own(&self.globals)].concat(),
        ]
    }

    /// Every error of a template.
    pub fn check(&self, name: &str, text: &str) -> Vec<Error> {
        read(self, name, text).1
    }
}

pub(crate) fn compile(env: &Environment, name: &str, text: &str) -> Result<Template> {
    let (template, errors) = read(env, name, text);
    match errors.into_iter().next() {
        Some(error) => Err(error),
        None => Ok(template),
    }
}

fn read(env: &Environment, name: &str, text: &str) -> (Template, Vec<Error>) {
    let tags: Vec<&str> = env.frames.keys().map(String::as_str).collect();
    let grammar = Grammar {
        whitespace: env.whitespace,
        generation: env.style == Style::Chat,
        null: env.style == Style::Portable,
        tags: &tags,
    };
    let (template, mut errors) = Template::read(grammar, name, text);
    let known = errors.len();
    let mut check = Check { env, errors: &mut errors, tree: &template.tree };
    check.statements(&template.tree.body.statements, false);
    for block in &template.tree.blocks {
        check.statements(&block.body.statements, false);
    }
    let found = errors.split_off(known).into_iter().map(|error| error.inside(0, name));
    errors.extend(found.collect::<Vec<_>>());
    (template, errors)
}

/// Finds filters and tests that do not exist. In a branch that may never be taken they are errors of the render.
struct Check<'c> {
    env: &'c Environment,
    errors: &'c mut Vec<Error>,
    tree: &'c Tree,
}

impl Check<'_> {
    fn statements(&mut self, statements: &[Statement], soft: bool) {
        for statement in statements {
            self.statement(statement, soft);
        }
    }

    fn body(&mut self, body: &Body) {
        self.statements(&body.statements, false);
    }

    fn inner_macro(&mut self, index: u32) {
        let node = &self.tree.macros[index as usize];
        node.defaults.iter().for_each(|default| self.expression(default, false));
        self.body(&node.body);
    }

    fn statement(&mut self, statement: &Statement, soft: bool) {
        match &statement.kind {
            StatementKind::Data
            | StatementKind::Break
            | StatementKind::Continue
            | StatementKind::Block(_) => {}
            StatementKind::Emit(value)
            | StatementKind::Do(value)
            | StatementKind::Broken(value)
            | StatementKind::Extends(value) => {
                self.expression(value, soft);
            }
            StatementKind::If(branches, otherwise) => {
                for (test, body) in branches {
                    self.expression(test, true);
                    self.statements(body, true);
                }
                self.statements(otherwise, true);
            }
            StatementKind::For(node) => {
                self.expression(&node.iterable, soft);
                if let Some((test, ..)) = &node.test {
                    self.expression(test, false);
                }
                self.body(&node.body);
                self.body(&node.otherwise);
            }
            StatementKind::With(node) => {
                node.pairs.iter().for_each(|(_, value)| self.expression(value, soft));
                self.body(&node.body);
            }
            StatementKind::Autoescape(node) => {
                self.expression(&node.0, false);
                self.body(&node.1);
            }
            StatementKind::Set(node) => self.expression(&node.1, soft),
            StatementKind::SetBlock(node) => {
                node.filter.iter().for_each(|filter| self.expression(filter, false));
                self.body(&node.body);
            }
            StatementKind::FilterBlock(node) => {
                self.expression(&node.0, false);
                self.body(&node.1);
            }
            StatementKind::Macro(index, _) | StatementKind::Generation(index) => self.inner_macro(*index),
            StatementKind::CallBlock(call, index) => {
                self.expression(call, soft);
                self.inner_macro(*index);
            }
            StatementKind::Include(node) => self.expression(&node.template, soft),
            StatementKind::Import(node) => self.expression(&node.template, soft),
        }
    }

    fn expression(&mut self, value: &Expr, soft: bool) {
        let soft = soft || matches!(value.kind, ExprKind::If(..));
        if !soft {
            match &value.kind {
                ExprKind::Filter(_, named)
                    if library(self.env.style).filter(named.name.as_str()).is_none()
                        && !self.env.has_filter(&named.name) =>
                {
                    let known = self.env.callables()[0].clone().into_iter();
                    self.errors.push(unknown("filter", &named.name, known).at(named.range));
                }
                ExprKind::Test(_, named) if library(self.env.style).test(&named.name).is_none() => {
                    let custom = &self.env.tests;
                    if !custom.contains_key(named.name.as_str()) {
                        let known =
                            library(self.env.style).test_names().chain(custom.keys().map(String::as_str));
                        self.errors.push(unknown("test", &named.name, known).at(named.range));
                    }
                }
                _ => {}
            }
        }
        if let ExprKind::Call(_, given) = &value.kind {
            self.repeated(given, value);
        }
        each_child(value, &mut |child| self.expression(child, soft));
    }

    fn repeated(&mut self, given: &Arguments, call: &Expr) {
        for (at, (name, _)) in given.named.iter().enumerate() {
            if given.named[..at].iter().any(|(known, _)| known == name) {
                let message = format!("the argument `{name}` is given twice");
                self.errors.push(Error::new(ErrorKind::Syntax, message).at(call.range));
            }
        }
    }
}
