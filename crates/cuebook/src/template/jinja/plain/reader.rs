//! Turns a syntax tree into steps, as long as all of it is plain.

use minijinja::machinery::ast::{BinOpKind, CallArg, Expr, Stmt, UnaryOpKind};

use super::{Condition, Counter, Expression, Key, Operand, Start, Step};
use crate::template::jinja::compat::Comparison;
use crate::template::jinja::fence;

/// Reads the statements of one template.
pub(super) struct Reader<'s> {
    pub(super) text: &'s str,
    pub(super) globals: Vec<&'s str>,
    /// The names of the loops' items, outermost first.
    pub(super) loops: Vec<String>,
}

impl Reader<'_> {
    /// The steps of some statements; `None` if one is more than plain.
    pub(super) fn steps(&mut self, statements: &[Stmt<'_>]) -> Option<Vec<Step>> {
        let mut steps = Vec::with_capacity(statements.len());
        // A beacon is an empty literal before the tag that it names.
        let mut mark = 0;
        for statement in statements {
            match statement {
                Stmt::EmitRaw(raw) => {
                    let start = (raw.raw.as_ptr() as usize).checked_sub(self.text.as_ptr() as usize)?;
                    let end = start + raw.raw.len();
                    if raw.raw.is_empty() {
                        mark = u32::try_from(start).ok()?;
                    } else {
                        steps.push(Step::Literal { start, end });
                    }
                }
                Stmt::EmitExpr(emit) => {
                    let value = self.expression(&emit.expr)?;
                    steps.push(Step::Emit { mark, value });
                }
                Stmt::IfCond(cond) => {
                    let condition = self.condition(&cond.expr)?;
                    let then = self.steps(&cond.true_body)?;
                    let otherwise = self.steps(&cond.false_body)?;
                    steps.push(Step::If { condition, then, otherwise });
                }
                Stmt::ForLoop(each) if !each.recursive && each.filter_expr.is_none() => {
                    let Expr::Var(target) = &each.target else { return None };
                    // The engine runs `for x in (xs)|__cue_iter`.
                    let Expr::Filter(iter) = &each.iter else { return None };
                    if iter.name != "__cue_iter" {
                        return None;
                    }
                    let items = self.expression(iter.expr.as_ref()?)?;
                    self.loops.push(target.id.to_owned());
                    let body = self.steps(&each.body);
                    self.loops.pop();
                    let otherwise = self.steps(&each.else_body)?;
                    steps.push(Step::For { items, body: body?, otherwise });
                }
                _ => return None,
            }
        }
        Some(steps)
    }

    fn expression(&mut self, expression: &Expr<'_>) -> Option<Expression> {
        match expression {
            Expr::Var(var) => {
                if let Some(depth) = self.loops.iter().rposition(|name| name == var.id) {
                    return Some(Expression::new(Start::Item(depth)));
                }
                if self.globals.contains(&var.id) || matches!(var.id, "loop" | "self" | "super" | "caller") {
                    return None;
                }
                Some(Expression::new(Start::Scope(var.id.to_owned())))
            }
            Expr::GetAttr(get) => {
                if let Expr::Var(var) = &get.expr
                    && var.id == "loop"
                    && !self.loops.is_empty()
                    && !self.loops.iter().any(|name| name == "loop")
                {
                    let counter = match get.name {
                        "index" => Counter::Index,
                        "index0" => Counter::Index0,
                        "first" => Counter::First,
                        "last" => Counter::Last,
                        "length" => Counter::Length,
                        _ => return None,
                    };
                    return Some(Expression::new(Start::Counter(counter)));
                }
                self.with_key(&get.expr, Key::Attribute(get.name.to_owned()))
            }
            Expr::GetItem(get) => {
                let subscript = match &get.subscript_expr {
                    Expr::Filter(filter) if filter.name == "__cue_key" => filter.expr.as_ref()?,
                    subscript => subscript,
                };
                let key = match subscript.as_const() {
                    Some(key) => Key::Item(key),
                    None => Key::Computed(self.expression(subscript)?),
                };
                self.with_key(&get.expr, key)
            }
            // A plain template has no long keys: the engine runs `((a)|__cue_at)[(b)|__cue_key]` for `a[b]`.
            Expr::Filter(filter) if ["__cue_at", "__cue_key"].contains(&filter.name) => {
                self.expression(filter.expr.as_ref()?)
            }
            // What a fence writes is in parts, which the engine's writer knows.
            Expr::Filter(filter) if !filter.name.starts_with("__cue") && filter.name != fence::NAME => {
                let mut value = self.expression(filter.expr.as_ref()?)?;
                let arguments = filter.args.iter().map(|argument| match argument {
                    CallArg::Pos(argument) => argument.as_const(),
                    _ => None,
                });
                value.filters.push((filter.name.to_owned(), arguments.collect::<Option<_>>()?));
                Some(value)
            }
            _ => None,
        }
    }

    fn with_key(&mut self, of: &Expr<'_>, key: Key) -> Option<Expression> {
        let mut value = self.expression(of)?;
        if !value.filters.is_empty() || matches!(value.start, Start::Counter(_)) {
            return None;
        }
        value.keys.push(key);
        Some(value)
    }

    fn condition(&mut self, expression: &Expr<'_>) -> Option<Condition> {
        Some(match expression {
            Expr::UnaryOp(unary) if matches!(unary.op, UnaryOpKind::Not) => {
                Condition::Not(Box::new(self.condition(&unary.expr)?))
            }
            Expr::BinOp(binary) => match (binary.op, &binary.right) {
                (BinOpKind::ScAnd, right) => {
                    Condition::And(Box::new(self.condition(&binary.left)?), Box::new(self.condition(right)?))
                }
                (BinOpKind::ScOr, right) => {
                    Condition::Or(Box::new(self.condition(&binary.left)?), Box::new(self.condition(right)?))
                }
                (BinOpKind::Eq, Expr::Const(constant)) => {
                    Condition::Equal(self.expression(&binary.left)?, constant.value.clone())
                }
                (BinOpKind::Ne, Expr::Const(constant)) => Condition::Not(Box::new(Condition::Equal(
                    self.expression(&binary.left)?,
                    constant.value.clone(),
                ))),
                _ => return None,
            },
            Expr::Test(test) if test.name == "defined" && test.args.is_empty() => {
                Condition::Defined(self.expression(&test.expr)?)
            }
            // The engine runs `(a)|__cue_lt(b)` for `a < b`.
            Expr::Filter(filter) if filter.name.starts_with("__cue") => {
                let comparison = Comparison::of_filter(filter.name)?;
                let [CallArg::Pos(right)] = filter.args.as_slice() else { return None };
                let left = self.operand(filter.expr.as_ref()?)?;
                Condition::Compare(comparison, left, self.operand(right)?)
            }
            other => Condition::True(self.expression(other)?),
        })
    }

    fn operand(&mut self, expression: &Expr<'_>) -> Option<Operand> {
        Some(match expression.as_const() {
            Some(constant) => Operand::Constant(constant),
            None => Operand::Value(self.expression(expression)?),
        })
    }
}
