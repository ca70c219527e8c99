//! Refuses, before it is parsed, what is nested so deeply that its tree could not be walked or dropped.
//!
//! The parser grows its stack as it needs to, but the tree that it returns is dropped by recursion, so 100,000 brackets in
//! a file would end the process. The estimate here is made from the tokens alone and never lies below the true depth.

use std::ops::Range;

use ruff_python_ast::token::TokenKind;
use ruff_python_parser::{Mode, lexer};

/// The limit on brackets inside each other. Python's own is 200; but values travel as JSON, and its readers stop at 128.
const BRACKETS: usize = 100;
/// Python's own limit on blocks inside each other.
const BLOCKS: usize = 100;
/// The limit on operators, calls, attributes and the like that build on each other without a comma between them.
const OPERATORS: usize = 500;

/// What is nested too deeply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TooDeep {
    Brackets,
    Blocks,
    Operators,
}

impl TooDeep {
    pub(super) fn describe(self) -> String {
        match self {
            TooDeep::Brackets => format!("brackets are nested more than {BRACKETS} deep"),
            TooDeep::Blocks => format!("blocks are nested more than {BLOCKS} deep"),
            TooDeep::Operators => format!("more than {OPERATORS} operators build on each other"),
        }
    }
}

/// Whether a text is nested too deeply, and where it begins to be.
pub(super) fn too_deep(text: &str) -> Option<(TooDeep, Range<usize>)> {
    let what = scan(text)?;
    // The lexer tells no positions, but whichever token is one too many, the text is too deep from its end on.
    let (mut fits, mut exceeds) = (0, text.len());
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        match text.is_char_boundary(middle).then(|| scan(&text[..middle])) {
            Some(Some(_)) => exceeds = middle,
            Some(None) => fits = middle,
            // Inside a character nothing can be cut; its first byte is decided with the byte before.
            None => fits = middle,
        }
    }
    Some((what, fits..exceeds))
}

/// One open bracket, or the statement around all of them.
struct Level {
    closer: Option<TokenKind>,
    /// Tokens that can each have made the tree one deeper since the last comma.
    operators: usize,
    /// Lambdas whose parameters are not over: a comma between those ends nothing.
    lambdas: usize,
}

impl Level {
    fn new(closer: Option<TokenKind>) -> Level {
        Level { closer, operators: 0, lambdas: 0 }
    }
}

fn scan(text: &str) -> Option<TooDeep> {
    let mut lexer = lexer::lex(text, Mode::Module);
    let mut levels = vec![Level::new(None)];
    let mut blocks: usize = 0;
    // The sum over all levels, kept along the way so that a scan stays linear.
    let mut operators = 0;
    loop {
        let kind = lexer.next_token();
        let closer = match kind {
            TokenKind::Lpar => Some(TokenKind::Rpar),
            TokenKind::Lsqb => Some(TokenKind::Rsqb),
            TokenKind::Lbrace => Some(TokenKind::Rbrace),
            _ => None,
        };
        let innermost = levels.len() - 1;
        let level = &mut levels[innermost];
        match kind {
            TokenKind::EndOfFile => return None,
            TokenKind::Indent => blocks += 1,
            TokenKind::Dedent => blocks = blocks.saturating_sub(1),
            TokenKind::Newline => {
                levels.truncate(1);
                levels[0] = Level::new(None);
                operators = 0;
            }
            // Inside brackets a comma ends an element. Outside, statements have commas of their own.
            TokenKind::Comma => {
                if innermost > 0 && level.lambdas == 0 {
                    operators -= level.operators;
                    level.operators = 0;
                }
            }
            // A closing bracket that does not match closes nothing: the parser may well skip it.
            _ if level.closer == Some(kind) => {
                operators -= level.operators;
                levels.pop();
            }
            TokenKind::Name
            | TokenKind::Int
            | TokenKind::Float
            | TokenKind::Complex
            | TokenKind::String
            | TokenKind::Comment
            | TokenKind::NonLogicalNewline => {}
            _ => {
                match kind {
                    TokenKind::Lambda => level.lambdas += 1,
                    TokenKind::Colon => level.lambdas = level.lambdas.saturating_sub(1),
                    _ => {}
                }
                level.operators += 1;
                operators += 1;
                if closer.is_some() {
                    levels.push(Level::new(closer));
                }
            }
        }
        if levels.len() > BRACKETS + 1 {
            return Some(TooDeep::Brackets);
        }
        if blocks > BLOCKS {
            return Some(TooDeep::Blocks);
        }
        if operators > OPERATORS {
            return Some(TooDeep::Operators);
        }
    }
}
