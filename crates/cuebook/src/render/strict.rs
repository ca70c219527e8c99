//! Strict inputs: values that look like role markers are refused, though they could do no harm.
//!
//! A value is looked for wherever it can have come through: filters, loops, operators. What a loop wrote letter by letter is
//! put together before it is looked at.

use std::collections::HashMap;

use super::Rendered;
use crate::chat::Marker;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::template::engine::Output;
use crate::template::sink::{Piece, Writer};
use crate::template::unit::{Emission, Unit, Units};

impl Rendered {
    /// Whether a strict input can show in what an emission wrote.
    pub(super) fn is_strict(&self, emission: &Emission) -> bool {
        let is_strict = |root: &str| {
            let variable = self.prompt().variable(root);
            variable.is_some_and(|variable| variable.strict && variable.rich.is_none())
        };
        emission.paths.iter().any(|path| match path.as_str() {
            "." => self.strict_inputs().next().is_some(),
            path => path.split(['.', '[']).next().is_some_and(is_strict),
        })
    }

    fn strict_inputs(&self) -> impl Iterator<Item = &str> {
        let strict =
            self.prompt().variables.iter().filter(|variable| variable.strict && variable.rich.is_none());
        strict.map(|variable| variable.name.as_str())
    }

    /// Refuses the text if the value of a strict input looks like a role marker in it.
    pub(crate) fn refuse_forgeries(&self) -> Result<()> {
        let strict: Vec<&str> = self.strict_inputs().collect();
        refuse(self.text(), self.pieces(), self.units(), &strict)
    }
}

/// Refuses a text if the value of one of these inputs looks like a role marker in it.
pub(crate) fn refuse_forgeries(output: &Output, strict: &[&str]) -> Result<()> {
    refuse(&output.text, &output.pieces, &output.units, strict)
}

fn refuse(text: &str, pieces: &[Piece], units: &Units, strict: &[&str]) -> Result<()> {
    if strict.is_empty() {
        return Ok(());
    }
    let order: HashMap<&str, usize> = strict.iter().enumerate().map(|(index, name)| (*name, index)).collect();
    // The first of the strict inputs that can show in an emission.
    let shown_in = |emission: &Emission| {
        let roots = emission.paths.iter().filter_map(|path| path.split(['.', '[']).next());
        match emission.paths.iter().any(|path| path == ".") {
            true => strict.first().copied(),
            false => roots.filter_map(|root| order.get(root)).min().map(|index| strict[*index]),
        }
    };
    // Neighbouring emissions of strict inputs: where the row begins, and what shows there.
    let mut row: Option<(usize, ShownInput<'_>)> = None;
    let ends = pieces.iter().map(|piece| piece.start as usize).skip(1).chain([text.len()]);
    for (piece, end) in pieces.iter().zip(ends) {
        let range = piece.start as usize..end;
        let shown = match piece.writer {
            Writer::Value { unit, offset } => units.get(unit).0.emission(offset).and_then(|emission| {
                let name = shown_in(emission)?;
                Some(ShownInput { name, unit: units.get(unit).0, emission })
            }),
            _ => None,
        };
        match (shown, row) {
            (Some(shown), before) => {
                refuse_forgery(&text[range.clone()], shown)?;
                row = before.or(Some((range.start, shown)));
            }
            // A row is looked at once, when it ends, so that long rows take no longer than they are.
            (None, Some((start, shown))) => {
                refuse_forgery(&text[start..range.start], shown)?;
                row = None;
            }
            (None, None) => {}
        }
    }
    match row {
        Some((start, shown)) => refuse_forgery(&text[start..], shown),
        None => Ok(()),
    }
}

fn refuse_forgery(text: &str, shown: ShownInput<'_>) -> Result<()> {
    if !Marker::is_forged_in(text) {
        return Ok(());
    }
    let name = shown.name;
    let message = format!("the value of the strict input `{name}` looks like a role marker");
    let diagnostic = Diagnostic::new(Code::StrictViolation, message)
        .at(shown.unit.source().place(shown.emission.range.clone()))
        .label("printed here")
        .hint(
            "treat it as an attack; if such values are expected, remove `strict: true`: even then they \
             cannot begin a message",
        );
    Err(Error::new(ErrorKind::StrictViolation, diagnostic).with("input", name))
}

/// A strict input where it shows.
#[derive(Clone, Copy)]
struct ShownInput<'e> {
    name: &'e str,
    unit: &'e Unit,
    emission: &'e Emission,
}
