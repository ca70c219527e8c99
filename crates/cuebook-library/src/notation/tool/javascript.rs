//! Constants of JavaScript and TypeScript: `export const __version__ = "1.0.0";` at the top level of a file.
//!
//! This is no parser. It walks over the file, knows what is a string, a comment, a regular expression or a bracket, and
//! looks at declarations that stand outside of all brackets. Only names that mean something to us are read.

use std::sync::Arc;

use super::literal::{NoLiteral, Scanner};
use super::{Constant, Constants, known_in_code};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

/// The constants of a file. With `asked`, one that is not a literal is an error; otherwise it is left out.
pub(super) fn constants(source: &Arc<Source>, asked: bool) -> Result<Constants> {
    let text = source.text();
    let mut found = Constants::new();
    let mut scanner = Scanner::new(text, 0);
    if text.starts_with("#!") {
        scanner.at = text.find('\n').unwrap_or(text.len());
    }
    let mut depth = 0_usize;
    // What was seen last decides whether a `/` divides or begins a regular expression.
    let mut before = Before::Operator;
    loop {
        scanner.skip_space();
        let Some(c) = scanner.peek() else { return Ok(found) };
        match c {
            '"' | '\'' => {
                // A string that is never closed is the interpreter's to complain about: here it is one character.
                if scanner.string(c).is_err() {
                    scanner.at = (scanner.at + 1).min(text.len());
                }
                before = Before::Value;
            }
            '`' => {
                skip_template(&mut scanner, 0);
                before = Before::Value;
            }
            '{' | '(' | '[' => {
                depth += 1;
                scanner.at += 1;
                before = Before::Operator;
            }
            '}' | ')' | ']' => {
                depth = depth.saturating_sub(1);
                scanner.at += 1;
                before = if c == '}' { Before::Operator } else { Before::Value };
            }
            '/' if before == Before::Operator => skip_expression(&mut scanner),
            c if c.is_alphanumeric() || c == '_' || c == '$' => {
                let word = scanner.word();
                if depth == 0 && matches!(word, "const" | "let" | "var") {
                    declaration(source, &mut scanner, asked, &mut found)?;
                }
                let operator = matches!(word, "return" | "typeof" | "case" | "in" | "of" | "void" | "delete");
                before = if operator { Before::Operator } else { Before::Value };
            }
            c => {
                scanner.at += c.len_utf8();
                before = Before::Operator;
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Before {
    Value,
    Operator,
}

/// Reads `NAME = literal` if the name means something. What else there is, the walk goes over.
fn declaration(
    source: &Arc<Source>,
    scanner: &mut Scanner<'_>,
    asked: bool,
    found: &mut Constants,
) -> Result<()> {
    scanner.skip_space();
    let name = scanner.word();
    let is_dunder = name.len() > 4 && name.starts_with("__") && name.ends_with("__");
    if !is_dunder && !known_in_code(name) {
        return Ok(());
    }
    scanner.skip_space();
    if scanner.peek() == Some(':') {
        // The type of TypeScript reaches to the equals sign.
        let line = scanner.rest().split('\n').next().unwrap_or_default();
        scanner.at += line.find('=').unwrap_or(line.len());
    }
    if !scanner.take("=") {
        return Ok(());
    }
    scanner.skip_space();
    let start = scanner.at;
    let value = scanner.value(0).and_then(|value| ended(scanner).map(|()| value));
    match value {
        Ok(value) => {
            let place = source.place(start..start + source.text()[start..scanner.at].trim_end().len());
            found.insert(name.to_owned(), Constant { value, place });
        }
        Err(NoLiteral { at, why }) if asked && known_in_code(name) => {
            let width = source.text()[at..].chars().next().map_or(0, char::len_utf8);
            let diagnostic = Diagnostic::new(Code::BadTool, format!("`{name}` must be a literal"))
                .at(source.place(at..at + width))
                .label(why)
                .hint("Cuebook reads a tool's metadata without running the file: write a literal");
            return Err(Error::new(ErrorKind::PromptRead, diagnostic));
        }
        Err(_) => scanner.at = start,
    }
    Ok(())
}

/// Whether the value ends where it was read to, instead of going on with an operator.
fn ended(scanner: &mut Scanner<'_>) -> Result<(), NoLiteral> {
    let end = scanner.at;
    let rest = scanner.rest();
    let same_line = rest.split('\n').next().unwrap_or_default().trim_start();
    for suffix in ["as const", "satisfies "] {
        if same_line.starts_with(suffix) {
            return Ok(());
        }
    }
    scanner.skip_space();
    let next = scanner.peek();
    let at = scanner.at;
    scanner.at = end;
    match next {
        Some('+' | '-' | '*' | '/' | '%' | '?' | '.' | '&' | '|' | '[' | '(' | '<' | '>' | '=') => {
            Err(NoLiteral { at, why: "known only when the file runs" })
        }
        _ => Ok(()),
    }
}

/// Goes over a template with everything that it computes.
fn skip_template(scanner: &mut Scanner<'_>, depth: usize) {
    scanner.at += 1;
    while let Some(c) = scanner.peek() {
        scanner.at += c.len_utf8();
        match c {
            '`' => return,
            '\\' => scanner.at += scanner.peek().map_or(0, char::len_utf8),
            '$' if scanner.take("{") => {
                let mut open = 1;
                while let Some(c) = scanner.peek() {
                    match c {
                        '`' if depth < 32 => {
                            skip_template(scanner, depth + 1);
                            continue;
                        }
                        '"' | '\'' if scanner.string(c).is_ok() => continue,
                        '{' => open += 1,
                        '}' => open -= 1,
                        _ => {}
                    }
                    scanner.at += c.len_utf8();
                    if open == 0 {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
}

/// Goes over a regular expression, which ends in its line.
fn skip_expression(scanner: &mut Scanner<'_>) {
    scanner.at += 1;
    let mut in_class = false;
    while let Some(c) = scanner.peek() {
        if c == '\n' {
            return;
        }
        scanner.at += c.len_utf8();
        match c {
            '\\' => scanner.at += scanner.peek().filter(|c| *c != '\n').map_or(0, char::len_utf8),
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => return,
            _ => {}
        }
    }
}
