//! The model, as a file writes it.

use serde_json::Number;

use super::reader::FrontMatterReader;
use crate::node::{Data, Key, Node};
use crate::prompt::{Model, ModelOptions};

const KEYS: [&str; 5] = ["id", "provider", "apiType", "connection", "options"];
const OPTION_KEYS: [&str; 10] = [
    "temperature",
    "maxOutputTokens",
    "topP",
    "topK",
    "frequencyPenalty",
    "presencePenalty",
    "seed",
    "stopSequences",
    "allowMultipleToolCalls",
    "additionalProperties",
];

impl FrontMatterReader {
    /// A model: its id alone, or a map.
    #[doc(hidden)]
    pub fn model(&mut self, node: &Node) -> Option<Model> {
        let entries = match &node.data {
            Data::Null => return None,
            Data::Text(id) => return Some(Model { id: id.clone(), ..Model::default() }),
            Data::Map(entries) => entries,
            _ => {
                let hint = "write `model: gpt-4o`, or `id: gpt-4o` indented below it";
                self.mismatch(node, "`model`", "the id of a model, or a map", hint);
                return None;
            }
        };
        let mut model = Model::default();
        for (key, node) in entries {
            match key.name.as_str() {
                "id" => model.id = self.text(node, "`model.id`").unwrap_or_default(),
                "provider" => {
                    model.provider = self.text(node, "`model.provider`");
                    model.provider_place = Some(node.place.clone());
                }
                "apiType" => model.api_type = self.text(node, "`model.apiType`"),
                "connection" => match &node.data {
                    Data::Null => {}
                    Data::Map(_) => model.connection = Some(node.to_json()),
                    Data::Text(text) if text.starts_with("${") && text.ends_with('}') => {
                        model.connection = Some(node.to_json());
                    }
                    _ => {
                        let hint = "write `kind: key` and other keys, indented below it";
                        self.mismatch(node, "`model.connection`", "a map", hint);
                    }
                },
                "options" => model.options = self.options(node),
                _ => {
                    self.extra("`model`", key, &KEYS);
                    model.extra.insert(key.name.clone(), node.to_json());
                }
            }
        }
        Some(model)
    }

    fn options(&mut self, node: &Node) -> ModelOptions {
        let mut options = ModelOptions::default();
        for (key, node) in self.entries(node, "`model.options`") {
            let what = format!("`model.options.{}`", key.name);
            let number = match key.name.as_str() {
                "temperature" => &mut options.temperature,
                "maxOutputTokens" => &mut options.max_output_tokens,
                "topP" => &mut options.top_p,
                "topK" => &mut options.top_k,
                "frequencyPenalty" => &mut options.frequency_penalty,
                "presencePenalty" => &mut options.presence_penalty,
                "seed" => &mut options.seed,
                "stopSequences" => {
                    for (index, item) in self.items(node, &what).iter().enumerate() {
                        let what = format!("`model.options.stopSequences[{index}]`");
                        match self.text(item, &what) {
                            Some(text) => options.stop_sequences.push(text),
                            None if item.is_null() && !item.from_environment => {
                                self.mismatch(item, &what, "a string", "write a string, or remove it");
                            }
                            None => {}
                        }
                    }
                    continue;
                }
                "allowMultipleToolCalls" => {
                    options.allow_multiple_tool_calls = self.flag(node, &what);
                    continue;
                }
                "additionalProperties" => {
                    options.additional_properties = self.object(node, &what);
                    continue;
                }
                _ => {
                    self.extra("`model.options`", key, &OPTION_KEYS);
                    options.extra.insert(key.name.clone(), node.to_json());
                    continue;
                }
            };
            *number = self.number(node, &what);
            if let Some(number) = number.as_ref().and_then(Number::as_f64) {
                self.refused_by_all(key, number, node, &what);
            }
        }
        options
    }

    /// Notes a number that no provider takes. Where they differ, it is theirs to say.
    fn refused_by_all(&mut self, key: &Key, number: f64, node: &Node, what: &str) {
        let (fits, range) = match key.name.as_str() {
            "maxOutputTokens" => (number >= 1.0, "at least 1"),
            "temperature" => ((0.0..=2.0).contains(&number), "from 0 to 2"),
            "topP" => ((0.0..=1.0).contains(&number), "from 0 to 1"),
            _ => return,
        };
        if !fits {
            let message = format!("{what} is {number}, which no provider accepts");
            self.strange(&node.place, message, format!("use a number that is {range}"));
        }
    }
}
