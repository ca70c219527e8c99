//! Makes a tree of tokens. The grammar is Jinja2's.
//!
//! After an error the parser goes on behind the tag, so one pass reports every error and still gives a tree.

mod expressions;
mod statements;

use std::collections::HashSet;

use crate::ast::{Block, Expr, Macro, Statement, StatementKind, Tree};
use crate::error::{Error, ErrorKind, Exceeded};
use crate::lexer::{self, Kind, Op, Range, Token, Tokens, Whitespace};
use crate::stack::{self, Stack};

/// How deeply expressions and blocks may nest.
const DEPTH: usize = 100;

/// How many expressions may be inside of each other, chains of filters and operators included.
const HEIGHT: u16 = 300;

/// A tree, and every error that was found on the way.
pub(crate) struct Parsed {
    pub tree: Tree,
    pub errors: Vec<Error>,
    /// Which of the names of [`SPECIAL`] the template mentions, a bit for each.
    pub special: u8,
}

/// Names that mean something in some places although nothing assigns them.
pub(crate) const SPECIAL: [&str; 6] = ["self", "super", "loop", "caller", "kwargs", "varargs"];

/// What a template may be written in.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Grammar<'t> {
    pub whitespace: Whitespace,
    /// Whether the tag `generation` exists, which chat templates have.
    pub generation: bool,
    /// Whether `null` is a literal.
    pub null: bool,
    /// Filters that can be block tags.
    pub tags: &'t [&'t str],
}

pub(crate) fn parse(text: &str, grammar: Grammar<'_>) -> Parsed {
    let mut parser = Parser {
        text,
        tokens: lexer::tokens(text, grammar.whitespace),
        at: 0,
        grammar,
        depth: 0,
        stack: Stack::here(),
        open: Vec::new(),
        tag: Range::default(),
        broken: Vec::new(),
        salvaged: Vec::new(),
        unclosed: false,
        errors: Vec::new(),
        macros: Vec::new(),
        blocks: Vec::new(),
        block_names: HashSet::new(),
        extends: false,
        special: 0,
    };
    let statements = parser.template();
    let mut tree =
        Tree { macros: parser.macros, blocks: parser.blocks, extends: parser.extends, ..Tree::default() };
    tree.body.statements = statements;
    Parsed { tree, errors: parser.errors, special: parser.special }
}

/// The most errors that are reported of one template.
const MAX_ERRORS: usize = 20;

/// An error that ends the current tag.
struct Failed;

type Parse<T> = Result<T, Failed>;

struct Parser<'t> {
    text: &'t str,
    tokens: Tokens,
    at: usize,
    grammar: Grammar<'t>,
    depth: usize,
    stack: Stack,
    /// The block tags that are open.
    open: Vec<(&'t str, Range)>,
    /// The beginning of the tag that is being read.
    tag: Range,
    /// End tags whose block could not be read, and which are therefore no errors.
    broken: Vec<String>,
    /// Expressions of a tag that could not be read to its end.
    salvaged: Vec<Expr>,
    /// Whether a block has no end tag.
    unclosed: bool,
    errors: Vec<Error>,
    macros: Vec<Macro>,
    blocks: Vec<Block>,
    block_names: HashSet<&'t str>,
    extends: bool,
    special: u8,
}

impl<'t> Parser<'t> {
    #[inline]
    fn token(&self) -> Token {
        // The last token is `End`, and nothing steps over it.
        self.tokens.all[self.at.min(self.tokens.all.len() - 1)]
    }

    fn next_token(&self) -> Token {
        self.tokens.all[(self.at + 1).min(self.tokens.all.len() - 1)]
    }

    fn range(&self) -> Range {
        self.token().range
    }

    fn step(&mut self) -> Range {
        let range = self.range();
        if self.at < self.tokens.all.len() - 1 {
            self.at += 1;
        }
        range
    }

    fn last_range(&self) -> Range {
        self.tokens.all[self.at.saturating_sub(1)].range
    }

    #[inline]
    fn is_operator(&self, operator: Op) -> bool {
        self.token().kind == Kind::Operator(operator)
    }

    fn name(&self) -> Option<&'t str> {
        self.name_of(self.token())
    }

    #[inline]
    fn name_of(&self, token: Token) -> Option<&'t str> {
        (token.kind == Kind::Name).then(|| token.range.of(self.text))
    }

    fn is_name(&self, name: &str) -> bool {
        self.name() == Some(name)
    }

    fn next_is_name(&self, name: &str) -> bool {
        self.name_of(self.next_token()) == Some(name)
    }

    fn skip_name(&mut self, name: &str) -> bool {
        let found = self.is_name(name);
        if found {
            self.step();
        }
        found
    }

    fn skip_operator(&mut self, operator: Op) -> bool {
        let found = self.is_operator(operator);
        if found {
            self.step();
        }
        found
    }

    fn expect_operator(&mut self, operator: Op) -> Parse<Range> {
        match self.is_operator(operator) {
            true => Ok(self.step()),
            false => self.unexpected(&format!("`{}`", operator.spelling())),
        }
    }

    fn expect_name(&mut self) -> Parse<(&'t str, Range)> {
        match self.name() {
            Some(name) => Ok((name, self.step())),
            None => self.unexpected("a name"),
        }
    }

    fn expect_keyword(&mut self, name: &str) -> Parse<()> {
        if self.skip_name(name) { Ok(()) } else { self.unexpected(&format!("`{name}`")) }
    }

    /// Keeps an error, unless there are very many: each costs time and says less than the ones before it.
    fn note(&mut self, error: Error) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        }
    }

    fn fail<T>(&mut self, range: Range, message: impl Into<String>) -> Parse<T> {
        self.note(Error::new(ErrorKind::Syntax, message).at(range));
        Err(Failed)
    }

    fn fail_with_help<T>(
        &mut self,
        range: Range,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Parse<T> {
        self.note(Error::new(ErrorKind::Syntax, message).at(range).help(help));
        Err(Failed)
    }

    fn unexpected<T>(&mut self, expected: &str) -> Parse<T> {
        let range = self.range();
        match self.token().kind {
            Kind::Error(at) => {
                let message = std::mem::take(&mut self.tokens.messages[at as usize]);
                self.fail(range, message)
            }
            _ => {
                let found = self.describe();
                self.fail(range, format!("expected {expected}, got {found}"))
            }
        }
    }

    fn describe(&self) -> String {
        let token = self.token();
        match token.kind {
            Kind::End => "the end of the template".to_owned(),
            Kind::BlockEnd | Kind::VariableEnd => "the end of the tag".to_owned(),
            Kind::BlockBegin | Kind::VariableBegin | Kind::Data => "text".to_owned(),
            _ => format!("`{}`", token.range.of(self.text)),
        }
    }

    fn deeper<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parse<T>) -> Parse<T> {
        if self.depth >= DEPTH || self.stack.used() > stack::MAX {
            let range = self.range();
            let error = Error::limit(Exceeded::Depth, "expressions and blocks nest too deeply here");
            self.note(error.at(range).help("move the inner ones to a separate file, and include it"));
            return Err(Failed);
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn template(&mut self) -> Vec<Statement> {
        let mut body = Vec::new();
        loop {
            let (more, end) = self.statements_until(&[]);
            body.extend(more);
            match end {
                // An unknown end tag was reported; what follows is read as if it were not there.
                Some(_) => continue,
                None => return body,
            }
        }
    }

    /// Reads statements up to one of these tags, whose name it gives, or to the end of the template.
    fn statements_until(&mut self, ends: &[&str]) -> (Vec<Statement>, Option<&'t str>) {
        let mut body = Vec::new();
        loop {
            let start = self.range();
            match self.token().kind {
                Kind::End => return (body, None),
                Kind::Data => {
                    body.push(Statement { kind: StatementKind::Data, range: start });
                    self.step();
                }
                Kind::VariableBegin => {
                    self.step();
                    let emit = |parser: &mut Self| {
                        let value = parser.tuple(true, &[], false)?;
                        if let Kind::VariableEnd = parser.token().kind {
                            parser.step();
                            return Ok(value);
                        }
                        let failed = parser.unexpected("the end of the tag");
                        parser.salvaged.push(value);
                        failed
                    };
                    match emit(self) {
                        Ok(value) => {
                            let range = start.to(self.last_range());
                            body.push(Statement { kind: StatementKind::Emit(value), range });
                        }
                        Err(Failed) => {
                            self.recover();
                            self.salvage(start, &mut body);
                        }
                    }
                }
                Kind::BlockBegin => {
                    if let Some(name) = self.name_of(self.next_token())
                        && ends.contains(&name)
                    {
                        self.step();
                        self.step();
                        return (body, Some(name));
                    }
                    self.step();
                    self.block_tag(start, &mut body);
                }
                Kind::Error(at) => {
                    let message = std::mem::take(&mut self.tokens.messages[at as usize]);
                    self.note(Error::new(ErrorKind::Syntax, message).at(start));
                    self.step();
                }
                _ => {
                    self.step();
                }
            }
        }
    }

    fn block_tag(&mut self, start: Range, body: &mut Vec<Statement>) {
        let tag = self.name().unwrap_or_default();
        let open = self.open.len();
        self.tag = start;
        let depth = self.depth;
        let result = self.deeper(|parser| {
            parser.statement(start, body)?;
            match parser.token().kind {
                Kind::BlockEnd => parser.step(),
                Kind::End if parser.unclosed => return Ok(()),
                _ => return parser.unexpected("the end of the tag"),
            };
            Ok(())
        });
        if result.is_err() {
            self.depth = depth;
            let has_body = statements::has_body(tag) || self.grammar.tags.contains(&tag);
            if self.open.len() == open && has_body {
                self.broken.push(format!("end{tag}"));
            }
            self.open.truncate(open);
            self.recover();
            self.salvage(start, body);
        }
    }

    /// Keeps the expressions that were read before an error, so that the tree still knows what a tag uses.
    fn salvage(&mut self, start: Range, body: &mut Vec<Statement>) {
        let range = start.to(self.last_range());
        let kept =
            self.salvaged.drain(..).map(|value| Statement { kind: StatementKind::Broken(value), range });
        body.extend(kept);
    }

    /// Puts a value aside if what follows it cannot be read.
    fn kept<T>(&mut self, result: Parse<T>, value: Expr) -> Parse<(Expr, T)> {
        match result {
            Ok(found) => Ok((value, found)),
            Err(Failed) => {
                self.salvaged.push(value);
                Err(Failed)
            }
        }
    }

    /// Goes on behind the tag that could not be read.
    fn recover(&mut self) {
        while !matches!(
            self.token().kind,
            Kind::End
                | Kind::BlockEnd
                | Kind::VariableEnd
                | Kind::BlockBegin
                | Kind::VariableBegin
                | Kind::Data
        ) {
            self.step();
        }
        if matches!(self.token().kind, Kind::BlockEnd | Kind::VariableEnd) {
            self.step();
        }
    }
}
