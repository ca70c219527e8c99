//! Which models a provider offers, and what they can do.
//!
//! [`map_model`] understands one entry of a provider's list; [`enrich`] adds what is known of a family of models where
//! the list is silent. Nothing here asks a provider, and nothing here decides whether a model may be used.

mod families;
mod map;

use serde_json::{Map, Value as Json, json};

pub use families::longest;
pub use map::map_model;

/// A model, in one form for all providers. What is not known is `None`; a list that is empty is known to be empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelInfo {
    /// What a request calls it.
    pub id: String,
    /// What people call it.
    pub display_name: Option<String>,
    /// Who made it, or whose it is.
    pub owned_by: Option<String>,
    /// How many tokens it can look at.
    pub context_window: Option<u64>,
    /// What it takes: `text`, `image`, `audio`, `video`.
    pub input_modalities: Option<Vec<String>>,
    /// What it gives.
    pub output_modalities: Option<Vec<String>>,
    /// The provider's own entry, whole.
    pub additional_properties: Option<Map<String, Json>>,
}

impl ModelInfo {
    /// A model of which only the id is known.
    pub fn new(id: impl Into<String>) -> ModelInfo {
        ModelInfo { id: id.into(), ..ModelInfo::default() }
    }

    /// The model as scripts see it. What is not known is left out.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        object.insert("id".into(), json!(self.id));
        for (key, text) in [("displayName", &self.display_name), ("ownedBy", &self.owned_by)] {
            if let Some(text) = text {
                object.insert(key.into(), json!(text));
            }
        }
        if let Some(tokens) = self.context_window {
            object.insert("contextWindow".into(), json!(tokens));
        }
        for (key, kinds) in
            [("inputModalities", &self.input_modalities), ("outputModalities", &self.output_modalities)]
        {
            if let Some(kinds) = kinds {
                object.insert(key.into(), json!(kinds));
            }
        }
        if let Some(entry) = &self.additional_properties {
            object.insert("additionalProperties".into(), Json::Object(entry.clone()));
        }
        Json::Object(object)
    }
}

/// Fills what a provider left open about a model from what is known of its family. What the provider says always counts,
/// also where it says that there is nothing; a model of no known family stays as it is.
pub fn enrich(provider: &str, mut model: ModelInfo) -> ModelInfo {
    let Some(family) = families::of(provider, &model.id) else { return model };
    let list = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect();
    model.context_window = model.context_window.or(family.context_window);
    model.input_modalities.get_or_insert_with(|| list(family.input));
    model.output_modalities.get_or_insert_with(|| list(family.output));
    model
}

#[cfg(test)]
mod tests {
    use super::*;

    fn enriched(provider: &str, id: &str) -> Json {
        enrich(provider, ModelInfo::new(id)).to_json()
    }

    #[test]
    fn a_family_fills_what_is_missing() {
        assert_eq!(
            enriched("openai", "gpt-4o-2024-08-06"),
            json!({"id": "gpt-4o-2024-08-06", "contextWindow": 128_000,
                "inputModalities": ["text", "image"], "outputModalities": ["text"]})
        );
        assert_eq!(
            enriched("openai", "dall-e-3"),
            json!({"id": "dall-e-3", "inputModalities": ["text"], "outputModalities": ["image"]})
        );
    }

    #[test]
    fn the_longest_family_counts_whatever_their_order() {
        assert_eq!(enriched("openai", "gpt-4-turbo-preview")["contextWindow"], 128_000);
        assert_eq!(enriched("openai", "gpt-4-0613")["contextWindow"], 8192);
        assert_eq!(enriched("openai", "o1-mini-2024-09-12")["contextWindow"], 128_000);
        assert_eq!(enriched("openai", "o1")["contextWindow"], 200_000);
    }

    #[test]
    fn a_family_ends_where_a_word_of_the_id_ends() {
        for id in [
            "gpt-45-future",
            "gpt-4.9",
            "gpt-4omni",
            "gpt",
            "",
            "xgpt-4o",
            "GPT-4o",
            "o11",
            "ft:gpt-4o:me::1",
        ] {
            assert_eq!(enriched("openai", id), json!({"id": id}));
        }
        assert_eq!(enriched("openai", "gpt-4.1-mini")["contextWindow"], 1_047_576);
        assert_eq!(enriched("openai", "gpt-4o:custom")["contextWindow"], 128_000);
    }

    #[test]
    fn details_from_the_provider_win_even_if_empty() {
        let said = ModelInfo {
            context_window: Some(1),
            input_modalities: Some(Vec::new()),
            output_modalities: Some(vec!["audio".into()]),
            ..ModelInfo::new("gpt-4o")
        };
        assert_eq!(enrich("openai", said.clone()), said);
    }

    #[test]
    fn families_belong_to_their_provider() {
        assert_eq!(enriched("anthropic", "gpt-4o"), json!({"id": "gpt-4o"}));
        // A deployment has any name that its owner gave it.
        assert_eq!(enriched("foundry", "gpt-4o"), json!({"id": "gpt-4o"}));
        assert_eq!(enriched("nobody", "gpt-4o"), json!({"id": "gpt-4o"}));
        assert_eq!(enriched("gemini", "gemini-2.5-pro")["inputModalities"][3], "video");
    }
}
