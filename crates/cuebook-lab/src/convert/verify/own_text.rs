//! What a prompt says, for a comparison: its own words, without those that the engine puts around them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::samples::Sample;
use crate::chat::{Marker, Message, Role, Roles};
use crate::error::Result;
use crate::prepared::Prepared;
use crate::prompt::DOTPROMPT;
use crate::render::Rendered;
use crate::template::python::is_space;
use crate::template::sink::{Piece, Writer};
use crate::template::unit::{Emission, Units};
use crate::variables::{Context, Variables};

/// How a prompt is rendered for a comparison.
pub(super) struct ComparisonRender<'w> {
    pub(super) context: &'w Arc<Context>,
    /// Whether it was made here: then it has to be one message.
    pub(super) is_result: bool,
    /// Whether the line that begins its first message is no part of what is compared.
    pub(super) unmarked: bool,
    /// Whether sections are shown in full, whatever their folds say.
    pub(super) unfolded: bool,
    /// Whether all sections are there, whatever their conditions say.
    pub(super) unconditional: bool,
    pub(super) mask: Mask<'w>,
}

/// What is taken out of a text.
#[derive(Clone, Copy)]
pub(super) struct Mask<'m> {
    /// All that these inputs show.
    pub(super) shown: &'m BTreeSet<String>,
    /// What these inputs show, if it reads like one of these.
    pub(super) written: &'m BTreeMap<String, BTreeSet<String>>,
}

impl Mask<'_> {
    fn hides(&self, emission: &Emission, text: &str) -> bool {
        self.shown.iter().any(|name| emission.can_show(name))
            || self.written.iter().any(|(name, forms)| emission.can_show(name) && forms.contains(&bare(text)))
    }
}

/// All ways to write the odd values in a value, without what notations put around them: `True`, `true`, `['a']`, `["a"]`, `a`.
pub(super) fn forms(value: &Json, into: &mut BTreeSet<String>) {
    match value {
        Json::String(_) => return,
        Json::Number(number) if !number.is_f64() => return,
        Json::Array(items) => items.iter().for_each(|item| forms(item, into)),
        Json::Object(entries) => entries.values().for_each(|entry| forms(entry, into)),
        Json::Null | Json::Bool(_) | Json::Number(_) => {}
    }
    into.insert(bare(&value.to_string()));
}

/// A text without the signs and the case that notations differ in.
fn bare(text: &str) -> String {
    let kept = |letter: &char| !letter.is_whitespace() && !"[]{}'\",:".contains(*letter);
    let text: String = text.chars().filter(kept).collect::<String>().to_lowercase();
    if text == "none" || text == "null" { String::new() } else { text }
}

impl ComparisonRender<'_> {
    /// What a prompt says with some values: the text of its one message; of several, all of the text.
    pub(super) fn own_text(&self, prepared: &Prepared, sample: &Sample) -> Result<String> {
        if let Some(directive) = prepared.directive() {
            // Text from the environment has no equivalent in other notations, and is reported as lost.
            let output = directive.fill(sample)?.with_environment(|_| None).body()?;
            let body = self.without_masked(&output.text, &output.pieces, &output.units, 0);
            let (preamble, body) = (directive.shown_preamble(), body.trim_matches(is_space));
            return Ok(match (preamble.is_empty(), body.is_empty()) {
                (true, _) => body.to_owned(),
                (false, true) => preamble,
                (false, false) => format!("{preamble}\n\n{body}"),
            });
        }
        let rendered = self.render(prepared, sample)?;
        let mut start = 0;
        if prepared.prompt().dialect.has_roles {
            match rendered.messages()?.as_slice() {
                // A draft is one message, so that a result of several is never the same.
                several if self.is_result && several.len() != 1 => {
                    return Ok(format!("{} messages", several.len()));
                }
                _ if self.unmarked => start = behind_marker(rendered.text(), rendered.pieces()),
                _ => {}
            }
        }
        if !self.is_result && *prepared.prompt().dialect == DOTPROMPT {
            start = behind_role(prepared, rendered.text());
        }
        Ok(self.without_masked(rendered.text(), rendered.pieces(), rendered.units(), start))
    }

    /// Who says what a prompt says with some values, message by message.
    pub(super) fn roles(&self, prepared: &Prepared, sample: &Sample) -> Result<Vec<Role>> {
        Ok(self.messages(prepared, sample)?.into_iter().map(|message| message.role).collect())
    }

    /// The messages of a prompt with some values.
    pub(super) fn messages(&self, prepared: &Prepared, sample: &Sample) -> Result<Vec<Message>> {
        self.render(prepared, sample)?.messages()
    }

    fn render(&self, prepared: &Prepared, sample: &Sample) -> Result<Rendered> {
        let variables = Variables::from_json(sample);
        match prepared.render_own(&variables, self.context, self.unfolded, self.unconditional) {
            Some(rendered) => rendered,
            None => prepared.render(&variables, self.context),
        }
    }

    /// The text from a place on, without what masked inputs show in it.
    fn without_masked(&self, text: &str, pieces: &[Piece], units: &Units, start: usize) -> String {
        if self.mask.shown.is_empty() && self.mask.written.is_empty() {
            return text.get(start..).unwrap_or_default().to_owned();
        }
        let mut out = String::with_capacity(text.len());
        for (index, piece) in pieces.iter().enumerate() {
            let end = pieces.get(index + 1).map_or(text.len(), |next| next.start as usize);
            let part = text.get(piece.start as usize..end).unwrap_or_default();
            let is_masked = match piece.writer {
                Writer::Value { unit, offset } => {
                    units.get(unit).0.emission(offset).is_some_and(|emission| self.mask.hides(emission, part))
                }
                _ => false,
            };
            if !is_masked {
                out.push_str(text.get((piece.start as usize).max(start)..end).unwrap_or_default());
            }
        }
        out
    }
}

/// Where the text of a `.prompt` file begins behind the tag that says whose message it is; 0 if it is missing.
fn behind_role(prepared: &Prepared, text: &str) -> usize {
    let has_tag = prepared.prompt().template.text().trim_start().starts_with("{{role ");
    let end = text.find(">>>").filter(|_| has_tag && text.trim_start().starts_with("<<<dotprompt:role:"));
    end.map_or(0, |end| end + 3 + usize::from(text[end + 3..].starts_with('\n')))
}

/// Where the text begins behind the line that says whose message it is; 0 if it is missing.
fn behind_marker(text: &str, pieces: &[Piece]) -> usize {
    let first = text.len() - text.trim_start().len();
    let mut atoms: Vec<(bool, &str)> = Vec::new();
    let mut end = text.len();
    for (index, piece) in pieces.iter().enumerate() {
        let until = pieces.get(index + 1).map_or(text.len(), |next| next.start as usize);
        let Some(part) = text.get((piece.start as usize).max(first)..until) else { continue };
        // A line ends where an author ended it, and never in a value.
        let is_literal = piece.writer.is_author();
        match part.find('\n').filter(|_| is_literal) {
            Some(newline) => {
                atoms.push((true, &part[..newline]));
                end = until - part.len() + newline + 1;
                break;
            }
            None => atoms.push((is_literal, part)),
        }
    }
    if Marker::role_of(atoms, &Roles::default()).is_some() { end } else { 0 }
}
