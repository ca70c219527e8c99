//! The model that a prompt was written for, and how it is to be asked.

use serde_json::{Map, Number, Value as Json, json};

use crate::source::Place;

/// The model that a prompt was written for.
#[derive(Debug, Clone, Default)]
pub struct Model {
    /// Its id, as in `gpt-4o`; empty if the file names none.
    pub id: String,
    /// Who offers it, as in `openai`.
    pub provider: Option<String>,
    /// Where the file names the provider.
    pub provider_place: Option<Place>,
    /// Which of the provider's interfaces: `chat`, `responses`, `embedding`, `image`, or another; `None` is `chat`.
    pub api_type: Option<String>,
    /// How the provider is reached, as it was written: `${env:…}` is not resolved here, so that no secret is.
    pub connection: Option<Json>,
    /// How it is to be asked.
    pub options: ModelOptions,
    /// Keys that mean nothing to Cuebook, as they were written.
    pub extra: Map<String, Json>,
}

/// How a model is to be asked. Numbers are kept as they were written, so that 0.7 stays 0.7.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelOptions {
    /// How freely it chooses words.
    pub temperature: Option<Number>,
    /// The most tokens that it may answer with.
    pub max_output_tokens: Option<Number>,
    /// The share of likely words that it chooses from.
    pub top_p: Option<Number>,
    /// The number of likely words that it chooses from.
    pub top_k: Option<Number>,
    /// How much it avoids words that it has used often.
    pub frequency_penalty: Option<Number>,
    /// How much it avoids words that it has used at all.
    pub presence_penalty: Option<Number>,
    /// Makes its choices repeatable, where the provider can.
    pub seed: Option<Number>,
    /// Texts at which it stops.
    pub stop_sequences: Vec<String>,
    /// Whether it may call several tools at once.
    pub allow_multiple_tool_calls: Option<bool>,
    /// Passed on to the provider as they are.
    pub additional_properties: Map<String, Json>,
    /// Keys that mean nothing to Cuebook, as they were written.
    pub extra: Map<String, Json>,
}

impl Model {
    /// The model in the words of a `.prompty` file.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("id".into(), json!(self.id));
        for (key, value) in [("provider", &self.provider), ("apiType", &self.api_type)] {
            if let Some(value) = value {
                object.insert(key.into(), json!(value));
            }
        }
        if let Some(connection) = &self.connection {
            object.insert("connection".into(), connection.clone());
        }
        let options = self.options.to_json();
        if !options.is_empty() {
            object.insert("options".into(), Json::Object(options));
        }
        object.extend(self.extra.clone());
        Json::Object(object)
    }
}

impl ModelOptions {
    /// The numbers, by their names in a file.
    pub fn numbers(&self) -> [(&'static str, Option<&Number>); 7] {
        [
            ("temperature", self.temperature.as_ref()),
            ("maxOutputTokens", self.max_output_tokens.as_ref()),
            ("topP", self.top_p.as_ref()),
            ("topK", self.top_k.as_ref()),
            ("frequencyPenalty", self.frequency_penalty.as_ref()),
            ("presencePenalty", self.presence_penalty.as_ref()),
            ("seed", self.seed.as_ref()),
        ]
    }

    /// The options in the words of a `.prompty` file.
    pub fn to_json(&self) -> Map<String, Json> {
        let mut object = Map::new();
        for (key, number) in self.numbers() {
            if let Some(number) = number {
                object.insert(key.into(), Json::Number(number.clone()));
            }
        }
        if !self.stop_sequences.is_empty() {
            object.insert("stopSequences".into(), json!(self.stop_sequences));
        }
        if let Some(allowed) = self.allow_multiple_tool_calls {
            object.insert("allowMultipleToolCalls".into(), json!(allowed));
        }
        if !self.additional_properties.is_empty() {
            object.insert("additionalProperties".into(), Json::Object(self.additional_properties.clone()));
        }
        object.extend(self.extra.clone());
        object
    }
}
