//! How much of a request stays the same from one render to the next, and what changes first.
//!
//! A provider's cache keeps the beginning of a request: the tools, what the system says, the messages in order. So what counts
//! is the first byte that differs, wherever the others are.

use serde_json::{Value as Json, json};

use super::common_prefix::{
    common_bytes, common_tokens, count, difference, ends_within, line_column, stable_tokens, tokens_of,
};
use super::sent_request::SentMessage;
use super::side::{MessagePosition, Side, label_of};
use super::{Contributor, Ledger};
use crate::chat::Role;
use crate::error::Result;
use crate::render::{Origin, Rendered, Shown, Span};
use crate::variables::Layer;

/// What is known to stay the same, and how.
#[derive(Debug, Clone)]
pub struct Stability {
    /// How that is known.
    pub basis: Basis,
    /// The tokens of the first render.
    pub total: usize,
    /// How many of them, from the beginning, are the same in the other one.
    pub stable: usize,
    /// What changes first; `None` if nothing does.
    pub first: Option<Unstable>,
    /// The variables whose values differ between the two renders.
    pub changed: Vec<Shown>,
    /// What is the same in both renders and yet will not stay so: what the clock or the session says.
    pub passing: Option<Unstable>,
    pub(super) blocks: Vec<Block>,
}

/// How it is known what stays the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// Two renders were compared.
    Compared,
    /// What the caller, hooks, providers and the system gave was taken to change, and everything else to stay.
    Assumed,
}

/// The first byte that changes.
#[derive(Debug, Clone)]
pub struct Unstable {
    /// What it is in, as in `message 2 (user)` or ``the tool `find` ``.
    pub within: String,
    /// The number of the message, from 1; `None` in a tool.
    pub message: Option<usize>,
    /// Its offset there, in bytes.
    pub offset: usize,
    /// Its line there, from 1.
    pub line: usize,
    /// Its column there, in characters, from 1.
    pub column: usize,
    /// Its offset in the rendered text of the first render, if it is there.
    pub at: Option<usize>,
    /// Who put it there.
    pub contributor: Contributor,
    /// Where it came from, if it is in a rendered text.
    pub origin: Option<Origin>,
}

/// A tool or a message, as the cache sees it.
#[derive(Debug, Clone)]
pub(super) struct Block {
    pub(super) label: String,
    pub(super) group: Group,
    pub(super) tokens: usize,
    /// The tokens from its beginning that stay the same.
    pub(super) stable: usize,
    /// Whether all of it stays the same.
    pub(super) same: bool,
}

impl Block {
    pub(super) fn is_stable(&self) -> bool {
        self.same
    }
}

/// What the schema of the answer is called.
const OUTPUT: &str = "the schema of the answer";

/// What a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Tools,
    /// The schema of the answer. Providers show it to the model before the messages; nothing can be marked behind it.
    Output,
    System,
    Talk,
}

impl Stability {
    /// Compares a render with another one of the same prompt.
    pub fn between(rendered: &Rendered, other: &Rendered) -> Result<Stability> {
        let (ledger, sent_request) = Ledger::with_spoken(rendered)?;
        let (_, others) = Ledger::with_spoken(other)?;
        let (a, b) = (Side::new(rendered, &sent_request), Side::new(other, &others));
        let mut stability = Stability::empty(Basis::Compared);
        stability.changed = changed(rendered, other);
        let mut cut = false;
        for (index, tool) in sent_request.tools.iter().enumerate() {
            let there = others.tools.get(index).map_or("", |tool| tool.json.as_str());
            let same = there == tool.json;
            let tokens = ledger.tokenizer.count(&tool.json);
            let label = format!("the tool `{}`", tool.name);
            let stable = if same { tokens } else { common_tokens(&ledger.tokenizer, &tool.json, there) };
            if !same && !cut {
                stability.first = Some(in_tool(&label, common_bytes(&tool.json, there), &tool.json));
            }
            stability.push(Block { label, group: Group::Tools, tokens, stable, same }, &mut cut);
        }
        if let Some(more) = others.tools.get(sent_request.tools.len()).filter(|_| !cut) {
            // Behind the last tool the other render has one more.
            stability.first = Some(in_tool(&format!("the tool `{}`", more.name), 0, &more.json));
            cut = true;
        }
        if sent_request.output.is_some() || others.output.is_some() {
            let (ours, theirs) = (sent_request.output_text(), others.output_text());
            let (tokens, same) = (ledger.tokenizer.count(ours), ours == theirs);
            let stable = if same { tokens } else { common_tokens(&ledger.tokenizer, ours, theirs) };
            if !same && !cut {
                stability.first = Some(in_tool(OUTPUT, common_bytes(ours, theirs), ours));
            }
            let label = OUTPUT.to_owned();
            stability.push(Block { label, group: Group::Output, tokens, stable, same }, &mut cut);
        }
        for (index, message) in sent_request.messages.iter().enumerate() {
            let there = others.messages.get(index).filter(|there| there.role == message.role);
            let spot = difference(message, there);
            let tokens = tokens_of(&ledger.tokenizer, message);
            let stable = match spot {
                None => tokens,
                Some(spot) => stable_tokens(&ledger.tokenizer, message, there, spot),
            };
            if let Some(spot) = spot
                && !cut
            {
                stability.first = stability.blame((&a, Some(message)), (&b, there), spot);
            }
            let (label, same) = (label_of(message), spot.is_none());
            stability.push(Block { label, group: group_of(message), tokens, stable, same }, &mut cut);
        }
        if let Some(more) = others.messages.get(sent_request.messages.len()).filter(|_| !cut) {
            let spot = MessagePosition { part: 0, byte: 0 };
            stability.first = stability.blame((&a, None), (&b, Some(more)), spot);
        }
        stability.find_passing(&a);
        Ok(stability)
    }

    /// Takes what the caller, hooks, providers and the system gave to change, and everything else to stay.
    pub fn assumed(rendered: &Rendered) -> Result<Stability> {
        let (ledger, sent_request) = Ledger::with_spoken(rendered)?;
        let side = Side::new(rendered, &sent_request);
        let mut stability = Stability::empty(Basis::Assumed);
        let mut cut = false;
        for tool in &sent_request.tools {
            let tokens = ledger.tokenizer.count(&tool.json);
            let label = format!("the tool `{}`", tool.name);
            let block = Block { label, group: Group::Tools, tokens, stable: tokens, same: true };
            stability.push(block, &mut cut);
        }
        if let Some(output) = &sent_request.output {
            let (label, tokens) = (OUTPUT.to_owned(), ledger.tokenizer.count(output));
            let block = Block { label, group: Group::Output, tokens, stable: tokens, same: true };
            stability.push(block, &mut cut);
        }
        for message in &sent_request.messages {
            let tokens = tokens_of(&ledger.tokenizer, message);
            let spot = side.first_changing(message, |origin| changes(&Contributor::of(origin)));
            let stable = match spot {
                None => tokens,
                Some(spot) => {
                    let before: usize =
                        message.parts[..spot.part].iter().map(|part| count(&ledger.tokenizer, part)).sum();
                    before + ends_within(&ledger.tokenizer, &message.parts[spot.part], spot.byte)
                }
            };
            if let Some(spot) = spot
                && !cut
            {
                stability.first = Some(side.unstable(message, spot));
            }
            let (label, same) = (label_of(message), spot.is_none());
            stability.push(Block { label, group: group_of(message), tokens, stable, same }, &mut cut);
        }
        Ok(stability)
    }

    fn empty(basis: Basis) -> Stability {
        Stability {
            basis,
            total: 0,
            stable: 0,
            first: None,
            changed: Vec::new(),
            passing: None,
            blocks: Vec::new(),
        }
    }

    fn push(&mut self, mut block: Block, cut: &mut bool) {
        self.total += block.tokens;
        if *cut {
            // A cache ends where the first difference is, whatever follows.
            (block.stable, block.same) = (0, false);
        }
        self.stable += block.stable;
        *cut |= !block.same;
        self.blocks.push(block);
    }

    /// The share of the tokens that stay the same, from 0 to 1; 1 if there are none.
    pub fn share(&self) -> f64 {
        if self.total == 0 { 1.0 } else { self.stable as f64 / self.total as f64 }
    }

    /// Who put the first difference there. Where a value is longer in one of the renders, the other one has an author's
    /// text there; the value is meant.
    fn blame(
        &self,
        (a, message): (&Side<'_>, Option<&SentMessage>),
        (b, there): (&Side<'_>, Option<&SentMessage>),
        spot: MessagePosition,
    ) -> Option<Unstable> {
        let ours = message.and_then(|message| a.span_at(message, spot));
        let theirs = there.and_then(|there| b.span_at(there, spot));
        let shows_changed = |span: &Span| match &span.origin {
            Origin::Value { shown, .. } => shown.iter().any(|shown| {
                self.changed.iter().any(|changed| {
                    shown
                        .path
                        .strip_prefix(changed.path.as_str())
                        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
                })
            }),
            Origin::Rich { .. } | Origin::Hook { .. } => true,
            Origin::Literal { .. } | Origin::Frame { .. } => false,
        };
        let meant = [&ours, &theirs].into_iter().flatten().find(|span| shows_changed(span));
        let in_ours = message.filter(|message| there.is_none() || a.has(message, spot));
        let mut unstable = match (in_ours, there) {
            (Some(message), _) => a.unstable(message, spot),
            (None, there) => b.unstable(there?, spot),
        };
        if let Some(span) = meant.or(ours.as_ref()).or(theirs.as_ref()) {
            unstable.contributor = Contributor::of(&span.origin);
            unstable.origin = Some(span.origin.clone());
        }
        unstable.at = message.and_then(|message| a.rendered_offset(message, spot));
        Some(unstable)
    }

    /// What the system gave shows before the first difference: today it is the same.
    fn find_passing(&mut self, side: &Side<'_>) {
        for message in &side.sent_request.messages {
            let spot = side.first_changing(message, |origin| {
                matches!(origin, Origin::Value { shown, .. }
                    if shown.iter().any(|shown| shown.layer == Some(Layer::System)))
            });
            let Some(spot) = spot else {
                if self.first.as_ref().is_some_and(|first| first.message == Some(message.number)) {
                    return;
                }
                continue;
            };
            let found = side.unstable(message, spot);
            let behind = self.first.as_ref().is_some_and(|first| {
                first.message.is_none()
                    || first.message == Some(message.number) && first.offset <= found.offset
            });
            if !behind {
                self.passing = Some(found);
            }
            return;
        }
    }

    /// What is known, as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "basis": match self.basis { Basis::Compared => "compared", Basis::Assumed => "assumed" },
            "total": self.total,
            "stable": self.stable,
            "share": self.share(),
            "first_unstable": self.first.as_ref().map(Unstable::to_json),
            "changed": self.changed.iter().map(Shown::to_json).collect::<Vec<_>>(),
            "passing": self.passing.as_ref().map(Unstable::to_json),
        })
    }
}

impl Unstable {
    /// Whether an author wrote what changes, so that a condition or a loop around it must have decided.
    pub fn is_literal(&self) -> bool {
        matches!(self.contributor, Contributor::File(_) | Contributor::Frame(_))
    }

    fn to_json(&self) -> Json {
        json!({
            "within": self.within,
            "message": self.message,
            "offset": self.offset,
            "line": self.line,
            "column": self.column,
            "at": self.at,
            "contributor": self.contributor.to_json(),
            "origin": self.origin.as_ref().map(Origin::to_json),
        })
    }
}

/// Whether a contribution is taken to change from render to render.
fn changes(contributor: &Contributor) -> bool {
    match contributor {
        Contributor::Rich { .. } | Contributor::Hook { .. } => true,
        Contributor::Variables(shown) => shown.iter().any(|shown| {
            matches!(shown.layer, Some(Layer::System | Layer::Provider | Layer::Caller | Layer::Hook))
        }),
        Contributor::File(_) | Contributor::Computed(_) | Contributor::Frame(_) => false,
    }
}

/// The variables whose values differ, each with its layer.
fn changed(rendered: &Rendered, other: &Rendered) -> Vec<Shown> {
    let (ours, theirs) = (rendered.scope(), other.scope());
    let mut names = ours.names();
    names.extend(theirs.names());
    names.sort();
    names.dedup();
    names.retain(|name| ours.get(name).map(|(_, value)| value) != theirs.get(name).map(|(_, value)| value));
    let shown = |name: String| Shown {
        layer: ours.layer(&name).or_else(|| theirs.layer(&name)),
        by: ours.supplier(&name).or_else(|| theirs.supplier(&name)).cloned(),
        path: name,
    };
    names.into_iter().map(shown).collect()
}

fn group_of(message: &SentMessage) -> Group {
    match message.role {
        Role::System | Role::Developer => Group::System,
        _ => Group::Talk,
    }
}

fn in_tool(label: &str, offset: usize, json: &str) -> Unstable {
    let (line, column) = line_column(&json[..offset]);
    Unstable {
        within: label.to_owned(),
        message: None,
        offset,
        line,
        column,
        at: None,
        contributor: Contributor::Frame("tools".to_owned()),
        origin: None,
    }
}
