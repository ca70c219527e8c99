//! Which operators of a template must be written as filters so that they mean what Python means, and so that what they
//! make stays within its limits.
//!
//! The engine evaluates `~`, `+`, `*`, `%`, `==`, `<`, `in` and slices itself, some of them while it compiles. None of that can
//! be replaced from outside, so [`operator_edits`] says where a source would have to read `((a)|__cue_concat(b))` instead
//! of `a ~ b`. What is iterated over and what is put into a namespace goes through a filter too. It changes nothing by itself: whoever compiles the source applies the edits and keeps account of offsets.

use std::ops::Range;

use minijinja::machinery::ast::{BinOpKind, Call, CallArg, Compare, CompareOpKind, Expr, Stmt};
use minijinja::machinery::{Token, parse, tokenize};
use minijinja::syntax::SyntaxConfig;

use super::Style;

/// Bytes of a source that should read otherwise. An empty range is an insertion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The bytes to be replaced.
    pub range: Range<usize>,
    /// What stands in their place.
    pub text: String,
}

/// The edits of a source in the order in which they are to be applied; they never overlap. A source that cannot be
/// parsed has none: compiling it says what is wrong.
pub(crate) fn operator_edits(source: &str, syntax: SyntaxConfig, style: Style) -> Vec<Edit> {
    let Ok(template) = parse(source, "", syntax.clone()) else { return Vec::new() };
    let Ok(tokens) = tokenize(source, false, syntax).collect::<Result<Vec<_>, _>>() else {
        return Vec::new();
    };
    let mut depth = 0;
    let tokens = tokens
        .into_iter()
        .map(|(token, span)| {
            let kind = Kind::of(&token);
            let marked = Mark { kind, range: span.start_offset as usize..span.end_offset as usize, depth };
            depth += isize::from(kind == Kind::Open) - isize::from(kind == Kind::Close);
            marked
        })
        .collect();
    let mut editor = Editor { tokens, edits: Vec::new(), style };
    editor.statement(&template);
    // Outer expressions were visited before inner ones, and the sort keeps that order where both begin at one place.
    editor.edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    editor.edits
}

/// The literal of the portable grammar that Jinja2 does not have.
pub(crate) const NULL: &str = "null";

/// How many operators, filters, subscripts and brackets may depend on each other in one expression, and how many
/// branches one `if` may have.
const CHAIN: usize = 300;

/// How many `{% set x = … %}` a source has. A `set` block without `=` holds text, which is counted otherwise.
pub(crate) fn assignments(source: &str, syntax: SyntaxConfig) -> usize {
    let (mut count, mut begins, mut sets) = (0, false, false);
    // What cannot be read is not compiled either.
    for (token, _) in tokenize(source, false, syntax).map_while(Result::ok) {
        match token {
            Token::BlockStart => sets = false,
            Token::Ident("set") if begins => sets = true,
            Token::Assign if sets => {
                count += 1;
                sets = false;
            }
            _ => {}
        }
        begins = matches!(token, Token::BlockStart);
    }
    count
}

/// The tag in which too many things depend on each other. The engine compiles such a chain by calling itself for each
/// part of it, so that a long one would end the process; a source must be asked for this before it is compiled.
pub(crate) fn too_long_chain(source: &str, syntax: SyntaxConfig) -> Option<Range<usize>> {
    // For each open bracket, how deep the expression was when it was opened; `depth` counts on from there.
    let mut opened: Vec<usize> = Vec::new();
    let mut depth = 0usize;
    let mut branches: Vec<usize> = Vec::new();
    let mut tag = 0;
    let mut begins = false;
    for token in tokenize(source, false, syntax) {
        // A source that cannot be read is not compiled either.
        let Ok((token, span)) = token else { return None };
        let range = tag..span.end_offset as usize;
        match &token {
            Token::VariableStart | Token::BlockStart => {
                opened.clear();
                depth = 0;
                tag = span.start_offset as usize;
            }
            Token::ParenOpen | Token::BracketOpen | Token::BraceOpen => {
                depth += 1;
                opened.push(depth);
            }
            Token::ParenClose | Token::BracketClose | Token::BraceClose => {
                // What follows the bracket depends on what was before it, and not on what was in it.
                depth = opened.pop().unwrap_or(0);
            }
            Token::Comma => depth = opened.last().copied().unwrap_or(0),
            Token::Ident("if") if begins => branches.push(0),
            Token::Ident("elif") if begins => {
                if let Some(count) = branches.last_mut() {
                    *count += 1;
                    if *count > CHAIN {
                        return Some(range);
                    }
                }
            }
            Token::Ident("endif") if begins => {
                branches.pop();
            }
            Token::Ident("and" | "or" | "not" | "if" | "else" | "is" | "in") => depth += 1,
            Token::Ident(_)
            | Token::Colon
            | Token::TemplateData(_)
            | Token::VariableEnd
            | Token::BlockEnd => {}
            Token::Str(_) | Token::String(_) | Token::Int(_) | Token::Int128(_) | Token::Float(_) => {}
            _ => depth += 1,
        }
        if depth > CHAIN {
            return Some(range);
        }
        begins = matches!(token, Token::BlockStart);
    }
    None
}

/// What of a token matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Open,
    Close,
    OtherOpen,
    OtherClose,
    Colon,
    Comma,
    Star,
    Not,
    Other,
}

impl Kind {
    fn of(token: &Token<'_>) -> Kind {
        match token {
            Token::ParenOpen => Kind::Open,
            Token::ParenClose => Kind::Close,
            Token::BracketOpen | Token::BraceOpen => Kind::OtherOpen,
            Token::BracketClose | Token::BraceClose => Kind::OtherClose,
            Token::Colon => Kind::Colon,
            Token::Comma => Kind::Comma,
            Token::Mul | Token::Pow => Kind::Star,
            Token::Ident("not") => Kind::Not,
            _ => Kind::Other,
        }
    }
}

/// A token, and how many round brackets are open before it.
struct Mark {
    kind: Kind,
    range: Range<usize>,
    depth: isize,
}

struct Editor {
    tokens: Vec<Mark>,
    edits: Vec<Edit>,
    style: Style,
}

impl Editor {
    fn edit(&mut self, range: Range<usize>, text: impl Into<String>) {
        self.edits.push(Edit { range, text: text.into() });
    }

    /// The first token behind an expression, not counting the brackets around it.
    fn token_behind(&self, expr: &Expr<'_>) -> Option<usize> {
        let end = expr.span().end_offset as usize;
        let first = self.tokens.partition_point(|token| token.range.start < end);
        (first..self.tokens.len()).find(|index| self.tokens[*index].kind != Kind::Close)
    }

    /// Where an expression that ends before a token begins, counting the brackets around it.
    fn begin(&self, leftmost: usize, behind: usize) -> usize {
        let first = self.tokens.partition_point(|token| token.range.start < leftmost);
        // With its brackets it is balanced, so what is closed in it and not opened is opened right before it.
        let around = self.tokens[first].depth - self.tokens[behind].depth;
        let first = first.saturating_sub(usize::try_from(around).unwrap_or(0));
        self.tokens[first].range.start
    }

    fn statements(&mut self, statements: &[Stmt<'_>]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt<'_>) {
        match statement {
            Stmt::Template(template) => self.statements(&template.children),
            Stmt::EmitExpr(emit) => self.expression(&emit.expr),
            Stmt::ForLoop(each) => {
                self.wrapped(&each.iter, "__cue_iter");
                self.expressions(each.filter_expr.iter());
                self.statements(&each.body);
                self.statements(&each.else_body);
            }
            Stmt::IfCond(condition) => {
                self.expression(&condition.expr);
                self.statements(&condition.true_body);
                self.statements(&condition.false_body);
            }
            Stmt::WithBlock(with) => {
                self.expressions(with.assignments.iter().map(|(_, value)| value));
                self.statements(&with.body);
            }
            Stmt::Set(set) => {
                // Only what is put into a namespace outlives a turn of a loop.
                match set.target {
                    Expr::GetAttr(_) => self.wrapped(&set.expr, "__cue_keep"),
                    _ => self.expression(&set.expr),
                }
            }
            Stmt::SetBlock(set) => {
                self.expressions(set.filter.iter());
                self.statements(&set.body);
            }
            Stmt::AutoEscape(escape) => {
                self.expression(&escape.enabled);
                self.statements(&escape.body);
            }
            Stmt::FilterBlock(filter) => {
                self.expression(&filter.filter);
                self.statements(&filter.body);
            }
            Stmt::Block(block) => self.statements(&block.body),
            Stmt::Import(import) => self.expression(&import.expr),
            Stmt::FromImport(import) => self.expression(&import.expr),
            Stmt::Extends(extends) => self.expression(&extends.name),
            Stmt::Include(include) => self.expression(&include.name),
            Stmt::Macro(declared) => {
                self.expressions(declared.defaults.iter());
                self.statements(&declared.body);
            }
            Stmt::CallBlock(block) => {
                self.call(&block.call);
                self.expressions(block.macro_decl.defaults.iter());
                self.statements(&block.macro_decl.body);
            }
            Stmt::Do(statement) => self.call(&statement.call),
            Stmt::EmitRaw(_) | Stmt::Continue(_) | Stmt::Break(_) => {}
        }
    }

    fn expressions<'e, 's: 'e>(&mut self, expressions: impl Iterator<Item = &'e Expr<'s>>) {
        for expression in expressions {
            self.expression(expression);
        }
    }

    fn call(&mut self, call: &Call<'_>) {
        self.expression(&call.expr);
        let behind = self.token_behind(&call.expr);
        self.arguments(behind, &call.args, [None, Some("__cue_spread")]);
    }

    /// Visits arguments. `behind` is a token between what is called and their bracket; `filters` are put behind arguments by
    /// place, and behind lists of arguments.
    fn arguments(
        &mut self,
        behind: Option<usize>,
        arguments: &[CallArg<'_>],
        [by_place, spread]: [Option<&str>; 2],
    ) {
        let chosen: Vec<Option<&str>> = arguments
            .iter()
            .map(|argument| match argument {
                CallArg::Pos(_) => by_place,
                CallArg::PosSplat(_) | CallArg::KwargSplat(_) => spread,
                CallArg::Kwarg(..) => None,
            })
            .collect();
        let is_plain = chosen.iter().all(Option::is_none);
        let places = behind.filter(|_| !is_plain).map(|behind| self.places(behind)).unwrap_or_default();
        for (index, argument) in arguments.iter().enumerate() {
            let (CallArg::Pos(value)
            | CallArg::Kwarg(_, value)
            | CallArg::PosSplat(value)
            | CallArg::KwargSplat(value)) = argument;
            match (places.get(index), chosen[index]) {
                (Some(place), Some(filter)) => {
                    self.edit(place.start..place.start, "(");
                    self.expression(value);
                    self.edit(place.end..place.end, format!(")|{filter}"));
                }
                _ => self.expression(value),
            }
        }
    }

    /// Where the arguments in the next bracket are, without the stars in front of them.
    fn places(&self, behind: usize) -> Vec<Range<usize>> {
        let Some(open) = (behind..self.tokens.len()).find(|index| self.tokens[*index].kind == Kind::Open)
        else {
            return Vec::new();
        };
        let (mut places, mut depth, mut first) = (Vec::new(), 0usize, open + 1);
        for (index, token) in self.tokens.iter().enumerate().skip(open + 1) {
            let ends = depth == 0 && matches!(token.kind, Kind::Close | Kind::Comma);
            match token.kind {
                Kind::Open | Kind::OtherOpen => depth += 1,
                Kind::Close | Kind::OtherClose => depth = depth.saturating_sub(1),
                Kind::Star if index == first => first += 1,
                _ => {}
            }
            if ends {
                if first < index {
                    places.push(self.tokens[first].range.start..self.tokens[index - 1].range.end);
                }
                first = index + 1;
                if token.kind == Kind::Close {
                    break;
                }
            }
        }
        places
    }

    /// The first token that does not lie before an offset.
    fn token_at(&self, offset: usize) -> usize {
        self.tokens.partition_point(|token| token.range.start < offset)
    }

    /// Visits an expression. What stands at its left, and at the left of that, is visited in a loop: a long chain of
    /// operators would otherwise use up the stack.
    fn expression(&mut self, expression: &Expr<'_>) {
        let mut spine = vec![expression];
        let mut at = expression;
        while let Some(left) = left_of(at) {
            spine.push(left);
            at = left;
        }
        // The engine's own spans of filters, tests and subscripts begin later than what they belong to.
        let leftmost = at.span().start_offset as usize;
        let mut continued = false;
        for (index, node) in spine.iter().enumerate() {
            continued = self.node(node, leftmost, continued);
            debug_assert!(!continued || index + 1 < spine.len());
        }
    }

    /// Visits an expression without what stands at its left. `continued` says that the operator around it goes on where
    /// it ends, `(a)|f(b)|g(c)`; gives whether it does so itself with what stands at its left.
    fn node(&mut self, expression: &Expr<'_>, leftmost: usize, continued: bool) -> bool {
        let mut continues = false;
        match expression {
            // A literal of the portable grammar; the engine would take it for a variable.
            Expr::Var(var) if self.style.is_portable() && var.id == NULL => {
                let span = var.span();
                self.edit(span.start_offset as usize..span.end_offset as usize, "none");
            }
            Expr::Var(_) | Expr::Const(_) | Expr::GetAttr(_) => {}
            Expr::Slice(slice) => {
                self.slice(&slice.expr, leftmost);
                self.expressions([&slice.start, &slice.stop, &slice.step].into_iter().flatten());
            }
            Expr::UnaryOp(unary) => self.expression(&unary.expr),
            Expr::BinOp(binary) => {
                if let Some(name) = filter_for(self.style, binary.op, &binary.left, &binary.right) {
                    let end = binary.span().end_offset as usize;
                    continues = self.operator(name, &binary.left, leftmost, end, continued);
                }
                self.expression(&binary.right);
            }
            Expr::Compare(compare) => {
                self.chained(compare, leftmost, compare.span().end_offset as usize);
                self.expressions(compare.ops.iter().map(|op| &op.expr));
            }
            Expr::IfExpr(choice) => {
                self.expression(&choice.test_expr);
                self.expressions(choice.false_expr.iter());
            }
            Expr::Filter(filter) => {
                let behind = match &filter.expr {
                    Some(value) => self.token_behind(value),
                    None => Some(self.token_at(filter.span().start_offset as usize)),
                };
                self.arguments(behind, &filter.args, [None, Some("__cue_spread")]);
            }
            Expr::Test(test) => {
                let behind = self.token_behind(&test.expr);
                self.arguments(behind, &test.args, [None, Some("__cue_spread")]);
            }
            Expr::GetItem(get) => {
                if is_cheap(&get.subscript_expr) {
                    self.expression(&get.subscript_expr);
                } else {
                    self.receiver(&get.expr, leftmost, "__cue_at");
                    self.wrapped(&get.subscript_expr, "__cue_key");
                }
            }
            Expr::Call(call) => {
                let filters = match &call.expr {
                    Expr::GetAttr(get) => self.loop_method(get.name, &get.expr, leftmost, &call.args),
                    _ => [None, Some("__cue_spread")],
                };
                let behind = self.token_behind(&call.expr);
                self.arguments(behind, &call.args, filters);
            }
            Expr::List(list) => self.expressions(list.items.iter()),
            Expr::Tuple(tuple) => self.expressions(tuple.items.iter()),
            Expr::Map(map) => {
                for key in map.keys.iter().filter(|key| !matches!(key, Expr::Const(_))) {
                    self.wrapped(key, "__cue_key");
                }
                self.expressions(map.values.iter());
            }
        }
        continues
    }

    /// Writes an operator as a filter: `((a)|f(b))`. What stands at its left is not put into brackets again when it is
    /// such an operator itself, because each bracket counts towards the depth that a template may have.
    fn operator(
        &mut self,
        name: &str,
        left: &Expr<'_>,
        leftmost: usize,
        end: usize,
        continued: bool,
    ) -> bool {
        let Some(index) = self.token_behind(left) else { return false };
        let begin = self.begin(leftmost, index);
        let mut operator = self.tokens[index].range.clone();
        let negated = self.tokens[index].kind == Kind::Not;
        if negated {
            // `not in` is two words.
            operator.end = self.tokens.get(index + 1).map_or(operator.end, |token| token.range.end);
        }
        let bare = index > 0 && self.tokens[index - 1].range.end <= left.span().end_offset as usize;
        let continues = !negated
            && bare
            && matches!(left, Expr::BinOp(inner) if filter_for(self.style, inner.op, &inner.left, &inner.right).is_some());
        if !continues {
            self.edit(begin..begin, if negated { "(not (" } else { "((" });
        }
        self.edit(operator, format!("{}|{name}(", if continues { "" } else { ")" }));
        self.edit(end..end, if continued { ")" } else { "))" });
        continues
    }

    /// Writes `a < b < c` as `((a)|__cue_chain('<', b, '<', c))`.
    fn chained(&mut self, compare: &Compare<'_>, leftmost: usize, end: usize) {
        let before = std::iter::once(&compare.expr).chain(compare.ops.iter().map(|op| &op.expr));
        let mut edits = Vec::new();
        for (place, (left, op)) in before.zip(&compare.ops).enumerate() {
            let Some(index) = self.token_behind(left) else { return };
            let mut operator = self.tokens[index].range.clone();
            if place == 0 {
                let begin = self.begin(leftmost, index);
                edits.push(Edit { range: begin..begin, text: "((".to_owned() });
            }
            let name = match op.op {
                CompareOpKind::Eq => "==",
                CompareOpKind::Ne => "!=",
                CompareOpKind::Lt => "<",
                CompareOpKind::Lte => "<=",
                CompareOpKind::Gt => ">",
                CompareOpKind::Gte => ">=",
                CompareOpKind::In => "in",
                CompareOpKind::NotIn => {
                    operator.end = self.tokens.get(index + 1).map_or(operator.end, |token| token.range.end);
                    "not in"
                }
            };
            let opens = if place == 0 { ")|__cue_chain(" } else { ", " };
            edits.push(Edit { range: operator, text: format!("{opens}'{name}', ") });
        }
        self.edits.extend(edits);
        self.edit(end..end, "))");
    }

    fn slice(&mut self, value: &Expr<'_>, leftmost: usize) {
        let Some(open) = self.token_behind(value) else { return };
        let begin = self.begin(leftmost, open);
        self.edit(begin..begin, "(");
        // The marks of a slice: its bracket, its colons, its other bracket.
        let mut marks = vec![open];
        let mut depth = 0usize;
        for (index, token) in self.tokens.iter().enumerate().skip(open + 1) {
            match token.kind {
                Kind::Open | Kind::OtherOpen => depth += 1,
                Kind::OtherClose if depth == 0 => {
                    marks.push(index);
                    break;
                }
                Kind::Close | Kind::OtherClose => depth = depth.saturating_sub(1),
                Kind::Colon if depth == 0 => marks.push(index),
                _ => {}
            }
        }
        for (place, index) in marks.iter().enumerate() {
            let mark = match place {
                0 => "|__cue_slice(",
                _ if place + 1 == marks.len() => "))",
                _ => ", ",
            };
            // What stands between two marks may be left out.
            let left_out = marks.get(place + 1).is_some_and(|next| *next == index + 1);
            let text = if left_out { format!("{mark}none") } else { mark.to_owned() };
            self.edit(self.tokens[*index].range.clone(), text);
        }
    }

    /// Methods of `loop`, under whatever name it goes: `changed` compares what it is given, and `cycle` would end the process
    /// if it is given nothing. Gives the filters of the arguments.
    fn loop_method(
        &mut self,
        name: &str,
        value: &Expr<'_>,
        leftmost: usize,
        arguments: &[CallArg<'_>],
    ) -> [Option<&'static str>; 2] {
        let has = |wanted: fn(&CallArg<'_>) -> bool| arguments.iter().any(wanted);
        match name {
            "changed" => return [Some("__cue_key"), Some("__cue_key")],
            "cycle" if has(|one| matches!(one, CallArg::Pos(_) | CallArg::Kwarg(..))) => {}
            "cycle" if has(|one| matches!(one, CallArg::PosSplat(_))) => return [None, Some("__cue_some")],
            "cycle" => self.receiver(value, leftmost, "__cue_cycle"),
            _ => {}
        }
        [None, Some("__cue_spread")]
    }

    /// Writes `a` in `a[b]` as `((a)|__cue_at)`: a text is read from its beginning to the place that is asked for.
    fn receiver(&mut self, value: &Expr<'_>, leftmost: usize, filter: &str) {
        let Some(open) = self.token_behind(value) else { return };
        let begin = self.begin(leftmost, open);
        let Some(end) = open.checked_sub(1).map(|last| self.tokens[last].range.end) else { return };
        self.edit(begin..begin, "((");
        self.edit(end..end, format!(")|{filter})"));
    }

    /// Visits an expression and puts a filter behind the whole of it.
    fn wrapped(&mut self, expr: &Expr<'_>, filter: &str) {
        let mut leftmost = expr;
        while let Some(left) = left_of(leftmost) {
            leftmost = left;
        }
        let Some(index) = self.token_behind(expr) else { return };
        let begin = self.begin(leftmost.span().start_offset as usize, index);
        let end = self.tokens[index - 1].range.end;
        self.edit(begin..begin, "(");
        self.expression(expr);
        self.edit(end..end, format!(")|{filter}"));
    }
}

/// Whether it takes no time to look up such a subscript: a name, or a place near the beginning.
fn is_cheap(subscript: &Expr<'_>) -> bool {
    let Expr::Const(constant) = subscript else { return false };
    constant.value.as_str().is_some() || constant.value.as_usize().is_some_and(|place| place < 1_000)
}

/// The filter that an operator is written as. A number literal in a sum or before `%` shows that nothing can grow.
fn filter_for(style: Style, operator: BinOpKind, left: &Expr<'_>, right: &Expr<'_>) -> Option<&'static str> {
    let is_number = |expr: &Expr<'_>| matches!(expr, Expr::Const(constant) if constant.value.is_number());
    // Comparing with a literal takes no longer than the literal is long; but what is equal depends on the style.
    let is_literal = |expr: &Expr<'_>| matches!(expr, Expr::Const(_)) && !style.is_portable();
    Some(match operator {
        BinOpKind::Concat => "__cue_concat",
        BinOpKind::Add if is_number(left) || is_number(right) => return None,
        BinOpKind::Add => "__cue_add",
        BinOpKind::Mul => "__cue_mul",
        BinOpKind::Rem if is_number(left) => return None,
        BinOpKind::Rem => "__cue_mod",
        BinOpKind::Eq | BinOpKind::Ne if is_literal(left) || is_literal(right) => return None,
        BinOpKind::Eq => "__cue_eq",
        BinOpKind::Ne => "__cue_ne",
        BinOpKind::Lt => "__cue_lt",
        BinOpKind::Lte => "__cue_le",
        BinOpKind::Gt => "__cue_gt",
        BinOpKind::Gte => "__cue_ge",
        BinOpKind::In => "__cue_in",
        _ => return None,
    })
}

/// The expression that stands at the left of an operator, a filter or a subscript.
fn left_of<'e, 's>(expr: &'e Expr<'s>) -> Option<&'e Expr<'s>> {
    match expr {
        Expr::Slice(slice) => Some(&slice.expr),
        Expr::BinOp(binary) => Some(&binary.left),
        Expr::Compare(compare) => Some(&compare.expr),
        Expr::IfExpr(choice) => Some(&choice.true_expr),
        Expr::Filter(filter) => filter.expr.as_ref(),
        Expr::Test(test) => Some(&test.expr),
        Expr::GetAttr(get) => Some(&get.expr),
        Expr::GetItem(get) => Some(&get.expr),
        Expr::Call(call) => Some(&call.expr),
        _ => None,
    }
}
