//! Which variables can show in the value of an expression.

use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, Expr};

use super::{Walk, name_range, names_block, range};
use crate::template::jinja::names::{Callable, CallableKind, Read};
use crate::template::jinja::paths::{
    ANY, MODULE, NAMESPACE, OTHER, OWN, Paths, beside_others, capped, held, named, step,
};

impl Walk<'_> {
    /// Walks an expression and returns the variables that can show in its value.
    pub(super) fn expression(&mut self, expression: &Expr<'_>) -> Paths {
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
                capped(paths)
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

    /// Walks expressions whose values are put into another one.
    fn joined(&mut self, items: &[Expr<'_>]) -> Paths {
        let mut paths = Paths::new();
        for item in items {
            paths.extend(held(beside_others(self.expression(item))));
            paths = capped(paths);
        }
        paths
    }

    pub(super) fn call(&mut self, call: &ast::Spanned<ast::Call<'_>>) -> Paths {
        let recurses = matches!(&call.expr, Expr::Var(var) if var.id == "loop");
        self.names.captures |= recurses || names_block(&call.expr);
        let mut paths = match &call.expr {
            Expr::Var(var) if var.id == "super" => Paths::from([OTHER.to_owned()]),
            // A function of the environment, unless the template or the caller defines the name.
            Expr::Var(var) if !self.local(var.id).1 => {
                self.callable(CallableKind::Function, var.id, var.span());
                let mut paths = self.local(var.id).0;
                let made = paths.is_empty().then(|| self.made(var.id, &call.args)).flatten();
                // Or a macro, or the loop, of a template that includes this one.
                paths.insert(named(ANY, var.id));
                if let Some(made) = made {
                    paths.extend(made);
                    return paths;
                }
                paths
            }
            // No value of a caller can be called.
            Expr::Var(var) => self.local(var.id).0.into_iter().filter(|path| path != var.id).collect(),
            // `self.block()` is a block of the template and not a variable.
            Expr::GetAttr(attr) if matches!(&attr.expr, Expr::Var(var) if var.id == "self") => {
                Paths::from([OTHER.to_owned()])
            }
            // A method belongs to its receiver: `name.upper()` shows `name`. Of a module it is a macro, unless a dict has it.
            Expr::GetAttr(attr) => {
                let of_dict = ["copy", "get", "items", "keys", "values"].contains(&attr.name);
                let (modules, mut paths): (Paths, Paths) = self
                    .expression(&attr.expr)
                    .into_iter()
                    .partition(|path| path.starts_with(MODULE) && !of_dict);
                paths.extend(step(modules, &format!(".{}", attr.name)));
                paths
            }
            callee => self.expression(callee),
        };
        let arguments = self.arguments(&call.args);
        if recurses {
            self.recurse(&arguments);
        }
        self.names.passed.extend(arguments.iter().cloned());
        self.names.passed = capped(std::mem::take(&mut self.names.passed));
        paths.extend(arguments);
        paths
    }

    /// What comes of a function that puts its arguments into a new value.
    fn made(&mut self, function: &str, arguments: &[ast::CallArg<'_>]) -> Option<Paths> {
        if !["namespace", "dict", "range", "cycler"].contains(&function) {
            return None;
        }
        let mut made = Paths::new();
        let mut is_own = arguments.is_empty();
        for argument in arguments {
            let (ast::CallArg::Pos(value)
            | ast::CallArg::Kwarg(_, value)
            | ast::CallArg::PosSplat(value)
            | ast::CallArg::KwargSplat(value)) = argument;
            let paths = beside_others(self.expression(value));
            is_own |= paths.is_empty();
            match (function, argument) {
                ("namespace", ast::CallArg::Kwarg(name, _)) => self.put(name, paths),
                // Attributes of any name.
                ("namespace", _) => self.put("", paths),
                ("dict", ast::CallArg::Pos(_) | ast::CallArg::KwargSplat(_)) => made.extend(paths),
                _ => made.extend(held(paths)),
            }
        }
        if function == "namespace" {
            made.insert(NAMESPACE.to_string());
            made.extend(is_own.then(|| OWN.to_string()));
        }
        Some(made)
    }

    fn arguments(&mut self, arguments: &[ast::CallArg<'_>]) -> Paths {
        let mut paths = Paths::new();
        for argument in arguments {
            let (ast::CallArg::Pos(value)
            | ast::CallArg::Kwarg(_, value)
            | ast::CallArg::PosSplat(value)
            | ast::CallArg::KwargSplat(value)) = argument;
            paths.extend(beside_others(self.expression(value)));
            paths = capped(paths);
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
                if !certain {
                    paths.insert(var.id.to_owned());
                    // These two are the engine's, and nobody has to give them.
                    if var.id != "self" && var.id != "loop" {
                        self.read(var.id, var.id.to_owned(), var.span());
                    }
                    if var.id == "namespace" {
                        // What is made with it under another name is one.
                        paths.insert(NAMESPACE.to_string());
                    }
                }
                paths
            }
            Expr::GetAttr(attr)
                if matches!(&attr.expr, Expr::Var(var) if var.id == "loop") && is_counter(attr.name) =>
            {
                match self.local("loop").1 {
                    true => Paths::new(),
                    false => Paths::from([format!("loop.{}", attr.name)]),
                }
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

/// What `loop` counts, which shows none of its items.
pub(in crate::template::jinja) fn is_counter(attribute: &str) -> bool {
    ["index", "index0", "revindex", "revindex0", "first", "last", "length", "depth", "depth0"]
        .contains(&attribute)
}
