//! A Python file, as far as it can be known without running it.
//!
//! [`Module::parse`] reads a whole file and notes what each name at module level stands for. A name that was assigned a
//! literal has its value; a name that anything else can touch (a condition, an import, a later change) has the reason why
//! its value is unknown, and asking for it gives that reason as an error. Nothing is ever guessed or passed over.
//!
//! This module must not execute Python, look at other files, or know what the names mean: what a `METADATA` has to look
//! like is for the dialects that ask for it.
//!
//! What no reading can see, and this one does not try to: code that changes a definition through another name, through
//! `globals()`, or inside a function that is called while the module loads.

mod bindings;
mod depth;
mod fault;
mod literal;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use ruff_python_ast::token::{Token, TokenKind};
use ruff_python_ast::{Expr, ModModule, PythonVersion, Stmt};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::Ranged;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;
use bindings::{Binding, Bindings};
use fault::{Fault, Why};
pub use literal::{Entry, Literal, LiteralValue};

/// The newest Python whose syntax is accepted. What an older interpreter makes of it is seen when a hook runs there.
const NEWEST: PythonVersion = PythonVersion::PY314;

/// A Python module as far as it can be known without running it.
#[derive(Debug)]
pub struct Module {
    source: Arc<Source>,
    docstring: Option<String>,
    functions: Vec<Function>,
    names: IndexMap<String, Binding>,
    star_import: Option<Range<usize>>,
}

/// A function that a module defines at its top level, perhaps under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it is an `async def`.
    pub is_async: bool,
    /// The names of its parameters in order; `*args` and `**kwargs` keep their stars.
    pub parameters: Vec<String>,
    /// How many values it can be called with, by position: at least, and at most unless it takes any number. `None` if it
    /// cannot be called so, because a parameter has to be given by name.
    pub positional: Option<(usize, Option<usize>)>,
    /// Where `def name` stands.
    pub range: Range<usize>,
}

impl Function {
    /// Whether it can be called with so many values.
    pub fn takes(&self, count: usize) -> bool {
        self.positional.is_some_and(|(least, most)| count >= least && most.is_none_or(|most| count <= most))
    }
}

impl Module {
    /// Reads a module.
    ///
    /// # Errors
    ///
    /// [`Code::PythonSyntax`] if it is not valid Python, or nested so deeply that Python would refuse it as well.
    pub fn parse(source: &Arc<Source>) -> Result<Module> {
        let text = source.text();
        check_size(source)?;
        check_encoding(source)?;
        if let Some(at) = text.find('\0') {
            let hint = "write \\0 inside a string instead".to_owned();
            return Err(syntax_error(source, at..at + 1, "a NUL byte".into(), hint));
        }
        if let Some((what, range)) = depth::too_deep(text) {
            let hint = "split the value into several names, or move it into a data file";
            return Err(syntax_error(source, range, what.describe(), hint.into()));
        }
        let parsed = parse(source)?;
        let bindings = Bindings::collect(&parsed.syntax().body, text);
        if let Some((range, reason)) = bindings.misplaced {
            return Err(syntax_error(source, range, reason.into(), python_says(source)));
        }
        Ok(Module {
            source: source.clone(),
            docstring: docstring(&parsed.syntax().body, text),
            functions: bindings.functions,
            names: bindings.names,
            star_import: bindings.star_import,
        })
    }

    /// The text that it was read from.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The string that the module begins with, as it is written, indentation and all.
    pub fn docstring(&self) -> Option<&str> {
        self.docstring.as_deref()
    }

    /// All functions at module level, in the order of the file; a name that is defined twice is there twice.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The names that are bound when the module has been loaded, in the order of their first appearance.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|(_, binding)| binding.bound).map(|(name, _)| name.as_str())
    }

    /// The value of a name; `None` if nothing in the module assigns it.
    ///
    /// # Errors
    ///
    /// [`Code::NotLiteral`] if the name is bound to something that only running the module can tell, and
    /// [`Code::BadDefinition`] if the value is written out but cannot be carried faithfully: a key that is there twice
    /// or is not a string, a number that is too large, a lone surrogate.
    pub fn literal(&self, name: &str) -> Result<Option<&Literal>> {
        match (self.names.get(name), &self.star_import) {
            (Some(Binding { value: Ok(literal), .. }), _) => Ok(Some(literal)),
            (Some(Binding { value: Err(fault), .. }), _) => Err(fault.to_error(name, &self.source)),
            (None, Some(range)) => {
                Err(Fault::new(Why::StarImport, range.clone()).to_error(name, &self.source))
            }
            (None, None) => Ok(None),
        }
    }

    /// The names that are given a value by `name = value` and nothing more, with those of the values that are written out.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &Literal)> {
        let plain = self.names.iter().filter(|(_, binding)| binding.bound && binding.plain);
        plain.filter_map(|(name, binding)| Some((name.as_str(), binding.value.as_ref().ok()?)))
    }

    /// The function that a name stands for, if a `def` is the last thing that binds it.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let binding = self.names.get(name).filter(|binding| binding.bound)?;
        binding.function.map(|index| &self.functions[index])
    }

    /// Where a name is bound at module level, in whatever way: `def`, `class`, an import, any kind of assignment.
    ///
    /// The last place wins. `from x import *` binds no name that could be told; see [`Module::star_import`].
    pub fn defines(&self, name: &str) -> Option<Range<usize>> {
        self.names.get(name).filter(|binding| binding.bound).map(|binding| binding.range.clone())
    }

    /// Where the module imports every name of another, and so may bind any name at all.
    pub fn star_import(&self) -> Option<Range<usize>> {
        self.star_import.clone()
    }
}

fn parse(source: &Arc<Source>) -> Result<Parsed<ModModule>> {
    let options = ParseOptions::from(Mode::Module).with_target_version(NEWEST);
    let Some(parsed) = parse_unchecked(source.text(), options).try_into_module() else {
        unreachable!("the parser gives a module when it is asked for one");
    };
    if let Some(error) = parsed.errors().first() {
        // Behind a bracket that is never closed, every further complaint is about a line that is right.
        // What is not understood at the very end is only that the text ends there.
        let end = source.text().len();
        let unknown =
            |token: &Token| token.kind() == TokenKind::Unknown && token.range().to_std_range().start < end;
        let lexed = !parsed.tokens().iter().any(unknown);
        if let Some(bracket) = unmatched_bracket(parsed.tokens()).filter(|_| lexed) {
            let range = bracket.range().to_std_range();
            let text = &source.text()[range.clone()];
            let (reason, hint) = match bracket.kind() {
                TokenKind::Rpar | TokenKind::Rsqb | TokenKind::Rbrace => {
                    (format!("`{text}` has no opening bracket"), "remove it, or add the opening bracket")
                }
                _ => (format!("`{text}` is not closed"), "add the closing bracket"),
            };
            return Err(syntax_error(source, range, reason, hint.into()));
        }
        let range = error.location.to_std_range();
        let hint = python_2_hint(source.text(), &range).unwrap_or_else(|| python_says(source));
        return Err(syntax_error(source, range, lower_first(&error.error.to_string()), hint));
    }
    if let Some(error) = parsed.unsupported_syntax_errors().first() {
        let range = error.range.to_std_range();
        return Err(syntax_error(source, range, lower_first(&error.to_string()), python_says(source)));
    }
    Ok(parsed)
}

/// The first bracket that has no partner.
fn unmatched_bracket(tokens: &[Token]) -> Option<&Token> {
    let mut open: Vec<&Token> = Vec::new();
    for token in tokens {
        let opener = match token.kind() {
            TokenKind::Lpar | TokenKind::Lsqb | TokenKind::Lbrace => {
                open.push(token);
                continue;
            }
            TokenKind::Rpar => TokenKind::Lpar,
            TokenKind::Rsqb => TokenKind::Lsqb,
            TokenKind::Rbrace => TokenKind::Lbrace,
            _ => continue,
        };
        match open.pop() {
            Some(last) if last.kind() == opener => {}
            Some(last) => return Some(last),
            None => return Some(token),
        }
    }
    open.pop()
}

fn syntax_error(source: &Arc<Source>, range: Range<usize>, reason: String, hint: String) -> Error {
    let diagnostic = Diagnostic::new(Code::PythonSyntax, format!("not valid Python: {reason}"))
        .at(source.place(range))
        .label(reason)
        .hint(hint);
    Error::new(ErrorKind::PromptRead, diagnostic)
}

fn python_says(source: &Source) -> String {
    format!("check the file with Python: python3 -m py_compile {}", source.name())
}

/// The way out for the one mistake that everybody knows: a statement that Python 3 made a function.
fn python_2_hint(text: &str, range: &Range<usize>) -> Option<String> {
    let before = &text[..range.start];
    let line = before[before.rfind('\n').map_or(0, |newline| newline + 1)..].trim();
    ["print", "exec"]
        .into_iter()
        .find(|word| line == *word)
        .map(|word| format!("`{word}` is a function in Python 3: write {word}(…)"))
}

/// The parser's messages begin with a capital; ours continue a sentence.
fn lower_first(message: &str) -> String {
    let mut chars = message.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// The parser counts bytes in 32 bits.
fn check_size(source: &Arc<Source>) -> Result<()> {
    if u32::try_from(source.text().len()).is_ok() {
        return Ok(());
    }
    let message = "a Python file cannot be larger than 4 GiB";
    Err(Error::new(ErrorKind::Limit, Diagnostic::new(Code::FileTooLarge, message).file(source.name())))
}

/// Python reads a file in the encoding that one of its first two lines declares, and this reads UTF-8. Where that would
/// make a difference, the file is refused.
fn check_encoding(source: &Arc<Source>) -> Result<()> {
    let text = source.text();
    if text.is_ascii() {
        return Ok(());
    }
    let mut start = 0;
    for line in text.split('\n').take(2) {
        let code = line.trim_start_matches([' ', '\t', '\u{c}']);
        if !code.is_empty() && !code.starts_with('#') {
            break;
        }
        if let Some(encoding) = declared_encoding(line) {
            let name = line[encoding.clone()].to_ascii_lowercase().replace('_', "-");
            if !matches!(name.as_str(), "utf-8" | "utf8" | "utf-8-sig" | "u8" | "utf") {
                let reason = format!("the file declares the encoding `{}`", &line[encoding.clone()]);
                let range = start + encoding.start..start + encoding.end;
                let hint = "save the file as UTF-8, and remove the declaration";
                return Err(syntax_error(source, range, reason, hint.into()));
            }
            break;
        }
        start += line.len() + 1;
    }
    Ok(())
}

/// The encoding that a comment names, by Python's rule: `coding`, then `:` or `=`, then a name.
fn declared_encoding(comment: &str) -> Option<Range<usize>> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    comment.match_indices("coding").find_map(|(at, word)| {
        let after = at + word.len();
        let value = comment[after..].strip_prefix([':', '='])?;
        let name = value.trim_start_matches([' ', '\t']);
        let start = comment.len() - name.len();
        let length = name.find(|c| !is_name(c)).unwrap_or(name.len());
        (length > 0).then_some(start..start + length)
    })
}

/// The text without the statements that do nothing but give one of these names a value; all of it, if it is not understood.
pub fn without(source: &Arc<Source>, names: &[&str]) -> String {
    let text = source.text();
    let Ok(parsed) = parse(source) else { return text.to_owned() };
    let (mut rest, mut done) = (String::new(), 0);
    for statement in &parsed.syntax().body {
        let target = match statement {
            Stmt::Assign(assign) => match assign.targets.as_slice() {
                [Expr::Name(name)] => Some(name),
                _ => None,
            },
            Stmt::AnnAssign(assign) => assign.target.as_name_expr(),
            _ => None,
        };
        if target.is_some_and(|name| names.contains(&name.id.as_str())) {
            let range = statement.range().to_std_range();
            rest.push_str(&text[done..range.start]);
            done = range.end;
        }
    }
    rest + &text[done..]
}

fn docstring(body: &[Stmt], text: &str) -> Option<String> {
    let Some(Stmt::Expr(first)) = body.first() else { return None };
    match (&*first.value, literal::read(&first.value, text)) {
        (Expr::StringLiteral(_), Ok(Literal { value: LiteralValue::Str(value), .. })) => Some(value),
        _ => None,
    }
}

/// Where the comments of a module stand that could be read.
pub fn comments(text: &str) -> Vec<Range<usize>> {
    let options = ParseOptions::from(Mode::Module).with_target_version(NEWEST);
    let parsed = parse_unchecked(text, options);
    let comments = parsed.tokens().iter().filter(|token| token.kind() == TokenKind::Comment);
    comments.map(|token| token.range().to_std_range()).collect()
}
