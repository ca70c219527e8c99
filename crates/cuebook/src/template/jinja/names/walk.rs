//! Finds what a template mentions, and for every place that emits a value, which variables can end up in it: through filters,
//! `set`, loops, macros and `with`. It follows names, not control flow, so the answer can be wider than what one render does, but
//! never narrower. The engine's syntax tree is used here and in [`super::super::instrument`] only, because it has no promise of
//! stability.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use minijinja::machinery::ast::{self, Expr, Stmt};
use minijinja::machinery::{self, Span};
use minijinja::syntax::SyntaxConfig;

use super::{Block, Callable, CallableKind, Names, Read, Reference, ReferenceKind};
use crate::template::jinja::paths::{OTHER, Paths, beside_others, bounded, is_own, or_own, parted, step};
use crate::template::lent::{Bound, Lent};

impl Names {
    /// Reads a template. The error is the engine's own syntax error.
    pub(crate) fn of(source: &str, name: &str, syntax: &SyntaxConfig) -> Result<Names, minijinja::Error> {
        let tree = machinery::parse(source, name, syntax.clone())?;
        let mut walk = Walk { source, ..Walk::default() };
        walk.statement(&tree);
        if !walk.fed.is_empty() || walk.names.captures {
            // What one turn of a loop puts into a namespace, the next can read, and a macro sees what is set before it is
            // called: walk again, knowing all of it.
            let last: Vec<String> = walk.scopes.iter().flat_map(HashMap::keys).cloned().collect();
            walk = Walk { source, fed: walk.fed, known: walk.names.bound, last, ..Walk::default() };
            walk.statement(&tree);
        }
        walk.emissions.sort_by_key(|emission| emission.start);
        let at_end = walk.lent();
        let mut names = walk.names;
        for reference in names.references.iter_mut().filter(|one| one.kind == ReferenceKind::Extends) {
            reference.lent = at_end.clone();
        }
        for Emitted { paths, accessor, as_is, .. } in walk.emissions {
            let (paths, set) = parted(paths);
            names.emissions.push(paths);
            names.set.push(set);
            names.accessors.push(accessor);
            names.as_is.push(as_is);
        }
        Ok(names)
    }
}

/// Names that are noted as set where something is included, in all; of what comes then, nothing is known to be set.
const MOST_NOTED: usize = 100_000;

/// A place that emits a value: where it stands, what can show there, and its [accessor](Names::accessors).
struct Emitted {
    start: usize,
    paths: Paths,
    accessor: Option<String>,
    as_is: bool,
}

/// A local name: the paths that can show in it, and whether it is certainly defined where it is seen.
#[derive(Default)]
struct Binding {
    paths: Paths,
    certain: bool,
}

#[derive(Default)]
struct Walk<'s> {
    names: Names,
    /// Local names and the variables that feed them, innermost scope last.
    scopes: Vec<HashMap<String, Binding>>,
    /// What an earlier walk found to be bound anywhere in the template.
    known: HashMap<String, Paths>,
    /// Names that an earlier walk found to be set in the end, outside of everything: a macro may be called then.
    last: Vec<String>,
    /// Macros around the current statement.
    macros: usize,
    /// How many names were noted as set where something is included.
    noted: usize,
    /// Namespaces and the variables that assignments to their attributes put into them, anywhere in the template.
    fed: HashMap<String, Paths>,
    emissions: Vec<Emitted>,
    /// Blocks around the current statement.
    blocks: usize,
    /// Conditions, loops and macros around it.
    conditions: usize,
    /// Blocks around it that may print a text otherwise than it is.
    escapes: usize,
    source: &'s str,
}

/// The span as byte offsets. Lines and columns of the engine are 16 bits wide and not used.
fn range(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

impl Walk<'_> {
    fn bind(&mut self, target: &Expr<'_>, paths: &Paths) {
        match target {
            Expr::Var(var) => self.bind_name(var.id, paths.clone()),
            Expr::Tuple(tuple) => tuple.items.iter().for_each(|item| self.bind(item, paths)),
            Expr::List(list) => list.items.iter().for_each(|item| self.bind(item, paths)),
            // `ns.x = …`: whatever reads the namespace can now show these.
            Expr::GetAttr(attr) => {
                if let Expr::Var(var) = &attr.expr {
                    let paths = or_own(var.id, paths.clone());
                    self.fed.entry(var.id.to_owned()).or_default().extend(paths);
                }
                self.expression(&attr.expr);
            }
            other => {
                self.expression(other);
            }
        }
    }

    fn bind_name(&mut self, name: &str, paths: Paths) {
        let paths = or_own(name, paths);
        if self.scopes.is_empty() {
            self.scopes.push(HashMap::new());
        }
        if let Some(scope) = self.scopes.last_mut() {
            let binding = scope.entry(name.to_owned()).or_default();
            binding.paths =
                bounded(std::mem::take(&mut binding.paths).into_iter().chain(paths.clone()).collect());
            binding.certain = true;
        }
        let bound = self.names.bound.entry(name.to_owned()).or_default();
        *bound = bounded(std::mem::take(bound).into_iter().chain(paths).collect());
    }

    /// What a name means locally, and whether it can mean nothing else.
    fn local(&self, name: &str) -> (Paths, bool) {
        let mut paths = Paths::new();
        let mut certain = false;
        for binding in self.scopes.iter().rev().filter_map(|scope| scope.get(name)) {
            paths.extend(binding.paths.iter().cloned());
            if binding.certain {
                certain = true;
                break;
            }
        }
        paths.extend(self.fed.get(name).into_iter().flatten().cloned());
        if self.macros > 0
            && let Some(known) = self.known.get(name)
        {
            paths.extend(known.iter().cloned());
            certain = true;
        }
        (bounded(paths), certain)
    }

    /// Walks a body whose definitions may not happen, and returns them.
    fn branch(&mut self, statements: &[Stmt<'_>]) -> (Paths, HashMap<String, Binding>) {
        self.scopes.push(HashMap::new());
        let shown = self.body(statements);
        (shown, self.scopes.pop().unwrap_or_default())
    }

    /// What is defined in one branch only may still be what it was before.
    fn merge(&mut self, then: HashMap<String, Binding>, mut otherwise: HashMap<String, Binding>) {
        if self.scopes.is_empty() {
            self.scopes.push(HashMap::new());
        }
        let Some(scope) = self.scopes.last_mut() else { return };
        for (name, binding) in then {
            let other = otherwise.remove(&name).unwrap_or_default();
            let known = scope.entry(name).or_default();
            known.certain |= binding.certain && other.certain;
            known.paths.extend(binding.paths.into_iter().chain(other.paths));
        }
        for (name, binding) in otherwise {
            scope.entry(name).or_default().paths.extend(binding.paths);
        }
    }

    /// What has been set here.
    fn lent(&mut self) -> Arc<Lent> {
        let mut names: HashMap<&String, Bound> = HashMap::new();
        for (name, binding) in self.scopes.iter().flatten() {
            // The engine's own names are no values that somebody could take.
            if ["loop", "caller", "varargs", "kwargs"].contains(&name.as_str()) {
                continue;
            }
            let bound = if binding.certain { Bound::Surely } else { Bound::Perhaps };
            let known = names.entry(name).or_default();
            *known = bound.max(*known);
        }
        for name in self.last.iter().filter(|_| self.macros > 0) {
            let known = names.entry(name).or_default();
            *known = Bound::Perhaps.max(*known);
        }
        self.noted += names.len();
        if names.is_empty() || self.noted > MOST_NOTED {
            return Arc::default();
        }
        Arc::new(Lent::new(names.into_iter().map(|(name, bound)| (name.clone(), bound))))
    }

    fn scoped<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let result = body(self);
        self.scopes.pop();
        result
    }

    /// Walks statements and returns the variables that can show in what they print.
    fn body(&mut self, statements: &[Stmt<'_>]) -> Paths {
        let mut shown = Paths::new();
        for statement in statements {
            shown.extend(beside_others(self.statement(statement)));
        }
        shown
    }

    fn emitted(&mut self, span: Span, paths: &Paths, accessor: Option<&str>) {
        let start = span.start_offset as usize;
        let is_free = |name: &str| self.local(name).0.iter().all(|path| is_own(path));
        let as_is = self.escapes == 0 && accessor.is_some_and(is_free);
        let accessor = accessor.map(str::to_owned);
        self.emissions.push(Emitted { start, paths: paths.clone(), accessor, as_is });
    }

    fn statement(&mut self, statement: &Stmt<'_>) -> Paths {
        let conditional = matches!(statement, Stmt::ForLoop(_) | Stmt::IfCond(_) | Stmt::Macro(_));
        self.conditions += usize::from(conditional);
        let shown = self.statement_itself(statement);
        self.conditions -= usize::from(conditional);
        shown
    }

    fn statement_itself(&mut self, statement: &Stmt<'_>) -> Paths {
        match statement {
            Stmt::Template(template) => self.body(&template.children),
            Stmt::EmitRaw(_) => Paths::new(),
            Stmt::EmitExpr(emit) => {
                let captured = self.names.captures;
                let paths = self.expression(&emit.expr);
                // Printed at once, a block's text goes where all text goes and becomes no value.
                if calls_block(&emit.expr) {
                    self.names.captures = captured;
                }
                self.emitted(emit.span(), &paths, accessor(&emit.expr));
                paths
            }
            Stmt::ForLoop(each) => {
                self.names.loops = true;
                let items = step(self.expression(&each.iter), "[]");
                let mut shown = self.scoped(|walk| {
                    walk.bind(&each.target, &items);
                    walk.bind_name("loop", Paths::new());
                    if let Some(filter) = &each.filter_expr {
                        walk.expression(filter);
                    }
                    walk.body(&each.body)
                });
                // Without items there is no item either.
                shown.extend(self.scoped(|walk| walk.body(&each.else_body)));
                shown
            }
            Stmt::IfCond(cond) => {
                self.expression(&cond.expr);
                let (mut shown, then) = self.branch(&cond.true_body);
                let (other, otherwise) = self.branch(&cond.false_body);
                self.merge(then, otherwise);
                shown.extend(other);
                bounded(shown)
            }
            Stmt::WithBlock(with) => self.scoped(|walk| {
                for (target, value) in &with.assignments {
                    let paths = walk.expression(value);
                    walk.bind(target, &paths);
                }
                walk.body(&with.body)
            }),
            Stmt::Set(set) => {
                self.names.assignments += 1;
                let paths = self.expression(&set.expr);
                self.bind(&set.target, &paths);
                Paths::new()
            }
            Stmt::SetBlock(set) => {
                self.names.captures = true;
                let mut paths = self.scoped(|walk| walk.body(&set.body));
                if let Some(filter) = &set.filter {
                    paths.extend(self.expression(filter));
                }
                self.bind(&set.target, &paths);
                Paths::new()
            }
            Stmt::AutoEscape(escape) => {
                self.expression(&escape.enabled);
                self.escapes += 1;
                let shown = self.body(&escape.body);
                self.escapes -= 1;
                shown
            }
            Stmt::FilterBlock(filter) => {
                self.names.captures = true;
                let mut paths = self.scoped(|walk| walk.body(&filter.body));
                paths.extend(self.expression(&filter.filter));
                self.emitted(filter.span(), &paths, None);
                paths
            }
            Stmt::Block(block) => {
                let range = name_range(self.source, block.span(), block.name);
                let nested = self.blocks > 0;
                self.names.blocks.push(Block { name: block.name.to_owned(), range, nested });
                self.blocks += 1;
                let shown = self.scoped(|walk| walk.body(&block.body));
                self.blocks -= 1;
                shown
            }
            Stmt::Import(import) => {
                self.reference(ReferenceKind::Import, &import.expr, false);
                self.bind(&import.name, &Paths::from([OTHER.to_owned()]));
                Paths::new()
            }
            Stmt::FromImport(import) => {
                self.reference(ReferenceKind::Import, &import.expr, false);
                for (name, alias) in &import.names {
                    self.bind(alias.as_ref().unwrap_or(name), &Paths::from([OTHER.to_owned()]));
                }
                Paths::new()
            }
            Stmt::Extends(extends) => {
                self.reference(ReferenceKind::Extends, &extends.name, false);
                Paths::new()
            }
            Stmt::Include(include) => {
                self.reference(ReferenceKind::Include, &include.name, include.ignore_missing);
                Paths::from([OTHER.to_owned()])
            }
            Stmt::Macro(declared) => {
                self.names.captures = true;
                let paths = self.declaration(declared);
                self.bind_name(declared.name, paths);
                Paths::new()
            }
            Stmt::CallBlock(call) => {
                self.names.captures = true;
                let mut paths = self.declaration(&call.macro_decl);
                paths.extend(self.call(&call.call));
                self.emitted(call.span(), &paths, None);
                paths
            }
            Stmt::Do(statement) => {
                self.call(&statement.call);
                Paths::new()
            }
            Stmt::Continue(_) | Stmt::Break(_) => Paths::new(),
        }
    }

    /// Walks a macro and returns the outside variables that can show in what it returns.
    fn declaration(&mut self, declared: &ast::Macro<'_>) -> Paths {
        let defaults: Paths = declared.defaults.iter().flat_map(|value| self.expression(value)).collect();
        self.macros += 1;
        let shown = self.scoped(|walk| {
            for argument in &declared.args {
                walk.bind(argument, &defaults);
            }
            for name in ["caller", "varargs", "kwargs", declared.name] {
                walk.bind_name(name, Paths::new());
            }
            walk.body(&declared.body)
        });
        self.macros -= 1;
        shown
    }

    fn reference(&mut self, kind: ReferenceKind, name: &Expr<'_>, optional: bool) {
        let names = match name {
            Expr::Const(constant) => constant.value.as_str().map(|name| vec![name.to_owned()]),
            Expr::List(list) => strings(&list.items),
            Expr::Tuple(tuple) => strings(&tuple.items),
            _ => None,
        };
        if names.is_none() {
            self.expression(name);
        }
        let conditional = self.conditions > 0;
        // An imported template sees nothing of the one that imports it.
        let lent = if kind == ReferenceKind::Include { self.lent() } else { Arc::default() };
        self.names.references.push(Reference {
            kind,
            names,
            range: range(name.span()),
            optional,
            conditional,
            in_macro: self.macros > 0,
            lent,
        });
    }

    /// Walks an expression and returns the variables that can show in its value.
    fn expression(&mut self, expression: &Expr<'_>) -> Paths {
        match expression {
            Expr::Const(_) => Paths::new(),
            Expr::Var(_) | Expr::GetAttr(_) | Expr::GetItem(_) => self.path(expression),
            Expr::Slice(slice) => {
                for bound in [&slice.start, &slice.stop, &slice.step].into_iter().flatten() {
                    self.expression(bound);
                }
                self.expression(&slice.expr)
            }
            Expr::UnaryOp(unary) => self.expression(&unary.expr),
            Expr::BinOp(binary) => {
                let mut paths = beside_others(self.expression(&binary.left));
                paths.extend(beside_others(self.expression(&binary.right)));
                paths
            }
            Expr::Compare(compare) => {
                let mut paths = beside_others(self.expression(&compare.expr));
                for operand in &compare.ops {
                    paths.extend(beside_others(self.expression(&operand.expr)));
                }
                paths
            }
            Expr::IfExpr(choice) => {
                // The condition decides which value shows; it does not show itself.
                self.expression(&choice.test_expr);
                let mut paths = self.expression(&choice.true_expr);
                if let Some(other) = &choice.false_expr {
                    paths.extend(self.expression(other));
                }
                paths
            }
            Expr::Filter(filter) => {
                let mut paths = filter.expr.as_ref().map(|value| self.expression(value)).unwrap_or_default();
                paths.extend(self.arguments(&filter.args));
                self.callable(CallableKind::Filter, filter.name, filter.span());
                // `map` and its kin take the name of a filter or test as a string.
                if let (
                    "map" | "select" | "reject" | "selectattr" | "rejectattr",
                    Some(ast::CallArg::Pos(Expr::Const(constant))),
                ) = (filter.name, filter.args.get(usize::from(filter.name.ends_with("attr"))))
                    && let Some(name) = constant.value.as_str()
                {
                    let kind = if filter.name == "map" { CallableKind::Filter } else { CallableKind::Test };
                    self.callable(kind, name, constant.span());
                }
                paths
            }
            Expr::Test(test) => {
                let mut paths = self.expression(&test.expr);
                paths.extend(self.arguments(&test.args));
                self.callable(CallableKind::Test, test.name, test.span());
                paths
            }
            Expr::Call(call) => self.call(call),
            Expr::List(list) => self.joined(&list.items),
            Expr::Tuple(tuple) => self.joined(&tuple.items),
            Expr::Map(map) => {
                let mut paths = self.joined(&map.keys);
                paths.extend(self.joined(&map.values));
                paths
            }
        }
    }

    /// Walks expressions whose values are put together.
    fn joined(&mut self, items: &[Expr<'_>]) -> Paths {
        items.iter().flat_map(|item| beside_others(self.expression(item))).collect()
    }

    fn call(&mut self, call: &ast::Spanned<ast::Call<'_>>) -> Paths {
        let recurses = matches!(&call.expr, Expr::Var(var) if var.id == "loop");
        self.names.captures |= recurses || names_block(&call.expr);
        let mut paths = match &call.expr {
            // A function of the environment, unless the template or the caller defines the name.
            Expr::Var(var) if var.id == "super" => Paths::from([OTHER.to_owned()]),
            Expr::Var(var) if !self.local(var.id).1 => {
                self.callable(CallableKind::Function, var.id, var.span());
                self.local(var.id).0
            }
            // `self.block()` is a block of the template and not a variable.
            Expr::GetAttr(attr) if matches!(&attr.expr, Expr::Var(var) if var.id == "self") => {
                Paths::from([OTHER.to_owned()])
            }
            // A method belongs to its receiver: `name.upper()` shows `name`.
            Expr::GetAttr(attr) => self.expression(&attr.expr),
            callee => self.expression(callee),
        };
        paths.extend(self.arguments(&call.args));
        paths
    }

    fn arguments(&mut self, arguments: &[ast::CallArg<'_>]) -> Paths {
        let mut paths = Paths::new();
        for argument in arguments {
            let (ast::CallArg::Pos(value)
            | ast::CallArg::Kwarg(_, value)
            | ast::CallArg::PosSplat(value)
            | ast::CallArg::KwargSplat(value)) = argument;
            paths.extend(beside_others(self.expression(value)));
        }
        paths
    }

    fn callable(&mut self, kind: CallableKind, name: &str, span: Span) {
        let range = name_range(self.source, span, name);
        self.names.callables.push(Callable { kind, name: name.to_owned(), range });
    }

    /// The path of an attribute or item chain, with local names replaced by what feeds them.
    fn path(&mut self, expression: &Expr<'_>) -> Paths {
        match expression {
            Expr::Var(var) => {
                let (mut paths, certain) = self.local(var.id);
                if !certain && var.id != "self" && var.id != "loop" {
                    self.read(var.id, var.id.to_owned(), var.span());
                    paths.insert(var.id.to_owned());
                }
                paths
            }
            Expr::GetAttr(attr) => {
                let reads = self.names.reads.len();
                let paths = self.path(&attr.expr);
                self.lengthen(reads, attr.span(), &format!(".{}", attr.name));
                step(paths, &format!(".{}", attr.name))
            }
            Expr::GetItem(item) => {
                let key = match &item.subscript_expr {
                    Expr::Const(constant) => match constant.value.as_str() {
                        Some(key) => format!(".{key}"),
                        None => format!("[{}]", constant.value),
                    },
                    computed => {
                        self.expression(computed);
                        "[]".to_owned()
                    }
                };
                let reads = self.names.reads.len();
                let paths = self.path(&item.expr);
                self.lengthen(reads, item.span(), &key);
                step(paths, &key)
            }
            other => self.expression(other),
        }
    }

    fn read(&mut self, root: &str, path: String, span: Span) {
        self.names.reads.push(Read { root: root.to_owned(), path, range: range(span), maybe_local: false });
    }

    /// `a.b` was first seen as a read of `a`.
    fn lengthen(&mut self, since: usize, span: Span, step: &str) {
        if self.names.reads.len() == since + 1
            && let Some(read) = self.names.reads.last_mut()
            && read.path.len() < 200
        {
            read.path.push_str(step);
            read.range.end = read.range.end.max(span.end_offset as usize);
        }
    }
}

/// Spans of blocks and calls begin at a keyword or operand; people want the name underlined.
pub(in crate::template::jinja) fn name_range(source: &str, span: Span, name: &str) -> Range<usize> {
    let whole = range(span);
    let text = source.get(whole.clone()).unwrap_or_default();
    // The name stands behind its operand, so it is the last mention before the arguments that counts.
    let head = text.find('(').filter(|open| text[..*open].contains(name)).unwrap_or(text.len());
    match text[..head].rfind(name) {
        Some(at) => whole.start + at..whole.start + at + name.len(),
        None => whole,
    }
}

fn strings(items: &[Expr<'_>]) -> Option<Vec<String>> {
    items
        .iter()
        .map(|item| match item {
            Expr::Const(constant) => constant.value.as_str().map(str::to_owned),
            _ => None,
        })
        .collect()
}

/// The name that an expression begins with which does nothing but look up attributes and items.
fn accessor<'s>(expression: &Expr<'s>) -> Option<&'s str> {
    match expression {
        Expr::Var(var) => Some(var.id),
        Expr::GetAttr(get) => accessor(&get.expr),
        Expr::GetItem(get) => accessor(&get.expr),
        _ => None,
    }
}

/// `super` or `self.block`, which give the text of a block when they are called.
fn names_block(callee: &Expr<'_>) -> bool {
    match callee {
        Expr::Var(var) => var.id == "super",
        Expr::GetAttr(attr) => matches!(&attr.expr, Expr::Var(var) if var.id == "self"),
        _ => false,
    }
}

/// `super()` or `self.block()` and nothing else.
fn calls_block(expression: &Expr<'_>) -> bool {
    matches!(expression, Expr::Call(call) if call.args.is_empty() && names_block(&call.expr))
}
