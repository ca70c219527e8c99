//! Expressions, from the loosest operator to the tightest.

use super::{Failed, HEIGHT, Parse, Parser};
use crate::ast::{
    Arguments, Binary, Comparison, Expr, ExprKind, Name, Named, Slice, Slot, Unary, each_child,
};
use crate::error::{Error, Exceeded};
use crate::lexer::{Kind, Range};

pub(super) fn expr(kind: ExprKind, range: Range) -> Expr {
    let mut made = Expr { kind, range, height: 1 };
    let mut below = 0;
    each_child(&made, &mut |child| below = child.height.max(below));
    made.height = below.saturating_add(1);
    made
}

fn boxed(value: Expr) -> Box<Expr> {
    Box::new(value)
}

pub(super) fn name_at((name, range): (String, Range)) -> Name {
    Name { name, slot: Slot::default(), range }
}

/// What is asked of a value.
enum Part {
    Attribute(String),
    Item(Expr),
    Slice(Slice),
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Parse<Expr> {
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

    pub(super) fn expression_without_condition(&mut self) -> Parse<Expr> {
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
        let found = match &self.token().kind {
            Kind::Operator("==") => Comparison::Equal,
            Kind::Operator("!=") => Comparison::NotEqual,
            Kind::Operator("<") => Comparison::Less,
            Kind::Operator("<=") => Comparison::LessOrEqual,
            Kind::Operator(">") => Comparison::Greater,
            Kind::Operator(">=") => Comparison::GreaterOrEqual,
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

    fn binary(
        &mut self,
        operators: &[(&'static str, Binary)],
        operand: fn(&mut Self) -> Parse<Expr>,
    ) -> Parse<Expr> {
        let mut left = operand(self)?;
        while let Some((_, operator)) = operators.iter().find(|(spelling, _)| self.is_operator(spelling)) {
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
        self.binary(&[("+", Binary::Add), ("-", Binary::Subtract)], Self::concat)
    }

    fn concat(&mut self) -> Parse<Expr> {
        let first = self.product()?;
        if !self.is_operator("~") {
            return Ok(first);
        }
        let start = first.range;
        let mut parts = vec![first];
        while self.skip_operator("~") {
            match self.product() {
                Ok(part) => parts.push(part),
                Err(Failed) => return self.gave_up(parts),
            }
        }
        Ok(expr(ExprKind::Concat(parts), start.to(self.last_range())))
    }

    fn product(&mut self) -> Parse<Expr> {
        let operators = [
            ("*", Binary::Multiply),
            ("/", Binary::Divide),
            ("//", Binary::FloorDivide),
            ("%", Binary::Remainder),
        ];
        self.binary(&operators, Self::power)
    }

    fn power(&mut self) -> Parse<Expr> {
        self.binary(&[("**", Binary::Power)], |parser| parser.unary(true))
    }

    fn unary(&mut self, with_filter: bool) -> Parse<Expr> {
        let sign = match &self.token().kind {
            Kind::Operator("-") => Some(Unary::Minus),
            Kind::Operator("+") => Some(Unary::Plus),
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
        let kind = match self.token().kind.clone() {
            Kind::Name => return self.name_expression(namespaced),
            Kind::Text(..) => return Ok(self.strings()),
            Kind::Integer(number) => {
                self.step();
                ExprKind::Int(number)
            }
            Kind::Float(number) => {
                self.step();
                ExprKind::Float(number)
            }
            Kind::Operator("(") => {
                self.step();
                let inner = self.tuple_in_parentheses()?;
                let end = self.expect_operator(")")?;
                return Ok(expr(inner.kind, start.to(end)));
            }
            Kind::Operator("[") => {
                self.step();
                let items = self.items("]", Self::expression)?;
                ExprKind::List(items)
            }
            Kind::Operator("{") => {
                self.step();
                let pairs = self.items("}", |parser| {
                    let key = parser.expression()?;
                    parser.expect_operator(":")?;
                    Ok((key, parser.expression()?))
                })?;
                ExprKind::Dict(pairs)
            }
            _ => return self.unexpected("an expression"),
        };
        Ok(expr(kind, start.to(self.last_range())))
    }

    fn name_expression(&mut self, namespaced: bool) -> Parse<Expr> {
        let (name, range) = self.expect_name()?;
        let kind = match name.as_str() {
            "true" | "True" => ExprKind::Bool(true),
            "false" | "False" => ExprKind::Bool(false),
            "none" | "None" => ExprKind::None,
            "null" if self.grammar.null => ExprKind::None,
            _ if namespaced && self.skip_operator(".") => {
                let (attribute, end) = self.expect_name()?;
                let range = range.to(end);
                return Ok(expr(ExprKind::NamespaceTarget(name_at((name, range)), attribute), range));
            }
            _ => ExprKind::Name(name_at((name, range))),
        };
        Ok(expr(kind, range))
    }

    /// Adjacent strings are one.
    fn strings(&mut self) -> Expr {
        let start = self.range();
        let mut value = String::new();
        let mut offset = None;
        let mut count = 0;
        while let Kind::Text(part, exact) = &self.token().kind {
            value.push_str(part);
            count += 1;
            offset = (*exact && count == 1).then_some(self.range().start + 1);
            self.step();
        }
        expr(ExprKind::Text(value, offset), start.to(self.last_range()))
    }

    /// Items with commas between them, up to a bracket.
    fn items<T>(&mut self, end: &'static str, item: fn(&mut Self) -> Parse<T>) -> Parse<Vec<T>> {
        let mut items = Vec::new();
        while !self.is_operator(end) {
            if !items.is_empty() {
                self.expect_operator(",")?;
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
        matches!(self.token().kind, Kind::VariableEnd | Kind::BlockEnd | Kind::Operator(")"))
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
    pub(super) fn plain_targets(&mut self, ends: &[&str]) -> Parse<Expr> {
        self.tuple_of(ends, false, |parser| parser.primary(false))
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
        let mut items = Vec::new();
        let mut is_tuple = false;
        loop {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            if self.at_tuple_end(ends) {
                break;
            }
            items.push(item(self)?);
            if !self.is_operator(",") {
                break;
            }
            is_tuple = true;
        }
        match items.pop() {
            Some(only) if !is_tuple => Ok(only),
            None if !may_be_empty => self.unexpected("an expression"),
            last => {
                items.extend(last);
                Ok(expr(ExprKind::Tuple(items), start.to(self.last_range())))
            }
        }
    }

    pub(super) fn postfix(&mut self, mut value: Expr) -> Parse<Expr> {
        loop {
            value = match &self.token().kind {
                Kind::Operator("." | "[") => self.subscript(value)?,
                Kind::Operator("(") => self.call(value)?,
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
        self.errors.push(error.help("split it with `{% set %}`, or use a loop"));
        Err(Failed)
    }

    fn filters(&mut self, mut value: Expr) -> Parse<Expr> {
        loop {
            value = match &self.token().kind {
                Kind::Operator("|") => {
                    self.step();
                    self.filter(Some(value))?
                }
                Kind::Operator("(") => self.call(value)?,
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
            Part::Slice(slice) => ExprKind::Slice(value, Box::new(slice)),
        };
        Ok(expr(kind, range))
    }

    /// What a `.` or `[` asks for.
    fn part(&mut self) -> Parse<Part> {
        if self.skip_operator(".") {
            let range = self.range();
            return match self.token().kind.clone() {
                Kind::Name => Ok(Part::Attribute(self.expect_name()?.0)),
                Kind::Integer(number) => {
                    self.step();
                    Ok(Part::Item(expr(ExprKind::Int(number), range)))
                }
                _ => self.unexpected("a name or a number after `.`"),
            };
        }
        let open = self.expect_operator("[")?;
        let mut items: Vec<Result<Expr, Slice>> = Vec::new();
        while !self.is_operator("]") {
            if !items.is_empty() {
                self.expect_operator(",")?;
            }
            items.push(self.subscribed()?);
        }
        self.expect_operator("]")?;
        let several = items.len() > 1;
        Ok(match items.pop() {
            Some(Err(slice)) if !several => Part::Slice(slice),
            Some(Ok(item)) if !several => Part::Item(item),
            last => {
                items.extend(last);
                let Ok(items) = items.into_iter().collect::<Result<Vec<Expr>, Slice>>() else {
                    return self.fail(open, "a slice cannot be one of several items");
                };
                Part::Item(expr(ExprKind::Tuple(items), open.to(self.last_range())))
            }
        })
    }

    /// What is between brackets: an expression, or a slice.
    fn subscribed(&mut self) -> Parse<Result<Expr, Slice>> {
        let start = if self.is_operator(":") {
            None
        } else {
            let value = self.expression()?;
            if !self.is_operator(":") {
                return Ok(Ok(value));
            }
            Some(value)
        };
        self.step();
        let stop = self.slice_part()?;
        let step = if self.skip_operator(":") { self.slice_part()? } else { None };
        Ok(Err(Slice { start, stop, step }))
    }

    fn slice_part(&mut self) -> Parse<Option<Expr>> {
        if matches!(self.token().kind, Kind::Operator(":" | "]" | ",")) {
            return Ok(None);
        }
        self.expression().map(Some)
    }

    fn arguments(&mut self) -> Parse<Arguments> {
        let start = self.expect_operator("(")?;
        let arguments = self.arguments_until(start, |parser| parser.is_operator(")"))?;
        self.expect_operator(")")?;
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
                self.expect_operator(",")?;
                if ends(self) {
                    break;
                }
            }
            first = false;
            let no_stars = arguments.star.is_none() && arguments.double_star.is_none();
            let allowed = if self.skip_operator("*") {
                arguments.star = Some(self.expression()?);
                no_stars
            } else if self.skip_operator("**") {
                let allowed = arguments.double_star.is_none();
                arguments.double_star = Some(self.expression()?);
                allowed
            } else if self.token().kind == Kind::Name && self.next_token().kind == Kind::Operator("=") {
                let allowed = arguments.double_star.is_none();
                let (name, _) = self.expect_name()?;
                self.step();
                arguments.named.push((name, self.expression()?));
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

    fn dotted_name(&mut self) -> Parse<(String, Range)> {
        let (mut name, mut range) = self.expect_name()?;
        while self.skip_operator(".") {
            let (part, end) = self.expect_name()?;
            name = format!("{name}.{part}");
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
        let arguments = if self.is_operator("(") { self.arguments()? } else { Arguments::default() };
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
        let begins = match &self.token().kind {
            Kind::Name => !["else", "or", "and"].iter().any(|word| self.is_name(word)),
            Kind::Text(..) | Kind::Integer(_) | Kind::Float(_) | Kind::Operator("[" | "{") => true,
            _ => false,
        };
        if self.is_operator("(") {
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
