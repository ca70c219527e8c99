//! How much of a request stays the same from one render to the next, and what changes first.
//!
//! A provider's cache keeps the beginning of a request: the tools, what the system says, the messages in order. So what counts
//! is the first byte that differs, wherever the others are.

use serde_json::{Value as Json, json};

use super::spoken::{From, Spoken, SpokenMessage, SpokenPart};
use super::{Contributor, Ledger, overlapping};
use crate::chat::Role;
use crate::error::Result;
use crate::render::{Origin, Rendered, Shown, Span};
use crate::tokens::Tokenizer;
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

/// What a block belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Group {
    Tools,
    System,
    Talk,
}

/// One side of a comparison.
struct Side<'r> {
    rendered: &'r Rendered,
    spoken: &'r Spoken,
    /// The spans that have text.
    spans: Vec<Span>,
}

impl<'r> Side<'r> {
    fn new(rendered: &'r Rendered, spoken: &'r Spoken) -> Side<'r> {
        let spans = rendered.spans().filter(|span| !span.range.is_empty()).collect();
        Side { rendered, spoken, spans }
    }
}

/// A place in a message: the index of the part, and the byte in it.
#[derive(Debug, Clone, Copy)]
struct Spot {
    part: usize,
    byte: usize,
}

impl Stability {
    /// Compares a render with another one of the same prompt.
    pub fn between(rendered: &Rendered, other: &Rendered) -> Result<Stability> {
        let (ledger, spoken) = Ledger::with_spoken(rendered)?;
        let (_, others) = Ledger::with_spoken(other)?;
        let (a, b) = (Side::new(rendered, &spoken), Side::new(other, &others));
        let mut stability = Stability::empty(Basis::Compared);
        stability.changed = changed(rendered, other);
        let mut cut = false;
        for (index, tool) in spoken.tools.iter().enumerate() {
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
        if let Some(more) = others.tools.get(spoken.tools.len()).filter(|_| !cut) {
            // Behind the last tool the other render has one more.
            stability.first = Some(in_tool(&format!("the tool `{}`", more.name), 0, &more.json));
            cut = true;
        }
        for (index, message) in spoken.messages.iter().enumerate() {
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
        if let Some(more) = others.messages.get(spoken.messages.len()).filter(|_| !cut) {
            let spot = Spot { part: 0, byte: 0 };
            stability.first = stability.blame((&a, None), (&b, Some(more)), spot);
        }
        stability.find_passing(&a);
        Ok(stability)
    }

    /// Takes what the caller, hooks, providers and the system gave to change, and everything else to stay.
    pub fn assumed(rendered: &Rendered) -> Result<Stability> {
        let (ledger, spoken) = Ledger::with_spoken(rendered)?;
        let side = Side::new(rendered, &spoken);
        let mut stability = Stability::empty(Basis::Assumed);
        let mut cut = false;
        for tool in &spoken.tools {
            let tokens = ledger.tokenizer.count(&tool.json);
            let label = format!("the tool `{}`", tool.name);
            let block = Block { label, group: Group::Tools, tokens, stable: tokens, same: true };
            stability.push(block, &mut cut);
        }
        for message in &spoken.messages {
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
        (a, message): (&Side<'_>, Option<&SpokenMessage>),
        (b, there): (&Side<'_>, Option<&SpokenMessage>),
        spot: Spot,
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
        for message in &side.spoken.messages {
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

impl Side<'_> {
    /// Whether a message has a byte, or a picture and the like, at this spot.
    fn has(&self, message: &SpokenMessage, spot: Spot) -> bool {
        message.parts.get(spot.part).is_some_and(|part| spot.byte < part.text.len() || is_media(part))
    }

    /// The offset in the rendered text of a spot.
    fn rendered_offset(&self, message: &SpokenMessage, spot: Spot) -> Option<usize> {
        let part = message.parts.get(spot.part).filter(|part| spot.byte < part.text.len())?;
        match &part.from {
            From::Text(range) => Some(range.start + spot.byte),
            From::Pieces(pieces) => {
                let mut byte = spot.byte;
                pieces.iter().find_map(|piece| {
                    let found = (byte < piece.len()).then(|| piece.start + byte);
                    byte = byte.saturating_sub(piece.len());
                    found
                })
            }
            From::Conversation(_) | From::Media(..) => None,
        }
    }

    fn span_at(&self, message: &SpokenMessage, spot: Spot) -> Option<Span> {
        self.rendered_offset(message, spot).and_then(|at| self.rendered.span_at(at))
    }

    /// The first byte of a message whose origin is of a kind that is asked for.
    fn first_changing(&self, message: &SpokenMessage, asked: impl Fn(&Origin) -> bool) -> Option<Spot> {
        for (index, part) in message.parts.iter().enumerate() {
            let pieces = match &part.from {
                From::Text(range) => std::slice::from_ref(range),
                From::Pieces(pieces) => pieces,
                From::Conversation(_) | From::Media(..) => {
                    let origin = Origin::Rich { input: String::new(), kind: String::new() };
                    if asked(&origin) {
                        return Some(Spot { part: index, byte: 0 });
                    }
                    continue;
                }
            };
            let mut before = 0;
            for piece in pieces {
                let found = overlapping(&self.spans, piece).find(|span| asked(&span.origin));
                if let Some(span) = found {
                    let byte = before + span.range.start.max(piece.start) - piece.start;
                    return Some(Spot { part: index, byte });
                }
                before += piece.len();
            }
        }
        None
    }

    /// A spot in words.
    fn unstable(&self, message: &SpokenMessage, spot: Spot) -> Unstable {
        let part = message.parts.get(spot.part);
        let mut text: String = message
            .parts
            .iter()
            .take(spot.part)
            .filter(|part| !is_media(part))
            .map(|part| part.text.as_str())
            .collect();
        if let Some(part) = part.filter(|part| !is_media(part)) {
            text.push_str(&part.text[..floor(&part.text, spot.byte)]);
        }
        let (line, column) = line_column(&text);
        let span = self.span_at(message, spot);
        let contributor = match (&span, part.map(|part| &part.from)) {
            (Some(span), _) => Contributor::of(&span.origin),
            (None, Some(From::Media(kind, input))) => {
                Contributor::Rich { input: input.clone(), kind: (*kind).to_owned() }
            }
            (None, Some(From::Conversation(input))) => {
                Contributor::Rich { input: input.clone(), kind: "thread".to_owned() }
            }
            (None, _) => Contributor::File(self.rendered.prompt().template.name().to_owned()),
        };
        Unstable {
            within: label_of(message),
            message: Some(message.number),
            offset: text.len(),
            line,
            column,
            at: self.rendered_offset(message, spot),
            contributor,
            origin: span.map(|span| span.origin),
        }
    }
}

/// Whether what somebody contributed is taken to change from render to render.
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

/// The first spot at which a message differs from another one.
fn difference(message: &SpokenMessage, there: Option<&SpokenMessage>) -> Option<Spot> {
    let Some(there) = there else { return Some(Spot { part: 0, byte: 0 }) };
    for (index, part) in message.parts.iter().enumerate() {
        let Some(other) = there.parts.get(index) else { return Some(Spot { part: index, byte: 0 }) };
        if is_media(part) || is_media(other) {
            if is_media(part) != is_media(other) || part.text != other.text {
                return Some(Spot { part: index, byte: 0 });
            }
        } else if part.text != other.text {
            return Some(Spot { part: index, byte: common_bytes(&part.text, &other.text) });
        }
    }
    (there.parts.len() > message.parts.len()).then_some(Spot { part: message.parts.len(), byte: 0 })
}

/// The tokens of a message before a spot that the other one has as well.
fn stable_tokens(
    tokenizer: &Tokenizer,
    message: &SpokenMessage,
    there: Option<&SpokenMessage>,
    spot: Spot,
) -> usize {
    let before: usize = message.parts.iter().take(spot.part).map(|part| count(tokenizer, part)).sum();
    let ours = message.parts.get(spot.part).filter(|part| !is_media(part));
    let theirs = there.and_then(|there| there.parts.get(spot.part)).filter(|part| !is_media(part));
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => before + common_tokens(tokenizer, &ours.text, &theirs.text),
        _ => before,
    }
}

/// The tokens that two texts begin with.
fn common_tokens(tokenizer: &Tokenizer, text: &str, other: &str) -> usize {
    let (ours, theirs) = (tokenizer.encode(text), tokenizer.encode(other));
    ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours.id == theirs.id).count()
}

/// The tokens of a part that end within so many bytes.
fn ends_within(tokenizer: &Tokenizer, part: &SpokenPart, bytes: usize) -> usize {
    let mut end = 0;
    let tokens = tokenizer.encode(if is_media(part) { "" } else { &part.text });
    tokens
        .iter()
        .take_while(|token| {
            end += token.bytes;
            end <= bytes
        })
        .count()
}

fn common_bytes(text: &str, other: &str) -> usize {
    let common = text.bytes().zip(other.bytes()).take_while(|(ours, theirs)| ours == theirs).count();
    floor(text, common)
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn is_media(part: &SpokenPart) -> bool {
    matches!(part.from, From::Media(..))
}

fn count(tokenizer: &Tokenizer, part: &SpokenPart) -> usize {
    if is_media(part) { 0 } else { tokenizer.count(&part.text) }
}

fn tokens_of(tokenizer: &Tokenizer, message: &SpokenMessage) -> usize {
    message.parts.iter().map(|part| count(tokenizer, part)).sum()
}

fn label_of(message: &SpokenMessage) -> String {
    format!("message {} ({})", message.number, message.role)
}

fn group_of(message: &SpokenMessage) -> Group {
    match message.role {
        Role::System | Role::Developer => Group::System,
        _ => Group::Talk,
    }
}

/// The line and column behind a text, both from 1.
fn line_column(before: &str) -> (usize, usize) {
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
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
