//! What a provider's cache keeps of a prompt that begins the same every time.
//!
//! The figures are those that the providers have published; they change with models, so an unknown model has the figures of
//! its provider's newest ones.

use serde_json::{Value as Json, json};

use super::Stability;
use super::stable::{Block, Group};
use crate::chat::models::longest;
use crate::render::Provider;

/// The fewest tokens that Anthropic keeps, by the beginning of a model's id; 1,024 for others.
const ANTHROPIC: &[(&str, usize)] = &[
    ("claude-opus-5", 512),
    ("claude-opus-4-7", 2048),
    ("claude-3-5-haiku", 2048),
    ("claude-3-haiku", 2048),
    ("claude-opus-4-5", 4096),
    ("claude-opus-4-6", 4096),
    ("claude-haiku-4-5", 4096),
];

/// The fewest tokens that are kept.
pub fn minimum(provider: Provider, model: Option<&str>) -> usize {
    let model = model.unwrap_or_default().to_lowercase();
    match provider {
        Provider::OpenAi => 1024,
        Provider::Anthropic => {
            let id = model.find("claude").map_or("", |at| &model[at..]).replace('.', "-");
            longest(&id, ANTHROPIC, |(prefix, _)| prefix).map_or(1024, |(_, least)| *least)
        }
        Provider::Gemini if model.contains("gemini-2.5") => 2048,
        Provider::Gemini => 4096,
    }
}

/// Beyond the minimum, tokens are kept in steps of so many.
fn step(provider: Provider) -> usize {
    match provider {
        Provider::OpenAi => 128,
        Provider::Anthropic | Provider::Gemini => 1,
    }
}

/// How many tokens are kept of a request that begins with so many that stay the same.
pub fn kept(provider: Provider, model: Option<&str>, stable: usize) -> usize {
    let minimum = minimum(provider, model);
    match stable.checked_sub(minimum) {
        Some(more) => minimum + more - more % step(provider),
        None => 0,
    }
}

/// A place to mark in a request to Anthropic.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breakpoint {
    /// Behind what, as in `the tools` or `message 1 (system)`.
    pub after: String,
    /// The tokens from the beginning of the request up to there.
    pub tokens: usize,
}

/// What a provider's cache makes of a prompt.
#[derive(Debug, Clone)]
pub struct CachePlan {
    /// Whose cache.
    pub provider: Provider,
    /// The fewest tokens that it keeps.
    pub minimum: usize,
    /// The tokens that it can keep.
    pub cacheable: usize,
    /// Where to mark the request; only for Anthropic.
    pub breakpoints: Vec<Breakpoint>,
    /// Sentences without their full stops that say what keeps it from keeping more, and what to do.
    pub advice: Vec<String>,
}

impl CachePlan {
    /// The plan for what is known of a prompt's stability.
    pub fn new(provider: Provider, model: Option<&str>, stability: &Stability) -> CachePlan {
        let minimum = minimum(provider, model);
        let mut plan =
            CachePlan { provider, minimum, cacheable: 0, breakpoints: Vec::new(), advice: Vec::new() };
        match provider {
            Provider::Anthropic => plan.mark(stability),
            Provider::OpenAi | Provider::Gemini => {
                plan.cacheable = kept(provider, model, stability.stable);
            }
        }
        if plan.cacheable == 0 {
            let (stable, total) = (stability.stable, stability.total);
            plan.advice.push(match total < minimum {
                true => format!(
                    "The whole request has {total} tokens, but the provider caches only {minimum} or more"
                ),
                false => {
                    format!("{stable} tokens stay the same, but the provider caches only {minimum} or more")
                }
            });
        }
        if provider == Provider::Gemini && plan.cacheable > 0 {
            plan.advice.push("Google caches it if possible, without a guarantee".to_owned());
        }
        if let Some(unstable) = &stability.first
            && stability.total >= minimum
            && stability.stable < stability.total
        {
            plan.advice.push(format!(
                "The first part that changes is {}; move it back to cache more",
                unstable.contributor.label()
            ));
        }
        plan
    }

    /// Behind the tools, behind the system, and behind the last message that stays the same, where enough stands before it.
    /// These are three of the four places that may be marked; the last one is for a conversation that goes on.
    fn mark(&mut self, stability: &Stability) {
        let mut tokens = 0;
        let mut last: Option<&Block> = None;
        let mut ends: Vec<(&Block, usize)> = Vec::new();
        for block in stability.blocks.iter().take_while(|block| block.is_stable()) {
            if let Some(last) = last
                && last.group != block.group
                && last.group != Group::Output
            {
                ends.push((last, tokens));
            }
            tokens += block.tokens;
            last = Some(block);
        }
        // Nothing can be marked behind the schema of the answer: it is no block of the request.
        ends.extend(last.filter(|last| last.group != Group::Output).map(|last| (last, tokens)));
        ends.retain(|(_, tokens)| *tokens >= self.minimum);
        self.cacheable = ends.last().map_or(0, |(_, tokens)| *tokens);
        let behind = |block: &Block| match block.group {
            Group::Tools => "the tools".to_owned(),
            Group::Output | Group::System | Group::Talk => block.label.clone(),
        };
        let breakpoint = |(block, tokens)| Breakpoint { after: behind(block), tokens };
        self.breakpoints = ends.into_iter().map(breakpoint).collect();
        // What is stable in the middle of a message is lost, because a mark stands behind a whole block.
        if let Some(block) = stability.blocks.iter().find(|block| !block.is_stable())
            && !matches!(block.group, Group::Tools | Group::Output)
            && block.stable > 0
            && tokens + block.stable >= self.minimum
        {
            let at = stability.first.as_ref().map_or(0, |first| first.offset);
            self.advice.push(format!(
                "The first {} tokens of {} stay the same: send it as two blocks, cut before byte {at}, and \
                     mark the first",
                block.stable, block.label
            ));
        }
    }

    /// The plan as scripts see it.
    pub fn to_json(&self) -> Json {
        let breakpoints: Vec<Json> = self
            .breakpoints
            .iter()
            .map(|breakpoint| json!({"after": breakpoint.after, "tokens": breakpoint.tokens}))
            .collect();
        json!({
            "provider": self.provider.as_str(),
            "automatic": self.provider != Provider::Anthropic,
            "minimum": self.minimum,
            "cacheable": self.cacheable,
            "breakpoints": breakpoints,
            "advice": self.advice,
        })
    }
}
