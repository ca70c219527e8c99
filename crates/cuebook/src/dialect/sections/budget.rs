//! A request that must fit into a budget of tokens: its text makes room for its tools and its output schema.

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::render::{ExtraTokens, Rendered};
use crate::sections::{Fitting, RenderedPrompt};

/// Renders a tree so that the whole request has at most so many tokens. `fit` renders its text into so much room, `complete` adds
/// what goes with the text. Which tools there are depends on the sections that are shown, so the room is looked for in steps.
pub(super) fn fit_request(
    budget: usize,
    fit: impl Fn(usize) -> Result<(RenderedPrompt, Fitting)>,
    complete: impl Fn(RenderedPrompt, Option<Fitting>) -> Rendered,
) -> Result<Rendered> {
    let attempt = |room| -> Result<(Rendered, usize, ExtraTokens)> {
        let (rendered, fitting) = fit(room)?;
        let text = fitting.tokens;
        let rendered = complete(rendered, Some(fitting));
        let beside = ExtraTokens::of(&rendered);
        Ok((rendered, text, beside))
    };
    let (whole, text, beside) = attempt(usize::MAX)?;
    let before = text + beside.tokens();
    if before <= budget {
        return Ok(finish(whole, beside, before, budget));
    }
    let mut room = budget.saturating_sub(beside.tokens());
    let mut least = 0;
    let mut round = 0_u32;
    loop {
        let (rendered, text, beside) = match attempt(room) {
            Ok(attempt) => attempt,
            Err(error) => {
                // A section that goes may take its tools with it, and leave more room than is known so far.
                let smallest = error.field("tokens").and_then(|tokens| tokens.as_u64());
                let smallest = smallest.and_then(|tokens| usize::try_from(tokens).ok());
                let smallest = smallest.filter(|smallest| least == 0 && *smallest > 0).ok_or(error)?;
                let (_, text, beside) = attempt(smallest)?;
                if text + beside.tokens() > budget {
                    return Err(too_long(before, text, &beside, budget));
                }
                (least, room) = (text, budget - beside.tokens());
                continue;
            }
        };
        let tokens = text + beside.tokens();
        if tokens <= budget {
            return Ok(finish(rendered, beside, before, budget));
        }
        if text <= least {
            return Err(too_long(before, text, &beside, budget));
        }
        // Longer steps after each other, so that there are few of them.
        room = text.saturating_sub((tokens - budget) << round.min(16)).max(least);
        round += 1;
    }
}

fn finish(rendered: Rendered, beside: ExtraTokens, before: usize, budget: usize) -> Rendered {
    rendered.map_fitting(|fitting| {
        fitting.tokens += beside.tokens();
        (fitting.tools, fitting.output) = (beside.tools, beside.output);
        (fitting.before, fitting.budget) = (before, budget);
        let estimates = fitting.estimate.take().into_iter();
        let estimates: Vec<String> =
            estimates.chain(beside.estimates.iter().map(ToString::to_string)).collect();
        fitting.estimate = (!estimates.is_empty()).then(|| estimates.join("\n"));
        fitting.not_counted = beside.not_counted;
    })
}

fn too_long(before: usize, text: usize, beside: &ExtraTokens, budget: usize) -> Error {
    let least = text + beside.tokens();
    let parts = [(beside.tools, "tools"), (beside.output, "output schema")];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(tokens, _)| *tokens > 0)
        .map(|(tokens, what)| format!("{what}: {tokens}"))
        .collect();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let message = format!(
        "{before} tokens; at least {least}{parts} after dropping every optional section; the budget is {budget}"
    );
    let diagnostic = Diagnostic::new(Code::DoesNotFit, message)
        .hint("give more sections a summary or a negative `priority`, or allow more tokens");
    Error::new(ErrorKind::Limit, diagnostic).with("tokens", least).with("budget", budget)
}
