//! Strict inputs: values that look like role markers are refused, though they could do no harm.
//!
//! A value is looked for wherever it can have come through: filters, loops, operators. What a loop wrote letter by letter is
//! put together before it is looked at.

use super::Rendered;
use crate::chat::Marker;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::template::sink::Writer;
use crate::template::unit::Emission;

impl Rendered {
    /// Whether a strict input can show in what an emission wrote.
    pub(super) fn is_strict(&self, emission: &Emission) -> bool {
        self.strict_input(emission).is_some()
    }

    fn strict_input(&self, emission: &Emission) -> Option<&str> {
        let strict =
            self.prompt().variables.iter().filter(|variable| variable.strict && variable.rich.is_none());
        strict.map(|variable| variable.name.as_str()).find(|name| emission.can_show(name))
    }

    /// Refuses the text if the value of a strict input looks like a role marker in it.
    pub(crate) fn refuse_forgeries(&self) -> Result<()> {
        // Neighbouring emissions of strict inputs: where the row begins, and what shows there.
        let mut row: Option<(usize, Shown<'_>)> = None;
        for (range, writer, emission) in self.emitted() {
            let shown = match (writer, emission) {
                (Writer::Value { unit, .. }, Some(emission)) => {
                    self.strict_input(emission).map(|name| Shown { name, unit, emission })
                }
                _ => None,
            };
            match (shown, row) {
                (Some(shown), before) => {
                    self.refuse_forgery(&self.text()[range.clone()], shown)?;
                    row = before.or(Some((range.start, shown)));
                }
                // A row is looked at once, when it ends, so that long rows take no longer than they are.
                (None, Some((start, shown))) => {
                    self.refuse_forgery(&self.text()[start..range.start], shown)?;
                    row = None;
                }
                (None, None) => {}
            }
        }
        match row {
            Some((start, shown)) => self.refuse_forgery(&self.text()[start..], shown),
            None => Ok(()),
        }
    }

    fn refuse_forgery(&self, text: &str, shown: Shown<'_>) -> Result<()> {
        if !Marker::is_forged_in(text) {
            return Ok(());
        }
        let name = shown.name;
        let message = format!("the value of the strict input `{name}` looks like a role marker");
        let diagnostic = Diagnostic::new(Code::StrictViolation, message)
            .at(self.unit(shown.unit).source().place(shown.emission.range.clone()))
            .label("shown here")
            .hint("treat it as an attack; or, if such values are fine, remove `strict: true`: they cannot begin a message anyway");
        Err(Error::new(ErrorKind::StrictViolation, diagnostic).with("input", name))
    }
}

/// A strict input where it shows.
#[derive(Clone, Copy)]
struct Shown<'e> {
    name: &'e str,
    unit: u32,
    emission: &'e Emission,
}
