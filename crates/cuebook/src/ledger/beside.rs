//! What a request holds beside its text: tools, and the schema of the answer.

use super::cache::Provider;
use super::{OUTPUT_WHY, TOOLS_WHY, audience, spoken};
use crate::render::Rendered;

/// The tokens of what a request holds beside its text.
#[derive(Debug, Default)]
pub(crate) struct Beside {
    pub(crate) tools: usize,
    pub(crate) output: usize,
    /// Why these are estimates.
    pub(crate) estimates: Vec<&'static str>,
    /// What could not be counted, and why.
    pub(crate) not_counted: Vec<String>,
}

impl Beside {
    pub(crate) fn of(rendered: &Rendered) -> Beside {
        let (_, provider, tokenizer) = audience(rendered);
        let provider = provider.unwrap_or(Provider::OpenAi);
        let mut beside = Beside::default();
        match spoken::tools(rendered, provider) {
            Ok(tools) => beside.tools = tools.iter().map(|tool| tokenizer.count(&tool.json)).sum(),
            Err(error) => beside.not_counted.push(format!("the tools: {}", error.diagnostic().message)),
        }
        match spoken::output(rendered, provider) {
            Ok(output) => beside.output = output.map_or(0, |output| tokenizer.count(&output)),
            Err(error) => {
                beside.not_counted.push(format!("the output schema: {}", error.diagnostic().message));
            }
        }
        beside.estimates.extend((beside.tools > 0).then_some(TOOLS_WHY));
        beside.estimates.extend((beside.output > 0).then_some(OUTPUT_WHY));
        beside
    }

    /// All of them together.
    pub(crate) fn tokens(&self) -> usize {
        self.tools + self.output
    }
}
