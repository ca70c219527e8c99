//! Finds what a template mentions, and for every place that emits a value, which variables can end up in it: through filters,
//! `set`, loops, macros and `with`. It follows names, not control flow, so the answer can be wider than what one render does, but
//! never narrower. The engine's syntax tree is used here and in [`super::super::instrument`] only, because it has no promise of
//! stability.

mod values;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use minijinja::machinery::ast::{self, Expr, IfCond, Spanned, Stmt};
use minijinja::machinery::{self, Span};
use minijinja::syntax::SyntaxConfig;

use super::{Block, Callable, CallableKind, Names, Reference, ReferenceKind};
use crate::template::jinja::fence;
use crate::template::jinja::paths::{
    ANY, MODULE, OTHER, OWN, PARAMETER, Paths, THIS, beside_others, bounded, capped, from_module, held,
    is_own, named, or_own, parted, released, step,
};
use crate::template::lent::{Bound, Lent};

pub(in crate::template::jinja) use values::is_counter;

impl Names {
    /// Reads a template. The error is the engine's own syntax error.
    pub(crate) fn of(source: &str, name: &str, syntax: &SyntaxConfig) -> Result<Names, minijinja::Error> {
        Names::among(source, name, syntax, &Shared::default())
    }

    /// Reads a template that is rendered together with others.
    pub(crate) fn among(
        source: &str,
        name: &str,
        syntax: &SyntaxConfig,
        shared: &Shared,
    ) -> Result<Names, minijinja::Error> {
        let readable = fence::readable(source, syntax);
        let tree = machinery::parse(&readable, name, syntax.clone())?;
        let mut walk = Walk { source, shared: Some(shared), scopes: vec![HashMap::new()], ..Walk::default() };
        walk.statement(&tree);
        if walk.names.captures {
            // A macro sees what is set before it is called: walk again, knowing all of these names.
            let last: Vec<String> = walk.scopes.iter().flat_map(HashMap::keys).cloned().collect();
            let known = walk.names.bound.into_keys().collect();
            let scopes = vec![HashMap::new()];
            walk = Walk { source, shared: Some(shared), scopes, known, last, ..Walk::default() };
            walk.statement(&tree);
        }
        for (name, binding) in walk.scopes.iter().flatten() {
            walk.names.exports.insert(name.clone(), binding.certain);
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

/// Names that the other templates of a render set, so that one of them may mean theirs.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// Those that are still set behind an include.
    pub(crate) exported: HashSet<String>,
    /// All of them: in a block, those of the parent's loops can be seen as well.
    pub(crate) bound: HashSet<String>,
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
    known: HashSet<String>,
    /// What other templates set.
    shared: Option<&'s Shared>,
    /// Names that an earlier walk found to be set in the end, outside of everything: a macro may be called then.
    last: Vec<String>,
    /// Macros around the current statement.
    macros: usize,
    /// How many names were noted as set where something is included.
    noted: usize,
    emissions: Vec<Emitted>,
    /// Blocks around the current statement.
    blocks: usize,
    /// How many scopes there are around the innermost of them.
    innermost_block: usize,
    /// How many scopes there are around the innermost macro.
    innermost_macro: usize,
    /// Conditions, loops and macros around it.
    conditions: usize,
    /// Recursive loops around it.
    recursive: usize,
    /// Loops around it, by where they start, with what they loop over.
    loops: Vec<(usize, Paths)>,
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
            Expr::Tuple(tuple) => self.unpack(&tuple.items, paths),
            Expr::List(list) => self.unpack(&list.items, paths),
            // `ns.x = …`: whatever reads this attribute of a namespace can now show these, whichever it is: it may have many
            // names, and be in other values.
            Expr::GetAttr(attr) => {
                let own = match &attr.expr {
                    Expr::Var(var) => format!("{}.{}", var.id, attr.name),
                    _ => attr.name.to_owned(),
                };
                self.put(attr.name, or_own(&own, paths.clone()));
                self.expression(&attr.expr);
            }
            other => {
                self.expression(other);
            }
        }
    }

    /// `a, b = …`: each of them is an item of the value.
    fn unpack(&mut self, targets: &[Expr<'_>], paths: &Paths) {
        let items = released(paths);
        targets.iter().for_each(|target| self.bind(target, &items));
    }

    /// Notes what an attribute of a namespace can hold.
    fn put(&mut self, attribute: &str, paths: Paths) {
        let known = self.names.held.entry(attribute.to_owned()).or_default();
        known.extend(paths);
        *known = bounded(std::mem::take(known));
    }

    fn bind_name(&mut self, name: &str, mut paths: Paths) {
        if paths.remove(OWN) {
            paths.insert(format!("{OWN}{name}"));
        }
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
        let (mut outside, mut inside) = (self.blocks > 0, false);
        for (depth, scope) in self.scopes.iter().enumerate().rev() {
            let Some(binding) = scope.get(name) else { continue };
            paths.extend(binding.paths.iter().cloned());
            if binding.certain {
                certain = true;
                outside &= depth < self.innermost_block;
                inside = depth >= self.innermost_macro;
                break;
            }
        }
        if self.macros > 0 && !inside && self.known.contains(name) {
            paths.insert(named(THIS, name));
            if !certain {
                // It is set later, or elsewhere: whoever calls the macro before that sees the caller's.
                paths.insert(name.to_owned());
            }
            certain = true;
        }
        let is_shared = self
            .shared
            .is_some_and(|shared| shared.exported.contains(name) || (outside && shared.bound.contains(name)));
        if is_shared && !paths.is_empty() {
            paths.insert(named(ANY, name));
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
            known.paths = bounded(std::mem::take(&mut known.paths));
        }
        for (name, binding) in otherwise {
            let known = scope.entry(name).or_default();
            known.paths.extend(binding.paths);
            known.paths = bounded(std::mem::take(&mut known.paths));
        }
    }

    /// What has been set here.
    fn lent(&mut self) -> Arc<Lent> {
        if self.noted > MOST_NOTED {
            return Arc::default();
        }
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
            shown = capped(shown);
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
        let conditional = match statement {
            Stmt::ForLoop(_) | Stmt::Macro(_) => true,
            Stmt::IfCond(cond) => fence::at(self.source, range(cond.span()).start).is_none(),
            _ => false,
        };
        self.conditions += usize::from(conditional);
        let shown = self.statement_itself(statement);
        self.conditions -= usize::from(conditional);
        shown
    }

    /// A fence is a filter block, see [`fence`].
    fn fence(&mut self, block: &Spanned<IfCond<'_>>, name: Range<usize>) -> Paths {
        self.names.captures = true;
        let kind = CallableKind::Filter;
        self.names.callables.push(Callable { kind, name: fence::NAME.to_owned(), range: name });
        let mut paths = self.body(&block.true_body);
        paths.extend(self.expression(&block.expr));
        self.emitted(block.span(), &paths, None);
        paths
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
                let mut shown = self.turns(each, items);
                // Without items there is no item either. What is set then stays set.
                let (other, otherwise) = self.branch(&each.else_body);
                self.merge(otherwise, HashMap::new());
                shown.extend(other);
                shown
            }
            Stmt::IfCond(cond) => {
                if let Some(name) = fence::at(self.source, range(cond.span()).start) {
                    return self.fence(cond, name);
                }
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
                let paths = self.expression(&set.expr);
                self.bind(&set.target, &paths);
                Paths::new()
            }
            Stmt::SetBlock(set) => {
                self.names.captures = true;
                // What is set inside stays set behind it.
                let mut paths = self.body(&set.body);
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
                let mut paths = self.body(&filter.body);
                paths.extend(self.expression(&filter.filter));
                self.emitted(filter.span(), &paths, None);
                paths
            }
            Stmt::Block(block) => {
                let range = name_range(self.source, block.span(), block.name);
                let nested = self.blocks > 0;
                self.names.blocks.push(Block { name: block.name.to_owned(), range, nested });
                self.blocks += 1;
                let around = std::mem::replace(&mut self.innermost_block, self.scopes.len());
                let shown = self.scoped(|walk| walk.body(&block.body));
                self.innermost_block = around;
                self.blocks -= 1;
                shown
            }
            Stmt::Import(import) => {
                self.reference(ReferenceKind::Import, &import.expr, false);
                self.bind(&import.name, &Paths::from([MODULE.to_string()]));
                Paths::new()
            }
            Stmt::FromImport(import) => {
                self.reference(ReferenceKind::Import, &import.expr, false);
                let number = self.names.references.len().saturating_sub(1);
                for (name, alias) in &import.names {
                    let paths = match name {
                        Expr::Var(var) => from_module(number, var.id),
                        _ => MODULE.to_string(),
                    };
                    self.bind(alias.as_ref().unwrap_or(name), &Paths::from([paths]));
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
                self.names.passed.extend(paths.iter().cloned());
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

    /// Walks the body of a loop over these items.
    fn turns(&mut self, each: &ast::Spanned<ast::ForLoop<'_>>, mut items: Paths) -> Paths {
        let start = each.span().start_offset as usize;
        // `loop` has items too.
        let mut itself = held(items.clone());
        self.loops.push((start, items.clone()));
        if each.recursive {
            // It can be called with other items, and then shows what its body does.
            items.extend([PARAMETER.to_owned(), named(THIS, &recursion(start))]);
            itself.extend([PARAMETER.to_owned(), named(THIS, &body(start))]);
        }
        self.recursive += usize::from(each.recursive);
        let shown = self.scoped(|walk| {
            walk.bind(&each.target, &items);
            walk.bind_name("loop", itself);
            if let Some(filter) = &each.filter_expr {
                walk.expression(filter);
            }
            walk.body(&each.body)
        });
        self.recursive -= usize::from(each.recursive);
        self.loops.pop();
        if each.recursive {
            self.names.bound.insert(body(start), shown.clone());
        }
        shown
    }

    /// Notes that the innermost loop runs over these as well. What is in its items is known to show.
    fn recurse(&mut self, arguments: &Paths) {
        let Some((start, items)) = self.loops.last() else { return };
        let (again, more) = (named(THIS, &recursion(*start)), step(arguments.clone(), "[]"));
        let is_known = |path: &String| items.iter().chain([&again]).any(|item| path.starts_with(item));
        let more = more.into_iter().filter(|path| !is_known(path));
        self.names.bound.entry(recursion(*start)).or_default().extend(more);
    }

    /// Walks a macro and returns the outside variables that can show in what it returns.
    fn declaration(&mut self, declared: &ast::Macro<'_>) -> Paths {
        let given = Paths::from([PARAMETER.to_string()]);
        self.macros += 1;
        let around = std::mem::replace(&mut self.innermost_macro, self.scopes.len());
        let mut shown = self.scoped(|walk| {
            // A default may name the macro's own names, and sees what the macro sees.
            let defaults = declared.defaults.iter().flat_map(|value| walk.expression(value));
            let defaults: Paths = defaults.chain(given.clone()).collect();
            for argument in &declared.args {
                walk.bind(argument, &defaults);
            }
            for name in ["caller", "varargs", "kwargs"] {
                walk.bind_name(name, given.clone());
            }
            walk.bind_name(declared.name, Paths::new());
            walk.body(&declared.body)
        });
        self.innermost_macro = around;
        self.macros -= 1;
        if self.macros == 0 && self.recursive == 0 {
            // What it is called with shows where it is called.
            shown.remove(PARAMETER);
        }
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
        self.names.lends_parameters |= self.macros > 0 || self.recursive > 0;
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

/// The name under which it is noted what a recursive loop is called with, as items.
fn recursion(start: usize) -> String {
    format!("loop() {start}")
}

/// The name under which it is noted what the body of a recursive loop shows.
fn body(start: usize) -> String {
    format!("for {start}")
}
