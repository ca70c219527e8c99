//! Reads Python with ruff's parser.

use std::ops::Range;
use std::sync::Arc;

use ruff_python_ast::token::{Token, TokenKind};
use ruff_python_ast::{Expr, ModModule, PythonVersion, Stmt};
use ruff_python_parser::{Mode, ParseOptions, Parsed, parse_unchecked};
use ruff_text_size::Ranged;

use super::bindings::Bindings;
use super::literal::{Literal, LiteralValue};
use super::{Module, depth, read};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

/// The newest Python whose syntax is accepted. What an older interpreter makes of it is seen when a hook runs there.
const NEWEST: PythonVersion = PythonVersion::PY314;

/// Reads a module.
pub(super) fn module(source: &Arc<Source>) -> Result<Module> {
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
    match (&*first.value, read::read(&first.value, text)) {
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
