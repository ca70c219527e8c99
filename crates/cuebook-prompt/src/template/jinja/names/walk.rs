//! Finds what a template mentions, and for every place that emits a value, which variables can end up in it: through filters,
//! `set`, loops, macros and `with`. It follows names, not control flow, and approximates: a render knows exactly.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use cuebook_template::Template;
use cuebook_template::ast::{
    Arguments, Body, Expr, ExprKind, Imported, Macro, Named, Statement, StatementKind,
};

use super::{Block, Callable, CallableKind, Names, Read, Reference, ReferenceKind};
use crate::template::jinja::paths::{Paths, bounded, capped, step};
use crate::template::set_names::{SetNames, SetState};

impl Names {
    /// What a template mentions.
    pub(crate) fn of(template: &Template) -> Names {
        // A macro, and a loop that comes round again, see what is set further down: walk again with that.
        let first = walked(template, HashMap::new());
        let before = first.names.bound.clone();
        let mut walk = walked(template, before.clone());
        if walk.names.bound != before {
            // Names lead to names that lead further; at the end of it is something that shows somewhere.
            let everything: Paths = bounded(walk.names.bound.values().flatten().cloned().collect());
            walk = walked(template, before.into_keys().map(|name| (name, everything.clone())).collect());
        }
        let at_end = walk.set_names();
        let mut names = walk.names;
        for reference in names.references.iter_mut().filter(|one| one.kind == ReferenceKind::Extends) {
            reference.set_names = at_end.clone();
        }
        for (_, emitted) in walk.emissions {
            names.emissions.push(emitted.paths.into_iter().collect());
            names.accessors.push(emitted.accessor);
            names.tags.push(emitted.range);
        }
        names
    }
}

fn walked(template: &Template, later: HashMap<String, Paths>) -> Walk<'_> {
    let mut walk = Walk {
        template,
        names: Names::default(),
        scopes: vec![HashMap::new()],
        known: HashSet::new(),
        later,
        emissions: BTreeMap::new(),
        macros: 0,
        blocks: 0,
        conditions: 0,
        noted: 0,
    };
    walk.known = walk.set_at_the_top(&template.tree().body.statements);
    walk.body(&template.tree().body.statements);
    walk
}

/// Names that are noted as set where something is included, in all; of what comes then, nothing is known to be set.
const MAX_NOTED: usize = 100_000;

/// A place that emits a value: its tag, what can show there, and its [accessor](Names::accessors).
struct Emitted {
    range: Range<usize>,
    paths: Paths,
    accessor: Option<String>,
}

/// A local name: the paths that can show in it, and whether it is certainly defined where it is seen.
#[derive(Default)]
struct Binding {
    paths: Paths,
    certain: bool,
    /// Whether it is a namespace, whose attributes are what was put into it.
    space: bool,
}

type Bindings = HashMap<String, Binding>;

struct Walk<'t> {
    template: &'t Template,
    names: Names,
    /// Local names and the variables that feed them, innermost scope last.
    scopes: Vec<Bindings>,
    /// What the template sets at its top level: a macro may be called then.
    known: HashSet<String>,
    /// What an earlier walk found to be in the names that the template sets.
    later: HashMap<String, Paths>,
    /// By where their tags begin.
    emissions: BTreeMap<usize, Emitted>,
    /// Macros around the current statement.
    macros: usize,
    /// Blocks around it.
    blocks: usize,
    /// Conditions, loops and macros around it.
    conditions: usize,
    /// How many names were noted as set where something is included.
    noted: usize,
}

fn range(range: cuebook_template::Range) -> Range<usize> {
    range.start as usize..range.end as usize
}

impl<'t> Walk<'t> {
    fn set_at_the_top(&self, statements: &[Statement]) -> HashSet<String> {
        let mut names = HashSet::new();
        for statement in statements {
            match &statement.kind {
                StatementKind::Set(node) => targets(&node.0, &mut names),
                StatementKind::SetBlock(node) => targets(&node.target, &mut names),
                StatementKind::Macro(_, name) => drop(names.insert(name.name.to_string())),
                StatementKind::Import(node) => match &node.names {
                    Imported::Module(name) => drop(names.insert(name.name.to_string())),
                    Imported::Names(all) => names.extend(all.iter().map(|(_, name)| name.name.to_string())),
                },
                StatementKind::If(branches, otherwise) => {
                    for (_, body) in branches {
                        names.extend(self.set_at_the_top(body));
                    }
                    names.extend(self.set_at_the_top(otherwise));
                }
                _ => {}
            }
        }
        names
    }

    fn text(&self) -> &'t str {
        self.template.text()
    }

    /// The tag that begins at an offset and has something inside up to another.
    fn tag(&self, start: usize, inside: usize) -> Range<usize> {
        let text = self.text();
        let inside = inside.max(start);
        let end = text.get(inside..).and_then(|rest| rest.find("%}")).map(|length| inside + length + 2);
        start..end.unwrap_or(text.len())
    }

    fn bind(&mut self, target: &Expr, paths: &Paths) {
        match &target.kind {
            ExprKind::Name(name) => self.bind_name(&name.name, paths.clone()),
            ExprKind::Tuple(items) => items.iter().for_each(|item| self.bind(item, paths)),
            ExprKind::NamespaceTarget(target) => {
                let name = &target.0;
                // Whatever is read from the namespace can show it, under whatever name.
                for scope in &mut self.scopes {
                    if let Some(binding) = scope.get_mut(name.name.as_str()) {
                        binding.paths.extend(paths.iter().cloned());
                    }
                }
                self.names.bound.entry(name.name.to_string()).or_default().extend(paths.iter().cloned());
            }
            _ => {}
        }
    }

    fn bind_name(&mut self, name: &str, paths: Paths) {
        let bound = self.names.bound.entry(name.to_owned()).or_default();
        bound.extend(paths.iter().cloned());
        *bound = bounded(std::mem::take(bound));
        if let Some(scope) = self.scopes.last_mut() {
            let binding = scope.entry(name.to_owned()).or_default();
            binding.paths = bounded(std::mem::take(&mut binding.paths).into_iter().chain(paths).collect());
            binding.certain = true;
        }
    }

    /// What a name means locally, and whether it can mean nothing else.
    fn local(&self, name: &str) -> (Paths, bool) {
        let mut paths = Paths::new();
        for scope in self.scopes.iter().rev() {
            let Some(binding) = scope.get(name) else { continue };
            paths.extend(binding.paths.iter().cloned());
            let seen_later = binding.space || (self.macros > 0 && self.known.contains(name));
            if seen_later {
                paths.extend(self.later.get(name).into_iter().flatten().cloned());
            }
            if binding.certain {
                return (bounded(paths), true);
            }
        }
        let later = self.macros > 0 && self.known.contains(name);
        if later {
            // It is set later, or elsewhere: a call before that sees the caller's.
            paths.extend(self.later.get(name).into_iter().flatten().cloned());
        }
        (bounded(paths), later)
    }

    /// Walks a body whose definitions may not happen, and returns them.
    fn branch(&mut self, statements: &[Statement]) -> (Paths, Bindings) {
        self.scopes.push(HashMap::new());
        let shown = self.body(statements);
        (shown, self.scopes.pop().unwrap_or_default())
    }

    /// What is defined in one branch only may still be what it was before.
    fn merge(&mut self, branches: Vec<Bindings>) {
        let count = branches.len();
        let mut all: HashMap<String, (Paths, usize)> = HashMap::new();
        for (name, binding) in branches.into_iter().flatten() {
            let known = all.entry(name).or_default();
            known.0.extend(binding.paths);
            known.1 += usize::from(binding.certain);
        }
        let Some(scope) = self.scopes.last_mut() else { return };
        for (name, (paths, certain)) in all {
            let known = scope.entry(name).or_default();
            known.certain |= certain == count;
            known.paths = bounded(std::mem::take(&mut known.paths).into_iter().chain(paths).collect());
        }
    }

    /// What has been set here.
    fn set_names(&mut self) -> Arc<SetNames> {
        if self.noted > MAX_NOTED {
            return Arc::default();
        }
        let mut names: HashMap<&String, SetState> = HashMap::new();
        for (name, binding) in self.scopes.iter().flatten() {
            // The engine's own names are not values that a prompt could take.
            if ["loop", "caller", "varargs", "kwargs"].contains(&name.as_str()) {
                continue;
            }
            let bound = if binding.certain { SetState::Surely } else { SetState::Perhaps };
            let known = names.entry(name).or_default();
            *known = bound.max(*known);
        }
        for name in self.known.iter().filter(|_| self.macros > 0) {
            let known = names.entry(name).or_default();
            *known = SetState::Perhaps.max(*known);
        }
        self.noted += names.len();
        if names.is_empty() || self.noted > MAX_NOTED {
            return Arc::default();
        }
        Arc::new(SetNames::new(names.into_iter().map(|(name, bound)| (name.clone(), bound))))
    }

    fn scoped<T>(&mut self, body: impl FnOnce(&mut Self) -> T) -> T {
        self.scopes.push(HashMap::new());
        let result = body(self);
        self.scopes.pop();
        result
    }

    /// Walks statements and returns the variables that can show in what they print.
    fn body(&mut self, statements: &[Statement]) -> Paths {
        let mut shown = Paths::new();
        for statement in statements {
            let conditional = matches!(
                statement.kind,
                StatementKind::For(_) | StatementKind::Macro(..) | StatementKind::If(..)
            );
            self.conditions += usize::from(conditional);
            shown.extend(self.statement(statement));
            self.conditions -= usize::from(conditional);
            shown = capped(shown);
        }
        shown
    }

    fn emitted(&mut self, range: Range<usize>, paths: &Paths, accessor: Option<&str>) {
        let known = self.emissions.entry(range.start);
        let emitted = known.or_insert_with(|| Emitted {
            range,
            paths: Paths::new(),
            accessor: accessor.map(str::to_owned),
        });
        emitted.paths.extend(paths.iter().cloned());
        if emitted.accessor.as_deref() != accessor {
            emitted.accessor = None;
        }
    }

    fn statement(&mut self, statement: &Statement) -> Paths {
        let start = statement.range.start as usize;
        match &statement.kind {
            StatementKind::Data | StatementKind::Break | StatementKind::Continue => Paths::new(),
            StatementKind::Emit(value) => {
                let captured = self.names.captures;
                let paths = self.expression(value);
                // Printed at once, a block's text goes where all text goes and becomes no value.
                if calls_block(value) {
                    self.names.captures = captured;
                }
                let is_tag = self.text().get(start..).is_some_and(|rest| rest.starts_with("{{"));
                let tag =
                    if is_tag { range(statement.range) } else { self.tag(start, value.range.end as usize) };
                self.emitted(tag, &paths, accessor(value));
                paths
            }
            StatementKind::If(branches, otherwise) => {
                let mut shown = Paths::new();
                let mut bound = Vec::new();
                for (test, body) in branches {
                    self.expression(test);
                    let (more, set) = self.branch(body);
                    shown.extend(more);
                    bound.push(set);
                }
                let (more, set) = self.branch(otherwise);
                shown.extend(more);
                bound.push(set);
                self.merge(bound);
                bounded(shown)
            }
            StatementKind::For(each) => {
                self.names.loops = true;
                let items = step(self.expression(&each.iterable), "[]");
                let mut shown = self.scoped(|walk| {
                    walk.bind(&each.target, &items);
                    walk.bind_name("loop", items.clone());
                    if let Some((test, ..)) = &each.test {
                        walk.expression(test);
                    }
                    walk.body(&each.body.statements)
                });
                if each.recursive {
                    self.names.captures = true;
                    let tag = self.tag(start, each.iterable.range.end as usize);
                    self.emitted(tag, &shown, None);
                }
                shown.extend(self.scoped(|walk| walk.body(&each.otherwise.statements)));
                shown
            }
            StatementKind::With(with) => {
                let values: Vec<Paths> = with.pairs.iter().map(|(_, value)| self.expression(value)).collect();
                self.scoped(|walk| {
                    for ((target, _), paths) in with.pairs.iter().zip(&values) {
                        walk.bind(target, paths);
                    }
                    walk.body(&with.body.statements)
                })
            }
            StatementKind::Autoescape(node) => {
                self.expression(&node.0);
                self.inner(&node.1)
            }
            StatementKind::Set(node) => {
                let (target, value) = node.as_ref();
                let paths = self.expression(value);
                self.bind(target, &paths);
                let makes_space =
                    matches!(&value.kind, ExprKind::Call(callee, _) if is_name(callee, "namespace"));
                if let (true, ExprKind::Name(name)) = (makes_space, &target.kind)
                    && let Some(binding) =
                        self.scopes.last_mut().and_then(|scope| scope.get_mut(name.name.as_str()))
                {
                    binding.space = true;
                }
                Paths::new()
            }
            StatementKind::SetBlock(set) => {
                self.names.captures = true;
                let mut paths = self.inner(&set.body);
                paths.extend(set.filter.iter().flat_map(|filter| self.expression(filter)).collect::<Paths>());
                self.bind(&set.target, &paths);
                Paths::new()
            }
            StatementKind::FilterBlock(node) => {
                self.names.captures = true;
                let mut paths = self.inner(&node.1);
                paths.extend(self.expression(&node.0));
                let tag = self.tag(start, node.0.range.end as usize);
                self.emitted(tag, &paths, None);
                paths
            }
            StatementKind::Macro(index, name) => {
                self.names.captures = true;
                let shown = self.declaration(*index);
                self.bind_name(&name.name, shown);
                Paths::new()
            }
            StatementKind::CallBlock(call, index) => {
                self.names.captures = true;
                let mut paths = self.declaration(*index);
                paths.extend(self.expression(call));
                let tag = self.tag(start, call.range.end as usize);
                self.emitted(tag, &paths, None);
                paths
            }
            StatementKind::Block(index) => {
                let Some(block) = self.template.tree().blocks.get(*index as usize) else {
                    return Paths::new();
                };
                let whole = range(block.range);
                let name = whole.end.saturating_sub(block.name.len())..whole.end;
                let nested = self.blocks > 0;
                self.names.blocks.push(Block { name: block.name.to_string(), range: name, nested });
                self.blocks += 1;
                let shown = self.inner(&block.body);
                self.blocks -= 1;
                shown
            }
            StatementKind::Extends(name) => {
                self.reference(ReferenceKind::Extends, name, false);
                Paths::new()
            }
            StatementKind::Include(node) => {
                self.reference(ReferenceKind::Include, &node.template, node.ignore_missing);
                Paths::new()
            }
            StatementKind::Import(node) => {
                self.reference(ReferenceKind::Import, &node.template, false);
                match &node.names {
                    Imported::Module(name) => self.bind_name(&name.name, Paths::new()),
                    Imported::Names(all) => {
                        all.iter().for_each(|(_, name)| self.bind_name(&name.name, Paths::new()));
                    }
                }
                Paths::new()
            }
            StatementKind::Do(value) | StatementKind::Broken(value) => {
                self.expression(value);
                Paths::new()
            }
            other => self.other(other),
        }
    }

    /// Statements that only hold others.
    fn other(&mut self, statement: &StatementKind) -> Paths {
        match statement {
            StatementKind::Generation(index) => self.declaration(*index),
            _ => Paths::new(),
        }
    }

    fn inner(&mut self, body: &Body) -> Paths {
        self.scoped(|walk| walk.body(&body.statements))
    }

    /// Walks a macro and returns the outside variables that can show in what it returns.
    fn declaration(&mut self, index: u32) -> Paths {
        let template = self.template;
        let Some(node): Option<&Macro> = template.tree().macros.get(index as usize) else {
            return Paths::new();
        };
        self.macros += 1;
        let shown = self.scoped(|walk| {
            let defaults: Paths = node.defaults.iter().flat_map(|value| walk.expression(value)).collect();
            for parameter in &node.parameters {
                walk.bind_name(&parameter.name, defaults.clone());
            }
            for name in ["caller", "varargs", "kwargs", node.name.as_str()] {
                walk.bind_name(name, Paths::new());
            }
            walk.body(&node.body.statements)
        });
        self.macros -= 1;
        shown
    }

    fn reference(&mut self, kind: ReferenceKind, name: &Expr, optional: bool) {
        let names = match &name.kind {
            ExprKind::Text(text, _) => Some(vec![text.to_string()]),
            ExprKind::List(items) | ExprKind::Tuple(items) => strings(items),
            _ => None,
        };
        if names.is_none() {
            self.expression(name);
        }
        // An imported template sees nothing of the one that imports it.
        let set_names = if kind == ReferenceKind::Include { self.set_names() } else { Arc::default() };
        self.names.references.push(Reference {
            kind,
            names,
            range: range(name.range),
            optional,
            conditional: self.conditions > 0,
            in_macro: self.macros > 0,
            set_names,
        });
    }

    fn all<'e>(&mut self, items: impl IntoIterator<Item = &'e Expr>) -> Paths {
        let mut paths = Paths::new();
        for item in items {
            paths.extend(self.expression(item));
            paths = capped(paths);
        }
        paths
    }

    fn arguments(&mut self, given: &Arguments) -> Paths {
        let named = given.named.iter().map(|(_, value)| value);
        let stars = given.star.iter().chain(&given.double_star);
        self.all(given.positional.iter().chain(named).chain(stars))
    }

    /// Walks an expression and returns the variables that can show in its value.
    fn expression(&mut self, expression: &Expr) -> Paths {
        match &expression.kind {
            ExprKind::None
            | ExprKind::Bool(_)
            | ExprKind::Int(_)
            | ExprKind::Big(_)
            | ExprKind::Float(_)
            | ExprKind::Text(..)
            | ExprKind::NamespaceTarget(..) => Paths::new(),
            ExprKind::Name(_) | ExprKind::Attribute(..) | ExprKind::Item(..) => self.path(expression),
            ExprKind::List(items) | ExprKind::Tuple(items) => self.all(items),
            ExprKind::Dict(pairs) => self.all(pairs.iter().flat_map(|(key, value)| [key, value])),
            ExprKind::If(test, value, otherwise) => {
                // The condition decides which value shows; it does not show itself.
                self.expression(test);
                self.all([&**value].into_iter().chain(otherwise.as_deref()))
            }
            ExprKind::Slice(value, slice) => {
                self.all([&slice.start, &slice.stop, &slice.step].into_iter().flatten());
                self.expression(value)
            }
            ExprKind::Call(callee, given) => self.call(callee, given),
            ExprKind::Filter(value, named) => {
                let mut paths = self.all(value.as_deref());
                paths.extend(self.arguments(&named.arguments));
                self.callable(CallableKind::Filter, &named.name, named.range);
                self.named_by_string(named);
                paths
            }
            ExprKind::Test(value, named) => {
                let mut paths = self.expression(value);
                paths.extend(self.arguments(&named.arguments));
                self.callable(CallableKind::Test, &named.name, named.range);
                paths
            }
            _ => {
                let mut children = Vec::new();
                cuebook_template::ast::each_child(expression, &mut |child| children.push(child));
                self.all(children)
            }
        }
    }

    /// `map` and its kin take the name of a filter or test as a string.
    fn named_by_string(&mut self, named: &Named) {
        let at = match named.name.as_str() {
            "map" | "select" | "reject" => 0,
            "selectattr" | "rejectattr" => 1,
            _ => return,
        };
        let Some(argument) = named.arguments.positional.get(at) else { return };
        let ExprKind::Text(name, _) = &argument.kind else { return };
        let kind = if named.name == "map" { CallableKind::Filter } else { CallableKind::Test };
        self.callable(kind, name, argument.range);
    }

    fn callable(&mut self, kind: CallableKind, name: &str, at: cuebook_template::Range) {
        let whole = range(at);
        let text = self.text().get(whole.clone()).unwrap_or_default();
        let range = text
            .find(name)
            .map_or(whole.clone(), |found| whole.start + found..whole.start + found + name.len());
        self.names.callables.push(Callable { kind, name: name.to_owned(), range });
    }

    fn call(&mut self, callee: &Expr, given: &Arguments) -> Paths {
        self.names.captures |= names_block(callee) || is_name(callee, "loop");
        let mut paths = match &callee.kind {
            ExprKind::Name(name) if name.name == "super" => Paths::new(),
            ExprKind::Name(name) => {
                let (paths, certain) = self.local(&name.name);
                if !certain {
                    self.callable(CallableKind::Function, &name.name, name.range);
                }
                paths
            }
            // `self.block()` is a block of the template and not a variable.
            ExprKind::Attribute(value, _) if is_name(value, "self") => Paths::new(),
            // A method belongs to its receiver: `name.upper()` shows `name`.
            ExprKind::Attribute(value, _) => self.expression(value),
            _ => self.expression(callee),
        };
        paths.extend(self.arguments(given));
        paths
    }

    /// The path of an attribute or item chain, with local names replaced by what feeds them.
    fn path(&mut self, expression: &Expr) -> Paths {
        let (root, way) = self.way(expression);
        let ExprKind::Name(name) = &root.kind else { return self.expression(root) };
        let counts = name.name == "loop" && way.strip_prefix('.').is_some_and(is_counter);
        let (paths, certain) = self.local(&name.name);
        if certain && counts {
            return Paths::new();
        }
        let is_space = self
            .scopes
            .iter()
            .rev()
            .find_map(|scope| scope.get(name.name.as_str()))
            .is_some_and(|it| it.space);
        let step = if is_space { "" } else { way.as_str() };
        let mut found: Paths = paths.iter().map(|path| followed(path, step)).collect();
        if !certain {
            found.insert(followed(&name.name, &way));
            // These are the engine's, and no caller has to give them.
            if !["self", "loop"].contains(&name.name.as_str()) {
                let path = followed(&name.name, &way);
                let (root, range) = (name.name.to_string(), range(expression.range));
                self.names.reads.push(Read { root, path, range, maybe_local: false });
            }
        }
        bounded(found)
    }

    /// The expression that a chain of attributes and items begins with, and the way from there.
    fn way<'e>(&mut self, expression: &'e Expr) -> (&'e Expr, String) {
        let mut steps = Vec::new();
        let mut at = expression;
        loop {
            match &at.kind {
                ExprKind::Attribute(value, name) => {
                    steps.push(format!(".{name}"));
                    at = value;
                }
                ExprKind::Item(value, item) => {
                    steps.push(match &item.kind {
                        ExprKind::Text(key, _) => format!(".{key}"),
                        ExprKind::Int(number) => format!("[{number}]"),
                        ExprKind::Big(number) => format!("[{number}]"),
                        _ => {
                            self.expression(item);
                            "[]".to_owned()
                        }
                    });
                    at = value;
                }
                _ => break,
            }
        }
        steps.reverse();
        (at, steps.concat())
    }
}

/// The same path further by a way, unless it gets too long.
fn followed(path: &str, way: &str) -> String {
    use crate::template::jinja::paths::LONGEST_PATH;
    if path.len() + way.len() <= LONGEST_PATH { format!("{path}{way}") } else { path.to_owned() }
}

fn targets(target: &Expr, names: &mut HashSet<String>) {
    match &target.kind {
        ExprKind::Name(name) => drop(names.insert(name.name.to_string())),
        ExprKind::Tuple(items) => items.iter().for_each(|item| targets(item, names)),
        _ => {}
    }
}

fn strings(items: &[Expr]) -> Option<Vec<String>> {
    let text = |item: &Expr| match &item.kind {
        ExprKind::Text(text, _) => Some(text.to_string()),
        _ => None,
    };
    items.iter().map(text).collect()
}

/// The name that an expression begins with which does nothing but look up attributes and items.
fn accessor(expression: &Expr) -> Option<&str> {
    match &expression.kind {
        ExprKind::Name(name) => Some(&name.name),
        ExprKind::Attribute(value, _) | ExprKind::Item(value, _) => accessor(value),
        _ => None,
    }
}

fn is_name(expression: &Expr, wanted: &str) -> bool {
    matches!(&expression.kind, ExprKind::Name(name) if name.name == wanted)
}

/// `super` or `self.block`, which give the text of a block when they are called.
fn names_block(callee: &Expr) -> bool {
    match &callee.kind {
        ExprKind::Name(name) => name.name == "super",
        ExprKind::Attribute(value, _) => is_name(value, "self"),
        _ => false,
    }
}

/// `super()` or `self.block()` and nothing else.
fn calls_block(expression: &Expr) -> bool {
    matches!(&expression.kind, ExprKind::Call(callee, given)
        if names_block(callee) && given.positional.is_empty() && given.named.is_empty())
}

/// What `loop` counts, which shows none of its items.
fn is_counter(attribute: &str) -> bool {
    ["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"]
        .contains(&attribute)
}
