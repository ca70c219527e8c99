//! Reads expressions of Python as literals.

use std::collections::HashMap;
use std::ops::Range;

use ruff_python_ast::{DictItem, Expr, ExprUnaryOp, Number, StringLiteral, StringLiteralValue, UnaryOp};
use ruff_text_size::Ranged;

use super::fault::{Fault, UnknownReason};
use super::literal::{Entry, Literal, LiteralValue};

/// Reads an expression as a literal, or reports the part that is not one.
pub(super) fn read(expr: &Expr, text: &str) -> Result<Literal, Fault> {
    let range = expr.range().to_std_range();
    let value = match expr {
        Expr::NoneLiteral(_) => LiteralValue::None,
        Expr::BooleanLiteral(literal) => LiteralValue::Bool(literal.value),
        Expr::NumberLiteral(literal) => number(&literal.value, false, &range)?,
        Expr::UnaryOp(unary) => signed(unary, &range)?,
        Expr::StringLiteral(literal) => LiteralValue::Str(string(&literal.value, text)?),
        Expr::List(list) => LiteralValue::List(items(&list.elts, text)?),
        Expr::Tuple(tuple) => LiteralValue::Tuple(items(&tuple.elts, text)?),
        Expr::Dict(dict) => LiteralValue::Dict(entries(&dict.items, text)?),
        _ => return Err(Fault::new(not_literal(expr), range)),
    };
    Ok(Literal { value, range })
}

fn items(exprs: &[Expr], text: &str) -> Result<Vec<Literal>, Fault> {
    // A loop and no chain of iterators: this recurses, and each adapter would cost a frame at every level.
    let mut items = Vec::with_capacity(exprs.len());
    for expr in exprs {
        items.push(read(expr, text)?);
    }
    Ok(items)
}

fn entries(items: &[DictItem], text: &str) -> Result<Vec<Entry>, Fault> {
    let mut entries = Vec::with_capacity(items.len());
    let mut seen = HashMap::with_capacity(items.len());
    for item in items {
        let (key, key_range) = key(item, &mut seen, text)?;
        entries.push(Entry { key, key_range, value: read(&item.value, text)? });
    }
    Ok(entries)
}

fn key(
    item: &DictItem,
    seen: &mut HashMap<String, Range<usize>>,
    text: &str,
) -> Result<(String, Range<usize>), Fault> {
    let Some(key) = &item.key else {
        // Only the value has a place of its own; the stars stand before it.
        let value = item.value.range().to_std_range();
        let start = text[..value.start].rfind("**").unwrap_or(value.start);
        return Err(Fault::new(UnknownReason::Unpacks, start..value.end));
    };
    let key = read(key, text)?;
    let LiteralValue::Str(name) = key.value else {
        return Err(Fault::new(UnknownReason::KeyNotString(key.type_name()), key.range));
    };
    match seen.insert(name.clone(), key.range.clone()) {
        Some(first) => Err(Fault::new(UnknownReason::DuplicateKey(name), key.range).with(first)),
        None => Ok((name, key.range)),
    }
}

/// As for Python's own reader of literals, there is one sign at most, and only before a number.
fn signed(unary: &ExprUnaryOp, range: &Range<usize>) -> Result<LiteralValue, Fault> {
    match (unary.op, &*unary.operand) {
        (UnaryOp::UAdd, Expr::NumberLiteral(literal)) => number(&literal.value, false, range),
        (UnaryOp::USub, Expr::NumberLiteral(literal)) => number(&literal.value, true, range),
        _ => Err(Fault::new(UnknownReason::Computed("an operation"), range.clone())),
    }
}

fn string(value: &StringLiteralValue, text: &str) -> Result<String, Fault> {
    for part in value {
        check_surrogates(part, text)?;
    }
    Ok(value.to_str().to_owned())
}

fn number(number: &Number, negative: bool, range: &Range<usize>) -> Result<LiteralValue, Fault> {
    match number {
        Number::Int(int) => {
            let magnitude = int.as_u64().map(i128::from).map(|value| if negative { -value } else { value });
            match magnitude.filter(|value| *value >= i128::from(i64::MIN)) {
                Some(value) => Ok(LiteralValue::Int(value)),
                None => Err(Fault::new(UnknownReason::IntegerTooLarge, range.clone())),
            }
        }
        Number::Float(value) if value.is_finite() => {
            Ok(LiteralValue::Float(if negative { -value } else { *value }))
        }
        Number::Float(_) => Err(Fault::new(UnknownReason::FloatTooLarge, range.clone())),
        Number::Complex { .. } => {
            let why = UnknownReason::Uncarriable("a complex number", "write a list of two numbers");
            Err(Fault::new(why, range.clone()))
        }
    }
}

/// Refuses `"\ud800"` and its like. Python has strings of half characters, UTF-8 and JSON have not, and the parser puts a
/// replacement character in their place without a word.
fn check_surrogates(part: &StringLiteral, text: &str) -> Result<(), Fault> {
    if part.flags.prefix().is_raw() || !part.value.contains(char::REPLACEMENT_CHARACTER) {
        return Ok(());
    }
    let whole = part.range().to_std_range();
    let bytes = &text.as_bytes()[whole.clone()];
    let mut at = 0;
    while at + 1 < bytes.len() {
        if bytes[at] != b'\\' {
            at += 1;
            continue;
        }
        let digits = match bytes[at + 1] {
            b'u' => 4,
            b'U' => 8,
            // An escaped backslash is over after two bytes, so that what follows it is text.
            _ => 0,
        };
        let end = at + 2 + digits;
        let code = bytes.get(at + 2..end).and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(0xd800..=0xdfff) = code.and_then(|hex| u32::from_str_radix(hex, 16).ok()) {
            return Err(Fault::new(UnknownReason::LoneSurrogate, whole.start + at..whole.start + end));
        }
        at += 2;
    }
    Ok(())
}

/// What a person would call an expression that is no literal.
fn not_literal(expr: &Expr) -> UnknownReason {
    UnknownReason::Computed(match expr {
        Expr::Starred(_) => return UnknownReason::Unpacks,
        Expr::Set(_) => return UnknownReason::Uncarriable("a set", "use a list: […]"),
        Expr::BytesLiteral(_) => {
            return UnknownReason::Uncarriable("bytes", "remove the `b` before the string");
        }
        Expr::EllipsisLiteral(_) => return UnknownReason::Uncarriable("`...`", "write the value, or None"),
        Expr::Call(_) => "a call",
        Expr::Name(_) => "a name",
        Expr::Attribute(_) => "an attribute",
        Expr::Subscript(_) => "a lookup",
        Expr::FString(_) => "an f-string",
        Expr::TString(_) => "a t-string",
        Expr::Lambda(_) => "a lambda",
        Expr::If(_) => "a conditional expression",
        Expr::Named(_) => "an assignment",
        Expr::ListComp(_) | Expr::SetComp(_) | Expr::DictComp(_) | Expr::Generator(_) => "a comprehension",
        _ => "an operation",
    })
}
