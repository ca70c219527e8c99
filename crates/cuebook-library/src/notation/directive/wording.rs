//! The prompt of a directive: what a model gets, with the origin of every byte.
//!
//! In this order, with an empty line between them: the instruction, the opening tag with the name and the description, the
//! preamble without headings and signature, the body, how results are returned, the closing tag. Tags and sentences are frames of the
//! engine; names, descriptions, preamble and body are the author's, and what is put into the body is a value. Nothing is escaped: what
//! an author writes is theirs to write, and what a value says is a value wherever it stands.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;

use super::surrounding_texts::{SurroundingTexts, Text};
use super::{Directive, Written, stripped};
use crate::prompt::{Returns, Wording};
use crate::source::OffsetMap;
use crate::template::engine::Output;
use crate::template::input::Values;
use crate::template::merged_units::MergedUnits;
use crate::template::python::is_space;
use crate::template::sink::{Full, Sink};
use crate::template::unit::{Emission, Frame, Unit};

/// What the engine writes, by the number of its frame.
const INSTRUCTION: u32 = 0;
const TAG: u32 = 1;
const RETURNS: u32 = 2;
const CONTEXT: u32 = 3;
const END_OF_SYSTEM: u32 = 4;

/// The name of the frame between what the system says and what the user says.
#[doc(hidden)]
pub const SYSTEM: &str = "system";

fn frames() -> Arc<[Frame]> {
    ["instruction", "directive", "returns", "context", SYSTEM]
        .map(|name| Frame { name, section: None })
        .into()
}

impl Directive {
    /// The one unit that all its texts are of: its offsets are those of the file.
    #[doc(hidden)]
    pub fn units(&self) -> Arc<Vec<Unit>> {
        let make = || {
            let mut emissions: BTreeMap<u32, Emission> = self.template.emissions().collect();
            let described =
                self.outputs.iter().flat_map(|output| [Some(&output.name), output.description.as_ref()]);
            for written in
                [self.name.as_ref(), self.description.as_ref()].into_iter().chain(described).flatten()
            {
                // What the file spells in another way, such as `&lt;`, is computed and no literal.
                for piece in written.pieces().iter().filter(|piece| !piece.is_verbatim) {
                    let emission = Emission { range: piece.source.clone(), ..Emission::default() };
                    emissions.insert(piece.source.start as u32, emission);
                }
            }
            let (marks, emissions) = emissions.into_iter().unzip();
            Arc::new(vec![Unit::new(self.source.clone(), OffsetMap::default(), marks, emissions)])
        };
        self.units.get_or_init(make).clone()
    }

    /// Writes the prompt with the texts around it, at most `limit` characters.
    #[doc(hidden)]
    pub fn write_prompt(
        &self,
        wording: &Wording,
        values: &dyn Values,
        around: &SurroundingTexts<'_>,
        limit: usize,
    ) -> Result<Output, Full> {
        let expected = self.source.text().len() + wording.instruction.len() + 256;
        let mut sink = Sink::new(limit, expected, 32);
        let merged_units = RefCell::new(MergedUnits::new(1, frames().len()));
        let write = |sink: &mut Sink, start: usize, texts: &[Text<'_>]| {
            texts.iter().try_for_each(|text| {
                part(sink, (start, CONTEXT), |sink| text.write(sink, &merged_units, limit))
            })
        };
        write(&mut sink, 0, &around.system)?;
        if !sink.is_empty() {
            sink.frame(END_OF_SYSTEM, b"\n\n")?;
        }
        let start = sink.len();
        write(&mut sink, start, &around.before)?;
        self.write_own(&mut sink, start, &merged_units, wording, values, limit)?;
        write(&mut sink, start, &around.after)?;
        let (text, pieces) = sink.finish();
        Ok(Output { text, pieces, units: merged_units.into_inner().finish(self.units(), frames()) })
    }

    /// Writes what the directive itself says.
    fn write_own(
        &self,
        sink: &mut Sink,
        start: usize,
        merged_units: &RefCell<MergedUnits>,
        wording: &Wording,
        values: &dyn Values,
        limit: usize,
    ) -> Result<(), Full> {
        part(sink, (start, CONTEXT), |sink| sink.frame(INSTRUCTION, wording.instruction.as_bytes()))?;
        let start = (start, TAG);
        let name = self.name.as_ref().filter(|name| !name.is_empty());
        let description = self.description.as_ref().filter(|description| !description.is_empty());
        if name.is_some() || description.is_some() {
            part(sink, start, |sink| opening(sink, name, description))?;
        }
        part(sink, start, |sink| {
            self.cleaned_preamble().into_iter().try_for_each(|range| {
                sink.literal(0, range.start as u32, self.source.text()[range].as_bytes())
            })
        })?;
        part(sink, start, |sink| self.write_body(sink, merged_units, values, limit, true))?;
        part(sink, start, |sink| match wording.returns {
            Returns::Call => self.call(sink),
            Returns::Block => self.block(sink),
        })?;
        if name.is_some() || description.is_some() {
            part(sink, start, |sink| sink.frame(TAG, b"</directive>"))?;
        }
        Ok(())
    }

    /// What a model is shown of the preamble.
    pub fn shown_preamble(&self) -> String {
        let shown = self.cleaned_preamble().into_iter().map(|range| &self.source.text()[range]);
        shown.collect()
    }

    /// The lines of the preamble that a model is shown: no headings of the first level, and no signature.
    fn cleaned_preamble(&self) -> Vec<Range<usize>> {
        let text = self.source.text();
        let range = stripped(text, self.preamble.clone());
        let mut pieces: Vec<Range<usize>> = Vec::new();
        let mut at = range.start;
        for line in text[range].split_inclusive('\n') {
            let here = at..at + line.len();
            at = here.end;
            let bare = line.trim_matches(is_space);
            if bare.starts_with("<!-- rye:signed:") || bare.starts_with("# ") {
                continue;
            }
            match pieces.last_mut() {
                Some(last) if last.end == here.start => last.end = here.end,
                _ => pieces.push(here),
            }
        }
        // What is left has no white space around it.
        while let Some(first) = pieces.first_mut() {
            *first = first.end - text[first.clone()].trim_start_matches(is_space).len()..first.end;
            if first.start < first.end {
                break;
            }
            pieces.remove(0);
        }
        while let Some(last) = pieces.last_mut() {
            *last = last.start..last.start + text[last.clone()].trim_end_matches(is_space).len();
            if last.start < last.end {
                break;
            }
            pieces.pop();
        }
        pieces
    }

    /// The sentence with the call. Of two outputs with one name the last one's description stands at the first one's place.
    fn call(&self, sink: &mut Sink) -> Result<(), Full> {
        let mut fields: IndexMap<&str, (&Written, Option<&Written>)> = IndexMap::new();
        for output in self.outputs.iter().filter(|output| !output.name.is_empty() || output.entry.is_some()) {
            let description = output.description.as_ref();
            let description = description.filter(|text| !text.is_empty() && output.entry != Some(false));
            fields.entry(output.name.as_str()).or_insert((&output.name, None)).1 = description;
        }
        if fields.is_empty() {
            return Ok(());
        }
        let sentence = concat!(
            "When you have completed all steps, return structured results:\n",
            "`rye_execute(item_type=\"tool\", item_id=\"rye/agent/threads/directive_return\", parameters={",
        );
        sink.frame(RETURNS, sentence.as_bytes())?;
        for (index, (name, description)) in fields.values().enumerate() {
            let open: &[u8] = if index == 0 { b"\"" } else { b", \"" };
            sink.frame(RETURNS, open)?;
            write(sink, name)?;
            sink.frame(RETURNS, b"\": \"<")?;
            write(sink, description.unwrap_or(name))?;
            sink.frame(RETURNS, b">\"")?;
        }
        sink.frame(RETURNS, b"})`")
    }

    /// The block that names the outputs, also those without a name.
    fn block(&self, sink: &mut Sink) -> Result<(), Full> {
        if self.outputs.is_empty() {
            return Ok(());
        }
        sink.frame(RETURNS, b"<returns>\n")?;
        for output in &self.outputs {
            sink.frame(RETURNS, b"  <output name=\"")?;
            write(sink, &output.name)?;
            match &output.description {
                Some(description) => {
                    sink.frame(RETURNS, b"\">")?;
                    write(sink, description)?;
                    sink.frame(RETURNS, b"</output>\n")?;
                }
                None => sink.frame(RETURNS, b"\" />\n")?,
            }
        }
        sink.frame(RETURNS, b"</returns>")
    }
}

/// Writes a part of a message that begins at `first`, with an empty line of this frame before it. A part that has nothing to say
/// leaves nothing.
fn part(
    sink: &mut Sink,
    (first, frame): (usize, u32),
    write: impl FnOnce(&mut Sink) -> Result<(), Full>,
) -> Result<(), Full> {
    let before = sink.len();
    if before > first {
        sink.frame(frame, b"\n\n")?;
    }
    let start = sink.len();
    write(sink)?;
    if sink.len() == start {
        sink.truncate(before);
    }
    Ok(())
}

fn opening(sink: &mut Sink, name: Option<&Written>, description: Option<&Written>) -> Result<(), Full> {
    match name {
        Some(name) => {
            sink.frame(TAG, b"<directive name=\"")?;
            write(sink, name)?;
            sink.frame(TAG, b"\">")?;
        }
        None => sink.frame(TAG, b"<directive>")?,
    }
    if let Some(description) = description {
        sink.frame(TAG, b"\n<description>")?;
        write(sink, description)?;
        sink.frame(TAG, b"</description>")?;
    }
    Ok(())
}

/// Writes what an author wrote in XML.
fn write(sink: &mut Sink, written: &Written) -> Result<(), Full> {
    for piece in written.pieces() {
        let text = written[piece.text.clone()].as_bytes();
        if piece.is_verbatim {
            sink.literal(0, piece.source.start as u32, text)?;
        } else {
            sink.begin_value(0, piece.source.start as u32);
            sink.value(text)?;
        }
    }
    Ok(())
}
