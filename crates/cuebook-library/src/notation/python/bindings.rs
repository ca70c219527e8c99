//! What each name at module level stands for when the module has been loaded.
//!
//! The statements are taken in their order, as Python would take them, and each leaves the names that it binds or touches
//! either with a literal or with the reason why it is unknown. Bodies of functions do not run while a module loads and
//! are not looked into; bodies of classes do, and can change a module's values but not bind its names.

use std::collections::HashSet;
use std::ops::Range;

use indexmap::IndexMap;
use ruff_python_ast::visitor::{self, Visitor};
use ruff_python_ast::{Alias, ExceptHandler, Expr, Identifier, Parameters, Pattern, Stmt, StmtFunctionDef};
use ruff_text_size::Ranged;

use super::fault::{Fault, UnknownReason};
use super::literal::Literal;
use super::read;
use super::{Binding, Function};

/// What a module binds.
#[derive(Debug, Default)]
pub(super) struct Bindings {
    pub names: IndexMap<String, Binding>,
    pub functions: Vec<Function>,
    pub star_import: Option<Range<usize>>,
    /// A statement that Python refuses although the grammar allows it, such as `return` outside a function.
    pub misplaced: Option<(Range<usize>, &'static str)>,
}

impl Bindings {
    /// Goes through the statements of a module.
    pub(super) fn collect(body: &[Stmt], text: &str) -> Bindings {
        let mut walker =
            Walker { text, found: Bindings::default(), block: None, in_loop: false, classes: Vec::new() };
        walker.statements(body);
        walker.found
    }
}

/// The methods by which lists and dicts are changed in place.
const CHANGING_METHODS: &[&str] = &[
    "__delitem__",
    "__iadd__",
    "__imul__",
    "__ior__",
    "__setitem__",
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
];

struct Walker<'t> {
    text: &'t str,
    found: Bindings,
    /// The word that begins the innermost block, if statements may run once, never or often.
    block: Option<&'static str>,
    in_loop: bool,
    /// The names that each class around the statement has bound in its own scope.
    classes: Vec<HashSet<String>>,
}

impl Walker<'_> {
    fn statements(&mut self, body: &[Stmt]) {
        for statement in body {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Assign(assign) => {
                if assign.value.is_starred_expr() {
                    self.misplaced(&*assign.value, "a starred value without a list or tuple around it");
                }
                self.visit_expr(&assign.value);
                for target in &assign.targets {
                    self.assign(target, Some(&assign.value), UnknownReason::Unpacked);
                }
                if let ([Expr::Name(name)], true) = (assign.targets.as_slice(), self.classes.is_empty())
                    && let Some(binding) = self.found.names.get_mut(name.id.as_str())
                {
                    binding.plain = true;
                }
            }
            Stmt::AnnAssign(assign) => {
                // Without a value it only declares a type.
                if let Some(value) = &assign.value {
                    self.visit_expr(value);
                    self.assign(&assign.target, Some(value), UnknownReason::Unpacked);
                }
            }
            Stmt::AugAssign(assign) => {
                self.visit_expr(&assign.value);
                self.visit_expr(&assign.target);
                self.change(&assign.target, statement.range().to_std_range());
            }
            Stmt::Delete(delete) => {
                for target in &delete.targets {
                    self.delete(target, statement.range().to_std_range());
                }
            }
            Stmt::TypeAlias(alias) => {
                if let Expr::Name(name) = &*alias.name {
                    self.bind_unknown(
                        &name.id,
                        name.range().to_std_range(),
                        UnknownReason::Defined("type alias"),
                    );
                }
            }
            Stmt::FunctionDef(def) => self.function(def),
            Stmt::ClassDef(class) => {
                for decorator in &class.decorator_list {
                    self.visit_decorator(decorator);
                }
                if let Some(arguments) = &class.arguments {
                    self.visit_arguments(arguments);
                }
                self.classes.push(HashSet::new());
                let in_loop = std::mem::replace(&mut self.in_loop, false);
                self.statements(&class.body);
                self.in_loop = in_loop;
                self.classes.pop();
                self.bind_identifier(&class.name, UnknownReason::Defined("class"));
            }
            Stmt::If(branch) => {
                self.visit_expr(&branch.test);
                self.block("if", &branch.body);
                for clause in &branch.elif_else_clauses {
                    if let Some(test) = &clause.test {
                        self.visit_expr(test);
                    }
                    self.block("if", &clause.body);
                }
            }
            Stmt::For(repeat) => {
                self.visit_expr(&repeat.iter);
                if repeat.is_async {
                    self.misplaced(statement, "`async for` outside an async function");
                }
                self.within("for", |walker| walker.assign(&repeat.target, None, UnknownReason::Unpacked));
                self.repeated("for", &repeat.body);
                self.block("for", &repeat.orelse);
            }
            Stmt::While(repeat) => {
                self.visit_expr(&repeat.test);
                self.repeated("while", &repeat.body);
                self.block("while", &repeat.orelse);
            }
            Stmt::With(with) => {
                if with.is_async {
                    self.misplaced(statement, "`async with` outside an async function");
                }
                for item in &with.items {
                    self.visit_expr(&item.context_expr);
                    if let Some(target) = &item.optional_vars {
                        self.within("with", |walker| walker.assign(target, None, UnknownReason::Unpacked));
                    }
                }
                self.block("with", &with.body);
            }
            Stmt::Try(attempt) => {
                self.block("try", &attempt.body);
                for ExceptHandler::ExceptHandler(handler) in &attempt.handlers {
                    if let Some(kind) = &handler.type_ {
                        self.visit_expr(kind);
                    }
                    if let Some(name) = &handler.name {
                        self.within("try", |walker| {
                            walker.bind_identifier(name, UnknownReason::InBlock("try"))
                        });
                    }
                    self.block("try", &handler.body);
                }
                self.block("try", &attempt.orelse);
                self.block("try", &attempt.finalbody);
            }
            Stmt::Match(choice) => {
                self.visit_expr(&choice.subject);
                for case in &choice.cases {
                    self.within("match", |walker| walker.visit_pattern(&case.pattern));
                    if let Some(guard) = &case.guard {
                        self.visit_expr(guard);
                    }
                    self.block("match", &case.body);
                }
            }
            Stmt::Import(import) => {
                for alias in &import.names {
                    self.import(alias);
                }
            }
            Stmt::ImportFrom(import) => {
                for alias in &import.names {
                    if alias.name.as_str() == "*" {
                        self.import_everything(statement.range().to_std_range());
                    } else {
                        self.import(alias);
                    }
                }
            }
            Stmt::Return(_) => self.misplaced(statement, "`return` outside a function"),
            Stmt::Break(_) if !self.in_loop => self.misplaced(statement, "`break` outside a loop"),
            Stmt::Continue(_) if !self.in_loop => self.misplaced(statement, "`continue` outside a loop"),
            Stmt::Nonlocal(_) if self.classes.is_empty() => {
                self.misplaced(statement, "`nonlocal` at module level");
            }
            Stmt::Expr(_) | Stmt::Raise(_) | Stmt::Assert(_) => visitor::walk_stmt(self, statement),
            Stmt::Break(_)
            | Stmt::Continue(_)
            | Stmt::Nonlocal(_)
            | Stmt::Global(_)
            | Stmt::Pass(_)
            | Stmt::IpyEscapeCommand(_) => {}
        }
    }

    fn within(&mut self, word: &'static str, walk: impl FnOnce(&mut Self)) {
        let outer = self.block.replace(word);
        walk(self);
        self.block = outer;
    }

    fn block(&mut self, word: &'static str, body: &[Stmt]) {
        self.within(word, |walker| walker.statements(body));
    }

    fn repeated(&mut self, word: &'static str, body: &[Stmt]) {
        let outer = std::mem::replace(&mut self.in_loop, true);
        self.block(word, body);
        self.in_loop = outer;
    }

    fn misplaced(&mut self, node: &impl Ranged, reason: &'static str) {
        self.found.misplaced.get_or_insert((node.range().to_std_range(), reason));
    }

    fn function(&mut self, def: &StmtFunctionDef) {
        for decorator in &def.decorator_list {
            self.visit_decorator(decorator);
        }
        self.visit_parameters(&def.parameters);
        if self.classes.is_empty() {
            let name = def.name.range().to_std_range();
            self.found.functions.push(Function {
                name: def.name.to_string(),
                is_async: def.is_async,
                parameters: parameter_names(&def.parameters),
                // A decorator may make another function of it.
                positional: match def.decorator_list.is_empty() {
                    true => positional(&def.parameters),
                    false => Some((0, None)),
                },
                range: def_start(self.text, name.start, def.is_async)..name.end,
            });
        }
        self.bind_identifier(&def.name, UnknownReason::Defined("function"));
        if self.classes.is_empty()
            && let Some(binding) = self.found.names.get_mut(def.name.as_str())
        {
            let index = self.found.functions.len() - 1;
            binding.range = self.found.functions[index].range.clone();
            binding.function = Some(index);
        }
    }

    /// Binds what a target names, or changes what it reaches into.
    fn assign(&mut self, target: &Expr, value: Option<&Expr>, why: UnknownReason) {
        let range = target.range().to_std_range();
        match target {
            Expr::Name(name) => match (value, self.block) {
                (Some(value), None) => {
                    let value = read::read(value, self.text);
                    self.bind(&name.id, range, value);
                }
                (_, Some(word)) => self.bind_unknown(&name.id, range, UnknownReason::InBlock(word)),
                (None, None) => self.bind_unknown(&name.id, range, why),
            },
            Expr::Tuple(tuple) => {
                tuple.elts.iter().for_each(|e| self.assign(e, None, UnknownReason::Unpacked))
            }
            Expr::List(list) => list.elts.iter().for_each(|e| self.assign(e, None, UnknownReason::Unpacked)),
            Expr::Starred(starred) => self.assign(&starred.value, None, UnknownReason::Unpacked),
            _ => {
                self.visit_expr(target);
                self.change(target, range);
            }
        }
    }

    fn bind(&mut self, name: &str, range: Range<usize>, value: Result<Literal, Fault>) {
        if let Some(class) = self.classes.last_mut() {
            class.insert(name.to_owned());
            return;
        }
        self.found
            .names
            .insert(name.to_owned(), Binding { range, value, function: None, bound: true, plain: false });
    }

    fn bind_unknown(&mut self, name: &str, range: Range<usize>, why: UnknownReason) {
        self.bind(name, range.clone(), Err(Fault::new(why, range)));
    }

    fn bind_identifier(&mut self, name: &Identifier, why: UnknownReason) {
        self.bind_unknown(name, name.range().to_std_range(), why);
    }

    /// Notes that the value which an expression reaches into is changed.
    fn change(&mut self, target: &Expr, range: Range<usize>) {
        if let Some(name) = root(target) {
            self.spoil(name, UnknownReason::Changed, range);
        }
    }

    /// Makes a known value unknown. The first reason stays: it is the one to remove first.
    fn spoil(&mut self, name: &str, why: UnknownReason, range: Range<usize>) {
        if self.classes.iter().any(|class| class.contains(name)) {
            return;
        }
        if let Some(binding) = self.found.names.get_mut(name)
            && binding.value.is_ok()
        {
            binding.value = Err(Fault::new(why, range).with(binding.range.clone()));
        }
    }

    fn delete(&mut self, target: &Expr, statement: Range<usize>) {
        match target {
            Expr::Name(name) => {
                if let Some(class) = self.classes.last_mut() {
                    class.remove(name.id.as_str());
                    return;
                }
                self.spoil(&name.id, UnknownReason::Deleted, statement);
                if self.block.is_none()
                    && let Some(binding) = self.found.names.get_mut(name.id.as_str())
                {
                    binding.bound = false;
                }
            }
            Expr::Tuple(tuple) => tuple.elts.iter().for_each(|e| self.delete(e, statement.clone())),
            Expr::List(list) => list.elts.iter().for_each(|e| self.delete(e, statement.clone())),
            _ => {
                self.visit_expr(target);
                self.change(target, statement);
            }
        }
    }

    fn import(&mut self, alias: &Alias) {
        let range = alias.range().to_std_range();
        match &alias.asname {
            Some(name) => self.bind_unknown(name, range, UnknownReason::Imported),
            None => {
                // `import a.b` binds `a`.
                let name = alias.name.split('.').next().unwrap_or_default();
                self.bind_unknown(name, range, UnknownReason::Imported);
            }
        }
    }

    fn import_everything(&mut self, range: Range<usize>) {
        for binding in self.found.names.values_mut().filter(|binding| binding.value.is_ok()) {
            let fault = Fault::new(UnknownReason::StarImport, range.clone()).with(binding.range.clone());
            binding.value = Err(fault);
        }
        self.found.star_import.get_or_insert(range);
    }
}

/// Expressions bind and change things too, wherever in a statement they stand.
impl<'a> Visitor<'a> for Walker<'_> {
    fn visit_expr(&mut self, expr: &'a Expr) {
        match expr {
            Expr::Named(named) => self.assign(&named.target, None, UnknownReason::Walrus),
            Expr::Call(call) => {
                if let Expr::Attribute(method) = &*call.func
                    && CHANGING_METHODS.contains(&method.attr.as_str())
                {
                    self.change(&method.value, expr.range().to_std_range());
                }
            }
            Expr::Lambda(lambda) => {
                // The body runs later, in a scope of its own; the defaults are evaluated now.
                if let Some(parameters) = &lambda.parameters {
                    self.visit_parameters(parameters);
                }
                return;
            }
            Expr::Await(_) => self.misplaced(expr, "`await` outside a function"),
            Expr::Yield(_) | Expr::YieldFrom(_) => self.misplaced(expr, "`yield` outside a function"),
            _ => {}
        }
        visitor::walk_expr(self, expr);
    }

    fn visit_pattern(&mut self, pattern: &'a Pattern) {
        let name = match pattern {
            Pattern::MatchAs(pattern) => pattern.name.as_ref(),
            Pattern::MatchStar(pattern) => pattern.name.as_ref(),
            Pattern::MatchMapping(pattern) => pattern.rest.as_ref(),
            _ => None,
        };
        if let Some(name) = name {
            self.bind_identifier(name, UnknownReason::InBlock("match"));
        }
        visitor::walk_pattern(self, pattern);
    }
}

/// The name whose value an expression reaches into: `a` in `a["b"].c[0]` and in `a.get("b").append`.
fn root(expr: &Expr) -> Option<&str> {
    let mut expr = expr;
    loop {
        expr = match expr {
            Expr::Name(name) => return Some(&name.id),
            Expr::Attribute(attribute) => &attribute.value,
            Expr::Subscript(subscript) => &subscript.value,
            Expr::Call(call) => &call.func,
            Expr::Starred(starred) => &starred.value,
            Expr::Named(named) => &named.value,
            _ => return None,
        };
    }
}

/// How many values a function can be called with, by position.
fn positional(parameters: &Parameters) -> Option<(usize, Option<usize>)> {
    if parameters.kwonlyargs.iter().any(|parameter| parameter.default.is_none()) {
        return None;
    }
    let plain = parameters.posonlyargs.iter().chain(&parameters.args);
    let (count, least) = plain.fold((0, 0), |(count, least), parameter| {
        (count + 1, least + usize::from(parameter.default.is_none()))
    });
    Some((least, parameters.vararg.is_none().then_some(count)))
}

fn parameter_names(parameters: &Parameters) -> Vec<String> {
    let plain = parameters.posonlyargs.iter().chain(&parameters.args).map(|p| p.name().to_string());
    let starred = parameters.vararg.iter().map(|p| format!("*{}", p.name));
    let keywords = parameters.kwonlyargs.iter().map(|p| p.name().to_string());
    let doubly_starred = parameters.kwarg.iter().map(|p| format!("**{}", p.name));
    plain.chain(starred).chain(keywords).chain(doubly_starred).collect()
}

/// Where `def` or `async def` begins. The statement's own range begins with its decorators.
fn def_start(text: &str, name: usize, is_async: bool) -> usize {
    // Between the keywords and the name there is only space, so the last ones before it are the right ones.
    let def = text[..name].rfind("def").unwrap_or(name);
    if is_async { text[..def].rfind("async").unwrap_or(def) } else { def }
}
