//! The tokens of a prompt, by file, variable and section.
//!
//! A [`Ledger`] counts the tokens of a request: the text of the messages, the schemas of the tools and of the answer. A token of
//! the text counts for the contributor and the section that wrote most of it, so the sums add up. [`Stability`] measures how much
//! of a request stays the same between two renders, and [`CachePlan`] how much of it a provider's cache can reuse.
//!
//! The ledger does not count what a provider adds around messages, nor images, audio and documents: no provider publishes exact
//! costs for those. It never calls a provider.

mod cache;
mod common_prefix;
mod contributor;
mod sent_request;
mod side;
mod stable;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::ops::Range;

use serde_json::{Value as Json, json};

pub use crate::render::Provider;
pub use cache::{Breakpoint, CachePlan, kept, minimum};
pub use contributor::Contributor;
use sent_request::{PartOrigin, SentPart, SentRequest};
pub use stable::{Basis, Stability, Unstable};

use crate::chat::Role;
use crate::error::Result;
use crate::render::{OUTPUT_WHY, Rendered, Span, TOOLS_WHY, audience};
use crate::tokens::Tokenizer;

/// The tokens of one render.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Ledger {
    /// The model that the tokens are counted for, if one is named.
    pub model: Option<String>,
    /// Whose model it is, if that is known.
    pub provider: Option<Provider>,
    /// What they are counted with, and whether that is exact.
    pub tokenizer: Tokenizer,
    /// The messages, in the order of the prompt.
    pub messages: Vec<MessageTokens>,
    /// The tools, in order.
    pub tools: Vec<ToolTokens>,
    /// The tokens of the schema that the answer is to keep to; 0 if it may be any text.
    pub output: usize,
    /// The sections of a tree, in order.
    pub sections: Vec<SectionTokens>,
    /// Who put the tokens of the messages there; the largest contributor comes first.
    pub contributors: Vec<ContributorTokens>,
    /// Pictures, sounds and documents, which are not counted.
    pub uncounted: usize,
    /// Whether the answer has a schema that the provider cannot take, so that it is not counted.
    pub output_refused: bool,
}

/// The tokens of a message.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MessageTokens {
    /// Its number among the messages, from 1.
    pub number: usize,
    /// Who says it.
    pub role: Role,
    /// Its tokens.
    pub tokens: usize,
}

/// The tokens of a tool.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ToolTokens {
    /// Its name.
    pub name: String,
    /// The tokens of its JSON in the body of a request.
    pub tokens: usize,
}

/// The tokens of a section.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SectionTokens {
    /// Its path, as in `context.history`.
    pub path: String,
    /// Its own tokens, without those of the sections below it.
    pub tokens: usize,
}

/// The tokens and bytes of one contributor.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContributorTokens {
    /// The contributor.
    pub contributor: Contributor,
    /// The tokens that it wrote most of.
    pub tokens: usize,
    /// The bytes that it wrote.
    pub bytes: usize,
}

/// The places of sections and contributors in their lists.
#[derive(Default)]
struct Indexes {
    sections: HashMap<String, usize>,
    contributors: HashMap<Contributor, usize>,
}

impl Ledger {
    /// Counts the tokens of a render as the model that it was for does, or else the prompt's own.
    pub fn of(rendered: &Rendered) -> Result<Ledger> {
        Ledger::with_spoken(rendered).map(|(ledger, _)| ledger)
    }

    pub(crate) fn with_spoken(rendered: &Rendered) -> Result<(Ledger, SentRequest)> {
        let (model, provider, tokenizer) = audience(rendered);
        let sent_request = SentRequest::of(rendered, provider.unwrap_or(Provider::OpenAi))?;
        let mut ledger = Ledger {
            model,
            provider,
            tokenizer,
            messages: Vec::new(),
            tools: Vec::new(),
            output: 0,
            sections: Vec::new(),
            contributors: Vec::new(),
            uncounted: 0,
            output_refused: sent_request.output_refused,
        };
        ledger.count(rendered, &sent_request);
        Ok((ledger, sent_request))
    }

    fn count(&mut self, rendered: &Rendered, sent_request: &SentRequest) {
        if let Some(disclosed) = rendered.sections() {
            let paths = disclosed.sections.iter().map(|section| section.path.join("."));
            self.sections.extend(paths.map(|path| SectionTokens { path, tokens: 0 }));
        }
        let spans: Vec<Span> = rendered.spans().filter(|span| !span.range.is_empty()).collect();
        let mut known = Indexes::default();
        for (index, section) in self.sections.iter().enumerate() {
            known.sections.entry(section.path.clone()).or_insert(index);
        }
        for message in &sent_request.messages {
            let mut tokens = 0;
            for part in &message.parts {
                tokens += self.count_part(part, &spans, &mut known);
            }
            self.messages.push(MessageTokens { number: message.number, role: message.role.clone(), tokens });
        }
        self.messages.sort_by_key(|message| message.number);
        for tool in &sent_request.tools {
            let tokens = self.tokenizer.count(&tool.json);
            self.tools.push(ToolTokens { name: tool.name.clone(), tokens });
        }
        self.output = sent_request.output.as_ref().map_or(0, |output| self.tokenizer.count(output));
        // What is in no section stands before those that are: a heading of the prompt itself.
        self.sections.retain(|section| section.tokens > 0);
        self.contributors.sort_by_key(|entry| std::cmp::Reverse(entry.tokens));
    }

    fn count_part(&mut self, part: &SentPart, spans: &[Span], known: &mut Indexes) -> usize {
        let pieces = match &part.from {
            PartOrigin::Text(pieces) => pieces.clone(),
            PartOrigin::Conversation(input) => {
                let tokens = self.tokenizer.count(&part.text);
                let contributor = Contributor::Rich { input: input.clone(), kind: "thread".to_owned() };
                self.add(known, contributor, tokens, part.text.len());
                return tokens;
            }
            PartOrigin::Media(..) => {
                self.uncounted += 1;
                return 0;
            }
        };
        for piece in &pieces {
            for span in overlapping(spans, piece) {
                let bytes = span.range.end.min(piece.end) - span.range.start.max(piece.start);
                self.add(known, Contributor::of(&span.origin), 0, bytes);
            }
        }
        let tokens = self.tokenizer.encode(&part.text);
        let mut places = Places::new(&pieces);
        // Tokens of one span come together, so each run of them is added once.
        let mut owned: Vec<(&Span, usize)> = Vec::new();
        for token in &tokens {
            let Some(span) = writer_of(spans, &places.next(token.bytes)) else { continue };
            match owned.last_mut() {
                Some((last, count)) if std::ptr::eq(*last, span) => *count += 1,
                _ => owned.push((span, 1)),
            }
        }
        for (span, count) in owned {
            self.add(known, Contributor::of(&span.origin), count, 0);
            if let Some(section) = &span.section {
                let index = *known.sections.entry(section.to_string()).or_insert(self.sections.len());
                match self.sections.get_mut(index) {
                    Some(entry) => entry.tokens += count,
                    None => self.sections.push(SectionTokens { path: section.to_string(), tokens: count }),
                }
            }
        }
        tokens.len()
    }

    fn add(&mut self, known: &mut Indexes, contributor: Contributor, tokens: usize, bytes: usize) {
        let index = *known.contributors.entry(contributor.clone()).or_insert(self.contributors.len());
        match self.contributors.get_mut(index) {
            Some(entry) => (entry.tokens, entry.bytes) = (entry.tokens + tokens, entry.bytes + bytes),
            None => self.contributors.push(ContributorTokens { contributor, tokens, bytes }),
        }
    }

    /// The tokens of all messages.
    pub fn text_tokens(&self) -> usize {
        self.messages.iter().map(|message| message.tokens).sum()
    }

    /// The tokens of all tools.
    pub fn tool_tokens(&self) -> usize {
        self.tools.iter().map(|tool| tool.tokens).sum()
    }

    /// The tokens of everything.
    pub fn total(&self) -> usize {
        self.text_tokens() + self.tool_tokens() + self.output
    }

    /// Whether the total is what the model sees.
    pub fn is_exact(&self) -> bool {
        self.estimates().is_empty()
    }

    /// Sentences without their full stops that say what is an estimate or not counted, and why.
    pub fn estimates(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self.tokenizer.why().map(str::to_owned).into_iter().collect();
        if !self.tools.is_empty() {
            reasons.push(TOOLS_WHY.to_owned());
        }
        if self.output > 0 {
            reasons.push(OUTPUT_WHY.to_owned());
        }
        if self.output_refused {
            reasons
                .push("The schema of the answer is not counted: the provider does not accept it".to_owned());
        }
        if self.uncounted > 0 {
            let what = match self.uncounted {
                1 => "One image, audio or file is not counted".to_owned(),
                many => format!("{many} images, audio and files are not counted"),
            };
            reasons.push(format!("{what}: the cost depends on the provider"));
        }
        reasons
    }

    /// The counts as scripts see them.
    pub fn to_json(&self) -> Json {
        let messages: Vec<Json> = self
            .messages
            .iter()
            .map(|message| json!({"number": message.number, "role": message.role.as_str(), "tokens": message.tokens}))
            .collect();
        let tools: Vec<Json> =
            self.tools.iter().map(|tool| json!({"name": tool.name, "tokens": tool.tokens})).collect();
        let sections: Vec<Json> = self
            .sections
            .iter()
            .map(|section| json!({"path": section.path, "tokens": section.tokens}))
            .collect();
        let contributors: Vec<Json> = self
            .contributors
            .iter()
            .map(|entry| {
                let mut object = entry.contributor.to_json();
                (object["tokens"], object["bytes"]) = (json!(entry.tokens), json!(entry.bytes));
                object
            })
            .collect();
        json!({
            "total": self.total(),
            "text": self.text_tokens(),
            "exact": self.is_exact(),
            "estimates": self.estimates(),
            "model": self.model,
            "vocabulary": self.tokenizer.vocabulary().as_str(),
            "messages": messages,
            "tools": tools,
            "output": self.output,
            "sections": sections,
            "contributors": contributors,
        })
    }
}

/// The spans that have bytes of a range.
fn overlapping<'s>(spans: &'s [Span], range: &Range<usize>) -> impl Iterator<Item = &'s Span> {
    let (first, end) = (spans.partition_point(|span| span.range.end <= range.start), range.end);
    spans[first..].iter().take_while(move |span| span.range.start < end)
}

/// The places in the rendered text of the tokens of a text that may be in several pieces.
struct Places<'p> {
    pieces: &'p [Range<usize>],
    /// Bytes of the first piece that are done.
    done: usize,
}

impl<'p> Places<'p> {
    fn new(pieces: &'p [Range<usize>]) -> Places<'p> {
        Places { pieces, done: 0 }
    }

    /// Where the next token lies, which has so many bytes.
    fn next(&mut self, mut bytes: usize) -> Vec<Range<usize>> {
        let mut found = Vec::with_capacity(1);
        while let [first, rest @ ..] = self.pieces
            && bytes > 0
        {
            let start = first.start + self.done;
            let taken = bytes.min(first.end - start);
            found.push(start..start + taken);
            (bytes, self.done) = (bytes - taken, self.done + taken);
            if self.done == first.len() {
                (self.pieces, self.done) = (rest, 0);
            }
        }
        found
    }
}

/// The span that has most bytes of a token, and of several the last: a token often begins with the space before its word.
fn writer_of<'s>(spans: &'s [Span], token: &[Range<usize>]) -> Option<&'s Span> {
    let parts = token.iter().flat_map(|range| {
        overlapping(spans, range)
            .map(move |span| (span, span.range.end.min(range.end) - span.range.start.max(range.start)))
    });
    parts.max_by_key(|(_, bytes)| *bytes).map(|(span, _)| span)
}
