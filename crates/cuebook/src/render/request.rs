//! What a request holds beside its messages, as a provider's body has it: tools, and the schema of the answer, with their tokens.

use serde_json::{Value as Json, json};

use super::Rendered;
use crate::chat::wire::{self, Api, Request};
use crate::chat::{Message, Role};
use crate::error::Result;
use crate::prompt::{Property, Tools};
use crate::tokens::Tokenizer;

/// Whose model a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI, and Azure with its models: what begins the same is kept without being asked for.
    OpenAi,
    /// Anthropic: up to four places are marked, and what stands before them is kept.
    Anthropic,
    /// Google: what begins the same is kept without being asked for.
    Gemini,
}

impl Provider {
    /// Every provider whose cache is known here.
    pub const ALL: [Provider; 3] = [Provider::OpenAi, Provider::Anthropic, Provider::Gemini];

    /// The provider of a model, by its id, or else by the name of the provider that a prompt gives.
    pub fn of(model: Option<&str>, named: Option<&str>) -> Option<Provider> {
        let model = model.unwrap_or_default().to_lowercase();
        if model.contains("claude") {
            return Some(Provider::Anthropic);
        }
        if model.contains("gemini") {
            return Some(Provider::Gemini);
        }
        if Tokenizer::is_published(&model) {
            return Some(Provider::OpenAi);
        }
        match named?.trim().to_lowercase().as_str() {
            "openai" | "azure" | "foundry" => Some(Provider::OpenAi),
            "anthropic" => Some(Provider::Anthropic),
            "google" | "gemini" => Some(Provider::Gemini),
            _ => None,
        }
    }

    /// Its name, as in `--as wire:NAME`.
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::OpenAi => "openai",
            Provider::Anthropic => "anthropic",
            Provider::Gemini => "gemini",
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Provider::OpenAi => "OpenAI",
            Provider::Anthropic => "Anthropic",
            Provider::Gemini => "Gemini",
        }
    }

    /// The interface that its requests are written for.
    pub fn api(self) -> Api {
        match self {
            Provider::OpenAi => Api::OpenAiChat,
            Provider::Anthropic => Api::Anthropic,
            Provider::Gemini => Api::Gemini,
        }
    }

    /// Whether messages of the system stand before all others in its requests, wherever the prompt has them.
    pub fn reads_the_system_first(self) -> bool {
        matches!(self, Provider::Anthropic | Provider::Gemini)
    }
}

/// Why the tokens of tools are an estimate.
pub const TOOLS_WHY: &str =
    "Tools are counted as the JSON of a request; providers do not publish how a model sees them";

/// Why the tokens of the answer's schema are an estimate.
pub const OUTPUT_WHY: &str = "The schema of the answer is counted as the JSON of a request; providers do not publish how a \
     model sees it";

/// The model that a render is for, whose it is, and how its tokens are counted.
pub fn audience(rendered: &Rendered) -> (Option<String>, Option<Provider>, Tokenizer) {
    let own = rendered.prompt().model.as_ref();
    let named = own.map(|model| model.id.as_str()).filter(|id| !id.trim().is_empty());
    let asked = rendered.scope().model();
    let model = asked.or(named).map(str::to_owned);
    // The prompt's provider says nothing about another model.
    let theirs = own.and_then(|own| own.provider.as_deref()).filter(|_| asked.is_none() || asked == named);
    let provider = Provider::of(model.as_deref(), theirs);
    let tokenizer = model.as_deref().map_or_else(Tokenizer::for_no_model, Tokenizer::for_model);
    (model, provider, tokenizer)
}

/// A tool as the body of a request speaks of it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RequestTool {
    /// Its name.
    pub name: String,
    /// What the body says of it, as JSON.
    pub json: String,
}

/// The tokens of what a request holds beside its text.
#[derive(Debug, Default)]
pub(crate) struct ExtraTokens {
    pub(crate) tools: usize,
    pub(crate) output: usize,
    /// Why these are estimates.
    pub(crate) estimates: Vec<&'static str>,
    /// What could not be counted, and why.
    pub(crate) not_counted: Vec<String>,
}

impl ExtraTokens {
    pub(crate) fn of(rendered: &Rendered) -> ExtraTokens {
        let (_, provider, tokenizer) = audience(rendered);
        let provider = provider.unwrap_or(Provider::OpenAi);
        let mut beside = ExtraTokens::default();
        match request_tools(rendered, provider) {
            Ok(tools) => beside.tools = tools.iter().map(|tool| tokenizer.count(&tool.json)).sum(),
            Err(error) => beside.not_counted.push(format!("the tools: {}", error.diagnostic().message)),
        }
        match request_output(rendered, provider) {
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

/// A body of the provider's that says nothing but these. What a body says besides does not matter here.
fn body(rendered: &Rendered, provider: Provider, tools: &Tools, outputs: &[Property]) -> Result<Json> {
    let mut model = rendered.prompt().model.clone().unwrap_or_default();
    if model.id.trim().is_empty() {
        model.id = "model".to_owned();
    }
    let messages = [Message::text(Role::User, "hello")];
    let request = Request { model: &model, messages: &messages, tools, outputs };
    Ok(wire::body(provider.api(), &request)?.body)
}

/// The schema of the answer as the provider's body has it.
pub fn request_output(rendered: &Rendered, provider: Provider) -> Result<Option<String>> {
    let outputs = &rendered.prompt().outputs;
    if outputs.is_empty() {
        return Ok(None);
    }
    let body = body(rendered, provider, &Tools::default(), outputs)?;
    let config = &body["generationConfig"];
    let places = [
        &body["response_format"],
        &body["output_config"]["format"],
        &config["responseSchema"],
        &config["responseJsonSchema"],
    ];
    Ok(places.into_iter().find(|place| !place.is_null()).map(Json::to_string))
}

/// The tools as the provider's body has them.
pub fn request_tools(rendered: &Rendered, provider: Provider) -> Result<Vec<RequestTool>> {
    let tools = rendered.tools();
    if tools.is_empty() {
        return Ok(Vec::new());
    }
    let body = body(rendered, provider, &tools, &[])?;
    let listed = match &body["tools"] {
        // Gemini has a list in its list.
        Json::Array(tools) => tools
            .iter()
            .flat_map(|tool| match &tool["functionDeclarations"] {
                Json::Array(functions) => functions.clone(),
                _ => vec![tool.clone()],
            })
            .collect(),
        _ => Vec::new(),
    };
    let name = |tool: &Json| {
        let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str());
        name.unwrap_or_default().to_owned()
    };
    Ok(listed.iter().map(|tool| RequestTool { name: name(tool), json: json!(tool).to_string() }).collect())
}
