//! Block tags.

use super::expressions::{expr, name_at};
use super::{Failed, Parse, Parser};
use crate::ast::{
    Block, Body, Expr, ExprKind, For, Import, Imported, Include, Macro, Name, Named, Scope, SetBlock,
    Statement, StatementKind, With,
};
use crate::error::{Error, ErrorKind, nearest};
use crate::lexer::{Kind, Op, Range};

const TAGS: [&str; 17] = [
    "for",
    "if",
    "block",
    "extends",
    "print",
    "macro",
    "include",
    "from",
    "import",
    "set",
    "with",
    "autoescape",
    "call",
    "filter",
    "do",
    "break",
    "continue",
];

/// Whether an end tag belongs to this one.
pub(super) fn has_body(tag: &str) -> bool {
    matches!(tag, "for" | "if" | "block" | "macro" | "with" | "autoescape" | "call" | "filter" | "generation")
}

fn body(statements: Vec<Statement>) -> Body {
    Body { statements, scope: Scope::default() }
}

/// A signature: the parameters, and the defaults of the last ones.
type Signature = (Vec<Name>, Vec<Expr>);

impl<'t> Parser<'t> {
    pub(super) fn statement(&mut self, start: Range, out: &mut Vec<Statement>) -> Parse<()> {
        let Some(tag) = self.name() else {
            return self.unexpected("the name of a tag");
        };
        let tag_range = self.step();
        let kind = match tag {
            "for" => self.parse_for()?,
            "if" => self.parse_if()?,
            "block" => self.parse_block(tag_range)?,
            "extends" => {
                self.extends = true;
                StatementKind::Extends(self.expression()?)
            }
            "print" => return self.parse_print(start, out),
            "macro" => self.parse_macro()?,
            "include" => self.parse_include()?,
            "from" => self.parse_from()?,
            "import" => self.parse_import()?,
            "set" => self.parse_set()?,
            "with" => self.parse_with()?,
            "autoescape" => {
                let option = self.expression()?;
                StatementKind::Autoescape(Box::new((
                    option,
                    body(self.body("autoescape", &["endautoescape"])?.0),
                )))
            }
            "call" => self.parse_call_block(tag_range)?,
            "generation" if self.grammar.generation => {
                let (statements, _) = self.body("generation", &["endgeneration"])?;
                let signature = (Vec::new(), Vec::new());
                StatementKind::Generation(self.add_macro("caller", signature, statements, tag_range))
            }
            "filter" => {
                let filter = self.filter_chain(None)?;
                StatementKind::FilterBlock(Box::new((filter, body(self.body("filter", &["endfilter"])?.0))))
            }
            "do" => StatementKind::Do(self.tuple(true, &[], false)?),
            "break" | "continue" if self.in_loop() => {
                if tag == "break" {
                    StatementKind::Break
                } else {
                    StatementKind::Continue
                }
            }
            "break" | "continue" => return self.fail(tag_range, format!("`{tag}` is outside a loop")),
            _ if self.grammar.tags.contains(&tag) => {
                let arguments = self.tag_arguments()?;
                let range = tag_range.to(self.last_range());
                let named = Named { name: tag.into(), range: tag_range, arguments };
                let filter = expr(ExprKind::Filter(None, Box::new(named)), range);
                let end = format!("end{tag}");
                StatementKind::FilterBlock(Box::new((filter, body(self.body(tag, &[&end])?.0))))
            }
            _ => return self.unknown_tag(tag, tag_range),
        };
        out.push(Statement { kind, range: start.to(self.last_range()) });
        Ok(())
    }

    /// Whether a loop is open around this tag, with no macro, block or call in between.
    fn in_loop(&self) -> bool {
        let inner = self.open.iter().rev().map(|(tag, _)| *tag);
        inner
            .take_while(|tag| !matches!(*tag, "macro" | "block" | "call" | "generation"))
            .any(|tag| tag == "for")
    }

    fn unknown_tag(&mut self, tag: &str, range: Range) -> Parse<()> {
        if let Some(at) = self.broken.iter().rposition(|end| end == tag) {
            self.broken.remove(at);
            return Ok(());
        }
        let closes = tag.starts_with("end") || ["else", "elif"].contains(&tag);
        let message =
            if closes { format!("unexpected `{{% {tag} %}}`") } else { format!("unknown tag `{tag}`") };
        let help = match self.open.last() {
            Some((open, _)) if closes => {
                format!("close `{{% {open} … %}}` first: add `{{% end{open} %}}` before it")
            }
            _ if tag.starts_with("end") => "no block is open: remove it".to_owned(),
            _ if closes => "write it between an `if` or `for` and its end".to_owned(),
            _ => match nearest(tag, TAGS).first() {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("the tags are {}", TAGS.join(", ")),
            },
        };
        let error = Error::new(ErrorKind::Syntax, message).at(range).help(help);
        let opened = self.open.last().filter(|_| closes).map(|(_, opened)| *opened);
        self.note(match opened {
            Some(opened) => error.opened(opened),
            None => error,
        });
        Err(Failed)
    }

    /// The statements of a block tag, and the name of the tag that ended them.
    fn body(&mut self, tag: &'t str, ends: &[&str]) -> Parse<(Vec<Statement>, Option<&'t str>)> {
        self.skip_operator(Op::Colon);
        if self.token().kind != Kind::BlockEnd {
            return self.unexpected("the end of the tag");
        }
        let opened = self.tag.to(self.step());
        self.open.push((tag, opened));
        let (statements, end) = self.statements_until(ends);
        self.open.pop();
        if end.is_none() {
            // What is inside stays in the tree.
            self.unclosed = true;
            // An end tag that does not belong here was reported together with this tag.
            if !self.errors.iter().any(|error| error.opening() == Some(opened)) {
                let error = Error::new(ErrorKind::Syntax, format!("`{{% {tag} … %}}` is not closed"));
                self.note(error.at(opened).help(format!("add `{{% end{tag} %}}`")).opened(opened));
            }
        }
        Ok((statements, end))
    }

    fn check_target(&mut self, target: &Expr) -> Parse<()> {
        match &target.kind {
            ExprKind::Name(_) | ExprKind::NamespaceTarget(..) => Ok(()),
            ExprKind::Tuple(items) => items.iter().try_for_each(|item| self.check_target(item)),
            _ => {
                let text = target.range.of(self.text).to_owned();
                self.fail(target.range, format!("cannot assign to `{text}`"))
            }
        }
    }

    fn check_loop_target(&mut self, target: &Expr) -> Parse<()> {
        match &target.kind {
            ExprKind::Name(name) if name.name == "loop" => {
                self.fail(target.range, "a loop cannot assign to `loop`, which is its own state")
            }
            ExprKind::Tuple(items) => items.iter().try_for_each(|item| self.check_loop_target(item)),
            _ => Ok(()),
        }
    }

    fn parse_for(&mut self) -> Parse<StatementKind> {
        let target = self.plain_targets()?;
        self.check_target(&target)?;
        self.check_loop_target(&target)?;
        self.expect_keyword("in")?;
        let iterable = self.tuple(false, &["recursive"], false)?;
        let test = if self.skip_name("if") { Some(self.expression()?) } else { None };
        let recursive = self.skip_name("recursive");
        let inner = self.body("for", &["else", "endfor"]);
        let (iterable, (statements, end)) = self.kept(inner, iterable)?;
        let otherwise = if end == Some("else") { self.body("for", &["endfor"])?.0 } else { Vec::new() };
        Ok(StatementKind::For(Box::new(For {
            test: test.map(|test| (test, Scope::default(), target.clone())),
            target,
            iterable,
            recursive,
            body: body(statements),
            loop_slot: None,
            otherwise: body(otherwise),
        })))
    }

    fn parse_if(&mut self) -> Parse<StatementKind> {
        let mut branches = Vec::new();
        loop {
            let test = self.tuple(false, &[], false)?;
            let inner = self.body("if", &["elif", "else", "endif"]);
            let (test, (statements, end)) = self.kept(inner, test)?;
            branches.push((test, statements));
            match end {
                Some("elif") => continue,
                Some("else") => {
                    let (otherwise, _) = self.body("if", &["endif"])?;
                    return Ok(StatementKind::If(branches, otherwise));
                }
                _ => return Ok(StatementKind::If(branches, Vec::new())),
            }
        }
    }

    fn parse_block(&mut self, tag: Range) -> Parse<StatementKind> {
        let (name, range) = self.expect_name()?;
        let scoped = self.skip_name("scoped");
        let required = self.skip_name("required");
        if self.is_operator(Op::Minus) {
            let range = self.range();
            return self.fail_with_help(range, "the name of a block has no hyphen", "use an underscore");
        }
        let (statements, _) = self.body("block", &["endblock"])?;
        let blank = |statement: &Statement| {
            matches!(statement.kind, StatementKind::Data)
                && statement.range.of(self.text).chars().all(char::is_whitespace)
        };
        if required && !statements.iter().all(blank) {
            return self.fail(
                range,
                format!("the block `{name}` is required, so it can only hold comments and white space"),
            );
        }
        if self.is_name(name) {
            self.step();
        }
        if !self.block_names.insert(name) {
            let message = format!("the block `{name}` is defined twice");
            return self.fail_with_help(range, message, "give one of them another name");
        }
        self.blocks.push(Block {
            name: name.into(),
            scoped,
            required,
            body: body(statements),
            self_slot: None,
            super_slot: None,
            range: tag.to(range),
        });
        Ok(StatementKind::Block(self.blocks.len() as u32 - 1))
    }

    fn parse_print(&mut self, start: Range, out: &mut Vec<Statement>) -> Parse<()> {
        let mut first = true;
        while self.token().kind != Kind::BlockEnd {
            if !first {
                self.expect_operator(Op::Comma)?;
            }
            first = false;
            let value = self.expression()?;
            out.push(Statement { kind: StatementKind::Emit(value), range: start });
        }
        Ok(())
    }

    fn signature(&mut self) -> Parse<Signature> {
        self.expect_operator(Op::OpenParenthesis)?;
        let mut parameters: Vec<Name> = Vec::new();
        let mut defaults = Vec::new();
        while !self.is_operator(Op::CloseParenthesis) {
            if !parameters.is_empty() {
                self.expect_operator(Op::Comma)?;
            }
            let (name, range) = self.expect_name()?;
            self.check_assignable(name, range)?;
            if self.skip_operator(Op::Assign) {
                defaults.push(self.expression()?);
            } else if !defaults.is_empty() {
                return self
                    .fail(range, format!("`{name}` has no default, but a parameter before it has one"));
            }
            if parameters.iter().any(|known| known.name == name) {
                return self.fail(range, format!("duplicate parameter `{name}`"));
            }
            parameters.push(name_at((name, range)));
        }
        self.expect_operator(Op::CloseParenthesis)?;
        Ok((parameters, defaults))
    }

    fn check_assignable(&mut self, name: &str, range: Range) -> Parse<()> {
        if matches!(name, "true" | "false" | "none" | "True" | "False" | "None") {
            return self.fail(range, format!("cannot assign to `{name}`"));
        }
        Ok(())
    }

    fn target_name(&mut self) -> Parse<Name> {
        let (name, range) = self.expect_name()?;
        self.check_assignable(name, range)?;
        Ok(name_at((name, range)))
    }

    fn add_macro(
        &mut self,
        name: &str,
        signature: Signature,
        statements: Vec<Statement>,
        range: Range,
    ) -> u32 {
        let (parameters, defaults) = signature;
        self.macros.push(Macro {
            name: name.into(),
            parameters,
            defaults,
            body: body(statements),
            caller: None,
            kwargs: None,
            varargs: None,
            explicit_caller: false,
            range,
        });
        self.macros.len() as u32 - 1
    }

    fn parse_macro(&mut self) -> Parse<StatementKind> {
        let name = self.target_name()?;
        let signature = self.signature()?;
        let (statements, _) = self.body("macro", &["endmacro"])?;
        let index = self.add_macro(&name.name, signature, statements, name.range);
        Ok(StatementKind::Macro(index, name))
    }

    fn parse_call_block(&mut self, range: Range) -> Parse<StatementKind> {
        let signature =
            if self.is_operator(Op::OpenParenthesis) { self.signature()? } else { (Vec::new(), Vec::new()) };
        let call = self.expression()?;
        if !matches!(call.kind, ExprKind::Call(..)) {
            return self.fail(call.range, "expected a call, as in `{% call name() %}`");
        }
        let (statements, _) = self.body("call", &["endcall"])?;
        let index = self.add_macro("caller", signature, statements, range);
        Ok(StatementKind::CallBlock(Box::new(call), index))
    }

    /// `with context` or `without context`, if it is there.
    fn import_context(&mut self) -> Option<bool> {
        let with = self.is_name("with");
        if !(with || self.is_name("without")) || !self.next_is_name("context") {
            return None;
        }
        self.step();
        self.step();
        Some(with)
    }

    fn parse_include(&mut self) -> Parse<StatementKind> {
        let template = self.expression()?;
        let ignore_missing = self.is_name("ignore") && self.next_is_name("missing");
        if ignore_missing {
            self.step();
            self.step();
        }
        let with_context = self.import_context().unwrap_or(true);
        Ok(StatementKind::Include(Box::new(Include { template, ignore_missing, with_context })))
    }

    fn parse_import(&mut self) -> Parse<StatementKind> {
        let template = self.expression()?;
        self.expect_keyword("as")?;
        let names = Imported::Module(self.target_name()?);
        let with_context = self.import_context().unwrap_or(false);
        Ok(StatementKind::Import(Box::new(Import { template, with_context, names })))
    }

    fn parse_from(&mut self) -> Parse<StatementKind> {
        let template = self.expression()?;
        self.expect_keyword("import")?;
        let mut names = Vec::new();
        let with_context = loop {
            if !names.is_empty() {
                self.expect_operator(Op::Comma)?;
            }
            if let Some(with_context) = self.import_context() {
                break Some(with_context);
            }
            let name = self.target_name()?;
            if name.name.starts_with('_') {
                return self
                    .fail(name.range, format!("`{}` begins with `_` and cannot be imported", name.name));
            }
            let target = if self.skip_name("as") { self.target_name()? } else { name.clone() };
            names.push((name.name, target));
            let with_context = self.import_context();
            if with_context.is_some() || !self.is_operator(Op::Comma) {
                break with_context;
            }
        };
        let with_context = with_context.unwrap_or(false);
        Ok(StatementKind::Import(Box::new(Import { template, with_context, names: Imported::Names(names) })))
    }

    fn parse_set(&mut self) -> Parse<StatementKind> {
        let target = self.tuple(false, &[], true)?;
        self.check_target(&target)?;
        if self.open.iter().any(|(tag, _)| *tag == "for") {
            self.check_loop_target(&target)?;
        }
        if self.skip_operator(Op::Assign) {
            return Ok(StatementKind::Set(Box::new((target, self.tuple(true, &[], false)?))));
        }
        let filter = if self.skip_operator(Op::Pipe) { Some(self.filter_chain(None)?) } else { None };
        let (statements, _) = self.body("set", &["endset"])?;
        Ok(StatementKind::SetBlock(Box::new(SetBlock { target, filter, body: body(statements) })))
    }

    /// Filters of a block, the first of which has no value.
    fn filter_chain(&mut self, value: Option<Expr>) -> Parse<Expr> {
        let mut filter = self.filter(value)?;
        while self.skip_operator(Op::Pipe) {
            filter = self.filter(Some(filter))?;
            self.check_height(&filter)?;
        }
        Ok(filter)
    }

    fn parse_with(&mut self) -> Parse<StatementKind> {
        let mut pairs = Vec::new();
        while self.token().kind != Kind::BlockEnd {
            if !pairs.is_empty() {
                self.expect_operator(Op::Comma)?;
            }
            let target = self.plain_target()?;
            self.expect_operator(Op::Assign)?;
            pairs.push((target, self.expression()?));
        }
        let (statements, _) = self.body("with", &["endwith"])?;
        Ok(StatementKind::With(Box::new(With { pairs, body: body(statements) })))
    }

    fn plain_target(&mut self) -> Parse<Expr> {
        let target = self.plain_targets()?;
        self.check_target(&target)?;
        Ok(target)
    }
}
