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
        // Where the current row of strict emissions begins.
        let mut row: Option<usize> = None;
        for (range, writer, emission) in self.emitted() {
            let found = match (writer, emission) {
                (Writer::Value { unit, .. }, Some(emission)) => {
                    self.strict_input(emission).map(|name| (name, unit, emission))
                }
                _ => None,
            };
            let Some((name, unit, emission)) = found else {
                row = None;
                continue;
            };
            let start = *row.get_or_insert(range.start);
            // What stands on an earlier line of the row has been looked at.
            let start =
                self.text()[start..range.start].rfind('\n').map_or(start, |newline| start + newline + 1);
            row = Some(start);
            let alone = &self.text()[range.clone()];
            if Marker::is_forged_in(alone)
                || (start < range.start && Marker::is_forged_in(&self.text()[start..range.end]))
            {
                let message = format!("the value of the strict input `{name}` looks like a role marker");
                let diagnostic = Diagnostic::new(Code::StrictViolation, message)
                    .at(self.unit(unit).source().place(emission.range.clone()))
                    .label("shown here")
                    .hint("treat it as an attack; or, if such values are fine, remove `strict: true`: they cannot begin a message anyway");
                return Err(Error::new(ErrorKind::StrictViolation, diagnostic).with("input", name));
            }
        }
        Ok(())
    }
}
