//! Expressions, from the loosest operator to the tightest.

use super::{Failed, HEIGHT, Parse, Parser, SPECIAL};
use crate::ast::{
    Arguments, Binary, Comparison, Expr, ExprKind, Name, Named, Slice, Slot, Unary, Word, each_child,
};
use crate::error::{Error, Exceeded};
use crate::lexer::{Kind, Number, Op, Range, unescape};

pub(super) fn expr(kind: ExprKind, range: Range) -> Expr {
    let mut made = Expr { kind, range, height: 1 };
    let mut below = 0;
    each_child(&made, &mut |child| below = child.height.max(below));
    made.height = below.saturating_add(1);
    made
}

/// An expression with none inside of it.
fn leaf(kind: ExprKind, range: Range) -> Expr {
    Expr { kind, range, height: 1 }
}

fn boxed(value: Expr) -> Box<Expr> {
    Box::new(value)
}

pub(super) fn name_at((name, range): (&str, Range)) -> Name {
    Name { name: name.into(), slot: Slot::default(), range }
}

/// How many names a simple expression has at most.
const SIMPLE: usize = 8;

/// What is asked of a value.
enum Part {
    Attribute(Word),
    Item(Expr),
    Slice(Box<Slice>),
}

impl<'t> Parser<'t> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
        if let Some(end) = self.simple_end() {
            return self.simple(end);
        }
        self.deeper(|parser| {
            let mut value = parser.or()?;
            while parser.skip_name("if") {
                let test = parser.or()?;
                let otherwise =
                    if parser.skip_name("else") { Some(boxed(parser.expression()?)) } else { None };
                let range = value.range.to(parser.last_range());
                value = expr(ExprKind::If(boxed(test), boxed(value), otherwise), range);
                parser.check_height(&value)?;
            }
            Ok(value)
        })
    }

    /// The last token of an expression that is a name with a few attributes, as most are, if here is one.
    fn simple_end(&self) -> Option<usize> {
        let kind = |at: usize| self.tokens.all.get(at).map(|token| token.kind);
        if self.token().kind != Kind::Name || self.is_name("not") {
            return None;
        }
        let longest = self.at + 2 * SIMPLE;
        for at in (self.at..longest).step_by(2) {
            match kind(at + 1)? {
                Kind::VariableEnd | Kind::BlockEnd => return Some(at),
                Kind::Operator(Op::Comma | Op::CloseParenthesis | Op::CloseBracket) => return Some(at),
                Kind::Operator(Op::Dot) if kind(at + 2) == Some(Kind::Name) => {}
                _ => return None,
            }
        }
        None
    }

    fn simple(&mut self, end: usize) -> Parse<Expr> {
        let mut value = self.name_expression(false)?;
        while self.at <= end {
            value = self.subscript(value)?;
        }
        Ok(value)
    }

    pub(super) fn expression_without_condition(&mut self) -> Parse<Expr> {
        if let Some(end) = self.simple_end() {
            return self.simple(end);
        }
        self.deeper(Self::or)
    }

    fn or(&mut self) -> Parse<Expr> {
        let first = self.and()?;
        self.chain("or", first, Self::and, ExprKind::Or)
    }

    fn and(&mut self) -> Parse<Expr> {
        let first = self.not()?;
        self.chain("and", first, Self::not, ExprKind::And)
    }

    fn gave_up<T>(&mut self, parts: Vec<Expr>) -> Parse<T> {
        self.salvaged.extend(parts);
        Err(Failed)
    }

    /// Operands with the same word between them.
    fn chain(
        &mut self,
        word: &str,
        first: Expr,
        operand: fn(&mut Self) -> Parse<Expr>,
        kind: fn(Vec<Expr>) -> ExprKind,
    ) -> Parse<Expr> {
        if !self.is_name(word) {
            return Ok(first);
        }
        let start = first.range;
        let mut parts = vec![first];
        while self.skip_name(word) {
            match operand(self) {
                Ok(part) => parts.push(part),
                Err(Failed) => return self.gave_up(parts),
            }
        }
        Ok(expr(kind(parts), start.to(self.last_range())))
    }

    fn not(&mut self) -> Parse<Expr> {
        if !self.is_name("not") {
            return self.compare();
        }
        let start = self.step();
        let value = self.deeper(Self::not)?;
        let range = start.to(value.range);
        Ok(expr(ExprKind::Not(boxed(value)), range))
    }

    fn comparison(&mut self) -> Option<Comparison> {
        let found = match self.token().kind {
            Kind::Operator(Op::Equal) => Comparison::Equal,
            Kind::Operator(Op::NotEqual) => Comparison::NotEqual,
            Kind::Operator(Op::Less) => Comparison::Less,
            Kind::Operator(Op::LessOrEqual) => Comparison::LessOrEqual,
            Kind::Operator(Op::Greater) => Comparison::Greater,
            Kind::Operator(Op::GreaterOrEqual) => Comparison::GreaterOrEqual,
            Kind::Name if self.is_name("in") => Comparison::In,
            Kind::Name if self.is_name("not") && self.next_is_name("in") => {
                self.step();
                Comparison::NotIn
            }
            _ => return None,
        };
        self.step();
        Some(found)
    }

    fn compare(&mut self) -> Parse<Expr> {
        let mut first = self.sum()?;
        let mut others = Vec::new();
        while let Some(comparison) = self.comparison() {
            let found = self.sum();
            let other;
            (first, other) = self.kept(found, first)?;
            others.push((comparison, other));
        }
        let range = first.range.to(self.last_range());
        Ok(if others.is_empty() { first } else { expr(ExprKind::Compare(boxed(first), others), range) })
    }

    fn binary(&mut self, operators: &[(Op, Binary)], operand: fn(&mut Self) -> Parse<Expr>) -> Parse<Expr> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(spelling, _)| self.is_operator(*spelling)) {
            self.step();
            let found = operand(self);
            let right;
            (left, right) = self.kept(found, left)?;
            let range = left.range.to(right.range);
            left = expr(ExprKind::Binary(*operator, boxed(left), boxed(right)), range);
            self.check_height(&left)?;
        }
        Ok(left)
    }

    fn sum(&mut self) -> Parse<Expr> {
        self.binary(&[(Op::Plus, Binary::Add), (Op::Minus, Binary::Subtract)], Self::concat)
    }

    fn concat(&mut self) -> Parse<Expr> {
        let first = self.product()?;
        if !self.is_operator(Op::Tilde) {
            return Ok(first);
        }
        let start = first.range;
        let mut parts = vec![first];
        while self.skip_operator(Op::Tilde) {
            match self.product() {
                Ok(part) => parts.push(part),
                Err(Failed) => return self.gave_up(parts),
            }
        }
        Ok(expr(ExprKind::Concat(parts), start.to(self.last_range())))
    }

    fn product(&mut self) -> Parse<Expr> {
        let operators = [
            (Op::Multiply, Binary::Multiply),
            (Op::Divide, Binary::Divide),
            (Op::FloorDivide, Binary::FloorDivide),
            (Op::Remainder, Binary::Remainder),
        ];
        self.binary(&operators, Self::power)
    }

    fn power(&mut self) -> Parse<Expr> {
        self.binary(&[(Op::Power, Binary::Power)], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filter: bool) -> Parse<Expr> {
        let sign = match self.token().kind {
            Kind::Operator(Op::Minus) => Some(Unary::Minus),
            Kind::Operator(Op::Plus) => Some(Unary::Plus),
            _ => None,
        };
        let value = match sign {
            Some(sign) => {
                let start = self.step();
                let value = self.deeper(|parser| parser.unary(false))?;
                let range = start.to(value.range);
                expr(ExprKind::Unary(sign, boxed(value)), range)
            }
            None => self.primary(false)?,
        };
        let value = self.postfix(value)?;
        if with_filter { self.filters(value) } else { Ok(value) }
    }

    pub(super) fn primary(&mut self, namespaced: bool) -> Parse<Expr> {
        let start = self.range();
        let kind = match self.token().kind {
            Kind::Name => return self.name_expression(namespaced),
            Kind::Text(_) => return Ok(self.strings()),
            Kind::Number(at) => {
                self.step();
                self.number(at)
            }
            Kind::Operator(Op::OpenParenthesis) => {
                self.step();
                let inner = self.tuple_in_parentheses()?;
                let end = self.expect_operator(Op::CloseParenthesis)?;
                return Ok(expr(inner.kind, start.to(end)));
            }
            Kind::Operator(Op::OpenBracket) => {
                self.step();
                let items = self.items(Op::CloseBracket, Self::expression)?;
                ExprKind::List(items)
            }
            Kind::Operator(Op::OpenBrace) => {
                self.step();
                let pairs = self.items(Op::CloseBrace, |parser| {
                    let key = parser.expression()?;
                    parser.expect_operator(Op::Colon)?;
                    Ok((key, parser.expression()?))
                })?;
                ExprKind::Dict(pairs)
            }
            _ => return self.unexpected("an expression"),
        };
        Ok(expr(kind, start.to(self.last_range())))
    }

    fn number(&self, at: u32) -> ExprKind {
        match self.tokens.numbers[at as usize] {
            Number::Float(number) => ExprKind::Float(number),
            Number::Integer(number) => match i64::try_from(number) {
                Ok(number) => ExprKind::Int(number),
                Err(_) => ExprKind::Big(Box::new(number)),
            },
        }
    }

    fn name_expression(&mut self, namespaced: bool) -> Parse<Expr> {
        let (name, range) = self.expect_name()?;
        let kind = match name {
            "true" | "True" => ExprKind::Bool(true),
            "false" | "False" => ExprKind::Bool(false),
            "none" | "None" => ExprKind::None,
            "null" if self.grammar.null => ExprKind::None,
            _ if namespaced && self.skip_operator(Op::Dot) => {
                let (attribute, end) = self.expect_name()?;
                let target = Box::new((name_at((name, range)), attribute.into()));
                return Ok(leaf(ExprKind::NamespaceTarget(target), range.to(end)));
            }
            _ => {
                if let Some(at) = SPECIAL.iter().position(|special| *special == name) {
                    self.special |= 1 << at;
                }
                ExprKind::Name(name_at((name, range)))
            }
        };
        Ok(leaf(kind, range))
    }

    /// Adjacent strings are one.
    fn strings(&mut self) -> Expr {
        let start = self.range();
        let mut value = Word::default();
        let mut offset = None;
        let mut count = 0;
        while let Kind::Text(escapes) = self.token().kind {
            let range = self.range();
            let written = Range { start: range.start + 1, end: range.end - 1 }.of(self.text);
            let made = escapes.then(|| unescape(written).unwrap_or_default());
            let part = made.as_deref().unwrap_or(written);
            count += 1;
            offset = (count == 1 && part == written).then_some(range.start + 1);
            value.push_str(part);
            self.step();
        }
        leaf(ExprKind::Text(value, offset), start.to(self.last_range()))
    }

    /// Items with commas between them, up to a bracket.
    fn items<T>(&mut self, end: Op, item: fn(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        while !self.is_operator(end) {
            if !items.is_empty() {
                self.expect_operator(Op::Comma)?;
                if self.is_operator(end) {
                    break;
                }
            }
            items.push(item(self)?);
        }
        self.expect_operator(end)?;
        Ok(items)
    }

    fn at_tuple_end(&self, ends: &[&str]) -> bool {
        matches!(self.token().kind, Kind::VariableEnd | Kind::BlockEnd | Kind::Operator(Op::CloseParenthesis))
            || self.name().is_some_and(|name| ends.contains(&name))
    }

    /// An expression, or several with commas between them, which are a tuple.
    pub(super) fn tuple(&mut self, conditions: bool, ends: &[&str], targets: bool) -> Parse<Expr> {
        self.tuple_of(ends, false, |parser| match (targets, conditions) {
            (true, _) => parser.primary(true),
            (false, true) => parser.expression(),
            (false, false) => parser.expression_without_condition(),
        })
    }

    /// The targets of `for` and `with`, which are names and tuples of names.
    pub(super) fn plain_targets(&mut self) -> Parse<Expr> {
        self.tuple_of(&[], false, |parser| parser.primary(false))
    }

    fn tuple_in_parentheses(&mut self) -> Parse<Expr> {
        self.tuple_of(&[], true, Self::expression)
    }

    fn tuple_of(
        &mut self,
        ends: &[&str],
        may_be_empty: bool,
        item: impl Fn(&mut Self) -> Parse<Expr>,
    ) -> Parse<Expr> {
        let start = self.range();
        if self.at_tuple_end(ends) {
            return match may_be_empty {
                true => Ok(leaf(ExprKind::Tuple(Vec::new()), start.to(self.last_range()))),
                false => self.unexpected("an expression"),
            };
        }
        let first = item(self)?;
        if !self.is_operator(Op::Comma) {
            return Ok(first);
        }
        let mut items = vec![first];
        while self.skip_operator(Op::Comma) && !self.at_tuple_end(ends) {
            items.push(item(self)?);
        }
        Ok(expr(ExprKind::Tuple(items), start.to(self.last_range())))
    }

    pub(super) fn postfix(&mut self, mut value: Expr) -> Parse<Expr> {
        loop {
            value = match self.token().kind {
                Kind::Operator(Op::Dot | Op::OpenBracket) => self.subscript(value)?,
                Kind::Operator(Op::OpenParenthesis) => self.call(value)?,
                _ => return Ok(value),
            };
            self.check_height(&value)?;
        }
    }

    /// An expression cannot be higher than what comes after the parser can walk.
    pub(super) fn check_height(&mut self, value: &Expr) -> Parse<()> {
        if value.height <= HEIGHT {
            return Ok(());
        }
        let message = "too many operators, filters or branches depend on each other";
        let error = Error::limit(Exceeded::Depth, message).at(value.range);
        self.note(error.help("split it with `{% set %}`, or use a loop"));
        Err(Failed)
    }

    fn filters(&mut self, mut value: Expr) -> Parse<Expr> {
        loop {
            value = match self.token().kind {
                Kind::Operator(Op::Pipe) => {
                    self.step();
                    self.filter(Some(value))?
                }
                Kind::Operator(Op::OpenParenthesis) => self.call(value)?,
                Kind::Name if self.is_name("is") => self.test(value)?,
                _ => return Ok(value),
            };
            self.check_height(&value)?;
        }
    }

    fn call(&mut self, callee: Expr) -> Parse<Expr> {
        let arguments = self.arguments();
        let (callee, arguments) = self.kept(arguments, callee)?;
        let range = callee.range.to(self.last_range());
        Ok(expr(ExprKind::Call(boxed(callee), Box::new(arguments)), range))
    }

    fn subscript(&mut self, value: Expr) -> Parse<Expr> {
        let part = self.part();
        let (value, part) = self.kept(part, value)?;
        let range = value.range.to(self.last_range());
        let value = boxed(value);
        let kind = match part {
            Part::Attribute(name) => ExprKind::Attribute(value, name),
            Part::Item(item) => ExprKind::Item(value, boxed(item)),
            Part::Slice(slice) => ExprKind::Slice(value, slice),
        };
        Ok(expr(kind, range))
    }

    /// What a `.` or `[` asks for.
    fn part(&mut self) -> Parse<Part> {
        if self.skip_operator(Op::Dot) {
            let range = self.range();
            return match self.token().kind {
                Kind::Name => Ok(Part::Attribute(self.expect_name()?.0.into())),
                Kind::Number(at) if matches!(self.tokens.numbers[at as usize], Number::Integer(_)) => {
                    self.step();
                    Ok(Part::Item(leaf(self.number(at), range)))
                }
                _ => self.unexpected("a name or a number after `.`"),
            };
        }
        let open = self.expect_operator(Op::OpenBracket)?;
        let mut items: Vec<Result<Expr, Box<Slice>>> = Vec::new();
        while !self.is_operator(Op::CloseBracket) {
            if !items.is_empty() {
                self.expect_operator(Op::Comma)?;
            }
            items.push(self.subscribed()?);
        }
        self.expect_operator(Op::CloseBracket)?;
        let several = items.len() > 1;
        Ok(match items.pop() {
            Some(Err(slice)) if !several => Part::Slice(slice),
            Some(Ok(item)) if !several => Part::Item(item),
            last => {
                items.extend(last);
                let Ok(items) = items.into_iter().collect::<Result<Vec<Expr>, Box<Slice>>>() else {
                    return self.fail(open, "a slice cannot be one of several items");
                };
                Part::Item(expr(ExprKind::Tuple(items), open.to(self.last_range())))
            }
        })
    }

    /// What is between brackets: an expression, or a slice.
    fn subscribed(&mut self) -> Parse<Result<Expr, Box<Slice>>> {
        let start = if self.is_operator(Op::Colon) {
            None
        } else {
            let value = self.expression()?;
            if !self.is_operator(Op::Colon) {
                return Ok(Ok(value));
            }
            Some(value)
        };
        self.step();
        let stop = self.slice_part()?;
        let step = if self.skip_operator(Op::Colon) { self.slice_part()? } else { None };
        Ok(Err(Box::new(Slice { start, stop, step })))
    }

    fn slice_part(&mut self) -> Parse<Option<Expr>> {
        if matches!(self.token().kind, Kind::Operator(Op::Colon | Op::CloseBracket | Op::Comma)) {
            return Ok(None);
        }
        self.expression().map(Some)
    }

    fn arguments(&mut self) -> Parse<Arguments> {
        let start = self.expect_operator(Op::OpenParenthesis)?;
        let arguments = self.arguments_until(start, |parser| parser.is_operator(Op::CloseParenthesis))?;
        self.expect_operator(Op::CloseParenthesis)?;
        Ok(arguments)
    }

    /// The arguments of a block tag that is a filter.
    pub(super) fn tag_arguments(&mut self) -> Parse<Arguments> {
        let start = self.range();
        self.arguments_until(start, |parser| parser.token().kind == Kind::BlockEnd)
    }

    fn arguments_until(&mut self, start: Range, ends: fn(&Self) -> bool) -> Parse<Arguments> {
        let mut arguments = Arguments::default();
        let mut first = true;
        while !ends(self) {
            if !first {
                self.expect_operator(Op::Comma)?;
                if ends(self) {
                    break;
                }
            }
            first = false;
            let no_stars = arguments.star.is_none() && arguments.double_star.is_none();
            let allowed = if self.skip_operator(Op::Multiply) {
                arguments.star = Some(self.expression()?);
                no_stars
            } else if self.skip_operator(Op::Power) {
                let allowed = arguments.double_star.is_none();
                arguments.double_star = Some(self.expression()?);
                allowed
            } else if self.token().kind == Kind::Name && self.next_token().kind == Kind::Operator(Op::Assign)
            {
                let allowed = arguments.double_star.is_none();
                let (name, _) = self.expect_name()?;
                self.step();
                arguments.named.push((name.into(), self.expression()?));
                allowed
            } else {
                arguments.positional.push(self.expression()?);
                no_stars && arguments.named.is_empty()
            };
            if !allowed {
                return self.fail(start.to(self.last_range()), "arguments are in the wrong order");
            }
        }
        Ok(arguments)
    }

    fn dotted_name(&mut self) -> Parse<(Word, Range)> {
        let (first, mut range) = self.expect_name()?;
        let mut name = Word::from(first);
        while self.skip_operator(Op::Dot) {
            let (part, end) = self.expect_name()?;
            name.push('.');
            name.push_str(part);
            range = range.to(end);
        }
        Ok((name, range))
    }

    /// A filter, behind its `|`. Without a value it is the filter of a block.
    pub(super) fn filter(&mut self, value: Option<Expr>) -> Parse<Expr> {
        let named = self.named();
        let (value, named) = match value {
            None => (None, named?),
            Some(value) => {
                let (value, named) = self.kept(named, value)?;
                (Some(value), named)
            }
        };
        let whole = value.as_ref().map_or(named.range, |value| value.range).to(self.last_range());
        Ok(expr(ExprKind::Filter(value.map(Box::new), Box::new(named)), whole))
    }

    fn named(&mut self) -> Parse<Named> {
        let (name, range) = self.dotted_name()?;
        let arguments =
            if self.is_operator(Op::OpenParenthesis) { self.arguments()? } else { Arguments::default() };
        Ok(Named { name, range, arguments })
    }

    fn test(&mut self, value: Expr) -> Parse<Expr> {
        self.step();
        let negated = self.skip_name("not");
        let named = self.named_test();
        let (value, named) = self.kept(named, value)?;
        let whole = value.range.to(self.last_range());
        let test = expr(ExprKind::Test(boxed(value), Box::new(named)), whole);
        Ok(if negated { expr(ExprKind::Not(boxed(test)), whole) } else { test })
    }

    fn named_test(&mut self) -> Parse<Named> {
        let (name, range) = self.dotted_name()?;
        let mut arguments = Arguments::default();
        let begins = match self.token().kind {
            Kind::Name => !["else", "or", "and"].iter().any(|word| self.is_name(word)),
            Kind::Text(_) | Kind::Number(_) | Kind::Operator(Op::OpenBracket | Op::OpenBrace) => true,
            _ => false,
        };
        if self.is_operator(Op::OpenParenthesis) {
            arguments = self.arguments()?;
        } else if begins {
            if self.is_name("is") {
                let range = self.range();
                return self.fail(range, "`is` cannot follow another `is`");
            }
            let argument = self.primary(false)?;
            arguments.positional.push(self.postfix(argument)?);
        }
        Ok(Named { name, range, arguments })
    }
}
