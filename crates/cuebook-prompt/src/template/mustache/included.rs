//! Writes what other engines render, as in `{{> prompt:greet}}`.
//!
//! Such an included prompt sees the scope of the render, and above it the values that the sections around the tag went into.

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value as Json;

use super::run::{Run, Stop};
use super::tree::{Partial, Slice};
use crate::error::{Code, Diagnostic, ErrorKind};
use crate::template::engine::{Compiled, Output};
use crate::template::jinja::included_prompts;
use crate::template::sink::Writer;

impl<'p> Run<'p> {
    /// Writes what another engine renders.
    pub(super) fn included(
        &mut self,
        unit: u32,
        partial: &'p Partial,
        included: &Arc<dyn Compiled>,
    ) -> Result<(), Stop> {
        let place = self.place(unit, partial.tag);
        let Some((scope, limit)) = self.lender else {
            let message = "a prompt cannot be included here";
            return Err(
                self.failed(ErrorKind::PromptRender, Diagnostic::new(Code::RenderFailed, message).at(place))
            );
        };
        let outline = included.outline();
        let mut set_names: Vec<(String, Option<Json>)> = Vec::new();
        for read in outline.names().iter().flat_map(|names| &names.reads) {
            // What the scope itself has needs no lending.
            let inside = self.frames.iter().skip(1).rev().map(|frame| frame.part(&read.root));
            if let Some(value) = inside.into_iter().find(|value| !value.is_undefined())
                && set_names.iter().all(|(name, _)| *name != read.root)
            {
                set_names.push((read.root.clone(), value.json().map(Cow::into_owned)));
            }
        }
        let names: Vec<String> = set_names.iter().map(|(name, _)| name.clone()).collect();
        let with_set_values = (!set_names.is_empty()).then(|| scope.with_set_values(set_names));
        let rendered = included_prompts::inside(&**included, &place, || {
            included.render(with_set_values.as_ref().unwrap_or(scope), limit)
        });
        let output = rendered.map_err(|error| error.map(|reported| reported.included(&place)))?;
        let entered = &self.program.entered;
        let output = included_prompts::widened(output, |paths| {
            let is_lent =
                |path: &&String| names.iter().any(|name| path.split(['.', '[']).next() == Some(name));
            // What was lent is a part of what some section went into, and of nothing else.
            let mut shown: Vec<String> = paths.iter().filter(|path| !is_lent(path)).cloned().collect();
            if shown.len() < paths.len() {
                let more: Vec<String> =
                    entered.iter().filter(|known| !shown.contains(known)).cloned().collect();
                shown.extend(more);
            }
            shown
        });
        match partial.indent {
            Some(indent) => self.on_lines(unit, partial, indent, &output),
            None => Ok(self.merged_units.write(self.sink, &output, 0..output.text.len(), None)?),
        }
    }

    /// Writes what stands on a line of its own: white space goes before each of its lines, as it does for a partial of the same
    /// notation, and the last one ends where that line does. What shows nothing has no line.
    fn on_lines(
        &mut self,
        unit: u32,
        partial: &'p Partial,
        indent: Slice,
        output: &Output,
    ) -> Result<(), Stop> {
        if output.text.is_empty() {
            return Ok(self.merged_units.write(self.sink, output, 0..0, None)?);
        }
        let around = self.indent.len();
        if !indent.is_empty() {
            self.indent.push((unit, indent));
        }
        let mut written = 0;
        for start in line_starts(output) {
            if start > 0 {
                self.merged_units.write(self.sink, output, written..start, None)?;
            }
            self.line_start()?;
            written = start;
        }
        self.merged_units.write(self.sink, output, written..output.text.len(), None)?;
        self.indent.truncate(around);
        let behind = &self.program.source(unit).text()[partial.tag.end as usize..];
        if let Some(end) = behind.find('\n').filter(|_| !self.sink.ends_with(b'\n')) {
            self.sink.literal(unit, partial.tag.end + end as u32, b"\n")?;
        }
        Ok(())
    }
}

/// Where the lines of a text begin that authors have written. A line break in a value begins none, and a line without anything in it
/// is left out.
fn line_starts(output: &Output) -> Vec<usize> {
    let pieces = &output.pieces;
    let is_value = |index: usize| matches!(pieces[index].writer, Writer::Value { .. } | Writer::Hook { .. });
    let mut starts = Vec::new();
    // `index` is the piece that stands there.
    let mut add = |start: usize, index: usize| {
        let behind = &output.text[start..];
        let is_blank = behind.starts_with('\n') || behind.starts_with("\r\n");
        if index < pieces.len() && !behind.is_empty() && (!is_blank || is_value(index)) {
            starts.push(start);
        }
    };
    add(0, 0);
    for index in (0..pieces.len()).filter(|index| !is_value(*index)) {
        let begin = pieces[index].start as usize;
        let end = pieces.get(index + 1).map_or(output.text.len(), |next| next.start as usize);
        for (at, _) in output.text[begin..end].match_indices('\n') {
            let start = begin + at + 1;
            add(start, if start < end { index } else { index + 1 });
        }
    }
    starts
}
